/* config.json of published checkpoints: members of a wrong type are refused by name, and an export is
 * complete or fails. */
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
#include "core/string.h"
#include "models/published/images.h"
#include "models/published/segformer.h"
#include "models/published/text.h"
#include "platform/files.h"
#include "source_path.h"
#include "weights/write.h"

enum { PATH = 512 };

static const cleat_architecture *const resnets[] = {&cleat_published_resnet, &cleat_published_resnet_transformers,
                                                    NULL},
                                       *const vits[] = {&cleat_published_vit, &cleat_published_vit_transformers, NULL},
                                       *const convnexts[] = {&cleat_published_convnext,
                                                             &cleat_published_convnext_transformers, NULL},
                                       *const segformers[] = {&cleat_published_segformer, NULL};

typedef struct fixture {
    const char *folder; /* in tests/published */
    const cleat_architecture *const *architectures;
} fixture;

static const fixture fixtures[] = {
    {"bert_classifier", cleat_published_classifiers},
    {"roberta_classifier", cleat_published_classifiers},
    {"distilbert_tagger", cleat_published_taggers},
    {"electra_tagger", cleat_published_taggers},
    {"deberta_tagger", cleat_published_taggers},
    {"segformer", segformers},
    {"resnet", resnets},
    {"vit", vits},
    {"vit_transformers", vits},
    {"convnext", convnexts},
    {"convnext_transformers", convnexts},
    {"resnet_transformers", resnets},
    {"modernbert_classifier", cleat_published_classifiers},
    {"modernbert_tagger", cleat_published_taggers},
};
enum { FIXTURES = sizeof fixtures / sizeof *fixtures };

/* --- a folder with a fixture's weights and a different config.json ------------------------------------------ */

static char scratch[64], weights_path[PATH], config_path[PATH];

static int make_scratch(void **state) {
    (void)state;
    snprintf(scratch, sizeof scratch, "/tmp/cleat-config-XXXXXX");
    if (!mkdtemp(scratch)) return 1;
    snprintf(weights_path, sizeof weights_path, "%s/model.safetensors", scratch);
    snprintf(config_path, sizeof config_path, "%s/config.json", scratch);
    return 0;
}

static int remove_scratch(void **state) {
    (void)state;
    unlink(weights_path);
    unlink(config_path);
    return rmdir(scratch);
}

static cJSON *config_of(const char *folder) {
    char path[PATH], *text;
    size_t size;
    cleat_error error = {0};
    snprintf(path, sizeof path, "%s/%s/config.json", source_path("tests/published"), folder);
    if (cleat_file_read(path, &text, &size, &error) != CLEAT_OK) fail_msg("%s", error.text);
    cJSON *config = cJSON_Parse(text);
    assert_non_null(config);
    cleat_free(text);
    return config;
}

static void use_weights(const char *folder) {
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s/model.safetensors", source_path("tests/published"), folder);
    unlink(weights_path);
    assert_int_equal(symlink(path, weights_path), 0);
}

static cleat_status note(void *user, const char *setting, const char *value, const char *key, cleat_error *error) {
    (void)key, (void)error;
    cleat_string_add(user, "%s=%s\n", setting, value);
    return CLEAT_OK;
}

/* The settings that the config determines, as text. */
static cleat_status configure(const fixture *of, const cJSON *config, cleat_string *settings, cleat_error *error) {
    const cleat_architecture *architecture = NULL;
    const cleat_setting_sink sink = {.set = note, .user = settings};
    cleat_weights *weights = NULL;
    char *text = cJSON_Print(config);
    assert_int_equal(cleat_file_write(config_path, text, strlen(text), NULL), CLEAT_OK);
    cJSON_free(text);
    cleat_status status = cleat_weights_open(scratch, &weights, error);
    if (!status) status = cleat_architecture_find(of->architectures, weights, &architecture, error);
    if (!status) status = cleat_architecture_configure(architecture, weights, &sink, error);
    cleat_weights_close(weights);
    return status;
}

