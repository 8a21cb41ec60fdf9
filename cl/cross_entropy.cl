/* Cross entropy of rows of logits x with labels, smoothed by `smoothing` (e below): forward and backward.
 *
 *   loss = -sum over c of q[c] log softmax(x)[c],   q[c] = (1 - e) [c = label] + e / WIDTH
 *   dx[c] = accum[c] + dloss sample_weight (softmax(x)[c] - q[c])
 *
 * A row whose label is not a column contributes nothing, whatever its logits. All terms are computed relative
 * to the largest logit, which avoids cancellation of large numbers. */
#include "lib/common.clh"
#include "lib/last_group.clh"
#include "lib/row_loss.clh"
#include "lib/rows.clh"
#include "lib/softmax.clh"

/* Maximum number of vectors that a work-item keeps in registers between the passes; wider rows are read
 * again. */
#if WG == 1
#define MAX_KEPT 16
#else
#define MAX_KEPT 4
#endif
#define KEPT (PARTS <= MAX_KEPT)

/* x T [rows, WIDTH], labels i32, sample_weight f32 [rows]; statistics f32 [2, rows]: the largest logit, and 1
 * / sum of exp(x - largest); each f32 [rows], or none: the losses; losses f32 [rows]: sample_weight * loss;
 * total f32 [1]: their sum, if there are counters. */
WIDE_ROWS __kernel void cross_entropy_rows(TENSOR(const T, x), TENSOR(const int, labels),
                                           TENSOR(const float, sample_weight), TENSOR(float, statistics),
                                           TENSOR(float, each), TENSOR(float, losses), const int rows,
                                           const float smoothing, TENSOR(float, total), TENSOR(int, counters)) {
    GROUP_SCRATCH(scratch_a);
    GROUP_SCRATCH(scratch_b);
    LAST_GROUP_SCRATCH(before);
    int lane = get_local_id(0) % ROW_ITEMS, sub = get_local_id(0) / ROW_ITEMS;
    FOR_ROWS(rows) {
        int row = min(base + sub, rows - 1);
        bool owns = OWNS(base + sub, rows);
        __global const T *from = AT(x) + (ulong)row * WIDTH;
        floatv part[KEPT ? PARTS : 1], most = (floatv)(-INFINITY);
#pragma unroll UNROLL
        for (int k = 0; k < PARTS; ++k) {
            floatv v = row_load(from, COLUMN(k));
            if (KEPT) part[k] = v;
            most = larger(most, row_part(v, COLUMN(k), -INFINITY));
        }
        float top = row_max(maxv(most), scratch_a);
        floatv sum = (floatv)(0.0f), distances = (floatv)(0.0f);
#pragma unroll UNROLL
        for (int k = 0; k < PARTS; ++k) {
            floatv d = (KEPT ? part[k] : row_load(from, COLUMN(k))) - top;
            sum += row_part(exp_below(d), COLUMN(k), 0.0f);
            distances += row_part(d, COLUMN(k), 0.0f);
        }
        float2 sums = row_sum((float2)(sumv(sum), sumv(distances)), scratch_a, scratch_b);
        if (owns && lane == 0) {
            int label = AT(labels)[row];
            float loss = 0.0f, weight = 0.0f;
            if (label >= 0 && label < WIDTH) {
                loss = log_from_one(sums.x) - (1.0f - smoothing) * (LOAD(from, label) - top);
                if (smoothing > 0.0f) loss -= smoothing * (1.0f / WIDTH) * sums.y;
                weight = AT(sample_weight)[row];
            }
            if (HAS(each)) AT(each)[row] = loss;
            AT(losses)[row] = weight * loss;
            AT(statistics)[row] = top;
            AT(statistics)[rows + row] = 1.0f / sums.x;
        }
    }
    if (!HAS(counters) || !is_last_group(AT(counters), get_num_groups(0), before)) return;
    float sum_of_losses = sum_by_group(AT(losses), rows, scratch_a);
    if (get_local_id(0) == 0) *AT(total) = sum_of_losses;
}

/* dx may be x or the accum. */
WIDE_ROWS __kernel void cross_entropy_grad(TENSOR(const T, x), TENSOR(const int, labels),
                                           TENSOR(const float, sample_weight), TENSOR(const float, statistics),
                                           TENSOR(const float, dloss), TENSOR(const T, accum), TENSOR(T, dx),
                                           const int rows, const float smoothing) {
    int lane = get_local_id(0) % ROW_ITEMS, sub = get_local_id(0) / ROW_ITEMS;
    floatv zero = (floatv)(0.0f);
    FOR_ROWS(rows) {
        int row = base + sub;
        if (!OWNS(row, rows)) break;
        ulong at = (ulong)row * WIDTH;
        int label = AT(labels)[row];
        bool counts = label >= 0 && label < WIDTH;
        float weight = AT(dloss)[0] * AT(sample_weight)[row], top = AT(statistics)[row];
        float p = weight * AT(statistics)[rows + row], off = weight * smoothing * (1.0f / WIDTH);
        float on = weight * (1.0f - smoothing);
#pragma unroll UNROLL
        for (int k = 0; k < PARTS; ++k) {
            floatv d = zero, before = HAS(accum) ? row_load(AT(accum) + at, COLUMN(k)) : zero;
            if (counts) {
                d = fma(exp_below(row_load(AT(x) + at, COLUMN(k)) - top), (floatv)(p), (floatv)(-off));
                d -= row_columns(COLUMN(k)) == (intv)(label) ? (floatv)(on) : zero;
            }
            row_store(before + d, AT(dx) + at, COLUMN(k));
        }
    }
}
