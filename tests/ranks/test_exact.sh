#!/usr/bin/env bash
# Training on several ranks against one process: the same metrics and parameters up to the order of sums, for any shares; the same command
# twice gives the same bits; any rank may be interrupted; a run continues with other ranks.
#   test_exact.sh CLEAT COMPARE_PARAMETERS PROFILES
# ctest: device cost=13
set -euo pipefail
cleat=$1 compare=$2 profiles=$3
# shellcheck source=tests/ranks/mpi.sh
source "$(dirname "$0")/mpi.sh"
[[ -e $(dirname "$cleat")/libcleat-mpi.so ]] || { echo "skipped, cleat was built without MPI" && exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
    echo "FAILED: $*"
    exit 1
}

# last RUN: prints its last checkpoint
last() { echo "$1/$(cat "$1/last")"; }

# close RUN RUN LIMIT: checks the relative difference of all parameters
close() {
    local difference
    difference=$(python3 "$compare" "$(last "$1")" "$(last "$2")" norm) || fail "$1, $2: $difference"
    awk -v d="$difference" -v most="$3" 'BEGIN { exit !(d <= most) }' || fail "$1 and $2 differ by $difference (at most $3)"
}

same() { cmp -s "$(last "$1")/model.safetensors" "$(last "$2")/model.safetensors" || fail "$1 and $2 are not the same bits"; }

train() {
    local ranks=$1 out=$2
    shift 2
    if ((ranks == 1)); then
        "$cleat" train "$profile" --quiet --out "$out" "${settings[@]}" "$@"
    else
        mpi "$ranks" "$cleat" train "$profile" --quiet --out "$out" "${settings[@]}" "$@"
    fi
}

"$cleat" data make rna --out rna --count 60 >/dev/null 2>&1
profile=$profiles/rna_small.ini
settings=(--set data.path=rna --set data.limit=45 --set train.epochs=2 --set train.effective_batch_size=8 --set model.dropout=0.1
    --set train.warmup_steps=2 --set run.monitor=none --set run.self_check=never --set distribute.check_every_steps=1)

# 45 samples in batches of up to 8: a length's last batch has fewer samples than ranks
train 1 one
train 3 three --set distribute.shares=5,1,2
train 3 again --set distribute.shares=5,1,2
close one three 1e-6
same three again
first() { sed -n '/"train"/{p;q}' "$1/metrics.jsonl" | sed 's/.*"loss":\([^,]*\),.*/\1/'; }
awk -v a="$(first one)" -v b="$(first three)" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(d <= 2e-7 * a) }' ||
    fail "the first loss: $(first one) and $(first three)"
[[ $(wc -l <one/metrics.jsonl) == $(wc -l <three/metrics.jsonl) ]] || fail "another number of records"

# more ranks than samples in a batch: some ranks are idle
train 1 few1 --set data.limit=3 --set train.effective_batch_size=1
train 2 few2 --set data.limit=3 --set train.effective_batch_size=1 --set distribute.shares=1,0
close few1 few2 1e-6

# in halves, with a loss scale: the same steps are skipped
train 1 half1 --set train.precision=f16
train 2 half2 --set train.precision=f16 --set distribute.shares=1,1
close half1 half2 1e-3

# an interrupted run continues with two ranks, and with one, without a difference
settings+=(--set train.schedule=constant)
status=0
mpi 3 "$cleat" train "$profile" --quiet --out parts "${settings[@]}" --set train.epochs=40 --set distribute.shares=1,1,1 >int.log 2>&1 &
job=$!
for ((i = 0; i < 2400; ++i)); do
    if (($(cat parts/metrics.jsonl 2>/dev/null | wc -l) > 12)); then break; fi
    sleep 0.1
done
pkill -TERM -n -f "^$cleat train .*--out parts" || fail "no rank to interrupt"
wait "$job" || status=$?
((status == 130)) || { cat int.log && fail "interrupted: exit code $status"; }
steps=$(sed 's/.*-S0*//' parts/last)
epochs=$((steps * 2 / $(grep -c '"train"' one/metrics.jsonl) + 2))
train 2 parts --resume --set train.epochs=$epochs --set distribute.shares=1,1
train 1 alone --set train.epochs=$epochs
close alone parts 1e-3
echo "interrupted at step $steps, $epochs epochs"

# a rank with another profile is refused; the message names the difference
cat >other.sh <<'EOF'
#!/bin/bash
if [[ $OMPI_COMM_WORLD_RANK == 1 ]]; then exec "$@" --set train.learning_rate=0.1; else exec "$@"; fi
EOF
chmod +x other.sh
if mpi 2 ./other.sh "$cleat" train "$profile" --quiet --out other "${settings[@]}" --set distribute.shares=1,1 >other.log 2>&1; then fail "another profile"; fi
grep -q 'rank 1 (.*the profile.*not the same as in rank 0' other.log || { cat other.log && fail "another profile: the message"; }
[[ ! -e other ]] || fail "a failed start left its folder"

# wrong shares
if mpi 2 "$cleat" train "$profile" --quiet --out bad "${settings[@]}" --set distribute.shares=1,1,1 >bad.log 2>&1; then fail "three shares of two ranks"; fi
grep -q 'distribute.shares has 3 values, but there are 2 ranks' bad.log || { cat bad.log && fail "shares: the message"; }
