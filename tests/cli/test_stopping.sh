#!/usr/bin/env bash
# A training run that is stopped, or whose output is lost, writes a checkpoint and returns the exit status of an interruption;
# before the first step, it ends within seconds.
#   test_stopping.sh CLEAT SOURCE_DIR
# ctest: device quick
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"
require_device

profile=$2/profiles/rna_small.ini
tiny=("$profile" --device "${CLEAT_TEST_DEVICE:-auto}" --set "data.path=$scratch/data" --set model.d_model=32
    --set model.heads=2 --set model.layers=1 --set model.d_ff=64 --set train.warmup_steps=1 --set run.evaluate_every_epochs=1
    --set train.epochs=2000)

# begin OUT: starts a run in the background and waits for its first step.
begin() {
    "$cleat" train "${tiny[@]}" --out "$1" &
    run=$!
    while kill -0 "$run" && [[ ! -s $1/metrics.jsonl ]]; do sleep 0.05; done
}

# A signal that arrives twice within milliseconds, as `timeout` sends it to a program and to its group, counts once.
twice() {
    begin "$2"
    kill -s "$1" "$run"
    kill -s "$1" "$run" || true
    sleep 0.05
    kill -s "$1" "$run" || true
    wait "$run"
}

# once SIGNAL OUT
once() {
    begin "$2"
    kill -s "$1" "$run"
    wait "$run"
}

test_signals() {
    local signal
    for signal in INT TERM; do
        exits 130 twice "$signal" "$scratch/twice_$signal"
        says err "continue from the checkpoint"
        exits 0 test -f "$scratch/twice_$signal/last"
    done
    for signal in PIPE XFSZ; do
        exits 130 once "$signal" "$scratch/once_$signal"
        exits 0 test -f "$scratch/once_$signal/last"
    done
}

# read_by_sed OUT: runs with a reader of the messages that exits after the first step.
read_by_sed() {
    "$cleat" train "${tiny[@]}" --out "$1" --progress lines 2> >(sed '/first step after/q' >/dev/null)
}

# limited OUT: runs with a message file that reaches the process's file size limit.
limited() {
    head -c 2047800 /dev/zero >"$scratch/messages"
    (
        ulimit -f 2000 # blocks of 1024 bytes
        exec "$cleat" --log warning train "${tiny[@]}" --out "$1" --progress lines 2>>"$scratch/messages"
    )
}

test_lost_messages() {
    exits 130 read_by_sed "$scratch/head"
    exits 0 test -f "$scratch/head/last"
    exits 130 limited "$scratch/limited"
    exits 0 test -f "$scratch/limited/last"
    # a full disk may have room again later: the run continues, but lost output is not success
    exits 1 bash -c '"$@" 2>/dev/full' bash "$cleat" train "${tiny[@]}" train.epochs=1 --out "$scratch/lost"
    exits 0 test -f "$scratch/lost/last"
    exits 1 bash -c '"$@" 2>/dev/full' bash "$cleat" plan rna_small --card t4
    exits 1 bash -c '"$@" >/dev/full' bash "$cleat" train "${tiny[@]}" train.epochs=1 --out "$scratch/lost2" --json
    exits 1 bash -c '"$@" >/dev/full' bash "$cleat" eval "${tiny[@]}" --checkpoint "$scratch/lost" --split all
}

# The caches are empty, so kernels compile for seconds; the signal arrives meanwhile.
opening() {
    CLEAT_CACHE_DIR=$scratch/cache POCL_CACHE_DIR=$scratch/pocl \
        "$cleat" --log debug train "${tiny[@]}" --set run.self_check=always --out "$1" &
    run=$!
    sleep 0.7
    kill -s INT "$run"
    wait "$run"
}

test_opening() {
    local started=$SECONDS
    mkdir "$scratch/cache"
    exits 130 opening "$scratch/opening"
    says err "before the first step"
    exits 1 test -e "$scratch/opening/last"
    exits 0 "$cleat" train "${tiny[@]}" train.epochs=1 --out "$scratch/opening" # nothing blocks the next start
    checks=$((checks + 1))
    ((SECONDS - started < 20)) || complain "took $((SECONDS - started)) s to end"
}

# If nothing can be cached, a run logs this and trains.
test_no_cache() {
    exits 0 env CLEAT_CACHE_DIR=/dev/null/cache "$cleat" train "${tiny[@]}" train.epochs=1 --set run.self_check=never --out "$scratch/uncached"
    says err "nothing is cached"
    exits 0 "$cleat" train "${tiny[@]}" train.epochs=1 --out "$scratch/cached"
    lacks err "nothing is cached"
}

"$cleat" data make rna --out "$scratch/data" --count 24 >/dev/null
test_signals
test_lost_messages
test_opening
test_no_cache
finish
