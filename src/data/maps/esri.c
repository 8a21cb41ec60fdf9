/* Reader of maps over time from ESRI ASCII grids, one file per day and channel: NAME_YYYYMMDD.asc. */
#include "data/maps/maps.h"
#include "platform/text.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"
#include "data/common/faults.h"
#include "data/common/time.h"
#include "data/maps/esri_grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DAY = 86400, DATE_TEXT = 11 };

typedef struct grid_file {
    char *file;    /* file name in the folder; owned */
    char *channel; /* the name before _YYYYMMDD.asc; owned */
    int64_t day;   /* since 1970-01-01 */
} grid_file;

/* A day of the data: its files, and the indices of its grids. */
typedef struct map_day {
    int64_t day;
    const grid_file **files; /* [used], NULL: none */
    int64_t step, target;    /* -1: none */
} map_day;

typedef struct reader {
    const char *folder;
    const cleat_maps_options *options;
    cleat_maps *maps;
    grid_file *files; /* sorted by channel and day */
    size_t n_files, capacity;
    cleat_name_list used;  /* the inputs in their order, then the target unless it is one of them */
    size_t inputs, target; /* the target is used.names[target] */
    map_day *days;         /* sorted by time */
    size_t n_days, days_capacity;
    int64_t incomplete;    /* days with missing files */
    cleat_esri_grid first; /* without values; all other grids must match it */
    char first_path[CLEAT_FILE_PATH];
} reader;

static const char *date_text(int64_t day, char text[CLEAT_TIME_TEXT]) {
    cleat_time_text(day * DAY, text);
    text[DATE_TEXT - 1] = 0;
    return text;
}

/* --- files ---------------------------------------------------------------------------------------------------- */

/* Parses the date of eight digits at `text`. Returns NULL, or what is wrong with it. */
static const char *parse_date(const char *text, int64_t *day) {
    char iso[DATE_TEXT];
    int64_t seconds = 0;
    cleat_time_form form = {0};
    snprintf(iso, sizeof iso, "%.4s-%.2s-%.2s", text, text + 4, text + 6);
    const char *wrong = cleat_time_parse(iso, true, &seconds, &form);
    *day = seconds / DAY - (seconds % DAY < 0);
    return wrong;
}

static cleat_status add_file(reader *r, const char *name, cleat_error *error) {
    size_t stem = (size_t)(strrchr(name, '.') - name), date = stem > 8 ? stem - 8 : 0;
    int64_t day = 0;
    if (date < 2 || name[date - 1] != '_' || strspn(name + date, "0123456789") != 8)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s/%s: no date in the name; grids are named NAME_YYYYMMDD.asc. Rename the file, or move it "
                          "out of the folder",
                          r->folder, name);
    const char *wrong = parse_date(name + date, &day);
    if (wrong)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s/%s: '%.8s' %s; the name must end in YYYYMMDD", r->folder, name,
                          name + date, wrong);
    cleat_status status = cleat_grow(&r->files, r->n_files, &r->capacity, error);
    if (status) return status;
    grid_file *file = &r->files[r->n_files++];
    *file = (grid_file){.file = cleat_strdup(name), .channel = cleat_strdup(name), .day = day};
    if (!file->file || !file->channel) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the name %.40s", name);
    file->channel[date - 1] = 0;
    return CLEAT_OK;
}

static bool is_grid(const char *name) {
    return cleat_ends_in(name, ".asc");
}

static int by_channel_and_day(const void *a, const void *b) {
    const grid_file *x = a, *y = b;
    int order = strcmp(x->channel, y->channel);
    return order ? order : (x->day > y->day) - (x->day < y->day);
}

static cleat_status list_files(reader *r, cleat_error *error) {
    cleat_name_list listing = {0};
    cleat_status status = cleat_listing_read(r->folder, is_grid, &listing, error);
    for (size_t i = 0; i < listing.count && !status; ++i) status = add_file(r, listing.names[i], error);
    cleat_name_list_free(&listing);
    if (status) return status;
    qsort(r->files, r->n_files, sizeof *r->files, by_channel_and_day);
    for (size_t i = 1; i < r->n_files; ++i)
        if (by_channel_and_day(&r->files[i - 1], &r->files[i]) == 0)
            return cleat_fail(error, CLEAT_ERR_FORMAT,
                              "%s: both %s and %s are the grid of '%.100s' for the same day; delete one", r->folder,
                              r->files[i - 1].file, r->files[i].file, r->files[i].channel);
    return CLEAT_OK;
}

/* --- channels ------------------------------------------------------------------------------------------------- */

