/* Embedding lookup: table rows selected by tokens. The table's gradient is summed in a fixed order
 * (cl/embedding.cl describes the algorithms). */
#include "cleat/ops.h"
#include "lib/shared_numbers.clh"
#include "ops/fusible.h"
#include "ops/lib/count.h"
#include "ops/lib/define.h"
#include "ops/lib/shared.h"

typedef struct embedding_attr {
    cleat_dtype storage;
    int32_t padding; /* row without a gradient; -1: none */
} embedding_attr;

/* ADDED_ALONE: bytes of partial sums that one group adds faster than a second launch takes. */
enum { FEW = 8, MAX_UNITS = 1 << 30, ADDED_ALONE = 256 << 10 };

/* With positional encodings there is a third input, which may be NULL. */
enum { TOKENS, TABLE, FORWARD_IN, LENGTHS = FORWARD_IN, POSITIONAL_IN };

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *tokens = node->in[TOKENS], *table = node->in[TABLE];
    cleat_dtype storage = ((const embedding_attr *)node->attr)->storage;
    if (tokens->dtype != CLEAT_I32 || (table->dtype != CLEAT_F32 && table->dtype != storage) || table->rank != 2 ||
        tokens->rank >= CLEAT_MAX_RANK || !cleat_is_storage(storage))
        return cleat_infer_fail(node, error, "tokens are %s, they must be i32; the table is %s, it must be f32 [V, D]",
                                CLEAT_DESCRIBED(tokens), CLEAT_DESCRIBED(table));
    int64_t elements = cleat_tensor_elements(tokens) * table->shape[1];
    if (elements > MAX_UNITS || table->shape[0] * table->shape[1] > MAX_UNITS)
        return cleat_infer_fail(node, error, "more than 2^30 elements in the table or the output");
    int64_t shape[CLEAT_MAX_RANK];
    for (int i = 0; i < tokens->rank; ++i) shape[i] = tokens->shape[i];
    shape[tokens->rank] = table->shape[1];
    return cleat_set_output(node, 0, storage, tokens->rank + 1, shape, error);
}

static cleat_cost cost(const cleat_node *node) {
    return (cleat_cost){.bytes = 4.0 * (double)cleat_tensor_elements(node->in[TOKENS]) +
                                 2.0 * (double)cleat_tensor_bytes(node->out[0])};
}

static void bind_forward(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *tokens = node->in[TOKENS], *table = node->in[TABLE], *y = node->out[0];
    int64_t n = cleat_tensor_elements(tokens), width = cleat_width(table), vector_width = binder->facts->vector_width;
    cleat_launch_vector_kernel(binder, node, "embedding.cl", "embedding_forward", y->dtype, width);
    cleat_launch_table(binder, table);
    CLEAT_LAUNCH_TENSORS(binder, tokens, table, y);
    CLEAT_LAUNCH_I32(binder, {"n", n}, {"width", width}, {"vocabulary", table->shape[0]});
    cleat_launch_items(binder, n * ((width + vector_width - 1) / vector_width));
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t width = cleat_width(node->in[TABLE]), token = values->in[TOKENS].i[element / width];
    if (token < 0 || token >= node->in[TABLE]->shape[0]) return (cleat_expected_value){.value = 0};
    return cleat_define_begin(values, TABLE, token * width + element % width);
}

static const cleat_variant forward_variants[] = {{.name = "rows", .bind = bind_forward}, {0}};

/* --- with positional encodings -------------------------------------------------------------------------------- */

static cleat_cost cost_positional(const cleat_node *node) {
    return (cleat_cost){.flops = (double)cleat_tensor_elements(node->out[0]) * (node->in[LENGTHS] ? 400 : 1),
                        .bytes = cost(node).bytes};
}

static void bind_positional(const cleat_node *node, cleat_binder *binder) {
    cleat_launch_embedded_positions(binder, node, node->in[TOKENS], node->in[TABLE], node->in[LENGTHS]);
}

static const cleat_variant positional_variants[] = {
    {.name = "waves", .refuse = cleat_positional_refuse, .bind = bind_positional}, {0}};
static cleat_expected_value define_positional(const cleat_node *node, cleat_host_values *values, int64_t element) {
    cleat_expected_value sum = define(node, values, element);
    cleat_define_add(&sum, cleat_positional_value(node->out[0], values->in[LENGTHS].i, element));
    return sum;
}

static const cleat_op embedding_positional = {.name = "embedding_positional",
                                              .cost = cost_positional,
                                              .define = define_positional,
                                              .variants = positional_variants};

/* y = the row + the encoding, which is rounded once if rows are halves. */
static bool fuse_positions(cleat_node *node, const cleat_node *consumer, bool sole_consumer) {
    if (consumer->op != &cleat_positional_encoding_op || !sole_consumer) return false;
    node->op = &embedding_positional;
    node->in[LENGTHS] = consumer->in[CLEAT_POSITIONAL_LENGTHS];
    node->n_in = POSITIONAL_IN;
    node->out[0] = consumer->out[0];
    return true;
}

