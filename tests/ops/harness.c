/* Runs the op tests over rows, storage types, variants and device shapes. See harness.h. */
#include "harness.h"

#include "cleat/ops.h"
#include "core/philox.h"
#include "cover.h"
#include "graph/store.h"
#include "kept_programs.h"
#include "platform/files.h"
#include "verify/node_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_SAMPLES = 24, MAX_FAILURES = 6 };

static cleat_device *device;
static int failures_printed, variants_run, shapes_skipped;

cleat_device *op_device(void) {
    return device;
}

static const char *setting(const char *name, const char *fallback) {
    const char *value = getenv(name);
    return value && *value ? value : fallback;
}

uint64_t op_seed(void) {
    return strtoull(setting("CLEAT_TEST_SEED", "1"), NULL, 10);
}

static bool verbose(void) {
    return *setting("CLEAT_TEST_VERBOSE", "") != 0;
}

/* Whether the first failure ends the test. */
static bool is_last(bool good) {
    return !good && *setting("CLEAT_TEST_STOP", "") != 0;
}

/* --- declarations --------------------------------------------------------------------------------------------- */

static bool is_float(cleat_dtype dtype) {
    return cleat_is_storage(dtype);
}

/* Random values of a declared tensor, rounded to its type. Drawn once per case, so rebuilt graphs get the
 * same values. */
static void draw(op_case *c, op_tensor *t, int index) {
    if (t->values) return;
    t->count = cleat_tensor_elements(t->tensor);
    t->values = calloc((size_t)t->count, sizeof *t->values);
    t->dvalues = calloc((size_t)t->count, sizeof *t->dvalues);
    cleat_random random = cleat_random_stream(c->seed, (uint32_t)c->row, (uint32_t)index);
    for (int64_t i = 0; i < t->count; ++i) {
        double u = cleat_random_uniform(&random);
        t->values[i] =
            is_float(t->tensor->dtype) ? t->lo + (t->hi - t->lo) * u : t->lo + floor((t->hi - t->lo + 1) * u);
    }
    if (c->test->fill) c->test->fill(c, index, t->values, t->count);
    for (int64_t i = 0; i < t->count; ++i) t->values[i] = compare_round(t->tensor->dtype, t->values[i]);
}

static op_tensor *declare(op_case *c, cleat_tensor *tensor, double lo, double hi, bool wants_grad) {
    if (c->input_count == OP_TENSORS) fail_msg("more than %d inputs", OP_TENSORS);
    int index = c->input_count++;
    op_tensor *t = &c->inputs[index];
    t->tensor = t->used = tensor;
    t->dout = NULL;
    t->lo = lo;
    t->hi = hi;
    t->wants_grad = wants_grad;
    if (tensor) draw(c, t, index);
    return t;
}

/* tensor + 0: a copy of the values in memory that is written by a node. */
static cleat_tensor *through_add(op_case *c, cleat_tensor *tensor) {
    char name[CLEAT_NAME];
    snprintf(name, sizeof name, "%.50s.zero", tensor->name);
    return cleat_add(c->graph, tensor, cleat_input(c->graph, name, tensor->dtype, tensor->rank, tensor->shape));
}

static cleat_tensor *declare_input(op_case *c, const char *name, cleat_dtype dtype, int rank, const int64_t *shape,
                                   double lo, double hi, bool wants_grad) {
    cleat_tensor *tensor = cleat_input(c->graph, name, dtype, rank, shape);
    if (wants_grad) cleat_require_grad(c->graph, tensor);
    op_tensor *t = declare(c, tensor, lo, hi, wants_grad);
    if (tensor && c->chained && is_float(dtype)) t->used = through_add(c, tensor);
    return t->used;
}

cleat_tensor *op_input(op_case *c, const char *name, cleat_dtype dtype, int rank, const int64_t *shape, double lo,
                       double hi) {
    return declare_input(c, name, dtype, rank, shape, lo, hi, is_float(dtype) && !c->test->no_backward);
}

cleat_tensor *op_constant(op_case *c, const char *name, cleat_dtype dtype, int rank, const int64_t *shape, double lo,
                          double hi) {
    return declare_input(c, name, dtype, rank, shape, lo, hi, false);
}

