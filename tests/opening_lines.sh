#!/usr/bin/env bash
# Checks that every source file begins with a comment that describes the file, and that comments are not too wide.
#   tests/opening_lines.sh [FOLDER]      FOLDER: another source tree than this one
# The comment is the first line of the file, or the first line after #! of a script. It has at least three
# words, and is more than "See plan.h.". A line of a comment of C has at most 120 columns, except in a table.
set -euo pipefail

cd "${1:-$(dirname "$0")/..}"
rooms=(src include cl tools tests)
files=0 faults=0

# opening_line FILE: sets `line`.
opening_line() {
    line=
    { read -r line && [[ $line != '#!'* ]] || read -r line; } <"$1" || true
}

# judge FILE LINE: sets `why` to the line's fault, or to an empty string.
judge() {
    local comment=$2 words
    why=
    case $1 in
    *.sh | *.py) [[ $comment == '# '* || $comment == '"""'* ]] || why="is no comment" ;;
    *) [[ $comment == '/* '* ]] || why="is no comment" ;;
    esac
    [[ -z $why ]] || return 0
    comment=${comment#'/* '} comment=${comment#'# '} comment=${comment#'"""'} comment=${comment%'*/'}
    read -ra words <<<"$comment"
    if [[ $comment == 'shellcheck '* ]]; then
        why="is an instruction to a tool"
    elif ((${#words[@]} < 3)) || [[ ${words[0]} == [Ss]ee && ${#words[@]} -lt 4 ]]; then
        why="does not describe the file"
    fi
}

while IFS= read -r -d '' path; do
    files=$((files + 1))
    opening_line "$path"
    judge "$path" "$line"
    [[ -z $why ]] && continue
    faults=$((faults + 1))
    printf '%s: the opening line %s: %s\n' "$path" "$why" "$line"
done < <(find "${rooms[@]}" -type f -regextype egrep -regex '.*\.(c|h|cl|clh|sh|py)' -print0 | sort -z)
while IFS= read -r wide; do
    faults=$((faults + 1))
    printf '%s: a comment line of more than 120 columns\n' "${wide:0:80}"
done < <(grep -rnE '^ *(/\*|\*).{116}' --include='*.[ch]' --include='*.cl' --include='*.clh' "${rooms[@]}" |
    grep -E '^[^:]*:[0-9]*:.{121}' | grep -vE '^[^:]*:[0-9]*: *\* .*   ' || true)
printf '%d files, %d without a good opening line\n' "$files" "$faults"
((files > 0 && faults == 0))
