#!/usr/bin/env bash
# Uses of a finished run: predictions of longer and other inputs, a resume.
#   test_checkpoint.sh CLEAT SOURCE_DIR
# ctest: device quick
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

profiles=$2/profiles
device=${CLEAT_TEST_DEVICE:-auto}
small=(--device "$device" --set model.layers=1 --set train.warmup_steps=0 --set train.epochs=1 --set run.self_check=never)
encoder=(--set model.d_model=32 --set model.heads=2 --set model.d_ff=64)

# repeat N TEXT: prints the text N times.
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

# With the run's resolved.ini, a chain that is longer than all training chains is predicted completely. A chain longer than
# data.max_length is truncated, which is an error.
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

# A checkpoint folder is enough, even outside its run and the folder of the training.
test_alone() {
    local options=(--device "$device" --out "$scratch/out_dir" --data "$scratch/two.fasta") checkpoint with
    printf '>a\nGGGAAACCC\n>b\nGCGCUUCGGCGC\n' >"$scratch/two.fasta"
    exits 0 "$cleat" predict "$profiles/rna_small.ini" "${small[@]}" "${encoder[@]}" --checkpoint "$scratch/rna_run" "${options[@]}"
    with=$(cksum <"$scratch/out_dir/predictions.csv")
    mkdir -p "$scratch/elsewhere"
    cp -r "$scratch/rna_run"/ckpt-E001-* "$scratch/elsewhere/copy"
    for checkpoint in "$scratch/rna_run" "$scratch/rna_run/best" "$scratch/elsewhere/copy"; do
        exits 0 "$cleat" predict --checkpoint "$checkpoint" "${options[@]}"
        says out "2 predictions written to $scratch/out_dir"
        exits 0 test "$(cksum <"$scratch/out_dir/predictions.csv")" = "$with"
    done
    exits 0 grep -qxE "path = (Z:)?$scratch/rna" "$scratch/elsewhere/copy/profile.ini"
    exits 1 "$cleat" predict --checkpoint "$scratch/elsewhere/copy" "${options[@]}" --set model.layers=2
    says err "model.layers is 1 in the checkpoint, 2 in the profile"
    exits 1 "$cleat" predict --checkpoint "$scratch/elsewhere" "${options[@]}"
    says err "neither a checkpoint (state.json) nor a run folder with one"
    exits 4 "$cleat" predict --checkpoint "$scratch/rna_run" --device no_such_device --data "$scratch/two.fasta" --out "$scratch/out_dir"
}

# Evaluations use the run's data relative to the training folder; other data are used as a whole.
test_eval_alone() {
    exits 0 "$cleat" eval --checkpoint "$scratch/rna_run" --device "$device" --json
    json lddt
    grep -qE "split .val. of (Z:)?$scratch/rna" "$scratch/err" || complain "another split"
    cd "$scratch"
    exits 0 "$cleat" eval --checkpoint rna_run --device "$device" --data rna --json
    says err "split 'val' of rna"
    cd "$OLDPWD"
    exits 0 "$cleat" data make rna --out "$scratch/others" --count 5
    exits 0 "$cleat" eval --checkpoint "$scratch/rna_run/last" --device "$device" --data "$scratch/others" --json
    says err "6 samples, split 'all' of $scratch/others"
    exits 1 "$cleat" eval --checkpoint "$scratch/rna_run" --device "$device" --data "$scratch/absent"
    says err "$scratch/absent: no such file or folder"
}

# Standard input and output; no files remain.
test_streams() {
    mkdir "$scratch/tmp"
    export TMPDIR=$scratch/tmp
    exits 0 "$cleat" predict --checkpoint "$scratch/rna_run" --device "$device" --data "$scratch/two.fasta" --out -
    cp "$scratch/out" "$scratch/printed"
    exits 0 cmp "$scratch/printed" "$scratch/out_dir/predictions.csv"
    "$cleat" predict --checkpoint "$scratch/rna_run" --device "$device" --data - <"$scratch/two.fasta" >"$scratch/printed" 2>"$scratch/err"
    exits 0 cmp "$scratch/printed" "$scratch/out_dir/predictions.csv"
    exits 1 "$cleat" predict --checkpoint "$scratch/rna_run" --device "$device" --data -
    says err "the standard input is empty"
    rm -rf "$TMPDIR"/wine-* # wine keeps its lock there
    exits 0 rmdir "$TMPDIR"
}

require_device
make_rna
test_longer_chains
test_alone
test_eval_alone
test_streams
finish
