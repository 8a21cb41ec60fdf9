/* Includes all data headers: datasets, batches, the loader, and files of RNA, series, images, maps and texts. */
#ifndef CLEAT_DATA_H
#define CLEAT_DATA_H

#include "cleat/causal_texts.h"
#include "cleat/dataset.h"
#include "cleat/images.h"
#include "cleat/loader.h"
#include "cleat/maps.h"
#include "cleat/rna.h"
#include "cleat/series.h"
#include "cleat/texts.h"

#endif
