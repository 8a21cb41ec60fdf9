/* Starts the helpers, follows their progress, and remembers what has been compiled. */
#include "exec/compile_help.h"

#include "cleat/compile.h"
#include "core/clock.h"
#include "core/cpus.h"
#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"
#include "exec/compile_jobs.h"
#include "platform/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FORMAT = 1,
    HASH = 33,
    PATH = 1024,
    MAX_HELPERS = 8,      /* each needs about 100 MB for LLVM */
    JOBS_OF_HELPER = 3,   /* fewer are compiled before another process has begun */
    FEWEST_JOBS = 6,      /* with fewer it does not pay */
    DEFAULT_PATIENCE = 60 /* seconds; a program of eight parts takes three, and twenty times that on a busy machine */
};

struct cleat_compile_help {
    const cleat_compile_helpers *helpers;
    cleat_job_list *list;
    int file;
    int32_t *numbers;  /* [programs of the exec] their numbers in the list; -1: none of its kernels is in it */
    char record[PATH]; /* the file that remembers; "": there is none */
    pthread_mutex_t lock;
    /* Under `lock`: */
    bool over;
    uint32_t done;   /* jobs that were done when last looked at */
    double progress; /* the time at which their number changed */
    double started;
};

/* --- whether it pays ------------------------------------------------------------------------------------------ */

/* Another driver compiles when programs are built, which the threads of this process do side by side; and
 * PoCL's cache may be turned off. */
static bool may_help(const cleat_device *device) {
    const char *cache = getenv("POCL_KERNEL_CACHE");
    return device->helpers && device->facts.vendor == CLEAT_VENDOR_POCL && device->facts.kind == CLEAT_DEVICE_CPU &&
           cleat_cpus() > 1 && !(cache && strcmp(cache, "0") == 0);
}

/* The name of the record depends on the texts of all programs, the kernels and their sizes, the driver and
 * its cache. */
static cleat_status find_record(const cleat_exec *exec, cleat_compile_help *help, cleat_error *error) {
    const cleat_device_facts *facts = &exec->device->facts;
    const char *cache = getenv("POCL_CACHE_DIR"), *home = getenv("XDG_CACHE_HOME");
    cleat_job_list *list = help->list;
    cleat_string text = {0};
    char hash[HASH];
    cleat_string_add(&text, "compiled %d\n%s\n%s\n%s\n%s\n%s\n", (int)FORMAT, facts->platform, facts->name,
                     facts->driver, cache ? cache : "", home ? home : "");
    cleat_status status = CLEAT_OK;
    for (uint32_t p = 0; p < list->program_count && !status; ++p) {
        const cleat_job_program *program = &cleat_job_programs(list)[p];
        char *source = NULL;
        status = cleat_kernel_source_of(program->file, program->source ? (const char *)list + program->source : NULL,
                                        &source, error);
        if (status) break;
        cleat_string_add(&text, "%s\n%s\n", source, program->options);
        cleat_free(source);
    }
    for (uint32_t j = 0; j < list->job_count; ++j) {
        const cleat_job *job = &cleat_jobs(list)[j];
        cleat_string_add(&text, "%u %s", job->program, job->kernel);
        for (int d = 0; d < job->dims; ++d)
            cleat_string_add(&text, " %llu %d", (unsigned long long)job->local[d], job->global[d] != job->local[d]);
        cleat_string_add(&text, "\n");
    }
    if (!status && text.failed) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the name of a record");
    if (!status) cleat_hash_text(text.data, text.size, hash);
    cleat_string_free(&text);
    return status ? status : cleat_cache_path("", hash, ".compiled", help->record, sizeof help->record, error);
}

static void save_record(const cleat_compile_help *help, double seconds) {
    char text[96];
    cleat_error error = {0};
    snprintf(text, sizeof text, "%u kernels in %.2f s\n", help->list->job_count, seconds);
    if (cleat_file_write(help->record, text, strlen(text), &error))
        cleat_log(CLEAT_LOG_DEBUG, "compiled kernels are not remembered: %s", error.text);
}

/* --- progress ------------------------------------------------------------------------------------------------- */

static uint32_t count_done(cleat_job_list *list, bool *all_well) {
    uint32_t done = 0;
    *all_well = true;
    for (uint32_t j = 0; j < list->job_count; ++j) {
        const int state = atomic_load(&cleat_jobs(list)[j].state);
        done += state >= CLEAT_JOB_DONE;
        *all_well &= state == CLEAT_JOB_DONE;
    }
    return done;
}

