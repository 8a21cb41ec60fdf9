/* How many loader threads a run should have. */
#include "session/worker_tuning.h"

#include <math.h>
#include <stdio.h>

/* Seconds. A window of few batches is extended up to LONGEST_WINDOW. */
static const double WINDOW = 5, LONGEST_WINDOW = 30, CALM = 60, FIRST_BACK_OFF = 30, LONGEST_BACK_OFF = 3600;
static const double DRY_SHARE = 0.02, MOSTLY_DRY = 0.5, BUSY_SHARE = 0.5; /* of hand-overs; of threads' time */
/* A raise is undone below SLOWER times the rate before it, or below GAIN if more than half as many hand-overs
 * are dry. */
static const double SLOWER = 0.97, GAIN = 1.01;
enum { FEW_HAND_OVERS = 16, MEMORY_SHARE = 8 };

/* --- bounds --------------------------------------------------------------------------------------------------- */

cleat_worker_bounds cleat_worker_bounds_find(int cpus, const cleat_worker_memory *memory) {
    cleat_worker_bounds bounds = {.most = cpus > 1 ? cpus : 1};
    snprintf(bounds.why, sizeof bounds.why, "%d CPU%s", bounds.most, bounds.most == 1 ? "" : "s");
    const int prefetch = memory->prefetch > 1 ? memory->prefetch : 1;
    const int64_t slots = (memory->most_slots - memory->held) / prefetch;
    if (slots < bounds.most) {
        bounds.most = slots > 1 ? (int)slots : 1;
        snprintf(bounds.why, sizeof bounds.why, "%d prepared batches", memory->most_slots);
    }
    if (memory->host_free <= 0 || memory->slot_bytes <= 0) return bounds;
    const int64_t room = (memory->host_free / MEMORY_SHARE / memory->slot_bytes - memory->held) / prefetch;
    if (room < bounds.most) {
        bounds.most = room > 1 ? (int)room : 1;
        snprintf(bounds.why, sizeof bounds.why, "1/8 of %.0f MiB of free host memory",
                 (double)memory->host_free / 1048576.0);
    }
    return bounds;
}

/* --- decisions ------------------------------------------------------------------------------------------------ */

/* The changes between two samples. */
typedef struct interval {
    double seconds, rate, busy, dry_share;
    uint64_t hand_overs, dry;
} interval;

static interval between(const cleat_worker_sample *then, const cleat_worker_sample *now, int workers) {
    interval of = {.seconds = now->seconds - then->seconds,
                   .hand_overs = now->hand_overs - then->hand_overs,
                   .dry = now->dry - then->dry};
    if (of.seconds > 0) {
        of.rate = (now->work - then->work) / of.seconds;
        of.busy = (now->fill_seconds - then->fill_seconds) / of.seconds / workers;
    }
    if (of.hand_overs > 0) of.dry_share = (double)of.dry / (double)of.hand_overs;
    return of;
}

void cleat_worker_tuning_start(cleat_worker_tuning *tuning, int workers) {
    *tuning = (cleat_worker_tuning){.workers = workers, .back_off = FIRST_BACK_OFF};
}

bool cleat_worker_tuning_is_due(const cleat_worker_tuning *tuning, const cleat_worker_sample *now) {
    const double seconds = now->seconds - tuning->window.seconds;
    return seconds >= LONGEST_WINDOW ||
           (seconds >= WINDOW && now->hand_overs - tuning->window.hand_overs >= FEW_HAND_OVERS);
}

/* Returns how long the reversed direction is blocked. */
static double reverse(cleat_worker_tuning *tuning) {
    const double seconds = tuning->back_off;
    tuning->back_off = fmin(2 * tuning->back_off, LONGEST_BACK_OFF);
    return seconds;
}

