"""Downloads that try again after a connection has broken off, and give up on hosts that do not answer.

Nothing in this module decides whether the bytes are right: its callers do.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from replifed.data.streams import looks_like_web_page

OFFLINE_VARIABLE = "REPLIFED_OFFLINE"
# Seconds within which a host must accept a connection, and send something.
_TIMEOUT = (5, 30)
# Seconds between attempts.
_PAUSES = (1, 3)


class DownloadError(Exception):
    """A file could not be had from its URL; the message says why, in a few words."""


def download(url: str, target: Path, *, progress: bool = True) -> None:
    """Download `url` to `target`, with a bar on a terminal if there is to be `progress`.

    Raises `DownloadError` if the host cannot be reached, refuses, or answers with a web page.
    """
    if os.environ.get(OFFLINE_VARIABLE, "") not in ("", "0"):
        raise DownloadError(f"{OFFLINE_VARIABLE} is set")
    from pooch import HTTPDownloader
    from requests.exceptions import RequestException

    # The bytes are wanted as they are stored: a server that packs them again would break the hash.
    options = {"headers": {"Accept-Encoding": "identity"}, "hooks": {"response": _check_answer}}
    shown = progress and sys.stderr.isatty()
    transfer = HTTPDownloader(progressbar=shown, chunk_size=1 << 18, timeout=_TIMEOUT, **options)
    for pause in (*_PAUSES, None):
        try:
            transfer(url, str(target), None)
            break
        except RequestException as error:
            fault, lasts = _fault(url, error)
            if lasts or pause is None:
                raise DownloadError(fault) from error
            time.sleep(pause)
    if looks_like_web_page(target):
        raise DownloadError(f"{url}: the server answered with a web page, not with data")


def _check_answer(response: Any, **_: Any) -> None:
    """Refuse what is not a whole file, and keep what comes as it is stored."""
    if response.status_code < 300 and response.status_code != 200:
        raise DownloadError(f"{response.url}: the server answered {response.status_code} {response.reason}")
    if response.status_code == 200 and response.headers.get("Content-Type", "").startswith("text/html"):
        raise DownloadError(f"{response.url}: the server answered with a web page, not with data")
    # Some servers call a stored .gz an encoding, which requests would undo.
    response.raw.headers.pop("Content-Encoding", None)


def _fault(url: str, error: Any) -> tuple[str, bool]:
    """Say why a transfer failed, and whether it would fail again."""
    from requests.exceptions import ConnectTimeout, ProxyError, SSLError
    from urllib3.exceptions import NewConnectionError

    if error.response is not None:
        status, reason = error.response.status_code, error.response.reason
        return f"{url}: the server answered {status} {reason}", status < 500
    cause = getattr(error.args[0] if error.args else None, "reason", error)
    if isinstance(error, ConnectTimeout | ProxyError | SSLError) or isinstance(cause, NewConnectionError):
        return f"no connection to {urlsplit(url).hostname} ({str(cause).rpartition(': ')[2]})", True
    return f"{url}: the connection broke off ({error})", False
