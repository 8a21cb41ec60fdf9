/* Launches: work-groups on host threads, initial registers of waves, faults. */
#include "wave.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_FAULTS = 20, MAX_THREADS = 64 };

/* State shared by the threads of a launch. */
struct gcn_run_state {
    const gcn_kernel *kernel;
    const ptx_launch *launch;
    atomic_uint_fast64_t next_group;
    atomic_bool stopped;
    pthread_mutex_t lock; /* protects the following fields */
    struct {
        const gcn_instruction *at;
        gcn_fault_kind kind;
    } faults[MAX_FAULTS];
    size_t n_faults;
    ptx_counters counters;
};

/* --- faults */

static bool is_new_fault(gcn_run_state *run, const gcn_instruction *at, gcn_fault_kind kind) {
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

static int line_of(const gcn_module *module, const char *text) {
    int line = 1;
    for (const char *s = module->text; s < text; ++s) line += *s == '\n';
    return line;
}

void gcn_report(gcn_wave *wave, gcn_fault_kind kind, const char *format, ...) {
    gcn_run_state *run = wave->group->run;
    const gcn_instruction *at = wave->now;
    if (!is_new_fault(run, at, kind) || !run->launch->fault) return;
    char what[256], text[600];
    va_list values;
    va_start(values, format);
    vsnprintf(what, sizeof what, format, values);
    va_end(values);
    const uint32_t *group = wave->group->index;
    snprintf(text, sizeof text, "%s: %s, in group %u %u %u: line %d, %.*s", run->kernel->name, what, group[0], group[1],
             group[2], line_of(run->kernel->module, at->text), (int)at->length, at->text);
    run->launch->fault(run->launch->context, text);
}

/* --- arguments */

static uint64_t hidden_value(const char *what, const ptx_launch *launch) {
    static const struct {
        const char *name;
        int fact; /* 0: groups, 1: work-items of a group, 2: 0, 3: dimensions */
    } facts[] = {{"block_count_", 0}, {"group_size_", 1}, {"remainder_", 2}, {"global_offset_", 2}, {"grid_dims", 3}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; ++i) {
        const size_t n = strlen(facts[i].name);
        if (strncmp(what, facts[i].name, n) != 0) continue;
        const int dimension = what[n] >= 'x' && what[n] <= 'z' ? what[n] - 'x' : 0;
        const uint64_t values[] = {launch->groups[dimension], launch->local[dimension], 0, 3};
        return values[facts[i].fact];
    }
    return 0; /* used only by printf, the heap and similar features */
}

static void fill_arguments(gcn_group *group) {
    const gcn_kernel *kernel = group->kernel;
    const ptx_launch *launch = group->launch;
    memcpy(group->kernarg, launch->params, kernel->param_bytes);
    for (size_t i = 0; i < kernel->n_hidden; ++i) {
        const uint64_t value = hidden_value(kernel->hidden[i].what, launch);
        memcpy(group->kernarg + kernel->hidden[i].offset, &value,
               kernel->hidden[i].size < 8 ? kernel->hidden[i].size : 8);
    }
    /* hsa_kernel_dispatch_packet_t: header and setup, group size, grid size. */
    group->packet[0] = 3u << 16;
    group->packet[1] = launch->local[0] | launch->local[1] << 16;
    group->packet[2] = launch->local[2];
    for (int d = 0; d < 3; ++d) group->packet[3 + d] = launch->groups[d] * launch->local[d];
}

/* --- a group */

static void *allocate(size_t bytes) {
    void *memory = NULL;
    if (posix_memalign(&memory, 64, bytes + 64)) abort();
    memset(memory, 0, bytes + 64);
    return memory;
}

static void open_wave(gcn_wave *wave, gcn_group *group, uint32_t index, uint32_t items) {
    const uint32_t lanes = (uint32_t)group->kernel->module->wave, left = items - index * lanes;
    wave->group = group;
    wave->lanes = (int)lanes;
    wave->index = index;
    wave->first = index * lanes;
    wave->begun = left >= lanes ? gcn_all(wave) : (UINT64_C(1) << left) - 1;
    wave->v = allocate(sizeof(uint32_t[GCN_VECTORS][GCN_LANES]));
    wave->scratch = allocate((size_t)lanes * group->kernel->scratch_bytes);
}

static void open_group(gcn_group *group, gcn_run_state *run) {
    const gcn_kernel *kernel = run->kernel;
    const ptx_launch *launch = run->launch;
    const uint32_t items = launch->local[0] * launch->local[1] * launch->local[2];
    const uint32_t lanes = (uint32_t)kernel->module->wave;
    *group = (gcn_group){.kernel = kernel, .launch = launch, .run = run};
    group->n_waves = (items + lanes - 1) / lanes;
    group->lds_bytes = kernel->lds_bytes + launch->dynamic_shared;
    group->lds = allocate(group->lds_bytes);
    group->kernarg_bytes = kernel->kernarg_bytes > kernel->param_bytes ? kernel->kernarg_bytes : kernel->param_bytes;
    group->kernarg = allocate(group->kernarg_bytes);
    fill_arguments(group);
    if (launch->races && group->lds_bytes)
        group->cells = allocate(((group->lds_bytes >> kernel->module->cell_shift) + 1) * sizeof *group->cells);
    group->waves = allocate(group->n_waves * sizeof *group->waves);
    for (uint32_t w = 0; w < group->n_waves; ++w) open_wave(&group->waves[w], group, w, items);
}

static void close_group(gcn_group *group) {
    for (uint32_t w = 0; w < group->n_waves; ++w) free(group->waves[w].v), free(group->waves[w].scratch);
    free(group->waves), free(group->cells), free(group->lds), free(group->kernarg);
}

/* The scalar registers in the order of the ABI, and the work-item ids: ten bits each in v0, or one register
 * each on gfx10. */
static void set_first_registers(gcn_wave *wave) {
    const gcn_group *group = wave->group;
    const gcn_kernel *kernel = group->kernel;
    const uint64_t kernarg = (uint64_t)(uintptr_t)group->kernarg, packet = (uint64_t)(uintptr_t)group->packet;
    const struct {
        bool there;
        unsigned registers;
        uint64_t value;
    } user[] = {{kernel->has_segment, 4, 0},
                {kernel->has_dispatch, 2, packet},
                {kernel->has_queue, 2, 0},
                {kernel->has_kernarg, 2, kernarg},
                {kernel->has_dispatch_id, 2, 0},
                {kernel->has_flat_scratch, 2, 0},
                {kernel->has_scratch_size, 1, kernel->scratch_bytes}};
    unsigned at = 0;
    memset(wave->s, 0xff, sizeof wave->s);
    for (size_t i = 0; i < sizeof user / sizeof *user; ++i) {
        if (!user[i].there) continue;
        wave->s[at] = (uint32_t)user[i].value;
        if (user[i].registers > 1) wave->s[at + 1] = (uint32_t)(user[i].value >> 32);
        at += user[i].registers;
    }
    at = kernel->user_scalars;
    for (int d = 0; d < 3; ++d)
        if (kernel->group_id[d]) wave->s[at++] = group->index[d];
    if (kernel->has_group_info) wave->s[at++] = 0;
    if (kernel->has_scratch_offset) wave->s[at++] = 0;
    wave->s[GCN_NULL] = 0;
    wave->s[GCN_EXEC] = (uint32_t)wave->begun, wave->s[GCN_EXEC + 1] = (uint32_t)(wave->begun >> 32);
    const uint32_t *local = group->launch->local;
    const bool separate_ids = kernel->module->generation == 10;
    for (int l = 0; l < wave->lanes; ++l) {
        const uint32_t item = wave->first + (uint32_t)l;
        const uint32_t id[3] = {item % local[0], item / local[0] % local[1], item / local[0] / local[1]};
        if (separate_ids)
            for (uint32_t d = 0; d <= kernel->item_ids && d < 3; ++d) wave->v[d][l] = id[d];
        else
            wave->v[0][l] = id[0] | id[1] << 10 | id[2] << 20;
    }
}

static void begin_wave(gcn_wave *wave) {
    memset(wave->v, 0xff, sizeof(uint32_t[GCN_VECTORS][GCN_LANES]));
    set_first_registers(wave);
    wave->pc = wave->group->kernel->entry;
    wave->scc = wave->ended = false;
    wave->steps = 0;
}

/* Called after all waves have run. Returns false if they wait at a barrier, which must be the same one. */
static bool all_ended(gcn_group *group) {
    gcn_wave *waiting = NULL;
    uint32_t ended = 0;
    for (uint32_t w = 0; w < group->n_waves; ++w) {
        gcn_wave *wave = &group->waves[w];
        ended += wave->ended;
        if (wave->ended) continue;
        if (waiting && waiting->barrier != wave->barrier)
            gcn_report(wave, GCN_FAULT_BARRIER, "waves wait at different barriers");
        waiting = wave;
    }
    if (waiting && ended)
        gcn_report(waiting, GCN_FAULT_BARRIER, "%u waves have ended while others wait at a barrier", ended);
    return !waiting;
}

/* Waves run one after the other from barrier to barrier. Their order changes at each barrier, so no kernel
 * can rely on it. */
static void run_group(gcn_group *group) {
    group->counters.groups++;
    memset(group->lds, 0xff, group->lds_bytes);
    group->begin = group->barrier = ++group->time;
    for (uint32_t w = 0; w < group->n_waves; ++w) begin_wave(&group->waves[w]);
    do {
        for (uint32_t k = 0; k < group->n_waves; ++k) {
            gcn_wave *wave = &group->waves[group->time & 1 ? group->n_waves - 1 - k : k];
            if (!wave->ended && !gcn_run_wave(wave)) {
                atomic_store(&group->run->stopped, true);
                return;
            }
        }
        group->barrier = ++group->time;
    } while (!all_ended(group));
}

/* --- the launch */

static void add_counters(ptx_counters *sum, const ptx_counters *added) {
    const uint64_t *from = (const uint64_t *)(const void *)added;
    uint64_t *to = (uint64_t *)(void *)sum;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; ++i) to[i] += from[i];
}

