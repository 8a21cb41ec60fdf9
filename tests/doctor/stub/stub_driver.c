/* An OpenCL driver without hardware, for the doctor's tests. Its devices and its faults are in the file
 * LIBRARY.conf beside the library, so copies of it can differ in one process:
 *   platform=NAME, vendor=NAME, version=OpenCL 1.2, type=gpu|cpu, free_kib=N, log=TEXT of the compiler
 *   device=NAME and pci=0000:01:00.0 (may be repeated: the n-th address is that of the n-th device)
 *   fault=no-platform | hang-list | crash-list | exit-list | crash-in-folder (if OCL_ICD_VENDORS is a folder)
 *         | no-context | build-fails | hang-kernel | crash-kernel | wrong
 * It compiles nothing: it accepts the doctor's kernel and refuses all others. */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { MAX_DEVICES = 4, TEXT = 160, PCI_BUS_INFO_KHR = 0x410F, FREE_MEMORY_AMD = 0x4039 };

/* Every OpenCL object begins with the dispatch table. */
typedef struct object {
    const cl_icd_dispatch *dispatch;
    int index;
    size_t bytes;
    float *values;
    struct object *arguments[2];
} object;

static cl_icd_dispatch table;
static object platform = {.dispatch = &table};
static object devices[MAX_DEVICES];
static char platform_name[TEXT] = "Stub", vendor[TEXT] = "Stub", version[TEXT] = "OpenCL 1.2 stub", fault[TEXT],
            build_log[TEXT], names[MAX_DEVICES][TEXT], addresses[MAX_DEVICES][TEXT];
static int n_devices, n_addresses;
static cl_device_type type = CL_DEVICE_TYPE_GPU;
static size_t free_kib;

static int is_fault(const char *name) {
    return strcmp(fault, name) == 0;
}

static void read_line(char *line) {
    char *value = strchr(line, '=');
    line[strcspn(line, "\n")] = 0;
    if (!value) return;
    *value++ = 0;
    if (strcmp(line, "platform") == 0) snprintf(platform_name, TEXT, "%s", value);
    if (strcmp(line, "vendor") == 0) snprintf(vendor, TEXT, "%s", value);
    if (strcmp(line, "version") == 0) snprintf(version, TEXT, "%s", value);
    if (strcmp(line, "fault") == 0) snprintf(fault, TEXT, "%s", value);
    if (strcmp(line, "log") == 0) snprintf(build_log, TEXT, "%s", value);
    if (strcmp(line, "free_kib") == 0) free_kib = strtoul(value, NULL, 10);
    if (strcmp(line, "type") == 0 && strcmp(value, "cpu") == 0) type = CL_DEVICE_TYPE_CPU;
    if (strcmp(line, "device") == 0 && n_devices < MAX_DEVICES) snprintf(names[n_devices++], TEXT, "%s", value);
    if (strcmp(line, "pci") == 0 && n_addresses < MAX_DEVICES) snprintf(addresses[n_addresses++], TEXT, "%s", value);
}

__attribute__((constructor)) static void read_conf(void) {
    Dl_info self;
    char path[1024], line[512];
    if (!dladdr((void *)&platform, &self)) return;
    snprintf(path, sizeof path, "%s.conf", self.dli_fname);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) read_line(line);
    if (file) fclose(file);
    for (int i = 0; i < MAX_DEVICES; ++i) devices[i] = (object){.dispatch = &table, .index = i};
}

static cl_int return_bytes(const void *value, size_t bytes, size_t size, void *out, size_t *needed) {
    if (needed) *needed = bytes;
    if (!out) return CL_SUCCESS;
    if (size < bytes) return CL_INVALID_VALUE;
    memcpy(out, value, bytes);
    return CL_SUCCESS;
}

static cl_int return_text(const char *text, size_t size, void *out, size_t *needed) {
    return return_bytes(text, strlen(text) + 1, size, out, needed);
}

static object *create(cl_int *code) {
    object *made = calloc(1, sizeof *made);
    made->dispatch = &table;
    if (code) *code = CL_SUCCESS;
    return made;
}

static void hang(void) {
    for (;;) pause();
}

/* --- platform and devices --- */

static CL_API_ENTRY cl_int CL_API_CALL get_platform_info(cl_platform_id id, cl_platform_info what, size_t size,
                                                         void *out, size_t *needed) {
    (void)id;
    switch (what) {
    case CL_PLATFORM_NAME:
        return return_text(platform_name, size, out, needed);
    case CL_PLATFORM_VENDOR:
        return return_text(vendor, size, out, needed);
    case CL_PLATFORM_VERSION:
        return return_text(version, size, out, needed);
    case CL_PLATFORM_PROFILE:
        return return_text("FULL_PROFILE", size, out, needed);
    case CL_PLATFORM_EXTENSIONS:
        return return_text("cl_khr_icd", size, out, needed);
    case CL_PLATFORM_ICD_SUFFIX_KHR:
        return return_text("STUB", size, out, needed);
    default:
        return CL_INVALID_VALUE;
    }
}

