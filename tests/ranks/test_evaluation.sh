#!/usr/bin/env bash
# Evaluation and prediction on several ranks: the same metrics and files as in one process. Runs of three ranks are evaluated in training;
# then one process and two ranks evaluate their checkpoints, and predict.
#   test_evaluation.sh CLEAT SOURCE_DIR
# ctest: device cost=37
set -euo pipefail
cleat=$1 source=$2
# shellcheck source=tests/cli/checks.sh
source "$source/tests/cli/checks.sh"
# shellcheck source=tests/ranks/mpi.sh
source "$source/tests/ranks/mpi.sh"
[[ -e $(dirname "$cleat")/libcleat-mpi.so ]] || { echo "skipped, cleat was built without MPI" && exit 77; }
require_device
require_python
device=(--device "${CLEAT_TEST_DEVICE:-auto}")
small=("${device[@]}" --quiet --set run.self_check=never --set run.monitor=none --set train.epochs=1 --set train.warmup_steps=0
    --set train.effective_batch_size=6)
cd "$scratch"

# figures FOUND WANTED EXACT...: compares the metrics of two JSON lines: those named EXACT, which are counts, have the same digits;
# others are reordered sums and differ by at most 1e-6. Tables of classes are the same, if both have them.
figures() {
    checks=$((checks + 1))
    python3 - "$@" >figures.log 2>&1 <<'END' || complain "$(cat figures.log)"
import json, sys
found, wanted = (json.loads(open(name).read()) for name in sys.argv[1:3])
exact = sys.argv[3:]
for row in found, wanted:
    for key in "kind", "epoch", "step":
        row.pop(key, None)
tables = [(row.pop("confusion", None), row.pop("classes", None)) for row in (found, wanted)]
assert tables[0] == tables[1] or (None, None) in tables, tables
assert found.keys() == wanted.keys() and "loss" in found and all(key in found for key in exact), (found, wanted)
for key, value in wanted.items():
    limit = 0 if key in exact else 1e-6 * max(abs(value), 1e-3)
    assert abs(found[key] - value) <= limit, f"{key}: {found[key]} instead of {value}"
END
}

# evaluated FOLDER EXACT...: compares the evaluation in training on three ranks, in one process, and on two equal and unequal ranks.
evaluated() {
    local run=$1
    shift
    grep '"kind":"eval"' "$run/metrics.jsonl" | tail -n 1 >trained.json
    exits 0 "$cleat" eval --checkpoint "$run" "${device[@]}" --examples one_examples.json --json
    cp out one.json
    figures trained.json one.json "$@"
    exits 0 mpi 2 "$cleat" eval --checkpoint "$run" "${device[@]}" --examples two_examples.json --json
    says err "shares of the samples"
    cp out two.json
    exits 0 test "$(grep -c '"loss"' two.json)" = 1
    figures two.json one.json "$@"
    exits 0 mpi 2 "$cleat" eval --checkpoint "$run" "${device[@]}" --set distribute.shares=1,4 --json
    says err "shares of the samples: 1 : 4 (distribute.shares)"
    cp out other.json
    figures other.json one.json "$@"
    exits 0 "$cleat" eval --checkpoint "$run" --devices '2*cpu' --json # the same, launched by the program itself
    cp out launched.json
    figures launched.json one.json "$@"
    exits 0 cmp one_examples.json two_examples.json
    exits 0 test "$(grep -c '"choice":"worst"' one_examples.json)" -ge 4
    exits 0 cmp one_examples.json "$run/examples.json"
}

# predicted STATUS RUN DATA FILES: predicts with one process and with two ranks; FILES: number of files.
predicted() {
    rm -rf found_by_one found_by_two
    exits "$1" "$cleat" predict --checkpoint "$2" "${device[@]}" --data "$3" --out found_by_one
    sed 's/found_by_one/found_by_two/' out >one.out
    grep '^cleat:' err | sed 's/found_by_one/found_by_two/' >one.err || true
    exits "$1" mpi 2 "$cleat" predict --checkpoint "$2" "${device[@]}" --data "$3" --out found_by_two
    exits_same one.out <(grep -v '^-\|^Primary\|^a non-zero' out || true)
    exits_same one.err <(grep '^cleat:' err || true)
    exits 0 diff -r found_by_one found_by_two
    exits 0 test "$(find found_by_two -type f | wc -l)" = "$4"
}

# exits_same FILE FILE: checks that both have the same text.
exits_same() {
    checks=$((checks + 1))
    diff "$1" "$2" >differences || complain "$(cat differences)"
}

