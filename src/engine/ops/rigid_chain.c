/* Coordinates of a chain from the step and rotation of each residue: a scan of rigid motions (formulas in
 * cl/rigid_chain.cl). */
#include "cleat/ops.h"
#include "ops/lib/define.h"
#include "ops/lib/shared.h"

/* Values per residue: three for the step, three for the rotation. */
enum { STEP_WIDTH = 6 };

enum { STEPS, LENGTHS, FORWARD_IN };
enum { COORDINATES, FRAMES };

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const cleat_tensor *steps = node->in[STEPS];
    if (steps->rank != 3 || steps->shape[2] != STEP_WIDTH || !cleat_is_storage(steps->dtype))
        return cleat_infer_fail(node, error, "steps are %s; they must be [B, L, %d]", CLEAT_DESCRIBED(steps),
                                STEP_WIDTH);
    cleat_status status = cleat_expect(node, LENGTHS, "lengths", CLEAT_I32, 1, steps->shape, error);
    if (status) return status;
    int64_t coords[3] = {steps->shape[0], steps->shape[1], 3}, rigid_frames[3] = {steps->shape[0], steps->shape[1], 9};
    status = cleat_set_output(node, COORDINATES, CLEAT_F32, 3, coords, error);
    return status ? status : cleat_set_output(node, FRAMES, CLEAT_F32, 3, rigid_frames, error);
}

static void one_item_a_chain(cleat_binder *binder, int64_t batch) {
    cleat_launch_range(binder, 1, &(size_t){(size_t)batch}, &(size_t){1});
}

static void bind(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *steps = node->in[STEPS];
    cleat_launch_kernel(binder, node, "rigid_chain.cl", "rigid_chain_forward", steps->dtype);
    CLEAT_LAUNCH_TENSORS(binder, steps, node->in[LENGTHS], node->out[COORDINATES], node->out[FRAMES]);
    cleat_launch_i32(binder, "L", (int32_t)steps->shape[1]);
    one_item_a_chain(binder, steps->shape[0]);
}

/* --- definition ----------------------------------------------------------------------------------------------- */

/* Position and frame along a chain, in double precision. */
typedef struct rigid {
    double x[3], r[3][3];
} rigid;

static rigid define_start(void) {
    return (rigid){.r = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
}

static void define_product(double a[3][3], double b[3][3]) {
    double c[3][3];
    for (int i = 0; i < 9; ++i) {
        c[i / 3][i % 3] = 0;
        for (int k = 0; k < 3; ++k) c[i / 3][i % 3] += a[i / 3][k] * b[k][i % 3];
    }
    for (int i = 0; i < 9; ++i) a[i / 3][i % 3] = c[i / 3][i % 3];
}

/* The next residue, whose values are o [6]: an ideal A-form step (8.9 A from the axis, 2.81 A along it, 32.7
 * degrees), moved by o[0..2] and turned by the quaternion (1, 0.3 o[3..5]). */
static void define_step(rigid *at, const double o[STEP_WIDTH]) {
    const double twist = 32.7 * M_PI / 180, u = 0.3 * o[3], v = 0.3 * o[4], w = 0.3 * o[5],
                 n = 1 + u * u + v * v + w * w;
    const double step[3] = {8.9 * (cos(twist) - 1) + o[0], 8.9 * sin(twist) + o[1], 2.81 + o[2]};
    double helix[3][3] = {{cos(twist), -sin(twist), 0}, {sin(twist), cos(twist), 0}, {0, 0, 1}};
    double turn[3][3] = {{(1 + u * u - v * v - w * w) / n, 2 * (u * v - w) / n, 2 * (u * w + v) / n},
                         {2 * (u * v + w) / n, (1 - u * u + v * v - w * w) / n, 2 * (v * w - u) / n},
                         {2 * (u * w - v) / n, 2 * (v * w + u) / n, (1 - u * u - v * v + w * w) / n}};
    for (int i = 0; i < 3; ++i)
        for (int k = 0; k < 3; ++k) at->x[i] += at->r[i][k] * step[k];
    define_product(at->r, helix);
    define_product(at->r, turn);
}

static void define_read(const cleat_host_values *values, int64_t residue, double o[STEP_WIDTH]) {
    for (int k = 0; k < STEP_WIDTH; ++k) o[k] = (double)values->in[STEPS].f[residue * STEP_WIDTH + k];
}

/* Every step's rounding stays in all later residues. */
static cleat_expected_value define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int width = values->output == COORDINATES ? 3 : 9, part = (int)(element % width);
    const int64_t length = node->in[STEPS]->shape[1], b = element / width / length, i = element / width % length;
    rigid at = define_start();
    if (i >= cleat_define_length(values, LENGTHS, b, length)) return (cleat_expected_value){.value = 0};
    for (int64_t j = 1; j <= i; ++j) {
        double o[STEP_WIDTH];
        define_read(values, b * length + j, o);
        define_step(&at, o);
    }
    values->work += 100.0 * (double)i;
    const double far = sqrt((double)i + 1) * (values->output == COORDINATES ? 2 * (double)i + 1 : 1);
    return (cleat_expected_value){.value = values->output == COORDINATES ? at.x[part] : at.r[part / 3][part % 3],
                                  .size = far};
}

