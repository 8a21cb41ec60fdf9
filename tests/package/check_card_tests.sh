#!/usr/bin/env bash
# Packs three device tests with tools/package/card_tests.sh and runs them with build and sources hidden.
#   check_card_tests.sh BUILD SOURCE
# Exit code 77: patchelf is not installed, or namespaces are not permitted.
# ctest: device
set -euo pipefail

build=$1 source=$2
command -v patchelf >/dev/null || { echo "skipped: patchelf is not installed" && exit 77; }
unshare -rm true 2>/dev/null || { echo "skipped: unshare is not permitted" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$source/tools/package/card_tests.sh" "$build" "$work" --only '^(ops\.relu|exec\.exec|device\.device)$' || (($? == 3))
tar -xzf "$work"/cleat-card-tests-*.tar.gz -C "$work" --strip-components=1

# run HIDDEN...: runs the tests while empty folders cover HIDDEN.
run() {
    # shellcheck disable=SC2016 # expanded by the shell that bash -c starts
    unshare -rm bash -c 'cd / && for folder in "${@:2}"; do mount -t tmpfs none "$folder" || exit 1; done; "$1/run.sh" --minutes 5' run "$work" "$@"
}
run "$build" "$source" | tee "$work/out" || { cat "$work"/logs/*.txt && exit 1; }
case $(tail -n 1 "$work/out") in
"3 passed, 0 failed, 0 skipped, 0 not ended") ;;
"0 passed, 0 failed, 3 skipped, 0 not ended") exit 77 ;; # no device
*) exit 1 ;;
esac

# A failure is reported and counted.
rm -r "$work/source/tests/exec/cl"
run "$build" "$source" >"$work/out" && exit 1
[[ $(tail -n 1 "$work/out") == "2 passed, 1 failed, 0 skipped, 0 not ended" ]]
# So is a test that does not end.
printf '#!/bin/sh\nsleep 100\n' >"$work/bin/exec.exec"
sed -i 's/60 \* minutes - 5/8/' "$work/run.sh"
echo exec.exec >"$work/tests.txt"
run "$build" "$source" >"$work/out" && exit 1
[[ $(tail -n 1 "$work/out") == "0 passed, 0 failed, 0 skipped, 1 not ended" ]]
