#!/usr/bin/env bash
# Packs all tests that run kernels into cleat-card-tests-ARCH.tar.gz, with their libraries, the files that they read and the reference
# trajectories. It runs on a machine that has glibc, bash and an OpenCL driver: `./run.sh` in the unpacked folder (card_tests_run.sh).
#   tools/package/card_tests.sh BUILD OUT [--only REGEX] [--xz]
# BUILD: a configured and built tree; OUT: the folder for the archive; REGEX: of the names of tests (`^(ops|device)\.`);
# --xz: 14 MB instead of 108, for machines that have xz. Trajectories of CLEAT_SHARED/golden (../shared/golden) are packed too.
# Needs patchelf. Exit code 3: the archive needs a glibc newer than 2.35.
set -euo pipefail

# shellcheck source=tools/package/tarball.sh
source "$(dirname "${BASH_SOURCE[0]}")/tarball.sh"

only=. ending=tar.gz
[[ $# -ge 2 ]] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
build=$(cd "$1" && pwd) out=$2
shift 2
while (($#)); do
    case $1 in
    --only) only=$2 && shift ;;
    --xz) ending=tar.xz compress=(xz -9 -T1) ;;
    *) fail "unknown option $1" ;;
    esac
    shift
done
command -v patchelf >/dev/null || fail "patchelf is missing: apt-get install patchelf"
top=$(cd "$here/../.." && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
name=cleat-card-tests-$(uname -m)
tree=$out/$name
rm -rf "$tree"
mkdir -p "$tree"/{bin,lib,source,shared}

# Tests of the label device that are programs of the build; the longest first, by the costs in their first lines.
while read -r test; do
    program=$build/tests/${test//./_}
    [[ $test =~ $only && -x $program ]] || continue
    install -m 755 -s "$program" "$tree/bin/$test"
    cost=$(grep -oE -m 1 'ctest: .*cost=[0-9]+' "$top/tests/${test/.//test_}.c" 2>/dev/null || echo "=1")
    echo "${cost##*=} $test"
done < <(ctest --test-dir "$build" -N -L '^device$' | sed -nE 's/^ *Test +#[0-9]+: //p') | sort -k1,1nr -k2 | cut -d' ' -f2 >"$tree/tests.txt"
[[ -s $tree/tests.txt ]] || fail "no test has a name like '$only'"
install -m 755 -s "$build/cleat" "$tree/bin/cleat"
install -m 755 "$here/card_tests_run.sh" "$tree/run.sh"
for file in "$tree"/bin/*; do bundle "$file"; done
rename_libraries
(cd "$top" && cp -r --parents cl profiles tests/exec/cl tests/golden tests/models/toy tests/published tests/tokenizer/tokenizers "$tree/source")
shared=${CLEAT_SHARED:-$top/../shared}/golden
mkdir "$tree/shared/golden"
for file in "$shared"/*.safetensors; do # a card's machine may lack Python: those of the old format are converted here
    [[ ! -f $file ]] || python3 "$top/tests/golden/convert.py" "$file" "$tree/shared/golden/${file##*/}" 2>/dev/null ||
        cp "$file" "$tree/shared/golden/"
done
pack "$name" "$out/$name.$ending"
code=0
check_symbols || code=$?
printf '%s  %s, %d tests\n' "$out/$name.$ending" "$(du -h "$out/$name.$ending" | cut -f1)" "$(wc -l <"$tree/tests.txt")"
rm -rf "$tree"
exit "$code"
