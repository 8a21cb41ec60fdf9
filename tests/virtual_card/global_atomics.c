/* Detects loads of global words that other work-groups access atomically: their value depends on the order of
 * the groups. Loads before the first atomic access of the launch to their word are not detected. */
#include "access.h"

#include <inttypes.h>
#include <string.h>

static bool noted_by(const ptx_group *group, uint64_t word, bool *fenced) {
    for (uint32_t i = 0; i < group->n_own_atomics; ++i)
        if (group->own_atomics[i].word == word) {
            *fenced = group->own_atomics[i].fenced;
            return true;
        }
    return false;
}

static void record_own(ptx_group *group, uint64_t word) {
    for (uint32_t i = 0; i < group->n_own_atomics; ++i)
        if (group->own_atomics[i].word == word) {
            group->own_atomics[i].fenced = false;
            return;
        }
    const uint32_t at = group->n_own_atomics < PTX_OWN_ATOMICS ? group->n_own_atomics++ : PTX_OWN_ATOMICS - 1;
    group->own_atomics[at].word = word, group->own_atomics[at].fenced = false;
}

void ptx_note_atomic(ptx_warp *warp, uint64_t address, uint32_t bytes) {
    ptx_group *group = warp->group;
    if (!group->launch->races) return;
    for (uint64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) {
        record_own(group, word);
        ptx_share_atomic(group->run, word, group->index);
    }
}

void ptx_note_fence(ptx_warp *warp) {
    for (uint32_t i = 0; i < warp->group->n_own_atomics; ++i) warp->group->own_atomics[i].fenced = true;
}

/* A load that is meant to race with other groups' writes: ld.relaxed, ld.acquire. */
static bool is_strong(const ptx_instruction *now) {
    return now->length > 10 && (!memcmp(now->text, "ld.relaxed", 10) || !memcmp(now->text, "ld.acquire", 10));
}

void ptx_check_load(ptx_warp *warp, uint64_t address, uint32_t bytes, uint32_t lane) {
    ptx_group *group = warp->group;
    if (is_strong(warp->now)) return;
    for (uint64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) {
        bool fenced = false;
        if (!ptx_others_access(group->run, word, group->index)) continue;
        if (noted_by(group, word, &fenced) && fenced) continue;
        ptx_report(warp, PTX_FAULT_RACE,
                   "race: work-item %u reads 0x%" PRIx64
                   " of global memory, which another group accesses atomically in the "
                   "same launch",
                   warp->first + lane, word * 4);
    }
}
