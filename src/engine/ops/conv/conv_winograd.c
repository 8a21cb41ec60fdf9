/* Convolutions on CPUs by Winograd's algorithm: 3 x 3 with stride 1; 3 x 3, 5 x 5 and 7 x 7 with stride 2. Kernels:
 * cl/conv/conv_winograd.cl.
 *
 * Not for matrix units: with half operands, a 3 x 3 layer of 64 or 512 channels of random numbers has a
 * root mean square error of 4.2e-4 of its results for tiles of 2 x 2 (2.1e-4 by rounding them to f16
 * alone), and of 2.5e-3 for 4 x 4. For 64 images of 56 x 56 x 64 a card with 4 TB/s and 400 TFLOP/s would
 * need 51 us to write and read the transformed images, and 37 us for the whole direct convolution
 * (calculated). */
#include "ops/conv/conv.h"

#include "ops/lib/count.h"

enum {
    FLOAT_BYTES = 4,
    KERNEL_TILES = 4, /* the kernel's points cost as much as the products of about as many tiles */
};

/* Taps of a kernel along a dimension: with stride 2, those of a phase. With 4 taps a tile has fewer results,
 * so that it still has 6 x 6 points. */
static int64_t taps_of(const cleat_conv *c) {
    return c->stride == 1 ? c->kernel_rows : (c->kernel_rows + 1) / 2;
}
static int64_t side_of(const cleat_conv *c) {
    return taps_of(c) == 4 ? 3 : 4;
}
/* Points along a dimension: as many as the patch has pixels. */
static int64_t patch_of(const cleat_conv *c) {
    return side_of(c) + taps_of(c) - 1;
}
/* Products of a tile, for each channel of x and of y: short kernels have one point fewer along a dimension. */
static int64_t products_of(const cleat_conv *c) {
    const int64_t along = c->stride == 1 ? patch_of(c) : 2 * patch_of(c) - 1;
    return along * along;
}

/* The work of a launch. With stride 2, x or dx is an image of blocks of 2 x 2 pixels. */
typedef struct tile_work {
    int64_t height, width, channels; /* of the source: x or dy */
    int64_t rows, columns, features; /* of the result: y or dx */
    int64_t depth, across;           /* K and N: of blocks, four times the channels */
    int64_t down, along, tiles;      /* results of an image, or blocks of them; tiles of all images */
    int64_t to, origin; /* from a result to its patch, in blocks; pixels of the first block before the image */
} tile_work;

/* The origin lets the short kernels of phases end, not begin, with their tap of 0 (cl/conv/winograd.clh). */
static tile_work work_of(const cleat_conv *c) {
    const bool dx = c->kind == CLEAT_CONV_DX;
    const int64_t phases = c->stride * c->stride, result_stride = dx ? c->stride : 1;
    tile_work w = {.height = dx ? c->rows : c->height,
                   .width = dx ? c->columns : c->width,
                   .channels = dx ? c->features : c->channels,
                   .rows = dx ? c->height : c->rows,
                   .columns = dx ? c->width : c->columns,
                   .features = dx ? c->channels : c->features};
    w.origin = (c->padding + dx) % c->stride;
    w.to = dx ? ceil_div(c->padding - w.origin, c->stride) - (taps_of(c) - 1) : -(c->padding - w.origin) / c->stride;
    w.depth = dx ? w.channels : phases * w.channels;
    w.across = dx ? phases * w.features : w.features;
    w.down = ceil_div(w.rows + (dx ? w.origin : 0), result_stride);
    w.along = ceil_div(w.columns + (dx ? w.origin : 0), result_stride);
    w.tiles = c->batch * ceil_div(w.down, side_of(c)) * ceil_div(w.along, side_of(c));
    return w;
}

/* --- y and dx ------------------------------------------------------------------------------------------------- */

/* The block of a work-item, and the panels of the kernel's points. */
typedef struct pixel_shape {
    int64_t tile_rows, tile_vecs, chunk;
    int64_t tiles_max, panels_max;
    int64_t tiles, panels, items;
    bool stored;               /* U is computed once and stored, not by each work-item */
    int64_t all_panels, pitch; /* of U: panels of columns, floats of a point */
} pixel_shape;

/* Bytes of U. */
static int64_t points_bytes(const cleat_conv *c, const pixel_shape *s) {
    return s->all_panels * patch_of(c) * patch_of(c) * s->pitch * FLOAT_BYTES;
}

/* A work-item has less than 1.25 MiB in private memory: with 66 tiles and 64 columns, the sums take 594 KiB,
 * the points of the patches 594 KiB (U stored) or 297 KiB, and those of the kernel 288 KiB. 66 tiles hold 64
 * (four images of 14 x 14).
 *
 * U is stored where it is small enough to stay in a second- or third-level cache, and several blocks of tiles read
 * it. Otherwise each work-item computes its part, which adds 15 % arithmetic but reads a quarter of the bytes
 * (measured with PoCL on 2 cores: 512 channels, 16 tiles: 2.2 ms instead of 10.7 ms; 64 channels, 784 tiles:
 * stored 10 % faster; 128 channels, 196 tiles: equal). */
