/* A non-finite step: the report names tensor, op and cause, and the inspection changes nothing. */
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

#include "core/memory.h"
#include "data/dataset.h"
#include "exec/exec.h"
#include "graph/plan.h"
#include "tiny.h"
#include "train/trainer.h"

/* --- log messages --- */

enum { LOG_BYTES = 8192 };

static void capture_log(void *user, cleat_log_level level, const char *text) {
    char *logged = user;
    size_t used = strlen(logged);
    (void)level;
    if (strstr(text, "not finite: ")) snprintf(logged + used, LOG_BYTES - used, "%s\n", text);
}

static void assert_contains(const char *text, const char *const *words) {
    for (; *words; ++words)
        if (!strstr(text, *words)) fail_msg("'%s' does not contain '%s'", text, *words);
}

/* --- a trainer in the middle of an epoch --- */

typedef struct middle {
    cleat_profile *profile;
    cleat_train_options options;
    cleat_train_report report;
    char out[TINY_PATH];
    cleat_trainer trainer;
    const cleat_batches *batches; /* of the epoch */
    float *before;                /* parameters and buffers */
    char logged[LOG_BYTES];
} middle;

enum { STEP = 2 }; /* the next one */

static void ok(cleat_status status, const cleat_error *error) {
    if (status) fail_msg("%s", error->text);
}

static float *read_values(cleat_trainer *trainer) {
    cleat_error error = {0};
    float *values = cleat_alloc((size_t)cleat_session_values(trainer->engine.session), sizeof *values);
    ok(cleat_session_read_values(trainer->engine.session, values, &error), &error);
    return values;
}

static middle *middle_open(const tiny *t, const char *run, const char *const *assignments) {
    middle *m = cleat_alloc(1, sizeof *m);
    cleat_error error = {0};
    m->profile = tiny_profile(t, assignments);
    m->options.out = tiny_path(t, run, m->out);
    cleat_trainer *trainer = &m->trainer;
    trainer->settings.given = trainer->settings.profile = m->profile;
    trainer->run.options = &m->options;
    trainer->run.report = &m->report;
    ok(cleat_trainer_open(trainer, &error), &error);
    ok(cleat_run_data_begin_epoch(&trainer->data, trainer->engine.session->work, trainer->state.seed, 0, &error),
       &error);
    m->batches = trainer->data.pass;
    trainer->state.step = trainer->state.position = STEP;
    ok(cleat_engine_start_at(&trainer->engine, &trainer->data, trainer->state.position, &error), &error);
    m->before = read_values(trainer);
    cleat_set_log(capture_log, m->logged, CLEAT_LOG_WARNING);
    return m;
}

static void middle_close(middle *m) {
    cleat_set_log(NULL, NULL, CLEAT_LOG_WARNING);
    cleat_anomaly_end(&m->trainer.anomaly);
    cleat_run_monitor_end(&m->trainer.monitor, 0, CLEAT_OK, "", 0);
    cleat_trainer_close(&m->trainer);
    cleat_profile_destroy(m->profile);
    cleat_free(m->before);
    cleat_free(m);
}

static void assert_gradients_are_zero(cleat_trainer *trainer) {
    cleat_error error = {0};
    const cleat_tensor *flat = &trainer->engine.session->work->store->flat[1];
    float *values = cleat_alloc((size_t)cleat_tensor_elements(flat), sizeof *values);
    ok(cleat_exec_read_unchecked(trainer->engine.session->exec, 0, flat, values, &error), &error);
    for (int64_t i = 0; i < cleat_tensor_elements(flat); ++i) assert_true(values[i] == 0);
    cleat_free(values);
}

