#!/usr/bin/env bash
# The program's batch finder: table and JSON output of the batch sizes that train, and the exit statuses for a card that
# is too small and for a missing device. Needs a device.
#   test_find_batch.sh CLEAT SOURCE_DIR
# ctest: device quick
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

profile=$2/profiles/rna_small.ini
tiny=(--device "${CLEAT_TEST_DEVICE:-auto}" --seconds 0.01 --set "data.path=$scratch/nothing" --set data.max_length=24 --set model.d_model=16 --set model.heads=2
    --set model.layers=1 --set model.d_ff=16 --set train.effective_batch_size=4)

test_curve() {
    exits 0 "$cleat" find-batch "$profile" "${tiny[@]}"
    says out "planned MiB"
    says out "The largest micro-batch that trains is 4, a whole global batch"
    says out "The best throughput is"
    says out "recommended: train.batch_size = "
    exits 0 "$cleat" find-batch "$profile" "${tiny[@]}" --json
    json recommended
    json points 2 samples_per_s
    says out '"largest": 4,'
    says out '"length": 24,'
}

# Refusals: nothing fits, no device opens, invalid arguments.
test_refusals() {
    exits 3 env CLEAT_DEVICE_MEMORY_LIMIT=20000 "$cleat" find-batch "$profile" "${tiny[@]}"
    says out "does not fit"
    says err "not even a single sample trains"
    exits 3 env CLEAT_DEVICE_MEMORY_LIMIT=20000 "$cleat" find-batch "$profile" "${tiny[@]}" --json
    json points 0 error
    says out '"recommended": null'
    exits 4 "$cleat" find-batch "$profile" "${tiny[@]}" --device no_such_device
    says err no_such_device
    exits 1 "$cleat" find-batch "$scratch/missing.ini"
    says err missing.ini
    exits 2 "$cleat" find-batch
    exits 2 "$cleat" find-batch "$profile" --seconds 0
    exits 0 "$cleat" find-batch --help
    says out "usage: cleat find-batch"
}

require_device
test_curve
test_refusals
finish
