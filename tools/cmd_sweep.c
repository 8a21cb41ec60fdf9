/* cleat sweep: trains a profile with each combination of some values, or with drawn ones, and compares the runs. */
#include "core/files.h"
#include "core/lock.h"
#include "platform/files.h"
#include "sweep.h"

#include <cleat/report.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes settings with several values, which are words of their own, not values of --set, out of those of all runs. */
static void divide_settings(int argc, char **argv, cli_list *settings, cli_list *axes) {
    size_t count = 0;
    for (size_t i = 0; i < settings->count; ++i) {
        const char *item = settings->items[i];
        int at = 0;
        while (at < argc && argv[at] != item) ++at;
        const bool is_word = at < argc && (at == 0 || strcmp(argv[at - 1], "--set") != 0);
        cli_list *list = is_word && cleat_sweep_is_axis(item) ? axes : settings;
        list->items[list == axes ? axes->count++ : count++] = item;
    }
    settings->count = count;
}

/* Checks each combination as `cleat train` does, before the first run starts. */
static cleat_status check_points(const char *path, const cli_list *settings, bool halves, const cleat_sweep *points,
                                 cleat_error *error) {
    cleat_status status = CLEAT_OK;
    char folds[32];
    bool has_fold = false;
    for (size_t a = 0; a < points->n_axes && halves; ++a)
        if (strcmp(points->axes[a], "train.epochs") == 0 || strcmp(points->axes[a], "run.evaluate_every_epochs") == 0)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "--halving needs the same %s for all runs", points->axes[a]);
    if (settings->count + points->n_axes > CLI_LIST)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "more than %d settings: put some into the profile", CLI_LIST);
    for (size_t i = 0; i < points->count && !status; ++i) {
        cleat_profile *profile = NULL;
        cli_list all = *settings;
        for (size_t a = 0; a < points->n_axes; ++a) all.items[all.count++] = points->points[i].assignments[a];
        for (size_t a = 0; a < all.count; ++a) has_fold |= strncmp(all.items[a], "data.fold=", 10) == 0;
        status = cli_profile(path, &all, NULL, &profile, error);
        if (!status) status = cleat_profile_check_training(profile, error);
        if (!status && halves && profile->run.evaluate_every_epochs < 1)
            status = cleat_fail(error, CLEAT_ERR_ARGUMENT, "--halving needs run.evaluate_every_epochs");
        if (!status && !has_fold && !cleat_profile_get(profile, "data.folds", folds, sizeof folds, NULL) &&
            strcmp(folds, "none") != 0)
            status = cleat_fail(error, CLEAT_ERR_ARGUMENT, "data.folds=%s: to train all, add data.fold=1,2,...", folds);
        if (status) status = cleat_fail_in(error, status, "run %s", points->points[i].name);
        cleat_profile_destroy(profile);
    }
    return status;
}

/* Locks the folder. Children keep the lock: the next sweep waits until those of a killed one have saved their steps. */
static cleat_status open_folder(const char *out, cleat_error *error) {
    char path[CLEAT_PATH + 32];
    int lock;
    snprintf(path, sizeof path, "%s/.sweep", out);
    cleat_status status = cleat_folder_make(out, error);
    if (!status) status = cleat_lock(path, 1, &lock, error);
    if (status == CLEAT_ERR_TIME_UP) {
        cleat_log(CLEAT_LOG_WARNING, "%s: runs of another sweep have not ended; waiting for 30 s", out);
        status = cleat_lock(path, 30, &lock, error);
    }
    if (status == CLEAT_ERR_TIME_UP)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "another sweep trains in %s: wait, or give another --out", out);
    if (!status) (void)fcntl(lock, F_SETFD, 0);
    return status == CLEAT_ERR_NOT_SUPPORTED ? CLEAT_OK : status;
}

/* A sweep that continues must have the profile stored in its folder, except for where, how long and how it runs. */
static cleat_status check_base(const char *out, const cleat_profile *base, cleat_error *error) {
    static const char *const more[] = {"model.type", "model.init", "data.path", "run.metric", NULL};
    char path[CLEAT_PATH + 32], changes[2 * CLEAT_PATH + 64], was[CLEAT_PATH], is[CLEAT_PATH], *text = NULL;
    cleat_profile *stored = NULL;
    cleat_status status = CLEAT_OK;
    bool differs = false;
    snprintf(path, sizeof path, "%s/sweep.ini", out);
    if (!cleat_file_exists(path)) {
        status = cleat_profile_dump(base, &text, error);
        if (!status) status = cleat_file_write(path, text, strlen(text), error);
        free(text);
    }
    if (!status) status = cleat_profile_load(path, NULL, 0, &stored, error);
    for (size_t i = 0; !status && !differs && more[i]; ++i) {
        status = cleat_profile_get(stored, more[i], was, sizeof was, error);
        if (!status) status = cleat_profile_get(base, more[i], is, sizeof is, error);
        if ((differs = !status && strcmp(was, is) != 0))
            snprintf(changes, sizeof changes, "%s = %s (was %s)", more[i], is, was);
    }
    if (!status && (differs || cleat_profile_differences(stored, base, changes, sizeof changes) > 0))
        status = cleat_fail(error, CLEAT_ERR_PROFILE,
                            "%s was begun with other settings: %s. Give them again, or another --out", out, changes);
    cleat_profile_destroy(stored);
    return status;
}

