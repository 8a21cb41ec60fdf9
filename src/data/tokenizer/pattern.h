/* Patterns of tokenizer.json: a literal text or a regular expression. */
#ifndef CLEAT_SRC_PATTERN_H
#define CLEAT_SRC_PATTERN_H

#include "cleat/core.h"

typedef struct cleat_pattern {
    char *literal;                   /* [size]; NULL: `regex` */
    size_t size;                     /* of the literal, or of the compiled expression */
    struct pcre2_real_code_8 *regex; /* PCRE2's pcre2_code */
} cleat_pattern;

/* State shared by the searches in one text. */
typedef struct cleat_pattern_work {
    size_t steps;      /* remaining steps of all searches: cleat_pattern_steps */
    size_t at, weight; /* of a search: the last counted position; steps per character */
    struct pcre2_real_match_data_8 *match;
    struct pcre2_real_match_context_8 *context;
} cleat_pattern_work;

/* CLEAT_ERR_ARGUMENT: an empty literal. */
cleat_status cleat_pattern_literal(const char *text, cleat_pattern *pattern, cleat_error *error);
/* Compiles a regular expression in Oniguruma's syntax: alternatives, groups (also (?i:) and (?>)),
 * lookaround, character sets, classes (\s \d \w \p{L} ...), and quantifiers, greedy, lazy or possessive;
 * letters of either case are equal one to one. CLEAT_ERR_NOT_SUPPORTED: anything else. */
cleat_status cleat_pattern_regex(const char *source, cleat_pattern *pattern, cleat_error *error);
void cleat_pattern_free(cleat_pattern *pattern);

typedef enum cleat_pattern_result {
    CLEAT_PATTERN_NONE,
    CLEAT_PATTERN_FOUND,
    CLEAT_PATTERN_FAILED
} cleat_pattern_result;

/* The steps that all searches in one text [size] may take together: a multiple of its size. */
size_t cleat_pattern_steps(size_t size);
/* Finds the first match in text [size], UTF-8, that begins at `from` or later and is not empty (an expression
 * that can match the empty text is refused: Hugging Face's tokenizers split there). The first search in a
 * text is from 0. CLEAT_PATTERN_FAILED: no memory, or no step is left. */
cleat_pattern_result cleat_pattern_find(const cleat_pattern *pattern, const char *text, size_t size, size_t from,
                                        cleat_pattern_work *work, size_t *start, size_t *end);
void cleat_pattern_work_free(cleat_pattern_work *work);
/* The error of CLEAT_PATTERN_FAILED in a text; `what` names the step of the tokenizer. */
cleat_status cleat_pattern_failure(const char *what, cleat_error *error);

/* For pattern.c, by regex.c. */

void cleat_regex_destroy(cleat_pattern *pattern);
cleat_pattern_result cleat_regex_find(const cleat_pattern *pattern, const char *text, size_t size, size_t from,
                                      cleat_pattern_work *work, size_t *start, size_t *end);

#endif
