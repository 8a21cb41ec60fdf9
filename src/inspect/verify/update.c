/* Check of the optimizer step on chosen values. */
#include "verify/update.h"

#include "core/half.h"
#include "core/memory.h"
#include "core/philox.h"
#include "exec/copy.h"
#include "graph/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The buffers read and written by a step. */
enum { BUFFERS = CLEAT_FLATS_ALWAYS };

/* In f16 the gradients are multiplied by this factor. */
static const float chosen_loss_scale = 1024.0f;
/* Tolerance of exact comparisons, whose error is 0 or 1. */
static const double exactly = 0.01;

typedef struct probe {
    cleat_trajectory *run;
    int64_t all;                        /* elements of all parameters, frozen ones included */
    int64_t elements;                   /* of the trained ones, which come first */
    float *before[BUFFERS], *found;     /* [all] */
    uint16_t *bits, *half_weights;      /* [all] */
    cleat_loss_scale_values loss_scale; /* value before the step */
    cleat_verification *items;
    size_t count;
} probe;

typedef struct step_class {
    const char *name;
    double clip; /* largest allowed norm, as a fraction of the gradient's norm */
    bool finite;
    int until_growth; /* finite steps until the loss scale doubles, including this one */
} step_class;

static const step_class steps[] = {
    {"clipped update", 0.5, true, 2},
    {"update", 2, true, 1},
    {"update that is not finite", 2, false, 1},
};

static void add(probe *p, const step_class *step, const char *what, const char *op, double rel_error,
                double tolerance) {
    cleat_verification *item = &p->items[p->count++];
    *item = (cleat_verification){.rel_error = rel_error, .tolerance = tolerance, .ok = rel_error <= tolerance};
    snprintf(item->name, sizeof item->name, "%s: %s", step->name, what);
    snprintf(item->op, sizeof item->op, "%s", op);
}

static cleat_status allocate(probe *p, cleat_error *error) {
    const size_t elements = (size_t)p->all;
    bool there = true;
    for (int b = 0; b < BUFFERS; ++b) there &= !!(p->before[b] = cleat_alloc(elements, sizeof(float)));
    there &= !!(p->found = cleat_alloc(elements, sizeof(float)));
    there &= !!(p->bits = cleat_alloc(elements, sizeof(uint16_t)));
    there &= !!(p->half_weights = cleat_alloc(elements, sizeof(uint16_t)));
    return there ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a self-check");
}

static void release(probe *p) {
    for (int b = 0; b < BUFFERS; ++b) cleat_free(p->before[b]);
    cleat_free(p->found);
    cleat_free(p->bits);
    cleat_free(p->half_weights);
}

/* Elements of a buffer in a host copy: only the parameters include frozen ones. */
static int64_t elements_of(const probe *p, int buffer) {
    return buffer == CLEAT_FLAT_PARAMETERS ? p->all : p->elements;
}

/* Fills the buffers with multiples of 1/32 up to 1, which are exact in half precision; second moments are not
 * negative. */
static void choose(probe *p, const step_class *step) {
    cleat_random random = cleat_random_stream(2, 0, 0);
    for (int b = 0; b < BUFFERS; ++b)
        for (int64_t i = 0; i < elements_of(p, b); ++i) {
            const float value = ((float)cleat_random_below(&random, 65) - 32) / 32;
            p->before[b][i] = b == CLEAT_FLAT_MOMENTS2    ? fabsf(value)
                              : b == CLEAT_FLAT_GRADIENTS ? value * p->loss_scale.loss_scale
                                                          : value;
        }
    if (!step->finite) p->before[CLEAT_FLAT_GRADIENTS][p->elements / 2] = INFINITY;
}

/* Norm of the gradient before loss scaling, without the non-finite element. */
static double norm_of(const probe *p) {
    double sum = 0;
    for (int64_t i = 0; i < p->elements; ++i) {
        const double g = (double)p->before[CLEAT_FLAT_GRADIENTS][i] / p->loss_scale.loss_scale;
        if (isfinite(g)) sum += g * g;
    }
    return sqrt(sum);
}

/* Settings for which every term of the formula affects the result. */
static void choose_settings(probe *p, const step_class *step) {
    cleat_profile *profile = p->run->profile;
    profile->train.learning_rate = 0.125;
    profile->train.beta1 = 0.5;
    profile->train.beta2 = 0.75;
    profile->train.eps = 0.0625;
    profile->train.weight_decay = 0.5;
    profile->train.max_grad_norm = step->clip * norm_of(p);
}

