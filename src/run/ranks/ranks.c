/* Ranks: the plug-in, the thread that calls it, and the state that ranks share.
 *
 * MPI is called by a dedicated thread, so the run's thread can wait with a timeout: a lost rank leaves the
 * others in a collective operation until their processes end. */
#include "ranks/ranks.h"

#include "core/clock.h"
#include "core/memory.h"
#include "core/own_file.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "platform/system.h"
#include "platform/threads.h"
#include "ranks/cpus.h"
#include "ranks/transport.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seconds between the end of a rank's process and the loss of the rank: its last message may still arrive. */
static const double GRACE = 0.5;
/* Seconds between two heartbeats of an idle rank. */
static const double PAUSE = 0.25;
/* Seconds: default silence after which a rank is lost; default limit for the start of MPI
 * (CLEAT_RANKS_START). */
static const double SILENCE = 60, START = 120;
/* Fraction of the silence that suffices after a stop request. */
static const double AFTER_STOP_PART = 0.25;
/* Seconds between two checks of the other ranks while waiting. */
static const double LOOK_EVERY = 0.25;
/* A longer gap between two checks means that this process was stopped: it does not count as silence of the
 * others. */
static const double LONGEST_LOOK = 1;

enum { HOST = 80, QUEUE = CLEAT_RANKS_PENDING, CHUNK = 1 << 22, DEVICE_TEXT = 256 };

/* Sent by every rank to the others when it joins. */
typedef struct member {
    char host[HOST];
    char machine[HOST]; /* the same for processes that see each other's process IDs */
    int64_t pid;
    cleat_cpu_set cpus;
} member;

typedef enum job_kind { JOB_OPEN, JOB_SUM, JOB_SUM_ROWS, JOB_LARGEST, JOB_BROADCAST, JOB_GATHER, JOB_CLOSE } job_kind;

typedef struct rank_job {
    job_kind kind;
    void *data, *all;
    size_t count;
    double *squares;
    const cleat_row_sum *table;
} rank_job;

struct cleat_ranks {
    void *plugin;
    cleat_transport_open_fn open_transport;
    cleat_transport transport;
    char why[256];    /* why the plug-in refused */
    member *members;  /* [ranks] */
    void *verdicts;   /* [ranks] scratch memory of spread_error */
    bool has_failed;  /* a rank has failed, and all ranks agreed on it */
    int first_failed; /* that rank */
    char device[DEVICE_TEXT];
    cleat_ranks_timeouts timeouts;
    bool broken; /* set by the run's thread */

    pthread_t thread;
    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed;
    rank_job queue[QUEUE];
    uint64_t posted, done;
    uint64_t agreed;     /* jobs that all ranks had posted at the last heartbeat */
    uint64_t heartbeats; /* of all ranks so far; a finished part of a job counts as one */
    bool watched;        /* ranks without a job send heartbeats */
    bool failed;         /* the transport reported a failure */
    double busy;
};

/* --- the thread of the transport ------------------------------------------------------------------------------ */

static double sum_of_squares(const float *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; ++i) sum += (double)values[i] * (double)values[i];
    return sum;
}

static void record_heartbeat(cleat_ranks *ranks) {
    pthread_mutex_lock(&ranks->lock);
    ++ranks->heartbeats;
    pthread_mutex_unlock(&ranks->lock);
}

/* In chunks, because MPI counts in int, and each finished chunk counts as a heartbeat. */
static bool sum_in_chunks(void *user, float *values, size_t count) {
    cleat_ranks *ranks = user;
    for (size_t first = 0; first < count; first += CHUNK) {
        const size_t left = count - first;
        if (!ranks->transport.sum(values + first, left < CHUNK ? left : CHUNK)) return false;
        record_heartbeat(ranks);
    }
    return true;
}

static bool gather(void *user, const void *bytes, size_t size, void *all) {
    cleat_ranks *ranks = user;
    const bool good = ranks->transport.gather(bytes, size, all);
    record_heartbeat(ranks);
    return good;
}

static bool sum_rows(cleat_ranks *ranks, const rank_job *job) {
    const cleat_row_exchange exchange = {.user = ranks,
                                         .rank = ranks->transport.rank,
                                         .count = ranks->transport.count,
                                         .sum = sum_in_chunks,
                                         .gather = gather};
    return cleat_row_sum_run(job->table, &exchange, job->squares);
}

