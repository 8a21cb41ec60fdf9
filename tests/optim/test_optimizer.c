/* Training with cleat/optimizer.h: effect of a step, saving and resuming, half precision. */
/* ctest: device quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/optimizer.h"
#include "exec/exec.h"
#include "platform/files.h"

enum { BATCH = 16, WIDTH = 24, CLASSES = 4, TRAIN = 0, PREDICT, UPDATE, GRAPHS, PARAMS = CLASSES * WIDTH + CLASSES };

static cleat_device *device;

/* A linear classifier; `storage`: f32, f16 or bf16. */
typedef struct rig {
    cleat_store *store;
    cleat_graph *graphs[GRAPHS];
    cleat_tensor *x[2], *y, *labels, *loss;
    cleat_optimizer *optimizer;
    cleat_exec *exec;
    uint32_t random;
} rig;

static void ok(cleat_status status, const cleat_error *error) {
    if (status) fail_msg("%s", error->text);
}

static cleat_tensor *classify(cleat_graph *graph, cleat_tensor *x) {
    cleat_tensor *weight =
        cleat_param(graph, "weight", 2, (int64_t[]){CLASSES, WIDTH}, (cleat_init){CLEAT_INIT_NORMAL, 0.1f});
    cleat_tensor *bias = cleat_param(graph, "bias", 1, (int64_t[]){CLASSES}, (cleat_init){CLEAT_INIT_ZERO, 0});
    return cleat_linear(graph, x, weight, bias, NULL);
}

static void build(rig *r, cleat_dtype storage) {
    cleat_error error;
    memset(r, 0, sizeof *r);
    r->random = 1;
    ok(cleat_store_create(&r->store, &error), &error);
    for (int g = TRAIN; g <= PREDICT; ++g) {
        ok(cleat_graph_create(r->store, g == TRAIN ? "train" : "predict", &r->graphs[g], &error), &error);
        if (storage != CLEAT_F32) cleat_autocast(r->graphs[g], storage);
        r->x[g] = cleat_input(r->graphs[g], "x", CLEAT_F32, 2, (int64_t[]){BATCH, WIDTH});
    }
    cleat_tensor *weight = cleat_constant(r->graphs[TRAIN], "mean", 1, (int64_t[]){BATCH}, 1.0f / BATCH);
    r->labels = cleat_input(r->graphs[TRAIN], "labels", CLEAT_I32, 1, (int64_t[]){BATCH});
    r->loss = cleat_cross_entropy(r->graphs[TRAIN], classify(r->graphs[TRAIN], r->x[TRAIN]), r->labels, weight, 0);
    cleat_retain(r->graphs[TRAIN], r->loss);
    cleat_backward(r->graphs[TRAIN], r->loss, NULL);
    r->y = cleat_cast(r->graphs[PREDICT], classify(r->graphs[PREDICT], r->x[PREDICT]), CLEAT_F32);
    cleat_retain(r->graphs[PREDICT], r->y);
}

/* Optimises the built network on the device. */
static void rig_start(rig *r) {
    cleat_error error;
    r->graphs[UPDATE] = cleat_optimizer_graph(r->optimizer);
    ok(cleat_exec_open(device, r->graphs, GRAPHS, &r->exec, &error), &error);
    ok(cleat_exec_initialise(r->exec, 7, &error), &error);
}

static void rig_open_with(rig *r, cleat_dtype storage, const cleat_adamw_spec *spec) {
    cleat_error error;
    build(r, storage);
    ok(cleat_optimizer_create(r->store, spec, &r->optimizer, &error), &error);
    rig_start(r);
}

static void rig_open_sgd(rig *r, cleat_dtype storage, const cleat_sgd_spec *spec) {
    cleat_error error;
    build(r, storage);
    ok(cleat_optimizer_create_sgd(r->store, spec, &r->optimizer, &error), &error);
    rig_start(r);
}

static void rig_open(rig *r, cleat_dtype storage) {
    rig_open_with(r, storage, NULL);
}

