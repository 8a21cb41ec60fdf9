/* cleat train: trains according to a profile; Ctrl-C finishes the step and writes a checkpoint. */
#include "cli.h"
#include "core/files.h"
#include "launch.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "platform/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_json(const cleat_train_report *report) {
    const cleat_startup_stats *s = &report->start;
    cleat_string json = {.spaced = true};
    json_add(&json, json_open(NULL, '{'), json_text("folder", report->folder),
             json_text("precision", cleat_dtype_name(report->storage)), json_count("epochs", report->epochs),
             json_count("steps", report->steps), json_count("skipped_steps", report->skipped_steps),
             json_count("best_step", report->best_step), json_fixed("seconds", report->seconds, 3),
             json_fixed("seconds_first_step", report->seconds_first_step, 3));
    json_add(&json, json_open("start", '{'), json_fixed("data", s->data, 6), json_fixed("device", s->device, 6),
             json_fixed("plan", s->plan, 6), json_fixed("setup", s->setup, 6), json_fixed("kernels", s->kernels, 6),
             json_fixed("step", s->step, 6), json_count("programs", s->programs), json_count("built", s->built),
             json_count("loaded", s->loaded), json_close('}'), json_bool("stopped_early", report->stopped_early));
    cli_add_json_metrics(&json, "last", &report->last);
    cli_add_json_metrics(&json, "best", &report->best);
    if (report->baseline.known)
        json_add(&json, json_open("baseline", '{'), json_clean("text", report->baseline.text),
                 json_text("metric", report->baseline.metric), json_digits("value", report->baseline.value, 9),
                 json_close('}'));
    json_add(&json, json_digits("step_seconds", report->step_seconds, 6),
             json_digits("epoch_seconds", report->epoch_seconds, 6), json_digits("run_seconds", report->run_seconds, 6),
             json_count("runs_in_budget", report->runs_in_budget), json_count("epochs_planned", report->epochs_planned),
             json_open("memory", '{'), json_count("planned", report->memory.planned),
             json_count("allocated", report->memory.allocated), json_count("peak", report->memory.peak),
             json_open("categories", '{'));
    for (int c = 0; c < CLEAT_CATEGORIES; ++c)
        json_add(&json, json_count(cleat_category_name((cleat_category)c), report->memory.category_bytes[c]));
    json_add(&json, json_close('}'), json_close('}'), json_close('}'));
    cli_print_json(&json);
}

static void print_evaluation(const cleat_train_report *report) {
    if (report->best.count)
        printf("best evaluation (step %lld):\n", (long long)report->best_step);
    else if (!report->last.count)
        return;
    else if (isfinite(report->best_metric))
        printf("last evaluation (the best one was earlier, at step %lld):\n", (long long)report->best_step);
    else
        printf("no evaluation was finite; the last evaluation:\n");
    cli_print_metrics(report->best.count ? &report->best : &report->last);
    const cleat_baseline *b = &report->baseline;
    const double reached = cleat_metrics_get(&report->best, b->metric);
    const bool is_beaten = b->ascends ? !(reached > b->value) : !(reached < b->value);
    if (b->known && report->best.count)
        printf("%s: %s %.6g, by %s\n", is_beaten ? "not better than a baseline" : "baseline", b->metric, b->value,
               b->text);
}

static void print_report(const cleat_train_report *report) {
    printf("\n%lld epochs, %lld steps in %.1f s (first step after %.2f s), %.1f MiB on the device%s\n",
           (long long)report->epochs, (long long)report->steps, report->seconds, report->seconds_first_step,
           (double)report->memory.allocated / 1048576.0, report->stopped_early ? "; stopped early" : "");
    if (report->skipped_steps)
        printf("%lld of the steps were skipped: their gradient overflowed f16 (loss_scale in metrics.jsonl)\n",
               (long long)report->skipped_steps);
    print_evaluation(report);
    printf("run folder: %s\n", report->folder);
    char folder[2 * CLEAT_PATH];
    if (cleat_shell_word(report->folder, folder, sizeof folder))
        printf("report of this run: cleat report %s\n", folder);
}

