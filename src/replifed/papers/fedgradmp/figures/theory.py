"""Theorem 5: errors and their bounds, and condition numbers of the clients (not in the paper)."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from replifed.figures.artefact import By, Grid, Reference
from replifed.figures.lines import GREY, SEQUENCE, Line
from replifed.figures.summaries import summarise
from replifed.papers.fedgradmp.measures import client_constants, promises
from replifed.papers.fedgradmp.paper import noise_name
from replifed.papers.inputs import Inputs


def _rates(inputs: Inputs) -> pd.DataFrame:
    """Measured |x_t - x*|^2 / |x*|^2 and its bound by round; and each client's restricted condition number.

    Column series is "error", "bound" or "condition". The bound is Theorem 5's for the solver "exact", Theorem
    7's for "gd".
    """
    history = inputs.run("isometry", "fedgradmp")
    history = history.assign(squared=np.maximum(history["error"], 1e-17) ** 2)
    frames = []
    for solver in ("exact", "gd"):
        for (_, noise, K), runs, promised in promises(history, inputs.experiment("isometry"), solver):
            measured = summarise(runs, ["condition"], "squared")
            # x* has length one, so squared errors are relative ones.
            bound = promised.kappa ** measured["round"] + promised.residual
            labelled = measured[["condition", "round", "mean", "low", "high", "seeds"]].assign(
                solver=solver, noise=noise, local_steps=K, kappa=promised.kappa, residual=promised.residual
            )
            frames.append(labelled.assign(series="error"))
            frames.append(labelled.assign(series="bound", mean=bound, low=bound, high=bound))
    for name in ("exact", "heterogeneity"):
        own = inputs.experiment(name)
        for alpha in own.alphas:
            constants = client_constants(own, alpha, own.replicates[0])
            labels = {"series": "condition", "experiment": name, "alpha": alpha, "seeds": 1}
            frames.append(pd.DataFrame({**labels, **constants.rename(columns={"condition": "mean"})}))
    frame = pd.concat(frames, ignore_index=True)
    # A column of numbers with gaps would come back from the CSV as text.
    frame = frame.fillna({"experiment": "isometry", "solver": "none"})
    return frame.fillna(0.0)


def _errors_and_conditions(frame: pd.DataFrame) -> pd.DataFrame:
    """Errors and bounds of exact sub-problems, for the least K, by round; conditions by client.

    Column panel is the title, kind is "rounds" or "clients", and x a round or a client.
    """
    theory, ratios = frame[frame["solver"] == "exact"], frame[frame["series"] == "condition"]
    theory = theory[theory["local_steps"] == theory["local_steps"].min()]
    frames = [
        theory.assign(
            panel=[
                f"near-isometric, K = {K:g}, {noise_name(noise)}"
                for K, noise in zip(theory["local_steps"], theory["noise"], strict=True)
            ],
            kind="rounds",
            curve=theory["series"] + " " + theory["condition"].map("{:g}".format),
            x=theory["round"],
        ),
        ratios.assign(
            panel="the paper's data, estimated",
            kind="clients",
            curve=ratios["experiment"] + " " + ratios["alpha"].map("{:g}".format),
            x=ratios["client"],
            seeds=0,
        ),
    ]
    return pd.concat(frames).drop(columns=["round", "low", "high"])


_BOUND = Line("bound of Theorem 5", GREY, ":", "", 1.2)


def _lines_of_rates(frame: pd.DataFrame) -> dict[str, Line]:
    theory, ratios = (frame[frame["kind"] == kind] for kind in ("rounds", "clients"))
    lines = {}
    for condition, line in By("condition", "ρ⁺/ρ⁻ = {:g}".format).lines(theory).items():
        lines[f"error {condition:g}"] = line
        bound = _BOUND._replace(label=f"{line.label}, bound", color=line.color, explained=False)
        lines[f"bound {condition:g}"] = bound
    clients = ratios[["curve", "experiment", "alpha"]].drop_duplicates().itertuples()
    for look, client in zip(itertools.cycle(SEQUENCE), clients, strict=False):
        label = f"α = {client.alpha:g}{' (Figure 9)' * (client.experiment == 'exact')}"
        lines[client.curve] = look._replace(label=label, dashes="", size=3.0)
    return lines


def _limits(panel: pd.DataFrame) -> tuple[float, float] | None:
    """Limits where errors fall to rounding at once, and would squeeze the bounds."""
    bounds = panel.loc[panel["series"] == "bound", "mean"]
    return (bounds.min() * 1e-3, 3.0) if len(bounds) else None


THEORY = Grid(
    "rates",
    prefix="FedGradMP",
    title="Theorem 5 (not in the paper)",
    caption="Squared error and the theorem's bound where its conditions hold, on near-isometric clients "
    "(the table has inexact sub-problems and Theorem 7's bound, too; errors below the axis are rounding); "
    "on the right each client's restricted condition number on the paper's own data, which exceeds what the "
    "theorem allows on every client.",
    source=_rates,
    shown=_errors_and_conditions,
    columns=[By("panel", str)],
    series="curve",
    lines=_lines_of_rates,
    metric="kind",
    x={"x": {"rounds": "communication rounds", "clients": "client i"}},
    log_x=False,
    y={"rounds": "relative error squared", "clients": "restricted ρ⁺/ρ⁻, 4τ coordinates"},
    log_y=True,
    limits=_limits,
    references=[Reference("2: the theorem needs less", y=2.0, where={"kind": "clients"})],
    others=[_BOUND],
    width=4.4,
    height=3.4,
    legend_columns=5,
)
