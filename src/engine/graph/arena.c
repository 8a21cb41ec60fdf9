/* Offset assignment for blocks with lifetimes: greedy placement in several orders, of which the best is kept. This
 * file only places blocks; lifetime.c defines them and their lifetimes. */
#include "graph/arena.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

/* Slabs are laid end to end in one address range, slab s at s * slab_limit, so that during the search a place
 * is a single number. */
typedef struct span {
    int64_t begin, end; /* addresses */
    int32_t first, last;
} span;

typedef struct rank {
    int64_t major, minor; /* larger comes first */
    int32_t block;        /* ties: smaller comes first */
} rank;

typedef struct search {
    const cleat_block *blocks;
    int64_t *sizes; /* [blocks] aligned */
    int64_t *live;  /* [times] */
    int32_t times;
    int64_t slab_limit;
    int64_t *given; /* [slabs] bytes that exist already and cost nothing */
    int64_t *used;  /* [slabs] bytes used in the current pass */
    size_t slabs;

    int32_t *order; /* [n] the blocks that need a place */
    size_t n;
    span *spans;                   /* [n] blocks placed so far, by address */
    rank *ranks;                   /* [n] */
    int64_t *begins, *best_begins; /* [blocks] addresses */
    int64_t best_total;
    int64_t goal; /* no layout is smaller */
    int64_t steps;
} search;

/* Comparisons of two blocks after which no further order is tried. */
enum { ORDER_STEPS = 16000000 };
#define NO_LAYOUT INT64_MAX

