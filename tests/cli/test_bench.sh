#!/usr/bin/env bash
# `cleat bench`: the list, table and JSON output, comparison with a command, devices, profiles, and invalid
# command lines. Needs a device.
#   test_bench.sh CLEAT SOURCE_DIR
# ctest: device quick cost=12
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

device=${CLEAT_TEST_DEVICE:-auto}
profile=$2/profiles/rna_small.ini
short=(--device "$device" --steps 1)
tiny=(--set "data.path=$scratch/nothing" --set data.max_length=24 --set model.d_model=16 --set model.heads=2 --set model.layers=1
    --set model.d_ff=16 --set train.effective_batch_size=4)

# lines COUNT: checks the number of lines the last command printed on stdout, without warnings, which depend on the
# current speed of the device.
lines() {
    local count
    checks=$((checks + 1))
    count=$(grep -vc '^  warning: ' "$scratch/out")
    ((count == $1)) || complain "$count lines instead of $1"
}

test_lines() {
    exits 0 "$cleat" bench --help
    says out "usage: cleat bench"
    exits 0 "$cleat" bench --list
    says out attention_L1200_d32
    says out W1_B2L512
    exits 0 "$cleat" bench --list --json
    says out '{"workload": "sgemm_1024", "kind": "micro", "peer": "sgemm1024", "what": '
    exits 1 "$cleat" bench sgemm_102
    says err "did you mean 'sgemm_1024'?"
    exits 1 "$cleat" bench 'no_such_*'
    says err "no_such_*"
    exits 1 "$cleat" bench "$scratch/missing.ini"
    says err missing.ini
    exits 1 "$cleat" bench "$profile" --set data.no_such_key=1
    says err no_such_key
    exits 2 "$cleat" bench W4 --set data.max_length=24
    exits 2 "$cleat" bench W4 --seconds 0
    exits 2 "$cleat" bench W4 --steps 1.5
    exits 2 "$cleat" bench W4 --compare true --rounds 0
    exits 2 "$cleat" bench W4 --compare " "
    exits 2 "$cleat" bench W4 --compare true --devices 0,0
    exits 2 "$cleat" bench W4 --device 0 --devices 0,0
    exits 4 "$cleat" bench W4 --device no_such_device
}

test_results() {
    exits 0 "$cleat" bench 'sgemm_256*' "${short[@]}"
    says out "of peak"
    says out sgemm_256_dw
    lines 6
    exits 0 "$cleat" bench W4 "${short[@]}" --json
    for member in ms_per_step ms_min steps gflops gbytes_per_s share_of_peak predicted_ms bound peak_gflops device_mb peak_rss_mb peak_matrix_gflops samples_per_s params loss warnings; do
        json "$member"
    done
    lines 1
    exits 0 "$cleat" bench sgemm_256 sgemm_512 "${short[@]}" --json
    lines 2
}

test_comparisons() {
    # shellcheck disable=SC2016 # the command's shell expands it
    local stub='echo warming up; echo "{\"ms\": 12, \"workload\": \"$WORKLOAD\", \"peak_rss_mb\": 100}"'
    ! by_wine || stub='echo warming up& echo {"ms": 12, "workload": "%WORKLOAD%", "peak_rss_mb": 100}'
    exits 0 "$cleat" bench sgemm_256 "${short[@]}" --compare "$stub" --rounds 2
    says out "2 rounds on"
    says out "12 (12 - 12)"
    exits 0 "$cleat" bench sgemm_256 "${short[@]}" --compare "$stub" --rounds 2 --json
    json ratio median
    says out '"command_ms": {"median": 12, "min": 12, "max": 12}'
    says out '"command_wall_time": false'
    exits 0 "$cleat" bench sgemm_256 "${short[@]}" --compare "exit 0" --rounds 1
    says out "the command printed no time"
    exits 1 "$cleat" bench sgemm_256 "${short[@]}" --compare "exit 7"
    says err "exited with code 7"
    exits 1 "$cleat" bench sgemm_256 "${short[@]}" --compare "echo {}"
    says err "not a JSON object with a number"
}

test_devices() {
    exits 0 "$cleat" bench sgemm_256 --devices "$device,$device" --steps 1
    says out "speed"
    says out "1.00x"
    exits 0 "$cleat" bench "$profile" "${tiny[@]}" --devices "$device,$device" --steps 1 --json
    lines 2
    says out '"samples": 4,'
    says out '"length": 24, "data_known": false'
    says out '"speed": 1}'
    exits 0 "$cleat" bench "$profile" "${tiny[@]}" "${short[@]}"
    says out "$scratch/nothing does not exist: benchmarking the longest length, 24"
    exits 4 "$cleat" bench sgemm_256 --devices "$device,no_such_device" --steps 1
    says err no_such_device
}

require_device
test_lines
test_results
test_comparisons
test_devices
finish