static void rig_close(rig *r) {
    cleat_exec_destroy(r->exec);
    cleat_optimizer_destroy(r->optimizer);
    for (int g = TRAIN; g <= PREDICT; ++g) cleat_graph_destroy(r->graphs[g]);
    cleat_store_destroy(r->store);
}

/* The label is the index of the largest of the first CLASSES of WIDTH values. */
static void write_batch(rig *r) {
    float x[BATCH * WIDTH];
    int32_t labels[BATCH];
    cleat_error error;
    for (int i = 0; i < BATCH * WIDTH; ++i) {
        r->random = r->random * 1664525u + 1013904223u;
        x[i] = (float)(r->random >> 8) / 8388608.0f - 1.0f;
    }
    for (int b = 0; b < BATCH; ++b) {
        labels[b] = 0;
        for (int c = 1; c < CLASSES; ++c)
            if (x[b * WIDTH + c] > x[b * WIDTH + labels[b]]) labels[b] = c;
    }
    ok(cleat_exec_write_unchecked(r->exec, TRAIN, r->x[TRAIN], x, &error), &error);
    ok(cleat_exec_write_unchecked(r->exec, TRAIN, r->labels, labels, &error), &error);
}

static void train_at(rig *r, double rate, int steps) {
    cleat_error error;
    for (int i = 0; i < steps; ++i) {
        write_batch(r);
        ok(cleat_exec_run(r->exec, TRAIN, &error), &error);
        ok(cleat_optimizer_step(r->optimizer, r->exec, rate, &error), &error);
    }
}

static void train(rig *r, int steps) {
    train_at(r, 0.02, steps);
}

static float read_loss(rig *r) {
    float loss;
    cleat_error error;
    write_batch(r);
    ok(cleat_exec_run(r->exec, TRAIN, &error), &error);
    ok(cleat_exec_read_unchecked(r->exec, TRAIN, r->loss, &loss, &error), &error);
    return loss;
}

static float read_norm(rig *r) {
    float norm;
    cleat_error error;
    ok(cleat_exec_read_unchecked(r->exec, UPDATE, cleat_optimizer_grad_norm(r->optimizer), &norm, &error), &error);
    return norm;
}

static void read_params(rig *r, float *values) {
    cleat_error error;
    ok(cleat_exec_read_unchecked(r->exec, 0, cleat_store_param(r->store, 0), values, &error), &error);
    ok(cleat_exec_read_unchecked(r->exec, 0, cleat_store_param(r->store, 1), values + CLASSES * WIDTH, &error), &error);
}

static void temporary(char *path, size_t size, const char *name) {
    const char *folder = getenv("TMPDIR");
    snprintf(path, size, "%s/cleat_optimizer_%ld_%s", folder && *folder ? folder : "/tmp", (long)getpid(), name);
}

/* --- a step --- */

static void test_training_reduces_the_loss(void **state) {
    const cleat_dtype types[] = {CLEAT_F32, CLEAT_F16, CLEAT_BF16};
    (void)state;
    for (int i = 0; i < 3; ++i) {
        rig r;
        rig_open(&r, types[i]);
        float before = read_loss(&r);
        train(&r, 150);
        float after = read_loss(&r);
        if (!(after < 0.5f * before)) fail_msg("%s: %g, then %g", cleat_dtype_name(types[i]), before, after);
        rig_close(&r);
    }
}

/* One step from zero moments moves every parameter by the learning rate against the sign of its gradient, if
 * the gradient is well above eps; weight decay subtracts learning rate * weight decay * parameter. */
