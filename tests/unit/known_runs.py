"""Curves, histories and claims of papers, for measures whose answers are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from replifed.claims.curves import Curves
from replifed.claims.verdicts import judge
from replifed.papers.inputs import Inputs
from replifed.papers.jobs import claims_of
from replifed.parts import typed


class AllThere:
    """Experiments that are all there but what is `missing`, of one kind of data, or each of its own."""

    def __init__(self, kind="synthetic", missing=()):
        self.kind, self.missing = kind, missing

    def has(self, key):
        return key not in self.missing

    def data_kind(self, experiment):
        return (self.kind[experiment] if isinstance(self.kind, dict) else self.kind), ""

    def of_perturbed(self):
        return [self, self]  # nothing was kept of them

    def with_perturbed(self):
        return [self, self, self]


class Runs(Inputs):
    """Histories by experiment and method; `settings` are those of every experiment."""

    def __init__(self, paper, frames, settings=None):
        super().__init__({f"run:{name}/{method}": [] for name, method in frames}, {}, paper)
        self.paper, self.frames, self.settings = paper, frames, settings

    def _run(self, experiment, method):
        return self.frames[experiment, method]

    def _experiment(self, name):
        return typed(self.paper, self.settings)


def curves(*values, first=0, every=1):
    """Curves of seeds 1, 2, ..., with a record every so many rounds from the first."""
    values = np.array(values, dtype=float)
    return Curves(first + every * np.arange(values.shape[1]), 1 + np.arange(len(values)), values)


def claim_of(name):
    """The claim with this id."""
    return next(claim for claim in claims_of(name.partition(".")[0]) if claim.id == name)


def judged(name, inputs):
    """Return how the claim with this id is judged on these inputs, however few their seeds."""
    claim = claim_of(name)
    return judge(replace(claim, fewest=1), claim.measure(inputs))
