/* Time series samples: windows, splits, resampling, standardised values, baselines; no sample depends on data
 * after its last known row. */
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
#include "data/series/series.h"
#include "files.h"
#include "platform/files.h"
#include "source_path.h"

enum { ROWS = 120, HOUR = 3600 };

/* The value of column c (0: a, 1: b, 2: c) at a row; rows after `changed` have other values. */
static double value_at(int row, int c, int changed) {
    double value = 10 * (c + 1) + sin(row * 0.37 + c) * (c + 1) + row * 0.01;
    return row > changed ? value + 5 + (row * 7 + c * 3) % 11 : value;
}

/* Hourly rows of three columns; if `constant`, column c is constant in the first half. */
static const char *write_series(int rows, int changed) {
    static char text[65536];
    const char *path = test_path("series.csv");
    size_t used = (size_t)sprintf(text, "time,a,b,c\n");
    for (int r = 0; r < rows; ++r) {
        char time[CLEAT_TIME_TEXT];
        cleat_time_text(INT64_C(1467331200) + (int64_t)r * HOUR, time);
        used += (size_t)sprintf(text + used, "%s,%.9f,%.9f,%.9f\n", time, value_at(r, 0, changed),
                                value_at(r, 1, changed), value_at(r, 2, changed));
    }
    test_write(path, text, used);
    return path;
}

static cleat_series_options small_options(void) {
    cleat_series_options options = cleat_series_defaults();
    options.lookback = 6;
    options.horizon = 4;
    options.train_rows = 60;
    options.val_rows = 30;
    options.test_rows = 25;
    return options;
}

static cleat_dataset *open_series(const char *path, const cleat_series_options *options) {
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    if (cleat_series_open(path, options, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return dataset;
}

typedef struct sample {
    float x[64 * 12], target[32 * 4], last[4], season[32 * 4];
} sample;

static void fill(const cleat_dataset *dataset, size_t index, sample *s) {
    void *slots[4] = {s->x, s->target, s->last, s->season};
    cleat_error error = {0};
    memset(s, 0x5A, sizeof *s);
    assert_int_equal(cleat_dataset_fill(dataset, index, cleat_dataset_length(dataset, index), NULL, slots, &error),
                     CLEAT_OK);
}

static size_t find_sample(const cleat_dataset *dataset, int64_t last_row) {
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i)
        if (cleat_series_time(dataset, i, 0) == INT64_C(1467331200) + last_row * HOUR) return i;
    return SIZE_MAX;
}

/* Mean and biased std of column c over the first rows, in two passes. */
static void moments(int rows, int c, double *mean, double *std) {
    double sum = 0, squares = 0;
    for (int r = 0; r < rows; ++r) sum += value_at(r, c, ROWS);
    *mean = sum / rows;
    for (int r = 0; r < rows; ++r) squares += pow(value_at(r, c, ROWS) - *mean, 2);
    *std = sqrt(squares / rows);
}

static void samples_hold_standardised_windows(void **state) {
    (void)state;
    cleat_series_options options = small_options();
    options.features = "b, a";
    options.targets = "c,b";
    options.season = 3;
    cleat_dataset *dataset = open_series(write_series(ROWS, ROWS), &options);
    double mean[3], std[3];
    for (int c = 0; c < 3; ++c) moments(60, c, &mean[c], &std[c]);
    static const int feature[2] = {1, 0}, target[2] = {2, 1};
    assert_string_equal(cleat_series_feature(dataset, 0), "b");
    assert_string_equal(cleat_series_feature(dataset, 1), "a");
    assert_null(cleat_series_feature(dataset, 2));
    assert_string_equal(cleat_series_target(dataset, 0), "c");
    assert_string_equal(cleat_series_target(dataset, 1), "b");
    assert_null(cleat_series_target(dataset, 2));
    for (size_t k = 0; k < 2; ++k) {
        assert_true(fabs(cleat_series_mean(dataset, k) - mean[target[k]]) < 1e-5);
        assert_true(fabs(cleat_series_std(dataset, k) - std[target[k]]) < 1e-5);
    }
    assert_true(cleat_dataset_count(dataset) > 80);
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i) {
        sample s;
        fill(dataset, i, &s);
        int last = (int)((cleat_series_time(dataset, i, 0) - 1467331200) / HOUR);
        assert_int_equal(cleat_dataset_length(dataset, i), 6);
        for (int t = 0; t < 6; ++t)
            for (int c = 0; c < 2; ++c) {
                int f = feature[c];
                double expected = (value_at(last - 5 + t, f, ROWS) - mean[f]) / std[f];
                assert_true(fabs(s.x[2 * t + c] - expected) < 1e-4);
            }
        for (int k = 0; k < 2; ++k) {
            int f = target[k];
            assert_true(fabs(s.last[k] - (value_at(last, f, ROWS) - mean[f]) / std[f]) < 1e-4);
            for (int h = 0; h < 4; ++h) {
                double expected = (value_at(last + 1 + h, f, ROWS) - mean[f]) / std[f];
                int before = last + 1 + h - (h < 3 ? 3 : 6);
                assert_true(fabs(s.target[2 * h + k] - expected) < 1e-4);
                assert_true(fabs(s.season[2 * h + k] - (value_at(before, f, ROWS) - mean[f]) / std[f]) < 1e-4);
            }
        }
    }
    cleat_dataset_destroy(dataset);
}

