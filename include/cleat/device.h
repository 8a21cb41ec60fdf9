/* Cards: finding them, what they are, and the handle through which everything else uses one.
 *
 * Threads: a device is used by one thread at a time, together with what was created on it. Facts are plain data. */
#ifndef CLEAT_DEVICE_H
#define CLEAT_DEVICE_H

#include "cleat/core.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CLEAT_CPU_LIST = 1024 }; /* bytes of a list of CPUs */

typedef enum cleat_device_kind { CLEAT_DEVICE_CPU, CLEAT_DEVICE_GPU, CLEAT_DEVICE_OTHER } cleat_device_kind;

typedef enum cleat_vendor {
    CLEAT_VENDOR_UNKNOWN,
    CLEAT_VENDOR_NVIDIA,
    CLEAT_VENDOR_AMD,
    CLEAT_VENDOR_INTEL,
    CLEAT_VENDOR_POCL,
    CLEAT_VENDOR_OCLGRIND,
} cleat_vendor;

/* What multiplies tiles of half precision with f32 sums. Kernels get the number as -DMATRIX_UNIT (cl/lib/mma_layout.clh has the same ones). */
typedef enum cleat_matrix_unit {
    CLEAT_MATRIX_NONE,
    CLEAT_MATRIX_NV70,     /* NVIDIA 7.0 and 7.2 (V100), mma.m8n8k4: f16 only */
    CLEAT_MATRIX_NV75,     /* NVIDIA from compute capability 7.5 on, mma.m16n8k8: f16 only */
    CLEAT_MATRIX_NV80,     /* NVIDIA from 8.0 on, mma.m16n8k16 */
    CLEAT_MATRIX_AMD_DOT,  /* no unit: sums of two products at once, v_dot2 (RDNA2, gfx906) */
    CLEAT_MATRIX_AMD_WMMA, /* RDNA3, waves of 32 */
    CLEAT_MATRIX_AMD_MFMA, /* CDNA, waves of 64; bf16 from gfx90a on */
    CLEAT_MATRIX_INTEL8,   /* DPAS of sub-groups of 8: Arc */
    CLEAT_MATRIX_INTEL16,  /* DPAS of sub-groups of 16: Data Center GPU Max */
    CLEAT_MATRIX_EMULATED, /* none: the same words in plain OpenCL, slow, to test kernels anywhere; NVIDIA's layout */
    CLEAT_MATRIX_EMULATED_DOT, /* the same with the layout of CLEAT_MATRIX_AMD_DOT */
    CLEAT_MATRIX_UNITS
} cleat_matrix_unit;

/* What is known of a card. Plain data without OpenCL types, so that planning and kernel selection work from a
 * card that is not there. Sizes are bytes. */
typedef struct cleat_device_facts {
    char name[128];
    char vendor_name[128];
    char platform[128];
    char driver[128]; /* CL_DRIVER_VERSION; part of every cache key */
    cleat_device_kind kind;
    cleat_vendor vendor;
    int64_t memory_total;
    int64_t memory_free;    /* 0 where nobody tells */
    char memory_source[64]; /* where memory_free comes from: "NVML", "AMD query", "sysfs", "/proc/meminfo",
                               ... */
    int64_t max_allocation; /* largest single buffer */
    int64_t alignment;      /* of every planned offset; at least 256 */
    int64_t local_memory;   /* bytes a work-group may use; cleat's kernels stay within 32 KiB */
    int32_t max_work_group;
    int32_t compute_units;
    int32_t
        sub_group; /* work-items that run together where the driver lets a kernel choose, the fewest: Intel's GPUs; else 0 */
    bool unified_memory; /* host and device share memory */
    bool half_extension; /* cl_khr_fp16 is listed; half STORAGE works everywhere without it */
    bool double_extension;
    int32_t pci_domain, pci_bus, pci_device, pci_function; /* pci_bus is -1 where unknown */
    char pinning[CLEAT_CPU_LIST];                          /* the CPUs near the card, as a list ("0-7"), or "any" */
    /* The shape kernels are built in: one work-item with wide vectors on a CPU (work_group 1, lanes 16),
     * groups with local memory and barriers on a GPU (work_group 256, lanes 4). CLEAT_DEVICE_SHAPE=gpu|cpu
     * overrides it, so that a CPU can test what a card will run. */
    int32_t work_group;
    int32_t vector_width;
    /* Known of an open device, after a probe has compiled for it, run and computed right; kernels in the GPU shape only.
     * CLEAT_MATRIX_UNIT=none|emulated|emulated_dot overrides it. */
    cleat_matrix_unit matrix_unit;
    bool matrix_bf16; /* the unit multiplies bf16 too, not only f16 */
} cleat_device_facts;

/* How fast a card is, for estimates of time: sustained in cleat's own kernels, not the data sheet's peak. */
typedef struct cleat_rates {
    double flops;          /* f32 operations a second, a multiply-add is two */
    double matrix_flops;   /* of its matrix unit, half inputs and f32 sums; 0: it has none, or that is not known */
    double bytes;          /* read and written, a second */
    double launch_seconds; /* what a kernel costs besides its work */
    char source[96];       /* "measured", "card file t4", ... */
} cleat_rates;

typedef struct cleat_device cleat_device;

/* Lists the facts of all devices of all platforms, in the order cleat numbers them. `*facts` is allocated;
 * release it with cleat_device_list_free. Finding none is CLEAT_ERR_NO_DEVICE with a message that says how to
 * install a driver. */
CLEAT_API cleat_status cleat_device_list(cleat_device_facts **facts, size_t *count, cleat_error *error);
CLEAT_API void cleat_device_list_free(cleat_device_facts *facts);

/* Opens a device. `selector`: "auto" or NULL (a GPU if there is one, else a CPU; of several one with memory of its own, then the one with the
 * most), "gpu", "cpu", a number as listed by cleat_device_list, or a part of a name (case-insensitive). No match, or more than one
 * match by name, is an error that lists what there is. The caller closes it. */
CLEAT_API cleat_status cleat_device_open(const char *selector, cleat_device **device, cleat_error *error);
CLEAT_API void cleat_device_close(cleat_device *device);

/* Borrowed, as long as the device is open. */
CLEAT_API const cleat_device_facts *cleat_device_get_facts(const cleat_device *device);

/* Bytes of device buffers that are allocated at this moment, and the most there ever were. */
CLEAT_API int64_t cleat_device_allocated(const cleat_device *device);
CLEAT_API int64_t cleat_device_peak(const cleat_device *device);

/* "CPU", "GPU", "other". */
CLEAT_API const char *cleat_device_kind_text(cleat_device_kind kind);
/* "none", "nv70", "nv75", "nv80", "amd_dot", "amd_wmma", "amd_mfma", "intel8", "intel16", "emulated",
 * "emulated_dot"; "?" for any other number. */
CLEAT_API const char *cleat_matrix_unit_text(cleat_matrix_unit unit);

#ifdef __cplusplus
}
#endif
#endif
