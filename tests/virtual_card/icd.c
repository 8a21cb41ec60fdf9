/* Entry points for the OpenCL loader: the platform and the dispatch table of every object. */
#include "icd.h"

#include "faults.h"

#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

cl_icd_dispatch vc_dispatch;

/* Table entry of functions that the card lacks. */
static cl_int CL_API_CALL refuse(void) {
    vc_fault("an OpenCL function was called that the virtual card does not implement");
    return CL_INVALID_OPERATION;
}

static void *CL_API_CALL refuse_object(void) {
    refuse();
    return NULL;
}

/* Sets every entry; entries that return an object get a function that returns NULL. */
static void refuse_all(cl_icd_dispatch *table) {
    cl_int(CL_API_CALL * code)(void) = refuse;
    void *(CL_API_CALL * object)(void) = refuse_object;
    for (size_t at = 0; at + sizeof code <= sizeof *table; at += sizeof code)
        memcpy((char *)table + at, &code, sizeof code);
    void *const objects[] = {&table->clCreateContextFromType,
                             &table->clCreateImage2D,
                             &table->clCreateImage3D,
                             &table->clCreateImage,
                             &table->clCreateSampler,
                             &table->clEnqueueMapImage,
                             &table->clCreateProgramWithBuiltInKernels,
                             &table->clLinkProgram,
                             &table->clCreatePipe,
                             &table->clSVMAlloc,
                             &table->clCreateSamplerWithProperties,
                             &table->clCloneKernel,
                             &table->clCreateProgramWithIL,
                             &table->clCreateBufferWithProperties,
                             &table->clCreateImageWithProperties};
    for (size_t i = 0; i < sizeof objects / sizeof *objects; ++i) memcpy(objects[i], &object, sizeof object);
}

static cl_int CL_API_CALL platform_ids(cl_uint size, cl_platform_id *platforms, cl_uint *count) {
    if (!vc_device.card) {
        if (count) *count = 0;
        return CL_PLATFORM_NOT_FOUND_KHR;
    }
    if (!platforms && !count) return CL_INVALID_VALUE;
    if (platforms && size == 0) return CL_INVALID_VALUE;
    if (platforms) platforms[0] = &vc_platform;
    if (count) *count = 1;
    return CL_SUCCESS;
}

static void *CL_API_CALL extension_function(const char *name);

static void *CL_API_CALL extension_function_of(cl_platform_id platform, const char *name) {
    (void)platform;
    return extension_function(name);
}

__attribute__((constructor)) static void fill_table(void) {
    refuse_all(&vc_dispatch);
    vc_dispatch.clGetPlatformIDs = platform_ids;
    vc_dispatch.clGetExtensionFunctionAddress = extension_function;
    vc_dispatch.clGetExtensionFunctionAddressForPlatform = extension_function_of;
    vc_enter_devices(&vc_dispatch);
    vc_enter_contexts(&vc_dispatch);
    vc_enter_queues(&vc_dispatch);
    vc_enter_events(&vc_dispatch);
    vc_enter_memory(&vc_dispatch);
    vc_enter_transfers(&vc_dispatch);
    vc_enter_mappings(&vc_dispatch);
    vc_enter_programs(&vc_dispatch);
    vc_enter_kernels(&vc_dispatch);
    vc_enter_launches(&vc_dispatch);
    vc_object_init(&vc_platform.object, VC_PLATFORM);
    vc_object_init(&vc_device.object, VC_DEVICE);
    vc_device.card = vc_card_chosen();
    if (!vc_device.card)
        fprintf(stderr, "virtual card: CLEAT_VIRTUAL_CARD is not a known card; see tests/virtual_card/cards.c\n");
}

EXPORT cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint size, cl_platform_id *platforms, cl_uint *count) {
    return platform_ids(size, platforms, count);
}

EXPORT void *CL_API_CALL clGetExtensionFunctionAddress(const char *name) {
    return extension_function(name);
}

/* Converts a function to the untyped pointer that this call returns. */
#define ADDRESS(function) memcpy(&address, &(function), sizeof address)

static void *CL_API_CALL extension_function(const char *name) {
    void *address = NULL;
    cl_int (*ids)(cl_uint, cl_platform_id *, cl_uint *) = clIcdGetPlatformIDsKHR;
    if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0) ADDRESS(ids);
    unsigned (*faults)(void) = vc_faults;
    const char *(*last_fault)(void) = vc_last_fault;
    if (strcmp(name, "clGetPlatformInfo") == 0) ADDRESS(vc_dispatch.clGetPlatformInfo);
    if (strcmp(name, "vc_faults") == 0) ADDRESS(faults);
    if (strcmp(name, "vc_last_fault") == 0) ADDRESS(last_fault);
    return address;
}
