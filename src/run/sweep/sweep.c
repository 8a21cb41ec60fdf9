/* The points of a sweep, a grid or draws, and successive halving. */
#include "cleat/sweep.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/philox.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VALUES = 256, VALUE_BYTES = 512, WORD_BYTES = 640, TRIES = 100, NAME_LENGTH = 100 /* before a hash */ };

/* A setting and its values. */
typedef struct axis {
    const char *name;     /* "section.key" */
    char *values[VALUES]; /* owned */
    size_t count;         /* 0: a range */
    bool is_float;
    double low, high;
} axis;

/* Reads a value up to a comma, without its quotes. False: a quote is open, or the value is empty or too long. */
static bool next_value(const char **at, char *value) {
    const char quote = **at == '"' || **at == '\'' ? **at : 0;
    const char *start = *at + (quote != 0), *end = quote ? strchr(start, quote) : start + strcspn(start, ",");
    if (!end || end == start || end - start >= VALUE_BYTES) return false;
    snprintf(value, VALUE_BYTES, "%.*s", (int)(end - start), start);
    end += quote != 0;
    *at = end + (*end == ',' && end[1]);
    return !*end || (*end == ',' && end[1]);
}

static bool parse_range(const char *text, double *low, double *high) {
    char start[64];
    const char *dots = strstr(text, "..");
    if (!dots || (size_t)(dots - text) >= sizeof start) return false;
    snprintf(start, sizeof start, "%.*s", (int)(dots - text), text);
    return cleat_number_parse(start, low) && cleat_number_parse(dots + 2, high);
}

bool cleat_sweep_is_axis(const char *assignment) {
    double low, high;
    char value[VALUE_BYTES];
    const char *at = strchr(assignment, '=');
    if (!at || !*++at) return false;
    return parse_range(at, &low, &high) || !next_value(&at, value) || *at;
}

static cleat_status read_list(const cleat_profile *base, axis *a, const char *text, cleat_error *error) {
    char value[VALUE_BYTES];
    double number, earlier;
    const bool are_numbers =
        !cleat_profile_get(base, a->name, value, sizeof value, NULL) && cleat_number_parse(value, &number);
    for (const char *at = text; *at;) {
        bool known = false; /* 1e-3 and 0.001 count once */
        if (a->count == VALUES || !next_value(&at, value))
            return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                              "%s=%.300s: a value is empty, an open quote or too long, or there are more than %d",
                              a->name, text, VALUES);
        for (size_t i = 0; i < a->count && are_numbers && cleat_number_parse(value, &number); ++i)
            known |= cleat_number_parse(a->values[i], &earlier) && earlier == number;
        if (!known && !(a->values[a->count++] = cleat_strdup(value)))
            return cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory");
    }
    return CLEAT_OK;
}

/* Whether the setting is a float shows by a fraction within the range. */
static cleat_status read_range(const cleat_profile *base, axis *a, const char *text, int64_t draws,
                               cleat_error *error) {
    char word[WORD_BYTES];
    cleat_profile *changed = NULL;
    if (draws == 0)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s=%s: a range needs --random N; a grid, a list of values",
                          a->name, text);
    cleat_status status = cleat_profile_clone(base, &changed, error);
    snprintf(word, sizeof word, "%s=%.17g", a->name, a->low + 0.414213562 * (a->high - a->low)); /* no whole number */
    if (!status) a->is_float = cleat_profile_set(changed, word, NULL) == CLEAT_OK;
    cleat_profile_destroy(changed);
    if (!a->is_float) a->low = ceil(a->low), a->high = floor(a->high);
    if (!status && !(a->low < a->high))
        status = cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s=%s: the range must ascend", a->name, text);
    return status;
}

