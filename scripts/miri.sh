#!/usr/bin/env bash
# Runs tests of unsafe code under Miri, an interpreter that finds undefined behaviour: what reads the kernel's memory (the rings
# of ports, control messages, netlink, addresses), and what programs in C pass to the shim. What needs system calls that Miri does not know is left out.
# Needs a nightly toolchain with Miri; without one it says so and does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "SKIPPED: Miri needs a nightly toolchain (rustup toolchain install nightly --component miri,rust-src)" >&2
    exit 0
fi
# The tests open files; Miri forbids that unless told.
MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --quiet --package weftwire-linux --lib -- \
    ring:: xdp::shared:: xdp::fake_kernel:: vnet:: packet_socket:: socket_address:: interface::tests::reads pacer::qdisc::tests::reads_answers
MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --quiet --package weftwire-shim --lib
