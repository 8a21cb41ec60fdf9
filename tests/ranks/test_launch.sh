#!/usr/bin/env bash
# How `cleat train --devices` calls MPI's launcher, and how the supervisor handles lost ranks. The launcher is a script that records its
# calls and simulates guards: their lines on stderr, and the signals that they receive.
#   test_launch.sh CLEAT SOURCE_DIR STUB_DRIVER
# ctest: cost=49
set -euo pipefail
cleat=$1
source=$2
stub=$3
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/../cli/checks.sh"

unset OMPI_COMM_WORLD_SIZE PMI_RANK CLEAT_MPIRUN
plays=$scratch/plays
line=("$cleat" train "$source/profiles/rna_small.ini" --set data.path=nothing)

# make_driver NAME LINES: makes an OpenCL driver without hardware that passes the doctor's checks.
make_driver() {
    mkdir -p "$scratch/icd" "$scratch/drivers"
    cp "$stub" "$scratch/drivers/lib$1.so"
    printf '%b' "$2" >"$scratch/drivers/lib$1.so.conf"
    echo "$scratch/drivers/lib$1.so" >"$scratch/icd/$1.icd"
    export OCL_ICD_VENDORS=$scratch/icd
}

# make_devices: 0 and 1 are T4s, 2 is a gfx1100, 3 is a CPU.
make_devices() {
    make_driver a 'platform=A\nvendor=NVIDIA Corporation\ndevice=Tesla T4\npci=0000:01:00.0\ndevice=Tesla T4\npci=0000:02:00.0\n'
    make_driver b 'platform=B\nvendor=Advanced Micro Devices, Inc.\ndevice=gfx1100\npci=0000:03:00.0\n'
    make_driver c 'platform=C\ntype=cpu\ndevice=Some CPU\n'
}

# The launcher: `--version` prints $version; otherwise, start number N runs the file play.N, or `end_all 0` without one. A play uses:
#   start              every rank starts
#   end RANK exit|signal NUMBER
#   await USR1|USR2    waits until the supervisor has sent this signal (10 s at most)
make_launcher() {
    mkdir -p "$scratch/bin" "$plays"
    cat >"$scratch/bin/mpirun" <<'EOF'
#!/usr/bin/env bash
if [[ $1 == --version ]]; then
    [[ ${version:-} == none ]] && exit 1
    echo "${version:-mpirun (Open MPI) 4.1.4}"
    exit 0
fi
number=$(ls "$PLAYS" | grep -c '^call\.')
call=$PLAYS/call.$number
printf '%s\n' "$@" >"$call"
env | grep -E '^(CLEAT_|HWLOC_|COLUMNS)' | sort >"$PLAYS/environment.$number" || true
ranks=$(printf '%s\n' "$@" | grep -A1 -x -- -n | tail -n 1)
got=" "
for signal in USR1 USR2 TERM INT; do trap "got+=$signal' '; echo $signal >>'$PLAYS/signals.$number'" "$signal"; done
say() { printf '\x1ecleat-rank %s %s 999999 %s\n' "$1" "$(hostname)" "$2" >&2; }
start() { for ((r = 0; r < ranks; ++r)); do say "$r" started; done; }
end() { say "$1" "$2 $3"; }
end_all() { for ((r = 0; r < ranks; ++r)); do end "$r" exit "$1"; done; }
await() { for ((i = 0; i < 400; ++i)); do [[ $got == *" $1 "* ]] && return; sleep 0.05; done; echo "no $1" >&2; }
save() { mkdir -p "$1"; printf 'ckpt-E002-S000123\n' >"$1/last"; }
if [[ -e $PLAYS/play.$number ]]; then
    source "$PLAYS/play.$number"
else
    start
    end_all 0
fi
await USR2
exit "${code:-0}"
EOF
    chmod +x "$scratch/bin/mpirun"
    ln -s mpirun "$scratch/bin/mpiexec"
    export PATH=$scratch/bin:$PATH PLAYS=$plays
}

# plays TEXT...: sets what the launcher does at its first call, its second, ...
plays() {
    local number=0 text
    rm -rf "$plays" "$scratch/run" && mkdir -p "$plays"
    for text in "$@"; do
        [[ ! $text ]] || printf '%s\n' "$text" >"$plays/play.$number"
        number=$((number + 1))
    done
}

# calls COUNT: checks how often the launcher was started.
calls() {
    checks=$((checks + 1))
    [[ $(find "$plays" -name 'call.*' | wc -l) == "$1" ]] || complain "the launcher was not called $1 times"
}

# called NUMBER WORDS: checks that the command line contains the consecutive words.
called() {
    checks=$((checks + 1))
    { echo -n " " && tr '\n' ' ' <"$plays/call.$1"; } | grep -qF -- " $2 " || complain "call $1 has no '$2': $(tr '\n' ' ' <"$plays/call.$1")"
}

