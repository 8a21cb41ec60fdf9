#!/usr/bin/env bash
# Checks the commits since the one that adds this file: a subject `module: what` of at most 72 columns, a body, at most 500 changed lines.
#   tests/history.sh [FOLDER]      FOLDER: another checkout than this one
#   tests/history.sh --self-test
# Added and removed lines count, except in renames, binary files and generated files. A commit whose body has a line
# `Large: reason` may change more. Merges, and branches that began before this file, are not checked.
# Exit code 77: no history, or a shallow clone.
set -euo pipefail

most_columns=72 most_lines=500
this=tests/history.sh

# changed_lines COMMIT
changed_lines() {
    local sum=0 added removed path
    while IFS=$'\t' read -r added removed path; do
        case $path in
        cl/counts/* | tests/fuzz/corpus/* | tests/words_allowed.txt | "") continue ;; # generated
        esac
        [[ $added == - ]] || sum=$((sum + added + removed)) # -: binary
    done < <(git show --format= --numstat -M "$1")
    echo "$sum"
}

# faults_of COMMIT: prints one line for each fault.
faults_of() {
    local subject body lines
    subject=$(git show -s --format=%s "$1") body=$(git show -s --format=%b "$1")
    ((${#subject} <= most_columns)) || echo "the subject has ${#subject} columns, the maximum is $most_columns"
    [[ $subject =~ ^[^:\ ][^:]*:\ [^\ ] ]] || echo 'the subject is not of the form "module: what"'
    [[ -n ${body//[[:space:]]/} ]] || echo "it has no body that gives a reason"
    lines=$(changed_lines "$1")
    ((lines <= most_lines)) || grep -qE '^Large: .+' <<<"$body" ||
        echo "it changes $lines lines, the maximum is $most_lines: split it, or give the reason in a line \"Large: reason\""
}

judge_history() {
    local start commit fault commits=0 faults=0
    [[ $(git rev-parse --is-shallow-repository 2>/dev/null) == false ]] || { echo "no git history, or a shallow clone" && exit 77; }
    start=$(git log --diff-filter=A --format=%H -- "$this" | tail -n 1)
    [[ -n $start ]] || { echo "no commit adds $this" && exit 77; }
    while read -r commit; do
        commits=$((commits + 1))
        while read -r fault; do
            faults=$((faults + 1))
            printf '%s: %s\n' "$(git show -s --format='%h %s' "$commit")" "$fault"
        done < <(faults_of "$commit")
    done < <(git rev-list --no-merges --ancestry-path --reverse "$start..HEAD")
    printf '%d commits, %d faults\n' "$commits" "$faults"
    ((faults == 0))
}

# commit MESSAGE: commits all changes of the folder.
commit() {
    git add -A
    git -c user.name=test -c user.email=test@example.org -c commit.gpgsign=false commit -q --allow-empty -m "$1"
}

# finds COUNT TEXT: checks that the newest commit has COUNT faults that contain TEXT.
finds() {
    local found
    found=$(faults_of HEAD)
    [[ $(grep -c . <<<"$found") == "$1" && $found == *"$2"* ]] || { printf 'self-test: "%s" instead of %d: %s\n' "$found" "$1" "$2" && exit 1; }
}

self_test() {
    local long status=0
    long=$(printf '%80s' "" | tr ' ' x)
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    cd "$scratch"
    git init -q
    commit $'core: no check\n\nWhy.'
    (judge_history >/dev/null) || status=$?
    ((status == 77)) || exit 1
    mkdir tests && touch "$this" && commit "first" && judge_history >/dev/null
    commit $'core, data: words\n\nWhy.' && finds 0 ""
    commit $'no module\n\nWhy.' && finds 1 "module: what"
    commit "core: no reason" && finds 1 "no body"
    commit "core: $long"$'\n\nWhy.' && finds 1 "columns"
    seq 501 >numbers && commit $'core: numbers\n\nWhy.' && finds 1 "changes 501 lines"
    git mv numbers others && commit $'core: a rename\n\nWhy.' && finds 0 ""
    seq 2000 >numbers && commit $'core: numbers\n\nLarge: a table' && finds 0 ""
    head -c 9000 /dev/zero >zeros && commit $'core: binary\n\nWhy.' && finds 0 ""
    mkdir -p cl/counts && seq 2000 >cl/counts/README.md && commit $'cl: counts\n\nWhy.' && finds 0 ""
    judge_history >faults && exit 1
    [[ $(tail -n 1 faults) == "9 commits, 4 faults" ]] || { cat faults && exit 1; }
    echo "self-test passed"
}

if [[ ${1:-} == --self-test ]]; then
    self_test
else
    cd "${1:-$(dirname "$0")/..}"
    judge_history
fi
