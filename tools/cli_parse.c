/* The command line: options, the --help of a command, and the options that every command has. */
#include "cli.h"
#include "core/string.h"
#include "platform/files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *level; /* NULL: not given */
    bool quiet;
} common;

static const cli_option common_options[] = {
    {"--log", CLI_TEXT, &common.level, "LEVEL",
     "error, warning, info (default), debug, dispatch (which kernel runs which node, and why)"},
    {"--quiet", CLI_FLAG, &common.quiet, NULL, "only warnings and errors: no progress, no report of a run"}};
enum { N_COMMON = sizeof common_options / sizeof *common_options, MAX_OPTIONS = 48 };

bool cli_is_quiet(void) {
    return common.quiet;
}

const char *cli_log_level(void) {
    return common.level;
}

static void print_log(void *user, cleat_log_level level, const char *text) {
    char rank[32] = "";
    if (user) snprintf(rank, sizeof rank, "rank %d: ", *(const int *)user);
    const char *kind = level == CLEAT_LOG_ERROR ? "error: " : level == CLEAT_LOG_WARNING ? "warning: " : "";
    const char *color = level == CLEAT_LOG_ERROR ? "\033[1;31m" : "\033[1;33m"; /* bold red, bold yellow */
    if (*kind && cli_has_colors(STDERR_FILENO))
        fprintf(stderr, "%s%s%s\033[0m%s\n", color, rank, kind, text);
    else
        fprintf(stderr, "%s%s%s\n", rank, kind, text);
}

static bool find_level(const char *name, cleat_log_level *level) {
    static const char *const names[] = {"error", "warning", "info", "debug", "dispatch"};
    for (int i = 0; i < 5; ++i)
        if (strcmp(name, names[i]) == 0) {
            *level = (cleat_log_level)i;
            return true;
        }
    return false;
}

void cli_log_as_rank(int rank) {
    static int number;
    cleat_log_level level = CLEAT_LOG_ERROR;
    number = rank;
    if (common.level) find_level(common.level, &level);
    cleat_set_log(print_log, &number, level);
}

/* Applies --log and --quiet, given before or after the command's name. */
static bool start_log(const cli_command *command, int *exit_code) {
    cleat_log_level level = common.quiet ? CLEAT_LOG_WARNING : CLEAT_LOG_INFO;
    if (common.level && common.quiet) {
        *exit_code = cli_usage(command, "--quiet and --log exclude each other");
        return false;
    }
    if (common.level && !find_level(common.level, &level)) {
        *exit_code = cli_usage(command, "unknown log level '%s'; the levels are error, warning, info, debug, dispatch",
                               common.level);
        return false;
    }
    cleat_set_log(print_log, NULL, level);
    return true;
}

/* Writes the options of a command and the common ones to `all`. */
static void join_options(const cli_option *options, cli_option all[MAX_OPTIONS]) {
    int count = 0;
    for (; options->name && count < MAX_OPTIONS - N_COMMON - 1; ++options) all[count++] = *options;
    for (int i = 0; i < N_COMMON; ++i) all[count++] = common_options[i];
    all[count] = (cli_option){NULL, CLI_FLAG, NULL, NULL, NULL};
}

static struct {
    cli_visit visit; /* NULL: commands run */
    void *user;
} visitor;

void cli_visit_options(const cli_command *command, cli_visit visit, void *user) {
    visitor.visit = visit;
    visitor.user = user;
    command->run(command, 0, NULL);
    visitor.visit = NULL;
}

/* Returns whether only the options were requested. */
static bool visited(const cli_command *command, const cli_option *options, int *exit_code) {
    if (!visitor.visit) return false;
    visitor.visit(command, options, visitor.user);
    *exit_code = 0;
    return true;
}

void cli_print_options(const cli_command *command, const cli_option *options, void *user) {
    (void)command, (void)user;
    for (; options->name; ++options) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", options->name, options->value_name ? options->value_name : "");
        printf("  %-28s %s\n", left, options->help);
    }
}

