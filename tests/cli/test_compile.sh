#!/usr/bin/env bash
# Helper processes compile kernels before the first step: same bits as without helpers, whether they finish or not.
#   test_compile.sh CLEAT SOURCE_DIR
# ctest: device cost=40
set -euo pipefail
cleat=$1 source=$2
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"
require_device
if ! "$cleat" devices | grep -q "Portable Computing Language" || (($(nproc) < 2)); then
    echo "skipped, no PoCL, or only one CPU"
    exit 77
fi
unset CLEAT_COMPILERS CLEAT_DEVICE_SHAPE POCL_KERNEL_CACHE
export CLEAT_BINARY_CACHE=auto

awk 'BEGIN {
    print "date,a,b"
    for (i = 0; i < 600; ++i)
        printf "2024-%02d-%02d %02d:00:00,%.3f,%.3f\n", int(i / 672) + 1, int(i / 24) % 28 + 1, i % 24, i % 17, i % 5
}' >"$scratch/waves.csv"
run=("$source/profiles/series_dense.ini" --device cpu --log debug --progress lines --set "data.path=$scratch/waves.csv"
    --set data.lookback=8 --set data.horizon=2 --set data.season=2 --set data.train_rows=400 --set data.val_rows=100
    --set data.test_rows=100 --set model.hidden=16 --set model.layers=1 --set train.epochs=1 --set train.warmup_steps=1
    --set train.effective_batch_size=64 --set run.monitor=none)

# with_cache NAME COMMAND...: runs the command with all caches in $scratch/NAME.
with_cache() {
    local cache=$scratch/$1
    shift
    mkdir -p "$cache"
    env CLEAT_CACHE_DIR="$cache/cleat" POCL_CACHE_DIR="$cache/pocl" "$@"
}

# train NAME [ENVIRONMENT...]: trains a run with separate caches.
train() {
    local name=$1
    shift
    with_cache "$name" env "$@" "$cleat" train "${run[@]}" --out "$scratch/runs/$name"
}

# same_bits NAME: the run NAME has the parameters of the run without helpers.
same_bits() {
    local one other
    one=$(echo "$scratch"/runs/alone/ckpt-*)
    other=$(echo "$scratch/runs/$1"/ckpt-*)
    exits 0 cmp "$one/model.safetensors" "$other/model.safetensors"
    exits 0 cmp "$one/optim.safetensors" "$other/optim.safetensors"
}

# helper PARENT: waits for a helper of the process and prints its number.
helper() {
    local found="" i
    for ((i = 0; i < 2000 && ! found; ++i)); do
        found=$(pgrep -P "$1" -f -- --compile-kernels | head -n 1) || true
        [[ $found ]] && break
        sleep 0.02
    done
    echo "$found"
}

# hurt SIGNAL NAME [ENVIRONMENT...]: sends the signal to a working helper.
hurt() {
    local signal=$1 name=$2 process found
    shift 2
    mkdir -p "$scratch/$name"
    env CLEAT_CACHE_DIR="$scratch/$name/cleat" POCL_CACHE_DIR="$scratch/$name/pocl" "$@" "$cleat" train "${run[@]}" \
        --out "$scratch/runs/$name" &
    process=$!
    found=$(helper "$process")
    [[ $found ]] || return 99
    sleep 0.3
    kill -s "$signal" "$found" || return 98
    wait "$process" || return $?
    ! kill -0 "$found" 2>/dev/null # it ended, and its parent waited for it
}

test_same_bits() {
    exits 0 train alone CLEAT_COMPILERS=0
    lacks err "processes compile"
    exits 0 train helped
    says err "compiled by helpers in"
    lacks err "they "
    same_bits helped
}

test_remembered() {
    rm -rf "$scratch/runs/helped"
    exits 0 train helped
    lacks err "processes compile"
    same_bits helped
}

test_hurt() {
    exits 0 hurt KILL killed
    same_bits killed
    exits 0 hurt STOP stopped CLEAT_COMPILERS_PATIENCE=1
    says err "they did not go on"
    same_bits stopped
}

# The cache is a file: nothing can be cached, so no helper starts.
test_no_cache() {
    mkdir -p "$scratch/none"
    : >"$scratch/none/cleat"
    exits 0 with_cache none "$cleat" train "${run[@]}" --out "$scratch/runs/none"
    lacks err "processes compile"
    same_bits none
}

# No kernel of the list depends on values that another kernel writes, such as the lists of an embedding's gradient.
test_texts() {
    awk 'BEGIN { print "text,label"; for (i = 0; i < 120; ++i) printf "a word %d of %d and more,%s\n", i, i % 7, i % 2 ? "odd" : "even" }' >"$scratch/texts.csv"
    exits 0 with_cache texts "$cleat" train "$source/profiles/text_classify.ini" --device cpu --log debug --progress lines \
        --set "data.path=$scratch/texts.csv" --set data.max_length=16 --set train.epochs=1 --set run.monitor=none --out "$scratch/runs/texts"
    says err "compiled by helpers in"
    lacks err "they "
}

# ended SIGNAL: checks that the helpers end with the run.
ended() {
    local process found i
    mkdir -p "$scratch/ended$1"
    env CLEAT_CACHE_DIR="$scratch/ended$1/cleat" POCL_CACHE_DIR="$scratch/ended$1/pocl" "$cleat" train "${run[@]}" \
        --out "$scratch/runs/ended$1" &
    process=$!
    found=$(helper "$process")
    [[ $found ]] || return 99
    kill -s "$1" "$process"
    wait "$process" || true
    for ((i = 0; i < 250; ++i)); do
        kill -0 "$found" 2>/dev/null || return 0
        sleep 0.02
    done
    return 1
}

test_end() {
    exits 0 ended TERM
    exits 0 ended KILL
}

test_wrong_list() {
    exits 1 "$cleat" --compile-kernels "$$" debug 3</dev/null
    says err "is not a kernel list"
    exits 1 "$cleat" --compile-kernels 1 debug
}

test_same_bits
test_remembered
test_hurt
test_no_cache
test_texts
test_end
test_wrong_list
finish
