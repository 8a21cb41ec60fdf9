/* INI records with a test schema: features that profiles do not use (sizes in bytes, required keys).
 * tests/profile tests the others. */
/* ctest: quick */
#include "ini/record.h"

#include "core/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct shelf {
    struct {
        int64_t room, spare;
        int64_t boards; /* key of the open kind */
        char label[16];
    } shelf;
    struct {
        int64_t count;
    } books;
} shelf;

#define RECORD shelf
#include "ini/rows.h"

static const cleat_section sections[] = {{"shelf", "where"}, {"books", "what"}, {NULL, NULL}};
static const cleat_key keys[] = {
    {AT(shelf, room), BYTES(1, 1 << 30, REQUIRED), .help = "How much it holds."},
    {AT(shelf, spare), BYTES(0, 1 << 30, "4 KiB"), .word = "none", .word_value = 0, .help = "Kept free."},
    {AT(shelf, label), STRING(shelf.label, 1, "plain"), .help = "What stands on it."},
    {AT(shelf, boards), INT(1, 9, "2"), .kinds = 1u << 1, .help = "How many it has."},
    {AT(books, count), INT(1, 99, REQUIRED), .help = "How many there are."},
    {.name = NULL},
};
static const char *const kinds[] = {"closed", "open", NULL};
static const cleat_schema schema = {
    .noun = "shelf file", .sections = sections, .keys = keys, .kind_key = "shelf.kind", .kinds = kinds};

