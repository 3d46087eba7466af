"""A run history is read as it was written, or not at all."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from replifed.errors import DataError
from replifed.store.histories import read_history, write_history

META = {"settings": {"seed": 1, "sizes": [3, 4]}, "data": {"kind": "surrogate", "stamp": "not the paper's"}}


def table():
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "setting": ["a", "b"] * 20,
            "round": np.arange(40),
            "loss": rng.normal(size=40),
            "gap": [np.nan, -0.0] * 20,
            "done": [True, False] * 20,
        }
    )


@pytest.fixture
def path(tmp_path):
    write_history(tmp_path / "run.parquet", table(), META)
    return tmp_path / "run.parquet"


def test_it_comes_back(path):
    frame, meta = read_history(path)
    pd.testing.assert_frame_equal(frame, table())
    assert meta == META


def test_a_flip_anywhere_changes_nothing_or_is_named(path):
    content = path.read_bytes()
    refused = 0
    for k in range(0, len(content), 29):
        path.write_bytes(content[:k] + bytes([content[k] ^ 4]) + content[k + 1 :])
        try:
            frame, meta = read_history(path)
        except DataError as error:
            assert str(error).startswith(f"{path}: ")
            refused += 1
        else:
            pd.testing.assert_frame_equal(frame, table())
            assert meta == META
    assert refused > 50


@pytest.mark.parametrize(
    "change",
    [
        lambda old: old.set_column(1, "round", [old["round"].to_numpy() + 1]),
        lambda old: old.rename_columns(["setting", "round", "gap", "loss", "done"]),
        lambda old: old.replace_schema_metadata({b"replifed": b'{"data":{"kind":"original"}}'}),
        lambda old: old.replace_schema_metadata(
            {b"replifed": old.schema.metadata[b"replifed"].replace(b"surrogate", b"original")}
        ),
        lambda old: old.take(list(range(40))[::-1]),
    ],
    ids=["a value", "a name", "no hash", "another kind of data", "the order"],
)
def test_what_another_hand_wrote_whole_is_refused(path, change):
    pq.write_table(change(pq.read_table(path)), path)
    with pytest.raises(DataError, match="delete it and run the workflow again"):
        read_history(path)
