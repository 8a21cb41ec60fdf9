/* The check of a run's own programs passes for correct programs and changes no bit of the run; it rejects a
 * changed kernel with the name of its operation. */
/* ctest: device slow */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/verify.h"
#include "core/files.h"
#include "core/memory.h"
#include "platform/processes.h"
#include "source_path.h"
#include "train/tiny.h"

/* All terms of the loss, to run every kernel of the family. */
#define EVERY_TERM                                                                                                     \
    "loss.pair_distance=1", "loss.lddt=1", "loss.frame=1", "loss.handedness=1", "loss.bond_length=1",                  \
        "loss.bond_angle=1", "loss.clash=1", "loss.base_pair=1", "train.max_grad_norm=1", "model.positions=both_ends"

/* A separate cache without earlier results. */
static void use_new_cache(const tiny *t, const char *name) {
    char cache[TINY_PATH];
    setenv("CLEAT_CACHE_DIR", tiny_path(t, name, cache), 1);
}

static size_t records(const tiny *t, const char *name) {
    cleat_name_list files = {0};
    char folder[2 * TINY_PATH], cache[TINY_PATH];
    snprintf(folder, sizeof folder, "%s/checked", tiny_path(t, name, cache));
    if (!cleat_folder_exists(folder)) return 0;
    assert_int_equal(cleat_listing_read(folder, NULL, &files, NULL), CLEAT_OK);
    const size_t count = files.count;
    cleat_name_list_free(&files);
    return count;
}

static void evaluate(const tiny *t, const char *run, const cleat_profile *profile, cleat_status expected,
                     cleat_error *error) {
    cleat_metrics metrics;
    cleat_error own;
    char path[TINY_PATH];
    if (!error) error = &own;
    const cleat_status status = cleat_evaluate(profile, tiny_path(t, run, path), "val", &metrics, error);
    if (status != expected) fail_msg("%s", status ? error->text : "the evaluation succeeded");
}

/* --- correct programs ----------------------------------------------------------------------------------------- */

static void a_run_is_checked_and_has_the_same_bits(void **state) {
    const tiny *t = *state;
    static const char *const precisions[] = {"train.precision=f32", "train.precision=f16", "train.precision=bf16"};
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; ++i) {
        char plain[32], checked[32], cache[32];
        snprintf(plain, sizeof plain, "plain%zu", i);
        snprintf(checked, sizeof checked, "checked%zu", i);
        snprintf(cache, sizeof cache, "cache%zu", i);
        use_new_cache(t, cache);
        tiny_train_to(CLEAT_OK, t, plain, SET(precisions[i], "run.self_check=never"), false, 0);
        assert_int_equal(records(t, cache), 0);
        tiny_train_to(CLEAT_OK, t, checked, SET(precisions[i], "run.self_check=once"), false, 0);
        assert_true(records(t, cache) >= 3); /* a training graph, the update, the model type */
        tiny_assert_same_run(t, plain, checked);
    }
}

/* A second run of the same programs checks nothing, nor does an evaluation with the programs of a training. */
static void a_passed_check_is_remembered(void **state) {
    const tiny *t = *state;
    cleat_device *device = NULL;
    cleat_profile *profile = tiny_profile(t, SET("run.self_check=once"));
    use_new_cache(t, "remembered");
    tiny_train_to(CLEAT_OK, t, "first", SET("run.self_check=once"), false, 0);
    const size_t count = records(t, "remembered");
    assert_int_equal(cleat_device_open(profile->run.device, &device, NULL), CLEAT_OK);
    assert_true(cleat_self_check_passed(device, profile));
    cleat_device_close(device);
    evaluate(t, "first", profile, CLEAT_OK, NULL);
    assert_int_equal(records(t, "remembered"), count);
    cleat_profile_destroy(profile);
    tiny_train_to(CLEAT_OK, t, "second", SET("run.self_check=once"), false, 0);
    assert_int_equal(records(t, "remembered"), count);
    tiny_train_to(CLEAT_OK, t, "wider", SET("run.self_check=once", "model.d_model=24"), false, 0);
    assert_true(records(t, "remembered") > count);
}

