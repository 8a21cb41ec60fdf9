/* Devices: discovery, facts, and the handle for all work on an open device.
 *
 * Threads: a device and everything created on it is used by one thread at a time. Facts are plain data. */
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

/* Hardware for products of half-precision tiles with f32 sums. Kernels receive the number as -DMATRIX_UNIT
 * (cl/lib/mma_layout.clh has the same numbers). */
typedef enum cleat_matrix_unit {
    CLEAT_MATRIX_NONE,
    CLEAT_MATRIX_NV70,     /* NVIDIA 7.0 and 7.2 (V100), mma.m8n8k4: f16 only */
    CLEAT_MATRIX_NV75,     /* NVIDIA from compute capability 7.5 on, mma.m16n8k8: f16 only */
    CLEAT_MATRIX_NV80,     /* NVIDIA from 8.0 on, mma.m16n8k16 */
    CLEAT_MATRIX_AMD_DOT,  /* no matrix unit: v_dot2 adds two products (RDNA2, gfx906) */
    CLEAT_MATRIX_AMD_WMMA, /* RDNA3, waves of 32 */
    CLEAT_MATRIX_AMD_MFMA, /* CDNA, waves of 64; bf16 from gfx90a on */
    CLEAT_MATRIX_INTEL8,   /* DPAS of sub-groups of 8: Arc */
    CLEAT_MATRIX_INTEL16,  /* DPAS of sub-groups of 16: Data Center GPU Max */
    /* no matrix unit: emulation in plain OpenCL with NVIDIA's layout, slow, to test kernels on any device */
    CLEAT_MATRIX_EMULATED,
    CLEAT_MATRIX_EMULATED_DOT, /* the same with the layout of CLEAT_MATRIX_AMD_DOT */
    /* the kernels of CLEAT_MATRIX_INTEL8 and CLEAT_MATRIX_INTEL16, with their instructions emulated */
    CLEAT_MATRIX_EMULATED_INTEL8,
    CLEAT_MATRIX_EMULATED_INTEL16,
    CLEAT_MATRIX_UNITS
} cleat_matrix_unit;

/* Facts of a device. Plain data without OpenCL types, so that planning and kernel selection work for a
 * device that is absent. Sizes are in bytes. */
typedef struct cleat_device_facts {
    char name[128];
    char vendor_name[128];
    char platform[128];
    char driver[128]; /* CL_DRIVER_VERSION; part of every cache key */
    cleat_device_kind kind;
    cleat_vendor vendor;
    int64_t memory_total;
    int64_t memory_free; /* 0: unknown */
    /* Source of memory_free: "NVML", "AMD query", "sysfs", "/proc/meminfo", ... */
    char memory_source[64];
    int64_t max_allocation; /* largest single buffer */
    int64_t alignment;      /* of every planned offset; at least 256 */
    int64_t local_memory;   /* bytes a work-group may use; cleat's kernels stay within 32 KiB */
    int32_t max_work_group;
    int32_t compute_units;
    int32_t sub_group;   /* Smallest selectable sub-group size (Intel GPUs); 0 if fixed. */
    bool unified_memory; /* host and device share memory */
    bool half_extension; /* cl_khr_fp16 is listed; half STORAGE works everywhere without it */
    bool double_extension;
    int32_t pci_domain, pci_bus, pci_device, pci_function; /* pci_bus is -1 if unknown */
    char pinning[CLEAT_CPU_LIST];                          /* CPUs near the card ("0-7"), or "any" */
    /* Kernel shape: one work-item with wide vectors on a CPU (work_group 1, vector_width 16), groups with
     * local memory and barriers on a GPU (work_group 256, vector_width 4). CLEAT_DEVICE_SHAPE=gpu|cpu
     * overrides it, so that the GPU kernels can be tested on a CPU. */
    int32_t work_group;
    int32_t vector_width;
    /* Set for an open device, after a probe kernel compiled, ran and computed correct results; GPU shape
     * only. CLEAT_MATRIX_UNIT=none or the text of an emulated unit overrides it. */
    cleat_matrix_unit matrix_unit;
    bool matrix_bf16; /* the unit multiplies bf16 as well as f16 */
    /* The compiler can round f32 division and square root correctly (-cl-fp32-correctly-rounded-divide-sqrt). */
    bool rounds_correctly;
} cleat_device_facts;

