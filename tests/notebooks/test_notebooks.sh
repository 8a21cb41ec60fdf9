#!/usr/bin/env bash
# Executes tools/kaggle.ipynb and tools/colab.ipynb like a user: from a tarball, from a folder that Kaggle unpacked, and in a
# second session with the first session's output as read-only data.
#   test_notebooks.sh CLEAT SOURCE_DIR
# ctest: device cost=17
set -euo pipefail
cleat=$1 source=$2
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cli/checks.sh
source "$here/../cli/checks.sh"

if ! command -v jupyter-nbconvert >/dev/null || ! jupyter-nbconvert --version >/dev/null 2>&1; then
    echo "skipped, no jupyter-nbconvert"
    exit 77
fi
require_device

package=$scratch/cleat-0.0.0-linux-x86_64 # laid out like the published tarball
mkdir -p "$package/bin" "$package/share/cleat" "$scratch/home"
cp "$cleat" "$package/bin/cleat"
cp -r "$source/profiles" "$package/share/cleat/profiles"

# The smallest run. CLEAT_SETTINGS is as in the notebooks' cell 3.
tiny="run.device=${CLEAT_TEST_DEVICE:-auto} model.d_model=32 model.heads=2 model.layers=1 model.d_ff=64 train.warmup_steps=1"
tiny+=" run.self_check=never run.evaluate_every_epochs=none"

# execute NOTEBOOK NAME VARIABLE=VALUE...: runs all cells with the folders NAME/input and NAME/kept; the result is
# $scratch/NAME.ipynb.
execute() {
    local notebook=$1 name=$2
    shift 2
    mkdir -p "$scratch/$name/input" "$scratch/$name/kept" "$scratch/$name/tmp"
    exits 0 env HOME="$scratch/home" TMPDIR="$scratch/$name/tmp" CLEAT_INPUT="$scratch/$name/input" CLEAT_WORK="$scratch/$name/kept" \
        CLEAT_MOLECULES=16 "$@" jupyter-nbconvert --to notebook --execute --ExecutePreprocessor.timeout=300 \
        --output-dir "$scratch" --output "$name.ipynb" "$source/tools/$notebook.ipynb"
    if [[ -f $scratch/$name.ipynb ]]; then exits 0 python3 "$here/executed.py" "$scratch/$name.ipynb"; else : >"$scratch/out"; fi
}

# The first session runs out of time and leaves a checkpoint.
test_first_session() {
    mkdir -p "$scratch/first/input/cleat"
    tar -C "$scratch" -czf "$scratch/first/input/cleat/cleat-0.0.0-linux-x86_64.tar.gz" "${package##*/}"
    execute kaggle first CLEAT_SETTINGS="$tiny train.epochs=1000000 run.budget=stop" CLEAT_SESSION=8
    says out "ok: cleat can train on this machine"
    says out "fits  "
    says out "time is up at step"
    says out "the time is up: the next session continues from the checkpoint"
    exits 0 test -s "$scratch/first/kept/runs/rna/report.html"
    exits 0 test -s "$scratch/first/kept/runs/rna/last"
    exits 0 test -d "$scratch/first/kept/cache"
}

# The second session finds the first one's output, continues, and leaves that output unchanged.
test_second_session() {
    local before
    mkdir -p "$scratch/second/input/notebooks/me"
    cp -r "$scratch/first/input/cleat" "$scratch/second/input/cleat"
    cp -r "$scratch/first/kept" "$scratch/second/input/notebooks/me/first"
    chmod -R a-w "$scratch/second/input"
    before=$(find "$scratch/second/input" -printf '%p %s %T@ %C@\n' | sort | sha256sum)
    execute kaggle second CLEAT_SETTINGS="$tiny train.epochs=1000000 run.budget=stop" CLEAT_SESSION=4
    says out "--resume-from $scratch/second/input/notebooks/me/first/runs/rna"
    exits 0 test "$before" = "$(find "$scratch/second/input" -printf '%p %s %T@ %C@\n' | sort | sha256sum)"
    exits 0 test "$(step_of second)" -gt "$(step_of first)"
    chmod -R u+w "$scratch/second/input"
}

# step_of NAME: prints the step of its last checkpoint.
step_of() {
    local last
    last=$(<"$scratch/$1/kept/runs/rna/last")
    last=${last##*-S}
    echo $((10#${last%%.*}))
}

# A folder instead of the tarball, without executable files; the run ends.
test_complete_run() {
    mkdir -p "$scratch/complete/input"
    cp -r "$package" "$scratch/complete/input/"
    chmod a-x "$scratch/complete/input/${package##*/}/bin/cleat"
    execute colab complete CLEAT_SETTINGS="$tiny train.epochs=2"
    says out "best evaluation"
    says out "the run is complete"
    exits 0 test -s "$scratch/complete/kept/runs/rna/report.html"
}

# Without cleat, the first cell prints what to do.
test_nothing_attached() {
    mkdir -p "$scratch/nothing/input"
    exits 1 env HOME="$scratch/home" CLEAT_INPUT="$scratch/nothing/input" CLEAT_WORK="$scratch/nothing/kept" TMPDIR="$scratch" \
        jupyter-nbconvert --to notebook --execute --output-dir "$scratch" --output nothing.ipynb "$source/tools/kaggle.ipynb"
    says err "add cleat-VERSION-linux-x86_64.tar.gz there, or set REPOSITORY"
}

exits 0 python3 "$here/executed.py" --sources "$source/tools/kaggle.ipynb" "$source/tools/colab.ipynb"
test_first_session
test_second_session
test_complete_run
test_nothing_attached
finish