/* --- changed kernels ------------------------------------------------------------------------------------------ */

typedef struct mutant {
    const char *file, *from, *to, *op;
} mutant;

/* Reads kernels from a folder that holds cl/FILE with the first `from` replaced. */
static void use_mutant(const tiny *t, const mutant *m, size_t number) {
    char source[TINY_PATH], folder[TINY_PATH], path[2 * TINY_PATH];
    size_t size;
    snprintf(source, sizeof source, "%s/%s", source_path("cl"), m->file);
    char *text = tiny_read(source, &size), *at = strstr(text, m->from);
    if (!at) fail_msg("cl/%s has no '%s'", m->file, m->from);
    char *changed = calloc(size + strlen(m->to) + 1, 1);
    assert_non_null(changed);
    sprintf(changed, "%.*s%s%s", (int)(at - text), text, m->to, at + strlen(m->from));
    snprintf(folder, sizeof folder, "%s/mutant%zu", t->folder, number);
    snprintf(path, sizeof path, "%s/%s", folder, m->file);
    *strrchr(path, '/') = 0;
    assert_int_equal(cleat_folder_make(path, NULL), CLEAT_OK);
    snprintf(path, sizeof path, "%s/%s", folder, m->file);
    tiny_write(path, changed, strlen(changed));
    cleat_free(text);
    free(changed);
    setenv("CLEAT_KERNEL_DIR", folder, 1);
}

static void assert_refused(const mutant *m, const tiny_result *found) {
    if (found->status != CLEAT_ERR_DEVICE)
        fail_msg("%s: '%s' ended with '%s', %s", m->file, m->to, cleat_status_text(found->status),
                 found->status ? found->error.text : "");
    print_message("%s: %s\n", m->to, found->error.text);
    assert_non_null(strstr(found->error.text, "computes wrong results"));
    assert_non_null(strstr(found->error.text, m->op));
    assert_non_null(strstr(found->error.text, "run.self_check = never"));
}

static void assert_is_refused(const tiny *t, const mutant *m, size_t number, const char *precision) {
    char run[32];
    snprintf(run, sizeof run, "mutant_run%zu", number);
    use_mutant(t, m, number);
    const tiny_result found = tiny_train(t, run, SET(EVERY_TERM, "run.self_check=always", precision), false, 0);
    unsetenv("CLEAT_KERNEL_DIR");
    assert_refused(m, &found);
}

static void changed_kernels_are_refused(void **state) {
    static const mutant mutants[] = {
        {"layer_norm.cl", "g[k] - sums.x", "g[k] + sums.x", "(layer_norm_grad,"},
        /* zero at the start of a training */
        {"layer_norm.cl", "row_load_f32(AT(beta)", "-row_load_f32(AT(beta)", "(layer_norm,"},
        {"adamw.cl", "b1 * LOADFV", "-b1 * LOADFV", "(adamw,"},
        {"adamw.cl", "* keep - step", "* keep + step", "(adamw,"},
        {"dropout.cl", "0x9E3779B9u", "0x9E3779B8u", "(dropout"},
        {"embedding.cl", "token == v &&", "token <= v &&", "(embedding_grad,"},
        {"positional_encoding.cl", "(float)max(AT(lengths)[b] - 1", "(float)max(AT(lengths)[b]",
         "(embedding_positional,"},
        {"structure_loss.cl", "(m ? 2.0f : -2.0f)", "(m ? 2.0f : 2.0f)", "(structure_loss_grad,"},
        {"structure_loss.cl", "0.5f * overlap * overlap", "0.6f * overlap * overlap", "(structure_loss,"},
        {"frame_loss.cl", "MANY(R + 8) * s.az", "MANY(R + 7) * s.az", "(frame_loss_grad,"},
        {"rigid_chain.cl", "multiply(frame, helix + t)", "multiply(frame, helix - t)", "(rigid_chain,"},
        {"grad_norm.cl", "block += partial[i]", "block += 0.999f * partial[i]", "(grad_norm,"},
        {"log_step.cl", "row[n] = AT(norm)[0]", "row[n] = 2.0f * AT(norm)[0]", "(log_step,"},
        {"accumulate_metric.cl", "[total_at] += sum", "[total_at] -= sum", "(sum_metrics,"},
        {"accumulate_metric.cl", "sum += AT(x)[0]", "sum = AT(x)[0]", "(sum_metrics,"},
        {"accumulate_metric.cl", "AT(total)[0] = sum", "AT(total)[0] = 1.01f * sum", "(sum_metrics,"},
        /* Code for infinite gradients, which do not occur in a normal run. */
        {"adamw.cl", "!isfinite(length)", "length < 0.0f", "(adamw,"},
    };
    for (size_t i = 0; i < sizeof mutants / sizeof *mutants; ++i)
        assert_is_refused(*state, &mutants[i], i, "train.precision=f32");
}

