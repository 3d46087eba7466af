"""Why FedIterHT falls behind on MNIST: what local thresholds keep of the classes a client does not see.

The paper reports the opposite and gives no such figure. Each client holds two digits out of ten. Beside
FedIterHT stands a variant whose local threshold keeps tau / 10 weights of each class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from replifed.operators.hard_threshold import hard_threshold
from replifed.figures.style import figure, housed

TITLE = "FedIterHT on MNIST: classes that a client does not see"
VARIANTS = {"paper": "threshold over all weights (Algorithm 2)", "class": "threshold in each class"}


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Share of unseen classes in the supports, and the objective, round by round, for both variants."""
    from replifed.algorithms.base import Round, minibatches
    from replifed.papers.fedht.experiments import problem
    from replifed.randomness import Streams

    experiment = {**settings["experiments"]["mnist"], "seed": settings["seed"]}
    chosen = settings["artefact"]["settings"]
    replicate, tau = chosen["replicate"], experiment["sparsity"]
    tuned = inputs.tuned("mnist", "fediterht")["levels"][""]
    K = tuned["local_steps"]
    gamma = tuned["by_local_steps"][str(K)]["step"]
    data, partition = inputs.data("mnist"), inputs.partition("mnist")
    clients = problem(experiment, "", replicate, data, partition)
    unseen = _unseen(data.y, partition.clients[replicate])
    streams = Streams(settings["seed"], (replicate,))

    rows = []
    for variant in VARIANTS:
        x = np.zeros((1, clients.dim), dtype=clients.dtype)
        for t in range(chosen["rounds"] + 1):
            local = clients.local(x, sparsity=tau)
            u = local.start
            before = _share(u, unseen)
            for batch in minibatches(Round(t, None, None, streams.at(t)), clients, K, experiment["batch"]):
                u = _threshold(u - gamma * local.gradient(u, batch), tau, variant, unseen.shape[1])
            rows.append(
                {
                    "variant": variant,
                    "round": t,
                    "server": before,
                    "local": _share(u, unseen),
                    "objective": float(clients.loss(x)[0]),
                    "local_steps": K,
                    "step": gamma,
                }
            )
            x = hard_threshold(local.mean(u), tau)
    return pd.DataFrame(rows)


def _unseen(y: np.ndarray, client: np.ndarray) -> np.ndarray:
    """Whether each client holds no sample of each class, shape (N, C)."""
    held = np.zeros((client.max() + 1, int(y.max()) + 1), dtype=bool)
    held[client, y] = True
    return ~held


def _share(u: np.ndarray, unseen: np.ndarray) -> float:
    """Mean over clients of the share of a model's non-zeros that belong to unseen classes."""
    clients, classes = unseen.shape
    count = np.count_nonzero(u.reshape(clients, -1, classes), axis=1)
    return float(np.mean((count * unseen).sum(axis=1) / np.maximum(count.sum(axis=1), 1)))


def _threshold(u: np.ndarray, tau: int, variant: str, classes: int) -> np.ndarray:
    if variant == "paper":
        return hard_threshold(u, tau)
    by_class = u.reshape(*u.shape[:2], -1, classes).swapaxes(-1, -2)
    return hard_threshold(by_class, tau // classes).swapaxes(-1, -2).reshape(u.shape)


@housed
def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: shares on the left, the objective on the right."""
    made, axes = figure(1, 2, title=TITLE, width=4.6, height=3.0, legend_lines=0)
    left, right = axes[0]
    for (variant, label), colour in zip(VARIANTS.items(), ("#0072B2", "#D55E00"), strict=True):
        curve = frame[frame["variant"] == variant]
        later = curve[curve["round"] > 0]
        left.plot(later["round"], later["local"], "-", color=colour, label=label)
        right.plot(curve["round"], curve["objective"], "-", color=colour, label=label)
    # Each class is seen by as many clients: of a model that all share, the same part is unseen.
    left.plot(later["round"], later["server"], "--", color="#777777", label="server's model, either way")
    left.set_ylim(0, 1)
    left.set_title("non-zeros in classes that the client does not see", loc="left", fontsize=9)
    left.set_ylabel("share, mean over clients")
    right.set_title(
        f"K = {int(frame['local_steps'].iloc[0])}, step {frame['step'].iloc[0]:g}", loc="left", fontsize=9
    )
    right.set_ylabel("objective")
    for ax in (left, right):
        ax.set_xlabel("communication rounds")
        ax.legend(fontsize=7, loc="best")
    return made
