/* Writing GGUF files, version 3: the inverse of gguf_network.c and gguf_config.c. */
#include "weights/gguf_write.h"

#include "core/files.h"
#include "core/half.h"
#include "core/memory.h"
#include "platform/files.h"
#include "weights/gguf_network.h"
#include "weights/weights.h"
#include "json/member.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ALIGNMENT = 32, BLOCK = 32, PATH = 1400, KEY = 160 };

/* --- metadata ------------------------------------------------------------------------------------------------- */

static void add_bytes(cleat_string *to, uint64_t value, size_t size) {
    cleat_string_add_bytes(to, (const char *)&value, size);
}

static void add_words(cleat_string *to, const char *text) {
    add_bytes(to, strlen(text), 8);
    cleat_string_add_bytes(to, text, strlen(text));
}

static void begin_member(cleat_gguf_head *head, const char *key, cleat_gguf_kind kind) {
    ++head->members;
    add_words(&head->bytes, key);
    add_bytes(&head->bytes, kind, 4);
}

void cleat_gguf_add_text(cleat_gguf_head *head, const char *key, const char *text) {
    begin_member(head, key, CLEAT_GGUF_TEXT);
    add_words(&head->bytes, text);
}

void cleat_gguf_add_item(cleat_gguf_head *head, cleat_gguf_kind kind, double value) {
    const float real = (float)value;
    if (kind == CLEAT_GGUF_F32)
        cleat_string_add_bytes(&head->bytes, (const char *)&real, sizeof real);
    else
        add_bytes(&head->bytes, (uint64_t)(int64_t)value, kind == CLEAT_GGUF_BOOL ? 1 : 4);
}

void cleat_gguf_add_number(cleat_gguf_head *head, const char *key, cleat_gguf_kind kind, double value) {
    begin_member(head, key, kind);
    cleat_gguf_add_item(head, kind, value);
}

void cleat_gguf_add_array(cleat_gguf_head *head, const char *key, cleat_gguf_kind kind, size_t count) {
    begin_member(head, key, CLEAT_GGUF_ARRAY);
    add_bytes(&head->bytes, kind, 4);
    add_bytes(&head->bytes, count, 8);
}

void cleat_gguf_add_words(cleat_gguf_head *head, const char *text) {
    add_words(&head->bytes, text);
}

/* --- the file ------------------------------------------------------------------------------------------------- */

/* A tensor of the file. */
typedef struct place {
    char name[CLEAT_GGUF_NAME];
    const cleat_st_tensor *from; /* NULL: rope_freqs.weight */
    cleat_gguf_change change;
    cleat_gguf_type type;
    int rank;
    int64_t rows, columns; /* as stored */
    uint64_t offset, bytes;
} place;

typedef struct writer {
    const char *folder;
    cleat_weights *weights;
    cJSON *config;
    const cleat_gguf_architecture *architecture;
    cleat_gguf_type type;
    bool is_adapter;
    cleat_gguf_head head;
    place *items; /* [count] */
    size_t count, capacity;
    uint64_t bytes; /* of the data */
    float *factors; /* of rope_freqs.weight; NULL: there are none */
    cleat_file_writer file;
    cleat_error *error;
} writer;

static double number(const cJSON *object, const char *name, double fallback) {
    const double value = cleat_json_number(object, name);
    return isfinite(value) ? value : fallback;
}

static cleat_status unsupported(const writer *w, const char *what, const char *value) {
    return cleat_fail(w->error, CLEAT_ERR_NOT_SUPPORTED,
                      "%s: GGUF has no place for %s%.100s; --format hf exports every such network", w->folder, what,
                      value);
}

