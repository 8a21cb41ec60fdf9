#!/usr/bin/env bash
# The records of a run that is killed and continued: every line is complete, and `cleat monitor` shows the events.
#   test_monitor_run.sh CLEAT SOURCE_DIR
# ctest: device
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

tiny=("$2/profiles/rna_small.ini" --device "${CLEAT_TEST_DEVICE:-auto}" --set "data.path=$scratch/data" --set model.d_model=32
    --set model.heads=2 --set model.layers=1 --set model.d_ff=64 --set train.warmup_steps=1 --set run.self_check=never
    --set run.monitor=0.1s)
run=$scratch/run

require_device

# wait_for TEXT COUNT: waits until system.jsonl has the text COUNT times; at most a minute.
wait_for() {
    for _ in $(seq 600); do
        if [[ -f $run/system.jsonl ]] && (($(grep -c "$1" "$run/system.jsonl") >= $2)); then return; fi
        sleep 0.1
    done
    complain "system.jsonl does not have $2 times $1"
}

# parses: checks that every complete line of system.jsonl is a JSON object with a kind, a time and a step.
parses() {
    while IFS= read -r line; do
        printf '%s\n' "$line" >"$scratch/out"
        json kind
        json time
        json step
    done <"$run/system.jsonl"
}

exits 0 "$cleat" data make rna --out "$scratch/data" --count 16
"$cleat" train "${tiny[@]}" --set train.epochs=1000000 --out "$run" >"$scratch/log" 2>&1 &
process=$!
wait_for '"kind":"sample"' 3
exits 0 "$cleat" monitor "$run" --once --width 100
says out "run, running"
says out "rna_transformer"
kill -9 $process
wait $process 2>/dev/null || true
parses
exits 1 grep -q '"kind":"end"' "$run/system.jsonl"
exits 0 "$cleat" monitor "$run" --once
says out "run, killed"
exits 0 "$cleat" monitor "$run" --json
json values host_cpu

# In another folder, a run that ends and is continued with more time.
run=$scratch/whole
exits 75 "$cleat" train "${tiny[@]}" --set train.epochs=1000000 --set run.budget=stop --time-budget 2s --out "$run"
exits 0 "$cleat" monitor "$run"
says out "time is up  step"
exits 75 "$cleat" train "${tiny[@]}" --set train.epochs=1000000 --set run.budget=stop --time-budget 4s --out "$run" --resume
parses
exits 0 test "$(grep -c '"kind":"start"' "$run/system.jsonl")" = 2
exits 0 test "$(grep -c '"kind":"end"' "$run/system.jsonl")" = 2
exits 0 grep -qF "cleat train $2/profiles/rna_small.ini" "$run/system.jsonl"
finish
