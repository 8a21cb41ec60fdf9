/* The thread of the monitor: sampling, rates of completed steps, records.
 *
 * The thread reads 50 times a second whether the compute queue is empty and what the training thread does,
 * so each idle moment has a cause. Speed counts the steps that the device has completed (marks in the
 * queue), since the host enqueues ahead. A driver's figure is recorded with its source, is null if
 * unknown, and is dropped if it contradicts the queue. Times are in system.jsonl only, so that
 * metrics.jsonl has the same bytes after a kill and a resume. */
#include "monitor/monitor.h"

#include "core/clock.h"
#include "core/json.h"
#include "core/memory.h"
#include "monitor/routes.h"
#include "platform/files.h"
#include "platform/threads.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const double poll_seconds = 0.02, distrust_seconds = 10; /* the latter by default */

#define OF_STEPS "; of completed steps, without evaluations and checkpoints"
#define IS_EMPTY "share of the time in which the device had no work and the training thread "
const cleat_gauge cleat_own_gauges[CLEAT_OWN_GAUGES] = {
    {"steps_per_second", "1/s", "cleat", "optimizer steps per second" OF_STEPS},
    {"samples_per_second", "1/s", "cleat", "training samples per second" OF_STEPS},
    {"step_seconds", "s", "cleat", "mean time of a step" OF_STEPS},
    {"roofline_share", "", "cleat",
     "time that the operations of the steps would take at the device's measured rates, divided by the time that they "
     "took"},
    {"dry_share", "", "cleat", "share of the time in which the device had no work"},
    {"dry_loader", "", "cleat", IS_EMPTY "waited for the loader"},
    {"dry_evaluate", "", "cleat", IS_EMPTY "evaluated"},
    {"dry_checkpoint", "", "cleat", IS_EMPTY "wrote a checkpoint"},
    {"dry_read", "", "cleat", IS_EMPTY "read and logged the results of steps"},
    {"dry_other", "", "cleat", IS_EMPTY "did something else"},
    {"dry_handovers", "", "cleat", "share of the batches for which the device waited"},
    {"workers", "", "cleat", "loader threads"},
    {"loader_fill_seconds", "", "cleat", "seconds that loader threads spent on filling batches, per second"},
    {"memory_planned", "bytes", "cleat", "device memory of the plan"},
    {"memory_allocated", "bytes", "cleat", "device memory that cleat has allocated"},
};

/* Marks are at most this far behind: the run reads the results of every 64th step at the latest. */
enum { PENDING = 256 };

/* Time of the monitor's thread by what the device and the training thread were doing. */
typedef struct times {
    double all, dry[CLEAT_ACTIVITIES];
} times;

/* A completed step: the sums up to it, and the training time at which it was seen to be complete. */
typedef struct milestone {
    cleat_monitor_totals totals;
    double training; /* seconds */
    bool is_known;
} milestone;

/* Sums over the samples in which a figure was known. */
typedef struct mean {
    double sum, count;
} mean;

enum { BUSY_DEVICE, BUSY_OWN, THERMAL, POWER_LIMIT, QUOTA, MEANS };
enum { EDGE_SAMPLES = 10 }; /* samples at the start and the end of which `spilling` compares the means */

struct cleat_monitor {
    cleat_monitor_config config;
    pthread_t thread;
    pthread_mutex_t mutex; /* protects what follows up to `taken` */
    pthread_cond_t changed;
    bool stop;
    cleat_monitor_totals pending[PENDING]; /* of the step with mark m: [m % PENDING] */
    int64_t marks;                         /* number of steps that were enqueued */
    uint64_t found, taken;                 /* bit masks of hints: recorded, shown */
    cleat_hint hints[CLEAT_HINTS_MAX];
    _Atomic int activity;

    /* Used by the thread only: */
    double polled, training;        /* clock of the last poll; seconds outside of evaluations and checkpoints */
    int64_t completed;              /* mark of the last completed step */
    milestone last, sampled, first; /* the last one; that of the previous sample; the first of all */
    times interval, run;            /* since the previous sample; since the first completed step */
    double gauges[CLEAT_MAX_GAUGES];
    double own[CLEAT_OWN_GAUGES];
    mean means[MEANS];
    mean gtt[2], steps[2]; /* of the first and of the last samples */
    double edge[2][EDGE_SAMPLES];
    size_t samples;
    int busy_device;           /* index of the gauge, or -1 */
    double pegged, pegged_dry; /* seconds in which the driver reports 100 %; those of them without work */
};

