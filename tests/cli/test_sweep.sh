#!/usr/bin/env bash
# `cleat sweep`: grids, draws, several devices, halving; sweeps that are killed, interrupted, continued, refused.
#   test_sweep.sh CLEAT SOURCE_DIR
# ctest: device cost=25
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"
require_python
require_device

device=${CLEAT_TEST_DEVICE:-auto}
tiny=("$2/profiles/rna_small.ini" "data.path=$scratch/data" model.d_model=32 model.heads=2 model.layers=1 model.d_ff=64
    train.warmup_steps=1 run.evaluate_every_epochs=1 run.self_check=never --device "$device")
"$cleat" data make rna --out "$scratch/data" --count 24 >/dev/null

# bests DIR: name, state, best value and its epoch of each run.
bests() {
    "$cleat" --quiet runs "$1" --json | python3 -c '
import json, sys
for run in json.load(sys.stdin)["runs"]:
    print(run["name"], run["state"], run["epochs"], repr(run["best"]), run["best_epoch"])'
}

# same_bests DIR OTHER
same_bests() {
    checks=$((checks + 1))
    diff <(bests "$1") <(bests "$2") >"$scratch/err" || complain "$1 and $2 have other results"
}

# same_metrics FILE OTHER [head]: the records without those of starts, which have times; head: OTHER may have more.
same_metrics() {
    local lines=1000000
    if [[ ${3:-} == head ]]; then lines=$(grep -cv '"kind":"start"' "$1"); fi
    checks=$((checks + 1))
    diff <(grep -v '"kind":"start"' "$1") <(grep -v '"kind":"start"' "$2" | head -n "$lines") >"$scratch/err" ||
        complain "$1 and $2 have other records"
}

grid=(train.epochs=4 train.learning_rate=1e-3,1e-2 data.limit=8,16)

test_grid() {
    local dir=$scratch/grid name
    exits 0 "$cleat" sweep "${tiny[@]}" "${grid[@]}" --out "$dir"
    for name in learning_rate=1e-{2,3},limit={8,16}; do
        exits 0 test -s "$dir/$name/log"
        exits 0 test -f "$dir/$name/best"
    done
    exits 0 "$cleat" sweep "${tiny[@]}" "${grid[@]}" --out "$dir"
    says err "[4/4] learning_rate=1e-2,limit=16: finished before, best rmsd"
    lacks err started
    says out "train.learning_rate"
    says out "predict with the best: cleat predict --checkpoint $dir/learning_rate=1e-2,limit="
    exits 0 grep -c "Settings that differ" "$dir/report.html"
    # the best run is the first of the table, and of the page
    checks=$((checks + 1))
    [[ $(bests "$dir" | sort -k4g | head -n 1 | cut -d' ' -f1) == $("$cleat" runs "$dir" --sort rmsd 2>/dev/null | sed -n '2s/ .*//p') ]] ||
        complain "another run is the best"
    # a run of the sweep is a run of `cleat train`
    exits 0 "$cleat" train "${tiny[@]}" train.epochs=4 train.learning_rate=1e-3 data.limit=8 --out "$scratch/alone"
    same_metrics "$scratch/alone/metrics.jsonl" "$dir/learning_rate=1e-3,limit=8/metrics.jsonl"
}

# Other values in the same folder add runs; another profile is an error.
test_same_folder() {
    local dir=$scratch/grid
    exits 1 "$cleat" sweep "${tiny[@]}" "${grid[@]}" model.layers=2 --out "$dir"
    says err "model.layers = 2 (was 1)"
    exits 1 "$cleat" sweep "${tiny[@]}" "${grid[@]}" "data.path=$scratch/elsewhere" --out "$dir"
    says err "data.path = $scratch/elsewhere (was $scratch/data)"
    exits 1 "$cleat" sweep "${tiny[@]}" "${grid[@]}" run.metric=loss --out "$dir"
    says err "run.metric = loss (was rmsd)"
    exits 0 "$cleat" --quiet sweep "${tiny[@]}" train.epochs=4 train.learning_rate=1e-2,3e-3 --out "$dir"
    empty err
    says out "learning_rate=3e-3 "
    says out "learning_rate=1e-3,limit=8 "
    checks=$((checks + 1))
    [[ $(bests "$dir" | wc -l) == 6 ]] || complain "not six runs"
}

