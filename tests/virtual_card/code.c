/* Compiled programs: dispatches each call to the interpreter of the card's instructions. */
#include "code.h"

#include "amdgcn/gcn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exactly one of the two is NULL. */
struct vc_code_kernel {
    const ptx_kernel *ptx;
    const gcn_kernel *gcn;
};

struct vc_code {
    ptx_module *ptx;
    gcn_module *gcn;
    vc_code_kernel *kernels;
    size_t n_kernels;
};

/* Text that identifies a program for the card. */
static void target_of(const vc_card *card, char *target, size_t size) {
    if (card->maker->amd)
        snprintf(target, size, ".amdgcn_target \"amdgcn-amd-amdhsa--%s", card->processor);
    else
        snprintf(target, size, ".target sm_%u%u", card->major, card->minor);
}

vc_code *vc_code_read(const vc_card *card, const char *text, char *message, size_t size) {
    char target[80];
    target_of(card, target, sizeof target);
    snprintf(message, size, "the code is not for this card (%s)", target);
    if (!strstr(text, target)) return NULL;
    vc_code *code = calloc(1, sizeof *code);
    if (!code) return NULL;
    if (card->maker->amd)
        code->gcn = gcn_read(text, message, size);
    else
        code->ptx = ptx_read(text, message, size);
    if (code->gcn || code->ptx) {
        code->n_kernels = code->gcn ? gcn_kernels(code->gcn) : ptx_kernels(code->ptx);
        code->kernels = calloc(code->n_kernels + 1, sizeof *code->kernels);
    }
    if (!code->kernels) {
        vc_code_free(code);
        return NULL;
    }
    for (size_t i = 0; i < code->n_kernels; ++i) {
        if (code->gcn) code->kernels[i].gcn = gcn_kernel_at(code->gcn, i);
        if (code->ptx) code->kernels[i].ptx = ptx_kernel_at(code->ptx, i);
    }
    return code;
}

void vc_code_free(vc_code *code) {
    if (!code) return;
    ptx_free(code->ptx);
    gcn_free(code->gcn);
    free(code->kernels);
    free(code);
}

size_t vc_code_kernels(const vc_code *code) {
    return code->n_kernels;
}

const vc_code_kernel *vc_code_kernel_at(const vc_code *code, size_t i) {
    return &code->kernels[i];
}

const vc_code_kernel *vc_code_find(const vc_code *code, const char *name) {
    for (size_t i = 0; i < code->n_kernels; ++i)
        if (strcmp(vc_code_name(&code->kernels[i]), name) == 0) return &code->kernels[i];
    return NULL;
}

const char *vc_code_name(const vc_code_kernel *kernel) {
    return kernel->gcn ? gcn_name(kernel->gcn) : ptx_name(kernel->ptx);
}

size_t vc_code_params(const vc_code_kernel *kernel) {
    return kernel->gcn ? gcn_params(kernel->gcn) : ptx_params(kernel->ptx);
}

const ptx_param *vc_code_param_at(const vc_code_kernel *kernel, size_t i) {
    return kernel->gcn ? gcn_param_at(kernel->gcn, i) : ptx_param_at(kernel->ptx, i);
}

uint32_t vc_code_param_bytes(const vc_code_kernel *kernel) {
    return kernel->gcn ? gcn_param_bytes(kernel->gcn) : ptx_param_bytes(kernel->ptx);
}

uint32_t vc_code_local_bytes(const vc_code_kernel *kernel) {
    return kernel->gcn ? gcn_lds_bytes(kernel->gcn) : ptx_shared_bytes(kernel->ptx);
}

uint32_t vc_code_private_bytes(const vc_code_kernel *kernel) {
    return kernel->gcn ? gcn_scratch_bytes(kernel->gcn) : ptx_local_bytes(kernel->ptx);
}

bool vc_code_required_group(const vc_code_kernel *kernel, uint32_t size[3]) {
    return kernel->gcn ? gcn_required_group(kernel->gcn, size) : ptx_required_group(kernel->ptx, size);
}

bool vc_code_run(const vc_code_kernel *kernel, const ptx_launch *launch, ptx_counters *counters) {
    return kernel->gcn ? gcn_run(kernel->gcn, launch, counters) : ptx_run(kernel->ptx, launch, counters);
}
