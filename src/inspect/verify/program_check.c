/* Which nodes of a run's graphs are checked, when, and the records of passed checks. */
#include "verify/program_check.h"

#include "core/clock.h"
#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"
#include "device/device.h"
#include "exec/exec.h"
#include "fit/workload.h"
#include "lib/shared_numbers.clh"
#include "session/tuned_cache.h"
#include "verify/node_check.h"
#include "verify/saved_state.h"

#include <stdio.h>
#include <string.h>

enum { FORMAT = 2, HASH = 33, PASSED_PATH = 1024 + 64 }; /* FORMAT: incremented when definitions or samples change */

/* Two nodes with one `program` run the same programs on rows of the same width; with one `all`, their attributes are
 * equal as well. */
typedef struct node_key {
    char program[HASH], all[HASH];
} node_key;

/* Nodes of one program that are compared at most: the terms of a loss differ in their attributes, but so does every
 * dropout. */
enum { SIMILAR = 8 };

struct cleat_program_check {
    cleat_session *session;
    int *due;        /* [graphs of the plan]: passes to come; an update has a second one, with an infinite gradient */
    bool reported;   /* the first graph is reported, others at debug level */
    bool incomplete; /* an operation was not compared */
    node_key *covered;
    size_t count, capacity;
    size_t others; /* keys before the graph that is being checked */
    cleat_node_check result;
    char unchecked[160]; /* operations of the graph that are not compared: " NAME", each once, with a comma */
};

/* Path of the record of a check on this device with its driver, with these kernels and tuned parameters of
 * CLBlast; `what` names the check. CLEAT_ERR_IO: there is no cache folder. */

static cleat_status passed_path(const cleat_device *device, const char *what, char path[PASSED_PATH],
                                cleat_error *error) {
    const cleat_device_facts *facts = cleat_device_get_facts(device);
    char kernels[HASH], key[HASH], text[1024];
    cleat_status status = cleat_kernels_hash(kernels, error);
    if (status) return status;
    int length = snprintf(text, sizeof text, "self-check %d\n%s\n%s\n%s\n%d %d %d\n%s\n%s\n", FORMAT, facts->platform,
                          facts->name, facts->driver, (int)facts->work_group, (int)facts->vector_width,
                          (int)facts->matrix_unit, kernels, what);
    for (int i = 0; device->clblast_tuned && i < CLEAT_CLBLAST_COUNT; ++i)
        length += snprintf(text + length, sizeof text - (size_t)length, "%d ", (int)device->clblast.values[i]);
    cleat_hash_text(text, (size_t)length, key);
    return cleat_cache_path("checked/", key, "", path, PASSED_PATH, error);
}

/* Last line of the file. */
static const char passed_line[] = "\npassed\n";

/* Whether the file records a pass: an empty or truncated one does not. */
static bool has_passed(const char *path) {
    const size_t end = strlen(passed_line);
    char *text = NULL;
    size_t size = 0;
    if (!cleat_file_exists(path) || cleat_file_read(path, &text, &size, NULL) != CLEAT_OK) return false;
    const bool passed = size >= end && memcmp(text + size - end, passed_line, end) == 0;
    cleat_free(text);
    return passed;
}

/* Records a pass with a line about it. Without a cache folder, the next run repeats the check. */
static void save_passed(const char *path, const char *summary) {
    char folder[PASSED_PATH], text[512];
    snprintf(text, sizeof text, "%s%s", summary, passed_line);
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = 0;
    cleat_error error = {0};
    if (cleat_folder_make(folder, &error) != CLEAT_OK || cleat_file_write(path, text, strlen(text), &error) != CLEAT_OK)
        cleat_log(CLEAT_LOG_DEBUG, "self-check: result not saved: %s", error.text);
}

static void describe_tensor(cleat_string *text, const cleat_tensor *tensor) {
    if (tensor)
        cleat_string_add(text, " %s/%d/%lld", cleat_dtype_name(tensor->dtype), tensor->rank,
                         (long long)(tensor->rank > 0 ? cleat_width(tensor) : 1));
    else
        cleat_string_add(text, " -");
}

