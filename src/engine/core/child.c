/* Child processes: fork, pipe and wait. */
#include "core/child.h"

#include "core/clock.h"
#include "core/memory.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "platform/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void cleat_child_send(int out, const void *record, size_t bytes) {
    const char *at = record;
    while (bytes > 0) {
        ssize_t written = write(out, at, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return; /* the reader has closed the pipe */
        at += written;
        bytes -= (size_t)written;
    }
}

/* --- in the caller -------------------------------------------------------------------------------------------- */

/* Splits the received bytes into records. */
typedef struct collector {
    const cleat_child *child;
    char *bytes; /* [record_bytes], of which `used` are filled */
    size_t record_bytes, used, records;
} collector;

static void collect_bytes(collector *collected, const char *bytes, size_t count, void *record) {
    for (size_t i = 0; i < count; ++i) {
        collected->bytes[collected->used++] = bytes[i];
        if (collected->used < collected->record_bytes) continue;
        memcpy(record, collected->bytes, collected->record_bytes);
        collected->used = 0;
        ++collected->records;
        if (collected->child->received) collected->child->received(collected->child->user, record);
    }
}

/* Reads until the child closes its end of the pipe; false if the timeout expires first. */
static bool read_until(int in, double deadline, collector *collected, void *record) {
    char buffer[1024];
    for (;;) {
        double left = deadline - cleat_seconds();
        if (!(left > 0)) return false;
        struct pollfd waiting = {.fd = in, .events = POLLIN};
        int ready = poll(&waiting, 1, left < 1e6 ? (int)(left * 1e3) + 1 : INT_MAX);
        if (ready < 0 && errno != EINTR) return true;
        if (ready <= 0) continue;
        ssize_t count = read(in, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return true;
        collect_bytes(collected, buffer, (size_t)count, record);
    }
}

static pid_t wait_retrying(pid_t pid, int *code, int flags) {
    pid_t found;
    do found = waitpid(pid, code, flags);
    while (found < 0 && errno == EINTR);
    return found;
}

/* Waits for the end of a child that has closed its pipe; false if the timeout expires first. A child already
 * reaped elsewhere (SIGCHLD ignored) has ended too: its code stays 0. */
static bool wait_until(pid_t pid, double deadline, int *code) {
    const struct timespec moment = {.tv_nsec = 1000000};
    for (;;) {
        if (wait_retrying(pid, code, WNOHANG) != 0) return true;
        if (!(cleat_seconds() < deadline)) return false;
        nanosleep(&moment, NULL);
    }
}

static void format_end(const cleat_child *child, const collector *collected, int code, cleat_child_end *end) {
    if (end->timed_out)
        snprintf(end->text, sizeof end->text, "no answer within %.3g s: stopped", child->seconds);
    else if (end->signal == SIGKILL)
        snprintf(end->text, sizeof end->text, "killed by signal 9: did the system run out of memory?");
    else if (end->signal)
        snprintf(end->text, sizeof end->text, "killed by signal %d (%s)", end->signal, strsignal(end->signal));
    else if (WIFEXITED(code) && WEXITSTATUS(code) != 0)
        snprintf(end->text, sizeof end->text, "exited with code %d", WEXITSTATUS(code));
    else if (collected->used > 0)
        snprintf(end->text, sizeof end->text, "returned an invalid result");
    else if (collected->records == 0)
        snprintf(end->text, sizeof end->text, "exited without a result");
}

/* A process inside a driver of the kernel that hangs does not die from SIGKILL: it is left behind. */
enum { KILL_SECONDS = 10 };

static void supervise(const cleat_child *child, pid_t pid, int in, collector *collected, void *record,
                      cleat_child_end *end) {
    int code = 0;
    double start = cleat_seconds(), deadline = start + child->seconds;
    if (!read_until(in, deadline, collected, record) || !wait_until(pid, deadline, &code)) {
        end->timed_out = true;
        /* a thread of Windows is stopped, and does not end */
        if (kill(pid, SIGKILL) == 0) wait_until(pid, cleat_seconds() + KILL_SECONDS, &code);
    }
    end->seconds = cleat_seconds() - start;
    end->records = collected->records;
    end->signal = WIFSIGNALED(code) ? WTERMSIG(code) : 0;
    format_end(child, collected, code, end);
}

cleat_status cleat_child_run(const cleat_child *child, void *record, cleat_child_end *end, cleat_error *error) {
    int ends[2];
    collector collected = {
        .child = child, .record_bytes = child->record_bytes, .bytes = cleat_alloc(child->record_bytes, 1)};
    if (!collected.bytes) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the result of a child process");
    cleat_status status = CLEAT_OK;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        status = cleat_fail(error, CLEAT_ERR_IO, "cannot create a pipe to a child process: %s", strerror(errno));
        goto done;
    }
    const pid_t pid = cleat_fork_call(child->body, child->user, ends[0], ends[1]);
    close(ends[1]);
    if (pid > 0) {
        *end = (cleat_child_end){0};
        supervise(child, pid, ends[0], &collected, record, end);
    } else {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "cannot start a child process: %s", strerror(errno));
    }
    close(ends[0]);
done:
    cleat_free(collected.bytes);
    return status;
}
