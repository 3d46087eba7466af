# The front door. The workflow itself lies where the workflow catalogue looks for it.
include: "workflow/Snakefile"


# An included file cannot set the target of a bare `snakemake`.
workflow.default_target = workflow.default_target or workflow.modifier.modify_rulename(
    "all"
)
