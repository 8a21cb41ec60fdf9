/* Worker finder: the loader alone, steps without the loader, and both together, for several numbers of threads. */
#include "cleat/bench.h"

#include "bench/steps.h"
#include "cleat/doctor.h"
#include "core/cgroup.h"
#include "core/clock.h"
#include "core/cpus.h"
#include "core/memory.h"
#include "train/engine.h"
#include "train/run_data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP_BATCHES = 10, WARM_UP_STEPS = 2, MIN_STEPS = 4, ROUNDS = 2, RESIDENT = 2, MAX_INTERVALS = 1 << 16 };
static const double DEFAULT_SECONDS = 2, SLOWEST = 6; /* a measurement ends after SLOWEST times its seconds */
static const double CLOSE = 1.02;                     /* numbers of threads within 2 % of the best are as good */
static const double FED = 0.9; /* the loader suffices if training reaches 90 % of the device's rate */

/* A batch that stays in host memory: the same steps without a loader. Two buffers, so that one can be filled while
 * the other is transferred. */
typedef struct resident_batch {
    cleat_staging *stagings[RESIDENT];
    cleat_fed_batch fed[RESIDENT];
    int next;
} resident_batch;

typedef struct worker_finder {
    cleat_profile *profile; /* a copy; loader.num_workers is the number being measured */
    cleat_engine engine;
    cleat_run_data data;
    resident_batch resident[CLEAT_BUCKETS];
    int64_t step; /* steps enqueued so far */
    double seconds;
} worker_finder;

static cleat_session *session_of(worker_finder *finder) {
    return finder->engine.session;
}

/* --- opening -------------------------------------------------------------------------------------------------- */

static cleat_status open_session(worker_finder *finder, cleat_error *error) {
    cleat_engine *engine = &finder->engine;
    const cleat_fit_request request =
        cleat_fit_request_for(finder->profile, engine->model, CLEAT_FOR_TRAINING, &finder->data.lengths,
                              cleat_device_get_facts(engine->device), NULL);
    cleat_status status = cleat_session_fit(engine->device, &request, &engine->session, error);
    if (!status) status = cleat_session_initialise(engine->session, (uint64_t)finder->profile->run.seed, error);
    return status;
}

static cleat_status open_finder(worker_finder *finder, const cleat_profile *profile, cleat_error *error) {
    cleat_engine *engine = &finder->engine;
    cleat_status status = cleat_profile_clone(profile, &finder->profile, error);
    if (!status) status = cleat_doctor_open_device(profile->run.device, &engine->device, error);
    if (!status) status = cleat_profile_create_model(finder->profile, &engine->model, error);
    if (!status) status = cleat_run_data_open(&finder->data, engine->model, finder->profile, NULL, error);
    if (!status) status = cleat_run_data_count(&finder->data, engine->model, finder->profile, error);
    if (!status) status = open_session(finder, error);
    if (!status) finder->profile->loader.num_workers = 1;
    if (!status) status = cleat_engine_bind(engine, finder->data.dataset, CLEAT_NONE, error);
    if (!status)
        status =
            cleat_run_data_begin_epoch(&finder->data, engine->session->work, (uint64_t)profile->run.seed, 0, error);
    return status;
}

static void close_finder(worker_finder *finder) {
    cleat_feed_close(finder->engine.feed);
    finder->engine.feed = NULL;
    for (size_t b = 0; b < CLEAT_BUCKETS; ++b)
        for (int i = 0; i < RESIDENT; ++i) cleat_staging_destroy(finder->resident[b].stagings[i]);
    cleat_run_data_close(&finder->data);
    cleat_engine_close(&finder->engine);
    cleat_profile_destroy(finder->profile);
}

/* A feed with a fixed number of threads. */
static cleat_status use_workers(worker_finder *finder, int workers, cleat_error *error) {
    cleat_feed_close(finder->engine.feed);
    finder->engine.feed = NULL;
    finder->profile->loader.num_workers = workers;
    return cleat_feed_open(session_of(finder), finder->data.dataset, &finder->engine.feed, error);
}

/* --- the loader alone ----------------------------------------------------------------------------------------- */

/* The next batch; after the last one the pass begins again. */
static cleat_status next_batch(worker_finder *finder, cleat_fed_batch *fed, cleat_error *error) {
    cleat_feed *feed = finder->engine.feed;
    cleat_status status = cleat_feed_next(feed, fed, error);
    if (status || fed->micro_batch) return status;
    status = cleat_feed_start(feed, finder->data.pass, 0, &finder->data.rng_key, error);
    return status ? status : cleat_feed_next(feed, fed, error);
}

