/* Label names: which are equal, and which are not names. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "weights/label_names.h"

static void case_and_separators_do_not_matter(void **state) {
    (void)state;
    static const char *const same[][2] = {
        {"cat", "cat"}, {"screen door", "Screen_Door"}, {"a-b c", "abC"}, {"red box ", "redbox"}, {"", "-"}};
    static const char *const others[][2] = {
        {"cat", "cats"}, {"cats", "cat"}, {"a", "b"}, {"B-PER", "I-PER"}, {"", "a"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; ++i)
        assert_true(cleat_label_names_match(same[i][0], same[i][1], false));
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i)
        assert_false(cleat_label_names_match(others[i][0], others[i][1], false));
}

static void a_cut_name_is_a_beginning(void **state) {
    (void)state;
    assert_true(cleat_label_names_match("a long name", "a long", true));
    assert_false(cleat_label_names_match("a long", "a long name", true));
    assert_false(cleat_label_names_match("a long name", "a longer", true));
}

static void numbers_of_cleat_are_no_names(void **state) {
    (void)state;
    assert_true(cleat_label_is_nameless("class_3", 3));
    assert_false(cleat_label_is_nameless("class_3", 2));
    assert_false(cleat_label_is_nameless("3", 3));
    assert_false(cleat_label_is_nameless("class", 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_and_separators_do_not_matter),
        cmocka_unit_test(a_cut_name_is_a_beginning),
        cmocka_unit_test(numbers_of_cleat_are_no_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
