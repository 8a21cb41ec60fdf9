/* The plan of data-parallel training over several devices: shares from estimated times (shares.c), the exchange of
 * gradients (allreduce.c), and for every device whether it pays.
 *
 * The time of a device is not exactly linear in its number of samples: work-groups run in rounds, and memory
 * determines the micro-batches. So shares are solved with a line through two fits of each device; the devices
 * are then fitted to their shares, and shares solved again with lines through the nearest fits.
 *
 * Finally, single samples move, and each decision about one device is flipped and kept if it helps: the
 * result is within 0.1 % of the optimum (tests/fit/test_distributed.c). */
#include "fit/allreduce.h"
#include "fit/rank_fit.h"
#include "fit/shares.h"

#include "core/memory.h"
#include "graph/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 6 };

/* The fit of a device to its samples. Devices with the same facts and rates are of one kind. */
typedef struct known {
    struct known *next;
    int kind;
    int64_t samples[CLEAT_BUCKETS];
    cleat_rank_fit fit;
} known;

typedef struct planner {
    cleat_rank_setup setup;
    cleat_lengths lengths;
    bool data_known;
    int64_t global[CLEAT_BUCKETS]; /* samples of a global batch of each length */
    int64_t steps[CLEAT_BUCKETS];  /* global batches of each length in an epoch */
    size_t main;                   /* the bucket whose shares are solved */
    int count;
    const cleat_distributed_device *devices; /* [count] */
    int kinds[CLEAT_PLAN_DEVICES];           /* the first device of the same kind */
    bool usable[CLEAT_PLAN_DEVICES];         /* the model fits it */
    const cleat_network *network;
    known *known; /* list, newest first */
} planner;

/* Shares, and the step that results. */
typedef struct outcome {
    int64_t shares[CLEAT_PLAN_DEVICES];
    const cleat_rank_fit *fits[CLEAT_PLAN_DEVICES]; /* NULL: no samples */
    int used;
    cleat_exchange exchange; /* of the main bucket */
    double step_seconds;     /* of the main bucket; infinite: a device cannot hold its share */
    double epoch_seconds;    /* all buckets, each global batch as if it were full */
} outcome;

/* --- fits of one device ------------------------------------------------------------------------------------------- */

static cleat_status find_fit(planner *p, int device, const int64_t *samples, const cleat_rank_fit **fit,
                             cleat_error *error) {
    const size_t size = p->lengths.count * sizeof *samples;
    const int kind = p->kinds[device];
    for (const known *k = p->known; k; k = k->next)
        if (k->kind == kind && memcmp(k->samples, samples, size) == 0) {
            *fit = &k->fit;
            return CLEAT_OK;
        }
    known *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the plan of '%s'", p->devices[device].name);
    made->kind = kind;
    memcpy(made->samples, samples, size);
    cleat_status status =
        cleat_rank_fit_make(&p->setup, p->devices[device].facts, p->devices[device].rates, samples, &made->fit, error);
    if (status) {
        cleat_free(made);
        return cleat_fail_in(error, status, "device '%s'", p->devices[device].name);
    }
    made->next = p->known;
    p->known = made;
    *fit = &made->fit;
    return CLEAT_OK;
}

/* Fits `part` / `whole` of every global batch. */
static cleat_status find_part(planner *p, int device, int64_t part, int64_t whole, const cleat_rank_fit **fit,
                              cleat_error *error) {
    int64_t samples[CLEAT_BUCKETS];
    for (size_t b = 0; b < p->lengths.count; ++b) samples[b] = cleat_ceil_div(p->global[b] * part, whole);
    return find_fit(p, device, samples, fit, error);
}

/* The device's fit nearest to `samples` among those at least `apart` samples from `other`; NULL: none. */
static const known *nearest_fit(const planner *p, int device, int64_t samples, int64_t other, int64_t apart) {
    const known *nearest = NULL;
    for (const known *k = p->known; k; k = k->next) {
        const int64_t n = k->samples[p->main];
        if (k->kind != p->kinds[device] || !k->fit.fits || n == 0 || llabs(n - other) < apart) continue;
        if (!nearest || llabs(n - samples) < llabs(nearest->samples[p->main] - samples)) nearest = k;
    }
    return nearest;
}

