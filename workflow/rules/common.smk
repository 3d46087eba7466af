"""Functions that the rules share. Which settings a job depends on is decided in `replifed.settings`."""

import atexit
import functools
import hashlib
import os
import shlex
import sys
from pathlib import Path

from snakemake.cli import parse_args
from snakemake.exceptions import WorkflowError
from snakemake.shell import shell

# This file's own checkout provides the library, whatever else may be installed.
REPOSITORY = Path(
    str(workflow.current_basedir.get_path_or_uri(secret_free=True))
).parent.parent
sys.path.insert(0, str(REPOSITORY.joinpath("src")))

from replifed import hashes, provenance, settings
from replifed.algorithms.registry import METHODS
from replifed.atomic import write_text
from replifed.data.catalogue import CATALOGUE as DATASETS
from replifed.data.streams import file_sha256
from replifed.errors import ReplifedError

# Relative to the working folder, like every other path of the workflow.
SOURCE_ROOT = os.path.relpath(REPOSITORY.joinpath("src"))
# It only says in which module a method is, and that module is a source by itself: a method more reruns nothing.
REGISTRY = Path(SOURCE_ROOT, "replifed/algorithms/registry.py")
TABLE_SUFFIXES = ("csv", "md", "tex")
FIGURE_SUFFIXES = ("csv", "pdf", "png")


# --- Configuration ---


def stop(error):
    """Stop while the workflow is read, with the message alone and no traceback."""
    sys.exit("\n".join(f"replifed: error: {line}" for line in str(error).splitlines()))


def refuse(text):
    """Refuse a target."""
    raise WorkflowError(text)


def listed_papers():
    try:
        return settings.paper_names(config, settings.PAPER_FOLDER)
    except ReplifedError as error:
        stop(error)


def check_config():
    """Replace the merged configuration by the checked one, with defaults."""
    given = settings.retyped(workflow.config_settings.config)
    papers = [settings.PAPER_FOLDER / f"{name}.yaml" for name in config["papers"]]
    overrides = [Path(os.path.relpath(file)) for file in workflow.overwrite_configfiles]
    try:
        checked = settings.validate(
            settings.deep_merge(config, given),
            [settings.MAIN_FILE, *papers, *overrides, given],
        )
    except ReplifedError as error:
        stop(error)
    config.clear()
    config.update(checked)


def experiment_names():
    return sorted(
        {name for paper in config["papers"] for name in config[paper]["experiments"]}
    )


def one_of(names):
    return "|".join(sorted(names))


# --- Machine ---


