"""Figure 2: a frame of a video, what FedGradMP with a K-SVD dictionary recovers of it, and the difference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from replifed.papers.fedgradmp.titles import EXPERIMENTS
from replifed.figures.style import figure, housed

TITLE = "FedGradMP Figure 2: recovery of a video frame"


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """The pictures, at half the resolution, and the signal-to-noise ratios of all repetitions."""
    frames = []
    for experiment, methods in settings["artefact"]["runs"].items():
        for method in methods:
            history = inputs.run(experiment, method)
            curve = history[history["part"] == "curve"]
            last = curve[curve["round"] == curve["round"].max()]
            pixels = history[history["part"] == "pixels"]
            frames.append(
                pd.DataFrame(
                    {
                        "experiment": experiment,
                        "down": pixels["down"].astype(int),
                        "right": pixels["right"].astype(int),
                        "original": pixels["original"].round(4),
                        "recovered": pixels["recovered"].round(4),
                        "psnr": round(float(last["psnr"].mean()), 3),
                        "best_psnr": round(float(last["best_psnr"].mean()), 3),
                        "seeds": len(last),
                    }
                )
            )
    return pd.concat(frames, ignore_index=True)


@housed
def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns: original, recovered and difference side by side."""
    names = list(dict.fromkeys(frame["experiment"]))
    made, axes = figure(len(names), 3, title=TITLE, width=3.2, height=2.65, legend_lines=0)
    for row, name in zip(axes, names, strict=True):
        one = frame[frame["experiment"] == name]
        shape = int(one["down"].max()) + 1, int(one["right"].max()) + 1
        original, recovered = np.zeros(shape), np.zeros(shape)
        original[one["down"], one["right"]] = one["original"]
        recovered[one["down"], one["right"]] = one["recovered"]
        ratio, best = one["psnr"].iloc[0], one["best_psnr"].iloc[0]
        texts = (
            f"{EXPERIMENTS[name]}: original",
            f"recovered, PSNR {ratio:.1f} dB (best {best:.1f})",
            "difference",
        )
        span = max(np.abs(recovered - original).max(), 1e-6)
        row[0].imshow(original, cmap="gray", vmin=0, vmax=1)
        row[1].imshow(recovered, cmap="gray", vmin=0, vmax=1)
        shown = row[2].imshow(recovered - original, cmap="RdBu", vmin=-span, vmax=span)
        made.colorbar(shown, ax=row[2], shrink=0.8)
        for ax, text in zip(row, texts, strict=True):
            ax.set_title(text, loc="left", fontsize=9)
            ax.set_xlabel("column")
            ax.set_ylabel("line")
            ax.grid(False)
    return made
