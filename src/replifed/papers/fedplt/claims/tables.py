"""Table I, needs of the methods: counted on a run; properties of this project's code only inform.

Variables are those "stored in between communication rounds": of rounds, or of messages, as FedLin has two
exchanges in a round.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from replifed.claims.claim import Claim
from replifed.claims.quantities import run
from replifed.papers.fedplt import measures
from replifed.papers.fedplt.axes import CLAIM, readings
from replifed.papers.fedplt.claims.contributions import arrives, minibatches
from replifed.papers.fedplt.measures import lines
from replifed.papers.fedplt.methods import PARTIAL
from replifed.papers.fedplt.paper import METHODS, STORED, WAITING

_OF_CODE = CLAIM.given(informs=True, artefact="table1")


@CLAIM.sentence(
    "table1.stored",
    "Table I, variables stored",
    "All methods store 2N + 1 variables, except 5GCS, which stores N + 3.",
)
def _stored() -> Iterator[Claim]:
    for between, waits in (("rounds", dict.fromkeys(STORED, ((), ()))), ("messages", WAITING)):
        for method, (each, shared) in STORED.items():
            yield CLAIM(f"table1.{method}.stored", options={"between": between}).identity(
                f"{METHODS[method]} keeps {each if each > 1 else ''}N+{shared} variables between {between}.",
                measures.stores(run("footprint", method), each, shared, waits[method]),
            )


@CLAIM.sentence(
    "table1.solvers",
    "Table I, local solvers",
    "Fed-PLT takes accelerated stochastic gradient steps, too.",
)
def _solvers() -> Iterator[Claim]:
    yield from minibatches("accelerated", "Minibatches with accelerated steps")


@CLAIM.sentence(
    "table1.random",
    "Table I, local epochs",
    "TAMUNA's number of local epochs is random; all others have a fixed one.",
)
def _random() -> Iterator[Claim]:
    for method in STORED:
        yield _OF_CODE(f"table1.{method}.random").identity(
            f"{METHODS[method]} has {'a random' if method == 'tamuna' else 'one'} number of local epochs.",
            measures.random_epochs(run("footprint", method), method == "tamuna"),
        )


@CLAIM.sentence(
    "table1.epochs", "Table I, local epochs", "Fed-PLT, FedLin and LED allow one or more local epochs."
)
def _single_epoch() -> Iterator[Claim]:
    for method in ("fedplt", "fedlin", "led"):
        yield _OF_CODE(f"table1.{method}.epochs").shape(
            f"{METHODS[method]} allows a single local epoch.",
            arrives(lines(run("footprint", method), "left")),
            fails="a run with one epoch that ends farther than 1e-9 from the minimiser",
        )


@CLAIM.sentence(
    "table1.partial",
    "Table I, partial participation",
    "Fed-PLT, TAMUNA and 5GCS allow partial participation.",
)
def _partial() -> Iterator[Claim]:
    for method, reading in itertools.product(PARTIAL, readings("common")):
        errors = lines(
            reading.run("comparison", method), "error", reading="common", solver="gradient", cohort=5
        )
        claim = reading.claims(informs=True, artefact=reading.experiment("table2"))
        yield claim(f"table1.{method}.partial").shape(
            f"{METHODS[method]} converges to the minimiser with half of the agents in each round.",
            arrives(errors),
            fails="a run that ends farther than 1e-9 from the minimiser",
        )
