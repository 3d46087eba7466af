"""A made-up paper whose statements have every status, with axes, inferred settings and main claims."""

from __future__ import annotations

import numpy as np

from replifed.claims.axes import Axes, Axis, Option
from replifed.claims.claim import Measured
from replifed.claims.quantities import Quantity, formula
from replifed.claims.statements import Statements
from replifed.claims.verdicts import measure

LOSS = Axis(
    "loss",
    "Section 2 has a mean; the numbers suggest a sum.",
    Option("mean", "printed", "eq. (2)"),
    Option("sum", "fitted", "Table 1 comes out", against="no text has it"),
    tried=4,
)
STEP = Axis(
    "step",
    "The text does not say how steps are chosen.",
    Option("own", "chosen", "a grid"),
    Option("common", "software", "its example has one for all"),
    Option("long", "chosen", "ten times as long", kind="different"),
)
AXES = Axes(LOSS, STEP, inferred={"loss": "sum", "step": "own"}, fitted_on=["table1.rate"])
# Steps of the software come before those that were chosen, so that the printed settings have them.
P, E, OTHER, FURTHER = (
    {"loss": loss, "step": step}
    for loss, step in (("mean", "common"), ("sum", "own"), ("mean", "own"), ("sum", "common"))
)
SETTINGS = {"P": P, "E": E, "other": OTHER, "further": FURTHER}
FINDING = "It is **faster**, as the abstract says; `table1.rate` needs a sum.\n\n- It hangs on the loss.\n"


class Runs:
    """Runs of the paper, and of its twins: `moved` is by how much rounding moves what is read."""

    moved, kind = 0.0, "synthetic"

    def has(self, key):
        return True

    def data_kind(self, experiment):
        return self.kind, ""

    def of_perturbed(self):
        first, second = type(self)(), type(self)()
        first.moved, second.moved, first.kind, second.kind = 1.0, -1.0, self.kind, self.kind
        return [first, second]

    def with_perturbed(self):
        return [self, *self.of_perturbed()]


def spread(mean, by=0.01, n=30):
    """Values (n,) with a mean and a standard deviation."""
    values = np.linspace(-1, 1, n)
    return mean + by * values / values.std(ddof=1)


def read(values, by=None):
    """Quantity that runs hold; `by` how far a twin is off, if the runs hang on rounding."""

    def taken(inputs):
        shift = inputs.moved * by if by else 0.0
        return Measured(np.asarray(values) + shift, chaotic=by is not None and not inputs.moved)

    return Quantity(taken, (), keys=("run:sim/fast", "run:sim/slow"))


def claims():
    """The paper's maker of claims; sentences are declared anew."""
    CLAIM = Statements("demo", AXES, artefact="fig1", unit="rounds", runs="own runs")

    @CLAIM.sentence("abstract.faster", "Abstract", "It is faster than the baseline.", main=True)
    def _():
        for options in SETTINGS.values():
            yield CLAIM("faster", options=options).order("It needs fewer rounds.", read(spread(5, 1)))

    @CLAIM.sentence("abstract.fewer", "Abstract", "It sends fewer bits | than others.", main=True)
    def _():
        for name, options in SETTINGS.items():
            values = spread(-5 if name == "further" else 5, 1)
            yield CLAIM("fewer", options=options).order("It sends fewer bits.", read(values))

    @CLAIM.sentence("table1.rate", "Table 1, row 1", "Its rate is 0.53.", main=True)
    def _():
        rates = {"P": 0.40, "E": 0.53, "other": 0.60, "further": 0.46}
        for name, options in SETTINGS.items():
            yield CLAIM("table1.rate", artefact="table1", unit="rate", options=options).value(
                "Its rate is 0.53.", "0.53", read(spread(rates[name])), rival=0.70
            )

    @CLAIM.sentence("table1.held", "Table 1, row 2", "With noise it is 0.61.")
    def _():
        for name, options in {"P": P, "E": E}.items():
            yield CLAIM("table1.held", artefact="table1", unit="rate", options=options).value(
                "With noise it is 0.61.", "0.61", read(spread(0.5 if name == "P" else 0.61)), rival=0.70
            )

    @CLAIM.sentence("fig1.other", "Figure 1", "More steps help.", main=True)
    def _():
        for name, options in SETTINGS.items():
            values = spread(5 if name == "other" else -5, 1)
            yield CLAIM("more", options=options).order("More steps need fewer rounds.", read(values))

    @CLAIM.sentence(
        "fig1.deviates",
        "Figure 1",
        "It never stalls.",
        main=True,
        evidence="formula",
        question="Is the noise's variance one?",
        reply="2026-11-20: it is two",
    )
    def _():
        for options in (P, E):
            yield CLAIM("stalls", options=options, unit="", note="the floor is that of noise").shape(
                "No run stalls.", formula(lambda: np.array([True, False, False])), fails="a stalling run"
            )

    CLAIM.also("fig1.deviates", "Section 4", "No run ends above the floor.")

    @CLAIM.sentence("fig2.open", "Figure 2", "Noise does not matter.")
    def _():
        yield CLAIM("fig2.open").order("Noise needs no more rounds.", read([-9.0, 1.0, 9.0]))

    @CLAIM.sentence("fig3.rounding", "Figure 3", "It ends lower.")
    def _():
        yield CLAIM("fig3.told").order("It ends lower by far.", read(spread(5, 1), by=0.1))

    @CLAIM.sentence("fig3.hangs", "Figure 3", "It ends lower still.")
    def _():
        yield CLAIM("fig3.hangs").order("It ends lower by little.", read(spread(5, 1), by=4.0))

    @CLAIM.sentence("section5.time", "Section 5", "It takes seconds.")
    def _():
        yield CLAIM("time", unit="").unmeasured("It takes seconds.", read([1.0]))

    @CLAIM.sentence("section6.cohorts", "Section 6", "Cohorts are drawn at random.", evidence="formula")
    def _():
        yield CLAIM("cohorts", unit="", informs=True).shape(
            "They are.", formula(lambda: np.array([True])), fails="a client that is never drawn"
        )

    return CLAIM


def rows(inputs=None, made=None):
    """Lines of claims.csv, as text."""
    frame = measure((made or claims()).all(), inputs or Runs(), "paper")
    return [
        {key: "" if value is None or value != value else str(value) for key, value in row.items()}
        for row in frame.to_dict("records")
    ]
