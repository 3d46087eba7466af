"""What claims measure, beyond what `replifed.claims.curves` has."""

from itertools import combinations, product
from types import SimpleNamespace

import numpy as np

from replifed.claims.claim import Measured
from replifed.claims.quantities import quantity
from replifed.claims.samples import Sample
from replifed.network.participation import shares

from . import example
from .figures import THEOREMS, bound_of, published, rounds_to_level
from .methods import AuthorsDevices, law


@quantity
def cases(*samples):
    """What holds of several curves, a case each."""
    return Measured(np.concatenate([one.values for one in samples]).astype(bool), seeds=1)


@quantity
def is_stored(rule, history):
    """True of each stored number that the history has to 1e-11."""
    theirs = published("theorem4").query("step_rule == @rule")
    ours = theirs.merge(history, on=["local_steps", "round"], suffixes=("", "_here"))
    off = abs(np.concatenate([ours["loss"] - ours["loss_here"], ours["err"] - ours["distance"]]))
    text = f"{len(off)} numbers of {ours['local_steps'].nunique()} curves; largest deviation {off.max():.1e}"
    return Measured(off <= 1e-11, seeds=1, note=text)


@quantity
def is_descent(history):
    """True of each round at which E = 1 has the distance of gradient descent, stepped here."""
    w, same = np.zeros(example.DIM), []
    for ours in history[history["local_steps"] == 1].sort_values("round")["distance"]:
        same.append(abs(example.distance(w[None])[0] - ours) <= 1e-12)
        w = w - 0.4 * (example.MEAN_H @ w - example.MEAN_B)
    return Measured(np.array(same), seeds=1)


def is_law():
    """True of each E and step at which the fixed point's distance is law |w*| (E - 1) eta, to 5 %."""

    def ratio(E, eta):
        return example.plateau(E, eta) / (example.R * (E - 1) * eta * example.law())

    far = ", ".join(f"{ratio(E, 0.4):.2f} (E = {E})" for E in (5, 10, 50, 100))
    text = f"the constant is {example.law():.5f}; at a step of .4 the distance is this times {far}"
    ratios = [ratio(*one) for one in product((2, 5, 10, 50, 100), (0.004, 0.0004))]
    return Measured(abs(np.array(ratios) - 1) <= 0.05, seeds=1, note=text)


