"""
What a partition does
=====================

In federated learning the data lie with the *clients*, and no two clients have the same. How different they
are decides which methods work. Here one data set is dealt to ten clients in three ways, and two methods run
on each.

A **partition** says which client holds which sample. Real partitions are given: each hospital has its own
patients. In papers, a rule deals one data set to clients. A usual rule draws, for each client, the shares of
the labels from a *Dirichlet distribution* with parameter :math:`\\alpha`: with a large :math:`\\alpha` all
clients get about the same mix, with a small one most clients have one label only.

Deal the samples
----------------
The data are 11,055 web sites, each phishing (label 1) or not (label -1).
"""

import matplotlib.pyplot as plt

import replifed as rf
from replifed.partition.heterogeneity import group_counts, summary

X, y = rf.load("phishing")


def deal(alpha):
    """Return the client of each sample, from 0; -1 for samples that nobody gets."""
    return rf.split(X, y, f"dirichlet:{alpha}", clients=10, samples=200, seed=3)


figure, panels = plt.subplots(1, 3, figsize=(9, 2.8), sharey=True, layout="constrained")
for alpha, axes in zip((100, 1, 0.1), panels, strict=True):
    client = deal(alpha)
    counts = group_counts(client[client >= 0], (y[client >= 0] > 0).astype(int))
    axes.bar(range(10), counts[:, 0], label="not phishing")
    axes.bar(range(10), counts[:, 1], bottom=counts[:, 0], label="phishing")
    far = summary(client[client >= 0], y[client >= 0])["label_distance"]
    axes.set(title=f"α = {alpha}: label distance {far:.2f}", xlabel="client")
panels[0].set_ylabel("samples")
panels[2].legend(fontsize="small")

# %%
# The *label distance* in the titles says how far a client's shares of labels are from those of all samples,
# as a mean over clients (total variation: 0 is the same mix, here at most about 0.5). This is one draw, of
# seed 3. At small :math:`\alpha` draws differ much from one another: try other seeds.
#
# Run two methods on each
# -----------------------
# In a *round* the server sends its model to the clients, each takes ten gradient steps on its own data and
# sends the result back, and the server takes the mean. That is FedAvg. SCAFFOLD does the same, but each
# client corrects its steps by the difference between its gradient and all clients' mean, as last seen
# (*control variates*).

figure, panels = plt.subplots(1, 3, figsize=(9, 3), sharey=True, layout="constrained")
for alpha, axes in zip((100, 1, 0.1), panels, strict=True):
    client = deal(alpha)
    held = [(X[client == i].toarray(), y[client == i]) for i in range(10)]
    problem = rf.problems.from_clients(held, loss="logistic", l2=0.01)
    step = 1 / problem.smoothness().max()
    methods = {
        "FedAvg": rf.method("fedavg", step=step, local_steps=10),
        "SCAFFOLD": rf.method("scaffold", step=step, solver=rf.Gradient(steps=10)),
    }
    frame = rf.compare(methods, problem, rounds=60).frame
    for name, line in frame.groupby("method"):
        axes.semilogy(line["round"], line["gap"], label=name)
    axes.set(title=f"α = {alpha}", xlabel="rounds")
panels[0].set_ylabel("gap to the minimum")
panels[0].legend()

# %%
# With clients alike (left), FedAvg is as good as SCAFFOLD for a while. The more they differ, the higher
# FedAvg comes to rest: its clients walk towards their own minima, which is *client drift*. SCAFFOLD slows
# down a little, and still gets to the minimum.
#
# So "A beats B" means little without the partition. Two things follow:
#
# - When you read a comparison, look for its partition. If a paper leaves it open, its page here says so.
# - When you make one, try several. From the command line: ``--partition dirichlet:0.1``, or ``--vary`` for
#   all combinations of partition, local steps and ridge (:doc:`/docs/own-data`, :doc:`/docs/own-method`).
#
# Next: :doc:`bits_and_rounds`.
