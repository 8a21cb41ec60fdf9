#!/usr/bin/env bash
# Runs the tests of this archive on the device of this machine, the longest first, as many at once as there are cores.
#   ./run.sh [--minutes M]      M: 10; what has not ended by then is killed
# The output of a test is in logs/TEST.txt. The last line counts the tests; exit status 0: some passed, none failed, all ended.
set -u

here=$(cd "$(dirname "$0")" && pwd)
minutes=10
case $* in
"") ;;
"--minutes "[1-9]*) minutes=$2 ;;
*) sed -n '2,4s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
end=$(($(date +%s) + 60 * minutes - 5)) # 5 s: from SIGTERM to SIGKILL
rm -rf "$here/logs" && mkdir -p "$here/logs" "$here/cache" "$here/vendors" || exit 1
export here end CLEAT_SOURCE_DIR=$here/source CLEAT_SHARED=$here/shared CLEAT_CACHE_DIR=$here/cache

# NVIDIA's containers may have the driver, but not the file that names it to the loader.
if [[ -z ${OCL_ICD_VENDORS:-} ]] && ! grep -qs nvidia /etc/OpenCL/vendors/*.icd; then
    for driver in /usr/lib/libnvidia-opencl.so /usr/lib/x86_64-linux-gnu/libnvidia-opencl.so.1 /usr/local/nvidia/lib64/libnvidia-opencl.so.1; do
        [[ -e $driver ]] || continue
        cp /etc/OpenCL/vendors/*.icd "$here/vendors/" 2>/dev/null
        echo "$driver" >"$here/vendors/nvidia.icd"
        export OCL_ICD_VENDORS=$here/vendors/
        break
    done
fi
"$here/bin/cleat" devices >"$here/logs/devices.txt" 2>&1
! grep -q 'kind  *GPU' "$here/logs/devices.txt" || export CLEAT_TEST_DEVICE=gpu

# Runs one test until the end at most, and prints its result.
one() {
    local start=$SECONDS left=$((end - $(date +%s))) code=124 result=failed
    ((left <= 0)) || { timeout -k 5 "$left" "$here/bin/$1" >"$here/logs/$1.txt" 2>&1 && code=0 || code=$?; }
    case $code in
    0) result=passed ;;
    77) result=skipped ;;
    124 | 137) (($(date +%s) < end)) || result="not ended" ;;
    esac
    echo "$result: $1 ($((SECONDS - start)) s, exit status $code)"
}
export -f one
# shellcheck disable=SC2016 # expanded by the shell that bash -c starts
xargs -P "$(nproc)" -I{} bash -c 'one "$1"' one {} <"$here/tests.txt" | tee "$here/logs/results"
count() { grep -c "^$1" "$here/logs/results"; }
echo "$(count passed) passed, $(count failed) failed, $(count skipped) skipped, $(count 'not ended') not ended"
[[ $(count failed) == 0 && $(count "not ended") == 0 && $(count passed) != 0 ]]
