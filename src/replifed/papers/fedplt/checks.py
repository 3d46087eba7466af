"""How each claim is measured on the runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.algorithms.registry import method_class
from replifed.algorithms.splitting_theory import zeta
from replifed.claims.verdicts import Measured, NotMeasurableError
from replifed.papers.fedplt.footprint import footprint
from replifed.papers.fedplt.theory import bounded, norms
from replifed.privacy.renyi import proposition4

Measure = Callable[[Any], Measured | NDArray]


# --- Table I --------------------------------------------------------------------------------------


def stores(method: str, each: int, shared: int) -> Measure:
    """Whether the code of `method` keeps so many models."""

    def measure(_: Any) -> Measured:
        found = footprint(method)
        same = (found.each, found.shared) == (each, shared)
        return Measured(
            np.array([same]), note=f"counted: {found.each} an agent and {found.shared} at the server"
        )

    return measure


def allows_partial(method: str, wanted: bool) -> Measure:
    """Whether `method` allows partial participation as wanted."""
    return lambda _: np.array([method_class(method).partial_participation == wanted])


def random_steps(methods: Sequence[str], only: str) -> Measure:
    """Whether `only` is the one method with a random number of local steps."""
    return lambda _: np.array([footprint(method).random == (method == only) for method in methods])


# --- Table II -------------------------------------------------------------------------------------


def _cell(inputs: Any, method: str, solver: str, who: str, reading: str) -> pd.DataFrame:
    history = inputs.run("comparison", method)
    largest = history["cohort"].max()
    chosen = history[
        (history["solver"] == solver)
        & (history["reading"] == reading)
        & ((history["cohort"] == largest) == (who == "all"))
    ]
    if chosen.empty:
        raise NotMeasurableError(f"there is no run of {method} with {solver}, {who}, {reading}")
    return chosen.set_index("replicate").sort_index()


def _rates(inputs: Any, method: str, solver: str, who: str, reading: str) -> pd.Series:
    """Rates by data set; a run that diverged has a rate of one or more, written as one."""
    return _cell(inputs, method, solver, who, reading)["rate"].clip(upper=1.0)


def rate_of(method: str, solver: str, who: str, reading: str) -> Measure:
    """The cell's rate on each data set."""

    def measure(inputs: Any) -> Measured:
        rates = _rates(inputs, method, solver, who, reading).to_numpy()
        lost = rates >= 1.0
        note = f"{lost.sum()} of {len(lost)} runs do not converge" if lost.any() else ""
        return Measured(rates, bounds=lost.astype(int), note=note)

    return measure


def faster(rival: str, solver: str, who: str, reading: str, per_exchange: bool = False) -> Measure:
    """Rate of `rival` less that of Fed-PLT, by data set."""

    def measure(inputs: Any) -> Measured:
        other = _cell(inputs, rival, solver, who, reading)
        theirs = other["rate"].clip(upper=1.0)
        if per_exchange:
            theirs = theirs ** (1 / other["exchanges"])
        difference = theirs - _rates(inputs, "fedplt", solver, who, reading)
        return Measured(difference.to_numpy(), bounds=(theirs >= 1.0).to_numpy().astype(int))

    return measure


def slower_with_half(method: str, solver: str, reading: str) -> Measure:
    """Rate with half of the agents less that with all."""

    def measure(inputs: Any) -> NDArray:
        half, all_ = (_rates(inputs, method, solver, who, reading) for who in ("half", "all"))
        return (half - all_).to_numpy()

    return measure


def accelerated_converges(method: str, reading: str) -> Measure:
    """Whether each data set's run with the accelerated solver has a rate below one."""
    return lambda inputs: (_rates(inputs, method, "accelerated", "all", reading) < 1.0).to_numpy()


def solver_order(method: str, reading: str, gradient_first: bool, who: str = "all") -> Measure:
    """Difference of rates between the solvers, positive if the one that is published as faster is so."""

    def measure(inputs: Any) -> NDArray:
        plain, fast = (_rates(inputs, method, solver, who, reading) for solver in ("gradient", "accelerated"))
        difference = (fast - plain).to_numpy()
        return difference if gradient_first else -difference

    return measure