/* Ends the runs that are not among the better ones after `epoch`. */
static void halve(sweep *s, bool ascends, int64_t ratio, int64_t epoch, bool *is_in) {
    double values[CLEAT_SWEEP_POINTS];
    for (size_t i = 0; i < s->count; ++i) {
        cleat_run_summary summary;
        values[i] = NAN;
        if (!is_in[i] || s->runs[i].is_failed || s->runs[i].is_late) continue;
        if (cleat_run_summary_read(s->runs[i].folder, NULL, epoch, &summary, NULL)) continue;
        values[i] = summary.best;
        cleat_run_summary_free(&summary);
    }
    cleat_sweep_keep(values, s->count, ascends, ratio, is_in);
    for (size_t i = 0; i < s->count; ++i)
        if (isfinite(values[i]) && !is_in[i]) s->runs[i].halved = epoch;
}

/* Trains all runs, with halving in rounds; returns whether the user has stopped it. `ratio` 0: no halving. */
static bool train_all(sweep *s, const cleat_profile *base, int64_t ratio) {
    int64_t rungs[CLEAT_SWEEP_RUNGS];
    bool is_in[CLEAT_SWEEP_POINTS], stopped = false;
    size_t rounds = 1;
    if (ratio) rounds = cleat_sweep_rungs(s->count, base->train.epochs, base->run.evaluate_every_epochs, ratio, rungs);
    if (ratio && rounds == 1) cleat_log(CLEAT_LOG_WARNING, "too few runs or epochs for --halving: no run is stopped");
    for (size_t i = 0; i < s->count; ++i) is_in[i] = true;
    for (size_t round = 0; round < rounds && !stopped; ++round) {
        const bool is_last = round + 1 == rounds;
        stopped = sweep_train(s, is_in, is_last ? 0 : rungs[round]);
        if (!stopped && !is_last) halve(s, cleat_profile_metric_ascends(base), ratio, rungs[round], is_in);
    }
    return stopped;
}

/* The table of all runs in the folder, the page, and the command that predicts with the best run. */
static cleat_status print_results(const sweep *s, cleat_error *error) {
    cleat_run_list list = {.count = 0};
    const char *folders[CLEAT_REPORT_RUNS];
    char path[CLEAT_PATH + 32], word[2 * CLEAT_PATH];
    size_t shown = 0;
    cleat_status status = cleat_run_list_read(s->out, NULL, &list, error);
    if (status) return status;
    cleat_run_list_sort(&list, "metric");
    for (size_t r = 0; r < list.count; ++r)
        for (size_t i = 0; i < s->count; ++i)
            if (s->runs[i].halved && list.items[r].state == CLEAT_RUN_STOPPED &&
                strcmp(s->runs[i].point->name, list.items[r].name) == 0)
                snprintf(list.items[r].note, sizeof list.items[r].note, "stopped at epoch %lld by halving",
                         (long long)s->runs[i].halved);
    status = runs_print(&list, error);
    for (; shown < list.count && shown < CLEAT_REPORT_RUNS; ++shown) folders[shown] = list.items[shown].folder;
    snprintf(path, sizeof path, "%s/report.html", s->out);
    if (!status && shown) status = cleat_report_write(folders, shown, &(cleat_report_options){.out = path}, error);
    cleat_path_for_user(path);
    if (!status && shown) printf("\nthe runs as a page: %s\n", path);
    if (!status && shown && isfinite(list.items[0].best) && cleat_shell_word(folders[0], word, sizeof word))
        printf("predict with the best: cleat predict --checkpoint %s --data DATA\n", word);
    cleat_run_list_free(&list);
    return status;
}

static cleat_status train_points(sweep *s, const cleat_sweep *points, const cleat_profile *base, int64_t ratio,
                                 int *exit_code, cleat_error *error) {
    s->runs = calloc(points->count, sizeof *s->runs);
    if (!s->runs) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu runs", points->count);
    for (; s->count < points->count; ++s->count) {
        sweep_run *run = &s->runs[s->count];
        run->point = &points->points[s->count];
        if ((size_t)snprintf(run->folder, CLEAT_PATH, "%s/%s", s->out, run->point->name) >= CLEAT_PATH)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "--out: path too long: %.200s...", s->out);
    }
    s->metric = base->run.metric;
    if (train_all(s, base, ratio)) {
        fprintf(stderr, "cleat: interrupted; the same command continues\n");
        *exit_code = EXIT_INTERRUPTED;
        return CLEAT_OK;
    }
    for (size_t i = 0; i < s->count; ++i) {
        if (s->runs[i].is_late && !*exit_code) *exit_code = EXIT_TIME;
        if (s->runs[i].is_failed) *exit_code = EXIT_FAILURE;
    }
    return print_results(s, error);
}

