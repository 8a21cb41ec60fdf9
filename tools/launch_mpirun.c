/* The launcher of MPI: finding it, and its command line with the options that every run needs. */
#include "launch.h"
#include "platform/files.h"
#include "platform/processes.h"

#include <cleat/doctor.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void launch_add(launch_words *words, const char *format, ...) {
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    const int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0 || words->count + 1 >= LAUNCH_WORDS) {
        if (length >= 0) free(text);
        words->failed = true;
        return;
    }
    words->items[words->count++] = text;
    words->items[words->count] = NULL;
}

void launch_words_free(launch_words *words) {
    for (size_t i = 0; i < words->count; ++i) free(words->items[i]);
    *words = (launch_words){.count = 0};
}

/* The kind of a launcher by its version text; false: unknown. */
static bool find_kind(const char *text, launch_kind *kind) {
    const char *open = strstr(text, "(Open MPI) ");
    if (open) {
        *kind = atoi(open + strlen("(Open MPI) ")) < 5 ? LAUNCH_OPEN_MPI_4 : LAUNCH_OPEN_MPI_5;
        return true;
    }
    if (strstr(text, "OpenRTE")) {
        *kind = LAUNCH_OPEN_MPI_4;
    } else if (strstr(text, "PRRTE") || strstr(text, "prterun")) {
        *kind = LAUNCH_OPEN_MPI_5;
    } else if (strstr(text, "HYDRA") || strstr(text, "Intel(R) MPI")) {
        *kind = LAUNCH_HYDRA;
    } else {
        return false;
    }
    return true;
}

/* Reads the version text of the program; false if it cannot be run. */
static bool read_version(const char *program, char *text, size_t size) {
    char word[CLEAT_PATH], command[CLEAT_PATH + 64];
    if (!cleat_shell_word(program, word, sizeof word)) return false;
    snprintf(command, sizeof command, "%s --version 2>/dev/null </dev/null", word);
    FILE *pipe = popen(command, "r");
    if (!pipe) return false;
    const size_t length = fread(text, 1, size - 1, pipe);
    text[length] = 0;
    return pclose(pipe) == 0 && length > 0;
}

static bool try_launcher(const char *program, launch_mpi *mpi, bool *found) {
    char text[2048];
    if (!read_version(program, text, sizeof text)) return false;
    *found = true;
    if (!find_kind(text, &mpi->kind)) return false;
    snprintf(mpi->program, sizeof mpi->program, "%s", program);
    snprintf(mpi->version, sizeof mpi->version, "%.*s", (int)strcspn(text, "\n"), text);
    return true;
}

static cleat_status fail_missing(const char *named, bool found, cleat_error *error) {
    char commands[CLEAT_CHECK_COMMANDS * (CLEAT_CHECK_COMMAND + 8)] = "";
    cleat_doctor_check check;
    size_t used = 0;
    if (found)
        return cleat_fail(
            error, CLEAT_ERR_NOT_SUPPORTED,
            "%s: this launcher of MPI is not supported; Open MPI 4 and 5, and MPICH's mpiexec are. Name one "
            "of them by CLEAT_MPIRUN, or start the ranks yourself: mpirun -n N cleat train ...",
            named ? named : "mpirun");
    if (named && *named)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "CLEAT_MPIRUN=%s: this program cannot be run", named);
    cleat_doctor_describe("mpi-launcher-missing", &check);
    for (size_t i = 0; i < check.n_commands && used < sizeof commands; ++i)
        used += (size_t)snprintf(commands + used, sizeof commands - used, "\n> %s", check.commands[i]);
    return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "several devices need MPI. %s%s", check.cause, commands);
}

cleat_status launch_find_mpi(launch_mpi *mpi, cleat_error *error) {
    static const char *const programs[] = {"mpirun", "mpiexec"};
    const char *named = getenv("CLEAT_MPIRUN");
    bool found = false;
    *mpi = (launch_mpi){.program = ""};
    if (named && *named) return try_launcher(named, mpi, &found) ? CLEAT_OK : fail_missing(named, found, error);
    for (size_t i = 0; i < 2; ++i)
        if (try_launcher(programs[i], mpi, &found)) return CLEAT_OK;
    return fail_missing(NULL, found, error);
}

/* What other hosts receive: variables that steer cleat and OpenCL drivers. */
static const char *const forwarded[] = {
    "CLEAT_", "POCL_", "OCL_", "OPENCL_", "RUSTICL_", "MESA_",           "HWLOC_",  "CUDA_",    "NVIDIA_",
    "ROCR_",  "HSA_",  "HIP_", "GPU_",    "ZE_",      "LD_LIBRARY_PATH", "COLUMNS", "NO_COLOR", "XDG_CACHE_HOME"};
extern char **environ;

static bool is_forwarded(const char *variable) {
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; ++i)
        if (strncmp(variable, forwarded[i], strlen(forwarded[i])) == 0) return true;
    return false;
}

/* Writes "a:2,b:1" to `text`; "" if all ranks are on this machine. */
static void join_hosts(const launch_ranks *ranks, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0, next; i < ranks->count; i = next) {
        const char *host = ranks->items[i].host;
        int count = 0;
        for (next = i; next < ranks->count && strcmp(ranks->items[next].host, host) == 0; ++next)
            count += !ranks->items[next].failure[0];
        if (*host && count && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s:%d", used ? "," : "", host, count);
    }
}

/* Without a binding, because one or two ranks would otherwise be bound to a core each; more ranks than slots
 * are allowed, since a slot is a core; and bridges of containers and virtual machines have the same address
 * on every host. */
static void add_open_mpi(const launch_mpi *mpi, const char *hosts, launch_words *words) {
    launch_add(words, "--bind-to");
    launch_add(words, "none");
    launch_add(words, "--map-by");
    launch_add(words, "slot:OVERSUBSCRIBE");
    if (geteuid() == 0) launch_add(words, "--allow-run-as-root");
    launch_add(words, "--mca");
    launch_add(words, "btl_tcp_if_exclude");
    launch_add(words, "%sdocker0,virbr0", *hosts ? "lo," : "");
    if (mpi->kind == LAUNCH_OPEN_MPI_4) {
        launch_add(words, "--mca");
        launch_add(words, "oob_tcp_if_exclude");
        launch_add(words, "%sdocker0,virbr0", *hosts ? "lo," : "");
    }
    if (!*hosts) return;
    launch_add(words, "--host");
    launch_add(words, "%s", hosts);
    for (char **variable = environ; *variable; ++variable)
        if (is_forwarded(*variable)) {
            launch_add(words, "-x");
            launch_add(words, "%.*s", (int)strcspn(*variable, "="), *variable);
        }
}

/* Hydra passes the whole environment on. */
static void add_hydra(const char *hosts, launch_words *words) {
    launch_add(words, "-bind-to");
    launch_add(words, "none");
    if (!*hosts) return;
    launch_add(words, "-hosts");
    launch_add(words, "%s", hosts);
}

void launch_command(const launch_mpi *mpi, const launch_ranks *ranks, const launch_words *program,
                    launch_words *words) {
    char hosts[LAUNCH_RANKS * (LAUNCH_HOST + 4)];
    join_hosts(ranks, hosts, sizeof hosts);
    launch_add(words, "%s", mpi->program);
    if (mpi->kind == LAUNCH_HYDRA)
        add_hydra(hosts, words);
    else
        add_open_mpi(mpi, hosts, words);
    launch_add(words, "-n");
    launch_add(words, "%zu", launch_count(ranks));
    for (size_t i = 0; i < program->count; ++i) launch_add(words, "%s", program->items[i]);
    words->failed = words->failed || program->failed;
}
