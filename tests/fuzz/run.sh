#!/usr/bin/env bash
# Fuzzes the parsers with libFuzzer: each target for SECONDS, CLEAT_TEST_JOBS (1) at a time.
#   tests/fuzz/run.sh SECONDS [TARGET ...]
# Builds the fuzzer with clang in $CLEAT_FUZZ_BUILD (build-fuzz) and keeps it up to date. Its folder `inputs` keeps new inputs, and
# `findings` those that make a parser fail: copy them to tests/fuzz/corpus/TARGET/found_WHAT together with the fix.
# CLEAT_FUZZ_SEED: repeats the same inputs (0, the default: different ones). CLEAT_FUZZ_RUNS: also ends a target after this number of inputs.
# Prints the number of inputs of each target. Exit status 1: a finding (for full allocation stacks:
# CLEAT_FUZZ_TARGET=TARGET build-fuzz/tests/fuzz FILE); 77: no clang with libFuzzer.
set -euo pipefail

(($# >= 1)) || { sed -n '2,9s/^# \{0,1\}//p' "$0" && exit 2; }
seconds=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
build=${CLEAT_FUZZ_BUILD:-$here/../../build-fuzz}
mkdir -p "$build"
build=$(cd "$build" && pwd)

has_fuzzer() {
    command -v clang >/dev/null && printf 'int LLVMFuzzerTestOneInput(const char *b, long n) { return b && n < 0; }\n' |
        clang -x c -fsanitize=fuzzer,address - -o "$build/probe" 2>/dev/null
}

make_fuzzer() {
    if ! { cmake -S "$here/../.." -B "$build" -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O1 -g1" \
        -DCLEAT_SANITIZE=address,undefined,fuzzer-no-link &&
        cmake --build "$build" --target fuzz --parallel "${CLEAT_TEST_JOBS:-1}"; } >"$build/fuzz.log" 2>&1; then
        tail -n 20 "$build/fuzz.log"
        exit 1
    fi
}

# fuzz TARGET: prints its line; a finding leaves a file in findings/TARGET.
fuzz() {
    local target=$1 log=$build/$1.log inputs=$build/inputs/$1 findings=$build/findings/$1 status=0 executed
    mkdir -p "$inputs" "$findings"
    # entropic's statistics and allocation stacks would take half of the time
    CLEAT_FUZZ_TARGET=$target ASAN_OPTIONS=allocator_may_return_null=1:detect_odr_violation=0:malloc_context_size=0:quarantine_size_mb=16:use_madv_dontdump=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        "$build/tests/fuzz" -max_total_time="$seconds" -runs="${CLEAT_FUZZ_RUNS:--1}" -seed="${CLEAT_FUZZ_SEED:-0}" -timeout=20 -rss_limit_mb=3000 -max_len=16384 -print_final_stats=1 -entropic=0 \
        -artifact_prefix="$findings/" "$inputs" "$here/corpus/$target" >"$log" 2>&1 || status=$?
    executed=$(sed -nE 's/^stat::number_of_executed_units: *//p' "$log")
    printf '%-16s %12s inputs  coverage %s%s\n' "$target" "${executed:-0}" "$(grep -oE 'cov: [0-9]+' "$log" | tail -n 1)" \
        "$([[ $status == 0 ]] || echo "  FOUND: $(grep -E 'ERROR:|runtime error|ALARM' "$log" | head -n 1), see $log")"
    return "$status"
}

has_fuzzer || { echo "clang with libFuzzer is not installed" && exit 77; }
make_fuzzer
mapfile -t targets < <(CLEAT_FUZZ_TARGET=list "$build/tests/fuzz")
for target in "$@"; do
    [[ " ${targets[*]} " == *" $target "* ]] || { echo "no target $target; there are: ${targets[*]}" && exit 2; }
done
(($# == 0)) || targets=("$@")
found=0
for target in "${targets[@]}"; do
    fuzz "$target" &
    while (($(jobs -rp | wc -l) >= ${CLEAT_TEST_JOBS:-1})); do wait -n || found=1; done
done
while [[ -n $(jobs -p) ]]; do wait -n || found=1; done
exit "$found"
