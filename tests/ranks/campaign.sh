#!/usr/bin/env bash
# Kills (SIGKILL) or stops (SIGSTOP) one of three ranks on one machine at a random moment. Every run must end, no rank may wait
# longer than 60 s, and the final parameters must equal the unbroken run's within 1e-6.
#   campaign.sh CLEAT SOURCE_DIR [--kill N] [--stop N] [--seed S] [--epochs E]
# Defaults: 100 x SIGKILL, 20 x SIGSTOP. Exits with 77 if MPI or cleat's MPI plug-in is missing.
# ctest: device slow cost=46
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$2/tests/cli/checks.sh"
here=$2/tests/ranks
profile=$2/profiles/rna_small.ini
kills=100 halts=20 epochs=500 seed=$$
shift 2
while (($#)); do
    case $1 in
    --kill) kills=$2 ;;
    --stop) halts=$2 ;;
    --seed) seed=$2 ;;
    --epochs) epochs=$2 ;;
    *) echo "unknown option $1" >&2 && exit 2 ;;
    esac
    shift 2
done
RANDOM=$seed
longest_wait=0 largest=0 ended=0
most_wait=60 most_difference=1e-6

line=("$cleat" train "$profile" --devices "3*cpu" --set "data.path=$scratch/data" --set model.d_model=32 --set model.heads=2 --set model.layers=1
    --set model.d_ff=64 --set train.warmup_steps=1 --set "train.epochs=$epochs" --set "run.evaluate_every_epochs=$epochs"
    --set run.monitor=none --set distribute.shares=1,1,1)

# require_ranks: skips the test if ranks cannot be started.
require_ranks() {
    require_device
    require_python
    if ! command -v mpirun >/dev/null || [[ ! -e $(dirname "$cleat")/libcleat-mpi.so ]]; then
        echo "skipped, no mpirun or no libcleat-mpi.so"
        exit 77
    fi
}

now() { date +%s.%N; }
is() { awk "BEGIN { exit !($1) }"; }

# rank_process RANK SUPERVISOR: prints the training process, the child of the guard, which is a child of the launcher.
rank_process() {
    local launcher guard
    for launcher in $(pgrep -P "$2"); do
        for guard in $(pgrep -P "$launcher"); do
            ! tr '\0' '\n' <"/proc/$guard/environ" 2>/dev/null | grep -qx -e "OMPI_COMM_WORLD_RANK=$1" -e "PMI_RANK=$1" || pgrep -P "$guard"
        done
    done
}

# wait_for_end SUPERVISOR SINCE: waits until all ranks of the broken start have ended; sets $waited.
wait_for_end() {
    while kill -0 "$1" 2>/dev/null && ! grep -aq "continuing with\|giving up" "$scratch/err" && is "$(now) < $2 + 150"; do sleep 0.2; done
    waited=$(awk "BEGIN { print $(now) - $2 }")
}

# break_run SIGNAL: breaks one run once; adds to the totals.
break_run() {
    local rank=$((RANDOM % 3)) delay=$((RANDOM % 1500)) run status=0 process since difference
    rm -rf "$scratch/run"
    "${line[@]}" --out "$scratch/run" >"$scratch/out" 2>"$scratch/err" </dev/null &
    run=$!
    while kill -0 "$run" 2>/dev/null && [[ ! -s $scratch/run/metrics.jsonl ]]; do sleep 0.05; done
    sleep "$(printf '%d.%03d' $((delay / 1000)) $((delay % 1000)))"
    process=$(rank_process "$rank" "$run")
    checks=$((checks + 1))
    if [[ ! $process ]] || ! kill -s "$1" "$process"; then
        complain "SIG$1: rank $rank was not found after $delay ms"
        wait "$run" || true
        return
    fi
    since=$(now)
    wait_for_end "$run" "$since"
    if is "$waited > 150"; then kill -KILL "$(rank_process 0 "$run")" "$(rank_process 1 "$run")" "$(rank_process 2 "$run")" 2>/dev/null || true; fi
    wait "$run" || status=$?
    ((status == 0)) || complain "SIG$1 of rank $rank after $delay ms: exit status $status"
    ended=$((ended + 1))
    is "$waited < $most_wait" || complain "SIG$1 of rank $rank after $delay ms: ranks waited $waited s"
    if is "$waited > $longest_wait"; then longest_wait=$waited; fi
    ((status == 0)) || return 0
    difference=$("$here/compare_parameters.py" "$scratch/whole/$(cat "$scratch/whole/last")" "$scratch/run/$(cat "$scratch/run/last")" 2>>"$scratch/err") || difference=1
    is "$difference < $most_difference" || complain "SIG$1 of rank $rank after $delay ms: parameters differ by $difference"
    if is "$difference > $largest"; then largest=$difference; fi
    echo "SIG$1 of rank $rank after $delay ms: continued after $waited s, parameters differ by $difference"
}

require_ranks
exits 0 "$cleat" data make rna --out "$scratch/data" --count 24
exits 0 "${line[@]}" --out "$scratch/whole"
if ((failures)); then finish; fi
for ((i = 0; i < kills; ++i)); do break_run KILL; done
for ((i = 0; i < halts; ++i)); do break_run STOP; done
echo "seed $seed: $ended of $((kills + halts)) runs ended; longest wait $longest_wait s; largest difference of parameters $largest"
finish
