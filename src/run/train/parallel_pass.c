/* The exchange after a pass of which each rank computed a part. */
#include "train/parallel_pass.h"

#include "core/memory.h"

#include <string.h>

/* Bytes of a rank that are exchanged at once. */
enum { CHUNK = 1 << 20 };
/* The maximum number of samples of cleat_shares_cut. */
static const size_t MAX_SAMPLES = (size_t)1 << 30;

static cleat_ranks *ranks_of(const cleat_data_parallel *parallel) {
    return parallel ? parallel->ranks : NULL;
}

cleat_status cleat_pass_part(const cleat_data_parallel *parallel, size_t samples, size_t *first, size_t *count,
                             cleat_error *error) {
    int64_t begin = 0, own = 0;
    *first = 0;
    *count = samples;
    if (!ranks_of(parallel)) return CLEAT_OK;
    if (samples > MAX_SAMPLES)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%zu samples are too many for several ranks; the maximum is %zu",
                          samples, MAX_SAMPLES);
    cleat_data_parallel_cut((void *)parallel, (int64_t)samples, &begin, &own);
    *first = (size_t)begin;
    *count = (size_t)own;
    return CLEAT_OK;
}

/* own [size] of every rank -> *all [ranks, size], which the caller frees. */
static cleat_status gather(cleat_ranks *ranks, const void *own, size_t size, void **all, cleat_error *error) {
    void *made = cleat_alloc((size_t)cleat_ranks_count(ranks), size);
    cleat_status status =
        made ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the results of the other ranks");
    status = cleat_ranks_agree(ranks, status, error);
    if (!status) status = cleat_ranks_gather(ranks, own, size, made, error);
    if (!status) *all = made;
    if (status) cleat_free(made);
    return status;
}

cleat_status cleat_pass_add(const cleat_data_parallel *parallel, double *values, size_t count, cleat_error *error) {
    cleat_ranks *ranks = ranks_of(parallel);
    void *all;
    if (!ranks) return CLEAT_OK;
    cleat_status status = gather(ranks, values, count * sizeof *values, &all, error);
    if (status) return status;
    const double *of_rank = all; /* [ranks, count] */
    memset(values, 0, count * sizeof *values);
    for (int r = 0; r < cleat_ranks_count(ranks); ++r, of_rank += count)
        for (size_t i = 0; i < count; ++i) values[i] += of_rank[i];
    cleat_free(all);
    return CLEAT_OK;
}

cleat_status cleat_pass_add_check(const cleat_data_parallel *parallel, cleat_output_check *check, cleat_error *error) {
    cleat_ranks *ranks = ranks_of(parallel);
    void *all;
    if (!ranks) return CLEAT_OK;
    cleat_status status = gather(ranks, check, sizeof *check, &all, error);
    if (status) return status;
    const cleat_output_check *of_rank = all;
    cleat_output_check sum = {0};
    for (int r = 0; r < cleat_ranks_count(ranks); ++r) {
        const cleat_output_check *part = &of_rank[r];
        if (part->bad && (!sum.bad || part->first < sum.first)) sum.first = part->first;
        sum.bad += part->bad;
        sum.samples += part->samples;
    }
    cleat_free(all);
    *check = sum;
    return CLEAT_OK;
}

cleat_status cleat_pass_share_states(const cleat_data_parallel *parallel, unsigned char *states, size_t samples,
                                     cleat_error *error) {
    cleat_ranks *ranks = ranks_of(parallel);
    void *all;
    if (!ranks) return CLEAT_OK;
    cleat_status status = gather(ranks, states, samples, &all, error);
    if (status) return status;
    const unsigned char *of_rank = all; /* [ranks, samples] */
    for (int r = 0; r < cleat_ranks_count(ranks); ++r, of_rank += samples)
        for (size_t i = 0; i < samples; ++i)
            if (of_rank[i] > states[i]) states[i] = of_rank[i];
    cleat_free(all);
    return CLEAT_OK;
}

/* --- predictions ---------------------------------------------------------------------------------------------- */

/* A prediction on its way to rank 0; its values follow. */
typedef struct record {
    uint64_t index, sample;
    int64_t length, values;
} record;

static size_t record_bytes(const cleat_prediction *prediction) {
    return sizeof(record) + (size_t)prediction->values * sizeof *prediction->output;
}

/* The data that this rank sends; rank 0 sends nothing. *bytes [*size], which the caller frees. */
static cleat_status pack(cleat_ranks *ranks, const cleat_prediction *predictions, size_t count, char **bytes,
                         uint64_t *size, cleat_error *error) {
    const bool sends = cleat_ranks_rank(ranks) > 0;
    *size = 0;
    for (size_t i = 0; i < count && sends; ++i)
        if (predictions[i].output) *size += record_bytes(&predictions[i]);
    char *at = *bytes = cleat_alloc((size_t)*size, 1);
    if (!at) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the predictions of this rank");
    for (size_t i = 0; i < count && sends; ++i) {
        const cleat_prediction *p = &predictions[i];
        const record head = {.index = i, .sample = p->sample, .length = p->length, .values = p->values};
        if (!p->output) continue;
        memcpy(at, &head, sizeof head);
        memcpy(at + sizeof head, p->output, (size_t)p->values * sizeof *p->output);
        at += record_bytes(p);
    }
    return CLEAT_OK;
}

