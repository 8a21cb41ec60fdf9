/* Load and memory of this process on a card, from /proc/self/fdinfo of its open DRM files. Every kernel driver of
 * today's GPUs except NVIDIA's writes the keys of docs.kernel.org/gpu/drm-usage-stats.html there, for every user. */
#include "core/memory.h"
#include "monitor/kernel_files.h"
#include "monitor/route.h"
#include "platform/files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CLIENTS = 16, MAX_ENGINES = 16, NAME = 24, TEXT = 16384, PATH = CLEAT_ROUTE_ROOT + 96 };
#define UNKNOWN (-1.0)

typedef struct engine {
    char name[NAME];
    double nanoseconds;   /* of work; UNKNOWN: counted in cycles */
    double cycles, total; /* of work; that passed; UNKNOWN: counted in nanoseconds */
    double capacity;      /* equal engines that share the name */
} engine;

/* Where the bytes lie. */
typedef enum region { REGION_CARD, REGION_HOST, REGIONS } region;

/* One use of the card by this process: several files can share it, and are counted once. */
typedef struct client {
    char id[NAME];
    engine engines[MAX_ENGINES];
    size_t engine_count;
    double bytes[REGIONS]; /* UNKNOWN: not reported */
} client;

typedef struct client_list {
    client clients[MAX_CLIENTS];
    size_t count;
} client_list;

typedef struct fdinfo_state {
    const cleat_route_place *place;
    char driver[NAME];
    double time;
    client_list lists[2]; /* of this read and of the one before */
    int current;
} fdinfo_state;

static const engine *find_engine(const client *client_of, const char *name) {
    for (size_t i = 0; i < client_of->engine_count; ++i)
        if (strcmp(client_of->engines[i].name, name) == 0) return &client_of->engines[i];
    return NULL;
}

/* The engine of that name, added if it is new; NULL: too many. */
static engine *engine_named(client *client_of, const char *name) {
    const engine *found = find_engine(client_of, name);
    if (found) return &client_of->engines[found - client_of->engines];
    if (client_of->engine_count == MAX_ENGINES) return NULL;
    engine *added = &client_of->engines[client_of->engine_count++];
    *added = (engine){.nanoseconds = UNKNOWN, .cycles = UNKNOWN, .total = UNKNOWN, .capacity = 1};
    snprintf(added->name, sizeof added->name, "%.*s", NAME - 1, name);
    return added;
}

/* Returns what follows `prefix` in the key; NULL if it begins with something else. */
static const char *after(const char *key, const char *prefix) {
    return strncmp(key, prefix, strlen(prefix)) == 0 ? key + strlen(prefix) : NULL;
}

static void read_engine(client *into, const char *key, double number) {
    const char *name;
    engine *here;
    if ((name = after(key, "drm-engine-capacity-"))) {
        if ((here = engine_named(into, name)) && number > 0) here->capacity = number;
    } else if ((name = after(key, "drm-engine-"))) {
        if ((here = engine_named(into, name))) here->nanoseconds = number;
    } else if ((name = after(key, "drm-total-cycles-"))) {
        if ((here = engine_named(into, name))) here->total = number;
    } else if ((name = after(key, "drm-cycles-"))) {
        if ((here = engine_named(into, name))) here->cycles = number;
    }
}

/* The keys of memory, best first: resident memory; the same under its former name; allocated memory. */
static const char *const memory_keys[] = {"drm-resident-", "drm-memory-", "drm-total-"};
enum { MEMORY_KEYS = 3 };
typedef double byte_table[MEMORY_KEYS][REGIONS];

static void read_memory(byte_table bytes, const char *key, double number, const char *unit) {
    const char *name = NULL;
    int rank = 0;
    for (; rank < MEMORY_KEYS && !(name = after(key, memory_keys[rank])); ++rank) {
    }
    if (!name) return;
    region in;
    if (after(name, "vram") || after(name, "local"))
        in = REGION_CARD;
    else if (after(name, "gtt") || after(name, "system"))
        in = REGION_HOST;
    else
        return;
    const double scale = after(unit, "KiB") ? 1024 : after(unit, "MiB") ? 1048576 : 1;
    bytes[rank][in] = (bytes[rank][in] == UNKNOWN ? 0 : bytes[rank][in]) + number * scale;
}

