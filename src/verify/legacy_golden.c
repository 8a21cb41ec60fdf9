/* Old reference trajectories describe the model by `config` (JSON, with the loss as a sentence), which is
 * converted here to a profile and sizes; legacy_fields.c converts the arrays. New files contain their profile
 * (golden.h). */
#include "verify/legacy_golden.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

typedef struct legacy {
    const cleat_safetensors *file;
    const cJSON *config;
    cleat_golden_content *content;
} legacy;

/* --- writing settings ----------------------------------------------------------------------------------------- */

/* Adds a profile key ("model.heads"), or a size (a name without a dot). */
static void add(legacy *l, const char *to, const char *value) {
    const char *dot = strchr(to, '.');
    cleat_text *sizes = &l->content->sizes;
    if (dot)
        cleat_text_add(&l->content->profile, "[%.*s]\n%s = %s\n", (int)(dot - to), to, dot + 1, value);
    else
        cleat_text_add(sizes, "%s\"%s\": %s", sizes->size ? ", " : "{", to, value);
}

/* Adds a number or a list; returns false for any other type. */
static bool add_json(legacy *l, const char *to, const cJSON *item) {
    char *text = cJSON_IsNumber(item) || cJSON_IsArray(item) ? cJSON_PrintUnformatted(item) : NULL;
    if (text) add(l, to, text);
    cJSON_free(text);
    return text != NULL;
}

static void add_number(legacy *l, const char *to, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    add(l, to, text);
}

static int64_t extent(const legacy *l, const char *param, int axis) {
    char path[CLEAT_NAME + 16];
    snprintf(path, sizeof path, "param/%s", param);
    const cleat_st_tensor *tensor = cleat_safetensors_find(l->file, path);
    return tensor && axis < tensor->rank ? tensor->shape[axis] : 0;
}

static const cJSON *find_key(const cJSON *config, const char *key) {
    char object[64];
    const char *dot = strchr(key, '.');
    if (!dot) return cJSON_GetObjectItemCaseSensitive(config, key);
    snprintf(object, sizeof object, "%.*s", (int)(dot - key), key);
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(config, object), dot + 1);
}

static bool count_blocks(legacy *l) {
    char name[CLEAT_NAME];
    int64_t layers = 0;
    if (add_json(l, "model.layers", find_key(l->config, "layers"))) return true;
    do snprintf(name, sizeof name, "blocks.%lld.f1.weight", (long long)layers);
    while (extent(l, name, 0) > 0 && ++layers);
    add_number(l, "model.layers", layers);
    return layers > 0;
}

/* Widths of the layers from the input up to the classes, or to the outputs. */
static bool read_widths(legacy *l) {
    const cJSON *loss = find_key(l->config, "loss");
    cJSON *hidden = cJSON_Duplicate(find_key(l->config, "widths"), true);
    const int last = cJSON_GetArraySize(hidden) - 1;
    const bool classifies = strstr(loss->valuestring, "cross entropy");
    const bool read = last > 0 && add_json(l, "inputs", cJSON_GetArrayItem(hidden, 0)) &&
                      add_json(l, classifies ? "classes" : "outputs", cJSON_GetArrayItem(hidden, last));
    cJSON_DeleteItemFromArray(hidden, last);
    cJSON_DeleteItemFromArray(hidden, 0);
    if (last > 1) add_json(l, "hidden", hidden);
    cJSON_Delete(hidden);
    return read;
}

/* Number of blocks per stage, from the config or from the parameters: each stage has twice the channels of
 * the previous one. */
static bool read_stages(legacy *l) {
    const cJSON *kernel = find_key(l->config, "stem");
    const int64_t size = cJSON_IsNumber(kernel) ? (int64_t)kernel->valuedouble : extent(l, "stem.weight", 2);
    int64_t width = extent(l, "stem.weight", 0);
    int blocks[CLEAT_MODEL_STAGES] = {0}, stage = 0;
    char name[CLEAT_NAME];
    add(l, "model.stem", size == 7 ? "large" : "small");
    if (add_json(l, "blocks", find_key(l->config, "blocks"))) return true;
    for (int number = 1;; ++number) {
        snprintf(name, sizeof name, "b%d.c1.weight", number);
        const int64_t features = extent(l, name, 0);
        if (features == 0) break;
        if (number > 1 && features == 2 * width)
            ++stage;
        else if (features != width)
            return false;
        if (stage == CLEAT_MODEL_STAGES) return false;
        width = features;
        ++blocks[stage];
    }
    cJSON *list = cJSON_CreateIntArray(blocks, stage + 1);
    const bool added = blocks[0] > 0 && add_json(l, "blocks", list);
    cJSON_Delete(list);
    return added;
}

/* --- the table ------------------------------------------------------------------------------------------------ */

/* A row is one setting: destination; key in config ("weights.frame" is a key in a nested object); if config
 * lacks it, the parameter whose extent along the given axis is the value; the default value. "-": none. A row
 * without any value means that the file is not of the family. */
