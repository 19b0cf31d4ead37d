#!/usr/bin/env bash
# Runs every fuzz target for some seconds, as many at once as there are processors, beginning with its corpus in fuzz/corpus.
# What is found is left in fuzz/artifacts. Needs a nightly toolchain, for AddressSanitizer; without one it says so and does nothing.
#
#   scripts/fuzz.sh [SECONDS [TARGET...]]
#
# FUZZ_SEED is libFuzzer's, 1 unless given.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-20}
shift || true
host=$(rustc -vV | sed -n 's/^host: //p')

if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "SKIPPED: fuzzing needs a nightly toolchain (rustup toolchain install nightly); the tests replay the corpora" >&2
    exit 0
fi

# What `cargo fuzz` passes: coverage for libFuzzer, AddressSanitizer, and checks that a release build leaves out.
flags="-Zsanitizer=address --cfg fuzzing -Cdebug-assertions -Cpasses=sancov-module"
for option in level=4 inline-8bit-counters pc-table trace-compares stack-depth; do
    flags="$flags -Cllvm-args=-sanitizer-coverage-$option"
done
folder=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
RUSTFLAGS=$flags cargo +nightly build --release --manifest-path fuzz/Cargo.toml --target "$host" --target-dir "$folder"

fuzz() {
    local target=$1 found=fuzz/artifacts/$1
    mkdir -p "$found" "$folder/corpus/$target"
    if ! "$folder/$host/release/$target" -max_total_time="$seconds" -seed="${FUZZ_SEED:-1}" -artifact_prefix="$found/" \
        "$folder/corpus/$target" "fuzz/corpus/$target" >"$folder/$target.log" 2>&1; then
        tail -n 60 "$folder/$target.log" >&2
        echo "fuzz target $target failed: its input is in $found" >&2
        return 1
    fi
    echo "fuzz target $target: $(grep -o 'Done .*' "$folder/$target.log")"
}
export -f fuzz
export folder host seconds

targets=("$@")
if [ ${#targets[@]} = 0 ]; then
    targets=(fuzz/fuzz_targets/*.rs)
fi
printf '%s\n' "${targets[@]}" | xargs -n 1 basename -s .rs | xargs -P "$(nproc)" -I{} bash -euo pipefail -c 'fuzz {}'
