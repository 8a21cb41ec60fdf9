/* The decoders of tokenizer.json. Each reads the texts of the tokens and writes others. */
#include "tokenizer/decode.h"

#include "core/memory.h"
#include "platform/text.h"
#include "tokenizer/normalise.h"
#include "tokenizer/unicode.h"

#include <string.h>

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

static void end_token(cleat_token_texts *texts) {
    if (cleat_grow(&texts->ends, texts->count, &texts->capacity, NULL) != CLEAT_OK)
        texts->bytes.failed = true;
    else
        texts->ends[texts->count++] = texts->bytes.size;
}

void cleat_token_texts_add(cleat_token_texts *texts, const char *bytes, size_t size) {
    cleat_string_add_bytes(&texts->bytes, bytes, size);
    end_token(texts);
}

void cleat_token_texts_free(cleat_token_texts *texts) {
    cleat_string_free(&texts->bytes);
    cleat_free(texts->ends);
    *texts = (cleat_token_texts){0};
}

/* The text of token i. */
static const char *text_of(const cleat_token_texts *texts, size_t i, size_t *size) {
    const size_t start = i ? texts->ends[i - 1] : 0;
    *size = texts->ends[i] - start;
    return texts->bytes.data ? texts->bytes.data + start : "";
}

/* Length of the longest start of text [size > 0], which is not UTF-8, that could begin a character; at least 1. */
static size_t broken_length(const char *text, size_t size) {
    const unsigned char lead = (unsigned char)*text;
    const size_t most = lead < 0xC2 || lead > 0xF4 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    size_t length = 1;
    for (; length < most && length < size; ++length, low = 0x80, high = 0xBF)
        if ((unsigned char)text[length] < low || (unsigned char)text[length] > high) break;
    return length;
}

/* Appends bytes with U+FFFD for each maximal part that is not UTF-8, as Unicode recommends (chapter 3.9). */
static void add_repaired(cleat_string *to, const char *bytes, size_t size) {
    int32_t character;
    for (size_t at = 0, length; at < size; at += length) {
        length = cleat_utf8_decode(bytes + at, size - at, &character);
        if (length) {
            cleat_string_add_bytes(to, bytes + at, length);
        } else {
            cleat_string_add_bytes(to, REPLACEMENT, 3);
            length = broken_length(bytes + at, size - at);
        }
    }
}

/* Appends the bytes that the characters of a token stand for; those of another token as they are. */
static void add_bytes(cleat_string *to, const char *text, size_t size) {
    const size_t before = to->size;
    for (size_t at = 0, length; at < size; at += length) {
        const int byte = cleat_char_byte(cleat_utf8_next(text + at, size - at, &length));
        if (byte < 0) {
            if (!to->failed) to->size = before;
            cleat_string_add_bytes(to, text, size);
            return;
        }
        cleat_string_add_bytes(to, &(char){(char)byte}, 1);
    }
}

