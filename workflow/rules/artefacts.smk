use rule parse as figure with:
    output:
        [shown(file) for file in files_of("figure")],
    log:
        log_of(called("figure")),
    benchmark:
        benchmark_of(called("figure"))
    wildcard_constraints:
        figure=one_of("figure"),


use rule parse as table with:
    output:
        [shown(file) for file in files_of("table")],
    log:
        log_of(called("table")),
    benchmark:
        benchmark_of(called("table"))
    wildcard_constraints:
        table=one_of("table"),


# Where jobs take but seconds: the figures and tables of a paper that wait for runs, in one process.
for group in GROUPS.values():
    if group.draws:

        rule:
            name:
                group.rule
            input:
                files_before(None, group.rule),
            output:
                [shown(pattern) for pattern in group.patterns],
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
                QUIETLY
