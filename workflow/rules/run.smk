# One job is one method on one experiment, with all its repetitions and settings inside.
rule run_method:
    input:
        unpack(ask(plan.run_inputs)),
    output:
        plan.in_results("{paper}/{experiment}/{method}.parquet"),
    log:
        plan.in_logs("{paper}/{experiment}/{method}"),
    benchmark:
        plan.in_benchmarks("{paper}/{experiment}/{method}")
    wildcard_constraints:
        paper=grouping.papers_of_whole_runs(),
    priority: 10
    conda:
        "../../environment.yml"
    resources:
        mem_mb=megabytes("{paper}/{experiment}/{method}", stated=ask(plan.memory)),
        runtime=minutes("{paper}/{experiment}/{method}", otherwise=240),
    params:
        settings=ask(plan.step_settings, "run"),
        files=input_flags,
    message:
        "{wildcards.paper}: run {wildcards.method} on {wildcards.experiment}"
    shell:
        "REPLIFED_LOG={log:q} python -m replifed"
        " run {wildcards.paper} {wildcards.experiment} {wildcards.method}"
        " --settings {params.settings:q} {params.files}"
        " --out {output:q} 2>&1 | tee {log:q} >&2"


# Long runs: several jobs, each with some of the repetitions, and one that joins what they leave.
rule run_share:
    input:
        unpack(ask(plan.run_inputs)),
    output:
        temp(plan.in_shares("{paper}/{experiment}/{method}.{share}")),
    log:
        plan.in_logs("{paper}/{experiment}/{method}.{share}"),
    benchmark:
        plan.in_benchmarks("{paper}/{experiment}/{method}.{share}")
    wildcard_constraints:
        share="[0-9]+",
    priority: 10
    conda:
        "../../environment.yml"
    resources:
        mem_mb=megabytes(
            "{paper}/{experiment}/{method}.{share}", stated=ask(plan.memory)
        ),
        runtime=minutes("{paper}/{experiment}/{method}.{share}", otherwise=240),
    params:
        settings=ask(plan.step_settings, "run"),
        share=ask(plan.share),
        files=input_flags,
    message:
        "{wildcards.paper}: run {wildcards.method} on {wildcards.experiment}, share {params.share}"
    shell:
        "REPLIFED_LOG={log:q} python -m replifed"
        " run {wildcards.paper} {wildcards.experiment} {wildcards.method}"
        " --settings {params.settings:q} --share {params.share} {params.files}"
        " --out {output:q} 2>&1 | tee {log:q} >&2"


rule join_shares:
    input:
        files=ask(plan.share_files),
        source=sources_of("replifed.store.histories"),
    output:
        plan.in_results("{paper}/{experiment}/{method}.parquet"),
    log:
        plan.in_logs("{paper}/{experiment}/{method}.joined"),
    benchmark:
        plan.in_benchmarks("{paper}/{experiment}/{method}.joined")
    wildcard_constraints:
        paper=grouping.papers_of_shared_runs(),
    priority: 20
    conda:
        "../../environment.yml"
    resources:
        mem_mb=megabytes("{paper}/{experiment}/{method}.joined", 1000),
        runtime=minutes("{paper}/{experiment}/{method}.joined"),
    message:
        "{wildcards.paper}: join the shares of {wildcards.method} on {wildcards.experiment}"
    shell:
        "REPLIFED_LOG={log:q} python -m replifed"
        " join-shares {input.files:q} --out {output:q} > {log:q} 2>&1"


# Grouped jobs: the searches and runs of one method on several experiments, where each takes but seconds.
for job in grouping.runs:

    rule:
        name:
            job.rule
        input:
            unpack(ask(job.inputs)),
        output:
            job.patterns,
        log:
            plan.in_logs(f"{job.paper}/{job.name}/{{method}}"),
        benchmark:
            plan.in_benchmarks(f"{job.paper}/{job.name}/{{method}}")
        wildcard_constraints:
            method=job.method,
        # The first method of each paper, then the second ones: methods of one paper call the same kernels, which
        # two of them at a time would both compile. Above those of single jobs, whose searches have 20.
        priority: max(60 - job.number, 21)
        conda:
            "../../environment.yml"
        resources:
            mem_mb=megabytes(f"{job.paper}/{job.name}/{{method}}", stated=job.memory),
            runtime=minutes(f"{job.paper}/{job.name}/{{method}}", otherwise=240),
        params:
            paper=job.paper,
            settings=job.settings,
            inputs=keyed_inputs,
            outputs=job.output_pairs(),
            note=ask(job.note_command),
        message:
            f"{job.paper}: run {{wildcards.method}} on {', '.join(job.experiments)}"
        shell:
            "REPLIFED_LOG={log:q} python -m replifed"
            " run-together {params.paper} {wildcards.method} --settings {params.settings:q}"
            " {params.inputs} --outputs {params.outputs} 2>&1 | tee {log:q} >&2; {params.note}"