static bool broadcast_in_chunks(cleat_ranks *ranks, const rank_job *job) {
    for (size_t first = 0; first < job->count; first += CHUNK) {
        const size_t left = job->count - first;
        if (!ranks->transport.broadcast((char *)job->data + first, left < CHUNK ? left : CHUNK)) return false;
        record_heartbeat(ranks);
    }
    return true;
}

static bool execute(cleat_ranks *ranks, const rank_job *job) {
    const cleat_transport *transport = &ranks->transport;
    switch (job->kind) {
    case JOB_OPEN:
        return ranks->open_transport(CLEAT_TRANSPORT_VERSION, &ranks->transport, ranks->why, sizeof ranks->why);
    case JOB_SUM:
        if (!sum_in_chunks(ranks, job->data, job->count)) return false;
        if (job->squares) *job->squares = sum_of_squares(job->data, job->count);
        return true;
    case JOB_SUM_ROWS:
        return sum_rows(ranks, job);
    case JOB_LARGEST:
        return transport->largest(job->data, job->count);
    case JOB_BROADCAST:
        return broadcast_in_chunks(ranks, job);
    case JOB_GATHER:
        return transport->gather(job->data, job->count, job->all);
    case JOB_CLOSE:
        if (transport->close) transport->close();
        return true;
    }
    return false;
}

/* Waits for a change, at most this long; false: timeout. The lock is held. */
static bool wait_changed(cleat_ranks *ranks, double seconds) {
    return cleat_condition_wait(&ranks->changed, &ranks->lock, seconds);
}

/* A heartbeat: ranks exchange how many jobs they have posted, and the minimum is what all of them can
 * begin. The lock is held. */
static void exchange_heartbeats(cleat_ranks *ranks) {
    int64_t fewest = -(int64_t)ranks->posted;
    pthread_mutex_unlock(&ranks->lock);
    const bool good = ranks->transport.largest(&fewest, 1);
    pthread_mutex_lock(&ranks->lock);
    ++ranks->heartbeats;
    ranks->agreed = (uint64_t)-fewest;
    ranks->failed = ranks->failed || !good;
}

/* Waits until the next job may begin. Watched ranks begin a job only when all have posted it, because a
 * rank in a blocking operation sends no heartbeats; until then, a rank with a job exchanges heartbeats.
 * The lock is held. */
static void await_job(cleat_ranks *ranks) {
    for (;;) {
        const bool is_watched = ranks->watched && !ranks->failed, has_job = ranks->done < ranks->posted;
        if (has_job && (!is_watched || ranks->done < ranks->agreed)) return;
        if (!is_watched)
            pthread_cond_wait(&ranks->changed, &ranks->lock);
        else if (has_job || !wait_changed(ranks, PAUSE))
            exchange_heartbeats(ranks);
    }
}

static void *run_thread(void *user) {
    cleat_ranks *ranks = user;
    bool ends = false;
    cleat_cpu_take_short_turns();
    pthread_mutex_lock(&ranks->lock);
    while (!ends) {
        await_job(ranks);
        const rank_job next = ranks->queue[ranks->done % QUEUE];
        const bool skipped = ranks->failed && next.kind != JOB_CLOSE;
        ends = next.kind == JOB_CLOSE;
        pthread_mutex_unlock(&ranks->lock);
        const double started = cleat_seconds();
        const bool good = !skipped && execute(ranks, &next);
        const double seconds = cleat_seconds() - started;
        pthread_mutex_lock(&ranks->lock);
        ranks->busy += seconds;
        ranks->failed = ranks->failed || !good;
        /* An agreement also decides, equally on all ranks, whether they are watched until the next one. */
        if (good && next.kind == JOB_LARGEST) ranks->watched = ((const int64_t *)next.data)[next.count - 1] > 0;
        ++ranks->heartbeats;
        ++ranks->done;
        pthread_cond_broadcast(&ranks->changed);
    }
    pthread_mutex_unlock(&ranks->lock);
    return NULL;
}

