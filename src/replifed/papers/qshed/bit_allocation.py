"""Section IV-A's example: bits of the eigenvectors of one device, printed and found, and how they grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from replifed.operators.bit_allocation import allocate
from replifed.plotting.style import BLUE, GREY, ORANGE, figure, housed

PRINTED_BITS = (3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1)
PRINTED_VALUES = (0.21, 0.11, 0.06, 0.03, 0.03, 0.02, 0.02, 0.01, 0.01, 0.01, 0.01)
# Vectors shown beside the eleven of the example.
_SHOWN = 40


def nearest_spectrum(history: pd.DataFrame) -> tuple[pd.DataFrame, float]:
    """The new Hessian, of any device and round, whose leading eigenvalues come closest to the printed ones.

    Returns
    -------
    frame : DataFrame
        Its lines of the history, by vector.
    distance : float
        Sum of the absolute differences of the eleven eigenvalues.
    """
    printed = np.array(PRINTED_VALUES)
    leading = history[history["renewed"] & (history["vector"] <= len(printed))]
    keys = ["replicate", "round", "device"]
    table = leading.set_index([*keys, "vector"])["eigenvalue"].unstack()  # noqa: PD010
    distance = np.abs(table - printed).sum(axis=1)
    chosen = history.set_index(keys).loc[distance.idxmin()].reset_index()
    return chosen.sort_values("vector"), float(distance.min())


def example_bits(spectrum: pd.DataFrame, b_max: int) -> np.ndarray:
    """Bits that the heuristic of Section IV-C gives a fresh spectrum with the printed example's budget."""
    values = spectrum["eigenvalue"].to_numpy()
    fresh = np.zeros(len(values), dtype=int)
    return allocate(values, np.array(0), fresh, np.array(sum(PRINTED_BITS)), b_max)


def table(inputs: Any, settings: dict) -> pd.DataFrame:
    """Panel "example": printed and found bits; panel "growth": bits of the same device round by round.

    What the paper does not print is zero.
    """
    (experiment,) = settings["artefact"]["runs"]
    history = inputs.run(experiment, "qshed")
    spectrum, _ = nearest_spectrum(history)
    bits = example_bits(spectrum, settings["experiments"][experiment]["b_max"])
    place = spectrum.iloc[0]
    example = pd.DataFrame(
        {
            "panel": "example",
            "round": place["round"],
            "vector": spectrum["vector"].to_numpy(),
            "eigenvalue": spectrum["eigenvalue"].to_numpy(),
            "bits": bits,
            "printed_bits": pd.Series(PRINTED_BITS).reindex(range(len(bits)), fill_value=0),
            "printed_eigenvalue": pd.Series(PRINTED_VALUES).reindex(range(len(bits)), fill_value=0.0),
        }
    )
    same = history[(history["replicate"] == place["replicate"]) & (history["device"] == place["device"])]
    later = same[(same["round"] >= place["round"])]
    renewals = later.loc[later["renewed"], "round"]
    ends = renewals[renewals > place["round"]]
    later = later[later["round"] < (ends.min() if len(ends) else np.inf)]
    growth = later[["round", "vector", "eigenvalue", "bits"]].assign(panel="growth")
    frame = pd.concat([example, growth], ignore_index=True).fillna(0)
    return frame[frame["vector"] <= _SHOWN].assign(replicate=place["replicate"], device=place["device"])


@housed
def draw(frame: pd.DataFrame) -> Figure:
    """Draw what `table` returns."""
    made, axes = figure(1, 3, title="Q-SHED: bits of each eigenvector", width=3.6, height=2.9, legend_lines=0)
    example = frame[(frame["panel"] == "example") & (frame["vector"] <= 14)].sort_values("vector")
    at = example["vector"].to_numpy()
    place = example.iloc[0]
    axes[0][0].semilogy(at, example["eigenvalue"], "o-", color=BLUE, label="nearest device and round found")
    printed = example[example["printed_eigenvalue"] > 0]
    axes[0][0].semilogy(
        printed["vector"], printed["printed_eigenvalue"], "s", color=ORANGE, label="printed (two decimals)"
    )
    axes[0][0].set_ylabel("eigenvalue")
    axes[0][0].set_title(f"Device {place['device']:g}, round {place['round']:g}", loc="left")
    axes[0][0].legend(fontsize=7.5)
    axes[0][1].bar(at - 0.2, example["printed_bits"], 0.4, color=ORANGE, label="printed")
    axes[0][1].bar(at + 0.2, example["bits"], 0.4, color=BLUE, label="found, same budget")
    axes[0][1].set_ylabel("bits per coordinate")
    axes[0][1].set_title(f"{sum(PRINTED_BITS)} bits per coordinate", loc="left")
    axes[0][1].legend(fontsize=7.5)
    growth = frame[frame["panel"] == "growth"].set_index(["round", "vector"])["bits"].unstack()  # noqa: PD010
    image = axes[0][2].pcolormesh(
        growth.columns, growth.index, growth.to_numpy(), cmap="viridis", rasterized=True, shading="nearest"
    )
    made.colorbar(image, ax=axes[0][2], label="bits per coordinate so far")
    axes[0][2].grid(False)
    axes[0][2].set_ylabel("round")
    axes[0][2].set_title("Until the next renewal", loc="left")
    for ax in axes[0]:
        ax.set_xlabel("eigenvector")
        ax.tick_params(color=GREY)
    return made
