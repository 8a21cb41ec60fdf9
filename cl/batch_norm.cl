/* Batch normalization over all rows of x [rows, channels]: forward and backward.
 *
 * Forward: each group processes one part of the rows and writes its mean and sum of squared deviations
 * (batch_norm_part); these are merged pairwise by the formula of Chan, Golub & LeVeque (1979), and the
 * running averages follow them (batch_norm_join); a last pass normalizes (batch_norm_apply). Backward
 * likewise: partial sums of d and d xhat (batch_norm_sum_part), the total sums (batch_norm_sum_join), the
 * gradient (batch_norm_grad_apply). d is dy where relu passed y, else 0. LAST_GROUP: the last group of a
 * chunk of channels joins its parts, in the same order, without another launch; counters: one for each chunk.
 *
 * The first `samples[0] * sample_rows` rows are valid; all rows if there is no `samples`. Rows past them are
 * normalized too, but their dy is taken as 0. The statistics are mean and biased variance, f32
 * [2, channels]. */
#include "lib/relu.clh"
#include "lib/channels.clh"
#include "lib/last_group.clh"

#define SAMPLES (HAS(samples) ? AT(samples) : 0)
static inline int counted_rows(__global const int *samples, int rows, int sample_rows) {
    return samples ? clamp(samples[0], 0, rows / sample_rows) * sample_rows : rows;
}

/* --- statistics ----------------------------------------------------------------------------------------- */

/* Merges two sets of values, each given by its count, mean and sum of squared deviations from the mean. */
static inline void join_moments(float *count, floatv *mean, floatv *squares, float more, floatv its_mean,
                                floatv its_squares) {
    float all = *count + more, share = more > 0.0f ? more / all : 0.0f;
    floatv apart = its_mean - *mean;
    *mean += apart * share;
    *squares += its_squares + apart * apart * (*count * share);
    *count = all;
}

/* Merges the moments of all work-items that hold the same channels into the first of them: item <
 * COLUMN_ITEMS. */
static inline void join_items(float *count, floatv *mean, floatv *squares, GROUP_SCRATCH_ARG counts,
                              VECTOR_SCRATCH_ARG means, VECTOR_SCRATCH_ARG all_squares) {
    const int item = get_local_id(0);
    for (int n = WG / 2; n >= COLUMN_ITEMS; n /= 2) {
        if (item < 2 * n) {
            counts[item] = *count;
            means[item] = *mean;
            all_squares[item] = *squares;
        }
        GROUP_BARRIER();
        if (item < n) join_moments(count, mean, squares, counts[item + n], means[item + n], all_squares[item + n]);
        GROUP_BARRIER();
    }
}

/* Running averages, [channels] each: (1 - momentum) average + momentum value, if that is finite: a step that
 * is skipped because of non-finite values must not affect them. With a momentum below 0 the value itself is
 * stored. NULL: not requested. */
typedef struct averages {
    __global float *means, *variances;
    float momentum;
} averages;
#define AVERAGES                                                                                                       \
    { OR_NULL(means), OR_NULL(variances), momentum }

static inline void follow(__global float *average, floatv value, float momentum, int at, int channels) {
    if (!average) return;
    if (momentum >= 0.0f) {
        const floatv old = channels_load_f32(average, at, channels), next = fma((floatv)(momentum), value - old, old);
        value = isfinite(next) ? next : old;
    }
    channels_store_f32(value, average, at, channels);
}

/* saved [2, channels]: mean and biased variance of `counted` rows; running: averages of mean and unbiased
 * variance. */
static inline void join_parts(__global const float *partial, __global float *saved, averages running, int counted,
                              int channels, int first, int spans, int parts, GROUP_SCRATCH_ARG counts,
                              VECTOR_SCRATCH_ARG means, VECTOR_SCRATCH_ARG all_squares) {
    FOR_VECTOR {
        float count = 0.0f;
        floatv mean = (floatv)(0.0f), squares = (floatv)(0.0f);
        for (int p = (int)get_local_id(0) / COLUMN_ITEMS; p < parts; p += ROW_STEP) {
            const row_span span = rows_of_part(counted, parts, p);
            __global const float *its = partial + (ulong)p * (2 * channels);
            join_moments(&count, &mean, &squares, (float)(span.end - span.at),
                         channels_load_f32(its, CHANNEL(v), channels),
                         channels_load_f32(its + channels, CHANNEL(v), channels));
        }
        join_items(&count, &mean, &squares, counts, means, all_squares);
        if ((int)get_local_id(0) < COLUMN_ITEMS) {
            channels_store_f32(mean, saved, CHANNEL(v), channels);
            channels_store_f32(squares / fmax(count, 1.0f), saved + channels, CHANNEL(v), channels);
            follow(running.means, mean, running.momentum, CHANNEL(v), channels);
            follow(running.variances, squares / fmax(count - 1.0f, 1.0f), running.momentum, CHANNEL(v), channels);
        }
    }
}

