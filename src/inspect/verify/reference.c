/* The reference training of a model family as a check of a device. */
#include "cleat/tuning.h"
#include "core/embedded.h"
#include "device/device.h"
#include "session/tuned_cache.h"
#include "verify/program_check.h"
#include "verify/verify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The files of src/inspect/verify/checks, by model type; terminated by a NULL name. */
extern const cleat_embedded_file cleat_embedded_checks[];

typedef struct checker {
    cleat_device *device;
    const char *model;   /* model type */
    cleat_dtype storage; /* resolved value of train.precision */
    cleat_safetensors *file;
    cleat_reference_result result;
} checker;

/* The tolerances are meant for files (cleat verify FILE). A reference training rejects a driver only for
 * wrong results, not for different rounding: AdamW takes a step of full size for a gradient that is zero in
 * exact arithmetic, and with Winograd's convolutions image_resnet has 288 such elements of about 1e-8, which
 * move its last losses by 1.2e-4, 12 times their tolerance (PyTorch's by up to 3.6e-4 with noise of 1e-7 on
 * all gradients, by 6e-9 without the zeros). Missing gradients and parameters that do not move have a
 * relative error of 1, so in half storage, where the tolerances are wide, the limit stays below 1. */
static double limit_of(const checker *c, const cleat_verification *item) {
    if (c->storage == CLEAT_F32) return 50 * item->tolerance;
    const bool value = strcmp(item->name, "output") == 0 || strcmp(item->name, "loss") == 0;
    return value ? item->tolerance : fmin(2 * item->tolerance, 0.7);
}

static double excess(const checker *c, const cleat_verification *item) {
    const double found = item->rel_error / limit_of(c, item);
    return isnan(found) ? INFINITY : found;
}

/* Returns the first failed comparison in graph order: later ones may be consequences of it. */
static const cleat_verification *first_wrong(const checker *c, const cleat_verify_report *report) {
    const cleat_verification *first = NULL;
    for (size_t i = 0; i < report->count; ++i) {
        const cleat_verification *item = &report->items[i];
        if (excess(c, item) > 1 && (!first || item->place < first->place)) first = item;
    }
    return first;
}

static cleat_status refuse(const checker *c, int rank, const cleat_verify_report *report,
                           const cleat_verification *furthest, cleat_error *error) {
    const cleat_device_facts *facts = cleat_device_get_facts(c->device);
    const cleat_verification *first = first_wrong(c, report);
    char which[64] = "its first-choice kernels", where[192] = "";
    if (rank > 0) snprintf(which, sizeof which, "kernel variants number %d", rank + 1);
    if (first->op[0])
        snprintf(where, sizeof where, "; first wrong: '%s', by '%s' or an operation before it", first->name, first->op);
    return cleat_fail(error, CLEAT_ERR_DEVICE,
                      "the device '%s' (%s, driver %s) computes wrong results: in a reference training of %s in %s "
                      "with %s, '%s' has a relative error of %.3g, where %.1g is allowed (%zu of %zu comparisons "
                      "exceed their tolerance%s). Use another device (run.device) or another version of its driver",
                      facts->name, facts->platform, facts->driver, c->model, cleat_dtype_name(c->storage), which,
                      furthest->name, furthest->rel_error, limit_of(c, furthest), report->failed, report->count, where);
}

static cleat_status check_report(checker *c, int rank, const cleat_verify_report *report, cleat_error *error) {
    const cleat_verification *furthest = &report->items[0];
    for (size_t i = 0; i < report->count; ++i) {
        const cleat_verification *item = &report->items[i];
        if (excess(c, item) > excess(c, furthest)) furthest = item;
    }
    c->result.worst = fmax(c->result.worst, excess(c, furthest));
    c->result.comparisons += report->count;
    return excess(c, furthest) > 1 ? refuse(c, rank, report, furthest, error) : CLEAT_OK;
}

