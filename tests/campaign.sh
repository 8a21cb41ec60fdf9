#!/usr/bin/env bash
# Campaigns against the program: killed runs and failing system calls. In the end a run must have the bytes of an unbroken run.
#   campaign.sh kills N CLEAT [SEED]             N times SIGKILL, SIGTERM, SIGINT, or SIGSTOP and SIGCONT at a random moment of a training run
#   campaign.sh faults N CLEAT FAULTS.so [SEED]  N times a random call fails (files, OpenCL: tests/faults/faults.c), in turn
#                                                in train, resume, eval, predict, export and plan
#   campaign.sh cells N CLEAT FAULTS.so [COMMAND...]  every function that a command calls fails N times: its first call, its last, and between
# Families and precisions alternate. Each failure prints a line; the last line has the totals. Exit status 77: no device.
set -euo pipefail
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/cli/checks.sh"
(($# >= 3)) || { sed -n '2,8s/^# \{0,1\}//p' "$0" && exit 2; }
campaign=$1 times=$2 cleat=$3 happened=0
case $campaign in
faults) preload=$4 seed=${5:-1} ;;
cells) preload=$4 seed=1 && shift 4 && commands=("$@") ;;
*) seed=${4:-1} ;;
esac
chats=$(cd "$(dirname "$0")/data/chats" && pwd)
RANDOM=$seed
export LC_ALL=C
require_device
cd "$scratch"

# --- data and profiles, a second of training each

make_data() {
    "$cleat" data make rna --out rna --count 12 >/dev/null 2>&1
    awk 'BEGIN { srand(2); print "text,label"; for (i = 0; i < 60; i++) { c = int(3 * rand()); printf "word%d and %d then word%d,class%d\n", c,
        i, c, c } }' >texts.csv
    awk 'BEGIN { srand(3); for (i = 0; i < 60; i++) { for (w = 0; w < 5; w++) { k = int(6 * rand()); print "w" k "\t" (k > 3 ? "B-x" : "O") }
        print "" } }' >tags.conll
    awk 'BEGIN { srand(4); print "when,a,b"; for (i = 0; i < 300; i++) printf "%d,%.3f,%.3f\n", 1500000000 + 3600 * i, sin(i / 2) + rand() / 9, cos(i / 2) }' >waves.csv
    awk 'BEGIN { srand(6); for (i = 0; i < 60; i++) printf "{\"messages\": [{\"role\": \"user\", \"content\": \"%d\"}, {\"role\": \"assistant\", \"content\": \"%d\"}]}\n",
        i, int(9 * rand()) }' >chats.jsonl
    mkdir -p images
    printf '\0\0\10\3\0\0\0\74\0\0\0\10\0\0\0\10' >images/train-images-idx3-ubyte
    printf '\0\0\10\1\0\0\0\74' >images/train-labels-idx1-ubyte
    awk 'BEGIN { srand(5); for (i = 0; i < 60; i++) for (p = 0; p < 64; p++) printf "%c", 33 + (i % 2 ? p % 8 : p / 8) * 8 + int(20 * rand()) }' >>images/train-images-idx3-ubyte
    awk 'BEGIN { for (i = 0; i < 30; i++) printf "\1\2" }' | tr '\1\2' '\0\1' >>images/train-labels-idx1-ubyte
}

# make_base: a language model, to start adapters from.
make_base() {
    [[ ! -d base ]] || return 0
    : >base.ini
    "$cleat" train base.ini --set model.type=causal_lm --set "data.path=$scratch/chats.jsonl" --set "data.vocabulary=$chats/tokenizer.json" --set data.template=chatml \
        --set data.max_length=32 --set model.max_positions=32 --set model.d_model=64 --set model.heads=2 --set model.layers=1 --set model.d_ff=64 --set train.epochs=1 \
        --set run.self_check=never --out base --quiet >"$scratch/out" 2>"$scratch/err" || { complain "base: exit status $?" && finish; }
}

transformer=(model.d_model=16 model.heads=2 model.layers=1 model.d_ff=16 model.dropout=0.1)
cases=("rna f32" "texts f16" "series f32" "tags bf16" "images f32" "rna f16" "images bf16" "texts f32" "series f16" "rna bf16" "chats f32" "chats bf16" "blocks f32" "blocks bf16")
# CLEAT_CAMPAIGN: a regular expression of the cases to take
[[ ! ${CLEAT_CAMPAIGN:-} ]] || mapfile -t cases < <(printf '%s\n' "${cases[@]}" | grep -E "$CLEAT_CAMPAIGN")

