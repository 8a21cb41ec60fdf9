/* Contexts with one device each, and the error of a lost context. */
#include "icd.h"

static cl_context CL_API_CALL create_context(const cl_context_properties *properties, cl_uint count,
                                             const cl_device_id *devices,
                                             void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
                                             void *user, cl_int *code) {
    VC_LOCKED;
    cl_int status = CL_SUCCESS;
    cl_context context = NULL;
    for (; properties && properties[0] && status == CL_SUCCESS; properties += 2)
        if (properties[0] != CL_CONTEXT_PLATFORM)
            status = CL_INVALID_PROPERTY;
        else if (properties[1] != (cl_context_properties)&vc_platform)
            status = CL_INVALID_PLATFORM;
    if (status == CL_SUCCESS && (count != 1 || !devices || (!notify && user))) status = CL_INVALID_VALUE;
    if (status == CL_SUCCESS && devices[0] != &vc_device) status = CL_INVALID_DEVICE;
    if (status == CL_SUCCESS) context = vc_object_new(VC_CONTEXT, sizeof *context, NULL);
    if (status == CL_SUCCESS && !context) status = CL_OUT_OF_HOST_MEMORY;
    if (context) {
        context->notify = notify;
        context->user = user;
    }
    vc_return(code, status);
    return context;
}

static cl_int CL_API_CALL retain_context(cl_context context) {
    VC_LOCKED;
    return vc_retain(context, VC_CONTEXT, "clRetainContext");
}

static cl_int CL_API_CALL release_context(cl_context context) {
    VC_LOCKED;
    return vc_release(context, VC_CONTEXT, "clReleaseContext");
}

static cl_int CL_API_CALL context_info(cl_context context, cl_context_info what, size_t size, void *out,
                                       size_t *needed) {
    VC_LOCKED;
    cl_int code = vc_check(context, VC_CONTEXT, "clGetContextInfo");
    if (code != CL_SUCCESS) return code;
    switch (what) {
    case CL_CONTEXT_DEVICES:
        return VC_ANSWER(cl_device_id, &vc_device);
    case CL_CONTEXT_NUM_DEVICES:
        return VC_ANSWER(cl_uint, 1);
    case CL_CONTEXT_REFERENCE_COUNT:
        return VC_ANSWER(cl_uint, (cl_uint)context->object.references);
    case CL_CONTEXT_PROPERTIES:
        return vc_answer(NULL, 0, size, NULL, needed);
    default:
        return CL_INVALID_VALUE;
    }
}

void vc_enter_contexts(cl_icd_dispatch *table) {
    table->clCreateContext = create_context;
    table->clRetainContext = retain_context;
    table->clReleaseContext = release_context;
    table->clGetContextInfo = context_info;
}
