/* Search for the micro-batch size by doubling and bisection, and selection of a size. */
#include "bench/batch_search.h"

#include "core/child.h"
#include "fit/buckets.h"
#include "platform/processes.h"

#include <stdio.h>

static const double CLIFF = 0.85, NEAR_BEST = 0.97, TIMES_EXPECTED = 10;

static void find_best(cleat_batch_search *search, double *fastest) {
    for (size_t i = 0; i < search->count; ++i) {
        const cleat_batch_point *point = &search->points[i];
        if (!point->ran) continue;
        if (point->micro_batch_size > search->largest) search->largest = point->micro_batch_size;
        if (!(point->samples_per_second > *fastest)) continue;
        *fastest = point->samples_per_second;
        search->best = point->micro_batch_size;
    }
}

/* A busy machine makes a median slow, but rarely every step, so the fastest step must be slow too. */
static bool is_cliff(const cleat_batch_point *point, double fastest) {
    double at_best = (double)point->micro_batch_size / point->ms_min * 1e3;
    return point->samples_per_second < CLIFF * fastest && at_best < CLIFF * fastest;
}

void cleat_batch_search_select(cleat_batch_search *search) {
    double fastest = 0, chosen = 0;
    search->largest = search->best = search->cliff = search->recommended = 0;
    search->why[0] = 0;
    find_best(search, &fastest);
    for (size_t i = 0; i < search->count; ++i) {
        const cleat_batch_point *point = &search->points[i];
        if (!point->ran) continue;
        bool near = point->samples_per_second >= NEAR_BEST * fastest;
        if (near && (!search->recommended || point->micro_batch_size < search->recommended)) {
            search->recommended = point->micro_batch_size;
            chosen = point->samples_per_second;
        }
        if (is_cliff(point, fastest) && point->micro_batch_size > search->best &&
            (!search->cliff || point->micro_batch_size < search->cliff))
            search->cliff = point->micro_batch_size;
    }
    if (!search->recommended) return;
    if (search->recommended == search->best)
        snprintf(search->why, sizeof search->why, "the fastest, and no smaller one is within 3 %% of it");
    else
        snprintf(search->why, sizeof search->why,
                 "the smallest within 3 %% of the best: %.4g samples/s, compared with %.4g at %lld", chosen, fastest,
                 (long long)search->best);
}

typedef struct attempt {
    const cleat_batch_searcher *searcher;
    cleat_batch_trial trial;
} attempt;

static void run_attempt(void *user, int out) {
    const attempt *a = user;
    a->searcher->attempt(a->searcher->user, &a->trial, out);
}

/* Status of a failed child: killed (by the kernel's OOM killer) means that the size did not fit; otherwise
 * the driver failed. */
static cleat_status status_of(const cleat_child_end *end) {
    return end->signal == SIGKILL && !end->timed_out ? CLEAT_ERR_DEVICE_MEMORY : CLEAT_ERR_DEVICE;
}

/* Runs one attempt and fills the report: the child's last one, or the way in which the child failed. A report
 * sent before the failure still contains the plan. */
static cleat_status run_trial(const cleat_batch_searcher *searcher, const cleat_batch_trial *trial, double seconds,
                              cleat_batch_report *report, cleat_child_end *end, cleat_error *error) {
    attempt wanted = {.searcher = searcher, .trial = *trial};
    cleat_child child = {.body = run_attempt, .user = &wanted, .record_bytes = sizeof *report, .seconds = seconds};
    cleat_status status = cleat_child_run(&child, report, end, error);
    if (status) return status;
    if (end->records == 0 || report->mark != CLEAT_BATCH_MARK ||
        report->point.micro_batch_size != trial->micro_batch_size) {
        *report = (cleat_batch_report){.point.micro_batch_size = trial->micro_batch_size};
        if (!end->text[0]) snprintf(end->text, sizeof end->text, "returned an invalid result");
    }
    report->point.error[sizeof report->point.error - 1] = report->text[sizeof report->text - 1] = 0;
    if (report->point.ran || report->point.error[0]) return CLEAT_OK; /* a failure after the report is irrelevant */
    if (!end->text[0]) snprintf(end->text, sizeof end->text, "ended before its steps were finished");
    report->status = status_of(end);
    snprintf(report->point.error, sizeof report->point.error, "%s", end->text);
    return CLEAT_OK;
}

/* good < sizes still to be tried < bad. */
typedef struct bounds {
    int64_t global_batch_size;
    int64_t good, bad; /* 0: none yet */
    bool planned;      /* the plan determined that `bad` does not fit and that bad - 1 does */
} bounds;

static int64_t next_batch(const bounds *b) {
    int64_t next;
    if (!b->bad)
        next = b->good == 0 ? 1 : b->good * 2 < b->global_batch_size ? b->good * 2 : b->global_batch_size;
    else if (b->planned)
        next = b->bad - 1;
    else if (b->bad - b->good > 1 + b->good / 8)
        next = b->good + (b->bad - b->good) / 2;
    else
        return 0;
    if (next < 1) return 0;
    next = cleat_bucket_split(b->global_batch_size, next);
    return next > b->good ? next : 0;
}

static void narrow(bounds *b, const cleat_batch_report *report) {
    if (report->point.ran) {
        b->good = report->point.micro_batch_size;
        return;
    }
    b->planned = report->status == CLEAT_ERR_FIT && !report->point.planned_fits;
    b->bad = b->planned && report->fitting > b->good ? report->fitting + 1
             : b->planned                            ? b->good + 1
                                                     : report->point.micro_batch_size;
}

/* Inserts a point in ascending order of size. */
static void insert_point(cleat_batch_search *search, const cleat_batch_point *point) {
    size_t at = search->count++;
    for (; at > 0 && search->points[at - 1].micro_batch_size > point->micro_batch_size; --at)
        search->points[at] = search->points[at - 1];
    search->points[at] = *point;
}

static double time_for(const cleat_batch_searcher *searcher, double per_sample, int64_t micro_batch_size) {
    return per_sample > 0 ? searcher->min_seconds + TIMES_EXPECTED * per_sample * (double)micro_batch_size
                          : searcher->first_seconds;
}

cleat_status cleat_batch_search_run(const cleat_batch_searcher *searcher, cleat_batch_search *search,
                                    cleat_error *error) {
    bounds found = {.global_batch_size = searcher->global_batch_size};
    cleat_batch_report report = {0};
    cleat_child_end end = {0};
    double per_sample = 0;
    cleat_status status = CLEAT_OK;
    search->count = 0;
    search->global_batch_size = searcher->global_batch_size;
    for (int64_t micro_batch_size; search->count < CLEAT_BATCH_POINTS && (micro_batch_size = next_batch(&found)) > 0;) {
        cleat_batch_trial trial = {.micro_batch_size = micro_batch_size, .good = found.good};
        report = (cleat_batch_report){.point.micro_batch_size = micro_batch_size};
        status = run_trial(searcher, &trial, time_for(searcher, per_sample, micro_batch_size), &report, &end, error);
        if (status) break;
        insert_point(search, &report.point);
        if (searcher->options->point) searcher->options->point(searcher->options->user, &report.point);
        if (report.point.ran) per_sample = end.seconds / (double)micro_batch_size;
        if (end.timed_out && !CLEAT_FORKS) break; /* its thread keeps memory of the device */
        narrow(&found, &report);
    }
    cleat_batch_search_select(search);
    if (status || search->largest > 0) return status;
    return cleat_fail(error, report.status, "not even a single sample trains: %s",
                      report.text[0] ? report.text : report.point.error);
}
