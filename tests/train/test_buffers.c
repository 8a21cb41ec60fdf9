/* Buffers (running statistics): they start as declared and are part of checkpoints and averages; a checkpoint
 * with other buffers is refused by name. */
/* ctest: device */
#include "tiny.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/ops.h"
#include "core/files.h"
#include "core/memory.h"
#include "models/model.h"
#include "train/trainer.h"

/* --- a family with two buffers -------------------------------------------------------------------------------- */

enum { B = 3, IN = 4, OUT = 2, SEEN = 2, CHANNELS = 5, INPUT_BYTES = 8192 };
static const char *const terms[] = {"mse"};

/* `seen` accumulates the losses of all training steps. */
static void build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built) {
    (void)model;
    (void)length;
    const cleat_init drawn = {CLEAT_INIT_NORMAL, 1};
    cleat_model_inputs inputs = cleat_model_add_inputs(graph, mode, 1, &batch);
    inputs.samples = cleat_model_add_samples(graph, mode);
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 2, (int64_t[]){batch, IN});
    cleat_tensor *target = cleat_input(graph, "target", CLEAT_F32, 2, (int64_t[]){batch, OUT});
    cleat_tensor *weight = cleat_param(graph, "head.weight", 2, (int64_t[]){OUT, IN}, drawn);
    cleat_tensor *seen = cleat_buffer(graph, "seen", 1, (int64_t[]){SEEN}, 0.5f);
    cleat_running_statistics(graph, "running", CHANNELS);
    built->output = cleat_linear(graph, x, weight, NULL, NULL);
    cleat_retain(graph, built->output);
    cleat_tensor *loss = cleat_mse_loss(graph, built->output, target, inputs.sample_weight);
    cleat_model_add_loss(graph, mode, &inputs, loss, built);
    if (mode == CLEAT_MODE_TRAIN && loss) cleat_accumulate_metric(graph, loss, seen, 1);
}

static void sample_weight(const cleat_model *model, const cleat_host_batch *batch,
                          const cleat_global_batch *global_batch, float *values) {
    (void)model;
    for (int64_t b = 0; b < batch->batch; ++b)
        values[b] = b < batch->count ? 1.0f / (float)global_batch->samples : 0.0f;
}

static const cleat_model_class with_buffers = {
    .name = "with buffers", .terms = terms, .n_terms = 1, .build = build, .sample_weight = sample_weight};

/* --- a trainer around it, without data ------------------------------------------------------------------------ */

typedef struct run {
    cleat_trainer trainer;
    cleat_model model;
    cleat_train_report report;
} run;

static void check(cleat_status status, const cleat_error *error) {
    if (status) fail_msg("%s", error->text);
}

static void run_open(run *r, const tiny *t, const char *folder, double decay) {
    cleat_error error = {0};
    cleat_trainer *trainer = &r->trainer;
    cleat_profile *profile = tiny_profile(t, NULL);
    const cleat_bucket bucket = {.length = 1, .global_batch_size = B, .micro_batch_size = B};
    *r = (run){.trainer = {.settings = {.given = profile, .profile = profile}},
               .model = {.type = &with_buffers, .options.precision = (cleat_precision)profile->train.precision}};
    trainer->run.report = &r->report;
    trainer->settings.resolved = profile;
    tiny_path(t, folder, trainer->run.folder);
    check(cleat_device_open(profile->run.device, &trainer->engine.device, &error), &error);
    const cleat_session_spec spec = {.device = trainer->engine.device,
                                     .profile = profile,
                                     .model = &r->model,
                                     .purpose = CLEAT_FOR_TRAINING,
                                     .buckets = &bucket,
                                     .n_buckets = 1};
    check(cleat_session_create(&spec, &trainer->engine.session, &error), &error);
    check(cleat_average_open(&trainer->engine.average, trainer->engine.session, decay, &error), &error);
    check(cleat_session_initialise(trainer->engine.session, 1, &error), &error);
}

static void run_close(run *r) {
    cleat_metrics_log_close(r->trainer.run.log);
    cleat_average_close(&r->trainer.engine.average);
    cleat_session_destroy(r->trainer.engine.session);
    cleat_device_close(r->trainer.engine.device);
    cleat_checkpoint_close(r->trainer.checkpoint);
    cleat_profile_destroy((cleat_profile *)(uintptr_t)r->trainer.settings.profile);
}

