/* Sweeps: the runs that differ from a profile in the values of some settings, and how many epochs each of them gets.
 * Nothing is trained here. Threads: calls are independent. */
#ifndef CLEAT_SWEEP_H
#define CLEAT_SWEEP_H

#include "cleat/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CLEAT_SWEEP_AXES = 16, CLEAT_SWEEP_POINTS = 10000, CLEAT_SWEEP_NAME = 128, CLEAT_SWEEP_RUNGS = 64 };

/* One run of a sweep. */
typedef struct cleat_sweep_point {
    /* Name of its folder, which no other point has: "learning_rate=0.001,layers=2". Values with characters that do not
     * suit a file name, and long names, end with a hash. It depends on the values alone, not on the other points. */
    char name[CLEAT_SWEEP_NAME];
    char *assignments[CLEAT_SWEEP_AXES]; /* [axes] "section.key=value" */
} cleat_sweep_point;

typedef struct cleat_sweep {
    char axes[CLEAT_SWEEP_AXES][64]; /* [n_axes] "section.key" */
    size_t n_axes;
    cleat_sweep_point *points; /* [count] */
    size_t count;
} cleat_sweep;

/* Whether an assignment "section.key=VALUE" has several values: VALUE is a list or a range. */
CLEAT_API bool cleat_sweep_is_axis(const char *assignment);

/* Finds the points of axes [n_axes], each "section.key=V1,V2,..." (a value with a comma in single or double quotes) or
 * "section.key=LOW..HIGH". draws = 0: every combination of the lists, the last axis fastest. draws > 0: that number of
 * different points, fewer if the lists have fewer: values of lists are drawn uniformly, of ranges log-uniformly if the
 * setting is a float and both ends are positive, else uniformly; floats have 4 digits. Draws depend on `seed` and their
 * number only (Philox): more draws add points. The values are not checked: assign them to a profile.
 * CLEAT_ERR_ARGUMENT: the axes are not of this form, there are more than CLEAT_SWEEP_POINTS points, or runs with
 * different values of the setting cannot be compared. The caller frees *sweep. */
CLEAT_API cleat_status cleat_sweep_create(const cleat_profile *base, const char *const *axes, size_t n_axes,
                                          int64_t draws, uint64_t seed, cleat_sweep **sweep, cleat_error *error);
CLEAT_API void cleat_sweep_free(cleat_sweep *sweep);

/* Successive halving (Jamieson, Talwalkar: "Non-stochastic best arm identification and hyperparameter optimization",
 * AISTATS 2016): writes the epochs after which `runs` runs are compared, ascending, and `epochs` itself as the last
 * one, to rungs [returned]. They are epochs / ratio^k for k = floor(log_ratio(runs)) to 1, rounded up to evaluations,
 * which are `every` epochs apart; equal ones count once. ratio >= 2, every >= 1. */
CLEAT_API size_t cleat_sweep_rungs(size_t runs, int64_t epochs, int64_t every, int64_t ratio,
                                   int64_t rungs[CLEAT_SWEEP_RUNGS]);
/* Of the runs with is_in [count], keeps 1 of `ratio`, at least one: those with the best values, of equal ones the
 * first. A run without a finite value goes out in any case. */
CLEAT_API void cleat_sweep_keep(const double *values, size_t count, bool ascends, int64_t ratio, bool *is_in);

#ifdef __cplusplus
}
#endif
#endif
