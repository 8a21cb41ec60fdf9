#!/usr/bin/env bash
# A device is lost in the middle of a run: its driver resets it and returns CL_OUT_OF_RESOURCES from then on.
# The run must end with the exit code of a failed device, report the cause without trying smaller batches,
# release its objects, and leave its last checkpoint. Resumed from it, the run must reach the result of an
# undisturbed run.
#   test_lost.sh CLEAT
# ctest: quick
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/../cli/checks.sh"

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
train=("$cleat" train "$scratch/tiny.ini" --out)

exits 0 "$cleat" data make rna --out "$scratch/data" --count 16
CLEAT_VIRTUAL_CARD_REPORT=$scratch/report.tsv exits 0 "${train[@]}" "$scratch/whole"
launches=$(awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "launches") column = i } NR > 1 { sum += $column } END { print sum }' "$scratch/report.tsv")
# At the beginning, in the second epoch, in an evaluation or a checkpoint.
for part in 0 60 75 90; do
    run=$scratch/lost_$part
    exits 4 env CLEAT_VIRTUAL_CARD_RESET_AT=$((launches * part / 100 + 1)) "${train[@]}" "$run"
    says err "is lost"
    says err "--resume"
    lacks err "out of device memory"
    lacks err "smaller"
    ((part > 0)) || continue
    exits 0 test -f "$run/last"
    exits 0 "${train[@]}" "$run" --resume
    exits 0 cmp "$scratch/whole/$(<"$scratch/whole/last")/model.safetensors" "$run/$(<"$run/last")/model.safetensors"
done
# A command that only reads the checkpoint.
exits 4 env CLEAT_VIRTUAL_CARD_RESET_AT=5 "$cleat" eval "$scratch/tiny.ini" --checkpoint "$scratch/whole" --split val
says err "is lost"
# The kernel is named if the run waits for each one.
for launch in 5:linear_ 6:layer_norm_forward; do
    exits 4 env CLEAT_LAUNCH_BLOCKING=1 CLEAT_VIRTUAL_CARD_RESET_AT="${launch%:*}" "$cleat" eval "$scratch/tiny.ini" --checkpoint "$scratch/whole" --split val
    says err "is lost (kernel '${launch#*:}"
done
finish
