"""Runs as a whole: the reference beside the code, archives, and what differs between two runs."""

from __future__ import annotations

import copy
import csv
import hashlib
import importlib
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rocrate.rocrate import ROCrate

from replifed import cli
from replifed.claims import reference, scores, tables
from replifed.claims.rules import NOT_YET
from replifed.claims.verdicts import COLUMNS
from replifed.errors import DataError
from replifed.papers import jobs
from replifed.papers.jobs import every_claim
from replifed.runs import archived, certified, compared, frames, kept, opened, page
from replifed.settings.needs import settings_for
from replifed.store import hashes, limits
from replifed.store import manifest as store
from replifed.store.environment import environment
from replifed.store.histories import provenance, write_history, write_tuned

ROOT = Path(__file__).parents[2]
SETTINGS = {
    **{
        "scale": "tiny",
        "papers": ["fedht"],
        "paths": {"results": "results", "figures": "figures"},
        "data": {"mirror": "/m", "policy": "auto"},
    },
    "fedht": {
        "seed": 1,
        "experiments": {"mnist": {"ridge": 0.1, "rounds": 3, "tuning": {"steps": [0.1, 1.0]}}},
        "artefacts": {"fig1": {"runs": {"mnist": ["fedht"]}}},
    },
}


def meta(step):
    """What is recorded of a file that a job made."""
    stated = settings_for(step, SETTINGS["fedht"], "mnist")
    origin = provenance([], stated, {"id": "mnist", "kind": "original", "stamp": ""})
    return origin | {"source": {"replifed.algorithms.fedht": "a" * 64}}


META = meta("run")


def history(folder, change=1.0, twin=0.0, **meta):
    at = np.arange(4)
    frame = pd.DataFrame({"method": "fedht", "replicate": 1, "round": at, "objective": 0.5**at})
    if twin:
        frame["objective.of_start"] = frame["objective"] * (1 + twin)
        frame["objective.of_step"] = frame["objective"]
    frame.loc[2, "objective"] *= change
    write_history(folder / "results/fedht/mnist/fedht.parquet", frame, {**META, **meta})


def tuned(folder, step=0.1, **more):
    found = {"method": "fedht", "search": {"step": step, "steps": [0.1, 1.0], **more}}
    write_tuned(folder / "results/fedht/mnist/fedht.tuned.json", found, meta("tune"))


def table(folder, value="0.25"):
    file = folder / "figures/fedht/fig1.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"round,mean,data\n0,1,\n1,0.5,\n2,{value},\n")


def claim(folder, measured="5.0", verdict="holds", **changes):
    row = dict.fromkeys(COLUMNS, "")
    row |= {"id": "fedht.fig1.rate", "kind": "near", "unit": "rounds", "data": "original", "paper": "fedht"}
    row |= {
        "source": "chosen",
        "statement_id": "fedht.rate",
        "part": "fedht.fig1.rate",
        "settings": "printed inferred",
    }
    row |= {"needs": "run:mnist/fedht", "measured": measured, "verdict": verdict, **changes}
    for name, columns, one in (
        ("claims", COLUMNS, row),
        ("statements", scores.COLUMNS, scores.statements([row])[0]),
        ("not_claimed", ("paper",), None),
    ):
        with (folder / f"results/{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows([] if one is None else [one])


def manifest(folder):
    names = [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name not in ("manifest.csv", "environment.json")
    ]
    rows = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()},1,{file.relative_to(folder).as_posix()}"
        for file in names
    ]
    rows.append(f"{'b' * 64},1,data/raw/mnist/train.gz")
    lines = "\n".join(["sha256,bytes,file", *rows]) + "\n"
    seal = f"# {len(rows)} files, sha256 {hashlib.sha256(lines.encode()).hexdigest()}\n"
    (folder / "results/manifest.csv").write_text(lines + seal)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    (folder / "results").mkdir()
    history(folder)
    tuned(folder)
    table(folder)
    claim(folder)
    (folder / "results/environment.json").write_text(json.dumps(environment()))
    manifest(folder)
    return folder


@pytest.fixture
def other(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "other"))


def differences(a, b):
    found = compared.compare(opened.open_run(a), opened.open_run(b))
    return [one for one in found if one.outcome != compared.IDENTICAL]


def test_a_run_is_as_itself(whole, other):
    assert differences(whole, other) == []
    assert cli.main(["diff", str(whole), str(other)]) == 0


