/* Gradient accumulation: the micro-batches of a global batch give the same gradient as the undivided global
 * batch, including dropout and the short last global batch of a bucket. Whole runs of clipped steps agree as
 * well. */
/* ctest: device */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "core/memory.h"
#include "core/philox.h"
#include "core/safetensors.h"
#include "exec/copy.h"
#include "graph/graph.h"
#include "session/feed.h"
#include "tiny.h"

enum { BUCKETS = 2, GLOBAL_BATCH = 7, MAX_GLOBAL_BATCHES = 16 };
static const int64_t edges[BUCKETS] = {12, 32};

/* More molecules than in the fixture: several global batches per bucket. */
static tiny more_molecules(const tiny *t) {
    tiny more = *t;
    char path[TINY_PATH];
    cleat_rna_make molecules = cleat_rna_make_defaults();
    molecules.count = 36;
    molecules.stem_max = 9;
    molecules.val_fraction = 0.2;
    molecules.pdb_files = 0;
    snprintf(more.data, sizeof more.data, "%s", tiny_path(t, "more", path));
    assert_int_equal(cleat_data_make_rna(more.data, &molecules, NULL), CLEAT_OK);
    return more;
}

/* --- gradients of global batches --------------------------------------------------------------------------------- */

/* Everything that is open while one epoch's gradients are computed. */
typedef struct pass {
    cleat_profile *profile;
    cleat_device *device;
    cleat_model *model;
    cleat_dataset *dataset;
    uint32_t *samples;
    size_t sample_count;
    cleat_session *session;
    cleat_feed *feed;
    bool by_items; /* a mean over residues instead of over chains */
} pass;

/* Writes the parameters of every pass: none is zero, so gradients reach all of them. */
static void write_parameters(cleat_session *session) {
    int64_t count = cleat_session_flat(session);
    float *values = cleat_alloc((size_t)count, sizeof *values);
    cleat_random random = cleat_random_stream(1, 2, 3);
    assert_int_equal(cleat_session_initialise(session, 1, NULL), CLEAT_OK);
    assert_int_equal(cleat_session_read_flat(session, CLEAT_FLAT_PARAMETERS, values, NULL), CLEAT_OK);
    for (int64_t i = 0; i < count; ++i) values[i] += 0.05f * (float)cleat_random_normal(&random);
    assert_int_equal(cleat_session_write_flat(session, CLEAT_FLAT_PARAMETERS, values, NULL), CLEAT_OK);
    cleat_free(values);
}

static pass pass_open(const tiny *t, int64_t most, const char *const *set) {
    pass p = {.profile = tiny_profile(t, set)};
    cleat_bucket buckets[BUCKETS];
    cleat_error error;
    for (int b = 0; b < BUCKETS; ++b)
        buckets[b] = (cleat_bucket){.length = edges[b], .global_batch_size = GLOBAL_BATCH, .micro_batch_size = most};
    cleat_status status = cleat_profile_create_model(p.profile, &p.model, &error);
    if (!status)
        status = cleat_model_open_data(p.model, p.profile->data->path, CLEAT_MODE_TRAIN, NULL, &p.dataset, &error);
    if (!status) status = cleat_dataset_samples(p.dataset, CLEAT_SPLIT_TRAIN, &p.samples, &p.sample_count, &error);
    if (!status) status = cleat_device_open(p.profile->run.device, &p.device, &error);
    const cleat_session_spec spec = {.device = p.device,
                                     .profile = p.profile,
                                     .model = p.model,
                                     .purpose = CLEAT_FOR_TRAINING,
                                     .buckets = buckets,
                                     .n_buckets = BUCKETS};
    if (!status) status = cleat_session_create(&spec, &p.session, &error);
    if (!status) status = cleat_feed_open(p.session, p.dataset, &p.feed, &error);
    if (status) fail_msg("%s", error.text);
    write_parameters(p.session);
    return p;
}

static void pass_close(pass *p) {
    cleat_feed_close(p->feed);
    cleat_session_destroy(p->session);
    cleat_device_close(p->device);
    cleat_samples_free(p->samples);
    cleat_dataset_destroy(p->dataset);
    cleat_model_destroy(p->model);
    cleat_profile_destroy(p->profile);
}

/* Results of the global batches of an epoch. */
typedef struct global_batch_results {
    size_t count;
    int64_t samples[MAX_GLOBAL_BATCHES];
    float *gradient[MAX_GLOBAL_BATCHES]; /* [elements] */
    float terms[MAX_GLOBAL_BATCHES][CLEAT_MAX_METRICS];
    int64_t elements;
    int n_terms; /* including the loss */
} global_batch_results;

