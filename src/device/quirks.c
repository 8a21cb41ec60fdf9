/* What drivers do differently: one place, each with its reason and its effect. */
#include "device/probe.h"

uint32_t cleat_device_quirks(const cleat_device_facts *facts) {
    uint32_t quirks = 0;

    /* Asked for a binary, PoCL compiles every kernel of the program once more, for work-groups of any size
     * (pyopencl#731), and it has a cache of its own. Measured with PoCL 3.1: a start from its cache costs 26
     * ms a program, from a binary 2 ms; the binary costs 370 ms a kernel when it is saved, which doubles the
     * first start. Effect: cleat saves no binaries. */
    if (facts->vendor == CLEAT_VENDOR_POCL) quirks |= CLEAT_QUIRK_NO_BINARY_CACHE;

    /* Oclgrind's job is to look at the source that is there; and two clBuildProgram at once crash it inside its
     * LLVM (21.10). Effect: cleat saves no binaries, and builds on one thread. */
    if (facts->vendor == CLEAT_VENDOR_OCLGRIND) quirks |= CLEAT_QUIRK_NO_BINARY_CACHE | CLEAT_QUIRK_ONE_BUILD_THREAD;

    /* On a CPU buffers are the host's memory: Linux promises more than it has and then kills the process, so
     * that no OpenCL error ever comes. Effect: a buffer beyond the memory that was free when the device was
     * opened is refused, and buffers are not written all over at creation (0.4 to 5 s a GiB, which proves
     * nothing here). */
    if (facts->kind == CLEAT_DEVICE_CPU) quirks |= CLEAT_QUIRK_HOST_MEMORY;

    return quirks;
}
