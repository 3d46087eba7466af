"""The comparison under other settings: planted orders over a design, told by its own rules."""

import types
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from replifed.algorithms.fedavg import FedAvg
from replifed.algorithms.registry import METHODS
from replifed.claims.variations import turning
from replifed.figures.style import save
from replifed.papers.cross import compare, vary
from replifed.settings.main import Vary
from replifed.settings.variations import Design, errors

CONFIG = yaml.safe_load((Path(__file__).parents[2] / "config/papers/cross.yaml").read_text())["cross"]
A9A, PLANTED = (CONFIG["experiments"][name] for name in ("a9a", "planted"))
SEEDS, ROUNDS = 8, 45
# Of two methods that nothing tells apart.
LAW = {"rate": 0.8, "floor": 0.0, "up": 32.0, "down": 32.0}


class Coarse(FedAvg):
    """A stranger's method, whose messages to the server are no floats."""

    quantises = True


def design_of(methods, problem=A9A, **wanted):
    return Design("a9a", problem, {"vary": Vary(**wanted).plain()}, methods)


def small_design(methods):
    """Two options on each axis."""
    return design_of(methods, local_steps=[5, 10], target=[1e-2, 1e-3])


def history(rng, rate, floor, up, down):
    """Gaps that fall by a rate, which each seed draws around the stated one, to a floor; bits a round."""
    rates = rate ** np.exp(0.05 * rng.standard_normal(SEEDS))
    t = np.arange(ROUNDS + 1.0)
    gap = np.maximum(rates[:, None] ** t, floor * (1 + 0.01 * rng.random((SEEDS, 1))))
    frame = pd.DataFrame({"replicate": np.repeat(np.arange(SEEDS), len(t)), "round": np.tile(t, SEEDS)})
    frame["gap"] = gap.ravel()
    frame = frame.assign(bits_up=up * frame["round"], bits_down=down * frame["round"], message_bits=32.0)
    return frame.assign(sample_gradients=frame["round"])


def inputs_of(design, laws, seed=0):
    """Runs of all methods, each by a law of the point's options; `laws` say where it is not `LAW`."""
    rng, points = np.random.default_rng(seed), design.settings["points"]
    runs = {
        (key, method): history(rng, **{**LAW, **laws.get(method, lambda point: {})(points[key])})
        for key, one in design.experiments.items()
        for method in one["methods"]
    }
    return types.SimpleNamespace(
        options=types.SimpleNamespace(designs={"a9a": design.settings}),
        has=lambda key: tuple(key.removeprefix("run:").split("/")) in runs,
        run=lambda *names: runs[names],
    )


@pytest.fixture
def mine(monkeypatch):
    monkeypatch.setitem(METHODS, "mine", f"{__name__}:Coarse")
    return "mine"


def outcome(inputs):
    """The row of the first pair, and its outcome in words."""
    frame = compare.TABLES["vary_axes"].table(inputs)
    return frame.iloc[0], frame["outcome"].iloc[0]


@pytest.mark.parametrize("seed", range(2))
def test_a_tie_comes_out_near_a_half_and_no_axis_turns_it(seed):
    row, words = outcome(inputs_of(small_design(["fedavg", "fedlin"]), {}, seed))
    assert row["cells"] == 2**5
    assert row["before"] + row["after"] + row["tie"] + row["open"] == row["cells"]
    assert 0.25 < row["share"] < 0.75 and words.endswith("no axis turns it")
    assert row["before_decided"] + row["after_decided"] <= 0.1 * row["cells"]


def test_equal_runs_are_ties():
    inputs = inputs_of(small_design(["fedavg", "fedlin"]), {})
    one = inputs.run("a9a", "fedavg")
    inputs.run = lambda *names: one
    row, words = outcome(inputs)
    assert row["tie"] == row["cells"] and row["share"] == 0.5 and "no axis turns it" in words


