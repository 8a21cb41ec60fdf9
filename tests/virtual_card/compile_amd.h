/* clang's command line for AMD's cards. */
#ifndef VIRTUAL_CARD_COMPILE_AMD_H
#define VIRTUAL_CARD_COMPILE_AMD_H

#include "cards.h"
#include "options.h"

/* Adds the arguments between the compiler's name and the files. rocm: folder of the device libraries;
 * options: build options of the program. */
void vc_add_amd_words(vc_words *command, const vc_card *card, const char *rocm, const vc_words *options);

#endif
