/* Measures how fast a device runs cleat's kernels, and how fast its units are: times a few graphs once and stores
 * the results on disk.
 *
 * The sustained rates are those at which the estimates (fit/estimate.h) of the timed graphs equal their measured
 * times. The peaks are those of loops in registers (peaks.h).
 *
 * Timed work takes at least 32 times the launch cost, and exceeds the cache. Nothing is clipped: a share
 * above 1, or a peak below half of the card file's, is a warning. On CPUs the cost of a launch is that of
 * a small kernel, which wakes the driver's threads; on GPUs that of an empty one. */
#include "session/rates.h"

#include "cleat/ops.h"
#include "core/clock.h"
#include "core/files.h"
#include "core/lock.h"
#include "core/memory.h"
#include "core/string.h"
#include "device/device.h"
#include "exec/copy.h"
#include "fit/estimate.h"
#include "session/peaks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Increase FORMAT when the measurement changes: the name of the file depends on it. */
enum { FORMAT = 3, HASH = 33, PATH = 1024 };

/* --- the graphs ----------------------------------------------------------------------------------------------- */

typedef struct subject {
    const char *name;
    /* sizes: halved from `first` on until the graph fits the permitted memory; doubled up to `most` until a
     * launch is long enough (cleat_find_size) */
    int64_t first, least, most;
    void (*build)(cleat_graph *graph, int64_t size);
} subject;

/* A linear layer with parameters "NAME.weight" and "NAME.bias". x [rows, in] -> [rows, out] */
static cleat_tensor *layer(cleat_graph *graph, const char *name, cleat_tensor *x, int64_t in, int64_t out) {
    char weight[CLEAT_NAME], bias[CLEAT_NAME];
    const int64_t shape[] = {out, in};
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    cleat_tensor *w = cleat_param(graph, weight, 2, shape, (cleat_init){CLEAT_INIT_ZERO, 0});
    cleat_tensor *b = cleat_param(graph, bias, 1, shape, (cleat_init){CLEAT_INIT_ZERO, 0});
    return cleat_linear(graph, x, w, b, NULL);
}

/* The products of a feed-forward block. Above the first size they are 16 times as large: a card that takes
 * a few microseconds for the small ones does not reach full speed with them. */
enum { PRODUCT_ROWS = 2048 };
typedef struct block_size {
    int64_t rows, width, hidden;
} block_size;

static block_size block_of(int64_t size) {
    if (size <= PRODUCT_ROWS) return (block_size){size, 256, 1024};
    return (block_size){size / 2, 1024, 4096};
}

/* In training: forward, and the gradients of inputs and weights. */
static void build_products(cleat_graph *graph, int64_t size) {
    const block_size b = block_of(size);
    const int64_t shape[] = {b.rows, b.width};
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 2, shape);
    cleat_tensor *dy = cleat_input(graph, "dy", CLEAT_F32, 2, shape);
    cleat_require_grad(graph, x);
    cleat_tensor *hidden = layer(graph, "up", x, b.width, b.hidden);   /* [rows, hidden] */
    cleat_tensor *y = layer(graph, "down", hidden, b.hidden, b.width); /* [rows, width] */
    cleat_backward_from(graph, &y, &dy, 1);
}

/* The same products in half precision, computed by the card's matrix unit. */
static void build_half_products(cleat_graph *graph, int64_t size) {
    const block_size b = block_of(size);
    const int64_t shape[] = {b.rows, b.width}, up_shape[] = {b.hidden, b.width}, down_shape[] = {b.width, b.hidden};
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F16, 2, shape), *dy = cleat_input(graph, "dy", CLEAT_F16, 2, shape);
    cleat_tensor *up = cleat_input(graph, "up", CLEAT_F16, 2, up_shape);
    cleat_tensor *down = cleat_input(graph, "down", CLEAT_F16, 2, down_shape);
    cleat_tensor *const wanted[] = {x, up, down};
    for (int i = 0; i < 3; ++i) cleat_require_grad(graph, wanted[i]);
    cleat_tensor *hidden = cleat_linear(graph, x, up, NULL, NULL);   /* [rows, hidden] */
    cleat_tensor *y = cleat_linear(graph, hidden, down, NULL, NULL); /* [rows, width] */
    cleat_backward_from(graph, &y, &dy, 1);
}

