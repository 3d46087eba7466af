"""Measures of claims and figures on this paper's histories, with a line per data set and setting."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from replifed.algorithms import splitting_theory
from replifed.claims.claim import Measured, NotMeasurableError
from replifed.claims.curves import only
from replifed.claims.quantities import quantity
from replifed.claims.samples import Sample
from replifed.intervals import mean_interval
from replifed.papers.fedplt.renyi import advanced_composition, best_epsilon, composed_gaussian, proposition4

if TYPE_CHECKING:
    from replifed.papers.fedplt import settings as of

# Rates that are nearer to each other are one, of which the last digits are rounding.
_SAME = 1e-6

# --- Bounds of Propositions 1 to 3 and Corollary 1 --------------------------------------------------


def norms(history: pd.DataFrame, steps: ArrayLike, rho: ArrayLike, **form: bool) -> NDArray:
    """|S| (Proposition 1) or |S'| (Proposition 3) for each line of a history with columns low and high.

    See `splitting_theory.contraction` for the `form`: whether accelerated, and whether as printed.
    """
    lines = np.broadcast(history["mu"], history["L"], rho, steps)
    return np.array(
        [
            splitting_theory.norm(splitting_theory.contraction(mu, L, each_rho, int(N_e), **form))
            for mu, L, each_rho, N_e in lines
        ]
    )


def zetas(history: pd.DataFrame, rho: ArrayLike) -> NDArray:
    """zeta for each line of a history with columns low and high."""
    lines = np.broadcast(history["mu"], history["L"], rho)
    return np.array([splitting_theory.zeta(*line) for line in lines])


def error_bounds(history: pd.DataFrame, made: of.Bounds) -> pd.Series:
    """Bound on the mean distance at each round; NaN where |S| is not below one.

    Parameters
    ----------
    history : DataFrame
        Columns round, distance, steps, probability, tau (a standard deviation), replicate, mu, L.
    made : the experiment's settings
    """
    curves = history.groupby(["steps", "probability", "tau", "replicate"], sort=False)
    return pd.concat([_error_bound(curve, made) for _, curve in curves])


def _error_bound(curve: pd.DataFrame, made: of.Bounds) -> pd.Series:
    first = curve.sort_values("round").iloc[0]
    start, steps, p = first["distance"], int(first["steps"]), first["probability"]
    constants = first["mu"], first["L"], made.rho
    S = splitting_theory.norm(splitting_theory.contraction(*constants, steps, printed=True))
    if S >= 1:
        return pd.Series(np.nan, curve.index)
    gamma, chi = splitting_theory.best_step(*constants), splitting_theory.chi(*constants)
    dim, agents = made.features + 1, made.agents
    nu = splitting_theory.noise_level(first["tau"], dim, agents, gamma, chi, steps)
    bounds = [splitting_theory.error_bound(int(k), S, start, nu, least=p, most=p) for k in curve["round"]]
    return pd.Series(bounds, curve.index)


# --- Quantities of claims ---------------------------------------------------------------------------


Waiting = tuple[tuple[str, ...], tuple[str, ...]]
"""Variables of an agent and of the coordinator that wait for a reply, as in `paper.WAITING`."""


def kept(each: int, shared: int, waiting: Waiting) -> tuple[int, int]:
    """Models that an agent and the coordinator keep between communications: state, and what is `waiting`."""
    agent, server = waiting
    return each + len(agent), shared + len(server)


@quantity
def stores(history: pd.DataFrame, each: int, shared: int, waiting: Waiting) -> Measured:
    """True if a method keeps the printed number of models between communications."""
    (state,) = history.itertuples()
    note = f"from round to round {state.each} an agent and {state.shared} at the server"
    if names := ", ".join(itertools.chain(*waiting)):
        note += f", in a round until the reply also {names}"
    return Measured(np.array([kept(state.each, state.shared, waiting) == (each, shared)]), note=note)


@quantity
def random_epochs(history: pd.DataFrame, random: bool) -> Measured:
    """True if the number of gradients of an agent differs between rounds, or, not `random`, does not."""
    (counted,) = history.itertuples()
    note = f"counted: {counted.fewest} to {counted.most} gradients in a round"
    return Measured(np.array([(counted.most > counted.fewest) == random]), note=note)


@quantity
def rates(
    history: pd.DataFrame,
    solver: str,
    who: str,
    reading: str,
    clipped: bool = False,
) -> Sample:
    """Rates by data set; one, as a bound unless clipped, if a run diverged."""
    everyone = history["cohort"] == history["cohort"].max()
    asked = (history["solver"] == solver) & (history["reading"] == reading) & (everyone == (who == "all"))
    cell = history[asked].sort_values("replicate")
    if cell.empty:
        method = history["method"].iloc[0]
        raise NotMeasurableError(f"there is no run of {method} with {solver}, {who}, {reading}")
    values = cell["rate"].clip(upper=1.0).to_numpy()
    bounds = ((values >= 1.0) & (not clipped)).astype(int)
    return Sample(values, bounds, cell["replicate"].to_numpy())


@quantity
def noting_lost(sample: Sample) -> Measured:
    """Sample with a note on runs that do not converge."""
    lost = sample.bounds > 0
    return sample.measured(note=f"{lost.sum()} of {len(lost)} runs do not converge" if lost.any() else "")


@quantity
def lines(history: pd.DataFrame, value: str, **where: Any) -> Sample:
    """A column of a history, one case a line."""
    chosen = only(history, **where)
    return Sample(chosen[value].to_numpy(), repetitions=chosen["replicate"].nunique())


@quantity
def by_setting(history: pd.DataFrame, setting: str, value: str = "rate", **where: Any) -> pd.DataFrame:
    """One line per data set, a column for each value of `setting`; rates of runs that diverged are one."""
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
def best_of_means(table: pd.DataFrame) -> Sample:
    """Values at the setting with the least mean over the data sets."""
    return column(table, int(table.mean().to_numpy().argmin()))


@quantity
def below_ends(table: pd.DataFrame) -> Measured:
    """True of either end that is above the least mean by more than the interval of their difference."""
    least = int(table.mean().to_numpy().argmin())
    gaps = [(column(table, end) - column(table, least)).values for end in (0, -1)]
    low = [mean_interval(gap)[1] for gap in gaps]
    note = f"least at {table.columns[least]:g}; above it "
    note += " and ".join(f"{gap.mean():.4f}" for gap in gaps) + " at the ends"
    return Measured(np.array(low) > _SAME, seeds=len(table), note=note)


@quantity
def mean_change(table: pd.DataFrame) -> Sample:
    """Change of the mean over data sets from each setting to the next."""
    return Sample(np.diff(table.mean().to_numpy()), repetitions=len(table))


@quantity
def best_setting(table: pd.DataFrame, form: str) -> Measured:
    """The setting with the least value on each data set, as coarse as the settings' distances are.

    Whole numbers are all there are. A note says which setting has the least mean.
    """
    settings = table.columns.to_numpy()
    best = table.to_numpy().argmin(axis=1)
    whole = np.issubdtype(settings.dtype, np.integer)
    above = np.zeros(len(best)) if whole else np.diff(settings, append=np.inf)[best]
    note = f"least mean at {table.mean().idxmin():{form}}; single data sets have theirs from "
    note += f"{settings[best].min():{form}} to {settings[best].max():{form}}"
    return Sample(settings[best].astype(float), seeds=table.index.to_numpy(), above=above).measured(note=note)


def from_line(rates: ArrayLike) -> NDArray:
    """Rates (..., N) with 1 to N active agents less 1 - k (1 - r) / N, with r the last one."""
    rates = np.asarray(rates, dtype=float)
    share = np.arange(1, rates.shape[-1] + 1) / rates.shape[-1]
    return rates - (1 - share * (1 - rates[..., -1:]))


def off_line(rates: ArrayLike) -> float:
    """Largest distance of rates (N,) from the line of `from_line`."""
    return float(np.abs(from_line(rates)).max())


@quantity
def off_line_of(by_active: pd.DataFrame) -> Measured:
    """Distance from the line of `from_line` with as many agents as have the mean rate farthest from it."""
    if list(by_active.columns) != list(range(1, len(by_active.columns) + 1)):
        raise NotMeasurableError("not all numbers of agents were run")
    off = from_line(by_active)
    means = off.mean(axis=0)
    farthest = int(np.abs(means).argmax())
    note = f"farthest with {farthest + 1} agents"
    values = np.copysign(1.0, means[farthest]) * off[:, farthest]
    return Measured(values, names=by_active.index.to_numpy(), of_mean=True, note=note)


@quantity
def per_noise(errors: pd.DataFrame, tau: float) -> Sample:
    """Square of the error beyond that at the lowest level of noise, per unit of the level, by data set."""
    floor = errors.iloc[:, 0].to_numpy()
    return at(errors, tau, f"noise level {tau:g}").map(lambda values: (values**2 - floor**2) / tau)


@quantity
def joint(published: Sequence[float], *cells: Sample) -> Measured:
    """Whether published rates are together an ordinary draw of one more data set, at 5 %.

    Hotelling's test of a further draw against the cloud (n, p) of ours: its squared Mahalanobis distance D^2
    gives n / (n + 1) (n - p) / (p (n - 1)) D^2, which follows F with p and n - p degrees of freedom.
    """
    from scipy.special import fdtrc

    cloud = np.stack([cell.values for cell in cells], axis=1)
    (n, p), off, spread = cloud.shape, np.array(published) - cloud.mean(axis=0), cloud.std(axis=0, ddof=1)
    if n <= p + 1:
        raise NotMeasurableError("too few data sets for a joint test")
    if spread.min() < _SAME:
        raise NotMeasurableError("a rate is the same on all data sets, which a joint test cannot weigh")
    # In units of the spreads, and not by way of the covariance, whose condition number is the square.
    _, sizes, axes = np.linalg.svd((cloud - cloud.mean(axis=0)) / spread, full_matrices=False)
    if sizes[-1] < _SAME * sizes[0]:
        raise NotMeasurableError("two rates move as one over the data sets, which a joint test cannot weigh")
    distance = (n - 1) * float(np.square(axes @ (off / spread) / sizes).sum())
    chance = float(fdtrc(p, n - p, n / (n + 1) * (n - p) / (p * (n - 1)) * distance))
    far = np.abs(off) / spread
    note = f"squared distance {distance:.3g} of {p} rates, p = {chance:.2g}; the furthest rate is "
    note += f"{far.max():.2g} standard deviations off; of each rate a draw within "
    note += " or ".join(f"{1.96 * one:.2g}" for one in spread) + " could not be told"
    return Measured(np.array([chance > 0.05]), seeds=n, note=note)


@quantity
def positive_means(*differences: Sample) -> Measured:
    """Whether each of several mean differences is above zero."""
    means = np.array([one.mean for one in differences])
    return Measured(means > 0, seeds=len(differences[0].values), note=f"{np.sum(means > 0)} of {len(means)}")


@quantity
def one_valley(table: pd.DataFrame) -> Sample:
    """True if the mean falls to its minimum and rises from it."""
    change, least = np.diff(table.mean().to_numpy()), int(table.mean().to_numpy().argmin())
    holds = np.concatenate([change[:least] < 1e-3, change[least:] > -1e-3])
    return Sample(holds, repetitions=len(table))


@quantity
def plateau(by_steps: pd.DataFrame) -> Sample:
    """Rates with the largest number of local epochs."""
    if by_steps.columns.max() < 30:
        raise NotMeasurableError("too few local epochs to reach the plateau")
    return column(by_steps, -1)


@quantity
def constant(by_steps: pd.DataFrame, first: int, width: float) -> Measured:
    """True if mean rates from N_e = `first` on stay within `width`."""
    plateau(by_steps)
    means = by_steps.loc[:, by_steps.columns >= first].mean()
    if len(means) < 2:
        raise NotMeasurableError("fewer than two numbers of epochs on the plateau")
    holds = np.array([means.max() - means.min() <= width])
    note = f"between {means.min():.4f} and {means.max():.4f}"
    return Measured(holds, seeds=len(by_steps), note=note)


@quantity
def zeta_of(epochs: pd.DataFrame, chosen: of.LocalEpochs) -> Sample:
    """Zeta of each data set."""
    exact = only(epochs, solver="exact").sort_values("replicate")
    return Sample(zetas(exact, chosen.rho), seeds=exact["replicate"].to_numpy())


@quantity
def cold_errors_of_few_steps(history: pd.DataFrame) -> Sample:
    """Errors that remain after a cold start, with the smallest number of local steps."""
    cold = only(history, participation="all", start="cold")
    return lines(cold, "error", steps=cold["steps"].min())


@quantity
def round_below_norm(splitting: pd.DataFrame) -> Measured:
    """True if a round with local steps brings states closer by |S|, as printed, where that is below one."""
    ran = splitting[splitting["steps"] > 0]
    return _where_proved(ran, "norm", norms(ran, ran["steps"], ran["rho"], printed=True))


@quantity
def worst_below_norm(worst: pd.DataFrame, made: of.Worst, solver: str) -> Measured:
    """True if a round from the worst direction brings the state closer by |S| or |S'|, as printed."""
    ran = only(worst, solver=solver)
    return _where_proved(ran, "factor", printed_norms(ran, made.rho, solver))


