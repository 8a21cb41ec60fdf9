/* BERT's basic tokenizer in one pass.
 *
 * Plain ASCII is appended to the word directly. Everything else is processed in clusters: a character and the
 * marks that may compose with it or be reordered after it, without removed characters. Normalisation never
 * crosses the boundary of a cluster, so each cluster is normalised separately and its characters keep their
 * positions in the text. */
#include "tokenizer/words.h"

#include "core/memory.h"
#include "tokenizer/classes.h"
#include "tokenizer/unicode.h"

#include <stdlib.h>
#include <string.h>

enum { CLUSTER = 64 };

typedef struct placed {
    int32_t character;
    uint32_t begin, end; /* byte range in the text */
    uint32_t order;      /* position in the decomposed cluster */
} placed;

typedef struct splitter {
    const char *text;
    size_t size, at;
    const cleat_word_rules *rules;
    void (*emit)(void *user, const cleat_word *word);
    void *user;

    /* the current word */
    uint32_t characters, bytes;
    uint32_t text_begin, text_end;
    char word[CLEAT_WORD_BYTES];
    uint32_t begin[CLEAT_WORD_BYTES], end[CLEAT_WORD_BYTES];

    /* the current cluster, decomposed */
    /* [capacity] `few` as long as it suffices. */
    placed *cluster;
    size_t count, capacity;
    placed few[CLUSTER];
} splitter;

const char *cleat_special_token_name(cleat_special_token special) {
    static const char *const names[CLEAT_SPECIALS] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    return names[special];
}

static void end_word(splitter *s) {
    if (!s->characters) return;
    cleat_word word = {.special = -1,
                       .characters = s->characters,
                       .size = s->bytes,
                       .bytes = s->word,
                       .begin = s->begin,
                       .end = s->end,
                       .text_begin = s->text_begin,
                       .text_end = s->text_end};
    s->characters = s->bytes = 0;
    s->emit(s->user, &word);
}

static void append(splitter *s, int32_t character, uint32_t begin, uint32_t end) {
    if (!s->characters) s->text_begin = begin;
    if (!s->characters || end > s->text_end) s->text_end = end;
    if (s->characters > CLEAT_WORD_CHARACTERS || ++s->characters > CLEAT_WORD_CHARACTERS) return;
    size_t length = 1;
    if (character < 0x80)
        s->word[s->bytes] = (char)character;
    else
        length = cleat_utf8_encode(character, s->word + s->bytes);
    for (size_t i = 0; i < length; ++i, ++s->bytes) {
        s->begin[s->bytes] = begin;
        s->end[s->bytes] = end;
    }
}

static void append_punctuation(splitter *s, int32_t character, uint32_t begin, uint32_t end) {
    end_word(s);
    append(s, character, begin, end);
    end_word(s);
}

static cleat_status reserve(splitter *s, size_t more, cleat_error *error) {
    if (s->count + more <= s->capacity) return CLEAT_OK;
    size_t capacity = s->capacity * 2;
    placed *grown = cleat_alloc(capacity, sizeof *grown);
    if (!grown) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a character with %zu accents", s->count);
    memcpy(grown, s->cluster, s->count * sizeof *grown);
    if (s->cluster != s->few) cleat_free(s->cluster);
    s->cluster = grown;
    s->capacity = capacity;
    return CLEAT_OK;
}

static cleat_status add_to_cluster(splitter *s, int32_t character, uint32_t begin, uint32_t end, cleat_error *error) {
    int32_t parts[CLEAT_MAX_DECOMPOSITION];
    size_t count = cleat_char_decompose(character, parts);
    cleat_status status = reserve(s, count, error);
    for (size_t i = 0; i < count && !status; ++i) {
        s->cluster[s->count] = (placed){parts[i], begin, end, (uint32_t)s->count};
        ++s->count;
    }
    return status;
}

static int by_combining_class(const void *left, const void *right) {
    const placed *a = left, *b = right;
    int difference = cleat_char_combining(a->character) - cleat_char_combining(b->character);
    return difference ? difference : (a->order > b->order) - (a->order < b->order);
}