def test_a_clear_order_holds_in_every_cell():
    laws = {"fedlin": lambda point: {"rate": 0.9}}
    row, words = outcome(inputs_of(small_design(["fedavg", "fedlin"]), laws))
    assert row["before"] == row["before_decided"] == row["cells"]
    assert words.startswith("FedAvg before FedLin in 32 of 32 (32 decided)") and "no axis" in words


@pytest.mark.parametrize(
    ("axis", "law"),
    [
        ("local steps", lambda point: {"rate": 0.88 if point["local_steps"] == 10 else 0.7}),
        ("partition", lambda point: {"rate": 0.88 if point["partition"] == "iid" else 0.7}),
        ("ridge", lambda point: {"rate": 0.88 if point["ridge"] < 0.01 else 0.7}),
        ("target", lambda point: {"rate": 0.7, "floor": 3e-3}),  # quick, but it never gets to 1e-3
        ("ledger", lambda point: {"rate": 0.7, "up": 128.0}),  # fewer rounds, of more bits
    ],
)
def test_the_axis_that_turns_the_order_is_named(axis, law):
    row, words = outcome(inputs_of(small_design(["fedavg", "fedlin"]), {"fedavg": law}))
    assert f"; {axis} turns it: before in " in words, words
    assert 0 < row["before_decided"] < row["cells"] and row["after_decided"] > 0


@pytest.mark.parametrize(("decided", "named"), [(4, "target"), (3, "")])
def test_an_axis_that_turns_less_than_a_quarter_of_the_cells_is_not_named(decided, named):
    options = {"axis": "target", "option": ["1e-2", "1e-3"], "cells": 8}
    assert turning(pd.DataFrame({**options, "before_decided": [decided, 0], "after_decided": 0})) == named


def test_the_width_of_a_float_turns_an_order_only_of_a_method_that_quantises(mine):
    """It sends up 20 bits, and takes 16, 32 or 64: fewer than two floats, but for those of 16 bits."""
    design = design_of([mine, "fedlin"], local_steps=[5], partition=["kmeans"])
    inputs = inputs_of(design, {mine: lambda point: {"up": 20.0}})
    words = outcome(inputs)[1]
    assert "ledger turns it: before in" in words and words.endswith("at bits, 16 a float")
    told = vary.configurations(inputs)
    half = told[told["ledger"] == "bits, 16 a float"]
    known = half[half["used"] == "bits"]
    assert len(known) and known["difference"].mean() == pytest.approx(np.log10(36 / 32), abs=0.03)
    assert design_of(["fedavg", "fedlin"]).settings["widths"] == [32]
    assert any("no method quantises" in note for note in design_of(["fedavg", "fedlin"]).settings["notes"])
    quantised = history(np.random.default_rng(0), **{**LAW, "up": 40.0})
    wide = vary.at_width("qshed", quantised, 64)  # a gradient of floats, and 8 bits beside it
    assert (wide["bits_up"] == 72 * wide["round"]).all() and (wide["bits_down"] == 64 * wide["round"]).all()


def test_where_neither_gets_there_the_end_decides_and_unknown_ends_stay_open():
    one_point = design_of(
        ["fedavg", "fedlin"], local_steps=[5], partition=["iid"], ridge=[0.01], target=[0.01]
    )
    laws = {"fedavg": lambda point: {"floor": 0.1}, "fedlin": lambda point: {"floor": 0.2}}
    told = vary.configurations(inputs_of(one_point, laws))
    assert set(told["used"]) == {"gap"} and set(told["order"]) == {"before"} and told["decided"].all()
    # It gets there with more bits than the other, which never does, has used at its end.
    laws = {"fedavg": lambda point: {"up": 1e4}, "fedlin": lambda point: {"floor": 0.2}}
    told = vary.configurations(inputs_of(one_point, laws))
    orders = told.groupby("ledger")["order"].unique()
    assert list(orders["rounds"]) == ["before"] and list(orders["bits"]) == ["open"]


