/* What a launch of a kernel needs, as it was when it was enqueued. */
#ifndef VIRTUAL_CARD_LAUNCH_H
#define VIRTUAL_CARD_LAUNCH_H

#include "queue.h"

/* NULL is allowed. With vc_lock. */
void vc_launch_free(vc_launch *launch);

#endif