/* Runs a training step of one batch that depends on the step number. */
static void run_step(run *r) {
    cleat_error error = {0};
    cleat_trainer *trainer = &r->trainer;
    cleat_session *session = trainer->engine.session;
    const cleat_work_graph *train = &session->work->train[0];
    _Alignas(8) char inputs[INPUT_BYTES], update[INPUT_BYTES];
    const cleat_host_batch batch = {.batch = B, .length = 1, .count = B - 1};
    const cleat_global_batch global_batch = {.samples = B - 1};
    assert_true(cleat_session_input_bytes(session) <= INPUT_BYTES);
    memset(inputs, 0, sizeof inputs);
    cleat_session_prepare(session, train, inputs, &batch, &global_batch, NULL);
    cleat_staging *staging[2];
    const size_t graphs[2] = {train->index, session->work->update.index};
    const cleat_tensor *x = cleat_graph_find(train->graph, "x");
    float *values = (float *)(void *)(inputs + cleat_exec_input_offset(session->exec, train->index, x));
    for (int i = 0; i < B * IN; ++i) values[i] = (float)(i % 5 - 2) / (float)(1 + trainer->state.step);
    cleat_session_prepare_update(session, update, 0.01, trainer->state.step);
    const char *bytes[2] = {inputs, update};
    for (int i = 0; i < 2; ++i) {
        int64_t size = cleat_exec_input_bytes(session->exec, graphs[i]);
        check(cleat_staging_create(session->exec, size, false, &staging[i], &error), &error);
        memcpy(cleat_staging_data(staging[i]), bytes[i], (size_t)size);
        check(cleat_exec_upload(session->exec, graphs[i], staging[i], &error), &error);
        check(cleat_exec_run(session->exec, graphs[i], &error), &error);
    }
    check(cleat_exec_finish(session->exec, &error), &error);
    for (int i = 0; i < 2; ++i) cleat_staging_destroy(staging[i]);
    ++trainer->state.step;
}

/* Returns parameters and buffers. The caller frees them with cleat_free. */
static float *values_of(run *r) {
    cleat_error error = {0};
    float *values = cleat_alloc((size_t)cleat_session_values(r->trainer.engine.session), sizeof *values);
    check(cleat_session_read_values(r->trainer.engine.session, values, &error), &error);
    return values;
}

static void assert_same_values(run *a, run *b) {
    float *x = values_of(a), *y = values_of(b);
    assert_memory_equal(x, y, (size_t)cleat_session_values(a->trainer.engine.session) * sizeof *x);
    cleat_free(x);
    cleat_free(y);
}

/* Element `at` of the buffer in `values`. */
static float *buffer_value(const run *r, float *values, int at) {
    return values + cleat_session_flat(r->trainer.engine.session) + at;
}

static void save(run *r) {
    cleat_error error = {0};
    char path[CLEAT_PATH + 32];
    check(cleat_folder_make(r->trainer.run.folder, &error), &error);
    snprintf(path, sizeof path, "%s/metrics.jsonl", r->trainer.run.folder);
    if (!r->trainer.run.log) check(cleat_metrics_log_open(path, -1, &r->trainer.run.log, &error), &error);
    check(cleat_trainer_save(&r->trainer, false, &error), &error);
}

static cleat_status resume(run *r, cleat_error *error) {
    check(cleat_checkpoint_open_last(r->trainer.run.folder, &r->trainer.checkpoint, error), error);
    return cleat_trainer_resume(&r->trainer, error);
}

/* --- tests ---------------------------------------------------------------------------------------------------- */

static void they_start_as_declared_and_move(void **state) {
    run r;
    run_open(&r, *state, "start", 0);
    assert_int_equal(cleat_session_values(r.trainer.engine.session) - cleat_session_flat(r.trainer.engine.session),
                     SEEN + 2 * CHANNELS);
    float *values = values_of(&r);
    for (int i = 0; i < SEEN; ++i) assert_true(*buffer_value(&r, values, i) == 0.5f);
    for (int i = 0; i < 2 * CHANNELS; ++i)
        assert_true(*buffer_value(&r, values, SEEN + i) == (i < CHANNELS ? 0.0f : 1.0f));
    cleat_free(values);
    run_step(&r);
    values = values_of(&r);
    assert_true(*buffer_value(&r, values, 0) == 0.5f);
    assert_true(*buffer_value(&r, values, 1) > 0.5f);
    cleat_free(values);
    run_close(&r);
}

