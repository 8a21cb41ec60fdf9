/* The OpenCL drivers (ICDs): their files, and the result of loading each one alone in a child process. */
#include "core/child.h"
#include "core/files.h"
#include "device/cpu_driver.h"
#include "device/probe.h"
#include "doctor/doctor.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "platform/system.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cleat_driver_family family_of(const char *library) {
    static const struct {
        const char *word;
        cleat_driver_family family;
    } words[] = {{"nvidia-opencl", DRIVER_NVIDIA},  {"nvopencl", DRIVER_NVIDIA},    {"amdocl", DRIVER_AMD},
                 {"RusticlOpenCL", DRIVER_RUSTICL}, {"MesaOpenCL", DRIVER_CLOVER},  {"igdrcl", DRIVER_INTEL},
                 {"IntelOpenCL", DRIVER_INTEL},     {"intelocl", DRIVER_INTEL_CPU}, {"pocl", DRIVER_POCL}};
    const char *slash = strrchr(library, '/'), *name = slash ? slash + 1 : library;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i)
        if (strstr(name, words[i].word)) return words[i].family;
    return DRIVER_OTHER;
}

void cleat_doctor_quiet_child(void) {
    const struct rlimit no_core = {0, 0};
    if (!CLEAT_FORKS) return;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
    }
    (void)setrlimit(RLIMIT_CORE, &no_core);
    cleat_set_log(NULL, NULL, CLEAT_LOG_ERROR);
}

/* ocl-icd accepts the path of one .icd file or library in OCL_ICD_VENDORS. Khronos' loader accepts folders only,
 * and libraries in OCL_ICD_FILENAMES, which ocl-icd of Debian 12 ignores. */
void cleat_doctor_use_vendors(const char *vendors, const char *library) {
    setenv("OCL_ICD_VENDORS", vendors, 1);
    unsetenv("OPENCL_VENDOR_PATH");
    if (library) setenv("OCL_ICD_FILENAMES", library, 1);
}

typedef enum driver_event { EVENT_LOADED, EVENT_NOT_LOADED, EVENT_PLATFORM, EVENT_REFUSED, EVENT_DONE } driver_event;

typedef struct driver_record {
    driver_event event;
    bool has_entry;
    size_t devices;
    char text[1024];
} driver_record;

/* The receiver of events: the pipe of a child, or the driver's entry in this process. */
typedef struct event_sink {
    int out; /* the pipe; unused if `here` is set */
    cleat_driver *here;
} event_sink;

static void collect_event(void *user, const void *data);

static void send_event(const event_sink *sink, driver_event event, const char *text, size_t devices, bool has_entry) {
    driver_record record = {.event = event, .devices = devices, .has_entry = has_entry};
    snprintf(record.text, sizeof record.text, "%.1000s", text);
    if (sink->here)
        collect_event(sink->here, &record);
    else
        cleat_child_send(sink->out, &record, sizeof record);
}

/* Returns the library if it can be a driver, else NULL. */
static void *load(const cleat_driver *driver, const event_sink *out) {
    struct link_map *map = NULL;
    char path[PATH_MAX] = "";
    void *library = dlopen(driver->library, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        const char *text = dlerror();
        send_event(out, EVENT_NOT_LOADED, text ? text : "dlopen failed", 0, false);
        return NULL;
    }
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || !map || !realpath(map->l_name, path)) path[0] = 0;
    bool has_entry = dlsym(library, "clGetExtensionFunctionAddress") || dlsym(library, "clIcdGetPlatformIDsKHR");
    send_event(out, EVENT_LOADED, path, 0, has_entry);
    if (has_entry) return library;
    dlclose(library);
    return NULL;
}

static void list_platform(cl_platform_id platform, const event_sink *out) {
    enum { MAX_DEVICES = 64 };
    char name[128] = "";
    cl_device_id ids[MAX_DEVICES];
    cl_uint n = 0, usable = 0;
    clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, ids, &n) != CL_SUCCESS) n = 0;
    for (cl_uint i = 0; i < n && i < MAX_DEVICES; ++i) {
        cleat_device_facts facts;
        cleat_error reason = {0};
        if (cleat_read_facts(platform, ids[i], &facts, &reason) == CLEAT_OK)
            ++usable;
        else
            send_event(out, EVENT_REFUSED, reason.text, 0, false);
    }
    send_event(out, EVENT_PLATFORM, name, usable, false);
}

