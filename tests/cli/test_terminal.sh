#!/usr/bin/env bash
# Output of `cleat train` on a terminal: a bar and colours, no colours with NO_COLOR, lines with TERM=dumb and in a notebook,
# as requested by --progress, and only warnings with --quiet. `script` simulates the terminal.
#   test_terminal.sh CLEAT SOURCE_DIR
# ctest: device quick
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

profile=$2/profiles/rna_small.ini
tiny=(--device "${CLEAT_TEST_DEVICE:-auto}" --set "data.path=$scratch/data" --set model.d_model=32 --set model.heads=2
    --set model.layers=1 --set model.d_ff=64 --set train.warmup_steps=1 --set train.epochs=2 --set run.self_check=never)
escape=$'\033' bar=$'\r['
unset JPY_PARENT_PID JPY_SESSION_NAME KAGGLE_KERNEL_RUN_TYPE COLAB_RELEASE_TAG COLAB_GPU # of the caller

if ! command -v script >/dev/null; then
    echo "skipped, no script"
    exit 77
fi
require_device

# on_terminal NAME=VALUE... -- OPTION... [-- OPTION OF TRAIN...]: trains with --resume in an empty folder, which logs a
# warning.
runs=0
on_terminal() {
    local settings=() options=()
    while [[ $1 != -- ]]; do
        settings+=("$1")
        shift
    done
    shift
    while (($#)) && [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    runs=$((runs + 1))
    exits 0 env TERM=xterm "${settings[@]}" script -qec "$(printf '%q ' "$cleat" "${options[@]}" train "$profile" "${tiny[@]}" --out "$scratch/$runs" --resume "${@:2}")" /dev/null
    says out "nothing to resume"
}

# silent TEXT: checks that the last command did not print it.
silent() {
    checks=$((checks + 1))
    ! grep -qF -- "$1" "$scratch/out" || complain "stdout contains $(printf '%q' "$1")"
}

exits 0 "$cleat" data make rna --out "$scratch/data" --count 16
on_terminal --
says out "${escape}[1;33mwarning: ${escape}[0m"
says out "$bar"
on_terminal NO_COLOR=1 --
silent "$escape"
says out "warning: "
says out "$bar"
on_terminal NO_COLOR= -- # empty: as if unset
says out "$escape"
on_terminal TERM=dumb --
silent "$escape"
silent "$bar"
says out "best evaluation"
for notebook in JPY_PARENT_PID KAGGLE_KERNEL_RUN_TYPE COLAB_RELEASE_TAG; do
    on_terminal $notebook=1 --
    silent "$bar"
    says out "/8 ("
    says out "$escape" # notebooks show colours
done
on_terminal JPY_PARENT_PID=1 -- -- --progress bar
says out "$bar"
on_terminal -- -- --progress lines
silent "$bar"
says out "/8 ("
on_terminal -- -- --progress none
silent "$bar"
silent "/8 ("
says out "epoch 2:  loss"
on_terminal -- --quiet
silent "$bar"
silent planned
silent "best evaluation"
exits 2 "$cleat" train "$profile" --progress sometimes
says err "must be auto, bar, lines or none"
exits 0 "$cleat" --quiet train "$profile" "${tiny[@]}" --out "$scratch/quiet"
empty out
empty err
exits 0 "$cleat" --quiet train "$profile" "${tiny[@]}" --out "$scratch/json" --json
json folder
finish
