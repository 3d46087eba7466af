"""Quantities that claims measure on this paper's histories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.claims.claim import Measured, NotMeasurableError
from replifed.claims.quantities import quantity
from replifed.claims.samples import UNDECIDED, Sample
from replifed.operators.bit_allocation import (
    allocate_exactly,
    expected_error,
    interval_squared,
    vectors_in_use,
)
from replifed.papers.qshed.experiments import example_bits, nearest_spectrum
from replifed.papers.qshed.paper import PRINTED_BITS, PRINTED_VALUES

if TYPE_CHECKING:
    from replifed.papers.qshed import settings as of


@quantity
def largest(*savings: Sample) -> Sample:
    """Each seed's largest saving, where all seeds are known and Q-SHED got there."""
    known = [one for one in savings if not (one.bounds == UNDECIDED).any() and not (one.bounds < 0).any()]
    if not known:
        raise NotMeasurableError("Q-SHED did not reach the thresholds")
    values = np.stack([one.values for one in known])
    best = values.argmax(axis=0), np.arange(values.shape[1])
    bounds, below, above = (
        np.stack([getattr(one, name) for one in known])[best] for name in ("bounds", "below", "above")
    )
    return Sample(values[best], bounds, known[0].seeds, below=below, above=above)


@quantity
def bits_a_round(history: pd.DataFrame) -> Sample:
    """Bits that all clients send, by seed."""
    last = history.sort_values("round").groupby("replicate").last()
    return Sample((last["bits_up"] / last["round"]).to_numpy(), seeds=last.index.to_numpy())


def tails(n: int, l2: float) -> dict[str, np.ndarray]:
    """Ways for eigenvalues to go on from the printed ones to the n-th, of which the paper prints none."""
    first, last, k = PRINTED_VALUES[0], PRINTED_VALUES[-1], len(PRINTED_VALUES)
    i = np.arange(k + 1, n + 1)
    return {
        "zero": np.full(len(i), l2),
        "geometric": np.maximum(last * (last / first) ** ((i - k) / (k - 1)), l2),
        "1/i": last * k / i,
        "flat": np.full(len(i), last),
    }


@quantity
def bits_off_printed(chosen: of.Experiment) -> Measured:
    """Sum of the differences to the printed bits, for each tail of the printed spectrum."""
    assert chosen.components is not None
    n = chosen.components + chosen.intercept
    off, notes = [], []
    for name, tail in tails(n, chosen.l2).items():
        bits = example_bits(np.array([*PRINTED_VALUES, *tail]), chosen.b_max)
        printed = np.pad(PRINTED_BITS, (0, n - len(PRINTED_BITS)))
        off.append(float(np.abs(bits - printed).sum()))
        notes.append(f"{name} {' '.join(map(str, bits[bits > 0]))}")
    return Measured(np.array(off), alternatives=True, seeds=1, note=f"bits by tail: {', '.join(notes)}")


@quantity
def spectrum_off_printed(history: pd.DataFrame) -> Measured:
    """Largest difference of a printed eigenvalue to that of the nearest spectrum."""
    _, distances = nearest_spectrum(history)
    # One number without a spread; given twice so that its interval is a point.
    note = f"the nearest of {len(distances)} spectra; {(distances <= 0.005).sum()} round to the printed one"
    return Measured(np.full(2, distances.min()), seeds=1, note=note)


def by_vector(history: pd.DataFrame, column: str) -> NDArray:
    """A column of the bits' history, a line for each repetition, device and round, in this order."""
    history = history.sort_values(["replicate", "device", "round", "vector"])
    return history[column].to_numpy().reshape(-1, history["vector"].max())


@quantity
def bits_decrease(history: pd.DataFrame, *, added: bool = False) -> Measured:
    """True for each device and round in which no vector has more bits than the one before it.

    Of all bits that it has been sent, or of those that the round `added`.
    """
    bits = by_vector(history, "bits")
    if added:
        stays = ~by_vector(history, "renewed")[1:]
        bits = np.vstack([bits[:1], bits[1:] - np.where(stays, bits[:-1], 0)])
    return Measured(np.all(np.diff(bits, axis=1) <= 0, axis=1), seeds=history["replicate"].nunique())


@quantity
def cost_of_the_heuristic(history: pd.DataFrame, chosen: of.Experiment) -> Sample:
    """Expected error, eq. (14), of the bits of all new Hessians, as a multiple of that with the exact q.

    The mean over each repetition's Hessians.
    """
    new = history[history["renewed"]]
    values, bits = by_vector(new, "eigenvalue"), by_vector(new, "bits")
    none, budget = np.zeros_like(bits), by_vector(new, "budget")[:, 0]
    exact = allocate_exactly(values, none[:, 0], none, budget, chosen.b_max)
    ours, best = (expected_error(values, vectors_in_use(one), interval_squared(one)) for one in (bits, exact))
    seeds = by_vector(new, "replicate")[:, 0]
    means = pd.Series(ours / best).groupby(seeds).mean()
    return Sample(means.to_numpy(), seeds=means.index.to_numpy())


@quantity
def converged(history: pd.DataFrame, gap: float) -> Sample:
    """True of seeds whose run comes below a gap."""
    return Sample(history.groupby("replicate")["gap"].min().to_numpy() <= gap)


@quantity
def speed_up(history: pd.DataFrame, start: int, end: int) -> Sample:
    """Decades a round in the second half of rounds `start` to `end` - 1, less those in the first half."""
    middle = (start - 1 + end) // 2
    gaps = history.set_index(["round", "replicate"])["gap"]
    if any(len(gaps.get(t, ())) < history["replicate"].nunique() for t in (start - 1, end - 1)):
        raise NotMeasurableError(f"not all runs have {end - 1} rounds")
    before, between, after = (np.log10(gaps[t].sort_index()) for t in (start - 1, middle, end - 1))
    rates = [(before - between) / (middle - start + 1), (between - after) / (end - 1 - middle)]
    return Sample((rates[1] - rates[0]).to_numpy(), seeds=before.index.to_numpy())


@quantity
def hessian_error(history: pd.DataFrame, place: str, case: str, names: Sequence[str]) -> Sample:
    """Error of quantised Hessians, the mean over devices, by the allocation that is best in the mean."""
    chosen = history[(history["place"] == place) & (history["case"] == case)]
    table = chosen.groupby(["allocation", "replicate"])["error"].mean().unstack("allocation")[list(names)]  # noqa: PD010
    best = table[table.mean().idxmin()]
    return Sample(best.to_numpy(), seeds=best.index.to_numpy())
