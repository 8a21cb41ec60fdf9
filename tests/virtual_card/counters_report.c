/* At the end of the process: the table of counters, leaks, faults, and the exit code for tests.
 * CLEAT_VIRTUAL_CARD_REPORT=FILE gets the table, a row for each kernel and its build options. */
#include "counters_report.h"

#include "faults.h"
#include "objects.h"

#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_OF_FAULTS = 86 };

typedef struct row {
    struct row *next;
    char *kernel, *options;
    ptx_counters counters;
    double seconds;
} row;

#define COLUMN(name)                                                                                                   \
    { #name, offsetof(ptx_counters, name) }

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
               COLUMN(local_accesses),
               COLUMN(barriers),
               COLUMN(branches),
               COLUMN(divergent_branches)};

enum { COLUMNS = sizeof columns / sizeof *columns };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static row *rows;

static uint64_t *cell(ptx_counters *counters, size_t column) {
    return (uint64_t *)(void *)((char *)counters + columns[column].offset);
}

/* NULL: no memory. */
static row *find_row(const char *kernel, const char *options) {
    row **at = &rows;
    while (*at && (strcmp((*at)->kernel, kernel) != 0 || strcmp((*at)->options, options) != 0)) at = &(*at)->next;
    if (*at) return *at;
    row *added = calloc(1, sizeof *added);
    if (!added) return NULL;
    added->kernel = strdup(kernel);
    added->options = strdup(options);
    if (!added->kernel || !added->options) {
        free(added->kernel);
        free(added->options);
        free(added);
        return NULL;
    }
    *at = added;
    return added;
}

void vc_count(const char *kernel, const char *options, const ptx_counters *counters, double seconds) {
    ptx_counters added = *counters;
    pthread_mutex_lock(&lock);
    row *found = find_row(kernel, options);
    for (size_t i = 0; found && i < COLUMNS; ++i) *cell(&found->counters, i) += *cell(&added, i);
    if (found) found->seconds += seconds;
    pthread_mutex_unlock(&lock);
}

static void write_table(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) {
        fprintf(stderr, "virtual card: the report %s cannot be written\n", path);
        return;
    }
    fprintf(file, "card\tkernel");
    for (size_t i = 0; i < COLUMNS; ++i) fprintf(file, "\t%s", columns[i].name);
    fprintf(file, "\thost_seconds\toptions\n");
    for (row *at = rows; at; at = at->next) {
        fprintf(file, "%s\t%s", vc_device.card->key, at->kernel);
        for (size_t i = 0; i < COLUMNS; ++i) fprintf(file, "\t%" PRIu64, *cell(&at->counters, i));
        fprintf(file, "\t%.3f\t%s\n", at->seconds, at->options);
    }
    fclose(file);
}

static void free_rows(void) {
    while (rows) {
        row *next = rows->next;
        free(rows->kernel);
        free(rows->options);
        free(rows);
        rows = next;
    }
}

/* CLEAT_VIRTUAL_CARD_MAY_LEAK=program,context: op tests keep these until they exit. */
static void report_leaks(void) {
    const char *allowed = getenv("CLEAT_VIRTUAL_CARD_MAY_LEAK");
    for (vc_kind kind = VC_CONTEXT; kind < VC_KINDS; ++kind)
        if (vc_alive(kind) > 0 && (!allowed || !strstr(allowed, vc_kind_name(kind))))
            vc_fault("not released at the end: %d of kind %s", vc_alive(kind), vc_kind_name(kind));
}

/* The last of this library that runs. In strict mode a process with faults fails, whatever it returned. */
__attribute__((destructor)) static void report(void) {
    const char *path = getenv("CLEAT_VIRTUAL_CARD_REPORT"), *strict = getenv("CLEAT_VIRTUAL_CARD_STRICT");
    if (path && path[0] && rows) write_table(path);
    free_rows();
    report_leaks();
    if (vc_faults() == 0) return;
    fprintf(stderr, "virtual card: %u faults on %s\n", vc_faults(), vc_device.card->name);
    if (!strict || strcmp(strict, "1") != 0) return;
    fflush(NULL);
    _exit(EXIT_OF_FAULTS);
}
