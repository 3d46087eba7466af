rule figure:
    input:
        unpack(artefact_inputs),
    output:
        csv=in_figures("{paper}/{artefact}.csv"),
        pdf=in_figures("{paper}/{artefact}.pdf"),
        png=in_figures("{paper}/{artefact}.png"),
    log:
        in_logs("{paper}/{artefact}"),
    benchmark:
        in_benchmarks("{paper}/{artefact}")
    wildcard_constraints:
        artefact=names_of_kind("figure"),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        settings=artefact_settings,
        scale=config["scale"],
        files=artefact_flags,
    message:
        "{wildcards.paper}: draw {wildcards.artefact}"
    shell:
        "python -m replifed artefact {wildcards.paper} {wildcards.artefact}"
        " --settings {params.settings:q} --scale {params.scale} {params.files}"
        " --csv {output.csv:q} --pdf {output.pdf:q} --png {output.png:q} > {log:q} 2>&1"


rule table:
    input:
        unpack(artefact_inputs),
    output:
        csv=in_figures("{paper}/{artefact}.csv"),
        md=in_figures("{paper}/{artefact}.md"),
        tex=in_figures("{paper}/{artefact}.tex"),
    log:
        in_logs("{paper}/{artefact}"),
    benchmark:
        in_benchmarks("{paper}/{artefact}")
    wildcard_constraints:
        artefact=names_of_kind("table"),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        settings=artefact_settings,
        scale=config["scale"],
        files=artefact_flags,
    message:
        "{wildcards.paper}: write {wildcards.artefact}"
    shell:
        "python -m replifed artefact {wildcards.paper} {wildcards.artefact}"
        " --settings {params.settings:q} --scale {params.scale} {params.files}"
        " --csv {output.csv:q} --md {output.md:q} --tex {output.tex:q} > {log:q} 2>&1"
