/* Measures how fast a device runs cleat's kernels: times a few small graphs once and stores the result on
 * disk.
 *
 * The rates are those at which the estimates (fit/estimate.h) of the timed graphs equal their measured
 * times. */
#include "session/rates.h"

#include "cleat/ops.h"
#include "core/clock.h"
#include "core/files.h"
#include "core/lock.h"
#include "core/memory.h"
#include "core/text.h"
#include "device/device.h"
#include "exec/copy.h"
#include "fit/estimate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Increase FORMAT when the measurement changes: the name of the file depends on it. */
enum { FORMAT = 2, HASH = 33, PATH = 1024 };

/* --- the graphs ----------------------------------------------------------------------------------------------- */

typedef struct subject {
    const char *name;
    int64_t most, least; /* sizes: halved from `most` on until the graph fits the permitted memory */
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

/* The products of a feed-forward block in training: forward, and the gradients of inputs and weights. */
static void build_products(cleat_graph *graph, int64_t rows) {
    enum { WIDTH = 256, HIDDEN = 1024 };
    const int64_t shape[] = {rows, WIDTH};
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 2, shape);
    cleat_tensor *dy = cleat_input(graph, "dy", CLEAT_F32, 2, shape);
    cleat_require_grad(graph, x);
    cleat_tensor *hidden = layer(graph, "up", x, WIDTH, HIDDEN);   /* [rows, HIDDEN] */
    cleat_tensor *y = layer(graph, "down", hidden, HIDDEN, WIDTH); /* [rows, WIDTH] */
    cleat_backward_from(graph, &y, &dy, 1);
}

/* The same products in half precision, computed by the card's matrix unit. */
static void build_half_products(cleat_graph *graph, int64_t rows) {
    enum { WIDTH = 256, HIDDEN = 1024 };
    const int64_t shape[] = {rows, WIDTH}, up_shape[] = {HIDDEN, WIDTH}, down_shape[] = {WIDTH, HIDDEN};
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F16, 2, shape), *dy = cleat_input(graph, "dy", CLEAT_F16, 2, shape);
    cleat_tensor *up = cleat_input(graph, "up", CLEAT_F16, 2, up_shape);
    cleat_tensor *down = cleat_input(graph, "down", CLEAT_F16, 2, down_shape);
    cleat_tensor *const wanted[] = {x, up, down};
    for (int i = 0; i < 3; ++i) cleat_require_grad(graph, wanted[i]);
    cleat_tensor *hidden = cleat_linear(graph, x, up, NULL, NULL);   /* [rows, HIDDEN] */
    cleat_tensor *y = cleat_linear(graph, hidden, down, NULL, NULL); /* [rows, WIDTH] */
    cleat_backward_from(graph, &y, &dy, 1);
}

/* z = x + y over `elements` elements. x and y are persistent tensors, allocated once and written before they
 * are read. */
static void build_stream(cleat_graph *graph, int64_t elements) {
    cleat_tensor *x = cleat_state(graph, "x", CLEAT_F32, 1, &elements);
    cleat_tensor *y = cleat_state(graph, "y", CLEAT_F32, 1, &elements);
    cleat_retain(graph, cleat_add(graph, x, y));
}

/* `count` pairs of a product and an addition that are too small to take measurable time. */
static void build_launches(cleat_graph *graph, int64_t count) {
    enum { ROWS = 32, WIDTH = 128 };
    const int64_t shape[] = {ROWS, WIDTH};
    cleat_tensor *x = cleat_state(graph, "x", CLEAT_F32, 2, shape), *sum = x;
    for (int64_t i = 0; i < count; ++i) sum = cleat_add(graph, layer(graph, "layer", x, WIDTH, WIDTH), sum);
    cleat_retain(graph, sum);
}

