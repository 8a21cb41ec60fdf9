/* Rotary positions: their table, and the turn of queries and keys. */
#include "cleat/ops.h"
#include "ops/lib/count.h"
#include "ops/lib/define.h"
#include "ops/lib/rows.h"
#include "ops/lib/shared.h"

#include <math.h>

/* --- table -------------------------------------------------------------------------------------------------------- */

typedef struct table_attr {
    int64_t length;
    cleat_rotary_angles angles;
} table_attr;

static const table_attr *table_of(const cleat_node *node) {
    return (const table_attr *)node->attr;
}

static cleat_status infer_table(cleat_node *node, cleat_error *error) {
    const table_attr *t = table_of(node);
    const cleat_rotary_angles *a = &t->angles;
    if (a->width < 2 || a->width % 2 || a->width > 1 << 16 || t->length < 1 || t->length > 1 << 20)
        return cleat_infer_fail(node, error, "a table [%lld, %lld]: it must have 1 to 2^20 rows and an even width",
                                (long long)t->length, (long long)a->width);
    if (!(a->base > 1) || !(a->factor >= 1) || (a->old_length > 0 && !(a->high_turns > a->low_turns)))
        return cleat_infer_fail(node, error, "base %g, factor %g, turns %g to %g: base > 1, factor >= 1, turns ascend",
                                a->base, a->factor, (double)a->low_turns, (double)a->high_turns);
    return cleat_set_output(node, 0, CLEAT_F32, 2, (const int64_t[]){t->length, a->width}, error);
}

/* Without old_length no frequency is kept. */
static void bind_table(const cleat_node *node, cleat_binder *binder) {
    const cleat_rotary_angles *a = &table_of(node)->angles;
    const cleat_tensor *table = node->out[0];
    const double ratio = pow(a->base, -2.0 / (double)a->width);
    const float ratio_hi = (float)ratio;
    cleat_launch_vector_kernel(binder, node, "positional_encoding.cl", "rotary_table", CLEAT_F32, a->width);
    cleat_launch_tensor(binder, table);
    CLEAT_LAUNCH_I32(binder, {"length", table->shape[0]}, {"width", a->width});
    cleat_launch_f32(binder, "ratio_hi", ratio_hi);
    cleat_launch_f32(binder, "ratio_lo", (float)(ratio - (double)ratio_hi));
    cleat_launch_f32(binder, "slow", (float)(1 / a->factor));
    cleat_launch_f32(binder, "old", (float)a->old_length);
    cleat_launch_f32(binder, "low", a->old_length > 0 ? a->low_turns : 1);
    cleat_launch_f32(binder, "high", a->old_length > 0 ? a->high_turns : 2);
    cleat_launch_runs(binder, table->shape[0], a->width);
}

double cleat_rotary_frequency(const cleat_rotary_angles *angles, int64_t pair) {
    const double frequency = pow(angles->base, -2.0 * (double)pair / (double)angles->width);
    const double turns = frequency * (double)angles->old_length / (2 * M_PI);
    const double low = (double)angles->low_turns, high = (double)angles->high_turns, slow = 1 / angles->factor;
    const double kept = angles->old_length > 0 ? fmin(fmax((turns - low) / (high - low), 0), 1) : 0;
    return frequency * (slow + (1 - slow) * kept);
}

static cleat_expected_value define_table(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_rotary_angles *a = &table_of(node)->angles;
    const double angle = (double)(element / a->width) * cleat_rotary_frequency(a, element % a->width / 2);
    (void)values, (void)values->output;
    return (cleat_expected_value){.value = element % 2 ? cos(angle) : sin(angle), .size = 1 + 0.2 * fabs(angle)};
}

static const char *refuse_table(const cleat_node *node, const cleat_device_facts *facts) {
    (void)node;
    return facts->vector_width % 2 ? "sine and cosine alternate: the vector width must be even" : NULL;
}

