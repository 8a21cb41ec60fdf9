/* The memory plan: chooses variants, lays out persistent buffers and inputs side by side, and places
 * activations and workspaces in an arena that all graphs share. lifetime.c computes lifetimes, arena.c the
 * offsets within the arena. */
#include "graph/plan.h"
#include "graph/store.h"

#include "core/memory.h"
#include "graph/arena.h"
#include "graph/launch.h"
#include "graph/lifetime.h"

#include <stdio.h>
#include <string.h>

/* Results for one graph that are computed before its arena blocks are placed. */
typedef struct draft {
    int64_t *workspace_bytes; /* [graph->node_count] */
    cleat_lifetimes lifetimes;
    int64_t bound; /* lower bound of its arena, in bytes */
    int32_t peak;  /* index of the node at which the bound is reached */
    bool placed;
} draft;

typedef struct planner {
    cleat_plan *plan;
    size_t slab_capacity, further_capacity;
    draft *drafts; /* [plan->layout_count] */
    cleat_arena arena;
} planner;

static cleat_status check_arguments(cleat_graph *const *graphs, size_t count, const cleat_device_facts *facts,
                                    cleat_error *error) {
    if (count == 0) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "a memory plan requires at least one graph");
    if (facts->alignment < 16 || facts->max_allocation < facts->alignment)
        return cleat_fail(
            error, CLEAT_ERR_ARGUMENT,
            "device '%s': no plan is possible with an alignment of %lld and a largest buffer of %lld bytes",
            facts->name, (long long)facts->alignment, (long long)facts->max_allocation);
    if (graphs[0] && graphs[0]->store->choose_rule && !graphs[0]->store->arranged)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "a store with rules is planned before cleat_store_arrange");
    for (size_t i = 0; i < count; ++i) {
        if (!graphs[i]) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "graph %zu is NULL", i);
        cleat_status status = cleat_graph_status(graphs[i], error);
        if (status) return status;
        if (graphs[i]->store != graphs[0]->store)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "graphs '%s' and '%s' do not share one store", graphs[0]->name,
                              graphs[i]->name);
    }
    return CLEAT_OK;
}

/* `what` is the subject of the sentence and includes the graph if there is one. in_graph: the size depends on
 * the batch size. */
static cleat_status fail_fit(const cleat_plan *plan, const char *what, bool in_graph, int64_t bytes,
                             cleat_error *error) {
    return cleat_fail(
        error, CLEAT_ERR_FIT,
        "%s needs %lld bytes in one buffer: %lld too many, as the largest buffer of device '%s' has %lld. %s", what,
        (long long)bytes, (long long)(bytes - plan->facts.max_allocation), plan->facts.name,
        (long long)plan->facts.max_allocation,
        in_graph ? "Reduce the batch size, the length or the model"
                 : "Use a smaller model, or a device with larger buffers");
}

static cleat_status add_slab(planner *p, int64_t bytes, cleat_category category, int32_t *slab, cleat_error *error) {
    cleat_plan *plan = p->plan;
    cleat_status status = cleat_grow(&plan->slabs, plan->slab_count, &p->slab_capacity, error);
    if (status) return status;
    plan->slabs[plan->slab_count] = (cleat_slab){bytes, category};
    plan->category_bytes[category] += bytes;
    *slab = (int32_t)plan->slab_count++;
    return CLEAT_OK;
}

/* --- variants --- */

const cleat_variant *cleat_choose_first(void *user, const cleat_node *node, const cleat_device_facts *facts) {
    (void)user;
    for (const cleat_variant *v = node->op->variants; v && v->name; ++v) {
        const char *reason = v->refuse ? v->refuse(node, facts) : NULL;
        if (!reason) return v;
        cleat_log(CLEAT_LOG_DISPATCH, "%s: variant %s is not applicable: %s", node->name, v->name, reason);
    }
    return NULL;
}

static cleat_status fail_variants(const cleat_node *node, const cleat_device_facts *facts, cleat_error *error) {
    char reasons[CLEAT_ERROR_TEXT / 2] = "";
    size_t used = 0;
    for (const cleat_variant *v = node->op->variants; v->name && used < sizeof reasons; ++v) {
        const char *reason = v->refuse ? v->refuse(node, facts) : NULL;
        used += (size_t)snprintf(reasons + used, sizeof reasons - used, "; %s: %s", v->name,
                                 reason ? reason : "not chosen");
    }
    return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "graph '%s': no variant of op '%s' supports node %s on '%s'%s",
                      node->graph->name, node->op->name, node->name, facts->name, reasons);
}

