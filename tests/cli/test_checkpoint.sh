#!/usr/bin/env bash
# What a finished run is good for: predictions of longer and other inputs, a resume.
#   test_checkpoint.sh CLEAT SOURCE_DIR
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

profiles=$2/profiles
device=${CLEAT_TEST_DEVICE:-auto}
small=(--device "$device" --set model.layers=1 --set train.warmup_steps=0 --set train.epochs=1 --set run.self_check=never)
encoder=(--set model.d_model=32 --set model.heads=2 --set model.d_ff=64)

# repeat N TEXT: the text N times.
repeat() {
    printf "$2%.0s" $(seq "$1")
}

make_rna() {
    exits 0 "$cleat" data make rna --out "$scratch/rna" --count 12
    exits 0 "$cleat" train "$profiles/rna_small.ini" "${small[@]}" "${encoder[@]}" --set "data.path=$scratch/rna" --set data.max_length=96 \
        --out "$scratch/rna_run"
}

# rows: data rows of predictions.csv.
rows() {
    tail -n +2 "$scratch/out_dir/predictions.csv" | wc -l
}

# A chain longer than every one of the training is predicted whole by the run's own resolved.ini; a chain longer than
# data.max_length is predicted as far as that allows, which is an error.
test_longer_chains() {
    local line=("$cleat" predict "$scratch/rna_run/resolved.ini" --checkpoint "$scratch/rna_run" --data "$scratch/long.fasta" --out "$scratch/out_dir")
    printf '>short\nGGGAAACCC\n>long\n%s\n' "$(repeat 20 GCAU)" >"$scratch/long.fasta"
    exits 0 "${line[@]}"
    exits 0 test "$(rows)" = 89
    printf '>longer\n%s\n' "$(repeat 25 GCAU)" >>"$scratch/long.fasta"
    exits 1 "${line[@]}"
    says err "1 of 3 samples are longer than data.max_length = 96"
    says err "longer; a larger"
    says err "data.max_length=100 would predict all of them"
    exits 0 test "$(rows)" = 185
    exits 0 "${line[@]}" --set data.max_length=100
    exits 0 test "$(rows)" = 189
}

require_device
make_rna
test_longer_chains
finish
