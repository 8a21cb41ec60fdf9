/* Programs from source or from a binary; a binary is assembly, like PTX with NVIDIA's driver. */
#include "compile.h"
#include "icd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE = 400 };

static void destroy_program(vc_object *object) {
    struct _cl_program *program = (struct _cl_program *)object;
    vc_code_free(program->code);
    free(program->source);
    free(program->options);
    free(program->log);
    free(program->assembly);
    vc_drop(program->context);
}

/* NULL: no memory. */
static cl_program new_program(cl_context context) {
    cl_program program = vc_object_new(VC_PROGRAM, sizeof *program, destroy_program);
    if (!program) return NULL;
    program->context = context;
    program->status = CL_BUILD_NONE;
    vc_hold(context);
    return program;
}

/* Concatenates the strings. NULL: no memory. */
static char *join(cl_uint count, const char **strings, const size_t *lengths) {
    size_t bytes = 0;
    for (int pass = 0;; ++pass) {
        char *text = pass ? malloc(bytes + 1) : NULL, *at = text;
        if (pass && !text) return NULL;
        for (cl_uint i = 0; i < count; ++i) {
            size_t length = lengths && lengths[i] ? lengths[i] : strlen(strings[i]);
            if (!pass) bytes += length;
            if (pass) at = (char *)memcpy(at, strings[i], length) + length;
        }
        if (!pass) continue;
        *at = 0;
        return text;
    }
}

static cl_program CL_API_CALL create_from_source(cl_context context, cl_uint count, const char **strings,
                                                 const size_t *lengths, cl_int *code) {
    VC_LOCKED;
    cl_program program = NULL;
    cl_int status = vc_check(context, VC_CONTEXT, "clCreateProgramWithSource");
    if (status == CL_SUCCESS && (count == 0 || !strings)) status = CL_INVALID_VALUE;
    for (cl_uint i = 0; i < count && status == CL_SUCCESS; ++i)
        if (!strings[i]) status = CL_INVALID_VALUE;
    if (status == CL_SUCCESS) program = new_program(context);
    if (program) program->source = join(count, strings, lengths);
    if (status == CL_SUCCESS && (!program || !program->source)) status = CL_OUT_OF_HOST_MEMORY;
    if (status != CL_SUCCESS && program) {
        vc_release(program, VC_PROGRAM, "the driver");
        program = NULL;
    }
    vc_return(code, status);
    return program;
}

/* Reads assembly for this card. */
static cl_int load(cl_program program, const char *assembly, char message[MESSAGE]) {
    program->code = vc_code_read(vc_device.card, assembly, message, MESSAGE);
    return program->code ? CL_SUCCESS : CL_INVALID_BINARY;
}

static cl_int create_binary(cl_context context, const unsigned char *bytes, size_t length, cl_program *created) {
    char message[MESSAGE];
    cl_program program = new_program(context);
    if (!program) return CL_OUT_OF_HOST_MEMORY;
    program->assembly = strndup((const char *)bytes, length);
    cl_int code = program->assembly ? load(program, program->assembly, message) : CL_OUT_OF_HOST_MEMORY;
    vc_code_free(program->code); /* until it is built */
    program->code = NULL;
    if (code == CL_SUCCESS)
        *created = program;
    else
        vc_release(program, VC_PROGRAM, "the driver");
    return code;
}

static cl_program CL_API_CALL create_from_binary(cl_context context, cl_uint count, const cl_device_id *devices,
                                                 const size_t *lengths, const unsigned char **binaries, cl_int *states,
                                                 cl_int *code) {
    VC_LOCKED;
    cl_program program = NULL;
    cl_int status = vc_check(context, VC_CONTEXT, "clCreateProgramWithBinary");
    if (status == CL_SUCCESS && (count != 1 || !devices || !lengths || !binaries)) status = CL_INVALID_VALUE;
    if (status == CL_SUCCESS && devices[0] != &vc_device) status = CL_INVALID_DEVICE;
    if (status == CL_SUCCESS && (lengths[0] == 0 || !binaries[0])) status = CL_INVALID_VALUE;
    if (status == CL_SUCCESS) status = create_binary(context, binaries[0], lengths[0], &program);
    if (states) states[0] = status;
    vc_return(code, status);
    return program;
}

static void set_text(char **text, char *value) {
    free(*text);
    *text = value;
}

/* Compiles the source, if any, and reads the code. Releases the lock meanwhile, so programs are built in
 * parallel. */
static cl_int build_unlocked(cl_program program, char **log) {
    char message[MESSAGE];
    cl_int code = CL_SUCCESS;
    if (program->source) {
        char *assembly = NULL;
        code = vc_compile(program->source, program->options, &assembly, log);
        if (code == CL_SUCCESS) set_text(&program->assembly, assembly);
    }
    if (code != CL_SUCCESS || load(program, program->assembly, message) == CL_SUCCESS) return code;
    set_text(log, strdup(message));
    return program->source ? CL_BUILD_PROGRAM_FAILURE : CL_INVALID_BINARY;
}

