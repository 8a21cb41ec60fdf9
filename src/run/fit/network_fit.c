/* The network that explains measured all-reduces: latency and bandwidth by weighted least squares. */
#include "cleat/distributed_plan.h"

#include <math.h>
#include <stdio.h>

/* Each turn chooses the algorithm of every message again; a few suffice. */
enum { TURNS = 20 };

/* Seconds of an all-reduce = messages * latency + bytes / rate. */
typedef struct cost {
    double messages, bytes;
} cost;

static cost cost_of(int ranks, int64_t bytes, const cleat_network *network) {
    const cleat_allreduce way = cleat_allreduce_best(ranks, bytes, network);
    const cleat_network latency_only = {.latency_seconds = 1, .bytes_per_second = INFINITY};
    const cleat_network rate_only = {.latency_seconds = 0, .bytes_per_second = 1};
    return (cost){cleat_allreduce_seconds(way, ranks, bytes, &latency_only),
                  cleat_allreduce_seconds(way, ranks, bytes, &rate_only)};
}

/* Minimises the sum of (estimate / measured - 1)^2, so that small and large messages count alike. A latency
 * below 0 becomes 0. */
static bool fit_line(int ranks, size_t count, const cleat_allreduce_time *measured, cleat_network *network) {
    double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
    for (size_t i = 0; i < count; ++i) {
        const cost c = cost_of(ranks, measured[i].bytes, network);
        const double a = c.messages / measured[i].seconds, b = c.bytes / measured[i].seconds;
        aa += a * a, ab += a * b, bb += b * b, a1 += a, b1 += b;
    }
    const double determinant = aa * bb - ab * ab;
    if (!(determinant > 1e-12 * aa * bb)) return false;
    double latency = (a1 * bb - b1 * ab) / determinant, seconds_per_byte = (b1 * aa - a1 * ab) / determinant;
    if (latency < 0) latency = 0, seconds_per_byte = b1 / bb;
    if (!(seconds_per_byte > 0) || !isfinite(latency)) return false;
    network->latency_seconds = latency;
    network->bytes_per_second = 1 / seconds_per_byte;
    return true;
}

/* In the form that cleat_network_parse reads. */
static void name_network(cleat_network *network) {
    const double rate = network->bytes_per_second, latency = network->latency_seconds;
    char text[sizeof network->name];
    if (rate >= 1e9)
        snprintf(text, sizeof text, "%.3gGB", rate / 1e9);
    else if (rate >= 1e6)
        snprintf(text, sizeof text, "%.0fMB", rate / 1e6);
    else
        snprintf(text, sizeof text, "%.0fkB", rate / 1e3);
    snprintf(network->name, sizeof network->name, "%.30s,%.1fus", text, latency * 1e6);
}

cleat_status cleat_network_fit(int ranks, size_t count, const cleat_allreduce_time *measured, cleat_network *network,
                               double *worst, cleat_error *error) {
    bool valid = ranks > 1 && count > 1;
    for (size_t i = 0; i < count; ++i)
        valid = valid && measured[i].bytes > 0 && measured[i].seconds > 0 && isfinite(measured[i].seconds);
    cleat_network made = {.latency_seconds = 0, .bytes_per_second = 1};
    for (int turn = 0; turn < TURNS && valid; ++turn) valid = fit_line(ranks, count, measured, &made);
    if (!valid || made.bytes_per_second < 1e3 || made.bytes_per_second > 1e14 || made.latency_seconds > 1e5)
        return cleat_fail(
            error, CLEAT_ERR_ARGUMENT,
            "no network explains these %zu times of %d ranks: there must be at least two sizes, and larger "
            "ones must take longer",
            count, ranks);
    *worst = 0;
    for (size_t i = 0; i < count; ++i) {
        const cost c = cost_of(ranks, measured[i].bytes, &made);
        const double seconds = c.messages * made.latency_seconds + c.bytes / made.bytes_per_second;
        *worst = fmax(*worst, fabs(seconds / measured[i].seconds - 1));
    }
    name_network(&made);
    *network = made;
    return CLEAT_OK;
}
