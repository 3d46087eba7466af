"""What the paper runs: methods on two data sets, over channels without and with fading.

A `case` changes some settings: the paper leaves the renewal set, the quantiser and the line search open, and
the experiments on these choices change one of them at a time. A `variant` is a way to run one method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.algorithms.line_search import Armijo
from replifed.algorithms.newton_type import share_directions
from replifed.algorithms.registry import method_class
from replifed.network.fading import Constant, Rayleigh
from replifed.papers.qshed.data import Drawn, problems
from replifed.progress import Progress
from replifed.randomness import Streams
from replifed.simulate import simulate, simulate_group

# These send what they send, whatever the channel.
UNLIMITED = ("giant", "newton", "gradient_descent")

# Rounds of these are work on one device's matrix after the other, so that repetitions gain nothing side by
# side; alone, each ends when it has converged, and stays there in what is drawn (`curves.medians`).
APART = ("fednl",)

# Settings of the problem and the channel, which change every method.
_COMMON = {"budget", "l2"}

# Gaps below this share of f* are rounding error.
FLOOR = 1e-13


def algorithm(method: str, settings: dict, **own: Any) -> Any:
    """Build `method` with those of the experiment's settings that it has, and its own ones."""
    merged = settings | own
    known = {field.name for field in fields(method_class(method)) if field.init}
    kept = {name: value for name, value in merged.items() if name in known}
    if kept.get("line_search") is not None:
        kept["line_search"] = Armijo(**kept["line_search"])
    return method_class(method)(**kept)


def channel(name: str, settings: dict) -> Callable[[Streams, int], NDArray]:
    """The channel called "constant" or "rayleigh"."""
    if name == "constant":
        return Constant(settings["budget"])
    return Rayleigh(settings["budget"], **settings["fading"])


def cases(method: str, settings: dict) -> dict[str, dict]:
    """The cases that change something for `method`, with the settings that they change."""
    known = {field.name for field in fields(method_class(method)) if field.init} | _COMMON
    return {
        name: changed
        for name, changed in settings["cases"].items()
        if not changed or known.intersection(changed)
    }


def channels(method: str, variant: str, settings: dict) -> list[str]:
    """The channels over which a variant of `method` is run."""
    steady = method in UNLIMITED or variant in settings["steady"]
    return ["constant"] if steady else list(settings["channels"])


class _Curve(NamedTuple):
    """One method over one channel: what its lines are called, and how it is run."""

    labels: dict[str, str]
    settings: dict
    method: Any
    channel: Callable[[Streams, int], NDArray]

    @property
    def shared(self) -> tuple:
        """What it has in common with runs from which its line search alone may part it."""
        method, limit = replace(self.method, line_search=None), self.channel
        if isinstance(limit, Constant) and method.enough is not None:
            limit = Constant(min(limit.bits, method.enough))
        return method, limit


def run(
    method: str,
    settings: dict,
    tuned: dict | None,
    table: Any,
    partition: Any,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Run all cases, variants, channels and seeds of `method`."""
    if settings["kind"] == "allocation":
        return _allocations(method, settings, table, progress)
    curves = list(_curves(method, settings))
    done, total = 0, len(curves) * len(settings["replicates"])
    frames: dict[tuple[int, int], pd.DataFrame] = {}
    for l2 in dict.fromkeys(curve.settings["l2"] for curve in curves):
        together: dict[tuple, list[int]] = {}
        for place, curve in enumerate(curves):
            if curve.settings["l2"] == l2:
                together.setdefault(curve.shared, []).append(place)
        for number, drawn in enumerate(problems(settings | {"l2": l2}, table, apart=method in APART)):
            for places in together.values():
                found = [curves[place] for place in places]
                if progress is not None:
                    label = " ".join(filter(None, found[0].labels.values()))
                    progress(f"{label} seeds {drawn.replicates}", done, total)
                for place, frame in zip(places, _simulate(found, drawn), strict=True):
                    frames[place, number] = frame
                done += len(found) * len(drawn.replicates)
    return pd.concat([frames[key] for key in sorted(frames)], ignore_index=True)


def _curves(method: str, settings: dict) -> Iterator[_Curve]:
    for case, changed in cases(method, settings).items():
        merged = settings | changed
        for variant, own in settings["variants"].get(method, {"": {}}).items():
            for name in channels(method, variant, merged):
                labels = {"method": method, "variant": variant, "case": case, "channel": name}
                yield _Curve(labels, merged, algorithm(method, merged, **own), channel(name, merged))


def _simulate(curves: list[_Curve], drawn: Drawn) -> Iterator[pd.DataFrame]:
    """One line a repetition and round of each; `gap` is f - f*, at least rounding error."""
    floor = FLOOR * np.maximum(1.0, np.abs(drawn.minimum))
    settings = curves[0].settings
    histories = simulate_group(
        [curve.method for curve in curves],
        share_directions,
        drawn.problem,
        Streams(settings["seed"], drawn.replicates),
        settings["rounds"],
        channel=curves[0].channel,
        until=lambda now: now["objective"] - drawn.minimum <= np.maximum(settings["stop"], floor),
    )
    for curve, history in zip(curves, histories, strict=True):
        frame = history.frame(**curve.labels, replicate=drawn.replicates)
        rounds = len(history.rounds)
        gap = frame["objective"] - np.repeat(drawn.minimum, rounds)
        frame["gap"] = np.maximum(gap, np.repeat(floor, rounds))
        yield frame


def _allocations(method: str, settings: dict, table: Any, progress: Progress | None) -> pd.DataFrame:
    """Every device's eigenvalues and the bits that its eigenvectors have, round by round."""
    frames = []
    for drawn in problems(settings, table):
        streams = Streams(settings["seed"], drawn.replicates)
        built = algorithm(method, settings)
        state = built.init(drawn.problem, streams)
        for t in range(settings["rounds"]):
            if progress is not None:
                progress("rounds", t, settings["rounds"])
            before = state
            limits = channel(settings["channels"][0], settings)
            state = simulate(
                built, drawn.problem, streams, t + 1, channel=limits, resume=(t, state), metrics={}
            ).state
            budget = limits(streams.at(t), drawn.problem.n_clients)
            frames.append(_allocation_frame(drawn, t + 1, before, state, budget))
    return pd.concat(frames, ignore_index=True)


def _allocation_frame(drawn: Drawn, t: int, before: Any, state: Any, budget: NDArray) -> pd.DataFrame:
    R, N, n = state.bits.shape
    replicate, device, vector = (axis.ravel() for axis in np.indices((R, N, n)))
    renewed = (state.values != before.values).any(axis=-1)
    return pd.DataFrame(
        {
            "replicate": np.array(drawn.replicates)[replicate],
            "round": t,
            "device": device + 1,
            "vector": vector + 1,
            "eigenvalue": state.values.ravel(),
            "bits": state.bits.ravel(),
            "budget": np.broadcast_to(budget, (R, N))[replicate, device],
            "renewed": renewed[replicate, device],
        }
    )
