/* Convolutions on CPUs with wide vectors, and the generic form for any device. Kernels: cl/conv/conv.cl.
 * Winograd's algorithm: conv_winograd.c. GPUs: conv_gpu.c, conv_mma.c. */
#include "ops/conv/conv.h"

#include "ops/lib/count.h"
#include "ops/linear/linear.h"

enum {
    FLOAT_BYTES = 4,
    SPLIT_DEPTH_MIN = 512, /* minimum number of pixels per part of a split sum */
};

void cleat_conv_launch_extents(cleat_binder *binder, const cleat_conv *c) {
    CLEAT_LAUNCH_I32(binder, {"B", c->batch}, {"H", c->height}, {"W", c->width}, {"C", c->channels}, {"P", c->rows},
                     {"Q", c->columns}, {"N", c->features});
}

void cleat_conv_launch_geometry(cleat_binder *binder, const cleat_conv *c) {
    cleat_conv_launch_extents(binder, c);
    CLEAT_LAUNCH_I32(binder, {"R", c->kernel_rows}, {"S", c->kernel_columns}, {"stride", c->stride},
                     {"padding", c->padding});
}

void cleat_conv_launch_result(cleat_binder *binder, const cleat_conv *c) {
    if (c->kind == CLEAT_CONV_DW && c->weight->dtype != c->y->dtype) cleat_launch_define(binder, "C_F32", 1);
}

/* --- CPU: register tiles of one work-item ---------------------------------------------------------------------- */

/* The block of results computed by a work-item. gemm_cpu.clh has the same names. */
typedef struct cpu_shape {
    int64_t tile_rows, tile_vecs, chunk;
    int64_t rows_max, panels_max;
    int64_t rows, panels;
    int64_t items;
    bool by_position;            /* order of the pixels, for y and dx only */
    int64_t split_depth, splits; /* split of the pixels, for dw only */
} cpu_shape;

static void launch_cpu(cleat_binder *binder, const cleat_node *node, const cleat_conv *c, const char *kernel,
                       const cpu_shape *s) {
    cleat_launch_kernel(binder, node, "conv/conv_cpu.cl", kernel, c->y->dtype);
    cleat_conv_launch_result(binder, c);
    cleat_launch_define(binder, "CONV_KIND", c->kind);
    cleat_launch_cpu_tile(binder, &(cleat_cpu_tile){s->tile_rows, s->tile_vecs, s->chunk, s->rows_max, s->panels_max});
    if (s->by_position) cleat_launch_define(binder, "BY_POSITION", 1);
}

/* --- CPU: y and dx ---------------------------------------------------------------------------------------------- */

/* Number of pixels in a contiguous range: all of y, or the maximum over the phases of dx. */
static int64_t pixels_of(const cleat_conv *c) {
    if (c->kind == CLEAT_CONV_FORWARD) return c->batch * c->rows * c->columns;
    return c->batch * ceil_div(c->height, c->stride) * ceil_div(c->width, c->stride);
}

/* The share of pairs (result pixel, tap) whose source pixel exists, in one dimension. */
static double share_inside(const cleat_conv *c, int64_t results, int64_t sources, int64_t taps) {
    const bool forward = c->kind == CLEAT_CONV_FORWARD;
    int64_t all = 0, inside = 0;
    for (int64_t i = 0; i < results; ++i)
        for (int64_t tap = 0; tap < taps; ++tap) {
            const int64_t scaled = i + c->padding - tap;
            if (!forward && scaled % c->stride != 0) continue;
            const int64_t at = forward ? i * c->stride - c->padding + tap : scaled / c->stride;
            ++all;
            inside += at >= 0 && at < sources;
        }
    return all > 0 ? (double)inside / (double)all : 1;
}

/* Whether pixels are ordered by position: the pixels of a tile, at one position in several images, then have
 * the same taps outside the image, which are skipped: five ninths of 3 x 3 taps in images of 2 x 2. (This
 * does not pay for dw, whose chunks would have pixels of one position only.) */
static bool by_position(const cleat_conv *c) {
    enum { SIDE_MAX = 8, IMAGES_MIN = 8 };
    static const double most_inside = 0.75;
    if (c->batch < IMAGES_MIN || c->rows > SIDE_MAX || c->columns > SIDE_MAX) return false;
    const double down = c->kind == CLEAT_CONV_FORWARD ? share_inside(c, c->rows, c->height, c->kernel_rows)
                                                      : share_inside(c, c->height, c->rows, c->kernel_rows);
    const double along = c->kind == CLEAT_CONV_FORWARD ? share_inside(c, c->columns, c->width, c->kernel_columns)
                                                       : share_inside(c, c->width, c->columns, c->kernel_columns);
    return down * along <= most_inside;
}

