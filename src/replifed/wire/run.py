"""Runs over the wire: the server's loop, a client's answer, and a transport within one process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ReplifedError
from replifed.wire import codec
from replifed.wire.forms import Forms, forms_of
from replifed.wire.own_data import OwnData, split
from replifed.wire.session import Session, Turn

Deliver = Callable[[Mapping[int, bytes]], Mapping[int, bytes]]
"""Transport: takes a message to each of some clients, returns the answers of those that gave one."""


class Sent(NamedTuple):
    """A message that was sent."""

    round: int
    exchange: int
    client: int
    up: bool  # to the server
    bits: int  # that the ledger counts
    overhead: int  # bytes beside them


@dataclass
class Client:
    """A client's side of a session: its data and its state."""

    session: Session
    number: int
    data: OwnData
    own: dict[str, Any] = field(default_factory=dict)  # arrays
    last: tuple[int, int] = (-1, -1)  # round and exchange that were answered last

    def answer(self, message: bytes) -> bytes:
        """Answer a message of the server.

        Raises
        ------
        ReplifedError
            It is refused by the codec, comes again or too late, or is of a round without this client.
        """
        session = self.session
        read = session.decode(message, [self.number], up=False)
        if (read.round, read.exchange) <= self.last:
            raise ReplifedError(
                f"client {self.number} got a message of round {read.round}, exchange {read.exchange}: round "
                f"{self.last[0]}, exchange {self.last[1]} is answered"
            )
        turn = session.turn(read.round, read.exchange, self.number)
        if self.number not in turn.cohort:
            raise ReplifedError(f"client {self.number} got a message of round {turn.t}, in which it is not")
        client = forms_of(session.method).client
        parts, self.own = client(read.parts, self.own, self.data, turn)
        self.last = read.round, read.exchange
        return session.encode(parts, read.round, read.exchange, self.number, up=True)


class Record(NamedTuple):
    """What a run left."""

    models: NDArray  # the server's model at the start and after each round, (T + 1, D)
    sent: list[Sent]

    def bits(self, up: bool) -> NDArray:
        """Bits of each round to the server, or from it, as the ledger counts them; (T,)."""
        total = np.zeros(len(self.models) - 1)
        for one in self.sent:
            total[one.round] += one.bits if one.up is up else 0
        return total


def serve(session: Session, rounds: int, deliver: Deliver) -> Record:
    """Run the server's form.

    Raises
    ------
    ReplifedError
        If a client does not answer and the method takes all, nobody answers, or an answer is refused.
    """
    forms, state = forms_of(session.method), {"x": session.facts.start}
    models, sent = [state["x"]], list[Sent]()
    gone: set[int] = set()  # clients that have stopped to answer
    for t in range(rounds):
        turn = session.turn(t)
        if not gone.issuperset(turn.cohort):  # else nobody takes part
            state = _round(session, forms, state, turn, deliver, sent, gone)
        models.append(state["x"])
    return Record(np.array(models), sent)


def _round(
    session: Session,
    forms: Forms,
    state: dict[str, NDArray],
    turn: Turn,
    deliver: Deliver,
    sent: list[Sent],
    gone: set[int],
) -> dict[str, NDArray]:
    """The server's state after a round."""
    name, here = type(session.method).__name__, [i for i in turn.cohort if i not in gone]
    server = forms.server(state, turn)
    try:
        message = next(server)
        for exchange in range(1 << 16):
            for_each = message if isinstance(message, dict) else dict.fromkeys(here, message)
            out = {
                i: session.encode(parts, turn.t, exchange, i, up=False)
                for i, parts in for_each.items()
                if i not in gone
            }
            back = deliver(out)
            sent += _entries(out, turn.t, exchange, False) + _entries(back, turn.t, exchange, True)
            read = {i: _read(data, i, out, session, (turn.t, exchange)) for i, data in back.items()}
            lost = [i for i in out if i not in back]
            gone.update(lost)
            here = [i for i in here if i not in gone]
            if lost and not (here and session.method.partial_participation):
                who = ", ".join(map(str, lost))
                raise ReplifedError(f"round {turn.t}: client {who} did not answer, and {name} needs it")
            message = server.send({i: read[i] for i in sorted(read)})
    except StopIteration as end:
        return end.value
    raise ReplifedError(f"{name}: round {turn.t} has more exchanges than a message can count")


def _read(
    data: bytes, i: int, asked: Collection[int], session: Session, at: tuple[int, int]
) -> list[NDArray]:
    """Parts of the answer that client i gave."""
    read = session.decode(data, asked, up=True, at=at)
    if read.client != i:
        raise ReplifedError(f"round {at[0]}: client {i} answered as client {read.client}")
    return read.parts


def _entries(messages: Mapping[int, bytes], t: int, exchange: int, up: bool) -> list[Sent]:
    return [Sent(t, exchange, i, up, *codec.size(data)) for i, data in messages.items()]


def in_process(clients: list[Client]) -> Deliver:
    """Return a transport to clients in this process."""

    def deliver(messages: Mapping[int, bytes]) -> Mapping[int, bytes]:
        return {i: clients[i].answer(data) for i, data in messages.items()}

    return deliver


def run(method: Any, problem: Any, streams: Any, rounds: int, **more: Any) -> Record:
    """Run a method over the wire within this process.

    Parameters
    ----------
    method : Method
    problem : DenseLinearModel
        Of one data set. It is handed on as it is, as by `engine.simulate`.
    streams : Streams
        Of one run.
    rounds : int
    more : `cohort`, `channel` and `exact` of `Session`.
    """
    facts, own = split(method, problem, streams)
    session = Session(method, facts, streams, **more)
    clients = [Client(session, i, data) for i, data in enumerate(own)]
    return serve(session, rounds, in_process(clients))
