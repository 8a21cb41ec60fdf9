#!/usr/bin/env bash
# Inputs of predictions: plain lines, standard input, folders and files of images, unreadable images.
#   test_inputs.sh CLEAT SOURCE_DIR
# ctest: device quick cost=13
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

profiles=$2/profiles
device=${CLEAT_TEST_DEVICE:-auto}
small=(--device "$device" --set train.warmup_steps=0 --set train.epochs=1 --set run.self_check=never --set train.effective_batch_size=4)
encoder=(--set model.layers=1 --set model.d_model=16 --set model.heads=2 --set model.d_ff=16 --set data.vocabulary_size=80)

# train PROFILE NAME SETTING...: trains on $scratch/NAME; the run is $scratch/NAME.run.
train() {
    local profile=$1 name=$2
    shift 2
    exits 0 "$cleat" train "$profiles/$profile" "${small[@]}" "$@" --set "data.path=$scratch/$name" --out "$scratch/$name.run"
}

# predict STATUS NAME ARGUMENT...: predicts with the run's checkpoint; $from: file for standard input.
predict() {
    local wanted=$1 name=$2 status=0
    shift 2
    checks=$((checks + 1))
    "$cleat" predict --checkpoint "$scratch/$name.run" --device "$device" "$@" <"${from:-/dev/null}" >"$scratch/out" 2>"$scratch/err" || status=$?
    ((status == wanted)) || complain "exit status $status instead of $wanted: predict $name $*"
}

# column N FILE: prints a column of a CSV file in one line.
column() {
    cut -d , -f "$1" "$2" | paste -s -d ' '
}

test_texts() {
    local i
    mkdir "$scratch/texts"
    for ((i = 0; i < 12; ++i)); do printf 'good day %d,up\nbad day %d,down\n' $i $i; done | sed '1i text,label' >"$scratch/texts/train.csv"
    train tweets_sentiment.ini texts "${encoder[@]}" --set data.id_column= --set data.label_column=label
    printf 'a good day, "really"\n\nbad\r\n' >"$scratch/lines.txt"
    predict 0 texts --data "$scratch/lines.txt" --out "$scratch/lines"
    says err "read as plain lines, a text each"
    says err "1 empty texts are skipped"
    says out "2 predictions written to $scratch/lines"
    exits 0 test "$(column 1 "$scratch/lines/predictions.csv")" = "id 1 3"
    from=$scratch/lines.txt predict 0 texts --data -
    cp "$scratch/out" "$scratch/printed.csv"
    exits 0 cmp "$scratch/printed.csv" "$scratch/lines/predictions.csv"
    printf 'good\nb\xff\n' >"$scratch/bytes"
    from=$scratch/bytes predict 1 texts --data -
    says err "cleat: the standard input:2: byte 0xff"
    printf 'text\ngood\n' >"$scratch/table.csv"
    predict 0 texts --data "$scratch/table.csv" --out -
    says out "id,label,probability,down,up"
    exits 1 "$cleat" eval --checkpoint "$scratch/texts.run" --device "$device" --data "$scratch/lines.txt"
    says err "lines.txt: unsupported file for text classification; use a table"
}

# Readers of standard output that are slow or end early: the output exceeds a pipe's capacity.
test_readers() {
    local pid i status=0 arguments=(predict --checkpoint "$scratch/texts.run" --device "$device" --data "$scratch/long.csv" --out -)
    seq -f 'good day %g' 4000 | sed '1i text' >"$scratch/long.csv"
    { TMPDIR=$scratch "$cleat" "${arguments[@]}" 2>"$scratch/err" || echo "exit status $?" >>"$scratch/err"; } | head -n 1 >"$scratch/out"
    says out "id,label"
    by_wine || lacks err "exit status" # a closed pipe is an invalid argument there
    mkfifo "$scratch/pipe"
    exec 3<>"$scratch/pipe"
    TMPDIR=$scratch "$cleat" "${arguments[@]}" >"$scratch/pipe" 2>"$scratch/err" 3>&- &
    pid=$!
    for ((i = 0; i < 1200; ++i)); do
        ! compgen -G "$scratch/cleat-predict-*/out/predictions.csv" >/dev/null || break
        sleep 0.05
    done
    kill -TERM "$pid"
    wait "$pid" || status=$?
    exec 3>&-
    exits 0 test "$status" = 143
    exits 0 test -s "$scratch/long.csv"
}

