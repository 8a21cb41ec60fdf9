/* Buffer mappings. As on a card with its own memory, the host maps a copy: writes of kernels to a mapped part
 * do not appear in it, and writes of the host arrive when it is unmapped. */
#include "icd.h"
#include "queue.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void free_mapping(vc_mapping *mapping) {
    if (mapping->own) munmap(mapping->host, mapping->bytes);
    free(mapping);
}

/* NULL: no memory. */
static vc_mapping *new_mapping(const struct _cl_mem *buffer, cl_map_flags flags, size_t offset, size_t bytes) {
    vc_mapping *mapping = calloc(1, sizeof *mapping);
    if (!mapping) return NULL;
    mapping->offset = offset;
    mapping->bytes = bytes;
    mapping->write = flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION);
    mapping->own = !buffer->host_ptr;
    if (!mapping->own) {
        mapping->host = (unsigned char *)buffer->host_ptr + offset;
        return mapping;
    }
    void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (host == MAP_FAILED) {
        free(mapping);
        return NULL;
    }
    mapping->host = host;
    return mapping;
}

static cl_int run_map(vc_command *command) {
    memcpy(command->host, command->from->data + command->from_offset, command->bytes);
    return CL_SUCCESS;
}

static cl_int run_unmap(vc_command *command) {
    vc_mapping *mapping = command->mapping;
    if (mapping->write) memcpy(command->to->data + mapping->offset, mapping->host, mapping->bytes);
    free_mapping(mapping);
    return CL_SUCCESS;
}

static cl_int check_map(cl_command_queue queue, cl_mem buffer, cl_map_flags flags, size_t offset, size_t bytes) {
    const cl_map_flags known = CL_MAP_READ | CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
    cl_int code = vc_check(buffer, VC_BUFFER, "clEnqueueMapBuffer");
    if (code != CL_SUCCESS) return code;
    if (buffer->context != queue->context) return CL_INVALID_CONTEXT;
    if (bytes == 0 || offset > buffer->bytes || bytes > buffer->bytes - offset || flags & ~known)
        return CL_INVALID_VALUE;
    if (flags & CL_MAP_WRITE_INVALIDATE_REGION && flags & (CL_MAP_READ | CL_MAP_WRITE)) return CL_INVALID_VALUE;
    return CL_SUCCESS;
}

static void *CL_API_CALL map_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags,
                                    size_t offset, size_t bytes, cl_uint n_waits, const cl_event *waits,
                                    cl_event *event, cl_int *code) {
    VC_LOCKED;
    const vc_waits list = {n_waits, waits};
    vc_mapping *mapping = NULL;
    cl_int status = vc_check_enqueue(queue, &list, "clEnqueueMapBuffer");
    if (status == CL_SUCCESS) status = check_map(queue, buffer, flags, offset, bytes);
    if (status == CL_SUCCESS && !(mapping = new_mapping(buffer, flags, offset, bytes))) status = CL_MAP_FAILURE;
    if (mapping) {
        const vc_command command = {.type = CL_COMMAND_MAP_BUFFER,
                                    .run = flags & CL_MAP_WRITE_INVALIDATE_REGION ? NULL : run_map,
                                    .from = buffer,
                                    .from_offset = offset,
                                    .bytes = bytes,
                                    .host = mapping->host};
        mapping->next = buffer->mappings;
        buffer->mappings = mapping;
        status = vc_enqueue(queue, &command, &list, blocking, event);
    }
    vc_return(code, status);
    return status == CL_SUCCESS ? mapping->host : NULL;
}

/* Removes the mapping at this address from the buffer and returns it. NULL: none. */
static vc_mapping *remove_mapping(cl_mem buffer, const void *host) {
    vc_mapping **at = &buffer->mappings;
    while (*at && (*at)->host != host) at = &(*at)->next;
    vc_mapping *found = *at;
    if (found) *at = found->next;
    return found;
}

static cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem buffer, void *host, cl_uint n_waits,
                                const cl_event *waits, cl_event *event) {
    VC_LOCKED;
    const vc_waits list = {n_waits, waits};
    cl_int code = vc_check_enqueue(queue, &list, "clEnqueueUnmapMemObject");
    if (code == CL_SUCCESS) code = vc_check(buffer, VC_BUFFER, "clEnqueueUnmapMemObject");
    if (code != CL_SUCCESS) return code;
    vc_mapping *mapping = remove_mapping(buffer, host);
    if (!mapping) return CL_INVALID_VALUE;
    const vc_command command = {
        .type = CL_COMMAND_UNMAP_MEM_OBJECT, .run = run_unmap, .to = buffer, .mapping = mapping};
    return vc_enqueue(queue, &command, &list, false, event);
}

void vc_enter_mappings(cl_icd_dispatch *table) {
    table->clEnqueueMapBuffer = map_buffer;
    table->clEnqueueUnmapMemObject = unmap;
}
