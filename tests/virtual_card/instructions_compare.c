/* Comparisons, predicates, selection and moves. */
#include "lanes.h"

/* setp.lt.and.s32 p, a, b, q: combines the bits of the comparison with q. */
enum { ALONE, AND, OR, XOR };
static void set_result(ptx_warp *warp, const ptx_instruction *now, uint32_t mask, uint32_t bits) {
    const uint32_t other = now->code == ALONE ? 0 : ptx_predicate(warp, now->from[2]);
    const uint32_t result = now->code == ALONE ? bits
                            : now->code == AND ? bits & other
                            : now->code == OR  ? bits | other
                                               : bits ^ other;
    ptx_set_predicate(warp, now->to[0], mask, result);
    if (now->n_to < 2) return; /* p|q: q gets the opposite comparison */
    const uint32_t opposite = now->code == ALONE ? ~bits
                              : now->code == AND ? ~bits & other
                              : now->code == OR  ? ~bits | other
                                                 : ~bits ^ other;
    ptx_set_predicate(warp, now->to[1], mask, opposite);
}

#define COMPARE(name, type, condition)                                                                                 \
    static void name(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {                                      \
        const type *a = ptx_at_operand(warp, now->from[0]), *b = ptx_at_operand(warp, now->from[1]);                   \
        uint32_t bits = 0;                                                                                             \
        for (int l = 0; l < PTX_LANES; ++l) bits |= (uint32_t)(condition) << l;                                        \
        set_result(warp, now, mask, bits);                                                                             \
    }

/* --- comparisons: name, condition; F is a float or double function */

#define EQUALITIES(X, ...)                                                                                             \
    X(eq, a[l] == b[l], __VA_ARGS__)                                                                                   \
    X(ne, a[l] != b[l], __VA_ARGS__)
#define ORDERS(X, ...)                                                                                                 \
    X(lt, a[l] < b[l], __VA_ARGS__)                                                                                    \
    X(le, a[l] <= b[l], __VA_ARGS__)                                                                                   \
    X(gt, a[l] > b[l], __VA_ARGS__)                                                                                    \
    X(ge, a[l] >= b[l], __VA_ARGS__)
#define UNSIGNED_ORDERS(X, ...)                                                                                        \
    X(lo, a[l] < b[l], __VA_ARGS__)                                                                                    \
    X(ls, a[l] <= b[l], __VA_ARGS__)                                                                                   \
    X(hi, a[l] > b[l], __VA_ARGS__)                                                                                    \
    X(hs, a[l] >= b[l], __VA_ARGS__)
/* Float comparisons with u are true if either operand is a NaN. */
#define FLOATS(X, ...)                                                                                                 \
    X(eq, F(a[l]) == F(b[l]), __VA_ARGS__)                                                                             \
    X(ne, F(a[l]) < F(b[l]) || F(a[l]) > F(b[l]), __VA_ARGS__)                                                         \
    X(lt, F(a[l]) < F(b[l]), __VA_ARGS__)                                                                              \
    X(le, F(a[l]) <= F(b[l]), __VA_ARGS__)                                                                             \
    X(gt, F(a[l]) > F(b[l]), __VA_ARGS__)                                                                              \
    X(ge, F(a[l]) >= F(b[l]), __VA_ARGS__)                                                                             \
    X(equ, !(F(a[l]) < F(b[l]) || F(a[l]) > F(b[l])), __VA_ARGS__)                                                     \
    X(neu, F(a[l]) != F(b[l]), __VA_ARGS__)                                                                            \
    X(ltu, !(F(a[l]) >= F(b[l])), __VA_ARGS__)                                                                         \
    X(leu, !(F(a[l]) > F(b[l])), __VA_ARGS__)                                                                          \
    X(gtu, !(F(a[l]) <= F(b[l])), __VA_ARGS__)                                                                         \
    X(geu, !(F(a[l]) < F(b[l])), __VA_ARGS__)                                                                          \
    X(num, a[l] == a[l] && b[l] == b[l], __VA_ARGS__)                                                                  \
    X(nan, a[l] != a[l] || b[l] != b[l], __VA_ARGS__)

/* type name in functions, type name in opcodes, lane type, operand letter */
#define COMPARISONS(X)                                                                                                 \
    EQUALITIES(X, b16, ".b16", uint16_t, "h")                                                                          \
    EQUALITIES(X, b32, ".b32", uint32_t, "w")                                                                          \
    EQUALITIES(X, b64, ".b64", uint64_t, "l")                                                                          \
    EQUALITIES(X, u16, ".u16", uint16_t, "h")                                                                          \
    EQUALITIES(X, u32, ".u32", uint32_t, "w")                                                                          \
    EQUALITIES(X, u64, ".u64", uint64_t, "l")                                                                          \
    EQUALITIES(X, s16, ".s16", int16_t, "h")                                                                           \
    EQUALITIES(X, s32, ".s32", int32_t, "w")                                                                           \
    EQUALITIES(X, s64, ".s64", int64_t, "l")                                                                           \
    ORDERS(X, u16, ".u16", uint16_t, "h")                                                                              \
    ORDERS(X, u32, ".u32", uint32_t, "w")                                                                              \
    ORDERS(X, u64, ".u64", uint64_t, "l")                                                                              \
    ORDERS(X, s16, ".s16", int16_t, "h")                                                                               \
    ORDERS(X, s32, ".s32", int32_t, "w")                                                                               \
    ORDERS(X, s64, ".s64", int64_t, "l")                                                                               \
    UNSIGNED_ORDERS(X, u16, ".u16", uint16_t, "h")                                                                     \
    UNSIGNED_ORDERS(X, u32, ".u32", uint32_t, "w")                                                                     \
    UNSIGNED_ORDERS(X, u64, ".u64", uint64_t, "l")

#define DEFINE(comparison, condition, t, opcode, type, letter) COMPARE(comparison##_##t, type, condition)
#define F(x) (x)
COMPARISONS(DEFINE)
FLOATS(DEFINE, f32, ".f32", float, "w")
FLOATS(DEFINE, f64, ".f64", double, "l")
#undef F
#define F(x) ptx_flush(x)
FLOATS(DEFINE, ftz, ".ftz.f32", float, "w")

/* --- logic of predicates */

#define LOGIC(X)                                                                                                       \
    X(and, "and", a &b)                                                                                                \
    X(or, "or", a | b)                                                                                                 \
    X(xor, "xor", a ^ b)
#define DEFINE_LOGIC(name, opcode, value)                                                                              \
    static void name##_pred(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {                               \
        const uint32_t a = ptx_predicate(warp, now->from[0]), b = ptx_predicate(warp, now->from[1]);                   \
        ptx_set_predicate(warp, now->to[0], mask, value);                                                              \
    }
