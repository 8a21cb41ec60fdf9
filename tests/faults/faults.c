/* A library for LD_PRELOAD that makes the n-th call of a function fail (tests/campaign.sh faults).
 *
 *   CLEAT_FAULT=NAME:N:HOW     the N-th call of NAME fails (N from 1); with "+" after N, also all later ones. HOW: ENOSPC, EIO,
 *                              EMFILE, EINTR, or `short` (half of the bytes); of OpenCL a code (-5: out of resources, -6: out of
 *                              host memory)
 *   CLEAT_FAULT_FOLDER=PATH    only files below this folder count
 *   CLEAT_FAULT_REPORT=FILE    at the end: a line `NAME COUNT` for each called function, and `fault COUNT` for failed calls
 * OpenCL calls of other libraries count as the program's; allocations (malloc, calloc, realloc) and threads
 * (pthread_create) count only in the program's own code. Calls that release resources never fail. */
#pragma GCC visibility push(default) /* replaces functions of other libraries even if cleat hides its own */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FUNCTIONS = 96 };

static struct {
    const char *name;
    atomic_long calls;
} functions[FUNCTIONS];
static atomic_int n_functions;
static atomic_long faults;

/* Counts a call of the function, whose index is cached in *slot. Returns whether this call must fail. */
static int fails(const char *name, atomic_int *slot) {
    const char *wanted = getenv("CLEAT_FAULT");
    if (atomic_load(slot) < 0) {
        int none = -1;
        const int made = atomic_fetch_add(&n_functions, 1);
        if (made < FUNCTIONS) {
            functions[made].name = name;
            atomic_compare_exchange_strong(slot, &none, made);
        }
    }
    const int at = atomic_load(slot);
    if (at < 0) return 0;
    const long call = atomic_fetch_add(&functions[at].calls, 1) + 1;
    const size_t size = strlen(name);
    if (!wanted || strncmp(wanted, name, size) != 0 || wanted[size] != ':') return 0;
    char *end;
    const long n = strtol(wanted + size + 1, &end, 10);
    if (*end == '+' ? call < n : call != n) return 0;
    atomic_fetch_add(&faults, 1);
    return 1;
}

static const char *how(void) {
    const char *wanted = getenv("CLEAT_FAULT"), *last = wanted ? strrchr(wanted, ':') : NULL;
    return last ? last + 1 : "";
}

static int error_number(void) {
    static const struct {
        const char *name;
        int number;
    } known[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO}, {"EMFILE", EMFILE}, {"EINTR", EINTR}, {"EACCES", EACCES}};
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
        if (strcmp(known[i].name, how()) == 0) return known[i].number;
    return EIO;
}

__attribute__((destructor)) static void report(void) {
    const char *path = getenv("CLEAT_FAULT_REPORT");
    FILE *file = path ? fopen(path, "a") : NULL;
    for (int i = 0; file && i < atomic_load(&n_functions) && i < FUNCTIONS; ++i)
        fprintf(file, "%s %ld\n", functions[i].name, atomic_load(&functions[i].calls));
    if (file && atomic_load(&faults)) fprintf(file, "fault %ld\n", atomic_load(&faults));
    if (file) fclose(file);
}

/* --- files ---------------------------------------------------------------------------------------------------- */

static int is_below(const char *path) {
    const char *folder = getenv("CLEAT_FAULT_FOLDER");
    char here[4096];
    if (!folder) return 0;
    if (*path != '/' && getcwd(here, sizeof here)) return strncmp(here, folder, strlen(folder)) == 0;
    return strncmp(path, folder, strlen(folder)) == 0;
}

static int is_file_below(int file) {
    char link[64], path[4096];
    const int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t size = readlink(link, path, sizeof path - 1);
    errno = before;
    if (size < 0) return 0;
    path[size] = 0;
    return is_below(path);
}

