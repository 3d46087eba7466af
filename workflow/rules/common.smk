"""Functions that need Snakemake's objects. Which file is made from which is decided in `replifed.workflow`."""

import atexit
import contextlib
import logging
import os
import re
import shlex
import sys
import threading
from functools import partial
from pathlib import Path

from snakemake.path_modifier import PathModifier
from snakemake.shell import shell as any_shell

from replifed import memory, parts
from replifed.store import environment, hashes
from replifed.algorithms.registry import registered
from replifed.data import fetch
from replifed.errors import ReplifedError
from replifed.settings import checks, needs, reading
from replifed.progress import ONE_LINE
from replifed.workflow import (
    closing,
    costs,
    entries,
    jobs,
    running,
    screen,
    targets,
    command,
)
from replifed.workflow.costs import Limits

# Another workflow may use this one as a module. Then all but its rules is left to that one.
AS_MODULE = workflow.modifier.base_snakefile is not None
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


def checked_config():
    """Return the settings of this call, with defaults; stop at errors in them."""
    local = FOLDER if FOLDER.joinpath(reading.MAIN_FILE).is_file() else None
    overrides = map(os.path.relpath, workflow.overwrite_configfiles)
    with stopping():
        if AS_MODULE:
            checked = checks.load(
                given=reading.retyped(config), beside=local, as_module=True
            )
        else:
            given = reading.retyped(workflow.config_settings.config)
            checked = checks.load([*overrides], given=given, beside=local)
    # Snakemake copies these to machines that share no folders, and shows them in its report.
    papers = (
        reading.paper_file(name, reading.PAPER_FOLDER) for name in checked["papers"]
    )
    used = (str(file) for file in (reading.MAIN_FILE, *papers) if file.is_file())
    workflow.configfiles += [file for file in used if file not in workflow.configfiles]
    return checked


def with_prefix(paths):
    """Return the folders of the settings where a module's `prefix` or `replace_prefix` puts them.

    Snakemake would change the files of rules alone, and not what else names them; now it changes none.
    """
    put = workflow.modifier.path_modifier.replace_prefix
    workflow.modifier.path_modifier = PathModifier(None, None, workflow)
    return {name: put(f"{folder}/").removesuffix("/") for name, folder in paths.items()}


def configfile_flags():
    """Return the user's own configuration files as flags of the command line."""
    return " ".join(
        f"--configfile {shlex.quote(os.path.relpath(file))}"
        for file in workflow.overwrite_configfiles
    )


def config_flag():
    """Return the user's own --config; a job on another machine gets all settings by it, and none here."""
    given = command.of_process().config if workflow.is_main_process else None
    return f"--config {shlex.join(given)}" if given else ""


# --- Screen ---


def prepare_call():
    """Prepare what is of the whole call: the screen, the memory, and the record that it runs here."""
    # With `verify` come of Snakemake's own lines only errors, and none once it runs.
    if "verify" in sys.argv:
        logging.disable(logging.WARNING)
    prepare_screen()
    cap_memory()
    enter_folder()


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
                Path(config["paths"]["data"], "raw"), Path(given).expanduser()
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
    artefacts = {name: len(needs.artefacts(config[name])) for name in TABLE.sections}
    for job in jobs:
        if job.benchmark:
            name = os.path.relpath(job.benchmark, BENCHMARKS)
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
        chain = max(targets.remaining(seconds, before).values())
        said = costs.in_words(seconds.values(), chain) + costs.compiling()
        print(said, file=sys.stderr)


def prepare_jobs():
    """Print the jobs ahead, let the longest chain of them begin first, and the screen count them."""
    seconds, before = jobs_ahead()
    print_jobs_ahead(seconds, before)
    weights = costs.weights(seconds)
    targets.set_priorities(workflow.dag, targets.remaining(weights, before))
    screen.begin(weights)


def print_jobs_ahead_of_dry_run():
    """Print the jobs ahead at exit, below those of a dry run, after which Snakemake calls no hook."""

    def print_at_end():
        if workflow.dag is not None:
            print_jobs_ahead(*jobs_ahead())

    if command.of_process().dryrun:
        atexit.register(print_at_end)


def closing_lines():
    """Return the last lines of a call: the score, if claims were requested, then the data and the report."""
    jobs = list(workflow.dag.jobs)
    measured = [job for job in jobs if job.rule.name == "measure_claims"]
    parsed = {job.wildcards.parse for job in jobs if job.rule.name == "parse"}
    pages = [
        file for job in jobs for file in job.output if Path(file).suffix == ".html"
    ]
    # With one line of progress, the command prints the score.
    judged = (
        ()
        if ONE_LINE in os.environ
        else [job.wildcards.measure_claims for job in measured]
    )
    return [
        *closing.score_lines(config["paths"], judged),
        closing.data_line(config["paths"], sorted(parsed), sorted(pages)),
    ]


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


class shell(any_shell):
    """Runs the commands of these rules; what `prepare_shell` sets reaches no rule of another workflow."""


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
    exports[environment.LOG_FOLDERS] = os.pathsep.join((LOGS, BENCHMARKS))
    exports[entries.VARIABLE] = entries.write(TABLE)
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
    if workflow.is_main_process and not given and command.executor() == "local":
        workflow.register_resource("mem_mb", int(0.8 * memory.granted() / 1e6))


def enter_folder():
    """Record that this call runs here, unless it is a dry run or unlocks the folder."""
    asked = command.of_process()
    if workflow.is_main_process and not asked.dryrun and not asked.unlock:
        with stopping():
            running.enter()