static const subject products = {"products", 2048, 64, build_products};
static const subject half_products = {"half products", 2048, 64, build_half_products};
static const subject stream = {"addition", 64 * 1048576 / 12, 1024, build_stream};
static const subject launches = {"launches", 64, 4, build_launches};

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
    if (status == CLEAT_OK) status = cleat_graph_create(t->store, what->name, &t->graph, error);
    if (status != CLEAT_OK) return status;
    what->build(t->graph, size);
    status = cleat_graph_status(t->graph, error);
    return status == CLEAT_OK ? cleat_plan_create(&t->graph, 1, facts, &t->plan, error) : status;
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
    for (size_t i = 0; i < t->graph->tensor_count && status == CLEAT_OK; ++i)
        if (t->graph->tensors[i]->role == CLEAT_ROLE_INPUT) status = fill(t, t->graph->tensors[i], error);
    for (size_t i = 0; i < cleat_store_count(t->store) && status == CLEAT_OK; ++i)
        status = fill(t, cleat_store_param(t->store, i), error);
    return status;
}

static cleat_status trial_create(cleat_device *device, const subject *what, trial *made, cleat_error *error) {
    const cleat_device_facts *facts = cleat_device_get_facts(device);
    int64_t allowed = memory_allowed(device);
    trial t = {0};
    cleat_status status = CLEAT_ERR_FIT;
    for (int64_t size = what->most; size >= what->least; size /= 2) {
        status = trial_plan(what, size, facts, &t, error);
        bool fits = status == CLEAT_OK && cleat_plan_bytes(t.plan) <= allowed, last = size / 2 < what->least;
        if (fits || last || (status != CLEAT_OK && status != CLEAT_ERR_FIT)) break;
        trial_destroy(&t);
    }
    if (status == CLEAT_OK) status = cleat_exec_create(device, t.plan, &t.exec, error);
    if (status == CLEAT_OK) status = cleat_exec_build(t.exec, error);
    if (status == CLEAT_OK) status = trial_fill(&t, error);
    if (status != CLEAT_OK) {
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
    for (int i = 0; i < runs && status == CLEAT_OK; ++i) status = cleat_exec_run(t->exec, 0, error);
    if (status == CLEAT_OK) status = cleat_exec_finish(t->exec, error);
    *seconds = (cleat_seconds() - start) / runs;
    return status;
}

/* Seconds per run, taken from the fastest burst: other load on the machine can only make a burst longer, and
 * the result is stored. Bursts are long enough that their start and end do not matter, and short enough that
 * some of them are not disturbed. */
static cleat_status time_runs(trial *t, double *seconds, cleat_error *error) {
    enum { MIN_BURSTS = 5, MAX_RUNS = 4096 };
    const double burst_seconds = 0.004, all_seconds = 0.2;
    double each = 0, fastest = INFINITY;
    int runs = 1;
    cleat_status status = time_burst(t, 1, &each, error); /* creates the kernels */
    if (status == CLEAT_OK) status = time_burst(t, 1, &each, error);
    while (status == CLEAT_OK && each * runs < burst_seconds && runs < MAX_RUNS) {
        runs *= 2;
        status = time_burst(t, runs, &each, error);
    }
    double end = cleat_seconds() + all_seconds;
    for (int i = 0; status == CLEAT_OK && (i < MIN_BURSTS || cleat_seconds() < end); ++i) {
        status = time_burst(t, runs, &each, error);
        if (each < fastest) fastest = each;
    }
    if (status == CLEAT_OK) *seconds = fastest;
    return status;
}

/* --- from times to rates -------------------------------------------------------------------------------------- */

/* Times one run and frees the device memory; the plan remains. */
static cleat_status time_subject(cleat_device *device, const subject *what, trial *t, double *seconds,
                                 cleat_error *error) {
    cleat_status status = trial_create(device, what, t, error);
    if (status == CLEAT_OK) status = time_runs(t, seconds, error);
    cleat_exec_destroy(t->exec);
    t->exec = NULL;
    return status;
}

/* The measured time, but at least twice the part that the other rates explain, which may be large if little
 * memory made the arrays very small. */
static double at_least_twice(double seconds, double known) {
    return fmax(seconds, 2 * known);
}

/* Finds the `rate` (a member of *rates) at which the estimate equals `seconds`. */
static cleat_status solve_rate(const trial *t, double seconds, cleat_rates *rates, double *rate, cleat_error *error) {
    enum { HALVINGS = 80 };
    double low = 1, high = 1e20, known = 0, estimate = 0;
    *rate = INFINITY;
    cleat_status status = cleat_estimate_graph(t->plan, 0, rates, &known, error);
    for (int i = 0; i < HALVINGS && status == CLEAT_OK; ++i) {
        *rate = sqrt(low * high);
        status = cleat_estimate_graph(t->plan, 0, rates, &estimate, error);
        if (estimate > at_least_twice(seconds, known))
            low = *rate;
        else
            high = *rate;
    }
    return status;
}

/* Finds the time per launch in the same way. */
static cleat_status solve_launch(const trial *t, double seconds, cleat_rates *rates, cleat_error *error) {
    const cleat_rates only_launches = {.flops = INFINITY, .bytes = INFINITY, .launch_seconds = 1};
    double known = 0, count = 1;
    rates->launch_seconds = 0;
    cleat_status status = cleat_estimate_graph(t->plan, 0, rates, &known, error);
    if (status == CLEAT_OK) status = cleat_estimate_graph(t->plan, 0, &only_launches, &count, error);
    rates->launch_seconds = (at_least_twice(seconds, known) - known) / count;
    return status;
}

/* The rate of the matrix unit, or 0 (unknown) if none of the kernels chosen for the products runs on it. */
static cleat_status solve_matrix_rate(const trial *t, double seconds, cleat_rates *rates, cleat_error *error) {
    const cleat_rates probe = {.flops = 1, .matrix_flops = 1, .bytes = 1};
    cleat_node_estimate node;
    cleat_status status = CLEAT_OK;
    bool on_unit = false;
    for (size_t i = 0; i < t->graph->node_count && !status && !on_unit; ++i) {
        status = cleat_estimate_node(t->plan, 0, i, &probe, &node, error);
        on_unit = !status && node.on_matrix_unit;
    }
    return on_unit ? solve_rate(t, seconds, rates, &rates->matrix_flops, error) : status;
}

/* Each rate is computed from the current values of the others, which each subject depends on only weakly; a
 * few rounds suffice. */
static cleat_status measure_all(cleat_device *device, cleat_rates *rates, cleat_error *error) {
    enum { LAUNCHES, STREAM, PRODUCTS, HALF_PRODUCTS, SUBJECTS, ROUNDS = 4 };
    static const subject *const subjects[SUBJECTS] = {&launches, &stream, &products, &half_products};
    const bool has_unit = cleat_device_get_facts(device)->matrix_unit != CLEAT_MATRIX_NONE;
    cleat_rates made = {.flops = INFINITY, .bytes = INFINITY, .source = "measured"};
    trial trials[SUBJECTS] = {0};
    double seconds[SUBJECTS] = {0};
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < (has_unit ? SUBJECTS : HALF_PRODUCTS) && status == CLEAT_OK; ++i)
        status = time_subject(device, subjects[i], &trials[i], &seconds[i], error);
    for (int i = 0; i < ROUNDS && status == CLEAT_OK; ++i) {
        status = solve_launch(&trials[LAUNCHES], seconds[LAUNCHES], &made, error);
        if (status == CLEAT_OK) status = solve_rate(&trials[STREAM], seconds[STREAM], &made, &made.bytes, error);
        if (status == CLEAT_OK) status = solve_rate(&trials[PRODUCTS], seconds[PRODUCTS], &made, &made.flops, error);
    }
    if (has_unit && status == CLEAT_OK)
        status = solve_matrix_rate(&trials[HALF_PRODUCTS], seconds[HALF_PRODUCTS], &made, error);
    for (int i = 0; i < SUBJECTS; ++i) trial_destroy(&trials[i]);
    if (status == CLEAT_OK) *rates = made;
    return status;
}

