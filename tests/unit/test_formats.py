"""What an earlier version stored is refused with what to delete, and never misread."""

import re

import numpy as np
import pandas as pd
import pytest

from replifed.data import table as archive
from replifed.data.table import Table
from replifed.errors import DataError
from replifed.partition import store
from replifed.store import FORMAT, histories, npz

META = {"settings": {}, "data": {"kind": "synthetic", "stamp": ""}}
WHOLE = np.arange(4, dtype="<i4")
# Module, how it writes, how it reads.
STORED = {
    "history": (
        histories,
        lambda file: histories.write_history(file, pd.DataFrame({"round": [1]}), META),
        histories.read_history,
    ),
    "tuned step": (
        histories,
        lambda file: histories.write_tuned(file, {"method": "fedht"}, META),
        lambda file: histories.read_tuned(file, "fedht"),
    ),
    "partition": (npz, lambda file: store.save(file, store.Partition(WHOLE, {1: WHOLE})), store.load),
    "parsed data": (npz, lambda file: archive.save(file, Table(np.eye(2), np.ones(2), {})), archive.load),
}


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("number", [FORMAT - 1, FORMAT + 1, None])
def test_another_version_is_refused_with_what_to_delete(tmp_path, monkeypatch, kind, number):
    module, write, read = STORED[kind]
    file = tmp_path / "stored"
    write(file)
    read(file)
    monkeypatch.setattr(module, "FORMAT", number)
    write(file)
    shown = "no format number" if number is None else f"format {number}"
    line = (
        f"{file}: written by another version ({shown}, expected {FORMAT}); "
        "delete it and run the workflow again"
    )
    with pytest.raises(DataError, match=f"^{re.escape(line)}$"):
        read(file)
