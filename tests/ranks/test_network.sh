#!/usr/bin/env bash
# Two hosts on this machine: processes with separate networks and host names, joined by a cable of 1 Gb/s with 1 ms and lost packets
# (network/relay.c), and nsenter instead of ssh. The network is measured; training gives the parameters of one process. If the cable is
# cut before MPI starts, in the first steps, or later, both ranks end in time, and the run continues on the host that started it.
#   test_network.sh CLEAT SOURCE_DIR RELAY
# Skipped if the test may not create namespaces or network devices.
# ctest: device slow cost=87
set -euo pipefail
cleat=$1 source=$2 relay=$3
# shellcheck source=tests/cli/checks.sh
source "$source/tests/cli/checks.sh"
# shellcheck source=tests/ranks/close_to_one.sh
source "$source/tests/ranks/close_to_one.sh"
# shellcheck source=tests/ranks/mpi.sh
source "$source/tests/ranks/mpi.sh"
[[ -e $(dirname "$cleat")/libcleat-mpi.so ]] || { echo "skipped, cleat was built without MPI" && exit 77; }
if ! unshare -n -u true 2>/dev/null || [[ ! -w /dev/net/tun ]]; then echo "skipped, no namespaces or no /dev/net/tun" && exit 77; fi
require_device
require_python
hosts=() cable=
addresses=(10.207.0.1 10.207.0.2)

# processes HOST: prints all processes of the host
processes() {
    local space file
    space=$(readlink "/proc/${hosts[$1]}/ns/net") || return 0
    for file in /proc/[0-9]*/ns/net; do
        [[ $(readlink "$file" 2>/dev/null) != "$space" ]] || cut -d/ -f3 <<<"$file"
    done
}

clean() {
    local host
    for host in "${!hosts[@]}"; do processes "$host"; done | xargs -r kill -KILL 2>/dev/null || true
    [[ ! $cable ]] || kill -KILL "$cable" 2>/dev/null || true
    wait 2>/dev/null
    rm -rf "$scratch"
}
trap clean EXIT

# make_host NUMBER: starts a process that keeps the host's namespaces.
make_host() {
    local i
    unshare -n -u sleep 900 &
    hosts[$1]=$!
    for ((i = 0; i < 600; ++i)); do
        [[ $(readlink "/proc/${hosts[$1]}/ns/uts") == "$(readlink /proc/self/ns/uts)" ]] || break
        sleep 0.05
    done
    ((i < 600)) || { echo "FAILED: no namespaces after 30 s" && exit 1; } # otherwise the name would be this machine's
    nsenter -t "${hosts[$1]}" -u hostname "cleathost$1"
}

# on HOST COMMAND...: runs the command there.
on() {
    local number=$1
    shift
    nsenter -t "${hosts[$number]}" -n -u "$@"
}

# connect DELAY_MS LOSS_PERCENT BITS_PER_SECOND: installs a new cable
connect() {
    local i
    if [[ $cable ]]; then kill -KILL "$cable" && wait "$cable" 2>/dev/null || true; fi
    rm -f "$scratch/relay" # an earlier cable also wrote "ready"
    "$relay" "${hosts[@]}" "${addresses[@]}" "$@" >"$scratch/relay" 2>&1 &
    cable=$!
    for ((i = 0; i < 600; ++i)); do
        grep -qs ready "$scratch/relay" && return
        kill -0 "$cable" 2>/dev/null || break
        sleep 0.05
    done
    ((checks > 0)) || { echo "skipped, $(cat "$scratch/relay")" && exit 77; }
    echo "FAILED: no cable: $(cat "$scratch/relay")" && exit 1 # there was one before
}

# Called by MPI's launcher: HOST COMMAND...
make_agent() {
    cat >"$scratch/agent" <<END
#!/usr/bin/env bash
while [[ \$1 == -* ]]; do shift; done
case \$1 in ${addresses[0]}) host=${hosts[0]} ;; *) host=${hosts[1]} ;; esac
shift
exec nsenter -t "\$host" -n -u bash -c "\$*"
END
    chmod +x "$scratch/agent"
    export OMPI_MCA_plm_rsh_agent=$scratch/agent HWLOC_COMPONENTS=-opencl,-rsmi,-nvml,-gl OMPI_MCA_hwloc_base_binding_policy=none
}

test_bench() {
    connect 1 0 1e9
    exits 0 on 0 "$cleat" bench allreduce --hosts "${addresses[0]}:1,${addresses[1]}:1" --devices cpu --seconds 0.5 --json
    checks=$((checks + 1))
    python3 - "$scratch/out" <<'END' || complain "not the network of the cable"
import json, sys
found = json.load(open(sys.argv[1]))
print(found["network"], found["worst_difference"])
assert found["ranks"] == 2 and 5e6 < found["bytes_per_second"] < 130e6, found
assert all(p["ms_median"] >= 1 + 8e-6 * p["bytes"] for p in found["points"]), found # no faster than the cable
END
}