static void begin_words(const char *path, const char *out, const cli_list *settings, sweep *s) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    snprintf(s->out, sizeof s->out, "%s%.*s", out ? out : "runs/sweep-", out ? 0 : (int)strcspn(name, "."), name);
    launch_add(&s->train, "cleat");
    launch_add(&s->train, "train");
    launch_add(&s->train, "%s", path);
    for (size_t i = 0; i < settings->count; ++i) launch_add(&s->train, "--set=%s", settings->items[i]);
}

static int run(const cli_command *command, int argc, char **argv) {
    const char *device = NULL, *devices = NULL, *init = NULL, *out = NULL;
    double draws = 0, seed = 1, halving = -3;
    cli_list settings = {.count = 0}, axes = {.count = 0}, words = {.count = 0};
    const cli_option options[] = {
        {"--random", CLI_NUMBER, &draws, "N",
         "N drawn runs, not all combinations: lists and ranges KEY=LOW..HIGH uniformly, positive floats log-uniformly"},
        {"--seed", CLI_NUMBER, &seed, "S", "seed of the draws (1); a larger N adds runs"},
        {"--halving", CLI_MAYBE, &halving, "[R]",
         "successive halving: after train.epochs / R^k epochs, the better 1/R of the runs goes on (R: 3)"},
        {"--out", CLI_TEXT, &out, "DIR",
         "folder of the runs (runs/sweep-PROFILE); the same command again continues, other values add runs"},
        CLI_DEVICE(&device),
        {"--devices", CLI_TEXT, &devices, "LIST",
         "one run at a time on each of these devices: numbers or names of `cleat devices`, 3*NAME, gpu or all"},
        CLI_INIT(&init),
        {"--set", CLI_REPEATED, &settings, "SECTION.KEY=VALUE",
         "a setting of all runs, as every bare one without commas. Commas separate values of runs, blanks the "
         "numbers of a list: \"data.buckets=64 128,32 64\""},
        {NULL, CLI_FLAG, NULL, NULL, NULL}};
    int exit_code;
    char init_text[CLEAT_PATH], device_text[CLEAT_PATH], path[CLEAT_PATH];
    if (!cli_parse(command, options, argc, argv, &words, &exit_code)) return exit_code;
    if (!cli_is_one_profile(command, &words, &settings, &exit_code)) return exit_code;
    if (device && devices) return cli_usage(command, "--device names one device, --devices several: give one of them");
    if (draws != 0 && !cli_is_count(draws, 1, CLEAT_SWEEP_POINTS))
        return cli_usage(command, "--random %g: must be a whole number from 1 to %d", draws, CLEAT_SWEEP_POINTS);
    if (!cli_is_count(seed, 0, 4294967295.0)) return cli_usage(command, "--seed %g: must be from 0 to 2^32 - 1", seed);
    if (halving != -3 && !cli_is_count(halving, 2, 1000))
        return cli_usage(command, "--halving %g: must be a whole number from 2 to 1000", halving);
    divide_settings(argc, argv, &settings, &axes);
    if (axes.count == 0)
        return cli_usage(command, "no setting has several values, such as train.learning_rate=0.001,0.003");
    exit_code = cli_assign(command, &settings, "model.init", init, init_text, sizeof init_text);
    if (!exit_code) exit_code = cli_assign(command, &settings, "run.device", device, device_text, sizeof device_text);
    if (exit_code) return exit_code;
    sweep s = {.count = 0};
    cleat_error error = {0};
    cleat_profile *base = NULL;
    cleat_sweep *points = NULL;
    cleat_status status = cleat_profile_find(words.items[0], path, sizeof path, &error);
    if (!status) status = cli_profile_as_given(path, &settings, NULL, &base, &error);
    if (!status)
        status = cleat_sweep_create(base, axes.items, axes.count, (int64_t)draws, (uint64_t)seed, &points, &error);
    if (!status) status = check_points(path, &settings, halving > 0, points, &error);
    if (!status && devices) status = launch_find_ranks(&(launch_options){.devices = devices}, &s.ranks, &error);
    begin_words(path, out, &settings, &s);
    if (!status) status = open_folder(s.out, &error);
    if (!status) status = check_base(s.out, base, &error);
    if (!status) status = train_points(&s, points, base, halving > 0 ? (int64_t)halving : 0, &exit_code, &error);
    launch_words_free(&s.train);
    free(s.runs);
    free(s.ranks);
    cleat_sweep_free(points);
    cleat_profile_destroy(base);
    return status ? cli_finish(status, &error) : exit_code;
}

const cli_command cli_sweep = {
    "sweep",
    "PROFILE SECTION.KEY=V1,V2,... [...] [--random N [--seed S]] [--halving [R]] [--out DIR] [--device SEL | --devices "
    "LIST] [--init PATH] [--set section.key=value ...]",
    "train a profile with each combination of some values, and compare the runs", run};
