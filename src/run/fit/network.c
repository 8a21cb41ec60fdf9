/* Networks: texts such as "10Gb,30us" and "pcie3"; latency and bandwidth that explain measured all-reduces, by
 * weighted least squares. */
#include "core/string.h"

#include "cleat/distributed_plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Copies through pinned memory reach about three quarters of a 16-lane bus (PCIe 3: 12 of 15.75 GB/s in
 * many card benchmarks; 4 and 5 in proportion). The all-reduce rate within one machine is an assumption
 * until `cleat bench` measures it. */
#define PCIE3 12e9
static const double MEMORY = 5e9, MEMORY_LATENCY = 2e-6, TCP_LATENCY = 50e-6;

typedef struct unit {
    const char *name;
    double factor;
} unit;

static const unit rates[] = {{"kb", 1e3 / 8}, {"Mb", 1e6 / 8}, {"Gb", 1e9 / 8}, {"kB", 1e3},
                             {"MB", 1e6},     {"GB", 1e9},     {NULL, 0}};
static const unit times[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {NULL, 0}};

/* Reads a number and its unit from text [size]; false: the text is not such a number, or the number is not
 * above `least`. */
static bool read_quantity(const char *text, size_t size, const unit *units, double least, double *value) {
    char number[32];
    const size_t digits = strspn(text, "0123456789.");
    if (digits == 0 || digits >= size || digits >= sizeof number) return false;
    snprintf(number, sizeof number, "%.*s", (int)digits, text);
    for (const unit *u = units; u->name; ++u) {
        if (strlen(u->name) != size - digits || strncmp(u->name, text + digits, size - digits) != 0) continue;
        if (!cleat_number_parse(number, value)) return false;
        *value *= u->factor;
        return *value >= least;
    }
    return false;
}

/* Fills a network from the name [size] of a link; false: unknown. */
static bool read_name(const char *text, size_t size, cleat_network *network) {
    static const unit links[] = {{"memory", 0}, {"pcie3", PCIE3}, {"pcie4", 2 * PCIE3}, {"pcie5", 4 * PCIE3}};
    for (size_t i = 0; i < sizeof links / sizeof links[0]; ++i) {
        if (strlen(links[i].name) != size || strncmp(links[i].name, text, size) != 0) continue;
        network->bytes_per_second = MEMORY;
        network->latency_seconds = MEMORY_LATENCY;
        network->host_bytes_per_second = links[i].factor;
        return true;
    }
    return false;
}

cleat_status cleat_network_parse(const char *text, cleat_network *network, cleat_error *error) {
    /* A card copies its gradient to the host before it is sent: PCIe 3 unless the text says otherwise. */
    cleat_network made = {.latency_seconds = TCP_LATENCY, .host_bytes_per_second = PCIE3};
    const size_t size = strcspn(text, ",");
    bool valid = strlen(text) < sizeof made.name;
    valid = valid && (read_name(text, size, &made) || read_quantity(text, size, rates, 1, &made.bytes_per_second));
    if (valid && text[size])
        valid = read_quantity(text + size + 1, strlen(text + size + 1), times, 0, &made.latency_seconds);
    if (!valid)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "network '%.60s': must be memory, pcie3, pcie4, pcie5, or a rate such as 100Mb, 1Gb, 25Gb "
                          "(bits per second) or 2GB (bytes); a latency may follow: 10Gb,30us",
                          text);
    snprintf(made.name, sizeof made.name, "%s", text);
    *network = made;
    return CLEAT_OK;
}

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
