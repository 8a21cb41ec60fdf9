/* Image datasets: images with a class each, and images with masks. */
#ifndef CLEAT_IMAGES_H
#define CLEAT_IMAGES_H

#include "cleat/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Random augmentation of training samples; all zero (crop_min 1): none. */
typedef struct cleat_augment {
    /* Random crop: minimum fraction of the area, 0.05 .. 1; the aspect ratio is 3/4 .. 4/3. */
    double crop_min;
    int64_t shift; /* random shift: maximum number of pixels in each direction */
    /* mirroring left-right; mirroring up-down; rotation by multiples of 90 degrees */
    bool flip, flip_vertical, turn;
    double brightness, contrast, saturation; /* factors from [1 - x, 1 + x] */
    double rotate;                           /* rotation: largest angle in degrees */
    /* elastic deformation: root mean square of the displacements, and their smoothness, in pixels of the sample */
    double elastic, elastic_sigma;
    /* gamma: exponent from [1 / (1 + x), 1 + x]; noise: largest deviation, for values 0 .. 1; blur: largest deviation
     * of a Gaussian, in pixels */
    double gamma, noise, blur;
    /* RandAugment: operations for each sample, and their magnitude, 0 to 30 */
    int64_t randaugment_count, randaugment_magnitude;
    /* images with classes: mixup and CutMix with another training sample; parameter of the Beta distribution */
    double mixup, cutmix;
} cleat_augment;

/* Options shared by images with classes and images with masks. */
typedef struct cleat_image_options {
    int64_t size;     /* S: samples are S x S */
    int64_t channels; /* 1 grey, 3 colour, 0: colour if any training image is */
    cleat_augment augment;
    /* Fractions for splits that the data do not define; a hash of the name assigns each image. */
    double val_fraction, test_fraction;
    const char *fold_column; /* tables: rows with equal values of this column are in one fold; NULL or "": none */
    cleat_fold fold;         /* in place of the validation fraction and of a validation set, whose samples take part */
    int64_t cache_bytes;     /* maximum size of the in-memory cache of decoded images */
    /* Class names in order, separated by blanks. NULL or "": from the data, sorted by name (IDX and CIFAR: in
     * numerical order; masks: "class_0", ... or the lines of labels.txt). */
    const char *classes;
    /* Masks: number of classes, 2 to 255; the values in mask files are class ids. 0: the number of names in
     * `classes`, or without names two classes, black and white. */
    int64_t mask_classes;
    /* Masks with classes: JSON file with an object id2label ({"0": "wall", ...}) that names the classes if
     * `classes` and the data do not; ignored if it is missing or has another number of names. NULL or "":
     * none. */
    const char *names;
    bool reduce_labels; /* masks with classes: value 0 is unlabelled, value k is class k - 1 */
    /* Folder of an earlier cleat_dataset_save, from which channels, means, standard deviations and classes
     * are read. NULL or "": fitted to the training part. */
    const char *fitted;
    /* For prediction; requires `fitted`. Samples without a target are included; all belong to
     * CLEAT_SPLIT_TEST. */
    bool predict;
    /* Mean and standard deviation of each channel, or of all, as numbers separated by blanks, for values 0 ..
     * 1: "0.485 0.456 0.406". Both or neither; NULL or "": those of the training part. Ignored if `fitted`
     * has them. */
    const char *mean, *std;
    /* Tables of images with classes. The columns of file names (NULL or "": the one whose first rows name files) and of
     * classes (NULL or "": "label"); the folder of the images (NULL or "": that of the table). */
    const char *image_column, *label_column, *image_folder;
    /* Tables may give several labels or numbers in place of a class: `label_column` then names one or several columns,
     * as in cleat/texts.h. A folder of classes with such a problem is an error. */
    cleat_target_options targets;
    /* Masks: what their names have after that of the image, such as "_mask". NULL or "": nothing, or "_mask" if more
     * files have it. */
    const char *mask_suffix;
    int64_t partners; /* mixup and CutMix: mix only with the first ones of the training part; 0: all */
} cleat_image_options;

/* size 224, channels 0, no augmentation, val 0.1, test 0, cache 256 MiB. */
CLEAT_API cleat_image_options cleat_image_defaults(void);

enum { CLEAT_NO_CLASS = -1 };