int64_t cleat_align_up(int64_t bytes, int64_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

void cleat_arena_clear(cleat_arena *arena) {
    cleat_free(arena->slabs);
    *arena = (cleat_arena){0};
}

int64_t cleat_arena_bytes(const cleat_arena *arena) {
    int64_t total = 0;
    for (size_t i = 0; i < arena->count; ++i) total += arena->slabs[i];
    return total;
}

static int32_t count_times(const cleat_block *blocks, size_t count) {
    int32_t times = 0;
    for (size_t i = 0; i < count; ++i)
        if (blocks[i].bytes > 0 && blocks[i].last >= times) times = blocks[i].last + 1;
    return times;
}

void cleat_arena_live(const cleat_block *blocks, size_t count, int64_t alignment, int32_t times, int64_t *live) {
    memset(live, 0, (size_t)times * sizeof *live);
    for (size_t i = 0; i < count; ++i) {
        if (blocks[i].bytes == 0) continue;
        int64_t size = cleat_align_up(blocks[i].bytes, alignment);
        live[blocks[i].first] += size;
        if (blocks[i].last + 1 < times) live[blocks[i].last + 1] -= size;
    }
    for (int32_t t = 1; t < times; ++t) live[t] += live[t - 1];
}

static int32_t peak_time(const int64_t *live, int32_t times) {
    int32_t peak = 0;
    for (int32_t t = 1; t < times; ++t)
        if (live[t] > live[peak]) peak = t;
    return peak;
}

cleat_status cleat_arena_bound(const cleat_block *blocks, size_t count, int64_t alignment, int64_t *bytes,
                               int32_t *time, cleat_error *error) {
    int32_t times = count_times(blocks, count);
    int64_t *live = cleat_alloc((size_t)times + 1, sizeof *live);
    if (!live) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %d time steps of a memory plan", times);
    cleat_arena_live(blocks, count, alignment, times, live);
    int32_t peak = peak_time(live, times);
    *bytes = live[peak];
    if (time) *time = peak;
    cleat_free(live);
    return CLEAT_OK;
}

/* --- one greedy pass --- */

/* The first address >= `at` where `size` bytes do not cross a slab boundary. */
static inline int64_t within_slab(const search *s, int64_t at, int64_t size) {
    int64_t next = (at / s->slab_limit + 1) * s->slab_limit;
    return at + size <= next ? at : next;
}

/* The lowest address where the block fits between those already placed; *position is its index in the sorted list
 * of spans. */
static int64_t find_gap(search *s, int32_t block, size_t placed, size_t *position) {
    const int64_t size = s->sizes[block];
    const int32_t first = s->blocks[block].first, last = s->blocks[block].last;
    int64_t low = 0; /* end of the blocks below that are live at the same time */
    size_t i = 0;
    for (; i < placed; ++i) {
        const span *other = &s->spans[i];
        if (other->last < first || other->first > last) continue;
        if (other->begin - low >= size) break;
        if (other->end > low) low = within_slab(s, other->end, size);
    }
    s->steps += (int64_t)i;
    while (i > 0 && s->spans[i - 1].begin > low) --i;
    *position = i;
    return low;
}

/* Places the blocks in this order. Returns the bytes of all slabs, or NO_LAYOUT as soon as they reach
 * `limit`. */
static int64_t place_all(search *s, int64_t limit) {
    int64_t total = 0;
    for (size_t i = 0; i < s->slabs; ++i) {
        s->used[i] = 0;
        total += s->given[i];
    }
    for (size_t placed = 0; placed < s->n; ++placed) {
        int32_t block = s->order[placed];
        size_t at = 0;
        int64_t begin = find_gap(s, block, placed, &at);
        int64_t end = begin + s->sizes[block];
        memmove(&s->spans[at + 1], &s->spans[at], (placed - at) * sizeof *s->spans);
        s->spans[at] = (span){begin, end, s->blocks[block].first, s->blocks[block].last};
        s->begins[block] = begin;

        size_t slab = (size_t)(begin / s->slab_limit);
        int64_t bytes = end - (int64_t)slab * s->slab_limit;
        if (bytes <= s->used[slab]) continue;
        int64_t before = s->used[slab] > s->given[slab] ? s->used[slab] : s->given[slab];
        if (bytes > before) total += bytes - before;
        s->used[slab] = bytes;
        if (total >= limit) return NO_LAYOUT;
    }
    return total;
}

/* --- placement orders --- */

static int by_rank(const void *left, const void *right) {
    const rank *a = left, *b = right;
    if (a->major != b->major) return a->major > b->major ? -1 : 1;
    if (a->minor != b->minor) return a->minor > b->minor ? -1 : 1;
    return a->block < b->block ? -1 : a->block > b->block;
}

/* Largest number of live bytes during the block's lifetime. */
static int64_t crowding(const search *s, int32_t b) {
    int64_t most = 0;
    for (int32_t t = s->blocks[b].first; t <= s->blocks[b].last; ++t)
        if (s->live[t] > most) most = s->live[t];
    return most;
}

typedef enum order_rule { BY_SIZE, BY_AREA, BY_LENGTH, BY_CROWDING, BY_START, ORDERS } order_rule;

static rank rank_block(const search *s, int32_t b, order_rule rule) {
    int64_t size = s->sizes[b], length = s->blocks[b].last - s->blocks[b].first + 1;
    switch (rule) {
    case BY_AREA:
        return (rank){size > INT64_MAX / length ? INT64_MAX : size * length, size, b};
    case BY_LENGTH:
        return (rank){length, size, b};
    case BY_CROWDING:
        return (rank){crowding(s, b), size, b};
    case BY_START:
        return (rank){-s->blocks[b].first, length, b};
    default:
        return (rank){size, length, b};
    }
}

static void try_orders(search *s) {
    for (int rule = 0; rule < ORDERS && s->best_total > s->goal; ++rule) {
        if (rule > 0 && s->steps > ORDER_STEPS) return;
        for (size_t i = 0; i < s->n; ++i) s->ranks[i] = rank_block(s, s->order[i], (order_rule)rule);
        qsort(s->ranks, s->n, sizeof *s->ranks, by_rank);
        for (size_t i = 0; i < s->n; ++i) s->order[i] = s->ranks[i].block;
        const int64_t total = place_all(s, s->best_total);
        if (total >= s->best_total) continue;
        int64_t *begins = s->best_begins;
        s->best_total = total;
        s->best_begins = s->begins;
        s->begins = begins;
    }
}

static void search_clear(search *s) {
    void *arrays[] = {s->sizes, s->live, s->given, s->used, s->order, s->spans, s->begins, s->best_begins, s->ranks};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) cleat_free(arrays[i]);
}