line=(train "$source/profiles/rna_small.ini" --quiet --set data.path="$scratch/rna" --set train.schedule=constant
    --set train.warmup_steps=2 --set run.monitor=none --set run.self_check=never --set data.limit=24
    --set model.d_model=32 --set model.heads=2 --set model.layers=1 --set model.d_ff=64)
two=(--hosts "${addresses[0]}:1,${addresses[1]}:1" --devices cpu --set distribute.shares=1,1)

test_training() {
    connect 1 1 1e9
    exits 0 "$cleat" data make rna --out "$scratch/rna" --count 40
    exits 0 "$cleat" "${line[@]}" --out "$scratch/one" --set train.epochs=2
    exits 0 on 0 "$cleat" "${line[@]}" "${two[@]}" --out "$scratch/two" --set train.epochs=2
    close_to_one two 1e-6
}

# steps RUN: prints the number of steps in its log
steps() { cat "$scratch/$1/metrics.jsonl" 2>/dev/null | grep -c '"train"' || true; }

# until_said TEXT SECONDS: waits until the supervisor prints TEXT; $waited: seconds since $since.
until_said() {
    checks=$((checks + 1)) said=
    while [[ ! $said ]] && awk "BEGIN { exit !($(date +%s.%N) - $since < $2) }"; do
        if grep -aq "$1" "$scratch/err"; then said=$1; fi
        sleep 0.1
    done
    waited=$(awk "BEGIN { print $(date +%s.%N) - $since }")
    [[ $said ]] || complain "no rank printed '$1' within $2 s"
}

# The cable is cut in the middle of the run, after the first steps, which may take longer: the finished step is saved in time, and
# the supervisor continues with the remaining host.
test_cut() {
    local run i status=0 since waited said
    connect 1 0 1e9
    exits 0 "$cleat" "${line[@]}" --out "$scratch/one" --resume --set train.epochs=25 --set run.evaluate_every_epochs=25
    on 0 "$cleat" "${line[@]}" "${two[@]}" --out "$scratch/cut" --set train.epochs=25 --set run.evaluate_every_epochs=25 --set distribute.timeout=8 --set run.log_every_steps=1 >"$scratch/out" 2>"$scratch/err" &
    run=$!
    for ((i = 0; i < 3000 && $(steps cut) < 24; ++i)); do sleep 0.1; done
    echo "cut after $(steps cut) steps"
    kill -STOP "$cable"
    since=$(date +%s.%N)
    until_said "is saved in" 60
    echo "saved after $waited s"
    until_said "continuing with" 240
    echo "continued after $waited s"
    if [[ ! $said ]]; then kill -KILL "$run"; fi
    wait "$run" || status=$?
    checks=$((checks + 1))
    ((status == 0)) || complain "cut: exit status $status"
    says err "continuing with 1 of 2 devices"
    if ((status == 0)); then close_to_one cut 1e-2; fi # a hundred steps with reordered sums
}

# The same in the first steps, when ranks wait for others that compile: silence is detected equally early.
test_cut_early() {
    local run i waited said since
    connect 1 0 1e9
    on 0 "$cleat" "${line[@]}" "${two[@]}" --out "$scratch/early" --restarts 0 --set train.epochs=2000 --set run.evaluate_every_epochs=2000 --set distribute.timeout=8 --set run.log_every_steps=1 >"$scratch/out" 2>"$scratch/err" &
    run=$!
    for ((i = 0; i < 30000 && $(steps early) < 1; ++i)); do sleep 0.01; done
    kill -STOP "$cable"
    since=$(date +%s.%N)
    echo "cut after $(steps early) steps"
    until_said "is saved in" 60
    echo "saved after $waited s"
    wait "$run" || true
}

# The cable is cut before MPI starts: the supervisor gives up, and names the host on which nothing started.
test_cut_before() {
    connect 1 0 1e9
    kill -STOP "$cable"
    exits 1 on 0 env CLEAT_RANKS_START=5 "$cleat" "${line[@]}" "${two[@]}" --out "$scratch/none" --set train.epochs=1
    says err "host ${addresses[1]}) has not started within 5 s"
}

make_host 0
make_host 1
make_agent
for name in ${CLEAT_NETWORK_TESTS:-test_bench test_training test_cut_early test_cut_before test_cut}; do "$name"; done
finish
