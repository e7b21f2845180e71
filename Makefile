# Tasks of the project. `make` lists them.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
SHELL := bash

BIN := .venv/bin
PYTEST := $(BIN)/pytest
# Runs the rest of the line with a JAVA_HOME that Spark can use.
WITH_JAVA := JAVA_HOME="$$(scripts/find-java.sh)" && export JAVA_HOME &&
# Further arguments, for pytest or the command: make test ARGS="-k lmerge"
ARGS ?=
# In how many processes the tests run; 0 is one test after the other, in this one.
PROCESSES ?= 2
# How many random kills, and how many micro-batches a run of months has.
KILLS ?= 60
BATCHES ?= 5000

.PHONY: help demo test test-quick lint docs bench papers bench-peers figures test-slow months test-cluster fuzz clean venv java

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: java .venv/.installed-core ## Run the demonstration
	@$(WITH_JAVA) $(BIN)/penstock demo $(ARGS)

test: java lint ## Check style, types and layers, then run the tests
	@$(WITH_JAVA) $(PYTEST) -m "not cluster and not slow" -n $(PROCESSES) --dist loadscope --no-loadscope-reorder $(ARGS)

test-quick: .venv/.installed-test ## Run the tests that need neither Java nor Spark nor a server, with fewer examples: two minutes
	@PENSTOCK_PROFILE=quick $(PYTEST) -p tests.without_spark -m "not spark and not s3 and not cluster and not slow" \
		--ignore tests/spark --ignore tests/brokers --ignore tests/engines --ignore tests/cluster --ignore tests/bench --ignore tests/papers --ignore tests/docs/test_docs.py \
		-n $(PROCESSES) --dist loadscope --no-loadscope-reorder $(ARGS)

lint: .venv/.installed-test ## Check style, types and layers only
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy --no-error-summary
	$(BIN)/lint-imports --no-logo

docs: .venv/.installed-docs ## Build the documentation into site/
	$(BIN)/zensical build --clean --strict

bench: java .venv/.installed-bench ## Run the benchmarks and write their figures into README and docs (leave the machine alone)
	@$(WITH_JAVA) $(BIN)/penstock bench --save benchmarks/results $(ARGS)
	@$(MAKE) --no-print-directory figures

papers: .venv/.installed-bench ## Run the experiments of the papers and write their figures into the docs
	@$(BIN)/penstock papers lmerge --save benchmarks/results $(ARGS)
	@$(BIN)/penstock papers window-queries --save benchmarks/results $(ARGS)
	@$(BIN)/penstock papers upstream --save benchmarks/results $(ARGS)
	@$(BIN)/penstock papers stream-mill --save benchmarks/results $(ARGS)
	@$(BIN)/penstock papers genmig --save benchmarks/results $(ARGS)
	@$(MAKE) --no-print-directory figures

bench-peers: java ## Install the other engines that the benchmarks compare with, each in an environment of its own
	@scripts/install-peers.sh

figures: .venv/.installed-bench ## Write the saved figures into README and docs
	@$(BIN)/python -c "from penstock.bench.figures import refresh; refresh()"
	@cp benchmarks/results/*.svg docs/assets/

test-slow: java .venv/.installed-test ## Run the tests that take long: kill -9 at every point and KILLS times at random, every transcript as a stream
	@$(WITH_JAVA) PENSTOCK_KILLS=$(KILLS) $(PYTEST) -m "slow and not cluster" --timeout 1200 $(ARGS)

months: java .venv/.installed-test ## Run a query for very many micro-batches: files, time and looking at it must not grow
	@$(WITH_JAVA) PENSTOCK_BATCHES=$(BATCHES) $(PYTEST) tests/spark/test_months.py -s --timeout 0 $(ARGS)

test-cluster: java .venv/.installed-test .venv/.installed-connect ## Run the Spark tests on a cluster and over Spark Connect
	@$(WITH_JAVA) $(PYTEST) -m cluster --timeout 1200 $(ARGS)
	@$(WITH_JAVA) PENSTOCK_TEST_MASTER=cluster $(PYTEST) tests/spark -m "spark and not slow" --timeout 1200 $(ARGS)
	@$(WITH_JAVA) PENSTOCK_TEST_MASTER=connect $(PYTEST) tests/spark -m "spark and not slow" --timeout 1200 $(ARGS)

fuzz: .venv/.installed-test ## Run the property tests with many more examples
	@$(PYTEST) -m "hypothesis and not spark and not cluster" --hypothesis-profile fuzz --timeout 0 $(ARGS)

venv: .venv/.installed-test ## Make .venv with all that the tests need

clean: ## Remove caches and build products; .venv stays
	@rm -rf build dist site spark-warehouse metastore_db derby.log .coverage htmlcov \
		.pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .cache
	@find . -path ./.venv -prune -o \( -name __pycache__ -o -name '*.egg-info' \) -prune -exec rm -rf {} +

java:
	@scripts/find-java.sh >/dev/null

.venv/.installed-core: pyproject.toml scripts/install.sh
	@scripts/install.sh

.venv/.installed-%: pyproject.toml scripts/install.sh
	@scripts/install.sh $*
