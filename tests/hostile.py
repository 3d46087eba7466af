"""Inputs that mean harm, on demand: python tests/hostile.py [KIND ...] [--most N] [--seconds S].

A kind is a function in `KINDS` that yields cases: name, file and its bytes, reader. Each case runs in a child
process with at most `--memory` GiB of addresses, and has to be read, or refused in one line. A traceback, a
crash, memory beyond that, and so many seconds without an end or a word of progress are faults.
The last lines are a table, a row a kind; the exit status is 1 if there was a fault.

To add a kind, write such a function and decorate it with `kind`. A reader gets the path of the file.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import json
import lzma
import os
import random
import resource
import struct
import sys
import tempfile
import time
import traceback
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from replifed.errors import ReplifedError

Reader = Callable[[Path], Any]
# Bytes that data may unpack to, or need. By default it is 32 times that, which takes as much longer.
MOST = 1 << 26


class Case(NamedTuple):
    """An input, and what reads it; the name of the file decides its form."""

    name: str
    file: str
    content: bytes
    read: Reader


KINDS: dict[str, Callable[[int], Iterable[Case]]] = {}


def kind(function: Callable[[int], Iterable[Case]]) -> Callable[[int], Iterable[Case]]:
    """Add a kind of cases, by the name of its function; it is called with how many to make of each seed."""
    KINDS[function.__name__] = function
    return function


# --- Readers ---


def own(path: Path, **settings: Any) -> None:
    """Read a custom data set, standardise it, and say what it shows."""
    from replifed.data.findings import findings
    from replifed.data.own import parse, read

    settings = {"path": str(path), "standardise": True, "limit_gb": MOST / 2**30, **settings}
    parse("hostile", settings, path.with_name("out.npz"))
    findings(read("hostile", settings), 0.01)


def built_in(parser: str, path: Path, *more: Any, **counts: int) -> None:
    """Read a raw file of the catalogue."""
    from replifed.data.catalogue import Counts
    from replifed.data.parse import PARSERS
    from replifed.store import limits

    with limits.limit(MOST, "the file is damaged"):
        PARSERS[parser]([path], Counts(**counts), *more)


def idx(path: Path) -> None:
    """Read an idx file."""
    from replifed.data.images import idx_array

    idx_array(path)


def settings(path: Path) -> None:
    """Read a file of settings."""
    from replifed.settings.reading import read_file

    read_file(path)


def claims(path: Path) -> None:
    """Read and print a file of claims."""
    from replifed.claims.files import read, show

    show(read(path))


def log(path: Path) -> None:
    """Read the log of a run, as one experiment."""
    from replifed.logs.histories import logged, settings_of
    from replifed.logs.reading import read

    logged([read(path).frame], settings_of({"loss": "lower"}))


def tuned(path: Path) -> None:
    """Read the outcome of a search."""
    from replifed.store.tuned import read_tuned

    read_tuned(path, "fedht")


def table(path: Path) -> None:
    """Read a parsed table, and use it."""
    from replifed.data.table import load

    X = load(path).X
    X @ np.ones(X.shape[1])


# --- Small sound files, which are mutated ---

NUMBERS = np.arange(40.0).reshape(10, 4)
SVM = b"".join(b"%d 1:%g 3:%d\n" % (1 if i % 2 else -1, i / 3, i + 1) for i in range(40))
CSV = b"a,b,site,y\n" + b"".join(b"%g,%d,h%d,%d\n" % (i / 3, i % 5, i % 3, i % 2) for i in range(40))
STORAGE = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n"


def saved(write: Callable[[Any], Any]) -> bytes:
    """Bytes that `write` writes to a stream."""
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def zipped(**members: bytes) -> bytes:
    """A zip file, its members by name with / for __ and . for _."""

    def write(stream: Any) -> None:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name.replace("__", "/").replace("_", "."), content)

    return saved(write)


def text(value: str) -> bytes:
    """A text in a pickle."""
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def checkpoint(program: bytes) -> bytes:
    """A checkpoint whose pickle is `program`, behind its head."""
    return zipped(a__data_pkl=b"\x80\x02" + program, a__data__0=bytes(16))


def seeds() -> Iterator[Case]:
    """A sound file of each form."""
    import pandas as pd
    from scipy.io import savemat

    arrays = {"X": NUMBERS, "y": np.arange(10) % 2}
    frame = pd.read_csv(io.BytesIO(CSV))
    columns = {"label": "y", "client": "site"}
    pixels = b"\0\0\x08\x03" + struct.pack(">III", 5, 4, 4) + bytes(range(80))
    ratings = b"".join(
        b"%d::%d::%d::97\n" % (u, f, u * f % 5 + 1) for u in range(1, 15) for f in range(1, 15)
    )
    frames = {"dat": np.arange(120, dtype=np.uint8).reshape(4, 5, 6)}
    tensor = b"}" + text("w") + TENSOR + b"(" + STORAGE + b"K\x00K\x02K\x02\x86K\x02K\x01\x86\x89tRs."
    yaml = b"papers: [fedht]\nfedht: &a {seed: 1, x: [1.5, yes, 2001-01-01, 0x1f]}\nother: *a\n"
    yield Case("own csv", "x.csv", CSV, partial(own, **columns))
    yield Case("own csv, words", "x.csv", CSV, partial(own, label="site", loss="softmax"))
    yield Case("own npz", "x.npz", saved(partial(np.savez, client=np.arange(10) % 3, **arrays)), own)
    yield Case("own npz, packed", "x.npz", saved(partial(np.savez_compressed, **arrays)), own)
    yield Case("own parquet", "x.parquet", saved(frame.to_parquet), partial(own, **columns))
    yield Case("own libsvm", "x.svm", SVM, own)
    for end, pack in (("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)):
        yield Case(f"libsvm.{end}", f"x.{end}", pack(SVM), partial(built_in, "libsvm"))
    yield Case("idx", "x", pixels, idx)
    yield Case("idx.gz", "x.gz", gzip.compress(pixels), idx)
    read = partial(built_in, "ratings", rows=30, features=30)
    yield Case("ratings", "x.dat", ratings, read)
    yield Case("ratings.zip", "x.zip", zipped(m__ratings_dat=ratings), read)
    packed = saved(lambda to: savemat(to, frames, do_compression=True))
    yield Case("mat", "x.mat", packed, partial(built_in, "mat_frames"))
    yield Case("checkpoint", "x.pt", checkpoint(tensor), _state)
    yield Case("yaml", "x.yaml", yaml, settings)
    yield Case("claims", "x.csv", _claims(), claims)
    run = pd.DataFrame({"round": range(20), "loss": 0.9 ** np.arange(20)})
    lines = run.to_csv(index=False).encode()
    history = {"metrics_centralized": {"loss": run.to_numpy().tolist()}}
    yield Case("log", "x.csv", lines, log)
    yield Case("log, UTF-16", "x.csv", lines.decode().encode("utf-16"), log)
    yield Case("log, packed", "x.csv.gz", gzip.compress(lines), log)
    yield Case("log, no header", "x.txt", lines.partition(b"\n")[2], log)
    yield Case("log, row of rounds", "x.csv", run.set_index("round").T.to_csv(index=False).encode(), log)
    yield Case("log, Flower", "x.json", json.dumps(history).encode(), log)
    yield Case("log, JSON lines", "x.jsonl", run.to_json(orient="records", lines=True).encode(), log)
    yield Case("log, npz", "x.npz", saved(partial(np.savez, **run.to_dict("list"))), log)
    yield Case("log, npy", "x.npy", saved(lambda to: np.save(to, run.to_numpy())), log)
    yield Case("log, parquet", "x.parquet", saved(run.to_parquet), log)
    yield Case("tuned", "x.json", b'{"method": "fedht", "meta": {"format": 1, "settings": {}}}', tuned)


def _state(path: Path) -> None:
    from replifed.data.checkpoints import read_state

    read_state(path)


def _claims() -> bytes:
    from replifed.claims.verdicts import COLUMNS

    row = dict.fromkeys(COLUMNS, "") | {"statement_id": "a", "verdict": "holds", "source": "printed"}
    row |= {"id": "a", "data": "none", "kind": "value", "measured": "1"}
    return "\n".join(map(",".join, [COLUMNS, *[[row[key] for key in COLUMNS]] * 40, [""]])).encode()


_TOKENS = (
    b"\0|\xff\xff\xff\xff|\x7f\xff\xff\xff|nan|inf|1e999|-1|99999999999999999999|\"|'|\n|\r\n|,|;|:|[|{|}|"
    b"&a |*a|<<: |\xef\xbb\xbf|\xc3\x28|1_0|0x10|\t|#|- |2147483648|4294967295|!!python/object:os.system x"
).split(b"|")


def mutated(content: bytes, rng: random.Random) -> bytes:
    """A file with a few bytes flipped, cut, repeated, or replaced."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        place, many = rng.randrange(max(len(data), 1)), rng.randrange(1, 60)
        choice = rng.randrange(7)
        if choice <= 1 and data:
            data[place % len(data)] ^= 1 << rng.randrange(8)
        elif choice == 2:
            del data[place:]
        elif choice == 3:
            del data[place : place + many]
        elif choice == 4:
            data[place:place] = data[place : place + many]
        else:
            token = rng.choice(_TOKENS)
            data[place : place + (choice - 5) * len(token)] = token
    return bytes(data)


