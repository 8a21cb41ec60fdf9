/* Small PTX kernels in tests: their text, a launch, and its effects. */
#ifndef VIRTUAL_CARD_PTX_RIG_H
#define VIRTUAL_CARD_PTX_RIG_H

#include "ptx.h"

enum { RIG_ITEMS = 256, RIG_BYTES = 64 * RIG_ITEMS, RIG_FAULTS = 20 };

/* A launch. Defaults to one group of 32; change fields, then call rig_run. */
typedef struct rig {
    uint32_t items, groups; /* items per group (32), groups (1) */
    uint32_t dynamic_shared;
    int threads;              /* host threads (1) */
    uint32_t steps;           /* limit per warp (0: as ptx.h) */
    bool registers;           /* check for unwritten registers */
    bool input_only;          /* `in` is read-only */
    const char *declarations; /* text before the kernel ("") */
    /* buffers of the kernel, the only ranges of the launch */
    _Alignas(64) unsigned char in[RIG_BYTES], out[RIG_BYTES];
    /* results */
    ptx_counters counters;
    char faults[RIG_FAULTS][600];
    int n_faults;
    bool finished;
} rig;

void rig_init(rig *r);

/* Runs a kernel with this body. %r0 and %r1 hold the item's index in the group and in the launch, %d0 and %d1
 * the addresses of `in` and `out`; %p<10>, %h<40>, %r<40>, %f<40>, %d<40> and %x<40> (doubles) are declared. */
void rig_run(rig *r, const char *body);

/* The text of a module with such a kernel; `text` has `size` bytes. */
void rig_text(const char *declarations, const char *body, char *text, size_t size);

/* Fails the test unless the launch had exactly one fault, with this text in it, or none for NULL. */
void rig_expect_fault(const rig *r, const char *part);

/* Appends to the text in an array of `size` bytes. */
void rig_append(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* xorshift64*, for inputs; the state must not be 0. */
uint64_t rig_random(uint64_t *state);

#endif
