/* Maps over time: samples, splits, patches, means and masks of daily grids and of NPY stacks; invalid folders
 * are refused with place and remedy. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleat/data.h"
#include "core/memory.h"
#include "data/maps/maps.h"
#include "files.h"
#include "platform/files.h"
#include "source_path.h"

enum { H = 3, W = 5, PATCH = 2, PADDED_H = 4, PADDED_W = 6, N = 6, DAYS = 12, UNKNOWN = -9999 };

/* Creates the folder TEMPORARY/name. The returned path remains valid longer than one from test_folder. */
static const char *make_folder(const char *name) {
    static char kept[16][512];
    static int next;
    char *path = kept[next++ % 16];
    snprintf(path, sizeof kept[0], "%s", test_folder(name));
    return path;
}

/* --- grids ---------------------------------------------------------------------------------------------------- */

/* 2020-02-25 .. 2020-03-07, across a leap day. */
static const char *const dates[DAYS] = {"20200225", "20200226", "20200227", "20200228", "20200229", "20200301",
                                        "20200302", "20200303", "20200304", "20200305", "20200306", "20200307"};

/* The value of a cell. Channel 0 is "heat", the target, which is above 0 in some cells and unknown in one
 * cell on day 3. */
static int cell(int day, int channel, int y, int x) {
    if (channel == 0 && day == 3 && y == 1 && x == 2) return UNKNOWN;
    int value = (day * 7 + channel * 5 + y * 3 + x * 11) % 13;
    return channel == 0 ? (value > 8 ? value : 0) : value - 6;
}

static void write_grid(const char *folder, const char *channel, int c, int day, const char *date) {
    char text[2048], path[1024];
    int used =
        sprintf(text, "ncols %d\nnrows %d\nxllcorner 0\nyllcorner 0\ncellsize 1\nNODATA_value %d\n", W, H, UNKNOWN);
    for (int y = 0; y < H; ++y)
        for (int x = 0; x < W; ++x) used += sprintf(text + used, "%d%c", cell(day, c, y, x), x + 1 < W ? ' ' : '\n');
    snprintf(path, sizeof path, "%s/%s_%s.asc", folder, channel, date);
    test_write_text(path, text);
}

/* Creates a folder of all days; "rain" is channel 1. */
static const char *write_grids(const char *name) {
    const char *folder = make_folder(name);
    for (int d = 0; d < DAYS; ++d) {
        write_grid(folder, "heat", 0, d, dates[d]);
        write_grid(folder, "rain", 1, d, dates[d]);
    }
    return folder;
}

static void remove_file(const char *folder, const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(remove(path), 0);
}

static cleat_maps_options grid_options(void) {
    cleat_maps_options options = cleat_maps_defaults();
    options.lookback = 3;
    options.patch = PATCH;
    options.val_days = 2;
    options.test_days = 3;
    return options;
}