/* intervals [count]: seconds from one batch to the next. Keeps the better of the rounds. */
static void summarize_supply(double *intervals, size_t count, int64_t samples, double seconds, double fill_seconds,
                             cleat_worker_point *point) {
    if ((double)samples / seconds <= point->supply) return;
    qsort(intervals, count, sizeof *intervals, cleat_ascending);
    point->supply = (double)samples / seconds;
    point->batch_ms_p50 = 1e3 * intervals[count / 2];
    point->batch_ms_p95 = 1e3 * intervals[count * 95 / 100];
    point->batch_ms_max = 1e3 * intervals[count - 1];
    point->fill_ms = 1e3 * fill_seconds / (double)count;
}

/* The warm-up takes at least what is prepared in advance. */
static cleat_status measure_supply(worker_finder *finder, cleat_worker_point *point, cleat_error *error) {
    const int prefetch = (int)finder->profile->loader.prefetch_factor;
    const size_t slots = cleat_loader_slots(point->workers, prefetch, 0);
    const size_t warm_up = slots > WARM_UP_BATCHES ? slots : WARM_UP_BATCHES;
    double *intervals = cleat_alloc(MAX_INTERVALS, sizeof *intervals);
    if (!intervals) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for timings");
    double first = 0, last = 0, first_fill = 0;
    int64_t samples = 0;
    size_t count = 0;
    cleat_status status = cleat_feed_start(finder->engine.feed, finder->data.pass, 0, &finder->data.rng_key, error);
    for (size_t i = 0; !status && count < MAX_INTERVALS; ++i) {
        cleat_fed_batch fed;
        status = next_batch(finder, &fed, error);
        if (status) break;
        const double now = cleat_seconds();
        if (i >= warm_up) {
            intervals[count++] = now - last;
            samples += fed.micro_batch->count;
        } else {
            first = now;
            first_fill = cleat_feed_statistics(finder->engine.feed).fill_seconds;
        }
        last = now;
        cleat_feed_release(finder->engine.feed, &fed);
        if (count >= WARM_UP_BATCHES && now - first >= finder->seconds / ROUNDS) break;
    }
    const double filled = cleat_feed_statistics(finder->engine.feed).fill_seconds - first_fill;
    cleat_feed_stop(finder->engine.feed);
    if (!status) summarize_supply(intervals, count, samples, last - first, filled, point);
    cleat_free(intervals);
    return status;
}

/* --- steps ---------------------------------------------------------------------------------------------------- */

/* Copies a loaded batch into resident memory. */
static cleat_status keep_batch(worker_finder *finder, const cleat_fed_batch *fed, resident_batch *kept,
                               cleat_error *error) {
    const int64_t bytes = cleat_session_input_bytes(session_of(finder));
    for (int i = 0; i < RESIDENT; ++i) {
        cleat_status status = cleat_staging_create(session_of(finder)->exec, bytes, finder->profile->loader.pin_memory,
                                                   &kept->stagings[i], error);
        if (status) return status;
        cleat_fed_batch *copy = &kept->fed[i];
        *copy = *fed;
        copy->bytes = cleat_staging_data(kept->stagings[i]);
        memcpy(copy->bytes, fed->bytes, (size_t)bytes);
        for (size_t f = 0; f < cleat_dataset_fields(finder->data.dataset); ++f)
            if (fed->fields[f])
                copy->fields[f] = (const char *)copy->bytes + ((const char *)fed->fields[f] - (const char *)fed->bytes);
        copy->host.fields = copy->fields;
    }
    return CLEAT_OK;
}

/* Loads the first batch of each bucket that occurs. */
static cleat_status load_resident(worker_finder *finder, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < cleat_batches_count(finder->data.pass) && !status; ++i) {
        resident_batch *kept = &finder->resident[cleat_batches_get(finder->data.pass, i)->bucket];
        cleat_fed_batch fed;
        if (kept->stagings[0]) continue;
        status = cleat_feed_start(finder->engine.feed, finder->data.pass, i, &finder->data.rng_key, error);
        if (!status) status = cleat_feed_next(finder->engine.feed, &fed, error);
        if (status) break;
        status = keep_batch(finder, &fed, kept, error);
        cleat_feed_release(finder->engine.feed, &fed);
        cleat_feed_stop(finder->engine.feed);
    }
    return status;
}

static cleat_status run_graph(worker_finder *finder, const cleat_fed_batch *fed, cleat_staging *staging,
                              const cleat_global_batch *global_batch, cleat_error *error) {
    cleat_session *session = session_of(finder);
    const cleat_work_graph *graph = &session->work->train[fed->micro_batch->bucket];
    const cleat_dropout_key key = {
        .seed = (uint64_t)finder->profile->run.seed, .step = finder->step, .first = fed->micro_batch->first};
    cleat_session_prepare(session, graph, fed->bytes, &fed->host, global_batch, &key);
    if (!staging) return cleat_feed_run(finder->engine.feed, graph, fed, error);
    cleat_status status = cleat_exec_upload(session->exec, graph->index, staging, error);
    return status ? status : cleat_exec_run(session->exec, graph->index, error);
}

static cleat_status run_micro_batch(worker_finder *finder, size_t index, bool resident,
                                    const cleat_global_batch *global_batch, cleat_error *error) {
    cleat_fed_batch fed;
    cleat_status status;
    if (resident) {
        resident_batch *kept = &finder->resident[cleat_batches_get(finder->data.pass, index)->bucket];
        const int i = kept->next++ % RESIDENT;
        status = cleat_staging_wait(kept->stagings[i], error);
        return status ? status : run_graph(finder, &kept->fed[i], kept->stagings[i], global_batch, error);
    }
    status = next_batch(finder, &fed, error);
    if (status) return status;
    status = run_graph(finder, &fed, NULL, global_batch, error);
    cleat_feed_release(finder->engine.feed, &fed);
    return status;
}

/* The update at a learning rate of 0 does the work of any other, and the loss stays finite. */
static cleat_status run_step(worker_finder *finder, const cleat_global_batch *global_batch, bool resident,
                             cleat_error *error) {
    cleat_session *session = session_of(finder);
    cleat_staging *staging = finder->engine.updates[finder->step % CLEAT_UPDATE_STAGINGS];
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < global_batch->micro_batches && !status; ++i)
        status = run_micro_batch(finder, global_batch->first + i, resident, global_batch, error);
    if (!status) status = cleat_staging_wait(staging, error);
    if (status) return status;
    cleat_session_prepare_update(session, cleat_staging_data(staging), 0, finder->step);
    status = cleat_exec_upload(session->exec, session->work->update.index, staging, error);
    if (!status) status = cleat_exec_run(session->exec, session->work->update.index, error);
    ++finder->step;
    return status;
}

typedef struct step_result {
    int64_t steps, samples;
    double seconds;
} step_result;

/* Runs `steps` optimizer steps from the beginning of the pass, after a warm-up, and waits for them; 0: as
 * many as fit into the seconds of a measurement. The same number for all thread counts means the same
 * batches. */
static cleat_status run_steps(worker_finder *finder, bool resident, int64_t steps, double seconds, step_result *result,
                              cleat_error *error) {
    cleat_exec *exec = session_of(finder)->exec;
    cleat_status status = CLEAT_OK;
    double start = 0;
    *result = (step_result){0};
    if (!resident) status = cleat_feed_start(finder->engine.feed, finder->data.pass, 0, &finder->data.rng_key, error);
    const double limit = steps ? SLOWEST * seconds : seconds;
    for (int64_t i = -WARM_UP_STEPS; !status; ++i) {
        cleat_global_batch global_batch;
        if (i == 0) {
            status = cleat_exec_finish(exec, error);
            start = cleat_seconds();
            if (status) break;
        }
        const size_t count = cleat_batches_global_batch_count(finder->data.pass);
        cleat_batches_global_batch(finder->data.pass, (size_t)(i + WARM_UP_STEPS) % count, &global_batch);
        status = run_step(finder, &global_batch, resident, error);
        /* A clock without a wait would measure how fast steps are enqueued. */
        if (!status && resident && !steps) status = cleat_exec_finish(exec, error);
        if (i < 0 || status) continue;
        ++result->steps;
        result->samples += global_batch.samples;
        if (steps && result->steps >= steps) break;
        if (result->steps >= MIN_STEPS && cleat_seconds() - start >= limit) break;
    }
    if (!status) status = cleat_exec_finish(exec, error);
    result->seconds = cleat_seconds() - start;
    if (!resident) cleat_feed_stop(finder->engine.feed);
    return status;
}

