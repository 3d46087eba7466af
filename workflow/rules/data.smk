# The raw files lie beside their record, in <data>/raw/<dataset>/, and are not outputs: a record
# that is made again must not throw downloaded files away.
rule fetch:
    input:
        source=sources_of("replifed.data.fetch"),
    output:
        plan.in_data("raw/{dataset}.json"),
    log:
        plan.in_logs("data/{dataset}.fetch"),
    benchmark:
        plan.in_benchmarks("data/{dataset}.fetch")
    # Nodes of a cluster may have no network.
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        mem_mb=megabytes("data/{dataset}.fetch", 500),
        runtime=minutes("data/{dataset}.fetch"),
    params:
        folder=lambda wildcards, output: os.path.dirname(output[0]),
        policy=config["data"]["policy"],
        substitutes="--substitutes" if config["data"]["substitutes"] else "",
    message:
        "{wildcards.dataset}: fetch"
    shell:
        "REPLIFED_LOG={log:q} python -m replifed"
        " data fetch {wildcards.dataset} --raw-dir {params.folder:q}"
        " --policy {params.policy} {params.substitutes} 2>&1 | tee {log:q} >&2"


# A custom data set is read in its place.
rule own_dataset:
    input:
        unpack(ask(plan.own_dataset_inputs)),
    output:
        plan.parsed("{dataset}"),
    log:
        plan.in_logs("data/{dataset}"),
    benchmark:
        plan.in_benchmarks("data/{dataset}")
    wildcard_constraints:
        dataset=one_of(config["datasets"]),
    conda:
        "../../environment.yml"
    resources:
        mem_mb=megabytes("data/{dataset}", 3000),
        runtime=minutes("data/{dataset}"),
    params:
        settings=ask(plan.own_dataset_settings),
    message:
        "{wildcards.dataset}: read and check"
    shell:
        "REPLIFED_LOG={log:q} python -m replifed"
        " data own {wildcards.dataset} --settings {params.settings:q} --out {output:q} > {log:q} 2>&1"


rule parse:
    input:
        record=plan.in_data("raw/{dataset}.json"),
        source=sources_of("replifed.data.parse"),
    output:
        plan.parsed("{dataset}"),
    log:
        plan.in_logs("data/{dataset}.parse"),
    benchmark:
        plan.in_benchmarks("data/{dataset}.parse")
    conda:
        "../../environment.yml"
    resources:
        mem_mb=megabytes("data/{dataset}.parse", 3000),
        runtime=minutes("data/{dataset}.parse"),
    params:
        folder=lambda wildcards, input: os.path.dirname(input.record),
    message:
        "{wildcards.dataset}: parse and check"
    shell:
        "REPLIFED_LOG={log:q} python -m replifed"
        " data parse {wildcards.dataset} --raw-dir {params.folder:q}"
        " --out {output:q} > {log:q} 2>&1"
