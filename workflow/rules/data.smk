# What a job reads, what it is called with and what it asks for follows from the table of jobs, where the wildcard of
# its rule, called like the rule, names it.
rule fetch:
    input:
        files_before,
    output:
        files_of("fetch"),
    log:
        log_of(called("fetch")),
    benchmark:
        benchmark_of(called("fetch"))
    wildcard_constraints:
        fetch=one_of("fetch"),
    # Nodes of a cluster may have no network.
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        **resources_of(),
    params:
        **params_of(),
    message:
        "{params.description}"
    shell:
        SHOWN


rule parse:
    input:
        files_before,
    output:
        files_of("parse"),
    log:
        log_of(called("parse")),
    benchmark:
        benchmark_of(called("parse"))
    wildcard_constraints:
        parse=one_of("parse"),
    conda:
        "../../environment.yml"
    resources:
        **resources_of(),
    params:
        **params_of(),
    message:
        "{params.description}"
    shell:
        QUIETLY


# A custom data set is read in its place.
use rule parse as own_dataset with:
    output:
        files_of("own_dataset"),
    log:
        log_of(called("own_dataset")),
    benchmark:
        benchmark_of(called("own_dataset"))
    wildcard_constraints:
        own_dataset=one_of("own_dataset"),


use rule parse as partition with:
    output:
        files_of("partition"),
    log:
        log_of(called("partition")),
    benchmark:
        benchmark_of(called("partition"))
    wildcard_constraints:
        partition=one_of("partition"),
