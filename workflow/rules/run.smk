# One job is one method on one experiment, with all its repetitions and settings inside.
rule run:
    input:
        files_before,
    output:
        files_of("run"),
    log:
        log_of(called("run")),
    benchmark:
        benchmark_of(called("run"))
    wildcard_constraints:
        run=one_of("run"),
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


use rule run as tune with:
    output:
        files_of("tune"),
    log:
        log_of(called("tune")),
    benchmark:
        benchmark_of(called("tune"))
    wildcard_constraints:
        tune=one_of("tune"),


# Long runs: several jobs, each with some of the repetitions, and one that joins what they leave.
use rule run as share with:
    output:
        temp(files_of("share")),
    log:
        log_of(called("share")),
    benchmark:
        benchmark_of(called("share"))
    wildcard_constraints:
        share=one_of("share"),


use rule parse as join with:
    output:
        files_of("join"),
    log:
        log_of(called("join")),
    benchmark:
        benchmark_of(called("join"))
    wildcard_constraints:
        join=one_of("join"),


# Where jobs take but seconds: the searches and runs of one method on several experiments in one process.
for group in GROUPS.values():
    if not group.draws:

        rule:
            name:
                group.rule
            input:
                files_before(None, group.rule),
            output:
                group.patterns,
            log:
                log_of(group.log_pattern),
            benchmark:
                benchmark_of(group.log_pattern)
            wildcard_constraints:
                paper=group.paper,
            conda:
                "../../environment.yml"
            resources:
                **resources_of(group.rule),
            params:
                **params_of(group.rule),
            message:
                "{params.description}"
            shell:
                SHOWN