static void results_free(global_batch_results *r) {
    for (size_t w = 0; w < r->count; ++w) cleat_free(r->gradient[w]);
}

/* Weighs a sample by its number of residues, as a family with a mean over tokens would. */
static void weigh_by_items(const pass *p, const cleat_work_graph *graph, const cleat_fed_batch *fed,
                           const cleat_global_batch *global_batch) {
    const int32_t *lengths = fed->fields[cleat_dataset_find_field(p->dataset, "lengths")];
    float *sample_weight = (float *)(void *)((char *)fed->bytes + graph->sample_weight_offset);
    for (int k = 0; k < cleat_model_terms(p->model); ++k)
        for (int64_t b = 0; b < fed->host.batch; ++b)
            sample_weight[k * fed->host.batch + b] *=
                (float)((double)lengths[b] * (double)global_batch->samples / (double)global_batch->items);
}

static void run_batch(pass *p, const cleat_global_batch *global_batch, int64_t step) {
    cleat_fed_batch fed;
    assert_int_equal(cleat_feed_next(p->feed, &fed, NULL), CLEAT_OK);
    assert_non_null(fed.micro_batch);
    const cleat_work_graph *graph = &p->session->work->train[fed.micro_batch->bucket];
    cleat_dropout_key key = {.seed = 77, .step = step, .first = fed.micro_batch->first};
    cleat_session_prepare(p->session, graph, fed.bytes, &fed.host, global_batch, &key);
    if (p->by_items) weigh_by_items(p, graph, &fed, global_batch);
    assert_int_equal(cleat_feed_run(p->feed, graph, &fed, NULL), CLEAT_OK);
    cleat_feed_release(p->feed, &fed);
}

/* Reads gradient and loss terms, and zeroes them. */
static void collect_results(pass *p, global_batch_results *r) {
    cleat_exec *exec = p->session->exec;
    const cleat_tensor *gradient = &p->session->work->store->flat[CLEAT_FLAT_GRADIENTS],
                       *terms = p->session->work->terms;
    float *zeros = cleat_alloc((size_t)r->elements, sizeof *zeros);
    float *values = r->gradient[r->count] = cleat_alloc((size_t)r->elements, sizeof *values);
    assert_non_null(zeros);
    assert_non_null(values);
    assert_int_equal(cleat_exec_read_unchecked(exec, 0, gradient, values, NULL), CLEAT_OK);
    assert_int_equal(cleat_exec_read_unchecked(exec, 0, terms, r->terms[r->count], NULL), CLEAT_OK);
    assert_int_equal(cleat_exec_write_unchecked(exec, 0, gradient, zeros, NULL), CLEAT_OK);
    assert_int_equal(cleat_exec_write_unchecked(exec, 0, terms, zeros, NULL), CLEAT_OK);
    cleat_free(zeros);
}

/* The divisor of a global batch of one batch, counted independently of the code under test. */
static cleat_global_batch count_whole(const pass *p, const cleat_micro_batch *micro_batch) {
    cleat_global_batch whole = {.micro_batches = 1, .samples = micro_batch->count};
    for (uint32_t i = 0; i < micro_batch->count; ++i)
        whole.items += (int64_t)strlen(cleat_rna_sequence(p->dataset, micro_batch->samples[i]));
    return whole;
}

/* Runs the global batches of an epoch in micro-batches of at most `most` samples; GLOBAL_BATCH is the
 * reference. The n-th has the dropout of step n + `later`. */
