/* Helpers shared by image models. */
#ifndef CLEAT_SRC_IMAGE_MODELS_H
#define CLEAT_SRC_IMAGE_MODELS_H

#include "models/model.h"
#include "nn/conv.h"

/* Data settings of image models. */
typedef struct cleat_image_settings {
    cleat_image_options options; /* channels = 0: auto */
    int64_t cache_mb;            /* replaces options.cache_bytes */
    cleat_int_list randaugment;  /* number of operations, magnitude; replace those of options.augment */
} cleat_image_settings;

/* The rows of [data] from image_size on; a family's own rows between `limit` and image_size precede this
 * macro. MEMBER: a cleat_image_settings. */
#define IMAGE_ROWS(MEMBER)                                                                                             \
    IMAGE_SIZE_ROW(MEMBER.options.size),                                                                               \
        {FIELD(data, channels, MEMBER.options.channels),                                                               \
         INT(1, 3, "auto"),                                                                                            \
         .word = "auto",                                                                                               \
         .word_value = 0,                                                                                              \
         COMPUTES,                                                                                                     \
         .help = "Image channels: 1 for grey, 3 for colour; auto: colour if any training image is in colour."},        \
        {FIELD(data, crop_scale, MEMBER.options.augment.crop_min), FLOAT(0.05, 1, "1"), COMPUTES,                      \
         .help = "Training: minimum area of the random resized crop, as a fraction of the image."},                    \
        {FIELD(data, shift, MEMBER.options.augment.shift), INT(0, 512, "0"), COMPUTES,                                 \
         .help = "Training: maximum random shift in pixels, in both directions."},                                     \
        FLIP_ROWS(MEMBER.options.augment),                                                                             \
        {FIELD(data, turn, MEMBER.options.augment.turn), BOOL("false"), COMPUTES,                                      \
         .help = "Training: random rotation by multiples of 90 degrees."},                                             \
        {FIELD(data, brightness, MEMBER.options.augment.brightness), FLOAT(0, 1, "0"), COMPUTES,                       \
         .help = "Training: random brightness factor from 1 - x to 1 + x."},                                           \
        {FIELD(data, contrast, MEMBER.options.augment.contrast), FLOAT(0, 1, "0"), COMPUTES,                           \
         .help = "Training: random contrast factor from 1 - x to 1 + x."},                                             \
        {FIELD(data, saturation, MEMBER.options.augment.saturation), FLOAT(0, 1, "0"), COMPUTES,                       \
         .help = "Training: random saturation factor from 1 - x to 1 + x."},                                           \
        {FIELD(data, rotate, MEMBER.options.augment.rotate), FLOAT(0, 180, "0"), COMPUTES_LATER,                       \
         .help = "Training: random rotation by at most x degrees; the image is reflected at its borders."},            \
        {FIELD(data, elastic, MEMBER.options.augment.elastic), FLOAT(0, 256, "0"), COMPUTES_LATER,                     \
         .help = "Training: elastic deformation; root mean square of the displacements, in pixels of image_size."},    \
        {FIELD(data, elastic_sigma, MEMBER.options.augment.elastic_sigma), FLOAT(1, 512, "8"), COMPUTES_LATER,         \
         .help = "Smoothness of data.elastic: deviation of the Gaussian, in pixels."},                                 \
        {FIELD(data, gamma, MEMBER.options.augment.gamma), FLOAT(0, 9, "0"), COMPUTES_LATER,                           \
         .help = "Training: random exponent of the values from 1 / (1 + x) to 1 + x."},                                \
        {FIELD(data, noise, MEMBER.options.augment.noise), FLOAT(0, 1, "0"), COMPUTES_LATER,                           \
         .help = "Training: Gaussian noise, of a random deviation up to x, for values 0 to 1."},                       \
        {FIELD(data, blur, MEMBER.options.augment.blur), FLOAT(0, 32, "0"), COMPUTES_LATER,                            \
         .help = "Training: Gaussian blur, of a random deviation up to x pixels."},                                    \
        {FIELD(data, cache_mb, MEMBER.cache_mb), INT(0, 1e7, "256"),                                                   \
         .help = "Maximum size of the in-memory cache of decoded images in MiB."},                                     \
        {FIELD(data, mean, MEMBER.options.mean), TEXT(0, 255, ""), COMPUTES_LATER,                                     \
         .help = "Mean of each channel, or of all, for values 0 to 1; empty: that of the training images."},           \
    {                                                                                                                  \
        FIELD(data, std, MEMBER.options.std), TEXT(0, 255, ""), COMPUTES_LATER,                                        \
            .help = "Standard deviation of each channel, or of all, given together with data.mean."                    \
    }
