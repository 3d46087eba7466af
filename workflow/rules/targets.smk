# The names that users ask for, besides `all`. They are a public interface, like the paths of the artefacts.
# Each paper's artefacts, verdicts and page of the report, under the paper's name; artefacts that `all` leaves out, such
# as fedac_large, which takes hours; custom methods with built-in ones (`compare`); and all data sets.
for name, wanted in TARGETS.items():
    if name != "all" and name not in jobs.KINDS and name not in targets.WITHOUT_FILES:

        rule:
            name:
                name
            input:
                TABLE.files(*wanted),


# Snakemake counts a log as a product: left in place, it would make a second `help` do nothing.
rule help:
    log:
        log_of("help"),
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        mem_mb=200,
    params:
        configfiles=configfile_flags(),
    message:
        "targets"
    shell:
        "python -m replifed list artefacts {params.configfiles} 2>&1 | tee {log:q}; rm {log:q}"
