/* Proof that a plan is sound, by a way of its own: for tests, and for whoever doubts a plan. */
#ifndef CLEAT_SRC_PLAN_CHECK_H
#define CLEAT_SRC_PLAN_CHECK_H

#include <stdio.h>

#include "graph/plan.h"

/* Runs every graph in thought: a node that writes takes its bytes, whoever had them loses them, and a node
 * that reads must find what was written for it, to the last byte; what the host reads must be there at the
 * end. Checks also that everything lies within its slab at the facts' alignment, that no slab exceeds the
 * largest allocation, and that the sums agree. Uses nothing of lifetime.c and arena.c. CLEAT_ERR_ARGUMENT:
 * the plan is wrong; the text says where. */
cleat_status cleat_plan_check(const cleat_plan *plan, cleat_error *error);

/* Writes the plan as CSV: graph, kind, name, bytes, slab, offset, node that writes it; slabs before, as
 * comments. */
void cleat_plan_dump(const cleat_plan *plan, FILE *file);

#endif