/* --- reading --------------------------------------------------------------------------------------------------- */

/* Replaces a member of config.json, or removes it if the value is NULL. */
static cleat_status configure_with(const fixture *of, const char *key, const char *value, cleat_string *settings,
                                   cleat_error *error) {
    cJSON *config = config_of(of->folder);
    cJSON_DeleteItemFromObjectCaseSensitive(config, key);
    if (value) cJSON_AddItemToObject(config, key, cJSON_Parse(value));
    cleat_status status = configure(of, config, settings, error);
    cJSON_Delete(config);
    return status;
}

static bool same_without(const fixture *of, const char *key, const cleat_string *settings) {
    cleat_string without = {0};
    const bool same =
        configure_with(of, key, NULL, &without, NULL) == CLEAT_OK && strcmp(without.data, settings->data) == 0;
    cleat_string_free(&without);
    return same;
}

/* A member of a wrong type is refused by name, unless it is never read; null counts as absent. */
static void expect_refused_or_unread(const fixture *of, const char *key, const char *value, const char *usual) {
    cleat_string settings = {0};
    cleat_error error = {0};
    cleat_status status = configure_with(of, key, value, &settings, &error);
    if (!status) {
        if (strcmp(settings.data, usual) != 0 && !(strcmp(value, "null") == 0 && same_without(of, key, &settings)))
            fail_msg("%s: '%s' = %s is accepted", of->folder, key, value);
    } else if (!strstr(error.text, "config.json") || !strstr(error.text, key)) {
        fail_msg("%s: '%s' = %s: the message is '%s'", of->folder, key, value, error.text);
    }
    cleat_string_free(&settings);
}

static void members_of_other_types_are_refused(void **state) {
    static const char *const odd[] = {"[32]", "{\"a\": 1}", "true", "null", "\"32\""};
    (void)state;
    for (int f = 0; f < FIXTURES; ++f) {
        cJSON *config = config_of(fixtures[f].folder), *member;
        cleat_string usual = {0};
        cleat_error error = {0};
        use_weights(fixtures[f].folder);
        if (configure(&fixtures[f], config, &usual, &error) != CLEAT_OK) fail_msg("%s", error.text);
        cJSON_ArrayForEach(member, config) {
            for (size_t i = 0; i < sizeof odd / sizeof *odd; ++i) {
                cJSON *value = cJSON_Parse(odd[i]);
                if ((value->type & 0xff) != (member->type & 0xff) && !(cJSON_IsBool(value) && cJSON_IsBool(member)))
                    expect_refused_or_unread(&fixtures[f], member->string, odd[i], usual.data);
                cJSON_Delete(value);
            }
        }
        cJSON_Delete(config);
        cleat_string_free(&usual);
    }
}

