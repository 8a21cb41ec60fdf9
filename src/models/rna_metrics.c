/* RMSD, TM-score, lDDT and pair-distance errors of C1' traces. */
#include "models/rna_metrics.h"

#include "core/memory.h"

#include <math.h>
#include <string.h>

typedef struct point {
    double v[3];
} point;

typedef struct trace {
    point *x, *ref; /* [n] residues with known coordinates */
    int64_t *at;    /* their indices in the chain */
    double *weight; /* scratch of the TM-score search */
    int64_t n;
} trace;

static double distance(point a, point b) {
    double x = a.v[0] - b.v[0], y = a.v[1] - b.v[1], z = a.v[2] - b.v[2];
    return sqrt(x * x + y * y + z * z);
}

/* Superposition: Horn, "Closed-form solution of absolute orientation using unit quaternions", 1987. */

/* Largest eigenvalue of a symmetric 4 x 4 matrix, and its eigenvector, by Jacobi rotations. */
static double largest_eigenvector(double a[4][4], double vector[4]) {
    double v[4][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
    for (int sweep = 0; sweep < 50; ++sweep) {
        double off = 0, size = 0;
        for (int p = 0; p < 4; ++p)
            for (int q = 0; q < 4; ++q) *(p == q ? &size : &off) += a[p][q] * a[p][q];
        if (off <= 1e-30 * size) break;
        for (int p = 0; p < 3; ++p)
            for (int q = p + 1; q < 4; ++q) {
                if (a[p][q] == 0) continue;
                double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
                double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
                double c = 1 / sqrt(t * t + 1), s = t * c;
                for (int k = 0; k < 4; ++k) {
                    double kp = a[k][p], kq = a[k][q];
                    a[k][p] = c * kp - s * kq;
                    a[k][q] = s * kp + c * kq;
                }
                for (int k = 0; k < 4; ++k) {
                    double pk = a[p][k], qk = a[q][k], vp = v[k][p], vq = v[k][q];
                    a[p][k] = c * pk - s * qk;
                    a[q][k] = s * pk + c * qk;
                    v[k][p] = c * vp - s * vq;
                    v[k][q] = s * vp + c * vq;
                }
            }
    }
    int best = 0;
    for (int k = 1; k < 4; ++k)
        if (a[k][k] > a[best][best]) best = k;
    for (int k = 0; k < 4; ++k) vector[k] = v[k][best];
    return a[best][best];
}

typedef struct motion {
    double r[3][3];
    point from, to; /* centroids */
} motion;

static point moved(const motion *m, point p) {
    point q;
    for (int i = 0; i < 3; ++i) {
        q.v[i] = m->to.v[i];
        for (int j = 0; j < 3; ++j) q.v[i] += m->r[i][j] * (p.v[j] - m->from.v[j]);
    }
    return q;
}

/* Computes the rotation and translation that superpose x on ref with the least weighted sum of squared
 * distances, and returns that sum (weight NULL: all 1). */
static double superpose(const trace *t, const double *weight, motion *m) {
    double s[3][3] = {{0}}, own = 0, count = 0;
    *m = (motion){{{0}}, {{0}}, {{0}}};
    for (int64_t i = 0; i < t->n; ++i) {
        double w = weight ? weight[i] : 1;
        count += w;
        for (int k = 0; k < 3; ++k) m->from.v[k] += w * t->x[i].v[k], m->to.v[k] += w * t->ref[i].v[k];
    }
    for (int k = 0; k < 3; ++k) m->from.v[k] /= count, m->to.v[k] /= count;
    for (int64_t i = 0; i < t->n; ++i) {
        double weight_i = weight ? weight[i] : 1;
        for (int j = 0; j < 3; ++j) {
            double a = t->x[i].v[j] - m->from.v[j], b = t->ref[i].v[j] - m->to.v[j];
            own += weight_i * (a * a + b * b);
            for (int k = 0; k < 3; ++k) s[j][k] += weight_i * a * (t->ref[i].v[k] - m->to.v[k]);
        }
    }
    double n[4][4] = {
        {s[0][0] + s[1][1] + s[2][2], s[1][2] - s[2][1], s[2][0] - s[0][2], s[0][1] - s[1][0]},
        {s[1][2] - s[2][1], s[0][0] - s[1][1] - s[2][2], s[0][1] + s[1][0], s[2][0] + s[0][2]},
        {s[2][0] - s[0][2], s[0][1] + s[1][0], -s[0][0] + s[1][1] - s[2][2], s[1][2] + s[2][1]},
        {s[0][1] - s[1][0], s[2][0] + s[0][2], s[1][2] + s[2][1], -s[0][0] - s[1][1] + s[2][2]},
    };
    double q[4], largest = largest_eigenvector(n, q), w = q[0], x = q[1], y = q[2], z = q[3];
    double r[3][3] = {
        {w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)},
        {2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)},
        {2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z},
    };
    memcpy(m->r, r, sizeof r);
    double left = own - 2 * largest;
    return left < 0 ? 0 : left; /* NaN is returned as NaN */
}

/* d0 of RNA, with the table for short chains (Gong, Zhang, Zhang: RNA-align, 2019). */
static double tm_d0(int64_t length) {
    if (length >= 30) return 0.6 * sqrt((double)length - 0.5) - 2.5;
    return length < 12 ? 0.3 : length < 16 ? 0.4 : length < 20 ? 0.5 : length < 24 ? 0.6 : 0.7;
}

enum { TM_ROUNDS = 40 };

