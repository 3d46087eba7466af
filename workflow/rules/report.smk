use rule parse as report with:
    input:
        files_before(None, "report:"),
    output:
        files_of("report"),
    log:
        log_of(called("report")),
    benchmark:
        benchmark_of(called("report"))
    resources:
        **resources_of("report:"),
    params:
        **params_of("report:"),


# One paper alone, as one file.
use rule parse as paper_report with:
    output:
        files_of("paper_report"),
    log:
        log_of(called("paper_report")),
    benchmark:
        benchmark_of(called("paper_report"))
    wildcard_constraints:
        paper_report=one_of("paper_report"),


# The report as one file, to be sent to somebody.
use rule parse as single_report with:
    input:
        files_before(None, "single_report:"),
    output:
        files_of("single_report"),
    log:
        log_of(called("single_report")),
    benchmark:
        benchmark_of(called("single_report"))
    resources:
        **resources_of("single_report:"),
    params:
        **params_of("single_report:"),


# Every picture at the papers' settings, on a page that is kept with the code.
if "gallery:" in TABLE:

    use rule parse as gallery with:
        input:
            files_before(None, "gallery:"),
        output:
            files_of("gallery"),
        log:
            log_of(called("gallery")),
        benchmark:
            benchmark_of(called("gallery"))
        resources:
            **resources_of("gallery:"),
        params:
            **params_of("gallery:"),


if "comparison_report:" in TABLE:

    use rule parse as comparison_report with:
        input:
            files_before(None, "comparison_report:"),
        output:
            files_of("comparison_report"),
        log:
            log_of(called("comparison_report")),
        benchmark:
            benchmark_of(called("comparison_report"))
        resources:
            **resources_of("comparison_report:"),
        params:
            **params_of("comparison_report:"),
