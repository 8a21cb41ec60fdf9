#!/usr/bin/env bash
# Every barrier, layout and wait in the kernels for matrix units and in f32 products is necessary: without it
# the op test fails on the virtual card.
#   test_mutants.sh CLEAT OPS SOURCE CARD      OPS: the prefix of op tests, such as build/tests/ops_; the environment chooses the card
# A mutant changes one line of one file in cl/. Barriers are removed one by one; other changes are listed below.
# ctest: slow
set -euo pipefail

cleat=$1 ops=$2 source=$3 card=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CLEAT_VIRTUAL_CARD_STRICT=1 CLEAT_VIRTUAL_CARD_MAY_LEAK=program,context CLEAT_TEST_SHAPE=gpu CLEAT_TEST_VARIANT=mma CLEAT_TEST_STORAGE=f16
export CLEAT_KERNEL_DIR=$work/cl
died=0 survived=0

# passes OP ROW: whether the test of the row passes with the kernels in $work. Stops at the first failure or fault.
passes() {
    CLEAT_VIRTUAL_CARD_STRICT=first CLEAT_TEST_STOP=1 CLEAT_TEST_ROW=$2 "$ops$1" >"$work/log" 2>&1
}

fresh() {
    rm -rf "$work/cl"
    cp -r "$source/cl" "$work/cl"
}

# expect_death NAME OP ROW
expect_death() {
    if passes "$2" "$3"; then
        echo "survived: $1 (row $3 of ops.$2)"
        survived=$((survived + 1))
    else
        died=$((died + 1))
    fi
    fresh
}

# barriers OP ROW FILE [NOT...]: removes each barrier of the file in turn, except those whose comment contains
# a NOT, which this card's kernel lacks.
barriers() {
    local line text not
    while IFS=: read -r line text; do
        for not in "${@:4}"; do [[ $text != *"$not"* ]] || continue 2; done
        sed -i "${line}s/barrier(CLK_LOCAL_MEM_FENCE);//" "$work/cl/$3"
        expect_death "$3:$line without barrier" "$1" "$2"
    done < <(grep -n 'barrier(CLK_LOCAL_MEM_FENCE);' "$source/cl/$3")
}

# mutant OP ROW FILE FROM TO: changes the first occurrence of a text.
mutant() {
    FROM=$4 TO=$5 perl -0pi -e 's/\Q$ENV{FROM}\E/$ENV{TO}/' "$work/cl/$3"
    if cmp -s "$work/cl/$3" "$source/cl/$3"; then
        echo "not found in $3: $4"
        survived=$((survived + 1))
    else
        expect_death "$3: $4 -> $5" "$1" "$2"
    fi
}

# unit NAME FILE FROM TO: the change must make cleat reject the matrix unit and select another one, or none.
unit() {
    FROM=$3 TO=$4 perl -0pi -e 's/\Q$ENV{FROM}\E/$ENV{TO}/' "$work/cl/$2"
    if "$cleat" devices 2>/dev/null | grep -q "matrix unit *$1"; then
        echo "survived: $2: $3 -> $4 (unit $1)"
        survived=$((survived + 1))
    else
        died=$((died + 1))
    fi
    fresh
}

linear=10 attention=5 conv=6
fresh
for case in linear:$linear attention:$attention conv:$conv; do
    passes "${case%:*}" "${case#*:}" || {
        echo "ops.$case fails as it is:"
        tail -n 20 "$work/log"
        exit 1
    }
done

# The linear layers of a T4 and an A100 load operands ahead of their products. In the convolution one work-item sums a line.
parts='the parts of lines'
ahead=('the first step is complete' 'this one is no longer read') not_ahead='the one before is no longer read'
gemm=lib/gemm_mma.clh
if [[ $card != t4 && $card != a100 ]]; then
    barriers linear $linear $gemm "${ahead[@]}"
