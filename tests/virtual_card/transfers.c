/* Reading, writing, copying and filling buffers; markers and barriers. */
#include "faults.h"
#include "icd.h"
#include "queue.h"

#include <string.h>
#include <sys/mman.h>

/* NVIDIA's driver fails or hangs in fills from this size on (inducer/pyopencl#395). */
#define FILL_LIMIT ((size_t)1 << 31)

static cl_int run_read(vc_command *command) {
    memcpy(command->host, command->from->data + command->from_offset, command->bytes);
    return CL_SUCCESS;
}

static cl_int run_write(vc_command *command) {
    memcpy(command->to->data + command->to_offset, command->host, command->bytes);
    return CL_SUCCESS;
}

static cl_int run_copy(vc_command *command) {
    memcpy(command->to->data + command->to_offset, command->from->data + command->from_offset, command->bytes);
    return CL_SUCCESS;
}

static bool is_zero(const vc_command *command) {
    for (size_t i = 0; i < command->pattern_bytes; ++i)
        if (command->pattern[i]) return false;
    return true;
}

/* Returns whole pages to the system, which zeroes them on the next access, so untouched memory costs no time. */
static void fill_zeros(unsigned char *at, size_t bytes) {
    enum { PAGE = 4096 };
    unsigned char *end = at + bytes, *first = at + (PAGE - (uintptr_t)at % PAGE) % PAGE;
    unsigned char *last = end - (uintptr_t)end % PAGE;
    if (bytes < 64 * PAGE || madvise(first, (size_t)(last - first), MADV_DONTNEED) != 0) {
        memset(at, 0, bytes);
        return;
    }
    memset(at, 0, (size_t)(first - at));
    memset(last, 0, (size_t)(end - last));
}

static cl_int run_fill(vc_command *command) {
    unsigned char *at = command->to->data + command->to_offset;
    if (is_zero(command))
        fill_zeros(at, command->bytes);
    else
        for (size_t i = 0; i < command->bytes; i += command->pattern_bytes)
            memcpy(at + i, command->pattern, command->pattern_bytes);
    return CL_SUCCESS;
}

static cl_int check_part(cl_command_queue queue, cl_mem buffer, size_t offset, size_t bytes, const char *function) {
    cl_int code = vc_check(buffer, VC_BUFFER, function);
    if (code != CL_SUCCESS) return code;
    if (buffer->context != queue->context) return CL_INVALID_CONTEXT;
    return bytes == 0 || offset > buffer->bytes || bytes > buffer->bytes - offset ? CL_INVALID_VALUE : CL_SUCCESS;
}

static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                                      size_t bytes, void *host, cl_uint n_waits, const cl_event *waits,
                                      cl_event *event) {
    VC_LOCKED;
    const vc_waits list = {n_waits, waits};
    cl_int code = vc_check_enqueue(queue, &list, "clEnqueueReadBuffer");
    if (code == CL_SUCCESS) code = check_part(queue, buffer, offset, bytes, "clEnqueueReadBuffer");
    if (code == CL_SUCCESS && !host) code = CL_INVALID_VALUE;
    if (code == CL_SUCCESS && buffer->flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS))
        code = CL_INVALID_OPERATION;
    if (code != CL_SUCCESS) return code;
    const vc_command command = {.type = CL_COMMAND_READ_BUFFER,
                                .run = run_read,
                                .from = buffer,
                                .from_offset = offset,
                                .bytes = bytes,
                                .host = host};
    return vc_enqueue(queue, &command, &list, blocking, event);
}

static cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                                       size_t bytes, const void *host, cl_uint n_waits, const cl_event *waits,
                                       cl_event *event) {
    VC_LOCKED;
    const vc_waits list = {n_waits, waits};
    cl_int code = vc_check_enqueue(queue, &list, "clEnqueueWriteBuffer");
    if (code == CL_SUCCESS) code = check_part(queue, buffer, offset, bytes, "clEnqueueWriteBuffer");
    if (code == CL_SUCCESS && !host) code = CL_INVALID_VALUE;
    if (code == CL_SUCCESS && buffer->flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS))
        code = CL_INVALID_OPERATION;
    if (code != CL_SUCCESS) return code;
    const vc_command command = {.type = CL_COMMAND_WRITE_BUFFER,
                                .run = run_write,
                                .to = buffer,
                                .to_offset = offset,
                                .bytes = bytes,
                                .host = (void *)(uintptr_t)host}; /* only read */
    return vc_enqueue(queue, &command, &list, blocking, event);
}

static bool overlap(const unsigned char *a, const unsigned char *b, size_t bytes) {
    return a < b + bytes && b < a + bytes;
}

