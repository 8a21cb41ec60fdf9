# Helpers of the command-line tests: run the program, compare exit status and output, count. Source this file
# and end the test with `finish`.
# shellcheck shell=bash

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
checks=0 failures=0

# complain TEXT...: records a failed check and shows the output of the last command.
complain() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$*"
    sed 's/^/  stdout: /' "$scratch/out" | tail -n 15
    sed 's/^/  stderr: /' "$scratch/err" | tail -n 15
}

# exits STATUS COMMAND...: runs the command and compares its exit status.
exits() {
    local wanted=$1 status=0
    shift
    checks=$((checks + 1))
    "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || status=$?
    ((status == wanted)) || complain "exit status $status instead of $wanted: $*"
}

# says out|err TEXT: checks that the last command printed TEXT.
says() {
    checks=$((checks + 1))
    grep -qF -- "$2" "$scratch/$1" || complain "std$1 does not contain '$2'"
}

# lacks out|err TEXT: checks that the last command did not print TEXT.
lacks() {
    checks=$((checks + 1))
    if grep -qF -- "$2" "$scratch/$1"; then complain "std$1 says '$2'"; fi
}

# empty out|err: checks that the last command printed nothing to that stream.
empty() {
    checks=$((checks + 1))
    [[ ! -s $scratch/$1 ]] || complain "std$1 is not empty"
}

# json [PATH...]: checks that the last command printed JSON on stdout (with the member PATH); CMake parses it.
json() {
    checks=$((checks + 1))
    # shellcheck disable=SC2016 # CMake's variable, not the shell's
    printf 'file(READ "%s" text)\nstring(JSON value GET "${text}" %s)\n' "$scratch/out" "$*" >"$scratch/json.cmake"
    cmake -P "$scratch/json.cmake" >"$scratch/json.log" 2>&1 || complain "not JSON, or without the member '$*'"
}

# within_limits: checks that the last command, `cleat verify` without files, accepted no error above its limit.
within_limits() {
    checks=$((checks + 1))
    awk '/ ok / { rows++; sub(/.*the worst at /, ""); if (!/^[0-9.e+-]+ of its/ || $1 + 0 > 1) wrong = 1 } END { exit wrong || !rows }' \
        "$scratch/out" || complain "a row says ok, with an error above its limit"
}

# by_wine: whether $cleat is a program of Windows.
by_wine() {
    [[ $cleat == */by_wine/* ]]
}

# require_device: skips the test if the program $cleat finds no device.
require_device() {
    local listed
    if ! listed=$("$cleat" devices --json) || [[ $listed == "[]" ]]; then
        echo "skipped, no device"
        exit 77
    fi
}

# require_python: skips the test without python3.
require_python() {
    if ! command -v python3 >/dev/null; then
        echo "skipped, no python3"
        exit 77
    fi
}

# finish: prints the totals and returns the exit status of the test.
finish() {
    echo "$checks checks, $failures failed"
    ((checks > 0 && failures == 0))
}