else
    barriers linear $linear $gemm "$not_ahead"
    mutant linear $linear $gemm 'fragments_load(&next, A_STAGE((s) + 1)' 'fragments_load(&next, A_STAGE(s)'
    mutant linear $linear $gemm 'step_send(&transit, operands, A_STAGE(s), B_STAGE(s));' \
        'step_send(&transit, operands, A_STAGE((s) + 1), B_STAGE((s) + 1));'
fi
if [[ $card == t4 ]]; then
    barriers conv $conv $gemm "${ahead[@]}" "$parts"
    barriers linear $linear linear/linear_mma.cl
    barriers attention $attention attention/attention_mma_rows_forward.cl
    barriers attention $attention attention/attention_mma_rows_backward.cl
    barriers attention $attention attention/attention_mma_rows.clh
    barriers conv $conv conv/conv_mma.cl
    for load in a at b bt; do
        panel="mma_load_${load}_panel(matrix_${load:0:1} *${load:0:1}, __local const ushort *p, int width, int row, int column) {"
        mutant linear $linear lib/mma_nvidia.clh "$panel" "$panel width = 48;"
        mutant linear $linear lib/mma_nvidia.clh "$panel" "$panel column = 0;"
    done
    for load in a bt; do
        padded="mma_load_$load(matrix_${load:0:1} *${load:0:1}, __local const ushort *p, int ld) {"
        mutant attention $attention lib/mma_nvidia.clh "$padded" "$padded ld = 16;"
    done
    mutant linear $linear $gemm 'return SWIZZLED(WIDTH(tile, along_k), row, column);' 'return row * WIDTH(tile, along_k) + column;'
    mutant linear $linear lib/mma_nvidia.clh '"r"(x[0]), "r"(x[1]), "r"(y[0])' '"r"(x[1]), "r"(x[0]), "r"(y[0])'
    mutant linear $linear lib/mma_nvidia.clh 'MMA_LDMATRIX(a->x, MMA_IN_PANEL(lane, 1), ".trans")' 'MMA_LDMATRIX(a->x, MMA_IN_PANEL(lane, 1), "")'
    mutant linear $linear lib/mma_nvidia.clh 'MMA_LDMATRIX(b->x, MMA_IN_PANEL(lane, 0), ".trans")' 'MMA_LDMATRIX(b->x, MMA_IN_PANEL(lane, 0), "")'
fi
if [[ $card == t4 ]]; then
    recurrence=2 mma=lstm/lstm_mma.cl # three subgroups; with 2 units, groups of 8 samples
    export CLEAT_VIRTUAL_CARD_UNITS=2
    passes lstm $recurrence || { tail -n 20 "$work/log" && exit 1; }
    barriers lstm $recurrence $mma
    mutant lstm $recurrence $mma '(unit) % 16 / 2 + (unit) % 2 * 8' '(unit) % 16'
    mutant lstm $recurrence $mma 'gate == 2 ?' 'gate == 3 ?'
    mutant lstm $recurrence $mma 'FIRST_STEP(s), SAMPLE(s) < batch);' 'FIRST_STEP(s) + 1, SAMPLE(s) < batch);'
    mutant lstm $recurrence $mma 'AT(products), at + 1' 'AT(products), at'
    mutant lstm $recurrence $mma 'AT(cells), at - 1, SAMPLE' 'AT(cells), at, SAMPLE'
    mutant lstm $recurrence $mma 'AT(h), at - 1);' 'AT(h), at);'
    mutant lstm $recurrence $mma 'AT(dproducts), at + 1);' 'AT(dproducts), at);'
    mutant lstm $recurrence $mma 'before = panel + (t & 1)' 'before = panel + (1 - (t & 1))'
    mutant lstm $recurrence $mma 'own = panel + (t & 1)' 'own = panel + (1 - (t & 1))'
    mutant lstm $recurrence $mma 'if (t > 0 && SAMPLE(s) < batch)' 'if (t > 0)'
    mutant lstm $recurrence $mma '(c).x[(s) + 2]' '(c).x[s]'
    mutant lstm $recurrence $mma 'w[i % 4][i / 4]' 'w[i % 4][BLOCKS - 1 - i / 4]'
    mutant lstm $recurrence $mma 'c[s] = ahead[s][5];' ''
    mutant lstm $recurrence $mma 'column < s + COLUMNS' 'column < s + COLUMNS - s'
    mutant lstm $recurrence $mma 'r % length != 0' 'r != 0'
    mutant lstm $recurrence $mma 'r / 16 % 2 * 32' 'r / 16 % 1 * 32'
    mutant lstm $recurrence lib/mma_nvidia.clh '2 * half_of_b' '0 * half_of_b'
    unset CLEAT_VIRTUAL_CARD_UNITS