LOGIC(DEFINE_LOGIC)
static void not_pred(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    ptx_set_predicate(warp, now->to[0], mask, ~ptx_predicate(warp, now->from[0]));
}
static void mov_pred(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    ptx_set_predicate(warp, now->to[0], mask, ptx_predicate(warp, now->from[0]));
}

/* --- selection and moves */

#define SELECT(name, type)                                                                                             \
    static void name(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {                                      \
        type *to = ptx_at_operand(warp, now->to[0]);                                                                   \
        const type *a = ptx_at_operand(warp, now->from[0]), *b = ptx_at_operand(warp, now->from[1]);                   \
        const uint32_t bits = ptx_predicate(warp, now->from[2]);                                                       \
        PTX_EACH_LANE(type, to, mask, bits >> l & 1 ? a[l] : b[l]);                                                    \
    }
SELECT(selp_16, uint16_t)
SELECT(selp_32, uint32_t)
SELECT(selp_64, uint64_t)
PTX_UNARY(mov_16, uint16_t, a[l])
PTX_UNARY(mov_32, uint32_t, a[l])
PTX_UNARY(mov_64, uint64_t, a[l])

/* mov.b64 %rd1, {%r1, %r2}: parts in order, lowest first. */
PTX_MIXED(pack_32, uint32_t, uint16_t, uint16_t, char, char, a[l] | (uint32_t)b[l] << 16)
PTX_MIXED(pack_64, uint64_t, uint32_t, uint32_t, char, char, a[l] | (uint64_t)b[l] << 32)
PTX_MIXED(pack_64_16, uint64_t, uint16_t, uint16_t, uint16_t, uint16_t,
          a[l] | (uint32_t)b[l] << 16 | (uint64_t)c[l] << 32 | (uint64_t)d[l] << 48)
#define UNPACK(name, whole, part)                                                                                      \
    static void name(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {                                      \
        whole from[PTX_LANES];                                                                                         \
        memcpy(from, ptx_at_operand(warp, now->from[0]), sizeof from);                                                 \
        for (int i = 0; i < now->n_to; ++i) {                                                                          \
            part *to = ptx_at_operand(warp, now->to[i]);                                                               \
            const int shift = 8 * (int)sizeof(part) * i;                                                               \
            PTX_EACH_LANE(part, to, mask, (part)(from[l] >> shift));                                                   \
        }                                                                                                              \
    }
UNPACK(unpack_32, uint32_t, uint16_t)
UNPACK(unpack_64, uint64_t, uint32_t)
UNPACK(unpack_64_16, uint64_t, uint16_t)

#define ROW(comparison, condition, t, opcode, type, letter)                                                            \
    {"setp." #comparison opcode, "p=" letter letter, comparison##_##t, ALONE},                                         \
        {"setp." #comparison opcode, "p|p=" letter letter, comparison##_##t, ALONE},                                   \
        {"setp." #comparison ".and" opcode, "p=" letter letter "p", comparison##_##t, AND},                            \
        {"setp." #comparison ".or" opcode, "p=" letter letter "p", comparison##_##t, OR},                              \
        {"setp." #comparison ".xor" opcode, "p=" letter letter "p", comparison##_##t, XOR},
#define ROW_LOGIC(name, opcode, value) {opcode ".pred", "p=pp", name##_pred},
static const ptx_form forms[] = {{"mov(.b16|.u16|.s16|.f16|.bf16)", "h=h", mov_16},
                                 {"mov(.b32|.u32|.s32|.f32)", "w=w", mov_32},
                                 {"mov(.b64|.u64|.s64|.f64)", "l=l", mov_64},
                                 {"mov.pred", "p=p", mov_pred},
                                 {"not.pred", "p=p", not_pred},
                                 {"mov.b32", "w={hh}", pack_32},
                                 {"mov.b64", "l={ww}", pack_64},
                                 {"mov.b64", "l={hhhh}", pack_64_16},
                                 {"mov.b32", "{hh}=w", unpack_32},
                                 {"mov.b64", "{ww}=l", unpack_64},
                                 {"mov.b64", "{hhhh}=l", unpack_64_16},
                                 {"selp(.b16|.u16|.s16|.f16)", "h=hhp", selp_16},
                                 {"selp(.b32|.u32|.s32|.f32)", "w=wwp", selp_32},
                                 {"selp(.b64|.u64|.s64|.f64)", "l=llp", selp_64},
                                 LOGIC(ROW_LOGIC) COMPARISONS(ROW) FLOATS(ROW, f32, ".f32", float, "w")
                                     FLOATS(ROW, f64, ".f64", double, "l") FLOATS(ROW, ftz, ".ftz.f32", float, "w")};
const ptx_table PTX_VARIANT(ptx_compare_table) = PTX_TABLE(forms);
