/* Integer shares that minimise the time of the slowest rank, by bisection over that time: it is a monotone
 * function of the number of samples, so for a time T each rank has a largest share that it finishes by T. */
#include "fit/shares.h"

#include "core/memory.h"

#include <math.h>
#include <stdlib.h>

static const int64_t MAX_SAMPLES = INT64_C(1) << 40, MAX_CUT = INT64_C(1) << 30;

/* --- time of a rank ----------------------------------------------------------------------------------------------- */

double cleat_rank_seconds(const cleat_rank_time *time, int64_t samples) {
    return samples > 0 ? time->fixed_seconds + (double)samples * time->seconds_per_sample : 0;
}

/* The maximum number of samples, up to `samples`, that the rank finishes within `seconds`; 0: not even
 * one. */
static int64_t share_within(const cleat_rank_time *time, int64_t samples, double seconds) {
    int64_t good = 0, bad = samples + 1;
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
    for (int r = 0; r < ranks; ++r)
        if (!is_time(times[r].fixed_seconds) || !is_time(times[r].seconds_per_sample) ||
            !(times[r].seconds_per_sample > 0))
            return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                              "rank %d: a time of %g s + %g s per sample is invalid: times must be finite and that of "
                              "a sample above 0",
                              r, times[r].fixed_seconds, times[r].seconds_per_sample);
    return CLEAT_OK;
}

/* --- shares of given ranks ---------------------------------------------------------------------------------------- */

/* A time within which every rank finishes all samples. */
static double longest_time(int ranks, const cleat_rank_time *times, int64_t samples) {
    double longest = 0;
    for (int r = 0; r < ranks; ++r) longest = fmax(longest, cleat_rank_seconds(&times[r], samples));
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
static int next_rank(int ranks, const cleat_rank_time *times, const int64_t *shares) {
    int next = 0;
    for (int r = 1; r < ranks; ++r)
        if (cleat_rank_seconds(&times[r], shares[r] + 1) < cleat_rank_seconds(&times[next], shares[next] + 1)) next = r;
    return next;
}

static double slowest(int ranks, const cleat_rank_time *times, const int64_t *shares) {
    double longest = 0;
    for (int r = 0; r < ranks; ++r) longest = fmax(longest, cleat_rank_seconds(&times[r], shares[r]));
    return longest;
}

/* Requires valid times and ranks <= samples. The bisection, down to two neighbouring doubles, deals all but the last
 * few samples. */
static void deal(int ranks, const cleat_rank_time *times, int64_t samples, int64_t *shares) {
    double before = 0, after = longest_time(ranks, times, samples), middle;
    if (samples_within(ranks, times, samples, after, shares) <= samples) before = after;
    while (before < after && (middle = before + (after - before) / 2) > before && middle < after)
        if (samples_within(ranks, times, samples, middle, shares) <= samples)
            before = middle;
        else
            after = middle;
    int64_t dealt = samples_within(ranks, times, samples, before, shares);
    for (; dealt < samples; ++dealt) ++shares[next_rank(ranks, times, shares)];
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
    deal(ranks, times, samples, shares);
    if (seconds) *seconds = slowest(ranks, times, shares);
    return CLEAT_OK;
}

/* --- which ranks take part ---------------------------------------------------------------------------------------- */

typedef struct candidate {
    int64_t share;
    int rank;
} candidate;

typedef struct choice {
    int ranks;
    const cleat_rank_time *times;
    int64_t samples;
    candidate *order; /* [ranks] scratch */
} choice;

/* Largest share first; ties go to the earlier rank. */
static int compare(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->share != y->share) return x->share < y->share ? 1 : -1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Orders the ranks by the samples they finish within `seconds`. Returns whether each of the first `count`
 * finishes at least one sample, and together they finish all. */
static bool is_enough(const choice *c, int count, double seconds) {
    int64_t sum = 0;
    for (int r = 0; r < c->ranks; ++r) c->order[r] = (candidate){share_within(&c->times[r], c->samples, seconds), r};
    qsort(c->order, (size_t)c->ranks, sizeof *c->order, compare);
    for (int i = 0; i < count; ++i) {
        if (c->order[i].share < 1) return false;
        sum += c->order[i].share;
    }
    return sum >= c->samples;
}

/* The minimum time of exactly `count` ranks, which come first in c->order, without communication;
 * infinite: impossible. */
static double least_seconds(const choice *c, int count) {
    double bad = 0, good = longest_time(c->ranks, c->times, c->samples), middle;
    if (count > c->samples || !is_enough(c, count, good)) return INFINITY;
    while ((middle = bad + (good - bad) / 2) > bad && middle < good)
        if (is_enough(c, count, middle))
            good = middle;
        else
            bad = middle;
    is_enough(c, count, good);
    return good;
}

/* The number of ranks with the minimum time, communication included. */
static int best_count(const choice *c, const double *communication) {
    double least = INFINITY;
    int best = 1;
    for (int n = 1; n <= c->ranks; ++n) {
        const double seconds = least_seconds(c, n) + communication[n - 1];
        if (seconds < least) {
            least = seconds;
            best = n;
        }
    }
    return best;
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

cleat_status cleat_shares_choose(int ranks, const cleat_rank_time *times, int64_t samples,
                                 const double *communication_seconds, int64_t *shares, double *seconds,
                                 cleat_error *error) {
    cleat_status status = check_times(ranks, times, samples, error);
    for (int k = 0; k < ranks && !status; ++k)
        if (!is_time(communication_seconds[k]))
            status = cleat_fail(error, CLEAT_ERR_ARGUMENT,
                                "communication of %d ranks takes %g s: must be finite and not negative", k + 1,
                                communication_seconds[k]);
    if (status) return status;
    candidate *order = cleat_alloc((size_t)ranks, sizeof *order);
    cleat_rank_time *chosen = cleat_alloc((size_t)ranks, sizeof *chosen);
    int64_t *parts = cleat_alloc((size_t)ranks, sizeof *parts);
    if (order && chosen && parts) {
        const choice c = {ranks, times, samples, order};
        const int count = best_count(&c, communication_seconds);
        least_seconds(&c, count);
        deal_chosen(&c, count, chosen, parts, shares);
        if (seconds) *seconds = slowest(ranks, times, shares) + communication_seconds[count - 1];
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