static pixel_shape shape_pixels(const cleat_conv *c, const cleat_device_facts *facts) {
    enum { TILES_SIXES = 66, TILES_EIGHTS = 64, COLUMNS_MAX = 64, CHUNK_STORED = 64, CHUNK = 32, STORED_MAX = 4 << 20 };
    const tile_work w = work_of(c);
    const int64_t lanes = facts->vector_width, tiles = w.tiles, wanted = 2 * units_of(facts);
    /* Rows past the last tile are multiplied as well: in sixes, an eighth more for one block of 16 or 32. */
    const bool wasted = tiles <= TILES_EIGHTS && 10 * round_up(tiles, 6) > 11 * round_up(tiles, 8);
    const bool wide = lanes >= 16 && !wasted && round_up(w.features, 4 * lanes) == round_up(w.features, 2 * lanes);
    pixel_shape s = {.tile_rows = wide ? 6 : 8, .tile_vecs = wide ? 4 : w.features <= lanes ? 1 : 2};
    if (w.across > w.features) /* a panel is of one phase */
        while (w.features % (s.tile_vecs * lanes) != 0) s.tile_rows = 8, s.tile_vecs /= 2;
    s.tiles_max = s.tile_rows == 6 ? TILES_SIXES : TILES_EIGHTS; /* whole tiles of rows */
    const int64_t panel = s.tile_vecs * lanes;
    s.panels_max = max(COLUMNS_MAX / panel, 1);
    s.all_panels = ceil_div(w.across, panel);
    s.pitch = w.depth * panel + lanes;
    s.panels = min(s.panels_max, s.all_panels);
    const int64_t across = ceil_div(s.all_panels, s.panels);
    const int64_t blocks =
        max(ceil_div(tiles, s.tiles_max), min(ceil_div(wanted, across), ceil_div(tiles, s.tile_rows)));
    s.tiles = min(s.tiles_max, round_up(ceil_div(tiles, blocks), s.tile_rows));
    s.items = ceil_div(tiles, s.tiles) * across;
    s.stored = s.items > across && points_bytes(c, &s) <= STORED_MAX;
    s.chunk = s.stored ? CHUNK_STORED : CHUNK;
    return s;
}

static void launch_transforms(cleat_binder *binder, const cleat_conv *c) {
    CLEAT_LAUNCH_DEFINES(binder, {"WINOGRAD_TAPS", taps_of(c)}, {"WINOGRAD_SIDE", side_of(c)},
                         {"WINOGRAD_STRIDE", c->stride});
}

static void begin_pixels(cleat_binder *binder, const cleat_node *node, const cleat_conv *c, const char *kernel,
                         const pixel_shape *s) {
    cleat_launch_kernel(binder, node, "conv/conv_winograd.cl", kernel, c->y->dtype);
    cleat_launch_define(binder, "CONV_KIND", c->kind);
    launch_transforms(binder, c);
    cleat_launch_cpu_tile(binder, &(cleat_cpu_tile){s->tile_rows, s->tile_vecs, s->chunk, s->tiles_max, s->panels_max});
    cleat_launch_define(binder, "GLOBAL_PANELS", s->stored);
}

static void bind_weights(cleat_binder *binder, const cleat_node *node, const cleat_conv *c, const pixel_shape *s) {
    begin_pixels(binder, node, c, "conv_winograd_weights", s);
    cleat_launch_tensor(binder, c->weight);
    cleat_launch_workspace(binder, 0, FLOAT_BYTES);
    CLEAT_LAUNCH_I32(binder, {"N", c->features}, {"C", c->channels});
    cleat_launch_i64(binder, "pitch", s->pitch);
    const int64_t of_phase = work_of(c).channels;
    cleat_launch_groups(binder,
                        s->all_panels * (work_of(c).depth / of_phase) * ceil_div(of_phase, WINOGRAD_WEIGHT_ROWS));
}

static void bind_pixels(cleat_binder *binder, const cleat_node *node, const cleat_conv *c) {
    const tile_work w = work_of(c);
    const pixel_shape s = shape_pixels(c, binder->facts);
    const bool forward = c->kind == CLEAT_CONV_FORWARD;
    if (s.stored) bind_weights(binder, node, c, &s);
    begin_pixels(binder, node, c, "conv_winograd_pixels", &s);
    CLEAT_LAUNCH_TENSORS(binder, forward ? c->x : c->y, c->weight);
    cleat_launch_floats_or(binder, s.stored, 0, NULL);
    CLEAT_LAUNCH_TENSORS(binder, c->bias, c->accum, forward ? c->y : c->x);
    CLEAT_LAUNCH_I32(binder, {"images", c->batch}, {"height", w.height}, {"width", w.width}, {"channels", w.channels},
                     {"rows", w.rows}, {"columns", w.columns}, {"features", w.features}, {"to", w.to},
                     {"origin", w.origin}, {"block_tiles", s.tiles}, {"block_panels", s.panels});
    cleat_launch_i64(binder, "points_pitch", s.pitch);
    cleat_launch_groups(binder, s.items);
}

