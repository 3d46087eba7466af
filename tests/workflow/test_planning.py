"""The real Snakefile before any job runs: its targets, what they need, and what is refused."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from copies import ROOT, Result, copy_repository, surroundings
from planned import planned
from replifed.cli import listing
from replifed.settings import checks as config
from replifed.workflow.costs import Limits
from replifed.workflow.jobs import Table, shown
from replifed.workflow.targets import asked as keys_of
from replifed.workflow.targets import groups, targets

LISTED = "(`replifed list` prints all)"
SMALL = ("--cores", "1", "--configfile", "config/small.yaml")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A copy with all papers in which nothing has run."""
    return copy_repository(tmp_path_factory.mktemp("whole"), papers=None)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """A copy with one paper in which nothing has run."""
    return copy_repository(tmp_path_factory.mktemp("fresh"))


# --- Time and memory ---

ASKED = """
include: "Snakefile"


import atexit


@atexit.register
def print_asked():
    for job in workflow.dag.needrun_jobs(exclude_finished=False):
        if not job.is_norun:
            name = os.path.relpath(job.benchmark, BENCHMARKS).removesuffix(".tsv")
            print("ASKED", name, job.resources.get("runtime"), job.resources.get("mem_mb"))
"""


def test_each_small_job_asks_for_the_time_and_memory_that_were_recorded_of_it(whole):
    (whole.folder / "Asked").write_text(ASKED)
    stated = "fedmm={experiments: {movielens: {memory_mb: 5432}}}"
    result = whole.snakemake("all", "--dry-run", "--snakefile", "Asked", *SMALL, "--config", stated)
    rows = (line.split()[1:] for line in result.text.splitlines() if line.startswith("ASKED "))
    asked = {name: (int(minutes), int(megabytes)) for name, minutes, megabytes in rows}
    assert len(asked) == len(result.jobs) > 100
    limits = Limits("small")
    recorded = [name for name, (minutes, _) in asked.items() if minutes == limits.minutes(name, otherwise=-1)]
    assert len(recorded) > 0.9 * len(asked)
    assert asked["report"][1] == limits.megabytes("report", otherwise=1)
    # What the settings state of one experiment is asked for by its partition and by the methods on it.
    stating = {name for name, (_, megabytes) in asked.items() if megabytes == 5432}
    assert {name.rpartition("/")[2] for name in stating} == {"partition", "fedmm", "parameter_aggregation"}
    assert len(stating) == 3


# --- Targets ---


def test_the_public_targets(whole):
    papers = {file.stem for file in (ROOT / "config/papers").glob("*.yaml")}
    result = whole.snakemake("--list-target-rules", "--quiet")
    found = {line for line in result.text.splitlines() if re.fullmatch(r"[a-z0-9_]+", line)}
    assert set(config.load(root=ROOT)["papers"]) == papers
    assert papers < found
    # What `all` leaves out is called after its paper.
    assert {name for name in found - papers if name.partition("_")[0] not in papers} == set(listing.TARGETS)


def test_a_dry_run_of_all_is_the_plan_and_loads_no_numerics(whole):
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
    # One paper's runs are grouped at every scale; all else is as it is planned, job by job.
    every = config.load(root=ROOT)
    (together,) = (paper for paper in every["papers"] if every[paper]["together"] is True)
    assert f"{together}: make figures and tables of runs" in result.jobs

    def single(jobs):
        grouped = re.compile(f"{together}: (run|tune|draw|write|make) ")
        return {job for job in jobs if not grouped.match(job)}

    assert single(result.jobs) == single(planned(every))


def experiments_of_giant():
    settings = config.load(root=ROOT)["cross"]["experiments"]
    return [name for name, one in settings.items() if "giant" in one["methods"]]


def closing(paper):
    """The jobs with which a paper ends that is made alone."""
    jobs = ("measure the claims", "check the errata", "write its page of the report")
    return {f"{paper}: {job}" for job in jobs}


def test_the_paper_alone_and_data_are_targets(fresh):
    jobs = fresh.snakemake("fedht", "data", "--dry-run", "--cores", "1").jobs
    of_paper = {job for job in jobs if job.startswith("fedht: ")}
    assert {"fedht: draw fig1", "fedht: draw fig6"} <= of_paper
    assert closing("fedht") <= of_paper
    assert "w8a: fetch" in jobs
    assert all(job.endswith((": fetch", ": parse and check")) for job in jobs - of_paper)


def together(table, *asked):
    """The groups of jobs of a call for these targets."""
    return groups(table, keys_of(table, asked, targets(table)))


