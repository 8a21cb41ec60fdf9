/* WordPiece against tables from Python's unicodedata and the published steps of BertTokenizer. */
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
#include "platform/files.h"
#include "platform/threads.h"
#include "source_path.h"
#include "vocab.h"

#define SHARED(name) shared_path("data/" name)

/* --- words to pieces ------------------------------------------------------------------------------------------ */

typedef struct row {
    const char *text, *pieces;
} row;

/* Checks rows with a vocabulary that contains the given pieces. */
static void check_rows(const char *vocabulary, bool lowercase, const row *rows, size_t n) {
    cleat_tokenizer *tokenizer = vocab_tokenizer(vocabulary, lowercase);
    for (size_t i = 0; i < n; ++i) {
        const char *got = vocab_encode(tokenizer, rows[i].text, strlen(rows[i].text));
        if (strcmp(got, rows[i].pieces) != 0)
            fail_msg("row %zu, '%s': '%s' instead of '%s'", i, rows[i].text, got, rows[i].pieces);
    }
    cleat_tokenizer_destroy(tokenizer);
}

#define CHECK_ROWS(vocabulary, lowercase, rows) check_rows(vocabulary, lowercase, rows, sizeof(rows) / sizeof *(rows))

static void the_longest_piece_wins(void **state) {
    (void)state;
    static const row rows[] = {
        {"", ""},
        {" \t\r\n ", ""},
        {"unaffable", "un ##aff ##able"},
        {"unaffordable", "[UNK]"}, /* a remainder without a piece makes the whole word unknown */
        {"un aff able", "un [UNK] able"},
        {"unun", "un ##un"},
        {"ununu", "[UNK]"},
        {"unununable", "un ##un ##un ##able"},
        {"ununun", "un ##un ##un"},
    };
    static const row greedy[] = {{"unable", "una ##ble"}, {"unaable", "una ##able"}, {"unaff", "[UNK]"}};
    CHECK_ROWS("un ##aff ##able able ##un", true, rows);
    CHECK_ROWS("un ##aff ##able una ##ble", true, greedy);
}

static void punctuation_is_a_word_of_its_own(void **state) {
    (void)state;
    static const row rows[] = {
        {"don't", "don ' t"},
        {"t.don", "t . don"},
        {"...", ". . ."},
        {"##t", "# # t"},
        {"t\xE2\x80\x94t", "t \xE2\x80\x94 t"},    /* em dash */
        {"\xC2\xBFt?", "\xC2\xBF t ?"},            /* inverted question mark */
        {"t\xEF\xBC\x81", "t \xEF\xBC\x81"},       /* full-width exclamation mark */
        {"$t^t`t~t|", "$ t ^ t ` t ~ t |"},        /* ASCII symbols count as punctuation */
        {"t\xE2\x82\xAC", "t ##\xE2\x82\xAC"},     /* the euro sign does not */
        {"t\xCD\xBEt \xCE\x87", "t ; t \xC2\xB7"}, /* Greek question mark and ano teleia, by normalisation */
        {"\xE1\xBF\xAFt", "` t"},                  /* Greek varia */
    };
    CHECK_ROWS("don ' t . # \xE2\x80\x94 \xC2\xBF ? \xEF\xBC\x81 $ ^ ` ~ | ##\xE2\x82\xAC ; \xC2\xB7", true, rows);
}

