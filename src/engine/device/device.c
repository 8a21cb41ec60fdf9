/* The handle of an open device: its context and its two queues, both released by cleat_device_close. */
#include "core/memory.h"
#include "device/matrix.h"
#include "device/probe.h"

static void CL_CALLBACK log_driver_message(const char *text, const void *data, size_t size, void *user) {
    (void)data;
    (void)size;
    (void)user;
    cleat_log(CLEAT_LOG_DEBUG, "driver: %s", text);
}

static cleat_status create_queue(cleat_device *device, cl_command_queue *queue, const char *name, cleat_error *error) {
    cl_int code = CL_SUCCESS;
    cl_command_queue created = clCreateCommandQueue(device->context, device->id, 0, &code);
    if (code != CL_SUCCESS)
        return cleat_cl_fail(error, code, "creating the %s queue of '%s'", name, device->facts.name);
    *queue = created;
    return CLEAT_OK;
}

static cleat_status open_found(const cleat_found_device *found, cleat_device **device, cleat_error *error) {
    cl_int code = CL_SUCCESS;
    cleat_device *opened = cleat_alloc(1, sizeof *opened);
    if (!opened) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a device");
    pthread_mutex_init(&opened->activity, NULL);
    opened->facts = found->facts;
    opened->platform = found->platform;
    opened->id = found->id;
    opened->quirks = cleat_device_quirks(&found->facts);

    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)found->platform, 0};
    cleat_status status = CLEAT_OK;
    opened->context = clCreateContext(properties, 1, &opened->id, log_driver_message, NULL, &code);
    if (code != CL_SUCCESS) status = cleat_cl_fail(error, code, "opening '%s'", found->facts.name);
    if (!status) status = create_queue(opened, &opened->compute, "compute", error);
    if (!status) status = create_queue(opened, &opened->transfer, "transfer", error);
    if (status) {
        cleat_device_close(opened);
        return status;
    }
    cleat_matrix_find(opened);
    *device = opened;
    return CLEAT_OK;
}

cleat_status cleat_device_open(const char *selector, cleat_device **device, cleat_error *error) {
    cleat_found_device *found = NULL;
    size_t count = 0, index = 0;
    cleat_status status = cleat_find_devices(&found, &count, error);
    if (status) return status;
    const cleat_device_facts **facts = cleat_alloc(count, sizeof *facts);
    if (!facts) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a list of %zu devices", count);
        goto done;
    }
    for (size_t i = 0; i < count; ++i) facts[i] = &found[i].facts;
    status = cleat_select_device(facts, count, selector, &index, error);
    if (!status) status = open_found(&found[index], device, error);
done:
    cleat_free(facts);
    cleat_free(found);
    return status;
}

void cleat_device_close(cleat_device *device) {
    if (!device) return;
    cleat_device_forget_marks(device);
    if (device->last) clReleaseEvent(device->last);
    pthread_mutex_destroy(&device->activity);
    if (device->transfer) clReleaseCommandQueue(device->transfer);
    if (device->compute) clReleaseCommandQueue(device->compute);
    if (device->context) clReleaseContext(device->context);
    cleat_free(device);
}

const cleat_device_facts *cleat_device_get_facts(const cleat_device *device) {
    return &device->facts;
}

int64_t cleat_device_allocated(const cleat_device *device) {
    return device->allocated;
}

int64_t cleat_device_peak(const cleat_device *device) {
    return device->peak;
}
