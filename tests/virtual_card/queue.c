/* Command queues: enqueues commands, and runs them in order when the host waits for them. */
#include "queue.h"

#include "faults.h"
#include "icd.h"
#include "launch.h"

#include <stdlib.h>
#include <string.h>

/* Time that another thread has to flush a queue, and queued commands at which the driver runs some. */
enum { PATIENCE_MS = 2000, STEP_MS = 100, MAX_COMMANDS = 4096 };

static void destroy_event(vc_object *object) {
    struct _cl_event *event = (struct _cl_event *)object;
    vc_drop(event->queue);
    vc_drop(event->context);
}

cl_event vc_event_new(cl_context context, cl_command_queue queue, cl_command_type type) {
    cl_event event = vc_object_new(VC_EVENT, sizeof *event, destroy_event);
    if (!event) return NULL;
    event->context = context;
    event->queue = queue;
    event->type = type;
    event->status = CL_QUEUED;
    event->queued = vc_now();
    vc_hold(context);
    vc_hold(queue);
    return event;
}

cl_int vc_check_enqueue(cl_command_queue queue, const vc_waits *waits, const char *function) {
    cl_int code = vc_check(queue, VC_QUEUE, function);
    if (code != CL_SUCCESS) return code;
    if (queue->context->lost != CL_SUCCESS) return queue->context->lost;
    if ((waits->count > 0) != (waits->events != NULL)) return CL_INVALID_EVENT_WAIT_LIST;
    for (cl_uint i = 0; i < waits->count; ++i) {
        if (vc_check(waits->events[i], VC_EVENT, function) != CL_SUCCESS) return CL_INVALID_EVENT_WAIT_LIST;
        if (waits->events[i]->context != queue->context) return CL_INVALID_CONTEXT;
    }
    return CL_SUCCESS;
}

static void free_command(vc_command *command) {
    for (cl_uint i = 0; i < command->n_waits; ++i) vc_drop(command->waits[i]);
    vc_drop(command->from);
    vc_drop(command->to);
    vc_drop(command->event);
    vc_launch_free(command->launch);
    free(command->waits);
    free(command);
}

/* NULL: no memory. */
static vc_command *copy_command(cl_command_queue queue, const vc_command *command, const vc_waits *waits) {
    vc_command *copy = malloc(sizeof *copy);
    cl_event *held = calloc(waits->count + 1, sizeof(cl_event)), event = NULL;
    if (copy && held) event = vc_event_new(queue->context, queue, command->type);
    if (!event) {
        free(copy);
        free(held);
        return NULL;
    }
    *copy = *command;
    copy->next = NULL;
    copy->event = event;
    copy->waits = held;
    copy->n_waits = waits->count;
    vc_hold(event);
    vc_hold(copy->from);
    vc_hold(copy->to);
    for (cl_uint i = 0; i < waits->count; ++i) vc_hold(held[i] = waits->events[i]);
    return copy;
}

static size_t length(const struct _cl_command_queue *queue) {
    size_t count = 0;
    for (const vc_command *command = queue->first; command; command = command->next) ++count;
    return count;
}

cl_int vc_enqueue(cl_command_queue queue, const vc_command *command, const vc_waits *waits, bool blocking,
                  cl_event *event) {
    static unsigned enqueued;
    vc_command *copy = copy_command(queue, command, waits);
    if (!copy) {
        vc_launch_free(command->launch);
        return CL_OUT_OF_HOST_MEMORY;
    }
    cl_event own = copy->event;
    if (queue->last)
        queue->last->next = copy;
    else
        queue->first = copy;
    queue->last = copy;
    cl_int code = CL_SUCCESS;
    if (blocking) {
        vc_flush(queue);
        vc_complete(own);
        if (own->status < 0) code = queue->context->lost != CL_SUCCESS ? queue->context->lost : own->status;
    }
    if (event && code == CL_SUCCESS)
        *event = own;
    else
        vc_release(own, VC_EVENT, "the driver");
    if (++enqueued % 256 == 0 && length(queue) > MAX_COMMANDS) vc_advance(queue);
    return code;
}