/* --- sampling ------------------------------------------------------------------------------------------------- */

/* While kernels are being enqueued the device already works on the first of them: the queue counts as empty only by
 * whole graphs. */
static bool counts_as_dry(cleat_monitor *monitor, int activity) {
    if (activity == CLEAT_DOING_ENQUEUE || activity == CLEAT_DOING_UPDATE) return false;
    return monitor->config.calls.is_idle(monitor->config.user);
}

static void see_completed_steps(cleat_monitor *monitor) {
    const int64_t completed = monitor->config.calls.marked(monitor->config.user);
    if (completed <= monitor->completed) return;
    monitor->completed = completed;
    pthread_mutex_lock(&monitor->mutex);
    monitor->last.totals = monitor->pending[completed % PENDING];
    pthread_mutex_unlock(&monitor->mutex);
    monitor->last.training = monitor->training;
    monitor->last.is_known = true;
    if (monitor->first.is_known) return;
    monitor->first = monitor->sampled = monitor->last;
    monitor->run = (times){0};
}

static void poll(cleat_monitor *monitor) {
    const int activity = atomic_load_explicit(&monitor->activity, memory_order_relaxed);
    const double now = cleat_seconds(), passed = now - monitor->polled;
    const double dry = counts_as_dry(monitor, activity) ? passed : 0;
    monitor->polled = now;
    if (activity != CLEAT_DOING_EVALUATE && activity != CLEAT_DOING_CHECKPOINT) monitor->training += passed;
    monitor->interval.all += passed;
    monitor->interval.dry[activity] += dry;
    monitor->run.all += passed;
    monitor->run.dry[activity] += dry;
    see_completed_steps(monitor);
}

/* --- figures -------------------------------------------------------------------------------------------------- */

static double dry_sum(const times *t) {
    double sum = 0;
    for (int a = 0; a < CLEAT_ACTIVITIES; ++a) sum += t->dry[a];
    return sum;
}

static double ratio(double part, double whole) {
    return whole > 0 ? part / whole : NAN;
}

/* Figures of the steps between two milestones; all NaN if there are none. */
static void step_stats(const milestone *from, const milestone *to, double values[CLEAT_OWN_GAUGES]) {
    const double seconds = to->training - from->training;
    const double steps = (double)(to->totals.step - from->totals.step);
    const bool known = from->is_known && to->is_known && steps > 0 && seconds > 0;
    values[CLEAT_OWN_STEPS_PER_SECOND] = known ? steps / seconds : NAN;
    values[CLEAT_OWN_SAMPLES_PER_SECOND] = known ? (to->totals.samples - from->totals.samples) / seconds : NAN;
    values[CLEAT_OWN_STEP_SECONDS] = known ? seconds / steps : NAN;
    values[CLEAT_OWN_ROOFLINE_SHARE] = known ? (to->totals.roof_seconds - from->totals.roof_seconds) / seconds : NAN;
    values[CLEAT_OWN_DRY_HANDOVERS] = known ? ratio(to->totals.dry_hand_overs - from->totals.dry_hand_overs,
                                                    to->totals.hand_overs - from->totals.hand_overs)
                                            : NAN;
    values[CLEAT_OWN_LOADER_FILL] = known ? (to->totals.fill_seconds - from->totals.fill_seconds) / seconds : NAN;
}

static void dry_stats(const times *t, double values[CLEAT_OWN_GAUGES]) {
    values[CLEAT_OWN_DRY_SHARE] = ratio(dry_sum(t), t->all);
    values[CLEAT_OWN_DRY_LOADER] = ratio(t->dry[CLEAT_DOING_LOADER], t->all);
    values[CLEAT_OWN_DRY_EVALUATE] = ratio(t->dry[CLEAT_DOING_EVALUATE], t->all);
    values[CLEAT_OWN_DRY_CHECKPOINT] = ratio(t->dry[CLEAT_DOING_CHECKPOINT], t->all);
    values[CLEAT_OWN_DRY_READ] = ratio(t->dry[CLEAT_DOING_READ], t->all);
    const double other = t->dry[CLEAT_DOING_OTHER] + t->dry[CLEAT_DOING_ENQUEUE] + t->dry[CLEAT_DOING_UPDATE] +
                         t->dry[CLEAT_DOING_EPOCH];
    values[CLEAT_OWN_DRY_OTHER] = ratio(other, t->all);
}

