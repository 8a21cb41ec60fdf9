/* Public function that writes a grey image as PNG. */
#include "data/image/file.h"

#include "cleat/images.h"

cleat_status cleat_png_write(const char *path, const uint8_t *pixels, int64_t height, int64_t width,
                             cleat_error *error) {
    if (!path || !pixels || height < 1 || width < 1 || height > CLEAT_IMAGE_MAX_PIXELS / width)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "a PNG file of %lld x %lld pixels; the maximum is %d",
                          (long long)height, (long long)width, CLEAT_IMAGE_MAX_PIXELS);
    cleat_image image = {.height = height, .width = width, .channels = 1, .pixels = (uint8_t *)pixels};
    return cleat_image_write_png(path, &image, error);
}