static void expect_contains(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

static cleat_status read_shelf(const char *text, shelf *fields, cleat_string *dump, cleat_error *error) {
    cleat_record record;
    *fields = (shelf){{0}, {0}};
    assert_int_equal(cleat_record_open(&schema, fields, &record, NULL), CLEAT_OK);
    cleat_status status = cleat_record_read_text(&record, "s.ini", text, strlen(text), error);
    if (dump && !status) cleat_record_dump(&record, dump);
    cleat_record_close(&record);
    return status;
}

static void sizes_are_read_and_written(void **state) {
    static const struct {
        const char *text, *printed;
        int64_t bytes; /* 0: refused */
    } rows[] = {
        {"1", "1", 1},
        {"17 B", "17", 17},
        {"1024", "1 KiB", 1024},
        {"1.5KiB", "1536", 1536},
        {"0.3 KiB", "307", 307}, /* 307.2 */
        {"15.5 MiB", "15872 KiB", 15872 * 1024},
        {"1 GiB", "1 GiB", 1 << 30},
        {"1.01 GiB", NULL, 0},
        {"1 TiB", NULL, 0},
        {"0", NULL, 0},
        {"", NULL, 0},
        {"KiB", NULL, 0},
        {"1 KB", NULL, 0},
        {"1 kib", NULL, 0},
        {"1e3", NULL, 0},
        {"+5", NULL, 0},
        {"-5", NULL, 0},
        {"1..5 KiB", NULL, 0},
        {"1 KiB x", NULL, 0},
        {"none", NULL, 0}, /* not valid for this key */
        {"99999999999999999999999999999999 B", NULL, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char text[128], line[64];
        shelf fields, again;
        cleat_string dump = {0};
        cleat_error error = {0};
        snprintf(text, sizeof text, "[shelf]\nroom = %s\n[books]\ncount = 3\n", rows[i].text);
        cleat_status status = read_shelf(text, &fields, &dump, &error);
        print_message("'%s' %s\n", rows[i].text, error.text);
        assert_int_equal(status, rows[i].bytes ? CLEAT_OK : CLEAT_ERR_PROFILE);
        if (status) {
            expect_contains(error.text, "s.ini:2: room");
            expect_contains(error.text,
                            "shelf.room takes a size such as 15.6 GiB, 512 MiB, 48 KiB or 1024, from 1 to 1 GiB");
            continue;
        }
        assert_int_equal(fields.shelf.room, rows[i].bytes);
        snprintf(line, sizeof line, "\nroom = %s\n", rows[i].printed);
        expect_contains(dump.data, line);
        assert_int_equal(read_shelf(dump.data, &again, NULL, NULL), CLEAT_OK);
        assert_memory_equal(&again, &fields, sizeof again);
        cleat_string_free(&dump);
    }
}

static void words_and_defaults_stay(void **state) {
    shelf fields;
    (void)state;
    assert_int_equal(read_shelf("[shelf]\nroom=1\n[books]\ncount=1\n", &fields, NULL, NULL), CLEAT_OK);
    assert_int_equal(fields.shelf.spare, 4096);
    assert_string_equal(fields.shelf.label, "plain");
    assert_int_equal(read_shelf("[shelf]\nroom=1\nspare=none\n[books]\ncount=1\n", &fields, NULL, NULL), CLEAT_OK);
    assert_int_equal(fields.shelf.spare, 0);
}

static void missing_keys_are_named(void **state) {
    shelf fields;
    cleat_error error = {0};
    (void)state;
    assert_int_equal(read_shelf("# a shelf\n\n[shelf]\nspare = 1\n[books]\ncount = 1\n", &fields, NULL, &error),
                     CLEAT_ERR_PROFILE);
    expect_contains(error.text, "s.ini:3: shelf.room is missing; add 'room = ...' to [shelf]: a size such as ");
    assert_int_equal(read_shelf("[shelf]\nroom = 1\n\n", &fields, NULL, &error), CLEAT_ERR_PROFILE);
    /* no such section: reported at the last line */
    expect_contains(error.text, "s.ini:3: books.count is missing");
    assert_int_equal(read_shelf("", &fields, NULL, &error), CLEAT_ERR_PROFILE);
    assert_int_equal(read_shelf("[shelf]\nlabel = a ;b\nlabel=a\\", &fields, NULL, &error), CLEAT_ERR_PROFILE);
}

/* Values from an earlier text need not be repeated. */
static void texts_add_up(void **state) {
    static const char whole[] = "[shelf]\nroom = 1\n[books]\ncount = 1\n", part[] = "[books]\ncount = 7\n";
    shelf fields = {{0}, {0}};
    cleat_record record;
    cleat_error error = {0};
    (void)state;
    assert_int_equal(cleat_record_open(&schema, &fields, &record, NULL), CLEAT_OK);
    assert_int_equal(cleat_record_read_text(&record, "a.ini", whole, sizeof whole - 1, NULL), CLEAT_OK);
    assert_int_equal(cleat_record_read_text(&record, "b.ini", part, sizeof part - 1, NULL), CLEAT_OK);
    assert_int_equal(fields.books.count, 7);
    cleat_record_contradict(&record, &error, "books.count", "shelf.spare", "%d books", 7);
    assert_string_equal(error.text, "b.ini:2: count = 7\n  contradicts shelf.spare = 4 KiB (default)\n  7 books");
    cleat_record_refuse(&record, &error, "shelf.room", "too small");
    assert_string_equal(error.text, "a.ini:2: room = 1: too small");
    cleat_record_close(&record);
}

static void the_help_tells_what_must_be_given(void **state) {
    cleat_string help = {0};
    (void)state;
    cleat_schema_help(&schema, &help);
    expect_contains(help.data, "  room (must be given)\n      How much it holds.\n      Takes a size such as");
    expect_contains(help.data, "  spare = 4 KiB\n");
    expect_contains(help.data, "from 1 to 9.\n      Only where shelf.kind is open.\n");
    cleat_string_free(&help);
}

/* --- records of two structs ------------------------------------------------------------------------------------ */

typedef struct lamp {
    const char *name; /* the struct's default */
    bool dimmed;
} lamp;

#undef RECORD
#define RECORD lamp
static const char *const lights[] = {"bright", "dim", NULL};
static const cleat_key lamp_keys[] = {
    {FIELD(lamp, title, name), TEXT(1, 20, "lamp"), .help = "What it is called."},
    {FIELD(lamp, light, dimmed), EITHER(lights, "dim"), .help = "How much light it gives."},
    {.name = NULL},
};

static void texts_are_owned_and_switches_have_words(void **state) {
    lamp fields = {NULL, false};
    cleat_string value = {0}, allowed = {0};
    cleat_error error = {0};
    (void)state;
    for (const cleat_key *key = lamp_keys; key->name; ++key)
        assert_int_equal(cleat_value_parse("lamp file", key, key->initial, "default", &fields, NULL), CLEAT_OK);
    assert_string_equal(fields.name, "lamp");
    assert_true(fields.dimmed);
    assert_int_equal(cleat_value_parse("lamp file", &lamp_keys[0], "another", "here", &fields, NULL), CLEAT_OK);
    assert_int_equal(cleat_value_parse("lamp file", &lamp_keys[0], "", "here", &fields, &error), CLEAT_ERR_PROFILE);
    expect_contains(error.text, "a text of 1 to 20 characters");
    cleat_fail_allocation(1);
    assert_int_equal(cleat_value_parse("lamp file", &lamp_keys[0], "third", "here", &fields, NULL), CLEAT_ERR_MEMORY);
    cleat_fail_allocation(0);
    assert_string_equal(fields.name, "another");
    assert_int_equal(cleat_value_parse("lamp file", &lamp_keys[1], "bright", "here", &fields, NULL), CLEAT_OK);
    assert_false(fields.dimmed);
    assert_int_equal(cleat_value_parse("lamp file", &lamp_keys[1], "true", "here", &fields, &error), CLEAT_ERR_PROFILE);
    cleat_value_allowed(&lamp_keys[1], &allowed);
    assert_string_equal(allowed.data, "one of bright, dim");
    cleat_value_print(&lamp_keys[1], &fields, &value);
    cleat_value_print(&lamp_keys[0], &fields, &value);
    assert_string_equal(value.data, "brightanother");
    assert_int_equal(cleat_value_parse("lamp file", &lamp_keys[0], "judged", "here", NULL, NULL), CLEAT_OK);
    assert_string_equal(fields.name, "another");
    cleat_string_free(&allowed);
    cleat_string_free(&value);
    cleat_free((void *)fields.name);
}

typedef struct captured {
    int count;
    char value[32], place[64];
} captured;

static cleat_status capture(void *user, const cleat_key *key, const char *value, const char *place,
                            cleat_error *error) {
    captured *it = user;
    (void)error;
    assert_string_equal(key->name, "light");
    ++it->count;
    snprintf(it->value, sizeof it->value, "%s", value);
    snprintf(it->place, sizeof it->place, "%s", place);
    return CLEAT_OK;
}

static void a_record_may_take_values_itself(void **state) {
    static const cleat_section lamp_sections[] = {{"lamp", "a lamp"}, {NULL, NULL}};
    const cleat_schema lamps = {.noun = "lamp file", .sections = lamp_sections, .keys = lamp_keys};
    const char text[] = "[lamp]\nlight = who knows\n";
    captured it = {0};
    cleat_record record = {.schema = &lamps, .assign = capture, .user = &it};
    (void)state;
    assert_int_equal(cleat_record_read_text(&record, "l.ini", text, strlen(text), NULL), CLEAT_OK);
    assert_int_equal(it.count, 1);
    assert_string_equal(it.value, "who knows");
    assert_string_equal(it.place, "l.ini:2: light = who knows");
}

static void fields_lie_in_their_parts(void **state) {
    lamp first = {NULL, false}, second = {NULL, false};
    cleat_key own[3];
    const cleat_section lamp_sections[] = {{"lamp", "a lamp"}, {NULL, NULL}};
    const cleat_schema lamps = {.noun = "lamp file", .sections = lamp_sections, .keys = own};
    char *places[2] = {NULL, NULL};
    cleat_record record = {.schema = &lamps, .parts = {&first, &second}, .places = places};
    cleat_string dump = {0};
    (void)state;
    memcpy(own, lamp_keys, sizeof own);
    own[1].part = 1;
    assert_int_equal(cleat_record_assign(&record, &own[0], "one", "a", NULL), CLEAT_OK);
    assert_int_equal(cleat_record_assign(&record, &own[1], "dim", "b", NULL), CLEAT_OK);
    assert_string_equal(first.name, "one");
    assert_true(second.dimmed && !first.dimmed && !second.name);
    cleat_record_dump(&record, &dump);
    expect_contains(dump.data, "title = one\n");
    expect_contains(dump.data, "light = dim\n");
    cleat_string_free(&dump);
    cleat_free((void *)first.name);
    cleat_free(places[0]);
    cleat_free(places[1]);
}

static void keep_warning(void *user, cleat_log_level level, const char *text) {
    if (level == CLEAT_LOG_WARNING) snprintf(user, 256, "%s", text);
}

/* On Windows no path has such bytes; elsewhere it may. */
static void values_of_other_encodings_are_named(void **state) {
    char warning[256] = "";
    shelf fields;
    (void)state;
    cleat_set_log(keep_warning, warning, CLEAT_LOG_WARNING);
    assert_int_equal(
        read_shelf("[shelf]\nroom = 1\nlabel = M\xc3\xbcller ; M\xfcller\n[books]\ncount = 1\n", &fields, NULL, NULL),
        CLEAT_OK);
    assert_string_equal(warning, "");
    assert_int_equal(read_shelf("[shelf]\nroom = 1\nlabel = M\xfcller\n[books]\ncount = 1\n", &fields, NULL, NULL),
                     CLEAT_OK);
    expect_contains(warning, "s.ini:3: label = M");
    expect_contains(warning, "is not UTF-8; save the file as UTF-8");
#ifndef _WIN32
    *warning = 0;
    FILE *file = fopen("M\xfcller", "w"); /* what exists has that name */
    assert_non_null(file);
    fclose(file);
    assert_int_equal(read_shelf("[shelf]\nroom = 1\nlabel = M\xfcller\n[books]\ncount = 1\n", &fields, NULL, NULL),
                     CLEAT_OK);
    assert_int_equal(remove("M\xfcller"), 0);
    assert_string_equal(warning, "");
#endif
    cleat_set_log(NULL, NULL, CLEAT_LOG_ERROR);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_read_and_written),
        cmocka_unit_test(words_and_defaults_stay),
        cmocka_unit_test(missing_keys_are_named),
        cmocka_unit_test(texts_add_up),
        cmocka_unit_test(the_help_tells_what_must_be_given),
        cmocka_unit_test(texts_are_owned_and_switches_have_words),
        cmocka_unit_test(a_record_may_take_values_itself),
        cmocka_unit_test(fields_lie_in_their_parts),
        cmocka_unit_test(values_of_other_encodings_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
