PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test check test-slow bench format clean install

demo: $(STAMP)            ## train on the embedded date corpus, show answers and where the model looked
	$(BIN)/regard demo

test: $(STAMP) check      ## every check and test (under 12 minutes on 2 cores)
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile

check: $(STAMP)           ## format, lint, layers, types
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/lint-imports
	$(BIN)/mypy

test-slow: $(STAMP)       ## proofs that take minutes: many kills, learning curves
	$(BIN)/python -m pytest -m slow

bench: $(STAMP)           ## Regard beside its peers, in turns (leave the machine alone meanwhile); ROUNDS=2 for a shorter look
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench]"
	$(BIN)/python -m benchmarks $(if $(ROUNDS),--rounds $(ROUNDS))

format: $(STAMP)
	$(BIN)/ruff format src tests benchmarks
	$(BIN)/ruff check --fix src tests benchmarks

install: $(STAMP)

# One environment for everything: the demo of a fresh clone must not need a second install to be tested.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(STAMP)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache
