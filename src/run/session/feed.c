/* The feed: connects the loader with the staging buffers of a session. Owns the loader and the buffers. */
#include "session/feed.h"

#include "cleat/card.h"
#include "core/cgroup.h"
#include "core/clock.h"
#include "core/cpus.h"
#include "core/memory.h"
#include "device/recorder.h"
#include "session/worker_tuning.h"

#include <stdatomic.h>

struct cleat_feed {
    cleat_session *session;
    const cleat_dataset *dataset;
    cleat_loader *loader;
    int workers;
    _Atomic(cleat_span_log *) spans; /* NULL: none */
    size_t n_slots;
    cleat_staging *stagings[CLEAT_FEED_SLOTS];
    void *bytes[CLEAT_FEED_SLOTS];
    int64_t offsets[CLEAT_BUCKETS][CLEAT_FEED_FIELDS]; /* -1: the graphs have no input of this name */

    bool tunes; /* the number of threads is auto */
    cleat_worker_tuning tuning;
    cleat_workers_callback changed;
    void *changed_user;

    bool is_training; /* the current pass trains */
    bool is_first;    /* the pass has not handed over a batch */
    double started;   /* when it started; fill_seconds of the loader then: */
    double started_fill;
    cleat_worker_sample spent; /* seconds and fill_seconds of earlier training passes; work of all */
    atomic_ullong hand_overs, dry_hand_overs;
};

enum { MAX_AUTO_WORKERS = 4, HELD_SLOTS = 2 };

static cleat_worker_bounds find_bounds(const cleat_feed *feed) {
    char source[16];
    const cleat_worker_memory memory = {
        .host_free = cleat_host_memory_free("", source, sizeof source),
        .slot_bytes = cleat_session_input_bytes(feed->session),
        .prefetch = (int)feed->session->profile->loader.prefetch_factor,
        .held = HELD_SLOTS,
        .most_slots = CLEAT_FEED_SLOTS,
    };
    cleat_worker_memory without = memory;
    if (memory.host_free > 0) without.host_free += (int64_t)feed->n_slots * memory.slot_bytes;
    return cleat_worker_bounds_find(cleat_cpus(), &without);
}

/* Begins with the number that the card file recommends if the card is known, but at most with half of the CPUs. */
static int choose_workers(const cleat_feed *feed) {
    cleat_card card;
    const cleat_session *session = feed->session;
    int64_t setting = session->profile->loader.num_workers;
    if (setting != CLEAT_AUTO) return (int)setting;
    int bound = find_bounds(feed).most, cpus = cleat_cpus(), workers = cpus > 2 ? cpus / 2 : 1, most = MAX_AUTO_WORKERS;
    if (cleat_card_match(cleat_device_get_facts(session->device), &card)) most = (int)card.workers;
    if (most > bound) most = bound;
    return workers < most ? workers : most > 1 ? most : 1;
}

static int64_t field_offset(void *user, size_t bucket, size_t field) {
    const cleat_feed *feed = user;
    return feed->offsets[bucket][field];
}

/* Autocast may require samples in its storage type. Evaluation graphs have the same input types as training
 * graphs. */
static cleat_dtype field_storage(void *user, size_t bucket, size_t field) {
    const cleat_feed *feed = user;
    const cleat_field *f = cleat_dataset_field(feed->dataset, field);
    const cleat_tensor *input = cleat_graph_find(feed->session->work->evaluate[bucket].graph, f->name);
    return input ? input->dtype : f->dtype;
}

static cleat_status slot_wait(void *user, size_t slot, cleat_error *error) {
    cleat_feed *feed = user;
    return cleat_staging_wait(feed->stagings[slot], error);
}

static void log_fill(void *user, size_t index, double start, double end) {
    cleat_feed *feed = user;
    cleat_span_add(atomic_load(&feed->spans), "filling a batch", (int64_t)index, start, end);
}

void cleat_feed_log_spans(cleat_feed *feed, cleat_span_log *spans) {
    atomic_store(&feed->spans, spans);
}

static int64_t offset_in(const cleat_session *session, const cleat_work_graph *graph, const char *field) {
    const cleat_tensor *input = cleat_graph_find(graph->graph, field);
    return input ? cleat_exec_input_offset(session->exec, graph->index, input) : -1;
}

/* One slot serves both the training graph and the evaluation graph of a bucket, so the inputs of both must
 * have the same offsets. */
static cleat_status find_offsets(cleat_feed *feed, cleat_error *error) {
    const cleat_session *session = feed->session;
    for (size_t b = 0; b < session->work->n_buckets; ++b)
        for (size_t f = 0; f < cleat_dataset_fields(feed->dataset); ++f) {
            const char *name = cleat_dataset_field(feed->dataset, f)->name;
            feed->offsets[b][f] = offset_in(session, &session->work->evaluate[b], name);
            if (session->work->train[b].graph &&
                offset_in(session, &session->work->train[b], name) != feed->offsets[b][f])
                return cleat_fail(error, CLEAT_ERR_SHAPE, "input '%s' has different offsets in training and evaluation",
                                  name);
        }
    return CLEAT_OK;
}