static cleat_status append(writer *w, place one) {
    if (one.type == CLEAT_GGUF_TYPE_Q8_0 && one.columns % BLOCK) one.type = CLEAT_GGUF_TYPE_F16;
    one.offset = w->bytes;
    one.bytes =
        (uint64_t)(one.rows * one.columns / cleat_gguf_block_values(one.type)) * cleat_gguf_block_bytes(one.type);
    w->bytes += (one.bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    cleat_status status = cleat_grow(&w->items, w->count, &w->capacity, w->error);
    if (!status) w->items[w->count++] = one;
    return status;
}

/* base_model.model.MODULE.lora_A.weight is the name of MODULE's weight, followed by .lora_a. */
static bool rename_adapter(const writer *w, const char *name, place *one) {
    static const char base[] = "base_model.model.", *const parts[] = {".lora_A.weight", ".lora_B.weight"};
    char module[CLEAT_GGUF_NAME];
    for (int i = 0; i < 2; ++i) {
        const char *end = strstr(name, parts[i]);
        if (!end || strncmp(name, base, sizeof base - 1) != 0) continue;
        const int size = snprintf(module, sizeof module, "%.*s.weight", (int)(end - name - (ptrdiff_t)sizeof base + 1),
                                  name + sizeof base - 1);
        if (size >= (int)sizeof module || !cleat_gguf_rename(w->architecture, module, true, one->name, &one->change) ||
            strlen(one->name) + sizeof ".lora_a" > sizeof one->name)
            return false;
        strcat(one->name, i ? ".lora_b" : ".lora_a");
        if (i == 0 || one->change != CLEAT_GGUF_PAIRED) one->change = CLEAT_GGUF_SAME;
        return true;
    }
    return false;
}

static cleat_status append_tensor(writer *w, const cleat_st_tensor *from) {
    const bool is_tied = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(w->config, "tie_word_embeddings"));
    place one = {.from = from, .type = CLEAT_GGUF_TYPE_F32, .rank = from->rank};
    if (is_tied && !w->is_adapter && strcmp(from->name, "lm_head.weight") == 0) return CLEAT_OK;
    const bool known = w->is_adapter ? rename_adapter(w, from->name, &one)
                                     : cleat_gguf_rename(w->architecture, from->name, true, one.name, &one.change);
    if (!known || from->rank < 1 || from->rank > 2) return unsupported(w, "the tensor ", from->name);
    if (from->rank == 2 && !w->is_adapter) one.type = w->type;
    one.rows = from->rank == 2 ? from->shape[0] : 1;
    one.columns = from->shape[from->rank - 1];
    if (one.change == CLEAT_GGUF_TRANSPOSED && from->rank == 2) {
        one.rows = from->shape[1];
        one.columns = from->shape[0];
    }
    return append(w, one);
}

/* --- values --------------------------------------------------------------------------------------------------- */

/* The heads of a paired tensor. */
static int64_t heads_of(const writer *w, const place *one) {
    const double all = number(w->config, "num_attention_heads", 1);
    return (int64_t)(strstr(one->name, "attn_k") ? number(w->config, "num_key_value_heads", all) : all);
}

/* Values in the order of the file; `from` in that of Hugging Face. */
static void rearrange(const writer *w, const place *one, const float *from, float *to) {
    const bool is_paired = one->change == CLEAT_GGUF_PAIRED;
    /* A paired vector, such as a bias, has a row for each value. */
    const int64_t rows = is_paired && one->rank == 1 ? one->columns : one->rows,
                  columns = one->rows * one->columns / rows;
    const int64_t width = is_paired ? rows / heads_of(w, one) : 1;
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t there = is_paired ? cleat_gguf_paired_row(row, width) : row;
        for (int64_t c = 0; c < columns; ++c)
            to[there * columns + c] =
                one->change == CLEAT_GGUF_TRANSPOSED ? from[c * rows + row] : from[row * columns + c];
    }
    for (int64_t i = 0; i < rows * columns && one->change == CLEAT_GGUF_PLUS_ONE; ++i) to[i] += 1;
}

static void pack_q8_0(const float *values, size_t blocks, uint8_t *bytes) {
    for (size_t i = 0; i < blocks; ++i, values += BLOCK, bytes += BLOCK + 2) {
        float largest = 0;
        uint16_t half;
        for (int k = 0; k < BLOCK; ++k) largest = fmaxf(largest, fabsf(values[k]));
        const float scale = largest / 127, inverse = scale != 0 ? 1 / scale : 0;
        cleat_to_f16(&scale, 1, &half);
        memcpy(bytes, &half, sizeof half);
        for (int k = 0; k < BLOCK; ++k) bytes[2 + k] = (uint8_t)(int8_t)roundf(values[k] * inverse);
    }
}

