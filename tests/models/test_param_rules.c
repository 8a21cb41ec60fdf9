/* Depths of parameters in every model family, and the effect of frozen parameters on graphs. */
/* ctest: device */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/profile.h"
#include "core/memory.h"
#include "graph/recompute.h"
#include "graph/store.h"
#include "models/model.h"
#include "models/param_rules.h"

enum { LENGTH = 64, BATCH = 2 };

/* A graph of a family with default settings and one more setting. */
typedef struct subject {
    cleat_model *model;
    cleat_store *store;
    cleat_graph *graph;
} subject;

static void set(cleat_profile *profile, const char *assignment) {
    cleat_error error;
    if (cleat_profile_set(profile, assignment, &error) != CLEAT_OK) fail_msg("%s", error.text);
}

static subject subject_open(const cleat_model_class *family, const char *setting, cleat_mode mode) {
    subject s = {NULL};
    cleat_profile *profile = NULL;
    cleat_model_graph built;
    cleat_error error = {0};
    char type[80];
    assert_int_equal(cleat_profile_create(&profile, NULL), CLEAT_OK);
    snprintf(type, sizeof type, "model.type=%s", family->name);
    set(profile, type);
    if (setting) set(profile, setting);
    assert_int_equal(cleat_profile_create_model(profile, &s.model, NULL), CLEAT_OK);
    assert_int_equal(cleat_store_create(&s.store, NULL), CLEAT_OK);
    if (cleat_model_has_rules(s.model)) cleat_store_set_rules(s.store, cleat_model_choose_rule, s.model);
    assert_int_equal(cleat_graph_create(s.store, "graph", &s.graph, NULL), CLEAT_OK);
    const int64_t fixed = cleat_model_fixed_length(s.model);
    cleat_model_build(s.model, s.graph, mode, BATCH, fixed > 0 ? fixed : LENGTH, &built);
    if (cleat_graph_status(s.graph, &error) != CLEAT_OK) fail_msg("%s: %s", family->name, error.text);
    cleat_profile_destroy(profile);
    return s;
}

static void subject_close(subject *s) {
    cleat_graph_destroy(s->graph);
    cleat_store_destroy(s->store);
    cleat_model_destroy(s->model);
}

/* Every depth has parameters, except the lowest in families without an embedding, and the highest in language models,
 * whose output layer is part of the last block. */
static void every_parameter_has_a_depth(void **state) {
    (void)state;
    for (size_t f = 0; cleat_model_classes[f]; ++f) {
        const cleat_model_class *family = cleat_model_classes[f];
        if (!family->layer_of) continue;
        subject s = subject_open(family, NULL, CLEAT_MODE_EVALUATE);
        const int64_t layers = family->layers(s.model);
        size_t *found = cleat_alloc((size_t)layers + 2, sizeof *found);
        const cleat_tensor *param;
        assert_non_null(found);
        for (size_t i = 0; (param = cleat_store_param(s.store, i)); ++i) {
            const int64_t depth = family->layer_of(s.model, param->name);
            if (depth < 0 || depth > layers + 1)
                fail_msg("%s: depth %lld of '%s', of %lld", family->name, (long long)depth, param->name,
                         (long long)layers);
            ++found[depth];
        }
        const int64_t last = strcmp(family->name, "causal_lm") == 0 ? layers : layers + 1;
        for (int64_t depth = 1; depth <= last; ++depth)
            if (!found[depth]) fail_msg("%s: no parameter has depth %lld", family->name, (long long)depth);
        cleat_free(found);
        subject_close(&s);
    }
}

static size_t count_nodes(const cleat_graph *graph, const char *op) {
    size_t count = 0;
    for (size_t i = 0; i < graph->node_count; ++i) count += strcmp(graph->nodes[i]->op->name, op) == 0;
    return count;
}

static const cleat_model_class *find_family(const char *name) {
    for (size_t f = 0; cleat_model_classes[f]; ++f)
        if (strcmp(cleat_model_classes[f]->name, name) == 0) return cleat_model_classes[f];
    fail_msg("no family %s", name);
    return NULL;
}

/* Frozen batch normalisation uses its running statistics without changing them. */
static void frozen_statistics_stay(void **state) {
    (void)state;
    const cleat_model_class *resnet = find_family("image_resnet");
    subject all = subject_open(resnet, NULL, CLEAT_MODE_TRAIN);
    subject some = subject_open(resnet, "train.freeze=3", CLEAT_MODE_TRAIN);
    subject head = subject_open(resnet, "train.freeze=backbone", CLEAT_MODE_TRAIN);
    const size_t norms = count_nodes(all.graph, "batch_norm");
    assert_int_equal(count_nodes(all.graph, "batch_norm_inference"), 0);
    assert_true(count_nodes(some.graph, "batch_norm") > 0 && count_nodes(some.graph, "batch_norm") < norms);
    assert_int_equal(count_nodes(some.graph, "batch_norm") + count_nodes(some.graph, "batch_norm_inference"), norms);
    assert_int_equal(count_nodes(head.graph, "batch_norm"), 0);
    assert_int_equal(count_nodes(head.graph, "batch_norm_inference"), norms);
    for (size_t i = 0; i < head.graph->node_count; ++i)
        for (int k = 0; k < head.graph->nodes[i]->n_out; ++k) {
            const cleat_tensor *out = head.graph->nodes[i]->out[k];
            assert_false(out && out->is_buffer);
        }
    subject_close(&all);
    subject_close(&some);
    subject_close(&head);
}

/* Autodiff stops at the first trained parameter. */
static void frozen_blocks_have_no_gradient_nodes(void **state) {
    (void)state;
    const cleat_model_class *text = find_family("text_classifier");
    subject head = subject_open(text, "train.freeze=backbone", CLEAT_MODE_TRAIN);
    assert_int_equal(count_nodes(head.graph, "attention_grad"), 0);
    assert_int_equal(count_nodes(head.graph, "embedding_grad"), 0);
    assert_int_equal(count_nodes(head.graph, "linear_dw"), 1);
    assert_int_equal(count_nodes(head.graph, "linear_dx"), 0);
    subject_close(&head);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_parameter_has_a_depth),
                                       cmocka_unit_test(frozen_statistics_stay),
                                       cmocka_unit_test(frozen_blocks_have_no_gradient_nodes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