static void lower_case_strips_accents(void **state) {
    (void)state;
    static const row rows[] = {
        {"E\xCC\x81", "e"}, /* e and combining acute */
        {"\xC3\x89", "e"},  /* one precomposed character */
        {"e\xE2\x80\x8D\xCC\x81"
         "e",
         "e ##e"}, /* a joiner between letter and accent */
        {"e\x01\xCC\x81"
         "e",
         "e ##e"},                     /* a control character in the same place */
        {"\xCC\x81\xCC\x80", ""},      /* accents alone produce no token */
        {"\xC4\xB0\xC4\xB0", "i ##i"}, /* I with dot: i and U+0307 */
        /* no final sigma */
        {"\xCE\x91\xCE\xA3 \xCE\xA3\xCE\x91\xCE\xA3", "[UNK] \xCF\x83 ##\xCE\xB1 ##\xCF\x83"},
        {"\xE1\xBA\x9E", "\xC3\x9F"},     /* capital sharp s */
        {"\xEF\xBC\xA5", "\xEF\xBD\x85"}, /* full-width E: no compatibility mapping */
        {"=\xCC\xB8", "="},               /* not equal, without its stroke */
        /* Thai: the vowel above is Mn */
        {"\xE0\xB8\x81\xE0\xB8\xB1\xE0\xB8\x99", "\xE0\xB8\x81 ##\xE0\xB8\x99"},
        {"\xED\x95\x9C", "\xE1\x84\x92 ##\xE1\x85\xA1 ##\xE1\x86\xAB"}, /* Hangul is decomposed */
        {"\xD7\xA9\xD7\x81\xD6\xB8", "\xD7\xA9"},                       /* Hebrew points */
        /* Devanagari: this vowel is Mc and is kept */
        {"\xE0\xA4\x95\xE0\xA4\xBF", "\xE0\xA4\x95 ##\xE0\xA4\xBF"},
        /* marks other than Mn get canonical order */
        {"\xF0\x9D\x85\x98\xF0\x9D\x85\xAD\xF0\x9D\x85\xA5", "\xF0\x9D\x85\x98 ##\xF0\x9D\x85\xA5 ##\xF0\x9D\x85\xAD"},
        {"\xF0\x9D\x85\x9F", "\xF0\x9D\x85\x98 ##\xF0\x9D\x85\xA5"}, /* a half note: head and stem */
    };
    CHECK_ROWS("e ##e i ##i \xCF\x83 ##\xCE\xB1 ##\xCF\x83 \xC3\x9F \xEF\xBD\x85 = \xE0\xB8\x81 ##\xE0\xB8\x99 "
               "\xE1\x84\x92 ##\xE1\x85\xA1 ##\xE1\x86\xAB \xD7\xA9 \xE0\xA4\x95 ##\xE0\xA4\xBF \xF0\x9D\x85\x98 "
               "##\xF0\x9D\x85\xA5 ##\xF0\x9D\x85\xAD",
               true, rows);
}

static void cased_text_is_composed(void **state) {
    (void)state;
    static const row rows[] = {
        {"E\xCC\x81", "\xC3\x89"},
        {"e\xCC\x81", "\xC3\xA9"},
        {"e\xE2\x80\x8D\xCC\x81", "\xC3\xA9"},
        {"=\xCC\xB8=", "\xE2\x89\xA0 ="}, /* "not equal" is a symbol, not punctuation, after composition */
        {"q\xCC\x87\xCC\xA3", "q ##\xCC\xA3 ##\xCC\x87"}, /* the dot below comes first */
        {"\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB", "\xED\x95\x9C"},
        /* Oriya: a starter that composes with the preceding one */
        {"\xE0\xAD\x87\xE0\xAC\xBE", "\xE0\xAD\x8B"},
        {"\xE2\x84\xAB", "\xC3\x85"}, /* angstrom sign */
        {"[SEP]\xCC\x81", "[SEP] \xCC\x81"},
    };
    CHECK_ROWS("\xC3\x89 \xC3\xA9 \xE2\x89\xA0 = q ##\xCC\xA3 ##\xCC\x87 \xED\x95\x9C \xE0\xAD\x8B \xC3\x85 \xCC\x81",
               false, rows);
}

static void spaces_and_removed_characters(void **state) {
    (void)state;
    static const row rows[] = {
        {"a\xC2\xA0"
         "a\xE3\x80\x80"
         "a\xE2\x80\x83"
         "a",
         "a a a a"}, /* no-break, ideographic, em */
        {"a\xE2\x80\xA8"
         "a\xE2\x80\xA9"
         "a",
         "a a a"}, /* line and paragraph separator */
        {"a\x0B"
         "a\x0C"
         "a\xC2\x85"
         "a\x1F"
         "a\x7F"
         "a",
         "a ##a ##a ##a ##a ##a"},
        {"\xEF\xBB\xBF"
         "a\xE2\x80\x8B"
         "a\xC2\xAD"
         "a",
         "a ##a ##a"}, /* byte order mark, zero-width space, soft hyphen */
        {"a\xEF\xBF\xBD"
         "a\xEE\x80\x80"
         "a\xEF\xBF\xBF"
         "a",
         "a ##a ##a ##a"}, /* U+FFFD, private use, noncharacter */
        {"a\xE2\x80\x8F"
         "a",
         "a ##a"}, /* right-to-left mark */
    };
    CHECK_ROWS("a ##a", true, rows);
}

