"""Spaces of aggregation, control variates, EM, transport; clients of MovieLens; and the toy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from replifed.algorithms.looks import method_line
from replifed.figures.artefact import By, Grid, Made, Reference, X, by_name
from replifed.figures.lines import BLUE, ORANGE, SHORT, Line, sequence_lines
from replifed.figures.style import canvas, styled
from replifed.figures.summaries import averages
from replifed.papers.fedmm.experiments import tuned_betas
from replifed.papers.fedmm.paper import EXPERIMENTS, FIRST_ROUNDS, METHODS, METRICS, SHORTER, best_asked
from replifed.papers.fedmm.problems import TOYS
from replifed.papers.inputs import Inputs

_MARKS = (
    "The available text has lost its formulas and numbers. Recovered: 10 independent runs (here more on "
    "synthetic data in Figure 1, fewer on MovieLens), equal-size constrained k-means, 5000 users of "
    "MovieLens 1M, all metrics. Inferred: the algorithm's lines, the quantiser, the metrics' normalisation, "
    "that a subsample of users is random. Chosen: all sizes (p, K, N, n, λ, η), minibatches, bits, "
    "the family and range of steps, the number of rounds; those of synthetic data are ones with which the "
    "figure comes out. See the marks in config/papers/fedmm.yaml."
)
_BANDS = "Lines are means over seeds, bands one standard deviation."
_METRICS = (
    "Columns: objective (28) on all data; squared update of the parameter over γ², of T(S) for FedMM; "
    "squared update of the surrogate over γ², of the mirror of θ for parameter aggregation. All are drawn in "
    "the first 20 rounds and every tenth; those that code all samples are recorded in these rounds only."
)

figure = partial(
    Grid,
    prefix="FedMM",
    log_bands=True,
    rows=[By("experiment", EXPERIMENTS)],
    columns=["metric"],
    series="method",
    lines=METHODS,
    metric="metric",
    settings={"beta": "β"},
    x={
        "round": "communication rounds",
        "bits": "bits sent by the clients",
        "gradients": "gradients of a sample, clients and server",
    },
    y=METRICS,
    log_y={"parameter_update": True, "surrogate_update": True},
    width=3.6,
    height=2.4,
)


def _metrics(histories: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Average all metrics in every round at first, then in every tenth: those in which all is recorded."""
    drawn = (one[(one["round"] < FIRST_ROUNDS) | (one["round"] % 10 == 0)] for one in histories)
    by = ["experiment", "method", "beta", "alpha", "participation", "batch", "message_bits"]
    # An update is of the round behind it; round 0 has none.
    first = {"parameter_update": 1, "surrogate_update": 1}
    return averages(drawn, by, list(METRICS), metric="metric", first=first, band="sd")


def _at_step(inputs: Inputs, reading: str) -> pd.DataFrame:
    """Metrics of each method at its tuned step, or at FedMM's ("common")."""
    frames = []
    for experiment, method in inputs.runs():
        history = inputs.run(experiment, method).assign(experiment=experiment)
        beta = tuned_betas(inputs.tuned(experiment, method))[reading]
        frames.append(history[history["beta"] == beta])
    return _metrics(frames)


def _of_shorter_range(inputs: Inputs) -> pd.DataFrame:
    """Metrics of each method at its best step of the shorter range."""
    searched_alone = {runs: data for data, runs in SHORTER.items()}
    frames = []
    for experiment, method in inputs.runs():
        history = inputs.run(experiment, method).assign(experiment=searched_alone.get(experiment, experiment))
        if experiment not in searched_alone:
            beta = best_asked(inputs.tuned(experiment, method), inputs.experiment(experiment))
            history = history[history["beta"] == beta]
        frames.append(history)
    return _metrics(frames)


def _by_settings(inputs: Inputs) -> pd.DataFrame:
    frame = _metrics(inputs.histories())
    pairs = zip(frame["alpha"], frame["participation"], strict=True)
    return frame.assign(setting=[f"{alpha:g},{share:g}" for alpha, share in pairs])


def _lines_of_settings(frame: pd.DataFrame) -> Mapping[str, Line]:
    settings = frame.sort_values(["participation", "alpha"], ascending=[False, True])
    active = (100 * settings["participation"]).map(", {:.0f} % active".format)
    labels = "α = " + settings["alpha"].map("{:g}".format) + active
    return sequence_lines(dict(zip(settings["setting"], labels, strict=True)))


