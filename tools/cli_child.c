/* Child processes with a time limit, so that a driver or a host that crashes or hangs affects one answer
 * only. */
#include "cli_child.h"
#include "core/clock.h"
#include "platform/files.h"
#include "platform/processes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUT_BYTES = 1 << 20, MESSAGE_BYTES = 16384, TAIL_BYTES = 900 };

static volatile pid_t running; /* process number of the child; 0: none */
static volatile sig_atomic_t stopped;

void cli_child_stop(void) {
    stopped = 1;
    if (running > 0) kill(-running, SIGKILL);
}

bool cli_child_stopped(void) {
    return stopped;
}

/* Collects data from a pipe; false at its end. Data that do not fit are read and dropped. */
static bool collect(int pipe, char *text, size_t room, size_t *used) {
    char piece[4096];
    const ssize_t got = read(pipe, piece, sizeof piece);
    if (got < 0) return errno == EINTR || errno == EAGAIN;
    const size_t fits = room - 1 - *used < (size_t)got ? room - 1 - *used : (size_t)got;
    memcpy(text + *used, piece, fits);
    *used += fits;
    text[*used] = 0;
    return got > 0;
}

/* Reads both pipes until they close, keeping the last messages; false if the time is over. */
static bool read_both(int pipes[2], double end, char *output, char *message) {
    size_t used = 0, told = 0;
    bool open[2] = {true, true};
    while ((open[0] || open[1]) && !stopped) {
        struct pollfd waits[2] = {{.fd = open[0] ? pipes[0] : -1, .events = POLLIN},
                                  {.fd = open[1] ? pipes[1] : -1, .events = POLLIN}};
        const double left = end - cleat_seconds();
        if (left <= 0) return false;
        if (poll(waits, 2, left < 60 ? (int)(left * 1000) + 1 : 60000) <= 0) continue;
        if (told > MESSAGE_BYTES / 2) {
            memmove(message, message + MESSAGE_BYTES / 4, told -= MESSAGE_BYTES / 4);
            message[told] = 0;
        }
        if (waits[0].revents) open[0] = collect(pipes[0], output, OUTPUT_BYTES, &used);
        if (waits[1].revents) open[1] = collect(pipes[1], message, MESSAGE_BYTES, &told);
    }
    return true;
}

/* The error among the messages: from the last line on that begins with the name of the program, else the last line. */
static const char *find_error(const char *message) {
    static const char start[] = "cleat: ";
    const char *found = NULL, *last = message;
    for (const char *at = message; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        if (strncmp(at, start, sizeof start - 1) == 0) found = at + sizeof start - 1;
        if (*at != '\n') last = at;
    }
    return found ? found : last;
}

/* The last whole lines. */
static const char *find_tail(const char *message) {
    const size_t length = strlen(message);
    if (length <= TAIL_BYTES) return message;
    const char *tail = message + length - TAIL_BYTES, *line = strchr(tail, '\n');
    return line && line[1] ? line + 1 : tail;
}

static void query_result(cli_child *child, int state, bool in_time, double seconds, const char *message) {
    if (stopped) {
        snprintf(child->failure, sizeof child->failure, "interrupted");
    } else if (!in_time) {
        child->timed_out = true;
        snprintf(child->failure, sizeof child->failure, "no answer within %.0f s", seconds);
    } else if (WIFSIGNALED(state)) {
        snprintf(child->failure, sizeof child->failure, "crashed: signal %d", WTERMSIG(state));
    } else {
        child->ended = true;
        child->exit_code = WEXITSTATUS(state);
        if (child->exit_code == 0) return;
        const char *error = find_error(message);
        snprintf(child->failure, sizeof child->failure, "%.*s", (int)strcspn(error, "\n"), error);
        if (!child->failure[0]) snprintf(child->failure, sizeof child->failure, "exit code %d", child->exit_code);
        child->detail = strdup(error);
        return;
    }
    child->detail = strdup(find_tail(message));
}

static void run_program(const char *program, char *const *arguments, double seconds, cli_child *child) {
    int output[2] = {-1, -1}, messages[2] = {-1, -1}, state = 0;
    const double start = cleat_seconds();
    char message[MESSAGE_BYTES] = "";
    *child = (cli_child){.output = calloc(1, OUTPUT_BYTES)};
    if (!child->output || pipe2(output, O_CLOEXEC) != 0 || pipe2(messages, O_CLOEXEC) != 0) {
        snprintf(child->failure, sizeof child->failure, "no process: %s", strerror(errno));
        goto done;
    }
    fflush(NULL);
    const pid_t process = cleat_spawn(program, arguments, output[1], messages[1], SIGKILL);
    close(output[1]);
    close(messages[1]);
    output[1] = messages[1] = -1;
    if (process < 0) {
        snprintf(child->failure, sizeof child->failure, "no process: %s", strerror(errno));
        goto done;
    }
    running = process;
    const bool in_time =
        read_both((int[2]){output[0], messages[0]}, start + seconds, child->output, message) && !stopped;
    if (!in_time) kill(-process, SIGKILL);
    while (waitpid(process, &state, 0) < 0 && errno == EINTR) continue;
    running = 0;
    query_result(child, state, in_time, seconds, message);
done:
    for (int i = 0; i < 2; ++i) {
        if (output[i] >= 0) close(output[i]);
        if (messages[i] >= 0) close(messages[i]);
    }
    child->seconds = cleat_seconds() - start;
}

void cli_child_run_self(const char *const *words, double seconds, cli_child *child) {
    char *arguments[CLI_CHILD_WORDS + 2] = {(char *)"cleat"};
    for (size_t i = 0; i < CLI_CHILD_WORDS && words[i]; ++i) arguments[i + 1] = (char *)words[i];
    run_program(NULL, arguments, seconds, child);
}

void cli_child_run(const char *const *words, double seconds, cli_child *child) {
    run_program(words[0], (char *const *)words, seconds, child);
}

void cli_child_free(cli_child *child) {
    free(child->output);
    free(child->detail);
    *child = (cli_child){.output = NULL};
}
