/* Data: datasets behind one interface, batches of equal padded length, the loader's threads, and the files of
 * RNA, series, images, maps and texts. All headers of data. */
#ifndef CLEAT_DATA_H
#define CLEAT_DATA_H

#include "cleat/dataset.h"
#include "cleat/images.h"
#include "cleat/loader.h"
#include "cleat/maps.h"
#include "cleat/rna.h"
#include "cleat/series.h"
#include "cleat/texts.h"

#endif
