"""`make` sets up the environment once, or anew, and runs its commands there. Pythons are stubs."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = "python3", "python3.11", "python3.12", "python3.13", "python3.14"

# A Python that says another version of itself. What it sets up are stubs, and it notes each of its starts.
PYTHON = """#!/bin/sh
echo "$*" | head -n 1 >> "{calls}"
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


@dataclass(frozen=True)
class Checkout:
    """A checkout with stubs in place of what is installed; all Pythons on the path are stubs or missing."""

    folder: Path
    path: Path

    @property
    def calls(self) -> list[str]:
        """The starts of Pythons that did more than to say who they are."""
        file = self.path / "calls"
        return [line for line in file.read_text().splitlines() if line[:2] == "-m"] if file.exists() else []

    @property
    def started(self) -> bool:
        return (self.path / "calls").exists()

    def forget(self) -> None:
        (self.path / "calls").unlink(missing_ok=True)

    def python(self, name: str, version: str, bare: bool = False) -> Path:
        file = self.path / name
        fill = {"calls": self.path / "calls", "python": sys.executable, "itself": file, "bare": bare}
        file.write_text(PYTHON.format(version=tuple(map(int, version.split("."))), **fill))
        file.chmod(0o755)
        return file

    def start(self, *words: str, **env: str) -> subprocess.Popen[str]:
        env = {"PATH": f"{self.path}:/usr/bin:/bin", "HOME": str(self.folder), **env}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        command = ["make", "--silent", "-C", str(self.folder), *words]
        return subprocess.Popen(command, env=env, start_new_session=True, **pipes)

    def make(self, *words: str, **env: str) -> tuple[str, str]:
        """Return what `make` printed, and what it said beside."""
        process = self.start(*words, **env)
        out, said = process.communicate(timeout=60)
        said = re.sub(r"^make: .*\n", "", said, flags=re.MULTILINE)  # its own line on an error
        assert (process.returncode == 0) == ("error: " not in said), said
        return re.sub(r"^make: .*\n", "", out, flags=re.MULTILINE), said


def checkout_in(folder: Path) -> Checkout:
    (folder / "src/replifed").mkdir(parents=True)
    (folder / "src/replifed/__init__.py").touch()
    for name in ("Makefile", "tools"):
        subprocess.run(["cp", "-R", ROOT / name, folder], check=True)
    (folder / "requirements.lock").write_text("numpy==2.4.6\n")
    (folder / "pyproject.toml").write_text("[project]\n")
    (folder / "path").mkdir()
    made = Checkout(folder, folder / "path")
    for name in NAMES:
        (made.path / name).write_text("#!/bin/sh\nexit 127\n")
        (made.path / name).chmod(0o755)
    return made


@pytest.fixture
def checkout(tmp_path):
    made = checkout_in(tmp_path / "check out")
    made.python("python3", "3.12.1")
    return made


def test_the_first_call_sets_up_and_later_ones_start_no_python(checkout):
    out, said = checkout.make("all", "CORES=3")
    assert said == "replifed: setting up .venv with Python 3.12, once: two to four minutes\n"
    assert out == f"snakemake --cores 3 all, in {checkout.folder}/.venv\n"
    assert checkout.calls == SET_UP
    checkout.forget()
    small = "snakemake --cores 3 all --configfile config/small.yaml"
    for target, command in {"small": small, "test": "pytest -n 2"}.items():
        assert checkout.make(target, "CORES=3") == (f"{command}, in {checkout.folder}/.venv\n", "")
    out, said = checkout.make("setup")
    assert out == "" and said.startswith("replifed: ready: ") and not checkout.started
    assert checkout.make()[0].endswith(f" all, in {checkout.folder}/.venv\n")


def moved(checkout):
    place = checkout.folder.with_name("elsewhere")
    checkout.folder.rename(place)
    made = Checkout(place, place / "path")
    made.python("python3", "3.12.1")
    return made


def edited(name):
    def edit(checkout):
        with (checkout.folder / name).open("a") as file:
            file.write("more\n")

    return edit


STALE = {
    "another lock": edited("requirements.lock"),
    "another project": edited("pyproject.toml"),
    "its Python is gone": lambda checkout: (checkout.folder / ".venv/bin/python").unlink(),
    "moved": moved,
}


