/* Published decoders: the settings of config.json, and refusals that name place, cause and remedy. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "cleat/profile.h"
#include "core/files.h"
#include "core/memory.h"
#include "models/model.h"
#include "models/published/llama.h"
#include "platform/files.h"
#include "profile/adopt.h"
#include "source_path.h"
#include "weights/layout.h"

enum { PATH = 512 };

static const char config_text[] =
    "{\"model_type\": \"llama\", \"vocab_size\": 400, \"hidden_size\": 24, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"num_hidden_layers\": 2, \"intermediate_size\": 40, \"hidden_act\": \"silu\", "
    "\"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-5, \"tie_word_embeddings\": true}";

static char folder[64], path[PATH];

static const char *in_folder(const char *name) {
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/cleat-causal-XXXXXX");
    return mkdtemp(folder) ? 0 : 1;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(in_folder("config.json"));
    unlink(in_folder("model.safetensors"));
    unlink(in_folder("texts.txt"));
    return rmdir(folder);
}

static void set(cleat_profile *profile, const char *assignment) {
    cleat_error error = {0};
    if (cleat_profile_set(profile, assignment, &error) != CLEAT_OK) fail_msg("%s", error.text);
}

static cleat_profile *new_profile(const char *const *settings) {
    cleat_profile *profile;
    assert_int_equal(cleat_profile_create(&profile, NULL), CLEAT_OK);
    set(profile, "model.type=causal_lm");
    set(profile, "data.path=texts.txt");
    for (; settings && *settings; ++settings) set(profile, *settings);
    return profile;
}

/* A profile that has adopted the configuration, whose members of `changes` are replaced; null removes one. */
static cleat_status adopt(const char *changes, const char *const *settings, cleat_profile **profile,
                          cleat_error *error) {
    const float zero = 0;
    const cleat_st_tensor tensor = {
        .name = "model.norm.weight", .dtype = CLEAT_ST_F32, .rank = 1, .shape = {1}, .data = &zero};
    cleat_weights *weights = NULL;
    cJSON *config = cJSON_Parse(config_text), *changed = cJSON_Parse(changes);
    assert_non_null(changed);
    for (cJSON *item = changed->child; item; item = item->next) {
        cJSON_DeleteItemFromObjectCaseSensitive(config, item->string);
        if (!cJSON_IsNull(item)) cJSON_AddItemToObject(config, item->string, cJSON_Duplicate(item, true));
    }
    char *text = cJSON_Print(config);
    assert_int_equal(cleat_file_write(in_folder("config.json"), text, strlen(text), NULL), CLEAT_OK);
    cJSON_free(text);
    cJSON_Delete(config);
    cJSON_Delete(changed);
    assert_int_equal(cleat_safetensors_write(in_folder("model.safetensors"), &tensor, 1, NULL, 0, NULL), CLEAT_OK);
    *profile = new_profile(settings);
    cleat_status status = cleat_weights_open(folder, &weights, error);
    if (!status) status = cleat_profile_adopt(*profile, weights, error);
    if (!status) status = cleat_profile_check(*profile, error);
    cleat_weights_close(weights);
    return status;
}

static void expect_refused(const char *changes, const char *const *settings, const char *const *says) {
    cleat_profile *profile;
    cleat_error error = {0};
    assert_int_not_equal(adopt(changes, settings, &profile, &error), CLEAT_OK);
    for (; *says; ++says)
        if (!strstr(error.text, *says)) fail_msg("'%s' lacks '%s'", error.text, *says);
    cleat_profile_destroy(profile);
}

static void expect_settings(const char *changes, const char *const (*wanted)[2]) {
    static const char *const length[] = {"data.max_length=32", NULL};
    char text[CLEAT_PROFILE_TEXT];
    cleat_profile *profile;
    cleat_error error = {0};
    if (adopt(changes, length, &profile, &error) != CLEAT_OK) fail_msg("%s", error.text);
    for (; (*wanted)[0]; ++wanted) {
        assert_int_equal(cleat_profile_get(profile, (*wanted)[0], text, sizeof text, NULL), CLEAT_OK);
        if (strcmp(text, (*wanted)[1]) != 0) fail_msg("%s is '%s', not '%s'", (*wanted)[0], text, (*wanted)[1]);
    }
    cleat_profile_destroy(profile);
}

