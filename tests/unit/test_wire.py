"""Methods as one client and a server that send bytes, against all clients at once and the ledger."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from replifed.algorithms.local_solvers import Accelerated, Exact, Gradient, Noisy, Stochastic
from replifed.algorithms.newton_type import Armijo
from replifed.algorithms.registry import METHODS, method_class
from replifed.contract.problems import make
from replifed.engine.simulate import simulate
from replifed.errors import ReplifedError
from replifed.network.fading import Rayleigh
from replifed.network.participation import FixedSize, Independent, Participation
from replifed.operators.proximal import L1
from replifed.operators.quantise import DITHERS, draw_dither, quantise
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.randomness import Streams
from replifed.wire import codec
from replifed.wire.forms import MODULES, common, forms_of
from replifed.wire.messages import Dense
from replifed.wire.own_data import split
from replifed.wire.run import Client, in_process, run, serve
from replifed.wire.session import Session

PAGE = Path(__file__).parents[2] / "docs/wire.md"
ROUNDS, N, STREAMS = 20, 5, Streams(7, (3,))
SOME, MASK = FixedSize(3), Independent(0.4)

# Name, settings that differ from the example's, who takes part, and how far the two forms may be apart.
CASES: list[tuple[str, dict[str, Any], Any, float]] = [
    ("fedavg", {}, None, 1e-9),
    ("fedavg", {"batch": 4}, SOME, 1e-9),
    ("fedavg", {}, MASK, 1e-9),
    ("fedht", {"batch": 3, "batch_decay": 0.9}, SOME, 1e-9),
    ("fediterht", {"batch": 4}, SOME, 1e-9),
    ("fedlin", {}, None, 1e-9),
    ("fedlin", {"solver": Stochastic(steps=3, batch=4, step=0.05)}, None, 1e-9),
    ("scaffold", {"option": "1", "solver": Gradient(steps=3, step=0.02)}, SOME, 1e-9),
    ("scaffold", {"solver": Stochastic(steps=3, batch=4), "server_step": 0.5}, MASK, 1e-9),
    ("scaffnew", {"solver": Stochastic(steps=3, batch=4, step=0.02)}, None, 1e-9),
    ("fedplt", {"solver": Accelerated(steps=3), "start": "cold"}, MASK, 1e-9),
    ("fedplt", {"solver": Noisy(steps=3, tau=0.1, clip=1.0), "start_deviation": 0.5}, SOME, 1e-9),
    (
        "fedplt",
        {"solver": Noisy(steps=3, tau=0.1, reading="deviation"), "penalty": L1(weight=0.05)},
        None,
        1e-9,
    ),
    ("tamuna", {"solver": Stochastic(steps=3, batch=4), "sparsity": 2}, SOME, 1e-9),
    ("tamuna", {"sparsity": 3, "eta": 0.03, "solver": Gradient(steps=3, step=0.02)}, None, 1e-9),
    ("tamuna", {}, MASK, 1e-9),
    ("fedgradmp", {"radius": 0.2}, SOME, 1e-9),
    ("fedgradmp", {"solver": "sgd", "step": 0.05, "reuse": True, "inner_steps": 2, "batch": 4}, None, 1e-9),
    ("fedgradmp", {"solver": "gd", "inner_steps": 3}, None, 1e-9),
    ("fednl", {"vector_bits": 30}, None, 1e-7),
    ("fednl", {"vector_bits": 30, "b_max": 14, "quantised": True}, None, 1e-7),
    ("fednl", {"compressor": "topk", "option": 2, "alpha": 0.5}, None, 1e-7),
    ("fednl", {"quantised": True, "b_max": 24, "start": "hessian", "line_search": None}, None, 1e-7),
    ("qshed", {}, None, 1e-9),
    # So large a share of the decrease is met by no step: the last trial is taken.
    ("qshed", {"normalise": True, "renewals": 3, "line_search": Armijo(c=0.9, trials=2)}, None, 1e-9),
]


def model(N: int = N) -> DenseLinearModel:
    return make("dense", range(N))


def both(name: str, changes: dict[str, Any], cohort: Any, rounds: int = ROUNDS, **more: Any):
    """Models of each round and bits up and down, of the batched form and over the wire."""
    method, models = replace(method_class(name).example(), **changes), []

    def seen(problem: Any, observed: dict[str, Any]):
        models.append(observed["server"][0])
        return np.zeros(1)

    shared: dict[str, Any] = {"cohort": cohort, "channel": Rayleigh(20)}
    batched = simulate(method, model(), STREAMS, rounds, metrics={"model": seen}, **shared)
    bits = [np.diff(batched.ledger[way][:, 0]) for way in ("bits_up", "bits_down")]
    return np.array(models), bits, run(method, model(), STREAMS, rounds, **shared, **more)


@pytest.mark.parametrize(
    "name, changes, cohort, apart", CASES, ids=[f"{c[0]}-{'-'.join(c[1])}" for c in CASES]
)
def test_wire_client_and_server_are_the_batched_form_and_send_what_it_books(name, changes, cohort, apart):
    models, (up, down), wired = both(name, changes, cohort, exact=True)
    np.testing.assert_allclose(wired.models, models, rtol=0, atol=apart)
    assert np.abs(models[-1] - models[0]).max() > 0.01
    np.testing.assert_array_equal(wired.bits(up=True), up)
    np.testing.assert_array_equal(wired.bits(up=False), down)


def test_wire_the_example_of_the_page_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    exec(block, {"problem": model()})
    assert capsys.readouterr().out.startswith("[")


def test_wire_every_form_has_a_case():
    assert {method_class(name).__name__ for name, *_ in CASES} == set(MODULES)
    assert {method_class(name).__name__ for name in METHODS} >= set(MODULES)


# First-order methods, and the others where the batched form rounds, too.
ROUNDED = [
    *(case[:3] for case in CASES if case[0] not in ("fednl", "qshed")),
    ("fednl", {"single_precision": True}, None),
    ("qshed", {"single_precision": True}, None),
]


@pytest.mark.parametrize("name, changes, cohort", ROUNDED, ids=[f"{c[0]}-{'-'.join(c[1])}" for c in ROUNDED])
def test_wire_bytes_are_as_long_as_the_ledger_says_and_round_models(name, changes, cohort, monkeypatch):
    lengths, encode = [], codec.encode

    def noted(*arguments: Any) -> bytes:
        data = encode(*arguments)
        lengths.append(len(data))
        return data

    monkeypatch.setattr(codec, "encode", noted)
    models, (up, down), wired = both(name, changes, cohort, rounds=6)
    np.testing.assert_array_equal(wired.bits(up=True), up)
    np.testing.assert_array_equal(wired.bits(up=False), down)
    assert sorted(lengths) == sorted(one.overhead + -(-one.bits // 8) for one in wired.sent)
    error = np.abs(wired.models - models).max()
    assert error < 1e-12 if "single_precision" in changes else 1e-12 < error < 2e-6


def test_wire_a_float_of_sixteen_bits_stalls_a_newton_method():
    models, _, wired = both("fednl", {"line_search": None, "start": "hessian"}, None)
    error = np.abs(wired.models[-5:] - models[-1]).max()
    assert 1e-7 < error < 1e-2


@pytest.mark.parametrize("bits", [1, 5, 24])
def test_wire_cells_are_the_quantiser_and_split_bit_by_bit(bits):
    rng = np.random.default_rng(2)
    v, noise = rng.uniform(-1, 1, (4, 9)), draw_dither(rng, (4, 9))
    for kind in DITHERS[:2]:
        shared = noise if kind == "nested" else np.zeros_like(noise)
        b = np.full(4, bits)
        number = common.cells(v, shared, b)
        np.testing.assert_array_equal(common.midpoints(number, shared, b), quantise(v, b, noise, kind))
        assert number.min() >= 0 and number.max() < 2**bits
        np.testing.assert_array_equal(common.cells(v, shared, b + 3) >> 3, number)


# -- clients that do not answer ---------------------------------------------------------------------------


def answering(name: str, cohort: Any = None, **changes: Any):
    """Clients that answer, and their session."""
    method = replace(method_class(name).example(), **changes)
    facts, own = split(method, model(), STREAMS)
    session = Session(method, facts, STREAMS, cohort=cohort)
    return in_process([Client(session, i, data) for i, data in enumerate(own)]), session


def served(name: str, silent: dict[int, set[int]], cohort: Any = None, **changes: Any):
    """A run whose clients `silent[t]` do not answer from round t on."""
    answer, session = answering(name, cohort, **changes)

    def deliver(messages):
        key = session.key(up=False)
        now = max(codec.decode(data, range(N), key=key).round for data in messages.values())
        lost = {i for t, who in silent.items() for i in who if now >= t}
        return answer({i: data for i, data in messages.items() if i not in lost})

    return serve(session, 6, deliver)


def test_wire_a_client_that_is_lost_leaves_a_round_with_partial_participation():
    record = served("scaffold", {2: {1}})
    asked = {t: {one.client for one in record.sent if one.round == t and not one.up} for t in range(6)}
    assert asked[2] == set(range(N)) and asked[3] == set(range(N)) - {1}

    class Lost:
        def __call__(self, streams, n_clients):
            active = np.ones((1, n_clients), bool)
            active[0, 1] = streams.round_ < 2
            return Participation(active, None)

    *_, wired = both("scaffold", {}, Lost(), rounds=6)
    np.testing.assert_array_equal(record.models, wired.models)


@pytest.mark.parametrize(
    "name, changes, says",
    [
        ("fedlin", {}, "^round 2: client 1 did not answer, and FedLin needs it$"),
        ("tamuna", {"sparsity": 3}, "^TAMUNA.sparsity: a client did not answer in round 2: none may be"),
    ],
)
def test_wire_a_method_that_needs_all_clients_stops_in_one_line(name, changes, says):
    with pytest.raises(ReplifedError, match=says):
        served(name, {2: {1}}, **changes)
    with pytest.raises(ReplifedError, match="round 1: client 0, 1, 2, 3, 4 did not answer"):
        served("fedavg", {1: set(range(N))})


def test_wire_a_round_whose_clients_are_all_lost_leaves_the_model():
    def in_turn(streams, n_clients):
        active = np.zeros((1, n_clients), bool)
        active[0, [1, 2] if streams.round_ % 2 else [0, 1, 2]] = True
        return Participation(active, None)

    models = served("fedavg", {0: {1, 2}}, in_turn).models
    np.testing.assert_array_equal(models[2], models[1])
    assert not np.array_equal(models[3], models[2])


def test_wire_an_answer_in_the_name_of_another_client_is_refused():
    answer, session = answering("fedavg", SOME)

    def deliver(messages):
        (i, one), (j, other), *_ = answer(messages).items()
        return {i: other, j: one}

    with pytest.raises(ReplifedError, match=r"^round 0: client \d answered as client \d$"):
        serve(session, 1, deliver)


def test_wire_a_client_refuses_a_message_of_a_round_in_which_it_is_not():
    answer, session = answering("fedavg", SOME)
    out = min(set(range(N)) - set(session.turn(0).cohort))
    message = codec.encode([Dense(session.facts.start)], 0, 0, out, key=session.key(up=False))
    with pytest.raises(ReplifedError, match=f"^client {out} got a message of round 0, in which it is not$"):
        answer({out: message})


def test_wire_a_message_that_comes_again_is_refused():
    answer, session = answering("scaffold")
    parts = [Dense(session.facts.start), Dense(session.facts.start)]
    out = {0: codec.encode(parts, 3, 0, 0, key=session.key(up=False))}
    answer(out)
    with pytest.raises(ReplifedError, match=r"^client 0 got a message of round 3, exchange 0: round 3, ex"):
        answer(out)


@pytest.mark.parametrize(
    "name, changes",
    [
        ("qshed", {"b_max": 24}),  # the width of a gradient
        ("fediterht", {"sparsity": 3}),  # the length of a support
        ("fedavg", {"step": 0.1}),
    ],
)
def test_wire_a_side_with_other_settings_is_refused(name, changes):
    """Each message says its own width: with another one its numbers would be read, and believed."""
    says = r"^message of client 0 in round 0 is altered, or of a run with another method or other settings$"
    server, clients = answering(name)[1], answering(name, **changes)[0]
    with pytest.raises(ReplifedError, match=says):
        serve(server, 1, clients)
    answer, session = answering(name)
    keys = {session.key(up) for up in (True, False)} | {answering(name, **changes)[1].key(True)}
    assert len(keys) == 3

    def back(messages):
        return {0: messages[0]} | {i: one for i, one in answer(messages).items() if i > 0}

    with pytest.raises(ReplifedError, match=says):
        serve(session, 1, back)  # a message that comes back to its sender is no answer


@pytest.mark.parametrize("parts", [[Dense(np.ones(1))], []])
def test_wire_an_answer_of_another_shape_is_refused(parts):
    answer, session = answering("fedavg")

    def deliver(messages):
        return answer(messages) | {1: codec.encode(parts, 0, 0, 1, key=session.key(up=True))}

    with pytest.raises(ReplifedError, match=r"^answers whose parts 0 do not go together, of the shapes \("):
        serve(session, 1, deliver)


# -- what is refused --------------------------------------------------------------------------------------


def refusals():
    sets = make("dense", range(3), (0, 1))
    many = DenseLinearModel(np.ones((1, 2000, 1, 1)), np.ones((1, 2000, 1)), loss_named("logistic"))
    dense = "on the wire: give a linear model on one dense"
    yield "fedprox", {}, model(), "FedProx has no client and server: those that have are FedAvg, .*own-method"
    yield "fedavg", {}, make("sparse"), f"SparseLinearModel {dense}"
    yield "fedavg", {}, sets, f"DenseLinearModel {dense}"
    yield "fedavg", {}, many, "2000 clients on the wire: at most 1000"
    yield "fedlin", {"solver": Exact()}, model(), "Exact: a client on the wire has the solvers Gradient, "
    yield "qshed", {"dither": "fresh"}, model(), "QShed.dither = 'fresh', .*: on the wire nested"
    yield "fednl", {"b_max": 8}, model(), "a float of 8 bits: a float on the wire has 13 to 64; set b_max"


def test_wire_what_is_not_supported_is_refused_in_one_line():
    for name, changes, problem, says in refusals():
        method = replace(method_class(name).example(), **changes)
        with pytest.raises(ReplifedError, match=says) as refused:
            run(method, problem, STREAMS, 1)
        assert "\n" not in str(refused.value)
    with pytest.raises(ReplifedError, match=r"^FedLin is defined for full participation only .*; leave"):
        answering("fedlin", SOME)


def test_wire_forms_of_other_losses():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(1, 3, 8, 4)), rng.integers(0, 3, (1, 3, 8))
    softmax = DenseLinearModel(X, y, loss_named("softmax", 3), l2=0.1)
    squares = DenseLinearModel(X, y.astype(float), loss_named("least_squares"), l2=0.1)
    steepest = {"sparsity": 2, "solver": "gd", "inner_steps": 3}
    for name, changes, problem in (
        ("fedavg", {"batch": 3}, softmax),
        ("fednl", {}, softmax),
        ("fedgradmp", steepest, squares),
        ("fedgradmp", {"sparsity": 2}, squares),
    ):
        method = replace(method_class(name).example(), **changes)
        wired = run(method, problem, STREAMS, 4, exact=True)
        batched = simulate(method, problem, STREAMS, 4).state.x[0]
        np.testing.assert_allclose(wired.models[-1], batched, rtol=0, atol=1e-9)
    assert forms_of(method).client.args == (method,)