static void test_the_first_step_is_as_long_as_the_rate(void **state) {
    float before[PARAMS], after[PARAMS], grads[PARAMS];
    cleat_adamw_spec spec = cleat_adamw_defaults();
    cleat_error error;
    rig r;
    (void)state;
    spec.weight_decay = 0.1f;
    rig_open_with(&r, CLEAT_F32, &spec);
    read_params(&r, before);
    write_batch(&r);
    ok(cleat_exec_run(r.exec, TRAIN, &error), &error);
    ok(cleat_exec_read_unchecked(r.exec, 0, cleat_store_grad(r.store, 0), grads, &error), &error);
    ok(cleat_exec_read_unchecked(r.exec, 0, cleat_store_grad(r.store, 1), grads + CLASSES * WIDTH, &error), &error);
    ok(cleat_optimizer_step(r.optimizer, r.exec, 0.01, &error), &error);
    read_params(&r, after);
    double squares = 0;
    for (int i = 0; i < PARAMS; ++i) {
        squares += (double)grads[i] * grads[i];
        if (fabsf(grads[i]) < 1e-4f) continue;
        double expected = before[i] * (1 - 0.01 * 0.1) - 0.01 * (grads[i] > 0 ? 1 : -1);
        if (!(fabs(after[i] - expected) < 1e-5)) fail_msg("parameter %d: %g, not %g", i, after[i], expected);
    }
    assert_true(fabs(read_norm(&r) - sqrt(squares)) < 1e-5 * sqrt(squares));
    ok(cleat_exec_read_unchecked(r.exec, 0, cleat_store_grad(r.store, 0), grads, &error), &error);
    for (int i = 0; i < CLASSES * WIDTH; ++i) assert_true(grads[i] == 0.0f);
    rig_close(&r);
}

/* Two runs before a step count a batch twice, so the norm doubles. */
static void test_gradients_of_several_runs_add_up(void **state) {
    cleat_error error;
    rig r;
    float norms[2];
    (void)state;
    for (int runs = 1; runs <= 2; ++runs) {
        rig_open(&r, CLEAT_F32);
        write_batch(&r);
        for (int i = 0; i < runs; ++i) ok(cleat_exec_run(r.exec, TRAIN, &error), &error);
        ok(cleat_optimizer_step(r.optimizer, r.exec, 0.01, &error), &error);
        norms[runs - 1] = read_norm(&r);
        rig_close(&r);
    }
    assert_true(fabsf(norms[1] - 2 * norms[0]) < 1e-5f * norms[1]);
}

/* --- f16 --- */

static void test_an_overflow_in_f16_moves_nothing_and_halves_the_scale(void **state) {
    float before[PARAMS], after[PARAMS], scale;
    cleat_error error;
    rig r;
    (void)state;
    rig_open(&r, CLEAT_F16);
    const cleat_tensor *loss_scale = cleat_loss_scale_state(r.graphs[TRAIN]);
    ok(cleat_exec_read_unchecked(r.exec, 0, loss_scale, &scale, &error), &error);
    assert_true(scale == 65536.0f);
    train(&r, 3);
    read_params(&r, before);
    scale = 16777216.0f; /* the gradient of a logit is up to a 16th of it and exceeds the range of f16 */
    ok(cleat_exec_write_unchecked(r.exec, 0, loss_scale, &scale, &error), &error);
    write_batch(&r);
    ok(cleat_exec_run(r.exec, TRAIN, &error), &error);
    ok(cleat_optimizer_step(r.optimizer, r.exec, 0.02, &error), &error);
    assert_false(isfinite(read_norm(&r)));
    read_params(&r, after);
    assert_memory_equal(before, after, sizeof before);
    ok(cleat_exec_read_unchecked(r.exec, 0, loss_scale, &scale, &error), &error);
    assert_true(scale == 8388608.0f);
    train(&r, 10);
    read_params(&r, after);
    assert_true(memcmp(before, after, sizeof before) != 0);
    rig_close(&r);
}