/* The line through the device's fit nearest to `samples`, and the nearest one a quarter away: closer fits
 * may show the jump between two rounds of work-groups instead of the slope. */
static cleat_rank_time line_near(const planner *p, int device, int64_t samples) {
    const known *near = nearest_fit(p, device, samples, 0, 0);
    const int64_t at = near->samples[p->main];
    const known *far = nearest_fit(p, device, samples, at, at / 4 + 1);
    const double n = (double)at, seconds = near->fit.seconds[p->main];
    double slope = seconds / n;
    if (far) slope = (far->fit.seconds[p->main] - seconds) / ((double)far->samples[p->main] - n);
    /* The line rises, and meets the time axis at 0 or above. */
    slope = fmin(fmax(slope, 1e-3 * seconds / n), seconds / n);
    return (cleat_rank_time){.fixed_seconds = fmax(seconds - n * slope, 0), .seconds_per_sample = slope};
}

/* --- given shares ------------------------------------------------------------------------------------------------- */

/* Whether its gradient is copied between the device and its host. */
static bool is_separate(const cleat_device_facts *facts) {
    return facts->kind != CLEAT_DEVICE_CPU && !facts->unified_memory;
}

/* The exchange of the ranks, without the rows of tables. */
static cleat_gradient_load begin_load(const cleat_rank_fit *fit) {
    cleat_gradient_load load = {.bytes = fit->gradient_bytes, .tables = fit->tables};
    for (int t = 0; t < fit->tables; ++t) {
        const cleat_row_table *table = &fit->table[t];
        load.table[t] = (cleat_table_load){.rows = table->rows, .width = table->width};
        load.bytes -= cleat_store_aligned(table->rows * table->width) * (int64_t)sizeof(float);
    }
    return load;
}

/* Adds the rows of a rank whose samples have `numbers` row numbers, assuming that all differ: an upper
 * bound. */
static void add_rows(cleat_table_load *table, int64_t numbers) {
    const int64_t own = numbers < table->rows ? numbers : table->rows;
    if (own > table->most) table->most = own;
    table->any = table->any + own < table->rows ? table->any + own : table->rows;
}

/* A global batch of bucket b. */
static cleat_gradient_load load_of(const planner *p, const outcome *o, size_t b) {
    cleat_gradient_load load = {.bytes = 0};
    for (int d = 0; d < p->count; ++d) {
        const cleat_rank_fit *fit = o->fits[d];
        if (!fit) continue;
        if (load.bytes == 0 && load.tables == 0) load = begin_load(fit);
        for (int t = 0; t < load.tables; ++t) add_rows(&load.table[t], fit->numbers[t][b]);
    }
    return load;
}

/* One global batch of bucket b: the slowest device, and the exchange that the backward pass does not hide. */
static double step_seconds(const planner *p, const outcome *o, size_t b, cleat_exchange *exchange) {
    double slowest = 0, backward = INFINITY;
    bool copied = false;
    const cleat_gradient_load load = load_of(p, o, b);
    for (int d = 0; d < p->count; ++d) {
        if (!o->fits[d]) continue;
        slowest = fmax(slowest, o->fits[d]->seconds[b]);
        /* The zeros of a rank without samples are ready at once. */
        if (o->fits[d]->seconds[b] > 0) backward = fmin(backward, o->fits[d]->backward[b]);
        copied = copied || is_separate(p->devices[d].facts);
    }
    *exchange = cleat_exchange_estimate(o->used, &load, p->network, copied, backward);
    return slowest + exchange->exposed_seconds;
}

