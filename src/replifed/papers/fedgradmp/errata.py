"""What does not hold as printed in Jeong, Needell, Qin 2023."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.algorithms.fedgradmp import FedGradMP
from replifed.algorithms.fedgradmp_rates import geometric_sum
from replifed.algorithms.fediterht import FedIterHT
from replifed.claims.errata import Erratum, Outcome
from replifed.metrics import relative_error
from replifed.network.participation import FixedSize
from replifed.operators import dictionaries
from replifed.operators.matrices import isometry_constant
from replifed.papers.fedgradmp.problems import heterogeneous, regression
from replifed.problems.losses import loss_named
from replifed.randomness import Streams
from replifed.simulate import simulate

_SMALL = {"seed": 10755, "clients": 12, "samples": 40, "features": 60, "planted": 4, "decay": 0.2}
_FIGURE8 = {"seed": 10755, "clients": 30, "samples": 100, "features": 1000, "planted": 10, "decay": 1.1}
_COHORT = 4
# FedGradMP on the small data.
_METHOD: dict[str, Any] = {"sparsity": 4, "local_steps": 2, "batch": 20}


def _end_error(method: Any, settings: dict, alpha: float, noise: float, rounds: int, **options: Any) -> float:
    """Relative error at the end of a regression."""
    data, solution = regression(settings, alpha, noise, 1)
    metrics = {"error": relative_error(solution)}
    history = simulate(method, data, Streams(settings["seed"], (1,)), rounds, metrics=metrics, **options)
    return float(history.metrics["error"][-1, 0])


@dataclass(frozen=True, kw_only=True)
class _Scaled(FedGradMP):
    """FedGradMP whose server takes `scale` times the cohort's mean."""

    scale: float

    def round(self, state, problem, ctx):
        state, cost = super().round(state, problem, ctx)
        return state._replace(x=self.scale * state.x), cost


def _sum_of_cohort(scale: float) -> Outcome:
    """Without noise, FedGradMP with cohorts must come to the true model."""
    method = _Scaled(scale=scale, **_METHOD)
    error = _end_error(method, _SMALL, 0.2, 0.0, 12, cohort=FixedSize(_COHORT))
    return Outcome(error < 1e-6, f"relative error {error:.3g} after 12 rounds")


def _printed_loss(z: NDArray, y: NDArray) -> NDArray:
    """-<y, z> + ln(exp(sum_c z_c)), in the logarithm simplified."""
    return z.sum(axis=-1) - np.take_along_axis(z, y[:, None], axis=-1)[:, 0]


def _is_a_loss(loss: Callable[[NDArray, NDArray], NDArray]) -> Outcome:
    """A logistic loss is not negative, so that it can have a minimiser."""
    rng = np.random.default_rng(0)
    z, y = 10 * rng.standard_normal((1000, 10)), rng.integers(0, 10, 1000)
    least = float(loss(z, y).min())
    return Outcome(least >= 0, f"least value {least:.3g} on random scores")


def _diverges(sparsity: int) -> Outcome:
    """Figure 8's left panel: FedIterHT with the printed loss diverges at its largest learning rate."""
    error = _end_error(
        FedIterHT(step=0.02, sparsity=sparsity, local_steps=3, batch=40), _FIGURE8, 1.0, 0.0, 12
    )
    said = f"relative error {error:.3g}" if np.isfinite(error) else "it has overflown"
    return Outcome(not error <= 10, f"with tau = {sparsity}, after 12 rounds, {said}")


def _mean_as_printed(alpha: float, clients: int) -> NDArray:
    """N(alpha, 0): every client's mean is alpha."""
    return np.full(clients, alpha)


def _mean_as_described(alpha: float, clients: int) -> NDArray:
    """N(0, alpha), as the matrices of all experiments have it."""
    matrices = heterogeneous(np.random.default_rng(0), clients, 30, 30, alpha, 0.2)
    return np.array([A.mean() for A in matrices])


def _alpha_is_heterogeneity(means: Callable[[float, int], NDArray]) -> Outcome:
    """As alpha grows, the clients' means must vary more."""
    spread = [float(np.std(means(alpha, 50))) for alpha in (0.5, 2.5)]
    return Outcome(spread[1] > 1.5 * spread[0], f"spread {spread[0]:.2g} at 0.5 and {spread[1]:.2g} at 2.5")