# until_begun DIR RUN: waits for an evaluation of a run.
until_begun() {
    local i
    for ((i = 0; i < 600; ++i)); do
        if grep -q '"eval"' "$1/$2/metrics.jsonl" 2>/dev/null; then return 0; fi
        sleep 0.05
    done
    return 1
}

long=(train.epochs=30 train.learning_rate=1e-3,5e-3,1e-2)

# Killed in the second run, and continued: the results of a sweep that was not disturbed.
test_kill() {
    local dir=$scratch/killed sweep
    exits 0 "$cleat" sweep "${tiny[@]}" "${long[@]}" --out "$scratch/whole"
    "$cleat" sweep "${tiny[@]}" "${long[@]}" --out "$dir" >/dev/null 2>&1 &
    sweep=$!
    exits 0 until_begun "$dir" learning_rate=5e-3
    kill -s KILL "$sweep"
    wait "$sweep" 2>/dev/null || true
    exits 0 "$cleat" sweep "${tiny[@]}" "${long[@]}" --out "$dir"
    says err "[1/3] learning_rate=1e-3: finished before"
    says err "[2/3] learning_rate=5e-3: started"
    same_bests "$scratch/whole" "$dir"
    same_metrics "$scratch/whole/learning_rate=5e-3/metrics.jsonl" "$dir/learning_rate=5e-3/metrics.jsonl"
}

interrupted() {
    local sweep
    "$cleat" sweep "${tiny[@]}" "${long[@]}" --out "$1" &
    sweep=$!
    until_begun "$1" learning_rate=1e-3
    kill -s INT "$sweep"
    wait "$sweep"
}

test_interrupt() {
    local dir=$scratch/interrupted
    exits 130 interrupted "$dir"
    says err "[1/3] learning_rate=1e-3: stopped after epoch"
    says err "the same command continues"
    exits 0 test -f "$dir/learning_rate=1e-3/last"
    exits 1 test -e "$dir/learning_rate=5e-3"
    exits 0 "$cleat" sweep "${tiny[@]}" "${long[@]}" --out "$dir"
    same_bests "$scratch/whole" "$dir"
}

# Rungs 1, 2, 4 of five runs: 2 and 1 go on. What a stopped run has done is the start of the whole run.
test_halving() {
    local dir=$scratch/halved sweep rates=train.learning_rate=1e-3,2e-3,4e-3,8e-3,1e-2
    "$cleat" sweep "${tiny[@]}" train.epochs=4 "$rates" --out "$dir" --halving 2 >/dev/null 2>&1 &
    sweep=$!
    exits 0 until_begun "$dir" learning_rate=4e-3
    kill -s KILL "$sweep"
    wait "$sweep" 2>/dev/null || true
    exits 0 "$cleat" sweep "${tiny[@]}" train.epochs=4 "$rates" --out "$dir" --halving=2
    checks=$((checks + 1))
    [[ $(grep -c "stopped at epoch 1 by halving  1/4" "$scratch/out") == 3 &&
        $(grep -c "stopped at epoch 2 by halving  2/4" "$scratch/out") == 1 &&
        $(grep -c "finished                       4/4" "$scratch/out") == 1 ]] || complain "other runs were stopped"
    exits 0 "$cleat" sweep "${tiny[@]}" train.epochs=4 "$rates" --out "$scratch/full"
    for run in "$dir"/learning_rate=*; do
        same_metrics "$run/metrics.jsonl" "$scratch/full/${run##*/}/metrics.jsonl" head
    done
    # after epoch 1 the two best of all have gone on
    bests "$dir" >"$scratch/halved.txt"
    for run in "$scratch/full"/learning_rate=*; do
        echo "$(grep -m 1 '"eval"' "$run/metrics.jsonl" | sed 's/.*"rmsd":\([0-9.]*\).*/\1/') ${run##*/}"
    done | sort -g | head -n 2 | cut -d' ' -f2 | sort >"$scratch/wanted.txt"
    exits 0 diff "$scratch/wanted.txt" <(awk '$3 > 1 { print $1 }' "$scratch/halved.txt" | sort)
    # the same folder without halving ends all runs
    exits 0 "$cleat" sweep "${tiny[@]}" train.epochs=4 "$rates" --out "$dir"
    same_bests "$scratch/full" "$dir"
}