def prepare_shell():
    """Give every job the same surroundings: this checkout's sources and one thread.

    The mirror's folder travels this way too, and not as a parameter: where a file was copied from
    changes no result, so it must rerun nothing.
    """
    exports = {
        "PYTHONPATH": str(REPOSITORY.joinpath("src")),
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    if config["data"]["mirror"]:
        exports["REPLIFED_MIRROR"] = os.path.abspath(config["data"]["mirror"])
    exports[hashes.CONFIGFILES_VARIABLE] = configfile_flags()
    words = [f"{name}={shlex.quote(value)}" for name, value in exports.items()]
    if not workflow.deployment_settings.deployment_method:
        # Snakemake may have been called by its path, with another Python first in PATH.
        words.append(f"PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH")
    lines = f"set -euo pipefail; export {' '.join(words)}; "
    shell.prefix(lines.replace("{", "{{").replace("}", "}}"))


def cap_memory():
    """Let jobs of this machine declare at most 80 % of its memory together; `--resources mem_mb=N` wins."""
    given = {"mem", "mem_mb", "mem_mib"}.intersection(workflow.global_resources)
    if workflow.local_exec and workflow.is_main_process and not given:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        workflow.register_resource("mem_mb", int(0.8 * total / 1e6))


def free_job_rate():
    """Lift the default limit of 100 job starts a second; a limit that the user gives stays.

    For its sake Snakemake looks for ready jobs every second, and once more for each job that has ended: after
    some hundred jobs that alone keeps a core busy.
    """
    limit = workflow.scheduling_settings.max_jobs_per_timespan
    if limit is not None and (limit.max_jobs, limit.timespan) == (100, 1):
        workflow.scheduler.job_rate_limiter = None


def memory(wildcards):
    """Return the megabytes that a job on an experiment declares."""
    return experiment_of(wildcards).get("memory_mb", 2000)


# --- Files ---


def in_data(path):
    return f"{config['paths']['data']}/{path}"


def in_results(path):
    return f"{config['paths']['results']}/{path}"


def in_figures(path):
    return f"{config['paths']['figures']}/{path}"


def in_logs(path):
    return f"logs/{config['scale']}/{path}.log"


def in_benchmarks(path):
    return in_results(f"benchmarks/{path}.tsv")


def parsed(dataset):
    return in_data(f"parsed/{dataset}.npz")


def files_of(paper, key):
    """Return the files that a key such as ``run:mnist/fedht`` stands for."""
    kind, _, name = key.partition(":")
    if kind == "data":
        return [parsed(config[paper]["experiments"][name]["dataset"])]
    patterns = {
        "run": ["{}/{}.parquet"],
        "tuned": ["{}/{}.tuned.json"],
        "partition": ["{}/{}/partition.npz", "{}/{}/partition.csv"],
    }[kind]
    return [in_results(pattern.format(paper, name)) for pattern in patterns]


def keyed_flag(paper, keys):
    """Return ``--inputs KEY=FILE ...``, or nothing where there are no keys."""
    pairs = [f"{key}={file}" for key in keys for file in files_of(paper, key)]
    return " ".join(["--inputs", *map(shlex.quote, pairs)]) if pairs else ""


def keyed_files(files):
    """Return ``KEY=FILE ...``."""
    return " ".join(shlex.quote(f"{key}={file}") for key, file in files.items())


@functools.cache
def module_sources(module):
    return provenance.sources(module, SOURCE_ROOT)


@functools.cache
def file_hash(file):
    return file_sha256(Path(file))


@functools.cache
def sources_of(*modules):
    """Return one small file that stands for the source files of modules; a missing source stops the workflow.

    Its folder is the hash of what they hold, so that an edit gives a job another input. Dozens of sources as
    inputs of hundreds of jobs would keep Snakemake busy with nothing but asking for their times and sizes.
    Each has a folder of its own: Snakemake lists a folder once, and would miss what is added later.
    """
    try:
        found = {file for module in modules for file in module_sources(module)}
    except ReplifedError as error:
        refuse(str(error))
    lines = [
        f"{file_hash(file)}  {Path(file).relative_to(SOURCE_ROOT)}"
        for file in sorted(map(str, found - {REGISTRY}))
    ]
    text = "\n".join(lines) + "\n"
    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    stamp = Path(".snakemake/source_stamps", digest, "files")
    if not stamp.is_file():
        stamp.parent.mkdir(parents=True, exist_ok=True)
        write_text(stamp, text)
    # It has no time of its own: only its name may rerun a job.
    os.utime(stamp, (0, 0))
    return [str(stamp)]


# --- Experiments ---


def experiment_of(wildcards):
    experiment = config[wildcards.paper]["experiments"].get(wildcards.experiment)
    if experiment is None:
        refuse(f"paper {wildcards.paper} has no experiment {wildcards.experiment}")
    return experiment


def step_settings(step):
    """Return the function that gives a rule its settings as JSON."""

    def of(wildcards):
        experiment_of(wildcards)
        return provenance.canonical_json(
            settings.settings_for(step, config[wildcards.paper], wildcards.experiment)
        )

    return of


def dataset_files(wildcards):
    """Return the files of an experiment's problem: parsed data and partition, where it has them."""
    experiment = experiment_of(wildcards)
    files = {}
    if "dataset" in experiment:
        files["data"] = parsed(experiment["dataset"])
    if "partition" in experiment:
        files["partition"] = in_results(
            f"{wildcards.paper}/{wildcards.experiment}/partition.npz"
        )
    return files


def partition_inputs(wildcards):
    experiment = experiment_of(wildcards)
    if "partition" not in experiment:
        refuse(
            f"experiment {wildcards.experiment} of {wildcards.paper} has no section `partition` to make one from"
        )
    return {
        "data": parsed(experiment["dataset"]),
        "source": sources_of("replifed.partition.commands"),
    }


def job_sources(step, paper, method):
    """Return the sources of a step (MODULE:FUNCTION), of the paper's experiments, and of the job's one method."""
    return sources_of(
        f"replifed.papers.{step}",
        f"replifed.papers.{paper}.experiments",
        METHODS[method].partition(":")[0],
    )


def tune_inputs(wildcards):
    source = job_sources("jobs:tune", wildcards.paper, wildcards.method)
    return {**dataset_files(wildcards), "source": source}


def run_inputs(wildcards):
    source = job_sources("jobs:run", wildcards.paper, wildcards.method)
    return {**run_files(wildcards), "source": source}


def run_files(wildcards):
    """Return the files that a run reads: those of its problem and its method's tuned step, if any."""
    files = dataset_files(wildcards)
    if "tuning" in experiment_of(wildcards):
        files["tuned"] = in_results(
            "{paper}/{experiment}/{method}.tuned.json".format(**wildcards)
        )
    return files


def flags(files):
    """Return ``--name FILE ...``."""
    return " ".join(f"--{name} {shlex.quote(file)}" for name, file in files.items())


# --- Several experiments in one job ---


@functools.cache
def asked_files():
    """Return the files that the command line asks for, or None where it names a rule, or nothing.

    Snakemake knows its targets only once all rules are read. A job on another machine is asked for by its rule.
    """
    folders = in_figures(""), in_results("")
    if "--target-jobs" not in sys.argv and not any(
        word.startswith(folders) for word in sys.argv
    ):
        return None
    asked = parse_args(sys.argv[1:])[1]
    if asked.target_jobs:
        single = {"run_method", "tune", "figure", "table"}
        return (
            frozenset()
            if {job.rulename for job in asked.target_jobs} & single
            else None
        )
    files = frozenset(asked.targets)
    return files if all(word.startswith(folders) for word in files) else None


@functools.cache
def asked_of(paper):
    """Return the artefacts and the keys of the runs that the files asked for need, or None for all."""
    files = asked_files()
    if files is None:
        return None
    experiments = config[paper]["experiments"]
    runs = {
        file: f"run:{name}/{method}"
        for name, experiment in experiments.items()
        for method in experiment["methods"]
        for kind in ("run", "tuned")
        for file in files_of(paper, f"{kind}:{name}/{method}")
    }
    partitions = {
        file for name in experiments for file in files_of(paper, f"partition:{name}")
    }
    drawn = artefact_outputs(paper)
    found = {name.partition(".")[0] for name, file in drawn.items() if file in files}
    # What is asked for of other papers needs nothing here; claims and the report need everything.
    folders = in_figures(f"{paper}/"), in_results(f"{paper}/")
    known = {*runs, *partitions, *drawn.values()}
    for file in files - known:
        if file.startswith(folders) or Path(file).parent == Path(in_results("")):
            return None
    artefacts = settings.artefacts(config[paper])
    keys = {key for name in found for key in settings.artefact_keys(artefacts[name])}
    return found, keys | {runs[file] for file in files if file in runs}


def made_by(rule):
    """Return the file in which a job of several outputs notes what they were made from."""
    return Path(".snakemake/made_together", config["scale"], rule)


def digest_of(*made_from):
    return hashlib.sha256("\n".join(made_from).encode()).hexdigest()


def note(rule, digest):
    """Return the command that notes it."""
    file = made_by(rule)
    return f"mkdir -p {file.parent} && echo {digest} > {file}"


def still_stands(rule, digest, files):
    """Whether all files are there, and such a job has last made them from the same settings and sources."""
    if not made_by(rule).is_file() or not all(map(os.path.isfile, files)):
        return False
    return made_by(rule).read_text().strip() == digest()


@functools.cache
def grouped():
    """Return (paper, number, group) of the jobs that run one method on several experiments.

    They save time where all their files are wanted; a file that is asked for alone must not wait for others.
    But where such a job has made it, the same job is asked whether it is up to date.
    """
    return [
        (paper, number, group)
        for paper in config["papers"]
        for number, group in enumerate(settings.groups(config[paper]))
        if group_is_wanted(paper, *group)
    ]


def group_is_wanted(paper, method, names):
    asked = asked_of(paper)
    if asked is None or asked[1].issuperset(f"run:{name}/{method}" for name in names):
        return True
    files = [
        file.format(method=method) for file in group_outputs(paper, names).values()
    ]
    return still_stands(
        group_rule(paper, method, names),
        lambda: group_digest(paper, method, names),
        files,
    )


def group_rule(paper, method, names):
    return f"run_{paper}_{group_name(names)}_{method}"


def group_digest(paper, method, names):
    return digest_of(
        group_settings(paper, names), *job_sources("together", paper, method)
    )


def group_note(paper, names):
    def of(wildcards):
        method = wildcards.method
        return note(
            group_rule(paper, method, names), group_digest(paper, method, names)
        )

    return of


def papers_but_groups():
    """Return a pattern of papers that no run of a group may follow: its files have a rule already."""
    taken = [
        f"{paper}/{name}/{group.method}"
        for paper, _, group in grouped()
        for name in group.experiments
    ]
    return f"(?!(?:{one_of(taken) or '(?!)'})[.])(?:{one_of(config['papers'])})"


def group_name(names):
    """Return a name for files: of the first experiment, and how many more there are."""
    return names[0] if len(names) == 1 else f"{names[0]}_and_{len(names) - 1}_more"


def group_memory(paper, names):
    experiments = config[paper]["experiments"]
    return max(experiments[name].get("memory_mb", 2000) for name in names)


def group_keys(paper, names):
    """Return the keys of the files that the problems of the experiments are made from."""
    experiments = config[paper]["experiments"]
    return [
        f"{kind}:{name}"
        for name in names
        for kind, wanted in (("data", "dataset"), ("partition", "partition"))
        if wanted in experiments[name]
    ]


def group_inputs(paper, names):
    def of(wildcards):
        files = [
            file for key in group_keys(paper, names) for file in files_of(paper, key)
        ]
        source = job_sources("together", paper, wildcards.method)
        return {"files": files, "source": source}

    return of


def group_steps(paper, names):
    """Return the experiments by step: all run, and some tune before."""
    experiments = config[paper]["experiments"]
    return {
        "tune": [name for name in names if "tuning" in experiments[name]],
        "run": names,
    }


def group_outputs(paper, names):
    """Return files by keys such as ``run:mnist``, with the method open."""
    steps = group_steps(paper, names)
    return {
        f"{kind}:{name}": file
        for kind, step in (("tuned", "tune"), ("run", "run"))
        for name in steps[step]
        for file in files_of(paper, f"{kind}:{name}/{{method}}")
    }


def group_settings(paper, names):
    """Return the settings of all searches and runs as one JSON object."""
    return provenance.canonical_json(
        {
            step: {
                name: settings.settings_for(step, config[paper], name)
                for name in chosen
            }
            for step, chosen in group_steps(paper, names).items()
        }
    )


def group_files(paper, names):
    """Return the function that gives ``KEY=FILE ...``."""

    def of(wildcards):
        outputs = group_outputs(paper, names)
        return keyed_files(
            {key: file.format(**wildcards) for key, file in outputs.items()}
        )

    return of


# --- Artefacts, claims, targets ---


def artefact_names(paper, kind):
    return [
        name
        for name, value in settings.artefacts(config[paper]).items()
        if value["kind"] == kind
    ]


def names_of_kind(kind):
    names = {name for paper in config["papers"] for name in artefact_names(paper, kind)}
    # No name at all must match nothing; an empty pattern would match everything.
    return one_of(names) or "(?!)"


def artefact_of(wildcards):
    artefact = settings.artefacts(config[wildcards.paper]).get(wildcards.artefact)
    if artefact is None:
        refuse(f"paper {wildcards.paper} has no artefact {wildcards.artefact}")
    return artefact


def artefact_inputs(wildcards):
    keys = settings.artefact_keys(artefact_of(wildcards))
    return {
        "files": [file for key in keys for file in files_of(wildcards.paper, key)],
        "source": sources_of(
            "replifed.papers.jobs:artefact",
            f"replifed.papers.{wildcards.paper}.{artefact_of(wildcards)['kind']}s",
        ),
    }


def artefact_settings(wildcards):
    artefact_of(wildcards)
    return provenance.canonical_json(
        settings.settings_for("artefact", config[wildcards.paper], wildcards.artefact)
    )


@functools.cache
def drawn_together():
    """Return the papers of which one job makes all artefacts; see `grouped`."""
    return [
        name
        for name in config["papers"]
        if settings.drawn_together(config[name]) and artefacts_are_wanted(name)
    ]


def artefacts_are_wanted(paper):
    asked = asked_of(paper)
    if asked is None or asked[0].issuperset(settings.artefacts(config[paper])):
        return True
    inputs = [
        file
        for key in settings.artefacts_keys(config[paper])
        for file in files_of(paper, key)
    ]
    return still_stands(
        f"artefacts_{paper}",
        lambda: artefacts_digest(paper),
        [*inputs, *artefact_files(paper)],
    )


def artefacts_digest(paper):
    return digest_of(artefacts_settings(paper), *artefacts_sources(paper))


def artefacts_note(paper):
    return lambda wildcards: note(f"artefacts_{paper}", artefacts_digest(paper))


def drawn_singly():
    """Return a pattern of the other papers."""
    return one_of(set(config["papers"]) - set(drawn_together())) or "(?!)"


def artefacts_inputs(paper):
    def of(wildcards):
        keys = settings.artefacts_keys(config[paper])
        return {
            "files": [file for key in keys for file in files_of(paper, key)],
            "source": artefacts_sources(paper),
        }

    return of


def artefacts_sources(paper):
    modules = [
        f"replifed.papers.{paper}.{artefact['kind']}s"
        for artefact in settings.artefacts(config[paper]).values()
    ]
    return sources_of("replifed.papers.jobs:artefacts", *modules)


def artefacts_settings(paper):
    return provenance.canonical_json(settings.artefacts_settings(config[paper]))


def report_settings():
    """What the report shows beside claims and pictures: the artefacts in order, and those not computed."""
    keys = ("artefacts", "not_computed", "only")
    papers = {
        name: {key: config[name][key] for key in keys if key in config[name]}
        for name in config["papers"]
    }
    return provenance.canonical_json({"papers": config["papers"], **papers})


def artefact_flags(wildcards):
    return keyed_flag(wildcards.paper, settings.artefact_keys(artefact_of(wildcards)))


def claims_inputs(wildcards):
    keys = settings.claim_keys(config[wildcards.paper])
    return {
        "files": [file for key in keys for file in files_of(wildcards.paper, key)],
        "source": sources_of(
            "replifed.papers.jobs:measure_claims",
            f"replifed.papers.{wildcards.paper}.claims",
        ),
    }


def claims_settings(wildcards):
    return provenance.canonical_json(
        settings.settings_for("claims", config[wildcards.paper])
    )


def claims_flags(wildcards):
    return keyed_flag(wildcards.paper, settings.claim_keys(config[wildcards.paper]))


def artefact_outputs(paper, folder=None):
    """Return every file of every artefact of a paper by keys such as ``fig1.csv``."""
    files = {}
    for name, artefact in settings.artefacts(config[paper]).items():
        suffixes = FIGURE_SUFFIXES if artefact["kind"] == "figure" else TABLE_SUFFIXES
        for suffix in suffixes:
            file = f"{name}.{suffix}"
            files[file] = in_figures(f"{folder or paper}/{file}")
    return files


def artefact_files(paper):
    return list(artefact_outputs(paper).values())


def all_artefact_files():
    return [file for paper in config["papers"] for file in artefact_files(paper)]


def timed_figures():
    """Return the CSVs of the figures that show measured seconds, by paper and name."""
    return {
        f"{paper}/{name}": in_figures(f"{paper}/{name}.csv")
        for paper in config["papers"]
        for name in settings.artefacts(config[paper])
        if name.endswith("_seconds")
    }


def timing_outputs():
    """Return the file of the claims on seconds, if any paper has such."""
    return [in_results("claims_timing.csv")] if timed_figures() else []


def timing_inputs(wildcards):
    papers = dict.fromkeys(key.split("/")[0] for key in timed_figures())
    modules = [f"replifed.papers.{paper}.claims" for paper in papers]
    return {
        "files": list(timed_figures().values()),
        "source": sources_of("replifed.papers.jobs:measure_timing", *modules),
    }


def timing_flags(wildcards):
    pairs = [f"{key}={file}" for key, file in timed_figures().items()]
    return " ".join(["--inputs", *map(shlex.quote, pairs)])


def manifest_files():
    """Return all files that rules read or write, but for logs, benchmarks and measured seconds."""
    files = [file for file in all_artefact_files() if "_seconds." not in file]
    for paper in config["papers"]:
        for key in [*settings.claim_keys(config[paper]), *searches(config[paper])]:
            files += files_of(paper, key)
        files += [in_results(f"{paper}/{name}.csv") for name in ("claims", "errata")]
    for name in settings.used_datasets(config):
        files += [in_data(f"raw/{name}.json"), parsed(name)]
    files += [in_results(name) for name in ("claims.csv", "report.html")]
    return [*dict.fromkeys(files)]


def searches(paper_config):
    """Return the keys of the step searches, and of the partitions, before the runs that artefacts read."""
    keys = []
    for key in settings.claim_keys(paper_config):
        kind, _, name = key.partition(":")
        experiment = paper_config["experiments"][name.partition("/")[0]]
        if kind == "run" and "tuning" in experiment:
            keys.append(f"tuned:{name}")
        if "partition" in experiment:
            keys.append(f"partition:{name.partition('/')[0]}")
    return keys


def folders_of_papers():
    return [
        folder
        for paper in config["papers"]
        for folder in (in_results(paper), in_figures(paper))
    ]


def raw_folders():
    return [in_data(f"raw/{name}") for name in settings.used_datasets(config)]


def configfile_flags():
    """Return the user's own configuration files as flags of the command line."""
    return " ".join(
        f"--configfile {shlex.quote(os.path.relpath(file))}"
        for file in workflow.overwrite_configfiles
    )


# --- First and last lines ---


def only_verifies():
    return {job.rule.name for job in workflow.dag.jobs} == {"verify"}


def closing_line():
    """Say how many of the data sets in use are not the papers' own, and where the report is."""
    from replifed.data.commands import not_original, status_rows

    used = settings.used_datasets(config)
    known = [name for name in used if Path(in_data(f"raw/{name}.json")).is_file()]
    lines = [not_original(status_rows(in_data("raw"), known))] if known else []
    page = Path(in_results("report.html"))
    if page.is_file():
        lines.append(f"report: {page}")
    return "; ".join(lines)


def resume_line():
    return (
        "Something failed; what was finished is kept. Correct the cause shown above and give the same command "
        "again, e.g. `snakemake --cores 2 all`. If Snakemake says that the folder is locked although none runs, "
        "first `snakemake --unlock`."
    )