/* Number of channels of one tap that are multiplied at once if pixels are ordered by position; else 0. */
static int64_t chunk_by_position(const cleat_conv *c) {
    enum { CHUNK_MAX = 160, CHUNK_MIN = 64, STEP = 32 };
    const int64_t channels = c->kind == CLEAT_CONV_FORWARD ? c->channels : c->features;
    for (int64_t chunk = CHUNK_MAX; chunk >= CHUNK_MIN; chunk -= STEP)
        if (channels % chunk == 0) return by_position(c) ? chunk : 0;
    return 0;
}

/* The number of pixels that share a weight panel is chosen so that their packed patches and sums stay in the
 * L2 cache. Columns or pixels per item are reduced until there are enough work-items for all compute units,
 * of equal size. */
static cpu_shape shape_pixels(const cleat_conv *c, const cleat_device_facts *facts) {
    enum { ROWS_MIN = 48 };
    bool forward = c->kind == CLEAT_CONV_FORWARD;
    int64_t columns = forward ? c->features : c->channels, vector_width = facts->vector_width,
            wanted = 2 * units_of(facts);
    int64_t pixels = pixels_of(c), phases = forward ? 1 : c->stride * c->stride;
    const int64_t chunk = chunk_by_position(c);
    bool wide =
        vector_width >= 16 && !chunk && round_up(columns, 4 * vector_width) == round_up(columns, 2 * vector_width);
    cpu_shape s = {.tile_rows = wide ? 6 : 8,
                   .tile_vecs = wide                      ? 4
                                : columns <= vector_width ? 1
                                                          : 2,
                   .chunk = chunk ? chunk : 160,
                   .by_position = chunk != 0,
                   .rows_max = 480,
                   .panels_max = wide ? 4 : 8};
    int64_t width = s.tile_vecs * vector_width, blocks = ceil_div(pixels, s.rows_max);
    s.panels = min(s.panels_max, ceil_div(columns, width));
    while (s.panels > 1 && blocks * ceil_div(columns, s.panels * width) < wanted && s.panels * width * blocks > pixels)
        s.panels = ceil_div(s.panels, 2);
    int64_t across = ceil_div(columns, s.panels * width);
    blocks = max(blocks, ceil_div(wanted, across));
    if (across % units_of(facts) != 0) blocks = round_up(blocks, units_of(facts));
    s.rows = min(s.rows_max, round_up(max(ceil_div(pixels, blocks), ROWS_MIN), s.tile_rows));
    s.items = ceil_div(pixels, s.rows) * phases * across;
    return s;
}

static void bind_pixels(cleat_binder *binder, const cleat_node *node, const cleat_conv *c) {
    cpu_shape s = shape_pixels(c, binder->facts);
    bool forward = c->kind == CLEAT_CONV_FORWARD;
    launch_cpu(binder, node, c, "conv_cpu_pixels", &s);
    CLEAT_LAUNCH_TENSORS(binder, forward ? c->x : c->y, c->weight, c->bias, c->accum, forward ? c->y : c->x);
    cleat_conv_launch_geometry(binder, c);
    CLEAT_LAUNCH_I32(binder, {"block_rows", s.rows}, {"block_panels", s.panels});
    cleat_launch_groups(binder, s.items);
}

/* --- CPU: dw ---------------------------------------------------------------------------------------------------- */

/* Vectors per panel: three make better use of the values read than two, if this does not leave more columns
 * empty. */
static int64_t panel_vecs(int64_t columns, int64_t vector_width) {
    if (columns <= vector_width) return 1;
    return vector_width >= 16 && round_up(columns, 3 * vector_width) <= round_up(columns, 2 * vector_width) ? 3 : 2;
}

/* dw is small and there are many pixels, so the pixels are split into enough parts to occupy all compute
 * units. */
static cpu_shape shape_filters(const cleat_conv *c, const cleat_device_facts *facts) {
    enum { STRIP = 16, ROWS_MAX = 256, PANELS_MAX = 8 };
    int64_t columns = c->kernel_rows * c->kernel_columns * c->channels, vector_width = facts->vector_width;
    int64_t pixels = c->batch * c->rows * c->columns, wanted = 4 * units_of(facts);
    cpu_shape s = {.tile_rows = 8,
                   .tile_vecs = panel_vecs(columns, vector_width),
                   .chunk = 128,
                   .rows_max = ROWS_MAX,
                   .panels_max = PANELS_MAX};
    int64_t panels = ceil_div(columns, s.tile_vecs * vector_width);
    s.rows = round_up(ceil_div(c->features, ceil_div(c->features, ROWS_MAX)), STRIP);
    s.panels = ceil_div(panels, ceil_div(panels, PANELS_MAX));
    int64_t blocks = ceil_div(c->features, s.rows) * ceil_div(panels, s.panels);
    s.splits = max(1, min(min(ceil_div(wanted, blocks), pixels / SPLIT_DEPTH_MIN), CLEAT_SPLITS_MAX));
    s.split_depth = round_up(ceil_div(pixels, s.splits), s.chunk);
    s.splits = ceil_div(pixels, s.split_depth);
    s.items = blocks * s.splits;
    return s;
}

