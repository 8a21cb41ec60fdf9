/* Small kernels of PTX in tests: their text, a launch, and what it did. */
#ifndef VIRTUAL_CARD_PTX_RIG_H
#define VIRTUAL_CARD_PTX_RIG_H

#include "ptx.h"

enum { RIG_ITEMS = 256, RIG_BYTES = 64 * RIG_ITEMS, RIG_FAULTS = 20 };

/* A launch: set what differs from one group of 32, then rig_run. */
typedef struct rig {
    uint32_t items, groups; /* of a group; groups (32, 1) */
    uint32_t dynamic_shared;
    int threads;              /* of the host (1) */
    uint32_t steps;           /* at most of a warp (0: as ptx.h) */
    bool registers;           /* look for registers that nothing wrote */
    bool input_only;          /* `in` may not be written */
    const char *declarations; /* before the kernel ("") */
    /* buffers of the kernel; nothing else is in the ranges of the launch */
    _Alignas(64) unsigned char in[RIG_BYTES], out[RIG_BYTES];
    /* what happened */
    ptx_counters counters;
    char faults[RIG_FAULTS][600];
    int n_faults;
    bool finished;
} rig;

void rig_init(rig *r);

/* Runs a kernel with this body. It finds its item's index in %r0 (of the group) and %r1 (of the launch), the
 * addresses of `in` and `out` in %d0 and %d1; %p<10>, %h<40>, %r<40>, %f<40>, %d<40> and %x<40> (doubles) are
 * declared. */
void rig_run(rig *r, const char *body);

/* The text of a module with such a kernel; `text` has `size` bytes. */
void rig_text(const char *declarations, const char *body, char *text, size_t size);

/* Fails the test unless the launch had exactly this fault (a part of its text), or none (NULL). */
void rig_expect_fault(const rig *r, const char *part);

/* Appends to a text in an array of `size` bytes. */
void rig_append(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* xorshift64*, for inputs; the state must not be 0. */
uint64_t rig_random(uint64_t *state);

#endif
