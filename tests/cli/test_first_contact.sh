#!/usr/bin/env bash
# tools/first_contact.sh: one text file, whatever fails, without names and folders, that ends with a passport for tools/passport_merge.py.
#   test_first_contact.sh CLEAT SOURCE_DIR [real]      without `real`, a script replaces cleat
# ctest: quick
set -euo pipefail
cleat=$1
source=$2
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

# A program whose doctor hangs, whose f16 results are wrong, and which crashes in bf16.
make_stand_in() {
    cat >"$scratch/stand_in" <<'SCRIPT'
#!/usr/bin/env bash
out=
for ((i = 1; i <= $#; ++i)); do [[ ${!i} != --out ]] || { next=$((i + 1)) && out=${!next}; }; done
case "$1 $*" in
doctor*) sleep 60 ;;
"passport"*) echo "[passport]" >"$out" ;;
"verify"*bf16*) kill -SEGV $$ ;;
"verify"*f16*) echo "wrong" && exit 1 ;;
"data"*) mkdir -p "$out" ;;
"train"*) mkdir -p "$out" && echo '{"kind":"start"}' >"$out/metrics.jsonl" && echo '{"loss":1}' >>"$out/metrics.jsonl" && seq 1 1000 ;;
*) echo "in $HOME by $USER" ;;
esac
SCRIPT
    chmod +x "$scratch/stand_in"
}

test_goes_on() {
    local text=$scratch/text.txt
    make_stand_in
    exits 1 env USER=gertrude HOME="$scratch/home_of_gertrude" "$source/tools/first_contact.sh" --cleat "$scratch/stand_in" --seconds 10 --out "$text"
    says out "4 of 22 steps failed"
    contains "$text" "FAILED doctor: time limit of 5 s"
    contains "$text" "FAILED verify f16: exit status 1"
    contains "$text" "FAILED verify bf16: exit status 139"
    contains "$text" "FAILED compile: exit status 139" # it also crashed there
    contains "$text" "== bench W9_vit_s16 bf16: ok"
    contains "$text" "== same bits twice: ok"
    contains "$text" "lines left out"
    omits "$text" gertrude
    omits "$text" "$scratch"
    omits "$text" "$source/"
    checks=$((checks + 1))
    [[ $(sed '1,/^== the passport$/d' "$text") == "[passport]" ]] || complain "the file does not end with the passport"
    exits 1 "$source/tools/first_contact.sh" --cleat "$scratch/stand_in" --out "$text"
    says err "exists and is not overwritten"
    exits 2 "$source/tools/first_contact.sh" --seconds 0
    exits 2 "$source/tools/first_contact.sh" --device
}

# Different metrics of two runs are reported.
test_other_bits() {
    sed -i 's/"loss":1/"loss":'"'"'$RANDOM$RANDOM'"'"'/' "$scratch/stand_in"
    exits 1 "$source/tools/first_contact.sh" --cleat "$scratch/stand_in" --seconds 10 --out "$scratch/other.txt"
    contains "$scratch/other.txt" "FAILED same bits twice: exit status 1"
}

# On a device: time limits are short, so steps may exceed them, but must not fail otherwise.
test_real() {
    local text=$scratch/real.txt line
    "$source/tools/first_contact.sh" --cleat "$cleat" --device "${CLEAT_TEST_DEVICE:-auto}" --seconds 200 --out "$text" \
        >"$scratch/out" 2>"$scratch/err" </dev/null || true
    says out "steps failed"
    contains "$text" "== devices: ok"
    contains "$text" "== data: ok"
    contains "$text" "== train f32: "
    if grep -q "^== train f32: ok" "$text"; then
        contains "$text" "-- kernels of train f32"
        contains "$text" "-- monitor of train f32"
    fi
    contains "$text" "compute_units = "
    sed '1,/^== the passport$/d' "$text" >"$scratch/passport.txt"
    contains "$scratch/passport.txt" "[end]"
    while read -r line; do
        checks=$((checks + 1))
        [[ $line == *"time limit"* ]] || complain "$line"
    done < <(grep '^FAILED' "$text" || true)
    checks=$((checks + 1))
    (($(stat -c %s "$text") <= 150000)) || complain "larger than 150 KB"
}

if [[ ${3:-} == real ]]; then
    require_device
    test_real
else
    test_goes_on
    test_other_bits
fi
finish
