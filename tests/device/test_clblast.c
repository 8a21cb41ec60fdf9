/* CLBlast's sgemm through cleat: storage layouts, offsets, beta, its workspace, and its errors. CLBlast
 * compiles separate kernels for each storage layout (about 40 s in all with PoCL, once). */
/* ctest: device slow cost=21 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "open_device.h"

#include "platform/system.h"

static cleat_device *device;

/* --- counting allocations --- */

static int buffers_created;

/* Interposes the driver's function, also for calls from CLBlast. */
CLEAT_API cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *code) {
    static cl_mem (*next)(cl_context, cl_mem_flags, size_t, void *, cl_int *);
    if (!next) next = (cl_mem(*)(cl_context, cl_mem_flags, size_t, void *, cl_int *))dlsym(RTLD_NEXT, "clCreateBuffer");
    ++buffers_created;
    return next(context, flags, size, host, code);
}

/* --- products in one slab --- */

typedef struct shape {
    bool trans_a, trans_b;
    int64_t m, n, k;
    float beta;
    int64_t shift; /* elements between the beginning of a sub-buffer and the matrix in it */
} shape;

enum { GUARD = 4096, PATTERN = 0x5a, MIN_BYTES = 4096 };

/* A, B, C, the workspace and a guard after it, each at a multiple of the alignment. */
typedef struct rig {
    shape s;
    int64_t bytes, workspace_at;
    float *a, *b, *c; /* host copies */
    cl_mem slab;
    cleat_clblast_gemm gemm;
} rig;

static float value_at(int64_t i, int64_t seed) {
    return (float)((i * 7 + i / 23 + seed) % 23) / 8 - 1;
}

static void put(cl_mem buffer, int64_t at, int64_t bytes, const void *values) {
    assert_int_equal(
        clEnqueueWriteBuffer(device->compute, buffer, CL_TRUE, (size_t)at, (size_t)bytes, values, 0, NULL, NULL),
        CL_SUCCESS);
}

static void get(cl_mem buffer, int64_t at, int64_t bytes, void *values) {
    if (bytes == 0) return; /* drivers reject it with CL_INVALID_VALUE */
    assert_int_equal(
        clEnqueueReadBuffer(device->compute, buffer, CL_TRUE, (size_t)at, (size_t)bytes, values, 0, NULL, NULL),
        CL_SUCCESS);
}

