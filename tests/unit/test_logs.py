"""Claims on logs of runs that were made elsewhere: what is read, refused and named, and the rules of logs."""

import os
import re
import runpy
import shutil
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import replifed as rf
from replifed.claims import scores
from replifed.claims.files import remarks
from replifed.claims.verdicts import measure
from replifed.cli import main
from replifed.errors import ReplifedError
from replifed.logs import files, histories
from replifed.logs.histories import combine_logs, settings_of
from replifed.logs.reading import read as read_log
from replifed.papers.cross import claims as cross
from replifed.papers.fedac import published
from replifed.store import limits
from replifed.testing import assert_claim

ROOT = Path(__file__).parents[2]
BETTER = {"loss": "lower", "accuracy": "higher"}
ROUNDS = 20


def runs(seeds=6, **rates):
    """Curves that fall by a rate a round, from a start that differs between seeds."""
    return pd.DataFrame(
        [
            {"method": name, "seed": seed, "round": t, "loss": loss, "accuracy": 1 - loss, "bits": 8 * t}
            for name, rate in (rates or {"FedAvg": 0.9, "SCAFFOLD": 0.7}).items()
            for seed in range(1, seeds + 1)
            for t in range(ROUNDS)
            for loss in [(0.5 + 0.01 * (seed * len(name) % 7)) * rate**t]
        ]
    )


RUNS = rf.Runs(BETTER)
CLAIM = rf.Statements("mine", artefact="table1")


def verdict(claim, frame, **settings):
    row = rf.judge(frame, [claim], BETTER, **settings).iloc[0]
    return row["verdict"], remarks(row)


# --- What is measured ---


def test_a_frame_is_judged_by_the_side_that_is_better():
    frame = runs()
    ends = frame[(frame["method"] == "FedAvg") & (frame["round"] == ROUNDS - 1)]["loss"]
    first = frame[frame["accuracy"] >= 0.9].groupby(["method", "seed"])["round"].min().unstack()  # noqa: PD010
    fewer = RUNS.rounds_to("fedavg", "accuracy", 0.9) - RUNS.rounds_to("scaffold", "accuracy", 0.9)
    bits = RUNS.bits_to("fedavg", "accuracy", 0.9) / RUNS.bits_to("scaffold", "accuracy", 0.9) - 1
    there = RUNS.reaches("scaffold", "accuracy", 0.99)
    claims = [
        CLAIM.value("end", "It ends there.", f"{ends.mean():.3f}", RUNS.last("fedavg", "loss"), rival=0.5),
        CLAIM("fewer", unit="rounds").order("It needs fewer rounds.", fewer),
        CLAIM.order("bits", "It needs fewer bits.", bits, least=0.1),
        CLAIM.order("loss", "Its loss is lower.", RUNS.ahead("scaffold", "fedavg", "loss"), least=0.01),
        CLAIM.order("accuracy", "So is this.", RUNS.ahead("scaffold", "fedavg", "accuracy"), least=0.01),
        CLAIM.order("not", "The other one's is.", RUNS.ahead("fedavg", "scaffold", "accuracy"), least=0.01),
        CLAIM.shape("reaches", "It gets there.", there, fails="one stays below"),
        CLAIM.identity("survives", "It does not diverge.", RUNS.survives("scaffold", "loss")),
    ]
    judged = rf.judge(frame, iter(claims), BETTER).set_index(["id"])
    assert judged["verdict"].tolist() == [*["holds"] * 5, "fails", "holds", "holds"]
    measured = judged["measured"].tolist()
    assert measured[0] == pytest.approx(ends.mean()) and measured[3] == pytest.approx(measured[4])
    rounds, ratios = (
        f(first.loc["FedAvg"], first.loc["SCAFFOLD"]).mean() for f in (pd.Series.sub, pd.Series.div)
    )
    assert measured[1:3] == pytest.approx([rounds, ratios - 1])
    assert_claim(claims[1], frame, BETTER)
    with pytest.raises(AssertionError, match=r"mine.not fails, expected holds: difference -0.0"):
        assert_claim(claims[5], frame, BETTER)
    with pytest.raises(ReplifedError, match="unknown verdict 'hold'; did you mean 'holds'"):
        assert_claim(claims[0], frame, BETTER, "hold")


def test_copies_of_one_run_are_one_and_an_order_needs_five():
    claim = CLAIM.order("lower", "It is lower.", RUNS.ahead("scaffold", "fedavg", "loss"), least=0.01)
    assert verdict(claim, runs(5))[0] == "holds"
    told = verdict(claim, runs(4))
    assert told[0] == "inconclusive" and "an order needs at least 5 seeds, and there are 4" in told[1]
    one = runs(1).drop(columns="seed")
    copied = pd.concat([one.assign(seed=seed) for seed in range(1, 9)])
    told = verdict(claim, copied)
    assert told[0] == "inconclusive" and "8 equal runs" in told[1]
    repeat = "fedavg: the seeds 2, 3, 4, 5, 6 and 2 more repeat"
    assert repeat in combine_logs([copied], settings_of(BETTER)).remarks[0]
    # Equal final values, of a few digits, are no sign of a copy.
    equal = {"method": ["a"] * 5 + ["b"] * 5, "seed": [*range(5)] * 2, "loss": [0.2] * 5 + [0.1] * 5}
    ahead = CLAIM.order("final", "b is lower.", RUNS.ahead("b", "a", "loss"), least=0.01)
    assert rf.judge(pd.DataFrame(equal), [ahead], {"loss": "lower"})["verdict"].iloc[0] == "holds"


