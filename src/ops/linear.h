/* Between linear.c (what the ops compute) and linear_launch.c (how it runs). */
#ifndef CLEAT_SRC_OPS_LINEAR_H
#define CLEAT_SRC_OPS_LINEAR_H

#include "graph/launch.h"

/* C[m, n] = addend + bias[n] + sum over k of A[m, k] B[k, n], and sums[m] = sums_addend[m] + sum over k of
 * A[m, k]. A is stored [k, m] where trans_a is set, B [n, k] where trans_b is. All but `a` may be NULL; sums
 * come with trans_a only. */
typedef struct cleat_product {
    const cleat_tensor *a, *b, *bias, *addend, *c, *sums_addend, *sums;
    int64_t m, n, k;
    bool trans_a, trans_b;
} cleat_product;

/* The product a node of one of the linear ops stands for. */
cleat_product cleat_linear_product(const cleat_node *node);

extern const cleat_variant cleat_linear_variants[];      /* products with a C */
extern const cleat_variant cleat_linear_sums_variants[]; /* the sums alone */

#endif
