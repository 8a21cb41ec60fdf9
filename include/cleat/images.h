/* Images with classes, and images with masks. */
#ifndef CLEAT_IMAGES_H
#define CLEAT_IMAGES_H

#include "cleat/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Random augmentation of training samples; all zero (crop_min 1): none. */
typedef struct cleat_augment {
    /* random crop: least share of the area, 0.05 .. 1; aspect ratio 3/4 .. 4/3 */
    double crop_min;
    int64_t shift;                           /* random shift: at most this many pixels in either direction */
    bool flip, flip_vertical, turn;          /* left-right; up-down; by quarters of a circle */
    double brightness, contrast, saturation; /* factors from [1 - x, 1 + x] */
} cleat_augment;

/* Options shared by images with classes and images with masks. */
typedef struct cleat_image_options {
    int64_t size;     /* S: samples are S x S */
    int64_t channels; /* 1 grey, 3 colour, 0: colour where any training image is */
    cleat_augment augment;
    /* fractions by a hash of the name, for splits that the data do not define */
    double val_fraction, test_fraction;
    int64_t cache_bytes; /* maximum size of the in-memory cache of decoded images */
    /* classes in order, separated by blanks; NULL or "": from the data, sorted by name (IDX and CIFAR: in
     * the order of their numbers) */
    const char *classes;
    /* folder of an earlier cleat_dataset_save: channels, means, deviations, classes are its; NULL or "":
     * fitted from the training part */
    const char *fitted;
    /* for prediction, needs `fitted`: samples without a target are taken too; all are CLEAT_SPLIT_TEST */
    bool predict;
} cleat_image_options;

/* size 224, channels 0, no augmentation, val 0.1, test 0, cache 256 MiB. */
CLEAT_API cleat_image_options cleat_image_defaults(void);

enum { CLEAT_NO_CLASS = -1 };

/* Images with a class. Fields, in this order:
 *   image  f32 [L, L, C]  (value - mean) / std of the channel, in the training part
 *   label  i32 []         the class, or CLEAT_NO_CLASS; in an empty slot too
 * cleat_dataset_length is S for every sample. `path` is one of
 *   a folder of IDX files (also .gz), found by their names: train-images*, train-labels*, t10k-images*,
 *     t10k-labels* (or test-, val-); rank 3 (grey) or 4 (channels last)
 *   a folder with CIFAR-10 binary files: data_batch_*.bin and test_batch.bin, class names in
 *     batches.meta.txt if present
 *   a folder of class folders of PNG and JPEG files, or of train/, val/, test/ folders with the class
 *     folders in each
 *   for prediction also a single image, or a folder of images
 * Images are taken as their files have them: a turn that EXIF data ask for is not made (turn such files
 * first). t10k and test_batch are CLEAT_SPLIT_TEST where there is a validation part too or val_fraction >
 * 0, else CLEAT_SPLIT_VAL. A class that validation or test data have and the training part has not is an
 * error that names the folder. Means and (biased) deviations are those of all training pixels in memory
 * (IDX, CIFAR: they stay there as bytes), of files those of at most 2000 training images, spread evenly
 * over the list. An image that is not square is seen as its centred square. Files are checked by their
 * heads when opened; one whose pixels turn out to be broken is an error of cleat_dataset_fill that names
 * it. */
CLEAT_API cleat_status cleat_images_open(const char *path, const cleat_image_options *options, cleat_dataset **dataset,
                                         cleat_error *error);

/* Sizes and counts of images with classes or masks. All 0 for a dataset of another kind. */
typedef struct cleat_image_info {
    int64_t size, channels, classes; /* S, C; classes 2 for masks */
    int64_t samples[CLEAT_SPLITS];
    double positive;                 /* masks: part of the training part's known pixels that are 1 */
    int64_t height, width;           /* maps over time: of a frame, padded to whole patches; else S */
    int64_t file_height, file_width; /* maps over time: of a frame in its file, without the padding; else S */
    int64_t steps;                   /* maps over time: T at most */
} cleat_image_info;
/* Of a dataset of images, masks or maps. */
CLEAT_API cleat_image_info cleat_image_describe(const cleat_dataset *dataset);
/* The name of a class, borrowed; NULL behind the last. */
CLEAT_API const char *cleat_images_class(const cleat_dataset *dataset, size_t index);
/* Training samples of a class, those of `fitted` where it tells them; 0 behind the last. */
CLEAT_API int64_t cleat_images_class_samples(const cleat_dataset *dataset, size_t index);

/* Images with a mask. `path` is a folder with images/ and masks/: NAME.png (or .jpg) and masks/NAME.png of
 * the same size, grey, 0 background, anything else 1 (127.5 and more of 255); val.txt, test.txt name
 * samples of those parts, one a line. Fields:
 *   image  f32 [L, L, C]
 *   mask   i32 [L, L]     0, 1, or -1 unknown (outside the image, and in an empty slot)
 * cleat_dataset_length is S for every sample; the id is NAME. The whole image is scaled to S x S, also one
 * that is not square, and the mask with it. A part without its .txt file gets its fraction by a hash of
 * the names. Means, deviations and the share of 1 are those of at most 2000 training images, spread evenly
 * over the list. A mask with greys above 0 but none from 128 on (0 and 1 of 255, say) is an error. For
 * prediction `path` may also be a folder of images, or one image; masks are not looked at then. */
CLEAT_API cleat_status cleat_masks_open(const char *path, const cleat_image_options *options, cleat_dataset **dataset,
                                        cleat_error *error);
/* The size in pixels of the image file of a sample. */
CLEAT_API cleat_status cleat_masks_file_size(const cleat_dataset *dataset, size_t sample, int64_t *height,
                                             int64_t *width, cleat_error *error);

/* Writes bytes as a grey PNG [H, W], atomically. */
CLEAT_API cleat_status cleat_png_write(const char *path, const uint8_t *pixels, int64_t height, int64_t width,
                                       cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
