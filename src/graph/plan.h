/* The inside of a plan: where every tensor of every graph lies. */
#ifndef CLEAT_SRC_PLAN_H
#define CLEAT_SRC_PLAN_H

#include "graph/graph.h"

typedef struct cleat_place {
    int32_t slab;   /* -1: not placed (no bytes) */
    int64_t offset; /* bytes from the start of the slab; a multiple of facts->alignment */
} cleat_place;

typedef struct cleat_slab {
    int64_t bytes;
    cleat_category category;
} cleat_slab;

/* The layout of one graph. */
typedef struct cleat_layout {
    cleat_graph *graph;
    cleat_place *tensors;           /* [graph->tensor_count], by tensor->index; a reshape has its base's place */
    cleat_place *workspaces;        /* [graph->node_count], by node->index */
    const cleat_variant **variants; /* [graph->node_count]; NULL for nodes without launches */
    int64_t input_bytes;            /* inputs lie side by side in one slab, in order of creation, each aligned ... */
    cleat_place inputs;             /* ... from here on, so that one transfer fills them all */
} cleat_layout;

struct cleat_plan {
    cleat_device_facts facts;
    cleat_store *store;
    cleat_slab *slabs;
    size_t slab_count;
    /* The store's flat buffers: each a slab of its own, present only where a graph uses it. A parameter lies at its flat_offset (elements)
     * in its one. */
    cleat_place flat[CLEAT_FLATS];
    cleat_place *states; /* [state_count], the store's at planning time */
    size_t state_count;
    int32_t
        staging[2]; /* slabs as large as the inputs' slab, where uploads land while a graph runs; -1 without inputs */
    cleat_layout *layouts; /* [layout_count] */
    size_t layout_count;
    int64_t category_bytes[CLEAT_CATEGORIES];
    int64_t lower_bound;
    const cleat_node *peak_node;
};

/* Chooses the variant of a node; NULL where none serves. The default takes the first that does not refuse; the tests and the tuner have their own. */
typedef const cleat_variant *(*cleat_choose_fn)(void *user, const cleat_node *node, const cleat_device_facts *facts);
cleat_status cleat_plan_create_with(cleat_graph *const *graphs, size_t count, const cleat_device_facts *facts,
                                    cleat_choose_fn choose, void *user, cleat_plan **plan, cleat_error *error);
const cleat_variant *cleat_choose_first(void *user, const cleat_node *node, const cleat_device_facts *facts);

/* The place of any tensor as seen from graph `layout`. */
cleat_place cleat_plan_place(const cleat_plan *plan, const cleat_layout *layout, const cleat_tensor *tensor);

#endif
