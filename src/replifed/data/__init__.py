"""Data sets: where they come from, and how they are read."""

# Here, so that jobs that name it do not depend on the catalogue.
SURROGATE_STAMP = "SURROGATE DATA"