static const cleat_variant variants[] = {{.name = "scan", .bind = bind}, {0}};

/* The gradient's inputs follow the forward inputs; either of the last two may be absent; then the accum. out
 * = {dsteps} */
enum { G_COORDINATES = FORWARD_IN, G_FRAMES, DCOORDINATES, DFRAMES, GRAD_IN };

static void bind_grad(const cleat_node *node, cleat_binder *binder) {
    const cleat_tensor *steps = node->in[STEPS];
    cleat_launch_kernel(binder, node, "rigid_chain.cl", "rigid_chain_backward", steps->dtype);
    for (int i = 0; i < GRAD_IN; ++i) cleat_launch_tensor(binder, node->in[i]);
    CLEAT_LAUNCH_TENSORS(binder, cleat_accum(node, GRAD_IN, 0), node->out[0]);
    cleat_launch_i32(binder, "L", (int32_t)steps->shape[1]);
    one_item_a_chain(binder, steps->shape[0]);
}

/* First-order effect on the loss, through the outputs of chain b, of moving o[part] of residue i. */
static double define_effect(const cleat_node *node, cleat_host_values *values, int64_t b, int64_t i, int part,
                            double move, double *size) {
    const int64_t all = node->in[STEPS]->shape[1], length = cleat_define_length(values, LENGTHS, b, all);
    rigid at = define_start();
    double sum = 0;
    for (int64_t j = 1; j < length; ++j) {
        double o[STEP_WIDTH];
        define_read(values, b * all + j, o);
        if (j == i) o[part] += move;
        define_step(&at, o);
        for (int k = 0; k < 3; ++k) {
            const double dx = cleat_host_value(values, DCOORDINATES, (b * all + j) * 3 + k);
            sum += dx * at.x[k];
            if (j >= i) *size += fabs(dx) * (1 + 3 * (double)(j - i));
        }
        for (int k = 0; k < 9; ++k) {
            const double dr = cleat_host_value(values, DFRAMES, (b * all + j) * 9 + k);
            sum += dr * at.r[k / 3][k % 3];
            if (j >= i) *size += fabs(dr);
        }
    }
    values->work += 100.0 * (double)length;
    return sum;
}

/* The derivative of that, by central differences. */
static cleat_expected_value define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t all = node->in[STEPS]->shape[1], b = element / STEP_WIDTH / all, i = element / STEP_WIDTH % all;
    const int part = (int)(element % STEP_WIDTH);
    const double move = 1e-4;
    cleat_expected_value sum = cleat_define_begin(values, GRAD_IN + values->output, element);
    double size = 0;
    if (i == 0 || i >= cleat_define_length(values, LENGTHS, b, all)) return sum;
    const double after = define_effect(node, values, b, i, part, move, &size);
    const double before = define_effect(node, values, b, i, part, -move, &size);
    sum.value += (after - before) / (2 * move);
    sum.size += size * sqrt((double)all);
    return sum;
}

static const cleat_variant grad_variants[] = {{.name = "scan", .bind = bind_grad}, {0}};

/* About 150 operations per residue: two matrix products and a rotation matrix from a quaternion. */
enum { OPERATIONS = 50 /* per coordinate */ };

static const cleat_op rigid_chain_grad = {.name = "rigid_chain_grad",
                                          .flops = OPERATIONS,
                                          .variants = grad_variants,
                                          .define = define_grad,
                                          .inplace_inputs = CLEAT_IN(GRAD_IN)};

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *in[GRAD_IN] = {
        [STEPS] = node->in[STEPS],      [LENGTHS] = node->in[LENGTHS],      [G_COORDINATES] = node->out[COORDINATES],
        [G_FRAMES] = node->out[FRAMES], [DCOORDINATES] = dout[COORDINATES], [DFRAMES] = dout[FRAMES]};
    cleat_emit_grads_of(graph, node, &rigid_chain_grad, in, GRAD_IN, &node->in[STEPS], 1);
}

static const cleat_op rigid_chain = {.name = "rigid_chain",
                                     .infer = infer,
                                     .backward = backward,
                                     .flops = OPERATIONS,
                                     .variants = variants,
                                     .define = define};

cleat_tensor *cleat_rigid_chain(cleat_graph *graph, cleat_tensor *steps, cleat_tensor *lengths,
                                cleat_tensor **rigid_frames) {
    if (rigid_frames) *rigid_frames = NULL;
    cleat_tensor *in[FORWARD_IN] = {[STEPS] = steps, [LENGTHS] = lengths};
    cleat_node *node = cleat_emit(graph, &rigid_chain, NULL, 0, in, FORWARD_IN);
    if (node && rigid_frames) *rigid_frames = node->out[FRAMES];
    return node ? node->out[COORDINATES] : NULL;
}
