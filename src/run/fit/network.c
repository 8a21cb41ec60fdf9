/* Texts such as "10Gb,30us" and "pcie3" as networks. */
#include "core/string.h"

#include "cleat/distributed_plan.h"

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
