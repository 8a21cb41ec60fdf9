/* One of several ranks, for test_ranks.sh: `worker CASE`. It prints a line for every failed check and exits
 * with their number; a rank that is meant to be lost follows its case. */
#include "ranks/cpus.h"
#include "ranks/ranks.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static cleat_ranks *ranks;
static int rank, count, failed;

static void check(bool good, const char *what) {
    if (good) return;
    fprintf(stderr, "rank %d: %s\n", rank, what);
    ++failed;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static cleat_status sum_now(float *values, size_t n, cleat_error *error) {
    uint64_t ticket = 0;
    cleat_status status = cleat_ranks_sum_start(ranks, values, n, NULL, &ticket, error);
    return status ? status : cleat_ranks_wait(ranks, ticket, error);
}

/* rank r has the values r + i / 8: sums are exact */
static void sums(void) {
    enum { N = 300001 };
    static float values[N], pieces[3][N];
    double squares[3];
    uint64_t tickets[3];
    cleat_error error = {0};
    const double base = 0.5 * count * (count - 1);
    for (int i = 0; i < N; ++i) values[i] = (float)rank + (float)(i % 64) / 8;
    check(sum_now(values, N, &error) == CLEAT_OK, error.text);
    for (int i = 0; i < N; ++i)
        if (values[i] != (float)(base + count * (double)(i % 64) / 8)) {
            check(false, "a sum is wrong");
            break;
        }
    for (int p = 0; p < 3; ++p) {
        for (int i = 0; i < N; ++i) pieces[p][i] = (float)(p + 1);
        check(cleat_ranks_sum_start(ranks, pieces[p], N, &squares[p], &tickets[p], &error) == CLEAT_OK, error.text);
    }
    for (int p = 0; p < 3; ++p) {
        check(cleat_ranks_wait(ranks, tickets[p], &error) == CLEAT_OK, error.text);
        const double each = (double)(p + 1) * count;
        check(pieces[p][0] == (float)each && pieces[p][N - 1] == (float)each, "a piece is wrong");
        check(fabs(squares[p] - each * each * N) <= 1e-9 * squares[p], "the squares of a piece are wrong");
    }
    check(cleat_ranks_busy_seconds(ranks) > 0, "the transport was never busy");
}

/* The rows of each rank, chosen to cover every algorithm of a sum. */
typedef enum row_case { NO_ROWS, OWN_ROWS, SAME_ROWS, ALL_ROWS, ROWS_OF_ONE, ROW_CASES } row_case;

static bool has_row(row_case which, int of, int64_t row) {
    switch (which) {
    case OWN_ROWS: /* some of them in several ranks */
        return row % (2 * count) == of || row % 64 == 63;
    case SAME_ROWS:
        return row % 2 == 1;
    case ALL_ROWS:
        return true;
    case ROWS_OF_ONE: /* all but one */
        return of == count - 1 && row != 17;
    default:
        return false;
    }
}

static float row_value(int of, int64_t row, int64_t column) {
    return (float)(of + 1) * (float)(row % 61) + (float)(column % 7) / 8;
}

/* Sums by rows equal sums of the ranks' whole tables; several tables are in flight together. */
static void sum_table(row_case which, int64_t rows, int64_t width) {
    const size_t words = cleat_row_words(rows), stride = words + 1; /* after a word of another table */
    uint64_t *own = calloc(stride, sizeof *own), *all = calloc(stride * (size_t)count, sizeof *all);
    float *values = calloc((size_t)(rows * width), sizeof *values);
    float *scratch = malloc(cleat_row_sum_scratch(rows, width, count) * sizeof *scratch);
    const cleat_row_sum table = {values, rows, width, all + 1, stride, scratch};
    double squares = -1, wanted = 0;
    uint64_t told, ticket;
    bool good = true;
    cleat_error error = {0};
    own[0] = UINT64_MAX;
    for (int64_t row = 0; row < rows; ++row)
        if (has_row(which, rank, row)) {
            own[1 + row / 64] |= (uint64_t)1 << (row % 64);
            for (int64_t k = 0; k < width; ++k) values[row * width + k] = row_value(rank, row, k);
        }
    check(cleat_ranks_gather_start(ranks, own, stride * sizeof *own, all, &told, &error) == CLEAT_OK, error.text);
    check(cleat_ranks_sum_rows_start(ranks, &table, &squares, &ticket, &error) == CLEAT_OK, error.text);
    check(cleat_ranks_wait(ranks, ticket, &error) == CLEAT_OK, error.text);
    for (int64_t i = 0; i < rows * width; ++i) {
        float sum = 0;
        for (int r = 0; r < count; ++r)
            if (has_row(which, r, i / width)) sum += row_value(r, i / width, i % width);
        good = good && values[i] == sum;
        wanted += (double)sum * (double)sum;
    }
    if (!good) fprintf(stderr, "rank %d: case %d of [%d, %d]\n", rank, (int)which, (int)rows, (int)width);
    check(good, "a sum by rows is wrong");
    check(squares == wanted, "the squares of a sum by rows are wrong");
    free(own);
    free(all);
    free(values);
    free(scratch);
}

static void rows(void) {
    for (int which = 0; which < ROW_CASES; ++which) {
        sum_table((row_case)which, 1, 5);
        sum_table((row_case)which, 130, 33);
        sum_table((row_case)which, 4999, 300); /* in several chunks */
    }
}

static void data(void) {
    cleat_error error = {0};
    char text[16] = "", hash[33] = "0123456789abcdef0123456789abcdef";
    int64_t all[64], own = 100 + rank;
    if (rank == 0) strcpy(text, "from rank 0");
    check(cleat_ranks_broadcast(ranks, text, sizeof text, &error) == CLEAT_OK, error.text);
    check(strcmp(text, "from rank 0") == 0, "the broadcast did not arrive");
    check(cleat_ranks_gather(ranks, &own, sizeof own, all, &error) == CLEAT_OK, error.text);
    for (int r = 0; r < count; ++r) check(all[r] == 100 + r, "a gathered value is wrong");
    check(cleat_ranks_compare(ranks, "the data", hash, &error) == CLEAT_OK, "equal hashes differ");
    if (rank == count - 1) hash[5] = 'x';
    const cleat_status status = cleat_ranks_compare(ranks, "the data", hash, &error);
    check(status == (rank == count - 1 ? CLEAT_ERR_ARGUMENT : CLEAT_OK), "a different hash is not refused");
    check(rank < count - 1 || strstr(error.text, "the data: not the same as in rank 0"), error.text);
}

static void agreement(void) {
    cleat_error error = {0};
    int64_t asked[CLEAT_RANKS_ASKED] = {rank == 1, 0, 10 + rank};
    check(cleat_ranks_agree_on(ranks, CLEAT_OK, asked, &error) == CLEAT_OK, error.text);
    check(asked[0] == 1 && asked[1] == 0 && asked[2] == 9 + count, "the ranks' requests were not combined");
    /* ranks 1 and 2 fail: all get the error of rank 1 */
    cleat_status own = rank == 1   ? cleat_fail(&error, CLEAT_ERR_IO, "the disk of rank 1 is full")
                       : rank == 2 ? cleat_fail(&error, CLEAT_ERR_NAN, "rank 2 has a NaN")
                                   : CLEAT_OK;
    check(cleat_ranks_agree(ranks, own, &error) == CLEAT_ERR_IO, "not all have the status of rank 1");
    check(strstr(error.text, "the disk of rank 1 is full") != NULL, error.text);
    check(rank == 1 || strncmp(error.text, "rank 1 (", 8) == 0, error.text);
    check(cleat_ranks_agree(ranks, CLEAT_OK, NULL) == CLEAT_OK, "a later call waited for others");
    check(cleat_ranks_try_again(ranks) == 1, "rank 1 was not the first that failed");
    check(cleat_ranks_agree(ranks, CLEAT_OK, &error) == CLEAT_OK, "the ranks do not continue");
}

/* Ranks of one machine have separate CPUs if there are enough. */
static void cpus(void) {
    cleat_cpu_set own, all[64];
    cleat_error error = {0};
    cleat_cpu_set_allowed(&own);
    check(cleat_cpu_set_count(&own) > 0, "no CPU is left");
    check(cleat_ranks_gather(ranks, &own, sizeof own, all, &error) == CLEAT_OK, error.text);
    const char *limit = getenv("POCL_MAX_PTHREAD_COUNT");
    check(limit && atoi(limit) == cleat_cpu_set_count(&own), "PoCL has the wrong number of CPUs");
    for (int r = 0; r < count && count <= sysconf(_SC_NPROCESSORS_ONLN); ++r)
        for (int w = 0; w < CLEAT_CPU_WORDS && r != rank; ++w)
            check(!(all[r].words[w] & own.words[w]), "two ranks share a CPU");
}

/* All ranks agree once the slowest has worked that long. */
static void agree_after(unsigned seconds) {
    cleat_error error = {0};
    const double started = now();
    if (rank == count - 1) sleep(seconds);
    check(cleat_ranks_agree(ranks, CLEAT_OK, &error) == CLEAT_OK, error.text);
    check(now() - started < seconds + 20, "the agreement is late");
}

/* A rank that works longer than the silence limit is not lost while ranks are watched; an agreement begins
 * and ends the watch. Without heartbeats the silence limit does not apply. */
static void work(void) {
    float value = 1;
    cleat_error error = {0};
    cleat_ranks_timeouts timeouts = {60, 2, 60, 60, NULL};
    cleat_ranks_set_timeouts(ranks, &timeouts);
    agree_after(5);
    timeouts.silence = INFINITY;
    cleat_ranks_set_timeouts(ranks, &timeouts);
    agree_after(0);
    timeouts.silence = 2;
    cleat_ranks_set_timeouts(ranks, &timeouts);
    if (rank == count - 1) sleep(4);
    check(sum_now(&value, 1, &error) == CLEAT_OK && value == (float)count, "a sum of unwatched ranks is wrong");
    agree_after(0);
    agree_after(5);
}

/* The last rank is lost by SIGKILL or SIGSTOP (`how`). The others detect this in time, by its process or its
 * silence, and one of them saves the run. */
static void loss(int how, bool is_seen) {
    cleat_error error = {0};
    const cleat_ranks_timeouts timeouts = {60, is_seen ? 60 : 3, 60, is_seen ? 3 : 60, NULL};
    cleat_ranks_set_timeouts(ranks, &timeouts);
    if (rank == count - 1) raise(how);
    static float value = 1; /* MPI keeps it after the loss */
    const double started = now();
    check(sum_now(&value, 1, &error) == CLEAT_ERR_RANK_LOST, "the loss was not detected");
    check(now() - started < 15, "the loss was detected too late");
    check(cleat_ranks_are_broken(ranks), "the ranks are not broken");
    check(cleat_ranks_agree(ranks, CLEAT_OK, &error) == CLEAT_ERR_RANK_LOST, "a later call waited");
    check(cleat_ranks_saves_the_run(ranks) == (rank == 0), "the rank that saves is not rank 0");
    if (!failed) printf("noticed\n");
    fflush(NULL);
    sleep(5); /* the others check whether this process runs */
    _exit(failed);
}

/* Rank 0 does not join: a timeout ends the wait. */
static void silence(void) {
    cleat_error error = {0};
    const cleat_ranks_timeouts timeouts = {2, INFINITY, 60, 60, NULL};
    if (rank == 0) {
        sleep(16);
        _exit(0);
    }
    cleat_ranks_set_timeouts(ranks, &timeouts);
    const double started = now();
    check(cleat_ranks_agree(ranks, CLEAT_OK, &error) == CLEAT_ERR_RANK_LOST, "there was no timeout");
    check(now() - started >= 2 && now() - started < 12, "the timeout had the wrong length");
    check(strstr(error.text, "another rank is gone or does not answer") != NULL, error.text);
    check(!cleat_ranks_saves_the_run(ranks), "rank 0 runs, so no other rank saves");
    if (!failed) printf("noticed\n");
    fflush(NULL);
    sleep(5);
    _exit(failed);
}

int main(int argc, char **argv) {
    cleat_error error = {0};
    const char *name = argc > 1 ? argv[1] : "";
    if (!cleat_ranks_launched()) return 77;
    if (cleat_ranks_open(&ranks, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 99;
    }
    rank = cleat_ranks_rank(ranks);
    count = cleat_ranks_count(ranks);
    if (strcmp(name, "sums") == 0) sums();
    if (strcmp(name, "rows") == 0) rows();
    if (strcmp(name, "data") == 0) data();
    if (strcmp(name, "agreement") == 0) agreement();
    if (strcmp(name, "cpus") == 0) cpus();
    if (strcmp(name, "kill") == 0) loss(SIGKILL, true);
    if (strcmp(name, "stop") == 0) loss(SIGSTOP, true);
    if (strcmp(name, "mute") == 0) loss(SIGSTOP, false);
    if (strcmp(name, "work") == 0) work();
    if (strcmp(name, "silence") == 0) silence();
    printf("%s", rank == 0 && !failed ? "ok\n" : "");
    cleat_ranks_close(ranks);
    return failed;
}