static cleat_dataset *open_maps(const char *path, const cleat_maps_options *options) {
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    if (cleat_maps_open(path, options, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return dataset;
}

static void expect_refused(const char *path, const cleat_maps_options *options, cleat_status status,
                           const char *wanted) {
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    assert_int_equal(cleat_maps_open(path, options, &dataset, &error), status);
    if (!strstr(error.text, wanted)) fail_msg("'%s' lacks '%s'", error.text, wanted);
    assert_null(dataset);
}

/* One sample at length `L`. */
typedef struct sample {
    float steps[N * 8 * PATCH * PATCH * 2]; /* [N, L, p p C] */
    int32_t lengths[N], mask[PADDED_H * PADDED_W];
} sample;

static void fill(const cleat_dataset *dataset, size_t index, int64_t length, const cleat_rng_key *rng_key, sample *s) {
    void *slots[3] = {s->steps, s->lengths, s->mask};
    cleat_error error = {0};
    memset(s, 0x5A, sizeof *s);
    if (cleat_dataset_fill(dataset, index, length, rng_key, slots, &error) != CLEAT_OK) fail_msg("%s", error.text);
}

/* Mean and std of log1p of channel c over the known cells of days first .. last. */
static void moments(int c, int first, int last, double *mean, double *std) {
    double sum = 0, squares = 0, count = 0;
    for (int pass = 0; pass < 2; ++pass)
        for (int d = first; d <= last; ++d)
            for (int i = 0; i < H * W; ++i) {
                int v = cell(d, c, i / W, i % W);
                if (v == UNKNOWN) continue;
                double value = copysign(log1p(abs(v)), v);
                count += pass == 0;
                sum += pass == 0 ? value : 0;
                squares += pass == 1 ? pow(value - sum / count, 2) : 0;
            }
    *mean = sum / count;
    *std = sqrt(squares / count);
}

static void expect_steps(const sample *s, int64_t length, int last_day, int count, const double *mean,
                         const double *std) {
    for (int n = 0; n < N; ++n)
        for (int f = 0; f < length; ++f)
            for (int i = 0; i < PATCH * PATCH * 2; ++i) {
                int c = i % 2, y = n / 3 * PATCH + i / 2 / PATCH, x = n % 3 * PATCH + i / 2 % PATCH;
                double expected = 0;
                if (f < count && y < H && x < W) {
                    int v = cell(last_day - count + 1 + f, c, y, x);
                    if (v != UNKNOWN) expected = (copysign(log1p(abs(v)), v) - mean[c]) / std[c];
                }
                double got = s->steps[(n * length + f) * PATCH * PATCH * 2 + i];
                if (!(fabs(got - expected) < 1e-5))
                    fail_msg("patch %d frame %d value %d: %g, %g", n, f, i, got, expected);
            }
}

static int target_of(int day, int y, int x) {
    int v = y < H && x < W ? cell(day, 0, y, x) : UNKNOWN;
    return v == UNKNOWN ? -1 : v > 0;
}

static void samples_hold_steps_and_the_target_of_a_later_day(void **state) {
    (void)state;
    cleat_maps_options options = grid_options();
    cleat_dataset *dataset = open_maps(write_grids("grids"), &options);
    static const char *const ids[] = {"2020-02-26", "2020-02-27", "2020-02-28", "2020-02-29",
                                      "2020-03-01", "2020-03-02", "2020-03-03", "2020-03-04",
                                      "2020-03-05", "2020-03-06", "2020-03-07"};
    double mean[2], std[2];
    int32_t persistence[PADDED_H * PADDED_W];
    /* The targets of 7 days are for training; the last one's steps end with day 5. */
    for (int c = 0; c < 2; ++c) moments(c, 0, 5, &mean[c], &std[c]);
    assert_int_equal(cleat_dataset_count(dataset), DAYS - 1);
    for (int i = 0; i < DAYS - 1; ++i) {
        sample s;
        int count = i < 2 ? i + 1 : 3;
        cleat_split split = i < 6 ? CLEAT_SPLIT_TRAIN : i < 8 ? CLEAT_SPLIT_VAL : CLEAT_SPLIT_TEST;
        assert_string_equal(cleat_dataset_id(dataset, (size_t)i), ids[i]);
        assert_int_equal(cleat_dataset_length(dataset, (size_t)i), count);
        assert_int_equal(cleat_dataset_split(dataset, (size_t)i), split);
        fill(dataset, (size_t)i, 4, NULL, &s);
        expect_steps(&s, 4, i, count, mean, std);
        assert_int_equal(cleat_maps_persistence(dataset, (size_t)i, persistence, NULL), CLEAT_OK);
        for (int n = 0; n < N; ++n) assert_int_equal(s.lengths[n], count);
        for (int p = 0; p < PADDED_H * PADDED_W; ++p) {
            assert_int_equal(s.mask[p], target_of(i + 1, p / PADDED_W, p % PADDED_W));
            assert_int_equal(persistence[p], target_of(i, p / PADDED_W, p % PADDED_W));
        }
    }
    assert_int_equal(cleat_maps_persistence(dataset, DAYS, persistence, NULL), CLEAT_ERR_ARGUMENT);
    cleat_dataset_destroy(dataset);
}

/* No day is missing across 1970, before which day numbers are negative. */
static void days_before_1970_are_days(void **state) {
    (void)state;
    static const char *const days[] = {"19691229", "19691230", "19691231", "19700101", "19700102"};
    cleat_maps_options options = grid_options();
    const char *folder = make_folder("before");
    options.val_days = options.test_days = 1;
    for (int d = 0; d < 5; ++d) {
        write_grid(folder, "heat", 0, d, days[d]);
        write_grid(folder, "rain", 1, d, days[d]);
    }
    cleat_dataset *dataset = open_maps(folder, &options);
    assert_int_equal(cleat_dataset_count(dataset), 4);
    assert_string_equal(cleat_dataset_id(dataset, 0), "1969-12-30");
    assert_string_equal(cleat_dataset_id(dataset, 2), "1970-01-01");
    cleat_dataset_destroy(dataset);
}

/* The displayed frame has its own size and values. Cells of days without unknown cells. */
static void the_last_frame_shows_the_target(void **state) {
    (void)state;
    static const char *const inputs[] = {"rain heat", "rain"}, *const names[] = {"heat", "rain"};
    float values[H * W];
    for (int64_t wanted = 1; wanted >= 0; --wanted) { /* channel 1, or 0 because the target is not an input */
        cleat_maps_options options = grid_options();
        int64_t channel = -1;
        const char *name = NULL;
        options.inputs = inputs[1 - wanted];
        options.target = "heat";
        options.transform = CLEAT_TRANSFORM_NONE;
        cleat_dataset *dataset = open_maps(write_grids("grids"), &options);
        assert_int_equal(cleat_maps_last_frame(dataset, 7, values, &channel, &name, NULL), CLEAT_OK);
        assert_int_equal(channel, wanted);
        assert_string_equal(name, names[1 - wanted]);
        for (int i = 0; i < H * W; ++i)
            assert_true(fabsf(values[i] - (float)cell(7, wanted ? 0 : 1, i / W, i % W)) < 1e-4f);
        cleat_dataset_destroy(dataset);
    }
}

static void sizes_and_shares_are_told(void **state) {
    (void)state;
    cleat_maps_options options = grid_options();
    cleat_dataset *dataset = open_maps(write_grids("grids"), &options);
    cleat_image_info info = cleat_image_describe(dataset);
    int known = 0, positive = 0;
    for (int d = 1; d <= 6; ++d)
        for (int i = 0; i < H * W; ++i) {
            known += target_of(d, i / W, i % W) >= 0;
            positive += target_of(d, i / W, i % W) > 0;
        }
    assert_true(known == 6 * H * W - 1 && positive > 5);
    assert_true(fabs(info.positive - (double)positive / known) < 1e-12);
    assert_int_equal(info.channels, 2);
    assert_int_equal(info.classes, 2);
    assert_int_equal(info.steps, 3);
    assert_true(info.height == PADDED_H && info.width == PADDED_W && info.file_height == H && info.file_width == W);
    assert_true(info.samples[0] == 6 && info.samples[1] == 2 && info.samples[2] == 3);
    const cleat_field *steps = cleat_dataset_field(dataset, 0), *mask = cleat_dataset_field(dataset, 2);
    assert_string_equal(steps->name, "frames");
    assert_true(steps->rank == 3 && steps->shape[0] == N && steps->shape[1] == -1 && steps->shape[2] == 8);
    assert_true(mask->rank == 2 && mask->shape[0] == PADDED_H && mask->shape[1] == PADDED_W && mask->pad == -1);
    cleat_dataset_destroy(dataset);
}

static void horizons_and_single_inputs_are_kept(void **state) {
    (void)state;
    cleat_maps_options options = grid_options();
    options.inputs = " rain ";
    options.target = "heat";
    options.horizon = 4;
    options.transform = CLEAT_TRANSFORM_NONE;
    cleat_dataset *dataset = open_maps(write_grids("grids"), &options);
    sample s;
    assert_int_equal(cleat_dataset_count(dataset), DAYS - 4);
    assert_string_equal(cleat_dataset_id(dataset, 0), "2020-02-29");
    assert_int_equal(cleat_image_describe(dataset).channels, 1);
    fill(dataset, 7, 3, NULL, &s);
    for (int p = 0; p < PADDED_H * PADDED_W; ++p)
        assert_int_equal(s.mask[p], target_of(11, p / PADDED_W, p % PADDED_W));
    /* Two pixels of the last step, day 7, differ by their raw difference over the std. */
    float apart = s.steps[2 * PATCH * PATCH + 1] - s.steps[2 * PATCH * PATCH];
    float others = s.steps[2 * PATCH * PATCH + 2] - s.steps[2 * PATCH * PATCH];
    int a = cell(7, 1, 0, 1) - cell(7, 1, 0, 0), b = cell(7, 1, 1, 0) - cell(7, 1, 0, 0);
    assert_true(a != 0 && b != 0 && fabsf(apart * (float)b - others * (float)a) < 1e-4f);
    cleat_dataset_destroy(dataset);
}

static void fractions_are_of_the_days(void **state) {
    (void)state;
    cleat_maps_options options = grid_options();
    options.val_days = options.test_days = 0;
    options.val_fraction = 0.25;
    options.test_fraction = 0.17;
    cleat_dataset *dataset = open_maps(write_grids("grids"), &options);
    cleat_image_info info = cleat_image_describe(dataset);
    assert_true(info.samples[0] == 6 && info.samples[1] == 3 && info.samples[2] == 2);
    cleat_dataset_destroy(dataset);
}

static void steps_and_target_are_mirrored_alike(void **state) {
    (void)state;
    cleat_maps_options options = grid_options();
    options.flip = options.flip_vertical = true;
    cleat_dataset *dataset = open_maps(write_grids("grids"), &options);
    double mean[2], std[2];
    int seen[4] = {0};
    for (int c = 0; c < 2; ++c) moments(c, 0, 5, &mean[c], &std[c]);
    for (uint32_t epoch = 0; epoch < 24; ++epoch) {
        cleat_rng_key rng_key = {.seed = 9, .epoch = epoch};
        sample s, again;
        fill(dataset, 4, 3, &rng_key, &s);
        fill(dataset, 4, 3, &rng_key, &again);
        assert_memory_equal(&s, &again, sizeof s);
        int found = -1;
        for (int way = 0; way < 4; ++way) {
            bool fits = true;
            for (int y = 0; y < H && fits; ++y)
                for (int x = 0; x < W && fits; ++x) {
                    int fy = way / 2 ? H - 1 - y : y, fx = way % 2 ? W - 1 - x : x, v = cell(4, 1, fy, fx);
                    int patch = y / PATCH * 3 + x / PATCH, at = (y % PATCH * PATCH + x % PATCH) * 2 + 1;
                    double expected = (copysign(log1p(abs(v)), v) - mean[1]) / std[1];
                    fits = fabs(s.steps[(patch * 3 + 2) * 8 + at] - expected) < 1e-5 &&
                           s.mask[y * PADDED_W + x] == target_of(5, fy, fx);
                }
            if (fits) found = way;
        }
        assert_true(found >= 0);
        ++seen[found];
        for (int x = 0; x < PADDED_W; ++x) assert_int_equal(s.mask[H * PADDED_W + x], -1);
    }
    for (int way = 0; way < 4; ++way) assert_true(seen[way] > 0);
    cleat_dataset_destroy(dataset);
}

static void the_fitted_preprocessor_is_used_again(void **state) {
    (void)state;
    char fitted[512];
    cleat_error error = {0};
    cleat_maps_options options = grid_options();
    snprintf(fitted, sizeof fitted, "%s", test_path("learnt"));
    cleat_dataset *dataset = open_maps(write_grids("grids"), &options);
    assert_int_equal(cleat_dataset_save(dataset, fitted, &error), CLEAT_OK);
    options.fitted = fitted;
    cleat_dataset *same = open_maps(test_path("grids"), &options);
    sample a, b;
    fill(dataset, 8, 3, NULL, &a);
    fill(same, 8, 3, NULL, &b);
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(cleat_image_describe(same).positive == cleat_image_describe(dataset).positive);
    /* A single day without its target: the target is unknown, and the values are standardised as in training. */
    const char *fresh = make_folder("fresh");
    write_grid(fresh, "heat", 0, 8, dates[8]);
    write_grid(fresh, "rain", 1, 8, dates[8]);
    options.predict = true;
    cleat_dataset *predicted = open_maps(fresh, &options);
    assert_int_equal(cleat_dataset_count(predicted), 1);
    assert_string_equal(cleat_dataset_id(predicted, 0), "2020-03-05");
    assert_int_equal(cleat_dataset_split(predicted, 0), CLEAT_SPLIT_TEST);
    fill(predicted, 0, 3, NULL, &b);
    assert_true(b.steps[0] == a.steps[2 * 8]);
    for (int p = 0; p < PADDED_H * PADDED_W; ++p) assert_int_equal(b.mask[p], -1);
    cleat_dataset_destroy(predicted);
    predicted = open_maps(test_path("grids"), &options);
    assert_int_equal(cleat_dataset_count(predicted), DAYS); /* including the day after the last */
    fill(predicted, 3, 3, NULL, &b);
    assert_int_equal(b.mask[0], target_of(4, 0, 0));
    cleat_dataset_destroy(predicted);
    options.transform = CLEAT_TRANSFORM_NONE;
    expect_refused(fresh, &options, CLEAT_ERR_ARGUMENT, "data.transform differs");
    options = grid_options();
    options.fitted = fitted;
    options.inputs = "rain heat";
    expect_refused(test_path("grids"), &options, CLEAT_ERR_ARGUMENT, "data.inputs differs");
    options.inputs = NULL;
    options.target = "rain";
    expect_refused(test_path("grids"), &options, CLEAT_ERR_ARGUMENT, "the target was heat");
    cleat_dataset_destroy(same);
    cleat_dataset_destroy(dataset);
}

static void a_spoilt_preprocessor_file_is_refused(void **state) {
    (void)state;
    static const char again[] = "copy it from the run folder again",
                      missing[] = "the channels, or the target, are missing";
    static const char *const texts[][2] = {
        {"nonsense", again},
        {"[]", "not a JSON object"},
        {"{\"channels\": [], \"target\": \"heat\"}", missing},
        {"{\"channels\": [\"heat\", \"heat\"], \"target\": \"heat\"}", "duplicate channel"},
        {"{\"channels\": [\"heat\", \"rain\"]}", missing},
        {"{\"channels\": [\"heat\"], \"target\": \"heat\", \"transform\": \"square\"}", again},
        {"{\"channels\": [\"heat\"], \"target\": \"heat\", \"transform\": \"log1p\", \"means\": [0]}", again},
        {"{\"channels\": [\"heat\"], \"target\": \"heat\", \"transform\": \"log1p\", \"means\": [0], \"deviations\": "
         "[0]}",
         again},
        {"{\"channels\": [\"heat\"], \"target\": \"heat\", \"transform\": \"log1p\", \"means\": [0, 1], "
         "\"deviations\": [1]}",
         again},
        {"{\"channels\": [\"heat\"], \"target\": \"heat\", \"transform\": \"log1p\", \"means\": [0], \"deviations\": "
         "[1], \"positive\": 2}",
         again},
    };
    cleat_maps_options options = grid_options();
    const char *folder = write_grids("grids");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        options.fitted = make_folder("spoilt");
        test_write_text(test_path("spoilt/maps.json"), texts[i][0]);
        expect_refused(folder, &options, CLEAT_ERR_FORMAT, again);
        expect_refused(folder, &options, CLEAT_ERR_FORMAT, texts[i][1]);
    }
    options.fitted = make_folder("nothing");
    expect_refused(folder, &options, CLEAT_ERR_NOT_FOUND, "maps.json");
}

static void missing_days_are_refused_or_skipped(void **state) {
    (void)state;
    cleat_maps_options options = grid_options();
    const char *folder = write_grids("gaps");
    remove_file(folder, "rain_20200229.asc");
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "rain_20200229.asc is missing");
    remove_file(folder, "heat_20200229.asc");
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "heat_20200229.asc is missing");
    options.skip_missing = true;
    cleat_dataset *dataset = open_maps(folder, &options);
    /* Day 4 has no target, and no steps end there. */
    assert_int_equal(cleat_dataset_count(dataset), DAYS - 3);
    assert_string_equal(cleat_dataset_id(dataset, 3), "2020-03-02");
    assert_int_equal(cleat_dataset_length(dataset, 3), 2); /* days 3 and 5 */
    assert_int_equal(cleat_dataset_length(dataset, 4), 2);
    assert_int_equal(cleat_dataset_length(dataset, 5), 3);
    cleat_dataset_destroy(dataset);
}

