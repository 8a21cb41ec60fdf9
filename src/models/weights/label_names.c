/* Names of labels: numbers, case, separators. */
#include "weights/label_names.h"

#include <stdio.h>
#include <string.h>

bool cleat_label_is_nameless(const char *name, int64_t index) {
    char number[32];
    snprintf(number, sizeof number, "class_%lld", (long long)index);
    return strcmp(name, number) == 0;
}

/* The next byte that is not a separator, in lower case; 0 at the end. */
static char next_letter(const char **at) {
    *at += strspn(*at, " _-");
    const char letter = **at;
    if (letter) ++*at;
    return (char)(letter >= 'A' && letter <= 'Z' ? letter + 'a' - 'A' : letter);
}

bool cleat_label_names_match(const char *name, const char *other, bool is_cut) {
    for (;;) {
        const char a = next_letter(&name), b = next_letter(&other);
        if (!b && is_cut) return true;
        if (a != b) return false;
        if (!a) return true;
    }
}