static uint64_t post(cleat_ranks *ranks, const rank_job *job) {
    pthread_mutex_lock(&ranks->lock);
    while (ranks->posted - ranks->done == QUEUE) pthread_cond_wait(&ranks->changed, &ranks->lock);
    ranks->queue[ranks->posted % QUEUE] = *job;
    const uint64_t ticket = ++ranks->posted;
    pthread_cond_broadcast(&ranks->changed);
    pthread_mutex_unlock(&ranks->lock);
    return ticket;
}

/* --- waiting -------------------------------------------------------------------------------------------------- */

static cleat_status fail_lost(cleat_ranks *ranks, const char *how, cleat_error *error) {
    ranks->broken = true;
    return cleat_fail(error, CLEAT_ERR_RANK_LOST, "rank %d (%s): %s", ranks->transport.rank,
                      ranks->members ? ranks->members[ranks->transport.rank].host : "?", how);
}

static bool is_neighbour(const cleat_ranks *ranks, int rank) {
    return strcmp(ranks->members[rank].machine, ranks->members[ranks->transport.rank].machine) == 0;
}

/* The state of a process as the kernel writes it: 'R', 'S', 'D', 'T' (stopped), 'Z' ...; 'X': no such
 * process. */
static char process_state(int64_t pid) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    FILE *file = fopen(path, "r");
    if (!file) return 'X';
    const bool read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    const char *state = read ? strrchr(line, ')') : NULL; /* "PID (NAME) STATE ..." */
    return state && state[1] == ' ' ? state[2] : 'X';
}

/* A wait for other ranks. Times are of cleat_seconds; INFINITY: not yet. */
typedef struct wait_times {
    double started, stop_seen, dead_seen, stopped_seen;
    double looked;       /* last */
    double silent;       /* seconds since the last heartbeat */
    uint64_t heartbeats; /* as in cleat_ranks */
} wait_times;

static double first_time(bool is, double before, double now) {
    return !is ? INFINITY : before < now ? before : now;
}

/* Whether the ranks are watched and one is silent. */
static bool is_silent(const cleat_ranks *ranks, wait_times *times, double now) {
    const bool is_stopping = times->stop_seen < INFINITY;
    times->silent += fmin(now - times->looked, LONGEST_LOOK);
    if (times->heartbeats != ranks->heartbeats) times->silent = 0;
    times->heartbeats = ranks->heartbeats;
    times->looked = now;
    return ranks->watched && times->silent > ranks->timeouts.silence * (is_stopping ? AFTER_STOP_PART : 1);
}

/* Checks heartbeats, the stop request and the processes of this machine. False: the wait is over. The lock
 * is held. */
static bool may_wait(const cleat_ranks *ranks, wait_times *times) {
    const cleat_ranks_timeouts *timeouts = &ranks->timeouts;
    const double now = cleat_seconds();
    bool is_dead = false, is_stopped = false;
    for (int r = 0; ranks->members && r < ranks->transport.count; ++r) {
        const char state = is_neighbour(ranks, r) ? process_state(ranks->members[r].pid) : 'R';
        is_dead = is_dead || state == 'X' || state == 'Z';
        is_stopped = is_stopped || state == 'T' || state == 't';
    }
    times->stop_seen = first_time(timeouts->stop && *timeouts->stop, times->stop_seen, now);
    times->dead_seen = first_time(is_dead, times->dead_seen, now);
    times->stopped_seen = first_time(is_stopped, times->stopped_seen, now);
    return !is_silent(ranks, times, now) && now - times->started <= timeouts->seconds &&
           now - times->stop_seen <= timeouts->after_stop && now - times->stopped_seen <= timeouts->stopped &&
           now - times->dead_seen <= GRACE;
}

/* Waits for the job of the ticket, or until a timeout. */
static bool wait_done(cleat_ranks *ranks, uint64_t ticket, bool *failed) {
    wait_times times = {cleat_seconds(), INFINITY, INFINITY, INFINITY, .looked = cleat_seconds()};
    pthread_mutex_lock(&ranks->lock);
    times.heartbeats = ranks->heartbeats;
    for (bool waits = true; ranks->done < ticket && waits;)
        if (!wait_changed(ranks, LOOK_EVERY)) waits = may_wait(ranks, &times);
    const bool done = ranks->done >= ticket;
    *failed = ranks->failed;
    pthread_mutex_unlock(&ranks->lock);
    return done;
}

