/* cleat man: prints manual pages, or writes all of them, from the commands' own tables of options. */
#include "cli.h"
#include "core/files.h"
#include "platform/files.h"

#include <cleat/profile.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints a text: backslashes and hyphens as characters, no line that looks like a request. */
static void put(FILE *page, const char *text) {
    bool first = true; /* of a line */
    for (; *text; ++text) {
        if (first && (*text == '.' || *text == '\'')) fputs("\\&", page);
        if (*text == '\\')
            fputs("\\e", page);
        else if (*text == '-')
            fputs("\\-", page);
        else if (*text == '`')
            fputs("\\(ga", page);
        else
            fputc(*text, page);
        first = *text == '\n';
    }
}

static void put_line(FILE *page, const char *text) {
    put(page, text);
    fputc('\n', page);
}

static void put_head(FILE *page, const char *name, int section, const char *summary) {
    fprintf(page, ".\\\" Written by `cleat man`.\n.TH \"");
    put(page, name);
    fprintf(page, "\" %d \"\" \"cleat %s\" \"cleat\"\n.SH NAME\n", section, cleat_version());
    put(page, name);
    fputs(" \\- ", page);
    put_line(page, summary);
}

static void put_see_also(FILE *page, const cli_command *except) {
    size_t count;
    const cli_command *const *commands = cli_commands(&count);
    fputs(".SH SEE ALSO\n", page);
    if (except) fputs(".BR cleat (1),\n", page);
    for (size_t i = 0; i < count; ++i) {
        if (commands[i] == except) continue;
        fputs(".BR cleat\\-", page);
        put(page, commands[i]->name);
        fputs(" (1),\n", page);
    }
    fputs(".BR cleat\\-settings (5)\n", page);
}

static void put_options(const cli_command *command, const cli_option *options, void *user) {
    FILE *page = user;
    (void)command;
    for (; options->name; ++options) {
        fputs(".TP\n\\fB", page);
        put(page, options->name);
        fputs("\\fR", page);
        if (options->value_name) {
            fputs(" \\fI", page);
            put(page, options->value_name);
            fputs("\\fR", page);
        }
        fputc('\n', page);
        put_line(page, options->help);
    }
}

static void print_program(FILE *page) {
    size_t count;
    const cli_command *const *commands = cli_commands(&count);
    put_head(page, "cleat", 1, cli_program.summary);
    fputs(".SH SYNOPSIS\n.B cleat\n", page);
    put_line(page, cli_program.usage);
    fputs(".SH COMMANDS\nEach command has its own page.\n", page);
    for (size_t i = 0; i < count; ++i) {
        fputs(".TP\n.BR cleat\\-", page);
        put(page, commands[i]->name);
        fputs(" (1)\n", page);
        put_line(page, commands[i]->summary);
    }
    fputs(".SH OPTIONS\nOptions before the command:\n", page);
    cli_visit_options(&cli_program, put_options, page);
    fputs(".SH EXIT STATUS\n", page);
    for (const cli_exit_code *exit = cli_exit_codes; exit->meaning; ++exit) {
        fprintf(page, ".TP\n%d\n", exit->code);
        put_line(page, exit->meaning);
    }
    fputs(".SH ENVIRONMENT\n.TP\nNO_COLOR\nIf it is set and not empty, the output has no colours.\n"
          ".TP\nCLEAT_CACHE_DIR\nFolder of compiled kernels and measured speeds.\n",
          page);
    put_see_also(page, NULL);
}

static void print_command(FILE *page, const cli_command *command) {
    char name[64];
    snprintf(name, sizeof name, "cleat-%s", command->name);
    put_head(page, name, 1, command->summary);
    fputs(".SH SYNOPSIS\n.B cleat ", page);
    put_line(page, command->name);
    put_line(page, command->usage);
    fputs(".SH OPTIONS\n", page);
    cli_visit_options(command, put_options, page);
    fputs(".TP\n\\fB\\-\\-help\\fR\nshow a short help\n", page);
    put_see_also(page, command);
}

static cleat_status print_settings(FILE *page, cleat_error *error) {
    char *text = NULL;
    cleat_status status = cleat_profile_help(&text, error);
    if (status) return status;
    put_head(page, "cleat-settings", 5, "the settings of a profile");
    fputs(".SH DESCRIPTION\n.nf\n", page);
    put(page, text);
    fputs(".fi\n.SH SEE ALSO\n.BR cleat\\-train (1),\n.BR cleat\\-plan (1)\n", page);
    free(text);
    return CLEAT_OK;
}

/* Prints the page of a command, of "settings", or of the program for "". False: there is no such page. */
static bool print_page(FILE *page, const char *name, cleat_status *status, cleat_error *error) {
    size_t count;
    const cli_command *const *commands = cli_commands(&count);
    const bool settings = strcmp(name, "settings") == 0;
    size_t i = 0;
    *status = settings ? print_settings(page, error) : CLEAT_OK;
    if (!*name) print_program(page);
    while (i < count && strcmp(name, commands[i]->name) != 0) ++i;
    if (i < count) print_command(page, commands[i]);
    return settings || !*name || i < count;
}

static cleat_status write_page(const char *folder, const char *name, cleat_error *error) {
    char path[CLEAT_PATH];
    int section = strcmp(name, "settings") == 0 ? 5 : 1;
    snprintf(path, sizeof path, "%s/man%d", folder, section);
    if (cleat_folder_make(path, error)) return error->status;
    snprintf(path, sizeof path, "%s/man%d/cleat%s%s.%d", folder, section, *name ? "-" : "", name, section);
    FILE *page = fopen(path, "w");
    if (!page) return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot create the file: %s", path, strerror(errno));
    cleat_status status;
    print_page(page, name, &status, error);
    if (fclose(page) != 0 && !status)
        status = cleat_fail(error, CLEAT_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
    return status;
}

static int write_all(const char *folder) {
    size_t count;
    const cli_command *const *commands = cli_commands(&count);
    cleat_error error = {0};
    cleat_status status = write_page(folder, "", &error);
    if (!status) status = write_page(folder, "settings", &error);
    for (size_t i = 0; i < count && !status; ++i) status = write_page(folder, commands[i]->name, &error);
    return cli_finish(status, &error);
}

static int run(const cli_command *command, int argc, char **argv) {
    const char *out = NULL;
    cli_list words = {.count = 0};
    const cli_option options[] = {{"--out", CLI_TEXT, &out, "DIR", "write all pages to DIR/man1 and DIR/man5"},
                                  {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (words.count > 1 || (out && words.count)) return cli_usage(command, "at most one page, or --out, is expected");
    if (out) return write_all(out);
    const char *name = words.count ? words.items[0] : "";
    if (strcmp(name, "profile") == 0) name = "trace"; /* its name in release 0.1 */
    cleat_error error = {0};
    cleat_status status;
    if (!print_page(stdout, name, &status, &error))
        return cli_usage(command, "no page '%s': a command, or 'settings', is expected", name);
    return cli_finish(status, &error);
}

const cli_command cli_man = {"man", "[COMMAND | settings] | --out DIR",
                             "print a manual page for the command man: `cleat man train | man -l -`", run};
