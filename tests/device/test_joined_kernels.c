/* Programs of several parts (joined_source.c): the library's kernels compile with separate options for each
 * part, and compute the same results as in separate programs. */
/* ctest: device cost=10 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory.h"
#include "device/embedded.h"
#include "open_device.h"
#include "platform/processes.h"

enum { MOST = 160, NAME = 96 };

static cleat_device *device;

static void build_joined(const cleat_program_key *parts, size_t count, const char *options, cl_program *program) {
    cleat_error error = {0};
    char *source = NULL;
    if (cleat_kernel_join(parts, count, &source, &error)) fail_msg("%s", error.text);
    const cleat_program_key key = {"joined", options, source};
    if (build_program(device, &key, program, &error)) fail_msg("%s", error.text);
    cleat_free(source);
}

/* Files for matrix units require one; test_matrix builds them. */
static bool is_kernel_file(const char *name) {
    const char *ending = strrchr(name, '.');
    return ending && strcmp(ending, ".cl") == 0 && !strstr(name, "mma");
}

static bool ends_with(const char *name, const char *ending) {
    const size_t size = strlen(name), tail = strlen(ending);
    return size >= tail && strcmp(name + size - tail, ending) == 0;
}

/* Builds every file with two sets of options in one program. Skips files with other_shape in their names. */
static void build_all(const char *other_shape, const char *const options[2]) {
    cleat_program_key parts[MOST];
    size_t count = 0;
    cl_program program = NULL;
    for (int i = 0; i < 2; ++i)
        for (const cleat_embedded_file *file = cleat_embedded_kernels; file->name; ++file) {
            if (!is_kernel_file(file->name) || strstr(file->name, other_shape)) continue;
            assert_true(count < MOST);
            parts[count++] = (cleat_program_key){file->name, options[i], NULL};
        }
    assert_true(count > 80);
    build_joined(parts, count, "", &program);
    for (size_t i = 0; i < count; ++i) {
        char name[NAME];
        cl_int code = CL_SUCCESS;
        if (!ends_with(parts[i].file, "/linear.cl")) continue;
        cleat_kernel_joined_name(parts, i, "linear_plain", name, sizeof name);
        cl_kernel kernel = clCreateKernel(program, name, &code);
        assert_int_equal(code, CL_SUCCESS);
        clReleaseKernel(kernel);
    }
    clReleaseProgram(program);
}

static void cpu_kernels_compile_in_one_program(void **state) {
    (void)state;
    build_all("_gpu", (const char *const[]){"-DSTORAGE_F32 -DWG=1 -DVEC=16 -DDH=32 -DCONV_KIND=0",
                                            "-DSTORAGE_F16 -DWG=1 -DVEC=8 -DDH=64 -DCONV_KIND=1"});
}

static void gpu_kernels_compile_in_one_program(void **state) {
    (void)state;
    build_all("_cpu", (const char *const[]){"-DSTORAGE_F32 -DWG=256 -DVEC=4 -DDH=32 -DCONV_KIND=0",
                                            "-DSTORAGE_BF16 -DWG=64 -DVEC=4 -DDH=64 -DCONV_KIND=1"});
}

/* --- two parts of one file ------------------------------------------------------------------------------------ */

/* Every kind of definition, with values and forms that depend on the options. */
static const char numbers_text[] = "#include \"numbers.clh\"\n"
                                   "#ifndef OFFSET /* where no option does: this part's alone */\n"
                                   "#define OFFSET 1000\n"
                                   "#endif\n"
                                   "#if BY > 2\n"
                                   "typedef float value; /* numbers_more in a comment */\n"
                                   "enum { STEP = 7, LAST = STEP + 1 };\n"
                                   "static inline value twice(value x) {\n"
                                   "#else\n"
                                   "typedef int value;\n"
                                   "enum { STEP = 5, LAST = 11 };\n"
                                   "static value twice(value x) {\n"
                                   "#endif\n"
                                   "    return SCALED(x);\n"
                                   "}\n"
                                   "typedef struct __attribute__((packed)) pair {\n"
                                   "    value twice, STEP_OF_PAIR;\n"
                                   "} pair;\n"
                                   "__constant value table[2] = {BY, 3.75f};\n"
                                   "#define PASTED(x) x##_number\n"
                                   "__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void\n"
                                   "numbers(__global float *out_number, const int n) {\n"
                                   "    pair p = {twice(n), STEP};\n"
                                   "    PASTED(out)[0] = p.twice + table[1] * LAST + p.STEP_OF_PAIR * 100 + OFFSET;\n"
                                   "}\n"
                                   "__kernel void more_numbers(__global float *out) { out[0] = -BY; }\n";
static const char included_text[] = "#define SCALED(x) ((x) * BY / 2)\n";

