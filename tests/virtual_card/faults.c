/* Counts faults and prints each when it first occurs. */
#include "faults.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT = 400, MAX_TEXTS = 200 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char texts[MAX_TEXTS][TEXT];
static unsigned count;

static int is_known(const char *text) {
    for (unsigned i = 0; i < count && i < MAX_TEXTS; ++i)
        if (strcmp(texts[i], text) == 0) return 1;
    return 0;
}

/* Ends the process at once: its other threads may be waiting for work that would be discarded. */
static void end_if_asked(void) {
    const char *strict = getenv("CLEAT_VIRTUAL_CARD_STRICT");
    if (!strict || strcmp(strict, "first") != 0) return;
    fflush(NULL);
    _exit(VC_EXIT_OF_FAULTS);
}

void vc_fault(const char *format, ...) {
    char text[TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&lock);
    if (!is_known(text)) {
        if (count < MAX_TEXTS) memcpy(texts[count], text, sizeof text);
        ++count;
        fprintf(stderr, "virtual card: fault: %s\n", text);
        end_if_asked();
    }
    pthread_mutex_unlock(&lock);
}

unsigned vc_faults(void) {
    pthread_mutex_lock(&lock);
    unsigned found = count;
    pthread_mutex_unlock(&lock);
    return found;
}

const char *vc_last_fault(void) {
    unsigned found = vc_faults();
    return found == 0 ? "" : texts[found <= MAX_TEXTS ? found - 1 : MAX_TEXTS - 1];
}
