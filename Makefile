# Everything a newcomer needs: `make demo` shows the main job, `make test` passes the tests.
PYTHON ?= python3
BIN := .venv/bin
# The Law School table is not part of the repository; tests that need it skip where it is not found.
ifneq ($(wildcard ../shared/data/law_school.csv),)
export COMMOD_DATA_HOME ?= $(abspath ../shared/data)
endif

# Tests start many processes: each would compile the package anew if no bytecode was kept.
unexport PYTHONDONTWRITEBYTECODE

# Tests run in a process per core and one more, because some wait for a browser, an engine or a signal.
# Further threads in each would wait for one another.
WORKERS := $(shell $(PYTHON) -c 'import os; print(min(4, os.cpu_count() + 1))')
PYTEST := -m pytest -n $(WORKERS) --dist loadfile
test test-fast test-search coverage test-lowest smoke-lowest docs: export OMP_NUM_THREADS := 1
test-3.% smoke-3.%: export OMP_NUM_THREADS := 1

# CI runs these files on other Pythons and with the lowest versions: each room of the house once.
SMOKE := $(addprefix tests/, \
	test_public_api.py \
	_data/test_weights.py _displays/test_displays.py _explore/test_session.py _io/test_files.py _reporting/test_audit.py _reporting/test_report.py \
	_evidence/test_cut.py _statistics/test_calibrating.py _study/test_evaluation.py bounds/test_general_limits.py cli/test_cli.py \
	datasets/test_package_tables.py metrics/test_reference.py patch/test_patch_onnx.py patch/test_patch_scores.py patch/test_stored_patches.py \
	rivals/test_thresholds.py updates/test_as_in_the_paper.py updates/test_score_edit.py updates/test_several_constraints.py)

.PHONY: help setup docs docs-archive demo test test-fast test-search coverage same mutants test-lowest smoke-lowest lint format types contracts package check check-all figures paper paper-quick bench bench-quick cluster clean

help: ## list the targets
	@grep -E '^[a-z0-9.%-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("commod needs Python 3.11 or newer, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv

.venv/runtime: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[paper]'
	@touch $@

.venv/develop: .venv/runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,dev,docs]'
	@touch $@

setup: .venv/develop ## a virtual environment in .venv with the package, its extras and the tools

demo: .venv/runtime ## debias a real model end to end
	$(BIN)/commod demo

test: .venv/develop ## tests, README and docstrings, a process per core
	$(BIN)/python $(PYTEST)

test-fast: .venv/develop ## tests without Spark, PostgreSQL, browser, estimator checks, long properties and README
	$(BIN)/python $(PYTEST) -m "not slow" tests

test-search: .venv/develop ## property tests with new random seeds and ten times the examples (long)
	$(BIN)/python $(PYTEST) -m hypothesis --hypothesis-profile=search tests

coverage: .venv/develop ## the share of lines and branches of src/commod that the tests reach
	$(BIN)/coverage run $(PYTEST) -q
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --skip-covered

same: .venv/develop ## about 100 stored results of fits, patches, reports and commands are what they were (a minute)
	$(BIN)/python -m benchmarks.same_fits ControlledDebiaser Edit Engine Study Method Output Patch

mutants: .venv/develop ## the share of 200 seeded faults in src/commod that the tests find, by room (an hour or two)
	$(BIN)/python -m benchmarks.mutants

.venv-lowest/develop: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-lowest.txt -e '.[test]'
	@touch $@

# Old packages warn about each other, so a warning is no error here. They also compute other digits
# than those that are stored.
test-lowest: .venv-lowest/develop ## the fast tests with the lowest versions that pyproject.toml allows
	.venv-lowest/bin/python $(PYTEST) -m "not slow" -o filterwarnings=default --ignore tests/benchmarks/test_same_fits.py tests

smoke-lowest: .venv-lowest/develop ## about 550 of them
	.venv-lowest/bin/python $(PYTEST) -m "not slow" -o filterwarnings=default $(SMOKE)