#define TEXT_ROWS                                                                                                      \
    "model.dropout      -          -                  0  0\n"                                                          \
    "model.d_model      d_model    emb.weight         1  -\n"                                                          \
    "model.heads        heads      -                  0  -\n"                                                          \
    "model.layers       layers     -                  0  -\n"                                                          \
    "model.d_ff         d_ff       blocks.0.f1.weight 0  -\n"                                                          \
    "vocabulary         vocab      emb.weight         0  -\n"
#define CLASS_ROW "classes     -          head.weight        0  -\n"
#define SERIES_ROWS                                                                                                    \
    "model.dropout      -          -                  0  0\n"                                                          \
    "data.lookback      T          -                  0  1\n"                                                          \
    "data.horizon       -          -                  0  1\n"
#define SEGFORMER_ROWS(HEADS)                                                                                          \
    "model.dropout      -          -                  0  0\n"                                                          \
    "model.stem_stride stem_stride -                  0  4\n"                                                          \
    "data.image_size    px         -                  0  -\n"                                                          \
    "stage_widths       dims       -                  0  -\n"                                                          \
    "stage_heads      " HEADS "    -                  0  -\n"                                                          \
    "stage_reductions   sr         -                  0  -\n"                                                          \
    "stage_depths       depth      -                  0  -\n"                                                          \
    "decoder            decoder    fuse.weight        0  -\n"
#define MASK_LOSS_ROWS                                                                                                 \
    "loss.positive_weight positive_weight -           0  -\n"                                                          \
    "loss.focal_gamma   focal_gamma -                 0  -\n"                                                          \
    "loss.dice          dice       -                  0  -\n"

typedef struct family {
    const char *type, *loss, *loss_too; /* The sentence contains both texts; NULL: no condition */
    const char *needs;                  /* a required key of config; NULL: none */
    const char *fields;                 /* see legacy_fields.c */
    /* Reads what no row covers; returns false if the file is not of the family. NULL: nothing to read. */
    bool (*more)(legacy *l);
    const char *rows;
} family;

static const family families[] = {
    {"rna_transformer", "valid coordinates", "valid neighbours", NULL,
     "tokens lengths coords mask:valid partner:none scale:means", NULL,
     TEXT_ROWS "model.head         -  - 0 absolute\n"
               "model.positions    -  - 0 start\n"
               "bond               -  - 0 5.9\n"
               "loss.coordinate    -  - 0 1\n"
               "loss.bond_length   -  - 0 1\n"
               "loss.pair_distance -  - 0 0\n"
               "loss.lddt          -  - 0 0\n"
               "loss.frame         -  - 0 0\n"
               "loss.handedness    -  - 0 0\n"
               "loss.bond_angle    -  - 0 0\n"
               "loss.clash         -  - 0 0\n"
               "loss.base_pair     -  - 0 0\n"},
    {"rna_transformer", "structure terms", NULL, NULL, "tokens lengths coords mask:known partner:hairpin", NULL,
     TEXT_ROWS "model.head         -                     - 0 frames\n"
               "model.positions    -                     - 0 both_ends\n"
               "loss.coordinate    weights.coordinate    - 0 -\n"
               "loss.bond_length   weights.bond_length   - 0 -\n"
               "loss.pair_distance weights.pair_distance - 0 -\n"
               "loss.lddt          weights.lddt_loss     - 0 -\n"
               "loss.frame         weights.frame         - 0 -\n"
               "loss.handedness    weights.handedness    - 0 -\n"
               "loss.bond_angle    weights.bond_angle    - 0 -\n"
               "loss.clash         weights.clash         - 0 -\n"
               "loss.base_pair     weights.base_pair     - 0 -\n"},
    {"text_classifier", "classes", "mean pooling", NULL, "tokens lengths label", NULL,
     TEXT_ROWS CLASS_ROW "model.pooling - - 0 mean\n"},
    {"text_tagger", "tags", "valid positions", NULL, "tokens lengths labels", NULL, TEXT_ROWS CLASS_ROW},
    {"series_lstm", "mse of the last step", NULL, "hidden", "x target", NULL,
     SERIES_ROWS "model.hidden  hidden  -                0 -\n"
                 "model.layers  layers  -                0 -\n"
                 "inputs        inputs  rnn.weight_ih_l0 1 -\n"
                 "outputs       outputs head.weight      0 -\n"},
    {"series_transformer", "mse of the last step", NULL, "patches", "x target", count_blocks,
     SERIES_ROWS "model.heads   heads   -                  0 4\n"
                 "model.d_model d_model inp.weight         0 -\n"
                 "model.d_ff    d_ff    blocks.0.f1.weight 0 -\n"
                 "inputs        inputs  inp.weight         1 -\n"
                 "outputs       outputs head.weight        0 -\n"},
    {"series_dense", "cross entropy", NULL, "widths", "x target", read_widths, SERIES_ROWS},
    {"series_dense", "mse of the outputs", NULL, "widths", "x target", read_widths, SERIES_ROWS},
    {"image_resnet", "cross entropy; batch norm", NULL, NULL, "image label", read_stages,
     "model.dropout   -        -           0 0\n"
     "model.width     channels stem.weight 0 -\n"
     "data.image_size px       -           0 -\n"
     "inputs          inputs   stem.weight 1 -\n"
     "classes         classes  fc.weight   0 -\n"},
    {"mask_segformer", "per-pixel cross entropy", NULL, NULL, "image mask:target", NULL,
     SEGFORMER_ROWS("heads") "inputs  inputs  pe.0.weight 1 -\n"
                             "classes classes cls.weight  0 -\n"},
    {"mask_segformer", "mask loss of the picture", NULL, NULL, "image mask:target", NULL,
     SEGFORMER_ROWS("heads") MASK_LOSS_ROWS "inputs  inputs  pe.0.weight 1 -\n"},
    {"emberformer", "mask loss of the next frame", NULL, NULL, "frames lengths:patches mask:target", NULL,
     SEGFORMER_ROWS("spatial_heads") MASK_LOSS_ROWS "model.d_model  d_model  - 0 -\n"
                                                    "model.heads    heads    - 0 -\n"
                                                    "model.layers   layers   - 0 -\n"
                                                    "model.d_ff     d_ff     - 0 -\n"
                                                    "model.features features - 0 -\n"
                                                    "data.history   T        - 0 -\n"
                                                    "data.patch     patch    - 0 -\n"
                                                    "inputs         inputs   - 0 -\n"},
};

