/* CLBlast's sgemm through cleat: storage, offsets, beta, and its errors. Two of the four ways of storage,
 * since CLBlast compiles kernels of its own for each (about 10 s with PoCL, once). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "open_device.h"

enum { M = 5, N = 7, K = 19, OFFSET = 3, ROOM = 256 };

static cleat_device *device;

static void fill(float *values) {
    for (int i = 0; i < ROOM; ++i) values[i] = (float)(i * 7 % 23) / 8 - 1;
}

static cl_mem buffer_with(const float *values) {
    cl_mem buffer = NULL;
    cleat_error error;
    if (cleat_buffer_create(device, ROOM * sizeof(float), &buffer, &error)) fail_msg("%s", error.text);
    assert_int_equal(
        clEnqueueWriteBuffer(device->compute, buffer, CL_TRUE, 0, ROOM * sizeof(float), values, 0, NULL, NULL),
        CL_SUCCESS);
    return buffer;
}

static void check_one(bool trans_a, bool trans_b, float beta) {
    float a[ROOM], b[ROOM], c[ROOM], result[ROOM];
    cleat_error error;
    fill(a), fill(b), fill(c);
    cl_mem buffers[3] = {buffer_with(a), buffer_with(b), buffer_with(c)};
    int lda = trans_a ? M : K, ldb = trans_b ? K : N;
    cleat_status status = cleat_clblast_sgemm(device, trans_a, trans_b, M, N, K, buffers[0], OFFSET, lda, buffers[1],
                                              OFFSET + 1, ldb, beta, buffers[2], OFFSET + 2, N, &error);
    if (status) fail_msg("%s", error.text);
    clEnqueueReadBuffer(device->compute, buffers[2], CL_TRUE, 0, sizeof result, result, 0, NULL, NULL);
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N; ++j) {
            int at = OFFSET + 2 + i * N + j;
            double sum = beta * c[at];
            for (int k = 0; k < K; ++k)
                sum += (double)a[OFFSET + (trans_a ? k * lda + i : i * lda + k)] *
                       b[OFFSET + 1 + (trans_b ? j * ldb + k : k * ldb + j)];
            if (!(fabs(result[at] - sum) <= 1e-5)) fail_msg("c[%d, %d] is %g, not %g", i, j, result[at], sum);
            c[at] = result[at];
        }
    assert_memory_equal(c, result, sizeof result); /* nothing else was written */
    for (int i = 0; i < 3; ++i) cleat_buffer_release(device, buffers[i], ROOM * sizeof(float));
}

static void test_results(void **state) {
    (void)state;
    check_one(false, true, 0.0f);
    check_one(true, false, 1.0f);
}

static void test_errors_by_name(void **state) {
    float values[ROOM];
    cleat_error error;
    (void)state;
    fill(values);
    cl_mem buffer = buffer_with(values);
    assert_int_equal(
        cleat_clblast_sgemm(device, false, false, 1000, N, K, buffer, 0, K, buffer, 0, N, 0, buffer, 0, N, &error),
        CLEAT_ERR_DEVICE);
    assert_non_null(strstr(error.text, "CLBlastInsufficientMemoryA"));
    assert_non_null(strstr(error.text, "m=1000"));
    cleat_buffer_release(device, buffer, ROOM * sizeof(float));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_results), cmocka_unit_test(test_errors_by_name)};
    device = open_device();
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failures;
}