/* Error for a missing channel; the message lists the existing ones. */
static cleat_status no_channel(const reader *r, const char *what, const char *name, cleat_error *error) {
    cleat_string there = {0};
    for (size_t i = 0; i < r->n_files; ++i)
        if (i == 0 || strcmp(r->files[i].channel, r->files[i - 1].channel) != 0)
            cleat_string_add(&there, "%s%s", there.size ? ", " : "", r->files[i].channel);
    cleat_status status =
        cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s: no grids %.100s_YYYYMMDD.asc (%s); the folder has grids of %.400s",
                   r->folder, name, what, there.data ? there.data : "nothing");
    cleat_string_free(&there);
    return status;
}

static bool has_channel(const reader *r, const char *name) {
    for (size_t i = 0; i < r->n_files; ++i)
        if (strcmp(r->files[i].channel, name) == 0) return true;
    return false;
}

static cleat_status use_channel(reader *r, const char *what, const char *name, cleat_error *error) {
    if (!has_channel(r, name)) return no_channel(r, what, name, error);
    if (cleat_name_list_find(&r->used, name) >= 0)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "data.inputs lists '%.100s' twice", name);
    return cleat_name_list_add(&r->used, name, error);
}

static cleat_status use_listed(reader *r, const char *list, cleat_error *error) {
    char name[256];
    cleat_status status = CLEAT_OK;
    for (const char *at = list + strspn(list, " \t"); *at && !status;) {
        size_t size = strcspn(at, " \t");
        if (size >= sizeof name)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "data.inputs: '%.40s...' is too long for a name", at);
        memcpy(name, at, size);
        name[size] = 0;
        status = use_channel(r, "data.inputs", name, error);
        at += size;
        at += strspn(at, " \t");
    }
    return status;
}

bool cleat_maps_is_given(const char *option) {
    return option && option[strspn(option, " \t")];
}

static cleat_status select_inputs(reader *r, cleat_error *error) {
    const cleat_maps_preprocessor *fitted = r->options->fitted ? &r->maps->fitted : NULL;
    cleat_status status = CLEAT_OK;
    if (cleat_maps_is_given(r->options->inputs))
        status = use_listed(r, r->options->inputs, error);
    else if (fitted)
        for (size_t i = 0; i < fitted->names.count && !status; ++i)
            status = use_channel(r, "saved by training", fitted->names.names[i], error);
    else
        for (size_t i = 0; i < r->n_files && !status; ++i)
            if (i == 0 || strcmp(r->files[i].channel, r->files[i - 1].channel) != 0)
                status = use_channel(r, "data.inputs", r->files[i].channel, error);
    r->inputs = r->used.count;
    bool same = !fitted || fitted->names.count == r->inputs;
    for (size_t i = 0; !status && fitted && same && i < r->inputs; ++i)
        same = strcmp(fitted->names.names[i], r->used.names[i]) == 0;
    if (!status && !same)
        status =
            cleat_fail(error, CLEAT_ERR_ARGUMENT,
                       "%s: data.inputs differs from the inputs of the training; do not change it", r->options->fitted);
    return status;
}

static cleat_status select_target(reader *r, cleat_error *error) {
    const char *fitted = r->options->fitted ? r->maps->fitted.target : NULL;
    const char *asked = cleat_maps_is_given(r->options->target) ? r->options->target
                        : fitted                                ? fitted
                                                                : r->used.names[0];
    if (fitted && strcmp(asked, fitted) != 0)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "%s: the target was %.100s in training and is %.100s now; do not change it",
                          r->options->fitted, fitted, asked);
    int place = cleat_name_list_find(&r->used, asked);
    r->target = place >= 0 ? (size_t)place : r->used.count;
    if (place >= 0) return CLEAT_OK;
    if (!has_channel(r, asked) && !r->options->predict) return no_channel(r, "data.target", asked, error);
    return cleat_name_list_add(&r->used, asked, error);
}

/* Stores the names of the channels and of the target in the preprocessing state. */
static cleat_status store_names(reader *r, cleat_error *error) {
    cleat_maps_preprocessor *fitted = &r->maps->fitted;
    cleat_status status = CLEAT_OK;
    r->maps->channels = (int64_t)r->inputs;
    if (r->options->fitted) return CLEAT_OK;
    for (size_t i = 0; i < r->inputs && !status; ++i)
        status = cleat_name_list_add(&fitted->names, r->used.names[i], error);
    if (status) return status;
    fitted->target = cleat_strdup(r->used.names[r->target]);
    return fitted->target ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the target's name");
}

/* --- days ----------------------------------------------------------------------------------------------------- */

static int by_day(const void *a, const void *b) {
    const map_day *x = a, *y = b;
    return (x->day > y->day) - (x->day < y->day);
}

static map_day *find_day(const reader *r, int64_t day) {
    map_day wanted = {.day = day};
    return r->n_days ? bsearch(&wanted, r->days, r->n_days, sizeof *r->days, by_day) : NULL;
}

