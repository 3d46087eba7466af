"""The paper's synthetic data are distributed as Section 5.1 says; the planted problem has its constants."""

import numpy as np
import pandas as pd
import pytest

from replifed.papers.fedht import experiments, simulations
from replifed.papers.fedht.settings import Biased, Planted, Simulation
from replifed.randomness import generator
from replifed.settings.needs import share_of_run

# Few features and samples, many clients: everything is a mean over independent clients.
SETTINGS = {"seed": 0, "loss": "least_squares", "clients": 1500, "samples": 80, "features": 15, "planted": 5}
ALPHA, BETA = 0.25, 0.5


def simulation(settings, *names):
    return simulations.simulation(Simulation.of_job(settings), *names)


@pytest.fixture(scope="module")
def linear():
    problem = simulation(SETTINGS, (ALPHA, BETA), 1)
    return problem.X[0], problem.y[0]


def close(sample, expected, errors=4.5):
    """Whether the mean over the first axis is `expected` to so many standard errors."""
    error = sample.std(axis=0, ddof=1) / np.sqrt(len(sample))
    np.testing.assert_array_less(np.abs(sample.mean(axis=0) - expected), errors * error)


def test_features_scatter_around_their_clients_mean(linear):
    X, _ = linear
    k = np.arange(1, 16)
    variances = X.var(axis=1, ddof=1)
    close(variances, k**-1.2)
    # Coordinates are uncorrelated.
    centred = X - X.mean(axis=1, keepdims=True)
    close((centred[:, :, :-1] * centred[:, :, 1:]).mean(axis=1), 0.0)


def test_clients_means_scatter_around_a_mean_of_their_own(linear):
    X, _ = linear
    v = X.mean(axis=1)
    noise = np.arange(1, 16) ** -1.2 / 80
    close(v, 0.0)
    # v_i[j] ~ N(B_i, 1) within a client, and B_i ~ N(0, beta), a variance, between clients.
    close(v.var(axis=1, ddof=1), 1 + noise.mean())
    close(v.mean(axis=1) ** 2, BETA + (1 + noise.mean()) / 15)


def test_targets_follow_each_clients_own_model(linear):
    X, y = linear
    # Regress on the planted coordinates and an intercept, which estimates u_i.
    A = np.concatenate([np.ones((*X.shape[:2], 1)), X[:, :, :5]], axis=2)
    inverse = np.linalg.inv(A.swapaxes(1, 2) @ A)
    found = np.einsum("nab,nma,nm->nb", inverse, A, y)
    residual = y - np.einsum("nma,na->nm", A, found)
    # Noise of variance 1, and nothing left for the other coordinates to explain.
    close((residual**2).sum(axis=1) / (80 - 6), 1.0)
    close(np.einsum("nmk,nm->nk", X[:, :, 5:], residual) / 80, 0.0)
    # u_i ~ N(0.1, alpha), a variance; x_i has entries ~ N(u_i, 1), so that they share alpha.
    error = np.einsum("naa->na", inverse)
    close(found, 0.1)
    close((found[:, 0] - 0.1) ** 2 - error[:, 0], ALPHA)
    close((found[:, 1:] - 0.1) ** 2 - error[:, 1:], ALPHA + 1)
    close((found[:, 1] - 0.1) * (found[:, 2] - 0.1) - inverse[:, 1, 2], ALPHA)


def test_labels_mark_the_highest_scores(monkeypatch):
    small = {**SETTINGS, "clients": 6, "positives": 7, "dtype": "float32"}

    def unnamed(seed, replicate, round_, purpose):
        return generator(seed, replicate, round_, "data")

    # With one name for both simulations, the targets of the first are the scores of the second.
    monkeypatch.setattr(simulations, "generator", unnamed)
    score = simulation(small, (0.5, 0.5), 2).y[0]
    problem = simulation({**small, "loss": "logistic"}, (0.5, 0.5), 2)
    y = problem.y[0]
    assert problem.loss_function.name == "logistic"
    assert (problem.X.dtype, problem.y.dtype) == (np.float32, np.float32)
    assert np.array_equal(np.unique(y), [-1, 1])
    assert np.array_equal((y == 1).sum(axis=1), np.full(6, 7))
    for labels, scores in zip(y, score, strict=True):
        assert scores[labels == 1].min() > scores[labels == -1].max()