static void ideographs_stand_alone(void **state) {
    (void)state;
    static const row rows[] = {
        {"a\xE4\xB8\xAD\xE6\x96\x87"
         "a",
         "a \xE4\xB8\xAD \xE6\x96\x87 a"},
        {"\xE4\xB8\xAD\xCC\x81"
         "a",
         "\xE4\xB8\xAD a"},               /* the combining accent starts another word */
        {"\xEF\xA4\x80", "\xE8\xB1\x88"}, /* a compatibility ideograph */
        {"\xF0\xA0\x80\x80"
         "a",
         "\xF0\xA0\x80\x80 a"}, /* extension B */
        /* Hiragana is treated like any other word */
        {"\xE3\x81\x82\xE3\x81\x84", "\xE3\x81\x82 ##\xE3\x81\x84"},
        {"\xF0\xB0\x80\x80"
         "a",
         "\xF0\xB0\x80\x80 ##a"}, /* extension G is not in BERT's list */
    };
    CHECK_ROWS(
        "a ##a \xE4\xB8\xAD \xE6\x96\x87 \xE8\xB1\x88 \xF0\xA0\x80\x80 \xE3\x81\x82 ##\xE3\x81\x84 \xF0\xB0\x80\x80",
        true, rows);
}

static void emoji_lose_joiners(void **state) {
    (void)state;
    static const row rows[] = {
        {"\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9",
         "\xF0\x9F\x91\xA8 ##\xF0\x9F\x91\xA9"},       /* man, joiner, woman */
        {"\xE2\x9D\xA4\xEF\xB8\x8F", "\xE2\x9D\xA4"},  /* heart, variation selector */
        {"\xF0\x9F\x91\x8D\xF0\x9F\x8F\xBD", "[UNK]"}, /* a skin tone is kept */
        {":)\xE2\x9D\xA4", ": ) \xE2\x9D\xA4"},
    };
    CHECK_ROWS("\xF0\x9F\x91\xA8 ##\xF0\x9F\x91\xA9 \xE2\x9D\xA4 \xF0\x9F\x91\x8D : )", true, rows);
}

static void special_tokens_stay_whole(void **state) {
    (void)state;
    static const row rows[] = {
        {"[CLS] a [SEP]", "[CLS] a [SEP]"},
        {"a[SEP]a", "a [SEP] a"},
        {"[[MASK]]", "[ [MASK] ]"},
        {"[cls]", "[ cls ]"},
        {"[SEP", "[ sep"},
        {"[PAD][UNK]", "[PAD] [UNK]"},
        {"[S\xE2\x80\x8B"
         "EP]",
         "[ sep ]"},
    };
    CHECK_ROWS("a [ ] cls sep", true, rows);
}

/* Bytes that are not UTF-8 are removed; the text after them is kept. */
static void bytes_that_are_not_utf8(void **state) {
    (void)state;
    static const row rows[] = {
        {"a\xFF"
         "a",
         "a ##a"},
        {"a\xC3", "a"},
        {"a\xC0\x80"
         "a",
         "a ##a"}, /* overlong */
        {"a\xED\xA0\x80"
         "a",
         "a ##a"}, /* a surrogate */
        {"a\xF4\x90\x80\x80"
         "a",
         "a ##a"}, /* above U+10FFFF */
        {"\xE4\xB8"
         "a",
         "a"},                  /* truncated by a letter */
        {"a\xF0\x9F\x98", "a"}, /* truncated by the end of the text */
        {"a\xFF\xCC\x81"
         "a",
         "a ##a"},
    };
    CHECK_ROWS("a ##a", true, rows);
    static const struct {
        const char *text;
        size_t bad;
    } texts[] = {{"\xFF", 0}, {"ab\xC3", 2}, {"a\xC0\x80", 1}, {"\xC3\xA9\xED\xA0\x80", 2}, {"abc\xF4\x90\x80\x80", 3}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        size_t bad = 99;
        assert_false(cleat_text_check(texts[i].text, strlen(texts[i].text), &bad));
        assert_int_equal(bad, texts[i].bad);
    }
    assert_false(cleat_text_check("\xFF", 1, NULL));
    assert_true(cleat_text_check("a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80\0", 11, NULL));
    assert_true(cleat_text_check(NULL, 0, NULL));
}

