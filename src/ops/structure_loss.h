/* Interface between structure_loss.c (the op and its launches) and structure_loss_define.c (its definition). */
#ifndef CLEAT_SRC_OPS_STRUCTURE_LOSS_H
#define CLEAT_SRC_OPS_STRUCTURE_LOSS_H

#include "cleat/ops.h"
#include "graph/graph.h"

#include <string.h>

typedef struct cleat_structure_attributes {
    int32_t kind; /* cleat_structure_loss_kind */
    int32_t term; /* row of `sample_weight` */
    float p0, p1, eps;
} cleat_structure_attributes;

static inline cleat_structure_attributes cleat_structure_attributes_of(const cleat_node *node) {
    cleat_structure_attributes a;
    memcpy(&a, node->attr, sizeof a);
    return a;
}

/* Inputs; the gradient additionally has the output saved by the forward node, dterm, and the accum. */
enum {
    STRUCTURE_X,
    STRUCTURE_REFERENCE,
    STRUCTURE_MASK,
    STRUCTURE_LENGTHS,
    STRUCTURE_PARTNER,
    STRUCTURE_SAMPLE_WEIGHT,
    STRUCTURE_FORWARD_IN,
    STRUCTURE_INVERSE = STRUCTURE_FORWARD_IN,
    STRUCTURE_DTERM,
    STRUCTURE_GRAD_IN
};

cleat_defined cleat_structure_define(const cleat_node *node, cleat_host_values *values, int output, int64_t element);
cleat_defined cleat_structure_define_grad(const cleat_node *node, cleat_host_values *values, int output,
                                          int64_t element);

#endif