# choose CASE: sets `settings` for a family in a precision.
choose() {
    read -r family precision <<<"$1"
    settings=("train.precision=$precision" train.epochs=6 train.effective_batch_size=4 train.batch_size=2 train.warmup_steps=2
        run.evaluate_every_epochs=1 run.checkpoint_every_epochs=1 run.monitor=none run.self_check=never)
    case $family in
    rna) data=$scratch/rna && settings+=(model.type=rna_transformer "data.path=$data" "${transformer[@]}" data.mutation=0.3 train.average_decay=0.8) ;;
    texts) data=$scratch/texts.csv && settings+=(model.type=text_classifier "data.path=$data" "${transformer[@]}" data.vocabulary_size=64 data.max_length=16) ;;
    tags) data=$scratch/tags.conll && settings+=(model.type=text_tagger "data.path=$data" "${transformer[@]}" data.vocabulary_size=64 data.max_length=16) ;;
    series) data=$scratch/waves.csv && settings+=(model.type=series_lstm "data.path=$data" model.hidden=16 model.layers=1 data.lookback=12 data.horizon=3 train.epochs=1
        train.effective_batch_size=16 run.checkpoint_every_minutes=1) ;;
    chats | blocks) data=$scratch/chats.jsonl && make_base && settings+=(model.type=causal_lm "data.path=$data" "model.init=$scratch/base" train.lora_rank=4 data.template=chatml
        data.max_length=32 train.lora_dropout=0.1 train.frozen_weights="$([[ $family == blocks ]] && echo nf4 || echo float)") ;;
    images) data=$scratch/images && settings+=(model.type=image_resnet "data.path=$data" model.width=4 model.stem=small data.image_size=8 data.val_fraction=0.2 data.flip=true) ;;
    esac
    : >"$family.ini"
    options=()
    local setting
    for setting in "${settings[@]}"; do options+=(--set "$setting"); done
}

# train_into FOLDER: starts or resumes a run.
train_into() {
    local more=()
    if [[ -e $1/last ]]; then more=(--resume); else rm -rf "$1"; fi
    "$cleat" train "$family.ini" "${options[@]}" --out "$1" --quiet "${more[@]}"
}

# records FOLDER: the metrics, without start times.
records() { grep -v '^{"kind":"start"' "$1/metrics.jsonl"; }

# same FOLDER FOLDER: checks that the runs have the same parameters, moments, metrics and best checkpoint.
same() {
    local pointer file
    for pointer in last best; do
        for file in model.safetensors optim.safetensors; do
            cmp "$1/$(<"$1/$pointer")/$file" "$2/$(<"$2/$pointer")/$file" >"$scratch/different" 2>&1 || return 1
        done
    done
    cmp <(records "$1") <(records "$2") >"$scratch/different" 2>&1
}

# unbroken: trains the reference run once for each case, and measures how long it takes.
declare -A milliseconds
unbroken() {
    local begin=${EPOCHREALTIME/./}
    whole=$scratch/whole_${family}_$precision
    [[ ! -d $whole ]] || return 0
    train_into "$whole" >"$scratch/out" 2>"$scratch/err" </dev/null || { complain "$family $precision: the unbroken run ended with exit status $?" && finish; }
    milliseconds[$whole]=$(((${EPOCHREALTIME/./} - begin) / 1000))
}

# --- kills

declare -A sent

# break_once: starts or resumes, and sends one signal; false if the run ended earlier.
break_once() {
    local signals=(KILL TERM INT STOP KILL) signal delay process status=0
    signal=${signals[RANDOM % 5]}
    delay=$((50 + RANDOM % milliseconds[$whole]))
    train_into "$scratch/run" >"$scratch/out" 2>"$scratch/err" </dev/null &
    process=$!
    sleep "$((delay / 1000)).$(printf '%03d' $((delay % 1000)))"
    # the shell that waits is the parent of the program
    local program
    program=$(pgrep -P "$process" || true)
    if [[ ! $program ]] || ! kill -s "$signal" "$program" 2>/dev/null; then
        wait "$process" || complain "$family $precision: exit status $? without a signal"
        return 1
    fi
    sent[$signal]=$((${sent[$signal]:-0} + 1))
    if [[ $signal == STOP ]]; then
        sleep 0.3
        kill -s CONT "$program"
    fi
    wait "$process" || status=$?
    case $signal:$status in
    KILL:137 | TERM:130 | INT:130 | *:0) ;;
    *) complain "$family $precision: SIG$signal after $delay ms: exit status $status" ;;
    esac
    ((status != 0))
}

