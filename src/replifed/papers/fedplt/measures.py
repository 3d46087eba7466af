"""What claims and figures measure on this paper's histories, which have a line a data set and setting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from replifed.algorithms import splitting_theory
from replifed.claims.curves import only
from replifed.claims.quantities import quantity
from replifed.claims.samples import Sample
from replifed.claims.verdicts import Measured, NotMeasurableError
from replifed.privacy.renyi import proposition4

# --- Bounds of Propositions 1 to 3 and Corollary 1 --------------------------------------------------


def norms(history: pd.DataFrame, steps: ArrayLike, rho: ArrayLike, **form: bool) -> NDArray:
    """|S| (Proposition 1) or |S'| (Proposition 3) for each line of a history with columns low and high.

    See `splitting_theory.contraction` for the `form`: whether accelerated, and whether as printed.
    """
    lines = np.broadcast(history["low"], history["high"], rho, steps)
    return np.array(
        [
            splitting_theory.norm(splitting_theory.contraction(mu, L, each_rho, int(N_e), **form))
            for mu, L, each_rho, N_e in lines
        ]
    )


def zetas(history: pd.DataFrame, rho: ArrayLike) -> NDArray:
    """zeta for each line of a history with columns low and high."""
    lines = np.broadcast(history["low"], history["high"], rho)
    return np.array([splitting_theory.zeta(*line) for line in lines])


def error_bounds(history: pd.DataFrame, made: dict[str, Any]) -> pd.Series:
    """Bound on the mean distance at each round; NaN where |S| is not below one.

    Parameters
    ----------
    history : DataFrame
        Columns round, distance, steps, probability, tau (a standard deviation), replicate, low, high.
    made : dict
        Settings rho, features and agents of the experiment.
    """
    curves = history.groupby(["steps", "probability", "tau", "replicate"], sort=False)
    return pd.concat([_error_bound(curve, made) for _, curve in curves])


def _error_bound(curve: pd.DataFrame, made: dict[str, Any]) -> pd.Series:
    first = curve.sort_values("round").iloc[0]
    start, steps, p = first["distance"], int(first["steps"]), first["probability"]
    constants = first["low"], first["high"], made["rho"]
    S = splitting_theory.norm(splitting_theory.contraction(*constants, steps))
    if S >= 1:
        return pd.Series(np.nan, curve.index)
    gamma, chi = splitting_theory.best_step(*constants), splitting_theory.chi(*constants)
    dim, agents = made["features"] + 1, made["agents"]
    nu = splitting_theory.noise_level(first["tau"], dim, agents, gamma, chi, steps)
    bounds = [splitting_theory.error_bound(int(k), S, start, nu, least=p, most=p) for k in curve["round"]]
    return pd.Series(bounds, curve.index)


# --- Quantities of claims ---------------------------------------------------------------------------


@quantity
def stores(history: pd.DataFrame, each: int, shared: int) -> Measured:
    """Whether a method keeps the printed number of models."""
    (kept,) = history.itertuples()
    same = (kept.each, kept.shared) == (each, shared)
    return Measured(np.array([same]), note=f"counted: {kept.each} an agent and {kept.shared} at the server")


@quantity
def rates(
    history: pd.DataFrame,
    solver: str,
    who: str,
    reading: str,
    per_exchange: bool = False,
    clipped: bool = False,
) -> Sample:
    """Rates by data set, of a round or an exchange; one, as a bound unless clipped, if a run diverged."""
    everyone = history["cohort"] == history["cohort"].max()
    asked = (history["solver"] == solver) & (history["reading"] == reading) & (everyone == (who == "all"))
    cell = history[asked].sort_values("replicate")
    if cell.empty:
        method = history["method"].iloc[0]
        raise NotMeasurableError(f"there is no run of {method} with {solver}, {who}, {reading}")
    values = cell["rate"].clip(upper=1.0).to_numpy()
    bounds = ((values >= 1.0) & (not clipped)).astype(int)
    values = values ** (1 / cell["exchanges"].to_numpy()) if per_exchange else values
    return Sample(values, bounds, cell["replicate"].to_numpy())


@quantity
def noting_lost(sample: Sample) -> Measured:
    """The same with a note on runs that do not converge."""
    lost = sample.bounds > 0
    return sample.measured(note=f"{lost.sum()} of {len(lost)} runs do not converge" if lost.any() else "")


@quantity
def lines(history: pd.DataFrame, value: str, **where: Any) -> Sample:
    """A column of a history, one case a line."""
    return Sample(only(history, **where)[value].to_numpy())


@quantity
def by_setting(history: pd.DataFrame, setting: str, value: str = "rate", **where: Any) -> pd.DataFrame:
    """A line a data set, a column for each value of `setting`; rates of runs that diverged are one."""
    table = only(history, **where).set_index(["replicate", setting])[value]
    table = table.unstack().sort_index(axis=1)  # noqa: PD010
    return table.clip(upper=1.0) if value == "rate" else table


@quantity
def column(table: pd.DataFrame, index: int) -> Sample:
    """A column by its index."""
    return Sample(table.iloc[:, index].to_numpy(), seeds=table.index.to_numpy())


@quantity
def at(table: pd.DataFrame, setting: float, words: str) -> Sample:
    """One setting's column."""
    near = np.flatnonzero(np.isclose(table.columns.to_numpy(dtype=float), setting, rtol=1e-6))
    if not len(near):
        raise NotMeasurableError(f"there is no run with {words}")
    return column(table, near[0])


