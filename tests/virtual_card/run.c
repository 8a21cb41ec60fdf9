/* Launches: work-groups on host threads, faults, counters. */
#include "access.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FAULTS = 20, MAX_ATOMICS = 4096 };

/* State shared by the threads of a launch. */
struct ptx_run_state {
    const ptx_kernel *kernel;
    const ptx_launch *launch;
    atomic_uint_fast64_t next_group;
    atomic_bool stopped;
    pthread_mutex_t lock; /* protects the following fields */
    struct {
        const ptx_instruction *at;
        ptx_fault_kind kind;
    } faults[MAX_FAULTS];
    size_t n_faults;
    ptx_counters counters;
    atomic_uint n_atomics;
    struct {
        atomic_uint_fast64_t word, group; /* group that accessed it; several: UINT64_MAX */
    } atomics[MAX_ATOMICS];               /* hash table of words; 0: free. Words that do not fit are not checked */
};

/* --- atomic accesses to global memory */

/* The slot of a word, or a free one; MAX_ATOMICS: no room. */
static size_t place_of(ptx_run_state *run, uint64_t word) {
    for (size_t i = 0; i < 64; ++i) {
        const size_t at = (size_t)((word + i) % MAX_ATOMICS);
        const uint64_t there = atomic_load(&run->atomics[at].word);
        if (there == word || !there) return at;
    }
    return MAX_ATOMICS;
}

void ptx_share_atomic(ptx_run_state *run, uint64_t word, uint64_t group) {
    pthread_mutex_lock(&run->lock);
    const size_t at = place_of(run, word);
    if (at < MAX_ATOMICS && !atomic_load(&run->atomics[at].word)) {
        atomic_store(&run->atomics[at].group, group);
        atomic_store(&run->atomics[at].word, word);
        atomic_fetch_add(&run->n_atomics, 1);
    } else if (at < MAX_ATOMICS && atomic_load(&run->atomics[at].group) != group) {
        atomic_store(&run->atomics[at].group, UINT64_MAX);
    }
    pthread_mutex_unlock(&run->lock);
}

bool ptx_others_access(ptx_run_state *run, uint64_t word, uint64_t group) {
    const size_t at = place_of(run, word);
    return at < MAX_ATOMICS && atomic_load(&run->atomics[at].word) == word &&
           atomic_load(&run->atomics[at].group) != group;
}

/* --- faults */

/* Whether the fault is new in this launch. */
static bool is_new_fault(ptx_run_state *run, const ptx_instruction *at, ptx_fault_kind kind) {
    bool is_new = false;
    pthread_mutex_lock(&run->lock);
    size_t i = 0;
    while (i < run->n_faults && (run->faults[i].at != at || run->faults[i].kind != kind)) i++;
    if (i == run->n_faults && i < MAX_FAULTS) {
        run->faults[i].at = at, run->faults[i].kind = kind;
        run->n_faults++;
        is_new = true;
    }
    pthread_mutex_unlock(&run->lock);
    return is_new;
}

static int line_of(const ptx_module *module, const char *text) {
    int line = 1;
    for (const char *s = module->text; s < text; ++s) line += *s == '\n';
    return line;
}

void ptx_report(ptx_warp *warp, ptx_fault_kind kind, const char *format, ...) {
    ptx_run_state *run = warp->group->run;
    const ptx_instruction *at = warp->now;
    if (!is_new_fault(run, at, kind) || !run->launch->fault) return;
    char what[256], text[600];
    va_list values;
    va_start(values, format);
    vsnprintf(what, sizeof what, format, values);
    va_end(values);
    const bool in_module = at->length != 5 || memcmp(at->text, "(end)", 5) != 0;
    snprintf(text, sizeof text, "%s: %s, in group %u %u %u: line %d, %.*s", run->kernel->name, what,
             ((const uint32_t *)warp->base[PTX_SPECIAL])[6 * PTX_LANES],
             ((const uint32_t *)warp->base[PTX_SPECIAL])[7 * PTX_LANES],
             ((const uint32_t *)warp->base[PTX_SPECIAL])[8 * PTX_LANES],
             in_module ? line_of(run->kernel->module, at->text) : 0, (int)at->length, at->text);
    pthread_mutex_lock(&run->lock);
    run->launch->fault(run->launch->context, text);
    pthread_mutex_unlock(&run->lock);
}

/* --- a group */

