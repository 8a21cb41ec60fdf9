/* What only Windows has. */
#include "platform/system.h"

void cleat_registered_drivers(void (*found)(void *user, const char *library), void *user) {
    (void)found, (void)user;
}
