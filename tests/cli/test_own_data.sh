#!/usr/bin/env bash
# The examples of README.md and profiles/README.md for the user's own data: their commands run as written, on few data,
# for one epoch.
#   test_own_data.sh CLEAT SOURCE_DIR
# ctest: device
set -euo pipefail
cleat=$1 source=$2
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

small=(--device "${CLEAT_TEST_DEVICE:-auto}" --set run.self_check=never --set train.epochs=1)

# commands FILE: the indented commands of the section "Your own data", one per line.
commands() {
    awk '/^## / { on = $0 == "## Your own data" } on && (/^    cleat / || more) { sub(/^ +/, ""); sub(/ +#.*/, ""); more = sub(/ *\\$/, " ")
        printf "%s%s", $0, more ? "" : "\n" }' "$1"
}

# Typical user data: a table saved by a German spreadsheet, with a rare class; folders of images; a series with its
# dates and a decimal comma.
make_data() {
    local i
    {
        printf '\xef\xbb\xbftext;label\r\n'
        for ((i = 0; i < 60; ++i)); do printf '"nice; day %d";up\r\nbad day %d, really;down\r\n' "$i" "$i"; done
        printf 'day by day;so\r\nday after day;so\r\n'
    } >reviews.csv
    printf 'text,other\nnice day,1\nbad day,2\n' >new.csv
    {
        printf 'date;shop;web\r\n'
        for ((i = 0; i < 300; ++i)); do
            printf '%s;%d,5;%d\r\n' "$(date -u -d "2020-01-01 +$i days" +%d.%m.%Y)" $((10 + i % 7)) $((i % 5))
        done
    } >sales.csv
    {
        printf 'date,shop,sold\n'
        for ((i = 0; i < 100; ++i)); do
            printf '%s,%s,%d\n' "$(date -u -d "2020-01-01 +$i days" +%F)" north $((10 + i % 7)) \
                "$(date -u -d "2020-01-01 +$i days" +%F)" south $((90 - i % 7))
        done
    } >shops.csv
    python3 - <<'END'
import os, struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
def picture(path, step):
    rows = b"".join(b"\0" + bytes((x * step + y * c) % 256 for x in range(16) for c in range(3)) for y in range(16))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
for i in range(24):
    picture("photos/cat/%d.png" % i, 3 + i % 3)
    picture("photos/dog/%d.png" % i, 40 + i % 3)
for i in range(3):
    picture("new_photos/%d.png" % i, 3 + 20 * i)
END
}

# run_examples FILE COUNT: runs the examples of one README, of which COUNT train.
run_examples() {
    local line words
    commands "$1" >commands
    : >log
    exits 0 test "$(grep -c '^cleat train' commands)" = "$2"
    rm -rf runs
    while IFS= read -r line <&3; do
        read -ra words <<<"$line"
        [[ ${words[1]} != train ]] || words+=("${small[@]}")
        exits 0 "$cleat" "${words[@]:1}"
        cat "$scratch/err" >>log
    done 3<commands
    cp log "$scratch/err"
}

# early TEXT SETTING...: checks that a training is refused with TEXT before the device is used.
early() {
    local text=$1
    shift
    exits 1 "$cleat" train "$@" --set run.self_check=always --device "${CLEAT_TEST_DEVICE:-auto}" --out runs/refused
    says err "$text"
    lacks err "self-check"
    exits 1 test -e runs/refused
}

# Faults in file names and table headers are reported before the device checks, which take seconds.
test_early_errors() {
    local texts=("$source/profiles/text_classify.ini" --set data.path=reviews.csv)
    early "data.text_column: reviews.csv:1: no column 'txt'; did you mean 'text'?" "${texts[@]}" --set data.text_column=txt
    early "data.label_column: reviews.csv:1: no column 'class'" "${texts[@]}" --set data.label_column=class
    early "sales.csv:1: no column 'shops'; did you mean 'shop'?" "$source/profiles/series_lstm.ini" --set data.path=sales.csv \
        --set data.targets=shops
    early "nowhere: no such file or folder (data.path)" "$source/profiles/image_64.ini" --set data.path=nowhere
    early "nowhere: no such file or folder (data.path)" "$source/profiles/rna_small.ini" --set data.path=nowhere
    early "no training file in this folder" "$source/profiles/text_tag.ini" --set data.path=photos
}

# once TEXT: checks that the log of the last examples has TEXT once.
once() {
    checks=$((checks + 1))
    (($(grep -cF -- "$1" log) == 1)) || complain "the log has '$1' $(grep -cF -- "$1" log) times"
}

cd "$scratch"
require_device
require_python
make_data
run_examples "$source/README.md" 3
run_examples "$source/profiles/README.md" 4
says err "reviews.csv: its fields are separated by ';'"
says err "reviews.csv: no column 'textID' (data.id_column)"
says err "reviews.csv: the classes are unbalanced"
says err "the warm-up of 200 optimizer steps is not shorter than the run"
says err "sales.csv: its numbers have a decimal comma"
says err "photos: training split: cat "
exits 0 grep -q -- '--set data.path=reviews.csv --set data.label_column=label' runs/reviews/system.jsonl
exits 0 test "$(cut -d , -f 1 runs/reviews/new/predictions.csv | paste -s -d ' ')" = "id 1 2"
exits 0 test "$(head -n 1 runs/reviews/new/predictions.csv)" = "id,label,probability,down,so,up"
exits 0 test "$(head -n 1 runs/photos/new/predictions.csv)" = "id,label,probability,cat,dog"
exits 0 test "$(wc -l <runs/photos/new/predictions.csv)" = 4
once "reviews.csv: its fields are separated"
test_early_errors
exits 0 test "$(head -n 1 runs/sales/new/predictions.csv)" = "made_at,time,step,shop,web"
finish
