"""The plain numpy baseline of FedIterHT: a loop over clients, vectorised inside each of them."""

from __future__ import annotations

import numpy as np


def keep_largest(v, tau):
    """H_tau of one vector in linear time; of equal entries the first are kept."""
    magnitude = np.abs(v)
    cut = np.partition(magnitude, len(v) - tau)[len(v) - tau]
    kept = np.where(magnitude >= cut, v, 0)
    excess = np.count_nonzero(kept) - tau
    if excess > 0:
        kept[np.flatnonzero(magnitude == cut)[-excess:]] = 0
    return kept


def keep_largest_of_nonzeros(v, tau):
    """The same, faster where nearly all entries are zero: selection is slow among many equal numbers."""
    held = np.flatnonzero(v)
    if len(held) <= tau:
        return v.copy()
    kept = np.zeros_like(v)
    kept[held] = keep_largest(v[held], tau)
    return kept


def fediterht_round(x, clients, weights, gradient, batches, step, tau, threshold=keep_largest):
    """One round of FedIterHT.

    Parameters
    ----------
    x : array, shape (d,)
        The server's model.
    clients : list
        What `gradient` needs of each client.
    weights : array, shape (N,)
    gradient : callable
        Maps (client, model, sample numbers) to the gradient of a minibatch.
    batches : list of K int arrays, shape (N, b)
    step, tau : gamma and the sparsity level
    threshold : H_tau
    """
    total = np.zeros_like(x)
    for i, client in enumerate(clients):
        u = x
        for batch in batches:
            u = threshold(u - step * gradient(client, u, batch[i]), tau)
        total += weights[i] * u
    return threshold(total, tau)
