#!/usr/bin/env bash
# Trainings with mixed, rotated and deformed images: micro-batches, loader threads, a killed run; refusals.
#   test_augment.sh CLEAT SOURCE_DIR
# ctest: device cost=60
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"
require_python
require_device
data=${CLEAT_SHARED:-$2/../shared}/data
[[ -d $data/fashion_mnist && -d $data/nuclei_seg ]] || exit 77

cat >"$scratch/vit.ini" <<END
[model]
type = image_vit
d_model = 16
heads = 2
layers = 1
d_ff = 32
patch = 7
dropout = 0

[data]
path = $data/fashion_mnist
image_size = 28
limit = 48

[train]
epochs = 3
effective_batch_size = 16
precision = f32

[run]
self_check = never
evaluate_every_epochs = 3
END
vit=("$scratch/vit.ini" --device "${CLEAT_TEST_DEVICE:-auto}")
all=(data.mixup=0.5 data.cutmix=1 data.randaugment=2,9 data.rotate=20 data.elastic=1 data.elastic_sigma=4 data.gamma=0.3
    data.noise=0.05 data.blur=1)

# losses RUN: the loss of each step and of each evaluation.
losses() {
    python3 -c '
import json, sys
for line in open(sys.argv[1] + "/metrics.jsonl"):
    record = json.loads(line)
    if record["kind"] != "start":
        print(record["kind"], repr(record["loss"]))' "$1"
}

# same_losses RUN OTHER
same_losses() {
    checks=$((checks + 1))
    [[ $(losses "$1") == $(losses "$2") && -n $(losses "$1") ]] || complain "$1 and $2 have other losses"
}

# close_losses RUN OTHER MOST: the largest relative difference is below MOST.
close_losses() {
    checks=$((checks + 1))
    paste <(losses "$1") <(losses "$2") | awk -v most="$3" '
        { d = $2 - $4; if (d < 0) d = -d; if ($1 != $3 || d > most * $4) wrong = 1 } END { exit wrong || !NR }' ||
        complain "$1 and $2 differ"
}

exits 0 "$cleat" train "${vit[@]}" "${all[@]}" loader.num_workers=0 --out "$scratch/whole"
exits 0 "$cleat" train "${vit[@]}" "${all[@]}" loader.num_workers=2 --out "$scratch/workers"
same_losses "$scratch/whole" "$scratch/workers"
exits 0 "$cleat" train "${vit[@]}" "${all[@]}" train.batch_size=3 --out "$scratch/pieces"
close_losses "$scratch/whole" "$scratch/pieces" 1e-4
exits 0 "$cleat" train "${vit[@]}" --out "$scratch/plain"
checks=$((checks + 1))
[[ $(losses "$scratch/plain") != $(losses "$scratch/whole") ]] || complain "the augmentation changed nothing"

# killed after the first checkpoint, and resumed
"$cleat" train "${vit[@]}" "${all[@]}" --out "$scratch/killed" >"$scratch/out" 2>"$scratch/err" &
run=$!
for ((i = 0; i < 600; ++i)); do
    ! compgen -G "$scratch/killed/ckpt-*" >/dev/null || break
    sleep 0.05
done
kill -9 $run 2>/dev/null || true
wait $run || true
exits 0 "$cleat" train "${vit[@]}" "${all[@]}" --out "$scratch/killed" --resume
same_losses "$scratch/whole" "$scratch/killed"
exits 0 cmp "$scratch/whole/ckpt-E003-S000009/model.safetensors" "$scratch/killed/ckpt-E003-S000009/model.safetensors"

# what is trained can be evaluated, predicted and checked
exits 0 "$cleat" eval --checkpoint "$scratch/whole"
says out accuracy
exits 0 "$cleat" predict --checkpoint "$scratch/whole" --data "$data/blood_cells/jpeg224/val/wbc" --out "$scratch/found"
exits 0 test -s "$scratch/found/predictions.csv"
exits 0 "$cleat" train "${vit[@]}" "${all[@]}" train.epochs=1 train.precision=f16 run.self_check=always --out "$scratch/half"

# masks: with micro-batches and threads
masks=("$2/profiles/masks.ini" "data.path=$data/nuclei_seg" data.limit=8 data.image_size=32 data.rotate=45 data.elastic=2
    data.elastic_sigma=5 data.gamma=0.5 data.noise=0.1 data.blur=1 train.epochs=1 run.evaluate_every_epochs=1
    model.dropout=0 train.precision=f32 run.self_check=never --device "${CLEAT_TEST_DEVICE:-auto}")
exits 0 "$cleat" train "${masks[@]}" loader.num_workers=0 --out "$scratch/masks"
exits 0 "$cleat" train "${masks[@]}" loader.num_workers=2 --out "$scratch/masks2"
same_losses "$scratch/masks" "$scratch/masks2"

exits 1 "$cleat" config "${vit[0]}" data.randaugment=2
says err "takes two numbers"
exits 1 "$cleat" config "$2/profiles/masks.ini" data.mixup=0.2
says err "mask_segformer"
exits 1 "$cleat" config "${vit[0]}" data.rotate=200
says err "data.rotate"
finish