static void unknown_targets_are_left_out(void **state) {
    (void)state;
    cleat_maps_options options = grid_options();
    const char *folder = write_grids("unknown");
    test_write_text(
        test_path("unknown/heat_20200303.asc"),
        "ncols 5\nnrows 3\nxllcorner 0\nyllcorner 0\ncellsize 1\n-9999 -9999 -9999 -9999 -9999 -9999 -9999 -9999 "
        "-9999 -9999 -9999 -9999 -9999 -9999 -9999\n");
    cleat_dataset *dataset = open_maps(folder, &options);
    assert_int_equal(cleat_dataset_count(dataset), DAYS - 2);
    for (size_t i = 0; i < DAYS - 2; ++i) assert_string_not_equal(cleat_dataset_id(dataset, i), "2020-03-03");
    cleat_dataset_destroy(dataset);
}

static void bad_grid_folders_are_refused(void **state) {
    (void)state;
    cleat_maps_options options = grid_options();
    const char *folder = write_grids("bad");
    write_grid(folder, "rain", 1, 0, "20190231");
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "not a valid calendar day");
    remove_file(folder, "rain_20190231.asc");
    write_grid(folder, "rain", 1, 0, "2020-03-01");
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "no date in the name");
    remove_file(folder, "rain_2020-03-01.asc");