/* Adds the loss terms of the next micro-batch to the state `terms`. */
static void assert_training_goes_on(middle *m) {
    cleat_trainer *trainer = &m->trainer;
    cleat_error error = {0};
    cleat_fed_batch fed;
    cleat_global_batch global_batch;
    float terms[CLEAT_MAX_METRICS] = {0};
    assert_true(cleat_batches_global_batch(m->batches, STEP, &global_batch));
    ok(cleat_exec_read_unchecked(trainer->engine.session->exec, 0, trainer->engine.session->work->terms, terms, &error),
       &error);
    for (int i = 0; i < cleat_model_terms(trainer->engine.model) + 1; ++i) assert_true(terms[i] == 0);
    ok(cleat_feed_next(trainer->engine.feed, &fed, &error), &error);
    assert_ptr_equal(fed.micro_batch, cleat_batches_get(m->batches, global_batch.first));
    const cleat_work_graph *graph = &trainer->engine.session->work->train[fed.micro_batch->bucket];
    cleat_dropout_key key = {.seed = trainer->state.seed, .step = STEP, .first = fed.micro_batch->first};
    cleat_session_prepare(trainer->engine.session, graph, fed.bytes, &fed.host, &global_batch, &key);
    ok(cleat_feed_run(trainer->engine.feed, graph, &fed, &error), &error);
    cleat_feed_release(trainer->engine.feed, &fed);
    ok(cleat_exec_read_unchecked(trainer->engine.session->exec, 0, trainer->engine.session->work->terms, terms, &error),
       &error);
    assert_true(isfinite(terms[cleat_model_terms(trainer->engine.model)]));
    assert_true(terms[cleat_model_terms(trainer->engine.model)] > 0);
}

static void detect(middle *m, int64_t updates) {
    cleat_error error = {0};
    int64_t allocated = cleat_device_allocated(m->trainer.engine.device);
    cleat_step_stats stats = {.step = STEP - 1, .updates = updates, .loss = NAN, .norm = NAN};
    float *now = read_values(&m->trainer);
    m->logged[0] = 0;
    m->trainer.anomaly.next = 0;
    ok(cleat_detect_anomaly(&m->trainer.anomaly, &stats, &error), &error);
    float *after = read_values(&m->trainer);
    assert_memory_equal(now, after, (size_t)cleat_session_values(m->trainer.engine.session) * sizeof *now);
    assert_gradients_are_zero(&m->trainer);
    assert_int_equal(cleat_device_allocated(m->trainer.engine.device), allocated);
    cleat_free(now);
    cleat_free(after);
}

/* The report names the first eight samples of the inspected step, across its micro-batches. */
static void assert_names_samples(const middle *m) {
    cleat_global_batch global_batch;
    char wanted[1024];
    int named = 0;
    assert_true(cleat_batches_global_batch(m->batches, STEP - 1, &global_batch));
    assert_true(global_batch.micro_batches > 1);
    size_t used = (size_t)snprintf(wanted, sizeof wanted, "step 2, %lld samples (", (long long)global_batch.samples);
    for (size_t b = 0; b < global_batch.micro_batches; ++b) {
        const cleat_micro_batch *micro_batch = cleat_batches_get(m->batches, global_batch.first + b);
        for (uint32_t i = 0; i < micro_batch->count && named < 8; ++i, ++named)
            used += (size_t)snprintf(wanted + used, sizeof wanted - used, "%s%s", named ? ", " : "",
                                     cleat_dataset_id(m->trainer.data.dataset, micro_batch->samples[i]));
    }
    assert_true(used < sizeof wanted);
    assert_contains(m->logged, SET(wanted));
}

static void restore(middle *m) {
    cleat_error error = {0};
    ok(cleat_session_write_values(m->trainer.engine.session, m->before, &error), &error);
}

/* --- causes --- */

static void finite_step_is_said_to_be(void **state) {
    middle *m = middle_open(*state, "finite", NULL);
    detect(m, 0);
    assert_names_samples(m);
    assert_contains(m->logged, SET("every tensor is finite", "cleat verify"));
    detect(m, 3);
    assert_contains(m->logged, SET("every tensor is finite", "in 3 steps", "--check-finite"));
    assert_training_goes_on(m);
    middle_close(m);
}

