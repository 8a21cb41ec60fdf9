/* The outermost values of a column or channel, and the warning about one far outside of all others. */
#include "data/common/extremes.h"

#include <math.h>

cleat_extremes cleat_extremes_none(void) {
    return (cleat_extremes){.least = INFINITY, .above = INFINITY, .most = -INFINITY, .below = -INFINITY};
}

static void add_least(cleat_extremes *e, double value, int64_t count) {
    if (value < e->least) {
        e->above = e->least;
        e->least = value;
        e->n_least = count;
    } else if (value == e->least) {
        e->n_least += count;
    } else if (value < e->above) {
        e->above = value;
    }
}

static void add_most(cleat_extremes *e, double value, int64_t count) {
    if (value > e->most) {
        e->below = e->most;
        e->most = value;
        e->n_most = count;
    } else if (value == e->most) {
        e->n_most += count;
    } else if (value > e->below) {
        e->below = value;
    }
}

void cleat_extremes_add(cleat_extremes *extremes, double value) {
    add_least(extremes, value, 1);
    add_most(extremes, value, 1);
}

void cleat_extremes_merge(cleat_extremes *all, const cleat_extremes *more) {
    add_least(all, more->least, more->n_least);
    add_least(all, more->above, 0);
    add_most(all, more->most, more->n_most);
    add_most(all, more->below, 0);
}

void cleat_extremes_warn(const cleat_extremes *e, const char *path, const char *what, const char *remedy) {
    const double above_rest = e->most - e->above, below_rest = e->below - e->least;
    const double down = e->above - e->least, up = e->most - e->below;
    const bool low =
        above_rest > 0 && (down > 10 * above_rest || (e->least <= -9 && e->above >= 0 && down > above_rest));
    const bool high = below_rest > 0 && up > 10 * below_rest;
    if (!low && !high) return;
    cleat_log(CLEAT_LOG_WARNING, "%s: %s: %g (%lld times) is far outside of all other values (%g to %g); %s", path,
              what, low ? e->least : e->most, (long long)(low ? e->n_least : e->n_most), low ? e->above : e->least,
              low ? e->most : e->below, remedy);
}
