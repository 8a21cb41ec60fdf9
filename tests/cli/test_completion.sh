#!/usr/bin/env bash
# Shell completions and manual pages, which the program prints from its option tables. Needs no device.
#   test_completion.sh CLEAT
# ctest: quick
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

commands=$("$cleat" --help | sed -n '/^usage/,/^options/s/^  \([a-z-]*\) .*/\1/p')

# options_of COMMAND: prints the options in its help.
options_of() {
    "$cleat" "$1" --help | sed -n 's/^  \(--[a-z-]*\) .*/\1/p'
}

# completes WANTED WORD...: checks that bash completes the last word to exactly the words WANTED, in order.
completes() {
    local wanted=$1 found
    shift
    checks=$((checks + 1))
    # shellcheck disable=SC2016 # variables of the inner bash
    found=$(cd "$scratch/files" && bash -c 'source "$1"; shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _cleat; echo "${COMPREPLY[*]}"' bash "$scratch/cleat.bash" "$@" 2>&1)
    [[ $found == "$wanted" ]] || complain "'$*' completes to '$found' instead of '$wanted'"
}

test_bash() {
    mkdir -p "$scratch/profiles"
    touch "$scratch/profiles/zz_a.ini" "$scratch/profiles/zz_b.ini"
    exits 0 env -C "$scratch" "$cleat" completion bash
    cp "$scratch/out" "$scratch/cleat.bash"
    mkdir -p "$scratch/files/folder"
    touch "$scratch/files/a.ini" "$scratch/files/b.txt"
    completes "train trace" cleat tr
    completes "devices" cleat --log debug dev
    completes "devices" cleat --log = debug dev
    completes "error" cleat --log er
    completes "error" cleat --log = er
    completes "--quiet" cleat --q
    completes "--resume --resume-from" cleat train a.ini --resume
    completes "folder" cleat train --out ""
    completes "zz_a zz_b" cleat plan zz
    completes "auto" cleat train --progress a
    completes "folder" cleat report ""
    completes "a.ini" cleat doctor --profile a
    completes "gpu" cleat train --device g
    completes "auto gpu cpu" cleat train --device ""
    completes "auto gpu cpu" cleat train --device =
    completes "gpu" cleat train --device = g
    completes "train.epochs= train.eps=" cleat train --set train.ep
    completes "" cleat train --set train.epochs = 4
    completes "t4" cleat plan a.ini --card t4
    completes "pcie3 pcie4 pcie5" cleat plan a.ini --devices t4,t4 --network p
    completes "b.txt" cleat tune --ship b
    completes "make" cleat data m
    completes "train trace" cleat man tra
    completes "zsh" cleat completion z
    completes "" cleat no_such_command x
}

# Every option in a command's help is completed.
test_all_options() {
    local command option options
    for command in $commands; do
        mapfile -t options < <(options_of "$command")
        for option in "${options[@]}"; do
            checks=$((checks + 1))
            grep -q "^ *\"$command\") options=\"[^\"]*$option " <(sed 's/--help"/--help "/' "$scratch/cleat.bash") ||
                complain "bash does not complete $command $option"
        done
    done
}

# Other shells, if installed, parse their scripts.
test_other_shells() {
    local shell
    for shell in zsh fish; do
        exits 0 "$cleat" completion "$shell"
        says out train
        if ! command -v "$shell" >/dev/null; then
            echo "not installed: $shell"
            continue
        fi
        cp "$scratch/out" "$scratch/cleat.$shell"
        exits 0 "$shell" -n "$scratch/cleat.$shell"
        empty err
    done
    command -v fish >/dev/null || return 0
    exits 0 fish --no-config -c "source $scratch/cleat.fish; complete -C 'cleat plan --card t4'; complete -C 'cleat train --resume-f'"
    says out t4
    says out --resume-from
    exits 2 "$cleat" completion csh
    says err "bash, zsh and fish only"
}

# Every command has a page with all options of its help, and man and groff report no faults.
test_pages() {
    local command option options page
    mkdir "$scratch/man"
    exits 0 "$cleat" man --out "$scratch/man"
    for command in $commands; do
        page=$scratch/man/man1/cleat-$command.1
        mapfile -t options < <(options_of "$command")
        for option in "${options[@]}"; do
            checks=$((checks + 1))
            grep -qF -- "\\fB${option//-/\\-}\\fR" "$page" || complain "cleat-$command.1 does not describe $option"
        done
        exits 0 "$cleat" man "$command"
        cp "$scratch/out" "$scratch/printed"
        exits 0 cmp "$scratch/printed" "$page"
    done
    exits 0 grep -F '\fB\-\-quiet\fR' "$scratch/man/man1/cleat.1"
    exits 0 grep -F 'interrupted' "$scratch/man/man1/cleat.1"
    exits 0 grep -F 'learning_rate' "$scratch/man/man5/cleat-settings.5"
    for page in "$scratch"/man/man?/*; do
        if command -v groff >/dev/null; then
            exits 0 groff -man -ww -z "$page"
            empty err
        fi
        if command -v man >/dev/null; then
            exits 0 env LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page"
            empty err
        fi
    done
    exits 2 "$cleat" man no_such_command
    exits 0 "$cleat" man --out "$scratch/new/folder"
    exits 0 cmp "$scratch/new/folder/man1/cleat.1" "$scratch/man/man1/cleat.1"
    exits 1 "$cleat" man --out "$scratch/printed"
    says err "printed: a file has this name"
}

test_bash
test_all_options
test_other_shells
test_pages
finish
