"""Servers that do anything, for tests/unit/test_data_fetch.py."""

from __future__ import annotations

import gzip
import hashlib
import resource
import socket
import struct
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from replifed.data.catalogue import Counts, Dataset, Form, RawFile
from replifed.data.fetch import fetch
from replifed.errors import DataError

ROWS = 300
GOOD = b"".join(b"%d 1:0.5 2:%d 4:-1\n" % (row % 2, 2 + row) for row in range(ROWS))
N = len(GOOD)
MOST = 1 << 20
OK = b"HTTP/1.1 200 OK\r\n"
MANY = b"1 1:1 2:0.5\n" * 5000
Send = Callable[[bytes], None]
Answer = bytes | Callable[[Send, bytes, int], None]


def head(*lines: str, status: str = "200 OK") -> bytes:
    """Head of an answer after which the connection is closed."""
    return "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", *lines, "Connection: close", "")).encode()


def answer(body: bytes, *lines: str, length: object = None, status: str = "200 OK") -> bytes:
    """Whole answer, by default with the right length."""
    return head(f"Content-Length: {len(body) if length is None else length}", *lines, status=status) + body


def to(place: str, status: str = "302 Found") -> bytes:
    """Redirect."""
    return answer(b"", f"Location: {place}", status=status)


def slowly(content: bytes) -> Answer:
    """Content, a byte every half second."""

    def send(send: Send, request: bytes, number: int) -> None:
        for byte in content:
            send(bytes([byte]))
            time.sleep(0.5)

    return send


def forever(start: bytes, block: bytes, pause: float = 0.01) -> Answer:
    """Start, then a block again and again."""

    def send(send: Send, request: bytes, number: int) -> None:
        send(start)
        while True:
            send(block)
            time.sleep(pause)

    return send


def silent(start: bytes) -> Answer:
    """Start, then nothing; the connection stays open."""

    def send(send: Send, request: bytes, number: int) -> None:
        send(start)
        time.sleep(600)

    return send


def first(once: bytes, then: bytes) -> Answer:
    """One answer to the first request, another one to later ones."""
    return lambda send, request, number: send(then if number else once)


def resumed(body: bytes, *, etag: str, cut: int = 1000, start: int | None = None) -> Answer:
    """Answer that is cut; to a request for the rest, that of `body` from there, or from another byte."""

    def send(send: Send, request: bytes, number: int) -> None:
        if b"Range: bytes=%d-" % cut not in request:
            send(answer(GOOD, f"ETag: {etag}")[: -(N - cut)])
            return
        begin = cut if start is None else start
        rest, place = body[begin:], f"Content-Range: bytes {begin}-{N - 1}/{N}"
        send(answer(rest, f"ETag: {etag}", place, status="206 Partial Content"))

    return send


