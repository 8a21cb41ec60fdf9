/* Borders of the splits of a series, and the windows in each split. */
#include "data/series/series.h"

#include "core/memory.h"

static cleat_status borders_by_rows(const char *path, const cleat_series_options *options, int64_t rows,
                                    cleat_series_windows *windows, cleat_error *error) {
    const int64_t wanted[CLEAT_SPLITS] = {options->train_rows, options->val_rows, options->test_rows};
    int64_t at = 0;
    for (int s = 0; s < CLEAT_SPLITS; ++s) {
        if (wanted[s] > rows - at)
            return cleat_fail(
                error, CLEAT_ERR_ARGUMENT,
                "%s: the %s split would be rows %lld to %lld, but the file has %lld; use fewer rows, or shares "
                "of the file: --set data.train_rows=none --set data.val_rows=none --set "
                "data.test_rows=none",
                path, cleat_split_name((cleat_split)s), (long long)at + 1, (long long)(at + wanted[s]),
                (long long)rows);
        windows->begin[s] = at;
        windows->end[s] = at += wanted[s];
    }
    return CLEAT_OK;
}

static void borders_by_fraction(const cleat_series_options *options, int64_t rows, cleat_series_windows *windows) {
    int64_t test = (int64_t)((double)rows * options->test_fraction);
    int64_t val = (int64_t)((double)rows * options->val_fraction);
    if (options->series_column) { /* short series have targets in each part */
        if (test && test < options->horizon) test = options->horizon;
        if (val && val < options->horizon) val = options->horizon;
        if (test > rows) test = rows;
        if (val > rows - test) val = rows - test;
    }
    windows->begin[CLEAT_SPLIT_TRAIN] = 0;
    windows->end[CLEAT_SPLIT_TRAIN] = windows->begin[CLEAT_SPLIT_VAL] = rows - val - test;
    windows->end[CLEAT_SPLIT_VAL] = windows->begin[CLEAT_SPLIT_TEST] = rows - test;
    windows->end[CLEAT_SPLIT_TEST] = rows;
}

int64_t cleat_series_training_rows(const cleat_series_options *options, int64_t rows) {
    cleat_series_windows windows;
    borders_by_fraction(options, rows, &windows);
    if (options->train_rows) return options->train_rows < rows ? options->train_rows : rows;
    return windows.end[CLEAT_SPLIT_TRAIN];
}

static void no_borders(int64_t rows, cleat_series_windows *windows) {
    for (int s = 0; s < CLEAT_SPLITS; ++s) windows->begin[s] = windows->end[s] = 0;
    windows->end[CLEAT_SPLIT_TEST] = rows;
}

/* Whether the row counts are those of another, longer file, on which the model was trained. */
static bool is_another_file(const char *path, const cleat_series_options *options, int64_t rows) {
    const int64_t wanted = options->train_rows + options->val_rows + options->test_rows;
    if (!options->evaluation || wanted <= rows) return false;
    cleat_log(
        CLEAT_LOG_INFO,
        "%s: %lld rows, fewer than train_rows + val_rows + test_rows = %lld: the whole file is evaluated, without "
        "splits",
        path, (long long)rows, (long long)wanted);
    return true;
}

static cleat_status find_borders(const char *path, const cleat_series_options *options, int64_t rows,
                                 cleat_series_windows *windows, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    windows->whole = windows->whole || is_another_file(path, options, rows);
    if (options->forecast || windows->whole) {
        no_borders(rows, windows);
        return CLEAT_OK;
    }
    if (options->train_rows || options->val_rows || options->test_rows)
        status = borders_by_rows(path, options, rows, windows, error);
    else
        borders_by_fraction(options, rows, windows);
    if (!status && !options->fitted && windows->end[CLEAT_SPLIT_TRAIN] == 0 && !options->series_column)
        status =
            cleat_fail(error, CLEAT_ERR_ARGUMENT,
                       "%s: no training rows are left; set train_rows, or smaller validation and test fractions", path);
    return status;
}