/* Unwritten bytes are never read: the arena is full of NaN before a step, and no NaN is found. */
static void padding_is_written_by_every_op(void **state) {
    middle *m = middle_open(*state, "poison", NULL);
    const cleat_exec *exec = m->trainer.engine.session->exec;
    for (size_t i = 0; i < exec->plan->slab_count; ++i) {
        const cl_uchar ones = 0xff;
        if (exec->plan->slabs[i].category != CLEAT_BYTES_ARENA || exec->plan->slabs[i].bytes == 0) continue;
        assert_int_equal(clEnqueueFillBuffer(m->trainer.engine.device->compute, exec->slabs[i], &ones, 1, 0,
                                             (size_t)exec->plan->slabs[i].bytes, 0, NULL, NULL),
                         CL_SUCCESS);
    }
    detect(m, 0);
    assert_contains(m->logged, SET("every tensor is finite"));
    middle_close(m);
}

/* A dataset that wraps another and changes one value of one sample. */
typedef struct spoilt {
    cleat_dataset base; /* must be first */
    const cleat_dataset *true_one;
    size_t sample;
} spoilt;

static const cleat_dataset *true_one(const cleat_dataset *dataset) {
    return ((const spoilt *)dataset)->true_one;
}

static const char *spoilt_id(const cleat_dataset *dataset, size_t sample) {
    return cleat_dataset_id(true_one(dataset), sample);
}

static int64_t spoilt_length(const cleat_dataset *dataset, size_t sample) {
    return cleat_dataset_length(true_one(dataset), sample);
}

static cleat_status spoilt_fill(const cleat_dataset *dataset, size_t sample, int64_t length,
                                const cleat_rng_key *rng_key, void *const *slots, cleat_error *error) {
    cleat_status status = cleat_dataset_fill(true_one(dataset), sample, length, rng_key, slots, error);
    if (!status && sample == ((const spoilt *)dataset)->sample)
        ((float *)slots[cleat_dataset_find_field(dataset, "coords")])[3 * 2 + 1] = NAN;
    return status;
}

/* The trainer continues with this dataset. */
static void use_dataset(middle *m, cleat_dataset *dataset) {
    cleat_trainer *trainer = &m->trainer;
    cleat_error error = {0};
    cleat_feed_close(trainer->engine.feed);
    trainer->engine.feed = NULL;
    trainer->data.dataset = dataset;
    ok(cleat_feed_open(trainer->engine.session, dataset, &trainer->engine.feed, &error), &error);
    ok(cleat_engine_start_at(&trainer->engine, &trainer->data, trainer->state.position, &error), &error);
}

static void value_in_the_data_is_named(void **state) {
    middle *m = middle_open(*state, "data", NULL);
    cleat_dataset *dataset = m->trainer.data.dataset;
    cleat_dataset_class type = {.name = "spoilt",
                                .fields = dataset->type->fields,
                                .n_fields = dataset->type->n_fields,
                                .id = spoilt_id,
                                .length = spoilt_length,
                                .fill = spoilt_fill};
    cleat_global_batch global_batch;
    assert_true(cleat_batches_global_batch(m->batches, STEP - 1, &global_batch));
    const cleat_micro_batch *last = cleat_batches_get(m->batches, global_batch.first + global_batch.micro_batches - 1);
    spoilt bad = {.base = {.type = &type, .count = cleat_dataset_count(dataset)},
                  .true_one = dataset,
                  .sample = last->samples[last->count - 1]};
    use_dataset(m, &bad.base);
    detect(m, 0);
    char element[64], sample[160];
    snprintf(element, sizeof element, "is nan at [%u, 2, 1]", last->count - 1);
    snprintf(sample, sizeof sample, "(sample %s)", cleat_dataset_id(dataset, bad.sample));
    assert_names_samples(m);
    assert_contains(m->logged,
                    SET("The input 'coords'", element, sample, "1 of ", "The value comes from the data", "loss"));
    use_dataset(m, dataset);
    assert_training_goes_on(m);
    middle_close(m);
}