@quantity
def lowest(table: pd.DataFrame) -> Sample:
    """Least value over the settings."""
    return Sample(table.min(axis=1).to_numpy(), seeds=table.index.to_numpy())


@quantity
def mean_change(table: pd.DataFrame) -> Sample:
    """How the mean over data sets changes from each setting to the next."""
    return Sample(np.diff(table.mean().to_numpy()))


@quantity
def best_setting(table: pd.DataFrame, form: str) -> Measured:
    """The setting with the least mean; a note says where single data sets have theirs."""
    single = table.columns.to_numpy(dtype=float)[table.to_numpy().argmin(axis=1)]
    low, high = np.quantile(single, [0.1, 0.9])
    note = f"single data sets: {low:{form}} to {high:{form}} (deciles)"
    return Measured(np.full(len(table), float(table.mean().idxmin())), note=note)


@quantity
def linear_in_share(by_active: pd.DataFrame, tolerance: float) -> Measured:
    """Whether mean rates follow 1 - p (1 - r)."""
    means = by_active.mean()
    share = means.index.to_numpy() / means.index.max()
    gap = np.abs(means.to_numpy() - (1 - share * (1 - means.iloc[-1])))
    return Measured(gap <= tolerance, note=f"largest distance {gap.max():.3f}")


@quantity
def log_log_slope(table: pd.DataFrame, low: float, high: float) -> Sample:
    """Slope of the logarithm of the values against that of the settings between two of them."""
    kept = table.columns[(table.columns >= 0.99 * low) & (table.columns <= 1.01 * high)]
    if len(kept) < 2:
        raise NotMeasurableError("fewer than two levels of noise")
    slope = np.polyfit(np.log(kept.to_numpy(dtype=float)), np.log(table[kept].to_numpy()).T, 1)[0]
    return Sample(slope, seeds=table.index.to_numpy())


@quantity
def one_valley(table: pd.DataFrame) -> Sample:
    """Whether the mean falls to its minimum and rises from it."""
    change, least = np.diff(table.mean().to_numpy()), int(table.mean().to_numpy().argmin())
    return Sample(np.concatenate([change[:least] < 1e-3, change[least:] > -1e-3]))


