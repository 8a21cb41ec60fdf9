/* ESRI ASCII grids: a header of names and numbers, then the values of the cells, north row first. */
#ifndef CLEAT_SRC_ESRI_GRID_H
#define CLEAT_SRC_ESRI_GRID_H

#include "cleat/dataset.h"

typedef struct cleat_esri_grid {
    int64_t rows, columns;
    double left, bottom; /* the outer corner of the south-west cell */
    double cell;         /* its side */
    float *values;       /* [rows, columns]; NaN where NODATA */
} cleat_esri_grid;

/* Reads ncols, nrows, xllcorner or xllcenter, yllcorner or yllcenter, cellsize and NODATA_value (-9999 where it is not
 * there, as the format says), in any order and case, and the values between blanks and line ends, wherever lines break.
 * CLEAT_ERR_FORMAT with file:line:column, cause and mend. The values are freed by cleat_esri_grid_free. */
cleat_status cleat_esri_grid_read(const char *path, cleat_esri_grid *grid, cleat_error *error);
void cleat_esri_grid_free(cleat_esri_grid *grid);
/* CLEAT_ERR_FORMAT, with both files and the field, where two grids do not lie over each other. Corners and cells may differ
 * by a millionth of a cell: they come from decimal text. */
cleat_status cleat_esri_grid_match(const char *path, const cleat_esri_grid *grid, const char *other_path,
                                   const cleat_esri_grid *other, cleat_error *error);

#endif
