/* Joined programs (exec/join.h): the parts that are joined, and equal results from joined and separate
 * programs. */
/* ctest: device */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/ops.h"
#include "exec/exec.h"
#include "platform/files.h"
#include "platform/processes.h"

enum { B = 4, WIDTHS = 4, WIDEST = 72 };

static const int64_t widths[WIDTHS] = {24, 40, 56, WIDEST};
static cleat_device *device;

typedef struct run {
    cleat_store *store;
    cleat_graph *graph;
    cleat_exec *exec;
    cleat_tensor *x[WIDTHS], *y[WIDTHS];
} run;

/* y = gelu(norm(x)) for some of the widths. */
static run open_run(size_t first, size_t count) {
    const cleat_init one = {CLEAT_INIT_CONSTANT, 1}, zero = {CLEAT_INIT_ZERO, 0};
    char name[CLEAT_NAME];
    cleat_error error = {0};
    run r = {0};
    assert_int_equal(cleat_store_create(&r.store, &error), CLEAT_OK);
    assert_int_equal(cleat_graph_create(r.store, "norms", &r.graph, &error), CLEAT_OK);
    for (size_t i = first; i < first + count; ++i) {
        snprintf(name, sizeof name, "x%zu", i);
        r.x[i] = cleat_input(r.graph, name, CLEAT_F32, 2, (int64_t[]){B, widths[i]});
        snprintf(name, sizeof name, "scale%zu", i);
        cleat_tensor *scale = cleat_param(r.graph, name, 1, &widths[i], one);
        snprintf(name, sizeof name, "shift%zu", i);
        cleat_tensor *shift = cleat_param(r.graph, name, 1, &widths[i], zero);
        r.y[i] = cleat_gelu(r.graph, cleat_layer_norm(r.graph, r.x[i], scale, shift, 1e-5f));
        cleat_retain(r.graph, r.y[i]);
    }
    if (cleat_exec_open(device, &r.graph, 1, &r.exec, &error) || cleat_exec_initialise(r.exec, 1, &error))
        fail_msg("%s", error.text);
    return r;
}

static void close_run(run *r) {
    cleat_exec_destroy(r->exec);
    cleat_graph_destroy(r->graph);
    cleat_store_destroy(r->store);
}

static void compute(const run *r, size_t i, float *y) {
    float x[B * WIDEST];
    const size_t bytes = (size_t)(B * widths[i]) * sizeof *x;
    cleat_error error = {0};
    for (int64_t k = 0; k < B * widths[i]; ++k) x[k] = (float)((k * 37 + (int64_t)i) % 101) / 50 - 1;
    if (cleat_exec_write(r->exec, 0, r->x[i], x, bytes, &error)) fail_msg("%s", error.text);
    if (cleat_exec_run(r->exec, 0, &error) || cleat_exec_read(r->exec, 0, r->y[i], y, bytes, &error))
        fail_msg("%s", error.text);
}

/* Four widths of layer_norm.cl and one pointwise.cl become one program; a single width has two programs. */
static void joined_parts_compute_the_same(void **state) {
    (void)state;
    run all = open_run(0, WIDTHS);
    assert_int_equal(all.exec->part_count, WIDTHS + 1);
    assert_int_equal(all.exec->program_count, 1);
    assert_string_equal(all.exec->keys[0].file, "layer_norm.cl*4+pointwise.cl");
    assert_string_equal(all.exec->keys[0].options, "");
    for (size_t i = 0; i < WIDTHS; ++i) {
        float together[B * WIDEST], apart[B * WIDEST];
        run one = open_run(i, 1);
        assert_int_equal(one.exec->program_count, 2); /* too few to join */
        compute(&all, i, together);
        compute(&one, i, apart);
        assert_memory_equal(together, apart, (size_t)(B * widths[i]) * sizeof *apart);
        assert_true(together[0] != together[1]);
        close_run(&one);
    }
    close_run(&all);
}

/* An error in a part names its file and its options. */
static void a_part_that_does_not_compile_is_named(void **state) {
    char folder[] = "/tmp/cleat-join-XXXXXX", path[64], command[64];
    cleat_error error = {0};
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/pointwise.cl", folder);
    FILE *file = fopen(path, "w");
    assert_true(file && fputs("\n__kernel void pointwise_forward() { nobody_knows_me(); }\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    setenv("CLEAT_KERNEL_DIR", folder, 1);
    run all = open_run(0, WIDTHS);
    assert_int_equal(cleat_exec_run(all.exec, 0, &error), CLEAT_ERR_BUILD);
    if (!strstr(error.text, "pointwise.cl with options '-DSTORAGE_F32 ") || !strstr(error.text, "pointwise.cl:2"))
        fail_msg("%s", error.text);
    close_run(&all);
    unsetenv("CLEAT_KERNEL_DIR");
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(joined_parts_compute_the_same),
                                       cmocka_unit_test(a_part_that_does_not_compile_is_named)};
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    cleat_error error = {0};
    if (cleat_device_open(selector ? selector : "auto", &device, &error)) {
        print_message("skipped, no device: %s\n", error.text);
        return 77;
    }
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failed;
}
