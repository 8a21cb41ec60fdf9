/* Vector compares. The codes are those of the instruction set: one bit each for less, equal, greater,
 * unordered. */
#include "lanes.h"

enum { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };

#define COMPARE(name, relation)                                                                                        \
    static void name(const gcn_lanes *x) {                                                                             \
        const uint32_t wanted = (uint32_t)x->now->form->code;                                                          \
        for (int l = 0; l < x->lanes; ++l) x->to[l] = ((relation)&wanted) != 0;                                        \
    }
#define RELATION(a, b) ((a) < (b) ? LESS : (a) == (b) ? EQUAL : (a) > (b) ? GREATER : UNORDERED)
static uint32_t of_floats(float a, float b) {
    return RELATION(a, b);
}
static uint32_t of_long(uint64_t a, uint64_t b) {
    return RELATION(a, b);
}
static uint32_t of_signed_long(int64_t a, int64_t b) {
    return RELATION(a, b);
}
static uint64_t joined(uint32_t low, uint32_t high) {
    return low | (uint64_t)high << 32;
}
static uint32_t of_doubles(uint64_t a_bits, uint64_t b_bits) {
    double a, b;
    memcpy(&a, &a_bits, sizeof a), memcpy(&b, &b_bits, sizeof b);
    return RELATION(a, b);
}
COMPARE(floats, of_floats(ptx_bits_float(x->a[l]), ptx_bits_float(x->b[l])))
COMPARE(halves, of_floats(ptx_from_f16((uint16_t)x->a[l]), ptx_from_f16((uint16_t)x->b[l])))
COMPARE(doubles, of_doubles(joined(x->a[l], x->a_high[l]), joined(x->b[l], x->b_high[l])))
COMPARE(integers, RELATION(x->a[l], x->b[l]))
COMPARE(signed_integers, RELATION((int32_t)x->a[l], (int32_t)x->b[l]))
COMPARE(shorts, RELATION((uint16_t)x->a[l], (uint16_t)x->b[l]))
COMPARE(signed_shorts, RELATION((int16_t)x->a[l], (int16_t)x->b[l]))
COMPARE(longs, of_long(joined(x->a[l], x->a_high[l]), joined(x->b[l], x->b_high[l])))
COMPARE(signed_longs, of_signed_long((int64_t)joined(x->a[l], x->a_high[l]), (int64_t)joined(x->b[l], x->b_high[l])))

/* Bits of v_cmp_class: signalling and quiet NaN, then -inf, -normal, -subnormal, -0, 0, subnormal, normal, inf. */
static uint32_t class_of(bool negative, bool is_nan, bool is_infinite, bool is_zero, bool is_subnormal) {
    if (is_nan) return 2;
    const uint32_t size = is_infinite ? 3 : is_zero ? 0 : is_subnormal ? 1 : 2;
    return negative ? 32u >> size : 64u << size;
}
static uint32_t class_of_float(uint32_t bits) {
    const uint32_t magnitude = bits & 0x7fffffffu;
    return class_of(bits >> 31, magnitude > 0x7f800000u, magnitude == 0x7f800000u, magnitude == 0,
                    magnitude < 0x00800000u);
}
static uint32_t class_of_half(uint32_t bits) {
    const uint32_t magnitude = bits & 0x7fffu;
    return class_of(bits >> 15 & 1, magnitude > 0x7c00u, magnitude == 0x7c00u, magnitude == 0, magnitude < 0x400u);
}
/* Quiet and signalling NaNs are not distinguished: either bit selects both. */
static uint32_t asked(uint32_t mask) {
    return mask & 3 ? mask | 2 : mask;
}
static void classes(const gcn_lanes *x) {
    for (int l = 0; l < x->lanes; ++l) x->to[l] = (class_of_float(x->a[l]) & asked(x->b[l])) != 0;
}
static void half_classes(const gcn_lanes *x) {
    for (int l = 0; l < x->lanes; ++l) x->to[l] = (class_of_half(x->a[l]) & asked(x->b[l])) != 0;
}

#define ROW(prefix, condition, type, operands, function, code_of)                                                      \
    { "v_" prefix "_" condition "_" type, operands, .lanes = function, .code = code_of }
#define BOTH(condition, type, operands, function, code_of)                                                             \
    ROW("cmp", condition, type, operands, function, code_of),                                                          \
        ROW("cmpx", condition, type, operands, function, GCN_SETS_EXEC | (code_of))
#define ORDERED(type, operands, function)                                                                              \
    BOTH("f", type, operands, function, 0), BOTH("lt", type, operands, function, LESS),                                \
        BOTH("eq", type, operands, function, EQUAL), BOTH("le", type, operands, function, LESS | EQUAL),               \
        BOTH("gt", type, operands, function, GREATER), BOTH("ge", type, operands, function, GREATER | EQUAL)
#define INTEGERS(type, operands, function)                                                                             \
    ORDERED(type, operands, function), BOTH("ne", type, operands, function, LESS | GREATER),                           \
        BOTH("t", type, operands, function, LESS | EQUAL | GREATER)
#define FLOATS(type, operands, function)                                                                               \
    ORDERED(type, operands, function), BOTH("lg", type, operands, function, LESS | GREATER),                           \
        BOTH("o", type, operands, function, LESS | EQUAL | GREATER), BOTH("u", type, operands, function, UNORDERED),   \
        BOTH("nge", type, operands, function, UNORDERED | LESS),                                                       \
        BOTH("nlg", type, operands, function, UNORDERED | EQUAL),                                                      \
        BOTH("ngt", type, operands, function, UNORDERED | LESS | EQUAL),                                               \
        BOTH("nle", type, operands, function, UNORDERED | GREATER),                                                    \
        BOTH("neq", type, operands, function, UNORDERED | LESS | GREATER),                                             \
        BOTH("nlt", type, operands, function, UNORDERED | EQUAL | GREATER),                                            \
        BOTH("tru", type, operands, function, UNORDERED | LESS | EQUAL | GREATER)

static const gcn_form forms[] = {
    FLOATS("f32", "m=ff", floats),
    FLOATS("f16", "m=hh", halves),
    FLOATS("f64", "m=dd", doubles),
    INTEGERS("u32", "m=ii", integers),
    INTEGERS("i32", "m=ii", signed_integers),
    INTEGERS("u16", "m=ww", shorts),
    INTEGERS("i16", "m=ww", signed_shorts),
    INTEGERS("u64", "m=qq", longs),
    INTEGERS("i64", "m=qq", signed_longs),
    {"v_cmp_class_f32", "m=fi", .lanes = classes},
    {"v_cmpx_class_f32", "m=fi", .lanes = classes, .code = GCN_SETS_EXEC},
    {"v_cmp_class_f16", "m=hi", .lanes = half_classes},
    {"v_cmpx_class_f16", "m=hi", .lanes = half_classes, .code = GCN_SETS_EXEC},
};

const gcn_table GCN_VARIANT(gcn_compare_table) = GCN_TABLE(forms);