@kind
def mutations(most: int) -> Iterator[Case]:
    """Sound files of every form, mutated."""
    for seed in seeds():
        yield seed
        for number in range(most):
            content = mutated(seed.content, random.Random(f"{seed.name} {number}"))
            yield seed._replace(name=f"{seed.name} {number}", content=content)


# --- Small files that ask for much ---


def array_head(shape: tuple[int, ...], kind: str = "<f8") -> bytes:
    """The head of an array in numpy's format, without its numbers."""
    entries = {"descr": kind, "fortran_order": False, "shape": shape}
    return saved(lambda to: np.lib.format.write_array_header_2_0(to, entries))


def nested(count: int) -> bytes:
    """A tuple in a pickle that is doubled so many times."""
    return b")q\x00" + b"q\x00h\x00\x86" * count


def whole(number: int) -> bytes:
    """A whole number in a pickle."""
    return b"J" + struct.pack("<i", number)


def matlab(mebibytes: int) -> bytes:
    """A MATLAB file with one variable of so many zeros."""
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(mebibytes)) + packer.flush()
    return b" " * 124 + b"\0\1IM" + struct.pack("<II", 15, len(packed)) + packed


def long_zip(name: str, block: bytes, count: int) -> bytes:
    """A zip whose one member is a block, so many times."""

    def write(stream: Any) -> None:
        with (
            zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
            archive.open(name, "w", force_zip64=True) as member,
        ):
            for _ in range(count):
                member.write(block)

    return saved(write)