static global_batch_results run_global_batches(const tiny *t, int64_t most, bool by_items, int64_t later,
                                               const char *const *set) {
    pass p = pass_open(t, most, set);
    p.by_items = by_items;
    global_batch_results r = {.elements = cleat_session_flat(p.session), .n_terms = cleat_model_terms(p.model) + 1};
    cleat_rng_key rng_key = {.seed = 5, .epoch = 1};
    cleat_batches *batches = NULL;
    cleat_global_batch global_batch;
    const cleat_batches_spec spec = {.dataset = p.dataset,
                                     .samples = p.samples,
                                     .n_samples = p.sample_count,
                                     .buckets = p.session->work->buckets,
                                     .n_buckets = BUCKETS,
                                     .rng_key = &rng_key};
    assert_int_equal(cleat_batches_create(&spec, &batches, NULL), CLEAT_OK);
    assert_int_equal(cleat_feed_start(p.feed, batches, 0, &rng_key, NULL), CLEAT_OK);
    for (; cleat_batches_global_batch(batches, r.count, &global_batch); ++r.count) {
        assert_true(r.count < MAX_GLOBAL_BATCHES);
        if (most == GLOBAL_BATCH) {
            assert_int_equal(global_batch.micro_batches, 1);
            global_batch = count_whole(&p, cleat_batches_get(batches, r.count));
        }
        r.samples[r.count] = global_batch.samples;
        for (size_t i = 0; i < global_batch.micro_batches; ++i) run_batch(&p, &global_batch, (int64_t)r.count + later);
        collect_results(&p, &r);
    }
    cleat_feed_stop(p.feed);
    cleat_batches_destroy(batches);
    pass_close(&p);
    return r;
}

static double distance(const float *a, const float *b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    return sqrt(sum);
}

static double rel_error(const float *a, const float *b, int64_t count) {
    double own = 0;
    for (int64_t i = 0; i < count; ++i) own += (double)b[i] * b[i];
    return distance(a, b, count) / sqrt(own);
}

/* Rounding of reordered f32 sums of a few hundred terms. */
static const double tolerance = 2e-6;

static void assert_same_global_batches(const global_batch_results *parts, const global_batch_results *whole,
                                       int64_t most) {
    double gradients = 0, terms = 0;
    assert_int_equal(parts->count, whole->count);
    for (size_t w = 0; w < whole->count; ++w) {
        assert_int_equal(parts->samples[w], whole->samples[w]);
        double d = rel_error(parts->gradient[w], whole->gradient[w], whole->elements);
        if (!(d <= tolerance))
            fail_msg("micro-batches of %lld: the gradient of global batch %zu (%lld samples) is %.2g off",
                     (long long)most, w, (long long)whole->samples[w], d);
        gradients = fmax(gradients, d);
        for (int k = 0; k < whole->n_terms; ++k) {
            double off = fabs((double)parts->terms[w][k] - whole->terms[w][k]);
            if (!(off <= tolerance * fmax(fabs((double)whole->terms[w][k]), 1e-3)))
                fail_msg("micro-batches of %lld: term %d of global batch %zu is %g instead of %g", (long long)most, k,
                         w, (double)parts->terms[w][k], (double)whole->terms[w][k]);
            if (k == whole->n_terms - 1) terms = fmax(terms, off / fabs((double)whole->terms[w][k]));
        }
    }
    print_message("micro-batches of %lld: %zu global batches, gradients within %.2g, losses within %.2g\n",
                  (long long)most, whole->count, gradients, terms);
}

static void global_batches_add_up(const tiny *t, bool by_items, const char *const *set) {
    static const int64_t micro_batches[] = {1, 2, 3, 5};
    global_batch_results whole = run_global_batches(t, GLOBAL_BATCH, by_items, 0, set);
    size_t full = 0, truncated_file = 0;
    for (size_t w = 0; w < whole.count; ++w) ++*(whole.samples[w] == GLOBAL_BATCH ? &full : &truncated_file);
    assert_true(full >= 2);
    assert_int_equal(truncated_file, BUCKETS);
    for (size_t i = 0; i < sizeof micro_batches / sizeof *micro_batches; ++i) {
        global_batch_results parts = run_global_batches(t, micro_batches[i], by_items, 0, set);
        assert_same_global_batches(&parts, &whole, micro_batches[i]);
        results_free(&parts);
    }
    results_free(&whole);
}

static const char *const random_samples[] = {"model.dropout=0.3", NULL}; /* with mutation and crops */
static const char *const whole_samples[] = {"model.dropout=0.1", "data.crop=0",
                                            NULL}; /* because items are counted before cropping */

static void gradients_of_micro_batches_are_the_full_batch_s(void **state) {
    tiny t = more_molecules(*state);
    global_batches_add_up(&t, false, random_samples);
}

static void gradients_normalised_by_items_are_too(void **state) {
    tiny t = more_molecules(*state);
    global_batches_add_up(&t, true, whole_samples);
}

