/* The pre-tokenizers of tokenizer.json. Those that also change the text (ByteLevel, Metaspace) write a new one. */
#include "tokenizer/split.h"

#include "tokenizer/classes.h"
#include "tokenizer/normalise.h"
#include "tokenizer/unicode.h"

#include <string.h>

static void swap_texts(cleat_split_state *state) {
    cleat_aligned_text text = state->text;
    state->text = state->spare;
    state->spare = text;
    state->text.failed = state->text.failed || state->spare.failed;
    state->spare.size = 0;
}

static void swap_words(cleat_split_state *state) {
    cleat_text_spans words = state->words;
    state->words = state->spare_words;
    state->spare_words = words;
    state->words.failed = state->words.failed || state->spare_words.failed;
    state->spare_words.count = 0;
}

/* Receives the parts of a word in order, matches and the text between them, and adds words to the list. */
typedef struct joiner {
    cleat_text_spans *words;
    cleat_split_behaviour behaviour;
    cleat_text_span open; /* not added yet; size 0: none */
    bool open_is_match;   /* whether the last part of `open` was a match */
} joiner;

static void close_word(joiner *j) {
    cleat_spans_add(j->words, j->open.start, j->open.size);
    j->open.size = 0;
}

static void add_part(joiner *j, size_t start, size_t end, bool is_match) {
    bool joins = false;
    if (start == end) return;
    switch (j->behaviour) {
    case CLEAT_MATCH_REMOVED:
        close_word(j);
        if (is_match) return;
        break;
    case CLEAT_MATCH_ISOLATED:
        break;
    case CLEAT_MATCH_CONTIGUOUS:
        joins = is_match == j->open_is_match;
        break;
    case CLEAT_MATCH_MERGED_WITH_PREVIOUS:
        joins = is_match && !j->open_is_match;
        break;
    case CLEAT_MATCH_MERGED_WITH_NEXT:
        joins = !is_match && j->open_is_match;
        break;
    }
    if (j->open.size && joins) {
        j->open.size = end - j->open.start;
    } else {
        close_word(j);
        j->open = (cleat_text_span){start, end - start};
    }
    j->open_is_match = is_match;
}

/* Splits every word at characters of a class. */
static void split_at_class(cleat_split_state *state, bool (*matches)(int32_t character),
                           cleat_split_behaviour behaviour) {
    for (size_t w = 0; w < state->words.count; ++w) {
        const cleat_text_span word = state->words.items[w];
        joiner j = {.words = &state->spare_words, .behaviour = behaviour};
        size_t part = word.start, end = word.start + word.size;
        for (size_t at = word.start, length; at < end; at += length) {
            if (!matches(cleat_utf8_next(state->text.bytes + at, end - at, &length))) continue;
            add_part(&j, part, at, false);
            add_part(&j, at, at + length, true);
            part = at + length;
        }
        add_part(&j, part, end, false);
        close_word(&j);
    }
    swap_words(state);
}

static cleat_status split_at_pattern(const cleat_splitter *splitter, cleat_split_state *state, cleat_error *error) {
    for (size_t w = 0; w < state->words.count; ++w) {
        const cleat_text_span word = state->words.items[w];
        const char *bytes = state->text.bytes + word.start;
        joiner j = {.words = &state->spare_words, .behaviour = splitter->behaviour};
        size_t part = 0, start, end;
        cleat_pattern_result found;
        while ((found = cleat_pattern_find(&splitter->pattern, bytes, word.size, part, &state->work, &start, &end)) ==
               CLEAT_PATTERN_FOUND) {
            add_part(&j, word.start + part, word.start + start, splitter->invert);
            add_part(&j, word.start + start, word.start + end, !splitter->invert);
            part = end;
        }
        if (found == CLEAT_PATTERN_FAILED) return cleat_pattern_failure("Split", error);
        add_part(&j, word.start + part, word.start + word.size, splitter->invert);
        close_word(&j);
    }
    swap_words(state);
    return CLEAT_OK;
}

