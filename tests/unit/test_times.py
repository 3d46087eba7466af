"""Time of recorded rounds, and who is the fastest where: against plain loops and closed forms."""

from __future__ import annotations

import math
import types
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.sparse import csr_matrix

import replifed as rf
from legible import faults
from planned_comparison import config
from replifed.data.table import Table
from replifed.errors import ConfigError
from replifed.network import times
from replifed.network.times import PRESETS, Rates, Size, rates, slowest, with_seconds
from replifed.papers.cross import experiments, where
from replifed.papers.cross.timed import Timed
from replifed.papers.inputs import Inputs
from replifed.partition.build import build
from replifed.parts import typed
from replifed.settings.comparison import comparison
from replifed.settings.needs import settings_for

CONFIG = Path(__file__).parents[2] / "config"
ASKED = "uplink=2Mbps,downlink=8Mbps,latency=50ms,gradient=1us"


def test_the_slowest_of_a_cohort_is_that_of_normal_factors():
    """One has the mean of a log-normal number, two a closed form, and many that of draws."""
    for spread in (0.2, 1.0):
        assert slowest(1, spread) == pytest.approx(math.exp(spread**2 / 2))
        both = 2 * math.exp(spread**2 / 2) * NormalDist().cdf(spread / math.sqrt(2))
        assert slowest(2, spread) == pytest.approx(both)
    drawn = np.exp(0.5 * np.random.default_rng(0).normal(size=(40_000, 50))).max(axis=1)
    assert slowest(50, 0.5) == pytest.approx(drawn.mean(), rel=0.01)
    assert slowest(10, 0.0) == 1.0 and slowest(0, 0.5) == 0.0


def history(rounds=6, seeds=2, cohort=None, **more):
    rng = np.random.default_rng(1)
    rows = []
    for seed in range(seeds):
        totals = dict.fromkeys(
            ("bits_up", "bits_down", "exchanges", "sample_gradients", "hessians", "took_part"), 0.0
        )
        for number in range(rounds + 1):
            rows.append({"replicate": seed, "round": number, **totals})
            came = 10 if cohort is None else int(rng.integers(0, cohort))
            totals["took_part"] += came
            if came:
                totals = {k: v + (k != "took_part") * float(rng.integers(1, 1e6)) for k, v in totals.items()}
    frame = pd.DataFrame(rows)
    return (frame if cohort else frame.drop(columns="took_part")).assign(**more)


@pytest.mark.parametrize("cohort", [None, 4])
@pytest.mark.parametrize("spread", [0.0, 0.7])
def test_time_is_that_of_a_plain_loop_over_rounds(cohort, spread):
    """Rounds to which nobody came take none, and a Hessian is d / 2 gradients of each sample."""
    frame, size = history(cohort=cohort), Size(clients=10, dim=7, samples=300)
    given = rates(ASKED)._replace(spread=spread)
    found = with_seconds(frame.sample(frac=1, random_state=0), size, given).sort_index()
    assert (found.drop(columns=[*times.PARTS, "seconds"], errors="ignore") == frame).all(axis=None)
    for seed, own in frame.groupby("replicate"):
        total, before = 0.0, dict.fromkeys(own, 0.0)
        for row in own.to_dict("records"):
            new = {name: row[name] - before[name] for name in row}
            came = new.get("took_part", 10 * new["round"])
            if came:
                gradients = new["sample_gradients"] + new["hessians"] * 30 * 7 / 2
                client = new["exchanges"] * 0.05 + new["bits_down"] / came / 8e6
                client += new["bits_up"] / came / 2e6 + gradients / came * 1e-6
                total += slowest(came, spread) * client
            before = row
            at = found[(found["replicate"] == seed) & (found["round"] == row["round"])]
            assert at["seconds"].item() == pytest.approx(total)


def test_words_of_times():
    assert rates(ASKED) == Rates(2e6, 8e6, 0.05, 1e-6)
    assert rates("uplink=250kB/s,downlink=1MB/s,latency=0.05s,gradient=1000ns") == rates(ASKED)
    assert rates("phone,spread=0.5") == PRESETS["phone"].rates._replace(spread=0.5)
    for preset in PRESETS.values():
        assert "http" in preset.source
        assert rates(str(preset.rates)) == preset.rates


