"""
Bits and rounds
===============

"A needs fewer rounds than B" and "A needs fewer bits than B" are two different sentences. Here the first is
true of a pair of methods, and the second is not.

In a **round** the server sends something to all *clients*, they compute on their own data, and send something
back. Rounds cost time: everybody waits for the slowest. **Bits** cost traffic: what is sent may be one number
or a matrix.

Four methods
------------
- *FedAvg* sends models: D numbers each way, with D the number of unknowns.
- *SCAFFOLD* sends two vectors each way, so 2 D numbers.
- *Newton's method* sends every client's matrix of second derivatives, D (D + 1) / 2 numbers up, in each
  round.
- *FedNL* sends only the largest entries of the difference between that matrix and what the server already
  knows.
"""

import replifed as rf

X, y = rf.load("phishing")
client = rf.split(X, y, "dirichlet:0.3", clients=10, samples=100, seed=3)
held = [(X[client == i].toarray(), y[client == i]) for i in range(10)]
problem = rf.problems.from_clients(held, loss="logistic", l2=0.01)

step = 1 / problem.smoothness().max()
methods = {
    "FedAvg": rf.method("fedavg", step=step, local_steps=5),
    "SCAFFOLD": rf.method("scaffold", step=step, solver=rf.Gradient(steps=5)),
    "Newton": rf.method("newton"),
    "FedNL": rf.method("fednl", compressor="topk"),
}
compared = rf.compare(methods, problem, rounds=60)

# %%
# The same runs, twice
# --------------------
# First against rounds, then against bits. The *gap* is how far the objective is above its minimum.

figure = compared.plot(x="rounds")
figure.axes[0].set_title("Rounds: Newton first")
figure

# %%

figure = compared.plot(x="bits")
figure.axes[0].set(title="Bits: FedNL first", xlim=(0, 4e6))
figure

# %%
# The table says what each method needs until its gap falls for good below a ten-thousandth of the first.
# FedAvg never gets there (NaN). Newton needs the fewest rounds and FedNL the fewest bits. Neither plot is
# wrong; a claim has to say which one it means.

compared.table(target=1e-4)[["round", "bits", "sample_gradients"]]

# %%
# How bits are counted
# --------------------
# Each method books its messages in a *ledger*, an account of what was sent and computed. A number counts 32
# bits, unless a method sends it rounded to fewer (*quantised*). Up and down both count, for every client. One
# round of FedAvg books:

history = rf.run(methods["FedAvg"], problem, rounds=1)
history[["round", "bits_up", "bits_down", "exchanges", "iterations", "sample_gradients"]]

# %%
# Up: 10 clients, each D numbers of 32 bits. By hand:

print(10 * problem.dim * 32)

# %%
# Other columns tell what rounds and bits hide:
#
# - ``sample_gradients`` counts gradients of single samples: the clients' work.
# - ``exchanges`` counts how often clients and server wait for each other. FedLin has two in each of its
#   rounds: "half the rounds" would then be no gain.
# - ``hessians`` counts matrices of second derivatives, which cost a client more than a gradient.
#
# ``replifed check`` finds methods that book less than they take (:doc:`my_method`).
#
# Next: :doc:`add_a_paper`.
