"""A file of any form that is damaged is read, or refused in one line."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import random
import struct
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from replifed.claims import files
from replifed.claims.verdicts import COLUMNS
from replifed.data import checkpoints, images, own, table
from replifed.data.catalogue import Counts
from replifed.data.findings import findings
from replifed.data.parse import PARSERS
from replifed.errors import ReplifedError
from replifed.logs.histories import combine_logs, settings_of
from replifed.logs.reading import read as read_log
from replifed.settings.reading import read_file
from replifed.store import limits
from replifed.store.histories import read_tuned
from replifed.store.npz import write_described

# Bytes that data may unpack to, or need.
MOST = 1 << 26
EACH = int(os.environ.get("REPLIFED_DAMAGES", "8"))
X, Y = np.arange(40.0).reshape(10, 4), np.arange(10) % 2
SVM = b"".join(b"%d 1:%g 3:%d\n" % (1 if i % 2 else -1, i / 3, i + 1) for i in range(40))
CSV = b"a,b,site,y\n" + b"".join(b"%g,%d,h%d,%d\n" % (i / 3, i % 5, i % 3, i % 2) for i in range(40))
PIXELS = b"\0\0\x08\x03" + struct.pack(">III", 5, 4, 4) + bytes(range(80))
RATINGS = b"".join(b"%d::%d::%d::97\n" % (u, f, u * f % 5 + 1) for u in range(1, 15) for f in range(1, 15))
YAML = b"papers: [fedht]\nfedht: &a {seed: 1, x: [1.5, yes, 2001-01-01, 0x1f]}\nother: *a\n"
TENSOR = (
    b"\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n("
    b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQK\x00K\x02K\x02\x86K\x02K\x01\x86\x89tRs."
)


class Form(NamedTuple):
    """A sound file, whose name decides its form, and what reads it."""

    file: str
    content: bytes
    read: Callable[[Path], Any]


def own_data(path: Path, **settings: Any) -> None:
    settings = {"path": str(path), "standardise": True, "limit_gb": MOST / 2**30, **settings}
    own.parse("hostile", settings, path.with_name("out.npz"))
    findings(own.read("hostile", settings), 0.01)


def built_in(parser: str, path: Path, **counts: int) -> None:
    with limits.limit(MOST, "the file is damaged"):
        PARSERS[parser]([path], Counts(**counts))


def log(path: Path, metric: str = "loss") -> None:
    combine_logs([read_log(path).frame], settings_of({metric: "lower"}))


def claims(path: Path) -> None:
    files.show(files.read(path))


def saved(write: Callable[[Any], Any]) -> bytes:
    """Bytes that `write` writes to a stream."""
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def zipped(name: str, content: bytes, **more: bytes) -> bytes:
    def write(stream: Any) -> None:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for one, of in {name: content, **more}.items():
                archive.writestr(one, of)

    return saved(write)


def forms() -> Iterator[tuple[str, Form]]:
    columns, frame = {"label": "y", "client": "site"}, pd.read_csv(io.BytesIO(CSV))
    clients = {"X": X, "y": Y, "client": np.arange(10) % 3}
    video = {"dat": np.arange(120, dtype=np.uint8).reshape(4, 5, 6)}
    ratings = partial(built_in, "ratings", rows=30, features=30)
    row = dict.fromkeys(COLUMNS, "") | {"statement_id": "a", "verdict": "holds", "source": "printed"}
    row |= {"id": "a", "data": "none", "kind": "value", "measured": "1"}
    rows = pd.DataFrame([row] * 40)[[*COLUMNS]].to_csv(index=False).encode()
    kept = {"method": "fedht", "meta": {"format": 1, "settings": {}}}
    yield "own csv", Form("x.csv", CSV, partial(own_data, **columns))
    yield "own csv, words", Form("x.csv", CSV, partial(own_data, label="site", loss="softmax"))
    yield "own npz", Form("x.npz", saved(partial(np.savez, **clients)), own_data)
    yield "own npz, packed", Form("x.npz", saved(partial(np.savez_compressed, X=X, y=Y)), own_data)
    yield "own parquet", Form("x.parquet", saved(frame.to_parquet), partial(own_data, **columns))
    yield "own libsvm", Form("x.svm", SVM, own_data)
    for end, pack in (("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)):
        yield f"libsvm.{end}", Form(f"x.{end}", pack(SVM), partial(built_in, "libsvm"))
    yield "idx", Form("x", PIXELS, images.idx_array)
    yield "idx.gz", Form("x.gz", gzip.compress(PIXELS), images.idx_array)
    yield "ratings", Form("x.dat", RATINGS, ratings)
    yield "ratings.zip", Form("x.zip", zipped("m/ratings.dat", RATINGS), ratings)
    packed = saved(lambda to: savemat(to, video, do_compression=True))
    yield "mat", Form("x.mat", packed, partial(built_in, "mat_frames"))
    state = zipped("a/data.pkl", TENSOR, **{"a/data/0": bytes(16)})
    yield "checkpoint", Form("x.pt", state, checkpoints.read_state)
    yield "yaml", Form("x.yaml", YAML, read_file)
    yield "claims", Form("x.csv", rows, claims)
    yield "tuned", Form("x.json", json.dumps(kept).encode(), lambda path: read_tuned(path, "fedht"))
    run = pd.DataFrame({"round": range(20), "loss": 0.9 ** np.arange(20)})
    lines = run.to_csv(index=False).encode()
    history = {"metrics_centralized": {"loss": run.to_numpy().tolist()}}
    for name, file, content in (
        ("log", "x.csv", lines),
        ("log, UTF-16", "x.csv", lines.decode().encode("utf-16")),
        ("log, packed", "x.csv.gz", gzip.compress(lines)),
        ("log, no header", "x.txt", lines.partition(b"\n")[2]),
        ("log, row of rounds", "x.csv", run.set_index("round").T.to_csv(index=False).encode()),
        ("log, Flower", "x.json", json.dumps(history).encode()),
        ("log, JSON lines", "x.jsonl", run.to_json(orient="records", lines=True).encode()),
        ("log, npz", "x.npz", saved(partial(np.savez, **run.to_dict("list")))),
        ("log, npy", "x.npy", saved(lambda to: np.save(to, run.to_numpy()))),
        ("log, parquet", "x.parquet", saved(run.to_parquet)),
    ):
        bare = name in ("log, no header", "log, row of rounds", "log, npy")
        yield name, Form(file, content, partial(log, metric="value") if bare else log)


FORMS = dict(forms())
TOKENS = (
    b"\0|\xff\xff\xff\xff|\x7f\xff\xff\xff|nan|inf|1e999|-1|99999999999999999999|\"|'|\n|\r\n|,|;|:|[|{|}|"
    b"&a |*a|<<: |\xef\xbb\xbf|\xc3\x28|1_0|0x10|\t|#|- |2147483648|4294967295|!!python/object:os.system x"
).split(b"|")


def damaged(content: bytes, rng: random.Random) -> bytes:
    """A file with a few bytes flipped, cut, repeated, or replaced."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        place, many, choice = rng.randrange(max(len(data), 1)), rng.randrange(1, 60), rng.randrange(7)
        if choice <= 1 and data:
            data[place % len(data)] ^= 1 << rng.randrange(8)
        elif choice == 2:
            del data[place:]
        elif choice == 3:
            del data[place : place + many]
        elif choice == 4:
            data[place:place] = data[place : place + many]
        else:
            token = rng.choice(TOKENS)
            data[place : place + (choice - 5) * len(token)] = token
    return bytes(data)