enum { N_SPECIAL = 19, SPECIAL_BYTES = N_SPECIAL * PTX_LANES * 4 };

static void *allocate(size_t bytes) {
    void *memory = NULL;
    if (posix_memalign(&memory, 64, bytes + 64)) abort();
    memset(memory, 0, bytes + 64);
    return memory;
}

static void open_group(ptx_group *group, ptx_run_state *run) {
    const ptx_kernel *kernel = run->kernel;
    const ptx_launch *launch = run->launch;
    const uint32_t items = launch->local[0] * launch->local[1] * launch->local[2];
    *group = (ptx_group){.kernel = kernel, .launch = launch, .run = run, .atomics = &run->n_atomics};
    group->n_warps = (items + PTX_LANES - 1) / PTX_LANES;
    group->shared_bytes = kernel->shared_bytes + launch->dynamic_shared;
    group->shared = allocate(group->shared_bytes);
    if (launch->races && group->shared_bytes)
        group->cells = allocate(((group->shared_bytes >> kernel->cell_shift) + 1) * sizeof *group->cells);
    group->warps = allocate(group->n_warps * sizeof *group->warps);
    for (uint32_t w = 0; w < group->n_warps; ++w) {
        ptx_warp *warp = &group->warps[w];
        const uint32_t left = items - w * PTX_LANES;
        warp->group = group;
        warp->first = w * PTX_LANES;
        warp->begun = left >= PTX_LANES ? PTX_ALL : (1u << left) - 1;
        warp->base[PTX_REGISTERS] = allocate(kernel->register_bytes);
        if (launch->registers) warp->written = allocate(kernel->register_bytes);
        warp->base[PTX_SPECIAL] = allocate(SPECIAL_BYTES);
        warp->base[PTX_CONSTANTS] = kernel->constants;
        warp->local = allocate((size_t)PTX_LANES * kernel->local_bytes);
    }
}

static void close_group(ptx_group *group) {
    for (uint32_t w = 0; w < group->n_warps; ++w) {
        ptx_warp *warp = &group->warps[w];
        free(warp->base[PTX_REGISTERS]), free(warp->base[PTX_SPECIAL]), free(warp->written);
        free(warp->local), free(warp->paths), free(warp->copies);
    }
    free(group->warps), free(group->cells), free(group->shared);
}

/* The special registers, in the order of the names in decode.c. */
static void set_special(ptx_warp *warp, const uint32_t index[3]) {
    const ptx_launch *launch = warp->group->launch;
    uint32_t(*registers)[PTX_LANES] = (uint32_t(*)[PTX_LANES])(void *)warp->base[PTX_SPECIAL];
    for (uint32_t l = 0; l < PTX_LANES; ++l) {
        const uint32_t item = warp->first + l, *local = launch->local;
        const uint32_t values[N_SPECIAL] = {item % local[0],
                                            item / local[0] % local[1],
                                            item / local[0] / local[1],
                                            local[0],
                                            local[1],
                                            local[2],
                                            index[0],
                                            index[1],
                                            index[2],
                                            launch->groups[0],
                                            launch->groups[1],
                                            launch->groups[2],
                                            l,
                                            warp->first / PTX_LANES,
                                            1u << l,
                                            (1u << l) - 1,
                                            (2u << l) - 1,
                                            ~((2u << l) - 1),
                                            ~((1u << l) - 1)};
        for (int i = 0; i < N_SPECIAL; ++i) registers[i][l] = values[i];
    }
}

static void begin_warp(ptx_warp *warp, const uint32_t index[3]) {
    set_special(warp, index);
    ptx_forget_registers(warp);
    warp->live = warp->begun;
    warp->ended = false, warp->steps = 0;
    warp->n_paths = 0, warp->n_copies = 0;
    memset(warp->committed, 0, sizeof warp->committed);
    warp->paths = ptx_grow(warp->paths, 0, &warp->path_capacity, sizeof *warp->paths);
    warp->paths[warp->n_paths++] = (ptx_path){.pc = 0, .until = PTX_NOWHERE, .mask = warp->begun};
}

