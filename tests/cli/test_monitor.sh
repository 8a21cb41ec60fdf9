#!/usr/bin/env bash
# `cleat monitor` on the records of a run in monitor_run/: the text at two widths, running, ended and killed runs,
# restoring the terminal. Needs no device.
#   test_monitor.sh CLEAT SOURCE_DIR
# ctest: quick
set -euo pipefail
cleat=$1
fixture=$2/tests/cli/monitor_run
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"
export TZ=UTC LC_ALL=C.UTF-8
unset JPY_PARENT_PID JPY_SESSION_NAME KAGGLE_KERNEL_RUN_TYPE COLAB_RELEASE_TAG COLAB_GPU # of the caller
escape=$'\033'
end='{"kind":"end","time":1790000009.000,"step":48,"status":"interrupted","text":"stopped by a test","seconds":9}'

# copy NAME: makes a separate run folder.
copy() {
    mkdir "$scratch/$1"
    cp "$fixture"/*.jsonl "$scratch/$1"
    run=$scratch/$1
}

# held COMMAND...: runs a command while another process holds the run folder's lock.
held() {
    flock "$run/.train.lock" "$@"
}

same_text() {
    exits 0 diff -u "$fixture/width_$1.txt" <("$cleat" monitor "$fixture" --once --width "$1")
}

test_once() {
    same_text 40
    same_text 100
    exits 0 test "$(wc -L <"$fixture/width_40.txt")" -le 40
    exits 0 env LC_ALL=C "$cleat" monitor "$fixture" --once # only characters of this locale
    exits 1 grep -q '[^ -~]' "$scratch/out"
    exits 0 "$cleat" monitor "$fixture" --json
    json values busy_device
    exits 0 "$cleat" monitor "$fixture" # killed: prints one report of lines, then ends
    says out "hint loader_bound: the device had no work for 12 % of the time"
    says out "killed  step 48/200  loss 0.6631  rmsd 4.3, best 4.1 at step 20"
}

test_states() {
    copy states
    exits 0 held "$cleat" monitor "$run" --once
    says out "states, running"
    says out "19.0 s left"
    printf '{"kind":"sam' >>"$run/system.jsonl" # an incomplete line
    exits 0 held "$cleat" monitor "$run" --once
    says out "states, running"
    cp "$fixture/system.jsonl" "$run"
    printf '%s\n' "$end" >>"$run/system.jsonl"
    exits 0 "$cleat" monitor "$run" --once
    says out "states, interrupted"
    says out "stopped by a test"
    sed 's/1790000000.0/1790000010.0/;q' "$fixture/system.jsonl" >>"$run/system.jsonl" # resumed, then killed
    exits 0 "$cleat" monitor "$run" --once
    says out "states, killed"
}

# A time budget that shortens the schedule.
test_schedule() {
    copy schedule
    printf '%s\n' '{"kind":"event","time":1790000008.000,"step":48,"what":"note","name":"shorter_schedule","text":"short","command":"","schedule":{"epochs":4,"steps_per_epoch":20,"total_steps":80}}' >>"$run/system.jsonl"
    exits 0 held "$cleat" monitor "$run" --once --width 100
    says out "60 %, step 48 of 80, epoch 2.40 of 4, 4.0 s left"
}

# It prints a line occasionally, and exits when the run ends.
test_follow() {
    copy follow
    (
        flock 9
        "$cleat" monitor "$run" --every 0.1 >"$scratch/lines" 2>&1 9>&- &
        sleep 1
        printf '%s\n' "$end" >>"$run/system.jsonl"
        wait $!
    ) 9>"$run/.train.lock"
    exits 0 grep -c "^running  step 48/200" "$scratch/lines"
    exits 0 grep -q "^interrupted  step 48/200" "$scratch/lines"
    exits 0 test "$(grep -c "^hint loader_bound" "$scratch/lines")" = 1
}

test_wrong() {
    exits 2 "$cleat" monitor
    exits 2 "$cleat" monitor "$fixture" --width 10
    says err "--width 10: must be an integer from 24 to 1000"
    exits 2 "$cleat" monitor "$fixture" --every -1
    exits 1 "$cleat" monitor "$scratch/missing" --once
    says err missing
    exits 1 "$cleat" monitor "$scratch/missing" --json
    copy silent
    rm "$run/system.jsonl"
    exits 0 "$cleat" monitor "$run" --once
    says out "run.monitor = none"
    says out "0.6631"
}

# on_terminal KEYS NAME=VALUE...: watches the run on a terminal, and types KEYS after a second. Ctrl-C reaches the shell
# too, whichever SHELL names: dash would end before it prints the status.
on_terminal() {
    local keys=$1
    shift
    (sleep 1 && printf '%s' "$keys") | env TERM=xterm "$@" script -qec "trap : INT; stty cols 60 rows 20; stty -a >'$scratch/before'; '$cleat' monitor '$run'; echo status \$?; stty -a >'$scratch/after'" /dev/null >"$scratch/out" 2>"$scratch/err" || complain "script failed"
}

test_terminal() {
    command -v script >/dev/null || return 0
    copy terminal
    exec 8>"$run/.train.lock"
    flock 8
    for keys in q $'\003'; do
        on_terminal "$keys" NO_COLOR=
        says out "${escape}[?1049h"
        says out "${escape}[?25h${escape}[?1049l" # restores the screen and the cursor
        says out "${escape}[32mrunning"
        says out "status 0"
        exits 0 cmp "$scratch/before" "$scratch/after"
    done
    on_terminal q NO_COLOR=1
    exits 1 grep -qF "${escape}[32m" "$scratch/out"
    on_terminal $'\003' JPY_PARENT_PID=1 # a notebook's output cannot be redrawn
    lacks out "${escape}[?1049h"
    says out "running  step 48/200"
    exec 8>&-
    on_terminal "" # no process trains: the monitor exits
    says out "status 0"
    says out "killed"
}

test_once
test_states
test_schedule
test_follow
test_wrong
test_terminal
finish
