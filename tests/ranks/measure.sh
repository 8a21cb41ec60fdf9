#!/usr/bin/env bash
# Measurements of data-parallel training on this machine, for people: nothing fails. The model is W2 of `cleat bench` (2 M parameters); the
# ranks have a core each. Needs Open MPI, two idle cores and 25 s per measurement.
#   measure.sh CLEAT SOURCE_DIR LINK exposed|scaling|slow|crowded...
#   exposed   the exposed part of the exchange, over a link of 1 GB/s (LINK: libranks_link.so; libranks_slow.so is beside it)
#   scaling   one rank with 32 samples against two with 64: weak scaling
#   slow      rank 1's device takes three times as long (slow/slow.c): shares, and the step against the ideal
#   crowded   the same with two other processes on rank 1's core, which its host threads also wait for
set -euo pipefail
cleat=$1 source=$2 link=$3
shift 3
# shellcheck source=tests/ranks/mpi.sh
source "$source/tests/ranks/mpi.sh"
scratch=$(mktemp -d)
load=()
clean() {
    if ((${#load[@]})); then kill "${load[@]}"; fi
    rm -rf "$scratch"
}
trap clean EXIT

python3 - "$scratch/texts.csv" <<'END'
import random, sys
random.seed(1)
words = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(3, 8))) for _ in range(8000)]
with open(sys.argv[1], "w") as file:
    print("text,label", file=file)
    for i in range(8000):
        print(" ".join(random.choices(words, k=130)) + "," + "abc"[i % 3], file=file)
END

# line RUN BATCH STEPS [WORDS...]: sets the command line of a training
line() {
    local name=$1 batch=$2 steps=$3
    shift 3
    printf '%s\n' train "$source/profiles/text_classify.ini" --out "$scratch/$name" "$@"
    for word in data.path="$scratch/texts.csv" data.max_length=128 data.val_fraction=0.01  data.limit=$((batch * steps)) model.d_model=128 model.heads=4 \
        model.layers=4 model.d_ff=512 model.dropout=0 model.pooling=mean train.effective_batch_size="$batch" train.schedule=constant train.epochs=1 \
        run.self_check=never run.monitor=0.1s; do
        printf '%s\n' --set "$word"
    done
}

# train RUN COMMAND...: trains, with the output in RUN.log.
train() {
    local name=$1
    shift
    "$@" >"$scratch/$name.log" 2>&1 || { tail -n 20 "$scratch/$name.log"; exit 1; }
}

# seconds RUN FIRST: seconds per step, from step FIRST
seconds() {
    python3 - "$scratch/$1/system.jsonl" "$2" <<'END'
import json, sys
found = [r for r in map(json.loads, open(sys.argv[1])) if r["kind"] == "sample" and r["step"] >= int(sys.argv[2])]
last = next(r for r in found if r["step"] == found[-1]["step"])
first = next(r for r in found if r["step"] > found[0]["step"])
print(f'{(last["time"] - first["time"]) / (last["step"] - first["step"]):.5f}')
END
}

measure_exposed() {
    local words
    mapfile -t words < <(line exposed 32 60 --set distribute.shares=1,1)
    train exposed mpi 2 env CLEAT_RANKS_LIBRARY="$link" CLEAT_TEST_TRANSPORT="$(dirname "$cleat")/libcleat-mpi.so" CLEAT_TEST_LINK=1e9 "$cleat" "${words[@]}"
    grep -a "steps of 2 ranks" "$scratch/exposed.log"
    sed -n 's/.* \([0-9]*\) steps of 2 ranks.*exchange of gradients \([0-9.]*\) s, \([0-9.]*\) s of it.*/\1 \2 \3/p' "$scratch/exposed.log" |
        awk '{ printf "exposed: %.2f of %.2f s of exchange over 1 GB/s: %.0f %% (at most 30 expected); %.1f ms per step\n", $3, $2, 100 * $3 / $2, 1e3 * $3 / $1 }'
}

# one_rank: sets $one, the seconds of a step of 32 samples on one core, from CLEAT_MEASURED_ONE if set.
one_rank() {
    local words
    one=${CLEAT_MEASURED_ONE:-}
    [[ ! $one ]] || return 0
    mapfile -t words < <(line one 32 24)
    train one taskset -c 0 env POCL_MAX_PTHREAD_COUNT=1 POCL_CPU_MAX_CU_COUNT=1 "$cleat" "${words[@]}"
    one=$(seconds one 8)
}

measure_scaling() {
    local words two
    one_rank
    mapfile -t words < <(line two 64 44 --set distribute.shares=1,1)
    train two mpi 2 "$cleat" "${words[@]}"
    two=$(seconds two 21)
    awk "BEGIN { printf \"weak scaling: %.1f ms per step of one rank, %.1f of two: %.3f (at least 0.9 expected)\n\", 1e3 * $one, 1e3 * $two, $one / $two }"
}

# against_ideal NAME COMMAND...: trains with measured shares; steps count after the second measurement of the shares.
against_ideal() {
    local name=$1 words two
    shift
    mapfile -t words < <(line "$name" 32 65)
    train "$name" mpi 2 "$@" "$cleat" "${words[@]}"
    two=$(seconds "$name" 46)
    grep -a -o 'shares of a global batch: .*' "$scratch/$name.log" | tail -n 1
    awk "BEGIN { printf \"$name: %.1f ms per step, ideal %.1f: %.3f (at most 1.1 expected)\n\", 1e3 * $two, 0.75e3 * $one, $two / (0.75 * $one) }"
}

measure_slow() {
    one_rank
    cat >"$scratch/slow.sh" <<'END'
#!/bin/bash
if [[ $OMPI_COMM_WORLD_RANK == 1 ]]; then export LD_PRELOAD=$CLEAT_TEST_PRELOAD CLEAT_TEST_SLOW=3; fi
exec "$@"
END
    chmod +x "$scratch/slow.sh"
    against_ideal slow env CLEAT_TEST_PRELOAD="$(dirname "$link")/libranks_slow.so" "$scratch/slow.sh"
}

measure_crowded() {
    one_rank
    while ((${#load[@]} < 2)); do
        taskset -c 1 bash -c 'while :; do :; done' &
        load+=($!)
    done
    against_ideal crowded
}

for figure in "$@"; do "measure_$figure"; done
