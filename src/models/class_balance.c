/* Warnings about the distribution of classes in the training and validation data. */
#include "models/classes.h"
#include "platform/text.h"

#include "core/memory.h"
#include "core/string.h"
#include "data/dataset.h"

#include <string.h>

enum { NAMED = 5, UNEVEN = 10 }; /* warns of a class with UNEVEN times the samples of another */

/* Appends the first classes without samples and the number of further ones; returns the number of all. */
static int64_t name_classes(const cleat_class_info *classes, const int64_t *counts, int64_t count,
                            cleat_string *names) {
    int64_t found = 0;
    for (int64_t c = 0; c < count; ++c) {
        if ((counts ? counts[c] : classes[c].samples) > 0) continue;
        if (++found <= NAMED) cleat_string_add(names, "%s'%s'", found > 1 ? ", " : "", classes[c].name);
    }
    if (found > NAMED) cleat_string_add(names, " and %lld more", (long long)(found - NAMED));
    return found;
}

void cleat_classes_warn_absent(const char *path, const cleat_class_info *classes, const int64_t *counts, int64_t count,
                               const char *what, const char *effect) {
    cleat_string names = {0};
    const int64_t absent = name_classes(classes, counts, count, &names);
    if (absent > 0)
        cleat_log(CLEAT_LOG_WARNING, "%s: %lld of %lld classes have no %s (%s): %s", path, (long long)absent,
                  (long long)count, what, names.data ? names.data : "", effect);
    cleat_string_free(&names);
}

static void warn_uneven(const char *path, const cleat_class_info *classes, int64_t count, cleat_weighting weighting) {
    int64_t most = 0, least = -1, all = 0;
    for (int64_t c = 0; c < count; ++c) {
        all += classes[c].samples;
        if (classes[c].samples > classes[most].samples) most = c;
        if (classes[c].samples > 0 && (least < 0 || classes[c].samples < classes[least].samples)) least = c;
    }
    if (least < 0 || weighting != CLEAT_WEIGHTING_NONE || classes[most].samples < UNEVEN * classes[least].samples)
        return;
    cleat_log(
        CLEAT_LOG_WARNING,
        "%s: the classes are unbalanced: '%s' has %lld of %lld training samples, '%s' %lld. Always predicting '%s' "
        "has an accuracy of %.2f: see macro_f1 (run.metric = macro_f1); loss.class_weights = balanced gives rare "
        "classes larger weights",
        path, classes[most].name, (long long)classes[most].samples, (long long)all, classes[least].name,
        (long long)classes[least].samples, classes[most].name, (double)classes[most].samples / (double)all);
}

/* Whether two names differ only in case and outer blanks. */
static bool are_alike(const char *a, const char *b) {
    size_t length = strlen(a += strspn(a, " ")), other = strlen(b += strspn(b, " "));
    while (length > 0 && a[length - 1] == ' ') --length;
    while (other > 0 && b[other - 1] == ' ') --other;
    return length == other && strncasecmp(a, b, length) == 0;
}

/* One of them is probably a typing error. */
static void warn_alike(const cleat_class_source *source, const cleat_dataset *dataset, const char *path,
                       int64_t count) {
    enum { MOST = 2000 }; /* every pair is compared */
    for (size_t c = 1; c < (size_t)count && count <= MOST; ++c)
        for (size_t d = 0; d < c; ++d) {
            if (!are_alike(source->name(dataset, c), source->name(dataset, d))) continue;
            cleat_log(CLEAT_LOG_WARNING,
                      "%s: '%.60s' and '%.60s' are two classes, but their names differ only in case or blanks; spell "
                      "them alike if they are one class",
                      path, source->name(dataset, d), source->name(dataset, c));
            return;
        }
}

cleat_status cleat_classes_warn(const cleat_class_source *source, const cleat_dataset *dataset, const char *path,
                                cleat_weighting weighting, int64_t count, const cleat_class_info *classes,
                                cleat_error *error) {
    if (dataset->targets) {
        cleat_classes_warn_absent(path, classes, NULL, count, "training samples", "the model cannot learn them");
        return CLEAT_OK;
    }
    int64_t *counts = cleat_alloc((size_t)count, sizeof *counts);
    bool any = false;
    if (!counts)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the counts of %lld classes", (long long)count);

    warn_alike(source, dataset, path, count);
    cleat_classes_warn_absent(path, classes, NULL, count, "training samples", "the model cannot learn them");
    warn_uneven(path, classes, count, weighting);

    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i) {
        const int32_t label = cleat_dataset_split(dataset, i) == CLEAT_SPLIT_VAL ? source->label(dataset, i) : -1;
        if (label < 0) continue;
        ++counts[label];
        any = true;
    }
    if (any)
        cleat_classes_warn_absent(
            path, classes, counts, count, "validation samples",
            "metrics do not cover them; increase data.val_fraction, or use a larger validation set");
    cleat_free(counts);
    return CLEAT_OK;
}