@quantity
def falls(curve):
    """True of each curve that falls by a third or more in its second half."""
    return curve.sample(curve.values[:, -1] <= curve.values[:, len(curve.rounds) // 2] * (2 / 3))


@quantity
def is_bounded(history, scheme):
    """True of each recorded round whose mean gap is at most the theorem's bound."""
    gaps = history[history["scheme"] == scheme].groupby("round")["objective"].mean().drop(0)
    bounds = np.array([bound_of(scheme, r) for r in gaps.index])
    text = f"at the end the gap is {gaps.iloc[-1]:.1e}, the bound {bounds[-1]:.1e}; at the start the gap is "
    text += f"{-example.LEAST:.2g}; gamma is {example.offset(5):.0f}"
    return Measured(gaps.to_numpy() <= bounds, seeds=history["replicate"].nunique(), note=text)


@quantity
def is_of_rate(history, scheme):
    """True if gamma + T times the mean gap does not grow from the middle tenth of the rounds to the last."""
    gaps = history[history["scheme"] == scheme].groupby("round")["objective"].mean()
    scaled = (example.offset(5) + 5 * gaps.index) * gaps
    both = [scaled.iloc[int(at * len(scaled)) :][: len(scaled) // 10].mean() for at in (0.45, 0.9)]
    return Measured(np.array([both[1] <= both[0]]), note="it is {:.3g}, then {:.3g}".format(*both))


@quantity
def rounds(history, data, E, reading="text"):
    """Rounds to the level of Figure 1a, a number a seed; a bound where a run ends before."""
    found = rounds_to_level(history[history["reading"] == reading], data).query("local_steps == @E")
    missed = found["rounds"].isna().to_numpy()
    return Sample(found["rounds"].fillna(found["ran"]).to_numpy(float), missed, found["replicate"].to_numpy())


@quantity
def best_E(history, data, reading):
    """Decimal logarithm of the E with the fewest rounds, a number a seed."""
    found = rounds_to_level(history[history["reading"] == reading], data).dropna().reset_index(drop=True)
    best = found.loc[found.groupby("replicate")["rounds"].idxmin()]
    return Sample(np.log10(best["local_steps"].to_numpy(float)), seeds=best["replicate"].to_numpy())


@quantity
def rise(history, reading, scheme):
    """Largest rise of the cross-entropy from one round to the next after a tenth of them, a number a seed."""
    one = history[(history["reading"] == reading) & (history["scheme"] == scheme)]
    one = one[one["round"] >= one["round"].max() // 10]
    return Sample(one.groupby("replicate")["objective"].agg(lambda curve: curve.diff().max()).to_numpy())


@quantity
def is_code_nearest(history):
    """True if the reading of the code is the nearest to the published losses in the second half."""
    theirs = published("run").set_index("round")["loss_on_train_data"]
    ours = history.pivot_table(index="round", columns="reading", values="objective")
    off = ours.sub(theirs, axis=0).loc[len(ours) // 2 :].abs().mean().sort_values()
    return Measured(
        np.array([off.index[0] == "code"]), note=", ".join(f"{a}: {b:.4f}" for a, b in off.items())
    )


def are_devices():
    """True of each round whose active devices are those of the published run."""
    theirs, who = published("run_active"), law("I", 10, SimpleNamespace(weights=np.full((1, 100), 0.01)))
    drawn = [np.flatnonzero(who(AuthorsDevices(0, (1,), r), 100).active[0]) for r in theirs["round"]]
    same = np.array([" ".join(map(str, one)) for one in drawn]) == theirs["devices"].to_numpy(str)
    return Measured(same, seeds=1)


def are_means(N=6, K=3):
    """True if schemes I and II have the mean of all devices, and II's weights the mean 1, over all draws."""
    p = np.arange(1, N + 1) / (N * (N + 1) / 2)
    drawn = np.array([[i in one for i in range(N)] for one in combinations(range(N), K)])
    two = shares("scaled", np.broadcast_to(p, drawn.shape), drawn, N)[0]
    one = sum(p[[*draw]].prod() * np.bincount(draw, minlength=N) / K for draw in product(range(N), repeat=K))
    text = f"II's weights sum to {two.sum(axis=1).min():.2f} to {two.sum(axis=1).max():.2f}"
    held = np.isclose(two.sum(axis=1).mean(), 1), np.allclose(two.mean(axis=0), p), np.allclose(one, p)
    return Measured(np.array(held), seeds=1, note=text)


def are_variances(E=5, eta=0.1, K=2):
    """True if the variances of I and II over all draws are at most what Theorems 2 and 3 rest on."""
    N, moved, most = example.N, example.moved(E, eta), 4 * eta**2 * E**2 * example.G2
    draws = {"I": product(range(N), repeat=K), "II": combinations(range(N), K)}
    off = {s: np.array([moved[[*one]].mean(axis=0) for one in draws[s]]) - moved.mean(axis=0) for s in draws}
    found = {s: (off[s] ** 2).sum(axis=1).mean() / (THEOREMS[s] * most) for s in draws}
    text = ", ".join(f"{s}: {share:.2g} of the bound" for s, share in found.items())
    return Measured(np.array([*found.values()]) <= 1, seeds=1, note=text)


def is_far():
    """True if the mean of the devices' minimisers is further than |w*| / 2 from w*."""
    return Measured(np.array([example.one_shot() > 0.5]), note=f"{example.one_shot():.3f} |w*|")