/* Called after all warps have run. Returns false if they wait at a barrier, which must be the same one. */
static bool all_ended(ptx_group *group) {
    ptx_warp *waiting = NULL;
    uint32_t ended = 0;
    for (uint32_t w = 0; w < group->n_warps; ++w) {
        ptx_warp *warp = &group->warps[w];
        ended += warp->ended;
        if (warp->ended) continue;
        if (waiting && waiting->barrier != warp->barrier)
            ptx_report(warp, PTX_FAULT_BARRIER, "warps wait at different barriers");
        waiting = warp;
    }
    if (waiting && ended)
        ptx_report(waiting, PTX_FAULT_BARRIER, "%u warps have ended while others wait at a barrier", ended);
    return !waiting;
}

static void check_copies(ptx_group *group) {
    for (uint32_t w = 0; w < group->n_warps; ++w)
        for (size_t i = 0; i < group->warps[w].n_copies; ++i)
            if (group->warps[w].copies[i].read) {
                ptx_report(&group->warps[w], PTX_FAULT_IN_FLIGHT, "ends with copies under way");
                break;
            }
}

/* Warps run one after the other from barrier to barrier. Their order changes at each barrier, so no kernel
 * can rely on it. */
static void run_group(ptx_group *group, const uint32_t index[3]) {
    group->counters.groups++;
    memset(group->shared, 0xff, group->shared_bytes);
    group->begin = group->barrier = ++group->time;
    for (uint32_t w = 0; w < group->n_warps; ++w) begin_warp(&group->warps[w], index);
    do {
        const bool backwards = group->time & 1; /* bar.warp.sync advances the time */
        for (uint32_t k = 0; k < group->n_warps; ++k) {
            ptx_warp *warp = &group->warps[backwards ? group->n_warps - 1 - k : k];
            if (!warp->ended && !ptx_run_warp(warp)) {
                atomic_store(&group->run->stopped, true);
                return;
            }
        }
        group->barrier = ++group->time;
    } while (!all_ended(group));
    check_copies(group);
}

/* --- the launch */

static void *run_groups(void *context) {
    ptx_run_state *run = context;
    const uint32_t *groups = run->launch->groups;
    const uint64_t total = (uint64_t)groups[0] * groups[1] * groups[2];
    ptx_group group;
    open_group(&group, run);
    while (!atomic_load(&run->stopped)) {
        const uint64_t i = atomic_fetch_add(&run->next_group, 1);
        if (i >= total) break;
        const uint32_t index[3] = {(uint32_t)(i % groups[0]), (uint32_t)(i / groups[0] % groups[1]),
                                   (uint32_t)(i / groups[0] / groups[1])};
        group.index = i, group.n_own_atomics = 0;
        run_group(&group, index);
    }
    pthread_mutex_lock(&run->lock);
    const uint64_t *from = (const uint64_t *)(const void *)&group.counters;
    uint64_t *to = (uint64_t *)(void *)&run->counters;
    for (size_t i = 0; i < sizeof run->counters / sizeof *to; ++i) to[i] += from[i];
    pthread_mutex_unlock(&run->lock);
    close_group(&group);
    return NULL;
}

/* The calling thread is one of them. */
static void run_threads(ptx_run_state *run) {
    const uint32_t *groups = run->launch->groups;
    const uint64_t total = (uint64_t)groups[0] * groups[1] * groups[2];
    pthread_t threads[64];
    int started = 0;
    while (started < 63 && started + 1 < run->launch->threads && (uint64_t)started + 1 < total &&
           pthread_create(&threads[started], NULL, run_groups, run) == 0)
        started++;
    run_groups(run);
    for (int i = 0; i < started; ++i) pthread_join(threads[i], NULL);
}

bool ptx_run(const ptx_kernel *kernel, const ptx_launch *launch, ptx_counters *counters) {
    const uint64_t items = (uint64_t)launch->local[0] * launch->local[1] * launch->local[2];
    if (items == 0 || items > 1024) {
        char text[200];
        snprintf(text, sizeof text, "%s: a work-group of %llu work-items (1 to 1024 are possible)", kernel->name,
                 (unsigned long long)items);
        if (launch->fault) launch->fault(launch->context, text);
        return false;
    }
    ptx_run_state run = {.kernel = kernel, .launch = launch};
    pthread_mutex_init(&run.lock, NULL);
    run.counters.launches = 1;
    run_threads(&run);
    pthread_mutex_destroy(&run.lock);
    const uint64_t *from = (const uint64_t *)(const void *)&run.counters;
    uint64_t *to = (uint64_t *)(void *)counters;
    for (size_t i = 0; i < sizeof *counters / sizeof *to; ++i) to[i] += from[i];
    return !atomic_load(&run.stopped);
}
