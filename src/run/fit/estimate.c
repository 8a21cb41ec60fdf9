/* Estimates of time, from the costs of operations, their launches, and the rates of a card. */
#include "fit/estimate.h"

#include "graph/launch.h"
#include "ops/lib/tiles.h"

#include <math.h>
#include <string.h>

/* --- occupancy ------------------------------------------------------------------------------------------------ */

typedef struct extent {
    double groups, items; /* work-groups, work-items of one */
} extent;

/* The tiles that CLBlast will choose are unknown here: assumes 64 x 64, as refuse_clblast of
 * ops/linear/linear_launch.c does. */
static extent sgemm_extent(const cleat_sgemm *sgemm, const cleat_device_facts *facts) {
    enum { TILE = 64 };
    int64_t tiles = ((sgemm->m + TILE - 1) / TILE) * ((sgemm->n + TILE - 1) / TILE);
    return (extent){(double)tiles, (double)facts->work_group};
}

static extent kernel_extent(const cleat_launch *launch) {
    extent e = {1, 1};
    for (int i = 0; i < launch->dims; ++i) {
        e.groups *= (double)(launch->global[i] / launch->local[i]);
        e.items *= (double)launch->local[i];
    }
    return e;
}

static void add_launch(const cleat_launch *launch, const cleat_device_facts *facts, cleat_node_estimate *estimate) {
    extent e = launch->kind == CLEAT_LAUNCH_SGEMM ? sgemm_extent(&launch->sgemm, facts) : kernel_extent(launch);
    double units = facts->compute_units > 0 ? facts->compute_units : 1;
    double slots = units * fmax(1, floor(facts->work_group / e.items));
    estimate->busy = fmax(estimate->busy, e.groups / (ceil(e.groups / slots) * slots));
    estimate->reached = fmax(estimate->reached, fmin(1, e.groups / units));
    ++estimate->launches;
}

/* --- time ----------------------------------------------------------------------------------------------------- */

static cleat_status check(const cleat_plan *plan, size_t graph, const cleat_rates *rates, cleat_error *error) {
    if (graph >= plan->layout_count)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "graph %zu is out of range: the plan has %zu", graph,
                          plan->layout_count);
    if (rates->flops > 0 && rates->bytes > 0 && rates->launch_seconds >= 0) return CLEAT_OK;
    return cleat_fail(
        error, CLEAT_ERR_ARGUMENT,
        "rates of %g operations and %g bytes per second and %g s per launch are invalid: no estimate is possible",
        rates->flops, rates->bytes, rates->launch_seconds);
}

/* The fraction of the matrix unit's f16 rate that a variant reaches; 0: its name is not that of a variant
 * for the unit. If the unit's rate is unknown, such variants are estimated like all others. */
static double matrix_share(const cleat_rates *rates, const cleat_node *node, const cleat_variant *variant) {
    const bool on_unit =
        strncmp(variant->name, "mma", strlen("mma")) == 0 || strncmp(variant->name, "tf32", strlen("tf32")) == 0;
    return on_unit && rates->matrix_flops > 0 ? 1.0 / (double)cleat_matrix_products(node) : 0;
}

/* Assumes that dependent products gain as much on a matrix unit as others; not measured. */
static double rate_of(const cleat_rates *rates, const cleat_node_estimate *e) {
    if (e->cost.work != CLEAT_WORK_RECURRENT || rates->recurrent_flops <= 0) return e->flops_rate;
    return rates->recurrent_flops * e->flops_rate / rates->flops;
}

static double fixed_seconds(const cleat_rates *rates, const cleat_node_estimate *e) {
    const double product = e->on_matrix_unit ? rates->matrix_product_seconds : rates->product_seconds;
    return e->cost.work != CLEAT_WORK_ROWS && product > 0 ? product : rates->launch_seconds;
}