fi
if [[ $card == a100 ]]; then
    aligned=13 # whose rows are copied asynchronously
    mutant linear $aligned $gemm 'step_wait(&transit, STAGES - 1);' 'step_wait(&transit, STAGES);'
    mutant linear $aligned $gemm 'step_wait(&transit, STAGES - 2);' 'step_wait(&transit, STAGES - 1);'
    mutant linear $aligned $gemm 'fragments_load(&odd, A_STAGE(s), B_STAGE(s), MATRIX_DEPTH)' 'fragments_load(&odd, A_STAGE(s), B_STAGE(s), 0)'
    mutant linear $aligned $gemm 'MULTIPLY_LAST(s, odd, even)' 'MULTIPLY_LAST(s, even, odd)'
    barriers linear $aligned $gemm "$not_ahead"
    mutant linear $aligned lib/async_copy.clh 'cp.async.wait_group %0;" : : "n"(n)' 'cp.async.wait_group %0;" : : "n"(n + 1)'
    mutant linear $aligned lib/async_copy.clh '"r"((there) ? 16 : 0)' '"r"(16)'
    barriers attention $attention attention/attention_mma_rows_forward.cl
    barriers attention $attention attention/attention_mma_rows_backward.cl
    mutant attention $attention lib/async_copy.clh 'cp.async.wait_group %0;" : : "n"(n)' 'cp.async.wait_group %0;" : : "n"(n + 1)'
    mutant attention $attention lib/mma_rows.clh '"f"(high), "f"(low)' '"f"(low), "f"(high)'
    mutant attention $attention lib/mma_rows.clh 'mma_exchange(x, 2 * SUM_FLIP, scratch)' 'mma_exchange(x, SUM_FLIP, scratch)'
    "$cleat" devices 2>/dev/null | grep -q "matrix unit *nv80"
    unit nv80 lib/mma_nvidia.clh '"r"(x[2]), "r"(x[3]), "r"(y[0])' '"r"(x[3]), "r"(x[2]), "r"(y[0])'
    unit nv80 lib/mma_nvidia.clh '"r"(y[0]), "r"(y[1])' '"r"(y[1]), "r"(y[0])'
    export CLEAT_TEST_VARIANT=tf32x3 CLEAT_TEST_STORAGE=f32
    passes linear $aligned || { tail -n 20 "$work/log" && exit 1; }
    mutant linear $aligned lib/mma_nvidia.clh 'MMA_TF32(mma_small, mma_large);' ''
    mutant linear $aligned lib/mma_nvidia.clh 'MMA_TF32(mma_large, mma_small);' ''
    mutant linear $aligned lib/mma_nvidia.clh 'a->x[1] = MMA_FLOAT(0, 8), a->x[2] = MMA_FLOAT(4, 0)' 'a->x[1] = MMA_FLOAT(4, 0), a->x[2] = MMA_FLOAT(0, 8)'
    mutant linear $aligned lib/mma_nvidia.clh 'b->x[1] = MMA_FLOAT(4, 0), b->x[2] = MMA_FLOAT(0, 8)' 'b->x[1] = MMA_FLOAT(0, 8), b->x[2] = MMA_FLOAT(4, 0)'
    mutant linear $aligned lib/mma.clh '((row) % 4 * 2)' '((row) % 8)'
    export CLEAT_TEST_VARIANT=mma CLEAT_TEST_STORAGE=tf32
    passes linear $aligned || { tail -n 20 "$work/log" && exit 1; }
    mutant linear $aligned lib/mma_nvidia.clh 'MMA_TF32(mma_nearest, mma_nearest)' 'MMA_TF32(mma_nearest, )'
    mutant linear $aligned lib/mma_nvidia.clh 'MMA_TF32(mma_nearest, mma_nearest)' 'MMA_TF32(, mma_nearest)'
    mutant linear $aligned lib/mma_nvidia.clh 'MMA_TF32(mma_nearest, mma_nearest)' 'MMA_TF32(mma_large, mma_large)' # NaNs
    mutant linear $aligned lib/mma_nvidia.clh 'TF32_PRODUCTS == 1' 'TF32_PRODUCTS == 0'
    export CLEAT_TEST_VARIANT=mma CLEAT_TEST_STORAGE=f16
