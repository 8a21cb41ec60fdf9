/* Remedies for Windows, natively: the table of faults has them for all systems. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "doctor/doctor.h"

/* On Windows, a fault that has a command there has no words of Linux; the others cannot occur. */
static void rows_for_windows_have_no_words_of_linux(void **state) {
    static const char *const words[] = {"apt-get", "sudo", "dmesg", "/etc/",  "/dev/",  "/proc",
                                        "export ", ".icd", ".so",   "clinfo", "linker", "modprobe"};
    const cleat_system system = {.distribution = DISTRIBUTION_WINDOWS, .windows = true};
    size_t with_command = 0;
    (void)state;
    for (size_t row = 0; row < cleat_fault_count(); ++row) {
        cleat_doctor_check check = {.result = CLEAT_CHECK_OK};
        snprintf(check.code, sizeof check.code, "%s", cleat_fault_code(row));
        /* These are about files of Linux, and share their commands with other rows. */
        if (strncmp(check.code, "icd-f", 5) == 0 || strcmp(check.code, "wsl-no-opencl") == 0) continue;
        cleat_fault_describe(&system, NULL, "ARGUMENT", &check);
        with_command += check.n_commands > 0;
        for (size_t w = 0; w < sizeof words / sizeof *words; ++w) {
            for (size_t i = 0; i < check.n_commands; ++i)
                if (strstr(check.commands[i], words[w])) fail_msg("%s: %s", check.code, check.commands[i]);
            if (check.n_commands && strstr(check.cause, words[w])) fail_msg("%s: %s", check.code, check.cause);
        }
    }
    assert_true(with_command > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_for_windows_have_no_words_of_linux)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