/* z = x + y over `elements` elements. x and y are persistent tensors, allocated once and written before they
 * are read. */
static void build_stream(cleat_graph *graph, int64_t elements) {
    cleat_tensor *x = cleat_state(graph, "x", CLEAT_F32, 1, &elements);
    cleat_tensor *y = cleat_state(graph, "y", CLEAT_F32, 1, &elements);
    cleat_retain(graph, cleat_add(graph, x, y));
}

/* The rounds of a loop of peaks.h, or 0. */
static cleat_tensor *make_rounds(cleat_graph *graph) {
    return cleat_state(graph, "rounds", CLEAT_I32, 1, (int64_t[]){1});
}

static void build_launches(cleat_graph *graph, int64_t count) {
    cleat_tensor *rounds = make_rounds(graph);
    for (int64_t i = 0; i < count; ++i) cleat_peak_node(graph, CLEAT_PEAK_LAUNCH, rounds, 1);
}

/* The same on a CPU: `count` pairs of a product and an addition that are too small to take measurable time. An empty
 * kernel takes PoCL 2 us, but a small one 16 us, because it wakes the driver's threads (2026-11-27, two cores). */
static void build_small_kernels(cleat_graph *graph, int64_t count) {
    enum { ROWS = 32, WIDTH = 128 };
    const int64_t shape[] = {ROWS, WIDTH};
    cleat_tensor *x = cleat_state(graph, "x", CLEAT_F32, 2, shape), *sum = x;
    for (int64_t i = 0; i < count; ++i) sum = cleat_add(graph, layer(graph, "layer", x, WIDTH, WIDTH), sum);
    cleat_retain(graph, sum);
}

static void build_f32_loop(cleat_graph *graph, int64_t groups) {
    cleat_retain(graph, cleat_peak_node(graph, CLEAT_PEAK_F32, make_rounds(graph), groups));
}

static void build_matrix_loop(cleat_graph *graph, int64_t groups) {
    cleat_retain(graph, cleat_peak_node(graph, CLEAT_PEAK_MATRIX, make_rounds(graph), groups));
}

static const subject products = {"products", PRODUCT_ROWS, 64, 65536, build_products};
static const subject half_products = {"half products", PRODUCT_ROWS, 64, 65536, build_half_products};
static const subject launches = {"launches", 64, 4, 64, build_launches};
static const subject small_kernels = {"launches", 64, 4, 64, build_small_kernels};

/* --- a graph on the device ------------------------------------------------------------------------------------ */

typedef struct trial {
    cleat_store *store;
    cleat_graph *graph;
    cleat_plan *plan;
    cleat_exec *exec;
} trial;

static void trial_destroy(trial *t) {
    cleat_exec_destroy(t->exec);
    cleat_plan_destroy(t->plan);
    cleat_graph_destroy(t->graph);
    cleat_store_destroy(t->store);
    *t = (trial){0};
}

static cleat_status trial_plan(const subject *what, int64_t size, const cleat_device_facts *facts, trial *t,
                               cleat_error *error) {
    cleat_status status = cleat_store_create(&t->store, error);
    if (!status) status = cleat_graph_create(t->store, what->name, &t->graph, error);
    if (status) return status;
    what->build(t->graph, size);
    status = cleat_graph_status(t->graph, error);
    return status ? status : cleat_plan_create(&t->graph, 1, facts, &t->plan, error);
}

/* Half of the free memory, because other processes may need some at the same time. */
static int64_t memory_allowed(const cleat_device *device) {
    const cleat_device_facts *facts = cleat_device_get_facts(device);
    int64_t available = facts->memory_free > 0 ? facts->memory_free : facts->memory_total;
    return (available - cleat_device_allocated(device)) / 2;
}

/* Fills a tensor with non-zero values: products of zeros would draw less power than those of a training step
 * and let a card clock higher. */
