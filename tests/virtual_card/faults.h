/* Faults: program errors that cause wrong results, a hang or a crash on a card. Each text is stored once. */
#ifndef VIRTUAL_CARD_FAULTS_H
#define VIRTUAL_CARD_FAULTS_H

/* Exit code of a process with faults under CLEAT_VIRTUAL_CARD_STRICT. */
enum { VC_EXIT_OF_FAULTS = 86 };

/* Prints the fault to stderr when it first occurs. May be called by any thread, with or without vc_lock. With
 * CLEAT_VIRTUAL_CARD_STRICT=first it ends the process. */
void vc_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Number of distinct faults so far. */
unsigned vc_faults(void);

/* The text of the latest fault, or empty. Tests obtain both functions through
 * clGetExtensionFunctionAddressForPlatform. */
const char *vc_last_fault(void);

#endif
