#!/usr/bin/env bash
# The "trained on" tables: their rows are well formed, and a passport merge rewrites them in place.
#   test_trained_on.sh CLEAT SOURCE_DIR
# ctest: quick
set -euo pipefail
source=$2
merge=$source/tools/passport_merge.py
passport=$source/tests/cli/passport/xeon.txt # of the machine that ran this repository's tests
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

command -v python3 >/dev/null || { echo "skipped, no python3"; exit 77; }

copy() {
    cp "$source/README.md" "$scratch/front.md"
    cp "$source/profiles/results/README.md" "$scratch/full.md"
}

merge_both() {
    exits 0 "$merge" "$@" --name here --out "$scratch/cards" --readme "$scratch/front.md" --readme "$scratch/full.md"
}

# count FILE TEXT N: checks that N lines contain the text.
count() {
    checks=$((checks + 1))
    [[ $(grep -cF -- "$2" "$1") == "$3" ]] || complain "$1 does not have $3 lines with '$2'"
}

# The current READMEs: every row parses, and a rewrite without a new row changes no byte.
test_readmes() {
    copy
    exits 0 "$merge" --readme "$scratch/front.md" --readme "$scratch/full.md"
    exits 0 cmp "$source/README.md" "$scratch/front.md"
    exits 0 cmp "$source/profiles/results/README.md" "$scratch/full.md"
}

# another: makes a sealed passport of another device.
another() {
    sed 's/^name = .*/name = A card | of the test/; s/^flops = .*/flops = 2e13/; s/^load = .*/load = 0.1/
        s/^\(rna_transformer f16\) = .*/\1 = failed, wrong/; s/bf16 = .*/bf16 = skipped, out of time/' "$passport" >"$scratch/other.txt"
    python3 - "$scratch/other.txt" <<'PYTHON'
import sys, zlib
lines = open(sys.argv[1]).read().split("\n[end]\n")[0].splitlines()
kept = [line for line in lines if line and not line.startswith(";")]
crc = zlib.crc32("".join(line + "\n" for line in kept).encode())
open(sys.argv[1], "w").write("\n".join(lines) + f"\n\n[end]\nlines = {len(kept)}\ncrc32 = {crc:08x}\n")
PYTHON
}

test_merge() {
    local row='| A card / of the test | Portable Computing Language, 3.1+debian | 9 of 9 | 8 of 9 | not tried | 20 | 15.5 | 0.1.0 | 2026-11-22 |'
    copy
    another
    merge_both "$scratch/other.txt"
    count "$scratch/full.md" "$row" 1
    count "$scratch/front.md" "| A card / of the test | 9 of 9 | 8 of 9 | not tried | 2026-11-22 |" 1
    count "$scratch/front.md" "| pthread-skylake" 1 # the other rows are unchanged
    cp "$scratch/front.md" "$scratch/front1.md"
    cp "$scratch/full.md" "$scratch/full1.md"
    merge_both "$scratch/other.txt"
    exits 0 cmp "$scratch/front.md" "$scratch/front1.md"
    exits 0 cmp "$scratch/full.md" "$scratch/full1.md"
    # Only the new row has changed.
    checks=$((checks + 1))
    [[ $(diff "$source/profiles/results/README.md" "$scratch/full.md") == *"> $row" ]] || complain "more than one row changed"
    [[ $(diff "$source/profiles/results/README.md" "$scratch/full.md" | wc -l) == 2 ]] || complain "more than one row changed"
    # The passport of a working machine reports it as such.
    merge_both "$passport"
    count "$scratch/full.md" "| pthread-skylake" 1
    count "$scratch/full.md" "(busy host) |" 1
}

# refused SED TEXT: checks that a changed table is refused for that reason without writing a file.
refused() {
    copy
    sed -i "$1" "$scratch/full.md"
    cp "$scratch/full.md" "$scratch/before.md"
    exits 1 "$merge" "$passport" --name here --out "$scratch/none" --readme "$scratch/front.md" --readme "$scratch/full.md"
    says err "$2"
    exits 0 cmp "$scratch/full.md" "$scratch/before.md"
    exits 0 cmp "$scratch/front.md" "$source/README.md"
    checks=$((checks + 1))
    [[ ! -e $scratch/none ]] || complain "a refused merge left a card file"
}

test_refusals() {
    refused 's/<!-- trained-on: end -->//' "is expected"
    refused 's/^| device | driver/| device | vendor/' "column 'vendor'"
    refused 's/^\(| pthread.*\) |$/\1 | 7 |/' "10 cells"
    refused 's/^\(| pthread.*\)| [0-9]* of [0-9]* |/\1| all |/' "'all' in column"
    refused 's/^| pthread[^|]*|/|  |/' "names no device"
    exits 1 "$merge" --check
    says err "no passport"
}

test_readmes
test_merge
test_refusals
finish