static cleat_status open_profile(const char *path, const cli_list *assignments, const char *device,
                                 const cleat_train_options *options, cleat_profile **profile, cleat_error *error) {
    cleat_status status = cli_profile_as_given(path, assignments, device, profile, error);
    if (status) return status;
    /* The folder that has the checkpoint to continue from; NULL: none, or it is not known. */
    const char *own = options->out ? options->out : *(*profile)->run.out ? (*profile)->run.out : NULL;
    const char *run = options->resume_from ? options->resume_from : options->resume ? own : NULL;
    return run ? cleat_profile_apply_run(*profile, run, error) : cleat_profile_apply_init(*profile, error);
}

static int train(const char *path, const cli_list *assignments, const char *device, bool json,
                 cleat_train_options *options) {
    cleat_error error = {0};
    cleat_profile *profile = NULL;
    cleat_train_report report = {.folder = ""};
    cleat_status status = cli_join_ranks(&options->ranks, &error);
    const bool leads = cli_is_leader(options->ranks);
    if (!leads) options->print = NULL;
    if (!status)
        status = cleat_ranks_agree(options->ranks, open_profile(path, assignments, device, options, &profile, &error),
                                   &error);
    if (!status) {
        cli_stop_on_signals(options);
        status = cleat_train(profile, options, &report, &error);
    }
    if (leads && (!status || report.steps > 0)) {
        if (json)
            print_json(&report);
        else if (!cli_is_quiet())
            print_report(&report);
    }
    cleat_profile_destroy(profile);
    return cli_leave_ranks(options->ranks, status, &error);
}

static cleat_status choose_folder(const cleat_profile *profile, const cleat_train_options *options, char *folder,
                                  size_t size, bool *given, cleat_error *error) {
    char name[CLEAT_RUN_NAME];
    const char *wanted = options->out ? options->out : profile->run.out;
    *given = *wanted && strcmp(wanted, "auto") != 0;
    cleat_status status = *given ? CLEAT_OK : cleat_run_name(profile, name, error);
    if (!status) snprintf(folder, size, "%s", *given ? wanted : name);
    return status;
}

/* --- cross-validation ----------------------------------------------------------------------------------------- */

/* Prints mean and standard deviation of each metric over the folds, and writes all to OUT/folds.json. */
static cleat_status summarise(const char *out, const cleat_metrics *metrics, size_t folds, bool json,
                              cleat_error *error) {
    char path[CLEAT_PATH + 32];
    cleat_string text = {.spaced = true};
    cleat_metrics mean = {.count = 0}, std = {.count = 0};
    if (!json) printf("\n%-20s %12s %12s\n", "", "mean", "std");
    for (size_t i = 0; i < metrics[0].count; ++i) {
        const char *name = metrics[0].items[i].name;
        double sum = 0, squares = 0;
        for (size_t k = 0; k < folds; ++k) sum += cleat_metrics_get(&metrics[k], name);
        for (size_t k = 0; k < folds; ++k)
            squares += pow(cleat_metrics_get(&metrics[k], name) - sum / (double)folds, 2);
        cleat_metrics_add(&mean, name, sum / (double)folds);
        cleat_metrics_add(&std, name, sqrt(squares / (double)(folds - 1)));
        if (!json) printf("%-20s %12.6g %12.6g\n", name, mean.items[i].value, std.items[i].value);
    }
    json_add(&text, json_open(NULL, '{'), json_open("folds", '['));
    for (size_t k = 0; k < folds; ++k) cli_add_json_metrics(&text, NULL, &metrics[k]);
    json_add(&text, json_close(']'));
    cli_add_json_metrics(&text, "mean", &mean);
    cli_add_json_metrics(&text, "std", &std);
    json_add(&text, json_close('}'));
    snprintf(path, sizeof path, "%s/folds.json", out);
    cleat_status status = cleat_file_write(path, text.data, text.size, error);
    if (json) cli_print_json(&text);
    if (json) return status;
    cleat_string_free(&text);
    printf("predictions of the model that was not trained on the sample: %s/out-of-fold\n", out);
    return status;
}

