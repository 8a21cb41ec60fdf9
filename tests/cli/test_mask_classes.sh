#!/usr/bin/env bash
# Class masks, from PNG files to a report: training, evaluation, prediction, examples; wrong masks.
#   tests/cli/test_mask_classes.sh CLEAT
# ctest: device cost=11
set -uo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

# scenes FOLDER COUNT: images 32 x 32 of a red, a green and a blue box on a dark background, and masks of their classes
# 1 to 3; odd ones have a palette. The first row has no label.
scenes() {
    python3 - "$@" <<'END'
import os, random, struct, sys, zlib
SIDE = 32
def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
def write(path, rows, kind, palette=b""):
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, kind, 0, 0, 0)) +
                   (chunk(b"PLTE", palette) if palette else b"") +
                   chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))) + chunk(b"IEND", b""))
folder, count = sys.argv[1], int(sys.argv[2])
random.seed(1)
for part in "images", "masks":
    os.makedirs(os.path.join(folder, part), exist_ok=True)
for i in range(count):
    image = [[random.randrange(60) for _ in range(3 * SIDE)] for _ in range(SIDE)]
    mask = [[0] * SIDE for _ in range(SIDE)]
    for c in range(3):
        top, left = random.randrange(16), random.randrange(16)
        for y in range(top, top + 12):
            for x in range(left, left + 12):
                image[y][3 * x:3 * x + 3] = [random.randrange(180, 240) if k == c else 20 for k in range(3)]
                mask[y][x] = c + 1
    mask[0] = [255] * SIDE
    write(f"{folder}/images/{i}.png", image, 2)
    write(f"{folder}/masks/{i}.png", mask, 3 if i % 2 else 0, bytes((7 * k) % 256 for k in range(768)) if i % 2 else b"")
END
}

# pixels FILE: prints the kind of a PNG file that cleat wrote (3: palette), and its values in order.
pixels() {
    python3 - "$1" <<'END'
import struct, sys, zlib
data, at, parts = open(sys.argv[1], "rb").read(), 8, {}
while at < len(data):
    size, name = struct.unpack(">I4s", data[at:at + 8])
    parts[name] = parts.get(name, b"") + data[at + 8:at + 8 + size]
    at += 12 + size
width, height, bits, kind = struct.unpack(">IIBB", parts[b"IHDR"][:10])
rows, raw, above = [], zlib.decompress(parts[b"IDAT"]), bytes(width)
for y in range(height):
    kind_of_row, row = raw[y * (width + 1)], bytearray(raw[y * (width + 1) + 1:(y + 1) * (width + 1)])
    assert kind_of_row == 0, "indices are not filtered"
    rows.append(row)
print(kind, sorted({value for row in rows for value in row}))
END
}

settings=(--set model.type=mask_segformer --set model.stem_stride=1 --set "model.stage_widths=8 16 16 16"
    --set "model.stage_heads=1 2 2 2" --set "model.stage_depths=1 1 1 1" --set model.decoder_width=16
    --set data.path="$scratch/scenes" --set data.image_size=32 --set data.classes=4 --set data.val_fraction=0.25
    --set loss.class_weights=balanced --set loss.label_smoothing=0.05 --set train.epochs=6 --set run.metric=iou
    --set train.learning_rate=5e-3 --set train.effective_batch_size=4 --set run.self_check=never)

# same_scores FILE: compares the tables of an evaluation of all scenes with counts of the pixels of found/*.png and masks/*.png.
same_scores() {
    python3 - "$scratch" "$1" <<'END'
import glob, json, os, struct, sys, zlib
def read(path):
    data, at, rows = open(path, "rb").read(), 8, b""
    width, = struct.unpack(">I", data[16:20])
    while at < len(data):
        size, name = struct.unpack(">I4s", data[at:at + 8])
        rows += data[at + 8:at + 8 + size] if name == b"IDAT" else b""
        at += 12 + size
    rows = zlib.decompress(rows)
    return b"".join(rows[i + 1:i + 1 + width] for i in range(0, len(rows), width + 1))
scratch, found = sys.argv[1], json.load(open(sys.argv[2]))
counts = [[0] * 4 for _ in range(4)]
for path in glob.glob(f"{scratch}/found/*.png"):
    for truth, said in zip(read(f"{scratch}/scenes/masks/{os.path.basename(path)}"), read(path)):
        if truth < 4:
            counts[truth][said] += 1
assert sum(map(sum, counts)) == 32 * 31 * 32, counts
assert found["confusion"] == {"labels": ["background", "red box", "green", "blue"], "counts": counts}, (found, counts)
for c, row in enumerate(found["classes"]):
    support, said, right = sum(counts[c]), sum(r[c] for r in counts), counts[c][c]
    wanted = {"precision": right / said, "recall": right / support, "f1": 2 * right / (support + said), "support": support, "iou": right / (support + said - right)}
    assert row.keys() == wanted.keys() | {"name"} and all(abs(row[key] - value) < 1e-8 for key, value in wanted.items()), (row, wanted)
END
}

