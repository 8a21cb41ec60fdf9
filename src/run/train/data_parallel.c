/* The exchange of gradients between ranks, and their shares of the work. */
#include "train/data_parallel.h"

#include "cleat/doctor.h"
#include "core/clock.h"
#include "core/files.h"
#include "core/memory.h"
#include "exec/copy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Steps before the first comparisons of the replicas, and before measured times are good enough for new
 * shares. */
enum { FIRST_CHECKS = 3, STEPS_TO_SETTLE = 2, STEPS_TO_MEASURE = 5, STEPS_TO_REFINE = 20, STEPS_BETWEEN = 200 };
/* Average share in a pass over samples: fine enough to be in proportion to the speeds. */
enum { FINE_SHARES = 100 };
/* New shares are adopted if they shorten a step to this fraction; a smaller gain suffices over more
 * measured steps. */
static const double WORTH = 0.9, WORTH_LATER = 0.95;
/* Two measured rates count as equal if their ratio is at least this. */
static const double NOISE = 0.85;

/* --- the device of a rank ----------------------------------------------------------------------------------------- */

/* The ranks of a machine with several GPUs take one each. */
static cleat_status choose_gpu(int local_rank, char text[24], cleat_error *error) {
    cleat_device_facts *facts = NULL;
    size_t count = 0;
    int gpus = 0, seen = 0;
    cleat_status status = cleat_device_list(&facts, &count, error);
    if (status) return status;
    for (size_t i = 0; i < count; ++i) gpus += facts[i].kind == CLEAT_DEVICE_GPU;
    for (size_t i = 0; i < count && gpus > 1; ++i)
        if (facts[i].kind == CLEAT_DEVICE_GPU && seen++ == local_rank % gpus) snprintf(text, 24, "%zu", i);
    cleat_device_list_free(facts);
    return CLEAT_OK;
}

cleat_status cleat_rank_open_device(cleat_ranks *ranks, const char *wanted, cleat_device **device, cleat_error *error) {
    const char *selector = cleat_ranks_device(ranks, wanted);
    char number[24] = "";
    cleat_status status = CLEAT_OK;
    if (ranks && (strcmp(selector, "auto") == 0 || strcmp(selector, "gpu") == 0))
        status = choose_gpu(cleat_ranks_local_rank(ranks), number, error);
    return status ? status : cleat_doctor_open_device(*number ? number : selector, device, error);
}

/* --- shares --------------------------------------------------------------------------------------------------- */

static cleat_status use_given(cleat_data_parallel *parallel, const cleat_int_list *given, cleat_error *error) {
    const int count = cleat_ranks_count(parallel->ranks);
    int64_t sum = 0;
    if (given->count != count)
        return cleat_fail(
            error, CLEAT_ERR_ARGUMENT,
            "distribute.shares has %lld values, but there are %d ranks: give one for each, or the word measured",
            (long long)given->count, count);
    for (int r = 0; r < count; ++r) sum += parallel->shares[r] = given->values[r];
    if (sum > 0) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_ARGUMENT, "distribute.shares: at least one must be above 0");
}

/* Shares in proportion to the ranks' rates of matrix products; equal shares if one is unknown. */
static cleat_status estimate_shares(cleat_data_parallel *parallel, int64_t samples, double flops, cleat_error *error) {
    const int count = cleat_ranks_count(parallel->ranks);
    double *rates = cleat_alloc((size_t)count, sizeof *rates);
    cleat_rank_time *times = cleat_alloc((size_t)count, sizeof *times);
    cleat_status status = rates && times ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for shares");
    status = cleat_ranks_agree(parallel->ranks, status, error);
    if (!status) status = cleat_ranks_gather(parallel->ranks, &flops, sizeof flops, rates, error);
    bool known = !status;
    double most = 0;
    for (int r = 0; r < count && !status; ++r) {
        known = known && rates[r] > 0;
        most = fmax(most, rates[r]);
    }
    for (int r = 0; r < count && !status; ++r) /* equal devices differ by noise */
        times[r].seconds_per_sample = known && rates[r] < NOISE * most ? most / rates[r] : 1;
    if (!status) status = cleat_shares_solve(count, times, samples, parallel->shares, NULL, error);
    cleat_free(rates);
    cleat_free(times);
    return status;
}

