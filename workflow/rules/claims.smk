use rule parse as measure_claims with:
    output:
        files_of("measure_claims"),
    log:
        log_of(called("measure_claims")),
    benchmark:
        benchmark_of(called("measure_claims"))
    wildcard_constraints:
        measure_claims=one_of("measure_claims"),


# One claim, and what it needs: the command that stands beside it in claims.csv.
use rule parse as measure_claim with:
    output:
        files_of("measure_claim"),
    log:
        log_of(called("measure_claim")),
    benchmark:
        benchmark_of(called("measure_claim"))
    wildcard_constraints:
        measure_claim=f"({'|'.join(TABLE.papers)})/claims/[^/]+",


use rule parse as errata with:
    output:
        files_of("errata"),
    log:
        log_of(called("errata")),
    benchmark:
        benchmark_of(called("errata"))
    wildcard_constraints:
        errata=one_of("errata"),


use rule parse as claims with:
    input:
        files_before(None, "claims:"),
    output:
        files_of("claims"),
    log:
        log_of(called("claims")),
    benchmark:
        benchmark_of(called("claims"))
    resources:
        **resources_of("claims:"),
    params:
        **params_of("claims:"),
