"""What the rules of the workflow ask: which file is made from which, with which settings.

All of it follows from the checked configuration; only `grouping` looks at files, and `sources` writes small
ones. Nothing here knows Snakemake, and no job imports it.
"""

from replifed.workflow.grouping import Grouping
from replifed.workflow.plan import SUFFIXES, Plan, flags, inputs_flag, one_of
from replifed.workflow.sources import source_stamp

__all__ = ["SUFFIXES", "Grouping", "Plan", "flags", "inputs_flag", "one_of", "source_stamp"]