static void pack(cleat_gguf_type type, const float *values, size_t count, void *bytes) {
    if (type == CLEAT_GGUF_TYPE_F32) memcpy(bytes, values, count * sizeof *values);
    if (type == CLEAT_GGUF_TYPE_F16) cleat_to_f16(values, count, bytes);
    if (type == CLEAT_GGUF_TYPE_BF16) cleat_to_bf16(values, count, bytes);
    if (type == CLEAT_GGUF_TYPE_Q8_0) pack_q8_0(values, count / BLOCK, bytes);
}

static cleat_status write_item(writer *w, const place *one) {
    static const char zeros[ALIGNMENT] = {0};
    const size_t count = (size_t)(one->rows * one->columns);
    float *read = cleat_alloc(count, sizeof *read), *values = cleat_alloc(count, sizeof *values);
    char *bytes = cleat_alloc(one->bytes, 1);
    cleat_status status = CLEAT_OK;
    if (!read || !values || !bytes)
        status = cleat_fail(w->error, CLEAT_ERR_MEMORY, "%s: no memory for %s", w->folder, one->name);
    else if (one->from)
        status = cleat_weights_read(w->weights, one->from, read, w->error);
    else
        memcpy(read, w->factors, count * sizeof *read);
    if (!status) {
        rearrange(w, one, read, values);
        pack(one->type, values, count, bytes);
        status = cleat_file_writer_add(&w->file, bytes, one->bytes, w->error);
    }
    if (!status) status = cleat_file_writer_add(&w->file, zeros, (size_t)(-one->bytes % ALIGNMENT), w->error);
    cleat_free(read);
    cleat_free(values);
    cleat_free(bytes);
    return status;
}

/* --- what config.json has ------------------------------------------------------------------------------------- */

/* transformers 5 has rope_theta and the scaling in one object, of Gemma 3 for each type of layers. */
static const cJSON *rope_of(const writer *w, const char *name) {
    const cJSON *rope = cleat_json_member(w->config, "rope_parameters"),
                *full = cleat_json_member(rope, "full_attention");
    return full ? full : rope ? rope : cleat_json_member(w->config, name);
}

static cleat_status add_llama3(writer *w, const cJSON *scaling, double theta, int64_t count) {
    place one = {.name = "rope_freqs.weight", .type = CLEAT_GGUF_TYPE_F32, .rank = 1, .rows = 1, .columns = count};
    w->factors = cleat_alloc((size_t)count, sizeof *w->factors);
    if (!w->factors) return cleat_fail(w->error, CLEAT_ERR_MEMORY, "%s: out of memory", w->folder);
    for (int64_t i = 0; i < count; ++i)
        w->factors[i] = (float)cleat_gguf_llama3_factor(
            theta, i, count, number(scaling, "factor", 8), number(scaling, "low_freq_factor", 1),
            number(scaling, "high_freq_factor", 4), number(scaling, "original_max_position_embeddings", 8192));
    return append(w, one);
}

static cleat_status add_rotary(writer *w, double width) {
    char key[KEY];
    const char *name = w->architecture->there;
    const cJSON *scaling = rope_of(w, "rope_scaling");
    const double theta = number(rope_of(w, ""), "rope_theta", number(w->config, "rope_theta", 10000));
    const char *type = cleat_json_text(scaling, "rope_type");
    if (!type) type = cleat_json_text(scaling, "type");
    snprintf(key, sizeof key, "%s.rope.freq_base", name);
    if (!isfinite(cleat_json_number(w->config, "rope_theta")))
        cleat_gguf_add_number(&w->head, key, CLEAT_GGUF_F32, theta);
    snprintf(key, sizeof key, "%s.rope.dimension_count", name);
    cleat_gguf_add_number(&w->head, key, CLEAT_GGUF_U32, width);
    snprintf(key, sizeof key, "%s.attention.value_length", name);
    cleat_gguf_add_number(&w->head, key, CLEAT_GGUF_U32, width);
    if (!type || strcmp(type, "default") == 0) return CLEAT_OK;
    if (strcmp(type, "llama3") == 0) return add_llama3(w, scaling, theta, (int64_t)width / 2);
    if (strcmp(type, "linear") != 0) return unsupported(w, "rope_scaling of type ", type);
    snprintf(key, sizeof key, "%s.rope.scaling.type", name);
    cleat_gguf_add_text(&w->head, key, "linear");
    snprintf(key, sizeof key, "%s.rope.scaling.factor", name);
    cleat_gguf_add_number(&w->head, key, CLEAT_GGUF_F32, number(scaling, "factor", 1));
    return CLEAT_OK;
}