def test_one_job_draws_all_figures_of_a_paper_whose_runs_are_jobs_of_their_own():
    every = config.load(root=ROOT)
    assert {every[paper]["together"] for paper in every["papers"]} == {"artefacts", True}
    table = Table(every)
    (drawn,) = together(table, "fedht")
    assert (drawn.paper, drawn.rule, drawn.log) == ("fedht", "artefacts_fedht", "fedht/artefacts")
    outputs = set(table.files(*drawn.keys))
    of_data = {Path(file).stem for file in set(table.files(*shown(every, "fedht"))) - outputs}
    assert of_data == {"fig4", "fig5", "partitions", "table2"}  # which wait for no run
    # What is asked for alone is made alone.
    assert not together(table, "figures/fedht/fig1.pdf")
    (two,) = together(table, "figures/fedht/fig1.pdf", "figures/fedht/fig2.csv")
    assert (two.parts, two.log) == (["fig1", "fig2"], "fedht/fig1_and_1_more")


def test_one_small_job_runs_a_method_on_all_experiments_that_have_it():
    table = Table(config.load([ROOT / "config/small.yaml"], root=ROOT))
    whole = next(
        one for one in together(table, "all") if one.log.endswith("_more/fedmm") and "fedmm/" in one.log
    )
    assert {"em_poisson", "movielens", "em_mixture"} <= set(whole.parts) and "transport_2" not in whole.parts
    # What no artefact reads is not run along, and has jobs of its own.
    tuned = "results/small/fedmm/transport_search_2/fedmm_ot.tuned.json"
    runs = [f"results/small/fedmm/{name}/fedmm.parquet" for name in whole.parts]
    (job,) = together(table, *runs, tuned)
    assert (job.keys, job.whole) == (whole.keys, True)
    # Of a group that is asked for in part that part is run.
    (some,) = together(table, *(file for file in runs if "em_poisson" not in file))
    assert "em_poisson" in "".join(whole.parts) and "em_poisson" not in "".join(some.parts)
    assert not some.whole


def test_files_need_only_their_own_jobs_and_a_method_runs_on_all_experiments_of_a_paper_together(tmp_path):
    """Of several targets at once, in a folder in which nothing has been called yet."""
    experiments = experiments_of_giant()
    targets = [
        "figures/fedht/rates.pdf",
        *(f"results/fedht/simulation1/{method}.tuned.json" for method in ("fedht", "fediterht")),
        "results/fedmm/synthetic_heterogeneous/parameter_aggregation.tuned.json",
        *(f"results/cross/{name}/giant.parquet" for name in experiments),
    ]
    result = copy_repository(tmp_path, papers=None).snakemake(*targets, "--dry-run", "--cores", "1")
    assert result.status == 0, result.text
    assert {job for job in result.jobs if job.partition(":")[0] in ("fedht", "fedmm", "cross")} == {
        "fedht: draw rates",
        *(f"fedht: run {method} on planted" for method in ("fedht", "fediterht")),
        *(f"fedht: tune {method} on simulation1" for method in ("fedht", "fediterht")),
        # A search that goes by another's waits for that.
        *(f"fedmm: tune {name} on synthetic_heterogeneous" for name in ("fedmm", "parameter_aggregation")),
        f"cross: run giant on {', '.join(experiments)}",
        *(f"cross: split the data of {name} between the clients" for name in experiments),
    }


def test_a_single_small_target_of_each_paper_needs_only_its_own_jobs(whole):
    # Nine methods of the comparison, each on all data sets at once, and so on.
    asked = {"cross/fig2": 10, "fedac/fig1": 5, "fedgradmp/fig1": 2, "fedht/rates": 3, "fedmm/remark1": 3}
    asked |= {"fedplt/fig3": 2, "qshed/bit_allocation": 2}
    assert {name.partition("/")[0] for name in asked} == set(config.load(root=ROOT)["papers"])
    targets = (f"figures/small/{name}.csv" for name in asked)
    result = whole.snakemake(*targets, "--dry-run", *SMALL)
    assert result.status == 0, result.text
    for name, jobs in asked.items():
        own = {job for job in result.jobs if job.startswith(name.partition("/")[0]) and "split" not in job}
        assert len(own) == jobs, own


