"""Products of stacked client matrices with stacked client models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Fewer columns are multiplied one by one: a BLAS matrix product first packs its operands.
FEWEST_COLUMNS = 6
# With more columns BLAS is faster than compiled loops.
_MAX_COLUMNS = 64
# Minimum number of entries of a matrix for which a compiled product gains more than loading it costs.
_WORTH_COMPILING = 1 << 20
# Up to this size a full eigendecomposition is faster than an iterative one.
_DIRECT = 64


def client_products(matrices: NDArray, models: NDArray) -> NDArray:
    """Multiply each client's matrix (1 or R, N, a, b) by each run's model of that client (R, N, b, C)."""
    runs, clients, _, outputs = models.shape
    if len(matrices) == 1 and runs > 1 and runs * outputs >= FEWEST_COLUMNS:
        # Runs that share their data are columns of one product: the data are read once, not R times.
        columns = models.transpose(1, 2, 0, 3).reshape(clients, -1, runs * outputs)
        products = np.matmul(matrices[0], columns)
        return products.reshape(clients, -1, runs, outputs).transpose(2, 0, 1, 3)
    return np.matmul(matrices, models)


def tall_product(matrix: NDArray, columns: NDArray) -> NDArray:
    """Multiply a matrix (a, b), where a may be large, by columns (b, c)."""
    c = columns.shape[1]
    if not _worth_compiling(matrix, columns, _MAX_COLUMNS):
        return _by_blas(matrix, columns)
    from replifed.kernels import tiles

    if c < FEWEST_COLUMNS:
        product = np.empty((c, len(matrix)), matrix.dtype)
        tiles.tall_products(matrix, np.ascontiguousarray(columns.T), product)
        return product.T
    padded = np.zeros((len(columns), tiles.padded(c, matrix.itemsize)), matrix.dtype)
    padded[:, :c] = columns
    product = np.empty((len(matrix), padded.shape[1]), matrix.dtype)
    tiles.tall_products_in_tiles(matrix, padded, product)
    return product[:, :c]


def tall_product_transposed(matrix: NDArray, columns: NDArray) -> NDArray:
    """Multiply the transpose of a matrix (a, b), where a may be large, by columns (a, c)."""
    if not _worth_compiling(matrix, columns, FEWEST_COLUMNS - 1):
        return _by_blas(matrix.T, columns)
    from replifed.kernels.tiles import tall_transposed_products

    product = np.empty((columns.shape[1], matrix.shape[1]), matrix.dtype)
    tall_transposed_products(matrix, np.ascontiguousarray(columns.T), product)
    return product.T


def _worth_compiling(matrix: NDArray, columns: NDArray, max_columns: int) -> bool:
    """Return True if compiled loops are faster than BLAS, call included: up to `max_columns` columns."""
    return (
        columns.shape[1] <= max_columns
        and matrix.size >= _WORTH_COMPILING
        and matrix.flags.c_contiguous
        and matrix.dtype == columns.dtype
    )


def _by_blas(matrix: NDArray, columns: NDArray) -> NDArray:
    if columns.shape[1] >= FEWEST_COLUMNS:
        return matrix @ columns
    return np.stack([matrix @ np.ascontiguousarray(column) for column in columns.T], axis=-1)


def largest_eigenvalue(matrix, size: int) -> float:
    """Largest eigenvalue of A'A for a dense or sparse matrix A whose smaller side is `size`."""
    if size <= _DIRECT:
        A = matrix.toarray() if hasattr(matrix, "toarray") else matrix
        A = A.astype(float)
        return float(np.linalg.eigvalsh(A @ A.T if A.shape[0] <= A.shape[1] else A.T @ A)[-1])
    from scipy.sparse.linalg import svds

    # A fixed start, since the default one is random.
    return float(
        svds(matrix, k=1, v0=np.ones(min(matrix.shape)), return_singular_vectors=False, tol=1e-8)[0] ** 2
    )
