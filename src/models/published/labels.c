/* Comparison of the classes of a file with those of the data. */
#include "models/published/labels.h"

#include "core/string.h"
#include "weights/label_names.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

/* The name of class `index`; NULL: it is missing, or a number. */
static const char *file_name(const cJSON *names, int64_t index) {
    char key[24];
    snprintf(key, sizeof key, "%lld", (long long)index);
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(names, key));
    return name && *name && strncmp(name, "LABEL_", 6) != 0 ? name : NULL;
}

/* class_3, or 3 as in files of arrays */
static bool is_numbered(const char *name, int64_t index) {
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)index);
    return strcmp(name, number) == 0 || cleat_label_is_nameless(name, index);
}

/* `known` may be cut at the end of its field. */
static bool same_name(const char *name, const cleat_class_info *known) {
    return cleat_label_names_match(name, known->name, strlen(known->name) == sizeof known->name - 1);
}

/* Whether the classes can be those of LABEL_0, LABEL_1, ...: numbers must be consecutive. */
static bool can_be_numbered(const cleat_class_info *known, int64_t count) {
    double first, number;
    if (!cleat_number_parse(known[0].name, &first)) return true;
    for (int64_t i = 1; i < count; ++i)
        if (cleat_number_parse(known[i].name, &number) && number != first + (double)i) return false;
    return true;
}

bool cleat_published_same_labels(const cleat_weights *weights, const cleat_class_info *known, int64_t count) {
    const cJSON *names = cJSON_GetObjectItemCaseSensitive(cleat_weights_config(weights), "id2label");
    bool same = true;
    if (cJSON_GetArraySize(names) != count) return true;
    for (int64_t i = 0; i < count; ++i) {
        const char *name = file_name(names, i);
        if (!name) return can_be_numbered(known, count);
        if (is_numbered(known[i].name, i)) return true;
        same = same && same_name(name, &known[i]);
    }
    return same;
}
