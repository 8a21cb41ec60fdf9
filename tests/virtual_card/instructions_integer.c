/* Integer and bit instructions. */
#include "lanes.h"

/* --- results that need more than an expression */

static inline int64_t divide_s(int64_t a, int64_t b) {
    return b == 0 ? -1 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
static inline int64_t remainder_s(int64_t a, int64_t b) {
    return b == 0 ? a : b == -1 ? 0 : a % b;
}
static inline uint64_t divide_u(uint64_t a, uint64_t b) {
    return b == 0 ? UINT64_MAX : a / b;
}
static inline uint64_t remainder_u(uint64_t a, uint64_t b) {
    return b == 0 ? a : a % b;
}
static inline uint64_t high_u64(uint64_t a, uint64_t b) {
    return (uint64_t)(((unsigned __int128)a * b) >> 64);
}
static inline int64_t high_s64(int64_t a, int64_t b) {
    return (int64_t)(((__int128)a * b) >> 64);
}
static inline uint32_t reverse_bits(uint32_t x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
static inline uint64_t reverse_bits64(uint64_t x) {
    return (uint64_t)reverse_bits((uint32_t)x) << 32 | reverse_bits((uint32_t)(x >> 32));
}
static inline uint32_t leading_zeros(uint64_t x, int width) {
    return x ? (uint32_t)(__builtin_clzll(x) - 64 + width) : (uint32_t)width;
}

/* The bytes of b:a selected by the nibbles of `selector`; bit 3 of a nibble replicates the byte's sign. */
static inline uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
    const uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
        const uint32_t nibble = selector >> 4 * i & 15, byte = (uint32_t)(bytes >> 8 * (nibble & 7)) & 255;
        result |= (nibble & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * i;
    }
    return result;
}

/* Up to `length` bits of `bits` from `position` on; signed: the highest one is extended. */
static inline uint64_t extract(uint64_t bits, uint32_t position, uint32_t length, uint32_t width, bool is_signed) {
    position &= 255, length &= 255;
    if (length == 0) return 0;
    const uint32_t last = position + length - 1 < width ? position + length - 1 : width - 1;
    const uint32_t there = position > last ? 0 : last - position + 1;
    const uint64_t kept = there >= 64 ? UINT64_MAX : (UINT64_C(1) << there) - 1;
    const uint64_t field = there ? bits >> position & kept : 0;
    return is_signed && bits >> last & 1 ? field | ~kept : field;
}
static inline uint64_t insert(uint64_t field, uint64_t bits, uint32_t position, uint32_t length, int width) {
    position &= 255, length &= 255;
    if (position >= (uint32_t)width || length == 0) return bits;
    const uint64_t ones = length >= 64 ? UINT64_MAX : (UINT64_C(1) << length) - 1;
    return (bits & ~(ones << position)) | (field & ones) << position;
}

static inline uint32_t lookup(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t result = 0;
    for (uint32_t i = 0; i < 8; ++i)
        if (table >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return result;
}

/* --- types: name, lane type, operand letter */

#define UNSIGNED(X, ...)                                                                                               \
    X(u16, uint16_t, "h", __VA_ARGS__) X(u32, uint32_t, "w", __VA_ARGS__) X(u64, uint64_t, "l", __VA_ARGS__)
#define SIGNED(X, ...)                                                                                                 \
    X(s16, int16_t, "h", __VA_ARGS__) X(s32, int32_t, "w", __VA_ARGS__) X(s64, int64_t, "l", __VA_ARGS__)
#define BITS(X, ...)                                                                                                   \
    X(b16, uint16_t, "h", __VA_ARGS__) X(b32, uint32_t, "w", __VA_ARGS__) X(b64, uint64_t, "l", __VA_ARGS__)
/* Operations independent of the sign. */
#define EITHER(X, ...)                                                                                                 \
    UNSIGNED(X, __VA_ARGS__)                                                                                           \
    X(s16, uint16_t, "h", __VA_ARGS__) X(s32, uint32_t, "w", __VA_ARGS__) X(s64, uint64_t, "l", __VA_ARGS__)

/* --- the instructions */

#define BINARIES(X)                                                                                                    \
    EITHER(X, add, "add", 1u * a[l] + b[l])                                                                            \
    EITHER(X, sub, "sub", 1u * a[l] - b[l])                                                                            \
    EITHER(X, mul_lo, "mul.lo", 1u * a[l] * b[l])                                                                      \
    UNSIGNED(X, div, "div", divide_u(a[l], b[l]))                                                                      \
    SIGNED(X, div, "div", divide_s(a[l], b[l]))                                                                        \
    UNSIGNED(X, rem, "rem", remainder_u(a[l], b[l]))                                                                   \
    SIGNED(X, rem, "rem", remainder_s(a[l], b[l]))                                                                     \
    UNSIGNED(X, min, "min", a[l] < b[l] ? a[l] : b[l])                                                                 \
    SIGNED(X, min, "min", a[l] < b[l] ? a[l] : b[l])                                                                   \
    UNSIGNED(X, max, "max", a[l] > b[l] ? a[l] : b[l])                                                                 \
    SIGNED(X, max, "max", a[l] > b[l] ? a[l] : b[l])                                                                   \
    BITS(X, and, "and", a[l] & b[l])                                                                                   \
    BITS(X, or, "or", a[l] | b[l])                                                                                     \
    BITS(X, xor, "xor", a[l] ^ b[l])                                                                                   \
    X(u32, uint32_t, "w", mul_hi, "mul.hi", (uint64_t)a[l] * b[l] >> 32)                                               \
    X(s32, int32_t, "w", mul_hi, "mul.hi", (int64_t)a[l] * b[l] >> 32)                                                 \
    X(u64, uint64_t, "l", mul_hi, "mul.hi", high_u64(a[l], b[l]))                                                      \
    X(s64, int64_t, "l", mul_hi, "mul.hi", high_s64(a[l], b[l]))                                                       \
    X(u16, uint16_t, "h", mul_hi, "mul.hi", (1u * a[l] * b[l]) >> 16)                                                  \
    X(s16, int16_t, "h", mul_hi, "mul.hi", (a[l] * b[l]) >> 16)

#define UNARIES(X)                                                                                                     \
    X(s16, uint16_t, "h", neg, "neg", 0u - a[l])                                                                       \
    X(s32, uint32_t, "w", neg, "neg", 0u - a[l])                                                                       \
    X(s64, uint64_t, "l", neg, "neg", 0u - a[l])                                                                       \
    X(s16, uint16_t, "h", abs, "abs", a[l] >> 15 ? 0u - a[l] : a[l])                                                   \
    X(s32, uint32_t, "w", abs, "abs", a[l] >> 31 ? 0u - a[l] : a[l])                                                   \
    X(s64, uint64_t, "l", abs, "abs", a[l] >> 63 ? 0u - a[l] : a[l])                                                   \
    BITS(X, not, "not", ~a[l])                                                                                         \
    X(b32, uint32_t, "w", brev, "brev", reverse_bits(a[l]))                                                            \
    X(b64, uint64_t, "l", brev, "brev", reverse_bits64(a[l]))

#define TERNARIES(X)                                                                                                   \
    EITHER(X, mad_lo, "mad.lo", 1u * a[l] * b[l] + c[l])                                                               \
    X(u32, uint32_t, "w", mad_hi, "mad.hi", ((uint64_t)a[l] * b[l] >> 32) + c[l])                                      \
    X(s32, int32_t, "w", mad_hi, "mad.hi", (uint32_t)((int64_t)a[l] * b[l] >> 32) + (uint32_t)c[l])                    \
    X(u64, uint64_t, "l", mad_hi, "mad.hi", high_u64(a[l], b[l]) + c[l])                                               \
    X(s64, int64_t, "l", mad_hi, "mad.hi", (uint64_t)high_s64(a[l], b[l]) + (uint64_t)c[l])                            \
    X(u32, uint32_t, "w", mad24, "mad24.lo", (a[l] & 0xffffffu) * (b[l] & 0xffffffu) + c[l])                           \
    X(b32, uint32_t, "w", prmt, "prmt", permute(a[l], b[l], c[l]))                                                     \
    X(b32, uint32_t, "w", shf_l_wrap, "shf.l.wrap", ((uint64_t)b[l] << 32 | a[l]) << (c[l] & 31) >> 32)                \
    X(b32, uint32_t, "w", shf_r_wrap, "shf.r.wrap", ((uint64_t)b[l] << 32 | a[l]) >> (c[l] & 31))                      \
    X(b32, uint32_t, "w", shf_l_clamp, "shf.l.clamp", ((uint64_t)b[l] << 32 | a[l]) << (c[l] < 32 ? c[l] : 32) >> 32)  \
    X(b32, uint32_t, "w", shf_r_clamp, "shf.r.clamp", ((uint64_t)b[l] << 32 | a[l]) >> (c[l] < 32 ? c[l] : 32))

/* name, opcode, operands, result type, input type, result */
#define MIXED(X)                                                                                                       \
    X(mul_wide_u16, "mul.wide.u16", "w=hh", uint32_t, uint16_t, uint16_t, char, char, 1u * a[l] * b[l])                \
    X(mul_wide_s16, "mul.wide.s16", "w=hh", int32_t, int16_t, int16_t, char, char, a[l] * b[l])                        \
    X(mul_wide_u32, "mul.wide.u32", "l=ww", uint64_t, uint32_t, uint32_t, char, char, (uint64_t)a[l] * b[l])           \
    X(mul_wide_s32, "mul.wide.s32", "l=ww", int64_t, int32_t, int32_t, char, char, (int64_t)a[l] * b[l])               \
    X(mad_wide_u16, "mad.wide.u16", "w=hhw", uint32_t, uint16_t, uint16_t, uint32_t, char, 1u * a[l] * b[l] + c[l])    \
    X(mad_wide_s16, "mad.wide.s16", "w=hhw", uint32_t, int16_t, int16_t, uint32_t, char,                               \
      (uint32_t)(a[l] * b[l]) + c[l])                                                                                  \
    X(mad_wide_u32, "mad.wide.u32", "l=wwl", uint64_t, uint32_t, uint32_t, uint64_t, char,                             \
      (uint64_t)a[l] * b[l] + c[l])                                                                                    \
    X(mad_wide_s32, "mad.wide.s32", "l=wwl", uint64_t, int32_t, int32_t, uint64_t, char,                               \
      (uint64_t)((int64_t)a[l] * b[l]) + c[l])                                                                         \
    X(shl_b16, "shl.b16", "h=hw", uint16_t, uint16_t, uint32_t, char, char, b[l] > 15 ? 0u : (uint32_t)a[l] << b[l])   \
    X(shl_b32, "shl.b32", "w=ww", uint32_t, uint32_t, uint32_t, char, char, b[l] > 31 ? 0u : a[l] << (b[l] & 31))      \
    X(shl_b64, "shl.b64", "l=lw", uint64_t, uint64_t, uint32_t, char, char, b[l] > 63 ? 0u : a[l] << (b[l] & 63))      \
    X(shr_u16, "shr(.u16|.b16)", "h=hw", uint16_t, uint16_t, uint32_t, char, char, b[l] > 15 ? 0 : a[l] >> b[l])       \
    X(shr_u32, "shr(.u32|.b32)", "w=ww", uint32_t, uint32_t, uint32_t, char, char,                                     \
      b[l] > 31 ? 0u : a[l] >> (b[l] & 31))                                                                            \
    X(shr_u64, "shr(.u64|.b64)", "l=lw", uint64_t, uint64_t, uint32_t, char, char,                                     \
      b[l] > 63 ? 0u : a[l] >> (b[l] & 63))                                                                            \
    X(shr_s16, "shr.s16", "h=hw", int16_t, int16_t, uint32_t, char, char, a[l] >> (b[l] < 15 ? b[l] : 15))             \
    X(shr_s32, "shr.s32", "w=ww", int32_t, int32_t, uint32_t, char, char, a[l] >> (b[l] < 31 ? b[l] : 31))             \
    X(shr_s64, "shr.s64", "l=lw", int64_t, int64_t, uint32_t, char, char, a[l] >> (b[l] < 63 ? b[l] : 63))             \
    X(clz_b32, "clz.b32", "w=w", uint32_t, uint32_t, char, char, char, leading_zeros(a[l], 32))                        \
    X(clz_b64, "clz.b64", "w=l", uint32_t, uint64_t, char, char, char, leading_zeros(a[l], 64))                        \
    X(popc_b32, "popc.b32", "w=w", uint32_t, uint32_t, char, char, char, ptx_count_bits(a[l]))                         \
    X(popc_b64, "popc.b64", "w=l", uint32_t, uint64_t, char, char, char,                                               \
      ptx_count_bits((uint32_t)a[l]) + ptx_count_bits((uint32_t)(a[l] >> 32)))                                         \
    X(bfe_u32, "bfe.u32", "w=www", uint32_t, uint32_t, uint32_t, uint32_t, char, extract(a[l], b[l], c[l], 32, false)) \
    X(bfe_s32, "bfe.s32", "w=www", uint32_t, uint32_t, uint32_t, uint32_t, char, extract(a[l], b[l], c[l], 32, true))  \
    X(bfe_u64, "bfe.u64", "l=lww", uint64_t, uint64_t, uint32_t, uint32_t, char, extract(a[l], b[l], c[l], 64, false)) \
    X(bfe_s64, "bfe.s64", "l=lww", uint64_t, uint64_t, uint32_t, uint32_t, char, extract(a[l], b[l], c[l], 64, true))  \
    X(bfi_b32, "bfi.b32", "w=wwww", uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,                                  \
      insert(a[l], b[l], c[l], d[l], 32))                                                                              \
    X(bfi_b64, "bfi.b64", "l=llww", uint64_t, uint64_t, uint64_t, uint32_t, uint32_t,                                  \
      insert(a[l], b[l], c[l], d[l], 64))                                                                              \
    X(lop3_b32, "lop3.b32", "w=wwwn", uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, lookup(a[l], b[l], c[l], d[l]))

#define DEFINE_UNARY(t, type, letter, name, opcode, value) PTX_UNARY(name##_##t, type, value)
#define DEFINE_BINARY(t, type, letter, name, opcode, value) PTX_BINARY(name##_##t, type, value)
#define DEFINE_TERNARY(t, type, letter, name, opcode, value) PTX_TERNARY(name##_##t, type, value)
#define DEFINE_MIXED(name, opcode, operands, type, a, b, c, d, value) PTX_MIXED(name, type, a, b, c, d, value)
UNARIES(DEFINE_UNARY)
BINARIES(DEFINE_BINARY)
TERNARIES(DEFINE_TERNARY)
MIXED(DEFINE_MIXED)

#define ROW_UNARY(t, type, letter, name, opcode, value) {opcode "." #t, letter "=" letter, name##_##t},
#define ROW_BINARY(t, type, letter, name, opcode, value) {opcode "." #t, letter "=" letter letter, name##_##t},
#define ROW_TERNARY(t, type, letter, name, opcode, value) {opcode "." #t, letter "=" letter letter letter, name##_##t},
#define ROW_MIXED(name, opcode, operands, type, a, b, c, d, value) {opcode, operands, name},
static const ptx_form forms[] = {UNARIES(ROW_UNARY) BINARIES(ROW_BINARY) TERNARIES(ROW_TERNARY) MIXED(ROW_MIXED)};
const ptx_table PTX_VARIANT(ptx_integer_table) = PTX_TABLE(forms);
