"""What the claims on this paper's runs measure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.claims.verdicts import Measured, NotMeasurableError
from replifed.papers.measures import (
    Curves,
    any_chaotic,
    at_round,
    curves,
    log_linear_fit,
    paired,
    rounds_to,
)

Measure = Callable[[Any], Measured]

# Relative errors below are rounding, which is another one on each processor.
MACHINE = 1e-14


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


def errors(inputs: Any, experiment: str, method: str, **where: Any) -> Curves:
    """Relative errors of one curve, by seed."""
    return curves(inputs.run(experiment, method), "error", **where)


def tail(one: Curves, share: float = 0.25) -> NDArray:
    """Geometric mean of the last share of each curve, as a log10."""
    count = max(round(share * len(one.rounds)), 1)
    return logs(one).values[:, -count:].mean(axis=1)


def linear(experiment: str, least_r2: float, floor: float, **where: Any) -> Measure:
    """Whether the logarithm of each seed's error is a straight line down to `floor`."""

    def measure(inputs: Any) -> Measured:
        one = errors(inputs, experiment, "fedgradmp", **where)
        # The first round below the floor ends the descent; the fit stops before it.
        factor, r2 = log_linear_fit(one, floor)
        return Measured(r2 >= least_r2, seeds=len(one.seeds), note=_line(factor, r2))

    return measure


def _line(factor: NDArray, r2: NDArray) -> str:
    return f"R² {r2.min():.3f} to {r2.max():.3f}, factor a round {np.median(factor):.3g}"


def linear_to_its_end(experiment: str, method: str, least_r2: float, **where: Any) -> Measure:
    """Whether each seed's error falls along a straight line, in logarithms, to twice what it ends at."""

    def measure(inputs: Any) -> Measured:
        one = errors(inputs, experiment, method, **where)
        ends = 10 ** tail(one)
        start = one.values[:, 0]
        # The fit takes in all of a curve that has not fallen by half.
        factor, r2 = log_linear_fit(one, np.minimum(2 * ends / start, 0.5))
        note = f"{_line(factor, r2)}, ends at {np.median(ends):.3g}"
        return Measured((r2 >= least_r2) & (ends < start / 2), seeds=len(one.seeds), note=note)

    return measure


def falls(experiment: str, method: str, **where: Any) -> Measure:
    """Decades by which the error at the end is below that of the start."""

    def measure(inputs: Any) -> Measured:
        one = errors(inputs, experiment, method, **where)
        start = logs(one).values[:, 0]
        return Measured(start - tail(one), note=f"ends at {10 ** tail(one).mean():.3g}")

    return measure


def needs_more_rounds(
    experiment: str, method: str, target: float, slow: dict, fast: dict, other: str | None = None
) -> Measure:
    """Rounds to a relative error of the curve `slow` minus those of the curve `fast`."""

    def measure(inputs: Any) -> Measured:
        one, two = paired(
            errors(inputs, experiment, method, **slow), errors(inputs, experiment, other or method, **fast)
        )
        reached = [rounds_to(curve, np.full(len(curve.seeds), target)) for curve in (one, two)]
        bounds = reached[0].censored.astype(int) - reached[1].censored.astype(int)
        note = f"rounds to {target:g}: {reached[0].rounds.mean():.3g} against {reached[1].rounds.mean():.3g}"
        return Measured(reached[0].rounds - reached[1].rounds, bounds, note=note)

    return measure


def rounds_grow(
    experiment: str, method: str, target: float, column: str, values: list, **where: Any
) -> Measure:
    """Whether mean rounds to a relative error do not fall from one value of `column` to the next."""

    def measure(inputs: Any) -> Measured:
        several = [errors(inputs, experiment, method, **{column: value}, **where) for value in values]
        means = [rounds_to(one, np.full(len(one.seeds), target)).rounds.mean() for one in several]
        note = "rounds: " + ", ".join(f"{mean:.3g}" for mean in means)
        return Measured(np.diff(means) >= 0, seeds=len(several[0].seeds), note=note)

    return measure