/* partial f32 [parts, 2, channels]: mean and sum of squared deviations of each part.
 *
 * A work-item sums deviations from the mean so far, which is updated after every BLOCK rows: values far from
 * 0 cause no cancellation, and memory is read once. `base` is a value near the mean, so that `shift` keeps
 * its significant digits. */
#define BLOCK 16
__kernel void batch_norm_part(TENSOR(const T, x), TENSOR(const int, samples), TENSOR(float, partial), const int rows,
                              const int sample_rows, const int channels, const int chunks, TENSOR(float, saved),
                              TENSOR(float, means), TENSOR(float, variances), const float momentum,
                              TENSOR(int, counters)) {
    LAST_GROUP_SCRATCH(before);
    GROUP_SCRATCH(counts);
    VECTOR_SCRATCH(all_means);
    VECTOR_SCRATCH(all_squares);
    const int first = own_channel(chunks), spans = own_spans(first, channels);
    const row_span own = own_rows(counted_rows(SAMPLES, rows, sample_rows), chunks);
    floatv base[ALL_VECTORS], shift[ALL_VECTORS], squares[ALL_VECTORS];
    FOR_VECTOR {
        shift[v] = squares[v] = base[v] = (floatv)(0.0f);
        if (own.at < own.end) base[v] = channels_load(AT(x) + (ulong)own.at * channels, CHANNEL(v), channels);
    }
    float count = 0.0f;
    const int ahead = rows_ahead(channels);
    for (int begin = own.at; begin < own.end; begin += BLOCK * ROW_STEP) {
        const int n = min(BLOCK, (own.end - begin + ROW_STEP - 1) / ROW_STEP);
        __global const T *row = AT(x) + (ulong)begin * channels;
        floatv sum[ALL_VECTORS], squared[ALL_VECTORS];
        FOR_VECTOR sum[v] = squared[v] = (floatv)(0.0f);
        for (int i = 0; i < n; ++i, row += (ulong)ROW_STEP * channels) FOR_VECTOR {
                PREFETCH_CHANNELS(row + CHANNEL(v) + ahead);
                floatv d = channels_load(row, CHANNEL(v), channels) - base[v] - shift[v];
                sum[v] += d;
                squared[v] = fma(d, d, squared[v]);
            }
        count += (float)n;
        const float share = 1.0f / count;
        FOR_VECTOR {
            squares[v] += squared[v] - sum[v] * sum[v] * share;
            shift[v] = fma(sum[v], (floatv)(share), shift[v]);
        }
    }
    __global float *mine = AT(partial) + (ulong)own_part(chunks) * (2 * channels);
    FOR_VECTOR {
        floatv mean = base[v] + shift[v];
        float all = count;
        join_items(&all, &mean, &squares[v], counts, all_means, all_squares);
        if ((int)get_local_id(0) < COLUMN_ITEMS) {
            channels_store_f32(mean, mine, CHANNEL(v), channels);
            channels_store_f32(squares[v], mine + channels, CHANNEL(v), channels);
        }
    }
    const int parts = (int)get_num_groups(0) / chunks;
    const averages running = AVERAGES;
    if (HAS(counters) && is_last_group(AT(counters) + (int)get_group_id(0) % chunks, parts, before))
        join_parts(AT(partial), AT(saved), running, counted_rows(SAMPLES, rows, sample_rows), channels, first, spans,
                   parts, counts, all_means, all_squares);
}