cleat_status cli_evaluate_folds(const char *out, size_t folds, const char *device, bool json, cleat_error *error) {
    const cli_list none = {.count = 0}, place = {.items = {out}, .count = 1};
    char path[CLEAT_PATH + 32];
    cleat_metrics metrics[CLEAT_MAX_MEMBERS];
    cli_members members = {.count = 0};
    snprintf(path, sizeof path, "%s/out-of-fold", out);
    cleat_status status = cli_members_open(&none, &place, &none, device, &members, error);
    if (!status && members.count != folds)
        status = cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s has %zu folds, not %zu: give another --out", out,
                            members.count, folds);
    if (!status) status = cleat_evaluate_folds(members.items, folds, path, metrics, error);
    if (!status) status = summarise(out, metrics, folds, json, error);
    cli_members_close(&members);
    return status;
}

/* Trains the folds in turn, each in its own run folder; with `resume`, those that have a checkpoint continue. */
static int train_folds(const char *path, const cli_list *assignments, const char *device, size_t folds, bool json,
                       const cleat_train_options *options) {
    char folder[CLEAT_PATH], run[CLEAT_PATH + 32], last[CLEAT_PATH + 64], count[32], number[32];
    cleat_error error = {0};
    cleat_profile *profile = NULL;
    bool given;
    int exit_code = 0;
    cli_list all = *assignments;
    snprintf(count, sizeof count, "data.folds=%zu", folds);
    all.items[all.count++] = count;
    all.items[all.count++] = number;
    snprintf(number, sizeof number, "data.fold=1");
    cleat_status status = all.count > CLI_LIST
                              ? cleat_fail(&error, CLEAT_ERR_ARGUMENT, "too many settings: put some into the profile")
                              : cli_profile_as_given(path, assignments, device, &profile, &error);
    if (!status && !cleat_profile_key_help(profile, "data.folds"))
        status = cleat_fail(&error, CLEAT_ERR_ARGUMENT,
                            "--folds: the samples of this model are in the order of time, which folds would mix");
    if (!status) status = choose_folder(profile, options, folder, sizeof folder, &given, &error);
    cleat_profile_destroy(profile);
    for (size_t k = 1; k <= folds && !status && !exit_code; ++k) {
        cleat_train_options fold = *options;
        snprintf(number, sizeof number, "data.fold=%zu", k);
        snprintf(run, sizeof run, "%s/fold-%zu", folder, k);
        snprintf(last, sizeof last, "%s/last", run);
        fold.out = run;
        fold.resume = options->resume && cleat_file_exists(last);
        if (!json && !cli_is_quiet()) printf("\n== fold %zu of %zu\n", k, folds);
        exit_code = train(path, &all, device, json, &fold);
    }
    if (exit_code == EXIT_INTERRUPTED || exit_code == EXIT_TIME)
        cleat_log(CLEAT_LOG_WARNING, "%s: not all folds are trained: to continue, add --folds %zu --out %s --resume",
                  folder, folds, folder);
    if (exit_code) return exit_code;
    if (!status) status = cli_evaluate_folds(folder, folds, device, json, &error);
    return cli_finish(status, &error);
}

/* Whether argv[at] is a setting without a --set before it. */
static bool is_bare_setting(char **argv, int at, const cli_list *assignments) {
    if (at > 0 && strcmp(argv[at - 1], "--set") == 0) return false;
    for (size_t i = 0; i < assignments->count; ++i)
        if (assignments->items[i] == argv[at]) return true;
    return false;
}

