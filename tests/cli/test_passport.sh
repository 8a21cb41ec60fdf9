#!/usr/bin/env bash
# The passport of a device: its form, its size, no names in it, and the card file made from it.
#   test_passport.sh CLEAT SOURCE_DIR STUB_DRIVER
# ctest: device cost=66
set -euo pipefail
cleat=$1
merge=$2/tools/passport_merge.py
stub_driver=$3
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

# contains FILE TEXT, omits FILE TEXT: check whether a file contains the text.
contains() {
    checks=$((checks + 1))
    grep -qF -- "$2" "$1" || complain "$1 does not contain '$2'"
}

omits() {
    checks=$((checks + 1))
    ! grep -qF -- "$2" "$1" || complain "$1 says '$2'"
}

test_passport() {
    local section file
    mkdir -p "$scratch/home_of_gertrude/cache"
    exits 0 env HOME="$scratch/home_of_gertrude" USER=gertrude LOGNAME=gertrude TMPDIR="$scratch/home_of_gertrude" \
        "$cleat" passport --device "${CLEAT_TEST_DEVICE:-auto}" --seconds 40 --out "$scratch/p.txt"
    says out "bytes in"
    says err "passport: device: ok"
    for section in passport host device rates doctor check bench tune failures end; do contains "$scratch/p.txt" "[$section]"; done
    for file in "$1"/src/inspect/verify/checks/*.safetensors; do # every family with a reference training
        contains "$scratch/p.txt" "$(basename "$file" .safetensors) bf16 = "
    done
    contains "$scratch/p.txt" "sgemm_1024 = "
    contains "$scratch/p.txt" "flops = "
    checks=$((checks + 1))
    (($(stat -c %s "$scratch/p.txt") <= 20480)) || complain "larger than 20 KB"
    omits "$scratch/p.txt" gertrude
    omits "$scratch/p.txt" "$scratch"
    omits "$scratch/p.txt" "$(hostname)"
    # Its cache folder is removed.
    checks=$((checks + 1))
    [[ -z $(find "$scratch/home_of_gertrude" -name 'cleat-passport-*') ]] || complain "files were left in TMPDIR"
    # An existing file is refused before any work.
    cp "$scratch/p.txt" "$scratch/before.txt"
    exits 1 "$cleat" passport --out "$scratch/p.txt"
    says err "exists and is not overwritten"
    exits 0 cmp "$scratch/p.txt" "$scratch/before.txt"
}

# CLEAT_TEST_SHORT: each kind of measurement starts, few finish; the passport reports the others as out of time.
test_short() {
    exits 0 "$cleat" passport --device "${CLEAT_TEST_DEVICE:-auto}" --seconds 12 --out "$scratch/short.txt"
    contains "$scratch/short.txt" "compute_units = "
    contains "$scratch/short.txt" "[end]"
}

# A device that does not open: the passport reports it, and the message repeats the selector.
test_no_device() {
    local host
    host=$(hostname)
    exits 0 env USER=gertrude LOGNAME=gertrude "$cleat" passport \
        --device "card of gertrude on $host, gertrude_2 (/srv/private/card); /dev/dri/card0" --seconds 20 --out "$scratch/none.txt"
    contains "$scratch/none.txt" "failed = "
    contains "$scratch/none.txt" "'card of NAME on NAME, NAME_2 (FOLDER); /dev/dri/card0'"
    omits "$scratch/none.txt" gertrude
    contains "$scratch/none.txt" "series_dense f32 = skipped, no device"
    exits 1 "$merge" "$scratch/none.txt" --name here --out "$scratch/cards"
    says err "the device did not open"
}

# Kernels do not compile, compute wrongly, or crash: the passport is written and has all of this. A maintainer without the
# card needs the compiler's message, the operation and its error.
test_failures() {
    local text="$scratch/bad.txt"
    cp -r "$2/cl" "$scratch/cl"
    sed -i 's/^#define value_of relu_of/voyd broken;/' "$scratch/cl/pointwise.cl"
    sed -i 's/STORE_Y(fma(part\[k\] \* r,/STORE_Y(fma(part[k] * r * 1.5f,/' "$scratch/cl/layer_norm.cl"
    sed -i '/^__kernel void lstm_\(plain_forward\|cpu_pack_layer\)/,/ {$/s/ {$/ { *(volatile __global int *)8 = 1;/' "$scratch/cl/lstm/"lstm{,_cpu}.cl
    exits 0 env CLEAT_KERNEL_DIR="$scratch/cl" TMPDIR="$scratch" "$cleat" passport --device "${CLEAT_TEST_DEVICE:-auto}" \
        --seconds 45 --out "$text"
    omits "$text" "$scratch"
    contains "$text" "CLEAT_KERNEL_DIR=FOLDER"
    contains "$text" "series_dense f32 = failed, 0"
    contains "$text" " = check:series_dense:f32"
    contains "$text" "error: pointwise.cl:55:"
    contains "$text" "unknown type name 'voyd'"
    contains "$text" "series_transformer f32 = failed, "
    sed -n 's/^[0-9]*\.[0-9]* = //p' "$text" | tr '\n' ' ' >"$scratch/told.txt" # without line breaks
    contains "$scratch/told.txt" "in a reference training of series_transformer in f32 with its first-choice kernels"
    contains "$scratch/told.txt" "'output' has a relative error of 0."
    contains "$scratch/told.txt" "first wrong: 'output', by 'linear' or an operation before it"
    if grep -qx "kind = CPU" "$text"; then # a graphics card may survive this
        contains "$text" "series_lstm f32 = failed, 01, crashed: signal 11"
        contains "$text" "01 = check:series_lstm:f32: crashed: signal 11; its last lines:"
        grep -qE 'building [^ ]*lstm/lstm' "$scratch/told.txt" || complain "the last program to be built is not named"
    fi
    checks=$((checks + 1))
    (($(stat -c %s "$text") <= 20480)) || complain "larger than 20 KB"
    # It is still a device: the merge continues, and names what to check.
    exits 0 "$merge" "$text" --check
    says err "not the device as it is"
    says err " failures; see [failures]"
}

# stub FAULT: writes the passport of a driver without hardware, "a Radeon", with that fault.
stub() {
    local folder="$scratch/icd_$1"
    mkdir "$folder"
    cp "$stub_driver" "$folder/stub.so"
    echo "$folder/stub.so" >"$folder/stub.icd"
    printf '%s\n' "platform=AMD" "vendor=Advanced Micro Devices, Inc." "device=gfx1030" "pci=0000:03:00.0" \
        "fault=$1" "log=error: cannot select v_dot2" >"$folder/stub.so.conf"
    exits 0 env OCL_ICD_VENDORS="$folder" "$cleat" passport --seconds 8 --out "$scratch/$1.txt"
    contains "$scratch/$1.txt" "[end]"
    exits 1 "$merge" "$scratch/$1.txt" --check # complete, but not enough for a card file
    says err "so there is no"
}

test_broken_drivers() {
    stub no-context
    contains "$scratch/no-context.txt" "failed = failed, 01, opening 'gfx1030': CL_OUT_OF_HOST_MEMORY"
    contains "$scratch/no-context.txt" " device-open-fails.1 = fail, opening the device"
    stub crash-list
    contains "$scratch/crash-list.txt" "failed = failed, 01, crashed: signal 11"
    stub hang-list
    contains "$scratch/hang-list.txt" "failed = timeout, 01, no answer within 4 s"
    # It opens but compiles nothing: the passport has its facts and the compiler's message.
    stub build-fails
    contains "$scratch/build-fails.txt" "name = gfx1030"
    contains "$scratch/build-fails.txt" "matrix unit amd_dot of 'gfx1030' cannot multiply f16: lib/mma_probe.cl with options"
    contains "$scratch/build-fails.txt" "series_dense f32 = failed, "
    contains "$scratch/build-fails.txt" "error: cannot select v_dot2"
    contains "$scratch/build-fails.txt" "result = fail"
    checks=$((checks + 1))
    (($(stat -c %s "$scratch/build-fails.txt") <= 20480)) || complain "larger than 20 KB"
}

test_merge() {
    exits 0 "$merge" "$scratch/p.txt" --name here --out "$scratch/cards"
    says out " | $(date -u +%Y)-"
    contains "$scratch/cards/here.ini" "f32_tflops = passport of 20"
    exits 0 "$cleat" plan "$2/profiles/rna_small.ini" --card "$scratch/cards/here.ini"
    says out "card file here"
    # As pasted from a web page: code marks, blank lines, blanks, Windows line ends.
    { printf '```\r\n\r\n' && sed 's/$/  \r/' "$scratch/p.txt" && printf '```\r\n'; } >"$scratch/pasted.txt"
    exits 0 "$merge" "$scratch/pasted.txt" --check
    # An existing card file keeps its peaks.
    sed -i 's/^f32_tflops = [0-9.]*$/f32_tflops = 9000/; s/^gemm_efficiency = 1$/gemm_efficiency = 0.5/' "$scratch/cards/here.ini"
    exits 0 "$merge" "$scratch/p.txt" "$scratch/p.txt" --cards "$scratch/cards"
    contains "$scratch/cards/here.ini" "f32_tflops = 9000"
    omits "$scratch/cards/here.ini" "gemm_efficiency = 0.5"
    contains "$scratch/cards/here.ini" "of the peak 9000"
    exits 0 "$cleat" plan "$2/profiles/rna_small.ini" --card "$scratch/cards/here.ini"
}

# seal: writes the checksum of a changed passport, so only the change itself is checked.
seal() {
    python3 - "$1" <<'PYTHON'
import sys, zlib
lines = open(sys.argv[1]).read().split("\n[end]\n")[0].splitlines()
kept = [line for line in lines if line and not line.startswith(";")]
crc = zlib.crc32("".join(line + "\n" for line in kept).encode())
open(sys.argv[1], "w").write("\n".join(lines) + f"\n\n[end]\nlines = {len(kept)}\ncrc32 = {crc:08x}\n")
PYTHON
}

# edited NAME SED: makes a changed and sealed copy of the passport.
edited() {
    sed "$2" "$scratch/p.txt" >"$scratch/$1.txt"
    seal "$scratch/$1.txt"
}

test_tuned() {
    local node='linear f32[4,8] f32[2,8] - - -> f32[4,2]'
    local kernels='kernels = 0123456789abcdef'
    edited faster "/^kernels = /d; s/^\[tune\]$/[tune]\n$kernels\n$node = plain 1.5 cpu\nsum f32[8] -> f32[1] = cpu 2 plain/"
    edited other "/^kernels = /d; s/^\[tune\]$/[tune]\n$kernels\n$node = mma 1.2 cpu/"
    exits 0 "$merge" "$scratch/faster.txt" --name fast --out "$scratch/cards"
    contains "$scratch/cards/fast.tuned" "$node = plain"
    contains "$scratch/cards/fast.tuned" "[choices]"
    contains "$scratch/cards/fast.tuned" "shape = "
    # Two owners disagree on the faster kernel: no answer.
    exits 0 "$merge" "$scratch/faster.txt" "$scratch/other.txt" --name fast --out "$scratch/cards"
    omits "$scratch/cards/fast.tuned" "$node"
    contains "$scratch/cards/fast.tuned" "sum f32[8] -> f32[1] = cpu"
}

# refused NAME LINE TEXT: checks that the copy is refused at that line (0: any) for that reason.
refused() {
    exits 1 "$merge" "$scratch/$1.txt" --name here --out "$scratch/refused"
    says err "$1.txt:"
    says err "$3"
    ((${2} == 0)) || says err "$1.txt:$2:"
}

line_of() {
    grep -n -- "$1" "$scratch/p.txt" | head -n 1 | cut -d: -f1
}

test_refusals() {
    sed 's/^compute_units = .*/compute_units = 77/' "$scratch/p.txt" >"$scratch/changed.txt"
    refused changed "$(line_of '^crc32')" "the text was changed"
    sed '/^W4 = /d' "$scratch/p.txt" >"$scratch/lost.txt"
    refused lost 0 "lines were lost or added"
    head -n 40 "$scratch/p.txt" >"$scratch/cut.txt"
    refused cut 0 "[end] is missing"
    edited number 's/^memory_total = .*/memory_total = 12x/'
    refused number "$(line_of '^memory_total')" "must be a number"
    edited word 's/^vendor = .*/vendor = acme/'
    refused word "$(line_of '^vendor')" "vendor = acme"
    edited format 's/^format = .*/format = 99/'
    refused format "$(line_of '^format')" "the formats 1 and 2"
    edited nothing 's/^flops = .*//'
    refused nothing 0 "[rates] flops is missing"
    edited garbage 's/^\[host\]$/[host]\nhello/'
    refused garbage "$(($(line_of '^\[host\]') + 1))" "'key = value' is expected"
    edited card 's/^name = .*/name = Another card/'
    exits 1 "$merge" "$scratch/p.txt" "$scratch/card.txt" --name here --out "$scratch/refused"
    says err "is of a device with"
    checks=$((checks + 1))
    [[ ! -e $scratch/refused ]] || complain "a refused passport left files"
    exits 2 "$cleat" passport --seconds 0
    exits 2 "$cleat" passport word
    exits 2 "$cleat" passport --part nothing
}

require_python
require_device
test_no_device
test_broken_drivers
if [[ -n ${CLEAT_TEST_SHORT:-} ]]; then
    test_short
    finish
    exit 0
fi
test_passport "$2"
test_failures "$@"
test_merge "$@"
test_tuned
test_refusals
finish