static void decode_bytes(const cleat_token_texts *from, cleat_token_texts *to) {
    cleat_string bytes = {0};
    for (size_t i = 0, size; i < from->count; ++i) {
        const char *text = text_of(from, i, &size);
        add_bytes(&bytes, text, size);
    }
    to->bytes.failed = to->bytes.failed || bytes.failed;
    add_repaired(&to->bytes, bytes.data, bytes.size);
    end_token(to);
    cleat_string_free(&bytes);
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

int cleat_fallback_byte(const char *text, size_t size) {
    if (size != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
    const int high = text[3] == '+' ? 0 : hex_digit(text[3]), low = hex_digit(text[4]); /* Rust reads "+A" as 10 */
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

/* Adds a run of bytes as one token, or U+FFFD for each byte if they are not UTF-8. */
static void end_run(cleat_string *run, cleat_token_texts *to) {
    if (!run->size) return;
    if (cleat_text_check(run->data, run->size, NULL))
        cleat_token_texts_add(to, run->data, run->size);
    else
        for (size_t i = 0; i < run->size; ++i) cleat_token_texts_add(to, REPLACEMENT, 3);
    run->size = 0;
}

static void decode_fallback(const cleat_token_texts *from, cleat_token_texts *to) {
    cleat_string run = {0};
    for (size_t i = 0, size; i < from->count; ++i) {
        const char *text = text_of(from, i, &size);
        const int byte = cleat_fallback_byte(text, size);
        if (byte >= 0) {
            cleat_string_add_bytes(&run, &(char){(char)byte}, 1);
        } else {
            end_run(&run, to);
            cleat_token_texts_add(to, text, size);
        }
    }
    end_run(&run, to);
    to->bytes.failed = to->bytes.failed || run.failed;
    cleat_string_free(&run);
}

static void strip(const cleat_decoder *d, const char *text, size_t size, cleat_token_texts *to) {
    const size_t mark = strlen(d->content);
    size_t start = 0;
    for (size_t i = 0; mark && i < d->start && size - start >= mark && memcmp(text + start, d->content, mark) == 0; ++i)
        start += mark;
    for (size_t i = 0; mark && i < d->stop && size - start >= mark && memcmp(text + size - mark, d->content, mark) == 0;
         ++i)
        size -= mark;
    cleat_token_texts_add(to, text + start, size - start);
}

static void add_replaced(cleat_string *to, const char *text, size_t size, const char *from, const char *by) {
    const size_t length = strlen(from);
    for (const char *found; (found = memmem(text, size, from, length)) != NULL;) {
        cleat_string_add_bytes(to, text, (size_t)(found - text));
        cleat_string_add_bytes(to, by, strlen(by));
        size -= (size_t)(found - text) + length;
        text = found + length;
    }
    cleat_string_add_bytes(to, text, size);
}

/* Removes blanks that English does not have, one rule after the other. */
static void clean_up(cleat_string *text) {
    static const char *const rules[][2] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                           {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                           {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; ++i) {
        cleat_string changed = {.failed = text->failed};
        add_replaced(&changed, text->data, text->size, rules[i][0], rules[i][1]);
        cleat_string_free(text);
        *text = changed;
    }
}

static void decode_wordpiece(const cleat_decoder *d, const char *text, size_t size, bool first, cleat_token_texts *to) {
    const size_t prefix = strlen(d->content);
    const bool inside = size >= prefix && memcmp(text, d->content, prefix) == 0;
    cleat_string word = {0};
    if (!first && !inside) cleat_string_add_bytes(&word, " ", 1);
    cleat_string_add_bytes(&word, !first && inside ? text + prefix : text, !first && inside ? size - prefix : size);
    if (d->cleanup && word.size) clean_up(&word);
    to->bytes.failed = to->bytes.failed || word.failed;
    cleat_token_texts_add(to, word.data, word.size);
    cleat_string_free(&word);
}

static cleat_status replace(const cleat_decoder *d, const char *text, size_t size, cleat_token_texts *to,
                            cleat_pattern_work *work, cleat_error *error) {
    size_t at = 0, start, end;
    cleat_pattern_result found;
    while ((found = cleat_pattern_find(&d->pattern, text, size, at, work, &start, &end)) == CLEAT_PATTERN_FOUND) {
        cleat_string_add_bytes(&to->bytes, text + at, start - at);
        cleat_string_add_bytes(&to->bytes, d->content, strlen(d->content));
        at = end;
    }
    cleat_token_texts_add(to, text + at, size - at);
    return found == CLEAT_PATTERN_FAILED ? cleat_pattern_failure("Replace", error) : CLEAT_OK;
}

/* The steps that change each token alone; `i` is its index. */
static cleat_status decode_one(const cleat_decoder *d, const char *text, size_t size, size_t i, cleat_token_texts *to,
                               cleat_pattern_work *work, cleat_error *error) {
    if (d->kind == CLEAT_DECODE_STRIP) {
        strip(d, text, size, to);
    } else if (d->kind == CLEAT_DECODE_REPLACE) {
        return replace(d, text, size, to, work, error);
    } else if (d->kind == CLEAT_DECODE_WORDPIECE) {
        decode_wordpiece(d, text, size, i == 0, to);
    } else if (d->kind == CLEAT_DECODE_METASPACE) {
        add_replaced(&to->bytes, text, size, d->content, i == 0 && d->first ? "" : " ");
        end_token(to);
    } else {
        if (i) cleat_string_add_bytes(&to->bytes, " ", d->kind == CLEAT_DECODE_BLANKS);
        cleat_string_add_bytes(&to->bytes, text, size);
        if (d->kind == CLEAT_DECODE_BLANKS) end_token(to);
    }
    return CLEAT_OK;
}

cleat_status cleat_decode_step(const cleat_decoder *decoder, cleat_token_texts *texts, cleat_token_texts *spare,
                               cleat_pattern_work *work, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    spare->bytes.size = spare->count = 0;
    if (decoder->kind == CLEAT_DECODE_BYTE_LEVEL) {
        decode_bytes(texts, spare);
    } else if (decoder->kind == CLEAT_DECODE_BYTE_FALLBACK) {
        decode_fallback(texts, spare);
    } else {
        for (size_t i = 0, size; i < texts->count && !status; ++i) {
            const char *text = text_of(texts, i, &size);
            status = decode_one(decoder, text, size, i, spare, work, error);
        }
        if (decoder->kind == CLEAT_DECODE_FUSE) end_token(spare);
    }
    const cleat_token_texts swapped = *texts;
    *texts = *spare;
    *spare = swapped;
    texts->bytes.failed = texts->bytes.failed || spare->bytes.failed;
    return status;
}

void cleat_decoder_free(cleat_decoder *decoder) {
    cleat_pattern_free(&decoder->pattern);
    cleat_free(decoder->content);
    *decoder = (cleat_decoder){0};
}
