/* Runs a wave from barrier to barrier. The code itself controls the active lanes through exec. */
#include "wave.h"

enum { DEFAULT_STEPS = 1 << 30 };

static bool is_taken(const gcn_wave *wave, int condition) {
    switch (condition) {
    case GCN_SCC0:
        return !wave->scc;
    case GCN_SCC1:
        return wave->scc;
    case GCN_VCCZ:
        return gcn_vcc(wave) == 0;
    case GCN_VCCNZ:
        return gcn_vcc(wave) != 0;
    case GCN_EXECZ:
        return gcn_exec(wave) == 0;
    case GCN_EXECNZ:
        return gcn_exec(wave) != 0;
    default:
        return true;
    }
}

static void count(gcn_wave *wave, const gcn_instruction *now) {
    ptx_counters *counters = &wave->group->counters;
    const uint8_t counts = now->form->counts;
    counters->fma += counts == GCN_COUNTS_FMA ? 1 : counts == GCN_COUNTS_TWO_FMA ? 2 : 0;
    counters->waits += now->unit == GCN_NO_UNIT;
    if (!now->issues || now->unit == GCN_NO_UNIT) return;
    counters->instructions++, counters->lanes += gcn_count_bits(gcn_exec(wave));
    counters->vectors += now->unit == GCN_VECTOR_UNIT, counters->scalars += now->unit == GCN_SCALAR_UNIT;
    const bool other = counts == 0 || counts == GCN_COUNTS_SPECIAL;
    counters->issued[now->counted_as] += other;
    if (!counts) return;
    if (counts == GCN_COUNTS_MMA) counters->mma_products += 16 * 16 * 16;
    counters->mma += counts == GCN_COUNTS_MMA;
    counters->special += counts == GCN_COUNTS_SPECIAL;
}

static void stop_at_barrier(gcn_wave *wave, const gcn_instruction *now) {
    const uint64_t exec = gcn_exec(wave);
    wave->group->counters.barriers++;
    wave->barrier = now;
    if (exec != wave->begun)
        gcn_report(wave, GCN_FAULT_BARRIER, "a barrier that lanes 0x%016llx of 0x%016llx reach",
                   (unsigned long long)exec, (unsigned long long)wave->begun);
}

/* A call or return. The address of an instruction is its index in GCN_CODE_WINDOW. */
static bool jump(gcn_wave *wave, const gcn_instruction *now) {
    const uint64_t target = gcn_scalar(wave, now->from[0], true);
    if (now->form->kind == GCN_CALL) gcn_set_scalar(wave, now->to[0], GCN_CODE_WINDOW | (wave->pc + 1), true);
    if ((target & UINT64_C(0xff) << 56) != GCN_CODE_WINDOW || (uint32_t)target >= wave->group->kernel->module->n_code) {
        gcn_report(wave, GCN_FAULT_RANGE, "a jump out of the program");
        return false;
    }
    wave->pc = (uint32_t)target;
    return true;
}

static bool runs_away(gcn_wave *wave, uint32_t most) {
    gcn_report(wave, GCN_FAULT_ENDLESS, "more than %u instructions of a wave: an endless loop?", most);
    return true;
}

bool gcn_run_wave(gcn_wave *wave) {
    const gcn_module *module = wave->group->kernel->module;
    const uint32_t asked = wave->group->launch->steps, most = asked ? asked : DEFAULT_STEPS;
    wave->barrier = NULL;
    while (wave->pc < module->n_code) {
        const gcn_instruction *now = &module->code[wave->pc];
        wave->now = now;
        count(wave, now);
        if (++wave->steps > most && runs_away(wave, most)) return false;
        switch (now->form->kind) {
        case GCN_PLAIN:
            now->run(wave, now);
            wave->pc++;
            break;
        case GCN_BRANCH:
            wave->group->counters.branches++;
            wave->pc = is_taken(wave, now->form->code) ? now->target : wave->pc + 1;
            break;
        case GCN_CALL:
        case GCN_RETURN:
            if (!jump(wave, now)) return false;
            break;
        case GCN_BARRIER:
            wave->pc++;
            stop_at_barrier(wave, now);
            return true;
        default:
            wave->ended = true;
            return true;
        }
    }
    gcn_report(wave, GCN_FAULT_RANGE, "the program ends without s_endpgm");
    return false;
}