/* Parses the text of one file into *made. False: not a use of this card. */
static bool parse_client(const char *text, const char *pci, char driver[NAME], client *made) {
    byte_table bytes = {{UNKNOWN, UNKNOWN}, {UNKNOWN, UNKNOWN}, {UNKNOWN, UNKNOWN}};
    bool here = false;
    *made = (client){.bytes = {UNKNOWN, UNKNOWN}};
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        char key[64], value[NAME], unit[8] = "", *end;
        if (sscanf(line, "%63[^:\n]: %23s%*[ ]%7s", key, value, unit) < 2) continue;
        if (strcmp(key, "drm-pdev") == 0) here = strcmp(value, pci) == 0;
        if (strcmp(key, "drm-client-id") == 0) snprintf(made->id, sizeof made->id, "%s", value);
        if (strcmp(key, "drm-driver") == 0) snprintf(driver, NAME, "%s", value);
        const double number = strtod(value, &end);
        if (*end || number < 0) continue;
        read_engine(made, key, number);
        read_memory(bytes, key, number, unit);
    }
    for (int in = 0; in < REGIONS; ++in)
        for (int rank = 0; rank < MEMORY_KEYS && made->bytes[in] == UNKNOWN; ++rank) made->bytes[in] = bytes[rank][in];
    return here && made->id[0];
}

static const client *find_client(const client_list *list, const char *id) {
    for (size_t i = 0; i < list->count; ++i)
        if (strcmp(list->clients[i].id, id) == 0) return &list->clients[i];
    return NULL;
}

/* Whether file number `name` may be a DRM file, so that others need not be read. */
static bool may_be_drm(const char *root, const char *name) {
    char path[PATH], target[16] = "";
    snprintf(path, sizeof path, "%s/proc/self/fd/%.16s", root, name);
    const ssize_t length = readlink(path, target, sizeof target - 1);
    return length < 0 || strncmp(target, "/dev/dri/", strlen("/dev/dri/")) == 0;
}

static void list_clients(const cleat_route_place *place, char driver[NAME], client_list *list) {
    char path[PATH], text[TEXT], name_of_driver[NAME] = "";
    list->count = 0;
    snprintf(path, sizeof path, "%s/proc/self/fdinfo", place->root);
    DIR *folder = opendir(path);
    if (!folder) return;
    for (const struct dirent *entry; list->count < MAX_CLIENTS && (entry = readdir(folder));) {
        client *made = &list->clients[list->count];
        if (entry->d_name[0] == '.' || !may_be_drm(place->root, entry->d_name) ||
            !cleat_kernel_text(text, sizeof text, "%s/%s", path, entry->d_name) ||
            !parse_client(text, place->pci, name_of_driver, made) || find_client(list, made->id))
            continue;
        snprintf(driver, NAME, "%s", name_of_driver);
        ++list->count;
    }
    closedir(folder);
}

/* Share of the time in which one engine worked for one client; NaN: unknown. */
static double engine_share(const engine *now, const engine *before, double seconds) {
    double work, time;
    if (now->nanoseconds != UNKNOWN) {
        if (before->nanoseconds == UNKNOWN) return NAN;
        work = now->nanoseconds - before->nanoseconds;
        time = seconds * 1e9;
    } else {
        if (now->total == UNKNOWN || before->cycles == UNKNOWN || before->total == UNKNOWN) return NAN;
        work = now->cycles - before->cycles;
        time = now->total - before->total;
    }
    return work >= 0 && time > 0 ? work / time / now->capacity : NAN;
}

/* Share of the time in which an engine worked for all clients of the process. */
typedef struct engine_sum {
    const char *name;
    double share;
} engine_sum;