#ifndef _WIN32 /* names that differ in case alone */
    test_write_text(test_path("bad/heat_20200301.ASC"), "copy");
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "for the same day; delete one");
    remove_file(folder, "heat_20200301.ASC");
#endif
    options.inputs = "heat wind";
    expect_refused(folder, &options, CLEAT_ERR_ARGUMENT, "the folder has grids of heat, rain");
    options.inputs = "heat heat";
    expect_refused(folder, &options, CLEAT_ERR_ARGUMENT, "'heat' twice");
    options.inputs = NULL;
    options.target = "wind";
    expect_refused(folder, &options, CLEAT_ERR_ARGUMENT, "data.target");
    options = grid_options();
    options.val_days = 20;
    expect_refused(folder, &options, CLEAT_ERR_ARGUMENT, "only 12 days exist");
    options.val_days = 9;
    expect_refused(folder, &options, CLEAT_ERR_ARGUMENT, "no training samples are left");
    options = grid_options();
    options.horizon = 12;
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "data.ahead");
    options = grid_options();
    test_write_text(test_path("bad/rain_20200305.asc"),
                    "ncols 5\nnrows 2\nxllcorner 0\nyllcorner 0\ncellsize 1\n1 2 3 4 5\n6 7 8 9 0\n");
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "nrows is 2, but in ");
    remove_file(folder, "rain_20200305.asc");
    test_write_text(test_path("bad/x.npy"), "stack");
    expect_refused(folder, &options, CLEAT_ERR_ARGUMENT, "both ESRI grids");
    expect_refused(make_folder("void"), &options, CLEAT_ERR_NOT_FOUND, "no maps");
    test_write_text(test_path("void/fires.csv"), "latitude,longitude,acq_date\n");
    expect_refused(test_path("void"), &options, CLEAT_ERR_NOT_FOUND, "; for a table of detections (FIRMS");
    expect_refused(test_path("void/fires.csv"), &options, CLEAT_ERR_ARGUMENT, "is a file; maps are a folder");
    expect_refused(test_path("nowhere"), &options, CLEAT_ERR_NOT_FOUND, "the folder does not exist");
    options.lookback = 0;
    expect_refused(folder, &options, CLEAT_ERR_ARGUMENT, "lookback");
    options = grid_options();
    options.predict = true;
    expect_refused(folder, &options, CLEAT_ERR_ARGUMENT, "preprocessing state");
}