/* BertPreTokenizer: words end at white space; each punctuation character is a word. */
static void split_bert(cleat_split_state *state) {
    for (size_t w = 0; w < state->words.count; ++w) {
        const cleat_text_span word = state->words.items[w];
        size_t part = word.start, end = word.start + word.size;
        for (size_t at = word.start, length; at < end; at += length) {
            int32_t c = cleat_utf8_next(state->text.bytes + at, end - at, &length);
            bool space = cleat_class_space(c);
            if (!space && !cleat_class_punctuation(c)) continue;
            cleat_spans_add(&state->spare_words, part, at - part);
            if (!space) cleat_spans_add(&state->spare_words, at, length);
            part = at + length;
        }
        cleat_spans_add(&state->spare_words, part, end - part);
    }
    swap_words(state);
}

/* Whitespace: runs of word characters, and runs of others, without white space. */
static void split_whitespace(cleat_split_state *state) {
    enum { BLANK, WORD, SYMBOL };
    for (size_t w = 0; w < state->words.count; ++w) {
        const cleat_text_span word = state->words.items[w];
        size_t part = word.start, end = word.start + word.size;
        int class = BLANK;
        for (size_t at = word.start, length; at < end; at += length) {
            int32_t c = cleat_utf8_next(state->text.bytes + at, end - at, &length);
            int next = cleat_class_space(c) ? BLANK : cleat_class_word(c) ? WORD : SYMBOL;
            if (next == class) continue;
            if (class != BLANK) cleat_spans_add(&state->spare_words, part, at - part);
            part = at;
            class = next;
        }
        if (class != BLANK) cleat_spans_add(&state->spare_words, part, end - part);
    }
    swap_words(state);
}

/* Length of an English clitic ('s 't 're 've 'm 'll 'd) at text [size], or 0. */
static size_t clitic(const char *text, size_t size) {
    if (size < 2 || text[0] != '\'') return 0;
    if (strchr("stmd", text[1]) && text[1]) return 2;
    if (size < 3) return 0;
    bool long_one =
        (text[1] == 'r' && text[2] == 'e') || (text[1] == 'v' && text[2] == 'e') || (text[1] == 'l' && text[2] == 'l');
    return long_one ? 3 : 0;
}

enum { LETTER, NUMBER, SPACE, OTHER };

static int class_of(int32_t c) {
    return cleat_class_letter(c) ? LETTER : cleat_class_number(c) ? NUMBER : cleat_class_space(c) ? SPACE : OTHER;
}

/* Bytes of the characters of class `class` at the start of text [size]; *last is where the last one begins. */
static size_t run_of(const char *text, size_t size, int class, size_t *last) {
    size_t at = 0, length;
    for (; at < size; at += length) {
        if (class_of(cleat_utf8_next(text + at, size - at, &length)) != class) break;
        *last = at;
    }
    return at;
}

/* The word at the start of text [size], size > 0, as GPT-2's expression finds it: a clitic; letters, digits or other
 * characters with one space before them; white space up to the last one before a word. */
static size_t gpt2_word(const char *text, size_t size) {
    size_t length, last = 0, space = text[0] == ' ' && size > 1, found = clitic(text, size);
    if (found) return found;
    int class = class_of(cleat_utf8_next(text + space, size - space, &length));
    if (space && class == SPACE) space = 0;
    if (class != SPACE) return space + run_of(text + space, size - space, class, &last);
    length = run_of(text, size, SPACE, &last);
    return length < size && last ? last : length;
}

