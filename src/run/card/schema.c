/* The schema of card files. Every number but the power must be given, and so must a key of the same name in
 * [source]. */
#include "card/file.h"

#define RECORD cleat_card_file
#include "ini/rows.h"

static const char *const vendors[] = {"nvidia", "amd", "intel", "pocl", NULL};
const cleat_card_vendor cleat_card_vendors[] = {
    {CLEAT_VENDOR_NVIDIA, "NVIDIA Corporation", "NVIDIA CUDA"},
    {CLEAT_VENDOR_AMD, "Advanced Micro Devices, Inc.", "AMD Accelerated Parallel Processing"},
    {CLEAT_VENDOR_INTEL, "Intel(R) Corporation", "Intel(R) OpenCL Graphics"},
    {CLEAT_VENDOR_POCL, "PoCL", "Portable Computing Language"},
};

static const char *const kinds[] = {"gpu", "cpu", NULL};
const cleat_device_kind cleat_card_kinds[] = {CLEAT_DEVICE_GPU, CLEAT_DEVICE_CPU};

/* In the order of cleat_matrix_unit. */
static const char *const units[] = {"none",     "nv70",     "nv75",   "nv80",    "amd_dot",
                                    "amd_wmma", "amd_mfma", "intel8", "intel16", NULL};

static const cleat_section sections[] = {
    {"card", "properties reported by the OpenCL driver"},
    {"speed", "peak rates of the data sheet, and the fraction of them that cleat reaches"},
    {"loader", "defaults for the hosts this card is found in"},
    {"source", "source of each value"},
    {NULL, NULL},
};

#define KiB 1024.0
#define MiB (1024 * KiB)
#define GiB (1024 * MiB)
#define TiB (1024 * GiB)

/* Peak rates, per second. */
#define PEAK(LOW, HIGH) FLOAT(LOW, HIGH, REQUIRED)
#define EFFICIENCY FLOAT(0.01, 1, REQUIRED)
#define SOURCE(NAME)                                                                                                   \
    { AT(source, NAME), STRING(source.NAME, 8, REQUIRED), .help = "Data sheet, report, or reason for the estimate." }

static const cleat_key keys[] = {
    {AT(card, title), STRING(card.title, 1, REQUIRED),
     .help = "Full name of the card, with its memory size if there are several."},
    {AT(card, vendor), CHOICE(vendors, REQUIRED), .help = "Vendor of the OpenCL driver."},
    {AT(card, kind), CHOICE(kinds, REQUIRED), .help = "Device type reported by the driver."},
    {AT(card, match), STRING(card.match, 0, REQUIRED),
     .help = "Substrings of OpenCL device names that identify this card, separated by |; empty: any device of vendor "
             "and kind."},
    {AT(card, memory), BYTES(64 * MiB, 16 * TiB, REQUIRED), .help = "Device memory as the OpenCL driver reports it."},
    {AT(card, reserved), BYTES(0, 1 * TiB, REQUIRED), .help = "Memory taken by driver, context and display."},
    {AT(card, max_allocation), BYTES(16 * MiB, 16 * TiB, REQUIRED), .help = "Size of the largest single buffer."},
    {AT(card, alignment), INT(256, 65536, REQUIRED), .help = "Alignment of planned offsets in bytes."},
    {AT(card, local_memory), BYTES(16 * KiB, 64 * MiB, REQUIRED), .help = "Local memory per work-group."},
    {AT(card, max_work_group), INT(1, 65536, REQUIRED), .help = "Maximum work-group size in work-items."},
    {AT(card, compute_units), INT(1, 65536, REQUIRED), .help = "Compute units as the OpenCL driver counts them."},
    {AT(card, unified_memory), BOOL(REQUIRED), .help = "Host and device share the host's memory."},
    {AT(card, half_extension), BOOL(REQUIRED), .help = "The driver lists cl_khr_fp16."},
    {AT(card, double_extension), BOOL(REQUIRED), .help = "The driver lists cl_khr_fp64."},
    {AT(card, matrix_unit), CHOICE(units, REQUIRED),
     .help = "Matrix unit for half precision tiles; none: no unit that cleat can use."},

    {AT(speed, f32_tflops), PEAK(0.001, 10000),
     .help = "Peak f32 rate in 10^12 operations per second; a multiply-add counts as two."},
    {AT(speed, f16_tflops), PEAK(0.001, 10000), .help = "Peak rate of half arithmetic outside matrix units."},
    {AT(speed, matrix_tflops), PEAK(0, 100000),
     .help = "Peak rate of the matrix_unit with half inputs and f32 accumulation; 0: no matrix unit."},
    {AT(speed, bandwidth_gb), PEAK(1, 100000), .help = "Device memory bandwidth in 10^9 bytes per second."},
    {AT(speed, gemm_efficiency), EFFICIENCY, .help = "Fraction of f32_tflops that cleat's matrix products reach."},
    {AT(speed, bandwidth_efficiency), EFFICIENCY, .help = "Fraction of bandwidth_gb that cleat's kernels reach."},
    {AT(speed, launch_us), FLOAT(0, 10000, REQUIRED), .help = "Kernel launch overhead in microseconds."},
    {AT(speed, matrix_efficiency), FLOAT(0, 1, "0"),
     .help = "Fraction of matrix_tflops that products on the matrix unit reach; 0: gemm_efficiency."},
    {AT(speed, lstm_efficiency), FLOAT(0, 1, "0"),
     .help = "Fraction of f32_tflops that an LSTM reaches, whose products wait for each other; 0: gemm_efficiency."},
    {AT(speed, product_us), FLOAT(0, 10000, "0"),
     .help = "Fixed time of a launch of f32 products in microseconds; 0: launch_us."},
    {AT(speed, matrix_product_us), FLOAT(0, 10000, "0"),
     .help = "The same for products on the matrix unit; 0: launch_us."},
    {AT(speed, within), FLOAT(1, 100, "4"),
     .help = "Factor by which times may differ from their estimates, either way."},
    {AT(speed, board_watts), FLOAT(0, 10000, "0"), .help = "Power at full load in watts; 0: unknown."},

    {AT(loader, workers), INT(0, 256, REQUIRED), .help = "Number of loader threads."},

    SOURCE(memory),
    SOURCE(reserved),
    SOURCE(max_allocation),
    SOURCE(alignment),
    SOURCE(local_memory),
    SOURCE(max_work_group),
    SOURCE(compute_units),
    SOURCE(extensions),
    SOURCE(matrix_unit),
    SOURCE(f32_tflops),
    SOURCE(f16_tflops),
    SOURCE(matrix_tflops),
    SOURCE(bandwidth_gb),
    SOURCE(gemm_efficiency),
    SOURCE(bandwidth_efficiency),
    SOURCE(launch_us),
    SOURCE(workers),
    {AT(source, board_watts), STRING(source.board_watts, 0, ""),
     .help = "Data sheet, report, or reason for the estimate."},
    {AT(source, measured), STRING(source.measured, 0, ""),
     .help = "Card on which the optional values of [speed] were measured, and how."},
    {.section = NULL, .name = NULL},
};

const cleat_schema cleat_card_schema = {.noun = "card file", .sections = sections, .keys = keys};