EM_LINES = {
    "sa_ssmm/exact": method_line("sa_ssmm", "EM on all data", width=4.0),
    "fedmm/exact": method_line("fedmm", "FedMM, all clients and samples, step 1", dashes=SHORT, marker=""),
    "fedmm/federated": method_line("fedmm", "FedMM, half of the clients, minibatches, 8 bits"),
}


def _above_em(inputs: Inputs) -> pd.DataFrame:
    """Objectives above the lowest that EM reaches with the same seed, and mean fields."""
    frames = []
    for history in inputs.histories():
        em = inputs.run(history["experiment"].iloc[0], "sa_ssmm")
        best = history["replicate"].map(em.groupby("replicate")["objective"].min())
        # Below 1e-14 of the objective, and 1e-28 of a square, rounding and not the method decides.
        gap = (history["objective"] - best).clip(lower=1e-14 * best.abs())
        field = history["mean_field"].clip(lower=1e-28)
        curve = history["method"] + "/" + history["reading"]
        frames.append(history.assign(curve=curve, gap=gap, mean_field=field))
    by, values = ["experiment", "curve"], ["gap", "mean_field"]
    return averages(frames, by, values, metric="metric", centre="geometric", band="sd")


def _transport(inputs: Inputs) -> pd.DataFrame:
    frames = (history.assign(gradients=history["sample_gradients"]) for history in inputs.histories())
    by, axes = ["dim", "method", "step", "linear_uvp"], ["iterations", "bits", "gradients"]
    return averages(frames, by, ["uvp"], band="sd", axes=axes)


def _clients(inputs: Inputs) -> pd.DataFrame:
    """Ratings per user of each client, and squared distances within it and to the mean of all."""
    frames = []
    for experiment in inputs.experiments():
        clients = inputs.partition_table(experiment)
        clients = clients[clients["replicate"] == clients["replicate"].iloc[0]].drop(columns="replicate")
        clients.insert(0, "experiment", experiment)
        frames.append(clients)
    return pd.concat(frames, ignore_index=True)


@styled
def _draw_clients(frame: pd.DataFrame) -> Figure:
    """Draw the table of `_clients`, a row for each experiment."""
    experiments = list(dict.fromkeys(frame["experiment"]))
    title = "FedMM · Clients of MovieLens 1M (not in the paper)"
    made, axes = canvas(len(experiments), 2, title=title, width=4.4, height=2.6)
    for (left, right), experiment in zip(axes, experiments, strict=True):
        clients = frame[frame["experiment"] == experiment].sort_values("entries")
        position = np.arange(1, len(clients) + 1)
        left.bar(position, clients["entries"], color=BLUE)
        left.set_ylabel("ratings per user of the selected films")
        right.bar(position, clients["spread"], color=BLUE, label="within the client")
        offset = {"color": ORANGE, "label": "to the mean of all"}
        right.bar(position, clients["offset"], bottom=clients["spread"], **offset)
        right.set_ylabel("mean squared distance")
        right.legend(fontsize=7)
        for ax in (left, right):
            ax.set_title(EXPERIMENTS[experiment], loc="left")
            ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
            ax.set_xlabel(f"clients, {int(clients['size'].iloc[0])} users each")
    return made


# -- Tables --------------------------------------------------------------------------------------------

# Interpretations of Remark 1's example.
TOY_NAMES = {"interval": "(θ − z)² / 2 on [−1, 1], T(s) = clip(s)", "rate": "θ z − log θ, T(s) = 1 / s"}


def _remark1(inputs: Inputs) -> pd.DataFrame:
    """Model after each round, its distance to the solution, and the solution T(mean of z)."""
    frames = []
    for experiment in inputs.experiments():
        for reading, z in inputs.experiment(experiment).values:
            solution = float(TOYS[reading].T(np.array([np.mean(z)]))[0])
            for method in inputs.methods(experiment):
                history = inputs.run(experiment, method)
                history = history[(history["reading"] == reading) & (history["round"] > 0)]
                error = history["theta"] - solution
                texts = " ".join(f"{value:g}" for value in z)
                frames.append(history.assign(z=texts, solution=solution, error=error))
    columns = ["reading", "z", "method", "round", "theta", "solution", "error"]
    return pd.concat(frames, ignore_index=True)[columns]