not_called() {
    checks=$((checks + 1))
    ! tr '\n' ' ' <"$plays/call.$1" | grep -qF -- "$2" || complain "call $1 has '$2'"
}

# had NUMBER LINE: checks a variable of the launcher.
had() {
    checks=$((checks + 1))
    grep -qxF -- "$2" "$plays/environment.$1" || complain "call $1 has no variable $2: $(cat "$plays/environment.$1")"
}

# signalled NUMBER SIGNALS: checks the signals that the launcher received.
signalled() {
    checks=$((checks + 1))
    [[ $(tr '\n' ' ' <"$plays/signals.$1") == "$2 " ]] || complain "call $1 got the signals $(tr '\n' ' ' <"$plays/signals.$1"), not $2"
}

test_command_line() {
    plays
    exits 0 "${line[@]}" --devices 0,2 --out "$scratch/run" --restarts 2 --log debug
    called 0 "--bind-to none --map-by slot:OVERSUBSCRIBE"
    called 0 "--mca btl_tcp_if_exclude docker0,virbr0"
    called 0 "-n 2 $(readlink -f "$cleat") train $source/profiles/rna_small.ini --set data.path=nothing --out $scratch/run --log debug"
    not_called 0 --devices
    not_called 0 --restarts
    not_called 0 --host
    if ((EUID == 0)); then called 0 --allow-run-as-root; else not_called 0 --allow-run-as-root; fi
    had 0 CLEAT_RANKS_GUARD=1
    had 0 "CLEAT_RANKS_SELECTORS=0;2"
    had 0 HWLOC_COMPONENTS=-opencl,-rsmi,-nvml,-gl
    signalled 0 USR2 # released
}

test_hosts() {
    plays
    exits 0 env CLEAT_TUNED=never "${line[@]}" --hosts a:2,b --devices 0,1 --out "$scratch/run"
    called 0 "--host a:2,b:1"
    called 0 "-n 3"
    called 0 "--mca btl_tcp_if_exclude lo,docker0,virbr0"
    called 0 "-x CLEAT_TUNED"
    called 0 "-x CLEAT_RANKS_SELECTORS"
    had 0 "CLEAT_RANKS_SELECTORS=0;1;0"
    exits 0 "${line[@]}" --hosts a:2 --out "$scratch/run"
    had 1 "CLEAT_RANKS_SELECTORS=;"
    exits 1 "${line[@]}" --hosts a:x
    says err "a number of devices is expected"
    exits 1 "${line[@]}" --hosts a:3 --devices 0,1
    says err "name one for each"
    exits 1 "${line[@]}" --hosts a:3 --devices all
    says err "not known here"
    calls 2
}

test_launchers() {
    plays
    exits 0 env version="mpirun (Open MPI) 5.0.11" "${line[@]}" --devices all --out "$scratch/run"
    called 0 "-n 4"
    not_called 0 oob_tcp_if_exclude
    exits 0 env version="HYDRA build details:" "${line[@]}" --hosts a:2 --out "$scratch/run"
    called 1 "-bind-to none -hosts a:2 -n 2"
    exits 1 env version="some other program" "${line[@]}" --devices 0,1
    says err "this launcher of MPI is not supported"
    exits 1 env version=none PATH="$scratch/bin" "${line[@]}" --devices 0,1
    says err "several devices need MPI"
    says err "openmpi"
    exits 1 env CLEAT_RANKS_LIBRARY=/no/such/plugin.so "${line[@]}" --devices 0,1
    says err "libopenmpi-dev"
    exits 1 env CLEAT_MPIRUN=/no/such/mpirun "${line[@]}" --devices 0,1
    says err "CLEAT_MPIRUN=/no/such/mpirun"
}

test_devices() {
    local number=0 row
    plays
    # words = selectors
    for row in gpu=0\;1\;2 auto=0\;1\;2 all=0\;1\;2\;3 t4,t4=0\;1 2*t4,gfx=0\;1\;2 3,t4=3\;0 cpu,2=3\;2 3*cpu=3\;3\;3 1,1=1\;1; do
        exits 0 "${line[@]}" --devices "${row%=*}" --out "$scratch/run"
        had "$number" "CLEAT_RANKS_SELECTORS=${row#*=}"
        number=$((number + 1))
    done
    exits 4 "${line[@]}" --devices 0,4
    says err "'4': no device has this number"
    says err "2  gfx1100 (GPU)"
    exits 4 "${line[@]}" --devices t4,t4,t4
    says err "mentioned more often"
    exits 4 "${line[@]}" --devices 0,,1
    exits 4 "${line[@]}" --devices 99*cpu
    exits 4 "${line[@]}" --devices 0,gfx906
    says err "no device has this name"
    exits 2 "${line[@]}" --devices 0,1 --device 0
    exits 2 "${line[@]}" --devices 0,1 --restarts 1.5
    exits 2 env OMPI_COMM_WORLD_SIZE=2 "${line[@]}" --devices 0,1
    # one device needs no MPI: the run fails by itself, because data are missing or this driver compiles nothing
    "${line[@]}" --devices gfx --out "$scratch/none" >"$scratch/out" 2>"$scratch/err" || true
    lacks err "--devices"
    lacks err MPI
    calls 9
    rm "$scratch/icd/a.icd" "$scratch/icd/b.icd"
    exits 4 "${line[@]}" --devices gpu
    says err "there is no GPU"
    make_devices
}