static bool search_alloc(search *s, size_t count) {
    return (s->sizes = cleat_alloc(count, sizeof *s->sizes)) &&
           (s->live = cleat_alloc((size_t)s->times + 1, sizeof *s->live)) &&
           (s->given = cleat_alloc(s->slabs, sizeof *s->given)) && (s->used = cleat_alloc(s->slabs, sizeof *s->used)) &&
           (s->order = cleat_alloc(count, sizeof *s->order)) && (s->spans = cleat_alloc(count, sizeof *s->spans)) &&
           (s->begins = cleat_alloc(count, sizeof *s->begins)) &&
           (s->best_begins = cleat_alloc(count, sizeof *s->best_begins)) &&
           (s->ranks = cleat_alloc(count, sizeof *s->ranks));
}

/* Sets limit and number of slabs; addresses across all slabs must fit into 64 bits. */
static cleat_status size_slabs(search *s, const cleat_arena *arena, size_t count, int64_t alignment, int64_t max_slab,
                               cleat_error *error) {
    int64_t limit = max_slab / alignment * alignment, sum = 0;
    for (size_t i = 0; i < count; ++i) {
        int64_t bytes = s->blocks[i].bytes;
        if (bytes > limit)
            return cleat_fail(error, CLEAT_ERR_FIT, "block %zu has %lld bytes: a slab has at most %lld", i,
                              (long long)bytes, (long long)limit);
        sum = bytes > INT64_MAX - alignment - sum ? INT64_MAX : sum + cleat_align_up(bytes, alignment);
        if (sum == INT64_MAX) break;
    }
    bool one = sum <= limit;
    s->slab_limit = one && sum > 0 ? sum : limit;
    s->slabs = arena->count + (one ? 1 : count);
    if (s->slab_limit > INT64_MAX / ((int64_t)s->slabs + 2))
        return cleat_fail(error, CLEAT_ERR_FIT, "the size of %zu blocks exceeds 64 bits", count);
    return CLEAT_OK;
}

static void search_start(search *s, const cleat_arena *arena, size_t count, int64_t alignment) {
    cleat_arena_live(s->blocks, count, alignment, s->times, s->live);
    s->goal = s->live[peak_time(s->live, s->times)];
    if (s->goal < cleat_arena_bytes(arena)) s->goal = cleat_arena_bytes(arena);
    for (size_t i = 0; i < arena->count; ++i) s->given[i] = arena->slabs[i];
    for (size_t i = 0; i < count; ++i) {
        s->sizes[i] = cleat_align_up(s->blocks[i].bytes, alignment);
        if (s->sizes[i] > 0) s->order[s->n++] = (int32_t)i;
    }
    s->best_total = NO_LAYOUT;
}

/* The slabs after the best layout; none is smaller than before. */
static void merge_slabs(const search *s, cleat_arena *merged) {
    for (size_t i = 0; i < s->slabs; ++i) merged->slabs[i] = s->given[i];
    for (size_t i = 0; i < s->n; ++i) {
        const int64_t begin = s->best_begins[s->order[i]], end = begin % s->slab_limit + s->sizes[s->order[i]];
        int64_t *slab = &merged->slabs[begin / s->slab_limit];
        if (end > *slab) *slab = end;
    }
    merged->count = s->slabs;
    while (merged->count > 0 && merged->slabs[merged->count - 1] == 0) --merged->count;
}

cleat_status cleat_arena_assign(cleat_arena *arena, const cleat_block *blocks, size_t count, int64_t alignment,
                                int64_t max_slab, cleat_slab_place *places, cleat_error *error) {
    search s = {.blocks = blocks, .times = count_times(blocks, count)};
    cleat_status status = size_slabs(&s, arena, count, alignment, max_slab, error);
    if (status) return status;
    cleat_arena merged = {.slabs = cleat_alloc(s.slabs, sizeof *merged.slabs)};
    if (!merged.slabs || !search_alloc(&s, count)) {
        search_clear(&s);
        cleat_arena_clear(&merged);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to plan %zu tensors", count);
    }
    search_start(&s, arena, count, alignment);
    try_orders(&s);
    merge_slabs(&s, &merged);
    for (size_t i = 0; i < count; ++i) {
        places[i] = (cleat_slab_place){.slab = -1};
        if (s.sizes[i] == 0) continue;
        places[i].slab = (int32_t)(s.best_begins[i] / s.slab_limit);
        places[i].offset = s.best_begins[i] % s.slab_limit;
    }
    cleat_arena_clear(arena);
    *arena = merged;
    search_clear(&s);
    return CLEAT_OK;
}
