"""Histories -> summaries -> CSV -> pictures: numbers, divergence, and equal bytes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from replifed.algorithms.fedht import FedHT
from replifed.algorithms.fediterht import FedIterHT
from replifed.engine.simulate import nonzeros, objective, simulate
from replifed.figures.artefact import explain_where_free
from replifed.figures.curves import note, plot_curves, visible_range
from replifed.figures.style import Line, banner, canvas, save
from replifed.figures.summaries import on_log_scale, summarise
from replifed.intervals import mean_interval
from replifed.papers.fedht.figures import FIGURES
from replifed.papers.fedht.figures.objectives import local_steps_lines
from replifed.papers.fedht.paper import LINES
from replifed.papers.fedht.settings import Simulation
from replifed.papers.fedht.simulations import simulation
from replifed.randomness import Streams

SETTINGS = {"seed": 1, "loss": "least_squares", "clients": 4, "samples": 12, "features": 30, "planted": 4}
SEEDS = (1, 2, 3)


def real_history(kind, gamma, **labels):
    """A history of a small problem, made by the real simulator."""
    frames = []
    for seed in SEEDS:
        problem = simulation(Simulation.of_job(SETTINGS), (0.1, 0.1), seed)
        algorithm = kind(step=np.array([gamma]), sparsity=6, local_steps=3, batch=5)
        metrics = {"objective": objective, "nonzeros": nonzeros}
        history = simulate(algorithm, problem, Streams(1, (seed,)), 12, metrics=metrics)
        frames.append(history.frame(replicate=seed, chaotic=False, **labels))
    return pd.concat(frames, ignore_index=True)


@pytest.fixture(scope="module")
def histories():
    labels = {"level": "0.1,0.1", "reading": "own", "local_steps": 3, "step": 0.01}
    return {
        "holds": real_history(FedHT, 0.001, method="fedht", **labels),
        "diverges": real_history(FedIterHT, 0.2, method="fediterht", **labels),
    }


# --- Summaries -----------------------------------------------------------------------------------


def test_summary_is_mean_and_interval(histories):
    history = histories["holds"]
    found = summarise(history, ["method", "local_steps"])
    assert len(found) == 13
    at = history[history["round"] == 7]
    mean, low, high = mean_interval(at["objective"])
    row = found[found["round"] == 7].iloc[0]
    assert (row["mean"], row["low"], row["high"]) == pytest.approx((mean, low, high))
    assert (row["iterations"], row["seeds"], row["alive"], row["diverged"]) == (21, 3, 3, 0)
    assert row["bits"] == (at["bits_up"] + at["bits_down"]).iloc[0]
    assert (row["method"], row["local_steps"]) == ("fedht", 3)


def test_one_seed_has_no_band(histories):
    history = histories["holds"]
    found = summarise(history[history["replicate"] == 1], ["method"])
    assert (found["low"] == found["mean"]).all()
    assert (found["high"] == found["mean"]).all()


def test_a_curve_that_diverges_ends(histories):
    found = summarise(histories["diverges"], ["method"])
    assert 3 <= len(found) < 13
    assert found["diverged"].eq(3).all()
    assert np.isfinite(found.select_dtypes("number").to_numpy()).all()


def test_lost_seeds_stay_out_of_the_mean(histories):
    lost = histories["diverges"].assign(method="fedht")
    held = histories["holds"]
    mixed = pd.concat([held[held["replicate"] < 3], lost[lost["replicate"] == 3]], ignore_index=True)
    found, expected = summarise(mixed, ["method"]), summarise(held[held["replicate"] < 3], ["method"])
    np.testing.assert_allclose(found["mean"], expected["mean"])
    assert found["seeds"].eq(3).all()
    assert found["diverged"].eq(1).all()
    assert found["alive"].iloc[0] == 3
    assert found["alive"].iloc[-1] == 2


def test_a_run_that_ends_early_stays_where_it_ended():
    """Gaps of three seeds: one goes on, one has converged, one diverges."""
    runs = [[1, 1e-2, 1e-4], [1, 1e-6], [1, np.inf, np.inf]]
    history = pd.concat(
        pd.DataFrame({"replicate": seed, "round": range(len(gaps)), "gap": gaps})
        for seed, gaps in enumerate(runs)
    ).assign(method="qshed", diverged=False, bits_up=1.0, bits_down=0.0)
    found = summarise(history, ["method"], "gap", centre="median", band="range", axes=("bits",))
    assert found["median"].tolist() == pytest.approx([1, (1e-2 + 1e-6) / 2, (1e-4 + 1e-6) / 2])
    assert found["low"].tolist() == [1, 1e-6, 1e-6]
    assert set(found["diverged"]) == {1}


def test_geometric_means_and_bands_of_logarithms():
    errors = [1e-2, 1e-4, 0.0]
    history = pd.DataFrame({"replicate": [1, 2, 3], "round": 0, "error": errors, "method": "a"})
    history = history.assign(diverged=False)

    def ends(band, values):
        kept = history[history["error"].isin(values)]
        found = summarise(kept, ["method"], "error", centre="geometric", band=band, axes=())
        return found.loc[0, ["mean", "low", "high"]].tolist()

    assert ends("range", errors) == pytest.approx([10 ** (-23 / 3), 1e-17, 1e-2])
    half = np.sqrt(2)  # the deviation of -2 and -4
    assert ends("sd", errors[:2]) == pytest.approx([1e-3, 10 ** (-3 - half), 10 ** (-3 + half)])


def test_bands_on_a_logarithmic_axis_are_above_zero():
    frame = pd.DataFrame({"mean": [1.0, 1.0, 0.0], "low": [0.9, -4.0, 0.0], "high": [1.1, 6.0, 0.0]})
    found = on_log_scale(frame)
    np.testing.assert_allclose(found["high"], [np.exp(0.1), np.exp(5), 0.0])
    np.testing.assert_allclose(found["low"], [np.exp(-0.1), np.exp(-5), 0.0])


# --- Pictures ------------------------------------------------------------------------------------


def drawn(frame, lines=None, **more):
    made, axes = canvas(1, 1)
    plot_curves(axes[0][0], frame, "method", lines or LINES, **more)
    return made, axes[0][0]


def test_divergence_is_marked(histories):
    frame = pd.concat([summarise(history, ["method"]) for history in histories.values()])
    made, ax = drawn(frame)
    crosses = [line for line in ax.lines if line.get_marker() == "X"]
    assert len(crosses) == 1
    last = summarise(histories["diverges"], ["method"])["round"].iloc[-1]
    assert crosses[0].get_xdata().max() == last
    _, top = ax.get_ylim()
    assert (crosses[0].get_ydata() <= top).all()
    assert "FedIterHT: 3 of 3 seeds diverged" in ax.texts[0].get_text()
    for line in ax.lines:
        assert np.isfinite(line.get_xydata()).all()
    made.canvas.draw()


def test_remarks_lie_between_the_panel_and_its_title(histories):
    made, ax = drawn(pd.concat([summarise(history, ["method"]) for history in histories.values()]))
    ax.set_title("panel", loc="left")
    note(ax, "a second remark")
    made.canvas.draw()
    [remarks] = [text for text in ax.texts if "diverged" in text.get_text()]
    box, title = (text.get_window_extent() for text in (remarks, ax._left_title))
    assert ax.get_window_extent().y1 <= box.y0 < box.y1 <= title.y0 + 1
    assert remarks.get_text().splitlines()[-1] == "a second remark"


@pytest.mark.parametrize(
    ("curves", "panel", "corner"),
    [
        ([[(x % 2, x / 20) for x in range(21)], []], 1, None),  # the first panel is full, the second empty
        ([[(0, 1), (1, 0)]], 0, (1, 1)),  # above what falls
        ([[(0, 0), (1, 1)]], 0, (0, 1)),
        ([[(0, 0), (0, 1), (1, 1)]], 0, (1, 0)),
    ],
)
def test_a_box_stands_where_curves_leave_space(curves, panel, corner):
    made, [axes] = canvas(1, len(curves))
    for ax, points in zip(axes, curves, strict=True):
        ax.plot(*np.reshape(points, (-1, 2)).T)
        ax.set(xlim=(0, 1), ylim=(0, 1))
    explain_where_free(axes, [Line(text, "black", "-", "") for text in ("K = 3", "K = 10, a step")])
    made.canvas.draw()
    assert [ax.get_legend() is not None for ax in axes].index(True) == panel
    if corner is not None:
        box = axes[panel].get_legend().get_window_extent()
        centre = axes[panel].transAxes.inverted().transform(((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2))
        assert ((centre > 0.5) == corner).all()


def test_the_blow_up_does_not_squeeze_the_others(histories):
    frame = pd.concat([summarise(history, ["method"]) for history in histories.values()])
    held = frame[frame["method"] == "fedht"]["mean"]
    low, high = visible_range(frame, "method")
    assert low <= held.min()
    assert high <= 1.2 * held.max()


def test_axis_is_logarithmic_for_wide_ranges(histories):
    frame = summarise(histories["holds"], ["method"])
    wide = frame.assign(mean=10.0 ** -frame["round"].to_numpy(float))
    wide = wide.assign(low=wide["mean"], high=wide["mean"])
    assert drawn(wide)[1].get_yscale() == "log"
    assert drawn(frame.assign(mean=frame["mean"] * 0 + 2))[1].get_yscale() == "linear"
    # Zero at the end of a range cannot stand on a logarithmic axis.
    assert drawn(wide.assign(mean=wide["mean"].where(wide["round"] < 12, 0.0)))[1].get_yscale() == "linear"


def test_iterations_on_a_logarithmic_axis_leave_out_zero(histories):
    _, ax = drawn(summarise(histories["holds"], ["method"]), x="iterations", log_x=True)
    assert ax.lines[0].get_xdata()[0] == 3


def test_lines_are_fixed_and_told_apart():
    assert local_steps_lines([10, 3])[10] == local_steps_lines([3, 5, 8, 10])[10]
    for lines in (LINES, local_steps_lines([2, 3, 5, 8, 10, 20])):
        assert len({line.color for line in lines.values()}) == len(lines)
        assert len({str(line.dashes) for line in lines.values()}) == len(lines)


def test_stamp_only_where_there_is_something_to_say():
    def texts(data, scale):
        made, _ = canvas(1, 2)
        banner(made, data, scale)
        return [text.get_text() for text in made.texts]

    assert texts("", "paper") == []
    assert "SMALL" in texts("", "small")[0]
    assert "NOT THE PAPER'S DATA" in texts("mnist: surrogate", "paper")[0]
    # However long, it stays inside the figure.
    made, _ = canvas(1, 1)
    banner(made, "; ".join(["e2006: surrogate with the same sizes"] * 4), "tiny")
    box = made.texts[0].get_window_extent(made.canvas.get_renderer())
    assert box.x1 <= made.bbox.x1


@pytest.mark.parametrize("suffix", ["png", "pdf"])
def test_bytes_are_the_same_every_time(histories, tmp_path, suffix):
    frame = pd.concat([summarise(history, ["method"]) for history in histories.values()])
    for name in ("a", "b"):
        made, _ = drawn(frame)
        banner(made, "", "small")
        save(made, tmp_path / f"{name}.{suffix}")
    content = (tmp_path / f"a.{suffix}").read_bytes()
    assert content == (tmp_path / f"b.{suffix}").read_bytes()
    assert b"CreationDate" not in content
    assert b"Software" not in content


def test_a_users_own_settings_change_nothing(histories, tmp_path):
    import matplotlib

    frame = summarise(histories["holds"], ["method"]).assign(experiment="simulation1", level="0.1,0.1")
    frame = frame.assign(panel="p", reading="own", local_steps=3, step=0.1, kind="synthetic", chaotic=0)
    save(FIGURES["fig1"].show(frame), tmp_path / "a.png")
    with matplotlib.rc_context(
        {"font.size": 30, "axes.grid": False, "lines.linewidth": 9, "axes.titlesize": 40}
    ):
        save(FIGURES["fig1"].show(frame), tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


# --- This paper's figures, through their CSV ---------------------------------------------------------
