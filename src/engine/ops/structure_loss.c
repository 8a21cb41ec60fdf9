/* Losses on C1' traces: distances, local distance difference, clashes, bonds, angles, chirality, base pairs
 * (formulas in cl/structure_loss.cl). One op, whose attributes select the loss; losses of neighbours along
 * the chain, which take one pass over the residues, share a node. */
#include "ops/structure_loss.h"
#include "cleat/ops.h"
#include "lib/shared_numbers.clh"
#include "ops/lib/count.h"
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

static bool is_pairs(int kind) {
    return kind <= CLEAT_LOSS_CLASH;
}

static bool is_pair_node(const cleat_node *node) {
    return is_pairs(cleat_structure_terms_of(node).of[0].kind);
}

static int count_of(const cleat_node *node) {
    const cleat_structure_terms terms = cleat_structure_terms_of(node);
    return cleat_structure_term_count(&terms);
}

/* Kernels count the residues of all terms with 32 bits. */
static cleat_status check_terms(const cleat_node *node, cleat_error *error) {
    const cleat_structure_terms terms = cleat_structure_terms_of(node);
    const cleat_tensor *x = node->in[STRUCTURE_X];
    const int count = cleat_structure_term_count(&terms);
    for (int i = 0; i < count; ++i) {
        cleat_status status = cleat_trace_check(node, x, node->in[STRUCTURE_SAMPLE_WEIGHT], terms.of[i].row, error);
        if (status) return status;
    }
    if (x->shape[0] * x->shape[1] <= CLEAT_MAX_ROWS / count) return CLEAT_OK;
    return cleat_infer_fail(node, error,
                            "%lld chains of length %lld: at most 2^30 residues, counted once for each of %d terms",
                            (long long)x->shape[0], (long long)x->shape[1], count);
}

static cleat_status set_outputs(cleat_node *node, cleat_error *error) {
    const int count = count_of(node);
    const int64_t one = 1, inverse[2] = {count, node->in[STRUCTURE_X]->shape[0]};
    for (int i = 0; i < count; ++i) {
        cleat_status status = cleat_set_output(node, i, CLEAT_F32, 1, &one, error);
        if (status) return status;
    }
    return cleat_set_output(node, count, CLEAT_F32, 2, inverse, error);
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[STRUCTURE_X];
    if (x->rank != 3 || x->shape[2] != 3 || x->dtype != CLEAT_F32)
        return cleat_infer_fail(node, error, "coordinates are %s; they must be f32 [B, L, 3]", CLEAT_DESCRIBED(x));
    cleat_status status = check_terms(node, error);
    if (!status) status = cleat_expect(node, STRUCTURE_LENGTHS, "lengths", CLEAT_I32, 1, x->shape, error);
    if (!status && node->in[STRUCTURE_REFERENCE])
        status = cleat_expect(node, STRUCTURE_REFERENCE, "reference", CLEAT_F32, 3, x->shape, error);
    if (!status && node->in[STRUCTURE_MASK])
        status = cleat_expect(node, STRUCTURE_MASK, "mask", CLEAT_F32, 2, x->shape, error);
    if (!status && node->in[STRUCTURE_PARTNER])
        status = cleat_expect(node, STRUCTURE_PARTNER, "partner", CLEAT_I32, 2, x->shape, error);
    return status ? status : set_outputs(node, error);
}

/* Cost per residue: all of its pairs, or a few neighbours. A pair takes two square roots, and four
 * exponentials for LDDT. */
static cleat_cost cost(const cleat_node *node) {
    const cleat_tensor *x = node->in[STRUCTURE_X];
    double pair = cleat_structure_terms_of(node).of[0].kind == CLEAT_LOSS_LDDT ? 620 : 140,
           rows = (double)(x->shape[0] * x->shape[1]),
           flops = rows * (is_pair_node(node) ? (double)x->shape[1] * pair : 800 * count_of(node));
    return (cleat_cost){.flops = flops, .bytes = (double)(7 * cleat_tensor_bytes(x))};
}

/* --- launches ------------------------------------------------------------------------------------------------- */

static int64_t planes_bytes(const cleat_node *node) {
    return is_pair_node(node) ? cleat_trace_planes_bytes(node->in[STRUCTURE_X], TRACE_PLANES) : 0;
}

static int64_t workspace(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    return planes_bytes(node) + count_of(node) * cleat_trace_rows_bytes(node->in[STRUCTURE_X]);
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
    CLEAT_LAUNCH_I32(binder, {"L", x->shape[1]}, {"stride", stride}, {"n", items});
    cleat_launch_items(binder, items);
}