static void the_settings_come_from_config(void **state) {
    static const char *const plain[][2] = {
        {"model.network", "llama"},    {"model.d_model", "24"},     {"model.heads", "4"},
        {"model.kv_heads", "2"},       {"model.head_size", "auto"}, {"model.embedding_rows", "400"},
        {"model.max_positions", "64"}, {"model.tied", "true"},      {"model.rope_scaling", "none"},
        {"model.rope_base", "10000"},  {"data.vocabulary", folder}, {NULL, NULL}};
    static const char *const scaled[][2] = {{"model.rope_scaling", "llama3"}, {"model.rope_factor", "32"},
                                            {"model.rope_low", "1"},          {"model.rope_high", "4"},
                                            {"model.rope_old_length", "48"},  {"model.rope_base", "500000"},
                                            {"model.head_size", "10"},        {NULL, NULL}};
    static const char *const old[][2] = {{"model.rope_scaling", "linear"}, {"model.rope_factor", "2.5"}, {NULL, NULL}};
    static const char *const window[][2] = {{"model.network", "mistral"}, {"model.window", "12"}, {NULL, NULL}};
    static const char *const none[][2] = {{"model.network", "mistral"}, {"model.window", "none"}, {NULL, NULL}};
    static const char *const gemma[][2] = {
        {"model.network", "gemma3_text"}, {"model.global_every", "2"},  {"model.window", "16"},
        {"model.query_scalar", "256"},    {"model.rope_base", "50000"}, {"model.local_rope_base", "900"},
        {"model.rope_factor", "8"},       {"model.head_size", "10"},    {NULL, NULL}};
    static const char *const old_gemma[][2] = {{"model.global_every", "6"},      {"model.window", "4096"},
                                               {"model.query_scalar", "7.5"},    {"model.rope_base", "1000000"},
                                               {"model.local_rope_base", "900"}, {NULL, NULL}};
    static const char *const local[][2] = {
        {"model.global_every", "none"}, {"model.local_rope_base", "10000"}, {NULL, NULL}};
    static const char *const gpt2[][2] = {
        {"model.network", "gpt2"},      {"model.d_model", "30"}, {"model.heads", "3"},
        {"model.layers", "1"},          {"model.d_ff", "120"},   {"model.norm_eps", "1e-05"},
        {"model.max_positions", "128"}, {"model.tied", "true"},  {NULL, NULL}};
    static const char *const inner[][2] = {{"model.d_ff", "50"}, {"model.max_positions", "1024"}, {NULL, NULL}};
    (void)state;
    expect_settings("{\"model_type\": \"gemma3_text\", \"head_dim\": 10, \"sliding_window\": 16, \"layer_types\": "
                    "[\"sliding_attention\", \"full_attention\"], \"rope_parameters\": {\"full_attention\": "
                    "{\"rope_type\": \"linear\", \"factor\": 8, \"rope_theta\": 5e4}, \"sliding_attention\": "
                    "{\"rope_type\": \"default\", \"rope_theta\": 900}}}",
                    gemma);
    expect_settings("{\"model_type\": \"gemma3_text\", \"query_pre_attn_scalar\": 7.5, \"rope_local_base_freq\": 900}",
                    old_gemma);
    expect_settings("{\"model_type\": \"gemma3_text\", \"layer_types\": [\"sliding_attention\", "
                    "\"sliding_attention\"]}",
                    local);
    expect_settings("{\"model_type\": \"gpt2\", \"n_embd\": 30, \"n_head\": 3, \"n_layer\": 1, \"n_positions\": 128, "
                    "\"n_inner\": null}",
                    gpt2);
    expect_settings("{\"model_type\": \"gpt2\", \"n_embd\": 30, \"n_head\": 3, \"n_layer\": 1, \"n_inner\": 50}",
                    inner);
    expect_settings("{}", plain);
    expect_settings("{\"head_dim\": 10, \"rope_parameters\": {\"rope_type\": \"llama3\", \"rope_theta\": 500000.0, "
                    "\"factor\": 32.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "
                    "\"original_max_position_embeddings\": 48}}",
                    scaled);
    expect_settings("{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.5}}", old);
    expect_settings("{\"model_type\": \"mistral\", \"sliding_window\": 12}", window);
    expect_settings("{\"model_type\": \"mistral\", \"sliding_window\": null}", none);
}

