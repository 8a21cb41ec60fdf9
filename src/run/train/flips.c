/* Runs a batch of images in several views and combines the outputs, pixels at their place in the image. */
#include "core/memory.h"
#include "exec/copy.h"
#include "models/model.h"
#include "train/members.h"

#include <string.h>

enum { MIRRORED = 1, UPSIDE_DOWN = 2, TRANSPOSED = 4, VIEWS = 8 }; /* bits of a view, from 0 */

static bool is_set(const cleat_profile *profile, const char *setting) {
    char text[CLEAT_PROFILE_TEXT];
    return cleat_profile_get(profile, setting, text, sizeof text, NULL) == CLEAT_OK && strcmp(text, "true") == 0;
}

/* Images [batch, size, size] of pixels of `bytes` each: as the view shows them, or back. */
static void show(const char *from, char *to, int64_t batch, int64_t size, size_t bytes, int view, bool back) {
    for (int64_t b = 0; b < batch; ++b, from += (size_t)(size * size) * bytes, to += (size_t)(size * size) * bytes)
        for (int64_t at = 0; at < size * size; ++at) {
            const int64_t i = at / size, j = at % size, r = view & UPSIDE_DOWN ? size - 1 - i : i,
                          c = view & MIRRORED ? size - 1 - j : j;
            const int64_t there = view & TRANSPOSED ? c * size + r : r * size + c;
            memcpy(to + (size_t)(back ? there : at) * bytes, from + (size_t)(back ? at : there) * bytes, bytes);
        }
}

cleat_status cleat_flips_run(const cleat_loaded_model *loaded, const cleat_profile *profile, cleat_feed *feed,
                             const cleat_work_graph *graph, const cleat_fed_batch *fed, float *output,
                             cleat_error *error) {
    const cleat_tensor *image = cleat_graph_find(graph->graph, "image"), *result = graph->built.output;
    const int views = is_set(profile, "data.turn") ? VIEWS : is_set(profile, "data.flip_vertical") ? 4 : 2;
    const int64_t all = cleat_tensor_elements(result), batch = fed->host.batch, each = all / batch;
    cleat_status status = CLEAT_OK;
    if (!image || image->rank != 4)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "--flips is for images and their masks; model.type is %s",
                          cleat_model_name(loaded->model));
    const int64_t size = image->shape[1], pixel = image->shape[3] * cleat_dtype_size(image->dtype);
    const bool has_pixels = result->rank >= 3;
    char *staging = (char *)fed->bytes + cleat_exec_input_offset(loaded->session->exec, graph->index, image);
    char *kept = cleat_alloc((size_t)(batch * size * size), (size_t)pixel);
    float *found = cleat_alloc((size_t)(views * all), sizeof *found);
    if (!kept || !found) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %d views of a batch", views);
    if (!status) memcpy(kept, staging, (size_t)(batch * size * size * pixel));
    for (int v = 0; v < views && !status; ++v) {
        show(kept, staging, batch, size, (size_t)pixel, v, false);
        status = cleat_feed_run(feed, graph, fed, error);
        if (!status) status = cleat_exec_read_unchecked(loaded->session->exec, graph->index, result, output, error);
        if (!status && has_pixels)
            show((char *)output, (char *)(found + v * all), batch, size,
                 (size_t)(each / (size * size)) * sizeof *output, v, true);
        else if (!status)
            memcpy(found + v * all, output, (size_t)all * sizeof *output);
    }
    for (int64_t b = 0; b < batch && !status; ++b) {
        const float *of_view[VIEWS];
        for (int v = 0; v < views; ++v) of_view[v] = found + v * all + b * each;
        status = loaded->model->type->combine(loaded->model, of_view, (size_t)views, each, output + b * each, error);
    }
    cleat_free(kept);
    cleat_free(found);
    return status;
}
