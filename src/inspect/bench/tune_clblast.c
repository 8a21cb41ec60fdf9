/* Search for CLBlast's parameters. The largest products of a profile are timed with CLBlast's present
 * parameters, then with each set for the kernel of large products (no product uses the direct kernel) and
 * each set for the direct kernel (all products use it). The best set of each and the size at which products
 * count as large follow from these times; the combination must then be faster in a separate measurement as
 * well. */
#include "bench/tuner.h"

#include "core/child.h"
#include "core/clock.h"
#include "core/memory.h"
#include "device/device.h"
#include "exec/copy.h"
#include "graph/launch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double BUDGET = 300; /* time limit for trying sets, as a multiple of the seconds per candidate */
static const double GRACE = 600;  /* additional seconds, after twice the budget, before the child counts as hung */
static const double SLOW = 2;     /* times slower than the best set: not tried in other products */
static const double SAME = 1e-4;  /* largest difference allowed, relative to the largest result */
enum { MAX_SUBJECTS = 6, MIN_BURSTS = 3, ALL_LARGE = 1, ALL_DIRECT = CLEAT_CLBLAST_SIZE_MAX };
enum { FAMILIES = CLEAT_CLBLAST_FAMILIES, LARGE = CLEAT_CLBLAST_LARGE, DIRECT = CLEAT_CLBLAST_DIRECT };
enum { MAX_SETS = CLEAT_CLBLAST_SETS };

/* A kind of nodes computed by CLBlast. */
typedef struct subject {
    cleat_tune_kind *kind;
    cleat_autotune_request request; /* CLBlast's variant, and another one as reference */
    cleat_clblast_times times;
} subject;

typedef struct search {
    cleat_tuner *tuner;
    subject subjects[MAX_SUBJECTS]; /* [count], most time-consuming first */
    size_t count, tried, failed;
    bool dropped[FAMILIES][MAX_SETS];
    double seconds, budget; /* approximate seconds per measurement; time limit for trying sets */
    double end;             /* time at which the budget expires */
} search;

/* Number of multiplications in the variant's first GEMM by CLBlast; 0 if it has none. */
static double multiplications_of(const cleat_variant *variant, const cleat_node *node,
                                 const cleat_device_facts *facts) {
    cleat_binder binder;
    double found = 0;
    cleat_binder_init(&binder, facts);
    if (cleat_bind_node(variant, node, &binder, NULL) == CLEAT_OK)
        for (size_t i = 0; i < binder.count && found == 0; ++i) {
            const cleat_sgemm *g = &binder.launches[i].sgemm;
            if (binder.launches[i].kind == CLEAT_LAUNCH_SGEMM) found = (double)g->m * (double)g->n * (double)g->k;
        }
    cleat_binder_clear(&binder);
    return found;
}

static double weight_of(const subject *s) {
    return s->times.uses * cleat_node_cost(s->kind->node).flops;
}

static int by_weight(const void *a, const void *b) {
    double x = weight_of(a), y = weight_of(b);
    return (x < y) - (x > y);
}

/* Selects CLBlast's variant and the first of the others; false if CLBlast does not support the kind, or is
 * the only one. */
static bool init_subject(search *all, cleat_tune_kind *kind, subject *made) {
    const cleat_device_facts *facts = cleat_device_get_facts(all->tuner->device);
    cleat_autotune_request request = cleat_tuner_request(all->tuner, kind);
    const cleat_variant *clblast = NULL, *other = NULL;
    *made = (subject){.kind = kind, .times.uses = (double)kind->about.uses};
    for (size_t i = 0; i < request.count; ++i) {
        double multiplications = multiplications_of(request.variants[i], kind->node, facts);
        if (multiplications > 0 && !clblast) {
            clblast = request.variants[i];
            made->times.multiplications = multiplications;
        } else if (multiplications == 0 && !other) {
            other = request.variants[i];
        }
    }
    if (!clblast || !other) return false;
    request.variants[0] = clblast;
    request.variants[1] = other;
    request.count = 2;
    made->request = request;
    for (int family = 0; family < FAMILIES; ++family)
        for (int i = 0; i < MAX_SETS; ++i) made->times.seconds[family][i] = INFINITY;
    return true;
}

