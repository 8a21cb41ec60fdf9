/* The supervisor of a run on several devices: starts all ranks and, after a loss, starts the remaining ones
 * again from the saved step. */
#include "launch.h"
#include "core/clock.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "platform/text.h"

#include <cleat/ranks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double restart_seconds = 600; /* within which the number of restarts is limited */

enum { RESTARTS = 64 };

typedef struct supervisor {
    const launch_request *request;
    launch_mpi mpi;
    double restarts[RESTARTS]; /* times [n_restarts] */
    size_t n_restarts;
} supervisor;

/* The rank that has the number `number` in the next start. */
static launch_rank *find_rank(launch_ranks *ranks, size_t number) {
    for (size_t i = 0; i < ranks->count; ++i)
        if (!ranks->items[i].failure[0] && number-- == 0) return &ranks->items[i];
    return NULL;
}

/* The name of the run's last checkpoint, "ckpt-E005-S000123"; false: it has none, or its folder is on another
 * machine. */
static bool find_checkpoint(const char *folder, char name[64]) {
    char path[CLEAT_PATH + 8];
    snprintf(path, sizeof path, "%s/last", folder);
    FILE *file = fopen(path, "r");
    const bool found = file && fscanf(file, "%63s", name) == 1;
    if (file) fclose(file);
    return found;
}

/* The given shares of the remaining devices; they are measured if none of these has a share. */
static void write_shares(const launch_request *request, launch_words *words) {
    char text[LAUNCH_RANKS * 24] = "";
    const cleat_int_list *given = request->shares;
    size_t used = 0;
    bool some = false;
    if (!given || (size_t)given->count != request->ranks->count) return; /* the ranks report the mistake */
    for (size_t i = 0; i < request->ranks->count; ++i) {
        if (request->ranks->items[i].failure[0]) continue;
        some = some || given->values[i] > 0;
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%lld", used ? "," : "", (long long)given->values[i]);
    }
    if (!some) snprintf(text, sizeof text, "measured");
    fprintf(stderr, "cleat: the remaining devices divide the work by distribute.shares=%s\n", text);
    launch_add(words, "--set");
    launch_add(words, "distribute.shares=%s", text);
}

/* A restart continues in the run's folder; --resume starts from scratch if nothing was saved. A run that
 * begins with the checkpoint of another one begins with it again if it has none yet. */
static void write_words(const supervisor *s, bool again, launch_words *words) {
    const launch_words *given = s->request->words;
    char checkpoint[64];
    const bool resume = again && (!launch_has_option((int)given->count, given->items, "--resume-from") ||
                                  find_checkpoint(s->request->folder, checkpoint));
    for (size_t i = 0; i < given->count; ++i) {
        if (resume && strcmp(given->items[i], "--resume-from") == 0)
            ++i;
        else if (!resume || (strcmp(given->items[i], "--resume") != 0 &&
                             strncmp(given->items[i], "--resume-from=", strlen("--resume-from=")) != 0))
            launch_add(words, "%s", given->items[i]);
    }
    if (resume) launch_add(words, "--resume");
    words->failed = words->failed || given->failed;
    const size_t left = launch_count(s->request->ranks);
    if (left > 1 && left < s->request->ranks->count) write_shares(s->request, words);
    if (left > 1) return;
    const launch_rank *last = find_rank(s->request->ranks, 0);
    if (last && last->selector[0]) {
        launch_add(words, "--device");
        launch_add(words, "%s", last->selector);
    }
}

/* The environment of the ranks. hwloc's plug-ins for drivers are slow, and some crash; MPI does not need them. */
static void set_environment(launch_ranks *ranks) {
    char selectors[LAUNCH_RANKS * (LAUNCH_SELECTOR + 1)] = "";
    size_t used = 0, count = launch_count(ranks);
    for (size_t i = 0; i < count; ++i)
        used += (size_t)snprintf(selectors + used, sizeof selectors - used, "%s%s", i ? ";" : "",
                                 find_rank(ranks, i)->selector);
    setenv(LAUNCH_GUARD_VARIABLE, "1", 1);
    setenv(LAUNCH_SELECTORS_VARIABLE, selectors, 1);
    setenv("HWLOC_COMPONENTS", "-opencl,-rsmi,-nvml,-gl", 0);
}

