"""
My method in ten minutes
========================

You have an idea for a federated method. Here it becomes a class of a few lines, is checked, and runs beside
methods of other people on the same problem.

**The idea** of this example is FedExP (Jhunjhunwala, Wang and Joshi, 2023). In FedAvg, every *client* takes a
few gradient steps from the model that the *server* sent, and the server takes the mean of the results. Where
the clients' changes :math:`\\Delta_i` point in different directions they cancel, and their mean :math:`m` is
short. FedExP multiplies it by

.. math:: \\eta = \\max(1, q), \\quad q = \\frac{\\sum_i |\\Delta_i|^2}{2 N |m|^2},

with N the number of clients.

The class
---------
A method is a dataclass of settings with a method ``round``, which gets the server's model, and returns the
next model and what the round cost. Save this as ``mine.py``:

.. literalinclude:: /docs/tutorials/mine.py
   :language: python

- An annotation says which values a setting may have; a wrong value is refused in one line.
- ``state.x`` is the server's model. Its first axis holds R *runs*, repetitions that are computed side by
  side: arrays are (R, D), or (R, N, D) with a row for each of the N clients.
- A search tries several steps side by side, one for each run. So ``step`` may be an array (R,); ``per_run``
  shapes it so that it multiplies ``x``.
- ``Cohort`` holds the clients that take part in the round: ``cohort.problem`` has their gradients,
  ``cohort.mean`` is the mean over them. ``cohort.cost(K, None)`` books what the round cost: one model down
  and one up for each client, and K gradients of all its samples.
- ``needs`` says what the problem must offer: here losses, and gradients of all clients, each at a model of
  its own.

Is it a sound method?
---------------------
``replifed check mine.py:FedExP`` tries it on small problems. Are two calls with the same random numbers
equal? Does a run come out alone as it does among others? Is all work booked? Here the command is called from
Python:
"""

from replifed.cli import main as replifed

replifed("check mine.py:FedExP".split())

# %%
# Each mistake is one line that says which promise is broken. Try it: book one gradient instead of K, with
# ``cohort.cost(1, None)``, and the check says "books 648 of 1,296 sample gradients".
#
# Beside others
# -------------
# Now a *problem*: clients with data, and a loss. These ten have ten samples each, of a linear regression with
# fifty unknowns: no client can find the truth alone, together they can.

import numpy as np

import replifed as rf

rng = np.random.default_rng(1)
truth = rng.normal(size=50)
clients = []
for _ in range(10):
    features = rng.normal(size=(10, 50)) * np.linspace(0.2, 1, 50)
    clients.append((features, features @ truth))
problem = rf.problems.from_clients(clients, loss="least_squares", l2=0.001)

step = 1 / problem.smoothness().max()
methods = {
    "FedAvg": rf.method("fedavg", step=step, local_steps=10),
    "FedExP": rf.method("mine.py:FedExP", step=step, local_steps=10),
    "SCAFFOLD": rf.method("scaffold", step=step, solver=rf.Gradient(steps=10)),
}
compared = rf.compare(methods, problem, rounds=60)
figure = compared.plot()
figure.axes[0].set_title("FedExP is fast at first")
figure

# %%
# The *gap* F - F* (y axis) is how far the objective is above its minimum. FedExP needs a fraction of
# FedAvg's rounds to get near it. Then its long steps overshoot, the curve wobbles, and SCAFFOLD, a method
# that corrects each client's steps, overtakes. Who wins depends on how close you want to get:

compared.table(target=1e-2)[["round", "bits", "touch", "gap"]]

# %%
compared.table(target=1e-3)[["round", "bits", "touch", "gap"]]

# %%
# ``round`` is the round from which the gap *stays* below a hundredth (second table: a thousandth) of the
# first gap; NaN if it never does. ``touch`` is the first round below, whatever comes later: it would flatter
# a curve that wobbles. ``bits`` is what all clients and the server have sent by ``round``.
#
# A fair comparison
# -----------------
# Here all methods had one step, and who wins can depend on it. So the command line tunes each method first,
# all with the same number of trial runs, which are not reported. Then it repeats the runs on twenty seeds:
#
# .. code-block:: console
#
#    $ replifed compare mine.py:FedExP --data a9a --against fedavg,scaffold --cores 2
#
# That takes about a minute, in a checkout of the code. It writes a page with curves, tables, and for each
# pair of methods which needs less, with intervals (:doc:`/docs/own-method`). Would another partition of the
# data reverse the order? ``--vary`` tries.
#
# Next: :doc:`what_a_partition_does`.
