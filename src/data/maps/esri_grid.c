/* Parser of ESRI ASCII grids. */
#include "data/maps/esri_grid.h"

#include "core/memory.h"
#include "core/string.h"
#include "data/common/source.h"
#include "platform/text.h"

#include <math.h>
#include <string.h>

enum { NCOLS, NROWS, LEFT, BOTTOM, CELL, NODATA, KEYS, MAX_CELLS = 1 << 30 };

typedef struct reader {
    cleat_source source;
    size_t line;
    const char *line_start;
    const char *word; /* the current word and its length; 0 at the end of the file */
    size_t size;
    size_t key_line[KEYS]; /* 0: not found yet */
    double header[KEYS];
    bool center[KEYS]; /* LEFT and BOTTOM refer to the centre of the cell */
} reader;

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}

static void next_word(reader *r) {
    char *p = r->source.at, *end = r->source.end;
    for (; p < end && is_blank(*p); ++p)
        if (*p == '\n') {
            ++r->line;
            r->line_start = p + 1;
        }
    r->word = p;
    while (p < end && !is_blank(*p)) ++p;
    r->size = (size_t)(p - r->word);
    r->source.at = p;
}

static cleat_status bad_word(const reader *r, const char *what, cleat_error *error) {
    char shown[CLEAT_EXCERPT_SIZE];
    return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu:%zu: '%s' %s", r->source.path, r->line,
                      (size_t)(r->word - r->line_start) + 1, cleat_format_excerpt(r->word, r->size, shown), what);
}

static bool word_is(const reader *r, const char *name) {
    return r->size == strlen(name) && strncasecmp(r->word, name, r->size) == 0;
}

static const char *why_no_number(const reader *r) {
    if (word_is(r, "nan") || word_is(r, "inf") || word_is(r, "-inf") || word_is(r, "-nan") || word_is(r, "na") ||
        word_is(r, "null"))
        return "is not a number; write the NODATA_value of the file where the value is unknown";
    if (memchr(r->word, ',', r->size)) return "is not a number; use a decimal point, and blanks between values";
    return "is not a number";
}

static const struct {
    const char *name;
    int key;
    bool center;
} keys[] = {
    {"ncols", NCOLS, false},   {"nrows", NROWS, false},         {"xllcorner", LEFT, false},
    {"xllcenter", LEFT, true}, {"yllcorner", BOTTOM, false},    {"yllcenter", BOTTOM, true},
    {"cellsize", CELL, false}, {"NODATA_value", NODATA, false},
};
enum { NAMES = sizeof keys / sizeof *keys };

static const char *name_of(int key) {
    size_t i = 0;
    while (keys[i].key != key) ++i;
    return keys[i].name;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* GDAL writes "NODATA_value nan", and unknown cells as nan. */
static bool is_nan(const reader *r) {
    return word_is(r, "nan") || word_is(r, "-nan");
}

/* Whether a value equals NODATA_value in single precision, because programs write it with different numbers
 * of digits; above 1e30, which no cell reaches, only four digits are compared. */
static bool is_nodata(const reader *r, double value) {
    const double mark = r->header[NODATA];
    return (isfinite((float)mark) && (float)value == (float)mark) ||
           (fabs(mark) >= 1e30 && fabs(value - mark) <= 1e-4 * fabs(mark));
}

/* Reads a name and its number; the name is the current word. */
static cleat_status read_entry(reader *r, cleat_error *error) {
    size_t i = 0;
    while (i < NAMES && !word_is(r, keys[i].name)) ++i;
    if (i == NAMES && (word_is(r, "dx") || word_is(r, "dy")))
        return bad_word(r, "describes cells that are not square; resample the grid to square cells (cellsize)", error);
    if (i == NAMES)
        return bad_word(r,
                        "is not a header name; the names are ncols, nrows, xllcorner or xllcenter, yllcorner or "
                        "yllcenter, cellsize and NODATA_value",
                        error);
    int key = keys[i].key;
    if (r->key_line[key]) return bad_word(r, "repeats an entry of the header; delete one of the lines", error);
    r->key_line[key] = r->line;
    r->center[key] = keys[i].center;
    next_word(r);
    if (!r->size)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s:%zu: the file ends after %s; copy it again", r->source.path,
                          r->line, keys[i].name);
    if (key == NODATA && is_nan(r))
        r->header[key] = NAN;
    else if (!cleat_parse_decimal(r->word, r->size, &r->header[key]))
        return bad_word(r, why_no_number(r), error);
    double value = r->header[key];
    if ((key == NCOLS || key == NROWS) && !(value >= 1 && value <= MAX_CELLS && value == floor(value)))
        return bad_word(r, "must be a whole number of at least 1", error);
    if (key == CELL && !(value > 0)) return bad_word(r, "must be greater than 0", error);
    return CLEAT_OK;
}

