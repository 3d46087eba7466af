# The names that users ask for, besides `all`. They are a public interface, like the paths of the artefacts.
# Each paper's artefacts, verdicts and page of the report, under the paper's name.
for name in plan.papers:

    rule:
        name:
            name
        input:
            plan.paper_files(name),


# What `all` leaves out, such as fedac_large, which takes hours.
for name, files in plan.on_demand().items():

    rule:
        name:
            name
        input:
            files,


# Custom methods with built-in ones.
rule compare:
    input:
        plan.comparison_artefacts(),
        plan.comparison_report(),


rule data:
    input:
        [plan.parsed(dataset) for dataset in DATASETS],


# Snakemake counts a log as a product: left in place, it would make a second `help` do nothing.
rule help:
    log:
        plan.in_logs("help"),
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        mem_mb=200,
    params:
        configfiles=lambda wildcards: configfile_flags(),
    message:
        "targets"
    shell:
        "python -m replifed list artefacts {params.configfiles} 2>&1 | tee {log:q}; rm {log:q}"
