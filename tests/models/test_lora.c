/* Low-rank adapters: which layers have them, gradients against finite differences, and merged weights. */
/* ctest: device */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/models.h"
#include "cleat/profile.h"
#include "core/memory.h"
#include "exec/copy.h"
#include "graph/graph.h"
#include "graph/recompute.h"
#include "graph/store.h"
#include "models/model.h"
#include "models/param_rules.h"
#include "plan_check.h"
#include "platform/files.h"

enum { B = 3, STEPS = 12, COLUMNS = 2, HORIZON = 4, RANK = 3 };

static cleat_device *open_device(void) {
    cleat_device *device = NULL;
    cleat_error error;
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    cleat_status status = cleat_device_open(selector ? selector : "auto", &device, &error);
    if (!status) return device;
    fprintf(stderr, "%s\n", error.text);
    exit(status == CLEAT_ERR_NO_DEVICE ? 77 : 1);
}

/* A forecaster with a transformer of two blocks; `layers` NULL: without adapters. */
static cleat_model *make_model(const char *layers) {
    static const char *const settings[] = {"model.type=series_transformer",
                                           "model.d_model=16",
                                           "model.heads=2",
                                           "model.layers=2",
                                           "model.d_ff=24",
                                           "model.dropout=0",
                                           "data.lookback=12",
                                           "data.horizon=4",
                                           "train.lora_alpha=6"};
    cleat_profile *profile = NULL;
    cleat_model *model = NULL;
    char text[128];
    assert_int_equal(cleat_profile_create(&profile, NULL), CLEAT_OK);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; ++i)
        assert_int_equal(cleat_profile_set(profile, settings[i], NULL), CLEAT_OK);
    if (layers) {
        snprintf(text, sizeof text, "train.lora_layers=%s", layers);
        assert_int_equal(cleat_profile_set(profile, text, NULL), CLEAT_OK);
        assert_int_equal(cleat_profile_set(profile, "train.lora_rank=3", NULL), CLEAT_OK);
    }
    assert_int_equal(cleat_profile_create_model(profile, &model, NULL), CLEAT_OK);
    assert_int_equal(cleat_model_set_sizes(model, "{\"inputs\": 2, \"outputs\": 2}", NULL), CLEAT_OK);
    cleat_profile_destroy(profile);
    return model;
}

typedef struct session {
    cleat_model *model;
    cleat_store *store;
    cleat_graph *graph;
    cleat_model_graph built;
    cleat_plan *plan;
    cleat_exec *exec;
} session;

static void must(cleat_status status, const cleat_error *error) {
    if (status) fail_msg("%s", error->text);
}

static void put(session *s, const char *name, const void *values) {
    cleat_error error;
    const cleat_tensor *tensor = cleat_graph_find(s->graph, name);
    if (!tensor) fail_msg("no input '%s'", name);
    must(cleat_exec_write_unchecked(s->exec, 0, tensor, values, &error), &error);
}

static void put_batch(session *s) {
    float x[B * STEPS * COLUMNS], target[B * HORIZON * COLUMNS], weight[B] = {0.5f, 0.3f, 0.2f}, one = 1;
    const uint32_t rng[4] = {17, 4, 0, 0};
    for (int i = 0; i < B * STEPS * COLUMNS; ++i) x[i] = sinf(0.9f * (float)i);
    for (int i = 0; i < B * HORIZON * COLUMNS; ++i) target[i] = cosf(0.7f * (float)i);
    put(s, "x", x);
    put(s, "target", target);
    put(s, "scale", weight);
    put(s, "seed", &one);
    put(s, "rng", rng);
}

/* Noise in every parameter: an adapter's B starts with zeros, which would block the gradient of A. */
static void put_parameters(session *s) {
    cleat_error error;
    cleat_tensor *param;
    for (size_t i = 0; (param = cleat_store_param(s->store, i)); ++i) {
        cleat_tensor noisy = *param;
        if (noisy.init.kind == CLEAT_INIT_ZERO) noisy.init = (cleat_init){CLEAT_INIT_UNIFORM, 0.3f};
        float *values = cleat_alloc((size_t)cleat_tensor_elements(param), sizeof *values);
        assert_non_null(values);
        cleat_param_initialise(&noisy, 1, values);
        must(cleat_exec_write_unchecked(s->exec, 0, param, values, &error), &error);
        cleat_free(values);
    }
}

static void session_open(session *s, cleat_device *device, const char *layers, int recompute) {
    cleat_error error;
    *s = (session){.model = make_model(layers)};
    must(cleat_store_create(&s->store, &error), &error);
    if (layers) cleat_store_set_rules(s->store, cleat_model_choose_rule, s->model);
    must(cleat_graph_create(s->store, "train", &s->graph, &error), &error);
    cleat_graph_set_recompute(s->graph, recompute);
    cleat_model_build(s->model, s->graph, CLEAT_MODE_TRAIN, B, STEPS, &s->built);
    cleat_graph_fuse(s->graph);
    must(cleat_graph_status(s->graph, &error), &error);
    must(cleat_model_check_adapters(s->model, s->store, &error), &error);
    must(cleat_store_arrange(s->store, &error), &error);
    must(cleat_plan_create(&s->graph, 1, cleat_device_get_facts(device), &s->plan, &error), &error);
    must(cleat_plan_check(s->plan, &error), &error);
    must(cleat_exec_create(device, s->plan, &s->exec, &error), &error);
    put_parameters(s);
    put_batch(s);
}

