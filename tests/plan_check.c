/* Checks a plan by simulating its graphs. Deliberately independent of the code that makes plans. */
#include "plan_check.h"

#include <inttypes.h>

#include "core/memory.h"

/* Bytes of the arena that currently hold the value of `tensor`. */
typedef struct claim {
    const cleat_tensor *tensor; /* NULL: scratch */
    int32_t slab;
    int64_t begin, end;
} claim;

typedef struct memory {
    const cleat_plan *plan;
    const cleat_layout *layout;
    claim *claims; /* [count] disjoint */
    size_t count, capacity;
} memory;

static bool overlap(const claim *a, const claim *b) {
    return a->slab == b->slab && a->begin < b->end && b->begin < a->end;
}

static cleat_status check_bounds(const cleat_plan *plan, cleat_slab_place place, int64_t bytes, cleat_category category,
                                 const char *name, cleat_error *error) {
    if (place.slab < 0 || (size_t)place.slab >= plan->slab_count)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "plan: '%s' has no slab", name);
    const cleat_slab *slab = &plan->slabs[place.slab];
    if (slab->category != category)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "plan: '%s' is in a slab of %s instead of %s", name,
                          cleat_category_name(slab->category), cleat_category_name(category));
    if (place.offset < 0 || place.offset % plan->facts.alignment != 0)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "plan: '%s' at byte %" PRId64 " is not aligned to %" PRId64, name,
                          place.offset, plan->facts.alignment);
    if (bytes > slab->bytes || place.offset > slab->bytes - bytes)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "plan: '%s' at byte %" PRId64 " with %" PRId64 " bytes leaves slab %d of %" PRId64, name,
                          place.offset, bytes, place.slab, slab->bytes);
    return CLEAT_OK;
}

/* --- one graph --- */

static void drop_overlapped(memory *m, const claim *taken) {
    for (size_t i = 0; i < m->count;)
        if (overlap(&m->claims[i], taken))
            m->claims[i] = m->claims[--m->count];
        else
            ++i;
}

/* Records that a result of the current node takes its bytes. `fresh` [*fresh_count] are the node's earlier
 * results, which must keep all of theirs. */
static cleat_status claim_bytes(memory *m, size_t *fresh_count, claim *fresh, const claim *expected,
                                const cleat_node *node, cleat_error *error) {
    for (size_t i = 0; i < *fresh_count; ++i)
        if (overlap(&fresh[i], expected))
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "plan: two outputs of node %s overlap", node->name);
    fresh[(*fresh_count)++] = *expected;
    drop_overlapped(m, expected);
    cleat_status status = cleat_grow(&m->claims, m->count, &m->capacity, error);
    if (!status) m->claims[m->count++] = *expected;
    return status;
}

static claim claim_of(const memory *m, const cleat_tensor *tensor) {
    const cleat_tensor *root = cleat_root(tensor);
    cleat_slab_place place = cleat_plan_place(m->plan, m->layout, tensor);
    return (claim){root, place.slab, place.offset, place.offset + cleat_tensor_bytes(root)};
}

static bool holds(const memory *m, const claim *expected) {
    for (size_t i = 0; i < m->count; ++i)
        if (m->claims[i].tensor == expected->tensor && m->claims[i].slab == expected->slab &&
            m->claims[i].begin == expected->begin && m->claims[i].end == expected->end)
            return true;
    return false;
}

static bool is_activation(const cleat_tensor *tensor) {
    return tensor && cleat_root(tensor)->role == CLEAT_ROLE_ACTIVATION;
}

static cleat_status check_reads(const memory *m, const cleat_node *node, cleat_error *error) {
    for (int i = 0; i < node->n_in; ++i) {
        if (!is_activation(node->in[i])) continue;
        claim expected = claim_of(m, node->in[i]);
        if (!holds(m, &expected))
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "plan: node %s reads '%s', which has been overwritten",
                              node->name, node->in[i]->name);
    }
    return CLEAT_OK;
}

