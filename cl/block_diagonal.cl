/* Copies the blocks of a matrix, times a constant, to chosen places on the diagonal of another; and the
 * gradient.
 *
 *   x f32 [parts * side, rank]         the blocks, one below the other
 *   y T [places * side, parts * rank]  y[s side + d, q rank + j] = factor x[q side + d, j] where block q lies in
 *                                      place s, else 0
 *
 * The place of block q is bits 4 q to 4 q + 3 of `where`. Every work-item computes whole rows. */
#include "lib/common.clh"

static inline int place_of(int where, int q) {
    return where >> 4 * q & 15;
}

__kernel void block_diagonal_spread(TENSOR(const float, x), TENSOR(T, y), const float factor, const int where,
                                    const int parts, const int side, const int rank, const int rows) {
    for (int row = get_global_id(0); row < rows; row += get_global_size(0)) {
        const int s = row / side, d = row - s * side;
        for (int q = 0; q < parts; ++q) {
            const ulong from = (ulong)(q * side + d) * rank, to = ((ulong)row * parts + q) * rank;
            const bool here = place_of(where, q) == s;
            for (int j = 0; j < rank; ++j) STORE(here ? factor * AT(x)[from + j] : 0.0f, AT(y), to + j);
        }
    }
}

/* dx = accum + factor * the blocks of dy; rows of dx. */
__kernel void block_diagonal_collect(TENSOR(const T, dy), TENSOR(const float, accum), TENSOR(float, dx),
                                     const float factor, const int where, const int parts, const int side,
                                     const int rank, const int rows) {
    for (int row = get_global_id(0); row < rows; row += get_global_size(0)) {
        const int q = row / side, d = row - q * side;
        const ulong from = ((ulong)(place_of(where, q) * side + d) * parts + q) * rank, to = (ulong)row * rank;
        for (int j = 0; j < rank; ++j) {
            const float before = HAS(accum) ? AT(accum)[to + j] : 0.0f;
            AT(dx)[to + j] = before + factor * LOAD(AT(dy), from + j);
        }
    }
}
