#!/usr/bin/env bash
# Checks that host code and kernels do not duplicate each other's numbers.
#   tests/shared_numbers.sh [FOLDER]      FOLDER: another source tree than this one
# A number that both use is a -D option (cleat_launch_define), or is in cl/lib/shared_numbers.clh, which both
# include. The check searches for the comment that a second copy needs: "PITCH of attention_cpu.cl", "as in
# gemm_cpu.clh", "of the kernel". "TENSOR of common.clh" and similar refer to macros, not numbers, and are
# allowed by name.
set -euo pipefail

cd "${1:-$(dirname "$0")/..}"
copy='/\*[^*]*(\b[A-Z][A-Z0-9_]+( and [A-Z0-9_]+)? (of|in) ([a-z_]+/)*[a-z0-9_]+\.clh?|\bas in ([a-z_]+/)*[a-z0-9_]+\.clh?|\bof the kernels? \*/|as in the kernel)'
words='TENSOR|FOR_VECTORS|GEOMETRY'
faults=$(grep -rnE "$copy" src include --include='*.[ch]' | grep -vE "\b($words) (of|in) " || true)
copy='/\*[^*]*(\bCLEAT_[A-Z0-9_]+ (of|in) ([a-z_]+/)*[a-z0-9_]+\.[ch]\b|\bas in (src/)?([a-z_]+/)+[a-z0-9_]+\.[ch]\b|numbers of enum)'
faults+=$(grep -rnE "$copy" cl --include='*.cl' --include='*.clh' || true)
[[ -z $faults ]] || printf '%s\n' "$faults"
[[ -z $faults ]]
