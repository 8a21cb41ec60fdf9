#!/usr/bin/env bash
# cleat doctor: exit codes, text and JSON; a missing device is reported before data are read.
#   test_doctor.sh CLEAT SOURCE
# ctest: device quick
set -euo pipefail
cleat=$1 source=$2
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

"$cleat" devices >/dev/null 2>&1 || exit 77 # no device: tests/doctor covers such machines

# On a busy machine, drivers get more than the default five seconds.
doctor() {
    "$cleat" doctor --seconds 120 --out "$scratch/runs" "$@"
}

test_usage() {
    exits 0 "$cleat" doctor --help
    says out "usage: cleat doctor"
    exits 2 "$cleat" doctor surplus
    exits 2 "$cleat" doctor --seconds 0
    exits 1 "$cleat" doctor --profile "$scratch/missing.ini"
    says err missing.ini
}

# The machine's other drivers may be faulty, so only the requested device is checked.
test_usable_device() {
    exits 0 doctor --device 0
    says out "cleat can train on this machine"
    says out "device-usable"
    exits 0 doctor --device 0 --json
    json usable
    json device name
    json sections 0 checks 0 code
    exits 4 doctor --device "a card that does not exist"
    says out "no device has this name"
    says out "cleat cannot train on this machine"
}

test_no_driver() {
    exits 4 env OCL_ICD_VENDORS=/nonexistent "$cleat" doctor
    says out "OCL_ICD_VENDORS=/nonexistent does not exist"
    says out "> unset OCL_ICD_VENDORS"
    empty err
    exits 4 env OCL_ICD_VENDORS=/nonexistent "$cleat" doctor --json
    json sections 0 result
    says out icd-folder-missing
}

test_warnings() {
    exits 0 env CLEAT_CACHE_DIR=/dev/null/cache "$cleat" doctor --device 0 --seconds 120
    says out cache-unwritable
    exits 1 env CLEAT_CACHE_DIR=/dev/null/cache "$cleat" doctor --device 0 --seconds 120 --strict
}

test_profile() {
    exits 0 "$cleat" data make rna --out "$scratch/rna" --count 12
    exits 0 doctor --device 0 --profile "$source/profiles/rna_small.ini" --set "data.path=$scratch/rna"
    says out profile-fits
    says out checkpoint-space
    says out self-check
    exits 0 doctor --device 0 --profile "$source/profiles/rna_small.ini" --set "data.path=$scratch/missing"
    says out data-missing
    exits 1 doctor --device 0 --profile "$source/profiles/rna_small.ini" --set "data.path=$source"
    says out data-invalid
    exits 3 env CLEAT_DEVICE_MEMORY_LIMIT=1000000 "$cleat" doctor --device 0 --seconds 120 \
        --profile "$source/profiles/rna_small.ini"
    says out profile-does-not-fit
}

# Opening a named pipe without a writer blocks, so a program that reads data first would hang.
refuses_device() {
    exits 4 timeout 60 "$cleat" train "$source/profiles/$1" --set "data.path=$scratch/pipe" --device "$2" \
        --out "$scratch/run"
    # shellcheck disable=SC2016 # the quotes of the message
    says err '`cleat doctor` says why'
    checks=$((checks + 1))
    [[ ! -e $scratch/run ]] || complain "the run folder was created"
}

test_device_comes_first() {
    local profile
    mkfifo "$scratch/pipe"
    for profile in rna_small.ini series_lstm.ini tweets_sentiment.ini; do
        refuses_device "$profile" "a card that does not exist"
        says err "no device has this name"
        "$cleat" devices --json | grep -q '"kind": "GPU"' && continue
        refuses_device "$profile" gpu
        says err "no device of this kind"
    done
    exits 4 env OCL_ICD_VENDORS=/nonexistent timeout 60 "$cleat" train "$source/profiles/rna_small.ini" \
        --set "data.path=$scratch/pipe" --out "$scratch/run"
    says err "no OpenCL device found"
    # shellcheck disable=SC2016 # the quotes of the message
    says err '`cleat doctor` says why'
}

test_usage
test_usable_device
test_no_driver
test_warnings
test_profile
test_device_comes_first
finish