static void long_words_are_unknown(void **state) {
    (void)state;
    cleat_tokenizer *lower = vocab_tokenizer("a ##a \xC3\xA9 ##\xC3\xA9", true);
    cleat_tokenizer *cased = vocab_tokenizer("a ##a \xC3\xA9 ##\xC3\xA9", false);
    char text[512] = "";
    size_t count = 0;
    cleat_token tokens[200];
    memset(text, 'a', 101);
    cleat_tokenizer_encode(lower, text, 100, tokens, 200, &count, NULL);
    assert_int_equal(count, 100);
    cleat_tokenizer_encode(lower, text, 101, tokens, 200, &count, NULL);
    assert_int_equal(count, 1);
    assert_int_equal(tokens[0].id, cleat_tokenizer_unk(lower));
    assert_int_equal(tokens[0].end, 101);
    for (int i = 0; i < 101; ++i) memcpy(text + 3 * i, "e\xCC\x81", 3); /* 100 characters after composition */
    cleat_tokenizer_encode(cased, text, 300, tokens, 200, &count, NULL);
    assert_int_equal(count, 100);
    assert_int_equal(tokens[99].id, cleat_tokenizer_id(cased, "##\xC3\xA9"));
    cleat_tokenizer_encode(cased, text, 303, tokens, 200, &count, NULL);
    assert_int_equal(count, 1);
    cleat_tokenizer_destroy(lower);
    cleat_tokenizer_destroy(cased);
}

/* A letter with more accents than fit the stack buffer. */
static void towers_of_accents(void **state) {
    (void)state;
    enum { ACCENTS = 5000 };
    cleat_tokenizer *lower = vocab_tokenizer("e x", true), *cased = vocab_tokenizer("e x", false);
    char *text = malloc(2 * ACCENTS + 3);
    assert_non_null(text);
    text[0] = 'e';
    for (int i = 0; i < ACCENTS; ++i) memcpy(text + 1 + 2 * i, i % 3 ? "\xCC\xA3" : "\xCC\x87", 2);
    memcpy(text + 1 + 2 * ACCENTS, " x", 2);
    assert_string_equal(vocab_encode(lower, text, 2 * ACCENTS + 3), "e x");
    assert_string_equal(vocab_encode(cased, text, 2 * ACCENTS + 3), "[UNK] x");
    for (long n = 1;; ++n) {
        size_t count = 77;
        cleat_error error = {0};
        cleat_fail_allocation(n);
        cleat_status status = cleat_tokenizer_encode(cased, text, 2 * ACCENTS + 3, NULL, 0, &count, &error);
        cleat_fail_allocation(0);
        if (!status) {
            assert_true(n > 2);
            break;
        }
        assert_int_equal(status, CLEAT_ERR_MEMORY);
        assert_int_equal(count, 77);
    }
    free(text);
    cleat_tokenizer_destroy(lower);
    cleat_tokenizer_destroy(cased);
}

/* --- byte ranges of tokens ------------------------------------------------------------------------------------ */

static void check_tokens(const cleat_tokenizer *tokenizer, const char *text, const cleat_token *expected, size_t n) {
    cleat_token tokens[32];
    size_t count = 0;
    assert_int_equal(cleat_tokenizer_encode(tokenizer, text, strlen(text), tokens, 32, &count, NULL), CLEAT_OK);
    assert_int_equal(count, n);
    for (size_t i = 0; i < n; ++i) {
        assert_int_equal(tokens[i].id, expected[i].id);
        assert_int_equal(tokens[i].begin, expected[i].begin);
        assert_int_equal(tokens[i].end, expected[i].end);
        assert_int_equal(tokens[i].word, expected[i].word);
    }
}