campaign_kills() {
    local broken=0 turn=0 attempts
    while ((broken < times)); do
        choose "${cases[turn++ % ${#cases[@]}]}"
        unbroken
        rm -rf "$scratch/run"
        attempts=0
        while ((attempts++ < 4)) && break_once; do broken=$((broken + 1)); done
        if ((attempts > 4)); then train_into "$scratch/run" >"$scratch/out" 2>"$scratch/err" </dev/null || complain "$family $precision: exit status $? of the last resume"; fi
        checks=$((checks + 1))
        same "$whole" "$scratch/run" || complain "$family $precision: other bytes than the unbroken run (seed $seed, run $turn): $(<"$scratch/different")"
    done
    for signal in "${!sent[@]}"; do printf 'SIG%s %d, ' "$signal" "${sent[$signal]}"; done
    printf '%d runs broken %d times\n' "$turn" "$broken"
}

# --- faults

# command_of WHAT: sets `line`, and `result`, the file or folder that it writes.
command_of() {
    local checkpoint
    checkpoint=$whole/$(<"$whole/last")
    result=$scratch/result
    case $1 in
    train | resume) result=$scratch/run line=("$cleat" train "$family.ini" "${options[@]}" --out "$result" --quiet) ;;
    plan) result='' line=("$cleat" plan "$family.ini" "${options[@]}" --card t4) ;;
    eval) result='' line=("$cleat" eval "$family.ini" "${options[@]}" --checkpoint "$whole" --split all) ;;
    predict) line=("$cleat" predict "$family.ini" "${options[@]}" --checkpoint "$checkpoint" --data "$data" --out "$result") ;;
    export) line=("$cleat" export "$checkpoint" --format cleat --out "$result") ;;
    esac
    [[ $1 != resume ]] || line+=(--resume)
}

# prepare WHAT: creates what the command requires.
prepare() {
    rm -rf "$scratch/run" "$scratch/result"
    if [[ $1 == resume ]]; then # a run after its first checkpoint
        cp -r "$scratch/started_${family}_$precision" "$scratch/run"
    fi
}

# start_of_case: makes an interrupted run to resume.
start_of_case() {
    local started=$scratch/started_${family}_$precision process
    [[ ! -d $started ]] || return 0
    train_into "$started" >/dev/null 2>&1 </dev/null &
    process=$!
    while kill -0 "$process" 2>/dev/null && [[ ! -e $started/last ]]; do sleep 0.02; done
    pkill -KILL -P "$process" 2>/dev/null || true
    wait "$process" || true
}

# counts WHAT: sets `names` and how often the unbroken command calls each function; keeps its result.
counts() {
    local kept=$scratch/${1}_${family}_$precision
    report=$kept.report
    [[ ! -e $report ]] || return 0
    prepare "$1"
    rm -f "$report"
    CLEAT_FAULT_FOLDER=$scratch CLEAT_FAULT_REPORT=$report LD_PRELOAD=$preload "${line[@]}" >"$scratch/out" 2>"$scratch/err" </dev/null ||
        complain "$1 of $family $precision: exit status $? without a fault"
    cp "$scratch/out" "$kept.out"
    if [[ $result && $1 != train && $1 != resume ]]; then cp -r "$result" "$kept.result"; fi
}

# equal_result WHAT: the result equals the unbroken command's.
equal_result() {
    local kept=$scratch/${1}_${family}_$precision
    case $1 in
    train | resume) same "$whole" "$scratch/run" ;;
    plan | eval) cmp -s "$kept.out" "$scratch/out" ;;
    *) diff -rq "$kept.result" "$result" >/dev/null ;;
    esac
}

# whole_files WHAT: every file of the result that exists equals the unbroken command's.
whole_files() {
    local file
    while read -r file; do
        cmp "$scratch/${1}_${family}_$precision.result/$file" "$result/$file" >"$scratch/different" 2>&1 || return 1
    done < <(cd "$result" && find . -type f)
}

