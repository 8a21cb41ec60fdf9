/* Compiled programs of any card: PTX of NVIDIA's, amdgcn assembly of AMD's. The driver knows no more of them
 * than this. */
#ifndef VIRTUAL_CARD_CODE_H
#define VIRTUAL_CARD_CODE_H

#include "cards.h"
#include "ptx.h"

typedef struct vc_code vc_code;
typedef struct vc_code_kernel vc_code_kernel;

/* Reads what the card's compiler wrote. NULL: it is for another card, or message (of size bytes) says what was not
 * understood. The code owns its kernels; the text may go. */
vc_code *vc_code_read(const vc_card *card, const char *text, char *message, size_t size);
void vc_code_free(vc_code *code);

size_t vc_code_kernels(const vc_code *code);
const vc_code_kernel *vc_code_kernel_at(const vc_code *code, size_t i);
const vc_code_kernel *vc_code_find(const vc_code *code, const char *name); /* NULL: none */

const char *vc_code_name(const vc_code_kernel *kernel);
size_t vc_code_params(const vc_code_kernel *kernel);
const ptx_param *vc_code_param_at(const vc_code_kernel *kernel, size_t i);
uint32_t vc_code_param_bytes(const vc_code_kernel *kernel);
uint32_t vc_code_local_bytes(const vc_code_kernel *kernel);   /* OpenCL's local memory, static, of a work-group */
uint32_t vc_code_private_bytes(const vc_code_kernel *kernel); /* in memory, of a work-item */
/* False: the kernel requires no size. */
bool vc_code_required_group(const vc_code_kernel *kernel, uint32_t size[3]);

/* As ptx_run. */
bool vc_code_run(const vc_code_kernel *kernel, const ptx_launch *launch, ptx_counters *counters);

#endif
