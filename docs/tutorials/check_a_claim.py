"""
Check a claim
=============

A paper says that its method converges, however long its clients work on their own. Does it? Here you look at
the verdict on this sentence, then measure it yourself in ten lines.

**The setting.** Ten hospitals, say, want to fit one model to all their patients' records. The records may not
leave the hospital. So a *server* sends a model to the hospitals, the *clients*; each improves it on its own
data, and sends it back; the server averages what it gets. That is one *round*. Rounds are slow, so methods
let clients take several *local steps*, one after the other, before they answer.

**The sentence.** Bastianello, Liu and Johansson say of their method Fed-PLT that local steps cost no
accuracy: it "converges exactly for any number of local epochs" (one epoch is here one local step on all of a
client's data). For averaging alone, the method FedAvg, this is known to fail.

The verdict
-----------
replifed has run this paper's experiments, and comes with the results. In a terminal you would write
``replifed claims --reference --paper fedplt --main --verdict reproduced``. Python can call the same command;
it returns 0 if all went well:
"""

from replifed.cli import main as replifed

replifed("claims --reference --paper fedplt --main --verdict reproduced".split())

# %%
# These are the *main claims* of the paper, what its title, abstract and conclusion promise, as far as they
# are ``reproduced``: they hold with what the paper prints. The first is our sentence. Then come the tests
# that were made of them, called *claims*, with their data and scale in brackets, and last how all 655 claims
# of this paper came out.
#
# Why this verdict? Ask by the sentence's name:

replifed("claims --reference --why fedplt.exact.full".split())

# %%
# Ten *seeds* are ten repetitions, each with data of its own. In all of them the error left was at most 1e-12.
#
# Measure it yourself
# -------------------
# phishing is a data set of 11,055 web sites, each phishing or not. We give ten clients a hundred sites each,
# so that they differ: some have mostly phishing sites (:doc:`what_a_partition_does` says how).

import replifed as rf

X, y = rf.load("phishing")
client = rf.split(X, y, "dirichlet:0.3", clients=10, samples=100, seed=3)
hospitals = [(X[client == i].toarray(), y[client == i]) for i in range(10)]
problem = rf.problems.from_clients(hospitals, loss="logistic", l2=0.01)

# %%
# ``problem`` holds the *objective*, the mean of the clients' losses: :math:`F(x) = \frac{1}{10} \sum_i
# f_i(x)`. Here each loss is a logistic regression with a small ridge. Newton's method computes the smallest
# value, :math:`F^\ast`; the *gap* :math:`F(x) - F^\ast` then says how far a model still is from it.
#
# Both methods run with one and with ten local steps. The step size of FedAvg is :math:`1/L`, where :math:`L`
# bounds the curvature of the losses: larger ones may diverge.

step = 1 / problem.smoothness().max()
methods = {}
for steps in (1, 10):
    methods[f"FedAvg, local steps: {steps}"] = rf.method("fedavg", step=step, local_steps=steps)
    methods[f"Fed-PLT, local steps: {steps}"] = rf.method("fedplt", rho=10.0, solver=rf.Gradient(steps=steps))
compared = rf.compare(methods, problem, rounds=100)
figure = compared.plot()
figure.axes[0].set_title("Fed-PLT gets there, FedAvg stalls")
figure

# %%
# FedAvg with several local steps comes to rest at a wrong model: each client walks towards its own minimum,
# which is called *client drift*, and the average of ten minima is not the minimum of the average. Fed-PLT
# gets there with any number of local steps. The sentence holds here, too.
#
# How far from the minimum does each end, as a share of the gap at the start?

compared.table(target=1e-6)[["round", "gap"]]

# %%
# ``round`` is when the gap has fallen to a millionth for good; NaN says that it never has.
#
# One that fails
# --------------
# Often not all clients answer. The same paper's abstract says that "partial participation", half of the
# clients a round, reduces the number of rounds, too.

replifed("claims --reference --why fedplt.table3.rounds".split())

# %%
# *Settings* fill in what the paper leaves open: here, how the data are drawn, and whether a client's loss is
# a mean or a sum over its samples. In none of the three choices of settings does half of the clients
# need fewer rounds. The measured number is the factor by which rounds are saved: above one if half of the
# clients need fewer rounds than all.
#
# ``deviates`` is not "the paper is wrong": it says that the sentence does not hold in our runs, which
# fill in what the paper leaves open. :doc:`The paper's page </docs/papers/fedplt>` says what was compared;
# :doc:`one page with a drawing </docs/verdicts>` says how verdicts are made. If you know better,
# :doc:`contest it </CONTRIBUTING>`.
#
# At the paper's own scale
# ------------------------
# One claim with the paper's settings, seeds and data takes half a minute, in a checkout of the code:
#
# .. code-block:: console
#
#    $ replifed make fedplt.fig3.exact --cores 2
#
# Next: :doc:`my_method`.
