"""The manifest says what the jobs made, and finds what was changed, lost or added since."""

import hashlib
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from replifed import cli
from replifed.errors import DataError
from replifed.store import hashes
from replifed.store.manifest import verify, write

FOLDERS = ["figures", "data/raw/x"]
NAMES = ["data/raw/x/.pins.json", "data/raw/x/one.bin", "figures/a.csv"]


def listed(files, out="manifest.csv", folders=(), environment=None):
    """Write a manifest as its job does."""
    write(files, Path(out), folders, environment)
    hashes.record([Path(out), *filter(None, [environment])])


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(hashes.CONFIGFILES_VARIABLE, "--configfile own.yaml")
    for name in (*NAMES, "data/raw/x/.partial", "data/raw/x/by_hand.bin"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name)
    hashes.record(map(Path, NAMES))
    listed(["figures/a.csv", "figures/a.csv"], folders=["data/raw/x", "data/raw/none"])
    Path("data/raw/x/by_hand.bin").unlink()
    return tmp_path


def test_beside_it_is_what_the_run_was_computed_with(made):
    listed(["figures/a.csv"], "results/manifest.csv", environment=Path("results/environment.json"))
    told = json.loads(Path("results/environment.json").read_text())
    assert told["packages"]["numpy"] == np.__version__
    assert told["date"] == datetime.now(UTC).strftime("%Y-%m-%d")
    assert told["blas"]
    assert verify(Path("results/manifest.csv")) == (3, []), "its record is there"


def test_it_names_every_file_once_by_its_hash(made):
    lines = Path("manifest.csv").read_text().splitlines()
    assert lines[0] == "sha256,bytes,file"
    assert [line.split(",")[2] for line in lines[1:-1]] == NAMES
    assert lines[3] == f"{hashlib.sha256(b'figures/a.csv').hexdigest()},13,figures/a.csv"
    seal = hashlib.sha256("".join(f"{line}\n" for line in lines[:-1]).encode()).hexdigest()
    assert lines[-1] == f"# 3 files, sha256 {seal}"
    assert verify(Path("manifest.csv"), FOLDERS) == (4, [])  # with itself


def test_faults_are_named_with_what_to_do(made, capsys):
    Path("figures/a.csv").write_text("figures/b.csv")
    Path("figures/b.csv").write_text("")
    Path("data/raw/x/one.bin").unlink()
    assert cli.main(["manifest", "verify", "manifest.csv", "--folders", *FOLDERS]) == 1
    lines = capsys.readouterr().out.splitlines()
    ours, theirs = (hashlib.sha256(name.encode()).hexdigest()[:12] for name in ("figures/b.csv", NAMES[2]))
    again = "--cores 2 --force --configfile own.yaml"
    assert lines == [
        f"data/raw/x/one.bin: missing; `rm data/raw/x/one.bin && snakemake data/raw/x.json {again}`",
        f"figures/a.csv: changed, sha256 is {ours}..., was {theirs}...; `snakemake figures/a.csv {again}`",
        "figures/b.csv: extra, no job made it; `rm figures/b.csv`",
        "5 files of manifest.csv checked, 3 errors",
    ]


