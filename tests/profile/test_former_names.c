/* Setting names of earlier releases: files and assignments may use them; the dump has the current ones. */
/* ctest: quick */
#include "cleat/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static cleat_status read_text(cleat_profile *profile, const char *text, cleat_error *error) {
    return cleat_profile_read_text(profile, "test.ini", text, strlen(text), error);
}

static void the_dump_has_the_name_of_today(void **state) {
    (void)state;
    cleat_profile *profile = NULL;
    cleat_error error = {0};
    char *text = NULL;
    assert_int_equal(cleat_profile_create(&profile, &error), CLEAT_OK);
    if (read_text(profile, "[data]\npath = x\n[run]\nprofile = wait=1\n", &error)) fail_msg("%s", error.text);
    assert_string_equal(profile->run.trace, "wait=1");
    assert_int_equal(cleat_profile_set(profile, "run.profile=wait=2", &error), CLEAT_OK);
    assert_string_equal(profile->run.trace, "wait=2");
    assert_int_equal(cleat_profile_dump(profile, &text, &error), CLEAT_OK);
    assert_non_null(strstr(text, "\ntrace = wait=2"));
    assert_null(strstr(text, "\nprofile = "));
    free(text);
    cleat_profile_destroy(profile);
}

static void both_names_are_one_key(void **state) {
    (void)state;
    cleat_profile *profile = NULL;
    cleat_error error = {0};
    assert_int_equal(cleat_profile_create(&profile, &error), CLEAT_OK);
    assert_int_not_equal(read_text(profile, "[run]\ntrace = wait=1\nprofile = wait=1\n", &error), CLEAT_OK);
    assert_non_null(strstr(error.text, "duplicate run.trace; first set in line 2"));
    cleat_profile_destroy(profile);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_dump_has_the_name_of_today),
        cmocka_unit_test(both_names_are_one_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
