/* Synthetic data: the inputs that the loader would supply to each family's training graph, as a pure function
 * of seed, sample and field; named model sizes. */
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

enum { BATCH = 2, LENGTH = 32 };

static cleat_model *model_of(const char *type) {
    char assignment[64];
    cleat_profile *profile = NULL;
    cleat_model *model = NULL;
    cleat_error error = {0};
    snprintf(assignment, sizeof assignment, "model.type=%s", type);
    assert_int_equal(cleat_profile_create(&profile, &error), CLEAT_OK);
    if (cleat_profile_set(profile, assignment, &error)) fail_msg("%s", error.text);
    assert_int_equal(cleat_profile_create_model(profile, &model, &error), CLEAT_OK);
    cleat_profile_destroy(profile);
    return model;
}

static bool is_own(const char *input) {
    static const char *const own[] = {"scale", "rng", "seed", "samples"};
    for (size_t i = 0; i < sizeof own / sizeof *own; ++i)
        if (strcmp(own[i], input) == 0) return true;
    return false;
}

/* Fields and inputs agree in name, type and size. */
static void assert_feeds(const cleat_dataset *dataset, const cleat_graph *graph, int64_t length) {
    for (size_t i = 0; i < graph->tensor_count; ++i) {
        const cleat_tensor *input = graph->tensors[i];
        if (input->role != CLEAT_ROLE_INPUT || is_own(input->name)) continue;
        const int f = cleat_dataset_find_field(dataset, input->name);
        if (f < 0) fail_msg("no field feeds the input '%s'", input->name);
        const cleat_field *field = cleat_dataset_field(dataset, (size_t)f);
        assert_int_equal(field->dtype, input->dtype);
        assert_int_equal(BATCH * cleat_field_elements(field, length), cleat_tensor_elements(input));
    }
    for (size_t f = 0; f < cleat_dataset_fields(dataset); ++f)
        assert_non_null(cleat_graph_find(graph, cleat_dataset_field(dataset, f)->name));
}

static void fields_are_the_inputs_of_training(void **state) {
    static const char *const types[] = {"rna_transformer", "text_classifier",    "text_tagger",    "text_pretrain",
                                        "series_lstm",     "series_transformer", "series_dense",   "image_resnet",
                                        "image_vit",       "image_convnext",     "mask_segformer", "emberformer",
                                        "causal_lm"};
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
        cleat_model *model = model_of(types[i]);
        cleat_store *store = NULL;
        cleat_graph *graph = NULL;
        cleat_dataset *dataset = NULL;
        cleat_model_graph built;
        cleat_error error = {0};
        const int64_t fixed = cleat_model_fixed_length(model), length = fixed > 0 ? fixed : LENGTH;
        assert_int_equal(cleat_store_create(&store, NULL), CLEAT_OK);
        assert_int_equal(cleat_graph_create(store, "train", &graph, NULL), CLEAT_OK);
        cleat_model_build(model, graph, CLEAT_MODE_TRAIN, BATCH, length, &built);
        if (cleat_graph_status(graph, &error)) fail_msg("%s: %s", types[i], error.text);
        assert_int_equal(cleat_model_open_synthetic(model, BATCH, length, &dataset, &error), CLEAT_OK);
        assert_feeds(dataset, graph, length);
        cleat_dataset_destroy(dataset);
        cleat_graph_destroy(graph);
        cleat_store_destroy(store);
        cleat_model_destroy(model);
    }
}

/* --- values --------------------------------------------------------------------------------------------------- */

typedef struct sample {
    int32_t tokens[LENGTH], length[1], pairs[LENGTH];
    float values[2 * LENGTH], ones[LENGTH];
} sample;

static cleat_dataset *open_fields(uint64_t seed, const int32_t *lengths) {
    const int64_t row[1] = {-1}, points[2] = {-1, 2};
    cleat_synthetic_field fields[] = {
        cleat_synthetic_integers("tokens", 7, 1, row), cleat_synthetic_values("lengths", CLEAT_VALUES_LENGTH, 0, NULL),
        cleat_synthetic_values("pairs", CLEAT_VALUES_OPPOSITE, 1, row), cleat_synthetic_floats("values", 2, points),
        cleat_synthetic_values("ones", CLEAT_VALUES_ONE, 1, row)};
    cleat_dataset *dataset = NULL;
    fields[1].given = lengths;
    assert_int_equal(cleat_synthetic_open(fields, 5, 3, LENGTH, seed, &dataset, NULL), CLEAT_OK);
    return dataset;
}

