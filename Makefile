# Every target makes .venv/ by itself; `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PY := .venv/bin/python
READY := .venv/.deltaward-installed
# Spark's own processes must find this Java; found, or installed, when a recipe first needs it.
WITH_JAVA = JAVA_HOME="$$(scripts/java.sh)"; export JAVA_HOME;
# What the first Spark of a checkout leaves for the others to start in half the time.
CLASSES = $(PY) -m demo.class_archive;
PYTEST_ARGS ?=
# Where the tables of `demo` and `up` are: local, or s3 (a server that Go builds).
STORE ?= local
# Where `store-conformance` writes its report, .md or .json.
REPORT ?= store-conformance.md
export URL
# Most targets start many interpreters, and each would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE
# Tests make and remove a hundred thousand small files: where there is room for them in memory, they go there.
IN_MEMORY = if [ -z "$${TMPDIR:-}" ] && [ "$$(df --output=avail -B1G /dev/shm 2>/dev/null | tail -n 1)" -ge 8 ] 2>/dev/null; \
	then export TMPDIR=/dev/shm/deltaward-tests; mkdir -p "$$TMPDIR"; fi;
# Two workers more than cores, since most wait; what shares a Spark session stays with one of them.
PARALLEL := -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2) --maxprocesses 4 --dist loadfile

# Checks of the text rather than of what it does, so they are run with the linters.
TREE := tests/architecture

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z%-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml constraints.txt scripts/venv.sh
	@scripts/venv.sh
	@touch $@

.PHONY: venv
venv: $(READY) ## Make .venv/ with everything the other targets need

.PHONY: demo
demo: $(READY) ## Load, maintain, roll back and check real tables with Airflow and Spark; STORE=s3: in a bucket
	@[ "$(STORE)" = local ] || scripts/emulators.sh versitygw
	@$(WITH_JAVA) $(CLASSES) exec $(PY) -m demo --store "$(STORE)" run

.PHONY: demo-fleet
demo-fleet: $(READY) ## Generate 200 sick tables, maintain them, and write an HTML report
	@exec $(PY) -m demo.fleet

.PHONY: up
up: $(READY) ## Start Airflow with the project's DAGs and print its address and login
	@[ "$(STORE)" = local ] || scripts/emulators.sh versitygw
	@$(WITH_JAVA) $(CLASSES) exec $(PY) -m demo --store "$(STORE)" up

.PHONY: down
down: $(READY) ## Stop what `up` or `demo` started, and check that nothing is left
	@exec $(PY) -m demo down

.PHONY: test
test: $(READY) ## The tests that need PyPI and Debian alone (at most 5 minutes on 2 cores)
	@$(WITH_JAVA) $(CLASSES) $(IN_MEMORY) exec $(PY) -m pytest $(PARALLEL) --ignore=$(TREE) -m "not e2e and not extra and not slow" $(PYTEST_ARGS)

.PHONY: classes
classes: $(READY) ## Make the archive of classes with which each Spark starts in half the time
	@$(WITH_JAVA) exec $(PY) -m demo.class_archive

.PHONY: golden
golden: ## Name the folder of the golden tables for the tests: GOLDEN=... (shared/golden beside the checkout)
	@scripts/golden.sh "$(GOLDEN)"

.PHONY: test-all
test-all: $(READY) ## Every test but the soaks: whole programs and Maven jars too
	@$(WITH_JAVA) exec $(PY) -m pytest $(PYTEST_ARGS)

.PHONY: coverage-read
coverage-read: $(READY) ## Branch coverage of what reads tables, by package; fails below 95 %
	@$(PY) -m tests.support.path_coverage read $(PARALLEL) $(PYTEST_ARGS)

.PHONY: coverage-write
coverage-write: $(READY) ## Branch coverage of what writes tables, and its errors; fails below 95 %
	@$(PY) -m tests.support.path_coverage write $(PARALLEL) $(PYTEST_ARGS)

.PHONY: lint
lint: style types imports tree ## All of style, types, imports and tree

.PHONY: style
style: $(READY) ## ruff, spelling, the words of the glossary, the shell scripts, the Dockerfile and the compose file
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@.venv/bin/codespell
	@$(PY) scripts/check_language.py
	@.venv/bin/shellcheck scripts/*.sh docker/*.sh docker/services/*.sh .ci/run
	@.venv/bin/hadolint docker/Dockerfile
	@.venv/bin/check-jsonschema --builtin-schema vendor.compose-spec docker/compose.yaml

.PHONY: docs
docs: $(READY) ## Build the documentation into site/; any warning fails
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict

.PHONY: types
types: $(READY) ## mypy, strict, over delta_core and the plugin
	@$(PY) -m mypy

.PHONY: imports
imports: $(READY) ## The import contract: layers and forbidden packages
	@PYTHONPATH=.:plugins .venv/bin/lint-imports --no-cache

.PHONY: tree
tree: $(READY) ## What holds for all of the sources, tests and docs: names, docstrings, errors, imports
	@$(WITH_JAVA) $(IN_MEMORY) exec $(PY) -m pytest $(TREE) -m "not e2e and not extra and not slow" $(PYTEST_ARGS)

.PHONY: format
format: $(READY) ## Rewrite the sources the way `lint` wants them
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

.PHONY: bench
bench: $(READY) ## Measure against deltalake and delta-spark; results under benchmarks/results/
	@$(WITH_JAVA) exec $(PY) -m benchmarks --output benchmarks/results/bench.json

.PHONY: test-slow
test-slow: $(READY) ## The tests that take long, and whole programs
	@$(WITH_JAVA) $(CLASSES) $(IN_MEMORY) exec $(PY) -m pytest $(PARALLEL) -m "slow or e2e" $(PYTEST_ARGS)

soak-%: $(READY) ## One area's tests at full counts, such as soak-concurrency; soak-samples: CI's on a fresh seed
	@$(WITH_JAVA) exec env DELTAWARD_SOAK=1 $(PY) -m tests.support.soak $*

.PHONY: store-conformance
store-conformance: export DELTAWARD_STORAGE_OPTIONS ?= $(value OPTIONS)
store-conformance: $(READY) ## Certify a store: URL=..., OPTIONS="name=value ..." or a JSON file; at most 5 minutes
	@: "$${URL:?pass URL=..., where tables would be}"
	@exec .venv/bin/deltaward store-conformance "$$URL" --report "$(REPORT)"

.PHONY: constraints
constraints: $(READY) ## Resolve constraints.txt anew from pyproject.toml
	@scripts/constraints.sh

.PHONY: clean
clean: ## Remove everything that the other targets made
	@[ ! -x $(PY) ] || $(PY) -m demo down
	rm -rf .venv .tools .demo .bench .ci/out build dist .coverage htmlcov spark-warehouse store-conformance.*
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
