/* Warp exchanges, votes, barriers and branches. */
#include "access.h"

#include <string.h>

/* All live lanes in the mask operand of an instruction must execute it; ended lanes are exempt. */
static void check_members(ptx_warp *warp, uint32_t members, uint32_t mask) {
    if ((members & warp->live) != mask)
        ptx_report(warp, PTX_FAULT_LANES, "lanes 0x%08x are named, lanes 0x%08x execute it", members, mask);
}
static uint32_t first_of(const ptx_warp *warp, ptx_operand operand, uint32_t mask) {
    return ((const uint32_t *)ptx_at_operand(warp, operand))[__builtin_ctz(mask)];
}

/* shfl: the source lane of lane l, within its segment; false: none, the lane keeps its value. */
enum { UP, DOWN, BUTTERFLY, INDEX };
static bool source_lane(int mode, int l, uint32_t b, uint32_t c, int *source) {
    const int distance = (int)(b & 31), segments = (int)(c >> 8 & 31);
    const int last = (l & segments) | ((int)(c & 31) & ~segments);
    *source = mode == UP          ? l - distance
              : mode == DOWN      ? l + distance
              : mode == BUTTERFLY ? l ^ distance
                                  : (l & segments) | (distance & ~segments);
    return mode == UP ? *source >= last : *source <= last;
}
static void shuffle(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    uint32_t a[PTX_LANES], inside = 0;
    memcpy(a, ptx_at_operand(warp, now->from[0]), sizeof a);
    const uint32_t *b = ptx_at_operand(warp, now->from[1]), *c = ptx_at_operand(warp, now->from[2]);
    uint32_t *to = ptx_at_operand(warp, now->to[0]), result[PTX_LANES];
    check_members(warp, first_of(warp, now->from[3], mask), mask);
    for (int l = 0; l < PTX_LANES; ++l) {
        int source;
        const bool found = source_lane(now->code, l, b[l], c[l], &source);
        if (!found) source = l;
        if (mask >> l & 1 && !(mask >> source & 1))
            ptx_report(warp, PTX_FAULT_LANES, "lane %d reads from lane %d, which does not take part", l, source);
        result[l] = a[source];
        inside |= (uint32_t)found << l;
    }
    for (int l = 0; l < PTX_LANES; ++l)
        if (mask >> l & 1) to[l] = result[l];
    if (now->n_to > 1) ptx_set_predicate(warp, now->to[1], mask, inside);
}

enum { ANY, ALL_OF, UNIFORM };
static void vote(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    const uint32_t bits = ptx_predicate(warp, now->from[0]) & mask;
    check_members(warp, first_of(warp, now->from[1], mask), mask);
    const bool result = now->code == ANY ? bits != 0 : now->code == ALL_OF ? bits == mask : bits == 0 || bits == mask;
    ptx_set_predicate(warp, now->to[0], mask, result ? PTX_ALL : 0);
}
static void set_all(const ptx_warp *warp, ptx_operand operand, uint32_t mask, uint32_t value) {
    uint32_t *to = ptx_at_operand(warp, operand);
    PTX_EACH_LANE(uint32_t, to, mask, value);
}
static void ballot(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    check_members(warp, first_of(warp, now->from[1], mask), mask);
    set_all(warp, now->to[0], mask, ptx_predicate(warp, now->from[0]) & mask);
}
static void active_mask(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    set_all(warp, now->to[0], mask, mask);
}

