"""The package from Python: problems from arrays, methods by name or of one's own, runs as data frames."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from replifed.algorithms.base import COUNT
from replifed.algorithms.registry import method_class
from replifed.comparison import Comparison, as_text
from replifed.engine.accuracy import held_out, of_pairs
from replifed.engine.simulate import History, objective, simulate
from replifed.errors import ConfigError, ReplifedError, unknown_name
from replifed.network.participation import MANY, Asked, Law, weighted_view
from replifed.network.times import Size
from replifed.problems.minimiser import minimiser
from replifed.randomness import Streams, generator

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from replifed.data.findings import Finding

_EXACT = 1e-15  # a smaller gap is rounding
# Fewest records of a run whose objective costs more than its rounds.
_FEWEST = 20
# Most kinds of whole numbers that are labels, and no targets.
_LABELS = 100
# Settings of a data set that say how a comparison takes it.
_OF_COMPARISONS = {"partition", "clients", "sizes", "samples", "weights"}
# Bytes of features up to which those of a file are dense, since more methods take these.
_DENSE = 1 << 28


def load(name: str) -> tuple[csr_matrix, NDArray[np.int64]]:
    """Features and labels of a data set that comes with the package: a9a, a9a_test, mushrooms or phishing.

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
    if as_text(name, "a data set's name") not in forms:
        raise ConfigError(unknown_name("data set of the package", name, forms))
    table = read_form(CATALOGUE[name], forms[name], [PACKED / file.name for file in forms[name].files])
    return table.X, table.y


