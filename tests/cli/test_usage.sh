#!/usr/bin/env bash
# Messages for invalid command lines and profiles, and the output of --help. Needs no device.
#   test_usage.sh CLEAT
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
    exits 0 "$cleat" --log=debug --version
    checks=$((checks + 1))
    [[ $(head -n 1 "$scratch/out") =~ ^cleat\ [0-9.]+$ ]] || complain "the first line is not 'cleat VERSION'"
    for command in compiler "build type" "OpenCL loader" CLBlast hwloc; do
        says out "$command "
    done
    for command in eval predict; do
        exits 2 "$cleat" "$command"
        says err "[--device SEL]"
    done
    for command in devices doctor train eval predict verify data bench report; do
        exits 0 "$cleat" "$command" --help
        says out "usage: cleat $command"
    done
    exits 0 "$cleat" train --help-profile
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
    exits 2 "$cleat" train one.ini --out
    exits 2 "$cleat" train one.ini --batch_size
    says err "option --batch-size requires a value"
    exits 2 "$cleat" eval one.ini
    says err "--checkpoint is required"
    exits 2 "$cleat" predict one.ini --checkpoint x
    says err "--data is required"
    exits 2 "$cleat" predict --data x
    says err "--checkpoint is required: a run folder"
    exits 2 "$cleat" eval one.ini two.ini --checkpoint x
    says err "at most one profile is expected: 'one.ini', 'two.ini'"
    exits 1 "$cleat" eval --checkpoint "$scratch/no_such_run"
    says err "no such checkpoint or run folder"
    exits 2 "$cleat" verify
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
    exits 2 "$cleat" data make rna --out "$scratch/rna" --seed -1
    says err "--seed -1: must be an integer from 0 to"
    exits 1 "$cleat" bench models micro micro micro micro micro micro micro
    says err "a call runs at most 256 workloads"
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
    exits 1 "$cleat" data make rna --out /dev/null/x --count 2
}

test_help
test_wrong_lines
test_wrong_profiles
test_wrong_files
test_data
finish
