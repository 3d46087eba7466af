"""What the claims measure, on histories of `experiments.run`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.papers.qshed.bit_allocation import PRINTED_BITS, example_bits, nearest_spectrum
from replifed.papers.qshed.curves import Reached, chosen, reached
from replifed.papers.verdicts import Measured, NotMeasurableError

Measure = Callable[[Any], Measured]

THRESHOLDS = (1e-4, 1e-6, 1e-8)
VARIANT = {"fednl": "rank1_ls"}


def curve(inputs: Any, experiment: str, method: str, channel: str, case: str = "default"):
    """All seeds' runs of one method; of FedNL the strongest variant of rank 1."""
    history = inputs.run(experiment, method)
    return chosen(history, variant=VARIANT.get(method, ""), channel=channel, case=case)


def _rounds(inputs: Any, experiment: str, method: str, channel: str, threshold: float, case: str) -> Reached:
    history = inputs.run(experiment, method)
    # A case that changes nothing for a method was not run for it.
    case = case if (history["case"] == case).any() else "default"
    return reached(curve(inputs, experiment, method, channel, case), threshold)


def _savings(
    inputs: Any, experiment: str, others: Sequence[str], channel: str, threshold: float, case: str
) -> tuple[NDArray, NDArray]:
    """1 - T_Q / T for the best of the other methods, seed by seed, and which way it is only a bound."""
    mine = _rounds(inputs, experiment, "qshed", channel, threshold, case)
    theirs = [_rounds(inputs, experiment, method, channel, threshold, case) for method in others]
    best = np.min([one.rounds + np.where(one.censored, 0.5, 0.0) for one in theirs], axis=0)
    late = np.all([one.censored for one in theirs], axis=0)
    bounds = late.astype(int) - mine.censored.astype(int)
    both = late & mine.censored
    if both.all():
        raise NotMeasurableError("no seed of either method reached the threshold")
    kept = ~both
    return (1.0 - mine.rounds / np.floor(best))[kept], bounds[kept]


def saves_at_least(
    experiment: str,
    others: Sequence[str],
    channel: str,
    threshold: float,
    share: float,
    case: str = "default",
) -> Measure:
    """Q-SHED's saving of rounds, less `share`."""

    def measure(inputs: Any) -> Measured:
        saved, bounds = _savings(inputs, experiment, others, channel, threshold, case)
        middle, least, most = 100 * np.median(saved), 100 * saved.min(), 100 * saved.max()
        note = f"savings: median {middle:.0f} %, {least:.0f} to {most:.0f} %"
        return Measured(saved - share, bounds, note=note)

    return measure


def largest_saving(experiment: str, others: Sequence[str], channel: str) -> Measure:
    """Each seed's largest saving, over the other methods and thresholds."""

    def measure(inputs: Any) -> Measured:
        found = []
        for method in others:
            for threshold in THRESHOLDS:
                try:
                    saved, bounds = _savings(inputs, experiment, [method], channel, threshold, "default")
                except NotMeasurableError:
                    continue
                if len(saved) == len(found[0][0] if found else saved) and not (bounds < 0).any():
                    found.append((saved, bounds))
        if not found:
            raise NotMeasurableError("Q-SHED did not reach the thresholds")
        every = np.stack([saved for saved, _ in found])
        best = every.argmax(axis=0)
        bounds = np.stack([one for _, one in found])[best, np.arange(len(best))]
        return Measured(every.max(axis=0), bounds)

    return measure


def savings_between(experiment: str, other: str, channel: str, low: float, high: float) -> Measure:
    """For each threshold, whether the median saving lies in an interval."""

    def measure(inputs: Any) -> Measured:
        found = []
        for threshold in THRESHOLDS:
            saved, bounds = _savings(inputs, experiment, [other], channel, threshold, "default")
            found.append(np.median(np.where(bounds > 0, np.inf, saved)))
        found = np.array(found)
        said = ", ".join(f"{100 * one:.0f} %" if np.isfinite(one) else "not reached" for one in found)
        note = f"median savings at 1e-4, 1e-6, 1e-8: {said}"
        return Measured((found >= low) & (found <= high), seeds=len(saved), note=note)

    return measure