__kernel void batch_norm_join(TENSOR(const float, partial), TENSOR(const int, samples), TENSOR(float, saved),
                              TENSOR(float, means), TENSOR(float, variances), const float momentum, const int rows,
                              const int sample_rows, const int channels, const int chunks, const int parts) {
    GROUP_SCRATCH(counts);
    VECTOR_SCRATCH(all_means);
    VECTOR_SCRATCH(all_squares);
    const int first = own_channel(chunks), spans = own_spans(first, channels);
    const averages running = AVERAGES;
    join_parts(AT(partial), AT(saved), running, counted_rows(SAMPLES, rows, sample_rows), channels, first, spans, parts,
               counts, all_means, all_squares);
}

/* --- normalisation -------------------------------------------------------------------------------------- */

/* gamma / sqrt(variance + eps) of channels [at, at + VEC). */
static inline floatv scale_of(__global const float *gamma, __global const float *variances, int at, int channels,
                              float eps) {
    return channels_load_f32(gamma, at, channels) / sqrt(channels_load_f32(variances, at, channels) + eps);
}

/* y = (x - mean) / sqrt(variance + eps) gamma + beta + residual, then max(., 0) if `relu`. means and
 * variances f32 [channels]; residual may be NULL. y may be x or residual. */
__kernel void batch_norm_apply(TENSOR(const T, x), TENSOR(const float, means), TENSOR(const float, variances),
                               TENSOR(const float, gamma), TENSOR(const float, beta), TENSOR(const T, residual),
                               TENSOR(T, y), const int rows, const int channels, const int chunks, const int relu,
                               const int stream, const float eps) {
    const int first = own_channel(chunks), spans = own_spans(first, channels);
    const row_span own = own_rows(rows, chunks);
    floatv mean[ALL_VECTORS], scale[ALL_VECTORS], bias[ALL_VECTORS];
    FOR_VECTOR {
        mean[v] = channels_load_f32(AT(means), CHANNEL(v), channels);
        scale[v] = scale_of(AT(gamma), AT(variances), CHANNEL(v), channels, eps);
        bias[v] = channels_load_f32(AT(beta), CHANNEL(v), channels);
    }
    const int ahead = rows_ahead(channels);
    for (int row = own.at; row < own.end; row += ROW_STEP) {
        const ulong at = (ulong)row * channels;
        FOR_VECTOR {
            PREFETCH_CHANNELS(AT(x) + at + CHANNEL(v) + ahead);
            if (HAS(residual)) PREFETCH_CHANNELS(AT(residual) + at + CHANNEL(v) + ahead);
            floatv value = fma(channels_load(AT(x) + at, CHANNEL(v), channels) - mean[v], scale[v], bias[v]);
            if (HAS(residual)) value += channels_load(AT(residual) + at, CHANNEL(v), channels);
            channels_stream(relu ? relu_of(value) : value, AT(y) + at, CHANNEL(v), channels, stream);
        }
    }
}

/* Updates the running averages means, variances f32 [channels] with statistics f32 [2, channels], for graphs
 * that keep the statistics. */
__kernel void batch_norm_follow(TENSOR(const float, statistics), TENSOR(float, means), TENSOR(float, variances),
                                const float momentum, const int channels) {
    for (int i = get_global_id(0); i < 2 * channels; i += (int)get_global_size(0)) {
        __global float *running = i < channels ? AT(means) + i : AT(variances) + (i - channels);
        const float next = fma(momentum, AT(statistics)[i] - *running, *running);
        if (isfinite(next)) *running = next;
    }
}

/* --- gradients ------------------------------------------------------------------------------------------ */

#if WG == 1
static inline floatv add_items(floatv sum, floatv *sums) {
    return sum;
}
#else
static inline floatv add_items(floatv sum, __local floatv *sums) {
    int item = get_local_id(0);
    sums[item] = sum;
    for (int n = WG / 2; n >= COLUMN_ITEMS; n /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < n) sums[item] += sums[item + n];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = sums[item % COLUMN_ITEMS];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}
#endif

/* d: dy where relu passed the result. The result is y if there is one, else it is recomputed from x - mean as
 * in batch_norm_apply, which costs less than reading it; without y and beta there was no relu. */
#define PASSED(dy, centred, at, c, scale, bias)                                                                        \
    (HAS(y)      ? relu_pass(dy, channels_load(AT(y) + (at), c, channels))                                             \
     : HAS(beta) ? relu_pass(dy, fma(centred, scale, bias))                                                            \
                 : (dy))

