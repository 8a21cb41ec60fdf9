#!/usr/bin/env bash
# `cleat export`: a run, a checkpoint without its run and data, output, and refusals. The contents of the files are tested by
# onnx.export and onnx.onnxruntime.
#   test_export.sh CLEAT
# ctest: device quick
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

device=${CLEAT_TEST_DEVICE:-auto}
out=$scratch/model.onnx

write_profile() {
    cat >"$scratch/tiny.ini" <<'END'
[model]
type = series_dense
layers = 1
hidden = 64

[data]
path = series.csv
lookback = 8
horizon = 4

[train]
epochs = 1
warmup_steps = 0

[run]
self_check = never
END
    awk 'BEGIN {
        print "time,load,wind"
        for (i = 0; i < 200; ++i) printf "%d,%.6f,%.6f\n", 1500000000 + i * 3600, sin(i / 3) + i / 100, cos(i / 5)
    }' >"$scratch/series.csv"
}

test_refused() {
    exits 2 "$cleat" export
    says err "which run or checkpoint?"
    exits 2 "$cleat" export one two --format onnx --out "$out"
    exits 2 "$cleat" export run
    says err "--format is required"
    exits 2 "$cleat" export run --format pickle --out "$out"
    says err "--format pickle: no such format; the formats are onnx"
    exits 2 "$cleat" export run --format onnx
    says err "--out is required"
    exits 1 "$cleat" export "$scratch/no_such_run" --format onnx --out "$out"
    says err "no such checkpoint or run folder"
}

test_run() {
    (cd "$scratch" && "$cleat" train tiny.ini --device "$device" --out run --quiet)
    rm "$scratch/series.csv" # an export needs no data
    exits 0 "$cleat" export "$scratch/run" --format onnx --out "$out"
    says out "input  x          float32 [batch, 8, 2]"
    says out "output forecast   float32 [batch, 8]"
    exits 0 "$cleat" export "$scratch/run" --format onnx --out "$out" --external-data --json
    json bytes
    json inputs 0 shape
    says out '"length": null'
    says out '"external_data": true'
    exits 0 test -s "$out.data"
    exits 1 "$cleat" export "$scratch/run" --format onnx --out "$scratch/no/such/folder/m.onnx"
    says err "cannot create the file"
}

# A checkpoint alone, and one that does not fit its profile.
test_checkpoint() {
    mv "$scratch"/run/ckpt-* "$scratch/alone"
    rm -r "$scratch/run"
    exits 0 "$cleat" export "$scratch/alone" --format onnx --out "$out" --quiet
    exits 1 "$cleat" export "$scratch/alone" --format onnx --out "$scratch/other.onnx" --set model.hidden=9
    says err "model.hidden"
    exits 1 test -e "$scratch/other.onnx"
}

write_profile
test_refused
require_device
test_run
test_checkpoint
finish