/* Whole rows are copied if every column is a feature. */
static void all_columns_may_be_features(void **state) {
    (void)state;
    cleat_series_options options = small_options();
    options.targets = "b";
    cleat_dataset *dataset = open_series(write_series(ROWS, ROWS), &options);
    double mean[3], std[3];
    for (int c = 0; c < 3; ++c) moments(60, c, &mean[c], &std[c]);
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i) {
        sample s;
        fill(dataset, i, &s);
        const int last = (int)((cleat_series_time(dataset, i, 0) - 1467331200) / HOUR);
        for (int t = 0; t < 6; ++t)
            for (int c = 0; c < 3; ++c)
                assert_true(fabs(s.x[3 * t + c] - (value_at(last - 5 + t, c, ROWS) - mean[c]) / std[c]) < 1e-4);
    }
    cleat_dataset_destroy(dataset);
}

static void splits_keep_their_targets(void **state) {
    (void)state;
    cleat_series_options options = small_options();
    options.stride = 5;
    options.eval_stride = 2;
    cleat_dataset *dataset = open_series(write_series(ROWS, ROWS), &options);
    static const int begin[3] = {0, 60, 90}, end[3] = {60, 90, 115};
    int64_t first[3] = {-1, -1, -1}, previous[3] = {0}, count[3] = {0};
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i) {
        cleat_split split = cleat_dataset_split(dataset, i);
        int64_t last = (cleat_series_time(dataset, i, 0) - 1467331200) / HOUR;
        assert_true(last - 5 >= 0);
        assert_true(last + 1 >= begin[split] && last + 4 < end[split]);
        if (first[split] < 0)
            first[split] = last;
        else
            assert_int_equal(last - previous[split], split == CLEAT_SPLIT_TRAIN ? 5 : 2);
        previous[split] = last;
        ++count[split];
    }
    assert_int_equal(first[0], 5);  /* the first row with a full look-back */
    assert_int_equal(first[1], 59); /* the look-back window reaches into the training rows */
    assert_int_equal(first[2], 89);
    assert_true(previous[0] + 5 + 4 >= 60 && previous[1] + 2 + 4 >= 90 && previous[2] + 2 + 4 >= 115);
    cleat_series_info info = cleat_series_describe(dataset);
    for (int s = 0; s < 3; ++s) {
        assert_int_equal(info.windows[s], count[s]);
        assert_int_equal(info.split_rows[s], end[s] - begin[s]);
    }
    assert_string_equal(cleat_dataset_id(dataset, 0), "2016-07-01T05:00:00");
    cleat_dataset_destroy(dataset);

    options = small_options();
    options.train_rows = options.val_rows = options.test_rows = 0;
    options.val_fraction = 0.25;
    options.test_fraction = 0.125;
    dataset = open_series(write_series(ROWS, ROWS), &options);
    info = cleat_series_describe(dataset);
    assert_int_equal(info.split_rows[0], 75);
    assert_int_equal(info.split_rows[1], 30);
    assert_int_equal(info.split_rows[2], 15);
    cleat_dataset_destroy(dataset);
}

