#!/usr/bin/env bash
# Several checkpoints in predict and eval, test-time flips, and the RNA competition's file: against means computed from
# the predictions of single checkpoints, and what cannot be combined.
#   tests/cli/test_members.sh CLEAT
# ctest: device cost=105
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

# train NAME PROFILE SETTING...: a run in $scratch/NAME.
train() {
    exits 0 "$cleat" train "$2" "${device[@]}" "${small[@]}" --out "$scratch/$1" "${@:3}"
}

# predict OUT DATA CHECKPOINT... [-- OPTION...]: into $scratch/OUT.
predict() {
    local out=$1 data=$2 words=()
    shift 2
    while (($#)) && [[ $1 != -- ]]; do
        words+=(--checkpoint "$scratch/$1")
        shift
    done
    exits 0 "$cleat" predict "${device[@]}" --data "$data" --out "$scratch/$out" "${words[@]}" "${@:2}"
}

# evaluate CHECKPOINT... [-- OPTION...]: metrics as JSON in $scratch/out.
evaluate() {
    local words=()
    while (($#)) && [[ $1 != -- ]]; do
        words+=(--checkpoint "$scratch/$1")
        shift
    done
    exits 0 "$cleat" eval "${device[@]}" "${words[@]}" --json --quiet "${@:2}"
}

# refuses TEXT CHECKPOINT CHECKPOINT DATA [OPTION...]: the message of predict contains the text.
refuses() {
    exits 1 "$cleat" predict "${device[@]}" --checkpoint "$scratch/$2" --checkpoint "$scratch/$3" --data "$4" --out "$scratch/x" "${@:5}"
    says err "$1"
}

# checked WHAT ARGUMENT...: a comparison of members.py.
checked() {
    exits 0 python3 "$check" "$@"
}

# value NAME: a number of the last --json.
value() {
    python3 -c 'import json, sys; print(repr(json.load(open(sys.argv[1]))[sys.argv[2]]))' "$scratch/out" "$1"
}

test_rna() {
    local data=$scratch/rna chain k best=() tm=()
    exits 0 "$cleat" data make rna --out "$data" --count 40
    for k in 1 2 3; do
        train "rna$k" rna_small "data.path=$data" "${net[@]}" model.dropout=0.2 run.seed=$k train.learning_rate=0.01
        predict "p$k" "$data/sequences.csv" "rna$k"
    done
    predict twice "$data/sequences.csv" rna1 rna1
    exits 0 cmp "$scratch/twice/predictions.csv" "$scratch/p1/predictions.csv"
    predict all "$data/sequences.csv" rna1 rna2 rna3
    checked medoid "$scratch/all/predictions.csv" "$scratch"/p[123]/predictions.csv
    predict five "$data/sequences.csv" rna1 rna2 rna3 -- --format submission
    says err "structures 1 to 5: the checkpoints, repeated, since there are fewer than five"
    checked submission "$scratch/five/submission.csv" "$scratch"/p{1,2,3,1,2}/predictions.csv
    predict seeds "$data/sequences.csv" rna1 -- --format submission
    says err "structures 1 to 5: one checkpoint with dropout, seeds 1 to 5"
    checked differ "$scratch/seeds/submission.csv" "$data/sequences.csv"
    predict again "$data/sequences.csv" rna1 -- --format submission train.batch_size=3
    exits 0 cmp "$scratch/seeds/submission.csv" "$scratch/again/submission.csv"
    exits 1 "$cleat" predict "${device[@]}" --checkpoint "$scratch/rna1" --data "$data/sequences.csv" --out "$scratch/cut" \
        --format submission data.max_length=12
    says err "are longer than data.max_length = 12"
    checked cut "$scratch/cut/submission.csv" "$data/sequences.csv" 12
    if [[ -d ${CLEAT_SHARED:-}/data/rna_3d ]]; then # 252 real chains
        predict real "$CLEAT_SHARED/data/rna_3d" rna1 rna2 rna3 -- --format submission data.max_length=400
        exits 0 cmp <(cut -d, -f1-3 "$scratch/real/submission.csv") <(cut -d, -f1-3 "$CLEAT_SHARED/data/rna_3d/labels.csv")
    fi
    # the best TM-score: of single checkpoints for a chain at a time, and by numpy
    for chain in 1 2; do
        exits 0 python3 "$check" chains "$data" "$scratch/chain$chain" "$chain"
        tm=()
        for k in 1 2 3; do
            evaluate "rna$k" -- --data "$scratch/chain$chain"
            lacks out tm_best
            tm+=("$(value tm)")
        done
        best+=("$(printf '%s\n' "${tm[@]}" | sort -g | tail -n 1)")
    done
    exits 0 python3 "$check" chains "$data" "$scratch/chains" 1 2
    evaluate rna1 rna2 rna3 -- --data "$scratch/chains"
    chain=$(value tm_best)
    checked mean "$chain" "${best[@]}"
    checked tm "$chain" "$scratch/chains/labels.csv" "$scratch"/p[123]/predictions.csv
    says out checked
}

test_texts() {
    local table=$scratch/texts.csv settings=("${net[@]}" data.label_column=label data.id_column=) k
    exits 0 python3 "$check" texts "$table" 90
    for k in 1 2; do
        train "text$k" tweets_sentiment "data.path=$table" "${settings[@]}" run.seed=$k
        predict "t$k" "$table" "text$k"
    done
    predict t11 "$table" text1 text1
    exits 0 cmp "$scratch/t11/predictions.csv" "$scratch/t1/predictions.csv"
    predict t12 "$table" text1 text2
    checked table "$scratch/t12/predictions.csv" "$scratch"/t[12]/predictions.csv
    if [[ -d ${CLEAT_SHARED:-}/data/tweets_sentiment ]]; then # real tweets
        head -n 40 "$CLEAT_SHARED/data/tweets_sentiment/val.csv" >"$scratch/tweets.csv"
        for k in 1 2; do predict "r$k" "$scratch/tweets.csv" "text$k"; done
        predict r12 "$scratch/tweets.csv" text1 text2
        checked table "$scratch/r12/predictions.csv" "$scratch"/r[12]/predictions.csv
    fi
    evaluate text1 -- --data "$table" --split all
    cp "$scratch/out" "$scratch/single"
    evaluate text1 text1 -- --data "$table" --split all
    cp "$scratch/out" "$scratch/both"
    exits 0 cmp "$scratch/single" "$scratch/both"
    evaluate text1 text2 -- --data "$table" --split all
    checked accuracy "$(value accuracy)" "$table" "$scratch/t12/predictions.csv"
    sed 's/,yes/,good/' "$table" >"$scratch/other.csv"
    train text3 tweets_sentiment "data.path=$scratch/other.csv" "${settings[@]}"
    refuses "label 1 is 'no' and 'good'" text3 text1 "$table"
    refuses "model.type is rna_transformer and text_classifier" rna1 text1 "$table"
    refuses "--flips is for images" text1 text2 "$table" --flips
    refuses "submission is for RNA" text1 text2 "$table" --format submission
    refuses "unknown format 'sub'" text1 text2 "$table" --format sub
}

test_tags() {
    local data=$scratch/ner k
    mkdir "$data"
    exits 0 python3 "$check" sentences "$data/train.conll" 60 1
    for k in 1 2; do train "tag$k" tweets_ner "data.path=$data" "${net[@]}" run.seed=$k; done
    predict g1 "$data/train.conll" tag1
    predict g11 "$data/train.conll" tag1 tag1
    exits 0 cmp "$scratch/g1/predictions.conll" "$scratch/g11/predictions.conll"
    evaluate tag1 tag2 -- --split all
    exits 0 python3 "$check" sentences "$data/train.conll" 60 2
    train tag3 tweets_ner "data.path=$data" "${net[@]}"
    refuses "what the training data determined, differs" tag1 tag3 "$data/train.conll"
}

test_series() {
    local file=$scratch/series.csv k
    local settings=("data.path=$file" data.train_rows=none data.val_rows=none data.test_rows=none data.lookback=8 data.horizon=4)
    awk 'BEGIN { print "date,load,wind"; for (i = 0; i < 200; ++i) printf "%d,%.6f,%.6f\n", 1500000000 + i * 3600, 20 * sin(i / 3) + i / 10, cos(i / 5) }' >"$file"
    for k in 1 2; do
        train "series$k" series_dense "${settings[@]}" run.seed=$k
        predict "s$k" "$file" "series$k" -- --all
    done
    predict s11 "$file" series1 series1 -- --all
    exits 0 cmp "$scratch/s11/predictions.csv" "$scratch/s1/predictions.csv"
    predict s12 "$file" series1 series2 -- --all
    checked table "$scratch/s12/predictions.csv" "$scratch"/s[12]/predictions.csv
    train series3 series_dense "${settings[@]}" data.anchor=last
    refuses "data.anchor is last and season" series1 series3 "$file"
    train series4 series_dense "${settings[@]}" data.val_fraction=0.3
    refuses "series.csv, what the training data determined, differs" series1 series4 "$file"
}

test_masks() {
    local images=$scratch/scenes/images k view
    local settings=(data.image_size=32 train.effective_batch_size=4 model.stem_stride=2 model.decoder_width=16)
    settings+=("model.stage_widths=8,8,16,16" "model.stage_heads=1,1,2,2" "model.stage_depths=1,1,1,1")
    exits 0 python3 "$check" scenes "$scratch/scenes" 24
    for k in 1 2; do
        train "mask$k" masks "data.path=$scratch/scenes" "${settings[@]}" data.turn=true run.seed=$k
        predict "m$k" "$images" "mask$k"
    done
    predict m11 "$images" mask1 mask1
    exits 0 diff -r "$scratch/m11" "$scratch/m1"
    predict m12 "$images" mask1 mask2
    checked arrays "$scratch/m12" "$scratch/m1" "$scratch/m2"
    predict flips "$images" mask1 -- --flips
    for view in 0 1 2 3 4 5 6 7; do
        exits 0 python3 "$check" view "$images" "$scratch/view$view" $view
        predict "v$view" "$scratch/view$view" mask1
    done
    checked flips "$scratch/flips" "$scratch"/v[0-7]
    # classes: mirrored left-right only
    mkdir -p "$scratch/classes"/{low,high}
    cp "$images"/1*.png "$scratch/classes/low"
    cp "$images"/[2-9].png "$scratch/classes/high"
    train class image_64 "data.path=$scratch/classes" data.image_size=32 train.effective_batch_size=4 data.turn=false \
        data.flip_vertical=false data.val_fraction=0.3
    predict c0 "$images" class
    predict c1 "$scratch/view1" class
    predict cf "$images" class -- --flips
    checked table "$scratch/cf/predictions.csv" "$scratch"/c[01]/predictions.csv
}

test_rna
test_texts
test_tags
test_series
test_masks
finish