static void launch_pair_rows(cleat_binder *binder, const cleat_node *node) {
    const cleat_tensor *x = node->in[STRUCTURE_X];
    cleat_structure_term term = cleat_structure_terms_of(node).of[0];
    int64_t rows = x->shape[0] * x->shape[1];
    launch_pack(binder, node);
    start(binder, node, "structure_pair_rows");
    cleat_launch_workspace(binder, 0, 4);
    cleat_launch_tensor(binder, node->in[STRUCTURE_LENGTHS]);
    cleat_launch_workspace(binder, planes_bytes(node), 4);
    CLEAT_LAUNCH_I32(binder, {"L", x->shape[1]}, {"stride", cleat_trace_stride(x)}, {"n", rows}, {"kind", term.kind});
    cleat_launch_f32(binder, "p0", term.p0);
    cleat_launch_groups(binder, rows);
}

static void begin_chain(cleat_binder *binder, const cleat_node *node, const char *kernel) {
    static const char *const names[CLEAT_TRACE_TERMS][5] = {{"weight_a", "kind_a", "p0_a", "p1_a", "eps_a"},
                                                            {"weight_b", "kind_b", "p0_b", "p1_b", "eps_b"},
                                                            {"weight_c", "kind_c", "p0_c", "p1_c", "eps_c"},
                                                            {"weight_d", "kind_d", "p0_d", "p1_d", "eps_d"}};
    const cleat_tensor *x = node->in[STRUCTURE_X];
    const cleat_structure_terms terms = cleat_structure_terms_of(node);
    start(binder, node, kernel);
    for (int i = STRUCTURE_X; i <= STRUCTURE_PARTNER; ++i) cleat_launch_tensor(binder, node->in[i]);
    cleat_launch_i32(binder, "terms", count_of(node));
    for (int i = 0; i < CLEAT_TRACE_TERMS; ++i) {
        CLEAT_LAUNCH_I32(binder, {names[i][0], terms.of[i].row}, {names[i][1], terms.of[i].kind});
        cleat_launch_f32(binder, names[i][2], terms.of[i].p0);
        cleat_launch_f32(binder, names[i][3], terms.of[i].p1);
        cleat_launch_f32(binder, names[i][4], terms.of[i].eps);
    }
    CLEAT_LAUNCH_I32(binder, {"B", x->shape[0]}, {"L", x->shape[1]});
}

/* Also computes the terms if the last group of a launch can. */
static void launch_chain_rows(cleat_binder *binder, const cleat_node *node) {
    const cleat_tensor *x = node->in[STRUCTURE_X];
    begin_chain(binder, node, "structure_chain_rows");
    cleat_launch_workspace(binder, 0, 4);
    cleat_launch_tensor(binder, node->in[STRUCTURE_SAMPLE_WEIGHT]);
    cleat_trace_launch_tensors(binder, node->out, count_of(node));
    cleat_launch_tensor(binder, node->out[count_of(node)]);
    cleat_launch_counters(binder, cleat_has_counters(binder->facts, 1));
    cleat_launch_items(binder, count_of(node) * x->shape[0] * x->shape[1]);
}

static void launch_total(cleat_binder *binder, const cleat_node *node) {
    const cleat_structure_terms terms = cleat_structure_terms_of(node);
    int32_t rows[CLEAT_TRACE_TERMS];
    for (int i = 0; i < CLEAT_TRACE_TERMS; ++i) rows[i] = terms.of[i].row;
    cleat_trace_launch_total(binder, node, node->in[STRUCTURE_X], node->in[STRUCTURE_SAMPLE_WEIGHT], rows,
                             count_of(node), planes_bytes(node));
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    if (is_pair_node(node))
        launch_pair_rows(binder, node);
    else
        launch_chain_rows(binder, node);
    if (is_pair_node(node) || !cleat_has_counters(binder->facts, 1)) launch_total(binder, node);
}

static void launch_chain_grad(cleat_binder *binder, const cleat_node *node) {
    const cleat_tensor *x = node->in[STRUCTURE_X];
    begin_chain(binder, node, "structure_chain_grad");
    CLEAT_LAUNCH_TENSORS(binder, node->in[STRUCTURE_SAMPLE_WEIGHT], node->in[STRUCTURE_INVERSE]);
    cleat_trace_launch_tensors(binder, &node->in[STRUCTURE_DTERM], CLEAT_TRACE_TERMS);
    CLEAT_LAUNCH_TENSORS(binder, cleat_accum(node, STRUCTURE_GRAD_IN, 0), node->out[0]);
    cleat_launch_items(binder, x->shape[0] * x->shape[1]);
}

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *x = node->in[STRUCTURE_X];
    if (!is_pair_node(node)) {
        launch_chain_grad(binder, node);
        return;
    }
    cleat_structure_term term = cleat_structure_terms_of(node).of[0];
    launch_pack(binder, node);
    start(binder, node, "structure_pair_grad");
    cleat_launch_workspace(binder, 0, 4);
    cleat_launch_tensor(binder, node->in[STRUCTURE_LENGTHS]);
    cleat_trace_launch_sample_weight(binder, x, node->in[STRUCTURE_SAMPLE_WEIGHT], term.row);
    CLEAT_LAUNCH_TENSORS(binder, node->in[STRUCTURE_INVERSE], node->in[STRUCTURE_DTERM],
                         cleat_accum(node, STRUCTURE_GRAD_IN, 0), node->out[0]);
    CLEAT_LAUNCH_I32(binder, {"L", x->shape[1]}, {"stride", cleat_trace_stride(x)}, {"kind", term.kind});
    cleat_launch_f32(binder, "p0", term.p0);
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
    cleat_tensor *in[STRUCTURE_GRAD_IN] = {NULL};
    const cleat_structure_terms terms = cleat_structure_terms_of(node);
    const int count = cleat_structure_term_count(&terms);
    memcpy(in, node->in, STRUCTURE_FORWARD_IN * sizeof *in);
    in[STRUCTURE_INVERSE] = node->out[count];
    memcpy(in + STRUCTURE_DTERM, dout, (size_t)count * sizeof *in);
    cleat_emit_grads_of(graph, node, &structure_loss_grad, in, STRUCTURE_GRAD_IN, &node->in[STRUCTURE_X], 1);
}

