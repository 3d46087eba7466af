rule partition:
    input:
        unpack(partition_inputs),
    output:
        npz=in_results("{paper}/{experiment}/partition.npz"),
        table=in_results("{paper}/{experiment}/partition.csv"),
    log:
        in_logs("{paper}/{experiment}/partition"),
    benchmark:
        in_benchmarks("{paper}/{experiment}/partition")
    priority: 30
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=memory,
    params:
        settings=step_settings("partition"),
    message:
        "{wildcards.paper}: split the data of {wildcards.experiment} between the clients"
    shell:
        "python -m replifed partition {wildcards.paper} {wildcards.experiment}"
        " --settings {params.settings:q} --data {input.data:q}"
        " --out {output.npz:q} --table {output.table:q} > {log:q} 2>&1"
