/* Integer shares that minimise the time of the slowest rank, by bisection over that time: it is a monotone
 * function of the number of samples, so for a time T each rank has a largest share that it finishes by T. */
#include "fit/shares.h"

#include "core/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t MAX_SAMPLES = INT64_C(1) << 40, MAX_CUT = INT64_C(1) << 30;

/* --- time of a rank ----------------------------------------------------------------------------------------------- */

double cleat_rank_seconds(const cleat_rank_time *time, int64_t samples) {
    int64_t micro_batches = 0;
    if (samples <= 0) return 0;
    if (time->micro_batch_size > 0) micro_batches = (samples + time->micro_batch_size - 1) / time->micro_batch_size;
    return time->fixed_seconds + (double)samples * time->seconds_per_sample +
           (double)micro_batches * time->seconds_per_micro_batch;
}

/* The largest part of `samples` that the rank can hold. */
static int64_t largest_share(const cleat_rank_time *time, int64_t samples) {
    return time->most_samples > 0 && time->most_samples < samples ? time->most_samples : samples;
}

/* The maximum number of samples, up to `samples`, that the rank finishes within `seconds`; 0: not even
 * one. */
static int64_t share_within(const cleat_rank_time *time, int64_t samples, double seconds) {
    int64_t good = 0, bad = largest_share(time, samples) + 1;
    while (bad - good > 1) {
        int64_t middle = good + (bad - good) / 2;
        if (cleat_rank_seconds(time, middle) <= seconds)
            good = middle;
        else
            bad = middle;
    }
    return good;
}

static bool is_time(double seconds) {
    return isfinite(seconds) && seconds >= 0;
}

static cleat_status check_times(int ranks, const cleat_rank_time *times, int64_t samples, cleat_error *error) {
    if (ranks < 1 || ranks > CLEAT_MAX_RANKS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "shares of %d ranks: there must be 1 to %d", ranks,
                          CLEAT_MAX_RANKS);
    if (samples < 1 || samples > MAX_SAMPLES)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "shares of %lld samples: there must be 1 to %lld",
                          (long long)samples, (long long)MAX_SAMPLES);
    for (int r = 0; r < ranks; ++r) {
        const cleat_rank_time *time = &times[r];
        if (is_time(time->fixed_seconds) && is_time(time->seconds_per_sample) && time->seconds_per_sample > 0 &&
            is_time(time->seconds_per_micro_batch) && time->most_samples >= 0 && time->micro_batch_size >= 0)
            continue;
        return cleat_fail(
            error, CLEAT_ERR_ARGUMENT,
            "rank %d: a time of %g s + %g s per sample + %g s per micro-batch of %lld, at most %lld samples, "
            "is invalid: times must be finite and that of a sample above 0",
            r, time->fixed_seconds, time->seconds_per_sample, time->seconds_per_micro_batch,
            (long long)time->micro_batch_size, (long long)time->most_samples);
    }
    return CLEAT_OK;
}

/* --- shares of given ranks ---------------------------------------------------------------------------------------- */

/* A time within which every rank finishes all samples that it can hold. */
static double longest_time(int ranks, const cleat_rank_time *times, int64_t samples) {
    double longest = 0;
    for (int r = 0; r < ranks; ++r)
        longest = fmax(longest, cleat_rank_seconds(&times[r], largest_share(&times[r], samples)));
    return longest;
}

/* The number of samples that all ranks together finish within `seconds`, at least one each. */
static int64_t samples_within(int ranks, const cleat_rank_time *times, int64_t samples, double seconds,
                              int64_t *shares) {
    int64_t sum = 0;
    for (int r = 0; r < ranks; ++r) {
        shares[r] = share_within(&times[r], samples, seconds);
        if (shares[r] < 1) shares[r] = 1;
        sum += shares[r];
    }
    return sum;
}

/* The rank that would finish one more sample first. */
static int next_rank(int ranks, const cleat_rank_time *times, int64_t samples, const int64_t *shares) {
    double first = INFINITY;
    int next = 0;
    for (int r = 0; r < ranks; ++r) {
        double end = cleat_rank_seconds(&times[r], shares[r] + 1);
        if (shares[r] < largest_share(&times[r], samples) && end < first) {
            first = end;
            next = r;
        }
    }
    return next;
}

static double slowest(int ranks, const cleat_rank_time *times, const int64_t *shares) {
    double longest = 0;
    for (int r = 0; r < ranks; ++r) longest = fmax(longest, cleat_rank_seconds(&times[r], shares[r]));
    return longest;
}

/* Requires valid times, ranks <= samples, and that the ranks hold all samples. The bisection, down to two
 * neighbouring doubles, deals all but the last few samples. */