/* Scan state: rows below `scanned` have been scanned, and the range without gaps and missing cells that ends
 * there begins at `clean_from`. */
typedef struct scan {
    const uint8_t *flags;
    int64_t scanned, clean_from;
} scan;

static int64_t clean_from(scan *s, int64_t row) {
    for (; s->scanned <= row; ++s->scanned) {
        if (s->flags[s->scanned] & CLEAT_ROW_BREAK) s->clean_from = s->scanned;
        if (s->flags[s->scanned] & CLEAT_ROW_MISSING) s->clean_from = s->scanned + 1;
    }
    return s->clean_from;
}

/* The last known rows that samples of a split may have: first, first + stride, ... below `end`. */
typedef struct range {
    int64_t first, end, stride;
} range;

static range range_of(const cleat_series_options *options, const cleat_series_windows *windows, int64_t begin,
                      int64_t reach, int split) {
    int64_t least = begin + reach - 1, before = windows->begin[split] - 1;
    int64_t ahead = options->forecast ? 0 : options->horizon;
    range r = {.first = before > least ? before : least,
               .end = windows->end[split] - ahead,
               .stride = split == CLEAT_SPLIT_TRAIN ? options->stride : options->eval_stride};
    /* no rows, no windows */
    if (windows->begin[split] == windows->end[split]) r.end = r.first;
    /* the last row is included */
    if (options->forecast && r.end > r.first) r.first += (r.end - 1 - r.first) % r.stride;
    if (options->next_only && r.end > r.first) r.first = r.end - 1;
    return r;
}

static cleat_status no_window(const char *path, const cleat_series_options *options, int split, int64_t reach,
                              const cleat_series_windows *windows, cleat_error *error) {
    if (options->next_only)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "%s: the next steps follow from the last %lld rows of a series, but %s", path,
                          (long long)reach,
                          windows->left_out ? "rows or values are missing there; add them, set data.gaps=fill "
                                              "data.missing=fill, or forecast from the rows before (--all)"
                                            : "the file has fewer; add earlier rows");
    if (windows->whole)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "%s: no window fits the file: each takes %lld rows of lookback and %lld rows of targets, and "
                          "the file has %lld (%lld windows contain gaps or missing values); use a longer file",
                          path, (long long)reach, (long long)options->horizon, (long long)windows->end[split],
                          (long long)windows->left_out);
    if (options->forecast)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "%s: a forecast takes %lld consecutive rows without gaps or missing values, and no series "
                          "has them (%lld rows in all); give it more rows",
                          path, (long long)reach, (long long)windows->end[split]);
    return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                      "%s: no window fits the %s split, rows %lld to %lld: each takes %lld rows of targets there and "
                      "%lld rows of lookback before them (%lld windows contain gaps or missing values); reduce "
                      "lookback, horizon or frames, or enlarge the split",
                      path, cleat_split_name((cleat_split)split), (long long)windows->begin[split] + 1,
                      (long long)windows->end[split], (long long)options->horizon, (long long)reach,
                      (long long)windows->left_out);
}

/* Whether a split without a window is an error. */
static bool is_needed(const cleat_series_options *options, const cleat_series_windows *windows, int split) {
    if (options->evaluation || (options->fitted && split == CLEAT_SPLIT_TRAIN)) return false;
    return windows->end[split] > windows->begin[split];
}

/* Adds the windows of a split of one series. */
static void add_windows(const cleat_series_options *options, const cleat_series_table *table,
                        const cleat_series_part *part, range r, int64_t reach, uint32_t *last,
                        cleat_series_windows *windows) {
    const int64_t ahead = options->forecast ? 0 : options->horizon;
    scan s = {.flags = table->flags, .scanned = part->begin, .clean_from = part->begin};
    for (int64_t at = r.first; at < r.end; at += r.stride) {
        bool clean = clean_from(&s, at + ahead) <= at - reach + 1;
        if (clean) last[windows->count++] = (uint32_t)at;
        windows->left_out += !clean;
    }
}

