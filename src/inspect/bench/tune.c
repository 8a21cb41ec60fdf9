/* Kernel tuner: finds the nodes that a profile runs on a device, benchmarks the variants of each kind, and
 * stores the fastest on disk. CLBlast counts as one variant here; its parameters are searched for first
 * (tune_clblast.c). */
#include "bench/tuner.h"
#include "session/tuned_cache.h"

#include "cleat/doctor.h"
#include "core/clock.h"
#include "core/files.h"
#include "core/lock.h"
#include "core/memory.h"
#include "graph/graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOW_LIMIT = 2, MAX_ROUNDS = 3 };

/* --- selection ------------------------------------------------------------------------------------------------ */

void cleat_tune_select(cleat_tune_node *node) {
    const cleat_tune_candidate *c = node->candidates;
    size_t best = 0, second = 0;
    for (size_t i = 1; i < node->count; ++i)
        if (c[i].seconds > 0 && c[i].seconds < c[best].seconds) best = i;
    for (size_t i = 1; i < node->count; ++i)
        if (c[i].seconds > 0 && (second == 0 || c[i].seconds < c[second].seconds)) second = i;
    bool keep = best == 0 || c[best].seconds > CLEAT_TUNE_WORTH * c[0].seconds;
    node->chosen = keep ? 0 : best;
    if (!keep)
        snprintf(node->why, sizeof node->why, "%.2f x as fast as the default %s", c[0].seconds / c[best].seconds,
                 c[0].variant);
    else if (best != 0)
        snprintf(node->why, sizeof node->why, "the default; %s is no more than %.1f %% faster", c[best].variant,
                 100 * (1 - c[best].seconds / c[0].seconds));
    else if (second != 0)
        snprintf(node->why, sizeof node->why, "the default, %.2f x as fast as %s", c[second].seconds / c[0].seconds,
                 c[second].variant);
    else
        snprintf(node->why, sizeof node->why, "the default; no other variant ran");
}

/* --- nodes of a workload -------------------------------------------------------------------------------------- */

static size_t find_candidates(const cleat_node *node, const cleat_device_facts *facts,
                              const cleat_variant *found[CLEAT_TUNE_CANDIDATES]) {
    size_t count = 0;
    for (const cleat_variant *v = node->op->variants; v && v->name && count < CLEAT_TUNE_CANDIDATES; ++v)
        if (!(v->refuse && v->refuse(node, facts))) found[count++] = v;
    return count;
}

static int64_t bytes_of(const cleat_node *node) {
    int64_t bytes = 0;
    for (int i = 0; i < node->n_in; ++i)
        if (node->in[i]) bytes += cleat_tensor_bytes(node->in[i]);
    for (int i = 0; i < node->n_out; ++i)
        if (node->out[i]) bytes += cleat_tensor_bytes(node->out[i]);
    return bytes;
}

void cleat_tune_kinds_clear(cleat_tune_kinds *k) {
    for (size_t i = 0; i < k->count; ++i) cleat_free(k->items[i].about.key);
    cleat_free(k->items);
    *k = (cleat_tune_kinds){0};
}

static cleat_status add_kind(cleat_tuner *t, cleat_tune_kinds *k, const cleat_node *node, const char *key,
                             const cleat_bucket *bucket, int64_t uses, cleat_error *error) {
    const cleat_variant *found[CLEAT_TUNE_CANDIDATES];
    if (cleat_tuning_get(t->seen, key)) return CLEAT_OK;
    size_t count = find_candidates(node, cleat_device_get_facts(t->device), found);
    cleat_status status = cleat_tuning_set(t->seen, key, "", error);
    if (!status && count < 2) ++t->report->single;
    if (!status && count >= 2) status = cleat_grow(&k->items, k->count, &k->capacity, error);
    if (status || count < 2) return status;
    cleat_tune_kind made = {.node = node, .bytes = bytes_of(node)};
    made.about = (cleat_tune_node){.key = cleat_strdup(key),
                                   .length = bucket->length,
                                   .micro_batch_size = bucket->micro_batch_size,
                                   .uses = uses,
                                   .count = count};
    if (!made.about.key) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a kind of node");
    for (size_t i = 0; i < count; ++i) made.about.candidates[i].variant = found[i]->name;
    k->items[k->count++] = made;
    return CLEAT_OK;
}

