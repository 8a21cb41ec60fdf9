/* Command-line options, messages and exit codes. */
#include "cli.h"

#include "core/files.h"
#include "core/shell.h"
#include "platform/files.h"
#include "platform/system.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const cli_exit_code cli_exit_codes[] = {
    {0, "ok"},
    {1, "error"},
    {EXIT_USAGE, "usage"},
    {EXIT_FIT, "does not fit"},
    {EXIT_DEVICE, "device failed"},
    {EXIT_NAN, "not finite (training stopped on it; eval and predict wrote results, some of them not finite)"},
    {EXIT_RANK_LOST, "another rank has ended or does not answer; the finished steps are saved"},
    {EXIT_TIME, "time is up"},
    {EXIT_INTERRUPTED, "interrupted"},
    {0, NULL}};

bool cli_is_terminal(int file) {
    const char *terminal = getenv("TERM");
    return isatty(file) && !(terminal && strcmp(terminal, "dumb") == 0);
}

bool cli_has_colors(int file) {
    const char *no_color = getenv("NO_COLOR");
    return cli_is_terminal(file) && !(no_color && *no_color);
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

static bool is_table(const char *word) {
    return cleat_ends_in(word, ".csv .tsv .txt .conll .xlsx");
}

#define QUOTES "; a value with blanks needs quotes, in PowerShell also one with commas"

/* Takes words[1] as the data of the profile words[0]: the setting data.path. Returns 0 or an exit code. */
static int read_data_word(const cli_command *command, const cli_list *words, cli_list *assignments) {
    static char text[CLEAT_PATH + 16]; /* as long as the assignments */
    const char *profile = words->items[0], *data = words->items[1], *dot = strrchr(data, '.');
    const bool is_data = is_table(data) || strchr(data, '/') || access(data, F_OK) == 0;
    for (size_t i = 0; i < assignments->count; ++i)
        if (strncmp(assignments->items[i], "data.path=", 10) == 0)
            return cli_usage(command, "both '%s' and %s name the data; give one of them" QUOTES, data,
                             assignments->items[i]);
    if (words->count > 2 || !is_data || (dot && strcmp(dot, ".ini") == 0))
        return cli_usage(command, "exactly one profile is expected, not '%s' and '%s'" QUOTES, profile, data);
    if (access(data, F_OK) != 0)
        return cli_usage(command, "'%s' after the profile '%s': no such file or folder of data", data, profile);
    return cli_assign(command, assignments, "data.path", data, text, sizeof text);
}

bool cli_is_one_profile(const cli_command *command, const cli_list *words, cli_list *assignments, int *exit_code) {
    cleat_profile_entry *known = NULL;
    size_t count = 0, used = 0;
    char names[1024] = "a file";
    *exit_code = 0;
    if (words->count == 1 && !is_table(words->items[0])) return true;
    if (words->count == 1)
        *exit_code =
            cli_usage(command, "'%s' is not a profile; one is expected before it, as in `cleat %s tweets_sentiment %s`",
                      words->items[0], command->name, words->items[0]);
    else if (words->count > 1)
        *exit_code = read_data_word(command, words, assignments);
    if (words->count > 0) return *exit_code == 0;
    if (cleat_profile_list(&known, &count, NULL) == CLEAT_OK)
        for (size_t i = 0; i < count && used < sizeof names; ++i)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "a file, or one of ",
                                     known[i].name);
    free(known);
    *exit_code = cli_usage(command, "a profile is expected: %s", names);
    return false;
}

bool cli_is_count(double value, double least, double most) {
    return value >= least && value <= most && value == floor(value);
}

const cli_precision_name cli_precisions[] = {{"f32", CLEAT_PRECISION_F32},
                                             {"f16", CLEAT_PRECISION_F16},
                                             {"bf16", CLEAT_PRECISION_BF16},
                                             {"tf32", CLEAT_PRECISION_TF32},
                                             {NULL, CLEAT_PRECISION_AUTO}};

int cli_precision(const cli_command *command, const char *name, cleat_precision *precision) {
    const cli_precision_name *p = cli_precisions;
    while (p->name && strcmp(name, p->name) != 0) ++p;
    if (!p->name) return cli_usage(command, "--precision %s: must be f32, f16, bf16 or tf32", name);
    *precision = p->precision;
    return 0;
}

static int code_of(cleat_status status) {
    switch (status) {
    case CLEAT_OK:
        return 0;
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
    case CLEAT_ERR_RANK_LOST:
        return EXIT_RANK_LOST;
    default:
        return EXIT_FAILURE;
    }
}

int cli_finish(cleat_status status, const cleat_error *error) {
    if (!status) return 0;
    fflush(stdout);
    fprintf(stderr, "cleat: %s\n", error->text[0] ? error->text : cleat_status_text(status));
    return code_of(status);
}

static bool lost_output; /* out of memory */

