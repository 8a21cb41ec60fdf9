/* Buffers and sub-buffers. A buffer is reserved host memory; untouched pages cost nothing. */
#include "faults.h"
#include "icd.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* New buffers up to this size are filled with NaNs of any type; larger ones stay zero, which costs no memory. */
enum { FILLED = 64 << 20 };

static void destroy_buffer(vc_object *object) {
    struct _cl_mem *buffer = (struct _cl_mem *)object;
    if (buffer->mappings && buffer->context->lost == CL_SUCCESS) /* a lost card runs no unmap commands */
        vc_fault("a buffer of %zu bytes was released while it was mapped", buffer->bytes);
    if (buffer->parent) {
        vc_drop(buffer->parent);
    } else {
        munmap(buffer->data, buffer->bytes);
        vc_device.allocated -= buffer->bytes;
    }
    vc_drop(buffer->context);
}

static cl_int check_flags(cl_mem_flags flags, const void *host) {
    const cl_mem_flags access = CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY;
    const cl_mem_flags host_access = CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS;
    const cl_mem_flags memory = CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR;
    cl_mem_flags chosen = flags & access;
    if (flags & ~(access | host_access | memory) || (chosen & (chosen - 1))) return CL_INVALID_VALUE;
    if (flags & CL_MEM_USE_HOST_PTR && flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)) return CL_INVALID_VALUE;
    bool needs_host = flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR);
    return needs_host == (host != NULL) ? CL_SUCCESS : CL_INVALID_HOST_PTR;
}

/* NULL: exceeds the card's memory. */
static unsigned char *reserve(size_t bytes) {
    if (bytes > vc_device.card->memory - vc_device.allocated) return NULL;
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return NULL;
    if (bytes <= FILLED) memset(data, 0xff, bytes);
    vc_device.allocated += bytes;
    return data;
}

static cl_int create(cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_mem *created) {
    cl_int code = vc_check(context, VC_CONTEXT, "clCreateBuffer");
    if (code == CL_SUCCESS) code = check_flags(flags, host);
    if (code != CL_SUCCESS) return code;
    if (bytes == 0) return CL_INVALID_BUFFER_SIZE;
    if (bytes > vc_device.card->largest) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    unsigned char *data = reserve(bytes);
    if (!data) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    cl_mem buffer = vc_object_new(VC_BUFFER, sizeof *buffer, destroy_buffer);
    if (!buffer) {
        munmap(data, bytes);
        vc_device.allocated -= bytes;
        return CL_OUT_OF_HOST_MEMORY;
    }
    buffer->context = context;
    buffer->flags = flags & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY) ? flags : flags | CL_MEM_READ_WRITE;
    buffer->bytes = bytes;
    buffer->data = data;
    if (host) memcpy(data, host, bytes);
    if (flags & CL_MEM_USE_HOST_PTR) buffer->host_ptr = host;
    vc_hold(context);
    *created = buffer;
    return CL_SUCCESS;
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host,
                                        cl_int *code) {
    VC_LOCKED;
    cl_mem buffer = NULL;
    vc_return(code, create(context, flags, bytes, host, &buffer));
    return buffer;
}

static cl_int create_part(cl_mem parent, cl_mem_flags flags, const cl_buffer_region *region, cl_mem *created) {
    cl_int code = vc_check(parent, VC_BUFFER, "clCreateSubBuffer");
    if (code != CL_SUCCESS) return code;
    if (parent->parent) return CL_INVALID_MEM_OBJECT;
    if (!region || region->size > parent->bytes || region->origin > parent->bytes - region->size)
        return CL_INVALID_VALUE;
    if (region->size == 0) return CL_INVALID_BUFFER_SIZE;
    if (region->origin % vc_device.card->maker->alignment) return CL_MISALIGNED_SUB_BUFFER_OFFSET;
    if (flags & (CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)) return CL_INVALID_VALUE;
    if (parent->flags & CL_MEM_READ_ONLY && flags & (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY)) return CL_INVALID_VALUE;
    cl_mem part = vc_object_new(VC_BUFFER, sizeof *part, destroy_buffer);
    if (!part) return CL_OUT_OF_HOST_MEMORY;
    part->context = parent->context;
    part->flags = flags ? flags : parent->flags;
    part->bytes = region->size;
    part->origin = region->origin;
    part->data = parent->data + region->origin;
    part->parent = parent;
    vc_hold(parent);
    vc_hold(parent->context);
    *created = part;
    return CL_SUCCESS;
}

static cl_mem CL_API_CALL create_sub_buffer(cl_mem parent, cl_mem_flags flags, cl_buffer_create_type type,
                                            const void *region, cl_int *code) {
    VC_LOCKED;
    cl_mem part = NULL;
    cl_int status = type == CL_BUFFER_CREATE_TYPE_REGION ? create_part(parent, flags, region, &part) : CL_INVALID_VALUE;
    vc_return(code, status);
    return part;
}

static cl_int CL_API_CALL retain_buffer(cl_mem buffer) {
    VC_LOCKED;
    return vc_retain(buffer, VC_BUFFER, "clRetainMemObject");
}

static cl_int CL_API_CALL release_buffer(cl_mem buffer) {
    VC_LOCKED;
    return vc_release(buffer, VC_BUFFER, "clReleaseMemObject");
}

static cl_uint count_mappings(const struct _cl_mem *buffer) {
    cl_uint count = 0;
    for (const vc_mapping *mapping = buffer->mappings; mapping; mapping = mapping->next) ++count;
    return count;
}

static cl_int CL_API_CALL buffer_info(cl_mem buffer, cl_mem_info what, size_t size, void *out, size_t *needed) {
    VC_LOCKED;
    cl_int code = vc_check(buffer, VC_BUFFER, "clGetMemObjectInfo");
    if (code != CL_SUCCESS) return code;
    switch (what) {
    case CL_MEM_TYPE:
        return VC_ANSWER(cl_mem_object_type, CL_MEM_OBJECT_BUFFER);
    case CL_MEM_FLAGS:
        return VC_ANSWER(cl_mem_flags, buffer->flags);
    case CL_MEM_SIZE:
        return VC_ANSWER(size_t, buffer->bytes);
    case CL_MEM_OFFSET:
        return VC_ANSWER(size_t, buffer->origin);
    case CL_MEM_HOST_PTR:
        return VC_ANSWER(void *, buffer->host_ptr);
    case CL_MEM_MAP_COUNT:
        return VC_ANSWER(cl_uint, count_mappings(buffer));
    case CL_MEM_CONTEXT:
        return VC_ANSWER(cl_context, buffer->context);
    case CL_MEM_ASSOCIATED_MEMOBJECT:
        return VC_ANSWER(cl_mem, buffer->parent);
    case CL_MEM_REFERENCE_COUNT:
        return VC_ANSWER(cl_uint, (cl_uint)buffer->object.references);
    default:
        return CL_INVALID_VALUE;
    }
}

void vc_enter_memory(cl_icd_dispatch *table) {
    table->clCreateBuffer = create_buffer;
    table->clCreateSubBuffer = create_sub_buffer;
    table->clRetainMemObject = retain_buffer;
    table->clReleaseMemObject = release_buffer;
    table->clGetMemObjectInfo = buffer_info;
}