fi
if [[ $card == v100 ]]; then
    barriers attention $attention attention/attention_mma_forward.cl
    barriers attention $attention attention/attention_mma_backward.cl
    mutant linear $linear lib/mma_nvidia70.clh 'mma_copy(a->x + 4, p + SWIZZLED(width, row, column + 8), 8)' \
        'mma_copy(a->x + 4, p + SWIZZLED(width, row, column), 8)'
    mutant linear $linear lib/mma_nvidia70.clh 'row + 4 * i, column' 'row + 8 * i, column'
    mutant attention $attention lib/mma_nvidia70.clh 'mma_copy(a->x + 4, p + 8, 8)' 'mma_copy(a->x + 4, p, 8)'
    mutant linear $linear lib/mma_nvidia70.clh 'MMA_QUADS("row", "col")' 'MMA_QUADS("col", "col")'
fi

# wrong FUNCTION UNIT RESULT: changes the result of a function of mma_layout.clh. The probe of the unit or the
# products must detect it.
wrong() {
    local head="static inline int mma_$1(int unit, int lane, int i) {"
    mutant linear $linear lib/mma_layout.clh "$head" "$head if (unit == $2) return $3;"
}
last='the word of the last group' # AMD's cards have none
if [[ $card == mi210 || $card == rx7900xt ]]; then
    barriers linear $linear linear/linear_mma.cl "$last"
    barriers conv $conv $gemm "${ahead[@]}" "$parts"
    barriers conv $conv conv/conv_mma.cl "$last"
    mutant linear $linear lib/mma.clh '(MMA_A_AT(r)[0], MMA_A_AT(r)[ld])' '(MMA_A_AT(r)[ld], MMA_A_AT(r)[0])'
    mutant linear $linear lib/mma.clh '(MMA_B_AT(r)[0], MMA_B_AT(r)[depth])' '(MMA_B_AT(r)[depth], MMA_B_AT(r)[0])'
    mutant linear $linear lib/mma.clh 'mma_a_runs(a, p, ld, 1)' 'mma_a_runs(a, p, 1, ld)'
    mutant linear $linear lib/mma.clh 'depth = 1, column = ld' 'depth = ld, column = 1'
    mutant linear $linear $gemm '(A_STAGE(s), B_STAGE(s), sum, scratch)' '(A_STAGE(s + 1), B_STAGE(s + 1), sum, scratch)'
    mutant linear $linear $gemm 'step_at(tile, 1, 1, PLACE_OF(line, tile), k)' 'step_at(tile, 1, 1, line, k)'
    mutant linear $linear $gemm 'place[PLACE_OF(line, tile) * MATRIX_SLAB]' 'place[line * MATRIX_SLAB]'
    mutant linear $linear $gemm 'LINE_AT(SUMS_ROW(q, s), TILE_M)' 'SUMS_ROW(q, s)'
    mutant linear $linear $gemm 'PLACE_OF(SLICE_COLUMN(q) + (i), TILE_N)' '(SLICE_COLUMN(q) + (i))'
    mutant linear $linear $gemm 'PLACE_OF(lid, TILE_M)' 'lid'
    mutant linear $linear lib/mma.clh '(depth) / MATRIX_SLAB * slab' '(depth) / MATRIX_SLAB * (slab + MATRIX_SLAB)'
    wide=2 # heads are 128 wide, so several waves share or copy the same rows
    passes attention $wide || { tail -n 20 "$work/log" && exit 1; }
