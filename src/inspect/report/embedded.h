/* Files that the page is made of: its style and script, and the plot library dygraphs. */
#ifndef CLEAT_SRC_REPORT_EMBEDDED_H
#define CLEAT_SRC_REPORT_EMBEDDED_H

#include "core/embedded.h"

/* report.css, report.js, head.html, dygraphs_license.html. */
extern const cleat_embedded_file cleat_embedded_page[];
/* dygraph.min.js, dygraph.min.css (MIT); empty in a build without dygraphs. */
extern const cleat_embedded_file cleat_embedded_dygraphs[];

#endif