/* --- dw ------------------------------------------------------------------------------------------------------- */

/* The block of a work-item, and the split of the tiles. */
typedef struct filter_shape {
    int64_t tile_rows, tile_vecs, chunk;
    int64_t rows_max, panels;
    int64_t rows, items;
    int64_t split_tiles, splits;
} filter_shape;

/* The sums of 64 x 64 elements take 576 KiB of private memory, the points of 16 tiles 153 KiB each of dy and
 * x. Each split clears and interpolates its own sums, so it has many tiles. */
static filter_shape shape_filters(const cleat_conv *c, const cleat_device_facts *facts) {
    enum { SIDE = 64, STRIP = 16, SPLIT_MIN = 64 };
    const int64_t lanes = facts->vector_width, depth = work_of(c).depth, tiles = work_of(c).tiles;
    filter_shape s = {.tile_rows = 8, .tile_vecs = depth <= lanes ? 1 : 2, .chunk = 16, .rows_max = SIDE};
    s.panels = max(min(SIDE, round_up(depth, s.tile_vecs * lanes)) / (s.tile_vecs * lanes), 1);
    s.rows = round_up(ceil_div(c->features, ceil_div(c->features, SIDE)), STRIP);
    const int64_t blocks = ceil_div(c->features, s.rows) * ceil_div(depth, s.panels * s.tile_vecs * lanes);
    s.splits = max(1, min(min(ceil_div(4 * units_of(facts), blocks), tiles / SPLIT_MIN), CLEAT_SPLITS_MAX));
    s.split_tiles = round_up(ceil_div(tiles, s.splits), s.chunk);
    s.splits = ceil_div(tiles, s.split_tiles);
    s.items = blocks * s.splits;
    return s;
}

static void bind_filters(cleat_binder *binder, const cleat_node *node, const cleat_conv *c) {
    const filter_shape s = shape_filters(c, binder->facts);
    cleat_launch_kernel(binder, node, "conv/conv_winograd_dw.cl", "conv_winograd_filters", c->y->dtype);
    launch_transforms(binder, c);
    cleat_conv_launch_result(binder, c);
    cleat_launch_cpu_tile(binder, &(cleat_cpu_tile){s.tile_rows, s.tile_vecs, s.chunk, s.rows_max, s.panels});
    cleat_conv_launch_filters(binder, c, s.splits);
    const tile_work w = work_of(c);
    cleat_conv_launch_extents(binder, c);
    CLEAT_LAUNCH_I32(binder, {"to", w.to}, {"origin", w.origin}, {"block_rows", s.rows},
                     {"split_tiles", s.split_tiles});
    cleat_launch_groups(binder, s.items);
    cleat_conv_launch_reduces(binder, node, c, s.splits);
}

/* --- the variant ---------------------------------------------------------------------------------------------- */

const char *cleat_refuse_conv_winograd(const cleat_node *node, const cleat_device_facts *facts) {
    const cleat_conv c = cleat_conv_of(node);
    if (facts->work_group != 1) return "only for devices with work-groups of one work-item";
    const int64_t side = c.kernel_rows;
    if (side != c.kernel_columns ||
        !(c.stride == 1 ? side == 3 : c.stride == 2 && (side == 3 || side == 5 || side == 7)))
        return "only for kernels of 3 x 3, and of 5 x 5 and 7 x 7 with stride 2";
    /* A vector of channels belongs to one pixel, or to a row of pixels of a block. */
    const int64_t lanes = facts->vector_width;
    const bool of_few = c.stride > 1 && c.stride * c.channels <= lanes && c.kind != CLEAT_CONV_DX;
    if (c.stride > 1 && c.channels % lanes != 0 && !of_few) return "blocks of pixels would not be whole vectors";
    if ((c.channels < 16 && !(of_few && side == 7)) || c.features < 16)
        return "too few channels for the transforms to pay";
    const tile_work w = work_of(&c);
    const int64_t results = c.batch * w.down * w.along;
    if (4 * side * side * results < 5 * products_of(&c) * (w.tiles + KERNEL_TILES))
        return "too many pixels of tiles would lie outside";
    return NULL;
}

int64_t cleat_workspace_conv_winograd(const cleat_node *node, const cleat_device_facts *facts) {
    const cleat_conv c = cleat_conv_of(node);
    if (c.kind == CLEAT_CONV_DW) return cleat_conv_filters_workspace(&c, shape_filters(&c, facts).splits);
    const pixel_shape s = shape_pixels(&c, facts);
    return s.stored ? points_bytes(&c, &s) : 0;
}

void cleat_bind_conv_winograd(const cleat_node *node, cleat_binder *binder) {
    const cleat_conv c = cleat_conv_of(node);
    if (c.kind == CLEAT_CONV_DW)
        bind_filters(binder, node, &c);
    else
        bind_pixels(binder, node, &c);
}
