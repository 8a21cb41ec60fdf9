/* LDS: loads, stores, and races between waves. */
#include "access.h"

/* --- races: the lanes of a wave run in lockstep and need no barrier among themselves */

enum { WAVES = 0xffff }; /* in gcn_cell.reader: several waves */

static void record_read(gcn_wave *wave, gcn_cell *cell, uint32_t offset, uint32_t item) {
    const gcn_group *group = wave->group;
    if (cell->written < group->begin)
        gcn_report(wave, GCN_FAULT_UNWRITTEN, "work-item %u reads offset %u of LDS, which its group never wrote", item,
                   offset);
    else if (cell->written >= group->barrier && cell->writer != wave->index)
        gcn_report(wave, GCN_FAULT_RACE,
                   "race: work-item %u reads offset %u of LDS, which wave %u wrote without a barrier between", item,
                   offset, cell->writer);
    if (cell->read >= group->barrier && cell->reader != wave->index)
        cell->reader = WAVES;
    else
        cell->reader = (uint16_t)wave->index;
    cell->read = group->time;
}

static void record_write(gcn_wave *wave, gcn_cell *cell, uint32_t offset, uint32_t item) {
    const gcn_group *group = wave->group;
    if (cell->written >= group->barrier && cell->writer != wave->index)
        gcn_report(wave, GCN_FAULT_RACE,
                   "race: work-item %u and wave %u write offset %u of LDS without a barrier between", item,
                   cell->writer, offset);
    else if (cell->read >= group->barrier && cell->reader != wave->index)
        gcn_report(wave, GCN_FAULT_RACE,
                   "race: work-item %u writes offset %u of LDS, which another wave read without a barrier between",
                   item, offset);
    cell->writer = (uint16_t)wave->index, cell->written = group->time;
}

void gcn_record(gcn_wave *wave, uint32_t offset, uint32_t bytes, int lane, gcn_use use) {
    const gcn_group *group = wave->group;
    const uint32_t shift = group->kernel->module->cell_shift, item = wave->first + (uint32_t)lane;
    if (use == GCN_ATOMIC) return;
    for (uint32_t c = offset >> shift; c <= (offset + bytes - 1) >> shift; ++c) {
        if (use == GCN_LOAD)
            record_read(wave, &group->cells[c], c << shift, item);
        else
            record_write(wave, &group->cells[c], c << shift, item);
    }
}

/* --- loads and stores of one or two places (code: elements per unit of the offset) */

static void lds_addresses(const gcn_wave *wave, const gcn_instruction *now, int which, uint64_t addresses[GCN_LANES]) {
    const uint32_t scale = now->form->code ? (uint32_t)now->form->code * now->form->element : 1;
    const uint32_t offset = (uint32_t)(which ? now->offset1 : now->offset) * scale;
    const uint32_t *v = wave->v[now->from[0].index];
    for (int l = 0; l < wave->lanes; ++l) addresses[l] = v[l] + offset;
}

/* Corrects the count: two places of one instruction counted as two requests. */
static void count_as_one(gcn_wave *wave, const gcn_instruction *now) {
    ptx_counters *counters = &wave->group->counters;
    const bool two = now->form->code != 0, load = now->n_to > 0;
    if (!gcn_exec(wave)) return;
    if (load) counters->shared_loads -= two;
    if (!load) counters->shared_stores -= two;
    counters->shared_wide_loads += load && now->form->element * (two ? 2 : 1) >= 16;
}

static uint32_t loaded(uint32_t value, uint32_t old, const gcn_form *form) {
    switch (form->extend) {
    case GCN_SIGNS:
        return (uint32_t)(form->element == 1 ? (int32_t)(int8_t)value : (int32_t)(int16_t)value);
    case GCN_LOW_HALF:
        return (old & 0xffff0000u) | value;
    case GCN_HIGH_HALF:
        return (old & 0xffffu) | value << 16;
    default:
        return value;
    }
}

static void load_lds(gcn_wave *wave, const gcn_instruction *now) {
    const gcn_form *form = now->form;
    const int places = form->code ? 2 : 1;
    uint32_t words[2][4][GCN_LANES];
    uint64_t allowed[2];
    count_as_one(wave, now);
    /* Both are read before either is written, because a result register may hold the address. */
    for (int p = 0; p < places; ++p) {
        uint64_t addresses[GCN_LANES];
        unsigned char *where[GCN_LANES];
        lds_addresses(wave, now, p, addresses);
        allowed[p] = gcn_locate(wave, GCN_LDS, gcn_exec(wave), addresses, form->element, GCN_LOAD, where);
        for (int l = 0; l < wave->lanes; ++l) {
            uint32_t value[4] = {0};
            if (!(allowed[p] >> l & 1)) continue;
            memcpy(value, where[l], form->element);
            for (int k = 0; k < form->count; ++k) words[p][k][l] = value[k];
        }
    }
    for (int p = 0; p < places; ++p)
        for (int k = 0; k < form->count; ++k) {
            uint32_t *to = wave->v[now->to[0].index + p * form->count + k];
            for (int l = 0; l < wave->lanes; ++l)
                if (allowed[p] >> l & 1) to[l] = loaded(words[p][k][l], to[l], form);
        }
}