static cleat_status fill(trial *t, const cleat_tensor *tensor, cleat_error *error) {
    int64_t elements = cleat_tensor_elements(tensor);
    float *values = cleat_alloc((size_t)elements, sizeof *values);
    if (!values) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for '%s'", tensor->name);
    if (tensor->dtype == CLEAT_F16) /* 0.25 to 0.5 with either sign */
        for (int64_t i = 0; i < elements; ++i)
            ((uint16_t *)values)[i] = (uint16_t)(0x3400 | i * 7919 % 1024 | i % 2 << 15);
    else
        for (int64_t i = 0; i < elements; ++i) values[i] = (float)(i * 7919 % 2039) / 2039.0f - 0.5f;
    cleat_status status = cleat_exec_write_unchecked(t->exec, 0, tensor, values, error);
    cleat_free(values);
    return status;
}

static cleat_status trial_fill(trial *t, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < t->graph->tensor_count && !status; ++i)
        if (t->graph->tensors[i]->role == CLEAT_ROLE_INPUT) status = fill(t, t->graph->tensors[i], error);
    for (size_t i = 0; i < cleat_store_count(t->store) && !status; ++i)
        status = fill(t, cleat_store_param(t->store, i), error);
    return status;
}

/* Creates the trial of this size; for what->first, of the largest size that fits. CLEAT_ERR_FIT: the size
 * needs more memory than allowed. */
static cleat_status trial_create(cleat_device *device, const subject *what, int64_t size, trial *made,
                                 cleat_error *error) {
    const cleat_device_facts *facts = cleat_device_get_facts(device);
    const int64_t allowed = memory_allowed(device), least = size == what->first ? what->least : size;
    trial t = {0};
    cleat_status status = CLEAT_ERR_FIT;
    for (; size >= least; size /= 2) {
        status = trial_plan(what, size, facts, &t, error);
        bool fits = !status && cleat_plan_bytes(t.plan) <= allowed, last = size / 2 < least;
        if (fits || last || (status != CLEAT_OK && status != CLEAT_ERR_FIT)) break;
        trial_destroy(&t);
    }
    if (!status && size > what->first && cleat_plan_bytes(t.plan) > allowed)
        status = cleat_fail(error, CLEAT_ERR_FIT, "%s of size %lld need more than half of the free memory", what->name,
                            (long long)size);
    if (!status) status = cleat_exec_create(device, t.plan, &t.exec, error);
    if (!status) status = cleat_exec_build(t.exec, error);
    if (!status) status = trial_fill(&t, error);
    if (status) {
        trial_destroy(&t);
        return cleat_fail_in(error, status, "measuring '%s'", facts->name);
    }
    *made = t;
    return CLEAT_OK;
}

/* --- timing --------------------------------------------------------------------------------------------------- */

static cleat_status time_burst(trial *t, int runs, double *seconds, cleat_error *error) {
    double start = cleat_seconds();
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < runs && !status; ++i) status = cleat_exec_enqueue(t->exec, 0, error);
    if (!status) status = cleat_exec_finish(t->exec, error);
    *seconds = (cleat_seconds() - start) / runs;
    return status;
}

/* Seconds per run, taken from the fastest burst: other load on the machine can only make a burst longer,
 * and the result is stored. Bursts are long enough that their start and end do not matter, and short
 * enough that some of them are not disturbed. They are repeated for `enough` seconds, but at least five
 * times. */
static cleat_status time_runs(trial *t, double enough, double *seconds, cleat_error *error) {
    enum { MIN_BURSTS = 5, MAX_RUNS = 4096 };
    const double burst_seconds = 0.004;
    double each = 0, fastest = INFINITY;
    int runs = 1;
    cleat_status status = time_burst(t, 1, &each, error); /* creates the kernels */
    if (!status) status = time_burst(t, 1, &each, error);
    while (!status && each * runs < burst_seconds && runs < MAX_RUNS) {
        runs *= 2;
        status = time_burst(t, runs, &each, error);
    }
    double end = cleat_seconds() + enough;
    for (int i = 0; !status && (i < MIN_BURSTS || cleat_seconds() < end); ++i) {
        status = time_burst(t, runs, &each, error);
        if (each < fastest) fastest = each;
    }
    if (!status) *seconds = fastest;
    return status;
}