/* --- gradient: in = {dy, tokens, dtable}, out = {dtable} ------------------------------------------------------ */

enum { G_DY, G_TOKENS, GRAD_IN };

typedef struct sizes {
    int64_t n, vocabulary, width, vectors; /* vectors: per row */
} sizes;

static int32_t padding_of(const cleat_node *node) {
    return ((const embedding_attr *)node->attr)->padding;
}

static sizes sizes_of(const cleat_node *node, const cleat_device_facts *facts) {
    const cleat_tensor *dtable = node->out[0];
    sizes s = {cleat_tensor_elements(node->in[G_TOKENS]), dtable->shape[0], dtable->shape[1], 0};
    s.vectors = (s.width + facts->vector_width - 1) / facts->vector_width;
    return s;
}

static cleat_status infer_grad(cleat_node *node, cleat_error *error) {
    const cleat_tensor *dy = node->in[G_DY], *dtable = node->out[0];
    if (cleat_accum(node, GRAD_IN, 0) == dtable && cleat_width(dy) == dtable->shape[1] &&
        cleat_rows(dy) == cleat_tensor_elements(node->in[G_TOKENS]))
        return CLEAT_OK;
    return cleat_infer_fail(node, error, "the table must be a parameter (its gradient accumulates in place)");
}

static cleat_cost grad_cost(const cleat_node *node) {
    double elements = (double)cleat_tensor_elements(node->in[G_DY]);
    return (cleat_cost){.flops = elements,
                        .bytes = (double)cleat_tensor_bytes(node->in[G_DY]) +
                                 2.0 * (double)cleat_tensor_bytes(node->out[0])};
}

/* Small vocabularies: positions are split into parts that are summed in parallel. */
static const char *refuse_few(const cleat_node *node, const cleat_device_facts *facts) {
    (void)facts;
    return node->out[0]->shape[0] > FEW ? "more than 8 different tokens" : NULL;
}

static int64_t parts_of(sizes s, const cleat_device_facts *facts) {
    int64_t units = units_of(facts);
    int64_t wanted = facts->work_group == 1 ? 8 * units : 8 * units * facts->work_group / s.vectors;
    /* At least 32 positions per part; otherwise the final sums cost more than the parts. */
    wanted = min(wanted, ceil_div(s.n, 32));
    if (wanted > 512) wanted = 512;
    return wanted > 0 ? wanted : 1;
}

static int64_t workspace_few(const cleat_node *node, const cleat_device_facts *facts) {
    sizes s = sizes_of(node, facts);
    return parts_of(s, facts) * s.vocabulary * s.width * (int64_t)sizeof(float);
}

static void bind_few(const cleat_node *node, cleat_binder *binder) {
    sizes s = sizes_of(node, binder->facts);
    int64_t parts = parts_of(s, binder->facts), length = (s.n + parts - 1) / parts;
    const bool one_launch = cleat_has_counters(binder->facts, 1) && workspace_few(node, binder->facts) <= ADDED_ALONE;
    cleat_launch_vector_kernel(binder, node, "embedding.cl", "embedding_few_partial", node->in[G_DY]->dtype, s.width);
    cleat_launch_define(binder, "VOCABULARY", s.vocabulary);
    CLEAT_LAUNCH_TENSORS(binder, node->in[G_TOKENS], node->in[G_DY]);
    cleat_launch_workspace(binder, 0, sizeof(float));
    CLEAT_LAUNCH_I32(binder, {"n", s.n}, {"width", s.width}, {"parts", parts}, {"length", length},
                     {"padding", padding_of(node)});
    cleat_launch_tensor(binder, node->out[0]);
    cleat_launch_counters(binder, one_launch);
    cleat_launch_items(binder, parts * s.vectors);
    if (one_launch) return;
    cleat_launch_vector_kernel(binder, node, "embedding.cl", "embedding_few_total", node->in[G_DY]->dtype, s.width);
    cleat_launch_define(binder, "VOCABULARY", s.vocabulary);
    cleat_launch_workspace(binder, 0, sizeof(float));
    cleat_launch_tensor(binder, node->out[0]);
    CLEAT_LAUNCH_I32(binder, {"parts", parts}, {"width", s.width});
    if (binder->facts->work_group > 1)
        cleat_launch_groups(binder, ceil_div(s.vocabulary * s.width, min(binder->facts->work_group, TOTAL_COLUMNS)));
    else
        cleat_launch_items(binder, s.vocabulary * s.vectors);
}

static const char *refuse_chain(const cleat_node *node, const cleat_device_facts *facts) {
    (void)node;
    return facts->work_group > 1 ? "a single GPU work-item is too slow to link the positions" : NULL;
}

static int64_t workspace_chain(const cleat_node *node, const cleat_device_facts *facts) {
    sizes s = sizes_of(node, facts);
    return (s.vocabulary + s.n) * (int64_t)sizeof(int32_t);
}

