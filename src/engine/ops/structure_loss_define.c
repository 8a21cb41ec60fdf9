/* Definition of the losses on traces: each is a mean over items; the gradient is the derivative of the items
 * that have the residue, by central differences in double precision. */
#include "ops/lib/define.h"
#include "ops/structure_loss.h"

/* A chain on the host, for one term; coordinate `axis` of residue `residue` is moved, if it is not -1. */
typedef struct host_chain {
    cleat_structure_term a;
    const float *x, *ref, *mask;
    const int32_t *partner;
    int64_t length, residue;
    int axis;
    double move;
} host_chain;

/* Sum and number of items; `size`: of the slopes, for the rounding errors of coordinates. */
typedef struct items {
    double sum, size, count;
} items;

static host_chain chain_of(const cleat_node *node, const cleat_host_values *values, int term, int64_t b) {
    const int64_t all = node->in[STRUCTURE_X]->shape[1];
    const cleat_host_array *in = values->in;
    return (host_chain){.a = cleat_structure_terms_of(node).of[term],
                        .x = in[STRUCTURE_X].f + b * all * 3,
                        .ref = in[STRUCTURE_REFERENCE].f ? in[STRUCTURE_REFERENCE].f + b * all * 3 : NULL,
                        .mask = in[STRUCTURE_MASK].f ? in[STRUCTURE_MASK].f + b * all : NULL,
                        .partner = in[STRUCTURE_PARTNER].i ? in[STRUCTURE_PARTNER].i + b * all : NULL,
                        .length = cleat_define_length(values, STRUCTURE_LENGTHS, b, all),
                        .residue = -1};
}

static double at(const host_chain *c, int64_t i, int k) {
    const double value = (double)c->x[3 * i + k];
    return i == c->residue && k == c->axis ? value + c->move : value;
}

/* The vector from residue i to j, of the prediction or the reference. */
static void between(const host_chain *c, bool reference, int64_t i, int64_t j, double out[3]) {
    for (int k = 0; k < 3; ++k)
        out[k] = reference ? (double)c->ref[3 * j + k] - (double)c->ref[3 * i + k] : at(c, j, k) - at(c, i, k);
}

static double dot(const double a[3], const double b[3]) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static double distance(const host_chain *c, int64_t i, int64_t j, double eps) {
    double d[3];
    between(c, false, i, j, d);
    return sqrt(dot(d, d) + eps);
}

static double huber(double e, double k) {
    return fabs(e) < k ? e * e / (2 * k) : fabs(e) - k / 2;
}

static double over(double x) {
    return x > 0 ? x * x : 0;
}

/* --- items ---------------------------------------------------------------------------------------------------- */

/* An item of value f whose slope may be as large as `slope`. */
static void add(items *sum, double f, double slope, double count) {
    sum->sum += f;
    sum->size += slope;
    sum->count += count;
}

/* An ordered pair: every pair counts twice. */
static void add_pair(const host_chain *c, int64_t i, int64_t j, items *sum) {
    const double d = distance(c, i, j, 1e-4), p0 = (double)c->a.p0;
    double v[3], kept = 0;
    if (i == j) return;
    if (c->a.kind == CLEAT_LOSS_CLASH) {
        const double too_near = j > i + 1 || i > j + 1 ? over(p0 - d) / 2 : 0;
        add(sum, too_near, too_near > 0 ? p0 : 0, 0);
        return;
    }
    if (c->mask[i] == 0 || c->mask[j] == 0) return;
    between(c, true, i, j, v);
    const double reference = sqrt(dot(v, v)), e = fabs(d - reference);
    if (c->a.kind == CLEAT_LOSS_DISTANCE) {
        add(sum, huber(e, 1), 1, 1);
        return;
    }
    if (reference >= p0) return;
    for (double cut = 0.5; cut < 5; cut *= 2) kept += 0.25 / (1 + exp(e - cut));
    /* the slope has the sign of the error, which rounding decides if the error is zero */
    add(sum, 1 - kept, e < 1e-4 ? 1e6 : 0.25, 1);
}

