/* Added tokens: a list, and the search for them in a text. */
#include "tokenizer/added.h"

#include "core/memory.h"
#include "tokenizer/classes.h"
#include "tokenizer/unicode.h"

const cleat_added_token *cleat_added_tokens_get(const cleat_added_tokens *added, const char *content) {
    uint32_t at;
    return cleat_name_table_find(&added->by_content, content, &at) ? &added->tokens[at] : NULL;
}

cleat_status cleat_added_tokens_add(cleat_added_tokens *added, const cleat_added_token *token, cleat_error *error) {
    uint32_t at = (uint32_t)added->count;
    if (cleat_name_table_find(&added->by_content, token->content, &at)) {
        char *content = added->tokens[at].content;
        added->tokens[at] = *token;
        added->tokens[at].content = content;
        return CLEAT_OK;
    }
    cleat_status status = cleat_grow(&added->tokens, added->count, &added->capacity, error);
    if (status) return status;
    char *content = cleat_strdup(token->content);
    if (!content) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for an added token");
    status = cleat_name_table_add(&added->by_content, content, at, error);
    if (status) {
        cleat_free(content);
        return status;
    }
    added->tokens[at] = *token;
    added->tokens[at].content = content;
    ++added->count;
    return CLEAT_OK;
}

void cleat_added_tokens_free(cleat_added_tokens *added) {
    for (size_t i = 0; i < added->count; ++i) {
        cleat_free(added->tokens[i].content);
        cleat_free(added->tokens[i].shown);
    }
    cleat_free(added->tokens);
    cleat_name_table_free(&added->by_content);
    cleat_trie_free(&added->raw);
    cleat_trie_free(&added->normalised);
    *added = (cleat_added_tokens){0};
}

/* Whether the character at text[at], or the one that ends there, is of a class. */
static bool is_class(const char *text, size_t size, size_t at, bool (*matches)(int32_t character)) {
    size_t length;
    return at < size && matches(cleat_utf8_next(text + at, size - at, &length));
}

static bool is_single_word(const char *text, size_t size, size_t start, size_t end) {
    if (start && is_class(text, size, cleat_utf8_previous(text, start), cleat_class_word)) return false;
    return !is_class(text, size, end, cleat_class_word);
}

bool cleat_added_tokens_find(const cleat_added_tokens *added, const cleat_trie *trie, const char *text, size_t size,
                             size_t from, size_t taken, cleat_added_match *match) {
    if (trie->count < 2) return false;
    for (size_t at = from, length; at < size; at += length) {
        length = 1;
        if (!trie->root[(unsigned char)text[at]]) continue;
        int32_t index = cleat_trie_longest(trie, 0, text + at, size - at, &length);
        if (index < 0) continue;
        const cleat_added_token *token = &added->tokens[index];
        size_t start = at, end = at + length;
        const size_t space = match->end; /* `from` to here: white space of the previous match, if any */
        if (token->single_word && !is_single_word(text, size, start, end)) continue;
        while (token->lstrip && start > taken &&
               is_class(text, size, cleat_utf8_previous(text, start), cleat_class_space))
            start = cleat_utf8_previous(text, start);
        if (token->rstrip && end < space) end = space;
        for (size_t space_size; token->rstrip && end < size; end += space_size)
            if (!cleat_class_space(cleat_utf8_next(text + end, size - end, &space_size))) break;
        *match = (cleat_added_match){token, start, end, at + length};
        return true;
    }
    return false;
}
