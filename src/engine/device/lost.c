/* A device that is lost: its driver has reset it, or has stopped a kernel that took too long or accessed
 * memory that is not its own. NVIDIA's driver then answers every call with CL_OUT_OF_RESOURCES, which also
 * means that memory is short. */
#include "device/device.h"
#include "platform/system.h"

/* A new queue, because an error of one command may be answered to later ones of its queue; a command that
 * needs no memory, because memory may be short. */
bool cleat_device_is_lost(const cleat_device *device) {
    cl_int code = CL_SUCCESS;
    cl_command_queue queue = clCreateCommandQueue(device->context, device->id, 0, &code);
    if (code == CL_SUCCESS) code = clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL);
    if (code == CL_SUCCESS) code = clFinish(queue);
    if (queue) clReleaseCommandQueue(queue);
    return code != CL_SUCCESS && code != CL_OUT_OF_HOST_MEMORY;
}

cleat_status cleat_device_explain(const cleat_device *device, cleat_status status, cleat_error *error) {
    if (status != CLEAT_ERR_DEVICE && status != CLEAT_ERR_DEVICE_MEMORY) return status;
    if (!cleat_device_is_lost(device)) return status;
    const cleat_error first = error ? *error : (cleat_error){0};
    cleat_fail(error, CLEAT_ERR_DEVICE,
               "the device '%s' is lost (%s): its driver reset it, or stopped a kernel that took too long or "
               "failed. " CLEAT_SYSTEM_LOG
               " may name the cause; `cleat doctor` tells whether the device works again, and a run "
               "continues from its last checkpoint with --resume",
               device->facts.name, first.text);
    if (error) error->cl_code = first.cl_code;
    return CLEAT_ERR_DEVICE;
}
