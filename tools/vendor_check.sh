#!/usr/bin/env bash
# vendor_check.sh - compiles every program that a run can use with every vendor's compiler, without a card.
#
#   tools/vendor_check.sh --lint          check the rules for kernel sources that no compiler checks (one second, no compilers needed)
#   tools/vendor_check.sh [options]       compile; 10 to 25 minutes on one core for everything
#     --build DIR     build folder, for the list of programs (default: build)
#     --profiles      only the programs of the models in profiles/, no other widths and head sizes
#     --only GLOB     only programs with matching names, e.g. 'layer_norm-*'; -t LIST   only these card targets
#     -j N            parallel compilations (default 1);   -k DIR   keep PTX, assembly and logs there
#     --no-spill      fail if a kernel launched on cards spills registers (attention_plain_* and linear_plain excepted)
#     --strict        exit with 3 if compilers are missing
# Exit codes: 0 ok, 1 a kernel failed, 2 wrong usage, 3 skipped with --strict.
#
# The compilers are driven by the script $VENDOR_COMPILE (default: ../shared/tools/vendor_compile.sh). It is not part of this
# repository: without it compiling is skipped.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/.." && pwd)
card_targets=nv:sm_70,nv:sm_75,nv:sm_80,nv:sm_90,amd:gfx906,amd:gfx90a,amd:gfx1030,amd:gfx1100,intel:skl,intel:tgllp,intel:dg1,intel:acm-g10,intel:pvc
cpu_targets=pocl,oclgrind,spirv
hot='^(linear_(gpu|mma)|attention_mma_|linear_reduce|conv_(gpu|mma)|(attention|disentangled)_gpu_|lstm_|layer_norm_|batch_norm_|(max|average)_pool_|depthwise_conv2d_|softmax_|cross_entropy_|element_loss_|mask_loss_|gelu_|relu_|dropout_|adamw_|sgd_|lion_|peak_)'
most_local=32768 most_group=256
intel16='^intel:(pvc|xe-hpc|bmg|lnl|xe2)' # registers of 16 floats, others' have 8: programs of the shapes intel16 and intel8

die() { echo "vendor_check: $*" >&2; exit 2; }

# --- rules of the sources ---------------------------------------------------------------------------------------------

# Removes comments; lines keep their numbers.
strip_comments() {
  awk '{ line = $0; out = ""
    while (line != "") {
      if (inside) { i = index(line, "*/"); if (i) { line = substr(line, i + 2); inside = 0 } else line = "" }
      else {
        i = index(line, "/*"); j = index(line, "//")
        if (j && (!i || j < i)) { out = out substr(line, 1, j - 1); line = "" }
        else if (i) { out = out substr(line, 1, i - 1) " "; line = substr(line, i + 2); inside = 1 }
        else { out = out line; line = "" }
      }
    }
    print out }' "$1"
}

# rule NAME FILE PATTERN WHY [SED]: no line of the stripped source on stdin may match once SED has taken out what is allowed.
rule() {
  sed -E "${5:-}" | grep -nE "$3" | sed "s|^\([0-9]*\):|$2:\1: $1: $4: |" || true
}

