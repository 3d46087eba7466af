"""Who needs less: pairs of methods against histories made by hand."""

import numpy as np
import pandas as pd
import pytest

from replifed.claims.pairs import COLUMNS, matrix, pairs, profile, used_until
from replifed.intervals import mean_interval

TARGETS = (1e-1, 1e-2)
SEEDS = 20


def history(rounds_to, seeds=SEEDS, bits=100.0, end=50, spread=1e-3):
    """Gap 1 until the round at which a seed gets to 1e-3; None: never. `bits` a round.

    Gaps of seeds differ by the share `spread`, as no two runs are equal that draw something.
    """
    frames = []
    for seed in range(seeds):
        first = rounds_to(seed)
        t = np.arange(end + 1)
        gap = np.where(t >= (end + 1 if first is None else first), 1e-3, 1.0) * (1 + spread * seed)
        frames.append(pd.DataFrame({"replicate": seed, "round": t, "gap": gap}))
    frame = pd.concat(frames, ignore_index=True)
    frame = frame.assign(bits_up=bits * frame["round"], bits_down=0.0, sample_gradients=frame["round"])
    return frame.assign(message_bits=50.0, samples=2.0)


def verdicts(frame, target=1e-2):
    chosen = frame[frame["target"] == target]
    return dict(zip(chosen["used"], chosen["verdict"], strict=True))


def test_who_needs_fewer_rounds_may_need_more_bits():
    quick = history(lambda seed: 5 + seed % 3, bits=1000.0)
    slow = history(lambda seed: 10 + seed % 4)
    frame = pairs("a", {"quick": quick, "slow": slow}, TARGETS)
    assert tuple(frame.columns) == (*COLUMNS, "verdict")
    assert verdicts(frame) == {"round": "fewer", "bits": "more", "sample_gradients": "fewer"}
    expected = np.mean([np.log10((5 + seed % 3) / (10 + seed % 4)) for seed in range(SEEDS)])
    row = frame[(frame["used"] == "round") & (frame["target"] == 1e-2)].iloc[0]
    assert row["difference"] == pytest.approx(expected)
    # Either may have been there up to a round earlier.
    logs = np.log10([[5 + seed % 3, 10 + seed % 4, 4 + seed % 3, 9 + seed % 4] for seed in range(SEEDS)]).T
    _, low, high = mean_interval(logs[0] - logs[1])
    assert row["ci_low"] == pytest.approx(low - (logs[0] - logs[2]).mean())
    assert row["ci_high"] == pytest.approx(high + (logs[1] - logs[3]).mean())
    assert (row["first"], row["second"], row["problem"]) == ("quick", "slow", "a")


def test_the_other_way_round_the_verdict_turns():
    one, other = history(lambda seed: 5 + seed % 3), history(lambda seed: 10 + seed % 4)
    assert set(verdicts(pairs("a", {"one": one, "other": other}, TARGETS)).values()) == {"fewer"}
    assert set(verdicts(pairs("a", {"other": other, "one": one}, TARGETS)).values()) == {"more"}


def test_one_that_never_gets_there_is_a_bound():
    """Its truth lies beyond its end, by an unknown distance."""
    there, never = history(lambda seed: 5 + seed % 3), history(lambda seed: None)
    frame = pairs("a", {"there": there, "never": never}, TARGETS)
    assert set(verdicts(frame).values()) == {"fewer"}
    assert (frame["ci_low"] == -np.inf).all() and (frame["ci_high"] < 0).all()
    assert frame["p"].to_numpy() == pytest.approx(2 * 0.5**SEEDS)


def test_what_a_bound_leaves_open_is_not_told():
    never = history(lambda seed: None)
    # It gets there, but with more bits than the other had used at its end.
    dear = history(lambda seed: 20, bits=1000.0)
    frame = pairs("a", {"dear": dear, "never": never}, TARGETS)
    assert verdicts(frame) == {"round": "fewer", "bits": "neither", "sample_gradients": "fewer"}
    # On one seed of twenty it gets there with as many rounds as the other has.
    late, short = history(lambda seed: 5 if seed else 30), history(lambda seed: None, end=30)
    for first, second in ((late, short), (short, late)):
        assert set(pairs("a", {"first": first, "second": second}, TARGETS)["p"]) == {1.0}
    # Neither gets there on one seed of twenty.
    one, other = (history(lambda seed, at=at: at if seed else None) for at in (5, 20))
    frame = pairs("a", {"one": one, "other": other}, TARGETS)
    assert set(frame["verdict"]) == {"neither"} and (frame["p"] == 1).all()
    # Never does either.
    frame = pairs("a", {"one": never, "other": never}, TARGETS)
    assert set(frame["verdict"]) == {"neither"}
    assert np.isinf(frame[["ci_low", "ci_high"]]).all(axis=None)


