"""Tables I to IV, exact convergence, variants of the algorithm, and results of the searches."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd

from replifed.algorithms.registry import method_class
from replifed.engine.trials import Spent
from replifed.figures.artefact import Made, by_name
from replifed.figures.summaries import over_repetitions, with_interval
from replifed.papers.fedplt.measures import kept, printed_norms
from replifed.papers.fedplt.methods import FREE, PARAMETERS, PARTIAL
from replifed.papers.fedplt.paper import COLUMNS, METHODS, READINGS, STORED, TABLE2, TABLE3, TABLE4, WAITING
from replifed.papers.inputs import Inputs

# Not counted: properties that the methods' papers prove.
ALLOWED = {
    "fedplt": ("any; (S)GD, acc. GD, noisy GD analysed", ">= 1", "strongly convex, composite"),
    "fedpd": ("(S)GD", ">= a least number", "non-convex"),
    "fedlin": ("(S)GD", ">= 1", "non-convex"),
    "tamuna": ("(S)GD", "random", "strongly convex"),
    "led": ("(S)GD", ">= 1", "non-convex"),
    "fivegcs": ("any with a descent property", ">= a least number", "strongly convex"),
}


def _table1(inputs: Inputs) -> pd.DataFrame:
    methods = inputs.methods("footprint")
    counted = pd.concat([inputs.run("footprint", method) for method in methods], ignore_index=True)
    allowed = pd.DataFrame([ALLOWED[method] for method in methods], columns=["solvers", "epochs", "problems"])
    return pd.DataFrame(
        {
            "method": methods,
            "state": list(map(_formula, counted["each"], counted["shared"])),
            "stored": [
                _formula(*kept(state.each, state.shared, WAITING[state.method]))
                for state in counted.itertuples()
            ],
            "stored_published": [_formula(*STORED[method]) for method in methods],
            **counted[["up", "down", "exchanges"]],
            "partial": ["yes" if method_class(method).partial_participation else "no" for method in methods],
            "gradients": list(map(_between, counted["fewest"], counted["most"])),
            **allowed,
        }
    )


def _show_table1(frame: pd.DataFrame) -> pd.DataFrame:
    sent = [f"{up:g} / {down:g}" for up, down in zip(frame["up"], frame["down"], strict=True)]
    return pd.DataFrame(
        {
            "Algorithm": frame["method"].map(METHODS),
            "Models kept from round to round (counted)": frame["state"],
            "Models kept between communications": frame["stored"],
            "Variables stored (published)": frame["stored_published"],
            "Models sent per agent and round, up / down": sent,
            "Exchanges a round": frame["exchanges"].astype(str),
            "Gradients per agent and round, of 3 local epochs (counted)": frame["gradients"],
            "Local solvers": frame["solvers"],
            "Local epochs": frame["epochs"],
            "Partial participation": frame["partial"],
            "Problems": frame["problems"],
        }
    )


def _formula(each: int, shared: int) -> str:
    """Return a N + b as the paper writes it.

    >>> _formula(2, 1), _formula(1, 3), _formula(0, 1)
    ('2N+1', 'N+3', '1')
    """
    return {0: "", 1: "N+"}.get(each, f"{each}N+") + f"{shared}"


def _between(fewest: int, most: int) -> str:
    return f"{fewest}" if fewest == most else f"{fewest} to {most}"


CELL = ["reading", "solver", "cohort"]
COSTS = ["tuning_runs", "tuning_rounds", "tuning_bits"]


def _table2(inputs: Inputs, readings: tuple[str, ...]) -> pd.DataFrame:
    """Mean rates of some readings, and the bias of FedAvg."""
    (experiment,) = inputs.experiments()
    agents, frames = inputs.experiment(experiment).agents, []
    for method in inputs.methods(experiment):
        history = inputs.run(experiment, method)
        history = history[history["reading"].isin(readings)]
        if method != "fedavg" and len(history):
            frames.append(_rates(method, history, agents))
    # FedAvg converges, but to another point: its last relative error.
    bias = over_repetitions(inputs.run(experiment, "fedavg"), CELL, "error")
    bias = bias.assign(method="fedavg", participation="all", **dict.fromkeys(COSTS, 0))
    return pd.concat([*frames, bias.assign(reading="natural step")], ignore_index=True)


def _rates(method: str, history: pd.DataFrame, agents: int) -> pd.DataFrame:
    """Mean rates by solver and number of active agents, with published ones and the costs of searches."""
    cells = over_repetitions(history, CELL, "rate")
    per_exchange = history.assign(rate=history["rate"] ** (1 / history["exchanges"]))
    cells["per_exchange"] = over_repetitions(per_exchange, CELL, "rate")["mean"]
    cells[COSTS] = history.groupby(CELL, sort=False)[COSTS].first().to_numpy()
    cells.insert(0, "method", method)
    cells["participation"] = cells["cohort"].eq(agents).map({True: "all", False: "half"})
    printed = dict(zip(COLUMNS, TABLE2[method], strict=True))
    pairs = zip(cells["solver"], cells["participation"], strict=True)
    return cells.assign(published=[printed[pair] for pair in pairs])


def _show_table2(frame: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for (method, reading), cells in frame.groupby(["method", "reading"], sort=False):
        row = {"Algorithm": METHODS[method], "Parameters": READINGS.get(reading, reading)}
        for (solver, who), name in COLUMNS.items():
            cell = cells[(cells["solver"] == solver) & (cells["participation"] == who)]
            if cell.empty:
                text = "not run" if method in (*PARTIAL, "fedavg") or who == "all" else "N/A"
            elif method == "fedavg":
                text = f"stops at a relative error of {cell.iloc[0]['mean']:.2f}"
            else:
                text = f"{with_interval(cell.iloc[0])} [{float(cell.iloc[0]['published']):.3f}]"
            row[f"{name} [published]"] = text
        if frame["tuning_runs"].any():
            row["Its searches"] = str(Spent(*cells[COSTS].sum()))
        rows.append(row)
    return pd.DataFrame(rows)


def _table3(inputs: Inputs) -> pd.DataFrame:
    """Mean rates with either loss, and 1 - p (1 - r), with r the rate of all agents."""
    return pd.concat([_rates_by_active(inputs, name) for name in inputs.experiments()])


def _rates_by_active(inputs: Inputs, experiment: str) -> pd.DataFrame:
    own = inputs.experiment(experiment)
    rates = over_repetitions(inputs.run(experiment, "fedplt"), ("active",), "rate")
    rates.insert(0, "loss", own.loss)
    rates.insert(1, "labels", own.data)
    rates["published"] = [TABLE3[active - 1] for active in rates["active"]]
    full = rates.loc[rates["active"] == own.agents, "mean"]
    if len(full):
        rates["interpolated"] = 1 - rates["active"] / own.agents * (1 - full.iloc[0])
    return rates


def _show_table3(frame: pd.DataFrame) -> pd.DataFrame:
    summed, printed, explained = (
        frame[(frame["loss"] == loss) & (frame["labels"] == labels)].reset_index()
        for loss, labels in (("sum", "planted"), ("mean", "planted"), ("sum", "classification"))
    )
    columns = {
        "Num. active agents": summed["active"].astype(str),
        "Convergence rate": [with_interval(row) for _, row in summed.iterrows()],
        "Published": summed["published"].map("{:.3f}".format),
    }
    if "interpolated" in summed:
        columns["1 - p (1 - r)"] = summed["interpolated"].map("{:.3f}".format)
    columns["With the mean of the losses, as printed"] = [with_interval(row) for _, row in printed.iterrows()]
    columns["With make_classification"] = [with_interval(row) for _, row in explained.iterrows()]
    return pd.DataFrame(columns)


MEASURES = {
    "agents": "mean distance of the agents' models",
    "stacked": "distance of all agents' models, stacked",
    "coordinator": "distance of the coordinator's model",
}
NOISES = {"variance": "variance τ", "deviation": "variance τ²"}


def _table4(inputs: Inputs) -> pd.DataFrame:
    """Mean errors by loss, reading of the noise level, the way of measuring, and level."""
    frames = []
    for experiment, measure in itertools.product(inputs.experiments(), MEASURES):
        history = inputs.run(experiment, "fedplt")
        frames.append(over_repetitions(history, ("reading", "tau"), measure))
        frames[-1].insert(0, "measure", measure)
        frames[-1].insert(0, "labels", inputs.experiment(experiment).data)
        frames[-1].insert(0, "loss", inputs.experiment(experiment).loss)
    frame = pd.concat(frames, ignore_index=True)
    return frame.assign(published=frame["tau"].map(TABLE4))


def _show_table4(frame: pd.DataFrame) -> pd.DataFrame:
    levels = frame.drop_duplicates("tau")
    columns = {"Noise level τ": [f"{tau:g}" for tau in levels["tau"]]}
    for (loss, labels, reading, measure), part in frame.groupby(
        ["loss", "labels", "reading", "measure"], sort=False
    ):
        half = (part["high"] - part["low"]) / 2
        of_loss = "" if loss == "sum" else ", mean of the losses"
        of_data = "" if labels == "planted" else ", make_classification"
        columns[f"{MEASURES[measure]} ({NOISES[reading]}{of_loss}{of_data})"] = [
            f"{mean:.4g} ± {spread:.2g}" for mean, spread in zip(part["mean"], half, strict=True)
        ]
    columns["Published"] = [f"{published:g}" for published in levels["published"]]
    return pd.DataFrame(columns)


def _exactness(inputs: Inputs) -> pd.DataFrame:
    """Largest remaining relative error over the data sets."""
    cells = inputs.run("exactness", "fedplt").groupby(["steps", "participation", "start"], sort=False)
    return cells["error"].agg(error="max", sets="count").reset_index()


def _show_exactness(frame: pd.DataFrame) -> pd.DataFrame:
    columns = {"Local epochs": [str(steps) for steps in dict.fromkeys(frame["steps"])]}
    for who, start, name in (
        ("all", "warm", "all agents"),
        ("half", "warm", "half of them"),
        ("all", "cold", "all, local steps from v instead of x (against Remark 2)"),
    ):
        left = frame.loc[(frame["participation"] == who) & (frame["start"] == start), "error"]
        columns[f"Relative error left, {name}"] = [
            "diverges" if error == float("inf") else f"{error:.2g}" for error in left
        ]
    return pd.DataFrame(columns)


def _worst(inputs: Inputs) -> pd.DataFrame:
    """Mean factors by local solver and number of steps, beside the ones that are allowed."""
    own, history = inputs.experiment("worst"), inputs.run("worst", "fedplt")
    parts = [history[history["solver"] == solver] for solver in own.solvers]
    history = pd.concat(
        part.assign(allowed=printed_norms(part, own.rho, part["solver"].iloc[0])) for part in parts
    )
    frame = over_repetitions(history, ("solver", "steps"), "factor")
    means = history.groupby(["solver", "steps"], sort=False)[["norm", "allowed"]].mean()
    return frame.merge(means.reset_index(), on=["solver", "steps"]).assign(rho=own.rho)


def _show_worst(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "Local solver": frame["solver"],
            "Local epochs": frame["steps"].astype(str),
            "Error after a round, of that before": [with_interval(row) for _, row in frame.iterrows()],
            "Norm of the round, linearised": frame["norm"].map("{:.3f}".format),
            "Allowed: ‖S‖ or ‖S′‖ as printed": frame["allowed"].map("{:.3f}".format),
        }
    )


def _variants(inputs: Inputs) -> pd.DataFrame:
    """Means over the data sets; 0 local epochs stand for the agents' own numbers."""
    history = pd.concat(
        inputs.run(name, "fedplt").assign(loss=inputs.experiment(name).loss)
        for name in ("variants_mean", "variants")
    )
    cells = history.groupby(
        ["loss", "variant", "solver", "batch", "steps", "participation"], sort=False, dropna=False
    )
    frame = cells[["rate", "error", "zeros"]].mean().reset_index()
    steps = inputs.experiment("variants").local_steps
    return frame.fillna({"solver": "gradient", "participation": "all", "steps": steps})