/* "cleat train ARGUMENTS", with quotes where a shell needs them and --set before every setting, for the
 * records of the run; "" if a word has no form for the shells, or no room: a part would train something else. */
static void join_command(int argc, char **argv, const cli_list *words, const cli_list *assignments, char *text,
                         size_t size) {
    size_t used = (size_t)snprintf(text, size, "cleat train");
    for (int i = 0; i < argc; ++i) {
        const bool is_data = words->count > 1 && argv[i] == words->items[1]; /* it became a setting */
        used += (size_t)snprintf(text + used, size - used, "%s",
                                 is_data                                 ? " --set data.path="
                                 : is_bare_setting(argv, i, assignments) ? " --set "
                                                                         : " ");
        if (used >= size || !cleat_shell_word(argv[i], text + used, size - used)) {
            *text = 0;
            return;
        }
        used += strlen(text + used);
    }
}

typedef struct device_options {
    launch_options where;
    const char *progress;
    double restarts;
} device_options;

/* The command line of each rank, with the supervisor's folder. A rank writes to a pipe, so it is told whether
 * to print a bar. */
static cleat_status write_words(const cli_command *command, int argc, char **argv, const device_options *options,
                                const char *folder, bool given_folder, launch_words *words, cleat_error *error) {
    char columns[16];
    cleat_status status = launch_rank_words(command, argc, argv, words, error);
    if (status) return status;
    if (!given_folder) launch_add(words, "--out=%s", folder);
    if (!options->progress && cli_can_redraw(STDERR_FILENO)) {
        launch_add(words, "--progress=bar");
        snprintf(columns, sizeof columns, "%d", cli_terminal_width());
        setenv("COLUMNS", columns, 1);
    }
    return CLEAT_OK;
}

/* Starts one process for each device and waits for all. */
static int train_on(const cli_command *command, const char *path, const cli_list *assignments,
                    const cleat_train_options *options, const device_options *several, launch_ranks *ranks, int argc,
                    char **argv) {
    cleat_error error = {0};
    cleat_profile *profile = NULL;
    launch_words words = {.count = 0};
    char folder[CLEAT_PATH];
    bool given;
    int exit_code = 0;
    cleat_status status = open_profile(path, assignments, NULL, options, &profile, &error);
    if (!status) status = choose_folder(profile, options, folder, sizeof folder, &given, &error);
    if (!status) status = write_words(command, argc, argv, several, folder, given, &words, &error);
    if (!status)
        exit_code = launch_all(&(launch_request){.ranks = ranks,
                                                 .words = &words,
                                                 .folder = folder,
                                                 .restarts = (int)several->restarts,
                                                 .shares = &profile->distribute.shares});
    launch_words_free(&words);
    cleat_profile_destroy(profile);
    return status ? cli_finish(status, &error) : exit_code;
}

/* One device needs neither other processes nor MPI. */
static int train_several(const cli_command *command, const char *path, const cli_list *assignments,
                         cleat_train_options *options, const device_options *several, bool json, int argc,
                         char **argv) {
    launch_ranks *ranks = NULL;
    cleat_error error = {0};
    int exit_code = 0;
    cleat_status status = launch_find_ranks(&several->where, &ranks, &error);
    if (status)
        exit_code = cli_finish(status, &error);
    else if (ranks->count == 1 && !several->where.hosts)
        exit_code = train(path, assignments, ranks->items[0].selector, json, options);
    else
        exit_code = train_on(command, path, assignments, options, several, ranks, argc, argv);
    free(ranks);
    return exit_code;
}

/* Bytes of a line that is not indented, or of a setting with its indented description. */
static size_t block_size(const char *text) {
    size_t size = strcspn(text, "\n");
    while (text[size] && strncmp(text + size + 1, "      ", 6) == 0) size += 1 + strcspn(text + size + 1, "\n");
    return text[size] ? size + 1 : size;
}