RUN = "results/fedht/mnist/fedht.parquet"
ALIKE = {"ridge": 0.2, "rounds": 3}
# What is planted, its outcome, what is said of it, and its cause.
PLANTED = {
    "a curve, by 1e-6": (lambda to: history(to, 1 + 1e-6), "moved", "relative 1.0e-06", "are the same"),
    "a setting": (
        lambda to: history(to, 1.1, settings=ALIKE),
        *("moved", "0.25 against 0.275", "other settings: ridge 0.1 against 0.2"),
    ),
    "a source": (
        lambda to: history(to, 1.1, source={"replifed.algorithms.fedht": "c" * 64}),
        *("moved", "at replicate 1, round 2", "other sources: replifed.algorithms.fedht"),
    ),
    "a data set": (
        lambda to: history(to, 1.1, data={"id": "mnist", "kind": "surrogate", "stamp": ""}),
        *("moved", "", "other data: kind original against surrogate"),
    ),
    "samples": (
        lambda to: history(to, 1.1, data={**META["data"], "content_sha256": "2"}),
        *("moved", "", "other data: the samples of mnist differ"),
    ),
    "raw files": (
        lambda to: (history(to, 1.1), edit(to / "results/manifest.csv", "b" * 64, "c" * 64)),
        *("moved", "", "the raw files of mnist differ"),
    ),
    "a version": (
        lambda to: history(to, 1.1, versions={**META["versions"], "numpy": "1.0"}),
        *("moved", "", "other versions: numpy"),
    ),
    "an origin": (
        lambda to: history(to, settings=ALIKE),
        *("within tolerance", "equal numbers of another origin", "other settings"),
    ),
    "a curve, by rounding": (lambda to: history(to, 1 + 1e-12), "within tolerance", "", ""),
    "a file": (lambda to: (to / RUN).unlink(), "missing", "not in ", ""),
    "a byte": (lambda to: (to / RUN).write_bytes(b"PAR1"), "damaged", "not a run history", ""),
    "a step": (lambda to: tuned(to, 0.3), "moved", "0.1 against 0.3", ""),
    "an entry without a value": (lambda to: tuned(to, own=None), "moved", "no entry against None", ""),
    "a table": (lambda to: table(to, "0.2500001"), "moved", "0.25 against 0.2500001", "no run of it"),
    "a table whose run is off by rounding": (
        lambda to: (history(to, 1 + 1e-12), table(to, "0.26")),
        *("moved", "0.25 against 0.26", "from histories/fedht/mnist/fedht.parquet"),
    ),
    "a field before each line": (
        lambda to: (to / "figures/fedht/fig1.csv").write_text("round,mean,data\n9,0,1,\n9,1,0.5,\n"),
        *("damaged", "its lines have more fields than its head", ""),
    ),
    "a search that is none": (
        lambda to: (to / RUN).with_suffix(".tuned.json").write_text("[]"),
        *("damaged", "not the outcome of a search", ""),
    ),
    "all verdicts": (lambda to: (to / "results/claims.csv").unlink(), "missing", "not in ", ""),
    "a row of text": (lambda to: table(to, "many"), "moved", "1 of 3 entries", ""),
    "a number of a claim": (lambda to: claim(to, "9.0"), "moved", "5 against 9 rounds", ""),
    "a number of a claim, a little": (lambda to: claim(to, "5.4"), "within tolerance", "", ""),
    "no number of a claim": (lambda to: claim(to, "nan"), "moved", "5.0 against nan", ""),
    "an infinite number of a claim": (lambda to: claim(to, "inf"), "moved", "5.0 against inf", ""),
    "a verdict": (lambda to: claim(to, "5.0", "fails"), "verdict changed", "holds against fails", ""),
}


def edit(file, old, new):
    file.write_text(file.read_text().replace(old, new))


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_named(whole, other, name, capsys):
    change, outcome, text, cause = PLANTED[name]
    if name == "samples":
        whole = Path(shutil.copytree(whole, other.with_name("ours")))
        history(whole, data={**META["data"], "content_sha256": "1"})
    change(other)
    worst, *_ = differences(whole, other)
    assert worst.outcome == outcome and text in worst.text and cause in worst.cause
    moved = outcome not in compared.SOUND
    assert cli.main(["diff", str(whole), str(other)]) == moved
    told = capsys.readouterr().out
    assert worst.name in told and ("nothing moved" in told) != moved


def test_what_twins_differ_by_is_let_pass(whole, other, tmp_path):
    first = Path(shutil.copytree(whole, tmp_path / "first"))
    history(first, twin=1e-4)
    history(other, 1 + 5e-5, twin=1e-4)
    table(other, "0.25001")
    found = differences(first, other)
    assert {one.outcome for one in found} == {"within tolerance"}
    assert {one.kind for one in found} == {"history", "table"}, "a table follows its runs"
    table(other, "lost")
    assert [one.kind for one in differences(first, other) if one.outcome == "moved"] == ["table"]
    table(other)
    history(other, 1 + 5e-3, twin=1e-4)
    assert differences(first, other)[0].outcome == "moved"


@pytest.mark.parametrize("kind, outcome", [("near", "within tolerance"), ("shape", "moved")])
def test_a_share_of_cases_has_no_tolerance(other, tmp_path, kind, outcome):
    second = Path(shutil.copytree(other, tmp_path / "second"))
    for folder, measured in ((other, "0.9"), (second, "0.9000001")):
        claim(folder, measured, kind=kind, unit="rounds" if kind == "near" else "")
    (found,) = (one for one in differences(other, second) if one.kind == "claim" and one.column == "measured")
    assert found.outcome == outcome


def test_runs_of_two_scales_are_not_compared(other, tmp_path, capsys):
    second = Path(shutil.copytree(other, tmp_path / "second"))
    claim(other, scale="small")
    claim(second, scale="paper")
    assert cli.main(["diff", str(other), str(second)]) == 2
    said = capsys.readouterr().err.replace(" \n", "")
    assert f"{other}/results is of scale small" in said
    assert said.endswith(
        "compare runs of one scale; tests/golden/small.csv has the references of small runs\n"
    )
    for words in (["claims"], ["show", "fedplt/fig3"]):
        assert cli.main([*words, "--reference", "--small"]) == 2
        assert "shows the run at the papers' scale: leave out --small" in capsys.readouterr().err


def on(folder, change=1.0, **machine):
    """A history made on another machine than this one, by what it records; None records none."""
    (here,) = META["machines"]
    history(folder, change, machines=[{**here, **machine}])


def test_the_machine_of_a_history_is_a_cause_whatever_the_whole_run_records(whole, other):
    (here,) = META["machines"]
    for machine, expected in (
        (
            {"processor": "Another 9", "features": []},
            f"another processor: {here['processor']} against Another 9",
        ),
        ({"blas": ["other 1"]}, f"other linear algebra: {', '.join(here['blas'])} against other 1"),
    ):
        history(other, 1.1, machines=[{**here, **machine}])
        (cause,) = {one.cause for one in differences(whole, other) if one.kind == "history"}
        assert cause == expected
        history(other, machines=[{**here, **machine}])
        assert differences(whole, other) == [], "equal numbers of another machine are identical"


