# Hashes of all files that jobs made, and of the data that they were made from.
rule manifest:
    input:
        files=plan.manifest_files(),
        source=sources_of("replifed.store.manifest"),
    output:
        manifest=plan.in_results("manifest.csv"),
        environment=plan.in_results("environment.json"),
    log:
        plan.in_logs("manifest"),
    benchmark:
        plan.in_benchmarks("manifest")
    conda:
        "../../environment.yml"
    resources:
        mem_mb=megabytes("manifest", 200),
        runtime=minutes("manifest"),
    params:
        folders=plan.raw_folders(),
    message:
        "list what was made, by hash"
    shell:
        "REPLIFED_LOG={log:q} python -m replifed"
        " manifest write {input.files:q} --folders {params.folders:q} --out {output.manifest:q}"
        " --environment {output.environment:q} > {log:q} 2>&1"


# The manifest is no input here: Snakemake would write it anew if a file had changed, and find nothing.
rule verify:
    log:
        plan.in_logs("verify"),
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        mem_mb=200,
    params:
        manifest=plan.in_results("manifest.csv"),
        folders=plan.verified_folders(),
        raw=plan.in_data("raw"),
    message:
        "compare every file with the manifest"
    shell:
        'trap "rm -f {log:q}" EXIT; python -m replifed manifest verify {params.manifest:q} --folders {params.folders:q}'
        " --raw-dir {params.raw:q}"
        " 2>&1 | tee {log:q}"
