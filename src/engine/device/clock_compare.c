/* The clocks of device and host, compared. */
#include "core/clock.h"
#include "device/recorder.h"
#include "platform/system.h"

#include <math.h>
#include <stdio.h>

enum { TRIES = 16 };

/* OpenCL 2.1; looked up, because the library needs 1.2 only. */
typedef cl_int(CL_API_CALL *get_timers_fn)(cl_device_id, cl_ulong *, cl_ulong *);

/* NULL: the platform is older, and its table of functions may end before this one. */
static get_timers_fn find_timers(const cleat_device *device) {
    char version[64] = "";
    int major = 0, minor = 0;
    get_timers_fn found = NULL;
    clGetPlatformInfo(device->platform, CL_PLATFORM_VERSION, sizeof version, version, NULL);
    if (sscanf(version, "OpenCL %d.%d", &major, &minor) != 2 || major * 10 + minor < 21) return NULL;
    *(void **)&found = dlsym(RTLD_DEFAULT, "clGetDeviceAndHostTimer");
    return found;
}

/* The end of a marker lies between the two readings of the host's clock; the second is the closer one. The
 * shortest of several tries has the least doubt. */
static cleat_status compare_by_marker(const cleat_device *device, cleat_clock_pair *pair, cleat_error *error) {
    cleat_clock_pair best = {.error = INFINITY, .source = "marker after clWaitForEvents"};
    for (int i = 0; i < TRIES; ++i) {
        cl_event event = NULL;
        cl_ulong ended = 0;
        double before = cleat_seconds();
        cl_int code = clEnqueueMarkerWithWaitList(device->compute, 0, NULL, &event);
        if (code == CL_SUCCESS) code = clWaitForEvents(1, &event);
        double after = cleat_seconds();
        if (code == CL_SUCCESS)
            code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof ended, &ended, NULL);
        if (event) clReleaseEvent(event);
        if (code != CL_SUCCESS) return cleat_cl_fail(error, code, "reading the device's timer");
        if (after - before >= best.error) continue;
        best.device = ended;
        best.host = after;
        best.error = after - before;
    }
    *pair = best;
    return CLEAT_OK;
}

/* False: no such function, or it does not work on this device. */
static bool compare_by_timers(const cleat_device *device, get_timers_fn timers, cleat_clock_pair *pair) {
    cleat_clock_pair best = {.error = INFINITY, .source = "clGetDeviceAndHostTimer"};
    for (int i = 0; i < TRIES; ++i) {
        cl_ulong own = 0, host = 0;
        double before = cleat_seconds();
        if (timers(device->id, &own, &host) != CL_SUCCESS || own == 0) return false;
        double after = cleat_seconds();
        if (after - before >= best.error) continue;
        best.device = own;
        best.host = 0.5 * (before + after);
        best.error = after - before;
    }
    *pair = best;
    return true;
}

cleat_status cleat_clock_compare(cleat_device *device, cleat_clock_pair *pair, cleat_error *error) {
    cleat_clock_pair by_marker, by_timers;
    cl_int code = clFinish(device->compute);
    if (code != CL_SUCCESS) return cleat_cl_fail(error, code, "waiting for the kernels");
    cleat_status status = compare_by_marker(device, &by_marker, error);
    if (status) return status;
    *pair = by_marker;
    get_timers_fn timers = find_timers(device);
    if (!timers || !compare_by_timers(device, timers, &by_timers)) return CLEAT_OK;
    /* Drivers were seen whose function and whose commands count on different scales. */
    double apart = (by_timers.host - by_marker.host) - 1e-9 * ((double)by_timers.device - (double)by_marker.device);
    if (fabs(apart) <= by_marker.error + by_timers.error + 1e-3 && by_timers.error < by_marker.error) *pair = by_timers;
    return CLEAT_OK;
}

uint64_t cleat_clock_resolution(const cleat_device *device) {
    size_t resolution = 1;
    if (clGetDeviceInfo(device->id, CL_DEVICE_PROFILING_TIMER_RESOLUTION, sizeof resolution, &resolution, NULL))
        return 1;
    return resolution > 0 ? resolution : 1;
}