static void resamples_are_means_up_to_the_last_row(void **state) {
    (void)state;
    cleat_series_options options = small_options();
    options.n_resamples = 2;
    options.resample_seconds[0] = 2 * HOUR;
    options.resample_seconds[1] = 5 * HOUR;
    options.targets = "a";
    cleat_dataset *dataset = open_series(write_series(ROWS, ROWS), &options);
    cleat_series_info info = cleat_series_describe(dataset);
    assert_int_equal(info.resolutions, 3);
    assert_int_equal(info.channels, 9);
    assert_int_equal(info.step, HOUR);
    static const int per[3] = {1, 2, 5};
    for (size_t f = 0; f < 3; ++f) assert_int_equal(cleat_series_resample_seconds(dataset, f), per[f] * HOUR);
    assert_int_equal(cleat_series_resample_seconds(dataset, 3), 0);
    double mean[3], std[3];
    for (int c = 0; c < 3; ++c) moments(60, c, &mean[c], &std[c]);
    /* the last known row of the first complete window */
    assert_int_equal(cleat_series_time(dataset, 0, 0), 1467331200 + (5 * 6 - 1) * HOUR);
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i) {
        sample s;
        fill(dataset, i, &s);
        int last = (int)((cleat_series_time(dataset, i, 0) - 1467331200) / HOUR);
        for (int t = 0; t < 6; ++t)
            for (int f = 0; f < 3; ++f)
                for (int c = 0; c < 3; ++c) {
                    double sum = 0;
                    for (int r = 0; r < per[f]; ++r) sum += value_at(last - per[f] * (5 - t) - r, c, ROWS);
                    double expected = (sum / per[f] - mean[c]) / std[c];
                    assert_true(fabs(s.x[9 * t + 3 * f + c] - expected) < 1e-4);
                }
    }
    cleat_dataset_destroy(dataset);
}

/* Every value after a row is changed: samples up to it keep the bits of x, last and season. As long as the
 * row lies after the training rows, all means and standard deviations remain unchanged. */
static void nothing_looks_ahead(void **state) {
    (void)state;
    cleat_series_options options = small_options();
    options.n_resamples = 1;
    options.resample_seconds[0] = 3 * HOUR;
    options.season = 4;
    static const int changed[] = {60, 61, 75, 89, 90, 100, 113};
    cleat_dataset *before = open_series(write_series(ROWS, ROWS), &options);
    for (size_t i = 0; i < sizeof changed / sizeof *changed; ++i) {
        cleat_dataset *after = open_series(write_series(ROWS, changed[i]), &options);
        assert_int_equal(cleat_dataset_count(after), cleat_dataset_count(before));
        for (size_t k = 0; k < 3; ++k) {
            assert_true(cleat_series_mean(after, k) == cleat_series_mean(before, k));
            assert_true(cleat_series_std(after, k) == cleat_series_std(before, k));
        }
        int same = 0, different = 0;
        for (size_t n = 0; n < cleat_dataset_count(after); ++n) {
            sample a, b;
            int64_t last = (cleat_series_time(before, n, 0) - 1467331200) / HOUR;
            fill(before, n, &a);
            fill(after, n, &b);
            bool equal = memcmp(a.x, b.x, sizeof a.x) == 0 && memcmp(a.last, b.last, sizeof a.last) == 0 &&
                         memcmp(a.season, b.season, sizeof a.season) == 0;
            /* the change is visible in samples that may depend on it */
            assert_int_equal(equal, last <= changed[i]);
            same += equal;
            different += memcmp(a.target, b.target, sizeof a.target) != 0;
            if (last + 4 <= changed[i]) assert_memory_equal(a.target, b.target, sizeof a.target);
        }
        assert_true(same > 0 && different > 0);
        cleat_dataset_destroy(after);
    }
    /* Rows appended after the test part have no effect. */
    cleat_dataset *longer = open_series(write_series(ROWS + 30, ROWS), &options);
    assert_int_equal(cleat_dataset_count(longer), cleat_dataset_count(before));
    for (size_t n = 0; n < cleat_dataset_count(longer); ++n) {
        sample a, b;
        fill(before, n, &a);
        fill(longer, n, &b);
        assert_memory_equal(&a, &b, sizeof a);
    }
    cleat_dataset_destroy(longer);
    cleat_dataset_destroy(before);
}

/* With an anchor, x and target are differences from the last known row, or the target is a difference from
 * `season`. */