static const char GLOBAL_BATCH[] = "a global batch";
static void log_shares(const cleat_data_parallel *parallel, const char *what, const char *why) {
    char text[512];
    int used = 0;
    for (int r = 0; r < cleat_ranks_count(parallel->ranks) && used < (int)sizeof text; ++r)
        used +=
            snprintf(text + used, sizeof text - (size_t)used, "%s%lld", r ? " : " : "", (long long)parallel->shares[r]);
    cleat_log(CLEAT_LOG_INFO, "shares of %s: %s (%s)", what, text, why);
}

/* Memory for the shares; nothing without ranks. */
static cleat_status begin(cleat_data_parallel *parallel, cleat_ranks *ranks, const cleat_profile *profile,
                          cleat_error *error) {
    *parallel = (cleat_data_parallel){.ranks = ranks, .timeout = profile->distribute.timeout};
    if (!ranks) return CLEAT_OK;
    /* The parts of a run before its first step, and passes without training. */
    const cleat_ranks_timeouts setup = {INFINITY, parallel->timeout, INFINITY, INFINITY, NULL};
    cleat_ranks_set_timeouts(ranks, &setup);
    parallel->shares = cleat_alloc((size_t)cleat_ranks_count(ranks), sizeof *parallel->shares);
    cleat_status status = parallel->shares ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for shares");
    return cleat_ranks_agree(ranks, status, error);
}

cleat_status cleat_data_parallel_open(cleat_data_parallel *parallel, cleat_ranks *ranks, const cleat_profile *profile,
                                      const int64_t *measured, double flops, cleat_error *error) {
    const cleat_int_list *given = &profile->distribute.shares;
    cleat_status status = begin(parallel, ranks, profile, error);
    if (status || !ranks) return status;
    const bool is_given = parallel->is_given = given->count > 0;
    if (measured && !is_given) {
        memcpy(parallel->shares, measured, (size_t)cleat_ranks_count(ranks) * sizeof *measured);
        parallel->is_measured = parallel->refines = true;
        return CLEAT_OK;
    }
    status = is_given ? use_given(parallel, given, error)
                      : estimate_shares(parallel, cleat_profile_effective_batch(profile), flops, error);
    if (!status) log_shares(parallel, GLOBAL_BATCH, is_given ? "distribute.shares" : "until steps are measured");
    return status;
}

cleat_status cleat_data_parallel_open_pass(cleat_data_parallel *parallel, cleat_ranks *ranks,
                                           const cleat_profile *profile, double flops, cleat_error *error) {
    const int count = cleat_ranks_count(ranks);
    const bool is_given = profile->distribute.shares.count == count;
    cleat_status status = begin(parallel, ranks, profile, error);
    if (status || !ranks) return status;
    status = is_given ? use_given(parallel, &profile->distribute.shares, error)
                      : estimate_shares(parallel, FINE_SHARES * (int64_t)count, flops, error);
    if (!status) log_shares(parallel, "the samples", is_given ? "distribute.shares" : "speeds of the devices");
    return status;
}

void cleat_data_parallel_close(cleat_data_parallel *parallel) {
    const bool is_safe = !cleat_ranks_are_broken(parallel->ranks); /* otherwise the transport may still write */
    if (is_safe) cleat_staging_destroy(parallel->gradients);
    if (is_safe) cleat_free(parallel->others);
    if (is_safe) cleat_free(parallel->squares);
    if (is_safe) cleat_touched_rows_close(&parallel->rows);
    cleat_free(parallel->copies);
    cleat_pieces_close(&parallel->pieces);
    cleat_free(parallel->buffers);
    cleat_free(parallel->shares);
    *parallel = (cleat_data_parallel){.ranks = NULL};
}

void cleat_data_parallel_cut(void *user, int64_t samples, int64_t *first, int64_t *count) {
    const cleat_data_parallel *parallel = user;
    const int ranks = cleat_ranks_count(parallel->ranks), rank = cleat_ranks_rank(parallel->ranks);
    int64_t cut[CLEAT_MAX_RANKS];
    cleat_shares_cut(ranks, parallel->shares, samples, cut, NULL);
    *first = 0;
    for (int r = 0; r < rank; ++r) *first += cut[r];
    *count = cut[rank];
}