/* Runs every graph once, which builds its kernels. */
static cleat_status run_each_graph(worker_finder *finder, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    bool done[CLEAT_BUCKETS] = {false};
    for (size_t i = 0; i < cleat_batches_global_batch_count(finder->data.pass) && !status; ++i) {
        cleat_global_batch global_batch;
        cleat_batches_global_batch(finder->data.pass, i, &global_batch);
        bool *known = &done[cleat_batches_get(finder->data.pass, global_batch.first)->bucket];
        if (!*known) status = run_step(finder, &global_batch, true, error);
        *known = true;
    }
    return status ? status : cleat_exec_finish(session_of(finder)->exec, error);
}

/* Loads the resident batches, and finds the number of steps of each measurement. */
static cleat_status prepare_steps(worker_finder *finder, cleat_worker_search *search, cleat_error *error) {
    step_result trial;
    cleat_status status = load_resident(finder, error);
    if (!status) status = run_each_graph(finder, error);
    if (!status) status = run_steps(finder, true, 0, finder->seconds / 2, &trial, error);
    if (status) return status;
    search->steps = (int64_t)ceil((double)trial.steps / trial.seconds * finder->seconds / ROUNDS);
    if (search->steps < MIN_STEPS) search->steps = MIN_STEPS;
    return CLEAT_OK;
}

/* Whether `rate` is the best of the rounds so far. The difference between rounds counts as noise of the
 * search. */
static bool is_better(cleat_worker_search *search, double before, double rate) {
    if (before > 0) search->noise = fmax(search->noise, fmax(before, rate) / fmin(before, rate) - 1);
    return rate > before;
}

/* The rate of the device alone; keeps the better of the rounds. */
static cleat_status measure_demand(worker_finder *finder, cleat_worker_search *search, cleat_error *error) {
    step_result timed;
    cleat_status status = run_steps(finder, true, search->steps, finder->seconds, &timed, error);
    if (status) return status;
    const double rate = (double)timed.samples / timed.seconds;
    if (!is_better(search, search->demand, rate)) return CLEAT_OK;
    search->demand = rate;
    search->demand_step_ms = 1e3 * timed.seconds / (double)timed.steps;
    return CLEAT_OK;
}

/* Real steps; keeps the better of the rounds. */
static cleat_status measure_together(worker_finder *finder, cleat_worker_search *search, cleat_worker_point *point,
                                     cleat_error *error) {
    step_result timed;
    const cleat_loader_stats before = cleat_feed_statistics(finder->engine.feed);
    cleat_status status = run_steps(finder, false, search->steps, finder->seconds, &timed, error);
    if (status) return status;
    const cleat_loader_stats after = cleat_feed_statistics(finder->engine.feed);
    const double rate = (double)timed.samples / timed.seconds;
    const uint64_t hand_overs = after.hand_overs - before.hand_overs,
                   dry = after.dry_hand_overs - before.dry_hand_overs;
    if (!is_better(search, point->samples_per_second, rate)) return CLEAT_OK;
    point->samples_per_second = rate;
    point->step_ms = 1e3 * timed.seconds / (double)timed.steps;
    point->dry_share = hand_overs ? (double)dry / (double)hand_overs : 0.0;
    return CLEAT_OK;
}

/* --- verdict -------------------------------------------------------------------------------------------------- */

void cleat_worker_search_select(cleat_worker_search *search) {
    const cleat_worker_point *best = &search->points[0], *chosen = NULL;
    for (size_t i = 1; i < search->count; ++i)
        if (search->points[i].samples_per_second > best->samples_per_second) best = &search->points[i];
    for (size_t i = 0; i < search->count; ++i) {
        const cleat_worker_point *point = &search->points[i];
        if (point->samples_per_second * CLOSE < best->samples_per_second) continue;
        if (!chosen || point->workers < chosen->workers) chosen = point;
    }
    search->chosen = chosen->workers;
    if (best->samples_per_second > search->demand) { /* noise: training was just measured to be faster */
        search->demand = best->samples_per_second;
        search->demand_step_ms = best->step_ms;
    }
    char *text = search->verdict;
    const size_t size = sizeof search->verdict;
    const char *threads = chosen->workers == 1 ? "thread" : "threads",
               *verb = chosen->workers == 1 ? "supplies" : "supply";
    const double share = chosen->samples_per_second / search->demand;
    int used;
    if (share >= FED) {
        snprintf(
            text, size,
            "device-bound: %d %s %s %.0f samples/s, the device alone processes %.0f, training %.0f; a faster loader "
            "would gain at most %.0f %%",
            chosen->workers, threads, verb, chosen->supply, search->demand, chosen->samples_per_second,
            fmax(0, 100 / share - 100));
    } else if (chosen->supply < search->demand) {
        used =
            snprintf(text, size,
                     "loader-bound: %d %s %s %.0f samples/s, the device alone processes %.0f, training %.0f; a thread "
                     "fills a batch in %.1f ms, a step of the device alone takes %.1f ms; ",
                     chosen->workers, threads, verb, chosen->supply, search->demand, chosen->samples_per_second,
                     chosen->fill_ms, search->demand_step_ms);
        if (used < 0 || (size_t)used >= size) return;
        snprintf(text + used, size - (size_t)used, "%s",
                 chosen->workers >= search->cpus
                     ? "more CPUs, smaller samples, less augmentation, or for images a larger data.cache_mb "
                       "would help"
                     : "more threads gained nothing: check the disk, and whether other programs use the CPUs");
    } else {
        snprintf(text, size,
                 "shared resources: %d %s %s %.0f samples/s, the device alone processes %.0f, training %.0f: loader "
                 "and device share CPUs or memory bandwidth",
                 chosen->workers, threads, verb, chosen->supply, search->demand, chosen->samples_per_second);
    }
}