static cleat_status choose_variants(const cleat_plan *plan, cleat_layout *layout, cleat_choose_fn choose, void *user,
                                    int64_t *workspace_bytes, cleat_error *error) {
    for (size_t i = 0; i < layout->graph->node_count; ++i) {
        const cleat_node *node = layout->graph->nodes[i];
        if (!node->op->variants) continue;
        const cleat_variant *variant = choose(user, node, &plan->facts);
        if (!variant) return fail_variants(node, &plan->facts, error);
        cleat_log(CLEAT_LOG_DISPATCH, "%s: variant %s", node->name, variant->name);
        int64_t bytes = variant->workspace ? variant->workspace(node, &plan->facts) : 0;
        if (bytes < 0)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "node %s: variant %s requests %lld bytes of workspace",
                              node->name, variant->name, (long long)bytes);
        layout->variants[i] = variant;
        workspace_bytes[i] = bytes;
    }
    return CLEAT_OK;
}

/* --- persistent buffers --- */

static void mark_flat(const cleat_tensor *tensor, bool used[CLEAT_FLATS]) {
    if (!tensor) return;
    int which = cleat_flat_index(cleat_root(tensor)->role);
    if (which >= 0) used[which] = true;
}

/* Adds the slab of bytes start .. end - 1 of a flat buffer. */
static cleat_status add_flat_part(planner *p, int flat, int64_t start, int64_t end, cleat_error *error) {
    cleat_plan *plan = p->plan;
    cleat_flat_part part = {.flat = flat, .first = start};
    char what[CLEAT_NAME + 32];
    snprintf(what, sizeof what, "the flat buffer of %s", plan->store->flat[flat].name);
    if (end - start > plan->facts.max_allocation) return fail_fit(plan, what, false, end - start, error);
    cleat_status status = add_slab(p, end - start, cleat_flat_category(flat), &part.place.slab, error);
    if (!status && start == 0) plan->flat[flat] = part.place;
    if (status || start == 0) return status;
    status = cleat_grow(&plan->further, plan->further_count, &p->further_capacity, error);
    if (!status) plan->further[plan->further_count++] = part;
    return status;
}

/* A tensor with which a slab of the flat buffer may begin: of a frozen parameter, which no kernel reads with others.
 * NULL: parameter i has none. */
static const cleat_tensor *divisible(const cleat_store *store, int flat, size_t i) {
    const cleat_tensor *param = store->params[i], *found = NULL;
    if (flat == CLEAT_FLAT_PARAMETERS && !param->half_only) found = param;
    if (flat == CLEAT_FLAT_HALF_WEIGHTS) found = store->half_weights[i];
    if (flat == CLEAT_FLAT_BLOCK_WEIGHTS) return cleat_store_blocks_of(store, param);
    return found && found->flat_offset >= store->shared_elements ? found : NULL;
}

/* One slab if the device has buffers of that size. Frozen parameters of a flat buffer are in their order. */
static cleat_status add_flat(planner *p, int flat, cleat_error *error) {
    const cleat_store *store = p->plan->store;
    const int64_t size = cleat_dtype_size(store->flat[flat].dtype), total = cleat_tensor_bytes(&store->flat[flat]);
    int64_t start = 0, last = 0;
    for (size_t i = 0; i <= store->count; ++i) {
        const cleat_tensor *next = i < store->count ? divisible(store, flat, i) : NULL;
        const int64_t at = next ? next->flat_offset * size : total;
        if (!next && i < store->count) continue;
        if (at - start > p->plan->facts.max_allocation && last > start) {
            cleat_status status = add_flat_part(p, flat, start, last, error);
            if (status) return status;
            start = last;
        }
        last = at;
    }
    return add_flat_part(p, flat, start, total, error);
}

