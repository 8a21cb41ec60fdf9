/* How long a graph takes on a card, from what its operations cost and how fast the card is. Nothing is run: see
 * session/rates.h for the rates of a card that is there, cleat/card.h for those of one that is not.
 *
 * A node takes
 *     max(flops / (rates.flops * busy), bytes / (rates.bytes * reached)) + launches * rates.launch_seconds
 *
 * the roofline model (Williams, Waterman and Patterson 2009) with what it leaves out: devices that are not full, and the
 * cost of a launch. A unit that runs one work-item at a time (facts.work_group 1) has no other to compute for while one
 * waits for memory: there both times add up instead. For G work-groups on U compute units:
 *   busy     A unit reaches its rate of arithmetic with facts.work_group work-items, of one group or of several smaller
 *            ones: S = U * max(1, work_group / items of a group) groups run at once, and G of them take ceil(G / S)
 *            rounds, full or not. busy = G / (ceil(G / S) * S).
 *   reached  A unit draws its share of the bandwidth with few work-items. reached = min(1, G / U).
 * Where an operation has several launches, the one that fills the device best counts: the others (sums of parts) are
 * short. Caches are not modelled, and every sample counts as long as the padded length. */
#ifndef CLEAT_SRC_ESTIMATE_H
#define CLEAT_SRC_ESTIMATE_H

#include "cleat/device.h"
#include "graph/plan.h"

typedef struct cleat_node_estimate {
    cleat_cost cost;
    size_t launches;      /* 0: a reshape, which takes no time */
    double busy, reached; /* 0 to 1 */
    bool on_matrix_unit;
    double flops_rate; /* of the unit it runs on: rates.matrix_flops or rates.flops */
    double seconds;
} cleat_node_estimate;

/* Node `node` (its index) of graph `graph` of the plan. Errors: a variant that cannot describe its launches. */
cleat_status cleat_estimate_node(const cleat_plan *plan, size_t graph, size_t node, const cleat_rates *rates,
                                 cleat_node_estimate *estimate, cleat_error *error);

/* One run of graph `graph`: the sum of its nodes, which run one after the other. */
cleat_status cleat_estimate_graph(const cleat_plan *plan, size_t graph, const cleat_rates *rates, double *seconds,
                                  cleat_error *error);

#endif