/* Of images with classes. MEMBER: a cleat_image_settings. */
#define MIX_ROWS(MEMBER)                                                                                               \
    {FIELD(data, randaugment, MEMBER.randaugment),                                                                     \
     LIST(0, 30, "none"),                                                                                              \
     OR_NONE,                                                                                                          \
     .unordered = true,                                                                                                \
     COMPUTES_LATER,                                                                                                   \
     .help = "Training: RandAugment: number of operations for each image, and magnitude from 0 to 30, e.g. 2,9."},     \
        {FIELD(data, mixup, MEMBER.options.augment.mixup), FLOAT(0, 100, "0"), COMPUTES_LATER,                         \
         .help = "Training: mixup: each image is mixed with another one, by a weight from Beta(x, x), e.g. 0.2."},     \
    {                                                                                                                  \
        FIELD(data, cutmix, MEMBER.options.augment.cutmix), FLOAT(0, 100, "0"), COMPUTES_LATER,                        \
            .help = "Training: CutMix: a rectangle comes from another image, its area from Beta(x, x), e.g. 1."        \
    }
#define IMAGE_SIZE_ROW(MEMBER)                                                                                         \
    {                                                                                                                  \
        FIELD(data, image_size, MEMBER), INT(8, 8192, "224"), COMPUTES,                                                \
            .help = "Image side in pixels: images are resized to it; maps keep their own size and use it only for "    \
                    "plans without data."                                                                              \
    }
/* MEMBER: a struct with flip and flip_vertical. */
#define FLIP_ROWS(MEMBER)                                                                                              \
    {FIELD(data, flip, MEMBER.flip), BOOL("false"), COMPUTES, .help = "Training: random horizontal flip."}, {          \
        FIELD(data, flip_vertical, MEMBER.flip_vertical), BOOL("false"), COMPUTES,                                     \
            .help = "Training: random vertical flip."                                                                  \
    }

/* Blocks and channels of the stages, if the name of the network's size does not determine them. MEMBER: a
 * cleat_int_list. */
#define BLOCKS_ROW(MEMBER)                                                                                             \
    {                                                                                                                  \
        FIELD(model, blocks, MEMBER), LIST(1, 1000, "auto"), OR_AUTO,                                                  \
            .unordered = true, SHAPES_LATER,                                                                           \
            .help = "Blocks of each stage, for up to four stages; auto: from the network's size."                      \
    }
#define WIDTHS_ROW(MEMBER)                                                                                             \
    {                                                                                                                  \
        FIELD(model, widths, MEMBER), LIST(1, 16384, "auto"), OR_AUTO,                                                 \
            .unordered = true, SHAPES_LATER,                                                                           \
            .help = "Channels of each stage, for up to four stages; auto: from the network's size."                    \
    }
/* MEMBER: a double. */
#define NORM_EPS_ROW(MEMBER)                                                                                           \
    {                                                                                                                  \
        FIELD(model, norm_eps, MEMBER), FLOAT(1e-12, 1e-2, "1e-6"), COMPUTES,                                          \
            .help = "Layer normalisation: epsilon added to the variance."                                              \
    }
/* Checks the number of stages of both lists. */
cleat_status cleat_stages_check(const cleat_int_list *blocks, const cleat_int_list *widths, const cleat_record *record,
                                cleat_error *error);
/* Replaces counts [CLEAT_MODEL_STAGES] by the setting's, else by the model's sizes, if given. Returns the
 * number of stages. */
int64_t cleat_stages_of(const cleat_int_list *setting, const int64_t *sizes, int64_t *counts);

/* Converts the settings to options of a dataset opened in this mode; the result borrows from them. */
cleat_image_options cleat_image_settings_options(const cleat_image_settings *settings, cleat_mode mode,
                                                 const char *fitted);

/* cleat_model_class.export_files: the means and deviations by which images were normalised (pictures.json)
 * become pretrained_cfg of timm's config.json, if that has none, or preprocessor_config.json of transformers.
 * A checkpoint without pictures.json is left as it is. */
cleat_status cleat_image_export(const cleat_model *model, const cleat_model_export *spec, cleat_error *error);

/* Checks the fractions of the splits, and data.mean and data.std. */
cleat_status cleat_image_settings_check(const cleat_image_settings *settings, const cleat_record *record,
                                        cleat_error *error);

/* Mode of batch normalisation in a graph of this mode. In training it adds the input `samples`. */
cleat_norm_mode cleat_model_norm_mode(cleat_graph *graph, cleat_mode mode, cleat_model_inputs *inputs);

#endif
