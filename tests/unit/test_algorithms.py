"""Every registered method honours the contract; hard-thresholding methods do what their paper says."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from replifed.algorithms.base import Round
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.hard_thresholding import alpha, fedht_rate, fediterht_rate
from replifed.algorithms.registry import METHODS, method_class
from replifed.errors import ConfigError, ReplifedError
from replifed.network.participation import FixedSize
from replifed.operators.hard_threshold import hard_threshold
from replifed.papers.fedht.simulations import planted
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.problems.sparse import SparseLinearModel
from replifed.randomness import Streams
from replifed.simulate import simulate

# A new method is tested by a line here: settings for `problem`, without the minibatch size.
SETTINGS = {
    "distributed_iht": {"step": 0.05, "sparsity": 4},
    "fedavg": {"step": 0.05, "local_steps": 3},
    "feddualavg": {"step": 0.05, "local_steps": 3, "weight": 0.01},
    "fedgradmp": {"step": 0.05, "local_steps": 3, "sparsity": 4, "solver": "sgd", "reuse": True},
    "fedht": {"step": 0.05, "local_steps": 3, "sparsity": 4},
    "fediterht": {"step": 0.05, "local_steps": 3, "sparsity": 4},
    "fedmid": {"step": 0.05, "local_steps": 3, "weight": 0.01},
}
# Bits of one round by hand: 4 clients; a dense message is 10 x 32 bits, a sparse one 4 x 32 and a mask of 10.
BITS = {
    "distributed_iht": (4 * 320, 4 * 138),
    "fedavg": (4 * 320, 4 * 320),
    "feddualavg": (4 * 320, 4 * 320),
    "fedgradmp": (4 * 138, 4 * 138),
    "fedht": (4 * 320, 4 * 138),
    "fediterht": (4 * 138, 4 * 138),
    "fedmid": (4 * 320, 4 * 320),
}
# A value outside its range for every setting that a method may have, and how the range is written.
REFUSED = {
    "step": [
        (None, "(0, inf]"),
        (0.0, "(0, inf]"),
        (-1.0, "(0, inf]"),
        (math.nan, "(0, inf]"),
        (np.array([0.1, -1]), "(0, inf]"),
    ],
    "sparsity": [(0, "a whole number in [1, inf]"), (2.5, "a whole number"), (None, "a whole number")],
    "local_steps": [(0, "a whole number in [1, inf]"), (3.0, "a whole number")],
    "batch": [(0, "a whole number in [1, inf]"), ("all", "a whole number")],
    "batch_decay": [(0.0, "(0, 1]"), (1.1, "(0, 1]")],
    "weight": [(-0.1, "[0, inf]"), (None, "a number")],
    "server_step": [(0.0, "(0, inf]")],
    "server_prox_steps": [],
    "projection": [],
    "solver": [("lbfgs", "exact, newton, gd, sgd")],
    "inner_steps": [(0, "a whole number in [1, inf]")],
    "inner_batch": [(0, "a whole number in [1, inf]")],
    "reuse": [],
    "radius": [(0.0, "(0, inf]")],
}
# Methods that do not fit the settings above; their contract is tested in files of their own.
ELSEWHERE = {
    **dict.fromkeys(("fedadam", "fedmm_ot"), "test_fedmm_transport"),
    **dict.fromkeys(("fedmm", "parameter_aggregation", "sa_ssmm"), "test_fedmm_methods"),
    **dict.fromkeys(("fedlin", "fedpd", "fedplt", "fivegcs", "led", "tamuna"), "test_fedplt_methods"),
    **dict.fromkeys(("fednl", "giant", "gradient_descent", "newton"), "test_qshed_methods"),
    **dict.fromkeys(("ideal_shed", "nqshed", "qshed", "shed"), "test_qshed_methods"),
}
# Methods whose local models are dense whatever the data.
DENSE = ("feddualavg", "fedgradmp", "fedmid")
SIZES = (6, 3, 5, 6)
STREAMS = Streams(7, (1, 2))
THRESHOLDING = ("distributed_iht", "fedht", "fediterht")

method = pytest.mark.parametrize("name", SETTINGS)
batch_size = pytest.mark.parametrize("batch", [None, 4], ids=["full", "minibatch"])
layout = pytest.mark.parametrize("layout", ["dense", "csr"])


def samples(d=10, seed=0):
    """Targets and features of four clients, one list entry a client."""
    rng = np.random.default_rng(seed)
    X = [rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6) for n in SIZES]
    return X, [rng.choice([-1.0, 1.0], n) for n in SIZES]


def problem(layout="dense", loss="logistic", order=(0, 1, 2, 3), d=10):
    """Four clients, listed in the order `order`."""
    X, y = samples(d)
    X, y, n = [X[i] for i in order], [y[i] for i in order], np.array(SIZES)[list(order)]
    if layout == "csr":
        client = np.repeat(np.arange(4), n)
        return SparseLinearModel(sp.csr_array(np.concatenate(X)), np.concatenate(y), loss_named(loss), client)
    stacked, targets = np.zeros((1, 4, max(n), d)), np.zeros((1, 4, max(n)))
    for i in range(4):
        stacked[0, i, : n[i]], targets[0, i, : n[i]] = X[i], y[i]
    return DenseLinearModel(stacked, targets, loss_named(loss), sizes=n[None])


@pytest.fixture(autouse=True)
def _dense_methods_have_one_layout(request):
    asked = getattr(request.node, "callspec", None)
    if asked and asked.params.get("layout") == "csr" and asked.params.get("name") in DENSE:
        pytest.skip("its local models are dense")


def build(name, **more):
    return method_class(name)(**SETTINGS[name] | more)


def same(a, b):
    return type(a) is type(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def copied(state):
    return type(state)(*(field.copy() for field in state))


# -- the contract ------------------------------------------------------------------------------------


def test_every_method_is_in_the_tables():
    assert set(SETTINGS) == set(BITS)
    assert set(SETTINGS) | set(ELSEWHERE) == set(METHODS)
    folder = Path(__file__).parent
    for name, file in ELSEWHERE.items():
        attribute = METHODS[name].split(":")[1]
        assert attribute in (folder / f"{file}.py").read_text(encoding="utf-8")


def test_unknown_methods_are_named_with_the_nearest():
    with pytest.raises(ConfigError, match="unknown method 'fedth'; did you mean 'fedht'"):
        method_class("fedth")


@method
@batch_size
@layout
def test_a_round_is_a_pure_function(name, batch, layout):
    data, algorithm = problem(layout), build(name, batch=batch)
    kept = [np.array(array.toarray() if sp.issparse(array) else array) for array in (data.X, data.y)]
    state = simulate(algorithm, data, STREAMS, 2).state
    before = copied(state)
    context = Round(2, None, None, STREAMS.at(2))
    first, first_cost = algorithm.round(state, data, context)
    second, second_cost = algorithm.round(state, data, context)
    assert same(first, second)
    assert not same(first, before)
    assert all(np.array_equal(a, b) for a, b in zip(first_cost, second_cost, strict=True))
    assert same(state, before)
    for array, old in zip((data.X, data.y), kept, strict=True):
        assert np.array_equal(array.toarray() if sp.issparse(array) else array, old)


class Relabelled(Streams):
    """Streams whose clients are listed in another order."""

    order = (2, 0, 3, 1)

    def draw(self, purpose, sample):
        assert purpose == "batch", f"say here how {purpose!r} is relabelled"
        return super().draw(purpose, sample)[:, :, list(self.order)]


@method
@batch_size
@layout
def test_names_of_clients_do_not_matter(name, batch, layout):
    algorithm = build(name, batch=batch)
    plain = simulate(algorithm, problem(layout), STREAMS, 5)
    turned = simulate(algorithm, problem(layout, order=Relabelled.order), Relabelled(7, (1, 2)), 5)
    np.testing.assert_allclose(turned.state.x, plain.state.x, atol=1e-12)
    if batch is not None:
        # Without relabelled draws it is another run: the comparison above is not an empty one.
        other = simulate(algorithm, problem(layout, order=Relabelled.order), STREAMS, 5)
        assert not np.allclose(other.state.x, plain.state.x, atol=1e-3)


@method
@batch_size
@layout
def test_cost_is_counted(name, batch, layout):
    history = simulate(build(name, batch=batch), problem(layout), STREAMS, 3)
    K = SETTINGS[name].get("local_steps", 1)
    per_round = {
        "bits_up": BITS[name][0],
        "bits_down": BITS[name][1],
        "exchanges": 1,
        "iterations": K,
        "sample_gradients": K * (sum(SIZES) if batch is None else 4 * batch),
        "hessians": 0,
        "line_search_messages": 0,
    }
    assert set(history.ledger) == set(per_round)
    for what, used in per_round.items():
        np.testing.assert_array_equal(history.ledger[what], used * np.array([[t, t] for t in range(4)]), what)


@method
@batch_size
@layout
def test_a_run_goes_on_from_any_round(name, batch, layout, tmp_path):
    data, algorithm, rounds = problem(layout), build(name, batch=batch), 5
    whole = simulate(algorithm, data, STREAMS, rounds)
    for t in range(1, rounds):
        state = simulate(algorithm, data, STREAMS, t).state
        np.savez(tmp_path / "state.npz", **state._asdict())
        with np.load(tmp_path / "state.npz") as stored:
            state = type(state)(**stored)
        rest = simulate(algorithm, data, STREAMS, rounds, resume=(t, state))
        assert same(rest.state, whole.state)
        assert np.array_equal(rest.rounds, whole.rounds[t:])
        assert np.array_equal(rest.metrics["objective"], whole.metrics["objective"][t:])


@method
@batch_size
@layout
def test_the_seed_decides_what_is_random(name, batch, layout):
    data, algorithm = problem(layout), build(name, batch=batch)
    first = simulate(algorithm, data, STREAMS, 3).state
    assert same(simulate(algorithm, data, STREAMS, 3).state, first)
    assert algorithm.stochastic == (batch is not None)
    for other in (Streams(8, (1, 2)), Streams(7, (3, 4))):
        assert same(simulate(algorithm, data, other, 3).state, first) != algorithm.stochastic
    assert np.array_equal(first.x[0], first.x[1]) != algorithm.stochastic


@method
@batch_size
@layout
def test_a_grid_of_steps_is_its_single_runs(name, batch, layout):
    data, steps = problem(layout), np.array([0.01, 0.2, 0.05, 0.1, 0.02, 0.3])
    grid = simulate(build(name, batch=batch, step=steps), data, Streams(7, (1,) * 6), 4)
    for row, step in enumerate(steps):
        alone = simulate(build(name, batch=batch, step=step), data, Streams(7, (1,)), 4)
        np.testing.assert_allclose(grid.state.x[row], alone.state.x[0], atol=1e-12)
        objective = grid.metrics["objective"][:, row]
        np.testing.assert_allclose(objective, alone.metrics["objective"][:, 0], rtol=1e-12)


@method
def test_settings_are_refused_by_name_and_range(name):
    with pytest.raises(TypeError, match="stepsize"):
        build(name, stepsize=0.1)
    with pytest.raises(TypeError, match="positional"):
        method_class(name)(0.1)
    settable = [field.name for field in dataclasses.fields(method_class(name)) if field.init]
    assert set(settable) <= set(REFUSED), "say here what is out of range"
    for setting in settable:
        for value, allowed in REFUSED[setting]:
            with pytest.raises(ConfigError) as refusal:
                build(name, **{setting: value})
            message = str(refusal.value)
            assert f"{method_class(name).__name__}.{setting} = " in message
            assert allowed in message


@method
def test_what_a_problem_lacks_is_said_before_round_0(name):
    class Nothing:
        n_clients, dim, dtype = 1, 3, float

    algorithm, called = build(name), []
    missing = ", ".join(need.__name__ for need in algorithm.needs)
    with pytest.raises(ReplifedError, match=f"{type(algorithm).__name__} needs {missing}, which Nothing"):
        simulate(algorithm, Nothing(), STREAMS, 3, progress=lambda *done: called.append(done))
    assert not called


def test_minibatches_are_uniform_over_each_clients_samples():
    data, rounds = problem(), 500
    drawn = np.stack(
        [Cohort(data, Round(t, None, None, STREAMS.at(t))).minibatches(2, 5) for t in range(rounds)]
    )
    assert drawn.shape == (rounds, 2, 2, 4, 5)
    for i, n in enumerate(SIZES):
        counts = np.bincount(drawn[..., i, :].ravel(), minlength=n)
        draws = rounds * 2 * 2 * 5
        assert len(counts) == n
        assert np.all(np.abs(counts - draws / n) < 4 * np.sqrt(draws / n * (1 - 1 / n)))
    # With replacement: pairs of draws agree once in n times.
    pairs = np.mean(drawn[..., 0, 0] == drawn[..., 0, 1])
    assert abs(pairs - 1 / 6) < 4 * math.sqrt(1 / 6 * 5 / 6 / (rounds * 4))
    cohort = Cohort(data, Round(0, None, None, STREAMS.at(0)))
    assert cohort.minibatches(3, 6) == cohort.minibatches(3, None) == [None] * 3


# -- hard thresholding (Tong et al. 2022) ------------------------------------------------------------


def box(x, batches, step, K, tau, *, inside):
    """One round of Algorithms 1 and 2, client by client, with K steps; logistic loss."""
    X, y = samples()
    total = np.zeros_like(x)
    for i, n in enumerate(SIZES):
        u = x.copy()
        for k in range(K):
            chosen = range(n) if batches[k] is None else batches[k][i]
            g = np.zeros_like(u)
            for j in chosen:
                g -= y[i][j] * X[i][j] / (1 + math.exp(y[i][j] * (X[i][j] @ u)))
            u = u - step * g / len(chosen)
            if inside:
                u = keep_largest(u, tau)
        total += n / sum(SIZES) * u
    return keep_largest(total, tau)


def keep_largest(v, tau):
    kept = np.zeros_like(v)
    for j in sorted(range(len(v)), key=lambda j: (-abs(v[j]), j))[:tau]:
        kept[j] = v[j]
    return kept


@layout
@batch_size
@pytest.mark.parametrize("name", ["fedht", "fediterht"])
def test_rounds_are_those_of_the_papers_boxes(name, batch, layout):
    data, algorithm = problem(layout), build(name, batch=batch, step=0.3)
    state = algorithm.init(data, STREAMS)
    assert not state.x.any()
    for t in range(6):
        context = Round(t, None, None, STREAMS.at(t))
        batches = Cohort(data, context).minibatches(3, batch)
        expected = [
            box(
                state.x[row],
                [b if b is None else b[row] for b in batches],
                0.3,
                3,
                4,
                inside=name == "fediterht",
            )
            for row in range(2)
        ]
        state, _ = algorithm.round(state, data, context)
        np.testing.assert_allclose(state.x, expected, atol=1e-12)


@layout
@pytest.mark.parametrize("batch", [None, 2, 4])
@pytest.mark.parametrize("name", ["fedht", "fediterht"])
def test_numbers_of_local_steps_side_by_side_are_their_single_runs(name, batch, layout):
    data, K, step = problem(layout), np.array([7, 3, 7, 1]), np.array([0.1, 0.3, 0.2, 0.1])
    together = build(name, batch=batch, local_steps=K, step=step)
    history = simulate(together, data, Streams(7, (1,) * 4), 5)
    for row in range(4):
        own = build(name, batch=batch, local_steps=int(K[row]), step=step[row])
        alone = simulate(own, data, Streams(7, (1,)), 5)
        np.testing.assert_allclose(history.state.x[row], alone.state.x[0], atol=1e-12)
        for name_, totals in alone.ledger.items():
            assert np.array_equal(history.ledger[name_][:, row], totals[:, 0])
    # Rows with random numbers of their own.
    history = simulate(together, data, Streams(7, (1, 2, 3, 4)), 5)
    for row in range(4):
        own = build(name, batch=batch, local_steps=int(K[row]), step=step[row])
        alone = simulate(own, data, Streams(7, (row + 1,)), 5)
        np.testing.assert_allclose(history.state.x[row], alone.state.x[0], atol=1e-12)


@pytest.mark.parametrize("name", ["fedht", "fediterht"])
def test_numbers_of_local_steps_may_differ_between_data_sets_and_cohorts(name):
    X, y = problem().X, problem().y
    sets = [DenseLinearModel(a * X, y, loss_named("logistic"), sizes=np.array([SIZES])) for a in (1.0, 0.5)]
    both = DenseLinearModel(
        np.concatenate([one.X for one in sets]),
        np.concatenate([one.y for one in sets]),
        loss_named("logistic"),
        sizes=np.array([SIZES, SIZES]),
    )
    mixed = simulate(build(name, local_steps=np.array([1, 3])), both, STREAMS, 3, cohort=FixedSize(2))
    for row, K in enumerate((1, 3)):
        streams = Streams(7, STREAMS.replicates[row : row + 1])
        alone = simulate(build(name, local_steps=K), sets[row], streams, 3, cohort=FixedSize(2))
        np.testing.assert_allclose(mixed.state.x[row], alone.state.x[0], atol=1e-12)


@layout
@batch_size
def test_distributed_iht_is_fedht_with_one_local_step(batch, layout):
    data = problem(layout)
    one = simulate(build("distributed_iht", batch=batch), data, STREAMS, 6)
    other = simulate(build("fedht", local_steps=1, batch=batch), data, STREAMS, 6)
    assert same(one.state, other.state)
    assert all(np.array_equal(one.ledger[what], other.ledger[what]) for what in one.ledger)
    with pytest.raises(TypeError, match="local_steps"):
        method_class("distributed_iht")(step=0.1, sparsity=4, local_steps=2)


@layout
@batch_size
def test_fedht_that_keeps_everything_is_fedavg(batch, layout):
    data = problem(layout)
    thresholded = simulate(build("fedht", sparsity=10, batch=batch), data, STREAMS, 6)
    averaged = simulate(build("fedavg", batch=batch), data, STREAMS, 6)
    assert same(thresholded.state, averaged.state)


@pytest.mark.parametrize("name", THRESHOLDING)
def test_one_client_and_one_full_step_is_iterative_hard_thresholding(name):
    X, y = samples()
    data = DenseLinearModel(X[0][None, None], y[0][None, None], loss_named("least_squares"))
    more = {} if name == "distributed_iht" else {"local_steps": 1}
    got = simulate(build(name, **more), data, Streams(0, (0,)), 10).state.x[0]
    x = np.zeros(10)
    for _ in range(10):
        x = keep_largest(x - 0.05 * X[0].T @ (X[0] @ x - y[0]) / 6, 4)
    np.testing.assert_allclose(got, x, atol=1e-12)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("name", THRESHOLDING)
def test_messages_are_as_sparse_as_they_are_billed(name, layout, monkeypatch):
    data, sent = problem(layout), []
    lend = data.local

    def spied(*args, **kwargs):
        local = lend(*args, **kwargs)
        mean = local.mean

        def noted(u):
            if layout == "dense":
                sent.append(np.count_nonzero(u, axis=-1))
            return mean(u)

        local.mean = noted
        return local

    monkeypatch.setattr(data, "local", spied)
    history = simulate(
        build(name, batch=4),
        data,
        STREAMS,
        6,
        metrics={"nonzeros": lambda _, seen: np.count_nonzero(seen["server"], axis=-1)},
    )
    assert np.all(history.metrics["nonzeros"] <= 4)
    assert np.all(history.metrics["nonzeros"][1:] > 0)
    # How many entries of a client's model are kept before it is sent (for CSR: tests/unit/test_problems.py).
    if name == "fediterht" and layout == "dense":
        np.testing.assert_array_equal(sent, np.full((6, len(STREAMS), 4), 4))


@pytest.mark.parametrize("name", THRESHOLDING)
def test_batches_grow_up_to_the_clients_samples(name):
    algorithm = build(name, batch=2, batch_decay=0.8)
    assert [algorithm.batch_size(t) for t in range(6)] == [2, 3, 4, 4, 5, 7]
    assert build(name, batch_decay=0.8).batch_size(3) is None
    # No overflow however long the run.
    assert algorithm.batch_size(100_000) is None
    used = simulate(algorithm, problem(), Streams(0, (0,)), 6).ledger["sample_gradients"][:, 0]
    K = algorithm.local_steps
    # From 6 samples, the largest client's, everyone takes all it has.
    assert np.diff(used).tolist() == [K * n for n in (8, 12, 16, 16, 20, sum(SIZES))]


# -- theorems ----------------------------------------------------------------------------------------


def test_rates_by_hand():
    assert alpha(5, 1) == 1.0
    assert alpha(18, 2) == pytest.approx(2 * math.sqrt(2) / 4)
    assert alpha(3, 3) == alpha(2, 3) == math.inf
    # kappa = 1: factors of 11/12. Theorem 1 asks for tau >= 16 x 11^2 + 1 = 1937, where alpha = 1/22
    # makes 1 + 2 alpha = 12/11: exactly the factor that one step gains.
    rate = fedht_rate(1.0, 1937, 1, 2)
    assert rate[:3] == (pytest.approx(11 / 12), 1937, True)
    assert fedht_rate(1.0, 1936, 1, 2).holds is False
    # At tau = 5, tau* = 1: alpha = 1 and q = (11/12)^2, so xi_1 l^2 / delta_1 is 2 (1 - q) / q.
    q = (11 / 12) ** 2
    assert fedht_rate(1.0, 5, 1, 2) == (pytest.approx(3 * q), 1937, False, pytest.approx(2 * (1 - q) / q))
    assert fedht_rate(2.0, 50, 2, 1).least_sparsity == (16 * 23**2 + 1) * 2
    # Theorem 2: at its smallest tau, (1 + 2 alpha)^2 = 12/11.
    least = fediterht_rate(1.0, 10, 1, 1).least_sparsity
    assert least == pytest.approx(16 / (math.sqrt(12 / 11) - 1) ** 2 + 1)
    above = fediterht_rate(1.0, math.ceil(least), 1, 1)
    assert (above.theta, above.holds) == (pytest.approx(1, abs=1e-4), True)
    assert fediterht_rate(1.0, math.floor(least), 1, 9).holds is False
    assert fediterht_rate(1.0, 5, 1, 2) == (
        pytest.approx(9 * q),
        pytest.approx(least),
        False,
        pytest.approx(4 * (1 - q) / (5 * q)),
    )
    for rate in (fedht_rate, fediterht_rate):
        assert rate(math.inf, 10**6, 1, 10).holds is False


@pytest.mark.parametrize(
    "name, rate, tau, d", [("fedht", fedht_rate, 2160, 2200), ("fediterht", fediterht_rate, 9000, 9100)]
)
@pytest.mark.parametrize("K", [3, 8])
def test_theorems_bound_the_error_where_they_hold(name, rate, tau, d, K):
    kappa = 1.05
    settings = {"seed": 1, "clients": 2, "samples": d, "features": d, "planted": 1, "condition": kappa}
    data, x_star, _ = planted(settings, 0)
    promised = rate(kappa, tau, 1, K)
    assert promised.holds

    def error(_, seen):
        return np.sum((seen["server"] - x_star) ** 2, axis=-1)

    # Without noise, and all clients with one minimiser, no bias is left: the bound goes to zero.
    algorithm = build(name, step=1 / (6 * kappa), sparsity=tau, local_steps=K)
    errors = simulate(algorithm, data, Streams(1, (0,)), 12, metrics={"error": error}).metrics["error"][:, 0]
    assert np.all(errors <= errors[0] * promised.theta ** np.arange(13))
    # A straight line in the logarithm: every round gains the same factor, up to the last digits.
    logs = np.log(errors[: np.argmax(errors < 1e-20) or None])
    assert len(logs) > 5
    assert np.corrcoef(np.arange(len(logs)), logs)[0, 1] < -0.99


def test_thresholding_keeps_the_planted_support():
    # tau = tau*: below what the theorems ask, yet the problem is easy enough to be solved exactly.
    settings = {"seed": 2, "clients": 4, "samples": 60, "features": 60, "planted": 5, "condition": 1.05}
    data, x_star, _ = planted(settings, 0)
    for name in ("fedht", "fediterht"):
        found = simulate(build(name, step=0.5, sparsity=5), data, Streams(1, (0,)), 30).state.x[0]
        np.testing.assert_allclose(found, x_star, atol=1e-8)
        assert np.array_equal(found, hard_threshold(found, 5))