@pytest.mark.parametrize("what", STALE)
def test_an_environment_that_is_not_whole_is_made_anew(checkout, what):
    checkout.make("setup")
    checkout.forget()
    (checkout.folder / ".venv/old").touch()
    checkout = STALE[what](checkout) or checkout
    assert "setting up .venv" in checkout.make("setup")[1]
    assert checkout.calls == SET_UP and not (checkout.folder / ".venv/old").exists()


def until(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come")


def test_a_killed_set_up_is_begun_anew(checkout):
    process = checkout.start("test", PIP_WAITS_FOR="path/never")
    until(lambda: HASHED in checkout.calls)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    checkout.forget()
    out, said = checkout.make("test")
    assert "setting up" in said and checkout.calls == SET_UP and out.startswith("pytest")


@pytest.mark.parametrize("flock", [True, False])
def test_of_two_calls_at_once_one_sets_up_and_the_other_waits(checkout, flock):
    path = {}
    if not flock:  # as on macOS
        for file in (file for folder in ("/usr/bin", "/bin") for file in Path(folder).iterdir()):
            if not (checkout.path / file.name).exists() and file.name != "flock":
                (checkout.path / file.name).symlink_to(file)
        path = {"PATH": str(checkout.path)}
    first = checkout.start("test", PIP_WAITS_FOR="path/go", **path)
    until(lambda: HASHED in checkout.calls)
    second = checkout.start("test", PIP_WAITS_FOR="path/go", **path)
    assert "waiting for another call" in second.stderr.readline()
    (checkout.path / "go").touch()
    for call in (first, second):
        out, said = call.communicate(timeout=60)
        assert call.returncode == 0 and out.startswith("pytest -n 2"), said
        assert ("setting up" in said) == (call is first)
    assert checkout.calls == SET_UP


def test_nothing_is_set_up_beneath_a_running_command(checkout):
    checkout.make("setup")
    runs = "#!/bin/sh\ntouch path/runs\nwhile [ ! -e path/go ]; do sleep 0.05; done\n"
    (checkout.folder / ".venv/bin/pytest").write_text(runs)
    running = checkout.start("test")
    until(lambda: (checkout.path / "runs").exists())
    edited("requirements.lock")(checkout)
    checkout.forget()
    second = checkout.start("setup")
    assert "waiting for another call" in second.stderr.readline() and checkout.calls == []
    (checkout.path / "go").touch()
    for call in (running, second):
        call.communicate(timeout=60)
        assert call.returncode == 0
    assert checkout.calls == SET_UP


# --- Which Python ---


@pytest.mark.parametrize(
    ("found", "taken"),
    [
        ({"python3": "3.9.18", "python3.13": "3.13.0", "python3.11": "3.11.2"}, "3.13"),
        ({"python3": "3.14.0", "python3.11": "3.11.2"}, "3.11"),
        ({"python3": "3.9.18", "python3.14": "3.14.0"}, "3.14"),
    ],
)
def test_the_best_python_of_the_path_is_taken(checkout, found, taken):
    for name, version in found.items():
        checkout.python(name, version)
    assert f"with Python {taken}," in checkout.make("setup")[1]


def test_a_python_that_is_named_is_taken_and_kept(checkout):
    named = checkout.python("mine", "3.11.2")
    checkout.make("setup")
    assert "with Python 3.11," in checkout.make("setup", f"PYTHON={named}")[1]
    for again in (["setup", f"PYTHON={named}"], ["setup"]):
        assert checkout.make(*again)[1].startswith("replifed: ready: ")


@pytest.mark.parametrize(
    ("version", "bare", "says"),
    [
        ("3.9.18", False, "/path/python3 is Python 3.9; install 3.11, 3.12 or 3.13, or name another: "),
        ("3.12.1", True, "/path/python3 has no ensurepip or venv; install it "),
        ("", False, "error: python3 is not there or does not run; install Python 3.11, 3.12 or 3.13, or"),
    ],
)
def test_a_python_that_will_not_do_is_refused_with_its_cure(checkout, version, bare, says):
    if version:
        checkout.python("python3", version, bare)
    else:
        shutil.copy(checkout.path / "python3.11", checkout.path / "python3")
    _, said = checkout.make("small")
    assert said.startswith("replifed: error: ") and says in said and said.count("\n") == 1
    assert checkout.calls == [] and not (checkout.folder / ".venv").exists()


@pytest.mark.parametrize(
    ("pip_says", "told"),
    [
        ("ERROR: OSError: [Errno 28] No space left on device", "the disk is full; make room "),
        ("ERROR: numpy==2.4.6 (from versions: none)", "no package index answers; check the network"),
        ("ERROR: Failed building wheel for immutables", "a package has no wheel for Python 3.12; "),
        ("ERROR: NO MATCH\n    of hashes\n", f"`.venv/bin/python {HASHED}` failed: ERROR: NO MATCH"),
    ],
)
def test_a_step_that_fails_is_one_line_with_its_cure_and_nothing_stays(checkout, pip_says, told):
    _, said = checkout.make("small", PIP_SAYS=pip_says)
    _, line = said.splitlines()
    assert line.startswith(f"replifed: error: {told}")
    assert not (checkout.folder / ".venv").exists()
    assert checkout.make("small")[0].startswith("snakemake")


# --- An activated environment ---


def activated(folder, source):
    """An environment whose Python imports the project from `source`, and which has Snakemake."""
    (folder / "bin").mkdir(parents=True)
    files = {"python": f'PYTHONPATH="{source}" exec "{sys.executable}" "$@"', "snakemake": 'echo "own $*"'}
    for name, line in files.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / "bin" / name).chmod(0o755)
    return str(folder)


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_activated_environment_that_holds_the_project_is_used(checkout, variable):
    mine = {variable: activated(checkout.folder / "mine", checkout.folder / "src")}
    assert checkout.make("all", "CORES=2", **mine) == ("own --cores 2 all\n", "")
    assert not (checkout.folder / ".venv").exists()
    _, said = checkout.make("test", **mine)
    assert said == (
        f"replifed: error: {checkout.folder}/mine, which is activated, has no pytest; "
        "`pip install -e '.[dev]'` there, or deactivate it\n"
    )


