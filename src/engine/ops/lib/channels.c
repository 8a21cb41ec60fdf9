/* Distribution of a tensor's channels among work-items. */
#include "ops/lib/channels.h"
#include "ops/lib/count.h"

/* A chunk has 64 channels: 256 contiguous bytes of f32, four vectors of a CPU. */
enum { CHUNK_ITEMS = 16, CHUNK_VECTORS = 4 };
/* Vectors of a long chunk: 4 KiB of f32. A kernel's values per channel have to stay in the first-level cache. */
enum { LONG_VECTORS = 64 };
enum { STREAM_BYTES = 4 << 20 };
enum { CPU_GROUPS_PER_UNIT = 8, JOINED_GROUPS_PER_UNIT = 2, FREE_GROUPS_PER_UNIT = 8 };
/* Minimum number of rows per work-item for a separate part. */
enum { JOINED_ROWS = 8, FREE_ROWS = 1, CPU_ROWS = 16 };

/* Vectors per chunk: the largest number that divides a row. Rows that end with a partial vector are processed
 * by single vectors, because their kernels are already large. */
static int64_t whole_vectors(int64_t channels, int64_t vector_width) {
    int64_t vectors = CHUNK_VECTORS;
    while (vectors > 1 && channels % (vector_width * vectors)) --vectors;
    return vectors;
}

static cleat_channels cut_channels(const cleat_tensor *x, const cleat_device_facts *facts, bool wants_long) {
    int64_t channels = cleat_width(x), all = ceil_div(channels, facts->vector_width);
    cleat_channels cut = {.rows = cleat_rows(x), .channels = channels, .items = 1, .vectors = 1, .spans = 1};
    if (facts->work_group == 1)
        cut.vectors = whole_vectors(channels, facts->vector_width);
    else
        while (cut.items < all && cut.items < CHUNK_ITEMS && cut.items < facts->work_group) cut.items *= 2;
    if (facts->work_group == 1 && wants_long) cut.spans = LONG_VECTORS / cut.vectors;
    cut.chunks = ceil_div(all, cut.items * cut.vectors * cut.spans);
    return cut;
}

cleat_channels cleat_channels_of(const cleat_tensor *x, const cleat_device_facts *facts) {
    return cut_channels(x, facts, false);
}

cleat_channels cleat_channels_long_of(const cleat_tensor *x, const cleat_device_facts *facts) {
    return cut_channels(x, facts, true);
}

static int64_t parts(const cleat_channels *cut, const cleat_device_facts *facts, int64_t rows_an_item,
                     int64_t groups_per_unit) {
    int64_t rows_at_once = facts->work_group / cut->items;
    int64_t wanted = ceil_div(cut->rows, rows_an_item * rows_at_once);
    int64_t useful = max(units_of(facts) * groups_per_unit / cut->chunks, 1);
    return max(min(wanted, useful), 1);
}

int64_t cleat_channels_joined_parts(const cleat_channels *cut, const cleat_device_facts *facts) {
    if (facts->work_group == 1) return parts(cut, facts, CPU_ROWS, CPU_GROUPS_PER_UNIT);
    return parts(cut, facts, JOINED_ROWS, JOINED_GROUPS_PER_UNIT);
}

int64_t cleat_channels_free_parts(const cleat_channels *cut, const cleat_device_facts *facts) {
    if (facts->work_group == 1) return parts(cut, facts, CPU_ROWS, CPU_GROUPS_PER_UNIT);
    return parts(cut, facts, FREE_ROWS, FREE_GROUPS_PER_UNIT);
}

void cleat_launch_channel_kernel(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel,
                                 cleat_dtype storage, const cleat_channels *cut) {
    int64_t vector_width = binder->facts->vector_width;
    cleat_launch_vector_kernel(binder, node, file, kernel, storage, cut->channels);
    CLEAT_LAUNCH_DEFINES(binder, {"COLUMN_ITEMS", cut->items}, {"VECTORS", cut->vectors});
    if (cut->spans > 1) cleat_launch_define(binder, "SPANS", cut->spans);
    if (binder->facts->vendor == CLEAT_VENDOR_POCL)
        CLEAT_LAUNCH_DEFINES(binder, {"BUILTIN_PREFETCH", 1}, {"STREAMS", 1});
    CLEAT_LAUNCH_DEFINES(binder, {"TAIL", cut->channels % vector_width},
                         {"WHOLE", cut->channels % (vector_width * cut->items * cut->vectors) == 0});
}

void cleat_launch_channel_groups(cleat_binder *binder, const cleat_channels *cut, int64_t parts) {
    cleat_launch_groups(binder, parts * cut->chunks);
}

bool cleat_channels_stream(const cleat_tensor *result, const cleat_device_facts *facts) {
    return facts->work_group == 1 && cleat_tensor_bytes(result) >= STREAM_BYTES;
}
