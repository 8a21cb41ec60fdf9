#!/usr/bin/env bash
# `--devices 0` is plain `train`: the process trains itself, without MPI, and writes the same bits.
#   test_one.sh CLEAT SOURCE_DIR
# ctest: device
set -euo pipefail
cleat=$1 source=$2
# shellcheck source=tests/cli/checks.sh
source "$source/tests/cli/checks.sh"
require_device
require_python
cd "$scratch"

# A launcher that reports its call, and no plug-in: a request for several ranks fails.
mkdir bin
printf '#!/bin/sh\ntouch "%s/called"\nexit 9\n' "$scratch" | tee bin/mpirun >bin/mpiexec
chmod +x bin/*
export PATH=$scratch/bin:$PATH CLEAT_MPIRUN=$scratch/bin/mpirun CLEAT_RANKS_LIBRARY=/no/such/plugin.so
exits 1 "$cleat" train "$source/profiles/rna_small.ini" --devices '2*0' --set data.path=none
exits 0 test -e called -o "$(grep -c plugin.so err)" -gt 0 # two are several ranks
rm -f called

exits 0 "$cleat" data make rna --out rna --count 40
line=(train "$source/profiles/rna_small.ini" --quiet --set data.path=rna --set train.warmup_steps=2 --set run.monitor=none --set run.self_check=never
    --set model.d_model=32 --set model.heads=2 --set model.layers=1 --set model.d_ff=64)
plain=()
[[ $("$cleat" devices --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)))') == 1 ]] || plain=(--device 0)
exits 0 "$cleat" "${line[@]}" "${plain[@]}" --out plain --set train.epochs=3
exits 0 "$cleat" "${line[@]}" --devices 0 --out listed --set train.epochs=3
figures() { grep -v '"kind":"start"' "$1/metrics.jsonl"; } # without startup seconds
exits 0 cmp <(figures plain) <(figures listed)
exits 0 test "$(figures listed | wc -l)" -gt 3
exits 0 cmp "plain/$(cat plain/last)/model.safetensors" "listed/$(cat listed/last)/model.safetensors"
exits 0 cmp "plain/$(cat plain/last)/optim.safetensors" "listed/$(cat listed/last)/optim.safetensors"

# It starts no more processes and threads than plain `train` (counted if namespaces are allowed).
started() { unshare --pid --fork --mount-proc bash -c '"$@" >/dev/null 2>&1 && cat /proc/sys/kernel/ns_last_pid' started "$cleat" "${line[@]}" --set train.epochs=3 "$@"; }
if unshare --pid --fork --mount-proc true 2>/dev/null; then
    of_plain=$(started --device 0 --out plain_counted) of_listed=$(started --devices 0 --out listed_counted)
    exits 0 test "$of_plain" -gt 1 -a "$of_listed" -le "$of_plain"
else
    echo "not counted: processes and threads (unshare needs root)"
fi

# while it trains with cached kernels: no other process, no MPI library
"$cleat" "${line[@]}" --devices 0 --out long --set train.epochs=2000 --set run.log_every_steps=1 >long.log 2>&1 &
run=$!
while kill -0 "$run" 2>/dev/null && [[ ! -s long/metrics.jsonl ]]; do sleep 0.05; done
exits 0 kill -0 "$run"
exits 1 pgrep -P "$run"
cp "/proc/$run/maps" maps
exits 0 grep -q OpenCL maps # this process has the device
exits 1 grep -E 'libmpi|cleat-mpi' maps
kill -TERM "$run"
wait "$run" || true
exits 1 test -e called
finish