static void channels_without_values_or_variety(void **state) {
    (void)state;
    cleat_maps_options options = grid_options();
    const char *folder = write_grids("flat");
    char path[1024], text[256];
    for (int constant = 0; constant < 2; ++constant) {
        for (int d = 0; d < DAYS; ++d) {
            snprintf(path, sizeof path, "%s/rain_%s.asc", folder, dates[d]);
            int used = sprintf(text, "ncols 5\nnrows 3\nxllcorner 0\nyllcorner 0\ncellsize 1\n");
            for (int i = 0; i < H * W; ++i) used += sprintf(text + used, "%s ", constant ? "3" : "-9999");
            test_write_text(path, text);
        }
        if (!constant) expect_refused(folder, &options, CLEAT_ERR_FORMAT, "'rain' has no known value");
    }
    cleat_dataset *dataset = open_maps(folder, &options);
    sample s;
    fill(dataset, 5, 3, NULL, &s);
    for (int i = 1; i < 8; i += 2) assert_true(s.steps[i] == 0);
    cleat_dataset_destroy(dataset);
}

/* The real grids, if available: the values of the persistence forecast in their description. */
static void persistence_of_the_shared_wildfires(void **state) {
    (void)state;
    const char *folder = shared_path("data/wildfire_firms/grid");
    if (access(folder, R_OK) != 0) skip();
    cleat_maps_options options = cleat_maps_defaults();
    options.val_days = 10;
    options.target = "count";
    cleat_dataset *dataset = open_maps(folder, &options);
    cleat_image_info info = cleat_image_describe(dataset);
    int32_t *target = malloc(sizeof *target * 68 * 84), *forecast = malloc(sizeof *forecast * 68 * 84);
    void *slots[3] = {NULL, NULL, target};
    int64_t hits = 0, wrong = 0, samples = 0;
    assert_true(info.height == 68 && info.width == 84 && info.samples[CLEAT_SPLIT_VAL] == 10);
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i) {
        if (cleat_dataset_split(dataset, i) != CLEAT_SPLIT_VAL) continue;
        assert_int_equal(cleat_dataset_fill(dataset, i, 6, NULL, slots, NULL), CLEAT_OK);
        assert_int_equal(cleat_maps_persistence(dataset, i, forecast, NULL), CLEAT_OK);
        for (int p = 0; p < 68 * 84; ++p) {
            hits += target[p] == 1 && forecast[p] == 1;
            wrong += target[p] != forecast[p];
        }
        ++samples;
    }
    double f1 = 2.0 * (double)hits / (2.0 * (double)hits + (double)wrong);
    assert_int_equal(samples, 10);
    assert_true(fabs(f1 - 0.583) < 0.0005);
    free(target);
    free(forecast);
    cleat_dataset_destroy(dataset);
}

