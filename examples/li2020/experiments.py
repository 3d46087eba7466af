"""Runs: FedAvg on Theorem 4's example, and softmax regression on devices of Section 6."""

from functools import lru_cache
from itertools import product

import numpy as np
import pandas as pd

from replifed.problems import from_clients
from replifed.randomness import Streams
from replifed.simulate import simulate

from . import data, example
from .methods import AuthorsDevices, LocalSGD, law

RULES = {"constant": lambda r: 1.0, "1 + r": lambda r: 1 / (1 + r), "max(1, r)": lambda r: 1 / max(1, r)}


def run(method, settings, tuned, table, partition, progress=None):
    """Return a data frame with a line a repetition, curve and recorded round."""
    kinds = {"theorem4": _theorem4, "theorem1": _theorem1}
    frames = kinds[settings.problem](settings) if settings.problem in kinds else _softmax(settings, table)
    return pd.concat(frames, ignore_index=True).assign(method=method)


def _theorem4(settings):
    """Yield a curve for each E: steps eta / (1 + a r) in round r."""
    metrics = {
        "objective": lambda _, seen: example.gap(seen["server"]),
        "loss": lambda _, seen: example.loss(seen["server"]),
        "distance": lambda _, seen: example.distance(seen["server"]),
    }
    for E, a in zip(settings.local_steps, settings.falls, strict=True):
        algorithm = LocalSGD(step=settings.step, local_steps=E, rule=lambda r, a=a: 1 / (1 + a * r))
        streams = Streams(settings.seed, tuple(settings.replicates))
        every = {"metrics": metrics, "record_every": settings.record_every}
        history = simulate(algorithm, example.problem(), streams, settings.rounds, **every)
        yield history.frame(replicate=settings.replicates, local_steps=E)


def _theorem1(settings):
    """Yield a curve for each scheme: steps 2 / (mu (gamma + t)), t counting local steps."""
    E, problem = settings.local_steps, example.problem()
    steps = np.arange(1, E + 1)
    rule = lambda r: 2 / (example.MU * (example.offset(E) + r * E + steps))  # noqa: E731
    for scheme in settings.schemes:
        streams = Streams(settings.seed, tuple(settings.replicates))
        history = simulate(
            LocalSGD(step=1.0, local_steps=E, rule=rule),
            problem,
            streams,
            settings.rounds,
            metrics={"objective": lambda _, seen: example.gap(seen["server"])},
            record_every=settings.record_every,
            cohort=law(scheme, settings.cohort, problem),
        )
        yield history.frame(replicate=settings.replicates, scheme=scheme, local_steps=E)


def _softmax(settings, table):
    """Yield a curve for each repetition, reading, scheme, K and E."""
    grid = [settings.readings, settings.schemes, settings.cohorts, settings.local_steps]
    for replicate in settings.replicates:
        devices = _devices(settings, table, replicate)
        scores = _scores(*map(np.concatenate, zip(*devices.train, strict=True)))
        metrics = {"objective": 0, "accuracy": 1, "gradient": 2}
        metrics = {
            name: lambda _, seen, at=at: scores(seen["server"].tobytes())[at] for name, at in metrics.items()
        }
        if devices.test is not None:
            tested = _scores(*devices.test)
            metrics["test_loss"] = lambda _, seen: tested(seen["server"].tobytes())[0]
            metrics["test_accuracy"] = lambda _, seen: tested(seen["server"].tobytes())[1]
        sizes = np.array([len(y) for _, y in devices.train])

        @lru_cache(maxsize=1)
        def problem_with(ridge, devices=devices.train, p=sizes / sizes.sum()):
            form = {"loss": "softmax", "classes": data.DIGITS, "dtype": np.float32}
            return from_clients(devices, l2=ridge, weights=p, **form)

        for (reading, given), (scheme, step), K, E in product(grid[0].items(), grid[1].items(), *grid[2:]):
            problem = problem_with(given["ridge"])
            kind = scheme.split()[0]
            algorithm = LocalSGD(
                step=step,
                local_steps=E,
                batch=settings.batch,
                rule=RULES[given["rule"]],
                tilted=kind == "transformed",
                spread=problem.n_features**-0.5 if given["start"] == "torch" else 0.0,
            )
            streams = (AuthorsDevices if settings.devices == "authors" else Streams)(
                settings.seed, (replicate,)
            )
            rounds = min(settings.rounds, settings.most_steps // E)
            history = simulate(
                algorithm, problem, streams, rounds, metrics=metrics, cohort=law(kind, K, problem)
            )
            labels = {"reading": reading, "scheme": scheme, "cohort": K, "local_steps": E}
            yield history.frame(replicate=[replicate], **labels)


def _devices(settings, table, replicate):
    name, *numbers = settings.problem.split(":")
    if name == "balanced":
        return data.balanced(table)
    rng = np.random.default_rng((settings.seed, replicate))
    if name == "unbalanced":
        return data.unbalanced(table, rng)
    return data.synthetic(*map(float, numbers[0].split(",")), rng)


def _scores(X, y):
    """Return a function from a model to cross-entropy without ridge, accuracy and gradient norm, (1,) each."""
    rows = np.arange(len(y))

    @lru_cache(maxsize=1)
    def at(model):
        z = X @ np.frombuffer(model, X.dtype).reshape(X.shape[1], -1)
        z -= z.max(axis=1, keepdims=True)
        right, p = (z.argmax(axis=1) == y).mean(), np.exp(z)
        total = p.sum(axis=1, keepdims=True)
        loss = (np.log(total[:, 0]) - z[rows, y]).mean(dtype=float)
        p /= total
        p[rows, y] -= 1
        return np.array([loss]), np.array([right]), np.array([np.linalg.norm(X.T @ p) / len(y)])

    return at
