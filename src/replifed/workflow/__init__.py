"""The jobs of the workflow, and what it says on the screen.

`jobs` is the table of them, `entries` the file from which each reads its own entry, and `targets` says which
of them a call makes, and which together. `command` checks the arguments of a call of Snakemake, `screen`
formats its errors (those of a `cluster`, too) and its progress and stops it, `closing` has its last lines,
and `running` knows which calls run in this folder. No other module here knows Snakemake. `costs` has what
jobs took, `limits` what they therefore ask for, and `order` which of them start first.
"""
