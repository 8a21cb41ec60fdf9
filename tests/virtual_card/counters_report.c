/* At process exit: writes the counter table, leaks and faults, and sets the exit code for tests. The table
 * goes to CLEAT_VIRTUAL_CARD_REPORT=FILE, with a row for each kernel and its build options. If the folder
 * FILE.ptx exists, it receives the PTX of row N as N.ptx, from 1. */
#include "counters_report.h"

#include "faults.h"
#include "files.h"
#include "objects.h"

#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = 600 };

typedef struct row {
    struct row *next;
    char *kernel, *options;
    char *ptx; /* NULL: not requested */
    uint32_t work_items;
    ptx_counters counters;
    double seconds;
} row;

#define COLUMN(name)                                                                                                   \
    { #name, offsetof(ptx_counters, name) }
#define COLUMN_OF(name, issued)                                                                                        \
    { name, offsetof(ptx_counters, issued) }

static const struct {
    const char *name;
    size_t offset;
} columns[] = {COLUMN(launches),
               COLUMN(groups),
               COLUMN(instructions),
               COLUMN(lanes),
               COLUMN(fma),
               COLUMN(mma),
               COLUMN(special),
               COLUMN(mma_products),
               COLUMN_OF("floats", issued[PTX_FLOATS]),
               COLUMN_OF("integers", issued[PTX_INTEGERS]),
               COLUMN_OF("moves", issued[PTX_MOVES]),
               COLUMN_OF("compares", issued[PTX_COMPARES]),
               COLUMN_OF("converts", issued[PTX_CONVERTS]),
               COLUMN_OF("memory", issued[PTX_MEMORY]),
               COLUMN_OF("flow", issued[PTX_FLOW]),
               COLUMN(global_loads),
               COLUMN(global_load_sectors),
               COLUMN(global_load_least),
               COLUMN(global_stores),
               COLUMN(global_store_sectors),
               COLUMN(global_store_least),
               COLUMN(shared_loads),
               COLUMN(shared_load_waves),
               COLUMN(shared_load_least),
               COLUMN(shared_stores),
               COLUMN(shared_store_waves),
               COLUMN(shared_store_least),
               COLUMN(async_copies),
               COLUMN(async_copy_sectors),
               COLUMN(matrix_loads),
               COLUMN(matrix_load_waves),
               COLUMN(shared_wide_loads),
               COLUMN(local_accesses),
               COLUMN(barriers),
               COLUMN(branches),
               COLUMN(divergent_branches),
               COLUMN(vectors),
               COLUMN(scalars),
               COLUMN(waits)};

enum { COLUMNS = sizeof columns / sizeof *columns };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static row *rows;

static uint64_t *cell(ptx_counters *counters, size_t column) {
    return (uint64_t *)(void *)((char *)counters + columns[column].offset);
}

static void free_row(row *old) {
    free(old->kernel);
    free(old->options);
    free(old->ptx);
    free(old);
}

/* Returns whether the report has a folder for PTX, and its path. */
static bool ptx_folder(char path[PATH]) {
    const char *report = getenv("CLEAT_VIRTUAL_CARD_REPORT");
    struct stat info;
    if (!report || !report[0] || snprintf(path, PATH, "%s.ptx", report) >= PATH) return false;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* NULL: no memory. */
static row *find_row(const vc_counted *launch) {
    row **at = &rows;
    char folder[PATH];
    while (*at && (strcmp((*at)->kernel, launch->kernel) != 0 || strcmp((*at)->options, launch->options) != 0))
        at = &(*at)->next;
    if (*at) return *at;
    row *added = calloc(1, sizeof *added);
    if (!added) return NULL;
    added->kernel = strdup(launch->kernel);
    added->options = strdup(launch->options);
    if (launch->ptx && ptx_folder(folder)) added->ptx = strdup(launch->ptx);
    if (!added->kernel || !added->options) {
        free_row(added);
        return NULL;
    }
    *at = added;
    return added;
}

void vc_count(const vc_counted *launch, const ptx_counters *counters) {
    ptx_counters added = *counters;
    pthread_mutex_lock(&lock);
    row *found = find_row(launch);
    for (size_t i = 0; found && i < COLUMNS; ++i) *cell(&found->counters, i) += *cell(&added, i);
    if (found) found->seconds += launch->seconds, found->work_items = launch->work_items;
    pthread_mutex_unlock(&lock);
}

static void write_ptx(void) {
    char folder[PATH], path[PATH + 16];
    if (!ptx_folder(folder)) return;
    int number = 0;
    for (const row *at = rows; at; at = at->next) {
        snprintf(path, sizeof path, "%s/%d.ptx", folder, ++number);
        if (at->ptx && !vc_file_write(path, at->ptx)) fprintf(stderr, "virtual card: %s cannot be written\n", path);
    }
}

static void write_table(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) {
        fprintf(stderr, "virtual card: the report %s cannot be written\n", path);
        return;
    }
    fprintf(file, "card\tkernel\twork_items");
    for (size_t i = 0; i < COLUMNS; ++i) fprintf(file, "\t%s", columns[i].name);
    fprintf(file, "\thost_seconds\toptions\n");
    for (row *at = rows; at; at = at->next) {
        fprintf(file, "%s\t%s\t%u", vc_device.card->key, at->kernel, at->work_items);
        for (size_t i = 0; i < COLUMNS; ++i) fprintf(file, "\t%" PRIu64, *cell(&at->counters, i));
        fprintf(file, "\t%.3f\t%s\n", at->seconds, at->options);
    }
    fclose(file);
}

static void free_rows(void) {
    while (rows) {
        row *next = rows->next;
        free_row(rows);
        rows = next;
    }
}

/* CLEAT_VIRTUAL_CARD_MAY_LEAK=program,context: kinds that op tests keep until they exit. */
static void report_leaks(void) {
    const char *allowed = getenv("CLEAT_VIRTUAL_CARD_MAY_LEAK");
    for (vc_kind kind = VC_CONTEXT; kind < VC_KINDS; ++kind)
        if (vc_alive(kind) > 0 && (!allowed || !strstr(allowed, vc_kind_name(kind))))
            vc_fault("not released at exit: %d of kind %s", vc_alive(kind), vc_kind_name(kind));
}

/* The last function of this library to run. In strict mode a process with faults fails, whatever it returned. */
__attribute__((destructor)) static void report(void) {
    const char *path = getenv("CLEAT_VIRTUAL_CARD_REPORT"), *strict = getenv("CLEAT_VIRTUAL_CARD_STRICT");
    if (path && path[0] && rows) write_table(path), write_ptx();
    free_rows();
    report_leaks();
    if (vc_faults() == 0) return;
    fprintf(stderr, "virtual card: %u faults on %s\n", vc_faults(), vc_device.card->name);
    if (!strict || strcmp(strict, "1") != 0) return;
    fflush(NULL);
    _exit(VC_EXIT_OF_FAULTS);
}