cleat_status cleat_ranks_wait(cleat_ranks *ranks, uint64_t ticket, cleat_error *error) {
    bool failed = false;
    if (!ranks) return CLEAT_OK;
    if (ranks->broken) return cleat_fail(error, CLEAT_ERR_RANK_LOST, "another rank is gone or does not answer");
    if (!wait_done(ranks, ticket, &failed)) return fail_lost(ranks, "another rank is gone or does not answer", error);
    if (failed) return fail_lost(ranks, "the connection to the other ranks failed", error);
    return CLEAT_OK;
}

/* Runs the job on a copy of its data [bytes], because an abandoned job may still write. */
static cleat_status do_job(cleat_ranks *ranks, rank_job *job, void *data, size_t bytes, void *all, cleat_error *error) {
    if (ranks->broken) return cleat_ranks_wait(ranks, 0, error);
    const size_t room = all ? bytes * (size_t)ranks->transport.count : 0;
    char *copy = cleat_alloc(bytes + room + 1, 1);
    if (!copy) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to exchange %zu bytes with other ranks", bytes);
    if (bytes) memcpy(copy, data, bytes);
    job->data = copy;
    job->all = copy + bytes;
    cleat_status status = cleat_ranks_wait(ranks, post(ranks, job), error);
    if (status) return status;
    if (all)
        memcpy(all, copy + bytes, room);
    else if (bytes)
        memcpy(data, copy, bytes);
    cleat_free(copy);
    return CLEAT_OK;
}

/* --- operations ----------------------------------------------------------------------------------------------- */

void cleat_ranks_set_timeouts(cleat_ranks *ranks, const cleat_ranks_timeouts *timeouts) {
    if (ranks) ranks->timeouts = *timeouts;
}

cleat_status cleat_ranks_sum_start(cleat_ranks *ranks, float *values, size_t count, double *squares, uint64_t *ticket,
                                   cleat_error *error) {
    if (!ranks) {
        if (squares) *squares = sum_of_squares(values, count);
        return CLEAT_OK;
    }
    if (ranks->broken) return cleat_ranks_wait(ranks, 0, error);
    *ticket = post(ranks, &(rank_job){.kind = JOB_SUM, .data = values, .count = count, .squares = squares});
    return CLEAT_OK;
}

cleat_status cleat_ranks_sum_rows_start(cleat_ranks *ranks, const cleat_row_sum *table, double *squares,
                                        uint64_t *ticket, cleat_error *error) {
    if (!ranks)
        return cleat_ranks_sum_start(NULL, table->values, (size_t)(table->rows * table->width), squares, ticket, error);
    if (ranks->broken) return cleat_ranks_wait(ranks, 0, error);
    *ticket = post(ranks, &(rank_job){.kind = JOB_SUM_ROWS, .table = table, .squares = squares});
    return CLEAT_OK;
}

cleat_status cleat_ranks_gather_start(cleat_ranks *ranks, void *bytes, size_t size, void *all, uint64_t *ticket,
                                      cleat_error *error) {
    if (!ranks) {
        memcpy(all, bytes, size);
        return CLEAT_OK;
    }
    if (ranks->broken) return cleat_ranks_wait(ranks, 0, error);
    *ticket = post(ranks, &(rank_job){.kind = JOB_GATHER, .data = bytes, .count = size, .all = all});
    return CLEAT_OK;
}

cleat_status cleat_ranks_broadcast(cleat_ranks *ranks, void *bytes, size_t size, cleat_error *error) {
    if (!ranks) return CLEAT_OK;
    return do_job(ranks, &(rank_job){.kind = JOB_BROADCAST, .count = size}, bytes, size, NULL, error);
}

cleat_status cleat_ranks_gather(cleat_ranks *ranks, const void *bytes, size_t size, void *all, cleat_error *error) {
    if (ranks) return do_job(ranks, &(rank_job){.kind = JOB_GATHER, .count = size}, (void *)bytes, size, all, error);
    memcpy(all, bytes, size);
    return CLEAT_OK;
}

double cleat_ranks_busy_seconds(cleat_ranks *ranks) {
    if (!ranks) return 0;
    pthread_mutex_lock(&ranks->lock);
    const double busy = ranks->busy;
    pthread_mutex_unlock(&ranks->lock);
    return busy;
}