/* total [2, channels] = the sums of all parts; dbeta = accum + the first, dgamma = accum + the second
 * (either may be NULL). */
static inline void sum_parts(__global const float *partial, int parts, int channels, int first, int spans,
                             VECTOR_SCRATCH_ARG sums, __global float *total, __global const float *gamma_accum,
                             __global float *dgamma, __global const float *beta_accum, __global float *dbeta) {
    FOR_VECTOR {
        const int c = CHANNEL(v);
        floatv sum = (floatv)(0.0f), product = (floatv)(0.0f);
        for (int p = (int)get_local_id(0) / COLUMN_ITEMS; p < parts; p += ROW_STEP) {
            __global const float *its = partial + (ulong)p * (2 * channels);
            sum += channels_load_f32(its, c, channels);
            product += channels_load_f32(its + channels, c, channels);
        }
        sum = add_items(sum, sums);
        product = add_items(product, sums);
        if ((int)get_local_id(0) < COLUMN_ITEMS) {
            channels_store_f32(sum, total, c, channels);
            channels_store_f32(product, total + channels, c, channels);
            if (beta_accum) sum += channels_load_f32(beta_accum, c, channels);
            if (gamma_accum) product += channels_load_f32(gamma_accum, c, channels);
            if (dbeta) channels_store_f32(sum, dbeta, c, channels);
            if (dgamma) channels_store_f32(product, dgamma, c, channels);
        }
    }
}
#define SUM_PARTS(partial, parts)                                                                                      \
    sum_parts(partial, parts, channels, first, spans, sums, AT(total), OR_NULL(gamma_accum), OR_NULL(dgamma),          \
              OR_NULL(beta_accum), OR_NULL(dbeta))

/* dresidual = accum + d (dresidual may be NULL); partial f32 [parts, 2, channels]: each part's sums of d and
 * of d xhat. */
__kernel void batch_norm_sum_part(TENSOR(const T, dy), TENSOR(const T, x), TENSOR(const T, y),
                                  TENSOR(const float, saved), TENSOR(const float, gamma), TENSOR(const float, beta),
                                  TENSOR(const int, samples), TENSOR(const T, accum), TENSOR(T, dresidual),
                                  TENSOR(float, partial), const int rows, const int sample_rows, const int channels,
                                  const int chunks, const int stream, const float eps, TENSOR(float, total),
                                  TENSOR(const float, gamma_accum), TENSOR(float, dgamma),
                                  TENSOR(const float, beta_accum), TENSOR(float, dbeta), TENSOR(int, counters)) {
    LAST_GROUP_SCRATCH(before);
    VECTOR_SCRATCH(sums);
    const int first = own_channel(chunks), spans = own_spans(first, channels);
    const int counted = counted_rows(SAMPLES, rows, sample_rows);
    const row_span own = own_rows(rows, chunks);
    floatv mean[ALL_VECTORS], scale[ALL_VECTORS], bias[ALL_VECTORS], sum[ALL_VECTORS], product[ALL_VECTORS];
    FOR_VECTOR {
        mean[v] = channels_load_f32(AT(saved), CHANNEL(v), channels);
        scale[v] = scale_of(AT(gamma), AT(saved) + channels, CHANNEL(v), channels, eps);
        bias[v] = HAS(beta) ? channels_load_f32(AT(beta), CHANNEL(v), channels) : (floatv)(0.0f);
        sum[v] = product[v] = (floatv)(0.0f);
    }
    const int ahead = rows_ahead(channels);
    for (int row = own.at; row < own.end; row += ROW_STEP) {
        const ulong at = (ulong)row * channels;
        FOR_VECTOR {
            floatv d = (floatv)(0.0f);
            if (row < counted) {
                PREFETCH_CHANNELS(AT(x) + at + CHANNEL(v) + ahead);
                PREFETCH_CHANNELS(AT(dy) + at + CHANNEL(v) + ahead);
                if (HAS(y)) PREFETCH_CHANNELS(AT(y) + at + CHANNEL(v) + ahead);
                const floatv centred = channels_load(AT(x) + at, CHANNEL(v), channels) - mean[v];
                d = channels_load(AT(dy) + at, CHANNEL(v), channels);
                d = PASSED(d, centred, at, CHANNEL(v), scale[v], bias[v]);
                sum[v] += d;
                product[v] = fma(d, centred, product[v]);
            }
            if (HAS(dresidual)) {
                if (HAS(accum)) d += channels_load(AT(accum) + at, CHANNEL(v), channels);
                channels_stream(d, AT(dresidual) + at, CHANNEL(v), channels, stream);
            }
        }
    }
    __global float *mine = AT(partial) + (ulong)own_part(chunks) * (2 * channels);
    FOR_VECTOR {
        floatv rstd = 1.0f / sqrt(channels_load_f32(AT(saved) + channels, CHANNEL(v), channels) + eps);
        sum[v] = add_items(sum[v], sums);
        product[v] = add_items(product[v], sums) * rstd;
        if ((int)get_local_id(0) < COLUMN_ITEMS) {
            channels_store_f32(sum[v], mine, CHANNEL(v), channels);
            channels_store_f32(product[v], mine + channels, CHANNEL(v), channels);
        }
    }
    const int parts = (int)get_num_groups(0) / chunks;
    if (HAS(counters) && is_last_group(AT(counters) + (int)get_group_id(0) % chunks, parts, before))
        SUM_PARTS(AT(partial), parts);
}