static void deal(int ranks, const cleat_rank_time *times, int64_t samples, int64_t *shares) {
    double before = 0, after = longest_time(ranks, times, samples), middle;
    if (samples_within(ranks, times, samples, after, shares) <= samples) before = after;
    while (before < after && (middle = before + (after - before) / 2) > before && middle < after)
        if (samples_within(ranks, times, samples, middle, shares) <= samples)
            before = middle;
        else
            after = middle;
    int64_t dealt = samples_within(ranks, times, samples, before, shares);
    for (; dealt < samples; ++dealt) ++shares[next_rank(ranks, times, samples, shares)];
}

static int64_t capacity(int ranks, const cleat_rank_time *times, int64_t samples) {
    int64_t sum = 0;
    for (int r = 0; r < ranks; ++r) sum += largest_share(&times[r], samples);
    return sum;
}

cleat_status cleat_shares_solve(int ranks, const cleat_rank_time *times, int64_t samples, int64_t *shares,
                                double *seconds, cleat_error *error) {
    cleat_status status = check_times(ranks, times, samples, error);
    if (status) return status;
    if (samples < ranks)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "%lld samples cannot be shared by %d ranks: each needs at least one; use fewer devices or a "
                          "larger train.effective_batch_size",
                          (long long)samples, ranks);
    if (capacity(ranks, times, samples) < samples)
        return cleat_fail(error, CLEAT_ERR_FIT, "%lld samples do not fit %d ranks, which hold %lld", (long long)samples,
                          ranks, (long long)capacity(ranks, times, samples));
    deal(ranks, times, samples, shares);
    if (seconds) *seconds = slowest(ranks, times, shares);
    return CLEAT_OK;
}

/* --- which ranks take part ---------------------------------------------------------------------------------------- */

enum { NONE = -1 };

typedef struct candidate {
    int64_t share;
    int rank;
} candidate;

typedef struct choice {
    int ranks;
    const cleat_rank_time *times;
    int64_t samples;
    const double *communication;
    candidate *order; /* [ranks] scratch */
} choice;

/* Largest share first; ties go to the earlier rank. */
static int compare(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->share != y->share) return x->share < y->share ? 1 : -1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Orders the ranks by the samples they finish within `seconds`, `with` first and `without` last (either
 * may be NONE). Returns whether each of the first `count` finishes at least one sample, and together they
 * finish all. */
static bool is_enough(const choice *c, int count, int with, int without, double seconds) {
    int64_t sum = 0, with_share = 0;
    for (int r = 0; r < c->ranks; ++r) {
        int64_t share = r == without ? 0 : share_within(&c->times[r], c->samples, seconds);
        if (r == with) with_share = share;
        c->order[r] = (candidate){r == with ? INT64_MAX : share, r};
    }
    qsort(c->order, (size_t)c->ranks, sizeof *c->order, compare);
    if (with != NONE) c->order[0].share = with_share;
    for (int i = 0; i < count; ++i) {
        if (c->order[i].share < 1) return false;
        sum += c->order[i].share;
    }
    return sum >= c->samples;
}

/* The minimum time of exactly `count` ranks, which come first in c->order, without communication;
 * infinite: impossible. */
static double least_seconds(const choice *c, int count, int with, int without) {
    double bad = 0, good = longest_time(c->ranks, c->times, c->samples), middle;
    if (count > c->samples || !is_enough(c, count, with, without, good)) return INFINITY;
    while ((middle = bad + (good - bad) / 2) > bad && middle < good)
        if (is_enough(c, count, with, without, middle))
            good = middle;
        else
            bad = middle;
    is_enough(c, count, with, without, good);
    return good;
}

/* The minimum time with communication over all numbers of ranks; *count (may be NULL): that number. */
static double least_step(const choice *c, int with, int without, int *count) {
    double least = INFINITY;
    for (int n = 1; n <= c->ranks; ++n) {
        double seconds = least_seconds(c, n, with, without) + c->communication[n - 1];
        if (seconds < least) {
            least = seconds;
            if (count) *count = n;
        }
    }
    return least;
}

static bool is_same_rank(const choice *c, const int64_t *shares, int a, int b) {
    const cleat_rank_time *x = &c->times[a], *y = &c->times[b];
    return (shares[a] > 0) == (shares[b] > 0) && x->fixed_seconds == y->fixed_seconds &&
           x->seconds_per_sample == y->seconds_per_sample && x->most_samples == y->most_samples &&
           x->micro_batch_size == y->micro_batch_size && x->seconds_per_micro_batch == y->seconds_per_micro_batch;
}

