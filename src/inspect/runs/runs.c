/* Many runs: finds their folders, and sums each of them up from its history. */
#include "cleat/runs.h"

#include "core/files.h"
#include "core/memory.h"
#include "models/model.h"
#include "platform/files.h"
#include "report/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether larger values of a metric are better: the family's entry of that name, or of which the name is one of several
 * ("f1_person"). Losses and unknown ones descend. */
static bool metric_ascends(const char *model, const char *metric) {
    bool ascends = false;
    size_t longest = 0;
    for (const cleat_model_class *const *family = cleat_model_classes; *family; ++family) {
        if (strcmp((*family)->name, model) != 0) continue;
        for (const cleat_metric_info *info = (*family)->metrics; info && info->name; ++info) {
            const size_t length = strlen(info->name);
            const bool is_it = strncmp(info->name, metric, length) == 0 && (!metric[length] || metric[length] == '_');
            if (!is_it || length <= longest) continue;
            longest = length;
            ascends = info->ascends;
        }
    }
    return ascends;
}

static const cleat_run_state states[] = {
    [CLEAT_REPORT_FINISHED] = CLEAT_RUN_FINISHED,   [CLEAT_REPORT_RUNNING] = CLEAT_RUN_RUNNING,
    [CLEAT_REPORT_INTERRUPTED] = CLEAT_RUN_STOPPED, [CLEAT_REPORT_KILLED] = CLEAT_RUN_STOPPED,
    [CLEAT_REPORT_DIVERGED] = CLEAT_RUN_FAILED,     [CLEAT_REPORT_FAILED] = CLEAT_RUN_FAILED,
    [CLEAT_REPORT_UNKNOWN] = CLEAT_RUN_STOPPED};

static void find_best(const cleat_history *history, int64_t until, cleat_run_summary *made) {
    const cleat_history_table *eval = cleat_history_find(history, "eval");
    const double *values = cleat_history_values(eval, made->metric), *epochs = cleat_history_values(eval, "epoch");
    made->best = made->best_epoch = NAN;
    for (size_t i = 0; values && epochs && i < eval->rows; ++i) {
        if (!isfinite(values[i]) || (until > 0 && epochs[i] > (double)until)) continue;
        const bool is_better = made->ascends ? values[i] > made->best : values[i] < made->best;
        if (!is_better && isfinite(made->best)) continue;
        made->best = values[i];
        made->best_epoch = epochs[i];
    }
}

cleat_status cleat_run_summary_read(const char *folder, const char *metric, int64_t until, cleat_run_summary *summary,
                                    cleat_error *error) {
    cleat_history *history = NULL;
    cleat_report_run run = {.history = NULL};
    cleat_run_summary made = {.folder = cleat_strdup(folder)};
    cleat_status status = made.folder ? cleat_history_read(folder, &history, error)
                                      : cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", folder);
    made.name = made.folder;
    if (!status) status = cleat_report_run_open(history, &run, error);
    if (status) goto done;
    const char *model = cleat_history_setting_of(history, "model", "type");
    if (!model) model = cleat_report_start_text(&run, "model", "family");
    snprintf(made.model, sizeof made.model, "%s", model ? model : "");
    made.state = states[run.outcome];
    made.epochs = floor(run.epoch + 1e-9); /* steps / steps per epoch */
    made.epochs_planned = run.epochs;
    made.seconds = run.seconds;
    snprintf(made.metric, sizeof made.metric, "%s", metric ? metric : run.metric);
    made.ascends = metric && strcmp(metric, run.metric) != 0 ? metric_ascends(made.model, metric) : run.ascends;
    find_best(history, until, &made);
    made.settings = history->settings;
    made.n_settings = history->n_settings;
    history->settings = NULL;
    history->n_settings = 0;
    *summary = made;
done:
    cleat_report_run_free(&run);
    cleat_history_free(history);
    if (status) cleat_run_summary_free(&made);
    return status;
}

void cleat_run_summary_free(cleat_run_summary *summary) {
    for (size_t i = 0; i < summary->n_settings; ++i) {
        cleat_free(summary->settings[i].section);
        cleat_free(summary->settings[i].key);
        cleat_free(summary->settings[i].value);
    }
    cleat_free(summary->settings);
    cleat_free(summary->folder);
    *summary = (cleat_run_summary){.folder = NULL};
}

const char *cleat_run_setting(const cleat_run_summary *summary, const char *section, const char *key) {
    for (size_t i = 0; i < summary->n_settings; ++i)
        if (strcmp(summary->settings[i].key, key) == 0 && strcmp(summary->settings[i].section, section) == 0)
            return summary->settings[i].value;
    return NULL;
}

static bool is_file_of_run(const char *name) {
    return strncmp(name, "ckpt-", 5) == 0 || cleat_has_word("metrics.jsonl system.jsonl resolved.ini", name, ' ');
}

typedef struct search {
    const char *root, *metric;
    cleat_run_list *list;
} search;