/* --- stacks --------------------------------------------------------------------------------------------------- */

static void write_npy(const char *folder, const char *name, const char *descr, const char *shape, const void *data,
                      size_t size) {
    static uint8_t file[8192];
    char path[1024];
    int length =
        snprintf((char *)file + 10, 200, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }\n", descr, shape);
    memcpy(file, "\x93NUMPY\1", 7);
    file[7] = 0;
    file[8] = (uint8_t)length;
    file[9] = 0;
    memcpy(file + 10 + length, data, size);
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    test_write(path, file, 10 + (size_t)length + size);
}

static float stack_value(int number, int t, int c, int y, int x) {
    return (float)((number * 5 + t * 3 + c * 7 + y * 2 + x) % 9) - 3 * (float)c;
}

/* [T, 2, H, W], and a mask: 1 in column `number`, unknown in the last cell. */
static void write_stack(const char *folder, const char *name, int number, int steps) {
    static float values[8 * 2 * H * W];
    uint8_t mask[H * W] = {0};
    char shape[32], mask_name[64];
    for (int i = 0; i < steps * 2 * H * W; ++i)
        values[i] = stack_value(number, i / (2 * H * W), i / (H * W) % 2, i / W % H, i % W);
    values[0] = NAN;
    snprintf(shape, sizeof shape, "%d, 2, %d, %d", steps, H, W);
    write_npy(folder, name, "<f4", shape, values, (size_t)(steps * 2 * H * W) * 4);
    for (int y = 0; y < H; ++y) mask[y * W + number % W] = 255;
    mask[H * W - 1] = (uint8_t)-1;
    snprintf(mask_name, sizeof mask_name, "%s_mask", name);
    snprintf(shape, sizeof shape, "%d, %d", H, W);
    write_npy(folder, mask_name, "|u1", shape, mask, sizeof mask);
}

static const char *write_stacks(const char *name) {
    const char *folder = make_folder(name);
    char val[1024];
    write_stack(folder, "alpha", 0, 2);
    write_stack(folder, "beta", 1, 5);
    write_stack(folder, "gamma", 3, 3);
    snprintf(val, sizeof val, "%s/val.txt", folder);
    test_write_text(val, "  gamma \r\n\n");
    return folder;
}

static cleat_maps_options stack_options(void) {
    cleat_maps_options options = cleat_maps_defaults();
    options.lookback = 3;
    options.patch = PATCH;
    options.transform = CLEAT_TRANSFORM_NONE;
    return options;
}

