/* Learned position embeddings, added to x. The gradient of x is dy; the table's gradient is summed over the
 * samples in a fixed order. */
#include "cleat/ops.h"
#include "lib/shared_numbers.clh"
#include "ops/lib/count.h"
#include "ops/lib/define.h"
#include "ops/lib/rows.h"
#include "ops/lib/shared.h"

typedef struct position_attr {
    int64_t first; /* row of the table that position 0 gets */
} position_attr;

enum { MAX_SAMPLE = 1 << 30 };

enum { X, TABLE, FORWARD_IN };

static int64_t first_of(const cleat_node *node) {
    return ((const position_attr *)node->attr)->first;
}

/* Elements of a sample [L, D]. */
static int64_t sample_of(const cleat_tensor *x) {
    return x->shape[x->rank - 2] * cleat_width(x);
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[X], *table = node->in[TABLE];
    const int64_t first = first_of(node);
    if (!cleat_is_storage(x->dtype) || x->rank < 2)
        return cleat_infer_fail(node, error, "x is %s, it must be f32, f16 or bf16 [..., L, D]", CLEAT_DESCRIBED(x));
    if (table->dtype != CLEAT_F32 || table->rank != 2 || cleat_width(table) != cleat_width(x))
        return cleat_infer_fail(node, error, "the table is %s, it must be f32 [P, %lld] as x is %s",
                                CLEAT_DESCRIBED(table), (long long)cleat_width(x), CLEAT_DESCRIBED(x));
    if (first < 0 || first >= table->shape[0])
        return cleat_infer_fail(node, error, "the first position gets row %lld of the table, which is %s",
                                (long long)first, CLEAT_DESCRIBED(table));
    if (sample_of(x) > MAX_SAMPLE || cleat_rows(x) > MAX_SAMPLE)
        return cleat_infer_fail(node, error, "x is %s: at most 2^30 elements of a sample, and 2^30 rows",
                                CLEAT_DESCRIBED(x));
    return cleat_set_output(node, 0, x->dtype, x->rank, x->shape, error);
}

static cleat_cost cost(const cleat_node *node) {
    return (cleat_cost){.flops = (double)cleat_tensor_elements(node->in[X]),
                        .bytes = 2.0 * (double)cleat_tensor_bytes(node->in[X]) + 4.0 * (double)sample_of(node->in[X])};
}

/* Elements of a sample [L, D] that have a row in the table [P, D]. */
static int64_t used_of(const cleat_tensor *x, const cleat_tensor *table, int64_t first) {
    return min(x->shape[x->rank - 2], table->shape[0] - first) * cleat_width(x);
}

static int64_t vectors_of(int64_t elements, const cleat_device_facts *facts) {
    return ceil_div(elements, facts->vector_width);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *x = node->in[X];
    cleat_launch_vector_kernel(binder, node, "position_embedding.cl", "position_embedding_forward", x->dtype,
                               cleat_width(x));
    cleat_launch_tensor(binder, x);
    cleat_launch_tensor_at(binder, node->in[TABLE], first_of(node) * cleat_width(x));
    cleat_launch_tensor(binder, node->out[0]);
    CLEAT_LAUNCH_I32(binder, {"batch", cleat_tensor_elements(x) / sample_of(x)}, {"sample", sample_of(x)},
                     {"used", used_of(x, node->in[TABLE], first_of(node))});
    if (binder->facts->work_group > 1)
        cleat_launch_runs(binder, cleat_tensor_elements(x) / sample_of(x), sample_of(x));
    else /* a work-item adds its part of the table to all samples */
        cleat_launch_items(binder, vectors_of(sample_of(x), binder->facts));
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_tensor *x = node->in[X];
    const int64_t at = element % sample_of(x);
    cleat_expected_value sum = cleat_define_begin(values, X, element);
    if (at < used_of(x, node->in[TABLE], first_of(node)))
        cleat_define_add(&sum, cleat_host_value(values, TABLE, first_of(node) * cleat_width(x) + at));
    return sum;
}

static const cleat_variant variants[] = {{.name = "rows", .bind = bind}, {0}};

/* --- gradient of the table: in = {dy, accum}, out = {dtable} -------------------------------------------------- */

enum { G_DY, GRAD_IN };

/* Unused rows keep their values: the gradient accumulates in place, or all rows are used. */
static cleat_status infer_grad(cleat_node *node, cleat_error *error) {
    const cleat_tensor *dy = node->in[G_DY], *dtable = node->out[0];
    if (cleat_width(dy) == cleat_width(dtable) &&
        (cleat_accum(node, GRAD_IN, 0) == dtable ||
         used_of(dy, dtable, first_of(node)) == cleat_tensor_elements(dtable)))
        return CLEAT_OK;
    return cleat_infer_fail(node, error, "a table with rows that no position has must be a parameter");
}

static cleat_cost grad_cost(const cleat_node *node) {
    const cleat_tensor *dy = node->in[G_DY];
    return (cleat_cost){.flops = (double)cleat_tensor_elements(dy),
                        .bytes = (double)cleat_tensor_bytes(dy) + 8.0 * (double)sample_of(dy)};
}

typedef struct grad_sizes {
    int64_t batch, sample, used, parts; /* parts: of the samples, summed in parallel */
} grad_sizes;

enum { MIN_PART = 32, MIN_PART_GPU = 8, MAX_PARTS = 512 };

