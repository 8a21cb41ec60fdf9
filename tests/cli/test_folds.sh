#!/usr/bin/env bash
# Cross-validation: each sample validates once, groups and equal texts stay together, runs are resumed, predictions of
# the folds, the summary; families and command lines that have none.
#   tests/cli/test_folds.sh CLEAT
# ctest: device cost=45
set -uo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"
require_python
require_device
check=$(dirname "$0")/members.py
device=(--device "${CLEAT_TEST_DEVICE:-auto}")
small=(--quiet run.self_check=never train.epochs=2 train.warmup_steps=0)
net=(model.d_model=16 model.layers=1 model.heads=2 model.d_ff=32)

# train STATUS OUT PROFILE ARGUMENT...
train() {
    exits "$1" "$cleat" train "$3" "${device[@]}" "${small[@]}" --out "$scratch/$2" "${@:4}"
}

# predict OUT DATA CHECKPOINT
predict() {
    exits 0 "$cleat" predict "${device[@]}" --checkpoint "$scratch/$3" --data "$2" --out "$scratch/$1"
}

# folds OUT DATA K COLUMN: the rows of a cross-validation of texts.
folds() {
    local k parts=()
    for ((k = 1; k <= $3; ++k)); do
        predict "$1-$k" "$2" "$1/fold-$k"
        parts+=("$scratch/$1-$k/predictions.csv")
    done
    exits 0 python3 "$check" folds "$2" "$4" "$scratch/$1" "${parts[@]}"
    predict "$1-all" "$2" "$1"
    exits 0 python3 "$check" table "$scratch/$1-all/predictions.csv" "${parts[@]}"
}

test_texts() {
    local twice table=$scratch/texts.csv settings=("${net[@]}" data.label_column=label data.id_column=)
    exits 0 python3 "$check" texts "$table" 90
    mapfile -t twice < <(sed -n 2,6p "$table")
    printf '%s\n' "${twice[@]}" >>"$table"
    train 0 cv tweets_sentiment "data.path=$table" "${settings[@]}" --folds 3
    says out std
    folds cv "$table" 3 text
    train 0 groups tweets_sentiment "data.path=$table" "${settings[@]}" --folds 4 --fold-column writer
    folds groups "$table" 4 writer
    # the same command with --resume finds all folds complete; without fold 2, it trains that one again
    cp -r "$scratch/cv" "$scratch/kept"
    train 0 cv tweets_sentiment "data.path=$table" "${settings[@]}" --folds 3 --resume
    exits 0 diff -r "$scratch/kept/out-of-fold" "$scratch/cv/out-of-fold"
    rm -r "$scratch/cv/fold-2" "$scratch/cv/out-of-fold" "$scratch/cv/folds.json"
    train 0 cv tweets_sentiment "data.path=$table" "${settings[@]}" --folds 3 --resume
    exits 0 diff -r "$scratch/kept/out-of-fold" "$scratch/cv/out-of-fold"
    exits 0 cmp "$scratch/kept/folds.json" "$scratch/cv/folds.json"
    train 1 cv tweets_sentiment "data.path=$table" "${settings[@]}" --folds 2 --resume
    says err "data.folds = 2 (was 3)"
    # each sample by the model that was not trained on it, as after the training
    rm -r "$scratch/cv/out-of-fold" "$scratch/cv/folds.json"
    exits 0 "$cleat" eval "${device[@]}" --checkpoint "$scratch/cv" --data "$table"
    says out std
    exits 0 diff -r "$scratch/kept/out-of-fold" "$scratch/cv/out-of-fold"
    exits 0 cmp "$scratch/kept/folds.json" "$scratch/cv/folds.json"
    exits 0 "$cleat" eval "${device[@]}" --checkpoint "$scratch/cv" --data "$table" --split all --json
    json accuracy
    says err "2 of 3 models were trained on each sample"
    exits 1 "$cleat" report "$scratch/cv"
    says err "give one of its runs: fold-1, fold-2, fold-3"
    exits 0 "$cleat" report "$scratch"/cv/fold-* --out "$scratch/folds.html"
    exits 0 grep -q "mean and standard deviation of 3 folds" "$scratch/folds.html"
    train 1 none tweets_sentiment "data.path=$table" "${settings[@]}" --folds 3 --fold-column author
    says err "data.fold_column"
}

test_others() {
    local data=$scratch/rna table k
    exits 0 "$cleat" data make rna --out "$data" --count 30
    train 0 rna rna_small "data.path=$data" "${net[@]}" data.generated=6 --folds 2 --json
    exits 0 python3 "$check" count "$scratch/rna/out-of-fold/predictions.csv" "$data/sequences.csv" test
    exits 0 python3 "$check" scenes "$scratch/scenes" 12
    printf '%s\n' 1 2 3 >"$scratch/scenes/val.txt" # they take part
    train 0 masks masks "data.path=$scratch/scenes" data.image_size=32 train.effective_batch_size=4 --folds 2 \
        model.stage_widths=8,8,16,16 model.stage_heads=1,1,2,2 model.stage_depths=1,1,1,1 model.decoder_width=16
    exits 0 test "$(find "$scratch/masks/out-of-fold" -name '*.png' | wc -l)" = 12
    mkdir -p "$scratch/classes"/{low,high}
    cp "$scratch"/scenes/images/1*.png "$scratch/classes/low"
    cp "$scratch"/scenes/images/[2-9].png "$scratch/classes/high"
    train 0 images image_64 "data.path=$scratch/classes" data.image_size=32 train.effective_batch_size=4 --folds 3
    exits 0 test "$(wc -l <"$scratch/images/out-of-fold/predictions.csv")" = 12
    # rows of a table of images: groups, which only tables have
    table=$scratch/scenes/table.csv
    echo image,label,writer >"$table"
    for k in {0..11}; do
        echo "images/$k.png,$( ((k % 3)) && echo yes || echo no),w$((k / 3))" >>"$table"
    done
    rm -r "$scratch/scenes/val.txt"
    train 0 table image_64 "data.path=$table" data.image_size=32 train.effective_batch_size=4 --folds 3 --fold-column writer
    folds table "$table" 3 writer
    cut -d, -f1,2 "$table" >"$scratch/scenes/new.csv" # new data have no groups
    exits 0 "$cleat" eval "${device[@]}" --checkpoint "$scratch/table" --data "$scratch/scenes/new.csv"
    train 1 x image_64 "data.path=$scratch/classes" data.image_size=32 --folds 3 --fold-column writer
    says err "classes is not a table of images"
    train 1 x masks "data.path=$scratch/scenes" --folds 3 --fold-column writer
    says err "does not apply to model.type mask_segformer"
    says err "Tables: column whose equal values are in one fold"
    train 1 series series_dense data.path=series.csv --folds 3
    says err "are in the order of time"
    train 2 x rna_small "data.path=$data" --folds 1
    train 2 x rna_small "data.path=$data" --folds 3 --devices 2*cpu
    train 1 x rna_small "data.path=$data" data.folds=2 data.fold=3
    says err "data.fold = 3, but data.folds = 2"
}

test_texts
test_others
finish
