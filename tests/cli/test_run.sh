#!/usr/bin/env bash
# The program from data to predictions: a tiny model, two epochs, a resume, an evaluation, predictions, and the exit
# statuses for a missing device and for a model that does not fit.
#   test_run.sh CLEAT SOURCE_DIR
# ctest: device quick cost=11
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

profile=$2/profiles/rna_small.ini
run=$scratch/run
tiny=(--device "${CLEAT_TEST_DEVICE:-auto}" --set "data.path=$scratch/data" --set model.d_model=32 --set model.heads=2
    --set model.layers=1 --set model.d_ff=64 --set train.warmup_steps=1 --set run.evaluate_every_epochs=1)

test_devices() {
    exits 0 "$cleat" devices --json
    json 0 name
    json 0 memory_total
    exits 0 "$cleat" devices
    says out "largest allocation"
}

# The library's reference trainings need no file.
test_verify() {
    exits 0 "$cleat" verify --device "${CLEAT_TEST_DEVICE:-auto}" --model series_dense --precision f32
    says out "driver"
    says out "series_dense         f32   ok"
    says out "of its limit"
    lacks err "warning generated" # by PoCL if the cache is empty
    exits 0 "$cleat" verify --device "${CLEAT_TEST_DEVICE:-auto}" --model image_resnet --precision f32
    within_limits
    exits 4 "$cleat" verify --device no_such_device
}

test_train() {
    exits 0 "$cleat" data make rna --out "$scratch/data" --count 24
    exits 0 "$cleat" train "$profile" "${tiny[@]}" --set train.epochs=2 --set run.checkpoint_every_epochs=1 --out "$run" --json
    json folder
    json best rmsd
    says err planned
    lacks err "warning generated"
    exits 0 test -f "$run/best"
    exits 0 test -f "$run/metrics.jsonl"
    exits 0 "$cleat" train "$profile" "${tiny[@]}" --set train.epochs=2 --out "$run" --resume --json
    json steps
}

# A run ends by printing the command for its report, which can be pasted.
test_next_command() {
    local folder="$scratch/a run"
    exits 0 "$cleat" train "$profile" "${tiny[@]}" --set train.epochs=2 --set data.limit=8 --out "$folder"
    says out "cleat report '$folder'"
    exits 0 "$cleat" report "$folder"
    exits 0 test -s "$folder/report.html"
    exits 0 "$cleat" --quiet train "$profile" "${tiny[@]}" --set train.epochs=3 --set data.limit=8 --out "$folder.2"
    empty out
}

# The run uses up its budget permanently: another process with the same budget trains nothing.
test_time_budget() {
    local line=("$cleat" train "$profile" "${tiny[@]}" --set train.epochs=100000 --set run.budget=stop --out "$scratch/week" --json)
    exits 75 "${line[@]}" --time-budget 4s
    says err "time is up"
    exits 75 "${line[@]}" --time-budget=4s --resume
    says err "time-budget"
    exits 1 "${line[@]}" --time-budget 4
    says err time_budget
    exits 0 "$cleat" train "$profile" "${tiny[@]}" --set train.epochs=4 --time-budget 30h --out "$scratch/short" --json
    says err "a budget of 1 d 06 h is enough for"
    json run_seconds
    json runs_in_budget
    json epochs_planned
}

# stop_with SIGNAL OUT COMMAND...: sends the signal once the run in OUT has logged its first step.
stop_with() {
    local signal=$1 out=$2 run
    shift 2
    "$@" --out "$out" &
    run=$!
    while kill -0 "$run" && [[ ! -s $out/metrics.jsonl ]]; do sleep 0.05; done
    kill -s "$signal" "$run"
    wait "$run"
}

# A run that receives a signal writes a checkpoint and reports it by its exit code.
test_signals() {
    local line=("$cleat" train "$profile" "${tiny[@]}" --set train.epochs=100000) signal
    for signal in INT TERM HUP; do
        exits 130 stop_with "$signal" "$scratch/stopped_$signal" "${line[@]}"
        exits 0 test -f "$scratch/stopped_$signal/last"
    done
}

# The run ends at the first tensor that overflows and names it.
test_check_finite() {
    local absurd=(--set train.learning_rate=3 --set train.weight_decay=1 --set train.warmup_steps=0 --set train.epochs=60 --set data.limit=4
        --set model.head=absolute --set loss.coordinate=1 --set train.schedule=constant)
    exits 5 "$cleat" train "$profile" "${tiny[@]}" "${absurd[@]}" --out "$scratch/absurd" --check-finite
    says err "first tensor that is not finite"
    says err "by op"
}

test_eval() {
    local name
    exits 0 "$cleat" eval "$profile" "${tiny[@]}" --checkpoint "$run" --split all --json
    for name in loss pair_mae pair_mae_local lddt rmsd tm; do json "$name"; done
    exits 0 "$cleat" eval "$profile" "${tiny[@]}" --checkpoint "$run" --split train
    says out rmsd
    exits 1 "$cleat" eval "$profile" "${tiny[@]}" --checkpoint "$scratch/nothing"
    exits 1 "$cleat" eval "$profile" "${tiny[@]}" --checkpoint "$run" --split no_such_split
}

test_predict() {
    printf '>first\nGGGAAACCC\n>second\nGCGCUUCGGCGC\n' >"$scratch/two.fasta"
    exits 0 "$cleat" predict "$profile" "${tiny[@]}" --checkpoint "$run" --data "$scratch/two.fasta" --out "$scratch/predictions"
    exits 0 grep -c ATOM "$scratch/predictions/first.pdb"
    says out 9
    exits 0 test -f "$scratch/predictions/second.pdb"
    exits 0 test -f "$scratch/predictions/predictions.csv"
}

test_refusals() {
    exits 4 "$cleat" train "$profile" "${tiny[@]}" --device no_such_device --out "$scratch/none"
    says err no_such_device
    exits 3 env CLEAT_DEVICE_MEMORY_LIMIT=100000 "$cleat" train "$profile" "${tiny[@]}" --out "$scratch/none/below"
    exits 1 "$cleat" train "$profile" "${tiny[@]}" --set "data.path=$scratch/no_data" --out "$scratch/none/below"
    exits 1 env --chdir="$scratch" "$cleat" train "$profile" "${tiny[@]}" --set data.path=no_data
    exits 1 test -e "$scratch/none" # a run that could not start leaves no folder
    exits 1 test -e "$scratch/runs"
    mkdir "$scratch/mine"
    exits 1 "$cleat" train "$profile" "${tiny[@]}" --set "data.path=$scratch/no_data" --out "$scratch/mine"
    exits 0 test -d "$scratch/mine"
}

require_device
test_devices
test_verify
test_train
test_next_command
test_time_budget
test_signals
test_check_finite
test_eval
test_predict
test_refusals
finish
