/* The feed: transfers batches of a dataset into a session's graphs, through the loader's threads and pinned
 * buffers. If loader.num_workers is auto, it changes the number of threads while training (worker_tuning.h); each
 * change is logged. */
#ifndef CLEAT_SRC_FEED_H
#define CLEAT_SRC_FEED_H

#include "core/span_log.h"
#include "session/session.h"

enum { CLEAT_FEED_SLOTS = 256, CLEAT_FEED_FIELDS = 16 };

typedef struct cleat_feed cleat_feed;

/* A loaded batch. The feed owns its memory, which is valid until cleat_feed_release. */
typedef struct cleat_fed_batch {
    const cleat_micro_batch *micro_batch; /* NULL: the pass is over */
    size_t slot, index;                   /* index: of the micro-batch in the pass */
    cleat_host_batch host;
    const void *fields[CLEAT_FEED_FIELDS];
    void *bytes; /* the staging buffer of the slot */
} cleat_fed_batch;

/* `session` and `dataset` must outlive the feed. */
cleat_status cleat_feed_open(cleat_session *session, const cleat_dataset *dataset, cleat_feed **feed,
                             cleat_error *error);
void cleat_feed_close(cleat_feed *feed);
/* Number of loader threads with which the feed was opened. */
int cleat_feed_workers(const cleat_feed *feed);
/* Counts of the loader, the threads and the hand-overs included. May be called from any thread. */
cleat_loader_stats cleat_feed_statistics(cleat_feed *feed);

/* Records in `spans` when loader threads fill batches. `spans` must outlive the feed. */
void cleat_feed_log_spans(cleat_feed *feed, cleat_span_log *spans);

/* Called by the consumer's thread after each change of the number of threads, with its reason. */
typedef void (*cleat_workers_callback)(void *user, int before, int now, const char *reason);
/* At most one function; NULL: none. */
void cleat_feed_on_workers(cleat_feed *feed, cleat_workers_callback changed, void *user);

/* Starts a pass over the batches from number `first` on; see cleat_loader_start. A pass with a key is a
 * training pass: its hand-overs are counted, except the first, which waits for threads that have just
 * started. */
cleat_status cleat_feed_start(cleat_feed *feed, const cleat_batches *batches, size_t first,
                              const cleat_rng_key *rng_key, cleat_error *error);
/* Ends the current pass, if any; its batches may be destroyed afterwards. */
void cleat_feed_stop(cleat_feed *feed);
/* Excludes `seconds` of the current pass from the training time, e.g. those of a checkpoint. NULL is
 * allowed. */
void cleat_feed_exclude(cleat_feed *feed, double seconds);
cleat_status cleat_feed_next(cleat_feed *feed, cleat_fed_batch *fed, cleat_error *error);
/* Starts the transfer of the batch to the device, for the next run of the graph. */
cleat_status cleat_feed_upload(cleat_feed *feed, const cleat_work_graph *graph, const cleat_fed_batch *fed,
                               cleat_error *error);
/* Uploads the batch and enqueues the graph; waits for neither. */
cleat_status cleat_feed_run(cleat_feed *feed, const cleat_work_graph *graph, const cleat_fed_batch *fed,
                            cleat_error *error);
void cleat_feed_release(cleat_feed *feed, const cleat_fed_batch *fed);

#endif