static void tokens_know_their_bytes(void **state) {
    (void)state;
    cleat_tokenizer *lower = vocab_tokenizer("un ##able cafe ##s ! \xE4\xB8\xAD", true);
    check_tokens(lower, " unable!\xE4\xB8\xAD zz",
                 (cleat_token[]){{5, 1, 3, 0}, {6, 3, 7, 0}, {9, 7, 8, 1}, {10, 8, 11, 2}, {1, 12, 14, 3}}, 5);
    /* The piece's range includes the accent and a removed character inside it. */
    check_tokens(
        lower,
        "CAF\xC3\x89S cafe\xCC\x81s c\xE2\x80\x8B"
        "afe[SEP]un",
        (cleat_token[]){
            {7, 0, 5, 0}, {8, 5, 6, 0}, {7, 7, 13, 1}, {8, 13, 14, 1}, {7, 15, 22, 2}, {3, 22, 27, 3}, {5, 27, 29, 4}},
        7);
    cleat_tokenizer_destroy(lower);
    /* composed of two characters; one character split into two pieces */
    cleat_tokenizer *cased = vocab_tokenizer("x ##\xC3\xA9 ##y", false);
    check_tokens(cased, "xe\xCC\x81y", (cleat_token[]){{5, 0, 1, 0}, {6, 1, 4, 0}, {7, 4, 5, 0}}, 3);
    cleat_tokenizer_destroy(cased);
    cleat_tokenizer *jamo = vocab_tokenizer("\xE1\x84\x92 ##\xE1\x85\xA1", true);
    check_tokens(jamo, "\xED\x95\x98", (cleat_token[]){{5, 0, 3, 0}, {6, 0, 3, 0}}, 2);
    cleat_tokenizer_destroy(jamo);
}

static void no_more_than_capacity_is_written(void **state) {
    (void)state;
    cleat_tokenizer *tokenizer = vocab_tokenizer("a ##a b", true);
    cleat_token tokens[3] = {{-7, 0, 0, 0}, {-7, 0, 0, 0}, {-7, 0, 0, 0}};
    size_t count = 0;
    assert_int_equal(cleat_tokenizer_encode(tokenizer, "aa b aa", 7, tokens, 2, &count, NULL), CLEAT_OK);
    assert_int_equal(count, 5);
    assert_int_equal(tokens[1].id, 6);
    assert_int_equal(tokens[2].id, -7);
    assert_int_equal(cleat_tokenizer_encode(tokenizer, "aa b aa", 7, NULL, 0, &count, NULL), CLEAT_OK);
    assert_int_equal(count, 5);
    assert_int_equal(cleat_tokenizer_encode(tokenizer, NULL, 0, NULL, 0, &count, NULL), CLEAT_OK);
    assert_int_equal(count, 0);
    count = 77;
    assert_int_equal(cleat_tokenizer_encode(tokenizer, NULL, 1, NULL, 0, &count, NULL), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_tokenizer_encode(tokenizer, "a", 1, NULL, 1, &count, NULL), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_tokenizer_encode(NULL, "a", 1, NULL, 0, &count, NULL), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_tokenizer_encode(tokenizer, "a", (size_t)1 << 32, NULL, 0, &count, NULL),
                     CLEAT_ERR_ARGUMENT);
    assert_int_equal(count, 77);
    cleat_tokenizer_destroy(tokenizer);
}

/* --- vocab.txt ------------------------------------------------------------------------------------------------ */

static void vocabularies_that_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t size; /* 0: as long as the text */
        const char *said;
    } rows[] = {
        {"", 0, "has no [PAD]"},
        {"[PAD]\n[CLS]\n[SEP]\n", 0, "has no [UNK]"},
        {"[PAD]\n[UNK]\n[SEP]\n", 0, "has no [CLS]"},
        {"[PAD]\n[UNK]\n[CLS]\n", 0, "has no [SEP]"},
        {"[PAD]\n[UNK]\n[CLS]\na\n[SEP]\na\n", 0, ".txt:6: duplicate token 'a'; it is already in line 4"},
        {"[PAD]\n[UNK]\n\n[CLS]\n[SEP]\n", 0, ".txt:3: the line is empty"},
        {"[PAD]\n[UNK]\n[CLS]\n[SEP]\n\n", 0, ".txt:5: the line is empty"},
        {"[PAD]\na\xFF\n", 0, ".txt:2: not UTF-8 text (byte 2 of the line)"},
        {"[PAD]\nab\r\r\ncd\n", 0, ".txt:2: the token ends in a carriage return"},
        {"[PAD]\nab\n\r\r\n", 0, ".txt:3: the token ends in a carriage return"},
        {"[PAD]\na\0b\n", 10, ".txt:2: not UTF-8"},
        {"\xFF\xFE[\0P\0", 6, "UTF-16"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_tokenizer *tokenizer = NULL;
        cleat_error error = {0};
        const char *path = vocab_write(rows[i].text, rows[i].size ? rows[i].size : strlen(rows[i].text));
        assert_int_equal(cleat_tokenizer_load(path, true, &tokenizer, &error), CLEAT_ERR_FORMAT);
        if (!strstr(error.text, rows[i].said)) fail_msg("row %zu: %s", i, error.text);
        assert_null(tokenizer);
    }
    cleat_tokenizer *tokenizer = NULL;
    assert_int_equal(cleat_tokenizer_load("/nowhere/vocab.txt", true, &tokenizer, NULL), CLEAT_ERR_NOT_FOUND);
}