static bool add_row(legacy *l, const char *row) {
    char to[32], key[32], param[32], value[16];
    int axis;
    if (sscanf(row, "%31s %31s %31s %d %15s", to, key, param, &axis, value) != 5) return false;
    const int64_t from_param = extent(l, param, axis);
    const bool has_value = strcmp(value, "-") != 0;
    if (add_json(l, to, find_key(l->config, key))) return true;
    if (from_param > 0)
        add_number(l, to, from_param);
    else if (has_value)
        add(l, to, value);
    return from_param > 0 || has_value;
}

/* Writes the settings of the family if the config matches it. */
static bool is_of(legacy *l, const family *f) {
    const cJSON *loss = find_key(l->config, "loss");
    if (!cJSON_IsString(loss) || !strstr(loss->valuestring, f->loss)) return false;
    if ((f->loss_too && !strstr(loss->valuestring, f->loss_too)) || (f->needs && !find_key(l->config, f->needs)))
        return false;
    l->content->profile.size = l->content->sizes.size = 0; /* discard a rejected family's settings */
    add(l, "model.type", f->type);
    for (const char *row = f->rows; *row; row = strchr(row, '\n') + 1)
        if (!add_row(l, row)) return false;
    return !f->more || f->more(l);
}

/* "AdamW lr=1e-3 betas=(0.9,0.999) eps=1e-8 weight_decay=0.01" */
static cleat_status add_optimizer(legacy *l, cleat_error *error) {
    static const char *const keys[] = {"train.learning_rate", "train.beta1", "train.beta2", "train.eps",
                                       "train.weight_decay"};
    const char *text = cleat_safetensors_metadata(l->file, "optimizer");
    double values[5];
    if (!text || sscanf(text, "AdamW lr=%lf betas=(%lf,%lf) eps=%lf weight_decay=%lf", &values[0], &values[1],
                        &values[2], &values[3], &values[4]) != 5)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "the trajectory's optimizer is not supported: %s",
                          text ? text : "none");
    for (int i = 0; i < 5; ++i) {
        char number[32];
        cleat_number_print(values[i], number);
        add(l, keys[i], number);
    }
    add(l, "train.max_grad_norm", "none");
    return CLEAT_OK;
}

cleat_status cleat_legacy_golden(const cleat_safetensors *file, cleat_golden_content *content, cleat_error *error) {
    const char *text = cleat_safetensors_metadata(file, "config");
    cJSON *config = text ? cJSON_Parse(text) : NULL;
    legacy l = {.file = file, .config = config, .content = content};
    const family *f = families, *end = families + sizeof families / sizeof *families;
    if (!text)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "the file has neither 'profile' nor 'config': it is not a reference trajectory");
    if (!config) return cleat_fail(error, CLEAT_ERR_FORMAT, "the trajectory's config is not JSON: %.200s", text);
    while (f < end && !is_of(&l, f)) ++f;
    cleat_status status = CLEAT_OK;
    if (f == end)
        status = cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                            "no model of this version matches the trajectory's config %.300s", text);
    if (content->sizes.size > 0) cleat_text_add(&content->sizes, "}");
    if (!status) status = add_optimizer(&l, error);
    if (!status) status = cleat_legacy_fields(file, f->fields, content, error);
    cJSON_Delete(config);
    return status;
}
