/* Parameters whose gradient ranks exchange by rows: tables such as embeddings, of which a batch touches
 * few rows. Used by training and by the plan for several devices. */
#ifndef CLEAT_SRC_ROW_TABLES_H
#define CLEAT_SRC_ROW_TABLES_H

#include "cleat/distributed_plan.h"
#include "fit/workload.h"

enum { CLEAT_TABLES = CLEAT_PLAN_TABLES };

/* A parameter [rows, width], gaps excluded, whose gradient changes only in rows that inputs of the graphs name. */
typedef struct cleat_row_table {
    size_t parameter; /* its number in the store */
    int64_t rows, width;
} cleat_row_table;

/* Fills tables [CLEAT_TABLES] from the last parameter to the first, and returns their number. Pure: the same
 * for all ranks. */
int cleat_row_tables_find(const cleat_workload *work, cleat_row_table *tables);

/* Row numbers that a micro-batch of bucket b has for the table, padding included: an upper bound of the
 * rows touched. */
int64_t cleat_row_table_numbers(const cleat_workload *work, const cleat_row_table *table, size_t b);

#endif
