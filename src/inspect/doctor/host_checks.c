/* Checks of the host: control groups, memory, folders, and versions that a bug report needs. */
#include "core/cgroup.h"
#include "core/cpus.h"
#include "core/files.h"
#include "doctor/doctor.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "platform/system.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (INT64_C(1) << 20)
static const int64_t low_memory = 1024 * MIB, low_cache_space = 64 * MIB, low_run_space = 256 * MIB;

static void check_system(cleat_doctor *doctor) {
    const cleat_system *system = &doctor->system;
    cleat_doctor_ok(doctor, "system", "%s, %s %s%s%s%s%s%s", system->distribution_name,
                    system->windows ? "build" : "Linux", system->kernel, system->container[0] ? ", container: " : "",
                    system->container, system->wsl ? ", WSL" : "", system->kaggle ? ", Kaggle" : "",
                    system->colab ? ", Colab" : "");
}

static void check_cpus(cleat_doctor *doctor) {
    double quota = 0;
    char source[32] = "";
    int allowed = cleat_cpus();
    if (!cleat_cgroup_cpus(doctor->root, &quota, source, sizeof source))
        cleat_doctor_ok(doctor, "cpus", "%d, no quota", allowed);
    else if (quota < allowed)
        cleat_doctor_fault(doctor, "cpu-quota", NULL, NULL, "a quota of %.3g CPUs, while programs see %d CPUs (%s)",
                           quota, allowed, source);
    else
        cleat_doctor_ok(doctor, "cpus", "%d, quota %.3g (%s)", allowed, quota, source);
}

static void check_memory(cleat_doctor *doctor) {
    char source[64] = "", text[CLEAT_BYTES_TEXT], limit_text[CLEAT_BYTES_TEXT];
    int64_t limit = 0, used = 0, available = cleat_host_memory_free(doctor->root, source, sizeof source);
    if (cleat_cgroup_memory(doctor->root, &limit, &used, source, sizeof source) && limit - used < low_memory)
        cleat_doctor_fault(doctor, "memory-limit", NULL, NULL, "%s available of a limit of %s (%s)",
                           cleat_bytes_text(limit > used ? limit - used : 0, text), cleat_bytes_text(limit, limit_text),
                           source);
    else if (available <= 0)
        cleat_doctor_skip(doctor, "host-memory", "unknown: /proc/meminfo has no MemAvailable");
    else if (available < low_memory)
        cleat_doctor_fault(doctor, "host-memory-low", NULL, NULL, "%s free (%s)", cleat_bytes_text(available, text),
                           source);
    else
        cleat_doctor_ok(doctor, "host-memory", "%s free (%s)", cleat_bytes_text(available, text), source);
}

static void check_locked_memory(cleat_doctor *doctor) {
    struct rlimit limit;
    char text[CLEAT_BYTES_TEXT] = "unlimited";
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
    if (limit.rlim_cur != RLIM_INFINITY) cleat_bytes_text((int64_t)limit.rlim_cur, text);
    cleat_doctor_ok(doctor, "locked-memory", "limit %s", text);
}

static void check_shm(cleat_doctor *doctor) {
    char path[DOCTOR_PATH], text[CLEAT_BYTES_TEXT];
    cleat_root_path(doctor->root, "/dev/shm", path);
    if (!path[0]) return;
    if (access(path, W_OK) != 0)
        cleat_doctor_fault(doctor, "shm-missing", NULL, NULL, "/dev/shm: %s", strerror(errno));
    else
        cleat_doctor_ok(doctor, "shm", "%s free in /dev/shm", cleat_bytes_text(cleat_folder_space(path), text));
}

/* Whether the mount that holds `path` has an option, from /proc/self/mountinfo: "36 35 98:0 / /mnt rw,noexec ..." */
static bool mount_has(const char *root, const char *path, const char *option) {
    char list[DOCTOR_PATH], line[1024], point[DOCTOR_PATH], options[256];
    size_t longest = 0;
    bool has = false;
    cleat_root_path(root, "/proc/self/mountinfo", list);
    FILE *file = fopen(list, "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%*s %*s %*s %*s %511s %255s", point, options) != 2) continue;
        size_t length = strcmp(point, "/") == 0 ? 0 : strlen(point);
        if (strncmp(path, point, length) != 0 || (path[length] != '/' && path[length] != 0) || length < longest)
            continue;
        longest = length;
        has = strstr(options, option) != NULL;
    }
    if (file) fclose(file);
    return has;
}

