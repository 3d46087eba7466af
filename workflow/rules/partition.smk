rule partition:
    input:
        unpack(ask(plan.partition_inputs)),
    output:
        npz=plan.in_results("{paper}/{experiment}/partition.npz"),
        table=plan.in_results("{paper}/{experiment}/partition.csv"),
    log:
        plan.in_logs("{paper}/{experiment}/partition"),
    benchmark:
        plan.in_benchmarks("{paper}/{experiment}/partition")
    conda:
        "../../environment.yml"
    resources:
        mem_mb=megabytes("{paper}/{experiment}/partition", stated=ask(plan.memory)),
        runtime=minutes("{paper}/{experiment}/partition"),
    params:
        settings=ask(plan.step_settings, "partition"),
    message:
        "{wildcards.paper}: split the data of {wildcards.experiment} between the clients"
    shell:
        "REPLIFED_LOG={log:q} python -m replifed"
        " partition {wildcards.paper} {wildcards.experiment}"
        " --settings {params.settings:q} --data {input.data:q}"
        " --out {output.npz:q} --table {output.table:q} > {log:q} 2>&1"
