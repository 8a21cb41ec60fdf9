/* The section "model" of tokenizer.json. */
#include "tokenizer/json_read.h"

#include "core/memory.h"

#include <string.h>

/* In the order of cleat_subwords_kind. */
static const char *const model_names[] = {"WordPiece", "BPE", "Unigram", NULL};

/* {"piece": id, ...} */
static cleat_status read_vocab(const cJSON *section, cleat_subwords *model, cleat_error *error) {
    const cJSON *vocab = cleat_json_member(section, "vocab"), *piece;
    cleat_status status = CLEAT_OK;
    if (!cJSON_IsObject(vocab) || !vocab->child)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "'vocab' must be an object of tokens and their ids, not empty");
    cJSON_ArrayForEach(piece, vocab) {
        const double id = cJSON_IsNumber(piece) ? piece->valuedouble : -1;
        if (!(id >= 0 && id <= CLEAT_MAX_PIECE_ID && id == (double)(int32_t)id))
            return cleat_fail(error, CLEAT_ERR_FORMAT, "the id of '%.40s' must be a whole number of 0 to %d",
                              piece->string, (int)CLEAT_MAX_PIECE_ID);
        status = cleat_piece_table_add(&model->pieces, piece->string, (int32_t)id, error);
        if (status) return status;
    }
    return CLEAT_OK;
}

/* The id of the token that 'unk_token' names; -1 if there is none. */
static cleat_status read_unk(const cJSON *section, const char *absent, cleat_subwords *model, cleat_error *error) {
    const char *name = NULL;
    cleat_status status = cleat_member_string(section, "unk_token", absent, &name, error);
    model->unk = -1;
    if (status || !name) return status;
    model->unk = cleat_piece_table_find(&model->pieces, name, strlen(name));
    return CLEAT_OK;
}

static cleat_status read_wordpiece(const cJSON *section, cleat_subwords *model, cleat_error *error) {
    int64_t characters = 0;
    cleat_status status = read_vocab(section, model, error);
    if (!status) status = read_unk(section, "[UNK]", model, error);
    if (!status) status = cleat_member_copy(section, "continuing_subword_prefix", "##", &model->prefix, error);
    if (!status)
        status = cleat_member_count(section, "max_input_chars_per_word", 100, INT64_C(1) << 53, &characters, error);
    model->max_characters = (size_t)characters;
    return status ? status : cleat_wordpiece_prepare(model, error);
}

/* A merge is ["a", "b"], or "a b" in older files. */
static cleat_status read_merge(const cJSON *merge, cleat_subwords *model, cleat_error *error) {
    const cJSON *left = cJSON_GetArrayItem(merge, 0), *right = cJSON_GetArrayItem(merge, 1);
    if (cJSON_IsArray(merge) && cJSON_GetArraySize(merge) == 2 && cJSON_IsString(left) && cJSON_IsString(right))
        return cleat_bpe_add_merge(model, left->valuestring, right->valuestring, error);
    char *space = cJSON_IsString(merge) ? strchr(merge->valuestring, ' ') : NULL;
    if (!space || strchr(space + 1, ' '))
        return cleat_fail(error, CLEAT_ERR_FORMAT, "merge %zu must be two tokens, [\"a\", \"b\"] or \"a b\"",
                          model->n_merges + 1);
    *space = 0;
    cleat_status status = cleat_bpe_add_merge(model, merge->valuestring, space + 1, error);
    *space = ' ';
    return status;
}

