/* The journal of a run: JSON lines, appended with one write each. */
#include "monitor/journal.h"

#include "core/files.h"
#include "core/json.h"
#include "core/memory.h"
#include "platform/files.h"
#include "platform/text.h"
#include "platform/threads.h"

#include <errno.h>
#include <string.h>

struct cleat_journal {
    char *path;
    int file;
    bool is_broken; /* a record could not be written */
    pthread_mutex_t mutex;
    void (*recorded)(void *user, const char *line);
    void *user;
};

/* Bytes of the file up to and with its last newline; -1: it cannot be read. */
static off_t complete_bytes(int file, off_t size) {
    char block[4096];
    while (size > 0) {
        const off_t start = size > (off_t)sizeof block ? size - (off_t)sizeof block : 0;
        const ssize_t got = pread(file, block, (size_t)(size - start), start);
        if (got != size - start) return -1;
        const char *last = memrchr(block, '\n', (size_t)got);
        if (last) return start + (last - block) + 1;
        size = start;
    }
    return 0;
}

static cleat_status open_file(cleat_journal *journal, cleat_error *error) {
    cleat_status status =
        cleat_file_open_inside(journal->path, O_RDWR | O_CREAT | O_APPEND, 0644, &journal->file, error);
    if (status) return status;
    const off_t size = lseek(journal->file, 0, SEEK_END);
    const off_t complete = size < 0 ? -1 : complete_bytes(journal->file, size);
    if (complete < 0 || (complete < size && ftruncate(journal->file, complete) != 0))
        return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot remove the incomplete last line: %s", journal->path,
                          strerror(errno));
    return CLEAT_OK;
}

cleat_status cleat_journal_open(const char *path, cleat_journal **journal, cleat_error *error) {
    cleat_journal *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", path);
    pthread_mutex_init(&made->mutex, NULL);
    made->file = -1;
    made->path = cleat_strdup(path);
    cleat_status status =
        made->path ? open_file(made, error) : cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", path);
    if (status) {
        cleat_journal_close(made);
        return status;
    }
    *journal = made;
    return CLEAT_OK;
}

void cleat_journal_close(cleat_journal *journal) {
    if (!journal) return;
    if (journal->file >= 0) close(journal->file);
    pthread_mutex_destroy(&journal->mutex);
    cleat_free(journal->path);
    cleat_free(journal);
}

/* A partial line is removed, so that the file ends with a complete one. */
static bool append(int file, const cleat_string *record) {
    ssize_t put;
    do put = write(file, record->data, record->size);
    while (put < 0 && errno == EINTR);
    if (put == (ssize_t)record->size) return true;
    if (put > 0) {
        const off_t size = lseek(file, 0, SEEK_END);
        errno = size < put || ftruncate(file, size - put) != 0 ? EIO : ENOSPC;
    }
    return false;
}

void cleat_journal_write(cleat_journal *journal, cleat_string *record) {
    cleat_string_add(record, "\n");
    pthread_mutex_lock(&journal->mutex);
    if (!journal->is_broken && (record->failed || !append(journal->file, record))) {
        journal->is_broken = true;
        cleat_log(CLEAT_LOG_WARNING, "%s: cannot append a record: %s; no further records are written", journal->path,
                  record->failed ? "out of memory" : strerror(errno));
    }
    if (!journal->is_broken && journal->recorded) journal->recorded(journal->user, record->data);
    pthread_mutex_unlock(&journal->mutex);
    cleat_string_free(record);
}

void cleat_journal_observe(cleat_journal *journal, void (*recorded)(void *user, const char *line), void *user) {
    pthread_mutex_lock(&journal->mutex);
    journal->recorded = recorded;
    journal->user = user;
    pthread_mutex_unlock(&journal->mutex);
}
