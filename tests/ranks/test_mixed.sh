#!/usr/bin/env bash
# Two OpenCL implementations train one model together: rank 0 on PoCL, rank 1 on Intel's runtime. The replicas have the same bits after every
# step, and the parameters equal those of one process. Skipped without Intel's runtime; CLEAT_TEST_OPENCL=intel downloads it to FOLDER.
#   test_mixed.sh CLEAT COMPARE_PARAMETERS SOURCE_DIR FOLDER
# ctest: device slow
set -euo pipefail
cleat=$1 compare=$2 source=$3 folder=$4
# shellcheck source=tests/ranks/mpi.sh
source "$(dirname "$0")/mpi.sh"
[[ -e $(dirname "$cleat")/libcleat-mpi.so ]] || { echo "skipped, cleat was built without MPI" && exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for name in pocl intel; do
    status=0
    "$source/tests/opencl.sh" "$name" "$(dirname "$cleat")" "$folder" >"$scratch/$name" 2>"$scratch/log" || status=$?
    if ((status == 77)); then echo "skipped: $(cat "$scratch/log")" && exit 77; fi
    ((status == 0)) || { cat "$scratch/log" && exit 1; }
done
cd "$scratch"
cat >own.sh <<'END'
#!/bin/bash
mapfile -t variables <"$([[ ${OMPI_COMM_WORLD_RANK:-0} == 1 ]] && echo intel || echo pocl)"
exec env "${variables[@]}" "$@"
END
chmod +x own.sh

fail() {
    echo "FAILED: $*"
    exit 1
}

last() { echo "$1/$(cat "$1/last")"; }

awk 'BEGIN { print "text,label"; for (i = 0; i < 90; ++i) { line = ""; for (w = 0; w < 24; ++w) line = line " w" (w % 3 ? int(i / 2) * 40 + w : w); print line "," i % 2 } }' >texts.csv
words=(train "$source/profiles/text_classify.ini")
for word in data.path=texts.csv data.max_length=24 data.val_fraction=0 model.d_model=128 model.heads=2 model.layers=1 model.d_ff=64 train.epochs=2 \
    train.effective_batch_size=16 run.self_check=never run.monitor=none distribute.check_every_steps=1; do
    words+=(--set "$word")
done
mpi 2 ./own.sh "$cleat" "${words[@]}" --out mixed --set distribute.shares=1,1 >mixed.log 2>&1 || { cat mixed.log && fail "the training"; }
grep -q 'steps of 2 ranks' mixed.log || { cat mixed.log && fail "the run did not have two ranks"; }
if grep 'round updates differently' mixed.log; then fail "the replicas do not have the same bits"; fi
./own.sh "$cleat" "${words[@]}" --out one >one.log 2>&1 || { cat one.log && fail "one process"; }
difference=$(python3 "$compare" "$(last one)" "$(last mixed)" norm) || fail "$difference"
awk -v d="$difference" 'BEGIN { exit !(d <= 1e-5) }' || fail "the parameters differ by $difference from those of one process (at most 1e-5)"
echo "the parameters differ by $difference from those of one process"
