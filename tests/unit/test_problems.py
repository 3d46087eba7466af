"""Federated problems: the objective, its derivatives and constants, and the clients' local models.

Everything is held against sums over clients and samples that are written out here.
"""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, Ridge

from replifed.algorithms.base import per_run
from replifed.algorithms.local_solvers import LocalObjective, SteppedSolver, Stochastic
from replifed.algorithms.local_steps import gradient_steps, loop
from replifed.errors import ReplifedError
from replifed.operators.hard_threshold import hard_threshold
from replifed.problems import dense as dense_module
from replifed.problems import sparse as sparse_module
from replifed.problems.base import Hessian, LocalSteps, Smooth, require
from replifed.problems.dense import DenseLinearModel, DenseLocalModels
from replifed.problems.gram import GramLocalModels
from replifed.problems.losses import Softmax, loss_named
from replifed.problems.sparse import SparseLinearModel
from replifed.problems.sparse_local import SparseAdditiveModels, SparseLocalModels

CLASSES = 3


class Data(NamedTuple):
    """Samples of each client, for each data set: X[s][i] is (n_i, d), y[s][i] is (n_i,)."""

    X: list
    y: list
    p: np.ndarray
    loss: str
    outputs: int
    l2: float
    summed: bool


def draw(loss, *, sizes=(6, 3, 5), d=4, sets=1, l2=0.0, summed=False, even=False, sparse=False, seed=0):
    """Random data; `even` weighs all clients alike, else p_i = n_i / n."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(sets):
        X.append([rng.standard_normal((n, d)) * ((rng.random((n, d)) < 0.4) if sparse else 1) for n in sizes])
        if loss == "softmax":
            y.append([rng.integers(CLASSES, size=n) for n in sizes])
        elif loss == "logistic":
            y.append([rng.choice([-1.0, 1.0], n) for n in sizes])
        else:
            y.append([rng.standard_normal(n) for n in sizes])
    n = np.array(sizes)
    p = np.full((sets, len(n)), 1 / len(n)) if even else np.tile(n / n.sum(), (sets, 1))
    return Data(X, y, p, loss, CLASSES if loss == "softmax" else 1, l2, summed)


def dense(data, dtype=float):
    sizes = np.array([[len(X) for X in clients] for clients in data.X])
    X = np.zeros((*sizes.shape, sizes.max(), data.X[0][0].shape[1]), dtype=dtype)
    y = np.zeros(X.shape[:3], dtype=int if data.loss == "softmax" else dtype)
    for index, n in np.ndenumerate(sizes):
        X[index][:n], y[index][:n] = data.X[index[0]][index[1]], data.y[index[0]][index[1]]
    loss = loss_named(data.loss, data.outputs)
    return DenseLinearModel(X, y, loss, sizes=sizes, weights=data.p, l2=data.l2, summed=data.summed)


def sparse(data, seed=0):
    """The same samples in CSR form, in an order in which the clients are mixed."""
    client = np.repeat(np.arange(len(data.X[0])), [len(X) for X in data.X[0]])
    mixed = np.random.default_rng(seed).permutation(len(client))
    # Clients keep the order of their samples, which minibatches count in.
    order = np.empty_like(mixed)
    for i in range(client.max() + 1):
        order[np.flatnonzero(client[mixed] == i)] = np.flatnonzero(client == i)
    X = sp.csr_array(np.concatenate(data.X[0])[order])
    loss = loss_named(data.loss)
    return SparseLinearModel(
        X, np.concatenate(data.y[0])[order], loss, client[order], weights=data.p, l2=data.l2
    )


def plain_loss(data, s, i, x):
    """f_i(x) on data set s, from the textbook."""
    X, y = data.X[s][i], data.y[s][i]
    z = X @ x.reshape(X.shape[1], -1)
    if data.loss == "least_squares":
        values = (z[:, 0] - y) ** 2 / 2
    elif data.loss == "logistic":
        values = np.log(1 + np.exp(-y * z[:, 0]))
    else:
        values = np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(y)), y]
    return (values.sum() if data.summed else values.mean()) + data.l2 / 2 * (x @ x)


def plain_gradient(data, s, i, x, batch=None):
    """Gradient of f_i, or its estimate from the samples `batch`, which may repeat."""
    chosen = np.arange(len(data.y[s][i])) if batch is None else batch
    X, y = data.X[s][i][chosen], data.y[s][i][chosen]
    z = X @ x.reshape(X.shape[1], -1)
    if data.loss == "least_squares":
        r = z - y[:, None]
    elif data.loss == "logistic":
        r = -y[:, None] / (1 + np.exp(y[:, None] * z))
    else:
        r = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True) - (y[:, None] == np.arange(CLASSES))
    scale = len(data.y[s][i]) if data.summed else 1.0
    return scale * (X.T @ r / len(chosen)).ravel() + data.l2 * x


def models(data, rows, seed=1, nonzeros=None):
    x = np.random.default_rng(seed).standard_normal((rows, data.X[0][0].shape[1] * data.outputs))
    return x if nonzeros is None else hard_threshold(x, nonzeros)


def slopes(f, x, step):
    """Central differences of `f` at the point `x`, along a new last axis."""
    moves = step * np.eye(len(x))
    return np.stack([(f(x + e) - f(x - e)) / (2 * step) for e in moves], axis=-1)


LOSSES = ("least_squares", "logistic", "softmax")
# Softmax on sparse data is refused.
LAYOUTS = [(dense, loss) for loss in LOSSES] + [(sparse, loss) for loss in LOSSES[:2]]
PROBLEMS = {
    **{f"{loss} padded": (dense, draw(loss)) for loss in LOSSES},
    **{f"{loss} ridge, even weights": (dense, draw(loss, l2=0.3, even=True)) for loss in LOSSES},
    **{f"{loss} summed": (dense, draw(loss, l2=0.1, summed=True)) for loss in LOSSES},
    **{f"{loss} stacked": (dense, draw(loss, sets=3, l2=0.1)) for loss in LOSSES},
    **{f"{loss} CSR": (sparse, draw(loss, sparse=True)) for loss in LOSSES[:2]},
    **{f"{loss} CSR ridge": (sparse, draw(loss, sparse=True, l2=0.2, even=True)) for loss in LOSSES[:2]},
}


@pytest.fixture(params=PROBLEMS)
def case(request):
    make, data = PROBLEMS[request.param]
    return make(data), data


# Few and many columns of one product; stacked data have as many rows as data sets.
@pytest.mark.parametrize("rows", [3, 8])
@pytest.mark.parametrize("name", PROBLEMS)
def test_objective_is_the_weighted_sum_over_clients(name, rows):
    make, data = PROBLEMS[name]
    rows = rows if len(data.X) == 1 else len(data.X)
    problem, x = make(data), models(data, rows)
    sets = np.minimum(np.arange(rows), len(data.X) - 1)
    clients = range(problem.n_clients)
    losses = np.array([[plain_loss(data, s, i, x[r]) for i in clients] for r, s in enumerate(sets)])
    gradients = np.array([[plain_gradient(data, s, i, x[r]) for i in clients] for r, s in enumerate(sets)])
    np.testing.assert_allclose(problem.client_losses(x), losses, rtol=1e-12)
    np.testing.assert_allclose(problem.loss(x), (data.p * losses).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(problem.client_gradients(x), gradients, atol=1e-12)
    np.testing.assert_allclose(problem.gradient(x), (data.p[..., None] * gradients).sum(axis=1), atol=1e-12)


def test_derivatives_agree_with_finite_differences(case):
    problem, data = case
    rows = len(data.X)
    x = models(data, rows)
    h = problem.client_hessians(x)
    for r in range(rows):

        def at(point, r=r):
            return np.where(np.arange(rows)[:, None] == r, point, x)

        np.testing.assert_allclose(
            problem.client_gradients(x)[r],
            slopes(lambda v, r=r: problem.client_losses(at(v))[r], x[r], 1e-5),
            atol=1e-8,
        )
        np.testing.assert_allclose(
            h[r], slopes(lambda v, r=r: problem.client_gradients(at(v))[r], x[r], 1e-5), atol=1e-8
        )


@pytest.mark.parametrize("loss", LOSSES[:2])
@pytest.mark.parametrize("sets, runs", [(1, 1), (1, 3), (2, 2)])
def test_hessians_of_few_entries_are_those_of_products(loss, sets, runs):
    data = draw(loss, sizes=(7, 2, 9), d=60, sets=sets, l2=0.1, sparse=True)
    for clients in data.X:
        for X in clients:
            X[:, 5:] = 0.0
    problem, x = dense(data), models(data, runs)
    by_entries = problem.client_hessians(x)
    assert problem._sparse is not None
    problem._sparse = None
    np.testing.assert_allclose(by_entries, problem.client_hessians(x), atol=1e-14)
    if sets == 1:
        problem = dense(data)
        u = np.repeat(x[:, None], 3, axis=1)
        np.testing.assert_allclose(problem.per_client_hessians(u), by_entries, atol=1e-14)
    whole, some = dense(data), dense(data).with_clients(np.array([[2, 0]]))
    np.testing.assert_allclose(some.client_hessians(x), by_entries[:, [2, 0]], atol=1e-14)
    np.testing.assert_allclose(whole.with_equal_weights()._sparse.toarray(), whole._sparse.toarray())
    assert dense(draw(loss))._sparse is None


@pytest.mark.parametrize("loss", LOSSES[1:])
def test_predictions_far_from_zero_do_not_overflow(loss):
    data = draw(loss, sizes=(6,))
    X, y, x = data.X[0][0], data.y[0][0], 1e5 * models(data, 1)
    z = X @ x.reshape(X.shape[1], -1)
    # So far out the losses are those of the worst class, to the last digit.
    worst = np.maximum(-y * z[:, 0], 0) if loss == "logistic" else z.max(axis=1) - z[np.arange(6), y]
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        np.testing.assert_allclose(dense(data).loss(x), worst.mean(), rtol=1e-12)
        assert np.isfinite(dense(data).gradient(x)).all()


# -- minimisers and constants ------------------------------------------------------------------------


def lbfgs(problem):
    found = minimize(
        lambda x: problem.loss(x[None])[0],
        np.zeros(problem.dim),
        jac=lambda x: problem.gradient(x[None])[0],
        method="L-BFGS-B",
        options={"maxiter": 10_000, "maxfun": 100_000, "ftol": 0, "gtol": 1e-12, "maxcor": 30},
    )
    return found.x


def newton(problem):
    x = np.zeros((1, problem.dim))
    for _ in range(30):
        H = (problem.weights[..., None, None] * problem.client_hessians(x)).sum(axis=1)
        x = x - np.linalg.solve(H[0], problem.gradient(x)[0])
    return x[0]


@pytest.mark.parametrize("minimiser", [lbfgs, newton])
@pytest.mark.parametrize("make, loss", LAYOUTS)
def test_minimiser_is_scikit_learns(make, loss, minimiser):
    data = draw(loss, sizes=(30, 20, 25), d=5, l2=0.1, sparse=True)
    X, y, n = np.concatenate(data.X[0]), np.concatenate(data.y[0]), 75
    if loss == "least_squares":
        expected = Ridge(alpha=n * data.l2, fit_intercept=False).fit(X, y).coef_
    else:
        model = LogisticRegression(C=1 / (n * data.l2), fit_intercept=False, tol=1e-12, max_iter=10_000)
        expected = model.fit(X, y).coef_.T.ravel()
    np.testing.assert_allclose(minimiser(make(data)), expected, atol=1e-6)


@pytest.mark.parametrize("make", [dense, sparse])
@pytest.mark.parametrize("loss", ["least_squares", "logistic"])
@pytest.mark.parametrize("sizes, d", [((12, 6, 9), 5), ((3, 4, 5), 8), ((90, 70, 80), 72)])
def test_constants_are_eigenvalues_of_the_hessians(make, loss, sizes, d):
    data = draw(loss, sizes=sizes, d=d, l2=0.05, sparse=make is sparse, seed=3)
    problem = make(data)
    # At zero every logistic loss is as curved as it gets, so that the bound is attained there.
    eigenvalues = np.linalg.eigvalsh(problem.client_hessians(np.zeros((1, problem.dim))))
    np.testing.assert_allclose(problem.smoothness(), eigenvalues[..., -1], rtol=1e-6)
    assert np.all(
        np.linalg.eigvalsh(problem.client_hessians(models(data, 1))) <= problem.smoothness().max() + 1e-9
    )
    if loss == "least_squares":
        np.testing.assert_allclose(problem.strong_convexity(), eigenvalues[..., 0], atol=1e-9)
    else:
        np.testing.assert_array_equal(problem.strong_convexity(), np.full((1, 3), 0.05))


def test_constants_of_single_precision_softmax_and_sums():
    for data in (draw("softmax", l2=0.1), draw("least_squares", summed=True, sizes=(9, 6))):
        problem = dense(data)
        eigenvalues = np.linalg.eigvalsh(problem.client_hessians(models(data, 20)))
        assert np.all(eigenvalues[..., -1] <= problem.smoothness() * (1 + 1e-12))
        assert np.all(eigenvalues[..., 0] >= problem.strong_convexity() - 1e-12)
    assert problem.smoothness() == pytest.approx(eigenvalues[:1, :, -1], rel=1e-12)
    # Large enough for the iterative eigenvalue, in the precision of the paper's simulations.
    wide = draw("least_squares", sizes=(80, 80), d=150)
    np.testing.assert_allclose(dense(wide, np.float32).smoothness(), dense(wide).smoothness(), rtol=1e-5)


# -- stacking ----------------------------------------------------------------------------------------


def take_steps(problem, x, batches, step, *, tau=None, additive=False, pull=0.0, clients=None):
    """K local gradient steps, thresholded if `tau` is given, then the mean; compiled steps are the loop's."""
    local = problem.local(x, additive=additive, sparsity=tau, clients=clients)
    u = gradient_steps(local, batches, step, pull=pull, tau=tau)
    last_bits = 64 * np.finfo(u.dtype).eps  # of sums in another order
    by_loop = loop(local, batches, step, pull, tau)
    alike = (u, by_loop) if isinstance(u, np.ndarray) else (u.toarray(), local.rows(by_loop).toarray())
    np.testing.assert_allclose(*alike, rtol=1e-7, atol=last_bits)
    return local.mean(u)