static void resume_gives_the_same_bits(void **state) {
    for (int averaged = 0; averaged < 2; ++averaged) {
        const char *folder = averaged ? "averaged" : "plain";
        double decay = averaged ? 0.9 : 0;
        cleat_error error = {0};
        run whole, again;
        run_open(&whole, *state, folder, decay);
        run_step(&whole);
        check(cleat_average_add(&whole.trainer.engine.average, whole.trainer.engine.session, &error), &error);
        run_step(&whole);
        save(&whole);
        run_open(&again, *state, folder, decay);
        check(resume(&again, &error), &error);
        assert_int_equal(again.trainer.state.step, 2);
        assert_same_values(&whole, &again);
        if (averaged)
            assert_memory_equal(whole.trainer.engine.average.mean, again.trainer.engine.average.mean,
                                (size_t)cleat_session_values(whole.trainer.engine.session) * sizeof(float));
        run_step(&whole);
        run_step(&again);
        assert_same_values(&whole, &again);
        run_close(&whole);
        run_close(&again);
    }
}

/* There is no mean during the first epoch; at its end, the mean equals the parameters. */
static void a_mean_begins_with_the_first_epoch(void **state) {
    cleat_error error = {0};
    run r;
    run_open(&r, *state, "first_mean", 0.9);
    cleat_average *average = &r.trainer.engine.average;
    float *values[5];
    const size_t bytes = (size_t)average->elements * sizeof **values;
    run_step(&r);
    values[0] = values_of(&r);
    check(cleat_average_apply(average, r.trainer.engine.session, &error), &error);
    values[1] = values_of(&r);
    check(cleat_average_add(average, r.trainer.engine.session, &error), &error);
    run_step(&r);
    values[2] = values_of(&r);
    check(cleat_average_apply(average, r.trainer.engine.session, &error), &error);
    values[3] = values_of(&r);
    check(cleat_average_restore(average, r.trainer.engine.session, &error), &error);
    values[4] = values_of(&r);
    assert_memory_equal(values[1], values[0], bytes);
    assert_memory_not_equal(values[2], values[0], bytes);
    assert_memory_equal(values[3], values[0], bytes);
    assert_memory_equal(values[4], values[2], bytes);
    for (int i = 0; i < 5; ++i) cleat_free(values[i]);
    run_close(&r);
}

/* The model of an averaged run has the averaged statistics; training's own state is saved beside it. */
static void averages_hold_them(void **state) {
    cleat_error error = {0};
    run r;
    run_open(&r, *state, "mean", 0.9);
    cleat_average *average = &r.trainer.engine.average;
    float *first, *second, *shown, *hidden;
    run_step(&r);
    first = values_of(&r);
    check(cleat_average_add(average, r.trainer.engine.session, &error), &error);
    run_step(&r);
    second = values_of(&r);
    check(cleat_average_add(average, r.trainer.engine.session, &error), &error);
    check(cleat_average_apply(average, r.trainer.engine.session, &error), &error);
    shown = values_of(&r);
    check(cleat_average_restore(average, r.trainer.engine.session, &error), &error);
    hidden = values_of(&r);
    const double d = 2.0 / 11; /* after one epoch: (1 + 1) / (10 + 1) */
    double a = *buffer_value(&r, first, 1), b = *buffer_value(&r, second, 1);
    assert_true(b > a);
    assert_float_equal(*buffer_value(&r, shown, 1), d * a + (1 - d) * b, 1e-6);
    assert_true(*buffer_value(&r, hidden, 1) == *buffer_value(&r, second, 1));
    save(&r);
    cleat_checkpoint *saved = NULL;
    check(cleat_checkpoint_open_last(r.trainer.run.folder, &saved, &error), &error);
    const cleat_st_tensor *mean = cleat_safetensors_find(saved->model, "seen");
    const cleat_st_tensor *trained = cleat_safetensors_find(saved->optim, "seen.trained");
    assert_non_null(mean);
    assert_non_null(trained);
    float value;
    check(cleat_safetensors_read(saved->model, mean, 1, 1, &value, &error), &error);
    assert_true(value == *buffer_value(&r, shown, 1));
    check(cleat_safetensors_read(saved->optim, trained, 1, 1, &value, &error), &error);
    assert_true(value == *buffer_value(&r, second, 1));
    cleat_checkpoint_close(saved);
    cleat_free(first);
    cleat_free(second);
    cleat_free(shown);
    cleat_free(hidden);
    run_close(&r);
}

/* Returns a tensor of the file with its values, which the caller frees. */
static cleat_st_tensor read_tensor(const cleat_safetensors *file, size_t i) {
    cleat_error error = {0};
    const cleat_st_tensor *found = cleat_safetensors_at(file, i);
    cleat_st_tensor tensor = *found;
    void *values = cleat_alloc(cleat_st_bytes(found), 1);
    check(cleat_safetensors_read(file, found, 0, cleat_st_elements(found), values, &error), &error);
    tensor.data = values;
    return tensor;
}

