/* Permutation of the dimensions of a tensor. */
#include "cleat/ops.h"
#include "ops/lib/define.h"
#include "ops/lib/rows.h"
#include "ops/lib/shared.h"

/* Side of a tile of permute.cl on a GPU; on a CPU it is the vector width. */
enum { GPU_TILE = 32, OUTER = CLEAT_MAX_RANK - 1 };

typedef struct permute_attr {
    int32_t axes[CLEAT_MAX_RANK]; /* dimension i of the output is dimension axes[i] of the input */
} permute_attr;

static const permute_attr *attr_of(const cleat_node *node) {
    return (const permute_attr *)node->attr;
}

/* --- the permutation in the kernels' form ------------------------------------------------------------------------ */

/* A dimension: its extent, and the strides along it in input and output. */
typedef struct dimension {
    int64_t extent, from, to;
} dimension;

/* Dimensions in the order of the output, without those of extent 1, and with those merged that are neighbours
 * in both tensors; the last one has stride 1 in the output. */
typedef struct permutation {
    int count;
    dimension d[CLEAT_MAX_RANK];
} permutation;

static permutation permutation_of(const cleat_tensor *from, const cleat_tensor *to, const permute_attr *attr) {
    permutation p = {0};
    int64_t strides[CLEAT_MAX_RANK], stride = 1;
    for (int i = from->rank - 1; i >= 0; stride *= from->shape[i--]) strides[i] = stride;
    for (int i = 0; i < to->rank; ++i) {
        const dimension next = {.extent = to->shape[i], .from = strides[attr->axes[i]]};
        dimension *last = p.count > 0 ? &p.d[p.count - 1] : NULL;
        if (next.extent == 1) continue;
        if (last && last->from == next.from * next.extent)
            *last = (dimension){.extent = last->extent * next.extent, .from = next.from};
        else
            p.d[p.count++] = next;
    }
    if (p.count == 0) p.d[p.count++] = (dimension){.extent = 1, .from = 1};
    stride = 1;
    for (int i = p.count - 1; i >= 0; stride *= p.d[i--].extent) p.d[i].to = stride;
    return p;
}

/* Removes dimension `i` and returns it. */
static dimension take(permutation *p, int i) {
    const dimension taken = p->d[i];
    for (--p->count; i < p->count; ++i) p->d[i] = p->d[i + 1];
    return taken;
}

