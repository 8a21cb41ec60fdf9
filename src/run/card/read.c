/* Turns the text of a card file into a card: the facts its driver would report, peaks, sustained rates. */
#include "card/file.h"

#include "core/kernel_shape.h"
#include "core/memory.h"

#include <stdio.h>
#include <string.h>

/* --- consistency checks ---------------------------------------------------------------------------------------- */

static cleat_status check_memory(const cleat_card_file *file, const cleat_record *record, cleat_error *error) {
    if (file->card.max_allocation > file->card.memory)
        return cleat_record_contradict(record, error, "card.max_allocation", "card.memory",
                                       "a buffer cannot be larger than the memory: most drivers allow a quarter of it");
    if (file->card.reserved >= file->card.memory)
        return cleat_record_contradict(record, error, "card.reserved", "card.memory",
                                       "no memory would be left for training: reserved is usually some 100 MiB");
    if (file->card.alignment & (file->card.alignment - 1))
        return cleat_record_refuse(record, error, "card.alignment", "must be a power of two, e.g. 256");
    return CLEAT_OK;
}

/* Rejects "A100||H100": its empty part would occur in every name. */
static cleat_status check_match(const cleat_card_file *file, const cleat_record *record, cleat_error *error) {
    const char *part = file->card.match;
    while (*file->card.match) {
        size_t length = strcspn(part, "|");
        if (strspn(part, " ") >= length)
            return cleat_record_refuse(record, error, "card.match",
                                       "a part between | is empty; give part of the device name, e.g. Tesla T4");
        if (!part[length]) break;
        part += length + 1;
    }
    return CLEAT_OK;
}

static cleat_status check_power(const cleat_card_file *file, const cleat_record *record, cleat_error *error) {
    if (file->speed.board_watts == 0 || file->source.board_watts[0]) return CLEAT_OK;
    return cleat_record_refuse(record, error, "speed.board_watts",
                               "has no source: give board_watts in [source] too, such as: data sheet");
}

static cleat_status check_measured(const cleat_card_file *file, const cleat_record *record, cleat_error *error) {
    const double values[] = {file->speed.matrix_efficiency, file->speed.lstm_efficiency, file->speed.product_us,
                             file->speed.matrix_product_us};
    static const char *const names[] = {"speed.matrix_efficiency", "speed.lstm_efficiency", "speed.product_us",
                                        "speed.matrix_product_us"};
    for (size_t i = 0; i < sizeof values / sizeof *values; ++i)
        if (values[i] > 0 && !file->source.measured[0])
            return cleat_record_refuse(record, error, names[i],
                                       "has no source: give measured in [source], the card on which it was measured");
    return CLEAT_OK;
}

/* --- the card --------------------------------------------------------------------------------------------------- */

static void set_facts(const cleat_card_file *file, const char *name, cleat_device_facts *facts) {
    /* Intel's architectures from Gen9 to Xe-HPG, that is, all consumer cards and laptops: a register of 32 bytes
     * holds one float for each of 8 work-items. (Data centre cards: 16.) */
    enum { INTEL_SUB_GROUP = 8 };
    const cleat_card_vendor *vendor = &cleat_card_vendors[file->card.vendor];
    *facts = (cleat_device_facts){
        .kind = cleat_card_kinds[file->card.kind],
        .vendor = vendor->vendor,
        .memory_total = file->card.memory,
        .memory_free = file->card.memory - file->card.reserved,
        .max_allocation = file->card.max_allocation,
        .alignment = file->card.alignment,
        .local_memory = file->card.local_memory,
        .max_work_group = (int32_t)file->card.max_work_group,
        .compute_units = (int32_t)file->card.compute_units,
        .sub_group = vendor->vendor == CLEAT_VENDOR_INTEL ? INTEL_SUB_GROUP : 0,
        .unified_memory = file->card.unified_memory,
        .half_extension = file->card.half_extension,
        .double_extension = file->card.double_extension,
        .matrix_unit = (cleat_matrix_unit)file->card.matrix_unit,
        .matrix_bf16 = cleat_matrix_may_have_bf16((cleat_matrix_unit)file->card.matrix_unit),
        .pci_bus = -1,
        .pinning = "any",
    };
    snprintf(facts->name, sizeof facts->name, "%s", file->card.title);
    snprintf(facts->vendor_name, sizeof facts->vendor_name, "%s", vendor->vendor_name);
    snprintf(facts->platform, sizeof facts->platform, "%s", vendor->platform);
    snprintf(facts->driver, sizeof facts->driver, "card file %s", name);
    snprintf(facts->memory_source, sizeof facts->memory_source, "card file %s", name);
    cleat_kernel_shape(facts, facts->kind == CLEAT_DEVICE_CPU);
}

static void set_card(const cleat_card_file *file, const char *name, cleat_card *card) {
    const double matrix_efficiency =
        file->speed.matrix_efficiency > 0 ? file->speed.matrix_efficiency : file->speed.gemm_efficiency;
    *card = (cleat_card){
        .f32_flops = file->speed.f32_tflops * 1e12,
        .f16_flops = file->speed.f16_tflops * 1e12,
        .matrix_flops = file->speed.matrix_tflops * 1e12,
        .bandwidth = file->speed.bandwidth_gb * 1e9,
        .workers = file->loader.workers,
        .board_watts = file->speed.board_watts,
        .rates.flops = file->speed.f32_tflops * 1e12 * file->speed.gemm_efficiency,
        .rates.matrix_flops =
            file->card.matrix_unit == CLEAT_MATRIX_NONE ? 0 : file->speed.matrix_tflops * 1e12 * matrix_efficiency,
        .rates.recurrent_flops = file->speed.f32_tflops * 1e12 * file->speed.lstm_efficiency,
        .rates.product_seconds = file->speed.product_us * 1e-6,
        .rates.matrix_product_seconds = file->speed.matrix_product_us * 1e-6,
        .rates.within = file->speed.within,
        .rates.bytes = file->speed.bandwidth_gb * 1e9 * file->speed.bandwidth_efficiency,
        .rates.launch_seconds = file->speed.launch_us * 1e-6,
    };
    snprintf(card->name, sizeof card->name, "%s", name);
    snprintf(card->match, sizeof card->match, "%s", file->card.match);
    snprintf(card->rates.source, sizeof card->rates.source, "card file %s", card->name);
    set_facts(file, card->name, &card->facts);
}

cleat_status cleat_card_read(const char *name, const char *place, const char *text, size_t size, cleat_card *card,
                             cleat_error *error) {
    cleat_record record = {0};
    cleat_card_file *file = cleat_alloc(1, sizeof *file);
    if (!file) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", place);
    cleat_status status = cleat_record_open(&cleat_card_schema, file, &record, error);
    if (!status) status = cleat_record_read_text(&record, place, text, size, error);
    if (!status) status = check_memory(file, &record, error);
    if (!status) status = check_match(file, &record, error);
    if (!status) status = check_power(file, &record, error);
    if (!status) status = check_measured(file, &record, error);
    if (!status) set_card(file, name, card);
    cleat_record_close(&record);
    cleat_free(file);
    return status;
}
