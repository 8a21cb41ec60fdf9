/* A PoCL whose LLVM does not know the processor: LLVM then names it "generic", which clang does not accept, and no
 * kernel compiles (PoCL 1.6 of Debian 11 with LLVM 9, 1.8 of Ubuntu 22.04 with LLVM 11; pocl#1049). */
#include "device/device.h"
#include "platform/text.h"

#include <stdio.h>
#include <string.h>

/* Copies what follows `word`, up to a blank or comma: "OpenCL 2.0 pocl 1.8  Linux, None+Asserts, LLVM 11.1.0,
 * SLEEF". */
static void copy_version(const char *text, const char *word, char *version, size_t size) {
    const char *at = strcasestr(text, word);
    if (!at) return;
    at += strlen(word);
    snprintf(version, size, "%.*s", (int)strcspn(at, " ,"), at);
}

bool cleat_processor_is_unknown(const cleat_device_facts *facts, const char *log) {
    return facts->vendor == CLEAT_VENDOR_POCL && strstr(log, "unknown target CPU");
}

void cleat_explain_processor(cl_platform_id platform, const cleat_device_facts *facts, char *text, size_t size) {
    char version[256] = "", pocl[32] = "", llvm[32] = "";
    clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof version - 1, version, NULL);
    copy_version(version, "pocl ", pocl, sizeof pocl);
    copy_version(version, "LLVM ", llvm, sizeof llvm);
    snprintf(text, size,
             "PoCL%s%s is built with LLVM%s%s, which does not support this processor (%s), and compiles "
             "nothing for it",
             pocl[0] ? " " : "", pocl, llvm[0] ? " " : "", llvm, facts->name);
}
