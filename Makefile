# Every task of this repository is a target here: `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# The Python that the environment is made with, further arguments (`make test ARGS=-x`), and how
# many minutes `make test-faults` runs.
PYTHON ?= python3
ARGS ?=
MINUTES ?= 1

# The names of the images, their base (empty: the one in the Dockerfile), and the command that builds
# them: a release sets it to `docker buildx build` with its platforms.
IMAGE ?= workron-worker:dev
CONTROLLER_IMAGE ?= workron-controller:dev
BASE ?=
DOCKER_BUILD ?= docker build

# Where `make dist` writes the wheel and `make chart-package` the chart, and what a released chart
# writes before the names of its images, such as `registry.example.com/team/`.
DIST ?= dist
IMAGE_PREFIX ?=

BIN := .venv/bin
READY := .venv/.ready
UV := .uv/bin/uv
UV_VERSION := 0.13.8
ACTIONLINT_VERSION := v1.7.12

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(READY) ## make .venv, with workron and every tool in it; needs only Python 3.11 or newer

.PHONY: image
image: ## build the worker image with docker; IMAGE=name, BASE=python:3.13-slim-trixie
	$(DOCKER_BUILD) $(if $(BASE),--build-arg BASE=$(BASE)) --target worker -t $(IMAGE) $(ARGS) .

.PHONY: controller-image
controller-image: ## build the controller image; CONTROLLER_IMAGE=name, BASE as above
	$(DOCKER_BUILD) $(if $(BASE),--build-arg BASE=$(BASE)) --target controller -t $(CONTROLLER_IMAGE) $(ARGS) .

.PHONY: dist
dist: $(READY) ## build the wheel and the source archive into DIST=dist
	$(BIN)/python -m hatchling build -d $(DIST)

.PHONY: chart-package
chart-package: ## package the chart into DIST=dist; IMAGE_PREFIX=host/owner/ names the images; needs helm
	rm -rf $(DIST)/chart
	mkdir -p $(DIST)/chart
	cp -r helm/workron $(DIST)/chart/
	sed -i -E 's#^( *)(repository|image): workron-#\1\2: $(IMAGE_PREFIX)workron-#' $(DIST)/chart/workron/*.yaml
	helm package $(DIST)/chart/workron --destination $(DIST)
	rm -r $(DIST)/chart

.PHONY: version
version: ## print the version of this tree
	@python3 -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["project"]["version"])'

.PHONY: demo
demo: $(READY) ## run a small ETL workflow in memory
	$(BIN)/workron run examples/etl.yaml

.PHONY: test
test: $(READY) ## run all tests but the slow ones; PostgreSQL is started, or WORKRON_TEST_DSN names one
	$(BIN)/pytest -n auto -m "not slow" $(ARGS)

.PHONY: test-slow
test-slow: $(READY) ## run the tests that are marked slow
	$(BIN)/pytest -n auto -m slow $(ARGS)

.PHONY: pgbouncer
pgbouncer: ## download PgBouncer for the tests that need it; Debian only
	tests/store/postgres/pgbouncer.sh

.PHONY: chart
chart: $(READY) ## lint and render the chart with Helm 4 and Helm 3; fails where one is missing
	WORKRON_TEST_HELM=required $(BIN)/pytest -n auto tests/helm tests/examples/test_gitops.py $(ARGS)

.PHONY: e2e
e2e: $(READY) ## test the wheel, the images and a real cluster; KEEP=1 keeps the cluster
	$(BIN)/python -m e2e $(ARGS)

.PHONY: e2e-full
e2e-full: $(READY) ## run `make e2e` with four times the load
	WORKRON_E2E_LOAD=full $(BIN)/python -m e2e $(ARGS)

.PHONY: test-faults
test-faults: $(READY) ## kill, freeze and disconnect workers on a real PostgreSQL; MINUTES=10 runs longer
	$(BIN)/pytest faults --minutes $(MINUTES) $(ARGS)

.PHONY: bench
bench: $(READY) ## measure the throughput and compare it with the limit of this machine; minutes
	$(BIN)/python -m bench $(ARGS)

.PHONY: bench-peers
bench-peers: $(READY) ## install the systems that `make bench` compares with, into .bench/; needs node, go, Debian
	$(BIN)/python -m bench.peers $(ARGS)

.PHONY: bench-full
bench-full: $(READY) ## run `make bench` with the parts that take hours
	$(BIN)/python -m bench --parts all $(ARGS)

.PHONY: lint
lint: $(READY) ## check style, types, import contracts and spelling
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell

.PHONY: lint-workflows
lint-workflows: ## check .github/workflows with actionlint; needs go
	go run github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION)

# The hashes of uv.lock as requirements files for pip: the libraries of the images, and the tools
# that build the wheel.
LOCKED := $(UV) export --locked --quiet --no-emit-project

.PHONY: generate
generate: $(READY) ## write generated files: crds/, parts of docs/ and of the chart, requirements
	$(BIN)/python -m workron_controller.crds crds
	$(BIN)/python -m docs.generate
	$(BIN)/python -m helm.generate
	$(LOCKED) --no-dev >worker_image/requirements.txt
	$(LOCKED) --no-dev --extra controller >controller/requirements.txt
	$(LOCKED) --only-group build >worker_image/build-requirements.txt

.PHONY: docs
docs: generate ## measure the figures in docs/ again on this machine; minutes
	$(BIN)/python docs/figures.py >docs/explanation/figures.md.new
	mv docs/explanation/figures.md.new docs/explanation/figures.md

# Generated files are committed; this fails if `make generate` would change one.
STALE := echo "requirements.txt of an image differs from uv.lock; run \`make generate\`" >&2; exit 1
.PHONY: drift
drift: $(READY) ## check that every generated file is up to date
	$(BIN)/python -m workron_controller.crds --check crds
	$(BIN)/python -m docs.generate --check
	$(BIN)/python -m helm.generate --check
	@$(LOCKED) --no-dev | diff worker_image/requirements.txt - || { $(STALE); }
	@$(LOCKED) --no-dev --extra controller | diff controller/requirements.txt - || { $(STALE); }
	@$(LOCKED) --only-group build | diff worker_image/build-requirements.txt - || { $(STALE); }

.PHONY: check
check: lint drift test test-slow ## everything that needs neither docker nor a cluster

# uv has its own environment: syncing .venv would remove it from there.
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
