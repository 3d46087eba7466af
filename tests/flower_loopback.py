"""Run exported apps over Flower's transport on loopback, count bytes, and compare with runs in process.

    python tests/flower_loopback.py fedavg fedlin scaffold --rounds 10 --table table.csv

Starts a SuperLink, three SuperNodes with a proxy between them, and `flwr run`; stops all in the end. Takes
minutes: Flower starts a process for each message. Telemetry is off, and FLWR_HOME a temporary folder.
"""

from __future__ import annotations

import argparse
import csv
import http.client
import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import defaultdict
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import psutil

from replifed.algorithms.registry import method_class
from replifed.engine.simulate import simulate
from replifed.network.participation import FixedSize
from replifed.problems.clients import from_clients
from replifed.randomness import Streams
from replifed.wire.export import export
from replifed.wire.own_data import split
from replifed.wire.run import Client, serve
from replifed.wire.run import in_process as transport
from replifed.wire.session import Session

BIN = Path(sys.executable).parent


@dataclass
class Traffic:
    """Bytes of requests and answers, with their heads, by what they are for, and their bodies in turn."""

    up: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    down: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    bodies: list[tuple[bool, bytes]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def total(self) -> dict[str, int]:
        """Bytes both ways by what they are for."""
        with self.lock:
            return {name: self.up[name] + self.down[name] for name in self.calls}

    def note(self, path: str, request: tuple[int, bytes], answer: tuple[int, bytes]) -> None:
        name = path.rpartition("/")[2]
        with self.lock:
            self.calls[name] += 1
            for total, up, (head, body) in ((self.up, True, request), (self.down, False, answer)):
                total[name] += head + len(body)
                self.bodies.append((up, body))


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def proxy(target: int, traffic: Traffic) -> ThreadingHTTPServer:
    """An HTTP server that hands on what it gets to a port, and counts it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle(self) -> None:
            with suppress(ConnectionError):  # of a node that was killed
                super().handle()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            head = len(self.requestline) + 2 + len(str(self.headers))
            link = http.client.HTTPConnection("127.0.0.1", target, timeout=600)
            link.request(self.command, self.path, body, dict(self.headers))
            answer = link.getresponse()
            content = answer.read()
            link.close()
            heads = [
                (k, v)
                for k, v in answer.getheaders()
                if k.lower() not in ("transfer-encoding", "content-length")
            ]
            self.send_response_only(answer.status)
            for key, value in heads:
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(content)))
            with suppress(ConnectionError):  # who asked has not waited
                self.end_headers()
                self.wfile.write(content)
            back = 17 + sum(len(key) + len(value) + 4 for key, value in answer.getheaders())
            traffic.note(self.path, (head, body), (back, content))

        do_GET = do_PUT = do_POST  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Loopback:
    """A SuperLink and a SuperNode for each file of data, as a context that ends them all."""

    def __init__(self, data: list[Path], python_path: str = "") -> None:
        self.data, self.traffic, self._stack, self.nodes = data, Traffic(), ExitStack(), []
        self._path = python_path

    def __enter__(self) -> Loopback:
        with ExitStack() as stack:  # a start that fails ends what has begun
            stack.push(self)
            self._begin()
            stack.pop_all()
        return self

    def _begin(self) -> None:
        self.home = Path(self._stack.enter_context(TemporaryDirectory()))
        self._stack.callback(self._end_apps)  # before their folder goes
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        self._env = os.environ | {"FLWR_HOME": str(self.home), "FLWR_TELEMETRY_ENABLED": "0", "PATH": path}
        if self._path:
            self._env["PYTHONPATH"] = self._path
        port = free_port()
        self._start(
            "flower-superlink", "--insecure", "--disable-runtime-dependency-installation", "--port", str(port)
        )
        _wait_for(port)
        between = proxy(port, self.traffic)
        self._stack.callback(between.shutdown)
        for i, file in enumerate(self.data):
            config = f'partition-id={i} data="{file.resolve()}"'
            link = f"127.0.0.1:{between.server_address[1]}"
            options = ("--superlink", link, "--port", str(free_port()), "--node-config", config)
            self.nodes.append(self._start("flower-supernode", "--insecure", *options))
        settings = f'[superlink.loop]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
        (self.home / "config.toml").write_text(settings, encoding="utf-8")

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _end_apps(self) -> None:
        """End what Flower has started in sessions of their own."""
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("FLWR_HOME") == str(self.home):
                    process.kill()
                    process.wait(15)

    def _start(self, name: str, *options: str) -> subprocess.Popen[bytes]:
        log = self._stack.enter_context((self.home / f"{name}-{len(self.nodes)}.log").open("wb"))
        process = subprocess.Popen(
            [BIN / name, *options], env=self._env, stdout=log, stderr=log, start_new_session=True
        )
        self._stack.callback(end, process)
        return process

    def alive(self) -> list[subprocess.Popen[bytes]]:
        """SuperNodes that have not ended."""
        return [node for node in self.nodes if node.poll() is None]

    def log(self) -> str:
        """What SuperLink, and the apps in it, have said."""
        return (self.home / "flower-superlink-0.log").read_text(encoding="utf-8", errors="replace")

    def run(self, app: Path, config: str, limit: float = 1800) -> str:
        """Run an app to its end; return what it said."""
        command = [BIN / "flwr", "run", app, "loop", "--stream", "--run-config", config]
        done = subprocess.run(
            command, env=self._env, capture_output=True, text=True, timeout=limit, check=False
        )
        return done.stdout + done.stderr


def _wait_for(port: int, patience: float = 120) -> None:
    begun = time.monotonic()
    while time.monotonic() - begun < patience:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError(f"nothing listens on port {port}")


def end(process: subprocess.Popen[bytes], how: int = signal.SIGTERM) -> None:
    """End a process and those that it has started, which have groups of their own."""
    try:
        family = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        family = []
    process.send_signal(how)
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
    for one in family:
        with suppress(psutil.NoSuchProcess):
            one.kill()


def make_data(folder: Path, sizes: tuple[int, ...] = (20, 30, 40), d: int = 10) -> list[Path]:
    """Write a least-squares problem, a file a client."""
    rng, files = np.random.default_rng(1), []
    for i, n in enumerate(sizes):
        X = rng.normal(size=(n, d))
        files.append(folder / f"client{i}.npz")
        np.savez(files[-1], X=X, y=X @ np.linspace(-1, 1, d) + 0.3 * rng.normal(size=n) + i)
    return files


@dataclass
class Compared:
    """A run over Flower, the same in process, and all clients at once."""

    flower: np.ndarray  # models, (T + 1, D)
    process: np.ndarray
    batched: np.ndarray
    row: dict[str, object]  # of the table


def compare(loop: Loopback, method: str, folder: Path, rounds: int, exact: bool, cohort: int = 0) -> Compared:
    """Export a method, run it both ways, and look for each of its messages in what the proxy has seen."""
    app, out = folder / f"{Path(method).stem}-{exact}", folder / "out.npz"
    export(method, app)
    bodies, begun = len(loop.traffic.bodies), loop.traffic.total()
    config = (
        f'rounds={rounds} cohort={cohort} exact={str(exact).lower()} loss="least_squares" results="{out}"'
    )
    said = loop.run(app, config)
    if not out.exists():
        raise RuntimeError(said + loop.log())
    with np.load(out) as file:
        flower, sent = file["models"], file["sent"]
    out.unlink()
    total = {name: count - begun.get(name, 0) for name, count in loop.traffic.total().items()}
    frames, process, batched = in_process(method, loop.data, rounds, exact, cohort)
    seen = {
        way: b"|".join(body for up, body in loop.traffic.bodies[bodies:] if up is way)
        for way in (True, False)
    }
    found = sum(frame in seen[up] for up, frame in frames)
    lengths = sum(len(frame) for _, frame in frames)
    messages, bits = len(sent), int(sent[:, 4].sum())
    heads = int(sent[:, 5].sum())
    carrying = sum(total.get(name, 0) for name in _CARRY)
    carried = messages + 4 * len(loop.data)  # nodes meet in two exchanges before
    row = {
        "method": method_class(method).__name__,
        "messages": messages,
        "found": found,
        "ledger_bits": bits,
        "payload_bytes": lengths - heads,
        "head_bytes": heads / messages,
        "flower_bytes": (carrying - lengths) / carried,
        "polls_bytes": (sum(total.values()) - carrying) / carried,
    }
    return Compared(flower, process, batched, row)


# Calls that carry a message; others ask whether there is one, or say that a node is there.
_CARRY = "push-messages", "push-object", "pull-object", "confirm-message-received"


def in_process(method: str, data: list[Path], rounds: int, exact: bool, cohort: int):
    """All messages in turn, whether each goes up, and the models, here; and those of all clients at once."""
    pairs = []
    for file in data:
        with np.load(file) as own:
            pairs.append((own["X"], own["y"]))
    problem, streams = from_clients(pairs, loss="least_squares", l2=0.1), Streams(1, (1,))
    chosen = FixedSize(cohort) if cohort else None
    example, frames, models = method_class(method).example(), [], []
    facts, own = split(example, problem, streams)
    session = Session(example, facts, streams, chosen, exact=exact)
    answer = transport([Client(session, i, one) for i, one in enumerate(own)])

    def deliver(messages):
        back = answer(messages)
        frames.extend([(False, one) for one in messages.values()] + [(True, one) for one in back.values()])
        return back

    def seen(_, observed):
        models.append(observed["server"][0])
        return np.zeros(1)

    record = serve(session, rounds, deliver)
    simulate(example, problem, streams, rounds, metrics={"model": seen}, cohort=chosen)
    return frames, record.models, np.array(models)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("methods", nargs="+")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--table", type=Path, required=True, help="the .csv to write")
    arguments = parser.parse_args()
    with TemporaryDirectory() as name, arguments.table.open("w", encoding="utf-8", newline="") as file:
        folder, rows = Path(name), None
        with Loopback(make_data(folder)) as loop:
            for exact, method in itertools.product((False, True), arguments.methods):
                got = compare(loop, method, folder, arguments.rounds, exact)
                row = got.row | {
                    "exact": exact,
                    "equal": np.array_equal(got.flower, got.process),
                    "from_batched": np.abs(got.flower - got.batched).max(),
                }
                rows = rows or csv.DictWriter(file, list(row))
                if file.tell() == 0:
                    rows.writeheader()
                rows.writerow(row)
                file.flush()


if __name__ == "__main__":
    main()