def test_levels_differ_in_nothing_but_alpha_and_beta():
    small = {**SETTINGS, "clients": 5}
    X = {beta: simulation(small, (0.1, beta), 1).X[0] for beta in (0.0, 0.25, 1.0)}
    # Features move by sqrt(beta) N_i, with one normal number N_i a client.
    shift = X[1.0] - X[0.0]
    np.testing.assert_allclose(shift, np.broadcast_to(shift[:, :1, :1], shift.shape), atol=1e-12)
    np.testing.assert_allclose(X[0.25] - X[0.0], shift / 2, atol=1e-12)
    assert np.std(shift[:, 0, 0]) > 0.1
    # Alpha moves the targets alone.
    np.testing.assert_array_equal(simulation(small, (1.0, 0.25), 1).X[0], X[0.25])
    assert not np.allclose(simulation(small, (0.1, 0.0), 2).X[0], X[0.0])


SMALL = {"clients": 4, "samples": 37, "positives": 7}
LEVELS = [(0.1, 0.1), (0.5, 0.5), (1.0, 1.0)]


@pytest.mark.parametrize("loss", ["least_squares", "logistic"])
def test_levels_side_by_side_are_the_levels_one_by_one(loss):
    small = {**SETTINGS, **SMALL, "loss": loss}
    sets, rng = [0, 2, 1, 0, 2], np.random.default_rng(1)
    together = simulations.simulations(Simulation.of_job(small), LEVELS, 2).of_runs(sets)
    x, u = rng.standard_normal((5, 15)), rng.standard_normal((5, 4, 15))
    batch = rng.integers(0, 37, (1, 4, 50))
    locally = [together.local(x).gradient(u, drawn) for drawn in (None, batch)]
    for row, number in enumerate(sets):
        alone, one = simulation(small, LEVELS[number], 2), slice(row, row + 1)
        for name in ("predictions", "client_losses", "loss", "gradient"):
            expected = getattr(alone, name)(x[one])[0]
            np.testing.assert_allclose(getattr(together, name)(x)[row], expected, atol=1e-12)
        np.testing.assert_allclose(together.smoothness()[row], alone.smoothness()[0], rtol=1e-10)
        for drawn, local in zip((None, batch), locally, strict=True):
            expected = alone.per_client_gradients(u[one], drawn)[0]
            np.testing.assert_allclose(local[row], expected, atol=1e-12)
            # The first rows alone take the last local steps.
            for rows in range(row + 1, 6):
                g = together.per_client_gradients(u[:rows], drawn)
                np.testing.assert_allclose(g[row], expected, atol=1e-12)


def one_by_one(method, settings):
    return [[level] for level in experiments.plotted_levels(method, settings)]


