/* After the attention of an encoder's last block, only rows that are read are computed. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/profile.h"
#include "graph/graph.h"
#include "models/model.h"

enum { BATCH = 2, LENGTH = 32, SETTINGS = 4 };

static cleat_model *model_of(const char *const *settings) {
    cleat_profile *profile = NULL;
    cleat_model *model = NULL;
    cleat_error error = {0};
    assert_int_equal(cleat_profile_create(&profile, &error), CLEAT_OK);
    for (size_t i = 0; i < SETTINGS && settings[i]; ++i)
        if (cleat_profile_set(profile, settings[i], &error)) fail_msg("%s", error.text);
    assert_int_equal(cleat_profile_create_model(profile, &model, &error), CLEAT_OK);
    cleat_profile_destroy(profile);
    return model;
}

/* Rows of this layer's product; the last product, because DeBERTa's att.qkv maps positions first. */
static int64_t rows_of(const cleat_graph *graph, const char *layer) {
    char weight[CLEAT_NAME];
    int64_t rows = 0;
    snprintf(weight, sizeof weight, "%s.weight", layer);
    for (size_t n = 0; n < graph->node_count; ++n) {
        const cleat_node *node = graph->nodes[n];
        if (strcmp(node->op->name, "linear") != 0) continue;
        for (int i = 0; i < node->n_in; ++i)
            if (node->in[i] && strcmp(node->in[i]->name, weight) == 0) rows = cleat_rows(node->out[0]);
    }
    if (rows == 0) fail_msg("no product with '%s'", weight);
    return rows;
}

/* Rows of the products after the attention, in the last and the second to last block of a training graph. */
static void assert_rows(const char *const *settings, int64_t length, int64_t before, int64_t last) {
    static const char *const behind[] = {"att.out", "f1", "f2"};
    cleat_model *model = model_of(settings);
    cleat_store *store = NULL;
    cleat_graph *graph = NULL;
    cleat_model_graph built;
    cleat_error error = {0};
    assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(store, "train", &graph, NULL), CLEAT_OK);
    cleat_model_build(model, graph, CLEAT_MODE_TRAIN, BATCH, length, &built);
    if (cleat_graph_status(graph, &error)) fail_msg("%s", error.text);
    for (size_t i = 0; i < sizeof behind / sizeof *behind; ++i) {
        char name[CLEAT_NAME];
        snprintf(name, sizeof name, "blocks.0.%s", behind[i]);
        assert_int_equal(rows_of(graph, name), before);
        snprintf(name, sizeof name, "blocks.1.%s", behind[i]);
        assert_int_equal(rows_of(graph, name), last);
    }
    assert_int_equal(rows_of(graph, "blocks.1.att.qkv"), before);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
    cleat_model_destroy(model);
}

static const int64_t ALL = BATCH * LENGTH;

static void the_first_token(void **state) {
    static const char *const classifiers[][SETTINGS] = {
        {"model.type=text_classifier", "model.layers=2", "model.network=bert"},
        {"model.type=text_classifier", "model.layers=2", "model.network=deberta-v2"},
        {"model.type=text_classifier", "model.layers=2", "model.pooling=first"}};
    (void)state;
    for (size_t i = 0; i < sizeof classifiers / sizeof *classifiers; ++i)
        assert_rows(classifiers[i], LENGTH, ALL, BATCH);
}

static void the_class_token(void **state) {
    static const char *const vit[SETTINGS] = {"model.type=image_vit", "model.layers=2", "model.patch=8"};
    (void)state;
    assert_rows(vit, LENGTH, BATCH * (1 + LENGTH / 8 * LENGTH / 8), BATCH);
}

static void the_last_step(void **state) {
    static const char *const series[SETTINGS] = {"model.type=series_transformer", "model.layers=2", "data.lookback=32"};
    (void)state;
    assert_rows(series, LENGTH, ALL, BATCH);
}

static void everything_where_everything_is_read(void **state) {
    static const char *const readers[][SETTINGS] = {
        {"model.type=text_classifier", "model.layers=2", "model.pooling=mean"},
        {"model.type=text_tagger", "model.layers=2", "model.network=bert"}};
    (void)state;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; ++i) assert_rows(readers[i], LENGTH, ALL, ALL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_token), cmocka_unit_test(the_class_token),
                                       cmocka_unit_test(the_last_step),
                                       cmocka_unit_test(everything_where_everything_is_read)};
    return cmocka_run_group_tests_name("models.read_rows", tests, NULL, NULL);
}
