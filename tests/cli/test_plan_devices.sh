#!/usr/bin/env bash
# `cleat plan --devices`: estimates for several cards and a network (needs no device and no OpenCL platform).
#   test_plan_devices.sh CLEAT SOURCE_DIR
# ctest: quick
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

rna=$2/profiles/rna.ini
small=$2/profiles/rna_small.ini
nowhere=(--set "data.path=$scratch/nowhere")
three=(--devices t4,t4,intel_igpu)

# value PATH... [LENGTH]: prints a member of the JSON object that the last command printed, or the length of an array.
value() {
    # shellcheck disable=SC2016 # CMake's variables, not the shell's
    printf 'file(READ "%s" text)\nstring(JSON value %s "${text}" %s)\nmessage("${value}")\n' "$scratch/out" \
        "$([[ ${*: -1} == LENGTH ]] && echo LENGTH || echo GET)" "${*/%LENGTH/}" >"$scratch/value.cmake"
    cmake -P "$scratch/value.cmake" 2>&1
}

# equals WANTED PATH...: compares a member of that object.
equals() {
    local wanted=$1 found
    shift
    checks=$((checks + 1))
    found=$(value "$@")
    [[ $found == "$wanted" ]] || complain "$* is '$found' instead of '$wanted'"
}

# holds EXPRESSION: checks an arithmetic expression of awk.
holds() {
    checks=$((checks + 1))
    awk "BEGIN { exit !($1) }" || complain "not true: $1"
}

test_table() {
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" "${three[@]}" --network 10Gb
    says out "on 3 devices: global batch of 16 samples, length 1200"
    says out "does not exist: planning the longest length"
    says out "t4 x 2"
    says out "without one of them a step would take"
    says out "left out: with it a step would take"
    says out "1.25 GB/s, a message takes 50 us"
    says out "-> "
    says out "2 devices: ring"
    says out "backward pass hides"
    says out "exposed communication; t4 alone: "
    says out "efficiency"
    says out "J a step (140 W, the devices at full load)"
    says out "unknown without the data"
    lacks out "price"
    # No network transfers this model's gradients within the time of one step.
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" "${three[@]}" --network 10Mb
    says out "t4 alone is the fastest choice"
    says out "another device does as well"
    says out "the true times lie within a factor of 4."
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" --devices t4,pocl_cpu --network memory
    says out "different precisions"
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" --devices pocl_cpu
    says out "board_watts is not in the card file of pocl_cpu"
    says out "no other device can do it"
    lacks out "gradients"
}

test_json() {
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" "${three[@]}" --network 10Gb --price t4=0.25,INTEL_IGPU=0 --json
    equals 2 used
    equals 16 global_batch
    equals t4 devices 0 card
    equals OFF devices 0 left_out
    equals ON devices 2 left_out
    equals 0 devices 2 share
    equals 2 exchange devices
    equals 1250000000 exchange bytes_per_second
    equals 140 watts
    equals 0.5 price_per_hour
    equals "" run_price
    local member
    # With the free card, a sample would cost the price of the others, for longer.
    equals 0.5 devices 2 other_price_per_hour
    equals 0.25 devices 0 other_price_per_hour
    holds "$(value devices 2 other_samples_per_second) < $(value samples_per_second)"
    for member in fits precision recompute micro_batch micro_batches bytes limit compute_seconds alone_seconds other_step_seconds within reason watts price_per_hour; do
        json devices 1 $member
    done
    for member in algorithm "algorithm_seconds tree" buckets gradient_bytes latency_seconds host_bytes_per_second; do
        # shellcheck disable=SC2086 # a path of members
        json exchange $member
    done
    holds "$(value devices 0 share) + $(value devices 1 share) == 16"
    holds "$(value devices 2 other_step_seconds) > $(value step_seconds)"
    local sum
    sum="$(value devices 0 compute_seconds) + $(value exchange exposed_seconds) - $(value step_seconds)"
    holds "($sum) ^ 2 < 1e-18"
    holds "$(value efficiency) < 1 && $(value efficiency) > 0.5"
    # The same command prints the same text.
    cp "$scratch/out" "$scratch/once"
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" "${three[@]}" --network 10Gb --price t4=0.25,intel_igpu=0 --json
    cp "$scratch/out" "$scratch/twice"
    exits 0 cmp "$scratch/once" "$scratch/twice"
}

# A device alone takes the time that --card shows.
test_alone() {
    local seconds
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" --card t4 --json
    seconds=$(value step_seconds)
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" --devices t4 --json
    equals "$seconds" step_seconds
    equals "$seconds" devices 0 alone_seconds
    equals 2 devices 0 within
}

