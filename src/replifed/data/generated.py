"""Data sets that need no file and no network: scikit-learn's digits, and FedProx's synthetic clients.

Source of the clients: T. Li et al., Federated optimization in heterogeneous networks, MLSys 2020, Section
5.1, after O. Shamir et al., ICML 2014. For client k, with u_k from N(0, ALPHA) and B_k from N(0, BETA):
entries of W_k (10 x 60) and b_k from N(u_k, 1), entries of v_k from N(B_k, 1), and samples x from
N(v_k, diag(j^-1.2)), with the label argmax(W_k x + b_k). There are 30 clients, each with 50 samples and
as many more as a log-normal law of parameters 4 and 2 draws. The text writes N(mean, variance); the
authors' code hands ALPHA and BETA to numpy as standard deviations.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from replifed.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMS = ("digits", "synthetic:ALPHA,BETA")
_HELP = "write synthetic:ALPHA,BETA (variances, from 0 on), or synthetic:ALPHA,BETA,deviation"
_CLIENTS, _FEATURES, _CLASSES = 30, 60, 10
_SAMPLES = 300  # of a client at most, as of built-in data: some clients have tens of thousands
_LARGEST = 16.0  # of the digits' pixels


class Synthetic(NamedTuple):
    """How much models and features differ between clients: standard deviations of u_k and of B_k."""

    models: float
    features: float


def is_generated(path: str) -> bool:
    """Return whether a path, or the name of a data set, stands for data of this module."""
    return path == FORMS[0] or path.startswith("synthetic:")


def settings_of(name: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the settings of a custom data set for `digits` or `synthetic:ALPHA,BETA`."""
    settings = {"path": name, "form": "generated", "loss": "softmax"}
    if name == FORMS[0]:
        return name, settings
    synthetic(name)
    key = re.sub("[^a-z0-9]+", "_", name.lower())
    return key, {**settings, "partition": "given", "samples": _SAMPLES}


def synthetic(path: str) -> Synthetic:
    """Return what `synthetic:ALPHA,BETA` says.

    >>> synthetic("synthetic:0.25,1"), synthetic("synthetic:0.25,1,deviation")
    (Synthetic(models=0.5, features=1.0), Synthetic(models=0.25, features=1.0))
    """
    words = path.partition(":")[2].split(",")
    kind = words.pop() if len(words) == 3 else "variance"
    try:
        alpha, beta = map(float, words)
    except ValueError:
        alpha = beta = math.nan
    if kind not in ("variance", "deviation") or not (0 <= alpha < math.inf and 0 <= beta < math.inf):
        raise ConfigError(f"{path}: {_HELP}")
    return Synthetic(alpha, beta) if kind == "deviation" else Synthetic(math.sqrt(alpha), math.sqrt(beta))


def generate(path: str) -> tuple[NDArray, NDArray, NDArray | None]:
    """Return features, classes and, for synthetic ones, the client of each sample."""
    if path == FORMS[0]:
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return X / _LARGEST, y, None
    return _synthetic(synthetic(path))


def _synthetic(differ: Synthetic) -> tuple[NDArray, NDArray, NDArray]:
    """Draw the clients; the last feature is 1, so that the model has its b."""
    import numpy as np

    from replifed.randomness import generator

    rng = generator(0, 0, None, "synthetic")
    sizes = 50 + rng.lognormal(4.0, 2.0, _CLIENTS).astype(int)
    u, B = differ.models * rng.normal(size=_CLIENTS), differ.features * rng.normal(size=_CLIENTS)
    root = np.arange(1, _FEATURES + 1) ** -0.6
    X, y = [], []
    for k, size in enumerate(sizes):
        W, b = rng.normal(u[k], 1.0, (_FEATURES, _CLASSES)), rng.normal(u[k], 1.0, _CLASSES)
        v = rng.normal(B[k], 1.0, _FEATURES)
        x = v + root * rng.normal(size=(size, _FEATURES))
        X.append(np.column_stack([x, np.ones(size)]))
        y.append((x @ W + b).argmax(axis=1))
    return np.concatenate(X), np.concatenate(y), np.repeat(np.arange(_CLIENTS), sizes)