static cleat_status text_status(const cleat_string *text, cleat_error *error) {
    return text->failed ? cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the name of a check") : CLEAT_OK;
}

static cleat_status key_of(const cleat_exec *exec, size_t graph, size_t index, node_key *key, cleat_error *error) {
    const cleat_bound_graph *bound = &exec->graphs[graph];
    const cleat_node *node = bound->layout->graph->nodes[index];
    cleat_string text = {0};
    cleat_string_add(&text, "%s %s", node->op->name, bound->layout->variants[index]->name);
    for (size_t i = bound->first[index]; i < bound->first[index + 1]; ++i) {
        const cleat_launch *launch = &bound->binder.launches[i];
        if (launch->kind == CLEAT_LAUNCH_KERNEL)
            cleat_string_add(&text, " %s:%s:%s", launch->file, launch->kernel, launch->options);
        else
            cleat_string_add(&text, " sgemm %d %d", launch->sgemm.trans_a, launch->sgemm.trans_b);
    }
    for (int i = 0; i < node->n_in; ++i) describe_tensor(&text, node->in[i]);
    for (int i = 0; i < node->n_out; ++i) describe_tensor(&text, node->out[i]);
    cleat_status status = text_status(&text, error);
    if (!status) cleat_hash_text(text.data, text.size, key->program);
    cleat_string_add_bytes(&text, (const char *)node->attr, sizeof node->attr);
    if (!status) status = text_status(&text, error);
    if (!status) cleat_hash_text(text.data, text.size, key->all);
    cleat_string_free(&text);
    return status;
}

static bool is_covered(const cleat_program_check *check, const node_key *key) {
    int similar = 0;
    for (size_t i = 0; i < check->count; ++i) {
        if (strcmp(check->covered[i].all, key->all) == 0) return true;
        similar += strcmp(check->covered[i].program, key->program) == 0;
    }
    return similar >= SIMILAR;
}

static bool has_launches(const cleat_exec *exec, size_t graph, size_t index) {
    return exec->plan->layouts[graph].variants[index] != NULL;
}

/* The record of a graph: its name is a hash of the keys of all its nodes. */
static cleat_status graph_path(const cleat_program_check *check, size_t graph, char path[PASSED_PATH],
                               cleat_error *error) {
    const cleat_exec *exec = check->session->exec;
    cleat_string text = {0};
    char hash[HASH], what[HASH + 16];
    node_key key;
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < exec->plan->layouts[graph].node_count && !status; ++i) {
        if (!has_launches(exec, graph, i)) continue;
        status = key_of(exec, graph, i, &key, error);
        if (!status) cleat_string_add(&text, "%s\n", key.all);
    }
    if (!status) status = text_status(&text, error);
    if (!status) cleat_hash_text(text.data, text.size, hash);
    cleat_string_free(&text);
    if (status) return status;
    snprintf(what, sizeof what, "programs %s", hash);
    return passed_path(check->session->device, what, path, error);
}

/* The record of a model type. */
static cleat_status type_path(const cleat_device *device, const char *model, cleat_dtype storage,
                              char path[PASSED_PATH]) {
    char what[128];
    snprintf(what, sizeof what, "programs of %s in %s", model, cleat_dtype_name(storage));
    return passed_path(device, what, path, NULL);
}

bool cleat_program_check_has_passed(const cleat_device *device, const char *model, cleat_dtype storage) {
    char path[PASSED_PATH];
    return type_path(device, model, storage, path) == CLEAT_OK && has_passed(path);
}

static bool is_update(const cleat_program_check *check, size_t graph) {
    const cleat_work_graph *update = &check->session->work->update;
    return update->graph && update->index == graph;
}

static bool is_pass(const cleat_workload *work, size_t graph) {
    bool found = false;
    for (size_t b = 0; b < work->n_buckets; ++b)
        found |= (work->train[b].graph && work->train[b].index == graph) ||
                 (work->evaluate[b].graph && work->evaluate[b].index == graph);
    return found;
}

