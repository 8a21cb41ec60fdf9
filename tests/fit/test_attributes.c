/* A node's attributes have the same bytes in every process, without stack contents in the padding of structs.
 * These bytes are the keys of self-check records. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files.h"
#include "fit/fit.h"
#include "platform/processes.h"
#include "platform/system.h"
#include "source_path.h"

static const cleat_device_facts facts = {.kind = CLEAT_DEVICE_CPU,
                                         .name = "a processor",
                                         .vendor = CLEAT_VENDOR_POCL,
                                         .memory_total = 16000000000,
                                         .memory_free = 16000000000,
                                         .max_allocation = 8000000000,
                                         .alignment = 256,
                                         .local_memory = 256 * 1024,
                                         .max_work_group = 4096,
                                         .compute_units = 2,
                                         .work_group = 1,
                                         .vector_width = 16,
                                         .pci_bus = -1};

enum { MIN_PROFILES = 10, RUNS = 6 };

/* NULL if the profile needs weights or data that are absent. */
static cleat_workload *build(const cleat_profile *profile, const cleat_model *model) {
    const int64_t fixed = cleat_model_fixed_length(model);
    const cleat_bucket bucket = {
        .length = fixed > 0 ? fixed : profile->data->max_length, .global_batch_size = 2, .micro_batch_size = 2};
    const cleat_workload_spec spec = {
        .facts = &facts, .model = model, .purpose = CLEAT_FOR_TRAINING, .buckets = &bucket, .n_buckets = 1};
    cleat_workload *work = NULL;
    return cleat_workload_create(&spec, &work, NULL) ? NULL : work;
}

static void print_graph(const char *path, const cleat_graph *graph) {
    for (size_t i = 0; i < graph->node_count; ++i) {
        char hash[33];
        if (!graph->nodes[i]->op->variants) continue; /* nothing is computed or checked */
        cleat_hash_text(graph->nodes[i]->attr, sizeof graph->nodes[i]->attr, hash);
        printf("%s: %s (%s) %s\n", strrchr(path, '/') + 1, graph->nodes[i]->name, graph->nodes[i]->op->name, hash);
    }
}

/* Returns whether the profile can be built. */
static bool print_profile(const char *path) {
    cleat_profile *profile = NULL;
    cleat_model *model = NULL;
    cleat_status status = cleat_profile_load(path, NULL, 0, &profile, NULL);
    if (!status) status = cleat_profile_create_model(profile, &model, NULL);
    cleat_workload *work = status ? NULL : build(profile, model);
    if (work) {
        print_graph(path, work->train[0].graph);
        print_graph(path, work->update.graph);
    }
    const bool built = work != NULL;
    cleat_workload_destroy(work);
    cleat_model_destroy(model);
    cleat_profile_destroy(profile);
    return built;
}

static bool is_ini(const char *name) {
    return strcmp(cleat_name_ending(name), ".ini") == 0;
}

/* In another process, with different addresses. */
static int print_all(void) {
    cleat_name_list names;
    int built = 0;
    if (cleat_listing_read(source_path("profiles"), is_ini, &names, NULL)) return EXIT_FAILURE;
    for (size_t i = 0; i < names.count; ++i) {
        char path[256];
        snprintf(path, sizeof path, "profiles/%s", names.names[i]);
        built += print_profile(source_path(path));
    }
    cleat_name_list_free(&names);
    return built >= MIN_PROFILES ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const char *own_path;

/* The output of such a process; the caller frees it. */
static char *read_lines(void) {
    char command[1024], *text = NULL;
    size_t size = 0;
    snprintf(command, sizeof command, "'%s' print", own_path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    FILE *memory = open_memstream(&text, &size);
    assert_non_null(memory);
    for (int c; (c = getc(pipe)) != EOF;) putc(c, memory);
    fclose(memory);
    assert_int_equal(pclose(pipe), 0);
    return text;
}

/* Names the first different node. */
static void compare_lines(const char *one, const char *other) {
    while (*one && *other) {
        const size_t length = strcspn(one, "\n");
        if (strncmp(one, other, length + 1) != 0) fail_msg("other attributes: %.*s", (int)length, one);
        one += length + 1;
        other += length + 1;
    }
    assert_string_equal(one, other);
}

static void attributes_have_no_gaps(void **state) {
    char *first = read_lines();
    (void)state;
    for (int i = 1; i < RUNS; ++i) {
        char *again = read_lines();
        compare_lines(first, again);
        free(again);
    }
    free(first);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(attributes_have_no_gaps)};
    if (argc > 1) return print_all();
    own_path = argv[0];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