/* The function of the next library, with the type of the replacement. */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define FAIL_IF(condition, name)                                                                                       \
    do {                                                                                                               \
        static atomic_int slot = -1;                                                                                   \
        if ((condition) && fails(name, &slot)) {                                                                       \
            errno = error_number();                                                                                    \
            return -1;                                                                                                 \
        }                                                                                                              \
    } while (0)

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...) {                                                                       \
        va_list list;                                                                                                  \
        va_start(list, flags);                                                                                         \
        const mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;                                                \
        va_end(list);                                                                                                  \
        FAIL_IF(is_below(path), "open");                                                                               \
        return NEXT(name)(path, flags, mode);                                                                          \
    }
OPEN(open)
OPEN(open64)

ssize_t write(int file, const void *bytes, size_t size) {
    static atomic_int slot = -1;
    if (is_file_below(file) && fails("write", &slot)) {
        if (strcmp(how(), "short") == 0 && size > 1) return NEXT(write)(file, bytes, size / 2);
        errno = error_number();
        return -1;
    }
    return NEXT(write)(file, bytes, size);
}

ssize_t read(int file, void *bytes, size_t size) {
    static atomic_int slot = -1;
    if (is_file_below(file) && fails("read", &slot)) {
        if (strcmp(how(), "short") == 0 && size > 1) return NEXT(read)(file, bytes, size / 2);
        errno = error_number();
        return -1;
    }
    return NEXT(read)(file, bytes, size);
}

#define PREAD(name)                                                                                                    \
    ssize_t name(int file, void *bytes, size_t size, __typeof__(((struct stat *)0)->st_size) at) {                     \
        FAIL_IF(is_file_below(file), "pread");                                                                         \
        return NEXT(name)(file, bytes, size, at);                                                                      \
    }
PREAD(pread)
PREAD(pread64)

int fsync(int file) {
    FAIL_IF(is_file_below(file), "fsync");
    return NEXT(fsync)(file);
}

int ftruncate(int file, off_t size) {
    FAIL_IF(is_file_below(file), "ftruncate");
    return NEXT(ftruncate)(file, size);
}

int rename(const char *from, const char *to) {
    FAIL_IF(is_below(from), "rename");
    return NEXT(rename)(from, to);
}

int mkdir(const char *path, mode_t mode) {
    FAIL_IF(is_below(path), "mkdir");
    return NEXT(mkdir)(path, mode);
}

int unlink(const char *path) {
    FAIL_IF(is_below(path), "unlink");
    return NEXT(unlink)(path);
}

int unlinkat(int folder, const char *path, int flags) {
    FAIL_IF(is_file_below(folder), "unlinkat");
    return NEXT(unlinkat)(folder, path, flags);
}

#define FAIL_NULL_IF(condition, name)                                                                                  \
    do {                                                                                                               \
        static atomic_int slot = -1;                                                                                   \
        if ((condition) && fails(name, &slot)) {                                                                       \
            errno = error_number();                                                                                    \
            return NULL;                                                                                               \
        }                                                                                                              \
    } while (0)

FILE *fopen(const char *path, const char *mode) {
    FAIL_NULL_IF(is_below(path), "fopen");
    return NEXT(fopen)(path, mode);
}

DIR *opendir(const char *path) {
    FAIL_NULL_IF(is_below(path), "opendir");
    return NEXT(opendir)(path);
}

int rmdir(const char *path) {
    FAIL_IF(is_below(path), "rmdir");
    return NEXT(rmdir)(path);
}

int stat(const char *path, struct stat *about) {
    FAIL_IF(is_below(path), "stat");
    return NEXT(stat)(path, about);
}

int lstat(const char *path, struct stat *about) {
    FAIL_IF(is_below(path), "lstat");
    return NEXT(lstat)(path, about);
}

int fstat(int file, struct stat *about) {
    FAIL_IF(is_file_below(file), "fstat");
    return NEXT(fstat)(file, about);
}

int flock(int file, int how) {
    FAIL_IF(is_file_below(file), "flock");
    return NEXT(flock)(file, how);
}

char *realpath(const char *path, char *resolved) {
    FAIL_NULL_IF(is_below(path), "realpath");
    return NEXT(realpath)(path, resolved);
}