@quantity
def plateau(by_steps: pd.DataFrame) -> Sample:
    """Rates with the largest number of local epochs."""
    if by_steps.columns.max() < 30:
        raise NotMeasurableError("too few local epochs to reach the plateau")
    return column(by_steps, -1)


@quantity
def constant(by_steps: pd.DataFrame, first: int, width: float) -> Measured:
    """Whether mean rates from N_e = `first` on stay within `width`."""
    plateau(by_steps)
    means = by_steps.loc[:, by_steps.columns >= first].mean()
    if len(means) < 2:
        raise NotMeasurableError("fewer than two numbers of epochs on the plateau")
    holds = np.array([means.max() - means.min() <= width])
    return Measured(holds, note=f"between {means.min():.4f} and {means.max():.4f}")


@quantity
def zeta_of(epochs: pd.DataFrame, chosen: dict[str, Any]) -> Sample:
    """Zeta of each data set."""
    exact = only(epochs, solver="exact").sort_values("replicate")
    return Sample(zetas(exact, chosen["rho"]), seeds=exact["replicate"].to_numpy())


@quantity
def accelerated_norm(epochs: pd.DataFrame, chosen: dict[str, Any], steps: int, printed: bool) -> Sample:
    """|S'| of Proposition 3 for each data set."""
    exact = only(epochs, solver="exact")
    return Sample(norms(exact, steps, chosen["rho"], accelerated=True, printed=printed))


@quantity
def cold_errors_of_few_steps(history: pd.DataFrame) -> Sample:
    """What a cold start leaves at the least number of local steps."""
    cold = only(history, participation="all", start="cold")
    return lines(cold, "error", steps=cold["steps"].min())


@quantity
def rate_below_norm(epochs: pd.DataFrame, chosen: dict[str, Any]) -> Measured:
    """Whether rates are below |S| where that is below one."""
    gradient = only(epochs, solver="gradient")
    bound = norms(gradient, gradient["steps"], chosen["rho"])
    proved = bound < 1
    if not proved.any():
        raise NotMeasurableError("the bound is void everywhere")
    return Measured(
        gradient["rate"].to_numpy()[proved] <= bound[proved],
        seeds=gradient["replicate"].nunique(),
        note=f"the bound holds anything in {100 * proved.mean():.0f} % of the cases",
    )


@quantity
def errors_below_bound(history: pd.DataFrame, made: dict[str, Any]) -> Sample:
    """Whether mean distances over the data sets stay below the mean bounds, round by round."""
    history = history.assign(bound=error_bounds(history, made))
    if history["bound"].isna().any():
        raise NotMeasurableError("the bound is void here")
    means = history.groupby(["steps", "probability", "tau", "round"])[["distance", "bound"]].mean()
    return Sample((means["distance"] <= means["bound"] * (1 + 1e-9)).to_numpy())


@quantity
def epsilon_saturates(history: pd.DataFrame, made: dict[str, Any]) -> Sample:
    """Whether the bound grows with K N_e and stays below its limit."""
    gamma = history["gamma"].to_numpy().mean()
    # Up to where the exponential is lost in rounding.
    work = np.geomspace(1, 30.0 / (made["ridge"] * gamma), 60)
    common = {"sensitivity": made["clip"] / made["samples"], "mu": made["ridge"], "deviation": 0.1}
    epsilon = proposition4(2.0, gamma=gamma, rounds=work, steps=1, **common)
    limit = 2.0 * common["sensitivity"] ** 2 / (common["mu"] * common["deviation"] ** 2)
    return Sample(np.concatenate([np.diff(epsilon) > 0, epsilon < limit]))


@quantity
def error_rises_with_noise(history: pd.DataFrame) -> Sample:
    """Whether the mean error grows from each level of noise to the next, for every number of epochs."""
    end = history[history["round"] == history["round"].max()]
    means = end.groupby(["steps", "tau"])["error"].mean().unstack()  # noqa: PD010
    return Sample((np.diff(means.to_numpy(), axis=1) > 0).ravel())
