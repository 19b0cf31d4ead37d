#!/usr/bin/env bash
# From source to packets in under five minutes: compiles the SYN proxy, draws it, replays a capture through it, and (as
# root) runs it between two real kernels while a client downloads a file. Then simulates a network, and one that it (as
# root) also brings up for real, to compare both. Last, sorts market data by packet
# subscriptions. Leaves all of it in demo-out/.
set -euo pipefail
cd "$(dirname "$0")/.."

out=demo-out
source=examples/syn-proxy.xl
capture=examples/captures/syn-proxy.pcapng
image=$out/syn-proxy.json
weft=$(realpath -m "${CARGO_TARGET_DIR:-target}/demo/weft")
client_address=10.77.0.1
server_address=10.77.0.2
# Names that the system tests' clean-up knows, should this script be killed.
client=weft-$$-client
middle=weft-$$-middle
server=weft-$$-server
started=()
step_began=

main() {
    step "Installing what is missing"
    scripts/setup.sh demo

    step "Building weft"
    # Without link-time optimisation, and without the services that no step needs.
    cargo build --profile demo --package weftwire-cli --no-default-features
    rm -rf "$out"
    mkdir -p "$out"

    step "Compiling $source to the portable image $image"
    run compile "$source" --output "$image"
    run graph "$image" --out "$out/states.svg"

    step "Replaying $capture: the same packets give the same answers, every time"
    run replay "$image" --port "1=$capture,interface=port1" --port "2=$capture,interface=port2" --seed 1 \
        --out "$out/replay.pcapng"

    local shown=$out/replay.pcapng
    if [ "$(id -u)" = 0 ]; then
        step "Running the image between two real kernels"
        trap clean_up EXIT
        download_through_the_proxy
        shown=$out/live.pcapng
    else
        echo "SKIPPED: running between real kernels in network namespaces needs root (sudo make demo)"
    fi

    step "Drawing what happened"
    run report --image "$image" --capture "$shown" --out "$out/index.html"

    step "Simulating a network: six TCP transfers share one bottleneck"
    run sim examples/networks/dumbbell.toml --out "$out/dumbbell"

    step "Simulating the ARQ transport over a lossy link"
    run sim examples/networks/arq.toml --out "$out/arq-simulated"
    if [ "$(id -u)" = 0 ]; then
        step "The same network for real, from network namespaces, and whether both agree"
        compare_with_reality
    else
        echo "SKIPPED: the same network for real needs root (sudo make demo)"
    fi

    step "Sorting market data by packet subscriptions: each port gets the messages that its rules ask for"
    local market=examples/subscriptions/market-data formats=examples/subscriptions/itch.p4
    run subs graph "$market.rules" --format "$formats" -o "$out/subscriptions.svg"
    run subs match "$market.pcapng" --rules "$market.rules" --format "$formats" --out "$out/market-data"

    finish_step
    printf '\nThe demo took %d s. Look at:\n' "$SECONDS"
    for file in "$out"/*.html "$out"/*/report.html "$out"/*.svg "$out"/*.pcapng "$out"/*/*.pcapng "$out"/*.json; do
        echo "  $PWD/$file"
    done
}

# The machine may have other work: a real run that was late is repeated, and in the end compared as it is.
compare_with_reality() {
    local attempt comparison=("$out/arq-simulated" "$out/arq-real" --out "$out/arq-comparison.html")
    for attempt in 1 2 3; do
        run up examples/networks/arq.toml --run --out "$out/arq-real" --name "demo$$"
        if [ "$attempt" = 3 ]; then
            run compare "${comparison[@]}" --allow-late
        elif echo "\$ weft compare ${comparison[*]}" && "$weft" compare "${comparison[@]}"; then
            return
        else
            echo "That may be the machine's other work: once more"
        fi
    done
}

# A client (curl), the proxy on two interfaces without addresses, and a server (nginx); each has a kernel network
# stack of its own.
download_through_the_proxy() {
    local name
    for name in "$client" "$middle" "$server"; do
        ip netns add "$name"
        ip -n "$name" link set lo up
    done
    ip link add eth0 netns "$client" type veth peer name port1 netns "$middle"
    ip link add port2 netns "$middle" type veth peer name eth0 netns "$server"
    ip -n "$client" address add "$client_address/24" dev eth0
    ip -n "$server" address add "$server_address/24" dev eth0
    # So that the capture shows packets as they are on a wire: whole, at most 1,514 bytes, with their checksums.
    for name in "$client" "$server"; do
        ip netns exec "$name" ethtool -K eth0 tx off tso off gso off gro off >/dev/null
    done
    ip -n "$client" link set eth0 up
    ip -n "$server" link set eth0 up
    ip -n "$middle" link set port1 up
    ip -n "$middle" link set port2 up

    serve_files
    start "$middle" "$out/weft.log" "$weft" run "$image" --name "$middle" --port 1=port1 --port 2=port2 --seed 1 \
        --out "$out/live.pcapng"
    if ! ip netns exec "$client" curl --silent --show-error --fail --connect-timeout 2 --max-time 30 \
        --retry 10 --retry-connrefused --output "$work/downloaded" "http://$server_address/file"; then
        cat "$out/weft.log" "$out/nginx.log" >&2
        echo "make demo: the download through the proxy failed" >&2
        exit 1
    fi
    cmp "$work/files/file" "$work/downloaded"
    echo "curl downloaded $(stat -c %s "$work/downloaded") bytes through the proxy, intact"
    stop
}

serve_files() {
    mkdir -p "$work/files"
    head -c 1000000 /dev/urandom >"$work/files/file"
    cat >"$work/nginx.conf" <<END
user root;
daemon off;
pid $work/nginx.pid;
events {}
http {
    access_log off;
    client_body_temp_path $work/body;
    proxy_temp_path $work/proxy;
    fastcgi_temp_path $work/fastcgi;
    uwsgi_temp_path $work/uwsgi;
    scgi_temp_path $work/scgi;
    server { listen 80; root $work/files; }
}
END
    start "$server" "$out/nginx.log" nginx -e stderr -p "$work" -c nginx.conf
}

# start NAMESPACE LOG COMMAND...: runs a command beside this script.
start() {
    local namespace=$1 log=$2
    shift 2
    ip netns exec "$namespace" "$@" >"$log" 2>&1 &
    started+=($!)
}

# Ends what was started, the last one first, and waits for it.
stop() {
    local index
    for ((index = ${#started[@]} - 1; index >= 0; index--)); do
        kill "${started[index]}" 2>/dev/null || true
        wait "${started[index]}" || true
    done
    started=()
}

clean_up() {
    stop
    local name
    for name in "$client" "$middle" "$server"; do
        ip netns del "$name" 2>/dev/null || true
    done
    rm -rf "$work"
}

step() {
    finish_step
    step_began=$SECONDS
    printf '\n== %s\n' "$*"
}

# Says how long the last step took.
finish_step() {
    if [ -n "$step_began" ]; then
        printf '(%d s)\n' $((SECONDS - step_began))
    fi
}

# Shows a weft command and runs it.
run() {
    echo "\$ weft $*"
    if ! "$weft" "$@"; then
        echo "make demo: weft $1 failed" >&2
        exit 1
    fi
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# What runs may end in good order by itself; the rest is not wanted then.
trap 'exit 130' INT TERM
main