/* Adds dimensions of extent 1 in front until there are `count`. */
static void pad(permutation *p, int count) {
    const int more = count - p->count;
    for (int i = count - 1; i >= 0; --i) p->d[i] = i >= more ? p->d[i - more] : (dimension){.extent = 1};
    p->count = count;
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

static const char *const extent_names[OUTER] = {"n0", "n1", "n2", "n3"};
static const char *const from_names[OUTER] = {"s0", "s1", "s2", "s3"};
static const char *const to_names[OUTER - 1] = {"t0", "t1", "t2"};

static void launch_rows(cleat_binder *binder, permutation p) {
    const int64_t width = take(&p, p.count - 1).extent;
    int64_t rows = 1;
    pad(&p, OUTER);
    for (int i = 0; i < OUTER; ++i) rows *= p.d[i].extent;
    CLEAT_LAUNCH_I32(binder, {"rows", rows}, {"width", width});
    for (int i = 1; i < OUTER; ++i) cleat_launch_i32(binder, extent_names[i], (int32_t)p.d[i].extent);
    for (int i = 0; i < OUTER; ++i) cleat_launch_i64(binder, from_names[i], p.d[i].from);
    cleat_launch_runs(binder, rows, width);
}

/* `inner` is the dimension with stride 1 in the input. */
static void launch_tiles(cleat_binder *binder, permutation p, int inner) {
    const int64_t side = binder->facts->work_group > 1 ? GPU_TILE : binder->facts->vector_width;
    const dimension down = take(&p, p.count - 1), across = take(&p, inner);
    int64_t tiles = ceil_div(down.extent, side) * ceil_div(across.extent, side);
    pad(&p, OUTER - 1);
    for (int i = 0; i < OUTER - 1; ++i) tiles *= p.d[i].extent;
    cleat_launch_i64(binder, "tiles", tiles);
    CLEAT_LAUNCH_I32(binder, {"height", down.extent}, {"width", across.extent});
    for (int i = 1; i < OUTER - 1; ++i) cleat_launch_i32(binder, extent_names[i], (int32_t)p.d[i].extent);
    for (int i = 0; i < OUTER - 1; ++i) cleat_launch_i64(binder, from_names[i], p.d[i].from);
    for (int i = 0; i < OUTER - 1; ++i) cleat_launch_i64(binder, to_names[i], p.d[i].to);
    cleat_launch_i64(binder, "pitch", down.from);
    cleat_launch_i64(binder, "to_pitch", across.to);
    cleat_launch_items(binder, tiles * binder->facts->work_group);
}

/* in = {x}, out = {y}; or in = {dy, accum}, out = {dx}, and the attribute is the inverse permutation. */
enum { DY, GRAD_IN };

static void bind(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *accum = node->n_in > GRAD_IN ? cleat_accum(node, GRAD_IN, 0) : NULL;
    const cleat_tensor *from = node->in[0], *to = node->out[0];
    const permutation p = permutation_of(from, to, attr_of(node));
    int inner = 0;
    while (p.d[inner].from != 1) ++inner;
    const bool rows = inner == p.count - 1;
    cleat_launch_vector_kernel(binder, node, "permute.cl", rows ? "permute_rows" : "permute_tiles", to->dtype,
                               rows ? p.d[inner].extent : 0); /* tiles have no vectors on a GPU */
    CLEAT_LAUNCH_TENSORS(binder, from, accum, to);
    if (rows)
        launch_rows(binder, p);
    else
        launch_tiles(binder, p, inner);
}

/* --- the op ------------------------------------------------------------------------------------------------------- */

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *x = node->in[0];
    const int32_t *axes = attr_of(node)->axes;
    int64_t shape[CLEAT_MAX_RANK];
    unsigned seen = 0;
    if (!cleat_is_storage(x->dtype) || x->rank < 1)
        return cleat_infer_fail(node, error, "x is %s, it must be f32, f16 or bf16 [...]", CLEAT_DESCRIBED(x));
    for (int i = 0; i < x->rank; ++i) {
        if (axes[i] < 0 || axes[i] >= x->rank || (seen & 1u << axes[i]))
            return cleat_infer_fail(node, error, "axis %d of x, %s, as dimension %d: each of 0 to %d must occur once",
                                    (int)axes[i], CLEAT_DESCRIBED(x), i, x->rank - 1);
        seen |= 1u << axes[i];
        shape[i] = x->shape[axes[i]];
    }
    if (cleat_tensor_elements(x) > CLEAT_MAX_ROWS)
        return cleat_infer_fail(node, error, "x is %s: at most 2^30 elements", CLEAT_DESCRIBED(x));
    return cleat_set_output(node, 0, x->dtype, x->rank, shape, error);
}

/* Dimension i of the output is dimension axes[i] of the first input; the same holds in the gradient. */
static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const cleat_tensor *from = node->in[DY], *to = node->out[0];
    int64_t strides[CLEAT_MAX_RANK], stride = 1, at = 0, rest = element;
    cleat_expected_value sum = node->n_in > GRAD_IN ? cleat_define_begin(values, GRAD_IN + values->output, element)
                                                    : (cleat_expected_value){.value = 0};
    for (int i = from->rank - 1; i >= 0; stride *= from->shape[i--]) strides[i] = stride;
    for (int i = to->rank - 1; i >= 0; rest /= to->shape[i--])
        at += rest % to->shape[i] * strides[attr_of(node)->axes[i]];
    cleat_define_add(&sum, cleat_host_value(values, DY, at));
    return sum;
}

static const cleat_variant variants[] = {{.name = "strides", .bind = bind}, {0}};

static const cleat_op permute_grad = {
    .name = "permute_grad", .variants = variants, .define = define, .inplace_inputs = CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    permute_attr inverse = {{0}};
    for (int i = 0; i < node->in[0]->rank; ++i) inverse.axes[attr_of(node)->axes[i]] = i;
    *(permute_attr *)node->attr = inverse;
    cleat_emit_grads_of(graph, node, &permute_grad, &dout[0], GRAD_IN, &node->in[0], 1);
}

static const cleat_attribute attributes[] = {
    {.name = "axes", .type = CLEAT_ATTRIBUTE_I32, .offset = offsetof(permute_attr, axes), .count = CLEAT_MAX_RANK},
    {.name = NULL}};

static const cleat_op permute = {.name = "permute",
                                 .infer = infer,
                                 .backward = backward,
                                 .variants = variants,
                                 .define = define,
                                 .no_autocast = true,
                                 .attributes = attributes};

cleat_tensor *cleat_permute(cleat_graph *graph, cleat_tensor *x, const int *axes) {
    permute_attr attr = {{0}};
    for (int i = 0; x && i < x->rank; ++i) attr.axes[i] = axes[i];
    return cleat_first_output(cleat_emit(graph, &permute, &attr, sizeof attr, &x, 1));
}
