#!/usr/bin/env bash
# Messages for invalid command lines and profiles, and the output of --help. Needs no device.
#   test_usage.sh CLEAT
# ctest: quick
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

test_help() {
    local command
    exits 0 "$cleat" --help
    says out "usage: cleat"
    says out "130 interrupted"
    exits 0 "$cleat" --version
    by_wine || lacks out unknown # the loader of OpenCL is part of the driver
    exits 0 "$cleat" --log=debug --version
    checks=$((checks + 1))
    [[ $(head -n 1 "$scratch/out") =~ ^cleat\ [0-9.]+$ ]] || complain "the first line is not 'cleat VERSION'"
    for command in compiler "build type" "OpenCL loader" CLBlast hwloc; do
        says out "$command "
    done
    for command in eval predict; do
        exits 2 "$cleat" "$command"
        says err "[--device SEL"
    done
    for command in devices doctor train eval predict verify data bench report; do
        exits 0 "$cleat" "$command" --help
        says out "usage: cleat $command"
    done
    exits 0 "$cleat" train --help-profile
    # the values of a key depend on the family
    says out "Takes one of mean, first."
    says out "Takes one of token, mean; default: token."
    says out "Takes one of b0, b1, b2, b3, b4, b5; default: b0."
    says out learning_rate
}

test_wrong_lines() {
    exits 2 "$cleat"
    exits 2 "$cleat" no_such_command
    exits 2 "$cleat" --log no_such_level devices
    exits 2 "$cleat" --log=no_such_level devices
    says err "unknown log level 'no_such_level'"
    exits 2 "$cleat" --log
    exits 2 "$cleat" --quiet --log debug devices
    says err "exclude each other"
    exits 2 "$cleat" --no-such-option devices
    says err "unknown option"
    exits 2 "$cleat" train one.ini --resume --resume-from two
    says err "only one of them"
    exits 2 "$cleat" devices --no-such-option
    says err "unknown option '--no-such-option'"
    exits 2 "$cleat" devices surplus
    exits 2 "$cleat" devices --json=yes
    exits 2 "$cleat" train
    exits 2 "$cleat" train one.ini two.ini
    exits 2 "$cleat" train one.ini reviews.csv
    says err "'reviews.csv' after the profile 'one.ini': no such file or folder of data"
    exits 2 "$cleat" train reviews.csv
    says err "'reviews.csv' is not a profile; one is expected before it"
    exits 1 "$cleat" train tweets_sentiment epochs=3
    says err "--set epochs=3: write section.key=value; did you mean train.epochs=3?"
    exits 1 "$cleat" train tweets_sentiment qzx=3
    lacks err "did you mean"
    says err "--help-profile WORD"
    exits 1 "$cleat" train tweets_sentiment train.learning_rate=0,001
    says err "did you mean '0.001'?"
    exits 1 "$cleat" train tweets_sentiment data.max_length=1,024
    says err "did you mean '1024'?"
    exits 2 "$cleat" train one.ini --out
    exits 2 "$cleat" train one.ini --batch_size
    says err "option --batch-size requires a value"
    exits 2 "$cleat" eval one.ini
    says err "--checkpoint is required"
    exits 2 "$cleat" predict one.ini --checkpoint x
    says err "--data is required"
    exits 2 "$cleat" predict --data x
    says err "--checkpoint is required: a run folder"
    exits 2 "$cleat" predict "$scratch" --data x
    says err "'$scratch' is a folder: --checkpoint $scratch?"
    exits 2 "$cleat" eval one.ini two.ini --checkpoint x
    says err "at most one profile is expected: 'one.ini', 'two.ini'"
    exits 1 "$cleat" eval --checkpoint "$scratch/no_such_run"
    says err "no such checkpoint or run folder"
    exits 2 "$cleat" verify --model no_such_model
    says err "no such reference training"
    exits 2 "$cleat" verify some.file --model rna_transformer
    exits 2 "$cleat" report
    exits 1 "$cleat" report "$scratch/no_such_run"
    says err "no such folder"
    exits 1 "$cleat" report "$scratch"
    says err "no run is stored here"
    exits 2 "$cleat" data make rna
    exits 2 "$cleat" data make fish --out "$scratch/fish"
    exits 2 "$cleat" data make rna --out "$scratch/rna" --count many
    exits 2 "$cleat" data make rna --out "$scratch/rna" --count 1.5
    says err "--count 1.5: must be an integer from 1 to"
    exits 2 "$cleat" data make rna --out "$scratch/rna" --pdb -1
    says err "--pdb"
    exits 2 "$cleat" data make rna --out "$scratch/rna" --seed -1
    says err "--seed -1: must be an integer from 0 to"
    exits 1 "$cleat" bench models micro micro micro micro micro micro micro
    says err "a call runs at most 256 workloads"
}

