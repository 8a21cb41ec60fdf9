/* Converts the arrays of old reference trajectories (input, target and lengths) to the data fields of a model
 * family. */
#include "verify/legacy_golden.h"

#include <stdio.h>
#include <string.h>

extern const cleat_model_class cleat_rna_transformer;

/* How a field is derived from the file. L comes from an input [B, L], T from [B, N, T, V]; without `lengths`
 * every sample is full. */
typedef enum layout {
    AS_IT_IS,
    WITH_ONE_STEP, /* f32 [B, C] -> [B, 1, C] */
    CHANNELS_LAST, /* f32 [B, C, H, W] -> [B, H, W, C] */
    UNTIL_LENGTH,  /* i64 [B, L]: -1 past the end of each sample */
    LENGTHS,       /* i32 [B] */
    EACH_PATCH,    /* length of the sample, once per patch: i32 [B, N] */
    VALID,         /* f32 [B, L]: 1 within the length, 0 past it */
    KNOWN,         /* as VALID, but 0 for every seventh residue from the fourth on */
    UNPAIRED,      /* i32 [B, L]: -1 */
    HAIRPIN,       /* i32 [B, L]: the mirrored position of the chain if more than 4 residues away; else -1 */
    BATCH_MEANS,   /* f32 [terms, B]: chains are weighted by their number of residues, or of bonds */
} layout;

typedef struct field_row {
    const char *word, *name, *from;
    layout layout;
} field_row;

static const field_row rows[] = {
    {"tokens", "tokens", "input", AS_IT_IS},
    {"frames", "frames", "input", AS_IT_IS},
    {"x", "x", "input", WITH_ONE_STEP},
    {"image", "image", "input", CHANNELS_LAST},
    {"coords", "coords", "target", AS_IT_IS},
    {"label", "label", "target", AS_IT_IS},
    {"labels", "labels", "target", UNTIL_LENGTH},
    {"target", "target", "target", WITH_ONE_STEP},
    {"mask:target", "mask", "target", AS_IT_IS},
    {"lengths", "lengths", "lengths", LENGTHS},
    {"lengths:patches", "lengths", "lengths", EACH_PATCH},
    {"mask:valid", "mask", "lengths", VALID},
    {"mask:known", "mask", "lengths", KNOWN},
    {"partner:none", "partner", "lengths", UNPAIRED},
    {"partner:hairpin", "partner", "lengths", HAIRPIN},
    {"scale:means", "scale", "lengths", BATCH_MEANS},
};

/* Sizes of the batch, and lengths of its samples (NULL: full). */
typedef struct batch_shape {
    int64_t batch, patches, length;
    const int64_t *lengths;
} batch_shape;

static cleat_status read_shape(const cleat_safetensors *file, batch_shape *shape, cleat_error *error) {
    const cleat_st_tensor *input = cleat_safetensors_find(file, "input");
    const cleat_st_tensor *lengths = cleat_safetensors_find(file, "lengths");
    if (!input || input->rank < 2)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "the trajectory has no array 'input' of a batch of samples");
    const bool maps = input->rank == 4;
    *shape = (batch_shape){.batch = input->shape[0], .patches = input->shape[1], .length = input->shape[maps ? 2 : 1]};
    if (!lengths) return CLEAT_OK;
    if (lengths->rank != 1 || lengths->dtype != CLEAT_ST_I64 || lengths->shape[0] != shape->batch)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "the trajectory's lengths must be I64 [%lld]",
                          (long long)shape->batch);
    shape->lengths = lengths->data;
    for (int64_t b = 0; b < shape->batch; ++b)
        if (shape->lengths[b] < 1 || shape->lengths[b] > shape->length)
            return cleat_fail(error, CLEAT_ERR_FORMAT, "the trajectory's length %lld is %lld; it must be 1 to %lld",
                              (long long)b, (long long)shape->lengths[b], (long long)shape->length);
    return CLEAT_OK;
}

static int64_t length_of(const batch_shape *shape, int64_t b) {
    return shape->lengths ? shape->lengths[b] : shape->length;
}

/* A value that is not in the file but derived from the length: of position i in a sample. */
static double made_value(layout how, int64_t length, int64_t i) {
    const int64_t other = length - 1 - i;
    switch (how) {
    case VALID:
        return i < length;
    case KNOWN:
        return i < length && i % 7 != 3;
    case UNPAIRED:
        return -1;
    case HAIRPIN:
        return i < length && (other - i > 4 || i - other > 4) ? (double)other : -1;
    default:
        return (double)length;
    }
}