def test_reached_means_stays():
    frame = runs()
    frame.loc[(frame["method"] == "SCAFFOLD") & (frame["round"] == ROUNDS - 1), "loss"] = 0.4
    claim = CLAIM.shape(
        "there", "It gets to .1.", RUNS.reaches("scaffold", "loss", 0.1), fails="it stays above"
    )
    assert verdict(claim, frame)[0] == "fails"
    assert verdict(claim, frame, until=ROUNDS - 2)[0] == "holds"


def stopping(seeds=6, target=1e-4, patience=0, **rates):
    """Runs that stop some rounds after they are at the target."""
    rows = []
    for name, rate in (rates or {"a": 0.5, "b": 0.4}).items():
        for seed in range(1, seeds + 1):
            loss, t, more = 1 + 0.001 * seed, 0, patience
            while True:
                rows.append((name, seed, t, loss, 1 - loss, 32 * t, 0.5 * t))
                if loss <= target and (more := more - 1) < 0:
                    break
                loss, t = loss * rate, t + 1
    return pd.DataFrame(rows, columns=["method", "seed", "round", "loss", "accuracy", "bits", "time"])


@pytest.mark.parametrize(("metric", "target"), [("loss", 1e-4), ("accuracy", 1 - 1e-4)])
@pytest.mark.parametrize("patience", [0, 3])
def test_a_run_that_stops_at_its_target_has_reached_it(metric, target, patience):
    frame = stopping(patience=patience)
    there = frame[frame["loss"] <= 1e-4].groupby(["method", "seed"])[["round", "bits", "time"]].min()
    for method in "ab":
        known = Histories({method: combine_logs([frame], settings_of(BETTER)).history(method)})
        assert RUNS.reaches(method, metric, target)(known).values.all()
        for found, column in (
            (RUNS.rounds_to(method, metric, target), "round"),
            (RUNS.bits_to(method, metric, target), "bits"),
            (RUNS.bits_to(method, metric, target, touch=True), "bits"),
        ):
            assert found(known).values.tolist() == there.loc[method, column].tolist()
    fewer = RUNS.bits_to("b", metric, target) < RUNS.bits_to("a", metric, target)
    assert verdict(CLAIM.identity("fewer", "b needs fewer bits.", fewer), frame)[0] == "holds"


def test_a_run_that_left_its_target_needs_the_last_tenth():
    """Dips below the target: one alone at the end is where a run may have stopped, a second one is not."""
    loss = np.r_[np.full(20, 1.0), 0.05]
    again = np.r_[np.full(10, 1.0), 0.05, np.full(9, 1.0), 0.05]
    frame = pd.DataFrame(
        {"method": ["once"] * 21 + ["twice"] * 21, "round": [*range(21)] * 2, "loss": [*loss, *again]}
    )
    for method, there in (("once", True), ("twice", False)):
        known = Histories({method: combine_logs([frame], settings_of({"loss": "lower"})).history(method)})
        assert RUNS.reaches(method, "loss", 0.1)(known).values.tolist() == [there]
        assert RUNS.reaches(method, "loss", 0.1, touch=True)(known).values.tolist() == [True]


def test_seeds_that_stop_at_different_rounds():
    frame = stopping(a=0.5)
    frame = frame[~((frame["seed"] > 3) & (frame["round"] > 9))]
    with pytest.raises(ReplifedError, match=r"end at different rounds: .* or stopped: true \(or --stopped\)"):
        combine_logs([frame], settings_of(BETTER))
    read = combine_logs([frame], settings_of(BETTER, stopped=True))
    ends = "at 9 the seeds 4, 5, 6; at 14 the seeds 1, 2, 3"
    assert read.remarks == [f"runs of a stop at different rounds: {ends}; their last values are kept"]
    own = read.history("a")
    assert own["round"].max() == 14 and not own["diverged"].any()
    known, ends = Histories({"a": own}), frame.groupby("seed")["loss"].last()
    assert RUNS.last("a", "loss")(known).values.tolist() == ends.tolist()
    assert RUNS.reaches("a", "loss", 1e-4)(known).values.tolist() == [True] * 3 + [False] * 3
    # What was evaluated before the last record counts, and a run that lost its loss has diverged.
    sparse = frame.assign(**frame[["accuracy", "time"]].where(frame["round"] % 4 == 0))
    sparse.loc[(sparse["seed"] == 6) & (sparse["round"] > 4), "loss"] = np.nan
    own = combine_logs([sparse], settings_of(BETTER, stopped=True)).history("a")
    assert own.groupby("replicate")["diverged"].any().tolist() == [False] * 5 + [True]


# --- Axes beside rounds ---


