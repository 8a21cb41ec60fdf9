/* Float and double instructions. */
#include "lanes.h"

/* --- the instructions: name, opcode, result of a lane; F is a float or double function */

#define BINARIES(X)                                                                                                    \
    X(add, "add[.rn]", F(a[l]) + F(b[l]))                                                                              \
    X(sub, "sub[.rn]", F(a[l]) - F(b[l]))                                                                              \
    X(mul, "mul[.rn]", F(a[l]) * F(b[l]))

/* Float only, also with .ftz, for which F flushes denormal inputs. */
#define FLOAT_BINARIES(X)                                                                                              \
    BINARIES(X)                                                                                                        \
    X(div, "div(.rn|.full|.approx)", F(a[l]) / F(b[l]))                                                                \
    X(min, "min", ptx_min(F(a[l]), F(b[l])))                                                                           \
    X(max, "max", ptx_max(F(a[l]), F(b[l])))                                                                           \
    X(min_nan, "min.NaN", a[l] != a[l] ? a[l] : b[l] != b[l] ? b[l] : ptx_min(F(a[l]), F(b[l])))                       \
    X(max_nan, "max.NaN", a[l] != a[l] ? a[l] : b[l] != b[l] ? b[l] : ptx_max(F(a[l]), F(b[l])))

#define FLOAT_UNARIES(X)                                                                                               \
    X(neg, "neg", -F(a[l]))                                                                                            \
    X(abs, "abs", fabsf(F(a[l])))

/* The special-function unit. */
#define SPECIAL(X)                                                                                                     \
    X(sqrt, "sqrt(.rn|.approx)", sqrtf(F(a[l])))                                                                       \
    X(rsqrt, "rsqrt.approx", 1.0f / sqrtf(F(a[l])))                                                                    \
    X(rcp, "rcp(.rn|.approx)", 1.0f / F(a[l]))                                                                         \
    X(ex2, "ex2.approx", exp2f(F(a[l])))                                                                               \
    X(lg2, "lg2.approx", log2f(F(a[l])))                                                                               \
    X(sin, "sin.approx", sinf(F(a[l])))                                                                                \
    X(cos, "cos.approx", cosf(F(a[l])))                                                                                \
    X(tanh, "tanh.approx", tanhf(F(a[l])))

#define DOUBLE_BINARIES(X)                                                                                             \
    BINARIES(X)                                                                                                        \
    X(div, "div.rn", a[l] / b[l])                                                                                      \
    X(min, "min", fmin(a[l], b[l]))                                                                                    \
    X(max, "max", fmax(a[l], b[l]))                                                                                    \
    X(copysign, "copysign", copysign(b[l], a[l]))
#define DOUBLE_UNARIES(X)                                                                                              \
    X(neg, "neg", -a[l])                                                                                               \
    X(abs, "abs", fabs(a[l]))                                                                                          \
    X(sqrt, "sqrt.rn", sqrt(a[l]))                                                                                     \
    X(rcp, "rcp.rn", 1.0 / a[l])                                                                                       \
    X(rcp_approx, "rcp.approx.ftz", 1.0 / a[l])                                                                        \
    X(rsqrt, "rsqrt.approx", 1.0 / sqrt(a[l]))

#define F(x) (x)
#define DEFINE_UNARY(name, opcode, value) PTX_UNARY(name##_f32, float, ptx_result(value))
#define DEFINE_BINARY(name, opcode, value) PTX_BINARY(name##_f32, float, ptx_result(value))
#define DEFINE_UNARY_F64(name, opcode, value) PTX_UNARY(name##_f64, double, value)
#define DEFINE_BINARY_F64(name, opcode, value) PTX_BINARY(name##_f64, double, value)
FLOAT_UNARIES(DEFINE_UNARY)
SPECIAL(DEFINE_UNARY)
FLOAT_BINARIES(DEFINE_BINARY)
DOUBLE_UNARIES(DEFINE_UNARY_F64)
DOUBLE_BINARIES(DEFINE_BINARY_F64)
PTX_TERNARY(fma_f32, float, ptx_result(__builtin_fmaf(a[l], b[l], c[l])))
/* Moves bits unchanged, even those of a NaN. */
PTX_BINARY(copysign_f32, uint32_t, (b[l] & 0x7fffffffu) | (a[l] & 0x80000000u))
PTX_TERNARY(fma_f64, double, __builtin_fma(a[l], b[l], c[l]))
#undef F

