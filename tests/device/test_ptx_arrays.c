/* Arrays in memory in the PTX of kernels for matrix units. */
/* ctest: device */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/programs.h"

#define ENTRY(name) ".visible .entry " name "(\n.param .u64 x)\n{\n"
#define ARRAY(bytes) ".local .align 16 .b8 \t__local_depot0[" bytes "];\n"

static void finds_what_should_be_registers(void **state) {
    static const struct {
        const char *ptx, *kernel; /* NULL: no array */
        int bytes;
    } rows[] = {
        {ENTRY("p2_linear_mma") ARRAY("256") "ret;\n}\n", "p2_linear_mma", 256},
        {ENTRY("linear_mma") "ret;\n}\n" ENTRY("conv_mma") ARRAY("192") "}\n", "conv_mma", 192},
        {ENTRY("linear_mma") ARRAY("16") "ret;\n}\n", NULL, 0},
        {ENTRY("linear_mma") "ret;\n}\n" ENTRY("attention_plain_forward") ARRAY("256") "}\n", NULL, 0},
        {ENTRY("linear_mma") "ret;\n}\n", NULL, 0},
        {ENTRY("linear_mma") "ret;\n}\n.func helper(\n)\n{\n" ARRAY("64") "}\n", NULL, 0},
        {"\177ELF", NULL, 0},
        {ENTRY("linear_mma") "__local_depot", NULL, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char kernel[64] = "untouched";
        int bytes = -1;
        assert_int_equal(cleat_ptx_finds_array(rows[i].ptx, kernel, &bytes), rows[i].kernel != NULL);
        assert_string_equal(kernel, rows[i].kernel ? rows[i].kernel : "untouched");
        assert_int_equal(bytes, rows[i].kernel ? rows[i].bytes : -1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds_what_should_be_registers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