def printed_norms(history: pd.DataFrame, rho: float, solver: str) -> NDArray:
    """|S| of gradient steps, |S'| of accelerated ones, as printed, for each line of a history."""
    return norms(history, history["steps"], rho, accelerated=solver == "accelerated", printed=True)


def _where_proved(ran: pd.DataFrame, value: str, bound: NDArray) -> Measured:
    proved = bound < 1
    if not proved.any():
        raise NotMeasurableError("the bound is void everywhere")
    room = (bound - ran[value].to_numpy())[proved]
    note = f"below one in {100 * proved.mean():.0f} % of the cases; there the bound less what is measured "
    note += f"is {room.min():.2g} to {room.max():.2g}"
    return Measured(room >= 0, seeds=ran["replicate"].nunique(), note=note)


@quantity
def steady(history: pd.DataFrame, solver: str, width: float) -> Sample:
    """True if mean errors of minibatches over the last rounds are those of the rounds before, by `width`."""
    ran = only(history, variant="minibatches", solver=solver)
    means = ran.groupby("batch")[["before", "error"]].mean()
    change = (means["error"] / means["before"] - 1).to_numpy()
    return Sample(np.abs(change) <= width, repetitions=ran["replicate"].nunique())


@quantity
def apart(table: pd.DataFrame, exact: pd.DataFrame, width: float) -> Measured:
    """True if mean rates are those of exact splitting, by `width`, at every rho that both have."""
    same = table.index.intersection(exact.index)
    far = [abs(at(table.loc[same], rho, f"rho {rho:g}").mean - exact.loc[same, rho].mean()) for rho in exact]
    note = f"{max(far):.3f} apart at most, at rho {exact.columns[np.argmax(far)]:.2g}"
    return Measured(np.array(far) <= width, seeds=len(same), note=note)