def test_what_diverged_hides_no_other_and_a_label_may_be_missing():
    runs = {"replicate": [1, 1, 2, 2], "round": [0, 1, 0, 1]}
    assert outcome({**runs, "x": [1, 0.5, 1, 1e30]}, {**runs, "x": [1, 0.6, 1, 1e30]}) == frames.MOVED
    assert outcome({**runs, "x": [1, 0.0, 1, 1e30]}, {**runs, "x": [1, 1e-13, 1, 1e30]}) == frames.WITHIN
    assert outcome({"round": [], "x": []}, {"round": [], "x": np.array([], dtype=object)}) == frames.IDENTICAL
    # A perturbed run that diverged says nothing of its run.
    perturbed = {"round": [0, 1, 2], "x.of_start": [1, 0.5, np.inf], "x.of_step": [1, 0.5, 0.25]}
    for last, expected in ((0.25 + 1e-14, frames.WITHIN), (0.26, frames.MOVED)):
        assert outcome({**perturbed, "x": [1, 0.5, 0.25]}, {**perturbed, "x": [1, 0.5, last]}) == expected
    labelled = {"step": [np.nan, np.nan], "variant": ["a", "b"], "round": [1, 1]}
    assert outcome({**labelled, "x": [1.0, 2.0]}, {**labelled, "x": [1.0, 2.0 + 1e-12]}) == frames.WITHIN


def test_what_is_not_recorded_is_unknown_and_never_the_same(whole, other):
    """Planted: what an older version left, which records no machine, without the files that end a run."""
    for name in ("environment.json", "manifest.csv"):
        (other / "results" / name).unlink()
    frame = pd.DataFrame({"round": [0, 1], "objective": [1.0, 0.7]})
    old = {key: value for key, value in META.items() if key != "machines"}
    write_history(other / "results/fedht/mnist/fedht.parquet", frame, old)
    claim(other, "9.0")
    causes = {one.kind: one.cause for one in differences(whole, other)}
    assert causes["history"] == "settings, sources and versions are the same; unknown: data, processor"
    assert causes["claim"] == "from histories/fedht/mnist/fedht.parquet"
    shutil.copytree(whole / "results/fedht", other / "results/fedht", dirs_exist_ok=True)
    (one,) = differences(whole, other)
    assert one.cause == "versions and processor are the same; unknown: data, settings, sources"
    shutil.rmtree(other / "results/fedht")
    (found,) = (one.cause for one in differences(whole, other) if one.kind == "claim")
    assert found == "unknown: data, settings, sources, versions, processor"


def test_settings_versions_and_sources_are_causes_of_what_has_no_histories(whole, other):
    table(other, "0.26")
    claim(other, "9.0", needs="")
    environments = []
    for folder, sources, ridge in ((whole, "a", 0.1), (other, "b", 0.2)):
        run = opened.open_run(folder)
        entries = {**environment(), "sources": sources, "python": f"3.{sources}"}
        stated = {"fedht": {**SETTINGS["fedht"], "ridge": ridge}}
        texts = {"environment.json": json.dumps(entries), "settings.json": json.dumps(stated)}
        parts = {**run.parts, **{name: text.encode for name, text in texts.items()}}
        environments.append(opened.Run(run.place, parts))
    found = [one for one in compared.compare(*environments) if one.outcome == compared.MOVED]
    assert [one.kind for one in found] == ["table", "claim"]
    for one in found:
        assert "other settings: ridge 0.1 against 0.2; other sources: commit " in one.cause
        assert "; other versions: python 3.a against 3.b" in one.cause


def references(folder, *names):
    """A CSV of references, the first on the claim of `claim`."""
    columns = [*reference.COLUMNS]
    rows = [{"id": name, "data": "original", "measured": "5.0", "verdict": "holds"} for name in names]
    tables.write(folder / "golden.csv", columns, [dict.fromkeys(columns, "") | row for row in rows])
    return folder / "golden.csv"


def test_references_are_compared_on_either_side_and_their_gaps_named(whole, other, tmp_path):
    claim(other, "9.0")
    golden = references(tmp_path, "fedht.fig1.rate", "fedht.fig1.gone")
    for pair in ((golden, other), (other, golden)):
        found = {one.name: one.outcome for one in differences(*pair)}
        assert found == {"fedht.fig1.rate original": "moved", "fedht.fig1.gone original": "missing"}
    assert differences(references(tmp_path, "fedht.fig1.rate"), whole) == []


def outcome(a, b):
    """Outcome of the last column."""
    return list(frames.columns(pd.DataFrame(a), pd.DataFrame(b)))[-1].outcome


def test_a_run_that_diverged_hides_no_other():
    runs = {"replicate": [1, 1, 2, 2], "round": [0, 1, 0, 1]}
    assert outcome({**runs, "x": [1, 0.5, 1, 1e30]}, {**runs, "x": [1, 0.6, 1, 1e30]}) == frames.MOVED
    assert outcome({**runs, "x": [1, 0.0, 1, 1e30]}, {**runs, "x": [1, 1e-13, 1, 1e30]}) == frames.WITHIN
    assert outcome({"round": [], "x": []}, {"round": [], "x": np.array([], dtype=object)}) == frames.IDENTICAL


NUMBERS = st.floats(-1e6, 1e6) | st.sampled_from([np.nan, np.inf, -np.inf])