static void set_parameter(middle *m, const char *name, float value, int64_t from, int64_t to) {
    cleat_error error = {0};
    const cleat_tensor *parameter = cleat_store_find(m->trainer.engine.session->work->store, name);
    assert_non_null(parameter);
    float *values = read_values(&m->trainer);
    for (int64_t i = from; i < to && i < cleat_tensor_elements(parameter); ++i)
        values[parameter->flat_offset + i] = value;
    ok(cleat_session_write_values(m->trainer.engine.session, values, &error), &error);
    cleat_free(values);
}

/* Finds a weight matrix of the model, independently of layer names. */
static const cleat_tensor *some_matrix(const middle *m) {
    const cleat_store *store = m->trainer.engine.session->work->store;
    for (size_t i = cleat_store_count(store) / 2; i < cleat_store_count(store); ++i)
        if (cleat_tensor_rank(cleat_store_param(store, i)) == 2) return cleat_store_param(store, i);
    fail_msg("no matrix");
    return NULL;
}

static void bad_parameter_is_named(void **state) {
    middle *m = middle_open(*state, "parameter", NULL);
    const cleat_tensor *matrix = some_matrix(m);
    char element[64];
    int64_t width = cleat_tensor_shape(matrix)[1];
    set_parameter(m, cleat_tensor_name(matrix), INFINITY, width + 2, width + 4);
    detect(m, 0);
    snprintf(element, sizeof element, "is inf at [1, 2]; 2 of %lld", (long long)cleat_tensor_elements(matrix));
    assert_names_samples(m);
    assert_contains(m->logged,
                    SET(cleat_tensor_name(matrix), element, "parameter was already not finite before the step"));
    restore(m);
    assert_training_goes_on(m);
    middle_close(m);
}

/* A parameter is finite in f32 but overflows in its f16 copy. */
static void parameter_that_f16_cannot_hold_is_named(void **state) {
    middle *m = middle_open(*state, "copy", SET("train.precision=f16"));
    const cleat_tensor *matrix = some_matrix(m);
    set_parameter(m, cleat_tensor_name(matrix), 1e30f, 3, 4);
    detect(m, 0);
    assert_contains(m->logged,
                    SET(cleat_tensor_name(matrix), "(f16 ", "is inf at [0, 3]", "The parameter is 1e+30 there",
                        "f16 overflows above 65504", "bf16 or f32 can represent it"));
    if (strstr(m->logged, "resume from")) fail_msg("'%s' recommends an earlier checkpoint", m->logged);
    set_parameter(m, cleat_tensor_name(matrix), INFINITY, 3, 4);
    detect(m, 0);
    assert_contains(m->logged, SET(cleat_tensor_name(matrix), "was already not finite before the step",
                                   "resume from an earlier checkpoint"));
    middle_close(m);
}

static void overflow_is_named_with_its_op(void **state) {
    middle *m = middle_open(*state, "overflow", NULL);
    const cleat_tensor *matrix = some_matrix(m);
    set_parameter(m, cleat_tensor_name(matrix), 3e38f, 0, INT64_MAX);
    detect(m, 0);
    assert_names_samples(m);
    assert_contains(m->logged,
                    SET("first tensor that is not finite", "by op linear", "(forward)", "is inf at [0, 0, 0]",
                        "Its operands: ", cleat_tensor_name(matrix), "up to 3e+38", "overflow", "train.learning_rate"));
    restore(m);
    assert_training_goes_on(m);
    middle_close(m);
}