int64_t cleat_data_parallel_part(const cleat_data_parallel *parallel, int64_t samples) {
    int64_t first, count;
    if (!parallel->ranks) return 0;
    cleat_data_parallel_cut((void *)parallel, samples, &first, &count);
    return count > 0 ? count : 1;
}

/* The ranks with a share, and their times. */
typedef struct members {
    int count, ranks[CLEAT_MAX_RANKS];
    cleat_rank_time times[CLEAT_MAX_RANKS];
    int64_t shares[CLEAT_MAX_RANKS]; /* [count] */
    double step;                     /* seconds of the slowest rank with these shares */
} members;

/* False: the speed of a rank is unknown, because it had no samples. */
static bool find_members(const cleat_data_parallel *parallel, const double *seconds, members *found) {
    found->count = 0;
    for (int r = 0; r < cleat_ranks_count(parallel->ranks); ++r) {
        if (parallel->shares[r] == 0) continue;
        if (!(seconds[r] > 0)) return false;
        found->times[found->count] = (cleat_rank_time){.seconds_per_sample = seconds[r]};
        found->ranks[found->count++] = r;
    }
    return true;
}

/* A rank that is left out still takes part in the sums, so communication is the same for all choices. */
static cleat_status solve(members *all, int64_t samples, bool may_leave_out, cleat_error *error) {
    static const double communication[CLEAT_MAX_RANKS] = {0};
    if (!may_leave_out) return cleat_shares_solve(all->count, all->times, samples, all->shares, &all->step, error);
    return cleat_shares_choose(all->count, all->times, samples, communication, all->shares, &all->step, error);
}

static double step_now(const cleat_data_parallel *parallel, const double *seconds, int64_t samples) {
    double sum = 0, slowest = 0;
    for (int r = 0; r < cleat_ranks_count(parallel->ranks); ++r) {
        sum += (double)parallel->shares[r];
        slowest = fmax(slowest, seconds[r] * (double)parallel->shares[r]);
    }
    return slowest * (double)samples / sum;
}

static void log_left_out(const members *all) {
    for (int i = 0; i < all->count; ++i)
        if (all->shares[i] == 0)
            cleat_log(CLEAT_LOG_WARNING,
                      "rank %d is left out, because it would slow the step: it takes %.3g ms for one sample, a step "
                      "without it "
                      "%.3g ms; it gets no samples until the run restarts",
                      all->ranks[i], 1e3 * all->times[i].seconds_per_sample, 1e3 * all->step);
}

/* The exchange time of a step is that of the rank that waits least for the others. */
static cleat_status warn_if_alone_is_faster(cleat_data_parallel *parallel, const members *all, int64_t samples,
                                            double exposed, cleat_error *error) {
    double exposures[CLEAT_MAX_RANKS], exchange = INFINITY, alone = INFINITY;
    int fastest = 0;
    cleat_status status = cleat_ranks_gather(parallel->ranks, &exposed, sizeof exposed, exposures, error);
    if (status) return status;
    for (int r = 0; r < cleat_ranks_count(parallel->ranks); ++r) exchange = fmin(exchange, exposures[r]);
    for (int i = 0; i < all->count; ++i) {
        const double seconds = all->times[i].seconds_per_sample * (double)samples;
        if (!(seconds < alone)) continue;
        alone = seconds;
        fastest = all->ranks[i];
    }
    if (parallel->has_warned || alone >= WORTH * (all->step + exchange)) return CLEAT_OK;
    parallel->has_warned = true;
    cleat_log(
        CLEAT_LOG_WARNING,
        "a step of these %d ranks takes %.3g ms, of which the exchange of gradients takes %.3g ms; rank %d alone would "
        "take %.3g ms: train with its device alone, or with larger global batches",
        cleat_ranks_count(parallel->ranks), 1e3 * (all->step + exchange), 1e3 * exchange, fastest, 1e3 * alone);
    return CLEAT_OK;
}

/* `seconds` [ranks] per sample. One measurement may contain a pause of a rank, so it is left out after the
 * second. */