static const cleat_variant table_variants[] = {{.name = "waves", .refuse = refuse_table, .bind = bind_table}, {0}};
static const cleat_attribute table_attributes[] = {CLEAT_ATTRIBUTE(table_attr, angles.width, CLEAT_ATTRIBUTE_I64),
                                                   CLEAT_ATTRIBUTE(table_attr, angles.base, CLEAT_ATTRIBUTE_F64),
                                                   CLEAT_ATTRIBUTE(table_attr, angles.factor, CLEAT_ATTRIBUTE_F64),
                                                   CLEAT_ATTRIBUTE(table_attr, angles.old_length, CLEAT_ATTRIBUTE_I64),
                                                   CLEAT_ATTRIBUTE(table_attr, angles.low_turns, CLEAT_ATTRIBUTE_F32),
                                                   CLEAT_ATTRIBUTE(table_attr, angles.high_turns, CLEAT_ATTRIBUTE_F32),
                                                   {.name = NULL}};
static const cleat_op rotary_table = {.name = "rotary_table",
                                      .infer = infer_table,
                                      .flops = 60,
                                      .variants = table_variants,
                                      .define = define_table,
                                      .attributes = table_attributes};

cleat_tensor *cleat_rotary_table(cleat_graph *graph, int64_t length, const cleat_rotary_angles *angles) {
    const table_attr attr = {length, *angles};
    return cleat_first_output(cleat_emit(graph, &rotary_table, &attr, sizeof attr, NULL, 0));
}

/* --- turn --------------------------------------------------------------------------------------------------------- */

typedef struct rotary_attr {
    int32_t heads, turning, interleaved;
} rotary_attr;

/* in = {x, table, positions}; of the gradient {dy, table, positions, accum} */
enum { X, TABLE, POSITIONS, FORWARD_IN };

static const rotary_attr *rotary_of(const cleat_node *node) {
    return (const rotary_attr *)node->attr;
}

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[X], *table = node->in[TABLE];
    const rotary_attr *a = rotary_of(node);
    if (!cleat_is_storage(x->dtype) || x->rank != 3)
        return cleat_infer_fail(node, error, "x is %s, it must be f32, f16 or bf16 [B, L, D]", CLEAT_DESCRIBED(x));
    if (a->heads < 1 || x->shape[2] % (2 * (int64_t)a->heads) || a->turning < 0 || a->turning > a->heads)
        return cleat_infer_fail(node, error, "%lld columns in %d heads, of which %d turn: heads must be of even width",
                                (long long)x->shape[2], a->heads, a->turning);
    const int64_t head = x->shape[2] / a->heads;
    if (table->dtype != CLEAT_F32 || table->rank != 2 || table->shape[1] > head || table->shape[1] % 2)
        return cleat_infer_fail(node, error, "the table is %s, it must be f32 [places, W], W even and at most %lld",
                                CLEAT_DESCRIBED(table), (long long)head);
    if (!node->in[POSITIONS] && table->shape[0] < x->shape[1])
        return cleat_infer_fail(node, error, "the table has %lld places for %lld positions", (long long)table->shape[0],
                                (long long)x->shape[1]);
    cleat_status status = CLEAT_OK;
    if (node->in[POSITIONS]) status = cleat_expect(node, POSITIONS, "positions", CLEAT_I32, 2, x->shape, error);
    return status ? status : cleat_set_output(node, 0, x->dtype, 3, x->shape, error);
}

static void launch(cleat_binder *binder, const cleat_node *node, bool backward, const cleat_tensor *accum) {
    const cleat_tensor *x = node->in[X], *table = node->in[TABLE];
    const rotary_attr *a = rotary_of(node);
    const int64_t rows = x->shape[0] * x->shape[1], head = x->shape[2] / a->heads;
    cleat_launch_vector_kernel(binder, node, "rotary.cl", "rotary_turn", x->dtype, head / 2);
    cleat_launch_define(binder, "BACKWARD", backward);
    if (a->interleaved) cleat_launch_define(binder, "INTERLEAVED", 1);
    CLEAT_LAUNCH_TENSORS(binder, x, table, node->in[POSITIONS], accum, node->out[0]);
    CLEAT_LAUNCH_I32(binder, {"rows", rows}, {"length", x->shape[1]}, {"heads", a->heads}, {"turning", a->turning},
                     {"head", head}, {"width", table->shape[1]}, {"places", table->shape[0]});
    cleat_launch_runs(binder, rows * a->heads, head / 2);
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    launch(binder, node, false, NULL);
}

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    launch(binder, node, true, cleat_accum(node, FORWARD_IN, 0));
}

