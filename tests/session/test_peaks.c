/* Kernels that measure peaks: their results, and the sizes that are timed, with devices that are faster than
 * any real one. */
/* ctest: device */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/half.h"
#include "core/kernel_shape.h"
#include "device/device.h"
#include "exec/copy.h"
#include "platform/files.h"
#include "session/peaks.h"
#include "train/tiny.h"

/* --- sizes ----------------------------------------------------------------------------------------------------- */

/* A device with a fixed launch time and a fixed rate. */
typedef struct clock_device {
    double launch_seconds, flops, flops_of_size;
    int64_t fits; /* the largest size */
    int calls;
} clock_device;

static cleat_status time_launch(void *user, int64_t size, double *seconds, cleat_error *error) {
    clock_device *device = user;
    ++device->calls;
    if (size > device->fits) return cleat_fail(error, CLEAT_ERR_FIT, "too large");
    *seconds = device->launch_seconds + (double)size * device->flops_of_size / device->flops;
    return CLEAT_OK;
}

static double peak_of(clock_device *device, int64_t first, int64_t most, double launch_seconds) {
    const cleat_sized_work work = {time_launch, device, first, most};
    int64_t size = 0;
    double seconds = 0;
    cleat_error error = {0};
    if (cleat_find_size(&work, launch_seconds, &size, &seconds, &error)) fail_msg("%s", error.text);
    return (double)size * device->flops_of_size / seconds;
}

static void assert_within(double found, double expected, double part) {
    if (!(fabs(found - expected) <= part * expected)) fail_msg("%g instead of %g", found, expected);
}

/* An H200: 8 us per launch; a product of 2048 x 1024 x 256 takes 1.2 us at 900 TFLOP/s. */
static void a_launch_does_not_hide_a_fast_unit(void **state) {
    (void)state;
    enum { ANY = 1 << 30 };
    const double product = 2.0 * 1024 * 256;
    clock_device card = {8e-6, 900e12, product, ANY, 0};
    const double once = peak_of(&card, 2048, 2048, 8e-6); /* the only size before 2026-11-27 */
    if (once > 0.15 * card.flops) fail_msg("%g at the first size", once);
    assert_within(peak_of(&card, 2048, ANY, 8e-6), card.flops, 0.05);
    clock_device slow = {10e-6, 1e11, product, ANY, 0}; /* a CPU: the first size is enough */
    assert_within(peak_of(&slow, 2048, ANY, 10e-6), slow.flops, 0.05);
    assert_int_equal(slow.calls, 1);
}

static void sizes_end_where_memory_ends(void **state) {
    (void)state;
    int64_t size = 42;
    double seconds = 0;
    clock_device card = {8e-6, 900e12, 1e6, 4096, 0};
    const cleat_sized_work work = {time_launch, &card, 1024, 1 << 20}, too_large = {time_launch, &card, 8192, 1 << 20};
    assert_int_equal(cleat_find_size(&work, 8e-6, &size, &seconds, NULL), CLEAT_OK);
    assert_int_equal(size, 4096);
    assert_within(seconds, 8e-6 + 4096e6 / 900e12, 1e-12);
    size = 42;
    cleat_error error = {0};
    assert_int_equal(cleat_find_size(&too_large, 8e-6, &size, &seconds, &error), CLEAT_ERR_FIT);
    assert_string_equal(error.text, "too large");
    assert_int_equal(size, 42);
}

static void memory_is_measured_outside_of_the_cache(void **state) {
    (void)state;
    const int64_t mib = 1048576, gib = 1024 * mib;
    const struct {
        cleat_device_kind kind;
        int64_t total, cache, allowed, bytes;
    } cases[] = {{CLEAT_DEVICE_GPU, 140 * gib, 50 * mib, 70 * gib, 512 * mib},
                 {CLEAT_DEVICE_GPU, 24 * gib, 72 * mib, 12 * gib, 576 * mib}, /* RTX 4090 */
                 {CLEAT_DEVICE_GPU, 192 * gib, 256 * mib, 96 * gib, 2048 * mib},
                 {CLEAT_DEVICE_GPU, 15 * gib, 4 * mib, 7 * gib, 64 * mib}, /* T4 */
                 {CLEAT_DEVICE_GPU, 15 * gib, 40 * mib, 100 * mib, 100 * mib},
                 {CLEAT_DEVICE_GPU, 8 * gib, 0, 4 * gib, 64 * mib},
                 {CLEAT_DEVICE_CPU, 64 * gib, 300 * mib, 32 * gib, 64 * mib},
                 {CLEAT_DEVICE_CPU, 8 * gib, 30 * mib, 3 * mib, 3 * mib}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const cleat_device_facts facts = {.kind = cases[i].kind, .memory_total = cases[i].total};
        const int64_t bytes = cleat_stream_bytes(&facts, cases[i].cache, cases[i].allowed);
        if (bytes != cases[i].bytes) fail_msg("case %zu: %lld bytes", i, (long long)bytes);
    }
}

/* --- kernels --------------------------------------------------------------------------------------------------- */

enum { GROUPS = 3, MAX_ITEMS = 256, ROUNDS = 5 };

