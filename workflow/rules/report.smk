rule report:
    input:
        claims=in_results("claims.csv"),
        errata=[in_results(f"{paper}/errata.csv") for paper in config["papers"]],
        artefacts=all_artefact_files(),
        source=sources_of("replifed.report.page"),
    output:
        in_results("report.html"),
    log:
        in_logs("report"),
    benchmark:
        in_benchmarks("report")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
    params:
        figures=lambda wildcards: config["paths"]["figures"],
        scale=config["scale"],
        settings=report_settings(),
    message:
        "write the report"
    shell:
        "python -m replifed report --claims {input.claims:q} --errata {input.errata:q} --figures-dir {params.figures:q}"
        " --scale {params.scale} --settings {params.settings:q} --out {output:q} > {log:q} 2>&1"
