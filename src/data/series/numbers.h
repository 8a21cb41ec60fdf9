/* Numbers of spreadsheets: which of '.' and ',' begins decimals, and which is between thousands. */
#ifndef CLEAT_SRC_NUMBERS_H
#define CLEAT_SRC_NUMBERS_H

#include "cleat/core.h"

/* Marks of a file. Only where fields are separated by ';', as in countries with a decimal comma, may a number have a
 * comma or marks between thousands; one file has one mark of each. */
typedef struct cleat_number_marks {
    bool semicolons;
    char decimal, thousands; /* '.' or ','; 0: no number has shown it yet */
    char ambiguous[2][16];   /* the first number with one '.', or ',', that may be either: "1.007"; "": none */
} cleat_number_marks;

/* What the numbers of a column have shown. */
enum { CLEAT_SEEN_HUNDREDS = 1, CLEAT_SEEN_LONG = 2, CLEAT_SEEN_AMBIGUOUS = 4 };

/* Parses the text of a cell, and notes what it shows. An ambiguous number has decimals unless marks->thousands is known
 * to be its mark. Returns false if it is no number with these marks. */
bool cleat_marks_parse(cleat_number_marks *marks, const char *text, uint8_t *seen, double *number);
/* At the end of a file: whether its ambiguous numbers are thousands, so that it must be read again with
 * marks->thousands, which is set. They are where another number shows the mark between thousands, or the other one
 * before decimals, or where a column has some of one digit before the mark beside whole numbers of three digits and none
 * of four (columns 0: that is not looked at). Logs the decision,
 * or a warning if nothing shows it. CLEAT_ERR_FORMAT: both marks are ambiguous. */
cleat_status cleat_marks_decide(const char *path, cleat_number_marks *marks, const uint8_t *seen, size_t columns,
                                bool *again, cleat_error *error);

#endif