static cleat_status start(const supervisor *s, bool again, launch_job *job, cleat_error *error) {
    launch_words program = {.count = 0}, command = {.count = 0};
    write_words(s, again, &program);
    set_environment(s->request->ranks);
    launch_command(&s->mpi, s->request->ranks, &program, &command);
    cleat_status status = launch_run(&command, launch_count(s->request->ranks), job, error);
    unsetenv(LAUNCH_GUARD_VARIABLE);
    unsetenv(LAUNCH_SELECTORS_VARIABLE);
    launch_words_free(&command);
    launch_words_free(&program);
    return status;
}

/* A rank that the launcher or the system ended without a report of its guard. */
static bool is_missing(const launch_end *end) {
    return end->started && !end->ended;
}

/* A SIGTERM after all were told to end is not a loss. */
static bool was_killed(const launch_end *end) {
    return is_missing(end) || (end->ended && end->by_signal && !(end->asked && end->number == SIGTERM));
}

/* The first exit code other than "another rank is lost", in the order of the ranks. */
static int find_code(const launch_job *job) {
    int found = 0;
    for (size_t i = 0; i < job->count && !found; ++i) {
        const launch_end *end = &job->ends[i];
        /* It had not made a step when all were told to end. */
        const bool was_stopped = end->asked && end->number == EXIT_INTERRUPTED && job->stops == 0;
        if (end->ended && !end->by_signal && end->number != EXIT_RANK_LOST && !was_stopped) found = end->number;
    }
    return found;
}

/* Whether to start again: a rank was killed, hung or lost its device, and none has an error that would recur. */
static bool is_loss(const launch_job *job) {
    bool lost = job->lost;
    const int code = find_code(job);
    for (size_t i = 0; i < job->count; ++i) lost = lost || is_missing(&job->ends[i]);
    return lost && !job->late && job->stops == 0 && (code == 0 || code == EXIT_DEVICE);
}

static int exit_code_of(const launch_job *job) {
    const int code = find_code(job);
    if (job->late && job->stops == 0) return EXIT_FAILURE;
    if (code) return code;
    for (size_t i = 0; i < job->count; ++i)
        if (!job->ends[i].ended || job->ends[i].by_signal || job->ends[i].number) {
            if (job->stops) return EXIT_INTERRUPTED;
            return launch_have_all(job, false) ? EXIT_RANK_LOST : EXIT_FAILURE;
        }
    return 0;
}

/* "rank 2 (gfx1100, host b)" */
static void print_rank(const launch_ranks *ranks, const launch_rank *rank, const launch_end *end, size_t number) {
    const char *name = rank->facts.name[0] ? rank->facts.name : rank->selector[0] ? rank->selector : "a device";
    const bool hosts = ranks->items[ranks->count - 1].host[0] != 0;
    fprintf(stderr, "cleat: rank %zu (%s%s%s) ", number, name, hosts ? ", host " : "",
            hosts ? (end && end->host[0] ? end->host : rank->host) : "");
}

static void print_losses(const supervisor *s, const launch_job *job) {
    for (size_t i = 0; i < job->count; ++i) {
        const launch_end *end = &job->ends[i];
        const launch_rank *rank = find_rank(s->request->ranks, i);
        if (!was_killed(end) && !(end->ended && !end->by_signal && end->number == EXIT_DEVICE)) continue;
        print_rank(s->request->ranks, rank, end, i);
        if (is_missing(end))
            fprintf(stderr, "ended without reporting a status\n");
        else if (!end->by_signal)
            fprintf(stderr, "has lost its device\n");
        else if (end->asked)
            fprintf(stderr, "did not answer and was ended\n");
        else
            fprintf(stderr, "was killed by signal %d (%s)\n", end->number, strsignal(end->number));
    }
}

static void print_progress(const supervisor *s) {
    char name[64];
    if (!find_checkpoint(s->request->folder, name)) {
        fprintf(stderr, "cleat: no step was saved in %s\n", s->request->folder);
        return;
    }
    const char *step = strstr(name, "-S");
    if (step)
        fprintf(stderr, "cleat: step %lld is saved in %s\n", atoll(step + 2), s->request->folder);
    else
        fprintf(stderr, "cleat: %s is saved in %s\n", name, s->request->folder);
}

