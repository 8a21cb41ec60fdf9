/* Assigns memory to registers. */
#include "flow.h"

#include <stdlib.h>

/* Replaces a register's number with the offset of its bytes. */
static void relocate(ptx_kernel *kernel, const uint32_t *offsets) {
    for (size_t i = 0; i < kernel->n_operands; ++i)
        if (kernel->operands[i].base == PTX_REGISTERS) kernel->operands[i].offset = offsets[kernel->operands[i].offset];
    for (size_t i = 0; i < kernel->n_code; ++i)
        if (kernel->code[i].predicate != PTX_NOWHERE) kernel->code[i].predicate = offsets[kernel->code[i].predicate];
}

void ptx_place_registers(ptx_kernel *kernel) {
    uint32_t *offsets = calloc(kernel->n_registers + 1, sizeof *offsets);
    if (!offsets) abort();
    uint32_t top = 0;
    for (int width = 8; width >= 0; --width)
        for (size_t r = 0; r < kernel->n_registers; ++r)
            if (kernel->register_widths[r] == width) {
                offsets[r] = top;
                top += width ? PTX_LANES * (uint32_t)width : 4;
            }
    kernel->register_bytes = (top + 63) & ~63u;
    relocate(kernel, offsets);
    free(offsets);
}
