#!/usr/bin/env bash
# What users of cmd and PowerShell read and type, under wine: words with quotes, commands that cleat prints, remedies.
#   check_windows_words.sh CLEAT_EXE WORK      CLEAT_EXE: a build for Windows; WORK: a folder to be replaced
# Exit code 77: wine is not installed.
# shellcheck disable=SC1003 # paths that end in a backslash
set -euo pipefail

profiles=$(cd "$(dirname "$0")/../../profiles" && pwd)
exe=$(realpath "$1") work=$2 wine=/usr/lib/wine/wine64
command -v "$wine" >/dev/null || { echo "skipped: $wine is not installed" && exit 77; }
rm -rf "$work"
mkdir -p "$work"
cd "$work"
cp "$exe" cleat.exe
cp -r "$profiles" .
export WINEPREFIX=$PWD/wine WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml=' LC_ALL=C.UTF-8
trap '/usr/lib/wine/wineserver64 -k || true' EXIT
checks=0 faults=0

fault() {
    echo "FAILED: $*"
    tail -n 4 log
    faults=$((faults + 1))
}

# cmd STATUS LINE: runs a line as cmd reads it, which wine's own quotes of arguments would change; the output is in `log`.
cmd() {
    local status=0
    checks=$((checks + 1))
    printf '@%s\r\n' "$2" >line.bat
    "$wine" cmd /c line.bat >log 2>&1 </dev/null || status=$?
    ((status == $1)) || fault "exit status $status instead of $1: $2"
}

says() {
    checks=$((checks + 1))
    grep -qF -- "$1" log || fault "says no '$1'"
}

says_not() {
    checks=$((checks + 1))
    ! grep -nE -- "$1" log || fault "says '$1'"
}

test_versions() {
    cmd 0 'cleat --version'
    says 'opencl.dll'
    says_not unknown
    WINEDLLOVERRIDES="$WINEDLLOVERRIDES;opencl=" cmd 0 'cleat --version' # it crashed
    says 'OpenCL loader  none'
}

test_help() {
    local command
    cmd 0 'cleat --help'
    for command in $(sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' log); do
        cmd 0 "cleat $command --help"
        says_not "='|mpirun"
    done
    cmd 0 'cleat /?'
    cmd 0 'cleat train /?'
    cmd 2 'cleat completion powershell'
    says 'bash, zsh and fish only'
    cmd 0 'cleat man --out "new folder"'
    [[ -s "new folder/man1/cleat.1" ]] || fault "cleat man --out"
}

# A backslash before a quote swallows the next words; cmd takes single quotes for letters.
test_quotes() {
    local hint='Windows passed this as one argument'
    mkdir -p 'my data'
    cmd 1 'cleat eval --checkpoint "my data\" --data "my data"'
    says "$hint: my data\" --data my"
    cmd 1 'cleat report "my data\" --out x.html'
    says "$hint: my data\" --out x.html"
    cmd 1 "cleat eval --checkpoint 'x' --data y"
    says "$hint: 'x'"
    cmd 1 'cleat eval --checkpoint "my data" --set "data.buckets=\"64,128\""'
    says_not "$hint"
    cmd 1 'cleat eval --checkpoint "my data\\"'
    says_not "$hint"
}

# The commands that cleat prints run in cmd.
test_commands() {
    local folder name small='--set data.path=data --set model.d_model=32 --set model.heads=2 --set model.layers=1 --set model.d_ff=64 --set train.epochs=1'
    small+=' --set train.warmup_steps=1 --set run.self_check=never'
    cmd 0 'cleat data make rna --out data --count 24'
    for name in 'a,b' '@x' 'a & b (1)' "it's"; do
        cmd 0 "cleat train rna_small $small --out \"runs\\$name\""
        folder=$(sed -n 's/^report of this run: cleat report //p' log | tr -d '\r')
        [[ $folder == \"*\" ]] || fault "a word without quotes: $folder"
        cmd 0 "cleat report $folder"
        [[ -s runs/$name/report.html ]] || fault "no report in $name"
        cmd 1 "cleat train rna_small $small --out \"runs\\$name\""
    done
    # shellcheck disable=SC2016 # PowerShell would run it
    cmd 0 "cleat train rna_small $small --out"' "runs\$(calc)"'
    says_not '^report of this run'
    # the options of a command are read back from its record
    cmd 0 "cleat train rna_small $small --set \"run.out=my runs\\x\\\\\""
    grep -qF -- '--set \"run.out=my runs\\x\\\\\"","device"' 'my runs/x/system.jsonl' || fault "the record of the command"
    cmd 0 'cleat sweep rna_small "data.buckets=32 64,64 128" --set data.path=data --set train.epochs=1 --set model.d_model=32 --set model.heads=2'
    says '[2/2]'
    says 'the runs as a page: runs\sweep-rna_small\report.html'
}

# Files as programs for Windows write them.
test_files() {
    printf 'text;sentiment\r\nsch\366n;good\r\n' >ansi.csv
    iconv -f WINDOWS-1252 -t UTF-16 ansi.csv >utf16.csv
    gzip -k ansi.csv
    cmd 1 'cleat train tweets_sentiment ansi.csv'
    says 'ansi.csv:2: byte 0xf6'
    says 'in Excel: type "CSV UTF-8"'
    cmd 1 'cleat train tweets_sentiment utf16.csv'
    says 'save it as UTF-8 in an editor'
    mv ansi.csv.gz packed.csv
    cmd 1 'cleat train tweets_sentiment packed.csv'
    says 'packed.csv:1: is compressed by gzip, not text; unpack it (gunzip, 7-Zip)'
    cp utf16.csv notepad.ini
    cmd 1 'cleat config notepad.ini'
    says 'notepad.ini:1: the file is UTF-16'
    printf '[data]\r\npath = "C:\\M\374ller"\r\n' >own.ini
    cmd 0 'cleat config own.ini --set model.type=series_dense'
    says 'warning: own.ini:2: path = '
    says 'is not UTF-8; save the file as UTF-8'
}

for test in test_versions test_help test_quotes test_commands test_files; do "$test"; done
echo "$checks checks, $faults faults"
((checks > 4 && faults == 0))
