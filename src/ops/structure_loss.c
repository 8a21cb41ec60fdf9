/* Losses on C1' traces: distances, local distance difference, clashes, bonds, angles, chirality, base pairs
 * (formulas in cl/structure_loss.cl). One op, whose attribute selects the loss. */
#include "ops/structure_loss.h"
#include "cleat/ops.h"
#include "lib/shared_numbers.clh"
#include "ops/lib/shared.h"
#include "ops/lib/trace_loss.h"

#include <string.h>

/* The kernels identify the kinds by the values of the public enum. */
#define SAME_KIND(name) _Static_assert((int)CLEAT_LOSS_##name == LOSS_##name, "the kernels' number of the kind")
SAME_KIND(DISTANCE);
SAME_KIND(LDDT);
SAME_KIND(CLASH);
SAME_KIND(COORDINATE);
SAME_KIND(BOND);
SAME_KIND(ANGLE);
SAME_KIND(CHIRALITY);
SAME_KIND(BASE_PAIR);

typedef cleat_structure_attributes attributes;

static attributes attributes_of(const cleat_node *node) {
    return cleat_structure_attributes_of(node);
}

static bool is_pair_kind(const cleat_node *node) {
    return attributes_of(node).kind <= CLEAT_LOSS_CLASH;
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[STRUCTURE_X], *sample_weight = node->in[STRUCTURE_SAMPLE_WEIGHT];
    int64_t one = 1;
    if (x->rank != 3 || x->shape[2] != 3 || x->dtype != CLEAT_F32) {
        char text[96];
        cleat_tensor_describe(x, text, sizeof text);
        return cleat_infer_fail(node, error, "coordinates are %s; they must be f32 [B, L, 3]", text);
    }
    cleat_status status = cleat_trace_check(node, x, sample_weight, attributes_of(node).term, error);
    if (status == CLEAT_OK) status = cleat_expect(node, STRUCTURE_LENGTHS, "lengths", CLEAT_I32, 1, x->shape, error);
    if (status == CLEAT_OK && node->in[STRUCTURE_REFERENCE])
        status = cleat_expect(node, STRUCTURE_REFERENCE, "reference", CLEAT_F32, 3, x->shape, error);
    if (status == CLEAT_OK && node->in[STRUCTURE_MASK])
        status = cleat_expect(node, STRUCTURE_MASK, "mask", CLEAT_F32, 2, x->shape, error);
    if (status == CLEAT_OK && node->in[STRUCTURE_PARTNER])
        status = cleat_expect(node, STRUCTURE_PARTNER, "partner", CLEAT_I32, 2, x->shape, error);
    if (status == CLEAT_OK) status = cleat_set_output(node, 0, CLEAT_F32, 1, &one, error);
    return status == CLEAT_OK ? cleat_set_output(node, 1, CLEAT_F32, 1, x->shape, error) : status;
}

/* Cost per residue: all of its pairs, or a few neighbours. A pair takes two square roots, and four
 * exponentials for LDDT. */
static cleat_cost cost(const cleat_node *node) {
    const cleat_tensor *x = node->in[STRUCTURE_X];
    double pair = attributes_of(node).kind == CLEAT_LOSS_LDDT ? 620 : 140, rows = (double)(x->shape[0] * x->shape[1]),
           flops = rows * (is_pair_kind(node) ? (double)x->shape[1] * pair : 800);
    return (cleat_cost){.flops = flops, .bytes = (double)(7 * cleat_tensor_bytes(x))};
}

/* --- launches ------------------------------------------------------------------------------------------------- */

static int64_t planes_bytes(const cleat_node *node) {
    return is_pair_kind(node) ? cleat_trace_planes_bytes(node->in[STRUCTURE_X], TRACE_PLANES) : 0;
}

static int64_t workspace(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    return planes_bytes(node) + cleat_trace_rows_bytes(node->in[STRUCTURE_X]);
}

static int64_t workspace_grad(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    return planes_bytes(node);
}