static cleat_status add_run(const search *in, const char *folder, cleat_error *error) {
    cleat_run_list *list = in->list;
    cleat_error why = {0};
    if (cleat_grow(&list->items, list->count, &list->capacity, error)) return CLEAT_ERR_MEMORY;
    if (cleat_run_summary_read(folder, in->metric, 0, &list->items[list->count], &why)) {
        if (list->damaged++ == 0) snprintf(list->failure, sizeof list->failure, "%.500s", why.text);
        return CLEAT_OK;
    }
    cleat_run_summary *found = &list->items[list->count++];
    found->name += strlen(in->root);
    found->name = *found->name ? found->name + strspn(found->name, "/") : ".";
    return CLEAT_OK;
}

/* A folder without any run counts once, with all that is below it. */
static cleat_status search_folder(const search *in, const char *folder, int depth, cleat_error *error) {
    char path[CLEAT_FILE_PATH];
    struct stat info;
    cleat_name_list inside = {0};
    const bool is_run = cleat_listing_read(folder, is_file_of_run, &inside, NULL) == CLEAT_OK && inside.count > 0;
    cleat_name_list_free(&inside);
    if (is_run) return add_run(in, folder, error);
    const size_t before = in->list->count + in->list->damaged, others = in->list->others;
    cleat_status status = CLEAT_OK;
    cleat_listing_read(folder, NULL, &inside, NULL); /* one that cannot be read counts as empty */
    for (size_t i = 0; i < inside.count && depth < 16 && !status; ++i)
        if (strcmp(inside.names[i], "out-of-fold") != 0 && /* predictions of --folds */
            cleat_path_join(folder, inside.names[i], path, sizeof path, NULL) == CLEAT_OK && lstat(path, &info) == 0 &&
            S_ISDIR(info.st_mode))
            status = search_folder(in, path, depth + 1, error);
    cleat_name_list_free(&inside);
    if (in->list->count + in->list->damaged > before || depth == 0) return status;
    in->list->others = others + 1;
    if (!others) snprintf(in->list->other, sizeof in->list->other, "%.500s", folder);
    return status;
}

static int by_name(const void *a, const void *b) {
    const cleat_run_summary *left = a, *right = b;
    return strcmp(left->name, right->name);
}

/* NaN last. */
static int by_number(double left, double right, const void *a, const void *b) {
    if (isnan(left) || isnan(right)) return isnan(left) == isnan(right) ? by_name(a, b) : isnan(left) ? 1 : -1;
    return left < right ? -1 : left > right ? 1 : by_name(a, b);
}

static int by_time(const void *a, const void *b) {
    const cleat_run_summary *left = a, *right = b;
    return by_number(left->seconds, right->seconds, a, b);
}

static int by_metric(const void *a, const void *b) {
    const cleat_run_summary *left = a, *right = b;
    const int metric = strcmp(left->metric, right->metric); /* runs of other metrics are groups of their own */
    if (metric) return metric;
    const double sign = left->ascends ? -1 : 1;
    return by_number(sign * left->best, sign * right->best, a, b);
}

void cleat_run_list_sort(cleat_run_list *list, const char *order) {
    const bool is_name = strcmp(order, "name") == 0, is_time = strcmp(order, "time") == 0;
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, is_name ? by_name : is_time ? by_time : by_metric);
}

cleat_status cleat_run_list_read(const char *folder, const char *metric, cleat_run_list *list, cleat_error *error) {
    cleat_run_list made = {.count = 0};
    const search in = {.root = folder, .metric = metric, .list = &made};
    if (!cleat_folder_exists(folder))
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: there is no such folder; give one with runs below it",
                          folder);
    cleat_status status = search_folder(&in, folder, 0, error);
    if (status) {
        cleat_run_list_free(&made);
        return status;
    }
    cleat_run_list_sort(&made, "name");
    *list = made;
    return CLEAT_OK;
}

void cleat_run_list_free(cleat_run_list *list) {
    for (size_t i = 0; i < list->count; ++i) cleat_run_summary_free(&list->items[i]);
    cleat_free(list->items);
    *list = (cleat_run_list){.count = 0};
}

/* Whether the setting `s` of the run `of` is the first of its name, and another run has another value. */
static bool differs(const cleat_run_list *list, size_t of, const cleat_history_setting *s) {
    for (size_t r = 0; r < of; ++r)
        if (cleat_run_setting(&list->items[r], s->section, s->key)) return false;
    if (strcmp(s->key, "out") == 0 || strcmp(s->key, "type") == 0) return false;
    for (size_t r = of + 1; r < list->count; ++r) {
        const char *other = cleat_run_setting(&list->items[r], s->section, s->key);
        if (other && strcmp(other, s->value) != 0) return true;
    }
    return false;
}

const cleat_history_setting *cleat_run_list_difference(const cleat_run_list *list, size_t i) {
    for (size_t r = 0; r < list->count; ++r)
        for (size_t s = 0; s < list->items[r].n_settings; ++s)
            if (differs(list, r, &list->items[r].settings[s]) && i-- == 0) return &list->items[r].settings[s];
    return NULL;
}
