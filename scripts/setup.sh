#!/usr/bin/env bash
# Installs what is missing: system packages (Debian and its relatives, as root), the Rust toolchain of
# rust-toolchain.toml, a nightly one for Miri and fuzzing, Rust's library for WebAssembly, Kafka's client for Java, gRPC for Python,
# cargo-deny and mdBook. Where all is there it does nothing and needs no network.
#
#   scripts/setup.sh         everything that `make test` uses
#   scripts/setup.sh demo    only what `make demo` uses
#   scripts/setup.sh bench   also what only benchmarks use: peers that no test needs
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=${1:-test}

# command:package
demo_tools="cc:build-essential ip:iproute2 nft:nftables nginx:nginx-light ethtool:ethtool curl:curl tcpdump:tcpdump"
test_tools="$demo_tools c++:build-essential git:git iptables:iptables tshark:tshark wrk:wrk iperf3:iperf3 dig:bind9-dnsutils ping:iputils-ping ns3++:libns3-dev verilator:verilator kcat:kcat javac:default-jdk-headless mvn:maven python3:python3 openssl:openssl objcopy:binutils valgrind:valgrind spin:spin yosys:yosys berkeley-abc:berkeley-abc"

# Libraries, by a file that they bring:package
bench_tools="pkg-config:pkg-config nats-server:nats-server"
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

# In a folder of the project, as they are not optimised: they run for seconds, and optimising them takes minutes.
install_cargo_tool() {
    local crate=$1 version=$2 folder=${CARGO_TARGET_DIR:-target}/tools
    if ! PATH="$folder/bin:$PATH" "$crate" --version 2>/dev/null | grep -qF "$version"; then
        CARGO_PROFILE_DEV_DEBUG=false cargo install --quiet --locked --debug --root "$folder" --version "$version" "$crate"
    fi
}

# For Miri, fuzzing and building for WebAssembly, which say that they are skipped where this is missing: no reason to fail.
install_rust_parts() {
    local part
    cargo +nightly --version >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal || return 0
    for part in miri rust-src; do
        if ! rustup component list --toolchain nightly --installed | grep "^$part" >/dev/null; then
            rustup component add --toolchain nightly $part || true
        fi
    done
    if ! rustup target list --installed | grep -x wasm32-unknown-unknown >/dev/null; then
        rustup target add wasm32-unknown-unknown || true
    fi
}

# Kafka's own client for Java with what it needs, for tests of the bridge. The digest is that of the client.
install_kafka_client() {
    local folder=${CARGO_TARGET_DIR:-target}/kafka pom=crates/cli/tests/kafka/pom.xml
    local digest=00247122a572c3d3ae4eb60a50192a5811bc0181f51923d13018600f892e821d
    # Without versions in the names, so that the test need not know them.
    if ! echo "$digest  $folder/kafka-clients.jar" | sha256sum --check --status 2>/dev/null; then
        rm -rf "$folder"
        if ! mvn --batch-mode --quiet -f "$pom" dependency:copy-dependencies "-DoutputDirectory=$(realpath -m "$folder")" \
            -Dmdep.stripVersion=true || ! echo "$digest  $folder/kafka-clients.jar" | sha256sum --check --status; then
            rm -rf "$folder"
            echo "SKIPPED: installing Kafka's client for Java; tests that need it will be skipped" >&2
        fi
    fi
}

# gRPC's C core with its binding for Python, for tests of the controller: a client that is not the project's own.
install_grpcio() {
    local folder=${CARGO_TARGET_DIR:-target}/python version=1.85.1
    if [ "$("$folder/bin/python" -c 'import grpc; print(grpc.__version__)' 2>/dev/null)" = $version ]; then
        return
    fi
    if ! python3 -c 'import ensurepip' 2>/dev/null; then
        install_packages python3-venv:python3-venv
    fi
    if ! python3 -m venv --clear "$folder" || ! "$folder/bin/pip" install --quiet "grpcio==$version"; then
        rm -rf "$folder"
        echo "SKIPPED: installing grpcio; tests that need it will be skipped" >&2
    fi
}

case $purpose in
demo) install_packages "$demo_tools" ;;
test) install_packages "$test_tools" ;;
bench) install_packages "$test_tools $bench_tools $bench_files" ;;
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
    install_rust_parts
    install_kafka_client
    install_grpcio
    install_cargo_tool cargo-deny 0.20.2
    install_cargo_tool mdbook 0.5.4
fi
