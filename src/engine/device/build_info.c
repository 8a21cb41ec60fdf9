/* The compiler of this library, and the libraries found at run time. */
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS /* clGetExtensionFunctionAddress: loaders of all ages have it */
#include "cleat/device.h"
#include "device/device.h"
#include "platform/files.h"
#include "platform/system.h"

#include <clblast_c.h>
#include <hwloc.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clGetICDLoaderInfoOCLICD, of ocl-icd and of the Khronos loader from 2021 on. */
typedef cl_int (*loader_info_fn)(int info, size_t size, void *value, size_t *size_ret);
enum { LOADER_OPENCL_VERSION = 1, LOADER_VERSION = 2, LOADER_NAME = 3 };

/* The library that a function is in, without links: "/usr/lib/libclblast.so.1.5.3". False: it is in the program. */
static bool library_file(void *function, char file[PATH_MAX]) {
    Dl_info about;
    return dladdr(function, &about) && about.dli_fname &&
           (strstr(about.dli_fname, ".so") || strstr(about.dli_fname, ".dll")) && realpath(about.dli_fname, file);
}

static void read_loader(cleat_build_info *info) {
    char name[32] = "", version[32] = "", opencl[32] = "", file[PATH_MAX];
    loader_info_fn query = NULL;
    void *found = clGetExtensionFunctionAddress("clGetICDLoaderInfoOCLICD");
    void *library = dlsym(RTLD_DEFAULT, "clGetPlatformIDs");
    if (!library) { /* Windows without OpenCL.dll: every call returns an error, which is no address */
        snprintf(info->opencl_loader, sizeof info->opencl_loader, "none");
        return;
    }
    memcpy(&query, &found, sizeof query);
    if (query && query(LOADER_NAME, sizeof name, name, NULL) == CL_SUCCESS &&
        query(LOADER_VERSION, sizeof version, version, NULL) == CL_SUCCESS &&
        query(LOADER_OPENCL_VERSION, sizeof opencl, opencl, NULL) == CL_SUCCESS) {
        snprintf(info->opencl_loader, sizeof info->opencl_loader, "%.31s %.31s (%.31s)", name, version, opencl);
        return;
    }
    if (library_file(library, file))
        snprintf(info->opencl_loader, sizeof info->opencl_loader, "%.*s", (int)sizeof info->opencl_loader - 1, file);
}

/* CLBlast does not report its version; the file name of a shared library contains it. */
static void read_clblast(cleat_build_info *info) {
    char file[PATH_MAX];
    void *function = dlsym(RTLD_DEFAULT, "CLBlastClearCache");
    const char *name = function && library_file(function, file) ? file : CLEAT_CLBLAST_VERSION;
    const char *version = strstr(name, ".so.");
    snprintf(info->clblast, sizeof info->clblast, "%.*s", (int)sizeof info->clblast - 1, version ? version + 4 : name);
}

void cleat_get_build_info(cleat_build_info *info) {
    *info = (cleat_build_info){.build_type = CLEAT_BUILD_TYPE};
#ifdef __clang__
    snprintf(info->compiler, sizeof info->compiler, "%s", __VERSION__);
#else
    snprintf(info->compiler, sizeof info->compiler, "gcc %s", __VERSION__);
#endif
    unsigned hwloc = hwloc_get_api_version();
    snprintf(info->hwloc, sizeof info->hwloc, "%u.%u.%u", hwloc >> 16, hwloc >> 8 & 255, hwloc & 255);
    read_loader(info);
    read_clblast(info);
}