static cleat_status read_axis(const cleat_profile *base, const char *word, int64_t draws, cleat_sweep *sweep, axis *a,
                              cleat_error *error) {
    const char *equals = strchr(word, '='), *dot = strchr(word, '.');
    char *name = sweep->axes[sweep->n_axes];
    if (!equals || !equals[1] || !dot || dot > equals || (size_t)(equals - word) >= sizeof sweep->axes[0])
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%.200s: write section.key=V1,V2,...", word);
    snprintf(name, sizeof sweep->axes[0], "%.*s", (int)(equals - word), word);
    if (strcmp(name, "run.out") == 0 || strcmp(name, "run.metric") == 0 || strcmp(name, "model.type") == 0)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s cannot differ between runs that are compared", name);
    for (size_t i = 0; i < sweep->n_axes; ++i)
        if (strcmp(sweep->axes[i], name) == 0)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s is given twice: give all its values in one list", name);
    a->name = sweep->axes[sweep->n_axes++];
    return parse_range(++equals, &a->low, &a->high) ? read_range(base, a, equals, draws, error)
                                                    : read_list(base, a, equals, error);
}

static void name_point(size_t n_axes, cleat_sweep_point *point) {
    char hash[33];
    cleat_string all = {0}, name = {0};
    bool changed = false;
    for (size_t i = 0; i < n_axes; ++i) {
        cleat_string_add(&all, "%s\n", point->assignments[i]);
        cleat_string_add(&name, "%s%s", i ? "," : "", strchr(point->assignments[i], '.') + 1);
    }
    for (char *at = name.data; at && *at; ++at) {
        if (isalnum((unsigned char)*at) || strchr("._+-=,", *at)) continue;
        *at = '-';
        changed = true;
    }
    cleat_hash_text(all.data ? all.data : "", all.size, hash);
    changed |= name.size > NAME_LENGTH;
    snprintf(point->name, sizeof point->name, "%.*s%s%.12s", NAME_LENGTH, name.data ? name.data : "",
             changed ? "-" : "", changed ? hash : "");
    cleat_string_free(&all);
    cleat_string_free(&name);
}

static void draw_number(const axis *a, cleat_random *random, char *text) {
    const double u = cleat_random_uniform(random), low = a->low, high = a->high;
    const double value = low > 0 ? low * pow(high / low, u) : low + u * (high - low);
    char number[32];
    double printed;
    if (!a->is_float)
        snprintf(number, sizeof number, "%.0f", low + floor(u * (high - low + 1)));
    else
        cleat_number_print_digits(value, 4, number);
    if (a->is_float && cleat_number_parse(number, &printed) && !(printed >= low && printed <= high))
        cleat_number_print(printed < low ? low : high, number);
    snprintf(text, VALUE_BYTES, "%s", number);
}

/* Writes the value of axis `of` of the point with this number. */
static void choose_value(const axis *axes, size_t n_axes, size_t of, size_t number, const uint64_t *seed, char *value) {
    const axis *a = &axes[of];
    if (seed) {
        cleat_random random = cleat_random_stream(*seed, (uint32_t)number, (uint32_t)of);
        if (a->count == 0) {
            draw_number(a, &random, value);
            return;
        }
        number = cleat_random_below(&random, (uint32_t)a->count);
    }
    for (size_t i = of + 1; i < n_axes && !seed; ++i) number /= axes[i].count;
    snprintf(value, VALUE_BYTES, "%s", a->values[number % a->count]);
}

/* Appends the point, unless the sweep has it already. */
static cleat_status add_point(const axis *axes, size_t number, const uint64_t *seed, cleat_sweep *sweep,
                              cleat_error *error) {
    cleat_sweep_point *point = &sweep->points[sweep->count];
    char value[VALUE_BYTES], word[WORD_BYTES];
    for (size_t i = 0; i < sweep->n_axes; ++i) {
        choose_value(axes, sweep->n_axes, i, number, seed, value);
        snprintf(word, sizeof word, "%s=%s", sweep->axes[i], value);
        cleat_free(point->assignments[i]); /* of one that the sweep had */
        if (!(point->assignments[i] = cleat_strdup(word))) return cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory");
    }
    name_point(sweep->n_axes, point);
    size_t same = 0;
    while (strcmp(sweep->points[same].name, point->name) != 0) ++same;
    sweep->count += same == sweep->count;
    return CLEAT_OK;
}

