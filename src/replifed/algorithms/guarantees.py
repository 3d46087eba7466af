"""What is proved of a method, as its authors' theorems have it; methods declare it beside their code."""

from __future__ import annotations

from typing import NamedTuple


class Guarantee(NamedTuple):
    """Statements about convergence.

    Attributes
    ----------
    linear_to_bias : linear convergence up to the optimal statistical bias
    growing_batches : whether that needs minibatches that grow exponentially with the rounds
    unbounded_dissimilarity : no bound on how the clients' gradients differ, except at the solution
    """

    linear_to_bias: bool
    unbounded_dissimilarity: bool
    growing_batches: bool = False