/* Computes the fits and times that follow from o->shares. */
static cleat_status evaluate(planner *p, outcome *o, cleat_error *error) {
    int64_t samples[CLEAT_PLAN_DEVICES][CLEAT_BUCKETS], cut[CLEAT_PLAN_DEVICES];
    cleat_status status = CLEAT_OK;
    bool fits = true;
    for (size_t b = 0; b < p->lengths.count && !status; ++b) {
        status = cleat_shares_cut(p->count, o->shares, p->global[b], cut, error);
        for (int d = 0; d < p->count && !status; ++d) samples[d][b] = cut[d];
    }
    o->used = 0;
    for (int d = 0; d < p->count && !status; ++d) {
        o->fits[d] = NULL;
        if (o->shares[d] == 0) continue;
        ++o->used;
        status = find_fit(p, d, samples[d], &o->fits[d], error);
        fits = fits && !status && o->fits[d]->fits;
    }
    if (status) return status;
    o->epoch_seconds = 0;
    for (size_t b = 0; b < p->lengths.count && fits; ++b) {
        cleat_exchange exchange;
        const double seconds = step_seconds(p, o, b, &exchange);
        o->epoch_seconds += (double)p->steps[b] * seconds;
        if (b != p->main) continue;
        o->step_seconds = seconds;
        o->exchange = exchange;
    }
    if (!fits) o->step_seconds = o->epoch_seconds = INFINITY;
    return CLEAT_OK;
}

/* Solves shares for the devices of `take` [count], with lines near their shares in `o`. */
static cleat_status solve(const planner *p, const bool *take, outcome *o, cleat_error *error) {
    cleat_rank_time times[CLEAT_PLAN_DEVICES];
    int64_t shares[CLEAT_PLAN_DEVICES];
    int n = 0;
    for (int d = 0; d < p->count; ++d)
        if (take[d]) times[n++] = line_near(p, d, o->shares[d]);
    cleat_status status = cleat_shares_solve(n, times, p->global[p->main], shares, NULL, error);
    if (status) return status;
    n = 0;
    for (int d = 0; d < p->count; ++d) o->shares[d] = take[d] ? shares[n++] : 0;
    return CLEAT_OK;
}

/* Whether the device is the first of its kind and share among those that take part: moving a sample from
 * or to any of them is equivalent. */
static bool is_first_alike(const planner *p, const outcome *o, int d) {
    for (int i = 0; i < d; ++i)
        if (o->shares[i] == o->shares[d] && p->kinds[i] == p->kinds[d]) return false;
    return o->shares[d] > 0;
}

/* Moves single samples from the slowest device to another while that shortens the step. */
static cleat_status refine(planner *p, outcome *best, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (int round = 0; round < ROUNDS && isfinite(best->step_seconds); ++round) {
        outcome found = *best;
        int slowest = 0;
        for (int d = 0; d < p->count; ++d)
            if (best->fits[d] &&
                (!best->fits[slowest] || best->fits[d]->seconds[p->main] > best->fits[slowest]->seconds[p->main]))
                slowest = d;
        for (int d = 0; d < p->count && best->shares[slowest] > 1 && !status; ++d) {
            outcome moved = *best;
            if (d == slowest || !is_first_alike(p, best, d)) continue;
            --moved.shares[slowest];
            ++moved.shares[d];
            status = evaluate(p, &moved, error);
            if (!status && moved.step_seconds < found.step_seconds) found = moved;
        }
        if (status || found.step_seconds >= best->step_seconds) break;
        *best = found;
    }
    return status;
}

/* Finds the best shares of these devices, at least one sample each; infinite seconds if that is not possible. */
static cleat_status share_out(planner *p, const bool *take, outcome *best, cleat_error *error) {
    outcome o = {.used = 0}, found = {.step_seconds = INFINITY};
    int taken = 0;
    cleat_status status = CLEAT_OK;
    for (int d = 0; d < p->count; ++d) taken += take[d];
    const bool possible = taken > 0 && taken <= p->global[p->main];
    for (int d = 0; d < p->count; ++d) o.shares[d] = p->global[p->main] / (taken ? taken : 1);
    for (int round = 0; round < ROUNDS && !status && possible; ++round) {
        const outcome before = o;
        status = solve(p, take, &o, error);
        if (status || (round > 0 && memcmp(before.shares, o.shares, sizeof o.shares) == 0)) break;
        status = evaluate(p, &o, error);
        if (!status && (round == 0 || o.step_seconds < found.step_seconds)) found = o;
    }
    if (!status) *best = found;
    return status ? status : refine(p, best, error);
}