static void stacks_are_samples(void **state) {
    (void)state;
    cleat_maps_options options = stack_options();
    cleat_dataset *dataset = open_maps(write_stacks("stacks"), &options);
    double sum[2] = {0}, squares[2] = {0}, count[2] = {0}, mean[2], std[2];
    static const int steps[2] = {2, 5};
    for (int s = 0; s < 2; ++s)
        for (int t = steps[s] > 3 ? steps[s] - 3 : 0; t < steps[s]; ++t)
            for (int i = 0; i < 2 * H * W; ++i) {
                if (t == 0 && i == 0) continue; /* NaN */
                float value = stack_value(s, t, i / (H * W), i / W % H, i % W);
                sum[i / (H * W)] += value;
                squares[i / (H * W)] += (double)value * value;
                count[i / (H * W)] += 1;
            }
    for (int c = 0; c < 2; ++c) {
        mean[c] = sum[c] / count[c];
        std[c] = sqrt(squares[c] / count[c] - mean[c] * mean[c]);
    }
    assert_int_equal(cleat_dataset_count(dataset), 3);
    sample s;
    fill(dataset, 1, 3, NULL, &s);
    assert_string_equal(cleat_dataset_id(dataset, 1), "beta");
    assert_int_equal(cleat_dataset_length(dataset, 0), 2);
    assert_int_equal(cleat_dataset_length(dataset, 1), 3);
    assert_int_equal(cleat_dataset_split(dataset, 1), CLEAT_SPLIT_TRAIN);
    assert_int_equal(cleat_dataset_split(dataset, 2), CLEAT_SPLIT_VAL);
    for (int c = 0; c < 2; ++c) /* the last three of five steps */
        assert_true(fabs(s.steps[8 + c] - (stack_value(1, 3, c, 0, 0) - mean[c]) / std[c]) < 1e-5);
    for (int p = 0; p < PADDED_H * PADDED_W; ++p) {
        int y = p / PADDED_W, x = p % PADDED_W;
        /* Of bytes, 255 is above 0. */
        int expected = y >= H || x >= W ? -1 : x == 1 || (y == H - 1 && x == W - 1);
        assert_int_equal(s.mask[p], expected);
    }
    fill(dataset, 0, 3, NULL, &s);
    assert_true(s.steps[0] == 0); /* NaN */
    int32_t persistence[PADDED_H * PADDED_W];
    assert_int_equal(cleat_maps_persistence(dataset, 0, persistence, NULL), CLEAT_ERR_NOT_SUPPORTED);
    cleat_dataset_destroy(dataset);
}

static void capture_log(void *user, cleat_log_level level, const char *text) {
    char *heard = user;
    if (level == CLEAT_LOG_WARNING) snprintf(heard, 1024, "%s", text);
}

static void settings_of_grids_are_named_beside_stacks(void **state) {
    (void)state;
    char heard[1024] = "", folder[512];
    cleat_maps_options options = stack_options();
    snprintf(folder, sizeof folder, "%s", write_stacks("stacks"));
    cleat_set_log(capture_log, heard, CLEAT_LOG_WARNING);
    cleat_dataset_destroy(open_maps(folder, &options));
    assert_string_equal(heard, "");
    options.inputs = "count frp";
    options.horizon = 2;
    options.val_days = 10;
    cleat_dataset_destroy(open_maps(folder, &options));
    cleat_set_log(NULL, NULL, CLEAT_LOG_WARNING);
    assert_non_null(strstr(heard, "not applicable to stacks (.npy): data.inputs, data.ahead, data.val_days. "));
}

static void stacks_are_predicted_without_masks(void **state) {
    (void)state;
    char fitted[512], folder[512];
    cleat_maps_options options = stack_options();
    snprintf(fitted, sizeof fitted, "%s", test_path("learnt_stacks"));
    snprintf(folder, sizeof folder, "%s", write_stacks("stacks"));
    cleat_dataset *dataset = open_maps(folder, &options);
    assert_int_equal(cleat_dataset_save(dataset, fitted, NULL), CLEAT_OK);
    remove_file(folder, "beta_mask.npy");
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "a stack without its mask");
    options.fitted = fitted;
    options.predict = true;
    cleat_dataset *predicted = open_maps(folder, &options);
    sample a, b;
    fill(dataset, 1, 3, NULL, &a);
    fill(predicted, 1, 3, NULL, &b);
    assert_memory_equal(a.steps, b.steps, N * 3 * 8 * sizeof(float));
    for (int p = 0; p < PADDED_H * PADDED_W; ++p) assert_int_equal(b.mask[p], -1);
    expect_refused(write_grids("grids"), &options, CLEAT_ERR_ARGUMENT, "trained on stacks");
    cleat_dataset_destroy(predicted);
    cleat_dataset_destroy(dataset);
}

static void large_stacks_are_read_when_they_are_wanted(void **state) {
    (void)state;
    cleat_maps_options options = stack_options();
    options.transform = CLEAT_TRANSFORM_LOG1P;
    const char *folder = write_stacks("large");
    cleat_dataset *kept = open_maps(folder, &options), *read = NULL;
    cleat_error error = {0};
    assert_int_equal(cleat_maps_open_within(folder, &options, 8 * 2 * H * W * 4 - 1, &read, &error), CLEAT_OK);
    for (size_t i = 0; i < 3; ++i) {
        sample a, b;
        fill(kept, i, 3, NULL, &a);
        fill(read, i, 3, NULL, &b);
        assert_memory_equal(&a, &b, sizeof a);
        static const int steps[3] = {2, 5, 3}, numbers[3] = {0, 1, 3};
        float frames[2][H * W];
        for (int of = 0; of < 2; ++of) {
            int64_t channel = -1;
            const char *name = "";
            assert_int_equal(cleat_maps_last_frame(of ? read : kept, i, frames[of], &channel, &name, NULL), CLEAT_OK);
            assert_true(channel == 0 && !name);
        }
        assert_memory_equal(frames[0], frames[1], sizeof frames[0]);
        for (int p = 0; p < H * W; ++p) {
            const float value = stack_value(numbers[i], steps[i] - 1, 0, p / W, p % W);
            assert_true(fabsf(frames[0][p] - copysignf(log1pf(fabsf(value)), value)) < 1e-5f);
        }
    }
    /* A file deleted after opening is missed only if its data are not cached. */
    static sample s;
    void *slots[3] = {s.steps, NULL, NULL};
    remove_file(folder, "beta.npy");
    assert_int_equal(cleat_dataset_fill(kept, 1, 3, NULL, slots, &error), CLEAT_OK);
    assert_int_equal(cleat_dataset_fill(read, 1, 3, NULL, slots, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "beta.npy"));
    cleat_dataset_destroy(kept);
    cleat_dataset_destroy(read);
}

