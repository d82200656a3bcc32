# `make help` lists the targets.

PYTHON ?= python3
# Test processes; each has one Spark session.
WORKERS ?= 2
UV_VERSION := 0.13.7

VENV := .venv
BIN := $(VENV)/bin
MADE := $(VENV)/.made-with-uv-$(UV_VERSION)
INSTALLED := $(VENV)/.installed
FETCHED := $(VENV)/.fetched
CLASSES := $(VENV)/spark-classes.jsa

# A test may start a process of its own, which would compile all that it imports: three seconds each time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test check bench campaign-views campaign-sql campaign-tpch campaign-fuzz campaign-simulate campaign-differential campaign-kill campaign-writers campaign-asked campaign-watch campaign-graph campaign-cluster campaign-s3 pins clean prerequisites

help: ## List the targets
	@awk 'BEGIN { FS = ":[^#]*## " } /^[a-z%-]+:[^#]*## / { sub("%", "NAME", $$1); printf "  %-22s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: prerequisites $(FETCHED) ## Make the virtual environment and fetch what it needs (PYTHON=... chooses the Python)

demo: setup ## Run the demonstration
	@$(BIN)/strandline demo

# The first run archives Spark's classes beside the tests that need no Spark.
test: setup ## Run the tests (ARGS=... goes to pytest)
	@$(MAKE) --no-print-directory $(CLASSES) & \
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0 $(ARGS); passed=$$?; wait; exit $$passed

check: setup ## Check style, types and import rules
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

bench: setup ## Run the benchmarks (ARGS=... names some of them)
	@$(BIN)/python -m bench $(ARGS)

# Variables of the command line reach the benchmark through the environment.
bench-%: setup ## Run one benchmark, with its sizes: make bench-tpch SF=1 DELTA=0.1 REPEATS=3
	@$(BIN)/python -m bench $*

campaign-views: setup ## Compare many random views, refreshed many times, with recomputation (ARGS=...)
	@$(BIN)/python -m tests.campaign.views $(ARGS)

campaign-sql: setup ## Follow a corpus of view definitions through random changes and compare with recomputation (ARGS=...)
	@$(BIN)/python -m tests.campaign.corpus $(ARGS)

campaign-tpch: setup ## Follow the 22 queries of TPC-H through changes of all tables and compare with recomputation (ARGS=...)
	@$(BIN)/python -m tests.campaign.tpch $(ARGS)

campaign-fuzz: setup ## Give parser, planner and Spark malformed and exotic SQL (ARGS=...)
	@$(BIN)/python -m tests.campaign.fuzz $(ARGS)

campaign-simulate: setup ## Run random cases through every maintenance algorithm and check the level reached (ARGS=...)
	@$(BIN)/python -m tests.campaign.simulate $(ARGS)

campaign-kill: setup ## Kill refreshes at many points and compare what recovery makes of them (ARGS=...)
	@$(BIN)/python -m tests.campaign.kill $(ARGS)

campaign-graph: setup ## Kill refreshes of twelve views at every event and compare with an undisturbed twin (ARGS=...)
	@$(BIN)/python -m tests.campaign.graph $(ARGS)

campaign-writers: setup ## Follow a PostgreSQL that is written to for two minutes, and compare everything (ARGS=...)
	@$(BIN)/python -m tests.campaign.writers $(ARGS)

campaign-asked: setup ## Kill refreshes of views over sources that are not copied, and check every published state (ARGS=...)
	@$(BIN)/python -m tests.campaign.asked $(ARGS)

campaign-watch: setup ## Watch a PostgreSQL under steady writes for ten minutes; source, catalog and process are killed (ARGS=...)
	@$(BIN)/python -m tests.campaign.watch $(ARGS)

campaign-differential: setup ## Compare many random snapshots with every algorithm, and large ones within bounds (ARGS=...)
	@$(BIN)/python -m tests.campaign.differential $(ARGS)

campaign-cluster: setup ## Kill workers and drivers of a standalone cluster; go through Connect and spark-submit (ARGS=...)
	@$(BIN)/python -m tests.campaign.cluster $(ARGS)

campaign-s3: setup ## Keep a warehouse in an S3 emulator; fetches 650 MB of jars the first time (ARGS=...)
	@$(BIN)/python -m tests.campaign.s3 $(ARGS)

pins: setup ## Resolve requirements/dev.txt anew from pyproject.toml (ARGS=--upgrade takes newer versions)
	@scripts/pin.sh $(ARGS)

clean: ## Remove the virtual environment, caches and build output
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log
	find src tests bench scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# Java comes first: without it nothing else is worth the wait.
prerequisites:
	@scripts/check_java.sh
	@scripts/check_python.sh $(PYTHON)

$(MADE): | prerequisites
	@echo "making the virtual environment in $(VENV) ..."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

$(INSTALLED): pyproject.toml requirements/dev.txt $(MADE)
	@echo "installing packages from requirements/dev.txt ..."
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -r requirements/dev.txt
	@echo "installing strandline from this folder ..."
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

$(FETCHED): src/strandline/engine/jars.py $(INSTALLED)
	@$(BIN)/python -m strandline.engine.jars
	@touch $@
	@echo "set-up is done"

$(CLASSES): tests/classes.py $(FETCHED)
	@echo "archiving Spark's classes for tests ..."
	@$(BIN)/python -m tests.classes
