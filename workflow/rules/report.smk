rule comparison_report:
    input:
        artefacts=plan.comparison_artefacts(),
        source=sources_of("replifed.report.page"),
    output:
        plan.comparison_report(),
    log:
        plan.in_logs("comparison_report"),
    benchmark:
        plan.in_benchmarks("comparison_report")
    conda:
        "../../environment.yml"
    resources:
        mem_mb=megabytes("comparison_report", 1000),
        runtime=minutes("comparison_report"),
    params:
        figures=lambda wildcards: config["paths"]["figures"],
        scale=config["scale"],
        settings=lambda wildcards: plan.report_settings([parts.COMPARE]),
    message:
        "write the report of the comparison"
    shell:
        "REPLIFED_LOG={log:q} python -m replifed"
        " report --single --figures-dir {params.figures:q} --scale {params.scale}"
        " --settings {params.settings:q} --out {output:q} > {log:q} 2>&1"


rule report:
    input:
        claims=plan.in_results("claims.csv"),
        errata=[plan.in_results(f"{paper}/errata.csv") for paper in config["papers"]],
        artefacts=plan.artefact_files(*plan.papers),
        source=plan.report_source(*plan.papers),
    output:
        **plan.report_outputs(),
    log:
        plan.in_logs("report"),
    benchmark:
        plan.in_benchmarks("report")
    conda:
        "../../environment.yml"
    resources:
        mem_mb=megabytes("report", 1000),
        runtime=minutes("report"),
    params:
        figures=lambda wildcards: config["paths"]["figures"],
        scale=config["scale"],
        settings=lambda wildcards: plan.report_settings(),  # which may hold braces
        files=lambda wildcards, output: flags(output),
        single="",
    message:
        "write the report"
    shell:
        "REPLIFED_LOG={log:q} python -m replifed"
        " report --claims {input.claims:q} --errata {input.errata:q}"
        " --figures-dir {params.figures:q} --scale {params.scale}"
        " --settings {params.settings:q} {params.single} {params.files} > {log:q} 2>&1"


# The report as one file, to be sent to somebody.
use rule report as single_report with:
    output:
        out=plan.in_results("report-single.html"),
    log:
        plan.in_logs("single_report"),
    benchmark:
        plan.in_benchmarks("single_report")
    params:
        figures=lambda wildcards: config["paths"]["figures"],
        scale=config["scale"],
        settings=lambda wildcards: plan.report_settings(),  # which may hold braces
        files=lambda wildcards, output: flags(output),
        single="--single",
    message:
        "write the report as one file"


# One paper alone, likewise as one file.
use rule report as paper_report with:
    input:
        claims=plan.in_results("{paper}/claims.csv"),
        errata=plan.in_results("{paper}/errata.csv"),
        artefacts=lambda wildcards: plan.artefact_files(wildcards.paper),
        source=lambda wildcards: plan.report_source(wildcards.paper),
    output:
        out=plan.in_results("{paper}/report.html"),
    log:
        plan.in_logs("{paper}/report"),
    benchmark:
        plan.in_benchmarks("{paper}/report")
    resources:
        mem_mb=megabytes("{paper}/report", 1000),
        runtime=minutes("{paper}/report"),
    params:
        settings=lambda wildcards: plan.report_settings([wildcards.paper]),
        single="--single",
    message:
        "{wildcards.paper}: write its page of the report"


# Every picture at the papers' settings, on a page that is kept with the code.
if config["scale"] == "paper":

    rule gallery:
        input:
            claims=plan.in_results("claims.csv"),
            artefacts=plan.artefact_files(*plan.papers),
            source=sources_of("replifed.report.gallery"),
        output:
            "docs/pictures.md",
        log:
            plan.in_logs("gallery"),
        benchmark:
            plan.in_benchmarks("gallery")
        conda:
            "../../environment.yml"
        resources:
            mem_mb=megabytes("gallery", 1000),
            runtime=minutes("gallery"),
        params:
            figures=lambda wildcards: config["paths"]["figures"],
            settings=lambda wildcards: plan.report_settings(),  # which may hold braces
        message:
            "write the page of pictures"
        shell:
            "REPLIFED_LOG={log:q} python -m replifed"
            " gallery --claims {input.claims:q} --figures-dir {params.figures:q} --settings {params.settings:q}"
            " --out {output:q} > {log:q} 2>&1"
