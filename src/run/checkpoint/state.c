/* state.json: the training state as text that preserves every bit and detects damage.
 * {"state":{...},"hash":"32 hexadecimal digits: hash of the text of {...}"} */
#include "checkpoint/state.h"

#include "core/files.h"
#include "core/json.h"
#include "core/string.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT = 2 };

static const char opening[] = "{\"state\":";
static const char middle[] = ",\"hash\":\"";
static const char closing[] = "\"}\n";

/* --- writing -------------------------------------------------------------------------------------------------- */

static void add_integer(cleat_string *text, const char *name, int64_t value) {
    cleat_string_add(text, "  \"%s\": %" PRId64 ",\n", name, value);
}

/* {"value": decimal, for people, "bits": exact}. */
static void add_real(cleat_string *text, double value) {
    char digits[32] = "null";
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isfinite(value)) cleat_number_print(value, digits);
    cleat_string_add(text, "{\"value\": %s, \"bits\": \"%016" PRIx64 "\"}", digits, bits);
}

static void add_files(cleat_string *text, const cleat_checkpoint_files *files) {
    cleat_string_add(text, "  \"files\": {");
    for (size_t i = 0; i < files->count; ++i) {
        cleat_string_add(text, "%s\n    ", i ? "," : "");
        cleat_json_add_string(text, files->items[i].name);
        cleat_string_add(text, ": {\"size\": %zu, \"hash\": \"%s\"}", files->items[i].size, files->items[i].hash);
    }
    cleat_string_add(text, "}\n");
}

/* State of f16. A run that continues in another precision keeps its count of skipped steps. */
static void add_loss_scale(cleat_string *text, const cleat_train_state *state) {
    const bool scaled = state->loss_scale > 0;
    if (scaled) {
        cleat_string_add(text, "  \"loss_scale\": ");
        add_real(text, state->loss_scale);
        cleat_string_add(text, ",\n");
        add_integer(text, "clean_steps", state->clean_steps);
    }
    if (scaled || state->skipped_steps > 0) add_integer(text, "skipped_steps", state->skipped_steps);
}

static void add_micro_batches(cleat_string *text, const cleat_train_state *state) {
    if (state->n_buckets == 0) return;
    cleat_string_add(text, "  \"micro_batch_sizes\": [");
    for (int64_t i = 0; i < state->n_buckets; ++i)
        cleat_string_add(text, "%s%" PRId64, i ? ", " : "", state->micro_batch_sizes[i]);
    cleat_string_add(text, "],\n");
}

/* Checkpoints of earlier versions have none, nor do runs on synthetic samples. */
static void add_data(cleat_string *text, const cleat_data_fingerprint *data) {
    int64_t samples = 0;
    for (int s = 0; s < CLEAT_SPLITS; ++s) samples += data->counts[s];
    if (samples == 0) return;
    cleat_string_add(text, "  \"data\": {");
    for (int s = 0; s < CLEAT_SPLITS; ++s)
        cleat_string_add(text, "\"%s\": %" PRId64 ", ", cleat_split_name((cleat_split)s), data->counts[s]);
    cleat_string_add(text, "\"names\": \"%s\", \"content\": \"%s\", \"file\": \"%s\"},\n", data->names, data->content,
                     data->file);
}

static void add_state(cleat_string *text, const cleat_train_state *state, const cleat_checkpoint_files *files) {
    cleat_string_add(text, "{\n");
    add_integer(text, "format", FORMAT);
    add_integer(text, "epoch", state->epoch);
    add_integer(text, "step", state->step);
    add_integer(text, "position", state->position);
    if (state->evaluation_is_due) cleat_string_add(text, "  \"evaluation_is_due\": true,\n");
    add_integer(text, "max_length", state->max_length);
    cleat_string_add(text, "  \"seed\": \"%" PRIu64 "\",\n", state->seed);
    cleat_string_add(text, "  \"has_best\": %s,\n  \"best_metric\": ", state->has_best ? "true" : "false");
    add_real(text, state->best_metric);
    cleat_string_add(text, ",\n");
    add_integer(text, "best_step", state->best_step);
    add_integer(text, "stale_evaluations", state->stale_evaluations);
    add_integer(text, "averaged_epochs", state->averaged_epochs);
    cleat_string_add(text, "  \"time_used\": ");
    add_real(text, state->time_used);
    cleat_string_add(text, ",\n  \"next_seconds\": ");
    add_real(text, state->next_seconds);
    cleat_string_add(text, ",\n");
    add_integer(text, "epochs", state->epochs);
    add_integer(text, "metrics_records", state->metrics_records);
    add_loss_scale(text, state);
    add_micro_batches(text, state);
    add_data(text, &state->data);
    cleat_string_add(text, "  \"profile_hash\": ");
    cleat_json_add_string(text, state->profile_hash);
    cleat_string_add(text, ",\n");
    add_files(text, files);
    cleat_string_add(text, "}");
}

