"""Who is ahead at how many (K, M), in the authors' numbers and on fresh seeds, and the speed-up in M."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pandas as pd

from replifed.claims.claim import Measured, NotMeasurableError
from replifed.claims.quantities import quantity
from replifed.papers.fedac import measures

if TYPE_CHECKING:
    from replifed.papers.fedac import settings as of

# "Ahead" is at more than half of the points; exactly half is not.
MOST = 0.5 + 1e-9
# How far an exponent may be from -1, a linear speed-up.
NEAR_LINEAR = 0.1
Where = Callable[[pd.DataFrame], pd.Series]

every_point = quantity(measures.every_point)
fresh_lines = quantity(measures.fresh_lines)
half_the_rounds = quantity(measures.half_the_rounds)


def everywhere(cases: pd.DataFrame) -> pd.Series:
    """All (K, M)."""
    return cases["K"] > 0


def local(cases: pd.DataFrame) -> pd.Series:
    """With several local steps: at K = 1 FedAc-I, naive FedAc and MB-AC-SGD are one method."""
    return cases["K"] > 1


@quantity
def ahead(
    points: pd.DataFrame,
    method: str,
    other: str,
    where: Where = everywhere,
    *,
    K: int | None = None,
    fewer: int = 1,
    run: bool = False,
    more_than: int = 0,
) -> Measured:
    """True at each (K, M) at which a method's point is below the other's.

    Parameters
    ----------
    points : of `measures.every_point`.
    where : maps the (K, M) to a mask of those that count.
    K : the one that counts; all by default.
    fewer : factor by which the method has fewer rounds than the other.
    run : of points that were run alone.
    more_than : of points with more workers than these alone.
    """
    points = points[points["method"].isin([method, other]) & (points["M"] > more_than)]
    points = points[points["run"]] if run else points
    table = points.set_index(["K", "M", "method"])["best_loss"].unstack()  # noqa: PD010
    first = table[method].rename(index=lambda K: K / fewer, level="K")
    table = pd.concat({"first": first, "second": table[other]}, axis=1).dropna()
    cases = table.index.to_frame(index=False)
    table = table[(where(cases) & (True if K is None else cases["K"] == K)).to_numpy()]
    if table.empty:
        raise NotMeasurableError("these numbers of workers and local steps were not run")
    below = table["first"] < table["second"]
    by_K = below.groupby("K").agg(["sum", "count"])
    parts = ", ".join(f"{K:.0f}: {row['sum']} of {row['count']}" for K, row in by_K.iterrows())
    note = f"ahead at {below.sum()} of {len(below)}; by K {parts}"
    if not run:
        counted = points.set_index(["K", "M"])["run"]
        counted = counted[counted.index.isin(table.index)] if fewer == 1 else counted
        note += f"; {counted.sum()} of {len(counted)} points are our runs', the others the authors' numbers"
    return Measured(below.to_numpy(), seeds=1, note=note)


@quantity
def seeds_of(runs: pd.DataFrame) -> int:
    """Number of seeds."""
    return runs["replicate"].nunique()


@quantity
def ahead_on_fresh_seeds(lines: pd.DataFrame, seeds: int, *, behind: bool = False) -> Measured:
    """True at each (K, M) at which FedAc-I is significantly below FedAvg, after Holm over all of them.

    If `behind`, at which it is significantly above.
    """
    lines = lines[lines["method"] == "fedac_1"]
    if lines.empty:
        raise NotMeasurableError("these numbers of local steps were not run")
    significant = lines["p_holm"] <= 0.05
    below, above = significant & (lines["mean"] < 0), significant & (lines["mean"] > 0)
    note = f"of {len(lines)} (K, M) below at {below.sum()}, above at {above.sum()}, "
    note += f"not told at {(~significant).sum()}"
    return Measured((above if behind else below).to_numpy(), seeds=seeds, note=note)


@quantity
def linear(
    lines: pd.DataFrame, seeds: int, chosen: of.Fresh, method: str, power: float, factor: float = 1.0
) -> Measured:
    """True at each K with `factor` M**`power` rounds, M the largest, where the gap falls as 1 / M.

    That is where the exponent of the gap against M is -1 to a tenth. It is not known where the exponent's
    interval has an end of this range inside.
    """
    needed = factor * lines["M"].max() ** power
    lines = lines[(lines["method"] == method) & (chosen.iterations / lines["K"] >= needed)]
    if lines.empty:
        raise NotMeasurableError("there are as many rounds at no K")
    if lines["M"].nunique() < 2:
        raise NotMeasurableError("one number of workers was run")
    found = lines.groupby("K")[["exponent", "exponent_low", "exponent_high"]].first()
    exponent, low, high = (found[name] + 1 for name in found)
    inside = (low >= -NEAR_LINEAR) & (high <= NEAR_LINEAR)
    outside = (high < -NEAR_LINEAR) | (low > NEAR_LINEAR)
    note = f"{needed:.0f} rounds; exponents at K = "
    note += ", ".join(
        f"{K}: {row.iloc[0]:.2f} [{row.iloc[1]:.2f}, {row.iloc[2]:.2f}]" for K, row in found.iterrows()
    )
    bounds = (~(inside | outside)).astype(int).to_numpy()
    return Measured((exponent.abs() <= NEAR_LINEAR).to_numpy(), bounds=bounds, seeds=seeds, note=note)
