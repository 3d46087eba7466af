rule tune:
    input:
        unpack(ask(plan.tune_inputs)),
    output:
        plan.in_results("{paper}/{experiment}/{method}.tuned.json"),
    log:
        plan.in_logs("{paper}/{experiment}/{method}.tuned"),
    benchmark:
        plan.in_benchmarks("{paper}/{experiment}/{method}.tuned")
    wildcard_constraints:
        paper=grouping.papers_of_single_runs(),
    conda:
        "../../environment.yml"
    resources:
        mem_mb=megabytes("{paper}/{experiment}/{method}.tuned", stated=ask(plan.memory)),
        runtime=minutes("{paper}/{experiment}/{method}.tuned", otherwise=240),
    params:
        settings=ask(plan.step_settings, "tune"),
        files=input_flags,
    message:
        "{wildcards.paper}: tune {wildcards.method} on {wildcards.experiment}"
    shell:
        "REPLIFED_LOG={log:q} python -m replifed"
        " tune {wildcards.paper} {wildcards.experiment} {wildcards.method}"
        " --settings {params.settings:q} {params.files} --out {output:q} 2>&1 | tee {log:q} >&2"
