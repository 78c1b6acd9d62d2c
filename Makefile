# The one door to this repository: `make help` lists what it does.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# Which Python the environment is made with, what else pytest is told (`make test ARGS=-x`), and how
# long the storm of faults lasts.
PYTHON ?= python3
ARGS ?=
MINUTES ?= 1

# What the images are called, and what they are made from; the Dockerfiles know the usual base.
IMAGE ?= workron-worker:dev
CONTROLLER_IMAGE ?= workron-controller:dev
BASE ?=

BIN := .venv/bin
READY := .venv/.ready
UV := .uv/bin/uv
UV_VERSION := 0.13.8

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(READY) ## make .venv, with workron and every tool in it; needs Python 3.11+ only

.PHONY: image
image: ## build the worker's image with docker; IMAGE=name, BASE=python:3.13-slim-trixie
	docker build $(if $(BASE),--build-arg BASE=$(BASE)) -f worker_image/Dockerfile -t $(IMAGE) $(ARGS) .

.PHONY: controller-image
controller-image: ## build the controller's image; CONTROLLER_IMAGE=name, BASE as above
	docker build $(if $(BASE),--build-arg BASE=$(BASE)) -f controller/Dockerfile -t $(CONTROLLER_IMAGE) $(ARGS) .

.PHONY: demo
demo: $(READY) ## run a small ETL workflow to its end, in memory
	$(BIN)/workron run examples/etl.yaml

.PHONY: test
test: $(READY) ## run the tests, on a PostgreSQL of their own or on the one of WORKRON_TEST_DSN
	$(BIN)/pytest -n auto $(ARGS)

.PHONY: pgbouncer
pgbouncer: ## fetch a PgBouncer for the tests that need a real one; on Debian
	tests/store/postgres/pgbouncer.sh

.PHONY: chart
chart: $(READY) ## lint and render the chart, with each version of Helm that is on the PATH
	$(BIN)/pytest -n auto tests/helm tests/examples/test_gitops.py $(ARGS)

.PHONY: e2e
e2e: $(READY) ## the wheel, the images, and all promises on a real cluster; KEEP=1 leaves it up
	$(BIN)/python -m e2e $(ARGS)

.PHONY: e2e-full
e2e-full: $(READY) ## the same with four times the load and more
	WORKRON_E2E_LOAD=full $(BIN)/python -m e2e $(ARGS)

.PHONY: test-faults
test-faults: $(READY) ## kill, freeze and cut off workers over a real PostgreSQL; MINUTES=10 for a long storm
	$(BIN)/pytest faults --minutes $(MINUTES) $(ARGS)

.PHONY: bench
bench: $(READY) ## measure what this machine can do and how much of it is reached; minutes
	$(BIN)/python -m bench $(ARGS)

.PHONY: bench-peers
bench-peers: $(READY) ## install what `make bench` holds us against, into .bench/; needs node, go and Debian
	$(BIN)/python -m bench.peers $(ARGS)

.PHONY: bench-full
bench-full: $(READY) ## the same with what takes hours
	$(BIN)/python -m bench --parts all $(ARGS)

.PHONY: lint
lint: $(READY) ## check style, types, import contracts and spelling
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell

# The hashes of uv.lock, for a pip that knows no lock: what the images need, and what builds the wheel.
LOCKED := $(UV) export --locked --quiet --no-emit-project

.PHONY: generate
generate: $(READY) ## write what comes from elsewhere: crds/, parts of docs/ and of the chart, requirements
	$(BIN)/python -m workron_controller.crds crds
	$(BIN)/python -m docs.generate
	$(BIN)/python -m helm.generate
	$(LOCKED) --no-dev >worker_image/requirements.txt
	$(LOCKED) --no-dev --extra controller >controller/requirements.txt
	$(LOCKED) --only-group build >worker_image/build-requirements.txt

.PHONY: docs
docs: generate ## take the figures in docs/ anew on this machine; minutes
	$(BIN)/python docs/figures.py >docs/explanation/figures.md.new
	mv docs/explanation/figures.md.new docs/explanation/figures.md

# What is generated is committed, so a copy that generating would change is out of date.
STALE := echo "an image's requirements.txt is not what uv.lock says; run \`make generate\`" >&2; exit 1
.PHONY: drift
drift: $(READY)
	$(BIN)/python -m workron_controller.crds --check crds
	$(BIN)/python -m docs.generate --check
	$(BIN)/python -m helm.generate --check
	@$(LOCKED) --no-dev | diff worker_image/requirements.txt - || { $(STALE); }
	@$(LOCKED) --no-dev --extra controller | diff controller/requirements.txt - || { $(STALE); }
	@$(LOCKED) --only-group build | diff worker_image/build-requirements.txt - || { $(STALE); }

.PHONY: check
check: lint drift test ## all that continuous integration runs

# uv lives in an environment of its own: syncing .venv would remove it from there.
$(UV): Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is too old or missing: workron needs Python 3.11 or newer." >&2; \
	  echo "Name one: make setup PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv --clear .uv
	.uv/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

$(READY): $(UV) pyproject.toml uv.lock
	$(UV) sync --locked --quiet --extra controller --python $(PYTHON)
	@touch $@
