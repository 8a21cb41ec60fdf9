/* The self-check covers what training runs: every kernel usable in a training graph of the profiles is usable
 * in the check's trajectory of that model type, on a CPU and on a card. Needs no device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/embedded.h"
#include "fit/workload.h"
#include "graph/graph.h"
#include "graph/launch.h"
#include "source_path.h"
#include "verify/op_checks.h"
#include "verify/verify.h"

extern const cleat_embedded cleat_embedded_checks[];

enum { MOST = 1024, NAME = 160 };

typedef struct kernels {
    size_t count;
    char names[MOST][NAME]; /* "linear.cl linear_gpu" */
} kernels;

static void ok(cleat_status status, const char *what, const cleat_error *error) {
    if (status != CLEAT_OK) fail_msg("%s: %s", what, error->text);
}

static bool has(const kernels *set, const char *name) {
    for (size_t i = 0; i < set->count; ++i)
        if (strcmp(set->names[i], name) == 0) return true;
    return false;
}

static void add(kernels *set, const cleat_launch *launch) {
    char name[NAME];
    const cleat_sgemm *g = &launch->sgemm;
    if (launch->kind == CLEAT_LAUNCH_SGEMM)
        snprintf(name, sizeof name, "CLBlast %d %d", g->trans_a, g->trans_b);
    else
        snprintf(name, sizeof name, "%s %s", launch->file, launch->kernel);
    if (has(set, name)) return;
    assert_true(set->count < MOST);
    snprintf(set->names[set->count++], NAME, "%s", name);
}

/* Adds the kernels of all usable variants of a node. */
static void add_node(kernels *set, const cleat_node *node, const cleat_device_facts *facts) {
    for (const cleat_variant *v = node->op->variants; v && v->name; ++v) {
        cleat_binder binder;
        cleat_error error = {0};
        if (v->refuse && v->refuse(node, facts)) continue;
        cleat_binder_init(&binder, facts);
        ok(cleat_bind_node(v, node, &binder, &error), node->name, &error);
        for (size_t i = 0; i < binder.count; ++i) add(set, &binder.launches[i]);
        cleat_binder_clear(&binder);
    }
}

static void add_workload(kernels *set, const cleat_model *model, int64_t batch, int64_t length,
                         const cleat_device_facts *facts) {
    const cleat_bucket bucket = {.length = length, .micro_batch_size = batch, .global_batch_size = batch};
    cleat_workload *work = NULL;
    cleat_error error = {0};
    const cleat_workload_spec spec = {
        .facts = facts, .model = model, .purpose = CLEAT_FOR_TRAINING, .buckets = &bucket, .n_buckets = 1};
    ok(cleat_workload_create(&spec, &work, &error), "workload", &error);
    const cleat_graph *const graphs[] = {work->train[0].graph, work->update.graph, work->refresh.graph};
    for (size_t g = 0; g < sizeof graphs / sizeof *graphs; ++g)
        for (size_t i = 0; graphs[g] && i < graphs[g]->node_count; ++i) add_node(set, graphs[g]->nodes[i], facts);
    cleat_workload_destroy(work);
}

static void add_profile(kernels *set, const char *name, const char *setting, const char *precision,
                        const cleat_device_facts *facts) {
    char path[512];
    const char *const assignments[] = {precision, setting};
    cleat_profile *profile = NULL;
    cleat_model *model = NULL;
    cleat_error error = {0};
    snprintf(path, sizeof path, "%s/%s.ini", source_path("profiles"), name);
    ok(cleat_profile_load(path, assignments, setting ? 2 : 1, &profile, &error), path, &error);
    ok(cleat_profile_create_model(profile, &model, &error), path, &error);
    const int64_t fixed = cleat_model_fixed_length(model);
    add_workload(set, model, 16, fixed > 0 ? fixed : 300, facts);
    cleat_model_destroy(model);
    cleat_profile_destroy(profile);
}