/* Closes the file and reports that data were not written. */
int close(int file) {
    static atomic_int slot = -1;
    const int failed = is_file_below(file) && fails("close", &slot), code = NEXT(close)(file);
    if (!failed) return code;
    errno = error_number();
    return -1;
}

struct dirent *readdir(DIR *folder) {
    FAIL_NULL_IF(is_file_below(dirfd(folder)), "readdir");
    return NEXT(readdir)(folder);
}

size_t fread(void *bytes, size_t size, size_t count, FILE *file) {
    static atomic_int slot = -1;
    if (is_file_below(fileno(file)) && fails("fread", &slot)) {
        errno = error_number();
        file->_flags |= 0x20; /* glibc's _IO_ERR_SEEN, which ferror reads */
        return 0;
    }
    return NEXT(fread)(bytes, size, count, file);
}

/* --- allocations and threads ---------------------------------------------------------------------------------- */

static atomic_uintptr_t text_begin, text_end; /* of the program */

static int find_text(struct dl_phdr_info *info, size_t size, void *user) {
    (void)size, (void)user;
    for (int i = 0; i < info->dlpi_phnum; ++i)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            atomic_store(&text_end, begin + info->dlpi_phdr[i].p_memsz);
            atomic_store(&text_begin, begin);
        }
    return 1; /* the program is first in the list */
}

__attribute__((constructor)) static void find_program(void) {
    dl_iterate_phdr(find_text, NULL);
}

#define IS_OURS                                                                                                        \
    ((uintptr_t)__builtin_return_address(0) >= atomic_load(&text_begin) &&                                             \
     (uintptr_t)__builtin_return_address(0) < atomic_load(&text_end))

/* glibc's own names: dlsym allocates. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size) {
    static atomic_int slot = -1;
    if (IS_OURS && fails("malloc", &slot)) return NULL;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    static atomic_int slot = -1;
    if (IS_OURS && fails("calloc", &slot)) return NULL;
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    static atomic_int slot = -1;
    if (IS_OURS && fails("realloc", &slot)) return NULL;
    return __libc_realloc(old, size);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *user) {
    static atomic_int slot = -1;
    if (IS_OURS && fails("pthread_create", &slot)) return EAGAIN;
    return NEXT(pthread_create)(thread, attributes, run, user);
}

/* --- OpenCL --------------------------------------------------------------------------------------------------- */

