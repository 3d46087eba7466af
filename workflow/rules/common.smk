"""Functions that need Snakemake's objects. Which file is made from which is decided in `replifed.workflow`."""

import atexit
import contextlib
import importlib.util
import inspect
import os
import shlex
import sys
import threading
from pathlib import Path

from snakemake.shell import shell

# This file's own checkout provides the library, whatever else may be installed; where `replifed init` has put
# this file there is none, and what is installed does.
LIBRARY = (
    Path(str(workflow.current_basedir.get_path_or_uri(secret_free=True)))
    .parent.parent.joinpath("src")
    .absolute()
)
if LIBRARY.joinpath("replifed").is_dir():
    sys.path.insert(0, str(LIBRARY))
else:
    LIBRARY = Path(importlib.util.find_spec("replifed").origin).parents[1]
# The profile may have taken another one.
if (
    LIBRARY
    not in Path(getattr(sys.modules.get("replifed"), "__file__", LIBRARY)).parents
):
    for name in [name for name in sys.modules if name.split(".")[0] == "replifed"]:
        del sys.modules[name]

from replifed import memory, parts, settings
from replifed.store import hashes, usage
from replifed.algorithms.registry import METHODS, registered
from replifed.data import fetch
from replifed.data.catalogue import CATALOGUE as DATASETS
from replifed.errors import ReplifedError
from replifed.settings import needs, reading
from replifed.progress import ONE_LINE
from replifed.store.provenance import source_stamp
from replifed.workflow import (
    SUFFIXES,
    Grouping,
    Plan,
    flags,
    inputs_flag,
    costs,
    one_of,
    order,
    running,
    screen,
    words,
)
from replifed.workflow.plan import MEMORY_MB
from replifed.workflow.limits import Limits

if os.pathsep in str(LIBRARY):
    sys.exit(
        f"replifed: error: {LIBRARY}: Python finds no package in a folder with {os.pathsep!r} in its path; rename it"
    )

# Relative to the working folder, like every other path of the workflow.
SOURCE_ROOT = Path(os.path.relpath(LIBRARY))
# In the shell of a job: says why it has no error of its own.
KILLED = (
    "'s=$?; case $s in"
    ' 137) echo "replifed: error: the job was killed, as the system does when memory runs out;'
    ' free some, or run fewer jobs at a time: --cores, --resources mem_mb=MB" >&2;;'
    ' 13[4-9]) echo "replifed: error: the job was ended by SIG$(kill -l $s)" >&2;;'
    " esac'"
)
INTERRUPTED_LINE = (
    "Interrupted; what was finished is kept. Give the same command again to go on."
)
RESUME_LINE = (
    "Something failed; what was finished is kept. Correct the cause shown above and give the same command "
    "again."
)


# --- Configuration ---


@contextlib.contextmanager
def stopping():
    """Stop reading the workflow with the message of an error, without a traceback."""
    try:
        yield
    except ReplifedError as error:
        sys.exit(
            "\n".join(f"replifed: error: {line}" for line in str(error).splitlines())
        )


def sound(file):
    """Return a settings file; stop if it cannot be read: Snakemake's own error does not name it."""
    with stopping():
        reading.read_file(Path(file))
    return str(file)


def listed_papers():
    with stopping():
        config["papers"] = reading.listed_papers(config)
    return config["papers"]


def check_config():
    """Replace the merged configuration by the checked one, with defaults."""
    given = reading.retyped(workflow.config_settings.config)
    # Snakemake has laid --config over them once more.
    listed = {"papers": listed_papers()}
    papers = [reading.paper_file(name) for name in config["papers"]]
    overrides = [Path(os.path.relpath(file)) for file in workflow.overwrite_configfiles]
    sources = [reading.MAIN_FILE, *papers, *overrides, given]
    with stopping():
        # Snakemake's own parser takes a key that stands twice.
        for file in (reading.MAIN_FILE, *papers, *overrides):
            reading.read_file(file)
        checked = settings.validate(reading.deep_merge(config, given, listed), sources)
    config.clear()
    config.update(checked)


def configfile_flags():
    """Return the user's own configuration files as flags of the command line."""
    return " ".join(
        f"--configfile {shlex.quote(os.path.relpath(file))}"
        for file in workflow.overwrite_configfiles
    )


def config_flag():
    """Return the user's own --config; a job on another machine gets all settings by it, and none here."""
    given = words.of_process().config if workflow.is_main_process else None
    return f"--config {shlex.join(given)}" if given else ""