static void bind_chain(const cleat_node *node, cleat_binder *binder) {
    sizes s = sizes_of(node, binder->facts);
    int64_t next = s.vocabulary * (int64_t)sizeof(int32_t);
    cleat_launch_vector_kernel(binder, node, "embedding.cl", "embedding_chain", node->in[G_DY]->dtype, s.width);
    cleat_launch_tensor(binder, node->in[G_TOKENS]);
    cleat_launch_workspace(binder, 0, sizeof(int32_t));
    cleat_launch_workspace(binder, next, sizeof(int32_t));
    CLEAT_LAUNCH_I32(binder, {"n", s.n}, {"vocabulary", s.vocabulary}, {"padding", padding_of(node)});
    cleat_launch_groups(binder, 1);
    cleat_launch_vector_kernel(binder, node, "embedding.cl", "embedding_walk", node->in[G_DY]->dtype, s.width);
    cleat_launch_needs_values(binder); /* a list of zeros has no end */
    cleat_launch_workspace(binder, 0, sizeof(int32_t));
    cleat_launch_workspace(binder, next, sizeof(int32_t));
    CLEAT_LAUNCH_TENSORS(binder, node->in[G_DY], node->out[0]);
    CLEAT_LAUNCH_I32(binder, {"width", s.width}, {"vocabulary", s.vocabulary});
    cleat_launch_items(binder, s.vocabulary * (ceil_div(s.vectors, EMBEDDING_STRIPE)));
}

static void bind_gather(const cleat_node *node, cleat_binder *binder) {
    sizes s = sizes_of(node, binder->facts);
    cleat_launch_vector_kernel(binder, node, "embedding.cl", "embedding_gather", node->in[G_DY]->dtype, s.width);
    CLEAT_LAUNCH_TENSORS(binder, node->in[G_TOKENS], node->in[G_DY], node->out[0]);
    CLEAT_LAUNCH_I32(binder, {"n", s.n}, {"width", s.width}, {"vocabulary", s.vocabulary},
                     {"padding", padding_of(node)});
    cleat_launch_groups(binder, s.n);
}

static const cleat_variant grad_variants[] = {
    {.name = "few", .refuse = refuse_few, .workspace = workspace_few, .bind = bind_few},
    {.name = "chain", .refuse = refuse_chain, .workspace = workspace_chain, .bind = bind_chain},
    {.name = "gather", .bind = bind_gather},
    {0}};

static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t width = cleat_width(node->out[0]), token = element / width;
    const int64_t count = token == padding_of(node) ? 0 : cleat_tensor_elements(node->in[G_TOKENS]);
    cleat_expected_value sum = cleat_define_begin(values, GRAD_IN + values->output, element);
    for (int64_t i = 0; i < count; ++i)
        if (values->in[G_TOKENS].i[i] == token)
            cleat_define_add(&sum, cleat_host_value(values, G_DY, i * width + element % width));
    values->work += (double)count;
    return sum;
}

static const cleat_op embedding_grad = {.name = "embedding_grad",
                                        .infer = infer_grad,
                                        .cost = grad_cost,
                                        .variants = grad_variants,
                                        .define = define_grad,
                                        .row_inputs = CLEAT_IN(G_TOKENS)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *in[GRAD_IN] = {[G_DY] = dout[0], [G_TOKENS] = node->in[TOKENS]};
    cleat_emit_grads_of(graph, node, &embedding_grad, in, GRAD_IN, &node->in[TABLE], 1);
}

static const cleat_op embedding = {.name = "embedding",
                                   .infer = infer,
                                   .backward = backward,
                                   .cost = cost,
                                   .variants = forward_variants,
                                   .define = define,
                                   .block_inputs = CLEAT_IN(TABLE),
                                   .fusion = &(const cleat_fusion){.consumer = fuse_positions}};

/* A frozen table is read as half weights if the rows are halves: the same bits without an f32 table. */
static const cleat_op embedding_of_frozen = {.name = "embedding",
                                             .infer = infer,
                                             .cost = cost,
                                             .variants = forward_variants,
                                             .define = define,
                                             .autocast_inputs = CLEAT_IN(TABLE),
                                             .weight_inputs = CLEAT_IN(TABLE),
                                             .block_inputs = CLEAT_IN(TABLE),
                                             .fusion = &(const cleat_fusion){.consumer = fuse_positions}};

cleat_tensor *cleat_embedding_padded(cleat_graph *graph, cleat_tensor *tokens, cleat_tensor *table, int64_t padding,
                                     cleat_dtype storage) {
    cleat_tensor *in[FORWARD_IN] = {[TOKENS] = tokens, [TABLE] = table};
    const embedding_attr attr = {.storage = storage,
                                 .padding = padding >= 0 && padding <= INT32_MAX ? (int32_t)padding : -1};
    const bool halves = table && table->rule.frozen && storage != CLEAT_F32 && storage == cleat_autocast_storage(graph);
    return cleat_first_output(
        cleat_emit(graph, halves ? &embedding_of_frozen : &embedding, &attr, sizeof attr, in, FORWARD_IN));
}

cleat_tensor *cleat_embedding(cleat_graph *graph, cleat_tensor *tokens, cleat_tensor *table, cleat_dtype storage) {
    return cleat_embedding_padded(graph, tokens, table, -1, storage);
}