static double volume(const host_chain *c, bool reference, int64_t i, int64_t step, double *lengths) {
    double a[3][3];
    *lengths = 1;
    for (int m = 0; m < 3; ++m) {
        between(c, reference, i + m * step, i + (m + 1) * step, a[m]);
        *lengths *= sqrt(dot(a[m], a[m]) + 1e-4);
    }
    return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) + a[0][1] * (a[1][2] * a[2][0] - a[1][0] * a[2][2]) +
           a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
}

static void add_chirality(const host_chain *c, int64_t i, int64_t step, items *sum) {
    double size, own;
    if (i < 0 || i + 3 * step >= c->length) return;
    for (int m = 0; m < 4; ++m)
        if (c->mask[i + m * step] == 0) return;
    const double wanted = volume(c, true, i, step, &size), found = volume(c, false, i, step, &own);
    size = fmax(size, 1);
    add(sum, huber((found - wanted) / size, 0.2), 1 + 5 * own / size, 1);
}

static void add_angle(const host_chain *c, int64_t i, items *sum) {
    const double eps = (double)c->a.eps;
    double a[3], b[3];
    if (i < 0 || i + 2 >= c->length) return;
    between(c, false, i, i + 1, a);
    between(c, false, i + 1, i + 2, b);
    const double f = over((double)c->a.p0 - dot(a, b) / (sqrt(dot(a, a) + eps) * sqrt(dot(b, b) + eps)));
    add(sum, f, 4 / sqrt(fmin(dot(a, a), dot(b, b)) + eps), 1);
}

static void add_coordinate(const host_chain *c, int64_t i, items *sum) {
    double square = 0;
    if (c->mask[i] == 0) return;
    for (int k = 0; k < 3; ++k) square += pow(at(c, i, k) - (double)c->ref[3 * i + k], 2);
    add(sum, square / 3, sqrt(square), 1);
}

/* Items anchored at residue i, `step` apart. */
static void add_anchored(const host_chain *c, int64_t i, int64_t step, items *sum) {
    const double p0 = (double)c->a.p0, p1 = (double)c->a.p1;
    if (i < 0 || i >= c->length) return;
    if (c->a.kind == CLEAT_LOSS_COORDINATE) add_coordinate(c, i, sum);
    if (c->a.kind == CLEAT_LOSS_ANGLE) add_angle(c, i, sum);
    if (c->a.kind == CLEAT_LOSS_CHIRALITY) add_chirality(c, i, step, sum);
    if (c->a.kind == CLEAT_LOSS_BASE_PAIR) { /* every pair has an item at either end */
        const int64_t j = c->partner[i];
        if (j >= 0 && j < c->length) add(sum, huber(distance(c, i, j, 1e-4) - p0, 1) / 2, 1, 0.5);
    }
    if (c->a.kind == CLEAT_LOSS_BOND && i + 1 < c->length) {
        const double d = distance(c, i, i + 1, (double)c->a.eps), f = over(d - p1) + over(p0 - d);
        add(sum, f, 2 * sqrt(f), 1);
    }
}

static bool has_pairs(const host_chain *c) {
    return c->a.kind <= CLEAT_LOSS_CLASH;
}

static int64_t last_step(const host_chain *c) {
    return c->a.kind == CLEAT_LOSS_CHIRALITY ? 16 : 1;
}

static items add_all(const host_chain *c, cleat_host_values *values) {
    items sum = {.sum = 0};
    for (int64_t i = 0; i < c->length; ++i) {
        for (int64_t j = 0; has_pairs(c) && j < c->length; ++j) add_pair(c, i, j, &sum);
        for (int64_t step = 1; !has_pairs(c) && step <= last_step(c); step *= 2) add_anchored(c, i, step, &sum);
    }
    if (c->a.kind == CLEAT_LOSS_CLASH) sum.count = (double)c->length;
    values->work += (has_pairs(c) ? 50.0 * (double)c->length : 200.0) * (double)c->length;
    return sum;
}