static cleat_status read_bpe(const cJSON *section, cleat_subwords *model, cleat_error *error) {
    const cJSON *dropout = cleat_json_member(section, "dropout"), *merge;
    cleat_status status = read_vocab(section, model, error);
    if (!status) status = read_unk(section, NULL, model, error);
    if (!status) status = cleat_member_copy(section, "continuing_subword_prefix", "", &model->prefix, error);
    if (!status) status = cleat_member_copy(section, "end_of_word_suffix", "", &model->suffix, error);
    if (!status) status = cleat_member_bool(section, "fuse_unk", false, &model->fuse_unk, error);
    if (!status) status = cleat_member_bool(section, "byte_fallback", false, &model->byte_fallback, error);
    if (!status) status = cleat_member_bool(section, "ignore_merges", false, &model->ignore_merges, error);
    if (status) return status;
    if (cJSON_IsNumber(dropout) && dropout->valuedouble > 0)
        cleat_log(CLEAT_LOG_WARNING,
                  "tokenizer: the dropout %g of its merges is not used; the encoding of a text is always the same",
                  dropout->valuedouble);
    cJSON_ArrayForEach(merge, cleat_json_member(section, "merges")) {
        status = read_merge(merge, model, error);
        if (status) return status;
    }
    cleat_find_byte_pieces(model);
    return CLEAT_OK;
}

/* [["piece", log probability], ...]; the id is the index. */
static cleat_status read_scored(const cJSON *vocab, cleat_subwords *model, cleat_error *error) {
    const cJSON *pair;
    int32_t id = 0;
    int count = cJSON_GetArraySize(vocab);
    if (!cJSON_IsArray(vocab) || count < 1 || count > CLEAT_MAX_PIECE_ID)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "'vocab' must be a list of tokens and their scores, 1 to %d",
                          (int)CLEAT_MAX_PIECE_ID);
    model->scores = cleat_alloc((size_t)count, sizeof *model->scores);
    if (!model->scores) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %d tokens", count);
    cJSON_ArrayForEach(pair, vocab) {
        const cJSON *piece = cJSON_GetArrayItem(pair, 0), *score = cJSON_GetArrayItem(pair, 1);
        if (!cJSON_IsString(piece) || !cJSON_IsNumber(score))
            return cleat_fail(error, CLEAT_ERR_FORMAT, "entry %d of 'vocab' must be a token and its score", (int)id);
        model->scores[id] = score->valuedouble;
        cleat_status status = cleat_piece_table_add(&model->pieces, piece->valuestring, id++, error);
        if (status) return status;
    }
    return CLEAT_OK;
}

static cleat_status read_unigram(const cJSON *section, cleat_subwords *model, cleat_error *error) {
    int64_t unk = -1;
    cleat_status status = read_scored(cleat_json_member(section, "vocab"), model, error);
    if (!status) status = cleat_member_count(section, "unk_id", -1, (int64_t)model->pieces.limit - 1, &unk, error);
    model->unk = (int32_t)unk;
    if (!status) status = cleat_member_bool(section, "byte_fallback", false, &model->byte_fallback, error);
    cleat_find_byte_pieces(model);
    return status ? status : cleat_unigram_prepare(model, error);
}

/* Old files have no type. */
static int type_by_members(const cJSON *section) {
    if (cleat_json_member(section, "merges")) return CLEAT_SUBWORDS_BPE;
    return cJSON_IsArray(cleat_json_member(section, "vocab")) ? CLEAT_SUBWORDS_UNIGRAM : CLEAT_SUBWORDS_WORDPIECE;
}

cleat_status cleat_read_subwords(const cJSON *section, cleat_subwords *model, cleat_error *error) {
    int kind = 0;
    if (!section) return cleat_fail(error, CLEAT_ERR_FORMAT, "missing; this is not a tokenizer.json");
    cleat_status status = cleat_member_choice(section, "type", model_names, type_by_members(section), &kind, error);
    if (status) return status;
    model->kind = (cleat_subwords_kind)kind;
    switch (model->kind) {
    case CLEAT_SUBWORDS_WORDPIECE:
        return read_wordpiece(section, model, error);
    case CLEAT_SUBWORDS_BPE:
        return read_bpe(section, model, error);
    case CLEAT_SUBWORDS_UNIGRAM:
        break;
    }
    return read_unigram(section, model, error);
}