def _render_remark1(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the first and the last round of each interpretation as texts."""
    rows = []
    for (reading, method), lines in frame.groupby(["reading", "method"], sort=False):
        first, last = lines.iloc[0], lines.iloc[-1]
        rows.append(
            {
                "Loss": TOY_NAMES[reading],
                "Clients' z": first["z"],
                "Aggregation of": "surrogates (FedMM)" if method == "fedmm" else "parameters",
                "θ after round 1": f"{first['theta']:.6g}",
                f"θ after round {last['round']}": f"{last['theta']:.6g}",
                "Solution": f"{first['solution']:.6g}",
                "Error": f"{last['error']:.3g}",
            }
        )
    return pd.DataFrame(rows)


FIGURES = by_name(
    figure(
        "fig1",
        title="Figure 1: space of aggregation",
        caption="FedMM against aggregation of parameters, each at its own tuned step. The search goes on "
        f"until the best step lies inside its range. {_METRICS} {_BANDS} {_MARKS}",
        source=lambda inputs: _at_step(inputs, "own"),
    ),
    figure(
        "fig1_common",
        title="Figure 1 at one step for both methods",
        caption=f"As Figure 1, with the step tuned for FedMM in both methods. {_METRICS} {_BANDS} {_MARKS}",
        source=lambda inputs: _at_step(inputs, "common"),
    ),
    figure(
        "fig1_shorter",
        title="Figure 1 with steps from a shorter range",
        caption="As Figure 1, each method at its best step of 0.3, 1 and 3, the range with which the sizes "
        f"were chosen: the inferred settings. {_METRICS} {_BANDS} {_MARKS}",
        source=_of_shorter_range,
    ),
    figure(
        "fig2",
        title="Figure 2: control variates",
        caption="FedMM with all local samples and no quantisation, with (α > 0) and without (α = 0) control "
        f"variates, at two shares of active clients; β = 1. {_METRICS} {_BANDS} {_MARKS}",
        source=_by_settings,
        series="setting",
        lines=_lines_of_settings,
        legend_columns=3,
    ),
    figure(
        "fig3",
        title="Figure 3: federated optimal transport",
        caption="L2-UVP of the learned map, per round and per gradient, of FedMM-OT and FedAdam in several "
        "dimensions, with the best linear map for reference. The coupled objective (33) is unbounded below, "
        "so in both methods the potential's gradient holds the other map fixed, and the conjugate "
        "maximises. The weight of the cycle term is not stated, and zero here. Clients' step, "
        "server's step and control variates are chosen here. Runs of both methods are sensitive to "
        "rounding: perturbed in their last bits they end elsewhere.",
        source=_transport,
        rows=[X("round", "gradients")],
        columns=[By("dim", "D = {}".format)],
        metric=None,
        settings={"step": "γ"},
        y="L2-UVP, %",
        log_y=True,
        references=[Reference("best linear map", y="linear_uvp")],
        height=2.5,
    ),
    figure(
        "em",
        title="EM examples (not in the paper)",
        caption="The examples of Appendix C on heterogeneous clients: with all clients, all samples and step "
        "1 FedMM is EM; with half of the clients, minibatches and 8 bits it becomes stationary up to noise, "
        "as Theorem 1 promises: the mean field h(S) = E s(Z, T(S)) − S is nearly zero. If there are "
        "several stationary points, it may reach another one than EM. Lines are geometric means over seeds, "
        "bands one standard deviation of the logarithm. The law of the random effect, N(0, 1), and all "
        "sizes are chosen here.",
        source=_above_em,
        log_bands=False,
        rows=["metric"],
        columns=[By("experiment", EXPERIMENTS)],
        series="curve",
        lines=EM_LINES,
        settings={},
        y={"gap": "objective above EM's lowest", "mean_field": "mean field, $|h(S)|^2$"},
        log_y=True,
        legend_columns=3,
    ),
    Made(
        "partitions",
        "Clients of MovieLens 1M (not in the paper)",
        "Clients formed by constrained k-means from 5000 users, random or those with the most ratings.",
        _clients,
        _draw_clients,
    ),
)

TABLES = by_name(
    Made(
        "remark1",
        "Remark 1: the toy",
        "The example has lost its formulas; two losses are tried. Aggregating surrogates gives the solution "
        "in the first round, aggregating parameters a constant that is not the solution.",
        _remark1,
        _render_remark1,
    )
)
