#!/usr/bin/env bash
# Numbers and several labels for photographs of blood cells: training, resuming, evaluation, prediction, several
# checkpoints, folds, and what is said about settings and tables that do not suit.
#   tests/cli/test_image_targets.sh CLEAT SOURCE_DIR
# ctest: device cost=45
set -uo pipefail
cleat=$1 source=$2
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"
batch=${CLEAT_SHARED:-$source/../shared}/data/blood_cells/data_batch_1.bin
[[ -f $batch ]] || { echo "skipped: no $batch" && exit 77; }
require_python
require_device
check=$source/tests/cli/members.py
cd "$scratch" || exit 1
exits 0 python3 "$check" cells "$batch" cells 160

small=(--device "${CLEAT_TEST_DEVICE:-auto}" run.self_check=never loss.label_smoothing=0 data.image_size=32 data.val_fraction=0.25 model.width=16
    train.effective_batch_size=8 train.epochs=2 train.warmup_epochs=0 data.brightness=0 data.contrast=0 data.saturation=0 data.crop_scale=1)
numbers=(data.path=cells/numbers.csv 'data.label_column=light "redness of it"' model.problem_type=regression run.metric=r2)
labels=(data.path=cells/labels.csv model.problem_type=multi_label run.metric=macro_f1)
train() { "$cleat" train "$source/profiles/image_64.ini" "${small[@]}" --quiet "$@"; }
predict() { # OUT DATA ARGUMENT...
    exits 0 "$cleat" predict "${small[@]:0:2}" --data "$2" --out "$1" --quiet run.self_check=never "${@:3}"
}
checked() { exits 0 python3 "$check" "$@"; }

# --- numbers: of some pictures one is unknown

exits 0 "$cleat" train "$source/profiles/image_64.ini" "${small[@]}" "${numbers[@]}" train.epochs=6 train.schedule=constant --out whole
says err "the column 'picture' names the images"
says err "(mean "
says out "light_r2"
exits 0 train "${numbers[@]}" train.schedule=constant train.epochs=4 --out parts
exits 0 train "${numbers[@]}" train.schedule=constant train.epochs=6 --out parts --resume
for file in model.safetensors optim.safetensors targets.json pictures.json; do
    exits 0 cmp "whole/$(cat whole/last)/$file" "parts/$(cat parts/last)/$file"
done
exits 0 python3 -c '
import json
best = max((r for r in map(json.loads, open("whole/metrics.jsonl")) if "r2" in r), key=lambda r: r["r2"])
base = json.load(open("whole/examples.json"))["baseline"]
assert base["text"].startswith("always predicting the mean") and base["value"] < 0.05 < best["r2"] - 0.5, (base, best)
print(best["r2"])'
logged=$(cat out)
exits 0 "$cleat" eval --checkpoint whole --split val --json --quiet
cp out told.json
exits 0 python3 -c 'import json, sys; assert abs(json.load(open(sys.argv[1]))["r2"] - float(sys.argv[2])) < 1e-6' told.json "$logged"
predict by_table cells/numbers.csv --checkpoint whole
predict by_folder cells --checkpoint whole
exits 0 diff <(sort by_table/predictions.csv) <(sort by_folder/predictions.csv)
exits 0 grep -q '^id,light,redness of it$' by_table/predictions.csv
exits 0 "$cleat" report whole
exits 0 grep -q 'truth: light ' whole/report.html
exits 0 "$cleat" export whole --format onnx --out whole.onnx
says out "output logits     float32 [batch, 2]"
exits 0 grep -q '"light","redness of it"' whole.onnx

exits 0 train "${numbers[@]}" data.path=cells/grades.csv data.label_column=grade train.epochs=1 --out grades
predict by_grade cells/grades.csv --checkpoint grades
exits 0 diff <(cut -d, -f2 cells/grades.csv | sed 1d) <(cut -d, -f1 by_grade/predictions.csv | sed 1d)

# --- several checkpoints, each with the scale of its training data

exits 0 train "${numbers[@]}" data.val_fraction=0.5 run.seed=7 --out other
predict of_other cells --checkpoint other
predict of_both cells --checkpoint whole --checkpoint other
predict of_same cells --checkpoint whole --checkpoint whole
checked numbers of_both/predictions.csv by_folder/predictions.csv of_other/predictions.csv
exits 0 cmp of_same/predictions.csv by_folder/predictions.csv
predict flipped cells --checkpoint whole --flips
exits 1 cmp flipped/predictions.csv by_folder/predictions.csv
exits 0 train "${numbers[@]}" --folds 2 train.epochs=1 --out folds
for k in 1 2; do predict "fold$k" cells/numbers.csv --checkpoint "folds/fold-$k"; done
checked folded cells/numbers.csv "redness of it" folds fold1/predictions.csv fold2/predictions.csv