/* Many samples of few elements are summed in parts to occupy all work-items. */
static grad_sizes sizes_of(const cleat_node *node, const cleat_device_facts *facts) {
    const cleat_tensor *dy = node->in[G_DY];
    const int64_t sample = sample_of(dy), used = used_of(dy, node->out[0], first_of(node));
    grad_sizes s = {.batch = cleat_tensor_elements(dy) / sample, .sample = sample, .used = used};
    const int64_t wanted = 8 * units_of(facts) * facts->work_group / vectors_of(used, facts);
    s.parts = min(min(wanted, ceil_div(s.batch, facts->work_group > 1 ? MIN_PART_GPU : MIN_PART)), MAX_PARTS);
    if (s.parts < 1) s.parts = 1;
    return s;
}

static int64_t workspace(const cleat_node *node, const cleat_device_facts *facts) {
    const grad_sizes s = sizes_of(node, facts);
    return s.parts > 1 ? s.parts * s.used * (int64_t)sizeof(float) : 0;
}

/* The used rows of the accumulator, if there is one, and of the gradient. */
static void launch_accum(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *accum = cleat_accum(node, GRAD_IN, 0);
    const int64_t at = first_of(node) * cleat_width(node->out[0]);
    if (accum)
        cleat_launch_tensor_at(binder, accum, at);
    else
        cleat_launch_tensor(binder, NULL);
}

static void launch_table(const cleat_node *node, cleat_binder *binder) {
    cleat_launch_tensor_at(binder, node->out[0], first_of(node) * cleat_width(node->out[0]));
}

static void bind_total(const cleat_node *node, cleat_binder *binder, grad_sizes s) {
    cleat_launch_vector_kernel(binder, node, "position_embedding.cl", "position_embedding_total", node->in[G_DY]->dtype,
                               cleat_width(node->in[G_DY]));
    cleat_launch_workspace(binder, 0, sizeof(float));
    launch_accum(node, binder);
    launch_table(node, binder);
    CLEAT_LAUNCH_I32(binder, {"used", s.used}, {"parts", s.parts});
    if (binder->facts->work_group > 1)
        cleat_launch_groups(binder, ceil_div(s.used, min(binder->facts->work_group, TOTAL_COLUMNS)));
    else
        cleat_launch_items(binder, vectors_of(s.used, binder->facts));
}

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *dy = node->in[G_DY];
    const grad_sizes s = sizes_of(node, binder->facts);
    cleat_launch_vector_kernel(binder, node, "position_embedding.cl", "position_embedding_backward", dy->dtype,
                               cleat_width(dy));
    cleat_launch_tensor(binder, dy);
    if (s.parts > 1) {
        cleat_launch_tensor(binder, NULL);
        cleat_launch_workspace(binder, 0, sizeof(float));
    } else {
        launch_accum(node, binder);
        launch_table(node, binder);
    }
    CLEAT_LAUNCH_I32(binder, {"batch", s.batch}, {"sample", s.sample}, {"used", s.used}, {"parts", s.parts},
                     {"each", ceil_div(s.batch, s.parts)});
    cleat_launch_items(binder, s.parts * vectors_of(s.used, binder->facts));
    if (s.parts > 1) bind_total(node, binder, s);
}

static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_tensor *dy = node->in[G_DY];
    const int64_t sample = sample_of(dy), at = element - first_of(node) * cleat_width(dy);
    cleat_expected_value sum = cleat_define_begin(values, GRAD_IN + values->output, element);
    for (int64_t i = at; at >= 0 && at < sample && i < cleat_tensor_elements(dy); i += sample)
        cleat_define_add(&sum, cleat_host_value(values, G_DY, i));
    values->work += (double)(cleat_tensor_elements(dy) / sample);
    return sum;
}

static const cleat_variant grad_variants[] = {{.name = "rows", .workspace = workspace, .bind = bind_grad}, {0}};

static const cleat_op position_embedding_grad = {.name = "position_embedding_grad",
                                                 .infer = infer_grad,
                                                 .cost = grad_cost,
                                                 .variants = grad_variants,
                                                 .define = define_grad};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_pass_grad(graph, node->in[X], dout[0]);
    cleat_tensor *in[GRAD_IN] = {[G_DY] = dout[0]};
    cleat_emit_grads_of(graph, node, &position_embedding_grad, in, GRAD_IN, &node->in[TABLE], 1);
}

static const cleat_attribute attributes[] = {CLEAT_ATTRIBUTE(position_attr, first, CLEAT_ATTRIBUTE_I64),
                                             {.name = NULL}};

static const cleat_op position_embedding = {.name = "position_embedding",
                                            .infer = infer,
                                            .backward = backward,
                                            .cost = cost,
                                            .variants = variants,
                                            .define = define,
                                            .inplace_inputs = CLEAT_IN(X),
                                            .autocast_inputs = CLEAT_IN(X),
                                            .attributes = attributes};

cleat_tensor *cleat_position_embedding(cleat_graph *graph, cleat_tensor *x, cleat_tensor *table, int64_t first) {
    cleat_tensor *in[FORWARD_IN] = {[X] = x, [TABLE] = table};
    const position_attr attr = {first};
    return cleat_first_output(cleat_emit(graph, &position_embedding, &attr, sizeof attr, in, FORWARD_IN));
}
