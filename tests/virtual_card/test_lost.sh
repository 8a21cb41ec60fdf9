#!/usr/bin/env bash
# A device that is lost in the middle of a run: a kernel accesses memory that is not its own, after which NVIDIA's driver
# answers CL_OUT_OF_RESOURCES for ever. The run must end with the exit code of a failed device, not look for smaller batches,
# say what happened, and leave its last checkpoint, from which it continues to the result of a run without the accident.
#   test_lost.sh CLEAT SOURCE_DIR
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/../cli/checks.sh"

unset CLEAT_VIRTUAL_CARD_STRICT # the fault is wanted

cp -r "$2/cl" "$scratch/cl"
# In the step of row 5 of the ring, the second epoch: a write 64 GiB behind the ring.
sed -i 's|^    row\[n\] = AT(norm)\[0\];|    if (AT(slot)[0] % rows == 5) row[(ulong)1 << 34] = 1.0f;\n&|' "$scratch/cl/log_step.cl"
! cmp -s "$2/cl/log_step.cl" "$scratch/cl/log_step.cl" || { echo "log_step.cl has changed: adapt the test" && exit 1; }

cat >"$scratch/tiny.ini" <<INI
[model]
type = rna_transformer
d_model = 16
heads = 2
layers = 1
d_ff = 16
[data]
path = $scratch/data
buckets = 32
max_length = 32
limit = 8
[train]
epochs = 2
batch_size = 2
effective_batch_size = 2
[run]
checkpoint_every_epochs = 1
evaluate_every_epochs = 1
monitor = none
self_check = never
INI
run=("$cleat" train "$scratch/tiny.ini" --out)

exits 0 "$cleat" data make rna --out "$scratch/data" --count 16
exits 0 "${run[@]}" "$scratch/whole"
exits 4 env CLEAT_KERNEL_DIR="$scratch/cl" "${run[@]}" "$scratch/lost"
says err "virtual card: fault"
says err "is lost"
says err "--resume"
lacks err "out of device memory"
lacks err "smaller"
exits 0 test -f "$scratch/lost/last"
exits 0 "${run[@]}" "$scratch/lost" --resume
exits 0 cmp "$scratch/whole/$(<"$scratch/whole/last")/model.safetensors" "$scratch/lost/$(<"$scratch/lost/last")/model.safetensors"
# A command that only reads the checkpoint.
exits 0 "$cleat" eval "$scratch/tiny.ini" --checkpoint "$scratch/lost" --split val
finish