int cli_finish_output(int exit_code) {
    errno = lost_output ? ENOMEM : 0;
    if (fflush(stdout) == 0 && !ferror(stdout) && !lost_output)
        return exit_code == 0 && ferror(stderr) ? EXIT_FAILURE : exit_code;
    fprintf(stderr, "cleat: cannot write the output%s%s\n", errno ? ": " : "; the disk may be full",
            errno ? strerror(errno) : "");
    return exit_code ? exit_code : EXIT_FAILURE;
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

int cli_assign(const cli_command *command, cli_list *assignments, const char *setting, const char *value, char *text,
               size_t size) {
    if (!value) return 0;
    if (assignments->count == CLI_LIST) return cli_usage(command, "more than %d --set assignments", CLI_LIST);
    snprintf(text, size, "%s=%s", setting, value);
    assignments->items[assignments->count++] = text;
    return 0;
}

/* Adds an assignment of run.device, which lies in `text`, unless `device` is NULL. */
static void add_device(cli_list *assignments, const char *device, char text[CLEAT_PATH]) {
    if (!device) return;
    snprintf(text, CLEAT_PATH, "run.device=%s", device);
    assignments->items[assignments->count++] = text;
}

cleat_status cli_profile_as_given(const char *name, const cli_list *assignments, const char *device,
                                  cleat_profile **profile, cleat_error *error) {
    cli_list all = *assignments;
    char text[CLEAT_PATH], path[CLEAT_PATH];
    cleat_status status = cleat_profile_find(name, path, sizeof path, error);
    if (!status && strcmp(name, path) != 0) cleat_log(CLEAT_LOG_INFO, "profile %s: %s", name, path);
    add_device(&all, device, text);
    return status ? status : cleat_profile_load(path, all.items, all.count, profile, error);
}

/* With the settings that the weights of model.init determine, or those of the checkpoint of `run` unless it
 * is NULL or "". */
static cleat_status profile_of_run(const char *name, const cli_list *assignments, const char *device, const char *run,
                                   cleat_profile **profile, cleat_error *error) {
    cleat_profile *made = NULL;
    cleat_status status = cli_profile_as_given(name, assignments, device, &made, error);
    if (!status)
        status = run && *run ? cleat_profile_apply_run(made, run, error) : cleat_profile_apply_init(made, error);
    if (status) {
        cleat_profile_destroy(made);
        return status;
    }
    *profile = made;
    return CLEAT_OK;
}

cleat_status cli_profile(const char *name, const cli_list *assignments, const char *device, cleat_profile **profile,
                         cleat_error *error) {
    return profile_of_run(name, assignments, device, NULL, profile, error);
}

void cli_print_json(cleat_string *json) {
    cleat_string_add_bytes(json, "\n", 1);
    lost_output |= json->failed;
    if (!json->failed) fwrite(json->data, 1, json->size, stdout);
    fflush(stdout);
    cleat_string_free(json);
}

void cli_add_json_metrics(cleat_string *json, const char *name, const cleat_metrics *metrics) {
    json_add(json, json_open(name, '{'));
    for (size_t i = 0; i < metrics->count; ++i)
        json_add(json, json_number(metrics->items[i].name, metrics->items[i].value));
    json_add(json, json_close('}'));
}

void cli_print_metrics(const cleat_metrics *metrics) {
    for (size_t i = 0; i < metrics->count; ++i) {
        cleat_metric one = metrics->items[i];
        cleat_clean_text(one.name); /* may have a label of the data */
        printf("%-20s %.6g\n", one.name, one.value);
    }
}

cleat_status cli_join_ranks(cleat_ranks **ranks, cleat_error *error) {
    *ranks = NULL;
    if (!cleat_ranks_launched()) return CLEAT_OK;
    cleat_status status = cleat_ranks_open(ranks, error);
    if (!status && !cli_is_leader(*ranks)) cli_log_as_rank(cleat_ranks_rank(*ranks));
    return status;
}

bool cli_is_leader(const cleat_ranks *ranks) {
    return cleat_ranks_rank(ranks) == 0;
}

int cli_leave_ranks(cleat_ranks *ranks, cleat_status status, const cleat_error *error) {
    const bool prints = cli_is_leader(ranks) || status == CLEAT_ERR_RANK_LOST;
    const int exit_code = prints ? cli_finish(status, error) : code_of(status);
    if (cleat_ranks_are_broken(ranks) ||
        status == CLEAT_ERR_RANK_LOST) { /* MPI's thread waits for the rank that is lost */
        fflush(NULL);
        _exit(exit_code);
    }
    cleat_ranks_close(ranks);
    return exit_code;
}

bool cli_has_checkpoint(const cli_command *command, const cli_list *words, const char *checkpoint, int *exit_code) {
    struct stat about;
    char word[2 * CLEAT_PATH];
    if (!checkpoint && words->count == 1 && stat(words->items[0], &about) == 0 && S_ISDIR(about.st_mode))
        *exit_code = cli_usage(command, "--checkpoint is required; '%s' is a folder: --checkpoint %s?", words->items[0],
                               cleat_shell_path(words->items[0], word, sizeof word));
    else if (!checkpoint)
        *exit_code = cli_usage(command, "--checkpoint is required: a run folder, or a checkpoint folder in one");
    else if (words->count > 1)
        *exit_code =
            cli_usage(command, "at most one profile is expected: '%s', '%s'", words->items[0], words->items[1]);
    return checkpoint && words->count <= 1;
}

cleat_status cli_profile_of_checkpoint(const cli_list *words, const char *checkpoint, const cli_list *assignments,
                                       const char *device, cleat_profile **profile, cleat_error *error) {
    cli_list all = *assignments;
    char text[CLEAT_PATH];
    if (words->count) return profile_of_run(words->items[0], assignments, device, checkpoint, profile, error);
    add_device(&all, device, text);
    return cleat_profile_of_checkpoint(checkpoint, all.items, all.count, profile, error);
}

cleat_status cli_profile_of_init(const cli_list *words, const char *init, const char *first,
                                 const cli_list *assignments, const char *device, cleat_profile **profile,
                                 cleat_error *error) {
    char text[CLEAT_PATH + 32];
    cli_list all = {.items = {text, "train.lora_rank=none", "train.freeze=backbone", first}, .count = first ? 4 : 3};
    if ((size_t)snprintf(text, sizeof text, "model.init=%s", init) >= sizeof text)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "--init: path too long: %.100s...", init);
    for (size_t i = 0; i < assignments->count && all.count < CLI_LIST; ++i)
        all.items[all.count++] = assignments->items[i];
    return cli_profile(words->count ? words->items[0] : "chat", &all, device, profile, error);
}

