/* Faults: what a program did that a card would answer with wrong results, a hang or a crash. Each text is kept once. */
#ifndef VIRTUAL_CARD_FAULTS_H
#define VIRTUAL_CARD_FAULTS_H

/* Of a process that had faults, with CLEAT_VIRTUAL_CARD_STRICT. */
enum { VC_EXIT_OF_FAULTS = 86 };

/* Prints the fault to stderr the first time. May be called by any thread, with or without vc_lock. Does not
 * return with CLEAT_VIRTUAL_CARD_STRICT=first: the process ends. */
void vc_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Different faults so far. */
unsigned vc_faults(void);

/* The text of the latest one; empty: none. Tests get both functions from clGetExtensionFunctionAddressForPlatform. */
const char *vc_last_fault(void);

#endif