/* Opens a dataset of images with a class each. Letters: S options->size, L padded length (= S), C channels.
 * The fields are, in this order:
 *   image  f32 [L, L, C]  (value - mean) / std of the channel: options->mean and std, or those of the
 *                         training part
 *   label  i32 []         the class; CLEAT_NO_CLASS if it is unknown, or if the slot is empty
 * or, with targets.problem multi_label or regression, target f32 [n, 1] as in cleat/texts.h; of a mixed sample the mean
 * by weight. With classes and augment.mixup or cutmix also
 *   labels i32 [2]        the classes of the sample and of the training sample that is mixed into it
 *   mix    f32 [2]        their weights; 1 and 0 in evaluation
 * cleat_dataset_length is S for every sample. `path` is one of
 *   a folder of IDX files (also .gz), found by their names: train-images*, train-labels*, t10k-images*,
 *     t10k-labels* (or test-, val-); rank 3 (grey) or 4 (channels last)
 *   a folder of CIFAR-10 binary files: data_batch_*.bin and test_batch.bin, with the class names in
 *     batches.meta.txt if present
 *   a folder of class folders of PNG and JPEG files, or of train/, val/, test/ folders that each contain
 *     the class folders
 *   a table (.csv, .tsv), or a folder of tables train, val, test without class folders: each row has the name of a
 *     file, with or without its ending, and its class. Rows of the training table are divided as images of folders
 *     are. An image that is missing or named twice is an error. For prediction the column of classes may be missing.
 *   for prediction also a single image, or a folder of images
 * t10k and test_batch are CLEAT_SPLIT_TEST if a validation part also exists or val_fraction > 0; otherwise
 * they are CLEAT_SPLIT_VAL. A class that occurs in the validation or test data but not in the training part
 * is an error that names the folder.
 *
 * EXIF orientation is ignored: rotate such files first. An image that is not square is cropped to its central
 * square. Means and (biased) standard deviations are those of all training pixels for data kept in memory
 * (IDX and CIFAR, as bytes); for image files they are those of at most 2000 training images, spread evenly
 * over the list. Only file headers are checked when the dataset is opened. Broken pixel data is an error of
 * cleat_dataset_fill, which names the file. */
CLEAT_API cleat_status cleat_images_open(const char *path, const cleat_image_options *options, cleat_dataset **dataset,
                                         cleat_error *error);

/* Sizes and counts of a dataset of images, masks or maps. */
typedef struct cleat_image_info {
    int64_t size, channels, classes; /* S, C; classes 2 for masks of black and white */
    int64_t samples[CLEAT_SPLITS];
    double positive;       /* masks: fraction of ones among the known pixels of the training part */
    int64_t height, width; /* maps over time: size of a frame, padded to whole patches; else S */
    /* maps over time: size of a frame in its file, without padding; else S */
    int64_t file_height, file_width;
    int64_t steps; /* maps over time: T, the maximum number of frames */
} cleat_image_info;
/* Returns the sizes and counts of a dataset of images, masks or maps; all 0 for a dataset of another kind. */
CLEAT_API cleat_image_info cleat_image_describe(const cleat_dataset *dataset);
/* Name of a class, borrowed; NULL past the last one. */
CLEAT_API const char *cleat_images_class(const cleat_dataset *dataset, size_t index);
/* The class of a sample; -1 if it has none. */
CLEAT_API int32_t cleat_images_label(const cleat_dataset *dataset, size_t sample);
/* Number of training samples of a class, read from `fitted` if it contains them; 0 past the last class. */
CLEAT_API int64_t cleat_images_class_samples(const cleat_dataset *dataset, size_t index);

/* Opens a dataset of images with a mask each. `path` is a folder with images/ and masks/: NAME.png (or .jpg)
 * and masks/NAME.png of the same size, grey, 0 background; values of at least 127.5 of 255 become 1. val.txt
 * and test.txt list the names of the samples in those parts, one per line. With a suffix (options->mask_suffix) masks
 * are masks/NAME_mask.png, or without that folder images/NAME_mask.png or NAME_mask.png beside NAME.png. Values of 16
 * bits: black is 0, white 65535. The fields are, in this order:
 *   image  f32 [L, L, C]
 *   mask   i32 [L, L]     0, 1, or -1 unknown (outside the image, and in an empty slot)
 * cleat_dataset_length is S for every sample; the id is NAME. The whole image is resized to S x S together
 * with its mask, even if it is not square. A part without a .txt file receives its fraction of the samples by
 * a hash of their names. Means, standard deviations and the fraction of ones are those of at most 2000
 * training images, spread evenly over the list. A mask with greys above 0 but none of at least 128 (for
 * example 0 and 1 of 255) is an error. For prediction, `path` may also be a folder of images or a single
 * image; masks are not read then. */
CLEAT_API cleat_status cleat_masks_open(const char *path, const cleat_image_options *options, cleat_dataset **dataset,
                                        cleat_error *error);
/* With options->mask_classes or names, the values of a mask (greys or palette indices) are classes. 255 is
 * unlabelled, as is 0 with reduce_labels; unlabelled pixels and positions outside the image are -1 in the
 * field `mask`. A value that is not a class is an error of cleat_dataset_fill (or of opening, for the samples
 * from which means are computed) with file, row and column. Names come from options->classes, else from
 * labels.txt in the folder, one per line, else from options->names. */

/* Name of a class of masks with classes, borrowed; NULL past the last one, and for other data. */
CLEAT_API const char *cleat_masks_class(const cleat_dataset *dataset, size_t index);
/* Number of pixels of a class in the training masks that means were computed from; 0 past the last class. */
CLEAT_API int64_t cleat_masks_class_pixels(const cleat_dataset *dataset, size_t index);
/* Size in pixels of the image file of a sample. */
CLEAT_API cleat_status cleat_masks_file_size(const cleat_dataset *dataset, size_t sample, int64_t *height,
                                             int64_t *width, cleat_error *error);

/* Writes `pixels` [height, width] as a grey PNG file, atomically. */
CLEAT_API cleat_status cleat_png_write(const char *path, const uint8_t *pixels, int64_t height, int64_t width,
                                       cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