static void compute_own(cleat_monitor *monitor) {
    double *own = monitor->own;
    step_stats(&monitor->sampled, &monitor->last, own);
    dry_stats(&monitor->interval, own);
    own[CLEAT_OWN_WORKERS] = monitor->last.is_known ? monitor->last.totals.workers : NAN;
    own[CLEAT_OWN_MEMORY_PLANNED] = monitor->config.memory_planned;
    own[CLEAT_OWN_MEMORY_ALLOCATED] = monitor->last.is_known ? monitor->last.totals.memory_allocated : NAN;
}

/* Value of a driver's figure by name; NaN if it is unknown. */
static double gauge(const cleat_monitor *monitor, const char *name) {
    for (size_t i = 0; i < monitor->config.n_gauges; ++i)
        if (strcmp(monitor->config.gauges[i].name, name) == 0) return monitor->gauges[i];
    return NAN;
}

/* --- records -------------------------------------------------------------------------------------------------- */

static int64_t step_now(const cleat_monitor *monitor) {
    return monitor->last.is_known ? monitor->last.totals.step : monitor->config.step;
}

static void write_sample(cleat_monitor *monitor) {
    const double step = (double)step_now(monitor);
    cleat_string text = {0};
    json_add(&text, json_open(NULL, '{'), json_text("kind", "sample"), json_time("time", cleat_wall_seconds()),
             json_count("step", step_now(monitor)), json_number("epoch", step / monitor->config.steps_per_epoch),
             json_open("values", '{'));
    for (size_t i = 0; i < CLEAT_OWN_GAUGES; ++i)
        json_add(&text, json_number(cleat_own_gauges[i].name, monitor->own[i]));
    for (size_t i = 0; i < monitor->config.n_gauges; ++i)
        json_add(&text, json_number(monitor->config.gauges[i].name, monitor->gauges[i]));
    json_add(&text, json_close('}'), json_close('}'));
    cleat_journal_write(monitor->config.journal, &text);
}

void cleat_monitor_begin_event(cleat_string *record, int64_t step, const char *what, const char *name, const char *text,
                               const char *command) {
    /* texts with paths; they may be cut within a character */
    json_add(record, json_open(NULL, '{'), json_text("kind", "event"), json_time("time", cleat_wall_seconds()),
             json_count("step", step), json_clean("what", what), json_clean("name", name), json_clean("text", text),
             json_clean("command", command));
}

void cleat_monitor_write_event(cleat_journal *journal, int64_t step, const char *what, const char *name,
                               const char *text, const char *command) {
    cleat_string record = {0};
    cleat_monitor_begin_event(&record, step, what, name, text, command);
    cleat_string_add(&record, "}");
    cleat_journal_write(journal, &record);
}

/* --- distrust ------------------------------------------------------------------------------------------------- */

/* Some drivers report 100 % as long as a compute context exists. */
static void check_busy_device(cleat_monitor *monitor) {
    char text[256];
    const int at = monitor->busy_device;
    if (at < 0 || !(monitor->gauges[at] >= 0.99)) {
        monitor->pegged = monitor->pegged_dry = 0;
        return;
    }
    monitor->pegged += monitor->interval.all;
    monitor->pegged_dry += dry_sum(&monitor->interval);
    const double wanted = monitor->config.distrust_seconds > 0 ? monitor->config.distrust_seconds : distrust_seconds;
    if (monitor->pegged < wanted) return;
    const double share = monitor->pegged_dry / monitor->pegged;
    monitor->pegged = monitor->pegged_dry = 0;
    if (share <= 0.4) return;
    monitor->config.calls.distrust(monitor->config.user, (size_t)at);
    monitor->gauges[at] = NAN;
    monitor->means[BUSY_DEVICE] = (mean){0};
    snprintf(
        text, sizeof text,
        "the driver reports a load of 100 %%, but the device's queue was empty for %.0f %% of the last %.0f s: the "
        "driver's figure is no longer used",
        100 * share, wanted);
    cleat_monitor_write_event(monitor->config.journal, step_now(monitor), "note", "busy_device_distrusted", text, "");
}

