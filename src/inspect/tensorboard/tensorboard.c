/* The messages of an event file. */
#include "tensorboard/tensorboard.h"

#include "core/clock.h"
#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"
#include "event.pb-c.h"
#include "platform/files.h"
#include "platform/threads.h"
#include "tensorboard/event_file.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

typedef Cleat__Board__Event event;
typedef Cleat__Board__Summary__Value value;

enum { TAG = 160 };

struct cleat_tensorboard {
    cleat_event_file file;
    pthread_mutex_t lock; /* of the file and `failed` */
    bool failed;
};

static cleat_status append(cleat_tensorboard *board, const event *what, cleat_error *error) {
    size_t size = cleat__board__event__get_packed_size(what);
    uint8_t *frame = cleat_alloc(CLEAT_FRAME + size, 1);
    if (!frame) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for a record", board->file.path);
    cleat__board__event__pack(what, frame + CLEAT_FRAME_HEAD);
    pthread_mutex_lock(&board->lock);
    cleat_status status = board->failed ? CLEAT_OK : cleat_event_file_append(&board->file, frame, size, error);
    if (status) board->failed = true;
    pthread_mutex_unlock(&board->lock);
    cleat_free(frame);
    return status;
}

static event event_at(double time, int64_t step) {
    event what = CLEAT__BOARD__EVENT__INIT;
    what.wall_time = time;
    what.step = step;
    return what;
}

static cleat_status append_values(cleat_tensorboard *board, double time, int64_t step, value **values, size_t count,
                                  cleat_error *error) {
    Cleat__Board__Summary summary = CLEAT__BOARD__SUMMARY__INIT;
    event what = event_at(time, step);
    summary.value = values;
    summary.n_value = count;
    what.what_case = CLEAT__BOARD__EVENT__WHAT_SUMMARY;
    what.summary = &summary;
    return append(board, &what, error);
}

cleat_status cleat_tensorboard_create(const char *folder, cleat_tensorboard **board, cleat_error *error) {
    char version[] = "brain.Event:2"; /* from this version on, readers honour the start of a session */
    event first = event_at(cleat_wall_seconds(), 0);
    cleat_tensorboard *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for an event file", folder);
    made->file.file = -1;
    pthread_mutex_init(&made->lock, NULL);
    first.what_case = CLEAT__BOARD__EVENT__WHAT_FILE_VERSION;
    first.file_version = version;
    cleat_status status = cleat_event_file_create(folder, &made->file, error);
    if (!status) status = append(made, &first, error);
    if (!status) {
        *board = made;
        return CLEAT_OK;
    }
    if (made->file.file >= 0) unlink(made->file.path); /* readers would stay with a file that has no version */
    cleat_tensorboard_close(made);
    return status;
}

void cleat_tensorboard_close(cleat_tensorboard *board) {
    if (!board) return;
    cleat_event_file_close(&board->file);
    pthread_mutex_destroy(&board->lock);
    cleat_free(board);
}

const char *cleat_tensorboard_path(const cleat_tensorboard *board) {
    return board->file.path;
}

bool cleat_tensorboard_exists(const char *folder) {
    cleat_name_list listing = {0};
    bool found = cleat_listing_read(folder, cleat_event_file_name, &listing, NULL) == CLEAT_OK && listing.count > 0;
    cleat_name_list_free(&listing);
    return found;
}

cleat_status cleat_tensorboard_start(cleat_tensorboard *board, double time, int64_t step, cleat_error *error) {
    Cleat__Board__SessionLog start = CLEAT__BOARD__SESSION_LOG__INIT;
    event what = event_at(time, step);
    start.status = CLEAT__BOARD__SESSION_LOG__STATUS__START;
    what.what_case = CLEAT__BOARD__EVENT__WHAT_SESSION_LOG;
    what.session_log = &start;
    return append(board, &what, error);
}

typedef struct tagged {
    value value;
    char tag[TAG];
} tagged;

cleat_status cleat_tensorboard_scalars(cleat_tensorboard *board, double time, int64_t step, const char *group,
                                       const cleat_scalar *scalars, size_t count, cleat_error *error) {
    if (count == 0) return CLEAT_OK;
    tagged *items = cleat_alloc(count, sizeof *items);
    value **values = cleat_alloc(count, sizeof(value *));
    cleat_status status = CLEAT_OK;
    if (!items || !values) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu scalars", count);
    for (size_t i = 0; i < count && !status; ++i) {
        snprintf(items[i].tag, TAG, "%s/%s", group, scalars[i].name);
        items[i].value = (value)CLEAT__BOARD__SUMMARY__VALUE__INIT;
        items[i].value.tag = items[i].tag;
        items[i].value.value_case = CLEAT__BOARD__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
        items[i].value.simple_value = (float)scalars[i].value;
        values[i] = &items[i].value;
    }
    if (!status) status = append_values(board, time, step, values, count, error);
    cleat_free(values);
    cleat_free(items);
    return status;
}

cleat_status cleat_tensorboard_text(cleat_tensorboard *board, double time, int64_t step, const char *tag,
                                    const char *text, cleat_error *error) {
    char name[TAG], plugin[] = "text";
    Cleat__Board__Metadata__PluginData data = CLEAT__BOARD__METADATA__PLUGIN_DATA__INIT;
    Cleat__Board__Metadata metadata = CLEAT__BOARD__METADATA__INIT;
    Cleat__Board__Tensor__Shape scalar = CLEAT__BOARD__TENSOR__SHAPE__INIT;
    Cleat__Board__Tensor tensor = CLEAT__BOARD__TENSOR__INIT;
    ProtobufCBinaryData bytes = {.len = strlen(text), .data = (uint8_t *)text};
    value one = CLEAT__BOARD__SUMMARY__VALUE__INIT, *values[] = {&one};
    snprintf(name, sizeof name, "%s", tag);
    data.plugin_name = plugin;
    metadata.plugin_data = &data;
    tensor.dtype = CLEAT__BOARD__TENSOR__TYPE__STRING;
    tensor.shape = &scalar;
    tensor.n_string_val = 1;
    tensor.string_val = &bytes;
    one.tag = name;
    one.metadata = &metadata;
    one.value_case = CLEAT__BOARD__SUMMARY__VALUE__VALUE_TENSOR;
    one.tensor = &tensor;
    return append_values(board, time, step, values, 1, error);
}

cleat_status cleat_tensorboard_verbatim(cleat_tensorboard *board, double time, int64_t step, const char *tag,
                                        const char *text, cleat_error *error) {
    cleat_string block = {0};
    for (const char *at = text; *at;) { /* Markdown: lines with four blanks before them are code */
        size_t length = strcspn(at, "\n");
        cleat_string_add(&block, "    %.*s\n", (int)length, at);
        at += length + (at[length] == '\n');
    }
    cleat_status status =
        block.failed ? cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for a text", board->file.path) : CLEAT_OK;
    if (!status) status = cleat_tensorboard_text(board, time, step, tag, block.data ? block.data : "", error);
    cleat_string_free(&block);
    return status;
}
