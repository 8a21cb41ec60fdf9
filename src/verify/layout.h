/* Arrays as PyTorch lays them out, brought into the order of this library's tensors.
 *
 *   convolution weight     [N, C, R, S] there, [N, R, S, C] here
 *   depth-wise one         [C, 1, R, S] there, [R, S, C] here
 *   1 x 1 one              [N, C, 1, 1] there, [N, C] here
 *   image                [B, C, H, W] there, [B, H, W, C] here
 *   all others             the same */
#ifndef CLEAT_SRC_LAYOUT_H
#define CLEAT_SRC_LAYOUT_H

#include "cleat/graph.h"

/* The shape that `tensor` has there, where it has `rank` extents there: written to shape [CLEAT_MAX_RANK]. Returns their
 * number, which is another than `rank` where no layout above has so many. */
int cleat_torch_shape(const cleat_tensor *tensor, int rank, int64_t *shape);

/* Copies `there`, of the `rank` that cleat_torch_shape agreed to, to `here` [elements of tensor]. */
void cleat_from_torch(const cleat_tensor *tensor, int rank, const float *there, float *here);

#endif
