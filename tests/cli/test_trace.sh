#!/usr/bin/env bash
# The program's tracer: tables, trace and summary agree, a slow kernel is found, schedules are checked. Needs a device
# and Python 3.
#   test_trace.sh CLEAT SOURCE_DIR
# ctest: device
set -euo pipefail
cleat=$1
source_dir=$2
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"
check_trace=$(dirname "$0")/trace_check.py

profile=$2/profiles/rna_small.ini
tiny=(--device "${CLEAT_TEST_DEVICE:-auto}" --set data.max_length=64 --set model.d_model=32 --set model.heads=2 --set model.layers=1
    --set model.d_ff=64 --set train.effective_batch_size=4 --set run.self_check=never)
synthetic=(--set "data.path=$scratch/nothing")

# Data of several lengths, epochs that end within cycles, two cycles.
test_train() {
    exits 0 "$cleat" data make rna --out "$scratch/data" --count 24
    exits 0 "$cleat" train "$profile" "${tiny[@]}" --set "data.path=$scratch/data" --set train.epochs=4 --set run.evaluate_every_epochs=1 \
        --set train.warmup_steps=0 --trace wait=1,warmup=1,active=4,repeat=2 --out "$scratch/run"
    says err "trace: records steps 3-6, then 9-12"
    exits 0 "$check_trace" "$scratch/run/profile-S000003"
    exits 0 "$check_trace" "$scratch/run/profile-S000009"
    exits 1 test -e "$scratch/run/profile-S000015.json"
}

test_command() {
    exits 0 "$cleat" trace "$profile" "${tiny[@]}" "${synthetic[@]}" --set run.early_stopping_patience=3 --out "$scratch/profile"
    says err "synthetic samples"
    says out "Profile of steps 8-10 on"
    says out "ms profiled"
    says out "saves ms"
    says out "The longest gaps between kernels"
    exits 0 "$check_trace" "$scratch/profile/profile-S000008"
    exits 1 test -e "$scratch/profile/last"
    exits 0 "$cleat" trace "$profile" "${tiny[@]}" "${synthetic[@]}" --schedule wait=0,warmup=1,active=1,repeat=2 --json --out "$scratch/json"
    json profiles 1 kernels 0 kernel
    json profiles 0 memory step_peak
}

# top FOLDER STEM: prints the kernel that the summary lists first.
top() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["kernels"][0]["kernel"])' "$1"
}

# With a useless loop, a kernel that is not the slowest must lead the table.
test_slow_kernel() {
    mkdir "$scratch/kernels"
    awk '{ print } slow && /\{$/ { print "    volatile int wasted = 0; for (int w = 0; w < 300000; ++w) wasted += w;"; slow = 0 }
        /__kernel void layer_norm_forward\(/ { slow = 1 }' "$source_dir/cl/layer_norm.cl" >"$scratch/kernels/layer_norm.cl"
    exits 0 grep -q "volatile int wasted" "$scratch/kernels/layer_norm.cl"
    exits 0 top "$scratch/profile/profile-S000008.json"
    checks=$((checks + 1))
    ! grep -qx layer_norm_forward "$scratch/out" || complain "layer_norm_forward leads already"
    exits 0 env CLEAT_KERNEL_DIR="$scratch/kernels" "$cleat" trace "$profile" "${tiny[@]}" "${synthetic[@]}" --out "$scratch/slow"
    exits 0 top "$scratch/slow/profile-S000008.json"
    says out layer_norm_forward
    exits 0 "$check_trace" "$scratch/slow/profile-S000008"
}

test_refusals() {
    exits 1 "$cleat" trace "$profile" "${tiny[@]}" "${synthetic[@]}" --schedule wait=1,repeat=0 --out "$scratch/none"
    says err "'repeat=0' at character 8 must be a whole number from 1 to 1000"
    exits 1 test -e "$scratch/none"
    exits 1 "$cleat" train "$profile" "${tiny[@]}" "${synthetic[@]}" --trace 5,2,3,1 --out "$scratch/none"
    says err "run.trace: the trace schedule '5,2,3,1': '5' at character 1 is not of the form key=value"
    exits 2 "$cleat" trace
    says err "a profile is expected: a file"
}

# The names of release 0.1.
test_former_names() {
    exits 2 "$cleat" profile
    says err "a profile is expected: a file"
    exits 1 "$cleat" train "$profile" "${tiny[@]}" "${synthetic[@]}" --profile 5,2,3,1 --out "$scratch/none"
    says err "run.trace: the trace schedule '5,2,3,1'"
    exits 1 "$cleat" train "$profile" "${tiny[@]}" "${synthetic[@]}" run.profile=5 --out "$scratch/none"
    says err "run.trace: the trace schedule '5'"
}

# The checker must find planted faults.
test_checker() {
    mkdir "$scratch/bad"
    cp "$scratch/profile/profile-S000008".* "$scratch/bad"
    python3 - "$scratch/bad/profile-S000008.trace.json.gz" <<'PYTHON'
import gzip, json, sys
trace = json.loads(gzip.open(sys.argv[1]).read())
slices = [e for e in trace["traceEvents"] if e["ph"] == "X" and "op" in e.get("args", {})]
slices[3]["dur"] = slices[4]["ts"] - slices[3]["ts"] + 0.5 * slices[4]["dur"]
gzip.open(sys.argv[1], "w").write(json.dumps(trace).encode())
PYTHON
    exits 1 "$check_trace" "$scratch/bad/profile-S000008"
    says out overlaps
}

require_python
require_device
test_train
test_command
test_slow_kernel
test_refusals
test_former_names
test_checker
finish