@pytest.mark.parametrize("method", ["fediterht", "fedht", "distributed_iht", "fedavg"])
def test_runs_of_levels_side_by_side_are_those_of_each_level(method, monkeypatch):
    """Nor does it matter how jobs share the repetitions, and which runs are perturbed."""
    settings = {
        **SETTINGS,
        **SMALL,
        **{"problem": "simulation", "loss": "logistic", "levels": LEVELS, "sparsity": 4, "batch": 9},
        **{"local_steps": [2, 3], "rounds": 6, "record_every": 2, "replicates": [1, 2]},
        **{"full_batch_replicates": [2], "full_batch_rounds": 3},
    }
    shares = [Simulation.of_job(share_of_run(settings, number, 2)) for number in (1, 2)]
    settings = Simulation.of_job(settings)
    printed = {"printed_score": 0.5, "printed_chaotic": False}
    by_k = {
        str(K): {"step": 0.1 / K, "printed_step": 0.1, **printed} for K in experiments.sweep(method, settings)
    }
    found = {
        level: {"local_steps": int(min(by_k)), "by_local_steps": by_k}
        | {"common_step": 0.02 * (1 + number), "smoothness": 3.21}
        for number, level in enumerate(experiments.plotted_levels("fedht", settings))
    }
    curve = ["level", "reading", "batch", "local_steps", "step", "tuned", "replicate", "round"]

    def ran(settings):
        frame = experiments.run(method, settings, {"levels": found}, None, None)
        return frame.sort_values(curve, ignore_index=True)

    together = ran(settings)
    assert len(experiments._grouped(method, settings)) == 1
    monkeypatch.setattr(experiments, "_grouped", one_by_one)
    alone = ran(settings)
    pd.testing.assert_frame_equal(together, alone, rtol=1e-9)
    parts = [experiments.run(method, one, {"levels": found}, None, None) for one in shares]
    joined = pd.concat(parts, ignore_index=True).sort_values(curve, ignore_index=True)
    pd.testing.assert_frame_equal(joined, alone, check_exact=True)
    fewer = ran(settings.with_(twin_replicates=[1]))
    none = (fewer["replicate"] == 2) | (method == "fedavg")  # which is drawn for reference
    assert (fewer["twin_difference"].isna() == none).all() and not fewer.loc[none, "chaotic"].any()
    own = [name for name in fewer if name not in ("chaotic", "twin_difference") and ".of_" not in name]
    pd.testing.assert_frame_equal(fewer[own], alone[own], rtol=1e-6)
    if method != "fedavg":
        assert (fewer["objective.of_step"].isna() == none).all()
        # The theorems' step, for every K, at the mildest level.
        theory = alone[alone["reading"] == "theory"]
        assert set(theory["step"]) == {0.052} and set(theory["level"]) == {"0.1,0.1"}
        assert set(theory["local_steps"]) == set(map(int, by_k))


def test_planted_problem_has_its_condition_number_and_solution():
    settings = {"seed": 3, "clients": 4, "samples": 30, "features": 30, "planted": 6, "condition": 2.5}
    problem, x_star, variance = simulations.planted(Planted.of_job(settings), 1)
    assert np.count_nonzero(x_star) == 6
    assert np.all(np.abs(x_star[x_star != 0]) >= 1)
    # In every client: the theorems' constants are the clients'.
    np.testing.assert_allclose(problem.smoothness(), np.full((1, 4), 2.5), rtol=1e-12)
    np.testing.assert_allclose(problem.strong_convexity(), np.ones((1, 4)), rtol=1e-12)
    assert problem.loss(x_star[None]) == 0
    # Gradients at zero, sample by sample.
    each = (-problem.X.toarray() * problem.y[:, None]).reshape(4, 30, 30)
    spread = each - each.mean(axis=1, keepdims=True)
    assert variance == pytest.approx((spread**2).sum(axis=2).mean())
    assert not problem.client_gradients(x_star[None]).any()
    hessians = problem.client_hessians(x_star[None])[0]
    assert not np.allclose(hessians[0], hessians[1])
    other, other_star, _ = simulations.planted(Planted.of_job(settings), 2)
    assert not np.array_equal(other_star, x_star)
    assert not np.array_equal(other.X.data, problem.X.data)


BIASED = {"seed": 3, "clients": 4, "features": 60, "planted": 5, "condition": 6.0, "offset": 0.02}


def minimisers_of(problem, curvature):
    """A client's samples are y_j = sqrt(d c_j) a_j."""
    return np.reshape(problem.y, (4, 60)) / np.sqrt(60 * curvature)


def test_the_biased_problems_solution_and_the_gradient_there_hang_on_no_spread():
    found = [simulations.biased(Biased.of_job(BIASED), spread, 1) for spread in (0.0, 0.3, 1.0)]
    for problem, x_star, curvature in found:
        assert np.count_nonzero(x_star) == 5 and np.abs(x_star[x_star != 0]).min() >= 1
        np.testing.assert_array_equal(x_star, found[0][1])
        gradient = problem.gradient(x_star[None])[0]
        np.testing.assert_allclose(gradient, found[0][0].gradient(x_star[None])[0], atol=1e-12)
        # Zero on the support, and no other five coordinates lower the objective as much.
        np.testing.assert_allclose(gradient[x_star != 0], 0.0, atol=1e-12)
        mean = curvature.mean(axis=0)
        minimiser = x_star - gradient / mean
        gains = mean * minimiser**2 / 2
        assert gains[x_star == 0].max() < gains[x_star != 0].min()