static void start(cleat_binder *binder, const cleat_node *node, const char *kernel) {
    cleat_launch_kernel(binder, node, "structure_loss.cl", kernel, CLEAT_F32);
}

static void launch_pack(cleat_binder *binder, const cleat_node *node) {
    const cleat_tensor *x = node->in[STRUCTURE_X];
    int64_t stride = cleat_trace_stride(x), items = x->shape[0] * stride;
    start(binder, node, "structure_pack");
    for (int i = STRUCTURE_X; i <= STRUCTURE_LENGTHS; ++i) cleat_launch_tensor(binder, node->in[i]);
    cleat_launch_workspace(binder, 0, 4);
    cleat_launch_i32(binder, (int32_t)x->shape[1]);
    cleat_launch_i32(binder, (int32_t)stride);
    cleat_launch_i32(binder, (int32_t)items);
    cleat_launch_items(binder, items);
}

static void launch_pair_rows(cleat_binder *binder, const cleat_node *node) {
    const cleat_tensor *x = node->in[STRUCTURE_X];
    attributes a = attributes_of(node);
    int64_t rows = x->shape[0] * x->shape[1];
    launch_pack(binder, node);
    start(binder, node, "structure_pair_rows");
    cleat_launch_workspace(binder, 0, 4);
    cleat_launch_tensor(binder, node->in[STRUCTURE_LENGTHS]);
    cleat_launch_workspace(binder, planes_bytes(node), 4);
    cleat_launch_i32(binder, (int32_t)x->shape[1]);
    cleat_launch_i32(binder, (int32_t)cleat_trace_stride(x));
    cleat_launch_i32(binder, (int32_t)rows);
    cleat_launch_i32(binder, a.kind);
    cleat_launch_f32(binder, a.p0);
    cleat_launch_groups(binder, rows);
}

static void launch_chain_end(cleat_binder *binder, const cleat_node *node) {
    const cleat_tensor *x = node->in[STRUCTURE_X];
    attributes a = attributes_of(node);
    int64_t rows = x->shape[0] * x->shape[1];
    cleat_launch_i32(binder, (int32_t)x->shape[1]);
    cleat_launch_i32(binder, (int32_t)rows);
    cleat_launch_i32(binder, a.kind);
    cleat_launch_f32(binder, a.p0);
    cleat_launch_f32(binder, a.p1);
    cleat_launch_f32(binder, a.eps);
    cleat_launch_items(binder, rows);
}

/* Computes the term, too, where the last group of a launch can. */
static void launch_chain_rows(cleat_binder *binder, const cleat_node *node) {
    start(binder, node, "structure_chain_rows");
    for (int i = STRUCTURE_X; i <= STRUCTURE_PARTNER; ++i) cleat_launch_tensor(binder, node->in[i]);
    cleat_launch_workspace(binder, 0, 4);
    launch_chain_end(binder, node);
    cleat_trace_launch_sample_weight(binder, node->in[STRUCTURE_X], node->in[STRUCTURE_SAMPLE_WEIGHT],
                                     attributes_of(node).term);
    cleat_launch_tensor(binder, node->out[0]);
    cleat_launch_tensor(binder, node->out[1]);
    cleat_launch_counters(binder, cleat_has_counters(binder->facts, 1));
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    if (is_pair_kind(node))
        launch_pair_rows(binder, node);
    else
        launch_chain_rows(binder, node);
    if (is_pair_kind(node) || !cleat_has_counters(binder->facts, 1))
        cleat_trace_launch_total(binder, node, node->in[STRUCTURE_X], node->in[STRUCTURE_SAMPLE_WEIGHT],
                                 attributes_of(node).term, planes_bytes(node));
}