/* --- which devices ------------------------------------------------------------------------------------------------ */

/* The exposed exchange of 1 to `usable` devices with equal shares. */
static cleat_status estimate_exchanges(planner *p, int usable, double *seconds, cleat_error *error) {
    double whole = INFINITY, even = INFINITY;
    const cleat_rank_fit *fitted = NULL;
    bool copied = false;
    for (int d = 0; d < p->count; ++d) {
        const cleat_rank_fit *fit = NULL;
        if (!p->usable[d]) continue;
        cleat_status status = find_part(p, d, 1, 1, &fit, error);
        if (!status) whole = fmin(whole, fit->backward[p->main]);
        if (!status) status = find_part(p, d, 1, usable, &fit, error);
        if (status) return status;
        if (fit->fits) even = fmin(even, fit->backward[p->main]);
        if (fit->fits) fitted = fit;
        copied = copied || is_separate(p->devices[d].facts);
    }
    for (int n = 1; n <= usable; ++n) {
        cleat_gradient_load load = {.bytes = 0};
        if (fitted) load = begin_load(fitted);
        for (int t = 0; t < load.tables; ++t)
            for (int r = 0; r < n; ++r) add_rows(&load.table[t], fitted->numbers[t][p->main] * usable / n);
        seconds[n - 1] =
            cleat_exchange_estimate(n, &load, p->network, copied, fmin(whole, even * usable / n)).exposed_seconds;
    }
    return CLEAT_OK;
}

/* Chooses among the usable devices except `without` (-1: none), by their lines. */
static cleat_status choose(planner *p, int without, bool *take, cleat_error *error) {
    cleat_rank_time times[CLEAT_PLAN_DEVICES];
    int64_t shares[CLEAT_PLAN_DEVICES];
    double exchanges[CLEAT_PLAN_DEVICES];
    int usable = 0, n = 0;
    for (int d = 0; d < p->count; ++d) {
        take[d] = false;
        usable += p->usable[d];
    }
    if (usable == 0) return CLEAT_OK;
    cleat_status status = estimate_exchanges(p, usable, exchanges, error);
    if (status) return status;
    for (int d = 0; d < p->count; ++d)
        if (p->usable[d] && d != without) times[n++] = line_near(p, d, p->global[p->main] / usable);
    if (n == 0) return CLEAT_OK;
    status = cleat_shares_choose(n, times, p->global[p->main], exchanges, shares, NULL, error);
    if (status) return status;
    n = 0;
    for (int d = 0; d < p->count; ++d)
        if (p->usable[d] && d != without) take[d] = shares[n++] > 0;
    return CLEAT_OK;
}

/* Swaps two devices of the same kind. */
static void swap_devices(outcome *o, int a, int b) {
    const int64_t share = o->shares[a];
    const cleat_rank_fit *fit = o->fits[a];
    o->shares[a] = o->shares[b];
    o->fits[a] = o->fits[b];
    o->shares[b] = share;
    o->fits[b] = fit;
}

/* The best outcome without device d, which takes part: with another of its kind, with a new choice, or
 * with the remaining devices. */