test_rna() {
    exits 0 "$cleat" data make rna --out rna --count 40
    local line=("$cleat" train "$source/profiles/rna_small.ini" "${small[@]}" --set model.layers=1 --set model.d_model=32 --set model.heads=2
        --set model.d_ff=64 --set data.path=rna --set data.max_length=96)
    exits 0 "${line[@]}" --out rna_alone
    exits 0 mpi 3 "${line[@]}" --set distribute.shares=3,2,1 --out rna_run
    exits 0 test "$(grep -c '"eval"' rna_run/metrics.jsonl)" = 1
    grep '"kind":"eval"' rna_alone/metrics.jsonl >alone.json
    grep '"kind":"eval"' rna_run/metrics.jsonl >trained.json
    figures trained.json alone.json
    evaluated rna_run
    for ((i = 1; i <= 7; ++i)); do printf '>chain%d\n%s\n' "$i" "$(printf 'GCAU%.0s' $(seq $((3 * i))))"; done >seven.fasta
    predicted 0 rna_run seven.fasta 8
    # fewer samples than ranks
    head -n 2 seven.fasta >one.fasta
    predicted 0 rna_run one.fasta 2
    # rank 1 predicts a truncated chain
    exits 1 mpi 2 "$cleat" predict --checkpoint rna_run "${device[@]}" --set data.max_length=25 --data seven.fasta --out cut
    says err "longer than data.max_length = 25"
}

test_text() {
    {
        echo text,label
        for ((i = 0; i < 90; ++i)); do
            printf 'nice day %d,%s\nsome bad day %d of rain and more rain,%s\n' "$i" "$((i % 7 ? 1 : 0))" "$i" "$((i % 5 ? 0 : 2))"
        done
    } >texts.csv
    exits 0 mpi 3 "$cleat" train "$source/profiles/tweets_sentiment.ini" "${small[@]}" --set data.path=texts.csv --set data.text_column=text \
        --set data.label_column=label --set data.val_fraction=0.3 --set model.layers=1 --set model.d_model=32 --set model.heads=2 \
        --set model.d_ff=64 --set distribute.shares=3,2,1 --out text_run
    evaluated text_run accuracy macro_f1 macro_recall
    head -n 60 texts.csv | cut -d, -f1 >new.csv # in the opposite order, cut may write to a closed pipe, which ends the test
    predicted 0 text_run new.csv 1
    exits 1 mpi 2 "$cleat" predict --checkpoint text_run "${device[@]}" --data -
    says err "write it to a file first"
    # a rank that reads other data
    head -n 50 texts.csv >fewer.csv
    cat >other.sh <<'END'
#!/bin/bash
if [[ $OMPI_COMM_WORLD_RANK == 1 ]]; then exec "$@" --data fewer.csv; else exec "$@" --data texts.csv; fi
END
    chmod +x other.sh
    exits 1 mpi 2 ./other.sh "$cleat" eval --checkpoint text_run "${device[@]}" --split all
    says err "the samples of the data: not the same as in rank 0"
    # a rank without its data
    rm fewer.csv
    exits 1 mpi 2 ./other.sh "$cleat" eval --checkpoint text_run "${device[@]}" --split all
    says err "rank 1"
    says err "fewer.csv"
}

# Images with masks: families that write a file per sample.
test_masks() {
    python3 - <<'END'
import os, random, struct, zlib
random.seed(2)
def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
def write(path, kind, channels, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    rows = b"".join(b"\0" + bytes(value(x, y, c) for x in range(32) for c in range(channels)) for y in range(32))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 32, 32, 8, kind, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
for i in range(20):
    left = random.randrange(4, 28)
    write(f"scenes/images/{i}.png", 2, 3, lambda x, y, c: random.randrange(60) + (180 if x > left and c == 0 else 0))
    write(f"scenes/masks/{i}.png", 0, 1, lambda x, y, c: int(x > left))
END
    : >empty.ini
    exits 0 mpi 3 "$cleat" train empty.ini "${small[@]}" --set model.type=mask_segformer --set model.stem_stride=1 \
        --set "model.stage_widths=8 16 16 16" --set "model.stage_heads=1 2 2 2" --set "model.stage_depths=1 1 1 1" --set model.decoder_width=16 --set data.path=scenes \
        --set data.image_size=32 --set data.classes=2 --set data.val_fraction=0.4 --set distribute.shares=3,2,1 --out mask_run
    evaluated mask_run iou pixel_accuracy mean_accuracy
    predicted 0 mask_run scenes/images 40
    # rank 1's file is truncated, which only its reader detects; rank 0 also reports it
    head -c 300 scenes/images/19.png >scenes/images/zz.png
    predicted 1 mask_run scenes/images 40
    exits 0 grep -F "1 of 21 files cannot be read and have no prediction: zz" one.err
}

# With these parameters every output overflows: the outputs of all ranks are counted, and the first is named.
test_not_finite() {
    awk 'BEGIN { print "time,load"; for (i = 0; i < 300; ++i) printf "%d,%.6f\n", 1500000000 + i * 3600, sin(i / 3) + i / 100 }' >series.csv
    printf '[model]\ntype = series_dense\nlayers = 5\nhidden = 8\n[data]\npath = series.csv\nlookback = 8\nhorizon = 4\n' >series.ini
    exits 0 mpi 2 "$cleat" train series.ini "${small[@]}" --set train.effective_batch_size=400 --set train.learning_rate=10 \
        --set train.precision=f16 --set distribute.shares=1,1 --out wild
    says err "outputs are not finite"
    exits 5 "$cleat" eval --checkpoint wild/last "${device[@]}" --json
    grep '^cleat:' err >one.err
    exits 5 mpi 2 "$cleat" eval --checkpoint wild/last "${device[@]}" --json
    exits_same one.err <(grep '^cleat:' err)
}

test_rna
test_text
test_masks
test_not_finite
finish