/* Rewrites the last checkpoint with the model's tensor `name` omitted or reshaped. */
static void save_without(run *r, const char *name, bool reshape) {
    cleat_error error = {0};
    cleat_checkpoint *saved = NULL;
    cleat_st_tensor model[8], optim[16];
    size_t n_model = 0, n_optim = 0;
    check(cleat_checkpoint_open_last(r->trainer.run.folder, &saved, &error), &error);
    for (size_t i = 0; i < cleat_safetensors_count(saved->model); ++i) {
        bool is_it = strcmp(cleat_safetensors_at(saved->model, i)->name, name) == 0;
        if (is_it && !reshape) continue;
        cleat_st_tensor tensor = read_tensor(saved->model, i);
        if (is_it) tensor.shape[0] = 1;
        model[n_model++] = tensor;
    }
    for (size_t i = 0; i < cleat_safetensors_count(saved->optim); ++i) optim[n_optim++] = read_tensor(saved->optim, i);
    const cleat_checkpoint_content content = {
        .state = &saved->state, .model = model, .model_count = n_model, .optim = optim, .optim_count = n_optim};
    check(cleat_checkpoint_write(r->trainer.run.folder, &content, false, 3, NULL, &error), &error);
    for (size_t i = 0; i < n_model; ++i) cleat_free((void *)model[i].data);
    for (size_t i = 0; i < n_optim; ++i) cleat_free((void *)optim[i].data);
    cleat_checkpoint_close(saved);
}

static void other_buffers_are_refused(void **state) {
    static const char *const names[] = {"seen", "running"};
    for (int i = 0; i < 4; ++i) {
        cleat_error error = {0};
        run r;
        run_open(&r, *state, i % 2 ? "shape" : "missing", 0);
        save(&r);
        save_without(&r, names[i / 2], i % 2);
        float *before = values_of(&r), *after;
        cleat_status status = resume(&r, &error);
        assert_int_equal(status, i % 2 ? CLEAT_ERR_SHAPE : CLEAT_ERR_FORMAT);
        assert_non_null(strstr(error.text, names[i / 2]));
        after = values_of(&r);
        assert_memory_equal(before, after, (size_t)cleat_session_values(r.trainer.engine.session) * sizeof *before);
        cleat_free(before);
        cleat_free(after);
        run_close(&r);
    }
}

/* The optimizer file has only tensors that AdamW updates. */
static void moments_have_none(void **state) {
    cleat_error error = {0};
    run r;
    cleat_checkpoint *saved = NULL;
    run_open(&r, *state, "moments", 0);
    save(&r);
    check(cleat_checkpoint_open_last(r.trainer.run.folder, &saved, &error), &error);
    assert_int_equal(cleat_safetensors_count(saved->model), 3);
    assert_int_equal(cleat_safetensors_count(saved->optim), 2);
    assert_non_null(cleat_safetensors_find(saved->optim, "head.weight.moment1"));
    cleat_checkpoint_close(saved);
    run_close(&r);
}

/* Empty slots of a short micro-batch are not counted. */
static void samples_are_counted(void **state) {
    run r;
    run_open(&r, *state, "samples", 0);
    cleat_session *session = r.trainer.engine.session;
    const cleat_work_graph *graphs[] = {&session->work->train[0], &session->work->evaluate[0]};
    for (int i = 0; i < 2; ++i)
        for (int64_t count = 1; count <= B; ++count) {
            _Alignas(8) char inputs[INPUT_BYTES] = {0};
            int32_t found;
            const cleat_host_batch batch = {.batch = B, .length = 1, .count = count};
            const cleat_global_batch global_batch = {.samples = (uint32_t)count};
            cleat_session_prepare(session, graphs[i], inputs, &batch, &global_batch, NULL);
            const cleat_tensor *samples = cleat_graph_find(graphs[i]->graph, "samples");
            memcpy(&found, inputs + cleat_exec_input_offset(session->exec, graphs[i]->index, samples), sizeof found);
            assert_int_equal(found, count);
        }
    run_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_start_as_declared_and_move),
        cmocka_unit_test(resume_gives_the_same_bits),
        cmocka_unit_test(a_mean_begins_with_the_first_epoch),
        cmocka_unit_test(averages_hold_them),
        cmocka_unit_test(other_buffers_are_refused),
        cmocka_unit_test(moments_have_none),
        cmocka_unit_test(samples_are_counted),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