/* The sums of a kernel's work-items: sums [GROUPS * work-items per group]. */
static void run_kernel(cleat_device *device, cleat_peak_kernel kernel, int32_t rounds, float *sums) {
    cleat_store *store = NULL;
    cleat_graph *graph = NULL;
    cleat_plan *plan = NULL;
    cleat_exec *exec = NULL;
    cleat_error error = {0};
    cleat_status status = cleat_store_create(&store, &error);
    if (!status) status = cleat_graph_create(store, "peak", &graph, &error);
    if (status) fail_msg("%s", error.text);
    cleat_tensor *count = cleat_state(graph, "rounds", CLEAT_I32, 1, (int64_t[]){1});
    cleat_tensor *out = cleat_peak_node(graph, kernel, count, GROUPS);
    if (kernel != CLEAT_PEAK_LAUNCH) cleat_retain(graph, out);
    status = cleat_graph_status(graph, &error);
    if (!status) status = cleat_plan_create(&graph, 1, cleat_device_get_facts(device), &plan, &error);
    if (!status) status = cleat_exec_create(device, plan, &exec, &error);
    if (!status) status = cleat_exec_write_unchecked(exec, 0, count, &rounds, &error);
    if (!status) status = cleat_exec_run(exec, 0, &error);
    if (!status) status = cleat_exec_finish(exec, &error);
    if (!status) status = cleat_exec_read_unchecked(exec, 0, out, sums, &error);
    if (status) fail_msg("%s", error.text);
    cleat_exec_destroy(exec);
    cleat_plan_destroy(plan);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
}

static cleat_device *device_open(void) {
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    cleat_device *device = NULL;
    cleat_error error = {0};
    if (cleat_device_open(selector ? selector : "auto", &device, &error)) fail_msg("%s", error.text);
    return device;
}

static void an_empty_kernel_changes_nothing(void **state) {
    (void)state;
    cleat_device *device = device_open();
    int32_t left = 0;
    run_kernel(device, CLEAT_PEAK_LAUNCH, 7, (float *)&left);
    assert_int_equal(left, 7);
    cleat_device_close(device);
}

/* The sum of one work-item in `count` vectors of sums with the same number of steps each. */
static double f32_sum(const cleat_device_facts *facts, double item, int count) {
    const double a = 0.99 - 0.0001 * item, b = 0.51 + 0.001 * item;
    const double steps = ROUNDS * cleat_peak_flops(facts, CLEAT_PEAK_F32) / facts->work_group / facts->vector_width / 2;
    double all = 0;
    for (int k = 0; k < count; ++k) {
        double x = 0.001 * k;
        for (int n = 0; n < steps / count; ++n) x = facts->work_group == 1 ? x * a + b : x + a * b;
        all += x * facts->vector_width;
    }
    return all;
}

/* The kernel has 6 vectors of sums, or 12 on processors with AVX-512. */
static void every_multiply_add_is_counted(void **state) {
    (void)state;
    static float sums[GROUPS * MAX_ITEMS];
    cleat_device *device = device_open();
    const cleat_device_facts *facts = cleat_device_get_facts(device);
    run_kernel(device, CLEAT_PEAK_F32, ROUNDS, sums);
    for (int i = 0; i < GROUPS * facts->work_group; ++i) {
        const double few = f32_sum(facts, i % facts->work_group, 6), many = f32_sum(facts, i % facts->work_group, 12);
        assert_within(sums[i], fabs(sums[i] - few) < fabs(sums[i] - many) ? few : many, 1e-4);
    }
    cleat_device_close(device);
}

static float operand(int i) {
    const uint16_t bits = (uint16_t)(0x3400 | i * 389 % 1024 | (i * 7919 / 8 % 2) << 15);
    float value;
    cleat_from_f16(&bits, 1, &value);
    return value;
}

static void every_product_of_the_unit_is_counted(void **state) {
    (void)state;
    static float sums[GROUPS * MAX_ITEMS];
    cleat_device *device = device_open();
    const cleat_device_facts *facts = cleat_device_get_facts(device);
    if (facts->matrix_unit == CLEAT_MATRIX_NONE) {
        cleat_device_close(device);
        skip();
    }
    const int subgroup = cleat_matrix_subgroup_size(facts->matrix_unit), group = 128;
    const bool half_depth =
        facts->matrix_unit == CLEAT_MATRIX_AMD_DOT || facts->matrix_unit == CLEAT_MATRIX_EMULATED_DOT;
    double total = 0; /* of all elements of the four products */
    for (int k = 0; k < 16; ++k)
        for (int m = 0; m < 32; ++m)
            for (int n = 0; n < 32; ++n) {
                const int depth = half_depth ? k % 8 : k;
                total += (double)operand(m / 16 * 256 + m % 16 * 16 + depth) *
                         operand(512 + n / 16 * 256 + depth * 16 + n % 16);
            }
    assert_int_equal((int)(cleat_peak_flops(facts, CLEAT_PEAK_MATRIX) * subgroup / group), 2 * 32 * 32 * 16);
    run_kernel(device, CLEAT_PEAK_MATRIX, ROUNDS, sums);
    for (int i = 0; i < GROUPS * group; i += subgroup) {
        double sum = 0;
        for (int lane = 0; lane < subgroup; ++lane) sum += (double)sums[i + lane];
        if (!(fabs(sum - ROUNDS * total) < 0.05 + 1e-3 * fabs(total)))
            fail_msg("%g instead of %g", sum, ROUNDS * total);
    }
    cleat_device_close(device);
}

int main(void) {
    const struct CMUnitTest sizes[] = {
        cmocka_unit_test(a_launch_does_not_hide_a_fast_unit),
        cmocka_unit_test(sizes_end_where_memory_ends),
        cmocka_unit_test(memory_is_measured_outside_of_the_cache),
    };
    const struct CMUnitTest kernels[] = {
        cmocka_unit_test(an_empty_kernel_changes_nothing),
        cmocka_unit_test(every_multiply_add_is_counted),
        cmocka_unit_test(every_product_of_the_unit_is_counted),
    };
    int failed = cmocka_run_group_tests(sizes, NULL, NULL);
    tiny_require_device();
    return failed + cmocka_run_group_tests(kernels, NULL, NULL);
}
