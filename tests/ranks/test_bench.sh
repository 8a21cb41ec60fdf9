#!/usr/bin/env bash
# `cleat bench allreduce` measures the network of a known link, and `cleat plan` accepts the result.
#   test_bench.sh CLEAT SOURCE_DIR LINK
# ctest: none
set -euo pipefail
cleat=$1 source=$2 link=$3
# shellcheck source=tests/cli/checks.sh
source "$source/tests/cli/checks.sh"
# shellcheck source=tests/ranks/mpi.sh
source "$source/tests/ranks/mpi.sh"
plugin=$(dirname "$cleat")/libcleat-mpi.so
[[ -e $plugin ]] || { echo "skipped, cleat was built without MPI" && exit 77; }
require_python

exits 1 "$cleat" bench allreduce
says err "needs several ranks"
exits 2 "$cleat" bench allreduce --steps 3
exits 2 "$cleat" bench W4 --hosts a:2
exits 0 "$cleat" bench --list
says out "allreduce "

exits 0 mpi 2 "$cleat" bench allreduce --seconds 0.01
says out "--network "
exits 0 test "$(grep -c 'nearest network' "$scratch/out")" = 1 # only rank 0 prints

# 5 MB/s in each direction: 64 KiB take at least 13 ms. Other load can only lengthen runs, and make the fit steeper or flatter.
exits 0 mpi 2 env CLEAT_RANKS_LIBRARY="$link" CLEAT_TEST_TRANSPORT="$plugin" CLEAT_TEST_LINK=5e6 "$cleat" bench allreduce --seconds 0.05 --json
json ranks
json points 2 ms_median
checks=$((checks + 1))
network=$(python3 - "$scratch/out" <<'END'
import json, sys
found = json.load(open(sys.argv[1]))
assert found["ranks"] == 2 and [p["bytes"] for p in found["points"][:3]] == [65536, 262144, 1048576], found
assert all(p["ms_median"] >= p["bytes"] / 5e3 for p in found["points"]), found
assert 1e6 < found["bytes_per_second"] < 1e7 and found["latency_seconds"] < 0.2, found
print(found["network"])
END
) || complain "not the network of the link"
exits 0 "$cleat" plan "$source/profiles/rna_small.ini" --devices t4,t4 --network "$network"
says out "over $network:"
finish
