"""Figure 2: a video frame, what is recovered of it, and the difference."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from replifed.figures.artefact import Made
from replifed.figures.style import canvas, styled
from replifed.papers.fedgradmp.paper import EXPERIMENTS
from replifed.papers.inputs import Inputs


def _frames(inputs: Inputs) -> pd.DataFrame:
    """The pictures, at half the resolution, and the signal-to-noise ratios of all repetitions."""
    frames = []
    for experiment in inputs.experiments():
        history = inputs.run(experiment, "fedgradmp")
        pixels = history.loc[history["part"] == "pixels", ["down", "right", "original", "recovered"]]
        curve = history[history["part"] == "curve"]
        last = curve[curve["round"] == curve["round"].max()]
        frames.append(
            pd.DataFrame(
                {
                    "experiment": experiment,
                    **pixels.round(4).astype({"down": int, "right": int}),
                    "psnr": round(float(last["psnr"].mean()), 3),
                    "best_psnr": round(float(last["best_psnr"].mean()), 3),
                    "frame": int(last["frame"].iloc[0]),
                    "seeds": len(last),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


@styled
def _draw_frames(frame: pd.DataFrame) -> Figure:
    """Draw what `_frames` returns: original, recovered and difference side by side."""
    made, axes = canvas(
        frame["experiment"].nunique(),
        3,
        title="FedGradMP · Figure 2: sparse video recovery",
        width=3.2,
        height=2.65,
    )
    for row, (name, one) in zip(axes, frame.groupby("experiment", sort=False), strict=True):
        height = int(one["down"].max()) + 1
        original, recovered = (one[part].to_numpy().reshape(height, -1) for part in ("original", "recovered"))
        difference = recovered - original
        span = max(np.abs(difference).max(), 1e-6)
        # In pixels of the frame, of which the table has the means of two by two.
        extent = (0, 2 * original.shape[1], 2 * height, 0)
        row[0].imshow(original, cmap="gray", vmin=0, vmax=1, extent=extent)
        row[1].imshow(recovered, cmap="gray", vmin=0, vmax=1, extent=extent)
        shown = row[2].imshow(difference, cmap="RdBu", vmin=-span, vmax=span, extent=extent)
        made.colorbar(shown, ax=row[2], shrink=0.8)
        ratio, best = one["psnr"].iloc[0], one["best_psnr"].iloc[0]
        texts = (
            f"{EXPERIMENTS[name]}: frame {one['frame'].iloc[0]}",
            f"recovered, PSNR {ratio:.1f} dB\n(best {best:.1f} dB)",
            "difference",
        )
        for ax, text in zip(row, texts, strict=True):
            ax.set_title(text, loc="left")
            ax.set(xlabel="column", ylabel="line")
            ax.grid(False)
    return made


VIDEO = Made(
    "fig2",
    "Figure 2: sparse video recovery",
    "A frame of 240 by 320 pixels, drawn at half the resolution; what FedGradMP recovers of it with up to 50 "
    "K-SVD atoms and 30 measurements at each of 50 clients, and the difference: of the xylophone clip, and "
    "of a drawn clip with as many frames as the paper's. Best: the approximation by as many atoms that "
    "matching pursuit finds with the frame at hand.",
    _frames,
    _draw_frames,
)