/* --- the stored rates ----------------------------------------------------------------------------------------- */

/* Hashes everything that the rates depend on, except the permitted memory. */
static cleat_status make_key(const cleat_device *device, char key[HASH], cleat_error *error) {
    const cleat_device_facts *facts = cleat_device_get_facts(device);
    char *linear = NULL, *matrix = NULL, *add = NULL, *text = NULL;
    cleat_text joined = {0};
    cleat_status status = cleat_kernel_source("linear/linear.cl", &linear, error);
    if (status == CLEAT_OK) status = cleat_kernel_source("linear/linear_mma.cl", &matrix, error);
    if (status == CLEAT_OK) status = cleat_kernel_source("arithmetic.cl", &add, error);
    if (status == CLEAT_OK) {
        cleat_text_add(&joined, "rates %d\n%s\n%s\n%s\n%d %d %d %d\n%s\n%s\n%s", (int)FORMAT, facts->platform,
                       facts->name, facts->driver, (int)facts->work_group, (int)facts->vector_width,
                       (int)facts->compute_units, (int)facts->matrix_unit, linear, matrix, add);
        status = cleat_text_detach(&joined, &text, error);
    }
    if (status == CLEAT_OK) cleat_hash_text(text, strlen(text), key);
    cleat_free(text);
    cleat_free(add);
    cleat_free(matrix);
    cleat_free(linear);
    return status;
}

