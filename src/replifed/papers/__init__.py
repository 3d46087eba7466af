"""The papers: a package each, with the jobs that run them all."""