static cleat_status choose_shares(cleat_data_parallel *parallel, const double *seconds, int64_t samples, double exposed,
                                  members *all, members *some, bool *changed, cleat_error *error) {
    const bool was_doubted = parallel->is_doubted;
    parallel->is_doubted = false;
    if (!find_members(parallel, seconds, all)) return CLEAT_OK;
    *some = *all;
    cleat_status status = solve(all, samples, false, error);
    if (!status) status = solve(some, samples, true, error);
    if (status) return status;
    const bool is_slowed = some->step < WORTH * all->step;
    if (is_slowed && !was_doubted) {
        parallel->is_doubted = true;
        return CLEAT_OK;
    }
    const members *chosen = is_slowed ? some : all;
    const double worth = parallel->is_measured ? WORTH_LATER : WORTH;
    status = warn_if_alone_is_faster(parallel, chosen, samples, exposed, error);
    if (status) return status;
    parallel->is_measured = true;
    parallel->refines = false;
    *changed = is_slowed || chosen->step <= worth * step_now(parallel, seconds, samples);
    if (!*changed) return CLEAT_OK;
    for (int i = 0; i < chosen->count; ++i) parallel->shares[chosen->ranks[i]] = chosen->shares[i];
    log_left_out(chosen);
    log_shares(parallel, GLOBAL_BATCH, "measured");
    return CLEAT_OK;
}

/* Part of a step, above all the update, takes the same time for any number of samples: times of new shares
 * are not in proportion, so they are soon measured again. */
static int steps_to_measure(const cleat_data_parallel *parallel) {
    if (!parallel->is_measured || parallel->is_doubted) return STEPS_TO_MEASURE;
    return parallel->refines ? STEPS_TO_REFINE : STEPS_BETWEEN;
}

cleat_status cleat_data_parallel_balance(cleat_data_parallel *parallel, int64_t samples, bool *changed,
                                         cleat_error *error) {
    *changed = false;
    if (!parallel->ranks || parallel->is_given || parallel->steps < steps_to_measure(parallel)) return CLEAT_OK;
    const double own = parallel->computed > 0 ? parallel->computing / (double)parallel->computed : 0;
    const double exposed = (parallel->exposed - parallel->exposed_before) / parallel->steps;
    double seconds[CLEAT_MAX_RANKS];
    parallel->exposed_before = parallel->exposed;
    parallel->computing = 0;
    parallel->computed = parallel->steps = 0;
    members *all = cleat_alloc(2, sizeof *all);
    cleat_status status = all ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for shares");
    status = cleat_ranks_agree(parallel->ranks, status, error);
    if (!status) status = cleat_ranks_gather(parallel->ranks, &own, sizeof own, seconds, error);
    if (!status) status = choose_shares(parallel, seconds, samples, exposed, all, all + 1, changed, error);
    cleat_free(all);
    return status;
}

/* --- replicas ------------------------------------------------------------------------------------------------- */

static cleat_status hash_parameters(cleat_session *session, char hash[33], cleat_error *error) {
    const size_t count = (size_t)cleat_session_values(session);
    float *values = cleat_alloc(count, sizeof *values);
    if (!values) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to compare the parameters of the ranks");
    cleat_status status = cleat_session_read_values(session, values, error);
    if (!status) cleat_hash_text(values, count * sizeof *values, hash);
    cleat_free(values);
    return status ? status : cleat_session_hash_blocks(session, hash, error);
}

/* *same: whether the parameters and buffers of all ranks have the same bits. */
static cleat_status compare_replicas(cleat_data_parallel *parallel, cleat_session *session, bool *same,
                                     cleat_error *error) {
    char hash[33] = "";
    int64_t asked[CLEAT_RANKS_ASKED] = {0};
    cleat_error difference = {0};
    cleat_status status = hash_parameters(session, hash, error);
    status = cleat_ranks_agree(parallel->ranks, status, error);
    if (status) return status;
    status = cleat_ranks_compare(parallel->ranks, "the parameters", hash, &difference);
    if (status == CLEAT_ERR_RANK_LOST) return cleat_fail(error, status, "%s", difference.text);
    asked[0] = status == CLEAT_ERR_ARGUMENT;
    if (status == CLEAT_ERR_ARGUMENT) status = CLEAT_OK;
    status = cleat_ranks_agree_on(parallel->ranks, status, asked, error);
    *same = !asked[0];
    return status;
}

