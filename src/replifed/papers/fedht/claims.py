"""The paper's checkable statements (Tong et al. 2022), each with its reading, tolerance and measure.

Readings. `own`: each method at its own best step and K, as the text says. `common`: all methods at one
step, half the inverse of the clients' largest smoothness constant, and the largest K; that fraction was
chosen because it makes the numbers of Figure 3 come out. `equal` (Figure 2): one step for all levels.
Figure 3 does not name its level of heterogeneity: (0.1, 0.1) is the first reading, (1, 1) the second.
Tolerances were fixed before any of this was run.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

from replifed.papers.fedht import comparisons as runs
from replifed.papers.fedht import theory
from replifed.papers.fedht.paper import EXPERIMENTS, LEVEL_READINGS, METHODS, READINGS, REAL_READINGS
from replifed.papers.verdicts import Claim

SIMULATIONS = ("simulation1", "simulation2")
REAL = ("e2006", "rcv1", "mnist")
FEDERATED = ("fedht", "fediterht")
COMPARED = ("fedht", "fediterht", "distributed_iht")

_RATIO_REASON = "30 % of a round number that the text gives with a tilde, for one run without a stated seed"
_STEPS_NOTE = (
    "local Hessians are nearly rank one with |z|^2 about 1000, so several local steps need a step size "
    "many times "
    "smaller than one averaged step does; only at a common, small step does a round with K steps go K "
    "times as far"
)


def claim(name: str, artefact: str, statement: str, kind: str, **more: Any) -> Claim:
    """A claim of this paper; its id is `name` with the reading."""
    # "own (1, 1)" -> ".own-1-1"
    suffix = re.sub(r"[^a-z0-9.]+", "-", more.get("reading", "")).strip("-")
    suffix = f".{suffix}" if suffix else ""
    return Claim(
        id=f"fedht.{name}{suffix}", paper="fedht", artefact=artefact, statement=statement, kind=kind, **more
    )


def _ran(experiments: tuple[str, ...], methods: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"run:{experiment}/{method}" for experiment in experiments for method in methods)


def _figure1() -> Iterator[Claim]:
    for experiment, reading in itertools.product(SIMULATIONS, READINGS):
        for method in FEDERATED:
            where = f"{METHODS[method]} on {EXPERIMENTS[experiment]}"
            common = {"reading": reading, "needs": _ran((experiment,), (method,))}
            yield claim(
                f"fig1.{experiment}.{method}.k",
                "fig1",
                f"{where}: the largest K needs fewer rounds to a target than the smallest (Remarks 2 "
                f"and 3, Figure 1).",
                "order",
                unit="rounds",
                measure=runs.larger_k_helps(experiment, method, reading),
                **common,
            )
            yield claim(
                f"fig1.{experiment}.{method}.monotone",
                "fig1",
                f"{where}: the rounds to a target fall as K grows through its values (Remarks 2 and 3, "
                f"Figure 1).",
                "shape",
                measure=runs.rounds_fall_with_k(experiment, method, reading),
                **common,
            )
        yield claim(
            f"fig1.{experiment}.benefit",
            "fig1",
            f"{EXPERIMENTS[experiment]}: FedIterHT benefits more from a larger K than FedHT does (Remark 3).",
            "order",
            unit="e-folds",
            reading=reading,
            needs=_ran((experiment,), FEDERATED),
            measure=runs.benefits_more(experiment, reading),
        )


def _figure2() -> Iterator[Claim]:
    pairs = {"low": (0, "(0.5, 0.5)", "(0.1, 0.1)"), "high": (1, "(1, 1)", "(0.5, 0.5)")}
    for experiment, method, (name, (place, strong, mild)), reading in itertools.product(
        SIMULATIONS, FEDERATED, pairs.items(), LEVEL_READINGS
    ):
        yield claim(
            f"fig2.{experiment}.{method}.{name}",
            "fig2",
            f"{METHODS[method]} on {EXPERIMENTS[experiment]} converges more slowly at {strong} than at "
            f"{mild} "
            "(Section 5.1, Figure 2).",
            "order",
            unit="share",
            reading=reading,
            needs=_ran((experiment,), FEDERATED),
            measure=runs.slower_when_heterogeneous(experiment, method, reading, place),
        )


def _figure3() -> Iterator[Claim]:
    numbers = {"simulation1": (20, 100, 5.0), "simulation2": (50, 200, 4.0)}
    for experiment, (fast, slow, ratio) in numbers.items():
        name = EXPERIMENTS[experiment]
        needs = _ran((experiment,), ("fediterht", "distributed_iht"))
        variants = [(reading, reading, 0, False, "fig3") for reading in READINGS]
        variants += [(f"{reading} (1, 1)", reading, -1, False, "fig3") for reading in READINGS]
        variants += [(f"{reading} full batch", reading, 0, True, "fig3_full_batch") for reading in READINGS]
        for label, reading, place, full_batch, artefact in variants:
            common = {"reading": label, "needs": needs, "tolerance_reason": _RATIO_REASON}
            common["note"] = _STEPS_NOTE if reading == "own" else ""
            yield claim(
                f"fig3.{experiment}.speedup",
                artefact,
                f"{name}: FedIterHT reaches the objective that Distributed-IHT has after {slow} rounds in "
                f"{ratio:g} times fewer (Section 5.1, Figure 3).",
                "value",
                unit="ratio",
                published=ratio,
                tolerance=0.3 * ratio,
                measure=runs.against_baseline(experiment, reading, slow, place, full_batch, ratio=True),
                **common,
            )
            yield claim(
                f"fig3.{experiment}.rounds",
                artefact,
                f"{name}: FedIterHT needs {fast} rounds to the objective that Distributed-IHT has after "
                f"{slow} "
                "(Section 5.1, Figure 3).",
                "value",
                unit="rounds",
                published=float(fast),
                tolerance=0.3 * fast,
                measure=runs.against_baseline(experiment, reading, slow, place, full_batch, ratio=False),
                **common,
            )
        for reading in READINGS:
            yield claim(
                f"fig3.{experiment}.lower",
                "fig3",
                f"{name}: FedIterHT after {fast} rounds is below Distributed-IHT after {slow}, which "
                f"needs still more "
                "(Section 5.1, Figure 3).",
                "order",
                unit="share",
                reading=reading,
                needs=needs,
                measure=runs.lower_at(experiment, reading, fast, slow),
                note=_STEPS_NOTE if reading == "own" else "",
            )
            for method in FEDERATED:
                yield claim(
                    f"fig3.{experiment}.{method}.fewer",
                    "fig3",
                    f"{name}: {METHODS[method]} needs fewer rounds than Distributed-IHT (contribution "
                    f"(d), Figure 3).",
                    "order",
                    unit="rounds",
                    reading=reading,
                    needs=_ran((experiment,), (method, "distributed_iht")),
                    measure=runs.fewer_rounds(experiment, method, "distributed_iht", reading),
                    note=_STEPS_NOTE if reading == "own" else "",
                )
            yield claim(
                f"fig3.{experiment}.bits",
                "fig3",
                f"{name}: FedIterHT needs fewer bits than FedHT to a target, both directions counted "
                f"(Section 4).",
                "order",
                unit="decades",
                reading=reading,
                needs=_ran((experiment,), FEDERATED),
                measure=runs.fewer_bits(experiment, "fediterht", "fedht", reading),
            )


def _messages() -> Iterator[Claim]:
    yield claim(
        "messages.down",
        "fig3",
        "FedHT broadcasts less than FedAvg does, since the server's model is sparse (Section 3).",
        "identity",
        needs=_ran(SIMULATIONS, ("fedht", "fedavg")),
        measure=runs.cheaper_messages(SIMULATIONS, "fedht", "fedavg", "bits_down"),
    )
    yield claim(
        "messages.up",
        "fig3",
        "FedIterHT uploads less than FedHT, since the clients' models are sparse, too (Section 4).",
        "identity",
        needs=_ran(SIMULATIONS, FEDERATED),
        measure=runs.cheaper_messages(SIMULATIONS, "fediterht", "fedht", "bits_up"),
    )
    yield claim(
        "messages.baseline",
        "fig3",
        "Distributed-IHT communicates every local update (Section 5).",
        "identity",
        needs=_ran(SIMULATIONS, ("distributed_iht",)),
        measure=runs.every_update_sent(SIMULATIONS),
    )
    for experiments, tau, artefact in (
        (SIMULATIONS, 200, "fig3"),
        (("e2006",), 200, "fig6"),
        (("rcv1",), 200, "fig6"),
        (("mnist",), 500, "fig6"),
    ):
        name = "simulations" if experiments == SIMULATIONS else experiments[0]
        title = "both simulations" if experiments == SIMULATIONS else EXPERIMENTS[experiments[0]]
        yield claim(
            f"sparsity.{name}",
            artefact,
            f"On {title} no model that the server broadcasts has more than tau = {tau} non-zeros "
            f"(Algorithms 1 and 2).",
            "identity",
            published=float(tau),
            needs=_ran(experiments, COMPARED),
            measure=runs.sparse(experiments, tau),
            note=""
            if experiments != SIMULATIONS
            else "the text gives no tau for the simulations; 200 is a choice",
        )


def _figure6() -> Iterator[Claim]:
    for reading in REAL_READINGS:
        yield from _figure6_read(reading)


def _figure6_read(reading: str) -> Iterator[Claim]:
    for experiment in REAL:
        for method in FEDERATED:
            yield claim(
                f"fig6.{experiment}.{method}.fewer",
                "fig6",
                f"{EXPERIMENTS[experiment]}: {METHODS[method]} needs fewer rounds to a target than "
                f"Distributed-IHT "
                "(Section 5.2, Figure 6).",
                "order",
                unit="rounds",
                reading=reading,
                needs=_ran((experiment,), (method, "distributed_iht")),
                measure=runs.fewer_rounds(experiment, method, "distributed_iht", reading),
            )
    for (experiment, panel), method in itertools.product({"e2006": "6a", "mnist": "6c"}.items(), FEDERATED):
        yield claim(
            f"fig6.{experiment}.{method}.rougher",
            "fig6",
            f"{EXPERIMENTS[experiment]}: {METHODS[method]} is more random near the end than Distributed-IHT "
            f"(Section 5.2, Figure {panel}).",
            "order",
            unit="share",
            reading=reading,
            needs=_ran((experiment,), (method, "distributed_iht")),
            measure=runs.rougher(experiment, method, reading),
        )
    yield claim(
        "fig6.mnist.apart",
        "fig6",
        "MNIST: the three methods end near different solutions, any two apart (Section 5.2, Figure 6c).",
        "order",
        unit="share",
        reading=reading,
        needs=_ran(("mnist",), COMPARED),
        measure=runs.end_apart("mnist", reading),
        note="told by their objectives",
    )
    yield claim(
        "fig6.mnist.lowest",
        "fig6",
        "MNIST: FedIterHT ends at the lowest objective of the three (Section 5.2, Figure 6c).",
        "order",
        unit="share",
        reading=reading,
        needs=_ran(("mnist",), COMPARED),
        measure=runs.ends_lowest("mnist", reading),
    )


def _calm() -> Iterator[Claim]:
    for experiment in (*SIMULATIONS, *REAL):
        artefact = "fig3" if experiment in SIMULATIONS else "fig6"
        for reading in READINGS if experiment in SIMULATIONS else REAL_READINGS:
            yield claim(
                f"{artefact}.{experiment}.calm",
                artefact,
                f"{EXPERIMENTS[experiment]}: the curves do not hang on rounding: a model moved by its last "
                "bits after the first round, or a step longer by as much, ends at the same objective to a "
                "thousandth (smooth curves in Figures 1 to 3 and 6).",
                "shape",
                reading=reading,
                needs=_ran((experiment,), COMPARED),
                measure=runs.calm(experiment, COMPARED, reading),
                note="what the figures show without saying it",
            )


def _data() -> Iterator[Claim]:
    for experiment in REAL:
        balanced = experiment == "mnist"
        yield claim(
            f"partitions.{experiment}.{'balanced' if balanced else 'unbalanced'}",
            "partitions",
            f"{EXPERIMENTS[experiment]}, as split, is {'balanced' if balanced else 'unbalanced'} in terms of "
            "categories (Section 5.2).",
            "shape",
            needs=(f"partition:{experiment}",),
            measure=runs.even_clusters(experiment, 1.5, balanced=balanced),
            note="balanced: the largest cluster has at most 1.5 times the samples of the smallest",
        )
        yield claim(
            f"partitions.{experiment}.dealt",
            "partitions",
            f"{EXPERIMENTS[experiment]}: each cluster is cut evenly into 20 parts, and each client "
            f"holds parts of two "
            "clusters (Section 5.2).",
            "identity",
            needs=(f"partition:{experiment}",),
            measure=runs.dealt_as_told(experiment),
        )
    yield claim(
        "table2.data",
        "table2",
        "The real data are E2006-tfidf, RCV1 and MNIST (Table 2).",
        "identity",
        needs=tuple(f"partition:{experiment}" for experiment in REAL),
        measure=runs.original_data(REAL),
        note="the numbers of Table 2 itself could not be had",
    )
    for artefact, experiment in (("fig4", "e2006"), ("fig5", "rcv1")):
        yield claim(
            f"{artefact}.structure",
            artefact,
            f"t-SNE shows the hidden structure that k-means finds in {EXPERIMENTS[experiment]} (Section "
            f"5.2).",
            "shape",
            needs=(f"partition:{experiment}",),
            note="a matter for the eye: the text gives neither number nor order",
        )
    for experiment in (*SIMULATIONS, *REAL):
        yield claim(
            f"tuning.{experiment}.grid",
            "tuning",
            f"{EXPERIMENTS[experiment]}: the best step size of each method lies within the searched "
            f"grid, 0.001 to 10 "
            "(Section 5).",
            "shape",
            needs=tuple(f"tuned:{experiment}/{method}" for method in COMPARED),
            measure=runs.steps_within(experiment, 0.001, 10.0),
            note="the search here goes on beyond the grid while the best step is at its edge",
        )


def _theory() -> Iterator[Claim]:
    numbers = {
        "fedht": ("Theorem 1", "theta_1", "Corollary 1", "Corollary 2", "Delta_1 = l_d"),
        "fediterht": ("Theorem 2", "theta_2", "Corollary 3", "Corollary 4", "Delta_2 = l_s"),
    }
    for method, (theorem, theta, corollary, of_objective, delta) in numbers.items():
        planted = {"needs": _ran(("planted",), (method,)), "reading": "theory"}
        name = METHODS[method]
        yield claim(
            f"rates.{method}.linear",
            "rates",
            f"{name} converges linearly where {theorem} holds: log |x_t - x*|^2 is a straight line in t "
            f"(R^2 >= 0.95).",
            "shape",
            measure=runs.linear_convergence(method, 0.95),
            **planted,
        )
        yield claim(
            f"rates.{method}.bound",
            "rates",
            f"{name}: |x_t - x*|^2 stays below {theta}^t |x_0 - x*|^2 where {theorem} holds and its "
            f"bias vanishes.",
            "shape",
            measure=theory.below_bound(method),
            **planted,
        )
        yield claim(
            f"rates.{method}.corollary",
            "rates",
            f"{name} reaches a precision within the number of rounds that {corollary} allows.",
            "shape",
            measure=theory.rounds_within_corollary(method),
            **planted,
        )
        yield claim(
            f"rates.{method}.objective",
            "rates",
            f"{name}: f(x_t) - f(x*) stays below {theta}^t {delta} |x_0 - x*|^2 where {theorem} holds and "
            f"its bias vanishes ({of_objective}).",
            "shape",
            measure=theory.objective_below_bound(method),
            note="the text at hand has lost the inequality; this is what the terms that it defines make",
            **planted,
        )
        yield claim(
            f"rates.{method}.k",
            "rates",
            f"{name} with a larger K shrinks the error more each round where {theorem} holds (Remarks 2 "
            f"and 3).",
            "shape",
            measure=runs.faster_with_k(method),
            **planted,
        )
        yield claim(
            f"theory.{method}.below_one",
            "rates",
            f"{theta} lies in (0, 1) wherever tau is as large as {theorem} asks.",
            "identity",
            measure=theory.rates_below_one(method),
        )
        yield claim(
            f"theory.{method}.k",
            "rates",
            f"{theta} falls as K grows (Remarks 2 and 3).",
            "identity",
            measure=theory.rates_fall_with_k(method),
        )
        yield claim(
            f"theory.{method}.conditions",
            "rates",
            f"The condition of {theorem} on tau can be met by the experiments, whose tau is 200 or 500.",
            "shape",
            measure=theory.conditions_met(method),
            note=(
                "the paper does not say so, but tests its methods there; the least tau is for kappa = 1 and "
                "tau* = 1, the kindest case there is"
            ),
        )
    yield claim(
        "theory.lemma1",
        "rates",
        "Lemma 1: |H_tau(x) - x*|^2 <= (1 + alpha) |x - x*|^2.",
        "identity",
        measure=theory.lemma1,
    )
    yield claim(
        "theory.remark3.condition",
        "rates",
        "theta_2 is at most theta_1 if 2 alpha <= ((1 - 1/(12 kappa_d)) / (1 - 1/(12 kappa_s)))^K - 1 "
        "(Remark 3).",
        "identity",
        measure=theory.remark3_condition,
    )
    yield claim(
        "theory.remark3.faster",
        "rates",
        "theta_2 falls faster than theta_1 as K grows, since kappa_s < kappa_d (Remark 3).",
        "identity",
        measure=theory.iterative_falls_faster,
    )
    yield claim(
        "theory.remark2.bias",
        "rates",
        "The bias term g_1 grows with K (Remark 2).",
        "identity",
        measure=theory.bias_grows_with_k,
        note=(
            "with q = (1 - 1/(12 kappa_d))^K the printed g_1 goes as (1 - q) / (1 - (1 + alpha) q), "
            "which grows with q and so falls with K; only its numerator xi_1 grows"
        ),
    )
    yield claim(
        "theory.remark3.support",
        "rates",
        "2 N tau + tau* is much smaller than d, which makes FedIterHT's bias the smaller one (Corollary 3).",
        "shape",
        measure=theory.support_is_small,
        note="much smaller: at most a tenth; 100 clients everywhere, as stated for the simulations",
    )


CLAIMS: tuple[Claim, ...] = (
    *_figure1(),
    *_figure2(),
    *_figure3(),
    *_messages(),
    *_figure6(),
    *_calm(),
    *_data(),
    *_theory(),
)
