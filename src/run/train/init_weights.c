/* The weights of model.init: opening them, the settings they determine, and starting from them. */
#include "train/init_weights.h"

#include "checkpoint/checkpoint.h"
#include "checkpoint/format.h"
#include "cleat/train.h"
#include "core/clock.h"
#include "core/memory.h"
#include "profile/adopt.h"
#include "weights/label_names.h"

#include <stdio.h>
#include <string.h>

static cleat_status open_init(const char *path, cleat_status (*open)(const char *, cleat_weights **, cleat_error *),
                              cleat_weights **weights, cleat_error *error) {
    char folder[CLEAT_CHECKPOINT_PATH];
    cleat_checkpoint_name name;
    cleat_status status = CLEAT_OK;
    /* The weights of a run are in the folder of a checkpoint. */
    if (cleat_checkpoint_pointer(path, "best", &name) || cleat_checkpoint_pointer(path, "last", &name)) {
        status = cleat_checkpoint_find_folder(path, folder, error);
        path = folder;
    }
    if (!status) status = open(path, weights, error);
    return status ? cleat_fail_in(error, status, "model.init") : CLEAT_OK;
}

cleat_status cleat_open_init(const char *path, cleat_weights **weights, cleat_error *error) {
    return open_init(path, cleat_weights_open, weights, error);
}

static cleat_status apply(cleat_profile *profile, cleat_status (*open)(const char *, cleat_weights **, cleat_error *),
                          cleat_error *error) {
    cleat_weights *weights = NULL;
    if (!*profile->init) return CLEAT_OK;
    cleat_status status = open_init(profile->init, open, &weights, error);
    if (!status && cleat_weights_count(weights) == 0)
        cleat_log(CLEAT_LOG_INFO, "model.init: %s has no weights yet; its config.json suffices for a plan",
                  cleat_weights_path(weights));
    if (!status) status = cleat_profile_adopt(profile, weights, error);
    if (!status) status = cleat_profile_check(profile, error);
    cleat_weights_close(weights);
    return status;
}

cleat_status cleat_profile_apply_init(cleat_profile *profile, cleat_error *error) {
    return apply(profile, cleat_weights_open, error);
}

cleat_status cleat_profile_apply_config(cleat_profile *profile, cleat_error *error) {
    return apply(profile, cleat_weights_open_config, error);
}

cleat_status cleat_profile_apply_run(cleat_profile *profile, const char *checkpoint, cleat_error *error) {
    char file[CLEAT_CHECKPOINT_PATH];
    cleat_profile *then = NULL;
    if (!*profile->init) return CLEAT_OK;
    cleat_status status = cleat_checkpoint_find_profile(checkpoint, file, NULL);
    if (status == CLEAT_ERR_NOT_FOUND) return cleat_profile_apply_init(profile, error);
    if (status) return cleat_checkpoint_find_profile(checkpoint, file, error);
    status = cleat_profile_load(file, NULL, 0, &then, error);
    if (!status && then->family == profile->family) status = cleat_profile_adopt_profile(profile, then, file, error);
    if (!status) status = cleat_profile_check(profile, error);
    cleat_profile_destroy(then);
    return status;
}

/* --- the table ------------------------------------------------------------------------------------------------ */

static void add_summary(const cleat_weights *weights, const cleat_weight_report *report, cleat_string *text) {
    char bytes[CLEAT_BYTES_TEXT];
    cleat_string_add(text, "%s (%s, %s): %zu tensors loaded, %zu skipped, %zu of the network initialised\n",
                     cleat_weights_path(weights), cleat_bytes_text(cleat_weights_bytes(weights), bytes),
                     cleat_weights_type(weights), report->tensors[CLEAT_WEIGHT_TAKEN],
                     report->tensors[CLEAT_WEIGHT_LEFT], report->tensors[CLEAT_WEIGHT_NEW]);
}

