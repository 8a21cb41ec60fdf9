/* The self-check covers training: every operation in the graphs of the profiles, and of further networks and
 * settings, has a definition (cleat_op.define), on a CPU and on cards. Needs no device. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/profile.h"
#include "fit/workload.h"
#include "graph/graph.h"
#include "platform/files.h"
#include "source_path.h"

enum { SETTINGS = 16 };

static void ok(cleat_status status, const char *what, const cleat_error *error) {
    if (status) fail_msg("%s: %s", what, error->text);
}

static size_t operations, missing;

static void check_graph(const cleat_graph *graph, const char *profile) {
    for (size_t i = 0; graph && i < graph->node_count; ++i) {
        const cleat_op *op = graph->nodes[i]->op;
        if (!op->variants) continue; /* nothing runs on the device */
        ++operations;
        if (op->define) continue;
        print_message("%s, graph '%s': %s has no definition\n", profile, graph->name, op->name);
        ++missing;
    }
}

static void check_workload(const cleat_model *model, cleat_purpose purpose, const char *profile,
                           const cleat_device_facts *facts) {
    const int64_t fixed = cleat_model_fixed_length(model);
    const cleat_bucket bucket = {.length = fixed > 0 ? fixed : 300, .micro_batch_size = 16, .global_batch_size = 16};
    cleat_workload *work = NULL;
    cleat_error error = {0};
    const cleat_workload_spec spec = {
        .facts = facts, .model = model, .purpose = purpose, .buckets = &bucket, .n_buckets = 1};
    ok(cleat_workload_create(&spec, &work, &error), profile, &error);
    check_graph(work->train[0].graph, profile);
    check_graph(work->evaluate[0].graph, profile);
    check_graph(work->update.graph, profile);
    check_graph(work->refresh.graph, profile);
    cleat_workload_destroy(work);
}

#define COMMON                                                                                                         \
    .name = "nowhere", .memory_total = 1LL << 40, .max_allocation = 1LL << 40, .alignment = 256,                       \
    .local_memory = 32768, .max_work_group = 256, .pci_bus = -1
static const cleat_device_facts devices[] = {
    {COMMON, .kind = CLEAT_DEVICE_CPU, .work_group = 1, .vector_width = 16, .compute_units = 8},
    {COMMON, .kind = CLEAT_DEVICE_GPU, .work_group = 256, .vector_width = 4, .compute_units = 64},
    {COMMON, .kind = CLEAT_DEVICE_GPU, .work_group = 256, .vector_width = 4, .compute_units = 64,
     .matrix_unit = CLEAT_MATRIX_NV80, .matrix_bf16 = true},
};

/* In two precisions, for training and for prediction. */
static void check_profile(const char *path, const char *const *settings) {
    static const char *const precisions[] = {"train.precision=f32", "train.precision=f16"};
    for (size_t d = 0; d < sizeof devices / sizeof *devices; ++d)
        for (size_t p = 0; p < sizeof precisions / sizeof *precisions; ++p) {
            const char *assignments[SETTINGS + 1] = {precisions[p]};
            size_t count = 1;
            cleat_profile *profile = NULL;
            cleat_model *model = NULL;
            cleat_error error = {0};
            while (settings && settings[count - 1]) {
                assert_true(count < SETTINGS);
                assignments[count] = settings[count - 1];
                ++count;
            }
            ok(cleat_profile_load(path, assignments, count, &profile, &error), path, &error);
            ok(cleat_profile_create_model(profile, &model, &error), path, &error);
            check_workload(model, CLEAT_FOR_TRAINING, path, &devices[d]);
            check_workload(model, CLEAT_FOR_PREDICTION, path, &devices[d]);
            cleat_model_destroy(model);
            cleat_profile_destroy(profile);
        }
}

static void every_operation_of_the_profiles_has_a_definition(void **state) {
    cleat_profile_entry *entries;
    size_t count;
    (void)state;
    operations = missing = 0;
    assert_int_equal(chdir(source_path("")), 0); /* the source tree's profiles, not installed ones */
    assert_int_equal(cleat_profile_list(&entries, &count, NULL), CLEAT_OK);
    assert_true(count > 15);
    for (size_t i = 0; i < count; ++i) check_profile(entries[i].path, NULL);
    free(entries);
    assert_true(operations > 10000);
    assert_int_equal(missing, 0);
}

static void every_operation_of_other_settings_has_a_definition(void **state) {
    static const struct {
        const char *profile;
        const char *settings[SETTINGS];
    } rows[] = {
        {"image_finetune", {"model.type=image_resnet", "model.depth=50"}},
        {"image_finetune", {"model.type=image_vit"}},
        {"image_finetune", {"model.type=image_convnext"}},
        {"text_classify", {"model.network=bert"}},
        {"text_classify", {"model.network=distilbert"}},
        {"text_classify", {"model.network=electra"}},
        {"text_classify", {"model.network=deberta-v2"}},
        {"text_classify", {"model.network=modernbert", "model.local_window=16"}},
        {"text_tag", {"model.network=roberta"}},
        {"rna_small",
         {"loss.pair_distance=1", "loss.lddt=1", "loss.frame=1", "loss.handedness=1", "loss.bond_length=1",
          "loss.bond_angle=1", "loss.clash=1", "loss.base_pair=1", "train.max_grad_norm=1",
          "model.positions=both_ends"}},
    };
    char path[512];
    (void)state;
    operations = missing = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        snprintf(path, sizeof path, "%s/%s.ini", source_path("profiles"), rows[i].profile);
        check_profile(path, rows[i].settings);
    }
    assert_int_equal(missing, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_of_the_profiles_has_a_definition),
        cmocka_unit_test(every_operation_of_other_settings_has_a_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
