/* The cards that can be chosen, as a table of facts. */
#ifndef VIRTUAL_CARD_CARDS_H
#define VIRTUAL_CARD_CARDS_H

#include <stdint.h>

typedef struct vc_card {
    const char *key;       /* the value of CLEAT_VIRTUAL_CARD */
    const char *name;      /* as the driver names it */
    uint32_t major, minor; /* compute capability */
    uint32_t multiprocessors, clock_mhz;
    uint64_t memory; /* bytes; the largest allocation is a quarter */
    uint64_t cache;  /* bytes of level 2 */
} vc_card;

enum {
    VC_WARP = 32,
    VC_MAX_WORK_ITEMS = 1024,      /* of a work-group */
    VC_MAX_IN_DIMENSION_2 = 64,    /* work-items of a work-group in the last dimension */
    VC_MAX_GROUPS_ABOVE = 65535,   /* work-groups in the dimensions 1 and 2 */
    VC_LOCAL_MEMORY = 48 * 1024,   /* of a work-group */
    VC_MAX_PARAMETER_BYTES = 4352, /* of a kernel */
    VC_ALIGNMENT = 512             /* of a sub-buffer's origin, in bytes */
};

/* The card of CLEAT_VIRTUAL_CARD; the T4 where it is not set. NULL: no card has that key. */
const vc_card *vc_card_chosen(void);

uint64_t vc_card_largest_allocation(const vc_card *card);

/* What the driver says of the device: CL_DEVICE_EXTENSIONS. No cl_khr_fp16 and no sub-groups, as on the cards. */
const char *vc_card_extensions(void);

#endif