static void the_message_says_what_is_wanted(void **state) {
    static const struct {
        int fixture;
        const char *key, *value, *says;
    } rows[] = {
        {0, "hidden_size", "[32]", "'hidden_size' is [32]; it must be a whole number"},
        {0, "hidden_size", "\"32\"", "'hidden_size' is \"32\"; it must be a whole number"},
        {0, "hidden_size", "32.5", "'hidden_size' is 32.5; it must be a whole number"},
        {0, "hidden_size", "true", "'hidden_size' is true; it must be a whole number"},
        {0, "hidden_size", "null", "'hidden_size' is null; it must be a whole number"},
        {0, "hidden_size", "1e30", "'hidden_size' is 1e+30; it must be a whole number"},
        {0, "hidden_size", "1e999", "it must be a whole number"},
        {0, "layer_norm_eps", "\"1e-5\"", "'layer_norm_eps' is \"1e-5\"; it must be a number"},
        {0, "classifier_dropout", "\"0.1\"", "'classifier_dropout' is \"0.1\"; it must be a number or null"},
        {0, "attention_probs_dropout_prob", "[]", "'attention_probs_dropout_prob' is []; it must be a number"},
        {0, "hidden_act", "[\"gelu\"]", "hidden_act is [\"gelu\"]; only \"gelu\" is supported"},
        {0, "id2label", "[\"bad\", \"good\"]", "'id2label' is [\"bad\",\"good\"]; it must be an object or null"},
        {0, "id2label", "{\"0\": [\"bad\"]}", "'id2label.0' is [\"bad\"]; it must be a whole number or a text"},
        {0, "model_type", "[\"bert\"]", "'model_type' is [\"bert\"]; it must be a text in quotes or null"},
        {0, "problem_type", "3", "'problem_type' is 3; it must be a text in quotes or null"},
        {1, "pad_token_id", "\"1\"", "'pad_token_id' is \"1\"; it must be a whole number or null"},
        {4, "pos_att_type", "3", "'pos_att_type' is 3; it must be a text in quotes or a list of texts or null"},
        {4, "norm_rel_ebd", "true", "'norm_rel_ebd' is true; it must be a text"},
        {4, "share_att_key", "1", "'share_att_key' is 1; it must be true or false"},
        {4, "position_buckets", "32.5", "'position_buckets' is 32.5; it must be a whole number"},
        {5, "decoder_hidden_size", "\"8\"", "'decoder_hidden_size' is \"8\"; it must be a whole number"},
        {5, "depths", "[1, 1, 1]", "'depths' is [1,1,1]; it must be a list of 4 whole numbers above 0"},
        {6, "pretrained_cfg", "3", "'pretrained_cfg' is 3; it must be an object or null"},
        {6, "pretrained_cfg", "{\"mean\": 0.5}", "'pretrained_cfg.mean' is 0.5; it must be a list of numbers or null"},
        {7, "model_args", "{\"num_heads\": \"2\"}", "'model_args.num_heads' is \"2\"; it must be a whole number"},
        {7, "model_args", "[]", "'model_args' is []; it must be an object or null"},
        {6, "global_pool", "\"max\"", "global_pool of config.json is 'max'; avg is supported"},
        {7, "global_pool", "\"avg\"", "global_pool of config.json is avg, and the norm comes before the mean (norm)"},
        {7, "global_pool", "\"map\"", "global_pool of config.json is 'map'; token is supported"},
        {7, "model_args", "{\"global_pool\": \"avg\"}", "global_pool of config.json is avg"},
        {9, "global_pool", "\"avgmax\"", "global_pool of config.json is 'avgmax'; avg is supported"},
        {8, "hidden_act", "true", "hidden_act is true; only \"gelu\" is supported"},
        {8, "qkv_bias", "false", "qkv_bias is false; only true is supported"},
        {10, "hidden_act", "\"relu\"", "hidden_act is \"relu\"; only \"gelu\" is supported"},
        {11, "hidden_act", "\"silu\"", "hidden_act is \"silu\"; only \"relu\" is supported; use other weights"},
        {11, "downsample_in_first_stage", "true", "downsample_in_first_stage is true; only false is supported"},
        {11, "downsample_in_bottleneck", "true", "downsample_in_bottleneck is true; only false is supported"},
        {10, "layer_norm_eps", "{}", "'layer_norm_eps' is {}; it must be a number"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const fixture *of = &fixtures[rows[i].fixture];
        cleat_string settings = {0};
        cleat_error error = {0};
        use_weights(of->folder);
        if (configure_with(of, rows[i].key, rows[i].value, &settings, &error) == CLEAT_OK)
            fail_msg("%s: '%s' = %s is accepted", of->folder, rows[i].key, rows[i].value);
        if (!strstr(error.text, rows[i].says) || strncmp(error.text, scratch, strlen(scratch)) != 0)
            fail_msg("'%s' lacks '%s'", error.text, rows[i].says);
        cleat_string_free(&settings);
    }
}

static void collect_log(void *user, cleat_log_level level, const char *text) {
    (void)level;
    if (strstr(text, "not used") || strstr(text, "; cleat ")) cleat_string_add(user, "%s", text);
}

/* Members of the fixtures are known; others are logged in one line, unless their value is the default. */
static void members_that_are_not_read_are_named(void **state) {
    static const struct {
        const char *key, *value, *says;
    } rows[] = {{"use_cache", "true", NULL},
                {"rope_theta", "null", NULL},
                {"scale_embeddings", "false", NULL},
                {"model_args", "{\"num_heads\": 2, \"act_layer\": \"silu\"}",
                 "config.json, model_args: not used: act_layer; they may"},
                {"rope_theta", "1e4", "/config.json: not used: rope_theta; they may change what the network computes"}};
    (void)state;
    for (int f = 0; f < FIXTURES; ++f) {
        use_weights(fixtures[f].folder);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
            cleat_string settings = {0}, logged = {0};
            cleat_error error = {0};
            cleat_set_log(collect_log, &logged, CLEAT_LOG_INFO);
            cleat_status status = configure_with(&fixtures[f], rows[i].key, rows[i].value, &settings, &error);
            cleat_set_log(NULL, NULL, CLEAT_LOG_WARNING);
            if (status) fail_msg("%s", error.text);
            if (rows[i].says ? !logged.data || !strstr(logged.data, rows[i].says) : logged.size > 0)
                fail_msg("%s: %s is logged as '%s'", fixtures[f].folder, rows[i].key, logged.data ? logged.data : "");
            cleat_string_free(&settings);
            cleat_string_free(&logged);
        }
    }
}

