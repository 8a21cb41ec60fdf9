#!/usr/bin/env bash
# What Windows does differently, under wine: interruptions, locks, open files, names of files, console.
#   check_windows_system.sh CLEAT_EXE WORK      CLEAT_EXE: a build for Windows, with its profiles; WORK: a folder to be replaced
# Exit code 77: the cross compiler or wine is not installed.
# shellcheck disable=SC1003 # paths that end in a backslash
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
profiles=$here/../../profiles
exe=$(realpath "$1") work=$2
wine=/usr/lib/wine/wine64 compiler=x86_64-w64-mingw32-gcc-posix
for tool in "$compiler" "$wine" script; do
    command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed" && exit 77; }
done
rm -rf "$work"
mkdir -p "$work"
cd "$work"
work=$PWD
"$compiler" -O1 -Wall -Wextra -Werror "$here/console.c" -o console.exe -lshell32 -luser32
export WINEPREFIX=$work/wine WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml=' LC_ALL=C.UTF-8 TERM=xterm
unset DISPLAY NO_COLOR CLEAT_CACHE_DIR
trap '/usr/lib/wine/wineserver64 -k || true' EXIT
"$wine" reg add 'HKCU\Software\Wine\Drivers' /v Graphics /d null /f >/dev/null 2>&1 # windows without a screen, for log-off
/usr/lib/wine/wineserver64 -k # its desktop began with the driver before
checks=0 faults=0

fault() {
    echo "FAILED: $*"
    tail -n 4 log
    faults=$((faults + 1))
}

# cleat STATUS WORDS...: runs it, and compares its exit status; the output is in `log`.
cleat() {
    console "$1" "" "${@:2}"
}

# console STATUS "HOW..." WORDS...: the same through console.exe.
console() {
    local wanted=$1 status=0 how=()
    [[ -z $2 ]] || read -ra how <<<"console.exe $2"
    shift 2
    checks=$((checks + 1))
    "$wine" "${how[@]}" "$exe" "$@" >log 2>&1 </dev/null || status=$?
    ((status == wanted)) || fault "exit status $status instead of $wanted: ${how[*]} $*"
}

says() {
    checks=$((checks + 1))
    grep -qF -- "$1" log || fault "says no '$1'"
}

# equal A B: checks that the last checkpoints of two runs have the same bits.
equal() {
    local file
    for file in model.safetensors optim.safetensors; do
        checks=$((checks + 1))
        cmp "$1/$(cat "$1/last")/$file" "$2/$(cat "$2/last")/$file" || fault "$file of $1 and $2"
    done
}

cleat 0 data make rna --out daten --count 24
small=(train "$profiles/rna_small.ini" --set data.path=daten --set train.warmup_steps=1 --set run.self_check=never
    --set run.early_stopping_patience=none)
tiny=("${small[@]}" --set model.d_model=32 --set model.heads=2 --set model.layers=1 --set model.d_ff=64 --set train.epochs=240)

test_interruptions() {
    local event
    cleat 0 "${tiny[@]}" --out whole
    for event in c x o; do
        console 130 "events 1$event $event/metrics.jsonl" "${tiny[@]}" --out "$event"
        says "continue from the checkpoint in $event with --resume"
        cleat 0 "${tiny[@]}" --out "$event" --resume
        says "resumed" # else the event came too late
        equal whole "$event"
    done
    # during a step of some seconds: the second one ends the run at once
    cleat 0 data make rna --out viele --count 6400
    console 130 "events 1c93c slow/metrics.jsonl" "${small[@]}" --set data.path=viele --set model.d_model=480 --set model.layers=6 \
        --set train.effective_batch_size=3200 --out slow
    checks=$((checks + 1))
    ! grep -q "continue from" log || fault "the second Ctrl-C did not end the run"
    # before the first step
    CLEAT_CACHE_DIR=$work/empty POCL_CACHE_DIR=$work/empty console 130 "events c early/resolved.ini" "${tiny[@]}" --set run.self_check=always --out early
    says "before the first step"
    # a command that handles no signals
    console 143 "events 2b console.exe" bench
}

test_console() {
    local how plain=('s/\x1b\[\?25[lh]//g; s/\x1b\[[0-9]*[CKHJ]//g; s/\r//g')
    for how in "" "console.exe dumb"; do
        checks=$((checks + 1))
        # shellcheck disable=SC2086 # two words
        script -qec "$(printf '%q ' "$wine" $how "$exe" "${tiny[@]}" --set train.epochs=1 --out "terminal/$how" --resume)" typescript </dev/null >/dev/null 2>&1 || true
        sed -E "${plain[0]}" typescript >log
        grep -q 'warning:' log || fault "no warning on a terminal"
        [[ -z $how ]] && { grep -q $'\e\[1;33m' log || fault "no colour"; }
        [[ -z $how ]] || ! grep -q $'\[1;33m\|\[K' log || fault "sequences on a console that takes none"
    done
    checks=$((checks + 1))
    script -qec "$(printf '%q ' "$wine" console.exe page "$exe" devices)" log </dev/null >/dev/null 2>&1 || fault "the code page of the console"
}

