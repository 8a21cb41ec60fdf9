/* clang's command line for AMD's cards, the same as AMD's driver uses. */
#include "compile_amd.h"

#include <stdio.h>
#include <string.h>

enum { PATH = 512 };

static bool has(const vc_words *options, const char *word) {
    for (size_t i = 0; i < options->count; ++i)
        if (strcmp(options->words[i], word) == 0) return true;
    return false;
}

static void add_library(vc_words *command, const char *rocm, const char *name, const char *variant) {
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s%s.bc", rocm, name, variant);
    vc_words_add(command, "-Xclang", "-mlink-builtin-bitcode", "-Xclang", path, NULL);
}

/* The libraries' constants are small libraries as well, except the processor number: Debian's package
 * predates gfx11. */
static void add_libraries(vc_words *command, const vc_card *card, const char *rocm, const vc_words *options) {
    const bool relaxed = has(options, "-cl-fast-relaxed-math");
    const bool unsafe = relaxed || has(options, "-cl-unsafe-math-optimizations");
    const bool finite = relaxed || has(options, "-cl-finite-math-only");
    const bool no_denormals = has(options, "-cl-denorms-are-zero");
    const bool exact_root = has(options, "-cl-fp32-correctly-rounded-divide-sqrt");
    add_library(command, rocm, "opencl", "");
    add_library(command, rocm, "ocml", "");
    add_library(command, rocm, "ockl", "");
    add_library(command, rocm, "oclc_daz_opt_", no_denormals ? "on" : "off");
    add_library(command, rocm, "oclc_unsafe_math_", unsafe ? "on" : "off");
    add_library(command, rocm, "oclc_finite_only_", finite ? "on" : "off");
    add_library(command, rocm, "oclc_correctly_rounded_sqrt_", exact_root ? "on" : "off");
    add_library(command, rocm, "oclc_wavefrontsize64_", card->wave == 64 ? "on" : "off");
    add_library(command, rocm, "oclc_abi_version_", "500");
}

void vc_add_amd_words(vc_words *command, const vc_card *card, const char *rocm, const vc_words *options) {
    char processor[64], isa[64];
    snprintf(processor, sizeof processor, "-mcpu=%s", card->processor);
    snprintf(isa, sizeof isa, "-DVC_ISA=%u", card->isa);
    vc_words_add(command, "-x", "cl", "-Xclang", "-finclude-default-header", "-target", "amdgcn-amd-amdhsa", processor,
                 "-nogpulib", "-mcode-object-version=5", "-O3", "-Wno-linker-warnings", "-D__AMD__=1", isa, "-include",
                 VC_AMD_ISA, NULL);
    for (size_t i = 0; i < options->count; ++i) vc_words_add(command, options->words[i], NULL);
    add_libraries(command, card, rocm, options);
}
