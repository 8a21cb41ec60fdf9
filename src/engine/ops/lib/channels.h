/* Launches of kernels that process each channel of a tensor [rows, channels]: cl/lib/channels.clh. */
#ifndef CLEAT_SRC_OPS_CHANNELS_H
#define CLEAT_SRC_OPS_CHANNELS_H

#include "graph/launch.h"

/* Partition of a tensor into chunks of channels. Each kernel additionally divides the rows into parts. */
typedef struct cleat_channels {
    int64_t rows, channels;
    int64_t items;   /* COLUMN_ITEMS */
    int64_t vectors; /* VECTORS */
    int64_t spans;   /* SPANS */
    int64_t chunks;
} cleat_channels;

/* x [..., C]; the rows are all other dimensions, flattened. */
cleat_channels cleat_channels_of(const cleat_tensor *x, const cleat_device_facts *facts);
/* The same for kernels bound by reading rows: a work-item reads long runs of them, in several spans. */
cleat_channels cleat_channels_long_of(const cleat_tensor *x, const cleat_device_facts *facts);

/* Number of row parts for a kernel whose partial results are combined afterwards: few parts with many rows
 * each. */
int64_t cleat_channels_joined_parts(const cleat_channels *cut, const cleat_device_facts *facts);
/* Number of row parts for a kernel with independent work-groups: enough to keep the device busy. */
int64_t cleat_channels_free_parts(const cleat_channels *cut, const cleat_device_facts *facts);

/* Whether a kernel should bypass the caches when it writes `result` (channels_stream): on a CPU, if the
 * second-level caches could not keep it. */
bool cleat_channels_stream(const cleat_tensor *result, const cleat_device_facts *facts);

/* Begins a launch of `kernel` for tensors with this partition. */
void cleat_launch_channel_kernel(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel,
                                 cleat_dtype storage, const cleat_channels *cut);
/* Ends the launch with one work-group per chunk and part. */
void cleat_launch_channel_groups(cleat_binder *binder, const cleat_channels *cut, int64_t parts);

#endif
