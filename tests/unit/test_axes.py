"""What a paper leaves open, its settings, and the status of a statement: a planted paper with each row."""

from __future__ import annotations

import numpy as np
import pytest

from replifed.claims import scores
from replifed.claims.axes import Axes, Axis, Option, in_words
from replifed.claims.quantities import formula
from replifed.claims.statements import MOST_MAIN, Statements
from replifed.claims.verdicts import measure
from replifed.errors import ConfigError

LOSS = Axis(
    "loss",
    "Section 2 has a mean, the numbers a sum.",
    Option("mean", "printed", "eq. (2)"),
    Option("sum", "fitted", "its numbers come out", against="no text has it"),
)
STEP = Axis(
    "step",
    "The text does not say how steps are chosen.",
    Option("own", "chosen", "a grid"),
    Option("common", "chosen", "one for all"),
    Option("long", "chosen", "ten times as long", kind="different"),
)
E = {"loss": "sum", "step": "own"}


class Inputs:
    """No runs: formulas alone."""

    def has(self, key):
        return True


def axes(**more):
    return Axes(LOSS, STEP, inferred=E, **more)


def status(claims):
    rows = [
        {key: "" if value is None or value != value else str(value) for key, value in row.items()}
        for row in measure(claims, Inputs(), "paper").to_dict("records")
    ]
    [one] = scores.statements(rows)
    return one


def shapes(verdicts, make=None):
    """A sentence with one shape for each choice of settings, such as "mean own", and whether it holds."""
    claim = make or Statements("p", axes(), artefact="fig1")
    return [
        claim("faster", options=dict(zip(("loss", "step"), reading.split(), strict=True))).shape(
            "It holds.", formula(lambda holds=holds: np.array([holds] * 3)), fails="a False"
        )
        for reading, holds in verdicts.items()
    ]


def undecided(reading):
    """An order in settings that its three values do not decide."""
    claim = Statements(
        "p", axes(), artefact="fig1", options=dict(zip(("loss", "step"), reading.split(), strict=True))
    )
    return claim("faster", unit="rounds").order("It holds.", formula(lambda: np.array([-9.0, 1.0, 9.0])))


@pytest.mark.parametrize(
    "verdicts, wanted, robust",
    [
        ({"mean own": True}, "reproduced", "yes"),
        ({"mean own": True, "sum own": True, "mean common": True}, "reproduced", "yes"),
        ({"mean own": True, "sum own": False, "mean common": True}, "reproduced", ""),
        ({"mean own": True, "mean long": False}, "reproduced", "yes"),  # another question
        ({"mean own": False, "sum own": True}, "conditional", ""),
        ({"sum own": True}, "conditional", ""),
        ({"mean own": False, "sum own": False, "mean common": True}, "conditional", ""),
        ({"mean own": False, "mean long": True}, "deviates", ""),
        ({"mean own": False, "sum own": False}, "deviates", ""),
    ],
)
def test_the_first_row_that_applies_is_the_status(verdicts, wanted, robust):
    one = status(shapes(verdicts))
    assert (one["status"], one["robust"]) == (wanted, robust)


def test_what_neither_holds_nor_fails_is_inconclusive():
    assert status([undecided("mean own"), undecided("sum own")])["status"] == "inconclusive"
    assert status([undecided("mean own"), *shapes({"sum own": False})])["status"] == "inconclusive"


def test_without_a_measurement_it_is_untestable():
    claim = Statements("p", axes(), artefact="fig1")
    assert status([claim("x").unmeasured("It holds.", formula(lambda: None))])["status"] == "untestable"


def test_a_sixth_choice_of_settings_betters_no_headline():
    """Planted: settings that hold where the printed settings fail are no reproduction."""
    failing = {"mean own": False, "sum own": False}
    assert status(shapes(failing))["printed"] == "fails"
    more = status(shapes(failing | {"mean common": True}))
    assert (more["status"], more["printed"]) == ("conditional", "fails")


def test_an_order_in_one_of_many_settings_is_corrected_for_their_number():
    """Planted: a difference that five per cent of settings show by chance."""
    claim = Statements("p", axes(), artefact="fig1")

    def order(reading, values):
        options = dict(zip(("loss", "step"), reading.split(), strict=True))
        return claim("faster", unit="rounds", options=options, fewest=1).order(
            "It holds.", formula(lambda: np.array(values))
        )

    near = [1.0, 3.0, 5.0, 6.0]  # p = .043 by itself
    rest = [order("mean own", [-9.0, 1.0, 9.0, 0.0]), order("sum own", [-9.0, 1.0, 9.0, 0.0])]
    one = status([*rest, order("mean common", near)])
    assert (one["hold"], one["others"], one["status"]) == ("1", "2", "inconclusive")