static cleat_status place_flat(planner *p, cleat_error *error) {
    cleat_plan *plan = p->plan;
    bool used[CLEAT_FLATS] = {false};
    for (size_t g = 0; g < plan->layout_count; ++g)
        for (size_t n = 0; n < plan->layouts[g].graph->node_count; ++n) {
            const cleat_node *node = plan->layouts[g].graph->nodes[n];
            for (int i = 0; i < node->n_in; ++i) mark_flat(node->in[i], used);
            for (int i = 0; i < node->n_out; ++i) mark_flat(node->out[i], used);
        }
    for (int k = 0; k < CLEAT_FLATS; ++k) {
        plan->flat[k].slab = -1;
        if (!used[k] || plan->store->flat[k].shape[0] == 0) continue;
        cleat_status status = add_flat(p, k, error);
        if (status) return status;
    }
    return CLEAT_OK;
}

/* Lays out states side by side; a new slab begins when one is full. */
static cleat_status place_states(planner *p, cleat_error *error) {
    cleat_plan *plan = p->plan;
    plan->state_count = plan->store->state_count;
    plan->states = cleat_alloc(plan->state_count, sizeof *plan->states);
    if (!plan->states)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu tensor locations", plan->state_count);
    int32_t slab = -1;
    for (size_t i = 0; i < plan->state_count; ++i) {
        const cleat_tensor *state = plan->store->states[i];
        int64_t bytes = cleat_align_up(cleat_tensor_bytes(state), plan->facts.alignment);
        if (bytes > plan->facts.max_allocation) {
            char what[CLEAT_NAME + 16];
            snprintf(what, sizeof what, "state '%s'", state->name);
            return fail_fit(plan, what, false, bytes, error);
        }
        if (slab < 0 || plan->slabs[slab].bytes > plan->facts.max_allocation - bytes) {
            cleat_status status = add_slab(p, 0, CLEAT_BYTES_STATE, &slab, error);
            if (status) return status;
        }
        plan->states[i] = (cleat_slab_place){slab, plan->slabs[slab].bytes};
        plan->slabs[slab].bytes += bytes;
        plan->category_bytes[CLEAT_BYTES_STATE] += bytes;
    }
    return CLEAT_OK;
}

/* Devices without them have no such slab. */
static cleat_status place_counters(planner *p, cleat_error *error) {
    cleat_plan *plan = p->plan;
    plan->counters = (cleat_slab_place){.slab = -1};
    if (!cleat_has_last_group(&plan->facts)) return CLEAT_OK;
    const int64_t bytes = cleat_align_up(CLEAT_COUNTERS * (int64_t)sizeof(int32_t), plan->facts.alignment);
    return add_slab(p, bytes, CLEAT_BYTES_STATE, &plan->counters.slab, error);
}

/* --- inputs --- */

static cleat_status lay_inputs(const cleat_plan *plan, cleat_layout *layout, cleat_error *error) {
    const cleat_graph *graph = layout->graph;
    char what[2 * CLEAT_NAME + 64];
    for (size_t i = 0; i < graph->tensor_count; ++i) {
        const cleat_tensor *tensor = graph->tensors[i];
        if (tensor->role != CLEAT_ROLE_INPUT || tensor->base) continue;
        int64_t bytes = cleat_align_up(cleat_tensor_bytes(tensor), plan->facts.alignment);
        if (bytes > plan->facts.max_allocation) {
            snprintf(what, sizeof what, "input '%s' of graph '%s'", tensor->name, graph->name);
            return fail_fit(plan, what, true, bytes, error);
        }
        layout->tensors[i].offset = layout->input_bytes;
        layout->input_bytes += bytes;
        if (layout->input_bytes > plan->facts.max_allocation) {
            snprintf(what, sizeof what, "the inputs of graph '%s' up to '%s' together", graph->name, tensor->name);
            return fail_fit(plan, what, true, layout->input_bytes, error);
        }
    }
    return CLEAT_OK;
}

