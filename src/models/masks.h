/* Helpers of segmentation models: their SegFormer; the loss, pixel metrics and predictions (PNG, NPY) of
 * masks of two classes. Masks of more classes: models/mask_classes.h. */
#ifndef CLEAT_SRC_MODELS_MASKS_H
#define CLEAT_SRC_MODELS_MASKS_H

#include "models/classes.h"
#include "models/image_models.h"
#include "nn/segformer.h"

typedef enum cleat_backbone {
    CLEAT_BACKBONE_B0,
    CLEAT_BACKBONE_B1,
    CLEAT_BACKBONE_B2,
    CLEAT_BACKBONE_B3,
    CLEAT_BACKBONE_B4,
    CLEAT_BACKBONE_B5,
    CLEAT_BACKBONES
} cleat_backbone;
extern const char *const cleat_backbone_names[];    /* names in settings; terminated by NULL */
extern const char *const cleat_stage_order_names[]; /* of cleat_mask_settings.descending */

/* The SegFormer, its loss, and the interpretation of its output. The settings of segmentation families
 * begin with this struct. */
typedef struct cleat_mask_settings {
    cleat_data_settings common;
    double dropout;
    cleat_backbone backbone;
    int64_t stem_stride; /* stride of the first patch embedding */
    /* One value per stage, in `stage_strides` per stage after the first; count CLEAT_AUTO: the backbone's. */
    cleat_int_list stage_widths, stage_heads, stage_reductions, stage_depths, stage_expansions, stage_patches,
        stage_strides;
    int64_t decoder_width; /* CLEAT_AUTO: the backbone's */
    bool descending;       /* order of the stages in fuse.weight */
    int64_t classes;       /* of pixels; 0: the number of names in `labels` */
    const char *labels;    /* names of the classes, separated by blanks; NULL or "": other names, see cleat/images.h */
    const char *names;     /* file whose id2label names the classes if neither `labels` nor the data do; NULL or "" */
    double threshold;      /* minimum probability of a pixel in the mask */
    /* weight of mask pixels; CLEAT_AUTO: from their fraction of the training data */
    double positive_weight;
    double focal_gamma, dice;
    cleat_class_loss_settings loss; /* of masks with classes */
} cleat_mask_settings;

/* MEMBER: a cleat_mask_settings. */
#define SEGFORMER_ROWS(MEMBER)                                                                                         \
    {FIELD(model, backbone, MEMBER.backbone), CHOICE(cleat_backbone_names, "b0"), SHAPES,                              \
     .help = "SegFormer size: 3.7, 14, 27, 47, 64 or 85 million parameters."},                                         \
        {FIELD(model, stem_stride, MEMBER.stem_stride), INT(1, 16, "4"), SHAPES, .resolves = true,                     \
         .help = "Stride of the first patch embedding in pixels: 4 as published; 1 or 2 resolve smaller objects, "     \
                 "at 16 and 4 times the cost."},                                                                       \
        {STAGES(MEMBER, stage_widths, 1, 16384), .help = "Width of each of the four stages; auto: the backbone's."},   \
        {STAGES(MEMBER, stage_heads, 1, 256), .help = "Attention heads of each stage; auto: the backbone's."},         \
        {STAGES(MEMBER, stage_reductions, 1, 64),                                                                      \
         .help = "Factor by which attention reduces its keys in each stage, per side; auto: the backbone's."},         \
        {STAGES(MEMBER, stage_depths, 1, 256), .help = "Blocks of each stage; auto: the backbone's."},                 \
        {STAGES(MEMBER, stage_expansions, 1, 64),                                                                      \
         .help = "Width of the hidden layer of a block, in units of the stage's width; auto: 4, 4, 4, 4."},            \
        {STAGES(MEMBER, stage_patches, 1, 31),                                                                         \
         .help = "Patch side of each stage, in pixels of the previous stage; auto: 7, 3, 3, 3."},                      \
        {STAGES(MEMBER, stage_strides, 1, 16),                                                                         \
         .help = "Strides of the patch embeddings of the three later stages; auto: 2, 2, 2."},                         \
        {FIELD(model, decoder_width, MEMBER.decoder_width), INT(1, 16384, "auto"), OR_AUTO, SHAPES_LATER,              \
         .help = "Width of the decoder; auto: the backbone's."},                                                       \
    {                                                                                                                  \
        FIELD(model, stage_order, MEMBER.descending), EITHER(cleat_stage_order_names, "ascending"), SHAPES_LATER,      \
            .help = "Order of the stages in the columns of fuse.weight; descending in published checkpoints."          \
    }
