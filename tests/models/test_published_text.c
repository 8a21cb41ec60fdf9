/* Published text encoders: every tensor of a file is assigned, the settings of config.json, and refusals. */
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
#include "graph/graph.h"
#include "graph/store.h"
#include "models/published/labels.h"
#include "models/published/text.h"
#include "platform/files.h"
#include "profile/adopt.h"
#include "source_path.h"

enum { PATH = 512 };

/* --- a profile, a model, its parameters ----------------------------------------------------------------------- */

static cleat_profile *profile_of(const char *type, const char *const *settings) {
    char assignment[80];
    cleat_profile *profile;
    cleat_error error = {0};
    snprintf(assignment, sizeof assignment, "model.type=%s", type);
    assert_int_equal(cleat_profile_create(&profile, NULL), CLEAT_OK);
    assert_int_equal(cleat_profile_set(profile, assignment, NULL), CLEAT_OK);
    for (; settings && *settings; ++settings)
        if (cleat_profile_set(profile, *settings, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return profile;
}

static void expect_setting(const cleat_profile *profile, const char *name, const char *value) {
    char text[CLEAT_PROFILE_TEXT];
    assert_int_equal(cleat_profile_get(profile, name, text, sizeof text, NULL), CLEAT_OK);
    if (strcmp(text, value) != 0) fail_msg("%s is '%s', not '%s'", name, text, value);
}

typedef struct network {
    cleat_model *model;
    cleat_store *store;
    cleat_graph *graph;
} network;

static network build(const cleat_profile *profile, int64_t classes) {
    network made;
    cleat_model_graph built;
    char sizes[64];
    cleat_error error = {0};
    snprintf(sizes, sizeof sizes, "{\"classes\": %lld}", (long long)classes);
    assert_int_equal(cleat_profile_create_model(profile, &made.model, NULL), CLEAT_OK);
    assert_int_equal(cleat_model_set_sizes(made.model, sizes, NULL), CLEAT_OK);
    assert_int_equal(cleat_store_create(&made.store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(made.store, "network", &made.graph, NULL), CLEAT_OK);
    cleat_model_build(made.model, made.graph, CLEAT_MODE_TRAIN, 2, 8, &built);
    if (cleat_graph_status(made.graph, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return made;
}

static void drop(network *made) {
    cleat_graph_destroy(made->graph);
    cleat_store_destroy(made->store);
    cleat_model_destroy(made->model);
}

/* --- files ---------------------------------------------------------------------------------------------------- */

typedef struct folder {
    char path[64];
} folder;

static int make_folder(void **state) {
    folder *f = cleat_alloc(1, sizeof *f);
    strcpy(f->path, "/tmp/cleat-text-XXXXXX");
    if (!mkdtemp(f->path)) return 1;
    *state = f;
    return 0;
}

static int remove_folder(void **state) {
    folder *f = *state;
    cleat_name_list files = {0};
    char path[PATH];
    cleat_listing_read(f->path, NULL, &files, NULL);
    for (size_t i = 0; i < files.count; ++i) {
        snprintf(path, sizeof path, "%s/%s", f->path, files.names[i]);
        unlink(path);
    }
    cleat_name_list_free(&files);
    rmdir(f->path);
    cleat_free(f);
    return 0;
}

static void put(const folder *f, const char *name, const char *text) {
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    assert_int_equal(cleat_file_write(path, text, strlen(text), NULL), CLEAT_OK);
}

static const char bert_config[] =
    "{\"model_type\": \"bert\", \"vocab_size\": 50, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"num_hidden_layers\": 2, \"intermediate_size\": 24, \"hidden_act\": \"gelu\", \"hidden_dropout_prob\": 0.25, "
    "\"max_position_embeddings\": 40, \"type_vocab_size\": 2, \"layer_norm_eps\": 1e-12}";

/* Creates a folder with this config.json, whose `key` (NULL: none) is replaced by the JSON `value` (NULL:
 * removed). */
static cleat_weights *open_config(const folder *f, const char *key, const char *value) {
    const float zero = 0;
    const cleat_st_tensor tensor = {
        .name = "bert.embeddings.position_ids", .dtype = CLEAT_ST_F32, .rank = 1, .shape = {1}, .data = &zero};
    char path[PATH];
    cleat_weights *weights = NULL;
    cleat_error error = {0};
    cJSON *config = cJSON_Parse(bert_config);
    if (key) cJSON_DeleteItemFromObjectCaseSensitive(config, key);
    if (key && value) cJSON_AddItemToObject(config, key, cJSON_Parse(value));
    char *text = cJSON_Print(config);
    put(f, "config.json", text);
    cJSON_free(text);
    cJSON_Delete(config);
    snprintf(path, sizeof path, "%s/model.safetensors", f->path);
    assert_int_equal(cleat_safetensors_write(path, &tensor, 1, NULL, 0, NULL), CLEAT_OK);
    if (cleat_weights_open(f->path, &weights, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return weights;
}

/* Returns the profile after it has adopted config.json. */
static cleat_profile *adopt(const folder *f, const char *type, const char *const *settings, const char *key,
                            const char *value) {
    cleat_profile *profile = profile_of(type, settings);
    cleat_weights *weights = open_config(f, key, value);
    cleat_error error = {0};
    if (cleat_profile_adopt(profile, weights, &error) != CLEAT_OK) fail_msg("%s", error.text);
    cleat_weights_close(weights);
    return profile;
}

static void expect_type_refused(const folder *f, const char *type, const char *const *settings, const char *key,
                                const char *value, const char *says) {
    cleat_profile *profile = profile_of(type, settings);
    cleat_weights *weights = open_config(f, key, value);
    cleat_error error = {0};
    assert_int_equal(cleat_profile_set(profile, "data.path=texts.csv", NULL), CLEAT_OK);
    cleat_status status = cleat_profile_adopt(profile, weights, &error);
    if (!status) status = cleat_profile_check(profile, &error);
    assert_int_not_equal(status, CLEAT_OK);
    if (!strstr(error.text, says)) fail_msg("'%s' lacks '%s'", error.text, says);
    cleat_weights_close(weights);
    cleat_profile_destroy(profile);
}

static void expect_refused(const folder *f, const char *const *settings, const char *key, const char *value,
                           const char *says) {
    expect_type_refused(f, "text_classifier", settings, key, value, says);
}

/* --- tensors -------------------------------------------------------------------------------------------------- */

static cleat_status count(void *user, cleat_tensor *tensor, int64_t first, int64_t count, const float *values,
                          cleat_error *error) {
    (void)tensor, (void)count, (void)values, (void)error;
    *(size_t *)user += first == 0;
    return CLEAT_OK;
}

static cleat_status draw(void *user, cleat_tensor *tensor, cleat_error *error) {
    (void)user, (void)tensor, (void)error;
    return CLEAT_OK;
}

/* Loads tests/published/NAME as a family of this type. */
static cleat_weight_report load(const char *name, const char *type, int64_t classes) {
    char path[PATH];
    size_t written = 0;
    cleat_weights *weights = NULL;
    cleat_weight_report report = {0};
    cleat_error error = {0};
    const cleat_architecture *architecture = NULL;
    cleat_profile *profile = profile_of(type, NULL);
    snprintf(path, sizeof path, "%s/%s", source_path("tests/published"), name);
    if (cleat_weights_open(path, &weights, &error) != CLEAT_OK) fail_msg("%s", error.text);
    if (cleat_profile_adopt(profile, weights, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(cleat_profile_architecture(profile, weights, &architecture, NULL), CLEAT_OK);
    network made = build(profile, classes);
    assert_ptr_equal(made.model->type->architecture(made.model, false), architecture);
    const cleat_weight_target target = {.architecture = architecture,
                                        .model = made.model,
                                        .store = made.store,
                                        .prefix = "",
                                        .write = count,
                                        .draw = draw,
                                        .user = &written};
    if (cleat_weights_load(weights, &target, &report, &error) != CLEAT_OK) fail_msg("%s: %s", name, error.text);
    assert_int_equal(written, report.tensors[CLEAT_WEIGHT_TAKEN]);
    assert_int_equal(written + report.tensors[CLEAT_WEIGHT_NEW], cleat_store_count(made.store));
    drop(&made);
    cleat_weights_close(weights);
    cleat_profile_destroy(profile);
    return report;
}

static void every_tensor_has_its_place(void **state) {
    static const struct {
        const char *name, *type;
        int64_t classes;
    } files[] = {{"bert_classifier", "text_classifier", 3},
                 {"bert_tagger", "text_tagger", 0},
                 {"distilbert_tagger", "text_tagger", 0},
                 {"electra_tagger", "text_tagger", 0},
                 {"roberta_classifier", "text_classifier", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
        char path[PATH];
        cleat_weights *weights = NULL;
        snprintf(path, sizeof path, "%s/%s", source_path("tests/published"), files[i].name);
        assert_int_equal(cleat_weights_open(path, &weights, NULL), CLEAT_OK);
        const cleat_st_tensor *bias = cleat_weights_find(weights, "classifier.bias");
        if (!bias) bias = cleat_weights_find(weights, "classifier.out_proj.bias");
        assert_non_null(bias);
        cleat_weight_report report = load(files[i].name, files[i].type, bias->shape[0]);
        assert_int_equal(report.tensors[CLEAT_WEIGHT_NEW], 0);
        for (size_t k = 0; k < report.count; ++k)
            if (report.lines[k].fate == CLEAT_WEIGHT_LEFT)
                assert_string_equal(report.lines[k].reason, "not needed here");
        cleat_weight_report_free(&report);
        cleat_weights_close(weights);
    }
}

/* Files of a masked language model have its head, under the names of transformers or the authors. */
static void a_masked_language_model_has_its_head(void **state) {
    static const char *const names[] = {"bert_masked",    "roberta_masked", "distilbert_masked",
                                        "electra_masked", "deberta_masked", "modernbert_masked"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        cleat_weight_report report = load(names[i], "text_pretrain", 2);
        bool decoder = false;
        assert_int_equal(report.tensors[CLEAT_WEIGHT_NEW], 0);
        for (size_t k = 0; k < report.count; ++k) {
            if (report.lines[k].fate != CLEAT_WEIGHT_LEFT) continue;
            assert_string_equal(report.lines[k].reason, "not needed here");
            decoder |= strcmp(report.lines[k].name, "cls.predictions.decoder.weight") == 0;
        }
        assert_int_equal(decoder, i == 0); /* the only file with a copy of the word embeddings */
        cleat_weight_report_free(&report);
    }
}

static size_t count_like(const cleat_weight_report *report, cleat_weight_fate fate, const char *part) {
    size_t found = 0;
    for (size_t i = 0; i < report->count; ++i)
        if (report->lines[i].fate == fate && strstr(report->lines[i].name, part)) found += report->lines[i].count;
    return found;
}

/* Pretraining continues from a classifier, and a classifier starts from pretraining: all but the heads is loaded. */
static void heads_of_masked_language_models_are_exchanged(void **state) {
    (void)state;
    cleat_weight_report report = load("roberta_classifier", "text_pretrain", 2);
    assert_int_equal(report.tensors[CLEAT_WEIGHT_NEW], 5);
    assert_int_equal(count_like(&report, CLEAT_WEIGHT_NEW, "mlm."), 5);
    assert_int_equal(count_like(&report, CLEAT_WEIGHT_LEFT, "classifier."), 4);
    cleat_weight_report_free(&report);
    report = load("electra_masked", "text_classifier", 3);
    assert_int_equal(report.tensors[CLEAT_WEIGHT_NEW], 4);
    assert_int_equal(count_like(&report, CLEAT_WEIGHT_NEW, "head."), 4);
    assert_int_equal(count_like(&report, CLEAT_WEIGHT_LEFT, "generator_"), report.tensors[CLEAT_WEIGHT_LEFT]);
    assert_int_equal(report.tensors[CLEAT_WEIGHT_LEFT], 5);
    cleat_weight_report_free(&report);
}

/* The word embeddings are also the last layer, which may not differ in the file. */
static void an_untied_head_is_refused(void **state) {
    const char *const length[] = {"data.max_length=32", NULL};
    expect_type_refused(*state, "text_pretrain", length, "tie_word_embeddings", "false", "tie_word_embeddings");
    cleat_profile *profile = adopt(*state, "text_pretrain", NULL, "tie_word_embeddings", "true");
    expect_setting(profile, "model.embedding_rows", "50");
    cleat_profile_destroy(profile);
    profile = adopt(*state, "text_classifier", NULL, "tie_word_embeddings", "false");
    cleat_profile_destroy(profile);
}

/* If the profile's sizes differ from the weights', the message names a profile without sizes. */
static void a_profile_without_sizes_is_named(void **state) {
    const char *const width[] = {"model.d_model=128", NULL};
    expect_type_refused(*state, "text_pretrain", width, NULL, NULL, "train the profile text_adapt");
    expect_refused(*state, width, NULL, NULL, "train the profile text_classify");
}

/* A tagger starts from a classifier: it loads the blocks, but not the heads. */
static void the_head_of_another_task_is_drawn_anew(void **state) {
    (void)state;
    cleat_weight_report report = load("bert_classifier", "text_tagger", 13);
    bool out = false, pooler = false;
    assert_int_equal(report.tensors[CLEAT_WEIGHT_NEW], 2);
    for (size_t i = 0; i < report.count; ++i) {
        const cleat_weight_line *line = &report.lines[i];
        out |= line->fate == CLEAT_WEIGHT_NEW && strcmp(line->name, "head.out.weight") == 0;
        pooler |= line->fate == CLEAT_WEIGHT_LEFT && strstr(line->name, "pooler.dense.weight");
    }
    assert_true(out && pooler);
    cleat_weight_report_free(&report);
}

/* --- settings ------------------------------------------------------------------------------------------------- */

static void the_sizes_come_from_config(void **state) {
    const folder *f = *state;
    cleat_profile *profile = adopt(f, "text_classifier", NULL, "classifier_dropout", "0.5");
    expect_setting(profile, "model.network", "bert");
    expect_setting(profile, "model.embedding_rows", "50");
    expect_setting(profile, "model.d_model", "16");
    expect_setting(profile, "model.heads", "2");
    expect_setting(profile, "model.layers", "2");
    expect_setting(profile, "model.d_ff", "24");
    expect_setting(profile, "model.dropout", "0.25");
    expect_setting(profile, "model.head_dropout", "0.5");
    expect_setting(profile, "model.max_positions", "40");
    expect_setting(profile, "model.first_position", "0");
    expect_setting(profile, "model.token_types", "2");
    expect_setting(profile, "model.norm_eps", "1e-12");
    expect_setting(profile, "data.max_length", "40");
    expect_setting(profile, "data.vocabulary", f->path);
    cleat_profile_destroy(profile);
}

static void positions_of_roberta_start_after_the_padding(void **state) {
    const folder *f = *state;
    const char *const lower[] = {"data.max_length=30", NULL};
    cleat_profile *profile = adopt(f, "text_tagger", NULL, "model_type", "\"xlm-roberta\"");
    expect_setting(profile, "model.network", "xlm-roberta");
    expect_setting(profile, "model.first_position", "2");
    expect_setting(profile, "data.max_length", "38");
    expect_setting(profile, "model.head_dropout", "auto");
    cleat_profile_destroy(profile);
    profile = adopt(f, "text_tagger", lower, "model_type", "\"roberta\"");
    expect_setting(profile, "data.max_length", "30");
    cleat_profile_destroy(profile);
}

static void labels_keep_their_order(void **state) {
    static const char sentiments[] = "{\"0\": \"positive\", \"1\": \"negative\", \"2\": \"neutral\"}",
                      tags[] = "{\"0\": \"O\", \"1\": \"B-PER\", \"2\": \"I-PER\", \"3\": \"B-LOC\", \"4\": \"I-LOC\"}",
                      unordered[] = "{\"0\": \"B-PER\", \"1\": \"I-PER\", \"2\": \"O\"}",
                      numbers[] = "{\"0\": \"LABEL_0\", \"1\": \"LABEL_1\"}",
                      blanks[] = "{\"0\": \"very good\", \"1\": \"bad\"}";
    static const struct {
        const char *type, *names, *labels;
    } rows[] = {{"text_classifier", sentiments, "positive negative neutral"},
                {"text_classifier", tags, "O B-PER I-PER B-LOC I-LOC"},
                {"text_tagger", tags, "PER LOC"},
                {"text_tagger", unordered, ""},
                {"text_classifier", numbers, ""},
                {"text_classifier", blanks, "\"very good\" bad"},
                {"text_tagger", "{}", ""}};
    const char *const own[] = {"data.labels=a b c", NULL};
    const folder *f = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_profile *profile = adopt(f, rows[i].type, NULL, "id2label", rows[i].names);
        expect_setting(profile, "data.labels", rows[i].labels);
        cleat_profile_destroy(profile);
    }
    cleat_profile *profile = adopt(f, "text_classifier", own, "id2label", sentiments);
    expect_setting(profile, "data.labels", "a b c");
    cleat_profile_destroy(profile);
}

static void what_does_not_fit_is_refused(void **state) {
    const folder *f = *state;
    const char *const longer[] = {"data.max_length=41", NULL}, *const wider[] = {"model.d_model=32", NULL},
                      *const other[] = {"model.network=electra", NULL},
                      *const narrow[] = {"model.embedding_width=8", NULL};
    expect_refused(f, NULL, "hidden_act", "\"gelu_new\"", "hidden_act is \"gelu_new\"; only \"gelu\" is supported");
    expect_refused(f, NULL, "position_embedding_type", "\"relative_key\"", "only \"absolute\" is supported");
    expect_refused(f, NULL, "hidden_size", NULL, "has no 'hidden_size'");
    expect_refused(f, NULL, "num_attention_heads", "5", "d_model must be a multiple of heads");
    expect_refused(f, NULL, "num_hidden_layers", "\"many\"",
                   "'num_hidden_layers' is \"many\"; it must be a whole number");
    expect_refused(f, NULL, "model_type", "\"gpt2\"", "this model.type can start from: bert, roberta");
    expect_refused(f, longer, NULL, NULL, "there are positions for 40 tokens");
    expect_refused(f, wider, NULL, NULL, "model.d_model=32 contradicts");
    expect_refused(f, other, NULL, NULL, "model.network=electra contradicts");
    expect_refused(f, narrow, NULL, NULL, "the embeddings of this network have the width d_model = 16");
}

/* --- graphs --------------------------------------------------------------------------------------------------- */

static bool has_input(const network *made, const char *name) {
    for (size_t i = 0; i < made->graph->tensor_count; ++i)
        if (made->graph->tensors[i]->role == CLEAT_ROLE_INPUT && strcmp(made->graph->tensors[i]->name, name) == 0)
            return true;
    return false;
}

static void types_are_read_of_pairs_only(void **state) {
    static const struct {
        const char *network, *column;
        bool types;
    } rows[] = {{"bert", "second", true},        {"electra", "second", true},  {"bert", "", false},
                {"distilbert", "second", false}, {"roberta", "second", false}, {"cleat", "second", false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char name[64], column[64];
        snprintf(name, sizeof name, "model.network=%s", rows[i].network);
        snprintf(column, sizeof column, "data.text_pair_column=%s", rows[i].column);
        const char *const settings[] = {name, column, "model.d_model=16", "model.heads=2", "model.layers=1", NULL};
        cleat_profile *profile = profile_of("text_classifier", settings);
        network made = build(profile, 3);
        assert_int_equal(has_input(&made, "types"), rows[i].types);
        drop(&made);
        cleat_profile_destroy(profile);
    }
}

static void parameters_have_a_depth(void **state) {
    const char *const settings[] = {"model.network=electra", "model.embedding_width=8", "model.d_model=16",
                                    "model.heads=2",         "model.layers=2",          NULL};
    (void)state;
    cleat_profile *profile = profile_of("text_classifier", settings);
    network made = build(profile, 3);
    const cleat_model_class *family = made.model->type;
    for (size_t i = 0; i < cleat_store_count(made.store); ++i) {
        const char *name = cleat_store_param(made.store, i)->name;
        const int64_t depth = family->layer_of(made.model, name);
        const int64_t expected = strncmp(name, "emb.", 4) == 0    ? 0
                                 : strncmp(name, "head.", 5) == 0 ? 3
                                                                  : 1 + name[strlen("blocks.")] - '0';
        if (depth != expected) fail_msg("%s has depth %lld", name, (long long)depth);
    }
    drop(&made);
    cleat_profile_destroy(profile);
}

/* Another network's tokenizer has tokens that the embeddings lack. */
static void a_larger_vocabulary_is_refused(void **state) {
    const folder *f = *state;
    const char *const settings[] = {"model.network=bert", "model.embedding_rows=10", "data.cache=false",
                                    "data.max_length=16", NULL};
    cleat_profile *profile = profile_of("text_classifier", settings);
    cleat_model *model = NULL;
    cleat_dataset *dataset = NULL;
    char path[PATH];
    cleat_error error = {0};
    put(f, "train.csv", "text,label\nsome words of a text,a\nmany others besides,b\nsome more,a\nthe last,b\n");
    snprintf(path, sizeof path, "%s/train.csv", f->path);
    assert_int_equal(cleat_profile_create_model(profile, &model, NULL), CLEAT_OK);
    assert_int_equal(cleat_model_open_data(model, path, CLEAT_MODE_TRAIN, NULL, &dataset, &error), CLEAT_ERR_PROFILE);
    assert_non_null(strstr(error.text, "tokens, and the word embeddings have model.embedding_rows = 10"));
    cleat_model_destroy(model);
    cleat_profile_destroy(profile);
}

/* Rows of the output layer belong to labels, in order. */
static void the_output_layer_of_other_labels_is_not_taken(void **state) {
    static const struct {
        const char *names;
        bool keeps;
    } rows[] = {{"{\"0\": \"a\", \"1\": \"b\"}", true},
                {"{\"0\": \"b\", \"1\": \"a\"}", false},
                {"{\"0\": \"yes\", \"1\": \"no\"}", false},
                {"{\"0\": \"LABEL_0\", \"1\": \"LABEL_1\"}", true}};
    const folder *f = *state;
    const char *const settings[] = {"model.network=bert", "data.cache=false", "data.max_length=16", NULL};
    cleat_weights *nameless = open_config(f, "id2label", rows[3].names);
    assert_true(cleat_published_same_labels(nameless, (cleat_class_info[]){{.name = "1"}, {.name = "2"}}, 2));
    assert_false(cleat_published_same_labels(nameless, (cleat_class_info[]){{.name = "0"}, {.name = "4"}}, 2));
    cleat_weights_close(nameless);
    cleat_profile *profile = profile_of("text_classifier", settings);
    cleat_model *model = NULL;
    cleat_dataset *dataset = NULL;
    char path[PATH];
    cleat_error error = {0};
    put(f, "train.csv", "text,label\nsome words of a text,a\nmany others besides,b\nsome more,a\nthe last,b\n");
    snprintf(path, sizeof path, "%s/train.csv", f->path);
    assert_int_equal(cleat_profile_create_model(profile, &model, NULL), CLEAT_OK);
    if (cleat_model_open_data(model, path, CLEAT_MODE_TRAIN, NULL, &dataset, &error)) fail_msg("%s", error.text);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_weights *weights = open_config(f, "id2label", rows[i].names);
        assert_int_equal(cleat_published_keeps_text(model, weights, "head.out.weight"), rows[i].keeps);
        assert_true(cleat_published_keeps_text(model, weights, "head.dense.weight"));
        cleat_weights_close(weights);
    }
    cleat_dataset_destroy(dataset);
    cleat_model_destroy(model);
    cleat_profile_destroy(profile);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tensor_has_its_place),
        cmocka_unit_test(the_head_of_another_task_is_drawn_anew),
        cmocka_unit_test(a_masked_language_model_has_its_head),
        cmocka_unit_test(heads_of_masked_language_models_are_exchanged),
        cmocka_unit_test_setup_teardown(an_untied_head_is_refused, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_profile_without_sizes_is_named, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(the_sizes_come_from_config, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(positions_of_roberta_start_after_the_padding, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(labels_keep_their_order, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused, make_folder, remove_folder),
        cmocka_unit_test(types_are_read_of_pairs_only),
        cmocka_unit_test(parameters_have_a_depth),
        cmocka_unit_test_setup_teardown(a_larger_vocabulary_is_refused, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(the_output_layer_of_other_labels_is_not_taken, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
