"""Errors, accuracies and supports of FedGradMP and its rivals; a video frame; Theorem 5; and Table I."""

from __future__ import annotations

import itertools
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from replifed.engine.simulate import simulate
from replifed.engine.tune import Spent
from replifed.figures.artefact import Made, by_name
from replifed.figures.grid import By, Grid, Reference, X
from replifed.figures.style import (
    BLUE,
    GREY,
    ORANGE,
    SEQUENCE,
    Line,
    canvas,
    sequence_lines,
    styled,
)
from replifed.figures.summaries import LEAST, summarise
from replifed.papers.fedgradmp import problems
from replifed.papers.fedgradmp.experiments import regression_method
from replifed.papers.fedgradmp.measures import client_constants, promises
from replifed.papers.fedgradmp.paper import (
    DICTIONARIES,
    DIGIT_LINES,
    EXACT_ROUNDS,
    EXPERIMENTS,
    LINES,
    METHODS,
    READINGS,
    declared,
)
from replifed.randomness import Streams

if TYPE_CHECKING:
    from replifed.papers.inputs import Inputs

_BANDS = (
    "Lines are geometric means over seeds, bands go from the best to the worst seed; a cross marks the round "
    "at which a seed diverged, and seeds that diverge are not in the mean."
)
_WORK = (
    "On the right the work that was counted instead of the paper's wall-clock time: gradients of single "
    "samples over all clients; a least-squares solution counts as the gradients that cost as much."
)
_STEPS = (
    "each at its best step, be it beyond the printed grid, and where that is another one, at its best "
    "printed step as well"
)
_SECONDS = (
    f"Relative error against processor seconds, {_STEPS}; of one repetition, as measured on the machine that "
    "made the figure; unlike all else, it differs from run to run."
)
_DIGITS = (
    "Means over seeds with 95 % intervals, each method at its best step, be it beyond the coarse grid; "
    "FedAvg, FedMid and FedDualAvg have no tau and stand in every row."
)

ERROR = "relative error |xₜ − x#| / |x#|"