def test_the_biased_problems_clients_scatter_in_all_coordinates_anew_at_each_spread():
    """Scatter on the support alone, a mean that moves, or one draw for all spreads would be found."""
    settings, spreads = Biased.of_job({**BIASED, "clients": 400}), (0.0, 0.3, 1.0)
    found = [simulations.biased(settings, spread, 1) for spread in spreads]
    base = np.reshape(found[0][0].y, (400, 60)) / np.sqrt(60 * found[0][2])
    np.testing.assert_allclose(base, base[:1].repeat(400, axis=0), rtol=1e-12)
    apart = []
    for (problem, _, curvature), spread in zip(found[1:], spreads[1:], strict=True):
        scatter = np.reshape(problem.y, (400, 60)) / np.sqrt(60 * curvature) - base
        np.testing.assert_allclose((curvature * scatter).sum(axis=0), 0.0, atol=1e-9)
        # In each coordinate; the standard error of a variance of 400 is 7 %.
        np.testing.assert_allclose(scatter.var(axis=0), spread, rtol=0.3)
        apart.append(scatter)
    assert abs(np.corrcoef(apart[0].ravel(), apart[1].ravel())[0, 1]) < 0.03


def test_clients_may_scatter_on_the_support_alone():
    problem, x_star, curvature = simulations.biased(Biased.of_job({**BIASED, "differ": "support"}), 0.5, 1)
    everywhere, *_ = simulations.biased(Biased.of_job(BIASED), 0.5, 1)
    scatter = minimisers_of(problem, curvature)
    on = x_star != 0
    np.testing.assert_allclose(scatter[:, on], minimisers_of(everywhere, curvature)[:, on], rtol=1e-12)
    np.testing.assert_allclose(scatter[:, ~on], scatter[:1, ~on].repeat(4, axis=0), rtol=1e-12)
    np.testing.assert_allclose(
        problem.gradient(x_star[None]), everywhere.gradient(x_star[None]), rtol=0, atol=1e-12
    )


def test_noise_is_in_minibatches_alone():
    calm, x_star, curvature = simulations.biased(Biased.of_job(BIASED), 0.5, 1)
    noisy, *_ = simulations.biased(Biased.of_job({**BIASED, "noise": 3.0}), 0.5, 1)
    np.testing.assert_allclose(
        noisy.client_gradients(x_star[None]), calm.client_gradients(x_star[None]), atol=1e-9
    )
    # Of batches of 60 samples at the first client's minimiser, where who is drawn adds nothing.
    at = minimisers_of(calm, curvature)[:1]
    each = noisy.X[:120].toarray() * (noisy.X[:120] @ at[0] - noisy.y[:120])[:, None]
    drawn = np.random.default_rng(0).integers(0, 120, (4000, 60))
    gradients = each[drawn].mean(axis=1)
    np.testing.assert_allclose(gradients.std(axis=0), 3.0, rtol=0.06)
    np.testing.assert_allclose(gradients.mean(axis=0), 0.0, atol=0.25)


def test_fedht_comes_to_rest_where_its_clients_drift_to():
    settings = {**BIASED, "problem": "biased", "spreads": [0.5], "sparsity": 5, "local_steps": [7]}
    settings |= {"rounds": 300, "record_every": 300, "replicates": [1]}
    error = experiments.run("fedht", Biased.of_job(settings), {}, None, None)["error"].iloc[-1]
    problem, x_star, curvature = simulations.biased(Biased.of_job(settings), 0.5, 1)
    # A client keeps (1 - gamma c)^K of its distance to its own minimiser.
    moved = 1 - (1 - curvature / 36) ** 7
    rest = (moved * minimisers_of(problem, curvature)).sum(axis=0) / moved.sum(axis=0)
    # The server keeps the support alone, for all else is smaller.
    assert np.abs(rest[x_star == 0]).max() < np.abs(rest[x_star != 0]).min()
    assert error == pytest.approx(((rest - x_star)[x_star != 0] ** 2).sum(), rel=1e-9)
