/* Internal definition of a plan: the place of every tensor of every graph. */
#ifndef CLEAT_SRC_PLAN_H
#define CLEAT_SRC_PLAN_H

#include "graph/graph.h"

typedef struct cleat_slab_place {
    int32_t slab;   /* -1: not placed (no bytes) */
    int64_t offset; /* bytes from the start of the slab; a multiple of facts->alignment */
} cleat_slab_place;

typedef struct cleat_slab {
    int64_t bytes;
    cleat_category category;
} cleat_slab;

/* A slab with the bytes of a flat buffer from `first` on. */
typedef struct cleat_flat_part {
    int flat; /* cleat_flat_buffer */
    int64_t first;
    cleat_slab_place place;
} cleat_flat_part;

/* The layout of one graph. */
typedef struct cleat_layout {
    cleat_graph *graph;
    size_t node_count, tensor_count; /* of the graph when the plan was made */
    /* [graph->tensor_count], indexed by tensor->index: activations that keep their bytes until the end of the run. */
    bool *retained;
    /* [graph->tensor_count], indexed by tensor->index; a reshape has the place of its base. */
    cleat_slab_place *tensors;
    cleat_slab_place *workspaces;   /* [graph->node_count], indexed by node->index */
    const cleat_variant **variants; /* [graph->node_count]; NULL for nodes without launches */
    /* Inputs lie side by side in one slab, in order of creation, each aligned, so that one transfer fills
     * them all: `input_bytes` bytes from `inputs` on. */
    int64_t input_bytes;
    cleat_slab_place inputs;
} cleat_layout;

struct cleat_plan {
    cleat_device_facts facts;
    cleat_store *store;
    cleat_slab *slabs;
    size_t slab_count;
    /* The store's flat buffers: each has separate slabs and exists only if a graph uses it. A parameter lies
     * at its flat_offset (in elements) in its flat buffer. Where frozen parameters exceed the device's largest buffer,
     * some of them begin `further` slabs, in the order of flat buffers and bytes. */
    cleat_slab_place flat[CLEAT_FLATS];
    int64_t flat_elements[CLEAT_FLATS]; /* of each flat buffer */
    cleat_flat_part *further;           /* [further_count] */
    size_t further_count;
    cleat_slab_place *states; /* [state_count] the states that the store had when the plan was made */
    size_t state_count;
    cleat_slab_place
        counters; /* i32 [CLEAT_COUNTERS]; slab -1 where the device has no use for them (cleat_has_last_group) */
    /* Slabs of the size of the input slab, to which uploads go while a graph runs; -1 without inputs. */
    int32_t staging[2];
    cleat_layout *layouts; /* [layout_count] */
    size_t layout_count;
    int64_t category_bytes[CLEAT_CATEGORIES];
    int64_t lower_bound;
    const cleat_node *peak_node;
};

/* Chooses the variant of a node; NULL if none can compute it. The default, cleat_choose_first, takes the
 * first variant that does not refuse; the tests and the tuner use other functions. */
typedef const cleat_variant *(*cleat_choose_fn)(void *user, const cleat_node *node, const cleat_device_facts *facts);
cleat_status cleat_plan_create_with(cleat_graph *const *graphs, size_t count, const cleat_device_facts *facts,
                                    cleat_choose_fn choose, void *user, cleat_plan **plan, cleat_error *error);
const cleat_variant *cleat_choose_first(void *user, const cleat_node *node, const cleat_device_facts *facts);

/* The place of a tensor as seen from the graph of `layout`. */
cleat_slab_place cleat_plan_place(const cleat_plan *plan, const cleat_layout *layout, const cleat_tensor *tensor);
/* The same for byte `start` of the tensor. *bytes, if larger, becomes the number of bytes from there on in that slab:
 * only a whole flat buffer has several. */
cleat_slab_place cleat_plan_place_from(const cleat_plan *plan, const cleat_layout *layout, const cleat_tensor *tensor,
                                       int64_t start, int64_t *bytes);

#endif