cleat_tensor *op_param(op_case *c, const char *name, int rank, const int64_t *shape, double lo, double hi) {
    cleat_tensor *tensor = cleat_param(c->graph, name, rank, shape, (cleat_init){0});
    return declare(c, tensor, lo, hi, !c->test->no_backward)->tensor;
}

cleat_tensor *op_weight(op_case *c, const char *name, int rank, const int64_t *shape, double lo, double hi) {
    cleat_tensor *weight = cleat_param(c->graph, name, rank, shape, (cleat_init){0});
    cleat_error error = {0};
    if (weight && c->storage != CLEAT_F32 &&
        cleat_store_half_weight(c->store, weight, c->storage, &weight, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    return declare(c, weight, lo, hi, !c->test->no_backward)->tensor;
}

void op_output(op_case *c, cleat_tensor *output) {
    if (c->output_count == OP_TENSORS) fail_msg("more than %d outputs", OP_TENSORS);
    int index = c->output_count++;
    op_tensor *t = &c->outputs[index];
    t->tensor = output;
    t->dout = NULL;
    if (!output) return;
    cleat_retain(c->graph, output);
    if (t->values) return;
    t->count = cleat_tensor_elements(output);
    t->values = calloc((size_t)t->count, sizeof *t->values);
    t->dvalues = calloc((size_t)t->count, sizeof *t->dvalues);
    cleat_random random = cleat_random_stream(c->seed, (uint32_t)c->row, 1000u + (uint32_t)index);
    for (int64_t i = 0; i < t->count; ++i)
        t->dvalues[i] = compare_round(output->dtype, 2 * cleat_random_uniform(&random) - 1);
}

/* --- expected values ------------------------------------------------------------------------------------------ */

static void input_values(const op_case *c, const double **in) {
    for (int i = 0; i < c->input_count; ++i) in[i] = c->inputs[i].values;
}

/* sum over outputs of dout * reference(inputs) */
static double objective(const op_case *c, const double *const *in, double *const *scratch) {
    long double sum = 0;
    c->test->reference(c, in, scratch);
    for (int k = 0; k < c->output_count; ++k)
        for (int64_t i = 0; i < c->outputs[k].count; ++i) sum += (long double)c->outputs[k].dvalues[i] * scratch[k][i];
    return (double)sum;
}

/* Fourth-order central difference by element `e` of input `t`; the error is h^4 f'''''/30. */
static double difference(const op_case *c, const op_tensor *t, int64_t e, const double *const *in,
                         double *const *scratch) {
    double x = t->values[e], h = 1e-3 * fmax(1.0, fabs(x)), f[4];
    const double step[4] = {-2, -1, 1, 2};
    for (int k = 0; k < 4; ++k) {
        t->values[e] = x + step[k] * h;
        f[k] = objective(c, in, scratch);
    }
    t->values[e] = x;
    return (8 * (f[2] - f[1]) - (f[3] - f[0])) / (12 * h);
}

/* Index of the k-th element whose gradient is differenced: all elements of a small tensor, otherwise both
 * ends and random ones. */
static int64_t sample(const op_tensor *t, int64_t k, int64_t samples, cleat_random *random) {
    if (samples >= t->count) return k;
    if (k < 2) return k ? t->count - 1 : 0;
    return cleat_random_below(random, (uint32_t)t->count);
}

double op_operand(const op_case *c, double value) {
    return c->tf32 ? compare_round(CLEAT_TF32, value) : value;
}

static bool expect_gradient(op_case *c, int index, const double *const *in, double *const *scratch, double f) {
    op_tensor *t = &c->inputs[index];
    bool analytic = c->test->gradient != NULL, good = true;
    if (!analytic)
        for (int64_t i = 0; i < t->count; ++i) t->dvalues[i] = NAN; /* not compared */
    int64_t samples = c->test->samples ? c->test->samples : DEFAULT_SAMPLES;
    if (samples > t->count) samples = t->count;
    cleat_random random = cleat_random_stream(c->seed, (uint32_t)c->row, 2000u + (uint32_t)index);
    for (int64_t k = 0; k < samples; ++k) {
        int64_t e = sample(t, k, samples, &random);
        double by_difference = difference(c, t, e, in, scratch);
        double bound = 1e-6 * fabs(by_difference) + 1e-9 * (1 + fabs(f));
        if (analytic && !compare_close(t->dvalues[e], by_difference, bound)) {
            print_error("%s row %d: the test's own gradient of input %d is %.12g at %lld, by differences %.12g\n",
                        c->test->op, c->row, index, t->dvalues[e], (long long)e, by_difference);
            good = false;
        }
        if (!analytic) t->dvalues[e] = by_difference;
    }
    return good;
}

static bool expect(op_case *c) {
    const double *in[OP_TENSORS], *dout[OP_TENSORS];
    double *out[OP_TENSORS], *scratch[OP_TENSORS], *din[OP_TENSORS];
    input_values(c, in);
    for (int k = 0; k < c->output_count; ++k) {
        out[k] = c->outputs[k].values;
        dout[k] = c->outputs[k].dvalues;
        scratch[k] = calloc((size_t)c->outputs[k].count, sizeof(double));
    }
    for (int i = 0; i < c->input_count; ++i) din[i] = c->inputs[i].wants_grad ? c->inputs[i].dvalues : NULL;
    c->test->reference(c, in, out);
    bool good = true;
    if (!c->test->no_backward) {
        if (c->test->gradient) c->test->gradient(c, in, dout, din);
        double f = objective(c, in, scratch);
        for (int i = 0; i < c->input_count; ++i)
            if (c->inputs[i].wants_grad && !c->tf32) /* rounding has no slope */
                good = expect_gradient(c, i, in, scratch, f) && good;
    }
    for (int k = 0; k < c->output_count; ++k) free(scratch[k]);
    return good;
}

/* --- one run -------------------------------------------------------------------------------------------------- */

static void describe(const op_case *c, char *text, size_t size) {
    int used = snprintf(text, size, "%s row %d {", c->test->op, c->row);
    int dims = OP_DIMS;
    while (dims > 1 && c->dims[dims - 1] == 0) --dims;
    for (int i = 0; i < dims; ++i)
        used += snprintf(text + used, size - (size_t)used, "%s%lld", i ? ", " : "", (long long)c->dims[i]);
    snprintf(text + used, size - (size_t)used, "} %s variant %d shape %s%s seed %llu",
             cleat_dtype_name(c->tf32 ? CLEAT_TF32 : c->storage), c->variant, c->shape->name,
             c->chained ? " chained" : "", (unsigned long long)c->seed);
}

static bool complain(const op_case *c, const char *format, ...) CLEAT_PRINTF(2, 3);
static bool complain(const op_case *c, const char *format, ...) {
    char where[256], what[512];
    if (++failures_printed > 40) return false;
    describe(c, where, sizeof where);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    print_error("%s: %s\n", where, what);
    return false;
}

/* CDNA2's matrix unit treats f16 operands below 2^-14 as 0. These are one in 16384 of the operands up to 1:
 * rarely more than two per sum. */
static double flushed_terms(const op_case *c, compare_tolerance tolerance) {
    const bool flushes = op_facts(c->shape).matrix_unit == CLEAT_MATRIX_AMD_MFMA && c->storage == CLEAT_F16;
    return flushes ? 2 * 0x1p-14 * tolerance.scale : 0;
}

/* An element whose `want` is NaN is not compared, but must be finite. */
static bool compare_tensor(const op_case *c, const char *what, const cleat_tensor *tensor, const double *got,
                           const double *want, compare_tolerance tolerance) {
    const double flushed = flushed_terms(c, tolerance);
    int64_t count = cleat_tensor_elements(tensor), failed = 0, first = -1;
    for (int64_t i = 0; i < count; ++i) {
        bool known = !isnan(want[i]);
        double bound = compare_bound(tolerance, tensor->dtype, c->storage, want[i]) + flushed;
        if (known ? compare_close(got[i], want[i], bound) : isfinite(got[i])) continue;
        if (first < 0) first = i;
        ++failed;
    }
    if (first < 0) return true;
    return complain(c, "%s %s[%lld] is %.9g, should be %.9g, off by %.3g, tolerance %.3g (%lld of %lld fail)", what,
                    tensor->name, (long long)first, got[first], want[first], fabs(got[first] - want[first]),
                    compare_bound(tolerance, tensor->dtype, c->storage, want[first]) + flushed, (long long)failed,
                    (long long)count);
}

static void write_inputs(op_case *c, op_rig *rig) {
    for (int i = 0; i < c->input_count; ++i) op_rig_write(rig, c->inputs[i].tensor, c->inputs[i].values);
    for (size_t i = 0; i < c->graph->tensor_count; ++i) {
        const cleat_tensor *t = c->graph->tensors[i];
        if (t->role != CLEAT_ROLE_INPUT || !strstr(t->name, ".zero")) continue;
        double *zero = calloc((size_t)cleat_tensor_elements(t), sizeof *zero);
        op_rig_write(rig, t, zero);
        free(zero);
    }
}

/* Whether the gradient of the tensor belongs to the store; the backward pass then adds to it. */
static bool accumulates(const op_tensor *t) {
    return t->tensor->role == CLEAT_ROLE_PARAMETER || t->tensor->role == CLEAT_ROLE_HALF_WEIGHT;
}

/* The external gradient that arrives at input i of a chained case. */
static double accum(const op_case *c, int i, int64_t e) {
    const op_tensor *t = &c->inputs[i];
    return t->dout ? compare_round(t->tensor->dtype, ((double)((e * 7 + i) % 17) - 8) / 8) : 0;
}

static void write_gradients(op_case *c, op_rig *rig) {
    for (int k = 0; k < c->output_count; ++k)
        if (c->outputs[k].dout) op_rig_write(rig, c->outputs[k].dout, c->outputs[k].dvalues);
    for (int i = 0; i < c->input_count; ++i) {
        op_tensor *t = &c->inputs[i];
        double *values = calloc((size_t)t->count, sizeof *values);
        if (accumulates(t) && t->wants_grad) op_rig_write(rig, cleat_gradient(c->graph, t->tensor), values);
        if (t->dout) {
            for (int64_t e = 0; e < t->count; ++e) values[e] = accum(c, i, e);
            op_rig_write(rig, t->dout, values);
        }
        free(values);
    }
}

static const cleat_tensor *gradient_of(const op_case *c, int i) {
    return c->inputs[i].wants_grad ? cleat_gradient(c->graph, c->inputs[i].used) : NULL;
}

static bool check_outputs(op_case *c, op_rig *rig) {
    bool good = true;
    for (int k = 0; k < c->output_count; ++k) {
        op_tensor *t = &c->outputs[k];
        double *got = calloc((size_t)t->count, sizeof *got);
        op_rig_read(rig, t->tensor, got);
        good = compare_tensor(c, "output", t->tensor, got, t->values, c->test->tolerance(c, k, false)) && good;
        free(got);
    }
    return good;
}

/* `times`: number of backward passes that have been added to the parameter gradients. */
static bool check_gradients(op_case *c, op_rig *rig, int times) {
    bool good = true;
    for (int i = 0; i < c->input_count; ++i) {
        op_tensor *t = &c->inputs[i];
        const cleat_tensor *gradient = gradient_of(c, i);
        if (!t->wants_grad) continue;
        if (!gradient) {
            good = complain(c, "input %s has no gradient", t->tensor->name);
            continue;
        }
        bool param = accumulates(t);
        double *got = calloc((size_t)t->count, sizeof *got), *want = calloc((size_t)t->count, sizeof *want);
        for (int64_t e = 0; e < t->count; ++e) want[e] = (param ? times : 1) * t->dvalues[e] + accum(c, i, e);
        compare_tolerance tolerance = c->test->tolerance(c, i, true);
        tolerance.scale *= param ? times : 1;
        op_rig_read(rig, gradient, got);
        good =
            compare_tensor(c, times > 1 ? "accumulated gradient" : "gradient", gradient, got, want, tolerance) && good;
        free(got);
        free(want);
    }
    return good;
}

/* Concatenates all results; with `values` NULL it only counts them. */
static int64_t collect(op_case *c, op_rig *rig, double *values) {
    int64_t count = 0;
    for (int k = 0; k < c->output_count; ++k) {
        if (values) op_rig_read(rig, c->outputs[k].tensor, values + count);
        count += c->outputs[k].count;
    }
    for (int i = 0; i < c->input_count; ++i) {
        const cleat_tensor *gradient = gradient_of(c, i);
        if (!gradient) continue;
        if (values) op_rig_read(rig, gradient, values + count);
        count += c->inputs[i].count;
    }
    return count;
}

static void run_once(op_case *c, op_rig *rig, bool fresh) {
    if (fresh) {
        op_rig_poison(rig);
        write_inputs(c, rig);
        write_gradients(c, rig);
        op_rig_snapshot(rig);
    }
    op_rig_run(rig, 0, -1);
}

/* Runs the nodes one by one and compares each one that has a definition (cleat_op.define) with it, as a run
 * does before training. */
static bool check_definitions(op_case *c, op_rig *rig) {
    cleat_node_check result = {0};
    cleat_error error = {0};
    cleat_status status = CLEAT_OK;
    if (op_facts(c->shape).matrix_unit == CLEAT_MATRIX_AMD_MFMA) return true; /* treats small halves as 0 */
    op_rig_poison(rig);
    write_inputs(c, rig);
    write_gradients(c, rig);
    for (size_t i = 0; i < c->graph->node_count && !status; ++i) {
        const cleat_op *op = c->graph->nodes[i]->op;
        if (op->define && op->variants)
            status = cleat_check_node(rig->exec, 0, i, &result, &error);
        else
            status = cleat_exec_run_nodes(rig->exec, 0, i, i + 1, &error);
    }
    return status ? complain(c, "%s", error.text) : true;
}

/* --- NaN ------------------------------------------------------------------------------------------------------ */

enum { NAN_TRIES = 6, NAN_SMALL = 4096 };

/* The canonical NaNs of NVIDIA and x86, and others. */
static const uint32_t nan_patterns[] = {0x7fffffffu, 0xffc00000u, 0x7fc02001u, 0xffe00000u};

/* Bit sets over the rows of a test, of inputs and, from OP_TENSORS on, of incoming gradients: those in which
 * a NaN was tried, and those from which a NaN reached a result. Small rows may have inputs without influence. */
static uint32_t nans_tried, nans_arrived;

static void nan_arrived(int tensor, bool arrived) {
    nans_tried |= 1u << tensor;
    if (arrived) nans_arrived |= 1u << tensor;
}

/* The place of a NaN: element `at` of an input, or of a gradient that arrives at an output. */
typedef struct nan_place {
    const cleat_tensor *tensor;
    int64_t count, at;
    int tries; /* positions tried */
} nan_place;

/* The next element to try: both ends, then random ones. */
static bool next_place(const op_case *c, nan_place *place) {
    cleat_random random = cleat_random_stream(c->seed, (uint32_t)c->row, 3000u + (uint32_t)place->tries);
    if (place->tries == NAN_TRIES) return false;
    place->at =
        place->tries < 2 ? place->tries * (place->count - 1) : cleat_random_below(&random, (uint32_t)place->count);
    ++place->tries;
    return true;
}

static void run_with_nan(op_case *c, op_rig *rig, const nan_place *place) {
    op_rig_poison(rig);
    write_inputs(c, rig);
    write_gradients(c, rig);
    op_rig_write_nan(rig, place->tensor, place->at, nan_patterns[(c->row + c->variant + place->tries) % 4]);
    op_rig_run(rig, 0, -1);
}

/* Number of NaNs among the `count` values. */
static int64_t count_nans(const double *values, int64_t count) {
    int64_t nans = 0;
    for (int64_t i = 0; i < count; ++i) nans += isnan(values[i]) != 0;
    return nans;
}

/* Runs with a NaN in place, and compares the NaNs of all outputs with those of the reference, `want`. */
static bool compare_nans(op_case *c, op_rig *rig, const nan_place *place, double *const *want) {
    bool good = true;
    run_with_nan(c, rig, place);
    for (int k = 0; k < c->output_count && good; ++k) {
        double *got = calloc((size_t)c->outputs[k].count, sizeof *got);
        op_rig_read(rig, c->outputs[k].tensor, got);
        for (int64_t e = 0; e < c->outputs[k].count && good; ++e)
            if (isnan(want[k][e]) && !isnan(got[e]))
                good = complain(c, "NaN in %s[%lld]: output %s[%lld] is %.9g", place->tensor->name,
                                (long long)place->at, c->outputs[k].tensor->name, (long long)e, got[e]);
        free(got);
    }
    return good;
}

static bool check_nan_of_input(op_case *c, op_rig *rig, int i) {
    op_tensor *t = &c->inputs[i];
    nan_place place = {.tensor = t->tensor, .count = t->count};
    const double *in[OP_TENSORS];
    double *want[OP_TENSORS];
    int64_t reached = 0;
    bool good = true;
    input_values(c, in);
    for (int k = 0; k < c->output_count; ++k) want[k] = calloc((size_t)c->outputs[k].count, sizeof(double));
    while (reached == 0 && next_place(c, &place)) {
        const double before = t->values[place.at];
        t->values[place.at] = NAN;
        c->test->reference(c, in, want);
        t->values[place.at] = before;
        for (int k = 0; k < c->output_count; ++k) reached += count_nans(want[k], c->outputs[k].count);
    }
    if (reached > 0) good = compare_nans(c, rig, &place, want);
    if (t->wants_grad) nan_arrived(i, reached > 0);
    for (int k = 0; k < c->output_count; ++k) free(want[k]);
    return good;
}

/* Elements with a gradient of 0, which the test has set, reach nothing. */
static void check_nan_of_gradient(op_case *c, op_rig *rig, int k) {
    nan_place place = {.tensor = c->outputs[k].dout, .count = c->outputs[k].count};
    while (next_place(c, &place)) {
        if (c->outputs[k].dvalues[place.at] == 0) continue;
        run_with_nan(c, rig, &place);
        for (int i = 0; i < c->input_count; ++i) {
            const cleat_tensor *gradient = gradient_of(c, i);
            if (!gradient) continue;
            double *got = calloc((size_t)c->inputs[i].count, sizeof *got);
            op_rig_read(rig, gradient, got);
            const int64_t nans = count_nans(got, c->inputs[i].count);
            free(got);
            nan_arrived(OP_TENSORS + k, nans > 0);
            if (nans > 0) return;
        }
    }
}

static bool check_nans(op_case *c, op_rig *rig) {
    static int turn;
    const int tensors = c->input_count + c->output_count;
    const bool all = collect(c, rig, NULL) <= NAN_SMALL;
    bool good = true;
    ++turn;
    for (int n = 0; n < tensors && good; ++n) {
        const int k = n - c->input_count;
        if (!all && n != turn % tensors) continue;
        if (k < 0 && is_float(c->inputs[n].tensor->dtype)) good = check_nan_of_input(c, rig, n);
        if (k >= 0 && c->outputs[k].dout) check_nan_of_gradient(c, rig, k);
    }
    return good;
}

/* --- a case --------------------------------------------------------------------------------------------------- */

static bool run_case(op_case *c) {
    op_rig rig;
    if (!op_rig_open(&rig, c->graph, c->shape, c->test->op, c->variant)) return complain(c, "not run");
    run_once(c, &rig, true);
    bool good = check_outputs(c, &rig);
    good = check_gradients(c, &rig, 1) && good;
    if (!op_rig_untouched(&rig)) good = complain(c, "wrote outside its memory");
    if (is_last(good)) {
        op_rig_close(&rig);
        return good;
    }
    int64_t count = collect(c, &rig, NULL);
    double *first = calloc((size_t)count, sizeof *first), *second = calloc((size_t)count, sizeof *second);
    collect(c, &rig, first);
    run_once(c, &rig, true);
    collect(c, &rig, second);
    if (memcmp(first, second, (size_t)count * sizeof *first) != 0)
        good = complain(c, "two runs with the same inputs differ in their bits");
    if (good && c->store->count && !c->test->no_backward) {
        run_once(c, &rig, false);
        good = check_gradients(c, &rig, 2);
    }
    if (good) good = check_definitions(c, &rig);
    if (good) good = check_nans(c, &rig);
    free(first);
    free(second);
    op_rig_close(&rig);
    return good;
}

/* --- all cases of a test -------------------------------------------------------------------------------------- */

static void arrive(op_case *c, op_tensor *at, cleat_tensor *tensor, const char *what, int i) {
    char name[CLEAT_NAME];
    snprintf(name, sizeof name, "%s.%d", what, i);
    at->dout = cleat_input(c->graph, name, tensor->dtype, tensor->rank, tensor->shape);
}

static void differentiate(op_case *c) {
    cleat_tensor *outs[2 * OP_TENSORS], *douts[2 * OP_TENSORS];
    int n = 0;
    for (int k = 0; k < c->output_count; ++k) {
        arrive(c, &c->outputs[k], c->outputs[k].tensor, "dout", k);
        outs[n] = c->outputs[k].tensor;
        douts[n++] = c->chained ? through_add(c, c->outputs[k].dout) : c->outputs[k].dout;
    }
    for (int i = 0; c->chained && i < c->input_count; ++i) {
        op_tensor *t = &c->inputs[i];
        if (!t->wants_grad || t->used == t->tensor) continue;
        arrive(c, t, t->tensor, "addend", i);
        outs[n] = t->used;
        douts[n++] = through_add(c, t->dout);
    }
    cleat_backward_from(c->graph, outs, douts, n);
    for (int i = 0; i < c->input_count; ++i)
        if (c->inputs[i].wants_grad) cleat_retain(c->graph, cleat_gradient(c->graph, c->inputs[i].used));
}

static bool build_case(op_case *c) {
    cleat_error error = {0};
    c->input_count = c->output_count = 0;
    if (cleat_store_create(&c->store, &error) != CLEAT_OK ||
        cleat_graph_create(c->store, "test", &c->graph, &error) != CLEAT_OK)
        return complain(c, "%s", error.text);
    if (c->tf32) cleat_autocast(c->graph, CLEAT_TF32);
    c->test->build(c);
    if (cleat_graph_status(c->graph, &error) == CLEAT_OK && !c->test->no_backward) differentiate(c);
    cleat_graph_set_wide(c->graph, c->test->wide);
    cleat_graph_fuse(c->graph);
    if (cleat_graph_status(c->graph, &error) != CLEAT_OK) return complain(c, "%s", error.text);
    return true;
}

static void clear_graph(op_case *c) {
    cleat_graph_destroy(c->graph);
    cleat_store_destroy(c->store);
    c->graph = NULL;
    c->store = NULL;
}

static void clear_values(op_case *c) {
    for (int i = 0; i < OP_TENSORS; ++i) {
        free(c->inputs[i].values);
        free(c->inputs[i].dvalues);
        free(c->outputs[i].values);
        free(c->outputs[i].dvalues);
    }
}

static bool under_test(const op_case *c, const cleat_node *node) {
    return node->op->variants && strncmp(node->op->name, c->test->op, strlen(c->test->op)) == 0;
}

/* Prefix of the names of the variants to run. */
static const char *only_variants(void) {
    return setting("CLEAT_TEST_VARIANT", "");
}

/* Whether any node under test has variant number `v`; `accepted`: whether one of them accepts it. */
static bool has_variant(const op_case *c, int v, bool *accepted) {
    bool any = false;
    cleat_device_facts facts = op_facts(c->shape);
    *accepted = false;
    for (size_t i = 0; i < c->graph->node_count; ++i) {
        const cleat_node *node = c->graph->nodes[i];
        int count = 0;
        while (under_test(c, node) && node->op->variants[count].name) ++count;
        if (v >= count) continue;
        any = true;
        const cleat_variant *variant = &node->op->variants[v];
        const char *why = variant->refuse ? variant->refuse(node, &facts) : NULL;
        if (!why && strncmp(variant->name, only_variants(), strlen(only_variants())) == 0) *accepted = true;
        if (why && verbose()) print_message("  %s refuses %s: %s\n", variant->name, node->op->name, why);
    }
    return any;
}

/* Whether every node gets the same variant with `v` as with 0. */
static bool same_as_first(const op_case *c, int v) {
    const cleat_device_facts facts = op_facts(c->shape);
    for (size_t i = 0; i < c->graph->node_count; ++i) {
        const cleat_node *node = c->graph->nodes[i];
        if (op_variant(c->test->op, v, node, &facts) != op_variant(c->test->op, 0, node, &facts)) return false;
    }
    return true;
}

static bool run_variants(op_case *c) {
    bool good = true, accepted, first_ran = false;
    for (c->variant = 0; !is_last(good) && has_variant(c, c->variant, &accepted); ++c->variant) {
        if ((c->variant > 0 || *only_variants()) && !accepted) continue;
        ++variants_run;
        if ((first_ran && same_as_first(c, c->variant)) || !cover_needed(c)) continue;
        first_ran = first_ran || c->variant == 0;
        kept_programs_optimize(cover_optimizes(c));
        cover_record(c);
        if (!c->expected) good = expect(c) && good;
        c->expected = true;
        if (verbose()) {
            char text[256];
            describe(c, text, sizeof text);
            print_message("  %s\n", text);
        }
        good = run_case(c) && good;
    }
    kept_programs_optimize(true);
    if (c->variant == 0) good = complain(c, "the graph has no node of this op");
    c->variant = 0;
    return good;
}

bool op_shape_is_tested(const op_shape *shape) {
    const char *only = setting("CLEAT_TEST_SHAPE", "");
    if (cover_shape(shape, cleat_device_get_facts(device)->kind, only)) return true;
    shapes_skipped += *only == 0;
    return false;
}

static bool run_row(const op_test *test, int row, cleat_dtype type) {
    static const op_shape *const shapes[] = {&op_shape_cpu, &op_shape_gpu, &op_shape_gpu64};
    const bool tf32 = type == CLEAT_TF32;
    const cleat_dtype storage = tf32 ? CLEAT_F32 : type;
    op_case c = {.test = test,
                 .row = row,
                 .dims = test->rows[row],
                 .storage = storage,
                 .tf32 = tf32,
                 .shape = shapes[0],
                 .seed = op_seed()};
    bool good = true;
    for (int chained = 0; chained < 2 && !is_last(good); ++chained) {
        c.chained = chained;
        if (cover_skips(&c)) continue;
        c.shape = shapes[0];
        bool built = build_case(&c);
        for (int s = 0; built && !is_last(good) && s < (storage == CLEAT_F32 ? 3 : 2); ++s) {
            c.shape = shapes[s];
            if (!op_shape_is_tested(c.shape) || (test->wide && c.shape != &op_shape_cpu)) continue;
            good = run_variants(&c) && good;
        }
        good = built && good;
        clear_graph(&c);
    }
    clear_values(&c);
    return good;
}

static void run_described(void **state) {
    const op_test *test = *state;
    const char *only_row = setting("CLEAT_TEST_ROW", NULL), *only_storage = setting("CLEAT_TEST_STORAGE", NULL);
    static const cleat_dtype storages[] = {CLEAT_F32, CLEAT_F16, CLEAT_BF16, CLEAT_TF32};
    int failed = 0;
    failures_printed = 0;
    nans_tried = nans_arrived = 0;
    cover_begin();
    for (int row = 0; row < test->row_count && !is_last(failed == 0); ++row) {
        if (only_row && atoi(only_row) != row) continue;
        for (int s = 0; s < 4 && failed < MAX_FAILURES && !is_last(failed == 0); ++s) {
            if (only_storage ? strcmp(only_storage, cleat_dtype_name(storages[s])) != 0 : storages[s] == CLEAT_TF32)
                continue;
            if (test->only && !(test->only >> storages[s] & 1)) continue;
            if (!run_row(test, row, storages[s])) ++failed;
        }
    }
    assert_int_equal(failed, 0);
    if (!only_row && nans_tried != nans_arrived)
        fail_msg("NaNs reach no result: bits of inputs, and from %d on of gradients: 0x%x", OP_TENSORS,
                 nans_tried & ~nans_arrived);
}

static void print_log(void *user, cleat_log_level level, const char *text) {
    (void)user, (void)level;
    print_message("log: %s\n", text);
}

int op_main(const op_test *tests, size_t count, const struct CMUnitTest *extra, size_t extra_count) {
    cleat_error error = {0};
    cleat_set_log(print_log, NULL, verbose() ? CLEAT_LOG_DEBUG : CLEAT_LOG_WARNING);
    kept_programs_keep_names();
    if (cleat_device_open(setting("CLEAT_TEST_DEVICE", "auto"), &device, &error) != CLEAT_OK) {
        print_message("skipped, no device: %s\n", error.text);
        return 77;
    }
    struct CMUnitTest *all = calloc(count + extra_count, sizeof *all);
    for (size_t i = 0; i < count; ++i)
        all[i] = (struct CMUnitTest){.name = tests[i].title ? tests[i].title : tests[i].op,
                                     .test_func = run_described,
                                     .initial_state = (void *)(uintptr_t)&tests[i]};
    if (extra_count) memcpy(all + count, extra, extra_count * sizeof *extra);
    int failed = _cmocka_run_group_tests("ops", all, count + extra_count, NULL, NULL);
    if (count > 0 && *only_variants() && variants_run == 0) {
        print_error("no variant '%s' serves any case\n", only_variants());
        ++failed;
    }
    if (shapes_skipped) print_message("skipped %d cases in the shape of CPUs: the device is a GPU\n", shapes_skipped);
    free(all);
    cleat_device_close(device);
    return failed;
}
