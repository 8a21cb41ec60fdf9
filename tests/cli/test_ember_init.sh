#!/usr/bin/env bash
# EmberFormer from a run of masks_finetune.ini, and from the published SegFormer from which that run started: loaded parameters,
# new ones, and contradictions to the profile.
#   test_ember_init.sh CLEAT SOURCE_DIR
# ctest: device cost=48
set -euo pipefail
cleat=$1 source_dir=$2
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

common=(--set run.self_check=never --set train.epochs=1 --set train.effective_batch_size=4 --device "${CLEAT_TEST_DEVICE:-auto}")
sizes=(--set data.path="$scratch/maps" --set model.d_model=16 --set model.heads=2 --set model.layers=1 --set model.d_ff=16
    --set data.history=3)
still=(--set train.learning_rate=1e-12 --set train.min_learning_rate=0 --set train.average_decay=none)

# Eight images with masks of three classes, and eight stacks of maps.
make_data() {
    python3 - "$scratch" <<'END'
import os, random, struct, sys, zlib
os.chdir(sys.argv[1])
random.seed(1)
SIDE, MAP = 32, 16
def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
def png(path, rows, kind):
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, kind, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))) + chunk(b"IEND", b""))
def npy(path, shape, values):
    head = ("{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)).encode().ljust(117) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + struct.pack("<%df" % len(values), *values))
for folder in "scenes/images", "scenes/masks", "maps":
    os.makedirs(folder)
for i in range(8):
    png(f"scenes/images/{i}.png", [[random.randrange(256) for _ in range(3 * SIDE)] for _ in range(SIDE)], 2)
    png(f"scenes/masks/{i}.png", [[min(2, (x + y + i) // 22) for x in range(SIDE)] for y in range(SIDE)], 0)
    npy(f"maps/{i}.npy", (3, 2, MAP, MAP), [random.random() for _ in range(3 * 2 * MAP * MAP)])
    npy(f"maps/{i}_mask.npy", (MAP, MAP), [float(x > 8) for _ in range(MAP) for x in range(MAP)])
END
}

# same_values RUN RUN: prints how many parameters of both runs' last checkpoints have the same name, size and values; a
# learning rate of 1e-12 moves those near zero by less than 1e-11.
same_values() {
    python3 - "$@" <<'END'
import glob, json, struct, sys
def read(run):
    data = open(sorted(glob.glob(run + "/ckpt-*/model.safetensors"))[-1], "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {name: [value for value, in struct.iter_unpack("<f", data[8 + size + at["data_offsets"][0]:8 + size + at["data_offsets"][1]])]
            for name, at in header.items() if name.endswith((".weight", ".bias"))}
one, other = read(sys.argv[1]), read(sys.argv[2])
print(sum(len(one[name]) == len(other[name]) and all(abs(a - b) < 1e-11 for a, b in zip(one[name], other[name]))
          for name in one if name in other), "of", len(one))
END
}

# ember NAME OPTION...: trains the large profile with the small network's backbone into the run folder NAME.
ember() {
    local name=$1
    shift
    "$cleat" train "$source_dir/profiles/emberformer.ini" "${common[@]}" "${sizes[@]}" --out "$scratch/$name" "$@"
}

# The spatial part is loaded; the temporal part, the first convolution and the last layer are new.
spatial_part_is_taken() {
    says err "taken     4  st.*.*.att.kv.weight"
    says err "taken     4  dec.*.weight"
    says err "taken     1  fuse.weight"
    says err "new       1  inp.weight: [16, 32]; the file has none"
    says err "new       1  pe.*.weight: [8, 7, 7, 8] here"
    says err "new       1  cls.weight: [1, 12] here, [3, 12"
    says err "new       1  skip.weight: [1, 8]; the file has none"
}

test_masks() {
    exits 0 "$cleat" train "$source_dir/profiles/masks_finetune.ini" "${common[@]}" --init "$source_dir/tests/published/segformer" \
        --set data.path="$scratch/scenes" --set data.classes=3 --set data.image_size=32 --out "$scratch/masks"
    says err "0 of the network initialised"
}

# The first convolution keeps the profile's stride: a finer map requires no other parameters.
test_from_a_run() {
    exits 0 ember from_run --init "$scratch/masks" --set model.backbone=b0 "${still[@]}"
    spatial_part_is_taken
    exits 0 grep -qx "stem_stride = 1" "$scratch/from_run/resolved.ini"
    exits 0 grep -qx "stage_widths = 8, 8, 12, 16" "$scratch/from_run/resolved.ini"
    exits 0 same_values "$scratch/masks" "$scratch/from_run"
    says out "110 of 113" # all but pe.0.weight and the last layer
    exits 0 "$cleat" eval --checkpoint "$scratch/from_run" --split train
    says out f1
    exits 0 "$cleat" predict --checkpoint "$scratch/from_run" --data "$scratch/maps" --out "$scratch/found"
    exits 0 test -s "$scratch/found/3.npy"
}

test_from_a_folder() {
    exits 0 ember from_folder --init "$source_dir/tests/published/segformer" --set model.backbone=b0 "${still[@]}"
    spatial_part_is_taken
    exits 0 grep -qx "stem_stride = 1" "$scratch/from_folder/resolved.ini"
}

# A different backbone is refused with a remedy; three features fit the first convolution.
test_other_shapes() {
    exits 1 ember refused --init "$scratch/masks"
    says err "emberformer.ini:20: backbone = b2 contradicts "
    says err "remove the setting"
    exits 1 test -e "$scratch/refused"
    exits 0 ember colours --init "$scratch/masks" --set model.backbone=b0 --set model.features=3
    says err "taken     4  pe.*.weight"
}

require_device
require_python
make_data
test_masks
test_from_a_run
test_from_a_folder
test_other_shapes
finish
