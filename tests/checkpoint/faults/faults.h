/* Calls of the file system that count down to a fault; the linker puts them where the line `ctest:` of
 * test_checkpoint.c says `wrap`. */
#ifndef CLEAT_TESTS_CHECKPOINT_FAULTS_H
#define CLEAT_TESTS_CHECKPOINT_FAULTS_H

#include <stdbool.h>

extern long calls_until_fault; /* 0: none */
extern bool fault_kills;

#endif
