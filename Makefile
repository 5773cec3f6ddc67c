# make demo     three streams joined before your eyes
# make test     lint, types, layers and every test, of the product and of the lab
# make quick    every test that needs no Spark and is not slow: run it while you work
# make lint     style, types and layers, without a test
# make fmt      mend the style
# make figures  size, coupling and repetition of the code, in two minutes
# make golden   runs recorded before are replayed and compared; RECORD=1 records them anew
# make peers    Flink in .venv/peers, which `weir-lab bench peers` runs beside weir; needs Maven
# make setup    the tools in .venv, which all others set up when they need it
# make clean    remove .venv and all that tools have written
# All set up all they need by themselves, inside .venv; only the Java runtime goes elsewhere.

BIN := .venv/bin
READY := .venv/ready
WORKERS ?= auto

# What a tool would write to the home folder or to /tmp stays in the checkout.
export TMPDIR := $(CURDIR)/.venv/tmp
export SPARK_LOCAL_DIRS := $(TMPDIR)
export PYTHONNOUSERSITE := 1

.PHONY: demo test quick golden lint fmt figures peers setup java clean

demo: setup
	$(BIN)/weir demo

test: lint
	$(BIN)/python -m pytest -q -n $(WORKERS) --maxprocesses 4 --dist loadgroup

quick: setup
	$(BIN)/python -m pytest -q -m "not slow and not spark" -n $(WORKERS) --maxprocesses 4 --dist loadgroup --durations=10

golden: setup
	$(if $(RECORD),GOLDEN_RECORD=1) $(BIN)/python -m pytest -q tests/golden

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fmt: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

figures: setup
	@$(BIN)/python scripts/figures.py

peers: setup
	@sh scripts/peers.sh

setup: java $(READY)
	@mkdir -p "$(TMPDIR)"

java:
	@sh scripts/java.sh

$(READY): pyproject.toml lab/pyproject.toml constraints.txt scripts/venv.sh
	@sh scripts/venv.sh
	@touch $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf build out spark-warehouse metastore_db derby.log src/*.egg-info lab/src/*.egg-info
	find src tests lab -name __pycache__ -type d -prune -exec rm -rf {} +
