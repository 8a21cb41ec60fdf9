/* Estimates how long a graph takes on a card, from the costs of its operations and the speed of the card.
 * Nothing is run. session/rates.h measures the rates of an open device; cleat/card.h has those of cards that
 * are not present.
 *
 * The time of a node is
 *     max(flops / (rates.flops * busy), bytes / (rates.bytes * reached)) + launches * rates.launch_seconds
 *
 * with the rate of the matrix unit or of dependent products, and the fixed time of a product launch, if the
 * node's work is of that kind (cleat_cost.work).
 *
 * This is the roofline model (Williams, Waterman and Patterson 2009) with two additions: devices that are not
 * fully occupied, and the cost of a launch. A unit that runs one work-item at a time (facts.work_group 1) has
 * no other work-item to compute while one waits for memory; there the two times are added instead. For G
 * work-groups on U compute units:
 *   busy     A unit reaches its arithmetic rate with facts.work_group work-items, from one group or several
 *            smaller ones: S = U * max(1, work_group / items of a group) groups run at once, and G groups
 *            take ceil(G / S) rounds, full or not. busy = G / (ceil(G / S) * S).
 *   reached  A unit obtains its share of the bandwidth with few work-items. reached = min(1, G / U).
 * If an operation has several launches, only the one that occupies the device best counts: the others (which
 * sum partial results) are short. Caches are not modelled, and every sample counts with its padded length. */
#ifndef CLEAT_SRC_ESTIMATE_H
#define CLEAT_SRC_ESTIMATE_H

#include "cleat/device.h"
#include "graph/plan.h"

typedef struct cleat_node_estimate {
    cleat_cost cost;
    size_t launches;      /* 0: a reshape, which takes no time */
    double busy, reached; /* 0 to 1 */
    bool on_matrix_unit;
    double flops_rate; /* of the unit that computes it: rates.matrix_flops or rates.flops */
    double seconds;
} cleat_node_estimate;

/* Estimates node number `node` of graph `graph` of the plan. Fails if the node's variant cannot describe its
 * launches. */
cleat_status cleat_estimate_node(const cleat_plan *plan, size_t graph, size_t node, const cleat_rates *rates,
                                 cleat_node_estimate *estimate, cleat_error *error);

/* Estimates one run of graph `graph`: the sum over its nodes, which run one after the other. */
cleat_status cleat_estimate_graph(const cleat_plan *plan, size_t graph, const cleat_rates *rates, double *seconds,
                                  cleat_error *error);

/* The same for the nodes that cleat_backward appended to the graph; 0 if there are none. */
cleat_status cleat_estimate_backward(const cleat_plan *plan, size_t graph, const cleat_rates *rates, double *seconds,
                                     cleat_error *error);

/* The work of one run of a graph, and its minimum time. */
typedef struct cleat_roofline {
    double flops, bytes;
    double
        seconds; /* the sum over the nodes of max(flops / flops rate, bytes / bytes rate): no idle units, no launches */
    size_t launches;
} cleat_roofline;

cleat_status cleat_estimate_roofline(const cleat_plan *plan, size_t graph, const cleat_rates *rates,
                                     cleat_roofline *roofline, cleat_error *error);

#endif