/* Result `which` (-1: the workspace) may overlap an input only if the op allows it, and then only exactly. */
static cleat_status check_against_inputs(const memory *m, const cleat_node *node, const claim *result, int which,
                                         cleat_error *error) {
    for (int i = 0; i < node->n_in; ++i) {
        if (!is_activation(node->in[i])) continue;
        claim input = claim_of(m, node->in[i]);
        if (!overlap(&input, result)) continue;
        bool exact = input.begin == result->begin && input.end == result->end;
        if (which != 0 || !exact || !(node->op->inplace_inputs & CLEAT_IN(i)) || input.tensor->retain)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "plan: node %s overwrites its input '%s'", node->name,
                              node->in[i]->name);
    }
    return CLEAT_OK;
}

static cleat_status run_node(memory *m, size_t index, cleat_error *error) {
    const cleat_node *node = m->layout->graph->nodes[index];
    claim fresh[CLEAT_MAX_OUT + 1];
    size_t fresh_count = 0;
    const cleat_variant *variant = m->layout->variants[index];
    if (!variant) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "plan: node %s has no variant", node->name);
    cleat_status status = check_reads(m, node, error);
    for (int i = 0; i < node->n_out && !status; ++i) {
        if (!is_activation(node->out[i])) continue;
        claim result = claim_of(m, node->out[i]);
        status = check_bounds(m->plan, (cleat_slab_place){result.slab, result.begin}, result.end - result.begin,
                              CLEAT_BYTES_ARENA, node->out[i]->name, error);
        if (!status) status = check_against_inputs(m, node, &result, i, error);
        if (!status) status = claim_bytes(m, &fresh_count, fresh, &result, node, error);
    }
    int64_t bytes = variant->workspace ? variant->workspace(node, &m->plan->facts) : 0;
    if (status || bytes == 0) return status;
    cleat_slab_place place = m->layout->workspaces[index];
    claim scratch = {NULL, place.slab, place.offset, place.offset + bytes};
    status = check_bounds(m->plan, place, bytes, CLEAT_BYTES_ARENA, "workspace", error);
    if (!status) status = check_against_inputs(m, node, &scratch, -1, error);
    if (!status) status = claim_bytes(m, &fresh_count, fresh, &scratch, node, error);
    return status;
}

static cleat_status check_kept(const memory *m, cleat_error *error) {
    const cleat_graph *graph = m->layout->graph;
    for (size_t i = 0; i < graph->tensor_count; ++i) {
        const cleat_tensor *tensor = graph->tensors[i];
        bool written = is_activation(tensor) && cleat_plan_place(m->plan, m->layout, tensor).slab >= 0;
        claim expected = claim_of(m, tensor);
        if (tensor->retain && written && !holds(m, &expected))
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "plan: retained tensor '%s' is overwritten", tensor->name);
    }
    return CLEAT_OK;
}

static cleat_status check_reshapes(const cleat_plan *plan, const cleat_layout *layout, cleat_error *error) {
    for (size_t i = 0; i < layout->graph->tensor_count; ++i) {
        const cleat_tensor *tensor = layout->graph->tensors[i];
        cleat_slab_place place = cleat_plan_place(plan, layout, cleat_root(tensor)), own = layout->tensors[i];
        if (own.slab != place.slab || own.offset != place.offset)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "plan: '%s' is not at the location of its base", tensor->name);
    }
    return CLEAT_OK;
}

static cleat_status check_run(const cleat_plan *plan, const cleat_layout *layout, cleat_error *error) {
    memory m = {.plan = plan, .layout = layout};
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < layout->graph->node_count && !status; ++i)
        if (layout->graph->nodes[i]->op->variants) status = run_node(&m, i, error);
    if (!status) status = check_kept(&m, error);
    cleat_free(m.claims);
    return status;
}

/* --- persistent memory --- */

static cleat_status check_inputs(const cleat_plan *plan, const cleat_layout *layout, cleat_error *error) {
    const cleat_graph *graph = layout->graph;
    int64_t end = layout->inputs.offset; /* inputs lie in order of creation */
    for (size_t i = 0; i < graph->tensor_count; ++i) {
        const cleat_tensor *input = graph->tensors[i];
        if (input->role != CLEAT_ROLE_INPUT || input->base) continue;
        cleat_slab_place place = cleat_plan_place(plan, layout, input);
        int64_t bytes = cleat_tensor_bytes(input);
        cleat_status status = check_bounds(plan, place, bytes, CLEAT_BYTES_INPUTS, input->name, error);
        if (status) return status;
        if (place.slab != layout->inputs.slab || place.offset < end)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "plan: input '%s' overlaps the previous input", input->name);
        end = place.offset + bytes;
    }
    if (end > layout->inputs.offset + layout->input_bytes)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "plan: inputs of '%s' exceed their region", graph->name);
    for (int i = 0; i < 2 && layout->input_bytes > 0; ++i) {
        cleat_slab_place place = {plan->staging[i], 0};
        cleat_status status = check_bounds(plan, place, layout->input_bytes, CLEAT_BYTES_INPUTS, "staging", error);
        if (status) return status;
    }
    return CLEAT_OK;
}

