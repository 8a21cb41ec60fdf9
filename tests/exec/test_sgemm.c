/* CLBlast in a plan: its workspace is planned, is large enough for any tuning of CLBlast, and is the only
 * memory it uses. */
/* ctest: device slow */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/exec.h"
#include "tiny.h"

#include <clblast_c.h>

static cleat_device *device;

/* --- the bound --- */

static int64_t needed(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k) {
    cleat_clblast_gemm gemm = {.trans_a = trans_a, .trans_b = trans_b, .m = m, .n = n, .k = k, .a_offset = 1};
    int64_t bytes = -1;
    cleat_error error;
    ok(cleat_clblast_workspace(device, &gemm, &bytes, &error), &error);
    return bytes;
}

/* Sets other tile sizes in CLBlast. `threshold`: matrices are not copied for products with fewer
 * multiplications than its cube. */
static void tune(size_t gemmk, size_t mwg, size_t nwg, size_t kwg, size_t kreg, size_t threshold) {
    const char *names[] = {"GEMMK", "KREG", "KWG", "KWI", "MDIMA", "MDIMC", "MWG", "NDIMB",
                           "NDIMC", "NWG",  "SA",  "SB",  "STRM",  "STRN",  "VWM", "VWN"};
    const size_t values[] = {gemmk, kreg, kwg, 1, 8, 8, mwg, 8, 8, nwg, 0, 0, 0, 0, 1, 1};
    const char *routine[] = {"XGEMM_MIN_INDIRECT_SIZE"};
    assert_int_equal(CLBlastOverrideParameters(device->id, "Xgemm", CLBlastPrecisionSingle, 16, names, values),
                     CLBlastSuccess);
    assert_int_equal(
        CLBlastOverrideParameters(device->id, "GemmRoutine", CLBlastPrecisionSingle, 1, routine, &threshold),
        CLBlastSuccess);
}

static void check_bound(int64_t *reached) {
    static const int64_t extents[] = {1, 31, 32, 33, 127, 128, 129, 250, 1000, 1024, 4097};
    enum { N = sizeof extents / sizeof *extents };
    for (int i = 0; i < N * N * N; ++i) {
        int64_t m = extents[i % N], n = extents[i / N % N], k = extents[i / N / N];
        int64_t bound = cleat_sgemm_workspace(m, n, k);
        for (int storage = 0; storage < 4; ++storage) {
            int64_t bytes = needed(storage & 1, storage >> 1, m, n, k);
            if (!(bytes <= bound))
                fail_msg("m=%lld n=%lld k=%lld: %lld bytes, the bound is %lld", (long long)m, (long long)n,
                         (long long)k, (long long)bytes, (long long)bound);
            if (bytes == bound) ++*reached;
        }
    }
}

/* Runs last, because the tuning parameters remain set. */
static void test_bound_holds_for_all_tiles(void **state) {
    int64_t reached = 0;
    (void)state;
    check_bound(&reached);
    for (size_t mwg = 16; mwg <= 128; mwg *= 2)
        for (size_t nwg = 16; nwg <= 128; nwg *= 2) {
            tune(0, mwg, nwg, 32, 1, 1);
            check_bound(&reached);
            tune(1, mwg, nwg, 1, 16, 1);
            check_bound(&reached);
        }
    assert_true(reached > 0); /* the bound is tight */
}

/* --- a graph --- */

enum { M = 1000, N = 900, K = 1100 };

typedef struct rig {
    cleat_store *store;
    cleat_graph *graph;
    cleat_tensor *a, *b, *c;
    cleat_plan *plan;
} rig;

static void rig_open(rig *r, bool workspace) {
    cleat_error error;
    const int64_t one[] = {3}, a[] = {M, K}, b[] = {N, K};
    memset(r, 0, sizeof *r);
    ok(cleat_store_create(&r->store, &error), &error);
    ok(cleat_graph_create(r->store, "g", &r->graph, &error), &error);
    cleat_input(r->graph, "before", CLEAT_F32, 1, one); /* moves A away from offset 0 */
    r->a = cleat_input(r->graph, "a", CLEAT_F32, 2, a);
    cleat_param(r->graph, "first", 1, one, (cleat_init){CLEAT_INIT_ZERO, 0});
    r->b = cleat_param(r->graph, "b", 2, b, (cleat_init){CLEAT_INIT_ZERO, 0});
    r->c = tiny_product(r->graph, r->a, r->b, workspace);
    cleat_retain(r->graph, r->c);
    ok(cleat_plan_create(&r->graph, 1, cleat_device_get_facts(device), &r->plan, &error), &error);
}

static void rig_close(rig *r) {
    cleat_plan_destroy(r->plan);
    cleat_graph_destroy(r->graph);
    cleat_store_destroy(r->store);
    assert_int_equal(cleat_device_allocated(device), 0);
}

static float *random_values(int64_t count, uint32_t seed) {
    float *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 16) / 32768 - 1;
    }
    return values;
}

static void test_gemm_in_a_plan(void **state) {
    float *a = random_values(M * K, 1), *b = random_values(N * K, 2), *c = random_values(M * N, 3);
    cleat_exec *exec = NULL;
    cleat_error error;
    rig r;
    (void)state;
    rig_open(&r, true);
    assert_true(cleat_plan_category_bytes(r.plan, CLEAT_BYTES_ARENA) >=
                cleat_sgemm_workspace(M, N, K) + cleat_tensor_bytes(r.c));
    ok(cleat_exec_create(device, r.plan, &exec, &error), &error);
    ok(cleat_exec_write_unchecked(exec, 0, r.a, a, &error), &error);
    ok(cleat_exec_write_unchecked(exec, 0, r.b, b, &error), &error);
    for (int run = 0; run < 2; ++run) ok(cleat_exec_run(exec, 0, &error), &error);
    ok(cleat_exec_read_unchecked(exec, 0, r.c, c, &error), &error);
    assert_int_equal(cleat_device_allocated(device), cleat_plan_bytes(r.plan));
    for (int64_t i = 0; i < M; i += 37)
        for (int64_t j = 0; j < N; j += 31) {
            double sum = 0;
            for (int64_t k = 0; k < K; ++k) sum += (double)a[i * K + k] * (double)b[j * K + k];
            if (!(fabs(c[i * N + j] - sum) <= 1e-3))
                fail_msg("c[%d, %d] is %g, not %g", (int)i, (int)j, c[i * N + j], sum);
        }
    cleat_exec_destroy(exec);
    rig_close(&r);
    free(a), free(b), free(c);
}

static void test_unplanned_workspace_is_refused(void **state) {
    cleat_exec *exec = NULL;
    cleat_error error;
    rig r;
    (void)state;
    if (needed(false, true, M, N, K) == 0) skip();
    rig_open(&r, false);
    ok(cleat_exec_create(device, r.plan, &exec, &error), &error);
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(cleat_exec_run(exec, 0, &error), CLEAT_ERR_DEVICE);
        assert_non_null(strstr(error.text, "0 are planned"));
        assert_non_null(strstr(error.text, "tiny_product"));
    }
    cleat_exec_destroy(exec);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm_in_a_plan),
        cmocka_unit_test(test_unplanned_workspace_is_refused),
        cmocka_unit_test(test_bound_holds_for_all_tiles),
    };
    device = tiny_open_device();
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failures;
}