# Suggestions: similar names, settings, words of other programs.
test_meant() {
    exits 2 "$cleat" trian
    says err "did you mean 'train'?"
    exits 2 "$cleat" evaluate
    says err "did you mean 'eval'?"
    exits 2 "$cleat" help trian
    says err "did you mean 'train'?"
    exits 2 "$cleat" rna_small
    says err "to train this profile: cleat train rna_small"
    exits 2 "$cleat" --device cpu train
    says err "as in \`cleat train --device\`"
    exits 2 "$cleat" train rna --devise gpu
    says err "did you mean --device?"
    exits 2 "$cleat" train rna --lr 1e-3
    says err "--set train.learning_rate=1e-3"
    exits 2 "$cleat" train rna --epochs=3
    says err "it is a setting: --set train.epochs=3"
    exits 2 "$cleat" train rna --train.epochs --json
    says err "--set train.epochs=VALUE"
    exits 2 "$cleat" train rna --Weight-Decay 0
    says err "--set train.weight_decay=0"
    exits 2 "$cleat" plan rna --gpu
    says err "did you mean --device gpu?"
    exits 2 "$cleat" train rna --output-dir "$scratch/x"
    says err "did you mean --out $scratch/x?"
    exits 2 "$cleat" train rna --batch_sise 4
    says err "did you mean --batch-size?"
    exits 2 "$cleat" devices --lr 3
    lacks err "did you mean"
    exits 2 "$cleat" train rna --no-such-option
    lacks err "did you mean"
}

# --log, --quiet and --help also after the command; `cleat help COMMAND`.
test_common_options() {
    exits 0 "$cleat" help help
    exits 0 "$cleat" help
    says out "usage: cleat [--log"
    exits 0 "$cleat" help train
    says out "usage: cleat train"
    says out "--quiet"
    exits 2 "$cleat" devices --log no_such_level
    says err "unknown log level"
    exits 2 "$cleat" --log debug devices --quiet
    says err "exclude each other"
    exits 1 "$cleat" data make rna --quiet --out /dev/null/x
    exits 1 "$cleat" train -- --missing.ini
    says err "--missing.ini: no such profile"
}

test_settings_as_words() {
    local card=(--card t4 --json)
    exits 0 "$cleat" plan rna_small --set train.effective_batch_size=12 "${card[@]}"
    cp "$scratch/out" "$scratch/with_set"
    exits 0 "$cleat" plan rna_small train.effective_batch_size=12 "${card[@]}"
    cp "$scratch/out" "$scratch/with_word"
    exits 0 cmp "$scratch/with_word" "$scratch/with_set"
    exits 0 "$cleat" plan train.effective_batch_size=13 rna_small "${card[@]}"
    cp "$scratch/out" "$scratch/other"
    exits 1 cmp -s "$scratch/other" "$scratch/with_set"
    exits 1 "$cleat" plan rna_small train.epoch=3 "${card[@]}"
    says err "did you mean 'epochs'"
    printf '[model]\ntype = rna_transformer\n\n[data]\npath = x\n' >"$scratch/some.profile=1"
    exits 0 env --chdir="$scratch" "$cleat" plan some.profile=1 "${card[@]}"
}

# `--help-profile`: one section, the settings with a word, or an error.
test_help_profile() {
    exits 0 "$cleat" train --help-profile
    sed -n '/^\[train\]/,/^$/p' "$scratch/out" | sed '1d;$d' | sed 's/^  \([a-z]\)/train.\1/' >"$scratch/section"
    exits 0 grep -q '^train.epochs = ' "$scratch/section"
    exits 0 diff "$scratch/section" <("$cleat" train --help-profile train)
    exits 0 "$cleat" train --help-profile Season
    says out "data.season = "
    says out "Season length in time steps"
    lacks out "epochs"
    exits 0 "$cleat" train --help-profile run.seed
    exits 0 test "$("$cleat" train --help-profile run.seed | grep -cE '^[a-z]+\.[a-z_]+ = ')" = 1
    exits 2 "$cleat" train --help-profile qzx
    says err "--help-profile qzx: no section, and in the text of no setting"
}

# A file or folder after the profile is data.path.
test_data_as_word() {
    printf 'text,label\na,x\n' >"$scratch/re views.csv"
    exits 0 "$cleat" config tweets_sentiment "$scratch/re views.csv" --json
    says out '"data.path": {"value": "'"$scratch/re views.csv"'", "origin": "--set"'
    exits 2 "$cleat" train tweets_sentiment "$scratch/re views.csv" data.path=other.csv
    says err "both '$scratch/re views.csv' and data.path=other.csv name the data"
    exits 2 "$cleat" train tweets_sentiment tweets_ner
    says err "exactly one profile is expected, not 'tweets_sentiment' and 'tweets_ner'"
    touch "$scratch/other.ini"
    exits 2 "$cleat" train tweets_sentiment "$scratch/other.ini"
    says err "exactly one profile is expected"
    exits 2 "$cleat" train tweets_sentiment "$scratch/re views.csv" "$scratch"
    says err "exactly one profile is expected"
}

# A name of the Hugging Face hub for --init.
test_hub_names() {
    local name
    for name in bert-base-uncased microsoft/deberta-v3-small; do
        exits 1 "$cleat" plan text_classify --init $name --card t4
        says err "\`hf download $name --local-dir $name\`"
        says err "https://huggingface.co/$name $name"
    done
    for name in ./bert models/a/b weights.safetensors; do
        exits 1 "$cleat" plan text_classify --init $name --card t4
        says err "$name: no such folder or file of weights"
        lacks err "hf download"
    done
}

