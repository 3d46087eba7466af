"""A `python` whose processes have the libraries imported when they begin, which spares each a second or two.

`executable` starts a server that imports them once, and returns the path of a small program called `python`.
That hands its words, folder, environment and streams to the server, which forks; the fork runs the module as
a new process would. Nothing of this repository is imported before.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from functools import cache
from importlib import import_module
from pathlib import Path

# What the workflow and its jobs import, early or late.
LIBRARIES = (
    *("snakemake.cli", "snakemake.report.html_reporter", "snakemake.storage", "yte"),
    *("pydantic", "yaml", "jinja2", "tabulate", "psutil", "requests"),
    *("numpy", "pandas", "pyarrow.parquet", "numba", "h5py"),
    *("scipy.linalg", "scipy.optimize", "scipy.sparse.linalg", "scipy.special", "scipy.stats"),
    *("sklearn.cluster", "sklearn.datasets", "matplotlib.figure", "matplotlib.backends.backend_agg"),
    *("matplotlib.backends.backend_pdf", "PIL.Image"),
)
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Its first lines are a script of the shell, too: the path of a Python may hold spaces.
CLIENT = """#!/bin/sh
'''exec' "{python}" -IS "$0" "$@"
'''
import json, os, socket, sys

if sys.argv[1:2] != ["-m"]:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
call = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [len(call).to_bytes(8, "little")], [0, 1, 2])
server.sendall(call)
sys.exit(int(server.recv(8)))
"""


@cache
def executable() -> str:
    """Return a `python` that starts at once; the real one where processes cannot well be forked."""
    if sys.platform != "linux":
        return sys.executable
    folder = tempfile.TemporaryDirectory(prefix="warm")
    address, python = f"{folder.name}/socket", Path(folder.name, "python")
    python.write_text(CLIENT.format(python=sys.executable, address=address))
    python.chmod(0o755)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # As the workflow sets it for its jobs.
    env |= {
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    words = [sys.executable, "-P", __file__, address]
    server = subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdout.readline() == b"ready\n"

    def end() -> None:
        with server:  # closes its standard input, at which it ends
            pass
        folder.cleanup()

    atexit.register(end)
    return str(python)


def warm_up() -> None:
    """Import the libraries, and have them do what they do at a first call only."""
    for name in LIBRARIES:
        import_module(name)
    import numba
    import pandas as pd
    from matplotlib.figure import Figure
    from snakemake.cli import get_argument_parser

    get_argument_parser()  # looks for plugins
    numba.njit(lambda x: x)(1.0)
    pd.read_parquet(io.BytesIO(pd.DataFrame({"x": [1.0]}).to_parquet()))
    for form in ("pdf", "png"):
        figure = Figure()
        axes = figure.subplots()
        axes.loglog([1, 10], label="$x_0$")
        axes.legend()
        figure.savefig(io.BytesIO(), format=form)


class Server:
    """Forks for each call, until the process that has started it ends."""

    def __init__(self, address: str) -> None:
        warm_up()
        gc.freeze()
        self.clients: dict[int, socket.socket] = {}
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(address)
        self.listening.listen(64)

    def serve(self) -> None:
        """Answer calls until standard input is closed."""
        woken, wake = os.pipe()
        for end in (woken, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([self.listening, sys.stdin, woken], [], [])
            if sys.stdin in ready:
                os._exit(0)
            if woken in ready:
                os.read(woken, 1 << 16)
                self.tell()
            if self.listening in ready:
                client, _ = self.listening.accept()
                child = os.fork()
                if not child:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for other in (self.listening, *self.clients.values()):
                        other.close()
                    become(client)
                self.clients[child] = client

    def tell(self) -> None:
        """Send clients the exit status of the forks that have ended."""
        for child in [*self.clients]:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                with self.clients.pop(child) as client, contextlib.suppress(BrokenPipeError):
                    client.sendall(str(code if code >= 0 else 128 - code).encode())


def become(client: socket.socket) -> None:
    """Run the module that a client asks for, in its folder, with its environment and streams, and end."""
    with client:
        head, streams, _, _ = socket.recv_fds(client, 8, 3)
        size, call = int.from_bytes(head, "little"), b""
        while len(call) < size:
            call += client.recv(size - len(call))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    (python, _, module, *words), folder, env = json.loads(call)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    import_module("numba.core.config").reload_config()
    sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in env
    sys.executable, sys.argv = python, [module, *words]
    sys.path[:0] = [folder, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    status = run(module)
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # at once: to take all libraries down would take as long as many a job


def run(module: str) -> int:
    """Run a module as `python -m` does, and return the exit status."""
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    else:
        return 0
    return 1


if __name__ == "__main__":
    Server(sys.argv[1]).serve()
