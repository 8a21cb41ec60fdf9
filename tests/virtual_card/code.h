/* Compiled programs of any card: PTX for NVIDIA, amdgcn assembly for AMD. The driver accesses them only
 * through this interface. */
#ifndef VIRTUAL_CARD_CODE_H
#define VIRTUAL_CARD_CODE_H

#include "cards.h"
#include "ptx.h"

typedef struct vc_code vc_code;
typedef struct vc_code_kernel vc_code_kernel;

/* Reads the output of the card's compiler. Returns NULL, with the reason in message (of size bytes), if it is
 * for another card or not understood. The code owns its kernels and keeps no reference to the text. */
vc_code *vc_code_read(const vc_card *card, const char *text, char *message, size_t size);
void vc_code_free(vc_code *code);

size_t vc_code_kernels(const vc_code *code);
const vc_code_kernel *vc_code_kernel_at(const vc_code *code, size_t i);
const vc_code_kernel *vc_code_find(const vc_code *code, const char *name); /* NULL: none */

const char *vc_code_name(const vc_code_kernel *kernel);
size_t vc_code_params(const vc_code_kernel *kernel);
const ptx_param *vc_code_param_at(const vc_code_kernel *kernel, size_t i);
uint32_t vc_code_param_bytes(const vc_code_kernel *kernel);
uint32_t vc_code_local_bytes(const vc_code_kernel *kernel);   /* OpenCL's static local memory per work-group */
uint32_t vc_code_private_bytes(const vc_code_kernel *kernel); /* bytes in memory per work-item */
/* Returns false if the kernel requires no size. */
bool vc_code_required_group(const vc_code_kernel *kernel, uint32_t size[3]);

/* See ptx_run. */
bool vc_code_run(const vc_code_kernel *kernel, const ptx_launch *launch, ptx_counters *counters);

#endif
