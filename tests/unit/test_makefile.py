"""`make` sets up the environment once, or anew, and runs its commands there. Pythons are stubs."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A Python that says another version of itself. What it sets up are stubs, and it notes its calls with -m.
PYTHON = """#!/bin/sh
case "$1 $2" in -m*) echo "$*" >> path/calls ;; esac
case "$1 $2" in
  -c*) code=$2; shift 2; exec "{python}" -c '
import sys
sys.version_info, sys.executable = {version}, "{itself}"
if {bare}: sys.modules["ensurepip"] = None
exec(sys.argv.pop(1))' "$code" "$@" ;;
  "-m venv")
    mkdir -p .venv/bin
    ln -s "{itself}" .venv/bin/python
    for tool in snakemake pytest; do
      printf '#!/bin/sh\\necho "%s $*, in $VIRTUAL_ENV"\\n' $tool > .venv/bin/$tool
      chmod +x .venv/bin/$tool
    done ;;
  "-m pip")
    while [ ! -e "${{PIP_WAITS_FOR-/}}" ]; do sleep 0.05; done
    [ -z "${{PIP_SAYS-}}" ] || {{ echo "$PIP_SAYS"; exit 1; }} ;;
esac
"""
HASHED = "-m pip install --quiet --require-hashes -r requirements.lock"
SET_UP = ["-m venv --without-pip .venv", "-m ensurepip", HASHED, "-m pip install --quiet --no-deps -e ."]


def executable(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


class Checkout:
    """A checkout in which all Pythons on the path are stubs or missing."""

    def __init__(self, folder):
        self.folder, self.venv = folder, folder / ".venv"
        (folder / "src/replifed").mkdir(parents=True)
        (folder / "src/replifed/__init__.py").touch()
        shutil.copy(ROOT / "Makefile", folder)
        shutil.copytree(ROOT / "tools", folder / "tools")
        for name in ("requirements.lock", "pyproject.toml"):
            (folder / name).write_text("\n")
        for minor in range(10, 15):
            executable(folder / f"path/python3.{minor}", "#!/bin/sh\nexit 127\n")
        self.python("python3", "3.12.1")

    def python(self, name, version, bare=False):
        file = self.folder / "path" / name
        version = tuple(map(int, version.split(".")))
        executable(file, PYTHON.format(python=sys.executable, version=version, itself=file, bare=bare))

    def taken_calls(self):
        """The calls of Pythons since the last look."""
        file = self.folder / "path/calls"
        calls = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return calls

    def start(self, *words, **env):
        env = {"PATH": f"{self.folder}/path:/usr/bin:/bin", "HOME": str(self.folder), **env}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        command = ["make", "--silent", "-C", str(self.folder), *words]
        return subprocess.Popen(command, env=env, start_new_session=True, **pipes)

    def make(self, *words, **env):
        """Return what `make` printed, and what it said beside."""
        process = self.start(*words, **env)
        printed = process.communicate(timeout=60)
        out, said = (re.sub(r"^make: .*\n", "", text, flags=re.MULTILINE) for text in printed)
        assert (process.returncode == 0) == ("error: " not in said), said
        return out, said


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path / "check out")


def test_the_first_call_sets_up_and_later_ones_start_no_python(checkout):
    out, said = checkout.make("all", "CORES=3")
    assert said == "replifed: setting up .venv with Python 3.12, once: two to four minutes\n"
    assert out == f"snakemake --cores 3 all, in {checkout.venv}\n" and checkout.taken_calls() == SET_UP
    small = "snakemake --cores 3 all --configfile config/small.yaml"
    for target, command in {"small": small, "test": "pytest -n 2"}.items():
        assert checkout.make(target, "CORES=3") == (f"{command}, in {checkout.venv}\n", "")
    assert checkout.make("setup")[1].startswith("replifed: ready: ") and checkout.taken_calls() == []


@pytest.mark.parametrize(
    "changed", ["requirements.lock", "pyproject.toml", ".venv/made-from", ".venv/bin/python"]
)
def test_an_environment_that_is_not_whole_is_made_anew(checkout, changed):
    """Also one that is activated: `make` has made it."""
    checkout.make("setup")
    checkout.taken_calls()
    (checkout.venv / "old").touch()
    (checkout.folder / changed).unlink()
    if "python" not in changed:  # made-from has the folder, too, which may have moved
        (checkout.folder / changed).write_text("more\n")
    assert "setting up .venv" in checkout.make("setup", VIRTUAL_ENV=str(checkout.venv))[1]
    assert checkout.taken_calls() == SET_UP and not (checkout.venv / "old").exists()


def until(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come")


def installs(checkout):
    file = checkout.folder / "path/calls"
    return file.exists() and HASHED in file.read_text()


def test_a_killed_set_up_is_begun_anew(checkout):
    process = checkout.start("test", PIP_WAITS_FOR="path/never")
    until(lambda: installs(checkout))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    checkout.taken_calls()
    out, said = checkout.make("test")
    assert "setting up" in said and checkout.taken_calls() == SET_UP and out.startswith("pytest")


@pytest.mark.parametrize("flock", [True, False])
def test_of_two_calls_at_once_one_sets_up_and_the_other_waits(checkout, flock):
    path = {}
    if not flock:  # as on macOS
        path = {"PATH": f"{checkout.folder}/path"}
        for file in Path("/usr/bin").iterdir():
            if file.name != "flock" and not file.name.startswith("python"):
                (checkout.folder / "path" / file.name).symlink_to(file)
    first = checkout.start("test", PIP_WAITS_FOR="path/go", **path)
    until(lambda: installs(checkout))
    second = checkout.start("test", **path)
    assert "waiting for another call" in second.stderr.readline()
    (checkout.folder / "path/go").touch()
    for call in (first, second):
        out, said = call.communicate(timeout=60)
        assert call.returncode == 0 and out.startswith("pytest -n 2"), said
        assert ("setting up" in said) == (call is first)
    assert checkout.taken_calls() == SET_UP


def test_nothing_is_set_up_beneath_a_running_command(checkout):
    checkout.make("setup")
    executable(
        checkout.venv / "bin/pytest", "#!/bin/sh\ntouch runs\nwhile [ ! -e go ]; do sleep 0.05; done\n"
    )
    running = checkout.start("test")
    until(lambda: (checkout.folder / "runs").exists())
    checkout.taken_calls()
    (checkout.folder / "requirements.lock").write_text("more\n")
    second = checkout.start("setup")
    assert "waiting for another call" in second.stderr.readline() and checkout.taken_calls() == []
    (checkout.folder / "go").touch()
    assert [call.communicate(timeout=60) and call.returncode for call in (running, second)] == [0, 0]
    assert checkout.taken_calls() == SET_UP


@pytest.mark.parametrize(
    ("found", "taken"),
    [
        ({"python3": "3.9.18", "python3.13": "3.13.0", "python3.11": "3.11.2"}, "3.13"),
        ({"python3": "3.14.0", "python3.11": "3.11.2"}, "3.11"),
        ({"python3": "3.9.18", "python3.14": "3.14.0"}, "3.14"),
        ({"mine": "3.11.2", "python3.13": "3.13.0"}, "3.11"),
    ],
)
def test_the_best_python_of_the_path_is_taken_or_the_one_that_is_named(checkout, found, taken):
    for name, version in found.items():
        checkout.python(name, version)
    named = [f"PYTHON={checkout.folder}/path/mine"] * ("mine" in found)
    assert f"with Python {taken}," in checkout.make("setup", *named)[1]
    for again in (named, []):
        assert checkout.make("setup", *again)[1].startswith("replifed: ready: ")


@pytest.mark.parametrize(
    ("version", "bare", "pip_says", "told"),
    [
        ("3.9.18", False, "", "python3 is Python 3.9; install 3.11, 3.12 or 3.13, or name another: "),
        ("3.12.1", True, "", "python3 has no ensurepip or venv; install it "),
        ("", False, "", "python3 is not there or does not run; install Python 3.11, 3.12 or 3.13, or"),
        ("3.12.1", False, "OSError: [Errno 28] No space left on device", "the disk is full; make room "),
        (
            "3.12.1",
            False,
            "ERROR: numpy (from versions: none)",
            "no package index answers; check the network",
        ),
        ("3.12.1", False, "Failed building wheel for x", "a package has no wheel for Python 3.12; "),
        ("3.12.1", False, "ERROR: NO MATCH\n of hashes\n", f"python {HASHED}` failed: ERROR: NO MATCH"),
    ],
)
def test_what_fails_is_one_line_with_its_cure_and_nothing_stays(checkout, version, bare, pip_says, told):
    if version:
        checkout.python("python3", version, bare)
    else:
        shutil.copy(checkout.folder / "path/python3.11", checkout.folder / "path/python3")
    said = checkout.make("small", PIP_SAYS=pip_says)[1].splitlines()
    assert len(said) == 1 + bool(pip_says) and not checkout.venv.exists()
    assert said[-1].startswith("replifed: error: ") and told in said[-1]


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_activated_environment_is_used_if_it_holds_the_project(checkout, tmp_path, variable):
    mine = checkout.folder / "mine"
    executable(mine / "bin/snakemake", '#!/bin/sh\necho "own $*"\n')
    for source in (checkout.folder, Checkout(tmp_path / "other").folder):
        executable(
            mine / "bin/python", f'#!/bin/sh\nPYTHONPATH="{source}/src" exec "{sys.executable}" "$@"\n'
        )
        out, said = checkout.make("all", "CORES=2", **{variable: str(mine)})
        if source == checkout.folder:
            assert (out, said) == ("own --cores 2 all\n", "") and not checkout.venv.exists()
            _, said = checkout.make("test", **{variable: str(mine)})
            assert f"error: {mine}, which is activated, has no pytest; " in said and said.count("\n") == 1
        else:
            assert out.endswith(f"all, in {checkout.venv}\n")


def cores(root="", **env):
    command = ["sh", ROOT / "tools/cores.sh", root]
    env = {"PATH": "/usr/bin:/bin", **env}
    return int(subprocess.run(command, env=env, capture_output=True, check=True, text=True).stdout)


def test_cores_are_those_that_the_process_is_bound_to():
    ours = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(ours)})
        assert cores() == 1
    finally:
        os.sched_setaffinity(0, ours)
    assert cores(root="/nowhere", OMP_NUM_THREADS="1") == len(ours)


@pytest.mark.parametrize(
    ("groups", "expected", "limits"),
    [
        ("0::/a/b", 2, {"a/b/cpu.max": "max 100000", "a/cpu.max": "150000 100000"}),
        ("3:cpuset:/\n2:cpu,cpuacct:/docker/1\n0::/", 2, {"cpu/cpu.cfs_quota_us": "150000"}),
        ("1:cpu:/job", 8, {"cpu/job/cpu.cfs_quota_us": "-1"}),
    ],
)
def test_a_container_lowers_the_number_of_cores(tmp_path, groups, expected, limits):
    """Control groups of version 2, with those above; of version 1, in a container; and without a limit."""
    files = {"proc/self/cgroup": groups} | {f"sys/fs/cgroup/{name}": text for name, text in limits.items()}
    periods = {name.replace("quota", "period"): "100000" for name in files if "quota" in name}
    for name, text in (files | periods).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    executable(tmp_path / "nproc", "#!/bin/sh\necho 8\n")
    assert cores(tmp_path, PATH=f"{tmp_path}:/usr/bin:/bin") == expected