static cleat_status write(probe *p, const step_class *step, cleat_error *error) {
    cleat_session *session = p->run->session;
    const int interval = (int)p->run->model->options.loss_scale_growth_interval;
    cleat_status status = CLEAT_OK;
    p->loss_scale = (cleat_loss_scale_values){.loss_scale = 1, .updates = 2};
    p->run->step = p->loss_scale.updates;
    if (cleat_session_has_loss_scale(session)) {
        p->loss_scale.loss_scale = chosen_loss_scale;
        p->loss_scale.clean_steps = interval - step->until_growth;
        status = cleat_session_write_loss_scale(session, &p->loss_scale, error);
    }
    choose(p, step);
    choose_settings(p, step);
    for (int b = 0; b < BUFFERS && !status; ++b)
        status = cleat_session_write_flat(session, (cleat_flat_buffer)b, p->before[b], error);
    return status;
}

/* The factors of the group that element i belongs to. */
static cleat_param_rule rule_at(const probe *p, int64_t i) {
    size_t count;
    const cleat_param_group *groups = cleat_store_groups(p->run->session->work->store, &count);
    for (size_t g = 0; g < count; ++g)
        if (i < groups[g].first + groups[g].elements) return groups[g].rule;
    return (cleat_param_rule){.rate = 1, .decay = 1};
}

/* AdamW as implemented in cl/adamw.cl. */
static void expect(const probe *p, int64_t i, double norm, double after[BUFFERS]) {
    const cleat_profile *profile = p->run->profile;
    const cleat_param_rule rule = rule_at(p, i);
    const double b1 = profile->train.beta1, b2 = profile->train.beta2;
    const double rate = profile->train.learning_rate * (double)rule.rate;
    const double t = p->loss_scale.updates + 1, clip = fmin(1, profile->train.max_grad_norm / (norm + 1e-6));
    const double g = clip * p->before[CLEAT_FLAT_GRADIENTS][i] / p->loss_scale.loss_scale;
    const double first = b1 * p->before[CLEAT_FLAT_MOMENTS1][i] + (1 - b1) * g;
    const double second = b2 * p->before[CLEAT_FLAT_MOMENTS2][i] + (1 - b2) * g * g;
    const double kept =
        p->before[CLEAT_FLAT_PARAMETERS][i] * (1 - rate * profile->train.weight_decay * (double)rule.decay);
    after[CLEAT_FLAT_PARAMETERS] =
        kept - rate / (1 - pow(b1, t)) * first / (sqrt(second / (1 - pow(b2, t))) + profile->train.eps);
    after[CLEAT_FLAT_GRADIENTS] = 0;
    after[CLEAT_FLAT_MOMENTS1] = first;
    after[CLEAT_FLAT_MOMENTS2] = second;
}

/* Returns the largest difference divided by the largest value; NaN if any difference is NaN. */
static double rel_error(const probe *p, int buffer, double norm) {
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < p->elements; ++i) {
        double after[BUFFERS];
        expect(p, i, norm, after);
        const double difference = fabs(p->found[i] - after[buffer]);
        if (isnan(difference)) return NAN;
        worst = fmax(worst, difference);
        largest = fmax(largest, fabs(after[buffer]));
    }
    return worst / largest;
}

static bool all_zero(const probe *p) {
    for (int64_t i = 0; i < p->elements; ++i)
        if (p->found[i] != 0) return false; /* also taken for NaN */
    return true;
}

/* Maps the bits of a half to an integer in the order of the values. */
static int order(uint16_t bits) {
    return bits & 0x8000 ? -(bits & 0x7fff) : bits;
}

/* Returns whether the half weights equal the parameters in `found`, up to one unit in the last place.
 * Subnormal f16 values may be flushed to zero by a device. */
static bool half_weights_follow(const probe *p, cleat_dtype storage) {
    (storage == CLEAT_F16 ? cleat_to_f16 : cleat_to_bf16)(p->found, (size_t)p->elements, p->bits);
    for (int64_t i = 0; i < p->elements; ++i)
        if (fabsf(p->found[i]) >= 0x1p-14f && abs(order(p->bits[i]) - order(p->half_weights[i])) > 1) return false;
    return true;
}

