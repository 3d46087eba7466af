rule measure_claims:
    input:
        unpack(ask(plan.claims_inputs)),
    output:
        claims=plan.in_results("{paper}/claims.csv"),
        environment=plan.in_results("{paper}/environment.json"),
    log:
        plan.in_logs("{paper}/claims"),
    benchmark:
        plan.in_benchmarks("{paper}/claims")
    conda:
        "../../environment.yml"
    resources:
        mem_mb=megabytes("{paper}/claims"),
        runtime=minutes("{paper}/claims"),
    params:
        settings=ask(plan.claims_settings),
        scale=config["scale"],
        files=keyed_inputs,
    message:
        "{wildcards.paper}: measure the claims"
    shell:
        "REPLIFED_LOG={log:q} python -m replifed"
        " claims measure {wildcards.paper} --settings {params.settings:q}"
        " --scale {params.scale} {params.files} --out {output.claims:q}"
        " --environment {output.environment:q} > {log:q} 2>&1"


# One claim, and what it needs: the command that stands beside it in claims.csv.
rule measure_claim:
    input:
        unpack(ask(plan.claim_inputs)),
    output:
        plan.in_results("{paper}/claims/{claim}.csv"),
    log:
        plan.in_logs("{paper}/claims/{claim}"),
    benchmark:
        plan.in_benchmarks("{paper}/claims/{claim}")
    conda:
        "../../environment.yml"
    resources:
        mem_mb=megabytes("{paper}/claims/{claim}"),
        runtime=minutes("{paper}/claims/{claim}"),
    params:
        settings=ask(plan.claims_settings),
        scale=config["scale"],
        files=keyed_inputs,
    message:
        "{wildcards.paper}: measure {wildcards.claim}"
    shell:
        "REPLIFED_LOG={log:q} python -m replifed"
        " claims measure {wildcards.paper} --only {wildcards.claim:q}"
        " --settings {params.settings:q} --scale {params.scale} {params.files}"
        " --out {output:q} > {log:q} 2>&1"


rule errata:
    input:
        source=ask(plan.paper_source, "measure_errata", "errata"),
    output:
        plan.in_results("{paper}/errata.csv"),
    log:
        plan.in_logs("{paper}/errata"),
    benchmark:
        plan.in_benchmarks("{paper}/errata")
    conda:
        "../../environment.yml"
    resources:
        mem_mb=megabytes("{paper}/errata", 1000),
        runtime=minutes("{paper}/errata"),
    message:
        "{wildcards.paper}: check the errata"
    shell:
        "REPLIFED_LOG={log:q} python -m replifed"
        " errata {wildcards.paper} --out {output:q} > {log:q} 2>&1"


rule claims:
    input:
        files=[plan.in_results(f"{paper}/claims.csv") for paper in config["papers"]],
        source=plan.collection_source(),
    output:
        claims=plan.in_results("claims.csv"),
        statements=plan.in_results("statements.csv"),
        not_claimed=plan.in_results("not_claimed.csv"),
    log:
        plan.in_logs("claims"),
    benchmark:
        plan.in_benchmarks("claims")
    conda:
        "../../environment.yml"
    resources:
        mem_mb=megabytes("claims", 500),
        runtime=minutes("claims"),
    message:
        "collect the claims of all papers"
    shell:
        "REPLIFED_LOG={log:q} python -m replifed"
        " claims collect {input.files:q} --out {output.claims:q}"
        " --statements {output.statements:q} --not-claimed {output.not_claimed:q} > {log:q} 2>&1"