void vc_flush(cl_command_queue queue) {
    cl_ulong now = vc_now();
    for (vc_command *command = queue->first; command; command = command->next)
        if (command->event->status == CL_QUEUED) {
            command->event->status = CL_SUBMITTED;
            command->event->submitted = now;
        }
    vc_changed();
}

/* The first incomplete event in the command's wait list. */
static cl_event blocker(const vc_command *command) {
    for (cl_uint i = 0; i < command->n_waits; ++i)
        if (command->waits[i]->status > CL_COMPLETE) return command->waits[i];
    return NULL;
}

static bool failed_before(const vc_command *command) {
    for (cl_uint i = 0; i < command->n_waits; ++i)
        if (command->waits[i]->status < 0) return true;
    return false;
}

/* Runs the first command of the queue, which must be ready. */
static void run_first(cl_command_queue queue) {
    vc_command *command = queue->first;
    cl_int status = queue->context->lost;
    if (status == CL_SUCCESS && failed_before(command)) status = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    command->event->status = CL_RUNNING;
    command->event->started = vc_now();
    queue->running = true;
    vc_hold(queue);
    if (status == CL_SUCCESS && command->run) {
        vc_unlock();
        status = command->run(command);
        vc_lock();
    }
    if (status != CL_SUCCESS && command->type == CL_COMMAND_NDRANGE_KERNEL) queue->context->lost = status;
    command->event->ended = vc_now();
    command->event->status = status; /* CL_COMPLETE is CL_SUCCESS */
    queue->running = false;
    queue->first = command->next;
    if (!queue->first) queue->last = NULL;
    free_command(command);
    vc_changed();
    vc_drop(queue);
}

/* Waits until another thread has flushed the event's queue. On a card the wait could be endless. */
static void wait_for_flush(cl_event event) {
    for (int waited = 0; event->status == CL_QUEUED && waited < PATIENCE_MS; waited += STEP_MS)
        vc_wait_for_change(STEP_MS);
    if (event->status != CL_QUEUED) return;
    vc_fault("deadlock: the host waits for a command (type 0x%x) of a queue that was never flushed",
             (unsigned)event->type);
    vc_flush(event->queue);
}

void vc_complete(cl_event event) {
    vc_hold(event);
    while (event->status > CL_COMPLETE) {
        cl_command_queue queue = event->queue;
        if (!queue || (event->status != CL_QUEUED && queue->running)) { /* wait for another thread */
            vc_wait_for_change(STEP_MS);
            continue;
        }
        if (event->status == CL_QUEUED) {
            wait_for_flush(event);
            continue;
        }
        cl_event before = blocker(queue->first);
        if (before)
            vc_complete(before);
        else
            run_first(queue);
    }
    vc_drop(event);
}

void vc_advance(cl_command_queue queue) {
    while (queue && queue->first && !queue->running && queue->first->event->status == CL_SUBMITTED) {
        cl_event before = blocker(queue->first);
        if (!before) {
            run_first(queue);
            return;
        }
        queue = before->queue;
    }
}

static struct _cl_command_queue *queues;

/* Releasing a queue submits its commands to the card; they still run. */
static void destroy_queue(vc_object *object) {
    struct _cl_command_queue *queue = (struct _cl_command_queue *)object, **at = &queues;
    while (*at && *at != queue) at = &(*at)->next;
    if (*at) *at = queue->next;
    vc_drop(queue->context);
}

