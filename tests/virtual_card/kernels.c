/* Kernels and their arguments. */
#include "icd.h"

#include <stdlib.h>
#include <string.h>

/* A kernel does not retain its buffers: clEnqueueNDRangeKernel reports released ones. */
static void clear_argument(vc_argument *argument) {
    free(argument->value);
    *argument = (vc_argument){0};
}

static void destroy_kernel(vc_object *object) {
    struct _cl_kernel *kernel = (struct _cl_kernel *)object;
    for (size_t i = 0; i < vc_code_params(kernel->code); ++i) clear_argument(&kernel->arguments[i]);
    free(kernel->arguments);
    --kernel->program->kernels;
    vc_drop(kernel->program);
}

static cl_int create(cl_program program, const vc_code_kernel *code, cl_kernel *created) {
    vc_argument *arguments = calloc(vc_code_params(code) + 1, sizeof *arguments);
    cl_kernel kernel = arguments ? vc_object_new(VC_KERNEL, sizeof *kernel, destroy_kernel) : NULL;
    if (!kernel) {
        free(arguments);
        return CL_OUT_OF_HOST_MEMORY;
    }
    kernel->program = program;
    kernel->code = code;
    kernel->arguments = arguments;
    ++program->kernels;
    vc_hold(program);
    *created = kernel;
    return CL_SUCCESS;
}

static cl_kernel CL_API_CALL create_kernel(cl_program program, const char *name, cl_int *code) {
    VC_LOCKED;
    cl_kernel kernel = NULL;
    const vc_code_kernel *found = NULL;
    cl_int status = vc_check(program, VC_PROGRAM, "clCreateKernel");
    if (status == CL_SUCCESS && !program->code) status = CL_INVALID_PROGRAM_EXECUTABLE;
    if (status == CL_SUCCESS && !name) status = CL_INVALID_VALUE;
    if (status == CL_SUCCESS && !(found = vc_code_find(program->code, name))) status = CL_INVALID_KERNEL_NAME;
    if (status == CL_SUCCESS) status = create(program, found, &kernel);
    vc_return(code, status);
    return kernel;
}

static cl_int CL_API_CALL create_kernels(cl_program program, cl_uint size, cl_kernel *kernels, cl_uint *count) {
    VC_LOCKED;
    cl_int code = vc_check(program, VC_PROGRAM, "clCreateKernelsInProgram");
    if (code != CL_SUCCESS) return code;
    if (!program->code) return CL_INVALID_PROGRAM_EXECUTABLE;
    cl_uint all = (cl_uint)vc_code_kernels(program->code);
    if (kernels && size < all) return CL_INVALID_VALUE;
    for (cl_uint i = 0; kernels && i < all && code == CL_SUCCESS; ++i)
        code = create(program, vc_code_kernel_at(program->code, i), &kernels[i]);
    if (count) *count = all;
    return code;
}

static cl_int set_buffer(cl_kernel kernel, vc_argument *argument, size_t bytes, const void *value) {
    cl_mem buffer = NULL;
    if (bytes != sizeof(cl_mem)) return CL_INVALID_ARG_SIZE;
    if (value) memcpy(&buffer, value, sizeof buffer);
    if (buffer) {
        cl_int code = vc_check(buffer, VC_BUFFER, "clSetKernelArg");
        if (code != CL_SUCCESS) return code;
        if (buffer->context != kernel->program->context) return CL_INVALID_MEM_OBJECT;
    }
    clear_argument(argument);
    argument->buffer = buffer;
    argument->set = true;
    return CL_SUCCESS;
}