# calls_of: prints a line NAME CALLS for each function of the report.
calls_of() { awk '{ sum[$1] += $2 } END { for (name in sum) print name, sum[name] }' "$report" | sort; }

# one_fault WHAT: makes a random call fail.
one_fault() {
    local names name calls n
    mapfile -t names < <(calls_of)
    read -r name calls <<<"${names[RANDOM % ${#names[@]}]}"
    n=$((1 + (RANDOM * 32768 + RANDOM) % calls))
    if ((RANDOM % 4 == 0)); then n="$n+"; fi
    fault_at "$1" "$name" "$n"
}

# fault_at WHAT NAME N: makes the N-th call of NAME fail.
fault_at() {
    local what=$1 name=$2 n=$3 how codes=(-5 -6) errors=(ENOSPC EIO short EMFILE) status=0 fault
    if [[ $name == cl* ]]; then how=${codes[RANDOM % 2]}; else how=${errors[RANDOM % 4]}; fi
    fault="$what of $family $precision, $name:$n:$how"
    prepare "$what"
    rm -f "$scratch/fault"
    CLEAT_FAULT=$name:$n:$how CLEAT_FAULT_FOLDER=$scratch CLEAT_FAULT_REPORT=$scratch/fault LD_PRELOAD=$preload timeout -k 5 300 "${line[@]}" >"$scratch/out" 2>"$scratch/err" </dev/null || status=$?
    checks=$((checks + 1))
    # the number of calls varies slightly with threads, and a killed process writes no report
    if grep -qs '^fault ' "$scratch/fault"; then happened=$((happened + 1)); fi
    statuses[$status]=$((${statuses[$status]:-0} + 1))
    if ((status == 124 || (status > 127 && status != 130))); then
        complain "$fault: exit status $status"
    elif ((status == 0)); then
        # with less memory, micro-batches are smaller, and sums are rounded in a different order
        grep -q "out of device memory" "$scratch/err" || equal_result "$what" || complain "$fault: exit status 0, but a different result"
    else
        [[ -s $scratch/err ]] || complain "$fault: exit status $status without a message"
        if [[ $what == train || $what == resume ]]; then
            cut=0
            grep -q "out of device memory" "$scratch/err" && cut=1
            train_into "$scratch/run" >"$scratch/out" 2>"$scratch/err" </dev/null || complain "$fault: the run cannot continue: exit status $?"
            ((cut)) || same "$whole" "$scratch/run" || complain "$fault: resumed, but with other bytes than the unbroken run"
        elif [[ $result && -e $result ]]; then
            whole_files "$what" || complain "$fault: exit status $status, and part of a file is left"
        fi
    fi
}

campaign_faults() {
    local commands=(train resume eval predict export plan) turn
    declare -gA statuses
    for ((turn = 0; turn < times; turn++)); do
        choose "${cases[turn / 12 % ${#cases[@]}]}"
        unbroken
        start_of_case
        command_of "${commands[turn % 6]}"
        counts "${commands[turn % 6]}"
        one_fault "${commands[turn % 6]}"
    done
    for status in "${!statuses[@]}"; do printf 'exit status %d: %d, ' "$status" "${statuses[$status]}"; done
    report_happened
}

# report_happened: detects a library that replaces nothing.
report_happened() {
    printf '%d calls to fail, %d failed\n' "$checks" "$happened"
    ((happened * 10 >= checks * 8)) || complain "only $happened of $checks calls failed"
}

# Every function that each command calls.
campaign_cells() {
    local what name calls step at n turn=0 cells
    declare -gA statuses
    ((${#commands[@]})) || commands=(train resume eval predict export plan)
    for what in "${commands[@]}"; do
        choose "${cases[turn++ % ${#cases[@]}]}"
        unbroken
        start_of_case
        command_of "$what"
        counts "$what"
        cells=0
        while read -r name calls; do
            cells=$((cells + 1))
            for ((step = 0, n = 0; step < times; step++)); do
                at=$((1 + step * (calls - 1) / (times > 1 ? times - 1 : 1)))
                if ((at > n)); then n=$at && fault_at "$what" "$name" "$n"; fi
            done
        done < <(calls_of)
        printf '%s of %s %s: %d functions\n' "$what" "$family" "$precision" "$cells"
    done
    for status in "${!statuses[@]}"; do printf 'exit status %d: %d, ' "$status" "${statuses[$status]}"; done
    report_happened
}

make_data
"campaign_$campaign"
finish