def _slowdown(inputs: Any, experiment: str, method: str, threshold: float) -> tuple[NDArray, NDArray]:
    faded = _rounds(inputs, experiment, method, "rayleigh", threshold, "default")
    steady = _rounds(inputs, experiment, method, "constant", threshold, "default")
    if steady.censored.any():
        raise NotMeasurableError(f"{method} does not reach {threshold:g} without fading")
    return faded.rounds / steady.rounds, faded.censored.astype(int)


def slowed_by_fading(experiment: str, method: str, threshold: float = 1e-6) -> Measure:
    """Rounds with fading as a multiple of those without, less one."""

    def measure(inputs: Any) -> Measured:
        ratio, bounds = _slowdown(inputs, experiment, method, threshold)
        return Measured(ratio - 1.0, bounds, note=f"median factor {np.median(ratio):.2f}")

    return measure


def more_robust(experiment: str, other: str, threshold: float = 1e-6) -> Measure:
    """Slow-down by fading of another method, less that of Q-SHED."""

    def measure(inputs: Any) -> Measured:
        mine, mine_late = _slowdown(inputs, experiment, "qshed", threshold)
        theirs, late = _slowdown(inputs, experiment, other, threshold)
        note = f"median factors {np.median(theirs):.2f} and {np.median(mine):.2f}"
        return Measured(theirs - mine, np.sign(late - mine_late), note=note)

    return measure


def needs_more(
    experiment: str, method: str, reference: str, channel: str, threshold: float = 1e-6
) -> Measure:
    """Rounds of `method` less those of `reference`."""

    def measure(inputs: Any) -> Measured:
        a = _rounds(inputs, experiment, method, channel, threshold, "default")
        b = _rounds(inputs, experiment, reference, channel, threshold, "default")
        note = f"medians {a.median():g} and {b.median():g}"
        return Measured(
            a.rounds - b.rounds, np.sign(a.censored.astype(int) - b.censored.astype(int)), note=note
        )

    return measure


def case_needs_more(
    experiment: str, method: str, case: str, channel: str, threshold: float = 1e-6
) -> Measure:
    """Rounds of `method` in a case less those in the default one."""

    def measure(inputs: Any) -> Measured:
        a, b = (
            reached(curve(inputs, experiment, method, channel, one), threshold) for one in (case, "default")
        )
        both = a.censored & b.censored
        if both.all():
            raise NotMeasurableError(f"{method} does not reach {threshold:g} either way")
        bounds = a.censored.astype(int) - b.censored.astype(int)
        note = f"medians {a.median():g} and {b.median():g}"
        return Measured((a.rounds - b.rounds)[~both], bounds[~both], note=note)

    return measure


def fewer_hessians(experiment: str, channel: str, threshold: float = 1e-6) -> Measure:
    """Hessians a device computes until the threshold: FedNL's less Q-SHED's."""

    def measure(inputs: Any) -> Measured:
        counts = []
        for method in ("fednl", "qshed"):
            found = reached(curve(inputs, experiment, method, channel), threshold, "hessians")
            counts.append(found)
        theirs, mine = counts
        bounds = np.sign(theirs.censored.astype(int) - mine.censored.astype(int))
        return Measured(
            theirs.rounds - mine.rounds, bounds, note=f"medians {theirs.median():g}, {mine.median():g}"
        )

    return measure


def descends(experiments: Sequence[str], method: str) -> Measure:
    """For each run, whether the objective never rises."""

    def measure(inputs: Any) -> Measured:
        holds = []
        for experiment in experiments:
            history = inputs.run(experiment, method)
            for _, run in history.groupby(["channel", "replicate"]):
                f = run.sort_values("round")["objective"].to_numpy()
                holds.append(bool((np.diff(f) <= 1e-14 * np.abs(f[:-1])).all()))
        return Measured(np.array(holds))

    return measure


