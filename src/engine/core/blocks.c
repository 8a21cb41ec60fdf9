/* Quantisation of frozen weights to blocks, and back. */
#include "core/blocks.h"

#include "core/half.h"
#include "core/memory.h"
#include "lib/nf4_tables.clh"

#include <math.h>
#include <string.h>

enum {
    Q8_BLOCK = 32,
    Q4_BLOCK = 32,
    NF4_BLOCK = 64,
    NF4_CODES = 16,
    SCALES = 256,   /* scales of NF4 that share a scale */
    ZERO_CODE = 127 /* of a scale */
};

static const float nf4_values[NF4_CODES] = NF4_VALUES, scale_codes[SCALES / 2] = SCALE_CODES;

static float scale_of_code(int code) {
    return code > ZERO_CODE   ? scale_codes[code - ZERO_CODE - 1]
           : code < ZERO_CODE ? -scale_codes[ZERO_CODE - 1 - code]
                              : 0.0f;
}

/* Where the floats of NF4 begin, in bytes. */
static int64_t nf4_floats(int64_t elements) {
    return (elements / 2 + elements / NF4_BLOCK + 3) / 4 * 4;
}

int64_t cleat_block_codes(cleat_dtype dtype, int64_t elements) {
    return dtype == CLEAT_Q8 ? elements : dtype == CLEAT_HALF ? elements * 2 : elements / 2;
}

int64_t cleat_block_bytes(cleat_dtype dtype, int64_t elements) {
    if (dtype == CLEAT_Q8) return elements + elements / Q8_BLOCK * 2;
    if (dtype == CLEAT_HALF) return elements * 2;
    if (dtype == CLEAT_Q4) return elements / 2 + elements / Q4_BLOCK * 4;
    const int64_t parts = (elements / NF4_BLOCK + SCALES - 1) / SCALES;
    return nf4_floats(elements) + (1 + parts) * (int64_t)sizeof(float);
}

const char *cleat_block_name(cleat_dtype dtype) {
    static const char *const names[] = {
        [CLEAT_Q8] = "q8", [CLEAT_NF4] = "nf4", [CLEAT_Q4] = "q4", [CLEAT_HALF] = "half"};
    return (size_t)dtype < sizeof names / sizeof *names && names[dtype] ? names[dtype] : "f32";
}

cleat_dtype cleat_block_find(const char *name) {
    int dtype = CLEAT_HALF;
    while (dtype >= CLEAT_Q8 && strcmp(name, cleat_block_name((cleat_dtype)dtype)) != 0) --dtype;
    return dtype >= CLEAT_Q8 ? (cleat_dtype)dtype : CLEAT_F32;
}

int cleat_block_pieces(cleat_dtype dtype, int64_t elements, int64_t first, int64_t count,
                       cleat_block_piece pieces[CLEAT_BLOCK_PIECES]) {
    const int64_t codes = cleat_block_codes(dtype, count), all = cleat_block_codes(dtype, elements),
                  rest = first + count;
    pieces[0] = (cleat_block_piece){cleat_block_codes(dtype, first), codes};
    if (dtype != CLEAT_NF4) {
        const int64_t before = cleat_block_bytes(dtype, first) - cleat_block_codes(dtype, first);
        pieces[1] = (cleat_block_piece){all + before, cleat_block_bytes(dtype, count) - codes};
        return pieces[1].bytes ? 2 : 1;
    }
    const int64_t floats = nf4_floats(elements), size = (int64_t)sizeof(float), span = CLEAT_BLOCK_SPAN;
    pieces[1] = (cleat_block_piece){all + first / NF4_BLOCK, nf4_floats(count) - codes};
    pieces[2] = (cleat_block_piece){floats, size};
    pieces[3] =
        (cleat_block_piece){floats + (1 + first / span) * size, ((rest + span - 1) / span - first / span) * size};
    return 4;
}

static float largest_of(const float *values, int64_t count) {
    float most = 0;
    for (int64_t i = 0; i < count; ++i) most = fmaxf(most, fabsf(values[i]));
    return most;
}

static bool all_finite(const float *values, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
        if (!isfinite(values[i])) return false;
    return true;
}

/* --- q8 ------------------------------------------------------------------------------------------------------- */

/* Returns false if a scale is beyond f16. */
static bool quantise_q8(const float *values, int64_t elements, int8_t *codes) {
    uint8_t *scales = (uint8_t *)codes + elements;
    for (int64_t i = 0; i < elements; i += Q8_BLOCK) {
        const float scale = largest_of(values + i, Q8_BLOCK) / 127, inverse = scale > 0 ? 1 / scale : 0;
        uint16_t bits;
        if (scale >= 65520.0f || !isfinite(inverse)) return false;
        cleat_to_f16(&scale, 1, &bits);
        memcpy(scales + i / Q8_BLOCK * 2, &bits, sizeof bits);
        for (int64_t k = i; k < i + Q8_BLOCK; ++k) codes[k] = (int8_t)roundf(values[k] * inverse);
    }
    return true;
}