static cleat_status try_without(planner *p, const outcome *best, int d, outcome *other, cleat_error *error) {
    bool take[CLEAT_PLAN_DEVICES];
    outcome rest;
    for (int i = 0; i < p->count; ++i) {
        if (best->shares[i] > 0 || p->kinds[i] != p->kinds[d]) continue;
        *other = *best;
        swap_devices(other, i, d);
        return CLEAT_OK;
    }
    cleat_status status = choose(p, d, take, error);
    if (!status) status = share_out(p, take, other, error);
    for (int i = 0; i < p->count; ++i) take[i] = best->shares[i] > 0 && i != d;
    if (!status) status = share_out(p, take, &rest, error);
    if (!status && rest.step_seconds < other->step_seconds) *other = rest;
    return status;
}

/* Flips the decision about device d. */
static cleat_status try_other(planner *p, const outcome *best, int d, outcome *other, cleat_error *error) {
    bool take[CLEAT_PLAN_DEVICES];
    *other = (outcome){.step_seconds = INFINITY};
    if (!p->usable[d]) return CLEAT_OK;
    if (best->shares[d] > 0) return try_without(p, best, d, other, error);
    for (int i = 0; i < p->count; ++i) take[i] = best->shares[i] > 0 || i == d;
    return share_out(p, take, other, error);
}

/* Fills others [count] and finds the fastest of them. */
static cleat_status try_others(planner *p, const outcome *best, outcome *others, int *fastest, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    *fastest = 0;
    for (int d = 0; d < p->count && !status; ++d) {
        int same = 0;
        while (same < d && (p->kinds[same] != p->kinds[d] || (best->shares[same] > 0) != (best->shares[d] > 0))) ++same;
        if (same < d)
            others[d] = others[same];
        else
            status = try_other(p, best, d, &others[d], error);
        if (same < d) swap_devices(&others[d], same, d);
        if (!status && others[d].step_seconds < others[*fastest].step_seconds) *fastest = d;
    }
    return status;
}

/* Starts with the choice by lines, and flips decisions about single devices while the step gets shorter. */
static cleat_status find_best(planner *p, outcome *best, outcome *others, cleat_error *error) {
    bool take[CLEAT_PLAN_DEVICES];
    int fastest = 0;
    cleat_status status = choose(p, -1, take, error);
    if (!status) status = share_out(p, take, best, error);
    if (!status) status = try_others(p, best, others, &fastest, error);
    for (int i = 0; i < p->count && !status; ++i) {
        if (!(others[fastest].step_seconds < best->step_seconds * (1 - 1e-9))) break;
        *best = others[fastest];
        status = try_others(p, best, others, &fastest, error);
    }
    return status;
}

/* --- the report --------------------------------------------------------------------------------------------------- */

/* Price per hour and power of the devices that take part; a price of -1 and a power of 0: one is unknown. */
static double price_of(const planner *p, const outcome *o, double *watts) {
    double price = o->used > 0 ? 0 : -1;
    *watts = 0;
    bool complete = true;
    for (int d = 0; d < p->count; ++d) {
        if (o->shares[d] == 0) continue;
        const cleat_distributed_device *device = &p->devices[d];
        price = price < 0 || device->price_per_hour < 0 ? -1 : price + device->price_per_hour;
        complete = complete && device->watts > 0;
        *watts += device->watts;
    }
    if (!complete) *watts = 0;
    return price;
}

static double samples_per_second(const planner *p, const outcome *o) {
    double samples = 0;
    for (size_t b = 0; b < p->lengths.count; ++b) samples += (double)p->lengths.samples[b];
    return samples / o->epoch_seconds;
}

static void describe_rank(const planner *p, const outcome *best, const outcome *other, int d,
                          cleat_distributed_rank *rank) {
    const cleat_rank_fit *fit = best->fits[d] ? best->fits[d] : other->fits[d];
    const bool possible = isfinite(other->step_seconds);
    rank->share = best->shares[d];
    rank->other_seconds = other->step_seconds;
    rank->other_samples_per_second = possible ? samples_per_second(p, other) : 0;
    double watts;
    rank->other_price_per_hour = possible ? price_of(p, other, &watts) : -1;
    if (!fit || !fit->fits) return;
    const cleat_fit_bucket *bucket = &fit->buckets[p->main];
    rank->recompute = fit->recompute;
    rank->micro_batch_size = bucket->micro_batch_size;
    rank->micro_batches = bucket->micro_batches;
    rank->bytes = fit->bytes;
    rank->seconds = fit->seconds[p->main];
}