static void anchors_are_subtracted(void **state) {
    (void)state;
    cleat_series_options options = small_options();
    options.targets = "c,a";
    options.season = 3;
    options.n_resamples = 1;
    options.resample_seconds[0] = 2 * HOUR;
    const char *path = write_series(ROWS, ROWS);
    cleat_dataset *plain = open_series(path, &options);
    for (int anchor = CLEAT_SERIES_ANCHOR_LAST; anchor <= CLEAT_SERIES_ANCHOR_SEASON; ++anchor) {
        options.anchor = (cleat_series_anchor)anchor;
        cleat_dataset *anchored = open_series(path, &options);
        for (size_t n = 0; n < cleat_dataset_count(plain); ++n) {
            sample p, a;
            fill(plain, n, &p);
            fill(anchored, n, &a);
            const float *now = p.x + 6 * 5; /* the last known row, at the sampling step of the file */
            for (int i = 0; i < 6 * 6; ++i) assert_true(a.x[i] == p.x[i] - now[i % 3]);
            for (int i = 0; i < 4 * 2; ++i)
                assert_true(a.target[i] ==
                            p.target[i] - (anchor == CLEAT_SERIES_ANCHOR_LAST ? p.last[i % 2] : p.season[i]));
            assert_memory_equal(a.last, p.last, sizeof a.last);
            assert_memory_equal(a.season, p.season, sizeof a.season);
        }
        cleat_dataset_destroy(anchored);
    }
    cleat_dataset_destroy(plain);
}

static void constant_columns_have_std_one(void **state) {
    (void)state;
    const char *path = test_path("constant.csv");
    char text[4096];
    size_t used = (size_t)sprintf(text, "t,k,v\n");
    for (int r = 0; r < 40; ++r)
        used += (size_t)sprintf(text + used, "%d,%s,%d\n", 1500000000 + r * 60, r < 30 ? "0.1" : "7", r % 5);
    test_write_text(path, text);
    cleat_series_options options = small_options();
    options.lookback = options.horizon = 2;
    options.train_rows = 30;
    options.val_rows = 10;
    options.test_rows = 0;
    cleat_dataset *dataset = open_series(path, &options);
    assert_true(cleat_series_mean(dataset, 0) == (double)0.1f && cleat_series_std(dataset, 0) == 1);
    assert_true(fabs(cleat_series_mean(dataset, 1) - 2) < 1e-12);
    assert_true(fabs(cleat_series_std(dataset, 1) - sqrt(2)) < 1e-12); /* biased: 0 1 2 3 4 */
    sample s;
    fill(dataset, 0, &s);
    assert_true(s.x[0] == 0 && s.last[0] == 0);
    fill(dataset, cleat_dataset_count(dataset) - 1, &s);
    assert_true(fabs(s.last[0] - 6.9) < 1e-6);
    cleat_dataset_destroy(dataset);
}

static void the_fitted_preprocessor_is_kept(void **state) {
    (void)state;
    cleat_series_options options = small_options();
    options.features = "b,a";
    options.targets = "c";
    options.n_resamples = 1;
    options.resample_seconds[0] = 3 * HOUR;
    cleat_dataset *first = open_series(write_series(ROWS, ROWS), &options);
    const char *folder = test_folder("learnt");
    char kept[512];
    cleat_error error = {0};
    snprintf(kept, sizeof kept, "%s", folder);
    assert_int_equal(cleat_dataset_save(first, kept, &error), CLEAT_OK);

    /* Different values after row 20, a different column order or an additional column do not change the
     * selected columns and their means. */
    cleat_series_options later = small_options();
    later.fitted = kept;
    cleat_dataset *second = open_series(write_series(ROWS, 20), &later);
    assert_string_equal(cleat_series_feature(second, 0), "b");
    assert_string_equal(cleat_series_target(second, 0), "c");
    assert_int_equal(cleat_series_resample_seconds(second, 1), 3 * HOUR);
    assert_true(cleat_series_mean(second, 0) == cleat_series_mean(first, 0));
    assert_true(cleat_series_std(second, 0) == cleat_series_std(first, 0));
    sample a, b;
    fill(first, 0, &a); /* last known row 17 */
    fill(second, 0, &b);
    assert_memory_equal(a.x, b.x, sizeof a.x);
    cleat_dataset_destroy(second);

    const struct {
        const char *features, *targets, *what;
        int64_t resample_step;
    } rows[] = {
        {"a,b", NULL, "features are b,a in training", 0},
        {NULL, "a", "targets are c in training", 0},
        {NULL, NULL, "data.frames differs", 5 * HOUR},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_dataset *refused = NULL;
        later.features = rows[i].features;
        later.targets = rows[i].targets;
        later.n_resamples = rows[i].resample_step != 0;
        later.resample_seconds[0] = rows[i].resample_step;
        assert_int_equal(cleat_series_open(test_path("series.csv"), &later, &refused, &error), CLEAT_ERR_ARGUMENT);
        if (!strstr(error.text, rows[i].what)) fail_msg("row %zu: '%s'", i, error.text);
    }
    cleat_dataset_destroy(first);
}

