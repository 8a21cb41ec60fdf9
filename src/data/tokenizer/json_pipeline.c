/* Builds the pipeline of a tokenizer.json. */
#include "tokenizer/json_read.h"

#include "core/memory.h"

#include <string.h>

static cleat_status read_flags(const cJSON *object, cleat_added_token *token, cleat_error *error) {
    cleat_status status = cleat_member_bool(object, "special", false, &token->special, error);
    if (!status) status = cleat_member_bool(object, "single_word", false, &token->single_word, error);
    if (!status) status = cleat_member_bool(object, "lstrip", false, &token->lstrip, error);
    if (!status) status = cleat_member_bool(object, "rstrip", false, &token->rstrip, error);
    return status ? status : cleat_member_bool(object, "normalized", !token->special, &token->normalized, error);
}

/* A piece of the vocabulary keeps its id regardless of the file; a new token gets the next one, as in Hugging
 * Face's tokenizers, whose files have the same ids. */
static int32_t id_of_added(const cleat_pipeline *p, const char *content, int32_t *highest) {
    int32_t id = cleat_pipeline_id(p, content), pieces = (int32_t)p->model.pieces.names.count;
    if (p->model.kind == CLEAT_SUBWORDS_UNIGRAM) pieces = (int32_t)p->model.pieces.limit;
    if (id < 0) id = *highest >= pieces ? *highest + 1 : pieces;
    if (id > *highest) *highest = id;
    return id;
}

static cleat_status read_added(const cJSON *section, cleat_pipeline *p, cleat_error *error) {
    const cJSON *object;
    int32_t highest = -1;
    cJSON_ArrayForEach(object, section) {
        cleat_added_token token = {0};
        const char *content = NULL;
        int64_t said = -1;
        cleat_status status = cleat_member_string(object, "content", NULL, &content, error);
        if (!status) status = cleat_member_count(object, "id", -1, CLEAT_MAX_PIECE_ID, &said, error);
        if (!status) status = read_flags(object, &token, error);
        if (!status && !content) status = cleat_fail(error, CLEAT_ERR_FORMAT, "a token without 'content'");
        if (status) return status;
        if (!*content) continue;
        token.content = (char *)content; /* copied */
        token.id = id_of_added(p, content, &highest);
        if (token.id > CLEAT_MAX_PIECE_ID) return cleat_fail(error, CLEAT_ERR_FORMAT, "too many tokens");
        if (said >= 0 && said != token.id)
            cleat_log(CLEAT_LOG_WARNING, "tokenizer: the added token '%.40s' has the id %d, not %d as in its file",
                      content, (int)token.id, (int)said);
        status = cleat_added_tokens_add(&p->added, &token, error);
        if (status) return status;
    }
    return CLEAT_OK;
}

/* The content as it is searched for; the caller frees it. */
static cleat_status search_text(const cleat_pipeline *p, const cleat_added_token *token, char **text, size_t *size,
                                cleat_error *error) {
    const size_t most = cleat_aligned_text_most(strlen(token->content));
    cleat_aligned_text content = {.most = most}, spare = {.most = most};
    cleat_pattern_work work = {.steps = cleat_pattern_steps(strlen(token->content))};
    cleat_aligned_text_add(&content, token->content, strlen(token->content), 0, 0);
    cleat_status status = token->normalized ? cleat_pipeline_normalise(p, &content, &spare, &work, error) : CLEAT_OK;
    *size = content.size;
    *text = status ? NULL : cleat_alloc(content.size + 1, 1);
    if (*text && content.size) memcpy(*text, content.bytes, content.size);
    if (!status && (content.too_long || spare.too_long))
        status = cleat_fail(error, CLEAT_ERR_FORMAT, "the normalisers lengthen the token %.40s to more than %zu bytes",
                            token->content, most);
    if (!status && (content.failed || !*text))
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for an added token");
    cleat_aligned_text_free(&content);
    cleat_aligned_text_free(&spare);
    cleat_pattern_work_free(&work);
    return status;
}

static cleat_status build_trie(cleat_pipeline *p, bool normalised, cleat_trie *trie, cleat_error *error) {
    size_t n = 0, count = p->added.count;
    cleat_status status = CLEAT_OK;
    cleat_trie_key *keys = cleat_alloc(count, sizeof *keys);
    char **texts = cleat_alloc(count, sizeof *texts);
    if (!keys || !texts) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu added tokens", count);
    for (size_t i = 0; i < count && !status; ++i) {
        if (p->added.tokens[i].normalized != normalised) continue;
        size_t size = 0;
        status = search_text(p, &p->added.tokens[i], &texts[n], &size, error);
        if (!status) keys[n] = (cleat_trie_key){texts[n], size, (int32_t)i};
        ++n;
    }
    if (!status) status = cleat_trie_build(trie, keys, n, error);
    for (size_t i = 0, k = 0; i < count && k < n && texts && normalised; ++i) /* as in the reference */
        if (p->added.tokens[i].normalized) p->added.tokens[i].shown = texts[k++];
    for (size_t i = 0; i < n && texts && !normalised; ++i) cleat_free(texts[i]);
    cleat_free(texts);
    cleat_free(keys);
    return status;
}