static cl_int set_value(vc_argument *argument, const ptx_param *param, size_t bytes, const void *value) {
    if (!value) return CL_INVALID_ARG_VALUE;
    if (bytes != param->size) return CL_INVALID_ARG_SIZE;
    unsigned char *copy = malloc(bytes);
    if (!copy) return CL_OUT_OF_HOST_MEMORY;
    memcpy(copy, value, bytes);
    clear_argument(argument);
    argument->value = copy;
    argument->set = true;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, size_t bytes, const void *value) {
    VC_LOCKED;
    cl_int code = vc_check(kernel, VC_KERNEL, "clSetKernelArg");
    if (code != CL_SUCCESS) return code;
    if (index >= vc_code_params(kernel->code)) return CL_INVALID_ARG_INDEX;
    const ptx_param *param = vc_code_param_at(kernel->code, index);
    vc_argument *argument = &kernel->arguments[index];
    if (param->pointer) return set_buffer(kernel, argument, bytes, value);
    if (!param->shared) return set_value(argument, param, bytes, value);
    if (value) return CL_INVALID_ARG_VALUE;
    if (bytes == 0) return CL_INVALID_ARG_SIZE;
    clear_argument(argument);
    argument->local_bytes = bytes;
    argument->set = true;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL kernel_info(cl_kernel kernel, cl_kernel_info what, size_t size, void *out, size_t *needed) {
    VC_LOCKED;
    cl_int code = vc_check(kernel, VC_KERNEL, "clGetKernelInfo");
    if (code != CL_SUCCESS) return code;
    switch (what) {
    case CL_KERNEL_FUNCTION_NAME:
        return vc_answer_text(vc_code_name(kernel->code), size, out, needed);
    case CL_KERNEL_NUM_ARGS:
        return VC_ANSWER(cl_uint, (cl_uint)vc_code_params(kernel->code));
    case CL_KERNEL_REFERENCE_COUNT:
        return VC_ANSWER(cl_uint, (cl_uint)kernel->object.references);
    case CL_KERNEL_CONTEXT:
        return VC_ANSWER(cl_context, kernel->program->context);
    case CL_KERNEL_PROGRAM:
        return VC_ANSWER(cl_program, kernel->program);
    case CL_KERNEL_ATTRIBUTES:
        return vc_answer_text("", size, out, needed);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int answer_group(const vc_code_kernel *code, size_t size, void *out, size_t *needed) {
    uint32_t group[3];
    if (!vc_code_required_group(code, group)) return VC_ANSWER(size_t, vc_device.card->maker->max_work_items);
    return VC_ANSWER(size_t, (size_t)group[0] * group[1] * group[2]);
}

static cl_int CL_API_CALL group_info(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what, size_t size,
                                     void *out, size_t *needed) {
    VC_LOCKED;
    cl_int code = vc_check(kernel, VC_KERNEL, "clGetKernelWorkGroupInfo");
    if (code != CL_SUCCESS) return code;
    if (device && device != &vc_device) return CL_INVALID_DEVICE;
    uint32_t group[3] = {0, 0, 0};
    size_t sizes[3];
    switch (what) {
    case CL_KERNEL_WORK_GROUP_SIZE:
        return answer_group(kernel->code, size, out, needed);
    case CL_KERNEL_COMPILE_WORK_GROUP_SIZE:
        vc_code_required_group(kernel->code, group);
        for (int i = 0; i < 3; ++i) sizes[i] = group[i];
        return vc_answer(sizes, sizeof sizes, size, out, needed);
    case CL_KERNEL_LOCAL_MEM_SIZE:
        return VC_ANSWER(cl_ulong, vc_code_local_bytes(kernel->code));
    case CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE:
        return VC_ANSWER(size_t, vc_device.card->wave);
    case CL_KERNEL_PRIVATE_MEM_SIZE:
        return VC_ANSWER(cl_ulong, vc_code_private_bytes(kernel->code));
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL retain_kernel(cl_kernel kernel) {
    VC_LOCKED;
    return vc_retain(kernel, VC_KERNEL, "clRetainKernel");
}

static cl_int CL_API_CALL release_kernel(cl_kernel kernel) {
    VC_LOCKED;
    return vc_release(kernel, VC_KERNEL, "clReleaseKernel");
}

void vc_enter_kernels(cl_icd_dispatch *table) {
    table->clCreateKernel = create_kernel;
    table->clCreateKernelsInProgram = create_kernels;
    table->clSetKernelArg = set_argument;
    table->clGetKernelInfo = kernel_info;
    table->clGetKernelWorkGroupInfo = group_info;
    table->clRetainKernel = retain_kernel;
    table->clReleaseKernel = release_kernel;
}
