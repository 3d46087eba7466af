# One job is one method on one experiment, with all its repetitions and settings inside.
rule run_method:
    input:
        unpack(run_inputs),
    output:
        in_results("{paper}/{experiment}/{method}.parquet"),
    log:
        in_logs("{paper}/{experiment}/{method}"),
    benchmark:
        in_benchmarks("{paper}/{experiment}/{method}")
    wildcard_constraints:
        paper=papers_but_groups(),
    priority: 10
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=memory,
    params:
        settings=step_settings("run"),
        files=lambda wildcards: flags(run_files(wildcards)),
    message:
        "{wildcards.paper}: run {wildcards.method} on {wildcards.experiment}"
    shell:
        "python -m replifed run {wildcards.paper} {wildcards.experiment} {wildcards.method}"
        " --settings {params.settings:q} {params.files}"
        " --out {output:q} 2>&1 | tee {log:q} >&2"


# Where searches and runs take seconds, one job does those of one method on several experiments, if all are wanted.
for name, number, (method, together) in grouped():

    rule:
        name:
            group_rule(name, method, together)
        input:
            unpack(group_inputs(name, together)),
        # With a wildcard, although there is one method: a rule without would be listed as a target of its own.
        output:
            list(group_outputs(name, together).values()),
        log:
            in_logs(f"{name}/{group_name(together)}/{{method}}"),
        benchmark:
            in_benchmarks(f"{name}/{group_name(together)}/{{method}}")
        wildcard_constraints:
            method=method,
        # The first method of each paper, then the second ones: methods of one paper call the same kernels, which
        # two of them at a time would both compile. Above those of single jobs, whose searches have 20.
        priority: max(60 - number, 21)
        conda:
            "../../environment.yml"
        threads: 1
        resources:
            mem_mb=group_memory(name, together),
        params:
            paper=name,
            settings=group_settings(name, together),
            inputs=keyed_flag(name, group_keys(name, together)),
            outputs=group_files(name, together),
            note=group_note(name, together),
        message:
            f"{name}: run {{wildcards.method}} on {', '.join(together)}"
        shell:
            "python -m replifed run-together {params.paper} {wildcards.method} --settings {params.settings:q}"
            " {params.inputs} --outputs {params.outputs} 2>&1 | tee {log:q} >&2; {params.note}"