def bomb() -> bytes:
    """Zeros, a hundred MiB of them, packed."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(100)) + packer.flush()


def chunked(*chunks: bytes, more: str = "") -> bytes:
    """Answer in chunks, which have their sizes."""
    return head("Transfer-Encoding: chunked", *filter(None, [more])) + b"".join(chunks)


MISSING = answer(b"", status="404 Not Found")
WHOLE = b"%x\r\n" % N + GOOD + b"\r\n0\r\n\r\n"
OTHER = GOOD.replace(b"0.5", b"0.7")
ANSWERS: dict[str, Answer] = {
    "good": answer(GOOD),
    "no length": head() + GOOD,
    "chunks": chunked(WHOLE),
    "chunks and a length": chunked(WHOLE, more="Content-Length: 5"),
    "a byte at a time": slowly(answer(GOOD)),
    "a byte at a time, no length": slowly(head() + GOOD),
    "head a byte at a time": slowly(answer(GOOD, "X-Y: " + 500 * "y")),
    "status line a byte at a time": slowly(b"HTTP/1.1 " + 600 * b"2"),
    "redirect a byte at a time": slowly(to("/good")),
    "endless": forever(head(), MANY),
    "endless in chunks": forever(head("Transfer-Encoding: chunked"), b"%x\r\n" % len(MANY) + MANY + b"\r\n"),
    "endless chunk extension": forever(head("Transfer-Encoding: chunked") + b"5;", b"x" * 60000),
    "endless heads": forever(OK, b"X-A: " + b"b" * 1000 + b"\r\n", 0.001),
    "endless line of the head": forever(OK + b"X: ", b"b" * 60000),
    "endless continues": forever(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.001),
    "endless body of a redirect": forever(head("Location: /good", status="302 Found"), MANY),
    "endless body of an error": forever(head(status="404 Not Found"), MANY),
    "endless trailer": forever(chunked(WHOLE[:-2]), b"X-A: " + b"b" * 1000 + b"\r\n", 0.001),
    "length too long": answer(GOOD, length=N + 1000),
    "length too short": answer(GOOD, length=N - 100),
    "length negative": answer(GOOD, length=-5),
    "length in words": answer(GOOD, length="many"),
    "length of 400 digits": answer(GOOD, length=400 * "9"),
    "length of other digits": answer(GOOD).replace(str(N).encode(), "\u0663".encode()),
    "length twice": answer(GOOD, f"Content-Length: {N + 7}"),
    "length above the limit": answer(GOOD, length=10**12),
    "length empty": answer(GOOD, length=""),
    "other content": answer(OTHER),
    "empty": answer(b""),
    "nothing": b"",
    "page": answer(b"<html>Log in</html>", "Content-Type: text/html"),
    "page without a type": answer(b"\n <!doctype html>Log in"),
    "page with a late tag": answer(b"Log in first <html>"),
    "page in Latin-1": answer("<html>caf\u00e9".encode("latin1"), "Content-Type: TEXT/HTML; charset=x"),
    "redirect": to("/good"),
    "redirect by 308": to("/good", "308 Permanent Redirect"),
    "redirect in a circle": to("/redirect in a circle".replace(" ", "%20")),
    "redirect to a file": to("file:///etc/passwd"),
    "redirect to ftp": to("ftp://127.0.0.1:1/x"),
    "redirect to data": to("data:text/plain,1 1:1"),
    "redirect to a closed port": to("http://127.0.0.1:1/x"),
    "redirect to port 99999": to("http://127.0.0.1:99999/x"),
    "redirect to port x": to("http://127.0.0.1:x/x"),
    "redirect to half a bracket": to("http://[::1"),
    "redirect to a long host": to(f"http://{300 * 'a'}/x"),
    "redirect to dots": to("http://.../x"),
    "redirect to no host": to("http:///x"),
    "redirect to nothing": to(""),
    "redirect without a place": answer(b"", status="302 Found"),
    "redirect to bytes": b"HTTP/1.1 302 Found\r\nLocation: /\xff\xfe\r\nContent-Length: 0\r\n\r\n",
    "redirect to an escape": to("http://\x1b[31m/x"),
    "206 without a range": answer(GOOD, status="206 Partial Content"),
    "206 with a range": answer(GOOD[:100], f"Content-Range: bytes 0-99/{N}", status="206 Partial Content"),
    **{
        f"status {status}": answer(b"", *more, status=status)
        for status, *more in (
            ("204 No Content",),
            ("304 Not Modified",),
            ("401 Unauthorized", "WWW-Authenticate: Basic realm=x"),
            ("404 Not Found",),
            ("500 Oops",),
            ("503 Later", "Retry-After: 999999"),
            ("999 What",),
        )
    },
    "status with an escape": answer(b"", status="404 \x1b[31m" + 3000 * "red"),
    "packed again": answer(gzip.compress(GOOD), "Content-Encoding: gzip"),
    "bomb": answer(bomb(), "Content-Encoding: gzip"),
    "said to be packed": answer(GOOD, "Content-Encoding: gzip"),
    "unknown packing": answer(GOOD, "Content-Encoding: x-y"),
    "chunk of no size": chunked(b"zz\r\nhello\r\n0\r\n\r\n"),
    "chunk of negative size": chunked(b"-5\r\nhello\r\n0\r\n\r\n"),
    "chunk cut": chunked(WHOLE[:100]),
    "chunk of huge size": chunked(b"ffffffffffffffff\r\n" + GOOD),
    "no http": b"\x00\xff hello\r\n\r\n",
    "http 0.9": GOOD,
    "http 9": answer(GOOD).replace(b"HTTP/1.1", b"HTTP/9.9"),
    "status of no number": b"HTTP/1.1 abc OK\r\n\r\n",
    "status negative": b"HTTP/1.1 -200 OK\r\n\r\n",
    "head without a colon": OK + b"nonsense\r\n\r\n" + GOOD,
    "head with a NUL": OK + b"X: \x00\r\n\r\n" + GOOD,
    "head of 10 MB": OK + b"X: " + b"b" * 10_000_000 + b"\r\n\r\n" + GOOD,
    "cookie of 60 kB": answer(GOOD, "Set-Cookie: a=" + 60000 * "b"),
    "name of a file elsewhere": answer(GOOD, 'Content-Disposition: attachment; filename="../../../x"'),
    "silent": silent(b""),
    "silent after the status": silent(OK),
    "silent in the body": silent(answer(GOOD)[:-4000]),
    "cut, then good": first(answer(GOOD)[:-4000], answer(GOOD)),
    "cut, then other": first(answer(GOOD)[:-4000], answer(OTHER)),
    "cut, then resumed": resumed(GOOD, etag='"1"'),
    "cut, then resumed with other content": resumed(OTHER, etag='"1"'),
    "cut, then resumed elsewhere": resumed(GOOD, etag='"1"', start=900),
    "cut, resumed by a weak tag": resumed(GOOD, etag='W/"1"'),
    "reset": b"",
}
RIGHT = {
    *("good", "no length", "chunks", "chunks and a length", "redirect", "redirect by 308", "cut, then good"),
    *("said to be packed", "unknown packing", "cut, then resumed", "name of a file elsewhere"),
}


class Server:
    """Answers by name at a free port of this machine, from threads that end with the process."""

    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.counts: dict[str, int] = {}
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, name: str) -> str:
        """Address of an answer."""
        return f"http://127.0.0.1:{self.listening.getsockname()[1]}/{name.replace(' ', '%20')}"

    def answer_to(self, name: str) -> Answer:
        """What is sent for a name."""
        return ANSWERS.get(name.partition("?")[0], MISSING)

    def close(self) -> None:
        """Listen no more."""
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()

    def _accept(self) -> None:
        with suppress(OSError):  # of a server that is closed
            while True:
                client, _ = self.listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                request += client.recv(4096) or b"\r\n\r\n"
            name = request.split()[1].decode().strip("/").replace("%20", " ")
            number = self.counts.get(name, 0)
            self.counts[name] = number + 1
            if name.startswith("reset"):
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            sent = self.answer_to(name)
            client.sendall(sent) if isinstance(sent, bytes) else sent(client.sendall, request, number)
            client.shutdown(socket.SHUT_WR)
            client.recv(1)  # until the other side has read it


def fault(server: Server, name: str, known: bool, seconds: float = 75) -> str | None:
    """What is wrong with how an answer ends, for a file whose hash is `known` or not; None if nothing is."""
    url = server.url(f"{name}?{known}")
    file = RawFile("toy", "toy", (url,), hashlib.sha256(GOOD).hexdigest() if known else None, most_bytes=MOST)
    forms = (Form("plain", "original", (file,), "libsvm"),)
    counts = Counts(ROWS, 4, 2, 3 * ROWS)
    dataset = Dataset("toy", "Toy", "binary", "", "none", "", counts, forms, {"generator": "digits"})
    begin, memory, end = time.monotonic(), _peak(), ""
    with tempfile.TemporaryDirectory() as folder:
        try:
            fetch(dataset, Path(folder, "raw"), policy="real")
            if known and Path(folder, "raw/toy/toy").read_bytes() != GOOD:
                return "other bytes than the hash says were taken"
        except DataError as error:
            end = str(error)
        except BaseException as error:
            return f"{type(error).__name__}: {error}"
        files = [one.name for one in Path(folder).rglob("*") if one.is_file() and one.name != ".lock"]
    if end and (not end.isprintable() or len(end) > 1000):
        return f"no line that can be read: {end[:200]!r}"
    if end and files:
        return f"left {files}"
    if end and name in RIGHT:
        return f"refused: {end}"
    if (took := time.monotonic() - begin) > seconds:
        return f"took {took:.0f} s"
    if (more := _peak() - memory) > 300:
        return f"took {more} MiB"
    return None


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
