"""Fed-PLT, its local solvers and the methods it is compared with: cohorts, boxes, exactness, theory."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from replifed.algorithms import fivegcs, tamuna
from replifed.algorithms.base import Round
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.fedlin import FedLin, theory_step
from replifed.algorithms.fedpd import FedPD, theory_eta
from replifed.algorithms.fedplt import FedPLT, best_rho
from replifed.algorithms.fivegcs import FiveGCS
from replifed.algorithms.led import LED, natural_parameters
from replifed.algorithms.local_solvers import (
    Accelerated,
    AcceleratedStochastic,
    Exact,
    Gradient,
    LocalObjective,
    Noisy,
    Stochastic,
    Uncoordinated,
    proximal,
)
from replifed.algorithms.splitting_theory import (
    accelerated_contraction,
    best_step,
    chi,
    contraction,
    error_bound,
    linear_round,
    noise_level,
    printed_accelerated_contraction,
    zeta,
)
from replifed.algorithms.tamuna import TAMUNA
from replifed.engine.simulate import simulate
from replifed.errors import ConfigError, ReplifedError
from replifed.network.participation import FixedSize, Independent
from replifed.operators.proximal import L1, Zero
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import LeastSquares, Logistic
from replifed.problems.minimiser import minimiser
from replifed.randomness import Streams

N, M, D, RIDGE = 4, 6, 3, 0.7


def problem(sets=1, agents=N, seed=0, summed=True):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((sets, agents, M, D))
    y = rng.choice([-1.0, 1.0], (sets, agents, M))
    return DenseLinearModel(X, y, Logistic(), l2=RIDGE, summed=summed)


def gradient(data, row, i, w):
    """Of f_i, sample by sample."""
    g = RIDGE * w
    for a, b in zip(data.X[row, i], data.y[row, i], strict=True):
        g = g - b * a / (1 + np.exp(b * (a @ w)))
    return g


def moduli(data):
    low, high = data.common_mu_L()
    return low[0], high[0]


def make(name, solver=Gradient, steps=3, cohort=N, data=None):
    """Each method with its theory's parameters."""
    low, high = moduli(problem() if data is None else data)
    if name == "fedplt":
        return FedPLT(rho=best_rho(low, high), solver=solver(steps=steps))
    if name == "fedpd":
        return FedPD(eta=theory_eta(high), solver=solver(steps=steps))
    if name == "fedlin":
        return FedLin(solver=solver(steps=steps, step=theory_step(high, steps)))
    if name == "led":
        alpha, beta = natural_parameters(high, steps)
        return LED(alpha=alpha, beta=beta, solver=solver(steps=steps))
    if name == "tamuna":
        gamma, eta = tamuna.theory_parameters(low, high, steps, N, cohort)
        return TAMUNA(gamma=gamma, eta=eta, solver=solver(steps=steps, step=1 / high))
    gamma, tau = fivegcs.theory_parameters(low, high, N, cohort)
    return FiveGCS(gamma=gamma, tau=tau, solver=solver(steps=steps))


METHODS = ("fedplt", "fedpd", "fedlin", "led", "tamuna", "fivegcs")
PARTIAL = ("fedplt", "tamuna", "fivegcs")
every = pytest.mark.parametrize("name", METHODS)


# -- data sets and cohorts ----------------------------------------------------------------------------


def test_samples_are_those_of_who_takes_part_where_runs_share_data_sets():
    data, streams = problem(2), Streams(5, (1, 1, 1, 2, 2, 2))
    active = np.arange(6 * data.n_clients).reshape(6, -1) % 3 > 0
    used = Cohort(data, Round(0, active, None, streams.at(0))).samples(None)
    np.testing.assert_array_equal(used, (np.repeat(data.sizes, 3, axis=0) * active).sum(axis=1))


