#!/usr/bin/env bash
# Makes the archive and the wheel for Windows, and uses them under wine, in a folder of drive C: the checkpoints must have the bits of the
# build for Linux on the same PoCL.
#   check_windows.sh BUILD WORK      BUILD: a built tree for Linux; WORK: a folder to be replaced
# CLEAT_WINDOWS_LIBRARIES: the folder of tools/package/windows_libraries.sh (default: made in some minutes); CLEAT_WINDOWS_BUILD: a build with
# them.
# Exit code 77: the cross compiler or wine is not installed.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
linux=$(cd "$1" && pwd)/cleat work=$2
wine=/usr/lib/wine/wine64
shared=${CLEAT_SHARED:-$top/../shared}
for tool in x86_64-w64-mingw32-g++-posix "$wine"; do
    command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed" && exit 77; }
done
rm -rf "$work"
mkdir -p "$work"
work=$(cd "$work" && pwd)
faults=0

fault() {
    echo "FAILED: $*"
    faults=$((faults + 1))
}

# part NAME COMMAND...: a part of the check; prints its seconds.
part() {
    local began=$SECONDS
    "${@:2}"
    echo "-- $1: $((SECONDS - began)) s"
}

# Unpacks the archive into an empty drive C. There no path of Linux exists: wine takes /etc for C:/etc.
unpack() {
    export WINEPREFIX=$work/wine WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml=' LC_ALL=C.UTF-8
    "$wine" wineboot --init >/dev/null 2>&1
    trap '/usr/lib/wine/wineserver64 -k || true' EXIT
    work="$work/wine/drive_c/Programme & Größe 日本"
    mkdir -p "$work"
    cd "$work"
    cmake -E tar xf ../../../out/cleat-*.zip
    unpacked=$(echo cleat-*)
    program=("$wine" "$unpacked/cleat.exe")
    cp -r "$top/profiles" "$top/tests/published" .
}

test_program() {
    "${program[@]}" --version >version.log
    grep -q '^cleat [0-9]' version.log || fault "no version"
    "${program[@]}" devices >devices.log 2>&1 || fault "no device"
    "$wine" reg add 'HKLM\SOFTWARE\Khronos\OpenCL\Vendors' /v 'C:\Treiber\über64.dll' /t REG_DWORD /d 0 /f >/dev/null 2>&1
    "${program[@]}" doctor >doctor.log 2>&1 || true # this driver is not there
    grep -q 'driver C:/Treiber/über64.dll' doctor.log || fault "a driver of the registry is not listed"
    "$wine" reg delete 'HKLM\SOFTWARE\Khronos\OpenCL\Vendors' /v 'C:\Treiber\über64.dll' /f >/dev/null 2>&1
}

# The library exports what the headers declare, and needs Windows alone; the headers compile without extensions of gcc; and a program for
# C runs with it.
test_library() {
    local other header
    x86_64-w64-mingw32-objdump -p "$unpacked/libcleat.dll" >dll.log
    sed -n '/^\[Ordinal\/Name Pointer\] Table/,/^$/s/^\t*\[ *[0-9]*\] \(+base\[ *[0-9]*\] *[0-9a-f]* \)\?//p' dll.log | sort >exported
    sed -n 's/^CLEAT_API [^(]*\b\(cleat_[a-z0-9_]*\)(.*/\1/p' "$unpacked"/include/cleat/*.h | sort | diff - exported || fault "libcleat.dll exports other names"
    other=$(sed -n 's/.*DLL Name: //p' dll.log | grep -viE '^(advapi32|bcrypt|kernel32|msvcrt|setupapi|shell32|user32)\.dll$') && fault "libcleat.dll needs $other"
    x86_64-w64-mingw32-gcc-posix "$here/consumer.c" -DCONSUMER_WANTS="\"$(awk 'NR == 1 { print $2 }' version.log)\"" "-I$unpacked/include" \
        "-L$unpacked/lib" -lcleat -o "$unpacked/consumer.exe"
    "$wine" "$unpacked/consumer.exe" >consumer.log || fault "a program with libcleat.dll"
    grep -q . consumer.log || fault "a program with libcleat.dll lists no device"
    if ! command -v clang >/dev/null; then
        echo "skipped: the headers for Microsoft's compiler, without clang"
        return
    fi
    for header in "$unpacked"/include/cleat/*.h; do
        clang --target=x86_64-pc-windows-msvc -std=c17 -ffreestanding -fsyntax-only -Wall -Werror '-D__attribute__(x)=none' "-I$unpacked/include" -x c - <<<"#include \"${header##*/include/}\"" ||
            fault "${header##*/} with Microsoft's compiler"
    done
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