def plain_steps(data, x, batches, step, *, tau=None, pull=0.0):
    """The same, client by client, run by run; `batches` as drawn, (R or 1, N, b) or None."""
    step, pull = np.broadcast_to(step, len(x)), np.broadcast_to(pull, len(x))
    mean = np.zeros_like(x)
    for r in range(len(x)):
        s = min(r, len(data.X) - 1)
        for i, p in enumerate(data.p[s]):
            u = x[r]
            for batch in batches:
                chosen = None if batch is None else batch[min(r, len(batch) - 1), i]
                u = u - step[r] * (plain_gradient(data, s, i, u, chosen) + pull[r] * (u - x[r]))
                if tau is not None:
                    u = hard_threshold(u, tau)
            mean[r] += p * u
    return mean


def draw_batches(data, rows, size, steps=4, seed=2):
    """Minibatches with repeated samples, (rows, N, size) each; size None for full batches."""
    if size is None:
        return [None] * steps
    rng = np.random.default_rng(seed)
    n = np.array([len(X) for X in data.X[0]])
    return [(rng.random((rows, len(n), size)) * n[:, None]).astype(int) for _ in range(steps)]


# -- local models ------------------------------------------------------------------------------------

SPACES = {
    "coordinates": (dense, {}, DenseLocalModels),
    "gram": (dense, {"additive": True}, GramLocalModels),
    "thresholded": (dense, {"tau": 5}, DenseLocalModels),
    "CSR gram": (sparse, {"additive": True}, GramLocalModels),
    "CSR thresholded": (sparse, {"tau": 5}, SparseLocalModels),
    "CSR additive": (sparse, {"additive": True}, SparseAdditiveModels),
}