static void changed_kernels_of_halves_are_refused(void **state) {
    static const struct {
        mutant mutant;
        const char *precision;
    } rows[] = {
        /* Wide tolerances, but narrower than the error of a kernel without effect. */
        {{"adamw.cl", "* keep - step", "* 1.0f - 0.0f", "(adamw,"}, "train.precision=bf16"},
        /* The half weights that training reads; its definitions do not check them. */
        {{"cast.cl", "STOREV(before + LOADFV(AT(x), s.at)", "STOREV(before - LOADFV(AT(x), s.at)", "(half_weights,"},
         "train.precision=f16"},
        /* With an infinite gradient. */
        {{"lib/loss_scale.clh", "0.5f, least", "2.0f, least", "loss_scale"}, "train.precision=f16"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        assert_is_refused(*state, &rows[i].mutant, 100 + i, rows[i].precision);
}

#define WIDE "model.d_model=24"

/* A linear operation fuses its residual only if nothing is saved for a backward pass. */
static void programs_of_evaluations_are_checked(void **state) {
    static const mutant fused = {"lib/epilogue.clh", "sum += LOADCV(accum, at)",
                                 "sum += (bias ? 1.1f : 1.0f) * LOADCV(accum, at)", "(linear"};
    const tiny *t = *state;
    char out[TINY_PATH];
    tiny_result found = {.status = CLEAT_OK};
    cleat_profile *checked = tiny_profile(t, SET("run.self_check=once", WIDE)),
                  *unchecked = tiny_profile(t, SET("run.self_check=never", WIDE));
    tiny_train_to(CLEAT_OK, t, "right", SET("run.self_check=never", WIDE), false, 0);
    use_new_cache(t, "evaluations");
    use_mutant(t, &fused, 200);
    evaluate(t, "right", unchecked, CLEAT_OK, NULL);
    evaluate(t, "right", checked, CLEAT_ERR_DEVICE, &found.error);
    found.status = CLEAT_ERR_DEVICE;
    assert_refused(&fused, &found);
    size_t count;
    assert_int_equal(
        cleat_predict(checked, tiny_path(t, "right", out), checked->data->path, t->folder, &count, &found.error),
        CLEAT_ERR_DEVICE);
    assert_refused(&fused, &found);
    found = tiny_train(t, "wrong", SET("run.self_check=once", WIDE), false, 0);
    unsetenv("CLEAT_KERNEL_DIR");
    assert_refused(&fused, &found);
    const size_t before = records(t, "evaluations");
    evaluate(t, "right", checked, CLEAT_OK, NULL);
    const size_t after = records(t, "evaluations");
    assert_true(after > before);
    evaluate(t, "right", checked, CLEAT_OK, NULL);
    assert_int_equal(records(t, "evaluations"), after);
    cleat_profile_destroy(checked);
    cleat_profile_destroy(unchecked);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_of_evaluations_are_checked),
        cmocka_unit_test(a_run_is_checked_and_has_the_same_bits),
        cmocka_unit_test(a_passed_check_is_remembered),
        cmocka_unit_test(changed_kernels_are_refused),
        cmocka_unit_test(changed_kernels_of_halves_are_refused),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
