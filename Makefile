# Each verb does all of its own set-up; `make` alone lists them.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip --disable-pip-version-check --quiet
CORES  := --numprocesses auto --maxprocesses 4 --dist loadfile
LOCK   := --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command 'make lock' --output-file

.DEFAULT_GOAL := help
.PHONY: help demo setup check format test test-all kube conformance bench wheel models facts prove soak fuzz suites lock clean

help:  ## list the verbs
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

demo:  ## watch an operator at work, in a cluster in one process; then try it yourself
	@$(MAKE) --no-print-directory $$(test -e $(VENV)/.ready && echo setup || echo $(VENV)/.runs)
	@$(BIN)/setpoint demo $$(test -t 1 || echo --exit)

setup: $(VENV)/.ready  ## a virtual environment with everything locked in requirements.lock

define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "$(PYTHON) is older than Python 3.11; try: make $(MAKECMDGOALS) PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --require-hashes --requirement $(1)
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@
endef

$(VENV)/.ready: pyproject.toml requirements.lock
	$(call install,requirements.lock)

$(VENV)/.runs: pyproject.toml requirements-run.lock  # what it takes to run, and no more: the first contact is soon over
	$(call install,requirements-run.lock)

check: setup  ## ruff, mypy --strict and the shape test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest tests/test_shape.py

format: setup  ## let ruff put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: setup  ## the tests that find most, in a few minutes; without a cluster or Go
	$(BIN)/pytest $(CORES) tests --ignore=tests/conformance --ignore=tests/outside -m "not slow"
	$(BIN)/pytest --numprocesses 4 --dist loadfile tests/conformance --server setpoint -m "not slow"  # they wait more than they compute

test-all: setup  ## every test that needs no cluster and no Go
	$(BIN)/pytest $(CORES) tests --ignore=tests/conformance --ignore=tests/outside
	$(BIN)/pytest $(CORES) tests/conformance --server setpoint -m "not slow"
	$(BIN)/pytest $(CORES) tests/conformance --server memory -m "not slow"

kube:  ## build kube-apiserver, kube-controller-manager, kubectl and etcd (needs Go; once)
	tests/kube/build

conformance: setup kube  ## everything against the real kube-apiserver, and others' clients against our server
	$(BIN)/pytest $(CORES) tests/conformance
	SETPOINT_CRASHES=100 $(BIN)/pytest tests/outside tests/server/storage/test_crash.py tests/server/test_kill.py

# Those that want kube-apiserver and etcd, which want Go; bench/__main__.py has the same.
WANT_KUBE := sync reconcile startup restart steady growth server controller
bench: setup $(if $(ONLY),$(if $(filter $(WANT_KUBE),$(ONLY)),kube),kube)  ## speed and memory beside Go, Rust and Python peers, in the same run (one of them: ONLY=sync)
	$(BIN)/python -m bench $(ONLY)

wheel: setup  ## build the wheel, install it somewhere fresh, run the tests against it, and keep it in dist/
	.ci/wheel

models: setup kube  ## regenerate src/setpoint/kube from the real kube-apiserver
	$(BIN)/python tests/kube/models.py

facts: setup kube  ## regenerate the server's table of facts, and the recordings its tests compare with
	$(BIN)/python tools/facts/build.py
	$(BIN)/python tools/facts/roles.py
	$(BIN)/python tools/facts/record.py

prove: setup  ## the table of mutants: every mistake found, nobody accused who made none
	$(BIN)/python -m tests.mutants.table

soak: setup  ## 100,000 keys, 5,000 watches, 200,000 objects, kill -9, SIGSTOP, slow peers, with figures (one part: ONLY=keys)
	$(BIN)/python -m tests.soak.run $(ONLY)

suites: setup kube  ## others' suites in Go and Python, and Helm, on our server and on the real one; writes docs/suites.md (3/4 hour; a part: ONLY=python)
	nice -n 10 $(BIN)/python -m tests.suites $(ONLY)

fuzz: setup  ## ask a server what nobody thought of: no 500, no hang, no growth (ten minutes; one: TIME=60)
	$(BIN)/python -m tests.fuzz.run --seconds $(or $(TIME),600)

lock: setup  ## write the locks anew, with the newest versions pyproject.toml allows
	$(PIP) install 'uv>=0.9'
	$(BIN)/uv pip compile --upgrade --group dev $(LOCK) requirements.lock pyproject.toml
	printf 'hatchling\neditables\n' | $(BIN)/uv pip compile --constraint requirements.lock $(LOCK) requirements-run.lock pyproject.toml -

clean:  ## remove what the verbs made here (not the kube cache)
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