/* data.image_size: the size of the crop, or of the whole image. */
static void images_have_the_size_of_the_preprocessor(void **state) {
    static const char *const rows[][2] = {
        {"{\"size\": 48}", "data.image_size=48\n"},
        {"{\"size\": {\"shortest_edge\": 40}, \"crop_size\": {\"height\": 32, \"width\": 32}}", "data.image_size=32\n"},
        {"{\"size\": {\"shortest_edge\": 40}, \"crop_size\": null}", "data.image_size=40\n"},
        {"{\"size\": [40, 48]}", "data.image_size=40\n"},
        {"{\"size\": 40, \"crop_size\": 32, \"do_center_crop\": false}", "data.image_size=40\n"},
        {"{\"size\": true}",
         "preprocessor_config.json: 'size' is true; it must be a whole number or a list of numbers"},
    };
    char path[PATH];
    (void)state;
    snprintf(path, sizeof path, "%s/preprocessor_config.json", scratch);
    use_weights("resnet_transformers");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_string settings = {0};
        cleat_error error = {0};
        assert_int_equal(cleat_file_write(path, rows[i][0], strlen(rows[i][0]), NULL), CLEAT_OK);
        const bool good = configure_with(&fixtures[11], "use_cache", NULL, &settings, &error) == CLEAT_OK;
        const char *said = good ? settings.data : error.text;
        if (!strstr(said, rows[i][1])) fail_msg("%s: '%s' lacks '%s'", rows[i][0], said, rows[i][1]);
        cleat_string_free(&settings);
    }
    unlink(path);
}

/* preprocessor_config.json of transformers: bytes times rescale_factor, minus image_mean, divided by
 * image_std. The files follow those that transformers 5.24 saves for ViT and SegFormer. */
