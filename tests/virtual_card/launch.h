/* A kernel launch with its arguments at the time of enqueueing. */
#ifndef VIRTUAL_CARD_LAUNCH_H
#define VIRTUAL_CARD_LAUNCH_H

#include "queue.h"

/* NULL is allowed. With vc_lock. */
void vc_launch_free(vc_launch *launch);

#endif
