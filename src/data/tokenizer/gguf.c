/* The tokenizer in the metadata of a GGUF file. */
#include "tokenizer/tokenizer.h"

#include "core/gguf.h"
#include "core/memory.h"

#include <string.h>

typedef struct reader {
    const cleat_gguf *file;
    cleat_tokenizer_metadata made;
    cleat_text_view *pieces, *merges;
    float *scores;
    int32_t *types;
    cleat_error *error;
} reader;

static cleat_status no_memory(const reader *r) {
    return cleat_fail(r->error, CLEAT_ERR_MEMORY, "%s: no memory for its tokenizer", cleat_gguf_path(r->file));
}

static cleat_status read_texts(const reader *r, const char *key, cleat_text_view **texts, size_t *count) {
    const cleat_gguf_member *member;
    cleat_status status = cleat_gguf_expect(r->file, key, CLEAT_GGUF_TEXTS, &member, r->error);
    if (status || !member) return status;
    *texts = cleat_alloc(member->count, sizeof **texts);
    if (!*texts) return no_memory(r);
    *count = member->count;
    for (size_t i = 0; i < member->count; ++i)
        (*texts)[i] = (cleat_text_view){member->texts[i].data, member->texts[i].size};
    return CLEAT_OK;
}

/* One of floats and integers, both [tokens], is wanted; neither is set if there is no such member. */
static cleat_status read_numbers(const reader *r, const char *key, float **floats, int32_t **integers) {
    const cleat_gguf_member *member;
    cleat_status status = cleat_gguf_expect(r->file, key, CLEAT_GGUF_NUMBERS, &member, r->error);
    if (status || !member) return status;
    if (member->count != r->made.count)
        return cleat_fail(r->error, CLEAT_ERR_FORMAT, "%s: %s has %zu items for %zu tokens; convert the model again",
                          cleat_gguf_path(r->file), key, member->count, r->made.count);
    if (floats) *floats = cleat_alloc(member->count, sizeof **floats);
    if (integers) *integers = cleat_alloc(member->count, sizeof **integers);
    if (floats ? !*floats : !*integers) return no_memory(r);
    for (size_t i = 0; i < member->count; ++i) {
        const double value = cleat_gguf_number(member, i);
        if (floats) (*floats)[i] = (float)value;
        if (integers) (*integers)[i] = value >= 0 && value <= 1 << 20 ? (int32_t)value : 0;
    }
    return CLEAT_OK;
}

static const char *find_text(const reader *r, const char *key) {
    const cleat_gguf_member *member = cleat_gguf_find(r->file, key);
    return member && member->texts && !member->is_array ? member->texts[0].data : NULL;
}

/* A whole number that is not negative; -1: there is none. */
static int32_t find_id(const reader *r, const char *key) {
    const double value = cleat_gguf_number(cleat_gguf_find(r->file, key), 0);
    return value >= 0 && value <= INT32_MAX ? (int32_t)value : -1;
}

static cleat_status read_metadata(reader *r) {
    const char *model = find_text(r, "tokenizer.ggml.model");
    cleat_tokenizer_metadata *made = &r->made;
    if (!model || (strcmp(model, "gpt2") != 0 && strcmp(model, "llama") != 0))
        return cleat_fail(r->error, CLEAT_ERR_NOT_SUPPORTED,
                          "%s: tokenizer.ggml.model is '%.40s'; gpt2 and llama are supported; set data.vocabulary to "
                          "the folder of another tokenizer",
                          cleat_gguf_path(r->file), model ? model : "");
    cleat_status status = read_texts(r, "tokenizer.ggml.tokens", &r->pieces, &made->count);
    if (!status) status = read_texts(r, "tokenizer.ggml.merges", &r->merges, &made->n_merges);
    if (!status) status = read_numbers(r, "tokenizer.ggml.scores", &r->scores, NULL);
    if (!status) status = read_numbers(r, "tokenizer.ggml.token_type", NULL, &r->types);
    made->is_sentencepiece = strcmp(model, "llama") == 0;
    made->pre = find_text(r, "tokenizer.ggml.pre");
    made->chat_template = find_text(r, "tokenizer.chat_template");
    made->pieces = r->pieces;
    made->merges = r->merges;
    made->scores = r->scores;
    made->types = r->types;
    made->bos = find_id(r, "tokenizer.ggml.bos_token_id");
    made->eos = find_id(r, "tokenizer.ggml.eos_token_id");
    made->eot = find_id(r, "tokenizer.ggml.eot_token_id");
    made->unk = find_id(r, "tokenizer.ggml.unknown_token_id");
    made->pad = find_id(r, "tokenizer.ggml.padding_token_id");
    made->add_bos = find_id(r, "tokenizer.ggml.add_bos_token");
    made->add_eos = find_id(r, "tokenizer.ggml.add_eos_token");
    made->add_space_prefix = find_id(r, "tokenizer.ggml.add_space_prefix");
    return status;
}

cleat_status cleat_tokenizer_open_gguf(const char *path, cleat_tokenizer **tokenizer, cleat_error *error) {
    cleat_gguf *file = NULL;
    cleat_status status = cleat_gguf_open(path, &file, error);
    if (status) return status;
    reader r = {.file = file, .error = error};
    status = read_metadata(&r);
    if (!status) status = cleat_tokenizer_from_metadata(&r.made, path, tokenizer, error);
    cleat_free(r.pieces);
    cleat_free(r.merges);
    cleat_free(r.scores);
    cleat_free(r.types);
    cleat_gguf_close(file);
    return status;
}
