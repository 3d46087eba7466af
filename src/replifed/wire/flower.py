"""The two forms as apps of Flower (`flwr`), whose transport carries their bytes between processes."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ConfigError, ReplifedError
from replifed.network.participation import FixedSize
from replifed.problems.clients import from_clients
from replifed.randomness import Streams
from replifed.store.atomic import make_folder, replacing
from replifed.wire.own_data import OwnData, of_client
from replifed.wire.run import Client, Record, serve
from replifed.wire.session import Facts, Session

# Seconds between looks for answers, and until a client that is silent counts as lost.
_PAUSE, _PATIENCE = 0.2, 600


def client_app(method: Any, load: Callable[[Any], tuple[NDArray, NDArray]]) -> Any:
    """Return the ClientApp of a method.

    Parameters
    ----------
    method : Method
    load : function of Flower's context that returns the node's features (n, d) and targets (n,).
    """
    from flwr.app import ConfigRecord, Message, RecordDict
    from flwr.clientapp import ClientApp

    app = ClientApp()

    @app.query()
    def meet(message: Any, context: Any) -> Any:
        """Say what the node has; or note what all have."""
        if "facts" in message.content:
            context.state["facts"] = message.content["facts"]
            return Message(RecordDict(), reply_to=message)
        data = _read(load, context)
        about = {"number": _number(context), "samples": len(data.y), "mu": data.mu, "L": data.L}
        about["dim"] = data.X.shape[1] * data.loss.n_outputs
        return Message(RecordDict({"about": ConfigRecord(about)}), reply_to=message)

    @app.train()
    def answer(message: Any, context: Any) -> Any:
        """Answer a message of the server's form."""
        data = _read(load, context)
        session = _session(method, context.run_config, context.state["facts"])
        client = Client(session, _number(context), data)
        if "own" in context.state:
            before = context.state["own"]
            client.last = before["round"], before["exchange"]
            with np.load(io.BytesIO(before["npz"])) as own:
                client.own = dict(own)
        sent = client.answer(message.content["message"]["bytes"])
        kept = io.BytesIO()
        np.savez(kept, **client.own)
        t, exchange = client.last
        context.state["own"] = ConfigRecord({"npz": kept.getvalue(), "round": t, "exchange": exchange})
        return Message(RecordDict({"message": ConfigRecord({"bytes": sent})}), reply_to=message)

    return app


def server_app(method: Any) -> Any:
    """Return the ServerApp of a method."""
    from flwr.app import ConfigRecord
    from flwr.serverapp import ServerApp

    app = ServerApp()

    @app.main()
    def main(grid: Any, context: Any) -> None:
        config = context.run_config
        try:
            if config["results"]:
                make_folder(Path(config["results"]).parent)  # before the run, not after it
            nodes, facts = _meet(method, grid, config)
            session = _session(method, config, ConfigRecord(facts))
            record = serve(session, int(config["rounds"]), partial(_deliver, grid, nodes))
        except ReplifedError as error:
            print(f"replifed: error: {error}", flush=True)
            raise  # only of an Exception does Flower send on what was printed, and say that the run failed
        _report(record, str(config["results"]))

    return app


def _read(load: Callable[[Any], tuple[NDArray, NDArray]], context: Any) -> OwnData:
    config, own = context.run_config, load(context)
    form: dict[str, Any] = {name: config[name] for name in ("loss", "l2", "classes")}
    if form["loss"] == "softmax" and not form["classes"]:
        raise ConfigError(
            "a node does not see all classes: state their number, classes = 10 in pyproject.toml"
        )
    return of_client(from_clients([own], **form), 0)


def _number(context: Any) -> int:
    try:
        return int(context.node_config["partition-id"])
    except (KeyError, ValueError):
        raise ConfigError(
            "a node without a number: start it with --node-config 'partition-id=0', 1, ..."
        ) from None


def _session(method: Any, config: Mapping[str, Any], facts: Mapping[str, Any]) -> Session:
    known = Facts(
        np.array(facts["start"]),
        np.array(facts["samples"]),
        np.array(facts["weights"]),
        float(facts["mu"]),
        float(facts["L"]),
    )
    cohort = FixedSize(int(config["cohort"])) if config["cohort"] else None
    streams = Streams(int(config["seed"]), (1,))
    return Session(method, known, streams, cohort, exact=bool(config["exact"]))


