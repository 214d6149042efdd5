# `make help` lists the targets. Everything runs inside .venv, which is made from the lock files on first use.
RUN := scripts/run.sh
BIN := .venv/bin
READY := .venv/.ready
PYTHON_FILES := $(wildcard src tests benchmarks examples)

.PHONY: help setup demo test test-all lint types format lock bench clean
.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r target text; do printf '%-18s %s\n' "$$target" "$$text"; done

setup: $(READY) ## .venv with every package, and a Java if the machine has none

.venv/.packages: requirements-build.lock requirements.lock requirements-java.lock scripts/setup.sh
	@scripts/setup.sh

$(READY): .venv/.packages pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY) ## the guided tour
	@$(RUN) muntin demo

test: lint types ## lint, types, import contract and the fast tests
	@$(RUN) pytest -q

test-all: lint types ## everything, with the slow tests and more examples per property
	@HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-thorough} $(RUN) pytest -q -m "slow or not slow" --timeout 1800

lint: $(READY) ## ruff: rules and format
	@$(BIN)/ruff check --quiet $(PYTHON_FILES)
	@$(BIN)/ruff format --quiet --check $(PYTHON_FILES)

types: $(READY) ## mypy, strict
	@$(BIN)/mypy --no-error-summary

format: $(READY) ## rewrite the files as lint wants them
	@$(BIN)/ruff check --quiet --fix $(PYTHON_FILES)
	@$(BIN)/ruff format $(PYTHON_FILES)

lock: $(READY) ## pin the packages of pyproject.toml again
	@scripts/lock.sh

bench: $(READY) ## the benchmarks
	@$(RUN) python -m benchmarks

clean: ## remove .venv, caches and outputs
	rm -rf .venv out dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis spark-warehouse metastore_db derby.log
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