static void describe_time(const planner *p, const outcome *best, cleat_distributed_report *report) {
    double alone = 0;
    report->step_seconds = best->step_seconds;
    report->samples_per_second = samples_per_second(p, best);
    for (int d = 0; d < p->count; ++d)
        if (best->shares[d] > 0) alone += 1 / report->ranks[d].alone_seconds;
    report->efficiency = 1 / best->step_seconds / alone;
    if (!p->data_known) return;
    for (size_t b = 0; b < p->lengths.count; ++b) report->steps_per_epoch += p->steps[b];
    report->epoch_seconds = best->epoch_seconds;
    report->run_seconds = best->epoch_seconds * (double)p->setup.profile->train.epochs;
}

static void describe_tables(const planner *p, const outcome *o, const cleat_gradient_load *load,
                            cleat_distributed_exchange *made) {
    static const char *const ways[] = {[CLEAT_ROWS_WHOLE] = "whole table",
                                       [CLEAT_ROWS_UNION] = "rows of all devices",
                                       [CLEAT_ROWS_OWN] = "rows of each device"};
    const cleat_rank_fit *fit = NULL;
    for (int d = 0; d < p->count && !fit; ++d) fit = o->fits[d];
    made->tables = load->tables;
    for (int t = 0; t < load->tables; ++t) {
        const cleat_table_load *table = &load->table[t];
        cleat_distributed_table *of = &made->table[t];
        *of = (cleat_distributed_table){.rows = table->rows,
                                        .width = table->width,
                                        .most_rows = table->most,
                                        .any_rows = table->any,
                                        .way = ways[o->exchange.table_ways[t]],
                                        .is_whole = o->exchange.table_ways[t] == CLEAT_ROWS_WHOLE,
                                        .sent_bytes = o->exchange.table_bytes[t]};
        memcpy(of->name, fit->table_names[t], sizeof of->name);
    }
}

static void describe_exchange(const planner *p, const outcome *o, cleat_distributed_exchange *made) {
    const cleat_gradient_load load = load_of(p, o, p->main);
    int64_t bytes = 0;
    for (int d = 0; d < p->count; ++d)
        if (o->fits[d]) bytes = o->fits[d]->gradient_bytes;
    *made = (cleat_distributed_exchange){.ranks = o->used,
                                         .bytes = bytes,
                                         .dense_bytes = load.bytes,
                                         .sent_bytes = o->exchange.sent_bytes,
                                         .buckets = o->exchange.buckets,
                                         .way = o->exchange.way,
                                         .seconds = o->exchange.seconds,
                                         .exposed_seconds = o->exchange.exposed_seconds};
    for (int way = 0; way < CLEAT_ALLREDUCES && made->buckets > 0; ++way)
        made->way_seconds[way] =
            made->buckets * cleat_allreduce_seconds((cleat_allreduce)way, made->ranks,
                                                    cleat_ceil_div(load.bytes, made->buckets), p->network);
    describe_tables(p, o, &load, made);
}

/* The best outcome with several devices: the best of all, or one of the others; NULL: none. */
static const outcome *best_of_several(const planner *p, const outcome *best, const outcome *others) {
    const outcome *found = NULL;
    if (best->used > 1) return best;
    for (int d = 0; d < p->count; ++d)
        if (others[d].used > 1 && isfinite(others[d].step_seconds) &&
            (!found || others[d].step_seconds < found->step_seconds))
            found = &others[d];
    return found;
}

/* --- public function ---------------------------------------------------------------------------------------------- */

