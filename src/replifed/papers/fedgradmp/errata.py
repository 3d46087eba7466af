"""What does not hold as printed in Jeong, Needell, Qin 2023."""

from __future__ import annotations

from typing import Any

import numpy as np

from replifed.algorithms.base import Round
from replifed.algorithms.fedgradmp import FedGradMP
from replifed.algorithms.fedgradmp_rates import geometric_sum
from replifed.algorithms.fediterht import FedIterHT
from replifed.claims.errata import Erratum, Outcome
from replifed.metrics import relative_error
from replifed.network.participation import FixedSize
from replifed.operators import dictionaries
from replifed.operators.restricted_isometry import isometry_constant, stable_rank
from replifed.papers.fedgradmp.problems import heterogeneous, regression
from replifed.problems.losses import loss_named
from replifed.randomness import Streams
from replifed.simulate import simulate

_SMALL: dict[str, Any] = {
    "seed": 10755,
    "clients": 12,
    "samples": 40,
    "features": 60,
    "planted": 4,
    "decay": 0.2,
}
_COHORT = 4


def _sum_of_cohort(scale: float) -> Outcome:
    """Without noise, FedGradMP with cohorts must come to the true model."""
    data, solution = regression(_SMALL, 0.2, 0.0, 1)
    method = FedGradMP(sparsity=4, local_steps=2, batch=20)
    streams = Streams(_SMALL["seed"], (1,))
    state = method.init(data, streams)
    for t in range(12):
        now = streams.at(t)
        active, chosen = FixedSize(_COHORT)(now, data.n_clients)
        state = method.round(state, data, Round(t, active, None, now, chosen))[0]
        state = state._replace(x=scale * state.x)
    error = float(relative_error(solution)(None, {"server": state.x})[0])
    return Outcome(error < 1e-6, f"relative error {error:.3g} after 12 rounds")


