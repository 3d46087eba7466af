"""Names of the comparison's problems in titles: in words, also of those that a comparison made anew."""

from __future__ import annotations

import re

from replifed.figures.artefact import By
from replifed.papers.cross.paper import PROBLEMS

_DATA = {
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "mnist_writers": "MNIST by writer",
    "femnist": "FEMNIST by writer",
    "rcv1": "RCV1",
}
_NUMBER = r"\d+(?:_\d+)*?"
# What `settings.cohorts`, `held_out` and `partitions` put behind a problem's name, in this order. A test is
# not said: what shows it says so.
_BEHIND = re.compile(
    rf"(?P<data>.+?)(?:_cohort_(?P<cohort>{_NUMBER}(?:pct)?|all)"
    rf"(?P<law>_by_size|_markov_{_NUMBER}|_cyclic_{_NUMBER})?(?:_(?P<average>scaled|completed|transformed))?)?"
    rf"(?P<test>_test_(?:official|{_NUMBER}pct)(?:_new_{_NUMBER}(?:pct)?)?(?:_tuned_on_accuracy)?)?"
    rf"(?:_(?P<split>kmeans|given|iid|dirichlet|shards)(?:_(?P<of>{_NUMBER}))??(?:_(?P<clients>\d+))?"
    rf"(?:_lognormal_(?P<sizes>{_NUMBER}))?)?"
)
_SPLITS = {
    "kmeans": "{clients} by k-means",
    "given": "{clients}",
    "iid": "{clients}, i.i.d.",
    "dirichlet": "{clients}, Dirichlet({of})",
    "shards": "{clients}, {of} shards each",
}
_LAWS = {"by": "by size", "markov": "there at times", "cyclic": "there in turn"}


def problem_name(problem: str) -> str:
    """Return the name of a problem for a title; data of one's own keep theirs.

    >>> problem_name("mnist_writers_cohort_10pct_test_20pct"), problem_name("a9a_dirichlet_0_3_50")
    ('MNIST by writer, one client in ten', 'a9a, 50 clients, Dirichlet(0.3)')
    """
    found = _BEHIND.fullmatch(problem)
    if problem in PROBLEMS or found is None:
        return PROBLEMS.get(problem, problem)
    data = found["data"]
    words = [_DATA.get(data) or PROBLEMS.get(data, data)]
    if found["split"]:
        clients = f"{found['clients']} clients" if found["clients"] else "its own clients"
        words.append(_SPLITS[found["split"]].format(clients=clients, of=_decimal(found["of"])))
        words += ["log-normal sizes"] * bool(found["sizes"])
    if found["cohort"]:
        cohort = found["cohort"]
        ten = "one in ten" if found["split"] else "one client in ten"
        few = ten if cohort == "10pct" else f"{_decimal(cohort).replace('pct', ' %')} a round"
        law = (found["law"] or "").split("_")
        words += [few] * (cohort != "all") + [_LAWS[one] for one in law[1:2]]
        words += [f"{found['average']} averages"] * bool(found["average"])
    return ", ".join(words)


def _place(problem: str) -> int:
    """Return the place of a problem among panels: built-in ones come first, in their order."""
    return list(PROBLEMS).index(problem) if problem in PROBLEMS else len(PROBLEMS)


BY_PROBLEM = By("experiment", problem_name, _place)


def _decimal(number: str | None) -> str:
    return (number or "").replace("_", ".")