# The output of ranks passes, as do the launcher's messages, except those about ends of ranks.
test_output() {
    plays 'start
printf "step 1\rstep 2\n" >&2
printf -- "--------------------------------------------------\nmpirun noticed that process rank 1 exited on signal 9\n--------------------------------------------------\n" >&2
printf -- "--------------------------------------------------\nA message that matters\n--------------------------------------------------\n" >&2
echo "mpirun: Forwarding signal 10 to job" >&2
echo the report
end_all 0'
    exits 0 "${line[@]}" --devices 0,1 --out "$scratch/run"
    says err "step 2"
    says err "A message that matters"
    lacks err "noticed that process"
    lacks err Forwarding
    lacks err cleat-rank
    says out "the report"
}

# A killed rank: the others are notified, its device is checked, and all restart from the checkpoint.
test_restart() {
    plays "start; end 1 signal 9; await USR1; save $scratch/run; end 0 exit 8; end 2 exit 8" ""
    exits 0 "${line[@]}" --devices gpu --out "$scratch/run" --resume-from elsewhere
    calls 2
    signalled 0 "USR1 USR2"
    called 0 "--resume-from elsewhere"
    not_called 1 --resume-from
    called 1 "--out $scratch/run"
    checks=$((checks + 1))
    tail -n 1 "$plays/call.1" | grep -qx -- --resume || complain "the second start does not resume"
    says err "rank 1 (Tesla T4) was killed by signal 9"
    says err "step 123 is saved in $scratch/run"
    says err "continuing with 3 of 3 devices"
}

# Without a checkpoint, the run begins again.
test_restart_without_checkpoint() {
    plays "start; end 0 signal 11; await USR1; end 1 exit 130" ""
    exits 0 "${line[@]}" --devices 0,1 --out "$scratch/run"
    calls 2
    says err "no step was saved"
    called 1 "--out $scratch/run"
}

# A device that fails, or that no driver lists, is excluded; the last one trains alone.
test_left_out() {
    plays "start; echo fault=crash-kernel >>$scratch/drivers/libb.so.conf; end 2 exit 4; await USR1; end 0 exit 8; end 1 exit 8" \
        "start; rm $scratch/icd/a.icd; end 0 signal 9; await USR1; end 1 exit 8"
    exits 4 "${line[@]}" --devices gpu --out "$scratch/run"
    says err "rank 2 (gfx1100) has lost its device"
    says err "rank 2 (gfx1100) is left out: device-crashes"
    says err "continuing with 2 of 3 devices"
    says err "rank 1 (Tesla T4) is left out: its driver no longer lists it"
    says err "no device is left"
    calls 2
    had 1 "CLEAT_RANKS_SELECTORS=0;1"
    make_devices
    plays "start; rm $scratch/icd/a.icd; end 0 exit 4; await USR1; end 1 exit 8" ""
    exits 0 "${line[@]}" --devices 0,3 --out "$scratch/run"
    says err "continuing with 1 of 2 devices"
    called 1 "-n 1"
    called 1 "--device 1" # its number now
    make_devices
}

# distribute.shares has one share per device at the start: remaining devices keep theirs, or measure if none has one.
test_shares_of_those_left() {
    local lose="start; echo fault=crash-kernel >>$scratch/drivers/libb.so.conf; end 2 exit 4; await USR1; end 0 exit 8; end 1 exit 8"
    plays "$lose" ""
    exits 0 "${line[@]}" --devices gpu --out "$scratch/run" --set distribute.shares=3,2,1
    called 0 "--set distribute.shares=3,2,1"
    called 1 "-n 2"
    called 1 "--set distribute.shares=3,2"
    says err "divide the work by distribute.shares=3,2"
    make_devices
    plays "$lose" ""
    exits 0 "${line[@]}" --devices gpu --out "$scratch/run" distribute.shares=0,0,1
    called 1 "--set distribute.shares=measured"
    make_devices
    plays "start; rm $scratch/icd/a.icd; end 0 exit 4; await USR1; end 1 exit 8" ""
    exits 0 "${line[@]}" --devices 0,3 --out "$scratch/run" --set distribute.shares=1,1
    not_called 1 "--resume --set" # one device has no shares
    make_devices
    plays "start; end 1 signal 9; await USR1; end 0 exit 8" "" # its device works: nothing changes
    exits 0 "${line[@]}" --devices 0,1 --out "$scratch/run" --set distribute.shares=3,1
    not_called 1 "--resume --set"
}

