/* Encodes texts and decodes their ids, for test_languages.py.
 *
 *     tokenizer_texts TOKENIZER < RECORDS > RESULTS
 *
 * A record is u32 bytes and a text, or u32 ids, of which the highest bit is set, and i32 ids. The result of a text is
 * u32 ids and the ids; that of ids are three texts, each u32 bytes and its bytes: with special tokens, without them,
 * and without them token by token. The first line on stderr has the ids bos and eos, and the seconds to load and to
 * encode. */
#include "cleat/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 1 << 20 };

static cleat_token tokens[MOST];
static int32_t ids[MOST];
static char text[4 * MOST], parts[4 * MOST];
static cleat_error error;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(cleat_status status) {
    if (!status) return;
    fprintf(stderr, "%s\n", error.text);
    exit(1);
}

static void put(const void *data, size_t count, size_t size) {
    const uint32_t written = (uint32_t)count;
    if (fwrite(&written, sizeof written, 1, stdout) != 1 || fwrite(data, size, count, stdout) != count) exit(1);
}

static void read_all(void *data, size_t size) {
    if (fread(data, 1, size, stdin) != size) exit(1);
}

static void decode(const cleat_tokenizer *tokenizer, cleat_token_stream *stream, size_t count) {
    size_t size = 0;
    for (int skip = 0; skip < 2; ++skip) {
        check(cleat_tokenizer_decode(tokenizer, ids, count, skip, text, sizeof text, &size, &error));
        put(text, size, 1);
    }
    size = 0;
    for (size_t i = 0; i <= count; ++i) {
        cleat_text_view part;
        check(i < count ? cleat_token_stream_add(stream, ids[i], &part, &error)
                        : cleat_token_stream_end(stream, &part, &error));
        if (part.size > sizeof parts - size || !cleat_text_check(part.data, part.size, NULL)) exit(2);
        memcpy(parts + size, part.data, part.size);
        size += part.size;
    }
    put(parts, size, 1);
}

int main(int count, char **arguments) {
    cleat_tokenizer *tokenizer = NULL;
    cleat_token_stream *stream = NULL;
    uint32_t head;
    double start = now(), encoding = 0;
    if (count != 2) return 2;
    check(cleat_tokenizer_load(arguments[1], false, &tokenizer, &error));
    const double loading = now() - start;
    check(cleat_token_stream_create(tokenizer, true, &stream, &error));
    while (fread(&head, sizeof head, 1, stdin) == 1) {
        const size_t n = head & 0x7FFFFFFF;
        size_t made = 0;
        if (n > MOST) return 2;
        if (head >> 31) {
            read_all(ids, n * sizeof *ids);
            decode(tokenizer, stream, n);
            continue;
        }
        read_all(text, n);
        start = now();
        check(cleat_tokenizer_encode(tokenizer, text, n, tokens, MOST, &made, &error));
        encoding += now() - start;
        for (size_t i = 0; i < made; ++i) ids[i] = tokens[i].id;
        put(ids, made, sizeof *ids);
    }
    fprintf(stderr, "%d %d %.3f %.3f\n", (int)cleat_tokenizer_bos(tokenizer), (int)cleat_tokenizer_eos(tokenizer),
            loading, encoding);
    cleat_token_stream_destroy(stream);
    cleat_tokenizer_destroy(tokenizer);
    return 0;
}
