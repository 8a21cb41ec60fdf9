#!/usr/bin/env bash
# For the owner of a card, to run once, in about ten minutes: builds cleat if it is not built, then describes machine and driver, repeats the
# reference trainings in every precision, measures, trains a small model, and makes a passport. All of it goes into one text file to send.
# Kernels are compiled by as many processes as there are cores, before anything is timed.
# Every step has a time limit; a step that fails is named at the top of the file, and the next one begins.
#   tools/first_contact.sh [--device SEL] [--seconds S] [--out FILE] [--cleat PROGRAM]
#     --device    as for `cleat train` (auto)
#     --seconds   time for all steps but the build (600)
#     --out       the file to create (cleat-first-contact-DATE.txt)
#     --cleat     the program, if it is built already (build/cleat)
set -uo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
device=auto seconds=600 out=cleat-first-contact-$(date -u +%Y-%m-%d).txt cleat=
steps=0 failed=() summary=()
most_lines=120 most_columns=300 # of a step's output: the head and the tail are kept

usage() {
    sed -n '2,10s/^# \{0,1\}//p' "$0"
}

parse_options() {
    while (($#)); do
        case $1 in
        --device | --seconds | --out | --cleat)
            (($# > 1)) || { echo "first_contact: option $1 requires a value" >&2 && exit 2; }
            printf -v "${1#--}" %s "$2"
            shift 2
            ;;
        --help | -h) usage && exit 0 ;;
        *) usage >&2 && exit 2 ;;
        esac
    done
    [[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "first_contact: --seconds $seconds: not a number of seconds" >&2 && exit 2; }
    [[ ! -e $out ]] || { echo "first_contact: $out exists and is not overwritten; remove it or choose another --out" >&2 && exit 1; }
    : >"$out" || exit 1
    out=$(realpath "$out")
}

# share PERMILLE: that part of all the time, at least 5 seconds.
share() {
    local part=$((seconds * $1 / 1000))
    echo $((part < 5 ? 5 : part))
}

# Names and folders of the owner stay private.
redact() {
    local word script=
    while read -r _ word; do # the longest first
        ((${#word} < 4)) || script+="s|$(sed 's/[][\\.*^$|]/\\&/g' <<<"$word")|FOLDER|g;"
    done < <(for word in "$scratch" "$(dirname "$cleat")" "$top" "${HOME:-}"; do echo "${#word} $word"; done | sort -rn)
    for word in "${USER:-}" "$(hostname 2>/dev/null)"; do
        ((${#word} < 3)) || [[ $word == root ]] || script+="s|\\b$(sed 's/[][\\.*^$|]/\\&/g' <<<"$word")\\b|NAME|g;"
    done
    sed "$script"
}

# The output of a step without carriage returns, colours, and what is too long.
shorten() {
    tr '\r' '\n' | sed 's/\x1b\[[0-9;]*[A-Za-z]//g' | cut -c "1-$most_columns" |
        awk -v most="$most_lines" '{ line[NR] = $0 } END { for (i = 1; i <= NR; ++i)
            if (NR <= most || i <= most / 3 || i > NR - most * 2 / 3) print line[i]; else if (!cut++) print "[... lines left out ...]" }'
}

# step NAME LIMIT COMMAND...: runs the command for at most LIMIT seconds; its output, exit status and time go into the text.
step() {
    local name=$1 limit=$2 start=$SECONDS status=0 result=ok
    shift 2
    steps=$((steps + 1))
    printf 'first contact: %s ... ' "$name" >&2
    { timeout --kill-after=10 "$limit" "$@" >"$scratch/log" 2>&1 </dev/null; } 2>/dev/null || status=$?
    case $status in
    0) ;;
    124 | 137) result="time limit of $limit s" ;;
    *) result="exit status $status" ;;
    esac
    ((status == 0)) || failed+=("$name: $result")
    printf '%s (%d s)\n' "$result" $((SECONDS - start)) >&2
    summary+=("$(printf '%-28s %-24s %4d s' "$name" "$result" $((SECONDS - start)))")
    {
        printf '\n== %s: %s, %d s\n$ %s\n' "$name" "$result" $((SECONDS - start)) "$*"
        shorten <"$scratch/log"
    } | redact >>"$scratch/text"
    return $status
}

# Standard input: commands of cleat, one per line, without the device. As many run at once as there are cores; the output of each comes when it
# ends. Exit status: of one that failed.
together() {
    local words pid pids=() status=0
    while read -ra words; do
        while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n; done
        (text=$("$cleat" "${words[@]}" --device "$device" 2>&1 </dev/null) && code=0 || code=$?; printf '%s\n' "$text" && exit "$code") &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
    return "$status"
}

# --- steps

build() {
    if [[ -z $cleat ]]; then
        cleat=$top/build/cleat
        # shellcheck disable=SC2016 # expanded by the shell that bash -c starts
        [[ -x $cleat ]] || step build 1800 bash -c 'source "$1/tools/quickstart.sh" && packages && build' first_contact "$top"
    fi
    [[ -x $cleat ]] && cleat=$(realpath "$cleat")
}

# Output of the vendor's drivers and tools, if there are any.
describe_host() {
    local words
    uname -srm
    grep -h '^PRETTY_NAME=' /etc/os-release
    git -C "$top" log -1 --format='cleat %h of %cs' 2>/dev/null
    "$cleat" --version
    lspci -nn 2>/dev/null | grep -E 'VGA|3D|Display'
    for words in "nvidia-smi" "nvidia-smi --query-gpu=clocks.sm,clocks.max.sm,clocks.mem,power.draw,power.limit,pcie.link.gen.current,pcie.link.width.current,temperature.gpu --format=csv" \
        "rocm-smi --showproductname --showdriverversion" "clinfo -l"; do
        # shellcheck disable=SC2086 # words are words
        ! command -v ${words%% *} >/dev/null || { echo "\$ $words" && timeout 15 $words 2>&1; }
    done
    ls /etc/OpenCL/vendors
}

verify() {
    local precision
    for precision in f32 f16 bf16; do
        # shellcheck disable=SC2016 # expanded by the shell that bash -c starts
        step "verify $precision" "$(share 60)" bash -c 'cd "$top/tests/golden" && printf "verify --precision $1 %s\n" *.safetensors | together' \
            first_contact "$precision"
    done
}

data() {
    step data "$(share 20)" "$cleat" data make rna --out "$scratch/data" --count 200
}

# The programs of the steps below: reference trainings of the library (passport), its workloads and ours, the small model. The longest first.
programs() {
    local precision more="W3 W6_segformer W4 sgemm_1024 conv_64 attention_L512_d64 layer_norm_8192x512"
    for precision in f32 f16 bf16; do
        # shellcheck disable=SC2086 # words are words
        printf "bench %s --steps 1 --precision $precision\n" W5_64 W1_B2L512 W2 $more
        echo "train profiles/rna_small.ini --set data.path=data --set train.epochs=1 --set train.precision=$precision --out compiled_$precision"
        sed -n "s/^type *= */verify --precision $precision --model /p" profiles/*.ini | sort -u
        more=W9_vit_s16
    done
}

# The passport measures in f32; cards are bought for the others.
bench() {
    local precision name
    for precision in f16 bf16; do
        for name in W1_B2L512 W2 W5_64 W9_vit_s16; do
            step "bench $name $precision" "$(share 25)" "$cleat" bench "$name" --device "$device" --precision "$precision" --seconds 1
        done
    done
}

# run NAME SETTING...: a short training of generated molecules, with the times of some steps' kernels, and the monitor's last records.
run() {
    local name=$1 folder=$scratch/run_$1 file status=0
    shift
    step "train $name" "$(share 60)" "$cleat" train "$top/profiles/rna_small.ini" --device "$device" --set "data.path=$scratch/data" --set train.epochs=3 \
        --trace wait=4,warmup=2,active=4,repeat=1 --out "$folder" "$@" || status=$?
    for file in "$folder"/profile-*.txt; do
        [[ ! -f $file ]] || { printf '\n-- kernels of train %s\n' "$name" && shorten <"$file"; } | redact >>"$scratch/text"
    done
    [[ ! -f $folder/system.jsonl ]] || { printf '\n-- monitor of train %s\n' "$name" && tail -n 3 "$folder/system.jsonl" | cut -c 1-1500; } | redact >>"$scratch/text"
    return $status
}

# The same run twice must have the same metrics, bit for bit, unless one of the two did not end.
repeatable() {
    local metrics
    for metrics in run_f32 run_again; do grep -v '"kind":"start"' "$scratch/$metrics/metrics.jsonl" | cksum; done | sort | uniq -c
    cmp <(grep -v '"kind":"start"' "$scratch/run_f32/metrics.jsonl") <(grep -v '"kind":"start"' "$scratch/run_again/metrics.jsonl")
}

train() {
    local ended=true
    [[ -d $scratch/data ]] || return
    run f32 || ended=false
    run again || ended=false
    ! $ended || step "same bits twice" 20 bash -c repeatable
    run f16 --set train.precision=f16
    run bf16 --set train.precision=bf16
}

passport() {
    local time
    time=$(share 250)
    step passport $((time + 30)) "$cleat" passport --device "$device" --seconds "$time" --out "$scratch/passport.txt"
}

# --- the file

# The passport is the end of the file, unchanged: `sed '1,/^== the passport$/d' FILE` is what tools/passport_merge.py reads.
write_file() {
    local line
    {
        printf 'first contact of cleat with a device, %s, %d s\n' "$(date -u +%Y-%m-%d)" "$SECONDS"
        printf '%d steps, %d failed\n' "$steps" "${#failed[@]}"
        for line in "${failed[@]}"; do printf 'FAILED %s\n' "$line"; done
        printf '\n'
        printf '%s\n' "${summary[@]}"
        cat "$scratch/text"
        printf '\n== the passport\n'
        if [[ -f $scratch/passport.txt ]]; then cat "$scratch/passport.txt"; else echo "none"; fi
    } >"$out"
}

main() {
    parse_options "$@"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    trap 'write_file; echo "stopped; what was done is in $out" >&2; exit 130' INT TERM
    : >"$scratch/text"
    if build; then
        export -f describe_host repeatable programs together
        export top cleat scratch device
        step host 60 bash -c describe_host
        step devices 30 "$cleat" devices
        step doctor "$(share 60)" "$cleat" doctor --device "$device" --seconds 20
        verify
        data
        ln -s "$top/profiles" "$scratch/profiles"
        # shellcheck disable=SC2016 # expanded by the shell that bash -c starts
        step compile "$(share 150)" bash -c 'cd "$scratch" && programs | together'
        passport
        train
        bench
    fi
    write_file
    printf '%s: %d bytes, %d of %d steps failed. Read it, then send it: paste it into an issue of cleat.\n' "$out" "$(wc -c <"$out")" "${#failed[@]}" "$steps"
    ((${#failed[@]} == 0))
}

main "$@"
