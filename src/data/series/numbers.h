/* Numbers of spreadsheets: which of '.' and ',' begins decimals, and which is between thousands. */
#ifndef CLEAT_SRC_NUMBERS_H
#define CLEAT_SRC_NUMBERS_H

#include "cleat/core.h"

/* Marks of a file. Numbers may have a decimal comma or marks between thousands only if fields are separated
 * by ';', as in countries with a decimal comma. A file has one mark of each kind. */
typedef struct cleat_number_marks {
    bool semicolons;
    char decimal, thousands; /* '.' or ','; 0: no number has shown it yet */
    char ambiguous[2][16];   /* the first number with one '.', or ',', that may be either: "1.007"; "": none */
} cleat_number_marks;

/* Evidence in the numbers of a column. */
enum { CLEAT_SEEN_HUNDREDS = 1, CLEAT_SEEN_LONG = 2, CLEAT_SEEN_AMBIGUOUS = 4 };

/* Parses a cell and records its evidence. An ambiguous number has decimals unless its mark is
 * marks->thousands. Returns false if the text is not a number with these marks. */
bool cleat_marks_parse(cleat_number_marks *marks, const char *text, uint8_t *seen, double *number);
/* At the end of a file: if its ambiguous numbers are thousands, sets marks->thousands and *again: the file
 * must be read again. They are thousands if another number shows their mark between thousands or the other
 * one before decimals, or if a column has some with one digit before the mark, whole numbers of three digits,
 * and none of four (columns 0: not examined). Logs the decision, or a warning without evidence.
 * CLEAT_ERR_FORMAT: both marks are ambiguous. */
cleat_status cleat_marks_decide(const char *path, cleat_number_marks *marks, const uint8_t *seen, size_t columns,
                                bool *again, cleat_error *error);

#endif