static void add_check(kernels *set, const char *type, cleat_precision precision, const cleat_device_facts *facts) {
    const cleat_embedded *check = cleat_embedded_checks;
    cleat_safetensors *file = NULL;
    cleat_golden golden = {0};
    cleat_error error = {0};
    while (check->name && strcmp(check->name, type) != 0) ++check;
    assert_non_null(check->name);
    ok(cleat_safetensors_parse(type, check->text, check->size, &file, &error), type, &error);
    const cleat_verify_subject subject = {.file = file, .rare_dropout = true, .precision = precision};
    ok(cleat_verify_open(&subject, &golden, &error), type, &error);
    add_workload(set, golden.model, (int64_t)cleat_dataset_count(golden.dataset),
                 cleat_dataset_length(golden.dataset, 0), facts);
    cleat_golden_close(&golden);
    cleat_safetensors_close(file);
}

static void add_op_checks(kernels *set, cleat_dtype storage, const cleat_device_facts *facts) {
    for (int i = 0; i < CLEAT_OP_CHECKS; ++i) {
        cleat_store *store = NULL;
        cleat_graph *graph = NULL;
        cleat_error error = {0};
        ok(cleat_store_create(&store, &error), "store", &error);
        ok(cleat_graph_create(store, "op_check", &graph, &error), "graph", &error);
        cleat_op_check_build(graph, i, storage);
        ok(cleat_graph_status(graph, &error), "op_check", &error);
        for (size_t k = 0; k < graph->node_count; ++k) add_node(set, graph->nodes[k], facts);
        cleat_graph_destroy(graph);
        cleat_store_destroy(store);
    }
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

static const struct {
    const char *type, *profile, *setting;
} families[] = {
    {"rna_transformer", "rna", NULL},
    {"rna_transformer", "rna_memorise", NULL},
    {"text_classifier", "tweets_sentiment", NULL},
    {"text_tagger", "tweets_ner", NULL},
    {"text_pretrain", "text_pretrain", NULL},
    {"series_lstm", "series_lstm", NULL},
    {"series_dense", "series_dense", NULL},
    {"series_transformer", "series_transformer", NULL},
    {"image_resnet", "image_fashion", NULL},
    {"image_resnet", "image_224", NULL},
    {"image_resnet", "image_finetune", "model.depth=50"},
    {"image_vit", "image_finetune", "model.type=image_vit"},
    {"image_convnext", "image_finetune", "model.type=image_convnext"},
    {"mask_segformer", "masks", NULL},
    {"emberformer", "emberformer", NULL},
    {"emberformer", "emberformer_small", NULL},
    {"text_classifier", "text_classify", "model.network=bert"},
    {"text_classifier", "text_classify", "model.network=distilbert"},
    {"text_classifier", "text_classify", "model.network=electra"},
    {"text_classifier", "text_classify", "model.network=deberta-v2"},
    {"text_tagger", "text_tag", "model.network=roberta"},
};

static void every_kernel_of_training_is_checked(void **state) {
    static const struct {
        cleat_precision precision;
        const char *setting;
    } precisions[] = {{CLEAT_PRECISION_F32, "train.precision=f32"}, {CLEAT_PRECISION_F16, "train.precision=f16"}};
    static kernels run, checked;
    size_t missing = 0;
    (void)state;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; ++d)
        for (size_t p = 0; p < 2; ++p)
            for (size_t f = 0; f < sizeof families / sizeof *families; ++f) {
                run.count = checked.count = 0;
                add_profile(&run, families[f].profile, families[f].setting, precisions[p].setting, &devices[d]);
                add_check(&checked, families[f].type, precisions[p].precision, &devices[d]);
                add_op_checks(&checked, p ? CLEAT_F16 : CLEAT_F32, &devices[d]);
                for (size_t i = 0; i < run.count; ++i) {
                    if (has(&checked, run.names[i])) continue;
                    print_message("%zu %s %s: %s\n", d, precisions[p].setting, families[f].profile, run.names[i]);
                    ++missing;
                }
            }
    assert_int_equal(missing, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kernel_of_training_is_checked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
