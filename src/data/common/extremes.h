/* Outliers of a column or channel: a value far outside of all others, such as a marker for unknown values (-9999,
 * 1e20) that the reader does not recognise. */
#ifndef CLEAT_SRC_EXTREMES_H
#define CLEAT_SRC_EXTREMES_H

#include "cleat/core.h"

typedef struct cleat_extremes {
    double least, above; /* the two lowest distinct values; INFINITY: none yet */
    double most, below;  /* the two highest distinct values; -INFINITY: none yet */
    int64_t n_least, n_most;
} cleat_extremes;

cleat_extremes cleat_extremes_none(void);
void cleat_extremes_add(cleat_extremes *extremes, double value);
void cleat_extremes_merge(cleat_extremes *all, const cleat_extremes *more);
/* Logs a warning if the lowest or highest value is farther from its neighbour than ten times the range of all
 * others, or once that range if it is the only negative value and at most -9. `what` names the column,
 * `remedy` ends the sentence. */
void cleat_extremes_warn(const cleat_extremes *extremes, const char *path, const char *what, const char *remedy);

#endif
