/* Trains vocabularies on a corpus. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/philox.h"
#include "vocab.h"

static cleat_text_view view(const char *text) {
    return (cleat_text_view){text, strlen(text)};
}

/* All pieces after the special ones, separated by spaces. */
static const char *pieces_of(const cleat_tokenizer *tokenizer) {
    static char shown[16384];
    size_t used = 0;
    shown[0] = 0;
    for (int32_t id = 5; (size_t)id < cleat_tokenizer_size(tokenizer); ++id)
        used += (size_t)snprintf(shown + used, sizeof shown - used, "%s%s", id > 5 ? " " : "",
                                 cleat_tokenizer_piece(tokenizer, id));
    assert_true(used < sizeof shown);
    return shown;
}

static void check_pieces(const cleat_text_view *texts, size_t n, cleat_tokenizer_training training,
                         const char *expected) {
    cleat_tokenizer *tokenizer = NULL;
    cleat_error error = {0};
    if (cleat_tokenizer_train(texts, n, &training, &tokenizer, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_string_equal(pieces_of(tokenizer), expected);
    assert_int_equal(cleat_tokenizer_pad(tokenizer), 0);
    assert_int_equal(cleat_tokenizer_mask(tokenizer), 4);
    assert_int_equal(cleat_tokenizer_lowercase(tokenizer), training.lowercase);
    cleat_tokenizer_destroy(tokenizer);
}

/* Computed by hand from low 5, lower 2, newest 6, widest 3. Ids: e 5, ..., r 14, ##e 15, ##w 16, ##s 17, ...,
 * ##r 22. (##e, ##s) and (##s, ##t) occur 9 times: the pair of smaller ids is merged first. Then ##es ##t,
 * 9 times; l ##o and lo ##w, 7 times; with count 6, n ##e and then, because ##w is older than ne, ##w ##est. */
static void merges_follow_the_counts(void **state) {
    (void)state;
    const cleat_text_view texts[] = {view("low low low low low lower LOWER newest newest newest"),
                                     view("newest newest newest widest widest widest")};
    const char *const characters = "e w s t l o n d i r ##e ##w ##s ##t ##o ##d ##i ##r";
    char expected[256];
    check_pieces(texts, 2, (cleat_tokenizer_training){.vocabulary_size = 23, .lowercase = true}, characters);
    snprintf(expected, sizeof expected, "%s ##es ##est lo low ne ##west newest", characters);
    check_pieces(texts, 2, (cleat_tokenizer_training){.vocabulary_size = 30, .lowercase = true}, expected);
    check_pieces(texts, 2, (cleat_tokenizer_training){.vocabulary_size = 100, .lowercase = true, .min_count = 8},
                 "e w s t ##e ##w ##s ##t");
    check_pieces(texts, 2, (cleat_tokenizer_training){.vocabulary_size = 8, .lowercase = true}, "e w s");
}

static void characters_may_be_limited(void **state) {
    (void)state;
    const cleat_text_view texts[] = {view("ab ab ab ac ac b c"), view("[SEP] [CLS]ab")};
    check_pieces(texts, 2, (cleat_tokenizer_training){.vocabulary_size = 100}, "a b c ##b ##c ab ac");
    /* without c, "ac" is not merged */
    check_pieces(texts, 2, (cleat_tokenizer_training){.vocabulary_size = 100, .character_limit = 2}, "a b ##b ab");
    check_pieces(texts, 2, (cleat_tokenizer_training){.vocabulary_size = 100, .min_count = 1}, "a b c ##b ##c ab ac");
}

/* a ##a occurs once per word, ##a ##a three times, and four ##a become two ##aa. */
static void runs_of_one_character(void **state) {
    (void)state;
    const cleat_text_view texts[] = {view("aaaaa aaaaa")};
    check_pieces(texts, 1, (cleat_tokenizer_training){.vocabulary_size = 100}, "a ##a ##aa aaa aaaaa");
}

static void normalised_like_the_texts_to_come(void **state) {
    (void)state;
    const cleat_text_view texts[] = {view("\xC3\x89"
                                          "A E\xCC\x81"
                                          "a")};
    check_pieces(texts, 1, (cleat_tokenizer_training){.vocabulary_size = 100, .lowercase = true}, "a e ##a ea");
    check_pieces(texts, 1, (cleat_tokenizer_training){.vocabulary_size = 100}, "\xC3\x89");
}

/* A corpus of generated words; frequent ones are short. */
enum { TEXTS = 300, TEXT_BYTES = 200 };

static void make_corpus(char (*memory)[TEXT_BYTES], cleat_text_view *texts) {
    for (uint32_t t = 0; t < TEXTS; ++t) {
        cleat_random random = cleat_random_stream(3, t, 0);
        size_t size = 0;
        while (size + 12 < TEXT_BYTES) {
            uint32_t letters = 1 + cleat_random_below(&random, 8);
            for (uint32_t i = 0; i < letters; ++i)
                memory[t][size++] = (char)('a' + cleat_random_below(&random, 3 + cleat_random_below(&random, 8)));
            memory[t][size++] = ' ';
        }
        texts[t] = (cleat_text_view){memory[t], size};
    }
}

static void threads_do_not_matter(void **state) {
    (void)state;
    static char memory[TEXTS][TEXT_BYTES];
    static cleat_text_view texts[TEXTS];
    char first[33], hash[33];
    make_corpus(memory, texts);
    for (int workers = 0; workers <= 5; ++workers) {
        cleat_tokenizer_training training = {.vocabulary_size = 700, .workers = workers};
        cleat_tokenizer *tokenizer = NULL;
        assert_int_equal(cleat_tokenizer_train(texts, TEXTS, &training, &tokenizer, NULL), CLEAT_OK);
        assert_int_equal(cleat_tokenizer_size(tokenizer), 700);
        cleat_tokenizer_hash(tokenizer, workers ? hash : first);
        if (workers) assert_string_equal(hash, first);
        cleat_tokenizer_destroy(tokenizer);
    }
}

/* The trained vocabulary covers the corpus: no [UNK], and fewer pieces than characters. */
static void learned_pieces_encode_the_corpus(void **state) {
    (void)state;
    static char memory[TEXTS][TEXT_BYTES];
    static cleat_text_view texts[TEXTS];
    cleat_tokenizer_training training = {.vocabulary_size = 400, .min_count = 1};
    cleat_tokenizer *tokenizer = NULL;
    make_corpus(memory, texts);
    assert_int_equal(cleat_tokenizer_train(texts, TEXTS, &training, &tokenizer, NULL), CLEAT_OK);
    for (size_t t = 0; t < TEXTS; ++t) {
        cleat_token tokens[TEXT_BYTES];
        size_t count = 0, spaces = 0;
        cleat_tokenizer_encode(tokenizer, texts[t].data, texts[t].size, tokens, TEXT_BYTES, &count, NULL);
        for (size_t i = 0; i < texts[t].size; ++i) spaces += texts[t].data[i] == ' ';
        assert_true(count > spaces && count * 3 < (texts[t].size - spaces) * 2);
        for (size_t i = 0; i < count; ++i) assert_int_not_equal(tokens[i].id, cleat_tokenizer_unk(tokenizer));
    }
    cleat_tokenizer_destroy(tokenizer);
}

static void settings_that_are_refused(void **state) {
    (void)state;
    const cleat_text_view texts[] = {view("a b"), view(" [SEP]\n")};
    cleat_tokenizer *tokenizer = NULL;
    cleat_error error = {0};
    cleat_tokenizer_training training = {.vocabulary_size = 5};
    assert_int_equal(cleat_tokenizer_train(texts, 1, &training, &tokenizer, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "vocabulary_size is 5"));
    training = (cleat_tokenizer_training){.vocabulary_size = 10, .workers = -1};
    assert_int_equal(cleat_tokenizer_train(texts, 1, &training, &tokenizer, &error), CLEAT_ERR_ARGUMENT);
    training.workers = 257;
    assert_int_equal(cleat_tokenizer_train(texts, 1, &training, &tokenizer, &error), CLEAT_ERR_ARGUMENT);
    training.workers = 0;
    assert_int_equal(cleat_tokenizer_train(texts + 1, 1, &training, &tokenizer, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "no word"));
    assert_int_equal(cleat_tokenizer_train(NULL, 0, &training, &tokenizer, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_tokenizer_train(NULL, 1, &training, &tokenizer, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_tokenizer_train(texts, 1, NULL, &tokenizer, &error), CLEAT_ERR_ARGUMENT);
    assert_null(tokenizer);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    const cleat_text_view texts[] = {view("low low lower newest newest widest"), view("low newest")};
    cleat_tokenizer_training training = {.vocabulary_size = 40, .workers = 2};
    long n = 1;
    cleat_status status;
    do {
        cleat_tokenizer *tokenizer = NULL;
        cleat_fail_allocation(n++);
        status = cleat_tokenizer_train(texts, 2, &training, &tokenizer, NULL);
        cleat_fail_allocation(0);
        if (status) {
            assert_int_equal(status, CLEAT_ERR_MEMORY);
            assert_null(tokenizer);
        }
        cleat_tokenizer_destroy(tokenizer);
    } while (status);
    assert_true(n > 15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_follow_the_counts),  cmocka_unit_test(characters_may_be_limited),
        cmocka_unit_test(runs_of_one_character),     cmocka_unit_test(normalised_like_the_texts_to_come),
        cmocka_unit_test(threads_do_not_matter),     cmocka_unit_test(learned_pieces_encode_the_corpus),
        cmocka_unit_test(settings_that_are_refused), cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, vocab_remove);
}