def within_budget(experiments: Sequence[str]) -> Measure:
    """For each run without fading, whether no round of Q-SHED sends more than the budget allows.

    Besides n B bits for its vectors a device sends its gradient, and scalars: at most B eigenvalues, rho, and
    what the line search asks for.
    """

    def measure(inputs: Any) -> Measured:
        holds = []
        for experiment in experiments:
            settings = inputs.settings["experiments"][experiment]
            history = curve(inputs, experiment, "qshed", "constant")
            n = _dimension(inputs, experiment)
            N, B = settings["clients"], settings["budget"]
            for _, run in history.groupby("replicate"):
                run = run.sort_values("round")
                bits, tried = np.diff(run["bits_up"]), np.diff(run["line_search_messages"])
                holds.append(
                    bool((bits <= N * (n * (B + settings["b_max"]) + 32 * (B + 1)) + 32 * tried).all())
                )
        return Measured(np.array(holds))

    return measure


def _dimension(inputs: Any, experiment: str) -> int:
    settings = inputs.settings["experiments"][experiment]
    components = settings.get("components")
    if components is None:
        from replifed.data.catalogue import get

        return get(settings["dataset"]).counts.features + settings["intercept"]
    return components + settings["intercept"]


def bits_against(experiment: str, other: str, channel: str = "constant") -> Measure:
    """Bits that `other` sends a round, as a multiple of Q-SHED's, seed by seed."""

    def measure(inputs: Any) -> Measured:
        means = []
        for method in (other, "qshed"):
            last = curve(inputs, experiment, method, channel).sort_values("round").groupby("replicate").last()
            means.append((last["bits_up"] / last["round"]).to_numpy())
        return Measured(means[0] / means[1])

    return measure


# --- The example of Section IV-A ----------------------------------------------------------------------


def example_distance(inputs: Any) -> Measured:
    """Sum of the differences of printed and found bits, for the nearest spectrum."""
    spectrum, _ = nearest_spectrum(inputs.run("example", "qshed"))
    bits = example_bits(spectrum, inputs.settings["experiments"]["example"]["b_max"])
    printed = np.zeros(len(bits), dtype=int)
    printed[: len(PRINTED_BITS)] = PRINTED_BITS
    said = " ".join(map(str, bits[bits > 0]))
    # One number without a spread; given twice so that its interval is a point.
    distance = float(np.abs(bits - printed).sum())
    return Measured(np.array([distance, distance]), seeds=1, note=f"found {said}")


def example_spectrum(inputs: Any) -> Measured:
    """Sum of the differences of the eleven printed eigenvalues to those of the nearest spectrum."""
    _, distance = nearest_spectrum(inputs.run("example", "qshed"))
    return Measured(np.array([distance, distance]), seeds=1)


def example_ordered(inputs: Any) -> Measured:
    """For each device and round, whether no vector has more bits than the one before it."""
    history = inputs.run("example", "qshed").sort_values(["replicate", "round", "device", "vector"])
    n = history["vector"].max()
    bits = history["bits"].to_numpy().reshape(-1, n)
    return Measured((np.diff(bits, axis=1) <= 0).all(axis=1), seeds=history["replicate"].nunique())


def example_sums(inputs: Any) -> Measured:
    """For each device and round, whether the bits sent are min(B, what b_max leaves)."""
    history = inputs.run("example", "qshed").sort_values(["replicate", "device", "round", "vector"])
    b_max = inputs.settings["experiments"]["example"]["b_max"]
    n = int(history["vector"].max())
    runs = history["replicate"].nunique() * history["device"].nunique()
    bits = history["bits"].to_numpy().reshape(runs, -1, n)
    first = history.groupby(["replicate", "device", "round"], sort=True)[["budget", "renewed"]].first()
    budget, renewed = (first[name].to_numpy().reshape(runs, -1) for name in ("budget", "renewed"))
    before = np.concatenate([np.zeros_like(bits[:, :1]), bits[:, :-1]], axis=1)
    before = np.where(renewed[..., None], 0, before)
    q = np.where(before > 0, np.arange(1, n + 1), 0).max(axis=-1)
    considered = np.arange(n) < np.minimum(q + budget, n - 1)[..., None]
    room = np.where(considered, b_max - before, 0).sum(axis=-1)
    sent = (bits - before).sum(axis=-1)
    return Measured((sent == np.minimum(budget, room)).ravel(), seeds=history["replicate"].nunique())
