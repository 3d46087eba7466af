"""
Add a paper
===========

A paper becomes a folder: what is run, what is drawn, what is claimed. Here you make one, run its experiment,
and see what a claim looks like before and after.

A folder that runs
------------------
In a terminal: ``replifed new paper demo --to my_papers``. Here in a temporary folder, from Python:
"""

import sys
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace

import matplotlib.pyplot as plt
import yaml

from replifed.cli import main as replifed

folder = Path(mkdtemp())
replifed(["new", "paper", "demo", "--to", str(folder)])

# %%
# Each file has one job:

for name, job in {
    "settings.yaml": "what is run, and with which numbers",
    "experiments.py": "how: from settings to a table of results",
    "figures.py": "what is drawn",
    "claims.py": "what the paper says, sentence by sentence",
    "finding.md": "what came out, in five plain sentences",
}.items():
    assert (folder / "demo" / name).exists()
    print(f"{name:16}{job}")

# %%
# 1. What is run
# --------------
# An *experiment* is a section of settings with a name:

settings = yaml.safe_load((folder / "demo/settings.yaml").read_text())["demo"]
print(yaml.safe_dump(settings["experiments"]["bowl"], sort_keys=False))

# %%
# *Replicates* are repetitions with random numbers of their own: each number seeds one. ``experiments.py`` has
# a function ``run`` that turns these settings into a table with a row for each replicate and round. The
# workflow calls it; so can you. The three None stand for what this paper lacks: a tuned step, a data set, a
# partition.

sys.path.insert(0, str(folder))
from demo.experiments import run

results = {
    name: run("fedavg", SimpleNamespace(seed=settings["seed"], **experiment), None, None, None)
    for name, experiment in settings["experiments"].items()
}
results["bowl"][["replicate", "round", "objective", "bits_up"]].head()

# %%
# 2. What is drawn
# ----------------
# In the paper's folder, a figure is declared: which columns make panels, curves and axes. Drawn by hand:

for name, frame in results.items():
    mean = frame.groupby("round")["objective"].mean()
    plt.semilogy(mean.index, mean, label=name)
plt.xlabel("communication rounds")
plt.ylabel("mean objective")
plt.legend()

# %%
# 3. What is claimed
# ------------------
# Claims are written before the first run, so that nobody can fit them to what comes out. Suppose that the
# paper's abstract says "the method goes down", and does not say with which step size. What a paper leaves
# open is an *axis*, and each way to fill it in is an *option*. The file begins with these; then come the
# paper's sentences in their order:

text = (folder / "demo/claims.py").read_text()
print(text[text.index("AXES = ") : text.index("# A printed number")])

# %%
# ``order`` is a kind of claim: one thing is larger than another, by at least ``least``. The others are a
# *value* (a number that the paper prints), a *near* (another number, within a tolerance), a *shape* (how a
# curve looks) and an *identity*. Each claim is judged with each option: holds, fails, or inconclusive.
#
# 4. Verdicts
# -----------
# The workflow does all of this: it runs what is missing, draws the figure and measures the claims.
#
# .. code-block:: console
#
#    $ replifed new paper demo --to my_papers
#    $ snakemake --cores 2 demo --config 'paper_folders=[my_papers]'
#    $ replifed claims --file results/demo/claims.csv
#
# Here, check the claim by hand: does the objective fall in all three replicates, with both steps?

for name, frame in results.items():
    ends = frame.groupby("replicate")["objective"].agg(["first", "last"])
    print(name, "holds" if (ends["first"] - ends["last"] > 0.1).all() else "fails")

# %%
# From here, :doc:`/docs/own-paper` builds a whole paper, with a claim that holds only with a fitted setting;
# :doc:`/docs/verdicts` explains the words on one page.
