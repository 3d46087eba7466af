"""Surrogates: generated tables for data sets that are not available.

A surrogate has the shape, sparsity and class balance of its data set and some cluster structure, so that
every experiment runs, at about the cost of the real data. It carries no information about the real data:
results on a surrogate say nothing about a paper.

Each generator uses two random streams: the *world* (vocabulary, topics, planted weights) and the *sample*
(the rows). The training and test set of one data set share a world. Their settings, in the catalogue, are the
shape, `rows` and `features`; `row_nonzeros`, the mean number of distinct words (or ones) in a row;
`clusters`, the number of topics, or of groups of rows that are alike; and `positives`, the number of rows
labelled +1, by a planted linear score with noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from replifed.randomness import generator

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from replifed.data.catalogue import Dataset

# Words are drawn in batches of about this many, which keeps a batch's arrays near 100 MB.
_BATCH = 4_000_000


def generate(dataset: Dataset) -> tuple[csr_matrix | NDArray, NDArray]:
    """Return the features and labels of a data set's surrogate, like those of a parsed table."""
    settings = dict(dataset.surrogate or {})
    draw = GENERATORS[settings.pop("generator")]
    world = generator(0, 0, None, f"surrogate world {settings.pop('world', dataset.id)}")
    sample = generator(0, 0, None, f"surrogate sample {dataset.id}")
    return draw(world, sample, **settings)