def test_an_activated_environment_without_the_project_is_not(checkout, tmp_path):
    other = checkout_in(tmp_path / "other")
    mine = {"VIRTUAL_ENV": activated(checkout.folder / "mine", other.folder / "src")}
    assert checkout.make("all", **mine)[0].endswith(f"all, in {checkout.folder}/.venv\n")


def test_an_activated_environment_of_make_is_kept_up_to_date(checkout):
    checkout.make("setup")
    edited("requirements.lock")(checkout)
    assert "setting up" in checkout.make("test", VIRTUAL_ENV=str(checkout.folder / ".venv"))[1]


# --- Cores ---


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


GROUPS = {
    "version 2, with those above": (
        *("0::/a/b", 2),
        {"a/b/cpu.max": "max 100000", "a/cpu.max": "150000 100000"},
    ),
    "version 2, inside": ("0::/", 2, {"cpu.max": "200000 100000"}),
    "version 1, inside": (
        *("3:cpuset:/\n2:cpu,cpuacct:/docker/1\n0::/", 2),
        {"cpu/cpu.cfs_quota_us": "150000", "cpu/cpu.cfs_period_us": "100000"},
    ),
    "version 1, no limit": (
        *("1:cpu:/job", 8),
        {"cpu/job/cpu.cfs_quota_us": "-1", "cpu/job/cpu.cfs_period_us": "100000"},
    ),
}


@pytest.mark.parametrize("case", GROUPS)
def test_a_container_lowers_the_number_of_cores(tmp_path, case):
    groups, expected, limits = GROUPS[case]
    files = {
        "proc/self/cgroup": groups,
        **{f"sys/fs/cgroup/{name}": text for name, text in limits.items()},
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    (tmp_path / "nproc").write_text("#!/bin/sh\necho 8\n")
    (tmp_path / "nproc").chmod(0o755)
    assert cores(tmp_path, PATH=f"{tmp_path}:/usr/bin:/bin") == expected