static cleat_status add_config(writer *w) {
    char key[KEY];
    const bool is_gpt2 = strcmp(w->architecture->there, "gpt2") == 0;
    for (const cleat_gguf_config_row *row = cleat_gguf_config_rows; row->there; ++row) {
        const char *here = is_gpt2 ? row->gpt2 : row->here;
        double value = here ? cleat_json_number(w->config, here) : NAN;
        if (here && strcmp(here, "n_inner") == 0 && isnan(value)) value = 4 * number(w->config, "n_embd", 0);
        if (here && strcmp(here, "head_dim") == 0 && isnan(value))
            value = number(w->config, "hidden_size", 0) / number(w->config, "num_attention_heads", 1);
        if (here && isnan(value) && row->is_required)
            return cleat_fail(w->error, CLEAT_ERR_FORMAT, "%s/config.json: has no '%s'", w->folder, here);
        snprintf(key, sizeof key, "%s.%s", w->architecture->there, row->there);
        if (!isnan(value)) cleat_gguf_add_number(&w->head, key, row->is_real ? CLEAT_GGUF_F32 : CLEAT_GGUF_U32, value);
    }
    snprintf(key, sizeof key, "%s.vocab_size", w->architecture->there);
    cleat_gguf_add_number(&w->head, key, CLEAT_GGUF_U32, number(w->config, "vocab_size", 0));
    const double heads = number(w->config, "num_attention_heads", 1);
    return is_gpt2 ? CLEAT_OK
                   : add_rotary(w, number(w->config, "head_dim", number(w->config, "hidden_size", 0) / heads));
}

static cleat_status add_model(writer *w) {
    static const int file_types[CLEAT_GGUF_TYPES] = {
        [CLEAT_GGUF_TYPE_F16] = 1, [CLEAT_GGUF_TYPE_Q8_0] = 7, [CLEAT_GGUF_TYPE_BF16] = 32};
    cleat_gguf_add_text(&w->head, "general.type", "model");
    cleat_gguf_add_number(&w->head, "general.file_type", CLEAT_GGUF_U32, file_types[w->type]);
    cleat_gguf_add_number(&w->head, "general.quantization_version", CLEAT_GGUF_U32, 2);
    cleat_status status = add_config(w);
    if (status) return status;
    return cleat_gguf_add_tokenizer(&w->head, w->folder, w->config, (size_t)number(w->config, "vocab_size", 0),
                                    w->error);
}

static cleat_status add_adapters(writer *w) {
    cJSON *about = NULL;
    cleat_status status = cleat_weights_read_json(w->weights, "adapter_config.json", &about, w->error);
    const double alpha = cleat_json_number(about, "lora_alpha");
    if (!status && !isfinite(alpha))
        status = cleat_fail(w->error, CLEAT_ERR_FORMAT, "%s/adapter_config.json: has no 'lora_alpha'", w->folder);
    cleat_gguf_add_text(&w->head, "general.type", "adapter");
    cleat_gguf_add_text(&w->head, "adapter.type", "lora");
    cleat_gguf_add_number(&w->head, "adapter.lora.alpha", CLEAT_GGUF_F32, alpha);
    cJSON_Delete(about);
    return status;
}

/* --- the conversion ------------------------------------------------------------------------------------------- */