static const double ENOUGH = 0.2;

/* A graph being timed. */
typedef struct timing {
    cleat_device *device;
    const subject *what;
    trial trial;    /* of the last size that fitted; its plan remains, the device memory does not */
    double seconds; /* of a run */
    cleat_tensor *rounds;
} timing;

static cleat_status count_launches(const trial *t, double *count, cleat_error *error) {
    const cleat_rates only_launches = {.flops = INFINITY, .bytes = INFINITY, .launch_seconds = 1};
    return cleat_estimate_graph(t->plan, 0, &only_launches, count, error);
}

/* For cleat_find_size. */
static cleat_status time_size(void *user, int64_t size, double *seconds, cleat_error *error) {
    timing *timed = user;
    trial next = {0};
    double run = 0, count = 0;
    cleat_status status = trial_create(timed->device, timed->what, size, &next, error);
    if (!status) status = time_runs(&next, ENOUGH, &run, error);
    if (!status) status = count_launches(&next, &count, error);
    cleat_exec_destroy(next.exec);
    next.exec = NULL;
    if (status) {
        trial_destroy(&next);
        return status;
    }
    trial_destroy(&timed->trial);
    timed->trial = next;
    timed->seconds = run;
    *seconds = run / count;
    return CLEAT_OK;
}

static cleat_status time_subject(timing *timed, double launch_seconds, cleat_error *error) {
    const cleat_sized_work work = {time_size, timed, timed->what->first, timed->what->most};
    int64_t size = 0;
    double each = 0;
    return cleat_find_size(&work, launch_seconds, &size, &each, error);
}

/* --- sustained rates ------------------------------------------------------------------------------------------ */

/* The measured time, but at least twice the part that the other rates explain, which may be large if little
 * memory made the arrays very small. */
static double at_least_twice(double seconds, double known) {
    return fmax(seconds, 2 * known);
}

/* Finds the `rate` (a member of *rates) at which the estimate equals the measured time. */
static cleat_status solve_rate(const timing *timed, cleat_rates *rates, double *rate, cleat_error *error) {
    enum { HALVINGS = 80 };
    double low = 1, high = 1e20, known = 0, estimate = 0;
    *rate = INFINITY;
    cleat_status status = cleat_estimate_graph(timed->trial.plan, 0, rates, &known, error);
    for (int i = 0; i < HALVINGS && !status; ++i) {
        *rate = sqrt(low * high);
        status = cleat_estimate_graph(timed->trial.plan, 0, rates, &estimate, error);
        if (estimate > at_least_twice(timed->seconds, known))
            low = *rate;
        else
            high = *rate;
    }
    return status;
}

/* Finds the time per launch in the same way. */
static cleat_status solve_launch(const timing *timed, cleat_rates *rates, cleat_error *error) {
    double known = 0, count = 1;
    rates->launch_seconds = 0;
    cleat_status status = cleat_estimate_graph(timed->trial.plan, 0, rates, &known, error);
    if (!status) status = count_launches(&timed->trial, &count, error);
    rates->launch_seconds = (at_least_twice(timed->seconds, known) - known) / count;
    return status;
}

/* The rate of the matrix unit, or 0 (unknown) if none of the kernels chosen for the products runs on it. */
static cleat_status solve_matrix_rate(const timing *timed, cleat_rates *rates, cleat_error *error) {
    const cleat_rates probe = {.flops = 1, .matrix_flops = 1, .bytes = 1};
    cleat_node_estimate node;
    cleat_status status = CLEAT_OK;
    bool on_unit = false;
    for (size_t i = 0; i < timed->trial.graph->node_count && !status && !on_unit; ++i) {
        status = cleat_estimate_node(timed->trial.plan, 0, i, &probe, &node, error);
        on_unit = !status && node.on_matrix_unit;
    }
    return on_unit ? solve_rate(timed, rates, &rates->matrix_flops, error) : status;
}

/* Each rate is computed from the current values of the others, on which its subject depends only weakly; a
 * few rounds suffice. */