static cleat_status place_inputs(planner *p, cleat_error *error) {
    cleat_plan *plan = p->plan;
    int64_t most = 0;
    for (size_t g = 0; g < plan->layout_count; ++g) {
        cleat_status status = lay_inputs(plan, &plan->layouts[g], error);
        if (status) return status;
        if (plan->layouts[g].input_bytes > most) most = plan->layouts[g].input_bytes;
    }
    int32_t slab = -1;
    plan->staging[0] = plan->staging[1] = -1;
    if (most > 0) {
        cleat_status status = add_slab(p, most, CLEAT_BYTES_INPUTS, &slab, error);
        for (int i = 0; i < 2 && !status; ++i) status = add_slab(p, most, CLEAT_BYTES_INPUTS, &plan->staging[i], error);
        if (status) return status;
    }
    for (size_t g = 0; g < plan->layout_count; ++g) {
        cleat_layout *layout = &plan->layouts[g];
        layout->inputs = (cleat_slab_place){layout->input_bytes > 0 ? slab : -1, 0};
        for (size_t i = 0; i < layout->graph->tensor_count; ++i)
            if (layout->graph->tensors[i]->role == CLEAT_ROLE_INPUT && !layout->graph->tensors[i]->base)
                layout->tensors[i].slab = slab;
    }
    return CLEAT_OK;
}

/* --- arena --- */

static void name_block(const cleat_layout *layout, size_t block, char *text, size_t size) {
    const cleat_graph *graph = layout->graph;
    if (block >= graph->tensor_count) {
        size_t node = block - graph->tensor_count;
        snprintf(text, size, "the workspace of node %s (variant %s) of graph '%s'", graph->nodes[node]->name,
                 layout->variants[node]->name, graph->name);
        return;
    }
    char shape[128];
    cleat_tensor_describe(graph->tensors[block], shape, sizeof shape);
    snprintf(text, size, "activation '%s' %s of graph '%s'", graph->tensors[block]->name, shape, graph->name);
}

static cleat_status check_blocks_fit(const cleat_plan *plan, const cleat_layout *layout,
                                     const cleat_lifetimes *lifetimes, cleat_error *error) {
    for (size_t i = 0; i < lifetimes->count; ++i) {
        int64_t bytes = lifetimes->blocks[i].bytes;
        if (bytes <= plan->facts.max_allocation / plan->facts.alignment * plan->facts.alignment) continue;
        char what[512];
        name_block(layout, i, what, sizeof what);
        return fail_fit(plan, what, true, bytes, error);
    }
    return CLEAT_OK;
}

static cleat_status make_draft(planner *p, size_t g, cleat_choose_fn choose, void *user, cleat_error *error) {
    cleat_plan *plan = p->plan;
    cleat_layout *layout = &plan->layouts[g];
    const cleat_graph *graph = layout->graph;
    draft *d = &p->drafts[g];
    layout->node_count = graph->node_count;
    layout->tensor_count = graph->tensor_count;
    layout->retained = cleat_alloc(graph->tensor_count, sizeof *layout->retained);
    layout->tensors = cleat_alloc(graph->tensor_count, sizeof *layout->tensors);
    layout->workspaces = cleat_alloc(graph->node_count, sizeof *layout->workspaces);
    layout->variants = cleat_alloc(graph->node_count, sizeof *layout->variants);
    d->workspace_bytes = cleat_alloc(graph->node_count, sizeof *d->workspace_bytes);
    if (!layout->retained || !layout->tensors || !layout->workspaces || !layout->variants || !d->workspace_bytes)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to plan graph '%s'", graph->name);
    for (size_t i = 0; i < graph->tensor_count; ++i) layout->retained[i] = cleat_root(graph->tensors[i])->retain;
    cleat_status status = choose_variants(plan, layout, choose, user, d->workspace_bytes, error);
    if (!status) status = cleat_lifetimes_find(graph, d->workspace_bytes, &d->lifetimes, error);
    if (!status) status = check_blocks_fit(plan, layout, &d->lifetimes, error);
    if (!status)
        status = cleat_arena_bound(d->lifetimes.blocks, d->lifetimes.count, plan->facts.alignment, &d->bound, &d->peak,
                                   error);
    if (status) return status;
    if (graph->node_count > 0 && (!plan->peak_node || d->bound > plan->lower_bound)) {
        plan->lower_bound = d->bound;
        plan->peak_node = graph->nodes[d->peak];
    }
    return CLEAT_OK;
}

/* Places the activations and workspaces of one graph. cleat_arena_assign counts the slabs of the arena from
 * 0; they come after the slabs that the plan has already. */