/* The graph uses the parameters that the host has written, also in half precision. */
static void test_written_parameters_are_computed_with(void **state) {
    const cleat_dtype types[] = {CLEAT_F32, CLEAT_F16, CLEAT_BF16};
    float weight[CLASSES * WIDTH], x[BATCH * WIDTH], y[BATCH * CLASSES];
    cleat_error error;
    rig r;
    (void)state;
    for (int i = 0; i < CLASSES * WIDTH; ++i) weight[i] = (float)(i % 5) * 0.25f; /* exact in every type */
    for (int i = 0; i < BATCH * WIDTH; ++i) x[i] = 1.0f;
    for (int t = 0; t < 3; ++t) {
        rig_open(&r, types[t]);
        ok(cleat_exec_write_unchecked(r.exec, 0, cleat_store_find(r.store, "weight"), weight, &error), &error);
        ok(cleat_exec_write_unchecked(r.exec, PREDICT, r.x[PREDICT], x, &error), &error);
        ok(cleat_exec_run(r.exec, PREDICT, &error), &error);
        ok(cleat_exec_read_unchecked(r.exec, PREDICT, r.y, y, &error), &error);
        for (int i = 0; i < BATCH * CLASSES; ++i) {
            float expected = 0;
            for (int k = 0; k < WIDTH; ++k) expected += weight[i % CLASSES * WIDTH + k];
            assert_true(fabsf(y[i] - expected) <= expected / 256);
        }
        rig_close(&r);
    }
}

/* --- files --- */

static void test_saved_and_loaded_training_goes_on_with_the_same_bits(void **state) {
    const cleat_dtype types[] = {CLEAT_F32, CLEAT_F16, CLEAT_BF16};
    char params[512], moments[512];
    float straight[PARAMS], resumed[PARAMS];
    cleat_error error;
    rig r;
    (void)state;
    temporary(params, sizeof params, "params");
    temporary(moments, sizeof moments, "moments");
    for (int t = 0; t < 3; ++t) {
        rig_open(&r, types[t]);
        train(&r, 5);
        uint32_t random = r.random;
        ok(cleat_exec_save(r.exec, params, &error), &error);
        ok(cleat_optimizer_save(r.optimizer, r.exec, moments, &error), &error);
        train(&r, 5);
        read_params(&r, straight);
        rig_close(&r);
        rig_open(&r, types[t]);
        train(&r, 2);
        ok(cleat_exec_load(r.exec, params, &error), &error);
        ok(cleat_optimizer_load(r.optimizer, r.exec, moments, &error), &error);
        r.random = random;
        train(&r, 5);
        read_params(&r, resumed);
        assert_memory_equal(straight, resumed, sizeof straight);
        rig_close(&r);
    }
    unlink(params);
    unlink(moments);
}

static void test_files_of_another_kind_are_refused(void **state) {
    char params[512], moments[512];
    float before[PARAMS], after[PARAMS];
    cleat_error error;
    rig r;
    (void)state;
    temporary(params, sizeof params, "params");
    temporary(moments, sizeof moments, "moments");
    rig_open(&r, CLEAT_F32);
    train(&r, 1);
    read_params(&r, before);
    ok(cleat_exec_save(r.exec, params, &error), &error);
    ok(cleat_optimizer_save(r.optimizer, r.exec, moments, &error), &error);
    assert_int_equal(cleat_exec_load(r.exec, moments, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "'weight'"));
    assert_int_equal(cleat_optimizer_load(r.optimizer, r.exec, params, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "'steps' is missing"));
    assert_int_equal(cleat_exec_load(r.exec, "/no/such/file", &error), CLEAT_ERR_NOT_FOUND);
    read_params(&r, after);
    assert_memory_equal(before, after, sizeof before);
    rig_close(&r);
    unlink(params);
    unlink(moments);
}

/* --- SGD --- */

static const cleat_sgd_spec sgd_specs[] = {
    {0}, {.momentum = 0.9f}, {.momentum = 0.9f, .nesterov = true, .weight_decay = 1e-4f, .max_norm = 1}};

enum { SGD_SPECS = sizeof sgd_specs / sizeof *sgd_specs };

static void test_sgd_reduces_the_loss(void **state) {
    const cleat_dtype types[] = {CLEAT_F32, CLEAT_F16, CLEAT_BF16};
    (void)state;
    for (int i = 0; i < SGD_SPECS * 3; ++i) {
        const cleat_sgd_spec *spec = &sgd_specs[i / 3];
        rig r;
        rig_open_sgd(&r, types[i % 3], spec);
        float before = read_loss(&r);
        train_at(&r, spec->momentum > 0 ? 0.2 : 1.0, 150);
        float after = read_loss(&r);
        if (!(after < 0.5f * before)) fail_msg("%s: %g, then %g", cleat_dtype_name(types[i % 3]), before, after);
        rig_close(&r);
    }
}