/* Prints the settings of the section called `word`, or those in whose name or description it occurs, as
 * SECTION.KEY; returns their number. */
static size_t print_matches(const char *help, const char *word) {
    char section[CLI_NAME] = "", setting[4096], title[CLI_NAME + 3];
    size_t found = 0, size;
    snprintf(title, sizeof title, "\n[%.*s]", CLI_NAME - 1, word);
    const bool is_section = strstr(help, title) != NULL;
    for (const char *at = help; *at; at += size) {
        size = block_size(at);
        if (*at == '[') snprintf(section, sizeof section, "%.*s", (int)strcspn(at + 1, "]"), at + 1);
        if (strncmp(at, "  ", 2) != 0) continue;
        snprintf(setting, sizeof setting, "%s.%.*s", section, (int)size - 2, at + 2);
        if (is_section ? strcmp(section, word) != 0 : !strcasestr(setting, word)) continue;
        fputs(setting, stdout);
        ++found;
    }
    return found;
}

static int print_profile_help(const cli_command *command, const cli_list *words) {
    char *text = NULL;
    cleat_error error = {0};
    cleat_status status = cleat_profile_help(&text, &error);
    int exit_code = cli_finish(status, &error);
    if (!status && words->count == 0) printf("%s", text);
    for (size_t i = 0; i < words->count && !exit_code; ++i)
        if (print_matches(text, words->items[i]) == 0)
            exit_code = cli_usage(command,
                                  "--help-profile %s: no section, and in the text of no setting; without a word, "
                                  "all are listed",
                                  words->items[i]);
    free(text);
    return exit_code;
}