/* `uses`: executions of each node of the graph per optimizer step. */
static cleat_status add_graph(cleat_tuner *t, cleat_tune_kinds *k, const cleat_graph *graph, const cleat_bucket *bucket,
                              int64_t uses, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; graph && i < graph->node_count && !status; ++i) {
        char key[CLEAT_TUNING_KEY];
        if (!cleat_op_is_tunable(graph->nodes[i]->op)) continue;
        cleat_tuning_key(graph->nodes[i], key);
        size_t at = 0;
        while (at < k->count && strcmp(k->items[at].about.key, key) != 0) ++at;
        if (at == k->count)
            status = add_kind(t, k, graph->nodes[i], key, bucket, uses, error);
        else if (k->items[at].about.length == bucket->length)
            k->items[at].about.uses += uses;
    }
    return status;
}

/* Orders by operation, then by size with small shapes first; see skip_slow_variants. */
static int by_operation(const void *a, const void *b) {
    const cleat_tune_kind *x = a, *y = b;
    int order = strcmp(x->node->op->name, y->node->op->name);
    if (order == 0) order = (x->bytes > y->bytes) - (x->bytes < y->bytes);
    return order ? order : strcmp(x->about.key, y->about.key);
}

/* Adds long buckets first. */
cleat_status cleat_tuner_find_kinds(cleat_tuner *t, cleat_tune_kinds *k, cleat_error *error) {
    const cleat_workload *work = t->work;
    cleat_status status = CLEAT_OK;
    for (size_t b = work->n_buckets; b-- > 0 && !status;) {
        const cleat_bucket *bucket = &work->buckets[b];
        status = add_graph(t, k, work->train[b].graph, bucket, cleat_fit_micro_batches(bucket), error);
        if (!status) status = add_graph(t, k, work->evaluate[b].graph, bucket, 0, error);
    }
    if (!status) status = add_graph(t, k, work->update.graph, &work->buckets[work->n_buckets - 1], 1, error);
    if (k->count > 0) qsort(k->items, k->count, sizeof *k->items, by_operation);
    return status;
}

/* --- benchmarks ----------------------------------------------------------------------------------------------- */

/* Returns the bucket of the planned workload to which the node being timed belongs; NULL: none has its
 * size. */
static const cleat_bucket *bucket_being_tuned(const cleat_tuner *t, const cleat_graph **graph) {
    for (size_t b = 0; b < t->work->n_buckets; ++b) {
        const cleat_bucket *bucket = &t->work->buckets[b];
        *graph = t->work->train[b].graph;
        if (bucket->micro_batch_size == t->micro_batch_size && bucket->length == t->length) return bucket;
    }
    return NULL;
}

/* Fills graph inputs as in a training step: tokens, lengths and coordinates of a synthetic batch. */
static void write_input(void *user, const cleat_tensor *tensor, void *values) {
    cleat_tuner *t = user;
    const cleat_tensor *root = cleat_root(tensor);
    const cleat_graph *graph;
    if (root->role != CLEAT_ROLE_INPUT) return;
    const cleat_bucket *bucket = bucket_being_tuned(t, &graph);
    cleat_error error = {0};
    if (bucket && !cleat_tune_batch_serves(&t->batch, bucket)) {
        cleat_tune_batch_close(&t->batch);
        if (cleat_tune_batch_open(t->model, graph, bucket, &t->batch, &error))
            cleat_log(CLEAT_LOG_DEBUG, "tune: %s", error.text);
    }
    if (bucket) cleat_tune_batch_read(&t->batch, root, values);
}

static cleat_variant_record *find_record(cleat_tuner *t, const cleat_op *op, const cleat_variant *variant) {
    for (size_t i = 0; i < t->record_count; ++i)
        if (t->records[i].op == op && t->records[i].variant == variant) return &t->records[i];
    if (t->record_count == CLEAT_TUNE_RECORDS) return NULL;
    t->records[t->record_count] = (cleat_variant_record){.op = op, .variant = variant};
    return &t->records[t->record_count++];
}

/* A naive kernel can take minutes where a good one takes a second, so a variant that was slower by far at
 * smaller shapes of the same operation is not run at larger ones. */
static void skip_slow_variants(cleat_tuner *t, cleat_autotune_request *request, cleat_tune_node *about) {
    for (size_t i = 1; i < request->count; ++i) {
        const cleat_variant_record *r = find_record(t, request->node->op, request->variants[i]);
        request->out[i] = r && r->times_slow >= SLOW_LIMIT;
        if (!request->out[i]) continue;
        snprintf(about->candidates[i].error, sizeof about->candidates[i].error,
                 "not run: more than %.0f x slower at smaller shapes", CLEAT_TUNE_BY_FAR);
    }
}