def test_an_axis_beside_rounds():
    """b needs more rounds and less time."""
    frame = stopping(a=0.4, b=0.5)
    frame["time"] = frame["round"] * np.where(frame["method"] == "a", 10.0, 1.0)
    rounds, used = ({one: of(one, "loss", 1e-4) for one in "ab"} for of in (RUNS.rounds_to, seconds))
    at = {one: RUNS.at(one, "loss", 14, "seconds") for one in "ab"}
    claims = [
        CLAIM.identity("rounds", "More.", rounds["b"] > rounds["a"]),
        CLAIM.identity("time", "Less.", used["b"] < used["a"]),
        CLAIM.identity("at", "Better.", at["b"] < at["a"]),
        CLAIM.identity("early", "Not.", RUNS.at("b", "loss", 15, "seconds") < RUNS.first("b", "loss")),
    ]
    axes = {"seconds": "time"}
    judged = rf.judge(frame, claims, {"loss": "lower"}, axes=axes, stopped=True)
    assert judged["verdict"].tolist() == ["holds", "holds", "holds", "unchecked"]
    assert "b was logged from 0 to 14 seconds in all seeds, not at 15" in judged["reason"].iloc[3]
    known = Histories({"a": combine_logs([frame], settings_of({"loss": "lower"}, axes=axes)).history("a")})
    third = frame[(frame["method"] == "a") & (frame["round"] == 3)]["loss"]
    assert RUNS.at("a", "loss", 39.9, "seconds")(known).values.tolist() == third.tolist()
    assert used["a"](known).below.tolist() == [10.0] * 6


def seconds(method, metric, target):
    return RUNS.used_to(method, metric, target, "seconds")


def test_methods_on_different_axes_are_refused_with_both_ends_named():
    other = stopping(b=0.4).drop(columns=["time", "bits"]).assign(epoch=lambda f: f["round"] / 2)
    frame = pd.concat([stopping(a=0.5), other])
    for axis, asked in (("seconds", "b by seconds"), ("passes", "b by passes"), ("", "b by round")):
        b = RUNS.used_to("b", "loss", 1e-4, axis) if axis else RUNS.rounds_to("b", "loss", 1e-4)
        claim = CLAIM.order("time", "b needs less.", seconds("a", "loss", 1e-4) - b, least=1.0)
        found, told = verdict(claim, frame, axes={"seconds": "time", "passes": "epoch"})
        assert found == "unchecked" and f"these are different axes (a by seconds, {asked}): " in told
        assert "the logs of a count round (to 14), bits (to 448), seconds (to 7)" in told
        assert "the logs of b count round (to 11), passes (to 5.5)" in told


def test_ends_at_different_rounds_are_not_compared():
    """What was promised does not deviate since one method's logs go on."""
    frame = runs()
    frame = frame[(frame["method"] == "FedAvg") | (frame["round"] < 5)]
    claims = rf.Statements("mine", artefact="fig1", runs="own runs")

    @claims.sentence("s", "Abstract", "SCAFFOLD ends lower.", main=True)
    def _s():
        yield claims("o").order("It ends lower.", RUNS.ahead("scaffold", "fedavg", "loss"), least=0.01)

    def status(**settings):
        rows = rf.judge(frame, claims.all(), BETTER, **settings)
        rows = rows.astype(object).where(rows.notna(), "").astype(str).to_dict("records")
        return rows[0]["verdict"], scores.statements(rows)[0]["status"], rows[0]["reason"]

    verdict, status_, reason = status()
    assert (verdict, status_) == ("unchecked", "untestable")
    assert "the logs of scaffold count round (to 4), bits (to 32)" in reason
    assert "the logs of fedavg count round (to 19), bits (to 152)" in reason
    assert "compare at one, by until: 4" in reason
    assert status(until=4)[:2] == ("holds", "reproduced")
    assert status(stopped=True)[0] == "fails"


def test_a_run_that_diverges_in_any_column_has_diverged():
    """Its accuracy stays at chance, which is no result; a column that nobody fills any more is no sign."""
    frame = runs().drop(columns="bits").assign(late=1.0, grad=np.inf)
    frame.loc[frame["round"] > 15, "late"] = np.nan
    frame.loc[(frame["round"] < 19) | (frame["method"] == "FedAvg"), "grad"] = 1.0
    lost = (frame["method"] == "SCAFFOLD") & frame["seed"].isin([2, 5]) & (frame["round"] > 7)
    frame.loc[lost, "loss"], frame.loc[lost, "accuracy"] = np.nan, 0.1
    better = {"accuracy": "higher"}

    def said(column, seeds):
        return [f"scaffold: {column} ends in no number in the seeds {seeds}, which diverged (unless settings "
                f"say ignore: [{column}])"]  # fmt: skip

    read = combine_logs([frame.drop(columns="grad")], settings_of(better))
    assert read.remarks == said("loss", "2, 5")
    ignoring = combine_logs([frame.drop(columns="grad")], settings_of(better, ignore=["loss"]))
    assert not ignoring.frame["diverged"].any() and not ignoring.remarks
    known = Histories({"scaffold": read.history("scaffold")})
    bounds = [0, -1, 0, 0, -1, 0]
    assert RUNS.survives("scaffold", "accuracy")(known).values.tolist() == [one == 0 for one in bounds]
    assert RUNS.last("scaffold", "accuracy")(known).bounds.tolist() == bounds
    whole = combine_logs([frame.drop(columns="loss")], settings_of(better))
    assert whole.remarks == said("grad", "1, 2, 3, 4, 5 and 1 more")
    # Nor is it a result if accuracy was evaluated for the last time before.
    seldom = frame.drop(columns="grad").assign(accuracy=frame["accuracy"].where(frame["round"] % 7 == 0))
    read = combine_logs([seldom], settings_of(better, until=13))
    known = Histories({"scaffold": read.history("scaffold")})
    assert RUNS.last("scaffold", "accuracy")(known).bounds.tolist() == bounds


