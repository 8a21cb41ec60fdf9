/* Implements the test operations of tiny.h. */
#include "tiny.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "graph/launch.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "source_path.h"

typedef struct affine {
    float factor;
    int delay;
    tiny_fault fault;
} affine;

static cleat_status infer_affine(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[0];
    return cleat_set_output(node, 0, CLEAT_F32, x->rank, x->shape, error);
}

static void bind_affine(const cleat_node *node, cleat_binder *binder) {
    static const char *const files[] = {[TINY_MISSING_FILE] = "no_such_file.cl", [TINY_BROKEN_SOURCE] = "broken.cl"};
    const affine *attr = (const void *)node->attr;
    const char *file =
        attr->fault == TINY_MISSING_FILE || attr->fault == TINY_BROKEN_SOURCE ? files[attr->fault] : "tiny.cl";
    const bool swapped = attr->fault == TINY_SWAPPED_ARGUMENTS;
    int64_t n = cleat_tensor_elements(node->out[0]);
    cleat_launch_kernel(binder, node, file, attr->fault == TINY_MISSING_KERNEL ? "tiny_nothing" : "tiny_affine",
                        CLEAT_F32);
    cleat_launch_tensor(binder, node->in[0]);
    cleat_launch_tensor(binder, node->in[1]);
    cleat_launch_tensor(binder, node->out[0]);
    cleat_launch_f32(binder, "factor", attr->factor);
    cleat_launch_i32(binder, "delay", attr->delay);
    cleat_launch_i64(binder, swapped ? "n_bias" : "n", n);
    if (attr->fault != TINY_FEW_ARGUMENTS)
        cleat_launch_i64(binder, swapped ? "n" : "n_bias", node->in[1] ? cleat_tensor_elements(node->in[1]) : 1);
    size_t huge = (size_t)binder->facts->max_work_group * 2;
    if (attr->fault == TINY_HUGE_GROUP)
        cleat_launch_range(binder, 1, &huge, &huge);
    else
        cleat_launch_items(binder, n);
}

static const cleat_variant affine_variants[] = {{.name = "plain", .bind = bind_affine}, {0}};
static const cleat_op affine_op = {
    .name = "tiny_affine", .optional_inputs = CLEAT_IN(1), .infer = infer_affine, .variants = affine_variants};

cleat_tensor *tiny_affine(cleat_graph *graph, cleat_tensor *x, cleat_tensor *bias, float factor, int delay,
                          tiny_fault fault) {
    affine attr = {factor, delay, fault};
    cleat_tensor *in[] = {x, bias};
    cleat_node *node = cleat_emit(graph, &affine_op, &attr, sizeof attr, in, 2);
    return node ? node->out[0] : NULL;
}

static cleat_status infer_accumulate(cleat_node *node, cleat_error *error) {
    (void)error;
    cleat_set_output_state(node, 0, node->in[1]);
    return CLEAT_OK;
}

static int64_t accumulate_workspace(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    return 64 + cleat_tensor_bytes(node->in[0]);
}

static void bind_accumulate(const cleat_node *node, cleat_binder *binder) {
    int64_t n = cleat_tensor_elements(node->in[0]);
    cleat_launch_kernel(binder, node, "tiny.cl", "tiny_copy", CLEAT_F32);
    cleat_launch_tensor(binder, node->in[0]);
    cleat_launch_workspace(binder, 64, 4);
    cleat_launch_i64(binder, "n", n);
    cleat_launch_items(binder, n);
    cleat_launch_kernel(binder, node, "tiny.cl", "tiny_add", CLEAT_F32);
    cleat_launch_workspace(binder, 64, 4);
    cleat_launch_tensor(binder, node->out[0]);
    cleat_launch_i64(binder, "n", n);
    cleat_launch_items(binder, n);
}

static const cleat_variant accumulate_variants[] = {
    {.name = "plain", .workspace = accumulate_workspace, .bind = bind_accumulate}, {0}};
static const cleat_op accumulate_op = {
    .name = "tiny_accumulate", .infer = infer_accumulate, .variants = accumulate_variants};

void tiny_accumulate(cleat_graph *graph, cleat_tensor *x, cleat_tensor *total) {
    cleat_tensor *in[] = {x, total};
    cleat_emit(graph, &accumulate_op, NULL, 0, in, 2);
}

static cleat_sgemm sgemm_of(const cleat_node *node) {
    const cleat_tensor *a = node->in[0], *b = node->in[1];
    int64_t m = a->shape[0], n = b->shape[0], k = a->shape[1];
    bool workspace = *(const bool *)node->attr;
    return (cleat_sgemm){.a = a,
                         .b = b,
                         .c = node->out[0],
                         .m = m,
                         .n = n,
                         .k = k,
                         .trans_b = true,
                         .workspace = workspace ? cleat_sgemm_workspace(m, n, k) : 0};
}

static cleat_status infer_product(cleat_node *node, cleat_error *error) {
    return cleat_set_output(node, 0, CLEAT_F32, 2, (int64_t[]){node->in[0]->shape[0], node->in[1]->shape[0]}, error);
}

static int64_t product_workspace(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    return sgemm_of(node).workspace;
}

static void bind_product(const cleat_node *node, cleat_binder *binder) {
    cleat_sgemm sgemm = sgemm_of(node);
    cleat_launch_sgemm(binder, node, &sgemm);
}

static const cleat_variant product_variants[] = {
    {.name = "clblast", .workspace = product_workspace, .bind = bind_product}, {0}};
static const cleat_op product_op = {.name = "tiny_product", .infer = infer_product, .variants = product_variants};

cleat_tensor *tiny_product(cleat_graph *graph, cleat_tensor *a, cleat_tensor *b, bool workspace) {
    cleat_tensor *in[] = {a, b};
    cleat_node *node = cleat_emit(graph, &product_op, &workspace, sizeof workspace, in, 2);
    return node ? node->out[0] : NULL;
}

void ok(cleat_status status, const cleat_error *error) {
    if (status) fail_msg("%s", error->text);
}

cleat_device *tiny_open_device(void) {
    cleat_device *device = NULL;
    cleat_error error;
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    setenv("CLEAT_KERNEL_DIR", source_path("tests/exec/cl"), 1);
    cleat_status status = cleat_device_open(selector ? selector : "auto", &device, &error);
    if (!status) return device;
    fprintf(stderr, "%s\n", error.text);
    exit(status == CLEAT_ERR_NO_DEVICE ? 77 : 1);
}
