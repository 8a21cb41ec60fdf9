/* Copies one node into a separate graph. */
#include "graph/extract_node.h"

#include <stdio.h>
#include <string.h>

/* The attributes of the copy while its outputs are created. */
typedef struct extract_attr {
    const cleat_node *original;
} extract_attr;

/* Index of the input of `node` that is `tensor`, or -1. */
static int input_of(const cleat_node *node, const cleat_tensor *tensor) {
    for (int i = 0; i < node->n_in; ++i)
        if (node->in[i] == tensor) return i;
    return -1;
}

/* Gives the copy the outputs of the original. The op's own infer cannot do it: outputs of a gradient node
 * follow from its targets. */
static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_node *original = ((const extract_attr *)(const void *)node->attr)->original;
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < original->n_out && !status; ++i) {
        const cleat_tensor *out = original->out[i];
        int in = out ? input_of(original, out) : -1;
        if (in >= 0)
            cleat_set_output_state(node, i, node->in[in]);
        else if (out)
            status = cleat_set_output(node, i, out->dtype, out->rank, out->shape, error);
    }
    node->n_out = original->n_out;
    return status;
}

cleat_node *cleat_extract_node(cleat_graph *graph, const cleat_node *node) {
    const cleat_op copying = {.name = node->op->name, .infer = infer, .optional_inputs = CLEAT_EVERY_INPUT};
    const extract_attr attr = {node};
    cleat_tensor *in[CLEAT_MAX_IN] = {NULL};
    for (int i = 0; i < node->n_in; ++i) {
        char name[CLEAT_NAME];
        if (!node->in[i]) continue;
        snprintf(name, sizeof name, "in.%d", input_of(node, node->in[i]));
        in[i] = cleat_state(graph, name, node->in[i]->dtype, node->in[i]->rank, node->in[i]->shape);
        if (!in[i]) return NULL;
    }
    cleat_node *copy = cleat_emit(graph, &copying, &attr, sizeof attr, in, node->n_in);
    if (!copy) return NULL;
    copy->op = node->op;
    copy->tf32 = node->tf32;
    memcpy(copy->attr, node->attr, sizeof copy->attr);
    return copy;
}