def slower_on_every_set(method: str, reading: str) -> Measure:
    """Whether the accelerated solver is slower, data set by data set."""
    return lambda inputs: solver_order(method, reading, True)(inputs) > 0


def stays_away(method: str, error: float) -> Measure:
    """Whether the relative error left is above `error`."""
    return lambda inputs: (inputs.run("comparison", method)["error"] > error).to_numpy()


# --- Table III ------------------------------------------------------------------------------------


def _by(history: pd.DataFrame, columns: str, value: str = "rate") -> pd.DataFrame:
    """A line a data set, a column for each value of `columns`."""
    return history.set_index(["replicate", columns])[value].unstack().sort_index(axis=1)  # noqa: PD010


def rate_with(active: int) -> Measure:
    """Rates with `active` agents."""

    def measure(inputs: Any) -> NDArray:
        table = _by(inputs.run("participation", "fedplt"), "active")
        if active not in table:
            raise NotMeasurableError(f"there is no run with {active} agents")
        return table[active].to_numpy()

    return measure


def rises_with_fewer(inputs: Any) -> NDArray:
    """Whether the mean rate falls with every agent more."""
    table = _by(inputs.run("participation", "fedplt"), "active")
    return np.diff(table.mean().to_numpy()) < 0


def linear_in_share(tolerance: float) -> Measure:
    """Whether mean rates follow 1 - p (1 - r)."""

    def measure(inputs: Any) -> Measured:
        means = _by(inputs.run("participation", "fedplt"), "active").mean()
        share = means.index.to_numpy() / means.index.max()
        gap = np.abs(means.to_numpy() - (1 - share * (1 - means.iloc[-1])))
        return Measured(gap <= tolerance, note=f"largest distance {gap.max():.3f}")

    return measure


# --- Table IV -------------------------------------------------------------------------------------


def _errors(inputs: Any, reading: str) -> pd.DataFrame:
    history = inputs.run("noise", "fedplt")
    return _by(history[history["reading"] == reading], "tau", "agents")


def _at(table: pd.DataFrame, tau: float) -> NDArray:
    near = table.columns[np.isclose(table.columns.to_numpy(dtype=float), tau, rtol=1e-6)]
    if not len(near):
        raise NotMeasurableError(f"there is no run with noise level {tau:g}")
    return table[near[0]].to_numpy()


def error_at(tau: float, reading: str) -> Measure:
    """Asymptotic errors at one level."""
    return lambda inputs: _at(_errors(inputs, reading), tau)


def error_rises(reading: str) -> Measure:
    """Whether the mean error grows with the level."""
    return lambda inputs: np.diff(_errors(inputs, reading).mean().to_numpy()) > 0


def error_growth(low: float, high: float, reading: str) -> Measure:
    """Factor between two levels, by data set."""

    def measure(inputs: Any) -> NDArray:
        table = _errors(inputs, reading)
        return _at(table, high) / _at(table, low)

    return measure


def error_slope(low: float, high: float, reading: str) -> Measure:
    """Log-log slope between two levels, by data set."""

    def measure(inputs: Any) -> NDArray:
        table = _errors(inputs, reading)
        kept = table.columns[(table.columns >= 0.99 * low) & (table.columns <= 1.01 * high)]
        if len(kept) < 2:
            raise NotMeasurableError("fewer than two levels of noise")
        return np.polyfit(np.log(kept.to_numpy(dtype=float)), np.log(table[kept].to_numpy()).T, 1)[0]

    return measure


# --- Figures 2 and 3 ------------------------------------------------------------------------------


def _penalty(inputs: Any) -> pd.DataFrame:
    return _by(inputs.run("penalty", "fedplt"), "rho").clip(upper=1.0)


