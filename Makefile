# Sets up the environment where none holds the project, then runs the workflow or its tests in it.
# To choose otherwise: make CORES=4 PYTHON=/path/to/python3.12

CORES ?= $(shell sh tools/cores.sh)
export PYTHON
IN_ENVIRONMENT := sh tools/environment.sh

.PHONY: all small test help setup

all:
	$(IN_ENVIRONMENT) snakemake --cores $(CORES) all

small:
	$(IN_ENVIRONMENT) snakemake --cores $(CORES) all --configfile config/small.yaml

test:
	$(IN_ENVIRONMENT) pytest -n 2

setup:
	$(IN_ENVIRONMENT)

help:
	@echo "make        all figures, tables and verdicts of the papers: 1 h 44 min on 2 cores, 26 min on 8"
	@echo "make small  the same at a reduced scale, under results/small: 7 min on 2 cores"
	@echo "make setup  the environment alone, .venv: 2 to 4 min, once; make, make small and make test do so, too"
	@echo "make test   the tests: 5 min on 2 cores; the first call of any sets up .venv, 2 to 4 min"
	@echo "make help   these lines; to choose otherwise: make CORES=4 PYTHON=/path/to/python3.12"