/* --- hints ---------------------------------------------------------------------------------------------------- */

static void add(mean *m, double value) {
    if (!isfinite(value)) return;
    m->sum += value;
    ++m->count;
}

static double value_of(const mean *m) {
    return ratio(m->sum, m->count);
}

/* Whether the bit is set in the driver's reasons; NaN: unknown. */
static double has_reason(double reasons, int bit) {
    return isfinite(reasons) ? ((int)reasons & bit) != 0 : NAN;
}

static void collect(cleat_monitor *monitor) {
    const double reasons = gauge(monitor, "throttle_reason");
    const double gtt = gauge(monitor, "memory_gtt"), step = monitor->own[CLEAT_OWN_STEP_SECONDS];
    add(&monitor->means[BUSY_DEVICE], gauge(monitor, "busy_device"));
    add(&monitor->means[BUSY_OWN], gauge(monitor, "busy_own"));
    add(&monitor->means[THERMAL], has_reason(reasons, CLEAT_THROTTLE_THERMAL));
    add(&monitor->means[POWER_LIMIT], has_reason(reasons, CLEAT_THROTTLE_POWER));
    add(&monitor->means[QUOTA], gauge(monitor, "cpu_quota_throttled"));
    if (!isfinite(gtt) || !isfinite(step)) return;
    if (monitor->samples < EDGE_SAMPLES) {
        add(&monitor->gtt[0], gtt);
        add(&monitor->steps[0], step);
    }
    const size_t at = monitor->samples++ % EDGE_SAMPLES;
    monitor->edge[0][at] = gtt;
    monitor->edge[1][at] = step;
}

/* Mean of the last samples, once there are twice as many as are compared. */
static double mean_of_edge(const cleat_monitor *monitor, int which) {
    double sum = 0;
    if (monitor->samples < 2 * EDGE_SAMPLES) return NAN;
    for (size_t i = 0; i < EDGE_SAMPLES; ++i) sum += monitor->edge[which][i];
    return sum / EDGE_SAMPLES;
}

static cleat_hint_stats collect_stats(const cleat_monitor *monitor) {
    double own[CLEAT_OWN_GAUGES];
    step_stats(&monitor->first, &monitor->last, own);
    dry_stats(&monitor->run, own);
    return (cleat_hint_stats){
        .seconds = monitor->last.training - monitor->first.training,
        .step_seconds = own[CLEAT_OWN_STEP_SECONDS],
        .roofline_share = own[CLEAT_OWN_ROOFLINE_SHARE],
        .dry_share = own[CLEAT_OWN_DRY_SHARE],
        .dry_loader = own[CLEAT_OWN_DRY_LOADER],
        .workers = monitor->last.totals.workers,
        .busy_device = value_of(&monitor->means[BUSY_DEVICE]),
        .busy_own = value_of(&monitor->means[BUSY_OWN]),
        .thermal = value_of(&monitor->means[THERMAL]),
        .power_limit = value_of(&monitor->means[POWER_LIMIT]),
        .quota_throttled = value_of(&monitor->means[QUOTA]),
        .gtt_before = value_of(&monitor->gtt[0]),
        .gtt_now = mean_of_edge(monitor, 0),
        .step_before = value_of(&monitor->steps[0]),
        .step_now = mean_of_edge(monitor, 1),
    };
}

static void look_for_hints(cleat_monitor *monitor) {
    if (!monitor->first.is_known) return;
    const cleat_hint_stats stats = collect_stats(monitor);
    for (size_t i = 0; i < cleat_hint_count(); ++i) {
        cleat_hint hint;
        const uint64_t bit = UINT64_C(1) << i;
        if (monitor->found & bit || !cleat_hint_check(i, &monitor->config.facts, &stats, &hint)) continue;
        cleat_monitor_write_event(monitor->config.journal, step_now(monitor), "hint", hint.name, hint.text,
                                  hint.command);
        pthread_mutex_lock(&monitor->mutex);
        monitor->hints[i] = hint;
        monitor->found |= bit;
        pthread_mutex_unlock(&monitor->mutex);
    }
}