static cleat_status compare_half_weights(probe *p, const step_class *step, cleat_error *error) {
    const cleat_session *session = p->run->session;
    const cleat_store *store = session->work->store;
    if (!cleat_has_half_weights(store)) return CLEAT_OK;
    cleat_status status =
        cleat_exec_read_unchecked(session->exec, 0, &store->flat[CLEAT_FLAT_HALF_WEIGHTS], p->half_weights, error);
    if (!status) add(p, step, "half copies", "adamw", half_weights_follow(p, session->work->storage) ? 0 : 1, exactly);
    return status;
}

/* Whether the frozen parameters in `found` have the bits that were written. */
static bool frozen_stay(const probe *p) {
    const cleat_tensor *param;
    bool same = true;
    for (size_t i = 0; (param = cleat_store_param(p->run->session->work->store, i)); ++i)
        if (param->rule.frozen)
            same &= memcmp(p->found + param->flat_offset, p->before[CLEAT_FLAT_PARAMETERS] + param->flat_offset,
                           (size_t)cleat_tensor_elements(param) * sizeof(float)) == 0;
    return same;
}

/* A step with a non-finite gradient must leave every bit of the parameters and moments unchanged. */
static cleat_status compare_buffers(probe *p, const step_class *step, cleat_error *error) {
    static const char *const names[BUFFERS] = {"parameters", "gradient is zero afterwards", "first moments",
                                               "second moments"};
    static const int order_of_reading[BUFFERS] = {CLEAT_FLAT_GRADIENTS, CLEAT_FLAT_MOMENTS1, CLEAT_FLAT_MOMENTS2,
                                                  CLEAT_FLAT_PARAMETERS}; /* last: compared with the half weights */
    const double norm = norm_of(p);
    bool same = true, frozen = true;
    for (int k = 0; k < BUFFERS; ++k) {
        const int b = order_of_reading[k];
        cleat_status status = cleat_session_read_flat(p->run->session, (cleat_flat_buffer)b, p->found, error);
        if (status) return status;
        if (b == CLEAT_FLAT_PARAMETERS) frozen = frozen_stay(p);
        if (b == CLEAT_FLAT_GRADIENTS)
            add(p, step, names[b], "adamw", all_zero(p) ? 0 : 1, exactly);
        else if (step->finite)
            add(p, step, names[b], "adamw", rel_error(p, b, norm), 1e-5);
        else
            same &= memcmp(p->found, p->before[b], (size_t)p->elements * sizeof(float)) == 0;
    }
    if (p->all > p->elements) add(p, step, "frozen parameters stay", "adamw", frozen ? 0 : 1, exactly);
    if (!step->finite) add(p, step, "parameters and moments stay", "adamw", same ? 0 : 1, exactly);
    return compare_half_weights(p, step, error);
}

static cleat_status compare_loss_scale(probe *p, const step_class *step, cleat_error *error) {
    cleat_session *session = p->run->session;
    cleat_loss_scale_values found, wanted = p->loss_scale;
    if (!cleat_session_has_loss_scale(session)) return CLEAT_OK;
    cleat_status status = cleat_session_read_loss_scale(session, &found, error);
    if (status) return status;
    const bool grows = step->finite && step->until_growth == 1;
    wanted.loss_scale *= !step->finite ? 0.5f : grows ? 2.0f : 1.0f;
    wanted.updates += step->finite;
    wanted.clean_steps = step->finite && !grows ? wanted.clean_steps + 1 : 0;
    const bool right = found.loss_scale == wanted.loss_scale && found.updates == wanted.updates &&
                       found.clean_steps == wanted.clean_steps;
    add(p, step, "loss scale", "loss_scale_update", right ? 0 : 1, exactly);
    return CLEAT_OK;
}

cleat_status cleat_verify_update(cleat_trajectory *run, cleat_verification *items, size_t *count, cleat_error *error) {
    probe p = {.run = run,
               .all = cleat_session_flat(run->session),
               .elements = cleat_session_trained(run->session),
               .items = items};
    cleat_status status = allocate(&p, error);
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !status; ++i) {
        status = write(&p, &steps[i], error);
        if (!status) status = cleat_trajectory_update(run, error);
        if (!status) status = compare_buffers(&p, &steps[i], error);
        if (!status) status = compare_loss_scale(&p, &steps[i], error);
    }
    release(&p);
    if (!status) *count = p.count;
    return status;
}
