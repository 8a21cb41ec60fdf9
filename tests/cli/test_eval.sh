#!/usr/bin/env bash
# Evaluation of a time series on the training file and on other files: shorter, longer, too short, with row
# counts and with fractions.
#   test_eval.sh CLEAT
# ctest: device quick
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

profile=$scratch/tiny.ini
device=${CLEAT_TEST_DEVICE:-auto}
rows=(--set data.train_rows=120 --set data.val_rows=40 --set data.test_rows=40)
fractions=(--set data.train_rows=none --set data.val_rows=none --set data.test_rows=none --set data.val_fraction=0.1 --set data.test_fraction=0.1)

write_profile() {
    cat >"$profile" <<'END'
[model]
type = series_dense
layers = 1
hidden = 8

[data]
lookback = 8
horizon = 4
stride = 3

[train]
epochs = 1
warmup_steps = 0

[run]
self_check = never
END
}

# series ROWS: writes the first hours of one series into $scratch/ROWS.csv.
series() {
    awk -v rows="$1" 'BEGIN {
        print "time,load,wind"
        for (i = 0; i < rows; ++i) printf "%d,%.6f,%.6f\n", 1500000000 + i * 3600, sin(i / 3) + i / 100, cos(i / 5)
    }' >"$scratch/$1.csv"
}

# evaluate STATUS ROWS SPLIT SETTING...: evaluates the trained network on ROWS.csv.
evaluate() {
    local wanted=$1 file=$scratch/$2.csv split=$3
    shift 3
    exits "$wanted" "$cleat" eval "$profile" --device "$device" "$@" --set "data.path=$file" --checkpoint "$scratch/run" --split "$split" --json
    [[ $wanted != 0 ]] || json loss
}

# result: prints the metrics of the last evaluation without the loss, which is a sum over micro-batches of different sizes.
result() {
    sed 's/.*\("mse":\)/\1/' "$scratch/out"
}

test_train() {
    exits 0 "$cleat" train "$profile" --device "$device" "${rows[@]}" --set "data.path=$scratch/200.csv" --out "$scratch/run"
}

test_parts() {
    local val test all
    evaluate 0 200 val "${rows[@]}"
    says err "37 training, 37 validation and 37 test windows"
    val=$(result)
    evaluate 0 200 test "${rows[@]}"
    test=$(result)
    evaluate 0 200 all "${rows[@]}"
    says err "189 windows of the whole file, without splits"
    all=$(result)
    evaluate 0 300 val "${rows[@]}"
    exits 0 test "$(result)" = "$val"
    exits 0 test "$val" != "$all" -a "$test" != "$all"
}

# The row counts do not change the result for the same file.
test_shorter() {
    local all
    evaluate 0 90 all "${fractions[@]}"
    all=$(result)
    for split in val test all; do
        evaluate 0 90 "$split" "${rows[@]}"
        says err "90 rows, fewer than train_rows + val_rows + test_rows = 200: the whole file is evaluated"
        says err "79 test windows"
        exits 0 test "$(result)" = "$all"
    done
    evaluate 1 90 train "${rows[@]}"
    says err "no split 'train'"
    says err "use split 'all'"
    evaluate 0 12 val "${rows[@]}"
    evaluate 1 11 val "${rows[@]}"
    says err "no window fits the file: each takes 8 rows of lookback and 4 rows of targets, and the file has 11"
    evaluate 1 90 no_such_split "${rows[@]}"
    says err "the splits are train, val, test and all"
}

test_fractions() {
    evaluate 0 90 val "${fractions[@]}"
    says err "6 validation and 6 test windows"
    evaluate 1 30 val "${fractions[@]}"
    says err "split 'val' has no samples; split 'all' has all of them"
    evaluate 0 30 train "${fractions[@]}"
    evaluate 0 30 all "${fractions[@]}"
    says err "19 windows of the whole file"
    evaluate 0 12 val "${fractions[@]}"
    says err "no split of the 12 rows has a window"
}

# Predictions beside the truth of the evaluated split; an error if they cannot be written.
test_examples() {
    local file=$scratch/examples.json
    evaluate 0 200 test "${rows[@]}" --examples "$file"
    exits 0 grep -q '"split":"test"' "$file"
    exits 0 test "$(grep -c '^{"kind":"series".*"choice":"worst"' "$file")" = 6
    exits 0 test "$(grep -c '^{"kind":"series".*"choice":"typical"' "$file")" -ge 4
    evaluate 1 200 test "${rows[@]}" --examples "$scratch/nowhere/examples.json"
    says err "nowhere/examples.json"
}

# Texts of 27 classes: the table has 20, of which 7 have 12 texts; the matrix is not printed. Three classes: both whole.
test_classes() {
    local classes
    for classes in 27 3; do
        awk -v classes=$classes 'BEGIN {
            print "text,label"
            for (i = 0; i < 30 * 6; ++i) printf "word%d day %d,class %d\n", i / 6, i % 6, int(i / 6) % classes + 10
        }' >"$scratch/texts.csv"
        exits 0 "$cleat" train "$(dirname "$0")/../../profiles/tweets_sentiment.ini" --device "$device" --quiet --set data.path="$scratch/texts.csv" \
            --set data.text_column=text --set data.label_column=label --set data.id_column= --set model.layers=1 --set model.d_model=16 \
            --set model.heads=1 --set model.d_ff=16 --set train.epochs=1 --set run.self_check=never --out "$scratch/classes$classes"
        exits 0 "$cleat" eval --checkpoint "$scratch/classes$classes" --device "$device" --split all
        says out "class 12 "
        [[ $classes = 3 ]] && says out "truth \\ prediction" && says out "3 class 12 "
        cp "$scratch/out" "$scratch/table"
        exits 0 test "$(grep -c '^class ' "$scratch/table")" = $((1 + (classes < 20 ? classes : 20)))
    done
    exits 0 "$cleat" eval --checkpoint "$scratch/classes27" --device "$device" --split all
    says out "7 classes with the least support are left out; --json has all"
    says out "confusion matrix of 27 labels: see --json, or cleat report"
    exits 0 "$cleat" eval --checkpoint "$scratch/classes27" --device "$device" --split all --json
    exits 0 test "$(grep -o '"support": ' "$scratch/out" | wc -l)" = 27
}

require_device
write_profile
for n in 11 12 30 90 200 300; do series $n; done
test_train
test_parts
test_shorter
test_fractions
test_examples
test_classes
finish