# A sentence that is too long for the model gets tags up to the maximum length, which is an error.
test_tags() {
    local i
    mkdir "$scratch/tags"
    for ((i = 0; i < 12; ++i)); do printf 'in\tO\nOslo\tB-place\n.\tO\n\n'; done >"$scratch/tags/train.conll"
    train tweets_ner.ini tags "${encoder[@]}" --set data.max_length=16
    echo "We met in Oslo, today!" >"$scratch/sentence"
    from=$scratch/sentence predict 0 tags --data -
    exits 0 test "$(cut -f 1 "$scratch/out" | paste -s -d ' ')" = "We met in Oslo , today ! "
    printf 'in Oslo .\n%s\n' "$(printf 'in Oslo . %.0s' 1 2 3 4 5 6)" >"$scratch/sentences.txt"
    predict 1 tags --data "$scratch/sentences.txt" --out "$scratch/tagged"
    says err "a sentence each"
    says err "1 of 2 samples are longer than data.max_length = 16, and their ends are not predicted: 2; a larger"
    exits 0 test "$(grep -c . "$scratch/tagged/predictions.conll")" = 21
}

# images FOLDER NAME...: PNG files of random pixels, 16 x 16.
images() {
    python3 - "$@" <<'END'
import os, random, struct, sys, zlib
def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
for name in sys.argv[2:]:
    path = os.path.join(sys.argv[1], name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    mask = "masks/" in path
    rows = b"".join(b"\0" + bytes(random.choice((0, 255)) if mask else random.randrange(256) for _ in range(16)) for _ in range(16))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 0, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
END
}

# truncate_image FILE BYTES: truncates a file after or within its header.
truncate_image() {
    head -c "$2" "$1" >"$1.part"
    mv "$1.part" "$1"
}

test_images() {
    local names=() i
    for ((i = 0; i < 6; ++i)); do names+=("a/$i.png" "b/$i.png"); done
    images "$scratch/images" "${names[@]}"
    train image_64.ini images --set data.image_size=16 --set model.width=8 --set train.warmup_epochs=0 --set data.val_fraction=0.2
    images "$scratch/unseen" 1.png 2.png 3.png 4.png
    predict 0 images --data "$scratch/unseen" --out "$scratch/classes"
    exits 0 test "$(column 1 "$scratch/classes/predictions.csv")" = "id 1.png 2.png 3.png 4.png"
    predict 0 images --data "$scratch/unseen/3.png" --out -
    exits 0 test "$(column 1 "$scratch/out")" = "id 3.png"
    from=$scratch/unseen/3.png predict 0 images --data -
    exits 0 test "$(column 1 "$scratch/out")" = "id stdin.png"
    truncate_image "$scratch/unseen/2.png" 20
    truncate_image "$scratch/unseen/4.png" 150
    predict 1 images --data "$scratch/unseen" --out "$scratch/classes"
    says err "unseen/2.png"
    says err "2 of 4 files cannot be read and have no prediction: 2.png, 4.png"
    says out "2 predictions written"
    exits 0 test "$(column 1 "$scratch/classes/predictions.csv")" = "id 1.png 3.png"
    predict 1 images --data "$scratch/unseen/2.png" --out "$scratch/classes"
    says err "unseen/2.png"
    predict 1 images --data "$scratch/unseen/4.png" --out "$scratch/classes"
    says err "1 of 1 files cannot be read"
}

test_masks() {
    local names=() i
    for ((i = 0; i < 6; ++i)); do names+=("images/$i.png" "masks/$i.png"); done
    images "$scratch/masks" "${names[@]}"
    train masks.ini masks --set data.image_size=64 --set train.warmup_epochs=0 --set data.val_fraction=0.2
    rm -r "$scratch/unseen"
    images "$scratch/unseen" 1.png 2.png 3.png 4.png
    truncate_image "$scratch/unseen/2.png" 20
    truncate_image "$scratch/unseen/4.png" 150
    predict 1 masks --data "$scratch/unseen" --out "$scratch/found"
    says err "2 of 4 files cannot be read and have no prediction: 2, 4"
    exits 0 test "$(cd "$scratch/found" && echo *.png)" = "1.png 3.png"
    predict 0 masks --data "$scratch/unseen/1.png" --out "$scratch/one"
    exits 0 cmp "$scratch/one/1.png" "$scratch/found/1.png"
    predict 1 masks --data "$scratch/unseen/1.png" --out -
    says err "writes a file for each sample"
}

require_device
require_python
test_texts
test_readers
test_tags
test_images
test_masks
finish