static void a_forecast_begins_where_the_file_ends(void **state) {
    (void)state;
    cleat_series_options options = small_options();
    cleat_dataset *trained = open_series(write_series(ROWS, ROWS), &options);
    char kept[512];
    cleat_error error = {0};
    snprintf(kept, sizeof kept, "%s", test_folder("forecast"));
    assert_int_equal(cleat_dataset_save(trained, kept, &error), CLEAT_OK);
    options = small_options();
    options.train_rows = 5000; /* splits apply to training only */
    options.forecast = true;
    options.eval_stride = 7;
    cleat_dataset *none = NULL;
    assert_int_equal(cleat_series_open(test_path("series.csv"), &options, &none, &error), CLEAT_ERR_ARGUMENT);
    options.fitted = kept;
    cleat_dataset *dataset = open_series(test_path("series.csv"), &options);
    size_t count = cleat_dataset_count(dataset);
    assert_int_equal(count, (ROWS - 6) / 7 + 1);
    for (size_t i = 0; i < count; ++i) {
        int64_t last = ROWS - 1 - 7 * (int64_t)(count - 1 - i), known = ROWS - 1 - last < 4 ? ROWS - 1 - last : 4;
        assert_int_equal(cleat_series_time(dataset, i, 0), 1467331200 + last * HOUR);
        assert_int_equal(cleat_series_time(dataset, i, 4), 1467331200 + (last + 4) * HOUR);
        assert_int_equal(cleat_dataset_split(dataset, i), CLEAT_SPLIT_TEST);
        assert_int_equal(cleat_series_known(dataset, i), known);
        size_t same = find_sample(trained, last);
        sample a, b;
        fill(dataset, i, &a);
        for (int v = (int)known * 3; v < 12; ++v) assert_true(a.target[v] == 0);
        if (same == SIZE_MAX) continue;
        fill(trained, same, &b);
        assert_memory_equal(&a, &b, sizeof a);
    }
    cleat_dataset_destroy(dataset);
    cleat_dataset_destroy(trained);
}

/* Besides, what the last evaluation of the training has found, but for the last bit (cJSON). */
static void the_next_steps_follow_from_the_last_row(void **state) {
    (void)state;
    cleat_series_options options = small_options();
    cleat_dataset *trained = open_series(write_series(ROWS, ROWS), &options);
    char kept[512];
    cleat_error error = {0};
    snprintf(kept, sizeof kept, "%s", test_folder("next"));
    assert_true(isnan(cleat_series_errors(trained)[0]));
    for (int i = 0; i < 12; ++i) cleat_series_errors(trained)[i] = 1.0 / (i + 3);
    assert_int_equal(cleat_dataset_save(trained, kept, &error), CLEAT_OK);
    options.fitted = kept;
    options.forecast = options.next_only = true;
    cleat_dataset *dataset = open_series(test_path("series.csv"), &options);
    assert_int_equal(cleat_dataset_count(dataset), 1);
    for (int row = 0; row < ROWS; ++row)
        assert_int_equal(cleat_series_time(dataset, 0, row - (ROWS - 1)), 1467331200 + row * HOUR);
    assert_int_equal(cleat_series_time(dataset, 0, -ROWS), INT64_MIN);
    assert_int_equal(cleat_series_known(dataset, 0), 0);
    for (int i = 0; i < 12; ++i) assert_true(fabs(cleat_series_errors(dataset)[i] * (i + 3) - 1) < 1e-15);
    cleat_dataset_destroy(dataset);
    assert_int_equal(cleat_series_open(write_series(3, 3), &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "the file has fewer; add earlier rows"));
    cleat_dataset_destroy(trained);
}

/* Opens `rows` rows for evaluation, with the preprocessor that small_options() fits to 115 of them. */
static cleat_dataset *open_evaluation(int rows, const cleat_series_options *options, const char *kept) {
    cleat_series_options evaluation = *options;
    evaluation.fitted = kept;
    evaluation.evaluation = true;
    return open_series(write_series(rows, ROWS), &evaluation);
}