/* redux.sync: reduces the values of all lanes. */
enum { SUM, MIN_UNSIGNED, MAX_UNSIGNED, MIN_SIGNED, MAX_SIGNED, BITS_AND, BITS_OR, BITS_XOR };
static uint32_t combine(int operation, uint32_t a, uint32_t b) {
    switch (operation) {
    case SUM:
        return a + b;
    case MIN_UNSIGNED:
        return a < b ? a : b;
    case MAX_UNSIGNED:
        return a > b ? a : b;
    case MIN_SIGNED:
        return (int32_t)a < (int32_t)b ? a : b;
    case MAX_SIGNED:
        return (int32_t)a > (int32_t)b ? a : b;
    case BITS_AND:
        return a & b;
    case BITS_OR:
        return a | b;
    default:
        return a ^ b;
    }
}
static void reduce(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    const uint32_t *from = ptx_at_operand(warp, now->from[0]);
    check_members(warp, first_of(warp, now->from[1], mask), mask);
    uint32_t result = from[__builtin_ctz(mask)];
    for (int l = __builtin_ctz(mask) + 1; l < PTX_LANES; ++l)
        if (mask >> l & 1) result = combine(now->code, result, from[l]);
    set_all(warp, now->to[0], mask, result);
}

/* bar.warp.sync orders the shared memory accesses of the warp's lanes. */
static void sync_warp(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    check_members(warp, first_of(warp, now->from[0], mask), mask);
    warp->sync_time = ++warp->group->time;
}

static void nothing(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    (void)warp, (void)now, (void)mask;
}

static void fence(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    (void)now, (void)mask;
    ptx_note_fence(warp);
}

#define SHUFFLE(name, mode)                                                                                            \
    {"shfl.sync." name ".b32", "w=wwww", shuffle, mode, 0, 0}, {                                                       \
        "shfl.sync." name ".b32", "w|p=wwww", shuffle, mode, 0, 0                                                      \
    }
static const ptx_form forms[] = {
    {"bra[.uni]", "=t", NULL, 0, 0, 0, .kind = PTX_BRANCH},
    {"ret[.uni]", "=", NULL, 0, 0, 0, .kind = PTX_EXIT},
    {"exit", "=", NULL, 0, 0, 0, .kind = PTX_EXIT},
    {"bar[.cta].sync", "=n", NULL, 0, 0, 0, .kind = PTX_BARRIER},
    {"barrier[.cta].sync[.aligned]", "=n", NULL, 0, 0, 0, .kind = PTX_BARRIER},
    {"bar.warp.sync", "=w", sync_warp, 0, 0, 0},
    {"membar.cta", "=", nothing, 0, 0, 0},
    {"membar(.gl|.sys)", "=", fence, 0, 0, 0},
    {"fence[.sc|.acq_rel].cta", "=", nothing, 0, 0, 0},
    {"fence[.sc|.acq_rel](.gpu|.sys)", "=", fence, 0, 0, 0},
    {"nanosleep.u32", "=w", nothing, 0, 0, 0},
    SHUFFLE("up", UP),
    SHUFFLE("down", DOWN),
    SHUFFLE("bfly", BUTTERFLY),
    SHUFFLE("idx", INDEX),
    {"vote.sync.any.pred", "p=pw", vote, ANY, 0, 0},
    {"vote.sync.all.pred", "p=pw", vote, ALL_OF, 0, 0},
    {"vote.sync.uni.pred", "p=pw", vote, UNIFORM, 0, 0},
    {"vote.sync.ballot.b32", "w=pw", ballot, 0, 0, 0},
    {"activemask.b32", "w=", active_mask, 0, 0, 0},
    {"redux.sync.add(.u32|.s32)", "w=ww", reduce, SUM, 0, 0},
    {"redux.sync.min.u32", "w=ww", reduce, MIN_UNSIGNED, 0, 0},
    {"redux.sync.max.u32", "w=ww", reduce, MAX_UNSIGNED, 0, 0},
    {"redux.sync.min.s32", "w=ww", reduce, MIN_SIGNED, 0, 0},
    {"redux.sync.max.s32", "w=ww", reduce, MAX_SIGNED, 0, 0},
    {"redux.sync.and.b32", "w=ww", reduce, BITS_AND, 0, 0},
    {"redux.sync.or.b32", "w=ww", reduce, BITS_OR, 0, 0},
    {"redux.sync.xor.b32", "w=ww", reduce, BITS_XOR, 0, 0},
};
const ptx_table ptx_warp_table = PTX_TABLE(forms);
