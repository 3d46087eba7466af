"""
Why is SCAFFOLD no better than FedAvg?
======================================

Users of every framework ask this: SCAFFOLD corrects what FedAvg gets wrong, and in their runs the two curves
lie on one another. Here both run on the same ten clients, and the curves part and meet again by four choices:
how far down you look, the step, minibatches, and what a round costs.

Ten clients that differ
-----------------------
The samples of a9a are dealt by k-means, so that each client has its own kind of people; 300 samples a
client, logistic loss, a ridge.
"""

import matplotlib.pyplot as plt
import numpy as np

import replifed as rf

X, y = rf.load("a9a")
client = rf.split(X, y, "kmeans", clients=10)
chosen = [np.random.default_rng(i).choice(np.flatnonzero(client == i), 300, replace=False) for i in range(10)]
problem = rf.problems.from_clients([(X[own].toarray(), y[own]) for own in chosen], loss="logistic", l2=0.01)
L = problem.smoothness().max()  # of the clients' objectives, the largest


def fedavg(step, **more):
    return rf.method("fedavg", step=step / L, local_steps=10, **more)


def scaffold(step, solver=rf.Gradient, **more):
    made = solver(steps=10, **({"batch": more.pop("batch")} if "batch" in more else {}))
    return rf.method("scaffold", step=step / L, solver=made, **more)


# %%
# How far down you look
# ---------------------
# Clients that take many steps alone drift apart: each moves towards its own minimum. FedAvg's mean of them
# comes to rest near the minimum, not at it; how near depends on the step. SCAFFOLD subtracts the drift, and
# goes on. Until FedAvg rests, there is nothing to see:

figure, panels = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
for step, axes in zip((0.3, 1), panels, strict=True):
    compared = rf.compare({"FedAvg": fedavg(step), "SCAFFOLD": scaffold(step)}, problem, rounds=60)
    for name, line in compared.frame.groupby("method"):
        axes.semilogy(line["round"], line["gap"], label=name)
    axes.set(title=f"step {step} / L", xlabel="rounds")
panels[0].set_ylabel("gap to the minimum")
panels[0].legend()

# %%
# Accuracy on a test set often stops to change long before FedAvg rests. Then both methods are equally good,
# for that purpose. Before you ask which is better, say to which gap.

coarse, fine = compared.table(target=1e-1), compared.table(target=1e-4)
assert coarse["round"].max() <= 2 * coarse["round"].min()
assert np.isnan(fine["round"]["FedAvg"])
assert fine["round"]["SCAFFOLD"] < 60
print(coarse["round"], fine["round"], sep="\n")

# %%
# The step, and which option
# --------------------------
# The paper has two ways to renew a client's control variate: option I, a gradient of all its samples at the
# server's model, and option II, the mean of the gradients of its steps. II costs nothing, and most codes
# have it. The two methods do not take the same steps. Where FedAvg merely rests further away, SCAFFOLD may
# not come down at all: a step tuned for FedAvg can break it, and one that is safe for option II can break
# option I.

steps = (0.1, 0.3, 1, 2, 3)
rows = {}
for step in steps:
    methods = {
        "FedAvg": fedavg(step),
        "option I": scaffold(step, option="1"),
        "option II": scaffold(step),
        "option II, global step 2": scaffold(step, server_step=2.0),
    }
    rows[step] = rf.compare(methods, problem, rounds=60).table(target=1e-2)["gap"]
figure, axes = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
for name in rows[1].index:
    axes.loglog(steps, [rows[step][name] for step in steps], marker="o", label=name)
axes.set(xlabel="step times L", ylabel="gap after 60 rounds")
axes.legend()

# %%
# So each method is to be tuned by itself. A *global step*, by which the server multiplies the mean change,
# is SCAFFOLD's other number: with small steps of the clients the server may go twice as far.

best = {name: min(rows[step][name] for step in steps) for name in rows[1].index}
assert rows[2]["option I"] > 1 > rows[2]["FedAvg"] > rows[2]["option II"]
assert rows[3]["option II"] > rows[3]["FedAvg"]
assert rows[0.3]["option II, global step 2"] < rows[0.3]["option II"] / 2
assert best["option II"] < best["FedAvg"] / 1e5

# %%
# Minibatches
# -----------
# Steps on ten samples at a time are noisy, and no control variate takes that away: it corrects how
# *clients* differ, not how samples do. Both curves come to rest at the noise, which is most of what is
# seen.

compared = rf.compare(
    {"FedAvg": fedavg(0.3, batch=10), "SCAFFOLD": scaffold(0.3, rf.Stochastic, batch=10)},
    problem,
    rounds=150,
    seeds=3,
)
figure = compared.plot(x="rounds")
figure.set_size_inches(5.5, 3.2)
gap = compared.table(target=1e-2)["gap"]
assert gap["FedAvg"] / 3 < gap["SCAFFOLD"] < gap["FedAvg"]

# %%
# Smaller steps or larger batches lower the noise; then the drift is what remains, and the curves part
# again.
#
# What a round costs
# ------------------
# SCAFFOLD sends two vectors each way, model and control variate, where FedAvg sends one. Against bits it
# has to need fewer than half of the rounds, and with a short step it does not:

compared = rf.compare({"FedAvg": fedavg(0.3), "SCAFFOLD": scaffold(0.3)}, problem, rounds=60)
figure = compared.plot(x="bits")
figure.set_size_inches(5.5, 3.2)
last = {name: line.set_index("round")["gap"] for name, line in compared.frame.groupby("method")}
assert last["SCAFFOLD"][60] < last["FedAvg"][60] < last["SCAFFOLD"][30]

# %%
# Few clients a round
# -------------------
# With two of ten clients a round a control variate is some rounds old when its client comes again. With
# steps on all samples SCAFFOLD keeps its lead all the same; FedAvg now also rests at the noise of who came.

methods = {"FedAvg": fedavg(0.3), "SCAFFOLD": scaffold(0.3)}
compared = rf.compare(methods, problem, rounds=150, seeds=3, cohort=2)
gap = compared.table(target=1e-2)["gap"]
figure = compared.plot(x="rounds")
figure.set_size_inches(5.5, 3.2)
assert gap["SCAFFOLD"] < gap["FedAvg"] / 10

# %%
# What to check, then, when the curves lie on one another:
#
# 1. the target: have both got below the gap at which FedAvg rests?
# 2. the step: was each tuned by itself, over a grid whose ends are worse than its best?
# 3. the noise: does a larger batch, or all samples, part them?
# 4. the axis: rounds or bits?
# 5. the clients: with samples dealt at random there is little drift to correct
#    (:doc:`what_a_partition_does`).
#
# ``replifed compare --against fedavg,scaffold`` tunes both, and tells them apart by twenty seeds.