static cleat_status write_head(writer *w) {
    cleat_string head = {0};
    cleat_string_add(&head, "GGUF");
    add_bytes(&head, 3, 4);
    add_bytes(&head, w->count, 8);
    add_bytes(&head, w->head.members, 8);
    cleat_string_add_bytes(&head, w->head.bytes.data, w->head.bytes.size);
    for (size_t i = 0; i < w->count; ++i) {
        const place *one = &w->items[i];
        add_words(&head, one->name);
        add_bytes(&head, (uint64_t)one->rank, 4);
        add_bytes(&head, (uint64_t)one->columns, 8);
        if (one->rank == 2) add_bytes(&head, (uint64_t)one->rows, 8);
        add_bytes(&head, one->type, 4);
        add_bytes(&head, one->offset, 8);
    }
    while (head.size % ALIGNMENT && !head.failed) add_bytes(&head, 0, 1);
    cleat_status status = head.failed || w->head.bytes.failed
                              ? cleat_fail(w->error, CLEAT_ERR_MEMORY, "%s: no memory for the metadata", w->folder)
                              : cleat_file_writer_add(&w->file, head.data, head.size, w->error);
    cleat_string_free(&head);
    return status;
}

static cleat_status convert(writer *w, const char *path) {
    const char *type = cleat_json_text(w->config, "model_type");
    w->architecture = type ? cleat_gguf_architecture_find(type, false) : NULL;
    if (!w->architecture) return unsupported(w, "networks of type ", type ? type : "?");
    if (strcmp(w->architecture->there, "llama") == 0 && cleat_json_member(w->config, "sliding_window"))
        return unsupported(w, "a sliding window of ", type);
    cleat_gguf_add_text(&w->head, "general.architecture", w->architecture->there);
    cleat_status status = w->is_adapter ? add_adapters(w) : add_model(w);
    for (size_t i = 0; i < cleat_weights_count(w->weights) && !status; ++i)
        status = append_tensor(w, cleat_weights_at(w->weights, i));
    if (!status) status = cleat_file_writer_open(&w->file, path, false, w->error);
    if (status) return status;
    status = write_head(w);
    for (size_t i = 0; i < w->count && !status; ++i) status = write_item(w, &w->items[i]);
    return cleat_file_writer_close(&w->file, status, NULL, w->error);
}

/* Members of config.json for which GGUF has no key have the values that llama.cpp takes, or the file is refused. */
static cleat_status check_config(const writer *w, const char *path) {
    cleat_gguf_network read = {0};
    const cJSON *item;
    cleat_status status = cleat_gguf_network_open(path, &read, w->error);
    cJSON_ArrayForEach(item, read.config) {
        const cJSON *wanted = cleat_json_member(w->config, item->string);
        const bool numbers = cJSON_IsNumber(item) && cJSON_IsNumber(wanted);
        const double size = numbers ? fabs(wanted->valuedouble) : 0;
        if (status || !wanted || cJSON_IsObject(wanted) || strstr(item->string, "_token_id") ||
            strcmp(item->string, "model_type") == 0)
            continue;
        if (numbers ? fabs(item->valuedouble - wanted->valuedouble) > 1e-6 * size : !cJSON_Compare(item, wanted, true))
            status = unsupported(w, "its value of ", item->string);
    }
    cleat_gguf_network_close(&read);
    if (status) remove(path);
    return status;
}

static cleat_status write_file(writer *w, const char *path, size_t *count) {
    const char *name = w->is_adapter ? "adapter_model.safetensors" : "model.safetensors";
    cleat_status status = cleat_weights_open_file(w->folder, name, &w->weights, w->error);
    if (!status) status = cleat_json_read_file(w->folder, "config.json", &w->config, w->error);
    if (!status) status = convert(w, path);
    if (!status && !w->is_adapter) status = check_config(w, path);
    if (!status) *count = w->count;
    cleat_string_free(&w->head.bytes);
    cleat_weights_close(w->weights);
    cJSON_Delete(w->config);
    cleat_free(w->items);
    cleat_free(w->factors);
    return status;
}

cleat_status cleat_gguf_write(const char *folder, cleat_gguf_type type, const char *path, size_t *count,
                              cleat_error *error) {
    writer w = {.folder = folder, .type = type, .error = error};
    return write_file(&w, path, count);
}

cleat_status cleat_gguf_write_adapters(const char *folder, const char *path, size_t *count, cleat_error *error) {
    writer w = {.folder = folder, .type = CLEAT_GGUF_TYPE_F32, .is_adapter = true, .error = error};
    return write_file(&w, path, count);
}