/* NULL: plain gradient descent, p - rate * gradient. */
static void test_sgd_without_settings_follows_the_gradient(void **state) {
    float before[PARAMS], after[PARAMS], grads[PARAMS];
    cleat_error error;
    rig r;
    (void)state;
    rig_open_sgd(&r, CLEAT_F32, NULL);
    read_params(&r, before);
    write_batch(&r);
    ok(cleat_exec_run(r.exec, TRAIN, &error), &error);
    ok(cleat_exec_read_unchecked(r.exec, 0, cleat_store_grad(r.store, 0), grads, &error), &error);
    ok(cleat_exec_read_unchecked(r.exec, 0, cleat_store_grad(r.store, 1), grads + CLASSES * WIDTH, &error), &error);
    ok(cleat_optimizer_step(r.optimizer, r.exec, 0.5, &error), &error);
    read_params(&r, after);
    for (int i = 0; i < PARAMS; ++i) {
        assert_true(grads[i] != 0);
        assert_true(fabsf(after[i] - (before[i] - 0.5f * grads[i])) < 1e-6f);
    }
    rig_close(&r);
}

static void test_saved_sgd_goes_on_with_the_same_bits(void **state) {
    char params[512], moments[512];
    float straight[PARAMS], resumed[PARAMS];
    cleat_error error;
    rig r;
    (void)state;
    temporary(params, sizeof params, "sgd_params");
    temporary(moments, sizeof moments, "sgd_moments");
    for (int i = 0; i < SGD_SPECS * 2; ++i) {
        const cleat_dtype storage = i % 2 ? CLEAT_F16 : CLEAT_F32;
        rig_open_sgd(&r, storage, &sgd_specs[i / 2]);
        train(&r, 5);
        uint32_t random = r.random;
        ok(cleat_exec_save(r.exec, params, &error), &error);
        ok(cleat_optimizer_save(r.optimizer, r.exec, moments, &error), &error);
        train(&r, 5);
        read_params(&r, straight);
        rig_close(&r);
        rig_open_sgd(&r, storage, &sgd_specs[i / 2]);
        train(&r, 2);
        ok(cleat_exec_load(r.exec, params, &error), &error);
        ok(cleat_optimizer_load(r.optimizer, r.exec, moments, &error), &error);
        r.random = random;
        train(&r, 5);
        read_params(&r, resumed);
        assert_memory_equal(straight, resumed, sizeof straight);
        rig_close(&r);
    }
    unlink(params);
    unlink(moments);
}

static void test_state_of_another_optimizer_is_refused(void **state) {
    char sgd[512], adamw[512];
    cleat_error error;
    rig r;
    (void)state;
    temporary(sgd, sizeof sgd, "of_sgd");
    temporary(adamw, sizeof adamw, "of_adamw");
    rig_open(&r, CLEAT_F32);
    ok(cleat_optimizer_save(r.optimizer, r.exec, adamw, &error), &error);
    rig_close(&r);
    rig_open_sgd(&r, CLEAT_F32, &sgd_specs[1]);
    ok(cleat_optimizer_save(r.optimizer, r.exec, sgd, &error), &error);
    assert_int_equal(cleat_optimizer_load(r.optimizer, r.exec, adamw, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, ".moment2"));
    rig_close(&r);
    rig_open(&r, CLEAT_F32);
    assert_int_equal(cleat_optimizer_load(r.optimizer, r.exec, sgd, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, ".moment2"));
    rig_close(&r);
    unlink(sgd);
    unlink(adamw);
}

/* --- arguments --- */

