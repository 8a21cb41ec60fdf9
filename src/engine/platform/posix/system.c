/* What only Windows has. */
#include "platform/system.h"

void cleat_registered_drivers(void (*found)(void *user, const char *library), void *user) {
    (void)found, (void)user;
}

const char *cleat_system_source(const char *file) {
    return file;
}

size_t cleat_display_adapters(cleat_display_adapter *adapters, size_t most) {
    (void)adapters, (void)most;
    return 0;
}