fi
if [[ $card == rx6800xt ]]; then
    barriers linear $linear linear/linear_mma.cl "$last"
    barriers conv $conv $gemm "${ahead[@]}" "$parts"
    barriers conv $conv conv/conv_mma.cl "$last"
    barriers attention $attention attention/attention_mma_forward.cl 'maxima of a row' # whose work-items are of one wave
    barriers attention $attention attention/attention_mma_backward.cl
    for side in LOW HIGH; do
        mutant linear $linear lib/mma_dot.clh "MMA_${side}_HALVES(first, second);" "MMA_${side}_HALVES(second, first);"
        mutant linear $linear lib/mma_dot.clh "MMA_${side}_HALVES(first[1], second[1])" "MMA_${side}_HALVES(second[1], first[1])"
    done
    mutant linear $linear lib/mma_dot.clh 'mma_copy(a->x + 4, p + ld, 8)' 'mma_copy(a->x + 4, p, 8)'
    mutant linear $linear lib/mma_dot.clh 'mma_copy(b->x + 12, p + 3 * ld, 8)' 'mma_copy(b->x + 12, p + 2 * ld, 8)'
    mutant linear $linear lib/mma_layout.clh 'return 2 * (lane % 4 + lane / 8 % 2 * 4);' 'return 2 * (lane / 8 % 2 + lane % 4 * 2) + lane / 31;'
    mutant linear $linear lib/mma_layout.clh 'return i / 4 * 4;' 'return i % 2 * 4;'
    mutant linear $linear lib/mma_layout.clh 'return mma_dot_row(lane) + i / 4;' 'return mma_dot_row(lane) + i % 2;'
    mutant linear $linear lib/mma_layout.clh 'return mma_dot_column(lane) + i % 4;' 'return mma_dot_column(lane) + i / 2;'
fi
if [[ $card == mi210 ]]; then
    barriers attention $attention attention/attention_mma_rows_forward.cl
    barriers attention $attention attention/attention_mma_rows_backward.cl
    barriers attention $wide attention/attention_mma_rows.clh
    mutant linear $linear $gemm '(float2)(sum[i][j].x[e], sum[i][j].x[e + 1])' '(float2)(sum[i][j].x[e + 1], sum[i][j].x[e])'
    mutant attention $attention lib/mma_rows.clh 'mma_exchange(x, 2 * SUM_FLIP, scratch)' 'mma_exchange(x, SUM_FLIP, scratch)'
    mutant attention $attention lib/mma_rows.clh $'(float2)(low, high), 0, (half *)&bits);\n    return bits;' $'(float2)(high, low), 0, (half *)&bits);\n    return bits;'
    mutant attention $attention lib/shared_numbers.clh '((unit) == MATRIX_AMD_MFMA ? 16 : 1)' '1'
    mutant linear $linear $gemm '(place + SLAB(tile, 1)) = value.hi' '(place + SLAB(tile, 1)) = value.lo'
    for f in a_row b_column c_row; do wrong $f MATRIX_AMD_MFMA 'lane / 4'; done
    for f in a_depth b_depth c_column; do
        wrong $f MATRIX_AMD_MFMA '4 * i + lane / 16'
        wrong $f MATRIX_AMD_MFMA '4 * (lane / 16) + (i ^ 1)'
    done
    "$cleat" devices 2>/dev/null | grep -q "matrix unit *amd_mfma"
    unit amd_mfma lib/mma_amd.clh '(uint2)(a->x[0], a->x[1])' '(uint2)(a->x[1], a->x[0])'
    unit amd_mfma lib/mma_amd.clh 'y = (uint2)(b->x[0], b->x[1])' 'y = (uint2)(b->x[1], b->x[0])'
    unit amd_mfma lib/mma_amd.clh '(float4)(c->x[0], c->x[1]' '(float4)(c->x[1], c->x[0]'
    unit amd_mfma lib/mma_amd.clh $'z.s2, c->x[3] = z.s3;\n#endif' $'z.s3, c->x[3] = z.s2;\n#endif'
