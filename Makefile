# make train: set everything up and train a base-3 bot.  make test: set everything up and run the tests.
# make play: set up what playing needs, and open a board in the browser.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PLAY_STAMP := $(VENV)/.playable
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: train play test test-all lint bench setup clean

setup: $(STAMP)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Lifeline needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The stamps are as old as the last install: edited requirements install again, anything else starts at once.
$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e '.[train,dev]'
	@touch $@ $(PLAY_STAMP)

$(PLAY_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e '.[web]'
	@touch $@

train: setup
	$(BIN)/lifeline train configs/base3.yaml

play: $(PLAY_STAMP)
	$(BIN)/lifeline serve --open

test: setup
	$(BIN)/python -m pytest -m "not slow"

test-all: setup
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/selfplay.py

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
