"""The methods that every comparison has: against loops client by client, identities, and what they reach."""

import numpy as np
import pytest

import replifed as rf
from replifed.algorithms import fedsplit, minibatch
from replifed.algorithms.base import Round
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.local_solvers import Gradient, Stochastic
from replifed.contract.checks import members
from replifed.engine.simulate import simulate
from replifed.problems.minimiser import minimiser
from replifed.randomness import Streams

RNG = np.random.default_rng(5)
N, D, L2, K, ETA, ROUNDS = 4, 5, 0.1, 3, 0.25, 12
SIZES = (6, 9, 12, 7)
DATA = [(RNG.normal(size=(n, D)) + RNG.normal(size=D), RNG.choice([-1.0, 1.0], n)) for n in SIZES]
SHARES = np.array(SIZES) / sum(SIZES)
EQUAL = rf.problems.from_clients(DATA, l2=L2)
WEIGHTED = rf.problems.from_clients(DATA, l2=L2, weights=SHARES)
MU, L = float(EQUAL.strong_convexity().min()), float(EQUAL.smoothness().max())
STREAMS = Streams(3, (1,))
COHORT = (0, 2, 3)


def grad(i, w):
    """Gradient of f_i: mean logistic loss and a ridge."""
    A, b = DATA[i]
    return -(A * (b / (1 + np.exp(b * (A @ w))))[:, None]).mean(axis=0) + L2 * w


def reached(name, problem=EQUAL, rounds=ROUNDS, clients=None, **settings):
    cohort = None if clients is None else members(*clients)
    method = rf.method(name, **settings)
    return method.observe(simulate(method, problem, STREAMS, rounds, cohort=cohort).state)["server"][0]


def lengths(rounds=ROUNDS):
    """Local steps of each round, as they are drawn for p = 1 / K."""
    drawn = (STREAMS.at(t).draw("local_steps", lambda rng: rng.geometric(1 / K, 1)) for t in range(rounds))
    return [int(L[0, 0]) for L in drawn]


# -- each rule as its paper's box has it ----------------------------------------------------------------


def fedavg_change(x, clients, direction=lambda i, w, x: grad(i, w)):
    """Weighted mean of the clients' models less x."""
    p = SHARES[list(clients)] / SHARES[list(clients)].sum()
    ends = []
    for i in clients:
        w = x.copy()
        for _ in range(K):
            w = w - ETA * direction(i, w, x)
        ends.append(w)
    return sum(share * w for share, w in zip(p, ends, strict=True)) - x


def loop_fedprox(clients, mu=0.4):
    x = np.zeros(D)
    for _ in range(ROUNDS):
        x = x + fedavg_change(x, clients, lambda i, w, x: grad(i, w) + mu * (w - x))
    return x


def loop_fedavgm(clients, beta=0.6):
    x, v = np.zeros(D), np.zeros(D)
    for _ in range(ROUNDS):
        v = beta * v - fedavg_change(x, clients)
        x = x - v
    return x


def loop_fedexp(clients, eps=1e-3, p=SHARES):
    """The mean of the last two models, and each round's eta_g."""
    x, before, etas = np.zeros(D), np.zeros(D), []
    p = p[list(clients)] / p[list(clients)].sum()
    for _ in range(ROUNDS):
        changes = []
        for i in clients:
            w = x.copy()
            for _ in range(K):
                w = w - ETA * grad(i, w)
            changes.append(x - w)
        d = sum(share * d_i for share, d_i in zip(p, changes, strict=True))
        squares = sum(share * (d_i @ d_i) for share, d_i in zip(p, changes, strict=True))
        etas.append(max(1.0, squares / (2 * (d @ d + eps))))
        before, x = x, x - etas[-1] * d
    return (before + x) / 2, etas


def loop_fedadam_server(clients, eta=0.05, beta_1=0.8, beta_2=0.95, tau=1e-2):
    x, m, v = np.zeros(D), np.zeros(D), np.full(D, tau**2)
    for _ in range(ROUNDS):
        delta = fedavg_change(x, clients)
        m = beta_1 * m + (1 - beta_1) * delta
        v = beta_2 * v + (1 - beta_2) * delta**2
        x = x + eta * m / (np.sqrt(v) + tau)
    return x


def loop_fednova(clients):
    x = np.zeros(D)
    p = SHARES[list(clients)] / SHARES[list(clients)].sum()
    for _ in range(ROUNDS):
        directions, steps = [], []
        for i in clients:
            tau, w, total = max(round(K * SIZES[i] / max(SIZES)), 1), x.copy(), np.zeros(D)
            for _ in range(tau):
                g = grad(i, w)
                total += g
                w = w - ETA * g
            directions.append(total / tau)
            steps.append(tau)
        tau_eff = sum(share * tau for share, tau in zip(p, steps, strict=True))
        x = x - tau_eff * ETA * sum(share * d for share, d in zip(p, directions, strict=True))
    return x


