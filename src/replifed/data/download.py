"""Downloads that give up early on dead hosts and try again after a connection fault.

Nothing in this module decides whether the bytes are right: its callers do.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
import urllib.request
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from replifed.data.streams import looks_like_web_page

OFFLINE_VARIABLE = "REPLIFED_OFFLINE"
PROBE_SECONDS = 5.0
# Between attempts.
_PAUSES = (1, 3)


class DownloadError(Exception):
    """A file could not be had from its URL; the message says why, in a few words."""


def download(url: str, target: Path, *, progress: bool = True) -> None:
    """Download `url` to `target`, with a bar on a terminal if there is to be `progress`.

    Raises
    ------
    DownloadError
        The host cannot be reached, it refuses, or it answers with a web page.
    """
    if os.environ.get(OFFLINE_VARIABLE, "") not in ("", "0"):
        raise DownloadError(f"{OFFLINE_VARIABLE} is set")
    if fault := unreachable(*_endpoint(url)):
        raise DownloadError(fault)
    import requests
    from pooch import HTTPDownloader

    # The bytes are wanted as they are stored: a server that packs them again would break the hash.
    headers = {"Accept-Encoding": "identity"}
    shown = progress and sys.stderr.isatty()
    timeout = (PROBE_SECONDS, 30)
    transfer = HTTPDownloader(progressbar=shown, chunk_size=1 << 18, headers=headers, timeout=timeout)
    for pause in (*_PAUSES, None):
        try:
            transfer(url, str(target), None)
            break
        except requests.exceptions.RequestException as error:
            refused = error.response is not None and error.response.status_code < 500
            if refused or pause is None:
                raise DownloadError(f"{url}: {_reason(error)}") from error
            time.sleep(pause)
    if looks_like_web_page(target):
        raise DownloadError(f"{url}: the server answered with a web page, not with data")


def _reason(error: Exception) -> str:
    """Shorten what requests says, which quotes object addresses and URLs at length."""
    import requests

    response = getattr(error, "response", None)
    if response is not None:
        return f"the server answered {response.status_code} {response.reason}"
    if isinstance(error, requests.exceptions.SSLError):
        return "the server's certificate was not accepted"
    if isinstance(error, requests.exceptions.Timeout):
        return "the server did not answer in time"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return f"the connection broke off ({error})"
    return "the connection failed"


def _endpoint(url: str) -> tuple[str, int]:
    """Return the host and port to be reached first for `url`: a proxy's, where one is set."""
    parts = urlsplit(url)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy and not urllib.request.proxy_bypass(parts.hostname or ""):
        parts = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    return parts.hostname or "", parts.port or {"http": 80}.get(parts.scheme, 443)


@cache
def unreachable(host: str, port: int) -> str | None:
    """Say why a host cannot be reached, or return None when it can; one connection is tried.

    The time limit covers the name look-up too, which has none of its own.
    """
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