static bool can_write(const char *folder, char *reason, size_t size) {
    char path[DOCTOR_PATH + 32];
    cleat_error error = {0};
    snprintf(path, sizeof path, "%s/.doctor-%d", folder, (int)getpid());
    if (cleat_file_write(path, "doctor\n", 7, &error) != CLEAT_OK) {
        snprintf(reason, size, "%.390s", error.text);
        return false;
    }
    unlink(path);
    return true;
}

static void check_cache(cleat_doctor *doctor) {
    char folder[DOCTOR_PATH] = "", reason[400] = "", text[CLEAT_BYTES_TEXT];
    cleat_error error = {0};
    if (cleat_cache_folder(folder, sizeof folder, &error) != CLEAT_OK)
        cleat_doctor_fault(doctor, "cache-unwritable", NULL, NULL, "%.500s", error.text);
    else if (cleat_folder_space(folder) < low_cache_space)
        cleat_doctor_fault(doctor, "cache-full", NULL, folder, "%s: %s free", folder,
                           cleat_bytes_text(cleat_folder_space(folder), text));
    else if (!can_write(folder, reason, sizeof reason))
        cleat_doctor_fault(doctor, "cache-unwritable", NULL, NULL, "%s", reason);
    else
        cleat_doctor_ok(doctor, "cache-folder", "%s, %s free", folder,
                        cleat_bytes_text(cleat_folder_space(folder), text));
}

static void check_pocl_cache(cleat_doctor *doctor) {
    char path[DOCTOR_PATH], existing[DOCTOR_PATH];
    bool pocl = false;
    for (size_t i = 0; i < doctor->n_drivers; ++i) pocl = pocl || doctor->drivers[i].family == DRIVER_POCL;
    if (!pocl || !cleat_user_cache("POCL_CACHE_DIR", "pocl", path, sizeof path)) return;
    cleat_folder_existing(path, existing, sizeof existing);
    if (access(existing, W_OK | X_OK) != 0)
        cleat_doctor_fault(doctor, "pocl-cache-unwritable", NULL, NULL, "%s: %s", path, strerror(errno));
    else if (mount_has(doctor->root, path, "noexec"))
        cleat_doctor_fault(doctor, "cache-noexec", NULL, NULL, "%s is on a file system mounted noexec", path);
    else
        cleat_doctor_ok(doctor, "pocl-cache", "%s", path);
}

static void check_run_folder(cleat_doctor *doctor) {
    const char *folder = doctor->request.run_folder;
    char found[DOCTOR_PATH], text[CLEAT_BYTES_TEXT];
    cleat_folder_existing(folder, found, sizeof found);
    int64_t space = cleat_folder_space(found);
    if (access(found, W_OK | X_OK) != 0)
        cleat_doctor_fault(doctor, "run-folder-unwritable", NULL, NULL, "%s: %s: %s", folder, found, strerror(errno));
    else if (space < low_run_space)
        cleat_doctor_fault(doctor, "run-folder-full", NULL, found, "%s: %s free", folder,
                           cleat_bytes_text(space, text));
    else
        cleat_doctor_ok(doctor, "run-folder", "%s, %s free", folder, cleat_bytes_text(space, text));
}

/* Adds the file name of a loaded library, which ends in its version: "libclblast.so.1.5.3". */
static int add_library(struct dl_phdr_info *info, size_t size, void *user) {
    static const char *const wanted[] = {"libOpenCL.", "libclblast.", "libhwloc."};
    char path[PATH_MAX];
    cleat_string *text = user;
    (void)size;
    for (int i = 0; i < 3; ++i) {
        if (!strstr(info->dlpi_name, wanted[i]) || !realpath(info->dlpi_name, path)) continue;
        const char *slash = strrchr(path, '/');
        cleat_string_add(text, "%s%s", text->size ? ", " : "", slash ? slash + 1 : path);
    }
    return 0;
}

static void check_versions(cleat_doctor *doctor) {
    cleat_string text = {0};
    dl_iterate_phdr(add_library, &text);
    cleat_doctor_ok(doctor, "versions", "cleat %s, %s", cleat_version(), text.data ? text.data : "no shared libraries");
    cleat_string_free(&text);
}

void cleat_check_host(cleat_doctor *doctor) {
    cleat_doctor_section(doctor, "host", "host");
    check_system(doctor);
    check_cpus(doctor);
    check_memory(doctor);
    check_locked_memory(doctor);
    check_shm(doctor);
    check_cache(doctor);
    check_pocl_cache(doctor);
    check_run_folder(doctor);
    cleat_check_mpi(doctor);
    check_versions(doctor);
}
