/* The feed: transfers batches of a dataset into a session's graphs, through the loader's threads and pinned
 * buffers. */
#ifndef CLEAT_SRC_FEED_H
#define CLEAT_SRC_FEED_H

#include "session/session.h"

enum { CLEAT_FEED_SLOTS = 256, CLEAT_FEED_FIELDS = 16 };

typedef struct cleat_feed cleat_feed;

/* A loaded batch. The feed owns its memory, which is valid until cleat_feed_release. */
typedef struct cleat_fed {
    const cleat_micro_batch *micro_batch; /* NULL: the pass is over */
    size_t slot;
    cleat_host_batch host;
    const void *fields[CLEAT_FEED_FIELDS];
    void *bytes; /* the staging buffer of the slot */
} cleat_fed;

/* `session` and `dataset` must outlive the feed. */
cleat_status cleat_feed_open(cleat_session *session, const cleat_dataset *dataset, cleat_feed **feed,
                             cleat_error *error);
void cleat_feed_close(cleat_feed *feed);
/* Number of loader threads. */
int cleat_feed_workers(const cleat_feed *feed);

/* Starts a pass over the batches from number `first` on; see cleat_loader_start. */
cleat_status cleat_feed_start(cleat_feed *feed, const cleat_batches *batches, size_t first,
                              const cleat_rng_key *rng_key, cleat_error *error);
/* Ends the current pass, if any; its batches may be destroyed afterwards. */
void cleat_feed_stop(cleat_feed *feed);
cleat_status cleat_feed_next(cleat_feed *feed, cleat_fed *fed, cleat_error *error);
/* Starts the transfer of the batch to the device, for the next run of the graph. */
cleat_status cleat_feed_upload(cleat_feed *feed, const cleat_work_graph *graph, const cleat_fed *fed,
                               cleat_error *error);
/* Uploads the batch and enqueues the graph; waits for neither. */
cleat_status cleat_feed_run(cleat_feed *feed, const cleat_work_graph *graph, const cleat_fed *fed, cleat_error *error);
void cleat_feed_release(cleat_feed *feed, const cleat_fed *fed);

#endif
