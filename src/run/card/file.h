/* Card files: their schema and their content. */
#ifndef CLEAT_SRC_CARD_FILE_H
#define CLEAT_SRC_CARD_FILE_H

#include "cleat/card.h"
#include "core/embedded.h"
#include "ini/record.h"

enum { CLEAT_CARD_SOURCE = 512 };
typedef char cleat_card_source[CLEAT_CARD_SOURCE];

/* The content of a card file: section.key is the field of that name. */
typedef struct cleat_card_file {
    struct {
        char title[128];
        int vendor; /* index into cleat_card_vendors */
        int kind;   /* index into cleat_card_kinds */
        char match[256];
        int64_t memory, reserved, max_allocation, alignment, local_memory;
        int64_t max_work_group, compute_units;
        bool unified_memory, half_extension, double_extension;
        int matrix_unit; /* cleat_matrix_unit */
    } card;
    struct {
        double f32_tflops, f16_tflops, matrix_tflops, bandwidth_gb;
        double gemm_efficiency, bandwidth_efficiency, launch_us, board_watts;
        double matrix_efficiency, lstm_efficiency, product_us, matrix_product_us, within;
    } speed;
    struct {
        int64_t workers;
    } loader;
    /* The source of each number. */
    struct {
        cleat_card_source memory, reserved, max_allocation, alignment, local_memory, max_work_group, compute_units;
        cleat_card_source extensions, matrix_unit;
        cleat_card_source f32_tflops, f16_tflops, matrix_tflops, bandwidth_gb;
        cleat_card_source gemm_efficiency, bandwidth_efficiency, launch_us, board_watts;
        cleat_card_source measured, workers;
    } source;
} cleat_card_file;

extern const cleat_schema cleat_card_schema;
/* Sorted by name; ends with a NULL name. */
extern const cleat_embedded_file cleat_embedded_cards[];

/* The meaning of [card] vendor and kind, in the order of their choices. */
typedef struct cleat_card_vendor {
    cleat_vendor vendor;
    const char *vendor_name, *platform; /* as the driver reports them */
} cleat_card_vendor;
extern const cleat_card_vendor cleat_card_vendors[];
extern const cleat_device_kind cleat_card_kinds[];

/* Whether a device's name contains one of the parts of `match` ("Tesla T4|NVIDIA T4") as whole words; ""
 * matches all. */
bool cleat_name_matches(const char *match, const char *device);

/* Reads a card from the INI text of the file `place`. CLEAT_ERR_PROFILE: the message gives the line. */
cleat_status cleat_card_read(const char *name, const char *place, const char *text, size_t size, cleat_card *card,
                             cleat_error *error);

#endif
