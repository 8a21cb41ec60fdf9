/* Quoted words of shell commands: a shell expands them to the word, and reading them returns the word. */
/* ctest: quick */
#include "core/shell.h"
#include "platform/processes.h"
#include "platform/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const words[] = {
    "profiles/rna_small.ini",
    "my runs/x.ini",
    "it's",
    "a\"b",
    "$HOME",
    "`id`",
    "a;b&c|d",
    "",
    "~",
    "*",
    "=x",
    "\\",
    "Gr\xc3\xbc\xc3\x9f"
    "e",
};
/* A newline, a byte that is not UTF-8 before a digit, a terminal escape. */
static const char *const bytes[] = {"two\nlines",
                                    "\xff"
                                    "1\\ 'x",
                                    "\x1b[31m"};

enum { WORDS = sizeof words / sizeof *words, BYTES = sizeof bytes / sizeof *bytes };

static void expect_from(const char *shell, const char *word) {
    char quoted[128], command[192], got[128];
    assert_true(cleat_shell_quote('\'', word, quoted, sizeof quoted));
    snprintf(command, sizeof command, "%s 'printf %%s \"$1\"' - %s", shell, quoted);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t size = fread(got, 1, sizeof got - 1, pipe);
    got[size] = 0;
    assert_int_equal(pclose(pipe), 0);
    assert_string_equal(got, word);
}

static void a_shell_reads_the_word(void **state) {
    (void)state;
    if (*CLEAT_SHELL_QUOTE != '\'') skip(); /* tests/package/check_windows_system.sh has cmd */
    for (int i = 0; i < WORDS; ++i) expect_from("sh -c", words[i]);
}

static void expect_back(char quote, const char *word) {
    char text[160] = "cleat ", got[64];
    const char *at = text;
    assert_true(cleat_shell_quote(quote, word, text + 6, sizeof text - 6));
    for (const char *c = text; *c && quote == '\'' && word != words[WORDS - 1]; ++c)
        assert_true(*c >= 0x20 && *c < 0x7f);
    strcat(text, " --resume");
    assert_true(cleat_shell_next(&at, got, sizeof got));
    assert_string_equal(got, "cleat");
    assert_true(cleat_shell_next(&at, got, sizeof got));
    assert_string_equal(got, word);
    assert_true(cleat_shell_next(&at, got, sizeof got));
    assert_string_equal(got, "--resume");
    assert_false(cleat_shell_next(&at, got, sizeof got));
}

static void reading_gives_the_word_back(void **state) {
    (void)state;
    for (int i = 0; i < WORDS; ++i) expect_back('\'', words[i]);
    for (int i = 0; i < BYTES; ++i) expect_back('\'', bytes[i]);
}

/* The same words in cmd and in PowerShell, and for the program that gets them. */
static void words_of_windows(void **state) {
    static const char *const pairs[][2] = {
        {"runs/x-1.ini", "runs/x-1.ini"},
        {"C:\\data\\", "C:\\data\\"},
        {"C:\\my data\\", "\"C:\\my data\\\\\""},
        {"\\\\server\\c$\\my data", "\"\\\\server\\c$\\my data\""},
        {"train.epochs=1,2", "\"train.epochs=1,2\""},
        {"@x", "\"@x\""},
        {"it's", "\"it's\""},
        {"a;b&c|d (1) #{2}", "\"a;b&c|d (1) #{2}\""},
        {"Gr\xc3\xbc\xc3\x9f"
         "e",
         "\"Gr\xc3\xbc\xc3\x9f"
         "e\""},
        {"Price ($)", "\"Price ($)\""},
        {"", "\"\""},
    };
    static const char *const none[] = {"$HOME", "$(calc)",    "a${b}", "`n",
                                       "a\"b",  "two\nlines", "\xff",  "\xe2\x80\x9cx\xe2\x80\x9d"};
    char text[64];
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
        assert_true(cleat_shell_quote('"', pairs[i][0], text, sizeof text));
        assert_string_equal(text, pairs[i][1]);
        expect_back('"', pairs[i][0]);
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; ++i) {
        assert_false(cleat_shell_quote('"', none[i], text, sizeof text));
        assert_string_equal(text, "");
    }
}

static void plain_words_have_no_quotes(void **state) {
    char text[64];
    (void)state;
    assert_true(cleat_shell_word("runs/x-1.ini", text, sizeof text));
    assert_string_equal(text, "runs/x-1.ini");
}

static void a_word_that_does_not_fit_is_empty(void **state) {
    char text[6];
    (void)state;
    assert_true(cleat_shell_quote('\'', "a b", text, sizeof text));
    assert_string_equal(text, "'a b'");
    assert_true(cleat_shell_quote('"', "a b", text, sizeof text));
    assert_string_equal(text, "\"a b\"");
    assert_false(cleat_shell_quote('"', "a \\", text, sizeof text));
    assert_false(cleat_shell_word("a bc", text, sizeof text));
    assert_string_equal(text, "");
    assert_false(cleat_shell_word("abcdef", text, sizeof text));
    assert_string_equal(text, "");
}

static void an_open_quote_ends_with_the_text(void **state) {
    static const char *const broken[] = {"'x", "\"x", "$'x", "$'x\\", "\\", "'"};
    char got[8];
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; ++i) {
        const char *at = broken[i];
        assert_true(cleat_shell_next(&at, got, sizeof got));
        assert_false(cleat_shell_next(&at, got, sizeof got));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shell_reads_the_word),
        cmocka_unit_test(reading_gives_the_word_back),
        cmocka_unit_test(words_of_windows),
        cmocka_unit_test(plain_words_have_no_quotes),
        cmocka_unit_test(a_word_that_does_not_fit_is_empty),
        cmocka_unit_test(an_open_quote_ends_with_the_text),
    };
    return cmocka_run_group_tests_name("core.shell", tests, NULL, NULL);
}