def test_the_best_is_named_so_and_is_no_run():
    frame = runs()
    best = RUNS.best_of_seeds("fedavg", "loss")
    number = frame[(frame["method"] == "FedAvg") & (frame["round"] == ROUNDS - 1)]["loss"].min()
    told = verdict(CLAIM.value("best", "At best.", f"{number:.4f}", best, rival=9.0), frame)
    assert told[0] == "inconclusive" and "the best of the seeds, whose spread is not that of a run" in told[1]
    assert verdict(CLAIM.identity("best", "At best.", abs(best - number) < 1e-9), frame)[0] == "holds"
    order = CLAIM.order("lower", "It is lower.", RUNS.ahead("scaffold", "fedavg", "loss"), least=0.01)
    value = CLAIM.value("end", "It ends there.", "0.07", RUNS.last("fedavg", "loss"), rival=9.0)
    for claim in (order, value):
        told = verdict(claim, frame, best_over="eta")
        assert told[0] == "unchecked" and "each number is the best over eta" in told[1]
    shape = CLAIM.shape(
        "lower", "It is.", RUNS.last("scaffold", "loss") < RUNS.last("fedavg", "loss"), fails="no"
    )
    told = verdict(shape, frame, best_over="eta")
    assert told[0] == "holds" and told[1].endswith("; each number is the best over eta")


def test_what_is_missing_is_named_and_left_out():
    frame = runs()
    frame.loc[(frame["method"] == "FedAvg") & (frame["seed"] == 2) & (frame["round"] > 10), "loss"] = np.nan
    frame.loc[(frame["method"] == "FedAvg") & (frame["seed"] == 3) & (frame["round"] == 4), "loss"] = np.nan
    frame.loc[(frame["round"] % 5 > 0) & (frame["round"] < 19), "accuracy"] = np.nan
    frame = frame[~((frame["method"] == "SCAFFOLD") & (frame["seed"] == 5) & (frame["round"] == 7))]
    read = combine_logs([frame], settings_of(BETTER))
    assert read.remarks == [
        "fedavg: loss ends in no number in the seed 2, which diverged",
        "fedavg: loss is no number in rounds 4 of the seed 3, left out for all seeds",
        "scaffold: rounds 7 are missing of the seed 5, left out for all seeds",
    ]
    inputs = {"fedavg": read.history("fedavg")}
    curve = RUNS.curve("fedavg", "accuracy")(Histories(inputs))
    assert curve.rounds.tolist() == [0, 5, 10, 15, 19]
    for ends in (RUNS.last("fedavg", "loss"), RUNS.at("fedavg", "loss", 12)):
        assert ends(Histories(inputs)).bounds.tolist() == [0, 1, 0, 0, 0, 0]


class Histories:
    """Inputs of one experiment."""

    def __init__(self, by_method):
        self.by_method = by_method

    def run(self, experiment, method):
        return self.by_method[method]


# --- What is refused ---


def same(frame):
    return frame


FAULTY_FRAMES = [
    (lambda f: pd.concat([f, f]), {}, "two runs of fedavg have the seed 1 (round 0, the table)"),
    (
        lambda f: f[(f["seed"] != 2) | (f["round"] < 9)],
        {},
        "end at different rounds: at 8 the seed 2; at 19 the seeds 1, 3, 4, 5, 6; state the last round that",
    ),
    (lambda f: f[f["round"] <= f["seed"]], {}, "at 5 the seed 5 and 1 more; state the last round that"),
    (lambda f: f.rename(columns={"loss": "losss"}), {}, "unknown column 'loss'; did you mean 'losss'?"),
    (same, {"columns": {"seed": "sed"}}, "unknown column 'sed'; did you mean 'seed'?"),
    (same, {"where": {"data": "a9a"}}, "unknown column 'data'"),
    (same, {"where": {"seed": 9}}, "where: no line has seed = 9"),
    (same, {"where": {"seed": [1, 2]}}, "where: seed is to have one value, not [1, 2]"),
    (same, {"where": {"seed": "x"}}, "where: no line has seed = x; seed is 1, 2"),
    (lambda f: f.assign(loss=np.nan), {}, "the table: loss holds no number"),
    (lambda f: f.assign(loss="a lot"), {}, "loss holds 'a lot', which is no number"),
    (lambda f: f.assign(loss=f["loss"] + 1j), {}, "loss holds '(0.56+1j)', which is no number"),
    (lambda f: f.assign(loss=pd.Timedelta(1)), {}, "loss holds '0 days 00:00:00"),
    (lambda f: f.assign(round=0.5), {}, "round counts rounds, so that it has to hold"),
    (lambda f: f.assign(round=f["round"] * 1e300), {}, "round counts rounds, so that it has to hold"),
    (lambda f: f.assign(round=pd.Timestamp("2020")), {}, "round holds '2020-01-01 00:00:00'"),
    (same, {"tuned_on": [2, 3]}, "tuned, would be reported; report the others: replicates: [1, 4, 5, 6]"),
    (same, {"replicates": [1, 9]}, "replicates: no log is of the seed 9"),
    (lambda f: f.replace("SCAFFOLD", "fedavg"), {}, "'FedAvg' and 'fedavg' would both be called fedavg"),
    (lambda f: f.assign(round=f["round"] + 5), {"until": 3}, "until: no round up to 3 was recorded"),
    (lambda f: pd.concat([f, f[["loss"]] + 5], axis=1), {}, "two columns are called loss; rename"),
    (lambda f: f[:0], {}, "the logs have no line"),
    (lambda f: "runs.csv", {}, "runs are to be a data frame, not of str; pandas reads files"),
    (same, {"util": 3}, "util: unknown key with value 3; did you mean 'until'?"),
    (same, {"evidence": "own runs"}, "evidence: claims in Python state it by Statements"),
    (same, {"best_over": 3}, "best_over: 3 is not allowed; expected a text"),
    (same, {"axes": {"loss": "time"}}, "loss is no name of an axis"),
    (same, {"ignore": ["los"]}, "unknown column 'los'; did you mean 'loss'"),
]


