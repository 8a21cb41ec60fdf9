#!/usr/bin/env bash
# Messages and exit statuses for non-finite values: a value in the validation rows that exceeds f16, and a kernel that
# computes incorrectly. Also settings that a run refuses before any lengthy work.
#   test_finite.sh CLEAT SOURCE_DIR
# ctest: device
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

profile=$2/profiles/series_dense.ini
tiny=(--device "${CLEAT_TEST_DEVICE:-auto}" --set "data.path=$scratch/spike.csv" --set model.layers=1 --set model.hidden=16 --set data.lookback=8
    --set data.horizon=2 --set data.train_rows=60 --set data.val_rows=30 --set data.test_rows=none --set data.season=none
    --set data.anchor=none --set run.early_stopping_patience=none --set train.effective_batch_size=16 --set train.warmup_steps=1 --set run.self_check=never)
f16=("${tiny[@]}" --set train.precision=f16)

# Ninety hourly rows of two columns; row 75, a validation row, has a value of 1e8.
make_data() {
    awk 'BEGIN { print "date,a,b"; for (i = 0; i < 90; ++i) printf "2020-01-%02d %02d:00:00,%g,%g\n", 1 + i / 24, i % 24, i == 75 ? 1e8 : sin(i), cos(i) }' \
        >"$scratch/spike.csv"
}

test_train() {
    exits 0 "$cleat" train "$profile" "${f16[@]}" --set train.epochs=2 --out "$scratch/run"
    says out "no evaluation was finite"
    lacks out "best evaluation"
    says err "warning: evaluation after step"
    says err "outputs are not finite, the first that of sample 2020-01-04T03:00:00"
    says err "f16 overflows above 65504: train.precision = bf16 or f32"
    exits 1 test -e "$scratch/run/best"
    exits 0 "$cleat" train "$profile" "${tiny[@]}" --set train.precision=f32 --set train.epochs=2 --out "$scratch/run32"
    says out "best evaluation (step"
    says err "planned"
    lacks err "not finite"
    exits 0 test -e "$scratch/run32/best"
    # A finished run reports its precision and keeps its settings.
    cp "$scratch/run32/resolved.ini" "$scratch/resolved.ini"
    exits 0 "$cleat" train "$profile" "${f16[@]}" --set train.epochs=2 --out "$scratch/run32" --resume --json
    json precision
    says out '"precision": "f16"'
    exits 0 cmp "$scratch/run32/resolved.ini" "$scratch/resolved.ini"
}

test_eval() {
    exits 5 "$cleat" eval "$profile" "${f16[@]}" --checkpoint "$scratch/run32"
    says out mse
    says err "outputs are not finite, the first that of sample"
    says err "f16 overflows above 65504"
    exits 5 "$cleat" eval "$profile" "${f16[@]}" --checkpoint "$scratch/run32" --json
    json mse
    for precision in f32 bf16; do
        exits 0 "$cleat" eval "$profile" "${tiny[@]}" --set train.precision=$precision --checkpoint "$scratch/run32"
        lacks err "not finite"
    done
    # Training settings have no effect without training.
    exits 0 "$cleat" eval "$profile" "${tiny[@]}" --set train.precision=f32 --set train.loss_scale=1024 --checkpoint "$scratch/run32"
    exits 1 "$cleat" plan "$profile" "${tiny[@]}" --set train.precision=f32 --set train.loss_scale=1024
    says err "--set train.loss_scale=auto"
}

test_predict() {
    local line=("$cleat" predict "$profile" --all --checkpoint "$scratch/run32" --data "$scratch/spike.csv" --out)
    exits 5 "${line[@]}" "$scratch/p16" "${f16[@]}"
    says err "outputs are not finite, the first that of sample 2020-01-04T03:00:00"
    says out "predictions written to"
    exits 0 test -f "$scratch/p16/predictions.csv"
    exits 0 "${line[@]}" "$scratch/p32" "${tiny[@]}" --set train.precision=f32
    lacks err "not finite"
}

# A kernel with a NaN gradient and a finite loss, which no loss scale corrects.
test_check_finite() {
    cp -r "$2/cl" "$scratch/cl"
    sed -i 's/row_store(fma(d, (floatv)(weight), before), AT(dx)/row_store(fma(d, (floatv)(weight), before) + (floatv)(NAN), AT(dx)/' \
        "$scratch/cl/element_loss.cl"
    for precision in f32 f16; do
        exits 5 env CLEAT_KERNEL_DIR="$scratch/cl" "$cleat" train "$profile" "${tiny[@]}" --set train.precision=$precision --check-finite \
            --out "$scratch/nan_$precision"
        says err "step 1: first tensor that is not finite"
        says err "by op mse_loss_grad"
    done
    exits 4 env CLEAT_KERNEL_DIR="$scratch/cl" "$cleat" verify "$2/src/inspect/verify/checks/series_dense.safetensors" --device "${CLEAT_TEST_DEVICE:-auto}"
    says out "the worst                      nan"
    exits 4 env CLEAT_KERNEL_DIR="$scratch/cl" "$cleat" verify "$2/src/inspect/verify/checks/series_dense.safetensors" --device "${CLEAT_TEST_DEVICE:-auto}" \
        --json
    says out '"deviation": null'
    json checks
    # A gradient that overflows only because of the loss scale lowers the scale and is reported once.
    exits 0 "$cleat" train "$profile" "${f16[@]}" --set train.loss_scale=1099511627776 --set train.epochs=10 --check-finite \
        --set run.evaluate_every_epochs=none --set data.val_rows=10 --out "$scratch/high"
    says out "their gradient overflowed f16"
    says err "overflows at a loss scale of"
    says err "With a loss scale of 1 its gradient is finite"
    exits 0 test "$(grep -c 'overflows at a loss scale of' "$scratch/err")" = 1
    exits 0 "$cleat" train "$profile" "${f16[@]}" --set train.loss_scale=1099511627776 --set train.epochs=10 \
        --set run.evaluate_every_epochs=none --set data.val_rows=10 --out "$scratch/high_free"
    exits 0 cmp <(grep -v start "$scratch/high/metrics.jsonl") <(grep -v start "$scratch/high_free/metrics.jsonl")
}

# The schedule depends on the number of steps, and so on the data. It is validated once they are read, before memory is
# planned and kernels are compiled.
test_schedule() {
    exits 1 "$cleat" train "$profile" "${tiny[@]}" --set run.self_check=always --set train.lr_scaling=linear \
        --set train.base_batch_size=100000 --set train.min_learning_rate=1e-4 --out "$scratch/floor"
    says err "train.min_learning_rate 0.0001 is above the scaled learning rate"
    says err "training samples"
    lacks err "planned"
}

# A warm-up that is too long for these data.
test_warmup() {
    exits 0 "$cleat" train "$profile" "${tiny[@]}" --set train.warmup_steps=1000 --out "$scratch/warm"
    says err "the warm-up of 1000 optimizer steps is not shorter than the run of"
    exits 0 "$cleat" train "$profile" "${tiny[@]}" --set train.warmup_steps=0 --set train.warmup_ratio=0.5 --out "$scratch/ratio"
    lacks err "the warm-up of"
    exits 1 "$cleat" train "$profile" "${tiny[@]}" --set train.warmup_ratio=0.5 --out "$scratch/both"
    says err "set the warm-up one way only"
}

require_device
make_data
test_train
test_eval
test_predict
test_check_finite "$@"
test_schedule
test_warmup
finish