# value NAME: prints a metric of the last command's table.
value() {
    awk -v name="$1" '$1 == name { print $2 }' "$scratch/out"
}

# above NAME LEAST: checks that a metric is above LEAST.
above() {
    checks=$((checks + 1))
    awk -v found="$(value "$1")" -v least="$2" 'BEGIN { exit !(found + 0 > least) }' || complain "$1 is not above $2"
}

test_training() {
    scenes "$scratch/scenes" 32
    printf 'background\nred box\ngreen\nblue\n' >"$scratch/scenes/labels.txt"
    : >"$scratch/empty.ini"
    exits 0 "$cleat" train "$scratch/empty.ini" "${settings[@]}" --out "$scratch/run"
    says err "4 classes"
    exits 0 "$cleat" eval --checkpoint "$scratch/run" --split val
    above iou 0.5
    above pixel_accuracy 0.8
    above mean_accuracy 0.5
    above iou_red_box 0.3
    says out iou_background
    says out "class                    precision    recall        f1   support       iou"
    says out "truth \\ prediction               1         2         3         4"
    says out "2 red box "
    says out iou_blue
    exits 0 "$cleat" predict --checkpoint "$scratch/run" --data "$scratch/scenes/images" --out "$scratch/found"
    exits 0 test "$(cd "$scratch/found" && ls | wc -l)" = 64
    exits 0 "$cleat" eval --checkpoint "$scratch/run" --split all --json
    cp "$scratch/out" "$scratch/all.json"
    exits 0 same_scores "$scratch/all.json"
    exits 0 pixels "$scratch/found/3.png"
    says out "3 [0, 1, 2, 3]"
    exits 0 "$cleat" report "$scratch/run"
    exits 0 grep -q "red box" "$scratch/run/report.html"
    exits 0 grep -q "the most frequent class of the training data" "$scratch/run/examples.json"
    # A prediction can be used as a mask.
    mv "$scratch/scenes/masks" "$scratch/scenes/truth"
    mkdir "$scratch/scenes/masks"
    cp "$scratch"/found/*.png "$scratch/scenes/masks"
    exits 0 "$cleat" eval --checkpoint "$scratch/run" --split val
    exits 0 test "$(value pixel_accuracy)" = 1
    rm -r "$scratch/scenes/masks"
    mv "$scratch/scenes/truth" "$scratch/scenes/masks"
}

# refused TEXT SETTING...: checks that a training is refused with TEXT.
refused() {
    local text=$1
    shift
    exits 1 "$cleat" train "$scratch/empty.ini" "${settings[@]}" "$@" --out "$scratch/refused"
    says err "$text"
}

test_faults() {
    refused "is not a class: with data.classes = 3 they are 0 to 2, and 255 is unlabelled" --set data.classes=3 \
        --set "data.labels=a b c"
    says err "masks/"
    says err "row "
    refused "labels.txt: has 4 names, but data.classes is 5" --set data.classes=5
    refused "data.labels has 2 names" --set "data.labels=a b"
    refused "is for masks of black and white" --set loss.focal_gamma=2
    says err "set loss.focal_gamma=0"
    # settings of an installed profile are undone, not removed
    exits 0 "$cleat" config masks data.path=x data.classes=3
    exits 1 "$cleat" config masks data.path=x data.classes=3 loss.positive_weight=2
    says err "set loss.positive_weight=auto"
    exits 0 "$cleat" config masks data.path=x data.classes=3 loss.positive_weight=2 loss.positive_weight=auto
    exits 1 "$cleat" config image_64 data.path=x model.type=image_vit
    says err "image_64.ini:9: width = 32: does not apply to model.type image_vit: remove it, or add --set model.width=64 ("
    exits 0 "$cleat" config image_64 data.path=x model.type=image_vit model.width=64 model.stem=large
    refused "must be auto or 4 numbers" --set "model.stage_widths=8 16"
    refused "must be a multiple of its 2 heads" --set "model.stage_widths=8 15 16 16"
    exits 1 "$cleat" train "$scratch/empty.ini" --set model.type=mask_segformer --set data.path="$scratch/scenes" \
        --set loss.class_weights=balanced --out "$scratch/refused"
    says err "is for masks with classes"
    exits 1 "$cleat" train "$scratch/empty.ini" --set model.type=mask_segformer --set data.path="$scratch/scenes" \
        --set run.self_check=never --out "$scratch/refused"
    says err "or, with data.classes, have a palette"
}

# The convolutions of a cleat run have cleat's layout, not PyTorch's.
test_init_with_a_run() {
    exits 0 "$cleat" train "$scratch/empty.ini" "${settings[@]}" --set train.epochs=1 --init "$scratch/run" --out "$scratch/second"
    says err "0 skipped, 0 of the network initialised"
    exits 0 "$cleat" eval --checkpoint "$scratch/second" --split val
    above iou 0.5
    exits 0 "$cleat" train "$scratch/empty.ini" "${settings[@]}" --set train.epochs=1 --init "$scratch/run" --out "$scratch/renamed" \
        --set "data.labels=background red_box blue green"
    says err "2 skipped, 2 of the network initialised"
    says err "new       1  cls.weight: its labels are others: label 3 is 'green' there, 'blue' in the data"
    exits 0 "$cleat" train "$scratch/empty.ini" "${settings[@]}" --set train.epochs=1 --init "$scratch/run" --out "$scratch/nameless" \
        --set "data.labels=class_0 class_1 class_2 class_3"
    says err "0 skipped, 0 of the network initialised"
}

# A published network's classes have names: its last layer is loaded if the data have the same names, or no names.
test_names() {
    local bare=("${settings[@]}" --set train.epochs=1)
    exits 0 "$cleat" train "$scratch/empty.ini" "${bare[@]}" --set model.stage_order=descending --out "$scratch/named"
    exits 0 "$cleat" export "$scratch/named" --format hf --out "$scratch/names"
    exits 0 grep -q '"red box"' "$scratch/names/config.json"
    exits 0 "$cleat" train "$scratch/empty.ini" "${bare[@]}" --init "$scratch/names" --out "$scratch/same_names"
    says err "0 of the network initialised"
    exits 0 "$cleat" train "$scratch/empty.ini" "${bare[@]}" --init "$scratch/names" --out "$scratch/other_names" \
        --set "data.labels=background green red_box blue"
    says err "new       1  cls.weight: the file has other labels, or another order"
    mv "$scratch/scenes/labels.txt" "$scratch/labels.txt"
    exits 0 "$cleat" train "$scratch/empty.ini" "${bare[@]}" --init "$scratch/names" --out "$scratch/unnamed"
    says err "0 of the network initialised"
    says err "iou_red_box"
    exits 0 "$cleat" export "$scratch/unnamed" --format hf --out "$scratch/unnamed_hf"
    exits 0 grep -q '"red box"' "$scratch/unnamed_hf/config.json"
    sed 's/: *\t*"red box"/: 7/' "$scratch/names/config.json" >"$scratch/config.json"
    mv "$scratch/config.json" "$scratch/names/config.json"
    exits 0 "$cleat" train "$scratch/empty.ini" "${bare[@]}" --init "$scratch/names" --out "$scratch/numbered"
    says err "iou_class_1"
    mv "$scratch/labels.txt" "$scratch/scenes/labels.txt"
}

# An export records how images are normalised; a refused export leaves no files.
test_export() {
    exits 0 "$cleat" train "$scratch/empty.ini" "${settings[@]}" --set train.epochs=1 --set model.stage_order=descending \
        --out "$scratch/published"
    exits 0 "$cleat" export "$scratch/published" --format hf --out "$scratch/hf"
    exits 0 grep -q image_mean "$scratch/hf/preprocessor_config.json"
    exits 0 grep -q SegformerImageProcessor "$scratch/hf/preprocessor_config.json"
    exits 1 "$cleat" export "$scratch/run" --format hf --out "$scratch/refused"
    exits 1 test -e "$scratch/refused"
}

# The checkpoint has the settings that the weights determined: a run continues without the weights.
test_resume_without_the_weights() {
    local first=("${settings[@]}" --set train.schedule=constant --init "$scratch/moved" --out "$scratch/third")
    mv "$scratch/run" "$scratch/moved"
    exits 0 "$cleat" train "$scratch/empty.ini" "${first[@]}" --set train.epochs=1
    mv "$scratch/moved" "$scratch/run"
    exits 0 "$cleat" train "$scratch/empty.ini" "${first[@]}" --set train.epochs=2 --resume
    exits 0 "$cleat" eval "$scratch/empty.ini" "${first[@]:0:${#first[@]}-4}" --set "model.init=$scratch/moved" \
        --checkpoint "$scratch/third" --split val
    exits 1 "$cleat" train "$scratch/empty.ini" "${settings[@]}" --init "$scratch/moved" --out "$scratch/fourth"
    says err "moved"
}

require_device
require_python
test_training
test_init_with_a_run
test_resume_without_the_weights
test_export
test_names
test_faults
finish
