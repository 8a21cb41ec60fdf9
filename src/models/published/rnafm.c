/* RNA-FM as multimolecule 0.2 saves it: a folder of transformers with other names of tensors and members. */
#include "models/rna.h"
#include "weights/config.h"

#include <cjson/cJSON.h>

/* Relative to "model."; the head that predicts structures is cleat's. */
static const cleat_weight_row names[] = {
    {.param = "emb.word", .sources = {"embeddings.word_embeddings"}},
    {.param = "emb.position", .sources = {"embeddings.position_embeddings"}},
    {.param = "emb.norm", .sources = {"embeddings.layer_norm"}},
    {.param = "blocks.*.n1", .sources = {"encoder.layer.*.attention.layer_norm"}},
    {.param = "blocks.*.att.qkv",
     .sources = {"encoder.layer.*.attention.self.query", "encoder.layer.*.attention.self.key",
                 "encoder.layer.*.attention.self.value"}},
    {.param = "blocks.*.att.out", .sources = {"encoder.layer.*.attention.output.dense"}},
    {.param = "blocks.*.n2", .sources = {"encoder.layer.*.layer_norm"}},
    {.param = "blocks.*.f1", .sources = {"encoder.layer.*.intermediate.dense"}},
    {.param = "blocks.*.f2", .sources = {"encoder.layer.*.output.dense"}},
    {.param = "norm", .sources = {"encoder.layer_norm"}},
    {.param = "head", .sources = {"structure_head"}, .head = true},
    {.param = NULL}};
/* Heads of other tasks. */
static const char *const ignored[] = {"pooler.*", "*_head.*", NULL};

#define ONLY(KEY, VALUE)                                                                                               \
    { .key = KEY, .fallback = VALUE, .only = VALUE }
static const cleat_config_row config[] = {
    {.key = "model_type", .setting = "model.network", .kind = CLEAT_JSON_TEXT},
    {.key = "hidden_size", .setting = "model.d_model", .fallback = "640"},
    {.key = "num_attention_heads", .setting = "model.heads", .fallback = "20"},
    {.key = "num_hidden_layers", .setting = "model.layers", .fallback = "12"},
    {.key = "intermediate_size", .setting = "model.d_ff", .fallback = "5120"},
    {.key = "max_position_embeddings", .setting = "model.max_positions", .fallback = "1026"},
    {.key = "layer_norm_eps", .setting = "model.norm_eps", .fallback = "1e-5", .kind = CLEAT_JSON_NUMBER},
    {.key = "hidden_dropout", .setting = "model.dropout", .fallback = "0.1", .kind = CLEAT_JSON_NUMBER},
    ONLY("vocab_size", "28"),
    ONLY("codon", "false"),
    ONLY("hidden_act", "\"gelu\""),
    ONLY("position_embedding_type", "\"absolute\""),
    ONLY("embed_norm", "true"),
    ONLY("token_dropout", "false"),
    ONLY("is_decoder", "false"),
    ONLY("add_cross_attention", "false"),
    ONLY("pad_token_id", "0"),
    {.key = NULL}};

static bool describe(const cleat_model *model, cJSON *object) {
    cJSON *array = cJSON_AddArrayToObject(object, "architectures");
    (void)model;
    return array && cJSON_AddItemToArray(array, cJSON_CreateString("RnaFmModel"));
}

static const cleat_architecture rnafm = {.name = "rnafm",
                                         .base = "model.",
                                         .names = names,
                                         .ignored = ignored,
                                         .config = config,
                                         .members = " codon embed_norm head hidden_dropout lm_head null_token_id "
                                                    "token_dropout unk_token_id ",
                                         .describe = describe};

const cleat_architecture *const cleat_published_rna[] = {&rnafm, NULL};
