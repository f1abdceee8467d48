# Everything starts here: `make train` and `make test` install what they need. `make help` lists the targets.
#
#   PYTHON=python3.12 make install      another Python (3.11 or newer) for the environment
#   EXTRAS=mpi,test,gpu12 make install  other extras of pyproject.toml
#   TESTS=tests/comm make test          a part of the tests

PYTHON ?= python3
VENV   ?= .venv
EXTRAS ?= mpi,test,plot,digits
TESTS  ?= tests
CONFIG ?= examples/configs/python-docs.toml

BIN     := $(VENV)/bin
PYTEST  := $(BIN)/python -m pytest
INSTALL := $(VENV)/.minigpt-installed
MPI     := $(VENV)/.minigpt-settings

# Open MPI refuses to start as root without these two.
export OMPI_ALLOW_RUN_AS_ROOT = 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM = 1

.DEFAULT_GOAL := help
.PHONY: help install train test test-mpi test-all test-strict test-gpu bench bench-gpu lint clean

help:            ## this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

install: $(MPI)  ## create .venv with everything, MPI and its settings included
	@echo "Installed. Next: source $(BIN)/activate && minigpt --help"

train: $(MPI)    ## the main job: two ranks train a GPT on the documentation of Python
	$(BIN)/mpirun -n 2 $(BIN)/minigpt train $(CONFIG)

test: $(MPI)     ## every test once at small sizes, under real mpirun too
	$(PYTEST) -m "not slow and not gpu" $(TESTS)

test-mpi: $(MPI) ## only the tests that need mpirun
	$(PYTEST) -m "mpi and not slow and not gpu" $(TESTS)

test-all: $(MPI) ## also slow tests and many more examples, then everything on the strict device
	HYPOTHESIS_PROFILE=all $(PYTEST) -m "not gpu" $(TESTS)
	MINIGPT_DEVICE=strict $(PYTEST) -m "not slow and not gpu" $(TESTS)

test-strict: $(MPI) ## ops, layers and training on an array module as strict as CuPy
	MINIGPT_DEVICE=strict $(PYTEST) -m "not slow and not gpu and not mpi" tests/autograd tests/minigpt

test-gpu: $(MPI) ## the tests that need a CUDA device; skipped with the reason where there is none
	$(PYTEST) -m gpu $(TESTS)

bench: $(MPI)    ## speed of training, beside PyTorch where it is installed
	$(BIN)/minigpt bench

bench-gpu: $(MPI) ## the same on a CUDA device
	MINIGPT_DEVICE=cuda $(BIN)/minigpt bench

lint: $(MPI)     ## ruff
	$(BIN)/python -m ruff check .

clean:           ## remove caches and build leftovers; keeps .venv and runs
	rm -rf .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "minigpt needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Name another:" \
	       "make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' || { \
	  echo "This Python cannot create environments: install its venv package (Debian: apt install python3-venv)" >&2; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)

$(INSTALL): pyproject.toml hatch_build.py | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	@touch $@

$(MPI): $(INSTALL) minigpt/mpi_settings.py
	$(BIN)/python -m minigpt.mpi_settings
	@touch $@