/* Makes the slots of `workers` threads; slots that exist stay. */
static cleat_status make_slots(cleat_feed *feed, int workers, cleat_error *error) {
    int64_t bytes = cleat_session_input_bytes(feed->session);
    size_t wanted = cleat_loader_slots(workers, (int)feed->session->profile->loader.prefetch_factor, HELD_SLOTS);
    if (wanted > CLEAT_FEED_SLOTS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "%zu batches in flight; num_workers x prefetch_factor must be at most %d", wanted,
                          CLEAT_FEED_SLOTS - HELD_SLOTS);
    for (; feed->n_slots < wanted; ++feed->n_slots) {
        cleat_status status =
            cleat_staging_create(feed->session->exec, bytes, feed->session->profile->loader.pin_memory,
                                 &feed->stagings[feed->n_slots], error);
        if (status) return status;
        feed->bytes[feed->n_slots] = cleat_staging_data(feed->stagings[feed->n_slots]);
        if (feed->loader) status = cleat_loader_add_slot(feed->loader, feed->bytes[feed->n_slots], error);
        if (status) {
            cleat_staging_destroy(feed->stagings[feed->n_slots]);
            return status;
        }
    }
    return CLEAT_OK;
}

cleat_status cleat_feed_open(cleat_session *session, const cleat_dataset *dataset, cleat_feed **feed,
                             cleat_error *error) {
    if (cleat_dataset_fields(dataset) > CLEAT_FEED_FIELDS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the dataset has more than %d fields", CLEAT_FEED_FIELDS);
    cleat_feed *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the feed");
    made->session = session;
    made->dataset = dataset;
    made->workers = choose_workers(made);
    made->tunes = session->profile->loader.num_workers == CLEAT_AUTO;
    cleat_worker_tuning_start(&made->tuning, made->workers);
    cleat_status status = find_offsets(made, error);
    if (!status) status = make_slots(made, made->workers, error);
    if (!status) {
        cleat_loader_setup setup = {.dataset = dataset,
                                    .buckets = session->work->buckets,
                                    .n_buckets = session->work->n_buckets,
                                    .workers = made->workers,
                                    .persistent = session->profile->loader.persistent_workers,
                                    .cpus = cleat_device_get_facts(session->device)->pinning,
                                    .slots = made->bytes,
                                    .n_slots = made->n_slots,
                                    .max_slots = CLEAT_FEED_SLOTS,
                                    .field_offset = field_offset,
                                    .field_storage = field_storage,
                                    .slot_wait = slot_wait,
                                    .filled = log_fill,
                                    .user = made};
        status = cleat_loader_create(&setup, &made->loader, error);
    }
    if (status) {
        cleat_feed_close(made);
        return status;
    }
    *feed = made;
    return CLEAT_OK;
}

void cleat_feed_close(cleat_feed *feed) {
    if (!feed) return;
    cleat_loader_destroy(feed->loader);
    for (size_t i = 0; i < feed->n_slots; ++i) cleat_staging_destroy(feed->stagings[i]);
    cleat_free(feed);
}

int cleat_feed_workers(const cleat_feed *feed) {
    return feed->workers;
}

cleat_loader_stats cleat_feed_statistics(cleat_feed *feed) {
    cleat_loader_stats stats = cleat_loader_statistics(feed->loader);
    stats.hand_overs = atomic_load(&feed->hand_overs);
    stats.dry_hand_overs = atomic_load(&feed->dry_hand_overs);
    return stats;
}

void cleat_feed_on_workers(cleat_feed *feed, cleat_workers_callback changed, void *user) {
    feed->changed = changed;
    feed->changed_user = user;
}

/* --- the number of threads ------------------------------------------------------------------------------------ */

static cleat_worker_sample sample_now(cleat_feed *feed) {
    cleat_worker_sample now = feed->spent;
    now.hand_overs = atomic_load(&feed->hand_overs);
    now.dry = atomic_load(&feed->dry_hand_overs);
    if (feed->is_training) {
        now.seconds += cleat_seconds() - feed->started;
        now.fill_seconds += cleat_loader_statistics(feed->loader).fill_seconds - feed->started_fill;
    }
    return now;
}

static void set_workers(cleat_feed *feed, int before, const cleat_worker_decision *decision) {
    cleat_error error = {0};
    cleat_status status = make_slots(feed, decision->workers, &error);
    if (!status) status = cleat_loader_set_workers(feed->loader, decision->workers, &error);
    if (status) {
        feed->tunes = false;
        cleat_log(CLEAT_LOG_WARNING, "loader: the number of threads remains %d: %s",
                  cleat_loader_statistics(feed->loader).workers, error.text);
        return;
    }
    cleat_log(CLEAT_LOG_INFO, "loader: %d -> %d threads: %s", before, decision->workers, decision->reason);
    if (feed->changed) feed->changed(feed->changed_user, before, decision->workers, decision->reason);
}

static void tune(cleat_feed *feed) {
    const cleat_worker_sample now = sample_now(feed);
    if (!cleat_worker_tuning_is_due(&feed->tuning, &now)) return;
    const cleat_worker_bounds bounds = find_bounds(feed);
    const int before = feed->tuning.workers;
    const cleat_worker_decision decision = cleat_worker_tuning_decide(&feed->tuning, &now, &bounds);
    if (decision.workers != before)
        set_workers(feed, before, &decision);
    else if (decision.reason[0])
        cleat_log(CLEAT_LOG_INFO, "loader: %d threads: %s", before, decision.reason);
}

/* A hand-over is dry if the host had to wait for the batch and the queue is empty when it comes. An empty
 * queue alone proves nothing: it is empty by construction after the host has waited for results, and a
 * host that enqueues too slowly is not the loader's fault. */
static void count_hand_over(cleat_feed *feed, const cleat_loaded_batch *loaded) {
    const cleat_bucket *bucket = &feed->session->work->buckets[loaded->micro_batch->bucket];
    feed->spent.work += (double)(bucket->length * bucket->micro_batch_size);
    if (!feed->is_first) {
        atomic_fetch_add(&feed->hand_overs, 1);
        if (loaded->waited && cleat_device_is_idle(feed->session->device)) atomic_fetch_add(&feed->dry_hand_overs, 1);
    }
    feed->is_first = false;
}

/* --- passes --------------------------------------------------------------------------------------------------- */

cleat_status cleat_feed_start(cleat_feed *feed, const cleat_batches *batches, size_t first,
                              const cleat_rng_key *rng_key, cleat_error *error) {
    cleat_feed_stop(feed);
    feed->is_training = feed->is_first = rng_key != NULL;
    feed->started = cleat_seconds();
    feed->started_fill = cleat_loader_statistics(feed->loader).fill_seconds;
    return cleat_loader_start(feed->loader, batches, first, rng_key, error);
}

void cleat_feed_stop(cleat_feed *feed) {
    cleat_loader_stop(feed->loader);
    const cleat_worker_sample now = sample_now(feed);
    feed->spent.seconds = now.seconds;
    feed->spent.fill_seconds = now.fill_seconds;
    feed->is_training = false;
}

void cleat_feed_exclude(cleat_feed *feed, double seconds) {
    if (feed && feed->is_training) feed->spent.seconds -= seconds;
}

cleat_status cleat_feed_next(cleat_feed *feed, cleat_fed_batch *fed, cleat_error *error) {
    cleat_loaded_batch loaded;
    cleat_status status = cleat_loader_next(feed->loader, &loaded, error);
    if (status) return status;
    fed->micro_batch = loaded.micro_batch;
    if (!loaded.micro_batch) return CLEAT_OK;
    if (feed->is_training) count_hand_over(feed, &loaded);
    if (feed->is_training && feed->tunes) tune(feed);
    const cleat_bucket *bucket = &feed->session->work->buckets[loaded.micro_batch->bucket];
    fed->slot = loaded.slot;
    fed->index = loaded.index;
    fed->bytes = feed->bytes[loaded.slot];
    for (size_t f = 0; f < cleat_dataset_fields(feed->dataset); ++f) {
        int64_t offset = feed->offsets[loaded.micro_batch->bucket][f];
        fed->fields[f] = offset < 0 ? NULL : (const char *)fed->bytes + offset;
    }
    fed->host = (cleat_host_batch){.batch = bucket->micro_batch_size,
                                   .length = bucket->length,
                                   .fields = fed->fields,
                                   .dataset = feed->dataset,
                                   .samples = loaded.micro_batch->samples,
                                   .count = loaded.micro_batch->count};
    return CLEAT_OK;
}

cleat_status cleat_feed_upload(cleat_feed *feed, const cleat_work_graph *graph, const cleat_fed_batch *fed,
                               cleat_error *error) {
    cleat_recorder_set_batch(feed->session->device, (int64_t)fed->index);
    cleat_status status = cleat_exec_upload(feed->session->exec, graph->index, feed->stagings[fed->slot], error);
    cleat_recorder_set_batch(feed->session->device, -1); /* later uploads belong to other graphs */
    return status;
}

cleat_status cleat_feed_run(cleat_feed *feed, const cleat_work_graph *graph, const cleat_fed_batch *fed,
                            cleat_error *error) {
    cleat_status status = cleat_feed_upload(feed, graph, fed, error);
    return status ? status : cleat_exec_run(feed->session->exec, graph->index, error);
}

void cleat_feed_release(cleat_feed *feed, const cleat_fed_batch *fed) {
    cleat_loader_release(feed->loader, fed->slot);
}
