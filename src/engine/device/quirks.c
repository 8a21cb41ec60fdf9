/* Driver quirks: the only place that sets them, each with its reason and its effect. */
#include "device/probe.h"

uint32_t cleat_device_quirks(const cleat_device_facts *facts) {
    uint32_t quirks = 0;

    /* When asked for a binary, PoCL compiles every kernel of the program again, for work-groups of any size
     * (pyopencl#731), and it has its own cache. Measured with PoCL 3.1: a start from PoCL's cache costs 26 ms
     * per program, a start from a binary 2 ms; saving the binary costs 370 ms per kernel, which doubles the
     * time of the first start. Effect: cleat saves no binaries. */
    if (facts->vendor == CLEAT_VENDOR_POCL) quirks |= CLEAT_QUIRK_NO_BINARY_CACHE;

    /* Oclgrind exists to inspect the current source; and two concurrent calls of clBuildProgram crash it
     * inside its LLVM (21.10). Effect: cleat saves no binaries, and builds on one thread. */
    if (facts->vendor == CLEAT_VENDOR_OCLGRIND) quirks |= CLEAT_QUIRK_NO_BINARY_CACHE | CLEAT_QUIRK_ONE_BUILD_THREAD;

    /* On a CPU, buffers are host memory. Linux overcommits it and later kills the process, so that an OpenCL
     * error is never returned. Effect: a buffer that exceeds the memory that was free when the device was
     * opened is refused, and buffers are not completely written at creation (0.4 to 5 s per GiB, which would
     * prove nothing here). */
    if (facts->kind == CLEAT_DEVICE_CPU) quirks |= CLEAT_QUIRK_HOST_MEMORY;

    return quirks;
}
