/* Learned positions of the patches of an image, for an image of another size. */
#ifndef CLEAT_SRC_POSITION_TABLE_H
#define CLEAT_SRC_POSITION_TABLE_H

#include "cleat/core.h"

/* The sides of the squares of patches of two tables with `rows` and `wanted` rows, which have the same number
 * of rows in front of their squares: *prefix, 0 or 1 (a class token). False: there are no such squares. */
bool cleat_positions_grids(int64_t rows, int64_t wanted, int64_t *prefix, int64_t *side, int64_t *wanted_side);
/* Bicubic resampling with a = -0.5 and, if the square shrinks, a wider kernel against aliasing, as in
 * torch.nn.functional.interpolate(mode="bicubic", antialias=True), which timm uses. The rows of the prefix
 * are copied. table [prefix + from from, width] -> resampled [prefix + to to, width] */
cleat_status cleat_positions_resample(const float *table, int64_t from, float *resampled, int64_t to, int64_t prefix,
                                      int64_t width, cleat_error *error);

#endif
