# One command each: run, test, lint, fmt, prepare, bench.
SHELL := /bin/bash
.DEFAULT_GOAL := help

help:  ## what there is
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

tools:
	@scripts/install-tools

scripts-of-pages: tools
	@if [ -f public/package-lock.json ]; then cd public && npm ci --silent --no-audit --no-fund && mkdir -p vendor && cp node_modules/@hotwired/turbo/dist/turbo.es2017-esm.js vendor/turbo.js; fi

run: scripts-of-pages  ## builds and starts Layby with demonstration people and claims
	SQLX_OFFLINE=true cargo build --release -p server
	target_dir=$${CARGO_TARGET_DIR:-target}; exec "$$target_dir/release/layby" serve --demo

lint:  ## format and clippy, warnings are errors
	cargo fmt --all --check
	SQLX_OFFLINE=true cargo clippy --workspace --all-targets -- -D warnings

test: scripts-of-pages lint  ## everything
	@cargo nextest --version >/dev/null 2>&1 || cargo install --locked cargo-nextest
	SQLX_OFFLINE=true cargo build -p server
	SQLX_OFFLINE=true scripts/with-postgres cargo nextest run --workspace
	@if [ -f end2end/package-lock.json ]; then $(MAKE) --no-print-directory browser; fi

browser:  ## the browser tests, in Chromium
	@scripts/install-tools --browser
	cd end2end && npm ci --silent --no-audit --no-fund
	cd end2end && ../scripts/with-postgres npx playwright test

bench: tools  ## measures parking and answering through HTTP, beside the same statements as bare SQL
	SQLX_OFFLINE=true cargo build --release -p server -p load
	LAYBY_PG_FSYNC=on scripts/with-postgres end2end/bench.sh

fmt:  ## formats everything
	cargo fmt --all

prepare:  ## refreshes .sqlx, the checked queries that builds use without a database
	scripts/with-postgres scripts/prepare

clean:
	cargo clean

.PHONY: help tools scripts-of-pages run lint test browser bench fmt prepare clean