static void record_slow_variants(cleat_tuner *t, const cleat_autotune_request *request, const cleat_tune_node *about) {
    double fastest = about->candidates[about->chosen].seconds;
    for (size_t i = 1; i < request->count; ++i) {
        cleat_variant_record *r = find_record(t, request->node->op, request->variants[i]);
        if (!r || !(about->candidates[i].seconds > 0)) continue;
        r->times_slow = about->candidates[i].seconds > CLEAT_TUNE_BY_FAR * fastest ? r->times_slow + 1 : 0;
    }
}

cleat_autotune_request cleat_tuner_request(cleat_tuner *t, const cleat_tune_kind *k) {
    const cleat_device_facts *facts = cleat_device_get_facts(t->device);
    cleat_autotune_request request = {.device = t->device,
                                      .node = k->node,
                                      .limit = cleat_fit_limit(facts, t->profile),
                                      .seconds = t->options->seconds > 0 ? t->options->seconds : CLEAT_TUNE_SECONDS,
                                      .input = write_input,
                                      .user = t};
    request.count = find_candidates(k->node, facts, request.variants);
    t->micro_batch_size = k->about.micro_batch_size;
    t->length = k->about.length;
    return request;
}

static cleat_status measure(cleat_tuner *t, cleat_tune_kind *k, cleat_error *error) {
    cleat_autotune_request request = cleat_tuner_request(t, k);
    skip_slow_variants(t, &request, &k->about);
    cleat_error failure = {0};
    cleat_status status = cleat_autotune_run(&request, &k->about, &failure);
    if (status == CLEAT_ERR_FIT) {
        snprintf(k->about.why, sizeof k->about.why, "the default, not measured: %.200s", failure.text);
        return CLEAT_OK;
    }
    if (status) {
        if (error) *error = failure;
        return cleat_fail_in(error, status, "tuning %.200s", k->about.key);
    }
    k->about.measured = true;
    cleat_tune_select(&k->about);
    record_slow_variants(t, &request, &k->about);
    return cleat_tuning_set(t->table, k->about.key, k->about.candidates[k->about.chosen].variant, error);
}

static void log_kind(const cleat_tune_node *about) {
    char times[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < about->count && used < sizeof times; ++i) {
        const cleat_tune_candidate *c = &about->candidates[i];
        used += (size_t)snprintf(times + used, sizeof times - used, "%s%s ", i ? ", " : "", c->variant);
        if (used < sizeof times && c->seconds > 0)
            used += (size_t)snprintf(times + used, sizeof times - used, "%.4g ms", c->seconds * 1e3);
        else if (used < sizeof times)
            used += (size_t)snprintf(times + used, sizeof times - used, "- (%.60s)", c->error);
    }
    cleat_log(CLEAT_LOG_DISPATCH, "tune %s: %s: %s is %s", about->key, times, about->candidates[about->chosen].variant,
              about->why);
}

/* Appends the kind to the report. */
static cleat_status report_kind(cleat_tuner *t, cleat_tune_kind *k, cleat_error *error) {
    cleat_tune_report *report = t->report;
    cleat_status status = cleat_grow(&report->nodes, report->count, &t->capacity, error);
    if (status) return status;
    report->nodes[report->count++] = k->about;
    k->about.key = NULL;
    log_kind(&report->nodes[report->count - 1]);
    if (t->options->node) t->options->node(t->options->user, &report->nodes[report->count - 1]);
    return CLEAT_OK;
}

/* --- the file ------------------------------------------------------------------------------------------------- */

static const cleat_tune_node *find_node(const cleat_tune_report *report, const char *key) {
    for (size_t i = 0; i < report->count; ++i)
        if (strcmp(report->nodes[i].key, key) == 0) return &report->nodes[i];
    return NULL;
}

/* Merges entries of the file that were not measured here. */
static cleat_status merge_file(cleat_tuner *t, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    cleat_tuning_table *file = cleat_tuned_read(t->device);
    for (size_t i = 0; file && i < file->count && !status; ++i) {
        const cleat_tune_node *node = find_node(t->report, file->items[i].key);
        if (!node || !node->measured)
            status = cleat_tuning_set(t->table, file->items[i].key, file->items[i].variant, error);
    }
    if (file && file->has_clblast && !t->found_clblast) {
        t->table->has_clblast = true;
        t->table->clblast = file->clblast;
    }
    cleat_tuning_destroy(file);
    return status;
}