static cleat_status make_field(cleat_golden_content *content, const batch_shape *s, const field_row *row,
                               cleat_error *error) {
    const int64_t each = row->layout == LENGTHS ? 1 : row->layout == EACH_PATCH ? s->patches : s->length;
    const bool integers = row->layout != VALID && row->layout != KNOWN;
    cleat_golden_array *made;
    cleat_status status = cleat_golden_add(content, row->name, "lengths", integers, row->layout == LENGTHS ? 1 : 2,
                                           (int64_t[]){s->batch, each}, &made, error);
    for (int64_t k = 0; k < s->batch * each && !status; ++k) {
        const double value = made_value(row->layout, length_of(s, k / each), k % each);
        if (integers)
            ((int32_t *)made->data)[k] = (int32_t)value;
        else
            ((float *)made->data)[k] = (float)value;
    }
    return status;
}

static int term_of(const char *name) {
    int term = 0;
    while (strcmp(cleat_rna_transformer.terms[term], name) != 0) ++term;
    return term;
}

static cleat_status make_batch_means(cleat_golden_content *content, const batch_shape *s, cleat_error *error) {
    const int64_t shape[2] = {cleat_rna_transformer.n_terms, s->batch};
    double residues = 0, bonds = 0;
    cleat_golden_array *made;
    cleat_status status = cleat_golden_add(content, "scale", "lengths", false, 2, shape, &made, error);
    if (status) return status;
    float *coordinate = (float *)made->data + term_of("coordinate") * s->batch;
    float *bond = (float *)made->data + term_of("bond_length") * s->batch;
    for (int64_t b = 0; b < s->batch; ++b) {
        residues += (double)length_of(s, b);
        bonds += (double)(length_of(s, b) - 1);
    }
    for (int64_t b = 0; b < s->batch; ++b) {
        coordinate[b] = (float)((double)length_of(s, b) / residues);
        bond[b] = bonds > 0 ? (float)((double)(length_of(s, b) - 1) / bonds) : 0.0f;
    }
    return CLEAT_OK;
}

static cleat_status copy_channels_last(cleat_golden_content *content, const char *name, const cleat_st_tensor *source,
                                       cleat_error *error) {
    if (source->rank != 4 || source->dtype != CLEAT_ST_F32)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "the trajectory's %s must be F32 [B, C, H, W]", source->name);
    const int64_t channels = source->shape[1], pixels = source->shape[2] * source->shape[3];
    const int64_t shape[4] = {source->shape[0], source->shape[2], source->shape[3], channels};
    const float *values = source->data;
    cleat_golden_array *made;
    cleat_status status = cleat_golden_add(content, name, source->name, false, 4, shape, &made, error);
    for (int64_t k = 0; k < cleat_st_elements(source) && !status; ++k) {
        const int64_t b = k / (channels * pixels), c = k / pixels % channels, i = k % pixels;
        ((float *)made->data)[(b * pixels + i) * channels + c] = values[k];
    }
    return status;
}

static cleat_status copy_field(const cleat_safetensors *file, cleat_golden_content *content, const batch_shape *s,
                               const field_row *row, cleat_error *error) {
    const cleat_st_tensor *source = cleat_safetensors_find(file, row->from);
    cleat_golden_array *made;
    if (!source)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "the trajectory has no array '%s' of I64 or F32", row->from);
    if (row->layout == CHANNELS_LAST) return copy_channels_last(content, row->name, source, error);
    cleat_status status = cleat_golden_copy(content, row->name, source, &made, error);
    if (status) return status;
    if (row->layout == WITH_ONE_STEP && made->rank == 2) {
        made->rank = 3;
        made->shape[2] = made->shape[1];
        made->shape[1] = 1;
    }
    for (int64_t k = 0; row->layout == UNTIL_LENGTH && made->integers && k < cleat_st_elements(source); ++k) {
        const int64_t each = cleat_st_elements(source) / made->shape[0];
        if (k / each < s->batch && k % each >= length_of(s, k / each)) ((int32_t *)made->data)[k] = -1;
    }
    return CLEAT_OK;
}

cleat_status cleat_legacy_fields(const cleat_safetensors *file, const char *words, cleat_golden_content *content,
                                 cleat_error *error) {
    batch_shape shape = {0};
    char word[32];
    int used;
    cleat_status status = read_shape(file, &shape, error);
    for (; !status && sscanf(words, "%31s%n", word, &used) == 1; words += used) {
        const field_row *row = rows;
        while (strcmp(row->word, word) != 0) ++row;
        if (row->layout == BATCH_MEANS)
            status = make_batch_means(content, &shape, error);
        else if (row->layout >= LENGTHS)
            status = make_field(content, &shape, row, error);
        else
            status = copy_field(file, content, &shape, row, error);
    }
    return status;
}