static cleat_status place_graph(planner *p, size_t g, cleat_error *error) {
    cleat_layout *layout = &p->plan->layouts[g];
    const cleat_lifetimes *lifetimes = &p->drafts[g].lifetimes;
    size_t tensors = layout->graph->tensor_count, nodes = layout->graph->node_count;
    cleat_slab_place *places = cleat_alloc(lifetimes->count, sizeof *places);
    if (!places) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to plan graph '%s'", layout->graph->name);
    cleat_status status = cleat_arena_assign(&p->arena, lifetimes->blocks, lifetimes->count, p->plan->facts.alignment,
                                             p->plan->facts.max_allocation, places, error);
    int32_t base = (int32_t)p->plan->slab_count;
    for (size_t i = 0; i < lifetimes->count && !status; ++i)
        if (places[i].slab >= 0) places[i].slab += base;
    for (size_t i = 0; i < tensors && !status; ++i) {
        const cleat_tensor *root = cleat_root(layout->graph->tensors[i]);
        if (root->role == CLEAT_ROLE_ACTIVATION)
            layout->tensors[i] =
                lifetimes->storage[i] >= 0 ? places[lifetimes->storage[i]] : (cleat_slab_place){.slab = -1};
    }
    for (size_t i = 0; i < nodes && !status; ++i) layout->workspaces[i] = places[tensors + i];
    cleat_free(places);
    return status;
}

/* Places the graph with the largest bound first: the others then find slabs that suffice, mostly at the first
 * attempt. */
static cleat_status place_arena(planner *p, cleat_error *error) {
    cleat_plan *plan = p->plan;
    for (size_t done = 0; done < plan->layout_count; ++done) {
        size_t next = plan->layout_count;
        for (size_t g = 0; g < plan->layout_count; ++g)
            if (!p->drafts[g].placed && (next == plan->layout_count || p->drafts[g].bound > p->drafts[next].bound))
                next = g;
        cleat_status status = place_graph(p, next, error);
        if (status) return status;
        p->drafts[next].placed = true;
    }
    for (size_t i = 0; i < p->arena.count; ++i) {
        int32_t slab;
        cleat_status status = add_slab(p, p->arena.slabs[i], CLEAT_BYTES_ARENA, &slab, error);
        if (status) return status;
    }
    return CLEAT_OK;
}

/* A reshape of an input or of a persistent tensor has the place of that tensor. */
static void place_reshapes(cleat_plan *plan, cleat_layout *layout) {
    for (size_t i = 0; i < layout->graph->tensor_count; ++i) {
        const cleat_tensor *root = cleat_root(layout->graph->tensors[i]);
        if (root != layout->graph->tensors[i]) layout->tensors[i] = cleat_plan_place(plan, layout, root);
    }
}

/* --- public functions --- */

static void planner_clear(planner *p) {
    for (size_t g = 0; p->drafts && p->plan && g < p->plan->layout_count; ++g) {
        cleat_free(p->drafts[g].workspace_bytes);
        cleat_lifetimes_clear(&p->drafts[g].lifetimes);
    }
    cleat_free(p->drafts);
    cleat_arena_clear(&p->arena);
}

static cleat_status plan_start(planner *p, cleat_graph *const *graphs, size_t count, const cleat_device_facts *facts,
                               cleat_error *error) {
    p->plan = cleat_alloc(1, sizeof *p->plan);
    p->drafts = cleat_alloc(count, sizeof *p->drafts);
    if (!p->plan || !p->drafts) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a plan of %zu graphs", count);
    p->plan->facts = *facts;
    p->plan->store = graphs[0]->store;
    for (int k = 0; k < CLEAT_FLATS; ++k) p->plan->flat_elements[k] = p->plan->store->flat[k].shape[0];
    p->plan->layouts = cleat_alloc(count, sizeof *p->plan->layouts);
    if (!p->plan->layouts) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a plan of %zu graphs", count);
    p->plan->layout_count = count;
    for (size_t g = 0; g < count; ++g) p->plan->layouts[g].graph = graphs[g];
    return CLEAT_OK;
}

