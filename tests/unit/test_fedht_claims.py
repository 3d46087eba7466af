"""FedHT's claims and their measures, on curves whose answers are known."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest

from known_runs import AllThere, curves
from replifed.claims.claim import Claim, NotMeasurableError
from replifed.claims.verdicts import judge, measure
from replifed.papers.fedht import measures
from replifed.papers.fedht.claims import CLAIMS
from replifed.papers.fedht.measures import fewer, rounds_fall_with_k
from replifed.papers.inputs import Inputs as Kept

made = partial(curves, every=2)


def shape():
    return Claim(id="x", paper="p", artefact="fig1", statement="It holds.", kind="shape")


def fall(*curves):
    """How the rounds of one seed a K fall with K, as a shape."""
    return judge(shape(), rounds_fall_with_k(dict(enumerate(curves)))).verdict


def test_rounds_that_a_run_does_not_reach_are_bounds():
    """Planted: a seed that never gets there was counted as twice the run."""
    fast, slow = made([8, 2, 1, 1], [8, 2, 1, 1]), made([8, 6, 4, 1], [8, 6, 4, 1])
    half, lost = made([8, 2, 1, 1], [8, 8, 8, 8]), made([8, 8, 8, 8], [8, 8, 8, 8])
    assert fall(slow, fast) == "holds"
    assert fall(fast, slow) == "fails"
    assert fall(half, fast) == "holds"  # 6 rounds at least, and 2
    assert fall(slow, half) == "inconclusive"  # 6 rounds, and 4 at least
    assert fall(fast, lost) == "fails"


# --- The list of claims --------------------------------------------------------------------------


def test_remark2_bias_by_hand():
    """kappa = 1, K = 1 and 2, alpha = 1/11: the numbers of g_1's formula worked out apart from the code."""
    from replifed.papers.fedht.theory import bias_factor

    tau = 4 * 121 + 1  # alpha = 2 / sqrt(tau - 1) = 1/11
    for K in (2, 3):
        q = (11 / 12) ** K
        assert bias_factor(1.0, tau, 1, K) == pytest.approx(
            (12 / 11) * (1 - q) / (1 - 12 / 11 * q), rel=1e-12
        )
    assert bias_factor(1.0, tau, 1, 2) > bias_factor(1.0, tau, 1, 3)


# --- Claims on curves whose answers are known -----------------------------------------------------


RATES = {"fediterht": 0.05, "fedht": 0.03, "distributed_iht": 0.01, "fedavg": 0.06}


