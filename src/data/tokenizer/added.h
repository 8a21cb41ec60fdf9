/* Added tokens of tokenizer.json: texts that are tokens wherever they occur, found before the text is
 * split. */
#ifndef CLEAT_SRC_ADDED_H
#define CLEAT_SRC_ADDED_H

#include "core/name_table.h"
#include "tokenizer/aligned.h"
#include "tokenizer/trie.h"

typedef struct cleat_added_token {
    char *content;
    int32_t id;
    bool special;
    bool single_word;    /* only without adjacent word characters */
    bool lstrip, rstrip; /* includes the white space before or after it */
    bool normalized;     /* searched for in the normalised text, in its normalised form */
    char *shown;         /* in decoded text; NULL: the content; the list owns it */
} cleat_added_token;

typedef struct cleat_added_tokens {
    cleat_added_token *tokens; /* [count] */
    size_t count, capacity;
    cleat_name_table by_content; /* indices of tokens */
    /* Tokens that are searched for in the original and in the normalised text; values: indices of tokens. */
    cleat_trie raw, normalised;
} cleat_added_tokens;

/* Appends a token; the list owns a copy of `content`. A token whose content is known replaces the earlier one. */
cleat_status cleat_added_tokens_add(cleat_added_tokens *added, const cleat_added_token *token, cleat_error *error);
/* The token of that content, or NULL. */
const cleat_added_token *cleat_added_tokens_get(const cleat_added_tokens *added, const char *content);
void cleat_added_tokens_free(cleat_added_tokens *added);

typedef struct cleat_added_match {
    const cleat_added_token *token;
    size_t start, end; /* bytes, including stripped white space */
    size_t next;       /* start of the next search: the end without that white space */
} cleat_added_match;

/* Finds the first match in text [size] at or after `from`: the leftmost, and there the longest. `taken` is
 * the end of the previous match (0: none), whose white space is not included again. As in the reference, a
 * token that begins in white space of the previous one is found, so that `start` may be below `taken`.
 * Returns false if there is none. */
bool cleat_added_tokens_find(const cleat_added_tokens *added, const cleat_trie *trie, const char *text, size_t size,
                             size_t from, size_t taken, cleat_added_match *match);

#endif