static cl_mem part(cl_mem slab, int64_t at, int64_t bytes) {
    cl_buffer_region region = {(size_t)at, (size_t)bytes};
    cl_int code = CL_SUCCESS;
    cl_mem made = clCreateSubBuffer(slab, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    assert_int_equal(code, CL_SUCCESS);
    return made;
}

/* Fills a matrix from the host, which keeps a copy. */
static cl_mem matrix(cl_mem slab, int64_t at, int64_t elements, int64_t shift, float **host) {
    int64_t bytes = (shift + elements) * (int64_t)sizeof(float);
    *host = malloc((size_t)bytes);
    assert_non_null(*host);
    for (int64_t i = 0; i < shift + elements; ++i) (*host)[i] = value_at(i, at);
    put(slab, at, bytes, *host);
    return part(slab, at, bytes);
}

static int64_t room(int64_t elements) {
    int64_t unit = cleat_device_get_facts(device)->alignment;
    return (elements * (int64_t)sizeof(float) + unit - 1) / unit * unit;
}

static void fill_pattern(const rig *r) {
    int64_t bytes = r->bytes - r->workspace_at;
    unsigned char *pattern = malloc((size_t)bytes);
    assert_non_null(pattern);
    memset(pattern, PATTERN, (size_t)bytes);
    put(r->slab, r->workspace_at, bytes, pattern);
    free(pattern);
}

static void rig_open(rig *r, const shape *s, int64_t workspace) {
    cleat_error error;
    *r = (rig){.s = *s};
    int64_t a_at = 0, b_at = a_at + room(s->shift + s->m * s->k), c_at = b_at + room(s->shift + s->k * s->n);
    r->workspace_at = c_at + room(s->shift + s->m * s->n);
    r->bytes = r->workspace_at + room(workspace / (int64_t)sizeof(float)) + GUARD;
    if (cleat_buffer_create(device, r->bytes, &r->slab, &error)) fail_msg("%s", error.text);
    r->gemm = (cleat_clblast_gemm){.trans_a = s->trans_a,
                                   .trans_b = s->trans_b,
                                   .m = s->m,
                                   .n = s->n,
                                   .k = s->k,
                                   .a = matrix(r->slab, a_at, s->m * s->k, s->shift, &r->a),
                                   .b = matrix(r->slab, b_at, s->k * s->n, s->shift, &r->b),
                                   .c = matrix(r->slab, c_at, s->m * s->n, s->shift, &r->c),
                                   .a_offset = s->shift,
                                   .b_offset = s->shift,
                                   .c_offset = s->shift,
                                   .beta = s->beta,
                                   .workspace = part(r->slab, r->workspace_at, workspace)};
    fill_pattern(r);
}

static void rig_close(rig *r) {
    cl_mem parts[] = {r->gemm.a, r->gemm.b, r->gemm.c, r->gemm.workspace};
    for (int i = 0; i < 4; ++i)
        if (parts[i]) clReleaseMemObject(parts[i]);
    cleat_buffer_release(device, r->slab, r->bytes);
    free(r->a), free(r->b), free(r->c);
}

static double expected(const rig *r, int64_t i, int64_t j) {
    const shape *s = &r->s;
    double sum = s->beta * (double)r->c[s->shift + i * s->n + j];
    for (int64_t k = 0; k < s->k; ++k)
        sum += (double)r->a[s->shift + (s->trans_a ? k * s->m + i : i * s->k + k)] *
               (double)r->b[s->shift + (s->trans_b ? j * s->k + k : k * s->n + j)];
    return sum;
}

/* Checks every element of small products; the corners and some interior elements of a large one. */
static void check_result(const rig *r) {
    const shape *s = &r->s;
    int64_t elements = s->shift + s->m * s->n, step_i = s->m > 100 ? s->m / 19 : 1, step_j = s->n > 100 ? s->n / 23 : 1;
    float *c = malloc((size_t)elements * sizeof *c);
    assert_non_null(c);
    get(r->gemm.c, 0, elements * (int64_t)sizeof *c, c);
    assert_memory_equal(c, r->c, (size_t)s->shift * sizeof *c); /* no write before C */
    for (int64_t i = s->m - 1; i >= 0; i -= step_i)
        for (int64_t j = s->n - 1; j >= 0; j -= step_j) {
            double wanted = expected(r, i, j), found = c[s->shift + i * s->n + j];
            if (!(fabs(found - wanted) <= 1e-5 * (double)s->k))
                fail_msg("m=%lld n=%lld k=%lld: c[%lld, %lld] is %g, not %g", (long long)s->m, (long long)s->n,
                         (long long)s->k, (long long)i, (long long)j, found, wanted);
        }
    free(c);
}

static bool all_pattern(const rig *r, int64_t from, int64_t bytes) {
    unsigned char *found = malloc((size_t)bytes + 1);
    bool same = true;
    assert_non_null(found);
    get(r->slab, from, bytes, found);
    for (int64_t i = 0; i < bytes; ++i) same = same && found[i] == PATTERN;
    free(found);
    return same;
}

static int64_t workspace_of(const shape *s) {
    int64_t bytes = -1;
    cleat_error error;
    cleat_clblast_gemm gemm = {.trans_a = s->trans_a,
                               .trans_b = s->trans_b,
                               .m = s->m,
                               .n = s->n,
                               .k = s->k,
                               .a_offset = s->shift,
                               .b_offset = s->shift,
                               .c_offset = s->shift};
    if (cleat_clblast_workspace(device, &gemm, &bytes, &error)) fail_msg("%s", error.text);
    assert_true(bytes >= 0);
    return bytes;
}

/* Returns whether CLBlast used the workspace. */
static bool check_one(shape s) {
    cleat_error error;
    rig r;
    int64_t needed = workspace_of(&s);
    rig_open(&r, &s, needed > 0 ? needed : MIN_BYTES);
    int64_t allocated = cleat_device_allocated(device);
    int created = buffers_created;
    if (cleat_clblast_sgemm(device, &r.gemm, NULL, &error)) fail_msg("%s", error.text);
    assert_int_equal(clFinish(device->compute), CL_SUCCESS);
    assert_int_equal(buffers_created, created); /* nor did CLBlast allocate */
    assert_int_equal(cleat_device_allocated(device), allocated);
    check_result(&r);
    assert_true(all_pattern(&r, r.workspace_at + needed, r.bytes - r.workspace_at - needed));
    bool used = !all_pattern(&r, r.workspace_at, needed);
    assert_int_equal(used, needed > 0);
    rig_close(&r);
    return used;
}

static void test_small_gemms(void **state) {
    (void)state;
    assert_false(check_one((shape){false, true, 5, 7, 19, 0.0f, 3}));
    assert_false(check_one((shape){true, false, 5, 7, 19, 1.0f, 3}));
    check_one((shape){false, true, 130, 257, 1200, 1.0f, 0});
    check_one((shape){true, false, 130, 257, 1200, 0.0f, 0});
}

/* Sizes above the threshold of CLBlast's direct kernel, from which on it copies matrices: padded, transposed,
 * or both. */
static void test_large_gemms_stay_in_the_workspace(void **state) {
    int used = 0;
    (void)state;
    for (int i = 0; i < 4; ++i) used += check_one((shape){i & 1, i >> 1, 1000, 1000, 1000, (float)(i == 1), 0});
    used += check_one((shape){false, true, 1024, 1024, 1024, 1.0f, 0});
    used += check_one((shape){true, false, 1024, 1024, 1024, 0.0f, 0});
    used += check_one((shape){true, true, 1000, 1300, 900, 1.0f, 5});
    print_message("%d of 7 large products used their workspace\n", used);
    if (cleat_device_get_facts(device)->vendor == CLEAT_VENDOR_POCL) assert_true(used > 0);
}

static void test_errors_by_name(void **state) {
    cleat_error error;
    rig r;
    (void)state;
    rig_open(&r, &(shape){false, false, 5, 7, 19, 0, 0}, MIN_BYTES);
    r.gemm.m = 1000;
    assert_int_equal(cleat_clblast_sgemm(device, &r.gemm, NULL, &error), CLEAT_ERR_DEVICE);
    assert_non_null(strstr(error.text, "CLBlastInsufficientMemoryA"));
    assert_non_null(strstr(error.text, "m=1000"));
    rig_close(&r);
}

/* A workspace that is too small is refused and not overrun. Without a workspace CLBlast allocates one, which
 * clCreateBuffer above detects. */
static void test_too_small_a_workspace(void **state) {
    const shape s = {false, true, 1000, 1000, 1000, 0, 0};
    cleat_error error;
    rig r;
    (void)state;
    if (workspace_of(&s) <= MIN_BYTES) skip();
    rig_open(&r, &s, MIN_BYTES);
    assert_int_equal(cleat_clblast_sgemm(device, &r.gemm, NULL, &error), CLEAT_ERR_DEVICE);
    assert_non_null(strstr(error.text, "CLBlastInsufficientMemoryTemp"));
    assert_true(all_pattern(&r, r.workspace_at, r.bytes - r.workspace_at));
    int created = buffers_created;
    clReleaseMemObject(r.gemm.workspace);
    r.gemm.workspace = NULL;
    if (cleat_clblast_sgemm(device, &r.gemm, NULL, &error)) fail_msg("%s", error.text);
    assert_int_equal(clFinish(device->compute), CL_SUCCESS);
    assert_int_equal(buffers_created, created + 1);
    rig_close(&r);
}

/* Tiles of 64 x 64 with copies for every matrix, 32 x 32 for the direct kernel. Runs last, because CLBlast
 * keeps the parameters. */
static void test_parameters(void **state) {
    cleat_clblast_parameters set = {
        {0, 1, 16, 2, 8, 8, 64, 8, 8, 64, 1, 1, 0, 0, 4, 4, 2, 8, 8, 8, 8, 1, 1, 4, 4, 32, 1}};
    const shape s = {false, true, 100, 70, 50, 1.0f, 0};
    cleat_error error;
    (void)state;
    assert_false(device->clblast_tuned);
    set.values[CLEAT_CLBLAST_VWM] = 3;
    assert_int_equal(cleat_clblast_override(device, &set, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "1, 2, 4 or 8"));
    assert_false(device->clblast_tuned);
    set.values[CLEAT_CLBLAST_VWM] = 4;
    if (cleat_clblast_override(device, &set, &error)) fail_msg("%s", error.text);
    assert_true(device->clblast_tuned);
    assert_memory_equal(&device->clblast, &set, sizeof set);
    /* CLBlast uses the parameters: copies of A [128, 64], B [128, 64] and C [128, 128], except of matrices
     * that need no padding. */
    assert_int_equal(workspace_of(&s), (128 * 64 + 128 * 64 + 128 * 128) * (int64_t)sizeof(float));
    assert_true(check_one(s));
    set.values[CLEAT_CLBLAST_XGEMM_MIN_INDIRECT_SIZE] = 1000;
    if (cleat_clblast_override(device, &set, &error)) fail_msg("%s", error.text);
    assert_int_equal(workspace_of(&s), 0);
    assert_false(check_one(s));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_gemms),    cmocka_unit_test(test_large_gemms_stay_in_the_workspace),
        cmocka_unit_test(test_errors_by_name), cmocka_unit_test(test_too_small_a_workspace),
        cmocka_unit_test(test_parameters),
    };
    device = open_device();
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failures;
}