#define F(x) ptx_flush(x)
#define DEFINE_UNARY_FTZ(name, opcode, value) PTX_UNARY(name##_ftz, float, ptx_result(ptx_flush(value)))
#define DEFINE_BINARY_FTZ(name, opcode, value) PTX_BINARY(name##_ftz, float, ptx_result(ptx_flush(value)))
FLOAT_UNARIES(DEFINE_UNARY_FTZ)
SPECIAL(DEFINE_UNARY_FTZ)
FLOAT_BINARIES(DEFINE_BINARY_FTZ)
PTX_TERNARY(fma_ftz, float, ptx_result(ptx_flush(__builtin_fmaf(F(a[l]), F(b[l]), F(c[l])))))

/* Half types: computed exactly in float, or in double for fma, then rounded. */
#define HALF(X, t, read, write)                                                                                        \
    X(BINARY, add_##t, "add[.rn]." #t, "h=hh", write(read(a[l]) + read(b[l])))                                         \
    X(BINARY, sub_##t, "sub[.rn]." #t, "h=hh", write(read(a[l]) - read(b[l])))                                         \
    X(BINARY, mul_##t, "mul[.rn]." #t, "h=hh", write(read(a[l]) * read(b[l])))                                         \
    X(BINARY, min_##t, "min." #t, "h=hh", write(ptx_min(read(a[l]), read(b[l]))))                                      \
    X(BINARY, max_##t, "max." #t, "h=hh", write(ptx_max(read(a[l]), read(b[l]))))                                      \
    X(UNARY, neg_##t, "neg." #t, "h=h", a[l] ^ 0x8000u)                                                                \
    X(UNARY, abs_##t, "abs." #t, "h=h", a[l] & 0x7fffu)                                                                \
    X(TERNARY, fma_##t, "fma.rn." #t, "h=hhh", write(ptx_round_to_odd((double)read(a[l]) * read(b[l]) + read(c[l]))))
#define DEFINE_HALF(arity, name, opcode, operands, value) PTX_##arity(name, uint16_t, value)
HALF(DEFINE_HALF, f16, ptx_from_f16, ptx_to_f16)
HALF(DEFINE_HALF, bf16, ptx_from_bf16, ptx_to_bf16)

#define ROW_UNARY(name, opcode, value) {opcode ".f32", "w=w", name##_f32}, {opcode ".ftz.f32", "w=w", name##_ftz},
#define ROW_SPECIAL(name, opcode, value)                                                                               \
    {opcode ".f32", "w=w", name##_f32, .special = true}, {opcode ".ftz.f32", "w=w", name##_ftz, .special = true},
#define ROW_BINARY(name, opcode, value) {opcode ".f32", "w=ww", name##_f32}, {opcode ".ftz.f32", "w=ww", name##_ftz},
#define ROW_UNARY_F64(name, opcode, value) {opcode ".f64", "l=l", name##_f64},
#define ROW_BINARY_F64(name, opcode, value) {opcode ".f64", "l=ll", name##_f64},
#define ROW_HALF(arity, name, opcode, operands, value) {opcode, operands, name},
static const ptx_form forms[] = {{"fma.rn.f32", "w=www", fma_f32, .fma = true},
                                 {"fma.rn.ftz.f32", "w=www", fma_ftz, .fma = true},
                                 {"mad.rn.f32", "w=www", fma_f32, .fma = true},
                                 {"fma.rn.f64", "l=lll", fma_f64},
                                 {"copysign.f32", "w=ww", copysign_f32},
                                 FLOAT_UNARIES(ROW_UNARY) SPECIAL(ROW_SPECIAL) FLOAT_BINARIES(ROW_BINARY)
                                     DOUBLE_UNARIES(ROW_UNARY_F64) DOUBLE_BINARIES(ROW_BINARY_F64)
                                         HALF(ROW_HALF, f16, , ) HALF(ROW_HALF, bf16, , )};
const ptx_table PTX_VARIANT(ptx_float_table) = PTX_TABLE(forms);