typedef cl_int(CL_API_CALL *list_platforms_fn)(cl_uint count, cl_platform_id *platforms, cl_uint *n);

static void list_all(list_platforms_fn list, const event_sink *out) {
    cl_platform_id platforms[DOCTOR_PLATFORMS];
    cl_uint n = 0;
    if (!list || list(DOCTOR_PLATFORMS, platforms, &n) != CL_SUCCESS) n = 0;
    for (cl_uint i = 0; i < n && i < DOCTOR_PLATFORMS; ++i) list_platform(platforms[i], out);
}

/* The driver's function that lists its own platforms, as the loader finds it (cl_khr_icd). NULL: none. */
static list_platforms_fn find_list_platforms(void *library) {
    typedef void *(CL_API_CALL * find_fn)(const char *name);
    static const char name[] = "clIcdGetPlatformIDsKHR";
    list_platforms_fn list = NULL;
    find_fn find = NULL;
    *(void **)&list = dlsym(library, name);
    *(void **)&find = dlsym(library, "clGetExtensionFunctionAddress");
    if (!list && find) *(void **)&list = find(name);
    return list;
}

static void try_driver(void *user, int out) {
    const cleat_driver *driver = user;
    const event_sink sink = {.out = out};
    cleat_doctor_quiet_child();
    if (CLEAT_FORKS) cleat_doctor_use_vendors(driver->file[0] ? driver->file : driver->library, driver->library);
    void *library = load(driver, &sink);
    if (!library) return;
    /* Where the loader uses all drivers, whatever the environment says, the driver itself is asked. */
    list_all(CLEAT_FORKS ? clGetPlatformIDs : find_list_platforms(library), &sink);
    send_event(&sink, EVENT_DONE, "", 0, false);
}

/* The loader has already loaded every driver that can be loaded, and has queried it in the same way. */
static void look_at_driver(cleat_driver *driver) {
    const event_sink sink = {.here = driver};
    void *library = driver->library[0] ? load(driver, &sink) : NULL;
    if (!library) return;
    list_all(find_list_platforms(library), &sink);
    dlclose(library);
}

static void collect_event(void *user, const void *data) {
    cleat_driver *driver = user;
    const driver_record *record = data;
    switch (record->event) {
    case EVENT_LOADED:
        driver->loads = true;
        driver->has_entry = record->has_entry;
        snprintf(driver->loaded_from, sizeof driver->loaded_from, "%.511s", record->text);
        break;
    case EVENT_NOT_LOADED:
        snprintf(driver->load_error, sizeof driver->load_error, "%.511s", record->text);
        break;
    case EVENT_PLATFORM:
        if (driver->n_platforms < DOCTOR_PLATFORMS)
            snprintf(driver->platforms[driver->n_platforms++], sizeof driver->platforms[0], "%.127s", record->text);
        driver->n_devices += record->devices;
        break;
    case EVENT_REFUSED:
        snprintf(driver->refused, sizeof driver->refused, "%.511s", record->text);
        break;
    case EVENT_DONE:
        break;
    }
}

cleat_child_result cleat_doctor_child_result(const cleat_child_end *end) {
    if (end->timed_out) return CHILD_HUNG;
    return end->text[0] ? CHILD_CRASHED : CHILD_ANSWERED;
}

static void run_driver(cleat_doctor *doctor, cleat_driver *driver) {
    driver_record last = {0};
    cleat_child_end end = {0};
    const cleat_child child = {.body = try_driver,
                               .user = driver,
                               .record_bytes = sizeof last,
                               .seconds = cleat_doctor_patience(doctor),
                               .received = collect_event};
    driver->child = CHILD_NOT_RUN;
    if (doctor->status || !driver->library[0]) return;
    doctor->status = cleat_child_run(&child, &last, &end, &doctor->error);
    if (doctor->status) return;
    driver->child = cleat_doctor_child_result(&end);
    snprintf(driver->end, sizeof driver->end, "%s", end.text);
    /* An exit in the middle of a driver, without a signal, is a crash as well. */
    if (driver->child == CHILD_ANSWERED && last.event != EVENT_DONE && driver->loads && driver->has_entry) {
        driver->child = CHILD_CRASHED;
        snprintf(driver->end, sizeof driver->end, "the driver ended the process");
    }
}

static bool is_icd(const char *name) {
    return strcmp(cleat_name_ending(name), ".icd") == 0;
}