cleat_status cleat_program_check_create(cleat_session *session, cleat_program_check **check, cleat_error *error) {
    const cleat_plan *plan = session->exec->plan;
    const int policy = session->profile->run.self_check;
    if (policy == CLEAT_SELF_CHECK_NEVER) {
        *check = NULL;
        return CLEAT_OK;
    }
    cleat_program_check *made = cleat_alloc(1, sizeof *made);
    if (made) made->due = cleat_alloc(plan->layout_count, sizeof *made->due);
    if (!made || !made->due) {
        cleat_program_check_destroy(made);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a check of %zu graphs", plan->layout_count);
    }
    made->session = session;
    for (size_t g = 0; g < plan->layout_count; ++g) {
        char path[PASSED_PATH];
        made->due[g] = is_update(made, g) ? 2 : is_pass(session->work, g);
        if (policy == CLEAT_SELF_CHECK_ONCE && made->due[g] && graph_path(made, g, path, NULL) == CLEAT_OK &&
            has_passed(path))
            made->due[g] = 0;
    }
    *check = made;
    return CLEAT_OK;
}

void cleat_program_check_destroy(cleat_program_check *check) {
    if (!check) return;
    cleat_free(check->due);
    cleat_free(check->covered);
    cleat_free(check);
}

bool cleat_program_check_is_due(const cleat_program_check *check, size_t graph) {
    return check && check->due[graph] > 0;
}

static void name_unchecked(cleat_program_check *check, const cleat_op *op) {
    char item[CLEAT_NAME];
    const size_t length = strlen(check->unchecked);
    snprintf(item, sizeof item, " %s,", op->name);
    if (!strstr(check->unchecked, item))
        snprintf(check->unchecked + length, sizeof check->unchecked - length, "%s", item);
}

static bool fits(const cleat_node *node) {
    for (int i = 0; i < node->n_in + node->n_out; ++i) {
        const cleat_tensor *tensor = i < node->n_in ? node->in[i] : node->out[i - node->n_in];
        if (tensor && cleat_tensor_bytes(tensor) > CLEAT_CHECKED_BYTES) return false;
    }
    return node->op->define != NULL;
}

/* Whether the node is compared; its key is then covered. */
static cleat_status take(cleat_program_check *check, size_t graph, size_t index, bool *compared, cleat_error *error) {
    const cleat_exec *exec = check->session->exec;
    const cleat_node *node = exec->plan->layouts[graph].graph->nodes[index];
    node_key key;
    *compared = false;
    if (!has_launches(exec, graph, index)) return CLEAT_OK;
    cleat_status status = key_of(exec, graph, index, &key, error);
    if (status || is_covered(check, &key)) return status;
    if (!fits(node)) {
        cleat_log(CLEAT_LOG_DEBUG, "self-check: %s is not compared: %s", node->name,
                  node->op->define ? "a tensor is too large" : "it has no definition");
        name_unchecked(check, node->op);
        return CLEAT_OK;
    }
    status = cleat_grow(&check->covered, check->count, &check->capacity, error);
    if (status) return status;
    check->covered[check->count++] = key;
    *compared = true;
    return CLEAT_OK;
}

static cleat_status run(cleat_program_check *check, size_t graph, cleat_error *error) {
    cleat_exec *exec = check->session->exec;
    const size_t nodes = exec->plan->layouts[graph].node_count;
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < nodes && !status; ++i) {
        bool compared;
        status = take(check, graph, i, &compared, error);
        if (!status && compared)
            status = cleat_check_node(exec, graph, i, &check->result, error);
        else if (!status)
            status = cleat_exec_run_nodes(exec, graph, i, i + 1, error);
    }
    return status;
}