def _printed_loss(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """-<y, z> + ln(exp(sum_c z_c)), in the logarithm simplified."""
    return z.sum(axis=-1) - np.take_along_axis(z, y[:, None], axis=-1)[:, 0]


def _log_sum_exp(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    return loss_named("softmax", z.shape[-1]).value(z, y)


def _is_a_loss(loss) -> Outcome:
    """A logistic loss is not negative, so that it can have a minimiser."""
    rng = np.random.default_rng(0)
    z, y = 10 * rng.standard_normal((1000, 10)), rng.integers(0, 10, 1000)
    least = float(loss(z, y).min())
    return Outcome(least >= 0, f"least value {least:.3g} on random scores")


def _diverges(sparsity: int) -> Outcome:
    """Figure 8's left panel: FedIterHT with the printed loss diverges at its largest learning rate."""
    settings = {
        "seed": 10755,
        "clients": 30,
        "samples": 100,
        "features": 1000,
        "planted": 10,
        "decay": 1.1,
    }
    data, solution = regression(settings, 1.0, 0.0, 1)
    method = FedIterHT(step=0.02, sparsity=sparsity, local_steps=3, batch=40)
    history = simulate(method, data, Streams(10755, (1,)), 12, metrics={"error": relative_error(solution)})
    error = float(history.metrics["error"][-1, 0])
    said = f"relative error {error:.3g}" if np.isfinite(error) else "it has overflown"
    return Outcome(not error <= 10, f"with tau = {sparsity}, after 12 rounds, {said}")


def _mean_as_printed(alpha: float, clients: int) -> np.ndarray:
    """N(alpha, 0): every client's mean is alpha."""
    return np.full(clients, alpha)


def _mean_as_described(alpha: float, clients: int) -> np.ndarray:
    """N(0, alpha), as the matrices of all experiments have it."""
    draw = heterogeneous(np.random.default_rng(0), clients, 30, 30, alpha, 0.2)
    return np.array([draw(i).mean() for i in range(clients)])


def _alpha_is_heterogeneity(means) -> Outcome:
    """As alpha grows, the clients' means must vary more."""
    spread = [float(np.std(means(alpha, 50))) for alpha in (0.5, 2.5)]
    return Outcome(spread[1] > 1.5 * spread[0], f"spread {spread[0]:.2g} at 0.5 and {spread[1]:.2g} at 2.5")


def _ratio_printed(B: np.ndarray) -> float:
    """|B|_F^2 / |B|_F^2."""
    return 1.0


def _ratio_corrected(B: np.ndarray) -> float:
    """|B|^2 / |B|_F^2, one over the stable rank."""
    return 1.0 / stable_rank(B)


def _follows_isometry(ratio) -> Outcome:
    """delta = C ratio tau log(n/tau) must fall where the isometry constant of BA / |B|_F does."""
    rng = np.random.default_rng(1)
    found, told = [], []
    for decay in (1.5, 0.0):
        B = rng.standard_normal((60, 120)) * np.arange(1, 121) ** -decay
        BA = B @ dictionaries.gaussian(rng, 120, 120) * np.sqrt(120) / np.linalg.norm(B)
        found.append(isometry_constant(BA, 3, rng, 40))
        told.append(ratio(B))
    text = f"isometry constant {found[0]:.2g} and {found[1]:.2g}, ratio {told[0]:.2g} and {told[1]:.2g}"
    return Outcome((found[1] < found[0]) == (told[1] < told[0]), text)


def _power_printed(m: float, K: int) -> float:
    """(1 - mu^K) / (1 - mu) with mu = m^K."""
    return float(geometric_sum(m**K, K))


def _power_corrected(m: float, K: int) -> float:
    return float(geometric_sum(m, K))


def _all_clients_is_theorem5(factor) -> Outcome:
    """With equal clients and L = N, Theorem 8's residual must be Theorem 5's."""
    m, K = 0.6, 3
    expected = sum(m**k for k in range(K))
    found = factor(m, K)
    return Outcome(abs(found - expected) < 1e-12, f"factor {found:.4g}, Theorem 5's is {expected:.4g}")


def _residual_is_left(noise: float) -> Outcome:
    """Figure 11's right panel, whose residuals the text compares between cohorts, needs some."""
    data, solution = regression(_SMALL, 0.2, noise, 1)
    method = FedGradMP(sparsity=4, local_steps=2, batch=20)
    history = simulate(
        method,
        data,
        Streams(_SMALL["seed"], (1,)),
        8,
        metrics={"error": relative_error(solution)},
        cohort=FixedSize(_COHORT),
    )
    error = float(history.metrics["error"][-1, 0])
    return Outcome(error > 1e-10, f"residual {error:.2g}")


ERRATA = (
    Erratum(
        id="fedgradmp.cohort_sum",
        paper="fedgradmp",
        place="Algorithm 2, server step",
        printed="x_{t+1} from sum_{i=1}^N p_i x^{(i)}_{t,K+1}, where only the cohort's L clients have models",
        corrected="the weights are scaled to sum to one over the cohort; read literally, the model shrinks "
        "by L/N a round",
        forms=(_COHORT / _SMALL["clients"], 1.0),
        check=_sum_of_cohort,
    ),
    Erratum(
        id="fedgradmp.log_sum_exp",
        paper="fedgradmp",
        place="Sections IV-D and V-B, multiclass logistic loss",
        printed="ln(exp(sum_i b'x^{(i)}))",
        corrected="ln(sum_i exp(b'x^{(i)})); as printed the loss is linear and unbounded",
        forms=(_printed_loss, _log_sum_exp),
        check=_is_a_loss,
    ),
    Erratum(
        id="fedgradmp.hidden_sparsity",
        paper="fedgradmp",
        place="Section V-C, Figure 8",
        printed="FedIterHT for a 10-sparse vector diverges at the larger learning rates; no other tau is "
        "given",
        corrected="it does with the printed loss at tau = 200, and not at tau = 10",
        forms=(10, 200),
        check=_diverges,
    ),
    Erratum(
        id="fedgradmp.mean_law",
        paper="fedgradmp",
        place="Section V-A",
        printed="mu_i ~ N(alpha, 0)",
        corrected="mu_i ~ N(0, alpha), as two sentences before",
        forms=(_mean_as_printed, _mean_as_described),
        check=_alpha_is_heterogeneity,
    ),
    Erratum(
        id="fedgradmp.stable_rank",
        paper="fedgradmp",
        place="Section IV-D, after Corollary 10",
        printed="delta_tau = C |B|_F^2 / |B|_F^2 tau log(n/tau)",
        corrected="delta_tau = C |B|^2 / |B|_F^2 tau log(n/tau), the inverse of the stable rank",
        forms=(_ratio_printed, _ratio_corrected),
        check=_follows_isometry,
    ),
    Erratum(
        id="fedgradmp.theorem8_power",
        paper="fedgradmp",
        place="Theorem 8",
        printed="mu = max_i [(1 + eta_2)^2 beta_1 beta_2]^K, in (1 - mu^K)/(1 - mu)",
        corrected="mu without the power K, as in Theorem 5",
        forms=(_power_printed, _power_corrected),
        check=_all_clients_is_theorem5,
    ),
    Erratum(
        id="fedgradmp.figure11_caption",
        paper="fedgradmp",
        place="Figure 11, caption",
        printed="residuals in the right panel decay to zero since the measurements are noiseless",
        corrected="they do in the left panel; the right one is the noisy case, says the text",
        forms=(0.0, 4e-6),
        check=_residual_is_left,
    ),
)