static cleat_status show(const cleat_weights *weights, const cleat_weight_report *report, cleat_string *table,
                         cleat_error *error) {
    cleat_string text = {0};
    char *lines = NULL, *rest = NULL;
    cleat_string_add(table, CLEAT_INIT_LINE);
    add_summary(weights, report, table);
    cleat_weight_report_add_text(report, CLEAT_INIT_LINE "  ", table);
    cleat_string_add(&text, "model.init = ");
    add_summary(weights, report, &text);
    cleat_weight_report_add_text(report, "  ", &text);
    cleat_status status = cleat_string_detach(&text, &lines, error);
    for (char *line = status ? NULL : strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        cleat_log(CLEAT_LOG_INFO, "%s", line);
    cleat_free(lines);
    return status;
}

/* The first blocks of a network may be what is wanted, or a config.json that does not belong to the file. */
static void warn_of_further(const cleat_profile *profile, const cleat_weights *weights,
                            const cleat_weight_report *report) {
    const cleat_key *key = cleat_schema_find(&profile->keys->own, "model", "layers");
    const char *place = key ? cleat_profile_given(profile->keys, key)->place : NULL;
    char what[160];
    if (!report->further) return;
    cleat_weight_report_further(report, what);
    cleat_log(CLEAT_LOG_WARNING, "model.init = %s: %s (%zu tensors)%s%s", cleat_weights_path(weights), what,
              report->further, place ? ": " : "", place ? place : "");
}

/* --- labels --------------------------------------------------------------------------------------------------- */

/* The first label with another name; SIZE_MAX: there is none, or nothing is known because one side has none. */
static size_t find_other(const cleat_name_list *then, const cleat_label_source *labels, const cleat_dataset *dataset) {
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < then->count; ++i) {
        const char *now = labels->name(dataset, i), *name = then->names[i];
        if (!now || cleat_label_is_nameless(now, (int64_t)i) || cleat_label_is_nameless(name, (int64_t)i))
            return SIZE_MAX;
        if (found == SIZE_MAX && !cleat_label_names_match(name, now, false)) found = i;
    }
    return found;
}

/* Why the output layer of a run is for other labels than those of the data, as many; "": it is not. */
static cleat_status compare_labels(const cleat_weights *weights, const cleat_label_source *labels,
                                   const cleat_dataset *dataset, char reason[160], cleat_error *error) {
    cleat_name_list then = {0};
    reason[0] = 0;
    if (!cleat_weights_are_own(weights)) return CLEAT_OK; /* its architecture compares */
    cleat_status status = cleat_labels_read(labels, cleat_weights_folder(weights), &then, error);
    if (status) return status;
    const size_t i = find_other(&then, labels, dataset);
    if (i != SIZE_MAX)
        snprintf(reason, 160, "its labels are others: label %zu is '%.40s' there, '%.40s' in the data", i + 1,
                 then.names[i], labels->name(dataset, i));
    cleat_name_list_free(&then);
    return CLEAT_OK;
}

cleat_status cleat_load_init(cleat_session *session, const cleat_dataset *dataset, uint64_t seed, cleat_string *table,
                             cleat_error *error) {
    cleat_weights *weights = NULL;
    char other_labels[160];
    cleat_weight_report report = {0};
    const double started = cleat_seconds();
    cleat_status status = cleat_open_init(session->profile->init, &weights, error);
    if (!status) status = compare_labels(weights, session->model->type->labels, dataset, other_labels, error);
    if (!status)
        status =
            cleat_session_load_weights(session, weights, seed, *other_labels ? other_labels : NULL, &report, error);
    if (!status) status = show(weights, &report, table, error);
    if (!status) warn_of_further(session->profile, weights, &report);
    if (!status) cleat_log(CLEAT_LOG_DEBUG, "loading the weights took %.2f s", cleat_seconds() - started);
    cleat_weight_report_free(&report);
    cleat_weights_close(weights);
    return status;
}
