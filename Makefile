# Everything a contributor does, from a fresh clone: each target sets up what it needs, and is quick when nothing changed.
PYTHON ?= python3
NPM ?= npm
# Further arguments: make test ARGS="tests/core/engine -k merge", make bench ARGS="--only core"
ARGS ?=

BIN := .venv/bin
CORE_READY := .venv/.core
READY := .venv/.test
DEV_READY := .venv/.ready
BENCH_READY := .venv-bench/.ready
NODE_DIR := .cache/node
TS_SDK := @anthropic-ai/claude-agent-sdk
TS_SDK_VERSION := 0.3.325
MCP_SERVERS_VERSION := 2026.8.31
MCP_SERVERS := $(foreach name,filesystem everything,@modelcontextprotocol/server-$(name)@$(MCP_SERVERS_VERSION))
SIGSTORE := @sigstore/verify@4.1.2
NODE_READY := $(NODE_DIR)/.ready-$(TS_SDK_VERSION)-$(MCP_SERVERS_VERSION)-4.1.2-4.14.0
FLOW_ENV := .cache/flow
FLOW_READY := $(FLOW_ENV)/.ready
PIP := -m pip install -qq --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile  # how many workers: tests/conftest.py

# The core, where every branch is tested.
CORE := src/hookline/events/*,src/hookline/replies.py,src/hookline/core/hooks/*,src/hookline/core/wire/*,src/hookline/core/engine/*

# Without byte code every process compiles all that it imports, again and again; some images turn it off.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: hosts help demo fleet-demo test test-all size check lint types pythons repeat bench flow docs frameworks node_modules clean

help:  ## what there is
	@grep -hE '^[a-z_-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-13s %s\n", $$1, $$2}'

demo: $(CORE_READY)  ## an agent, guarded by hooks; no key, no network
	@$(BIN)/hookline demo

test: $(READY)  ## every room's own tests, on all cores; the first run also sets up an environment
	@echo "running the tests of every room (some three minutes on two cores); what is big is left to make test-all"
	@$(PYTEST) $(ARGS)

# What the big tests need comes first: with it, `make test` skips less. TESTED=1: what that runs has run already.
test-all: $(DEV_READY) node_modules frameworks $(if $(TESTED),,test)  ## these, then the real CLIs, frameworks, browser, confinement tables, fleet
	@echo "running the big tests: real agent CLIs, frameworks, the browser, confinement, the fleet (some minutes)"
	@$(PYTEST) --big $(ARGS)

size:  ## lines of each room
	@for room in src/hookline/[a-z]*/; do printf '%7d %s\n' $$(find $$room -name '*.py' | xargs cat | wc -l) $$(basename $$room); done
	@printf '%7d in all\n' $$(find src -name '*.py' | xargs cat | wc -l)

check: lint types node_modules frameworks  ## ruff, mypy, all tests with coverage; every branch of the core is tested
	@$(PYTEST) --all --cov --cov-report=
	@$(BIN)/coverage report --skip-covered --skip-empty
	@$(BIN)/coverage report --include='$(CORE)' --fail-under=100 --precision=2

lint: $(DEV_READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(DEV_READY)
	@$(BIN)/mypy

fleet-demo: $(DEV_READY)  ## a hub and three machines on this computer; no network
	@$(BIN)/python -m tools.fleet_demo $(ARGS)

pythons: $(DEV_READY)  ## the tests of the core on every other supported Python that is installed
	@$(BIN)/python -m tools.pythons $(ARGS)

repeat: $(DEV_READY) node_modules frameworks  ## the whole suite on a busy machine, until it was green 20 times in a row
	@$(BIN)/python -m tools.repeat $(ARGS)

bench: $(BENCH_READY)  ## the table of numbers, beside the peers, in an environment of its own
	@.venv-bench/bin/python -m bench $(ARGS)

docs: $(DEV_READY)  ## the documentation, into site/, its reference written anew from the code
	@$(BIN)/python -m tools.reference
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

flow: $(FLOW_READY)  ## the flow guard on AgentDojo, tau2 and CodeIPI, in an environment of its own; ARGS="dojo --strict"
	@PYTHONPATH=src $(FLOW_ENV)/bin/python -m bench.flow $(ARGS)

hosts: $(DEV_READY)  ## fetches the agent CLIs, runs the battery and the proofs on each, writes docs/hosts.md
	@$(BIN)/python -m tools.hosts --run $(HOSTS)

clean:  ## removes everything that make made
	rm -rf .venv .venv-* .cache site dist build .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

frameworks: $(DEV_READY)  ## one environment per agent framework, for the adapters' tests; without the network they are skipped
	@$(BIN)/python -m tools.frameworks || echo "not every framework could be installed: its adapter's tests will be skipped"

# The TypeScript SDK, whose tests drive our command line, MCP servers for the gateway, and a verifier of our proofs; without npm their tests are
# skipped, and say so.
node_modules:
	@if command -v $(NPM) >/dev/null 2>&1; then $(MAKE) -s --no-print-directory $(NODE_READY); \
	else echo "npm not found: the TypeScript SDK's tests will be skipped"; fi

$(NODE_READY):
	@echo "setting up $(NODE_DIR)"
	@mkdir -p $(NODE_DIR)
	@echo '{"private": true}' > $(NODE_DIR)/package.json
	@$(NPM) install --prefix $(NODE_DIR) --silent --no-audit --no-fund --no-package-lock --omit=optional $(TS_SDK)@$(TS_SDK_VERSION) $(MCP_SERVERS) $(SIGSTORE) axe-core@4.14.0
	@touch $@

# What `pip install hookline` brings, and nothing else: enough for the demo.
$(CORE_READY): pyproject.toml constraints.txt
	@echo "setting up .venv: hookline and msgspec (some seconds)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python $(PIP) -c constraints.txt -e .
	@$(BIN)/python -m compileall -q -j 0 src  # as pip does for a package that it copies
	@touch $@

$(READY): $(CORE_READY)
	@echo "setting up .venv: what the tests of every room need (half a minute)"
	@$(BIN)/python $(PIP) -c constraints.txt -e '.[test]'
	@touch $@

$(DEV_READY): $(READY)
	@echo "setting up .venv: every extra and the development tools (a minute or two)"
	@$(BIN)/python $(PIP) -c constraints.txt -e '.[dev]'
	@touch $@

$(BENCH_READY): pyproject.toml bench/requirements.txt
	@echo "setting up .venv-bench"
	@test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench
	@.venv-bench/bin/python $(PIP) -e '.[all]' -r bench/requirements.txt
	@touch $@

# inspect-evals is there for its data alone: it is not imported, and would bring the whole of Inspect along.
$(FLOW_READY): bench/flow/requirements.txt
	@echo "setting up $(FLOW_ENV): AgentDojo, and the data of inspect-evals (a minute)"
	@test -x $(FLOW_ENV)/bin/python || $(PYTHON) -m venv $(FLOW_ENV)
	@$(FLOW_ENV)/bin/python $(PIP) -r bench/flow/requirements.txt
	@$(FLOW_ENV)/bin/python $(PIP) --no-deps inspect-evals==0.26.0
	@touch $@