/* Asserts that every window of rows [0, rows) is present, `stride` rows apart, with the same values as in the
 * training file. */
static void assert_whole(const cleat_dataset *dataset, int rows, int stride, const cleat_dataset *trained) {
    assert_true(cleat_dataset_is_whole(dataset));
    assert_int_equal(cleat_dataset_count(dataset), (rows - 10) / stride + 1);
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i) {
        const int64_t last = 5 + (int64_t)i * stride;
        sample a, b;
        assert_int_equal(cleat_series_time(dataset, i, 0), 1467331200 + last * HOUR);
        assert_int_equal(cleat_dataset_split(dataset, i), CLEAT_SPLIT_TEST);
        assert_int_equal(cleat_series_known(dataset, i), 4);
        const size_t same = find_sample(trained, last);
        fill(dataset, i, &a);
        if (same == SIZE_MAX) continue; /* at the boundary of two splits */
        fill(trained, same, &b);
        assert_memory_equal(&a, &b, sizeof a);
    }
    cleat_series_info info = cleat_series_describe(dataset);
    assert_int_equal(info.split_rows[CLEAT_SPLIT_TEST], rows);
    assert_int_equal(info.windows[CLEAT_SPLIT_TEST], cleat_dataset_count(dataset));
    assert_int_equal(info.split_rows[CLEAT_SPLIT_TRAIN] + info.split_rows[CLEAT_SPLIT_VAL], 0);
}

static void an_evaluation_takes_any_file(void **state) {
    (void)state;
    enum { SUM = 115 };
    const cleat_series_options options = small_options();
    char kept[512];
    cleat_error error = {0};
    cleat_dataset *trained = open_series(write_series(ROWS, ROWS), &options), *dataset;
    snprintf(kept, sizeof kept, "%s", test_folder("evaluation"));
    assert_int_equal(cleat_dataset_save(trained, kept, &error), CLEAT_OK);

    /* The training file, and a longer one: training's splits apply unless the whole file is requested. */
    for (int rows = SUM; rows <= ROWS; rows += ROWS - SUM) {
        dataset = open_evaluation(rows, &options, kept);
        assert_false(cleat_dataset_is_whole(dataset));
        assert_int_equal(cleat_dataset_count(dataset), cleat_dataset_count(trained));
        assert_int_equal(cleat_dataset_make_whole(dataset, &error), CLEAT_OK);
        assert_whole(dataset, rows, 1, trained);
        assert_int_equal(cleat_dataset_make_whole(dataset, &error), CLEAT_OK);
        assert_whole(dataset, rows, 1, trained);
        cleat_dataset_destroy(dataset);
    }

    /* A file that is shorter than any of the counts is used as a whole; a single window is enough. */
    const int shorter[] = {SUM - 1, 70, 40, 10};
    for (int i = 0; i < 4; ++i) {
        cleat_series_options strided = small_options();
        strided.stride = 5;
        strided.eval_stride = 1 + i;
        dataset = open_evaluation(shorter[i], &strided, kept);
        assert_whole(dataset, shorter[i], 1 + i, trained);
        cleat_dataset_destroy(dataset);
    }

    /* With fractions, the file has splits. A split without a window is not an error; if no split has one, the
     * whole file is used. */
    cleat_series_options fractions = small_options();
    fractions.train_rows = fractions.val_rows = fractions.test_rows = 0;
    fractions.val_fraction = fractions.test_fraction = 0.1;
    dataset = open_evaluation(30, &fractions, kept);
    cleat_series_info info = cleat_series_describe(dataset);
    assert_false(cleat_dataset_is_whole(dataset));
    assert_true(info.windows[CLEAT_SPLIT_TRAIN] == 24 - 9 && info.windows[CLEAT_SPLIT_VAL] == 0 &&
                info.windows[CLEAT_SPLIT_TEST] == 0);
    assert_int_equal(cleat_dataset_make_whole(dataset, &error), CLEAT_OK);
    assert_whole(dataset, 30, 1, trained);
    cleat_dataset_destroy(dataset);
    fractions.val_fraction = fractions.test_fraction = 0.25;
    dataset = open_evaluation(12, &fractions, kept); /* 6, 3 and 3 rows */
    assert_whole(dataset, 12, 1, trained);
    cleat_dataset_destroy(dataset);

    cleat_dataset_destroy(trained);
}