static void images_are_prepared_as_the_preprocessor_says(void **state) {
#define PREPARED "\"image_mean\":[0.5,0.5,0.5],\"image_std\":[0.5,0.25,0.5]"
    static const struct {
        const char *file, *says, *logged;
    } rows[] = {
        {"{\"do_normalize\":true,\"do_rescale\":true,\"do_resize\":true,\"image_processor_type\":\"ViTImageProcessor\","
         "\"resample\":2,\"rescale_factor\":0.00392156862745098,\"do_reduce_labels\":false,\"size\":{\"height\":8}"
         "," PREPARED "}",
         "data.mean=0.5 0.5 0.5\ndata.std=0.5 0.25 0.5\n", NULL},
        {"{\"do_normalize\":false," PREPARED "}", "data.mean=0 0 0\ndata.std=1 1 1\n", NULL},
        {"{\"rescale_factor\":0.00784313725490196," PREPARED "}",
         "data.mean=0.25 0.25 0.25\ndata.std=0.25 0.125 0.25\n", NULL},
        {"{\"do_rescale\":false,\"image_mean\":[102,102,102],\"image_std\":[51,51,51]}",
         "data.mean=0.4 0.4 0.4\ndata.std=0.2 0.2 0.2\n", NULL},
        {"{\"resample\":3," PREPARED "}", "data.mean=0.5", "resample is 3; cleat"},
        {"{\"do_center_crop\":true," PREPARED "}", "data.mean=0.5", "do_center_crop is true; cleat"},
        {"{\"gamma\":2," PREPARED "}", "data.mean=0.5", "preprocessor_config.json: not used: gamma;"},
        {"{\"rescale_factor\":0}", NULL, "'rescale_factor' is 0; it must be more than 0"},
        {"{\"do_rescale\":\"no\"}", NULL, "'do_rescale' is \"no\"; it must be true or false"},
    };
    const fixture vit = {"vit_transformers", vits};
    char path[PATH];
    (void)state;
    snprintf(path, sizeof path, "%s/preprocessor_config.json", scratch);
    use_weights(vit.folder);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_string settings = {0}, logged = {0};
        cleat_error error = {0};
        cleat_set_log(collect_log, &logged, CLEAT_LOG_INFO);
        assert_int_equal(cleat_file_write(path, rows[i].file, strlen(rows[i].file), NULL), CLEAT_OK);
        cleat_status status = configure_with(&vit, "use_cache", NULL, &settings, &error);
        cleat_set_log(NULL, NULL, CLEAT_LOG_WARNING);
        if (rows[i].says ? status || !strstr(settings.data, rows[i].says) : !strstr(error.text, rows[i].logged))
            fail_msg("%s: %s%s", rows[i].file, settings.data ? settings.data : "", error.text);
        if (rows[i].says && (rows[i].logged ? !logged.data || !strstr(logged.data, rows[i].logged) : logged.size > 0))
            fail_msg("%s: logged '%s'", rows[i].file, logged.data ? logged.data : "");
        cleat_string_free(&settings);
        cleat_string_free(&logged);
    }
    unlink(path);
#undef PREPARED
}

/* data.max_length is what the positions allow, or less if the tokenizer limits it. */
static void texts_are_cut_as_the_tokenizer_says(void **state) {
    static const char *const rows[][2] = {
        {"null", "max_length=40"}, {"1e30", "max_length=40"}, {"12", "max_length=12"}};
    char path[PATH];
    (void)state;
    snprintf(path, sizeof path, "%s/tokenizer_config.json", scratch);
    use_weights(fixtures[0].folder);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_string settings = {0};
        cleat_error error = {0};
        char text[100];
        snprintf(text, sizeof text, "{\"model_max_length\": %s}", rows[i][0]);
        assert_int_equal(cleat_file_write(path, text, strlen(text), NULL), CLEAT_OK);
        if (configure_with(&fixtures[0], "max_position_embeddings", "40", &settings, &error))
            fail_msg("%s", error.text);
        assert_non_null(strstr(settings.data, rows[i][1]));
        cleat_string_free(&settings);
    }
    unlink(path);
}

/* --- writing --------------------------------------------------------------------------------------------------- */

static long left_allocations = -1; /* -1: unlimited */

static void *limited(size_t size) {
    if (left_allocations == 0) return NULL;
    if (left_allocations > 0) --left_allocations;
    return malloc(size);
}

