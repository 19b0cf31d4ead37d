#!/usr/bin/env bash
# Installs what is missing: system packages (Debian and its relatives, as root), the Rust toolchain of
# rust-toolchain.toml, cargo-deny and mdBook. Where all is there it does nothing and needs no network.
#
#   scripts/setup.sh         everything that `make test` uses
#   scripts/setup.sh demo    only what `make demo` uses
#   scripts/setup.sh bench   also what only benchmarks use: peers that no test needs
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=${1:-test}

# command:package
demo_tools="cc:build-essential ip:iproute2 nft:nftables nginx:nginx-light ethtool:ethtool curl:curl tcpdump:tcpdump"
test_tools="$demo_tools c++:build-essential git:git iptables:iptables tshark:tshark wrk:wrk iperf3:iperf3 dig:bind9-dnsutils ping:iputils-ping ns3++:libns3-dev verilator:verilator"

# Libraries, by a file that they bring:package
bench_files="/usr/include/dpdk/rte_timer.h:libdpdk-dev"

install_packages() {
    local missing="" tool
    for tool in $1; do
        command -v "${tool%%:*}" >/dev/null || [ -e "${tool%%:*}" ] || missing="$missing ${tool##*:}"
    done
    if [ -z "$missing" ]; then
        return
    fi
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "SKIPPED: installing$missing, which needs root and apt-get; tests that need them will be skipped" >&2
        return
    fi
    # Installing a server must not start it.
    local policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        trap "rm -f $policy" EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod +x "$policy"
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update
    # shellcheck disable=SC2086 # one word a package
    apt-get install --yes --no-install-recommends $missing
}

install_cargo_tool() {
    local crate=$1 version=$2
    if ! "$crate" --version 2>/dev/null | grep -qF "$version"; then
        cargo install --locked --version "$version" "$crate"
    fi
}

case $purpose in
demo) install_packages "$demo_tools" ;;
test) install_packages "$test_tools" ;;
bench) install_packages "$test_tools pkg-config:pkg-config $bench_files" ;;
*)
    echo "usage: scripts/setup.sh [demo|test|bench]" >&2
    exit 2
    ;;
esac

if ! command -v cargo >/dev/null; then
    echo "Rust is missing: install rustup, which fetches the toolchain of rust-toolchain.toml" >&2
    exit 1
fi
if ! cargo --version >/dev/null 2>&1; then
    rustup toolchain install
fi

if [ "$purpose" != demo ]; then
    install_cargo_tool cargo-deny 0.20.2
    install_cargo_tool mdbook 0.5.4
fi
