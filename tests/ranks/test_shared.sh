#!/usr/bin/env bash
# The cases of tests/ranks/worker without MPI: processes that share a file (link/shared.c), so that sanitizers see all their code. Then two such
# processes train, with gradients of eight pieces; left out where CLEAT is not built or there is no device.
#   test_shared.sh WORKER SHARED CLEAT SOURCE_DIR
set -euo pipefail
worker=$1 cleat=$3 source=$4
export CLEAT_RANKS_LIBRARY=$2
export TSAN_OPTIONS="suppressions=$source/tests/tsan.supp ${TSAN_OPTIONS:-}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# start RANKS COMMAND...: sets $processes.
start() {
    local rank ranks=$1
    shift
    processes=()
    rm -f "$scratch/area"
    for ((rank = 0; rank < ranks; ++rank)); do
        OMPI_COMM_WORLD_SIZE=$ranks CLEAT_TEST_RANK=$rank/$ranks CLEAT_TEST_SHARED=$scratch/area timeout -s KILL 300 "$@" >"$scratch/$rank" 2>&1 &
        processes+=($!)
    done
}

# ends CASE STATUS...: the exit status of each rank
ends() {
    local name=$1 rank status
    shift
    for rank in "${!processes[@]}"; do
        status=0
        wait "${processes[rank]}" || status=$?
        if ((status != $1)); then
            cat "$scratch/$rank"
            echo "FAILED: $name: rank $rank ended with $status instead of $1" && failed=1
        fi
        shift
    done
}

for case in sums data agreement work; do
    start 3 "$worker" "$case"
    ends "$case" 0 0 0
    grep -qx ok "$scratch/0" || { echo "FAILED: $case: rank 0 does not say ok" && failed=1; }
done
start 3 "$worker" kill
ends kill 0 0 137
start 3 "$worker" mute
(sleep 10; pkill -KILL -P "${processes[2]}") & # the stopped process never ends by itself
ends mute 0 0 137
wait
start 3 "$worker" silence
ends silence 0 0 0

if [[ -x $cleat && $("$cleat" devices --json) != "[]" ]]; then
    awk 'BEGIN { print "text,label"; for (i = 0; i < 96; ++i) { line = ""; for (w = 0; w < 24; ++w) line = line " w" (i * 31 + w * w * 7) % 900; print line "," i % 2 } }' >"$scratch/texts.csv"
    start 2 "$cleat" train "$source/profiles/text_classify.ini" --quiet --out "$scratch/run" --set data.path="$scratch/texts.csv" --set data.max_length=24 \
        --set model.d_model=256 --set model.heads=4 --set model.layers=3 --set model.d_ff=1024 --set train.epochs=2 --set train.effective_batch_size=8 \
        --set train.batch_size=2 --set run.self_check=never --set run.monitor=0.1s
    ends training 0 0
    grep -q '^ckpt-E002-' "$scratch/run/last" || { echo "FAILED: training has no last checkpoint" && failed=1; }
fi
exit $failed