def test_a_reading_answers_all_that_a_sentence_says():
    claim = Statements("p", axes(), artefact="fig1")
    second = claim("second", options={"loss": "sum", "step": "own"}).shape(
        "And this.", formula(lambda: np.array([True])), fails="a False"
    )
    both = [one for one in shapes({"mean own": True, "sum own": True})]
    joined = [_of(one, "p.sentence") for one in [*both, second]]
    one = status(joined)
    assert (one["printed"], one["inferred"], one["status"]) == ("not run", "holds", "conditional")


def test_claims_of_a_reading_are_corrected_together_whatever_axes_they_name():
    claim = Statements("p", axes(), artefact="fig1", unit="rounds", options={"loss": "sum"})
    runs = formula(lambda: np.array([1.0, 2.0]))
    one, two = claim.order("one", "It.", runs), claim("two", options=E).order("It.", runs)
    other = claim("two", options={"loss": "sum", "step": "common"}).order("It.", runs)
    assert one.settings != two.settings and one.family == two.family != other.family


def test_what_could_be_tested_in_no_reading_is_left_out():
    """Planted: one of two panels is on surrogate data."""
    claim = Statements("p", axes(), artefact="fig1", options={"loss": "mean", "step": "own"})
    panel = claim("panel").unmeasured("On other data, too.", formula(lambda: None))
    assert (
        status([_of(one, "p.sentence") for one in [*shapes({"mean own": True}), panel]])["status"]
        == "reproduced"
    )
    assert (
        status([_of(one, "p.sentence") for one in [*shapes({"mean own": False}), panel]])["status"]
        == "deviates"
    )


def _of(claim, statement):
    from dataclasses import replace

    return replace(claim, statement_id=statement)


def test_what_informs_does_not_sink():
    claim = Statements("p", axes(), artefact="fig1")
    ours = claim("ours", informs=True).shape(
        "Not in the text.", formula(lambda: np.array([False])), fails="a False"
    )
    joined = [_of(one, "p.sentence") for one in [*shapes({"mean own": True}), ours]]
    assert status(joined)["status"] == "reproduced"


# --- What is refused, in one line with file and name ----------------------------------------------


def refused(make):
    with pytest.raises(ConfigError, match=r"^unit/test_axes\.py, line \d+: ") as error:
        make()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_an_axis_needs_sources_and_grounds():
    assert "source 'guess'" in refused(lambda: Axis("loss", "?", Option("mean", "guess", "eq. (2)")))
    assert "needs its grounds" in refused(lambda: Axis("loss", "?", Option("mean", "printed", "")))
    assert "kind 'odd'" in refused(lambda: Axis("loss", "?", Option("mean", "printed", "(2)", kind="odd")))
    assert "tried" in refused(lambda: Axis("l", "?", Option("a", "printed", "x"), tried=0))


def test_there_is_one_choice_of_inferred_settings_with_an_option_on_every_axis():
    assert "a second one is other settings" in refused(
        lambda: Axes(LOSS, inferred=[{"loss": "sum"}, {"loss": "mean"}])
    )
    assert "no option on step" in refused(lambda: Axes(LOSS, STEP, inferred={"loss": "sum"}))
    assert 'no option "half"' in refused(lambda: Axes(LOSS, inferred={"loss": "half"}))


def test_a_sentence_stands_once_and_ten_are_main():
    claim = Statements("p")
    claim.sentence("one", "Section 1", "It is fast.")(lambda: iter(()))
    assert "stands twice" in refused(lambda: claim.sentence("two", "Section 2", "It is fast."))
    for number in range(MOST_MAIN):
        claim.sentence(f"main{number}", "Abstract", f"Promise {number}.", main=True)(lambda: iter(()))
    assert "at most 10" in refused(lambda: claim.sentence("more", "Abstract", "Another.", main=True))


def test_a_value_states_its_precision_and_a_rival_or_a_width():
    claim, runs = Statements("p", artefact="fig1"), formula(lambda: np.array([1.0, 2.0]))
    assert "a rival" in refused(lambda: claim.value("x", "It is 1.5.", "1.5", runs))
    assert "printed digits" in refused(lambda: claim.value("x", "It is 1.5.", 1.5, runs, rival=2.0))
    one = claim.value("x", "It is 1.50.", "1.50", runs, rival=2.0)
    assert (one.published, one.precision) == (1.5, pytest.approx(0.005))