cleat_status cleat_data_parallel_check_start(cleat_data_parallel *parallel, cleat_session *session,
                                             cleat_error *error) {
    bool same = true;
    if (!parallel->ranks) return CLEAT_OK;
    cleat_status status = compare_replicas(parallel, session, &same, error);
    if (status || same) return status;
    return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                      "the ranks start from different parameters: give all of them the same program, profile, weights "
                      "and checkpoint");
}

static cleat_status send_parameters(cleat_data_parallel *parallel, cleat_session *session, cleat_error *error) {
    const size_t count = (size_t)cleat_session_flat(session);
    float *values = cleat_alloc(count, sizeof *values);
    cleat_status status = values ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the parameters");
    if (!status) status = cleat_session_read_flat(session, CLEAT_FLAT_PARAMETERS, values, error);
    status = cleat_ranks_agree(parallel->ranks, status, error);
    if (!status) status = cleat_ranks_broadcast(parallel->ranks, values, count * sizeof *values, error);
    if (!status) status = cleat_session_write_flat(session, CLEAT_FLAT_PARAMETERS, values, error);
    cleat_free(values);
    return status;
}

cleat_status cleat_data_parallel_end(cleat_data_parallel *parallel, cleat_session *session, int64_t step,
                                     cleat_error *error) {
    const int64_t every = session->profile->distribute.check_every_steps;
    bool same = true;
    if (!parallel->ranks) return CLEAT_OK;
    const double seconds = cleat_seconds() - parallel->step_started;
    parallel->typical_step = parallel->all_steps ? 0.9 * parallel->typical_step + 0.1 * seconds : seconds;
    const bool is_first = parallel->all_steps < FIRST_CHECKS;
    if (parallel->all_steps >= STEPS_TO_SETTLE)
        ++parallel->steps;
    else
        parallel->exposed_before = parallel->exposed;
    ++parallel->all_steps;
    parallel->all_seconds += seconds;
    if (parallel->drifts) return send_parameters(parallel, session, error);
    if (!is_first && (every <= 0 || step % every != 0)) return CLEAT_OK;
    cleat_status status = compare_replicas(parallel, session, &same, error);
    if (status || same) return status;
    if (!is_first)
        return cleat_fail(error, CLEAT_ERR_DEVICE,
                          "step %lld: the parameters of the ranks differ; a device of this run computes wrong values "
                          "now and then, or its memory is faulty",
                          (long long)step);
    parallel->drifts = true;
    cleat_log(CLEAT_LOG_WARNING,
              "the devices of this run round updates differently: the parameters of rank 0 are sent to all ranks after "
              "every step");
    return send_parameters(parallel, session, error);
}

/* --- timeouts ------------------------------------------------------------------------------------------------- */

/* Timeouts in seconds: for an evaluation or a checkpoint; for compiling kernels in the first steps, also
 * after a stop request; and the minimum after a later stop request. The long ones apply to watched ranks. */
static const double LONG_WORK = 900, FIRST_STEPS = 600, FIRST_STEPS_AFTER_STOP = 60, AFTER_STOP = 2;
enum { STEPS_WITH_COMPILATION = 20 };

static cleat_ranks_timeouts timeouts_of_steps(const cleat_data_parallel *parallel) {
    const bool is_early = parallel->all_steps < STEPS_WITH_COMPILATION;
    const double typical = parallel->typical_step, timeout = fmax(parallel->timeout, 10 * typical);
    return (cleat_ranks_timeouts){.seconds = is_early ? FIRST_STEPS : timeout,
                                  .silence = is_early ? parallel->timeout : INFINITY,
                                  .after_stop = is_early ? FIRST_STEPS_AFTER_STOP : fmax(AFTER_STOP, 3 * typical),
                                  .stopped = timeout,
                                  .stop = parallel->stop};
}

/* The agreement itself has the timeout of a step. */
cleat_status cleat_data_parallel_expect_long_work(cleat_data_parallel *parallel, cleat_error *error) {
    if (!parallel->ranks) return CLEAT_OK;
    cleat_ranks_timeouts made = timeouts_of_steps(parallel);
    made.silence = parallel->timeout;
    cleat_ranks_set_timeouts(parallel->ranks, &made);
    cleat_status status = cleat_ranks_agree(parallel->ranks, CLEAT_OK, error);
    made = (cleat_ranks_timeouts){LONG_WORK, parallel->timeout, LONG_WORK, parallel->timeout, parallel->stop};
    cleat_ranks_set_timeouts(parallel->ranks, &made);
    return status;
}