WRONG = [
    (["all", "--config", "papers=[fedth]"], "papers: unknown paper 'fedth'; did you mean 'fedht'?"),
    (
        ["all", "--config", "fedht={experiments: {mnist: {batch: 0}}}"],
        "fedht.experiments.mnist.batch: 0 is not allowed; expected an integer of at least 1 "
        "(samples of a mini-batch); correct what follows --config",
    ),
    (["all", "--configfile", "twice.yaml"], "twice.yaml, line 2: the key 'scale' stands twice; "),
    (["figures/fedht/fig9.pdf"], "unknown artefact of fedht 'fig9'; did you mean 'fig6'? (known: bias, "),
]


def test_what_was_made_together_or_alone_is_not_made_anew(tmp_path):
    copy = copy_repository(tmp_path, papers=("fedplt",))
    small = (*SMALL, "--config", "fedplt={only: [fig3, table3]}")
    target = "figures/small/fedplt/fig3.pdf"
    alone = copy.snakemake(target, *small)
    epochs = "fedplt: run fedplt on epochs, epochs_mean, epochs_mean_searched, epochs_classification"
    assert alone.jobs == {epochs, "fedplt: draw fig3"}, alone.text
    made = copy.snakemake("fedplt", *small)
    assert made.status == 0, made.text
    readings = ("", "_mean", "_classification")
    each = [f"{name}{of}" for name in ("participation", "epochs") for of in readings]
    each.insert(each.index("epochs_mean") + 1, "epochs_mean_searched")
    run = f"fedplt: run fedplt on {', '.join(each)}"
    assert made.jobs == {run, "fedplt: make figures and tables of runs"} | closing("fedplt")
    assert not copy.snakemake("fedplt", "--dry-run", *small).jobs
    single = (target, "--dry-run", *small)
    assert not copy.snakemake(*single).jobs
    with copy.edited("src/replifed/papers/fedplt/figures.py"):
        assert copy.snakemake(*single).jobs == {"fedplt: draw fig3"}


def test_the_tiny_scale_makes_a_few_artefacts_elsewhere():
    tiny = Table(config.load([ROOT / "config/tiny.yaml"], root=ROOT))
    files = [file for paper in tiny.papers for file in tiny.files(*shown(tiny.config, paper))]
    made = {file.rpartition(".")[0] for file in files}
    assert {file for file in made if "/fedht/" in file} == {
        f"figures/tiny/fedht/{n}" for n in ("fig1", "rates")
    }
    assert len(made) < 10
    assert all(file.startswith("figures/tiny/") for file in files)
    assert tiny.files("report:")[0] == "results/tiny/report.html"


def test_the_tiny_scale_cuts_down_all_experiments_that_it_runs():
    """But for one that takes no time. Two of the paper's size once took a quarter of all tests' time."""
    tiny, whole = (config.load(files, root=ROOT) for files in ([ROOT / "config/tiny.yaml"], []))
    ran = (re.fullmatch(r"(\w+): run \w+ on (\w+)", job) for job in planned(tiny))
    names = {job.groups() for job in ran if job}
    assert len(names) > 10
    uncut = {
        name for paper, name in names if tiny[paper]["experiments"][name] == whole[paper]["experiments"][name]
    }
    assert uncut == {"remark1"}


# --- Refusals: one at each place where a call is checked; their wordings are tested without Snakemake ---


def refusal(result):
    """The one line of a call that was refused, after Snakemake's own on the profile."""
    assert result.status == 1
    note, line = result.text.splitlines()
    assert note.startswith("Using workflow specific profile")
    return line


@pytest.mark.parametrize(("words", "line"), WRONG, ids=["papers", "settings", "options", "targets"])
def test_a_wrong_word_stops_before_any_job_with_one_line(fresh, words, line):
    (fresh.folder / "twice.yaml").write_text("scale: small\nscale: tiny\n")
    result = fresh.snakemake("--cores", "1", *words)
    assert refusal(result).startswith(f"replifed: error: {line}")


def test_a_wrong_target_stops_within_four_seconds(fresh):
    # Of a processor, since other jobs may hold it up; of a new process.
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = fresh.snakemake("--cores", "1", "fedhd", python=sys.executable)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert refusal(result) == "replifed: error: unknown target 'fedhd'; did you mean 'fedht'? " + LISTED
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 4


def test_a_method_whose_file_is_gone_is_named(fresh):
    file = fresh.folder / "src/replifed/algorithms/fedavg.py"
    text = file.read_text()
    file.unlink()
    try:
        result = fresh.snakemake("results/fedht/mnist/fedavg.parquet", "--dry-run", "--cores", "1")
    finally:
        file.write_text(text)
    assert result.status == 1
    assert "unknown method 'fedavg'" in result.text
