/* Internal header of the loader: its limits, and the headers that it needs. */
#ifndef CLEAT_SRC_LOADER_H
#define CLEAT_SRC_LOADER_H

#include "cleat/loader.h"
#include "data/dataset.h"
#include "data/pin.h"

enum { CLEAT_MAX_FIELDS = 32, CLEAT_MAX_WORKERS = 256 };

#endif