static cleat_expected_value define_turn(const cleat_node *node, cleat_host_values *values, double direction,
                                        int64_t element) {
    const cleat_tensor *x = node->in[X], *table = node->in[TABLE];
    const rotary_attr *a = rotary_of(node);
    const int64_t head = x->shape[2] / a->heads, width = table->shape[1], i = element % head,
                  row = element / x->shape[2];
    const bool is_second = a->interleaved ? i % 2 : i >= width / 2;
    const int64_t pair = a->interleaved ? i / 2 : i % (width / 2), apart = a->interleaved ? 1 : width / 2;
    cleat_expected_value sum = cleat_define_begin(values, FORWARD_IN, element); /* an accumulator, or nothing */
    if (i >= width || element / head % a->heads >= a->turning) {
        cleat_define_add(&sum, cleat_host_value(values, X, element));
        return sum;
    }
    int64_t position = values->in[POSITIONS].i ? values->in[POSITIONS].i[row] : row % x->shape[1];
    position = position < 0 ? 0 : position < table->shape[0] ? position : table->shape[0] - 1;
    const double s = direction * cleat_host_value(values, TABLE, position * width + 2 * pair);
    cleat_define_add(&sum, cleat_host_value(values, X, element) *
                               cleat_host_value(values, TABLE, position * width + 2 * pair + 1));
    cleat_define_add(&sum, is_second ? s * cleat_host_value(values, X, element - apart)
                                     : -s * cleat_host_value(values, X, element + apart));
    return sum;
}

static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    return define_turn(node, values, 1, element);
}

static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    return define_turn(node, values, -1, element);
}

static const cleat_variant variants[] = {{.name = "pairs", .bind = bind}, {0}};
static const cleat_variant grad_variants[] = {{.name = "pairs", .bind = bind_grad}, {0}};

static const cleat_op rotary_grad = {.name = "rotary_grad",
                                     .flops = 3,
                                     .variants = grad_variants,
                                     .define = define_grad,
                                     .inplace_inputs = CLEAT_IN(X) | CLEAT_IN(FORWARD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *in[FORWARD_IN] = {[X] = dout[0], [TABLE] = node->in[TABLE], [POSITIONS] = node->in[POSITIONS]};
    cleat_emit_grads_of(graph, node, &rotary_grad, in, FORWARD_IN, node->in, 1);
}

static const cleat_attribute attributes[] = {CLEAT_ATTRIBUTE(rotary_attr, heads, CLEAT_ATTRIBUTE_I32),
                                             CLEAT_ATTRIBUTE(rotary_attr, turning, CLEAT_ATTRIBUTE_I32),
                                             CLEAT_ATTRIBUTE(rotary_attr, interleaved, CLEAT_ATTRIBUTE_I32),
                                             {.name = NULL}};

static bool is_cheap(const cleat_node *node) {
    (void)node;
    return true;
}

static const cleat_op rotary = {.name = "rotary",
                                .infer = infer,
                                .backward = backward,
                                .flops = 3,
                                .variants = variants,
                                .define = define,
                                .inplace_inputs = CLEAT_IN(X),
                                .optional_inputs = CLEAT_IN(POSITIONS),
                                .autocast_inputs = CLEAT_IN(X),
                                .attributes = attributes,
                                .cheap = is_cheap};

cleat_tensor *cleat_rotary(cleat_graph *graph, cleat_tensor *x, cleat_tensor *table, cleat_tensor *positions, int heads,
                           int turning, bool interleaved) {
    cleat_tensor *in[FORWARD_IN] = {[X] = x, [TABLE] = table, [POSITIONS] = positions};
    const rotary_attr attr = {heads, turning, interleaved};
    return cleat_first_output(cleat_emit(graph, &rotary, &attr, sizeof attr, in, FORWARD_IN));
}