static cleat_status add_points(const axis *axes, int64_t draws, const uint64_t *seed, cleat_sweep *sweep,
                               cleat_error *error) {
    size_t wanted = draws > 0 ? (size_t)draws : 1;
    for (size_t i = 0; i < sweep->n_axes && draws == 0 && wanted <= CLEAT_SWEEP_POINTS; ++i) wanted *= axes[i].count;
    if (wanted > CLEAT_SWEEP_POINTS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "more than %d runs: give fewer values, or --random N",
                          CLEAT_SWEEP_POINTS);
    const size_t tries = draws > 0 ? TRIES * wanted : wanted;
    sweep->points = cleat_alloc(wanted + 1, sizeof *sweep->points);
    cleat_status status = sweep->points ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < tries && sweep->count < wanted && !status; ++i)
        status = add_point(axes, i, draws > 0 ? seed : NULL, sweep, error);
    return status;
}

cleat_status cleat_sweep_create(const cleat_profile *base, const char *const *axes, size_t n_axes, int64_t draws,
                                uint64_t seed, cleat_sweep **sweep, cleat_error *error) {
    axis read[CLEAT_SWEEP_AXES] = {{.count = 0}};
    cleat_sweep *made = cleat_alloc(1, sizeof *made);
    cleat_status status = made ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory");
    if (n_axes < 1 || n_axes > CLEAT_SWEEP_AXES)
        status = cleat_fail(error, CLEAT_ERR_ARGUMENT, "%zu settings vary: 1 to %d may", n_axes, CLEAT_SWEEP_AXES);
    for (size_t i = 0; i < n_axes && !status; ++i) status = read_axis(base, axes[i], draws, made, &read[i], error);
    if (!status) status = add_points(read, draws, &seed, made, error);
    for (size_t i = 0; i < CLEAT_SWEEP_AXES; ++i)
        for (size_t v = 0; v < read[i].count; ++v) cleat_free(read[i].values[v]);
    if (!status) *sweep = made;
    if (status) cleat_sweep_free(made);
    return status;
}

void cleat_sweep_free(cleat_sweep *sweep) {
    for (size_t i = 0; sweep && sweep->points && i <= sweep->count; ++i)
        for (size_t a = 0; a < sweep->n_axes; ++a) cleat_free(sweep->points[i].assignments[a]);
    if (sweep) cleat_free(sweep->points);
    cleat_free(sweep);
}

/* --- successive halving ---------------------------------------------------------------------------------------- */

size_t cleat_sweep_rungs(size_t runs, int64_t epochs, int64_t every, int64_t ratio, int64_t rungs[CLEAT_SWEEP_RUNGS]) {
    size_t count = 0;
    int64_t parts = 1; /* ratio^k */
    while (parts <= (int64_t)runs / ratio) parts *= ratio;
    for (; parts > 1; parts /= ratio) {
        const int64_t least = (epochs + parts - 1) / parts, rung = (least + every - 1) / every * every;
        if (rung < epochs && (count == 0 || rung > rungs[count - 1])) rungs[count++] = rung;
    }
    rungs[count++] = epochs;
    return count;
}

void cleat_sweep_keep(const double *values, size_t count, bool ascends, int64_t ratio, bool *is_in) {
    bool kept[CLEAT_SWEEP_POINTS] = {false};
    size_t runs = 0;
    for (size_t i = 0; i < count; ++i) runs += is_in[i];
    for (size_t left = runs < (size_t)ratio ? 1 : runs / (size_t)ratio; left > 0; --left) {
        size_t best = count;
        for (size_t i = 0; i < count; ++i) {
            if (!is_in[i] || kept[i] || !isfinite(values[i])) continue;
            if (best == count || (ascends ? values[i] > values[best] : values[i] < values[best])) best = i;
        }
        if (best < count) kept[best] = true;
    }
    memcpy(is_in, kept, count * sizeof *is_in);
}