def _meet(method: Any, grid: Any, config: Mapping[str, Any]) -> tuple[dict[int, int], dict[str, Any]]:
    """Node of each client, and public facts, which all nodes are told."""
    from flwr.app import ConfigRecord, RecordDict

    N = int(config["clients"])
    begun = time.monotonic()
    while len(here := list(grid.get_node_ids())) < N:
        if time.monotonic() - begun > _PATIENCE:
            raise ReplifedError(f"{len(here)} of {N} nodes are there: start the others, or lower `clients`")
        time.sleep(_PAUSE)
    answers = _ask(grid, {node: RecordDict() for node in here}, "query")
    about = {node: answer["about"] for node, answer in answers.items()}
    nodes = {int(one["number"]): node for node, one in about.items()}
    numbers = sorted(int(one["number"]) for one in about.values())
    if numbers != list(range(N)):
        raise ConfigError(f"nodes have the numbers {numbers}: give them partition-id=0 to {N - 1}")
    each = [about[nodes[i]] for i in range(N)]
    if len(dims := {int(one["dim"]) for one in each}) > 1:
        raise ReplifedError(f"nodes have models of {sorted(dims)} coordinates: must be equally many")
    samples = [int(one["samples"]) for one in each]
    by_samples = config["weights"] == "samples"
    if by_samples and not getattr(method, "weighted", False):
        raise ConfigError(f"{type(method).__name__} takes plain means: set weights = 'equal'")
    facts = {
        "start": _start(method, N, dims.pop()),
        "samples": samples,
        "weights": [n / sum(samples) if by_samples else 1 / N for n in samples],
        "mu": min(float(one["mu"]) for one in each),
        "L": max(float(one["L"]) for one in each),
    }
    facts_of = {node: RecordDict({"facts": ConfigRecord(facts)}) for node in nodes.values()}
    if len(_ask(grid, facts_of, "query")) < N:
        raise ReplifedError("a node did not take the facts of the run: start it again")
    return nodes, facts


def _start(method: Any, N: int, dim: int) -> list[float]:
    """x_0 of a method of one's own, which may depend on shapes alone; zero of the others."""
    if type(method).__module__.startswith("replifed.algorithms"):
        return [0.0] * dim
    shapes = SimpleNamespace(n_clients=N, dim=dim, dtype=np.dtype(float))
    try:
        state = method.init(shapes, Streams(0, (1,)))
    except AttributeError as error:
        name = type(method).__name__
        raise ConfigError(f"{name}.init may read {', '.join(vars(shapes))} of the problem: {error}") from None
    return [float(value) for value in method.observe(state)["server"][0]]


def _deliver(grid: Any, nodes: Mapping[int, int], messages: Mapping[int, bytes]) -> dict[int, bytes]:
    """Transport of `wire.run` over Flower's."""
    from flwr.app import ConfigRecord, RecordDict

    records = {
        nodes[i]: RecordDict({"message": ConfigRecord({"bytes": data})}) for i, data in messages.items()
    }
    answers = _ask(grid, records, "train")
    return {i: answers[nodes[i]]["message"]["bytes"] for i in messages if nodes[i] in answers}


def _ask(grid: Any, records: Mapping[int, Any], kind: str) -> dict[int, Any]:
    """Answers of nodes, without those of nodes that leave, fail or stay silent."""
    from flwr.app import Message

    messages = [Message(record, node, kind) for node, record in records.items()]
    waiting = dict(zip(grid.push_messages(messages), records, strict=True))
    answers, begun = {}, time.monotonic()
    while waiting and time.monotonic() - begun < _PATIENCE:
        for reply in grid.pull_messages(waiting):
            node = waiting.pop(reply.metadata.reply_to_message_id)
            if reply.has_error():
                print(f"node {node}: {reply.error.reason}", flush=True)
            else:
                answers[node] = reply.content
        here = set(grid.get_node_ids())
        waiting = {message: node for message, node in waiting.items() if node in here}
        time.sleep(_PAUSE)
    return answers


def _report(record: Record, file: str) -> None:
    """Print what was sent, and write models and messages to a file, if one is named."""
    up, down = (int(record.bits(up=way).sum()) for way in (True, False))
    beside = sum(one.overhead for one in record.sent) / max(len(record.sent), 1)
    print(
        f"replifed: {up} bits up, {down} bits down, as the ledger counts; {len(record.sent)} messages with "
        f"{beside:.0f} bytes of head each",
        flush=True,
    )
    if file:
        with replacing(file) as temporary, temporary.open("wb") as out:
            np.savez(out, models=record.models, sent=np.array(record.sent, dtype=np.int64))
