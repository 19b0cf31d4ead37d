#!/usr/bin/env bash
# Runs every fuzz target once over its corpus and over the crashes of the past. A fuzz target is an ordinary program
# here: no sanitizer, no nightly compiler, no search for new inputs.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
cargo build --release
for source in fuzz_targets/*.rs; do
    target=$(basename "$source" .rs)
    mapfile -t inputs < <(find "corpus/$target" "regressions/$target" -type f 2>/dev/null | sort)
    if [ ${#inputs[@]} = 0 ]; then
        echo "fuzz target $target has no corpus" >&2
        exit 1
    fi
    echo "fuzz target $target: ${#inputs[@]} inputs"
    if ! output=$("target/release/$target" "${inputs[@]}" 2>&1); then
        echo "$output" >&2
        exit 1
    fi
done