def long_parquet(groups: int) -> bytes:
    """A parquet file of so many times ten million equal rows."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = pa.table({"a": np.zeros(10**7), "y": np.ones(10**7)})

    def write(stream: Any) -> None:
        with parquet.ParquetWriter(stream, rows.schema, compression="zstd") as writer:
            for _ in range(groups):
                writer.write_table(rows)

    return saved(write)


@kind
def bombs(most: int) -> Iterator[Case]:
    """Small files that unpack to, or ask for, gigabytes, or nest without end."""
    aliases = "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))
    merges = "".join(
        f"a{i}: &a{i} {{<<: [{','.join([f'*a{i - 1}'] * 10)}], k{i}: 1}}\n" for i in range(1, 12)
    )
    for name, content in {
        "aliases": f"a0: &a0 [x]\n{aliases}",
        "merges": f"a0: &a0 {{k0: 1}}\n{merges}",
        "itself": "fedplt: &a {experiments: *a}\n",
        "100,000 brackets": "a: " + "[" * 100_000,
        "1,000 brackets": "a: " + "[" * 1000 + "]" * 1000,
        "deep blocks": "".join(" " * i + "a:\n" for i in range(1000)),
        "5,000 digits": "a: " + "9" * 5000,
        "base 60": "a: " + "1:" * 400_000 + "1",
        "a million values": "[" + "1," * 10**6 + "1]",
        "no date": "a: 2001-13-45",
    }.items():
        yield Case(f"yaml, {name}", "x.yaml", content.encode(), settings)
    one, zeros = b"K\x00K\x01\x85", b"\x86K\x00K\x00\x86\x89tRs."
    tensor = b"}" + text("w") + TENSOR
    for name, program in {
        "shape in a shape": tensor + b"(" + STORAGE + one + whole(2**31 - 1) + zeros,
        "strides 0": tensor + b"(" + STORAGE + b"K\x00" + whole(48000) * 2 + zeros,
        "nested storage": nested(60) + b"Q.",
        "nested in a storage": b"(" + nested(40) + text("x") * 4 + b"tQ.",
        "nested key": b"}" + nested(60) + b"K\x01s.",
        "nested shape": tensor + b"(" + STORAGE + b"K\x00" + nested(60) + b"K\x00\x85\x89tRs.",
        "nested arguments": tensor + nested(60) + b"Rs.",
        "deep key": b"})" + b"\x85" * 200_000 + b"K\x01s.",
        "memory of 2^26": b"}r\x00\x00\x00\x04.",
        "os.system": b"cos\nsystem\n" + text("true") + b"\x85R.",
    }.items():
        yield Case(f"checkpoint, {name}", "x.pt", checkpoint(program), _state)
    long_line = gzip.compress(b"0" * (1 << 26)) * 4
    yield Case("libsvm.gz, a line of 256 MB", "x.gz", long_line, partial(built_in, "libsvm"))
    yield Case("libsvm.bz2, a line of 256 MB", "x.bz2", bz2.compress(b"0" * (1 << 26)) * 4, own)
    rows = bz2.compress(b"1 1:1\n" * (1 << 22))
    yield Case("libsvm.bz2, 10^8 rows", "x.bz2", rows * 24, partial(built_in, "libsvm"))
    for index in (2**31 - 1, 2**28, 9 * 10**18):
        yield Case(f"libsvm, feature {index}", "x.svm", b"1 %d:1\n-1 1:1\n" % index, own)
    yield Case("idx, 255 dimensions", "x", b"\0\0\x08\xff" + struct.pack(">I", 1) * 255 + b"x", idx)
    yield Case("idx, 0 x 2^96", "x", b"\0\0\x08\x04" + struct.pack(">IIII", 0, *[2**32 - 1] * 3), idx)
    yield Case("idx, 2^64", "x", b"\0\0\x08\x02" + struct.pack(">II", *[2**32 - 1] * 2), idx)
    head = gzip.compress(b"\0\0\x08\x01" + struct.pack(">I", 2**32 - 1))
    yield Case("idx.gz, 5 GB", "x.gz", head + gzip.compress(bytes(1 << 26)) * 80, idx)
    read = partial(built_in, "ratings", rows=30, features=30)
    yield Case("ratings.zip, 128 MB", "x.zip", long_zip("m/ratings.dat", b"1::1::1\n" * (1 << 17), 128), read)
    yield Case("mat, 256 MB", "x.mat", matlab(256), partial(built_in, "mat_frames"))
    yield Case("parquet, 1e7 rows", "x.parquet", long_parquet(1), own)
    yield Case("csv.gz, 5 GB", "x.csv.gz", gzip.compress(b"1,2\n" * (1 << 24)) * 80, partial(own, form="csv"))
    named = gzip.compress(b"a,y\n") + gzip.compress(b"1,2\n" * (1 << 24)) * 80
    yield Case("csv.gz, 5 GB with a head", "x.csv.gz", named, partial(own, form="csv"))
    yield Case("csv, a million columns", "x.csv", b"a" + b",b" * 10**6 + b"\n", own)
    for name, shape in {"7 TB": (10**12,), "3 GB": (4 * 10**8,), "negative": (-1, -8)}.items():
        yield Case(f"npz, {name}", "x.npz", zipped(X_npy=array_head(shape), y_npy=array_head((2,))), own)
        yield Case(f"table, {name}", "x.npz", zipped(meta_npy=array_head(shape, "|u1")), table)
    packed = long_zip("X.npy", bytes(1 << 20), 128)
    yield Case("npz, 128 MB of zeros", "x.npz", packed, own)
    long_head = b"\x93NUMPY\x02\0" + struct.pack("<I", 10**7) + b"(" * 10**7
    yield Case("npz, a head of 10 MB", "x.npz", zipped(X_npy=long_head, y_npy=array_head((2,))), own)
    for name, content in {
        "16 million lines": b"round,loss\n" + b"1,2\n" * (1 << 24),
        "16 million numbers": b"1,2\n" * (1 << 24),
        "16 million words": b"a b\n" * (1 << 24),
        "64 million blank lines": b"\n" * (1 << 26),
        "a line of 60 MB": b"1," * (30 << 20),
        "10,000 columns": b",".join(b"c%d" % i for i in range(10**4)) + b"\n" + b"1," * 9999 + b"1\n",
        "7 million lines": b"1,2\n" * (7 << 20),
    }.items():
        yield Case(f"log, {name}", "x.csv", content, log)
    for name, content in {
        "brackets": b"[" * 10**5,
        "objects": b'{"a":' * 10**5,
        "lists": b"[" + b"[]," * (1 << 24) + b"[]]",
        "digits": b'{"loss": [' + b"9" * 10**6 + b"]}",
    }.items():
        yield Case(f"log, JSON of {name}", "x.json", content, log)
    yield Case("log, gz of zeros", "x.csv.gz", gzip.compress(bytes(1 << 26)) * 80, log)
    yield Case("log, gz of lines", "x.csv.gz", gzip.compress(b"1,2\n" * (1 << 24)) * 80, log)
    for name, shape in {"7 TB": (10**12,), "3 GB": (4 * 10**8,), "negative": (-1, -8)}.items():
        yield Case(f"log, npy, {name}", "x.npy", array_head(shape), log)
        yield Case(f"log, npz, {name}", "x.npz", zipped(loss_npy=array_head(shape)), log)
    yield Case("log, npz, 2.2 GB of zeros", "x.npz", long_zip("loss.npy", bytes(1 << 20), 2200), log)
    yield Case("log, parquet, 6e7 rows", "x.parquet", long_parquet(6), log)
    yield Case("table, an index beyond", "x.npz", _beyond(), table)
    for name, content in {"brackets": b"[" * 10**5, "digits": b'{"method":' + b"9" * 5000 + b"}"}.items():
        yield Case(f"json, {name}", "x.json", content, tuned)
    yield Case("json, 100 MB of lists", "x.json", b"[" + b"[]," * 33 * 10**6 + b"[]]", tuned)
    yield Case("claims, a field of 1 MB", "x.csv", b"id,paper\n" + b"y" * 10**6 + b",z\n", claims)
    yield Case("claims, no UTF-8", "x.csv", _claims() + b"\xff\n", claims)


def _beyond() -> bytes:
    from replifed.store.npz import write_described

    arrays = {"shape": [2, 3], "data": [1.0, 1.0], "indptr": [0, 1, 2], "y": [1, -1]}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.npz")
        indices = {"indices": np.array([0, 2**30], dtype=np.int32)}
        write_described(path, {key: np.array(value) for key, value in arrays.items()} | indices, {"id": "x"})
        return path.read_bytes()


# --- Running them ---

_LOADED = [
    *("pandas", "pyarrow.csv", "pyarrow.compute", "pyarrow.parquet", "scipy.io", "sklearn.datasets"),
    *("replifed.logs.histories", "replifed.logs.reading", "replifed.claims.files", "replifed.data.own"),
    *("replifed.data.parse", "replifed.data.texts", "replifed.settings.reading", "replifed.store.tuned"),
]


class Outcome(NamedTuple):
    """What came of a case: `result` is read, refused, or a fault."""

    result: str
    words: str
    seconds: float
    mebibytes: float


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _child(case: Case, folder: Path, memory: float) -> Outcome:
    resource.setrlimit(resource.RLIMIT_AS, (int(memory * 2**30),) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    path = folder / case.file
    path.write_bytes(case.content)
    begin, before = time.process_time(), _peak()
    words = ""
    try:
        case.read(path)
        result = "read"
    except ReplifedError as error:
        words = str(error).replace(str(folder), "")
        result = "refused" if "\n" not in words else "several lines"
    except BaseException as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        result, words = "traceback", f"{type(error).__name__}: {error} ({frame.filename}:{frame.lineno})"
    return Outcome(result, words[:300], time.process_time() - begin, max(0.0, _peak() - before))


def run(case: Case, memory: float, seconds: float) -> Outcome:
    """Run a case in a child; it may take longer than `seconds` if it prints its progress."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        told, said = folder / "outcome.json", folder / "said"
        child = os.fork()
        if child == 0:
            stream = os.open(said, os.O_CREAT | os.O_WRONLY)
            os.dup2(stream, 1)
            os.dup2(stream, 2)
            told.write_text(json.dumps(_child(case, folder, memory)))
            os._exit(0)
        begin = heard = time.time()
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            time.sleep(0.002)
            if said.exists() and said.stat().st_size:
                heard = said.stat().st_mtime
            if time.time() - heard > seconds:
                os.kill(child, 9)
                os.waitpid(child, 0)
                return Outcome("without end", f"killed after {seconds:g} s without progress", seconds, 0.0)
        if not told.exists():
            return Outcome("crash", "", time.time() - begin, 0.0)
        return Outcome(*json.loads(told.read_text()))


