#!/usr/bin/env bash
# Under Slurm: this machine is a cluster of two nodes, each with its own daemon, and `srun --mpi=pmix` starts a rank on each. Training gives
# the parameters of one process; a signal from scancel stops both ranks after the same step, and the run continues from there.
#   test_slurm.sh CLEAT SOURCE_DIR
# Skipped if Slurm, its PMIx plug-in or munge is not installed, or if their daemons do not start (they need root).
# ctest: device slow
set -euo pipefail
cleat=$1 source=$2
# shellcheck source=tests/cli/checks.sh
source "$source/tests/cli/checks.sh"
# shellcheck source=tests/ranks/close_to_one.sh
source "$source/tests/ranks/close_to_one.sh"
skip() { echo "skipped, $*" && exit 77; }
[[ -e $(dirname "$cleat")/libcleat-mpi.so ]] || skip "cleat was built without MPI"
export PATH=$PATH:/usr/sbin
for program in srun scancel sinfo slurmctld slurmd munged; do command -v "$program" >/dev/null || skip "there is no $program"; done
[[ $(id -u) == 0 ]] || skip "Slurm's daemons need root"
require_device
require_python
cluster=$scratch/cluster
daemons=(slurmd-n0 slurmd-n1 slurmctld munged)

clean() {
    local name
    for name in "${daemons[@]}"; do
        if [[ -s $cluster/$name.pid ]]; then kill "$(cat "$cluster/$name.pid")" 2>/dev/null || true; fi
        sleep 0.5 # the nodes log off
    done
    rm -rf "$scratch"
}
trap clean EXIT

# Ports that no other program of this machine is likely to use.
write_settings() {
    local port=$((20000 + $$ % 10000 * 3)) host
    host=$(hostname)
    mkdir -p "$cluster"/{state,n0,n1,tmp-n0,tmp-n1,key}
    chmod 755 "$scratch" "$cluster"
    chmod 700 "$cluster/key"
    head -c 1024 /dev/urandom >"$cluster/key/key"
    chmod 400 "$cluster/key/key"
    export SLURM_CONF=$cluster/slurm.conf
    cat >"$SLURM_CONF" <<END
ClusterName=cleat
SlurmctldHost=$host
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$cluster/munge.socket
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/%n
TmpFS=$cluster/tmp-%n
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/slurmd-%n.pid
SlurmctldLogFile=$cluster/slurmctld.log
SlurmdLogFile=$cluster/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/builtin
SelectType=select/linear
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
NodeName=n[0-1] NodeHostname=$host Port=[$((port + 1))-$((port + 2))] CPUs=1
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
}

# start_daemons: skips the test if one does not start.
start_daemons() {
    local node i
    munged --force --key-file="$cluster/key/key" --socket="$cluster/munge.socket" --pid-file="$cluster/munged.pid" \
        --log-file="$cluster/munged.log" --seed-file="$cluster/key/seed" >"$scratch/out" 2>&1 || skip "munged: $(cat "$scratch/out")"
    slurmctld -c >"$scratch/out" 2>&1 || skip "slurmctld: $(cat "$scratch/out")"
    for node in n0 n1; do slurmd -c -N "$node" >"$scratch/out" 2>&1 || skip "slurmd: $(cat "$scratch/out")"; done
    for ((i = 0; i < 60; ++i)); do
        [[ $(sinfo -h -o '%T %D' 2>/dev/null) != "idle 2" ]] || return 0
        sleep 0.5
    done
    skip "the nodes are not ready: $(sinfo 2>&1 | tail -n 1); $(tail -qn 2 "$cluster"/*.log | tr '\n' ' ')"
}

line=(train "$source/profiles/rna_small.ini" --quiet --set data.path="$scratch/rna" --set train.schedule=constant
    --set train.warmup_steps=2 --set run.monitor=none --set run.self_check=never --set data.limit=24
    --set model.d_model=32 --set model.heads=2 --set model.layers=1 --set model.d_ff=64)

# on_nodes WORDS...: runs a rank on each node
on_nodes() { timeout -k 10 300 srun --mpi=pmix -N 2 -n 2 "$cleat" "$@" --set distribute.shares=1,1; }

test_training() {
    exits 0 "$cleat" "${line[@]}" --out "$scratch/one" --set train.epochs=2
    exits 0 on_nodes "${line[@]}" --out "$scratch/two" --set train.epochs=2
    close_to_one two 1e-6
}

# begin RUN: starts an endless training, and waits for its first steps; $run: its process.
begin() {
    local i
    endless=("${line[@]}" --out "$scratch/$1" --set run.evaluate_every_epochs=2000 --set run.checkpoint_every_epochs=2000)
    on_nodes "${endless[@]}" --set train.epochs=2000 >"$scratch/out" 2>"$scratch/err" &
    run=$!
    for ((i = 0; i < 2400; ++i)); do
        [[ ! -s $scratch/$1/metrics.jsonl ]] || break
        sleep 0.1
    done
}

# end_with STATUS RUN: checks that the run ends with STATUS, has saved its last step, and continues from there for two more epochs.
end_with() {
    local status=0 saved
    wait "$run" || status=$?
    checks=$((checks + 1))
    ((status == $1)) || complain "$2: the run ended with $status instead of $1"
    exits 0 test -s "$scratch/$2/last"
    echo "$2: saved $(cat "$scratch/$2/last")"
    saved=$(sed 's/.*-E0*\([0-9][0-9]*\)-.*/\1/' "$scratch/$2/last")
    exits 0 on_nodes "${endless[@]}" --resume --set train.epochs=$((saved + 2))
    exits 0 grep -q "^ckpt-E0*$((saved + 2))-" "$scratch/$2/last"
}

# Slurm sends this signal before a job's time ends (srun --signal=TERM@60).
test_signal() {
    begin stopped
    scancel --signal=TERM "$(squeue -h -t RUNNING -o %i)" || true
    end_with 130 stopped
}

# A rank is killed: the other one saves its step.
test_kill() {
    local process
    begin killed
    for process in $(pgrep -x -f "$cleat train .*--out $scratch/killed .*"); do
        if tr '\0' '\n' <"/proc/$process/environ" | grep -x SLURM_PROCID=1 >/dev/null; then kill -KILL "$process"; fi
    done
    end_with 137 killed
}

write_settings
start_daemons
checks=$((checks + 1))
srun --mpi=list 2>&1 | grep -q pmix || skip "this Slurm has no plug-in for PMIx"
exits 0 "$cleat" data make rna --out "$scratch/rna" --count 40
test_training
test_signal
test_kill
finish