/* Sends the error of the first rank that has one to the others. */
typedef struct verdict {
    int32_t status, cl_code;
    char text[CLEAT_ERROR_TEXT];
} verdict;

static cleat_status spread_error(cleat_ranks *ranks, cleat_status own, cleat_error *error) {
    const int first = ranks->first_failed;
    verdict mine = {.status = own};
    if (own && error) {
        mine.cl_code = error->cl_code;
        snprintf(mine.text, sizeof mine.text, "%s", error->text);
    }
    cleat_error why = {0};
    verdict *all = ranks->verdicts;
    cleat_status status = cleat_ranks_gather(ranks, &mine, sizeof mine, all, &why);
    if (status) return own ? own : cleat_fail(error, status, "%s", why.text);
    if (first == ranks->transport.rank) return own;
    status = (cleat_status)all[first].status;
    cleat_fail(error, status, "rank %d (%s): %.1900s", first, ranks->members[first].host,
               all[first].text[0] ? all[first].text : cleat_status_text(status));
    if (error) error->cl_code = all[first].cl_code;
    return status;
}

cleat_status cleat_ranks_agree_on(cleat_ranks *ranks, cleat_status own, int64_t *asked, cleat_error *error) {
    if (!ranks || ranks->has_failed) return own;
    if (ranks->broken) return own ? own : cleat_ranks_wait(ranks, 0, error);
    cleat_error why = {0};
    int64_t said[2 + CLEAT_RANKS_ASKED] = {0}; /* the first failed rank has the largest value */
    if (own) said[0] = ranks->transport.count - ranks->transport.rank;
    if (asked) memcpy(said + 1, asked, CLEAT_RANKS_ASKED * sizeof *asked);
    said[1 + CLEAT_RANKS_ASKED] = own || isfinite(ranks->timeouts.silence); /* to be watched */
    cleat_status status = do_job(ranks, &(rank_job){.kind = JOB_LARGEST, .count = sizeof said / sizeof *said}, said,
                                 sizeof said, NULL, &why);
    if (status) return own ? own : cleat_fail(error, status, "%s", why.text);
    if (asked) memcpy(asked, said + 1, CLEAT_RANKS_ASKED * sizeof *asked);
    if (!said[0]) return CLEAT_OK;
    ranks->has_failed = true;
    ranks->first_failed = ranks->transport.count - (int)said[0];
    return spread_error(ranks, own, error);
}

cleat_status cleat_ranks_agree(cleat_ranks *ranks, cleat_status own, cleat_error *error) {
    return cleat_ranks_agree_on(ranks, own, NULL, error);
}

int cleat_ranks_try_again(cleat_ranks *ranks) {
    if (!ranks) return 0;
    ranks->has_failed = false;
    return ranks->first_failed;
}

cleat_status cleat_ranks_compare(cleat_ranks *ranks, const char *what, const char hash[33], cleat_error *error) {
    char first[33];
    if (!ranks) return CLEAT_OK;
    memcpy(first, hash, sizeof first);
    cleat_status status = cleat_ranks_broadcast(ranks, first, sizeof first, error);
    if (status || memcmp(first, hash, sizeof first) == 0) return status;
    return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s: not the same as in rank 0 (%s)", what, ranks->members[0].host);
}

/* --- joining -------------------------------------------------------------------------------------------------- */

bool cleat_ranks_launched(void) {
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        const char *size = getenv(sizes[i]);
        if (size && atoi(size) > 1) return true;
    }
    const char *tasks = getenv("SLURM_NTASKS");
    return getenv("PMIX_RANK") && tasks && atoi(tasks) > 1;
}

cleat_status cleat_ranks_check(cleat_error *error) {
    char path[PATH_MAX];
    if (cleat_plugin_file("libcleat-mpi.so", "CLEAT_RANKS_LIBRARY", path) && access(path, R_OK) == 0) return CLEAT_OK;
    return cleat_fail(
        error, CLEAT_ERR_NOT_SUPPORTED,
        "several devices need cleat's plug-in libcleat-mpi.so, which was not found beside the library: build "
        "cleat with Open MPI installed (Debian, Ubuntu: apt install openmpi-bin libopenmpi-dev), or install "
        "cleat-mpi");
}