def _show_variants(frame: pd.DataFrame) -> pd.DataFrame:
    numbers = frame.apply(pd.to_numeric, errors="coerce")  # empty where a variant has none

    def text(column: str, form: str, empty: str = "-") -> list[str]:
        return [empty if pd.isna(value) else form.format(value) for value in numbers[column]]

    return pd.DataFrame(
        {
            "Loss": frame["loss"],
            "Variant": frame["variant"],
            "Local solver": frame["solver"],
            "Local epochs": ["1 to 10" if steps == 0 else f"{steps:g}" for steps in numbers["steps"]],
            "Minibatch": text("batch", "{:.0f}", "all samples"),
            "Active agents": frame["participation"],
            "Rate": text("rate", "{:.3f}"),
            "Relative error left": text("error", "{:.2g}"),
            "Zero coordinates": text("zeros", "{:.0%}"),
        }
    )


def _searches(inputs: Inputs) -> pd.DataFrame:
    """A line for each method, interpretation, solver and number of active agents.

    Returns
    -------
    DataFrame
        best : multiples of the reference parameters for `common`, else the names of what was searched; rate :
        mean over the data sets of the search; sets : their number; tried : points tried, for each data set
        where it has its own; edge : searches whose best point lies at an edge of what was tried; tuning_runs,
        tuning_rounds, tuning_bits : the cost of all of them.
    """
    rows: list[dict[str, Any]] = []
    sets = len(inputs.experiment("comparison").tuning.replicates)
    for _, method in inputs.searches():
        tuned = inputs.tuned("comparison", method)
        for setting, search in tuned["cells"].items():
            solver, cohort = setting.split("/")
            best = zip(tuned["parameters"], search["best"], strict=True)
            rows.append(
                {
                    "method": method,
                    "reading": "common",
                    "solver": solver,
                    "cohort": int(cohort),
                    "best": ", ".join(f"{name} x {value:.3g}" for name, value in best),
                    "rate": search["rate"],
                    "sets": sets,
                    "tried": len(search["tried"]),
                    "edge": int(search["edge"]),
                    **{f"tuning_{name}": used for name, used in search["cost"].items()},
                }
            )
        rows += _for_each_data_set(method, inputs.run("comparison", method))
    return pd.DataFrame(rows)