static void store_lds(gcn_wave *wave, const gcn_instruction *now) {
    const gcn_form *form = now->form;
    count_as_one(wave, now);
    for (int p = 0; p < (form->code ? 2 : 1); ++p) {
        const uint32_t(*from)[GCN_LANES] = (const uint32_t(*)[GCN_LANES])wave->v + now->from[1 + p].index;
        uint64_t addresses[GCN_LANES];
        unsigned char *where[GCN_LANES];
        lds_addresses(wave, now, p, addresses);
        const uint64_t allowed = gcn_locate(wave, GCN_LDS, gcn_exec(wave), addresses, form->element, GCN_STORE, where);
        for (int l = 0; l < wave->lanes; ++l) {
            uint32_t value[4];
            if (!(allowed >> l & 1)) continue;
            for (int k = 0; k < form->count; ++k) value[k] = from[k][l];
            if (form->extend == GCN_HIGH_HALF) value[0] >>= 16;
            memcpy(where[l], value, form->element);
        }
    }
}

#define LOAD(name, bytes, words, how)                                                                                  \
    { name, "V=V", load_lds, .space = GCN_LDS, .element = bytes, .count = words, .extend = how }
#define LOAD2(name, bytes, scale)                                                                                      \
    { name, "V=V", load_lds, .space = GCN_LDS, .element = bytes, .count = bytes / 4, .code = scale }
#define STORE(name, bytes, words, how)                                                                                 \
    { name, "=VV", store_lds, .space = GCN_LDS, .element = bytes, .count = words, .extend = how }
#define STORE2(name, bytes, scale)                                                                                     \
    { name, "=VVV", store_lds, .space = GCN_LDS, .element = bytes, .count = bytes / 4, .code = scale }

static const gcn_form forms[] = {
    LOAD("ds_read_u8", 1, 1, GCN_ZEROS),
    LOAD("ds_load_u8", 1, 1, GCN_ZEROS),
    LOAD("ds_read_i8", 1, 1, GCN_SIGNS),
    LOAD("ds_load_i8", 1, 1, GCN_SIGNS),
    LOAD("ds_read_u16", 2, 1, GCN_ZEROS),
    LOAD("ds_load_u16", 2, 1, GCN_ZEROS),
    LOAD("ds_read_i16", 2, 1, GCN_SIGNS),
    LOAD("ds_load_i16", 2, 1, GCN_SIGNS),
    LOAD("ds_read_u8_d16", 1, 1, GCN_LOW_HALF),
    LOAD("ds_load_u8_d16", 1, 1, GCN_LOW_HALF),
    LOAD("ds_read_u8_d16_hi", 1, 1, GCN_HIGH_HALF),
    LOAD("ds_load_u8_d16_hi", 1, 1, GCN_HIGH_HALF),
    LOAD("ds_read_u16_d16", 2, 1, GCN_LOW_HALF),
    LOAD("ds_load_u16_d16", 2, 1, GCN_LOW_HALF),
    LOAD("ds_read_u16_d16_hi", 2, 1, GCN_HIGH_HALF),
    LOAD("ds_load_u16_d16_hi", 2, 1, GCN_HIGH_HALF),
    LOAD("ds_read_b32", 4, 1, GCN_ZEROS),
    LOAD("ds_load_b32", 4, 1, GCN_ZEROS),
    LOAD("ds_read_b64", 8, 2, GCN_ZEROS),
    LOAD("ds_load_b64", 8, 2, GCN_ZEROS),
    LOAD("ds_read_b96", 12, 3, GCN_ZEROS),
    LOAD("ds_load_b96", 12, 3, GCN_ZEROS),
    LOAD("ds_read_b128", 16, 4, GCN_ZEROS),
    LOAD("ds_load_b128", 16, 4, GCN_ZEROS),
    LOAD2("ds_read2_b32", 4, 1),
    LOAD2("ds_load_2addr_b32", 4, 1),
    LOAD2("ds_read2st64_b32", 4, 64),
    LOAD2("ds_load_2addr_stride64_b32", 4, 64),
    LOAD2("ds_read2_b64", 8, 1),
    LOAD2("ds_load_2addr_b64", 8, 1),
    LOAD2("ds_read2st64_b64", 8, 64),
    LOAD2("ds_load_2addr_stride64_b64", 8, 64),
    STORE("ds_write_b8", 1, 1, GCN_ZEROS),
    STORE("ds_store_b8", 1, 1, GCN_ZEROS),
    STORE("ds_write_b8_d16_hi", 1, 1, GCN_HIGH_HALF),
    STORE("ds_store_b8_d16_hi", 1, 1, GCN_HIGH_HALF),
    STORE("ds_write_b16", 2, 1, GCN_ZEROS),
    STORE("ds_store_b16", 2, 1, GCN_ZEROS),
    STORE("ds_write_b16_d16_hi", 2, 1, GCN_HIGH_HALF),
    STORE("ds_store_b16_d16_hi", 2, 1, GCN_HIGH_HALF),
    STORE("ds_write_b32", 4, 1, GCN_ZEROS),
    STORE("ds_store_b32", 4, 1, GCN_ZEROS),
    STORE("ds_write_b64", 8, 2, GCN_ZEROS),
    STORE("ds_store_b64", 8, 2, GCN_ZEROS),
    STORE("ds_write_b96", 12, 3, GCN_ZEROS),
    STORE("ds_store_b96", 12, 3, GCN_ZEROS),
    STORE("ds_write_b128", 16, 4, GCN_ZEROS),
    STORE("ds_store_b128", 16, 4, GCN_ZEROS),
    STORE2("ds_write2_b32", 4, 1),
    STORE2("ds_store_2addr_b32", 4, 1),
    STORE2("ds_write2st64_b32", 4, 64),
    STORE2("ds_store_2addr_stride64_b32", 4, 64),
    STORE2("ds_write2_b64", 8, 1),
    STORE2("ds_store_2addr_b64", 8, 1),
    STORE2("ds_write2st64_b64", 8, 64),
    STORE2("ds_store_2addr_stride64_b64", 8, 64),
};

const gcn_table gcn_lds_table = GCN_TABLE(forms);