static cl_int CL_API_CALL copy_buffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset,
                                      size_t to_offset, size_t bytes, cl_uint n_waits, const cl_event *waits,
                                      cl_event *event) {
    VC_LOCKED;
    const vc_waits list = {n_waits, waits};
    cl_int code = vc_check_enqueue(queue, &list, "clEnqueueCopyBuffer");
    if (code == CL_SUCCESS) code = check_part(queue, from, from_offset, bytes, "clEnqueueCopyBuffer");
    if (code == CL_SUCCESS) code = check_part(queue, to, to_offset, bytes, "clEnqueueCopyBuffer");
    if (code == CL_SUCCESS && overlap(from->data + from_offset, to->data + to_offset, bytes))
        code = CL_MEM_COPY_OVERLAP;
    if (code != CL_SUCCESS) return code;
    const vc_command command = {.type = CL_COMMAND_COPY_BUFFER,
                                .run = run_copy,
                                .from = from,
                                .to = to,
                                .from_offset = from_offset,
                                .to_offset = to_offset,
                                .bytes = bytes};
    return vc_enqueue(queue, &command, &list, false, event);
}

static cl_int check_pattern(const void *pattern, size_t bytes, size_t offset, size_t size) {
    bool power = bytes > 0 && (bytes & (bytes - 1)) == 0;
    if (!pattern || !power || bytes > 128 || offset % bytes || size % bytes) return CL_INVALID_VALUE;
    if (size < FILL_LIMIT) return CL_SUCCESS;
    vc_fault("clEnqueueFillBuffer of %zu bytes: the driver fails or hangs from 2 GiB on", size);
    return CL_OUT_OF_RESOURCES;
}

static cl_int CL_API_CALL fill_buffer(cl_command_queue queue, cl_mem buffer, const void *pattern, size_t pattern_bytes,
                                      size_t offset, size_t bytes, cl_uint n_waits, const cl_event *waits,
                                      cl_event *event) {
    VC_LOCKED;
    const vc_waits list = {n_waits, waits};
    cl_int code = vc_check_enqueue(queue, &list, "clEnqueueFillBuffer");
    if (code == CL_SUCCESS) code = check_part(queue, buffer, offset, bytes, "clEnqueueFillBuffer");
    if (code == CL_SUCCESS) code = check_pattern(pattern, pattern_bytes, offset, bytes);
    if (code != CL_SUCCESS) return code;
    vc_command command = {.type = CL_COMMAND_FILL_BUFFER,
                          .run = run_fill,
                          .to = buffer,
                          .to_offset = offset,
                          .bytes = bytes,
                          .pattern_bytes = pattern_bytes};
    memcpy(command.pattern, pattern, pattern_bytes);
    return vc_enqueue(queue, &command, &list, false, event);
}

static cl_int CL_API_CALL migrate(cl_command_queue queue, cl_uint count, const cl_mem *buffers,
                                  cl_mem_migration_flags flags, cl_uint n_waits, const cl_event *waits,
                                  cl_event *event) {
    VC_LOCKED;
    const vc_waits list = {n_waits, waits};
    cl_int code = vc_check_enqueue(queue, &list, "clEnqueueMigrateMemObjects");
    if (code == CL_SUCCESS && (count == 0 || !buffers || flags & ~(cl_mem_migration_flags)3)) code = CL_INVALID_VALUE;
    for (cl_uint i = 0; i < count && code == CL_SUCCESS; ++i)
        code = vc_check(buffers[i], VC_BUFFER, "clEnqueueMigrateMemObjects");
    if (code != CL_SUCCESS) return code;
    const vc_command command = {.type = CL_COMMAND_MIGRATE_MEM_OBJECTS};
    return vc_enqueue(queue, &command, &list, false, event);
}

static cl_int mark(cl_command_queue queue, cl_command_type type, const vc_waits *waits, cl_event *event) {
    cl_int code = vc_check_enqueue(queue, waits, "clEnqueueMarkerWithWaitList");
    const vc_command command = {.type = type};
    return code == CL_SUCCESS ? vc_enqueue(queue, &command, waits, false, event) : code;
}

static cl_int CL_API_CALL marker(cl_command_queue queue, cl_uint n_waits, const cl_event *waits, cl_event *event) {
    VC_LOCKED;
    return mark(queue, CL_COMMAND_MARKER, &(vc_waits){n_waits, waits}, event);
}

static cl_int CL_API_CALL barrier(cl_command_queue queue, cl_uint n_waits, const cl_event *waits, cl_event *event) {
    VC_LOCKED;
    return mark(queue, CL_COMMAND_BARRIER, &(vc_waits){n_waits, waits}, event);
}

void vc_enter_transfers(cl_icd_dispatch *table) {
    table->clEnqueueReadBuffer = read_buffer;
    table->clEnqueueWriteBuffer = write_buffer;
    table->clEnqueueCopyBuffer = copy_buffer;
    table->clEnqueueFillBuffer = fill_buffer;
    table->clEnqueueMigrateMemObjects = migrate;
    table->clEnqueueMarkerWithWaitList = marker;
    table->clEnqueueBarrierWithWaitList = barrier;
}