static cleat_status table_path(const cleat_device *device, char path[CLEAT_PATH], cleat_error *error) {
    char folder[CLEAT_PATH];
    cleat_status status = cleat_tuned_path(device, path, CLEAT_PATH, error);
    if (status) return status;
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    return cleat_folder_make(folder, error);
}

/* Entries written by other processes that tune at the same time are kept. */
static cleat_status save_table(cleat_tuner *t, cleat_error *error) {
    enum { PATIENCE = 10 };
    char path[CLEAT_PATH];
    int lock = -1;
    cleat_status status = table_path(t->device, path, error);
    if (status) return status;
    const bool locked = cleat_lock(path, PATIENCE, &lock, NULL) == CLEAT_OK;
    status = merge_file(t, error);
    if (!status) status = cleat_tuned_write(t->device, t->table, NULL, error);
    if (locked) cleat_unlock(lock);
    if (status) return status;
    t->report->entries = t->table->count;
    snprintf(t->report->path, sizeof t->report->path, "%s", path);
    return CLEAT_OK;
}

/* --- rounds --------------------------------------------------------------------------------------------------- */

/* Plans the workload as training with these selections would. */
static cleat_status fit(const cleat_tuner *t, const cleat_tuning_table *tuning, cleat_workload **work,
                        cleat_error *error) {
    cleat_fit_result fitted = {0};
    cleat_fit_request request = cleat_fit_request_for(t->profile, t->model, CLEAT_FOR_TRAINING, &t->lengths,
                                                      cleat_device_get_facts(t->device), NULL);
    request.tuning = tuning;
    cleat_status status = cleat_session_search(t->device, &request, &fitted, NULL, 0, error);
    if (!status) *work = fitted.work;
    return status;
}

cleat_status cleat_tuner_fit(cleat_tuner *t, cleat_error *error) {
    cleat_workload_destroy(t->work);
    t->work = NULL;
    return fit(t, t->table, &t->work, error);
}

/* The result is saved at once, because a search takes long and may be killed. */
static cleat_status tune_kind(cleat_tuner *t, cleat_tune_kind *k, cleat_error *error) {
    cleat_status status = measure(t, k, error);
    if (!status) status = report_kind(t, k, error);
    if (status || !k->about.measured) return status;
    status = save_table(t, error);
    return status ? cleat_fail_in(error, status, "saving the choices") : status;
}

/* Other kernels may need a different workspace, so that other micro-batch sizes fit, which introduces new
 * shapes. */
static cleat_status tune_rounds(cleat_tuner *t, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    bool more = true;
    for (int round = 0; round < MAX_ROUNDS && more && !status; ++round) {
        cleat_tune_kinds found = {0};
        status = cleat_tuner_fit(t, error);
        if (!status) status = cleat_tuner_find_kinds(t, &found, error);
        for (size_t i = 0; i < found.count && !status; ++i) status = tune_kind(t, &found.items[i], error);
        more = found.count > 0;
        cleat_tune_kinds_clear(&found);
    }
    return status;
}

/* --- speed-up ------------------------------------------------------------------------------------------------- */

static void sum_step(const cleat_tuner *t) {
    cleat_tune_report *report = t->report;
    const cleat_workload *work = t->work;
    const cleat_graph *graph = work->train[work->n_buckets - 1].graph;
    const cleat_bucket *longest = &work->buckets[work->n_buckets - 1];
    report->length = longest->length;
    report->micro_batches = cleat_fit_micro_batches(longest);
    report->default_seconds = report->tuned_seconds = 0;
    for (size_t i = 0; i < graph->node_count; ++i) {
        char key[CLEAT_TUNING_KEY];
        if (!cleat_op_is_tunable(graph->nodes[i]->op)) continue;
        cleat_tuning_key(graph->nodes[i], key);
        const cleat_tune_node *node = find_node(report, key);
        if (!node || !node->measured) continue;
        report->default_seconds += (double)report->micro_batches * node->candidates[0].seconds;
        report->tuned_seconds += (double)report->micro_batches * node->candidates[node->chosen].seconds;
    }
}

