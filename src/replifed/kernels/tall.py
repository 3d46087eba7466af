"""Products of a tall matrix with a few vectors, which read the matrix from memory once for all of them."""

from __future__ import annotations

import numpy as np

from replifed.kernels import compiled, tiles
from replifed.kernels.linear import accumulate, predict

# So many rows of the matrix stay in the cache from one vector, or one tile's columns, to the next.
_BLOCK = 16
_TILES_BLOCK = 48


@compiled
def products(A, vectors, z):
    """z_c = A u_c for A (n, d), vectors u_c (c, d) and z (c, n)."""
    everyone = np.arange(len(A))
    for first in range(0, len(A), _BLOCK):
        rows = everyone[first : first + _BLOCK]
        for c in range(len(vectors)):
            predict(A, rows, vectors[c], z[c, first : first + _BLOCK])


@compiled
def transposed_products(A, vectors, g):
    """g_c = A' r_c for A (n, d), vectors r_c (c, n) and g (c, d)."""
    everyone = np.arange(len(A))
    g[:] = 0
    for first in range(0, len(A), _BLOCK):
        rows = everyone[first : first + _BLOCK]
        for c in range(len(vectors)):
            accumulate(A, rows, vectors[c, first : first + _BLOCK], g[c])


@compiled
def products_in_tiles(A, B, C):
    """C = A B with as many columns as `tiles.products` asks for."""
    everyone = np.arange(len(A))
    for first in range(0, len(A), _TILES_BLOCK):
        rows = slice(first, first + _TILES_BLOCK)
        tiles.products(A, everyone[rows], B, C[rows])
