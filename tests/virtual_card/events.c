/* Events: waiting, queries, times, and user events. */
#include "icd.h"
#include "queue.h"

static cl_int CL_API_CALL wait_for_events(cl_uint count, const cl_event *events) {
    VC_LOCKED;
    cl_int code = CL_SUCCESS;
    if (count == 0 || !events) return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < count; ++i) {
        code = vc_check(events[i], VC_EVENT, "clWaitForEvents");
        if (code != CL_SUCCESS) return code;
        if (events[i]->context != events[0]->context) return CL_INVALID_CONTEXT;
    }
    for (cl_uint i = 0; i < count; ++i) vc_hold(events[i]);
    for (cl_uint i = 0; i < count; ++i)
        if (events[i]->status == CL_QUEUED && events[i]->queue) vc_flush(events[i]->queue);
    for (cl_uint i = 0; i < count; ++i) {
        vc_complete(events[i]);
        if (events[i]->status < 0) code = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    }
    for (cl_uint i = 0; i < count; ++i) vc_drop(events[i]);
    return code;
}

/* Returns the state before the query; the query then lets the card run one command. */
static cl_int answer_status(cl_event event, size_t size, void *out, size_t *needed) {
    cl_int status = event->status;
    if (status == CL_SUBMITTED && event->queue) vc_advance(event->queue);
    return VC_ANSWER(cl_int, status);
}

static cl_int CL_API_CALL event_info(cl_event event, cl_event_info what, size_t size, void *out, size_t *needed) {
    VC_LOCKED;
    cl_int code = vc_check(event, VC_EVENT, "clGetEventInfo");
    if (code != CL_SUCCESS) return code;
    switch (what) {
    case CL_EVENT_COMMAND_EXECUTION_STATUS:
        return answer_status(event, size, out, needed);
    case CL_EVENT_COMMAND_TYPE:
        return VC_ANSWER(cl_command_type, event->type);
    case CL_EVENT_COMMAND_QUEUE:
        return VC_ANSWER(cl_command_queue, event->queue);
    case CL_EVENT_CONTEXT:
        return VC_ANSWER(cl_context, event->context);
    case CL_EVENT_REFERENCE_COUNT:
        return VC_ANSWER(cl_uint, (cl_uint)event->object.references);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL profiling_info(cl_event event, cl_profiling_info what, size_t size, void *out,
                                         size_t *needed) {
    VC_LOCKED;
    cl_int code = vc_check(event, VC_EVENT, "clGetEventProfilingInfo");
    if (code != CL_SUCCESS) return code;
    bool profiled = event->queue && event->queue->properties & CL_QUEUE_PROFILING_ENABLE;
    if (!profiled || event->status != CL_COMPLETE) return CL_PROFILING_INFO_NOT_AVAILABLE;
    switch (what) {
    case CL_PROFILING_COMMAND_QUEUED:
        return VC_ANSWER(cl_ulong, event->queued);
    case CL_PROFILING_COMMAND_SUBMIT:
        return VC_ANSWER(cl_ulong, event->submitted);
    case CL_PROFILING_COMMAND_START:
        return VC_ANSWER(cl_ulong, event->started);
    case CL_PROFILING_COMMAND_END:
    case CL_PROFILING_COMMAND_COMPLETE:
        return VC_ANSWER(cl_ulong, event->ended);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL retain_event(cl_event event) {
    VC_LOCKED;
    return vc_retain(event, VC_EVENT, "clRetainEvent");
}

static cl_int CL_API_CALL release_event(cl_event event) {
    VC_LOCKED;
    return vc_release(event, VC_EVENT, "clReleaseEvent");
}

static cl_event CL_API_CALL create_user_event(cl_context context, cl_int *code) {
    VC_LOCKED;
    cl_int status = vc_check(context, VC_CONTEXT, "clCreateUserEvent");
    cl_event event = status == CL_SUCCESS ? vc_event_new(context, NULL, CL_COMMAND_USER) : NULL;
    if (event) event->status = CL_SUBMITTED;
    if (status == CL_SUCCESS && !event) status = CL_OUT_OF_HOST_MEMORY;
    vc_return(code, status);
    return event;
}

static cl_int CL_API_CALL set_user_event(cl_event event, cl_int status) {
    VC_LOCKED;
    cl_int code = vc_check(event, VC_EVENT, "clSetUserEventStatus");
    if (code != CL_SUCCESS) return code;
    if (event->queue) return CL_INVALID_EVENT;
    if (status > CL_COMPLETE) return CL_INVALID_VALUE;
    if (event->status <= CL_COMPLETE) return CL_INVALID_OPERATION;
    event->status = status;
    vc_changed();
    return CL_SUCCESS;
}

void vc_enter_events(cl_icd_dispatch *table) {
    table->clWaitForEvents = wait_for_events;
    table->clGetEventInfo = event_info;
    table->clGetEventProfilingInfo = profiling_info;
    table->clRetainEvent = retain_event;
    table->clReleaseEvent = release_event;
    table->clCreateUserEvent = create_user_event;
    table->clSetUserEventStatus = set_user_event;
}
