/* The files of a profile. */
#ifndef CLEAT_SRC_TRACE_FILES_H
#define CLEAT_SRC_TRACE_FILES_H

#include "trace/recording.h"

enum { CLEAT_TRACER_FOLDER = 1280 };

/* Analyses the recording and writes FOLDER/profile-SNNNNNN.txt, .csv, .json and .trace.json.gz, each atomically; logs the
 * path and what the trace lacks. */
cleat_status cleat_profile_files_write(const cleat_recording *recording, const char *folder, cleat_error *error);

#endif
