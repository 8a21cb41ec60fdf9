#!/usr/bin/env bash
# Training on emulated matrix units: reference trajectories of a text classifier and a residual network, with the
# kernel shapes of GPUs. Needs a device.
#   test_matrix.sh CLEAT SOURCE_DIR
# ctest: device cost=48
set -euo pipefail
cleat=$1
# shellcheck source=tests/cli/checks.sh
source "$(dirname "$0")/checks.sh"

text=$2/tests/golden/text.safetensors pictures=$2/src/inspect/verify/checks/image_resnet.safetensors
export CLEAT_DEVICE_SHAPE=gpu CLEAT_MATRIX_UNIT=emulated

require_device
exits 0 "$cleat" --log dispatch verify "$text" --precision f16 --device "${CLEAT_TEST_DEVICE:-auto}"
says err 'att/attention: variant mma'
says err 'att/attention_grad: variant mma'
says err 'att.qkv/linear: variant mma'
says err 'att.qkv/linear_dw: variant mma'
says out passed

exits 0 "$cleat" --log dispatch verify "$pictures" --precision f16 --device "${CLEAT_TEST_DEVICE:-auto}"
says err 'stem/conv2d: variant gpu'
says err 'b2.c1/conv2d: variant mma'
says err 'b2.c1/conv2d_dx: variant mma'
says err 'b2.c1/conv2d_dw: variant mma'
says err 'b2.sc.0/conv2d_dw: variant mma'
says out passed

CLEAT_MATRIX_UNIT=emulated_dot exits 0 "$cleat" --log dispatch verify "$text" --precision f16 --device "${CLEAT_TEST_DEVICE:-auto}"
says err 'att/attention_grad: variant mma'
says err 'att.qkv/linear_dw: variant mma'
says out passed
finish
