"""Downloads that give up early on dead hosts, retry, and resume where they stopped.

pooch does the retries and the moving into place; the transfer itself is done here, since pooch
cannot resume. Nothing in this module decides whether the bytes are right: its callers do.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import socket
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from replifed.atomic import write_json
from replifed.data.pins import locked

OFFLINE_VARIABLE = "REPLIFED_OFFLINE"
PROBE_SECONDS = 5.0
# How long another process's verdict on a host is believed. Short for a dead host, so that a user
# who has mended the network need not wait; long enough for one burst of jobs.
_DEAD_SECONDS = 60.0
_ALIVE_SECONDS = 600.0
_CHUNK = 1 << 18

_verdicts: dict[str, str | None] = {}


class DownloadError(Exception):
    """A file could not be had from its URL; the message says why, in a few words."""


def unreachable(url: str, cache: Path) -> str | None:
    """Say why the host of `url` cannot be reached, or return None when it can.

    One connection is tried a host; the verdict holds for this process, and for a while for others
    that use the same `cache` folder.

    Parameters
    ----------
    url : str
    cache : Path
        Folder for the verdicts.

    Returns
    -------
    str or None
    """
    if os.environ.get(OFFLINE_VARIABLE, "") not in ("", "0"):
        return f"{OFFLINE_VARIABLE} is set"
    host, port = _endpoint(url)
    key = f"{host}:{port}"
    if key not in _verdicts:
        file = cache / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
        # Others who want to know about this host wait for this probe instead of making their own.
        with locked(file.with_suffix(".lock")):
            cached = _cached_verdict(file)
            if cached is None:
                fault = _probe(host, port)
                write_json(file, {"host": key, "fault": fault, "time": time.time()})
            else:
                fault = cached["fault"]
        _verdicts[key] = fault
    return _verdicts[key]


def download(url: str, target: Path, part: Path, *, retries: int = 2, progress: bool = True) -> None:
    """Download `url` to `target`; what has arrived before an interruption is kept in `part`.

    Parameters
    ----------
    url : str
    target : Path
        Where the complete file goes; it must not exist.
    part : Path
        The unfinished file. A later call continues it.
    retries : int
        Further attempts after connection faults (not after a refusal such as "not found").
    progress : bool
        Show a bar on a terminal.

    Raises
    ------
    DownloadError
        When all attempts failed.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel(logging.ERROR)
    client = pooch.create(
        path=target.parent,
        base_url="",
        registry={target.name: None},
        urls={target.name: url},
        retry_if_failed=retries,
    )
    try:
        client.fetch(target.name, downloader=_Resuming(part, progress))
    except requests.exceptions.RequestException as error:
        raise DownloadError(f"{url}: {_reason(error)}") from error


class _Resuming:
    """A pooch downloader that continues a partial file."""

    def __init__(self, part: Path, progress: bool) -> None:
        self.part = part
        self.progress = progress

    def __call__(self, url: str, output_file: str | os.PathLike[str], pooch: Any) -> None:
        import requests
        import urllib3

        held = self.part.stat().st_size if self.part.exists() else 0
        # The bytes are wanted as they are stored: a server that packs them again would break the hash.
        headers = {"Accept-Encoding": "identity"}
        if held:
            headers["Range"] = f"bytes={held}-"
        with requests.get(url, headers=headers, stream=True, timeout=(PROBE_SECONDS, 30)) as response:
            content_range = response.headers.get("Content-Range", "")
            if response.status_code == 416 and held:
                if content_range == f"bytes */{held}":
                    self.part.replace(output_file)
                    return
                self.part.unlink()
                raise requests.ConnectionError("the partial file does not fit the server's; starting anew")
            if response.status_code >= 500:
                raise requests.ConnectionError(f"the server answered {response.status_code}")
            if response.status_code not in (200, 206):
                raise DownloadError(f"{url}: the server answered {response.status_code} {response.reason}")
            if response.headers.get("Content-Type", "").startswith("text/html"):
                raise DownloadError(f"{url}: the server answered with a web page, not with data")
            start = held if response.status_code == 206 else 0
            if response.status_code == 206 and not content_range.startswith(f"bytes {held}-"):
                self.part.unlink(missing_ok=True)
                raise requests.ConnectionError("the server sent another part than was asked for")
            length = response.headers.get("Content-Length", "")
            total = start + int(length) if length.isdigit() else None
            try:
                self._receive(response, start, total)
            except urllib3.exceptions.HTTPError as error:
                raise requests.ConnectionError(f"the connection broke off ({error})") from error
        # urllib3 counts the bytes itself, but only while its defaults stay as they are.
        size = self.part.stat().st_size
        if total is not None and size != total:
            raise requests.ConnectionError(f"truncated: {size} of {total} bytes arrived")
        self.part.replace(output_file)

    def _receive(self, response: Any, start: int, total: int | None) -> None:
        from tqdm import tqdm

        shown = self.progress and sys.stderr.isatty()
        name = self.part.name.removesuffix(".part")
        with (
            self.part.open("ab" if start else "wb") as stream,
            tqdm(total=total, initial=start, unit="B", unit_scale=True, desc=name, disable=not shown) as bar,
        ):
            for chunk in response.raw.stream(_CHUNK, decode_content=False):
                stream.write(chunk)
                bar.update(len(chunk))


def _reason(error: Exception) -> str:
    """Shorten what requests says, which quotes object addresses and URLs at length."""
    import requests

    if isinstance(error, requests.exceptions.SSLError):
        return "the server's certificate was not accepted"
    if isinstance(error, requests.exceptions.Timeout):
        return "the server did not answer in time"
    text = " ".join(str(error).split())
    return text if len(text) <= 120 and "object at 0x" not in text else "the connection failed"


def _endpoint(url: str) -> tuple[str, int]:
    """Return the host and port to be reached first for `url`: a proxy's, where one is set."""
    parts = urlsplit(url)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy and not urllib.request.proxy_bypass(parts.hostname or ""):
        parts = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    return parts.hostname or "", parts.port or {"http": 80}.get(parts.scheme, 443)


def _cached_verdict(file: Path) -> dict[str, Any] | None:
    try:
        verdict = json.loads(file.read_text(encoding="utf-8"))
        age = time.time() - verdict["time"]
        lasts = _ALIVE_SECONDS if verdict["fault"] is None else _DEAD_SECONDS
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return verdict if 0 <= age < lasts else None


def _probe(host: str, port: int) -> str | None:
    """Try one connection. The time limit covers the name look-up too, which has none of its own."""
    outcome: list[str | None] = []

    def connect() -> None:
        try:
            socket.create_connection((host, port), timeout=PROBE_SECONDS).close()
            outcome.append(None)
        except OSError as error:
            outcome.append(f"no connection to {host} ({error.strerror or error})")

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(PROBE_SECONDS)
    return outcome[0] if outcome else f"no connection to {host} within {PROBE_SECONDS:g} s"
