"""A run history is read as it was written, or not at all."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from replifed.errors import DataError
from replifed.store.environment import machine
from replifed.store.histories import MACHINES, SHARE, join, provenance, read_history, write_history

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


# -- shares of a run ----------------------------------------------------------------------------------


@pytest.fixture
def shares(tmp_path):
    """A table in three files; the last one lacks a column."""
    pieces = [table()[:10], table()[10:30], table()[30:].drop(columns="gap")]
    files = [tmp_path / f"{number}.parquet" for number in (1, 2, 3)]
    for number, (file, piece) in enumerate(zip(files, pieces, strict=True), 1):
        write_history(file, piece.reset_index(drop=True), {**META, SHARE: [number, 3]})
    return files


def test_shares_make_the_history_that_one_job_would_have_written(shares, tmp_path):
    join(shares, tmp_path / "joined.parquet")
    frame, meta = read_history(tmp_path / "joined.parquet")
    expected = table()
    expected.loc[30:, "gap"] = np.nan
    pd.testing.assert_frame_equal(frame, expected)
    assert meta == META


def test_shares_may_run_on_several_machines_and_the_history_has_each_once(shares, tmp_path):
    for number, (file, processor) in enumerate(zip(shares, ("a", "b", "a"), strict=True), 1):
        machines = {MACHINES: [{"processor": processor}]}
        write_history(file, read_history(file)[0], {**META, SHARE: [number, 3], **machines})
    join(shares, tmp_path / "joined.parquet")
    assert read_history(tmp_path / "joined.parquet")[1][MACHINES] == [{"processor": "a"}, {"processor": "b"}]


def test_a_history_records_its_machine_but_not_where_logs_were_made():
    assert provenance([], {}, {})[MACHINES] == [machine()]
    assert provenance([], {"logs": "*.csv"}, {})[MACHINES] == []


def test_shares_in_another_order_missing_or_of_another_run_are_refused(shares, path):
    first, second, third = shares
    out = path.with_name("joined.parquet")
    for files in ([second, first, third], [first, second], [first, first, third], [path]):
        with pytest.raises(DataError, match=r"not share \d of \d of a run; delete it"):
            join(files, out)
    write_history(second, table(), {**META, "settings": {"seed": 2}, SHARE: [2, 3]})
    named = r"2.parquet and .*1.parquet are of different runs, by their settings; delete both"
    with pytest.raises(DataError, match=named):
        join(shares, out)
    write_history(first, table(), {"settings": META["settings"], SHARE: [1, 2]})
    write_history(second, table(), {**META, SHARE: [2, 2]})
    with pytest.raises(DataError, match="by their data; delete both"):
        join([first, second], out)
    assert not out.exists()
