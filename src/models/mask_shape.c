/* The SegFormer that the settings of a segmentation family describe. */
#include "data/image/masks.h"
#include "graph/graph.h"
#include "models/masks.h"

#include <string.h>

enum { STAGES = CLEAT_SEGFORMER_STAGES };

const char *const cleat_backbone_names[] = {"b0", "b1", "b2", "b3", "b4", "b5", NULL};
const char *const cleat_stage_order_names[] = {"ascending", "descending", NULL};

#define BACKBONE(DECODER, D0, D1, D2, D3, ...)                                                                         \
    {                                                                                                                  \
        .width = {__VA_ARGS__}, .heads = {1, 2, 5, 8}, .reduction = {8, 4, 2, 1}, .depth = {D0, D1, D2, D3},           \
        .expansion = {4, 4, 4, 4}, .patch = {7, 3, 3, 3}, .stride = {4, 2, 2, 2}, .decoder = DECODER                   \
    }
static const cleat_segformer backbones[CLEAT_BACKBONES] = {
    [CLEAT_BACKBONE_B0] = BACKBONE(256, 2, 2, 2, 2, 32, 64, 160, 256),
    [CLEAT_BACKBONE_B1] = BACKBONE(256, 2, 2, 2, 2, 64, 128, 320, 512),
    [CLEAT_BACKBONE_B2] = BACKBONE(768, 3, 4, 6, 3, 64, 128, 320, 512),
    [CLEAT_BACKBONE_B3] = BACKBONE(768, 3, 4, 18, 3, 64, 128, 320, 512),
    [CLEAT_BACKBONE_B4] = BACKBONE(768, 3, 8, 27, 3, 64, 128, 320, 512),
    [CLEAT_BACKBONE_B5] = BACKBONE(768, 3, 6, 40, 3, 64, 128, 320, 512),
};

const cleat_segformer *cleat_backbone_shape(cleat_backbone backbone) {
    return &backbones[backbone];
}

/* The backbone's values, replaced by those of the list if it has any. */
static void replace(const cleat_int_list *list, int first, int64_t values[STAGES]) {
    for (int64_t i = 0; i < list->count && first + i < STAGES; ++i) values[first + i] = list->values[i];
}

static cleat_segformer shape_of(const cleat_mask_settings *settings) {
    cleat_segformer shape = backbones[settings->backbone];
    replace(&settings->stage_widths, 0, shape.width);
    replace(&settings->stage_heads, 0, shape.heads);
    replace(&settings->stage_reductions, 0, shape.reduction);
    replace(&settings->stage_depths, 0, shape.depth);
    replace(&settings->stage_expansions, 0, shape.expansion);
    replace(&settings->stage_patches, 0, shape.patch);
    shape.stride[0] = settings->stem_stride;
    replace(&settings->stage_strides, 1, shape.stride);
    if (settings->decoder_width != CLEAT_AUTO) shape.decoder = settings->decoder_width;
    shape.descending = settings->descending;
    return shape;
}

/* Classes of the pixels by the settings; 0: a mask is one probability per pixel. */
static int64_t classes_of(const cleat_mask_settings *settings) {
    const cleat_image_options options = {.classes = settings->labels, .mask_classes = settings->classes};
    cleat_mask_classes classes = {0};
    cleat_error none;
    return cleat_mask_classes_of(&options, &classes, &none) ? 0 : classes.count;
}

cleat_segformer cleat_masks_shape(const cleat_model *model, cleat_mode mode) {
    const cleat_mask_settings *settings = model->settings;
    const cleat_model_sizes *sizes = &model->sizes;
    cleat_segformer shape = shape_of(settings);
    if (sizes->decoder > 0) {
        memcpy(shape.width, sizes->stage_widths, sizeof shape.width);
        memcpy(shape.heads, sizes->stage_heads, sizeof shape.heads);
        memcpy(shape.reduction, sizes->stage_reductions, sizeof shape.reduction);
        memcpy(shape.depth, sizes->stage_depths, sizeof shape.depth);
        shape.decoder = sizes->decoder;
    }
    shape.classes = sizes->classes > 0 ? sizes->classes : classes_of(settings);
    if (shape.classes == 0) shape.classes = 1;
    shape.dropout = mode == CLEAT_MODE_TRAIN ? (float)settings->dropout : 0;
    return shape;
}

static cleat_status check_list(const cleat_int_list *list, const char *name, int64_t count, const cleat_record *record,
                               cleat_error *error) {
    if (list->count == CLEAT_AUTO || list->count == count) return CLEAT_OK;
    return cleat_record_refuse(record, error, name, "must be auto or %lld numbers, one for each %sstage",
                               (long long)count, count < STAGES ? "later " : "");
}

static cleat_status check_lists(const cleat_mask_settings *settings, const cleat_record *record, cleat_error *error) {
    const struct {
        const cleat_int_list *list;
        const char *name;
    } lists[] = {
        {&settings->stage_widths, "model.stage_widths"},         {&settings->stage_heads, "model.stage_heads"},
        {&settings->stage_reductions, "model.stage_reductions"}, {&settings->stage_depths, "model.stage_depths"},
        {&settings->stage_expansions, "model.stage_expansions"}, {&settings->stage_patches, "model.stage_patches"}};
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < sizeof lists / sizeof *lists && !status; ++i)
        status = check_list(lists[i].list, lists[i].name, STAGES, record, error);
    return status ? status : check_list(&settings->stage_strides, "model.stage_strides", STAGES - 1, record, error);
}

cleat_status cleat_masks_check_shape(const cleat_mask_settings *settings, const cleat_record *record,
                                     cleat_error *error) {
    cleat_status status = check_lists(settings, record, error);
    const cleat_segformer shape = shape_of(settings);
    for (int i = 0; i < STAGES && !status; ++i)
        if (shape.width[i] % shape.heads[i])
            status = cleat_record_contradict(record, error, "model.stage_widths", "model.stage_heads",
                                             "the width of stage %d, %lld, must be a multiple of its %lld heads", i + 1,
                                             (long long)shape.width[i], (long long)shape.heads[i]);
    return status;
}

void cleat_masks_check_size(cleat_graph *graph, const cleat_segformer *shape, int64_t height, int64_t width) {
    int64_t stride = 1;
    for (int stage = 0; stage < STAGES; ++stage) {
        stride *= shape->stride[stage];
        int64_t least = (shape->reduction[stage] - 1) * stride + 1;
        if (height < least || width < least) {
            cleat_graph_fail(graph, CLEAT_ERR_SHAPE,
                             "images of %lld x %lld pixels are too small for a SegFormer with stem_stride %lld, which "
                             "requires %lld: use larger images, or a smaller model.stem_stride",
                             (long long)height, (long long)width, (long long)shape->stride[0], (long long)least);
            return;
        }
    }
}
