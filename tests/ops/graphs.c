/* Helpers for graphs that are never bound to a device. */
#include "harness.h"

#include <string.h>

cleat_graph *op_graph(void) {
    cleat_store *store = NULL;
    cleat_graph *graph = NULL;
    cleat_error error = {0};
    if (cleat_store_create(&store, &error) != CLEAT_OK ||
        cleat_graph_create(store, "alone", &graph, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    return graph;
}

void op_graph_end(cleat_graph *graph) {
    cleat_store *store = graph->store;
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
}

void op_graph_refused(cleat_graph *graph, cleat_status status, const char *op, const char *says) {
    cleat_error error = {0};
    assert_int_equal(cleat_graph_status(graph, &error), status);
    if (!strstr(error.text, op) || !strstr(error.text, says))
        fail_msg("'%s' or '%s' is missing in: %s", op, says, error.text);
    op_graph_end(graph);
}