#define SAYS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void what_the_network_lacks_is_refused(void **state) {
    static const char *const length[] = {"data.max_length=32", NULL};
    static const char *const too_long[] = {"data.max_length=65", NULL};
    (void)state;
    expect_refused("{\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0}}", length,
                   SAYS("config.json", "rope_scaling", "yarn", "default, linear or llama3"));
    expect_refused("{\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 4.0}}", length,
                   SAYS("config.json", "low_freq_factor"));
    expect_refused("{\"rope_scaling\": {\"rope_type\": \"linear\"}}", length, SAYS("config.json", "factor"));
    expect_refused("{\"hidden_act\": \"gelu\"}", length, SAYS("config.json", "hidden_act", "gelu"));
    expect_refused("{\"attention_bias\": true}", length, SAYS("config.json", "attention_bias"));
    expect_refused("{\"model_type\": \"qwen2\", \"use_sliding_window\": true}", length,
                   SAYS("config.json", "use_sliding_window"));
    expect_refused("{\"model_type\": \"gemma3\", \"text_config\": {}}", length,
                   SAYS("config.json", "text_config", "vision", "GGUF"));
    expect_refused("{\"model_type\": \"gemma2\", \"attn_logit_softcapping\": 50}", length,
                   SAYS("config.json", "attn_logit_softcapping is 50", "soft caps"));
    expect_refused("{\"model_type\": \"gemma3_text\", \"layer_types\": [\"full_attention\", \"sliding_attention\"]}",
                   length, SAYS("config.json", "layer_types", "multiples"));
    expect_refused("{\"model_type\": \"gemma3_text\", \"layer_types\": [\"sliding_attention\"]}", length,
                   SAYS("config.json", "layer_types", "num_hidden_layers"));
    expect_refused("{\"model_type\": \"gemma3_text\", \"use_bidirectional_attention\": true}", length,
                   SAYS("config.json", "use_bidirectional_attention"));
    expect_refused("{\"model_type\": \"gemma3_text\", \"rope_parameters\": {\"sliding_attention\": {\"rope_type\": "
                   "\"linear\"}}}",
                   length, SAYS("config.json", "sliding_attention", "default"));
    expect_refused("{\"model_type\": \"gpt2\", \"n_embd\": 32, \"n_head\": 4, \"n_layer\": 1, "
                   "\"activation_function\": \"relu\"}",
                   length, SAYS("config.json", "activation_function", "relu"));
    expect_refused("{\"model_type\": \"gpt2\"}", length, SAYS("config.json", "n_embd"));
    expect_refused("{\"model_type\": \"falcon\"}", length, SAYS(folder, "falcon", "llama, mistral, qwen2, qwen3"));
    expect_refused("{\"num_key_value_heads\": 3}", length,
                   SAYS("num_key_value_heads = 3", "num_attention_heads", "evenly"));
    expect_refused("{\"num_key_value_heads\": \"two\"}", length, SAYS("config.json", "num_key_value_heads"));
    expect_refused("{\"head_dim\": 7}", length, SAYS("pairs"));
    expect_refused("{\"hidden_size\": null}", length, SAYS("config.json", "hidden_size"));
    expect_refused("{}", too_long, SAYS("data.max_length=65", "max_position_embeddings = 64", "at most that"));
}