test_many() {
    local batch=(--set train.effective_batch_size=640)
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" "${batch[@]}" --devices '64*t4' --network 100Gb,5us
    says out "on 64 devices"
    says out "t4 x 64"
    says out "take part"
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" "${batch[@]}" --devices '12*t4' --network 100Gb,5us --json
    equals 5 scaling LENGTH
    equals 8 scaling 3 devices
    equals 12 scaling 4 used
    holds "$(value scaling 0 efficiency) == 1 && $(value scaling 4 efficiency) < 1"
    equals "$(value step_seconds)" scaling 4 step_seconds
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" "${batch[@]}" --devices '12*t4,h100' --network 100Gb,5us --json
    equals 0 scaling LENGTH
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" "${batch[@]}" --devices '60*t4,2*h100,t4,rtx4090' --network 100Gb,5us --json
    equals h100 devices 61 card
    equals t4 devices 62 card
    exits 2 "$cleat" plan "$rna" "${nowhere[@]}" "${batch[@]}" --devices '64*t4,t4' --network 1Gb
    says err "more than 64 devices"
    exits 2 "$cleat" plan "$rna" "${nowhere[@]}" "${batch[@]}" --devices '99999999999999999999*t4' --network 1Gb
    says err "more than 64 devices"
}

test_data() {
    exits 0 "$cleat" data make rna --out "$scratch/data" --count 60
    local data=(--set "data.path=$scratch/data")
    exits 0 "$cleat" plan "$small" "${data[@]}" --devices 'a100_80,2*t4' --network pcie4 --price t4=0.1,a100_80=1.5
    says out "an epoch of"
    says out "an hour, "
    says out "the run"
    says out "kWh a run"
    says out "and a million samples would cost"
    exits 0 "$cleat" plan "$small" "${data[@]}" --devices 'a100_80,2*t4' --network pcie4 --price t4=0.1,a100_80=1.5 --json
    holds "($(value run_price) - $(value run_seconds) / 3600 * $(value price_per_hour)) ^ 2 < 1e-18"
    holds "$(value steps_per_epoch) > 0"
}

test_memory() {
    sed 's/^memory = [0-9].*/memory = 430 MiB/; s/^max_allocation = [0-9].*/max_allocation = 100 MiB/' \
        "$2/profiles/devices/t4.ini" >"$scratch/tiny.ini"
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" --devices "t4,$scratch/tiny.ini" --network pcie3
    says out "left out: "
    says out "MiB too much"
    exits 3 "$cleat" plan "$rna" "${nowhere[@]}" --devices "$scratch/tiny.ini" --network pcie3
    exits 3 "$cleat" plan "$rna" "${nowhere[@]}" --devices "$scratch/tiny.ini" --network pcie3 --json
    equals OFF fits
    equals "" step_seconds
    # Memory for a share of the samples: separate micro-batches.
    sed 's/^memory = [0-9].*/memory = 600 MiB/' "$2/profiles/devices/t4.ini" | sed 's/^max_allocation = [0-9].*/max_allocation = 600 MiB/' \
        >"$scratch/small.ini"
    exits 0 "$cleat" plan "$rna" "${nowhere[@]}" --devices "t4,$scratch/small.ini" --network 100GB,1us --json \
        --set train.gradient_checkpointing=false
    equals 1 devices 0 micro_batches
    holds "$(value devices 1 micro_batches) > 1 && $(value devices 1 share) > 1"
}

test_wrong_lines() {
    local plan=("$cleat" plan "$rna" "${nowhere[@]}")
    exits 1 "${plan[@]}" --devices t4,t5 --network 1Gb
    says err "did you mean 't4'?"
    for devices in "" , t4, ,t4 '0*t4' '2*' '2*,t4'; do
        exits 2 "${plan[@]}" --devices "$devices" --network 1Gb
        says err "--devices"
    done
    for network in "" 1 1Gx 1gb Gb 0Gb 1Gb,5 pcie2 1Gb,-5us; do
        exits 2 "${plan[@]}" "${three[@]}" --network "$network"
        says err "network '$network'"
    done
    for price in t4 t4= t4=-1 t4=x t4=inf =1 t4=1, t4=0.1,t5=1; do
        exits 2 "${plan[@]}" "${three[@]}" --network 1Gb --price "$price"
        says err "--price"
    done
    exits 2 "${plan[@]}" "${three[@]}" --network 1Gb --price t4=1
    says err "the price of intel_igpu is missing"
    exits 2 "${plan[@]}" "${three[@]}"
    says err "needs --network"
    exits 2 "${plan[@]}" --network 1Gb
    says err "belongs to --devices"
    exits 2 "${plan[@]}" --price t4=1
    says err "belongs to --devices"
    for other in "--card t4" "--device cpu" "--batch 4"; do
        # shellcheck disable=SC2086 # an option and its value
        exits 2 "${plan[@]}" "${three[@]}" --network 1Gb $other
        says err "${other% *}"
    done
    exits 1 "${plan[@]}" --devices '17*t4' --network 1Gb
    says err "17 devices, but a global batch has only 16 samples"
    exits 0 env OCL_ICD_VENDORS=/nonexistent "${plan[@]}" "${three[@]}" --network 1Gb
}

test_table
test_json
test_alone
test_many
test_data
test_memory "$@"
test_wrong_lines
finish
