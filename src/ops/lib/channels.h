/* Launches of kernels that work on each channel of a tensor [rows, channels]: cl/lib/channels.clh. */
#ifndef CLEAT_SRC_OPS_CHANNELS_H
#define CLEAT_SRC_OPS_CHANNELS_H

#include "graph/launch.h"

/* How a tensor is cut: into chunks of channels and, for each kernel anew, parts of rows. */
typedef struct cleat_channels {
    int64_t rows, channels;
    int64_t items;   /* COLUMN_ITEMS */
    int64_t vectors; /* VECTORS */
    int64_t chunks;
} cleat_channels;

/* x [..., C]; rows are all of its other extents. */
cleat_channels cleat_channels_of(const cleat_tensor *x, const cleat_device_facts *facts);

/* Parts of rows for a kernel whose groups are joined afterwards: few, each of many rows. */
int64_t cleat_channels_joined_parts(const cleat_channels *cut, const cleat_device_facts *facts);
/* Parts of rows for a kernel whose groups know nothing of each other: as many as keep the device busy. */
int64_t cleat_channels_free_parts(const cleat_channels *cut, const cleat_device_facts *facts);

/* Starts a launch of `kernel` for tensors cut so. */
void cleat_launch_channel_kernel(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel,
                                 cleat_dtype storage, const cleat_channels *cut);
/* Ends it: a group for each chunk of each part. */
void cleat_launch_channel_groups(cleat_binder *binder, const cleat_channels *cut, int64_t parts);

#endif
