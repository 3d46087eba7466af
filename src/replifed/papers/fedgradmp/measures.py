"""What this paper's claims measure that others' do not."""

from __future__ import annotations

import numpy as np
import pandas as pd

from replifed.claims.curves import Curves, at, level, round_at
from replifed.claims.quantities import Quantity, quantity
from replifed.claims.samples import Sample, paired
from replifed.claims.verdicts import Measured, NotMeasurableError

# Relative errors below are rounding, which is another one on each processor.
MACHINE = 1e-14


@quantity
def logs(one: Curves) -> Curves:
    """Curves of log10 of the values, of machine precision at least.

    A diverged seed has what its last error was, at least one.
    """
    values = np.log10(np.maximum(one.values, MACHINE))
    for row in values:
        lost = ~np.isfinite(row)
        if lost.any():
            row[lost] = max(np.max(row[~lost], initial=0.0), 0.0)
    return one._replace(values=values)


@quantity
def tail(one: Curves) -> Sample:
    """Geometric mean of the last quarter of each curve, as a log10."""
    return level(logs(one), 0.25)


def decades(other: Quantity, best: Quantity) -> Quantity:
    """Difference of decimal logarithms, with a note on what they are of."""
    return (other - best).note("{0.antilog:.3g} against {1.antilog:.3g}", other, best)


@quantity
def end_floor(one: Curves) -> Sample:
    """Twice what a curve ends at, relative to its start; a half where the curve has not fallen by half."""
    return (2 * tail(one).map(lambda ends: 10**ends) / one.sample(one.values[:, 0])).map(
        lambda share: np.minimum(share, 0.5)
    )


@quantity
def at_work_of(ours: Curves, spent: Curves, theirs: Curves, spent_by_them: Curves, rounds: int) -> Measured:
    """Decades by which `ours` is below `theirs` at the work that it has used after some rounds."""
    ours, theirs = paired(logs(ours), logs(theirs))
    work = at(spent, rounds).values
    mine = at(ours, round_at(spent, rounds))
    # A run that diverged stopped counting; its total is what it would have been.
    each = np.nanmax(np.diff(spent_by_them.values, axis=1), axis=1)
    end = len(theirs.rounds) - 1
    index = np.minimum((work // each).astype(int), end)
    others = theirs.sample(theirs.values[np.arange(len(index)), index])
    reach = min(int(work.mean() // each.mean()), end)
    note = f"their round {reach}; {others.antilog:.3g} against {mine.antilog:.3g}"
    return (others - mine).measured(note=note)


@quantity
def at_seconds_of(frame: pd.DataFrame, best: str, other: str, rounds: int) -> Measured:
    """Whether `best` is below `other` at the seconds that it has used after `rounds` rounds."""
    one, two = (frame[frame["series"] == name].sort_values("round") for name in (best, other))
    if one.empty or two.empty:
        raise NotMeasurableError("one of the two was not timed")
    mine = one[one["round"] <= rounds].iloc[-1]
    theirs = two[two["seconds"] <= mine["seconds"]].iloc[-1]
    note = f"{theirs['mean']:.3g} against {mine['mean']:.3g} after {mine['seconds']:.2g} s"
    below = np.array([mine["mean"] < theirs["mean"]])
    return Measured(below, shown=float(theirs["mean"] / mine["mean"]), note=note)


@quantity
def at_bits_of(spent: Curves, theirs: Curves, spent_by_them: Curves) -> Sample:
    """Values of `theirs` at the bits that have been `spent` by the end."""
    total = spent.values[:, -1]
    if (spent_by_them.values[:, -1] < total).any():
        raise NotMeasurableError("the other method's run ends with fewer bits")
    rows = zip(total, spent_by_them.values, theirs.values, strict=True)
    return theirs.sample(np.array([np.interp(one, bits, row) for one, bits, row in rows]))


@quantity
def sums(one: Curves, two: Curves) -> Curves:
    """Curves of the sums."""
    return one._replace(values=one.values + two.values)


@quantity
def at_most_nonzeros(history: pd.DataFrame, tau: int) -> Measured:
    """Whether no model of the server has more than tau non-zeros."""
    return Measured((history["nonzeros"] <= tau).to_numpy(), seeds=history["replicate"].nunique())


@quantity
def dense_at_end(nonzeros: Curves, tau: int) -> Measured:
    """Whether the final model has more than tau non-zeros, on every seed."""
    last = nonzeros.values[:, -1]
    note = f"non-zeros: {last.min():g} to {last.max():g}"
    return Measured(~np.isfinite(last) | (last > tau), note=note)


@quantity
def alike(most: float, *tails: Sample) -> Measured:
    """Whether mean residuals differ by no more than a factor."""
    levels = [one.antilog for one in tails]
    note = "residuals " + ", ".join(f"{one:.3g}" for one in levels)
    return Measured(np.array([max(levels) <= most * min(levels)]), seeds=len(tails[0].values), note=note)


@quantity
def recovered(history: pd.DataFrame, within: float) -> Measured:
    """Whether the frame's PSNR comes within some decibels of the best approximation's."""
    history = history[history["part"] == "curve"]
    last = history[history["round"] == history["round"].max()]
    psnr, best = last["psnr"].to_numpy(), last["best_psnr"].to_numpy()
    note = f"PSNR {psnr.mean():.2f} dB, best {best.mean():.2f} dB"
    return Measured(psnr >= best - within, shown=float(psnr.mean()), note=note)


def ended(ends: Sample) -> str:
    """How many runs diverge, and where others end."""
    values = ends.values
    finite = values[np.isfinite(values)]
    others = f"; others end between {finite.min():.3g} and {finite.max():.3g}" if finite.size else ""
    return f"{len(values) - len(finite)} of {len(values)} runs diverge{others}"
