# Each verb does all of its own set-up; `make` alone lists them.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help demo setup check format test kube conformance bench wheel models facts soak lock clean

help:  ## list the verbs
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

demo: setup  ## a class becomes a CustomResourceDefinition; then the pods of your cluster, if you have one
	$(BIN)/python examples/webapp/webapp.py
	@$(BIN)/python examples/pods/pods.py || echo 'demo: no cluster, no pods; all else above worked'

setup: $(VENV)/.ready  ## a virtual environment with everything locked in requirements.lock

$(VENV)/.ready: pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "setup: $(PYTHON) is older than Python 3.11; try: make setup PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --require-hashes --requirement requirements.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

check: setup  ## ruff, mypy --strict and the shape test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest tests/test_shape.py

format: setup  ## let ruff put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: setup  ## everything that needs no cluster and no Go
	$(BIN)/pytest tests --ignore=tests/conformance --ignore=tests/outside
	$(BIN)/pytest tests/conformance --server setpoint -m "not slow"

kube:  ## build kube-apiserver, kube-controller-manager, kubectl and etcd (needs Go; once)
	tests/kube/build

conformance: setup kube  ## everything against the real kube-apiserver, and others' clients against our server
	$(BIN)/pytest tests/conformance
	SETPOINT_CRASHES=100 $(BIN)/pytest tests/outside tests/server/storage/test_crash.py tests/server/test_kill.py

bench: setup  ## speed and memory, as ratios against a yardstick in the same run
	$(BIN)/python -m bench

wheel: setup  ## build the wheel, install it somewhere fresh, and run the tests against it
	.ci/wheel

models: setup kube  ## regenerate src/setpoint/kube from the real kube-apiserver
	$(BIN)/python tests/kube/models.py

facts: setup kube  ## regenerate the server's table of facts, and the recordings its tests compare with
	$(BIN)/python tools/facts/build.py
	$(BIN)/python tools/facts/record.py

soak: setup  ## kill -9 a thousand times, and tear the log at every few bytes
	SETPOINT_CRASHES=1000 SETPOINT_TORN=7 $(BIN)/pytest tests/server/storage tests/server/test_kill.py

lock: setup  ## write requirements.lock anew, with the newest versions pyproject.toml allows
	$(PIP) install 'uv>=0.9'
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --group dev \
		--custom-compile-command 'make lock' --output-file requirements.lock pyproject.toml

clean:  ## remove what the verbs made here (not the kube cache)
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
