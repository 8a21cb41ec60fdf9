#!/usr/bin/env bash
# Makes the archive for Windows, and trains with it under wine: the checkpoints must have the bits of the build for Linux on the same PoCL.
#   check_windows.sh BUILD WORK      BUILD: a built tree for Linux; WORK: a folder to be replaced
# CLEAT_WINDOWS_LIBRARIES: the folder of tools/package/windows_libraries.sh (default: made in some minutes).
# Exit code 77: the cross compiler or wine is not installed.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
linux=$(cd "$1" && pwd)/cleat work=$2
wine=/usr/lib/wine/wine64
for tool in x86_64-w64-mingw32-g++-posix "$wine"; do
    command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed" && exit 77; }
done
rm -rf "$work"
mkdir -p "$work"
work=$(cd "$work" && pwd)
"$top/tools/package/windows.sh" "$work/out" ${CLEAT_WINDOWS_LIBRARIES:+"$CLEAT_WINDOWS_LIBRARIES"}

export WINEPREFIX=$work/wine WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml=' LC_ALL=C.UTF-8
trap '/usr/lib/wine/wineserver64 -k || true' EXIT
unpacked="$work/Programme & Größe 日本"
mkdir "$unpacked"
cd "$unpacked"
cmake -E tar xf "$work"/out/cleat-*.zip
program=("$wine" "$(echo "$unpacked"/cleat-*/cleat.exe)")
cd "$work"
faults=0

fault() {
    echo "FAILED: $*"
    faults=$((faults + 1))
}

# same NAME WORDS...: trains with both programs, and compares the last checkpoints.
same() {
    local name=$1 file
    shift
    "$linux" train "$@" --out "linux/$name" >"$name.linux.log" 2>&1 || { tail -n 5 "$name.linux.log" && fault "$name on Linux"; }
    "${program[@]}" train "$@" --out "Läufe/$name" >"$name.log" 2>&1 || { tail -n 5 "$name.log" && fault "$name"; }
    for file in model.safetensors optim.safetensors; do
        cmp "linux/$name/$(cat "linux/$name/last")/$file" "Läufe/$name/$(cat "linux/$name/last")/$file" || fault "$name: $file"
    done
}

"${program[@]}" --version >version.log
grep -q '^cleat [0-9]' version.log || fault "no version"
"${program[@]}" devices >devices.log 2>&1 || fault "no device"
"$wine" reg add 'HKLM\SOFTWARE\Khronos\OpenCL\Vendors' /v 'C:\Treiber\über64.dll' /t REG_DWORD /d 0 /f >/dev/null 2>&1
"${program[@]}" doctor >doctor.log 2>&1 || true # this driver is not there
grep -q 'driver C:/Treiber/über64.dll' doctor.log || fault "a driver of the registry is not listed"
"$wine" reg delete 'HKLM\SOFTWARE\Khronos\OpenCL\Vendors' /v 'C:\Treiber\über64.dll' /f >/dev/null 2>&1
"${program[@]}" data make rna --out daten --count 24 >make.log 2>&1 || fault "data make"
"$linux" data make rna --out data --count 24 >/dev/null 2>&1
diff -r data daten || fault "generated data differ"
small=(--set model.d_model=32 --set model.heads=2 --set model.layers=1 --set model.d_ff=64 --set train.epochs=2 --set train.warmup_steps=1)
same rna "$top/profiles/rna_small.ini" --set data.path=data "${small[@]}"
printf 'text,sentiment\r\n' >texts.csv # ends of lines of Windows
for i in $(seq 120); do printf '"good day %d, über",positive\r\n"bad day %d",negative\r\n' "$i" "$i"; done >>texts.csv
same tweets "$top/profiles/tweets_sentiment.ini" --set data.path=texts.csv --set data.id_column=none "${small[@]}"

# Killed again and again, a run resumes to the bits of one that was not.
run=(train "$top/profiles/tweets_sentiment.ini" --set data.path=texts.csv --set data.id_column=none "${small[@]}" --set train.epochs=30 --set run.early_stopping_patience=30)
"$linux" "${run[@]}" --out linux/killed >killed.linux.log 2>&1 || fault "killed on Linux"
for i in $(seq 6); do
    "${program[@]}" "${run[@]}" --out Läufe/killed --resume >"killed.$i.log" 2>&1 &
    sleep "$((1 + i % 3)).$((i * 37 % 10))"
    pkill -KILL -f "cleat.exe train .*Läufe/killed" || true
    wait || true
done
"${program[@]}" "${run[@]}" --out Läufe/killed --resume >killed.log 2>&1 || fault "resumed"
last=$(cat linux/killed/last)
cmp "linux/killed/$last/model.safetensors" "Läufe/killed/$last/model.safetensors" || fault "killed: other bits"

# Paths of all kinds, some of them longer than 260 characters.
long=$(printf 'x%.0s' $(seq 120))
for i in $(seq 10); do
    for path in "mit Leerzeichen $i" "Ärger Öl $i" "日本語 $i" "a.b,c;d' ($i)" "$long/$long/$long $i"; do
        mkdir -p "paths/$path"
        printf 'label\r\n' >"paths/$path/probe.txt"
        "${program[@]}" data make rna --out "paths/$path/daten" --count 2 >path.log 2>&1 || { tail -n 2 path.log && fault "path $path"; }
        [[ -n $(ls "paths/$path/daten" 2>/dev/null) ]] || fault "path $path: nothing was written"
    done
done
echo "$faults faults"
((faults == 0))
