"""What a round of each method costs in processor seconds: the only numbers that differ from run to run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from replifed.papers.fedgradmp import experiments, problems
from replifed.randomness import Streams
from replifed.simulate import simulate

if TYPE_CHECKING:
    from replifed.papers.inputs import Inputs


def seconds(inputs: Inputs, settings: dict) -> pd.DataFrame:
    """Error of the first repetition against the seconds that a few rounds of it take, run anew and timed.

    Processor seconds on one thread.
    """
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
