/* cleat monitor: shows a run while it trains, or after it. */
#include "core/clock.h"
#include "monitor.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "platform/system.h"
#include "platform/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

static void terminal_size(int *columns, int *rows) {
    struct winsize size;
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    *columns = known ? size.ws_col : 80;
    *rows = known ? size.ws_row : 24;
}

static bool is_utf8(void) {
    setlocale(LC_CTYPE, "");
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static struct termios before;

static void open_screen(void) {
    struct termios raw;
    if (tcgetattr(STDIN_FILENO, &before) == 0) {
        raw = before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    fputs("\033[?1049h\033[?25l", stdout); /* another screen, without a cursor */
}

static void close_screen(void) {
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    if (before.c_cflag) tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

/* Overwrites the screen line by line: nothing flickers over a slow connection. */
static void draw(const monitor_state *state, monitor_style *style) {
    cleat_string text = {0};
    int rows;
    terminal_size(&style->width, &rows);
    monitor_print(&text, state, style);
    fputs("\033[H", stdout);
    for (char *line = text.data, *end; line && *line && rows-- > 1; line = end + 1) {
        end = line + strcspn(line, "\n");
        printf("%.*s\033[K\r\n", (int)(end - line), line);
        if (!*end) break;
    }
    fputs("\033[J", stdout);
    fflush(stdout);
    cleat_string_free(&text);
}

/* Waits for `seconds`; false: the user asks to leave. */
static bool wait_for_key(double seconds) {
    struct pollfd keyboard = {.fd = STDIN_FILENO, .events = POLLIN};
    const double end = cleat_seconds() + seconds;
    char key;
    for (double left = seconds; left > 0 && !stop; left = end - cleat_seconds()) {
        if (poll(&keyboard, isatty(STDIN_FILENO) ? 1 : 0, (int)(left * 1000) + 1) <= 0) continue;
        if (read(STDIN_FILENO, &key, 1) == 1 && (key == 'q' || key == 'Q')) return false;
    }
    return !stop;
}

typedef struct watch {
    const char *folder;
    double every;
    bool terminal;
    monitor_style style;
    int gone;      /* readings in a row that found no process */
    size_t events; /* that were printed */
} watch;

/* Between two processes of a run that continues with a smaller plan, the lock is free for a moment. */
static bool has_ended(watch *w, const monitor_state *state) {
    w->gone = state->history->is_running ? 0 : w->gone + 1;
    return state->phase == CLEAT_HISTORY_ENDED || w->gone > 1;
}

static void show(watch *w, const monitor_state *state) {
    if (w->terminal) {
        draw(state, &w->style);
        return;
    }
    w->events = monitor_print_events(stdout, state, w->events);
    monitor_print_line(stdout, state);
    fflush(stdout);
}

/* Reading a long history is slow: at most a tenth of the time is spent on it. */
static cleat_status follow(watch *w, cleat_error *error) {
    for (;;) {
        monitor_state state;
        const double started = cleat_seconds();
        cleat_status status = monitor_open(w->folder, &state, error);
        if (status) return status;
        const bool ended = has_ended(w, &state), suspect = !ended && w->gone > 0;
        if (!suspect) show(w, &state);
        monitor_close(&state);
        const double pause = suspect ? fmin(w->every, 1) : w->every;
        if (ended || !wait_for_key(fmax(pause, 9 * (cleat_seconds() - started)))) return CLEAT_OK;
    }
}

static cleat_status print_once(watch *w, cleat_error *error) {
    monitor_state state;
    cleat_status status = monitor_open(w->folder, &state, error);
    if (status) return status;
    cleat_string text = {0};
    monitor_print(&text, &state, &w->style);
    if (text.data) fputs(text.data, stdout);
    cleat_string_free(&text);
    monitor_close(&state);
    return CLEAT_OK;
}

/* The last state stays on the terminal after the screen is closed. */
static cleat_status follow_on_terminal(watch *w, cleat_error *error) {
    open_screen();
    cleat_status status = follow(w, error);
    close_screen();
    return status ? status : print_once(w, error);
}

/* Prints the last complete sample record, which is never far from the end of the file. */
static cleat_status print_sample(const char *folder, cleat_error *error) {
    enum { TAIL = 1 << 20 };
    static const char kind[] = "{\"kind\":\"sample\"";
    char path[CLEAT_PATH + 32], *text, *found = NULL;
    snprintf(path, sizeof path, "%s/system.jsonl", folder);
    FILE *file = fopen(path, "r");
    if (!file)
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND,
                          "%s does not exist: the run has run.monitor = none, or has not started", path);
    text = calloc(TAIL + 1, 1);
    if (text && fseek(file, -(long)TAIL, SEEK_END) != 0) rewind(file); /* a shorter file */
    const size_t size = text ? fread(text, 1, TAIL, file) : 0;
    fclose(file);
    for (size_t i = 0; i < size; i += strcspn(text + i, "\n") + 1) {
        const bool complete = text[i + strcspn(text + i, "\n")] == '\n';
        if (complete && strncmp(text + i, kind, sizeof kind - 1) == 0) found = text + i;
    }
    if (found) printf("%.*s\n", (int)strcspn(found, "\n"), found);
    free(text);
    return found ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s has no sample yet", path);
}

static int run(const cli_command *command, int argc, char **argv) {
    bool once = false, json = false;
    double every = 0, width = 0;
    cli_list words = {.count = 0};
    const cli_option options[] = {
        {"--once", CLI_FLAG, &once, NULL, "print the current state and exit"},
        {"--every", CLI_NUMBER, &every, "S", "seconds between two readings (default: 1 on a terminal, else 10)"},
        {"--width", CLI_NUMBER, &width, "N", "columns of --once (default: those of the terminal, else 80)"},
        {"--json", CLI_FLAG, &json, NULL, "print the last sample as one JSON object and exit"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code, rows;
    cleat_error error = {0};
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (words.count != 1) return cli_usage(command, "exactly one run folder is expected");
    if (every < 0) return cli_usage(command, "--every %g: must not be negative", every);
    if (width != 0 && !cli_is_count(width, 24, 1000))
        return cli_usage(command, "--width %g: must be an integer from 24 to 1000", width);
    watch w = {.folder = words.items[0], .terminal = cli_can_redraw(STDOUT_FILENO) && isatty(STDIN_FILENO)};
    w.every = every > 0 ? every : w.terminal ? 1 : 10;
    w.style = (monitor_style){.colors = cli_has_colors(STDOUT_FILENO), .utf8 = is_utf8()};
    terminal_size(&w.style.width, &rows);
    if (width > 0) w.style.width = (int)width;
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    signal(SIGHUP, on_signal);
    cleat_status status = json         ? print_sample(w.folder, &error)
                          : once       ? print_once(&w, &error)
                          : w.terminal ? follow_on_terminal(&w, &error)
                                       : follow(&w, &error);
    return cli_finish(status, &error);
}

const cli_command cli_monitor = {"monitor", "RUN [--once] [--every S] [--width N] [--json]",
                                 "show a run while it trains: progress, speed, idle time, memory, hints", run};
