"""Runs: FedAvg on Theorem 4's example, and softmax regression on the devices of Section 6."""

from functools import lru_cache
from itertools import product

import numpy as np
import pandas as pd

from replifed.problems import from_clients
from replifed.randomness import Streams
from replifed.simulate import simulate

from . import data, example
from .methods import AuthorsDevices, LocalSGD, law

RULES = {"1 + r": lambda r: 1 / (1 + r), "max(1, r)": lambda r: 1 / max(1, r)}
OF_EXAMPLE = {
    "objective": lambda _, seen: example.gap(seen["server"]),
    "loss": lambda _, seen: example.loss(seen["server"]),
    "distance": lambda _, seen: example.distance(seen["server"]),
}


def run(method, settings, tuned, table, partition, progress=None):
    """Return a data frame with a line for each repetition, curve and recorded round."""
    of_problem = {"theorem4": _theorem4, "theorem1": _theorem1}.get(settings.problem, _softmax)
    return pd.concat(of_problem(settings, table), ignore_index=True).assign(method=method)


def _simulated(settings, algorithm, scheme):
    """History on Theorem 4's example."""
    problem, streams = example.problem(), Streams(settings.seed, tuple(settings.replicates))
    more = {"metrics": OF_EXAMPLE, "record_every": settings.record_every}
    more["cohort"] = law(scheme, getattr(settings, "cohort", None), problem)
    history = simulate(algorithm, problem, streams, settings.rounds, **more)
    return history.frame(replicate=settings.replicates, scheme=scheme, local_steps=algorithm.local_steps)


def _theorem4(settings, _):
    """Yield a curve for each E: steps eta / (1 + a r) in round r."""
    for E, a in zip(settings.local_steps, settings.falls, strict=True):
        rule = lambda r, a=a: 1 / (1 + a * r)  # noqa: E731
        yield _simulated(settings, LocalSGD(step=settings.step, local_steps=E, rule=rule), "full")


def _theorem1(settings, _):
    """Yield a curve for each scheme: steps 2 / (mu (gamma + t)), t counting local steps from 1."""
    E = settings.local_steps
    steps = np.arange(1, E + 1)
    rule = lambda r: 2 / (example.MU * (example.offset(E) + r * E + steps))  # noqa: E731
    for scheme in settings.schemes:
        yield _simulated(settings, LocalSGD(step=1.0, local_steps=E, rule=rule), scheme)


def _softmax(settings, table):
    """Yield a curve for each repetition, reading, scheme, K and E."""
    drawn = AuthorsDevices if settings.devices == "authors" else Streams
    for replicate in settings.replicates:
        devices = devices_of(settings, table, replicate)
        sizes, scores = np.array([len(y) for _, y in devices.train]), metrics(devices)
        for (reading, given), K in product(settings.readings.items(), settings.cohorts):
            form = {"loss": "softmax", "classes": data.DIGITS, "dtype": np.float32}
            problem = from_clients(devices.train, l2=given["ridge"], weights=sizes / sizes.sum(), **form)
            for (scheme, step), E in product(settings.schemes.items(), settings.local_steps):
                kind = scheme.split()[0]
                more = {"rule": RULES[given["rule"]], "tilted": kind == "transformed"}
                more["spread"] = problem.n_features**-0.5 if given["start"] == "torch" else 0.0
                algorithm = LocalSGD(step=step, local_steps=E, batch=settings.batch, **more)
                streams, rounds = (
                    drawn(settings.seed, (replicate,)),
                    min(settings.rounds, settings.most_steps // E),
                )
                more = {"metrics": scores, "schedule": {"gradient": lambda t: t % 50 == 0}}
                history = simulate(algorithm, problem, streams, rounds, cohort=law(kind, K, problem), **more)
                labels = {"reading": reading, "scheme": scheme, "cohort": K, "local_steps": E}
                yield history.frame(replicate=[replicate], **labels)


def devices_of(settings, table, replicate):
    """Devices of a problem: balanced, unbalanced, or synthetic:ALPHA,BETA."""
    name, _, numbers = settings.problem.partition(":")
    rng = np.random.default_rng((settings.seed, replicate))
    if name == "synthetic":
        return data.synthetic(*map(float, numbers.split(",")), rng)
    images = table.X[:: settings.every], table.y[:: settings.every]
    return data.balanced(*images) if name == "balanced" else data.unbalanced(*images, rng)


def metrics(devices):
    """Cross-entropy without ridge, accuracy and gradient norm on all samples; the first two on tests, too."""
    train = tuple(map(np.concatenate, zip(*devices.train, strict=True)))
    found, tests = {}, {} if devices.test is None else {"test_": devices.test}
    for name, (X, y) in ({"": train} | tests).items():
        scores = lru_cache(maxsize=1)(lambda model, X=X, y=y: _scores(X, y, model)[:2])
        for at, one in enumerate(("objective", "accuracy")):
            found[name + one] = lambda _, seen, of=scores, at=at: np.array([of(seen["server"].tobytes())[at]])
    return found | {"gradient": lambda _, seen: np.array([_gradient(*train, seen["server"].tobytes())])}


def _scores(X, y, model):
    """Cross-entropy and accuracy of a model, and the probabilities of the classes."""
    z = X @ np.frombuffer(model, X.dtype).reshape(X.shape[1], -1)
    z -= z.max(axis=1, keepdims=True)
    p = np.exp(z)
    total, rows = p.sum(axis=1), np.arange(len(y))
    return (np.log(total) - z[rows, y]).mean(dtype=float), (z.argmax(axis=1) == y).mean(), p / total[:, None]


def _gradient(X, y, model):
    p = _scores(X, y, model)[2]
    p[np.arange(len(y)), y] -= 1
    return np.linalg.norm(X.T @ p) / len(y)
