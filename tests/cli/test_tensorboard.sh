#!/usr/bin/env bash
# Event files of runs equal metrics.jsonl: in a run that ends, in one that is killed and resumed several times, and in one
# that had no event file until its resume. read_events.py compares them with a separate reader.
#   test_tensorboard.sh CLEAT SOURCE_DIR
# ctest: device quick
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

reader=$2/tests/tensorboard/read_events.py
profile=$2/profiles/rna_small.ini
tiny=(--device "${CLEAT_TEST_DEVICE:-auto}" --set "data.path=$scratch/data" --set model.d_model=32 --set model.heads=2
    --set model.layers=1 --set model.d_ff=64 --set train.warmup_steps=1 --set run.evaluate_every_epochs=1
    --set run.self_check=never --set run.log_every_steps=1 --set run.monitor=0.1s)

require_python
require_device

# same_as_metrics RUN: compares, also with TensorBoard's own reader if installed.
same_as_metrics() {
    exits 0 python3 "$reader" "$1" "$1"
    if grep -qF '"accumulator": true' "$scratch/out"; then accumulated=$((accumulated + 1)); fi
}
accumulated=0

test_whole_run() {
    exits 0 "$cleat" data make rna --out "$scratch/data" --count 24
    exits 0 "$cleat" train "$profile" "${tiny[@]}" --set train.epochs=2 --set run.tensorboard=true --out "$scratch/whole"
    same_as_metrics "$scratch/whole"
    says out '"starts": [0]'
    says out '"eval/rmsd"'
    says out '"train/learning_rate"'
    says out '"system/memory_planned"'
    says out 'tensorboard = true'
    # The same comparison finds a different value.
    cp -r "$scratch/whole" "$scratch/changed"
    sed -i '2s/"loss":[0-9]/"loss":7/' "$scratch/changed/metrics.jsonl"
    exits 1 python3 "$reader" "$scratch/changed" "$scratch/changed"
    says err "train/loss"
    # Reopening a finished run adds no file.
    exits 0 "$cleat" train "$profile" "${tiny[@]}" --set train.epochs=2 --set run.tensorboard=true --out "$scratch/whole" --resume
    checks=$((checks + 1))
    [[ $(find "$scratch/whole" -name '*tfevents*' | wc -l) == 1 ]] || complain "a second event file"
}

# Killed at arbitrary moments, before and after checkpoints, including the first.
test_killed_run() {
    local line=("$cleat" train "$profile" "${tiny[@]}" --set train.epochs=60 --set run.tensorboard=true --out "$scratch/killed")
    local kills=0
    for pause in 0.3 0.7 0.5 0.9 0.6; do
        if ! { timeout -s KILL "$pause" "${line[@]}" --resume >/dev/null; } 2>/dev/null; then kills=$((kills + 1)); fi
    done
    exits 0 "${line[@]}" --resume
    same_as_metrics "$scratch/killed"
    checks=$((checks + 1))
    ((kills > 0)) || complain "no run was killed"
}

# The setting is not part of the run: a resume may enable it, and the file then also has the earlier steps.
test_switched_on() {
    local line=("$cleat" train "$profile" "${tiny[@]}" --set train.epochs=100 --out "$scratch/later") run
    "${line[@]}" >/dev/null 2>&1 &
    run=$!
    while kill -0 "$run" 2>/dev/null && [[ ! -s $scratch/later/last ]]; do sleep 0.02; done
    kill -s INT "$run"
    wait "$run" || true
    exits 0 "${line[@]}" --resume --set run.tensorboard=true
    same_as_metrics "$scratch/later"
    says out '"starts": [0]'
}

# `cleat report` makes the same file for a run without one, and replaces an earlier result.
test_report() {
    local made=$scratch/made
    exits 0 cp -r "$scratch/whole" "$scratch/other"
    find "$scratch/other" -name '*tfevents*' -delete
    for _ in 1 2; do
        exits 0 "$cleat" report "$scratch/other/" "$scratch/whole" --out "$scratch/report.html" --tensorboard "$made"
        exits 0 python3 "$reader" "$made/other" "$scratch/other"
        exits 0 python3 "$reader" "$made/whole" "$scratch/whole"
    done
    checks=$((checks + 1))
    [[ $(find "$made" -name '*tfevents*' | wc -l) == 2 ]] || complain "not one file for each run"
    exits 0 "$cleat" report "$scratch/whole" "$scratch/../${scratch##*/}/whole" --out "$scratch/report.html" --tensorboard "$made"
    exits 0 python3 "$reader" "$made/whole-2" "$scratch/whole"
}

test_whole_run
test_report
test_killed_run
test_switched_on
echo "$accumulated comparisons with TensorBoard's own reader"
finish
