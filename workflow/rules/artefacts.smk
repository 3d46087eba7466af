rule figure:
    input:
        unpack(ask(plan.artefact_inputs)),
    output:
        csv=plan.in_figures("{paper}/{artefact}.csv"),
        pdf=plan.in_figures("{paper}/{artefact}.pdf"),
        png=plan.in_figures("{paper}/{artefact}.png"),
    log:
        plan.in_logs("{paper}/{artefact}"),
    benchmark:
        plan.in_benchmarks("{paper}/{artefact}")
    wildcard_constraints:
        paper=grouping.papers_of_single_artefacts(),
        artefact=one_of(plan.artefact_names("figure")),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        settings=ask(plan.artefact_settings),
        scale=config["scale"],
        files=ask(plan.artefact_flags),
    message:
        "{wildcards.paper}: draw {wildcards.artefact}"
    shell:
        "python -m replifed artefact {wildcards.paper} {wildcards.artefact}"
        " --settings {params.settings:q} --scale {params.scale} {params.files}"
        " --csv {output.csv:q} --pdf {output.pdf:q} --png {output.png:q} > {log:q} 2>&1"


rule table:
    input:
        unpack(ask(plan.artefact_inputs)),
    output:
        csv=plan.in_figures("{paper}/{artefact}.csv"),
        md=plan.in_figures("{paper}/{artefact}.md"),
        tex=plan.in_figures("{paper}/{artefact}.tex"),
    log:
        plan.in_logs("{paper}/{artefact}"),
    benchmark:
        plan.in_benchmarks("{paper}/{artefact}")
    wildcard_constraints:
        paper=grouping.papers_of_single_artefacts(),
        artefact=one_of(plan.artefact_names("table")),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        settings=ask(plan.artefact_settings),
        scale=config["scale"],
        files=ask(plan.artefact_flags),
    message:
        "{wildcards.paper}: write {wildcards.artefact}"
    shell:
        "python -m replifed artefact {wildcards.paper} {wildcards.artefact}"
        " --settings {params.settings:q} --scale {params.scale} {params.files}"
        " --csv {output.csv:q} --md {output.md:q} --tex {output.tex:q} > {log:q} 2>&1"


# Where all that a paper computes takes seconds, one job makes its artefacts, if all are wanted.
for job in grouping.artefacts:

    rule:
        name:
            job.rule
        input:
            unpack(ask(job.inputs)),
        output:
            job.patterns,
        log:
            plan.in_logs("{paper}/artefacts"),
        benchmark:
            plan.in_benchmarks("{paper}/artefacts")
        wildcard_constraints:
            paper=job.paper,
        conda:
            "../../environment.yml"
        threads: 1
        resources:
            mem_mb=2000,
        params:
            settings=job.settings,
            scale=config["scale"],
            inputs=job.inputs_flag(),
            outputs=job.output_pairs(),
            note=ask(job.note_command),
        message:
            "{wildcards.paper}: make all figures and tables"
        shell:
            "python -m replifed artefacts {wildcards.paper} --settings {params.settings:q} --scale {params.scale}"
            " {params.inputs} --outputs {params.outputs} > {log:q} 2>&1; {params.note}"