static cleat_status check_persistent(const cleat_plan *plan, cleat_error *error) {
    static const cleat_category categories[CLEAT_FLATS] = {CLEAT_BYTES_PARAMETERS,   CLEAT_BYTES_GRADIENTS,
                                                           CLEAT_BYTES_OPTIMIZER,    CLEAT_BYTES_OPTIMIZER,
                                                           CLEAT_BYTES_HALF_WEIGHTS, CLEAT_BYTES_BLOCK_WEIGHTS};
    for (int k = 0; k < CLEAT_FLATS; ++k) {
        if (plan->flat[k].slab < 0) continue;
        const int64_t bytes = cleat_tensor_bytes(&plan->store->flat[k]);
        for (int64_t at = 0, some = 0; at < bytes; at += some) {
            some = bytes - at;
            const cleat_slab_place place = cleat_plan_place_from(plan, NULL, &plan->store->flat[k], at, &some);
            cleat_status status = check_bounds(plan, place, some, categories[k], plan->store->flat[k].name, error);
            if (!status && some < 1)
                status = cleat_fail(error, CLEAT_ERR_ARGUMENT, "plan: byte %lld of %s has no slab", (long long)at,
                                    plan->store->flat[k].name);
            if (status) return status;
        }
    }
    for (size_t i = 0; i < plan->state_count; ++i) {
        const cleat_tensor *state = plan->store->states[i];
        claim mine = {state, plan->states[i].slab, plan->states[i].offset,
                      plan->states[i].offset + cleat_tensor_bytes(state)};
        cleat_status status =
            check_bounds(plan, plan->states[i], cleat_tensor_bytes(state), CLEAT_BYTES_STATE, state->name, error);
        if (status) return status;
        for (size_t j = 0; j < i; ++j) {
            claim other = {NULL, plan->states[j].slab, plan->states[j].offset,
                           plan->states[j].offset + cleat_tensor_bytes(plan->store->states[j])};
            if (overlap(&mine, &other))
                return cleat_fail(error, CLEAT_ERR_ARGUMENT, "plan: state '%s' overlaps another", state->name);
        }
    }
    return CLEAT_OK;
}

static cleat_status check_sums(const cleat_plan *plan, cleat_error *error) {
    int64_t sums[CLEAT_CATEGORIES] = {0};
    int64_t total = 0;
    for (size_t i = 0; i < plan->slab_count; ++i) {
        const cleat_slab *slab = &plan->slabs[i];
        if (slab->bytes < 1 || slab->bytes > plan->facts.max_allocation)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "plan: slab %zu has %" PRId64 " bytes", i, slab->bytes);
        sums[slab->category] += slab->bytes;
        total += slab->bytes;
    }
    for (int c = 0; c < CLEAT_CATEGORIES; ++c)
        if (sums[c] != cleat_plan_category_bytes(plan, (cleat_category)c))
            return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                              "plan: the sizes of the slabs of %s do not add up to their category",
                              cleat_category_name((cleat_category)c));
    if (total != cleat_plan_bytes(plan) || sums[CLEAT_BYTES_ARENA] < cleat_plan_lower_bound(plan))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "plan: the sum of bytes, or the lower bound, is wrong");
    return CLEAT_OK;
}

cleat_status cleat_plan_check(const cleat_plan *plan, cleat_error *error) {
    cleat_status status = check_sums(plan, error);
    if (!status) status = check_persistent(plan, error);
    for (size_t g = 0; g < plan->layout_count && !status; ++g) {
        status = check_inputs(plan, &plan->layouts[g], error);
        if (!status) status = check_reshapes(plan, &plan->layouts[g], error);
        if (!status) status = check_run(plan, &plan->layouts[g], error);
    }
    return status;
}