@given(st.lists(NUMBERS, min_size=1), st.integers(0), st.floats(1e-5, 10))
def test_a_changed_number_is_found_wherever_it_is(values, at, change):
    a = pd.DataFrame({"x": np.array(values, dtype=float)})
    b, at = a.copy(), at % len(values)
    assert [one.outcome for one in frames.columns(a, b)] == [frames.IDENTICAL]
    b.loc[at, "x"] = values[at] * (1 + change) + change if np.isfinite(values[at]) else 1.0
    outcomes = [[one.outcome for one in frames.columns(*pair)] for pair in ((a, b), (b, a))]
    # What is left after a product and a sum that cancel is no change.
    assert outcomes == [[frames.MOVED]] * 2 or abs(b["x"][at] - values[at]) < 1e-5


# -- Archives --------------------------------------------------------------------------------------


def archive(folder, out):
    run = archived.whole(opened.of_folders(folder / "results", folder / "figures"), SETTINGS, settings_for)
    archived.write(run, out, "Ada Lovelace", {archived.WORKFLOW: b"rule all:\n"})
    return out


def test_an_archive_has_the_same_bytes_twice_and_is_read_back(whole, other, tmp_path):
    first, second = archive(whole, tmp_path / "a.zip"), archive(other, tmp_path / "b.zip")
    assert first.read_bytes() == second.read_bytes()
    assert b"/m" not in zipfile.ZipFile(first).read("settings.json"), "where files lay is no part of a run"
    assert differences(whole, first) == []
    folders = {"histories/": b"", "histories/fedht/": b"", "tables/": b""}
    (tmp_path / "packed.zip").write_bytes(rewritten(first, **folders))
    assert differences(whole, tmp_path / "packed.zip") == []
    crate = ROCrate(first)
    action = crate.get("#run")
    assert crate.root_dataset["datePublished"] == action["endTime"] == environment()["date"]
    assert (crate.mainEntity.id, action["agent"]["name"]) == (archived.WORKFLOW, "Ada Lovelace")
    assert action["instrument"]["name"] == "replifed"
    assert [one["name"] for one in action["object"]] == ["mnist/train.gz"]
    results = {one.id: one["sha256"] for one in action["result"]}
    held = zipfile.ZipFile(first)
    made = set(held.namelist()) - {archived.METADATA, archived.WORKFLOW}
    assert results == {name: hashlib.sha256(held.read(name)).hexdigest() for name in made}