static void bad_stacks_are_refused(void **state) {
    (void)state;
    char folder[512];
    cleat_maps_options options = stack_options();
    float values[2 * 3 * H * W] = {0}, mask[H * W] = {0};
    snprintf(folder, sizeof folder, "%s", write_stacks("bad_stacks"));
    write_npy(folder, "delta", "<f4", "2, 3, 3, 5", values, sizeof values);
    write_npy(folder, "delta_mask", "<f4", "3, 5", mask, sizeof mask);
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "3 channels of 3 x 5, but ");
    write_npy(folder, "delta", "<f4", "2, 3, 15", values, sizeof values);
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "array[:, None]");
    write_npy(folder, "delta", "<f4", "3, 2, 3, 5", values, sizeof values);
    write_npy(folder, "delta_mask", "<f4", "5, 3", mask, sizeof mask);
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "the mask must have the shape of its frames");
    mask[7] = -2;
    write_npy(folder, "delta_mask", "<f4", "3, 5", mask, sizeof mask);
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "-2 at row 1, column 2");
    mask[7] = NAN;
    mask[8] = -1;
    write_npy(folder, "delta_mask", "<f4", "3, 5", mask, sizeof mask);
    cleat_dataset *dataset = open_maps(folder, &options);
    sample s;
    fill(dataset, 2, 3, NULL, &s);
    assert_true(s.mask[PADDED_W + 2] == -1 && s.mask[PADDED_W + 3] == -1 && s.mask[PADDED_W + 1] == 0);
    cleat_dataset_destroy(dataset);
    remove_file(folder, "delta.npy");
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "a mask without its stack");
    remove_file(folder, "delta_mask.npy");
    test_write_text(test_path("bad_stacks/val.txt"), "gamma\nomega\n");
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "val.txt:2: no sample is named 'omega'");
    test_write_text(test_path("bad_stacks/val.txt"), "gamma\n");
    test_write_text(test_path("bad_stacks/test.txt"), "gamma\n");
    expect_refused(folder, &options, CLEAT_ERR_FORMAT, "test.txt:1: 'gamma' is also in val.txt");
}

static void every_failed_allocation_is_survived(void **state) {
    (void)state;
    char folders[2][512];
    snprintf(folders[0], sizeof folders[0], "%s", write_stacks("stacks"));
    snprintf(folders[1], sizeof folders[1], "%s", write_grids("grids"));
    for (int kind = 0; kind < 2; ++kind) {
        cleat_maps_options options = kind ? grid_options() : stack_options();
        cleat_status status = CLEAT_ERR_MEMORY;
        long n = 0;
        while (status == CLEAT_ERR_MEMORY) {
            cleat_dataset *dataset = NULL;
            cleat_error error = {0};
            cleat_fail_allocation(++n);
            status = cleat_maps_open(folders[kind], &options, &dataset, &error);
            cleat_fail_allocation(0);
            if (!status)
                cleat_dataset_destroy(dataset);
            else
                assert_true(status == CLEAT_ERR_MEMORY && *error.text);
        }
        assert_true(n > 20);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_hold_steps_and_the_target_of_a_later_day),
        cmocka_unit_test(days_before_1970_are_days),
        cmocka_unit_test(the_last_frame_shows_the_target),
        cmocka_unit_test(sizes_and_shares_are_told),
        cmocka_unit_test(horizons_and_single_inputs_are_kept),
        cmocka_unit_test(fractions_are_of_the_days),
        cmocka_unit_test(steps_and_target_are_mirrored_alike),
        cmocka_unit_test(the_fitted_preprocessor_is_used_again),
        cmocka_unit_test(a_spoilt_preprocessor_file_is_refused),
        cmocka_unit_test(missing_days_are_refused_or_skipped),
        cmocka_unit_test(unknown_targets_are_left_out),
        cmocka_unit_test(bad_grid_folders_are_refused),
        cmocka_unit_test(channels_without_values_or_variety),
        cmocka_unit_test(persistence_of_the_shared_wildfires),
        cmocka_unit_test(stacks_are_samples),
        cmocka_unit_test(settings_of_grids_are_named_beside_stacks),
        cmocka_unit_test(stacks_are_predicted_without_masks),
        cmocka_unit_test(large_stacks_are_read_when_they_are_wanted),
        cmocka_unit_test(bad_stacks_are_refused),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}
