"""Order of two methods over the configurations of a design: who leads in how many, what turns it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from replifed.claims.curves import curves, rounds_to
from replifed.claims.pairs import pairs
from replifed.claims.units import UNITS

# Outcomes in a configuration: the first of two methods leads, the other does, they differ by less than the
# least effect, or a bound leaves it open.
ORDERS = ("before", "after", "tie", "open")
ROUNDS = "rounds"
_DECIDED = ("fewer", "more")
# Least difference of the shares of two options that is named.
_LEAST_SPREAD = 0.25


def orders(histories: Mapping[str, Mapping[str, pd.DataFrame]], targets: Sequence[float]) -> pd.DataFrame:
    """Compare the first method with each other method on one problem, one row per target and ledger.

    Parameters
    ----------
    histories : of all methods by name, the first method first, for each ledger (a way to count bits) by name.

    Returns
    -------
    DataFrame
        The columns of `pairs`, which tests with Holm's correction, and: ledger, where rounds, which are equal
        in all ledgers, count as the first; order, one of `ORDERS`; and decided, whether the verdict decides
        the order. If neither method reaches the target on more than half of its seeds, the last gaps are
        compared, and `used` is gap.
    """
    one_ledger = next(iter(histories.values()))
    first = next(iter(one_ledger))
    reaching = {name: _reached(history, targets) for name, history in one_ledger.items()}
    ends = {row["second"]: row for row in _of(first, pairs("", one_ledger, ()))}
    rows = []
    for number, (ledger, histories_of) in enumerate(histories.items()):
        orders_of = _of(first, pairs("", histories_of, targets))
        for name, use in ((ROUNDS, "round"), (ledger, "bits"))[number > 0 :]:
            for row in orders_of:
                if row["used"] == use:
                    reached = [reaching[row[of]][row["target"]] for of in ("first", "second")]
                    one = row if any(reached) else {**ends[row["second"]], "target": row["target"]}
                    found = {"order": _order(one, reached), "decided": one["verdict"] in _DECIDED}
                    rows.append({**one, "ledger": name, **found})
    return pd.DataFrame(rows)


def _of(first: str, compared: pd.DataFrame) -> list[dict[str, Any]]:
    return compared[compared["first"] == first].to_dict("records")


def _reached(history: pd.DataFrame, targets: Sequence[float]) -> dict[float, bool]:
    curve = curves(history, "gap")
    return {target: bool((rounds_to(curve, target).bounds == 0).mean() > 0.5) for target in targets}


def _order(row: Mapping[str, Any], reached: Sequence[bool]) -> str:
    """Order of a row; open where what is not known of runs that never got there could turn it."""
    difference, before = row["difference"], row["difference"] < 0
    # The second clause is for one run alone, which has no interval.
    unknown = np.isinf(row["ci_high" if before else "ci_low"]) or reached == [not before, before]
    if unknown and row["verdict"] not in _DECIDED:
        return "open"
    if abs(difference) < UNITS["decades"].effect:
        return "tie"
    return "before" if before else "after"


def counted(frame: pd.DataFrame) -> dict[str, Any]:
    """Numbers of configurations by order, and of decided ones; share before, with ties and open ones half."""
    number = {order: int((frame["order"] == order).sum()) for order in ORDERS}
    decided = {
        f"{order}_decided": int(((frame["order"] == order) & frame["decided"]).sum())
        for order in ("before", "after")
    }
    share = (number["before"] + (number["tie"] + number["open"]) / 2) / len(frame)
    return {"cells": len(frame), **number, **decided, "share": share}


def by_option(frame: pd.DataFrame, axes: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Counts of the configurations with each option of the axes, which are columns, one row per option."""
    rows = [
        {"axis": axis, "option": option, **counted(frame[frame[axis] == option])}
        for axis, options in axes.items()
        for option in options
    ]
    return pd.DataFrame(rows, columns=["axis", "option", *counted(frame)])


def turning(options: pd.DataFrame) -> str:
    """Axis between whose options decided configurations differ most, "" if by less than a quarter of all.

    Those that are not decided count as half, so that a tie, whose signs are chance, is turned by no axis.
    """
    if options.empty:
        return ""
    net = _net(options)
    spread = net.groupby(options["axis"], sort=False).agg(np.ptp) / 2
    return str(spread.idxmax()) if spread.max() >= _LEAST_SPREAD else ""


def _net(options: pd.DataFrame) -> pd.Series:
    return (options["before_decided"] - options["after_decided"]) / options["cells"]


def in_words(
    names: tuple[str, str], frame: pd.DataFrame, options: pd.DataFrame, axes: Mapping[str, str]
) -> str:
    """Outcome of two methods in a sentence; `axes` are the axes' names in words."""
    first, second = names
    one, axis = counted(frame), turning(options)
    text = (
        f"{first} before {second} in {one['before']} of {one['cells']} ({one['before_decided']} decided), "
        f"after it in {one['after']} ({one['after_decided']} decided), tied in {one['tie']}, "
        f"open in {one['open']}: {one['share']:.0%}, ties half; "
    )
    if not axis:
        return f"{text}no axis turns it"
    of = options[options["axis"] == axis]
    net = _net(of)
    turned = net.max() > 0 > net.min()
    ends = [of.loc[net.idxmax()], of.loc[net.idxmin()]]
    where = " and ".join(f"in {end['before']} of {end['cells']} at {end['option']}" for end in ends)
    return f"{text}{axes[axis]} {'turns it' if turned else 'matters most'}: before {where}"
