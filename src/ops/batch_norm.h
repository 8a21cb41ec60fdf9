/* Batch normalisation as a part of another node: its statistics may come from a product (normed_product.c). */
#ifndef CLEAT_SRC_OPS_BATCH_NORM_H
#define CLEAT_SRC_OPS_BATCH_NORM_H

#include "graph/launch.h"

typedef struct cleat_batch_norm_attr {
    float eps;
    bool relu, statistics;
    bool gap[2]; /* false */
} cleat_batch_norm_attr;

/* in = {x, gamma, beta, samples or NULL, residual or NULL},
 * out = {y, saved f32 [2, C]: mean, biased variance; statistics f32 [2, C] if the attribute says so} */
enum {
    CLEAT_BATCH_NORM_X,
    CLEAT_BATCH_NORM_GAMMA,
    CLEAT_BATCH_NORM_BETA,
    CLEAT_BATCH_NORM_SAMPLES,
    CLEAT_BATCH_NORM_RESIDUAL,
    CLEAT_BATCH_NORM_IN
};
enum { CLEAT_BATCH_NORM_Y, CLEAT_BATCH_NORM_SAVED, CLEAT_BATCH_NORM_STATISTICS, CLEAT_BATCH_NORM_OUT };
extern const cleat_op cleat_batch_norm_op;

/* Moments of the columns of x [rows, C] in the node's workspace: from byte `at` on f32 [parts, 2, C], mean and squared
 * deviations of each part of the rows, then f32 [parts], the numbers of rows (cl/lib/moments.clh). */
typedef struct cleat_moments {
    const cleat_tensor *samples; /* i32 [1]: images that count; NULL: all */
    int64_t at, parts;           /* parts 0: batch normalisation reads x for them */
    int64_t images, columns;     /* B of x [B, ..., C], C */
} cleat_moments;

/* Bytes of the moments; those of batch normalisation's own if there are no parts. */
int64_t cleat_moments_bytes(const cleat_moments *moments, const cleat_tensor *x, const cleat_device_facts *facts);
/* Begins the moments of a product, before its arguments: a build option; and adds their arguments, after all others. NULL,
 * or no parts: neither. */
void cleat_moments_begin(cleat_binder *binder, const cleat_moments *moments);
void cleat_launch_moments(cleat_binder *binder, const cleat_moments *moments);

/* The launches of `node`, a batch normalisation, with these moments. */
void cleat_bind_batch_norm(const cleat_node *node, const cleat_moments *moments, cleat_binder *binder);

/* Bytes that a fused node keeps of the product's attributes, which have no more. */
enum { CLEAT_NORMED_PRODUCT_BYTES = 32 };
/* cleat_op.fuse_producer of batch normalisation: a convolution or linear layer, whose kernel leaves the moments. */
bool cleat_batch_norm_fuse_product(cleat_node *node, const cleat_node *producer, bool wide);

#endif