fi
if [[ $card == rx7900xt ]]; then
    mutant linear $linear $gemm 'as_ushort2(sum[i][j].x[e])' 'as_ushort2(sum[i][j].x[C_COUNT - 1 - e])'
    barriers attention $wide attention/attention_mma_forward.cl 'maxima of a row' # whose work-items are of one wave
    barriers attention $wide attention/attention_mma_backward.cl
    mutant attention $wide attention/attention_mma.clh 'first + (f)*SUM_SUBGROUPS, scratch' 'first + (f), scratch'
    mutant linear $linear $gemm 'rows / MATRIX_SLAB * SLAB(tile, 1)' 'rows * SLAB(tile, 1)'
    for f in a_row b_column c_column; do wrong $f MATRIX_AMD_WMMA 'lane / 2'; done
    for f in a_depth b_depth; do wrong $f MATRIX_AMD_WMMA 'i ^ lane / 16'; done
    wrong c_row MATRIX_AMD_WMMA '8 * (lane / 16) + i'
    wrong c_row MATRIX_AMD_WMMA '2 * i + 1 - lane / 16'
    "$cleat" devices 2>/dev/null | grep -q "matrix unit *amd_wmma"
    unit amd_wmma lib/mma_amd.clh '(uint8)(a->x[0], a->x[1]' '(uint8)(a->x[1], a->x[0]'
    unit amd_wmma lib/mma_amd.clh '(uint8)(b->x[0], b->x[1]' '(uint8)(b->x[1], b->x[0]'
    unit amd_wmma lib/mma_amd.clh '(float8)(c->x[0], c->x[1]' '(float8)(c->x[1], c->x[0]'
    unit amd_wmma lib/mma_amd.clh 'c->x[6] = z.s6, c->x[7] = z.s7' 'c->x[6] = z.s7, c->x[7] = z.s6'
fi