static int vendors_are_a_folder(void) {
    struct stat facts;
    const char *path = getenv("OCL_ICD_VENDORS");
    return !path || (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode));
}

static CL_API_ENTRY cl_int CL_API_CALL get_platforms(cl_uint size, cl_platform_id *ids, cl_uint *count) {
    if (is_fault("hang-list")) hang();
    if (is_fault("crash-list") || (is_fault("crash-in-folder") && vendors_are_a_folder())) raise(SIGSEGV);
    if (is_fault("exit-list")) _exit(0);
    if (is_fault("no-platform")) return CL_PLATFORM_NOT_FOUND_KHR;
    if (count) *count = 1;
    if (ids && size > 0) ids[0] = (cl_platform_id)&platform;
    return CL_SUCCESS;
}

static CL_API_ENTRY cl_int CL_API_CALL get_devices(cl_platform_id id, cl_device_type wanted, cl_uint size,
                                                   cl_device_id *ids, cl_uint *count) {
    (void)id;
    if (n_devices == 0 || !(wanted & type)) return CL_DEVICE_NOT_FOUND;
    if (count) *count = (cl_uint)n_devices;
    for (cl_uint i = 0; ids && i < size && i < (cl_uint)n_devices; ++i) ids[i] = (cl_device_id)&devices[i];
    return CL_SUCCESS;
}

static cl_int return_pci(int index, size_t size, void *out, size_t *needed) {
    cl_uint place[4];
    if (index >= n_addresses ||
        sscanf(addresses[index], "%x:%x:%x.%x", &place[0], &place[1], &place[2], &place[3]) != 4)
        return CL_INVALID_VALUE;
    return return_bytes(place, sizeof place, size, out, needed);
}

static CL_API_ENTRY cl_int CL_API_CALL get_device_info(cl_device_id id, cl_device_info what, size_t size, void *out,
                                                       size_t *needed) {
    const int index = ((object *)id)->index;
    const cl_ulong memory = 8ull << 30, local = 48 << 10;
    const cl_uint one = 1, units = 16, align = 1024, zero = 0;
    const size_t group = 256, free_memory[2] = {free_kib, free_kib};
    switch (what) {
    case CL_DEVICE_TYPE:
        return return_bytes(&type, sizeof type, size, out, needed);
    case CL_DEVICE_NAME:
        return return_text(names[index], size, out, needed);
    case CL_DEVICE_VENDOR:
        return return_text(vendor, size, out, needed);
    case CL_DEVICE_VERSION:
        return return_text(version, size, out, needed);
    case CL_DRIVER_VERSION:
        return return_text("1.0", size, out, needed);
    case CL_DEVICE_EXTENSIONS:
        return return_text(n_addresses ? "cl_khr_pci_bus_info" : "", size, out, needed);
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_ENDIAN_LITTLE:
        return return_bytes(&one, sizeof one, size, out, needed);
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
        return return_bytes(&zero, sizeof zero, size, out, needed);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        return return_bytes(&memory, sizeof memory, size, out, needed);
    case CL_DEVICE_LOCAL_MEM_SIZE:
        return return_bytes(&local, sizeof local, size, out, needed);
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN:
        return return_bytes(&align, sizeof align, size, out, needed);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        return return_bytes(&group, sizeof group, size, out, needed);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        return return_bytes(&units, sizeof units, size, out, needed);
    case PCI_BUS_INFO_KHR:
        return return_pci(index, size, out, needed);
    case FREE_MEMORY_AMD:
        return free_kib ? return_bytes(free_memory, sizeof free_memory, size, out, needed) : CL_INVALID_VALUE;
    default:
        return CL_INVALID_VALUE;
    }
}

/* --- work --- */

static CL_API_ENTRY cl_context CL_API_CALL
create_context(const cl_context_properties *properties, cl_uint count, const cl_device_id *ids,
               void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user, cl_int *code) {
    (void)properties, (void)count, (void)ids, (void)notify, (void)user;
    if (is_fault("no-context")) {
        if (code) *code = CL_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    return (cl_context)create(code);
}

static CL_API_ENTRY cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id id,
                                                              cl_command_queue_properties properties, cl_int *code) {
    (void)context, (void)id, (void)properties;
    return (cl_command_queue)create(code);
}

static CL_API_ENTRY cl_program CL_API_CALL create_program(cl_context context, cl_uint count, const char **texts,
                                                          const size_t *lengths, cl_int *code) {
    (void)context, (void)lengths;
    object *program = create(code);
    for (cl_uint i = 0; i < count; ++i)
        if (strstr(texts[i], "__kernel void doctor(")) program->index = 1;
    return (cl_program)program;
}