static void split_byte_level(const cleat_splitter *splitter, cleat_split_state *state) {
    cleat_aligned_text *text = &state->text, *spare = &state->spare;
    for (size_t w = 0; w < state->words.count; ++w) { /* the space before */
        const cleat_text_span word = state->words.items[w];
        size_t start = spare->size;
        if ((splitter->prefix_space || state->in_sentence) && text->bytes[word.start] != ' ')
            cleat_aligned_text_add(spare, " ", 1, text->begin[word.start], text->begin[word.start]);
        cleat_aligned_text_copy(spare, text, word.start, word.size);
        cleat_spans_add(&state->spare_words, start, spare->size - start);
    }
    swap_texts(state);
    swap_words(state);
    for (size_t w = 0; w < state->words.count && !text->failed && !state->words.failed; ++w) {
        size_t at = state->words.items[w].start, end = at + state->words.items[w].size;
        for (size_t length; at < end; at += length) {
            size_t start = spare->size;
            length = splitter->words ? gpt2_word(text->bytes + at, end - at) : end - at;
            cleat_add_byte_chars(text, at, length, spare);
            cleat_spans_add(&state->spare_words, start, spare->size - start);
        }
    }
    swap_texts(state);
    swap_words(state);
}

/* Adds a word with its spaces replaced; adds words that begin with the replacement, if they are to be split. */
static void add_metaspaced(const cleat_splitter *splitter, cleat_split_state *state, cleat_text_span word) {
    const cleat_aligned_text *from = &state->text;
    cleat_aligned_text *to = &state->spare;
    const size_t mark = strlen(splitter->replacement), end = word.start + word.size;
    size_t start = to->size, part = start;
    bool has_mark = from->bytes[word.start] == ' ' ||
                    (word.size >= mark && memcmp(from->bytes + word.start, splitter->replacement, mark) == 0);
    bool prepends = splitter->prepend == CLEAT_PREPEND_ALWAYS ||
                    (splitter->prepend == CLEAT_PREPEND_FIRST && from->begin[word.start] == 0);
    if (prepends && !has_mark)
        cleat_aligned_text_add(to, splitter->replacement, mark, from->begin[word.start], from->begin[word.start]);
    for (size_t at = word.start, length; at < end; at += length) {
        bool space = from->bytes[at] == ' ';
        bool marked = space || (end - at >= mark && memcmp(from->bytes + at, splitter->replacement, mark) == 0);
        length = marked && !space ? mark : 1;
        if (marked && splitter->words && to->size > part) {
            cleat_spans_add(&state->spare_words, part, to->size - part);
            part = to->size;
        }
        if (space)
            cleat_aligned_text_add(to, splitter->replacement, mark, from->begin[at], from->end[at]);
        else
            cleat_aligned_text_copy(to, from, at, length);
    }
    cleat_spans_add(&state->spare_words, part, to->size - part);
}

static void split_metaspace(const cleat_splitter *splitter, cleat_split_state *state) {
    for (size_t w = 0; w < state->words.count; ++w) add_metaspaced(splitter, state, state->words.items[w]);
    swap_texts(state);
    swap_words(state);
}

cleat_status cleat_split_words(const cleat_splitter *splitter, cleat_split_state *state, cleat_error *error) {
    state->spare.size = state->spare_words.count = 0;
    switch (splitter->kind) {
    case CLEAT_SPLIT_BERT:
        split_bert(state);
        break;
    case CLEAT_SPLIT_BYTE_LEVEL:
        split_byte_level(splitter, state);
        break;
    case CLEAT_SPLIT_METASPACE:
        split_metaspace(splitter, state);
        break;
    case CLEAT_SPLIT_WHITESPACE:
        split_whitespace(state);
        break;
    case CLEAT_SPLIT_WHITESPACE_SPLIT:
        split_at_class(state, cleat_class_space, CLEAT_MATCH_REMOVED);
        break;
    case CLEAT_SPLIT_PUNCTUATION:
        split_at_class(state, cleat_class_punctuation, splitter->behaviour);
        break;
    case CLEAT_SPLIT_DIGITS:
        split_at_class(state, cleat_class_number, splitter->behaviour);
        break;
    case CLEAT_SPLIT_PATTERN:
        return split_at_pattern(splitter, state, error);
    }
    return CLEAT_OK;
}

void cleat_split_state_free(cleat_split_state *state) {
    cleat_aligned_text_free(&state->text);
    cleat_aligned_text_free(&state->spare);
    cleat_spans_free(&state->words);
    cleat_spans_free(&state->spare_words);
    cleat_pattern_work_free(&state->work);
}
