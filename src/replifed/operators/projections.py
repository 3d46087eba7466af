"""Approximate projections on sparse combinations of atoms, in coefficients (Jeong et al., Section II).

A vector w = sum_j c_j a_j is given by its coefficients c, and a gradient r by its correlations <a_j, r>
with the atoms: projections need only the Gram matrix G = A'A, no vectors of the original space.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ConfigError
from replifed.operators.dictionaries import matching_pursuit
from replifed.operators.hard_threshold import threshold_by_class


@dataclass(frozen=True)
class Thresholding:
    """The best k-sparse approximation where atoms are orthonormal (eta = 1): the k largest entries.

    With `classes` C > 1, coefficients are matrices (d, C), flattened, of which each column keeps k / C.
    """

    classes: int = 1

    def __post_init__(self) -> None:
        if type(self.classes) is not int or self.classes < 1:
            raise ConfigError(f"Thresholding.classes = {self.classes!r}: must be a whole number, at least 1")

    def support(self, correlations: NDArray, k: int | NDArray) -> NDArray:
        """approx_k(r) of vectors with these correlations (..., d): a mask, at most k atoms each."""
        return threshold_by_class(correlations, k, self.classes) != 0

    def prune(self, coefficients: NDArray, k: int | NDArray) -> NDArray:
        """Coefficients of P_L w with L = approx_k(w), for w with these coefficients (..., d)."""
        return threshold_by_class(coefficients, k, self.classes)

    def norm(self, coefficients: NDArray) -> NDArray:
        """|w|, shape (..., 1)."""
        return np.sqrt(np.einsum("...i,...i->...", coefficients, coefficients))[..., None]


@dataclass(frozen=True)
class MatchingPursuit:
    """Orthogonal matching pursuit: atoms one by one, refitted after each; otherwise as `Thresholding`."""

    gram: NDArray  # A'A, (d, d); atoms of any length

    def norm(self, coefficients: NDArray) -> NDArray:
        squared = np.einsum("...i,...i->...", coefficients @ self.gram, coefficients)
        return np.sqrt(np.maximum(squared, 0.0))[..., None]

    def support(self, correlations: NDArray, k: int | NDArray) -> NDArray:
        return self.pursue(correlations, k) != 0

    def prune(self, coefficients: NDArray, k: int | NDArray) -> NDArray:
        return self.pursue(coefficients @ self.gram, k)

    def pursue(self, correlations: NDArray, k: int | NDArray) -> NDArray:
        """Coefficients of P_L w, L = approx_k(w), for w with these correlations (..., d)."""
        if np.ndim(k):
            counts = np.asarray(k).tolist()
            return np.stack([self.pursue(row, n) for row, n in zip(correlations, counts, strict=True)])
        d = correlations.shape[-1]
        lengths = np.sqrt(np.diag(self.gram))
        unit = self.gram / np.outer(lengths, lengths)
        coefficients = matching_pursuit(unit, correlations.reshape(-1, d) / lengths, min(k, d))
        return (coefficients / lengths).reshape(correlations.shape)


Projection = Thresholding | MatchingPursuit


def onto_ball(coefficients: NDArray, radius: float, projection: Projection) -> NDArray:
    """Pi_R: scale vectors longer than `radius` back to it; coefficients (..., d)."""
    length = projection.norm(coefficients)
    if (length <= radius).all():
        return coefficients
    return coefficients * np.minimum(1.0, radius / np.maximum(length, np.finfo(coefficients.dtype).tiny))