static void values_q8(const int8_t *codes, int64_t elements, float *values) {
    const uint8_t *scales = (const uint8_t *)codes + elements;
    for (int64_t i = 0; i < elements; i += Q8_BLOCK) {
        uint16_t bits;
        float scale;
        memcpy(&bits, scales + i / Q8_BLOCK * 2, sizeof bits);
        cleat_from_f16(&bits, 1, &scale);
        for (int64_t k = i; k < i + Q8_BLOCK; ++k) values[k] = (float)codes[k] * scale;
    }
}

/* --- q4 ------------------------------------------------------------------------------------------------------- */

/* Stores a block of a matrix of `elements` values, and converts its scale and least value to what they are then.
 * Returns false if one of them is beyond f16. */
static bool put_q4(uint8_t *bytes, int64_t elements, int64_t block, const uint8_t *codes, float scale_least[2]) {
    uint8_t *to = bytes + block * Q4_BLOCK / 2;
    uint16_t bits[2];
    for (int j = 0; j < Q4_BLOCK / 2; ++j) to[j] = (uint8_t)(codes[j] | codes[j + Q4_BLOCK / 2] << 4);
    cleat_to_f16(scale_least, 2, bits);
    memcpy(bytes + elements / 2 + block * (int64_t)sizeof bits, bits, sizeof bits);
    cleat_from_f16(bits, 2, scale_least);
    return isfinite(scale_least[0]) && isfinite(scale_least[1]);
}

static bool quantise_q4(const float *values, int64_t elements, uint8_t *bytes) {
    uint8_t codes[Q4_BLOCK];
    for (int64_t b = 0; b < elements / Q4_BLOCK; ++b, values += Q4_BLOCK) {
        float least = values[0], most = values[0];
        for (int i = 1; i < Q4_BLOCK; ++i) least = fminf(least, values[i]), most = fmaxf(most, values[i]);
        const float scale = (most - least) / 15, inverse = scale > 0 ? 1 / scale : 0;
        for (int i = 0; i < Q4_BLOCK; ++i) codes[i] = (uint8_t)fminf((values[i] - least) * inverse + 0.5f, 15);
        if (!isfinite(inverse) || !put_q4(bytes, elements, b, codes, (float[]){scale, least})) return false;
    }
    return true;
}

static void values_q4(const uint8_t *bytes, int64_t elements, float *values) {
    for (int64_t b = 0; b < elements / Q4_BLOCK; ++b) {
        uint16_t bits[2];
        float by[2];
        memcpy(bits, bytes + elements / 2 + b * (int64_t)sizeof bits, sizeof bits);
        cleat_from_f16(bits, 2, by);
        for (int64_t i = b * Q4_BLOCK; i < (b + 1) * Q4_BLOCK; ++i)
            values[i] = (float)(bytes[i / 32 * 16 + i % 16] >> (i % 32 / 16 * 4) & 15) * by[0] + by[1];
    }
}

/* --- nf4 ------------------------------------------------------------------------------------------------------ */

/* Number of the nearest value; the lower of two. */
static int nearest_nf4(float value) {
    int code = 0;
    while (code + 1 < NF4_CODES && value > (nf4_values[code] + nf4_values[code + 1]) / 2) ++code;
    return code;
}

static int nearest_scale(float value) {
    int low = 0, high = SCALES - 1;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (scale_of_code(middle) <= value)
            low = middle;
        else
            high = middle;
    }
    return fabsf(value - scale_of_code(high)) < fabsf(value - scale_of_code(low)) ? high : low;
}

/* Changes scales [count] to their differences from their mean. */
static void quantise_scales(float *scales, int64_t count, uint8_t *codes, uint8_t *floats) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += (double)scales[i];
    const float mean = (float)(sum / (double)count);
    memcpy(floats, &mean, sizeof mean);
    memset(codes + count, 0, (size_t)(floats - codes - count));
    for (int64_t i = 0; i < count; ++i) scales[i] -= mean;
    for (int64_t first = 0; first < count; first += SCALES) {
        const int64_t some = count - first < SCALES ? count - first : SCALES;
        const float most = largest_of(scales + first, some);
        memcpy(floats + (1 + first / SCALES) * (int64_t)sizeof most, &most, sizeof most);
        for (int64_t i = first; i < first + some; ++i)
            codes[i] = most > 0 ? (uint8_t)nearest_scale(scales[i] / most) : ZERO_CODE;
    }
}

