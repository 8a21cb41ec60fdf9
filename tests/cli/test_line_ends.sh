#!/usr/bin/env bash
# Text files as programs of Windows save them: with a byte order mark and CRLF they train to the same checkpoint; UTF-16 is an
# error that says so.
#   test_line_ends.sh CLEAT SOURCE_DIR
# ctest: device quick cost=13
set -euo pipefail
cleat=$1 source=$2
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"
require_device

small=(--device "${CLEAT_TEST_DEVICE:-auto}" --set run.self_check=never --set train.epochs=1 --set train.warmup_steps=0 --set train.effective_batch_size=4)
encoder=(--set model.layers=1 --set model.d_model=16 --set model.heads=2 --set model.d_ff=16)

causal=(--set model.d_model=32 --set model.heads=2 --set model.kv_heads=1 --set model.layers=1 --set model.d_ff=64 --set model.max_positions=64
    --set data.vocabulary=folder --set data.template=chatml --set data.max_length=48)

# windows FILES...: gives them a byte order mark and CRLF.
windows() {
    sed -i -e 's/$/\r/' -e '1s/^/\xef\xbb\xbf/' "$@"
}

# utf16 FILE
utf16() {
    iconv -f UTF-8 -t UTF-16 "$1" >"$1.new"
    mv "$1.new" "$1"
}

# train FORM PROFILE WORDS...: with the files of the folder FORM, in which it runs.
train() {
    local form=$1 profile=$2
    shift 2
    (cd "$scratch/$form" && "$cleat" train "$profile" "${small[@]}" "$@" --out run)
}

# same TEXTS PROFILE WORDS...: trains in the folder `unix`, then in a copy with other ends of lines in TEXTS (a pattern).
same() {
    local texts=$1 text
    shift
    rm -rf "$scratch/windows" "$scratch/unix/run"
    cp -r "$scratch/unix" "$scratch/windows"
    (cd "$scratch/windows" && eval "windows $texts")
    exits 0 train unix "$@"
    exits 0 train windows "$@"
    exits 0 cmp "$scratch/unix/run/$(cat "$scratch/unix/run/last")/model.safetensors" "$scratch/windows/run/$(cat "$scratch/windows/run/last")/model.safetensors"
    for text in $(cd "$scratch/unix" && eval "echo $texts"); do
        rm -rf "$scratch/utf16"
        cp -r "$scratch/unix" "$scratch/utf16"
        rm -rf "$scratch/utf16/run"
        utf16 "$scratch/utf16/$text"
        exits 1 train utf16 "$@"
        says err "UTF-16"
        says err "$text"
    done
}

begin() {
    rm -rf "$scratch/unix"
    mkdir "$scratch/unix"
    cd "$scratch/unix"
}

test_tables() {
    local i
    begin
    {
        printf 'text,label\n'
        for ((i = 0; i < 12; ++i)); do printf '"good, day %d",up\nbad day %d,down\n' $i $i; done
    } >texts.csv
    same texts.csv "$source/profiles/text_classify.ini" "${encoder[@]}" --set data.path=texts.csv --set data.vocabulary_size=80
    sed -e 's/,\([a-z]*\)$/\t\1/' -e 's/"//g' texts.csv >texts.tsv
    rm texts.csv
    same texts.tsv "$source/profiles/text_classify.ini" "${encoder[@]}" --set data.path=texts.tsv --set data.vocabulary_size=80
}

test_profile() {
    begin
    printf 'text,label\n' >texts.csv
    for ((i = 0; i < 12; ++i)); do printf 'good day %d,up\nbad day %d,down\n' $i $i; done >>texts.csv
    sed -e 's/^path = .*/path = \\\n    texts.csv/' "$source/profiles/text_classify.ini" >own.ini
    same own.ini own.ini "${encoder[@]}" --set data.vocabulary_size=80
}

test_tags() {
    local i
    begin
    mkdir tags
    for i in train val; do
        for ((j = 0; j < 12; ++j)); do printf 'Anna B-PER\nMaier I-PER\nsleeps O\n\nBob B-PER\nreads O\n%d O\n\n' $j; done >tags/$i.conll
    done
    same 'tags/*.conll' "$source/profiles/text_tag.ini" "${encoder[@]}" --set data.path=tags --set data.vocabulary_size=80
}

test_plain_texts() {
    local i
    begin
    for ((i = 0; i < 40; ++i)); do printf 'The day number %d is good.\n\nAnd another day follows it.\n' $i; done >corpus.txt
    same corpus.txt "$source/profiles/text_pretrain.ini" "${encoder[@]}" --set data.path=corpus.txt --set data.vocabulary_size=80
}

test_chats() {
    local i
    begin
    mkdir folder
    cp "$source/tests/data/chats/tokenizer.json" folder/
    chmod u+w folder/*
    for ((i = 0; i < 20; ++i)); do
        printf '{"messages": [{"role": "user", "content": "say %d"}, {"role": "assistant", "content": "%d and %d"}]}\n' $i $i $i
    done >chats.jsonl
    same 'chats.jsonl folder/tokenizer.json' "$source/profiles/text_lm.ini" "${causal[@]}" --set data.path=chats.jsonl
    for ((i = 0; i < 40; ++i)); do printf 'The day number %d is good.\n\nAnd another day follows it.\n' $i; done >corpus.txt
    same corpus.txt "$source/profiles/text_lm.ini" "${causal[@]}" --set data.path=corpus.txt
}

test_published() {
    begin
    cp -r "$source/tests/published/bert_classifier" bert
    chmod -R u+w bert
    {
        printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the day was late again thanks
        for i in $(seq 29); do echo "##$i"; done
    } >bert/vocab.txt
    echo '{"do_lower_case": true}' >bert/tokenizer_config.json
    printf 'text,label\n' >texts.csv
    for i in $(seq 12); do printf 'the day was late,bad\nthanks again %s,good\nagain the day,so\n' "$i"; done >>texts.csv
    same 'bert/*.json bert/vocab.txt' "$source/profiles/text_classify.ini" --set data.path=texts.csv --set data.max_length=16 --init bert
}

test_series() {
    begin
    printf 'date;shop;web\n' >series.csv
    for ((i = 0; i < 300; ++i)); do printf '%d;%d,5;%d\n' $((1577836800 + 86400 * i)) $((10 + i % 7)) $((i % 5)); done >>series.csv
    same series.csv "$source/profiles/series_auto.ini"
}

test_rna() {
    begin
    "$cleat" data make rna --out daten --count 24 >/dev/null

    same 'daten/*.csv' "$source/profiles/rna_small.ini" "${encoder[@]}" --set data.path=daten
}

for test in test_tables test_profile test_tags test_plain_texts test_chats test_published test_series test_rna; do "$test"; done
finish
