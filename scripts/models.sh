#!/usr/bin/env bash
# Has Spin check the models of service chains (models/, docs/chains-models.md), as many at once as there are processors: each property,
# each trap, for which an error must be found, and that the reactions in crates/chain/tests/lock.transitions are those of the model.
#
#   scripts/models.sh [short|long|write|list] [NAME]
#
# `write` renews lock.transitions; `list` prints the runs; with a NAME only runs that begin with it. Without Spin it says that it is skipped,
# and fails if WEFT_REQUIRE_SYSTEM_TESTS=1.
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=${1:-short}
name=${2:-}
table=models/runs
transitions=crates/chain/tests/lock.transitions

for tool in spin cc; do
    if ! command -v $tool >/dev/null; then
        if [ "${WEFT_REQUIRE_SYSTEM_TESTS:-}" = 1 ]; then
            echo "WEFT_REQUIRE_SYSTEM_TESTS=1, but the models need $tool" >&2
            exit 1
        fi
        echo "SKIPPED: the models need $tool (scripts/setup.sh)" >&2
        exit 0
    fi
done

folder=$(realpath -m "${CARGO_TARGET_DIR:-target}/models")
mkdir -p "$folder"

# One row of the table. Options of several searches with the same verifier are separated by semicolons.
run() {
    local purpose name file switches options expected
    IFS='|' read -r purpose name file switches options expected < <(sed 's/ *| */|/g' <<<"$1")
    local work=$folder/$name compile="-DSAFETY -DNOCLAIM" optimise=-O1
    rm -rf "$work"
    mkdir -p "$work"
    cp models/*.pml "$work"
    cd "$work"
    case $options in
    *-N*) compile=-DNFAIR=3 ;;
    *-l*) compile="-DNP -DNOFAIR" ;;
    *-B*) compile="-DSAFETY -DNOCLAIM -DBITSTATE" options=${options/-B/} ;;
    esac
    case $options in *-w*) optimise=-O2 ;; esac
    [ "$expected" = log ] && compile="$compile -DPRINTF" switches="$switches -DLOG"
    [[ $compile = *BITSTATE* ]] || compile="$compile -DCOLLAPSE -DMEMLIM=$([ "$purpose" = long ] && echo 8000 || echo 2000)"
    # shellcheck disable=SC2086 # words
    if ! spin -a $switches "$file" >spin.out 2>&1 || grep -q 'Error:' spin.out; then
        cat spin.out >&2
        return 1
    fi
    # shellcheck disable=SC2086
    cc $optimise -w -DVECTORSZ=1024 $compile -o pan pan.c
    local each
    while IFS= read -r each; do
        search "$name" "$each" "$expected"
    done < <(sed 's/ *; */\n/g' <<<"$options")
}

search() {
    local name=$1 options=$2 expected=$3 started seconds errors states memory label
    label="$name $(sed -n 's/.*-N //p' <<<"$options")"
    started=$(date +%s.%N)
    # shellcheck disable=SC2086
    timeout 3600 ./pan -m1000000 $options >pan.out 2>&1 || true
    seconds=$(awk -v a="$started" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
    errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.out)
    states=$(awk '/states, stored/ { print $1 }' pan.out)
    memory=$(awk '/total actual memory usage/ { print $1 }' pan.out)
    if [ -z "$errors" ] || grep -qE 'out of memory|max search depth too small' pan.out ||
        { [ "$errors" = 0 ] && grep -q 'Search not completed' pan.out; }; then
        tail -n 30 pan.out >&2
        echo "$label: the search did not end" >&2
        return 1
    fi
    local found
    found=$(sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p' pan.out)
    case $expected in
    - | log)
        if [ "$errors" != 0 ]; then
            echo "$label: an error, where there must be none: $found; $PWD" >&2
            return 1
        fi
        found=holds
        ;;
    *)
        if ! grep -q "$expected" <<<"$found"; then
            echo "$label: must find \"$expected\", found \"$found\"; $PWD" >&2
            return 1
        fi
        found="found: ${found:0:60}"
        ;;
    esac
    printf '%-34s %10s states %6s s %6.0f MB  %s\n' "$label" "$states" "$seconds" "$memory" "$found"
}
export -f search
export -f run
export folder

rows() { grep -vE '^(#|$)' $table | awk -F' *[|] *' -v p="$1" -v n="$name" '$1 == p && index($2, n) == 1'; }

case $purpose in
list)
    grep -vE '^(#|$)' $table
    exit 0
    ;;
write) rows log | tr '\n' '\0' | xargs -0 -r -P "$(nproc)" -n 1 bash -euo pipefail -c 'run "$1"' _ ;;
short) { rows short; rows log; } | tr '\n' '\0' | xargs -0 -r -P "$(nproc)" -n 1 bash -euo pipefail -c 'run "$1"' _ ;;
long) rows long | tr '\n' '\0' | xargs -0 -r -P "$(nproc)" -n 1 bash -euo pipefail -c 'run "$1"' _ ;;
*)
    echo "usage: scripts/models.sh [short|long|write|list] [NAME]" >&2
    exit 2
    ;;
esac

if [ "$purpose" = long ] || [ -n "$name" ]; then
    exit 0
fi
rows log | while IFS=' |' read -r _ log _; do grep ' \.$' "$folder/$log/pan.out"; done | LC_ALL=C sort -u >"$folder/lock.transitions"
if [ "$purpose" = write ]; then
    cp "$folder/lock.transitions" $transitions
elif ! cmp "$folder/lock.transitions" $transitions; then
    echo "$transitions is not what the model does: scripts/models.sh write" >&2
    exit 1
fi
echo "$transitions: $(wc -l <$transitions) reactions of the model"