@pytest.mark.parametrize(("change", "settings", "text"), FAULTY_FRAMES)
def test_a_frame_that_is_no_experiment_is_refused_in_one_line(change, settings, text):
    with pytest.raises(ReplifedError) as refused:
        rf.judge(change(runs()), [], BETTER, **settings)
    assert text in str(refused.value) and "\n" not in str(refused.value)


def test_what_is_no_claim_or_metric_is_refused_and_seeds_of_arrow_are_read():
    with pytest.raises(ReplifedError, match="'loss < 1' is no claim"):
        rf.judge(runs(), ["loss < 1"], BETTER)
    with pytest.raises(ReplifedError, match="unknown metric of runs 'los'; did you mean 'loss'"):
        RUNS.last("fedavg", "los")
    arrow = runs().convert_dtypes(dtype_backend="pyarrow")
    read = combine_logs([arrow], settings_of(BETTER, tuned_on=[2, 3], replicates=[1, 4, 5, 6]))
    assert set(read.frame["replicate"]) == {1, 4, 5, 6}


def test_a_method_that_the_runs_lack_is_named_with_the_nearest():
    ahead = RUNS.ahead("scafold", "fedavg", "loss")
    one, other = (CLAIM.order(name, "It is lower.", ahead, least=0.01) for name in ("one", "other"))
    judged = rf.judge(
        runs(), [one, CLAIM.identity("is", "It is.", RUNS.survives("fedavg", "loss")), other], BETTER
    )
    assert judged["verdict"].tolist() == ["unchecked", "holds", "unchecked"]
    hints = judged["reason"].str.partition("scafold")[2]
    assert hints.tolist() == ["; did you mean 'scaffold'?", "", "; did you mean 'scaffold'?"]


CSV = b"round,loss\n0,1.0\n1,0.5\n"
FAULTY_FILES = {
    "a.csv": [
        (b"", "a.csv is empty"),
        (b"\x89PNG\r\n\x1a\n\0\0", "is no log: neither text in UTF-8"),
        (b"round,loss\n", "no line is a header"),
        (b"only words\nof a diary\n", "no line is a header"),
        (CSV + b"2,0.3,7\n", "line 4 has not 2 fields as its header"),
        (CSV + b"2", "line 4 has not 2 fields as its header; was it cut off?"),
        (CSV + b"1" * (1 << 21) + b"\n", "is no log: line 4 has 2,097,152 letters"),
        (b'{"round": 1, "loss": .}\n', "a.csv: no JSON"),
        (b'{"round": 1}\n{"round": .}\n', "line 2: no JSON"),
        (b'{"round": 1, "loss": 1}\n[1]\n', "each line has to be an object of JSON"),
        (b"\x1f\x8b\x08\xff", "is no log: neither text in UTF-8, UTF-16 or Latin-1"),
        (b"round,loss, loss\n0,1,2\n", "line 1 names the column loss twice; rename one"),
        (b"round,loss\n0,nan\n", "a.csv: loss holds no number"),
    ],
    "a.parquet": [(b"PAR1" + CSV, "is no whole parquet file"), (CSV, "is no whole parquet file")],
}


@pytest.mark.parametrize(
    ("name", "content", "text"), [(name, *case) for name, cases in FAULTY_FILES.items() for case in cases]
)
def test_bytes_that_are_no_log_are_refused_in_one_line(tmp_path, name, content, text):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ReplifedError) as refused:
        histories.read(tmp_path, settings_of({"loss": "lower"}, logs="a.*"))
    assert text in str(refused.value) and "\n" not in str(refused.value)


def test_a_list_of_objects_may_be_one_long_line_and_a_method_be_called_none(tmp_path):
    frame = runs(30, none=0.9, FedAvg=0.8)
    frame["method"] = frame["method"].replace("none", "None")
    (tmp_path / "a.json").write_text(frame.to_json(orient="records"))
    assert (tmp_path / "a.json").stat().st_size > 1 << 16
    assert len(read_log(tmp_path / "a.json").frame) == len(frame)
    text = frame.to_csv(index=False).replace("0.5,", "nan,", 1)
    (tmp_path / "b.csv").write_text(text)
    read = read_log(tmp_path / "b.csv").frame
    assert set(read["method"]) == {"None", "FedAvg"} and read["loss"].dtype == float


