/* Runs a warp from barrier to barrier and tracks its divergent paths. */
#include "warp.h"

enum { DEFAULT_STEPS = 1 << 30 }; /* limit for endless loops */

static void push(ptx_warp *warp, uint32_t pc, uint32_t until, uint32_t mask) {
    if (pc == until || !mask) return;
    warp->paths = ptx_grow(warp->paths, warp->n_paths, &warp->path_capacity, sizeof *warp->paths);
    warp->paths[warp->n_paths++] = (ptx_path){.pc = pc, .until = until, .mask = mask};
}

/* A divergent branch: both paths run to the branch's post-dominator, where all lanes continue together. */
static void diverge(ptx_warp *warp, const ptx_instruction *now, uint32_t next, uint32_t taken, uint32_t others) {
    ptx_path *path = &warp->paths[warp->n_paths - 1];
    const uint32_t until = path->until, meet = now->reconverge;
    warp->group->counters.divergent_branches++;
    if (meet == PTX_NOWHERE || meet == until)
        warp->n_paths--; /* nothing follows the two paths */
    else
        path->pc = meet;
    push(warp, next, meet, others);
    push(warp, now->target, meet, taken);
}

static void stop_at_barrier(ptx_warp *warp, const ptx_instruction *now, uint32_t next, uint32_t mask) {
    warp->group->counters.barriers++;
    warp->barrier = now;
    warp->paths[warp->n_paths - 1].pc = next;
    if (mask != warp->live)
        ptx_report(warp, PTX_FAULT_BARRIER, "a barrier in divergent flow: lanes 0x%08x of 0x%08x reach it", mask,
                   warp->live);
    else if (warp->live != warp->begun)
        ptx_report(warp, PTX_FAULT_BARRIER, "a barrier after lanes 0x%08x have ended", warp->begun & ~warp->live);
}

static uint32_t max_steps(const ptx_warp *warp) {
    const uint32_t steps = warp->group->launch->steps;
    return steps ? steps : DEFAULT_STEPS;
}

static bool endless(ptx_warp *warp) {
    ptx_report(warp, PTX_FAULT_ENDLESS, "more than %u instructions of a warp: an endless loop?", max_steps(warp));
    return false;
}

/* Runs the top path of the stack until it ends, splits, or reaches a barrier. */
typedef enum ptx_stop { PATH_ENDED, AT_BARRIER, ENDLESS } ptx_stop;
static ptx_stop run_path(ptx_warp *warp) {
    const ptx_instruction *code = warp->group->kernel->code;
    ptx_counters *counters = &warp->group->counters;
    const ptx_path path = warp->paths[warp->n_paths - 1];
    const uint32_t most = max_steps(warp);
    uint32_t pc = path.pc, mask = path.mask & warp->live, lanes = ptx_count_bits(mask);
    while (mask && pc != path.until) {
        const ptx_instruction *now = &code[pc];
        warp->now = now;
        uint32_t active = mask, n_active = lanes;
        if (now->predicate != PTX_NOWHERE) {
            ptx_check_predicate(warp, now, mask);
            const uint32_t bits = *(const uint32_t *)(warp->base[PTX_REGISTERS] + now->predicate);
            active &= now->unless ? ~bits : bits;
            n_active = ptx_count_bits(active);
        }
        counters->instructions++, counters->lanes += n_active;
        counters->fma += now->fma, counters->mma += now->mma, counters->special += now->special;
        counters->mma_products += now->products, counters->issued[now->issued] += !(now->fma | now->mma);
        if (++warp->steps > most) return ENDLESS;
        switch (now->kind) {
        case PTX_PLAIN:
            if (active && warp->written) ptx_check_registers(warp, now, active);
            if (active) now->run(warp, now, active);
            ++pc;
            break;
        case PTX_BRANCH:
            counters->branches++;
            if (active && active != mask) {
                diverge(warp, now, pc + 1, active, mask & ~active);
                return PATH_ENDED;
            }
            pc = active ? now->target : pc + 1;
            break;
        case PTX_EXIT:
            warp->live &= ~active, mask &= ~active, lanes = ptx_count_bits(mask);
            ++pc;
            break;
        default:
            ++pc;
            if (!active) break;
            stop_at_barrier(warp, now, pc, active);
            return AT_BARRIER;
        }
    }
    warp->n_paths--;
    return PATH_ENDED;
}

bool ptx_run_warp(ptx_warp *warp) {
    warp->barrier = NULL;
    while (warp->n_paths) {
        const ptx_stop stop = run_path(warp);
        if (stop == ENDLESS) return endless(warp);
        if (stop == AT_BARRIER) return true;
    }
    warp->ended = true;
    return true;
}
