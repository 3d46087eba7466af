"""An installation of the package, without a checkout."""

import re
import shutil
import subprocess
import tomllib

import pytest

import warm
from copies import ROOT, Copy, surroundings


class Installed(Copy):
    """A folder in which there is no checkout."""

    @property
    def site(self):
        return next(folder / "site" for folder in self.folder.parents if (folder / "site").is_dir())

    def replifed(self, *words):
        done = subprocess.run(
            [warm.executable(), "-m", "replifed", *words],
            cwd=self.folder,
            env=surroundings() | {"PYTHONPATH": str(self.site), "REPLIFED_OFFLINE": "1"},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout + done.stderr

    def jobs_of(self, *words):
        status, said = self.replifed(*words)
        assert status == 0, said
        count, *jobs = said.splitlines()
        ahead = rf"{len(jobs)} jobs ahead, .+" if len(jobs) > 1 else "nothing to do: all is made"
        assert re.fullmatch(ahead, count)
        return set(jobs)


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """What a wheel would put where: the package, and beside it the files that pyproject.toml lists."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(
        ROOT / "src/replifed", folder / "site/replifed", ignore=shutil.ignore_patterns("__pycache__")
    )
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["data-files"]
    for place, patterns in listed.items():
        (folder / "site" / place).mkdir(parents=True, exist_ok=True)
        for file in (file for pattern in patterns for file in ROOT.glob(pattern)):
            shutil.copy(file, folder / "site" / place)
    work = Installed(folder / "work")
    work.folder.mkdir()
    status, said = work.replifed("init", ".")
    assert status == 0 and "replifed make all --small --cores 2" in said
    return work