__kernel void batch_norm_sum_join(TENSOR(const float, partial), const int channels, const int chunks, const int parts,
                                  TENSOR(float, total), TENSOR(const float, gamma_accum), TENSOR(float, dgamma),
                                  TENSOR(const float, beta_accum), TENSOR(float, dbeta)) {
    VECTOR_SCRATCH(sums);
    const int first = own_channel(chunks), spans = own_spans(first, channels);
    SUM_PARTS(AT(partial), parts);
}

/* dx = accum + gamma / sqrt(variance + eps) (d - mean of d - xhat mean of d xhat) in valid rows, accum in the
 * others. dx may be any of its inputs. */
__kernel void batch_norm_grad_apply(TENSOR(const T, dy), TENSOR(const T, x), TENSOR(const T, y),
                                    TENSOR(const float, saved), TENSOR(const float, gamma), TENSOR(const float, beta),
                                    TENSOR(const float, total), TENSOR(const int, samples), TENSOR(const T, accum),
                                    TENSOR(T, dx), const int rows, const int sample_rows, const int channels,
                                    const int chunks, const int stream, const float eps) {
    const int first = own_channel(chunks), spans = own_spans(first, channels);
    const int counted = counted_rows(SAMPLES, rows, sample_rows);
    const row_span own = own_rows(rows, chunks);
    const float share = 1.0f / (float)max(counted, 1);
    floatv mean[ALL_VECTORS], scale[ALL_VECTORS], bias[ALL_VECTORS], slope[ALL_VECTORS], middle[ALL_VECTORS];
    FOR_VECTOR {
        const int c = CHANNEL(v);
        floatv rstd = 1.0f / sqrt(channels_load_f32(AT(saved) + channels, c, channels) + eps);
        mean[v] = channels_load_f32(AT(saved), c, channels);
        scale[v] = scale_of(AT(gamma), AT(saved) + channels, c, channels, eps);
        bias[v] = HAS(beta) ? channels_load_f32(AT(beta), c, channels) : (floatv)(0.0f);
        middle[v] = channels_load_f32(AT(total), c, channels) * share;
        slope[v] = channels_load_f32(AT(total) + channels, c, channels) * share * rstd;
    }
    const int ahead = rows_ahead(channels);
    for (int row = own.at; row < own.end; row += ROW_STEP) {
        const ulong at = (ulong)row * channels;
        FOR_VECTOR {
            const int c = CHANNEL(v);
            floatv g = (floatv)(0.0f);
            if (row < counted) {
                PREFETCH_CHANNELS(AT(x) + at + c + ahead);
                PREFETCH_CHANNELS(AT(dy) + at + c + ahead);
                const floatv centred = channels_load(AT(x) + at, c, channels) - mean[v];
                floatv d = channels_load(AT(dy) + at, c, channels);
                d = PASSED(d, centred, at, c, scale[v], bias[v]);
                g = (d - middle[v] - centred * slope[v]) * scale[v];
            }
            if (HAS(accum)) g += channels_load(AT(accum) + at, c, channels);
            channels_stream(g, AT(dx) + at, c, channels, stream);
        }
    }
}