def test_what_is_deposited_has_the_same_bytes_twice_and_is_the_reference_to_commands(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(ROOT / "tools")
    deposit = importlib.import_module("deposit")
    first, second = tmp_path / "a/run.zip", tmp_path / "b/run.zip"
    for out in (first, second):
        out.parent.mkdir()
        deposit.main(out, ["fedplt"])
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as held:
        held.extractall(tmp_path / "reference")
    monkeypatch.chdir(tmp_path)
    assert differences(Path("a/run.zip"), ROOT / "reference") == []
    run, crate = opened.open_run(first), ROCrate(first)
    commits = {run.environment(paper)["commit"] for paper in run.entries(opened.ABOUT)["papers"]}
    assert set(re.split(", |commit ", crate.get("#replifed")["softwareVersion"])[2:]) == commits
    readme = Path("reference/README.md").read_text()
    for command in re.findall(r"^    replifed (.*?)(?: +#.*)?$", readme, re.M):
        assert cli.main(shlex.split(command.replace("run.zip", "a/run.zip"))) == 0
    assert "reference run: cross: commit" in capsys.readouterr().out
    cited = yaml.safe_load(Path("reference/CITATION.cff").read_text())
    assert f"# The reference run of replifed {cited['version']}\n" in readme
    page = Path("reference/report/index.html").read_text()
    pictures = re.findall(r'src="(figures/[^"]+)"', page)
    assert pictures and all(Path("reference/report", name).is_file() for name in pictures)


@pytest.mark.parametrize("change, says", [("ridge", "ridge"), ("seed", "seed"), ("tuning", "tuning")])
def test_a_run_of_other_settings_than_the_folder_has_now_is_not_archived(other, tmp_path, change, says):
    """The archive states the folder's settings: they must be those that each file was made with."""
    section = copy.deepcopy(SETTINGS["fedht"])
    of = section if change == "seed" else section["experiments"]["mnist"]
    of[change] = {"steps": [0.2]} if change == "tuning" else 2
    run = opened.of_folders(other / "results", other / "figures")
    with pytest.raises(
        DataError, match=f"was made with another setting of {says} than this folder has; `rep"
    ):
        archived.whole(run, SETTINGS | {"fedht": section}, settings_for)
    with pytest.raises(DataError, match=r"mnist/fedht.parquet is of an experiment that this folder's setti"):
        archived.whole(run, SETTINGS | {"fedht": SETTINGS["fedht"] | {"experiments": {}}}, settings_for)


def test_a_run_that_changed_since_its_manifest_is_not_archived(other, tmp_path):
    file, listing = other / "figures/fedht/fig1.csv", other / "results/manifest.csv"
    for change, says in (
        (lambda: table(other, "0.26"), "tables/fedht/fig1.csv is not as the manifest lists it"),
        (
            lambda: (table(other), (other / RUN).unlink()),
            "mnist/fedht.parquet, which the manifest lists, is missing",
        ),
        (
            lambda: (history(other), file.unlink()),
            "tables/fedht/fig1.csv, which the manifest lists, is missing",
        ),
        (lambda: edit(listing, "fedht/fig1.csv", "fedht/fig2.csv"), "manifest.csv was cut short or altered"),
        (listing.unlink, "it has no manifest.csv"),
    ):
        change()
        with pytest.raises(DataError, match=re.escape(says)):
            archive(other, tmp_path / "a.zip")
    assert list(tmp_path.glob("*.zip")) == []


def rewritten(file, **members):
    """A copy of an archive with other members; None leaves one out, a pair is replaced."""
    stream = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(stream, "w") as new:
        for name in dict.fromkeys([*old.namelist(), *members]):
            content = members[name] if name in members else old.read(name)
            if content is not None:
                new.writestr(
                    name, old.read(name).replace(*content) if isinstance(content, tuple) else content
                )
    return stream.getvalue()


def unpackable(file):
    """An archive whose packed verdicts begin with a block of no type that there is."""
    content = bytearray(file.read_bytes())
    start = zipfile.ZipFile(file).getinfo("claims.csv").header_offset
    content[start + 30 + len("claims.csv")] = 0xFF
    return bytes(content)


def locked(file):
    """An archive whose verdicts want a password, by the flags in its directory."""
    content = bytearray(file.read_bytes())
    start = zipfile.ZipFile(file).getinfo("claims.csv").header_offset
    entry = content.rindex(b"claims.csv", 0, content.rindex(b"environment.json")) - 46
    content[start + 6] |= 1
    content[entry + 8] |= 1
    return bytes(content)


BAD = {
    "of changed packed bytes": (unpackable, "claims.csv is damaged"),
    "with a password": (locked, "claims.csv is damaged"),
    "cut short": (lambda file: file.read_bytes()[:1000], "not an archive of a run"),
    "empty": (lambda file: b"", "not an archive of a run"),
    **{
        name: (lambda file, members=members: rewritten(file, **members), said)
        for name, members, said in (
            ("of other columns", {"claims.csv": b"a,b\n1,2\n"}, "it has no column id"),
            ("of broken verdicts", {"claims.csv": b"\xff"}, "claims.csv is damaged"),
            (
                "of verdicts without numbers",
                {"claims.csv": (b"5.0", b"five")},
                "fedht.fig1.rate is no number",
            ),
            ("another zip", {"run.json": None}, "it has no run.json"),
            ("of broken JSON", {"run.json": b"{"}, "run.json is damaged"),
            (
                "of a newer version",
                {"run.json": b'{"schema": 9, "replifed": "7.0"}'},
                "this one knows up to 1",
            ),
            ("that leaves its folder", {"../x": b""}, "'../x' leaves its folder"),
            ("with a root", {"/etc/x": b""}, "'/etc/x' leaves its folder"),
        )
    },
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_archive_is_one_line(whole, tmp_path, name, capsys):
    change, said = BAD[name]
    file = tmp_path / "bad.zip"
    file.write_bytes(change(archive(whole, tmp_path / "good.zip")))
    assert cli.main(["diff", str(whole), str(file), "--html", str(tmp_path / "page.html")]) == 2
    told = capsys.readouterr().err
    assert f"{file}: " in told
    assert said in told
    assert told.count("\n") == 1
    assert not (tmp_path / "page.html").exists(), "nothing is written"


def test_an_archive_above_the_limit_is_refused(whole, tmp_path):
    file = tmp_path / "bomb.zip"
    file.write_bytes(rewritten(archive(whole, tmp_path / "a.zip"), **{"tables/fedht/x.csv": bytes(3 << 20)}))
    with (
        limits.limit(1 << 20, "it is damaged"),
        pytest.raises(DataError, match=r"3\.\d* MiB, above the limit of 1 MiB"),
    ):
        opened.open_run(file)


def test_what_is_no_run_is_one_line(tmp_path, capsys):
    for place in (tmp_path, tmp_path / "nothing"):
        assert cli.main(["diff", str(place), "reference"]) == 2
        assert str(place) in capsys.readouterr().err


# -- Papers made one by one ------------------------------------------------------------------------


def judged(folder):
    """Make of a run what the target of its paper leaves: the joint files are moved to the paper's own."""
    for name in ("statements.csv", "not_claimed.csv", "manifest.csv"):
        (folder / "results" / name).unlink()
    for name in ("claims.csv", "environment.json"):
        (folder / "results" / name).rename(folder / "results/fedht" / name)
    hashes.record([file for file in folder.rglob("*") if file.is_file()])
    return folder


def test_a_paper_alone_is_a_run_as_the_whole_is(whole, other):
    assert differences(whole, judged(other)) == []
    run = opened.open_run(other)
    assert run.environment("fedht") == run.environment() == environment()
    assert kept.in_words(run, "fedht") == kept.in_words(opened.open_run(whole))


def test_a_paper_judged_after_the_others_has_its_own_verdicts_and_not_the_older_joint_ones(whole, other):
    shutil.copy(other / "results/claims.csv", other / "results/fedht/claims.csv")
    joint = (other / "results/claims.csv").read_bytes()
    assert opened.open_run(other).read("claims.csv") == joint
    claim(other, verdict="fails")
    found = {one.kind: one for one in differences(whole, other)}
    assert found == {}, "the paper's own file still holds"
    (other / "results/claims.csv").rename(other / "results/fedht/claims.csv")
    (other / "results/claims.csv").write_bytes(joint)
    found = {one.kind: one.text for one in differences(whole, other)}
    assert (
        found["claim"].startswith("holds against fails")
        and found["statement"] == "reproduced against deviates"
    )
    assert [row["verdict"] for row in opened.open_run(other, ["fedac"]).rows("claims.csv")] == ["holds"]
    older = joint.replace(b"evidence", b"reasons")  # of a version with another column
    for place in ("", "fedht/"):
        (other / f"results/{place}claims.csv").write_bytes(older)
    assert opened.open_run(other).read("claims.csv") == older


def archive_of_papers(folder, out, monkeypatch):
    monkeypatch.chdir(folder)
    run = opened.of_folders(Path("results"), Path("figures"))
    listed = store.of_folders(["results/fedht", "figures/fedht"])
    run = opened.Run(run.place, {**run.parts, "manifest.csv": listed.encode})
    archived.write(archived.of_papers(run, SETTINGS, settings_for), out, "Ada Lovelace", {})
    return out


def test_a_paper_alone_is_archived_with_what_it_was_made_with(whole, other, tmp_path, monkeypatch):
    settings = SETTINGS | {"papers": ["fedac", "fedht"]}
    monkeypatch.setitem(SETTINGS, "papers", settings["papers"])
    file = archive_of_papers(judged(other), tmp_path / "a.zip", monkeypatch)
    run = opened.open_run(file)
    assert run.entries(opened.ABOUT)["papers"] == ["fedht"]
    assert run.environment("fedht") == environment()
    assert differences(whole, file) == []
    assert ROCrate(file).get("#run")["name"] == "snakemake fedht"
    table(other, "0.26")
    with pytest.raises(DataError, match=r"tables/fedht/fig1.csv is not as the manifest lists it"):
        archive_of_papers(other, tmp_path / "b.zip", monkeypatch)
    (other / "results/fedht/environment.json").unlink()
    with pytest.raises(DataError, match=r"an older version judged fedht; `replifed make fedht` does so anew"):
        archive_of_papers(other, tmp_path / "b.zip", monkeypatch)
    (other / "results/fedht/claims.csv").unlink()
    with pytest.raises(DataError, match=r"no paper of it was judged; `replifed make PAPER` judges one"):
        archive_of_papers(other, tmp_path / "b.zip", monkeypatch)


@pytest.fixture
def alone(tmp_path, monkeypatch, capsys):
    """A working folder in which one paper, fedac, came out as in the reference; and how to call a command."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").symlink_to(ROOT / "config")
    run = opened.reference(ROOT / "reference")
    rows = [row for row in run.rows("claims.csv") if row["paper"] == "fedac"]
    (tmp_path / "results/fedac").mkdir(parents=True)
    (tmp_path / "figures/fedac").mkdir(parents=True)
    tables.write("results/fedac/claims.csv", COLUMNS, rows)
    Path("results/fedac/environment.json").write_bytes(run.read("environment.json"))
    for kind, place, suffix in (("tables", "figures", ".csv"), ("tuned", "results", ".tuned.json")):
        for name in run.of_kind(f"{kind}/fedac"):
            file = Path(place, Path(name).relative_to(kind)).with_suffix(suffix)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(run.read(name))

    def call(words, status=0):
        assert cli.main(words.split()) == status
        said = capsys.readouterr()
        return said.out + said.err

    return call


OTHERS = "fedht, fedmm, fedgradmp, fedplt, qshed, cross"


def test_commands_take_the_paper_that_was_made_and_name_the_others(alone):
    score = scores.in_lines(one for one in scores_of_reference() if one["paper"] == "fedac")
    said = alone("claims")
    assert " ".join(score) in " ".join(said.split()) and re.search(r"^fedac +\d+ \+ ", said, re.MULTILINE)
    assert f"not measured here: {OTHERS}; `replifed make PAPER --cores 2` measures one" in said
    said = alone("claims --paper fedac")
    assert " ".join(score) in " ".join(said.split()) and "not measured here" not in said
    assert "fedac.fig1.points: " in alone("claims --why fedac.fig1.points")
    assert "fedac.fig1.points" in alone("show fedac/fig1")
    said = alone("diff")
    assert re.search(r"nothing moved\nnot compared, only in .*reference: cross, fedgradmp, ", said)
    assert re.search(r"^claims: \d+ identical$", said, re.MULTILINE)
    words = "--name Ada --orcid 0000-0000-0000-0000 --out certificate"
    alone(f"certificate fedac {words}")
    commit = json.loads((ROOT / "reference/environment.json").read_text())["commit"]
    assert f", commit {commit}\n" in Path("certificate/codecheck.yml").read_text()


def test_a_paper_whose_claims_are_not_measured_is_named_with_what_measures_them(alone):
    Path("results/fedac/claims.csv").unlink()
    Path("results/fedac/a9a_2").mkdir()
    Path("results/fedac/a9a_2/fedac.parquet").touch()
    measures = "the claims on fedac are not measured here: `replifed make fedac --cores 2` does so"
    assert measures in alone("show fedac/fig1")
    said = alone("diff")
    assert "nothing moved" in said and re.search(r"not made in results: \d+ files of fedac", said)
    assert said.rstrip().endswith(measures)
    assert measures in alone("certificate fedac --name Ada --orcid 0000-0000-0000-0000 --out new")
    assert "no paper of it was judged" in alone("archive run.zip", 2)


def test_a_claim_that_was_measured_alone_is_compared_and_what_was_not_made_is_counted(alone):
    rows = [row for row in opened.reference(ROOT / "reference").rows("claims.csv") if row["paper"] == "fedac"]
    Path("results/fedac/claims.csv").unlink()
    Path("results/fedac/claims").mkdir()
    one = next(row for row in rows if row["verdict"] == "holds")
    tables.write(Path("results/fedac/claims/one.csv"), COLUMNS, [one])
    assert "claims: 1 identical\n" in alone("diff")
    tables.write(Path("results/fedac/claims/one.csv"), COLUMNS, [{**one, "verdict": "fails"}])
    said = alone("diff", 1)
    assert f"verdict changed   claim {one['id']}" in said and "missing" not in said


def scores_of_reference():
    return opened.reference(ROOT / "reference").rows("statements.csv")


def test_no_verdict_needs_another_paper():
    """So a paper alone has the verdicts that it has among all others."""
    for claim in every_claim():
        assert claim.family[0] == claim.paper
        assert claim.statement_id.split(".")[0] == claim.paper
    rows = opened.reference(ROOT / "reference").rows("claims.csv")
    for paper in {row["paper"] for row in rows}:
        alone = scores.statements(row for row in rows if row["paper"] == paper)
        assert alone == [one for one in scores_of_reference() if one["paper"] == paper]


# -- Page and certificate --------------------------------------------------------------------------


def test_the_page_has_both_curves_and_says_how_many_differ(whole, other, tmp_path):
    history(other, 1.5)
    runs = [opened.open_run(place) for place in (whole, other)]
    page.write(tmp_path / "page.html", *runs, compared.compare(*runs))
    text = (tmp_path / "page.html").read_text()
    assert re.search(r"<h1>\d+ of \d+ differ</h1>", text)
    assert text.count("<svg") == 1
    assert "0.25 against 0.375" in text


def test_a_certificate_says_what_was_made_again_and_is_not_signed(whole, other, tmp_path):
    table(other, "0.26")
    runs = [opened.open_run(place) for place in (whole, other)]
    about = {
        "name": "FedHT",
        "citation": "Q. Tong, G. Liang: Sparse Learning. Algorithms, 2022.",
        "doi": "10.1/x",
    }
    person = {"name": "Ada Lovelace", "ORCID": "0000-0000-0000-0000"}
    files = certified.write(
        tmp_path, "fedht", about, *runs, compared.compare(*runs), {"fig1": "Figure 1"}, person
    )
    entries = yaml.safe_load(files[0].read_text())
    assert entries["version"] == "https://codecheck.org.uk/spec/config/1.0/"
    assert entries["paper"] == {
        **{"title": "Sparse Learning", "authors": [{"name": "Q. Tong"}, {"name": "G. Liang"}]},
        "reference": "https://doi.org/10.1/x",
    }
    (row,) = entries["manifest"]
    assert row["file"] == "fedht/fig1.csv"
    assert row["comment"].startswith("Figure 1: moved: mean, 0.25 against 0.26")
    assert entries["summary"].startswith("0 of 1 figures and tables came out")
    assert entries["codechecker"] == [person]
    for key in ("certificate", "check_time", "repository"):
        assert entries[key] == "to be filled in"
    assert "not signed" in files[1].read_text()


def test_no_certificate_of_a_paper_that_was_not_compared(whole, other, tmp_path):
    runs = [opened.open_run(place) for place in (whole, other)]
    found, person = compared.compare(*runs), {"name": "Ada Lovelace", "ORCID": "0000-0000-0000-0000"}
    with pytest.raises(DataError, match="share no figure or table of fedac"):
        certified.write(tmp_path / "new", "fedac", {}, *runs, found, {"fig1": "Figure 1"}, person)
    assert not (tmp_path / "new").exists()


# -- The reference ---------------------------------------------------------------------------------


def test_parts_of_the_reference_agree():
    run = opened.reference(ROOT / "reference")
    assert kept.errors(run) == []
    rows = run.rows("claims.csv")
    assert run.rows("statements.csv") == scores.statements(rows)
    assert {row["id"] for row in rows} <= {claim.id for claim in every_claim()}  # newer ones wait for a run
    sizes = {file: file.stat().st_size for file in (ROOT / "reference").rglob("*") if file.is_file()}
    assert max(sizes.values()) <= kept.LARGEST
    assert sum(sizes.values()) < 15 << 20


def test_a_part_of_the_reference_that_does_not_agree_is_named(tmp_path):
    folder = Path(shutil.copytree(ROOT / "reference", tmp_path / "reference"))
    file = folder / "statements.csv"
    file.write_text(file.read_text().replace("reproduced", "deviates", 1))
    (folder / "not_claimed.csv").unlink()
    (folder / "tuned/fedplt").rename(tmp_path / "gone")
    one, two = (folder / f"tables/fedplt/{name}.csv.xz" for name in ("fig2", "fig3"))
    one.rename(tmp_path / "one"), two.rename(one), (tmp_path / "one").rename(two)
    found = kept.errors(opened.reference(folder))
    assert found[:4] == [
        "statements.csv: not as the manifest lists it",
        "tables/fedplt/fig2.csv: not as the manifest lists it",
        "tables/fedplt/fig3.csv: not as the manifest lists it",
        "not_claimed.csv: missing",
    ]
    assert {one.split("/")[1] for one in found[4:]} == {"fedplt"}
    assert all(one.startswith("tuned/") and one.endswith(": missing") for one in found[4:])


def test_the_reference_is_shown_where_nothing_was_made(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["claims", "--reference", "--paper", "fedplt", "--main"]) == 0
    told = capsys.readouterr().out
    commit = opened.reference(ROOT / "reference").environment("fedplt")["commit"]
    assert f"reference run: commit {commit}, 20" in told
    assert "reproduced   fedplt." in told
    assert cli.main(["show", "fedplt/fig3", "--reference"]) == 0
    told = capsys.readouterr().out
    assert "fedplt.fig3.privacy.mean" in told
    assert commit in told
    assert cli.main(["show", "fedplt/fig33", "--reference"]) == 2
    assert "did you mean 'fedplt/fig3'?" in capsys.readouterr().err
    assert cli.main(["show", "fedplt/fig3", "--reference", "--all"]) == 0
    assert "fedplt.fig3.exact" in capsys.readouterr().out.replace(told, "")


def test_a_run_of_another_scale_is_not_accepted(tmp_path, capsys):
    folder = tmp_path / "results"
    folder.mkdir()
    head, _, rows = (ROOT / "reference/claims.csv").read_text().partition("\n")
    (folder / "claims.csv").write_text(f"{head}\n{rows.replace(',paper,', ',small,')}")
    words = ["--golden", str(tmp_path / "reference"), "--file", str(folder / "claims.csv")]
    assert cli.main(["claims", "accept", *words]) == 2
    assert "is of scale small, and the settings are those of scale paper" in capsys.readouterr().err
    assert not (tmp_path / "reference").exists()


def test_statuses_of_the_reference_are_those_of_rules_sentences_and_axes_now(tmp_path):
    names = ("claims.csv", "statements.csv", "not_claimed.csv", "manifest.csv")
    for name in names:
        shutil.copy(ROOT / "reference" / name, tmp_path)
    assert jobs.restate(tmp_path) == []
    kept_as = {name: (ROOT / "reference" / name).read_bytes() for name in names}
    made = {name: (tmp_path / name).read_bytes() for name in names}
    assert made == kept_as, "run `replifed claims restate --golden reference`"
    rows = tables.rows(tmp_path / "statements.csv")
    rows[0]["status"] = "untestable"
    tables.write(tmp_path / "statements.csv", scores.COLUMNS, rows)
    [told] = jobs.restate(tmp_path)
    assert told.startswith(f"{rows[0]['statement_id']}: untestable -> ")


def test_a_claim_that_the_reference_lacks_is_entered_as_not_run_yet(tmp_path):
    for name in ("claims.csv", "statements.csv", "not_claimed.csv", "manifest.csv"):
        shutil.copy(ROOT / "reference" / name, tmp_path)
    claims = tmp_path / "claims.csv"
    rows = tables.rows(claims)
    status = {row["statement_id"]: row["status"] for row in tables.rows(tmp_path / "statements.csv")}
    gone = next(row for row in rows if status.get(row["statement_id"]) == "reproduced")
    tables.write(claims, list(gone), (row for row in rows if row is not gone))
    assert jobs.restate(tmp_path) == [f"{gone['statement_id']}: reproduced -> {NOT_YET}"]
    [waits] = (row for row in tables.rows(claims) if row["id"] == gone["id"])
    assert (waits["verdict"], waits["reason"], waits["measured"]) == ("unchecked", NOT_YET, "")
    assert waits["sentence"] == gone["sentence"] and len(tables.rows(claims)) == len(rows)
    lacking = (
        set(reference.new(ROOT / "reference/claims.csv", place)) for place in (tmp_path, ROOT / "reference")
    )
    assert set.difference(*lacking) == {gone["id"]}


def test_one_paper_takes_its_place_in_the_reference(other, tmp_path, monkeypatch):
    compress = kept.lzma.compress
    monkeypatch.setattr(kept.lzma, "compress", lambda content, preset: compress(content, preset=1))  # soon
    folder = tmp_path / "reference"
    shutil.copytree(ROOT / "reference", folder)
    earlier = opened.reference(folder)
    run = archived.whole(opened.of_folders(other / "results", other / "figures"), SETTINGS, settings_for)
    made = opened.Run("here", {**run.parts, "environment/fedht.json": run.parts["environment.json"]})
    kept.write(kept.renewed(earlier, made, ["fedht"]), folder)
    now = opened.reference(folder)
    assert kept.errors(now) == []
    assert [row["id"] for row in now.rows("claims.csv") if row["paper"] == "fedht"] == ["fedht.fig1.rate"]
    assert now.of_kind("tables")[:1] and "tables/fedht/fig1.csv" in now
    assert [name for name in now.of_kind("tuned") if "/fedht/" in name] == ["tuned/fedht/mnist/fedht.json"]
    for name in ("claims.csv", "statements.csv"):
        before, after = (
            [row for row in opened.reference(place).rows(name) if row["paper"] != "fedht"]
            for place in (ROOT / "reference", folder)
        )
        assert after == before
    assert now.environment("fedht") == environment() and now.environment("fedplt") != environment()


def test_a_run_is_accepted_whole_or_not_at_all(other, tmp_path):
    run = archived.whole(opened.of_folders(other / "results", other / "figures"), SETTINGS, settings_for)
    folder = tmp_path / "reference"
    kept.write(run, folder)
    assert kept.errors(opened.reference(folder)) == []
    assert differences(other, folder) == [], "the history is not among those that are kept"
    before = {file.name: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    (other / "figures/fedht/fig1.csv").write_bytes(np.random.default_rng(0).bytes(3 << 20))
    manifest(other)
    run = archived.whole(opened.of_folders(other / "results", other / "figures"), SETTINGS, settings_for)
    with pytest.raises(DataError, match=r"is no earlier reference"):
        kept.write(run, other / "results")
    assert (other / "results/claims.csv").is_file()
    with pytest.raises(DataError, match=r"tables/fedht/fig1.csv takes \d+ bytes"):
        kept.write(run, folder)
    assert {file.name: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


_ACCEPT = """
import sys
from pathlib import Path
from replifed.runs import kept
from replifed.runs.opened import Run

def content():
    print("reading", flush=True)
    sys.stdin.read()

kept.write(Run("here", {"claims.csv": content}), Path("reference"))
"""


@pytest.fixture
def accepting(tmp_path):
    """A process that is amid writing a reference."""
    process = subprocess.Popen(
        [sys.executable, "-c", _ACCEPT], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout.readline() == b"reading\n"
        yield process
        process.kill()


def test_what_a_killed_command_left_beside_the_reference_goes(accepting, tmp_path, monkeypatch, capsys):
    """Whatever is done next; what a command is still at stays, and so does other work."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".reference").mkdir()
    made = [*tmp_path.glob(".reference-*")]
    kept.clean(Path("reference"))
    assert len(made) == 1 and made[0].is_dir()
    accepting.kill()
    accepting.wait()
    assert made[0].is_dir()
    assert cli.main(["claims", "accept", "--file", "none.csv"]) == 2
    assert "none.csv does not exist" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == [".reference"]


def test_a_reference_that_a_killed_command_had_moved_away_is_put_back(tmp_path):
    moved = tmp_path / ".reference-left/reference"
    moved.mkdir(parents=True)
    (moved / "run.json").write_text("earlier")
    kept.clean(tmp_path / "reference")
    assert (tmp_path / "reference/run.json").read_text() == "earlier"
    assert [file.name for file in tmp_path.iterdir()] == ["reference"]