#define STAGES(MEMBER, NAME, LOW, HIGH)                                                                                \
    FIELD(model, NAME, MEMBER.NAME), LIST(LOW, HIGH, "auto"), OR_AUTO, .unordered = true, SHAPES_LATER
#define THRESHOLD_ROW(MEMBER)                                                                                          \
    {                                                                                                                  \
        FIELD(model, threshold, MEMBER.threshold), FLOAT(0, 1, "0.5"),                                                 \
            .help = "Minimum probability for a pixel to belong to the predicted mask."                                 \
    }
#define MASK_LOSS_ROWS(MEMBER)                                                                                         \
    {FIELD(loss, positive_weight, MEMBER.positive_weight), FLOAT(1e-3, 1e6, "auto"), OR_AUTO, COMPUTES,                \
     .help = "Cross entropy weight of mask pixels; auto: square root of the ratio of background to mask pixels."},     \
        {FIELD(loss, focal_gamma, MEMBER.focal_gamma), FLOAT(0, 10, "0"), COMPUTES,                                    \
         .help = "Focal loss: cross entropy times (1 - probability of the target)^gamma; 0: plain cross entropy."},    \
    {                                                                                                                  \
        FIELD(loss, dice, MEMBER.dice), FLOAT(0, 1e3, "1"), COMPUTES,                                                  \
            .help = "Weight of the Dice loss, added to the cross entropy."                                             \
    }

extern const cleat_metric_info cleat_masks_metrics[]; /* terminated by a NULL name */

/* model->own */
typedef struct cleat_mask_own {
    double positive;            /* fraction of mask pixels in the training data; 0: unknown */
    int64_t height, width;      /* size of a sample's mask; 0: image_size of the profile */
    int64_t n_classes;          /* 0: black and white */
    cleat_class_info classes[]; /* [n_classes] */
} cleat_mask_own;

/* Allocates model->own. */
cleat_status cleat_masks_make_own(cleat_model *model, int64_t n_classes, cleat_error *error);

/* Checks the lists of stages, and that each width is a multiple of its heads. */
cleat_status cleat_masks_check_shape(const cleat_mask_settings *settings, const cleat_record *record,
                                     cleat_error *error);
/* The published sizes of a backbone: `stride`, `classes`, `descending` and `dropout` are 0. */
const cleat_segformer *cleat_backbone_shape(cleat_backbone backbone);
/* The SegFormer of the settings, with one output per pixel and class; one output if the number of classes is not
 * set. */
cleat_segformer cleat_masks_shape(const cleat_model *model, cleat_mode mode);
int64_t cleat_masks_layers(const cleat_model *model);
/* Sets the graph's error if images [height, width] are too small for the reductions of the stages. */
void cleat_masks_check_size(cleat_graph *graph, const cleat_segformer *shape, int64_t height, int64_t width);

/* Logs, before a training, that few pixels of the training masks are 1, or few 0, with the settings that help. */
void cleat_masks_log_balance(const cleat_model *model, const char *path);

/* Appends the SegFormer: x [B, H, W, C] -> logits [B, H, W, classes]. Adds the input of its normalisation
 * to `inputs`. */
cleat_tensor *cleat_masks_segment(const cleat_model *model, cleat_graph *graph, cleat_mode mode, cleat_tensor *x,
                                  cleat_model_inputs *inputs);
