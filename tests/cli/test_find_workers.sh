#!/usr/bin/env bash
# The program's worker finder: table, JSON, --write (one line of the profile differs), refusals. Needs a device.
#   test_find_workers.sh CLEAT SOURCE_DIR
# ctest: device quick
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

device=${CLEAT_TEST_DEVICE:-auto}
small=(--device "$device" --seconds 0.05 --set "data.path=$scratch/data" --set data.max_length=24 --set model.d_model=16 --set model.heads=2
    --set model.layers=1 --set model.d_ff=16 --set train.effective_batch_size=4)

make_data() {
    exits 0 "$cleat" data make rna --out "$scratch/data" --count 30
    cp "$1/profiles/rna_small.ini" "$scratch/rna.ini"
}

test_table() {
    exits 0 "$cleat" find-workers "$scratch/rna.ini" "${small[@]}" --workers 0,1,2,4,8
    says out "loader alone"
    says out "samples/s"
    says out "recommended: loader.num_workers = "
    says err "measuring 8 loader threads"
}

test_json() {
    exits 0 "$cleat" find-workers "$scratch/rna.ini" "${small[@]}" --workers 0,1,2,4,8 --json
    json points 4 samples_per_s
    json points 0 supply_samples_per_s
    json demand_samples_per_s
    json verdict
    says out '"workers": 8,'
    local chosen
    chosen=$(sed -n 's/^{"chosen": \([0-9]*\),.*/\1/p' "$scratch/out")
    checks=$((checks + 1))
    [[ $chosen =~ ^(0|1|2|4|8)$ ]] || complain "chosen is '$chosen'"
}

# changed LINES: the profile has LINES new lines, and lost LINES - 1 if a line was replaced.
changed() {
    local added removed
    added=$(diff "$scratch/before.ini" "$scratch/rna.ini" | grep -c '^>' || true)
    removed=$(diff "$scratch/before.ini" "$scratch/rna.ini" | grep -c '^<' || true)
    checks=$((checks + 1))
    [[ $added/$removed == "$1" ]] || complain "$added lines added and $removed removed instead of $1"
}

test_write() {
    cp "$scratch/rna.ini" "$scratch/before.ini"
    exits 0 "$cleat" find-workers "$scratch/rna.ini" "${small[@]}" --workers 1 --write
    says out "num_workers = 1"
    changed 3/0 # rna_small.ini has no [loader]
    exits 0 grep -qx 'num_workers = 1' "$scratch/rna.ini"
    printf '[loader]\n# a comment\nprefetch_factor = 3   ; why\n\n' | cat - "$scratch/before.ini" >"$scratch/rna.ini"
    cp "$scratch/rna.ini" "$scratch/before.ini"
    exits 0 "$cleat" find-workers "$scratch/rna.ini" "${small[@]}" --workers 2 --write --json
    changed 1/0
    sed 's/^num_workers = 2$/  num_workers=7 ; mine/' "$scratch/rna.ini" >"$scratch/before.ini"
    cp "$scratch/before.ini" "$scratch/rna.ini"
    exits 0 "$cleat" find-workers "$scratch/rna.ini" "${small[@]}" --workers 0 --write
    changed 1/1
    exits 0 grep -qx '  num_workers= 0 ; mine' "$scratch/rna.ini"
    exits 0 "$cleat" train "$scratch/rna.ini" "${small[@]:0:2}" "${small[@]:4}" --set train.epochs=1 --set train.warmup_steps=0 --out "$scratch/run"
}

test_refusals() {
    exits 2 "$cleat" find-workers
    exits 2 "$cleat" find-workers "$scratch/rna.ini" --workers 1,x
    says err "such as 0,2,4"
    exits 2 "$cleat" find-workers "$scratch/rna.ini" --workers 1,
    exits 2 "$cleat" find-workers "$scratch/rna.ini" --seconds 0
    exits 1 "$cleat" find-workers "$scratch/rna.ini" "${small[@]}" --workers 500
    says err "there can be 0 to 84"
    exits 1 "$cleat" find-workers "$scratch/rna.ini" --set "data.path=$scratch/nothing"
    says err nothing
    exits 4 "$cleat" find-workers "$scratch/rna.ini" "${small[@]}" --device no_such_device
    exits 0 "$cleat" find-workers --help
    says out "usage: cleat find-workers"
}

require_device
make_data "$2"
test_table
test_json
test_write
test_refusals
finish