static cleat_status measure_sustained(cleat_device *device, cleat_rates *rates, cleat_error *error) {
    enum {
        LAUNCHES,
        STREAM,
        PRODUCTS,
        HALF_PRODUCTS,
        SUBJECTS,
        ROUNDS = 4,
        ARRAYS = 3 * (int)sizeof(float),
        LEAST = 1024
    };
    const cleat_device_facts *facts = cleat_device_get_facts(device);
    const int64_t bytes = cleat_stream_bytes(facts, cleat_device_cache(device), memory_allowed(device));
    const int64_t elements = bytes / ARRAYS > LEAST ? bytes / ARRAYS : LEAST;
    const subject stream = {"addition", elements, LEAST, elements, build_stream};
    const bool is_cpu = facts->kind == CLEAT_DEVICE_CPU;
    const subject *const subjects[SUBJECTS] = {is_cpu ? &small_kernels : &launches, &stream, &products, &half_products};
    const int count = facts->matrix_unit != CLEAT_MATRIX_NONE ? SUBJECTS : HALF_PRODUCTS;
    cleat_rates made = {.flops = INFINITY, .bytes = INFINITY, .source = "measured"};
    timing timings[SUBJECTS] = {0};
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < count && !status; ++i) {
        timings[i] = (timing){.device = device, .what = subjects[i]};
        status = time_subject(&timings[i], made.launch_seconds, error);
        if (i == LAUNCHES && !status) status = solve_launch(&timings[i], &made, error);
    }
    for (int i = 0; i < ROUNDS && !status; ++i) {
        status = solve_launch(&timings[LAUNCHES], &made, error);
        if (!status) status = solve_rate(&timings[STREAM], &made, &made.bytes, error);
        if (!status) status = solve_rate(&timings[PRODUCTS], &made, &made.flops, error);
    }
    if (count > HALF_PRODUCTS && !status) status = solve_matrix_rate(&timings[HALF_PRODUCTS], &made, error);
    for (int i = 0; i < SUBJECTS; ++i) trial_destroy(&timings[i].trial);
    if (!status) *rates = made;
    return status;
}

/* --- peaks ---------------------------------------------------------------------------------------------------- */

/* For cleat_find_size: times `rounds` rounds of the open loop. */
static cleat_status time_rounds(void *user, int64_t rounds, double *seconds, cleat_error *error) {
    const int32_t count = (int32_t)rounds;
    timing *timed = user;
    cleat_status status = cleat_exec_write_unchecked(timed->trial.exec, 0, timed->rounds, &count, error);
    return status ? status : time_runs(&timed->trial, 0, seconds, error);
}

/* Enough groups that none of a device's units waits while others still work. */
static cleat_status measure_loop(cleat_device *device, cleat_peak_kernel kernel, double launch_seconds, double *flops,
                                 cleat_error *error) {
    enum { GROUPS_PER_UNIT = 64, MAX_ROUNDS = 1 << 24 };
    const cleat_device_facts *facts = cleat_device_get_facts(device);
    const int64_t groups = GROUPS_PER_UNIT * (facts->compute_units > 0 ? (int64_t)facts->compute_units : 1);
    const subject loop = {.name = "loop in registers",
                          .first = groups,
                          .least = 1,
                          .most = groups,
                          .build = kernel == CLEAT_PEAK_F32 ? build_f32_loop : build_matrix_loop};
    timing timed = {.device = device, .what = &loop};
    const cleat_sized_work work = {time_rounds, &timed, 1, MAX_ROUNDS};
    int64_t rounds = 0;
    double seconds = 0;
    cleat_status status = trial_create(device, &loop, groups, &timed.trial, error);
    if (!status) timed.rounds = timed.trial.graph->nodes[0]->in[0];
    if (!status) status = cleat_find_size(&work, launch_seconds, &rounds, &seconds, error);
    if (!status) status = time_runs(&timed.trial, ENOUGH, &seconds, error);
    if (!status) {
        const double made = (double)timed.trial.graph->nodes[0]->out[0]->shape[0];
        *flops = made * (double)rounds * cleat_peak_flops(facts, kernel) / seconds;
    }
    trial_destroy(&timed.trial);
    return status;
}

