"""What this paper's claims measure that others' do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from replifed.claims.curves import Curves, curves, level, roughness
from replifed.claims.quantities import quantity
from replifed.claims.samples import Sample, paired
from replifed.claims.verdicts import Measured, NotMeasurableError
from replifed.errors import ConfigError, unknown_name
from replifed.papers.fedmm.experiments import tuned_betas


@quantity
def step(search: dict[str, Any], reading: str) -> float:
    """The step at which a method is read: its own, or FedMM's."""
    betas = tuned_betas(search)
    if reading not in betas:
        raise ConfigError(unknown_name("reading", reading, betas))
    return betas[reading]


@quantity
def columns(history: pd.DataFrame, value: str, **where: Any) -> Curves:
    """Curves of a column; updates are of the round behind them, so that round 0 has none."""
    one = curves(history, value, **where)
    if value == "objective":
        return one
    return one._replace(rounds=one.rounds[1:], values=one.values[:, 1:])


@quantity
def largest_rise(one: Curves) -> Sample:
    """Largest relative rise from one window of five records to the next."""
    width = min(5, len(one.rounds) - 1)
    smooth = np.apply_along_axis(np.convolve, 1, one.values, np.full(width, 1 / width), "valid")
    return one.sample((smooth[:, 1:] / smooth[:, :-1] - 1).max(axis=1))


@quantity
def finite(difference: Sample) -> Sample:
    """The same, refused where a run diverged."""
    if not np.isfinite(difference.values).all():
        raise NotMeasurableError("a run diverged beyond all numbers")
    return difference


@quantity
def overtaken(ours: Curves, naive: Curves) -> Measured:
    """Whether ours is lower in the first fifth of the rounds and higher at the end."""
    ours, naive = paired(ours, naive)
    fifth = max(len(ours.rounds) // 5, 1)
    early = ours.sample((ours.values[:, :fifth].mean(axis=1)) < naive.values[:, :fifth].mean(axis=1))
    late = level(ours) > level(naive)
    note = f"early {early.values.sum()}, late {late.values.sum()} of {len(ours.seeds)}"
    return (early & late).measured(note=note)


@quantity
def unsteadiness(one: Curves) -> Sample:
    """Spread of the logarithm around its trend in the last third of the run."""
    return roughness(one._replace(values=np.log(one.values)), max(len(one.rounds) // 3, 4))


@quantity
def gap(one: Sample, two: Sample) -> Sample:
    """Relative difference."""
    return (one / two).map(lambda ratio: np.abs(ratio - 1))


@quantity
def largest_gap(one: Curves, two: Curves) -> Sample:
    """Largest relative difference of two curves in any recorded round."""
    return one.sample(np.abs(one.values / two.values - 1).max(axis=1))


@quantity
def at_equal_gradients(ours: pd.DataFrame, adam: pd.DataFrame) -> Measured:
    """log of the L2-UVP, FedAdam minus FedMM-OT, after equally many sample gradients."""
    pair = paired(curves(ours, "uvp"), curves(adam, "uvp"))
    work = [frame.groupby("round")["sample_gradients"].mean().to_numpy() for frame in (ours, adam)]
    # The last record of each that has used no more than both have.
    most = min(used[-1] for used in work)
    i, j = (int(np.searchsorted(used, most, side="right")) - 1 for used in work)
    ratio = pair[1].values[:, j] / pair[0].values[:, i]
    note = f"FedMM-OT after {pair[0].rounds[i]} rounds, FedAdam after {pair[1].rounds[j]}"
    return pair[0].sample(np.log(ratio)).measured(note=note)


@quantity
def toy(history: pd.DataFrame, settings: dict[str, Any], reading: str, *, solved: bool) -> Measured:
    """Rounds from the first on at which the toy's solution is met, or missed by 5 %, always the same way."""
    from replifed.papers.fedmm.simulations import TOYS

    solution = float(TOYS[reading].T(np.array([np.mean(settings["values"][reading])]))[0])
    theta = history[(history["reading"] == reading) & (history["round"] > 0)]["theta"].to_numpy()
    error = np.abs(theta - solution)
    holds = error < 1e-14 if solved else (error > 0.05) & (np.ptp(theta) < 1e-14)
    return Measured(holds, note=f"error {error.max():.3g}")


def variates_add_up() -> Measured:
    """|V - sum_i mu_i V_i| stays at rounding over rounds with cohorts, minibatches and quantisation."""
    from replifed.algorithms.fedmm import FedMM
    from replifed.network.participation import FixedSize, Independent
    from replifed.papers.fedmm.simulations import em_problem
    from replifed.randomness import Streams
    from replifed.simulate import simulate

    settings = {"seed": 1, "model": "poisson", "clients": 8, "samples": 80, "lam": 0.1}
    problem = em_problem(settings, 1)
    gaps = []
    for cohort, p in ((None, None), (FixedSize(3), None), (Independent(0.4), 0.4)):
        algorithm = FedMM(beta=0.5, alpha=0.2, bits=6, batch=4, participation=p)
        state = simulate(algorithm, problem, Streams(1, (1, 2)), 20, cohort=cohort).state
        gaps.append(np.abs((problem.weights[..., None] * state.V_i).sum(axis=1) - state.V).max())
    return Measured(np.array(gaps) < 1e-12, note=f"largest gap {max(gaps):.2g}")