static cleat_status read_header(reader *r, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (next_word(r); r->size && is_letter(*r->word) && !is_nan(r) && !word_is(r, "inf"); next_word(r)) {
        status = read_entry(r, error);
        if (status) return status;
    }
    for (int key = 0; key < NODATA; ++key)
        if (!r->key_line[key])
            return cleat_fail(error, CLEAT_ERR_FORMAT,
                              "%s:%zu: the header has no %s; an ESRI ASCII grid begins with lines such as 'ncols 84', "
                              "'nrows 68', 'xllcorner 112', 'yllcorner -44', 'cellsize 0.5'",
                              r->source.path, r->line, name_of(key));
    if (!r->key_line[NODATA]) r->header[NODATA] = -9999;
    return status;
}

/* Checks the size before anything is allocated: a value takes at least one byte and a blank. */
static cleat_status check_room(const reader *r, cleat_error *error) {
    double cells = r->header[NCOLS] * r->header[NROWS];
    size_t bytes = (size_t)(r->source.end - r->word);
    if (cells <= MAX_CELLS && cells <= (double)(bytes + 1) / 2) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_FORMAT,
                      "%s:%zu: %.0f columns and %.0f rows do not fit into the %zu bytes after the header; correct "
                      "ncols and nrows, or copy the file again",
                      r->source.path, r->key_line[NCOLS], r->header[NCOLS], r->header[NROWS], bytes);
}

static cleat_status read_values(reader *r, float *values, size_t cells, cleat_error *error) {
    double value;
    for (size_t i = 0; i < cells; ++i, next_word(r)) {
        if (!r->size)
            return cleat_fail(
                error, CLEAT_ERR_FORMAT,
                "%s:%zu: the file ends after %zu of %.0f x %.0f values; copy it again, or correct ncols and "
                "nrows",
                r->source.path, r->line, i, r->header[NROWS], r->header[NCOLS]);
        if (isnan(r->header[NODATA]) && is_nan(r))
            value = NAN;
        else if (!cleat_parse_decimal(r->word, r->size, &value))
            return bad_word(r, why_no_number(r), error);
        values[i] = is_nodata(r, value) ? NAN : (float)value;
        if (isinf(values[i])) return bad_word(r, "exceeds the range of single precision", error);
    }
    if (!r->size) return CLEAT_OK;
    return bad_word(r, "is one value more than ncols and nrows allow; correct them", error);
}

cleat_status cleat_esri_grid_read(const char *path, cleat_esri_grid *grid, cleat_error *error) {
    reader r = {.line = 1};
    float *values = NULL;
    cleat_status status = cleat_source_read(path, false, &r.source, error);
    if (status) return status;
    r.line_start = r.source.at;
    status = read_header(&r, error);
    if (!status) status = check_room(&r, error);
    if (status) goto done;
    size_t cells = (size_t)(r.header[NCOLS] * r.header[NROWS]);
    values = cleat_alloc(cells, sizeof *values);
    status = values ? read_values(&r, values, cells, error)
                    : cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %zu values", path, cells);
    if (status) goto done;
    double half = r.header[CELL] / 2;
    *grid = (cleat_esri_grid){.rows = (int64_t)r.header[NROWS],
                              .columns = (int64_t)r.header[NCOLS],
                              .left = r.header[LEFT] - (r.center[LEFT] ? half : 0),
                              .bottom = r.header[BOTTOM] - (r.center[BOTTOM] ? half : 0),
                              .cell = r.header[CELL],
                              .values = values};
    values = NULL;
done:
    cleat_free(values);
    cleat_source_close(&r.source);
    return status;
}

void cleat_esri_grid_free(cleat_esri_grid *grid) {
    cleat_free(grid->values);
    *grid = (cleat_esri_grid){0};
}

cleat_status cleat_esri_grid_match(const char *path, const cleat_esri_grid *grid, const char *other_path,
                                   const cleat_esri_grid *other, cleat_error *error) {
    char mine[32], theirs[32];
    double slack = 1e-6 * grid->cell;
    const struct {
        const char *name;
        double mine, theirs, slack;
    } fields[] = {
        {"ncols", (double)grid->columns, (double)other->columns, 0},
        {"nrows", (double)grid->rows, (double)other->rows, 0},
        {"cellsize", grid->cell, other->cell, slack},
        {"the west edge (xllcorner)", grid->left, other->left, slack},
        {"the south edge (yllcorner)", grid->bottom, other->bottom, slack},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; ++i) {
        if (fabs(fields[i].mine - fields[i].theirs) <= fields[i].slack) continue;
        cleat_number_print(fields[i].mine, mine);
        cleat_number_print(fields[i].theirs, theirs);
        return cleat_fail(
            error, CLEAT_ERR_FORMAT,
            "%s: %s is %s, but in %s it is %s; all grids of a folder must cover the same cells: resample one", path,
            fields[i].name, mine, other_path, theirs);
    }
    return CLEAT_OK;
}
