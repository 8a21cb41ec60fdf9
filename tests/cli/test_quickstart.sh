#!/usr/bin/env bash
# The final output of tools/quickstart.sh matches README.md: the same lines, with numbers of the same form and nearly the same value. A second
# call prints it again. The tests' program is used: the script's steps `packages` and `build` are omitted.
#   test_quickstart.sh CLEAT SOURCE_DIR
# ctest: device slow cost=33
set -euo pipefail
program=$1
source=$2
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

cleat=$program
require_device

# Runs the script in $scratch, as in a checkout. It is a separate program because `set -e` has no effect in a function that `exits` calls.
cat >"$scratch/quickstart.sh" <<END
source "$source/tools/quickstart.sh"
packages() { :; }
build() { cleat=$program; }
cd "$scratch"
out=$scratch/runs/quickstart
main
END

# block FILE: prints the lines from the heading of the results to the output folder, without a README's indent.
block() {
    sed -n '/^ *== [0-9]* held-out chains/,/^ *all output /p' "$1" | sed 's/^    //'
}

# form: replaces digits by 9, and all digits before a point by one, because numbers may differ in size.
form() {
    sed -E 's/ +[0-9]+\.([0-9]+)/ 9.\1/; /\.[0-9]/s/[0-9]/9/g'
}

# figure NAME FILE
figure() {
    awk -v name="$1" '$1 == name { print $2 }' "$2"
}

# near NAME SHARE: checks that this run's number differs from README.md's by at most this share.
near() {
    local said printed
    checks=$((checks + 1))
    said=$(figure "$1" "$scratch/said") printed=$(figure "$1" "$scratch/printed")
    awk -v a="$said" -v b="$printed" -v share="$2" 'BEGIN { exit !(a > 0 && b > 0 && b - a <= share * a && a - b <= share * a) }' ||
        complain "$1: README.md says '$said', quickstart prints '$printed'"
}

test_readme() {
    exits 0 bash "$scratch/quickstart.sh"
    block "$source/README.md" >"$scratch/said"
    block "$scratch/out" >"$scratch/printed"
    ((failures == 0)) || return 0
    checks=$((checks + 1))
    [[ -s $scratch/said ]] || complain "README.md has no block from '== N held-out chains' to 'all output'"
    checks=$((checks + 1))
    diff <(form <"$scratch/said") <(form <"$scratch/printed") >"$scratch/err" || complain "README.md (<) is not what quickstart prints (>)"
    near loss 0.15
    near RMSD 0.15
    near lDDT 0.03
    checks=$((checks + 1))
    [[ $(cd "$scratch" && sed -nE 's/^  (a predicted|its true|the run as|all output).* (runs.*)/\2/p' printed | xargs ls -d | wc -l) == 4 ]] ||
        complain "a printed path does not exist"
}

test_second_call() {
    cp "$scratch/printed" "$scratch/first"
    exits 0 bash "$scratch/quickstart.sh"
    says out "This run is already finished"
    lacks out "== training"
    block "$scratch/out" >"$scratch/printed"
    checks=$((checks + 1))
    cmp -s "$scratch/first" "$scratch/printed" || complain "a second call prints other text"
}

test_readme
test_second_call
finish