/* Canonical order: sorts each run of non-starters by combining class; the sort is stable. */
static void sort_marks(splitter *s) {
    for (size_t first = 0, last; first < s->count; first = last + 1) {
        last = first;
        while (last < s->count && cleat_char_combining(s->cluster[last].character) != 0) ++last;
        if (last - first > 1) qsort(s->cluster + first, last - first, sizeof *s->cluster, by_combining_class);
    }
}

/* Removes accents; the preceding character takes over their bytes. */
static void strip_accents(splitter *s) {
    bool (*is_accent)(int32_t character) = s->rules->published ? cleat_class_bert_accent : cleat_char_is_accent;
    size_t kept = 0;
    for (size_t i = 0; i < s->count; ++i) {
        placed *here = &s->cluster[i];
        if (!is_accent(here->character))
            s->cluster[kept++] = *here;
        else if (kept && s->cluster[kept - 1].end < here->end)
            s->cluster[kept - 1].end = here->end;
    }
    s->count = kept;
}

/* Composes the cluster. The correspondence of characters is then unknown: if anything changed, all characters
 * get the whole byte range. */
static cleat_status compose(splitter *s, cleat_error *error) {
    int32_t few[CLUSTER], *characters = few;
    uint32_t begin = UINT32_MAX, end = 0;
    if (s->count > CLUSTER) characters = cleat_alloc(s->count, sizeof *characters);
    if (!characters) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a character with %zu accents", s->count);
    for (size_t i = 0; i < s->count; ++i) {
        characters[i] = s->cluster[i].character;
        if (s->cluster[i].begin < begin) begin = s->cluster[i].begin;
        if (s->cluster[i].end > end) end = s->cluster[i].end;
    }
    size_t count = cleat_chars_compose(characters, s->count);
    for (size_t i = 0; i < count && count < s->count; ++i) {
        s->cluster[i].character = characters[i];
        s->cluster[i].begin = begin;
        s->cluster[i].end = end;
    }
    s->count = count;
    if (characters != few) cleat_free(characters);
    return CLEAT_OK;
}

static void append_cluster(splitter *s) {
    const bool published = s->rules->published;
    for (size_t i = 0; i < s->count; ++i) {
        const placed *here = &s->cluster[i];
        const int32_t c = published ? cleat_char_lower(here->character) : here->character;
        if (published ? cleat_class_punctuation(c) : cleat_char_is_punctuation(c))
            append_punctuation(s, c, here->begin, here->end);
        else
            append(s, c, here->begin, here->end);
    }
}

/* The class of a character for BertNormalizer. */
static cleat_char_class classify_published(int32_t c) {
    if (c < 0x80) return cleat_ascii_class((unsigned char)c);
    if (cleat_class_bert_control(c)) return CLEAT_CHAR_REMOVED;
    if (cleat_class_space(c)) return CLEAT_CHAR_SPACE;
    if (cleat_class_bert_ideograph(c)) return CLEAT_CHAR_IDEOGRAPH;
    if (cleat_char_combining(c) || cleat_char_is_accent(c)) return CLEAT_CHAR_MARK;
    return cleat_class_punctuation(c) ? CLEAT_CHAR_PUNCTUATION : CLEAT_CHAR_WORD;
}

/* Reads the character at s->at, or one byte that is not UTF-8 and counts as removed, and advances. */
static cleat_char_class read_character(splitter *s, int32_t *character, uint32_t *begin) {
    *begin = (uint32_t)s->at;
    size_t length = cleat_utf8_decode(s->text + s->at, s->size - s->at, character);
    s->at += length ? length : 1;
    if (!length) return CLEAT_CHAR_REMOVED;
    return s->rules->published ? classify_published(*character) : cleat_char_classify(*character);
}

/* Processes `character`, which was just read, together with the marks that follow it. */
static cleat_status split_cluster(splitter *s, int32_t character, uint32_t begin, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    cleat_char_class class = CLEAT_CHAR_MARK;
    uint32_t end = (uint32_t)s->at;
    s->count = 0;
    while (!status) {
        if (class == CLEAT_CHAR_MARK) {
            if (s->rules->lowercase && !s->rules->published) character = cleat_char_lower(character);
            status = add_to_cluster(s, character, begin, end, error);
        }
        if (s->at == s->size) break;
        class = read_character(s, &character, &begin);
        end = (uint32_t)s->at;
        if (class != CLEAT_CHAR_MARK && class != CLEAT_CHAR_REMOVED) {
            s->at = begin; /* it begins the next cluster */
            break;
        }
    }
    if (!status && s->count > 1) sort_marks(s);
    if (!status && s->rules->lowercase) strip_accents(s);
    if (!status && !s->rules->lowercase) status = compose(s, error);
    if (!status) append_cluster(s);
    return status;
}