SHARING = {name: lambda rho, name=name: make(name) for name in METHODS} | {
    "fedplt": lambda rho: FedPLT(rho=rho, solver=Gradient(steps=3)),  # a parameter a row
    "stochastic": lambda rho: FedPLT(rho=rho, solver=Stochastic(steps=3, batch=4)),
}


@pytest.mark.parametrize("name", SHARING)
def test_runs_that_share_a_data_set_are_its_single_runs(name):
    data, rho, algorithm = problem(2), np.linspace(0.2, 0.9, 6), SHARING[name]
    together = simulate(algorithm(rho), data, Streams(5, (1, 1, 1, 2, 2, 2)), 4, metrics={})
    for row in range(6):
        X, y = data.X[row // 3][None], data.y[row // 3][None]
        alone = DenseLinearModel(X, y, Logistic(), l2=RIDGE, summed=True)
        single = simulate(algorithm(rho[row]), alone, Streams(5, (1 + row // 3,)), 4, metrics={})
        for field, expected in zip(together.state, single.state, strict=True):
            np.testing.assert_allclose(field[row], expected[0], atol=1e-12)
        for kind, counted in single.ledger.items():
            np.testing.assert_array_equal(together.ledger[kind][:, row], counted[:, 0], kind)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: FedPLT(rho=1.0, solver=Gradient(steps=1), start="hot"), "FedPLT.start"),
        (lambda: Noisy(steps=1, tau=1.0, reading="sd"), "Noisy.reading"),
        (lambda: L1(weight=-1.0), "L1.weight"),
    ],
)
def test_settings_that_are_no_numbers_of_a_method_are_refused_by_name(build, said):
    """Those that are, the contract's tests try."""
    with pytest.raises(ConfigError, match=said):
        build()


# -- the boxes, agent by agent -----------------------------------------------------------------------


def nesterov(g, w, steps, step, low):
    """Eq. (12) on a function with gradient `g`, moduli low and 1 / step."""
    u, root = w, np.sqrt(low * step)
    for _ in range(steps):
        ahead = w - step * g(w)
        w = ahead + (1 - root) / (1 + root) * (ahead - u)
        u = ahead
    return w


def descend(solver, g, w, low, high, ridge=0.0, step=None, steps=3):
    """Local steps on a function with gradient `g`, whose moduli are `low` and `high`, and `ridge` more."""
    low, high = low + ridge, high + ridge
    if solver is Accelerated:
        return nesterov(g, w, steps, 1 / high if step is None else step, low)
    for _ in range(steps):
        w = w - (2 / (low + high) if step is None else step) * g(w)
    return w


def box_fedplt(data, solver, state, active, t):
    low, high = moduli(data)
    rho = best_rho(low, high)
    x, z, y = (field[0].copy() for field in state)
    for i in active:
        v = 2 * y - z[i]

        def g(w, i=i, v=v):
            return gradient(data, 0, i, w) + (w - v) / rho

        x[i] = descend(solver, g, x[i], low, high, 1 / rho)
        z[i] = z[i] + 2 * (x[i] - y)
    return x, z, z.mean(axis=0)


def box_fedpd(data, solver, state, active, t):
    low, high = moduli(data)
    eta = (np.sqrt(5) - 1) / (4 * high)
    x, dual, centre = (field[0].copy() for field in state)
    for i in active:

        def g(w, i=i):
            return gradient(data, 0, i, w) + dual[i] + (w - centre) / eta

        x[i] = descend(solver, g, x[i], low, high, 1 / eta)
    dual = dual + (x - centre) / eta
    return x, dual, (x + eta * dual).mean(axis=0)


def box_fedlin(data, solver, state, active, t):
    low, high = moduli(data)
    x = state[0][0]
    own = np.array([gradient(data, 0, i, x) for i in range(N)])
    shift = own.mean(axis=0) - own
    step = 1 / (18 * high)
    w = [
        descend(solver, lambda w, i=i: gradient(data, 0, i, w) + shift[i], x, low, high, step=step)
        for i in active
    ]
    return (np.mean(w, axis=0),)


def box_led(data, solver, state, active, t):
    low, high = moduli(data)
    x, y = (field[0].copy() for field in state)
    alpha, beta = 1 / high, 1 / 3
    gradients = [lambda w, i=i: gradient(data, 0, i, w) + beta / alpha * y[i] for i in active]
    phi = np.array([descend(solver, g, x, low, high, step=alpha) for g in gradients])
    return phi.mean(axis=0), y + phi - phi.mean(axis=0)


def box_tamuna(data, solver, state, active, t):
    low, high = moduli(data)
    x, h = (field[0].copy() for field in state)
    gamma, eta = tamuna.theory_parameters(low, high, 3, N, len(active))
    L = Streams(5, (1,)).at(t).draw("local_steps", lambda rng: rng.geometric(1 / 3, 1))[0, 0]
    w = {
        i: descend(
            solver, lambda w, i=i: gradient(data, 0, i, w) - h[i], x, low, high, step=1 / high, steps=L
        )
        for i in active
    }
    x = np.mean(list(w.values()), axis=0)
    for i in active:
        h[i] += eta / gamma * (x - w[i])
    return x, h


def box_fivegcs(data, solver, state, active, t):
    low, high = moduli(data)
    x, u, v = (field[0].copy() for field in state)
    gamma, tau = fivegcs.theory_parameters(low, high, N, len(active))
    hat = (x - gamma * v) / (1 + gamma * low)

    def small(i, w):  # grad F_i
        return (gradient(data, 0, i, w) - low * w) / N

    for i in active:
        # Descending on psi itself, whose moduli are N times smaller than those of N psi.

        def g(w, i=i):
            return small(i, w) + tau * (w - hat - u[i] / tau)

        y = descend(solver, g, hat, 0.0, (high - low) / N, tau)
        u[i] = small(i, y)
    return hat - gamma * N / len(active) * (u.sum(axis=0) - v), u, u.sum(axis=0)


BOXES = {
    "fedplt": box_fedplt,
    "fedpd": box_fedpd,
    "fedlin": box_fedlin,
    "led": box_led,
    "tamuna": box_tamuna,
    "fivegcs": box_fivegcs,
}


@every
@pytest.mark.parametrize("solver", [Gradient, Accelerated])
@pytest.mark.parametrize("size", [N, 2])
def test_rounds_are_those_of_the_papers_boxes(name, solver, size):
    if size < N and name not in PARTIAL:
        pytest.skip("for all agents only")
    data, streams = problem(), Streams(5, (1,))
    algorithm = make(name, solver, cohort=size)
    state = algorithm.init(data, streams)
    for t in range(4):
        now = streams.at(t)
        active, chosen = FixedSize(size)(now, N)
        expected = BOXES[name](data, solver, state, np.flatnonzero(active[0]), t)
        context = Round(t, active, None, now, chosen) if size < N else Round(t, None, None, now)
        state, _ = algorithm.round(state, data, context)
        for field, wanted in zip(state, expected, strict=True):
            np.testing.assert_allclose(field[0], wanted, atol=1e-11)


# -- exactness ---------------------------------------------------------------------------------------


LAWS = {
    "all": (METHODS, (Gradient, Accelerated), N, None),
    "half": (PARTIAL, (Gradient,), 2, FixedSize(2)),
    "unequal": (("fedplt", "fivegcs"), (Gradient,), N, Independent(np.array([0.2, 0.5, 0.9, 1.0]))),
}


def reached(algorithm, data, rounds, cohort=None):
    """Relative error left."""
    solution = minimiser(data, 1)
    start = np.linalg.norm(solution)

    def error(_, seen):
        return np.linalg.norm(seen["server"] - solution, axis=-1) / start

    history = simulate(
        algorithm,
        data,
        Streams(1, (1,)),
        rounds,
        metrics={"error": error},
        cohort=cohort,
        until=lambda seen: seen["error"] < 1e-13,
    )
    return history.metrics["error"][-1, 0]


@pytest.mark.parametrize(
    ("name", "solver", "cohort", "law"),
    [
        pytest.param(name, solver, cohort, law, id=f"{name}-{solver.__name__}-{who}")
        for who, (names, solvers, cohort, law) in LAWS.items()
        for name in names
        for solver in solvers
    ],
)
def test_every_method_reaches_the_minimiser_with_theory_parameters(name, solver, cohort, law):
    assert reached(make(name, solver, cohort=cohort), problem(), 4000, law) < 1e-12


def test_so_do_tuned_methods_and_sparse_messages():
    data = problem()
    low, high = moduli(data)
    gamma, eta = tamuna.theory_parameters(low, high, 5, N, 2)
    solver = Gradient(steps=5)
    for algorithm in (
        FedPD(eta=0.3, solver=solver),
        FedLin(solver=Gradient(steps=5, step=1.1 / high)),
        LED(alpha=0.6 / high, beta=0.3, solver=solver),
        FiveGCS(gamma=0.6, tau=0.3, solver=solver),
        TAMUNA(gamma=gamma, eta=eta, solver=solver, sparsity=2),
    ):
        assert reached(algorithm, data, 4000) < 1e-12


@pytest.mark.parametrize("penalty", [Zero(), L1(weight=1.5)])
@pytest.mark.parametrize("cohort", [None, FixedSize(2)])
def test_composite_problems_are_solved(penalty, cohort):
    data = problem()
    method = FedPLT(rho=0.3, solver=Gradient(steps=4), penalty=penalty)
    state = simulate(method, data, Streams(1, (1,)), 400, cohort=cohort).state
    # Proximal gradient on the sum of the losses, from elsewhere.
    x, step = np.ones((1, D)), 1 / data.smoothness().sum()
    for _ in range(800):
        x = penalty.prox(x - step * N * data.gradient(x), step)
    np.testing.assert_allclose(method.observe(state)["server"], x, atol=1e-10)
    if isinstance(penalty, L1):
        assert (x == 0).any()


# -- messages of TAMUNA ------------------------------------------------------------------------------


def test_each_coordinate_is_sent_by_s_clients_and_control_variates_add_up_to_zero():
    data = problem(agents=7)
    algorithm = TAMUNA(gamma=0.05, eta=0.1, solver=Gradient(steps=2), sparsity=2)
    streams = Streams(3, (1, 2, 3))
    history = simulate(algorithm, data, streams, 10, cohort=FixedSize(5))
    np.testing.assert_allclose(history.state.h.sum(axis=1), 0, atol=1e-12)
    assert history.ledger["bits_up"][-1, 0] == 10 * 2 * D * 32
    # A model to each of the five, and for its h_i the entries of the average that it sent.
    assert history.ledger["bits_down"][-1, 0] == 10 * (5 + 2) * D * 32

    for sparsity in (None, 3):
        whole = TAMUNA(gamma=0.05, eta=0.1, solver=Gradient(steps=2), sparsity=sparsity)
        plain, everyone = (simulate(whole, data, streams, 4, cohort=c).ledger for c in (None, FixedSize(7)))
        for what, total in plain.items():
            np.testing.assert_array_equal(everyone[what], total, what)

    context = Round(0, None, None, streams.at(0), np.arange(5)[None])
    sent = algorithm._senders(Cohort(data, context), context, 11)
    assert sent.shape == (3, 5, 11)
    assert (sent.sum(axis=1) == 2).all()
    # Everybody's share is the same up to one coordinate.
    assert np.ptp(sent.sum(axis=2)) <= 1


# -- local solvers -----------------------------------------------------------------------------------


def objective(rows=2):
    v = np.random.default_rng(3).standard_normal((rows, N, D))
    return proximal(problem(), v, 0.4), v


def test_exact_solver_finds_the_proximal_point():
    d, v = objective()
    w = Exact().solve(d, np.zeros_like(v), None)
    assert np.abs(d.gradient(w)).max() < 1e-12
    np.testing.assert_allclose(w, v - 0.4 * problem().per_client_gradients(w), atol=1e-12)


@pytest.mark.parametrize("solver", [Gradient, Accelerated])
def test_steps_by_run_are_those_of_each_run(solver):
    """As many, and as long."""
    d, v = objective(5)
    counts, lengths = np.array([3, 1, 7, 2, 7]), np.linspace(0.02, 0.1, 5)
    found = solver(steps=1, step=lengths).solve(d, v, None, counts)
    for row, (count, step) in enumerate(zip(counts.tolist(), lengths.tolist(), strict=True)):
        part = LocalObjective(d.problem, d.linear[row : row + 1], d.ridge)
        for one in (solver(steps=count, step=step), solver(steps=count, step=np.array([step]))):
            alone = one.solve(part, v[row : row + 1], None)
            np.testing.assert_allclose(found[row], alone[0], atol=1e-13)


def test_uncoordinated_clients_each_use_their_own_solver():
    data = problem(2)
    start = np.random.default_rng(4).normal(size=(2, N, D))
    solvers = (Gradient(steps=2), Accelerated(steps=5), Exact(), Gradient(steps=1, step=np.array([0.1, 0.2])))
    target = proximal(data, start + 1.0, 0.4)
    mixed = Uncoordinated(solvers=solvers)
    found = mixed.solve(target, start, None)
    for i, solver in enumerate(solvers):
        np.testing.assert_allclose(found[:, i], solver.solve(target, start, None)[:, i], atol=1e-12)
    # In all runs each client's samples are looked at as often as it takes steps.
    np.testing.assert_allclose(mixed.steps * mixed.samples(data), M * np.array([[2, 5, 1, 1]] * 2))
    with pytest.raises(ConfigError, match="solvers"):
        Uncoordinated(solvers=solvers[:2]).solve(target, start, None)


def test_accelerated_minibatches_of_all_there_is_are_accelerated_steps():
    data = problem()
    alone = DenseLinearModel(data.X[:, :, :1], data.y[:, :, :1], Logistic(), l2=RIDGE, summed=True)
    ends = [
        simulate(FedPLT(rho=0.4, solver=solver), alone, Streams(0, (0,)), 3).state.x
        for solver in (AcceleratedStochastic(steps=4, batch=1), Accelerated(steps=4))
    ]
    np.testing.assert_allclose(*ends, atol=1e-12)


def test_noise_has_the_variance_of_either_reading():
    # A quadratic that the gradient step leaves in one step: what is left is noise.
    data = DenseLinearModel(np.zeros((1, 2, 1, 4)), np.zeros((1, 2, 1)), LeastSquares(), l2=1.0, summed=True)
    streams = Streams(0, tuple(range(4000)))
    for reading, variance in (("variance", 0.3), ("deviation", 0.09)):
        solver = Noisy(steps=1, step=0.5, tau=0.3, reading=reading)
        drawn = solver.draw(Round(0, None, None, streams.at(0)), data, 1)
        w = solver.solve(LocalObjective(data, np.zeros((4000, 2, 4)), 1.0), np.ones((4000, 2, 4)), drawn)
        count = w.size
        assert abs(w.mean()) < 4 * np.sqrt(variance / count)
        assert abs(w.var() / variance - 1) < 4 * np.sqrt(2 / count)  # 2 gamma = 1


def test_stochastic_gradients_are_unbiased():
    data, start = problem(), np.full((3000, N, D), 0.2)
    solver = Stochastic(steps=1, step=1.0, batch=2)
    streams = Streams(0, tuple(range(3000)))
    drawn = solver.draw(Round(0, None, None, streams.at(0)), data, 1)
    moved = start - solver.solve(LocalObjective(data, np.zeros_like(start)), start, drawn)
    expected = data.per_client_gradients(start[:1])[0]
    assert (np.abs(moved.mean(axis=0) - expected) < 4.5 * moved.std(axis=0) / np.sqrt(3000)).all()


def test_clipping_shortens_single_gradients():
    data = problem()
    u = np.random.default_rng(1).standard_normal((2, N, D))
    got = data.per_client_gradients(u, clip=0.5)
    for r in range(2):
        for i in range(N):
            g = RIDGE * u[r, i]
            for j in range(M):
                a, b = data.X[0, i, j], data.y[0, i, j]
                one = -b * a / (1 + np.exp(b * (a @ u[r, i])))
                g = g + one * min(1, 0.5 / np.linalg.norm(one))
            np.testing.assert_allclose(got[r, i], g, atol=1e-12)
    with pytest.raises(ReplifedError, match=r"^clip: for gradients on all samples"):
        data.per_client_gradients(u, np.zeros((1, N, 2), int), clip=0.5)


# -- proximal maps -----------------------------------------------------------------------------------


@given(v=st.floats(-5, 5), c=st.floats(0.01, 3), weight=st.sampled_from([0.0, 0.7]))
@settings(max_examples=60, deadline=None)
def test_proximal_maps_minimise(v, c, weight):
    x = L1(weight=weight).prox(np.array([v]), c)[0]

    def cost(x):
        return weight * abs(x) + (x - v) ** 2 / (2 * c)

    best = minimize_scalar(cost, bounds=(-6, 6), method="bounded", options={"xatol": 1e-10})
    assert cost(x) <= best.fun + 1e-9


# -- theory ------------------------------------------------------------------------------------------


def test_constants_by_hand():
    assert zeta(1.0, 4.0, 0.5) == pytest.approx(1 / 3)
    assert best_step(1.0, 3.0, 0.5) == 0.25
    assert chi(1.0, 3.0, 0.5) == pytest.approx(0.25)
    assert printed_accelerated_contraction(1.0, 4.0, 2) == pytest.approx(5 / 4)
    assert accelerated_contraction(1.0, 4.0, 2) == pytest.approx(np.sqrt(5) / 2)
    proved, printed = (
        contraction(1.0, 3.0, 0.5, 4, accelerated=True, printed=form) for form in (False, True)
    )
    assert proved[0, 0] == pytest.approx(np.sqrt((1 + 5 / 3) * (1 - np.sqrt(3 / 5)) ** 4))
    assert printed[0, 0] == pytest.approx(4 * (1 - np.sqrt(1 / 3)) ** 4)
    s = 0.0625
    for as_printed, c in ((True, 1 / 3), (False, 2 / 3)):
        S = contraction(1.0, 3.0, 0.5, 2, printed=as_printed)
        np.testing.assert_allclose(S, [[s, (1 + s) * c], [2 * s, zeta(1.0, 3.0, 0.5) + 2 * s * c]])
    assert error_bound(2, 0.5, 3.0, least=0.5, most=0.8) == pytest.approx(np.sqrt(1.6) * 0.625 * 3)
    assert error_bound(1, 0.5, 3.0, noise=0.1) == pytest.approx(1.6)
    assert noise_level(0.2, dim=5, clients=2, gamma=0.01, chi=0.5, steps=2) == pytest.approx(0.3)


@pytest.mark.parametrize("steps", [0, 3])
def test_a_round_near_the_minimiser_is_its_matrix(steps):
    data, rho = problem(), 0.2
    gamma = best_step(*moduli(data), rho)
    x = np.repeat(minimiser(data, 1)[:, None], N, axis=1)
    z = x - rho * data.per_client_gradients(x)
    matrix = linear_round(data.per_client_hessians(x)[0], rho, steps, gamma)
    algorithm = FedPLT(rho=rho, solver=Gradient(steps=steps) if steps else Exact())
    away = 1e-6 * np.random.default_rng(0).normal(size=(2, 1, N, D))
    state = algorithm.init(data, Streams(0, (0,)))._replace(x=x + away[0], z=z + away[1])
    state = state._replace(mean=state.z.mean(axis=1))
    after = algorithm.round(state, data, Round(0, None, None, Streams(0, (0,))))[0]
    moved = np.concatenate([(after.x - x).ravel(), (after.z - z).ravel()])
    np.testing.assert_allclose(moved, matrix @ away.ravel(), atol=1e-10)


def test_minimiser_has_no_gradient():
    data = problem(3)
    x = minimiser(data, 6)
    assert np.abs(data.gradient(x[::2])).max() < 1e-13
    assert np.array_equal(x[::2], x[1::2])


def test_a_simulation_ends_once_all_runs_are_done():
    data, solution = problem(), minimiser(problem(), 1)
    algorithm = FedPLT(rho=np.array([0.3, 0.05]), solver=Gradient(steps=5))
    history = simulate(
        algorithm,
        data,
        Streams(0, (0, 0)),
        500,
        metrics={"error": lambda _, seen: np.linalg.norm(seen["server"] - solution, axis=-1)},
        record_every=3,
        until=lambda seen: seen["error"] < 1e-6,
    )
    error = history.metrics["error"]
    assert (error[-1] < 1e-6).all()
    assert not (error[-2] < 1e-6).all()
    assert history.rounds[-1] % 3 == 0
    assert history.rounds[-1] < 500
    assert error.shape == history.ledger["bits_up"].shape == (len(history.rounds), 2)
    again = simulate(algorithm, data, Streams(0, (0, 0)), int(history.rounds[-1]), metrics={})
    np.testing.assert_array_equal(history.state.z, again.state.z)


def test_fedplt_is_seen_with_what_the_coordinator_knows_after_a_round():
    """Not with the model that the round began with: that one would be charged a round too much."""
    data, weight = problem(), 0.1
    method = FedPLT(rho=0.6, solver=Gradient(steps=2), penalty=L1(weight=weight))
    state = method.init(data, Streams(0, (0,)))
    state, _ = method.round(state, data, Round(0, None, None, Streams(0, (0,))))
    z = state.z.mean(axis=1)
    expected = np.sign(z) * np.maximum(np.abs(z) - weight * 0.6 / N, 0)
    assert (expected != 0).any()
    np.testing.assert_allclose(method.observe(state)["server"], expected)


def test_fedplt_starts_at_random_models_of_each_runs_deviation():
    sizes = SimpleNamespace(n_clients=40, dim=50, dtype=np.float32)
    start = FedPLT(rho=1.0, solver=Gradient(steps=1), start_deviation=np.array([0.0, 0.5, 2.0]))
    x, z, mean = start.init(sizes, Streams(0, (1, 1, 1)))
    assert x.dtype == np.float32 and not z.any() and not mean.any() and start.stochastic
    assert not x[0].any() and np.std(x[1]) == pytest.approx(0.5, rel=0.05)
    np.testing.assert_allclose(x[2], 4 * x[1], rtol=1e-6)


def test_parameters_of_the_theorems_by_hand():
    """M = 8 agents, cohorts of 2, moduli 1 and 4, so that roots come out even."""
    assert best_rho(1.0, 4.0) == 0.5
    assert theory_eta(4.0) == pytest.approx((np.sqrt(5) - 1) / 16)
    assert theory_step(4.0, 5) == pytest.approx(1 / 120)
    assert fivegcs.theory_parameters(1.0, 4.0, 8, 2) == pytest.approx((1 / 64, 4.0))
    assert tamuna.theory_parameters(1.0, 4.0, 5, 8, 2) == pytest.approx((0.4, 4 / 35))
    assert tamuna.theory_parameters(1.0, 4.0, 5, 1, 1) == pytest.approx((0.4, 0.2))
    assert tamuna.theory_parameters(1.0, 4.0, 5, 2, 1) == pytest.approx((0.4, 0.0))
    assert natural_parameters(4.0, 5) == (0.25, 0.2)
