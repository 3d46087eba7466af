rule measure_claims:
    input:
        unpack(claims_inputs),
    output:
        in_results("{paper}/claims.csv"),
    log:
        in_logs("{paper}/claims"),
    benchmark:
        in_benchmarks("{paper}/claims")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        settings=claims_settings,
        scale=config["scale"],
        files=claims_flags,
    message:
        "{wildcards.paper}: measure the claims"
    shell:
        "python -m replifed claims measure {wildcards.paper} --settings {params.settings:q}"
        " --scale {params.scale} {params.files} --out {output:q} > {log:q} 2>&1"


rule errata:
    input:
        source=lambda wildcards: sources_of(
            "replifed.papers.jobs:measure_errata",
            f"replifed.papers.{wildcards.paper}.errata",
        ),
    output:
        in_results("{paper}/errata.csv"),
    log:
        in_logs("{paper}/errata"),
    benchmark:
        in_benchmarks("{paper}/errata")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
    message:
        "{wildcards.paper}: check the errata"
    shell:
        "python -m replifed errata {wildcards.paper} --out {output:q} > {log:q} 2>&1"


rule claims:
    input:
        files=[in_results(f"{paper}/claims.csv") for paper in config["papers"]],
        source=sources_of("replifed.claims.verdicts"),
    output:
        in_results("claims.csv"),
    log:
        in_logs("claims"),
    benchmark:
        in_benchmarks("claims")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=500,
    message:
        "collect the claims of all papers"
    shell:
        "python -m replifed claims collect {input.files:q} --out {output:q} > {log:q} 2>&1"


rule claims_timing:
    input:
        unpack(timing_inputs),
    output:
        in_results("claims_timing.csv"),
    log:
        in_logs("claims_timing"),
    benchmark:
        in_benchmarks("claims_timing")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=500,
    params:
        scale=config["scale"],
        files=timing_flags,
    message:
        "measure the claims on seconds"
    shell:
        "python -m replifed claims timing --scale {params.scale} {params.files}"
        " --out {output:q} > {log:q} 2>&1"
