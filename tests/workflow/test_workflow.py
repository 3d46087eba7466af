"""The real Snakefile: its targets, its refusals, and what reruns what."""

from __future__ import annotations

import contextlib
import importlib
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from copies import ROOT, Copy, Result, copy_repository, surroundings
from replifed import settings as config
from replifed.algorithms import registry
from replifed.cli import listing
from replifed.parts import part
from replifed.settings.cuts import groups
from replifed.store import provenance

METHODS = ("fedht", "fediterht", "distributed_iht", "fedavg")
TUNED = ("simulation1", "simulation2", "e2006", "rcv1", "mnist")
NOT_RUN = ("fedavg", "simulation2")
RULES = sorted((ROOT / "workflow/rules").glob("*.smk"))


def jobs_of(step, methods, names):
    there = ((method, name) for method in methods for name in names if (method, name) != NOT_RUN)
    return {f"fedht: {step} {method} on {name}" for method, name in there}


def runs(*methods, on=TUNED):
    return jobs_of("run", methods, on)


def tunings(*methods, on=TUNED):
    return jobs_of("tune", methods, on)


def drawn(*names):
    return {f"fedht: draw {name}" for name in names}


ENDING = {"write the report", "list what was made, by hash"}
CLOSING = {"fedht: measure the claims", "collect the claims of all papers"} | ENDING


# --- Shape ---


# Experiments whose solution is drawn, and whose steps follow from the theorems.
PLANTED = ["planted", "biased", "dissimilar"]


def test_the_public_targets(fresh):
    result = fresh.snakemake("--list-target-rules", "--quiet")
    found = {line for line in result.text.splitlines() if re.fullmatch(r"[a-z0-9_]+", line)}
    assert found == {"fedht", *listing.TARGETS}


def test_every_paper_is_a_target_and_part_of_all(whole):
    papers = {file.stem for file in (ROOT / "config/papers").glob("*.yaml")}
    assert set(config.load(root=ROOT)["papers"]) == papers
    found = set(whole.snakemake("--list-target-rules", "--quiet").text.splitlines())
    assert papers <= found


