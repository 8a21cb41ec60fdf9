/* The nearest of a list of names by edit distance, for messages about unknown names. */
#include "cleat/core.h"

#include <string.h>

enum { LONGEST = 63 };

static int smaller(int a, int b) {
    return a < b ? a : b;
}

/* Edit distance from `a` to `b`, where swapping two neighbours is one edit ("optimal string alignment"). */
static int edit_distance(const char *a, const char *b) {
    int rows[3][LONGEST + 1];
    int n = (int)strlen(a), m = (int)strlen(b);
    int *before = rows[0], *last = rows[1], *row = rows[2];
    for (int j = 0; j <= m; ++j) last[j] = j;
    for (int i = 1; i <= n; ++i) {
        row[0] = i;
        for (int j = 1; j <= m; ++j) {
            row[j] = smaller(smaller(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = smaller(row[j], before[j - 2] + 1);
        }
        int *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[m];
}

const char *cleat_nearest_name(const char *name, const char *const *names, size_t count) {
    const char *nearest = NULL;
    int length = (int)strlen(name);
    int limit = length <= 3 ? 1 : length / 3 + 1;
    if (length == 0 || length > LONGEST) return NULL;
    for (size_t i = 0; i < count; ++i) {
        const int other = (int)strnlen(names[i], LONGEST + 1);
        if (other > LONGEST || other - length > limit || length - other > limit)
            continue; /* the distance is at least the difference of the lengths */
        int distance = edit_distance(name, names[i]);
        if (distance > limit) continue;
        nearest = names[i];
        limit = distance - 1;
    }
    return nearest;
}
