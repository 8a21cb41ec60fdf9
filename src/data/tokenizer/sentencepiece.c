/* Writes the tokenizer.json equivalent to a model file of SentencePiece, as transformers converts those of
 * XLM-RoBERTa and of DeBERTa-v2 and v3; and of Llama 2, Mistral and Gemma, whose models are BPE. */
#include "tokenizer/json_read.h"
#include "tokenizer/tokenizer.h"

#include "core/json.h"
#include "core/memory.h"
#include "sentencepiece.pb-c.h"

#include <math.h>
#include <string.h>

typedef Cleat__Sentencepiece__Model spm_model;
typedef Cleat__Sentencepiece__Model__Piece spm_piece;

enum { PIECE_CONTROL = 3, PIECE_USER = 4, MODEL_UNIGRAM = 1, MODEL_BPE = 2 };

static int32_t find_piece(const spm_model *model, const char *name) {
    for (size_t i = 0; i < model->n_pieces; ++i)
        if (strcmp(model->pieces[i]->piece, name) == 0) return (int32_t)i;
    return -1;
}

static void add_charsmap(cleat_string *json, const spm_model *model) {
    const Cleat__Sentencepiece__Model__Normalizer *normalizer = model->normalizer;
    if (!normalizer || !normalizer->precompiled_charsmap.len) return;
    cleat_string_add(json, "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"");
    cleat_string_add_base64(json, normalizer->precompiled_charsmap.data, normalizer->precompiled_charsmap.len);
    cleat_string_add(json, "\"},");
}

static void add_pieces(cleat_string *json, const spm_model *model, size_t first) {
    for (size_t i = first; i < model->n_pieces; ++i) {
        char score[32];
        cleat_number_print((double)model->pieces[i]->score, score);
        cleat_string_add(json, "%s[", i > first ? ",\n" : "");
        cleat_json_add_string(json, model->pieces[i]->piece);
        cleat_string_add(json, ",%s]", score);
    }
}

static const char metaspace[] =
    "{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\",\"prepend_scheme\":\"always\",\"split\":true}";

/* XLM-RoBERTa: its own four special tokens, the pieces after <unk> <s> </s>, and <mask>. */
static void write_roberta(const spm_model *model, cleat_string *json) {
    static const char *const specials[] = {"<s>", "<pad>", "</s>", "<unk>"};
    const int32_t mask = (int32_t)model->n_pieces + 1;
    for (int i = 0; i < 4; ++i)
        cleat_json_add_token(json, &(cleat_added_token){(char *)specials[i], i, .special = true});
    cleat_json_add_token(json, &(cleat_added_token){"<mask>", mask, .special = true});
    cleat_string_add(json, "],\n\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    add_charsmap(json, model);
    cleat_string_add(json,
                     "{\"type\":\"Sequence\",\"normalizers\":[]}]},\n"
                     "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"},");
    cleat_string_add(
        json,
        "%s]},\n\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"</s>\",2],\"cls\":[\"<s>\",0],"
        "\"trim_offsets\":true,\"add_prefix_space\":true},\n\"decoder\":%s,\n"
        "\"model\":{\"type\":\"Unigram\",\"unk_id\":3,\"byte_fallback\":false,\"vocab\":[\n",
        metaspace, metaspace);
    for (int i = 0; i < 4; ++i) cleat_string_add(json, "[\"%s\",0.0],\n", specials[i]);
    add_pieces(json, model, 3);
    cleat_string_add(json, ",\n[\"<mask>\",0.0]]}}\n");
}

/* DeBERTa-v2 and v3: the pieces as they are, and [MASK] after them. */
static void write_deberta(const spm_model *model, bool lowercase, bool punctuation, cleat_string *json) {
    const int32_t cls = find_piece(model, "[CLS]"), sep = find_piece(model, "[SEP]");
    const int32_t unk = model->trainer ? model->trainer->unk_id : 0;
    for (size_t i = 0; i < model->n_pieces; ++i) {
        const spm_piece *piece = model->pieces[i];
        if (piece->type != PIECE_CONTROL && piece->type != PIECE_USER && (int32_t)i != unk) continue;
        cleat_json_add_token(json,
                             &(cleat_added_token){piece->piece, (int32_t)i, .special = piece->type != PIECE_USER});
    }
    if (find_piece(model, "[MASK]") < 0)
        cleat_json_add_token(json, &(cleat_added_token){"[MASK]", (int32_t)model->n_pieces, .special = true});
    cleat_string_add(json, "],\n\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[%s{\"type\":\"Strip\"},",
                     lowercase ? "{\"type\":\"Lowercase\"}," : "");
    add_charsmap(json, model);
    cleat_string_add(json,
                     "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" \"}]},\n"
                     "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[%s%s]},\n"
                     "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",%d],\"cls\":[\"[CLS]\",%d]},\n"
                     "\"decoder\":%s,\n"
                     "\"model\":{\"type\":\"Unigram\",\"unk_id\":%d,\"byte_fallback\":false,\"vocab\":[\n",
                     punctuation ? "{\"type\":\"Punctuation\",\"behavior\":\"Isolated\"}," : "", metaspace, (int)sep,
                     (int)cls, metaspace, (int)unk);
    add_pieces(json, model, 0);
    cleat_string_add(json, "]}}\n");
}

static cleat_status check_model(const spm_model *model, const char *place, cleat_error *error) {
    if (model->trainer && model->trainer->model_type != MODEL_UNIGRAM && model->trainer->model_type != MODEL_BPE)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                          "%s: neither a Unigram nor a BPE model (type %d); save the tokenizer as tokenizer.json",
                          place, (int)model->trainer->model_type);
    if (!model->n_pieces || model->n_pieces > CLEAT_MAX_PIECE_ID - 2 ||
        (model->trainer && (model->trainer->unk_id < 0 || (size_t)model->trainer->unk_id >= model->n_pieces)))
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: %zu tokens without a token for unknown characters; the file is damaged", place,
                          model->n_pieces);
    for (size_t i = 0; i < model->n_pieces; ++i)
        if (!model->pieces[i]->piece || !isfinite(model->pieces[i]->score))
            return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: token %zu has no text or no score; the file is damaged",
                              place, i);
    return CLEAT_OK;
}