def test_a_dry_run_of_all_is_complete_and_loads_no_numerics(whole):
    # `all` is the default target. Its time is measured by benchmarks/workflow_startup.py.
    words = [sys.executable, "-X", "importtime", "-m", "snakemake", "--dry-run", "--cores", "1"]
    done = subprocess.run(
        words,
        cwd=whole.folder,
        env=surroundings(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    result = Result(done.returncode, done.stdout)
    assert result.status == 0, result.text
    loaded = {line.rpartition("|")[2].strip() for line in result.text.splitlines() if "|" in line}
    assert "replifed.settings" in loaded
    assert not loaded & {"scipy", "pandas", "matplotlib", "sklearn", "numba", "pyarrow"}
    everything = config.load(root=ROOT)
    for paper in everything["papers"]:
        for name, artefact in config.artefacts(everything[paper]).items():
            word = f"draw {name}" if artefact["kind"] == "figure" else f"write {name}"
            if everything[paper]["together"]:
                word = "make all figures and tables"
            assert f"{paper}: {word}" in result.jobs
    assert (
        runs(*METHODS) | tunings(*METHODS) | runs("fedht", "fediterht", on=["planted"]) | CLOSING
        <= result.jobs
    )
    assert not runs("fedavg", on=["planted"]) & result.jobs


def test_a_single_artefact_needs_only_its_own_jobs(fresh):
    result = fresh.snakemake("figures/fedht/rates.pdf", "--dry-run", "--cores", "1")
    assert result.jobs == runs("fedht", "fediterht", on=["planted"]) | drawn("rates")


def test_several_targets_at_once_in_a_fresh_folder(tmp_path):
    targets = (f"results/fedht/simulation1/{method}.tuned.json" for method in ("fedht", "fediterht"))
    asked = copy_repository(tmp_path).snakemake(*targets, "--dry-run", "--cores", "1")
    assert asked.status == 0, asked.text
    assert asked.jobs == tunings("fedht", "fediterht", on=["simulation1"])


def test_a_search_that_goes_by_anothers_waits_for_that(whole):
    name = "synthetic_heterogeneous"
    target = f"results/fedmm/{name}/parameter_aggregation.tuned.json"
    jobs = whole.snakemake(target, "--dry-run", "--cores", "1").jobs
    assert jobs == {f"fedmm: tune {method} on {name}" for method in ("fedmm", "parameter_aggregation")}


def test_the_paper_alone_and_data_are_targets(fresh):
    jobs = fresh.snakemake("fedht", "--dry-run", "--cores", "1").jobs
    assert not jobs & CLOSING
    assert drawn("fig1", "fig6") <= jobs
    jobs = fresh.snakemake("data", "--dry-run", "--cores", "1").jobs
    assert "w8a: fetch" in jobs
    assert all(job.endswith((": fetch", ": parse and check")) for job in jobs)


def test_a_method_runs_on_all_experiments_of_a_paper_together(whole):
    settings = config.load(root=ROOT)["cross"]["experiments"]
    experiments = [name for name, one in settings.items() if "giant" in one["methods"]]
    targets = (f"results/cross/{name}/giant.parquet" for name in experiments)
    result = whole.snakemake(*targets, "--dry-run", "--cores", "1")
    assert {job for job in result.jobs if job.startswith("cross")} == {
        f"cross: run giant on {', '.join(experiments)}",
        *(f"cross: split the data of {name} between the clients" for name in experiments),
    }


def test_one_small_job_runs_a_method_on_all_experiments_that_have_it(whole):
    small = "config/small.yaml"
    paper = config.load([ROOT / small], root=ROOT)["fedmm"]
    names = groups(paper)["fedmm"]
    assert {"em_poisson", "movielens", "em_mixture"} <= set(names) and "transport_2" not in names
    # What no artefact reads is not run along, and has jobs of its own.
    tuned = "fedmm/transport_search_2/fedmm_ot.tuned.json"
    targets = [
        f"results/small/{file}" for file in (*(f"fedmm/{name}/fedmm.parquet" for name in names), tuned)
    ]
    result = whole.snakemake(*targets, "--dry-run", "--cores", "1", "--configfile", small)
    assert {job for job in result.jobs if "fedmm: " in job and "split" not in job} == {
        f"fedmm: run fedmm on {', '.join(names)}",
        "fedmm: tune fedmm_ot on transport_search_2",
    }
    # A part of a group is run singly.
    part = [name for name in names if name != "em_poisson"]
    targets = [f"results/small/fedmm/{name}/fedmm.parquet" for name in part]
    result = whole.snakemake(*targets, "--dry-run", "--cores", "1", "--configfile", small)
    assert {job for job in result.jobs if " run " in job} == {f"fedmm: run fedmm on {name}" for name in part}


def test_a_single_small_target_of_each_paper_needs_only_its_own_jobs(whole):
    asked = {
        # Eight methods, each on all data sets at once; FedLin, whose group has more of them, is
        # searched and run on these four singly.
        "cross/fig2": 17,
        "fedac/fig1": 5,
        "fedgradmp/fig1": 2,
        "fedht/rates": 3,
        "fedmm/remark1": 3,
        "fedplt/fig3": 3,  # with the printed loss, and with the fitted one
        "qshed/bit_allocation": 2,
    }
    assert {name.partition("/")[0] for name in asked} == set(config.load(root=ROOT)["papers"])
    targets = (f"figures/small/{name}.csv" for name in asked)
    result = whole.snakemake(*targets, "--dry-run", "--cores", "1", "--configfile", "config/small.yaml")
    assert result.status == 0, result.text
    for name, jobs in asked.items():
        own = {job for job in result.jobs if job.startswith(name.partition("/")[0]) and "split" not in job}
        assert len(own) == jobs, own


def test_what_one_job_has_made_is_not_made_anew_for_a_single_target(tmp_path):
    copy = copy_repository(tmp_path, papers=("fedplt",))
    small = ("--cores", "1", "--configfile", "config/small.yaml", "--config", "fedplt={only: [fig3, table3]}")
    made = copy.snakemake("fedplt", *small)
    assert made.status == 0, made.text
    run = "fedplt: run fedplt on participation, participation_mean, epochs, epochs_mean"
    assert made.jobs == {run, "fedplt: make all figures and tables"}
    single = ("figures/small/fedplt/fig3.pdf", "--dry-run", *small)
    assert not copy.snakemake(*single).jobs
    with copy.edited("src/replifed/papers/fedplt/figures.py"):
        assert copy.snakemake(*single).jobs == {"fedplt: draw fig3"}


def test_the_tiny_scale_makes_a_few_artefacts_elsewhere(fresh):
    result = fresh.snakemake("all", "--dry-run", "--cores", "1", "--configfile", "config/tiny.yaml")
    made = {job for job in result.jobs if "draw" in job or "write table" in job}
    assert {job for job in made if job.startswith("fedht")} == drawn("fig1", "rates")
    assert len(made) < 10
    assert "figures/tiny/fedht/fig1.pdf" in result.text
    assert "results/tiny/report.html" in result.text


def test_lint_finds_nothing(fresh):
    result = fresh.snakemake("--lint")
    assert result.status == 0, result.text
    assert "Lints for" not in result.text


def test_snakefmt_changes_nothing():
    words = [sys.executable, "-m", "snakefmt", "--check", "Snakefile", "workflow"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("file", RULES, ids=lambda file: file.stem)
def test_every_rule_that_computes_states_what_it_uses(file):
    for body in re.split(r"^rule ", file.read_text(), flags=re.MULTILINE)[1:]:
        name = body.partition(":")[0]
        assert not re.search(r"^    (run|script|notebook):", body, flags=re.MULTILINE), name
        if "    shell:" not in body:
            continue
        for directive in ("log:", "conda:", "resources:", "mem_mb=", "message:"):
            assert f"    {directive}" in body, f"{name} lacks {directive}"
        assert "    benchmark:" in body or name in ("help", "verify"), f"{name} lacks benchmark:"
        assert "python -m replifed" in body, name


@pytest.mark.parametrize("name", ["default", "slurm"])
def test_the_profiles_resume_after_a_kill_and_show_logs(name):
    profile = yaml.safe_load((ROOT / f"profiles/{name}/config.yaml").read_text())
    assert profile["rerun-incomplete"] is True
    assert profile["show-failed-logs"] is True
    assert profile["keep-going"] is False


def test_the_environments_name_the_same_packages():
    project = (ROOT / "pyproject.toml").read_text().partition("[project.optional")[0]
    wanted = dict(re.findall(r'^  "([a-z0-9-]+)([^"]*)",', project, flags=re.MULTILINE))
    wanted.pop("snakemake")  # runs outside the jobs' environment
    listed = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    found = dict(line.split(" ") for line in listed if not line.startswith("python "))
    found["matplotlib"] = found.pop("matplotlib-base")
    assert found == wanted
    lock = (ROOT / "requirements.lock").read_text()
    assert not {name for name in wanted if not re.search(rf"^{name}==.* \\$", lock, flags=re.MULTILINE)}


# --- Refusals ---


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--config", "polcy=real"], 'polcy: unknown key with value "real"'),
        (["--config", "papers=[fedth]"], "papers: unknown paper 'fedth'; did you mean 'fedht'?"),
        (
            ["--config", "fedht={experiments: {mnist: {bach: 50}}}"],
            "fedht.experiments.mnist.bach: unknown key with value 50; did you mean 'batch'?",
        ),
        (
            ["--config", "fedht={experiments: {mnist: {batch: 0}}}"],
            "fedht.experiments.mnist.batch: 0 is not allowed; expected an integer of at least 1 "
            "(samples of a mini-batch); edit --config",
        ),
    ],
)
def test_a_wrong_key_stops_before_any_job_with_one_line(fresh, words, line):
    result = fresh.snakemake("all", "--cores", "1", *words)
    assert result.status == 1
    assert refusal(result).startswith(f"replifed: error: {line}")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["all", "--configfile", "missing.yaml"], "missing.yaml does not exist; run from"),
        (
            ["all", "--configfile", "twice.yaml"],
            "twice.yaml, line 2: the key 'scale' stands twice; ",
        ),
        (["--config", "papers=[fedht]", "all"], "--config takes all words up to the next option"),
        (["figures/fedht/fig9.pdf"], "unknown artefact of fedht 'fig9'; did you mean 'fig6'? (known: bias, "),
        (["fedhd"], "unknown target 'fedhd'; did you mean 'fedht'?"),
        (["results/fedht/mnist/fedavgg.parquet"], "results/fedht/mnist/fedavgg.parquet: unknown method of"),
    ],
)
def test_a_wrong_word_stops_with_one_line_within_four_seconds(fresh, words, line):
    (fresh.folder / "twice.yaml").write_text("scale: small\nscale: tiny\n")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = fresh.snakemake("--cores", "1", *words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert refusal(result).startswith(f"replifed: error: {line}")
    # Of a processor, since other jobs may hold it up.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 4


def refusal(result):
    """The one line of a call that was refused, after Snakemake's own on the profile."""
    assert result.status == 1
    note, line = result.text.splitlines()
    assert note.startswith("Using workflow specific profile")
    return line


def test_a_partition_of_simulated_data_is_refused(fresh):
    result = fresh.snakemake("results/fedht/simulation1/partition.npz", "--dry-run", "--cores", "1")
    assert result.status == 1
    assert "simulation1 of fedht has no section `partition`" in result.text


def test_a_missing_source_file_is_named(fresh):
    file = fresh.folder / "src/replifed/algorithms/fedavg.py"
    text = file.read_text()
    file.unlink()
    try:
        result = fresh.snakemake("all", "--dry-run", "--cores", "1")
    finally:
        file.write_text(text)
    assert result.status == 1
    assert "no module replifed.algorithms.fedavg" in result.text


# --- Running ---


def test_the_last_line_counts_data_sets_that_are_not_original(built):
    text = (built.folder / "first_run.txt").read_text()
    last = text.strip().splitlines()[-1]
    assert last.startswith(
        "2 of 3 data sets are not original: e2006_train (surrogate), rcv1_binary (surrogate)"
    )
    assert last.endswith("report: results/report.html")


def test_memory_is_capped_below_what_the_machine_has(built):
    import os

    text = (built.folder / "first_run.txt").read_text()
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6
    cap = int(re.search(r"Provided resources: .*mem_mb\D+(\d+)", text).group(1))
    assert 0.79 * total < cap < 0.81 * total


def test_a_given_limit_of_memory_wins(fresh):
    result = fresh.snakemake("data/raw/a9a.json", "--cores", "1", "--resources", "mem_mb=1234")
    assert re.search(r"Provided resources: .*\b1234\b", result.text), result.text


def test_every_job_left_a_log_and_a_benchmark(built):
    for name in (
        "fedht/mnist/fedht",
        "fedht/mnist/partition",
        "fedht/fig1",
        "fedht/claims",
        "data/mnist.fetch",
    ):
        assert (built.folder / f"logs/paper/{name}.log").is_file()
        assert (built.folder / f"results/benchmarks/{name}.tsv").is_file()


def test_the_manifest_lists_every_file_of_results_figures_and_data(built):
    lines = (built.folder / "results/manifest.csv").read_text().splitlines()
    names = {
        file.relative_to(built.folder).as_posix()
        for folder in ("results", "figures", "data")
        for file in (built.folder / folder).rglob("*")
        if file.is_file()
    }
    # The date differs from run to run. Another test fetches a9a.
    left_out = re.compile(r"/\.|/benchmarks/|results/manifest\.csv|report_run\.js|data/raw/a9a\.json")
    listed = {line.split(",")[2] for line in lines[1:-1]}
    assert listed == {name for name in names if not left_out.search(name)}
    assert {"results/fedht/mnist/partition.npz", "results/fedht/mnist/fedht.tuned.json"} <= names


def test_a_second_all_does_nothing(built):
    result = built.snakemake("all", "--cores", "2")
    assert result.status == 0
    assert not result.jobs
    assert "Nothing to be done" in result.text


def test_help_lists_the_targets_each_time(built):
    for _ in range(2):
        text = built.snakemake("help", "--cores", "1").text
        assert "figures/fedht/table2.md" in text
        assert "table1 is not computed" in text


def test_a_failing_job_shows_its_error_and_how_to_go_on(built):
    words = ("data/raw/w8a.json", "--cores", "1", "--config", "data={policy: real}")
    result = built.snakemake(*words, env={"STUB_FAILS": "1"})
    assert result.status == 1
    assert result.text.count("replifed: error: no such file anywhere") == 1
    assert "failed: fetch, which makes data/raw/w8a.json; its log: logs/paper/data/" in result.text
    assert "Error in rule" not in result.text and "CalledProcessError" not in result.text
    assert "snakemake --unlock" in result.last_line


def test_the_mirror_reaches_the_jobs_but_reruns_nothing(built, tmp_path):
    mirror = str(tmp_path / "it's a mirror")
    Path(mirror).mkdir()
    words = ("--config", f'data={{mirror: "{mirror}"}}')
    assert built.planned(*words) == set()
    result = built.snakemake("data/raw/a9a.json", "--cores", "1", *words)
    assert f"mirror is {mirror}" in result.text
    Path(mirror).rmdir()
    missing = built.snakemake("data/raw/w8a.json", "--cores", "1", *words)
    assert missing.status == 1 and f"the mirror folder {mirror} does not exist" in missing.text
    assert "w8a: fetch" not in missing.jobs


# --- What reruns what ---


def test_touching_everything_reruns_nothing(built):
    for file in built.folder.rglob("*"):
        if file.is_file() and ".snakemake" not in file.parts:
            file.touch()
    assert built.planned() == set()


def test_a_copy_elsewhere_with_new_times_reruns_nothing(built, tmp_path):
    shutil.copytree(built.folder, tmp_path / "moved", copy_function=shutil.copyfile)
    assert Copy(tmp_path / "moved").planned() == set()


def test_another_scale_runs_everything_but_the_data(built):
    jobs = built.planned("--configfile", "config/small.yaml")
    paper = config.load([ROOT / "config/small.yaml"], root=ROOT)["fedht"]
    together = groups(paper)
    assert set(together) == set(METHODS)
    assert {name for names in together.values() for name in names} == {*TUNED, "mnist_classes", *PLANTED}
    for method, names in together.items():
        assert runs(method, on=[", ".join(names)]) <= jobs
    assert "fedht: make all figures and tables" in jobs
    assert not {job for job in jobs if "draw" in job or "write table" in job}
    assert not {job for job in jobs if job.endswith((": fetch", ": parse and check"))}


FIGURES = (
    *("fig1", "fig2", "fig3", "fig3_full_batch", "fig4", "fig5", "fig6", "fig6_classes"),
    *("rates", "bias", "tuning", "partitions"),
)
READERS_OF_ALL_METHODS = drawn("fig3", "fig3_full_batch", "fig6")

# source files, and the jobs that an edit of them reruns
EDITS = {
    "method": (
        ["algorithms/fedavg.py"],
        runs("fedavg") | tunings("fedavg") | READERS_OF_ALL_METHODS | drawn("tuning") | CLOSING,
    ),
    "method that others build on": (
        ["algorithms/fedht.py"],
        runs("fedht", "distributed_iht")
        | tunings("fedht", "distributed_iht")
        | runs("fedht", on=PLANTED)
        | READERS_OF_ALL_METHODS
        | drawn("fig1", "fig2", "tuning", "rates", "bias")
        | {"fedht: check the errata"}
        | CLOSING,
    ),
    "figures and claims": (
        ["papers/fedht/figures/__init__.py", "papers/fedht/tables.py", "papers/fedht/claims.py"],
        drawn(*FIGURES) | {"fedht: write table2"} | CLOSING,
    ),
    "report": (["report/page.py"], ENDING),
    "command line and registry": (["cli/__init__.py", "cli/claims.py", "algorithms/registry.py"], set()),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_reruns_exactly_what_depends_on_it(built, name):
    files, expected = EDITS[name]
    with contextlib.ExitStack() as edits:
        for file in files:
            edits.enter_context(built.edited(f"src/replifed/{file}"))
        assert built.planned() == expected


@pytest.mark.parametrize("file", ["operators/hard_threshold.py", "problems/dense.py", "engine/simulate.py"])
def test_an_edit_of_shared_mathematics_reruns_the_methods_but_no_data(built, file):
    with built.edited(f"src/replifed/{file}"):
        jobs = built.planned()
    assert runs(*METHODS[:3]) | tunings(*METHODS[:3]) <= jobs
    assert not {job for job in jobs if job.endswith((": fetch", ": parse and check")) or "split" in job}


# settings on the command line, and the jobs that they rerun
SETTINGS = {
    "rounds, drawing, list of methods": (
        "fedht={experiments: {mnist: {rounds: 7}, planted: {methods: [fediterht, fedht]}}, "
        "artefacts: {fig4: {settings: {rows: 7}}}}",
        runs(*METHODS, on=["mnist"]) | drawn("fig4", "fig6") | CLOSING,
    ),
    "step grid": (
        "fedht={experiments: {mnist: {tuning: {steps: [1, 2]}}}}",
        runs(*METHODS, on=["mnist"]) | tunings(*METHODS, on=["mnist"]) | drawn("fig6", "tuning") | CLOSING,
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_reruns_exactly_what_uses_it(built, name):
    setting, expected = SETTINGS[name]
    assert built.planned("--config", setting) == expected


def test_another_policy_fetches_again(built):
    jobs = built.planned("--config", "data={policy: real}")
    assert {"mnist: fetch", "rcv1_binary: fetch", "e2006_train: fetch"} <= jobs
    assert not runs("fedht", on=["simulation1"]) & jobs


# --- Dependencies of the real code ---


def test_all_artefacts_in_one_job_depend_on_what_each_depends_on():
    single, joint = (
        provenance.sources(f"replifed.papers.jobs:{step}", ROOT / "src") for step in ("artefact", "artefacts")
    )
    assert joint == single


@pytest.mark.parametrize("paper", ["fedht", "qshed"])
@pytest.mark.parametrize("step", ["run", "tune", "artefact", "measure_claims"])
def test_no_job_depends_on_methods_that_it_does_not_run(step, paper):
    files = {
        file.relative_to(ROOT / "src").with_suffix("").as_posix().replace("/", ".")
        for module in (
            f"replifed.papers.jobs:{step}",
            f"replifed.papers.{paper}.experiments",
            "replifed.engine.simulate",
        )
        for file in provenance.sources(module, ROOT / "src")
    }
    assert not files & {path.partition(":")[0] for path in registry.METHODS.values()}


def test_a_partition_depends_on_no_method_problem_or_drawing():
    folders = {file.parent.name for file in provenance.sources("replifed.partition.build", ROOT / "src")}
    assert "partition" in folders
    assert not folders & {"algorithms", "problems", "operators", "papers", "figures"}


@pytest.mark.parametrize("paper", config.load(root=ROOT)["papers"])
def test_figures_and_tables_are_those_of_the_configuration(paper):
    artefacts = config.load(root=ROOT)[paper]["artefacts"]
    for kind in ("figure", "table"):
        module = importlib.import_module(part(paper, f"{kind}s"))
        names = {name for name, artefact in artefacts.items() if artefact["kind"] == kind}
        assert set(getattr(module, f"{kind}s".upper())) == names
