"""The package from Python: problems from arrays, methods by name or of one's own, runs as data frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from replifed.algorithms.base import COUNT
from replifed.algorithms.registry import method_class
from replifed.algorithms.weighting import handed
from replifed.claims.copies import independent, originals
from replifed.claims.pairs import used_until
from replifed.claims.targets import at_the_end
from replifed.engine.simulate import History, objective, simulate
from replifed.errors import ConfigError, ReplifedError, unknown_name
from replifed.figures.lines import numbered
from replifed.network.participation import MANY, FixedSize
from replifed.problems.minimiser import minimiser
from replifed.randomness import Streams

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# What a run has used, by the name of an axis.
_USED = {
    "rounds": ("round", "communication rounds"),
    "bits": ("bits", "bits, up and down, all clients"),
    "gradients": ("sample_gradients", "sample gradients"),
}
_EXACT = 1e-15  # a smaller gap is rounding
# Methods whose legend has room beside their curves, and entries of a column of one outside.
_BESIDE, _IN_A_COLUMN = 7, 16
# Fewest records of a run whose objective costs more than its rounds.
_FEWEST = 20
# Most kinds of whole numbers that are labels, and no targets.
_LABELS = 100


def load(name: str) -> tuple[csr_matrix, NDArray[np.int64]]:
    """Features and labels of a data set that comes with the package: a9a, mushrooms or phishing.

    Parameters
    ----------
    name : str

    Returns
    -------
    features : csr_matrix, (samples, features)
    labels : array of -1 and +1, (samples,)

    Raises
    ------
    ConfigError
        The package holds no such data set.
    """
    from replifed.data.catalogue import CATALOGUE, PACKAGED, PACKED
    from replifed.data.parse import read_form

    forms = {one.id: form for one in CATALOGUE.values() for form in one.forms if form.name == PACKAGED}
    if name not in forms:
        raise ConfigError(unknown_name("data set of the package", name, forms))
    X, y, _ = read_form(CATALOGUE[name], forms[name], [PACKED / file.name for file in forms[name].files])
    return X, y


def split(
    X: Any,
    y: Any,
    partition: str,
    clients: int = 10,
    *,
    sizes: str = "equal",
    samples: int | None = None,
    seed: int = 1,
) -> NDArray[np.int32]:
    """Client of each sample, under a partition that is named as `replifed compare --partition` takes it.

    Parameters
    ----------
    X : array or sparse matrix, (samples, features)
    y : array of labels or targets, (samples,)
        Targets are grouped by tenths: floats of more than a hundred kinds, or that are no whole numbers.
    partition : str
        "iid", "dirichlet:ALPHA", "shards:K" or "kmeans".
    clients : int
    sizes : str
        "equal" or "lognormal:SIGMA": numbers of samples of the clients; not of "kmeans".
    samples : int, optional
        Mean of a client's samples, drawn from all; by default all are dealt; not of "kmeans".
    seed : int
        Of what is drawn.

    Returns
    -------
    array, (samples,)
        Numbers from 0 to `clients` - 1, and -1 for samples that are not dealt.

    Raises
    ------
    ConfigError, DataError
        There is no such partition, or a client would get no sample.
    """
    from replifed.partition.build import build
    from replifed.settings import partitions

    for name, value in {"clients": clients, **({} if samples is None else {"samples": samples})}.items():
        if value not in COUNT:
            raise ConfigError(f"{name} = {value!r}: must be {COUNT}")
    keys = {"partition": partition, "clients": clients, **({"sizes": sizes} if sizes != "equal" else {})}
    for _, text in partitions.faults(keys):
        raise ConfigError(text)
    section = partitions.partition(partition, clients, sizes)
    if samples is not None:
        if partition == "kmeans":
            raise ConfigError("samples is not allowed with the partition kmeans; set iid, or another one")
        section["samples"] = samples
    y = np.asarray(y)
    kinds = np.unique(y)
    if len(kinds) <= _LABELS and y.dtype.kind == "f" and (kinds % 1 == 0).all():
        y = y.astype(np.int64)
    return build(X, y, section, [1], seed)[0].clients[1]


def method(source: str, **settings: Any) -> Any:
    """A method by name (`replifed list methods`) or `FILE.py:CLASS`, with its settings."""
    made = method_class(source)
    known = {one.name: one for one in fields(made) if one.init}
    for name in settings:
        if name not in known:
            raise ConfigError(unknown_name(f"setting of {source}", name, known))
    for name, one in known.items():
        if name not in settings and one.default is MISSING and one.default_factory is MISSING:
            raise ConfigError(f"{source} needs the setting {name}: give {name}=...")
    return made(**settings)


def run(
    algorithm: Any,
    problem: Any,
    rounds: int,
    seeds: int = 1,
    *,
    cohort: int | None = None,
    record_every: int | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Run a method on a problem.

    Parameters
    ----------
    algorithm : Method
        Such as from `method`.
    problem : Problem
        Such as from `problems.from_clients`. Where its weights p_i differ, a method that takes plain means
        gets the losses N p_i f_i (`algorithms.weighting`), so that it minimises the same F; its step has to
        suit these, such as 1 / `problem.with_equal_weights().smoothness()`.
    rounds : int
    seeds : int
        Repetitions, which run side by side; what the method draws differs.
    cohort : int, optional
        Clients that take part in a round, drawn anew each time; all by default.
    record_every : int, optional
        Rounds from one record to the next; the history has no others. 1 by default; with a cohort of more
        than 1,000 clients N / cohort, so that objectives of all clients cost about as much as the rounds, or
        fewer if there were less than 20 records.
    **options
        Of `simulate`.

    Returns
    -------
    DataFrame
        A line a seed and recorded round: seed, round, objective, bits, sample_gradients and the rest of the
        ledger, totals so far; diverged.
    """
    for name, value in {"rounds": rounds, "seeds": seeds}.items():
        if value not in COUNT:
            raise ConfigError(f"{name} = {value!r}: must be {COUNT}")
    streams = Streams(0, tuple(range(1, seeds + 1)))
    chosen = None if cohort is None else FixedSize(cohort)
    if record_every is None:
        N = problem.n_clients
        record_every = 1 if cohort is None or N <= MANY else max(min(N // cohort, rounds // _FEWEST), 1)
    # Metrics are of the problem that was given.
    asked = options.pop("metrics", None) or {"objective": objective}
    options["metrics"] = {name: partial(_of, problem, one) for name, one in asked.items()}
    history: History = simulate(
        algorithm,
        handed(type(algorithm), problem),
        streams,
        rounds,
        cohort=chosen,
        record_every=record_every,
        **options,
    )
    frame = history.frame(seed=streams.replicates)
    return frame.assign(bits=frame["bits_up"] + frame["bits_down"])


def _of(problem: Any, metric: Any, _: Any, seen: dict[str, Any]) -> Any:
    return metric(problem, seen)


@dataclass(frozen=True)
class Comparison:
    """Runs of several methods on one problem: `frame`, with a column method and one gap."""

    frame: pd.DataFrame

    def plot(self, x: str = "rounds") -> Figure:
        """Gap against "rounds", "bits" or "gradients": median over seeds, with their range.

        Returns
        -------
        matplotlib Figure
            `savefig` writes it.
        """
        if x not in _USED:
            raise ReplifedError(f"x = {x!r}: must be one of {', '.join(_USED)}")
        column, label = _USED[x]
        methods = list(self.frame.groupby("method", sort=False))
        columns = -(-len(methods) // _IN_A_COLUMN) if len(methods) > _BESIDE else 0  # of a legend outside
        figure = Figure(figsize=(5 + 1.8 * columns, 3.4), layout="constrained")
        axes = figure.add_subplot()
        for number, (name, own) in enumerate(methods):
            line = numbered(number)
            by_round = own.groupby("round")
            used, gaps = by_round[column].median(), by_round["gap"]
            axes.plot(used, gaps.median(), label=name, markevery=0.1, **line.look)
            axes.fill_between(used, gaps.min(), gaps.max(), color=line.color, alpha=0.15)
        axes.set(xlabel=label, ylabel="F - F*", yscale="log")
        axes.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4))
        if columns:
            figure.legend(loc="outside right upper", ncols=columns, fontsize="small")
        else:
            axes.legend()
        return figure

    def table(self, target: float = 1e-4) -> pd.DataFrame:
        """Median use of each method from when on its gap stays at most `target` times that at the start.

        Reached means that it stays there to the end, at least for the last tenth of the rounds. Seeds that
        never get there count as later than any other.

        Returns
        -------
        DataFrame
            A line a method: round, bits and sample_gradients, NaN where half of the seeds or more do not get
            there; touch, the round of the first time; gap, at the end, as a share of that at the start,
            infinite where it diverged; runs, how many of the `seeds` are no copies of another one (1 where
            nothing is drawn), so that only these are independent.
        """
        rows = {}
        for name, own in self.frame.groupby("method", sort=False):
            share = own["gap"] / own.groupby("seed")["gap"].transform("first")
            own = own.assign(replicate=own["seed"], gap=share)
            first = used_until(own, [target], touch=True)[target, "round"]
            uses = {use: one.median_reached for (_, use), one in used_until(own, [target]).items()}
            runs = independent(originals(own.drop(columns="seed")))
            ends = {"gap": at_the_end(own).median_reached, "runs": len(runs), "seeds": own["seed"].nunique()}
            rows[name] = {**uses, "touch": first.median_reached, **ends}
        table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")
        return table.where(np.isfinite(table) | (table.columns == "gap"))


def compare(
    methods: Mapping[str, Any], problem: Any, rounds: int, seeds: int = 1, **options: Any
) -> Comparison:
    """Run methods on one problem, with the same random numbers.

    Parameters
    ----------
    methods : mapping
        Methods with their settings, by the names that figures show.
    problem, rounds, seeds, **options
        As of `run`.

    Returns
    -------
    Comparison
        The gap is F - F* where the problem has Hessians and a minimiser, else F less the lowest value seen.
    """
    if not methods:
        raise ConfigError("there are no methods to compare: give {NAME: METHOD}")
    runs = [
        run(algorithm, problem, rounds, seeds, **options).assign(method=name)
        for name, algorithm in methods.items()
    ]
    frame = pd.concat(runs, ignore_index=True)
    frame["gap"] = np.maximum(frame["objective"] - _least(problem, frame["objective"]), _EXACT)
    return Comparison(frame)


def _least(problem: Any, seen: pd.Series) -> float:
    try:
        return float(problem.loss(minimiser(problem, 1))[0])
    except (ReplifedError, AttributeError):  # no Hessians, or a singular one
        return float(seen.min())