static void *run_groups(void *context) {
    gcn_run_state *run = context;
    const uint32_t *groups = run->launch->groups;
    const uint64_t total = (uint64_t)groups[0] * groups[1] * groups[2];
    gcn_group group;
    open_group(&group, run);
    while (!atomic_load(&run->stopped)) {
        const uint64_t i = atomic_fetch_add(&run->next_group, 1);
        if (i >= total) break;
        group.index[0] = (uint32_t)(i % groups[0]);
        group.index[1] = (uint32_t)(i / groups[0] % groups[1]);
        group.index[2] = (uint32_t)(i / groups[0] / groups[1]);
        run_group(&group);
    }
    pthread_mutex_lock(&run->lock);
    add_counters(&run->counters, &group.counters);
    pthread_mutex_unlock(&run->lock);
    close_group(&group);
    return NULL;
}

/* The calling thread is one of them. */
static void run_threads(gcn_run_state *run) {
    const uint32_t *groups = run->launch->groups;
    const uint64_t total = (uint64_t)groups[0] * groups[1] * groups[2];
    pthread_t threads[MAX_THREADS];
    int started = 0;
    while (started + 1 < MAX_THREADS && started + 1 < run->launch->threads && (uint64_t)started + 1 < total &&
           pthread_create(&threads[started], NULL, run_groups, run) == 0)
        started++;
    run_groups(run);
    for (int i = 0; i < started; ++i) pthread_join(threads[i], NULL);
}

bool gcn_run(const gcn_kernel *kernel, const ptx_launch *launch, ptx_counters *counters) {
    const uint64_t items = (uint64_t)launch->local[0] * launch->local[1] * launch->local[2];
    if (items == 0 || items > kernel->largest_group) {
        char text[200];
        snprintf(text, sizeof text, "%s: a work-group of %llu work-items (it was compiled for at most %u)",
                 kernel->name, (unsigned long long)items, kernel->largest_group);
        if (launch->fault) launch->fault(launch->context, text);
        return false;
    }
    gcn_run_state run = {.kernel = kernel, .launch = launch};
    pthread_mutex_init(&run.lock, NULL);
    run.counters.launches = 1;
    run_threads(&run);
    pthread_mutex_destroy(&run.lock);
    add_counters(counters, &run.counters);
    return !atomic_load(&run.stopped);
}
