"""Partition rules of the literature: i.i.d., Dirichlet shares of labels, shards of sorted labels.

All draw the clients' sizes first, equal or log-normal: label skew and size skew are independent choices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from replifed.errors import DataError
from replifed.partition.heterogeneity import label_groups


def split(y: NDArray, settings: Mapping[str, Any], rng: Generator) -> NDArray[np.int32]:
    """Return the client of each sample (n,), from 0, and -1 for samples that no client has.

    Parameters
    ----------
    y : integer labels or real targets, (n,); targets are grouped into tenths.
    settings : clusters (a name in `RULES`), clients (their number), spread (standard deviation of the
        logarithm of the sizes, 0 for equal ones); optionally samples (mean number per client, drawn from
        all samples; by default all are used); and alpha of "dirichlet", shards_per_client of "shards".

    Raises
    ------
    DataError
        A client would get no sample.
    """
    clients, samples = settings["clients"], len(y)
    total = min(samples, clients * settings.get("samples", samples))
    if clients > total:
        raise DataError(f"{total} samples cannot be split between {clients} clients; ask for fewer clients")
    shares = (
        np.exp(settings["spread"] * rng.standard_normal(clients)) if settings["spread"] else np.ones(clients)
    )
    sizes = _rounded(shares / shares.sum() * total)
    client = RULES[settings["clusters"]](y, sizes, settings, rng)
    empty = clients - np.count_nonzero(np.bincount(client[client >= 0], minlength=clients))
    if empty:
        raise DataError(
            f"{empty} of {clients} clients would get none of {total} samples; ask for fewer clients, or for "
            "sizes that differ less"
        )
    return client


def _rounded(shares: NDArray) -> NDArray[np.int64]:
    """Round `shares` to whole numbers with the same sum, each by less than one."""
    bounds: NDArray[np.int64] = np.rint(np.cumsum(shares)).astype(np.int64)
    return bounds - np.concatenate(([0], bounds[:-1]))


def _iid(y: NDArray, sizes: NDArray, settings: Mapping[str, Any], rng: Generator) -> NDArray[np.int32]:
    """Assign samples at random."""
    client = np.full(len(y), -1, dtype=np.int32)
    client[rng.permutation(len(y))[: sizes.sum()]] = np.repeat(np.arange(len(sizes)), sizes)
    return client


def _dirichlet(y: NDArray, sizes: NDArray, settings: Mapping[str, Any], rng: Generator) -> NDArray[np.int32]:
    """Draw each client's label distribution, then its samples from that distribution, without replacement.

    It is Dirichlet(alpha K p) with p the distribution of the K labels in the data: alpha for each label if
    all are equally frequent. A client that draws more samples of a label than are left draws the rest from
    its distribution of the other labels. Source: Hsu, Qi, Brown, arXiv 1909.06335, Section 3, with clients in
    random order.
    """
    _, group = np.unique(label_groups(y)[1], return_inverse=True)
    piles = [rng.permutation(np.flatnonzero(group == k)) for k in range(group.max() + 1)]
    left = np.array([len(pile) for pile in piles])
    weights = settings["alpha"] * len(left) * left / len(y)
    client = np.full(len(y), -1, dtype=np.int32)
    for i in rng.permutation(len(sizes)):
        shares, missing = rng.dirichlet(weights), sizes[i]
        while missing:
            chances = shares * (left > 0)
            # Those of the data where none of its labels is left, or alpha is too large to compute with.
            chances = chances if chances.sum() > 0 else left
            taken = np.minimum(rng.multinomial(missing, chances / chances.sum()), left)
            for pile, end, count in zip(piles, left, taken, strict=True):
                client[pile[end - count : end]] = i
            left, missing = left - taken, missing - taken.sum()
    return client


def _shards(y: NDArray, sizes: NDArray, settings: Mapping[str, Any], rng: Generator) -> NDArray[np.int32]:
    """Sort samples by label, cut them into shards, and assign shards_per_client random shards to each client.

    Source: McMahan et al., AISTATS 2017, Section 3. A client's shards have equal sizes, up to rounding, that
    sum to the client's size.
    """
    each, total = settings["shards_per_client"], sizes.sum()
    if len(sizes) * each > total:
        raise DataError(
            f"{len(sizes)} clients of {each} shards need more than {total} samples; ask for fewer of either"
        )
    kept = rng.permutation(len(y))[:total]
    kept = kept[np.argsort(y[kept], kind="stable")]
    owner = rng.permutation(np.repeat(np.arange(len(sizes)), each))
    client = np.full(len(y), -1, dtype=np.int32)
    client[kept] = np.repeat(owner, _rounded(sizes[owner] / each))
    return client


RULES: dict[str, Callable[..., NDArray[np.int32]]] = {"iid": _iid, "dirichlet": _dirichlet, "shards": _shards}
