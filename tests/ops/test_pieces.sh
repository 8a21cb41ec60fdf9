#!/usr/bin/env bash
# Products of CPUs without AVX-512 (MANY_SUMS 0 in cl/lib/common.clh): op tests with kernels that treat this CPU as one of them.
#   test_pieces.sh OPS SOURCE      OPS: the prefix of op tests, such as build/tests/ops_
# ctest: device
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$2/cl" "$work/cl"
sed -i 's/^#define MANY_SUMS 1$/#define MANY_SUMS 0/' "$work/cl/lib/common.clh"
if cmp -s "$2/cl/lib/common.clh" "$work/cl/lib/common.clh"; then
    echo "common.clh has no line '#define MANY_SUMS 1'"
    exit 1
fi
export CLEAT_KERNEL_DIR=$work/cl CLEAT_TEST_SHAPE=cpu
for case in linear.5.f32 linear.5.bf16 conv.1.f32 conv.2.f16 attention.1.f32; do
    IFS=. read -r op row storage <<<"$case"
    CLEAT_TEST_ROW=$row CLEAT_TEST_STORAGE=$storage "$1$op"
done
