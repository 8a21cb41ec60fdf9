/* Comparisons: runs a workload and a command alternately. */
#include "bench/bench.h"
#include "platform/processes.h"
#include "platform/text.h"

#include "bench/steps.h"
#include "core/clock.h"
#include "core/memory.h"
#include "core/string.h"
#include "platform/files.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROUNDS = 1000 };

cleat_status cleat_bench_ratio(const double *ours, const double *theirs, int64_t count, cleat_spread *ratio,
                               cleat_error *error) {
    cleat_spread a, b;
    cleat_status status = cleat_spread_of(ours, count, &a, error);
    if (!status) status = cleat_spread_of(theirs, count, &b, error);
    if (status) return status;
    *ratio = (cleat_spread){.median = a.median / b.median, .min = INFINITY, .max = 0};
    for (int64_t i = 0; i < count; ++i) {
        ratio->min = fmin(ratio->min, ours[i] / theirs[i]);
        ratio->max = fmax(ratio->max, ours[i] / theirs[i]);
    }
    return CLEAT_OK;
}

/* Returns the last non-empty line; "" if there is none. */
static void last_line(const char *output, const char **line, size_t *length) {
    *line = output;
    *length = 0;
    while (*output) {
        size_t here = strcspn(output, "\n");
        if (strspn(output, " \t\r") < here) {
            *line = output;
            *length = here;
        }
        output += here + (output[here] != 0);
    }
}

static bool positive(const cJSON *object, const char *name, double *value) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!cJSON_IsNumber(item) || !(item->valuedouble > 0) || !isfinite(item->valuedouble)) return false;
    *value = item->valuedouble;
    return true;
}

cleat_status cleat_bench_parse_output(const char *output, double seconds, cleat_bench_output *parsed,
                                      cleat_error *error) {
    cleat_bench_output made = {.ms = seconds * 1e3, .wall_time = true};
    const char *line;
    size_t length;
    last_line(output, &line, &length);
    size_t blanks = strspn(line, " \t");
    if (blanks < length && line[blanks] == '{') {
        cJSON *object = cJSON_ParseWithLength(line, length);
        made.wall_time = false;
        bool ok = object && (positive(object, "ms_per_step", &made.ms) || positive(object, "ms", &made.ms));
        if (ok) positive(object, "peak_rss_mb", &made.peak_rss_mb);
        cJSON_Delete(object);
        if (!ok)
            return cleat_fail(error, CLEAT_ERR_FORMAT,
                              "'%.*s' is not a JSON object with a number above 0 as `ms_per_step` or `ms`",
                              length > 200 ? 200 : (int)length, line);
    }
    *parsed = made;
    return CLEAT_OK;
}

static cleat_status read_all(FILE *pipe, char **output, cleat_error *error) {
    char buffer[4096];
    cleat_string text = {0};
    size_t count;
    cleat_string_add(&text, "%s", "");
    while ((count = fread(buffer, 1, sizeof buffer, pipe)) > 0) cleat_string_add_bytes(&text, buffer, count);
    return cleat_string_detach(&text, output, error);
}

static cleat_status check_end(int code, cleat_error *error) {
    if (code == 0) return CLEAT_OK;
    if (code != -1 && WIFEXITED(code)) return cleat_fail(error, CLEAT_ERR_IO, "exited with code %d", WEXITSTATUS(code));
    if (code != -1 && WIFSIGNALED(code))
        return cleat_fail(error, CLEAT_ERR_IO, "killed by signal %d (%s)", WTERMSIG(code), strsignal(WTERMSIG(code)));
    return cleat_fail(error, CLEAT_ERR_IO, "exit status unknown: %s", strerror(errno));
}

static cleat_status run_command(const char *command, cleat_bench_output *parsed, cleat_error *error) {
    char *output = NULL;
    double start = cleat_seconds();
    FILE *pipe = popen(command, "r");
    if (!pipe) return cleat_fail(error, CLEAT_ERR_IO, "cannot start a process: %s", strerror(errno));
    cleat_status status = read_all(pipe, &output, error);
    int code = pclose(pipe);
    double seconds = cleat_seconds() - start;
    if (!status) status = check_end(code, error);
    if (!status) status = cleat_bench_parse_output(output, seconds, parsed, error);
    cleat_free(output);
    return status;
}

/* Results of the rounds so far, [rounds] each. */
typedef struct turns {
    double *ours_ms, *theirs_ms, *ours_rss, *theirs_rss;
    bool wall_time;
} turns;

static cleat_status run_round(const cleat_bench_request *request, const char *command, int64_t round, turns *t,
                              cleat_bench_result *ours, cleat_error *error) {
    cleat_bench_output theirs = {0};
    cleat_status status = cleat_bench(request, ours, error);
    if (status) return status;
    status = run_command(command, &theirs, error);
    if (!status && round > 0 && theirs.wall_time != t->wall_time)
        status = cleat_fail(error, CLEAT_ERR_FORMAT, "reported a time only in some rounds");
    if (status) return cleat_fail_in(error, status, "the command, round %lld", (long long)round + 1);
    t->wall_time = theirs.wall_time;
    t->ours_ms[round] = ours->ms_median;
    t->theirs_ms[round] = theirs.ms;
    t->ours_rss[round] = ours->peak_rss_mb;
    t->theirs_rss[round] = theirs.peak_rss_mb;
    return CLEAT_OK;
}

static cleat_status summarise(const turns *t, int64_t rounds, cleat_bench_comparison *made, cleat_error *error) {
    cleat_spread ours_rss = {0}, theirs_rss = {0};
    cleat_status status = cleat_spread_of(t->ours_ms, rounds, &made->ours_ms, error);
    if (!status) status = cleat_spread_of(t->theirs_ms, rounds, &made->theirs_ms, error);
    if (!status) status = cleat_bench_ratio(t->ours_ms, t->theirs_ms, rounds, &made->ratio, error);
    if (!status) status = cleat_spread_of(t->ours_rss, rounds, &ours_rss, error);
    if (!status) status = cleat_spread_of(t->theirs_rss, rounds, &theirs_rss, error);
    made->ours_rss_mb = ours_rss.median;
    made->theirs_rss_mb = theirs_rss.median;
    made->wall_time = t->wall_time;
    made->rounds = rounds;
    return status;
}

cleat_status cleat_bench_compare(const cleat_bench_request *request, const char *command, int64_t rounds,
                                 cleat_bench_comparison *comparison, cleat_error *error) {
    cleat_bench_entry entry;
    cleat_bench_comparison made = {0};
    cleat_bench_request own_process = *request;
    if (rounds < 1 || rounds > MAX_ROUNDS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%lld rounds; the number must be 1 to %d", (long long)rounds,
                          MAX_ROUNDS);
    own_process.own_process = true;
    cleat_status status = cleat_bench_find(request, &entry, error);
    if (status) return status;
    double *values = cleat_alloc(4 * (size_t)rounds, sizeof *values);
    if (!values) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %lld rounds", (long long)rounds);
    turns t = {values, values + rounds, values + 2 * rounds, values + 3 * rounds, false};
    const char *name = entry.info.peer[0] ? entry.info.peer : entry.info.name;
    if (name[0]) setenv("WORKLOAD", name, true); /* in the environment, since shells differ */
    for (int64_t round = 0; round < rounds && !status; ++round)
        status = run_round(&own_process, command, round, &t, &made.ours, error);
    if (name[0]) unsetenv("WORKLOAD");
    if (!status) status = summarise(&t, rounds, &made, error);
    if (!status) *comparison = made;
    cleat_free(values);
    return status;
}