#define CODE(name, parameters, arguments)                                                                              \
    cl_int name parameters {                                                                                           \
        static atomic_int slot = -1;                                                                                   \
        if (fails(#name, &slot)) return (cl_int)strtol(how(), NULL, 10);                                               \
        return NEXT(name) arguments;                                                                                   \
    }
#define OBJECT(type, name, parameters, arguments)                                                                      \
    type name parameters {                                                                                             \
        static atomic_int slot = -1;                                                                                   \
        if (fails(#name, &slot)) {                                                                                     \
            if (code) *code = (cl_int)strtol(how(), NULL, 10);                                                         \
            return NULL;                                                                                               \
        }                                                                                                              \
        return NEXT(name) arguments;                                                                                   \
    }
typedef void(CL_CALLBACK *text_callback)(const char *, const void *, size_t, void *);
typedef void(CL_CALLBACK *program_callback)(cl_program, void *);
#define WAITS cl_uint n, const cl_event *list, cl_event *event

CODE(clGetPlatformIDs, (cl_uint max, cl_platform_id *ids, cl_uint *count), (max, ids, count))
CODE(clGetPlatformInfo, (cl_platform_id of, cl_platform_info what, size_t size, void *value, size_t *used),
     (of, what, size, value, used))
CODE(clGetDeviceIDs, (cl_platform_id of, cl_device_type type, cl_uint max, cl_device_id *ids, cl_uint *count),
     (of, type, max, ids, count))
CODE(clGetDeviceInfo, (cl_device_id of, cl_device_info what, size_t size, void *value, size_t *used),
     (of, what, size, value, used))
OBJECT(cl_context, clCreateContext,
       (const cl_context_properties *properties, cl_uint count, const cl_device_id *devices, text_callback say,
        void *user, cl_int *code),
       (properties, count, devices, say, user, code))
OBJECT(cl_command_queue, clCreateCommandQueue,
       (cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int *code),
       (context, device, properties, code))
OBJECT(cl_mem, clCreateBuffer, (cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *code),
       (context, flags, size, host, code))
OBJECT(cl_mem, clCreateSubBuffer,
       (cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *info, cl_int *code),
       (buffer, flags, type, info, code))
OBJECT(cl_program, clCreateProgramWithSource,
       (cl_context context, cl_uint count, const char **texts, const size_t *sizes, cl_int *code),
       (context, count, texts, sizes, code))
OBJECT(cl_program, clCreateProgramWithBinary,
       (cl_context context, cl_uint count, const cl_device_id *devices, const size_t *sizes,
        const unsigned char **binaries, cl_int *status, cl_int *code),
       (context, count, devices, sizes, binaries, status, code))
CODE(clBuildProgram,
     (cl_program program, cl_uint count, const cl_device_id *devices, const char *options, program_callback done,
      void *user),
     (program, count, devices, options, done, user))
CODE(clGetProgramInfo, (cl_program of, cl_program_info what, size_t size, void *value, size_t *used),
     (of, what, size, value, used))
CODE(clGetProgramBuildInfo,
     (cl_program of, cl_device_id device, cl_program_build_info what, size_t size, void *value, size_t *used),
     (of, device, what, size, value, used))
OBJECT(cl_kernel, clCreateKernel, (cl_program program, const char *name, cl_int *code), (program, name, code))
CODE(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t size, const void *value), (kernel, index, size, value))
CODE(clGetKernelWorkGroupInfo,
     (cl_kernel of, cl_device_id device, cl_kernel_work_group_info what, size_t size, void *value, size_t *used),
     (of, device, what, size, value, used))
CODE(clEnqueueNDRangeKernel,
     (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset, const size_t *global,
      const size_t *local, WAITS),
     (queue, kernel, dimensions, offset, global, local, n, list, event))
CODE(clEnqueueReadBuffer,
     (cl_command_queue queue, cl_mem buffer, cl_bool wait, size_t offset, size_t size, void *to, WAITS),
     (queue, buffer, wait, offset, size, to, n, list, event))
CODE(clEnqueueWriteBuffer,
     (cl_command_queue queue, cl_mem buffer, cl_bool wait, size_t offset, size_t size, const void *from, WAITS),
     (queue, buffer, wait, offset, size, from, n, list, event))
CODE(clEnqueueFillBuffer,
     (cl_command_queue queue, cl_mem buffer, const void *pattern, size_t width, size_t offset, size_t size, WAITS),
     (queue, buffer, pattern, width, offset, size, n, list, event))
CODE(clEnqueueCopyBuffer, (cl_command_queue queue, cl_mem from, cl_mem to, size_t at, size_t there, size_t size, WAITS),
     (queue, from, to, at, there, size, n, list, event))
OBJECT(void *, clEnqueueMapBuffer,
       (cl_command_queue queue, cl_mem buffer, cl_bool wait, cl_map_flags flags, size_t offset, size_t size, WAITS,
        cl_int *code),
       (queue, buffer, wait, flags, offset, size, n, list, event, code))
CODE(clEnqueueUnmapMemObject, (cl_command_queue queue, cl_mem buffer, void *mapped, WAITS),
     (queue, buffer, mapped, n, list, event))
CODE(clEnqueueMarkerWithWaitList, (cl_command_queue queue, WAITS), (queue, n, list, event))
CODE(clFlush, (cl_command_queue queue), (queue))
CODE(clFinish, (cl_command_queue queue), (queue))
CODE(clWaitForEvents, (cl_uint n, const cl_event *list), (n, list))
CODE(clGetEventInfo, (cl_event of, cl_event_info what, size_t size, void *value, size_t *used),
     (of, what, size, value, used))
CODE(clGetEventProfilingInfo, (cl_event of, cl_profiling_info what, size_t size, void *value, size_t *used),
     (of, what, size, value, used))
CODE(clRetainEvent, (cl_event event), (event))
