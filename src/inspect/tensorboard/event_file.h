/* A file of framed records: TFRecord, the container of TensorBoard's event files. */
#ifndef CLEAT_SRC_TENSORBOARD_EVENT_FILE_H
#define CLEAT_SRC_TENSORBOARD_EVENT_FILE_H

#include "cleat/core.h"
#include "platform/processes.h"

enum { CLEAT_EVENT_PATH = 1400 };

typedef struct cleat_event_file {
    char path[CLEAT_EVENT_PATH];
    int file;
    off_t size; /* bytes of the complete records */
} cleat_event_file;

/* Bytes that a frame needs before the message, and both parts of it together. */
enum { CLEAT_FRAME_HEAD = 12, CLEAT_FRAME = 16 };

/* Creates FOLDER/events.out.tfevents.SECONDS.HOST.PID. SECONDS is the time, or larger, so that the name sorts
 * behind those of all event files there. */
cleat_status cleat_event_file_create(const char *folder, cleat_event_file *file, cleat_error *error);
void cleat_event_file_close(cleat_event_file *file);
/* Appends a record by one write. `frame` [CLEAT_FRAME + size] has the message at CLEAT_FRAME_HEAD; the rest of
 * it is filled here. */
cleat_status cleat_event_file_append(cleat_event_file *file, uint8_t *frame, size_t size, cleat_error *error);
/* Whether a file of this name is an event file. */
bool cleat_event_file_name(const char *name);

#endif