static cl_int begin_build(cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
                          bool callback, const void *user) {
    cl_int code = vc_check(program, VC_PROGRAM, "clBuildProgram");
    if (code != CL_SUCCESS) return code;
    if ((count > 0) != (devices != NULL) || (!callback && user)) return CL_INVALID_VALUE;
    if (count > 1 || (count == 1 && devices[0] != &vc_device)) return CL_INVALID_DEVICE;
    if (program->kernels > 0 || program->status == CL_BUILD_IN_PROGRESS) return CL_INVALID_OPERATION;
    char *copy = strdup(options ? options : "");
    if (!copy) return CL_OUT_OF_HOST_MEMORY;
    set_text(&program->options, copy);
    vc_code_free(program->code);
    program->code = NULL;
    program->status = CL_BUILD_IN_PROGRESS;
    vc_hold(program);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL build(cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
                                void(CL_CALLBACK *callback)(cl_program, void *), void *user) {
    char *log = NULL;
    vc_lock();
    cl_int code = begin_build(program, count, devices, options, callback != NULL, user);
    vc_unlock();
    if (code != CL_SUCCESS) return code;
    code = build_unlocked(program, &log);
    if (callback) callback(program, user);
    vc_lock();
    set_text(&program->log, log);
    program->status = code == CL_SUCCESS ? CL_BUILD_SUCCESS : CL_BUILD_ERROR;
    vc_drop(program);
    vc_unlock();
    return code;
}

static cl_int answer_binary(const struct _cl_program *program, size_t size, void *out, size_t *needed) {
    unsigned char *to = NULL;
    if (out && size < sizeof to) return CL_INVALID_VALUE;
    if (needed) *needed = sizeof to;
    if (out) memcpy(&to, out, sizeof to);
    if (to && program->assembly) memcpy(to, program->assembly, strlen(program->assembly));
    return CL_SUCCESS;
}

/* "a;b;c". */
static cl_int answer_names(const struct _cl_program *program, size_t size, void *out, size_t *needed) {
    char names[4096] = "";
    size_t used = 0;
    for (size_t i = 0; i < vc_code_kernels(program->code) && used < sizeof names; ++i)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ";" : "",
                                 vc_code_name(vc_code_kernel_at(program->code, i)));
    return vc_answer_text(names, size, out, needed);
}

static cl_int CL_API_CALL program_info(cl_program program, cl_program_info what, size_t size, void *out,
                                       size_t *needed) {
    VC_LOCKED;
    cl_int code = vc_check(program, VC_PROGRAM, "clGetProgramInfo");
    if (code != CL_SUCCESS) return code;
    bool asks_kernels = what == CL_PROGRAM_NUM_KERNELS || what == CL_PROGRAM_KERNEL_NAMES;
    if (asks_kernels && !program->code) return CL_INVALID_PROGRAM_EXECUTABLE;
    switch (what) {
    case CL_PROGRAM_REFERENCE_COUNT:
        return VC_ANSWER(cl_uint, (cl_uint)program->object.references);
    case CL_PROGRAM_CONTEXT:
        return VC_ANSWER(cl_context, program->context);
    case CL_PROGRAM_NUM_DEVICES:
        return VC_ANSWER(cl_uint, 1);
    case CL_PROGRAM_DEVICES:
        return VC_ANSWER(cl_device_id, &vc_device);
    case CL_PROGRAM_SOURCE:
        return vc_answer_text(program->source ? program->source : "", size, out, needed);
    case CL_PROGRAM_BINARY_SIZES:
        return VC_ANSWER(size_t, program->assembly ? strlen(program->assembly) : 0);
    case CL_PROGRAM_BINARIES:
        return answer_binary(program, size, out, needed);
    case CL_PROGRAM_NUM_KERNELS:
        return VC_ANSWER(size_t, vc_code_kernels(program->code));
    case CL_PROGRAM_KERNEL_NAMES:
        return answer_names(program, size, out, needed);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL build_info(cl_program program, cl_device_id device, cl_program_build_info what, size_t size,
                                     void *out, size_t *needed) {
    VC_LOCKED;
    cl_int code = vc_check(program, VC_PROGRAM, "clGetProgramBuildInfo");
    if (code != CL_SUCCESS) return code;
    if (device != &vc_device) return CL_INVALID_DEVICE;
    switch (what) {
    case CL_PROGRAM_BUILD_STATUS:
        return VC_ANSWER(cl_build_status, program->status);
    case CL_PROGRAM_BUILD_OPTIONS:
        return vc_answer_text(program->options ? program->options : "", size, out, needed);
    case CL_PROGRAM_BUILD_LOG:
        return vc_answer_text(program->log ? program->log : "", size, out, needed);
    case CL_PROGRAM_BINARY_TYPE:
        return VC_ANSWER(cl_program_binary_type,
                         program->code ? CL_PROGRAM_BINARY_TYPE_EXECUTABLE : CL_PROGRAM_BINARY_TYPE_NONE);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL retain_program(cl_program program) {
    VC_LOCKED;
    return vc_retain(program, VC_PROGRAM, "clRetainProgram");
}

static cl_int CL_API_CALL release_program(cl_program program) {
    VC_LOCKED;
    return vc_release(program, VC_PROGRAM, "clReleaseProgram");
}

void vc_enter_programs(cl_icd_dispatch *table) {
    table->clCreateProgramWithSource = create_from_source;
    table->clCreateProgramWithBinary = create_from_binary;
    table->clBuildProgram = build;
    table->clGetProgramInfo = program_info;
    table->clGetProgramBuildInfo = build_info;
    table->clRetainProgram = retain_program;
    table->clReleaseProgram = release_program;
}
