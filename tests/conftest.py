"""One thread a process, and the files that take longest first."""

import os

# Before numpy is there: two workers' products would else fight over two cores.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# Workers take whole files in this order, then the others: none is left with a long one at the end.
LONGEST = (
    *("test_real_run", "test_contract", "test_pictures", "test_open_house", "test_fedplt_paper"),
    *("test_planning", "test_reruns", "test_fedmm_paper", "test_toy_paper", "test_fedac_paper"),
    *("test_fedht_claims", "test_qshed_paper", "test_curves", "test_paper_removed", "test_config"),
    *("test_cross", "test_errata", "test_common_methods", "test_variations", "test_growth"),
)


def pytest_collection_modifyitems(items):
    """Sort files by how long they take; tests of a file stay in their order."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))