bool cleat_monitor_take_hint(cleat_monitor *monitor, cleat_hint *hint) {
    bool taken = false;
    if (!monitor) return false;
    pthread_mutex_lock(&monitor->mutex);
    const uint64_t news = monitor->found & ~monitor->taken;
    for (size_t i = 0; i < CLEAT_HINTS_MAX && !taken; ++i) {
        if (!(news >> i & 1)) continue;
        *hint = monitor->hints[i];
        monitor->taken |= UINT64_C(1) << i;
        taken = true;
    }
    pthread_mutex_unlock(&monitor->mutex);
    return taken;
}

/* --- the thread ----------------------------------------------------------------------------------------------- */

static void sample(cleat_monitor *monitor) {
    for (size_t i = 0; i < CLEAT_MAX_GAUGES; ++i) monitor->gauges[i] = NAN;
    if (monitor->config.n_gauges > 0) (monitor->config.calls.read)(monitor->config.user, monitor->gauges);
    compute_own(monitor);
    check_busy_device(monitor);
    write_sample(monitor);
    collect(monitor);
    look_for_hints(monitor);
    monitor->sampled = monitor->last;
    monitor->interval = (times){0};
}

/* Waits for the next poll; false: the monitor is to stop. */
static bool wait_until(cleat_monitor *monitor, double when) {
    pthread_mutex_lock(&monitor->mutex);
    while (!monitor->stop && cleat_condition_wait(&monitor->changed, &monitor->mutex, when - cleat_seconds())) continue;
    const bool go_on = !monitor->stop;
    pthread_mutex_unlock(&monitor->mutex);
    return go_on;
}

static void *run(void *user) {
    cleat_monitor *monitor = user;
    double next = monitor->polled + monitor->config.period;
    while (wait_until(monitor, cleat_seconds() + poll_seconds)) {
        poll(monitor);
        if (monitor->polled < next) continue;
        sample(monitor);
        while (next <= monitor->polled) next += monitor->config.period;
    }
    poll(monitor);
    sample(monitor);
    return NULL;
}

static void free_monitor(cleat_monitor *monitor) {
    pthread_mutex_destroy(&monitor->mutex);
    pthread_cond_destroy(&monitor->changed);
    cleat_free(monitor);
}

cleat_status cleat_monitor_start(const cleat_monitor_config *config, cleat_monitor **monitor, cleat_error *error) {
    if (config->n_gauges > CLEAT_MAX_GAUGES)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%zu figures of drivers; the monitor records at most %d",
                          config->n_gauges, CLEAT_MAX_GAUGES);
    cleat_monitor *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the monitor");
    made->config = *config;
    made->polled = cleat_seconds();
    made->busy_device = -1;
    for (size_t i = 0; i < config->n_gauges; ++i)
        if (strcmp(config->gauges[i].name, "busy_device") == 0) made->busy_device = (int)i;
    pthread_mutex_init(&made->mutex, NULL);
    cleat_condition_init(&made->changed);
    const int code = pthread_create(&made->thread, NULL, run, made);
    if (code != 0) {
        free_monitor(made);
        return cleat_fail(error, CLEAT_ERR_IO, "no thread for the monitor: %s", strerror(code));
    }
    *monitor = made;
    return CLEAT_OK;
}

void cleat_monitor_stop(cleat_monitor *monitor) {
    if (!monitor) return;
    pthread_mutex_lock(&monitor->mutex);
    monitor->stop = true;
    pthread_cond_signal(&monitor->changed);
    pthread_mutex_unlock(&monitor->mutex);
    pthread_join(monitor->thread, NULL);
    free_monitor(monitor);
}

/* --- the training thread -------------------------------------------------------------------------------------- */

cleat_activity cleat_monitor_set_activity(cleat_monitor *monitor, cleat_activity activity) {
    if (!monitor) return CLEAT_DOING_OTHER;
    return (cleat_activity)atomic_exchange_explicit(&monitor->activity, (int)activity, memory_order_relaxed);
}

/* The totals are stored before the device is given the mark, so that the thread finds them when it sees it. */
void cleat_monitor_step(cleat_monitor *monitor, const cleat_monitor_totals *totals) {
    if (!monitor) return;
    pthread_mutex_lock(&monitor->mutex);
    const int64_t mark = ++monitor->marks;
    monitor->pending[mark % PENDING] = *totals;
    pthread_mutex_unlock(&monitor->mutex);
    monitor->config.calls.mark(monitor->config.user, mark);
}