static cleat_status check(const cleat_profile *profile, int count, cleat_error *error) {
    const int64_t samples = cleat_profile_effective_batch(profile);
    if (count < 1 || count > CLEAT_PLAN_DEVICES)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%d devices: there must be 1 to %d", count, CLEAT_PLAN_DEVICES);
    if (count > samples)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "%d devices, but a global batch has only %lld samples: use fewer devices, or a larger "
                          "train.effective_batch_size",
                          count, (long long)samples);
    return cleat_profile_check_training(profile, error);
}

static void set_up(planner *p) {
    const int64_t effective = cleat_profile_effective_batch(p->setup.profile);
    cleat_bucket buckets[CLEAT_BUCKETS];
    cleat_lengths_global_batches(&p->lengths, effective, buckets);
    for (size_t b = 0; b < p->lengths.count; ++b) {
        p->global[b] = buckets[b].global_batch_size;
        p->steps[b] = cleat_ceil_div(p->lengths.samples[b], effective);
        if (p->global[b] >= p->global[p->main]) p->main = b;
    }
    for (int d = 0; d < p->count; ++d) {
        const cleat_distributed_device *own = &p->devices[d], *first = p->devices;
        while (memcmp(first->facts, own->facts, sizeof *own->facts) != 0 ||
               memcmp(first->rates, own->rates, sizeof *own->rates) != 0)
            ++first;
        p->kinds[d] = (int)(first - p->devices);
    }
}

/* Fits the whole global batch to each device alone. */
static cleat_status fit_alone(planner *p, cleat_distributed_report *report, cleat_error *error) {
    for (int d = 0; d < p->count; ++d) {
        const cleat_rank_fit *fit = NULL;
        cleat_distributed_rank *rank = &report->ranks[d];
        cleat_status status = find_part(p, d, 1, 1, &fit, error);
        if (status) return status;
        p->usable[d] = rank->fits = fit->fits;
        rank->storage = fit->storage;
        rank->limit = fit->limit;
        rank->alone_seconds = fit->seconds[p->main];
        snprintf(rank->reason, sizeof rank->reason, "%s", fit->reason);
    }
    return CLEAT_OK;
}

static cleat_status plan(planner *p, cleat_distributed_report *report, cleat_error *error) {
    outcome best = {.used = 0}, *others = cleat_alloc((size_t)p->count, sizeof *others);
    if (!others) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the plan of %d devices", p->count);
    set_up(p);
    report->count = p->count;
    report->data_known = p->data_known;
    report->length = p->lengths.lengths[p->main];
    report->global_batch_size = p->global[p->main];
    cleat_status status = fit_alone(p, report, error);
    if (!status) status = find_best(p, &best, others, error);
    if (!status) {
        report->used = best.used;
        for (int d = 0; d < p->count; ++d) describe_rank(p, &best, &others[d], d, &report->ranks[d]);
        report->price_per_hour = price_of(p, &best, &report->watts);
        if (best.used > 0) describe_time(p, &best, report);
        const outcome *several = best_of_several(p, &best, others);
        if (several) describe_exchange(p, several, &report->exchange);
    }
    cleat_free(others);
    return status;
}

cleat_status cleat_fit_distributed(const cleat_profile *profile, int count, const cleat_distributed_device *devices,
                                   const cleat_network *network, cleat_distributed_report *report, cleat_error *error) {
    planner p = {.count = count, .devices = devices, .network = network};
    cleat_model *model = NULL;
    cleat_status status = check(profile, count, error);
    if (!status) status = cleat_profile_create_model(profile, &model, error);
    if (status) return status;
    cleat_distributed_report *made = cleat_alloc(1, sizeof *made);
    if (!made) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a plan of %d devices", count);
    if (!status) status = cleat_fit_lengths(profile, model, &p.lengths, &p.data_known, error);
    p.setup = (cleat_rank_setup){profile, model, &p.lengths};
    if (!status) status = plan(&p, made, error);
    if (!status) *report = *made;
    cleat_free(made);
    for (known *next; p.known; p.known = next) {
        next = p.known->next;
        cleat_free(p.known);
    }
    cleat_model_destroy(model);
    return status;
}