/* --- the exchange --------------------------------------------------------------------------------------------- */

static cleat_status bind_pieces(cleat_data_parallel *parallel, cleat_session *session, cleat_error *error) {
    cleat_pieces *pieces = &parallel->pieces;
    cleat_status status = cleat_pieces_cut(pieces, session->work, error);
    if (status) return status;
    parallel->copies = cleat_alloc(pieces->run_count, sizeof *parallel->copies);
    if (!parallel->copies) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu copies", pieces->run_count);
    const int64_t bytes = pieces->elements * (int64_t)sizeof(float);
    status = cleat_staging_create(session->exec, bytes, true, &parallel->gradients, error);
    if (status) return status;
    return cleat_touched_rows_open(&parallel->rows, pieces, cleat_ranks_count(parallel->ranks),
                                   cleat_staging_data(parallel->gradients), error);
}

cleat_status cleat_data_parallel_bind(cleat_data_parallel *parallel, cleat_session *session, cleat_error *error) {
    if (!parallel->ranks) return CLEAT_OK;
    const size_t buffers = (size_t)cleat_session_buffers(session);
    parallel->terms = cleat_tensor_elements(session->work->terms);
    parallel->others = cleat_alloc((size_t)parallel->terms + buffers, sizeof *parallel->others);
    parallel->buffers = cleat_alloc(buffers, sizeof *parallel->buffers);
    parallel->squares = cleat_alloc(CLEAT_PIECES, sizeof *parallel->squares);
    if (!parallel->others || !parallel->buffers || !parallel->squares)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu buffers", buffers);
    cleat_status status = cleat_session_read_buffers(session, parallel->buffers, error);
    return status ? status : bind_pieces(parallel, session, error);
}

/* In the first steps ranks wait for others that compile, which is not part of the exchange. */
static void log_from_here(cleat_data_parallel *parallel) {
    parallel->logged_from = parallel->all_steps;
    parallel->exposed_before -= parallel->exposed;
    parallel->exposed = parallel->all_seconds = 0;
    parallel->exchanged = parallel->exchanged_alone = parallel->waited = 0;
}

void cleat_data_parallel_begin(cleat_data_parallel *parallel) {
    if (parallel->all_steps == STEPS_WITH_COMPILATION) log_from_here(parallel);
    parallel->step_started = cleat_seconds();
    parallel->copying = 0;
    parallel->busy_before = cleat_ranks_busy_seconds(parallel->ranks);
    cleat_touched_rows_begin(&parallel->rows);
}

void cleat_data_parallel_note(cleat_data_parallel *parallel, const cleat_session *session, size_t bucket,
                              const void *inputs) {
    if (parallel->ranks) cleat_touched_rows_add(&parallel->rows, &parallel->pieces, session, bucket, inputs);
}

/* Begins to read the runs of a piece. */
static cleat_status begin_copies(cleat_data_parallel *parallel, cleat_session *session, const cleat_piece *piece,
                                 cleat_error *error) {
    float *gradients = cleat_staging_data(parallel->gradients);
    const cleat_tensor *flat = &session->work->store->flat[CLEAT_FLAT_GRADIENTS];
    while (parallel->copying < piece->first_run + piece->runs) {
        const size_t i = parallel->copying;
        const cleat_gradient_run *run = &parallel->pieces.runs[i];
        cleat_status status = cleat_exec_begin_read(session->exec, flat, run->flat, run->elements,
                                                    gradients + run->host, &parallel->copies[i], error);
        if (status) return status;
        ++parallel->copying;
    }
    return CLEAT_OK;
}

/* Waits for the copies of a piece in progress. `failed`: the first error of the step. */
static void end_copies(cleat_data_parallel *parallel, cleat_session *session, const cleat_piece *piece,
                       cleat_status *failed, cleat_error *error) {
    for (size_t i = piece->first_run; i < piece->first_run + piece->runs && i < parallel->copying; ++i) {
        cleat_status status = cleat_exec_end_copy(session->exec, parallel->copies[i], *failed ? NULL : error);
        if (!*failed) *failed = status;
    }
}