/* The record of the type is what `cleat doctor` shows. */
static void save_records(cleat_program_check *check, size_t graph, double seconds) {
    const bool all = !*check->unchecked;
    char summary[384], path[PASSED_PATH], model[64];
    snprintf(summary, sizeof summary, "%lld elements of %lld operations: the worst at %.2g of its limit;%s%s %.2f s",
             (long long)check->result.elements, (long long)check->result.nodes, check->result.worst,
             all ? "" : " without a definition, or too large to be compared:", check->unchecked, seconds);
    cleat_log(check->reported && all ? CLEAT_LOG_DEBUG : CLEAT_LOG_INFO,
              "self-check of the device, on the run's own batch: %s (run.self_check)", summary);
    check->reported = true;
    check->incomplete |= !all;
    if (check->due[graph]) return;
    if (graph_path(check, graph, path, NULL) == CLEAT_OK) save_passed(path, summary);
    if (!is_update(check, graph) || check->incomplete) return;
    if (cleat_profile_get(check->session->profile, "model.type", model, sizeof model, NULL) == CLEAT_OK &&
        type_path(check->session->device, model, check->session->work->storage, path) == CLEAT_OK)
        save_passed(path, summary);
}

/* The learning rate of a first step, and a run's weight decay, may be 0. */
static cleat_status change_hyper(const cleat_session *session, cleat_error *error) {
    const cleat_tensor *hyper = session->work->hyper;
    const size_t graph = session->work->update.index;
    float values[HYPER_COUNT];
    if (!hyper || cleat_tensor_bytes(hyper) != (int64_t)sizeof values) return CLEAT_OK;
    cleat_status status = cleat_exec_read_unchecked(session->exec, graph, hyper, values, error);
    if (status) return status;
    if (values[HYPER_RATE] < 1e-3f) values[HYPER_RATE] = 1e-3f;
    if (values[HYPER_WEIGHT_DECAY] == 0) values[HYPER_WEIGHT_DECAY] = 0.1f;
    return cleat_exec_write_unchecked(session->exec, graph, hyper, values, error);
}

static cleat_status check_graph(cleat_program_check *check, size_t graph, cleat_saved_state *saved,
                                cleat_error *error) {
    cleat_session *session = check->session;
    const bool update = is_update(check, graph), infinite = update && check->due[graph] == 1;
    cleat_status status = cleat_exec_run_nodes(session->exec, graph, 0, 0, error); /* takes the upload */
    if (infinite)
        check->count = check->others; /* the nodes are compared again */
    else
        check->others = check->count;
    if (!status) status = cleat_saved_state_take(session, update, saved, error);
    if (!status) status = cleat_saved_state_disturb(session, update, infinite, saved, error);
    if (!status && update) status = change_hyper(session, error);
    if (!status && update && session->work->refresh.graph) status = run(check, session->work->refresh.index, error);
    if (!status) status = run(check, graph, error);
    return status;
}

cleat_status cleat_program_check_run(cleat_program_check *check, size_t graph, cleat_error *error) {
    const double start = cleat_seconds();
    cleat_saved_state saved = {0};
    cleat_error why = {0};
    check->result = (cleat_node_check){0};
    check->unchecked[0] = 0;
    cleat_status status = check_graph(check, graph, &saved, &why);
    const cleat_status restored = cleat_saved_state_restore(check->session, &saved, status ? NULL : &why);
    cleat_saved_state_free(&saved);
    --check->due[graph];
    if (status == CLEAT_ERR_MEMORY && !restored) {
        cleat_log(CLEAT_LOG_WARNING, "self-check: not all operations are checked: %s", why.text);
        check->due[graph] = 0;
        check->incomplete = true;
        return CLEAT_OK;
    }
    if (!status) status = restored;
    if (status && error) *error = why;
    if (!status) save_records(check, graph, cleat_seconds() - start);
    return status;
}

cleat_status cleat_program_check_batch(cleat_program_check *check, cleat_feed *feed, const cleat_work_graph *graph,
                                       const cleat_fed_batch *fed, cleat_error *error) {
    if (!cleat_program_check_is_due(check, graph->index)) return CLEAT_OK;
    cleat_status status = cleat_feed_upload(feed, graph, fed, error);
    return status ? status : cleat_program_check_run(check, graph->index, error);
}
