#!/usr/bin/env bash
# Training on matrix units: a text classifier's reference trajectory on the emulated unit, in the shape kernels have on cards. Needs a device.
#   test_matrix.sh CLEAT SOURCE_DIR
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

trajectory=$2/tests/golden/text.safetensors
export CLEAT_DEVICE_SHAPE=gpu CLEAT_MATRIX_UNIT=emulated

if ! listed=$("$cleat" devices --json) || [[ $listed == "[]" ]]; then
    echo "skipped, no device"
    exit 77
fi
exits 0 "$cleat" --log dispatch verify "$trajectory" --precision f16 --device "${CLEAT_TEST_DEVICE:-auto}"
says err 'att/attention: variant matrix'
says err 'att/attention_grad: variant matrix'
says err 'att.qkv/linear: variant matrix'
says err 'att.qkv/linear_dw: variant matrix'
says out passed
finish
