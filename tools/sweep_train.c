/* The runs of a sweep as child processes, one on each device at a time. */
#include "core/clock.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "sweep.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* "[2/9] NAME: finished, best rmsd 0.85 at epoch 9 (12 s)" */
static void print_run(const sweep *s, const sweep_run *run, const char *what, const cleat_run_summary *summary) {
    char value[CLI_SHORT], time[CLI_SHORT];
    if (cli_is_quiet() && !run->is_failed) return;
    fprintf(stderr, "%s[%d/%zu] %s: %s", cli_can_redraw(STDERR_FILENO) ? "\r\033[K" : "", (int)(run - s->runs) + 1,
            s->count, run->point->name, what);
    if (summary && isfinite(summary->best))
        fprintf(stderr, ", best %s %s at epoch %.0f", summary->metric, runs_number(summary->best, value),
                summary->best_epoch);
    if (summary && isfinite(summary->seconds)) fprintf(stderr, " (%s)", cli_duration(summary->seconds, time));
    fprintf(stderr, "\n");
}

/* Starts `cleat train` with its messages in a file. If the sweep is killed, the run saves a checkpoint; signals of the
 * terminal reach it through the sweep. */
static void start(const sweep *s, sweep_run *run, size_t device, int64_t until) {
    char path[CLEAT_PATH + 8];
    launch_words words = {.failed = s->train.failed};
    for (size_t i = 0; i < s->train.count; ++i) launch_add(&words, "%s", s->train.items[i]);
    for (size_t i = 0; i < CLEAT_SWEEP_AXES && run->point->assignments[i]; ++i)
        launch_add(&words, "--set=%s", run->point->assignments[i]);
    if (s->ranks) launch_add(&words, "--device=%s", s->ranks->items[device].selector);
    if (until) launch_add(&words, "--until-epoch=%lld", (long long)until);
    launch_add(&words, "--out=%s", run->folder);
    launch_add(&words, "--resume");
    mkdir(run->folder, 0777);
    snprintf(path, sizeof path, "%s/log", run->folder);
    const int output = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
    fflush(NULL);
    run->process = output >= 0 && !words.failed ? cleat_spawn(NULL, words.items, output, output, SIGTERM) : -1;
    if (output >= 0) close(output);
    launch_words_free(&words);
    run->is_failed = run->is_over = run->process < 0;
    if (run->is_failed) run->process = 0;
    if (run->is_failed || !cli_can_redraw(STDERR_FILENO))
        print_run(s, run, run->is_failed ? "failed: its process or its file `log` cannot be created" : "started", NULL);
}

/* Whether the run needs no process; prints that it has come so far before. */
static bool is_done(const sweep *s, const sweep_run *run, int64_t until) {
    cleat_run_summary summary;
    if (cleat_run_summary_read(run->folder, NULL, until, &summary, NULL)) return false;
    const bool done = summary.state == CLEAT_RUN_FINISHED || (until > 0 && summary.epochs >= (double)until);
    if (done) print_run(s, run, until ? "has come so far before" : "finished before", &summary);
    cleat_run_summary_free(&summary);
    return done;
}

/* The last whole line of the log that begins with `first`, without it. */
static bool find_line(const sweep_run *run, const char *first, char *text, size_t size) {
    char path[CLEAT_PATH + 8], tail[8192];
    bool found = false;
    snprintf(path, sizeof path, "%s/log", run->folder);
    FILE *file = fopen(path, "r");
    if (!file) return false;
    if (fseek(file, -(long)(sizeof tail - 1), SEEK_END)) rewind(file); /* a shorter file */
    tail[fread(tail, 1, sizeof tail - 1, file)] = 0;
    fclose(file);
    for (char *line = tail, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = 0;
        if (strncmp(line, first, strlen(first)) == 0) found = snprintf(text, size, "%s", line + strlen(first)) >= 0;
    }
    return found;
}

static void end_run(const sweep *s, sweep_run *run, int state, int64_t until) {
    char what[CLEAT_PATH + 512] = "finished", why[300] = "no message";
    cleat_run_summary summary = {.epochs = 0};
    const int code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    const bool known = !cleat_run_summary_read(run->folder, NULL, until, &summary, NULL);
    run->is_failed = code && code != EXIT_TIME && (code != EXIT_INTERRUPTED || !launch_stops());
    run->is_late = code == EXIT_TIME && !(until > 0 && summary.epochs >= (double)until);
    run->is_over = true;
    if (run->is_failed) {
        find_line(run, "cleat: ", why, sizeof why);
        snprintf(what, sizeof what, "failed with exit code %d: %s; %s/log", code, why, run->folder);
    } else if (code)
        snprintf(what, sizeof what, "stopped%s after epoch %.0f", run->is_late ? " by its time budget" : "",
                 summary.epochs);
    print_run(s, run, what, known ? &summary : NULL);
    cleat_run_summary_free(&summary);
}

/* One line with the progress of each run that trains. */
static void show(const sweep *s, double *shown) {
    char line[1024] = "", text[512], metric[80];
    size_t used = 0;
    const int name = snprintf(metric, sizeof metric, "  %s ", s->metric);
    if (cleat_seconds() - *shown < 0.5 || cli_is_quiet() || !cli_can_redraw(STDERR_FILENO)) return;
    *shown = cleat_seconds();
    for (size_t i = 0; i < s->count && used < sizeof line; ++i) {
        if (!s->runs[i].process) continue;
        if (!find_line(&s->runs[i], "epoch ", text, sizeof text)) snprintf(text, sizeof text, "0:");
        const char *at = strstr(text, metric), *value = at ? at : "";
        used += (size_t)snprintf(line + used, sizeof line - used, "%s[%zu/%zu] %s: epoch %.*s%.*s", used ? " | " : "",
                                 i + 1, s->count, s->runs[i].point->name, (int)strcspn(text, ": "), text,
                                 at ? name + (int)strcspn(at + name, " ") : 0, value);
    }
    cleat_clean_text(line);
    fprintf(stderr, "\r\033[K%.*s", cli_terminal_width() - 1, line);
}

/* Notes that the run of a device has ended. `ask`: it shall stop. */
static void follow(const sweep *s, sweep_run **run, int64_t until, bool ask) {
    int state;
    if (ask) kill((*run)->process, SIGINT);
    if (waitpid((*run)->process, &state, WNOHANG) == 0) return;
    (*run)->process = 0;
    end_run(s, *run, state, until);
    *run = NULL;
}

bool sweep_train(sweep *s, const bool *is_in, int64_t until) {
    sweep_run *of_device[LAUNCH_RANKS] = {NULL};
    const size_t devices = s->ranks ? s->ranks->count : 1;
    double shown = 0;
    int passed_on = 0;
    launch_catch_signals();
    for (size_t i = 0; i < s->count; ++i) s->runs[i].is_over = !is_in[i] || s->runs[i].is_failed || s->runs[i].is_late;
    for (bool is_left = true; is_left; usleep(50000)) {
        const int stops = launch_stops();
        is_left = false;
        for (size_t d = 0, next = 0; d < devices; ++d) {
            for (; !of_device[d] && !stops && next < s->count; ++next) {
                sweep_run *run = &s->runs[next];
                if (run->is_over || run->process || (run->is_over = is_done(s, run, until))) continue;
                start(s, run, d, until);
                if (run->process) of_device[d] = run;
            }
            if (of_device[d]) follow(s, &of_device[d], until, stops > passed_on);
            is_left |= of_device[d] || (!stops && next < s->count);
        }
        passed_on = stops;
        show(s, &shown);
    }
    return launch_stops() > 0;
}
