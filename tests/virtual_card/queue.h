/* Commands, and when they run.
 *
 * A command runs as late as OpenCL allows: when the host waits for its event, for a later one of its queue,
 * or for one that depends on it; and one at each query of an event whose command was flushed. So a program
 * that reads, reuses or releases something too soon is wrong here every time. The thread that waits runs the
 * command. */
#ifndef VIRTUAL_CARD_QUEUE_H
#define VIRTUAL_CARD_QUEUE_H

#include "objects.h"

typedef struct vc_launch vc_launch;

struct vc_command {
    vc_command *next;
    cl_command_type type;
    cl_event event;
    cl_event *waits; /* n_waits; in other queues, or user events */
    cl_uint n_waits;

    /* Runs it, without vc_lock. CL_SUCCESS, or the error that becomes the event's status. NULL: nothing to do. */
    cl_int (*run)(vc_command *command);
    cl_mem from, to; /* held; NULL: none */
    size_t from_offset, to_offset, bytes;
    void *host;
    unsigned char pattern[128];
    size_t pattern_bytes;
    vc_mapping *mapping;
    vc_launch *launch; /* owned */
};

typedef struct vc_waits {
    cl_uint count;
    const cl_event *events;
} vc_waits;

/* Whether commands may be enqueued there. With vc_lock. */
cl_int vc_check_enqueue(cl_command_queue queue, const vc_waits *waits, const char *function);

/* Enqueues a copy of the command; what it names is held until it has run, and its launch then freed. `event` may be
 * NULL. Blocking: returns when the command is complete. vc_check_enqueue came first. On failure the launch is freed.
 * With vc_lock. */
cl_int vc_enqueue(cl_command_queue queue, const vc_command *command, const vc_waits *waits, bool blocking,
                  cl_event *event);

/* Marks the commands of a queue as handed to the card. With vc_lock. */
void vc_flush(cl_command_queue queue);

/* Runs what the event waits for, and its command. With vc_lock, which is free while commands run. */
void vc_complete(cl_event event);

/* Runs one command of the queue, if one may run. With vc_lock. */
void vc_advance(cl_command_queue queue);

/* A new event without a command. NULL: no memory. */
cl_event vc_event_new(cl_context context, cl_command_queue queue, cl_command_type type);

#endif
