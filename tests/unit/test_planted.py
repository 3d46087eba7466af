"""Where each kind of fault that a verdict could have is planted, and found."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

KINDS = {
    "settings more better a headline": "axes::a_sixth_choice_of_settings_betters_no_headline",
    "settings more better a count": ("sentences::settings_more_better_no_count_of_the_printed_ones"),
    "the best of many settings by chance": (
        "axes::an_order_in_one_of_many_settings_is_corrected_for_their_number"
    ),
    "a row of the status table that no paper meets": (
        "multiplicity::every_status_stands_in_the_planted_paper"
    ),
    "a number outside, inside, and as near to another method's": (
        "rules::the_first_rule_that_applies_decides_and_says_why"
    ),
    "an interval that holds everything": "rules::the_first_rule_that_applies_decides_and_says_why",
    "runs on one data set pass for data sets": "verdicts::runs_on_one_data_set_are_no_repetitions_of_it",
    "a right value that is off by chance among many": ("verdicts::the_values_of_a_table_are_judged_together"),
    "a run that touches its target and leaves it": (
        "verdicts::a_target_is_reached_by_a_curve_that_stays_there"
    ),
    "rounding that decides, and that does not": ("verdicts::an_order_on_such_runs_is_told_where_twins_agree"),
    "a main claim, or a source, that is changed unlogged": (
        "tolerances::what_decides_how_a_claim_counts_is_logged"
    ),
    "an order by chance among many": "verdicts::orders_are_corrected_over_the_family_that_was_declared",
    "an order without an effect": "rules::the_first_rule_that_applies_decides_and_says_why",
    "skewed values pass a t-test": "multiplicity::skewed_differences_are_no_order",
    "a claim that cannot fail": "errata::a_condition_that_is_never_met_or_always_is_not_sound",
    "a bound that holds whatever happens": (
        "fedplt_privacy::final_models_that_give_away_more_than_promised_are_found"
    ),
    "a tolerance that changes unlogged": "tolerances::a_claim_that_is_gone_leaves_its_lines",
    "a target that changes unlogged": "tolerances::another_target_is_another_expression",
    "a measure that changes unlogged": "tolerances::another_window_in_the_code_is_another_measure",
    "seeds until something comes out": ("seeds::orders_without_a_difference_come_out_in_one_case_of_twenty"),
    "a run that does not get there counts as one that does": (
        "fedht_claims::rounds_that_a_run_does_not_reach_are_bounds"
    ),
    "a coarser grid than the claim's": "multiplicity::values_on_a_grid_have_the_spread_of_rounding",
    "unequal work": "fedgradmp_paper::claims_on_curves",
    "a search that ends at the edge of its grid": "fedgradmp_paper::a_search_that_stays_at_an_edge_is_found",
    "a search on the runs that are reported": (
        "jobs::a_search_on_reported_repetitions_is_refused_by_the_records"
    ),
    "noise passes for divergence": "fedmm_paper::a_noisy_curve_that_does_not_rise_does_not_diverge",
    "a sparse model that may take all atoms": "fedgradmp_paper::a_frame_of_all_atoms_says_nothing",
    "one of several admissible spectra": ("qshed_paper::the_example_hangs_on_the_tail_that_is_not_printed"),
    "a rate before it has settled": (
        "fedplt_paper::a_rate_that_bends_late_is_not_taken_before_it_has_settled"
    ),
    "what depends on rounding": "fedht_claims::what_hangs_on_rounding_has_no_order",
    "a claim that is left out": "golden::a_claim_that_is_gone_is_a_fault",
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_fault_is_planted(kind):
    module, _, name = KINDS[kind].partition("::")
    tree = ast.parse(Path(__file__).with_name(f"test_{module}.py").read_text())
    [test] = [one for one in tree.body if getattr(one, "name", "") == f"test_{name}"]
    assert "Planted:" in ast.unparse(test)