@dataclass(frozen=True)
class Data:
    """Samples of a file; printed, it says what they show before any run."""

    X: NDArray | csr_matrix
    """Features, (samples, features), dense unless they are large."""
    y: NDArray
    """Labels -1 and +1, targets, or classes from 0 on."""
    client: NDArray | None
    """Client of each sample, from 0 on, if the file names clients."""
    client_names: list[str]
    columns: list[str]
    """Names of the features, if the file has them."""
    findings: list[Finding]
    """What to know, and what to do about it, if anything."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings))

    def pairs(self, client: Any = None) -> list[tuple[Any, NDArray]]:
        """Return features and targets of each client, as `problems.from_clients` takes them.

        `client` is that of each sample, such as from `split`; by default the file names it.
        """
        client = self.client if client is None else np.asarray(client)
        if client is None or client.shape != self.y.shape:
            raise ConfigError("which client has which sample? give read client=COLUMN, or pairs a split")
        return [(self.X[client == i], self.y[client == i]) for i in range(int(client.max()) + 1)]


def read(path: str, *, l2: float = 0.01, **settings: Any) -> Data:
    """Read a file with data of your own, and say what they show: units, ids, dates, classes, clients.

    Parameters
    ----------
    path : str
        A LibSVM, CSV, parquet or npz file, or FILE.py:FUNCTION.
    l2 : float
        Ridge of the objective whose condition number is said.
    **settings
        As in the section `datasets` of the settings: form, loss ("logistic" by default), label and client
        (columns), drop and categories (lists of columns), standardise, rows, features, limit_gb.

    Warns
    -----
    UserWarning
        Something should be done about what the data show.

    Raises
    ------
    ConfigError, DataError
        A setting is unknown or has no such value; the file has errors, which are all listed.
    """
    from replifed.data import own
    from replifed.data.findings import findings
    from replifed.settings.checks import dataset

    if not isinstance(l2, Real) or not 0 < l2 < np.inf:
        raise ConfigError(f"l2 = {l2!r}: must be a number above 0")
    for key in _OF_COMPARISONS & {*settings}:
        raise ConfigError(f"{key} is no setting of read: the samples are split by replifed.split")
    checked = dataset({"path": path, **settings})
    raw = own.read("data", checked)
    found = findings(raw, l2, standardised=checked.get("standardise", False))
    if advice := [str(one) for one in found if one.remedy]:
        warnings.warn("\n".join([f"{path}:", *advice]), stacklevel=2)
    table = own.prepared(raw, checked)
    X = table.X.toarray() if 8 * table.X.shape[0] * table.X.shape[1] <= _DENSE else table.X
    return Data(X, table.y, table.client, table.meta.get("clients", []), table.meta.get("columns", []), found)


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
    for name, text in {"partition": partition, "sizes": sizes}.items():
        as_text(text, name)
    keys = {"partition": partition, "clients": clients, **({"sizes": sizes} if sizes != "equal" else {})}
    for _, text in partitions.errors(keys):
        raise ConfigError(text)
    section = partitions.partition(partition, clients, sizes)
    if samples is not None:
        if partition == "kmeans":
            raise ConfigError("samples is not allowed with the partition kmeans; set iid, or another one")
        section["samples"] = samples
    y = np.asarray(y)
    if not isinstance(X, np.ndarray) and not hasattr(X, "tocsr"):
        raise ConfigError(f"{_kind(X)} is no table of features: give an array or a sparse matrix")
    if y.shape != X.shape[:1]:
        raise ConfigError(f"features {X.shape} and targets {y.shape}: must be (n, d) and (n,)")
    kinds = np.unique(y)
    if len(kinds) <= _LABELS and y.dtype.kind == "f" and (kinds % 1 == 0).all():
        y = y.astype(np.int64)
    return build(X, y, section, [1], seed)[0].clients[1]


def hold_out(pairs: Any, share: float, *, seed: int = 1) -> tuple[list, list]:
    """Keep a share of each client's samples for a test.

    Parameters
    ----------
    pairs : list of (features, targets)
        One a client, as `problems.from_clients` takes them.
    share : float
        Between 0 and 1; of a client with two samples or more at least one is kept, and one left.
    seed : int
        Of what is drawn.

    Returns
    -------
    training, test : lists of pairs
        For `problems.from_clients`, and for `test` of `run`. A client with one sample has none in the test.
    """
    if not isinstance(share, Real) or not 0 < share < 1:
        raise ConfigError(f"share = {share!r}: must be a number between 0 and 1")
    arrays = [tuple(one if hasattr(one, "tocsr") else np.asarray(one) for one in pair) for pair in pairs]
    sizes = [len(y) for _, y in arrays]
    out = held_out(np.repeat(np.arange(len(sizes)), sizes), share, generator(seed, 0, None, "test"))
    masks = np.split(out, np.cumsum(sizes)[:-1])
    training, test = (
        [(X[mask], y[mask]) for (X, y), mask in zip(arrays, side, strict=True)]
        for side in ([~mask for mask in masks], masks)
    )
    return training, test


def method(source: str, **settings: Any) -> Any:
    """A method by name (`replifed list methods`) or `FILE.py:CLASS`, with its settings."""
    made = method_class(as_text(source, "a method's name"))
    known = {one.name: one for one in fields(made) if one.init}
    for name in settings:
        if name not in known:
            raise ConfigError(unknown_name(f"setting of {source}", name, known))
    for name, one in known.items():
        if name not in settings and one.default is MISSING and one.default_factory is MISSING:
            raise ConfigError(f"{source} needs the setting {name}: give {name}=...")
    named = "solver" in known and isinstance(known["solver"].default, str)
    if "solver" in settings and not named and not hasattr(settings["solver"], "solve"):
        text = "must be a local solver, such as replifed.Gradient(steps=5, step=0.1)"
        raise ConfigError(f"{source}.solver = {settings['solver']!r}: {text}")
    return made(**settings)


def run(
    algorithm: Any,
    problem: Any,
    rounds: int,
    seeds: int = 1,
    *,
    cohort: int | str | Law | None = None,
    availability: str = "uniform",
    average: str = "own",
    record_every: int | None = None,
    test: Any = None,
    **options: Any,
) -> pd.DataFrame:
    """Run a method on a problem.

    Parameters
    ----------
    algorithm : Method
        Such as from `method`.
    problem : Problem
        Such as from `problems.from_clients`. Where its weights p_i differ, a method that takes plain means
        gets the losses N p_i f_i (`network.participation`), so that it minimises the same F; its step has to
        suit these, such as 1 / `problem.with_equal_weights().smoothness()`.
    rounds : int
    seeds : int
        Repetitions, which run side by side; what the method draws differs.
    cohort : int, str or law, optional
        Clients that take part in a round, drawn anew each time, such as 10 or "10%"; all by default. Or a
        law of `network.participation`, or one of your own.
    availability : str
        Who can take part: "uniform", "by-size", "markov:ON,OFF" or "cyclic:GROUPS", as `replifed compare`
        takes it (`network.participation`).
    average : str
        Of methods that average with the weights p_i: "own", or with the weights of another scheme "scaled",
        "completed" or "transformed".
    record_every : int, optional
        Rounds from one record to the next; the history has no others. 1 by default; with a cohort of more
        than 1,000 clients N / cohort, so that objectives of all clients cost about as much as the rounds, or
        fewer if there were less than 20 records.
    test : pair or list of pairs, optional
        Features and classes that are not trained on; a pair for each client, such as from `hold_out`, first
        those of the problem, then clients that never take part; or one pair that belongs to no client.
    **options
        Of `simulate`.

    Returns
    -------
    DataFrame
        A line a seed and recorded round: seed, round, objective, bits, sample_gradients and the rest of the
        ledger, totals so far; diverged. With `test` accuracy, the mean over clients, accuracy_worst, that
        over the worst tenth of them, and accuracy_new, that over clients that never take part, as far as
        there are such; 0 once a run has diverged.
    """
    for name, value in {"rounds": rounds, "seeds": seeds}.items():
        if value not in COUNT:
            raise ConfigError(f"{name} = {value!r}: must be {COUNT}")
    if record_every is not None and record_every not in COUNT:
        raise ConfigError(f"record_every = {record_every!r}: must be {COUNT}")
    _check_parts(algorithm, problem, options)
    streams = Streams(0, tuple(range(1, seeds + 1)))
    given, N = weighted_view(type(algorithm), problem, average), problem.n_clients
    law = _law(algorithm, given, cohort, availability, average)
    if record_every is None:
        size = getattr(law, "size", None)
        record_every = 1 if size is None or N <= MANY else max(min(N // size, rounds // _FEWEST), 1)
    # Metrics are of the problem that was given.
    asked = options.pop("metrics", None) or {"objective": objective}
    options["metrics"] = {name: partial(_of, problem, one) for name, one in asked.items()}
    accuracies = {} if test is None else of_pairs(test, problem).metrics()
    options["metrics"] |= accuracies
    history: History = simulate(
        algorithm,
        given,
        streams,
        rounds,
        cohort=law,
        record_every=record_every,
        **options,
    )
    frame = history.frame(seed=streams.replicates)
    zero = {name: frame[name].mask(frame["diverged"], 0.0) for name in accuracies}
    return frame.assign(bits=frame["bits_up"] + frame["bits_down"], **zero)


def _law(algorithm: Any, problem: Any, cohort: Any, availability: str, average: str) -> Law | None:
    """Law of who takes part, which is given or asked for by words."""
    if callable(cohort):
        if (availability, average) != ("uniform", "own"):
            raise ConfigError("cohort is a law: leave out availability and average")
        return cohort
    asked = Asked(cohort, availability, average)
    asked.check(problem.n_clients)
    if average in ("scaled", "completed") and not getattr(algorithm, "weighted", False):
        name = type(algorithm).__name__
        raise ConfigError(f"average = {average}: {name} does not average with the weights p_i; leave it out")
    return asked.law(problem)


def _check_parts(algorithm: Any, problem: Any, options: Mapping[str, Any]) -> None:
    """Reject what is no method, no problem, or no option of `simulate`."""
    if isinstance(algorithm, type) or not hasattr(algorithm, "round"):
        raise ConfigError(f"{_kind(algorithm)} is no method: make one with replifed.method(NAME, ...)")
    if isinstance(problem, type) or not hasattr(problem, "n_clients"):
        raise ConfigError(
            f"{_kind(problem)} is no problem: make one with replifed.problems.from_clients(DATA, ...)"
        )
    known = {*inspect.signature(simulate).parameters} - {"algorithm", "problem", "streams", "rounds"}
    for name in options:
        if name not in known:
            raise ConfigError(unknown_name("option of run", name, known | {"seeds"}))
    metrics = options.get("metrics") or {}
    if not isinstance(metrics, Mapping) or not all(map(callable, metrics.values())):
        raise ConfigError(f"metrics = {options['metrics']!r}: must be functions by their names, a mapping")


def _kind(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"


def _of(problem: Any, metric: Any, _: Any, seen: dict[str, Any]) -> Any:
    return metric(problem, seen)


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
    if not isinstance(methods, Mapping) or not methods:
        what = "there are no methods" if isinstance(methods, Mapping) else f"{_kind(methods)} is given"
        raise ConfigError(f"{what} to compare: give {{NAME: METHOD}}")
    runs = [
        run(algorithm, problem, rounds, seeds, **options).assign(method=name)
        for name, algorithm in methods.items()
    ]
    frame = pd.concat(runs, ignore_index=True)
    frame["gap"] = np.maximum(frame["objective"] - _least(problem, frame["objective"]), _EXACT)
    samples = float(np.sum(problem.sizes, axis=-1).mean())
    return Comparison(frame, Size(problem.n_clients, problem.dim, samples))


def _least(problem: Any, seen: pd.Series) -> float:
    try:
        return float(problem.loss(minimiser(problem, 1))[0])
    except (ReplifedError, AttributeError):  # no Hessians, or a singular one
        return float(seen.min())
