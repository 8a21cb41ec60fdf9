/* Tables of the selectable cards. */
#ifndef VIRTUAL_CARD_CARDS_H
#define VIRTUAL_CARD_CARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Properties and limits that a vendor's driver reports. */
typedef struct vc_maker {
    bool amd; /* else NVIDIA */
    const char *vendor, *platform, *platform_version, *suffix;
    const char *driver, *device_version, *c_version;
    const char *extensions; /* like NVIDIA's cards without cl_khr_fp16 and sub-groups */
    uint32_t vendor_id;
    uint32_t max_work_items;      /* per work-group */
    uint32_t max_items[3];        /* per work-group in each dimension */
    uint32_t max_groups_above;    /* work-groups in the dimensions 1 and 2 */
    uint32_t local_memory;        /* per work-group */
    uint32_t max_parameter_bytes; /* of a kernel */
    uint32_t alignment;           /* of sub-buffer origins, in bytes */
    uint32_t cache_line;
    uint32_t native_half; /* vector width; 0: no half support */
    bool out_of_order;    /* queues */
} vc_maker;

typedef struct vc_card {
    const vc_maker *maker;
    const char *key;       /* the value of CLEAT_VIRTUAL_CARD */
    const char *name;      /* as the driver names it */
    const char *board;     /* AMD: marketing name, which the device name lacks */
    const char *processor; /* AMD: the compiler's target */
    uint32_t isa;          /* AMD: number of the processor in the device libraries */
    uint32_t wave;         /* work-items per warp or wave */
    uint32_t major, minor; /* NVIDIA: compute capability */
    uint32_t multiprocessors, clock_mhz;
    uint64_t memory;  /* bytes */
    uint64_t largest; /* maximum allocation */
    uint64_t cache;   /* bytes, as the driver reports them */
} vc_card;

/* The card of CLEAT_VIRTUAL_CARD; the T4 if it is not set. NULL: no card has that key. */
const vc_card *vc_card_chosen(void);

#endif