static const cleat_op structure_loss = {.name = "structure_loss",
                                        .optional_inputs = CLEAT_IN(STRUCTURE_REFERENCE) | CLEAT_IN(STRUCTURE_MASK) |
                                                           CLEAT_IN(STRUCTURE_PARTNER),
                                        .infer = infer,
                                        .backward = backward,
                                        .cost = cost,
                                        .variants = variants,
                                        .define = cleat_structure_define};

/* --- building ------------------------------------------------------------------------------------------------- */

static bool has_target(const cleat_structure_loss_spec *spec, const cleat_structure *target) {
    bool needs_reference = spec->kind == CLEAT_LOSS_DISTANCE || spec->kind == CLEAT_LOSS_LDDT ||
                           spec->kind == CLEAT_LOSS_COORDINATE || spec->kind == CLEAT_LOSS_CHIRALITY;
    return target->lengths && (!needs_reference || (target->coords && target->mask)) &&
           (spec->kind != CLEAT_LOSS_BASE_PAIR || target->partner);
}

static bool check_spec(cleat_graph *graph, const cleat_structure_loss_spec *spec, const cleat_structure *target) {
    if (!has_target(spec, target)) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "structure loss %d requires a target", (int)spec->kind);
        return false;
    }
    if (spec->term >= 0 && spec->term <= INT16_MAX) return true;
    cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "structure loss %d: term %d; it must be from 0 to %d", (int)spec->kind,
                     spec->term, INT16_MAX);
    return false;
}

/* How many of the first specs one node computes. */
static int node_terms(const cleat_structure_loss_spec *specs, int count) {
    int found = 1;
    if (is_pairs(specs[0].kind)) return 1;
    while (found < count && found < CLEAT_TRACE_TERMS && !is_pairs(specs[found].kind)) ++found;
    return found;
}

static cleat_node *emit_terms(cleat_graph *graph, const cleat_structure_loss_spec *specs, int count, cleat_tensor *x,
                              const cleat_structure *target, cleat_tensor *sample_weight) {
    cleat_structure_terms terms;
    for (int i = 0; i < CLEAT_TRACE_TERMS; ++i)
        terms.of[i] = i < count ? (cleat_structure_term){.kind = (int16_t)specs[i].kind,
                                                         .row = (int16_t)specs[i].term,
                                                         .p0 = specs[i].lower,
                                                         .p1 = specs[i].upper,
                                                         .eps = specs[i].eps}
                                : (cleat_structure_term){.kind = CLEAT_NO_STRUCTURE_TERM};
    cleat_tensor *in[STRUCTURE_FORWARD_IN] = {
        x, target->coords, target->mask, target->lengths, target->partner, sample_weight};
    return cleat_emit(graph, &structure_loss, &terms, sizeof terms, in, STRUCTURE_FORWARD_IN);
}

void cleat_structure_losses(cleat_graph *graph, const cleat_structure_loss_spec *specs, int count, cleat_tensor *x,
                            const cleat_structure *target, cleat_tensor *sample_weight, cleat_tensor **values) {
    for (int i = 0; i < count; ++i) values[i] = NULL;
    for (int i = 0; i < count; ++i)
        if (!check_spec(graph, &specs[i], target)) return;
    for (int first = 0, found; first < count; first += found) {
        found = node_terms(specs + first, count - first);
        cleat_node *node = emit_terms(graph, specs + first, found, x, target, sample_weight);
        for (int i = 0; node && i < found; ++i) values[first + i] = node->out[i];
    }
}

cleat_tensor *cleat_structure_loss(cleat_graph *graph, const cleat_structure_loss_spec *spec, cleat_tensor *x,
                                   const cleat_structure *target, cleat_tensor *sample_weight) {
    cleat_tensor *value;
    cleat_structure_losses(graph, spec, 1, x, target, sample_weight, &value);
    return value;
}