def loop_scaffold(clients, option, eta_g=0.7):
    x, c, c_i = np.zeros(D), np.zeros(D), [np.zeros(D) for _ in range(N)]
    for _ in range(ROUNDS):
        dy, dc = [], []
        for i in clients:
            y = x.copy()
            for _ in range(K):
                y = y - ETA * (grad(i, y) - c_i[i] + c)
            new = grad(i, x) if option == "1" else c_i[i] - c + (x - y) / (K * ETA)
            dy.append(y - x)
            dc.append(new - c_i[i])
            c_i[i] = new
        x = x + eta_g / len(clients) * sum(dy)
        c = c + sum(dc) / N
    return x


def loop_feddyn(clients, alpha=0.5):
    x, h, g = np.zeros(D), np.zeros(D), [np.zeros(D) for _ in range(N)]
    for _ in range(ROUNDS):
        found = []
        for k in clients:
            theta = x.copy()
            for _ in range(K):
                theta = theta - ETA * (grad(k, theta) - g[k] + alpha * (theta - x))
            g[k] = g[k] - alpha * (theta - x)
            found.append(theta)
        h = h - alpha / N * sum(theta - x for theta in found)
        x = sum(found) / len(found) - h / alpha
    return x


def loop_feddc(clients, alpha=0.3):
    w, g, h, g_i = np.zeros(D), np.zeros(D), np.zeros((N, D)), np.zeros((N, D))
    for _ in range(ROUNDS):
        found, changes = [], []
        for i in clients:
            y = w.copy()
            for _ in range(K):
                y = y - ETA * (grad(i, y) + alpha * (y + h[i] - w) + g - g_i[i])
            new = g_i[i] - g + (w - y) / (K * ETA)
            found.append(y)
            changes.append(new - g_i[i])
            g_i[i], h[i] = new, h[i] + y - w
        w = sum(found) / len(found) + h.mean(axis=0)
        g = g + sum(changes) / N
    return w


def loop_mimelite(clients, beta=0.6):
    x, m = np.zeros(D), np.zeros(D)
    for _ in range(ROUNDS):
        found = []
        for i in clients:
            y = x.copy()
            for _ in range(K):
                y = y - ETA * ((1 - beta) * grad(i, y) + beta * m)
            found.append(y)
        m = (1 - beta) * sum(grad(i, x) for i in clients) / len(clients) + beta * m
        x = sum(found) / len(found)
    return x


def loop_scaffnew(clients):
    x, h = np.zeros(D), [np.zeros(D) for _ in range(N)]
    for steps in lengths():
        hat = []
        for i in range(N):
            x_i = x.copy()
            for _ in range(steps):
                x_i = x_i - ETA * (grad(i, x_i) - h[i])
            hat.append(x_i)
        x = sum(hat) / N
        h = [h[i] + 1 / K / ETA * (x - hat[i]) for i in range(N)]
    return x


def loop_slocalgd(clients):
    x = np.zeros(D)
    for steps in lengths():
        full, ends = sum(grad(i, x) for i in range(N)) / N, []
        for i in range(N):
            x_i = x.copy()
            for _ in range(steps):
                x_i = x_i - ETA * (grad(i, x_i) - grad(i, x) + full)
            ends.append(x_i)
        x = sum(ends) / N
    return x


def loop_fedsplit(clients, s=0.8):
    z = [np.zeros(D) for _ in range(N)]
    x = np.zeros(D)
    for _ in range(ROUNDS):
        for j in range(N):
            u = x.copy()
            for _ in range(K):
                u = u - ETA * (grad(j, u) + (u - (2 * x - z[j])) / s)
            z[j] = z[j] + 2 * (u - x)
        x = sum(z) / N
    return x


def constants(variant):
    gamma = np.sqrt(ETA / MU) if variant == "naive" else max(ETA, np.sqrt(ETA / (MU * K)))
    if variant == "2":
        alpha = 3 / (2 * gamma * MU) - 0.5
        return gamma, alpha, 2 * alpha**2 / (alpha - 1)
    return gamma, 1 / (gamma * MU), 1 / (gamma * MU) + 1