# The package as users get it: a wheel, in an environment that has nothing else.
PYENV_VERSIONS := $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions
find-python = $(firstword $(wildcard $(PYENV_VERSIONS)/3.$(1).*/bin/python) $(shell command -v python3.$(1)))

dist/built: .venv/develop pyproject.toml README.md LICENSE scripts/package_readme.py $(shell find src -type f -not -name '*.pyc')
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*.whl dist/*.tar.gz
	@touch $@

package: dist/built ## sdist and wheel, checked; the wheel alone runs the demo and a typed script in an empty environment
	rm -rf .venv-wheel && $(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd .venv-wheel && bin/python -m pip check && bin/commod demo && bin/python ../tests/typed_user_script.py
	MYPYPATH= $(BIN)/mypy --strict --config-file= --python-executable .venv-wheel/bin/python --cache-dir .mypy_cache/wheel tests/typed_user_script.py

# pip keeps an installed wheel of the same version unless it is told to replace it.
.venv-3.%/develop: dist/built constraints.txt
	$(call find-python,$*) -m venv .venv-3.$*
	.venv-3.$*/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "$$(echo dist/*.whl)[test]"
	.venv-3.$*/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall dist/*.whl
	@touch $@

.PRECIOUS: .venv-3.%/develop

# Test the wheel on Python 3.$(1) with the files $(2).
define test-on-python
@if [ -z "$(call find-python,$(1))" ]; then echo "Python 3.$(1) is not on this machine: its tests are skipped."; \
else $(MAKE) .venv-3.$(1)/develop && .venv-3.$(1)/bin/python $(PYTEST) -m "not slow" $(2); fi
endef

test-3.%: dist/built ## the fast tests of the wheel on another Python, e.g. test-3.13
	$(call test-on-python,$*,tests)

smoke-3.%: dist/built ## about 550 of them, e.g. smoke-3.13
	$(call test-on-python,$*,$(SMOKE))

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

# The gallery runs in several processes too (COMMOD_DOCS_JOBS). `make test` leaves gallery and pages out.
docs: .venv/develop ## the documentation site in docs/_build/html, its links checked, its pages run
	rm -rf docs/_build docs/gallery docs/reference/generated
	$(BIN)/sphinx-build -W --keep-going -q -j auto -b html -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/python scripts/check_site.py docs/_build/html
	$(BIN)/python $(PYTEST) docs

docs-archive: docs ## the same as one file for a static host, docs/_build/commod-docs.tar.gz
	$(BIN)/python scripts/archive_site.py docs/_build/html docs/_build/commod-docs.tar.gz

check: lint types contracts test same docs package smoke-3.12 smoke-3.13 smoke-lowest ## what CI runs

check-all: check paper-quick bench-quick cluster test-3.12 test-3.13 test-lowest ## before a release: the same and what is too long for CI

figures: .venv/develop ## measure every promised figure of quality beside its bar (about two hours)
	PYTHONPATH=. $(BIN)/python benchmarks/figures.py $(FIGURES)

paper: .venv/develop ## every table and figure of the paper, resumable (under an hour on two cores)
	$(BIN)/python -m experiments

paper-quick: .venv/develop ## the same with few splits and points (minutes)
	$(BIN)/python -m experiments --quick

bench: .venv/develop ## speed and memory, ours and other libraries', into docs/benchmarks.md (two to three hours)
	$(BIN)/python -m benchmarks.bench $(BENCH)

cluster: .venv/develop ## the Spark job of the docs on executors in processes of their own (a minute)
	$(BIN)/python -m benchmarks.cluster 200000

bench-quick: .venv/develop ## the same, tiny: shows that every benchmark runs (minutes)
	$(BIN)/python -m benchmarks.bench --quick

clean: ## remove what the targets above made
	rm -rf .coverage .coverage.* .venv .venv-* dist commod-demo docs/_build docs/gallery docs/reference/generated benchmarks/results experiments/.cache experiments/results/quick .pytest_cache .mypy_cache .ruff_cache .hypothesis
