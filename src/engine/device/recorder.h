/* Recorder: the commands that are enqueued on a device, with their times on the device. */
#ifndef CLEAT_SRC_RECORDER_H
#define CLEAT_SRC_RECORDER_H

#include "device/device.h"

typedef enum cleat_command_kind {
    CLEAT_COMMAND_KERNEL,
    CLEAT_COMMAND_SGEMM,  /* all kernels of a product of CLBlast */
    CLEAT_COMMAND_COPY,   /* inputs, within the device */
    CLEAT_COMMAND_UPLOAD, /* inputs, on the transfer queue; all other commands are on the compute queue */
    CLEAT_COMMAND_READ,   /* to the host */
    CLEAT_COMMAND_WRITE,  /* from the host */
} cleat_command_kind;

typedef struct cleat_command {
    cleat_command_kind kind;
    size_t graph;            /* index in the plan */
    const void *subject;     /* kernel, product: its launch; else the name of the tensor or graph. Borrowed */
    int64_t bytes;           /* of a copy in any direction; else 0 */
    int64_t batch;           /* upload: number of the batch (cleat_recorder_set_batch); else -1 */
    double called, returned; /* host: before and after the call that enqueued it; seconds of cleat_seconds */
    cl_event event, begin;   /* begin: a marker in front of a product; NULL after cleat_recorder_read */
    /* Device: nanoseconds of its timer; set by cleat_recorder_read. Both 0: the driver reported no times. */
    uint64_t started, ended;
} cleat_command;

enum { CLEAT_RECORDER_COMMANDS = 400000 };

struct cleat_recorder {
    cleat_command *commands; /* [count] in the order in which they were enqueued */
    size_t count, capacity;
    bool in_command; /* between cleat_recorder_begin and _end */
    int64_t batch;
    size_t lost;    /* commands that were not recorded: there are CLEAT_RECORDER_COMMANDS, or memory was short */
    size_t unknown; /* commands without times */
};

/* Swaps both queues of the device for new ones that keep the times of commands, and begins to record; waits
 * for all enqueued work first. Kernels are not tied to a queue. The recorder is the caller's:
 * zero-initialised or used before; it must stay valid until cleat_recorder_stop. */
cleat_status cleat_recorder_start(cleat_device *device, cleat_recorder *recorder, cleat_error *error);
/* Swaps back to queues without times, after waiting for all enqueued work. The commands stay in the recorder. */
cleat_status cleat_recorder_stop(cleat_device *device, cleat_error *error);
/* Asks the driver for the times of all commands and releases their events. Call it after cleat_recorder_stop. */
void cleat_recorder_read(cleat_recorder *recorder);
/* Releases everything; the recorder is then as new. */
void cleat_recorder_clear(cleat_recorder *recorder);

/* Whether commands are recorded. The three functions below do nothing if they are not. */
static inline bool cleat_is_recorded(const cleat_device *device) {
    return device->recorder != NULL;
}
/* Number of the batch that the next uploads carry; -1: they carry something else. */
void cleat_recorder_set_batch(cleat_device *device, int64_t batch);
/* Begins a command: call it before the function that enqueues. */
void cleat_recorder_begin(cleat_device *device, cleat_command_kind kind, size_t graph, const void *subject,
                          int64_t bytes);
/* Ends the command begun last; `event` is retained. NULL: it was not enqueued, and is forgotten. */
void cleat_recorder_end(cleat_device *device, cl_event event);

/* A pair of simultaneous times: of the device's timer, and of cleat_seconds. */
typedef struct cleat_clock_pair {
    uint64_t device; /* nanoseconds */
    double host;     /* seconds */
    double error;    /* bound of the host time's error: the shortest time between two readings of the host's clock */
    const char *source;
} cleat_clock_pair;

/* Compares the clocks of device and host; the queues must keep times. Waits for the device. By
 * clGetDeviceAndHostTimer if the driver has it and its device time lies on the scale of the commands; else by
 * a marker, whose end is compared with the time right after clWaitForEvents returns. */
cleat_status cleat_clock_compare(cleat_device *device, cleat_clock_pair *pair, cleat_error *error);
/* Resolution of the device's timer in nanoseconds, at least 1. */
uint64_t cleat_clock_resolution(const cleat_device *device);

#endif