static void an_evaluation_needs_a_window(void **state) {
    (void)state;
    cleat_series_options options = small_options();
    char kept[512];
    cleat_error error = {0};
    cleat_dataset *trained = open_series(write_series(ROWS, ROWS), &options), *none = NULL;
    snprintf(kept, sizeof kept, "%s", test_folder("window"));
    assert_int_equal(cleat_dataset_save(trained, kept, &error), CLEAT_OK);
    options.evaluation = true;
    assert_int_equal(cleat_series_open(write_series(ROWS, ROWS), &options, &none, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "an evaluation requires the preprocessing state saved by training"));
    options.fitted = kept;
    assert_int_equal(cleat_series_open(write_series(9, ROWS), &options, &none, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "no window fits the file: each takes 6 rows of lookback and 4 rows of targets"));
    options.evaluation = false; /* a resumed training whose file is now shorter */
    assert_int_equal(cleat_series_open(write_series(70, ROWS), &options, &none, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "the val split would be rows 61 to 90, but the file has 70"));
    assert_null(none);
    cleat_dataset_destroy(trained);
}

/* Datasets of other kinds already contain every sample, so nothing changes. */
static void other_datasets_are_whole_anyway(void **state) {
    (void)state;
    const char *path = test_path("w.pdb");
    test_write_text(path, "ATOM      1  C1'   A A   1       0.000   0.000   0.000\n");
    cleat_dataset *rna = NULL;
    cleat_error error = {0};
    if (cleat_rna_open(path, NULL, &rna, &error)) fail_msg("%s", error.text);
    assert_int_equal(cleat_dataset_make_whole(rna, &error), CLEAT_OK);
    assert_false(cleat_dataset_is_whole(rna));
    assert_int_equal(cleat_dataset_count(rna), 1);
    cleat_dataset_destroy(rna);
}

