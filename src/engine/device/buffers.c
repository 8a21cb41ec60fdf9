/* Device buffers: counted, and physically allocated when the call returns. */
#include "device/probe.h"
#include "platform/files.h"

#include <inttypes.h>
#include <stdlib.h>

int64_t cleat_device_memory_limit(void) {
    const char *text = getenv("CLEAT_DEVICE_MEMORY_LIMIT");
    char *end = NULL;
    if (!text || !text[0]) return 0;
    long long bytes = strtoll(text, &end, 10);
    if (*end || bytes <= 0) {
        cleat_log(CLEAT_LOG_WARNING, "CLEAT_DEVICE_MEMORY_LIMIT is '%s': not a number of bytes, ignored", text);
        return 0;
    }
    return bytes;
}

/* The limit for the sum of all buffers if CLEAT_DEVICE_MEMORY_LIMIT is set or the driver would not refuse by
 * itself; 0: cleat sets no limit. */
static int64_t allocation_limit(const cleat_device *device) {
    int64_t limit = cleat_device_memory_limit();
    if (!(device->quirks & CLEAT_QUIRK_HOST_MEMORY) || device->facts.memory_free == 0) return limit;
    return limit && limit < device->facts.memory_free ? limit : device->facts.memory_free;
}

static cleat_status check_limit(cleat_device *device, int64_t bytes, cleat_error *error) {
    int64_t limit = allocation_limit(device);
    if (device->fail_buffer < 0 || (device->fail_buffer > 0 && --device->fail_buffer == 0))
        return cleat_fail(error, CLEAT_ERR_DEVICE_MEMORY, "a buffer of %" PRId64 " bytes: failure injected by a test",
                          bytes);
    if (limit && bytes > limit - device->allocated)
        return cleat_fail(error, CLEAT_ERR_DEVICE_MEMORY,
                          "a buffer of %" PRId64 " bytes on '%s': %" PRId64 " are allocated and %" PRId64
                          " may be allocated in total; use a smaller batch",
                          bytes, device->facts.name, device->allocated, limit);
    return CLEAT_OK;
}

/* In parts: NVIDIA's driver fails or hangs when it fills 2 GiB at once (inducer/pyopencl#395). */
static cl_int fill_with_zeros(cleat_device *device, cl_mem buffer, int64_t bytes) {
    static const unsigned char zeros[16] = {0};
    const size_t largest = (size_t)1 << 30;
    size_t pattern = sizeof zeros;
    cl_int code = CL_SUCCESS;
    while ((size_t)bytes % pattern) pattern /= 2;
    for (size_t at = 0; at < (size_t)bytes && code == CL_SUCCESS; at += largest) {
        size_t part = (size_t)bytes - at < largest ? (size_t)bytes - at : largest;
        code = clEnqueueFillBuffer(device->compute, buffer, zeros, pattern, at, part, 0, NULL, NULL);
    }
    return code == CL_SUCCESS ? clFinish(device->compute) : code;
}

/* Requests pages of 2 MiB if the device computes in host memory. A kernel that reads many rows side by side
 * needs more pages of 4 KiB than the processor keeps addresses of, and its prefetcher stops at the end of a
 * page: one core read 26 MB at 22 GB/s instead of 15, and 400 MB at 16 instead of 11 (Xeon with AVX-512).
 * The system may ignore the request. */
static void prefer_large_pages(cleat_device *device, cl_mem buffer, int64_t bytes) {
#ifdef MADV_HUGEPAGE
    const uintptr_t page = 2u << 20;
    cl_int code = CL_SUCCESS;
    if (!(device->quirks & CLEAT_QUIRK_HOST_MEMORY) || (uint64_t)bytes < 2 * page) return;
    void *mapped =
        clEnqueueMapBuffer(device->compute, buffer, CL_TRUE, CL_MAP_WRITE, 0, (size_t)bytes, 0, NULL, NULL, &code);
    if (code != CL_SUCCESS) return;
    const uintptr_t begin = ((uintptr_t)mapped + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)mapped + (uintptr_t)bytes) / page * page;
    if (end > begin) madvise((void *)begin, end - begin, MADV_HUGEPAGE);
    if (clEnqueueUnmapMemObject(device->compute, buffer, mapped, 0, NULL, NULL) == CL_SUCCESS)
        clFinish(device->compute);
#else
    (void)device, (void)buffer, (void)bytes;
#endif
}

cleat_status cleat_buffer_create(cleat_device *device, int64_t bytes, cl_mem *buffer, cleat_error *error) {
    cl_int code = CL_SUCCESS;
    if (bytes <= 0) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "a buffer of %" PRId64 " bytes", bytes);
    cleat_status status = check_limit(device, bytes, error);
    if (status) return status;
    cl_mem created = clCreateBuffer(device->context, CL_MEM_READ_WRITE, (size_t)bytes, NULL, &code);
    /* Many drivers allocate at first use. Writing here makes such an allocation fail here, where it can be
     * handled. On a GPU every byte must be written; in host memory the first byte makes the driver allocate, and
     * writing the others would only cost time. */
    if (code == CL_SUCCESS)
        code = fill_with_zeros(device, created, device->quirks & CLEAT_QUIRK_HOST_MEMORY ? 1 : bytes);
    if (code != CL_SUCCESS) {
        if (created) clReleaseMemObject(created);
        return cleat_cl_fail(error, code, "a buffer of %" PRId64 " bytes on '%s' (%" PRId64 " are allocated)", bytes,
                             device->facts.name, device->allocated);
    }
    prefer_large_pages(device, created, bytes);
    device->allocated += bytes;
    if (device->allocated > device->peak) device->peak = device->allocated;
    *buffer = created;
    return CLEAT_OK;
}

cleat_status cleat_buffer_zero(cleat_device *device, cl_mem buffer, int64_t bytes, cleat_error *error) {
    cl_int code = fill_with_zeros(device, buffer, bytes);
    if (code == CL_SUCCESS) return CLEAT_OK;
    return cleat_cl_fail(error, code, "filling %" PRId64 " bytes on '%s' with zeros", bytes, device->facts.name);
}

void cleat_buffer_release(cleat_device *device, cl_mem buffer, int64_t bytes) {
    if (!buffer) return;
    clReleaseMemObject(buffer);
    device->allocated -= bytes;
}
