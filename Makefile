# The commands people type. `make help` lists them.
#
# All cargo calls below select the same packages and profile, so that one build of the dependencies (about 25 minutes on two
# cores, once) serves demo, tests, lint and daily work.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Both may be set from outside to share them between checkouts.
export CARGO_TARGET_DIR ?= $(CURDIR)/target
export GATEWAY_CACHE ?= $(CURDIR)/.cache
export PYTHONPATH := $(CURDIR)/tests
export PYTHONDONTWRITEBYTECODE := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
VENV := $(GATEWAY_CACHE)/venv
PYTHON := $(VENV)/bin/python
GATEWAY := $(CARGO_TARGET_DIR)/debug/lance-gateway
CONNECTOR := client-java/flink/lance-flink-2.1/target/lance-flink-2.1-$(VERSION).jar

.PHONY: help setup build demo up down test faults matrix lint fmt bench baseline

help: ## what there is
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 16

setup: ## checks the tools; installs what is missing where it can, else names it
	@tools/setup

build: setup ## the gateway, lgw and the Flink connector
	@cargo build --workspace --bins --tests --locked
	@$(MAKE) --no-print-directory $(CONNECTOR)

$(CONNECTOR): $(shell find client-java proto/lancegateway -path '*/target' -prune -o -type f -print 2>/dev/null)
	@echo "building the Flink connector (Maven)"
	@tools/mvn -q -T 1C package -Dmaven.test.skip=true
	@touch $@

demo: ## 400,000 word vectors from Flink through the gateway into Lance and back
	@tests/demo/announce "$(GATEWAY)"
	@$(MAKE) --no-print-directory build
	@$(PYTHON) -m demo

up: build ## the demo's gateway and Flink cluster, left running
	@$(PYTHON) -m demo.up

down: ## stops what `make up` started
	@$(PYTHON) -m demo.down

test: setup ## every test; SUITE=rust, java or e2e runs one of the suites
	@$(PYTHON) tools/test.py $(SUITE)

faults: setup ## each fault of docs/guarantees.md: struck, and what was promised shown
	@$(PYTHON) tools/faults.py

matrix: build ## every supported Flink and Java; FLINK_VERSION=1.20.5 and FLINK_JAVA=11 narrow it
	@$(PYTHON) -m matrix

lint: setup ## formatters, linters, licences, wire compatibility
	@tools/lint

fmt: setup ## formats Rust, Java and Python
	@cargo fmt --all
	@tools/mvn -q spotless:apply
	@$(VENV)/bin/ruff format tests tools
	@$(VENV)/bin/ruff check --fix tests tools

bench: build ## all benchmarks; BENCH=scan|put|commit|writers|flink|... runs one
	@$(PYTHON) -m bench $(BENCH)

baseline: setup ## records the wire as released; only with a release
	@$(VENV)/bin/buf build -o proto/baseline.binpb
