"""Models in the span of the samples: predictions and gradients on minibatches."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled
from replifed.kernels.linear import predict


@compiled
def minibatch_predictions(gram, batch, models, predictions, z):
    """z = c X x + X X' a, (R, N, C, b), for the samples drawn, `batch` (B, N, b).

    Of the Gram matrices (S, N, m, m), models (R, N, C, m + 1), a and then c, and predictions X x (R, N, C,
    m). S and B divide R; the first R / S runs share the first data set, and so on.
    """
    S, B, (R, N, C, m) = len(gram), len(batch), predictions.shape
    for i in range(N):
        for run in range(R):  # runs that share their minibatches find them in the cache
            drawn = batch[run * B // R, i]
            for k in range(C):
                model, known, predicted = models[run, i, k], predictions[run, i, k], z[run, i, k]
                predict(gram[run * S // R, i], drawn, model[:m], predicted)
                for j in range(len(drawn)):
                    predicted[j] += model[m] * known[drawn[j]]


@compiled
def add_drawn(batch, r, g):
    """Add `r` (R, N, C, b) to `g` (R, N, C, at least m) at the samples drawn, as often as each was."""
    R, N, C, b = r.shape
    B = len(batch)
    for run in range(R):
        for i in range(N):
            for k in range(C):
                for j in range(b):
                    g[run, i, k, np.uintp(batch[run * B // R, i, j])] += r[run, i, k, j]
