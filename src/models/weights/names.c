/* Names of parameters here and in published files, by the rows of an architecture. */
#include "weights/architecture.h"

#include <stdio.h>
#include <string.h>

/* Whether `name` [size] matches `pattern`, in which each `*` stands for a number. Writes the numbers. */
static bool match(const char *pattern, const char *name, size_t size, int64_t numbers[CLEAT_WEIGHT_NUMBERS],
                  size_t *count) {
    const char *end = name + size;
    size_t found = 0;
    for (; *pattern; ++pattern) {
        if (*pattern != '*') {
            if (name == end || *name++ != *pattern) return false;
            continue;
        }
        const char *digits = name;
        int64_t number = 0;
        while (name < end && *name >= '0' && *name <= '9' && name - digits < 9) number = number * 10 + (*name++ - '0');
        if (name == digits || found == CLEAT_WEIGHT_NUMBERS) return false;
        numbers[found++] = number;
    }
    if (name != end) return false;
    *count = found;
    return true;
}

/* Writes base, the source with its numbers, and the suffix. */
static void expand(const char *base, const char *source, const int64_t *numbers, const char *suffix,
                   char name[CLEAT_WEIGHT_NAME]) {
    size_t used = (size_t)snprintf(name, CLEAT_WEIGHT_NAME, "%s", base);
    for (; *source && used < CLEAT_WEIGHT_NAME - 24; ++source) {
        if (*source == '*')
            used += (size_t)snprintf(name + used, CLEAT_WEIGHT_NAME - used, "%lld", (long long)*numbers++);
        else
            name[used++] = *source;
    }
    snprintf(name + used, CLEAT_WEIGHT_NAME - used, "%s", suffix);
}

bool cleat_architecture_sources(const cleat_architecture *architecture, const cleat_model *model, bool other,
                                const char *param, cleat_weight_sources *sources) {
    const char *dot = strrchr(param, '.');
    const size_t whole = strlen(param), stem = dot ? (size_t)(dot - param) : whole;
    int64_t numbers[CLEAT_WEIGHT_NUMBERS] = {0};
    size_t count = 0;
    const cleat_weight_row *rows = other ? architecture->other_names : architecture->names;
    for (const cleat_weight_row *row = rows; row && row->param; ++row) {
        const bool all = match(row->param, param, whole, numbers, &count);
        if (!all && !match(row->param, param, stem, numbers, &count)) continue;
        cleat_weight_sources made = {
            .head = row->head, .rank = row->rank, .added = row->added, .positions = row->positions};
        if (architecture->renumber) architecture->renumber(model, count, numbers);
        while (made.count < CLEAT_WEIGHT_PARTS && row->sources[made.count]) {
            expand(row->head ? "" : architecture->base, row->sources[made.count], numbers, all ? "" : param + stem,
                   made.names[made.count]);
            ++made.count;
        }
        *sources = made;
        return true;
    }
    return false;
}

/* Whether the file has the tensor, or one of a layer of this name: "classifier.weight". */
static bool has_layer(const cleat_weights *weights, const char *name) {
    const size_t size = strlen(name);
    for (size_t i = 0; i < cleat_weights_count(weights); ++i) {
        const char *there = cleat_weights_at(weights, i)->name;
        if (strncmp(there, name, size) == 0 && (there[size] == 0 || there[size] == '.')) return true;
    }
    return false;
}

static bool has_row(const cleat_weight_row *rows, const char *param, const cleat_weights *weights) {
    for (const cleat_weight_row *row = rows; row && row->param; ++row) {
        bool found = strcmp(row->param, param) == 0;
        for (size_t i = 0; found && i < CLEAT_WEIGHT_PARTS && row->sources[i]; ++i)
            found = has_layer(weights, row->sources[i]);
        if (found) return true;
    }
    return false;
}

bool cleat_architecture_has_head(const cleat_architecture *architecture, const cleat_weights *weights) {
    for (const cleat_weight_row *row = architecture->names; row->param; ++row)
        if (row->head && !has_row(architecture->names, row->param, weights) &&
            !has_row(architecture->other_names, row->param, weights))
            return false;
    return true;
}
