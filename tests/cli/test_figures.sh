#!/usr/bin/env bash
# Figures of predictions: forecasts with bands of the validation's errors, outlines of masks, structures, texts, images;
# the next steps of a series and all of them (--all); what cannot be drawn or forecast.
#   tests/cli/test_figures.sh CLEAT
# ctest: device cost=60
set -uo pipefail
cleat=$(realpath "$1")
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"
require_python
require_device
check=$(realpath "$(dirname "$0")/figures.py")
cd "$scratch" || exit 1

run=(--device "${CLEAT_TEST_DEVICE:-auto}" run.self_check=never)
short=("${run[@]}" train.warmup_steps=0 train.effective_batch_size=8)

# train OUT PROFILE DATA SETTING...
train() {
    exits 0 "$cleat" train "$2" "$3" --out "$1" --quiet "${short[@]}" "${@:4}"
}

# predict OUT CHECKPOINT DATA OPTION...
predict() {
    exits 0 "$cleat" predict --checkpoint "$2" --data "$3" --out "$1" "${run[@]}" "${@:4}"
}

# checked WHAT ARGUMENT...: a comparison of figures.py.
checked() {
    exits 0 python3 "$check" "$@"
}

test_series() {
    local small=(data.lookback=24 data.horizon=6 model.hidden=16 model.layers=1 train.learning_rate=0.003
        data.train_rows=none data.val_rows=none data.test_rows=none data.val_fraction=0.1 data.test_fraction=0.1 data.gaps=error
        data.features= data.targets=)
    exits 0 python3 "$check" make-series series.csv
    train run series_dense series.csv "${small[@]}" train.epochs=3
    predict next run series.csv --figures
    exits 0 test "$(wc -l <next/predictions.csv)" = 7 # one window
    predict all run series.csv --all
    exits 0 test "$(tail -n 6 all/predictions.csv)" = "$(tail -n 6 next/predictions.csv)"
    checked errors run/"$(cat run/best)" series.csv all/predictions.csv 24
    checked series next run/"$(cat run/best)" series.csv 6
    exits 0 grep -q '"error":\[' run/examples.json
    exits 0 "$cleat" report run --quiet
    exits 0 grep -q 'class="band"' run/report.html
    # another run has other errors, and can be combined: the band is that of the first
    train other series_dense series.csv "${small[@]}" train.epochs=1 run.seed=2
    predict both run series.csv --checkpoint other --figures
    checked series both run/"$(cat run/best)" series.csv 6
    # resuming keeps the errors
    cp -r run resumed
    exits 0 "$cleat" train series_dense series.csv --out resumed --resume "${short[@]}" "${small[@]}" train.epochs=3
    exits 0 cmp run/"$(cat run/last)"/series_errors.json resumed/"$(cat resumed/last)"/series_errors.json
    # a run without validation has no errors, like a checkpoint of an earlier version
    train blind series_dense series.csv "${small[@]}" train.epochs=1 data.val_fraction=0 data.test_fraction=0
    exits 1 test -e blind/"$(cat blind/last)"/series_errors.json
    predict plain blind series.csv --figures=drawn
    says err "no error bands"
    exits 1 grep -rq 'class="band"' drawn
    exits 0 test -f drawn/a-2020-01-21T19_00_00.svg
    exits 1 test -e plain/figures
    # the file is not part of this checkpoint, and has the wrong size
    printf '[1, 2]' >blind/"$(cat blind/last)"/series_errors.json
    exits 1 "$cleat" predict --checkpoint blind --data series.csv --out x "${run[@]}"
    says err "series_errors.json: 2 numbers instead of 12; copy the folder from the run again"
}

