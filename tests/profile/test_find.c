/* Finding profiles by name: the order of the folders, names with and without ".ini", and the message for a
 * name that no folder has. */
/* ctest: quick */
#include "cleat/profile.h"
#include "platform/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "source_path.h"

static char folder[] = "/tmp/cleat_find_XXXXXX";

static int enter_folder(void **state) {
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave_folder(void **state) {
    (void)state;
    static const char *const files[] = {"mine.ini", "noted", "profiles/rna.ini", "profiles/own.ini"};
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i) unlink(files[i]);
    rmdir("profiles");
    rmdir("rna");
    return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static void put(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void expect_found(const char *name, const char *expected) {
    char path[1024] = "";
    cleat_error error = {0};
    if (cleat_profile_find(name, path, sizeof path, &error)) fail_msg("%s", error.text);
    assert_string_equal(path, expected);
}

static void expect_lost(const char *name, const char *const *parts, size_t count) {
    char path[1024] = "unchanged";
    cleat_error error = {0};
    assert_int_equal(cleat_profile_find(name, path, sizeof path, &error), CLEAT_ERR_NOT_FOUND);
    assert_string_equal(path, "unchanged");
    for (size_t i = 0; i < count; ++i)
        if (!strstr(error.text, parts[i])) fail_msg("\"%s\" does not contain \"%s\"", error.text, parts[i]);
}

static void shipped_profiles_are_found_by_name(void **state) {
    (void)state;
    expect_found("rna", source_path("profiles/rna.ini"));
    expect_found("rna.ini", source_path("profiles/rna.ini"));
    expect_found("profiles/rna.ini", source_path("profiles/rna.ini"));
    assert_int_equal(mkdir("rna", 0755), 0); /* a folder is not a profile */
    expect_found("rna", source_path("profiles/rna.ini"));
}

static void nearer_files_come_first(void **state) {
    (void)state;
    put("mine.ini", "[model]\n");
    put("noted", "[model]\n");
    assert_int_equal(mkdir("profiles", 0755), 0);
    put("profiles/own.ini", "# What I train.\n");
    put("profiles/rna.ini", "[model]\n");
    expect_found("mine.ini", "mine.ini");
    expect_found("mine", "mine.ini");
    expect_found("noted", "noted");
    expect_found("own", "profiles/own.ini");
    expect_found("rna", "profiles/rna.ini");
}

static void unknown_names_say_where_it_looked(void **state) {
    (void)state;
    char folders[1100];
    snprintf(folders, sizeof folders, "profiles, %s", source_path("profiles"));
    expect_lost("rna_smal", (const char *[]){"rna_smal: no such", folders, "did you mean 'rna_small'?", "tweets_ner"},
                4);
    expect_lost("here/rna_smal.ini", (const char *[]){"did you mean 'rna_small'?"}, 1);
    expect_lost("devices/t4", NULL, 0);
    expect_lost("../README", NULL, 0);
    expect_lost("rna/", (const char *[]){"is a folder"}, 1);
    expect_lost("", NULL, 0);
    char path[8];
    assert_int_equal(cleat_profile_find("tweets_ner", path, sizeof path, NULL), CLEAT_ERR_ARGUMENT);
}

static void the_list_has_each_name_once(void **state) {
    (void)state;
    cleat_profile_entry *entries = NULL;
    size_t count = 0, own = 0, rna = 0;
    assert_int_equal(cleat_profile_list(&entries, &count, NULL), CLEAT_OK);
    assert_true(count > 10);
    for (size_t i = 0; i < count; ++i) {
        if (strcmp(entries[i].name, "own") == 0) {
            ++own;
            assert_string_equal(entries[i].about, "What I train.");
        }
        if (strcmp(entries[i].name, "rna") == 0) {
            ++rna;
            assert_string_equal(entries[i].path, "profiles/rna.ini");
            assert_string_equal(entries[i].about, "");
        }
    }
    assert_int_equal(own, 1);
    assert_int_equal(rna, 1);
    free(entries);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shipped_profiles_are_found_by_name),
        cmocka_unit_test(nearer_files_come_first),
        cmocka_unit_test(unknown_names_say_where_it_looked),
        cmocka_unit_test(the_list_has_each_name_once),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
