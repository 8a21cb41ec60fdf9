#!/usr/bin/env bash
# `--init`: what is said about weights that do not quite fit the profile.
#   test_init.sh CLEAT SOURCE_DIR
set -euo pipefail
cleat=$1 source_dir=$2
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

bert=$scratch/bert
settings=(--set data.path="$scratch/texts.csv" --set data.max_length=16 --set train.epochs=1 --set train.precision=f32 --set run.self_check=never
    --device "${CLEAT_TEST_DEVICE:-auto}")

# A published BERT of two blocks and three classes, with a vocabulary; texts.
write_files() {
    cp -r "$source_dir/tests/published/bert_classifier" "$bert"
    {
        printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the day was late again thanks
        for i in $(seq 29); do echo "##$i"; done
    } >"$bert/vocab.txt"
    {
        echo text,label
        for i in $(seq 12); do printf 'the day was late,bad\nthanks again %s,good\nagain the day,so\n' "$i"; done
    } >"$scratch/texts.csv"
    sed 's/"num_hidden_layers": 2/"num_hidden_layers": 1/' "$bert/config.json" >"$scratch/one_layer.json"
}

# train NAME OPTION...: a classifier into the run folder NAME.
train() {
    local name=$1
    shift
    "$cleat" train "$source_dir/profiles/text_classify.ini" "${settings[@]}" --out "$scratch/$name" "$@"
}

# The first blocks of a network are a wish that is granted and said; more than it has are none.
test_fewer_layers() {
    exits 0 train whole --init "$bert"
    lacks err "not used"
    exits 0 train first --init "$bert" --set model.layers=1
    says err "block 1 of the file is not used (16 tensors): --set model.layers=1"
    says err "left      1  bert.encoder.layer.*.output.dense.weight: block 1 of the file is not used"
    exits 0 grep -q "block 1 of the file is not used" "$scratch/first/resolved.ini"
    exits 1 train more --init "$bert" --set model.layers=3
    says err "model.layers=3 contradicts $bert/config.json: num_hidden_layers = 2"
    cp -r "$bert" "$scratch/claims_less"
    cp "$scratch/one_layer.json" "$scratch/claims_less/config.json"
    exits 0 train claims_less_run --init "$scratch/claims_less"
    says err "block 1 of the file is not used (16 tensors): $scratch/claims_less/config.json: num_hidden_layers = 1"
    exits 0 train again --init "$scratch/whole" --set model.layers=1
    says err "block 1 of the file is not used"
}

write_files
require_device
test_fewer_layers
finish