static void vocabulary_goes_to_disk_and_back(void **state) {
    (void)state;
    static const char lines[] = "\xEF\xBB\xBF[CLS]\r\n[SEP]\r\n[UNK]\r\n[PAD]\r\nab\r\n##c d\r\nlast";
    cleat_tokenizer *first = NULL, *second = NULL, *cased = NULL;
    char a[33], b[33], c[33];
    assert_int_equal(cleat_tokenizer_load(vocab_write(lines, sizeof lines - 1), true, &first, NULL), CLEAT_OK);
    assert_int_equal(cleat_tokenizer_size(first), 7);
    assert_true(cleat_tokenizer_lowercase(first));
    assert_int_equal(cleat_tokenizer_cls(first), 0);
    assert_int_equal(cleat_tokenizer_sep(first), 1);
    assert_int_equal(cleat_tokenizer_unk(first), 2);
    assert_int_equal(cleat_tokenizer_pad(first), 3);
    assert_int_equal(cleat_tokenizer_mask(first), -1);
    assert_int_equal(cleat_tokenizer_id(first, "ab"), 4);
    assert_int_equal(cleat_tokenizer_id(first, "last"), 6);
    assert_int_equal(cleat_tokenizer_id(first, "las"), -1);
    assert_string_equal(cleat_tokenizer_piece(first, 5), "##c d");
    assert_null(cleat_tokenizer_piece(first, 7));
    assert_null(cleat_tokenizer_piece(first, -1));
    /* [MASK] is ordinary text for a vocabulary that does not contain it */
    assert_string_equal(vocab_encode(first, "[MASK]", 6), "[UNK] [UNK] [UNK]");

    assert_int_equal(cleat_tokenizer_save(first, vocab_path(), NULL), CLEAT_OK);
    assert_int_equal(cleat_tokenizer_load(vocab_path(), true, &second, NULL), CLEAT_OK);
    assert_int_equal(cleat_tokenizer_load(vocab_path(), false, &cased, NULL), CLEAT_OK);
    assert_int_equal(cleat_tokenizer_size(second), 7);
    assert_string_equal(cleat_tokenizer_piece(second, 6), "last");
    cleat_tokenizer_hash(first, a);
    cleat_tokenizer_hash(second, b);
    cleat_tokenizer_hash(cased, c);
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    assert_int_equal(cleat_tokenizer_save(first, "/nowhere/vocab.txt", NULL), CLEAT_ERR_NOT_FOUND);
    cleat_tokenizer_destroy(first);
    cleat_tokenizer_destroy(second);
    cleat_tokenizer_destroy(cased);
    cleat_tokenizer_destroy(NULL);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    static const char lines[] = "[CLS]\n[SEP]\n[UNK]\n[PAD]\nab\n##c\n";
    vocab_write(lines, sizeof lines - 1);
    for (long n = 1;; ++n) {
        cleat_tokenizer *tokenizer = NULL;
        cleat_fail_allocation(n);
        cleat_status status = cleat_tokenizer_load(vocab_path(), true, &tokenizer, NULL);
        if (!status) {
            cleat_fail_allocation(0);
            cleat_tokenizer_destroy(tokenizer);
            assert_true(n > 4);
            return;
        }
        cleat_fail_allocation(0);
        assert_int_equal(status, CLEAT_ERR_MEMORY);
        assert_null(tokenizer);
    }
}

/* --- BERT's own vocabulary ------------------------------------------------------------------------------------ */

