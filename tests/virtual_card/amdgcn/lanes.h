/* Macros of the arithmetic files: functions over lanes as expressions. */
#ifndef VIRTUAL_CARD_GCN_LANES_H
#define VIRTUAL_CARD_GCN_LANES_H

#include "wave.h"

#include "../lanes.h"

#include <math.h>

/* to[l] = value, an expression of the lane's operands a, b, c of that type. */
#define GCN_LANE_FUNCTION(name, type, value)                                                                           \
    static void name(const gcn_lanes *x) {                                                                             \
        typedef type lane;                                                                                             \
        lane *to = (lane *)(void *)x->to;                                                                              \
        const lane *a_row = (const lane *)(const void *)x->a, *b_row = (const lane *)(const void *)x->b,               \
                   *c_row = (const lane *)(const void *)x->c;                                                          \
        PTX_INDEPENDENT for (int l = 0; l < x->lanes; ++l) {                                                           \
            const lane a = a_row[l], b = b_row[l], c = c_row[l];                                                       \
            (void)a, (void)b, (void)c;                                                                                 \
            to[l] = (lane)(value);                                                                                     \
        }                                                                                                              \
    }
#define GCN_FLOAT(name, value) GCN_LANE_FUNCTION(name, float, value)
#define GCN_INTEGER(name, value) GCN_LANE_FUNCTION(name, uint32_t, value)
#define GCN_SIGNED(name, value) GCN_LANE_FUNCTION(name, int32_t, value)

/* The 64-bit form: a b c have 64 bits, a32 b32 c32 have 32. */
#define GCN_LONG(name, value)                                                                                          \
    static void name(const gcn_lanes *x) {                                                                             \
        PTX_INDEPENDENT for (int l = 0; l < x->lanes; ++l) {                                                           \
            const uint32_t a32 = x->a[l], b32 = x->b[l], c32 = x->c[l];                                                \
            const uint64_t a = a32 | (uint64_t)x->a_high[l] << 32, b = b32 | (uint64_t)x->b_high[l] << 32,             \
                           c = c32 | (uint64_t)x->c_high[l] << 32;                                                     \
            (void)a, (void)b, (void)c, (void)a32, (void)b32, (void)c32;                                                \
            const uint64_t result = (uint64_t)(value);                                                                 \
            x->to[l] = (uint32_t)result;                                                                               \
            x->high[l] = (uint32_t)(result >> 32);                                                                     \
        }                                                                                                              \
    }

/* Two floats per lane. */
#define GCN_FLOAT_PAIR(name, value)                                                                                    \
    static void name(const gcn_lanes *x) {                                                                             \
        for (int k = 0; k < 2; ++k) {                                                                                  \
            float *to = (float *)(void *)(k ? x->high : x->to);                                                        \
            const float *a_row = (const float *)(const void *)(k ? x->a_high : x->a);                                  \
            const float *b_row = (const float *)(const void *)(k ? x->b_high : x->b);                                  \
            const float *c_row = (const float *)(const void *)(k ? x->c_high : x->c);                                  \
            PTX_INDEPENDENT for (int l = 0; l < x->lanes; ++l) {                                                       \
                const float a = a_row[l], b = b_row[l], c = c_row[l];                                                  \
                (void)a, (void)b, (void)c;                                                                             \
                to[l] = (value);                                                                                       \
            }                                                                                                          \
        }                                                                                                              \
    }

/* Halves: a, b, c are floats; the result is rounded to f16. */
#define GCN_HALF(name, value)                                                                                          \
    static void name(const gcn_lanes *x) {                                                                             \
        for (int l = 0; l < x->lanes; ++l) {                                                                           \
            const float a = ptx_from_f16((uint16_t)x->a[l]), b = ptx_from_f16((uint16_t)x->b[l]),                      \
                        c = ptx_from_f16((uint16_t)x->c[l]);                                                           \
            (void)a, (void)b, (void)c;                                                                                 \
            x->to[l] = ptx_to_f16((float)(value));                                                                     \
        }                                                                                                              \
    }
#define GCN_HALF_PAIR(name, value)                                                                                     \
    static uint16_t name##_half(float a, float b, float c) {                                                           \
        (void)a, (void)b, (void)c;                                                                                     \
        return ptx_to_f16((float)(value));                                                                             \
    }                                                                                                                  \
    static void name(const gcn_lanes *x) {                                                                             \
        for (int l = 0; l < x->lanes; ++l) {                                                                           \
            const uint32_t a = x->a[l], b = x->b[l], c = x->c[l];                                                      \
            const uint32_t low =                                                                                       \
                name##_half(ptx_from_f16((uint16_t)a), ptx_from_f16((uint16_t)b), ptx_from_f16((uint16_t)c));          \
            const uint32_t high = name##_half(ptx_from_f16((uint16_t)(a >> 16)), ptx_from_f16((uint16_t)(b >> 16)),    \
                                              ptx_from_f16((uint16_t)(c >> 16)));                                      \
            x->to[l] = low | high << 16;                                                                               \
        }                                                                                                              \
    }

#endif
