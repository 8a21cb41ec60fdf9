/* For tests that also run on a device made of software, whose speed says nothing and takes minutes to
 * measure: an answer without a measurement. The linker replaces cleat_rates_measure by it
 * (--wrap). */
#include "session/rates.h"

CLEAT_API cleat_status __wrap_cleat_rates_measure(cleat_device *device, cleat_rates *rates, cleat_error *error);
CLEAT_API cleat_status __wrap_cleat_rates_measure(cleat_device *device, cleat_rates *rates, cleat_error *error) {
    (void)device;
    (void)error;
    *rates = (cleat_rates){.flops = 1e12, .bytes = 1e11, .launch_seconds = 1e-5, .source = "of a test"};
    return CLEAT_OK;
}
