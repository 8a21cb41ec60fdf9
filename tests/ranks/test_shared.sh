#!/usr/bin/env bash
# The cases of tests/ranks/worker without MPI: processes share a file (link/shared.c), so sanitizers check all their code. Then two such processes
# train like one process, with gradients in eight pieces, and a network with running statistics; omitted if CLEAT is not built or there is no
# device.
#   test_shared.sh WORKER SHARED CLEAT SOURCE_DIR
# ctest: quick cost=20
set -euo pipefail
worker=$1 cleat=$3 source=$4
export CLEAT_RANKS_LIBRARY=$2
export TSAN_OPTIONS="suppressions=$source/tests/tsan.supp ${TSAN_OPTIONS:-}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

declare -A processes=()

# start NAME RANKS COMMAND...: starts in the background; sets ${processes[NAME.RANK]}.
start() {
    local rank name=$1 ranks=$2
    shift 2
    mkdir "$scratch/ranks_$name"
    for ((rank = 0; rank < ranks; ++rank)); do
        OMPI_COMM_WORLD_SIZE=$ranks CLEAT_TEST_RANK=$rank/$ranks CLEAT_TEST_SHARED=$scratch/ranks_$name/area \
            timeout -s KILL 300 "$@" >"$scratch/ranks_$name/$rank" 2>&1 &
        processes[$name.$rank]=$!
    done
}

# ends NAME STATUS...: checks the exit status of each rank
ends() {
    local name=$1 rank=0 status expected
    shift
    for expected; do
        status=0
        wait "${processes[$name.$rank]}" || status=$?
        if ((status != expected)); then
            cat "$scratch/ranks_$name/$rank"
            echo "FAILED: $name: rank $rank ended with $status instead of $expected" && failed=1
        fi
        rank=$((rank + 1))
    done
}

# Concurrently: most of them mostly wait.
for case in sums rows data agreement work kill mute silence; do start "$case" 3 "$worker" "$case"; done
for case in sums rows data agreement work; do
    ends "$case" 0 0 0
    grep -qx ok "$scratch/ranks_$case/0" || { echo "FAILED: $case: rank 0 does not print ok" && failed=1; }
done
ends kill 0 0 137
while kill -0 "${processes[mute.0]}" 2>/dev/null || kill -0 "${processes[mute.1]}" 2>/dev/null; do sleep 0.2; done
pkill -KILL -P "${processes[mute.2]}" # the stopped process never ends by itself
ends mute 0 0 137
ends silence 0 0 0

fail() {
    echo "FAILED: $*"
    failed=1
}

# difference RUN RUN: prints the difference of all parameters and running statistics, relative to their norm
difference() { python3 "$source/tests/ranks/compare_parameters.py" "$scratch/$1/$(cat "$scratch/$1/last")" "$scratch/$2/$(cat "$scratch/$2/last")" norm; }

# close RUN RUN LIMIT
close() {
    local found
    found=$(difference "$1" "$2") && awk -v d="$found" -v most="$3" 'BEGIN { exit !(d <= most) }' || fail "$1 and $2 differ by $found (at most $3)"
}

first_loss() { sed -n '/"train"/{p;q}' "$scratch/$1/metrics.jsonl" | sed 's/.*"loss":\([^,]*\),.*/\1/'; }

train_texts() {
    awk 'BEGIN { print "text,label"; for (i = 0; i < 96; ++i) { line = ""; for (w = 0; w < 24; ++w) line = line " w" (i * 31 + w * w * 7) % 900; print line "," i % 2 } }' >"$scratch/texts.csv"
    local settings=(--quiet --set data.path="$scratch/texts.csv" --set data.max_length=24 --set model.d_model=256 --set model.heads=4 --set model.layers=3
        --set model.d_ff=1024 --set train.epochs=2 --set train.effective_batch_size=8 --set train.batch_size=2 --set run.self_check=never --set run.monitor=0.1s)
    start training 2 "$cleat" train "$source/profiles/text_classify.ini" --out "$scratch/run" "${settings[@]}"
    ends training 0 0
    grep -q '^ckpt-E002-' "$scratch/run/last" || fail "training has no last checkpoint"
    "$cleat" train "$source/profiles/text_classify.ini" --out "$scratch/alone" "${settings[@]}"
    awk -v a="$(first_loss alone)" -v b="$(first_loss run)" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a > 0 && d <= 1e-6 * a) }' ||
        fail "the first loss: $(first_loss alone) and $(first_loss run)"
    close alone run 1e-6
}

# A network with running statistics, which the ranks average. Each rank normalises its own samples: the metrics are similar, not equal.
train_images() {
    mkdir "$scratch/images"
    python3 - "$scratch/images" <<'END'
import struct, sys
for part, count in (("train", 16), ("t10k", 4)):
    with open(f"{sys.argv[1]}/{part}-images-idx3-ubyte", "wb") as file:
        file.write(struct.pack(">4I", 0x803, count, 8, 8) + bytes((i * i // 7 + i * 5) % 251 for i in range(count * 64)))
    with open(f"{sys.argv[1]}/{part}-labels-idx1-ubyte", "wb") as file:
        file.write(struct.pack(">2I", 0x801, count) + bytes(i % 2 for i in range(count)))
END
    local settings=(--quiet --set data.path="$scratch/images" --set data.image_size=8 --set data.flip=false --set data.shift=0 --set model.width=8 --set train.epochs=2 --set train.learning_rate=1e-6 --set train.min_learning_rate=0
        --set train.effective_batch_size=8 --set train.batch_size=4 --set run.self_check=never --set run.monitor=none)
    start images 2 "$cleat" train "$source/profiles/image_fashion.ini" --out "$scratch/images_run" "${settings[@]}"
    ends images 0 0
    "$cleat" train "$source/profiles/image_fashion.ini" --out "$scratch/images_alone" "${settings[@]}"
    close images_alone images_run 0.3
}

if [[ -x $cleat && $("$cleat" devices --json) != "[]" ]] && command -v python3 >"$scratch/python"; then
    train_texts
    train_images
fi
exit $failed