static float run(cl_program program, const char *name) {
    const size_t one = 1;
    const cl_int n = 3;
    float result = 0;
    cl_int code = CL_SUCCESS;
    cl_kernel kernel = clCreateKernel(program, name, &code);
    if (code != CL_SUCCESS) fail_msg("no kernel '%s'", name);
    cl_mem out = clCreateBuffer(device->context, CL_MEM_READ_WRITE, sizeof result, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    assert_int_equal(clSetKernelArg(kernel, 0, sizeof out, &out), CL_SUCCESS);
    if (strstr(name, "more_numbers") == NULL) assert_int_equal(clSetKernelArg(kernel, 1, sizeof n, &n), CL_SUCCESS);
    assert_int_equal(clEnqueueNDRangeKernel(device->compute, kernel, 1, NULL, &one, &one, 0, NULL, NULL), CL_SUCCESS);
    assert_int_equal(clEnqueueReadBuffer(device->compute, out, CL_TRUE, 0, sizeof result, &result, 0, NULL, NULL),
                     CL_SUCCESS);
    clReleaseMemObject(out);
    clReleaseKernel(kernel);
    return result;
}

static void parts_compute_what_they_compute_apart(void **state) {
    static const char *const kernels[] = {"numbers", "more_numbers"};
    const cleat_program_key parts[] = {{"numbers.cl", "-DBY=2 -DOFFSET=20000", NULL},
                                       {"numbers.cl", "-DBY=3", NULL},
                                       {"numbers.cl", "-DBY=5 -DOFFSET=0", NULL}};
    enum { PARTS = sizeof parts / sizeof *parts };
    char folder[64], name[NAME];
    float seen[PARTS];
    cl_program joined = NULL;
    (void)state;
    make_folder(folder, sizeof folder);
    put_file(folder, "numbers.cl", numbers_text);
    put_file(folder, "numbers.clh", included_text);
    setenv("CLEAT_KERNEL_DIR", folder, 1);
    build_joined(parts, PARTS, "", &joined);
    for (size_t i = 0; i < PARTS; ++i) {
        cl_program apart = NULL;
        cleat_error error = {0};
        if (build_program(device, &parts[i], &apart, &error)) fail_msg("%s", error.text);
        for (size_t k = 0; k < sizeof kernels / sizeof *kernels; ++k) {
            cleat_kernel_joined_name(parts, i, kernels[k], name, sizeof name);
            const float value = run(joined, name);
            assert_true(value == run(apart, kernels[k]));
            if (k == 0) seen[i] = value;
        }
        clReleaseProgram(apart);
    }
    assert_true(seen[0] != seen[1] && seen[1] != seen[2] && seen[0] != seen[2]);
    clReleaseProgram(joined);
    unsetenv("CLEAT_KERNEL_DIR");
    remove_folder(folder);
}

/* Lines keep their file and number for compiler messages. */
static void messages_name_the_line(void **state) {
    const cleat_program_key parts[] = {{"good.cl", "", NULL}, {"bad.cl", "-DBAD=1", NULL}};
    char folder[64], *source = NULL;
    cl_program program = NULL;
    cleat_error error = {0};
    (void)state;
    make_folder(folder, sizeof folder);
    put_file(folder, "good.cl", "__kernel void good(__global int *x) { x[0] = 1; }\n");
    put_file(folder, "bad.cl",
             "/* a comment\n   of two lines */\n__kernel void bad(__global int *x) {\n#if BAD\n"
             "    x[0] = nobody_knows_me;\n#endif\n}\n");
    setenv("CLEAT_KERNEL_DIR", folder, 1);
    assert_int_equal(cleat_kernel_join(parts, 2, &source, NULL), CLEAT_OK);
    const cleat_program_key key = {"good.cl+bad.cl", "", source};
    assert_int_equal(build_program(device, &key, &program, &error), CLEAT_ERR_BUILD);
    if (!strstr(error.text, "nobody_knows_me") || !strstr(error.text, "bad.cl:5")) fail_msg("%s", error.text);
    cleat_free(source);
    source = NULL;
    const cleat_program_key missing[] = {{"good.cl", "", NULL}, {"nothing.cl", "", NULL}};
    assert_int_equal(cleat_kernel_join(missing, 2, &source, &error), CLEAT_ERR_NOT_FOUND);
    assert_null(source);
    unsetenv("CLEAT_KERNEL_DIR");
    remove_folder(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_compute_what_they_compute_apart), cmocka_unit_test(messages_name_the_line),
        cmocka_unit_test(cpu_kernels_compile_in_one_program), cmocka_unit_test(gpu_kernels_compile_in_one_program)};
    device = open_device();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failed;
}