/* Shows that the comparison is sensitive: a different step drops different elements. */
static void dropout_is_in_those_gradients(void **state) {
    tiny t = more_molecules(*state);
    global_batch_results a = run_global_batches(&t, GLOBAL_BATCH, false, 0, random_samples);
    global_batch_results b = run_global_batches(&t, GLOBAL_BATCH, false, 1, random_samples);
    for (size_t w = 0; w < a.count; ++w) assert_true(rel_error(b.gradient[w], a.gradient[w], a.elements) > 1e-2);
    results_free(&a);
    results_free(&b);
}

/* --- whole runs ----------------------------------------------------------------------------------------------- */

static float *trained_parameters(const tiny *t, const char *run, int64_t *count) {
    char path[TINY_PATH];
    cleat_safetensors *file = NULL;
    float *values = NULL;
    size_t capacity = 0, n = 0;
    assert_int_equal(cleat_safetensors_open(tiny_last_file(t, run, "model.safetensors", path), &file, NULL), CLEAT_OK);
    for (size_t i = 0; i < cleat_safetensors_count(file); ++i) {
        const cleat_st_tensor *tensor = cleat_safetensors_at(file, i);
        for (int64_t k = 0; k < cleat_st_elements(tensor); ++k) {
            assert_int_equal(cleat_grow(&values, n, &capacity, NULL), CLEAT_OK);
            values[n++] = ((const float *)tensor->data)[k];
        }
    }
    cleat_safetensors_close(file);
    *count = (int64_t)n;
    return values;
}

enum { MAX_STEPS = 64 };

typedef struct step_log {
    size_t count;
    double loss[MAX_STEPS], rate[MAX_STEPS], norm[MAX_STEPS];
} step_log;

static double number(const cJSON *record, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(record, name);
    if (!cJSON_IsNumber(item)) fail_msg("a step without '%s'", name);
    return item->valuedouble;
}

static step_log read_steps(const tiny *t, const char *run) {
    step_log log = {0};
    char name[64], path[TINY_PATH];
    size_t size;
    snprintf(name, sizeof name, "%s/metrics.jsonl", run);
    char *text = tiny_read(tiny_path(t, name, path), &size), *rest = text;
    for (char *line; (line = strtok_r(rest, "\n", &rest));) {
        cJSON *record = cJSON_Parse(line);
        if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(record, "kind")), "train") == 0) {
            assert_true(log.count < MAX_STEPS);
            assert_int_equal((size_t)number(record, "step"), log.count + 1);
            log.loss[log.count] = number(record, "loss");
            log.rate[log.count] = number(record, "learning_rate");
            log.norm[log.count++] = number(record, "grad_norm");
        }
        cJSON_Delete(record);
    }
    cleat_free(text);
    return log;
}

#define RUN "data.buckets=12,32", "data.max_length=32", "train.effective_batch_size=6", "train.average_decay=none"

static void train_in(const tiny *t, const char *run, const char *batch_size, const char *rate) {
    /* A large eps prevents AdamW from turning rounding noise into full steps. */
    tiny_train_to(
        CLEAT_OK, t, run,
        SET(RUN, batch_size, rate, "train.epochs=2", "train.eps=1e-3", "train.max_grad_norm=0.5", "model.dropout=0.2"),
        false, 0);
}

/* Two epochs of clipped steps: the difference of the parameters relative to their change in training. Every
 * step adds a relative rounding error of about 1e-7, which later steps propagate. */
static void runs_agree_whatever_the_micro_batch(void **state) {
    static const char *const sizes[] = {"train.batch_size=1", "train.batch_size=2", "train.batch_size=3"};
    tiny t = more_molecules(*state);
    int64_t count, other;
    train_in(&t, "start", "train.batch_size=6", "train.learning_rate=1e-12");
    train_in(&t, "whole", "train.batch_size=6", "train.learning_rate=1e-2");
    step_log whole = read_steps(&t, "whole");
    float *start = trained_parameters(&t, "start", &count), *expected = trained_parameters(&t, "whole", &count);
    assert_true(whole.count > 10);
    size_t clipped = 0;
    for (size_t s = 0; s < whole.count; ++s) clipped += whole.norm[s] > 0.5;
    assert_true(clipped > whole.count / 2);
    for (int i = 0; i < 3; ++i) {
        char run[16];
        snprintf(run, sizeof run, "parts%d", i);
        train_in(&t, run, sizes[i], "train.learning_rate=1e-2");
        step_log parts = read_steps(&t, run);
        float *found = trained_parameters(&t, run, &other);
        double losses = 0, norms = 0;
        assert_int_equal(parts.count, whole.count);
        assert_int_equal(other, count);
        for (size_t s = 0; s < whole.count; ++s) {
            assert_true(parts.rate[s] == whole.rate[s]);
            losses = fmax(losses, fabs(parts.loss[s] / whole.loss[s] - 1));
            norms = fmax(norms, fabs(parts.norm[s] / whole.norm[s] - 1));
        }
        double parameters = distance(found, expected, count) / distance(expected, start, count);
        print_message("%s: %zu steps, parameters within %.2g, losses %.2g, norms %.2g\n", sizes[i], whole.count,
                      parameters, losses, norms);
        assert_true(parameters <= 1e-5);
        assert_true(losses <= 1e-5);
        assert_true(norms <= 1e-4);
        cleat_free(found);
    }
    cleat_free(expected);
    cleat_free(start);
}