cleat_status cleat_state_encode(const cleat_train_state *state, const cleat_checkpoint_files *files, char **text,
                                cleat_error *error) {
    cleat_string all = {0};
    char hash[33] = "";
    size_t start = sizeof opening - 1;
    cleat_string_add(&all, "%s", opening);
    add_state(&all, state, files);
    if (!all.failed) cleat_hash_text(all.data + start, all.size - start, hash);
    cleat_string_add(&all, "%s%s%s", middle, hash, closing);
    return cleat_string_detach(&all, text, error);
}

/* --- reading -------------------------------------------------------------------------------------------------- */

/* Accepts a JSON number that is an integer >= 0. */
static bool is_integer(const cJSON *item, int64_t *value) {
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= 9007199254740992.0)) return false;
    *value = (int64_t)item->valuedouble;
    return item->valuedouble == (double)*value;
}

static bool get_integer(const cJSON *from, const char *name, int64_t *value) {
    return is_integer(cJSON_GetObjectItemCaseSensitive(from, name), value);
}

static bool get_text(const cJSON *from, const char *name, char *text, size_t size) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, name);
    if (!cJSON_IsString(item) || strlen(item->valuestring) >= size) return false;
    snprintf(text, size, "%s", item->valuestring);
    return true;
}

static bool get_u64(const cJSON *from, const char *name, int base, uint64_t *value) {
    char text[32], *end;
    if (!get_text(from, name, text, sizeof text) || !*text) return false;
    *value = strtoull(text, &end, base);
    return *end == 0;
}

static bool get_bits(const cJSON *item, double *value) {
    uint64_t bits;
    if (!get_u64(item, "bits", 16, &bits)) return false;
    memcpy(value, &bits, sizeof bits);
    return true;
}

static bool get_real(const cJSON *from, const char *name, double *value) {
    return get_bits(cJSON_GetObjectItemCaseSensitive(from, name), value);
}

static bool get_file(const cJSON *from, cleat_checkpoint_file *file) {
    int64_t size;
    if (strlen(from->string) >= sizeof file->name || strchr(from->string, '/')) return false;
    if (!get_integer(from, "size", &size) || !get_text(from, "hash", file->hash, sizeof file->hash)) return false;
    snprintf(file->name, sizeof file->name, "%s", from->string);
    file->size = (size_t)size;
    return true;
}

static bool get_files(const cJSON *from, cleat_checkpoint_files *files) {
    const cJSON *item, *all = cJSON_GetObjectItemCaseSensitive(from, "files");
    files->count = 0;
    if (!cJSON_IsObject(all)) return false;
    cJSON_ArrayForEach(item, all) {
        if (files->count == CLEAT_CHECKPOINT_FILES || !get_file(item, &files->items[files->count++])) return false;
    }
    return cleat_checkpoint_find(files, CLEAT_MODEL_FILE) && cleat_checkpoint_find(files, CLEAT_OPTIM_FILE);
}

static bool get_loss_scale(const cJSON *from, cleat_train_state *state) {
    const bool scaled = cJSON_HasObjectItem(from, "loss_scale");
    if (scaled && !(get_real(from, "loss_scale", &state->loss_scale) && state->loss_scale > 0 &&
                    get_integer(from, "clean_steps", &state->clean_steps)))
        return false;
    if (!scaled && !cJSON_HasObjectItem(from, "skipped_steps")) return true;
    return get_integer(from, "skipped_steps", &state->skipped_steps);
}