static cleat_status repeat(const checker *c, int rank, cleat_verify_report *report, bool *more, cleat_error *error) {
    const cleat_verify_subject subject = {
        .file = c->file, .rare_dropout = true, .precision = cleat_storage_precision(c->storage), .rank = rank};
    return cleat_verify_subject_on(c->device, &subject, report, more, error);
}

/* Nothing is known about a set of kernels that does not compile, so the check does not pass; higher ranks,
 * however, are used only by tuned selections. */
static cleat_status cannot_check(const checker *c, int rank, cleat_status status, cleat_error *error) {
    if (status == CLEAT_ERR_BUILD && rank > 0)
        return cleat_fail_in(error, status,
                             "the reference training of %s with kernel variants number %d, which a run uses "
                             "only if they are faster",
                             c->model, rank + 1);
    return cleat_fail_in(error, status, "the reference training of %s", c->model);
}

/* Runs the check once per rank of variants, so that every kernel that supports a node of the trajectory is
 * executed. */
static cleat_status check_all(checker *c, cleat_error *error) {
    bool more = true;
    for (int rank = 0; more; ++rank) {
        cleat_verify_report report = {0};
        cleat_status status = repeat(c, rank, &report, &more, error);
        if (status) return cannot_check(c, rank, status, error);
        status = check_report(c, rank, &report, error);
        cleat_verify_free(&report);
        if (status) return status;
        c->result.kernel_sets = rank + 1;
    }
    return CLEAT_OK;
}

static cleat_status open_trajectory(checker *c, cleat_error *error) {
    for (const cleat_embedded_file *file = cleat_embedded_checks; file->name; ++file)
        if (strcmp(file->name, c->model) == 0)
            return cleat_safetensors_parse(c->model, file->text, file->size, &c->file, error);
    return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "the library has no reference training of '%s'", c->model);
}

bool cleat_self_check_passed(cleat_device *device, const cleat_profile *profile) {
    char model[64];
    return cleat_profile_get(profile, "model.type", model, sizeof model, NULL) == CLEAT_OK &&
           cleat_program_check_has_passed(
               device, model, cleat_precision_storage(profile->train.precision, cleat_device_get_facts(device)));
}

/* How many files are smaller, or as large and earlier in the list. */
static size_t place_by_size(const cleat_embedded_file *file) {
    size_t place = 0;
    for (const cleat_embedded_file *other = cleat_embedded_checks; other->name; ++other)
        place += other->size < file->size || (other->size == file->size && other < file);
    return place;
}

const char *cleat_reference_model(size_t i) {
    for (const cleat_embedded_file *file = cleat_embedded_checks; file->name; ++file)
        if (place_by_size(file) == i) return file->name;
    return NULL;
}

cleat_status cleat_verify_reference(cleat_device *device, const char *model, cleat_precision precision,
                                    cleat_reference_result *result, cleat_error *error) {
    checker c = {.device = device,
                 .model = model,
                 .storage = cleat_precision_storage(precision, cleat_device_get_facts(device))};
    cleat_error why = {0};
    cleat_status status = cleat_verify_possible(device, precision, error);
    if (status) return status;
    /* GPUs compute with CLBlast; the check uses the same CLBlast parameters as training. */
    if (cleat_device_get_facts(device)->work_group > 1) cleat_tuning_destroy(cleat_tuning_load(device));
    status = open_trajectory(&c, &why);
    if (!status) status = check_all(&c, &why);
    cleat_safetensors_close(c.file);
    if (status == CLEAT_ERR_DEVICE_MEMORY || status == CLEAT_ERR_FIT) {
        cleat_log(CLEAT_LOG_WARNING, "reference training of %s: skipped, the device has too little memory for it: %s",
                  model, why.text);
        c.result = (cleat_reference_result){.comparisons = 0};
    } else if (status) {
        if (error) *error = why;
        return status;
    }
    *result = c.result;
    return CLEAT_OK;
}