def _prepared(history: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    return history.assign(
        series=history["method"] + "/" + history["variant"], work=history["sample_gradients"]
    )


def _of_both_steps(history: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """A curve for the best printed step, too, where that is another one than the best."""
    history = _prepared(history, inputs)
    if "reading" not in history:
        return history
    printed = history["reading"] == "printed"
    own = history[~printed].groupby("variant")["step"].first()
    history = history.assign(series=history["series"].where(~printed, history["series"] + "/printed"))
    return history[~printed | (history["step"] != history["variant"].map(own))]


def _at_best_step(history: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    if "reading" in history:
        history = history[history["reading"] == "own"]
    return _prepared(history, inputs)


def _noise(variance: float) -> str:
    return "noiseless" if variance == 0 else f"noise of variance {variance:.3g}"


def _in_order(column: str, label: str, frame: pd.DataFrame) -> dict[Any, Line]:
    """The values of a column, in order, and lines of a sequence."""
    return sequence_lines({one: label.format(one) for one in sorted(frame[column].unique())})


def _after_start(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["round"] > 0]


figure = partial(
    Grid,
    prefix="FedGradMP",
    prepare=_prepared,
    by=("experiment", "series"),
    series="series",
    lines=LINES,
    values=("error",),
    # While some seeds are at rounding errors and others not, an interval says nothing.
    centre="geometric",
    band="range",
    axes=("work", "bits"),
    y=ERROR,
    x={
        "round": "communication rounds",
        "work": "work, in gradients of single samples, all clients",
        "bits": "bits sent, both ways",
        "seconds": "processor seconds",
    },
    legend_columns=5,
)
# Figures 3 to 5: rounds on the left, counted work on the right.
comparison = partial(figure, prepare=_of_both_steps, columns=[X("round", "work")], legend_columns=3)


def swept(name: str, column: str, label: str, **more: Any) -> Grid:
    """Figures 1, 10 and 11: a curve for each value of a column; noiseless on the left, noisy on the right."""
    return figure(
        name,
        by=("experiment", "noise", column),
        columns=[By("noise", _noise)],
        series=column,
        lines=partial(_in_order, column, label),
        **more,
    )


# -- Processor seconds ---------------------------------------------------------------------------------


def _seconds(inputs: Inputs) -> pd.DataFrame:
    """Error of the first repetition against the seconds that a few rounds of it take, run anew and timed.

    Processor seconds on one thread: the only numbers that differ from run to run.
    """
    rounds = inputs.options.rounds
    frames = []
    for experiment in inputs.experiments():
        own = inputs.experiment(experiment)
        replicate = own.replicates[0]
        data, _ = problems.regression(own, own.alphas[0], own.noises[0], replicate)
        streams = Streams(own.seed, (replicate,))
        for method in inputs.methods(experiment):
            history = _of_both_steps(inputs.run(experiment, method).assign(experiment=experiment), inputs)
            history = history.assign(error=np.maximum(history["error"], LEAST))
            for variant, curve in history[history["replicate"] == replicate].groupby("variant", sort=False):
                step = curve["step"].to_numpy()[:1]  # a round takes as long with another one
                algorithm = regression_method(method, own, variant, step, own.local_steps[0])
                # Once to set up what a problem keeps between rounds, such as its features by column.
                simulate(algorithm, data, streams, 1, metrics={})
                began = time.process_time()
                simulate(algorithm, data, streams, rounds, metrics={})
                each = (time.process_time() - began) / rounds
                frame = summarise(curve, ("experiment", "series"), "error", band="range", axes=())
                frames.append(frame.assign(seconds=frame["round"] * each, seconds_a_round=each))
    return pd.concat(frames, ignore_index=True)


timed = partial(figure, source=_seconds, columns=[X("seconds")], width=6.4, legend_columns=2)


# -- Digits --------------------------------------------------------------------------------------------

WRITERS = {"train_accuracy": "training writers", "test_accuracy": "test writers"}


def _with_tau(frame: pd.DataFrame) -> pd.DataFrame:
    """Name the sparsity level; methods without one have tau = 0."""
    sparse = frame["method"].isin(["fedgradmp", "fediterht"])
    tau = pd.to_numeric(frame["variant"].where(sparse, "0")).astype(int)
    return frame.assign(tau=tau).drop(columns="variant")


def _dense_in_every_row(frame: pd.DataFrame) -> pd.DataFrame:
    dense, sparse = frame[frame["tau"] == 0], frame[frame["tau"] > 0]
    copies = (dense.assign(tau=tau) for tau in sorted(sparse["tau"].unique()))
    return _after_start(pd.concat([sparse, *copies], ignore_index=True))


def _at_common_tau(frame: pd.DataFrame) -> pd.DataFrame:
    """Keep each tau that both dictionaries have."""
    frame = _with_tau(frame)
    common = set.intersection(*(set(one["tau"]) for _, one in frame.groupby("experiment")))
    return frame[frame["tau"].isin(common)]


def _training_writers(frame: pd.DataFrame) -> pd.DataFrame:
    return _after_start(frame[frame["panel"] == "train_accuracy"])


def _digits(history: pd.DataFrame, inputs: Inputs) -> pd.DataFrame:
    """Of the best steps, as often as all methods are recorded."""
    (every,) = {inputs.experiment(name).record_every for name in inputs.experiments()}
    return _at_best_step(history[history["round"] % every == 0], inputs)


digits = partial(
    figure,
    prepare=_digits,
    by=("experiment", "method", "variant"),
    metric="panel",
    values=tuple(WRITERS),
    centre="mean",
    band="ci",
    log_y=False,
)
by_writer = partial(
    digits,
    finish=_with_tau,
    shown=_dense_in_every_row,
    rows=[By("tau", "τ = {}".format)],
    series="method",
    lines=DIGIT_LINES,
    y="accuracy",
    height=2.3,
)
dictionaries = partial(
    digits,
    finish=_at_common_tau,
    shown=_training_writers,
    series="experiment",
    lines=DICTIONARIES,
    y="training accuracy",
    width=3.6,
)


# -- Figure 8 ------------------------------------------------------------------------------------------

# The text's left panel has these steps and larger ones, its right panel the smaller ones.
LARGE = 0.004
RATES = {"large": "large steps", "small": "small steps", "loss": "small steps"}


def _by_rates(frame: pd.DataFrame) -> pd.DataFrame:
    error, large = frame["panel"] == "error", frame["step"] >= LARGE
    panel = np.select([error & large, error, ~large], list(RATES), "")
    return frame.assign(panel=panel)[panel != ""].reset_index(drop=True)


def _ranged_by_all(frame: pd.DataFrame) -> pd.DataFrame:
    # The left column shows how errors grow: there, runs that diverge set the range as well.
    return frame.assign(diverged=frame["diverged"].where(frame["panel"] != "large", 0))


SUPPORT = {
    "precision": "precision: share of the model's non-zeros",
    "recall": "recall: share of the true ones",
}


# -- Figure 2 ------------------------------------------------------------------------------------------


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
        row[0].imshow(original, cmap="gray", vmin=0, vmax=1)
        row[1].imshow(recovered, cmap="gray", vmin=0, vmax=1)
        shown = row[2].imshow(difference, cmap="RdBu", vmin=-span, vmax=span)
        made.colorbar(shown, ax=row[2], shrink=0.8)
        ratio, best = one["psnr"].iloc[0], one["best_psnr"].iloc[0]
        texts = (
            f"{EXPERIMENTS[name]}: original",
            f"recovered, PSNR {ratio:.1f} dB\n(best {best:.1f} dB)",
            "difference",
        )
        for ax, text in zip(row, texts, strict=True):
            ax.set_title(text, loc="left")
            ax.set(xlabel="column", ylabel="line")
            ax.grid(False)
    return made


# -- Theorem 5 -----------------------------------------------------------------------------------------


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
            kept = measured[["condition", "round", "mean", "low", "high", "seeds"]].assign(
                solver=solver, noise=noise, local_steps=K, kappa=promised.kappa, residual=promised.residual
            )
            frames.append(kept.assign(series="error"))
            frames.append(kept.assign(series="bound", mean=bound, low=bound, high=bound))
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
                f"near-isometric, K = {K:g}, {_noise(noise)}"
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
    for condition, line in _in_order("condition", "ρ⁺/ρ⁻ = {:g}", theory).items():
        lines[f"error {condition:g}"] = line
        bound = _BOUND._replace(label=f"{line.label}, bound", color=line.color, explained=False)
        lines[f"bound {condition:g}"] = bound
    clients = ratios[["curve", "experiment", "alpha"]].drop_duplicates().itertuples()
    for look, client in zip(itertools.cycle(SEQUENCE), clients, strict=False):
        label = f"α = {client.alpha:g}{' (Figure 9)' * (client.experiment == 'exact')}"
        lines[client.curve] = look._replace(label=label, dashes="", size=3.0)
    return lines


def _bounds_in_sight(panel: pd.DataFrame) -> tuple[float, float] | None:
    """Limits where errors fall to rounding at once, and would squeeze the bounds."""
    bounds = panel.loc[panel["series"] == "bound", "mean"]
    return (bounds.min() * 1e-3, 3.0) if len(bounds) else None


# -- Tables --------------------------------------------------------------------------------------------

# Names in the table: FedHT and FedIterHT share a line.
NAMES = {**METHODS, "fediterht": "FedHT / FedIterHT"}


def _table1(inputs: Inputs) -> pd.DataFrame:
    """One line a method: what it declares, its client steps on Figure 4's data, and what searches cost.

    Columns such as tuning_mild_bits say what the search of an experiment used, zero without one.
    """
    rows = []
    searched = list(dict.fromkeys(name for name, _ in inputs.searches()))
    for experiment, method in inputs.runs():
        history = inputs.run(experiment, method)
        steps = sorted(set(history["step"].dropna()))
        final = history[history["round"] == history["round"].max()]["error"]
        row = {
            "method": method,
            **declared(method),
            "steps_run": " ".join(f"{step:g}" for step in steps),
            "best_final_error": float(np.min(final)),
        }
        for name in searched:
            found = inputs.tuned(name, method) if inputs.has(f"tuned:{name}/{method}") else {}
            cost = found.get("cost", Spent().record())
            row |= {f"tuning_{name}_{kind}": amount for kind, amount in cost.items()}
        rows.append(row)
    return pd.DataFrame(rows)


def _mark(holds: bool) -> str:
    return "✓" if holds else "✗"


def _render_table1(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table for people."""
    rows = []
    for row in frame.to_dict("records"):
        line = {
            "Method": NAMES[row["method"]],
            "Dictionary sparsity": _mark(row["dictionary"]),
            "Linear convergence to the optimal statistical bias": _mark(row["linear_to_bias"])
            + "*" * row["growing_batches"],
            "No client step size": _mark(row["no_client_step"]) + "**" * row["no_step_for_least_squares"],
            "Unbounded dissimilarity": _mark(row["unbounded_dissimilarity"]),
            "Client step sizes run here": str(row["steps_run"]) or "none",
        }
        for name, label in EXPERIMENTS.items():
            if f"tuning_{name}_runs" in frame:
                cost = Spent(*(row[f"tuning_{name}_{kind}"] for kind in Spent().record()))
                line[f"Tuning, {label}"] = str(cost)
        rows.append(line)
    return pd.DataFrame(rows)


FIGURES = by_name(
    swept(
        "fig1",
        "alpha",
        "α = {:g}",
        title="Figure 1: linear convergence",
        caption=(
            f"Relative error of FedGradMP with K = 1 against rounds for four variances alpha of the clients' "
            f"means; noiseless on the left, noisy on the right. {_BANDS}"
        ),
    ),
    Made(
        "fig2",
        "Figure 2: sparse video recovery",
        (
            "A frame, what FedGradMP recovers of it with up to 50 K-SVD atoms and 30 measurements at each of "
            "50 clients, and the difference: of the xylophone clip, and of a drawn clip with as many frames "
            "as the paper's. Best: the approximation by as many atoms that matching pursuit finds with the "
            "frame at hand."
        ),
        _frames,
        _draw_frames,
    ),
    comparison(
        "fig3",
        title="Figure 3: low heterogeneity",
        caption=f"Relative error of all methods against rounds, {_STEPS}. {_WORK} {_BANDS}",
    ),
    comparison(
        "fig4",
        title="Figure 4: high heterogeneity",
        caption=f"As Figure 3, with clients' means of variance 0.5. {_WORK} {_BANDS}",
    ),
    comparison(
        "fig5",
        title="Figure 5: many non-zeros",
        caption=f"As Figure 4 with 400 non-zeros, FedGradMP with gradient descent inside. {_WORK} {_BANDS}",
    ),
    *(
        timed(f"fig{number}_seconds", title=f"Figure {number} in seconds", caption=_SECONDS)
        for number in (3, 4, 5)
    ),
    by_writer(
        "fig6",
        title="Figure 6: digits by writer",
        caption=(
            f"Accuracy on the training writers (left) and on others (right) against rounds, a row for each "
            f"sparsity level tau, which the paper does not state. {_DIGITS}"
        ),
        columns=[By("panel", WRITERS)],
    ),
    by_writer(
        "fig6_bits",
        title="Figure 6 against bits (not in the paper)",
        caption=f"The accuracies of Figure 6 against the bits sent both ways. {_DIGITS}",
        columns=[By("panel", WRITERS), X("bits")],
    ),
    dictionaries(
        "fig7",
        title="Figure 7: random Gaussian dictionary",
        caption=(
            "Training accuracy of FedGradMP with the standard basis of 784 pixels and with 200 random "
            f"Gaussian atoms, at equal tau; 2000 is all of their coefficients. {_DIGITS.split(';')[0]}."
        ),
        columns=[By("tau", "τ = {}".format)],
    ),
    dictionaries(
        "fig7_bits",
        title="Figure 7 against bits (not in the paper)",
        caption=f"The accuracies of Figure 7 against the bits sent both ways. {_DIGITS.split(';')[0]}.",
        columns=[By("tau", "τ = {}".format), X("bits")],
    ),
    figure(
        "fig8",
        title="Figure 8: FedIterHT's learning rates",
        caption=(
            "Relative error of FedIterHT at the larger steps, at the smaller ones, and the latter's loss; "
            "the PDF has a page for each way to read what the paper leaves open. On the left, curves end "
            f"where all seeds have diverged. {_BANDS}"
        ),
        by=("experiment", "variant", "step"),
        metric="panel",
        values=("error", "objective"),
        finish=_by_rates,
        shown=_ranged_by_all,
        pages=[By("variant", READINGS)],
        columns=[By("panel", RATES)],
        series="step",
        lines=partial(_in_order, "step", "{:g}"),
        y={"large": ERROR, "small": ERROR, "loss": "loss"},
        width=4.0,
        legend_columns=7,
    ),
    figure(
        "fig8_baselines",
        title="Figure 8's steps with other methods (not in the paper)",
        caption=(
            "Relative error of FedMid, FedDualAvg and FedAvg at the steps and on the data of Figure 8, with "
            "the loss as printed; the text says that they behave as FedIterHT does. Curves end where all "
            f"seeds have diverged. {_BANDS}"
        ),
        by=("experiment", "method", "step"),
        shown=partial(pd.DataFrame.assign, diverged=0),
        columns=[By("method", METHODS)],
        series="step",
        lines=partial(_in_order, "step", "{:g}"),
        log_y=True,
        width=4.0,
        legend_columns=7,
    ),
    figure(
        "bias",
        title="Remark 4: the bias and the number of clients (not in the paper)",
        caption=(
            "Relative error of FedGradMP with all samples of clients whose data have one law. What is left "
            f"is noise, of which four times as many clients should leave half. {_BANDS}"
        ),
        by=("experiment",),
        series="experiment",
        lines={"bias": Line("10 clients", BLUE, "-", "o"), "bias_many": Line("40 clients", ORANGE, "-", "s")},
        width=4.4,
    ),
    figure(
        "fig9",
        title="Figure 9: exact recovery",
        caption=(
            "Relative error and loss of FedGradMP with K = 3 on the data of Figure 8. Dotted: the rounds to "
            f"machine precision that the paper prints. {_BANDS}"
        ),
        metric="panel",
        values=("error", "objective"),
        columns=["panel"],
        y={"error": ERROR, "objective": "loss"},
        references=[
            Reference(
                f"published: {EXACT_ROUNDS} rounds",
                x=EXACT_ROUNDS,
                where={"panel": "error"},
                claim="fig9.rounds",
            )
        ],
        width=3.8,
    ),
    swept(
        "fig10",
        "local_steps",
        "K = {}",
        title="Figure 10: number of local iterations",
        caption=(
            "Relative error of FedGradMP for each number of local iterations K; noiseless on the left, "
            f"noisy on the right. {_BANDS}"
        ),
    ),
    swept(
        "fig11",
        "cohort",
        "{} clients",
        title="Figure 11: cohort size",
        caption=(
            "Relative error of FedGradMP for each number of clients that take part in a round; noiseless on "
            "the left, noisy on the right; at the dimension of all other figures and at the printed one. "
            f"{_BANDS}"
        ),
        rows=[By("experiment", EXPERIMENTS)],
    ),
    figure(
        "supports",
        title="Support recovery (not in the paper)",
        caption="Precision and recall of the support of the server's model on the data of Figures 3 and 4.",
        prepare=_at_best_step,
        metric="panel",
        values=tuple(SUPPORT),
        centre="mean",
        band="ci",
        shown=_after_start,
        rows=[By("experiment", EXPERIMENTS)],
        columns=[By("panel", SUPPORT)],
        y="share",
        log_y=False,
        legend_columns=3,
    ),
    Grid(
        "rates",
        prefix="FedGradMP",
        title="Theorem 5 (not in the paper)",
        caption=(
            "Squared error and the theorem's bound where its conditions hold, on near-isometric clients (the "
            "table has inexact sub-problems and Theorem 7's bound, too; errors below the axis are rounding); "
            "on the right each client's restricted condition number on the paper's own data, which exceeds "
            "what the theorem allows on every client."
        ),
        source=_rates,
        shown=_errors_and_conditions,
        columns=[By("panel", str)],
        series="curve",
        lines=_lines_of_rates,
        metric="kind",
        x={"x": {"rounds": "communication rounds", "clients": "client i"}},
        x_column="x",
        log_x=False,
        y={"rounds": "relative error squared", "clients": "restricted ρ⁺/ρ⁻, 4τ coordinates"},
        log_y=True,
        limits=_bounds_in_sight,
        references=[Reference("2: the theorem needs less", y=2.0, where={"kind": "clients"})],
        others=[_BOUND],
        width=4.4,
        height=3.4,
        legend_columns=5,
    ),
)

TABLES = by_name(
    Made(
        "table1",
        "Table I: comparison of methods",
        (
            "What each method declares of itself, and the client step sizes it ran with on Figure 4's data. "
            "* needs minibatches that grow exponentially. ** needs none for least squares. Tuning: what the "
            "searches for these steps and for those of the other comparisons used, over all of a method's "
            "variants."
        ),
        _table1,
        _render_table1,
    ),
)