WRONG = {
    "phone,latency=0ms": "latency=0ms is not allowed; expected more than 0",
    "phone,gradient=-1us": "gradient=-1us is not allowed; expected more than 0",
    "phone,uplink=1": "uplink=1 is not allowed; expected a number with its unit, such as 1Mbps",
    "phone,spread=-1": "spread=-1 is not allowed; expected more than 0",
    "phone,bandwidth=1Mbps": "unknown part of a time 'bandwidth'",
    "uplink=1Mbps": "downlink is missing: add downlink=10Mbps, or begin with one of phone",
    "fone": "unknown preset 'fone'; did you mean 'phone'?",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_time_is_said_in_one_line(text):
    with pytest.raises(ConfigError) as error:
        rates(text)
    assert str(error.value).startswith(WRONG[text]) and "\n" not in str(error.value)


def falling(rate, up, exchanges, gradients, seeds=4):
    """Runs whose gap falls by a rate, with what each round costs ten clients; seeds differ a little."""
    t = np.arange(41)
    runs = []
    for seed in range(seeds):
        gap = rate ** (t * (1 + 0.02 * seed))
        run = pd.DataFrame({"replicate": seed, "round": t, "gap": gap, "diverged": False})
        runs.append(run.assign(bits_up=up * t, bits_down=up * t, exchanges=exchanges * t))
        runs[-1]["sample_gradients"] = gradients * t * (1 + 0.01 * seed)
    costs = {"message_bits": 10 * 32 * 50.0, "samples": 1000.0, "hessians": 0.0}
    return pd.concat(runs, ignore_index=True).assign(**costs)


RUNS = {
    "giant": falling(0.2, 3e5, 2, 1e4),  # few rounds, each with much of all
    "fedavg": falling(0.7, 1e5, 1, 1e3),
    "scaffold": falling(0.4, 2e5, 1, 8e3),
}


def inputs(time=ASKED):
    client = {1: np.arange(10)}
    return types.SimpleNamespace(
        experiments=lambda: ["a9a"],
        methods=lambda _: list(RUNS),
        run=lambda _, method: RUNS[method],
        has=lambda key: key == "partition:a9a",
        experiment=lambda _: types.SimpleNamespace(new_clients=None),
        partition=lambda _: types.SimpleNamespace(clients=client),
        options=types.SimpleNamespace(time=time),
    )


def test_the_fastest_is_that_with_the_least_time_to_the_target():
    """Each cell against the times of the histories themselves; another latency only shifts the picture."""
    frame = where.cells(inputs())
    for row in frame.sample(25, random_state=1).itertuples():
        given = Rates(row.uplink, 4 * row.uplink, 0.05, row.gradient)
        medians = {}
        for method, run in RUNS.items():
            run = with_seconds(run, Size(10, 50, 1000), given)
            first = run[run["gap"] <= row.target].groupby("replicate")["seconds"].first()
            medians[method] = first.median()
        best, second, _ = sorted(medians, key=medians.get)
        assert (row.best, row.second) == (best, second)
        assert row.margin == pytest.approx(medians[second] / medians[best])
        assert row.seconds == pytest.approx(medians[best])
    assert set(frame["best"]) == {"giant", "fedavg", "scaffold"}
    assert (frame["margin"] >= 1).all() and not frame.loc[frame["margin"] < 1.05, "told"].any()
    steps = where.GRADIENT[4] / where.GRADIENT[0], where.UPLINK[4] / where.UPLINK[0]
    assert steps[0] == pytest.approx(steps[1])
    slower = where.cells(inputs(ASKED.replace("50ms", f"{50 * steps[0]}ms")))
    table, other = (one.pivot_table("margin", "gradient", "uplink").to_numpy() for one in (frame, slower))
    np.testing.assert_allclose(other[4:, :-4], table[:-4, 4:], rtol=1e-9)


def test_the_picture_of_the_fastest_can_be_read(tmp_path):
    where.cells(inputs()).to_csv(tmp_path / "w.csv", index=False)
    frame = pd.read_csv(tmp_path / "w.csv")
    drawn = where.PICTURE.show(frame)
    assert faults(drawn) == []
    said = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert {"FedAvg", "SCAFFOLD", "GIANT"} <= set(said)
    near = where.PICTURE.show(frame.assign(margin=frame["margin"].clip(upper=1.9)))
    said = [text.get_text() for text in near.legends[0].get_texts()]
    assert [one for one in said if "margin" in one] == ["margin 1.5×"], "of lines that are drawn"
    assert faults(where.PICTURE.show(frame[:0])) == []


PROBLEM = {
    **{"problem": "logistic", "dataset": "mine", "local_steps": 2, "kept_share": 0.1, "ridge": 0.01},
    **{"rounds": 6, "record_every": 1, "replicates": [1, 2], "methods": ["fedavg"], "seed": 7, "test": "25%"},
}


@pytest.mark.parametrize(
    ("split", "new", "trains"), [("iid", None, 6), ("iid", 2, 4), ("given", None, 3), ("given", "30%", 2)]
)
def test_a_round_takes_as_long_as_its_clients_that_train(split, new, trains):
    """Each sends a model of 5 floats both ways; of six, two never train, or three are drawn."""
    rng = np.random.default_rng(4)
    owner = np.repeat(np.arange(6), 20).astype(np.int32)
    X, y = rng.normal(size=(120, 5)), rng.choice([-1, 1], 120)
    table = Table(csr_matrix(X), y, {"id": "mine", "kind": "original"}, owner)
    partition = {"clusters": split, "clients": 6, "spread": 0.0}
    if split == "given":
        partition = {"clusters": "given", "clients": 3}
    made, _ = build(X, y, partition, [1, 2], 7, owner)
    settings = typed("cross", {**PROBLEM, "partition": partition, "new_clients": new})
    run = experiments.run("fedavg", settings, {"search": {"step": 0.5}}, table, made)
    kept = types.SimpleNamespace(
        has=lambda _: True, partition=lambda _: made, experiment=lambda _: settings, run=lambda *_: run
    )
    found = Timed(kept, rates(ASKED)).run("mine", "fedavg")
    last = found[found["round"] == 6]
    each = 0.05 + 5 * 32 / 8e6 + 5 * 32 / 2e6 + 2 * last["samples"] / trains * 1e-6
    np.testing.assert_allclose(last["seconds"], 6 * each)


def test_a_picture_with_time_knows_its_problem_without_the_search():
    """It reads runs and the split, of whose settings the search has its repetitions alone."""
    stated = config(data=["a9a"], new_clients="2", test="20%", time=ASKED)
    stated["cross"] = yaml.safe_load((CONFIG / "papers/cross.yaml").read_text())["cross"]
    section = comparison(stated)
    (name,) = section["experiments"]
    for key in ("fig1", "accuracy", "where"):
        settings = settings_for("artefact", section, key)
        assert settings["experiments"][name]["tuning"] == {"replicates": [101, 102, 103]}
        known = Inputs({}, settings, "compare").experiment(name)
        assert (known.new_clients, known.rounds) == ("2", 150)


def test_a_comparison_from_python_has_time_as_an_axis():
    X, y = rf.load("mushrooms")
    X, y = X[:200, :20].toarray(), y[:200]
    data = [(X[i::4], y[i::4]) for i in range(4)]
    problem = rf.problems.from_clients(data, loss="logistic", l2=0.1)
    methods = {
        name: rf.method("fedavg", step=0.5, local_steps=steps) for name, steps in (("one", 1), ("five", 5))
    }
    found = rf.compare(methods, problem, rounds=10)
    table = found.table(target=0.5, time=ASKED)
    bits = 10 * 4 * 32 * problem.dim
    whole = found.timed(ASKED).groupby("method")["seconds"].last()
    client = 10 * 0.05 + bits / 4 / 2e6 + bits / 4 / 8e6
    assert whole["five"] == pytest.approx(client + 10 * 5 * 50 * 1e-6)
    assert "seconds" in table and "seconds" not in found.table(target=0.5)
    assert found.plot(x="time", time="phone").axes[0].get_xlabel() == "time, s"
    with pytest.raises(ConfigError, match="go together"):
        found.plot(x="time")