def text_regression(
    world: Generator, sample: Generator, *, rows: int, features: int, row_nonzeros: float, clusters: int
) -> tuple[csr_matrix, NDArray]:
    """Documents with a target of mean -3.5 that is linear in a few words, plus noise."""
    vocabulary = _Vocabulary(world, features, clusters)
    weights = np.zeros(features)
    # Weights sit on words that are neither in every document nor in hardly any.
    used = vocabulary.columns[20 : max(21, features // 20)]
    planted = world.choice(used, size=min(300, len(used)), replace=False)
    weights[planted] = world.standard_normal(len(planted))
    topics = sample.integers(clusters, size=rows)
    X = vocabulary.documents(sample, topics, row_nonzeros, values="tfidf")
    linear = X @ weights
    linear = (linear - linear.mean()) / max(linear.std(), 1e-12)
    noise = np.sqrt(1 - 0.7**2) * sample.standard_normal(rows)
    return X, -3.5 + 0.6 * (0.7 * linear + noise)


def text_classes(
    world: Generator,
    sample: Generator,
    *,
    rows: int,
    features: int,
    row_nonzeros: float,
    clusters: int,
    labels: Sequence[int],
    sizes: Sequence[float],
    values: str = "tfidf",
) -> tuple[csr_matrix, NDArray]:
    """Documents whose topic determines their class; class `labels[k]` has the relative size `sizes[k]`.

    `values` is "tfidf" (unit rows) or "counts" (of words); two in a hundred have another document's label.
    """
    vocabulary = _Vocabulary(world, features, clusters)
    classes = sample.permutation(np.repeat(np.arange(len(labels)), _shares(rows, sizes)))
    # Class k owns the topics k, k + K, k + 2K, ...
    own = np.maximum(1, (clusters - classes + len(labels) - 1) // len(labels))
    topics = (classes + len(labels) * sample.integers(own)) % clusters
    X = vocabulary.documents(sample, topics, row_nonzeros, values=values)
    moved = np.flatnonzero(sample.random(rows) < 0.02)
    classes[moved] = classes[sample.permutation(moved)]
    return X, np.asarray(labels, dtype=np.int64)[classes]


def binary_bag(
    world: Generator,
    sample: Generator,
    *,
    rows: int,
    features: int,
    row_nonzeros: float,
    positives: int,
    clusters: int,
) -> tuple[csr_matrix, NDArray]:
    """Rows of zeros and ones with a few popular columns; long and empty rows occur."""
    from scipy.sparse import csr_matrix

    popularity = 1 / (np.arange(features) + 8.0) ** 1.1
    popularity = popularity[world.permutation(features)]
    taste = np.exp(world.normal(0, 1, (clusters, features)))
    planted = world.standard_normal(features)
    topics = sample.integers(clusters, size=rows)
    length = sample.gamma(1.2, 1.0, rows)
    rate = popularity * taste
    rate /= rate.sum(axis=1, keepdims=True)
    # 1 - exp(-r) < r: scale up until the expected number of ones is right.
    factor = row_nonzeros / 1.2
    for _ in range(20):
        expected = -np.expm1(-factor * length[:2000, None] * rate[topics[:2000]]).sum(axis=1).mean()
        factor *= row_nonzeros / expected
    ones = sample.random((rows, features), dtype=np.float32) < -np.expm1(
        -factor * length[:, None] * rate[topics]
    )
    X = csr_matrix(ones, dtype=np.float64)
    return X, _balanced(sample, X @ planted, positives)


def categorical(
    world: Generator,
    sample: Generator,
    *,
    rows: int,
    features: int,
    attributes: int,
    positives: int,
    clusters: int,
    missing: float = 0.0,
    value: float = 1.0,
) -> tuple[csr_matrix, NDArray]:
    """Attributes in one-hot coding, whose levels depend on the row's cluster.

    The columns are divided among the `attributes`, of which a share `missing` has no value; `value` stands
    for "one".
    """
    from scipy.sparse import csr_matrix

    levels = 1 + _shares(features - attributes, world.random(attributes) + 0.2)
    offsets = np.concatenate([[0], np.cumsum(levels)])
    topics = sample.integers(clusters, size=rows)
    ones = np.zeros((rows, features), dtype=bool)
    for start, stop in pairwise(offsets):
        tilt = np.exp(world.normal(0, 0.7, (clusters, stop - start)))
        shares = tilt / (1.0 + np.arange(stop - start))
        limits = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)[:, :-1]
        level = (sample.random(rows)[:, None] > limits[topics]).sum(axis=1)
        present = sample.random(rows) >= missing
        ones[np.flatnonzero(present), start + level[present]] = True
    X = value * csr_matrix(ones, dtype=np.float64)
    return X, _balanced(sample, X @ world.standard_normal(features) / value, positives)


def digits(
    world: Generator, sample: Generator, *, class_sizes: Sequence[int]
) -> tuple[NDArray[np.uint8], NDArray]:
    """Grey images: smooth strokes of a class in several styles (clusters), moved and noisy.

    There are `class_sizes[k]` images of class k, of 28 x 28 pixels from 0 to 255, line by line in a row of X.
    """
    from scipy.ndimage import gaussian_filter

    classes, side, styles = len(class_sizes), 28, 6
    # A closed curve of low frequency a class; a style bends it a little.
    t = np.linspace(0, 2 * np.pi, 400)
    waves = np.stack([np.cos(t), np.sin(t), np.cos(2 * t), np.sin(2 * t), np.cos(3 * t), np.sin(3 * t)])
    shape = world.normal(0, 1, (classes, 1, 2, 6)) + world.normal(0, 0.25, (classes, styles, 2, 6))
    curves = shape @ waves
    curves /= np.abs(curves).max(axis=(2, 3), keepdims=True)
    pixels = np.round(side / 2 - 0.5 + 0.36 * side * curves).astype(int)
    strokes = np.zeros((classes, styles, side, side))
    c, s = np.ogrid[:classes, :styles]
    strokes[c[..., None], s[..., None], pixels[:, :, 0], pixels[:, :, 1]] = 1
    strokes = gaussian_filter(strokes, (0, 0, side / 40, side / 40))
    strokes = np.minimum(1, 2 * strokes / strokes.max(axis=(2, 3), keepdims=True))

    y = sample.permutation(np.repeat(np.arange(classes), class_sizes))
    style = sample.integers(styles, size=len(y))
    moves = sample.integers(-2, 3, size=(len(y), 2))
    X = np.empty((len(y), side * side), dtype=np.uint8)
    place = np.arange(side)
    for start in range(0, len(y), 5000):
        rows = np.arange(start, min(start + 5000, len(y)))
        down = (place - moves[rows, :1]) % side
        right = (place - moves[rows, 1:]) % side
        image = strokes[y[rows, None, None], style[rows, None, None], down[:, :, None], right[:, None, :]]
        image = image * sample.uniform(0.7, 1, (len(rows), 1, 1))
        noise = sample.standard_normal(image.shape, dtype=np.float32)
        # The background of a scanned digit is exactly black: noise only where there is ink.
        grey = np.where(image > 0.1, 255 * image + 25 * noise, 0)
        X[rows] = np.clip(grey, 0, 255).astype(np.uint8).reshape(len(rows), -1)
    return X, y.astype(np.int64)


def ratings(
    world: Generator, sample: Generator, *, rows: int, features: int, nonzeros: int, clusters: int
) -> tuple[csr_matrix, NDArray]:
    """About `nonzeros` ratings, from 1 to 5, of films by users with shared tastes; a few films get many."""
    from scipy.sparse import csr_matrix

    popularity = world.permutation(1 / (np.arange(features) + 30.0) ** 1.1)
    taste = world.standard_normal((clusters, features))
    quality = 0.5 * world.standard_normal(features)
    group = sample.integers(clusters, size=rows)
    activity = np.exp(sample.normal(0, 1.0, rows))
    rate = activity[:, None].astype(np.float32) * (popularity * np.exp(0.8 * taste)).astype(np.float32)[group]
    # 1 - exp(-r) < r: scale up until the number of ratings expected of every tenth user is right.
    factor, tenth = np.float32(1.0), rate[::10]
    for _ in range(30):
        factor *= np.float32(nonzeros * len(tenth) / rows / -np.expm1(-factor * tenth).sum(dtype=float))
    rated = sample.random(rate.shape, dtype=np.float32) < -np.expm1(-factor * rate)
    user, film = np.nonzero(rated)
    liking = 3.5 + quality[film] + 0.5 * taste[group[user], film] + 0.7 * sample.standard_normal(len(user))
    values = np.clip(np.round(liking), 1, 5)
    return csr_matrix((values, (user, film)), shape=rate.shape), np.zeros(rows)


def clip(
    world: Generator, sample: Generator, *, frames: int, height: int = 240, width: int = 320
) -> tuple[NDArray[np.uint8], NDArray]:
    """A video of bars of different heights over a lit background, struck in turn by a mallet.

    Each bar swings after it is struck, and comes to rest. A row of X is a frame, line by line.
    """
    bars = 8
    down, right = np.mgrid[:height, :width] / np.array([height, width])[:, None, None]
    scene = 70 + 60 * right + 30 * np.sin(6 * down + 2 * right)
    shade = world.uniform(90, 230, bars)
    X = np.empty((frames, height * width), dtype=np.uint8)
    beat, order = 7, world.integers(bars, size=frames // 7 + 2)
    swing = np.zeros(bars)
    for t in range(frames):
        swing *= 0.8
        if t % beat == 0:
            swing[order[t // beat]] = 1.0
        image = scene.copy()
        for bar in range(bars):
            middle = (bar + 0.5) / bars + 0.012 * swing[bar] * np.sin(2.5 * t)
            inside = (np.abs(right - middle) < 0.4 / bars) & (np.abs(down - 0.5) < 0.42 - 0.03 * bar)
            image[inside] = shade[bar]
        # The mallet moves from the bar that it has struck to the next one.
        share = (t % beat) / beat
        from_, to = ((order[t // beat + step] + 0.5) / bars for step in (0, 1))
        at, lift = from_ + share * (to - from_), 0.3 - 0.18 * np.sin(np.pi * share)
        image[(right - at) ** 2 * (width / height) ** 2 + (down - lift) ** 2 < 0.045**2] = 20
        image += sample.normal(0, 1.5, image.shape)
        X[t] = np.clip(np.round(image), 0, 255).reshape(-1)
    return X, np.arange(1.0, frames + 1)


def potentials(
    world: Generator, sample: Generator, *, rows: int, features: int, dim: int
) -> tuple[NDArray[np.float32], NDArray]:
    """Networks of `dim` inputs that are convex, as the potentials of a transport map must be, else random.

    A row of X has the `features` parameters of one network; the last of them are weights between layers.
    """
    # Heavy tails: a sum of many equal parts would be all but quadratic, and its map all but the identity.
    X = (0.3 * sample.standard_normal((rows, features)) ** 5).astype(np.float32)
    first, last = max(2 * dim, 64), max(dim, 32)
    between = first * first + last * first + last
    X[:, -between:] = np.abs(X[:, -between:]) / first
    return X, np.zeros(rows)


GENERATORS: dict[str, Callable[..., tuple[csr_matrix | NDArray, NDArray]]] = {
    one.__name__: one
    for one in (text_regression, text_classes, binary_bag, categorical, digits, potentials, ratings, clip)
}


class _Vocabulary:
    """Words with Zipf-like popularity; some are common to all topics, the others specific to one."""

    def __init__(self, world: Generator, features: int, topics: int) -> None:
        self.features = features
        self.columns = world.permutation(features)
        size = min(features, max(50, features // 20))
        self.topics = np.stack([world.choice(features, size, replace=False) for _ in range(topics)])
        self.common = _zipf_table(features)
        self.special = _zipf_table(size)

    def documents(self, sample: Generator, topics: NDArray, row_nonzeros: float, values: str) -> csr_matrix:
        """Draw one document for each entry of `topics`."""
        from scipy.sparse import csr_matrix, vstack

        spread = 0.6
        length = sample.lognormal(-(spread**2) / 2, spread, len(topics))
        # Words repeat, so that more must be drawn than remain; one small trial says how many.
        trial = np.arange(min(200, len(topics)))
        drawn = 1.5 * row_nonzeros
        for _ in range(4):
            kept = self._counts(sample, topics[trial], drawn * length[trial])[1]
            drawn *= row_nonzeros / max(len(kept) / (len(trial) * length[trial].mean()), 1e-9)
        batches = []
        batch_of_row = (np.cumsum(drawn * length) // _BATCH).astype(int)
        for rows in np.split(np.arange(len(topics)), np.flatnonzero(np.diff(batch_of_row)) + 1):
            keys, counts = self._counts(sample, topics[rows], drawn * length[rows])
            row, column = np.divmod(keys, self.features)
            indptr = np.searchsorted(row, np.arange(len(rows) + 1))
            batch = (counts.astype(np.float64), column.astype(np.int32), indptr.astype(np.int32))
            batches.append(csr_matrix(batch, shape=(len(rows), self.features)))
        X = vstack(batches, format="csr") if len(batches) > 1 else batches[0]
        if values == "tfidf":
            seen = np.bincount(X.indices, minlength=self.features)
            rarity = np.log((1 + len(topics)) / (1 + seen)) + 1
            X.data = (1 + np.log(X.data)) * rarity[X.indices]
            norms = np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1]))
            X.data /= np.repeat(norms, np.diff(X.indptr))
        return X

    def _counts(self, sample: Generator, topics: NDArray, length: NDArray) -> tuple[NDArray, NDArray]:
        """Draw about `length` words a document; return sorted (row, column) keys and their counts."""
        words = np.maximum(3, np.round(length)).astype(np.int64)
        row = np.repeat(np.arange(len(topics)), words)
        special = sample.random(len(row), dtype=np.float32) < 0.4
        column = self.columns[self.common[sample.integers(len(self.common), size=len(row))]]
        chosen = self.special[sample.integers(len(self.special), size=int(special.sum()))]
        column[special] = self.topics[topics[row[special]], chosen]
        return np.unique(row * self.features + column, return_counts=True)


def _zipf_table(size: int) -> NDArray[np.int32]:
    """Return a table of ranks; a uniformly drawn entry has Zipf-like distribution.

    A table look-up is several times faster than a search in the cumulative shares for every word.
    """
    shares = 1 / (np.arange(size) + 5.0)
    limits = np.cumsum(shares / shares.sum())
    ranks = np.searchsorted(limits, (np.arange(1 << 20) + 0.5) / (1 << 20))
    return np.minimum(ranks, size - 1).astype(np.int32)


def _shares(total: int, sizes: Sequence[float] | NDArray) -> NDArray[np.int64]:
    """Split `total` in proportion to `sizes`, at least one each where `total` suffices."""
    sizes = np.asarray(sizes, dtype=float)
    floor = 1 if total >= len(sizes) else 0
    exact = sizes / sizes.sum() * (total - floor * len(sizes))
    parts = np.floor(exact).astype(np.int64)
    left = total - floor * len(sizes) - parts.sum()
    parts[np.argsort(parts - exact, kind="stable")[:left]] += 1
    return parts + floor


def _balanced(sample: Generator, score: NDArray, positives: int) -> NDArray[np.int64]:
    """Label the `positives` rows of largest noisy score +1, the others -1."""
    noisy = score + 0.5 * score.std() * sample.logistic(0, 0.5, len(score))
    y = np.full(len(score), -1, dtype=np.int64)
    y[np.argsort(-noisy, kind="stable")[:positives]] = 1
    return y