# The end of a file that has no next steps.
test_ends() {
    head -n 20 series.csv >few.csv
    exits 1 "$cleat" predict --checkpoint other --data few.csv --out x "${run[@]}"
    says err "few.csv: the next steps follow from the last 24 rows of a series, but the file has fewer"
    sed '490d' series.csv >gap.csv
    exits 1 "$cleat" predict --checkpoint other --data gap.csv --out x "${run[@]}" data.gaps=skip
    says err "rows or values are missing there; add them, set data.gaps=fill data.missing=fill, or forecast from the rows before (--all)"
    predict filled other gap.csv data.gaps=fill
    predict before other gap.csv data.gaps=skip --all
    sed '490s/,[^,]*$/,/' series.csv >hole.csv
    exits 1 "$cleat" predict --checkpoint other --data hole.csv --out x "${run[@]}" data.missing=skip
    says err "--all"
    # many series, one with a gap at its end
    exits 0 python3 "$check" make-shops shops.csv
    train shops series_auto shops.csv data.series_column=shop train.epochs=1 data.lookback=12 data.horizon=4 model.hidden=8 \
        data.gaps=skip
    predict shops_next shops shops.csv --figures
    says err "1 windows contain a gap or a missing value and are skipped; data.gaps=fill, data.missing=fill, or --all"
    exits 0 test "$(cut -d , -f 1 shops_next/predictions.csv | sort -u | paste -s -d ' ')" = "../x a/b series"
    exits 0 test "$(cd shops_next/figures && ls ./*.svg | paste -s -d ' ')" = \
        "./_._x__sold-2024-12-01T00_00_00.svg ./a_b__sold-2024-12-01T00_00_00.svg"
}

test_masks() {
    local net=(model.stage_widths=8,8,16,16 model.stage_heads=1,1,2,2 model.stage_depths=1,1,1,1 model.decoder_width=16
        data.image_size=32 train.epochs=6 train.learning_rate=0.005)
    for kind in plain dark classes; do
        exits 0 python3 "$check" make-masks $kind $kind 12
    done
    train masks masks plain "${net[@]}"
    train darks masks dark "${net[@]}"
    train ids masks classes "${net[@]}" data.classes=4 loss.positive_weight=auto loss.focal_gamma=0
    predict found masks plain/images --figures
    predict found_dark darks dark/images --figures
    predict found_ids ids classes/images --figures
    checked outlines found plain/images
    checked outlines found_dark dark/images
    checked outlines found_ids classes/images
    exits 0 test "$(find found -name '*.svg' | wc -l)" = 0
    exits 0 "$cleat" predict --checkpoint masks --checkpoint masks --data plain/images --out twice --figures "${run[@]}"
    for picture in found/figures/*.png; do exits 0 cmp "$picture" twice/figures/"$(basename "$picture")"; done
}

test_others() {
    exits 0 "$cleat" data make rna --out rna --count 20
    train folds rna_small rna model.d_model=32 model.heads=2 model.layers=1 model.d_ff=32 train.epochs=1 data.generated=6
    printf '>a/b\nGGGAAACCC\n>a:b\nGCGCUUCGGCGC\n>.a\nGGGGCCCC\n' >three.fasta
    predict chains folds three.fasta --figures
    exits 0 test "$(cd chains/figures && ls -A ./*.svg | paste -s -d ' ')" = "./_a.svg ./a_b-2.svg ./a_b.svg"
    checked structures chains/figures three.fasta
    exits 1 "$cleat" predict --checkpoint folds --data three.fasta --out x --figures --format submission "${run[@]}"
    says err "--figures"
    { echo text,label; for i in {1..130}; do echo "good <b>day</b> $i,up"; echo "night $i,down"; done; } >texts.csv
    train texts tweets_sentiment texts.csv data.label_column=label data.id_column= model.d_model=16 model.heads=2 \
        model.layers=1 model.d_ff=16 train.epochs=1
    predict labels texts texts.csv --figures
    says err "The first 100 of 260 predictions of texts/ckpt-"
    checked texts labels 100
    exits 2 "$cleat" predict --checkpoint texts --data texts.csv --out - --figures "${run[@]}"
    says err "--figures=DIR"
    exits 0 "$cleat" predict --checkpoint texts --data texts.csv --out - --figures=beside "${run[@]}"
    says out "id,label,probability,down,up"
    exits 0 test -f beside/index.html
}

test_series
test_ends
test_masks
test_others
finish
