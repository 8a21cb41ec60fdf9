/* Patterns of tokenizer.json: a literal text or a regular expression. */
#ifndef CLEAT_SRC_PATTERN_H
#define CLEAT_SRC_PATTERN_H

#include "cleat/core.h"

typedef struct cleat_pattern {
    char *literal; /* [size]; NULL: `regex` */
    size_t size;
    struct cleat_regex *regex;
} cleat_pattern;

/* CLEAT_ERR_ARGUMENT: an empty literal. */
cleat_status cleat_pattern_literal(const char *text, cleat_pattern *pattern, cleat_error *error);
/* Compiles a regular expression: alternatives, groups (also (?i:)), lookahead, character sets, classes (\s \d \w
 * \p{L} ...), and quantifiers, greedy, lazy or possessive. CLEAT_ERR_NOT_SUPPORTED: anything else. */
cleat_status cleat_pattern_regex(const char *source, cleat_pattern *pattern, cleat_error *error);
void cleat_pattern_free(cleat_pattern *pattern);

typedef enum cleat_pattern_result {
    CLEAT_PATTERN_NONE,
    CLEAT_PATTERN_FOUND,
    CLEAT_PATTERN_FAILED
} cleat_pattern_result;

/* The steps that all searches in one text [size] may take together: a multiple of its size. */
size_t cleat_pattern_steps(size_t size);
/* Finds the first match in text [size] that begins at `from` or later and is not empty (no tokenizer divides texts at
 * empty matches). *steps are those that are left, and are counted down. CLEAT_PATTERN_FAILED: no memory, or none is
 * left. */
cleat_pattern_result cleat_pattern_find(const cleat_pattern *pattern, const char *text, size_t size, size_t from,
                                        size_t *steps, size_t *start, size_t *end);
/* The error of CLEAT_PATTERN_FAILED in a text; `what` names the step of the tokenizer. */
cleat_status cleat_pattern_failure(const char *what, cleat_error *error);

/* For pattern.c, by regex.c. */
cleat_status cleat_regex_compile(const char *source, struct cleat_regex **regex, cleat_error *error);
void cleat_regex_destroy(struct cleat_regex *regex);
cleat_pattern_result cleat_regex_find(const struct cleat_regex *regex, const char *text, size_t size, size_t from,
                                      size_t *steps, size_t *start, size_t *end);

#endif
