/* Multi-threaded encoding of texts, and the cache file of the result. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/files.h"
#include "core/memory.h"
#include "data/text/encode_cache.h"
#include "files.h"
#include "platform/files.h"
#include "platform/processes.h"

enum { TEXTS = 1500, TEXT_BYTES = 64 };

static char memory[TEXTS][TEXT_BYTES];
static cleat_text_view texts[TEXTS];

static cleat_tokenizer *make_tokenizer(bool lowercase, const char *more) {
    char lines[256];
    cleat_tokenizer *tokenizer = NULL;
    snprintf(lines, sizeof lines, "[PAD]\n[UNK]\n[CLS]\n[SEP]\nfire\n##s\nin\nt\n##he\n%s", more);
    test_write_text(test_path("vocab.txt"), lines);
    assert_int_equal(cleat_tokenizer_load(test_path("vocab.txt"), lowercase, &tokenizer, NULL), CLEAT_OK);
    return tokenizer;
}

/* Texts of 0 to 11 words; one has more tokens than fit the encoder's small buffer. */
static void make_texts(void) {
    static const char *const words[5] = {"Fires", "in", "the", "zone", "fire"};
    for (size_t t = 0; t < TEXTS; ++t) {
        size_t size = 0;
        for (size_t w = 0; w < t * 7 % 11; ++w)
            size += (size_t)snprintf(memory[t] + size, TEXT_BYTES - size, "%s ", words[(t + w * w) % 5]);
        texts[t] = (cleat_text_view){memory[t], size};
    }
    static char long_text[9000];
    memset(long_text, '!', sizeof long_text);
    texts[TEXTS / 2] = (cleat_text_view){long_text, sizeof long_text};
}

static cleat_encode_setup setup_of(const cleat_tokenizer *tokenizer, int workers) {
    return (cleat_encode_setup){
        .tokenizer = tokenizer, .texts = texts, .n = TEXTS, .word_starts = true, .workers = workers, .cpus = "any"};
}

static void check_same(const cleat_encoded_texts *a, const cleat_encoded_texts *b) {
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->offsets, b->offsets, (a->n + 1) * sizeof *a->offsets);
    assert_memory_equal(a->ids, b->ids, a->offsets[a->n] * sizeof *a->ids);
    assert_int_equal(!a->starts, !b->starts);
    if (a->starts) assert_memory_equal(a->starts, b->starts, a->offsets[a->n]);
}

/* --- encoding ------------------------------------------------------------------------------------------------- */

static void encoding_is_that_of_each_text(void **state) {
    (void)state;
    static cleat_token tokens[9000];
    cleat_tokenizer *tokenizer = make_tokenizer(true, "");
    cleat_encode_setup setup = setup_of(tokenizer, 2);
    cleat_encoded_texts encoded;
    assert_int_equal(cleat_encode_texts(&setup, &encoded, NULL), CLEAT_OK);
    assert_int_equal(encoded.n, TEXTS);
    assert_int_equal(encoded.offsets[0], 0);
    for (size_t t = 0; t < TEXTS; ++t) {
        size_t count = 0;
        const uint64_t from = encoded.offsets[t];
        cleat_tokenizer_encode(tokenizer, texts[t].data, texts[t].size, tokens, 9000, &count, NULL);
        assert_int_equal(encoded.offsets[t + 1] - from, count);
        for (size_t i = 0; i < count; ++i) {
            assert_int_equal(encoded.ids[from + i], tokens[i].id);
            assert_int_equal(encoded.starts[from + i], i == 0 || tokens[i].word != tokens[i - 1].word);
        }
    }
    cleat_encoded_texts_free(&encoded);
    cleat_tokenizer_destroy(tokenizer);
}

static void threads_do_not_matter(void **state) {
    (void)state;
    cleat_tokenizer *tokenizer = make_tokenizer(true, "");
    cleat_encoded_texts first = {0};
    for (int workers = 0; workers <= 9; workers += 3) {
        cleat_encode_setup setup = setup_of(tokenizer, workers);
        cleat_encoded_texts encoded;
        assert_int_equal(cleat_encode_texts(&setup, &encoded, NULL), CLEAT_OK);
        if (workers) check_same(&first, &encoded);
        if (workers)
            cleat_encoded_texts_free(&encoded);
        else
            first = encoded;
    }
    cleat_encoded_texts_free(&first);
    cleat_tokenizer_destroy(tokenizer);
}

