/* The blocks of GGUF files (ggml-quants.c of https://github.com/ggml-org/ggml defines them): integers of few bits,
 * scaled by an f16 number of the block. With K, a block of 256 has eight or sixteen parts, whose scales are integers
 * of 6 or 8 bits. Compiled without contraction, so that products and sums round as in gguf.quants of Python. */
#include "core/gguf.h"
#include "core/half.h"

#include <string.h>

enum { SMALL = 32, LARGE = 256 };

static const struct {
    const char *name;
    int64_t values;
    size_t bytes;
} types[CLEAT_GGUF_TYPES + 1] = {
    [CLEAT_GGUF_TYPE_F32] = {"F32", 1, 4},         [CLEAT_GGUF_TYPE_F16] = {"F16", 1, 2},
    [CLEAT_GGUF_TYPE_BF16] = {"BF16", 1, 2},       [CLEAT_GGUF_TYPE_Q4_0] = {"Q4_0", SMALL, 18},
    [CLEAT_GGUF_TYPE_Q4_1] = {"Q4_1", SMALL, 20},  [CLEAT_GGUF_TYPE_Q5_0] = {"Q5_0", SMALL, 22},
    [CLEAT_GGUF_TYPE_Q5_1] = {"Q5_1", SMALL, 24},  [CLEAT_GGUF_TYPE_Q8_0] = {"Q8_0", SMALL, 34},
    [CLEAT_GGUF_TYPE_Q4_K] = {"Q4_K", LARGE, 144}, [CLEAT_GGUF_TYPE_Q5_K] = {"Q5_K", LARGE, 176},
    [CLEAT_GGUF_TYPE_Q6_K] = {"Q6_K", LARGE, 210},
};

const char *cleat_gguf_type_name(cleat_gguf_type type) {
    return types[type].name ? types[type].name : "unknown";
}

int64_t cleat_gguf_block_values(cleat_gguf_type type) {
    return types[type].values;
}

size_t cleat_gguf_block_bytes(cleat_gguf_type type) {
    return types[type].bytes;
}

/* The f16 number at `at`. */
static float half(const uint8_t *at) {
    uint16_t bits;
    float value;
    memcpy(&bits, at, sizeof bits);
    cleat_from_f16(&bits, 1, &value);
    return value;
}

/* Q4_0, Q4_1, Q5_0, Q5_1: a scale, then with `has_least` the value of 0, then with `has_fifth` the fifth bits of all 32
 * values, then the lower four bits: of value i in byte i, of value 16 + i above it. */
static void unpack_small(const uint8_t *block, bool has_least, bool has_fifth, float *values) {
    const float scale = half(block), least = has_least ? half(block + 2) : 0;
    const int middle = has_least ? 0 : has_fifth ? 16 : 8;
    uint32_t fifth = 0;
    block += has_least ? 4 : 2;
    if (has_fifth) memcpy(&fifth, block, sizeof fifth);
    block += has_fifth ? sizeof fifth : 0;
    for (int i = 0; i < SMALL; ++i) {
        const int low = i < SMALL / 2 ? block[i] & 15 : block[i - SMALL / 2] >> 4;
        const float whole = (float)((low | (int)(fifth >> i & 1) << 4) - middle);
        values[i] = has_least ? scale * whole + least : scale * whole;
    }
}

static void unpack_q8_0(const uint8_t *block, float *values) {
    const float scale = half(block);
    for (int i = 0; i < SMALL; ++i) values[i] = (float)(int8_t)block[2 + i] * scale;
}

/* The 6-bit scale and least value of part k of eight, from 12 bytes. */
static void read_scales(const uint8_t *packed, int k, int *scale, int *least) {
    *scale = k < 4 ? packed[k] & 63 : (packed[k + 4] & 15) | (packed[k - 4] >> 2 & 48);
    *least = k < 4 ? packed[k + 4] & 63 : packed[k + 4] >> 4 | (packed[k] >> 2 & 48);
}

/* Q4_K and Q5_K: the scales of the scales and of the least values, 12 bytes of these, then with `has_fifth` 32 bytes
 * with bit k of byte i for value i of part k, then the lower four bits: two parts in 32 bytes. */
