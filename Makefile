# Everything a newcomer needs: `make demo` shows the main job, `make test` passes the tests.
PYTHON ?= python3
BIN := .venv/bin
# The Law School table is not part of the repository; tests that need it skip where it is not found.
ifneq ($(wildcard ../shared/data/law_school.csv),)
export COMMOD_DATA_HOME ?= $(abspath ../shared/data)
endif

# Tests start many processes: each would compile the package anew if no bytecode was kept.
unexport PYTHONDONTWRITEBYTECODE

# Tests run in a process per core. Further threads in each would wait for one another.
test test-fast test-search test-lowest: export OMP_NUM_THREADS := 1
test-3.%: export OMP_NUM_THREADS := 1

.PHONY: help setup docs docs-archive demo test test-fast test-search test-lowest lint format types contracts package check figures paper paper-quick bench bench-quick clean

help: ## list the targets
	@grep -E '^[a-z0-9.%-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("commod needs Python 3.11 or newer, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv

.venv/runtime: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

.venv/develop: .venv/runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,dev,docs]'
	@touch $@

.venv/docs: .venv/runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

setup: .venv/develop ## a virtual environment in .venv with the package, its extras and the tools

demo: .venv/runtime ## debias a real model end to end
	$(BIN)/commod demo

test: .venv/develop ## tests, README and docstrings, a process per core
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

test-fast: .venv/develop ## tests without Spark, PostgreSQL, browser, estimator checks, long properties and pages
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile -m "not slow" tests

test-search: .venv/develop ## property tests with new random seeds and ten times the examples (long)
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile -m hypothesis --hypothesis-profile=search tests

.venv-lowest/develop: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-lowest.txt -e '.[test]'
	@touch $@

# Old packages warn about each other, so a warning is no error here.
test-lowest: ## the fast tests with the lowest versions that pyproject.toml allows
	scripts/before_deadline.sh $(MAKE) .venv-lowest/develop
	scripts/before_deadline.sh .venv-lowest/bin/python -m pytest -n auto --maxprocesses 4 --dist loadfile -m "not slow" -o filterwarnings=default tests

# The package as users get it: a wheel, in an environment that has nothing else.
PYENV_VERSIONS := $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions
find-python = $(firstword $(wildcard $(PYENV_VERSIONS)/3.$(1).*/bin/python) $(shell command -v python3.$(1)))

dist/built: .venv/develop pyproject.toml README.md LICENSE scripts/package_readme.py $(shell find src -type f -not -name '*.pyc')
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*.whl dist/*.tar.gz
	@touch $@

package: dist/built ## sdist and wheel, checked; the wheel alone runs the demo in an empty environment
	rm -rf .venv-wheel && $(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd .venv-wheel && bin/python -m pip check && bin/commod demo

# pip keeps an installed wheel of the same version unless it is told to replace it.
.venv-3.%/develop: dist/built constraints.txt
	$(call find-python,$*) -m venv .venv-3.$*
	.venv-3.$*/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "$$(echo dist/*.whl)[test]"
	.venv-3.$*/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall dist/*.whl
	@touch $@

.PRECIOUS: .venv-3.%/develop

test-3.%: dist/built ## the fast tests of the wheel on another Python, e.g. test-3.13
	@if [ -z "$(call find-python,$*)" ]; then echo "Python 3.$* is not on this machine: its tests are skipped."; \
	else scripts/before_deadline.sh $(MAKE) .venv-3.$*/develop && \
	scripts/before_deadline.sh .venv-3.$*/bin/python -m pytest -n auto --maxprocesses 4 --dist loadfile -m "not slow" tests; fi

lint: .venv/develop ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: .venv/develop ## let ruff fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: .venv/develop ## mypy --strict
	$(BIN)/mypy

contracts: .venv/develop ## data goes one way through the house
	$(BIN)/lint-imports

# One thread for each process: pages and gallery run in several processes (COMMOD_DOCS_JOBS).
docs: .venv/docs ## the documentation site in docs/_build/html, its links and pages checked
	rm -rf docs/_build docs/gallery docs/reference/generated
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -W --keep-going -q -j auto -b html -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/python scripts/check_site.py docs/_build/html

docs-archive: docs ## the same as one file for a static host, docs/_build/commod-docs.tar.gz
	$(BIN)/python scripts/archive_site.py docs/_build/html docs/_build/commod-docs.tar.gz

check: lint types contracts test docs paper-quick bench-quick package test-3.12 test-3.13 test-lowest ## what CI runs

figures: .venv/develop ## measure every promised figure of quality beside its bar (about two hours)
	PYTHONPATH=. $(BIN)/python benchmarks/figures.py $(FIGURES)

paper: .venv/develop ## every table and figure of the paper, resumable (under an hour on two cores)
	$(BIN)/python -m experiments

paper-quick: .venv/develop ## the same with few splits and points (minutes)
	$(BIN)/python -m experiments --quick

bench: .venv/develop ## speed and memory, ours and other libraries', into docs/benchmarks.md (two to three hours)
	$(BIN)/python -m benchmarks.bench $(BENCH)

bench-quick: .venv/develop ## the same, tiny: shows that every benchmark runs (minutes)
	$(BIN)/python -m benchmarks.bench --quick

clean: ## remove what the targets above made
	rm -rf .venv .venv-* dist commod-demo docs/_build docs/gallery docs/reference/generated benchmarks/results experiments/.cache experiments/results/quick .pytest_cache .mypy_cache .ruff_cache .hypothesis