/* Lists the days of the used files, each once. */
static cleat_status list_days(reader *r, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < r->n_files && !status; ++i) {
        if (cleat_name_list_find(&r->used, r->files[i].channel) < 0) continue;
        status = cleat_grow(&r->days, r->n_days, &r->days_capacity, error);
        if (!status) r->days[r->n_days++] = (map_day){.day = r->files[i].day, .step = -1, .target = -1};
    }
    if (status) return status;
    qsort(r->days, r->n_days, sizeof *r->days, by_day);
    size_t kept = 0;
    for (size_t i = 0; i < r->n_days; ++i)
        if (i == 0 || r->days[i].day != r->days[kept - 1].day) r->days[kept++] = r->days[i];
    r->n_days = kept;
    for (size_t i = 0; i < r->n_days && !status; ++i) {
        r->days[i].files = cleat_alloc(r->used.count, sizeof *r->days[i].files);
        if (!r->days[i].files) status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the days", r->folder);
    }
    for (size_t i = 0; i < r->n_files && !status; ++i) {
        int channel = cleat_name_list_find(&r->used, r->files[i].channel);
        if (channel >= 0) find_day(r, r->files[i].day)->files[channel] = &r->files[i];
    }
    return status;
}

/* Error for the missing grid of a day and channel. */
static cleat_status missing_day(const reader *r, int64_t day, size_t channel, cleat_error *error) {
    char text[CLEAT_TIME_TEXT], first[CLEAT_TIME_TEXT], last[CLEAT_TIME_TEXT], compact[9] = "";
    date_text(day, text);
    snprintf(compact, sizeof compact, "%.4s%.2s%.2s", text, text + 5, text + 8);
    return cleat_fail(error, CLEAT_ERR_FORMAT,
                      "%s: %.100s_%s.asc is missing: the grids range from %s to %s; add the file, or skip days with "
                      "missing files (data.missing_days = skip)",
                      r->folder, r->used.names[channel], compact, date_text(r->days[0].day, first),
                      date_text(r->days[r->n_days - 1].day, last));
}

/* Numbers the existing steps and targets. Gaps are errors unless missing days are skipped. For prediction the
 * target need not be known. */
static cleat_status number_days(reader *r, cleat_error *error) {
    size_t needed = r->options->predict ? r->inputs : r->used.count;
    bool strict = !r->options->skip_missing;
    cleat_faults faults = {0};
    cleat_error why;
    for (size_t i = 0; i < r->n_days; ++i) {
        map_day *day = &r->days[i];
        size_t there = 0, missing = 0;
        for (size_t c = needed; c-- > 0;) {
            there += day->files[c] != NULL;
            if (!day->files[c]) missing = c;
        }
        if (strict && i && day->day != day[-1].day + 1) {
            (void)missing_day(r, day[-1].day + 1, 0, &why);
            (void)cleat_faults_add(&faults, &why, NULL);
        }
        if (strict && there < needed) {
            (void)missing_day(r, day->day, missing, &why);
            (void)cleat_faults_add(&faults, &why, NULL);
        }
        r->incomplete += there < needed;
        bool whole = true;
        for (size_t c = 0; c < r->inputs; ++c) whole = whole && day->files[c];
        if (whole) day->step = r->maps->n_steps++;
        if (day->files[r->target]) day->target = r->maps->n_targets++;
    }
    if (faults.count) return cleat_faults_report(&faults, error);
    if (r->maps->n_steps) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: no day has grids of all inputs", r->folder);
}

/* --- grids ---------------------------------------------------------------------------------------------------- */

static cleat_status store_grid(reader *r, const char *path, const cleat_esri_grid *grid, const map_day *day,
                               size_t channel, cleat_error *error) {
    cleat_maps *maps = r->maps;
    cleat_status status = CLEAT_OK;
    if (!*r->first_path) {
        r->first = *grid;
        r->first.values = NULL;
        snprintf(r->first_path, sizeof r->first_path, "%s", path);
        maps->height = grid->rows;
        maps->width = grid->columns;
        status = cleat_maps_make_room(maps, r->folder, true, error);
    } else {
        status = cleat_esri_grid_match(path, grid, r->first_path, &r->first, error);
    }
    if (status) return status;
    int64_t pixels = cleat_maps_target_elements(maps);
    if (channel < r->inputs && day->step >= 0)
        memcpy(maps->steps + (day->step * maps->channels + (int64_t)channel) * pixels, grid->values,
               (size_t)pixels * sizeof *grid->values);
    if (channel == r->target) cleat_maps_set_target(grid->values, pixels, maps->targets + day->target * pixels);
    return CLEAT_OK;
}

