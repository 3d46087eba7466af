"""Nothing is printed here that could be wrong."""

ERRATA = ()
