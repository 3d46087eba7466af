# Hashes of all files that jobs made, and of the data that they were made from.
use rule parse as manifest with:
    input:
        files_before(None, "manifest:"),
    output:
        files_of("manifest"),
    log:
        log_of(called("manifest")),
    benchmark:
        benchmark_of(called("manifest"))
    resources:
        **resources_of("manifest:"),
    params:
        **params_of("manifest:"),


# The manifest is no input here: Snakemake would write it anew if a file had changed, and find nothing.
rule verify:
    log:
        log_of("verify"),
    localrule: True
    conda:
        "../../environment.yml"
    resources:
        mem_mb=200,
    params:
        manifest=TABLE.files("manifest:")[0],
        folders=TABLE.verified_folders(),
        raw=f"{config['paths']['data']}/raw",
    message:
        "compare every file with the manifest"
    shell:
        'trap "rm -f {log:q}" EXIT; python -m replifed manifest verify {params.manifest:q} --folders {params.folders:q}'
        " --raw-dir {params.raw:q}"
        " 2>&1 | tee {log:q}"