def _follows_isometry(norm: Any) -> Outcome:
    """delta = C (|B| / |B|_F)^2 tau log(n/tau) must fall where the isometry constant of BA / |B|_F does."""
    rng = np.random.default_rng(1)
    constants, ratios = [], []
    for decay in (1.5, 0.0):
        B = rng.standard_normal((60, 120)) * np.arange(1, 121) ** -decay
        BA = B @ dictionaries.gaussian(rng, 120, 120) * np.sqrt(120) / np.linalg.norm(B)
        constants.append(isometry_constant(BA, 3, rng, 40))
        ratios.append((np.linalg.norm(B, norm) / np.linalg.norm(B)) ** 2)
    text = "isometry constant {:.2g} and {:.2g}, ratio {:.2g} and {:.2g}".format(*constants, *ratios)
    return Outcome((constants[1] < constants[0]) == (ratios[1] < ratios[0]), text)


def _all_clients_is_theorem5(power: int) -> Outcome:
    """With equal clients and L = N, Theorem 8's residual must be Theorem 5's."""
    m, K = 0.6, 3
    expected, found = sum(m**k for k in range(K)), float(geometric_sum(m**power, K))
    return Outcome(abs(found - expected) < 1e-12, f"factor {found:.4g}, Theorem 5's is {expected:.4g}")


def _residual_is_left(noise: float) -> Outcome:
    """Figure 11's right panel, whose residuals the text compares between cohorts, needs some."""
    error = _end_error(FedGradMP(**_METHOD), _SMALL, 0.2, noise, 8, cohort=FixedSize(_COHORT))
    return Outcome(error > 1e-10, f"residual {error:.2g}")


fault = partial(Erratum, paper="fedgradmp")
ERRATA = (
    fault(
        id="fedgradmp.cohort_sum",
        place="Algorithm 2, server step",
        printed="x_{t+1} from sum_{i=1}^N p_i x^{(i)}_{t,K+1}, where only the cohort's L clients have models",
        corrected="the weights are scaled to sum to one over the cohort; read literally, the model shrinks "
        "by L/N a round",
        forms=(_COHORT / _SMALL["clients"], 1.0),
        check=_sum_of_cohort,
    ),
    fault(
        id="fedgradmp.log_sum_exp",
        place="Sections IV-D and V-B, multiclass logistic loss",
        printed="ln(exp(sum_i b'x^{(i)}))",
        corrected="ln(sum_i exp(b'x^{(i)})); as printed the loss is linear and unbounded",
        forms=(_printed_loss, loss_named("softmax", 10).value),
        check=_is_a_loss,
    ),
    fault(
        id="fedgradmp.hidden_sparsity",
        place="Section V-C, Figure 8",
        printed="FedIterHT for a 10-sparse vector diverges at the larger learning rates; no other tau is "
        "given",
        corrected="it does with the printed loss at tau = 200, and not at tau = 10",
        forms=(10, 200),
        check=_diverges,
    ),
    fault(
        id="fedgradmp.mean_law",
        place="Section V-A",
        printed="mu_i ~ N(alpha, 0)",
        corrected="mu_i ~ N(0, alpha), as two sentences before",
        forms=(_mean_as_printed, _mean_as_described),
        check=_alpha_is_heterogeneity,
    ),
    fault(
        id="fedgradmp.stable_rank",
        place="Section IV-D, after Corollary 10",
        printed="delta_tau = C |B|_F^2 / |B|_F^2 tau log(n/tau)",
        corrected="delta_tau = C |B|^2 / |B|_F^2 tau log(n/tau), the inverse of the stable rank",
        forms=("fro", 2),
        check=_follows_isometry,
    ),
    fault(
        id="fedgradmp.theorem8_power",
        place="Theorem 8",
        printed="mu = max_i [(1 + eta_2)^2 beta_1 beta_2]^K, in (1 - mu^K)/(1 - mu)",
        corrected="mu without the power K, as in Theorem 5",
        forms=(3, 1),
        check=_all_clients_is_theorem5,
    ),
    fault(
        id="fedgradmp.figure11_caption",
        place="Figure 11, caption",
        printed="residuals in the right panel decay to zero since the measurements are noiseless",
        corrected="they do in the left panel; the right one is the noisy case, says the text",
        forms=(0.0, 4e-6),
        check=_residual_is_left,
    ),
)