@pytest.mark.parametrize("size", [None, 2, 7], ids=["full", "few", "many"])
@pytest.mark.parametrize("rows, drawn", [(1, 1), (3, 1), (3, 3), (8, 1)])
@pytest.mark.parametrize(
    "space, loss", [(name, loss) for name in SPACES for make, loss in LAYOUTS if make is SPACES[name][0]]
)
def test_every_space_of_local_models_takes_the_same_steps(monkeypatch, space, loss, rows, drawn, size):
    make, promise, kind = SPACES[space]
    l2 = 0.3
    if kind is SparseAdditiveModels:
        monkeypatch.setattr(sparse_module, "_GRAM_BYTES", 0)
        l2 = 0.0
    data = draw(loss, sizes=(6, 3, 10), d=15, l2=l2, sparse=make is sparse, seed=4)
    problem, x = make(data), models(data, rows, nonzeros=promise.get("tau"))
    sparsity, additive = promise.get("tau"), promise.get("additive", False)
    assert type(problem.local(x, additive=additive, sparsity=sparsity)) is kind
    batches = draw_batches(data, drawn, size)
    before = x.copy()
    # Each run with its own step and pull; a pull moves columns that sparse layouts leave out.
    step, pull = np.linspace(0.1, 0.2, rows), 0.0 if make is sparse and not l2 else np.linspace(0, 0.5, rows)
    if make is sparse and sparsity is not None:
        pull = 0.0
    got = take_steps(problem, x, batches, step, **promise, pull=pull)
    assert np.array_equal(x, before)
    np.testing.assert_allclose(got, plain_steps(data, x, batches, step, tau=sparsity, pull=pull), atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("promise", [{}, {"additive": True}, {"tau": 4}], ids=["coordinates", "gram", "tau"])
@pytest.mark.parametrize("size", [None, 3])
@pytest.mark.parametrize("clients", [[[0, 2]], [[0, 2], [1, 2], [0, 1]]], ids=["one", "of each run"])
@pytest.mark.parametrize("least", [1, 1 << 30], ids=["where they lie", "copied"])
def test_a_cohort_takes_its_clients_steps(monkeypatch, loss, promise, size, clients, least):
    monkeypatch.setattr(dense_module, "_WORTH_A_CALL", least)
    data, clients = draw(loss, sizes=(6, 3, 10), d=15, l2=0.3, seed=4), np.array(clients)
    problem, x = dense(data), models(data, 3, nonzeros=promise.get("tau"))
    batches = draw_batches(data, 3 if len(clients) > 1 else 1, size)
    for r, chosen in enumerate(np.broadcast_to(clients, (3, 2))):
        p = data.p[:, chosen]
        few = data._replace(
            X=[[data.X[0][i] for i in chosen]], y=[[data.y[0][i] for i in chosen]], p=p / p.sum()
        )
        own = [None if batch is None else batch[min(r, len(batch) - 1)][None, chosen] for batch in batches]
        expected = plain_steps(few, x[r : r + 1], own, 0.1, tau=promise.get("tau"))
        drawn = [
            None if b is None else np.take_along_axis(b, clients[: len(b), :, None], axis=1) for b in batches
        ]
        got = take_steps(problem, x, drawn, 0.1, **promise, clients=clients)
        np.testing.assert_allclose(got[r], expected[0], atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("sets, rows", [(1, 1), (3, 3), (1, 4)])
def test_a_stochastic_solver_takes_its_steps_at_once(loss, sets, rows):
    data = draw(loss, sizes=(6, 3, 10), d=7, sets=sets, l2=0.3, summed=True)
    problem, rng = dense(data), np.random.default_rng(0)
    start, linear = rng.standard_normal((2, rows, 3, problem.dim))
    drawn = np.stack(draw_batches(data, rows, 4), axis=1)
    objective, solver = LocalObjective(problem, linear, np.linspace(0, 1, rows)), Stochastic(steps=4, batch=4)
    at_once, one_by_one = (
        solver.solve(objective, start, drawn),
        SteppedSolver.solve(solver, objective, start, drawn),
    )
    assert not np.allclose(at_once, start)
    np.testing.assert_allclose(at_once, one_by_one, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rows, sets", [(1, 1), (5, 1), (6, 2), (4, 4)])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("nonzeros", [2, 300])
def test_minibatch_gradients_are_sums_over_the_samples_drawn(loss, rows, sets, shared, nonzeros):
    """Sparse and dense models; samples drawn more than once; clients of several sizes."""
    data = draw(loss, sizes=(13, 19, 4), d=300, sets=sets, l2=0.3, summed=True)
    rng = np.random.default_rng(1)
    batch = np.minimum(rng.integers(0, 19, (1 if shared else rows, 3, 23)), [[[12], [18], [3]]])
    u = hard_threshold(rng.standard_normal((rows, 3, 300 * data.outputs)), nonzeros)
    if nonzeros == 300:
        u[-1] = hard_threshold(u[-1], 3)  # dense and sparse models side by side
    expected = np.array(
        [
            [
                plain_gradient(data, r * sets // rows, i, u[r, i], batch[0 if shared else r, i])
                for i in range(3)
            ]
            for r in range(rows)
        ]
    )
    for dtype, rtol in ((np.float64, 1e-12), (np.float32, 1e-4)):
        problem = dense(data, dtype)
        local = problem.local(np.zeros((rows, problem.dim), dtype), sparsity=nonzeros)
        g = local.gradient(u.astype(dtype), batch)
        assert g.dtype == dtype
        np.testing.assert_allclose(g, expected, rtol=rtol, atol=rtol)
        diverged = u.astype(dtype)
        diverged[0, 1] = np.nan
        g = local.gradient(diverged, batch)
        assert np.isnan(g[0, 1]).all()
        np.testing.assert_allclose(g[0, 0], expected[0, 0], rtol=rtol, atol=rtol)


@pytest.mark.parametrize("space", ["thresholded", "additive", "gram"])
@pytest.mark.parametrize("size", [None, 4, 8])
def test_sparse_data_of_single_precision_stay_so(monkeypatch, space, size):
    additive = space != "thresholded"
    if space == "additive":
        monkeypatch.setattr(sparse_module, "_GRAM_BYTES", 0)
    data = draw("logistic", sizes=(6, 3, 10), d=15, sparse=True, seed=4)
    found = {}
    for dtype in (np.float64, np.float32):
        part = sparse(data)
        part = SparseLinearModel(part.X.astype(dtype), part.y.astype(dtype), part.loss_function, part.client)
        x = models(data, 3, nonzeros=5).astype(dtype)
        tau = None if additive else 5
        found[dtype] = take_steps(part, x, draw_batches(data, 1, size), 0.2, tau=tau, additive=additive)
    assert found[np.float32].dtype == np.float32
    np.testing.assert_allclose(found[np.float32], found[np.float64], atol=1e-5)


def test_predictions_are_not_taken_from_another_problem_or_precision():
    problem, x = dense(draw("logistic", sizes=(6, 3, 5), d=9)), np.ones((1, 9))
    whole = problem.predictions(x)
    assert problem.predictions(x) is whole
    part = problem.with_clients(np.array([[2, 0]]))
    np.testing.assert_allclose(part.predictions(x), whole[:, [2, 0]], rtol=1e-12)
    assert problem.predictions(x) is whole
    assert problem.predictions(x.astype(np.float32)) is not whole
    x[0, 3] = -1.0
    assert not np.array_equal(problem.predictions(x), whole)


def test_spare_columns_compete_and_ties_go_to_the_lowest_column():
    # The client touches column 3 alone; the server's model lives on columns 0, 1 and 4 besides. All
    # magnitudes tie after the step, and column 3 has no precedence for being the client's own.
    X = sp.csr_array(np.array([[0, 0, 0, 1.0, 0]]))
    problem = SparseLinearModel(X, np.array([1.0]), loss_named("least_squares"), np.array([0]))
    x = np.array([[1.0, -1.0, 0, 0, 1.0]])
    local = problem.local(x, sparsity=3)
    u = local.start - 1.0 * local.gradient(local.start, None)
    np.testing.assert_array_equal(local.mean(u), [[1, -1, 0, 1, 1]])
    np.testing.assert_array_equal(local.mean(local.threshold(u.copy(), 3)), [[1, -1, 0, 1, 0]])
    np.testing.assert_array_equal(local.mean(local.threshold(u, 2)), [[1, -1, 0, 0, 0]])


@pytest.mark.parametrize("make", [dense, sparse])
@pytest.mark.parametrize("tau", [1, 2, 14])
def test_a_nan_in_a_local_model_reaches_the_server(make, tau):
    # So that the simulator sees that the row has diverged.
    data = draw("least_squares", d=15, sparse=True, seed=4)
    local = make(data).local(models(data, 2, nonzeros=tau), sparsity=tau)
    u = local.start - 0.2 * local.gradient(local.start, None)
    u.reshape(2, -1)[0, np.flatnonzero(u.reshape(2, -1)[0])[0]] = np.nan
    assert np.isnan(local.mean(local.threshold(u, tau))).any(axis=1).tolist() == [True, False]


# -- refusals ----------------------------------------------------------------------------------------


def test_what_sparse_data_cannot_do_is_refused(monkeypatch):
    data = draw("least_squares", sparse=True, l2=0.1)
    problem, x = sparse(data), models(data, 1)
    with pytest.raises(ReplifedError, match="must be sparse"):
        problem.local(x)
    with pytest.raises(ReplifedError, match="4 non-zeros, more than 2"):
        problem.local(x, sparsity=2)
    monkeypatch.setattr(sparse_module, "_GRAM_BYTES", 0)
    with pytest.raises(ReplifedError, match="ridge"):
        problem.local(x, additive=True)
    with pytest.raises(ReplifedError, match="not softmax"):
        SparseLinearModel(sp.csr_array(np.eye(3)), np.zeros(3), loss_named("softmax", 3), np.array([0, 1, 2]))


def test_missing_capabilities_are_named():
    class Bare:
        def loss(self, x): ...

        def client_hessians(self, x): ...

    require(Bare(), (Hessian,), "Someone")
    require(dense(draw("logistic")), (Smooth, LocalSteps, Hessian), "Someone")
    with pytest.raises(
        ReplifedError, match=r"^Someone needs Smooth, LocalSteps, which Bare does not offer: "
    ):
        require(Bare(), (Smooth, LocalSteps, Hessian), "Someone")


@pytest.mark.parametrize("loss", ["least_squares", "logistic", "softmax"])
@pytest.mark.parametrize("minibatches", [None, "shared", "own"])
@pytest.mark.parametrize("sets", [1, 4])
@pytest.mark.parametrize("tau", [None, 3, np.array([2, 1, 12, 4])])
def test_local_steps_end_where_the_textbooks_do(loss, minibatches, sets, tau):
    data = draw(loss, sizes=(6, 9, 4), d=40, sets=sets, l2=0.1, summed=sets == 4, seed=5)
    rng, problem = np.random.default_rng(2), dense(data)
    if tau is not None and loss == "least_squares":
        _ = problem._columns  # the models' few entries then choose columns
    x = rng.standard_normal((4, problem.dim))
    x[0] = np.eye(problem.dim)[1]
    shape = {None: None, "shared": (1, 3, 5), "own": (4, 3, 5)}[minibatches]
    batches = [None if shape is None else rng.integers(0, 4, shape) for _ in range(3)]
    step, found = 0.01 * np.arange(1, 5), []
    for additive in {False, tau is None}:
        local = problem.local(x, additive=additive)
        u = local.start
        for batch in batches:
            u = u - per_run(step, u) * local.gradient(u, batch)
            u = u if tau is None else local.threshold(u, tau)
        found.append(local.mean(u))
    for row in range(4):
        s, expected = row * sets // 4, 0.0
        for i, p in enumerate(data.p[s]):
            u = x[row]
            for batch in batches:
                drawn = None if batch is None else batch[row % len(batch), i]
                u = u - step[row] * plain_gradient(data, s, i, u, drawn)
                if tau is not None:
                    u = hard_threshold(u, int(np.broadcast_to(tau, 4)[row]))
            expected = expected + p * u
        for mean in found:
            np.testing.assert_allclose(mean[row], expected, atol=1e-12)


@pytest.mark.parametrize("made, loss", [(dense, "logistic"), (dense, "softmax"), (sparse, "logistic")])
def test_local_models_refuse_to_keep_nothing(made, loss):
    problem = made(draw(loss))
    local = problem.local(np.zeros((1, problem.dim)), sparsity=2)
    with pytest.raises(ValueError, match="sparsity levels 0"):
        local.threshold(local.start, 0)


def test_minibatches_of_a_loss_of_ones_own_are_refused_not_taken_for_another():
    class Hinge:
        name, n_outputs, curvature = "squared_hinge", 1, 2.0

        def value(self, z, y):
            return np.maximum(1 - y * z[..., 0], 0) ** 2

        def derivative(self, z, y):
            return -2 * y[..., None] * np.maximum(1 - y[..., None] * z, 0)

        def second_derivative(self, z, y):
            return 2.0 * (y[..., None, None] * z[..., None] < 1)

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1, 2, 5, 3)), rng.choice([-1.0, 1.0], (1, 2, 5))
    data, u = DenseLinearModel(X, y, Hinge()), rng.standard_normal((1, 2, 3))
    z = np.einsum("rnmd,rnd->rnm", X, u)[..., None]
    expected = np.einsum("rnmd,rnm->rnd", X, Hinge().derivative(z, y)[..., 0]) / 5
    np.testing.assert_allclose(data.per_client_gradients(u), expected, rtol=1e-12)
    with pytest.raises(ReplifedError, match=r"minibatches: .*squared_hinge"):
        data.per_client_gradients(u, np.zeros((1, 2, 4), int))


def test_hessians_of_single_precision_stay_so():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1, 2, 5, 3)).astype("f4"), rng.integers(3, size=(1, 2, 5))
    data = DenseLinearModel(X, y, Softmax(3))
    assert data.client_hessians(np.zeros((1, 9), "f4")).dtype == np.float32
