/* Commands and when they run.
 *
 * A command runs as late as OpenCL allows: when the host waits for its event, for a later event of its queue,
 * or for an event that depends on it. Each query of an event whose command was flushed runs one command. A
 * program that reads, reuses or releases something too early therefore fails every time. The waiting thread
 * runs the command. */
#ifndef VIRTUAL_CARD_QUEUE_H
#define VIRTUAL_CARD_QUEUE_H

#include "objects.h"

typedef struct vc_launch vc_launch;

struct vc_command {
    vc_command *next;
    cl_command_type type;
    cl_event event;
    cl_event *waits; /* [n_waits] of other queues, or user events */
    cl_uint n_waits;

    /* Runs it without vc_lock. Returns CL_SUCCESS, or the error that becomes the event's status. NULL:
     * nothing to do. */
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

/* Whether commands may be enqueued in this queue. With vc_lock. */
cl_int vc_check_enqueue(cl_command_queue queue, const vc_waits *waits, const char *function);

/* Enqueues a copy of the command after vc_check_enqueue. Holds its objects until it has run, then frees its
 * launch. `event` may be NULL. `blocking`: returns when the command is complete. Frees the launch on failure.
 * With vc_lock. */
cl_int vc_enqueue(cl_command_queue queue, const vc_command *command, const vc_waits *waits, bool blocking,
                  cl_event *event);

/* Marks the commands of a queue as submitted. With vc_lock. */
void vc_flush(cl_command_queue queue);

/* Runs the event's command after all that it depends on. With vc_lock, which is released while commands run. */
void vc_complete(cl_event event);

/* Runs one command of the queue if one is ready. With vc_lock. */
void vc_advance(cl_command_queue queue);

/* A new event without a command. NULL: no memory. */
cl_event vc_event_new(cl_context context, cl_command_queue queue, cl_command_type type);

#endif
