# Everyday commands. `make help` lists them; CONTRIBUTING.md says when to use which.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
LAB ?= berkelium
# The lab tests wait as often as they compute, so one worker more than cores.
WORKERS ?= 3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.setup-complete

.PHONY: help
help: ## List the commands
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: requirements
requirements: ## Check that Python, Go, git and make are there and new enough
	@PYTHON="$(PYTHON)" bash scripts/check-requirements

.PHONY: setup
setup: $(SETUP) ## Make the virtual environment with the pinned packages

$(SETUP): requirements-dev.txt pyproject.toml scripts/check-requirements
	@PYTHON="$(PYTHON)" bash scripts/check-requirements
	@echo "Making the virtual environment in $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: tools
tools: setup ## Build the laboratory's programs (about 20 minutes the first time)
	@$(BIN)/berkelium tools build

.PHONY: up
up: tools ## Start the lab, apply the program, run every documented manifest
	@$(BIN)/berkelium lab up --name $(LAB)
	@$(BIN)/berkelium lab deploy --name $(LAB)
	@$(BIN)/berkelium examples run --name $(LAB)
	@echo
	@echo "The lab $(LAB) goes on running. Next:"
	@echo "  export KUBECONFIG=$$($(BIN)/berkelium lab kubeconfig --name $(LAB))"
	@echo "  kubectl get pods -n my-project -o wide"
	@echo "  make down"

.PHONY: down
down: setup ## Stop the lab and remove everything it left
	@$(BIN)/berkelium lab down --name $(LAB)

.PHONY: test
test: tools lint ## Run all tests, on mocks and on the lab
	@$(BIN)/pytest --numprocesses $(WORKERS) --dist loadfile tests

.PHONY: soak
soak: tools ## Run the long tests; kill every part of a deployment at random points and recover (hours)
	@$(BIN)/pytest -m long tests
	@BERKELIUM_EXAMPLES=10000 $(BIN)/pytest tests/lab/policies/test_policies_properties.py
	@$(BIN)/python -m tests.soak.kill_matrix $(SOAK)

.PHONY: unit
unit: setup ## Run the tests that need no lab (seconds)
	@$(BIN)/pytest tests/unit

.PHONY: lint
lint: setup ## Check style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright --warnings

.PHONY: format
format: setup ## Rewrite the sources in the project's style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

.PHONY: docs
docs: setup ## Write the generated parts of the documentation again
	@$(BIN)/berkelium catalog --markdown > docs/catalog.md
	@$(BIN)/berkelium config reference --markdown > docs/configuration.md

.PHONY: bench
bench: tools ## Measure start, deployment, scheduling and the cost of the policies
	@$(BIN)/python -m bench

.PHONY: lock
lock: setup ## Compile requirements.txt and requirements-dev.txt from requirements/*.in
	@bash scripts/lock

.PHONY: clean
clean: ## Remove the virtual environment and caches of the checkout (not the built tools)
	@rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
