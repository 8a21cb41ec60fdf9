/* The tokenizer of a GGUF file: its members tokenizer.ggml.* (docs/gguf.md of ggml). */
#include "core/memory.h"
#include "models/causal_lm.h"

#include <math.h>
#include <string.h>

/* Arrays as the tokenizer takes them. */
typedef struct arrays {
    cleat_text_view *pieces, *merges;
    float *scores;
    int32_t *types;
} arrays;

static void free_arrays(arrays *a) {
    cleat_free(a->pieces);
    cleat_free(a->merges);
    cleat_free(a->scores);
    cleat_free(a->types);
}

static cleat_status no_memory(const cleat_gguf *file, cleat_error *error) {
    return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the tokenizer", cleat_gguf_path(file));
}

static cleat_status read_texts(const cleat_gguf *file, const char *key, cleat_text_view **views, size_t *count,
                               cleat_error *error) {
    const cleat_gguf_member *member;
    cleat_status status = cleat_gguf_expect(file, key, CLEAT_GGUF_TEXTS, &member, error);
    if (status || !member) return status;
    *views = cleat_alloc(member->count + 1, sizeof **views);
    if (!*views) return no_memory(file, error);
    for (size_t i = 0; i < member->count; ++i)
        (*views)[i] = (cleat_text_view){member->texts[i].data, member->texts[i].size};
    *count = member->count;
    return CLEAT_OK;
}

/* Numbers of the tokens, if there are as many as tokens. */
static cleat_status read_numbers(const cleat_gguf *file, const char *key, size_t count, float **scores, int32_t **types,
                                 cleat_error *error) {
    const cleat_gguf_member *member;
    cleat_status status = cleat_gguf_expect(file, key, CLEAT_GGUF_NUMBERS, &member, error);
    if (status || !member) return status;
    if (member->count != count)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: %s has %zu values for %zu tokens; download the file again",
                          cleat_gguf_path(file), key, member->count, count);
    if (scores) *scores = cleat_alloc(count + 1, sizeof **scores);
    if (types) *types = cleat_alloc(count + 1, sizeof **types);
    if (scores ? !*scores : !*types) return no_memory(file, error);
    for (size_t i = 0; i < count; ++i) {
        const double value = cleat_gguf_number(member, i);
        if (scores)
            (*scores)[i] = (float)value;
        else
            (*types)[i] = value >= 0 && value <= INT32_MAX ? (int32_t)value : -1;
    }
    return CLEAT_OK;
}

static cleat_status read_text(const cleat_gguf *file, const char *key, const char **text, cleat_error *error) {
    const cleat_gguf_member *member;
    const cleat_status status = cleat_gguf_expect(file, key, CLEAT_GGUF_ONE_TEXT, &member, error);
    *text = !status && member ? member->texts[0].data : NULL;
    return status;
}

/* A whole number; -1: there is none. */
static cleat_status read_id(const cleat_gguf *file, const char *key, int32_t *id, cleat_error *error) {
    const cleat_gguf_member *member;
    const cleat_status status = cleat_gguf_expect(file, key, CLEAT_GGUF_ONE_NUMBER, &member, error);
    const double value = status ? NAN : cleat_gguf_number(member, 0);
    *id = value >= 0 && value <= INT32_MAX ? (int32_t)value : -1;
    return status;
}

static cleat_status read_metadata(const cleat_gguf *file, arrays *a, cleat_tokenizer_metadata *m, cleat_error *error) {
    const char *model = NULL;
    int32_t flags[3];
    struct {
        const char *key;
        int32_t *id;
    } numbers[] = {{"tokenizer.ggml.bos_token_id", &m->bos},      {"tokenizer.ggml.eos_token_id", &m->eos},
                   {"tokenizer.ggml.unknown_token_id", &m->unk},  {"tokenizer.ggml.padding_token_id", &m->pad},
                   {"tokenizer.ggml.add_bos_token", &flags[0]},   {"tokenizer.ggml.add_eos_token", &flags[1]},
                   {"tokenizer.ggml.add_space_prefix", &flags[2]}};
    cleat_status status = read_text(file, "tokenizer.ggml.model", &model, error);
    if (!status && (!model || (strcmp(model, "gpt2") != 0 && strcmp(model, "llama") != 0)))
        status = cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                            "%s: tokenizer.ggml.model is %.60s; gpt2 and llama are supported; set data.vocabulary to "
                            "the folder of another tokenizer",
                            cleat_gguf_path(file), model ? model : "missing");
    if (!status) status = read_text(file, "tokenizer.ggml.pre", &m->pre, error);
    if (!status) status = read_text(file, "tokenizer.chat_template", &m->chat_template, error);
    if (!status) status = read_texts(file, "tokenizer.ggml.tokens", &a->pieces, &m->count, error);
    if (!status) status = read_texts(file, "tokenizer.ggml.merges", &a->merges, &m->n_merges, error);
    if (!status) status = read_numbers(file, "tokenizer.ggml.scores", m->count, &a->scores, NULL, error);
    if (!status) status = read_numbers(file, "tokenizer.ggml.token_type", m->count, NULL, &a->types, error);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !status; ++i)
        status = read_id(file, numbers[i].key, numbers[i].id, error);
    if (status) return status;
    m->is_sentencepiece = strcmp(model, "llama") == 0;
    m->pieces = a->pieces;
    m->merges = a->merges;
    m->scores = a->scores;
    m->types = a->types;
    m->add_bos = flags[0];
    m->add_eos = flags[1];
    m->add_space_prefix = flags[2];
    return CLEAT_OK;
}

/* The text of a token; NULL: no such token. */
static const char *text_of(const cleat_tokenizer_metadata *m, int32_t id) {
    return id >= 0 && (size_t)id < m->count ? m->pieces[id].data : NULL;
}

cleat_status cleat_causal_gguf_tokenizer(const cleat_gguf *file, cleat_causal_options *options,
                                         cleat_tokenizer **tokenizer, cleat_error *error) {
    cleat_tokenizer_metadata metadata = {.count = 0};
    arrays a = {NULL};
    cleat_status status = read_metadata(file, &a, &metadata, error);
    if (!status) status = cleat_tokenizer_from_metadata(&metadata, cleat_gguf_path(file), tokenizer, error);
    if (!status) {
        options->chat_template = metadata.chat_template;
        options->bos_token = text_of(&metadata, metadata.bos);
        options->eos_token = text_of(&metadata, metadata.eos);
    }
    free_arrays(&a);
    return status;
}
