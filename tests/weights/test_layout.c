/* Arrays in PyTorch's layout: the PyTorch shape of each array, the position of every value in cleat's layout,
 * and refusal of all other shapes. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/graph.h"
#include "weights/layout.h"

static cleat_tensor tensor_of(int rank, const int64_t *shape) {
    cleat_tensor tensor = {.dtype = CLEAT_F32, .rank = rank};
    memcpy(tensor.shape, shape, (size_t)rank * sizeof *shape);
    return tensor;
}

static void shapes_there(void **state) {
    (void)state;
    static const struct {
        int rank, rank_there, rank_found;
        int64_t here[5], there[5];
    } rows[] = {
        {4, 4, 4, {8, 3, 5, 2}, {8, 2, 3, 5}},       /* convolution */
        {4, 4, 4, {3, 3, 3, 3}, {3, 3, 3, 3}},       /* with equal extents */
        {3, 4, 4, {3, 5, 12}, {12, 1, 3, 5}},        /* depth-wise */
        {2, 4, 4, {5, 7}, {5, 7, 1, 1}},             /* 1 x 1 */
        {2, 2, 2, {5, 7}, {5, 7}},                   /* linear */
        {3, 3, 3, {2, 5, 7}, {2, 5, 7}},             /* a sequence */
        {1, 1, 1, {5}, {5}},                         /* a bias */
        {1, 4, 1, {5}, {5}},                         /* refused: a vector cannot have rank 4 */
        {5, 4, 5, {2, 3, 4, 5, 6}, {2, 3, 4, 5, 6}}, /* refused */
        {4, 3, 4, {8, 3, 5, 2}, {8, 3, 5, 2}},       /* refused: an image has rank 4 */
        {2, 0, 2, {5, 7}, {5, 7}},                   /* not in the file */
        {2, CLEAT_TRANSPOSED, 2, {5, 7}, {7, 5}},    /* Conv1D */
        {1, CLEAT_TRANSPOSED, 1, {5}, {5}},          /* its bias */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        int64_t shape[CLEAT_MAX_RANK] = {0};
        cleat_tensor tensor = tensor_of(rows[i].rank, rows[i].here);
        assert_int_equal(cleat_torch_shape(&tensor, rows[i].rank_there, shape), rows[i].rank_found);
        assert_memory_equal(shape, rows[i].there, (size_t)rows[i].rank_found * sizeof *shape);
    }
}

enum { N = 4, C = 3, R = 2, S = 5 };

/* Encodes the PyTorch position of a value. */
static float mark(int64_t n, int64_t c, int64_t r, int64_t s) {
    return (float)(((n * 10 + c) * 10 + r) * 10 + s);
}

static void fill_there(int64_t channels, int64_t height, int64_t width, float *there) {
    for (int64_t i = 0; i < N * channels * height * width; ++i)
        there[i] =
            mark(i / (channels * height * width), i / (height * width) % channels, i / width % height, i % width);
}

static void convolution_weights_are_turned(void **state) {
    (void)state;
    float there[N * C * R * S], here[N * C * R * S];
    const cleat_tensor tensor = tensor_of(4, (int64_t[]){N, R, S, C});
    fill_there(C, R, S, there);
    cleat_from_torch(&tensor, 4, there, here);
    for (int64_t n = 0; n < N; ++n)
        for (int64_t r = 0; r < R; ++r)
            for (int64_t s = 0; s < S; ++s)
                for (int64_t c = 0; c < C; ++c) assert_true(here[((n * R + r) * S + s) * C + c] == mark(n, c, r, s));
}

static void depth_wise_weights_are_turned(void **state) {
    (void)state;
    float there[N * R * S], here[N * R * S];
    const cleat_tensor tensor = tensor_of(3, (int64_t[]){R, S, N});
    fill_there(1, R, S, there);
    cleat_from_torch(&tensor, 4, there, here);
    for (int64_t r = 0; r < R; ++r)
        for (int64_t s = 0; s < S; ++s)
            for (int64_t n = 0; n < N; ++n) assert_true(here[(r * S + s) * N + n] == mark(n, 0, r, s));
}

/* Parts that begin and end at multiples of the unit are transposed as in the whole, and back. */
static void parts_are_turned_alike(void **state) {
    (void)state;
    enum { ALL = N * C * R * S };
    float there[ALL], whole[ALL], part[ALL], back[ALL];
    const struct {
        cleat_tensor tensor;
        int64_t unit, elements;
    } rows[] = {{tensor_of(4, (int64_t[]){N, R, S, C}), C * R * S, ALL},
                {tensor_of(3, (int64_t[]){R, S, N}), R * S * N, R * S * N},
                {tensor_of(2, (int64_t[]){N, C}), 1, N * C}};
    fill_there(C, R, S, there);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const int64_t unit = rows[i].unit;
        assert_int_equal(cleat_torch_unit(&rows[i].tensor, 4), unit);
        assert_int_equal(cleat_torch_unit(&rows[i].tensor, 2), 1);
        cleat_from_torch(&rows[i].tensor, 4, there, whole);
        for (int64_t at = 0; at < rows[i].elements; at += unit) {
            cleat_from_torch_part(&rows[i].tensor, 4, unit, there + at, part + at);
            cleat_to_torch_part(&rows[i].tensor, 4, unit, part + at, back + at);
        }
        assert_memory_equal(part, whole, (size_t)rows[i].elements * sizeof *part);
        assert_memory_equal(back, there, (size_t)rows[i].elements * sizeof *back);
    }
}

static void matrices_are_transposed(void **state) {
    (void)state;
    float there[N * C], here[N * C], back[N * C];
    const cleat_tensor tensor = tensor_of(2, (int64_t[]){N, C}), bias = tensor_of(1, (int64_t[]){N});
    for (int64_t i = 0; i < N * C; ++i) there[i] = (float)i; /* [C, N] */
    cleat_from_torch(&tensor, CLEAT_TRANSPOSED, there, here);
    for (int64_t n = 0; n < N; ++n)
        for (int64_t c = 0; c < C; ++c) assert_true(here[n * C + c] == there[c * N + n]);
    cleat_to_torch(&tensor, CLEAT_TRANSPOSED, here, back);
    assert_memory_equal(back, there, sizeof back);
    assert_int_equal(cleat_torch_unit(&tensor, CLEAT_TRANSPOSED), N * C);
    assert_int_equal(cleat_torch_unit(&bias, CLEAT_TRANSPOSED), 1);
    cleat_from_torch(&bias, CLEAT_TRANSPOSED, there, here);
    assert_memory_equal(here, there, N * sizeof *here);
}

static void all_others_stay(void **state) {
    (void)state;
    float there[N * C], here[N * C];
    const cleat_tensor tensor = tensor_of(2, (int64_t[]){N, C});
    fill_there(C, 1, 1, there);
    for (int rank = 2; rank <= 4; rank += 2) {
        memset(here, 0, sizeof here);
        cleat_from_torch(&tensor, rank, there, here);
        assert_memory_equal(here, there, sizeof here);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_there),
        cmocka_unit_test(convolution_weights_are_turned),
        cmocka_unit_test(depth_wise_weights_are_turned),
        cmocka_unit_test(parts_are_turned_alike),
        cmocka_unit_test(matrices_are_transposed),
        cmocka_unit_test(all_others_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