static cleat_status measure_peaks(cleat_device *device, cleat_rates *peaks, cleat_error *error) {
    cleat_rates made;
    cleat_status status = cleat_rates_measure(device, &made, error);
    if (!status) status = measure_loop(device, CLEAT_PEAK_F32, made.launch_seconds, &made.flops, error);
    if (!status && cleat_device_get_facts(device)->matrix_unit != CLEAT_MATRIX_NONE)
        status = measure_loop(device, CLEAT_PEAK_MATRIX, made.launch_seconds, &made.matrix_flops, error);
    if (!status) *peaks = made;
    return status;
}

/* --- the stored rates ----------------------------------------------------------------------------------------- */

/* A set of rates with its own file. */
typedef struct measurement {
    const char *ending; /* of the file */
    cleat_status (*measure)(cleat_device *device, cleat_rates *rates, cleat_error *error);
} measurement;
static const measurement sustained = {".rates", measure_sustained}, peak = {".peaks", measure_peaks};

/* Hashes everything that the rates depend on, except the permitted memory. */
static cleat_status make_key(const cleat_device *device, char key[HASH], cleat_error *error) {
    static const char *const files[] = {"linear/linear.cl", "linear/linear_mma.cl", "arithmetic.cl", "lib/peak.cl",
                                        "lib/peak_mma.cl"};
    const cleat_device_facts *facts = cleat_device_get_facts(device);
    char *text = NULL;
    cleat_string joined = {0};
    cleat_status status = CLEAT_OK;
    cleat_string_add(&joined, "rates %d\n%s\n%s\n%s\n%d %d %d %d", (int)FORMAT, facts->platform, facts->name,
                     facts->driver, (int)facts->work_group, (int)facts->vector_width, (int)facts->compute_units,
                     (int)facts->matrix_unit);
    for (size_t i = 0; i < sizeof files / sizeof *files && !status; ++i) {
        char *source = NULL;
        status = cleat_kernel_source(files[i], &source, error);
        if (!status) cleat_string_add(&joined, "\n%s", source);
        cleat_free(source);
    }
    cleat_status detached = cleat_string_detach(&joined, &text, status ? NULL : error);
    if (!status) status = detached;
    if (!status) cleat_hash_text(text, strlen(text), key);
    cleat_free(text);
    return status;
}

static cleat_status make_path(const cleat_device *device, const measurement *what, char *path, size_t size,
                              cleat_error *error) {
    char key[HASH];
    cleat_status status = make_key(device, key, error);
    return status ? status : cleat_cache_path("", key, what->ending, path, size, error);
}

cleat_status cleat_rates_path(const cleat_device *device, char *path, size_t size, cleat_error *error) {
    return make_path(device, &sustained, path, size, error);
}

/* A file consists of a line of numbers and the hash of that line. */
enum { LINE = 200 };
static void print_rates(const cleat_rates *rates, char text[LINE]) {
    char flops[32], matrix[32], bytes[32], launch[32], hash[HASH];
    cleat_number_print(rates->flops, flops);
    cleat_number_print(rates->bytes, bytes);
    cleat_number_print(rates->launch_seconds, launch);
    cleat_number_print(rates->matrix_flops, matrix);
    int length = snprintf(text, LINE - HASH - 2, "%s %s %s %s\n", flops, bytes, launch, matrix);
    cleat_hash_text(text, (size_t)length, hash);
    snprintf(text + length, HASH + 1, "%s\n", hash);
}

/* Parses the first `n` numbers of `text`. */
static bool parse_numbers(const char *text, double *values, int n) {
    for (int i = 0; i < n; ++i) {
        char word[32];
        size_t length = strcspn(text, " \n");
        if (length == 0 || length >= sizeof word) return false;
        memcpy(word, text, length);
        word[length] = 0;
        if (!cleat_number_parse(word, &values[i]) || values[i] < 0) return false;
        text += length + (text[length] != 0);
    }
    return true;
}