def lower_after(experiment: str, best: tuple[str, str], other: tuple[str, str], after: int | None) -> Measure:
    """Decades by which `best` is below `other`, after some rounds or (None) over the end of the run."""

    def measure(inputs: Any) -> Measured:
        one, two = paired(
            errors(inputs, experiment, other[0], variant=other[1]),
            errors(inputs, experiment, best[0], variant=best[1]),
        )
        if after is None:
            return Measured(tail(one) - tail(two), note=_decades(tail(one), tail(two)))
        first, second = at_round(logs(one), after)[0], at_round(logs(two), after)[0]
        return Measured(first - second, note=_decades(first, second))

    return measure


def lower_at_work(experiment: str, best: tuple[str, str], other: tuple[str, str], rounds: int) -> Measure:
    """Decades by which `best` is below, at the work that it has used after `rounds` rounds."""

    def measure(inputs: Any) -> Measured:
        one, two = paired(
            errors(inputs, experiment, best[0], variant=best[1]),
            errors(inputs, experiment, other[0], variant=other[1]),
        )
        used = curves(inputs.run(experiment, best[0]), "sample_gradients", variant=best[1])
        spent = curves(inputs.run(experiment, other[0]), "sample_gradients", variant=other[1])
        work, place = at_round(used, rounds)
        mine = at_round(logs(one), place)[0]
        # A run that diverged stopped counting; its total is what it would have been.
        each = np.nanmax(np.diff(spent.values, axis=1), axis=1)
        theirs = [
            row[min(int(total // cost), len(row) - 1)]
            for row, total, cost in zip(logs(two).values, work, each, strict=True)
        ]
        reach = int(work.mean() // each.mean())
        note = f"their round {min(reach, len(two.rounds) - 1)}; {_decades(np.array(theirs), mine)}"
        return Measured(np.array(theirs) - mine, note=note)

    return measure


def _decades(other: NDArray, best: NDArray) -> str:
    return f"{10 ** other.mean():.3g} against {10 ** best.mean():.3g}"


def not_sparse(experiment: str, method: str, tau: int) -> Measure:
    """Whether the final model has more than tau non-zeros, on every seed."""

    def measure(inputs: Any) -> Measured:
        one = curves(inputs.run(experiment, method), "nonzeros")
        last = one.values[:, -1]
        return Measured(
            ~np.isfinite(last) | (last > tau), note=f"non-zeros: {last.min():g} to {last.max():g}"
        )

    return measure


def sparse(experiment: str, method: str, tau: int) -> Measure:
    """Whether no model of the server has more than tau non-zeros."""

    def measure(inputs: Any) -> Measured:
        history = inputs.run(experiment, method)
        return Measured((history["nonzeros"] <= tau).to_numpy(), seeds=history["replicate"].nunique())

    return measure


def degrades_more(mild: str, strong: str, best: tuple[str, str], other: tuple[str, str]) -> Measure:
    """Decades that `other` loses from `mild` to `strong`, less what `best` loses."""

    def measure(inputs: Any) -> Measured:
        four = paired(
            *(
                errors(inputs, experiment, method, variant=variant)
                for method, variant in (other, best)
                for experiment in (strong, mild)
            )
        )
        ends = [tail(one) for one in four]
        lost = ends[0] - ends[1], ends[2] - ends[3]
        note = f"final error times {10 ** lost[0].mean():.3g} against {10 ** lost[1].mean():.3g}"
        return Measured(lost[0] - lost[1], note=note)

    return measure


def still_works(mild: str, strong: str, best: tuple[str, str], most: float) -> Measure:
    """Whether the final error grows by no more than a factor."""

    def measure(inputs: Any) -> Measured:
        one, two = paired(
            *(errors(inputs, experiment, best[0], variant=best[1]) for experiment in (strong, mild))
        )
        ratio = 10 ** (tail(one) - tail(two))
        return Measured(ratio <= most, note=f"final error times {ratio.min():.3g} to {ratio.max():.3g}")

    return measure


def machine_precision(experiment: str, rounds: int | None = None, **where: Any) -> Measure:
    """Whether each seed's error is below 1e-14 after `rounds` rounds, or at the end."""

    def measure(inputs: Any) -> Measured:
        one = errors(inputs, experiment, "fedgradmp", **where)
        last = one.rounds[-1] if rounds is None else rounds
        found, at = at_round(one, last)
        return Measured(found <= MACHINE, note=f"largest error {found.max():.2g} after {at} rounds")

    return measure


def rounds_to_precision(experiment: str) -> Measure:
    """Rounds to an error of 1e-14."""

    def measure(inputs: Any) -> Measured:
        one = errors(inputs, experiment, "fedgradmp")
        reached = rounds_to(one, np.full(len(one.seeds), MACHINE))
        return Measured(reached.rounds, reached.censored.astype(int))

    return measure


def floors_differ(column: str, experiment: str, higher: Any, lower: Any, noise: float) -> Measure:
    """Decades by which the noisy residual at one value of `column` is above that at another."""

    def measure(inputs: Any) -> Measured:
        one, two = paired(
            errors(inputs, experiment, "fedgradmp", **{column: higher}, noise=noise),
            errors(inputs, experiment, "fedgradmp", **{column: lower}, noise=noise),
        )
        return Measured(tail(one) - tail(two), note=_decades(tail(one), tail(two)))

    return measure


def floors_alike(column: str, experiment: str, values: list, noise: float, most: float) -> Measure:
    """Whether mean residuals over the values of `column` differ by no more than a factor."""

    def measure(inputs: Any) -> Measured:
        several = [errors(inputs, experiment, "fedgradmp", **{column: v}, noise=noise) for v in values]
        levels = [10 ** tail(one).mean() for one in several]
        note = "residuals " + ", ".join(f"{level:.3g}" for level in levels)
        return Measured(np.array([max(levels) <= most * min(levels)]), seeds=len(several[0].seeds), note=note)

    return measure


def early_error_falls(column: str, experiment: str, low: Any, high: Any, noise: float, after: int) -> Measure:
    """Decades by which the error after a few rounds is smaller at the value `high` than at `low`."""

    def measure(inputs: Any) -> Measured:
        one, two = paired(
            errors(inputs, experiment, "fedgradmp", **{column: low}, noise=noise),
            errors(inputs, experiment, "fedgradmp", **{column: high}, noise=noise),
        )
        first, second = at_round(logs(one), after)[0], at_round(logs(two), after)[0]
        return Measured(first - second, note=_decades(first, second))

    return measure


def early_error_monotone(column: str, experiment: str, values: list, noise: float, after: int) -> Measure:
    """Whether the mean error after a few rounds falls from each value of `column` to the next."""

    def measure(inputs: Any) -> Measured:
        several = [errors(inputs, experiment, "fedgradmp", **{column: v}, noise=noise) for v in values]
        means = [at_round(logs(one), after)[0].mean() for one in several]
        note = "errors " + ", ".join(f"{10**mean:.2g}" for mean in means)
        return Measured(np.diff(means) < 0, seeds=len(several[0].seeds), note=note)

    return measure


def steps_diverge(reading: str, steps: list[float]) -> Measure:
    """Whether the run at each of the steps, on each seed, diverges or ends ten times further off."""

    def measure(inputs: Any) -> Measured:
        ends = np.concatenate([_ends(inputs, reading, step) for step in steps])
        return Measured(~(ends <= 10.0), seeds=len(ends) // len(steps), note=_ended(ends))

    return measure


def steps_stall(reading: str, steps: list[float], least: float) -> Measure:
    """Whether the run at each of the steps holds, yet ends with a relative error of at least `least`."""

    def measure(inputs: Any) -> Measured:
        ends = np.concatenate([_ends(inputs, reading, step) for step in steps])
        return Measured((ends >= least) & (ends <= 10.0), seeds=len(ends) // len(steps), note=_ended(ends))

    return measure


def _ends(inputs: Any, reading: str, step: float) -> NDArray:
    return errors(inputs, "learning_rates", "fediterht", variant=reading, step=step).values[:, -1]


def _ended(ends: NDArray) -> str:
    lost = np.count_nonzero(~np.isfinite(ends))
    held = ends[np.isfinite(ends)]
    kept = f"; others end between {held.min():.3g} and {held.max():.3g}" if held.size else ""
    return f"{lost} of {len(ends)} runs diverge{kept}"


# -- digits and video ----------------------------------------------------------------------------------


def of_digits(inputs: Any, experiment: str, method: str, variant: str, value: str, reading: str) -> Curves:
    """Curves of one variant."""
    return curves(inputs.run(experiment, method), value, variant=variant, reading=reading)


def more_accurate(
    value: str,
    best: tuple[str, str, str],
    other: tuple[str, str, str],
    reading: str = "own",
    at_bits: bool = False,
) -> Measure:
    """Difference in accuracy over the last tenth of the run, or at the bits that `best` has then sent.

    `best` and `other` are (experiment, method, variant), both at the step of the same reading.
    """

    def measure(inputs: Any) -> Measured:
        one, two = paired(*(of_digits(inputs, *curve, value, reading) for curve in (best, other)))
        count = max(round(0.1 * len(one.rounds)), 1)
        mine = one.values[:, -count:].mean(axis=1)
        if not at_bits:
            theirs = two.values[:, -count:].mean(axis=1)
        else:
            sent = [
                sum(
                    of_digits(inputs, experiment, method, variant, column, reading).values
                    for column in ("bits_up", "bits_down")
                )
                for experiment, method, variant in (best, other)
            ]
            if (sent[1][:, -1] < sent[0][:, -1]).any():
                raise NotMeasurableError("the other method's run ends with fewer bits")
            theirs = np.array(
                [
                    np.interp(total, bits, row)
                    for total, bits, row in zip(sent[0][:, -1], sent[1], two.values, strict=True)
                ]
            )
        said = f"{mine.mean():.4f} against {theirs.mean():.4f}"
        return Measured(mine - theirs, note=said, chaotic=any_chaotic(one, two))

    return measure


def recovered(experiment: str, within: float) -> Measure:
    """Whether the frame's PSNR comes within some decibels of the best approximation's."""

    def measure(inputs: Any) -> Measured:
        history = inputs.run(experiment, "fedgradmp")
        history = history[history["part"] == "curve"]
        last = history[history["round"] == history["round"].max()]
        found, best = last["psnr"].to_numpy(), last["best_psnr"].to_numpy()
        note = f"PSNR {found.mean():.2f} dB, best {best.mean():.2f} dB"
        return Measured(found >= best - within, shown=float(found.mean()), note=note)

    return measure


def machine_precision_all(experiment: str, column: str, values: list) -> Measure:
    """Whether every seed ends below 1e-14 at each value of `column`, without noise."""

    def measure(inputs: Any) -> Measured:
        ends = np.concatenate(
            [
                errors(inputs, experiment, "fedgradmp", **{column: value}, noise=0.0).values[:, -1]
                for value in values
            ]
        )
        note = f"largest error {ends.max():.2g}"
        return Measured(ends <= MACHINE, seeds=len(ends) // len(values), note=note)

    return measure


def lower_at_seconds(artefact: str, best: str, other: str, rounds: int) -> Measure:
    """Whether `best` is below `other` at the seconds that it has used after `rounds` rounds."""

    def measure(inputs: Any) -> Measured:
        frame = inputs.artefact(artefact)
        one, two = (frame[frame["series"] == name].sort_values("round") for name in (best, other))
        if one.empty or two.empty:
            raise NotMeasurableError("one of the two was not timed")
        mine = one[one["round"] <= rounds].iloc[-1]
        theirs = two[two["seconds"] <= mine["seconds"]].iloc[-1]
        note = f"{theirs['mean']:.3g} against {mine['mean']:.3g} after {mine['seconds']:.2g} s"
        return Measured(
            np.array([mine["mean"] < theirs["mean"]]), shown=float(theirs["mean"] / mine["mean"]), note=note
        )

    return measure