def _for_each_data_set(method: str, history: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the searches on each data set by itself."""
    searched = history[history["reading"].isin(("own", "equal budget")) & (history["tuning_runs"] > 0)]
    for key, cell in searched.groupby(CELL, sort=False):
        labels = dict(zip(CELL, key, strict=True))
        names = (FREE if labels["reading"] == "equal budget" else PARAMETERS)[method]
        yield {
            "method": method,
            **labels,
            "best": f"{', '.join(names)} of each data set",
            "rate": cell["rate"].mean(),
            "sets": len(cell),
            "tried": round(cell["tuning_runs"].iloc[0] / len(cell)),
            "edge": cell["edge"].sum(),
            **cell[COSTS].iloc[0].to_dict(),
        }


def _show_searches(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "Algorithm": frame["method"].map(METHODS),
            "Parameters": frame["reading"].map(READINGS),
            "Local solver": frame["solver"],
            "Active agents": frame["cohort"].astype(str),
            "Best multiples": frame["best"],
            "Rate in the search": frame["rate"].map("{:.3f}".format),
            "Data sets": frame["sets"].astype(str),
            "Points tried": frame["tried"].astype(str),
            "At an edge": frame["edge"].astype(str),
            "Cost": [str(Spent(*used)) for used in frame[COSTS].itertuples(index=False)],
        }
    )


TABLES = by_name(
    Made(
        "table1",
        "Table I: comparison of the algorithms",
        "Models that each method keeps between two rounds and sends in one, counted on its code. The "
        "published count of variables includes copies that agents hold during a round. Local solvers, local "
        "epochs and problems are those for which the methods' papers prove something.",
        _table1,
        _show_table1,
    ),
    Made(
        "table2",
        "Table II: convergence rates, tuned parameters",
        "Mean over data sets with 95 % intervals, published numbers in brackets; 10 agents, or 5 of them at "
        "random. FedLin takes two exchanges for one round, all others one. Tuned for each data set: of "
        "Fed-PLT ρ alone, of its rivals two parameters (of FedLin one). Equal budget: on the first data "
        "sets every method searches its local step and all its own parameters, from the same grid, until a "
        "finer one changes the rate by less than 0.003. Both choose on the data set that they report, with "
        "all agents active: such a run is not random, so the best trial is the run reported. TAMUNA "
        "draws its number of local steps and has neither. The last column is the cost of a line's searches. "
        "With an equal budget they took, for each data set, some 110 to 150 points for two parameters, 20 "
        "for FedLin's one and 500 for 5GCS's three; the table of searches has them all.",
        partial(_table2, readings=("common", "own", "equal budget")),
        _show_table2,
    ),
    Made(
        "table2_mean",
        "Table II: convergence rates with the mean of the losses, as printed",
        "As before, but the agents' losses are means over their samples, as the paper prints them. "
        "Elsewhere they are sums, with which Fed-PLT's published rates come out.",
        partial(_table2, readings=("common", "own", "equal budget")),
        _show_table2,
    ),
    Made(
        "table2_classification",
        "Table II: convergence rates on make_classification's data",
        "As before with the sum of the losses, on data of scikit-learn's generator, one cluster a class, no "
        "redundant features: the inferred settings.",
        partial(_table2, readings=("common", "own", "equal budget", "theory")),
        _show_table2,
    ),
    Made(
        "table2_theory",
        "Table II: convergence rates, parameters of theory",
        "As before, each method with the step sizes that its own paper prescribes; for LED, whose theorem "
        "leaves constants open, the natural ones. All take 10 local steps, 5GCS too, whose theorem asks for "
        "about 30; with accelerated local steps these are 1 / L long, TAMUNA's too.",
        partial(_table2, readings=("theory",)),
        _show_table2,
    ),
    Made(
        "table3",
        "Table III: rates of Fed-PLT with 1 to 10 active agents",
        "Cohorts are drawn uniformly in each round; ρ is that of each data set with all agents active.",
        _table3,
        _show_table3,
    ),
    Made(
        "table4",
        "Table IV: asymptotic error of Fed-PLT with noisy gradient descent",
        "Three ways to measure the error, two readings of the noise level and two of the loss (the mean is "
        "printed); the paper names no way to measure.",
        _table4,
        _show_table4,
    ),
    Made(
        "exactness",
        "Exact convergence (Remarks 2 and 3)",
        "Largest relative error left over the data sets, with any number of local epochs, and without the "
        "warm start.",
        _exactness,
        _show_exactness,
    ),
    Made(
        "worst",
        "A round from the worst direction near the fixed point (Propositions 1 to 3)",
        "Means over data sets with the printed mean of the losses and ρ = 0.3. All agents take part, without "
        "noise. A round may bring (x, z) closer by less than the printed factor allows.",
        _worst,
        _show_worst,
    ),
    Made(
        "variants",
        "Further options of Algorithm 1 (described without an experiment in the paper)",
        "Means over data sets at ρ = 0.3, with mean and summed losses. Composite problems have a penalty on "
        "|x|₁. Uncoordinated agents have gradient or accelerated steps in turn, 1 to 10 of them (mixed), or "
        "steps for their own mu and L (own) or one step for all (common). With minibatches the error is "
        "that of the last rounds.",
        _variants,
        _show_variants,
    ),
    Made(
        "searches",
        "Parameter searches (not in the paper)",
        "Tuned on other data sets: best multiples of each method's reference parameters on data sets that "
        "are not reported. Otherwise they are chosen on each data set itself. The cost is that of all "
        "trials of a line; points tried on one data set alone are counted for that data set.",
        _searches,
        _show_searches,
    ),
)
