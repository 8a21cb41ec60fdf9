/* Checks of MPI, which runs on several devices need: its launcher, its library, and cleat's plug-in. A
 * machine without MPI is not faulty. */
#include "core/child.h"
#include "core/own_file.h"
#include "doctor/doctor.h"
#include "platform/files.h"
#include "platform/system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct mpi_record {
    char version[256];    /* of the library; "": none can be loaded */
    char plugin[512];     /* its file; "": none */
    char load_error[512]; /* why the plug-in does not load; "": it does */
} mpi_record;

static void find_version(void *library, char version[256]) {
    char whole[8192] = ""; /* MPI_MAX_LIBRARY_VERSION_STRING of MPICH */
    int length = 0;
    int (*query)(char *, int *) = NULL;
    void *address = library ? dlsym(library, "MPI_Get_library_version") : NULL;
    memcpy(&query, &address, sizeof query);
    if (!query || query(whole, &length) != 0) return;
    snprintf(version, 256, "%.255s", whole);
    version[strcspn(version, "\n")] = 0;
}

/* The version is that of the MPI to which the plug-in is linked, or else of one that programs find. */
static void query_mpi(void *user, int out) {
    static const char *const libraries[] = {"libmpi.so.40", "libmpi.so.12", "libmpi.so"};
    char path[PATH_MAX];
    mpi_record record = {.version = ""};
    (void)user;
    cleat_doctor_quiet_child();
    if (cleat_plugin_file("libcleat-mpi.so", "CLEAT_RANKS_LIBRARY", path)) {
        snprintf(record.plugin, sizeof record.plugin, "%.511s", path);
        void *plugin = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (!plugin) snprintf(record.load_error, sizeof record.load_error, "%.511s", dlerror());
        find_version(plugin, record.version);
    }
    for (int i = 0; i < 3 && !record.version[0]; ++i)
        find_version(dlopen(libraries[i], RTLD_LAZY | RTLD_LOCAL), record.version);
    cleat_child_send(out, &record, sizeof record);
}

/* As `cleat train --devices` looks for it. */
static bool find_launcher(char *path, size_t size) {
    const char *named = getenv("CLEAT_MPIRUN");
    if (!named || !*named) return cleat_program_file("mpirun", path, size) || cleat_program_file("mpiexec", path, size);
    snprintf(path, size, "%s", named);
    return strchr(named, '/') ? access(named, X_OK) == 0 : cleat_program_file(named, path, size);
}

static void check_record(cleat_doctor *doctor, const mpi_record *record, const char *failure) {
    char launcher[DOCTOR_PATH];
    const bool found = find_launcher(launcher, sizeof launcher);
    if (record->load_error[0])
        cleat_doctor_fault(doctor, "mpi-plugin-broken", NULL, record->plugin, "%s", record->load_error);
    else if (failure[0])
        cleat_doctor_skip(doctor, "mpi", "%s", failure);
    else if (!found)
        cleat_doctor_skip(doctor, "mpi", "%s%sno mpirun in PATH; needed only for runs on several devices",
                          record->version, record->version[0] ? "; " : "");
    else if (!record->plugin[0])
        cleat_doctor_skip(doctor, "mpi",
                          "%s, but cleat was built without MPI: no libcleat-mpi.so; needed only for runs on several "
                          "devices",
                          launcher);
    else
        cleat_doctor_ok(doctor, "mpi", "%s, launcher %s, plug-in %s", record->version, launcher, record->plugin);
}

void cleat_check_mpi(cleat_doctor *doctor) {
    mpi_record record = {.version = ""};
    cleat_child_end end = {0};
    const cleat_child child = {.body = query_mpi, .record_bytes = sizeof record, .seconds = 2};
    if (doctor->status) return;
    if (doctor->system.windows) {
        cleat_doctor_skip(doctor, "mpi", "runs on several devices need MPI, which cleat does not use on Windows");
        return;
    }
    doctor->status = cleat_child_run(&child, &record, &end, &doctor->error);
    if (!doctor->status) check_record(doctor, &record, end.text);
}
