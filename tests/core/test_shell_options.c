/* Options of a run's command line that other commands repeat. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/shell.h"

static void expect(const char *command, const char *options) {
    char text[160];
    cleat_command_options(command, text, sizeof text);
    assert_string_equal(text, options);
}

static void kept_options(void **state) {
    (void)state;
    expect("cleat train p.ini", "");
    expect("", "");
    expect("cleat train p.ini --set data.path=/x --out runs/y --device gpu --json", " --set data.path=/x --device gpu");
    expect("cleat train --set=a.b=1 p.ini --batch-size 64", " --set a.b=1 --set train.effective_batch_size=64");
    expect("cleat train p.ini --settings x --set", "");
}

static void quoted_words(void **state) {
    (void)state;
    expect("cleat train 'my --set a.b=1 profile.ini' --set 'data.path=/my data/it' --time-budget 1h",
           " --set 'data.path=/my data/it'");
    expect("cleat train p.ini --set \"data.path=/it's here\"", " --set \"data.path=/it's here\"");
    expect("cleat train p.ini --set 'data.path=/it'\\''s here' --json", " --set 'data.path=/it'\\''s here'");
    expect("cleat train p.ini --set data.path=C:\\data\\ --set \"data.path=D:\\my data\\\\\" --json",
           " --set data.path=C:\\data\\ --set \"data.path=D:\\my data\\\\\"");
}

static void too_many(void **state) {
    char command[512] = "cleat train p.ini";
    (void)state;
    for (int i = 0; i < 12; ++i) strcat(command, " --set data.path=/x");
    expect(command, ""); /* not some of them */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_options),
        cmocka_unit_test(quoted_words),
        cmocka_unit_test(too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
