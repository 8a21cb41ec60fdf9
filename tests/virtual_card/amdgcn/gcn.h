/* Modules of AMD's assembly (amdgcn) and launches of their kernels on the virtual card. The counterpart of
 * ptx.h, whose plain data it shares; independent of OpenCL. */
#ifndef VIRTUAL_CARD_GCN_H
#define VIRTUAL_CARD_GCN_H

#include "ptx.h"

typedef struct gcn_module gcn_module;
typedef struct gcn_kernel gcn_kernel;

/* Reads the output of clang -S for gfx90a or gfx11. Returns NULL on failure; message (of size bytes) then
 * names the line and the text that was not understood. The module owns its kernels and keeps no reference to
 * the text. */
gcn_module *gcn_read(const char *text, char *message, size_t size);
void gcn_free(gcn_module *module);

size_t gcn_kernels(const gcn_module *module);
const gcn_kernel *gcn_kernel_at(const gcn_module *module, size_t i);

const char *gcn_name(const gcn_kernel *kernel);
size_t gcn_params(const gcn_kernel *kernel);
const ptx_param *gcn_param_at(const gcn_kernel *kernel, size_t i);
uint32_t gcn_param_bytes(const gcn_kernel *kernel); /* without hidden arguments */
uint32_t gcn_lds_bytes(const gcn_kernel *kernel);
uint32_t gcn_scratch_bytes(const gcn_kernel *kernel);                /* per work-item */
bool gcn_required_group(const gcn_kernel *kernel, uint32_t size[3]); /* false: none */
uint32_t gcn_largest_group(const gcn_kernel *kernel);                /* work-items it was compiled for */

/* Like ptx_run. An instruction of a wave counts once; memory is counted in NVIDIA's sectors and wavefronts,
 * per half of a 64-lane wave. */
bool gcn_run(const gcn_kernel *kernel, const ptx_launch *launch, ptx_counters *counters);

#endif
