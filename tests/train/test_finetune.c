/* Training of a part of a network: learning rates by depth, frozen parameters, resumed runs. */
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

#include "core/half.h"
#include "core/memory.h"
#include "core/safetensors.h"
#include "tiny.h"

/* Three blocks; the head does not start with zeros, which would block all gradients in the first step. */
#define NETWORK                                                                                                        \
    "model.layers=3", "model.head=absolute", "loss.coordinate=1", "model.dropout=0", "data.limit=12",                  \
        "data.buckets=32", "data.max_length=32", "run.evaluate_every_epochs=none"
/* Without warm-up, clipping, decay and averaging, the first AdamW step moves every parameter by the learning rate. */
#define ONE_STEP                                                                                                       \
    NETWORK, "train.warmup_steps=0", "train.schedule=constant", "train.weight_decay=0", "train.average_decay=none",    \
        "train.max_grad_norm=1e9", "train.precision=f32"

static cleat_safetensors *open_last(const tiny *t, const char *run, const char *file) {
    char path[TINY_PATH];
    cleat_safetensors *opened = NULL;
    assert_int_equal(cleat_safetensors_open(tiny_last_file(t, run, file, path), &opened, NULL), CLEAT_OK);
    return opened;
}

static int depth_of(const char *param) {
    if (strncmp(param, "blocks.", 7) == 0) return 1 + atoi(param + 7);
    if (strncmp(param, "norm.", 5) == 0) return 3;
    return strncmp(param, "head.", 5) == 0 ? 4 : 0;
}

/* Largest and smallest change of each depth between the models of two runs. */
typedef struct changes {
    double most[5], least[5];
} changes;

static changes find_changes(const tiny *t, const char *a, const char *b) {
    changes found = {.least = {1, 1, 1, 1, 1}};
    cleat_safetensors *x = open_last(t, a, "model.safetensors"), *y = open_last(t, b, "model.safetensors");
    for (size_t i = 0; i < cleat_safetensors_count(x); ++i) {
        const cleat_st_tensor *p = cleat_safetensors_at(x, i), *q = cleat_safetensors_find(y, p->name);
        assert_non_null(q);
        const int depth = depth_of(p->name);
        double most = 0;
        for (int64_t k = 0; k < cleat_st_elements(p); ++k)
            most = fmax(most, fabs((double)((const float *)p->data)[k] - (double)((const float *)q->data)[k]));
        found.most[depth] = fmax(found.most[depth], most);
        found.least[depth] = fmin(found.least[depth], most);
    }
    cleat_safetensors_close(x);
    cleat_safetensors_close(y);
    return found;
}

static void near(double value, double wanted) {
    if (!(fabs(value / wanted - 1) < 1e-3)) fail_msg("%g instead of %g", value, wanted);
}

static void rates_follow_the_depth(void **state) {
    const tiny *t = *state;
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "start", SET(ONE_STEP, "train.learning_rate=1e-12"), false, 1);
    tiny_train_to(
        CLEAT_ERR_INTERRUPTED, t, "decayed",
        SET(ONE_STEP, "train.learning_rate=1e-2", "train.layer_decay=0.5", "train.backbone_learning_rate=4e-3"), false,
        1);
    const changes found = find_changes(t, "start", "decayed");
    near(found.most[4], 1e-2);
    for (int depth = 0; depth < 4; ++depth) near(found.most[depth], 4e-3 * pow(0.5, 4 - depth));
}

/* Moments exist for trained parameters only. */
static void assert_moments(const tiny *t, const char *run, int first_depth) {
    cleat_safetensors *optim = open_last(t, run, "optim.safetensors"), *model = open_last(t, run, "model.safetensors");
    for (size_t i = 0; i < cleat_safetensors_count(model); ++i) {
        char name[256];
        const char *param = cleat_safetensors_at(model, i)->name;
        snprintf(name, sizeof name, "%s.moment1", param);
        assert_int_equal(cleat_safetensors_find(optim, name) != NULL, depth_of(param) >= first_depth);
    }
    cleat_safetensors_close(optim);
    cleat_safetensors_close(model);
}