/* "rank 1 (Tesla T4, host b)" for each that did not start. */
static void print_late(const supervisor *s, const launch_job *job) {
    for (size_t i = 0; i < job->count; ++i) {
        if (job->ends[i].started) continue;
        print_rank(s->request->ranks, find_rank(s->request->ranks, i), NULL, i);
        fprintf(stderr, "has not started within %g s\n", cleat_ranks_start_seconds());
    }
    fprintf(stderr,
            "cleat: its host, the network to it, or a login that asks for a password may be the cause. `%s --host "
            "HOST,HOST hostname` must print the names of all hosts; if starting takes longer, set "
            "CLEAT_RANKS_START to more seconds\n",
            s->mpi.program);
}

static bool may_restart(supervisor *s) {
    const double now = cleat_seconds();
    size_t recent = 0;
    for (size_t i = 0; i < s->n_restarts; ++i) recent += now - s->restarts[i] < restart_seconds;
    if (recent >= (size_t)s->request->restarts) {
        fprintf(
            stderr,
            "cleat: %zu restarts within 10 minutes (--restarts %d): giving up. The same command with --out %s --resume "
            "continues\n",
            recent, s->request->restarts, s->request->folder);
        return false;
    }
    s->restarts[s->n_restarts++ % RESTARTS] = now;
    if (s->n_restarts > RESTARTS) s->n_restarts = RESTARTS;
    return true;
}

/* Leaves out devices that fail; false if none is left. */
static bool choose_ranks(supervisor *s) {
    launch_ranks *ranks = s->request->ranks;
    launch_ranks *before = malloc(sizeof *before);
    const size_t count = launch_count(ranks);
    cleat_error error = {0};
    if (!before) return false;
    *before = *ranks;
    if (launch_check_devices(&s->mpi, s->request->words->items[0], ranks, &error) != CLEAT_OK)
        fprintf(stderr, "cleat: the devices cannot be checked: %s\n", error.text);
    for (size_t i = 0, number = 0; i < ranks->count; ++i) {
        if (before->items[i].failure[0]) continue;
        if (ranks->items[i].failure[0]) {
            print_rank(ranks, &ranks->items[i], NULL, number);
            fprintf(stderr, "is left out: %s\n", ranks->items[i].failure);
        }
        ++number;
    }
    free(before);
    const size_t left = launch_count(ranks);
    if (left == 0)
        fprintf(stderr, "cleat: no device is left; `cleat doctor` shows why\n");
    else
        fprintf(stderr, "cleat: continuing with %zu of %zu devices\n", left, count);
    return left > 0;
}

/* *lost: whether ranks were lost, which are named. */
static cleat_status start_and_explain(const supervisor *s, bool again, launch_job *job, int *code, bool *lost,
                                      cleat_error *error) {
    cleat_status status = start(s, again, job, error);
    if (status) return status;
    *code = exit_code_of(job);
    *lost = is_loss(job);
    if (job->late)
        print_late(s, job);
    else if (!launch_have_all(job, false) && !job->stops)
        fprintf(stderr, "cleat: %s ended with exit code %d before all ranks had started\n", s->mpi.program,
                job->launcher_code);
    if (*lost) print_losses(s, job);
    return CLEAT_OK;
}

int launch_all(const launch_request *request) {
    supervisor s = {.request = request};
    launch_job *job = malloc(sizeof *job);
    cleat_error error = {0};
    int code = EXIT_FAILURE;
    bool lost = true;
    cleat_status status = job ? launch_find_mpi(&s.mpi, &error) : cleat_fail(&error, CLEAT_ERR_MEMORY, "no memory");
    if (!status) status = cleat_ranks_check(&error);
    for (bool again = false; !status; again = true) {
        status = start_and_explain(&s, again, job, &code, &lost, &error);
        if (status || !lost || !request->folder) break;
        print_progress(&s);
        code = EXIT_RANK_LOST;
        if (!may_restart(&s)) break;
        if (!choose_ranks(&s)) {
            code = EXIT_DEVICE;
            break;
        }
    }
    free(job);
    return status ? cli_finish(status, &error) : code;
}
