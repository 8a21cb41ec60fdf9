/* Plans a graph for a device shape and binds it to the test device; poisons its memory and checks it for
 * stray writes. */
#include "exec/copy.h"
#include "graph/arena.h"
#include "harness.h"
#include "platform/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const op_shape op_shape_cpu = {"cpu", CLEAT_DEVICE_CPU, 1, 16};
const op_shape op_shape_gpu = {"gpu", CLEAT_DEVICE_GPU, 256, 4};
const op_shape op_shape_gpu64 = {"gpu64", CLEAT_DEVICE_GPU, 64, 4};

enum { BEHIND = 4096 }; /* guarded bytes after every slab */

cleat_device_facts op_facts(const op_shape *shape) {
    cleat_device_facts facts = *cleat_device_get_facts(op_device());
    facts.kind = shape->kind;
    facts.work_group = shape->work_group;
    facts.vector_width = shape->vector_width;
    if (facts.local_memory > 32768) facts.local_memory = 32768;
    return facts;
}

typedef struct choice {
    const char *op;
    int variant;
} choice;

const cleat_variant *op_variant(const char *op, int variant, const cleat_node *node, const cleat_device_facts *facts) {
    const cleat_variant *variants = node->op->variants;
    if (op && variants && strncmp(node->op->name, op, strlen(op)) == 0) {
        int count = 0;
        while (variants[count].name) ++count;
        const cleat_variant *wanted = &variants[variant];
        if (variant < count && !(wanted->refuse && wanted->refuse(node, facts))) return wanted;
    }
    return cleat_choose_first(NULL, node, facts);
}

static const cleat_variant *choose(void *user, const cleat_node *node, const cleat_device_facts *facts) {
    const choice *wanted = user;
    return op_variant(wanted->op, wanted->variant, node, facts);
}

static bool report(cleat_error *error, const char *what) {
    print_error("%s: %s\n", what, error->text);
    return false;
}

/* CLEAT_TEST_GAP: bytes in front of every tensor of every slab, rounded up to the alignment. */
static int64_t gap_of(const cleat_plan *plan) {
    const char *text = getenv("CLEAT_TEST_GAP");
    return text ? cleat_align_up(strtoll(text, NULL, 10), plan->facts.alignment) : 0;
}

/* A slab of uploads is used from its beginning. */
static bool has_gap(const cleat_plan *plan, int32_t slab) {
    return slab >= 0 && slab != plan->staging[0] && slab != plan->staging[1];
}

static void move(const cleat_plan *plan, cleat_slab_place *place, int64_t gap) {
    if (has_gap(plan, place->slab)) place->offset += gap;
}

/* Moves everything in each slab by `gap` bytes. */
static void insert_gaps(cleat_plan *plan, int64_t gap) {
    for (size_t s = 0; s < plan->slab_count; ++s) {
        if (!has_gap(plan, (int32_t)s)) continue;
        plan->slabs[s].bytes += gap;
        plan->category_bytes[plan->slabs[s].category] += gap;
    }
    for (int k = 0; k < CLEAT_FLATS; ++k) move(plan, &plan->flat[k], gap);
    for (size_t i = 0; i < plan->further_count; ++i) move(plan, &plan->further[i].place, gap);
    for (size_t i = 0; i < plan->state_count; ++i) move(plan, &plan->states[i], gap);
    for (size_t g = 0; g < plan->layout_count; ++g) {
        cleat_layout *layout = &plan->layouts[g];
        for (size_t i = 0; i < layout->tensor_count; ++i) move(plan, &layout->tensors[i], gap);
        for (size_t i = 0; i < layout->node_count; ++i) move(plan, &layout->workspaces[i], gap);
        move(plan, &layout->inputs, gap);
    }
}

/* Extends each slab by BEHIND bytes and moves the guards to cover one slab each, except its gap. */
static bool plant_guards(op_rig *rig) {
    cleat_plan *plan = rig->plan;
    if (plan->slab_count > OP_GUARDS) {
        print_error("%zu slabs: the rig watches %d\n", plan->slab_count, OP_GUARDS);
        return false;
    }
    const int64_t gap = gap_of(plan);
    insert_gaps(plan, gap);
    for (size_t s = 0; s < plan->slab_count; ++s) {
        plan->slabs[s].bytes += BEHIND;
        plan->category_bytes[plan->slabs[s].category] += BEHIND;
        rig->gaps[s] = has_gap(plan, (int32_t)s) ? gap : 0;
        plan->states[rig->guards[s]->index] = (cleat_slab_place){.slab = (int32_t)s, .offset = rig->gaps[s]};
        rig->guards[s]->shape[0] = (plan->slabs[s].bytes - rig->gaps[s]) / 4;
        rig->before[s] = malloc((size_t)cleat_tensor_bytes(rig->guards[s]));
    }
    return true;
}

bool op_rig_open(op_rig *rig, cleat_graph *graph, const op_shape *shape, const char *op, int variant) {
    cleat_error error = {0};
    *rig = (op_rig){.graph = graph};
    for (int i = 0; i < OP_GUARDS; ++i) {
        char name[CLEAT_NAME];
        snprintf(name, sizeof name, "guard.%d", i);
        rig->guards[i] = cleat_state(graph, name, CLEAT_U32, 1, (int64_t[]){1});
    }
    if (cleat_graph_status(graph, &error) != CLEAT_OK) return report(&error, "graph");
    cleat_device_facts facts = op_facts(shape);
    choice wanted = {op, variant};
    if (cleat_plan_create_with(&graph, 1, &facts, choose, &wanted, &rig->plan, &error) != CLEAT_OK)
        return report(&error, "plan");
    if (!plant_guards(rig)) {
        op_rig_close(rig);
        return false;
    }
    if (cleat_exec_create(op_device(), rig->plan, &rig->exec, &error) != CLEAT_OK) {
        op_rig_close(rig);
        return report(&error, "exec");
    }
    return true;
}