static void frozen_parameters_keep_their_bits(void **state) {
    static const struct {
        const char *name, *set;
        int first_depth;
    } cases[] = {{"embeddings", "train.freeze=embeddings", 1},
                 {"two", "train.freeze=2", 3},
                 {"backbone", "train.freeze=backbone", 4}};
    const tiny *t = *state;
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "initial", SET(ONE_STEP, "train.learning_rate=1e-12"), false, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        tiny_train_to(CLEAT_OK, t, cases[i].name,
                      SET(NETWORK, "train.precision=f32", "train.average_decay=none", cases[i].set), false, 0);
        const changes found = find_changes(t, "initial", cases[i].name);
        for (int depth = 0; depth < 5; ++depth) {
            if (depth < cases[i].first_depth)
                assert_true(found.most[depth] <= 1e-11); /* the first run moves by its learning rate */
            else
                assert_true(found.least[depth] > 1e-3);
        }
        assert_moments(t, cases[i].name, cases[i].first_depth);
    }
}

/* Freezing the backbone up to its last block trains as a learning rate of nearly 0 for it does. */
static void frozen_blocks_change_nothing_else(void **state) {
    const tiny *t = *state;
    const char *const still[] = {NETWORK,
                                 "train.precision=f32",
                                 "train.weight_decay=0",
                                 "train.max_grad_norm=none",
                                 "train.backbone_learning_rate=1e-12",
                                 "train.average_decay=none",
                                 NULL};
    const char *const frozen[] = {NETWORK,
                                  "train.precision=f32",
                                  "train.weight_decay=0",
                                  "train.max_grad_norm=none",
                                  "train.freeze=3",
                                  "train.average_decay=none",
                                  NULL};
    tiny_train_to(CLEAT_OK, t, "still", still, false, 0);
    tiny_train_to(CLEAT_OK, t, "frozen", frozen, false, 0);
    const changes found = find_changes(t, "still", "frozen");
    for (int depth = 0; depth < 5; ++depth) assert_true(found.most[depth] < 1e-6);
}

/* Frozen matrices have the values of the device's halves. */
static void assert_halves(const tiny *t, const char *run, bool f16) {
    cleat_safetensors *model = open_last(t, run, "model.safetensors");
    const cleat_st_tensor *weight = cleat_safetensors_find(model, "blocks.0.f1.weight");
    const cleat_st_tensor *gamma = cleat_safetensors_find(model, "blocks.0.n1.weight");
    assert_non_null(weight);
    assert_non_null(gamma);
    for (int64_t k = 0; k < cleat_st_elements(weight); ++k) {
        const float value = ((const float *)weight->data)[k];
        uint16_t bits;
        float back;
        (f16 ? cleat_to_f16 : cleat_to_bf16)(&value, 1, &bits);
        (f16 ? cleat_from_f16 : cleat_from_bf16)(&bits, 1, &back);
        assert_true(value == back);
    }
    cleat_safetensors_close(model);
}

static void interrupted_runs_give_the_same_bits(void **state) {
    static const char *const precisions[] = {"train.precision=f32", "train.precision=f16", "train.precision=bf16"};
    const tiny *t = *state;
    for (int i = 0; i < 3; ++i) {
        char whole[16], parts[16];
        const char *const set[] = {NETWORK,
                                   "train.freeze=2",
                                   "train.layer_decay=0.7",
                                   "train.decay_norm_bias=false",
                                   "train.schedule=linear",
                                   precisions[i],
                                   NULL};
        snprintf(whole, sizeof whole, "whole%d", i);
        snprintf(parts, sizeof parts, "parts%d", i);
        tiny_train_to(CLEAT_OK, t, whole, set, false, 0);
        tiny_train_to(CLEAT_ERR_INTERRUPTED, t, parts, set, false, 1);
        tiny_train_to(CLEAT_ERR_INTERRUPTED, t, parts, set, true, 1);
        tiny_train_to(CLEAT_OK, t, parts, set, true, 0);
        tiny_assert_same_run(t, whole, parts);
        if (i > 0) assert_halves(t, whole, i == 1);
    }
}

static bool is_adapter(const char *param) {
    return strstr(param, ".lora_") != NULL;
}