def test_hidden_copies_are_no_logs(tmp_path):
    for name in ("fedavg_1.csv", ".ipynb_checkpoints/fedavg_1-checkpoint.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(CSV)
    found = files.find(tmp_path, "**/*.csv")
    assert [log.path.name for log in found] == ["fedavg_1.csv"]
    assert len(files.find(tmp_path, ".ipynb_checkpoints/*.csv")) == 1


def test_a_metric_that_is_evaluated_ever_more_seldom_has_not_diverged():
    frame = runs(3, FedAvg=0.97)
    frame.loc[~frame["round"].isin([0, 1, 2, 4, 8]), "accuracy"] = np.nan
    frame = frame[frame["round"] < 15]
    assert not combine_logs([frame], settings_of(BETTER)).frame["diverged"].any()
    frame.loc[frame["round"] == 8, "accuracy"] = np.nan
    frame.loc[frame["round"] == 3, "accuracy"] = 0.4
    assert combine_logs([frame], settings_of(BETTER)).frame["diverged"].any()


def test_a_parquet_file_is_as_large_as_its_values(tmp_path, monkeypatch):
    pd.DataFrame({"round": range(5000), "loss": 1.0}).to_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr(limits, "DEFAULT", 1 << 16)
    with pytest.raises(ReplifedError, match=r"its 10,000 values take 625 KiB, above .*; keep fewer"):
        read_log(tmp_path / "a.parquet")


def test_a_log_that_changes_under_the_reader_is_refused(tmp_path, monkeypatch):
    log = tmp_path / "a.csv"
    log.write_bytes(CSV)
    read_bytes = Path.read_bytes

    def slow(path):
        content = read_bytes(path)
        with path.open("ab") as growing:
            growing.write(b"2,0.25\n")
        return content

    monkeypatch.setattr(Path, "read_bytes", slow)
    with pytest.raises(ReplifedError, match=r"a.csv changed while it was read; wait until its run has ended"):
        read_log(log)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("runz/*.csv", r"logs: runz/\*.csv matches no file in .*; did you mean 'runs/a.csv'"),
        *(
            (pattern, rf"logs: '{re.escape(pattern)}' is no valid pattern of files: two wildcards stand")
            for pattern in ("**x.csv", "runs/**", "x**/a.csv", "{method}{seed}.csv")
        ),
        (".", "logs: '.' is no valid pattern of files"),
        ("../*.csv", "leaves the folder of the paper"),
        ("/etc/*", "leaves the folder of the paper"),
        ("links/*.csv", "leaves the folder of the paper"),
    ],
)
def test_patterns_that_name_nothing_or_other_folders_are_refused(tmp_path, pattern, text):
    folder = tmp_path / "paper"
    for name in ("runs", "links"):
        (folder / name).mkdir(parents=True)
    (folder / "runs/a.csv").write_bytes(CSV)
    (tmp_path / "outside.csv").write_bytes(CSV)
    (folder / "links/a.csv").symlink_to(tmp_path / "outside.csv")
    with pytest.raises(ReplifedError, match=text):
        histories.read(folder, settings_of({"loss": "lower"}, logs=pattern))


# --- Forms ---


def test_words_around_a_table_are_skipped(tmp_path):
    frame = runs()
    settings = settings_of(BETTER, logs="a.*")
    wanted = combine_logs([frame], settings).frame
    for name, text in {
        "a.log": frame.to_csv(),  # with the index of its lines, whose column has no name
        "a.txt": "# Configuration:\nmodel, softmax\nstep, 0.1\nclients: 5\n# Results:\n\n"
        + frame.to_csv(index=False),
        "a.time": "[2026-01-02 03:04:05][INFO] begin\n" + frame.to_csv(index=False),
        "a.wide": frame.rename(columns=lambda name: f"{name} ").to_csv(index=False),
    }.items():
        (tmp_path / name).write_text(text)
        pd.testing.assert_frame_equal(histories.read(tmp_path, settings).frame, wanted)
        (tmp_path / name).unlink()
    frame.set_index("method").to_parquet(tmp_path / "a.parquet")
    pd.testing.assert_frame_equal(histories.read(tmp_path, settings).frame, wanted)


def test_metrics_of_one_round_may_stand_in_several_lines():
    frame = runs()
    apart = pd.concat([frame.drop(columns="loss"), frame.drop(columns=["accuracy", "bits"])])
    pd.testing.assert_frame_equal(
        combine_logs([apart], settings_of(BETTER)).frame,
        combine_logs([frame], settings_of(BETTER)).frame,
        check_like=True,
    )


def test_event_files_need_the_extra(tmp_path, monkeypatch):
    log = tmp_path / "events.out.tfevents.1"
    log.write_bytes(b"anything")
    monkeypatch.setitem(sys.modules, "tensorboard.backend.event_processing.event_accumulator", None)
    with pytest.raises(ReplifedError, match=r"pip install 'replifed\[tensorboard\]'"):
        read_log(log)