static void end(cleat_compile_help *help, const char *why) {
    bool all_well;
    const uint32_t done = count_done(help->list, &all_well);
    const double seconds = cleat_seconds() - help->started;
    help->helpers->stop(help->helpers->user);
    help->over = true;
    cleat_log(CLEAT_LOG_DEBUG, "%u of %u kernels compiled by helpers in %.2f s%s%s", done, help->list->job_count,
              seconds, *why ? "; " : "", why);
    if (all_well) save_record(help, seconds);
}

static void look(cleat_compile_help *help) {
    const cleat_compile_helpers *helpers = help->helpers;
    const double now = cleat_seconds(), patience = helpers->patience > 0 ? helpers->patience : DEFAULT_PATIENCE;
    bool all_well;
    /* before the jobs are counted: a helper that ends after its last job has not failed */
    const int running = helpers->running(helpers->user);
    const uint32_t done = count_done(help->list, &all_well);
    if (done != help->done) help->progress = now;
    help->done = done;
    if (done == help->list->job_count)
        end(help, "");
    else if (running <= 0)
        end(help, "they ended before");
    else if (now - help->progress > patience)
        end(help, "they did not go on");
}

static bool is_program_done(cleat_job_list *list, int32_t number) {
    if (number < 0) return false; /* is needed later: not before all others */
    const cleat_job_program *program = &cleat_job_programs(list)[number];
    for (uint32_t j = program->first; j < program->first + program->count; ++j)
        if (atomic_load(&cleat_jobs(list)[j].state) < CLEAT_JOB_DONE) return false;
    return true;
}

bool cleat_compile_help_is_done(void *user, size_t program) {
    cleat_compile_help *help = user;
    pthread_mutex_lock(&help->lock);
    if (!help->over) look(help);
    const bool done = help->over || is_program_done(help->list, help->numbers[program]);
    pthread_mutex_unlock(&help->lock);
    return done;
}

/* --- life ----------------------------------------------------------------------------------------------------- */

static cleat_status start(const cleat_exec *exec, cleat_compile_help *help, cleat_error *error) {
    cleat_status status = cleat_job_list_create(exec, &help->list, &help->file, &help->numbers, error);
    if (!status && help->list->job_count >= FEWEST_JOBS) status = find_record(exec, help, error);
    if (status) return status;
    if (help->list->job_count < FEWEST_JOBS || cleat_file_exists(help->record)) return CLEAT_OK;
    int count = cleat_cpus() < MAX_HELPERS ? cleat_cpus() : MAX_HELPERS;
    if (count > (int)help->list->job_count / JOBS_OF_HELPER) count = (int)help->list->job_count / JOBS_OF_HELPER;
    help->started = help->progress = cleat_seconds();
    help->over = false;
    const int started = help->helpers->start(help->helpers->user, help->file, count);
    if (started <= 0) help->over = true;
    cleat_log(CLEAT_LOG_DEBUG, "%d processes compile %u kernels of %u programs; %zu programs in all", started,
              help->list->job_count, help->list->program_count, exec->program_count);
    return CLEAT_OK;
}

void cleat_compile_help_start(const cleat_exec *exec, cleat_compile_help **help) {
    cleat_error error = {0};
    *help = NULL;
    if (!may_help(exec->device)) return;
    cleat_compile_help *made = cleat_alloc(1, sizeof *made);
    if (!made) return;
    *made = (cleat_compile_help){.helpers = exec->device->helpers, .file = -1, .over = true};
    pthread_mutex_init(&made->lock, NULL);
    if (start(exec, made, &error)) cleat_log(CLEAT_LOG_DEBUG, "no process helps to compile: %s", error.text);
    if (!made->over) {
        *help = made;
        return;
    }
    cleat_compile_help_destroy(made);
}

void cleat_compile_help_destroy(cleat_compile_help *help) {
    if (!help) return;
    if (!help->over) end(help, "they are no longer needed");
    if (help->list) munmap(help->list, (size_t)help->list->bytes);
    if (help->file >= 0) close(help->file);
    cleat_free(help->numbers);
    pthread_mutex_destroy(&help->lock);
    cleat_free(help);
}

void cleat_device_compile_with(cleat_device *device, const cleat_compile_helpers *helpers) {
    device->helpers = helpers;
}