test_limits() {
    local loss="start; end 0 signal 9; await USR1; end 1 exit 8"
    plays "$loss" "$loss" "$loss" "$loss" "$loss"
    exits 8 "${line[@]}" --devices 0,1 --out "$scratch/run"
    calls 4 # three restarts
    says err "giving up"
    plays "$loss"
    exits 8 "${line[@]}" --devices 0,1 --out "$scratch/run" --restarts 0
    calls 1
}

# Errors that would recur, and orderly ends, become the run's exit code.
test_codes() {
    local code
    for code in 1 3 5 75; do
        plays "start; end_all $code"
        exits "$code" "${line[@]}" --devices 0,1 --out "$scratch/run"
        calls 1
    done
    plays "start; end 1 exit 1; await USR1; end 0 exit 8" # the others are notified after ten seconds
    exits 1 "${line[@]}" --devices 0,1 --out "$scratch/run"
    calls 1
    plays "code=7; await() { :; }"
    exits 1 "${line[@]}" --devices 0,1 --out "$scratch/run"
    says err "mpirun ended with exit code 7 before all ranks had started"
}

# A launcher that waits for a host forever is ended; a restart would not help.
test_late() {
    plays "say 0 started; await TERM; end 0 exit 130; exit 143"
    exits 1 env CLEAT_RANKS_START=1 "${line[@]}" --hosts a:1,b:1 --devices t4 --out "$scratch/run"
    calls 1
    says err "rank 1 (t4, host b) has not started within 1 s"
    says err "--host HOST,HOST hostname"
    says err "CLEAT_RANKS_START"
    lacks err "rank 0"
    plays "trap '' TERM; sleep 12" # it ignores the signal
    exits 1 env CLEAT_RANKS_START=1 "${line[@]}" --devices 0,1 --out "$scratch/run"
    calls 1
    says err "rank 0 (Tesla T4) has not started"
    says err "rank 1 (Tesla T4) has not started"
}

# interrupt SIGNAL COMMAND...: sends the signal once the launcher runs.
interrupt() {
    local signal=$1 run
    shift
    "$@" &
    run=$!
    while kill -0 "$run" 2>/dev/null && [[ ! -e $plays/ready ]]; do sleep 0.05; done
    kill -s "$signal" "$run"
    wait "$run"
}

test_signals() {
    local signal
    for signal in TERM INT; do
        plays 'start; touch "$PLAYS/ready"; await USR2; got=" "; end_all 130'
        exits 130 interrupt "$signal" env --default-signal=INT "${line[@]}" --devices 0,1 --out "$scratch/run"
        calls 1
        signalled 0 "USR2 USR2" # orderly stop; released
    done
}

# Other commands on several devices: not restarted after a loss.
test_other_commands() {
    plays "" "start; end 1 signal 9; await USR1; end 0 exit 8" ""
    exits 0 "$cleat" eval --checkpoint "$scratch/run" --devices 0,2 --split train --quiet
    called 0 "-n 2 $(readlink -f "$cleat") eval --checkpoint $scratch/run --split train --quiet"
    not_called 0 --devices
    not_called 0 --out
    had 0 "CLEAT_RANKS_SELECTORS=0;2"
    exits 8 "$cleat" predict --checkpoint "$scratch/run" --hosts a:2 --devices t4 --data x --out "$scratch/y"
    called 1 "--host a:2"
    called 1 "predict --checkpoint $scratch/run --data x --out $scratch/y"
    says err ") was killed by signal 9"
    lacks err restarts
    exits 0 "$cleat" bench allreduce --devices 0,1 --seconds 0.1
    called 2 "bench allreduce --seconds 0.1"
    calls 3
    exits 2 "$cleat" eval --checkpoint "$scratch/run" --devices 0,1 --device 0
    says err "give only one of them"
    exits 1 "$cleat" eval --checkpoint "$scratch/none" --devices 0 # one device: in this process
    says err "$scratch/none"
    calls 3
}

export CLEAT_RANKS_LIBRARY=$stub # an existing file is enough: the ranks are simulated
make_devices
make_launcher
test_command_line
test_hosts
test_launchers
test_devices
test_output
test_restart
test_restart_without_checkpoint
test_left_out
test_shares_of_those_left
test_limits
test_codes
test_late
test_signals
test_other_commands
finish