/* `binder` is reused from node to node to avoid allocations. */
static cleat_status estimate_node(const cleat_layout *layout, size_t index, const cleat_rates *rates,
                                  cleat_binder *binder, cleat_node_estimate *estimate, cleat_error *error) {
    const cleat_node *node = layout->graph->nodes[index];
    const cleat_variant *variant = layout->variants[index];
    cleat_node_estimate e = {0};
    if (variant) {
        binder->count = 0;
        cleat_status status = cleat_bind_node(variant, node, binder, error);
        if (status) return status;
        for (size_t i = 0; i < binder->count; ++i) add_launch(&binder->launches[i], binder->facts, &e);
    }
    if (e.launches > 0) {
        e.cost = cleat_node_cost(node);
        const double share = matrix_share(rates, node, variant);
        e.on_matrix_unit = share > 0;
        e.flops_rate = e.on_matrix_unit ? share * rates->matrix_flops : rates->flops;
        double compute = e.cost.flops / (rate_of(rates, &e) * e.busy),
               memory = e.cost.bytes / (rates->bytes * e.reached);
        e.seconds = (binder->facts->work_group == 1 ? compute + memory : fmax(compute, memory)) +
                    (double)e.launches * fixed_seconds(rates, &e);
    }
    *estimate = e;
    return CLEAT_OK;
}

cleat_status cleat_estimate_node(const cleat_plan *plan, size_t graph, size_t node, const cleat_rates *rates,
                                 cleat_node_estimate *estimate, cleat_error *error) {
    cleat_binder binder;
    cleat_status status = check(plan, graph, rates, error);
    if (status) return status;
    const cleat_layout *layout = &plan->layouts[graph];
    if (node >= layout->graph->node_count)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "node %zu is out of range: graph '%s' has %zu", node,
                          layout->graph->name, layout->graph->node_count);
    cleat_binder_init(&binder, &plan->facts);
    status = estimate_node(layout, node, rates, &binder, estimate, error);
    cleat_binder_clear(&binder);
    return status;
}

/* Sums the estimates and the work over the nodes of a graph, or over those of its backward pass; `seconds` and
 * `roofline` may be NULL. */
static cleat_status sum_nodes(const cleat_plan *plan, size_t graph, bool backward, const cleat_rates *rates,
                              double *seconds, cleat_roofline *roofline, cleat_error *error) {
    cleat_binder binder;
    cleat_node_estimate node;
    cleat_roofline work = {0};
    double sum = 0;
    cleat_status status = check(plan, graph, rates, error);
    if (status) return status;
    const cleat_layout *layout = &plan->layouts[graph];
    const size_t forward = layout->graph->gradients ? layout->graph->forward_nodes : layout->graph->node_count;
    cleat_binder_init(&binder, &plan->facts);
    for (size_t i = backward ? forward : 0; i < layout->graph->node_count && !status; ++i) {
        status = estimate_node(layout, i, rates, &binder, &node, error);
        if (status || node.launches == 0) continue; /* a reshape takes no time */
        sum += node.seconds;
        work.flops += node.cost.flops;
        work.bytes += node.cost.bytes;
        work.seconds += fmax(node.cost.flops / node.flops_rate, node.cost.bytes / rates->bytes);
        work.launches += node.launches;
    }
    cleat_binder_clear(&binder);
    if (!status && seconds) *seconds = sum;
    if (!status && roofline) *roofline = work;
    return status;
}

cleat_status cleat_estimate_graph(const cleat_plan *plan, size_t graph, const cleat_rates *rates, double *seconds,
                                  cleat_error *error) {
    return sum_nodes(plan, graph, false, rates, seconds, NULL, error);
}

cleat_status cleat_estimate_backward(const cleat_plan *plan, size_t graph, const cleat_rates *rates, double *seconds,
                                     cleat_error *error) {
    return sum_nodes(plan, graph, true, rates, seconds, NULL, error);
}

cleat_status cleat_estimate_roofline(const cleat_plan *plan, size_t graph, const cleat_rates *rates,
                                     cleat_roofline *roofline, cleat_error *error) {
    return sum_nodes(plan, graph, false, rates, NULL, roofline, error);
}