def loop_fedac(clients, variant):
    gamma, alpha, beta = constants(variant)
    w, ag = np.zeros(D), np.zeros(D)
    for _ in range(ROUNDS):
        ends = []
        for i in clients:
            u, v = w.copy(), ag.copy()
            for _ in range(K):
                md = u / beta + (1 - 1 / beta) * v
                g = grad(i, md)
                v = md - ETA * g
                u = (1 - 1 / alpha) * u + md / alpha - gamma * g
            ends.append((u, v))
        w, ag = (sum(one) / len(clients) for one in zip(*ends, strict=True))
    return ag


def loop_mb_ac_sgd(clients):
    gamma, alpha, beta = constants("naive")
    w, ag = np.zeros(D), np.zeros(D)
    for _ in range(ROUNDS):
        md = w / beta + (1 - 1 / beta) * ag
        g = sum(grad(i, md) for i in clients) / len(clients)
        w, ag = (1 - 1 / alpha) * w + md / alpha - gamma * g, md - ETA * g
    return ag


def loop_mb_sgd(clients):
    x = np.zeros(D)
    for _ in range(ROUNDS):
        x = x - ETA * sum(grad(i, x) for i in clients) / len(clients)
    return x


LOCAL = {"step": ETA, "local_steps": K}
SOLVER = {"solver": Gradient(steps=K, step=ETA)}
LOOPS = [
    ("fedprox", loop_fedprox, LOCAL | {"mu": 0.4}, WEIGHTED, True),
    ("fedavgm", loop_fedavgm, LOCAL | {"momentum": 0.6}, WEIGHTED, True),
    (
        "fedadam_server",
        loop_fedadam_server,
        LOCAL | {"server_step": 0.05, "beta_1": 0.8, "beta_2": 0.95, "tau": 1e-2},
        WEIGHTED,
        True,
    ),
    ("fednova", loop_fednova, LOCAL, WEIGHTED, True),
    *(
        (
            "scaffold",
            lambda clients, option=option: loop_scaffold(clients, option),
            SOLVER | {"step": ETA, "option": option, "server_step": 0.7},
            EQUAL,
            True,
        )
        for option in ("1", "2")
    ),
    *(
        ("fedac", lambda who, v=variant: loop_fedac(who, v), LOCAL | {"variant": variant}, EQUAL, True)
        for variant in ("1", "2", "naive")
    ),
    ("mb_sgd", loop_mb_sgd, LOCAL, EQUAL, True),
    ("mb_ac_sgd", loop_mb_ac_sgd, LOCAL, EQUAL, True),
    ("feddyn", loop_feddyn, SOLVER | {"alpha": 0.5}, EQUAL, True),
    ("feddc", loop_feddc, SOLVER | {"step": ETA, "alpha": 0.3}, EQUAL, True),
    ("mimelite", loop_mimelite, SOLVER | {"step": ETA, "momentum": 0.6}, EQUAL, True),
    ("scaffnew", loop_scaffnew, SOLVER | {"step": ETA}, EQUAL, False),
    ("slocalgd", loop_slocalgd, SOLVER, EQUAL, False),
    ("fedsplit", loop_fedsplit, SOLVER | {"s": 0.8}, EQUAL, False),
]


@pytest.mark.parametrize(
    ("name", "loop", "settings", "problem", "clients"),
    [
        pytest.param(
            name,
            loop,
            settings,
            problem,
            who,
            id=f"{name}-{len(who)}-{settings.get('option') or settings.get('variant', '')}",
        )
        for name, loop, settings, problem, partial in LOOPS
        for who in (range(N), COHORT)
        if partial or len(who) == N
    ],
)
def test_each_is_its_box_client_by_client(name, loop, settings, problem, clients):
    chosen = None if len(clients) == N else clients
    found = reached(name, problem, clients=chosen, **settings)
    np.testing.assert_allclose(found, loop(clients), rtol=1e-9, atol=1e-12)
    assert np.linalg.norm(found) > 0.1


# -- identities -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        pytest.param(name, settings, id=f"{name}-{settings.get('option') or settings.get('variant', '')}")
        for name, _, settings, *_ in (*LOOPS, *((name, None, LOCAL) for name in ("fedavg", "fedexp")))
    ],
)
def test_minibatches_of_equal_samples_are_all_samples(name, settings):
    same = rf.problems.from_clients(
        [(np.repeat(A[:1], 6, axis=0), np.repeat(b[:1], 6)) for A, b in DATA], l2=L2
    )
    some = {"solver": Stochastic(steps=K, step=ETA, batch=4)} if "solver" in settings else {"batch": 4}
    found, expected = (reached(name, same, **settings | more) for more in (some, {}))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_a_minibatch_step_takes_the_samples_of_all_local_steps():
    cohort, x = Cohort(EQUAL, Round(0, None, None, STREAMS.at(0))), np.ones((1, N, D))
    each = [EQUAL.per_client_gradients(x, batch).mean(axis=1) for batch in cohort.minibatches(K, 4)]
    np.testing.assert_allclose(minibatch.mean_gradient(cohort, x[:, 0], K, 4), np.mean(each, axis=0))


