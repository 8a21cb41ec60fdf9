#!/usr/bin/env bash
# The program's kernel tuner: its output, its tuning file; plans and runs report the table that they use. Needs a device.
#   test_tune.sh CLEAT SOURCE_DIR
# ctest: device cost=52
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

profile=$2/profiles/rna_small.ini
tiny=(--device "${CLEAT_TEST_DEVICE:-auto}" --set "data.path=$scratch/data" --set data.max_length=24 --set model.d_model=16 --set model.heads=2
    --set model.layers=1 --set model.d_ff=16 --set train.effective_batch_size=4 --set train.warmup_steps=1)

file_of_choices() {
    find "$CLEAT_CACHE_DIR/tuned" -name '*.ini' 2>/dev/null
}

test_tuning() {
    exits 0 "$cleat" plan "$profile" "${tiny[@]}"
    exits 0 "$cleat" --log dispatch tune "$profile" "${tiny[@]}" --seconds 0.001
    says out "times per step"
    says out "  * "
    says out "kinds of nodes with several kernels"
    says out "optimizer step at length"
    says out "$scratch/data does not exist: tuning the longest length, 24"
    says out "choices saved in $CLEAT_CACHE_DIR/tuned/"
    says out "before: "
    says out "CLBlast parameters: not searched"
    says err "tune linear f32["
    exits 0 grep -q '^linear f32.* -> .* = ' "$(file_of_choices)"
}

test_use() {
    exits 0 "$cleat" data make rna --out "$scratch/data" --count 12
    exits 0 "$cleat" tune "$profile" "${tiny[@]}" --seconds 0.001 --json
    json nodes 0 candidates 1 variant
    json nodes 0 chosen
    json default_seconds
    says out '"data_known": true'
    json tuned_bytes
    exits 0 "$cleat" train "$profile" "${tiny[@]}" --set train.epochs=1 --out "$scratch/run"
    says err "choices tuned here on 20"
    exits 0 env CLEAT_TUNED=never "$cleat" train "$profile" "${tiny[@]}" --set train.epochs=1 --out "$scratch/never"
    lacks err "choices tuned"
    exits 0 "$cleat" plan "$profile" "${tiny[@]}"
    says out "choices tuned here on 20"
    exits 0 "$cleat" plan "$profile" "${tiny[@]}" --json
    json kernels
    exits 0 "$cleat" --log dispatch plan "$profile" "${tiny[@]}"
    says err "is the fastest measured (tuned here on 20"
    echo nonsense >>"$(file_of_choices)"
    exits 0 "$cleat" plan "$profile" "${tiny[@]}"
    says err "the tuned choices are not used"
}

# Also replaces the damaged tuning file from test_use.
test_several() {
    local other=$scratch/other.ini
    cp "$profile" "$other"
    exits 0 "$cleat" tune "$profile" "$other" "${tiny[@]}" --seconds 0.001 --ship "$scratch/card.tuned"
    says out "== $profile"
    says out "== $other"
    says out "before: "
    exits 0 cmp "$scratch/card.tuned" "$(file_of_choices)"
    exits 0 grep -q '^match = ' "$scratch/card.tuned"
    exits 0 "$cleat" plan "$profile" "${tiny[@]}"
    lacks err "not used"
    exits 1 "$cleat" tune "$scratch/missing.ini" "$profile" "${tiny[@]}" --seconds 0.001
    says err "1 of 2 profiles failed: $scratch/missing.ini"
    says out "kinds of nodes with several kernels"
    exits 1 "$cleat" tune "$profile" "${tiny[@]}" --seconds 0.001 --ship "$scratch/no/such/folder/card.tuned"
    says err "saving the choices"
}

test_refusals() {
    exits 3 env CLEAT_DEVICE_MEMORY_LIMIT=20000 "$cleat" tune "$profile" "${tiny[@]}"
    exits 4 "$cleat" tune "$profile" "${tiny[@]}" --device no_such_device
    says err no_such_device
    exits 4 "$cleat" tune "$profile" "${tiny[@]}" --device no_such_device --json
    empty out
    exits 1 "$cleat" tune "$scratch/missing.ini"
    says err missing.ini
    exits 2 "$cleat" tune
    exits 2 "$cleat" tune "$profile" --seconds 0
    exits 0 "$cleat" tune --help
    says out "usage: cleat tune"
}

require_device
export CLEAT_CACHE_DIR=$scratch/cache
test_tuning
test_use
test_several
test_refusals
finish