if [[ $card == t4 ]]; then # without matrix units. Products: the same row has a bias, a residual, and extents that fill no tile
    export CLEAT_TEST_VARIANT=gpu CLEAT_TEST_STORAGE=f32
    passes linear $linear || { tail -n 20 "$work/log" && exit 1; }
    unread='the steps are no longer read' # needed if the last step lies in the first stage
    barriers linear $linear lib/gemm_gpu.clh "$unread"
    mutant linear 5 lib/gemm_gpu.clh "barrier(CLK_LOCAL_MEM_FENCE); /* $unread */" ''
    mutant linear $linear lib/gemm_gpu.clh ', turn = -turn' ''
    mutant linear $linear lib/gemm_gpu.clh 'left >= (along_k ? 4 : 1)' 'left >= 1'
    mutant linear $linear lib/gemm_gpu.clh 'clamp(after, 0, 2)' 'clamp(after, 0, 3)'
    mutant linear $linear lib/gemm_gpu.clh 'i < WG; i += TILE_M / 4' 'i < TILE_M / 4; i += TILE_M / 4'
    mutant linear $linear linear/linear.cl '(o->depth - 1) % TILE_K + 1' '(o->depth - 1) % TILE_K'
    wide=2 # heads of 128 elements, whose streamed tiles take turns
    passes attention $wide || { tail -n 20 "$work/log" && exit 1; }
    barriers attention $wide attention/attention_gpu_backward.cl
    mutant attention $wide attention/attention_gpu.clh 'UNROLL == 8 && n >= count' 'UNROLL == 8'
    mutant attention $wide attention/attention_gpu_backward.cl 'UNROLL == 8 && n >= COLS' 'UNROLL == 8'
    mutant attention $wide attention/attention_gpu_backward.cl 't->parts[c * TX + lane]' 't->parts[c * TX]'
    patches=5 # several parts of a split sum, tiles that channels do not fill
    passes conv $patches || { tail -n 20 "$work/log" && exit 1; }
    mutant conv $patches conv/conv_gemm.clh 'if (o->at >= o->wrap_at)' 'if (o->at > o->wrap_at)'
    mutant conv $patches conv/conv_gemm.clh 'if (o->row >= o->wrap_row)' 'if (o->row > o->wrap_row)'
    mutant conv $patches conv/conv_gemm.clh '(uint)o->row < (uint)g->H' 'o->row < g->H'
    mutant conv $patches conv/conv_gemm.clh '(uint)(PATCH_ROW(i) + RUN_ROW) < (uint)o->g.H' 'PATCH_ROW(i) + RUN_ROW < o->g.H'
    mutant conv $patches conv/conv_gemm.clh '(uint)(o->column[i] - o->column_tap) < (uint)g->Q' 'o->column[i] - o->column_tap < g->Q'
    mutant conv $patches conv/conv_gemm.clh 'o->a_offset += o->g.W * o->g.C - o->j;' 'o->a_offset += o->g.W * o->g.C;'
    mutant conv $patches conv/conv_gemm.clh '((uint)((chunk)->at + (i)) < (uint)(chunk)->end)' '((chunk)->at + (i) < (chunk)->end)'
    # Whole tiles come first, then tiles in parts, which the last group of each adds up.
    export CLEAT_VIRTUAL_CARD_UNITS=6
    passes linear $linear || { tail -n 20 "$work/log" && exit 1; }
    mutant linear $linear linear/split.clh 'own.tile = whole + (group' 'own.tile = (group'
    mutant linear $linear linear/split.clh '.in_parts = group >= whole' '.in_parts = group > whole'
    mutant linear $linear linear/split.clh 'write_row(sum[i], bias, accum' 'write_row(sum[i], 0, accum'
    mutant linear $linear linear/split.clh 'float sum = accum ? accum[m] : 0.0f;' 'float sum = 0.0f;'
    mutant linear $linear linear/linear.cl 'own.in_parts ? min(K, k_first + split_depth) : K' 'min(K, k_first + split_depth)'
    mutant linear $linear linear/linear.cl 'AT(partial) + place.split * parts.size' 'AT(partial)'
    mutant linear $linear linear/linear.cl 'line_parts[(long)place.split * M + m]' 'line_parts[m]'
    mutant linear $linear lib/last_group.clh 'if (*before == groups - 1) *counter = 0;' ''
    mutant linear $linear lib/last_group.clh 'return *before == groups - 1;' 'return *before == 0;'
    mutant linear $linear lib/last_group.clh $'    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n    DEVICE_FENCE(); /* the loads' '    DEVICE_FENCE(); /* the loads'
    unset CLEAT_VIRTUAL_CARD_UNITS CLEAT_TEST_VARIANT
    # Generation: attention to a cache, with more keys than work-items, and products of one row.
    passes cached_attention 4 || { tail -n 20 "$work/log" && exit 1; }
    barriers cached_attention 4 attention/attention_cached.cl 'may be overwritten' # by heads wider than a group
    passes linear_row 0 || { tail -n 20 "$work/log" && exit 1; }
    barriers linear_row 0 linear/linear_row.cl 'may be overwritten' # by groups of more columns
fi

echo "$died of $((died + survived)) mutants died"
((survived == 0 && died > 0))