/* Finds the limit of the ids, and the added token of each id. */
static cleat_status index_ids(cleat_pipeline *p, cleat_error *error) {
    p->limit = p->model.pieces.limit;
    for (size_t i = 0; i < p->added.count; ++i)
        if ((size_t)p->added.tokens[i].id >= p->limit) p->limit = (size_t)p->added.tokens[i].id + 1;
    p->added_of = cleat_alloc(p->limit + 1, sizeof *p->added_of);
    if (!p->added_of) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu tokens", p->limit);
    for (size_t i = p->added.count; i-- > 0;) p->added_of[p->added.tokens[i].id] = (uint32_t)i + 1;
    return CLEAT_OK;
}

/* Whether the pipeline is that of BERT, for which words.h is faster. */
static bool is_bert(const cleat_pipeline *p) {
    const cleat_normaliser *n = p->normalisers;
    return p->n_normalisers == 1 && n->kind == CLEAT_NORMALISE_BERT && n->clean && n->ideographs &&
           n->accents == n->lowercase && p->n_splitters == 1 && p->splitters[0].kind == CLEAT_SPLIT_BERT &&
           p->model.kind == CLEAT_SUBWORDS_WORDPIECE && p->model.max_characters == CLEAT_WORD_CHARACTERS &&
           p->model.unk >= 0 && p->added.normalised.count < 2;
}

/* Every id of a template must be a token. */
static cleat_status check_templates(const cleat_pipeline *p, cleat_error *error) {
    for (int pair = 0; pair < 2; ++pair)
        for (size_t i = 0; i < p->templates[pair].count; ++i) {
            const cleat_template_item *item = &p->templates[pair].items[i];
            if (item->kind == CLEAT_TEMPLATE_TOKEN && !cleat_pipeline_piece(p, item->id))
                return cleat_fail(error, CLEAT_ERR_FORMAT, "post_processor: no token has the id %d", (int)item->id);
        }
    return CLEAT_OK;
}

/* Copies JSON and writes \u0000 as the bytes that stand for it (see subwords.h), because cJSON's strings end
 * at a zero byte. */
static char *rewrite_zeros(const char *json, size_t size, size_t *rewritten) {
    char *copy = cleat_alloc(size + 1, 1);
    size_t used = 0;
    for (size_t at = 0; copy && at < size; ++at) {
        if (json[at] == '\\' && size - at >= 6 && memcmp(json + at, "\\u0000", 6) == 0) {
            memcpy(copy + used, CLEAT_ZERO, 2);
            used += 2;
            at += 5;
            continue;
        }
        copy[used++] = json[at];
        if (json[at] == '\\' && at + 1 < size) copy[used++] = json[++at];
    }
    *rewritten = used;
    return copy;
}

static cleat_status read_sections(const cJSON *root, cleat_pipeline *p, cleat_error *error) {
    cleat_status status = cleat_read_normalisers(cleat_json_member(root, "normalizer"), p, error);
    if (status) return cleat_fail_in(error, status, "normalizer");
    status = cleat_read_splitters(cleat_json_member(root, "pre_tokenizer"), p, error);
    if (status) return cleat_fail_in(error, status, "pre_tokenizer");
    status = cleat_read_subwords(cleat_json_member(root, "model"), &p->model, error);
    if (status) return cleat_fail_in(error, status, "model");
    status = cleat_read_templates(cleat_json_member(root, "post_processor"), p, error);
    if (status) return cleat_fail_in(error, status, "post_processor");
    status = cleat_read_decoders(cleat_json_member(root, "decoder"), p, error);
    if (status) return cleat_fail_in(error, status, "decoder");
    status = read_added(cleat_json_member(root, "added_tokens"), p, error);
    if (!status) status = build_trie(p, false, &p->added.raw, error);
    if (!status) status = build_trie(p, true, &p->added.normalised, error);
    if (!status) status = index_ids(p, error);
    if (status) return cleat_fail_in(error, status, "added_tokens");
    p->bert = is_bert(p);
    p->rules = (cleat_word_rules){.published = true, .lowercase = p->lowercase};
    return check_templates(p, error);
}

cleat_status cleat_pipeline_parse(const char *json, size_t size, const char *place, cleat_pipeline **pipeline,
                                  cleat_error *error) {
    size_t bad = 0;
    if (!cleat_text_check(json, size, &bad))
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: not UTF-8 text (byte %zu)", place, bad + 1);
    cleat_pipeline *made = cleat_alloc(1, sizeof *made);
    size_t length = 0;
    char *copy = rewrite_zeros(json, size, &length);
    cJSON *root = made && copy ? cJSON_ParseWithLength(copy, length) : NULL;
    cleat_status status = CLEAT_OK;
    cleat_free(copy);
    if (!made || !copy)
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a tokenizer");
    else if (!cJSON_IsObject(root))
        status =
            cleat_fail(error, CLEAT_ERR_FORMAT, "not a JSON object; the file is truncated or not a tokenizer.json");
    else
        status = read_sections(root, made, error);
    cJSON_Delete(root);
    if (status) {
        cleat_pipeline_destroy(made);
        return cleat_fail_in(error, status, "%s", place);
    }
    *pipeline = made;
    return CLEAT_OK;
}
