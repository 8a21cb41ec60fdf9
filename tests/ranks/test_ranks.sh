#!/usr/bin/env bash
# What ranks exchange and how they agree; none waits for a lost rank: runs tests/ranks/worker as several processes of mpirun.
#   test_ranks.sh WORKER PLUGIN PAIR
# ctest: quick cost=17
set -euo pipefail
worker=$1 plugin=$2 pair=$3
# shellcheck source=tests/ranks/mpi.sh
source "$(dirname "$0")/mpi.sh"
[[ -e $plugin ]] || { echo "skipped, cleat was built without MPI" && exit 77; }
export CLEAT_RANKS_LIBRARY=$plugin
failed=0

for case in sums:2 sums:3 rows:2 rows:3 rows:4 data:3 agreement:3 cpus:2 work:3; do
    ranks=${case#*:} case=${case%:*}
    said=$(mpi "$ranks" "$worker" "$case" 2>&1) || true
    if [[ $said != ok ]]; then
        printf '%s\nFAILED: %s of %d ranks\n' "$said" "$case" "$ranks" && failed=1
    fi
done

# end_stopped CASE JOB: kills the stopped rank, which never ends by itself, when the others have ended.
end_stopped() {
    local all
    # shellcheck disable=SC2086 # several numbers
    while kill -0 "$2" 2>/dev/null; do
        all=$(pgrep -f "^$worker $1" || true)
        if [[ $all && $all == "$(pgrep -r T -f "^$worker $1" || true)" ]]; then kill -KILL $all || true; fi
        sleep 1
    done
}

# A rank dies or stops, which both others detect: mpirun would end the others at once, or wait for the stopped one.
for case in kill stop mute silence; do
    status=0
    mpi 3 --enable-recovery "$worker" "$case" >"$case.log" 2>&1 &
    job=$!
    if [[ $case == stop || $case == mute ]]; then end_stopped "$case" "$job"; fi
    wait "$job" || status=$?
    if grep -q '^rank [0-9]*: ' "$case.log" || [[ $(grep -c '^noticed$' "$case.log") != 2 ]]; then
        cat "$case.log"
        echo "FAILED: $case" && failed=1
    fi
    rm -f "$case.log"
done

# MPI does not start because a rank is unreachable: an error in time, with place, cause and remedy.
status=0
OMPI_COMM_WORLD_SIZE=2 CLEAT_RANKS_LIBRARY=$pair CLEAT_TEST_JOIN=20 CLEAT_RANKS_START=1 "$worker" none >start.log 2>&1 || status=$?
if ((status != 99)) || ! grep -q "^host $(hostname): MPI has not started within 1 s.*CLEAT_RANKS_START" start.log; then
    cat start.log
    echo "FAILED: MPI without a reachable rank" && failed=1
fi
rm -f start.log

# Without the plug-in, the message names what to install.
if CLEAT_RANKS_LIBRARY=/nowhere/libcleat-mpi.so mpi 2 "$worker" sums >plugin.log 2>&1 || ! grep -q 'apt install openmpi-bin' plugin.log; then
    cat plugin.log
    echo "FAILED: no plug-in" && failed=1
fi
rm -f plugin.log
exit $failed
