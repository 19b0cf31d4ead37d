#!/usr/bin/env bash
# Checks the RTL of rtl/: `lint` with Verilator, `proofs` with Yosys and ABC, of which rtl/formal/runs is the table.
#
#   scripts/rtl.sh [lint|proofs] [NAME]
#
# Where a tool is missing it says that it is skipped, and fails if WEFT_REQUIRE_SYSTEM_TESTS=1.
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=${1:-proofs}
name=${2:-}

need() {
    local tool
    for tool in "$@"; do
        if ! command -v "$tool" >/dev/null; then
            if [ "${WEFT_REQUIRE_SYSTEM_TESTS:-}" = 1 ]; then
                echo "WEFT_REQUIRE_SYSTEM_TESTS=1, but the RTL's $purpose needs $tool" >&2
                exit 1
            fi
            echo "SKIPPED: the RTL's $purpose needs $tool (scripts/setup.sh)" >&2
            exit 0
        fi
    done
}

folder=$(realpath -m "${CARGO_TARGET_DIR:-target}/rtl")
rtl=$PWD/rtl
mkdir -p "$folder"

# One row of rtl/formal/runs: the proof, a bug or -, the kind of run, its depth. Assertions go to ABC as an and-inverter graph in which
# all assumptions are folded into one output.
prove() {
    local name bug kind depth started seconds work define="" read found
    read -r name bug kind depth <<<"$1"
    work=$folder/$name-$bug-$kind
    rm -rf "$work"
    mkdir -p "$work"
    cd "$work"
    [ "$bug" = - ] || define=-D$bug
    started=$(date +%s.%N)
    read="read_verilog -sv -formal $define $rtl/ram.sv $rtl/skid_buffer.sv $rtl/fifo.sv $rtl/arbiter.sv $rtl/calendar.sv \
        $rtl/flow_table.sv $rtl/formal/$name.sv; prep -top $name; flatten; memory_map; opt -full"
    case $kind in
    cover)
        # Each cover becomes an assertion that it is never reached, and all assertions become covers.
        local covers each
        covers=$(grep -c '^ *cover (' "$rtl/formal/$name.sv")
        for each in $(seq "$covers"); do
            awk -v each="$each" '/^ *cover \(/ && ++count == each { sub(/cover \(/, "assert (!("); sub(/\);$/, "));"); print; next }
                { sub(/assert \(/, "cover ("); print }' "$rtl/formal/$name.sv" >"cover$each.sv"
            yosys -q -p "${read/$rtl\/formal\/$name.sv/cover$each.sv}; chformal -cover -remove; techmap; opt -fast; dffunmap; simplemap; \
                abc -g AND -fast; opt_clean; write_aiger -zinit cover$each.aig" >yosys.log 2>&1
            timeout 600 berkeley-abc -c "read_aiger cover$each.aig; fold; orpos; bmc3 -F $depth" >>solver.log 2>&1 || true
        done
        found="all $covers covers are reached"
        [ "$(grep -c 'was asserted in frame' solver.log)" = "$covers" ] || found=
        ;;
    *)
        yosys -q -p "$read; chformal -cover -remove; techmap; opt -fast; dffunmap; simplemap; abc -g AND -fast; opt_clean; \
            write_aiger -zinit $name.aig" >yosys.log 2>&1
        local search="bmc3 -F $depth"
        [ "$kind" = proved ] && search=pdr
        timeout 600 berkeley-abc -c "read_aiger $name.aig; fold; orpos; $search" >solver.log 2>&1 || true
        case $bug-$kind in
        --proved) found=$(grep -o 'Property proved' solver.log) ;;
        --bounded) found=$(grep -o "No output asserted in $depth frames" solver.log) ;;
        *) found=$(grep -o 'was asserted in frame [0-9]*' solver.log | sed 's/was asserted/the bug is found/') ;;
        esac || true
        ;;
    esac
    seconds=$(awk -v a="$started" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
    if [ -z "$found" ]; then
        tail -n 20 yosys.log solver.log >&2
        echo "$name $bug $kind: not what is expected ($work)" >&2
        return 1
    fi
    printf '%-18s %-20s %-8s %6s s  %s\n' "$name" "$bug" "$kind" "$seconds" "$found"
}
export -f prove
export folder rtl

case $purpose in
lint)
    need verilator
    for file in rtl/{ram,skid_buffer,fifo,arbiter,calendar,flow_table}.sv; do
        verilator --lint-only -Wall -y rtl "$file"
    done
    verilator --lint-only -Wall -y rtl rtl/weft_pkg.sv rtl/weft_core.sv
    ;;
proofs)
    need yosys berkeley-abc
    grep -vE '^(#|$)' rtl/formal/runs | awk -v n="$name" 'index($1, n) == 1' | tr '\n' '\0' |
        xargs -0 -r -P "$(nproc)" -n 1 bash -euo pipefail -c 'prove "$1"' _
    ;;
*)
    echo "usage: scripts/rtl.sh [lint|proofs] [NAME]" >&2
    exit 2
    ;;
esac
