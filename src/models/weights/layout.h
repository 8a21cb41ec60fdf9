/* Conversion of arrays from PyTorch's layout to the layout of this library's tensors.
 *
 *   array                   PyTorch         cleat
 *   convolution weight      [N, C, R, S]    [N, R, S, C]
 *   depthwise weight        [C, 1, R, S]    [R, S, C]
 *   1 x 1 weight            [N, C, 1, 1]    [N, C]
 *   CLEAT_TRANSPOSED        [K, N]          [N, K]
 *   image                   [B, C, H, W]    [B, H, W, C]
 *   all others              identical */
#ifndef CLEAT_SRC_LAYOUT_H
#define CLEAT_SRC_LAYOUT_H

#include "cleat/graph.h"

/* In place of a rank: matrices are transposed (Conv1D of transformers), all others as they are. */
enum { CLEAT_TRANSPOSED = 100 };

/* Writes the PyTorch shape of `tensor`, for an array of `rank` dimensions, to shape [CLEAT_MAX_RANK]. Returns
 * the number of dimensions written; it differs from `rank` if no layout of the table has that rank. */
int cleat_torch_shape(const cleat_tensor *tensor, int rank, int64_t *shape);

/* Copies `there` (PyTorch layout, of a `rank` that cleat_torch_shape returned) to `here` [elements of
 * tensor]. */
void cleat_from_torch(const cleat_tensor *tensor, int rank, const float *there, float *here);
/* The inverse. */
void cleat_to_torch(const cleat_tensor *tensor, int rank, const float *here, float *there);

/* The unit of the layout: the smallest number of elements that, from any multiple of it on, are only permuted
 * among themselves; 1 if both layouts are the same. */
int64_t cleat_torch_unit(const cleat_tensor *tensor, int rank);
/* As above for `count` elements, from a multiple of the unit on; `count` is also a multiple. */
void cleat_from_torch_part(const cleat_tensor *tensor, int rank, int64_t count, const float *there, float *here);
void cleat_to_torch_part(const cleat_tensor *tensor, int rank, int64_t count, const float *here, float *there);

#endif
