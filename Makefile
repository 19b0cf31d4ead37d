# The everyday commands. `make test` is all that continuous integration runs.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
export PATH := $(abspath $(or $(CARGO_TARGET_DIR),target))/tools/bin:$(HOME)/.cargo/bin:$(PATH):/usr/sbin:/sbin

SYSTEM_TESTS := --package weftwire-cli --package weftwire-engine --test 'system_*' --test many_flows

XTASK := $${CARGO_TARGET_DIR:-target}/debug/xtask

# Property tests draw from this seed, so that a failure comes again: make test PROPTEST_RNG_SEED=N.
export PROPTEST_RNG_SEED ?= 1

.PHONY: help test test-long demo package bench docs fmt generate xtask setup check unit generated dependencies system \
	models models-long rtl instructions instructions-write portable miri fuzz clean

help:
	@echo 'make demo    build weft, replay a capture, run a SYN proxy between real kernels, leave demo-out/index.html'
	@echo 'make test    install what is missing, then run every check and test'
	@echo 'make test-long  what takes longer: fuzzing for minutes, more random programs, all paths of the TCP in XL, system tests of the program as it is released'
	@echo 'make models-long  the models of service chains that take longer'
	@echo 'make rtl     lint the RTL, and prove what can be proved of its modules'
	@echo 'make bench   measure the engine and the simulator beside ns-3; compare the SYN proxy with plain routing and the kernel SYNPROXY, and the TCP in XL with the kernel TCP (root)'
	@echo 'make package make target/package/weft without symbols, which stand in weft.debug beside it'
	@echo 'make docs    build the book and the API pages: target/book, target/doc'
	@echo 'make fmt     format the source'
	@echo 'make generate  rewrite every generated file'

test: setup check unit generated dependencies docs system models rtl instructions portable miri fuzz
	@echo 'make test: all passed'

# Each target has five minutes here, and random programs are twenty thousand.
test-long: setup xtask
	PROPTEST_CASES=20000 cargo test --profile demo --package weftwire-cli --test xl_oracle
	cargo test --release $(SYSTEM_TESTS)
	cargo test --release --package weftwire-cli --test system_chain --test system_churn --test system_ns3 -- --ignored
	cargo test --release --package weftwire-engine --test all live_state::a_million -- --ignored
	cargo test --release --package weftwire-sim --test tcp --test all -- --ignored
	$(XTASK) mutants
	scripts/fuzz.sh 300
	scripts/models.sh long
	@echo 'make test-long: all passed'

# Installs the tools that the other targets need and that are not there yet.
setup:
	scripts/setup.sh

# All of the workspace is named each time, so that features of dependencies, and what is built of them, are the same.
check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy --workspace --bin weft --no-default-features -- -D warnings

# Unit, property and documentation tests, with debug assertions on; also the corpora of all fuzz targets. All but the tests
# of whole systems, whose files are called `system_*`: those are `make system`.
unit:
	@echo "PROPTEST_RNG_SEED=$$PROPTEST_RNG_SEED"
	cargo test --workspace --no-fail-fast --lib --bins --examples --test '[!s]*' --test 's[!y]*' --test 'sy[!s]*' --test system
	cargo test --workspace --no-fail-fast --doc

generated: xtask
	$(XTASK) generate --check
	$(XTASK) layers
	$(XTASK) vectors

generate: xtask
	$(XTASK) generate

# With the features that the whole workspace gives what it depends on: `cargo run --package xtask` would build that again.
xtask:
	cargo build --quiet --workspace --bin xtask

dependencies:
	cargo deny check licenses bans sources
	@if cargo deny fetch db; then \
		cargo deny check --disable-fetch advisories; \
	else \
		echo 'SKIPPED: the check for known vulnerabilities needs the advisory database, which cannot be reached'; \
	fi

docs:
	mdbook build docs
	RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps --document-private-items

# Whole-system tests push gigabytes through the data path, so they run optimised; not across crates, which takes minutes.
system:
	cargo test --no-fail-fast --profile demo $(SYSTEM_TESTS)

# The protocols of service chains, checked by Spin: docs/chains-models.md.
models:
	scripts/models.sh short

models-long:
	scripts/models.sh long

# Modules of rtl/: lint, and proofs with seeded bugs that they must find: docs/hardware-calendar.md.
rtl:
	scripts/rtl.sh lint
	scripts/rtl.sh proofs

# Instructions of the engine per packet, compared with crates/bench/instructions.json.
instructions: xtask
	$(XTASK) instructions

instructions-write: xtask
	$(XTASK) instructions --write

# The crates below the platforms, built for WebAssembly.
portable: xtask
	$(XTASK) portable

# Unsafe code under an interpreter that knows what is undefined behaviour.
miri:
	scripts/miri.sh

# Every fuzz target for 20 seconds.
fuzz:
	scripts/fuzz.sh 20

bench:
	cargo build --release --package weftwire-cli
	cargo run --release --package weftwire-bench -- engine
	cargo run --release --package weftwire-bench -- simulator
	cargo run --release --package weftwire-bench -- network
	cargo run --release --package weftwire-bench -- synproxy
	cargo run --release --package weftwire-bench -- tcp

# The program as users get it: target/package/weft, and its symbols and line tables beside it as weft.debug.
package:
	cargo build --release --package weftwire-cli
	scripts/package.sh "$${CARGO_TARGET_DIR:-target}/release/weft" target/package

demo:
	scripts/demo.sh

fmt:
	cargo fmt --all

clean:
	cargo clean
	rm -rf demo-out
