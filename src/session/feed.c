/* The feed: connects the loader with the staging buffers of a session. Owns the loader and the buffers. */
#include "session/feed.h"

#include "cleat/card.h"
#include "core/cpus.h"
#include "core/memory.h"

#include <string.h>

struct cleat_feed {
    cleat_session *session;
    const cleat_dataset *dataset;
    cleat_loader *loader;
    int workers;
    size_t n_slots;
    cleat_staging *stagings[CLEAT_FEED_SLOTS];
    void *bytes[CLEAT_FEED_SLOTS];
    int64_t offsets[CLEAT_BUCKETS][CLEAT_FEED_FIELDS]; /* -1: the graphs have no input of this name */
};

enum { MAX_AUTO_WORKERS = 4, HELD_SLOTS = 2 };

/* Uses the number that the card file recommends if the card is known, but at most half of the CPUs. */
static int choose_workers(const cleat_session *session) {
    cleat_card card;
    int64_t setting = session->profile->loader.num_workers;
    if (setting != CLEAT_AUTO) return (int)setting;
    int cpus = cleat_cpus(), workers = cpus > 2 ? cpus / 2 : 1, most = MAX_AUTO_WORKERS;
    if (cleat_card_match(cleat_device_get_facts(session->device), &card)) most = (int)card.workers;
    return workers < most ? workers : most;
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

static cleat_status make_slots(cleat_feed *feed, cleat_error *error) {
    int64_t bytes = cleat_session_input_bytes(feed->session);
    size_t wanted = cleat_loader_slots(feed->workers, (int)feed->session->profile->loader.prefetch_factor, HELD_SLOTS);
    if (wanted > CLEAT_FEED_SLOTS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "%zu batches in flight; num_workers x prefetch_factor must be at most %d", wanted,
                          CLEAT_FEED_SLOTS - HELD_SLOTS);
    for (; feed->n_slots < wanted; ++feed->n_slots) {
        cleat_status status =
            cleat_staging_create(feed->session->exec, bytes, feed->session->profile->loader.pin_memory,
                                 &feed->stagings[feed->n_slots], error);
        if (status != CLEAT_OK) return status;
        feed->bytes[feed->n_slots] = cleat_staging_data(feed->stagings[feed->n_slots]);
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
    made->workers = choose_workers(session);
    cleat_status status = find_offsets(made, error);
    if (status == CLEAT_OK) status = make_slots(made, error);
    if (status == CLEAT_OK) {
        cleat_loader_setup setup = {.dataset = dataset,
                                    .buckets = session->work->buckets,
                                    .n_buckets = session->work->n_buckets,
                                    .workers = made->workers,
                                    .persistent = session->profile->loader.persistent_workers,
                                    .cpus = cleat_device_get_facts(session->device)->pinning,
                                    .slots = made->bytes,
                                    .n_slots = made->n_slots,
                                    .field_offset = field_offset,
                                    .field_storage = field_storage,
                                    .slot_wait = slot_wait,
                                    .user = made};
        status = cleat_loader_create(&setup, &made->loader, error);
    }
    if (status != CLEAT_OK) {
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

cleat_status cleat_feed_start(cleat_feed *feed, const cleat_batches *batches, size_t first,
                              const cleat_rng_key *rng_key, cleat_error *error) {
    return cleat_loader_start(feed->loader, batches, first, rng_key, error);
}

void cleat_feed_stop(cleat_feed *feed) {
    cleat_loader_stop(feed->loader);
}

cleat_status cleat_feed_next(cleat_feed *feed, cleat_fed *fed, cleat_error *error) {
    cleat_loaded loaded;
    cleat_status status = cleat_loader_next(feed->loader, &loaded, error);
    if (status != CLEAT_OK) return status;
    fed->micro_batch = loaded.micro_batch;
    if (!loaded.micro_batch) return CLEAT_OK;
    const cleat_bucket *bucket = &feed->session->work->buckets[loaded.micro_batch->bucket];
    fed->slot = loaded.slot;
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

cleat_status cleat_feed_upload(cleat_feed *feed, const cleat_work_graph *graph, const cleat_fed *fed,
                               cleat_error *error) {
    return cleat_exec_upload(feed->session->exec, graph->index, feed->stagings[fed->slot], error);
}

cleat_status cleat_feed_run(cleat_feed *feed, const cleat_work_graph *graph, const cleat_fed *fed, cleat_error *error) {
    cleat_status status = cleat_feed_upload(feed, graph, fed, error);
    return status == CLEAT_OK ? cleat_exec_run(feed->session->exec, graph->index, error) : status;
}

void cleat_feed_release(cleat_feed *feed, const cleat_fed *fed) {
    cleat_loader_release(feed->loader, fed->slot);
}
