# Figures and tables differ in their files.
for kind, suffixes in SUFFIXES.items():
    verb = {"figure": "draw", "table": "write"}[kind]

    rule:
        name:
            kind
        input:
            unpack(ask(plan.artefact_inputs)),
        output:
            **{
                suffix: shown(plan.in_figures(f"{{paper}}/{{artefact}}.{suffix}"))
                for suffix in suffixes
            },
        log:
            plan.in_logs("{paper}/{artefact}"),
        benchmark:
            plan.in_benchmarks("{paper}/{artefact}")
        wildcard_constraints:
            paper=grouping.papers_of_single_artefacts(),
            artefact=one_of(plan.artefact_names(kind)),
        conda:
            "../../environment.yml"
        resources:
            mem_mb=megabytes("{paper}/{artefact}"),
            runtime=minutes("{paper}/{artefact}"),
        params:
            settings=ask(plan.artefact_settings),
            scale=config["scale"],
            files=keyed_inputs,
            written=lambda wildcards, output: flags(dict(output.items())),
        message:
            f"{{wildcards.paper}}: {verb} {{wildcards.artefact}}"
        shell:
            "REPLIFED_LOG={log:q} python -m replifed"
            " artefact {wildcards.paper} {wildcards.artefact}"
            " --settings {params.settings:q} --scale {params.scale} {params.files} {params.written} > {log:q} 2>&1"


# Grouped jobs: all artefacts of a paper that wait for runs, where each takes but seconds.
for job in grouping.artefacts:

    rule:
        name:
            job.rule
        input:
            unpack(ask(job.inputs)),
        output:
            [shown(pattern) for pattern in job.patterns],
        log:
            plan.in_logs("{paper}/artefacts"),
        benchmark:
            plan.in_benchmarks("{paper}/artefacts")
        wildcard_constraints:
            paper=job.paper,
        conda:
            "../../environment.yml"
        resources:
            mem_mb=megabytes("{paper}/artefacts"),
            runtime=minutes("{paper}/artefacts"),
        params:
            settings=job.settings,
            scale=config["scale"],
            inputs=keyed_inputs,
            outputs=job.output_pairs(),
            note=ask(job.note_command),
        message:
            "{wildcards.paper}: make figures and tables of runs"
        shell:
            "REPLIFED_LOG={log:q} python -m replifed"
            " artefacts {wildcards.paper} --settings {params.settings:q} --scale {params.scale}"
            " {params.inputs} --outputs {params.outputs} > {log:q} 2>&1; {params.note}"
