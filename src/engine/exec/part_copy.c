/* Copies of parts of tensors beside the kernels: reads on the transfer queue, writes in the order of the
 * compute queue. */
#include "exec/exec.h"

static cleat_status find_part(const cleat_exec *exec, const cleat_tensor *tensor, int64_t first, cl_mem *slab,
                              size_t *at, cleat_error *error) {
    int64_t offset = 0;
    cleat_status status = cleat_exec_place(exec, 0, tensor, slab, &offset, error);
    if (!status) *at = (size_t)(offset + first * cleat_dtype_size(tensor->dtype));
    return status;
}

static cleat_status fail(cleat_exec *exec, cl_int code, const char *what, const cleat_tensor *tensor,
                         cleat_error *error) {
    return cleat_device_explain(exec->device, cleat_cl_fail(error, code, "%s %s", what, tensor->name), error);
}

cleat_status cleat_exec_begin_read(cleat_exec *exec, const cleat_tensor *tensor, int64_t first, int64_t count,
                                   void *values, cleat_copy **copy, cleat_error *error) {
    cl_mem slab = NULL;
    size_t at = 0;
    cl_event before = NULL, done = NULL;
    cleat_status status = find_part(exec, tensor, first, &slab, &at, error);
    if (status) return status;
    cl_int code = clEnqueueMarkerWithWaitList(exec->device->compute, 0, NULL, &before);
    if (code == CL_SUCCESS) code = clFlush(exec->device->compute); /* another queue waits for the marker */
    if (code == CL_SUCCESS)
        code = clEnqueueReadBuffer(exec->device->transfer, slab, CL_FALSE, at,
                                   (size_t)(count * cleat_dtype_size(tensor->dtype)), values, 1, &before, &done);
    if (before) clReleaseEvent(before);
    if (code == CL_SUCCESS) code = clFlush(exec->device->transfer);
    if (code != CL_SUCCESS) {
        if (done) clReleaseEvent(done);
        return fail(exec, code, "reading", tensor, error);
    }
    *copy = done;
    return CLEAT_OK;
}

/* A copy may succeed although an earlier kernel failed, whose error is more informative. */
cleat_status cleat_exec_end_copy(cleat_exec *exec, cleat_copy *copy, cleat_error *error) {
    cl_int code = clWaitForEvents(1, &copy);
    clReleaseEvent(copy);
    if (code == CL_SUCCESS) return CLEAT_OK;
    cleat_status status = cleat_exec_pop_failure(exec, error);
    if (!status) status = cleat_cl_fail(error, code, "reading a part of a tensor");
    return cleat_device_explain(exec->device, status, error);
}

cleat_status cleat_exec_begin_write(cleat_exec *exec, const cleat_tensor *tensor, int64_t first, int64_t count,
                                    const void *values, cleat_error *error) {
    cl_mem slab = NULL;
    size_t at = 0;
    cleat_status status = find_part(exec, tensor, first, &slab, &at, error);
    if (status) return status;
    cl_int code = clEnqueueWriteBuffer(exec->device->compute, slab, CL_FALSE, at,
                                       (size_t)(count * cleat_dtype_size(tensor->dtype)), values, 0, NULL, NULL);
    return code == CL_SUCCESS ? CLEAT_OK : fail(exec, code, "writing", tensor, error);
}