/* Checkpoints of earlier versions have no micro-batch sizes. */
static bool get_micro_batches(const cJSON *from, cleat_train_state *state) {
    const cJSON *item, *all = cJSON_GetObjectItemCaseSensitive(from, "micro_batch_sizes");
    if (!all) return true;
    if (!cJSON_IsArray(all)) return false;
    cJSON_ArrayForEach(item, all) {
        if (state->n_buckets == CLEAT_STATE_BUCKETS) return false;
        if (!is_integer(item, &state->micro_batch_sizes[state->n_buckets++])) return false;
    }
    return true;
}

static bool get_data(const cJSON *from, cleat_data_fingerprint *data) {
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(from, "data");
    if (!all) return true;
    for (int s = 0; s < CLEAT_SPLITS; ++s)
        if (!get_integer(all, cleat_split_name((cleat_split)s), &data->counts[s])) return false;
    return get_text(all, "names", data->names, sizeof data->names) &&
           get_text(all, "content", data->content, sizeof data->content) &&
           get_text(all, "file", data->file, sizeof data->file);
}

static bool get_state(const cJSON *from, cleat_train_state *state, cleat_checkpoint_files *files) {
    const cJSON *has_best = cJSON_GetObjectItemCaseSensitive(from, "has_best");
    state->has_best = cJSON_IsTrue(has_best);
    state->evaluation_is_due = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(from, "evaluation_is_due"));
    return cJSON_IsBool(has_best) && get_integer(from, "epoch", &state->epoch) &&
           get_integer(from, "step", &state->step) && get_integer(from, "position", &state->position) &&
           get_integer(from, "max_length", &state->max_length) && get_u64(from, "seed", 10, &state->seed) &&
           get_real(from, "best_metric", &state->best_metric) && get_integer(from, "best_step", &state->best_step) &&
           get_integer(from, "stale_evaluations", &state->stale_evaluations) &&
           get_integer(from, "averaged_epochs", &state->averaged_epochs) &&
           get_real(from, "time_used", &state->time_used) && get_real(from, "next_seconds", &state->next_seconds) &&
           get_integer(from, "epochs", &state->epochs) &&
           get_integer(from, "metrics_records", &state->metrics_records) && get_loss_scale(from, state) &&
           get_micro_batches(from, state) && get_data(from, &state->data) &&
           get_text(from, "profile_hash", state->profile_hash, sizeof state->profile_hash) && get_files(from, files);
}

/* Finds the text between `opening` and `middle`, if the file has the written layout and its hash matches. */
static bool find_intact(const char *text, size_t size, const char **start, size_t *length) {
    size_t head = sizeof opening - 1, tail = sizeof middle - 1 + 32 + sizeof closing - 1;
    char hash[33];
    if (size < head + tail || memcmp(text, opening, head) != 0) return false;
    *start = text + head;
    *length = size - head - tail;
    const char *after = *start + *length;
    cleat_hash_text(*start, *length, hash);
    return memcmp(after, middle, sizeof middle - 1) == 0 && memcmp(after + sizeof middle - 1, hash, 32) == 0 &&
           memcmp(after + sizeof middle - 1 + 32, closing, sizeof closing - 1) == 0;
}

cleat_status cleat_state_decode(const char *path, const char *text, size_t size, cleat_train_state *state,
                                cleat_checkpoint_files *files, cleat_error *error) {
    const char *start;
    size_t length;
    int64_t format;
    cleat_train_state read = {0};
    if (!find_intact(text, size, &start, &length))
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: damaged file (its hash does not match its text)", path);
    cJSON *json = cJSON_ParseWithLength(start, length);
    const bool known = get_integer(json, "format", &format), good = get_state(json, &read, files);
    cJSON_Delete(json);
    if (known && format != FORMAT)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                          "%s: written by %s version of cleat (format %lld; this one, " CLEAT_VERSION
                          ", reads %d): continue with that version, or move this checkpoint out of its run folder",
                          path, format > FORMAT ? "a newer" : "an older", (long long)format, FORMAT);
    if (!good)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: not a state of this version: fields are missing or wrong",
                          path);
    *state = read;
    return CLEAT_OK;
}
