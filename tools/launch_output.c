/* What comes from the launcher's stderr: lines of guards, messages of the launcher, and everything that ranks
 * print, which is passed on at once, unfinished lines (a bar of progress) included. */
#include "launch.h"

#include <stdio.h>
#include <string.h>

/* Open MPI frames its messages with lines of dashes. */
enum { DASHES = 20 };

/* Messages about the end of a job, which the supervisor explains better. */
static const char *const dropped_boxes[] = {"has exited due to process rank", "a non-zero exit code",
                                            "with non-zero status",           "mpirun noticed that process",
                                            "prterun noticed that process",   "BAD TERMINATION"};
static const char *const dropped_lines[] = {"mpirun: Forwarding signal", "prterun: Forwarding signal",
                                            "mpiexec: Forwarding signal", "PRTE: Forwarding signal"};

static void pass(launch_output *output, const char *text, size_t size) {
    if (size == 0) return;
    output->write(output->user, text, size);
    output->after_text = text[size - 1] != '\n';
}

static void pass_held(launch_output *output) {
    pass(output, output->held, output->used);
    output->used = 0;
}

static bool read_report(const char *line, launch_report *report) {
    char event[16];
    int pid = 0;
    *report = (launch_report){.rank = -1};
    const int count =
        sscanf(line, "cleat-rank %d %127s %d %15s %d", &report->rank, report->host, &pid, event, &report->number);
    report->pid = pid;
    if (count < 4 || report->rank < 0 || report->rank >= LAUNCH_RANKS) return false;
    report->event = strcmp(event, "exit") == 0     ? LAUNCH_EXITED
                    : strcmp(event, "signal") == 0 ? LAUNCH_KILLED
                                                   : LAUNCH_STARTED;
    return report->event == LAUNCH_STARTED || count == 5;
}

static void add_to_mark(launch_output *output, char c) {
    launch_report report;
    if (c != '\n' && output->marked + 1 < LAUNCH_MARKED) {
        output->mark[output->marked++] = c;
        return;
    }
    output->mark[output->marked] = 0;
    output->marked = 0;
    output->in_mark = false;
    if (read_report(output->mark, &report)) output->report(output->user, &report);
}

/* Whether the line is dropped, or may become a dropped one, or the frame of a box. */
static bool may_be_dropped(const char *line, size_t size) {
    for (size_t i = 0; i < sizeof dropped_lines / sizeof *dropped_lines; ++i) {
        const size_t length = strlen(dropped_lines[i]);
        if (strncmp(line, dropped_lines[i], size < length ? size : length) == 0) return true;
    }
    return strspn(line, "-") == size;
}

static bool is_dashes(const char *line) {
    const size_t dashes = strspn(line, "-");
    return dashes >= DASHES && line[dashes + strspn(line + dashes, " \r")] == '\n';
}

static void end_box(launch_output *output) {
    bool drop = false;
    for (size_t i = 0; i < sizeof dropped_boxes / sizeof *dropped_boxes; ++i)
        drop = drop || strstr(output->held, dropped_boxes[i]);
    if (drop)
        output->used = 0;
    else
        pass_held(output);
    output->in_box = false;
}

static void add_to_box(launch_output *output, char c) {
    output->held[output->used++] = c;
    output->held[output->used] = 0;
    if (output->used + 2 > LAUNCH_HELD) {
        output->in_box = false;
        pass_held(output);
        return;
    }
    if (c != '\n') return;
    size_t start = output->used - 1;
    while (start > 0 && output->held[start - 1] != '\n') --start;
    if (start > 0 && is_dashes(output->held + start)) end_box(output);
}

static void add_to_line(launch_output *output, char c) {
    output->held[output->used++] = c;
    output->held[output->used] = 0;
    if (c == '\n' && is_dashes(output->held))
        output->in_box = true;
    else if (c == '\n' && may_be_dropped(output->held, output->used))
        output->used = 0;
    else if (c == '\n' || !may_be_dropped(output->held, output->used) || output->used + 2 > LAUNCH_HELD)
        pass_held(output);
}

/* Text up to the end of the line or the next line of a guard. */
static size_t rest_of_line(const char *text, size_t size) {
    for (size_t i = 0; i < size; ++i) {
        if (text[i] == LAUNCH_MARK) return i;
        if (text[i] == '\n') return i + 1;
    }
    return size;
}

void launch_output_add(launch_output *output, const char *text, size_t size) {
    while (size > 0) {
        size_t count = 1;
        if (output->in_mark) {
            add_to_mark(output, *text);
        } else if (*text == LAUNCH_MARK) {
            output->in_mark = true;
        } else if (output->in_box) {
            add_to_box(output, *text);
        } else if (output->used == 0 && output->after_text) {
            count = rest_of_line(text, size);
            pass(output, text, count);
        } else {
            add_to_line(output, *text);
        }
        text += count;
        size -= count;
    }
}

void launch_output_end(launch_output *output) {
    pass_held(output);
    output->in_mark = output->in_box = false;
}
