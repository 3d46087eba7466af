rule tune:
    input:
        unpack(tune_inputs),
    output:
        in_results("{paper}/{experiment}/{method}.tuned.json"),
    log:
        in_logs("{paper}/{experiment}/{method}.tuned"),
    benchmark:
        in_benchmarks("{paper}/{experiment}/{method}.tuned")
    wildcard_constraints:
        paper=papers_but_groups(),
    priority: 20
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=memory,
    params:
        settings=step_settings("tune"),
        files=lambda wildcards: flags(dataset_files(wildcards)),
    message:
        "{wildcards.paper}: tune {wildcards.method} on {wildcards.experiment}"
    shell:
        "python -m replifed tune {wildcards.paper} {wildcards.experiment} {wildcards.method}"
        " --settings {params.settings:q} {params.files} --out {output:q} 2>&1 | tee {log:q} >&2"