# --- Screen ---


def prepare_screen():
    screen.notice_interrupts()
    if ONE_LINE in os.environ:
        screen.show_one_line()
    else:
        screen.show_failures_once()


def check_mirror():
    """Stop if the mirror does not exist, and a data set is to be fetched."""
    if any(job.rule.name == "fetch" for job in workflow.dag.needrun_jobs()):
        with stopping():
            fetch.mirror_folder(config["data"]["mirror"])


def warn_of_surrogates():
    """Name the data sets whose surrogates are in use although the mirror has their files."""
    given = config["data"]["mirror"] or os.environ.get(fetch.MIRROR_VARIABLE)
    if workflow.is_main_process and given:
        with stopping():
            names = fetch.replaceable(
                Path(plan.in_data("raw")), Path(given).expanduser()
            )
        if names:
            print(
                f"replifed: WARNING: surrogates are in use of {', '.join(names)}, which the mirror has; to take "
                "the files: replifed data --refresh",
                file=sys.stderr,
            )


def jobs_ahead():
    """Return the recorded seconds of the jobs ahead, None of unknown ones, and the jobs before each, all by id."""
    jobs = set(workflow.dag.needrun_jobs(exclude_finished=False))
    known, seconds = costs.read(config["scale"]), {}
    artefacts = {name: len(needs.artefacts(config[name])) for name in plan.sections}
    for job in jobs:
        if job.benchmark:
            name = os.path.relpath(job.benchmark, plan.in_results("benchmarks"))
            name = name.removesuffix(".tsv")
            seconds[job.jobid] = costs.estimate(name, known, artefacts)
    before = {
        job.jobid: [one.jobid for one in workflow.dag.dependencies[job] if one in jobs]
        for job in jobs
    }
    return seconds, before


def print_jobs_ahead(seconds, before):
    """Print the number of jobs, and the time that was recorded for them."""
    if seconds:
        chain = max(order.remaining(seconds, before).values())
        said = costs.in_words(seconds.values(), chain) + costs.compiling()
        print(said, file=sys.stderr)


def prepare_jobs():
    """Print the jobs ahead, let the longest chain of them begin first, and the screen count them."""
    seconds, before = jobs_ahead()
    print_jobs_ahead(seconds, before)
    weights = costs.weights(seconds)
    order.set_priorities(workflow.dag, order.remaining(weights, before))
    screen.begin(weights)


def print_jobs_ahead_of_dry_run():
    """Print the jobs ahead at exit, below those of a dry run, after which Snakemake calls no hook."""

    def print_at_end():
        if workflow.dag is not None:
            print_jobs_ahead(*jobs_ahead())

    if words.of_process().dryrun:
        atexit.register(print_at_end)


def closing_lines():
    """Return the last lines of a call: the score, if claims were requested, then the data and the report."""
    rules = {job.rule.name for job in workflow.dag.jobs}
    parsed = {
        job.wildcards.dataset for job in workflow.dag.jobs if job.rule.name == "parse"
    }
    data = plan.closing_line(sorted(parsed))
    return [*(plan.score_line() if "claims" in rules else ()), data]


def resume_line():
    """Return how to continue; after Ctrl-C, the command with one line of progress says it itself."""
    if not screen.interrupted.is_set():
        return [RESUME_LINE]
    return [] if ONE_LINE in os.environ else [INTERRUPTED_LINE]


def print_at_exit(*lines):
    """Print below what Snakemake itself prints after its hooks."""
    if lines:
        atexit.register(print, *lines, sep="\n", file=sys.stderr)


# --- Machine ---


