#!/usr/bin/env bash
# Checks the commits since the one that adds this file: a subject `module: what` of at most 72 columns, a body, at most 500 changed lines.
#   tests/history.sh [FOLDER]      FOLDER: another checkout than this one
#   tests/history.sh --self-test
# Added and removed lines count, but not those of renames, of binary and of generated files. A commit whose body has a line
# `Large: reason` may change more. Merges are not judged, nor are branches that began before this file.
# Exit code 77: there is no history, or only a part of it.
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

# faults_of COMMIT: a line for each.
faults_of() {
    local subject body lines
    subject=$(git show -s --format=%s "$1") body=$(git show -s --format=%b "$1")
    ((${#subject} <= most_columns)) || echo "the subject has ${#subject} columns, at most $most_columns are allowed"
    [[ $subject =~ ^[^:\ ][^:]*:\ [^\ ] ]] || echo 'the subject is not of the form "module: what"'
    [[ -n ${body//[[:space:]]/} ]] || echo "it has no body that says why"
    lines=$(changed_lines "$1")
    ((lines <= most_lines)) || grep -qE '^Large: .+' <<<"$body" ||
        echo "it changes $lines lines, at most $most_lines are allowed: divide it, or give the reason in a line \"Large: reason\""
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

# commit MESSAGE: of all that was changed in the folder.
commit() {
    git add -A
    git -c user.name=test -c user.email=test@example.org -c commit.gpgsign=false commit -q --allow-empty -m "$1"
}

# finds COUNT TEXT: the newest commit has that number of faults, and they contain the text.
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