static cleat_status read_grid(reader *r, const map_day *day, size_t channel, cleat_error *error) {
    char path[CLEAT_FILE_PATH];
    cleat_esri_grid grid = {0};
    if (!day->files[channel]) return CLEAT_OK;
    cleat_status status = cleat_path_join(r->folder, day->files[channel]->file, path, sizeof path, error);
    if (status) return status;
    status = cleat_esri_grid_read(path, &grid, error);
    if (!status) status = store_grid(r, path, &grid, day, channel, error);
    cleat_esri_grid_free(&grid);
    return status;
}

static cleat_status read_grids(reader *r, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    cleat_faults faults = {0};
    cleat_error why;
    for (size_t i = 0; i < r->n_days; ++i)
        for (size_t c = 0; c < r->used.count && !status; ++c)
            if (read_grid(r, &r->days[i], c, &why) != CLEAT_OK) status = cleat_faults_add(&faults, &why, error);
    return status ? status : cleat_faults_report(&faults, error);
}

/* --- samples -------------------------------------------------------------------------------------------------- */

/* Rounds down, but 0.5 to 1 day is 1. */
static int64_t share_of(int64_t days, double fraction) {
    const double share = (double)days * fraction;
    return share < 1 && share >= 0.5 ? 1 : (int64_t)share;
}

/* Targets before *val belong to training, targets from *test on to testing. */
static cleat_status find_borders(const reader *r, int64_t *val, int64_t *test, cleat_error *error) {
    const cleat_maps_options *o = r->options;
    int64_t targets = r->maps->n_targets, val_days = o->val_days, test_days = o->test_days;
    if (!val_days && !test_days) {
        val_days = share_of(targets, o->val_fraction);
        test_days = share_of(targets, o->test_fraction);
    }
    if (!o->predict && val_days + test_days > targets)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "%s: %lld validation and %lld test days, but only %lld days exist; use fewer", r->folder,
                          (long long)val_days, (long long)test_days, (long long)targets);
    *test = targets - test_days;
    *val = *test - val_days;
    return CLEAT_OK;
}

/* Adds the sample whose last step is on day `last`. */
static cleat_status add_sample(reader *r, const map_day *last, int64_t val, int64_t test, cleat_error *error) {
    char text[CLEAT_TIME_TEXT];
    const map_day *first = last, *target = find_day(r, last->day + r->options->horizon);
    cleat_maps_sample sample = {
        .target = target ? target->target : -1, .today = last->target, .split = CLEAT_SPLIT_TEST};
    if (sample.target < 0 && !r->options->predict) return CLEAT_OK;
    for (size_t i = (size_t)(last - r->days); i-- > 0 && r->days[i].day > last->day - r->options->lookback;)
        if (r->days[i].step >= 0) first = &r->days[i];
    sample.first = first->step;
    sample.steps = last->step - first->step + 1;
    if (!r->options->predict && sample.target < test)
        sample.split = sample.target < val ? CLEAT_SPLIT_TRAIN : CLEAT_SPLIT_VAL;
    sample.id = cleat_strdup(date_text(last->day + r->options->horizon, text));
    if (!sample.id) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the samples", r->folder);
    return cleat_maps_add_sample(r->maps, &sample, error);
}

static cleat_status add_samples(reader *r, cleat_error *error) {
    int64_t val = 0, test = 0;
    cleat_status status = find_borders(r, &val, &test, error);
    for (size_t i = 0; i < r->n_days && !status; ++i)
        if (r->days[i].step >= 0) status = add_sample(r, &r->days[i], val, test, error);
    if (!status && !r->maps->common.base.count)
        status = cleat_fail(
            error, CLEAT_ERR_FORMAT,
            "%s: no day with all inputs has a target %lld days later; use more days, or a smaller data.ahead",
            r->folder, (long long)r->options->horizon);
    if (r->incomplete)
        cleat_log(CLEAT_LOG_WARNING, "%s: %lld days have missing grids", r->folder, (long long)r->incomplete);
    return status;
}

static void free_reader(reader *r) {
    for (size_t i = 0; i < r->n_files; ++i) {
        cleat_free(r->files[i].file);
        cleat_free(r->files[i].channel);
    }
    for (size_t i = 0; i < r->n_days; ++i) cleat_free(r->days[i].files);
    cleat_free(r->files);
    cleat_free(r->days);
    cleat_name_list_free(&r->used);
}

cleat_status cleat_maps_read_esri(const char *folder, const cleat_maps_options *options, cleat_maps *maps,
                                  cleat_error *error) {
    reader r = {.folder = folder, .options = options, .maps = maps};
    cleat_status status = list_files(&r, error);
    if (!status) status = select_inputs(&r, error);
    if (!status) status = select_target(&r, error);
    if (!status) status = store_names(&r, error);
    if (!status) status = list_days(&r, error);
    if (!status) status = number_days(&r, error);
    if (!status) status = read_grids(&r, error);
    if (!status) status = add_samples(&r, error);
    free_reader(&r);
    return status;
}