static void quantise_nf4(const float *values, int64_t elements, uint8_t *bytes, float *scales) {
    const int64_t count = elements / NF4_BLOCK;
    for (int64_t b = 0; b < count; ++b) {
        const float most = largest_of(values + b * NF4_BLOCK, NF4_BLOCK), inverse = 1 / fmaxf(most, 1e-38f);
        scales[b] = most;
        for (int64_t i = b * NF4_BLOCK; i < (b + 1) * NF4_BLOCK; i += i % 32 == 15 ? 17 : 1)
            bytes[i / 32 * 16 + i % 16] =
                (uint8_t)(nearest_nf4(values[i] * inverse) | nearest_nf4(values[i + 16] * inverse) << 4);
    }
    quantise_scales(scales, count, bytes + elements / 2, bytes + nf4_floats(elements));
}

static void values_nf4(const uint8_t *bytes, int64_t elements, float *values) {
    const uint8_t *codes = bytes + elements / 2, *floats = bytes + nf4_floats(elements);
    float mean, most;
    memcpy(&mean, floats, sizeof mean);
    for (int64_t b = 0; b < elements / NF4_BLOCK; ++b) {
        memcpy(&most, floats + (1 + b / SCALES) * (int64_t)sizeof most, sizeof most);
        const float product = scale_of_code(codes[b]) * most, scale = product + mean;
        for (int64_t i = b * NF4_BLOCK; i < (b + 1) * NF4_BLOCK; ++i)
            values[i] = nf4_values[bytes[i / 32 * 16 + i % 16] >> (i % 32 / 16 * 4) & 15] * scale;
    }
}

/* --- all ------------------------------------------------------------------------------------------------------ */

cleat_status cleat_blocks_quantise(cleat_dtype dtype, const float *values, int64_t elements, void *bytes,
                                   cleat_error *error) {
    bool holds = all_finite(values, elements);
    if (holds && dtype == CLEAT_NF4) {
        float *scales = cleat_alloc((size_t)(elements / NF4_BLOCK), sizeof *scales);
        if (!scales) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the scales of a weight");
        quantise_nf4(values, elements, bytes, scales);
        cleat_free(scales);
    } else if (holds && dtype == CLEAT_HALF) {
        cleat_to_f16(values, (size_t)elements, bytes);
        holds = largest_of(values, elements) < 65520.0f;
    } else if (holds) {
        holds = dtype == CLEAT_Q4 ? quantise_q4(values, elements, bytes) : quantise_q8(values, elements, bytes);
    }
    if (holds) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                      "it has values that %s cannot hold, or that are not finite: set train.frozen_weights = float",
                      cleat_block_name(dtype));
}

void cleat_blocks_values(cleat_dtype dtype, const void *bytes, int64_t elements, float *values) {
    if (dtype == CLEAT_NF4) values_nf4(bytes, elements, values);
    if (dtype == CLEAT_Q4) values_q4(bytes, elements, values);
    if (dtype == CLEAT_Q8) values_q8(bytes, elements, values);
    if (dtype == CLEAT_HALF) cleat_from_f16(bytes, (size_t)elements, values);
}

bool cleat_blocks_take(cleat_dtype dtype, cleat_gguf_type type, const void *stored, int64_t elements, void *bytes) {
    const uint8_t *from = stored;
    uint8_t *to = bytes, codes[Q4_BLOCK];
    float by[2] = {0, 0};
    uint16_t bits;
    bool fits = (dtype == CLEAT_HALF && type == CLEAT_GGUF_TYPE_F16) || dtype == CLEAT_Q4 ||
                (dtype == CLEAT_Q8 && type == CLEAT_GGUF_TYPE_Q8_0);
    if (fits && dtype == CLEAT_HALF) memcpy(bytes, stored, (size_t)elements * 2);
    for (int64_t b = 0; b < elements / Q8_BLOCK && fits && dtype == CLEAT_Q8; ++b, from += 2 + Q8_BLOCK) {
        memcpy(&bits, from, sizeof bits);
        memcpy(to + b * Q8_BLOCK, from + sizeof bits, Q8_BLOCK);
        memcpy(to + elements + b * (int64_t)sizeof bits, &bits, sizeof bits);
        fits = (bits & 0x7c00) != 0x7c00;
    }
    for (int64_t b = 0; b < elements / Q4_BLOCK && fits && dtype == CLEAT_Q4; ++b)
        fits = cleat_gguf_codes(type, stored, b, codes, by) && put_q4(to, elements, b, codes, by);
    return fits;
}