/* The models of language models, as the tokenizer.json that was published with them. */
static cleat_status write_bpe(const spm_model *model, const cJSON *config, const char *place, cleat_string *json,
                              cleat_error *error) {
    const Cleat__Sentencepiece__Model__Normalizer *n = model->normalizer;
    const Cleat__Sentencepiece__Model__Trainer *t = model->trainer;
    bool bos = true, eos = false;
    cleat_status status = cleat_member_bool(config, "add_bos_token", true, &bos, error);
    if (!status) status = cleat_member_bool(config, "add_eos_token", false, &eos, error);
    if (status) return status;
    if (!n || n->precompiled_charsmap.len || n->remove_extra_whitespaces || !n->escape_whitespaces)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                          "%s: a BPE model that changes characters or blanks of texts; save the tokenizer as "
                          "tokenizer.json",
                          place);
    cleat_text_view *pieces = cleat_alloc(model->n_pieces, sizeof *pieces);
    float *scores = cleat_alloc(model->n_pieces, sizeof *scores);
    int32_t *types = cleat_alloc(model->n_pieces, sizeof *types);
    if (!pieces || !scores || !types) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a tokenizer");
    for (size_t i = 0; i < model->n_pieces && !status; ++i) {
        pieces[i] = (cleat_text_view){model->pieces[i]->piece, strlen(model->pieces[i]->piece)};
        scores[i] = model->pieces[i]->score;
        types[i] = model->pieces[i]->type;
    }
    const cleat_tokenizer_metadata metadata = {.is_sentencepiece = true,
                                               .pieces = pieces,
                                               .scores = scores,
                                               .types = types,
                                               .count = model->n_pieces,
                                               .bos = t->bos_id,
                                               .eos = t->eos_id,
                                               .unk = t->unk_id,
                                               .pad = t->pad_id,
                                               .add_bos = bos,
                                               .add_eos = eos,
                                               .add_space_prefix = n->add_dummy_prefix};
    if (!status) status = cleat_language_json(&metadata, json, error);
    cleat_free(pieces);
    cleat_free(scores);
    cleat_free(types);
    return status ? cleat_fail_in(error, status, "%s", place) : CLEAT_OK;
}

static cleat_status write_model(const spm_model *model, const cJSON *config, const char *class, const char *place,
                                cleat_string *json, cleat_error *error) {
    bool lowercase = false, punctuation = false;
    cleat_status status = check_model(model, place, error);
    const bool deberta = !status && find_piece(model, "[CLS]") >= 0 && find_piece(model, "[SEP]") >= 0;
    if (!status && model->trainer && model->trainer->model_type == MODEL_BPE) {
        status = cleat_tokenizer_expect(class, " llama codellama gemma mistral ",
                                        "a BPE model is that of a LlamaTokenizer", error);
        return status ? status : write_bpe(model, config, place, json, error);
    }
    if (!status) status = cleat_member_bool(config, "do_lower_case", false, &lowercase, error);
    if (!status) status = cleat_member_bool(config, "split_by_punct", false, &punctuation, error);
    if (!status)
        status = deberta
                     ? cleat_tokenizer_expect(class, " debertav2 ", "the model is that of a DebertaV2Tokenizer", error)
                     : cleat_tokenizer_expect(class, " xlmroberta xlmrobertaxl xmod ",
                                              "the model is read as that of an XLMRobertaTokenizer", error);
    if (status) return status;
    cleat_string_add(json, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n\"added_tokens\":[");
    if (deberta)
        write_deberta(model, lowercase, punctuation, json);
    else if (find_piece(model, "<unk>") == 0 && find_piece(model, "<s>") == 1 && find_piece(model, "</s>") == 2)
        write_roberta(model, json);
    else
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                          "%s: not the model of an XLM-RoBERTa (<unk> <s> </s> first) or a DeBERTa ([CLS], [SEP]); "
                          "save the tokenizer as tokenizer.json",
                          place);
    return json->failed ? cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a tokenizer.json") : CLEAT_OK;
}

cleat_status cleat_sentencepiece_json(const cleat_tokenizer_file *file, const cleat_tokenizer_file *config,
                                      const char *class, const char *place, cleat_string *json, cleat_error *error) {
    spm_model *model = cleat__sentencepiece__model__unpack(NULL, file->size, (const uint8_t *)file->data);
    if (!model)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: not a model of SentencePiece: the file is damaged, or one of tiktoken, for which a "
                          "tokenizer.json is needed",
                          place);
    cJSON *root = config->data ? cJSON_ParseWithLength(config->data, config->size) : NULL;
    cleat_status status = write_model(model, root, class, place, json, error);
    cJSON_Delete(root);
    cleat__sentencepiece__model__free_unpacked(model, NULL);
    return status;
}