static cleat_status compare_plans(cleat_tuner *t, cleat_error *error) {
    cleat_workload *tuned = NULL, *plain = NULL;
    cleat_status status = fit(t, t->table, &tuned, error);
    if (!status) status = fit(t, NULL, &plain, error);
    if (!status) {
        t->report->tuned_bytes = cleat_plan_bytes(tuned->plan);
        t->report->default_bytes = cleat_plan_bytes(plain->plan);
    }
    cleat_workload_destroy(plain);
    cleat_workload_destroy(tuned);
    return status;
}

/* --- public call ---------------------------------------------------------------------------------------------- */

cleat_status cleat_tuner_open(cleat_tuner *t, cleat_error *error) {
    cleat_status status = cleat_profile_create_model(t->profile, &t->model, error);
    if (!status) status = cleat_fit_lengths(t->profile, t->model, &t->lengths, &t->report->data_known, error);
    if (!status) status = cleat_doctor_open_device(t->profile->run.device, &t->device, error);
    if (!status) status = cleat_tuned_create(t->device, &t->table, error);
    if (!status) status = merge_file(t, error);
    if (!status) status = cleat_tuning_create(&t->seen, error);
    if (status) return status;
    snprintf(t->report->device, sizeof t->report->device, "%s", cleat_device_get_facts(t->device)->name);
    cleat_tuned_apply(t->device, t->table);
    return CLEAT_OK;
}

void cleat_tuner_close(cleat_tuner *t) {
    cleat_workload_destroy(t->work);
    cleat_tune_batch_close(&t->batch);
    cleat_tuning_destroy(t->seen);
    cleat_tuning_destroy(t->table);
    cleat_device_close(t->device);
    cleat_model_destroy(t->model);
}

/* Keeps the results found so far, whatever error ended the search. */
static cleat_status save_results(cleat_tuner *t, cleat_status status, cleat_error *error) {
    cleat_error failure = {0};
    if (!t->table || (!t->table->count && !t->table->has_clblast)) return status;
    cleat_status written = save_table(t, &failure);
    if (!written && t->options->ship) written = cleat_tuned_write(t->device, t->table, t->options->ship, &failure);
    if (!written || status) return status;
    if (error) *error = failure;
    return cleat_fail_in(error, written, "saving the choices");
}

/* Describes the selections used before. */
static void describe_before(const cleat_tuner *t) {
    char text[CLEAT_TUNING_TEXT];
    cleat_tuning_table *before = cleat_tuned_read_with_shipped(t->device);
    snprintf(t->report->before, sizeof t->report->before, "%s", cleat_tuning_describe(before, text));
    cleat_tuning_destroy(before);
}

/* CLBlast's parameters are set first, because the benchmarks run with them. */
static void set_clblast_parameters(cleat_tuner *t, const cleat_clblast_answer *answer) {
    snprintf(t->report->clblast, sizeof t->report->clblast, "%s", answer->why);
    if (!answer->found) return;
    t->found_clblast = t->table->has_clblast = true;
    t->table->clblast = answer->parameters;
}

static cleat_status open_with(cleat_tuner *t, const cleat_clblast_answer *answer, cleat_error *error) {
    cleat_status status = cleat_tuner_open(t, error);
    if (status) return status;
    describe_before(t);
    set_clblast_parameters(t, answer);
    cleat_tuned_apply(t->device, t->table);
    return CLEAT_OK;
}

cleat_status cleat_tune(const cleat_profile *profile, const cleat_tune_options *options, cleat_tune_report *report,
                        cleat_error *error) {
    const cleat_tune_options defaults = {0};
    cleat_clblast_answer answer = {0};
    double start = cleat_seconds();
    *report = (cleat_tune_report){0};
    cleat_tuner t = {.profile = profile, .options = options ? options : &defaults, .report = report};
    if (t.options->clblast) answer = cleat_tune_clblast(profile, t.options);
    cleat_status status = open_with(&t, &answer, error);
    if (!status) status = tune_rounds(&t, error);
    if (!status) sum_step(&t);
    if (!status) status = compare_plans(&t, error);
    status = save_results(&t, status, error);
    cleat_tuner_close(&t);
    report->seconds = cleat_seconds() - start;
    return status;
}

void cleat_tune_free(cleat_tune_report *report) {
    for (size_t i = 0; i < report->count; ++i) cleat_free(report->nodes[i].key);
    cleat_free(report->nodes);
    *report = (cleat_tune_report){0};
}
