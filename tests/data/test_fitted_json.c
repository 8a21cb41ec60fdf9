/* Number lists in a fitted preprocessor's file, which is untrusted: a list of the wrong size never reaches
 * the array. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "data/common/fitted_json.h"

enum { COUNT = 2, GUARD = 77 };

static bool get(const char *text, double numbers[COUNT + 2]) {
    cJSON *json = cJSON_Parse(text);
    assert_non_null(json);
    for (int i = 0; i < COUNT + 2; ++i) numbers[i] = GUARD;
    bool good = cleat_fitted_json_get_numbers(json, "x", numbers, COUNT);
    cJSON_Delete(json);
    return good;
}

static void lists_have_the_wanted_size(void **state) {
    (void)state;
    double numbers[COUNT + 2];
    assert_true(get("{\"x\":[1.5,-2]}", numbers));
    assert_true(numbers[0] == 1.5 && numbers[1] == -2 && numbers[2] == GUARD);
    static const char *const bad[] = {"{\"x\":[1,2,3]}",
                                      "{\"x\":[1,2,3,4]}",
                                      "{\"x\":[1]}",
                                      "{\"x\":[]}",
                                      "{\"x\":1}",
                                      "{\"x\":\"12\"}",
                                      "{\"x\":{\"a\":1,\"b\":2}}",
                                      "{\"x\":[1,null]}",
                                      "{\"x\":[1,\"2\"]}",
                                      "{\"x\":[1e999,2]}",
                                      "{\"y\":[1,2]}",
                                      "{}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        if (get(bad[i], numbers)) fail_msg("%s is accepted", bad[i]);
        assert_true(numbers[COUNT] == GUARD && numbers[COUNT + 1] == GUARD);
    }
}

static void one_number_is_finite(void **state) {
    (void)state;
    static const char *const bad[] = {"{\"x\":\"1\"}", "{\"x\":[1]}", "{\"x\":1e999}", "{\"x\":null}", "{\"X\":1}"};
    double number = 0;
    cJSON *json = cJSON_Parse("{\"x\":0.25}");
    assert_true(cleat_fitted_json_get_number(json, "x", &number) && number == 0.25);
    cJSON_Delete(json);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        json = cJSON_Parse(bad[i]);
        if (cleat_fitted_json_get_number(json, "x", &number)) fail_msg("%s is accepted", bad[i]);
        cJSON_Delete(json);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_have_the_wanted_size),
        cmocka_unit_test(one_number_is_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