/* Inspections are limited in frequency and to non-finite steps. */
static void not_every_step_is_looked_into(void **state) {
    middle *m = middle_open(*state, "seldom", NULL);
    cleat_error error = {0};
    cleat_step_stats stats = {.step = STEP - 1, .loss = 1, .norm = 1};
    ok(cleat_detect_anomaly(&m->trainer.anomaly, &stats, &error), &error);
    assert_string_equal(m->logged, "");
    stats.norm = INFINITY;
    ok(cleat_detect_anomaly(&m->trainer.anomaly, &stats, &error), &error);
    assert_contains(m->logged, SET("step 2"));
    m->logged[0] = 0;
    ok(cleat_detect_anomaly(&m->trainer.anomaly, &stats, &error), &error);
    assert_string_equal(m->logged, "");
    middle_close(m);
}

/* In f16 a gradient occasionally overflows until the loss scale settles. An overflow is inspected only if it
 * persists, if the loss scale is at its minimum, or if the loss itself is not finite. */
static void loss_scale_at_work_is_left_alone(void **state) {
    middle *m = middle_open(*state, "scaled", SET("train.precision=f16"));
    cleat_error error = {0};
    cleat_step_stats stats = {.step = STEP - 1, .loss = 1, .norm = INFINITY, .loss_scale = 65536};
    int steps = 0;
    for (; steps < 100 && !m->logged[0]; ++steps) ok(cleat_detect_anomaly(&m->trainer.anomaly, &stats, &error), &error);
    assert_int_equal(steps, 20);
    const cleat_step_stats others[] = {{.step = STEP - 1, .loss = 1, .norm = INFINITY, .loss_scale = 1},
                                       {.step = STEP - 1, .loss = NAN, .norm = NAN, .loss_scale = 65536}};
    for (int i = 0; i < 2; ++i) {
        m->logged[0] = 0;
        m->trainer.anomaly.next = m->trainer.anomaly.skipped = 0;
        ok(cleat_detect_anomaly(&m->trainer.anomaly, &stats, &error), &error);
        assert_string_equal(m->logged, "");
        ok(cleat_detect_anomaly(&m->trainer.anomaly, &others[i], &error), &error);
        assert_contains(m->logged, SET("step 2"));
    }
    assert_training_goes_on(m);
    middle_close(m);
}

/* The hyper-parameters are written only for the update: until then their memory holds bytes of the last batch. */
static void norm_is_looked_at_without_the_hyper_parameters(void **state) {
    middle *m = middle_open(*state, "hyper", SET("train.precision=f16", "train.loss_scale=1"));
    const cleat_workload *work = m->trainer.engine.session->work;
    const float bad[8] = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    const size_t count = (size_t)cleat_session_trained(m->trainer.engine.session);
    float *large = cleat_alloc(count, sizeof *large);
    cleat_error error = {0};
    ok(cleat_finite_check_create(m->trainer.engine.session->exec, &m->trainer.anomaly.check, &error), &error);
    ok(cleat_exec_write_unchecked(m->trainer.engine.session->exec, work->update.index, work->hyper, bad, &error),
       &error);
    ok(cleat_check_gradient(&m->trainer.anomaly, &error), &error);
    for (size_t i = 0; i < count; ++i) large[i] = 3e38f;
    ok(cleat_session_write_flat(m->trainer.engine.session, CLEAT_FLAT_GRADIENTS, large, &error), &error);
    assert_int_equal(cleat_check_gradient(&m->trainer.anomaly, &error), CLEAT_ERR_NAN);
    assert_non_null(strstr(error.text, "their norm is not"));
    cleat_free(large);
    middle_close(m);
}