/* The items that have the moved residue. */
static items add_moved(const host_chain *c, cleat_host_values *values) {
    items sum = {.sum = 0};
    const int64_t r = c->residue;
    for (int64_t j = 0; has_pairs(c) && j < c->length; ++j) {
        add_pair(c, r, j, &sum);
        add_pair(c, j, r, &sum);
    }
    for (int64_t step = 1; !has_pairs(c) && step <= last_step(c); step *= 2)
        for (int64_t m = 0; m < 4; ++m)
            if (m == 0 || c->a.kind != CLEAT_LOSS_BASE_PAIR) add_anchored(c, r - m * step, step, &sum);
    if (c->a.kind == CLEAT_LOSS_BASE_PAIR && c->partner[r] >= 0) add_anchored(c, c->partner[r], 1, &sum);
    values->work += has_pairs(c) ? 100.0 * (double)c->length : 800.0;
    return sum;
}

/* The largest coordinate: rounding errors of distances are relative to it. */
static double extent(const host_chain *c) {
    double most = 1;
    for (int64_t i = 0; i < 3 * c->length; ++i) most = fmax(most, fabs((double)c->x[i]));
    return most;
}

/* --- the ops -------------------------------------------------------------------------------------------------- */

static double weight_of(const cleat_host_values *values, const host_chain *chain, int64_t batch, int64_t b) {
    return cleat_host_value(values, STRUCTURE_SAMPLE_WEIGHT, chain->a.row * batch + b);
}

static cleat_expected_value define_inverse(const cleat_node *node, cleat_host_values *values, int term, int64_t b) {
    const host_chain chain = chain_of(node, values, term, b);
    const items all = add_all(&chain, values);
    return all.count > 0 ? (cleat_expected_value){.value = 1 / all.count, .size = 1 / all.count}
                         : (cleat_expected_value){.value = 0};
}

cleat_expected_value cleat_structure_define(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t batch = node->in[STRUCTURE_X]->shape[0];
    cleat_expected_value loss = {.value = 0};
    if (values->output == node->n_out - 1) return define_inverse(node, values, (int)(element / batch), element % batch);
    for (int64_t b = 0; b < batch; ++b) {
        const host_chain chain = chain_of(node, values, values->output, b);
        const double weight = weight_of(values, &chain, batch, b);
        const items all = add_all(&chain, values);
        if (all.count == 0) continue;
        loss.value += weight * all.sum / all.count;
        loss.size += fabs(weight) * (all.sum + fmin(all.size, all.count * 10) * extent(&chain)) / all.count;
    }
    return loss;
}

/* Adds the gradient of one term with respect to the moved coordinate. */
static void add_gradient(host_chain *chain, double factor, cleat_host_values *values, cleat_expected_value *gradient) {
    const double move = 1e-5;
    chain->move = move;
    const items after = add_moved(chain, values);
    chain->move = -move;
    const items before = add_moved(chain, values);
    gradient->value += factor * (after.sum - before.sum) / (2 * move);
    gradient->size += fabs(factor) * after.size * (1 + extent(chain));
}

cleat_expected_value cleat_structure_define_grad(const cleat_node *node, cleat_host_values *values, int64_t element) {
    const int64_t batch = node->in[STRUCTURE_X]->shape[0], all = node->in[STRUCTURE_X]->shape[1], b = element / 3 / all;
    const cleat_structure_terms terms = cleat_structure_terms_of(node);
    cleat_expected_value gradient = cleat_define_begin(values, STRUCTURE_GRAD_IN + values->output, element);
    for (int t = 0; t < cleat_structure_term_count(&terms); ++t) {
        host_chain chain = chain_of(node, values, t, b);
        chain.residue = element / 3 % all;
        chain.axis = (int)(element % 3);
        if (!node->in[STRUCTURE_DTERM + t] || chain.residue >= chain.length) continue;
        const double factor = weight_of(values, &chain, batch, b) *
                              cleat_host_value(values, STRUCTURE_INVERSE, t * batch + b) *
                              cleat_host_value(values, STRUCTURE_DTERM + t, 0);
        add_gradient(&chain, factor, values, &gradient);
    }
    return gradient;
}
