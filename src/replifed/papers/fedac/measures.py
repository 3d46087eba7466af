"""Measures of runs: sensitivity to rounding, and comparison with published runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.claims.multiplicity import holm, p_value
from replifed.intervals import mean_interval
from replifed.papers.fedac import published
from replifed.papers.fedac.paper import FIGURE_STEPS, OPTIMA, Drawn
from replifed.papers.fedac.published import POINT, RUN

# Perturbed runs that differ by more than this, relative to the run, have parted from it.
PARTED = 1e-7
# Numbers agree that differ by no more, relative to the published one.
AGREES = 1e-9
COLUMNS = [
    *("l2", "method", "eta", "M", "K", "final_loss", "best_loss", "chaotic_final", "chaotic_best"),
    *("published_final", "published_best"),
]


def sensitive_to_rounding(run: NDArray, *twins: NDArray) -> tuple[NDArray, NDArray]:
    """Masks of the runs whose last, and whose best, record depends on rounding; (R, records) to (R,) twice.

    The last one if a perturbed run, or twin, differs from it; the best one if that holds for any record that
    lies below twice the best, in run or twin. One twin is not enough: trajectories can merge again.
    """
    last, best = np.zeros(len(run), bool), np.zeros(len(run), bool)
    for twin in twins:
        parted = ~(np.abs(twin - run) <= PARTED * np.abs(run))  # NaN has parted, too
        low = (run < 2 * run.min(axis=1, keepdims=True)) | (twin < 2 * twin.min(axis=1, keepdims=True))
        last |= parted[:, -1]
        best |= (parted & low).any(axis=1)
    return last, best


def summary(l2: float, history: pd.DataFrame) -> pd.DataFrame:
    """One line a run of a grid, with `COLUMNS`."""
    history = history.sort_values(["method", "eta", "M", "K", "round"], kind="stable")
    records = history["round"].nunique()
    run, *twins = (
        history[column].to_numpy().reshape(-1, records) for column in ("objective", "of_start", "of_step")
    )
    last, best = sensitive_to_rounding(run, *twins)
    lines = history.iloc[::records][["method", "eta", "M", "K"]].reset_index(drop=True)
    lines = lines.assign(
        l2=l2,
        final_loss=run[:, -1],
        best_loss=run.min(axis=1),
        chaotic_final=last.astype(int),
        chaotic_best=best.astype(int),
    )
    known = published.runs().rename(columns={"final_loss": "published_final", "best_loss": "published_best"})
    return lines.merge(known, how="left", on=RUN, validate="one_to_one")[COLUMNS]


def deviations(runs: pd.DataFrame, which: str) -> pd.Series:
    """Relative deviation from the published number, "final" or "best", of the runs that can be compared.

    These do not depend on rounding, and their published number is known and finite: an overflow is no number.
    """
    compared = runs[(runs[f"chaotic_{which}"] == 0) & np.isfinite(runs[f"published_{which}"])]
    known = compared[f"published_{which}"]
    return ((compared[f"{which}_loss"] - known) / known).abs()


def points(runs: pd.DataFrame) -> pd.DataFrame:
    """The figures' points: of the runs at each figure's steps the best, with the published one.

    Columns `POINT`, eta, best_loss, chaotic (of that run), published_eta, published_loss and deviation,
    relative.
    """
    shown = pd.concat(
        [part[part["eta"].isin(FIGURE_STEPS[l2])] for l2, part in runs.groupby("l2", sort=False)]
    )
    shown = shown.sort_values([*POINT, "eta"], kind="stable").reset_index(drop=True)
    best = shown.loc[shown.groupby(POINT, sort=False)["best_loss"].idxmin()]
    best = best[[*RUN, "best_loss", "chaotic_best"]].rename(columns={"chaotic_best": "chaotic"})
    known = published.points().rename(columns={"eta": "published_eta", "best_loss": "published_loss"})
    best = best.merge(known, how="inner", on=POINT, validate="one_to_one")
    return best.assign(deviation=(best["best_loss"] / best["published_loss"] - 1).abs())


def every_point(ours: pd.DataFrame) -> pd.DataFrame:
    """All published points of an l2, with our objective where the point was run.

    Parameters
    ----------
    ours : of `points`.

    Returns
    -------
    DataFrame
        Columns `POINT`, best_loss, and run: whether it is ours.
    """
    known = published.points()
    known = known[known["l2"].isin(ours["l2"])]
    both = known.merge(ours[[*POINT, "best_loss"]], how="left", on=POINT, suffixes=("", "_ours"))
    run = both["best_loss_ours"].notna()
    return both[POINT].assign(best_loss=both["best_loss_ours"].where(run, both["best_loss"]), run=run)


def drawn(frame: pd.DataFrame, figure: Drawn) -> pd.DataFrame:
    """The points that a figure of the paper shows, of a frame with columns `POINT`."""
    other = "M" if figure.panels == "K" else "K"
    frame = frame[frame["method"].isin(figure.methods) & (frame["l2"] == figure.l2)]
    return frame[frame[figure.panels].isin(figure.values) & (frame[other] >= figure.first)]


def all_runs(inputs: Any) -> pd.DataFrame:
    """Runs of several grids, from `papers.inputs.Inputs`."""
    frames = [
        summary(inputs.experiment(experiment).l2, inputs.run(experiment, method))
        for experiment, method in inputs.runs()
    ]
    return pd.concat(frames, ignore_index=True)


def fresh_orders(inputs: Any) -> pd.DataFrame:
    """Comparison with FedAvg, luck and exponents on fresh seeds: one line an l2, K, M and method.

    mean, low and high are those of log10 (gap of the method / gap of FedAvg), paired; luck is the mean
    of log10 (gap of the best record at the authors' step / their published gap), luck_last that of the last;
    exponent is of the gap against M, over all M of one K, last_exponent over the two largest.
    """
    frames = []
    for experiment in inputs.experiments():
        l2 = inputs.experiment(experiment).l2
        histories = pd.concat([inputs.run(experiment, method) for method in inputs.methods(experiment)])
        frames.append(fresh_lines(l2, histories).assign(l2=l2))
    return pd.concat(frames, ignore_index=True)


def fresh_lines(l2: float, history: pd.DataFrame) -> pd.DataFrame:
    """Lines of one experiment, a method, K and M each; of FedAvg, too, which is compared with itself."""
    runs = history.groupby(["choice", "method", "K", "M", "replicate"])["gap"].agg(["min", "last"])
    decades = np.log10(runs)
    best = decades["min"]["searched"].unstack()  # noqa: PD010
    at_authors_step = decades.loc["authors"]
    known = published.points()
    known = known[known["l2"] == l2].set_index(["method", "K", "M"])["best_loss"] - OPTIMA[l2]
    exponents = {
        key: _exponents(by_M.droplevel(["method", "K"])) for key, by_M in best.groupby(["method", "K"])
    }
    rows = []
    for key, gaps in best.iterrows():
        method, K, M = key
        difference = (gaps - best.loc["fedavg", K, M]).to_numpy()
        mean, low, high = mean_interval(difference)
        luck = at_authors_step.loc[key] - np.log10(known[key])
        row = {"method": method, "K": K, "M": M, "mean": mean, "low": low, "high": high}
        row["p"] = p_value(difference) if method != "fedavg" else 1.0
        row |= {"luck": luck["min"].mean(), "luck_last": luck["last"].mean()}
        rows.append(row | exponents[method, K])
    frame = pd.DataFrame(rows)
    families = frame.groupby("method", sort=False)["p"]
    return frame.assign(p_holm=families.transform(lambda p: np.array(holm(p.tolist()), float)))


def half_the_rounds(history: pd.DataFrame) -> pd.DataFrame:
    """FedAc-I with half of FedAvg's rounds on fresh seeds: one line a K, of FedAvg, and M.

    mean and p are of log10 (gap of FedAc-I at 2 K / gap of FedAvg at K), paired.
    """
    searched = history[history["choice"] == "searched"]
    best = np.log10(searched.groupby(["method", "K", "M", "replicate"])["gap"].min()).unstack()  # noqa: PD010
    rows = []
    for (K, M), gaps in best.loc["fedavg"].iterrows():
        if ("fedac_1", 2 * K, M) in best.index:
            difference = (best.loc["fedac_1", 2 * K, M] - gaps).to_numpy()
            row = {"method": "fedac_1", "K": K, "M": M, "mean": difference.mean()}
            rows.append(row | {"p": p_value(difference)})
    frame = pd.DataFrame(rows, columns=["method", "K", "M", "mean", "p"])
    return frame.assign(p_holm=np.array(holm(frame["p"].tolist()), float))


def _exponents(decades: pd.DataFrame) -> dict[str, float]:
    """Exponents of the gap against M, with their intervals: over all M, and over the two largest."""
    exponents: dict[str, float] = {}
    for name, part in (("exponent", decades), ("last_exponent", decades.tail(2))):
        names = name, f"{name}_low", f"{name}_high"
        exponents |= dict(zip(names, mean_interval(slopes(part)), strict=True))
    return exponents


def slopes(decades: pd.DataFrame) -> NDArray:
    """Slope of each seed's decades (M by seed) against log10 M; NaN if there is only one M."""
    if len(decades) < 2:
        return np.full(decades.shape[1], np.nan)
    return np.polyfit(np.log10(decades.index.to_numpy(float)), decades.to_numpy(), 1)[0]