@cache
def curve_frame(
    method, rate, *, level, reading, K, batch="50", seeds=(1, 2, 3), rounds=200, tuned=True, diverged=()
):
    """Objective exp(-rate t), a little different by seed; seeds in `diverged` blow up at round 10."""
    frames = []
    for seed in seeds:
        t = np.arange(rounds + 1)
        f = np.exp(-rate * (1 + 0.01 * seed) * t) + 0.001
        lost = (t >= 10) & (seed in diverged)
        frames.append(
            pd.DataFrame(
                {
                    "method": method,
                    "level": level,
                    "reading": reading,
                    "local_steps": K,
                    "batch": batch,
                    "step": 0.1,
                    "tuned": tuned,
                    "replicate": seed,
                    "round": t,
                    "objective": np.where(lost, np.inf, f),
                    "nonzeros": np.where(lost, np.inf, 20.0),
                    "recovered": np.where(lost, np.inf, 0.5 + 5 * rate),
                    "bits_up": 100.0 * t,
                    "bits_down": 50.0 * t,
                    "iterations": K * t,
                    "diverged": lost,
                    "chaotic": False,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


class KnownRuns(AllThere):
    """Every run of the paper; by default the rates agree with what it claims."""

    def __init__(self, rates=None, diverged=None, **more):
        super().__init__(**more)
        self.rates, self.diverged = {**RATES, **(rates or {})}, diverged or {}
        self.run = cache(self.make)

    def make(self, experiment, method):
        rate, lost = self.rates[method], self.diverged.get(method, ())
        K_values = (1,) if method == "distributed_iht" else (3, 10)
        levels = (
            {"0.1,0.1": 1.0, "0.5,0.5": 0.8, "1.0,1.0": 0.6} if experiment.startswith("sim") else {"": 1.0}
        )
        frames = []
        for reading in ("own", "common", "equal", "printed", "theory"):
            for name, slowdown in levels.items():
                for K in K_values if name == "0.1,0.1" else K_values[-1:]:
                    # FedIterHT gains more from K than FedHT.
                    gain = 1.0 if K != 3 else {"fediterht": 0.3, "fedht": 0.6}.get(method, 1.0)
                    settings = {"level": name, "reading": reading, "K": K, "tuned": K_values[-1] == K}
                    frames.append(curve_frame(method, rate * slowdown * gain, **settings, diverged=lost))
            if "0.1,0.1" in levels:
                settings = {"level": "0.1,0.1", "reading": reading, "K": K_values[-1], "seeds": (1,)}
                frames.append(curve_frame(method, rate, **settings, batch="full"))
        found = pd.concat(frames, ignore_index=True)
        # Each method has a support of its own.
        word = float(2 ** list(RATES).index(method))
        names = [f"support.00000{end}" for end in ("", ".of_start", ".of_step")]
        return found.assign(**dict.fromkeys(names, word)) if experiment.startswith("mnist") else found


def verdicts_of(inputs, part, ending=""):
    """Verdicts of claims whose ids have this part, and this at the beginning of their last one."""
    chosen = [one for one in CLAIMS if part in one.id and "rates." not in one.id and "tuning" not in one.id]
    chosen = [one for one in chosen if one.id.rpartition(".")[2].startswith(ending)]
    told = [replace(one, fewest=1) for one in chosen if not one.needs[0].startswith("partition")]
    return measure(told, inputs, "paper").set_index("id")


def test_speedup_of_known_curves():
    found = verdicts_of(KnownRuns(), "fig3.simulation1", "own")
    # exp(-0.05 t) reaches exp(-0.01 * 100) at t = 20, five times sooner, whatever the seed.
    assert found.loc["fedht.fig3.simulation1.speedup.own", "measured"] == pytest.approx(5, abs=0.3)
    assert found.loc["fedht.fig3.simulation1.rounds.own", "measured"] == pytest.approx(20, abs=1.1)
    assert found.loc["fedht.fig3.simulation1.speedup.own", "verdict"] == "holds"
    # Three seeds differ by less than 1 %; the full batch ran on one seed and has no interval.
    assert found.loc["fedht.fig3.simulation1.speedup.own-full-batch", "verdict"] == "inconclusive"
    assert found.loc["fedht.fig3.simulation1.speedup.own-full-batch", "measured"] == pytest.approx(5, abs=0.3)
    assert found.loc["fedht.fig3.simulation1.fedht.fewer.own", "verdict"] == "holds"
    assert found.loc["fedht.fig3.simulation1.bits.own", "verdict"] == "holds"


def test_speedup_that_never_comes():
    found = verdicts_of(KnownRuns({"fediterht": 0.002}), "fig3.simulation1", "own")
    speedup = found.loc["fedht.fig3.simulation1.speedup.own"]
    assert speedup["verdict"] == "fails"
    assert speedup["measured"] == pytest.approx(0.5)  # 100 rounds against at least 200
    assert "3 of 3 values are only bounds" in speedup["note"]
    assert found.loc["fedht.fig3.simulation1.lower.own", "verdict"] == "fails"
    assert found.loc["fedht.fig3.simulation1.fediterht.fewer.own", "verdict"] == "fails"


def test_speedup_against_a_baseline_that_diverged():
    found = verdicts_of(KnownRuns(diverged={"distributed_iht": (1, 2, 3)}), "fig3.simulation1", "own")
    assert found.loc["fedht.fig3.simulation1.speedup.own", "verdict"] == "unchecked"
    assert "diverged on all seeds" in found.loc["fedht.fig3.simulation1.speedup.own", "reason"]
    found = verdicts_of(KnownRuns(diverged={"distributed_iht": (1,)}), "fig3.simulation1", "own")
    assert found.loc["fedht.fig3.simulation1.speedup.own", "seeds"] == 2
    # What the lost seed would have needed is known to be at least so much, and more than the others needed.
    fewer_own = found.loc["fedht.fig3.simulation1.fediterht.fewer.own"]
    assert fewer_own["verdict_single"] == "holds"
    assert "1 of 3 values are only bounds" in fewer_own["note"]
    assert "diverged seeds: 0 and 1 of 3" in fewer_own["note"]


def test_figures_1_and_2_on_known_curves():
    held = verdicts_of(KnownRuns(), "fig1.")
    assert set(held["verdict"]) == {"holds"}
    assert set(verdicts_of(KnownRuns(), "fig2.")["verdict"]) == {"holds"}
    swapped = KnownRuns()
    run = swapped.run

    def harder_is_faster(experiment, method):
        frame = run(experiment, method)
        return frame.assign(level=frame["level"].replace({"0.1,0.1": "1.0,1.0", "1.0,1.0": "0.1,0.1"}))

    swapped.run = cache(harder_is_faster)
    assert set(verdicts_of(swapped, "fig2.simulation1")["verdict"]) == {"fails"}


def test_figure_6_on_known_curves():
    found = verdicts_of(KnownRuns({"fedht": 0.02}, kind="original"), "fig6.")["verdict"]
    assert set(found[found.index.str.contains("fewer")]) == {"holds"}
    assert set(found[found.index.str.contains("apart")]) == {"holds"}
    found = verdicts_of(KnownRuns({"fediterht": 0.001}, kind="original"), "fig6.mnist.lowest")["verdict"]
    assert set(found) == {"fails"}


def test_solutions_are_apart_if_supports_differ_by_more_than_from_split_to_split():
    def ends(*bits, moved=0):
        """Supports of three seeds, which have so many of the bits elsewhere on each."""
        last = np.zeros((3, 40), bool)
        for seed in range(3):
            last[seed, [bit + 10 * (seed + 1) * (place < moved) for place, bit in enumerate(bits)]] = True
        return measures.Ends(np.arange(3), last, np.zeros(3), False)

    near, same, far = ends(0, 1, 2, 3), ends(0, 1, 2, 4), ends(5, 6, 7, 8)
    names = ("fediterht", "fedht", "distributed_iht")
    found = measures.end_apart(names, near, far, same)
    assert found.values.tolist() == [0.25] * 3
    assert "FedIterHT and Distributed-IHT are nearest" in found.note
    # Planted: one method alone ends elsewhere on every split, so that its distance to another tells nothing.
    moving = measures.end_apart(names, near, far, ends(0, 1, 2, 4, moved=4))
    np.testing.assert_allclose(moving.values, 0.0)
    with pytest.raises(NotMeasurableError, match="no two seeds"):
        measures.end_apart(names, *(one.take(np.array([0])) for one in (near, far, same)))


def test_last_supports_are_those_of_the_end_of_seeds_that_did_not_diverge():
    lines = pd.DataFrame(
        {
            "replicate": [2, 2, 2, 1, 1, 1, 3, 3, 3],
            "round": [0, 8, 10] * 3,
            "support.00000": [0, 0b0011, 0b0011, 0, 0b0110, 0b0101, 0, np.inf, np.inf],
            "support.00000.of_start": np.inf,
            "chaotic": False,
        }
    )
    found = measures.last_supports(lines)
    assert found.seeds.tolist() == [1, 2]
    assert found.last[:, :4].tolist() == [[True, False, True, False], [True, True, False, False]]
    assert found.late_change.tolist() == [0.5, 0.0]


def test_what_is_recovered_is_compared_at_the_end_and_nothing_is_of_a_diverged_run():
    found = verdicts_of(KnownRuns(diverged={"fedht": (1,)}), "fig3.simulation1", "own")
    assert found.loc["fedht.fig3.simulation1.support.further.own", "verdict_single"] == "inconclusive"
    assert "at the end: 0.75 and 0.433" in found.loc["fedht.fig3.simulation1.support.further.own", "note"]
    assert found.loc["fedht.fig3.simulation1.fediterht.support.own", "verdict"] == "holds"
    found = verdicts_of(KnownRuns({"fediterht": 0.05, "fedht": -0.08}), "fig3.simulation1", "own")
    assert found.loc["fedht.fig3.simulation1.support.further.own", "verdict"] == "holds"
    assert found.loc["fedht.fig3.simulation1.fedht.support.own", "verdict"] == "fails"


@pytest.mark.parametrize(
    "part, method",
    [("fig1.", "fedht"), ("fig2.", "fediterht"), ("fig3.simulation1.", "fediterht"), ("fig6.", "fediterht")],
)
def test_what_hangs_on_rounding_has_no_order(part, method):
    """Planted: one seed of one method is chaotic. No claim that looks at it may be told."""
    calm, shaken = KnownRuns(kind="original"), KnownRuns(kind="original")
    run = shaken.run

    def shaky(experiment, name):
        frame = run(experiment, name)
        return frame.assign(chaotic=(frame["replicate"] == 1) & (name == method))

    shaken.run = cache(shaky)
    before, after = verdicts_of(calm, part, "own"), verdicts_of(shaken, part)
    concerned = [
        one.id for one in CLAIMS if one.id in after.index and any(n.endswith(f"/{method}") for n in one.needs)
    ]
    told = after.loc[concerned, "verdict"]
    told = told[told != "unchecked"]  # of K that were not run
    assert len(told) >= 4
    assert set(told) == {"inconclusive"}
    assert (after["reason"] + after["note"])[told.index].str.contains("rounding").all()
    assert set(before.loc[before.index.intersection(told.index), "verdict"]) - {"inconclusive"}


@pytest.mark.parametrize("rate, told", [(0.001, "holds"), (1.0, "inconclusive")])
def test_a_shape_that_twins_show_too_does_not_hang_on_rounding(rate, told):
    """Planted: chaotic runs whose twins show the same, or another, order of K."""

    class Perturbed(KnownRuns):
        def make(self, experiment, method):
            frame = super().make(experiment, method).assign(chaotic=False)
            if method != "fedht":
                return frame
            odd = frame["local_steps"] == 3
            other = np.exp(-rate * frame["round"]).where(odd)
            return frame.assign(
                chaotic=odd,
                **{"objective.of_start": frame["objective"].where(odd), "objective.of_step": other},
            )

        of_perturbed, with_perturbed, _changed = Kept.of_perturbed, Kept.with_perturbed, Kept._changed
        _files, _settings, _paper = {}, {}, "fedht"

    found = verdicts_of(Perturbed(kind="original"), "fig1.simulation1.fedht.monotone.own")
    assert found["verdict"].tolist() == [told]
    assert (found["reason"] + found["note"]).str.contains("rounding").all()


def test_runs_with_twins_are_taken_and_other_curves_of_their_repetition_are_not():
    """Planted: at a short step one repetition has twins, which must not cost the others theirs elsewhere."""
    own = pd.DataFrame({"reading": "own", "replicate": [1, 2], "objective": [1.0, 2.0]})
    own["objective.of_start"], own["objective.of_step"], own["chaotic"] = [1.1, 2.1], [1.2, np.inf], True
    short = own.assign(reading="common")
    short.loc[1, ["objective.of_start", "objective.of_step"]] = np.nan

    class Stored(Kept):
        def __init__(self, *_):
            super().__init__({}, {}, "fedht")
            self.run = lambda *_: pd.concat([own, short], ignore_index=True)

    kept, started, _ = (inputs.run() for inputs in Stored().with_perturbed())
    assert kept["reading"].tolist() == ["own", "own", "common"]
    assert kept["replicate"].tolist() == [1, 2, 1]
    assert started["objective"].tolist() == [1.1, 2.1, 1.1]


RISING = [8, 9, np.inf, np.inf, np.inf]


@pytest.mark.parametrize(
    ("one", "other", "value", "bound"),
    [
        ([8, 2, 1, 1, 1], [8, 6, 4, 2, 2], 4, 0),
        ([8, 6, 4, 2, 2], [8, 2, 1, 1, 1], -4, 0),
        # The diverged one never gets there: its rounds are a bound, on the side of the one that it is.
        ([8, 4, 2, 1, 1], RISING, 2, 1),
        (RISING, [8, 4, 2, 1, 1], None, -1),
        (RISING, RISING, 0, 0),
        # A curve that ends where it began or above has reached nothing that could be a target.
        ([8, 6, 9, 9, 9], [8, 6, 3, 2, 2], -2, -1),
        # Planted: it is there first, leaves, and comes back with the other.
        ([8, 1, 5, 3, 3], [8, 6, 4, 3, 3], 0, 0),
    ],
)
def test_fewer_counts_rounds_to_the_level_that_both_reach_and_stay_at(one, other, value, bound):
    found = fewer(made(one), made(other))
    assert value is None or found.values[0] == value
    assert found.bounds[0] == bound