static void session_close(session *s) {
    cleat_exec_destroy(s->exec);
    cleat_plan_destroy(s->plan);
    cleat_graph_destroy(s->graph);
    cleat_store_destroy(s->store);
    cleat_model_destroy(s->model);
}

static double run(session *s) {
    cleat_error error;
    float loss;
    must(cleat_exec_run(s->exec, 0, &error), &error);
    must(cleat_exec_read_unchecked(s->exec, 0, s->built.loss, &loss, &error), &error);
    return (double)loss;
}

static float *read_values(session *s, const cleat_tensor *tensor) {
    cleat_error error;
    float *values = cleat_alloc((size_t)cleat_tensor_elements(tensor), sizeof *values);
    assert_non_null(values);
    must(cleat_exec_read_unchecked(s->exec, 0, tensor, values, &error), &error);
    return values;
}

/* --- which layers --- */

static void words_choose_layers(void **state) {
    (void)state;
    static const struct {
        const char *layers, *prefix;
        int parts;
        unsigned used;
    } rows[] = {
        {"query value", "blocks.0.att.qkv", 3, 5},   {"value", "blocks.0.att.qkv", 3, 4},
        {"key,value", "st.0.1.att.kv", 2, 3},        {"query value", "st.0.1.att.q", 1, 1},
        {"query value", "blocks.0.att.out", 0, 0},   {"att.out", "blocks.0.att.out", 1, 1},
        {"out", "blocks.0.att.out", 1, 1},           {"ut", "blocks.0.att.out", 0, 0},
        {"qkv", "blocks.0.att.qkv", 1, 1},           {"all-linear", "blocks.0.att.qkv", 3, 7},
        {"all-linear", "blocks.3.f1", 1, 1},         {"f1, f2", "blocks.3.f2", 1, 1},
        {"query", "blocks.0.att.query", 1, 1},       {"", "blocks.0.f1", 0, 0},
        {"blocks.0.f1", "blocks.0.f1", 1, 1},        {"blocks.0.f1", "blocks.1.f1", 0, 0},
        {"att.qkv query", "blocks.0.att.qkv", 3, 1}, {"query value", "query", 1, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const cleat_lora_places found = cleat_lora_places_of(rows[i].layers, rows[i].prefix);
        if (found.parts != rows[i].parts || found.used != rows[i].used)
            fail_msg("'%s' gives %s %u of %d parts", rows[i].layers, rows[i].prefix, found.used, found.parts);
    }
}

static void names_without_a_layer_are_refused(void **state) {
    cleat_store *store;
    cleat_graph *graph;
    cleat_model_graph built;
    cleat_error error = {0};
    cleat_model *model = make_model("queries");
    (void)state;
    must(cleat_store_create(&store, &error), &error);
    must(cleat_graph_create(store, "train", &graph, &error), &error);
    cleat_model_build(model, graph, CLEAT_MODE_EVALUATE, B, STEPS, &built);
    assert_int_equal(cleat_model_check_adapters(model, store, &error), CLEAT_ERR_PROFILE);
    assert_non_null(strstr(error.text, "queries"));
    assert_non_null(strstr(error.text, "qkv, out, f1, f2"));
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
    cleat_model_destroy(model);
}

/* --- gradients --- */

static double loss_with(session *s, const cleat_tensor *param, float *values, int64_t k, float value) {
    cleat_error error;
    const float before = values[k];
    values[k] = value;
    must(cleat_exec_write_unchecked(s->exec, 0, param, values, &error), &error);
    values[k] = before;
    return run(s);
}

/* Central differences of the f32 loss: their error is the loss's, 1e-7, divided by the step. */
static void check_gradient(session *s, const cleat_tensor *param, const float *gradient) {
    const float h = 2e-2f;
    const int64_t elements = cleat_tensor_elements(param);
    cleat_error error;
    float *values = read_values(s, param);
    double largest = 0;
    for (int64_t k = 0; k < elements; ++k) largest = fmax(largest, fabs((double)gradient[k]));
    if (!(largest > 1e-6)) fail_msg("the gradient of '%s' is zero", param->name);
    for (int64_t k = 0; k < elements; k += 1 + elements / 9) {
        const float high = values[k] + h, low = values[k] - h;
        const double difference = loss_with(s, param, values, k, high) - loss_with(s, param, values, k, low);
        const double expected = difference / ((double)high - (double)low);
        if (!(fabs(expected - (double)gradient[k]) < 5e-3 * largest + 3e-5))
            fail_msg("%s[%lld]: gradient %g, difference quotient %g", param->name, (long long)k, (double)gradient[k],
                     expected);
    }
    must(cleat_exec_write_unchecked(s->exec, 0, param, values, &error), &error);
    cleat_free(values);
}

static void gradients_are_those_of_the_loss(void **state) {
    static const char *const layers[] = {"query value", "all-linear", "att.qkv f2"};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; ++i) {
        session s;
        size_t adapters = 0;
        const cleat_tensor *param;
        session_open(&s, *state, layers[i], i == 1 ? 1 : 0);
        run(&s);
        for (size_t p = 0; (param = cleat_store_param(s.store, p)); ++p) {
            const bool adapter = strstr(param->name, ".lora_") != NULL, head = strncmp(param->name, "head.", 5) == 0;
            const cleat_tensor *gradient = cleat_store_grad(s.store, p);
            assert_int_equal(gradient != NULL, adapter || head);
            adapters += adapter;
        }
        /* the gradients of one run; later runs add to them */
        const size_t count = cleat_store_count(s.store);
        float **gradients = cleat_alloc(count, sizeof *gradients);
        assert_non_null(gradients);
        for (size_t p = 0; p < count; ++p)
            if (cleat_store_grad(s.store, p)) gradients[p] = read_values(&s, cleat_store_grad(s.store, p));
        for (size_t p = 0; p < count; ++p)
            if (gradients[p]) check_gradient(&s, cleat_store_param(s.store, p), gradients[p]);
        for (size_t p = 0; p < count; ++p) cleat_free(gradients[p]);
        cleat_free(gradients);
        assert_int_equal(adapters, i == 0 ? 2 * 2 : i == 1 ? 2 * (2 * 4) + 2 : 2 * (2 * 2));
        session_close(&s);
    }
}