def cancel_timers():
    """End the process at once, and not after the minute by which the profile limits job starts."""
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()


def cancel_timers_at_end():
    """As `cancel_timers`, once the main thread has ended: a module has no hooks, though the profile may be there."""

    def wait():
        threading.main_thread().join()
        cancel_timers()

    threading.Thread(target=wait, daemon=True).start()


def check_targets():
    """Stop at a target that nothing makes, before jobs are planned."""
    asked = command.of_process()
    if not asked.target_jobs:
        with stopping():
            command.check_targets(TABLE, TARGETS, asked.targets, workflow.rules)


def only_verifies():
    return {job.rule.name for job in workflow.dag.jobs} == {"verify"}


# --- Snakemake's own report ---


def shown(pattern):
    """Return the pattern of an artefact's file, marked for Snakemake's own report if a reader opens it."""
    kind = {".png": "figures", ".md": "tables"}.get(Path(pattern).suffix)
    if kind is None:
        return pattern
    # One label: of a second one with two values Snakemake's page makes a switch, which fails without a pair.
    return report(
        pattern,
        caption="../report/caption.rst",
        category=partial(paper_of, pattern),
        subcategory=kind,
        labels=partial(labels_of, pattern),
    )


def paper_of(pattern, wildcards):
    return Path(pattern.format(**dict(wildcards.items()))).parent.name


def labels_of(pattern, wildcards):
    return {"artefact": Path(pattern.format(**dict(wildcards.items()))).stem}


def caption_of(file):
    """Return the text of `workflow/report/caption.rst` on an artefact's file."""
    from replifed.report.artefacts import caption

    return caption(file.parent.name, file.stem)


# --- Rules ---

# A job on the command line; of those that take long, the screen shows the progress.
JOB = "REPLIFED_LOG={log:q} python -m replifed job {params.steps:q}"
QUIETLY = f"{JOB} > {{log:q}} 2>&1"
SHOWN = f"{JOB} 2>&1 | tee {{log:q}} >&2"


def plan_jobs():
    """Return all jobs, the targets by name, and the groups of jobs that this call does together."""
    with stopping():
        table = jobs.Table(config)
        names = targets.targets(table)
        call, renamed = command.of_process(), workflow.modifier.modify_rulename
        # Of a module only its own targets are known: not what rules of another workflow need.
        others = AS_MODULE and workflow.default_target
        asked = call.targets or ([] if others else [renamed("all")])
        groups = targets.groups_of_call(table, names, asked, call.target_jobs, renamed)
        return table, names, {group.rule: group for group in groups}


def files_of(kind):
    """Return the patterns of the files of a rule, whose wildcard is called like it."""
    return jobs.files(kind, f"{{{kind}}}", config["paths"])


def log_of(name):
    return f"{LOGS}/{name}.log"


def benchmark_of(name):
    return f"{BENCHMARKS}/{name}.tsv"


def called(kind):
    """Return what the logs and benchmarks of a rule are called."""
    return jobs.KINDS[kind].log.format(name=f"{{{kind}}}")


def one_of(kind):
    """Return a pattern of the names of the jobs of a kind that are in no group."""
    grouped = {key for group in GROUPS.values() for key in group.keys}
    own = TABLE.keys() - grouped
    own = sorted(TABLE[key].name for key in own if TABLE[key].kind == kind)
    # An empty pattern would match everything.
    return "|".join(map(re.escape, own)) or "(?!)"


def work_of(wildcards, key):
    """Return the job, or the group, that `key` names, or else the wildcard of the rule."""
    if key is None:
        ((kind, name),) = wildcards.items()
        key = f"{kind}:{name}"
    with stopping():
        return GROUPS.get(key) or TABLE[key]


def files_before(wildcards, key=None):
    """Return what a job reads."""
    work = work_of(wildcards, key)
    return [*TABLE.files(*work.upstream), *work.files]


def megabytes(wildcards, attempt, key=None):
    """Return the memory of a job: as its settings state, or as recorded, or that of its kind."""
    work = work_of(wildcards, key)
    otherwise = jobs.KINDS[TABLE[work.keys[0]].kind].memory
    return attempt * (work.memory or limits.megabytes(work.log, otherwise))


def minutes(wildcards, attempt, key=None):
    """Return the time of a job, as recorded or that of its kind; a further attempt asks for as much again."""
    work = work_of(wildcards, key)
    otherwise = jobs.KINDS[TABLE[work.keys[0]].kind].minutes
    return attempt * limits.minutes(work.log, otherwise)


def digest(wildcards, key=None):
    """Return the hash of settings and sources by which Snakemake notices that they have changed."""
    with stopping():
        return TABLE.digest(work_of(wildcards, key).keys[0], SOURCE_ROOT)


# Snakemake compares no parameters that depend on the output.
def steps(wildcards, output, key=None):
    """Return the keys by which a job is called: of a group, several."""
    return [*work_of(wildcards, key).keys]


def description(wildcards, output, key=None):
    return work_of(wildcards, key).description


def resources_of(key=None):
    """Return the functions for time and memory of the job that `key`, or a wildcard, names."""
    return {
        "mem_mb": partial(megabytes, key=key),
        "runtime": partial(minutes, key=key),
    }


def params_of(key=None):
    """Return the functions for the parameters of the job that `key`, or a wildcard, names."""
    return {
        "digest": partial(digest, key=key),
        "steps": partial(steps, key=key),
        "description": partial(description, key=key),
    }
