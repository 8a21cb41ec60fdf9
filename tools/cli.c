/* Command-line options, messages and exit codes. */
#include "cli.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const cli_exit_code cli_exit_codes[] = {
    {0, "ok"},
    {1, "error"},
    {EXIT_USAGE, "usage"},
    {EXIT_FIT, "does not fit"},
    {EXIT_DEVICE, "device failed"},
    {EXIT_NAN, "not finite (training stopped on it; eval and predict wrote results, some of them not finite)"},
    {EXIT_TIME, "time is up"},
    {EXIT_INTERRUPTED, "interrupted"},
    {0, NULL}};

static struct {
    cli_visit visit; /* NULL: commands run */
    void *user;
} visitor;

static bool is_quiet;

void cli_visit_options(const cli_command *command, cli_visit visit, void *user) {
    visitor.visit = visit;
    visitor.user = user;
    command->run(command, 0, NULL);
    visitor.visit = NULL;
}

void cli_set_quiet(bool quiet) {
    is_quiet = quiet;
}

bool cli_is_quiet(void) {
    return is_quiet;
}

bool cli_is_terminal(int file) {
    const char *terminal = getenv("TERM");
    return isatty(file) && !(terminal && strcmp(terminal, "dumb") == 0);
}

bool cli_has_colors(int file) {
    const char *no_color = getenv("NO_COLOR");
    return cli_is_terminal(file) && !(no_color && *no_color);
}

static void print_help(const cli_command *command, const cli_option *options) {
    printf("usage: cleat %s %s\n\n%s\n", command->name, command->usage, command->summary);
    if (options->name) printf("\noptions:\n");
    for (const cli_option *option = options; option->name; ++option) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", option->name, option->value_name ? option->value_name : "");
        printf("  %-28s %s\n", left, option->help);
    }
    printf("  %-28s %s\n", "--help", "show this help");
}

int cli_usage(const cli_command *command, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *blank = *command->name ? " " : ""; /* the program itself has no name */
    fprintf(stderr, "cleat%s%s: ", blank, command->name);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\nusage: cleat%s%s %s\n`cleat%s%s --help` lists all options\n", blank, command->name,
            command->usage, blank, command->name);
    va_end(arguments);
    return EXIT_USAGE;
}

/* Names also match if spelled with underscores, as in settings and many Python programs. */
static bool same_name(const char *option, const char *name, size_t length) {
    if (strlen(option) != length) return false;
    for (size_t i = 0; i < length; ++i)
        if (option[i] != name[i] && !(option[i] == '-' && name[i] == '_')) return false;
    return true;
}

static const cli_option *find_option(const cli_option *options, const char *name, size_t length) {
    for (; options->name; ++options)
        if (same_name(options->name, name, length)) return options;
    return NULL;
}

static bool parse_value(const cli_command *command, const cli_option *option, const char *value, int *exit_code) {
    cli_list *list = option->target;
    char *end;
    switch (option->kind) {
    case CLI_FLAG:
        break;
    case CLI_TEXT:
        *(const char **)option->target = value;
        break;
    case CLI_REPEATED:
        if (list->count == CLI_LIST) {
            *exit_code = cli_usage(command, "%s is given more than %d times", option->name, CLI_LIST);
            return false;
        }
        list->items[list->count++] = value;
        break;
    case CLI_NUMBER:
        *(double *)option->target = strtod(value, &end);
        if (end == value || *end || !isfinite(*(double *)option->target)) {
            *exit_code = cli_usage(command, "%s %s: a number is expected", option->name, value);
            return false;
        }
        break;
    }
    return true;
}

/* Parses the option at argv[*at], and its value if that is the next argument, which *at then is. */
static bool parse_option(const cli_command *command, const cli_option *options, int argc, char **argv, int *at,
                         int *exit_code) {
    const char *word = argv[*at], *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const cli_option *option = find_option(options, word, length);
    if (!option) {
        *exit_code = cli_usage(command, "unknown option '%.*s'", (int)length, word);
        return false;
    }
    if (option->kind == CLI_FLAG) {
        if (equals) {
            *exit_code = cli_usage(command, "option %s takes no value", option->name);
            return false;
        }
        *(bool *)option->target = true;
        return true;
    }
    const char *value = equals ? equals + 1 : *at + 1 < argc ? argv[++*at] : NULL;
    if (!value) {
        *exit_code = cli_usage(command, "option %s requires a value (%s)", option->name, option->value_name);
        return false;
    }
    return parse_value(command, option, value, exit_code);
}

static bool is_option(const char *word) {
    return word[0] == '-' && word[1];
}

/* Returns whether only the options were asked for. */
static bool visited(const cli_command *command, const cli_option *options, int *exit_code) {
    if (!visitor.visit) return false;
    visitor.visit(command, options, visitor.user);
    *exit_code = 0;
    return true;
}

bool cli_parse(const cli_command *command, const cli_option *options, int argc, char **argv, cli_list *words,
               int *exit_code) {
    if (visited(command, options, exit_code)) return false;
    for (int i = 0; i < argc; ++i) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(command, options);
            *exit_code = 0;
            return false;
        }
        if (is_option(argv[i])) {
            if (!parse_option(command, options, argc, argv, &i, exit_code)) return false;
            continue;
        }
        if (words->count == CLI_LIST) {
            *exit_code = cli_usage(command, "more than %d positional arguments", CLI_LIST);
            return false;
        }
        words->items[words->count++] = argv[i];
    }
    return true;
}

bool cli_parse_front(const cli_command *command, const cli_option *options, int argc, char **argv, int *parsed,
                     int *exit_code) {
    int i = 0;
    if (visited(command, options, exit_code)) return false;
    for (; i < argc && is_option(argv[i]); ++i)
        if (!parse_option(command, options, argc, argv, &i, exit_code)) return false;
    *parsed = i;
    return true;
}

