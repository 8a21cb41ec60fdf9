/* Moves PyTorch's channel dimension behind the spatial dimensions of images and convolution kernels. */
#include "weights/layout.h"

#include <string.h>

enum { IMAGE = 4 };

static bool is_transposed(const cleat_tensor *tensor, int rank) {
    return rank == CLEAT_TRANSPOSED && cleat_tensor_rank(tensor) == 2;
}

int cleat_torch_shape(const cleat_tensor *tensor, int rank, int64_t *shape) {
    const int64_t *here = cleat_tensor_shape(tensor);
    int rank_here = cleat_tensor_rank(tensor);
    int64_t there[IMAGE] = {1, 1, 1, 1};
    memcpy(shape, here, (size_t)rank_here * sizeof *here);
    if (is_transposed(tensor, rank)) {
        shape[0] = here[1];
        shape[1] = here[0];
    }
    if (rank != IMAGE || rank_here < 2 || rank_here > IMAGE) return rank_here;
    if (rank_here == 2) {
        there[0] = here[0];
        there[1] = here[1];
    } else {
        there[0] = rank_here == 4 ? here[0] : here[2];
        there[1] = rank_here == 4 ? here[3] : 1;
        there[2] = here[rank_here - 3];
        there[3] = here[rank_here - 2];
    }
    memcpy(shape, there, sizeof there);
    return IMAGE;
}

/* [count, rows, columns] -> [count, columns, rows] */
static void swap_last(int64_t count, int64_t rows, int64_t columns, const float *in, float *out) {
    for (int64_t i = 0; i < count * rows * columns; ++i) {
        int64_t block = i / (rows * columns), row = i / columns % rows, column = i % columns;
        out[(block * columns + column) * rows + row] = in[i];
    }
}

/* Whether an array of this rank is that of a convolution in a tensor of `rank_here` dimensions. */
static bool is_turned(const cleat_tensor *tensor, int rank, int rank_here) {
    return rank == IMAGE && cleat_tensor_rank(tensor) == rank_here;
}

int64_t cleat_torch_unit(const cleat_tensor *tensor, int rank) {
    const int64_t *shape = cleat_tensor_shape(tensor);
    if (is_transposed(tensor, rank)) return shape[0] * shape[1];
    if (is_turned(tensor, rank, 4)) return shape[1] * shape[2] * shape[3];
    return is_turned(tensor, rank, 3) ? shape[0] * shape[1] * shape[2] : 1;
}

void cleat_from_torch_part(const cleat_tensor *tensor, int rank, int64_t count, const float *there, float *here) {
    const int64_t *shape = cleat_tensor_shape(tensor);
    if (is_transposed(tensor, rank))
        swap_last(1, shape[1], shape[0], there, here);
    else if (is_turned(tensor, rank, 4))
        swap_last(count / (shape[1] * shape[2] * shape[3]), shape[3], shape[1] * shape[2], there, here);
    else if (is_turned(tensor, rank, 3))
        swap_last(1, shape[2], shape[0] * shape[1], there, here);
    else
        memcpy(here, there, (size_t)count * sizeof *here);
}

void cleat_to_torch_part(const cleat_tensor *tensor, int rank, int64_t count, const float *here, float *there) {
    const int64_t *shape = cleat_tensor_shape(tensor);
    if (is_transposed(tensor, rank))
        swap_last(1, shape[0], shape[1], here, there);
    else if (is_turned(tensor, rank, 4))
        swap_last(count / (shape[1] * shape[2] * shape[3]), shape[1] * shape[2], shape[3], here, there);
    else if (is_turned(tensor, rank, 3))
        swap_last(1, shape[0] * shape[1], shape[2], here, there);
    else
        memcpy(there, here, (size_t)count * sizeof *there);
}

void cleat_from_torch(const cleat_tensor *tensor, int rank, const float *there, float *here) {
    cleat_from_torch_part(tensor, rank, cleat_tensor_elements(tensor), there, here);
}

void cleat_to_torch(const cleat_tensor *tensor, int rank, const float *here, float *there) {
    cleat_to_torch_part(tensor, rank, cleat_tensor_elements(tensor), here, there);
}