def refused(function, *given):
    with pytest.raises(DataError) as caught:
        function(*given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_was_changed_after_its_job_is_neither_read_nor_listed(made):
    Path("figures/a.csv").write_text("figures/b.csv")
    before = Path("manifest.csv").read_bytes()
    for function, files in ((listed, ["figures/a.csv"]), (hashes.check, [Path("figures/a.csv")])):
        assert refused(function, files) == (
            "figures/a.csv has changed since it was made; make it anew: "
            "`snakemake figures/a.csv --cores 2 --force --configfile own.yaml`"
        )
    assert Path("manifest.csv").read_bytes() == before


def test_what_makes_a_file_anew_has_the_settings_of_the_run(made, monkeypatch):
    monkeypatch.setenv(hashes.CONFIG_VARIABLE, "--config 'paths={results: r2}'")
    again = "snakemake r2/a.csv --cores 2 --force --configfile own.yaml --config 'paths={results: r2}'"
    assert hashes.remake(Path("r2/a.csv")) == again
    reused = hashes.remake(Path("results/reused/a9a/fedlin.parquet"))
    assert reused.startswith("rm results/reused/a9a/fedlin.parquet && replifed compare")


def test_a_job_refuses_what_no_job_recorded(made, monkeypatch):
    Path("figures/.hashes/a.csv").unlink()
    assert refused(hashes.check, [Path("figures/a.csv")]) == (
        "figures/a.csv has no record of its hash: an older version or someone else made it; "
        "make it anew: `snakemake figures/a.csv --cores 2 --force --configfile own.yaml`"
    )
    monkeypatch.delenv(hashes.CONFIGFILES_VARIABLE)
    hashes.check([Path("figures/a.csv")])  # given by hand


def test_what_a_job_made_anew_is_not_as_listed(made):
    Path("figures/a.csv").write_text("figures/b.csv")
    hashes.record([Path("figures/a.csv")])
    _, [fault] = verify(Path("manifest.csv"), FOLDERS)
    assert fault.startswith("figures/a.csv: made anew since the manifest was written; `snakemake all ")


def test_files_of_an_older_version_take_one_line(made):
    for name in NAMES:
        Path(name).parent.joinpath(".hashes", Path(name).name).unlink()
    error = refused(listed, NAMES)
    assert "data/raw/x/.pins.json and 2 more files: no record of their hashes" in error
    assert "`snakemake all --cores 2 --forceall --configfile own.yaml`" in error


def damaged(content):
    """What may have become of a manifest: any flip, a row less, cuts at the ends of lines, no file."""
    lines = content.splitlines(keepends=True)
    yield from (content[:k] + bytes([content[k] ^ 1]) + content[k + 1 :] for k in range(len(content)))
    yield b"".join(lines[:1] + lines[2:])
    yield from (b"".join(lines[:count]) for count in range(len(lines)))
    yield None


def test_a_manifest_that_is_not_whole_is_a_fault(made):
    manifest = Path("manifest.csv")
    for content in list(damaged(manifest.read_bytes())):
        manifest.unlink() if content is None else manifest.write_bytes(content)
        assert verify(Path("manifest.csv"), FOLDERS) == (
            3,
            [
                "manifest.csv: missing, altered, cut short, or of an older version: no file that is gone is "
                "known; `snakemake manifest.csv --cores 2 --force --configfile own.yaml`"
            ],
        )


def test_without_a_manifest_what_was_made_is_checked_and_its_lack_a_fault(made):
    Path("manifest.csv").unlink()
    Path(".hashes/manifest.csv").unlink()
    Path("figures/a.csv").write_text("figures/b.csv")
    checked, [lack, fault] = verify(Path("manifest.csv"), FOLDERS)
    assert checked == 3
    assert lack.startswith("manifest.csv: missing")
    assert fault.startswith("figures/a.csv: changed")
    with pytest.raises(DataError, match=r"manifest\.csv does not exist; it is written at the end of"):
        verify(Path("manifest.csv"))


def test_a_copy_without_hidden_folders_is_told_and_nothing_of_it_is_to_be_removed(made):
    Path("figures/b.csv").write_text("")
    for folder in (".hashes", "figures/.hashes", "data/raw/x/.hashes"):
        shutil.rmtree(folder)
    checked, [lost, unknown] = verify(Path("manifest.csv"), FOLDERS)
    assert checked == 4
    assert lost.startswith(
        "data/raw/x/.pins.json and 3 more files: no record of their hashes; copy the hidden folders .hashes"
    )
    assert lost.endswith("`snakemake all --cores 2 --forceall --configfile own.yaml`")
    assert unknown.startswith("figures/b.csv: neither listed nor recorded")
    Path("figures/a.csv").write_text("figures/b.csv")
    assert any(
        fault.startswith("figures/a.csv: changed") for fault in verify(Path("manifest.csv"), FOLDERS)[1]
    )


def test_a_flip_anywhere_in_a_record_is_named(made):
    place = Path("figures/.hashes/a.csv")
    content = place.read_bytes()
    for k in range(len(content)):
        place.write_bytes(content[:k] + bytes([content[k] ^ 1]) + content[k + 1 :])
        _, [fault] = verify(Path("manifest.csv"), FOLDERS)
        assert fault.startswith("figures/a.csv: "), k


@pytest.mark.parametrize(
    "record", ["", "x 1", f"{64 * 'a'} {5000 * '1'}", f"{64 * 'a'} \N{ARABIC-INDIC DIGIT ONE}", None]
)
def test_a_record_that_is_damaged_or_a_folder_fits_no_file(made, record):
    place = Path("figures/.hashes/a.csv")
    place.unlink()
    place.mkdir() if record is None else place.write_text(record)
    _, [fault] = verify(Path("manifest.csv"), FOLDERS)
    assert fault.startswith("figures/a.csv: changed")
    assert "figures/a.csv has changed since it was made" in refused(listed, ["figures/a.csv"])