/* --- merged weights --- */

/* Writes the parameters of `from`, with its adapters merged, into `to`, which has no adapters. */
static void merge(session *from, session *to, const char *layers) {
    cleat_tensor *param;
    cleat_error error;
    size_t merged = 0;
    for (size_t p = 0; (param = cleat_store_param(to->store, p)); ++p) {
        char prefix[CLEAT_NAME], name[CLEAT_NAME + 24];
        float *values = read_values(from, cleat_store_find(from->store, param->name));
        snprintf(prefix, sizeof prefix, "%.*s", (int)(strrchr(param->name, '.') - param->name), param->name);
        snprintf(name, sizeof name, "%s.lora_A.weight", prefix);
        const cleat_tensor *a = cleat_store_find(from->store, name);
        snprintf(name, sizeof name, "%s.lora_B.weight", prefix);
        const cleat_tensor *b = cleat_store_find(from->store, name);
        if (a && strcmp(strrchr(param->name, '.'), ".weight") == 0) {
            const cleat_lora_places places = cleat_lora_places_of(layers, prefix);
            float *a_values = read_values(from, a), *b_values = read_values(from, b);
            assert_int_equal(a->shape[0], b->shape[0] / (param->shape[0] / places.parts) * RANK);
            cleat_lora_merge(&places, RANK, 2.0f, a_values, b_values, param->shape[0], param->shape[1], values);
            cleat_free(a_values);
            cleat_free(b_values);
            ++merged;
        }
        must(cleat_exec_write_unchecked(to->exec, 0, param, values, &error), &error);
        cleat_free(values);
    }
    assert_true(merged >= 2);
}

static void merged_weights_give_the_same_output(void **state) {
    static const char *const layers[] = {"query value", "key", "all-linear", "qkv f1"};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; ++i) {
        session adapted, plain;
        double largest = 0, worst = 0;
        session_open(&adapted, *state, layers[i], 0);
        session_open(&plain, *state, NULL, 0);
        run(&adapted);
        run(&plain);
        float *before = read_values(&plain, plain.built.output), *with = read_values(&adapted, adapted.built.output);
        merge(&adapted, &plain, layers[i]);
        run(&plain);
        float *merged = read_values(&plain, plain.built.output);
        double changed = 0;
        for (int64_t k = 0; k < cleat_tensor_elements(plain.built.output); ++k) {
            largest = fmax(largest, fabs((double)with[k]));
            worst = fmax(worst, fabs((double)with[k] - (double)merged[k]));
            changed = fmax(changed, fabs((double)with[k] - (double)before[k]));
        }
        print_message("%s: merged outputs differ by %.2g of their size; adapters changed %.2g\n", layers[i],
                      worst / largest, changed / largest);
        assert_true(worst < 1e-5 * largest);
        assert_true(changed > 1e-2 * largest);
        cleat_free(before);
        cleat_free(with);
        cleat_free(merged);
        session_close(&adapted);
        session_close(&plain);
    }
}

static int open_shared_device(void **state) {
    *state = open_device();
    return 0;
}

static int close_shared_device(void **state) {
    cleat_device_close(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_choose_layers),
        cmocka_unit_test(names_without_a_layer_are_refused),
        cmocka_unit_test(gradients_are_those_of_the_loss),
        cmocka_unit_test(merged_weights_give_the_same_output),
    };
    return cmocka_run_group_tests(tests, open_shared_device, close_shared_device);
}
