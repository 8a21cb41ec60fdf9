/* Resampling of position tables, rows first, then columns. */
#include "weights/position_table.h"

#include "core/memory.h"

#include <math.h>
#include <string.h>

static int64_t root_of(int64_t square) {
    int64_t side = 0;
    while ((side + 1) * (side + 1) <= square) ++side;
    return side * side == square ? side : 0;
}

bool cleat_positions_grids(int64_t rows, int64_t wanted, int64_t *prefix, int64_t *side, int64_t *wanted_side) {
    for (int64_t first = 0; first <= 1; ++first) {
        const int64_t there = root_of(rows - first), here = root_of(wanted - first);
        if (!there || !here) continue;
        *prefix = first;
        *side = there;
        *wanted_side = here;
        return true;
    }
    return false;
}

/* Cubic convolution (Keys 1981). */
static double cubic(double x) {
    const double a = -0.5;
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* Weights of the inputs first .. first + count - 1 in output i; `weights` has room for `from` of them. */
static int64_t weigh(int64_t from, int64_t to, int64_t i, double *weights, int64_t *first) {
    const double scale = (double)from / (double)to, widening = scale > 1 ? scale : 1;
    const double support = 2 * widening, centre = scale * ((double)i + 0.5);
    const int64_t low = (int64_t)floor(centre - support + 0.5), high = (int64_t)floor(centre + support + 0.5);
    const int64_t start = low > 0 ? low : 0, stop = high < from ? high : from;
    double sum = 0;
    for (int64_t k = start; k < stop; ++k) sum += weights[k - start] = cubic(((double)k - centre + 0.5) / widening);
    for (int64_t k = start; k < stop; ++k) weights[k - start] /= sum;
    *first = start;
    return stop - start;
}

/* in [outer, from, inner] -> out [outer, to, inner] */
static void resample(const double *in, int64_t outer, int64_t from, double *out, int64_t to, int64_t inner,
                     double *weights) {
    for (int64_t i = 0; i < to; ++i) {
        int64_t first;
        const int64_t count = weigh(from, to, i, weights, &first);
        for (int64_t o = 0; o < outer; ++o)
            for (int64_t c = 0; c < inner; ++c) {
                double sum = 0;
                for (int64_t k = 0; k < count; ++k) sum += weights[k] * in[(o * from + first + k) * inner + c];
                out[(o * to + i) * inner + c] = sum;
            }
    }
}

cleat_status cleat_positions_resample(const float *table, int64_t from, float *resampled, int64_t to, int64_t prefix,
                                      int64_t width, cleat_error *error) {
    double *in = cleat_alloc((size_t)(from * from * width), sizeof *in);
    double *half = cleat_alloc((size_t)(to * from * width), sizeof *half);
    double *out = cleat_alloc((size_t)(to * to * width), sizeof *out);
    double *weights = cleat_alloc((size_t)from, sizeof *weights);
    cleat_status status = CLEAT_OK;
    if (in && half && out && weights) {
        memcpy(resampled, table, (size_t)(prefix * width) * sizeof *table);
        for (int64_t i = 0; i < from * from * width; ++i) in[i] = table[prefix * width + i];
        resample(in, 1, from, half, to, from * width, weights);
        resample(half, to, from, out, to, width, weights);
        for (int64_t i = 0; i < to * to * width; ++i) resampled[prefix * width + i] = (float)out[i];
    } else {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a table of %lld x %lld positions", (long long)to,
                            (long long)to);
    }
    cleat_free(in);
    cleat_free(half);
    cleat_free(out);
    cleat_free(weights);
    return status;
}
