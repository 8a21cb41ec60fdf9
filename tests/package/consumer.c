/* An independent program: includes every public header, plans a graph with the library, and lists the
 * available devices. tests/package/check.sh builds it against an installed cleat. */
#include <cleat/core.h>
#include <cleat/data.h>
#include <cleat/device.h>
#include <cleat/exec.h>
#include <cleat/graph.h>
#include <cleat/models.h>
#include <cleat/ops.h>
#include <cleat/profile.h>
#include <cleat/train.h>
#include <stdio.h>
#include <string.h>

static int build_graph(void) {
    const int64_t shape[] = {2, 3}; /* [rows, columns] */
    cleat_error error = {0};
    cleat_store *store = NULL;
    cleat_graph *graph = NULL;
    cleat_status status = cleat_store_create(&store, &error);
    if (!status) status = cleat_graph_create(store, "consumer", &graph, &error);
    if (!status) {
        cleat_gelu(graph, cleat_input(graph, "x", CLEAT_F32, 2, shape));
        status = cleat_graph_status(graph, &error);
    }
    if (status) fprintf(stderr, "graph: %s\n", error.text);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
    return !status;
}

static int list_devices(void) {
    cleat_error error = {0};
    cleat_device_facts *facts = NULL;
    size_t count = 0;
    cleat_status status = cleat_device_list(&facts, &count, &error);
    if (status == CLEAT_ERR_NOT_FOUND) return 1; /* a machine without a device */
    if (status) {
        fprintf(stderr, "devices: %s\n", error.text);
        return 0;
    }
    for (size_t i = 0; i < count; ++i) printf("%s\n", facts[i].name);
    cleat_device_list_free(facts);
    return 1;
}

int main(void) {
    if (strcmp(cleat_version(), CONSUMER_WANTS) != 0) {
        fprintf(stderr, "cleat is %s, %s was expected\n", cleat_version(), CONSUMER_WANTS);
        return 1;
    }
    return build_graph() && list_devices() ? 0 : 1;
}