/* Bytes of the partial results of dw. */
static int64_t dw_bytes(const cleat_conv *c, int64_t splits) {
    return splits * cleat_tensor_elements(c->weight) * FLOAT_BYTES;
}

int64_t cleat_conv_filters_workspace(const cleat_conv *c, int64_t splits) {
    return splits > 1 ? dw_bytes(c, splits) + (c->sums ? splits * c->features * FLOAT_BYTES : 0) : 0;
}

void cleat_conv_launch_filters(cleat_binder *binder, const cleat_conv *c, int64_t splits) {
    bool whole = splits == 1;
    CLEAT_LAUNCH_TENSORS(binder, c->y, c->x, whole ? c->accum : NULL, c->weight, whole ? c->sums_accum : NULL);
    cleat_launch_floats_or(binder, !whole && c->sums, dw_bytes(c, splits), c->sums);
    cleat_launch_floats_or(binder, !whole, 0, NULL);
}

void cleat_conv_launch_reduces(cleat_binder *binder, const cleat_node *node, const cleat_conv *c, int64_t splits) {
    if (splits == 1) return;
    cleat_launch_reduce(binder, node, 0, c->accum, c->weight, splits);
    if (c->sums) cleat_launch_reduce(binder, node, dw_bytes(c, splits), c->sums_accum, c->sums, splits);
}

static void bind_filters(cleat_binder *binder, const cleat_node *node, const cleat_conv *c) {
    cpu_shape s = shape_filters(c, binder->facts);
    launch_cpu(binder, node, c, "conv_cpu_filters", &s);
    cleat_conv_launch_filters(binder, c, s.splits);
    cleat_conv_launch_geometry(binder, c);
    CLEAT_LAUNCH_I32(binder, {"block_rows", s.rows}, {"block_panels", s.panels}, {"split_depth", s.split_depth});
    cleat_launch_groups(binder, s.items);
    cleat_conv_launch_reduces(binder, node, c, s.splits);
}

static int64_t cpu_workspace(const cleat_node *node, const cleat_device_facts *facts) {
    cleat_conv c = cleat_conv_of(node);
    return c.kind == CLEAT_CONV_DW ? cleat_conv_filters_workspace(&c, shape_filters(&c, facts).splits) : 0;
}

static void bind_cpu(const cleat_node *node, cleat_binder *binder) {
    cleat_conv c = cleat_conv_of(node);
    if (c.kind == CLEAT_CONV_DW)
        bind_filters(binder, node, &c);
    else
        bind_pixels(binder, node, &c);
}

/* --- generic -------------------------------------------------------------------------------------------------- */

static void launch_plain(cleat_binder *binder, const cleat_node *node, const cleat_conv *c, const char *kernel,
                         const cleat_tensor *const *tensors, int count) {
    cleat_launch_kernel(binder, node, "conv/conv.cl", kernel, tensors[0]->dtype);
    cleat_conv_launch_result(binder, c);
    for (int i = 0; i < count; ++i) cleat_launch_tensor(binder, tensors[i]);
    cleat_conv_launch_geometry(binder, c);
    cleat_launch_items(binder, cleat_tensor_elements(tensors[count - 1]));
}

static void bind_plain(const cleat_node *node, cleat_binder *binder) {
    cleat_conv c = cleat_conv_of(node);
    switch (c.kind) {
    case CLEAT_CONV_FORWARD:
        launch_plain(binder, node, &c, "conv_plain_forward", (const cleat_tensor *[]){c.x, c.weight, c.bias, c.y}, 4);
        break;
    case CLEAT_CONV_DX:
        launch_plain(binder, node, &c, "conv_plain_dx", (const cleat_tensor *[]){c.y, c.weight, c.accum, c.x}, 4);
        break;
    case CLEAT_CONV_DW:
        launch_plain(binder, node, &c, "conv_plain_dw", (const cleat_tensor *[]){c.y, c.x, c.accum, c.weight}, 4);
        if (c.sums)
            launch_plain(binder, node, &c, "conv_plain_sums", (const cleat_tensor *[]){c.y, c.sums_accum, c.sums}, 3);
        break;
    }
}

const cleat_variant cleat_conv_variants[] = {
    CLEAT_VARIANT_ROW("mma", conv_mma),
    CLEAT_VARIANT_ROW("mma_large", conv_mma_large),
    CLEAT_VARIANT_ROW("mma_medium", conv_mma_medium),
    CLEAT_VARIANT_ROW("mma_small", conv_mma_small),
    CLEAT_VARIANT_ROW("gpu", conv_gpu),
    CLEAT_VARIANT_ROW("tf32x3_medium", conv_tf32_medium),
    CLEAT_VARIANT_ROW("tf32x3_small", conv_tf32_small),
    CLEAT_VARIANT_ROW("winograd", conv_winograd),
    {.name = "cpu", .refuse = cleat_refuse_groups, .workspace = cpu_workspace, .bind = bind_cpu},
    {.name = "plain", .bind = bind_plain},
    {0}};
