/* Records of passed checks of a device, in the cache folder. */
#ifndef CLEAT_SRC_PASSED_H
#define CLEAT_SRC_PASSED_H

#include "cleat/device.h"

enum { CLEAT_PASSED_PATH = 1024 + 64 };

/* Path of the record of a check on this device with its driver, with these kernels and tuned parameters of CLBlast:
 * `format` is counted up when the check changes, `what` names the check. CLEAT_ERR_IO: there is no cache folder. */
cleat_status cleat_passed_path(const cleat_device *device, int format, const char *what, char path[CLEAT_PASSED_PATH],
                               cleat_error *error);
/* Whether the file records a pass: one that is empty or truncated does not. */
bool cleat_has_passed(const char *path);
/* Records a pass with a line about it. If no folder is available, the next run repeats the check. */
void cleat_save_passed(const char *path, const char *summary);

#endif