# --- labels: a list, also of mixed pictures; columns, of which some are unknown

exits 0 train "${labels[@]}" data.mixup=0.2 data.cutmix=1 --out listed
exits 0 python3 -c '
import json
state = json.load(open("listed/" + open("listed/best").read().strip() + "/targets.json"))
assert [t["name"] for t in state["targets"]] == ["bright", "platelets", "rbc", "red", "wbc"]
assert all(0 < t["threshold"] < 1 and t["threshold"] != 0.5 for t in state["targets"] if t["name"] != "wbc"), state
print(max(r["macro_f1"] for r in map(json.loads, open("listed/metrics.jsonl")) if "macro_f1" in r))'
logged=$(cat out)
exits 0 "$cleat" eval --checkpoint listed --split val --json --quiet
cp out told.json
exits 0 python3 -c 'import json, sys; assert abs(json.load(open(sys.argv[1]))["macro_f1"] - float(sys.argv[2])) < 1e-6' told.json "$logged"
predict told_labels cells --checkpoint listed
exits 0 grep -q '^id,labels,bright,platelets,rbc,red,wbc$' told_labels/predictions.csv
flags=("${labels[@]}" data.path=cells/flags.csv "data.label_column=bright red")
exits 0 train "${flags[@]}" loss.class_weights=balanced --out columns
exits 0 train "${flags[@]}" data.mixup=0.2 --out mixed # pictures with unknown labels are not mixed in
exits 0 "$cleat" trace "$source/profiles/image_64.ini" "${small[@]}" "${labels[@]}" data.path=synthetic --out traced --quiet \
    --schedule wait=0,warmup=0,active=1,repeat=1

# --- what does not suit

exits 1 train "${numbers[@]}" data.path="$(dirname "$batch")/jpeg224" --out bad
says err "model.problem_type = regression needs a table of images and targets"
exits 1 train "${labels[@]}" data.path="$(dirname "$batch")" --out bad
says err "model.problem_type = multi_label needs a table"
exits 1 train "${labels[@]}" data.cutmix=1 loss.class_weights=balanced --out bad
says err "loss.class_weights=none"
exits 1 train "${labels[@]}" loss.label_smoothing=0.1 --out bad
says err "set loss.label_smoothing=0"
exits 1 train "${numbers[@]}" run.metric=accuracy --out bad
says err "its metrics are loss, mse, mae, r2, pearson, spearman"
exits 1 train "${numbers[@]}" data.label_column=ligt --out bad
says err "did you mean 'light'?"
exits 1 train "${numbers[@]}" data.path=cells/labels.csv data.label_column=label --out bad
says err "not a number; correct it"
exits 1 train data.path=cells/numbers.csv data.label_column="redness of it" --out bad
says err "set model.problem_type=regression"
exits 1 train "${numbers[@]}" data.label_column=light --out bad
says err "no target; fill one in, or remove the row"
exits 1 "$cleat" eval --checkpoint listed --quiet --data cells/flags.csv data.label_column=red
says err "unknown label"
exits 1 "$cleat" predict --checkpoint columns --checkpoint listed --data cells --out bad
says err "cannot be combined: 5 and 2 labels"
exits 0 sh -c 'cut -f 2,3 cells/flags.csv | tr "\t" , | sed "s/bright/light/; s/red/redness of it/; s/True/1/; s/False/0/; s/^,/0,/" >two.csv &&
    cut -f 1 cells/flags.csv | paste -d , - two.csv >cells/two.csv'
exits 0 train "${labels[@]}" data.path=cells/two.csv 'data.label_column=light "redness of it"' train.epochs=1 --out two
exits 1 "$cleat" predict --checkpoint whole --checkpoint two --data cells --out bad
says err "cannot be combined: model.problem_type differs"
exits 1 "$cleat" train "$source/profiles/image_finetune.ini" --init "$source/tests/published/resnet_labels" "${numbers[@]}" --out bad
says err "contradicts"
says err "problem_type = multi_label"
finish
