"""Methods of one's own beside built-in ones, on the problems of `papers.cross`: `snakemake compare`."""