/* In an epoch that changes no parameter, the logged losses, weighted by the samples of their global batches,
 * equal the loss that an evaluation measures on the training samples. */
static void a_global_batch_is_divided_by_its_own_samples(void **state) {
    tiny t = more_molecules(*state);
    const char *const set[] = {
        RUN,           "train.batch_size=2",      "train.epochs=1",       "train.learning_rate=1e-12",
        "data.crop=0", "data.mutation=0",         "train.weight_decay=0", "train.warmup_steps=0",
        "run.seed=9",  "train.schedule=constant", "model.dropout=0",      NULL};
    tiny_train_to(CLEAT_OK, &t, "still", set, false, 0);
    step_log log = read_steps(&t, "still");
    cleat_profile *profile = tiny_profile(&t, set);
    cleat_dataset *dataset = NULL;
    cleat_batches *batches = NULL;
    cleat_lengths lengths;
    cleat_bucket buckets[CLEAT_BUCKETS];
    cleat_metrics metrics;
    cleat_global_batch global_batch;
    uint32_t *samples = NULL;
    size_t count = 0;
    char path[TINY_PATH];
    const cleat_rng_key rng_key = {.seed = 9};
    assert_int_equal(cleat_rna_open(t.data, NULL, &dataset, NULL), CLEAT_OK);
    assert_int_equal(cleat_dataset_samples(dataset, CLEAT_SPLIT_TRAIN, &samples, &count, NULL), CLEAT_OK);
    assert_int_equal(cleat_lengths_choose(profile, 0, dataset, samples, count, &lengths, NULL), CLEAT_OK);
    cleat_lengths_global_batches(&lengths, 6, buckets);
    const cleat_batches_spec spec = {.dataset = dataset,
                                     .samples = samples,
                                     .n_samples = count,
                                     .buckets = buckets,
                                     .n_buckets = lengths.count,
                                     .rng_key = &rng_key};
    assert_int_equal(cleat_batches_create(&spec, &batches, NULL), CLEAT_OK);
    assert_int_equal(cleat_batches_global_batch_count(batches), log.count);
    double sum = 0;
    int64_t smallest = INT64_MAX, largest = 0;
    for (size_t w = 0; cleat_batches_global_batch(batches, w, &global_batch); ++w) {
        sum += log.loss[w] * (double)global_batch.samples;
        smallest = global_batch.samples < smallest ? global_batch.samples : smallest;
        largest = global_batch.samples > largest ? global_batch.samples : largest;
    }
    assert_true(smallest < largest);
    assert_int_equal(cleat_evaluate(profile, tiny_path(&t, "still", path), "train", &metrics, NULL), CLEAT_OK);
    double expected = cleat_metrics_get(&metrics, "loss"), found = sum / (double)count;
    print_message("loss %.7g, evaluated %.7g\n", found, expected);
    assert_true(fabs(found / expected - 1) <= 1e-5);
    cleat_batches_destroy(batches);
    cleat_samples_free(samples);
    cleat_dataset_destroy(dataset);
    cleat_profile_destroy(profile);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gradients_of_micro_batches_are_the_full_batch_s, tiny_setup, tiny_teardown),
        cmocka_unit_test_setup_teardown(gradients_normalised_by_items_are_too, tiny_setup, tiny_teardown),
        cmocka_unit_test_setup_teardown(dropout_is_in_those_gradients, tiny_setup, tiny_teardown),
        cmocka_unit_test_setup_teardown(runs_agree_whatever_the_micro_batch, tiny_setup, tiny_teardown),
        cmocka_unit_test_setup_teardown(a_global_batch_is_divided_by_its_own_samples, tiny_setup, tiny_teardown),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
