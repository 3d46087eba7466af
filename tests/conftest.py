"""One thread a process, a folder in which nothing was made, and the files that take longest first."""

import os
from pathlib import Path

import pytest

# Before numpy is there: two workers' products would else fight over two cores.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
# What may be named relative to the folder of the call, in which the tests do not run.
for _name in ("REPLIFED_MIRROR", "REPLIFED_LARGE"):
    if os.environ.get(_name):
        os.environ[_name] = str(Path(os.environ[_name]).absolute())

ROOT = Path(__file__).parents[1]
# What a call of the workflow reads in the folder in which it runs.
WORKFLOW = ("Snakefile", "workflow", "config", "profiles")

# Workers take whole files in this order, then the others: none is left with a long one at the end.
LONGEST = (
    *("test_real_run", "test_every_paper", "test_contract", "test_pictures", "test_open_house"),
    *("test_planning", "test_reruns", "test_fedmm_paper", "test_toy_paper", "test_fedac_paper"),
    *("test_fedht_claims", "test_qshed_paper", "test_curves", "test_paper_removed", "test_config"),
    *("test_cross", "test_errata", "test_common_methods", "test_variations", "test_growth"),
)


@pytest.fixture(scope="session", autouse=True)
def clean_folder(tmp_path_factory):
    """Run the tests where the workflow lies, but no result, figure or data, as in a fresh clone."""
    folder = tmp_path_factory.mktemp("clean")
    for name in WORKFLOW:
        (folder / name).symlink_to(ROOT / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield
    left = {file.name for file in folder.iterdir()} - {*WORKFLOW}
    assert not left, "a test leaves files in the folder of all"


@pytest.fixture(autouse=True)
def same_methods(monkeypatch):
    """Forget methods that a test registers, which no other test has."""
    from replifed.algorithms import registry

    before = dict(registry.METHODS)
    monkeypatch.setenv("REPLIFED_METHODS", "{}")
    monkeypatch.delenv("REPLIFED_METHODS")
    yield
    for name in {*registry.METHODS} - {*before}:
        del registry.METHODS[name]


def pytest_collection_modifyitems(items):
    """Sort files by how long they take; tests of a file stay in their order."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))