cleat_status cleat_data_parallel_run_last(cleat_data_parallel *parallel, cleat_session *session, size_t bucket,
                                          cleat_error *error) {
    const cleat_pieces *pieces = &parallel->pieces;
    const cleat_work_graph *graph = &session->work->train[bucket];
    const size_t nodes = cleat_graph_nodes(graph->graph);
    cleat_status status = cleat_touched_rows_announce(&parallel->rows, parallel->ranks, error);
    size_t at = 0;
    for (size_t i = 0; i < pieces->count && !status; ++i) {
        const size_t ready = pieces->list[i].ready[bucket];
        if (ready > at || i == 0) status = cleat_exec_run_nodes(session->exec, graph->index, at, ready, error);
        at = ready;
        if (!status) status = begin_copies(parallel, session, &pieces->list[i], error);
    }
    return status || at == nodes ? status : cleat_exec_run_nodes(session->exec, graph->index, at, nodes, error);
}

/* The loss terms, and the buffers weighted by the own samples. */
static cleat_status read_others(cleat_data_parallel *parallel, cleat_session *session, int64_t own,
                                cleat_error *error) {
    float *buffers = parallel->others + parallel->terms;
    cleat_status status = cleat_exec_read_unchecked(session->exec, 0, session->work->terms, parallel->others, error);
    if (!status) status = cleat_session_read_buffers(session, buffers, error);
    for (int64_t i = 0; i < cleat_session_buffers(session); ++i) buffers[i] *= (float)own;
    return status;
}

/* The sums of a step in progress. */
typedef struct sums {
    uint64_t pieces[CLEAT_PIECES], others;
} sums;

static cleat_status start_sum(cleat_data_parallel *parallel, size_t i, uint64_t *ticket, cleat_error *error) {
    const cleat_piece *piece = &parallel->pieces.list[i];
    float *gradients = cleat_staging_data(parallel->gradients);
    if (piece->table >= 0)
        return cleat_ranks_sum_rows_start(parallel->ranks, &parallel->rows.sums[piece->table], &parallel->squares[i],
                                          ticket, error);
    return cleat_ranks_sum_start(parallel->ranks, gradients + piece->first, (size_t)piece->elements,
                                 &parallel->squares[i], ticket, error);
}

/* Each piece is summed once it has arrived from the device. */
static cleat_status start_sums(cleat_data_parallel *parallel, cleat_session *session, int64_t own, cleat_status *failed,
                               sums *started, cleat_error *error) {
    const cleat_pieces *pieces = &parallel->pieces;
    cleat_error why = {0};
    cleat_status lost = cleat_touched_rows_announce(&parallel->rows, parallel->ranks, &why);
    for (size_t i = 0; i < pieces->count && !*failed; ++i)
        *failed = begin_copies(parallel, session, &pieces->list[i], error);
    for (size_t i = 0; i < pieces->count && !lost; ++i) {
        end_copies(parallel, session, &pieces->list[i], failed, error);
        lost = start_sum(parallel, i, &started->pieces[i], &why);
    }
    if (!*failed) *failed = read_others(parallel, session, own, error);
    if (parallel->all_steps >= STEPS_TO_SETTLE) {
        parallel->computing += cleat_seconds() - parallel->step_started;
        parallel->computed += own;
    }
    if (!lost)
        lost = cleat_ranks_sum_start(parallel->ranks, parallel->others,
                                     (size_t)(parallel->terms + cleat_session_buffers(session)), NULL, &started->others,
                                     &why);
    return lost && !*failed ? cleat_fail(error, lost, "%s", why.text) : lost;
}

/* Writes each sum to the device as it arrives. */
static cleat_status end_sums(cleat_data_parallel *parallel, cleat_session *session, const sums *started,
                             cleat_error *error) {
    const cleat_pieces *pieces = &parallel->pieces;
    const float *gradients = cleat_staging_data(parallel->gradients);
    const cleat_tensor *flat = &session->work->store->flat[CLEAT_FLAT_GRADIENTS];
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < pieces->count && !status; ++i) {
        const cleat_gradient_run *runs = pieces->runs + pieces->list[i].first_run;
        status = cleat_ranks_wait(parallel->ranks, started->pieces[i], error);
        for (size_t k = 0; k < pieces->list[i].runs && !status; ++k)
            status = cleat_exec_begin_write(session->exec, flat, runs[k].flat, runs[k].elements,
                                            gradients + runs[k].host, error);
    }
    return status ? status : cleat_ranks_wait(parallel->ranks, started->others, error);
}

