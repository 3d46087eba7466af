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
        paper=drawn_singly(),
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
        paper=drawn_singly(),
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


# Where all that a paper computes takes seconds, one job makes its artefacts, if all are wanted.
for name in drawn_together():

    rule:
        name:
            f"artefacts_{name}"
        input:
            unpack(artefacts_inputs(name)),
        # With a wildcard, although there is one paper: a rule without would be listed as a target of its own.
        output:
            list(artefact_outputs(name, "{paper}").values()),
        log:
            in_logs("{paper}/artefacts"),
        benchmark:
            in_benchmarks("{paper}/artefacts")
        wildcard_constraints:
            paper=name,
        conda:
            "../../environment.yml"
        threads: 1
        resources:
            mem_mb=2000,
        params:
            settings=artefacts_settings(name),
            scale=config["scale"],
            inputs=keyed_flag(name, settings.artefacts_keys(config[name])),
            outputs=keyed_files(artefact_outputs(name)),
            note=artefacts_note(name),
        message:
            "{wildcards.paper}: make all figures and tables"
        shell:
            "python -m replifed artefacts {wildcards.paper} --settings {params.settings:q} --scale {params.scale}"
            " {params.inputs} --outputs {params.outputs} > {log:q} 2>&1; {params.note}"
