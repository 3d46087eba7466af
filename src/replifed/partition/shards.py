"""Clusters cut into equal shards, and shards assigned to clients.

Source: the partition of Tong et al., Algorithms 2022, 15(9), 319, Section 5.2: 10 clusters, each
split evenly into 20 parts, and each client takes one part of each of two clusters.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from replifed.errors import ConfigError, DataError

# Redraws after a deal that could not be repaired. Only clusters with fewer samples than parts need any.
_DEALS = 100


def split_shards(cluster: NDArray, parts: int, rng: Generator) -> NDArray[np.int32]:
    """Cut each cluster at random into `parts` shards whose sizes differ by at most one.

    `cluster` (n,) has that of each sample, from 0, and the result (n,) its shard. Shard s is a part of
    cluster ``s // parts``; a cluster of fewer than `parts` samples has empty shards.
    """
    shard = np.empty(len(cluster), dtype=np.int32)
    for c in range(int(cluster.max()) + 1):
        members = rng.permutation(np.flatnonzero(cluster == c))
        shard[members] = c * parts + np.arange(len(members)) % parts
    return shard


def deal_shards(cluster: NDArray, size: NDArray, shards_per_client: int, rng: Generator) -> NDArray[np.int32]:
    """Deal every shard to one client, so that no client has two of one cluster or no sample at all.

    The shards are shuffled and assigned; then, as long as some hand is not allowed, one of its shards is
    swapped with a randomly chosen one of another hand such that fewer faults remain. Without empty
    shards there always is such a swap. With them an assignment may get stuck; then all start afresh.

    `cluster` (S,) is that of each shard, each cluster with equally many, and `size` (S,) its number of
    samples. Returns the client of each shard (S,), 0 to S / shards_per_client - 1.
    """
    shards, kinds = len(cluster), len(np.unique(cluster))
    if shards % shards_per_client:
        raise ConfigError(f"{shards} shards cannot be dealt in hands of {shards_per_client}")
    if shards_per_client > kinds:
        raise ConfigError(
            f"a client cannot have shards of {shards_per_client} different clusters out of {kinds}"
        )
    clients = shards // shards_per_client
    filled = np.count_nonzero(size)
    if filled >= clients:
        for _ in range(_DEALS):
            hands = rng.permutation(shards).reshape(clients, shards_per_client)
            if _repair(hands, cluster, size, rng):
                owner = np.empty(shards, dtype=np.int32)
                owner[hands] = np.arange(clients)[:, None]
                return owner
    raise DataError(
        f"the clusters are too small: {shards - filled} of {shards} shards have no sample, so that not "
        f"all of {clients} clients get one; use fewer parts or other clusters"
    )


def deal_clients(cluster: NDArray, parts: int, shards_per_client: int, rng: Generator) -> NDArray[np.int32]:
    """Cut clusters into shards, deal these, and say which client has each sample; parameters as above.

    `cluster` (n,) leaves no cluster out. There are ``clusters * parts / shards_per_client`` clients.
    """
    shards = (int(np.max(cluster)) + 1) * parts
    shard = split_shards(cluster, parts, rng)
    size = np.bincount(shard, minlength=shards)
    return deal_shards(np.arange(shards) // parts, size, shards_per_client, rng)[shard]


def _repair(hands: NDArray, cluster: NDArray, size: NDArray, rng: Generator) -> bool:
    """Swap shards between `hands` (clients, shards of each), in place, until all hands are allowed."""

    def faults(hand: NDArray) -> int:
        return len(hand) - len(set(cluster[hand].tolist())) + int(not size[hand].any())

    left = np.array([faults(hand) for hand in hands])

    def improved(i: int) -> bool:
        """Make a swap that lowers the faults of hand i and its partner together, if there is one."""
        for j in rng.permutation(len(hands)):
            for a, b in np.ndindex(hands.shape[1], hands.shape[1]) if j != i else ():
                hands[i, a], hands[j, b] = hands[j, b], hands[i, a]
                now = faults(hands[i]), faults(hands[j])
                if sum(now) < left[i] + left[j]:
                    left[i], left[j] = now
                    return True
                hands[i, a], hands[j, b] = hands[j, b], hands[i, a]
        return False

    # Every swap lowers the total of the faults, so this comes to an end.
    while left.any():
        if not any(improved(int(i)) for i in np.flatnonzero(left)):
            return False
    return True
