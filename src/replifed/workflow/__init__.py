"""Answers for the rules of the workflow: which file is made from which, with which settings.

All of it follows from the checked configuration; only `grouping` looks at files. `words` checks the arguments
of a call of Snakemake, `screen` formats its errors (those of a `cluster`, too) and its progress and stops it,
and `running` knows which calls run in this folder. No other module here knows Snakemake, and no job imports
any of them. `costs` has what jobs took, `limits` what they therefore ask for, and `order` which of them start
first.
"""

from replifed.workflow.grouping import Grouping
from replifed.workflow.plan import SUFFIXES, Plan, flags, inputs_flag, one_of

__all__ = ["SUFFIXES", "Grouping", "Plan", "flags", "inputs_flag", "one_of"]