cleat_status cleat_rates_path(const cleat_device *device, char *path, size_t size, cleat_error *error) {
    char key[HASH], folder[PATH];
    cleat_status status = make_key(device, key, error);
    if (status == CLEAT_OK) status = cleat_cache_folder(folder, sizeof folder, error);
    if (status != CLEAT_OK) return status;
    if ((size_t)snprintf(path, size, "%s/%s.rates", folder, key) >= size)
        return cleat_fail(error, CLEAT_ERR_IO, "the cache folder path is too long: %s", folder);
    return CLEAT_OK;
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

static void save(const char *path, const cleat_rates *rates) {
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

/* The file of the device's rates, locked (lock >= 0) if possible. */
typedef struct kept_file {
    char path[PATH]; /* "": there is no cache folder */
    int lock;
} kept_file;

/* Two processes that measure at the same time would halve each other's rates; so the second waits for the
 * first, but no longer than a measurement should take. */
static void lock_file(kept_file *file) {
    enum { PATIENCE_SECONDS = 30 };
    if (file->path[0] && cleat_lock(file->path, PATIENCE_SECONDS, &file->lock, NULL)) file->lock = -1;
}

static void unlock_file(kept_file *file) {
    if (file->lock >= 0) cleat_unlock(file->lock);
    file->lock = -1;
}

/* Without a cache folder nothing is kept; only lack of host memory is an error. */
static cleat_status find_file(const cleat_device *device, kept_file *file, cleat_error *error) {
    *file = (kept_file){.lock = -1};
    cleat_status status = cleat_rates_path(device, file->path, sizeof file->path, error);
    if (status) file->path[0] = 0;
    return status == CLEAT_ERR_MEMORY ? status : CLEAT_OK;
}

/* Sets each of *rates to the better of its value and that in the file, and saves the result. */
static void merge_and_save(const kept_file *file, cleat_rates *rates) {
    cleat_rates kept;
    if (!file->path[0]) return;
    if (cleat_rates_read(file->path, &kept)) keep_better(rates, &kept);
    save(file->path, rates);
}

static cleat_status measure_and_save(cleat_device *device, const kept_file *file, cleat_rates *rates,
                                     cleat_error *error) {
    cleat_rates made;
    double start = cleat_seconds();
    cleat_status status = measure_all(device, &made, error);
    if (status) return status;
    cleat_log(CLEAT_LOG_DEBUG,
              "rates: %.4g operations and %.4g bytes per second, %.3g s per launch; measured in %.2f s", made.flops,
              made.bytes, made.launch_seconds, cleat_seconds() - start);
    merge_and_save(file, &made);
    *rates = made;
    return CLEAT_OK;
}

cleat_status cleat_rates_measure(cleat_device *device, cleat_rates *rates, cleat_error *error) {
    kept_file file;
    cleat_status status = find_file(device, &file, error);
    if (status) return status;
    if (file.path[0] && cleat_rates_read(file.path, rates)) return CLEAT_OK;
    lock_file(&file);
    if (!file.path[0] || !cleat_rates_read(file.path, rates)) status = measure_and_save(device, &file, rates, error);
    unlock_file(&file);
    return status;
}

cleat_status cleat_rates_remeasure(cleat_device *device, cleat_rates *rates, cleat_error *error) {
    kept_file file;
    cleat_status status = find_file(device, &file, error);
    if (status) return status;
    lock_file(&file);
    status = measure_and_save(device, &file, rates, error);
    unlock_file(&file);
    return status;
}

void cleat_rates_raise(const cleat_device *device, const cleat_rates *rates) {
    cleat_rates better = *rates;
    kept_file file;
    if (find_file(device, &file, NULL)) return;
    lock_file(&file);
    merge_and_save(&file, &better);
    unlock_file(&file);
}
