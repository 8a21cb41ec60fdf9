#!/usr/bin/env bash
# Checks that the READMEs are short, and that every link and path into this repository exists.
#   tests/readmes.sh [FOLDER]      FOLDER: another source tree than this one
# README.md has at most 10 KB, tools/README.md 15, profiles/README.md 20, all but the results 110 together. Lines
# have at most 110 columns, except in tables and code, and only results mention history. Checked in every README:
# targets of relative links, headings named after "#" in links, and paths in backquotes that begin with a top-level
# folder (`src/run/fit/fit.c`). Paths with a placeholder in capitals (`src/engine/ops/NAME.c`) or a pattern are
# skipped, and so are code blocks.
set -euo pipefail

cd "${1:-$(dirname "$0")/..}"
rooms=(src include cl tools tests profiles)
declare -A most_bytes=([README.md]=10240 [profiles/README.md]=20480 [tools/README.md]=15360)
most_together=112640 results=profiles/results/README.md
faults=0 names=0 together=0

fault() {
    printf '%s\n' "$1"
    faults=$((faults + 1))
}

# prose FILE: its text without code blocks (indented by four or more after an empty line, or between ```).
prose() {
    awk '/^ *```/ { fenced = !fenced; next }
        fenced { next }
        /^ *$/ { empty = 1; print; next }
        /^    / && (empty || code) { code = 1; next }
        { empty = code = 0; print }' "$1"
}

# anchors FILE: the anchor names of its headings.
anchors() {
    prose "$1" | sed -nE 's/^#+ +(.*)$/\1/p' | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}

# check_link README TARGET
check_link() {
    local file=$1 target=$2 path anchor=
    [[ $target != *:* ]] || return 0 # another place: https:, mailto:
    [[ $target != *'#'* ]] || anchor=${target#*'#'}
    path=${target%%'#'*}
    names=$((names + 1))
    if [[ -z $path ]]; then path=$file; else path=$(dirname "$file")/$path; fi
    if [[ ! -e $path ]]; then
        fault "$file: the link to $target leads nowhere"
    elif [[ -n $anchor ]] && ! anchors "$path" | grep -qxF -- "$anchor"; then
        fault "$file: $path has no heading #$anchor"
    fi
}

check_readme() {
    local file=$1 target path
    while read -r target; do
        check_link "$file" "$target"
    done < <(prose "$file" | grep -oE '\]\([^) ]+\)' | sed -E 's/^\]\((.*)\)$/\1/')
    # shellcheck disable=SC2016 # backquotes of Markdown, not of the shell
    while read -r path; do
        [[ ${path/README/} =~ [A-Z]{3,} ]] && continue
        names=$((names + 1))
        [[ -e $path ]] || fault "$file: there is no \`$path\`"
    done < <(prose "$file" | grep -oE '`[^`]+`' | tr -d '`' | grep -E "^($(IFS='|' && echo "${rooms[*]}"))/[A-Za-z0-9_./-]*$")
}

# check_lines README: tables, links to the web and generated comments may be longer.
check_lines() {
    local line
    while IFS= read -r line; do
        fault "$1: a line of ${#line} columns: ${line:0:60}..."
    done < <(prose "$1" | grep -vE '^\||^<!--|https?://' | grep -E '^.{111}' || true)
    [[ $1 != "$results" ]] || return 0
    while IFS= read -r line; do
        fault "$1: history belongs in $results: $line"
    done < <(prose "$1" | grep -oiE '.{0,30}\b(at commit|formerly|used to be|any[ ]more|before this|until now)\b.{0,30}' || true)
}

for readme in "${!most_bytes[@]}"; do
    bytes=$(wc -c <"$readme")
    ((bytes <= most_bytes[$readme])) || fault "$readme has $bytes bytes, more than ${most_bytes[$readme]}"
done
while IFS= read -r -d '' readme; do
    check_readme "$readme"
    check_lines "$readme"
    [[ ${readme##*/} != README.md || $readme == "$results" ]] || together=$((together + $(wc -c <"$readme")))
done < <(find README.md "${rooms[@]}" -name '*.md' -print0 | sort -z)
((together <= most_together)) || fault "the READMEs have $together bytes together, more than $most_together"
printf '%d links and paths, %d faults\n' "$names" "$faults"
((faults == 0))
