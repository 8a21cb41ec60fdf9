/* Detects registers that are read before they are written; on a card their value is undefined. */
#include "warp.h"

#include <string.h>

/* Lanes that wrote the register at this offset: the first word in the warp's shadow registers. */
static uint32_t *written(const ptx_warp *warp, uint32_t offset) {
    return (uint32_t *)(void *)(warp->written + offset);
}

static void check(ptx_warp *warp, uint32_t offset, uint32_t mask) {
    const uint32_t missing = mask & ~*written(warp, offset);
    if (!missing) return;
    ptx_report(warp, PTX_FAULT_REGISTER, "work-item %u reads a register that it never wrote",
               warp->first + (uint32_t)__builtin_ctz(missing));
    *written(warp, offset) |= mask; /* reported once per register */
}

void ptx_forget_registers(ptx_warp *warp) {
    if (warp->written) memset(warp->written, 0, warp->group->kernel->register_bytes);
}

/* An instruction that only moves values may move an unused one, because compilers merge halves even if one is
 * unset. */
static bool carries(const ptx_instruction *now) {
    return now->issued == PTX_MOVES && now->space != PTX_PARAMETER && now->n_to;
}

void ptx_check_predicate(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    if (warp->written && now->predicate != PTX_NOWHERE) check(warp, now->predicate, mask);
}

void ptx_check_registers(ptx_warp *warp, const ptx_instruction *now, uint32_t mask) {
    uint32_t known = mask;
    for (int i = 0; i < now->n_from; ++i) {
        if (now->from[i].base != PTX_REGISTERS) continue;
        if (!carries(now))
            check(warp, now->from[i].offset, mask);
        else
            known &= *written(warp, now->from[i].offset);
    }
    for (int i = 0; i < now->n_to; ++i)
        if (now->to[i].base == PTX_REGISTERS) *written(warp, now->to[i].offset) |= known;
}
