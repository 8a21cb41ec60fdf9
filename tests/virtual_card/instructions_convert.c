/* cvt: conversions between types, with rounding and saturation as PTX defines them. */
#include "lanes.h"

/* Rounds a float to an integer or to an integral float. */
enum { TO_NEAREST = 1, TOWARDS_ZERO, DOWN, UP };

/* The values of an operand: the low bytes of a register that may be wider than the type. `room` holds all
 * lanes. */
static const void *low_bytes(const ptx_warp *warp, ptx_operand operand, size_t size, void *room) {
    const unsigned char *from = ptx_at_operand(warp, operand);
    if (operand.width <= size) return from;
    for (size_t l = 0; l < PTX_LANES; ++l) memcpy((unsigned char *)room + l * size, from + l * operand.width, size);
    return room;
}

/* An 8- or 16-bit result fills a wider register, sign-extended for signed types. */
static void widen(ptx_warp *warp, ptx_operand operand, uint32_t mask, const int64_t *values) {
    unsigned char *to = ptx_at_operand(warp, operand);
    for (size_t l = 0; l < PTX_LANES; ++l)
        if (mask >> l & 1) memcpy(to + l * operand.width, &values[l], operand.width);
}

#define CONVERT(name, type, type_a, value)                                                                             \
    static void name(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {                                      \
        typedef type lane;                                                                                             \
        type_a room[PTX_LANES];                                                                                        \
        const type_a *a = low_bytes(warp, now->from[0], sizeof *a, room);                                              \
        const int how = now->code;                                                                                     \
        (void)how;                                                                                                     \
        if (now->to[0].width == sizeof(type)) {                                                                        \
            type *to = ptx_at_operand(warp, now->to[0]);                                                               \
            PTX_EACH_LANE(lane, to, mask, (lane)(value));                                                              \
        } else {                                                                                                       \
            int64_t wide[PTX_LANES];                                                                                   \
            for (int l = 0; l < PTX_LANES; ++l) wide[l] = (int64_t)(lane)(value);                                      \
            widen(warp, now->to[0], mask, wide);                                                                       \
        }                                                                                                              \
    }

static inline double round_to_integer(double x, int how) {
    return how == TOWARDS_ZERO ? trunc(x) : how == TO_NEAREST ? rint(x) : how == DOWN ? floor(x) : ceil(x);
}
/* To integers: rounds, then saturates to the type; a NaN becomes 0. */
static inline int64_t to_signed(double x, int how, double min, double max, int64_t greatest) {
    x = round_to_integer(x, how);
    return x != x ? 0 : x < min ? -greatest - 1 : x > max ? greatest : (int64_t)x;
}
static inline uint64_t to_unsigned(double x, int how, double max, uint64_t greatest) {
    x = round_to_integer(x, how);
    return !(x > 0) ? 0 : x > max ? greatest : (uint64_t)x;
}
static inline float to_integral(float x, int how) {
    return how == TOWARDS_ZERO ? truncf(x) : how == TO_NEAREST ? rintf(x) : how == DOWN ? floorf(x) : ceilf(x);
}
static inline float saturate(float x) {
    return x > 0 ? x < 1 ? x : 1 : 0;
}
static inline int64_t clamp(int64_t x, int64_t min, int64_t max) {
    return x < min ? min : x > max ? max : x;
}

/* --- types: name, type, signedness, result letter, maximum (also as the largest double not above it) */

#define INTEGERS(X, ...)                                                                                               \
    X(u8, uint8_t, U, "y", UINT8_MAX, 255.0, __VA_ARGS__)                                                              \
    X(s8, int8_t, S, "y", INT8_MAX, 127.0, __VA_ARGS__)                                                                \
    X(u16, uint16_t, U, "y", UINT16_MAX, 65535.0, __VA_ARGS__)                                                         \
    X(s16, int16_t, S, "y", INT16_MAX, 32767.0, __VA_ARGS__)                                                           \
    X(u32, uint32_t, U, "w", UINT32_MAX, 4294967295.0, __VA_ARGS__)                                                    \
    X(s32, int32_t, S, "w", INT32_MAX, 2147483647.0, __VA_ARGS__)                                                      \
    X(u64, uint64_t, U, "l", UINT64_MAX, 18446744073709549568.0, __VA_ARGS__)                                          \
    X(s64, int64_t, S, "l", INT64_MAX, 9223372036854774784.0, __VA_ARGS__)
/* name, type in a register, conversion from the register's value */
#define FLOATS(X, ...)                                                                                                 \
    X(f16, uint16_t, ptx_from_f16, __VA_ARGS__)                                                                        \
    X(bf16, uint16_t, ptx_from_bf16, __VA_ARGS__)                                                                      \
    X(f32, float, (double), __VA_ARGS__)                                                                               \
    X(f64, double, (double), __VA_ARGS__)

/* from an integer */
#define FROM_INTEGER(t, type, sign, letter, max, top, ...)                                                             \
    CONVERT(u8_##t, uint8_t, type, a[l])                                                                               \
    CONVERT(s8_##t, int8_t, type, a[l])                                                                                \
    CONVERT(u16_##t, uint16_t, type, a[l])                                                                             \
    CONVERT(s16_##t, int16_t, type, a[l])                                                                              \
    CONVERT(u32_##t, uint32_t, type, a[l])                                                                             \
    CONVERT(s32_##t, int32_t, type, a[l])                                                                              \
    CONVERT(u64_##t, uint64_t, type, a[l])                                                                             \
    CONVERT(s64_##t, int64_t, type, a[l])                                                                              \
    CONVERT(f32_##t, float, type, a[l])                                                                                \
    CONVERT(f64_##t, double, type, a[l])                                                                               \
    CONVERT(f16_##t, uint16_t, type, ptx_to_f16(ptx_round_to_odd((double)a[l])))                                       \
    CONVERT(bf16_##t, uint16_t, type, ptx_to_bf16(ptx_round_to_odd((double)a[l])))
INTEGERS(FROM_INTEGER, )

/* from a float to an integer */
#define VALUE_S(read, max, top) to_signed(read(a[l]), how, -(top) - ((top) < 9e18 ? 1 : 1024), top, max)
#define VALUE_U(read, max, top) to_unsigned(read(a[l]), how, top, max)
#define TO_INTEGER(t, type, sign, letter, max, top, from, from_type, read)                                             \
    CONVERT(t##_##from, type, from_type, VALUE_##sign(read, max, top))
#define EACH_FLOAT(from, from_type, read, ...) INTEGERS(TO_INTEGER, from, from_type, read)
FLOATS(EACH_FLOAT, )

/* between floats */
CONVERT(f32_f16, float, uint16_t, ptx_result(ptx_from_f16(a[l])))
CONVERT(f32_bf16, float, uint16_t, ptx_from_bf16(a[l]))
CONVERT(f64_f16, double, uint16_t, ptx_from_f16(a[l]))
CONVERT(f64_f32, double, float, a[l])
CONVERT(f16_f32, uint16_t, float, ptx_to_f16(a[l]))
CONVERT(bf16_f32, uint16_t, float, ptx_to_bf16(a[l]))
CONVERT(f16_f64, uint16_t, double, ptx_to_f16(ptx_round_to_odd(a[l])))
CONVERT(bf16_f64, uint16_t, double, ptx_to_bf16(ptx_round_to_odd(a[l])))
CONVERT(f32_f64, float, double, ptx_result((float)a[l]))
CONVERT(f32_f32, float, float, ptx_result(to_integral(a[l], how)))
CONVERT(ftz_f32, float, float, ptx_result(ptx_flush(a[l])))
CONVERT(sat_f32, float, float, saturate(a[l]))
CONVERT(f64_f64, double, double, round_to_integer(a[l], how))
CONVERT(f16_f16, uint16_t, uint16_t, ptx_to_f16(to_integral(ptx_from_f16(a[l]), how)))
CONVERT(sat_s32_s64, int32_t, int64_t, clamp(a[l], INT32_MIN, INT32_MAX))
CONVERT(sat_s16_s32, int16_t, int32_t, clamp(a[l], INT16_MIN, INT16_MAX))
CONVERT(sat_s8_s32, int8_t, int32_t, clamp(a[l], INT8_MIN, INT8_MAX))
CONVERT(sat_u8_s32, uint8_t, int32_t, clamp(a[l], 0, UINT8_MAX))

/* cvt.rn.f16x2.f32 d, a, b: a is the upper half. */
PTX_MIXED(f16x2_f32, uint32_t, float, float, char, char, (uint32_t)ptx_to_f16(a[l]) << 16 | ptx_to_f16(b[l]))
PTX_MIXED(bf16x2_f32, uint32_t, float, float, char, char, (uint32_t)ptx_to_bf16(a[l]) << 16 | ptx_to_bf16(b[l]))

#define ROW_FLOAT(to, letter, from, type)                                                                              \
    { "cvt.rn." #to "." #from, letter "=x", to##_##from, .element = sizeof(type) }
#define ROWS_FROM_INTEGER(t, type, sign, letter, max, top, ...)                                                        \
    {"cvt.u8." #t, "y=x", u8_##t, .element = sizeof(type)}, {"cvt.s8." #t, "y=x", s8_##t, .element = sizeof(type)},    \
        {"cvt.u16." #t, "y=x", u16_##t, .element = sizeof(type)},                                                      \
        {"cvt.s16." #t, "y=x", s16_##t, .element = sizeof(type)},                                                      \
        {"cvt.u32." #t, "w=x", u32_##t, .element = sizeof(type)},                                                      \
        {"cvt.s32." #t, "w=x", s32_##t, .element = sizeof(type)},                                                      \
        {"cvt.u64." #t, "l=x", u64_##t, .element = sizeof(type)},                                                      \
        {"cvt.s64." #t, "l=x", s64_##t, .element = sizeof(type)}, ROW_FLOAT(f32, "w", t, type),                        \
        ROW_FLOAT(f64, "l", t, type), ROW_FLOAT(f16, "h", t, type), ROW_FLOAT(bf16, "h", t, type),
#define ROWS_TO_INTEGER(t, type, sign, letter, max, top, from, from_type, read)                                        \
    {"cvt.rni[.ftz][.sat]." #t "." #from, letter "=x", t##_##from, TO_NEAREST, sizeof(from_type)},                     \
        {"cvt.rzi[.ftz][.sat]." #t "." #from, letter "=x", t##_##from, TOWARDS_ZERO, sizeof(from_type)},               \
        {"cvt.rmi[.ftz][.sat]." #t "." #from, letter "=x", t##_##from, DOWN, sizeof(from_type)},                       \
        {"cvt.rpi[.ftz][.sat]." #t "." #from, letter "=x", t##_##from, UP, sizeof(from_type)},
#define ROWS_EACH_FLOAT(from, from_type, read, ...) INTEGERS(ROWS_TO_INTEGER, from, from_type, read)
#define ROWS_INTEGRAL(t, letter, size)                                                                                 \
    {"cvt.rni." #t "." #t, letter "=" letter, t##_##t, TO_NEAREST, size},                                              \
        {"cvt.rzi." #t "." #t, letter "=" letter, t##_##t, TOWARDS_ZERO, size},                                        \
        {"cvt.rmi." #t "." #t, letter "=" letter, t##_##t, DOWN, size},                                                \
        {"cvt.rpi." #t "." #t, letter "=" letter, t##_##t, UP, size},
static const ptx_form forms[] = {{"cvt[.ftz].f32.f16", "w=h", f32_f16},
                                 {"cvt.f32.bf16", "w=h", f32_bf16},
                                 {"cvt.f64.f16", "l=h", f64_f16},
                                 {"cvt.f64.f32", "l=w", f64_f32},
                                 {"cvt.rn.f16.f32", "h=w", f16_f32},
                                 {"cvt.rn.bf16.f32", "h=w", bf16_f32},
                                 {"cvt.rn.f16.f64", "h=l", f16_f64},
                                 {"cvt.rn.bf16.f64", "h=l", bf16_f64},
                                 {"cvt.rn.f32.f64", "w=l", f32_f64},
                                 {"cvt.rn.f16x2.f32", "w=ww", f16x2_f32},
                                 {"cvt.rn.bf16x2.f32", "w=ww", bf16x2_f32},
                                 {"cvt.ftz.f32.f32", "w=w", ftz_f32},
                                 {"cvt[.ftz].sat.f32.f32", "w=w", sat_f32},
                                 {"cvt.sat.s32.s64", "w=l", sat_s32_s64},
                                 {"cvt.sat.s16.s32", "h=w", sat_s16_s32},
                                 {"cvt.sat.s8.s32", "y=w", sat_s8_s32},
                                 {"cvt.sat.u8.s32", "y=w", sat_u8_s32},
                                 ROWS_INTEGRAL(f32, "w", 4) ROWS_INTEGRAL(f64, "l", 8) ROWS_INTEGRAL(f16, "h", 2)
                                     INTEGERS(ROWS_FROM_INTEGER, ) FLOATS(ROWS_EACH_FLOAT, )};
const ptx_table PTX_VARIANT(ptx_convert_table) = PTX_TABLE(forms);
