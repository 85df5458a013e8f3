# Weir. `make help` lists what there is; every target sets up what it needs.
# Works with GNU make 3.81, which macOS brings: anything longer than a line is a script in .ci/.
.DEFAULT_GOAL := help
.PHONY: help setup run demo-flink test chaos test-cluster test-flink lint types imports pytest fmt bench browser clean

BIN := .venv/bin
CHROMIUM ?= /usr/bin/chromium
export CHROMIUM

help: ## Show this list
	@echo "Weir measures and regulates streaming jobs. Commands:"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'
	@echo "Settings of make run: WEIR_PORT (8000), WEIR_HOME (.weir), WEIR_DEMO=0 (no demo stream). DATABASE_URL,"
	@echo "REDIS_URL, SPARK_MASTER, SPARK_REMOTE and JAVA_HOME each replace what Weir would bring itself."

setup: ## Make .venv from requirements.lock (only when the lock changed)
	@.ci/setup

run: setup ## Start Weir with a real demo stream; prints the address and how to sign in
	@exec $(BIN)/python -m webapp.ops.supervisor --stop-with-parent

demo-flink: setup ## Beside make run: a real Flink with a job held back, to try the whole loop on (needs a JDK)
	@.ci/flink $(BIN)/python -m workers.flink_demo --stop-with-parent

test: setup browser ## Lint, types, imports and all tests but the slow stages below
	@$(MAKE) --no-print-directory -j2 lint imports types pytest

pytest: setup ## All tests without the checks; ARGS="tests/unit -k words" for some of them
	@$(BIN)/python -m pytest -m "not bench and not flink and not chaos and not cluster" $(ARGS)

chaos: setup ## Kill -9 of workers, servers and Weir itself, a database that goes away: nothing lost, nothing twice
	@$(BIN)/python -m pytest -m chaos $(ARGS)

test-cluster: setup ## The same results on a Spark that Weir did not start: a standalone cluster, a Spark Connect server
	@$(BIN)/python -m pytest -m cluster $(ARGS)

test-flink: setup browser ## The whole loop on a real Flink: scaled, verified, made worse, taken back (needs a JDK)
	@.ci/flink $(BIN)/python -m pytest tests/flink $(ARGS)

lint: setup ## ruff
	@$(BIN)/ruff check .

types: setup ## mypy --strict
	@$(BIN)/mypy

imports: setup ## Which package may import which (import-linter)
	@$(BIN)/lint-imports

fmt: setup ## Format the code and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: setup ## Measure and print ratios (README, performance)
	@$(BIN)/python -m tests.bench

browser: ## Install Chromium for the browser tests (apt, needs root)
	@.ci/browser

clean: ## Remove caches and the virtual environment; the data in .weir stays
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache spark-warehouse metastore_db
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