bool cleat_rates_read(const char *path, cleat_rates *rates) {
    enum { FLOPS, BYTES, LAUNCH, MATRIX, NUMBERS };
    double values[NUMBERS];
    char *data = NULL, whole[LINE];
    size_t size = 0;
    if (!cleat_file_exists(path) || cleat_file_read(path, &data, &size, NULL) != CLEAT_OK) return false;
    bool ok = parse_numbers(data, values, NUMBERS) && values[FLOPS] > 0 && values[BYTES] > 0;
    if (ok) {
        cleat_rates found = {.flops = values[FLOPS],
                             .matrix_flops = values[MATRIX],
                             .bytes = values[BYTES],
                             .launch_seconds = values[LAUNCH],
                             .source = "measured"};
        print_rates(&found, whole);
        ok = size == strlen(whole) && memcmp(data, whole, size) == 0;
        if (ok) *rates = found;
    }
    if (!ok) cleat_log(CLEAT_LOG_DEBUG, "rates: %s is damaged, measuring again", path);
    cleat_free(data);
    return ok;
}

void cleat_rates_write(const char *path, const cleat_rates *rates) {
    char text[LINE];
    cleat_error error = {0};
    print_rates(rates, text);
    if (cleat_file_write(path, text, strlen(text), &error) != CLEAT_OK)
        cleat_log(CLEAT_LOG_DEBUG, "rates: not saved: %s", error.text);
}

/* Keeps the better of two values of each rate, because other load on the machine can only make a rate look
 * worse. */
static void keep_better(cleat_rates *rates, const cleat_rates *other) {
    rates->flops = fmax(rates->flops, other->flops);
    rates->matrix_flops = fmax(rates->matrix_flops, other->matrix_flops);
    rates->bytes = fmax(rates->bytes, other->bytes);
    rates->launch_seconds = fmin(rates->launch_seconds, other->launch_seconds);
}

/* Each stored rate is the better of the file's and the new one. */
static cleat_status measure_and_save(cleat_device *device, const measurement *what, const char *path,
                                     cleat_rates *rates, cleat_error *error) {
    cleat_rates made, kept;
    double start = cleat_seconds();
    cleat_status status = what->measure(device, &made, error);
    if (status) return status;
    cleat_log(
        CLEAT_LOG_DEBUG,
        "%s: %.4g operations (matrix unit: %.4g) and %.4g bytes per second, %.3g s per launch; measured in %.2f s",
        what->ending + 1, made.flops, made.matrix_flops, made.bytes, made.launch_seconds, cleat_seconds() - start);
    if (*path && cleat_rates_read(path, &kept)) keep_better(&made, &kept);
    if (*path) cleat_rates_write(path, &made);
    *rates = made;
    return CLEAT_OK;
}

/* `again`: measures even if the file has the rates. Without a cache folder nothing is kept, which is not an
 * error. Two processes that measure at the same time would halve each other's rates; the second waits for
 * the first, but no longer than a measurement should take. */
static cleat_status find_rates(cleat_device *device, const measurement *what, bool again, cleat_rates *rates,
                               cleat_error *error) {
    enum { PATIENCE_SECONDS = 30 };
    char path[PATH];
    int lock = -1;
    cleat_status status = make_path(device, what, path, sizeof path, error);
    if (status == CLEAT_ERR_MEMORY) return status;
    if (status) path[0] = 0;
    if (!again && *path && cleat_rates_read(path, rates)) return CLEAT_OK;
    if (*path && cleat_lock(path, PATIENCE_SECONDS, &lock, NULL)) lock = -1;
    status = CLEAT_OK;
    if (again || !*path || !cleat_rates_read(path, rates)) status = measure_and_save(device, what, path, rates, error);
    if (lock >= 0) cleat_unlock(lock);
    return status;
}

cleat_status cleat_rates_measure(cleat_device *device, cleat_rates *rates, cleat_error *error) {
    return find_rates(device, &sustained, false, rates, error);
}

cleat_status cleat_rates_remeasure(cleat_device *device, cleat_rates *rates, cleat_error *error) {
    return find_rates(device, &sustained, true, rates, error);
}

cleat_status cleat_peaks_measure(cleat_device *device, bool again, cleat_rates *peaks, cleat_error *error) {
    cleat_rates rates;
    cleat_status status = again ? cleat_rates_remeasure(device, &rates, error) : CLEAT_OK;
    return status ? status : find_rates(device, &peak, again, peaks, error);
}