static int run(const cli_command *command, int argc, char **argv) {
    const char *device = NULL, *out = NULL, *time_budget = NULL, *batch_size = NULL, *resume_from = NULL;
    const char *schedule = NULL, *progress = NULL, *init = NULL;
    const char *fold_column = NULL;
    double folds = 0;
    device_options several = {.restarts = 3};
    double until = NAN;
    cli_list assignments = {.count = 0}, words = {.count = 0};
    bool resume = false, json = false, help_profile = false, check_finite = false;
    const cli_option options[] = {
        {"--device", CLI_TEXT, &device, "SEL",
         "device: auto, gpu, cpu, a number of `cleat devices`, or part of a device name"},
        LAUNCH_OPTIONS(several.where, "train"),
        {"--restarts", CLI_NUMBER, &several.restarts, "N",
         "maximum restarts within 10 minutes after losing a rank, with the remaining devices (3)"},
        {"--out", CLI_TEXT, &out, "DIR", "run folder"},
        {"--resume", CLI_FLAG, &resume, NULL,
         "resume from the last checkpoint in the run folder; with a larger train.epochs, a finished run continues if "
         "train.schedule is constant or step"},
        {"--resume-from", CLI_TEXT, &resume_from, "DIR",
         "start a new run folder from the last checkpoint of the run folder DIR, or from the checkpoint folder DIR, "
         "which is only read; the learning-rate schedule may differ"},
        {"--folds", CLI_NUMBER, &folds, "K",
         "cross-validation: K runs in DIR/fold-1 to fold-K, each validated by a K-th of the samples; predict with "
         "--checkpoint DIR"},
        {"--fold-column", CLI_TEXT, &fold_column, "NAME",
         "rows with equal values of this column are in one fold: data.fold_column"},
        CLI_SET(&assignments),
        {"--batch-size", CLI_TEXT, &batch_size, "N",
         "global batch size in samples per optimizer step: train.effective_batch_size"},
        {"--time-budget", CLI_TEXT, &time_budget, "TIME",
         "time limit of all processes of the run together, e.g. 30h, or 30h/12h: and of each of them: run.time_budget"},
        {"--until-epoch", CLI_NUMBER, &until, "N",
         "stop with a checkpoint after epoch N (exit code 75), with the schedule of all epochs; --resume continues"},
        {"--check-finite", CLI_FLAG, &check_finite, NULL,
         "check every tensor and stop at the first non-finite one, except overflows caused by f16's loss scale (slow): "
         "run.check_finite"},
        {"--trace", CLI_TEXT, &schedule, "SCHEDULE",
         "steps whose kernels are timed (run.trace), e.g. wait=5,warmup=2,active=3,repeat=2"},
        CLI_INIT(&init),
        CLI_PROGRESS(&progress),
        {"--json", CLI_FLAG, &json, NULL, "print the report as one JSON object"},
        {"--help-profile", CLI_FLAG, &help_profile, NULL,
         "list every setting of a profile, or those of a section (`--help-profile train`) or with a word"},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (help_profile) return print_profile_help(command, &words);
    if (!cli_is_one_profile(command, &words, &assignments, &exit_code)) return exit_code;
    if (launch_guard(&exit_code)) return exit_code;
    const bool on_several = launch_is_asked(command, &several.where, device, &exit_code);
    if (exit_code) return exit_code;
    if (!cli_is_count(several.restarts, 0, 64))
        return cli_usage(command, "--restarts %g: must be a whole number from 0 to 64", several.restarts);
    if (!isnan(until) && !cli_is_count(until, 1, 1e6))
        return cli_usage(command, "--until-epoch %g: must be a whole number from 1 to 1000000", until);
    if (folds != 0 && (!cli_is_count(folds, 2, CLEAT_MAX_MEMBERS) || on_several || resume_from))
        return cli_usage(command, "--folds must be from 2 to %d, and goes with neither --devices nor --resume-from",
                         CLEAT_MAX_MEMBERS);
    if (resume && resume_from)
        return cli_usage(command,
                         "--resume continues in the run's own folder, --resume-from in a new one: give only one "
                         "of them");
    const struct {
        const char *key, *value;
    } shortcuts[] = {{"run.time_budget", time_budget},
                     {"train.effective_batch_size", batch_size},
                     {"run.check_finite", check_finite ? "true" : NULL},
                     {"run.trace", schedule},
                     {"data.fold_column", fold_column},
                     {"model.init", init}};
    enum { SHORTCUTS = sizeof shortcuts / sizeof shortcuts[0] };
    char texts[SHORTCUTS][CLEAT_PATH];
    for (int i = 0; i < SHORTCUTS; ++i) {
        exit_code = cli_assign(command, &assignments, shortcuts[i].key, shortcuts[i].value, texts[i], sizeof texts[i]);
        if (exit_code) return exit_code;
    }
    char command_line[4096];
    join_command(argc, argv, &words, &assignments, command_line, sizeof command_line);
    cleat_train_options train_options = {.out = out,
                                         .command = command_line,
                                         .profile_path = words.items[0],
                                         .compile_helpers = cli_compilers(),
                                         .resume = resume,
                                         .resume_from = resume_from,
                                         .until_epoch = isnan(until) ? 0 : (int64_t)until};
    exit_code = cli_progress(command, progress, &train_options);
    if (exit_code) return exit_code;
    if (folds != 0) return train_folds(words.items[0], &assignments, device, (size_t)folds, json, &train_options);
    several.progress = progress;
    if (on_several)
        return train_several(command, words.items[0], &assignments, &train_options, &several, json, argc, argv);
    return train(words.items[0], &assignments, device, json, &train_options);
}

const cli_command cli_train = {
    "train",
    "PROFILE [DATA] [--device SEL | --devices LIST [--hosts HOSTS]] [--out DIR] [--resume | --resume-from DIR] "
    "[--batch-size N] [--time-budget TIME] [--until-epoch N] [--folds K [--fold-column NAME]] [--check-finite] "
    "[--trace SCHEDULE] [--init PATH] "
    "[--progress FORM] [--set section.key=value ...] [--json]",
    "train a model described by a profile", run};