static cleat_driver *add_driver(cleat_doctor *doctor, const char *file, const char *library) {
    if (doctor->n_drivers == DOCTOR_DRIVERS) return NULL;
    cleat_driver *driver = &doctor->drivers[doctor->n_drivers++];
    snprintf(driver->file, sizeof driver->file, "%s", file);
    snprintf(driver->library, sizeof driver->library, "%s", library);
    driver->readable = !file[0] || access(file, R_OK) == 0;
    driver->family = family_of(library[0] ? library : file);
    return driver;
}

static void add_file(cleat_doctor *doctor, const char *file) {
    char line[DOCTOR_PATH] = "";
    cleat_root_line("", file, line, sizeof line);
    add_driver(doctor, file, line);
}

static void add_folder(cleat_doctor *doctor) {
    char path[DOCTOR_PATH + 256];
    cleat_name_list files = {0};
    if (cleat_listing_read(doctor->vendors, is_icd, &files, NULL) != CLEAT_OK) return;
    for (size_t i = 0; i < files.count; ++i) {
        int length = snprintf(path, sizeof path, "%s/%s", doctor->vendors, files.names[i]);
        if (length < DOCTOR_PATH) add_file(doctor, path);
    }
    cleat_name_list_free(&files);
}

/* As the loaders do: OCL_ICD_VENDORS, else OPENCL_VENDOR_PATH (ocl-icd), else /etc/OpenCL/vendors; on Windows the
 * registry alone. */
static void find_vendors(cleat_doctor *doctor) {
    static const char *const variables[] = {"OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"};
    if (doctor->system.windows) {
        snprintf(doctor->vendors, sizeof doctor->vendors, "the registry");
        doctor->vendors_exist = true;
        return;
    }
    cleat_root_path(doctor->root, "/etc/OpenCL/vendors", doctor->vendors);
    for (int i = 0; i < 2 && !doctor->vendors_set_by; ++i) {
        const char *value = getenv(variables[i]);
        if (!value || !value[0]) continue;
        doctor->vendors_set_by = variables[i];
        if (is_icd(value) && !strchr(value, '/')) /* a name in the usual folder */
            snprintf(doctor->vendors, sizeof doctor->vendors, "%.200s/etc/OpenCL/vendors/%.200s", doctor->root, value);
        else
            snprintf(doctor->vendors, sizeof doctor->vendors, "%s", value);
    }
    doctor->vendors_exist = access(doctor->vendors, F_OK) == 0;
}

/* OCL_ICD_VENDORS may also be one .icd file, or the library itself. */
static void add_vendors(cleat_doctor *doctor) {
    const char *path = doctor->vendors;
    if (cleat_folder_exists(path))
        add_folder(doctor);
    else if (doctor->vendors_exist && is_icd(path))
        add_file(doctor, path);
    else if (doctor->vendors_set_by && (doctor->vendors_exist || !strchr(path, '/')))
        add_driver(doctor, "", path);
}

static void add_named_libraries(cleat_doctor *doctor) {
    const char *list = getenv("OCL_ICD_FILENAMES");
    char copy[4 * DOCTOR_PATH], *rest = copy;
    if (!list || !list[0]) return;
    snprintf(copy, sizeof copy, "%s", list);
    cleat_path_from_user(copy);
    for (char *name = strtok_r(copy, CLEAT_PATHS_END, &rest); name; name = strtok_r(NULL, CLEAT_PATHS_END, &rest))
        add_driver(doctor, "", name);
}

static void add_registered(void *user, const char *library) {
    cleat_doctor *doctor = user;
    for (size_t i = 0; i < doctor->n_drivers; ++i)
        if (strcmp(doctor->drivers[i].library, library) == 0) return;
    add_driver(doctor, "", library);
}

static void find_drivers(cleat_doctor *doctor) {
    if (!doctor->root[0]) cleat_use_own_cpu_driver();
    find_vendors(doctor);
    if (!doctor->system.windows) add_vendors(doctor);
    add_named_libraries(doctor);
    if (!doctor->root[0]) cleat_registered_drivers(add_registered, doctor);
}

void cleat_drivers_read(cleat_doctor *doctor) {
    find_drivers(doctor);
    for (size_t i = 0; i < doctor->n_drivers; ++i) run_driver(doctor, &doctor->drivers[i]);
}

void cleat_drivers_look(cleat_doctor *doctor) {
    find_drivers(doctor);
    for (size_t i = 0; i < doctor->n_drivers; ++i) look_at_driver(&doctor->drivers[i]);
}
