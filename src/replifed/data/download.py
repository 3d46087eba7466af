"""Download of a file, with limits on time and size, from servers that are not trusted."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from replifed.data.streams import looks_like_web_page
from replifed.progress import Lines

OFFLINE_VARIABLE = "REPLIFED_OFFLINE"
# Seconds within which a host must accept a connection, and send something.
_TIMEOUT = (5, 30)
_WEB_PAGE = "the server answered with a web page, not with data"
# Seconds between attempts.
_PAUSES = (1, 3)
# A download, all attempts together, may take so many seconds, and one more for so many bytes that have come.
_GRACE, _SLOWEST = 60, 20_000
_REDIRECTS = 10
_BLOCK = 1 << 16


class UnavailableError(Exception):
    """A form or a file is not available; the message, if any, gives the reason in a few words."""


class _BrokenError(Exception):
    """A transfer broke off; the next attempt may succeed."""


def download(url: str, target: Path, most: int) -> None:
    """Download `url`, of at most `most` bytes, to `target`; print the progress every ten seconds.

    A broken connection is retried; a host that does not answer, rejects the request, or answers with a web
    page is not.
    """
    if os.environ.get(OFFLINE_VARIABLE, "") not in ("", "0"):
        raise UnavailableError(f"{OFFLINE_VARIABLE} is set")
    transfer, progress = _Transfer(url, target, most), Lines(target.name)
    # Another thread reads: no timeout ends a header that comes byte by byte.
    thread = threading.Thread(target=transfer.run, daemon=True)
    begin = time.monotonic()
    thread.start()
    while thread.is_alive():
        thread.join(1)
        progress("download in MB", transfer.count // 10**6, transfer.size // 10**6)
        passed = time.monotonic() - begin
        if thread.is_alive() and passed > _GRACE + transfer.count / _SLOWEST:
            transfer.given_up = True
            raise UnavailableError(f"{url}: given up: only {transfer.count} bytes came in {passed:.0f} s")
    if transfer.error is not None:
        raise transfer.error
    if looks_like_web_page(target):
        raise UnavailableError(f"{url}: {_WEB_PAGE}")


class _Transfer:
    """Attempts to download a file of `size` bytes (0: unknown); `count` bytes came in all attempts."""

    def __init__(self, url: str, target: Path, most: int) -> None:
        self.url, self.target, self.most = url, target, most
        self.count = self.size = 0
        self.given_up = False
        self.error: BaseException | None = None
        self._kept = 0  # bytes of the file that earlier attempts have written
        self._version = ""  # by which the server knows whether its file is still the same

    def run(self) -> None:
        """Try until the file is complete; keep the last error."""
        try:
            for pause in (*_PAUSES, None):
                if self.given_up:  # another address may be tried already
                    return
                try:
                    self._attempt()
                    return
                except _BrokenError as error:
                    if pause is None:
                        raise UnavailableError(str(error)) from error
                    time.sleep(pause)
        except BaseException as error:  # raised again by the thread that waits
            self.error = error

    def _attempt(self) -> None:
        headers = {"Range": f"bytes={self._kept}-", "If-Range": self._version} if self._version else {}
        response = _answer(self.url, {"Accept-Encoding": "identity", **headers})
        with response:
            begin = self._begin(response)
            if self._kept:
                how = "resumed" if begin else "begun anew, since the server does not resume it"
                print(f"replifed: {self.url}: broke off after {self._kept} bytes; {how}", file=sys.stderr)
            self._kept = begin
            if self.given_up:
                return
            with self.target.open("r+b" if begin else "wb") as file:
                file.seek(begin)
                for block in _blocks(self.url, response):
                    if self.given_up:
                        return
                    self.count += len(block)
                    self._kept += file.write(block)
                    self._check_size(self._kept)

    def _begin(self, response: Any) -> int:
        """Return the position in the file at which the body of an answer begins."""
        begin, status, heads = 0, response.status_code, response.headers
        part = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", heads.get("Content-Range", ""), re.ASCII)
        if status == 206 and self._version and part and int(part[1]) == self._kept:
            begin = self._kept
        elif status != 200:
            reason = f"{self.url}: the server answered {status} {_plain(response.reason)}"
            raise _BrokenError(reason) if status >= 500 else UnavailableError(reason)
        if heads.get("Content-Type", "").startswith("text/html"):
            raise UnavailableError(f"{self.url}: {_WEB_PAGE}")
        length = heads.get("Content-Length")
        if length is not None and "Transfer-Encoding" not in heads:
            if not re.fullmatch(r"[0-9]{1,18}", length):
                raise UnavailableError(f"{self.url}: the server announces {_plain(length)!r} bytes")
            self.size = begin + int(length)
            self._check_size(self.size)
        weak = heads.get("ETag", "W/").startswith("W/")
        self._version = heads.get("Last-Modified", "") if weak else heads["ETag"]
        return begin

    def _check_size(self, size: int) -> None:
        if size > self.most:
            raise UnavailableError(f"{self.url}: {size} bytes or more, but the file has at most {self.most}")


def _answer(url: str, headers: dict[str, str]) -> Any:
    """Return the first answer that is no redirect; its body is not read yet."""
    import requests

    where: str | None = None

    def keep_from_following(response: Any, **_: Any) -> None:  # requests would read the body, however long
        nonlocal where
        where = response.headers.pop("Location", None) if response.is_redirect else None

    place = url
    for _ in range(_REDIRECTS):
        with _reasons(url):
            response = requests.get(
                place, headers=headers, stream=True, timeout=_TIMEOUT, hooks={"response": keep_from_following}
            )
            if where is None:
                return response
            response.close()
            place = urljoin(place, where)
        if urlsplit(place).scheme not in ("http", "https"):
            raise UnavailableError(f"{url}: the server sends to {_plain(place)}, which is no web address")
    raise UnavailableError(f"{url}: more than {_REDIRECTS} redirects")


def _blocks(url: str, response: Any) -> Iterator[bytes]:
    """Yield the body of an answer as it is stored: some servers call a stored .gz an encoding."""
    with _reasons(url):
        yield from response.raw.stream(_BLOCK, decode_content=False)


@contextmanager
def _reasons(url: str) -> Iterator[None]:
    """Translate errors of a connection into those that are retried and those that are not."""
    from requests.exceptions import ConnectTimeout, ProxyError, RequestException, SSLError
    from urllib3.exceptions import HTTPError, NewConnectionError

    try:
        yield
    except (RequestException, HTTPError, ValueError) as error:  # ValueError: an address that cannot be read
        cause = getattr(error.args[0] if error.args else None, "reason", error)
        if isinstance(error, ConnectTimeout | ProxyError | SSLError) or isinstance(cause, NewConnectionError):
            reason = _plain(str(cause).rpartition(": ")[2])
            raise UnavailableError(f"no connection to {urlsplit(url).hostname} ({reason})") from error
        if isinstance(error, ValueError):
            raise UnavailableError(f"{url}: the server sends to no web address ({_plain(error)})") from error
        raise _BrokenError(f"{url}: the connection broke off ({_plain(error)})") from error


def _plain(text: Any) -> str:
    """Return a server's text as a short line of printable characters."""
    line = "".join(letter if letter.isprintable() else "?" for letter in " ".join(str(text).split()))
    return line if len(line) <= 120 else f"{line[:117]}..."