/* Undoes a raise that made training slower, or that gained nothing. */
static bool undo_raise(cleat_worker_tuning *tuning, const cleat_worker_sample *now, const interval *last,
                       cleat_worker_decision *decision) {
    const double gain = tuning->rate_before > 0 ? last->rate / tuning->rate_before : 1.0;
    const bool slower = gain < SLOWER;
    if (!slower && (gain >= GAIN || last->dry_share <= tuning->dry_before / 2)) return false;
    if (slower)
        snprintf(decision->reason, sizeof decision->reason, "with %d threads training was %.1f %% slower than with %d",
                 tuning->workers, 100 * (1 - gain), tuning->workers_before);
    else
        snprintf(decision->reason, sizeof decision->reason,
                 "with %d threads training was no faster than with %d (%+.1f %%), and the device waited for %.0f %% "
                 "of the batches (%.0f %% before)",
                 tuning->workers, tuning->workers_before, 100 * (gain - 1), 100 * last->dry_share,
                 100 * tuning->dry_before);
    decision->workers = tuning->workers = tuning->workers_before;
    tuning->was_lowered = false; /* back to the earlier number, which had no known fault */
    tuning->raise_after = now->seconds + reverse(tuning);
    tuning->calm = *now;
    return true;
}

static void add_thread(cleat_worker_tuning *tuning, const cleat_worker_sample *now, const interval *last,
                       const cleat_worker_bounds *bounds, cleat_worker_decision *decision) {
    if (tuning->workers >= bounds->most) {
        if (tuning->is_full) return;
        tuning->is_full = true;
        snprintf(decision->reason, sizeof decision->reason,
                 "the device waited for %llu of %llu batches in %.1f s; more threads are not possible: %s",
                 (unsigned long long)last->dry, (unsigned long long)last->hand_overs, last->seconds, bounds->why);
        return;
    }
    snprintf(decision->reason, sizeof decision->reason,
             "the device waited for %llu of %llu batches in %.1f s; the threads were busy for %.0f %% of it",
             (unsigned long long)last->dry, (unsigned long long)last->hand_overs, last->seconds, 100 * last->busy);
    const int half = tuning->workers / 2, added = last->dry_share > MOSTLY_DRY && half > 1 ? half : 1;
    tuning->workers_before = tuning->workers;
    tuning->workers = tuning->workers + added < bounds->most ? tuning->workers + added : bounds->most;
    decision->workers = tuning->workers;
    tuning->is_trial = true;
    tuning->rate_before = last->rate;
    tuning->dry_before = last->dry_share;
    if (tuning->was_lowered) tuning->lower_after = now->seconds + reverse(tuning);
    tuning->was_lowered = false;
}

static void remove_thread(cleat_worker_tuning *tuning, const cleat_worker_sample *now, const interval *calm,
                          cleat_worker_decision *decision) {
    snprintf(decision->reason, sizeof decision->reason,
             "the device waited for no batch in %.0f s, and %d threads were busy for %.0f %% of it", calm->seconds,
             tuning->workers, 100 * calm->busy);
    decision->workers = --tuning->workers;
    tuning->was_lowered = true;
    tuning->is_full = false;
    tuning->calm = *now;
}

cleat_worker_decision cleat_worker_tuning_decide(cleat_worker_tuning *tuning, const cleat_worker_sample *now,
                                                 const cleat_worker_bounds *bounds) {
    cleat_worker_decision decision = {.workers = tuning->workers};
    const interval last = between(&tuning->window, now, tuning->workers);
    const bool is_trial = tuning->is_trial;
    tuning->window = *now;
    tuning->is_trial = false;
    if (last.dry > 0) tuning->calm = *now;
    if (is_trial && undo_raise(tuning, now, &last, &decision)) return decision;
    /* A single dry hand-over may be chance. */
    const bool dry = last.dry >= 2 && last.dry_share > DRY_SHARE;
    if (dry && now->seconds >= tuning->raise_after) add_thread(tuning, now, &last, bounds, &decision);
    const interval calm = between(&tuning->calm, now, tuning->workers);
    if (calm.seconds >= CALM && calm.busy < BUSY_SHARE && tuning->workers > 1 && now->seconds >= tuning->lower_after)
        remove_thread(tuning, now, &calm, &decision);
    return decision;
}