/* Adds what a client used. False: a counter went backwards or stood still. */
static bool add_shares(const client *now, const client *before, double seconds, engine_sum sums[MAX_ENGINES],
                       size_t *count) {
    for (size_t i = 0; i < now->engine_count; ++i) {
        const engine *const here = &now->engines[i], *const old = find_engine(before, here->name);
        size_t at = 0;
        if (!old || (here->nanoseconds == UNKNOWN && here->cycles == UNKNOWN)) continue;
        const double share = engine_share(here, old, seconds);
        while (at < *count && strcmp(sums[at].name, here->name) != 0) ++at;
        if (isnan(share) || at == MAX_ENGINES) return false;
        if (at == *count) sums[(*count)++] = (engine_sum){here->name, 0};
        sums[at].share += share;
    }
    return true;
}

/* The share of the engine that worked most: compute units and copy engines work at the same time. */
static double busy_share(const client_list *now, const client_list *before, double seconds) {
    engine_sum sums[MAX_ENGINES];
    size_t count = 0;
    double most = NAN;
    for (size_t i = 0; i < now->count; ++i) {
        const client *old = find_client(before, now->clients[i].id);
        if (old && !add_shares(&now->clients[i], old, seconds, sums, &count)) return NAN;
    }
    for (size_t i = 0; i < count; ++i)
        if (isnan(most) || sums[i].share > most) most = sums[i].share;
    return most > 1 && most < 1.1 ? 1 : most; /* counters are read a little later than the clock */
}

static double sum_bytes(const client_list *list, region in) {
    double sum = NAN;
    for (size_t i = 0; i < list->count; ++i)
        if (list->clients[i].bytes[in] != UNKNOWN) sum = (isnan(sum) ? 0 : sum) + list->clients[i].bytes[in];
    return sum;
}

/* Bytes on the device; if it shares the host's memory, bytes in either. */
static double own_bytes(const client_list *list, bool unified) {
    const double card = sum_bytes(list, REGION_CARD), host = sum_bytes(list, REGION_HOST);
    if (!unified) return card;
    return isnan(card) ? host : isnan(host) ? card : card + host;
}

static void *open_fdinfo(const cleat_route_place *place, cleat_route_sources sources) {
    if (!place->pci[0]) return NULL;
    const bool unified = place->facts.unified_memory;
    fdinfo_state *state = cleat_alloc(1, sizeof *state);
    if (!state) return NULL;
    state->place = place;
    client_list *list = &state->lists[state->current];
    list_clients(place, state->driver, list);
    if (list->count)
        cleat_route_offer(sources, CLEAT_FIGURE_BUSY_OWN, "%s /proc/self/fdinfo, busiest engine", state->driver);
    if (!isnan(own_bytes(list, unified)))
        cleat_route_offer(sources, CLEAT_FIGURE_MEMORY_OWN, "%s /proc/self/fdinfo", state->driver);
    if (!unified && !isnan(sum_bytes(list, REGION_HOST)))
        cleat_route_offer(sources, CLEAT_FIGURE_MEMORY_GTT, "%s /proc/self/fdinfo, this process", state->driver);
    return state;
}

static void read_fdinfo(void *opened, double now, double values[CLEAT_ROUTE_FIGURES]) {
    fdinfo_state *state = opened;
    const double seconds = now - state->time;
    const client_list *before = &state->lists[state->current];
    state->current = !state->current;
    client_list *list = &state->lists[state->current];
    list_clients(state->place, state->driver, list);
    if (state->time > 0 && seconds > 0) values[CLEAT_FIGURE_BUSY_OWN] = busy_share(list, before, seconds);
    state->time = now;
    values[CLEAT_FIGURE_MEMORY_OWN] = own_bytes(list, state->place->facts.unified_memory);
    values[CLEAT_FIGURE_MEMORY_GTT] = sum_bytes(list, REGION_HOST);
}

const cleat_route cleat_route_drm_fdinfo = {"drm_fdinfo", open_fdinfo, read_fdinfo, cleat_free};
