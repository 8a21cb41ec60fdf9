#!/usr/bin/env bash
# The self-check's tolerances hold on the least accurate device that OpenCL permits: every exp, log, sqrt, sin, tanh ... in the kernels
# is too large by as many units in the last place as the specification allows, and denormal results are 0.
# NVIDIA's ex2.approx and AMD's v_exp are better. A larger error must be detected.
#   test_worst_math.sh CLEAT SOURCE_DIR
# ctest: device slow cost=71
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"
require_device
export POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable # PoCL compiles in half the time; the functions' errors are the same

# OpenCL 1.2, table 7.1: function:error in units in the last place (full profile).
functions="exp:3 exp2:3 expm1:3 log:3 log2:3 log1p:2 sqrt:3 rsqrt:2 sin:4 cos:4 tanh:5"

# worsen TIMES: makes kernels whose functions have TIMES the error.
worsen() {
    local function type
    rm -rf "$scratch/cl"
    cp -r "$2/cl" "$scratch/cl"
    {
        echo "#define WORSE(T, f, ulps) static inline T __attribute__((overloadable)) worse_##f(T x) { \\"
        echo "    const T r = f(x) * (1.0f + (ulps) * 1.1920929e-7f); \\"
        echo "    return fabs(r) < 1.17549435e-38f ? (T)(0.0f) : r; }"
        for function in $functions; do
            for type in float float2 float4 float8 float16; do
                echo "WORSE($type, ${function%:*}, ${function#*:} * $1)"
            done
        done
        for function in $functions; do
            echo "#undef ${function%:*}"
            echo "#define ${function%:*} worse_${function%:*}"
        done
    } >>"$scratch/cl/lib/common.clh"
}

worsen 1 "$2"
exits 0 env CLEAT_KERNEL_DIR="$scratch/cl" "$cleat" verify --device "${CLEAT_TEST_DEVICE:-auto}" --precision f32 # the strictest
says out "of its limit"
within_limits
worsen 3000 "$2"
exits 4 env CLEAT_KERNEL_DIR="$scratch/cl" "$cleat" verify --device "${CLEAT_TEST_DEVICE:-auto}" --model text_classifier --precision f32
says out "computes wrong results"
finish