def prepare_shell():
    """Give every job the same environment: this checkout's sources and one thread.

    The mirror's folder is a variable, too, and not a parameter: where a file was copied from changes no
    result, so it must rerun nothing.
    """
    exports = {
        "PYTHONPATH": str(LIBRARY),
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    if config["data"]["mirror"]:
        exports["REPLIFED_MIRROR"] = os.path.abspath(
            os.path.expanduser(config["data"]["mirror"])
        )
    exports[hashes.CONFIGFILES_VARIABLE] = configfile_flags()
    exports[hashes.CONFIG_VARIABLE] = config_flag()
    folders = (f"logs/{config['scale']}", plan.in_results("benchmarks"))
    exports[usage.FOLDERS] = os.pathsep.join(folders)
    exports |= registered()
    if parts.VARIABLE in os.environ:
        exports[parts.VARIABLE] = os.environ[parts.VARIABLE]
    words = [f"{name}={shlex.quote(value)}" for name, value in exports.items()]
    if not workflow.deployment_settings.deployment_method:
        # Snakemake may have been called by its path, with another Python first in PATH.
        words.append(f"PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH")
    # Bash names a killed job by its whole command; of what is trapped it only says how it ended.
    lines = f"set -euo pipefail; export {' '.join(words)}; trap : KILL SEGV BUS ABRT; trap {KILLED} EXIT; "
    shell.prefix(lines.replace("{", "{{").replace("}", "}}"))


def cap_memory():
    """Limit what jobs declare at a time to 80 % of the memory here, unless they run on a cluster.

    `--resources mem_mb=N` wins.
    """
    given = {"mem", "mem_mb", "mem_mib"}.intersection(workflow.global_resources)
    if workflow.is_main_process and not given and words.executor() == "local":
        workflow.register_resource("mem_mb", int(0.8 * memory.granted() / 1e6))


def enter_folder():
    """Record that this call runs here, unless it is a dry run or unlocks the folder."""
    asked = words.of_process()
    if workflow.is_main_process and not asked.dryrun and not asked.unlock:
        with stopping():
            running.enter()


def cancel_timers():
    """End the process at once, and not after the minute by which the profile limits job starts."""
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()


# --- Snakemake's own report ---


def shown(pattern):
    """Return the pattern of an artefact's file, marked for `snakemake --report` if it is what a reader opens."""
    path = Path(pattern)
    kind = {".png": "figures", ".md": "tables"}.get(path.suffix)
    if kind is None:
        return pattern
    # One label: of a second one with two values Snakemake's page makes a switch, which fails without a pair.
    return report(
        pattern,
        caption="../report/caption.rst",
        category="{paper}",
        subcategory=kind,
        labels={"artefact": path.stem},
    )


def caption_of(file):
    """Return the text of `workflow/report/caption.rst` on an artefact's file."""
    from replifed.report.artefacts import caption

    return caption(file.parent.name, file.stem)


# --- Questions to the plan ---


def sources_of(*modules):
    """Return the input that stands for the source files of modules."""
    return [source_stamp(modules, SOURCE_ROOT, Path(".snakemake/source_stamps"))]


def ask(function, *first):
    """Return an input function that calls `function` with the arguments `first`, then with wildcards.

    The names of its other parameters are those of the wildcards.
    """
    names = [*inspect.signature(function).parameters][len(first) :]

    def answer(wildcards):
        with stopping():
            return function(*first, *(getattr(wildcards, name) for name in names))

    return answer


def input_flags(wildcards, input):
    """Return the flags of a job's input files, ``--NAME FILE ...``, but for its sources, and for logs.

    Those are read by the pattern in the settings.
    """
    return flags(
        {name: file for name, file in input.items() if name not in ("source", "logs")}
    )


def keyed_inputs(wildcards, input):
    """Return the flag of a job's input files by key, ``--inputs KEY=FILE ...``, but for its sources."""
    return inputs_flag(dict(input.items()))


def minutes(job, otherwise=30):
    """Return the function for the time of jobs, by a pattern of their names: those of their benchmarks.

    That is as recorded, or `otherwise`: of a group of jobs it is the sum. A further attempt (--retries) asks for
    as much again.
    """

    def answer(wildcards, attempt):
        name = job.format(**dict(wildcards.items()))
        return attempt * limits.minutes(name, otherwise)

    return answer


def megabytes(job, otherwise=MEMORY_MB, stated=None):
    """Return the function for the memory of jobs, by a pattern of their names.

    That is `stated`, a number or a function of wildcards, if the settings state one; else as recorded, or
    `otherwise`.
    """

    def answer(wildcards, attempt):
        own = stated(wildcards) if callable(stated) else stated
        name = job.format(**dict(wildcards.items()))
        return attempt * (own or limits.megabytes(name, otherwise))

    return answer


def targets():
    """Return the requested targets, which Snakemake itself parses only after all rules are read.

    A job on another machine is requested by its rule.
    """
    asked = words.of_process()
    return [job.rulename for job in asked.target_jobs or ()] or asked.targets or ["all"]


def check_targets():
    """Stop at a target that nothing makes, before jobs are planned."""
    asked = words.of_process()
    if not asked.target_jobs:
        with stopping():
            words.check_targets(plan, asked.targets, workflow.rules)


def only_verifies():
    return {job.rule.name for job in workflow.dag.jobs} == {"verify"}