@quantity
def left(history: pd.DataFrame) -> Sample:
    """Share of its distance to the fixed point that (x, z) keeps to the last round, with all agents."""
    ran = only(history, probability=1, tau=0).sort_values("round")
    distance = ran.groupby("replicate")["distance"].agg(["first", "last"])
    return Sample((distance["last"] / distance["first"]).to_numpy(), seeds=distance.index.to_numpy())


@quantity
def rate_where_proved(splitting: pd.DataFrame) -> Sample:
    """Spectral radius of a round with local steps where |S|, as printed, is below one."""
    ran = splitting[splitting["steps"] > 0]
    ran = ran[norms(ran, ran["steps"], ran["rho"], printed=True) < 1]
    if ran.empty:
        raise NotMeasurableError("|S| is below one nowhere")
    return Sample(ran["rate"].to_numpy(), repetitions=ran["replicate"].nunique())


@quantity
def error_rises_with_noise(history: pd.DataFrame) -> Sample:
    """True if the mean error grows from each level of noise to the next, for every number of epochs."""
    end = history[history["round"] == history["round"].max()]
    means = end.groupby(["steps", "tau"])["error"].mean().unstack()  # noqa: PD010
    rises = (np.diff(means.to_numpy(), axis=1) > 0).ravel()
    return Sample(rises, repetitions=history["replicate"].nunique())


@quantity
def tighter(history: pd.DataFrame, made: of.Privacy, rival: str) -> Measured:
    """True if Proposition 4's epsilon is below that of composing all noisy steps, for every noise and N_e.

    The rival composes them in Renyi terms, or by the advanced composition of (epsilon, delta)-privacy; half
    of delta is then for the steps' own.
    """
    lines = history[history["round"] == history["round"].max()]
    common = {
        "sensitivity": made.clip / made.samples,
        "deviation": lines["tau"],
        "gamma": lines["gamma"],
    }
    count, delta = lines["steps"] * lines["round"], made.delta
    all_of_it = {"rounds": lines["round"], "steps": lines["steps"], **common}
    ours = best_epsilon(proposition4(1.0, mu=made.ridge, **all_of_it), delta)
    if rival == "advanced":
        each = best_epsilon(composed_gaussian(1.0, rounds=1, steps=1, **common), delta / 2 / count)
        other = advanced_composition(each, count, delta / 2)
    else:
        other = best_epsilon(composed_gaussian(1.0, **all_of_it), delta)
    note = f"{(ours / other).min():.2g} to {(ours / other).max():.2g} times the other one's"
    return Measured(ours < other, seeds=lines["replicate"].nunique(), note=note)