static CL_API_ENTRY cl_int CL_API_CALL build_program(cl_program program, cl_uint count, const cl_device_id *ids,
                                                     const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
                                                     void *user) {
    (void)count, (void)ids, (void)options, (void)notify, (void)user;
    return is_fault("build-fails") || !((object *)program)->index ? CL_BUILD_PROGRAM_FAILURE : CL_SUCCESS;
}

static CL_API_ENTRY cl_int CL_API_CALL get_build_info(cl_program program, cl_device_id id, cl_program_build_info what,
                                                      size_t size, void *out, size_t *needed) {
    (void)program, (void)id;
    return what == CL_PROGRAM_BUILD_LOG ? return_text(build_log, size, out, needed) : CL_INVALID_VALUE;
}

static CL_API_ENTRY cl_kernel CL_API_CALL create_kernel(cl_program program, const char *name, cl_int *code) {
    (void)program, (void)name;
    return (cl_kernel)create(code);
}

static CL_API_ENTRY cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, size_t size, const void *value) {
    if (index > 1 || size != sizeof(cl_mem)) return CL_INVALID_ARG_INDEX;
    memcpy(&((object *)kernel)->arguments[index], value, size);
    return CL_SUCCESS;
}

static CL_API_ENTRY cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host,
                                                     cl_int *code) {
    (void)context;
    object *buffer = create(code);
    buffer->bytes = bytes;
    buffer->values = calloc(1, bytes);
    if (flags & CL_MEM_COPY_HOST_PTR) memcpy(buffer->values, host, bytes);
    return (cl_mem)buffer;
}

static CL_API_ENTRY cl_int CL_API_CALL run_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                                  const size_t *offset, const size_t *items, const size_t *group,
                                                  cl_uint count, const cl_event *list, cl_event *event) {
    const object *in = ((object *)kernel)->arguments[0], *out = ((object *)kernel)->arguments[1];
    (void)queue, (void)dimensions, (void)offset, (void)count, (void)list, (void)event;
    if (is_fault("hang-kernel")) hang();
    if (is_fault("crash-kernel")) raise(SIGSEGV);
    for (size_t i = 0; i < *items; ++i)
        out->values[i] = in->values[i - i % *group + *group - 1 - i % *group] * 3 + (float)i;
    if (is_fault("wrong")) out->values[*items / 2] += 1;
    return CL_SUCCESS;
}

static CL_API_ENTRY cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool wait, size_t offset,
                                                   size_t bytes, void *host, cl_uint count, const cl_event *list,
                                                   cl_event *event) {
    (void)queue, (void)wait, (void)count, (void)list, (void)event;
    memcpy(host, (char *)((object *)buffer)->values + offset, bytes);
    return CL_SUCCESS;
}

static cl_int release(void *made) {
    (void)made;
    return CL_SUCCESS;
}

/* All other functions of the table do nothing: they return CL_SUCCESS, or no object. */
static void *do_nothing(void) {
    return NULL;
}

static void fill_table(void) {
    void **const functions = (void **)&table;
    for (size_t i = 0; i < sizeof table / sizeof *functions; ++i) functions[i] = (void *)do_nothing;
    table.clGetPlatformIDs = get_platforms;
    table.clGetPlatformInfo = get_platform_info;
    table.clGetDeviceIDs = get_devices;
    table.clGetDeviceInfo = get_device_info;
    table.clCreateContext = create_context;
    table.clCreateCommandQueue = create_queue;
    table.clCreateProgramWithSource = create_program;
    table.clBuildProgram = build_program;
    table.clGetProgramBuildInfo = get_build_info;
    table.clCreateKernel = create_kernel;
    table.clSetKernelArg = set_argument;
    table.clCreateBuffer = create_buffer;
    table.clEnqueueNDRangeKernel = run_kernel;
    table.clEnqueueReadBuffer = read_buffer;
    table.clReleaseContext = (__typeof__(table.clReleaseContext))(void *)release;
    table.clReleaseCommandQueue = (__typeof__(table.clReleaseCommandQueue))(void *)release;
    table.clReleaseProgram = (__typeof__(table.clReleaseProgram))(void *)release;
    table.clReleaseKernel = (__typeof__(table.clReleaseKernel))(void *)release;
    table.clReleaseMemObject = (__typeof__(table.clReleaseMemObject))(void *)release;
}

/* --- the entry point that the loader looks up; other exported names would conflict with the loader's --- */

static CL_API_ENTRY cl_int CL_API_CALL icd_get_platforms(cl_uint size, cl_platform_id *ids, cl_uint *count) {
    fill_table();
    return get_platforms(size, ids, count);
}

EXPORT CL_API_ENTRY void *CL_API_CALL clGetExtensionFunctionAddress(const char *name) {
    if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0) return (void *)icd_get_platforms;
    if (strcmp(name, "clGetPlatformInfo") == 0) return (void *)get_platform_info;
    return NULL;
}
