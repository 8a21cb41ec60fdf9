#!/usr/bin/env bash
# The source tour of README.md names every source file, and only files that exist.
#   tests/readme_tour.sh [README]
# Names stand in backquotes in a row's second column, and source files in its third, relative to the row's room or to the top: `graph.c`,
# `plan.{h,c}`, `rna_*.{h,c}`, `cmd_NAME.c` (NAME, ROOM: anything), `mma*.cl[h]` (.cl and .clh), `checks/` (all that is in it).
set -euo pipefail
shopt -s nullglob globstar

top=$(cd "$(dirname "$0")/.." && pwd)
readme=${1:-$top/README.md}
rooms=(include/cleat src cl tools tests)
declare -A named=()
faults=0

fault() {
    printf '%s\n' "$1"
    faults=$((faults + 1))
}

# Rows of the tour as "ROOM NAME", a name a line.
list_names() {
    awk -F'|' '
        /^## / { tour = /^## Source tour/ }
        tour && /^\|/ {
            if (match($2, /\*\*[^*]+\*\*/)) room = substr($2, RSTART + 2, RLENGTH - 4)
            for (column = 3; column <= 4; ++column) {
                text = $column
                while (match(text, /`[^`]+`/)) {
                    name = substr(text, RSTART + 1, RLENGTH - 2)
                    if (column == 3 || name ~ /\.(c|h|cl|clh|sh|py|cmake)$/) print room, name
                    text = substr(text, RSTART + RLENGTH)
                }
            }
        }' "$readme"
}

# note PATTERN: notes the files it stands for; false where there is none.
note() {
    local pattern=$1 path any=false
    [[ $pattern != */ ]] || pattern+='**'
    for path in $pattern; do
        [[ -f $path ]] || continue
        named[$path]=1
        any=true
    done
    $any
}

# Braces are the shell's; a name is only ever made of the characters checked here.
check_name() {
    local room=$1 name=$2 pattern part any parts=()
    name=${name//NAME/*} name=${name//ROOM/*} name=${name//\[h\]/\{,h\}}
    if [[ ! $name =~ ^[A-Za-z0-9_./*{},-]+$ ]]; then
        fault "README.md: '$2' ($room) is no file's name"
        return
    fi
    eval "parts=(${name//\*/\\*})"
    for part in "${parts[@]}"; do
        any=false
        for pattern in "$room/$part" "$part"; do
            ! note "$pattern" || any=true
        done
        $any || fault "README.md: $room has no '$part'"
    done
}

cd "$top"
while read -r room name; do check_name "$room" "$name"; done < <(list_names)
((${#named[@]} > 0)) || fault "README.md has no source tour"
while read -r path; do
    [[ -n ${named[$path]:-} ]] || fault "$path is not in the source tour of README.md"
done < <(find "${rooms[@]}" -type f -regextype egrep -regex '.*\.(c|h|cl|clh|sh|py|cmake|supp)' | sort)
((faults == 0))
