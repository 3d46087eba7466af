"""What the rules of the workflow ask: which file is made from which, with which settings.

All of it follows from the checked configuration; only `grouping` looks at files. `words` checks what a call
of Snakemake asks for, and `screen` words what failed and how far it is. Nothing else here knows Snakemake,
and no job imports it.
"""

from replifed.workflow.grouping import Grouping
from replifed.workflow.plan import SUFFIXES, Plan, flags, inputs_flag, one_of

__all__ = ["SUFFIXES", "Grouping", "Plan", "flags", "inputs_flag", "one_of"]