static cleat_status unpack(const cleat_dataset *dataset, const char *bytes, size_t size, cleat_prediction *predictions,
                           cleat_error *error) {
    for (size_t at = 0; at < size;) {
        record head;
        memcpy(&head, bytes + at, sizeof head);
        float *output = cleat_alloc((size_t)head.values, sizeof *output);
        if (!output) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the predictions of another rank");
        memcpy(output, bytes + at + sizeof head, (size_t)head.values * sizeof *output);
        cleat_prediction *p = &predictions[head.index];
        cleat_prediction_free(p);
        *p = (cleat_prediction){.dataset = dataset,
                                .sample = (size_t)head.sample,
                                .output = output,
                                .length = head.length,
                                .values = head.values};
        at += record_bytes(p);
    }
    return CLEAT_OK;
}

/* The exchange: own [sizes[rank]] of each rank goes in chunks to received[rank] on rank 0. */
typedef struct transfer {
    uint64_t *sizes;      /* [ranks] */
    char **received;      /* [ranks]; of rank 0 */
    char *chunk, *chunks; /* [CHUNK], [ranks, CHUNK] */
} transfer;

static cleat_status transfer_open(cleat_ranks *ranks, uint64_t own, transfer *t, cleat_error *error) {
    const size_t count = (size_t)cleat_ranks_count(ranks);
    void *sizes;
    cleat_status status = gather(ranks, &own, sizeof own, &sizes, error);
    if (status) return status;
    t->sizes = sizes;
    t->received = cleat_alloc(count, sizeof *t->received);
    t->chunk = cleat_alloc(CHUNK, 1);
    t->chunks = cleat_alloc(count, CHUNK);
    bool is_made = t->received && t->chunk && t->chunks;
    for (size_t r = 0; r < count && is_made && cleat_ranks_rank(ranks) == 0; ++r)
        is_made = (t->received[r] = cleat_alloc((size_t)t->sizes[r], 1)) != NULL;
    if (!is_made) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the predictions of the other ranks");
    return cleat_ranks_agree(ranks, status, error);
}

static void transfer_close(cleat_ranks *ranks, transfer *t) {
    for (int r = 0; t->received && r < cleat_ranks_count(ranks); ++r) cleat_free(t->received[r]);
    cleat_free(t->received);
    cleat_free(t->sizes);
    cleat_free(t->chunk);
    cleat_free(t->chunks);
}

static uint64_t bytes_at(uint64_t size, uint64_t at) {
    const uint64_t left = size > at ? size - at : 0;
    return left < CHUNK ? left : CHUNK;
}

static cleat_status transfer_run(cleat_ranks *ranks, const char *own, transfer *t, cleat_error *error) {
    const int count = cleat_ranks_count(ranks), rank = cleat_ranks_rank(ranks);
    cleat_status status = CLEAT_OK;
    uint64_t most = 0;
    for (int r = 0; r < count; ++r)
        if (t->sizes[r] > most) most = t->sizes[r];
    for (uint64_t at = 0; at < most && !status; at += CHUNK) {
        const uint64_t mine = bytes_at(t->sizes[rank], at);
        if (mine) memcpy(t->chunk, own + at, (size_t)mine);
        status = cleat_ranks_gather(ranks, t->chunk, CHUNK, t->chunks, error);
        for (int r = 0; r < count && !status && rank == 0; ++r) {
            const uint64_t theirs = bytes_at(t->sizes[r], at);
            if (theirs) memcpy(t->received[r] + at, t->chunks + (size_t)r * CHUNK, (size_t)theirs);
        }
    }
    return status;
}

cleat_status cleat_pass_collect(const cleat_data_parallel *parallel, const cleat_dataset *dataset,
                                cleat_prediction *predictions, size_t count, cleat_error *error) {
    cleat_ranks *ranks = ranks_of(parallel);
    transfer t = {.sizes = NULL};
    char *own = NULL;
    uint64_t size = 0;
    if (!ranks) return CLEAT_OK;
    cleat_status status = pack(ranks, predictions, count, &own, &size, error);
    status = cleat_ranks_agree(ranks, status, error);
    if (!status) status = transfer_open(ranks, size, &t, error);
    if (!status) status = transfer_run(ranks, own, &t, error);
    for (int r = 1; r < cleat_ranks_count(ranks) && !status && t.received[r]; ++r)
        status = unpack(dataset, t.received[r], (size_t)t.sizes[r], predictions, error);
    transfer_close(ranks, &t);
    cleat_free(own);
    return status;
}