/* Speeds of a device for time estimates: sustained in the kernels of cleat, not data-sheet peaks. */
typedef struct cleat_rates {
    double flops; /* f32 operations per second; a multiply-add is two */
    /* operations per second of the matrix unit, half inputs, f32 sums; 0: none or unknown */
    double matrix_flops;
    double bytes;          /* bytes read and written per second */
    double launch_seconds; /* overhead of a kernel launch, seconds */
    /* Fixed seconds per launch of a matrix product, in f32 and on the matrix unit: the launch itself, tile
     * prologues, the addition of partial sums. 0: launch_seconds */
    double product_seconds, matrix_product_seconds;
    double recurrent_flops; /* f32 operations per second of dependent products (LSTM); 0: flops */
    double within;          /* true times lie between estimates / within and * within; 0: unknown, or measured here */
    char source[96];        /* "measured", "card file t4", ... */
} cleat_rates;

typedef struct cleat_device cleat_device;

/* Lists the facts of all devices of all platforms, in the order of their numbers. `*facts` [*count] is
 * owned by the caller; release it with cleat_device_list_free. CLEAT_ERR_NO_DEVICE: none found; the
 * message explains how to install a driver. */
CLEAT_API cleat_status cleat_device_list(cleat_device_facts **facts, size_t *count, cleat_error *error);
CLEAT_API void cleat_device_list_free(cleat_device_facts *facts);

/* Opens a device; the caller closes it. `selector`: "auto" or NULL (a GPU if present, else a CPU; among
 * several GPUs one with dedicated memory, then the one with the most memory), "gpu", "cpu", a number as
 * listed by cleat_device_list, or part of a name (case-insensitive). No match, or more than one match by
 * name, is an error that lists the devices. */
CLEAT_API cleat_status cleat_device_open(const char *selector, cleat_device **device, cleat_error *error);
CLEAT_API void cleat_device_close(cleat_device *device);

/* The facts of an open device. Borrowed; valid until it is closed. */
CLEAT_API const cleat_device_facts *cleat_device_get_facts(const cleat_device *device);

/* Bytes of device buffers currently allocated, and their high-water mark. */
CLEAT_API int64_t cleat_device_allocated(const cleat_device *device);
CLEAT_API int64_t cleat_device_peak(const cleat_device *device);

/* Whether the device has finished every graph that was enqueued by cleat_exec_run; true before the first one.
 * Does not wait. May be called from any thread while the device is open. */
CLEAT_API bool cleat_device_is_idle(cleat_device *device);

/* Gives a number to all graphs that cleat_exec_run has enqueued so far. Numbers ascend from 1.
 * cleat_device_marked returns the largest number whose graphs the device has finished, 0 before the first; it
 * does not wait. The first is called by the thread that uses the device, the second by any thread while the
 * device is open. */
CLEAT_API void cleat_device_mark(cleat_device *device, int64_t number);
CLEAT_API int64_t cleat_device_marked(cleat_device *device);

/* "CPU", "GPU", "other". */
CLEAT_API const char *cleat_device_kind_text(cleat_device_kind kind);
/* "none", "nv70", "nv75", "nv80", "amd_dot", "amd_wmma", "amd_mfma", "intel8", "intel16", "emulated",
 * "emulated_dot", "emulated_intel8", "emulated_intel16"; "?" for any other number. */
CLEAT_API const char *cleat_matrix_unit_text(cleat_matrix_unit unit);

/* The running library and its dependencies; "": unknown. */
typedef struct cleat_build_info {
    char compiler[96];       /* "gcc 12.2.0" */
    char build_type[32];     /* "Release" */
    char opencl_loader[160]; /* "OpenCL ICD Loader 2.3.1 (OpenCL 3.0)", the loader's file, or "none" */
    char clblast[64];        /* "1.5.3" */
    char hwloc[32];          /* version of its interface: "2.9.0" */
} cleat_build_info;

/* Describes the running library. Opens no device, but the OpenCL loader may load its drivers. */
CLEAT_API void cleat_get_build_info(cleat_build_info *info);

#ifdef __cplusplus
}
#endif
#endif