static void unpack_k(const uint8_t *block, bool has_fifth, float *values) {
    const float scale = half(block), least = half(block + 2);
    const uint8_t *fifth = block + 16, *low = has_fifth ? fifth + SMALL : fifth;
    for (int k = 0; k < LARGE / SMALL; ++k) {
        int s, m;
        read_scales(block + 4, k, &s, &m);
        const float by = scale * (float)s, less = least * (float)m;
        for (int i = 0; i < SMALL; ++i) {
            const int nibble = low[k / 2 * SMALL + i] >> (k % 2 ? 4 : 0) & 15;
            const int high = has_fifth ? (fifth[i] >> k & 1) << 4 : 0;
            values[k * SMALL + i] = by * (float)(nibble | high) - less;
        }
    }
}

bool cleat_gguf_codes(cleat_gguf_type type, const void *blocks, int64_t k, uint8_t codes[32], float scale_least[2]) {
    const bool is_large = type == CLEAT_GGUF_TYPE_Q4_K, is_centred = type == CLEAT_GGUF_TYPE_Q4_0;
    if (!is_large && !is_centred && type != CLEAT_GGUF_TYPE_Q4_1) return false;
    const int part = is_large ? (int)(k % (LARGE / SMALL)) : 0;
    const uint8_t *block = (const uint8_t *)blocks + (size_t)(is_large ? k / (LARGE / SMALL) : k) * types[type].bytes;
    const uint8_t *low = block + (is_large ? 16 + part / 2 * SMALL : is_centred ? 2 : 4);
    scale_least[0] = half(block);
    scale_least[1] = is_centred ? -8 * scale_least[0] : half(block + 2);
    for (int i = 0; i < SMALL; ++i)
        codes[i] = is_large ? low[i] >> part % 2 * 4 & 15 : i < SMALL / 2 ? low[i] & 15 : low[i - SMALL / 2] >> 4;
    if (is_large) {
        int scale, least;
        read_scales(block + 4, part, &scale, &least);
        scale_least[0] *= (float)scale;
        scale_least[1] *= -(float)least;
    }
    return true;
}

/* Q6_K: lower four bits of 2 x 128 values in 64 bytes each, upper two bits in 32 bytes each, 16 scales, their scale. */
static void unpack_q6_k(const uint8_t *block, float *values) {
    const uint8_t *low = block, *high = block + LARGE / 2;
    const int8_t *scales = (const int8_t *)(high + LARGE / 4);
    const float scale = half(block + 208);
    for (int i = 0; i < LARGE; ++i) {
        const int part = i / 128, group = i % 128 / SMALL, at = i % SMALL;
        const int nibble = low[64 * part + group % 2 * SMALL + at] >> (group / 2 ? 4 : 0) & 15;
        const int whole = (nibble | (high[SMALL * part + at] >> 2 * group & 3) << 4) - 32;
        values[i] = scale * (float)scales[i / 16] * (float)whole;
    }
}

void cleat_gguf_unpack(cleat_gguf_type type, const void *blocks, size_t count, float *values) {
    if (type == CLEAT_GGUF_TYPE_F32) memcpy(values, blocks, count * sizeof *values);
    if (type == CLEAT_GGUF_TYPE_F16) cleat_from_f16(blocks, count, values);
    if (type == CLEAT_GGUF_TYPE_BF16) cleat_from_bf16(blocks, count, values);
    if (types[type].values <= 1) return;
    const uint8_t *block = blocks;
    for (size_t i = 0; i < count; ++i, block += types[type].bytes, values += types[type].values) {
        switch (type) {
        case CLEAT_GGUF_TYPE_Q4_0:
        case CLEAT_GGUF_TYPE_Q4_1:
            unpack_small(block, type == CLEAT_GGUF_TYPE_Q4_1, false, values);
            break;
        case CLEAT_GGUF_TYPE_Q5_0:
        case CLEAT_GGUF_TYPE_Q5_1:
            unpack_small(block, type == CLEAT_GGUF_TYPE_Q5_1, true, values);
            break;
        case CLEAT_GGUF_TYPE_Q8_0:
            unpack_q8_0(block, values);
            break;
        case CLEAT_GGUF_TYPE_Q4_K:
        case CLEAT_GGUF_TYPE_Q5_K:
            unpack_k(block, type == CLEAT_GGUF_TYPE_Q5_K, values);
            break;
        default:
            unpack_q6_k(block, values);
        }
    }
}