/* Appends the end of the graph for each mode: output, loss, gradients. mask i32 [B, H, W], NULL when
 * predicting. */
void cleat_masks_add_loss(const cleat_model *model, cleat_graph *graph, cleat_mode mode, cleat_tensor *logits,
                          cleat_tensor *mask, const cleat_model_inputs *inputs, cleat_model_graph *built);

/* Metric state: running sums of pixels by probability and target. `persistence` [H, W] of sample b, or
 * NULL: an earlier mask that is evaluated as if it were the forecast. */
size_t cleat_masks_metric_state_size(const cleat_model *model);
/* Returns 1 - IoU; NaN without labelled pixels. */
double cleat_masks_metric_update(const cleat_model *model, const float *logits, const int32_t *mask, int64_t pixels,
                                 const int32_t *persistence, double *metric_state);
void cleat_masks_metric_compute(const cleat_model *model, const double *metric_state, cleat_metrics *found);

/* A sample with its mask and a prediction. */
typedef struct cleat_mask_example {
    const cleat_image *image;
    const char *image_text; /* caption, if the image does not show the sample itself; NULL: none */
    const float *logits;    /* [height, stride]; the first `width` of each row are used */
    const int32_t *mask; /* the same; 0, 1, or another number if the truth is unknown. NULL: a figure without truth */
    int64_t height, width, stride;
} cleat_mask_example;
/* Appends the example: masks are white, the background is black, unknown pixels are grey; with its
 * intersection over union, null if both masks are empty. */
cleat_status cleat_masks_add_example(const cleat_model *model, const cleat_prediction *prediction,
                                     const cleat_mask_example *example, cleat_string *json, cleat_error *error);
/* Of the pixels of known truth. */
void cleat_masks_table(const cleat_model *model, const double *metric_state, cleat_class_table *table);
/* The state after predicting persistence if it was evaluated, otherwise after predicting a full mask: the
 * better of the two constant predictions, because all scores of an empty mask are 0. */
cleat_status cleat_masks_baseline(const cleat_model *model, const cleat_evaluation *evaluated, double *metric_state,
                                  char *text, cleat_error *error);

/* cleat_model_examples.fitted of masks of black and white: what is brighter, or what is darker, than Otsu's
 * threshold of each image, whichever has the larger intersection over union with the training masks. */
cleat_status cleat_masks_otsu(const cleat_model *model, const cleat_evaluation *evaluated, double *metric_state,
                              char *text, cleat_error *error);

/* A predicted mask and the files it goes to: FOLDER/ID.png and FOLDER/ID.npy. Everything is borrowed. */
typedef struct cleat_mask_output {
    const char *folder, *id;
    const float *logits;           /* [height, stride]; the first `width` of each row are used */
    int64_t height, width, stride; /* in pixels */
    int64_t out_height, out_width; /* of the files, in pixels */
    cleat_image *image;            /* of this size, 1 or 3 channels, for cleat_masks_outline; NULL: none */
} cleat_mask_output;

/* Writes the image, if there is one, as ID.png to options.drawings, with the mask's pixels beside pixels of another
 * value in orange, or of classes in the colours of the palette [256, 3]; a dark image is brightened. */
cleat_status cleat_masks_outline(const cleat_model *model, const cleat_mask_output *output, const uint8_t *mask,
                                 const uint8_t *palette, cleat_error *error);
/* Writes FOLDER/ID followed by the file name ending to `path` [4096]. CLEAT_ERR_ARGUMENT: the id is too long. */
cleat_status cleat_masks_path(const cleat_mask_output *output, const char *ending, char *path, cleat_error *error);
/* Writes a mask, resized: the .png is 255 where the probability reaches the threshold, the .npy has the
 * probabilities. Errors: no memory, a file that cannot be written, an id too long for a file name. */
cleat_status cleat_masks_write(const cleat_model *model, const cleat_mask_output *output, cleat_error *error);

#endif
