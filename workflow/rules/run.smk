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