typedef struct reports {
    size_t calls, last;
} reports;

static void record_progress(void *user, size_t done, size_t total) {
    reports *r = user;
    assert_int_equal(total, TEXTS);
    assert_true(done > r->last && done <= total);
    r->last = done;
    ++r->calls;
}

static void progress_grows_to_the_end(void **state) {
    (void)state;
    cleat_tokenizer *tokenizer = make_tokenizer(true, "");
    for (int workers = 0; workers <= 2; ++workers) {
        reports r = {0};
        cleat_encoded_texts encoded;
        cleat_encode_setup setup = setup_of(tokenizer, workers);
        setup.progress = record_progress;
        setup.user = &r;
        assert_int_equal(cleat_encode_texts(&setup, &encoded, NULL), CLEAT_OK);
        assert_int_equal(r.last, TEXTS);
        if (workers == 0) assert_true(r.calls > 2);
        cleat_encoded_texts_free(&encoded);
    }
    cleat_tokenizer_destroy(tokenizer);
}

static void the_first_bad_text_is_named(void **state) {
    (void)state;
    cleat_tokenizer *tokenizer = make_tokenizer(true, "");
    texts[400].size = texts[1200].size = (size_t)1 << 32; /* never read: the size alone is refused */
    for (int workers = 0; workers <= 3; ++workers) {
        cleat_encode_setup setup = setup_of(tokenizer, workers);
        cleat_encoded_texts encoded = {.n = 77};
        cleat_error error = {0};
        assert_int_equal(cleat_encode_texts(&setup, &encoded, &error), CLEAT_ERR_ARGUMENT);
        assert_non_null(strstr(error.text, "text 400: "));
        assert_int_equal(encoded.n, 77);
    }
    make_texts();
    cleat_encode_setup setup = setup_of(tokenizer, -1);
    cleat_encoded_texts encoded = {.n = 77};
    assert_int_equal(cleat_encode_texts(&setup, &encoded, NULL), CLEAT_ERR_ARGUMENT);
    setup = setup_of(NULL, 0);
    assert_int_equal(cleat_encode_texts(&setup, &encoded, NULL), CLEAT_ERR_ARGUMENT);
    assert_int_equal(encoded.n, 77);
    cleat_tokenizer_destroy(tokenizer);
}

static void no_texts_have_no_tokens(void **state) {
    (void)state;
    cleat_tokenizer *tokenizer = make_tokenizer(true, "");
    cleat_encode_setup setup = setup_of(tokenizer, 2);
    cleat_encoded_texts encoded;
    setup.n = 0;
    setup.word_starts = false;
    assert_int_equal(cleat_encode_texts(&setup, &encoded, NULL), CLEAT_OK);
    assert_int_equal(encoded.n, 0);
    assert_int_equal(encoded.offsets[0], 0);
    assert_null(encoded.starts);
    cleat_encoded_texts_free(&encoded);
    cleat_tokenizer_destroy(tokenizer);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    cleat_tokenizer *tokenizer = make_tokenizer(true, "");
    cleat_status status;
    long n = 1;
    do {
        cleat_encode_setup setup = setup_of(tokenizer, n % 3 == 0);
        cleat_encoded_texts encoded = {.n = 77};
        cleat_fail_allocation(n++);
        status = cleat_encode_texts(&setup, &encoded, NULL);
        cleat_fail_allocation(0);
        if (!status) {
            cleat_encoded_texts_free(&encoded);
        } else {
            assert_int_equal(status, CLEAT_ERR_MEMORY);
            assert_int_equal(encoded.n, 77);
        }
    } while (status);
    assert_true(n > 10);
    cleat_tokenizer_destroy(tokenizer);
}

/* --- the cache ------------------------------------------------------------------------------------------------ */

static char said[512]; /* the last warning */

static void keep_warning(void *user, cleat_log_level level, const char *text) {
    (void)user;
    if (level <= CLEAT_LOG_WARNING) snprintf(said, sizeof said, "%s", text);
}