bool cli_is_count(double value, double least, double most) {
    return value >= least && value <= most && value == floor(value);
}

int cli_precision(const cli_command *command, const char *name, cleat_precision *precision) {
    static const char *const names[] = {"f32", "f16", "bf16"};
    static const cleat_precision codes[] = {CLEAT_PRECISION_F32, CLEAT_PRECISION_F16, CLEAT_PRECISION_BF16};
    for (int i = 0; i < 3; ++i) {
        if (strcmp(name, names[i]) != 0) continue;
        *precision = codes[i];
        return 0;
    }
    return cli_usage(command, "--precision %s: must be f32, f16 or bf16", name);
}

int cli_finish(cleat_status status, const cleat_error *error) {
    if (status == CLEAT_OK) return 0;
    fflush(stdout);
    fprintf(stderr, "cleat: %s\n", error->text[0] ? error->text : cleat_status_text(status));
    switch (status) {
    case CLEAT_ERR_FIT:
    case CLEAT_ERR_DEVICE_MEMORY:
        return EXIT_FIT;
    case CLEAT_ERR_DEVICE:
    case CLEAT_ERR_NO_DEVICE:
    case CLEAT_ERR_BUILD:
        return EXIT_DEVICE;
    case CLEAT_ERR_NAN:
        return EXIT_NAN;
    case CLEAT_ERR_TIME_UP:
        return EXIT_TIME;
    case CLEAT_ERR_INTERRUPTED:
        return EXIT_INTERRUPTED;
    default:
        return EXIT_FAILURE;
    }
}

const char *cli_duration(double seconds, char text[CLI_SHORT]) {
    if (seconds < 1)
        snprintf(text, CLI_SHORT, "%.1f ms", seconds * 1e3);
    else if (seconds < 120)
        snprintf(text, CLI_SHORT, "%.1f s", seconds);
    else if (seconds < 7200)
        snprintf(text, CLI_SHORT, "%.1f min", seconds / 60);
    else
        snprintf(text, CLI_SHORT, "%.1f h", seconds / 3600);
    return text;
}

cleat_status cli_profile(const char *name, const cli_list *assignments, const char *device, cleat_profile **profile,
                         cleat_error *error) {
    cli_list all = *assignments;
    char text[CLEAT_PATH], path[CLEAT_PATH];
    cleat_status status = cleat_profile_find(name, path, sizeof path, error);
    if (status != CLEAT_OK) return status;
    if (strcmp(name, path) != 0) cleat_log(CLEAT_LOG_INFO, "profile %s: %s", name, path);
    if (device) {
        if (all.count == CLI_LIST)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "more than %d --set assignments together with --device",
                              CLI_LIST - 1);
        snprintf(text, sizeof text, "run.device=%s", device);
        all.items[all.count++] = text;
    }
    return cleat_profile_load(path, all.items, all.count, profile, error);
}

int cli_run_with_profile(const cli_command *command, int argc, char **argv, double seconds, const char *seconds_help,
                         int (*body)(const cleat_profile *profile, double seconds, bool json)) {
    const char *device = NULL;
    bool json = false;
    cli_list assignments = {.count = 0}, words = {.count = 0};
    const cli_option options[] = {{"--device", CLI_TEXT, &device, "SEL", "device, as for `cleat train`"},
                                  {"--seconds", CLI_NUMBER, &seconds, "S", seconds_help},
                                  {"--set", CLI_REPEATED, &assignments, "SECTION.KEY=VALUE",
                                   "override a setting of the profile; may be repeated"},
                                  {"--json", CLI_FLAG, &json, NULL, "print one JSON object"},
                                  {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (words.count != 1) return cli_usage(command, "exactly one profile is expected");
    if (!(seconds > 0)) return cli_usage(command, "--seconds %g: must be greater than 0", seconds);
    cleat_profile *profile = NULL;
    cleat_error error = {0};
    cleat_status status = cli_profile(words.items[0], &assignments, device, &profile, &error);
    if (status != CLEAT_OK) return cli_finish(status, &error);
    exit_code = body(profile, seconds, json);
    cleat_profile_destroy(profile);
    return exit_code;
}

static volatile int stop;

static void on_signal(int number) {
    stop = 1;
    signal(number, SIG_DFL);
}

const volatile int *cli_stop_on_signals(void) {
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    if (signal(SIGHUP, on_signal) == SIG_IGN) signal(SIGHUP, SIG_IGN); /* keep nohup's setting */
    return &stop;
}

void cli_print_json_string(const char *text) {
    cJSON *string = cJSON_CreateString(text);
    char *printed = cJSON_PrintUnformatted(string);
    printf("%s", printed ? printed : "\"\"");
    cJSON_free(printed);
    cJSON_Delete(string);
}

void cli_print_json_number(double value) {
    if (isfinite(value))
        printf("%.9g", value);
    else
        printf("null");
}

void cli_print_json_metrics(const cleat_metrics *metrics) {
    printf("{");
    for (size_t i = 0; i < metrics->count; ++i) {
        const cleat_metric *metric = &metrics->items[i];
        printf("%s\"%s\": ", i ? ", " : "", metric->name);
        cli_print_json_number(metric->value);
    }
    printf("}");
}

void cli_print_metrics(const cleat_metrics *metrics, bool json) {
    if (json) {
        cli_print_json_metrics(metrics);
        printf("\n");
        return;
    }
    for (size_t i = 0; i < metrics->count; ++i) printf("%-20s %.6g\n", metrics->items[i].name, metrics->items[i].value);
}