# lint_file FOLDER FILE: the file's path below the folder is its name
lint_file() {
  local name=${2#"$1"/} source allowed='s/#pragma OPENCL FP_CONTRACT OFF//;'
  source=$(strip_comments "$2")
  # the built-in functions of AMD's matrix units and of its dot products take vectors of half; gfx908's have another one for bf16
  [[ "${name##*/}" != mma_@(amd|dot).clh ]] || allowed+='s/#pragma OPENCL EXTENSION cl_khr_fp16 : enable//; s/defined\(__gfx908__\)//'
  rule half "$name" '\bhalf(2|3|4|8|16)?\b' 'half is storage: only pointers to it are allowed' 's/\bhalf *\*/ /g; s/typedef half T;//' <<<"$source"
  rule half "$name" '\bT(C|_Y|_DY)?\b' 'T may be half: only pointers to it are allowed' 's/typedef [a-z]+ T;//; s/#define T(B|C|_Y|_DY) (T|float)$//; s/\bT(C|_Y|_DY)? *([*,])/\2/g' <<<"$source"
  rule double "$name" '\bdouble(2|3|4|8|16)?\b' 'no double' <<<"$source"
  rule double "$name" '(^|[^A-Za-z_0-9.])([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+[eE][-+]?[0-9]+|0[xX][0-9a-fA-F.]+[pP])' 'a constant without f is a double' \
    's/\b(0[xX][0-9a-fA-F.]+[pP][-+]?[0-9]+|[0-9]*\.?[0-9]+[eE][-+]?[0-9]+|[0-9]+\.[0-9]*([eE][-+]?[0-9]+)?)f\b/ /g' <<<"$source"
  rule atomics "$name" '\b(atomic_(cmp)?xchg|atom_[a-z]+|atomic_(fetch|compare|exchange)[a-z_]*)\b' 'sums of floats need a fixed order' <<<"$source"
  rule extension "$name" '#[[:space:]]*pragma[[:space:]]+OPENCL|\b(cl_(khr|intel|amd|nv|arm|qcom|ext)_|__(NV_CL|AMD|AMDGCN|GFX|gfx|SPIR|PTX|NVPTX|POCL|OPENCL_(C_)?VERSION|x86_64|CUDA))|\bPOCL_|\bFP_FAST_' \
    'the host asks the device and passes a -D' "$allowed" <<<"$source"
  rule include "$name" '^[[:space:]]*#[[:space:]]*include' 'the host finds lines  #include "FILE"  of cl/ only' \
    "$(files_of "$1" clh | while read -r f; do printf 's|^[[:space:]]*#[[:space:]]*include[[:space:]]*"%s"||;' "${f#"$1"/}"; done)" <<<"$source"
}

# FILE:FUNCTION of the exceptions to the rule `shape`. Lines may be removed from this list, but not added.
unshaped='
  attention/attention_mma_columns_forward.cl:attention_mma_columns_forward
  attention/attention_mma_forward.cl:attention_mma_forward
  attention/attention_mma_rows_forward.cl:finish_rows
  attention/attention_mma_rows_forward.cl:attention_mma_rows_forward
  attention/disentangled.cl:disentangled_reduce
  conv/conv_gpu.cl:conv_gpu
  conv/conv_mma.cl:conv_mma
  conv/conv_winograd_dw.cl:filters_block
  depthwise_conv2d.cl:convolve
  depthwise_conv2d.cl:correlate
  embedding.cl:embedding_gather
  finite_check.cl:finite_check_scan
  lib/mma_probe.cl:mma_probe
  linear/linear.cl:narrow_rows
  linear/linear.cl:linear_gpu
  linear/linear_mma.cl:linear_mma
  lstm/lstm.cl:lstm_plain_forward
  permute.cl:permute_tiles
  positional_encoding.cl:positional_encoding_add
  resize.cl:resize_forward'

most_lines=70

# A function has at most $most_lines lines and control structures at most four deep; the body of a kernel, which may be a function that it
# calls (OUTLINED), has no preprocessor conditionals, or is two bodies: #if, #else, #endif and nothing outside.
lint_shape() {
  strip_comments "$2" | awk -v most=$most_lines -v file="${2#"$1"/}" -v unshaped=" $(echo $unshaped) " '
    function report(why) { if (index(unshaped, " " file ":" name " ")) print "excused " file ":" name; else printf "%s:%d: shape: %s: %s\n", file, begin, name, why }
    body && /^}/ {
      lines = NR - begin + 1
      if (lines > most) report(lines " lines, at most " most)
      else if (depth > 4) report(depth " levels, at most 4")
      else if (kernel && conditionals && !(conditionals == 2 && last_line ~ /^#endif/ && opens == begin_of_body)) report("conditionals in the body of a kernel")
      body = begin = 0
      next
    }
    body {
      if (match($0, /^ +(} )?(for|if|else|while|do|switch)([^A-Za-z_0-9]|$)/) && match($0, /[^ ]/) && (RSTART - 1) / 4 > depth) depth = (RSTART - 1) / 4
      if ($0 ~ /^ *# *(if|else|elif)/ && ++conditionals == 1) opens = NR
      last_line = $0
      next
    }
    /^[#}]/ || /^ *$/ || /[;}] *$/ || /\\$/ { begin = 0; next }
    !/^ / && !begin { begin = NR; head = "" }
    begin { head = head " " $0 }
    begin && /{ *$/ {
      if (head ~ /\)[^)]*{ *$/) {
        body = 1; begin_of_body = NR + 1; depth = conditionals = 0; kernel = head ~ /__kernel|OUTLINED/
        gsub(/__attribute__ *\(\(([^()]|\([^()]*\))*\)\)/, "", head)
        name = head; sub(/\(.*/, "", name); sub(/ *$/, "", name); sub(/.* \**/, "", name)
      } else body = begin = 0
    }'
}

# files_of FOLDER ENDING...: the files below it with one of the endings
files_of() {
  local folder=$1 ending
  shift
  for ending in "$@"; do find "$folder" -type f -name "*.$ending"; done | sort
}

# Every name of the list must be needed.
lint_shapes() {
  local f found name
  found=$(files_of "$1" cl clh | while read -r f; do lint_shape "$1" "$f"; done)
  grep -v '^excused ' <<<"$found" || true
  for name in $unshaped; do
    [ "$1" != "$root/cl" ] || grep -q "^excused $name\$" <<<"$found" || echo "tools/vendor_check.sh: shape: $name follows the rule: remove it from the list"
  done
}

# NAME FILE of every kernel below a folder
kernels_of() {
  local f
  files_of "$1" cl clh | while read -r f; do
    strip_comments "$f" | tr '\n' ' ' | sed -E 's/__attribute__ *\(\(([^()]|\([^()]*\))*\)\)/ /g' |
      grep -oE '\b(__)?kernel +void +[A-Za-z_0-9]+' | sed "s#.* \([A-Za-z_0-9]*\)\$#\1 ${f#"$1"/}#" || true
  done
}

# Oclgrind adds up the local memory of kernels whose names begin alike.
lint_names() {
  kernels_of "$1" | awk '{ name[++n] = $1; file[n] = $2 }
    END { for (i = 1; i <= n; ++i) for (j = 1; j <= n; ++j) {
        if (i < j && name[i] == name[j]) printf "%s: names: kernel %s is in %s too\n", file[i], name[i], file[j]
        else if (name[i] != name[j] && index(name[j], name[i]) == 1) printf "%s: names: kernel %s begins the name of %s (%s)\n", file[i], name[i], name[j], file[j]
      } }'
}

lint_folder() {
  local f
  while read -r f; do lint_file "$1" "$f"; done < <(files_of "$1" cl clh)
  lint_shapes "$1"
  lint_names "$1"
}

# Every rule must find its deliberate violation.
lint_itself() {
  local found slips=$root/tests/vendor/slips wanted
  found=$(most_lines=10; lint_folder "$slips")
  while IFS='|' read -r wanted; do
    grep -qF "$wanted" <<<"$found" || { echo "vendor_check: the rules do not detect the violation '$wanted' in $slips"; return 1; }
  done < <(sed -n 's/.*SLIP: //p' "$slips"/*.cl)
  if grep -q 'innocent' <<<"$found"; then grep innocent <<<"$found"; echo 'vendor_check: the rules report correct code'; return 1; fi
}

lint() {
  local found count
  count=$(kernels_of "$root/cl" | wc -l)
  [ "$count" -gt 0 ] || { echo "vendor_check: no kernels in $root/cl"; exit 1; }
  lint_itself || exit 1
  found=$(lint_folder "$root/cl")
  [ -z "$found" ] || { echo "$found"; echo "vendor_check: the lines above violate the rules for kernel sources"; exit 1; }
  echo "vendor_check: $count kernels follow the rules"
}

# --- compiling --------------------------------------------------------------------------------------------------------

build=$root/build which= only='*' targets=$card_targets jobs=1 keep= no_spill=0 strict=0
while [ $# -gt 0 ]; do
  case $1 in
    --lint) lint; exit 0;;
    --build) build=$2; shift;; --profiles) which=profiles;; --only) only=$2; shift;; -t) targets=$2; shift;;
    -j) jobs=$2; shift;; -k) keep=$2; shift;; --no-spill) no_spill=1;; --strict) strict=1;;
    -h|--help) sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "$0"; exit 0;;
    *) die "unknown option $1 (try --help)";;
  esac; shift
done

# A name that no rule below selects would compile nothing and look like success.
for target in ${targets//,/ }; do
  case ,$card_targets, in
  *,"$target",*) ;;
  *) die "unknown target '$target'; the targets are $card_targets" ;;
  esac
done

compiler=${VENDOR_COMPILE:-$root/../shared/tools/vendor_compile.sh}
if [ ! -r "$compiler" ]; then
  echo "vendor_check: skipped: script $compiler not found (set VENDOR_COMPILE)"
  [ $strict = 0 ] || exit 3
  exit 0
fi
[ -f "$build/CMakeCache.txt" ] || die "no build folder $build: cmake -S . -B build -G Ninja"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -n "$keep" ] || keep=$work/keep
mkdir -p "$keep"
keep=$(cd "$keep" && pwd)
cmake --build "$build" --target list_programs >"$work/build.log" 2>&1 || { tail -30 "$work/build.log"; die "list_programs was not built"; }
lister=$(find "$build" -type f -name list_programs -perm -u+x | head -1)
CLEAT_SOURCE_DIR=$root CLEAT_KERNEL_DIR=$root/cl "$lister" "$work/programs" $which

# Options of Intel's own (256 registers a thread) are for its compiler alone: clang, which reads each program first, supports none of them.
# Drivers define the macro of loads of blocks, which every card of Intel's has; ocloc does not.
cat >"$work/ocloc" <<'EOF'
#!/usr/bin/env bash
arguments=()
for word in "$@"; do
  [ "${before:-}" != -options ] || word+=" $(cat options) -Dcl_intel_subgroup_local_block_io=1"
  arguments+=("$word") before=$word
done
exec "${OCLOC_HERE:-ocloc}" "${arguments[@]}"
EOF
chmod +x "$work/ocloc"

bad=0 skipped=0
# compile SHAPE TARGETS: all programs of a shape; results in SHAPE.tsv
compile() {
  local shape=$1 list=$2 files code=0
  [ -n "$list" ] || return 0
  mapfile -t files < <(cd "$work/programs/$shape" && for f in *.cl; do [[ ${f%.cl} != $only ]] || echo "$f"; done)
  [ ${#files[@]} -gt 0 ] || { echo "vendor_check: no program of the $shape shape matches '$only'"; return; }
  echo "== ${#files[@]} programs of the $shape shape: $list"
  (cd "$work/programs/$shape" && OCLOC_HERE=${OCLOC:-ocloc} OCLOC=$work/ocloc nice bash "$compiler" -q -j "$jobs" -t "$list" --max-lds $most_local --strict \
    -k "$keep/$shape" -o "$work/$shape.tsv" "${files[@]}") || code=$?
  case $code in 0) ;; 3) skipped=1;; *) bad=1;; esac
}

# Selected targets that match a pattern; targets from stdin that do not
targets_of() { tr , '\n' <<<"$targets" | grep -E "$1" | paste -sd, || true; }
drop_targets() { tr , '\n' | grep -vE "$1" | paste -sd, || true; }

# Only kernels that are launched from a program count; the others in its file are compiled too, and must compile.
report() {
  [ -s "$work/cards.tsv" ] || return 0
  awk -F'\t' -v hot="$hot" -v most_group=$most_group -v no_spill=$no_spill '
    FILENAME == ARGV[1] { if ($1 != "cpu") { launched[$3 ".cl", $4] = 1; if ($5 > most_group) { print "FAIL: " $4 " is launched with " $5 " work-items"; bad = 1 } } next }
    $4 != "OK" || !(($2, $1) in launched) { next }
    { if (!($3 in column)) { column[$3] = ++columns; title[columns] = $3 }
      row = $2 ":" $1; sub(/\.cl:/, ":", row)
      value = $5 "/" $6 ($7 == 1 ? "!" : "") "/" $8
      if ($7 == 1 || $6 + 0 > 0) { noted[$3 " " row] = value; if ($7 == 1 && $1 !~ /_plain/) spills++ }
      if ($1 ~ hot) { if (!(row in seen)) { seen[row] = 1; rows[++n] = row } cell[row, $3] = value } }
    END {
      print "\n== hot kernels: registers/scratch bytes (! spills)/local memory; NVIDIA scratch a thread, AMD a lane, Intel a hardware thread (GRFs x SIMD)"
      for (c = 1; c <= columns; ++c) printf "%-18s%s", title[c], c < columns ? " " : "\n"
      for (i = 1; i <= n; ++i) {
        print rows[i]
        for (c = 1; c <= columns; ++c) printf "%-18s%s", (rows[i], title[c]) in cell ? cell[rows[i], title[c]] : "-", c < columns ? " " : "\n"
      }
      print "\n== scratch in kernels that are launched"
      for (k in noted) print "  " k " " noted[k] | "sort"
      close("sort")
      if (no_spill && spills) { print "FAIL: " spills " kernels spill"; bad = 1 }
      exit bad
    }' "$work/programs/programs.tsv" "$work/cards.tsv" || bad=1
}

# A compiler may take the wrong sub-group size and emit something else: each program for a matrix unit must use it. The compilers' report does
# not count v_dot2.
check_matrix_instructions() {
  local f
  for f in "$keep"/matrix_amd_dot/*.s; do
    [ ! -f "$f" ] || grep -q 'v_dot2.*_f32_f16' "$f" || { echo "FAIL: no v_dot2 in ${f##*/}"; bad=1; }
  done
  for f in "$work"/matrix_*.tsv; do
    [ ! -f "$f" ] || [ "${f##*/}" = matrix_amd_dot.tsv ] || awk -F'\t' '$4 == "OK" { seen[$2 " on " $3] = 1; if ($9 ~ /mma=[1-9]/) used[$2 " on " $3] = 1 }
      END { for (p in seen) if (!(p in used)) { print "FAIL: no matrix instruction in " p; bad = 1 } exit bad }' "$f" || bad=1
  done
}

# NVIDIA's driver compiles with an older clang: no array of the workloads' kernels may stay in memory there either.
check_arrays() {
  cmake --build "$build" --target workload_programs >"$work/build.log" 2>&1 || { tail -30 "$work/build.log"; die "workload_programs was not built"; }
  ctest --test-dir "$build" -R '^vendor\.stack_arrays$' --output-on-failure --no-tests=ignore | grep -vE '^ *Start|^Test project|^$' || bad=1
}

# One function: the shell has read all of it before the long wait, so that the file may be edited meanwhile.
finish() {
  compile gpu "$(targets_of '^amd:')"
  compile nvidia "$(targets_of '^nv:' | drop_targets '^nv:sm_7[02]')" # ptxas 13 makes sm_75's code of it
  compile intel8 "$(targets_of '^intel:' | drop_targets "$intel16")"
  compile intel16 "$(targets_of "$intel16")"
  compile matrix_nv70 "$(targets_of '^nv:sm_7[02]')"
  compile matrix_nv75 "$(targets_of '^nv:sm_75')"
  compile matrix_nv80 "$(targets_of '^nv:sm_(8|9|1)')"
  compile matrix_amd_dot "$(targets_of '^amd:gfx(906|101[12]|103|12)')"
  compile matrix_amd_wmma "$(targets_of '^amd:gfx11')"
  compile matrix_amd_mfma "$(targets_of '^amd:gfx9(0a|4)')"
  compile matrix_intel8 "$(targets_of '^intel:acm')"
  compile matrix_intel16 "$(targets_of "$intel16")"
  check_matrix_instructions
  [[ ,$targets != *,nv:* ]] || check_arrays
  { cat "$work"/gpu.tsv "$work"/nvidia.tsv "$work"/intel8.tsv "$work"/intel16.tsv "$work"/matrix_*.tsv 2>/dev/null || true; } >"$work/cards.tsv"
  compile matrix_emulated pocl,oclgrind
  compile cpu "$cpu_targets"
  report
  cp "$work/cards.tsv" "$keep/cards.tsv"
  [ ! -f "$work/cpu.tsv" ] || cp "$work/cpu.tsv" "$keep/cpu.tsv"
  cp "$work/programs/programs.tsv" "$keep/programs.tsv"
  [ $bad = 0 ] || { echo "vendor_check: FAILED"; exit 1; }
  [ $skipped = 0 ] || { echo "vendor_check: ok, but compilers are missing"; [ $strict = 0 ] || exit 3; exit 0; }
  echo "vendor_check: ok"
  exit 0
}
finish
