#!/usr/bin/env bash
# What `cleat train` writes to a terminal: a bar and colours, no colours with NO_COLOR, lines with TERM=dumb, and only
# warnings with --quiet. `script` makes the terminal.
#   test_terminal.sh CLEAT SOURCE_DIR
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

profile=$2/profiles/rna_small.ini
tiny=(--device "${CLEAT_TEST_DEVICE:-auto}" --set "data.path=$scratch/data" --set model.d_model=32 --set model.heads=2
    --set model.layers=1 --set model.d_ff=64 --set train.warmup_steps=1 --set train.epochs=2 --set run.self_check=never)
escape=$'\033' bar=$'\r['

if ! command -v script >/dev/null; then
    echo "skipped, no script"
    exit 77
fi
require_device

# on_terminal NAME=VALUE... -- OPTION...: trains with --resume in an empty folder, which is worth a warning.
runs=0
on_terminal() {
    local settings=()
    while [[ $1 != -- ]]; do
        settings+=("$1")
        shift
    done
    shift
    runs=$((runs + 1))
    exits 0 env TERM=xterm "${settings[@]}" script -qec "$(printf '%q ' "$cleat" "$@" train "$profile" "${tiny[@]}" --out "$scratch/$runs" --resume)" /dev/null
    says out "contains no checkpoint yet"
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
on_terminal -- --quiet
silent "$bar"
silent planned
silent "best evaluation"
exits 0 "$cleat" --quiet train "$profile" "${tiny[@]}" --out "$scratch/quiet"
empty out
empty err
exits 0 "$cleat" --quiet train "$profile" "${tiny[@]}" --out "$scratch/json" --json
json folder
finish