/* If a special token begins at s->at, emits it as a word. */
static bool match_special(splitter *s) {
    for (int i = 0; i < CLEAT_SPECIALS; ++i) {
        const char *name = cleat_special_token_name((cleat_special_token)i);
        size_t length = strlen(name);
        if (!s->rules->special[i] || s->size - s->at < length || memcmp(s->text + s->at, name, length) != 0) continue;
        end_word(s);
        cleat_word word = {
            .special = i, .text_begin = (uint32_t)s->at, .text_end = (uint32_t)(s->at + length), .characters = 1};
        s->emit(s->user, &word);
        s->at += length;
        return true;
    }
    return false;
}

/* Processes a run of ASCII, up to the first character that the following character may change. */
static void split_ascii(splitter *s) {
    unsigned char c = (unsigned char)s->text[s->at];
    while (s->at < s->size && c < 0x80) {
        unsigned char next = s->at + 1 < s->size ? (unsigned char)s->text[s->at + 1] : ' ';
        uint32_t at = (uint32_t)s->at;
        cleat_char_class class = cleat_ascii_class(c);
        if (c == '[' && match_special(s)) {
            c = s->at < s->size ? (unsigned char)s->text[s->at] : ' ';
            continue;
        }
        if (class == CLEAT_CHAR_SPACE)
            end_word(s);
        else if (class != CLEAT_CHAR_REMOVED && (next >= 0x80 || cleat_ascii_class(next) == CLEAT_CHAR_REMOVED))
            return;
        else if (class == CLEAT_CHAR_PUNCTUATION)
            append_punctuation(s, c, at, at + 1);
        else if (class == CLEAT_CHAR_WORD)
            append(s, s->rules->lowercase && c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c, at, at + 1);
        ++s->at;
        c = next;
    }
}

static cleat_status split_other(splitter *s, cleat_error *error) {
    int32_t character;
    uint32_t begin;
    switch (read_character(s, &character, &begin)) {
    case CLEAT_CHAR_REMOVED:
        return CLEAT_OK;
    case CLEAT_CHAR_SPACE:
        end_word(s);
        return CLEAT_OK;
    case CLEAT_CHAR_IDEOGRAPH: {
        int32_t parts[CLEAT_MAX_DECOMPOSITION];
        /* A compatibility ideograph decomposes into one other character. */
        parts[0] = character;
        if (!s->rules->published || s->rules->lowercase) cleat_char_decompose(character, parts);
        append_punctuation(s, parts[0], begin, (uint32_t)s->at);
        return CLEAT_OK;
    }
    default:
        if (!s->rules->published || s->rules->lowercase) return split_cluster(s, character, begin, error);
        if (cleat_class_punctuation(character))
            append_punctuation(s, character, begin, (uint32_t)s->at);
        else
            append(s, character, begin, (uint32_t)s->at);
        return CLEAT_OK;
    }
}

cleat_status cleat_words_split(const char *text, size_t size, const cleat_word_rules *rules,
                               void (*emit)(void *user, const cleat_word *word), void *user, cleat_error *error) {
    if (size >= UINT32_MAX)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "a text of %zu bytes; a text must have less than 4 GiB: split it",
                          size);
    splitter s; /* not zeroed: `characters` and `count` determine which elements of its buffers are set */
    s.text = text;
    s.size = size;
    s.at = 0;
    s.rules = rules;
    s.emit = emit;
    s.user = user;
    s.characters = s.bytes = 0;
    s.cluster = s.few;
    s.count = 0;
    s.capacity = CLUSTER;
    cleat_status status = CLEAT_OK;
    while (s.at < s.size && !status) {
        split_ascii(&s);
        if (s.at < s.size) status = split_other(&s, error);
    }
    if (!status) end_word(&s);
    if (s.cluster != s.few) cleat_free(s.cluster);
    return status;
}