/* Encodes through the cache, compares with a direct encoding, and returns whether it was a cache hit. */
static bool encode(const cleat_encode_setup *setup, const char *name) {
    bool reused = false;
    cleat_encoded_texts encoded, fresh;
    cleat_error error = {0};
    said[0] = 0;
    if (cleat_encode_cached(setup, name, &reused, &encoded, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(cleat_encode_texts(setup, &fresh, NULL), CLEAT_OK);
    check_same(&encoded, &fresh);
    cleat_encoded_texts_free(&encoded);
    cleat_encoded_texts_free(&fresh);
    return reused;
}

static int start_cache(void **state) {
    (void)state;
    setenv("CLEAT_CACHE_DIR", test_folder("cache"), 1);
    cleat_set_log(keep_warning, NULL, CLEAT_LOG_INFO);
    make_texts();
    return 0;
}

static int end_cache(void **state) {
    cleat_set_log(NULL, NULL, CLEAT_LOG_INFO);
    return test_remove_all(state);
}

static void second_time_from_the_cache(void **state) {
    (void)state;
    cleat_tokenizer *tokenizer = make_tokenizer(true, "");
    cleat_encode_setup setup = setup_of(tokenizer, 2);
    reports r = {0};
    assert_false(encode(&setup, "second"));
    assert_true(encode(&setup, "second"));
    assert_false(encode(&setup, "another name"));
    assert_string_equal(said, "");
    setup.progress = record_progress;
    setup.user = &r;
    cleat_encoded_texts encoded;
    assert_int_equal(cleat_encode_cached(&setup, "second", NULL, &encoded, NULL), CLEAT_OK);
    assert_int_equal(r.last, TEXTS);
    cleat_encoded_texts_free(&encoded);
    cleat_tokenizer_destroy(tokenizer);
}

static void whatever_changes_is_noticed(void **state) {
    (void)state;
    cleat_tokenizer *lower = make_tokenizer(true, ""), *cased = make_tokenizer(false, "");
    cleat_tokenizer *larger = make_tokenizer(true, "zone\n");
    cleat_encode_setup setup = setup_of(lower, 1);
    assert_false(encode(&setup, "changes"));
    memory[700][0] ^= 1;
    assert_false(encode(&setup, "changes"));
    assert_true(encode(&setup, "changes"));
    /* The same bytes with a different boundary between two texts. */
    cleat_text_view joined[2] = {{"in the", 3}, {"fire", 4}}, other[2] = {{"in", 2}, {" fire", 5}};
    setup.texts = joined;
    setup.n = 2;
    assert_false(encode(&setup, "changes"));
    assert_true(encode(&setup, "changes"));
    setup.texts = other;
    assert_false(encode(&setup, "changes"));
    assert_true(encode(&setup, "changes"));
    setup.word_starts = false;
    assert_false(encode(&setup, "changes"));
    assert_true(encode(&setup, "changes"));
    setup.tokenizer = cased;
    assert_false(encode(&setup, "changes"));
    setup.tokenizer = larger;
    assert_false(encode(&setup, "changes"));
    setup.workers = 2; /* not part of the cache key */
    assert_true(encode(&setup, "changes"));
    assert_string_equal(said, "");
    memory[700][0] ^= 1;
    cleat_tokenizer_destroy(lower);
    cleat_tokenizer_destroy(cased);
    cleat_tokenizer_destroy(larger);
}

static void damaged_files_are_made_anew(void **state) {
    (void)state;
    cleat_tokenizer *tokenizer = make_tokenizer(true, "");
    cleat_encode_setup setup = setup_of(tokenizer, 0);
    char path[512];
    size_t size = 0;
    setup.n = 20;
    assert_false(encode(&setup, "damaged"));
    assert_int_equal(cleat_encode_cache_path("damaged", path, sizeof path, NULL), CLEAT_OK);
    char *whole = test_read(path, &size);
    const size_t cuts[] = {0, 1, 7, 40, 119, 120, size / 2, size - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; ++i) {
        test_write(path, whole, cuts[i]);
        assert_false(encode(&setup, "damaged"));
        assert_non_null(strstr(said, "is not used"));
    }
    for (size_t at = 0; at < size; at += 11) {
        /* the bytes behind the zero terminators of key and hash are unused */
        if (at > 72 && at < 80) continue;
        if (at > 112 && at < 120) continue;
        char *flipped = malloc(size);
        assert_non_null(flipped);
        memcpy(flipped, whole, size);
        flipped[at] ^= (char)(1 << at % 8);
        test_write(path, flipped, size);
        free(flipped);
        if (encode(&setup, "damaged")) fail_msg("byte %zu of %zu is not checked", at, size);
    }
    test_write(path, whole, size);
    assert_true(encode(&setup, "damaged"));
    free(whole);
    cleat_tokenizer_destroy(tokenizer);
}

/* Files with a correct checksum from a faulty writer: ids outside the vocabulary would be read as rows of an
 * embedding table. */
static void impossible_tokens_are_not_used(void **state) {
    (void)state;
    enum { N_AT = 16, HASH_AT = 80, BODY = 120, TEXTS_SAVED = 20 };
    const int32_t ids[] = {-1, INT32_MAX};
    const uint64_t offsets[] = {UINT64_MAX, 1u << 20};
    cleat_tokenizer *tokenizer = make_tokenizer(true, "");
    cleat_encode_setup setup = setup_of(tokenizer, 0);
    char path[512], hash[33];
    size_t size = 0;
    uint64_t n, total;
    setup.n = TEXTS_SAVED;
    assert_false(encode(&setup, "impossible"));
    assert_int_equal(cleat_encode_cache_path("impossible", path, sizeof path, NULL), CLEAT_OK);
    char *whole = test_read(path, &size), *other = malloc(size);
    assert_non_null(other);
    memcpy(&n, whole + N_AT, sizeof n);
    memcpy(&total, whole + N_AT + sizeof n, sizeof total);
    assert_int_equal(n, TEXTS_SAVED);
    for (size_t i = 0; i < 6; ++i) {
        const int32_t id = i == 2 || i == 5 ? (int32_t)cleat_tokenizer_size(tokenizer) : i < 2 ? ids[i] : 0;
        memcpy(other, whole, size);
        if (i < 3)
            memcpy(other + BODY + (n + 1) * sizeof(uint64_t), &id, sizeof id);
        else if (i == 5) /* the last id */
            memcpy(other + BODY + (n + 1) * sizeof(uint64_t) + (total - 1) * sizeof id, &id, sizeof id);
        else
            memcpy(other + BODY + sizeof(uint64_t), &offsets[i - 3], sizeof offsets[0]);
        cleat_hash_text(other + BODY, size - BODY, hash);
        memcpy(other + HASH_AT, hash, sizeof hash);
        test_write(path, other, size);
        if (encode(&setup, "impossible")) fail_msg("change %zu is not detected", i);
        assert_non_null(strstr(said, "is not used"));
    }
    free(whole);
    free(other);
    cleat_tokenizer_destroy(tokenizer);
}

static void without_a_cache_folder_it_works(void **state) {
    (void)state;
    cleat_tokenizer *tokenizer = make_tokenizer(true, "");
    cleat_encode_setup setup = setup_of(tokenizer, 0);
    char kept[512];
    snprintf(kept, sizeof kept, "%s", getenv("CLEAT_CACHE_DIR"));
    setenv("CLEAT_CACHE_DIR", "/proc/no such folder", 1);
    assert_false(encode(&setup, "homeless"));
    assert_non_null(strstr(said, "not saved"));
    setenv("CLEAT_CACHE_DIR", kept, 1);
    cleat_tokenizer_destroy(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoding_is_that_of_each_text),  cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(progress_grows_to_the_end),      cmocka_unit_test(the_first_bad_text_is_named),
        cmocka_unit_test(no_texts_have_no_tokens),        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(second_time_from_the_cache),     cmocka_unit_test(whatever_changes_is_noticed),
        cmocka_unit_test(damaged_files_are_made_anew),    cmocka_unit_test(without_a_cache_folder_it_works),
        cmocka_unit_test(impossible_tokens_are_not_used), cmocka_unit_test(without_a_cache_folder_it_works),
    };
    return cmocka_run_group_tests(tests, start_cache, end_cache);
}