def test_fedac_starts_at_random_models_of_its_deviation():
    start = rf.method("fedac", start_deviation=0.5, **LOCAL).init(EQUAL, STREAMS)
    expected = 0.5 * STREAMS.draw("start", lambda rng: rng.standard_normal(D))
    for one in start:
        np.testing.assert_array_equal(one, expected)


def test_the_step_of_the_theorem_by_hand():
    assert fedsplit.theory_step(0.5, 8.0) == 0.5


@pytest.mark.parametrize("clients", [None, COHORT])
@pytest.mark.parametrize(("problem", "p"), [(EQUAL, np.full(N, 1 / N)), (WEIGHTED, SHARES)])
@pytest.mark.parametrize("eps", [1e-4, 1e-1])
def test_fedexp_is_its_rule_client_by_client(problem, p, clients, eps):
    expected, etas = loop_fedexp(clients or range(N), eps, p)
    found = reached("fedexp", problem, clients=clients, eps=eps, **LOCAL)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert np.linalg.norm(found) > 0.1
    assert (max(etas) > 1.5) == (eps == 1e-4)  # so that the rule is not only that of FedAvg


def test_fedexp_is_evaluated_at_the_mean_of_its_last_two_models():
    """The loss that is recorded after a round is that of the mean of its model and the one before."""
    method = rf.method("fedexp", eps=1e-4, **LOCAL)
    recorded = simulate(method, WEIGHTED, STREAMS, ROUNDS).metrics["objective"][:, 0]
    x = [simulate(method, WEIGHTED, STREAMS, rounds).state.x for rounds in range(ROUNDS + 1)]
    means = [x[0], *((x[t] + x[t + 1]) / 2 for t in range(ROUNDS))]
    np.testing.assert_array_equal(recorded, [WEIGHTED.loss(mean)[0] for mean in means])
    assert all((WEIGHTED.loss(x[t]) != recorded[t]).all() for t in range(1, ROUNDS + 1))


# -- what they reach ----------------------------------------------------------------------------------------

EXACT = {
    "scaffold": {"step": 0.5 / L, "solver": Gradient(steps=K)},
    "scaffnew": {"step": 1 / L, "solver": Gradient(steps=K)},
    "slocalgd": {"solver": Gradient(steps=K, step=0.3 / L)},
    "feddyn": {"alpha": 1.0, "solver": Gradient(steps=5)},
    "feddc": {"step": 0.3 / L, "solver": Gradient(steps=K), "alpha": 0.1},
    "fedsplit": {"s": float(fedsplit.theory_step(MU, L)), "solver": Gradient(steps=5)},
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_methods_reach_the_minimiser(name):
    found = reached(name, rounds=1500, **EXACT[name])
    assert np.abs(found - minimiser(EQUAL, 1)[0]).max() < 1e-12


def test_scaffnews_rate_is_at_most_that_of_its_theorem():
    """Psi = sum |x_i - x*|^2 + (gamma / p)^2 sum |h_i - grad f_i(x*)|^2, mean over seeds, per iteration."""
    gamma, p = 1 / L, np.sqrt(MU / L)  # Theorem 3.6
    steps = max(round(1 / p), 1)
    seeds, rounds = 40, 30
    method = rf.method("scaffnew", step=gamma, solver=Gradient(steps=steps))
    x = minimiser(EQUAL, 1)[0]
    star = np.stack([grad(i, x) for i in range(N)])

    def potential(state):
        far = N * ((state.x - x) ** 2).sum(axis=-1)
        return far + (gamma * steps) ** 2 * ((state.h - star) ** 2).sum(axis=(1, 2))

    streams = Streams(3, tuple(range(seeds)))
    history = simulate(method, EQUAL, streams, rounds)
    begin = potential(method.init(EQUAL, streams))
    done = history.ledger["iterations"][-1]
    rate = max(1 - gamma * MU, 1 - 1 / steps**2)  # Theorem 3.5
    # After T iterations E Psi <= rate^T Psi_0; T differs from seed to seed, so each is divided by its own.
    scaled = potential(history.state) / begin / rate**done
    assert scaled.mean() < 1 + 3 * scaled.std() / np.sqrt(seeds)