# held STATUS SHARING MILLISECONDS FILE WORDS...: runs cleat while another program has the file open.
held() {
    local wanted=$1
    "$wine" console.exe hold "$4" "$3" "$2" >held &
    while [[ ! -s held ]] && kill -0 $! 2>/dev/null; do sleep 0.02; done
    shift 4
    cleat "$wanted" "$@"
    wait $! || fault "the file was not held"
    rm held
}

test_open_files() {
    held 0 none 500 whole/metrics.jsonl report whole # waits
    held 1 none 2700 whole/metrics.jsonl report whole
    says "metrics.jsonl: cannot open: another program has it open; close it there"
    held 0 read 2700 whole/report.html report whole # replaces files, and waits longer for that
    held 1 read 12000 whole/report.html report whole
    says "report.html"
    says "another program has it open"
    chmod a-w whole/report.html whole/metrics.csv
    cleat 0 report whole
    "$wine" cmd /c "type $(tail -n 1 log | tr -d '\r')" >page 2>&1
    checks=$((checks + 1))
    cmp page whole/report.html || fault "cmd.exe does not open the path of the report"
    # the folder of a run that another process trains, until that is killed
    "$wine" "$exe" "${tiny[@]}" --set train.epochs=100000 --out locked >locked.log 2>&1 &
    other=$!
    while [[ ! -s locked/metrics.jsonl ]] && kill -0 "$other" 2>/dev/null; do sleep 0.02; done
    cleat 1 "${tiny[@]}" --out locked --resume
    says "another process is training in locked"
    disown
    kill -KILL "$other"
    cleat 75 "${tiny[@]}" --set train.epochs=100000 --set run.time_budget=1s --out locked --resume
}

test_paths() {
    local name long escaped
    mkdir -p über/daten wine/dosdevices/unc/rechner
    cp -r daten über/daten/rna
    ln -s "$work" wine/dosdevices/unc/rechner/teil
    escaped=$(sed 's/&/\\&/g' <<<"$work")
    sed -e "s|^path = .*|path = Z:${escaped//\//\\\\}\\\\über\\\\daten\\\\rna|" -e 's/$/\r/' "$profiles/rna_small.ini" >own.ini
    own=(--set train.epochs=1 --set run.self_check=never --set train.warmup_steps=1 --set model.d_model=32 --set model.heads=2)
    cleat 0 train ".\\own.ini" "${own[@]}" --out 'läufe\eins'
    cleat 0 train "Z:${work//\//\\}\\own.ini" "${own[@]}" --out "\\\\?\\Z:${work//\//\\}\\läufe\\zwei" --init 'läufe\eins\' --set 'data.path=.\über\daten\rna\'
    cleat 0 train '\\rechner\teil\own.ini' "${own[@]}" --out '\\rechner\teil\läufe\drei' --set 'data.path=Z:über\..\daten'
    cleat 0 eval --checkpoint 'läufe\zwei' --data 'daten'
    cleat 0 runs 'läufe\'
    for name in eins zwei drei; do says "$name"; done
    printf '[data]\npath = C:\\daten\\\nval_fraction = 0.1\n' >slash.ini
    cleat 1 config slash.ini
    says "a backslash at the end of the line before continues it here"
    for name in nul aux.csv 'läufe\con' results:1 'a<b' 'end.' 'end ' 'y.\z'; do
        cleat 1 data make rna --count 1 --out "$name"
        says "Windows does not take this name"
    done
    long=$(printf 'x%.0s' $(seq 90)) # a current folder has at most 260 characters
    mkdir -p "$long"
    (cd "$long" && cp -r "$work/daten" . && cleat 0 "${small[@]}" "${own[@]}" --out "$long/$long" && cleat 0 report "$long/$long" && [[ -s $long/$long/report.html ]]) ||
        fault "paths relative to a long folder"
    checks=$((checks + 1))
    [[ -d $(echo wine/drive_c/users/*/AppData/Local/cleat) ]] || fault "no cache in LOCALAPPDATA"
    CLEAT_CACHE_DIR="Z:${work//\//\\}\\cache\\own" cleat 0 "${tiny[@]}" --set train.epochs=1 --out cached
    checks=$((checks + 1))
    [[ -d cache/own ]] || fault "no cache in CLEAT_CACHE_DIR"
}

for test in test_interruptions test_console test_open_files test_paths; do "$test"; done
echo "$checks checks, $faults faults"
((checks > 4 && faults == 0))
