/* Sums of tables by rows. */
#include "ranks/row_sum.h"

#include <string.h>

/* Elements per exchange, over all ranks, when each sends its own rows. */
static const int64_t CHUNK = 1 << 20;

static int64_t rows_of_chunk(int64_t width, int ranks) {
    const int64_t rows = CHUNK / ranks / width;
    return rows > 0 ? rows : 1;
}

size_t cleat_row_sum_scratch(int64_t rows, int64_t width, int ranks) {
    const int64_t chunk = rows_of_chunk(width, ranks);
    return (size_t)((rows + chunk + ranks * chunk) * width);
}

static const uint64_t *marks_of(const cleat_row_sum *table, int rank) {
    return table->marks + (size_t)rank * table->stride;
}

static uint64_t marks_of_any(const cleat_row_sum *table, int ranks, size_t word) {
    uint64_t any = 0;
    for (int r = 0; r < ranks; ++r) any |= marks_of(table, r)[word];
    return any;
}

/* Numbers of rows: of the rank with the most, and of all ranks together. */
static void count_rows(const cleat_row_sum *table, int ranks, int64_t *most, int64_t *any) {
    const size_t words = cleat_row_words(table->rows);
    *most = *any = 0;
    for (int r = 0; r < ranks; ++r) {
        int64_t own = 0;
        for (size_t w = 0; w < words; ++w) own += __builtin_popcountll(marks_of(table, r)[w]);
        if (own > *most) *most = own;
    }
    for (size_t w = 0; w < words; ++w) *any += __builtin_popcountll(marks_of_any(table, ranks, w));
}

/* Walks over the marked rows in ascending order. */
typedef struct row_walk {
    const cleat_row_sum *table;
    int rank, ranks; /* rank -1: the rows of any rank */
    size_t word;
    uint64_t left;
} row_walk;

static uint64_t marks_at(const row_walk *walk) {
    return walk->rank >= 0 ? marks_of(walk->table, walk->rank)[walk->word]
                           : marks_of_any(walk->table, walk->ranks, walk->word);
}

static row_walk begin_walk(const cleat_row_sum *table, int rank, int ranks) {
    row_walk walk = {.table = table, .rank = rank, .ranks = ranks};
    if (table->rows > 0) walk.left = marks_at(&walk);
    return walk;
}

/* The values of the next row; NULL: none. */
static float *next_row(row_walk *walk) {
    const size_t words = cleat_row_words(walk->table->rows);
    while (!walk->left) {
        if (walk->word + 1 >= words) return NULL;
        ++walk->word;
        walk->left = marks_at(walk);
    }
    const int bit = __builtin_ctzll(walk->left);
    walk->left &= walk->left - 1;
    return walk->table->values + ((int64_t)walk->word * 64 + bit) * walk->table->width;
}

static size_t row_bytes(const cleat_row_sum *table) {
    return (size_t)table->width * sizeof(float);
}

static void pack(const cleat_row_sum *table, row_walk walk) {
    float *to = table->scratch;
    for (const float *row; (row = next_row(&walk)); to += table->width) memcpy(to, row, row_bytes(table));
}

static bool sum_packed(const cleat_row_sum *table, const cleat_row_exchange *exchange, int64_t any) {
    row_walk walk = begin_walk(table, -1, exchange->count);
    const float *from = table->scratch;
    pack(table, walk);
    if (!exchange->sum(exchange->user, table->scratch, (size_t)(any * table->width))) return false;
    for (float *row; (row = next_row(&walk)); from += table->width) memcpy(row, from, row_bytes(table));
    return true;
}

/* Adds up to `rows` rows [rows, width] to the next rows of the walk. */
static void add_rows(row_walk *walk, const float *from, int64_t rows) {
    const int64_t width = walk->table->width;
    float *row;
    for (int64_t i = 0; i < rows && (row = next_row(walk)); ++i, from += width)
        for (int64_t k = 0; k < width; ++k) row[k] += from[k];
}

/* Every rank adds the rows of all ranks in the same order, its own included. Scratch: its own rows, then a
 * chunk of all. */
static bool sum_gathered(const cleat_row_sum *table, const cleat_row_exchange *exchange, int64_t most) {
    const int64_t chunk = rows_of_chunk(table->width, exchange->count), width = table->width;
    float *all = table->scratch + (table->rows + chunk) * width;
    row_walk own = begin_walk(table, exchange->rank, exchange->count);
    pack(table, own);
    for (float *row; (row = next_row(&own));) memset(row, 0, row_bytes(table));
    for (int64_t first = 0; first < most; first += chunk) {
        const int64_t rows = most - first < chunk ? most - first : chunk;
        const size_t bytes = (size_t)rows * row_bytes(table);
        if (!exchange->gather(exchange->user, table->scratch + first * width, bytes, all)) return false;
        for (int r = 0; r < exchange->count; ++r) {
            row_walk walk = begin_walk(table, r, exchange->count);
            for (int64_t i = 0; i < first && next_row(&walk); ++i) continue;
            add_rows(&walk, all + r * rows * width, rows);
        }
    }
    return true;
}

static double squares_of(const cleat_row_sum *table, int ranks) {
    row_walk walk = begin_walk(table, -1, ranks);
    double sum = 0;
    for (const float *row; (row = next_row(&walk));)
        for (int64_t k = 0; k < table->width; ++k) sum += (double)row[k] * (double)row[k];
    return sum;
}

/* A ring moves 2 (R - 1) / R times the bytes of a sum, and R - 1 times the bytes that each rank sends to all. */
cleat_row_way cleat_row_sum_way(int ranks, int64_t rows, int64_t most, int64_t any) {
    if (ranks * most < 2 * any) return CLEAT_ROWS_OWN;
    return any < rows ? CLEAT_ROWS_UNION : CLEAT_ROWS_WHOLE;
}

bool cleat_row_sum_run(const cleat_row_sum *table, const cleat_row_exchange *exchange, double *squares) {
    int64_t most, any;
    count_rows(table, exchange->count, &most, &any);
    bool good = false;
    switch (cleat_row_sum_way(exchange->count, table->rows, most, any)) {
    case CLEAT_ROWS_OWN:
        good = sum_gathered(table, exchange, most);
        break;
    case CLEAT_ROWS_UNION:
        good = sum_packed(table, exchange, any);
        break;
    case CLEAT_ROWS_WHOLE:
        good = exchange->sum(exchange->user, table->values, (size_t)(table->rows * table->width));
        break;
    }
    if (good && squares) *squares = squares_of(table, exchange->count);
    return good;
}
