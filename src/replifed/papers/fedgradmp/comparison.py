"""The comparison of all methods on sparse regression, as Figures 3 to 5 show it, and its seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedgradmp.panels import ERROR, collect, draw_grid
from replifed.papers.fedgradmp.titles import LINES

Table = Callable[[Any, dict], pd.DataFrame]
Draw = Callable[[pd.DataFrame], Figure]


def comparison(title: str) -> tuple[Table, Draw]:
    """Return the functions `table` and `draw` of a figure: rounds on the left, counted work on the right."""

    def table(inputs: Any, settings: dict) -> pd.DataFrame:
        return collect(inputs, settings, ["experiment", "series"], "error")

    def draw(frame: pd.DataFrame) -> Figure:
        return draw_grid(
            frame,
            [({}, "")],
            [({}, "round", "by rounds"), ({}, "work", "by counted work")],
            "series",
            LINES,
            title=title,
            y_label=ERROR,
            legend_lines=3,
        )

    return table, draw


def seconds(title: str) -> tuple[Table, Draw]:
    """Return `table` and `draw` of a figure's wall-clock panel: the first repetition, run anew and timed.

    Processor seconds on one thread; the only numbers that differ from run to run.
    """

    def table(inputs: Any, settings: dict) -> pd.DataFrame:
        # Here and not above, so that no other figure depends on the methods' sources.
        from replifed.papers.fedgradmp import experiments, problems
        from replifed.randomness import Streams
        from replifed.simulate import simulate

        rounds = settings["artefact"]["settings"]["rounds"]
        rows = []
        for experiment, methods in settings["artefact"]["runs"].items():
            chosen = {"seed": settings["seed"], **settings["experiments"][experiment]}
            replicate = chosen["replicates"][0]
            data, _ = problems.regression(chosen, chosen["alphas"][0], chosen["noises"][0], replicate)
            for method in methods:
                history = inputs.run(experiment, method)
                for variant in experiments.variants(method, chosen):
                    curve = history[(history["variant"] == variant) & (history["replicate"] == replicate)]
                    curve = curve.sort_values("round")
                    step = float(curve["step"].iloc[0])
                    at = None if np.isnan(step) else np.array([step])
                    algorithm = experiments.regression_method(
                        method, chosen, variant, at, chosen["local_steps"][0]
                    )
                    streams = Streams(chosen["seed"], (replicate,))
                    # Once to set up what a problem keeps between rounds, such as its features by column.
                    simulate(algorithm, data, streams, 1, metrics={})
                    began = time.process_time()
                    simulate(algorithm, data, streams, rounds, metrics={})
                    each = (time.process_time() - began) / rounds
                    rows.append(
                        pd.DataFrame(
                            {
                                "experiment": experiment,
                                "series": f"{method}/{variant}",
                                "round": curve["round"],
                                "seconds": curve["round"] * each,
                                "seconds_a_round": each,
                                "mean": np.maximum(curve["error"], 1e-17),
                                "diverged": int(curve["diverged"].iloc[-1]),
                                "seeds": 1,
                                "alive": (~curve["diverged"].astype(bool)).astype(int),
                            }
                        )
                    )
        frame = pd.concat(rows, ignore_index=True)
        frame = frame[np.isfinite(frame["mean"])]
        return frame.assign(low=frame["mean"], high=frame["mean"])

    def draw(frame: pd.DataFrame) -> Figure:
        return draw_grid(
            frame,
            [({}, "")],
            [({}, "seconds", "by processor time, one repetition")],
            "series",
            LINES,
            title=title,
            y_label=ERROR,
            width=6.4,
            legend_lines=4,
        )

    return table, draw