def test_event_files(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    for seed in (1, 2):
        writer = EventFileWriter(str(tmp_path / f"fedavg/{seed}"))
        for step in range(5):
            value = Summary.Value(tag="loss", simple_value=0.5**step * seed)
            writer.add_event(Event(step=step, summary=Summary(value=[value])))
        writer.close()
    settings = settings_of({"loss": "lower"}, logs="{method}/{seed}/*tfevents*", columns={"round": "step"})
    frame = histories.read(tmp_path, settings).frame
    assert frame["loss"].tolist() == [0.5**step * seed for seed in (1, 2) for step in range(5)]
    (broken,) = (tmp_path / "fedavg/2").iterdir()
    broken.write_bytes(b"no events")
    with pytest.raises(ReplifedError, match=r"no scalars|no event file"):
        read_log(broken)


# --- A paper on logs ---


def write_logs():
    for (method, seed), own in runs().groupby(["method", "seed"]):
        Path("runs").mkdir(exist_ok=True)
        own.drop(columns=["method", "seed"]).to_csv(f"runs/{method}_seed{seed}.csv", index=False)


NEW = ["new", "paper", "demo", "--from-logs", "runs"]


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    """A paper on logs, called demo."""
    folder = tmp_path_factory.mktemp("paper")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_logs()
        assert main([*NEW, "--lower", "loss"]) == 0
    return folder / "demo"


def test_a_new_paper_from_logs_is_judged_as_it_stands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_logs()
    assert main([*NEW, "--lower", "loss", "--higher", "accuracy"]) == 0
    said = capsys.readouterr().out
    assert (
        "read as {method}_seed{seed}.csv" in said and "method scaffold (SCAFFOLD): 6 seeds, 20 rounds" in said
    )
    log = Path("demo/logs/FedAvg_seed2.csv")
    frame = pd.read_csv(log)
    frame.loc[4, "accuracy"] = np.nan
    frame.to_csv(log, index=False)
    assert main(["judge", "demo"]) == 0
    said = capsys.readouterr().out
    named = "fedavg: accuracy is no number in rounds 4 of the seed 2, left out for all seeds"
    assert f"note: runs: {named}" in said and named in Path("demo/results/report.html").read_text()
    claims = pd.read_csv("demo/results/claims.csv", keep_default_na=False).set_index("id")
    assert set(claims["kind"]) == {"value", "order", "shape", "identity"}
    assert claims["verdict"].tolist() == ["holds"] * 4
    assert set(claims["command"]) == {"replifed judge demo"}
    assert "✓ holds        demo.end  published" in said and "page: demo/results/report.html" in said
    assert pd.read_csv("demo/results/statements.csv")["status"].tolist() == ["reproduced"] * 4
    page = Path("demo/results/report.html").read_text()
    assert "SCAFFOLD ends with better loss than FedAvg." in page and "<svg" in page
    assert "replifed.papers.demo" not in sys.modules
    lines = runpy.run_path("demo/figures.py")["FIGURES"]["fig1"].lines.values()
    assert {line.label for line in lines} == {"FedAvg", "SCAFFOLD"}
    assert len({line.color for line in lines}) == 2


@pytest.mark.parametrize(
    ("more", "kind", "rests"),
    [([], "authors' logs", "authors' logs"), (["--own"], "own runs", "own runs on the paper's data")],
)
def test_claims_rest_on_whose_runs_they_are(tmp_path, monkeypatch, capsys, more, kind, rests):
    monkeypatch.chdir(tmp_path)
    write_logs()
    assert main([*NEW, "--lower", "loss", *more]) == 0
    assert f"evidence: {kind}" in capsys.readouterr().out
    assert f'evidence: "{kind}"' in Path("demo/settings.yaml").read_text()
    assert main(["judge", "demo"]) == 0
    assert f"\nevidence: {rests}\n" in capsys.readouterr().out
    statements = pd.read_csv("demo/results/statements.csv")
    assert set(statements["evidence"]) == {rests}
    page = Path("demo/results/report.html").read_text().replace("&#39;", "'")
    assert f'data-head="rests on">{rests}<' in page


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (runs().to_csv(index=False, sep=";", decimal=","), "loss is no metric: it holds '0,56', which is no "
         "number; write a point for the comma"),
        (runs().assign(loss="5 kg").to_csv(index=False), "loss is no metric: it holds '5 kg', which is no"),
        (runs().assign(loss=np.nan).to_csv(index=False), "loss is no metric: it holds no number"),
    ],
)  # fmt: skip
def test_a_metric_that_holds_no_numbers_says_what_it_holds(tmp_path, monkeypatch, capsys, content, text):
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    Path("runs/a.csv").write_text(content)
    assert main([*NEW, "--lower", "loss"]) == 2
    said = capsys.readouterr().err
    assert text in said and said.count("\n") == 1 and os.listdir("demo") == ["settings.yaml"]  # noqa: PTH208


@pytest.mark.parametrize(
    ("file", "old", "new", "text"),
    [
        ("settings.yaml", "logs/{method}", "lags/{method}", "matches no file"),
        ("settings.yaml", '"column": "loss"', '"colum": "loss"', "did you mean 'column'?"),
        ("settings.yaml", '"lower"', '"down"', "expected one of lower, higher"),
        (
            "settings.yaml",
            "scaffold",
            "scafold",
            "unknown method of the logs 'scafold'; did you mean 'scaffold'",
        ),
        ("settings.yaml", "demo:", "dem:", "the section is to be called demo"),
        ("claims.py", '"scaffold", "loss"', '"scaffold", "lossy"', "unknown metric of runs 'lossy'"),
        ("logs/FedAvg_seed1.csv", "loss", "los", "unknown column 'loss'; did you mean 'los'?"),
    ],
)
def test_a_mistake_in_a_paper_is_one_line(paper, tmp_path, monkeypatch, capsys, file, old, new, text):
    shutil.copytree(paper, tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    path = Path("demo", file)
    path.write_text(path.read_text().replace(old, new))
    capsys.readouterr()
    assert main(["judge", "demo"]) == 2
    said = capsys.readouterr().err
    assert text in said and said.count("\n") == 1
    results = Path("demo/results/claims.csv")
    assert not results.exists() and "earlier run" not in said
    results.parent.mkdir(exist_ok=True)
    results.touch()
    assert main(["judge", "demo"]) == 2
    assert "; the verdicts in demo/results are of an earlier run\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (["--from-logs", "runs"], "which side is better is not guessed: give --lower NAME or --higher NAME"),
        (["--from-logs", "runs", "--lower", "los"], "unknown metric 'los'; did you mean 'loss'"),
        (
            ["--from-logs", "runs", "--lower", "loss", "--higher", "loss"],
            "loss cannot be better when lower and",
        ),
        (["--from-logs", "rums", "--lower", "loss"], "rums is no folder of logs"),
        (["--from-logs", "empty", "--lower", "loss"], "empty holds no log"),
        (["--from-logs", "runs", "--files", "*.tsv", "--lower", "loss"], "*.tsv matches no file in runs"),
        (["--from-logs", "runs", "--files", "../*", "--lower", "loss"], "../* leaves the folder"),
        (["--from-logs", "runs", "--files", "/*.csv", "--lower", "loss"], "/*.csv leaves the folder"),
        (
            ["--from-logs", "runs", "--files", "{Me}.csv", "--lower", "loss"],
            "{Me} in logs: {Me}.csv is not allowed",
        ),
        (["--lower", "loss"], "which folder are your papers in? give --to FOLDER"),
        (["--to", ".", "--lower", "loss"], "--files, --lower, --higher and the like are about logs; give"),
    ],
)
def test_a_paper_that_cannot_be_written_is_one_line(paper, monkeypatch, capsys, more, text):
    monkeypatch.chdir(paper.parent)
    Path("empty").mkdir(exist_ok=True)
    shutil.rmtree("other", ignore_errors=True)
    assert main(["new", "paper", "other", *more]) == 2
    said = capsys.readouterr().err
    assert text in said and said.count("\n") == 1
    assert Path("other").exists() == ("or edit other/settings.yaml" in said)