/* Buffers that change within a global batch cannot be saved in the middle of one, regardless of inspections. */
static void looking_makes_nothing_savable(void **state) {
    middle *m = middle_open(*state, "unsavable", SET("train.precision=f16", "train.loss_scale=1073741824"));
    cleat_trainer *trainer = &m->trainer;
    cleat_error error = {0};
    cleat_fed_batch fed;
    cleat_global_batch global_batch;
    /* Zeros would block the gradient, and a layer norm's gradient is zero behind equal columns. */
    set_parameter(m, "head.weight", 0.1f, 0, 7);
    assert_true(cleat_batches_global_batch(m->batches, STEP, &global_batch));
    ok(cleat_feed_next(trainer->engine.feed, &fed, &error), &error);
    const cleat_work_graph *graph = &trainer->engine.session->work->train[fed.micro_batch->bucket];
    cleat_dropout_key key = {.seed = trainer->state.seed, .step = STEP, .first = fed.micro_batch->first};
    cleat_session_prepare(trainer->engine.session, graph, fed.bytes, &fed.host, &global_batch, &key);
    for (int savable = 0; savable < 2; ++savable) {
        trainer->engine.is_savable = savable;
        trainer->anomaly.overflow_logged = false;
        ok(cleat_check_micro_batch(&trainer->anomaly, graph, &fed, &error), &error);
        assert_true(trainer->anomaly.overflow_logged);
        assert_int_equal(trainer->engine.is_savable, savable);
    }
    cleat_feed_release(trainer->engine.feed, &fed);
    middle_close(m);
}

/* The parameters' part of the run's message, derived from the ring rows of completed steps. One letter per
 * step: n is NaN in loss and norm, l is NaN in the loss only, f is finite in both. */
static void assert_parameters(middle *m, const char *steps, const char *said) {
    cleat_trainer *trainer = &m->trainer;
    cleat_error error = {0};
    const cleat_tensor *tensor = trainer->engine.session->work->ring;
    const int64_t width = cleat_tensor_shape(tensor)[1], loss = cleat_model_terms(trainer->engine.model);
    float *ring = cleat_alloc((size_t)cleat_tensor_elements(tensor), sizeof *ring);
    for (int64_t step = 0; steps[step]; ++step) {
        ring[step * width + loss] = steps[step] == 'f' ? 1.0f : NAN;
        ring[step * width + loss + 1] = steps[step] == 'n' ? NAN : 1.0f;
    }
    ok(cleat_exec_write_unchecked(trainer->engine.session->exec, 0, tensor, ring, &error), &error);
    cleat_free(ring);
    trainer->ring_read = 0;
    trainer->state.step = trainer->state.position = (int64_t)strlen(steps);
    assert_int_equal(cleat_trainer_save_within_epoch(trainer, &error), CLEAT_ERR_NAN);
    assert_contains(error.text, SET("not finite", said));
}

static void what_became_of_the_parameters_is_said(void **state) {
    middle *m = middle_open(*state, "said", NULL);
    assert_parameters(m, "fn", "parameters are as before that step");
    assert_parameters(m, "fnn", "parameters are as before that step");
    assert_parameters(m, "nff", "did not update the parameters, but 2 steps after it did");
    assert_parameters(m, "fnf", "did not update the parameters, but 1 steps after it did");
    assert_parameters(m, "fl", "updated by that step and by 0 steps after it");
    assert_parameters(m, "lnf", "updated by that step and by 1 steps after it");
    middle_close(m);
}

/* --- whole runs --- */

/* An excessive rate: the parameters grow until a value overflows after a few steps. */
static const char *const absurd[] = {"train.learning_rate=3",
                                     "data.limit=4",
                                     "train.weight_decay=1",
                                     "train.warmup_steps=0",
                                     "train.schedule=constant",
                                     "train.epochs=60",
                                     "model.head=absolute",
                                     "loss.coordinate=1",
                                     "run.evaluate_every_epochs=none",
                                     "run.log_every_steps=1",
                                     NULL};

/* With the metrics of each step, the inspection names the place at which a run with finite checks throughout
 * stops. */
