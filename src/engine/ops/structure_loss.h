/* Interface between structure_loss.c (the op and its launches) and structure_loss_define.c (its definition). */
#ifndef CLEAT_SRC_OPS_STRUCTURE_LOSS_H
#define CLEAT_SRC_OPS_STRUCTURE_LOSS_H

#include "cleat/ops.h"
#include "graph/graph.h"
#include "ops/lib/trace_loss.h"

#include <string.h>

typedef struct cleat_structure_term {
    int16_t kind; /* cleat_structure_loss_kind; NO_TERM after the last one */
    int16_t row;  /* of `sample_weight` */
    float p0, p1, eps;
} cleat_structure_term;

enum { CLEAT_NO_STRUCTURE_TERM = -1 };

/* A node has one term of pairs, or up to four of neighbours along the chain. */
typedef struct cleat_structure_terms {
    cleat_structure_term of[CLEAT_TRACE_TERMS];
} cleat_structure_terms;

static inline cleat_structure_terms cleat_structure_terms_of(const cleat_node *node) {
    cleat_structure_terms terms;
    memcpy(&terms, node->attr, sizeof terms);
    return terms;
}

static inline int cleat_structure_term_count(const cleat_structure_terms *terms) {
    int count = 0;
    while (count < CLEAT_TRACE_TERMS && terms->of[count].kind != CLEAT_NO_STRUCTURE_TERM) ++count;
    return count;
}

/* Inputs; the gradient additionally has the last output of the forward node (1 / items [terms, B]), the
 * gradient of each term (NULL: none), and the accum. */
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
    STRUCTURE_GRAD_IN = STRUCTURE_DTERM + CLEAT_TRACE_TERMS
};

cleat_expected_value cleat_structure_define(const cleat_node *node, cleat_host_values *values, int64_t element);
cleat_expected_value cleat_structure_define_grad(const cleat_node *node, cleat_host_values *values, int64_t element);

#endif
