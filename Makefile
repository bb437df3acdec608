# The only two commands a newcomer needs: `make demo` and `make test`.
# Both create .venv and install everything themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# One thread per process: these matrices are small, and threads only fight over them.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test compiled lint fuzz campaign bench peers results docs clean

demo: $(VENV)/.installed
	$(BIN)/rescore demo -o demo

# Modules are compiled once even where that is switched off: tests start many processes.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(VENV)/.test
	@$(MAKE) --no-print-directory --output-sync -j 2 lint compiled
	$(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder

compiled: $(VENV)/.test
	@$(BIN)/python tests/compile_first.py

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# New random examples for every property, where `make test` repeats the same ones.
fuzz: $(VENV)/.test
	$(BIN)/pytest -q -n 2 --hypothesis-profile new $$(grep -rl hypothesis tests --include 'test_*.py')

# Faults made on purpose, in great number (campaigns/): under half an hour, resumed where it stopped.
campaign: $(VENV)/.test
	$(BIN)/python -m campaigns

# A core of the tests with the lowest versions that pyproject.toml allows.  What is deprecated in them
# by now is not ours to mend.
LOWEST := build/lowest
lowest: $(VENV)/.test
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(LOWEST)
	VIRTUAL_ENV=$(LOWEST) $(BIN)/uv pip install --quiet --resolution lowest-direct --editable ".[excel,parquet]"
	VIRTUAL_ENV=$(LOWEST) $(BIN)/uv pip install --quiet pytest hypothesis polars
	NUMBA_CACHE_DIR=$(CURDIR)/$(LOWEST)/numba $(LOWEST)/bin/python -m pytest -q \
	  -W ignore::DeprecationWarning tests/graph tests/tables tests/test_fitting.py tests/test_bad_inputs.py

# The wheel and the sdist, each in an environment of its own, outside the repo.
wheel-test: $(VENV)/.test
	rm -rf build/dist && $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir build/dist .
	$(BIN)/python -m pip install --quiet build
	$(BIN)/python -m build --quiet --sdist --outdir build/dist .
	for made in build/dist/*.whl build/dist/*.tar.gz; do \
	  $(PYTHON) -m venv --clear build/clean && build/clean/bin/pip install --quiet $$made && \
	  (cd / && OUT=$$(mktemp -d) && $(CURDIR)/build/clean/bin/rescore demo -o $$OUT/demo && rm -rf $$OUT) || exit 1; \
	done

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/notears_against_gcastle.py

# For benchmarks/any_units.py, which calls its python on saved tables.
peers: .venv-peers/.installed

results: $(VENV)/.test
	$(BIN)/rescore reproduce --full --page -o results
	$(BIN)/python benchmarks/pages.py

# The site, from docs/ and the docstrings; a warning is an error.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	@echo "Open build/docs/index.html"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "rescore needs Python 3.11 or newer; run: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group test
	@touch $@

$(VENV)/.bench: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --group bench
	@touch $@

# lingam holds numpy and scipy back, so that it has an environment of its own.
.venv-peers/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	.venv-peers/bin/python -m pip install --quiet --group peers
	@touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

clean:
	rm -rf $(VENV) .venv-peers demo dist build