def test_a_method_without_local_steps_runs_once_for_all_their_numbers():
    design = design_of(["newton", "fedavg"])
    steps = {one["local_steps"] for one in design.experiments.values() if "newton" in one["methods"]}
    assert steps == {5} and len(design.experiments) == 12
    assert "local steps are not varied of newton, which takes none" in design.settings["notes"]
    told = vary.configurations(
        inputs_of(design, {"fedavg": lambda point: {"rate": 0.99 ** point["local_steps"]}})
    )
    assert told.groupby("local_steps").size().to_dict() == {"10": 24, "3": 24, "5": 24}
    alone = design_of(["newton", "shed"])
    assert len(alone.experiments) == 4 and "no method takes any" in alone.settings["notes"][0]


def test_what_a_problem_does_not_have_is_not_varied():
    drawn = design_of(["fedht", "fediterht"], PLANTED)
    assert [one["local_steps"] for one in drawn.experiments.values()] == [5, 3, 10]
    assert sum(word in note for note in drawn.settings["notes"] for word in ("partition", "ridge")) == 2
    given = design_of(["fedavg", "fedlin"], {**A9A, "partition": {"clusters": "given"}})
    assert len(given.experiments) == 6 and "name their clients" in given.settings["notes"][0]
    wanted = design_of(["fedavg", "fedlin"], local_steps=[2], partition=["iid", "shards:2"], ridge=[0.1, 1.0])
    options = [(one["partition"], one["ridge"]) for one in wanted.settings["points"].values()]
    assert options == list(product(["iid", "shards:2"], [0.1, 1.0]))
    assert all(one["partition"]["clients"] == 10 for one in wanted.experiments.values())


@pytest.mark.parametrize(
    ("methods", "wanted", "says"),
    [
        (["mine", "a", "b", "c", "d"], {}, "vary takes mine and at most 3 competitors, not 4; name fewer"),
        (["mine"], {}, "at least one competitor"),
        (["mine", "a"], {"partition": ["kmean"]}, "partition: 'kmean' is not allowed"),
        (["mine", "a", "b", "c"], {}, None),
    ],
)
def test_too_many_competitors_are_refused_in_one_line(methods, wanted, says):
    found = [text for _, text in errors({"vary": Vary(**wanted).plain()}, methods)]
    assert len(found) == (says is not None) and (says is None or says in found[0])


def test_picture_and_table_show_each_pair_from_their_csv(tmp_path):
    laws = {"fedavg": lambda point: {"rate": 0.88 if point["ridge"] < 0.01 else 0.7, "floor": 5e-3}}
    design = design_of(["fedavg", "fedlin", "newton"], local_steps=[10, 3], partition=["kmeans"])
    inputs = inputs_of(design, laws)
    for made in (compare.FIGURES["vary"], compare.TABLES["vary_axes"]):
        made.table(inputs).to_csv(tmp_path / "t.csv", index=False)
        texts = dict.fromkeys(made.texts, str)
        frame = pd.read_csv(tmp_path / "t.csv", keep_default_na=False, na_values=["nan"], dtype=texts)
        if made.name == "vary":
            [page] = made.pages_of(frame)
            titles = [ax.get_title(loc="left") for ax in page.axes if ax.get_title(loc="left")]
            assert [title.split(" in ")[0] for title in titles] == [
                *("FedAvg before FedLin", "FedAvg before distributed Newton")
            ]
            dots = page.axes[1]
            labels = [label.get_text() for label in dots.get_yticklabels()]
            assert labels[:2] == ["local steps  3", "10"] and len(labels) == 2 + 2 + 3 + 2
            assert sum(len(one.get_offsets()) for one in dots.collections) == 4 * 24
            save(page, tmp_path / "t.png")
        else:
            tables = made.show(frame)
            assert len(tables) == 2 and all("FedAvg before" in title for title in tables)
            table = next(iter(tables.values()))
            assert table["axis"].iloc[0] == "all" and "no method quantises" in table["axis"].iloc[-1]