@pytest.mark.parametrize("name", FORMS)
def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path, name):
    """With REPLIFED_DAMAGES=170 some 5,000 files: a few minutes."""
    form = FORMS[name]
    (tmp_path / form.file).write_bytes(form.content)
    if name != "tuned":  # which has no hash
        form.read(tmp_path / form.file)
    for number in range(EACH):
        (tmp_path / form.file).write_bytes(damaged(form.content, random.Random(f"{name} {number}")))
        try:
            form.read(tmp_path / form.file)
        except ReplifedError as error:
            assert "\n" not in str(error), number


def beyond() -> bytes:
    """A parsed table with an index far beyond its columns."""
    arrays = {"shape": [2, 3], "data": [1.0, 1.0], "indptr": [0, 1, 2], "y": [1, -1]}
    arrays = {key: np.array(value) for key, value in arrays.items()} | {"indices": np.array([0, 2**30], "i4")}

    def write(stream: Any) -> None:
        with TemporaryDirectory() as folder:
            path = Path(folder, "x.npz")
            write_described(path, arrays, {"id": "x"})
            stream.write(path.read_bytes())

    return saved(write)


def parsed(path: Path) -> None:
    found = table.load(path).X
    found @ np.ones(found.shape[1])


# Small files that ask for much, or nest without end; test_limits.py has those whose refusal has its words.
ASKS = {
    "parsed table, an index beyond": Form("x.npz", beyond(), parsed),
    "tuned, brackets": Form("x.json", b"[" * 10**5, FORMS["tuned"].read),
    "tuned, digits": Form("x.json", b'{"method":' + b"9" * 5000 + b"}", FORMS["tuned"].read),
    "yaml, deep blocks": Form("x.yaml", b"".join(b" " * i + b"a:\n" for i in range(1000)), read_file),
    "yaml, base 60": Form("x.yaml", b"a: " + b"1:" * 400_000 + b"1", read_file),
    "yaml, itself": Form("x.yaml", b"fedplt: &a {experiments: *a}\n", read_file),
    "log, digits": Form("x.json", b'{"loss": [' + b"9" * 10**6 + b"]}", log),
    "log, objects": Form("x.json", b'{"a":' * 10**5, log),
    "checkpoint, os.system": Form(
        *("x.pt", zipped("a/data.pkl", b"\x80\x02cos\nsystem\nX\x04\0\0\0true\x85R.")), checkpoints.read_state
    ),
}


@pytest.mark.parametrize("name", ASKS)
def test_a_file_that_asks_for_much_is_refused_in_one_line(tmp_path, name):
    file, content, read = ASKS[name]
    (tmp_path / file).write_bytes(content)
    with pytest.raises(ReplifedError) as refused:
        read(tmp_path / file)
    assert "\n" not in str(refused.value)