static cleat_status load_plugin(cleat_ranks *ranks, cleat_error *error) {
    char path[PATH_MAX];
    cleat_status status = cleat_ranks_check(error);
    if (status || !cleat_plugin_file("libcleat-mpi.so", "CLEAT_RANKS_LIBRARY", path)) return status;
    ranks->plugin = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    const char *failure = ranks->plugin ? NULL : dlerror();
    if (ranks->plugin)
        ranks->open_transport = (cleat_transport_open_fn)(uintptr_t)dlsym(ranks->plugin, "cleat_transport_open");
    if (ranks->open_transport) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                      "this process was started as one of several ranks, but the plug-in %s cannot be used: %s; `cleat "
                      "doctor` lists what to install",
                      path, failure ? failure : "it is not a plug-in of cleat");
}

static cleat_status start_thread(cleat_ranks *ranks, cleat_error *error) {
    pthread_mutex_init(&ranks->lock, NULL);
    cleat_condition_init(&ranks->changed);
    if (pthread_create(&ranks->thread, NULL, run_thread, ranks) == 0) return CLEAT_OK;
    pthread_cond_destroy(&ranks->changed);
    pthread_mutex_destroy(&ranks->lock);
    return cleat_fail(error, CLEAT_ERR_MEMORY, "cannot start the thread that exchanges data with the other ranks");
}

/* The boot ID and the PID namespace: containers of one machine do not see each other's process IDs. */
static void name_machine(char machine[HOST]) {
    char boot[40] = "", space[32] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file) {
        if (!fgets(boot, sizeof boot, file)) boot[0] = 0;
        fclose(file);
    }
    if (readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0) space[0] = 0;
    snprintf(machine, HOST, "%.36s %s", boot, space);
}

static cleat_status introduce(cleat_ranks *ranks, cleat_error *error) {
    member own = {.pid = getpid()};
    gethostname(own.host, sizeof own.host - 1);
    name_machine(own.machine);
    cleat_cpu_set_allowed(&own.cpus);
    ranks->members = cleat_alloc((size_t)ranks->transport.count, sizeof *ranks->members);
    ranks->verdicts = cleat_alloc((size_t)ranks->transport.count, sizeof(verdict));
    if (!ranks->members || !ranks->verdicts)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the list of ranks");
    return cleat_ranks_gather(ranks, &own, sizeof own, ranks->members, error);
}

/* Ranks of one machine that may use the same CPUs divide them. The launcher's binding, if any, is kept. */
static void divide_cpus(cleat_ranks *ranks) {
    const cleat_transport *t = &ranks->transport;
    const cleat_cpu_set *own = &ranks->members[t->rank].cpus;
    bool shared = t->local_count > 1;
    cleat_cpu_set part;
    for (int r = 0; r < t->count; ++r)
        if (is_neighbour(ranks, r)) shared = shared && memcmp(&ranks->members[r].cpus, own, sizeof *own) == 0;
    if (!shared) {
        const long online = sysconf(_SC_NPROCESSORS_ONLN);
        if (t->local_count > 1 && (long)cleat_cpu_set_count(own) * t->local_count < online)
            cleat_log(CLEAT_LOG_WARNING,
                      "the launcher lets rank %d use %d of %ld CPUs; with mpirun --bind-to none the ranks divide all "
                      "of them",
                      t->rank, cleat_cpu_set_count(own), online);
        cleat_cpu_set_bind(own);
        return;
    }
    if (!cleat_cpu_set_part(own, t->local_rank, t->local_count, &part) || !cleat_cpu_set_bind(&part))
        cleat_log(CLEAT_LOG_WARNING, "rank %d cannot be bound to its part of the CPUs", t->rank);
}

double cleat_ranks_start_seconds(void) {
    const char *text = getenv("CLEAT_RANKS_START");
    const double seconds = text ? strtod(text, NULL) : 0;
    return seconds > 0 ? seconds : START;
}

