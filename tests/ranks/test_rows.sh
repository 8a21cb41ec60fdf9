#!/usr/bin/env bash
# Ranks exchange only the touched rows of an embedding's gradient: for any shares and micro-batches, two ranks get the same bits as with the whole
# table (CLEAT_RANKS_DENSE), and the parameters of one process. The classifier's table is [about 800, 128].
# A step exchanges at most the bytes that `cleat plan` predicts, and exactly these if all words of a batch are different.
#   test_rows.sh CLEAT COMPARE_PARAMETERS PROFILES LINK
# ctest: device cost=20
set -euo pipefail
cleat=$1 compare=$2 profiles=$3 link=$4
# shellcheck source=tests/ranks/mpi.sh
source "$(dirname "$0")/mpi.sh"
[[ -e $(dirname "$cleat")/libcleat-mpi.so ]] || { echo "skipped, cleat was built without MPI" && exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
[[ $("$cleat" devices --json) != "[]" ]] || { echo "skipped, there is no device" && exit 77; }

fail() {
    echo "FAILED: $*"
    exit 1
}

last() { echo "$1/$(cat "$1/last")"; }
same() { cmp -s "$(last "$1")/model.safetensors" "$(last "$2")/model.safetensors" || fail "$1 and $2 are not the same bits"; }

close() {
    local difference
    difference=$(python3 "$compare" "$(last "$1")" "$(last "$2")" norm) || fail "$1, $2: $difference"
    awk -v d="$difference" -v most="$3" 'BEGIN { exit !(d <= most) }' || fail "$1 and $2 differ by $difference (at most $3)"
}

model=(data.path=texts.csv data.max_length=24 data.val_fraction=0 model.d_model=128 model.heads=2 model.layers=1 model.d_ff=64)

# train RANKS OUT SETTINGS...
train() {
    local ranks=$1 out=$2 words=() word
    shift 2
    for word in "${model[@]}" model.dropout=0.1 train.epochs=2 train.effective_batch_size=16 run.self_check=never run.monitor=none \
        distribute.check_every_steps=1 "$@"; do
        words+=(--set "$word")
    done
    if ((ranks == 1)); then
        "$cleat" train "$profiles/text_classify.ini" --out "$out" "${words[@]}" >"$out.log" 2>&1 || { cat "$out.log" && fail "$out"; }
    else
        mpi "$ranks" "$cleat" train "$profiles/text_classify.ini" --out "$out" "${words[@]}" >"$out.log" 2>&1 || { cat "$out.log" && fail "$out"; }
    fi
}

# both NAME SETTINGS...: trains two ranks, with touched rows and with whole tables
both() {
    local name=$1
    shift
    train 2 "$name" "$@"
    CLEAT_RANKS_DENSE=1 train 2 "${name}_whole" "$@"
    same "$name" "${name}_whole"
}

# 90 texts, so an epoch's last batch has 10; each has unique words, words shared with one other text, and words of all
awk 'BEGIN { print "text,label"; for (i = 0; i < 90; ++i) { line = ""; for (w = 0; w < 24; ++w) line = line " w" (w % 3 ? int(i / 2) * 40 + w : w); print line "," i % 2 } }' >texts.csv

both equal distribute.shares=1,1
train 1 one
size=$(sed -n 's/.*vocabulary of \([0-9]*\).*/\1/p' one.log)
((size * 128 >= 65536)) || fail "a vocabulary of $size is too small to be exchanged by rows"
close one equal 1e-6
both uneven distribute.shares=3,1 train.batch_size=3 # several micro-batches; the last is short
close one uneven 1e-6
both idle distribute.shares=1,0 # rank 1 has no samples
close one idle 1e-6
both few distribute.shares=1,1 data.limit=5 train.effective_batch_size=1 # fewer samples than ranks
both half distribute.shares=1,1 train.precision=f16
train 3 three distribute.shares=2,1,1
close one three 1e-6

# bytes NAME EPOCHS SETTINGS...: counts what rank 0 of two sends
bytes() {
    local name=$1 epochs=$2
    shift 2
    CLEAT_RANKS_LIBRARY=$link CLEAT_TEST_TRANSPORT=$(dirname "$cleat")/libcleat-mpi.so CLEAT_TEST_LINK=0 CLEAT_TEST_BYTES=$folder/sent \
        train 2 "$name$epochs" "${shared[@]}" "$@" train.epochs="$epochs"
    cat sent
}

# predicted SETTINGS...: prints a step's bytes in `cleat plan`, and how the table is exchanged
predicted() {
    local words=() word
    for word in "${model[@]}" "${shared[@]}" "$@"; do words+=(--set "$word"); done
    "$cleat" plan "$profiles/text_classify.ini" "${words[@]}" --devices t4,t4 --network 1Gb --json >plan.json 2>plan.log || { cat plan.log >&2 && return 1; }
    python3 -c 'import json; e = json.load(open("plan.json"))["exchange"]; print(e["sent_bytes"], e["tables"][0]["exchanged"])'
}

# compare_bytes NAME WAY LEAST STEPS SETTINGS...: checks that a training step (STEPS per epoch) sends LEAST to 1 times the predicted bytes,
# plus at most 1 KiB with which ranks agree.
compare_bytes() {
    local name=$1 way=$2 least=$3 steps=$4 few many plan found
    shift 4
    plan=$(predicted "$@") || fail "no plan: $name"
    few=$(bytes "$name" 1 "$@") && many=$(bytes "$name" 3 "$@") || fail "$name: $few $many"
    found=$(((many - few) / (2 * steps)))
    echo "$name: $found bytes per step, predicted $plan"
    [[ ${plan#* } == "$way" ]] || fail "$name: not exchanged as $way"
    awk -v f="$found" -v p="${plan%% *}" -v l="$least" 'BEGIN { exit !(f >= l * p && f <= p + 1024) }' || fail "$name: $found bytes per step, predicted $plan"
}

shared=(distribute.shares=1,1 train.batch_size=4 distribute.check_every_steps=none train.effective_batch_size=15)
awk 'BEGIN { print "text,label"; for (i = 0; i < 90; ++i) { line = ""; for (w = 0; w < 24; ++w) line = line " v" int(i / 2) * 24 + w; print line "," i % 2 } }' >different.csv
compare_bytes different "rows of each device" 0.95 6 data.path=different.csv
compare_bytes texts "rows of each device" 0.85 6
compare_bytes whole "whole table" 0.85 1 data.path=different.csv data.vocabulary_size=520 train.effective_batch_size=90 train.batch_size=45
