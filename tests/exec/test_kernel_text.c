/* Operations whose kernel source is supplied by the caller (cleat_launch_source), using only the public
 * header. */
/* ctest: device quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/op.h"
#include "exec/copy.h"
#include "platform/files.h"

enum { N = 100 };

#define KERNEL(formula)                                                                                                \
    "#include \"lib/common.clh\"\n"                                                                                    \
    "__kernel void apply(TENSOR(const T, x), TENSOR(T, y), const ulong n) {\n"                                         \
    "    for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) STORE(" formula ", AT(y), i);\n"             \
    "}\n"

static const char twice[] = KERNEL("2.0f * LOAD(AT(x), i)"), plus_one[] = KERNEL("LOAD(AT(x), i) + 1.0f"),
                  broken[] = KERNEL("no_such_name");

static cleat_device *device;

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[0];
    return cleat_set_output(node, 0, cleat_tensor_dtype(x), cleat_tensor_rank(x), cleat_tensor_shape(x), error);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    const char *source;
    memcpy(&source, node->attr, sizeof source);
    if (!source) {
        cleat_bind_fail(binder, node, "no kernel for %s", cleat_binder_facts(binder)->name);
        cleat_bind_fail(binder, node, "a later error");
        return;
    }
    cleat_launch_source(binder, node, "mine.cl", source, "apply", CLEAT_F32);
    cleat_launch_tensor(binder, node->in[0]);
    cleat_launch_tensor(binder, node->out[0]);
    cleat_launch_i64(binder, "n", cleat_tensor_elements(node->out[0]));
    cleat_launch_items(binder, cleat_tensor_elements(node->out[0]));
}

static const cleat_variant variants[] = {{.name = "plain", .bind = bind}, {0}};
static const cleat_op apply_op = {.name = "apply", .infer = infer, .variants = variants};

static cleat_tensor *apply(cleat_graph *graph, cleat_tensor *x, const char *source) {
    cleat_node *node = cleat_emit(graph, &apply_op, &source, sizeof source, &x, 1);
    return node ? node->out[0] : NULL;
}

static void ok(cleat_status status, const cleat_error *error) {
    if (status) fail_msg("%s", error->text);
}

/* Returns the status of running y = second(first(x)) on x = 0, 1, ... */
static cleat_status run(const char *first, const char *second, float *y, cleat_error *error) {
    const int64_t n = N;
    float x[N];
    cleat_store *store = NULL;
    cleat_graph *graph = NULL;
    cleat_exec *exec = NULL;
    cleat_error fine;
    ok(cleat_store_create(&store, &fine), &fine);
    ok(cleat_graph_create(store, "text", &graph, &fine), &fine);
    cleat_tensor *input = cleat_input(graph, "x", CLEAT_F32, 1, &n);
    cleat_tensor *output = apply(graph, apply(graph, input, first), second);
    cleat_retain(graph, output);
    for (int i = 0; i < N; ++i) x[i] = (float)i;
    cleat_status status = cleat_exec_open(device, &graph, 1, &exec, error);
    if (!status) ok(cleat_exec_write_unchecked(exec, 0, input, x, &fine), &fine);
    if (!status) status = cleat_exec_run(exec, 0, error);
    if (!status) ok(cleat_exec_read_unchecked(exec, 0, output, y, &fine), &fine);
    cleat_exec_destroy(exec);
    cleat_graph_destroy(graph);
    cleat_store_destroy(store);
    return status;
}

/* Both sources have the name "mine.cl" and the same options; each is built from its own text. */
static void test_two_texts_of_one_name(void **state) {
    float y[N];
    cleat_error error;
    (void)state;
    ok(run(twice, plus_one, y, &error), &error);
    for (int i = 0; i < N; ++i) assert_true(y[i] == (float)(2 * i + 1));
}

static void test_a_text_that_does_not_compile_is_named(void **state) {
    float y[N];
    cleat_error error;
    (void)state;
    assert_int_equal(run(twice, broken, y, &error), CLEAT_ERR_BUILD);
    assert_non_null(strstr(error.text, "mine.cl"));
    assert_non_null(strstr(error.text, "no_such_name"));
}

static void test_the_first_error_of_bind_counts(void **state) {
    float y[N];
    cleat_error error;
    (void)state;
    assert_int_equal(run(twice, NULL, y, &error), CLEAT_ERR_SHAPE);
    assert_non_null(strstr(error.text, "'apply'"));
    assert_non_null(strstr(error.text, "no kernel for"));
    assert_null(strstr(error.text, "later"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_texts_of_one_name),
        cmocka_unit_test(test_a_text_that_does_not_compile_is_named),
        cmocka_unit_test(test_the_first_error_of_bind_counts),
    };
    cleat_error error;
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    cleat_status status = cleat_device_open(selector ? selector : "auto", &device, &error);
    if (status) {
        fprintf(stderr, "%s\n", error.text);
        return status == CLEAT_ERR_NO_DEVICE ? 77 : 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failed;
}