static cleat_status fail_start(double seconds, cleat_error *error) {
    char host[HOST] = "";
    gethostname(host, sizeof host - 1);
    return cleat_fail(
        error, CLEAT_ERR_RANK_LOST,
        "host %s: MPI has not started within %g s, because not all ranks have joined. A host, a cable or a firewall "
        "between the hosts may be the cause: `mpirun --host HOST,HOST hostname` must print the names of all, and MPI "
        "must be allowed to connect from each to each. If starting takes longer, set CLEAT_RANKS_START to more "
        "seconds",
        host, seconds);
}

/* MPI starts once all processes of the run have joined: an unreachable one would block the others forever. */
static cleat_status start_mpi(cleat_ranks *ranks, cleat_error *error) {
    const double seconds = cleat_ranks_start_seconds();
    ranks->timeouts = (cleat_ranks_timeouts){seconds, INFINITY, INFINITY, INFINITY, NULL};
    if (!do_job(ranks, &(rank_job){.kind = JOB_OPEN}, NULL, 0, NULL, NULL)) return CLEAT_OK;
    pthread_mutex_lock(&ranks->lock);
    const bool has_ended = ranks->done > 0;
    pthread_mutex_unlock(&ranks->lock);
    if (!has_ended) return fail_start(seconds, error);
    return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "libcleat-mpi.so: %s", ranks->why);
}

cleat_status cleat_ranks_open(cleat_ranks **ranks, cleat_error *error) {
    cleat_ranks *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the ranks of a run");
    cleat_status status = load_plugin(made, error);
    if (!status) status = start_thread(made, error);
    if (status) {
        cleat_free(made);
        return status;
    }
    status = start_mpi(made, error);
    if (!status) status = introduce(made, error);
    made->timeouts = (cleat_ranks_timeouts){INFINITY, SILENCE, INFINITY, INFINITY, NULL};
    if (!status) status = cleat_ranks_agree(made, status, error); /* from here on they are watched */
    if (status == CLEAT_ERR_RANK_LOST) return status;             /* the thread may still return from MPI */
    if (status) {
        made->transport.close = NULL;
        cleat_ranks_close(made);
        return status;
    }
    divide_cpus(made);
    *ranks = made;
    return CLEAT_OK;
}

/* If the ranks are broken, the thread may never return from MPI: its memory is kept, and the process is
 * about to end. */
void cleat_ranks_close(cleat_ranks *ranks) {
    bool failed = false;
    if (!ranks) return;
    if (ranks->broken && ranks->transport.close) return;
    if (!wait_done(ranks, post(ranks, &(rank_job){.kind = JOB_CLOSE}), &failed)) return;
    pthread_join(ranks->thread, NULL);
    pthread_cond_destroy(&ranks->changed);
    pthread_mutex_destroy(&ranks->lock);
    cleat_free(ranks->verdicts);
    cleat_free(ranks->members);
    cleat_free(ranks);
}

int cleat_ranks_rank(const cleat_ranks *ranks) {
    return ranks ? ranks->transport.rank : 0;
}

int cleat_ranks_count(const cleat_ranks *ranks) {
    return ranks ? ranks->transport.count : 1;
}

int cleat_ranks_local_rank(const cleat_ranks *ranks) {
    return ranks ? ranks->transport.local_rank : 0;
}

bool cleat_ranks_are_broken(const cleat_ranks *ranks) {
    return ranks && ranks->broken;
}

const char *cleat_ranks_device(cleat_ranks *ranks, const char *wanted) {
    const char *list = getenv("CLEAT_RANK_DEVICES");
    if (!ranks || !list || !*list) return wanted;
    for (int skipped = 0; skipped < ranks->transport.local_rank; ++skipped) {
        const char *end = strchr(list, ';');
        if (!end) return wanted;
        list = end + 1;
    }
    snprintf(ranks->device, sizeof ranks->device, "%.*s", (int)strcspn(list, ";"), list);
    return ranks->device[0] ? ranks->device : wanted;
}

/* --- after a loss --------------------------------------------------------------------------------------------- */

bool cleat_ranks_saves_the_run(const cleat_ranks *ranks) {
    const int rank = ranks->transport.rank;
    if (!is_neighbour(ranks, 0)) return false;
    for (int r = 0; r < rank; ++r)
        if (is_neighbour(ranks, r) && !strchr("XZTt", process_state(ranks->members[r].pid))) return false;
    return true;
}
