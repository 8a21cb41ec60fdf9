/* The checkpoints of a run: names, pointers, and fields of state.json. Hashes are shown, not checked. */
#include "history/history.h"

#include "core/files.h"
#include "core/memory.h"
#include "json/member.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_checkpoint(const char *name) {
    long long epoch, step;
    return sscanf(name, "ckpt-E%lld-S%lld", &epoch, &step) == 2 && strlen(name) < 64;
}

/* A number, or that of {"value": number}. */
static double number_of(const cJSON *from, const char *name) {
    const cJSON *item = cleat_json_member(from, name);
    return cJSON_IsObject(item) ? cleat_json_number(item, "value") : cleat_json_number(from, name);
}

static void read_state(const char *text, cleat_history_checkpoint *checkpoint) {
    cJSON *json = cJSON_Parse(text);
    const cJSON *state = cleat_json_member(json, "state");
    const cJSON *model = cleat_json_member(cleat_json_member(state, "files"), "model.safetensors");
    const char *hash = cleat_json_text(model, "hash");
    if (hash) snprintf(checkpoint->model_hash, sizeof checkpoint->model_hash, "%s", hash);
    checkpoint->model_bytes = number_of(model, "size");
    if (cJSON_IsTrue(cleat_json_member(state, "has_best"))) {
        checkpoint->best_metric = number_of(state, "best_metric");
        checkpoint->best_step = number_of(state, "best_step");
    }
    checkpoint->time_used = number_of(state, "time_used");
    cJSON_Delete(json);
}

static cleat_status read_checkpoint(const cleat_history *history, const char *name,
                                    cleat_history_checkpoint *checkpoint, cleat_error *error) {
    char path[CLEAT_FILE_PATH], *text = NULL;
    size_t size;
    long long epoch = 0, step = 0;
    sscanf(name, "ckpt-E%lld-S%lld", &epoch, &step);
    *checkpoint = (cleat_history_checkpoint){
        .epoch = epoch, .step = step, .model_bytes = NAN, .best_metric = NAN, .best_step = NAN, .time_used = NAN};
    snprintf(checkpoint->name, sizeof checkpoint->name, "%s", name);
    snprintf(path, sizeof path, "%s/%s/state.json", history->folder, name);
    cleat_status status = cleat_history_text(path, &text, &size, error);
    if (text) read_state(text, checkpoint);
    cleat_free(text);
    return status;
}

/* The name in the file RUN/pointer; "" if there is none. */
static cleat_status read_pointer(const cleat_history *history, const char *pointer, char name[64], cleat_error *error) {
    char path[CLEAT_FILE_PATH], *text = NULL;
    size_t size;
    name[0] = 0;
    snprintf(path, sizeof path, "%s/%s", history->folder, pointer);
    cleat_status status = cleat_history_text(path, &text, &size, error);
    if (text) snprintf(name, 64, "%.*s", (int)strcspn(text, "\r\n"), text);
    cleat_free(text);
    return status;
}

static int by_step(const void *a, const void *b) {
    const cleat_history_checkpoint *x = a, *y = b;
    return x->step != y->step ? (x->step < y->step ? -1 : 1) : strcmp(x->name, y->name);
}

cleat_status cleat_history_read_checkpoints(cleat_history *history, cleat_error *error) {
    cleat_name_list listing = {0};
    char best[64], last[64];
    cleat_status status = cleat_listing_read(history->folder, is_checkpoint, &listing, error);
    if (!status) status = read_pointer(history, "best", best, error);
    if (!status) status = read_pointer(history, "last", last, error);
    if (!status && listing.count) {
        history->checkpoints = cleat_alloc(listing.count, sizeof *history->checkpoints);
        if (!history->checkpoints) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a list of checkpoints");
    }
    for (size_t i = 0; i < listing.count && !status; ++i) {
        cleat_history_checkpoint *checkpoint = &history->checkpoints[i];
        status = read_checkpoint(history, listing.names[i], checkpoint, error);
        checkpoint->is_best = strcmp(checkpoint->name, best) == 0;
        checkpoint->is_last = strcmp(checkpoint->name, last) == 0;
        history->n_checkpoints = i + 1;
    }
    if (!status && history->n_checkpoints)
        qsort(history->checkpoints, history->n_checkpoints, sizeof *history->checkpoints, by_step);
    cleat_name_list_free(&listing);
    return status;
}