/* Ranks with equal times have equal answers, which saves time with 64 equal cards. */
static void find_others(const choice *c, const int64_t *shares, double *other_seconds) {
    for (int r = 0; r < c->ranks; ++r) {
        int same = 0;
        while (same < r && !is_same_rank(c, shares, same, r)) ++same;
        if (same < r)
            other_seconds[r] = other_seconds[same];
        else
            other_seconds[r] = shares[r] > 0 ? least_step(c, NONE, r, NULL) : least_step(c, r, NONE, NULL);
    }
}

/* Shares of the first `count` ranks of c->order, in the order of the ranks. */
static void deal_chosen(const choice *c, int count, cleat_rank_time *chosen, int64_t *parts, int64_t *shares) {
    int n = 0;
    for (int r = 0; r < c->ranks; ++r) shares[r] = 0;
    for (int i = 0; i < count; ++i) shares[c->order[i].rank] = 1;
    for (int r = 0; r < c->ranks; ++r)
        if (shares[r]) chosen[n++] = c->times[r];
    deal(n, chosen, c->samples, parts);
    n = 0;
    for (int r = 0; r < c->ranks; ++r)
        if (shares[r]) shares[r] = parts[n++];
}

static cleat_status check_communication(int ranks, const double *communication, cleat_error *error) {
    for (int k = 0; k < ranks; ++k)
        if (!is_time(communication[k]))
            return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                              "communication of %d ranks takes %g s: must be finite and not "
                              "negative",
                              k + 1, communication[k]);
    return CLEAT_OK;
}

cleat_status cleat_shares_choose(int ranks, const cleat_rank_time *times, int64_t samples,
                                 const double *communication_seconds, int64_t *shares, double *seconds,
                                 double *other_seconds, cleat_error *error) {
    int count = 0;
    cleat_status status = check_times(ranks, times, samples, error);
    if (!status) status = check_communication(ranks, communication_seconds, error);
    if (!status && capacity(ranks, times, samples) < samples)
        status = cleat_fail(error, CLEAT_ERR_FIT, "%lld samples do not fit %d ranks, which hold %lld",
                            (long long)samples, ranks, (long long)capacity(ranks, times, samples));
    if (status) return status;
    candidate *order = cleat_alloc((size_t)ranks, sizeof *order);
    cleat_rank_time *chosen = cleat_alloc((size_t)ranks, sizeof *chosen);
    int64_t *parts = cleat_alloc((size_t)ranks, sizeof *parts);
    if (order && chosen && parts) {
        const choice c = {ranks, times, samples, communication_seconds, order};
        least_step(&c, NONE, NONE, &count);
        least_seconds(&c, count, NONE, NONE);
        deal_chosen(&c, count, chosen, parts, shares);
        if (seconds) *seconds = slowest(ranks, times, shares) + communication_seconds[count - 1];
        if (other_seconds) find_others(&c, shares, other_seconds);
    } else
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for shares of %d ranks", ranks);
    cleat_free(order);
    cleat_free(chosen);
    cleat_free(parts);
    return status;
}

/* --- in proportion ------------------------------------------------------------------------------------------------ */

/* The rank with the largest remainder of samples * shares[r] / sum that has not been served; `served` ranks have a
 * remainder of -1. */
static int largest_remainder(int ranks, const int64_t *remainders) {
    int largest = 0;
    for (int r = 1; r < ranks; ++r)
        if (remainders[r] > remainders[largest]) largest = r;
    return largest;
}

cleat_status cleat_shares_cut(int ranks, const int64_t *shares, int64_t samples, int64_t *cut, cleat_error *error) {
    int64_t sum = 0, rest = samples;
    bool valid = ranks >= 1 && ranks <= CLEAT_MAX_RANKS && samples >= 0 && samples <= MAX_CUT;
    for (int r = 0; r < ranks && valid; ++r) {
        valid = shares[r] >= 0 && shares[r] <= MAX_CUT;
        sum += shares[r];
    }
    if (!valid || sum < 1 || sum > MAX_CUT)
        return cleat_fail(
            error, CLEAT_ERR_ARGUMENT,
            "%lld samples cannot be cut by the shares of %d ranks: numbers must be 0 to %lld, and a share "
            "above 0",
            (long long)samples, ranks, (long long)MAX_CUT);
    int64_t *remainders = cleat_alloc((size_t)ranks, sizeof *remainders);
    if (!remainders) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for shares of %d ranks", ranks);
    for (int r = 0; r < ranks; ++r) {
        cut[r] = samples * shares[r] / sum;
        remainders[r] = samples * shares[r] % sum;
        rest -= cut[r];
    }
    for (; rest > 0; --rest) {
        int r = largest_remainder(ranks, remainders);
        ++cut[r];
        remainders[r] = -1;
    }
    cleat_free(remainders);
    return CLEAT_OK;
}
