/* Recorder: queues that keep times, and the events of what is enqueued while they are in use.
 *
 * Profiling costs nothing while it is off: kernels are not tied to a queue, so both queues are swapped for
 * the recorded steps only. Every command then has an event, kept with its launch, so its node, variant and
 * cost are known without matching names. Events are read after the last step. */
#include "device/recorder.h"

#include "core/clock.h"
#include "core/memory.h"

static cleat_status create(const cleat_device *device, cl_command_queue_properties properties, cl_command_queue *queue,
                           cleat_error *error) {
    cl_int code = CL_SUCCESS;
    if (properties && device->fail_timed_queue)
        return cleat_fail(error, CLEAT_ERR_DEVICE, "a queue with times: failure injected by a test");
    cl_command_queue created = clCreateCommandQueue(device->context, device->id, properties, &code);
    if (code != CL_SUCCESS)
        return cleat_cl_fail(error, code, "creating a queue of '%s' %s times of commands", device->facts.name,
                             properties ? "with" : "without");
    *queue = created;
    return CLEAT_OK;
}

/* Nothing runs when the queues change, so the order of commands is preserved. */
static cleat_status swap_queues(cleat_device *device, cl_command_queue_properties properties, cleat_error *error) {
    cl_command_queue compute = NULL, transfer = NULL;
    cl_int code = clFinish(device->transfer);
    if (code == CL_SUCCESS) code = clFinish(device->compute);
    if (code != CL_SUCCESS) return cleat_cl_fail(error, code, "waiting for the kernels");
    cleat_status status = create(device, properties, &compute, error);
    if (!status) status = create(device, properties, &transfer, error);
    if (status) {
        if (compute) clReleaseCommandQueue(compute);
        return status;
    }
    clReleaseCommandQueue(device->transfer);
    clReleaseCommandQueue(device->compute);
    device->compute = compute;
    device->transfer = transfer;
    return CLEAT_OK;
}

cleat_status cleat_recorder_start(cleat_device *device, cleat_recorder *recorder, cleat_error *error) {
    cleat_recorder_clear(recorder);
    cleat_status status = swap_queues(device, CL_QUEUE_PROFILING_ENABLE, error);
    if (!status) device->recorder = recorder;
    return status;
}

cleat_status cleat_recorder_stop(cleat_device *device, cleat_error *error) {
    device->recorder = NULL;
    return swap_queues(device, 0, error);
}

/* --- commands --- */

static void release(cl_event *event) {
    if (*event) clReleaseEvent(*event);
    *event = NULL;
}

void cleat_recorder_clear(cleat_recorder *recorder) {
    for (size_t i = 0; i < recorder->count; ++i) {
        release(&recorder->commands[i].event);
        release(&recorder->commands[i].begin);
    }
    cleat_free(recorder->commands);
    *recorder = (cleat_recorder){0};
}

void cleat_recorder_set_batch(cleat_device *device, int64_t batch) {
    if (device->recorder) device->recorder->batch = batch;
}

void cleat_recorder_begin(cleat_device *device, cleat_command_kind kind, size_t graph, const void *subject,
                          int64_t bytes) {
    cleat_recorder *recorder = device->recorder;
    if (!recorder) return;
    recorder->in_command = false;
    if (recorder->count == CLEAT_RECORDER_COMMANDS ||
        cleat_grow(&recorder->commands, recorder->count, &recorder->capacity, NULL)) {
        ++recorder->lost;
        return;
    }
    cleat_command *command = &recorder->commands[recorder->count];
    *command = (cleat_command){.kind = kind,
                               .graph = graph,
                               .subject = subject,
                               .bytes = bytes,
                               .batch = kind == CLEAT_COMMAND_UPLOAD ? recorder->batch : -1};
    /* CLBlast returns the event of its last kernel only: the marker is where its first one may begin. */
    if (kind == CLEAT_COMMAND_SGEMM) clEnqueueMarkerWithWaitList(device->compute, 0, NULL, &command->begin);
    command->called = cleat_seconds();
    recorder->in_command = true;
}

void cleat_recorder_end(cleat_device *device, cl_event event) {
    cleat_recorder *recorder = device->recorder;
    if (!recorder || !recorder->in_command) return; /* begin could not record it */
    recorder->in_command = false;
    cleat_command *command = &recorder->commands[recorder->count];
    if (!event || clRetainEvent(event) != CL_SUCCESS) {
        release(&command->begin);
        return;
    }
    command->event = event;
    command->returned = cleat_seconds();
    ++recorder->count;
}

static bool read_time(cl_event event, cl_profiling_info what, uint64_t *time) {
    cl_ulong value = 0;
    if (clGetEventProfilingInfo(event, what, sizeof value, &value, NULL) != CL_SUCCESS) return false;
    *time = value;
    return value > 0;
}

void cleat_recorder_read(cleat_recorder *recorder) {
    for (size_t i = 0; i < recorder->count; ++i) {
        cleat_command *command = &recorder->commands[i];
        uint64_t begun = 0;
        bool known = read_time(command->event, CL_PROFILING_COMMAND_START, &command->started) &&
                     read_time(command->event, CL_PROFILING_COMMAND_END, &command->ended) &&
                     command->ended >= command->started;
        if (command->begin && read_time(command->begin, CL_PROFILING_COMMAND_END, &begun) && begun < command->started)
            command->started = begun;
        if (!known) {
            command->started = command->ended = 0;
            ++recorder->unknown;
        }
        release(&command->event);
        release(&command->begin);
    }
}