/* The borders of all series, which become the rows of the table, and their sums. */
static cleat_status all_borders(const char *path, const cleat_series_options *options, const cleat_series_table *table,
                                int64_t reach, cleat_series_windows *each, cleat_series_windows *windows,
                                cleat_error *error) {
    const int64_t ahead = options->forecast ? 0 : options->horizon;
    cleat_status status = CLEAT_OK;
    windows->short_series = 0;
    for (size_t i = 0; i < table->n_series && !status; ++i) {
        const cleat_series_part *part = &table->series[i];
        each[i] = (cleat_series_windows){.whole = windows->whole};
        status = find_borders(path, options, part->end - part->begin, &each[i], error);
        windows->whole = each[i].whole;
        windows->short_series += part->end - part->begin < reach + ahead;
        for (int s = 0; s < CLEAT_SPLITS; ++s) {
            const int64_t rows = i ? windows->end[s] - windows->begin[s] : 0;
            windows->begin[s] = i ? 0 : each[i].begin[s];
            windows->end[s] = rows + each[i].end[s] - (i ? each[i].begin[s] : 0);
            each[i].begin[s] += part->begin;
            each[i].end[s] += part->begin;
        }
    }
    return status;
}

static cleat_status find_windows(const char *path, const cleat_series_options *options, const cleat_series_table *table,
                                 int64_t reach, cleat_series_windows *windows, cleat_error *error) {
    int64_t most = 0;
    uint32_t *last = NULL;
    cleat_series_windows *each = cleat_alloc(table->n_series, sizeof *each);
    if (!each) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %zu series", path, table->n_series);
    cleat_status status = all_borders(path, options, table, reach, each, windows, error);
    for (int split = 0; split < CLEAT_SPLITS; ++split)
        for (size_t i = 0; i < table->n_series && !status; ++i) {
            range r = range_of(options, &each[i], table->series[i].begin, reach, split);
            if (r.end > r.first) most += (r.end - 1 - r.first) / r.stride + 1;
        }
    if (!status && !(last = cleat_alloc((size_t)most, sizeof *last)))
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %lld windows", path, (long long)most);
    windows->count = 0;
    windows->left_out = windows->trained = 0;
    for (int split = 0; split < CLEAT_SPLITS && !status; ++split) {
        size_t before = windows->count;
        for (size_t i = 0; i < table->n_series; ++i) {
            const size_t others = windows->count;
            add_windows(options, table, &table->series[i],
                        range_of(options, &each[i], table->series[i].begin, reach, split), reach, last, windows);
            windows->trained += split == CLEAT_SPLIT_TRAIN && windows->count > others;
        }
        windows->of_split[split] = (int64_t)(windows->count - before);
        if (windows->count == before && is_needed(options, windows, split))
            status = no_window(path, options, split, reach, windows, error);
    }
    if (!status && !windows->count)
        status = no_window(path, options, windows->whole ? CLEAT_SPLIT_TEST : CLEAT_SPLIT_TRAIN, reach, windows, error);
    cleat_free(each);
    if (status) {
        cleat_free(last);
        return status;
    }
    windows->last = last;
    return CLEAT_OK;
}

cleat_status cleat_series_windows_find(const char *path, const cleat_series_options *options,
                                       const cleat_series_table *table, int64_t reach, cleat_series_windows *windows,
                                       cleat_error *error) {
    const bool may_become_whole = options->evaluation && !windows->whole;
    cleat_status status = find_windows(path, options, table, reach, windows, error);
    if (status != CLEAT_ERR_ARGUMENT || !may_become_whole) return status;
    cleat_log(CLEAT_LOG_INFO, "%s: no split of the %lld rows has a window: the whole file is evaluated, without splits",
              path, (long long)table->rows);
    if (error) *error = (cleat_error){0};
    windows->whole = true;
    return find_windows(path, options, table, reach, windows, error);
}
