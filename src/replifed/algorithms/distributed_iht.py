"""Distributed iterative hard thresholding: one local step per round (Tong et al. 2022, Section 5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from replifed.algorithms.base import Cohorts
from replifed.algorithms.fedht import FedHT
from replifed.network.messages import Counted, Sent


@dataclass(frozen=True, kw_only=True)
class DistributedIHT(FedHT):
    """x+ = H_tau(x - gamma sum_i p_i g_i), which is FedHT with one local step."""

    name: ClassVar = "distributed_iht"
    label: ClassVar = "Distributed-IHT"
    look: ClassVar = ("green", "dash_dot", "^")
    cohorts: ClassVar = Cohorts("all clients in every round", "as FedHT", form=False)

    local_steps: int = field(default=1, init=False)

    small: ClassVar = {"step": 0.05, "sparsity": 4}

    @staticmethod
    def messages(r: Counted) -> Sent:
        """As FedHT with one local step."""
        return Sent(r.c * r.dense, r.c * r.sparse, r.n)
