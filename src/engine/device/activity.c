/* Whether the compute queue has work, and its progress. Called when a batch is passed on and by the monitor's
 * thread. */
#include "device/device.h"

static bool is_complete(cl_event event) {
    cl_int state = CL_COMPLETE;
    if (!event) return true;
    cl_int code = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    return code != CL_SUCCESS || state <= CL_COMPLETE; /* below: it failed and no longer runs */
}

/* Release of the old event is outside the lock: a driver may take its time. */
void cleat_device_enqueued(cleat_device *device, cl_event last) {
    if (last && clRetainEvent(last) != CL_SUCCESS) last = NULL;
    pthread_mutex_lock(&device->activity);
    cl_event before = device->last;
    device->last = last;
    pthread_mutex_unlock(&device->activity);
    if (before) clReleaseEvent(before);
}

bool cleat_device_is_idle(cleat_device *device) {
    pthread_mutex_lock(&device->activity);
    cl_event last = device->last;
    if (last && clRetainEvent(last) != CL_SUCCESS) last = NULL;
    pthread_mutex_unlock(&device->activity);
    bool idle = is_complete(last);
    if (last) clReleaseEvent(last);
    return idle;
}

static void drop_first(cleat_device *device) {
    cl_event event = device->marks[device->first_mark].event;
    if (event) clReleaseEvent(event);
    device->first_mark = (device->first_mark + 1) % CLEAT_DEVICE_MARKS;
    --device->mark_count;
}

void cleat_device_mark(cleat_device *device, int64_t number) {
    pthread_mutex_lock(&device->activity);
    if (device->mark_count == CLEAT_DEVICE_MARKS) drop_first(device); /* later ones imply it */
    size_t at = (device->first_mark + device->mark_count++) % CLEAT_DEVICE_MARKS;
    device->marks[at].event = device->last && clRetainEvent(device->last) == CL_SUCCESS ? device->last : NULL;
    device->marks[at].number = number;
    pthread_mutex_unlock(&device->activity);
}

int64_t cleat_device_marked(cleat_device *device) {
    pthread_mutex_lock(&device->activity);
    while (device->mark_count > 0 && is_complete(device->marks[device->first_mark].event)) {
        device->marked = device->marks[device->first_mark].number;
        drop_first(device);
    }
    int64_t marked = device->marked;
    pthread_mutex_unlock(&device->activity);
    return marked;
}

void cleat_device_forget_marks(cleat_device *device) {
    pthread_mutex_lock(&device->activity);
    while (device->mark_count > 0) drop_first(device);
    pthread_mutex_unlock(&device->activity);
}