static void test_bad_settings_of_sgd_are_named(void **state) {
    const struct {
        const char *says;
        cleat_sgd_spec spec;
    } cases[] = {{"momentum is 1", {.momentum = 1}},
                 {"SGD: momentum is nan", {.momentum = NAN}},
                 {"above 0 for nesterov", {.nesterov = true}},
                 {"weight_decay", {.weight_decay = -1}},
                 {"max_norm", {.max_norm = INFINITY}}};
    cleat_optimizer *optimizer = NULL;
    cleat_error error;
    rig r;
    (void)state;
    build(&r, CLEAT_F32);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        assert_int_equal(cleat_optimizer_create_sgd(r.store, &cases[i].spec, &optimizer, &error), CLEAT_ERR_ARGUMENT);
        if (!strstr(error.text, cases[i].says)) fail_msg("%s", error.text);
        assert_null(optimizer);
    }
    rig_close(&r);
}

static void test_bad_settings_are_named(void **state) {
    const struct {
        const char *name;
        cleat_adamw_spec spec;
    } cases[] = {
        {"beta1", {1.0f, 0.999f, 1e-8f, 0, 0}},     {"beta2", {0.9f, -0.1f, 1e-8f, 0, 0}},
        {"eps", {0.9f, 0.999f, 0, 0, 0}},           {"weight_decay", {0.9f, 0.999f, 1e-8f, NAN, 0}},
        {"max_norm", {0.9f, 0.999f, 1e-8f, 0, -1}},
    };
    cleat_optimizer *optimizer = NULL;
    cleat_error error;
    rig r;
    (void)state;
    build(&r, CLEAT_F32);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        assert_int_equal(cleat_optimizer_create(r.store, &cases[i].spec, &optimizer, &error), CLEAT_ERR_ARGUMENT);
        assert_non_null(strstr(error.text, cases[i].name));
        assert_null(optimizer);
    }
    rig_close(&r);
}

static void test_an_empty_store_has_nothing_to_optimise(void **state) {
    cleat_store *store = NULL;
    cleat_optimizer *optimizer = NULL;
    cleat_error error;
    (void)state;
    ok(cleat_store_create(&store, &error), &error);
    assert_int_equal(cleat_optimizer_create(store, NULL, &optimizer, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "without parameters"));
    cleat_store_destroy(store);
}

static void test_a_plan_without_the_optimizer_is_refused(void **state) {
    cleat_exec *exec = NULL;
    cleat_error error;
    rig r;
    (void)state;
    rig_open(&r, CLEAT_F32);
    ok(cleat_exec_open(device, r.graphs, UPDATE, &exec, &error), &error);
    assert_int_equal(cleat_optimizer_step(r.optimizer, exec, 0.1, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "cleat_plan_create"));
    cleat_exec_destroy(exec);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training_reduces_the_loss),
        cmocka_unit_test(test_the_first_step_is_as_long_as_the_rate),
        cmocka_unit_test(test_gradients_of_several_runs_add_up),
        cmocka_unit_test(test_an_overflow_in_f16_moves_nothing_and_halves_the_scale),
        cmocka_unit_test(test_written_parameters_are_computed_with),
        cmocka_unit_test(test_saved_and_loaded_training_goes_on_with_the_same_bits),
        cmocka_unit_test(test_files_of_another_kind_are_refused),
        cmocka_unit_test(test_sgd_reduces_the_loss),
        cmocka_unit_test(test_sgd_without_settings_follows_the_gradient),
        cmocka_unit_test(test_saved_sgd_goes_on_with_the_same_bits),
        cmocka_unit_test(test_state_of_another_optimizer_is_refused),
        cmocka_unit_test(test_bad_settings_of_sgd_are_named),
        cmocka_unit_test(test_bad_settings_are_named),
        cmocka_unit_test(test_an_empty_store_has_nothing_to_optimise),
        cmocka_unit_test(test_a_plan_without_the_optimizer_is_refused),
    };
    cleat_error error;
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    cleat_status status = cleat_device_open(selector ? selector : "auto", &device, &error);
    if (status) {
        fprintf(stderr, "%s\n", error.text);
        return status == CLEAT_ERR_NO_DEVICE ? 77 : 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failed;
}
