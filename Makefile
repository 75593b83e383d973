# Everything a person or CI runs. `make` alone lists the targets.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin

# Tests start many Python processes, and each would compile the package anew where this variable forbids to keep compiled modules.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast test-core test-all lint lint-types lint-style lint-imports format bench fuzz chaos kill-rounds soak answers docs bench-quick compare-flink clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(VENV)/.installed ## Check Java, create .venv and install the package with its development tools

$(VENV)/.installed: pyproject.toml constraints.txt tools/check-java.sh
	@tools/check-java.sh
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 13) else f"Python 3.11 to 3.13 is needed, {sys.executable} is {sys.version.split()[0]}; set PYTHON=/path/to/python3.11")'
	@echo "Creating $(VENV) and installing (about a minute, Spark and Airflow are large) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.13'
	@$(BIN)/uv pip install --quiet --system-certs --python $(BIN)/python --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(VENV)/spark-classes.jsa: $(VENV)/.installed
	@$(BIN)/airflow-pipelines hosts archive

demo: setup ## Run the example DAG with a real Airflow and a real Spark, step by step
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m dags_examples.demo

PYTEST = PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest --numprocesses=2
# A file stays in one process: its tests share what they start.
SLOW = --dist=loadfile --no-loadscope-reorder

test: setup $(VENV)/spark-classes.jsa ## Run the fast tests and the core of the slow ones (8 to 12 minutes)
	@$(PYTEST) $(SLOW) --tier=fast --tier=core

test-fast: setup ## Run the tests that start no JVM, no server and no other program (less than two minutes)
	@$(PYTEST) --tier=fast --quiet

test-core: setup $(VENV)/spark-classes.jsa ## Run the core of the slow tests: with test-fast, what test runs
	@$(PYTEST) $(SLOW) --tier=core

test-all: setup $(VENV)/spark-classes.jsa ## Run every test (about an hour), or a third of them: SHARD=1/3
	@$(PYTEST) $(SLOW) --report -r fE $(if $(SHARD),--shard=$(SHARD))

answers: setup ## Write anew what planner tests know of Spark's analyzer (tests/sql/answers.py)
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest --ask-spark --quiet $$(find tests/sql -name '*.answers.json' | sed 's/answers.json/py/') tests/sql/syntax/test_words_as_names.py

lint: lint-types lint-style lint-imports ## Check style, types and which room imports which

lint-types: setup
	$(BIN)/mypy

lint-style: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint-imports: setup
	$(BIN)/lint-imports

format: setup ## Format the code
	$(BIN)/ruff check --fix --select I .
	$(BIN)/ruff format .

bench: $(VENV)/.bench ## Measure everything (hours); writes benchmarks/results/latest.json and docs/performance.md
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m benchmarks $(BENCH)
	@$(BIN)/python -m benchmarks.tables

bench-quick: $(VENV)/.bench ## Measure a little (some eight minutes); writes benchmarks/results/quick.json
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m benchmarks --quick

$(VENV)/.bench: $(VENV)/.installed
	@$(BIN)/uv pip install --quiet --system-certs --python $(BIN)/python --constraint constraints.txt --editable '.[bench]'
	@touch $@

fuzz: setup ## Search an hour for programs whose views are wrong; prints its seeds
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tools.fuzz

chaos: setup ## Kill a pipeline 500 times, and one with a stream program 100 times, and compare what is there with what came in
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tools.chaos
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tools.chaos.streams

kill-rounds: setup ## Kill a pipeline and its servers for 20 minutes while it carries rows from four systems to four systems, and compare
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tools.chaos.pairs

soak: setup ## Drive pipelines for an hour without pause, check their rows, and watch what must not only grow
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tools.soak

compare-flink: setup ## Run the same stream programs in PyFlink, in an environment of its own, and compare the results (a quarter of an hour)
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tools.compare_flink $(COMPARE)

docs: setup ## Write docs/constructs.md and docs/refusals.md from what the compiler says, and the tables of docs/datastream.md
	@$(BIN)/python -m tools.constructs
	@$(BIN)/python -m tools.refusals
	@$(BIN)/python -m tools.datastream_api
	@$(BIN)/python -m tools.connector_table

clean: ## Remove what the other targets made
	rm -rf $(VENV) .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache spark-warehouse