# Draws depend on the seed alone; two devices train two runs at a time, with the same results.
test_random() {
    local drawn=(train.epochs=3 train.learning_rate=1e-3..1e-2 data.limit=8..16 --random 4 --seed 5)
    exits 0 "$cleat" sweep "${tiny[@]}" "${drawn[@]}" --out "$scratch/one"
    if [[ $device == auto || $device == cpu ]]; then
        exits 0 "$cleat" sweep "${tiny[@]:0:${#tiny[@]}-2}" "${drawn[@]}" --devices '2*cpu' --out "$scratch/two"
        same_bests "$scratch/one" "$scratch/two"
    fi
    checks=$((checks + 1))
    [[ $(bests "$scratch/one" | wc -l) == 4 ]] || complain "not four runs"
}

# A run that fails is reported, and the others are trained; so is one that is out of time.
test_failures() {
    exits 1 "$cleat" sweep "${tiny[@]}" train.epochs=3 "data.path=$scratch/gone,$scratch/data" --out "$scratch/bad"
    says err "failed with exit code 1: "
    says err "$scratch/bad/path="
    says err "[2/2]"
    says err ": finished, best rmsd"
    says out "finished"
    says out "predict with the best: cleat predict --checkpoint $scratch/bad/path="
    exits 75 "$cleat" sweep "${tiny[@]}" train.epochs=100000 run.seed=1,2 run.time_budget=3s run.budget=stop --out "$scratch/late"
    says err "stopped by its time budget"
}

# On a terminal, one line shows the last evaluation of each run that trains: runs that last until their time is up.
test_terminal() {
    local line
    printf -v line '%q ' "$cleat" sweep "${tiny[@]}" train.epochs=100000 run.seed=1,2 run.time_budget=3s run.budget=stop --out "$scratch/terminal"
    exits 75 env TERM=xterm script -qec "$line" /dev/null
    checks=$((checks + 1))
    tr '\r' '\n' <"$scratch/out" | grep -qE '\[1/2\] seed=1: epoch [0-9]+  rmsd [0-9.]+$' || complain "no line with an evaluation"
    says out "[2/2] seed=2: stopped by its time budget"
}

# A second sweep waits until the runs of the first have ended.
test_lock() {
    local dir=$scratch/grid
    flock "$dir/.sweep.lock" sleep 3 &
    sleep 0.2
    exits 0 "$cleat" sweep "${tiny[@]}" "${grid[@]}" --out "$dir"
    says err "have not ended; waiting"
    wait
}

# All values are checked before anything is trained or written.
test_refusals() {
    local line=("$cleat" sweep "${tiny[@]}" --out "$scratch/none")
    exits 1 "${line[@]}" train.learning_rate=1e-3,fast
    says err "train.learning_rate=fast"
    exits 1 "${line[@]}" model.heads=2,3
    says err "run heads=3"
    exits 1 "${line[@]}" train.learning_rat=1e-3,1e-2
    says err "did you mean 'learning_rate'"
    exits 1 "${line[@]}" train.learning_rate=1e-3..1e-2
    says err "--random"
    exits 1 "${line[@]}" train.learning_rate=1e-3..1e-1 --random 9 --halving run.evaluate_every_epochs=none
    says err "run.evaluate_every_epochs"
    exits 1 "${line[@]}" train.epochs=3,4 --halving
    says err "the same train.epochs"
    exits 1 "${line[@]}" run.out=a,b
    exits 1 "${line[@]}" run.seed=1,2 --set data.folds=3
    says err "data.folds=3: to train all, add data.fold=1,2,..."
    exits 2 "${line[@]}" train.learning_rate=1e-3
    says err "no setting has several values"
    exits 2 "${line[@]}" --set train.learning_rate=1e-3,1e-2
    exits 2 "${line[@]}" run.seed=1,2 --halving 1
    exits 2 "${line[@]}" run.seed=1,2 --halving=-3
    exits 2 "${line[@]}" run.seed=1,2 --random 0.5
    exits 2 "${line[@]}" run.seed=1,2 --seed -1
    exits 2 "${line[@]}" run.seed=1,2 --devices cpu
    exits 2 "$cleat" train "${tiny[@]}" --until-epoch 0
    exits 2 "$cleat" train "${tiny[@]}" --until-epoch 1.5
    exits 1 test -e "$scratch/none"
    exits 75 "$cleat" train "${tiny[@]}" train.epochs=3 --until-epoch 1 --out "$scratch/until"
    says err "epoch 1 is done (--until-epoch)"
}

test_refusals
test_grid
test_same_folder
test_kill
test_interrupt
test_halving
test_random
test_failures
if command -v script >/dev/null; then test_terminal; fi
test_lock
finish
