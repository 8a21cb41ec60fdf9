#!/usr/bin/env bash
# Images of a table: the same training, bit for bit, as on class folders; predictions of a competition's test.csv.
#   tests/cli/test_image_table.sh CLEAT
# ctest: device cost=10
set -uo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"
photos=${CLEAT_SHARED:-$(dirname "$0")/../../../shared}/data/blood_cells/jpeg224
[[ -d $photos ]] || { echo "skipped: no $photos" && exit 77; }
require_device
cd "$scratch" || exit 1

# The same photographs, by class and by table; a name of the table has no ending.
mkdir -p table/test
for part in train val; do
    mkdir -p "table/${part}_images"
    echo "number,image_id,label" >"table/$part.csv"
    for class in platelets rbc wbc; do
        mkdir -p "classes/$part/$class"
        for file in $(find "$photos/$part/$class" -name '*.jpg' | LC_ALL=C sort | head -n 12); do
            name=${class}_$(basename "$file")
            ln -s "$file" "classes/$part/$class/$name"
            ln -s "$file" "table/${part}_images/$name"
            echo "7,${name%.jpg},$class" >>"table/$part.csv"
        done
    done
done
settings=(data.image_size=32 train.epochs=2 train.effective_batch_size=8 run.seed=3 run.self_check=never)
exits 0 "$cleat" train image_64 data.path=classes "${settings[@]}" --out of_classes
exits 0 "$cleat" train image_64 data.path=table "${settings[@]}" --out of_table
says err "table/train.csv: the column 'image_id' names the images, in table/train_images"
for name in of_classes of_table; do
    exits 0 sha256sum "$name/$(cat "$name/last")/model.safetensors"
    cut -d' ' -f1 "$scratch/out" >>weights
done
exits 0 test "$(sort -u weights | wc -l)" = 1
exits 0 diff <(grep -o '"loss":[^,]*' of_classes/metrics.jsonl) <(grep -o '"loss":[^,]*' of_table/metrics.jsonl)

# Without classes, as competitions give it: the ids are those of the table.
cp table/val_images/wbc_* table/test
(cd table/test && printf 'image_id\n' && printf '%s\n' *.jpg | sed 's/\.jpg$//') >table/test.csv
exits 0 "$cleat" predict --checkpoint of_table --data table/test.csv run.self_check=never --out predicted
exits 0 diff table/test.csv <(cut -d, -f1 predicted/predictions.csv | sed 's/^id$/image_id/')
echo absent >>table/test.csv
exits 1 "$cleat" predict --checkpoint of_table --data table/test.csv run.self_check=never --out predicted2
says err "table/test.csv:14: no image 'absent' in table and its folders"
exits 0 "$cleat" eval --checkpoint of_table --data table run.self_check=never
says err "evaluating 36 samples, split 'val' of table"
says err "test.csv: has no column 'label' and is ignored"

# What a first try gets wrong.
sed 's/image_id/pictures/; s/,label/,species/' table/val.csv >table/mine.csv
exits 1 "$cleat" train image_64 data.path=table/mine.csv "${settings[@]}" --out wrong
says err "data.label_column: table/mine.csv:1: no column 'label'"
exits 0 "$cleat" train image_64 data.path=table/mine.csv data.label_column=species train.epochs=1 "${settings[@]}" train.epochs=1 --out right
says err "the column 'pictures' names the images"
exits 1 "$cleat" train image_64 data.path=table/mine.csv data.label_column=species data.image_folder=table/test "${settings[@]}" --out wrong
says err 'no column of its first 20 rows names files in table/test '
finish