/* --- public call ---------------------------------------------------------------------------------------------- */

/* The requested numbers, or the default ones up to the number of CPUs. */
static cleat_status list_counts(const cleat_worker_search_options *options, const cleat_profile *profile,
                                cleat_worker_search *search, cleat_error *error) {
    static const int usual[] = {0, 1, 2, 4, 8, 12, 16};
    const int *counts = options->n_counts ? options->counts : usual;
    const size_t n = options->n_counts ? options->n_counts : sizeof usual / sizeof *usual;
    const int64_t prefetch = profile->loader.prefetch_factor;
    for (size_t i = 0; i < n; ++i) {
        const bool beyond = counts[i] > (search->cpus > 1 ? search->cpus : 1);
        if (beyond && !options->n_counts) continue;
        if (search->count == CLEAT_WORKER_POINTS)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "at most %d numbers of threads", CLEAT_WORKER_POINTS);
        if (counts[i] < 0 || cleat_loader_slots(counts[i], (int)prefetch, 2) > CLEAT_FEED_SLOTS)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                              "%d threads: with loader.prefetch_factor = %lld there can be 0 to %lld", counts[i],
                              (long long)prefetch, (long long)((CLEAT_FEED_SLOTS - 2) / prefetch));
        search->points[search->count++] = (cleat_worker_point){.workers = counts[i], .beyond_cpus = beyond};
    }
    return CLEAT_OK;
}

static cleat_status measure(worker_finder *finder, const cleat_worker_search_options *options,
                            cleat_worker_search *search, cleat_error *error) {
    cleat_status status = prepare_steps(finder, search, error);
    for (int round = 0; round < ROUNDS && !status; ++round) {
        cleat_log(CLEAT_LOG_INFO, "measuring steps without the loader (round %d of %d)", round + 1, ROUNDS);
        status = measure_demand(finder, search, error);
        for (size_t i = 0; i < search->count && !status; ++i) {
            cleat_worker_point *point = &search->points[i];
            cleat_log(CLEAT_LOG_INFO, "measuring %d loader threads (round %d of %d)", point->workers, round + 1,
                      ROUNDS);
            status = use_workers(finder, point->workers, error);
            if (!status) status = measure_supply(finder, point, error);
            if (!status) status = measure_together(finder, search, point, error);
            if (!status && round == ROUNDS - 1 && options->point) options->point(options->user, point);
        }
    }
    return status;
}

cleat_status cleat_find_workers(const cleat_profile *profile, const cleat_worker_search_options *options,
                                cleat_worker_search *search, cleat_error *error) {
    const cleat_worker_search_options defaults = {0};
    char source[16];
    if (!options) options = &defaults;
    *search = (cleat_worker_search){.cpus = cleat_cpus()};
    if (!cleat_cgroup_cpus("", &search->quota, source, sizeof source)) search->quota = 0;
    cleat_status status = list_counts(options, profile, search, error);
    if (status) return status;
    worker_finder *finder = cleat_alloc(1, sizeof *finder);
    if (!finder) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the worker finder");
    finder->seconds = options->seconds > 0 ? options->seconds : DEFAULT_SECONDS;
    status = open_finder(finder, profile, error);
    if (!status) status = measure(finder, options, search, error);
    if (!status) cleat_worker_search_select(search);
    close_finder(finder);
    cleat_free(finder);
    return status;
}
