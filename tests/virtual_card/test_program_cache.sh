#!/usr/bin/env bash
# The second run on a card compiles nothing, because every program has the same source and options as in the
# first run; the caches of this library and of a driver are keyed by both. Also tests evaluation and
# prediction on the virtual card.
#   test_program_cache.sh CLEAT
# ctest: quick
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/../cli/checks.sh"

export CLEAT_CACHE_DIR=$scratch/cache # empty

cat >"$scratch/tiny.ini" <<INI
[model]
type = rna_transformer
d_model = 16
heads = 2
layers = 1
d_ff = 16
[data]
path = $scratch/data
buckets = 32
max_length = 32
limit = 6
[train]
epochs = 1
batch_size = 2
effective_batch_size = 2
[run]
monitor = none
self_check = never
INI

# start_of RUN NAME: a number in the first metrics record of a run.
start_of() {
    head -n 1 "$scratch/$1/metrics.jsonl" | grep -oE "\"$2\": *[0-9]+" | grep -oE '[0-9]+$'
}

# is VALUE WANTED WHAT: compares two values.
is() {
    checks=$((checks + 1))
    [[ $1 == "$2" ]] || complain "$3: '$1', not '$2'"
}

exits 0 "$cleat" data make rna --out "$scratch/data" --count 16
exits 0 "$cleat" train "$scratch/tiny.ini" --out "$scratch/first"
is "$(start_of first loaded)" 0 "programs from an empty cache"
exits 0 "$cleat" train "$scratch/tiny.ini" --out "$scratch/second"
is "$(start_of second built)" 0 "programs that the second run compiled"
checks=$((checks + 1))
(($(start_of second loaded) > 0)) || complain "the second run loaded no program"
is "$(grep -v '"start"' "$scratch/second/metrics.jsonl" | cksum)" "$(grep -v '"start"' "$scratch/first/metrics.jsonl" | cksum)" "the metrics"
exits 0 "$cleat" eval "$scratch/tiny.ini" --checkpoint "$scratch/first" --split val
exits 0 "$cleat" predict "$scratch/tiny.ini" --checkpoint "$scratch/first" --data "$scratch/data/sequences.csv" --out "$scratch/predictions"
finish
