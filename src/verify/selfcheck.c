/* The self-check: a device proves that it computes rightly before it trains. */
#include "cleat/session.h"
#include "core/clock.h"
#include "core/embedded.h"
#include "core/files.h"
#include "core/memory.h"
#include "core/text.h"
#include "fit/workload.h"
#include "session/tuned.h"
#include "verify/verify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Files of src/verify/checks, by model type; ends with a NULL name. */
extern const cleat_embedded cleat_embedded_checks[];

enum { FORMAT = 1, HASH = 33, PATH = 1024 }; /* FORMAT: another check, other files */

typedef struct checker {
    cleat_device *device;
    const char *model;   /* type */
    cleat_dtype storage; /* what train.precision means here */
    cleat_safetensors *file;
    size_t comparisons;
    double worst; /* of all comparisons: deviation over tolerance */
} checker;

/* --- kept on disk --------------------------------------------------------------------------------------------- */

/* The file that says that this has passed here: its name is a hash of all that the check depends on. */
static cleat_status passed_path(const checker *c, char *path, size_t size, cleat_error *error) {
    const cleat_device_facts *facts = cleat_device_get_facts(c->device);
    char kernels[HASH], key[HASH], folder[PATH], text[1024];
    cleat_status status = cleat_kernels_hash(kernels, error);
    if (status == CLEAT_OK) status = cleat_cache_folder(folder, sizeof folder, error);
    if (status != CLEAT_OK) return status;
    int length = snprintf(text, sizeof text, "self-check %d\n%s\n%s\n%s\n%d %d %d\n%s\n%s\n%s\n", (int)FORMAT,
                          facts->platform, facts->name, facts->driver, (int)facts->work_group, (int)facts->lanes,
                          (int)facts->matrix_unit, kernels, c->model, cleat_dtype_name(c->storage));
    cleat_hash_text(text, (size_t)length, key);
    if ((size_t)snprintf(path, size, "%s/checked/%s", folder, key) >= size)
        return cleat_fail(error, CLEAT_ERR_IO, "the path of the cache folder is too long: %s", folder);
    return CLEAT_OK;
}

/* Without a folder for it the check is repeated by the next run. */
static void keep_passed(const char *path, const char *text) {
    char folder[PATH];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = 0;
    cleat_error error = {0};
    if (cleat_folder_make(folder, &error) != CLEAT_OK || cleat_file_write(path, text, strlen(text), &error) != CLEAT_OK)
        cleat_log(CLEAT_LOG_DEBUG, "self-check: not kept: %s", error.text);
}

/* --- checking ------------------------------------------------------------------------------------------------- */

static double excess(const cleat_verification *item) {
    double share = item->deviation / item->tolerance;
    return isnan(share) ? INFINITY : share;
}

/* Tolerances are made for cleat verify; a driver is only refused where it computes wrongly, not where it rounds otherwise. */
static double slack(cleat_dtype storage) {
    return storage == CLEAT_F32 ? 50 : 2;
}

static cleat_status refuse(const checker *c, int rank, const cleat_verify_report *report,
                           const cleat_verification *furthest, cleat_error *error) {
    const cleat_device_facts *facts = cleat_device_get_facts(c->device);
    char which[64] = "the kernels that it takes first";
    if (rank > 0) snprintf(which, sizeof which, "kernel variants number %d", rank + 1);
    return cleat_fail(
        error, CLEAT_ERR_DEVICE,
        "the device '%s' (%s, driver %s) computes wrongly: in a reference training of %s in %s with %s, '%s' "
        "is off by %.3g of its size, where %.1g is allowed (%zu of %zu comparisons are beyond their tolerance). Take "
        "another "
        "device (run.device) or another version of its driver; run.self_check = never trains all the same",
        facts->name, facts->platform, facts->driver, c->model, cleat_dtype_name(c->storage), which, furthest->name,
        furthest->deviation, furthest->tolerance * slack(c->storage), report->failed, report->count);
}

static cleat_status judge(checker *c, int rank, const cleat_verify_report *report, cleat_error *error) {
    const cleat_verification *furthest = &report->items[0];
    for (size_t i = 1; i < report->count; ++i)
        if (excess(&report->items[i]) > excess(furthest)) furthest = &report->items[i];
    c->comparisons += report->count;
    c->worst = fmax(c->worst, excess(furthest));
    return excess(furthest) > slack(c->storage) ? refuse(c, rank, report, furthest, error) : CLEAT_OK;
}

/* Once with each rank of variants, so that every kernel that can serve the trajectory has served it. */
static cleat_status check_all(checker *c, int *ranks, cleat_error *error) {
    bool more = true;
    int rank = 0;
    for (; more; ++rank) {
        const cleat_verify_subject subject = {
            .file = c->file, .precision = cleat_storage_precision(c->storage), .rank = rank};
        cleat_verify_report report = {0};
        cleat_status status = cleat_verify_subject_on(c->device, &subject, &report, &more, error);
        if (status != CLEAT_OK) return cleat_fail_in(error, status, "the self-check (%s)", c->model);
        status = judge(c, rank, &report, error);
        cleat_verify_free(&report);
        if (status != CLEAT_OK) return status;
    }
    *ranks = rank;
    return CLEAT_OK;
}

static const cleat_embedded *find_check(const char *model) {
    for (const cleat_embedded *file = cleat_embedded_checks; file->name; ++file)
        if (strcmp(file->name, model) == 0) return file;
    return NULL;
}

static cleat_status check(checker *c, const char *path, cleat_error *error) {
    const cleat_embedded *embedded = find_check(c->model);
    const double start = cleat_seconds();
    char said[256];
    int ranks = 0;
    if (!embedded) return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "no self-check for models '%s'", c->model);
    cleat_status status = cleat_safetensors_parse(c->model, embedded->text, embedded->size, &c->file, error);
    if (status == CLEAT_OK) status = check_all(c, &ranks, error);
    cleat_safetensors_close(c->file);
    if (status == CLEAT_ERR_DEVICE_MEMORY || status == CLEAT_ERR_FIT) {
        cleat_log(CLEAT_LOG_WARNING, "self-check: left out, the device has too little memory for it%s%s",
                  error ? ": " : "", error ? error->text : "");
        return CLEAT_OK;
    }
    if (status != CLEAT_OK) return status;
    snprintf(
        said, sizeof said,
        "%zu comparisons of a reference training of %s in %s, with %d sets of kernels: the furthest at %.2g of its "
        "tolerance; %.1f s",
        c->comparisons, c->model, cleat_dtype_name(c->storage), ranks, c->worst, cleat_seconds() - start);
    cleat_log(CLEAT_LOG_INFO, "self-check: %s", said);
    if (path[0]) keep_passed(path, said);
    return CLEAT_OK;
}

cleat_status cleat_self_check(cleat_device *device, const cleat_profile *profile, cleat_error *error) {
    char model[64], path[PATH + HASH + 16];
    if (profile->run.self_check == CLEAT_SELF_CHECK_NEVER) return CLEAT_OK;
    cleat_status status = cleat_profile_get(profile, "model.type", model, sizeof model, error);
    if (status != CLEAT_OK) return status;
    cleat_dtype storage = cleat_precision_storage(profile->train.precision, cleat_device_get_facts(device));
    checker c = {.device = device, .model = model, .storage = storage};
    if (passed_path(&c, path, sizeof path, NULL) != CLEAT_OK) path[0] = 0;
    if (profile->run.self_check == CLEAT_SELF_CHECK_AUTO && path[0] && cleat_file_exists(path)) return CLEAT_OK;
    return check(&c, path, error);
}
