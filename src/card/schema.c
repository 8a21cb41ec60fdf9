/* The schema of card files. Every figure must be given, and a key of the same name in [source]. */
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
    {"card", "what its OpenCL driver tells"},
    {"speed", "peaks of the data sheet, and which part of them cleat reaches"},
    {"loader", "what suits the hosts it is found in"},
    {"source", "where each figure is from"},
    {NULL, NULL},
};

#define KiB 1024.0
#define MiB (1024 * KiB)
#define GiB (1024 * MiB)
#define TiB (1024 * GiB)

/* Peaks of a second. */
#define PEAK(LOW, HIGH) FLOAT(LOW, HIGH, REQUIRED)
#define EFFICIENCY FLOAT(0.01, 1, REQUIRED)
#define SOURCE(NAME)                                                                                                   \
    { AT(source, NAME), STRING(source.NAME, 8, REQUIRED), .help = "Data sheet, report, or why the estimate is so." }

static const cleat_key keys[] = {
    {AT(card, title), STRING(card.title, 1, REQUIRED),
     .help = "Its full name, with the memory where there are several."},
    {AT(card, vendor), CHOICE(vendors, REQUIRED), .help = "Whose OpenCL driver."},
    {AT(card, kind), CHOICE(kinds, REQUIRED), .help = "What the driver calls it."},
    {AT(card, match), STRING(card.match, 0, REQUIRED),
     .help = "Parts of OpenCL device names that mean this card, with | between; nothing: any of vendor and kind."},
    {AT(card, memory), BYTES(64 * MiB, 16 * TiB, REQUIRED), .help = "As the OpenCL driver reports it."},
    {AT(card, reserved), BYTES(0, 1 * TiB, REQUIRED), .help = "What driver, context and screen take of it."},
    {AT(card, max_allocation), BYTES(16 * MiB, 16 * TiB, REQUIRED), .help = "The largest single buffer."},
    {AT(card, alignment), INT(256, 65536, REQUIRED), .help = "Bytes that planned offsets are multiples of."},
    {AT(card, local_memory), BYTES(16 * KiB, 64 * MiB, REQUIRED), .help = "Of a work-group."},
    {AT(card, max_work_group), INT(1, 65536, REQUIRED), .help = "Work-items of the largest work-group."},
    {AT(card, compute_units), INT(1, 65536, REQUIRED), .help = "As the OpenCL driver counts them."},
    {AT(card, unified_memory), BOOL(REQUIRED), .help = "Host and device share memory, whose size is the host's."},
    {AT(card, half_extension), BOOL(REQUIRED), .help = "The driver lists cl_khr_fp16."},
    {AT(card, double_extension), BOOL(REQUIRED), .help = "The driver lists cl_khr_fp64."},
    {AT(card, matrix_unit), CHOICE(units, REQUIRED),
     .help = "What multiplies tiles of half precision; none: nothing cleat can use."},

    {AT(speed, f32_tflops), PEAK(0.001, 10000), .help = "10^12 f32 operations a second; a multiply-add is two."},
    {AT(speed, f16_tflops), PEAK(0.001, 10000), .help = "Of half arithmetic outside matrix units."},
    {AT(speed, matrix_tflops), PEAK(0, 100000), .help = "Of its matrix_unit, half inputs, f32 sums; 0: it has none."},
    {AT(speed, bandwidth_gb), PEAK(1, 100000), .help = "10^9 bytes a second of device memory."},
    {AT(speed, gemm_efficiency), EFFICIENCY, .help = "Part of f32_tflops that cleat's matrix products reach."},
    {AT(speed, bandwidth_efficiency), EFFICIENCY, .help = "Part of bandwidth_gb that cleat's kernels reach."},
    {AT(speed, launch_us), FLOAT(0, 10000, REQUIRED), .help = "Microseconds a kernel costs besides its work."},

    {AT(loader, workers), INT(0, 256, REQUIRED), .help = "Loader threads."},

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
    {.section = NULL, .name = NULL},
};

const cleat_schema cleat_card_schema = {.noun = "card file", .sections = sections, .keys = keys};
