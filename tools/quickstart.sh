#!/usr/bin/env bash
# From a fresh checkout to a trained model: installs missing packages, builds, generates RNA molecules, trains a small model, and
# evaluates it on held-out molecules. A second call shows the finished run again; after Ctrl-C, a second call resumes the run.
#   tools/quickstart.sh [--device auto|gpu|cpu|N|NAME] [--out DIR] [--fresh]
#     --device   device to train on (auto: the best available one)
#     --out      output folder (runs/quickstart)
#     --fresh    delete the run and start again
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
profile=$top/profiles/rna_small.ini
molecules=1500 # as the profile's head says
device=auto
out=$top/runs/quickstart
fresh=false
made=(data data.part run predictions held_out.fasta eval.part eval.txt) # in $out, beside the fingerprint

fail() {
    printf 'quickstart: %s\n' "$@" >&2
    exit 1
}

usage() {
    sed -n '2,7s/^# \{0,1\}//p' "$0"
}

title() {
    printf '\n== %s\n' "$*"
}

parse_options() {
    while (($#)); do
        case $1 in
        --device | --out)
            (($# > 1)) || fail "option $1 requires a value"
            if [[ $1 == --out ]]; then out=$2; else device=$2; fi
            shift 2
            ;;
        --fresh) fresh=true && shift ;;
        --help | -h) usage && exit 0 ;;
        *) usage >&2 && exit 2 ;;
        esac
    done
}

# quietly LOG COMMAND...: what the command prints goes into the log; its end is shown on failure.
quietly() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 </dev/null && return
    tail -n 30 "$log" >&2
    fail "failed: $*" "the complete log: $log"
}

packages() {
    "$top/tools/setup.sh"
}

build() {
    local folder=$top/build
    mkdir -p "$folder"
    if [[ ! -f $folder/build.ninja && ! -f $folder/Makefile ]]; then
        quietly "$folder/configure.log" cmake -S "$top" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCLEAT_TESTS=OFF
    fi
    quietly "$folder/build.log" cmake --build "$folder" --target cleat libcleat_shared
    cleat=$folder/cleat
    echo "$cleat"
}

# What the run depends on. A run made from something else is not shown as this one's result.
fingerprint() {
    echo "molecules $molecules, all of them also as PDB files"
    echo "device $device"
    cksum <"$profile"
}

# Only a folder with a fingerprint belongs to quickstart: nothing in another one is reused, overwritten or deleted.
check_folder() {
    local name
    [[ ! -f $out/fingerprint ]] || return 0
    for name in "${made[@]}"; do
        [[ ! -e $out/$name ]] || fail "$out/$name exists, but was not created by quickstart ($out/fingerprint is missing)" \
            "choose another folder with --out"
    done
}

forget() {
    local name
    for name in "${made[@]}"; do rm -rf "${out:?}/$name"; done
}

prepare_folder() {
    mkdir -p "$out"
    out=$(cd "$out" && pwd)
    if [[ -f $out/fingerprint ]]; then
        if $fresh; then
            forget
        elif [[ $(fingerprint) != "$(<"$out/fingerprint")" ]]; then
            echo "the profile or the device differs from that of this run: starting again"
            forget
        fi
    fi
    fingerprint >"$out/fingerprint"
}

make_data() {
    local labels=$out/data/labels.csv
    if [[ -f $labels ]]; then
        echo "using the molecules in $out/data"
        return
    fi
    rm -rf "$out/data.part"
    "$cleat" data make rna --out "$out/data.part" --count "$molecules" --pdb "$molecules" >/dev/null
    mv "$out/data.part" "$out/data"
    echo "$molecules hairpins and duplexes written to $out/data"
}

train() {
    local resume=()
    [[ ! -f $out/run/last ]] || resume=(--resume)
    "$cleat" train "$profile" --device "$device" --set "data.path=$out/data" --out "$out/run" "${resume[@]}"
}

measure() {
    "$cleat" --log warning eval "$profile" --device "$device" --set "data.path=$out/data" --checkpoint "$out/run" --split test >"$out/eval.part"
}

# Sequences only: the model's input for a molecule without a known structure.
predict() {
    awk -F, '$4 == "test" { print ">" $1 "\n" $2 }' "$out/data/sequences.csv" >"$out/held_out.fasta"
    "$cleat" --log warning predict "$profile" --device "$device" --checkpoint "$out/run" --data "$out/held_out.fasta" --out "$out/predictions"
}

# The run as one page for a browser.
page() {
    "$cleat" --log warning report "$out/run" >/dev/null
}

# figure NAME: a figure of the evaluation.
figure() {
    awk -v name="$1" '$1 == name { print $2 }' "$out/eval.txt"
}

# shown PATH: relative where it lies below the current folder.
shown() {
    echo "${1#"$PWD"/}"
}

show() {
    local held_out longest
    held_out=$(grep -c '^>' "$out/held_out.fasta")
    longest=$(awk '/^>/ { name = substr($0, 2); next } length($0) > most { most = length($0); best = name } END { print best }' "$out/held_out.fasta")
    title "$held_out held-out chains, not used for training"
    printf '  %-8s %10.4f\n' loss "$(figure loss)"
    printf '  %-8s %10.3f   angstrom, C1'"'"' atoms after superposition\n' RMSD "$(figure rmsd)"
    printf '  %-8s %10.3f   0 to 1, fraction of preserved local distances\n' lDDT "$(figure lddt)"
    printf '\n  a predicted molecule   %s\n' "$(shown "$out/predictions/$longest.pdb")"
    printf '  its true structure     %s\n' "$(shown "$(true_structure "$longest")")"
    [[ ! -f $out/run/report.html ]] || printf '  the run as a page      %s\n' "$(shown "$out/run/report.html")"
    printf '  all output             %s\n' "$(shown "$out")"
}

# true_structure CHAIN: the PDB file of a chain's molecule (a file holds all chains of a molecule).
true_structure() {
    local file=$out/data/pdb/$1.pdb
    [[ -f $file ]] || file=$out/data/pdb/${1%_*}.pdb
    echo "$file"
}

interrupted() {
    printf '\nstopped; run the same command to resume\n' >&2
    exit 130
}

main() {
    parse_options "$@"
    check_folder
    trap interrupted INT TERM
    title "packages"
    packages
    title "build"
    build
    title "devices"
    "$cleat" devices
    prepare_folder
    if [[ -f $out/eval.txt ]]; then
        show
        printf '\nThis run is already finished; --fresh starts again.\n'
        return
    fi
    title "data"
    make_data
    title "training"
    train
    title "held-out molecules"
    measure
    predict
    page
    mv "$out/eval.part" "$out/eval.txt"
    show
}

[[ ${BASH_SOURCE[0]} != "$0" ]] || main "$@" # a test sources this file
