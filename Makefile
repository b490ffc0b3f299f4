# One folder, .venv, holds everything that is installed, and a stamp for each installation. One
# that is older than pyproject.toml or constraints.txt is made again.
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
NEEDED := import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))
PYTHON = $(shell for name in python3.11 python3; do \
	"$$name" -c '$(NEEDED)' 2>/dev/null && echo "$$name" && break; done)

.PHONY: demo test check

# Make tasks from a few small repositories and show them.
demo: .venv/.demo-installed
	$(BIN)/regrow generate repos/quickstart.toml --out runs/quickstart --max-tasks 14
	$(BIN)/regrow inspect runs/quickstart

# All checks and all tests, as in CI.
test: check
	$(BIN)/python -m pytest -n 2 --dist loadfile

# What needs no running of the code: style, types, architecture, spelling.
check: .venv/.test-installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

.venv/.demo-installed: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[pipeline]'
	@touch $@

.venv/.test-installed: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[pipeline,trainer,dev]'
	@touch $@

$(BIN)/python:
	@test -n "$(PYTHON)" || { \
		echo "regrow needs Python 3.11 or newer with its venv module;" \
			"found neither as python3.11 nor as python3" >&2; exit 1; }
	$(PYTHON) -m venv .venv