static cleat_status write_others(cleat_data_parallel *parallel, cleat_session *session, int64_t samples,
                                 cleat_error *error) {
    const float *buffers = parallel->others + parallel->terms;
    for (int64_t i = 0; i < cleat_session_buffers(session); ++i) parallel->buffers[i] = buffers[i] / (float)samples;
    cleat_status status = cleat_exec_write_unchecked(session->exec, 0, session->work->terms, parallel->others, error);
    return status ? status : cleat_session_write_buffers(session, parallel->buffers, error);
}

/* All agree on the status. The rank that is ready last waits for no other: its times are those of the
 * exchange itself. */
static cleat_status agree_after_sums(cleat_data_parallel *parallel, double computed, cleat_status status,
                                     cleat_error *error) {
    const double alone = cleat_seconds() - computed;
    const double busy = cleat_ranks_busy_seconds(parallel->ranks) - parallel->busy_before;
    int64_t asked[CLEAT_RANKS_ASKED] = {-(int64_t)(1e9 * busy),
                                        -(int64_t)(1e9 * alone)}; /* the largest of -x: the least x */
    status = cleat_ranks_agree_on(parallel->ranks, status, asked, error);
    const double exposed = cleat_seconds() - computed, least = -1e-9 * (double)asked[1];
    parallel->exposed += exposed;
    parallel->exchanged += -1e-9 * (double)asked[0];
    parallel->exchanged_alone += least;
    parallel->waited += fmax(exposed - least, 0);
    return status;
}

cleat_status cleat_data_parallel_exchange(cleat_data_parallel *parallel, cleat_session *session, int64_t own,
                                          int64_t samples, cleat_status status, float *norm, cleat_error *error) {
    double squares = 0;
    sums started = {.others = 0};
    if (!parallel->ranks) return status;
    const cleat_ranks_timeouts timeouts = timeouts_of_steps(parallel);
    cleat_ranks_set_timeouts(parallel->ranks, &timeouts);
    cleat_status lost = start_sums(parallel, session, own, &status, &started, error);
    const double computed = cleat_seconds();
    if (lost) return status ? status : lost;
    if (!status)
        status = end_sums(parallel, session, &started, error);
    else
        cleat_ranks_wait(parallel->ranks, started.others, NULL);
    if (status == CLEAT_ERR_RANK_LOST) return status;
    status = agree_after_sums(parallel, computed, status, error);
    if (!status) status = write_others(parallel, session, samples, error);
    for (size_t i = 0; i < parallel->pieces.count; ++i) squares += parallel->squares[i];
    if (!status) *norm = (float)sqrt(squares);
    return status;
}

void cleat_data_parallel_log(cleat_data_parallel *parallel) {
    if (!parallel->ranks || parallel->all_steps == 0) return;
    cleat_log(
        CLEAT_LOG_INFO,
        "%s%lld steps of %d ranks: %.2f s; exchange of gradients %.2f s, %.2f s of it (%.1f %% of the steps) while "
        "no device had anything to compute; rank %d waited another %.2f s (%.1f %%) for others",
        parallel->logged_from ? "after the first steps: " : "",
        (long long)(parallel->all_steps - parallel->logged_from), cleat_ranks_count(parallel->ranks),
        parallel->all_seconds, parallel->exchanged, parallel->exchanged_alone,
        100 * parallel->exchanged_alone / parallel->all_seconds, cleat_ranks_rank(parallel->ranks), parallel->waited,
        100 * parallel->waited / parallel->all_seconds);
}

cleat_status cleat_data_parallel_restore_buffers(cleat_data_parallel *parallel, cleat_session *session,
                                                 cleat_error *error) {
    return parallel->ranks ? cleat_session_write_buffers(session, parallel->buffers, error) : CLEAT_OK;
}