static void launch_grad_ends(cleat_binder *binder, const cleat_node *node) {
    cleat_trace_launch_sample_weight(binder, node->in[STRUCTURE_X], node->in[STRUCTURE_SAMPLE_WEIGHT],
                                     attributes_of(node).term);
    cleat_launch_tensor(binder, node->in[STRUCTURE_INVERSE]);
    cleat_launch_tensor(binder, node->in[STRUCTURE_DTERM]);
    cleat_launch_tensor(binder, cleat_accum(node, STRUCTURE_GRAD_IN, 0));
    cleat_launch_tensor(binder, node->out[0]);
}

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *x = node->in[STRUCTURE_X];
    if (!is_pair_kind(node)) {
        start(binder, node, "structure_chain_grad");
        for (int i = STRUCTURE_X; i <= STRUCTURE_PARTNER; ++i) cleat_launch_tensor(binder, node->in[i]);
        launch_grad_ends(binder, node);
        launch_chain_end(binder, node);
        return;
    }
    attributes a = attributes_of(node);
    launch_pack(binder, node);
    start(binder, node, "structure_pair_grad");
    cleat_launch_workspace(binder, 0, 4);
    cleat_launch_tensor(binder, node->in[STRUCTURE_LENGTHS]);
    launch_grad_ends(binder, node);
    cleat_launch_i32(binder, (int32_t)x->shape[1]);
    cleat_launch_i32(binder, (int32_t)cleat_trace_stride(x));
    cleat_launch_i32(binder, a.kind);
    cleat_launch_f32(binder, a.p0);
    cleat_launch_groups(binder, x->shape[0] * x->shape[1]);
}

/* --- the op --------------------------------------------------------------------------------------------------- */

static const cleat_variant variants[] = {{.name = "rows", .workspace = workspace, .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "rows", .workspace = workspace_grad, .bind = bind_grad}, {0}};

static const cleat_op structure_loss_grad = {.name = "structure_loss_grad",
                                             .cost = cost,
                                             .variants = grad_variants,
                                             .define = cleat_structure_define_grad,
                                             .inplace_inputs = CLEAT_IN(STRUCTURE_GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *in[STRUCTURE_GRAD_IN];
    memcpy(in, node->in, STRUCTURE_FORWARD_IN * sizeof *in);
    in[STRUCTURE_INVERSE] = node->out[1];
    in[STRUCTURE_DTERM] = dout[0];
    cleat_emit_grads(graph, &(cleat_grads_spec){.op = &structure_loss_grad,
                                                .attr = node->attr,
                                                .attr_bytes = sizeof(attributes),
                                                .in = in,
                                                .n_in = STRUCTURE_GRAD_IN,
                                                .targets = &node->in[STRUCTURE_X],
                                                .n_targets = 1});
}

static const cleat_op structure_loss = {.name = "structure_loss",
                                        .optional_inputs = CLEAT_IN(STRUCTURE_REFERENCE) | CLEAT_IN(STRUCTURE_MASK) |
                                                           CLEAT_IN(STRUCTURE_PARTNER),
                                        .infer = infer,
                                        .backward = backward,
                                        .cost = cost,
                                        .variants = variants,
                                        .define = cleat_structure_define};

cleat_tensor *cleat_structure_loss(cleat_graph *graph, const cleat_structure_loss_spec *spec, cleat_tensor *x,
                                   const cleat_structure *target, cleat_tensor *sample_weight) {
    bool needs_reference = spec->kind == CLEAT_LOSS_DISTANCE || spec->kind == CLEAT_LOSS_LDDT ||
                           spec->kind == CLEAT_LOSS_COORDINATE || spec->kind == CLEAT_LOSS_CHIRALITY;
    if (!target->lengths || (needs_reference && (!target->coords || !target->mask)) ||
        (spec->kind == CLEAT_LOSS_BASE_PAIR && !target->partner)) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "structure loss %d requires a target", (int)spec->kind);
        return NULL;
    }
    attributes a = {.kind = spec->kind, .term = spec->term, .p0 = spec->lower, .p1 = spec->upper, .eps = spec->eps};
    cleat_tensor *in[STRUCTURE_FORWARD_IN] = {
        x, target->coords, target->mask, target->lengths, target->partner, sample_weight};
    cleat_node *node = cleat_emit(graph, &structure_loss, &a, sizeof a, in, STRUCTURE_FORWARD_IN);
    return node ? node->out[0] : NULL;
}