def main() -> int:
    """Run the kinds that are named, or all; print faults as they come, then a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--most", type=int, default=170, help="mutations of each file; default 170")
    parser.add_argument(
        "--seconds", type=float, default=30, help="without progress; default 30, for a busy machine"
    )
    parser.add_argument("--memory", type=float, default=6, help="GiB of addresses; default 6")
    parser.add_argument("--verbose", action="store_true", help="print every case")
    given = parser.parse_args()
    for module in _LOADED:  # once, not in every child
        import_module(module)
    rows, faults = [], 0
    for name in given.kinds or KINDS:
        counts: Counter[str] = Counter()
        slowest = largest = 0.0
        for case in KINDS[name](given.most):
            found = run(case, given.memory, given.seconds)
            counts[found.result] += 1
            slowest, largest = max(slowest, found.seconds), max(largest, found.mebibytes)
            if given.verbose or found.result not in ("read", "refused"):
                size = f"{found.seconds:.1f} s, {found.mebibytes:.0f} MiB"
                print(f"{case.name}: {found.result} in {size}: {found.words}", flush=True)
        wrong = sum(count for result, count in counts.items() if result not in ("read", "refused"))
        faults += wrong
        rows.append((name, counts.total(), counts["read"], counts["refused"], wrong, slowest, largest))
    print("| kind | cases | read | refused | faults | slowest, s of CPU | most memory, MiB |")
    print("| --- | --: | --: | --: | --: | --: | --: |")
    for *some, slowest, largest in rows:
        print("|", " | ".join([*map(str, some), f"{slowest:.1f}", f"{largest:.0f}"]), "|")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