static cleat_status find_subjects(search *all, cleat_tune_kinds *kinds, cleat_error *error) {
    size_t count = 0;
    subject *found = cleat_alloc(kinds->count + 1, sizeof *found);
    if (!found) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu kinds of nodes", kinds->count);
    for (size_t i = 0; i < kinds->count; ++i)
        if (kinds->items[i].about.uses > 0 && init_subject(all, &kinds->items[i], &found[count])) ++count;
    qsort(found, count, sizeof *found, by_weight);
    all->count = count < MAX_SUBJECTS ? count : MAX_SUBJECTS;
    memcpy(all->subjects, found, all->count * sizeof *found);
    cleat_free(found);
    return CLEAT_OK;
}

/* Returns the result of one run of candidate i on the initial values; the caller frees it. */
static cleat_status result_of(cleat_autotune_bench *a, size_t i, float **values, cleat_error *error) {
    const cleat_tensor *out = a->graphs[i]->nodes[0]->out[0];
    float *made = cleat_alloc((size_t)cleat_tensor_elements(out), sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a product");
    a->candidates[i].runs = 1;
    cleat_status status = cleat_autotune_bench_fill(a, error);
    if (!status) status = cleat_autotune_bench_burst(a, i, error);
    if (!status) status = cleat_exec_read_unchecked(a->exec, i, out, made, error);
    if (!status)
        *values = made;
    else
        cleat_free(made);
    return status;
}

static bool same(const float *values, const float *expected, int64_t count) {
    double largest = 0, apart = 0;
    for (int64_t i = 0; i < count; ++i) {
        double off = fabs((double)values[i] - (double)expected[i]);
        largest = fmax(largest, fabs((double)expected[i]));
        if (!(off <= apart)) apart = isnan(off) ? INFINITY : off;
    }
    return apart <= SAME * largest;
}

/* Stops after the first runs if they are slower than `most`. */
static cleat_status clock_product(cleat_autotune_bench *a, double seconds, double most, double *fastest,
                                  cleat_error *error) {
    double end = cleat_seconds() + seconds;
    cleat_status status = cleat_autotune_bench_warm_up(a, 0, error);
    for (int i = 0; !status && a->candidates[0].fastest <= most; ++i) {
        if (i >= MIN_BURSTS && cleat_seconds() > end) break;
        status = cleat_autotune_bench_burst(a, 0, error);
    }
    if (!status) *fastest = a->candidates[0].fastest;
    return status;
}

static cleat_status check_product(cleat_autotune_bench *a, const float *expected, cleat_error *error) {
    float *values = NULL;
    cleat_status status = result_of(a, 0, &values, error);
    if (status) return status;
    if (!same(values, expected, cleat_tensor_elements(a->graphs[0]->nodes[0]->out[0])))
        status = cleat_fail(error, CLEAT_ERR_DEVICE, "the result is wrong");
    cleat_free(values);
    return status;
}

/* Most of the time is spent compiling new sets, so the time limit applies to the first product. The other
 * products use only sets that were measured there in time, which always include one set per family. */
static bool is_out(const search *all, const subject *s, int family, size_t set) {
    if (all->dropped[family][set]) return true;
    return s == all->subjects ? set > 0 && cleat_seconds() > all->end
                              : !isfinite(all->subjects[0].times.seconds[family][set]);
}

/* A set that fails or is slow is dropped from the search. */
static void try_set(search *all, subject *s, cleat_autotune_bench *a, const float *expected, int family, size_t set) {
    cleat_error error = {0};
    cleat_clblast_parameters parameters =
        family == LARGE ? cleat_clblast_set(set, 0, ALL_LARGE) : cleat_clblast_set(0, set, ALL_DIRECT);
    double *fastest = &s->times.seconds[family][set], best = INFINITY;
    for (int i = 0; i < MAX_SETS; ++i) best = fmin(best, s->times.seconds[family][i]);
    if (is_out(all, s, family, set)) return;
    all->tried += s == all->subjects;
    cleat_status status = cleat_clblast_override(all->tuner->device, &parameters, &error);
    if (!status) status = check_product(a, expected, &error);
    if (!status) status = clock_product(a, all->seconds, SLOW * best, fastest, &error);
    all->failed += status != CLEAT_OK;
    all->dropped[family][set] = status != CLEAT_OK || *fastest > SLOW * best;
    cleat_log(CLEAT_LOG_DISPATCH, "tune CLBlast: %s, %s set %zu: %.4g ms%s%s", s->kind->about.key,
              family == LARGE ? "large" : "direct", set, !status ? *fastest * 1e3 : 0.0, !status ? "" : ": ",
              error.text);
}

static cleat_status try_sets(search *all, subject *s, cleat_error *error) {
    cleat_autotune_bench a = {0};
    float *expected = NULL;
    cleat_status status = cleat_autotune_bench_open(&s->request, s->request.out, &a, error);
    if (!status) status = result_of(&a, 1, &expected, error);
    for (size_t i = 0; !status && i < MAX_SETS; ++i) {
        if (i < cleat_clblast_xgemm_sets()) try_set(all, s, &a, expected, LARGE, i);
        if (i < cleat_clblast_direct_sets()) try_set(all, s, &a, expected, DIRECT, i);
    }
    cleat_free(expected);
    cleat_autotune_bench_close(&a);
    return status;
}

/* Times the product with CLBlast's current parameters. */
static cleat_status time_product(const search *all, const subject *s, double *seconds, cleat_error *error) {
    const bool others[CLEAT_TUNE_CANDIDATES] = {false, true};
    cleat_autotune_bench a = {0};
    cleat_status status = cleat_autotune_bench_open(&s->request, others, &a, error);
    if (!status) status = clock_product(&a, all->seconds, INFINITY, seconds, error);
    cleat_autotune_bench_close(&a);
    return status;
}

static bool is_direct(const cleat_clblast_times *product, int32_t min_indirect) {
    return product->multiplications < (double)min_indirect * min_indirect * min_indirect;
}

/* Sets used by no product are ranked by the first product, because other products may use them. */
static double seconds_of(const cleat_clblast_times *const *products, size_t count, const cleat_clblast_choice *c) {
    const double tie = 1e-6;
    double sum = tie * (products[0]->seconds[LARGE][c->large] + products[0]->seconds[DIRECT][c->direct]);
    for (size_t i = 0; i < count; ++i)
        sum += products[i]->uses * (is_direct(products[i], c->min_indirect) ? products[i]->seconds[DIRECT][c->direct]
                                                                            : products[i]->seconds[LARGE][c->large]);
    return sum;
}

static void update_best(const cleat_clblast_times *const *products, size_t count, int32_t min_indirect,
                        cleat_clblast_choice *best) {
    for (size_t large = 0; large < cleat_clblast_xgemm_sets(); ++large)
        for (size_t direct = 0; direct < cleat_clblast_direct_sets(); ++direct) {
            cleat_clblast_choice c = {large, direct, min_indirect, 0};
            c.seconds = seconds_of(products, count, &c);
            if (c.seconds < best->seconds) *best = c;
        }
}

cleat_clblast_choice cleat_clblast_choose(const cleat_clblast_times *const *products, size_t count) {
    cleat_clblast_choice best = {.seconds = INFINITY};
    update_best(products, count, ALL_LARGE, &best);
    for (size_t i = 0; i < count; ++i) {
        double size = floor(cbrt(products[i]->multiplications)) + 1;
        update_best(products, count, (int32_t)fmin(size, ALL_DIRECT), &best);
    }
    return best;
}

static cleat_status time_all(const search *all, double *sum, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    *sum = 0;
    for (size_t i = 0; i < all->count && !status; ++i) {
        double seconds = 0;
        status = time_product(all, &all->subjects[i], &seconds, error);
        *sum += all->subjects[i].times.uses * seconds;
    }
    return status;
}

/* Determines whether CLBlast comes close to the other variants in the largest product. */
static cleat_status compare_variants(search *all, bool *near, cleat_clblast_answer *answer, cleat_error *error) {
    subject *s = &all->subjects[0];
    cleat_tune_node result = {.count = s->request.count};
    cleat_autotune_request request = s->request;
    request.seconds = all->seconds;
    cleat_status status = cleat_autotune_run(&request, &result, error);
    double clblast = result.candidates[0].seconds, other = result.candidates[1].seconds;
    *near = !status && clblast > 0 && !(other > 0 && clblast > CLEAT_TUNE_BY_FAR * other);
    if (!status && !*near)
        snprintf(answer->why, sizeof answer->why, "not searched: CLBlast takes %.1f x the time of %s",
                 other > 0 ? clblast / other : 0.0, request.variants[1]->name);
    return status;
}

static cleat_status try_all(search *all, cleat_clblast_answer *answer, cleat_error *error) {
    double before = 0, after = 0;
    cleat_status status = time_all(all, &before, error);
    all->end = cleat_seconds() + all->budget;
    for (size_t i = 0; i < all->count && !status; ++i) status = try_sets(all, &all->subjects[i], error);
    if (status) return status;
    const cleat_clblast_times *products[MAX_SUBJECTS];
    for (size_t i = 0; i < all->count; ++i) products[i] = &all->subjects[i].times;
    cleat_clblast_choice best = cleat_clblast_choose(products, all->count);
    if (!isfinite(best.seconds)) {
        snprintf(answer->why, sizeof answer->why, "unchanged: none of %zu sets could be measured", all->tried);
        return CLEAT_OK;
    }
    answer->parameters = cleat_clblast_set(best.large, best.direct, best.min_indirect);
    status = cleat_clblast_override(all->tuner->device, &answer->parameters, error);
    if (!status) status = time_all(all, &after, error);
    if (status) return status;
    answer->found = after < CLEAT_TUNE_WORTH * before;
    snprintf(answer->why, sizeof answer->why,
             "%s: the best of %zu sets (%zu failed) takes %.2f x the time of the previous one, in the %zu heaviest "
             "matrix products",
             answer->found ? "updated" : "as they were", all->tried, all->failed, after / before, all->count);
    return CLEAT_OK;
}

static cleat_status search_here(cleat_tuner *t, cleat_clblast_answer *answer, cleat_error *error) {
    double seconds = t->options->seconds > 0 ? t->options->seconds : CLEAT_TUNE_SECONDS;
    search all = {.tuner = t, .seconds = seconds / 4, .budget = BUDGET * seconds};
    cleat_tune_kinds kinds = {0};
    bool near = false;
    *answer = (cleat_clblast_answer){
        .why = "not searched: CLBlast runs none of the profile's matrix products on this device"};
    cleat_status status = cleat_tuner_fit(t, error);
    if (!status) status = cleat_tuner_find_kinds(t, &kinds, error);
    if (!status) status = find_subjects(&all, &kinds, error);
    if (!status && all.count > 0) status = compare_variants(&all, &near, answer, error);
    if (near) status = try_all(&all, answer, error);
    if (status) answer->found = false;
    cleat_tune_kinds_clear(&kinds);
    return status;
}

typedef struct child_request {
    const cleat_profile *profile;
    const cleat_tune_options *options;
} child_request;

static void search_in_child(void *user, int out) {
    const child_request *args = user;
    cleat_tune_report report = {0};
    cleat_clblast_answer answer = {0};
    cleat_error error = {0};
    cleat_tuner t = {.profile = args->profile, .options = args->options, .report = &report};
    cleat_status status = cleat_tuner_open(&t, &error);
    if (!status) status = search_here(&t, &answer, &error);
    if (status) snprintf(answer.why, sizeof answer.why, "unchanged: %.230s", error.text);
    cleat_tuner_close(&t);
    cleat_child_send(out, &answer, sizeof answer);
}

cleat_clblast_answer cleat_tune_clblast(const cleat_profile *profile, const cleat_tune_options *options) {
    child_request args = {profile, options};
    double seconds = options->seconds > 0 ? options->seconds : CLEAT_TUNE_SECONDS;
    cleat_clblast_answer answer = {0};
    cleat_child child = {
        .body = search_in_child, .user = &args, .record_bytes = sizeof answer, .seconds = GRACE + 2 * BUDGET * seconds};
    cleat_child_end end = {0};
    cleat_error error = {0};
    cleat_status status = cleat_child_run(&child, &answer, &end, &error);
    if (!status && end.records > 0 && !end.text[0]) return answer;
    answer = (cleat_clblast_answer){0};
    snprintf(answer.why, sizeof answer.why, "unchanged: the search %.200s", !status ? end.text : error.text);
    return answer;
}