static void checked_run_stops_at_the_same_step(void **state) {
    const char *checked[16];
    char logged[LOG_BYTES] = "", step[32];
    size_t n = 0;
    for (; absurd[n]; ++n) checked[n] = absurd[n];
    checked[n++] = "run.check_finite=true";
    checked[n] = NULL;
    cleat_set_log(capture_log, logged, CLEAT_LOG_WARNING);
    tiny_result plain = tiny_train_to(CLEAT_ERR_NAN, *state, "plain", absurd, false, 0);
    cleat_set_log(NULL, NULL, CLEAT_LOG_WARNING);
    tiny_result watched = tiny_train_to(CLEAT_ERR_NAN, *state, "watched", checked, false, 0);
    snprintf(step, sizeof step, "step %lld", (long long)plain.report.steps);
    assert_contains(logged, SET(step));
    assert_contains(watched.error.text, SET(step));
    const char *found = strstr(watched.error.text, ": ");
    if (!strstr(logged, found)) fail_msg("'%s' does not contain '%s'", logged, found);
    assert_int_equal(watched.report.steps, plain.report.steps - 1);
    assert_int_equal(watched.report.memory.allocated, watched.report.memory.planned);
}

/* The log has the steps before the one that stops the run, although they were due to be written later. */
static void checked_run_logs_the_steps_before(void **state) {
    const char *checked[16], path[] = "late/metrics.jsonl";
    char full[TINY_PATH];
    size_t n = 0, size;
    int64_t rows = 0;
    for (; absurd[n]; ++n) checked[n] = absurd[n];
    checked[n - 1] = "run.log_every_steps=64";
    checked[n++] = "run.check_finite=true";
    checked[n] = NULL;
    tiny_result late = tiny_train_to(CLEAT_ERR_NAN, *state, "late", checked, false, 0);
    char *text = tiny_read(tiny_path(*state, path, full), &size);
    for (const char *at = text; (at = strstr(at, "\"kind\":\"train\"")); ++at) ++rows;
    cleat_free(text);
    assert_true(late.report.steps > 0);
    assert_int_equal(rows, late.report.steps);
}

static void count_overflow(void *user, cleat_log_level level, const char *text) {
    if (level == CLEAT_LOG_INFO && strstr(text, "overflows at a loss scale of")) ++*(int *)user;
}

/* A gradient that overflows because of its loss scale does not fail the run; in f16 the first one is reported. */
static void checked_run_gives_the_same_bits(void **state) {
    static const char *const free_runs[] = {"free", "free16"}, *const checked[] = {"checked", "checked16"};
    static const char *const precisions[] = {"train.precision=f32", "train.precision=f16"};
    static const char *const scales[] = {"train.loss_scale=auto", "train.loss_scale=1073741824"};
    for (int i = 0; i < 2; ++i) {
        int logged = 0;
        tiny_result plain = tiny_train_to(CLEAT_OK, *state, free_runs[i], SET(precisions[i], scales[i]), false, 0);
        cleat_set_log(count_overflow, &logged, CLEAT_LOG_INFO);
        tiny_train_to(CLEAT_OK, *state, checked[i], SET(precisions[i], scales[i], "run.check_finite=true"), false, 0);
        cleat_set_log(NULL, NULL, CLEAT_LOG_WARNING);
        tiny_assert_same_run(*state, free_runs[i], checked[i]);
        assert_int_equal(logged, i);
        assert_true(i == 0 ? plain.report.skipped_steps == 0 : plain.report.skipped_steps > 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finite_step_is_said_to_be),
        cmocka_unit_test(padding_is_written_by_every_op),
        cmocka_unit_test(value_in_the_data_is_named),
        cmocka_unit_test(bad_parameter_is_named),
        cmocka_unit_test(overflow_is_named_with_its_op),
        cmocka_unit_test(not_every_step_is_looked_into),
        cmocka_unit_test(loss_scale_at_work_is_left_alone),
        cmocka_unit_test(checked_run_stops_at_the_same_step),
        cmocka_unit_test(checked_run_gives_the_same_bits),
        cmocka_unit_test(checked_run_logs_the_steps_before),
        cmocka_unit_test(parameter_that_f16_cannot_hold_is_named),
        cmocka_unit_test(what_became_of_the_parameters_is_said),
        cmocka_unit_test(norm_is_looked_at_without_the_hyper_parameters),
        cmocka_unit_test(looking_makes_nothing_savable),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