def test_copies_of_a_run_are_one_run():
    """Up to rounding; a seed that repeats another one in both methods does not count."""
    one, other = (history(lambda seed, at=at: at, spread=1e-8) for at in (5, 20))
    frame = pairs("a", {"one": one, "other": other}, TARGETS)
    assert set(frame["verdict"]) == {"one run"}
    assert (set(frame["runs"]), set(frame["seeds"])) == ({1}, {SEEDS})
    assert frame[["p", "p_holm", "ci_low", "ci_high"]].isna().all(axis=None)
    [table] = matrix(frame[frame["target"] == 1e-2], {}).values()
    assert table.to_numpy().tolist() == [["1 one", "", "111"], ["2 other", "111", ""]]
    three = history(lambda seed: 5 + seed % 3, spread=0)
    assert set(pairs("a", {"one": three, "other": other}, TARGETS)["runs"]) == {3}
    assert set(pairs("a", {"one": three, "other": history(lambda seed: 9)}, TARGETS)["runs"]) == {SEEDS}


def test_equal_methods_and_single_seeds_are_not_told():
    one = history(lambda seed: 5 + seed)
    assert set(pairs("a", {"one": one, "other": one}, TARGETS)["verdict"]) == {"neither"}
    first, second = (history(lambda seed, at=at: at, seeds=1) for at in (5, 20))
    assert set(pairs("a", {"one": first, "other": second}, TARGETS)["verdict"]) == {"neither"}


def test_a_pair_is_corrected_for_all_pairs_and_targets_of_its_use():
    reached = np.random.default_rng(2).integers(10, 30, (12, SEEDS))
    many = {f"m{k}": history(lambda seed, at=at: at[seed]) for k, at in enumerate(reached)}
    frame = pairs("a", many, TARGETS)
    one = frame[frame["used"] == "bits"]
    assert len(one) == 2 * 66
    smallest = one["p"].min()
    assert smallest < 0.05  # of 132 that do not differ some do by chance
    assert one["p_holm"].min() == pytest.approx(min(132 * smallest, 1.0))
    assert (frame["verdict"] == "neither").all()


def test_the_matrix_reads_from_both_sides():
    quick = history(lambda seed: 5 + seed % 3, bits=1000.0)
    slow = history(lambda seed: 10 + seed % 4)
    table = matrix(pairs("a", {"quick": quick, "slow": slow}, [1e-2]), {"quick": "Quick"})["a, gap 0.01"]
    assert table.to_numpy().tolist() == [["1 Quick", "", "<><"], ["2 slow", "><>", ""]]


def test_uses_are_those_from_when_on_the_gap_stays_at_the_target():
    back = history(lambda seed: 7)
    back.loc[back["round"] == 9, "gap"] = 1.0
    assert set(used_until(back, [1e-2])[1e-2, "round"].values) == {10}
    assert set(used_until(back, [1e-2], touch=True)[1e-2, "round"].values) == {7}
    late = history(lambda seed: 7 if seed else None, seeds=2)
    found = used_until(late, [1e-2])
    assert found[1e-2, "bits"].values.tolist() == [5000.0, 700.0]
    assert found[1e-2, "bits"].bounds.tolist() == [1, 0]
    assert found[1e-2, "bits"].below.tolist() == [100.0, 100.0]


def test_a_profile_is_the_share_of_targets_reached():
    half = history(lambda seed: 10 if seed % 2 else None, seeds=4)
    full = history(lambda seed: 5, seeds=4)
    frame = profile(
        {"half": {"a": half, "b": full}, "full": {"a": full}}, [1e-1, 1e-2, 1e-5], {"bits": "message_bits"}
    )
    ends = frame[frame["used"] == "bits"].groupby("method").last()
    assert ends["at"].tolist() == pytest.approx([20.0, 20.0])  # 10 rounds of 100 bits, in messages of 50
    assert ends["mean"].to_dict() == pytest.approx({"full": 2 / 3, "half": (2 / 3 + 1 / 3) / 2})
    begin = frame[frame["used"] == "round"].groupby("method").first()
    assert begin["at"].tolist() == [5.0, 5.0]
    assert begin["mean"].to_dict() == pytest.approx({"full": 2 / 3, "half": 1 / 3})
    never = profile({"never": {"a": history(lambda seed: None)}}, TARGETS, {})
    assert never["mean"].tolist() == [0.0] * never["used"].nunique()
    copies = profile({"copies": {"a": history(lambda seed: 5, spread=1e-8)}}, TARGETS, {})
    assert (copies[["low", "high"]].to_numpy() == copies[["mean"]].to_numpy()).all()  # one run