static cleat_status get(void *user, const char *setting, char *text, size_t size, cleat_error *error) {
    return cleat_profile_get(user, setting, text, size, error);
}

typedef struct exported {
    const char *settings[4];
    const char *sizes;
} exported;

static void expect_whole_or_error(const exported *network) {
    static const char *const labels[] = {"bad", "good"};
    cJSON_Hooks hooks = {limited, free};
    cleat_profile *profile;
    cleat_model *model;
    cleat_error error = {0};
    char *whole = NULL, *text = NULL;
    size_t size, whole_size;
    assert_int_equal(cleat_profile_create(&profile, NULL), CLEAT_OK);
    for (int i = 0; network->settings[i]; ++i)
        if (cleat_profile_set(profile, network->settings[i], &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(cleat_profile_create_model(profile, &model, NULL), CLEAT_OK);
    assert_int_equal(cleat_model_set_sizes(model, network->sizes, NULL), CLEAT_OK);
    const cleat_weights_content content = {.architecture = model->type->architecture(model, false),
                                           .model = model,
                                           .get = get,
                                           .user = profile,
                                           .labels = labels,
                                           .label_count = 2};
    assert_non_null(content.architecture);
    if (cleat_weights_write_config(&content, scratch, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(cleat_file_read(config_path, &whole, &whole_size, NULL), CLEAT_OK);
    cleat_status status = CLEAT_ERR_MEMORY;
    long n = 0;
    for (; status && n < 1000; ++n) {
        unlink(config_path);
        cJSON_InitHooks(&hooks);
        left_allocations = n;
        status = cleat_weights_write_config(&content, scratch, &error);
        left_allocations = -1;
        cJSON_InitHooks(NULL);
        if (!status) break;
        assert_int_equal(status, CLEAT_ERR_MEMORY);
        assert_int_not_equal(access(config_path, F_OK), 0);
    }
    assert_in_range(n, 20, 999);
    assert_int_equal(cleat_file_read(config_path, &text, &size, NULL), CLEAT_OK);
    if (strcmp(text, whole) != 0) fail_msg("%s: after %ld allocations: %s", network->settings[0], n, text);
    cleat_free(text);
    cleat_free(whole);
    cleat_model_destroy(model);
    cleat_profile_destroy(profile);
}

static void exports_are_whole_or_an_error(void **state) {
    static const exported networks[] = {
        {{"model.type=text_classifier", "model.network=bert", NULL}, "{\"classes\": 2}"},
        {{"model.type=text_tagger", "model.network=deberta-v2", NULL}, "{\"classes\": 5}"},
        {{"model.type=text_classifier", "model.network=deberta-v2", "model.position_terms=p2c", NULL},
         "{\"classes\": 2}"},
        {{"model.type=image_resnet", "model.expansion=2", "data.mean=0.5 0.5 0.5", NULL}, "{\"classes\": 2}"},
        {{"model.type=image_resnet", "model.blocks=1 1", NULL}, "{\"classes\": 2}"},
        {{"model.type=image_vit", NULL}, "{\"classes\": 2}"},
        {{"model.type=image_convnext", NULL}, "{\"classes\": 2}"},
        {{"model.type=mask_segformer", "model.stage_order=descending", "data.classes=6", NULL}, "{}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof networks / sizeof *networks; ++i) expect_whole_or_error(&networks[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_of_other_types_are_refused),
        cmocka_unit_test(the_message_says_what_is_wanted),
        cmocka_unit_test(members_that_are_not_read_are_named),
        cmocka_unit_test(images_are_prepared_as_the_preprocessor_says),
        cmocka_unit_test(images_have_the_size_of_the_preprocessor),
        cmocka_unit_test(texts_are_cut_as_the_tokenizer_says),
        cmocka_unit_test(exports_are_whole_or_an_error),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