static void settings_that_contradict_each_other_are_named(void **state) {
    static const struct {
        const char *settings[4], *says[3];
    } cases[] = {
        {{"model.heads=4", "model.kv_heads=8"}, {"model.kv_heads", "model.heads"}},
        {{"model.heads=5", "model.d_model=24"}, {"model.d_model", "model.head_size"}},
        {{"model.heads=8", "model.d_model=24"}, {"pairs"}},
        {{"model.network=gpt2", "model.kv_heads=1"}, {"model.kv_heads", "d_model elements"}},
        {{"data.max_length=4096"}, {"data.max_length", "model.max_positions"}},
        {{"data.val_fraction=0.6", "data.test_fraction=0.5"}, {"val_fraction", "test_fraction"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        cleat_error error = {0};
        cleat_profile *profile = new_profile(cases[i].settings);
        assert_int_not_equal(cleat_profile_check(profile, &error), CLEAT_OK);
        for (const char *const *said = cases[i].says; *said; ++said)
            if (!strstr(error.text, *said)) fail_msg("'%s' lacks '%s'", error.text, *said);
        cleat_profile_destroy(profile);
    }
}

/* Norms of Gemma multiply by 1 + weight; matrices of GPT-2 are transposed. */
static void tensors_have_their_names_and_changes(void **state) {
    static const struct {
        const cleat_architecture *of;
        const char *param, *source;
        float added;
        int rank;
    } rows[] = {
        {&cleat_published_gemma3, "blocks.1.n1.weight", "model.layers.1.input_layernorm.weight", 1, 0},
        {&cleat_published_gemma3, "blocks.1.n2_end.weight", "model.layers.1.post_feedforward_layernorm.weight", 1, 0},
        {&cleat_published_gemma3, "norm.weight", "model.norm.weight", 1, 0},
        {&cleat_published_gemma3, "blocks.1.att.out.weight", "model.layers.1.self_attn.o_proj.weight", 0, 0},
        {&cleat_published_gpt2, "emb.position", "transformer.wpe.weight", 0, 0},
        {&cleat_published_gpt2, "emb.weight", "transformer.wte.weight", 0, 0},
        {&cleat_published_gpt2, "blocks.2.n2.bias", "transformer.h.2.ln_2.bias", 0, 0},
        {&cleat_published_gpt2, "blocks.2.mlp.up.bias", "transformer.h.2.mlp.c_fc.bias", 0, CLEAT_TRANSPOSED},
        {&cleat_published_gpt2, "blocks.0.att.c_attn.weight", "transformer.h.0.attn.c_attn.weight", 0,
         CLEAT_TRANSPOSED}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_weight_sources sources;
        assert_true(cleat_architecture_sources(rows[i].of, NULL, false, rows[i].param, &sources));
        assert_int_equal(sources.count, 1);
        assert_string_equal(sources.names[0], rows[i].source);
        assert_true(sources.added == rows[i].added);
        assert_int_equal(sources.rank, rows[i].rank);
    }
}

/* The tokenizer has 324 tokens. */
static void open_texts(const char *rows, cleat_status wanted, const char *says) {
    cleat_profile *profile = new_profile(NULL);
    cleat_model *model;
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    char assignment[PATH + 32];
    snprintf(assignment, sizeof assignment, "data.vocabulary=%s",
             source_path("tests/tokenizer/tokenizers/llama3.json"));
    set(profile, assignment);
    set(profile, rows);
    set(profile, "data.cache=false");
    assert_int_equal(cleat_file_write(in_folder("texts.txt"), "one day\n\ntwo days\n", 18, NULL), CLEAT_OK);
    assert_int_equal(cleat_profile_create_model(profile, &model, NULL), CLEAT_OK);
    assert_int_equal(cleat_model_open_data(model, in_folder("texts.txt"), CLEAT_MODE_TRAIN, NULL, &dataset, &error),
                     wanted);
    if (says && !strstr(error.text, says)) fail_msg("'%s' lacks '%s'", error.text, says);
    if (!wanted) assert_int_equal(model->sizes.vocabulary, strcmp(rows, "model.embedding_rows=auto") ? 512 : 324);
    cleat_dataset_destroy(dataset);
    cleat_model_destroy(model);
    cleat_profile_destroy(profile);
}

static void a_tokenizer_larger_than_the_embeddings_is_refused(void **state) {
    (void)state;
    open_texts("model.embedding_rows=323", CLEAT_ERR_PROFILE, "324 tokens");
    open_texts("model.embedding_rows=323", CLEAT_ERR_PROFILE, "model.embedding_rows");
    open_texts("model.embedding_rows=512", CLEAT_OK, NULL);
    open_texts("model.embedding_rows=auto", CLEAT_OK, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_settings_come_from_config),
        cmocka_unit_test(what_the_network_lacks_is_refused),
        cmocka_unit_test(tensors_have_their_names_and_changes),
        cmocka_unit_test(settings_that_contradict_each_other_are_named),
        cmocka_unit_test(a_tokenizer_larger_than_the_embeddings_is_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
