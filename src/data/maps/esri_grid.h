/* ESRI ASCII grids: a header of names and numbers, then the values of the cells, north row first. */
#ifndef CLEAT_SRC_ESRI_GRID_H
#define CLEAT_SRC_ESRI_GRID_H

#include "cleat/dataset.h"

typedef struct cleat_esri_grid {
    int64_t rows, columns;
    double left, bottom; /* outer corner of the south-west cell */
    double cell;         /* side of a cell */
    float *values;       /* [rows, columns], owned; NaN where NODATA */
} cleat_esri_grid;

/* Reads ncols, nrows, xllcorner or xllcenter, yllcorner or yllcenter, cellsize and NODATA_value (default
 * -9999, as in the format; nan), in any order and case, and the values, separated by any blanks and line
 * ends. Values that equal NODATA_value in single precision, or in four digits if it is 1e30 or more, are
 * unknown. CLEAT_ERR_FORMAT gives file:line:column, cause and remedy. The values are freed by
 * cleat_esri_grid_free. */
cleat_status cleat_esri_grid_read(const char *path, cleat_esri_grid *grid, cleat_error *error);
void cleat_esri_grid_free(cleat_esri_grid *grid);
/* CLEAT_ERR_FORMAT, with both files and the field, if two grids do not cover the same cells. Corners and cell
 * sizes may differ by a millionth of a cell, because they are parsed from decimal text. */
cleat_status cleat_esri_grid_match(const char *path, const cleat_esri_grid *grid, const char *other_path,
                                   const cleat_esri_grid *other, cleat_error *error);

#endif
