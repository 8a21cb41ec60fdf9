/* The longest launch of every profile in profiles/, as estimated for a small old card: half a GT 1030, or a
 * UHD 630. On a card that also draws the desktop, a watchdog stops kernels after two seconds or less, and the
 * desktop freezes while one runs. */
/* ctest: quick no-memcheck */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files.h"
#include "fit/estimate.h"
#include "fit/fit.h"
#include "source_path.h"

/* Sustained rates; 2 GB of memory, a quarter of it in one buffer. */
static const cleat_rates rates = {.flops = 2e11, .bytes = 1.6e10, .launch_seconds = 1e-5, .source = "a test"};
static const cleat_device_facts facts = {.kind = CLEAT_DEVICE_GPU,
                                         .name = "a small old card",
                                         .vendor = CLEAT_VENDOR_NVIDIA,
                                         .memory_total = 1900000000,
                                         .memory_free = 1900000000,
                                         .max_allocation = 475000064,
                                         .alignment = 256,
                                         .local_memory = 48 * 1024,
                                         .max_work_group = 1024,
                                         .compute_units = 3,
                                         .work_group = 256,
                                         .vector_width = 4,
                                         .pci_bus = -1};

enum { MIN_PROFILES = 10 };

typedef struct slowest {
    double seconds;
    char node[CLEAT_NAME];
} slowest;

/* A node with several launches counts as one, because one of them takes most of the time. */
static void find_slowest(const cleat_workload *work, slowest *found) {
    for (size_t g = 0; g < work->plan->layout_count; ++g)
        for (size_t i = 0; i < work->plan->layouts[g].node_count; ++i) {
            cleat_node_estimate estimate;
            cleat_error error = {0};
            if (cleat_estimate_node(work->plan, g, i, &rates, &estimate, &error)) fail_msg("%s", error.text);
            if (estimate.seconds <= found->seconds) continue;
            found->seconds = estimate.seconds;
            snprintf(found->node, sizeof found->node, "%s", work->plan->layouts[g].graph->nodes[i]->name);
        }
}

/* Returns false if the profile does not fit, or needs weights or data that are absent. */
static bool plan(const char *path, slowest *found) {
    cleat_profile *profile = NULL;
    cleat_model *model = NULL;
    cleat_fit_result fitted = {0};
    cleat_lengths lengths;
    bool known;
    char why[256];
    cleat_error error = {0};
    cleat_status status = cleat_profile_load(path, NULL, 0, &profile, &error);
    if (!status) status = cleat_profile_create_model(profile, &model, &error);
    if (!status) status = cleat_fit_lengths(profile, model, &lengths, &known, &error);
    if (!status) {
        const cleat_fit_request request =
            cleat_fit_request_for(profile, model, CLEAT_FOR_TRAINING, &lengths, &facts, &rates);
        status = cleat_fit_search(&request, &fitted, NULL, why, sizeof why, &error);
    }
    const bool planned = !status && fitted.work;
    if (planned)
        find_slowest(fitted.work, found);
    else
        print_message("%s: not planned: %.120s\n", strrchr(path, '/') + 1, status ? error.text : fitted.why.text);
    cleat_fit_result_clear(&fitted);
    cleat_model_destroy(model);
    cleat_profile_destroy(profile);
    return planned;
}

static bool is_ini(const char *name) {
    return strcmp(cleat_name_ending(name), ".ini") == 0;
}

static void no_launch_is_long(void **state) {
    cleat_name_list names;
    int planned = 0, failures = 0;
    (void)state;
    assert_int_equal(cleat_listing_read(source_path("profiles"), is_ini, &names, NULL), CLEAT_OK);
    for (size_t i = 0; i < names.count; ++i) {
        slowest found = {0};
        char path[256];
        snprintf(path, sizeof path, "profiles/%s", names.names[i]);
        if (!plan(source_path(path), &found)) continue;
        ++planned;
        print_message("%-24s %6.1f ms  %s\n", names.names[i], 1e3 * found.seconds, found.node);
        if (found.seconds <= CLEAT_MAX_LAUNCH_SECONDS) continue;
        print_error("%s: a launch of %.0f ms\n", names.names[i], 1e3 * found.seconds);
        ++failures;
    }
    cleat_name_list_free(&names);
    assert_true(planned >= MIN_PROFILES);
    assert_int_equal(failures, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_launch_is_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