/* Adapters and the head move, the rest keeps its bits: with dropout, in every precision, after interruptions. */
static void adapters_are_trained_alone(void **state) {
    static const char *const precisions[] = {"train.precision=f32", "train.precision=f16", "train.precision=bf16"};
    const tiny *t = *state;
    for (int i = 0; i < 3; ++i) {
        char whole[16], parts[16], first[16];
        const char *const set[] = {NETWORK,
                                   "train.average_decay=none",
                                   "train.lora_rank=4",
                                   "train.lora_layers=query value f1",
                                   "train.lora_dropout=0.1",
                                   "run.evaluate_every_epochs=1",
                                   precisions[i],
                                   NULL};
        snprintf(whole, sizeof whole, "lora%d", i);
        snprintf(parts, sizeof parts, "lora_parts%d", i);
        snprintf(first, sizeof first, "lora_first%d", i);
        tiny_train_to(CLEAT_OK, t, whole, set, false, 0);
        tiny_train_to(CLEAT_ERR_INTERRUPTED, t, first, set, false, 1);
        tiny_train_to(CLEAT_ERR_INTERRUPTED, t, parts, set, false, 1);
        tiny_train_to(CLEAT_OK, t, parts, set, true, 0);
        tiny_assert_same_run(t, whole, parts);
        cleat_safetensors *a = open_last(t, first, "model.safetensors"), *b = open_last(t, whole, "model.safetensors");
        cleat_safetensors *optim = open_last(t, whole, "optim.safetensors");
        int adapters = 0;
        for (size_t k = 0; k < cleat_safetensors_count(a); ++k) {
            const cleat_st_tensor *p = cleat_safetensors_at(a, k), *q = cleat_safetensors_find(b, p->name);
            const bool trained = is_adapter(p->name) || depth_of(p->name) == 4;
            char name[256];
            snprintf(name, sizeof name, "%s.moment2", p->name);
            assert_int_equal(cleat_safetensors_find(optim, name) != NULL, trained);
            assert_int_equal(memcmp(p->data, q->data, (size_t)cleat_st_elements(p) * sizeof(float)) != 0, trained);
            adapters += is_adapter(p->name);
        }
        assert_int_equal(adapters, 3 * 2 * 2);
        cleat_safetensors_close(a);
        cleat_safetensors_close(b);
        cleat_safetensors_close(optim);
    }
}

/* Number of different values among the first 64 of a parameter in the last checkpoint. */
static int count_values(const tiny *t, const char *run, const char *name) {
    cleat_safetensors *file = open_last(t, run, "model.safetensors");
    const cleat_st_tensor *found = cleat_safetensors_find(file, name);
    assert_non_null(found);
    float seen[64];
    int count = 0;
    for (int i = 0; i < 64; ++i) {
        const float value = ((const float *)found->data)[i];
        int k = 0;
        while (k < count && (seen[k] < value || seen[k] > value)) ++k;
        if (k == count) seen[count++] = value;
    }
    cleat_safetensors_close(file);
    return count;
}

/* Frozen weights in 8 and 4 bits keep their bits after interruptions, also where averages are written to the device
 * and back. */
static void frozen_weights_may_be_blocks(void **state) {
    static const struct {
        const char *type, *precision, *average;
    } cases[] = {
        {"train.frozen_weights=q8", "train.precision=f32", "train.average_decay=none"},
        {"train.frozen_weights=nf4", "train.precision=f32", "train.average_decay=0.5"},
        {"train.frozen_weights=nf4", "train.precision=f16", "train.average_decay=none"},
        {"train.frozen_weights=q4", "train.precision=f32", "train.average_decay=none"},
        {"train.frozen_weights=f16 blocks.*.att.qkv=q4", "train.precision=f32", "train.average_decay=0.5"},
    };
    const tiny *t = *state;
    for (int i = 0; i < 5; ++i) {
        char whole[24], parts[24];
        const char *const set[] = {NETWORK,
                                   "model.d_model=64",
                                   "train.lora_rank=4",
                                   "train.lora_layers=query value f1",
                                   "run.evaluate_every_epochs=1",
                                   cases[i].type,
                                   cases[i].precision,
                                   cases[i].average,
                                   NULL};
        snprintf(whole, sizeof whole, "blocks%d", i);
        snprintf(parts, sizeof parts, "blocks_parts%d", i);
        tiny_train_to(CLEAT_OK, t, whole, set, false, 0);
        tiny_train_to(CLEAT_ERR_INTERRUPTED, t, parts, set, false, 1);
        tiny_train_to(CLEAT_ERR_INTERRUPTED, t, parts, set, true, 1);
        tiny_train_to(CLEAT_OK, t, parts, set, true, 0);
        tiny_assert_same_run(t, whole, parts);
        const int values = count_values(t, whole, "blocks.0.att.qkv.weight"); /* of 64 */
        assert_in_range(values, i == 0 || i > 2 ? 17 : 8, i == 0 ? 64 : i > 2 ? 32 : 16);
        cleat_safetensors *model = open_last(t, whole, "model.safetensors");
        assert_true(cleat_safetensors_find(model, "blocks.0.att.qkv.weight")->blocks != CLEAT_F32);
        assert_true(cleat_safetensors_find(model, "blocks.0.n1.weight")->blocks == CLEAT_F32);
        cleat_safetensors_close(model);
    }
}

