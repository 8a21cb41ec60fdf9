/* Comparison of the classes of a file with those of the data. */
#include "models/published/labels.h"

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

static bool is_numbered(const char *name, int64_t index) {
    char number[32];
    snprintf(number, sizeof number, "class_%lld", (long long)index);
    return strcmp(name, number) == 0 || strcmp(name, number + 6) == 0;
}

/* The next byte that is no separator, as a small letter; 0 at the end. */
static char next_letter(const char **at) {
    *at += strspn(*at, " _-");
    const char letter = **at;
    if (letter) ++*at;
    return (char)(letter >= 'A' && letter <= 'Z' ? letter + 'a' - 'A' : letter);
}

/* `known` may be cut at the end of its field. */
static bool same_name(const char *name, const cleat_class *known) {
    const char *other = known->name;
    const bool cut = strlen(known->name) == sizeof known->name - 1;
    for (;;) {
        const char a = next_letter(&name), b = next_letter(&other);
        if (!b && cut) return true;
        if (a != b) return false;
        if (!a) return true;
    }
}

bool cleat_published_same_labels(const cleat_weights *weights, const cleat_class *known, int64_t count) {
    const cJSON *names = cJSON_GetObjectItemCaseSensitive(cleat_weights_config(weights), "id2label");
    bool same = true;
    if (cJSON_GetArraySize(names) != count) return true;
    for (int64_t i = 0; i < count; ++i) {
        const char *name = file_name(names, i);
        if (!name || is_numbered(known[i].name, i)) return true;
        same = same && same_name(name, &known[i]);
    }
    return same;
}