static cl_command_queue create(cl_context context, cl_device_id device, cl_command_queue_properties properties,
                               cl_int *code) {
    cl_command_queue queue = NULL;
    cl_int status = vc_check(context, VC_CONTEXT, "clCreateCommandQueue");
    if (status == CL_SUCCESS) status = vc_check(device, VC_DEVICE, "clCreateCommandQueue");
    if (status == CL_SUCCESS && properties & ~(cl_command_queue_properties)3) status = CL_INVALID_VALUE;
    if (status == CL_SUCCESS && properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE &&
        !vc_device.card->maker->out_of_order)
        status = CL_INVALID_QUEUE_PROPERTIES;
    if (status == CL_SUCCESS) queue = vc_object_new(VC_QUEUE, sizeof *queue, destroy_queue);
    if (status == CL_SUCCESS && !queue) status = CL_OUT_OF_HOST_MEMORY;
    if (queue) {
        queue->context = context;
        queue->properties = properties;
        queue->next = queues;
        queues = queue;
        vc_hold(context);
    }
    vc_return(code, status);
    return queue;
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                                 cl_command_queue_properties properties, cl_int *code) {
    VC_LOCKED;
    return create(context, device, properties, code);
}

static cl_command_queue CL_API_CALL create_with_properties(cl_context context, cl_device_id device,
                                                           const cl_queue_properties *list, cl_int *code) {
    VC_LOCKED;
    cl_command_queue_properties properties = 0;
    for (; list && list[0]; list += 2) {
        if (list[0] != CL_QUEUE_PROPERTIES) {
            vc_return(code, CL_INVALID_VALUE);
            return NULL;
        }
        properties = list[1];
    }
    return create(context, device, properties, code);
}

static cl_int CL_API_CALL retain_queue(cl_command_queue queue) {
    VC_LOCKED;
    return vc_retain(queue, VC_QUEUE, "clRetainCommandQueue");
}

static cl_int CL_API_CALL release_queue(cl_command_queue queue) {
    VC_LOCKED;
    cl_int code = vc_check(queue, VC_QUEUE, "clReleaseCommandQueue");
    if (code != CL_SUCCESS) return code;
    if (queue->object.references == 1 && queue->last) {
        vc_flush(queue);
        vc_complete(queue->last->event);
    }
    return vc_release(queue, VC_QUEUE, "clReleaseCommandQueue");
}

static cl_int CL_API_CALL queue_info(cl_command_queue queue, cl_command_queue_info what, size_t size, void *out,
                                     size_t *needed) {
    VC_LOCKED;
    cl_int code = vc_check(queue, VC_QUEUE, "clGetCommandQueueInfo");
    if (code != CL_SUCCESS) return code;
    switch (what) {
    case CL_QUEUE_CONTEXT:
        return VC_ANSWER(cl_context, queue->context);
    case CL_QUEUE_DEVICE:
        return VC_ANSWER(cl_device_id, &vc_device);
    case CL_QUEUE_PROPERTIES:
        return VC_ANSWER(cl_command_queue_properties, queue->properties);
    case CL_QUEUE_REFERENCE_COUNT:
        return VC_ANSWER(cl_uint, (cl_uint)queue->object.references);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL flush(cl_command_queue queue) {
    VC_LOCKED;
    cl_int code = vc_check(queue, VC_QUEUE, "clFlush");
    if (code == CL_SUCCESS) vc_flush(queue);
    return code == CL_SUCCESS ? queue->context->lost : code;
}

static cl_int CL_API_CALL finish(cl_command_queue queue) {
    VC_LOCKED;
    cl_int code = vc_check(queue, VC_QUEUE, "clFinish");
    if (code != CL_SUCCESS) return code;
    vc_flush(queue);
    if (queue->last) vc_complete(queue->last->event);
    return queue->context->lost;
}

void vc_enter_queues(cl_icd_dispatch *table) {
    table->clCreateCommandQueue = create_queue;
    table->clCreateCommandQueueWithProperties = create_with_properties;
    table->clRetainCommandQueue = retain_queue;
    table->clReleaseCommandQueue = release_queue;
    table->clGetCommandQueueInfo = queue_info;
    table->clFlush = flush;
    table->clFinish = finish;
}