cleat_status cli_make_temporary(const char *name, char *folder, size_t size, cleat_error *error) {
    const char *base = getenv("TMPDIR");
    const int length = snprintf(folder, size, "%s/cleat-%s-XXXXXX", base && *base ? base : "/tmp", name);
    errno = ENAMETOOLONG;
    if ((size_t)length < size && mkdtemp(folder)) return CLEAT_OK;
    cleat_fail(error, CLEAT_ERR_IO, "%s: cannot create the folder: %s; set " CLEAT_TEMPORARY, folder, strerror(errno));
    folder[0] = 0;
    return CLEAT_ERR_IO;
}

void cli_remove_temporary(const char *folder) {
    char path[CLEAT_PATH];
    struct stat about;
    const struct dirent *entry;
    DIR *entries = opendir(folder);
    while (entries && (entry = readdir(entries))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= sizeof path) continue;
        if (lstat(path, &about) == 0 && S_ISDIR(about.st_mode))
            cli_remove_temporary(path);
        else
            unlink(path);
    }
    if (entries) closedir(entries);
    rmdir(folder);
}

/* --- progress of a run: a bar, lines or none ---------------------------------------------------------------------- */

/* In a notebook of Jupyter, Kaggle or Colab `!cleat` gets a terminal, but each redrawing is kept as output.
 * Jupyter's servers set the first two for each kernel, Kaggle and Colab the others. */
static const char *const notebook_variables[] = {"JPY_PARENT_PID", "JPY_SESSION_NAME", "KAGGLE_KERNEL_RUN_TYPE",
                                                 "COLAB_RELEASE_TAG", "COLAB_GPU"};

static bool is_notebook(void) {
    for (size_t i = 0; i < sizeof notebook_variables / sizeof *notebook_variables; ++i)
        if (getenv(notebook_variables[i]) && *getenv(notebook_variables[i])) return true;
    return false;
}

bool cli_can_redraw(int file) {
    return cli_is_terminal(file) && !is_notebook();
}

static void print_progress(void *user, const char *text) {
    (void)user;
    fputs(text, stderr);
    fflush(stderr);
}

int cli_terminal_width(void) {
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    const int given = columns ? atoi(columns) : 0;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
    return given > 20 && given < 1000 ? given : 80;
}

int cli_columns(const char *text) {
    int columns = 0;
    for (; *text; ++text) columns += ((unsigned char)*text & 0xC0) != 0x80;
    return columns;
}

int cli_progress(const cli_command *command, const char *form, cleat_train_options *options) {
    const bool automatic = !form || strcmp(form, "auto") == 0, bar = !automatic && strcmp(form, "bar") == 0;
    const bool none = !automatic && strcmp(form, "none") == 0;
    if (!automatic && !bar && !none && strcmp(form, "lines") != 0)
        return cli_usage(command, "--progress %s: must be auto, bar, lines or none", form);
    options->print = none || cli_is_quiet() ? NULL : print_progress;
    options->terminal = bar || (automatic && cli_can_redraw(STDERR_FILENO));
    options->width = cli_terminal_width();
    return 0;
}
