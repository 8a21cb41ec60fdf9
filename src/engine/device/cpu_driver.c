/* Registers the CPU driver that some archives of cleat contain with the OpenCL loader. */
#include "device/cpu_driver.h"

#include "cleat/core.h"
#include "core/files.h"
#include "core/own_file.h"
#include "platform/files.h"
#include "platform/processes.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_icd(const char *name) {
    return strcmp(cleat_name_ending(name), ".icd") == 0;
}

static bool driver_is_installed(void) {
    cleat_name_list files = {0};
    if (cleat_listing_read("/etc/OpenCL/vendors", is_icd, &files, NULL)) return false;
    const bool any = files.count > 0;
    cleat_name_list_free(&files);
    return any;
}

static bool find_driver(char driver[PATH_MAX]) {
    char folder[PATH_MAX], path[PATH_MAX + sizeof "/../lib/cleat/cpu_driver"];
    if (!cleat_own_file(folder)) return false;
    *strrchr(folder, '/') = 0;
    snprintf(path, sizeof path, "%s/../lib/cleat/cpu_driver", folder);
    return realpath(path, driver) != NULL;
}

/* PoCL without a folder to write to has no device. */
static void choose_cache(void) {
    const char *temporary = getenv("TMPDIR");
    char path[PATH_MAX];
    cleat_error error = {0};
    if (getenv("POCL_CACHE_DIR")) return;
    if (cleat_user_cache("POCL_CACHE_DIR", "pocl", path, sizeof path) && cleat_folder_make(path, &error) == CLEAT_OK &&
        access(path, W_OK) == 0)
        return;
    /* Kernels are executed, so the folder must belong to this user. */
    snprintf(path, sizeof path, "%s/cleat-pocl-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(path)) return;
    setenv("POCL_CACHE_DIR", path, 0);
    cleat_log(CLEAT_LOG_INFO,
              "PoCL's cache is %s, since the home folder cannot be written; POCL_CACHE_DIR chooses another", path);
}

void cleat_use_own_cpu_driver(void) {
    char driver[PATH_MAX];
    if (getenv("OCL_ICD_VENDORS") || getenv("OPENCL_VENDOR_PATH") || driver_is_installed() || !find_driver(driver))
        return;
    /* PoCL links every kernel with the system's `ld`, libgcc and libc, and ends the process if they are missing. */
    char tool[PATH_MAX];
    if (!cleat_program_file("ld", tool, sizeof tool) || !cleat_program_file("gcc", tool, sizeof tool)) {
        cleat_log(CLEAT_LOG_WARNING,
                  "the CPU driver of this archive is not used: it needs gcc and ld (apt-get install gcc libc6-dev)");
        return;
    }
    choose_cache();
    setenv("OCL_ICD_VENDORS", driver, 0);
}