/* TM-score of one superposition; stores the weight of each residue for the next iteration. */
static double tm_of(const trace *t, const motion *m, double d0) {
    double sum = 0;
    for (int64_t i = 0; i < t->n; ++i) {
        double d = distance(moved(m, t->x[i]), t->ref[i]) / d0;
        double share = 1 / (1 + d * d);
        t->weight[i] = share * share;
        sum += share;
    }
    return sum / (double)t->n;
}

/* TM-score from a seed fragment: superpose, weight each residue by the derivative of the score with
 * respect to its squared distance, superpose again. Each iteration increases the score, because the score
 * is convex in the squared distances, so it lies above its tangent. */
static double tm_from_seed(const trace *t, int64_t first, int64_t count, double d0) {
    double best = 0;
    motion m;
    for (int64_t i = 0; i < t->n; ++i) t->weight[i] = i >= first && i < first + count;
    for (int round = 0; round < TM_ROUNDS; ++round) {
        superpose(t, t->weight, &m);
        double score = tm_of(t, &m, d0);
        if (!(score > best + 1e-5)) break;
        best = score;
    }
    return best;
}

/* Best score of seeds: the whole chain, and fragments of a half, a quarter, ... down to four to seven
 * residues. */
static double tm_score(const trace *t) {
    double d0 = tm_d0(t->n), best = 0;
    for (int64_t count = t->n; count >= 4 || count == t->n; count /= 2) {
        int64_t stride = count / 4 > 0 ? count / 4 : 1;
        for (int64_t first = 0; first + count <= t->n; first += stride) {
            double score = tm_from_seed(t, first, count, d0);
            if (score > best) best = score;
        }
        if (count < 8) break;
    }
    return best;
}

enum { LOCAL_SEPARATION = 12 };
static const double lddt_radius = 15.0, lddt_thresholds[4] = {0.5, 1, 2, 4};

static void compute_distances(const trace *t, cleat_rna_metrics *f) {
    double all = 0, local = 0, lddt = 0, pairs = 0, local_pairs = 0, residues = 0;
    for (int64_t i = 0; i < t->n; ++i) {
        double kept = 0, reached = 0;
        for (int64_t j = 0; j < t->n; ++j) {
            if (i == j) continue;
            double reference = distance(t->ref[i], t->ref[j]);
            double error = fabs(distance(t->x[i], t->x[j]) - reference);
            if (reference < lddt_radius) {
                reached += 1;
                for (int k = 0; k < 4; ++k) kept += error < lddt_thresholds[k] ? 0.25 : 0;
            }
            if (j < i) continue;
            all += error;
            pairs += 1;
            if (t->at[j] - t->at[i] > LOCAL_SEPARATION) continue;
            local += error;
            local_pairs += 1;
        }
        if (reached > 0) {
            lddt += kept / reached;
            residues += 1;
        }
    }
    f->has_pairs = pairs > 0;
    f->has_local_pairs = local_pairs > 0;
    f->pair_mae = pairs > 0 ? all / pairs : 0;
    f->pair_mae_local = local_pairs > 0 ? local / local_pairs : 0;
    f->lddt = residues > 0 ? lddt / residues : 0;
}

static void collect(trace *t, const float *x, const float *reference, const float *mask, int64_t length) {
    for (int64_t i = 0; i < length; ++i) {
        if (mask && mask[i] == 0) continue;
        for (int k = 0; k < 3; ++k) {
            t->x[t->n].v[k] = x[3 * i + k];
            t->ref[t->n].v[k] = reference[3 * i + k];
        }
        t->at[t->n++] = i;
    }
}

static void free_trace(trace *t) {
    cleat_free(t->x);
    cleat_free(t->ref);
    cleat_free(t->at);
    cleat_free(t->weight);
}

/* The known residues (mask NULL: all); the caller frees the trace, also on failure. */
static cleat_status make_trace(trace *t, const float *x, const float *reference, const float *mask, int64_t length,
                               cleat_error *error) {
    *t = (trace){.x = cleat_alloc((size_t)length, sizeof *t->x),
                 .ref = cleat_alloc((size_t)length, sizeof *t->ref),
                 .at = cleat_alloc((size_t)length, sizeof *t->at),
                 .weight = cleat_alloc((size_t)length, sizeof *t->weight)};
    if (!t->x || !t->ref || !t->at || !t->weight)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the metrics of a chain of length %lld",
                          (long long)length);
    collect(t, x, reference, mask, length);
    if (t->n == 0)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "no metrics can be computed for a chain without known residues");
    return CLEAT_OK;
}

cleat_status cleat_rna_metrics_compute(const float *x, const float *reference, const float *mask, int64_t length,
                                       cleat_rna_metrics *metrics, cleat_error *error) {
    trace t;
    cleat_status status = make_trace(&t, x, reference, mask, length, error);
    if (!status) {
        motion m;
        compute_distances(&t, metrics);
        metrics->rmsd = sqrt(superpose(&t, NULL, &m) / (double)t.n);
        metrics->tm = tm_score(&t);
    }
    free_trace(&t);
    return status;
}

cleat_status cleat_rna_superpose(const float *x, const float *reference, const float *mask, int64_t length,
                                 float *aligned, double *rmsd, cleat_error *error) {
    trace t;
    cleat_status status = make_trace(&t, x, reference, mask, length, error);
    if (!status) {
        motion m;
        *rmsd = sqrt(superpose(&t, NULL, &m) / (double)t.n);
        for (int64_t i = 0; i < length; ++i) {
            const point p = moved(&m, (point){{x[3 * i], x[3 * i + 1], x[3 * i + 2]}});
            for (int k = 0; k < 3; ++k) aligned[3 * i + k] = (float)p.v[k];
        }
    }
    free_trace(&t);
    return status;
}