test_rna() {
    "${program[@]}" data make rna --out daten --count 24 >make.log 2>&1 || fault "data make"
    "$linux" data make rna --out data --count 24 >/dev/null 2>&1
    diff -r data daten || fault "generated data differ"
    same rna rna_small --set data.path=data "${small[@]}"
}

test_texts() {
    printf 'text,sentiment\r\n' >texts.csv # ends of lines of Windows
    for i in $(seq 120); do printf '"good day %d, über",positive\r\n"bad day %d",negative\r\n' "$i" "$i"; done >>texts.csv
    same tweets tweets_sentiment --set data.path=texts.csv --set data.id_column=none "${small[@]}"
}

# Folders of classes: PNG files made here, and real JPEG files.
test_images() {
    local i class
    python3 - Bilder <<'END'
import os, random, struct, sys, zlib
random.seed(1)
def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
for level, name in enumerate(("dunkel", "größer & heller", "日本")):
    os.makedirs(f"{sys.argv[1]}/{name}")
    for i in range(12):
        rows = b"".join(b"\0" + bytes(random.randrange(80) + 80 * level for _ in range(3 * 32)) for _ in range(32))
        with open(f"{sys.argv[1]}/{name}/{i}.png", "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)) +
                       chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
END
    local settings=(--set model.width=8 --set data.image_size=32 --set train.epochs=2 --set train.effective_batch_size=8 --set train.warmup_epochs=0)
    same images image_64 --set data.path=Bilder "${settings[@]}"
    if [[ ! -d $shared/data/blood_cells/jpeg224/train ]]; then
        echo "skipped: JPEG files, without $shared/data/blood_cells/jpeg224"
        return
    fi
    for class in "$shared"/data/blood_cells/jpeg224/train/*/; do
        mkdir -p "jpeg/$(basename "$class")"
        find "$class" -type f | sort | sed -n 1,8p | xargs cp -t "jpeg/$(basename "$class")"
    done
    same jpeg image_64 --set data.path=jpeg "${settings[@]}"
}

# Folders as Hugging Face has them: a text classifier with its tokenizer, and an image classifier.
test_finetuning() {
    { printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the day was late again thanks && printf '##%d\n' $(seq 29); } >published/bert_classifier/vocab.txt
    echo text,label >reviews.csv
    for i in $(seq 12); do printf 'the day was late,bad\nthanks again %s,good\nagain the day,so\n' "$i"; done >>reviews.csv
    same bert text_classify --init published/bert_classifier --set data.path=reviews.csv --set data.max_length=16
    same vit image_finetune --init published/vit --set model.type=image_vit --set data.path=Bilder --set train.epochs=2
}

# Killed again and again, while it starts and after a further checkpoint, a run resumes to the bits of one that was not.
test_kills() {
    local run=(train tweets_sentiment --set data.path=texts.csv --set data.id_column=none "${small[@]}" --set train.epochs=120
        --set run.early_stopping_patience=120) i k last at kills=0
    "$linux" "${run[@]}" --out linux/killed >killed.linux.log 2>&1 || fault "killed on Linux"
    for i in $(seq 20); do
        at=$(cat Läufe/killed/last 2>/dev/null || true)
        "${program[@]}" "${run[@]}" --out Läufe/killed --resume >"killed.$i.log" 2>&1 &
        for ((k = i % 2 ? 3 * i : 1000; k > 0; --k)); do # at most that many hundredths of a second, or until a checkpoint comes
            [[ $(cat Läufe/killed/last 2>/dev/null) == "$at" ]] || break
            kill -0 $! 2>/dev/null || break
            sleep 0.01
        done
        sleep "0.0$i"
        kill -KILL $! 2>/dev/null && kills=$((kills + 1))
        { wait $!; } 2>/dev/null || true
    done
    last=$(cat linux/killed/last)
    [[ $kills == 20 && -e Läufe/killed/last && $(cat Läufe/killed/last) != "$last" ]] || fault "killed $kills of 20 times"
    echo "killed 20 times, at last after $(cat Läufe/killed/last) of $last"
    "${program[@]}" "${run[@]}" --out Läufe/killed --resume >killed.log 2>&1 || fault "resumed"
    cmp "linux/killed/$last/model.safetensors" "Läufe/killed/$last/model.safetensors" || fault "killed: other bits"
}

# Paths of all kinds, some of them longer than 260 characters.
test_paths() {
    local long i path
    long=$(printf 'x%.0s' $(seq 120))
    for i in $(seq 10); do
        for path in "mit Leerzeichen $i" "Ärger Öl $i" "日本語 $i" "a.b,c;d' ($i)" "$long/$long/$long $i"; do
            mkdir -p "paths/$path"
            "${program[@]}" data make rna --out "paths/$path/daten" --count 2 >path.log 2>&1 || { tail -n 2 path.log && fault "path $path"; }
            [[ -n $(ls "paths/$path/daten" 2>/dev/null) ]] || fault "path $path: nothing was written"
        done
    done
}

# quickstart.bat, started as from another folder, twice: the second call shows the finished run. Reports open in a "browser" that copies them.
test_quickstart() {
    local i
    "$wine" reg add 'HKCR\.html' /ve /d page /f >/dev/null 2>&1
    "$wine" reg add 'HKCR\page\shell\open\command' /ve /d 'cmd.exe /c copy /y "%1" C:\opened.html' /f >/dev/null 2>&1
    for i in 1 2; do
        "$wine" cmd /c call "$unpacked\\quickstart.bat" "${small[@]}" </dev/null >"quickstart.$i.log" 2>&1 || fault "quickstart, call $i"
        grep -q '^lddt ' "quickstart.$i.log" || { tail -n 5 "quickstart.$i.log" && fault "quickstart, call $i: no evaluation"; }
    done
    for i in $(seq 50); do [[ -s $WINEPREFIX/drive_c/opened.html ]] || sleep 0.1; done
    cmp "$unpacked/runs/quickstart/run/report.html" "$WINEPREFIX/drive_c/opened.html" || fault "quickstart: the report was not opened"
    if grep -q '== data' quickstart.2.log; then fault "quickstart: the second call makes data again"; fi
}

# script NAME ARGUMENT...: another check of this folder; 77: skipped, and it said why.
script() {
    local code=0
    "$here/$1" "${@:2}" || code=$?
    ((code == 0 || code == 77)) || fault "$1"
}

small=(--set model.d_model=32 --set model.heads=2 --set model.layers=1 --set model.d_ff=64 --set train.epochs=2 --set train.warmup_steps=1)
part "archive and wheel" "$top/tools/package/windows.sh" "$work/out" ${CLEAT_WINDOWS_LIBRARIES:+"$CLEAT_WINDOWS_LIBRARIES"} ${CLEAT_WINDOWS_BUILD:+"$CLEAT_WINDOWS_BUILD"}
part unpacked unpack
part program test_program
part library test_library
part RNA test_rna
part texts test_texts
part images test_images
part fine-tuning test_finetuning
part "20 kills" test_kills
part "50 paths" test_paths
part quickstart test_quickstart
part Python script check_windows_python.sh "$WINEPREFIX/../out"/cleat-*.whl "$work/Python"
part doctor script check_windows_doctor.sh "$work/$unpacked/cleat.exe" "$work/doctor" "$(dirname "$linux")"
part system script check_windows_system.sh "$work/$unpacked/cleat.exe" "$work/system"
part words script check_windows_words.sh "$work/$unpacked/cleat.exe" "$work/words"
echo "$faults faults"
((faults == 0))