# The program finds the profiles of its installation in any location; here, in a folder beside it.
test_profiles_by_name() {
    ! by_wine || return 0 # the copied program would be the script that starts wine
    mkdir -p "$scratch/place/bin" "$scratch/place/share/cleat/profiles"
    cp "$cleat" "$scratch/place/bin/cleat"
    printf '# Mine.\n[model]\ntype = rna_transformer\n\n[data]\npath = x\n' >"$scratch/place/share/cleat/profiles/mine.ini"
    exits 0 env --chdir=/ PATH="$scratch/place/bin:$PATH" cleat plan mine --card t4
    says err "profile mine: $(realpath "$scratch")/place/share/cleat/profiles/mine.ini"
    exits 1 env --chdir=/ "$scratch/place/bin/cleat" plan mime --card t4
    says err "did you mean 'mine'?"
    exits 2 "$cleat" train
    says err "a file, or one of"
    says err "rna_small"
}

# What would be trained: every value and its origin; the output is again a profile.
test_config() {
    exits 0 "$cleat" config
    says out "rna_small "
    exits 0 "$cleat" config --json
    json 0 about
    exits 0 "$cleat" config rna_small train.epochs=7 --device cpu
    cp "$scratch/out" "$scratch/printed.ini"
    exits 0 grep -E '^epochs = 7 +; --set$' "$scratch/printed.ini"
    exits 0 grep -E '^type = rna_transformer +; .*rna_small.ini:[0-9]+$' "$scratch/printed.ini"
    exits 0 grep -E '^adam|^beta1 = .* ; default$' "$scratch/printed.ini"
    exits 0 grep -E '^batch_size = auto +; default; auto: for each bucket' "$scratch/printed.ini"
    exits 0 "$cleat" config "$scratch/printed.ini" --changed --json
    json settings train.epochs value
    says out '"train.epochs": {"value": "7"'
    lacks out beta1
    exits 0 "$cleat" config rna_small train.epochs=7 --device cpu --changed --json
    says out "$(sed -n 's/.*hash of what is computed: //p' "$scratch/printed.ini")"
    exits 1 "$cleat" config rna_small train.epoch=7
    exits 2 "$cleat" config train.epochs=7
}

# Lost output is an error in every command.
test_lost_output() {
    local line
    for line in --help --version "train --help" "train --help-profile" "help plan" devices "devices --json" \
        "plan rna_small --card t4" "plan rna_small --card all --json" "bench --list" "completion bash" "man train" config "config rna_small --json" \
        "data make rna --count 2 --out $scratch/lost"; do
        # shellcheck disable=SC2086 # words
        exits 1 bash -c '"$@" >/dev/full' bash "$cleat" $line
        says err "cannot write the output"
    done
    by_wine || exits 0 bash -c '"$@" >&-' bash "$cleat" --version # closed on purpose
}

test_wrong_profiles() {
    exits 1 "$cleat" train "$scratch/missing.ini"
    says err missing.ini
    printf '[model]\ntype = rna_transformer\n\n[train]\nlearning_rat = 1e-3\n' >"$scratch/key.ini"
    exits 1 "$cleat" train "$scratch/key.ini"
    says err "key.ini:5"
    says err "learning_rat = 1e-3"
    says err learning_rate
    printf '[model]\ntype = rna_transformer\nlayers = many\n' >"$scratch/value.ini"
    exits 1 "$cleat" train "$scratch/value.ini"
    says err "value.ini:3"
    printf '[model]\ntype = rna_transformer\n' >"$scratch/good.ini"
    exits 1 "$cleat" train "$scratch/good.ini" --set train.epoch=3
    says err "did you mean 'epochs'"
    exits 1 "$cleat" train "$scratch/good.ini" --device ""
    says err run.device
}

test_wrong_files() {
    printf 'not safetensors' >"$scratch/broken.safetensors"
    exits 1 "$cleat" verify "$scratch/broken.safetensors"
    says err broken.safetensors
    exits 1 "$cleat" verify "$scratch/missing.safetensors"
}

test_data() {
    exits 0 "$cleat" data make rna --out "$scratch/a" --count 12 --seed 5
    says out "12 molecules"
    exits 0 "$cleat" data make rna --out "$scratch/b" --count 12 --seed 5
    exits 0 diff -r "$scratch/a" "$scratch/b"
    exits 0 test ! -e "$scratch/a/pdb/HPN00005.pdb" -a ! -e "$scratch/a/pdb/DUP00005.pdb"
    exits 0 "$cleat" data make rna --out "$scratch/c" --count 12 --pdb 12 --seed 5
    exits 0 test "$(find "$scratch/c/pdb" -name '*.pdb' | wc -l)" = 12
    exits 1 "$cleat" data make rna --out /dev/null/x --count 2
}

test_help
test_wrong_lines
test_meant
test_common_options
test_settings_as_words
test_help_profile
test_data_as_word
test_hub_names
test_profiles_by_name
test_config
test_lost_output
test_wrong_profiles
test_wrong_files
test_data
finish
