"""Copies of the repository that the tests of a file share."""

import pytest

from copies import Copy, copy_repository


@pytest.fixture(scope="session")
def fresh(tmp_path_factory) -> Copy:
    """A copy in which nothing has run."""
    return copy_repository(tmp_path_factory.mktemp("fresh"))


@pytest.fixture(scope="session")
def whole(tmp_path_factory) -> Copy:
    """A copy with all papers in which nothing has run."""
    return copy_repository(tmp_path_factory.mktemp("whole"), papers=None)


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Copy:
    """A copy in which `all` has run."""
    copy = copy_repository(tmp_path_factory.mktemp("built"))
    result = copy.snakemake("all", "--cores", "2")
    assert result.status == 0, result.text
    (copy.folder / "first_run.txt").write_text(result.text)
    return copy
