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
        paper=one_of(papers_run(together=False)) or "(?!)",
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


# Where runs take seconds, one job tunes and runs one method on all experiments of the paper.
for name in papers_run(together=True):

    rule:
        name:
            f"run_together_{name}"
        input:
            unpack(together_inputs(name)),
        output:
            list(together_outputs(name).values()),
        log:
            in_logs(f"{name}/{{method}}"),
        benchmark:
            in_benchmarks(f"{name}/{{method}}")
        priority: 10
        conda:
            "../../environment.yml"
        threads: 1
        resources:
            mem_mb=2000,
        params:
            paper=name,
            settings=together_settings(name),
            inputs=keyed_flag(name, together_keys(name)),
            outputs=together_files(name),
        message:
            f"{name}: run {{wildcards.method}} on all data sets"
        shell:
            "python -m replifed run-together {params.paper} {wildcards.method} --settings {params.settings:q}"
            " {params.inputs} --outputs {params.outputs} 2>&1 | tee {log:q} >&2"
