"""Where files are looked for, what is refused, and what an interruption leaves behind."""

import bz2
import hashlib
import json
import re
import shutil
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import hostile_servers
import pytest

from replifed import cli
from replifed.data import download as downloading
from replifed.data import fetch as fetching
from replifed.data.catalogue import CATALOGUE, Counts, Dataset, Form, RawFile
from replifed.data.fetch import fetch, replaceable
from replifed.data.pins import find_pin
from replifed.errors import DataError, ReplifedError
from replifed.store import hashes, manifest

TEXT = b"0 1:0.5 3:2\n1 2:1\n1 1:1 4:-1\n"
OTHER = b"0 1:0.75 3:2\n1 2:1\n1 1:1 4:-1\n"
SAMPLE = b"0 1:1\n1 2:1\n"
SHA, OTHER_SHA = (hashlib.sha256(text).hexdigest() for text in (TEXT, OTHER))
PAGE = b"<!DOCTYPE html><html>Please log in to the guest network</html>"


@pytest.fixture
def tmp_path(tmp_path):
    """A folder in a folder of its own, so that no two tests share what lies beside it."""
    (tmp_path / "inner").mkdir()
    return tmp_path / "inner"


@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    """No mirror, no proxy; real addresses are never asked."""
    for name in ("REPLIFED_MIRROR", "REPLIFED_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "*")


class Files(hostile_servers.Server):
    """Serves files by name; it notes each request and can break off a transfer."""

    def __init__(self):
        self.files, self.requests, self.break_after = {}, [], []
        self.content_type = "application/octet-stream"
        super().__init__()

    def answer_to(self, name):
        self.requests.append(f"/{name}")
        if name not in self.files:
            return hostile_servers.MISSING
        whole = hostile_servers.answer(self.files[name], f"Content-Type: {self.content_type}")
        lost = len(self.files[name]) - self.break_after.pop(0) if self.break_after else 0
        return whole[: len(whole) - lost]


@pytest.fixture
def server():
    with closing(Files()) as made:
        yield made


def toy(*files, substitute=False, **changes):
    files = files or (RawFile("toy", "libsvm/toy"),)
    forms = (Form("plain", "original", files, "libsvm"),)
    if substitute:
        file = RawFile("sample", "other/sample")
        forms += (Form("sample", "substitute", (file,), "libsvm", "toy sample", Counts(2, 4, 2)),)
    stand_in = {"generator": "digits", "class_sizes": (1, 1)}
    record = Dataset("toy", "Toy", "binary", "", "none", "", Counts(3, 4, 2, 5), forms, stand_in)
    return replace(record, **changes)


def put(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def left(raw):
    """Names of all files under `raw`, but for locks and recorded hashes."""
    if not raw.exists():
        return []
    names = (path.relative_to(raw).as_posix() for path in raw.rglob("*") if path.is_file())
    return sorted(name for name in names if not re.search(r"\.lock$|\.hashes/", name))


KEPT = ["toy.json", "toy/toy"]


# Where files are found


@pytest.mark.parametrize("place", ["libsvm/toy", "toy", "toy/toy"])
@pytest.mark.parametrize("by", ["argument", "environment"])
def test_mirror(tmp_path, monkeypatch, place, by):
    raw, mirror = tmp_path / "raw", tmp_path / "mirror"
    with pytest.raises(DataError, match=r"mirror .*mirror is no folder; correct data.mirror"):
        fetch(toy(), raw, mirror=mirror)
    put(mirror, place, TEXT)
    if by == "environment":
        monkeypatch.setenv("REPLIFED_MIRROR", str(mirror))
    record = fetch(toy(), raw, policy="real", **({} if by == "environment" else {"mirror": mirror}))
    file = {"name": "toy", "sha256": SHA, "bytes": len(TEXT)}
    known = {"id": "toy", "form": "plain", "kind": "original", "stamp": "", "policy": "real"}
    assert record == {**known, "files": [file]}
    assert json.loads((raw / "toy.json").read_text()) == record
    assert (raw / "toy" / "toy").read_bytes() == TEXT
    assert left(raw) == KEPT
    # Fetching once more changes nothing; a lost or damaged record is written anew, of what lies there.
    before = (raw / "toy.json").stat().st_mtime_ns
    assert fetch(toy(), raw, policy="real") == record
    assert (raw / "toy.json").stat().st_mtime_ns == before
    for spoil in (Path.unlink, lambda file: file.write_bytes(b"")):
        spoil(raw / "toy.json")
        assert fetch(toy(), raw, policy="real") == record
        assert json.loads((raw / "toy.json").read_text()) == record


def test_url(tmp_path, server):
    server.files["toy"] = TEXT
    dataset = toy(RawFile("toy", "toy", (server.url("gone"), server.url("toy"))))
    record = fetch(dataset, tmp_path)
    assert record["kind"] == "original"
    assert (tmp_path / "toy" / "toy").read_bytes() == TEXT
    assert left(tmp_path) == KEPT
    (tmp_path / "toy" / "toy").unlink()  # lost, though recorded: fetched once more
    assert fetch(dataset, tmp_path) == record
    assert server.requests == ["/gone", "/toy"] * 2


def test_local_forms_go_before_urls(tmp_path, server):
    server.files["toy"] = TEXT
    plain = Form("plain", "original", (RawFile("toy", "toy", (server.url("toy"),)),), "libsvm")
    packed = Form("bz2", "original", (RawFile("toy.bz2", "toy.bz2"),), "libsvm")
    put(tmp_path / "mirror", "toy.bz2", bz2.compress(TEXT))
    dataset = toy(forms=(plain, packed))
    assert fetch(dataset, tmp_path / "raw", mirror=tmp_path / "mirror")["form"] == "bz2"
    assert server.requests == []


def test_substitute(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("REPLIFED_OFFLINE", "1")
    put(tmp_path / "mirror", "other/sample", SAMPLE)
    dataset, raw, mirror = toy(substitute=True), tmp_path / "raw", tmp_path / "mirror"
    with pytest.raises(DataError, match=r"or accept the substitute \(toy sample\)"):
        fetch(dataset, raw, policy="real", mirror=mirror)
    assert left(raw) == []
    record = fetch(dataset, raw, policy="real", mirror=mirror, substitutes=True)
    assert (record["kind"], record["stamp"]) == ("substitute", "toy sample")
    record = fetch(dataset, raw, mirror=mirror)
    assert record["kind"] == "substitute"
    assert "WARNING: toy: the original is not available" in capsys.readouterr().err
    put(mirror, "libsvm/toy", TEXT)
    assert fetch(dataset, raw, mirror=mirror, refresh=True)["kind"] == "original"


def test_policy_surrogate_looks_for_nothing(tmp_path, server):
    server.files["toy"] = TEXT
    put(tmp_path / "mirror", "libsvm/toy", b"wrong")
    dataset = toy(RawFile("toy", "libsvm/toy", (server.url("toy"),)))
    record = fetch(dataset, tmp_path / "raw", policy="surrogate", mirror=tmp_path / "mirror")
    assert (record["kind"], record["files"]) == ("surrogate", [])
    assert left(tmp_path / "raw") == ["toy.json"]
    assert server.requests == []


def test_policy_real_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("REPLIFED_OFFLINE", "1")
    dataset = toy(RawFile("toy", "libsvm/toy", ("https://example.org/toy",), sha256=SHA))
    with pytest.raises(DataError) as caught:
        fetch(dataset, tmp_path, policy="real")
    said = str(caught.value)
    for part in (
        "toy is not available",
        "REPLIFED_OFFLINE",
        "https://example.org/toy",
        SHA,
        f"{tmp_path}/toy",
    ):
        assert part in said
    assert "\n" not in said and left(tmp_path) == []


def test_a_mirror_that_has_by_now_what_a_surrogate_stands_for_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("REPLIFED_OFFLINE", "1")
    raw, mirror, w8a = tmp_path / "raw", tmp_path / "mirror", CATALOGUE["w8a"]
    mirror.mkdir()
    assert fetch(w8a, raw, mirror=mirror)["kind"] == "surrogate"
    assert replaceable(raw, mirror) == []
    [file] = w8a.forms[0].files
    (mirror / file.name).write_text("any")
    assert replaceable(raw, mirror) == ["w8a"]
    whole = (raw / "w8a.json").read_bytes()
    put(raw, "w8a.json", b"damaged")  # whoever reads it names it
    assert replaceable(raw, mirror) == []
    put(raw, "w8a.json", whole)
    fetch(w8a, raw, policy="surrogate")  # now it is asked for
    assert replaceable(raw, mirror) == []


def test_auto_falls_back_loudly_and_stays_until_refreshed(tmp_path, server, capsys, monkeypatch):
    server.files["toy"] = TEXT
    dataset = toy(RawFile("toy", "toy", (server.url("toy"),)))
    monkeypatch.setenv("REPLIFED_OFFLINE", "1")
    assert fetch(dataset, tmp_path)["kind"] == "surrogate"
    warning = capsys.readouterr().err
    assert warning.count("\n") == 1 and "toy: the data are not available; a SURROGATE" in warning
    monkeypatch.delenv("REPLIFED_OFFLINE")
    assert fetch(dataset, tmp_path)["kind"] == "surrogate"
    assert server.requests == []
    assert fetch(dataset, tmp_path, refresh=True)["kind"] == "original"
    requests = len(server.requests)
    assert fetch(dataset, tmp_path, refresh=True)["kind"] == "original"
    assert len(server.requests) == requests
    # A change of policy is followed.
    assert fetch(dataset, tmp_path, policy="surrogate")["kind"] == "surrogate"
    assert fetch(dataset, tmp_path)["kind"] == "original"


CUT = bz2.compress(TEXT)[:-5]


WRONG = [
    (TEXT[:-7], {}, "instead of|line 3"),
    (TEXT[:-7], {"sha256": SHA}, SHA),
    (OTHER, {"sha256": SHA}, f"its hash is {OTHER_SHA}, the official sha256 is {SHA}"),
    (OTHER, {"md5": hashlib.md5(TEXT).hexdigest()}, f"the official md5 is {hashlib.md5(TEXT).hexdigest()}"),
    (PAGE, {}, "is a web page, not toy"),
    (PAGE, {"sha256": SHA}, "is a web page, not toy"),
    (SAMPLE, {}, "2 rows instead of 3"),
    (b"", {}, "is empty"),
    (b"0 1:0.5 3:x\n", {}, "line 1: '3:x': the value is not a number"),
    (CUT, {}, "truncated: its bzip2 stream ends early"),
    (
        CUT,
        {"sha256": hashlib.sha256(bz2.compress(TEXT)).hexdigest()},
        "truncated: its bzip2 stream ends early",
    ),
    (OTHER, {"content_sha256": "0" * 64}, "the content hash is .* instead of " + "0" * 64),
]


# What is refused


@pytest.mark.parametrize("where", ["mirror", "raw"])
@pytest.mark.parametrize(("content", "known", "message"), WRONG)
def test_wrong_file_is_an_error(tmp_path, where, content, known, message):
    raw, mirror, name = tmp_path / "raw", tmp_path / "mirror", "toy.bz2" if content is CUT else "toy"
    path = put(mirror, name, content) if where == "mirror" else put(raw, f"toy/{name}", content)
    mirror.mkdir(exist_ok=True)
    of_data = {key: value for key, value in known.items() if key == "content_sha256"}
    dataset = toy(RawFile(name, name, **{key: known[key] for key in known.keys() - of_data}), **of_data)
    for policy in ("auto", "real"):
        with pytest.raises(DataError, match=message) as caught:
            fetch(dataset, raw, policy=policy, mirror=mirror)
        assert "\n" not in str(caught.value)
        assert of_data or str(path) in str(caught.value)
        # The user's own file stays; nothing else is kept.
        assert left(raw) == ([f"toy/{name}"] if where == "raw" else [])


@pytest.mark.parametrize("place", ["url", "mirror", "raw folder"])
def test_an_original_without_a_hash_is_pinned_on_first_use(tmp_path, server, monkeypatch, capsys, place):
    """Later another file of the same counts is refused, whatever else was deleted, until the pin is."""
    raw, mirror, pin = tmp_path / "raw", tmp_path / "mirror", tmp_path / "pins/toy.json"
    mirror.mkdir()
    urls = (server.url("toy"),) if place == "url" else ()
    if place != "url":
        monkeypatch.setenv("REPLIFED_OFFLINE", "1")

    def fetched(content):
        shutil.rmtree(raw, ignore_errors=True)
        server.files["toy"] = content
        if place != "url":
            put(mirror if place == "mirror" else raw / "toy", "toy", content)
        return fetch(toy(RawFile("toy", "toy", urls)), raw, policy="real", mirror=mirror)

    def pinned():
        return [(file["sha256"], file["bytes"]) for file in json.loads(pin.read_text())["files"]]

    for content, fault in ((SAMPLE, "2 rows instead of 3"), (TEXT[:-1], "no line end")):
        with pytest.raises(DataError, match=fault):
            fetched(content)
        assert not pin.exists()
    fetched(TEXT)
    assert pinned() == [(SHA, len(TEXT))]
    assert json.loads(pin.read_text())["counts"] == {"rows": 3, "features": 4, "classes": 2, "nonzeros": 5}
    assert re.fullmatch(rf"replifed: toy: no hash of toy is published; .*{pin}\n", capsys.readouterr().err)
    fetched(TEXT)
    assert capsys.readouterr().err == ""
    with pytest.raises(DataError) as caught:
        fetched(OTHER)
    where = {"url": server.url("toy"), "mirror": mirror / "toy", "raw folder": raw / "toy/toy"}[place]
    remedy = f"put the right one into {raw / 'toy'}" if place == "url" else "delete or replace it"
    assert str(caught.value) == (
        f"{where} is not toy of toy: its hash is {OTHER_SHA}, the sha256 pinned on first use is {SHA}; "
        f"{remedy}, or accept it as the original: `rm {pin}`, then the same command again"
    )
    assert left(raw) == (["toy/toy"] if place == "raw folder" else [])
    pin.unlink()
    assert fetched(OTHER)["files"][0]["sha256"] == OTHER_SHA
    assert pinned() == [(OTHER_SHA, len(OTHER))]


def test_another_form_must_have_the_numbers_that_are_pinned(tmp_path):
    plain = Form("plain", "original", (RawFile("toy", "toy"),), "libsvm")
    packed = Form("bz2", "original", (RawFile("toy.bz2", "toy.bz2"),), "libsvm")
    dataset, pin = toy(forms=(plain, packed)), tmp_path / "pins/toy.json"
    put(tmp_path / "raw/toy", "toy", TEXT)
    fetch(dataset, tmp_path / "raw")
    numbers = json.loads(pin.read_text())["content_sha256"]
    (tmp_path / "raw/toy/toy").unlink()
    path = put(tmp_path / "raw/toy", "toy.bz2", bz2.compress(OTHER))
    with pytest.raises(DataError) as caught:
        fetch(dataset, tmp_path / "raw")
    assert re.fullmatch(
        f"{path} is not toy: its content hash is [0-9a-f]{{64}}, "
        f"but toy, pinned on first use, has {numbers}; .*",
        str(caught.value),
    )
    path.write_bytes(bz2.compress(TEXT))
    assert fetch(dataset, tmp_path / "raw")["form"] == "bz2"
    assert [file["name"] for file in json.loads(pin.read_text())["files"]] == ["toy", "toy.bz2"]


def test_a_pin_that_is_damaged_or_edited_is_named(tmp_path):
    put(tmp_path / "raw/toy", "toy", TEXT)
    fetch(toy(), tmp_path / "raw")
    pin = tmp_path / "pins/toy.json"
    whole = pin.read_bytes()
    flipped = [whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1 :] for k in range(0, len(whole) - 1, 7)]
    other = whole.replace(SHA.encode(), OTHER_SHA.encode())
    for content in (*flipped, other, whole[:100], b"", b"\xff", b"[" * 100_000):
        pin.write_bytes(content)
        with pytest.raises(DataError, match=f"{pin} (is not the pin|was edited).*`rm {pin}`") as caught:
            find_pin(pin)
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000
    with pytest.raises(DataError, match="is not the pin"):
        fetch(toy(), tmp_path / "raw")
    pin.write_bytes(whole)
    pin.rename(pin.with_name("a9a.json"))
    with pytest.raises(DataError, match=r"a9a\.json was edited, or is another data set's"):
        find_pin(pin.with_name("a9a.json"))


def test_verify_compares_raw_files_with_their_pins(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = put(Path("raw/toy"), "toy", TEXT)
    fetch(toy(), Path("raw"))
    verify = ["manifest", "verify", "manifest.csv", "--folders", "raw/toy", "--raw-dir", "raw"]

    def write():
        manifest.write(["raw/toy/toy", "raw/toy.json"], Path("manifest.csv"))
        hashes.record([Path("manifest.csv")])

    hashes.record([Path("raw/toy.json")])
    write()
    assert cli.main(verify) == 0
    path.write_bytes(OTHER)
    hashes.record([path])  # the file, its record and the manifest have changed together
    write()
    capsys.readouterr()
    assert cli.main(verify) == 1
    fault, last = capsys.readouterr().out.splitlines()
    assert fault.startswith(f"raw/toy/toy: its sha256 is {OTHER_SHA}, that pinned on first use is {SHA}; ")
    assert last.endswith("1 error")
    path.write_bytes(TEXT)
    hashes.record([path])
    write()
    Path("pins/toy.json").write_text("{}")
    assert cli.main(verify) == 1
    assert capsys.readouterr().out.startswith("pins/toy.json is not the pin of a data set (")


def test_downloads_are_checked(tmp_path, server):
    server.files |= {"bad": OTHER, "toy": TEXT}
    bad = RawFile("toy", "toy", (server.url("bad"),), sha256=SHA)
    with pytest.raises(DataError, match=f"{server.url('bad')} is not toy .*{SHA}"):
        fetch(toy(bad), tmp_path)
    assert left(tmp_path) == []
    both = replace(bad, urls=(server.url("bad"), server.url("toy")))
    # What is known to be right is kept, so that the next try fetches only the rest.
    with pytest.raises(DataError, match="404"):
        fetch(toy(both, RawFile("more", "more", (server.url("more"),))), tmp_path, policy="real")
    assert left(tmp_path) == ["toy/toy"]
    assert fetch(toy(both), tmp_path)["kind"] == "original"


@pytest.mark.parametrize("kind", ["text/html", "application/octet-stream"])
def test_web_page_instead_of_data(tmp_path, server, kind, capsys):
    server.files["toy"] = PAGE
    server.content_type = kind
    dataset = toy(RawFile("toy", "toy", (server.url("toy"),)))
    with pytest.raises(DataError, match="the server answered with a web page, not with data"):
        fetch(dataset, tmp_path, policy="real")
    assert fetch(dataset, tmp_path)["kind"] == "surrogate"
    assert "web page" in capsys.readouterr().err
    assert left(tmp_path) == ["toy.json"]


# Interruptions


def test_broken_transfer_is_tried_again(tmp_path, server, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    server.files["toy"] = TEXT
    dataset = toy(RawFile("toy", "toy", (server.url("toy"),), sha256=SHA))
    server.break_after = [3, 10, 3]
    with pytest.raises(DataError, match=r"toy is not available .*the connection broke off"):
        fetch(dataset, tmp_path, policy="real")
    assert left(tmp_path) == []
    server.break_after = [10]
    put(tmp_path, "toy/.incoming/rubbish", b"of a killed run")
    fetch(dataset, tmp_path, policy="real")
    assert server.requests == ["/toy"] * 5
    assert (tmp_path / "toy" / "toy").read_bytes() == TEXT
    assert left(tmp_path) == KEPT


QUICK = (
    *("head a byte at a time", "endless", "endless body of a redirect", "silent in the body", "bomb"),
    *("length in words", "length above the limit", "redirect to half a bracket", "status with an escape"),
    *("cut, then resumed", "cut, then resumed with other content", "cut, then resumed elsewhere"),
)
ANSWERS = [
    pytest.param(one, marks=[pytest.mark.on_demand] * (one not in QUICK)) for one in hostile_servers.ANSWERS
]


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_hostile_server_ends_in_the_right_file_or_in_one_line(monkeypatch, kind):
    monkeypatch.setattr(downloading, "_GRACE", 3)
    monkeypatch.setattr(downloading, "_TIMEOUT", (1, 1))
    monkeypatch.setattr(downloading, "_PAUSES", (0, 0))
    with closing(hostile_servers.Server()) as made:
        for known in [True] if kind in QUICK else [True, False]:
            assert hostile_servers.fault(made, kind, known) is None


@pytest.mark.parametrize("step", ["read_form", "copyfile", "write_record"])
def test_kill_leaves_nothing_under_a_final_name(tmp_path, monkeypatch, step):
    def dies(*args, **kwargs):
        raise KeyboardInterrupt

    from replifed.data import parse

    target = {"read_form": parse, "copyfile": fetching.shutil, "write_record": fetching}[step]
    put(tmp_path / "mirror", "toy", TEXT)
    with monkeypatch.context() as patch:
        patch.setattr(target, step, dies)
        with pytest.raises(KeyboardInterrupt):
            fetch(toy(), tmp_path / "raw", mirror=tmp_path / "mirror")
    # A file that has passed its checks may be in place before its record; it is then simply checked again.
    assert left(tmp_path / "raw") in ([], ["toy/toy"])
    assert not (tmp_path / "raw" / "toy.json").exists()
    assert fetch(toy(), tmp_path / "raw", mirror=tmp_path / "mirror")["kind"] == "original"


def test_full_disk(tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    put(tmp_path / "mirror", "toy", TEXT)
    monkeypatch.setattr(fetching.shutil, "copyfile", full)
    with pytest.raises(ReplifedError, match="the disk is full"):
        fetch(toy(), tmp_path / "raw", mirror=tmp_path / "mirror")
    assert left(tmp_path / "raw") == []


# Hosts


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("http://127.0.0.1:{port}/toy", r"no connection to 127\.0\.0\.1 \(.*refused\)"),
        ("http://dead.invalid/toy", r"no connection to dead\.invalid \(.*dead\.invalid"),
    ],
)
def test_a_dead_host_is_named_and_not_asked_again(tmp_path, monkeypatch, url, fault):
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("asked again"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    dataset = toy(RawFile("toy", "toy", (url.format(port=port),)))
    with pytest.raises(DataError, match=f"toy is not available .*{fault}"):
        fetch(dataset, tmp_path, policy="real")


def test_concurrent_jobs(tmp_path):
    """Jobs that fetch the same data set at once take turns (the lock holds between threads as well)."""
    put(tmp_path / "mirror", "toy", TEXT)
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(fetch, toy(), tmp_path / "raw", mirror=tmp_path / "mirror") for _ in range(8)]
    assert all(job.result() == jobs[0].result() for job in jobs)
    assert left(tmp_path / "raw") == KEPT