static void asks_of_other_datasets_get_nothing(void **state) {
    (void)state;
    const char *path = test_path("x.pdb");
    test_write_text(path, "ATOM      1  C1'   A A   1       0.000   0.000   0.000\n");
    cleat_dataset *rna = NULL;
    cleat_error error = {0};
    if (cleat_rna_open(path, NULL, &rna, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(cleat_series_describe(rna).lookback, 0);
    assert_null(cleat_series_feature(rna, 0));
    assert_null(cleat_series_target(rna, 0));
    assert_true(cleat_series_mean(rna, 0) == 0 && cleat_series_std(rna, 0) == 0);
    assert_int_equal(cleat_series_resample_seconds(rna, 0), 0);
    assert_int_equal(cleat_series_time(rna, 0, 0), 0);
    assert_int_equal(cleat_series_known(rna, 0), 0);
    cleat_dataset_destroy(rna);
}

/* --- the real files, if the checkout has them beside it -------------------------------------------------------- */

typedef struct score {
    double mse, mae;
} score;

static void add_score(const float *forecast, int64_t period, const float *target, int64_t values, score *sum) {
    for (int64_t i = 0; i < values; ++i) {
        double off = (double)forecast[i % period] - target[i];
        sum->mse += off * off;
        sum->mae += fabs(off);
    }
}

static void check_ett(const char *file, int64_t horizon, score last, score season) {
    cleat_series_options options = cleat_series_defaults();
    options.file = file;
    options.horizon = horizon;
    options.season = 24;
    options.eval_stride = 7;
    options.train_rows = 8640;
    options.val_rows = options.test_rows = 2880;
    cleat_dataset *dataset = open_series(shared_path("data/timeseries_ett"), &options);
    uint32_t *samples;
    size_t count;
    cleat_error error = {0};
    assert_int_equal(cleat_dataset_samples(dataset, CLEAT_SPLIT_TEST, &samples, &count, &error), CLEAT_OK);
    assert_int_equal(count, (2880 - horizon) / 7 + 1);
    score got_last = {0}, got_season = {0};
    static float target[96 * 7], latest[7], before[96 * 7];
    void *slots[4] = {NULL, target, latest, before};
    for (size_t i = 0; i < count; ++i) {
        assert_int_equal(cleat_dataset_fill(dataset, samples[i], 96, NULL, slots, &error), CLEAT_OK);
        add_score(latest, 7, target, horizon * 7, &got_last);
        add_score(before, horizon * 7, target, horizon * 7, &got_season);
    }
    double n = (double)(count * (size_t)horizon * 7);
    const double off[4] = {got_last.mse / n - last.mse, got_last.mae / n - last.mae, got_season.mse / n - season.mse,
                           got_season.mae / n - season.mae};
    for (int i = 0; i < 4; ++i)
        if (!(fabs(off[i]) <= 1e-5)) fail_msg("%s %lld: value %d is off by %g", file, (long long)horizon, i, off[i]);
    cleat_samples_free(samples);
    cleat_dataset_destroy(dataset);
}

/* The values in the shared data's README, recomputed to five digits by a script without this library. */
static void baselines_of_the_real_series(void **state) {
    (void)state;
    if (access(shared_path("data/timeseries_ett/ETTh1.csv"), R_OK) != 0) skip();
    check_ett("ETTh1.csv", 24, (score){1.22246, 0.67486}, (score){0.42301, 0.38892});
    check_ett("ETTh1.csv", 96, (score){1.29933, 0.71578}, (score){0.51266, 0.43376});
    check_ett("ETTh2.csv", 24, (score){0.26977, 0.33306}, (score){0.26643, 0.30375});
    check_ett("ETTh2.csv", 96, (score){0.42472, 0.41860}, (score){0.38973, 0.37969});
}

/* Today's value as the forecast for the next day, over the last tenth of the days, in dollars. */
static void persistence_of_the_oil_prices(void **state) {
    (void)state;
    if (access(shared_path("data/timeseries_oil/wti-daily.csv"), R_OK) != 0) skip();
    static const struct {
        const char *file;
        int64_t train_rows, test_rows;
        double mae, rmse;
    } rows[] = {{"brent-daily.csv", 7169, 797, 0.83595, 1.10097}, {"wti-daily.csv", 7362, 818, 0.83016, 1.08525}};
    for (size_t r = 0; r < 2; ++r) {
        cleat_series_options options = cleat_series_defaults();
        options.file = rows[r].file;
        options.horizon = 1;
        options.gaps = CLEAT_GAPS_ROWS;
        options.train_rows = rows[r].train_rows;
        options.test_rows = rows[r].test_rows;
        cleat_dataset *dataset = open_series(shared_path("data/timeseries_oil"), &options);
        uint32_t *samples;
        size_t count;
        cleat_error error = {0};
        float target, latest;
        void *slots[4] = {NULL, &target, &latest, NULL};
        score sum = {0};
        assert_int_equal(cleat_series_describe(dataset).step, 86400);
        assert_int_equal(cleat_dataset_samples(dataset, CLEAT_SPLIT_TEST, &samples, &count, &error), CLEAT_OK);
        for (size_t i = 0; i < count; ++i) {
            assert_int_equal(cleat_dataset_fill(dataset, samples[i], 96, NULL, slots, &error), CLEAT_OK);
            add_score(&latest, 1, &target, 1, &sum);
        }
        double scale = cleat_series_std(dataset, 0), n = (double)count;
        if (!(fabs(sum.mae / n * scale - rows[r].mae) < 2e-5 && fabs(sqrt(sum.mse / n) * scale - rows[r].rmse) < 2e-5))
            fail_msg("%s: MAE %g, RMSE %g", rows[r].file, sum.mae / n * scale, sqrt(sum.mse / n) * scale);
        cleat_samples_free(samples);
        cleat_dataset_destroy(dataset);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_hold_standardised_windows),
        cmocka_unit_test(all_columns_may_be_features),
        cmocka_unit_test(splits_keep_their_targets),
        cmocka_unit_test(resamples_are_means_up_to_the_last_row),
        cmocka_unit_test(nothing_looks_ahead),
        cmocka_unit_test(anchors_are_subtracted),
        cmocka_unit_test(constant_columns_have_std_one),
        cmocka_unit_test(the_fitted_preprocessor_is_kept),
        cmocka_unit_test(a_forecast_begins_where_the_file_ends),
        cmocka_unit_test(the_next_steps_follow_from_the_last_row),
        cmocka_unit_test(an_evaluation_takes_any_file),
        cmocka_unit_test(an_evaluation_needs_a_window),
        cmocka_unit_test(other_datasets_are_whole_anyway),
        cmocka_unit_test(asks_of_other_datasets_get_nothing),
        cmocka_unit_test(baselines_of_the_real_series),
        cmocka_unit_test(persistence_of_the_oil_prices),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}
