/* Patterns: literal texts, and regular expressions by regex.c. */
#include "tokenizer/pattern.h"

#include "core/memory.h"
#include "platform/text.h"

#include <string.h>

cleat_status cleat_pattern_literal(const char *text, cleat_pattern *pattern, cleat_error *error) {
    if (!*text) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "an empty pattern");
    *pattern = (cleat_pattern){.literal = cleat_strdup(text), .size = strlen(text)};
    return pattern->literal ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a pattern");
}

void cleat_pattern_free(cleat_pattern *pattern) {
    cleat_free(pattern->literal);
    cleat_regex_destroy(pattern);
    *pattern = (cleat_pattern){0};
}

size_t cleat_pattern_steps(size_t size) {
    enum { STEPS = 1 << 16, STEPS_A_BYTE = 1 << 10 };
    return STEPS + size * STEPS_A_BYTE;
}

cleat_status cleat_pattern_failure(const char *what, cleat_error *error) {
    return cleat_fail(error, CLEAT_ERR_FORMAT,
                      "%s: its expression takes too many steps for this text, because it looks far ahead for each word "
                      "(\"a*b|a\") or has too many alternatives: shorten the text, or use another tokenizer",
                      what);
}

cleat_pattern_result cleat_pattern_find(const cleat_pattern *pattern, const char *text, size_t size, size_t from,
                                        cleat_pattern_work *work, size_t *start, size_t *end) {
    if (from >= size) return CLEAT_PATTERN_NONE;
    if (!pattern->literal) return cleat_regex_find(pattern, text, size, from, work, start, end);
    const char *found = memmem(text + from, size - from, pattern->literal, pattern->size);
    if (!found) return CLEAT_PATTERN_NONE;
    *start = (size_t)(found - text);
    *end = *start + pattern->size;
    return CLEAT_PATTERN_FOUND;
}
