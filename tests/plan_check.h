/* An independent proof that a plan is sound. */
#ifndef CLEAT_TESTS_PLAN_CHECK_H
#define CLEAT_TESTS_PLAN_CHECK_H

#include "graph/plan.h"

/* Simulates every graph: a node that writes claims its bytes and invalidates whatever they held; a node that
 * reads must find every byte that was written for it; a tensor that the host reads must be intact at the end.
 * Also checks that everything lies within its slab at the alignment of the facts, that no slab exceeds the
 * largest allocation, and that the sums agree. Uses nothing of lifetime.c and arena.c. CLEAT_ERR_ARGUMENT:
 * the plan is wrong; the message names the place. */
cleat_status cleat_plan_check(const cleat_plan *plan, cleat_error *error);

#endif