cleat_status cleat_plan_create_with(cleat_graph *const *graphs, size_t count, const cleat_device_facts *facts,
                                    cleat_choose_fn choose, void *user, cleat_plan **plan, cleat_error *error) {
    cleat_status status = check_arguments(graphs, count, facts, error);
    if (status) return status;
    planner p = {0};
    status = plan_start(&p, graphs, count, facts, error);
    for (size_t g = 0; g < count && !status; ++g) status = make_draft(&p, g, choose, user, error);
    if (!status) status = place_flat(&p, error);
    if (!status) status = place_states(&p, error);
    if (!status) status = place_counters(&p, error);
    if (!status) status = place_inputs(&p, error);
    if (!status) status = place_arena(&p, error);
    for (size_t g = 0; g < count && !status; ++g) place_reshapes(p.plan, &p.plan->layouts[g]);
    planner_clear(&p);
    if (!status)
        *plan = p.plan;
    else
        cleat_plan_destroy(p.plan);
    return status;
}

cleat_status cleat_plan_create(cleat_graph *const *graphs, size_t count, const cleat_device_facts *facts,
                               cleat_plan **plan, cleat_error *error) {
    return cleat_plan_create_with(graphs, count, facts, cleat_choose_first, NULL, plan, error);
}

void cleat_plan_destroy(cleat_plan *plan) {
    if (!plan) return;
    for (size_t i = 0; i < plan->layout_count; ++i) {
        cleat_free(plan->layouts[i].retained);
        cleat_free(plan->layouts[i].tensors);
        cleat_free(plan->layouts[i].workspaces);
        cleat_free(plan->layouts[i].variants);
    }
    cleat_free(plan->layouts);
    cleat_free(plan->states);
    cleat_free(plan->further);
    cleat_free(plan->slabs);
    cleat_free(plan);
}

/* The place of byte `at` of a flat buffer; *end: of the bytes of its slab. */
static cleat_slab_place place_in_flat(const cleat_plan *plan, int flat, int64_t at, int64_t *end) {
    cleat_slab_place place = plan->flat[flat];
    int64_t first = 0;
    *end = plan->flat_elements[flat] * cleat_dtype_size(plan->store->flat[flat].dtype);
    for (const cleat_flat_part *part = plan->further; part < plan->further + plan->further_count; ++part) {
        if (part->flat != flat) continue;
        if (part->first > at) {
            *end = part->first;
            break;
        }
        place = part->place;
        first = part->first;
    }
    place.offset += at - first;
    return place;
}

cleat_slab_place cleat_plan_place(const cleat_plan *plan, const cleat_layout *layout, const cleat_tensor *tensor) {
    const cleat_slab_place none = {.slab = -1};
    const cleat_tensor *root = cleat_root(tensor);
    const int flat = cleat_flat_index(root->role);
    int64_t end;
    if (flat >= 0) {
        if (plan->flat[flat].slab < 0 || root->flat_offset >= plan->flat_elements[flat]) return none;
        return place_in_flat(plan, flat, root->flat_offset * cleat_dtype_size(root->dtype), &end);
    }
    if (root->index < 0) return none;
    size_t index = (size_t)root->index;
    if (root->role == CLEAT_ROLE_STATE) return index < plan->state_count ? plan->states[index] : none;
    bool known = layout && index < layout->tensor_count && layout->graph->tensors[index] == root;
    return known ? layout->tensors[index] : none;
}

cleat_slab_place cleat_plan_place_from(const cleat_plan *plan, const cleat_layout *layout, const cleat_tensor *tensor,
                                       int64_t start, int64_t *bytes) {
    cleat_slab_place place = cleat_plan_place(plan, layout, tensor);
    const int flat = cleat_flat_index(cleat_root(tensor)->role);
    if (place.slab >= 0 && flat >= 0 && tensor == &plan->store->flat[flat]) {
        int64_t end;
        place = place_in_flat(plan, flat, start, &end);
        if (*bytes > end - start) *bytes = end - start;
    } else {
        place.offset += start;
    }
    return place;
}

int64_t cleat_plan_bytes(const cleat_plan *plan) {
    int64_t total = 0;
    for (size_t i = 0; i < plan->slab_count; ++i) total += plan->slabs[i].bytes;
    return total;
}

int64_t cleat_plan_category_bytes(const cleat_plan *plan, cleat_category category) {
    return (unsigned)category < CLEAT_CATEGORIES ? plan->category_bytes[category] : 0;
}

int64_t cleat_plan_lower_bound(const cleat_plan *plan) {
    return plan->lower_bound;
}

const char *cleat_plan_peak_node(const cleat_plan *plan) {
    return plan->peak_node ? plan->peak_node->name : "";
}