def test_readings_are_options_in_words():
    assert in_words(E) == "loss: sum; step: own"
    assert axes().names({"loss": "mean"}) == "printed"
    assert axes().names({"step": "own"}) == "printed inferred"
    assert axes().names({}) == "printed inferred"
    assert axes().kind({"loss": "mean", "step": "long"}) == "different"
    assert (axes().source({}), axes().source(E), axes().source({"loss": "sum"})) == (
        "printed",
        "fitted",
        "fitted",
    )
    assert axes().grounds({"step": "own"}) == "step: own, chosen: a grid"


def test_an_axis_of_fitted_options_has_no_printed_one():
    fitted = Axes(Axis("renewals", "?", Option("fibonacci", "fitted", "savings come out")), inferred=None)
    assert fitted.printed == {"renewals": None}
    assert fitted.names({"renewals": "fibonacci"}) == ""


def test_a_keyword_that_no_claim_has_is_refused():
    claim = Statements("p", artefact="fig1")
    said = refused(lambda: claim("x", says="y").identity("It holds.", formula(lambda: np.array([True]))))
    assert said.endswith("p.x: a claim has no says")
    assert "Axes(Axis(" in refused(lambda: Statements("p", {"own": "chosen"}))


def test_a_search_is_made_anew_under_other_options():
    """Planted: a rho that was searched with the mean, in settings with the sum."""
    rho = Axis("rho", "?", Option("best", "chosen", "a grid", searched={"loss": ["mean"]}))
    claim = Statements("p", Axes(LOSS, rho), artefact="fig1", unit="rounds")
    runs = formula(lambda: np.array([1.0, 2.0]))
    claim("x", options={"loss": "mean", "rho": "best"}).order("It.", runs)
    said = refused(lambda: claim("x", options={"loss": "sum", "rho": "best"}).order("It.", runs))
    assert said.endswith(
        'p.x: "rho: best" was searched under "loss: mean" alone; search it anew under "sum", or declare '
        "that this is not run"
    )
    unknown = Option("best", "chosen", "a grid", searched={"step": ["own"]})
    assert 'no axis "step"' in refused(lambda: Axes(Axis("rho", "?", unknown)))


def test_an_option_may_say_why_it_was_not_run():
    step = Axis(
        "step", "?", Option("own", "printed", "(3)", not_run="it takes a day"), Option("1", "chosen", ".")
    )
    claim = Statements("p", Axes(step), artefact="fig1")
    said = refused(lambda: claim("x", options={"step": "own"}).identity("It.", formula(np.ones, 1)))
    assert said.endswith('p.x: no run has "step: own", since it takes a day')
    assert Axes(step).printed == {"step": "own"} and Axes(step).names({"step": "1"}) == ""


def test_an_option_without_a_source_a_shape_that_cannot_fail_and_a_gap_without_an_axis_are_refused():
    assert 'option "mean" has no source' in refused(lambda: Axis("loss", "?", Option("mean")))
    assert "sim has gaps without an axis: rho" in refused(lambda: Axes(LOSS, gaps={"sim": ["rho"]}))
    claim = Statements("p", artefact="fig1")
    assert "what would make it fail" in refused(lambda: claim.shape("x", "It.", formula(np.ones, 1)))
    compared = claim("x").shape("It.", formula(np.ones, 1) < 2)
    assert compared.fails == "a first number at or above the second"


def test_a_sentence_says_what_it_rests_on():
    assert "evidence 'belief'" in refused(lambda: Statements("p", runs="belief"))
    for runs, evidence, wanted in (("own runs", "", None), ("", "formula", "formula"), ("", "", None)):
        claim = Statements("p", runs=runs, artefact="fig1")

        @claim.sentence("a", "Section 1", "It is one.", evidence=evidence)
        def _(claim=claim):
            yield claim.identity("a", "It is.", formula(np.ones, 1))

        if wanted:
            assert claim.all()[0].evidence == wanted
        else:
            assert "p.a needs evidence=, one of formula" in refused(claim.all)


def test_one_fact_has_one_status_and_a_reply_its_date():
    claim = Statements("p", artefact="fig1")
    assert "begins with its date" in refused(lambda: claim.sentence("a", "1", "It is.", reply="the mean"))
    assert "no statement before it is called a" in refused(lambda: claim.also("a", "2", "So it is."))
    one = claim.sentence("a", "1", "It is.", evidence="formula", reply="2026-12-01: the mean")
    one(lambda: iter([claim.identity("a", "It is.", formula(np.ones, 1))]))
    claim.also("a", "2", "So it is.")
    assert [(one.name, one.place) for one in claim.sentences] == [("p.a", "1"), ("p.a", "2")]
    assert len(claim.all()) == 1