void op_rig_close(op_rig *rig) {
    cleat_exec_destroy(rig->exec);
    cleat_plan_destroy(rig->plan);
    for (int i = 0; i < OP_GUARDS; ++i) {
        if (rig->guards[i]) rig->guards[i]->shape[0] = 1;
        free(rig->before[i]);
    }
    *rig = (op_rig){.graph = rig->graph};
}

static void must(cleat_status status, cleat_error *error) {
    if (status) fail_msg("%s", error->text);
}

static void read_bytes(op_rig *rig, const cleat_tensor *tensor, void *bytes) {
    cleat_error error = {0};
    must(cleat_exec_read_unchecked(rig->exec, 0, tensor, bytes, &error), &error);
}

static void write_bytes(op_rig *rig, const cleat_tensor *tensor, const void *bytes) {
    cleat_error error = {0};
    must(cleat_exec_write_unchecked(rig->exec, 0, tensor, bytes, &error), &error);
}

void op_rig_write(op_rig *rig, const cleat_tensor *tensor, const double *values) {
    void *bytes = malloc((size_t)cleat_tensor_bytes(tensor));
    compare_encode(tensor->dtype, values, cleat_tensor_elements(tensor), bytes);
    write_bytes(rig, tensor, bytes);
    free(bytes);
}

void op_rig_read(op_rig *rig, const cleat_tensor *tensor, double *values) {
    void *bytes = malloc((size_t)cleat_tensor_bytes(tensor));
    read_bytes(rig, tensor, bytes);
    compare_decode(tensor->dtype, bytes, cleat_tensor_elements(tensor), values);
    free(bytes);
}

void op_rig_write_nan(op_rig *rig, const cleat_tensor *tensor, int64_t at, uint32_t pattern) {
    void *bytes = malloc((size_t)cleat_tensor_bytes(tensor));
    read_bytes(rig, tensor, bytes);
    if (tensor->dtype == CLEAT_F32)
        ((uint32_t *)bytes)[at] = pattern;
    else
        ((uint16_t *)bytes)[at] =
            (uint16_t)(tensor->dtype == CLEAT_BF16 ? pattern >> 16
                                                   : (pattern >> 16 & 0x8000u) | (pattern >> 13 & 0x7fffu));
    write_bytes(rig, tensor, bytes);
    free(bytes);
}

void op_rig_run(op_rig *rig, int64_t first, int64_t last) {
    cleat_error error = {0};
    size_t end = last < 0 ? cleat_graph_nodes(rig->graph) : (size_t)last;
    must(cleat_exec_run_nodes(rig->exec, 0, (size_t)first, end, &error), &error);
    must(cleat_exec_finish(rig->exec, &error), &error);
}

void op_rig_poison(op_rig *rig) {
    for (size_t s = 0; s < rig->plan->slab_count; ++s) {
        cleat_category category = rig->plan->slabs[s].category;
        if (category != CLEAT_BYTES_ARENA && category != CLEAT_BYTES_INPUTS) continue;
        memset(rig->before[s], 0xff, (size_t)cleat_tensor_bytes(rig->guards[s]));
        write_bytes(rig, rig->guards[s], rig->before[s]);
    }
}

void op_rig_snapshot(op_rig *rig) {
    for (size_t s = 0; s < rig->plan->slab_count; ++s) read_bytes(rig, rig->guards[s], rig->before[s]);
}

static void allow(const op_rig *rig, unsigned char *may, int32_t wanted, cleat_slab_place place, int64_t bytes) {
    if (place.slab == wanted) memset(may + place.offset - rig->gaps[wanted], 1, (size_t)bytes);
}

/* Sets may[i] = 1 for each byte of slab `s`, behind its gap, that a node owns. */
static void mark_owned(const op_rig *rig, int32_t s, unsigned char *may) {
    const cleat_layout *layout = &rig->plan->layouts[0];
    for (size_t i = 0; i < rig->graph->node_count; ++i) {
        const cleat_node *node = rig->graph->nodes[i];
        const cleat_variant *variant = layout->variants[i];
        for (int k = 0; k < node->n_out; ++k)
            if (node->out[k])
                allow(rig, may, s, cleat_plan_place(rig->plan, layout, node->out[k]), cleat_tensor_bytes(node->out[k]));
        if (variant && variant->workspace)
            allow(rig, may, s, layout->workspaces[i], variant->workspace(node, &rig->plan->facts));
    }
}

bool op_rig_untouched(op_rig *rig) {
    bool good = true;
    for (size_t s = 0; s < rig->plan->slab_count; ++s) {
        size_t bytes = (size_t)cleat_tensor_bytes(rig->guards[s]);
        unsigned char *may = calloc(bytes, 1), *after = malloc(bytes);
        mark_owned(rig, (int32_t)s, may);
        read_bytes(rig, rig->guards[s], after);
        for (size_t i = 0; good && i < bytes; ++i) {
            if (may[i] || after[i] == rig->before[s][i]) continue;
            print_error("byte %zu of slab %zu (%s, %zu bytes) changed, no node owns it\n", i, s,
                        cleat_category_name(rig->plan->slabs[s].category), bytes);
            good = false;
        }
        free(may);
        free(after);
    }
    return good;
}