static sample fill(const cleat_dataset *dataset, size_t index) {
    sample s;
    void *const slots[] = {s.tokens, s.length, s.pairs, s.values, s.ones};
    memset(&s, 0xff, sizeof s);
    assert_int_equal(cleat_dataset_fill(dataset, index, LENGTH, NULL, slots, NULL), CLEAT_OK);
    return s;
}

static void values_depend_on_seed_sample_and_field_only(void **state) {
    (void)state;
    cleat_dataset *one = open_fields(1, NULL), *same = open_fields(1, NULL), *other = open_fields(2, NULL);
    const sample a = fill(one, 1), b = fill(same, 1), c = fill(one, 2), d = fill(other, 1);
    assert_memory_equal(&a, &b, sizeof a);
    assert_memory_not_equal(a.tokens, c.tokens, sizeof a.tokens);
    assert_memory_not_equal(a.values, c.values, sizeof a.values);
    assert_memory_not_equal(a.tokens, d.tokens, sizeof a.tokens);
    assert_memory_not_equal(a.values, d.values, sizeof a.values);
    assert_int_equal(a.length[0], LENGTH);
    for (int i = 0; i < LENGTH; ++i) {
        assert_in_range(a.tokens[i], 0, 6);
        assert_int_equal(a.pairs[i], LENGTH - 1 - i);
        assert_true(a.ones[i] == 1.0f);
    }
    cleat_dataset_destroy(one);
    cleat_dataset_destroy(same);
    cleat_dataset_destroy(other);
}

static void given_values_are_copied(void **state) {
    static const int32_t lengths[] = {5, 32, 17};
    (void)state;
    cleat_dataset *dataset = open_fields(1, lengths);
    for (size_t i = 0; i < 3; ++i) {
        assert_int_equal(fill(dataset, i).length[0], lengths[i]);
        assert_int_equal(cleat_dataset_items(dataset, i), lengths[i]);
        assert_int_equal(cleat_dataset_length(dataset, i), LENGTH);
    }
    cleat_dataset_destroy(dataset);
}

/* --- sizes ---------------------------------------------------------------------------------------------------- */

static void sizes_are_set_by_name(void **state) {
    cleat_model *model = model_of("mask_segformer");
    (void)state;
    assert_int_equal(
        cleat_model_set_sizes(model, "{\"classes\": 3, \"hidden\": [5, 6], \"stage_depths\": 2, \"bond\": 5.9}", NULL),
        CLEAT_OK);
    assert_int_equal(model->sizes.classes, 3);
    assert_int_equal(model->sizes.hidden[1], 6);
    assert_int_equal(model->sizes.hidden[2], 0);
    for (int i = 0; i < CLEAT_MODEL_STAGES; ++i) assert_int_equal(model->sizes.stage_depths[i], 2);
    assert_true(model->sizes.bond == 5.9);
    cleat_model_destroy(model);
}

static void impossible_sizes_are_refused(void **state) {
    static const struct {
        const char *json, *word;
    } rows[] = {{"classes = 3", "JSON"},
                {"[]", "JSON"},
                {"{\"klasses\": 3}", "klasses"},
                {"{\"classes\": 0}", "classes"},
                {"{\"classes\": -1}", "classes"},
                {"{\"classes\": 2.5}", "classes"},
                {"{\"hidden\": [4, 0]}", "hidden"},
                {"{\"classes\": \"3\"}", "classes"},
                {"{\"classes\": [3, 3]}", "classes"},
                {"{\"blocks\": [1, 1, 1, 1, 1]}", "blocks"},
                {"{\"inputs\": 1e30}", "inputs"},
                {"{\"bond\": 0}", "bond"}};
    cleat_model *model = model_of("image_resnet");
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_error error = {0};
        assert_int_equal(cleat_model_set_sizes(model, rows[i].json, &error), CLEAT_ERR_FORMAT);
        if (!strstr(error.text, rows[i].word)) fail_msg("'%s' does not contain '%s'", error.text, rows[i].word);
        assert_int_equal(model->sizes.classes, 0);
    }
    cleat_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_the_inputs_of_training),
        cmocka_unit_test(values_depend_on_seed_sample_and_field_only),
        cmocka_unit_test(given_values_are_copied),
        cmocka_unit_test(sizes_are_set_by_name),
        cmocka_unit_test(impossible_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