def best_rho(inputs: Any) -> Measured:
    """The rho with the least mean rate on the grid; its interval is that of single data sets' minima."""
    table = _penalty(inputs)
    single = table.columns.to_numpy(dtype=float)[table.to_numpy().argmin(axis=1)]
    least = float(table.mean().idxmin())
    return Measured(
        np.full(len(table), least), note=f"single data sets: {np.quantile(single, 0.1):.2g} to "
        f"{np.quantile(single, 0.9):.2g} (deciles)"
    )  # fmt: skip


def slow_at_end(end: int, rate: float) -> Measure:
    """Whether rates at one end of the grid are above `rate`."""
    return lambda inputs: (_penalty(inputs).iloc[:, end] > rate).to_numpy()


def one_valley(inputs: Any) -> NDArray:
    """Whether the mean rate falls to its minimum and rises from it."""
    means = _penalty(inputs).mean().to_numpy()
    least = int(means.argmin())
    return np.concatenate([np.diff(means[: least + 1]) < 1e-3, np.diff(means[least:]) > -1e-3])


def _epochs(inputs: Any, solver: str = "gradient") -> pd.DataFrame:
    history = inputs.run("epochs", "fedplt")
    return _by(history[history["solver"] == solver], "steps").clip(upper=1.0)


def best_epochs(inputs: Any) -> Measured:
    """The N_e with the least mean rate."""
    table = _epochs(inputs)
    single = table.columns.to_numpy()[table.to_numpy().argmin(axis=1)]
    return Measured(
        np.full(len(table), float(table.mean().idxmin())),
        note=f"single data sets: {np.quantile(single, 0.1):.0f} to {np.quantile(single, 0.9):.0f} (deciles)",
    )


def _plateau(inputs: Any) -> pd.Series:
    table = _epochs(inputs)
    if table.columns.max() < 30:
        raise NotMeasurableError("too few local epochs to reach the plateau")
    return table[table.columns.max()]


def dips(depth: float) -> Measure:
    """Whether the minimum is so far below the plateau, by data set."""
    return lambda inputs: (_plateau(inputs) - _epochs(inputs).min(axis=1) >= depth).to_numpy()


def plateau(first: int, width: float) -> Measure:
    """Whether mean rates from N_e = `first` on stay within `width`."""

    def measure(inputs: Any) -> Measured:
        _plateau(inputs)
        table = _epochs(inputs)
        means = table.loc[:, table.columns >= first].mean()
        if len(means) < 2:
            raise NotMeasurableError("fewer than two numbers of epochs on the plateau")
        spread = float(means.max() - means.min())
        return Measured(np.array([spread <= width]), note=f"between {means.min():.4f} and {means.max():.4f}")

    return measure


def plateau_minus_exact(inputs: Any) -> NDArray:
    """Rate at the largest N_e less that of exact splitting, by data set."""
    return (_plateau(inputs) - _epochs(inputs, "exact")[0]).to_numpy()


def plateau_minus_zeta(inputs: Any) -> NDArray:
    """Rate at the largest N_e less zeta, by data set."""
    history = inputs.run("epochs", "fedplt")
    rho = inputs.settings["experiments"]["epochs"]["rho"]
    exact = history[history["solver"] == "exact"].set_index("replicate").sort_index()
    bound = [zeta(low, high, rho) for low, high in zip(exact["low"], exact["high"], strict=True)]
    return _plateau(inputs).to_numpy() - np.array(bound)


def inexact_is_faster(steps: int) -> Measure:
    """Rate of exact splitting less that with so many local steps, by data set."""

    def measure(inputs: Any) -> NDArray:
        table = _epochs(inputs)
        if steps not in table:
            raise NotMeasurableError(f"there is no run with {steps} local steps")
        return (_epochs(inputs, "exact")[0] - table[steps]).to_numpy()

    return measure


# --- Theory and privacy ---------------------------------------------------------------------------


def _exactness(inputs: Any, who: str, start: str) -> pd.DataFrame:
    history = inputs.run("exactness", "fedplt")
    return history[(history["participation"] == who) & (history["start"] == start)]


