/* Reports of runs: one HTML file with plots, verdict and examples, and the metrics as CSV.
 *
 * A report is made from the run's folder alone, also while the run is in progress and after it was killed. The
 * file makes no network requests: scripts, styles and images are embedded; without scripts it shows the same
 * curves as drawings. No device is opened. Threads: calls for different files may run at once. */
#ifndef CLEAT_REPORT_H
#define CLEAT_REPORT_H

#include "cleat/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs on a page; the plots and examples are those of the first CLEAT_REPORT_DRAWN. */
enum { CLEAT_REPORT_RUNS = 64, CLEAT_REPORT_DRAWN = 8 };

typedef struct cleat_report_options {
    const char *out; /* HTML file; NULL: report.html in the first folder */
    const char *csv; /* CSV file; NULL: metrics.csv in each folder. With a name, only the first run is written */
    /* The folder is that of cleat_predict_request.drawings: index.html in it shows its predictions, NAME.svg one
     * forecast or structure. CLEAT_ERR_FORMAT: it has no examples.json of predictions. */
    bool drawings;
} cleat_report_options;

/* Writes the report of 1 to CLEAT_REPORT_RUNS run folders, several as a comparison, and their metrics as CSV.
 * options NULL: the defaults. Files are replaced atomically. CLEAT_ERR_NOT_FOUND: a folder contains no run. */
CLEAT_API cleat_status cleat_report_write(const char *const *folders, size_t count, const cleat_report_options *options,
                                          cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
