/* Builds one program: from its saved binary if there is one, else from source. */
#include "core/memory.h"
#include "device/probe.h"
#include "device/programs.h"

#include <stdio.h>
#include <string.h>

enum { OPTIONS = 512 };

/* No fast-math options: the checks for non-finite values must work. */
#define COMMON_OPTIONS "-cl-std=CL1.2"

/* The compiler's messages. If they are too long for an error text, warnings before the first error are
 * dropped. The caller frees the result; NULL if there is none. */
static char *read_build_log(cl_device_id id, cl_program program) {
    size_t size = 0;
    if (clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size) != CL_SUCCESS) return NULL;
    char *log = cleat_alloc(size + 1, 1);
    if (!log) return NULL;
    clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, size, log, NULL);
    char *first = strstr(log, "error:");
    if (strlen(log) > CLEAT_ERROR_TEXT / 2 && first) {
        while (first > log && first[-1] != '\n') --first;
        memmove(log, first, strlen(first) + 1);
    }
    return log;
}

static cleat_status fail_build(cleat_device *device, cl_program program, cl_int code, const cleat_program_key *key,
                               cleat_error *error) {
    char *log = read_build_log(device->id, program), reason[512];
    if (log && cleat_processor_is_unknown(&device->facts, log)) {
        cleat_explain_processor(device->platform, &device->facts, reason, sizeof reason);
        cleat_fail(error, CLEAT_ERR_BUILD, "%s. A newer PoCL may know it: `cleat doctor` lists what helps", reason);
    } else {
        cleat_fail(error, CLEAT_ERR_BUILD, "%s with options '%s' does not compile on '%s': %s (%d)\n%s", key->file,
                   key->options, device->facts.name, cleat_cl_name(code), (int)code, log ? log : "(no build log)");
    }
    if (error) error->cl_code = code;
    cleat_free(log);
    return CLEAT_ERR_BUILD;
}

static cleat_status build_source(cleat_device *device, const char *source, const char *options,
                                 const cleat_program_key *key, cl_program *program, cleat_error *error) {
    cl_int code = CL_SUCCESS;
    cl_program created = clCreateProgramWithSource(device->context, 1, &source, NULL, &code);
    if (code != CL_SUCCESS) return cleat_cl_fail(error, code, "creating the program of %s", key->file);
    /* Before the build, since some compilers crash. */
    cleat_log(CLEAT_LOG_DEBUG, "building %s with '%s'", key->file, key->options);
    code = clBuildProgram(created, 1, &device->id, options, NULL, NULL);
    if (code != CL_SUCCESS) {
        cleat_status status = fail_build(device, created, code, key, error);
        clReleaseProgram(created);
        return status;
    }
    *program = created;
    return CLEAT_OK;
}

cleat_status cleat_program_build(cleat_device *device, const cleat_program_key *key, cl_program *program, bool *loaded,
                                 cleat_error *error) {
    char options[OPTIONS], *source = NULL;
    /* PoCL and NVIDIA's driver print the number of warnings, such as of loops that LLVM did not unroll, to stderr. */
    const cleat_vendor vendor = device->facts.vendor;
    const char *quiet = vendor == CLEAT_VENDOR_POCL || vendor == CLEAT_VENDOR_NVIDIA ? " -w" : "";
    if ((size_t)snprintf(options, sizeof options, COMMON_OPTIONS "%s %s", quiet, key->options) >= sizeof options)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "build options of %s are too long: %s", key->file, key->options);
    cleat_status status = cleat_kernel_source_of(key->file, key->source, &source, error);
    if (status) return status;
    cl_program built = cleat_binary_load(device, source, options);
    *loaded = built != NULL;
    if (!built) {
        status = build_source(device, source, options, key, &built, error);
        if (!status) cleat_binary_save(device, source, options, built);
    }
    cleat_free(source);
    if (!status) *program = built;
    return status;
}
