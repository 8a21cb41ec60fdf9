/* The pixels of a sample for display, without standardisation. */
#include "core/memory.h"
#include "data/image/common.h"
#include "data/image/formats.h"

#include <math.h>

static uint8_t byte_of(double value) {
    double byte = round(255 * value);
    return byte < 0 || isnan(byte) ? 0 : byte > 255 ? 255 : (uint8_t)byte;
}

cleat_status cleat_image_of_sample(const cleat_dataset *dataset, size_t sample, cleat_image *image,
                                   cleat_error *error) {
    const cleat_image_dataset *common = (const cleat_image_dataset *)dataset;
    const int64_t size = common->info.size, channels = common->info.channels, values = size * size * channels;
    cleat_image made = {.height = size, .width = size, .channels = channels};
    float *standardised = cleat_alloc((size_t)values, sizeof *standardised);
    void *slots[CLEAT_IMAGE_MAX_FIELDS] = {standardised}; /* the image is the first field of both kinds */
    if (!standardised) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for an image");
    cleat_status status = cleat_dataset_fill(dataset, sample, size, NULL, slots, error);
    if (!status) status = cleat_image_alloc(cleat_dataset_id(dataset, sample), &made, error);
    for (int64_t i = 0; !status && i < values; ++i)
        made.pixels[i] = byte_of((double)standardised[i] * common->std[i % channels] + common->mean[i % channels]);
    cleat_free(standardised);
    if (!status) *image = made;
    return status;
}
