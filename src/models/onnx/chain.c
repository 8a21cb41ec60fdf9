/* ONNX: the trace of a chain of rigid motions (cl/rigid_chain.cl), a Scan over the residues.
 *
 * The rotation of the unnormalised quaternion (1, b) is I + 2 / (1 + |b|^2) (K + K K), where K is the matrix of the
 * cross product with b. All rotations are computed at once; the Scan multiplies them. */
#include "onnx/translate.h"

enum { STEPS, LENGTHS };

/* The constants of cl/rigid_chain.cl. */
static const float radius = 8.9f, rise = 2.81f, twist_cos = 0.84151078f, twist_sin = 0.54024030f, turn = 0.3f;

/* Columns [first, first + 3) of the steps [B, L, 6] */
static const char *columns(cleat_onnx_builder *b, const char *steps, int64_t first) {
    return OP(b, "Slice", steps, cleat_onnx_int(b, first), cleat_onnx_int(b, first + 3), cleat_onnx_int(b, 2));
}

static const char *identity(cleat_onnx_builder *b) {
    static const float values[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    const char *found = cleat_onnx_kept(b, "identity");
    return found ? found
                 : cleat_onnx_keep(b, "identity", cleat_onnx_table(b, "identity", 2, (const int64_t[]){3, 3}, values));
}

/* Steps -> rotations [B, L, 3, 3] relative to the residue before. */
static const char *rotations(cleat_onnx_translator *t, const cleat_node *node, const char *steps) {
    cleat_onnx_builder *b = cleat_onnx_of(t);
    static const float generators[3][9] = {
        {0, 0, 0, 0, 0, -1, 0, 1, 0}, {0, 0, 1, 0, 0, 0, -1, 0, 0}, {0, -1, 0, 1, 0, 0, 0, 0, 0}};
    const float helix[9] = {twist_cos, -twist_sin, 0, twist_sin, twist_cos, 0, 0, 0, 1};
    const cleat_onnx_dim length = cleat_onnx_dim_of(t, node->in[STEPS], 1);
    const char *axis = OP(b, "Mul", columns(b, steps, 3), cleat_onnx_number(b, turn)); /* [B, L, 3] */
    const char *cross =
        OP(b, "MatMul", axis, cleat_onnx_table(b, "cross_product", 2, (const int64_t[]){3, 9}, generators[0]));
    if (cleat_onnx_is_fixed(length))
        cross = OP(b, "Reshape", cross, INTS(b, -1, length.factor, 3, 3));
    else
        cross = OP(b, "Reshape", cross, INTS(b, 0, 0, 3, 3));
    const char *square = OP_WITH(b, "ReduceSum", ATTRIBUTES(CLEAT_ONNX_I("keepdims", 1)), OP(b, "Mul", axis, axis),
                                 cleat_onnx_int(b, 2)); /* [B, L, 1] */
    const char *scale = OP(b, "Div", cleat_onnx_number(b, 2), OP(b, "Add", square, cleat_onnx_number(b, 1)));
    scale = OP(b, "Unsqueeze", scale, cleat_onnx_int(b, 3));
    const char *sum = OP(b, "Add", cross, OP(b, "MatMul", cross, cross));
    const char *rotation = OP(b, "Add", OP(b, "Mul", scale, sum), identity(b));
    return OP(b, "MatMul", cleat_onnx_table(b, "helix_rotation", 2, (const int64_t[]){3, 3}, helix), rotation);
}

/* Steps -> translations [B, L, 3] in the frame of the residue before. */
static const char *translations(cleat_onnx_builder *b, const char *steps) {
    const float helix[3] = {radius * (twist_cos - 1.0f), radius * twist_sin, rise};
    return OP(b, "Add", columns(b, steps, 0), cleat_onnx_table(b, "helix_step", 1, (const int64_t[]){3}, helix));
}

/* Body of the Scan: (place [B, 3, 1], frame [B, 3, 3], translation, rotation) -> (place, frame, place) */
static Cleat__Onnx__Graph *make_body(cleat_onnx_builder *b) {
    enum { PLACE, FRAME, TRANSLATION, ROTATION, INPUTS };
    static const char *const names[INPUTS] = {"place", "frame", "translation", "rotation"};
    const char *in[INPUTS];
    cleat_onnx_part body;
    cleat_onnx_begin_body(b, &body);
    for (int i = 0; i < INPUTS; ++i) {
        in[i] = cleat_onnx_new_name(b, cleat_onnx_text(b, "%s%s", b->scope, names[i]));
        cleat_onnx_declare(b, &body.inputs, in[i], CLEAT_ONNX_FLOAT, -1, NULL, "");
    }
    const char *place = OP(b, "Add", in[PLACE], OP(b, "MatMul", in[FRAME], in[TRANSLATION]));
    const char *out[] = {place, OP(b, "MatMul", in[FRAME], in[ROTATION]), OP(b, "Identity", place)};
    for (int i = 0; i < 3; ++i) cleat_onnx_declare(b, &body.outputs, out[i], CLEAT_ONNX_FLOAT, -1, NULL, "");
    return cleat_onnx_end_body(b, "rigid_motion");
}

/* Residue 0 is at the origin in the frame of the world, regardless of its steps. */
void cleat_onnx_emit_rigid_chain(cleat_onnx_translator *t, const cleat_node *node) {
    cleat_onnx_builder *b = cleat_onnx_of(t);
    static const float zeros[3] = {0, 0, 0};
    const char *steps = cleat_onnx_in(t, node, STEPS), *one = cleat_onnx_int(b, 1);
    const cleat_onnx_dim length = cleat_onnx_dim_of(t, node->in[STEPS], 1);
    const char *batch = cleat_onnx_dim_value(t, cleat_onnx_dim_of(t, node->in[STEPS], 0));
    const char *first = OP(b, "Equal", cleat_onnx_positions(t, length), cleat_onnx_whole(b, 0)); /* [L] */
    first = OP(b, "Unsqueeze", first, one);                                                      /* [L, 1] */
    const char *origin = cleat_onnx_number(b, 0);
    const char *moves = OP(b, "Where", first, origin, translations(b, steps));
    first = OP(b, "Unsqueeze", first, one); /* [L, 1, 1] */
    const char *turns = OP(b, "Where", first, identity(b), rotations(t, node, steps));
    moves = TRANSPOSE(b, OP(b, "Unsqueeze", moves, cleat_onnx_int(b, 3)), 1, 0, 2, 3); /* [L, B, 3, 1] */
    turns = TRANSPOSE(b, turns, 1, 0, 2, 3);                                           /* [L, B, 3, 3] */
    const char *shape = OP_WITH(b, "Concat", ATTRIBUTES(CLEAT_ONNX_I("axis", 0)), batch, INTS(b, 1, 1));
    const char *place = cleat_onnx_table(b, "origin", 3, (const int64_t[]){1, 3, 1}, zeros);
    place = OP(b, "Expand", place, shape);
    const char *frame = OP(b, "Expand", identity(b), shape);
    const cleat_onnx_attribute attributes[] = {CLEAT_ONNX_G("body", make_body(b)), CLEAT_ONNX_I("num_scan_inputs", 2)};
    const char *in[] = {place, frame, moves, turns}, *out[3];
    cleat_onnx_emit(b,
                    &(cleat_onnx_node){
                        .type = "Scan", .in = in, .n_in = 4, .attributes = attributes, .n_attributes = 2, .n_out = 3},
                    out);
    const char *trace = TRANSPOSE(b, OP(b, "Squeeze", out[2], cleat_onnx_int(b, 3)), 1, 0, 2); /* [B, L, 3] */
    const char *mask = OP(b, "Unsqueeze", cleat_onnx_mask(t, node, LENGTHS, length), cleat_onnx_int(b, 2));
    cleat_onnx_set(t, node, 0, OP(b, "Where", mask, trace, origin));
}