static cleat_tokenizer *load_bert(void) {
    cleat_tokenizer *tokenizer = NULL;
    cleat_error error = {0};
    const char *path = SHARED("vocab/bert-base-uncased-vocab.txt");
    if (access(path, R_OK) != 0) return NULL;
    if (cleat_tokenizer_load(path, true, &tokenizer, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return tokenizer;
}

static void bert_gives_the_known_ids(void **state) {
    (void)state;
    static const int32_t expected[] = {7592, 1010, 2026, 3899, 2003, 10140};
    cleat_tokenizer *tokenizer = load_bert();
    cleat_token tokens[16];
    size_t count = 0;
    if (!tokenizer) skip();
    assert_int_equal(cleat_tokenizer_size(tokenizer), 30522);
    assert_int_equal(cleat_tokenizer_cls(tokenizer), 101);
    assert_int_equal(cleat_tokenizer_mask(tokenizer), 103);
    cleat_tokenizer_encode(tokenizer, "Hello, my dog is cute", 21, tokens, 16, &count, NULL);
    assert_int_equal(count, 6);
    for (size_t i = 0; i < count; ++i) assert_int_equal(tokens[i].id, expected[i]);
    cleat_tokenizer_destroy(tokenizer);
}

/* Hashes the ids of every line of a file: FNV-1a over ids of four bytes each, with -1 at the end of a line. */
static void hash_lines(const cleat_tokenizer *tokenizer, const char *path, size_t *total, uint64_t *hash) {
    static cleat_token tokens[4096];
    char *data = NULL;
    size_t size = 0;
    assert_int_equal(cleat_file_read(path, &data, &size, NULL), CLEAT_OK);
    for (size_t at = 0; at < size;) {
        const char *end = memchr(data + at, '\n', size - at);
        size_t length = end ? (size_t)(end - data) - at : size - at, count = 0;
        assert_int_equal(cleat_tokenizer_encode(tokenizer, data + at, length, tokens, 4095, &count, NULL), CLEAT_OK);
        assert_true(count < 4096);
        tokens[count].id = -1;
        for (size_t i = 0; i <= count; ++i)
            for (int byte = 0; byte < 4; ++byte)
                *hash = (*hash ^ ((uint32_t)tokens[i].id >> 8 * byte & 0xFF)) * 1099511628211u;
        *total += count;
        at += length + 1;
    }
    cleat_free(data);
}

/* The expected values come from an independent Python implementation of the steps named in the header. */
static void bert_gives_the_ids_of_the_tweets(void **state) {
    (void)state;
    cleat_tokenizer *tokenizer = load_bert();
    size_t total = 0;
    uint64_t hash = 14695981039346656037u;
    if (!tokenizer) skip();
    hash_lines(tokenizer, SHARED("tweets_sentiment/val.csv"), &total, &hash);
    hash_lines(tokenizer, SHARED("tweets_ner/wnut17train.conll"), &total, &hash);
    assert_int_equal(total, 250325);
    assert_int_equal(hash, 16562227348459775031u);
    cleat_tokenizer_destroy(tokenizer);
}

/* --- threads -------------------------------------------------------------------------------------------------- */

static void *encode_often(void *argument) {
    static const char text[] = "unable cafe\xCC\x81 un";
    size_t wrong = 0;
    for (int i = 0; i < 500; ++i) {
        cleat_token tokens[8];
        size_t count = 0;
        cleat_tokenizer_encode(argument, text, sizeof text - 1, tokens, 8, &count, NULL);
        wrong += count != 4 || tokens[2].id != 7 || tokens[3].id != 5;
    }
    return wrong ? argument : NULL;
}

static void threads_share_a_tokenizer(void **state) {
    (void)state;
    cleat_tokenizer *tokenizer = vocab_tokenizer("un ##able cafe", true);
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) assert_int_equal(pthread_create(&threads[i], NULL, encode_often, tokenizer), 0);
    for (int i = 0; i < 4; ++i) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    cleat_tokenizer_destroy(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_piece_wins),
        cmocka_unit_test(punctuation_is_a_word_of_its_own),
        cmocka_unit_test(lower_case_strips_accents),
        cmocka_unit_test(cased_text_is_composed),
        cmocka_unit_test(spaces_and_removed_characters),
        cmocka_unit_test(ideographs_stand_alone),
        cmocka_unit_test(emoji_lose_joiners),
        cmocka_unit_test(special_tokens_stay_whole),
        cmocka_unit_test(bytes_that_are_not_utf8),
        cmocka_unit_test(long_words_are_unknown),
        cmocka_unit_test(towers_of_accents),
        cmocka_unit_test(tokens_know_their_bytes),
        cmocka_unit_test(no_more_than_capacity_is_written),
        cmocka_unit_test(vocabularies_that_are_refused),
        cmocka_unit_test(vocabulary_goes_to_disk_and_back),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(bert_gives_the_known_ids),
        cmocka_unit_test(bert_gives_the_ids_of_the_tweets),
        cmocka_unit_test(threads_share_a_tokenizer),
    };
    return cmocka_run_group_tests(tests, NULL, vocab_remove);
}
