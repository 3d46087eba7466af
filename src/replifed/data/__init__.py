"""Data sets: sources, download, parsing, and surrogates."""

# Here, so that jobs that name it do not depend on the catalogue.
SURROGATE_STAMP = "SURROGATE DATA"