static void print_help(const cli_command *command, const cli_option *options) {
    printf("usage: cleat %s %s\n\n%s\n\noptions:\n", command->name, command->usage, command->summary);
    cli_print_options(command, options, NULL);
    printf("  %-28s %s\n", "--help", "show this help");
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
    case CLI_OWN:
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
    case CLI_MAYBE:
        *(double *)option->target = strtod(value, &end);
        if (end == value || *end || !isfinite(*(double *)option->target) ||
            (option->kind == CLI_MAYBE && *value == '-')) {
            *exit_code = cli_usage(command, "%s %s: a number is expected", option->name, value);
            return false;
        }
        break;
    }
    return true;
}

static bool names_path(const cli_option *option) {
    const char *name = option->value_name;
    return strstr(name, "DIR") || strstr(name, "FILE") || strstr(name, "PATH");
}

static bool is_option(const char *word) {
    return word[0] == '-' && word[1];
}

/* Parses the option at argv[*at], and its value if that is the next argument, to which *at then points. */
static bool parse_option(const cli_command *command, const cli_option *options, int argc, char **argv, int *at,
                         int *exit_code) {
    const char *word = argv[*at], *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const cli_option *option = find_option(options, word, length);
    if (!option && command == &cli_train && same_name("--profile", word, length)) /* its name in release 0.1 */
        option = find_option(options, "--trace", strlen("--trace"));
    if (!option) {
        const char *value = equals ? equals + 1 : *at + 1 < argc && !is_option(argv[*at + 1]) ? argv[*at + 1] : NULL;
        char hint[CLI_HINT];
        cli_hint_option(command, options, word, value, hint);
        *exit_code = cli_usage(command, "unknown option '%.*s'%s", (int)length, word, hint);
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
    if (option->kind == CLI_OWN && !equals) return parse_value(command, option, "", exit_code);
    if (option->kind == CLI_MAYBE && !equals &&
        (*at + 1 == argc || argv[*at + 1][strspn(argv[*at + 1], "0123456789.")])) {
        *(double *)option->target = fabs(*(double *)option->target);
        return true;
    }
    char *value = equals ? argv[*at] + length + 1 : *at + 1 < argc ? argv[++*at] : NULL;
    if (!value) {
        *exit_code = cli_usage(command, "option %s requires a value (%s)", option->name, option->value_name);
        return false;
    }
    if (names_path(option)) cleat_path_from_user(value);
    return parse_value(command, option, value, exit_code);
}

/* "train.epochs=3" is a setting unless a file has that name; so is "epochs=3", whose message then names the section. */
static bool is_setting(const char *word) {
    const size_t name = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_.");
    return name && word[name] == '=' && access(word, F_OK) != 0;
}

/* Adds a word that is not an option: a setting to those of --set, others to `words`. */
static bool add_word(const cli_command *command, const cli_option *options, char *word, cli_list *words,
                     int *exit_code) {
    const cli_option *set = find_option(options, "--set", 5);
    if (set && is_setting(word)) return parse_value(command, set, word, exit_code);
    if (words->count == CLI_LIST) {
        *exit_code = cli_usage(command, "more than %d positional arguments", CLI_LIST);
        return false;
    }
    cleat_path_from_user(word);
    words->items[words->count++] = word;
    return true;
}

bool cli_parse(const cli_command *command, const cli_option *own, int argc, char **argv, cli_list *words,
               int *exit_code) {
    cli_option options[MAX_OPTIONS];
    bool only_words = false; /* after "--" */
    join_options(own, options);
    if (visited(command, options, exit_code)) return false;
    for (int i = 0; i < argc; ++i) {
        if (!only_words && cleat_has_word("--help -h /?", argv[i], ' ')) {
            print_help(command, options);
            *exit_code = 0;
            return false;
        }
        if (!only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
        } else if (!only_words && is_option(argv[i])) {
            if (!parse_option(command, options, argc, argv, &i, exit_code)) return false;
        } else if (!add_word(command, options, argv[i], words, exit_code)) {
            return false;
        }
    }
    return start_log(command, exit_code);
}

bool cli_parse_front(const cli_command *command, const cli_option *own, int argc, char **argv, int *parsed,
                     int *exit_code) {
    cli_option options[MAX_OPTIONS];
    int i = 0;
    join_options(own, options);
    if (visited(command, options, exit_code)) return false;
    for (; i < argc && is_option(argv[i]); ++i)
        if (!parse_option(command, options, argc, argv, &i, exit_code)) return false;
    *parsed = i;
    return start_log(command, exit_code);
}