/* The checks of every tensor change nothing and find no anomaly. */
static void finite_checks_know_frozen_parameters(void **state) {
    static const char *const settings[] = {"train.freeze=2", "train.lora_rank=4"};
    const tiny *t = *state;
    for (int i = 0; i < 2; ++i) {
        char plain[16], checked[16];
        snprintf(plain, sizeof plain, "plain%d", i);
        snprintf(checked, sizeof checked, "checked%d", i);
        tiny_train_to(CLEAT_ERR_INTERRUPTED, t, plain, SET(NETWORK, "train.precision=f16", settings[i]), false, 1);
        tiny_train_to(CLEAT_ERR_INTERRUPTED, t, checked,
                      SET(NETWORK, "train.precision=f16", "run.check_finite=true", settings[i]), false, 1);
        tiny_assert_same_run(t, plain, checked);
    }
}

static void impossible_requests_are_refused(void **state) {
    const tiny *t = *state;
    tiny_result result = tiny_train(t, "deep", SET(NETWORK, "train.freeze=4"), false, 0);
    assert_int_equal(result.status, CLEAT_ERR_PROFILE);
    assert_non_null(strstr(result.error.text, "3 blocks"));
    result = tiny_train(t, "queries", SET(NETWORK, "train.lora_rank=4", "train.lora_layers=queries"), false, 0);
    assert_int_equal(result.status, CLEAT_ERR_PROFILE);
    assert_non_null(strstr(result.error.text, "lora_layers = queries"));
    cleat_profile *profile = tiny_profile(t, NULL);
    assert_int_equal(cleat_profile_set(profile, "train.freeze=1", NULL), CLEAT_OK);
    assert_int_equal(cleat_profile_set(profile, "train.lora_rank=4", NULL), CLEAT_OK);
    assert_int_equal(cleat_profile_check(profile, &result.error), CLEAT_ERR_PROFILE);
    assert_int_equal(cleat_profile_set(profile, "train.freeze=all", NULL), CLEAT_OK);
    assert_int_equal(cleat_profile_check(profile, &result.error), CLEAT_ERR_PROFILE);
    assert_non_null(strstr(result.error.text, "freeze"));
    cleat_profile_destroy(profile);
    profile = tiny_profile(t, NULL);
    assert_int_equal(cleat_profile_set(profile, "train.frozen_weights=q8", NULL), CLEAT_OK);
    assert_int_equal(cleat_profile_check(profile, &result.error), CLEAT_ERR_PROFILE);
    assert_non_null(strstr(result.error.text, "no weight is frozen"));
    assert_int_equal(cleat_profile_set(profile, "train.lora_rank=4", NULL), CLEAT_OK);
    assert_int_equal(cleat_profile_check(profile, NULL), CLEAT_OK);
    static const char *const bad[] = {"q5", "q4 emb", "q4 emb=", "q4 emb=q3", "emb=q4", "q4 a=q8 b", "q4emb=q8"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        char assignment[64];
        snprintf(assignment, sizeof assignment, "train.frozen_weights=%s", bad[i]);
        assert_int_equal(cleat_profile_set(profile, assignment, NULL), CLEAT_OK);
        assert_int_equal(cleat_profile_check(profile, &result.error), CLEAT_ERR_PROFILE);
        assert_non_null(strstr(result.error.text, "NAME=FORM"));
    }
    cleat_profile_destroy(profile);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_follow_the_depth),
        cmocka_unit_test(frozen_parameters_keep_their_bits),
        cmocka_unit_test(frozen_blocks_change_nothing_else),
        cmocka_unit_test(interrupted_runs_give_the_same_bits),
        cmocka_unit_test(adapters_are_trained_alone),
        cmocka_unit_test(frozen_weights_may_be_blocks),
        cmocka_unit_test(finite_checks_know_frozen_parameters),
        cmocka_unit_test(impossible_requests_are_refused),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