def exact(who: str, error: float) -> Measure:
    """Whether runs reach a relative error of `error`."""

    def measure(inputs: Any) -> Measured:
        errors = _exactness(inputs, who, "warm")["error"].to_numpy()
        return Measured(errors <= error, note=f"largest error left {errors.max():.2g}")

    return measure


def cold_start_fails(error: float) -> Measure:
    """Whether, at the least number of local steps, a cold start leaves more than `error`."""

    def measure(inputs: Any) -> NDArray:
        cold = _exactness(inputs, "all", "cold")
        return (cold[cold["steps"] == cold["steps"].min()]["error"] > error).to_numpy()

    return measure


def rate_below_norm(inputs: Any) -> Measured:
    """Whether rates are below |S| where that is below one."""
    history = inputs.run("epochs", "fedplt")
    rho = inputs.settings["experiments"]["epochs"]["rho"]
    chosen = history[history["solver"] == "gradient"]
    parts = [(part, norms(part, steps, rho)) for steps, part in chosen.groupby("steps")]
    rates = np.concatenate([part["rate"].to_numpy() for part, _ in parts])
    bound = np.concatenate([values for _, values in parts])
    proved = bound < 1
    if not proved.any():
        raise NotMeasurableError("the bound is void everywhere")
    return Measured(
        rates[proved] <= bound[proved],
        seeds=chosen["replicate"].nunique(),
        note=f"the bound holds anything in {100 * proved.mean():.0f} % of the cases",
    )


def errors_below_bound(inputs: Any) -> NDArray:
    """Whether mean distances over the data sets stay below the mean bounds, round by round."""
    history, made = inputs.run("bounds", "fedplt"), inputs.settings["experiments"]["bounds"]
    below = []
    for _, part in history.groupby(["steps", "probability", "tau"], sort=False):
        bound = np.mean(
            [
                bounded(one, made["rho"], made["features"] + 1, made["agents"])
                for _, one in part.groupby("replicate", sort=False)
            ],
            axis=0,
        )
        if np.isnan(bound).any():
            raise NotMeasurableError("the bound is void here")
        below.append(part.groupby("round")["distance"].mean().to_numpy() <= bound * (1 + 1e-9))
    return np.concatenate(below)


def accelerated_condition(steps: int, printed: bool) -> Measure:
    """Whether |S'| of Proposition 3 is below one, by data set."""

    def measure(inputs: Any) -> NDArray:
        history = inputs.run("epochs", "fedplt")
        rho = inputs.settings["experiments"]["epochs"]["rho"]
        return norms(history[history["solver"] == "exact"], steps, rho, accelerated=True, printed=printed) < 1

    return measure


def epsilon_saturates(inputs: Any) -> NDArray:
    """Whether the bound grows with K N_e and stays below its limit."""
    made = inputs.settings["experiments"]["privacy"]
    gamma = inputs.run("privacy", "fedplt")["gamma"].to_numpy().mean()
    # Up to where the exponential is lost in rounding.
    work = np.geomspace(1, 30.0 / (made["ridge"] * gamma), 60)
    common = {"sensitivity": made["clip"] / made["samples"], "low": made["ridge"], "deviation": 0.1}
    epsilon = proposition4(2.0, gamma=gamma, rounds=work, steps=1, **common)
    limit = 2.0 * common["sensitivity"] ** 2 / (common["low"] * common["deviation"] ** 2)
    return np.concatenate([np.diff(epsilon) > 0, epsilon < limit])


def error_rises_with_noise(inputs: Any) -> NDArray:
    """Whether the mean error grows from each level of noise to the next, for every number of epochs."""
    history = inputs.run("privacy", "fedplt")
    last = history[history["round"] == history["round"].max()]
    means = last.groupby(["steps", "tau"])["error"].mean().unstack()  # noqa: PD010
    return (np.diff(means.to_numpy(), axis=1) > 0).ravel()