def test_a_folder_without_a_paper_is_one_line(tmp_path, capsys):
    assert main(["judge", str(tmp_path)]) == 2
    assert "`replifed new paper NAME --from-logs FOLDER` writes one" in capsys.readouterr().err


# --- Worked examples ---


def test_the_example_of_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runs().to_csv("runs.csv", index=False)
    page = (ROOT / "docs/logs.md").read_text()
    exec(page.split("```python\n")[1].split("```")[0], {})
    assert capsys.readouterr().out.count("holds") == 2


def test_the_authors_points_of_fedac():
    """One run a setting, no rounds, the best over eta: shapes on the points as of the paper, and no order."""
    points = published.points()
    points = points[(points["l2"] == 1e-3) & (points["K"] >= 8) & (points["M"] >= 32)]
    frame = points.assign(seed=points["M"] * 10_000 + points["K"])[["method", "seed", "best_loss"]]
    better, of = {"best_loss": "lower"}, rf.Runs({"best_loss": "lower"})
    lower = of.last("fedac_1", "best_loss") < of.last("fedavg", "best_loss")
    claims = [
        CLAIM.shape("lower", "FedAc-I is below FedAvg.", lower, fails="above at two of ten", share=0.9),
        CLAIM.order("order", "It is below.", of.ahead("fedac_1", "fedavg", "best_loss"), least=1e-3),
    ]
    judged = rf.judge(frame, claims, better, best_over="eta")
    table = points.set_index(["M", "K", "method"])["best_loss"].unstack()  # noqa: PD010
    assert judged["measured"].iloc[0] == (table["fedac_1"] < table["fedavg"]).mean()
    assert judged["verdict"].tolist() == ["holds", "unchecked"]
    assert "it is no run, so that seeds cannot be paired" in judged["reason"].iloc[1]


class Exported:
    """The reference run's histories of `cross`, as CSV files and back; as inputs of its claims."""

    def __init__(self, folder):
        self.folder = folder

    def has(self, key):
        return True

    def data_kind(self, experiment):
        return "original", ""

    @cache  # noqa: B019
    def run(self, experiment, method):
        log = self.folder / f"{experiment}_{method}.csv"
        file = ROOT / f"reference/histories/cross/{experiment}/{method}.parquet"
        whole = pd.read_parquet(file, columns=["method", "replicate", "round", "gap"])
        kept = whole[
            (whole["round"] < 4) | (whole["round"] % 75 == 0) | (whole["round"] == whole["round"].max())
        ]
        kept.to_csv(log, index=False)
        settings = settings_of({"gap": "lower"}, logs=log.name, columns={"seed": "replicate"})
        return histories.read(self.folder, settings).history(method)


def test_exported_histories_of_cross_have_its_verdicts(tmp_path):
    claims = [
        claim for claim in cross.CLAIMS if not claim.id.endswith(".accuracy")
    ]  # logs have the gap alone
    judged = measure(claims, Exported(tmp_path), "paper").set_index("id")
    reference = pd.read_csv(ROOT / "reference/claims.csv").set_index("id").loc[judged.index]
    assert judged["verdict"].to_dict() == reference["verdict"].to_dict()
    assert len(judged) > 15 and set(judged["verdict"]) == {"holds", "fails", "inconclusive"}
    np.testing.assert_allclose(judged["measured"], reference["measured"], rtol=1e-6)


def test_a_parquet_of_benchopt(tmp_path, monkeypatch, capsys):
    """By the columns that it writes."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"objective_name": "quadratic", "data_name": "drawn", "solver_name": f"{name}[step={step}]"}
        | {"idx_rep": rep, "stop_val": t, "time": 0.1 * t, "objective_value": 9 * (1 - step) ** (2 * t) + rep}
        for name, step in (("fast", 0.5), ("slow", 0.1))
        for rep in range(2)
        for t in range(6)
    ]
    Path("runs").mkdir()
    pd.DataFrame(rows).to_parquet("runs/bench.parquet")
    assert main(["new", "paper", "bench", "--from-logs", "runs", "--lower", "objective_value"]) == 0
    said = capsys.readouterr().out
    for words in ("method: column solver_name", "seed: column idx_rep", "round: column stop_val"):
        assert words in said
    assert main(["judge", "bench"]) == 0
