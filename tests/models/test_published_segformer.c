/* Published SegFormers: names of all tensors, sizes from config.json, config.json of exports, and files of
 * other kinds. */
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
#include "core/memory.h"
#include "core/string.h"
#include "graph/graph.h"
#include "graph/store.h"
#include "models/published/segformer.h"
#include "platform/files.h"
#include "source_path.h"

/* --- a model and its parameters ------------------------------------------------------------------------------- */

typedef struct network {
    cleat_model *model;
    cleat_store *store;
    cleat_graph *graph;
} network;

static network build(const char *const *settings, const char *sizes, int64_t length) {
    network made;
    cleat_profile *profile;
    cleat_model_graph built;
    cleat_error error = {0};
    assert_int_equal(cleat_profile_create(&profile, NULL), CLEAT_OK);
    for (; *settings; ++settings)
        if (cleat_profile_set(profile, *settings, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(cleat_profile_create_model(profile, &made.model, NULL), CLEAT_OK);
    assert_int_equal(cleat_model_set_sizes(made.model, sizes, NULL), CLEAT_OK);
    assert_int_equal(cleat_store_create(&made.store, NULL), CLEAT_OK);
    assert_int_equal(cleat_graph_create(made.store, "network", &made.graph, NULL), CLEAT_OK);
    cleat_model_build(made.model, made.graph, CLEAT_MODE_PREDICT, 1, length, &built);
    if (cleat_graph_status(made.graph, &error) != CLEAT_OK) fail_msg("%s", error.text);
    cleat_profile_destroy(profile);
    return made;
}

static void drop(network *made) {
    cleat_graph_destroy(made->graph);
    cleat_store_destroy(made->store);
    cleat_model_destroy(made->model);
}

/* The sizes of tests/published/segformer. */
#define SIZES                                                                                                          \
    "model.stage_widths=8 8 12 16", "model.stage_heads=1 2 3 4", "model.stage_depths=1 1 1 1",                         \
        "model.decoder_width=12", "model.stage_order=descending"

/* --- names ---------------------------------------------------------------------------------------------------- */

static void expect_sources(const char *param, bool other, const char *first, const char *second, int rank, bool head) {
    cleat_weight_sources sources;
    assert_true(cleat_architecture_sources(&cleat_published_segformer, NULL, other, param, &sources));
    assert_string_equal(sources.names[0], first);
    assert_int_equal(sources.count, second ? 2 : 1);
    if (second) assert_string_equal(sources.names[1], second);
    assert_int_equal(sources.rank, rank);
    assert_int_equal(sources.head, head);
}

static void parameters_have_the_published_names(void **state) {
    (void)state;
    expect_sources("pe.3.bias", false, "segformer.encoder.patch_embeddings.3.proj.bias", NULL, 0, false);
    expect_sources("st.2.17.att.kv.weight", false, "segformer.encoder.block.2.17.attention.self.key.weight",
                   "segformer.encoder.block.2.17.attention.self.value.weight", 0, false);
    expect_sources("st.0.1.dw.weight", false, "segformer.encoder.block.0.1.mlp.dwconv.dwconv.weight", NULL, 4, false);
    expect_sources("st.0.1.dw.bias", false, "segformer.encoder.block.0.1.mlp.dwconv.dwconv.bias", NULL, 0, false);
    expect_sources("bn.running_var", false, "decode_head.batch_norm.running_var", NULL, 0, true);
    expect_sources("cls.weight", false, "decode_head.classifier.weight", NULL, 4, true);
    expect_sources("cls.bias", false, "decode_head.classifier.bias", NULL, 0, true);
    expect_sources("st.1.0.att.red.weight", true,
                   "segformer.stages.1.blocks.0.attention.sequence_reduction.sequence_reduction.weight", NULL, 0,
                   false);
    expect_sources("dec.2.weight", true, "decode_head.linear_projections.2.proj.weight", NULL, 0, true);
}

static cleat_status count_write(void *user, cleat_tensor *tensor, int64_t first, int64_t count, const float *values,
                                cleat_error *error) {
    (void)tensor;
    (void)count;
    (void)values;
    (void)error;
    *(size_t *)user += first == 0;
    return CLEAT_OK;
}

static cleat_status count_draw(void *user, cleat_tensor *tensor, cleat_error *error) {
    (void)user;
    (void)tensor;
    (void)error;
    return CLEAT_OK;
}

static cleat_weight_report load_file(const char *path, const network *made, const cleat_architecture *architecture,
                                     const cleat_architecture *shared, size_t *written) {
    cleat_weights *weights = NULL;
    cleat_weight_report report = {0};
    cleat_error error = {0};
    if (cleat_weights_open(path, &weights, &error) != CLEAT_OK) fail_msg("%s", error.text);
    const cleat_weight_target target = {.architecture = architecture,
                                        .shared = shared,
                                        .model = made->model,
                                        .store = made->store,
                                        .prefix = "",
                                        .write = count_write,
                                        .draw = count_draw,
                                        .user = written};
    if (cleat_weights_load(weights, &target, &report, &error) != CLEAT_OK) fail_msg("%s", error.text);
    cleat_weights_close(weights);
    return report;
}

static cleat_weight_report load(const network *made, const cleat_architecture *architecture, size_t *written) {
    return load_file(source_path("tests/published/segformer"), made, architecture, NULL, written);
}

static bool is_reported(const cleat_weight_report *report, cleat_weight_fate fate, const char *name) {
    for (size_t i = 0; i < report->count; ++i)
        if (report->lines[i].fate == fate && strcmp(report->lines[i].name, name) == 0) return true;
    return false;
}

static void every_tensor_of_a_file_is_taken(void **state) {
    size_t written = 0;
    (void)state;
    network made =
        build((const char *const[]){"model.type=mask_segformer", SIZES, NULL}, "{\"classes\": 3, \"inputs\": 3}", 64);
    cleat_weight_report report = load(&made, &cleat_published_segformer, &written);
    assert_int_equal(report.tensors[CLEAT_WEIGHT_NEW], 0);
    assert_int_equal(report.tensors[CLEAT_WEIGHT_LEFT], 1); /* a count that is not required */
    assert_true(is_reported(&report, CLEAT_WEIGHT_LEFT, "decode_head.batch_norm.num_batches_tracked"));
    assert_int_equal(report.tensors[CLEAT_WEIGHT_TAKEN], made.store->count + made.store->buffer_count);
    assert_int_equal(written, made.store->count + made.store->buffer_count);
    cleat_weight_report_free(&report);
    drop(&made);
}

static void other_classes_have_a_new_last_layer(void **state) {
    size_t written = 0;
    (void)state;
    network made =
        build((const char *const[]){"model.type=mask_segformer", SIZES, "data.classes=7", NULL}, "{\"inputs\": 3}", 64);
    cleat_weight_report report = load(&made, &cleat_published_segformer, &written);
    assert_int_equal(report.tensors[CLEAT_WEIGHT_NEW], 2);
    assert_true(is_reported(&report, CLEAT_WEIGHT_NEW, "cls.weight"));
    assert_true(is_reported(&report, CLEAT_WEIGHT_TAKEN, "fuse.weight"));
    cleat_weight_report_free(&report);
    drop(&made);
}

/* EmberFormer loads the SegFormer, and with three features also its first convolution. */
static void emberformer_takes_the_spatial_part(void **state) {
    (void)state;
    for (int features = 3; features <= 4; ++features) {
        char setting[32];
        size_t written = 0;
        snprintf(setting, sizeof setting, "model.features=%d", features);
        network made =
            build((const char *const[]){"model.type=emberformer", SIZES, "model.d_model=16", "model.heads=2",
                                        "model.layers=1", "model.d_ff=16", "data.image_size=64", setting, NULL},
                  "{}", 3);
        cleat_weight_report report = load(&made, &cleat_published_emberformer_decoder, &written);
        assert_int_equal(is_reported(&report, CLEAT_WEIGHT_NEW, "pe.*.weight"), features == 4);
        assert_true(is_reported(&report, CLEAT_WEIGHT_NEW, "inp.weight"));
        assert_true(is_reported(&report, CLEAT_WEIGHT_NEW, "skip.weight"));
        assert_true(is_reported(&report, CLEAT_WEIGHT_TAKEN, "st.*.*.att.kv.weight"));
        assert_true(is_reported(&report, CLEAT_WEIGHT_TAKEN, "fuse.weight"));
        cleat_weight_report_free(&report);
        drop(&made);
    }
}

/* The parameters of a network, all zeros, as in a checkpoint of cleat. */
static void write_own(const network *made, const char *path) {
    const size_t count = made->store->count + made->store->buffer_count;
    cleat_st_tensor *tensors = cleat_alloc(count, sizeof *tensors);
    for (size_t i = 0; i < count; ++i) {
        const cleat_tensor *from =
            i < made->store->count ? made->store->params[i] : made->store->buffers[i - made->store->count];
        tensors[i] = (cleat_st_tensor){.name = from->name,
                                       .dtype = CLEAT_ST_F32,
                                       .rank = from->rank,
                                       .data = cleat_alloc((size_t)cleat_tensor_elements(from), sizeof(float))};
        memcpy(tensors[i].shape, from->shape, (size_t)from->rank * sizeof *from->shape);
    }
    assert_int_equal(cleat_safetensors_write(path, tensors, count, NULL, 0, NULL), CLEAT_OK);
    for (size_t i = 0; i < count; ++i) cleat_free((void *)tensors[i].data);
    cleat_free(tensors);
}

/* EmberFormer also loads its spatial part from a run of mask_segformer. */
static void emberformer_starts_from_a_run_of_masks(void **state) {
    char path[64] = "/tmp/cleat-masks-XXXXXX.safetensors";
    size_t written = 0;
    (void)state;
    const int file = mkstemps(path, 12);
    assert_true(file >= 0);
    close(file);
    network masks =
        build((const char *const[]){"model.type=mask_segformer", SIZES, NULL}, "{\"classes\": 3, \"inputs\": 3}", 64);
    write_own(&masks, path);
    network made =
        build((const char *const[]){"model.type=emberformer", SIZES, "model.d_model=16", "model.heads=2",
                                    "model.layers=1", "model.d_ff=16", "data.image_size=64", "model.features=4", NULL},
              "{}", 3);
    const cleat_model_origin *origin = cleat_model_origin_of(made.model->type, "mask_segformer");
    assert_non_null(origin);
    assert_null(cleat_model_origin_of(made.model->type, "image_vit"));
    cleat_weight_report report = load_file(path, &made, NULL, origin->shared, &written);
    assert_true(is_reported(&report, CLEAT_WEIGHT_NEW, "pe.*.weight"));
    assert_true(is_reported(&report, CLEAT_WEIGHT_NEW, "inp.weight"));
    assert_true(is_reported(&report, CLEAT_WEIGHT_TAKEN, "st.*.*.att.kv.weight"));
    assert_true(is_reported(&report, CLEAT_WEIGHT_TAKEN, "fuse.weight"));
    assert_int_equal(report.tensors[CLEAT_WEIGHT_LEFT],
                     3); /* pe.0.weight, and a cls with a different number of classes */
    cleat_weight_report_free(&report);
    drop(&made);
    drop(&masks);
    unlink(path);
}

/* --- config.json ---------------------------------------------------------------------------------------------- */

/* A file with the first convolution only, for networks whose sizes are in config.json. */
static void write_folder(const char *folder, const char *config) {
    static const char header[] = "{\"segformer.encoder.patch_embeddings.0.proj.weight\":{\"dtype\":\"F32\",\"shape\":"
                                 "[1,3,1,1],\"data_offsets\":[0,12]}}";
    const uint64_t size = sizeof header - 1;
    const float values[3] = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fwrite(&size, sizeof size, 1, file) == 1 && fwrite(header, size, 1, file) == 1 &&
                fwrite(values, sizeof values, 1, file) == 1);
    assert_int_equal(fclose(file), 0);
    snprintf(path, sizeof path, "%s/config.json", folder);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(config, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static cleat_status note(void *user, const char *setting, const char *value, const char *key, cleat_error *error) {
    (void)key;
    (void)error;
    cleat_string_add(user, "%s=%s\n", setting, value);
    return CLEAT_OK;
}

static const char *scratch_folder(void) {
    static char folder[64];
    if (!*folder) {
        snprintf(folder, sizeof folder, "/tmp/cleat_segformer_XXXXXX");
        assert_non_null(mkdtemp(folder));
    }
    return folder;
}

static cleat_status configure(const char *config, cleat_string *settings, cleat_error *error) {
    cleat_weights *weights = NULL;
    write_folder(scratch_folder(), config);
    if (cleat_weights_open(scratch_folder(), &weights, error) != CLEAT_OK) fail_msg("%s", error->text);
    const cleat_setting_sink sink = {.set = note, .user = settings};
    cleat_status status = cleat_architecture_configure(&cleat_published_segformer, weights, &sink, error);
    cleat_weights_close(weights);
    return status;
}

static void expect_settings(const char *config, const char *const *wanted) {
    cleat_string settings = {0};
    cleat_error error = {0};
    if (configure(config, &settings, &error) != CLEAT_OK) fail_msg("%s", error.text);
    for (; *wanted; ++wanted)
        if (!strstr(settings.data, *wanted)) fail_msg("'%s' lacks '%s'", settings.data, *wanted);
    cleat_string_free(&settings);
}

#define B3                                                                                                             \
    "\"hidden_sizes\":[64,128,320,512],\"depths\":[3,4,18,3],\"num_attention_heads\":[1,2,5,8],"                       \
    "\"decoder_hidden_size\":768"

static void sizes_come_from_config_json(void **state) {
    (void)state;
    /* missing members default to the values of transformers: B0 */
    expect_settings("{\"model_type\":\"segformer\"}",
                    (const char *const[]){"model.backbone=b0\n", "model.stage_widths=auto\n", "data.channels=3\n",
                                          "data.mean=0.485 0.456 0.406\n", "model.stage_order=descending\n", NULL});
    expect_settings(
        "{\"model_type\":\"segformer\"," B3 "}",
        (const char *const[]){"model.backbone=b3\n", "model.stage_depths=auto\n", "model.decoder_width=auto\n", NULL});
    expect_settings("{\"model_type\":\"segformer\",\"hidden_sizes\":[8,16,24,32],\"num_attention_heads\":[1,2,3,4],"
                    "\"mlp_ratios\":[4,4,2,2],\"strides\":[2,2,3,2],\"decoder_hidden_size\":40}",
                    (const char *const[]){"model.stage_widths=8, 16, 24, 32\n", "model.stage_heads=1, 2, 3, 4\n",
                                          "model.stage_expansions=4, 4, 2, 2\n", "model.stage_strides=2, 3, 2\n",
                                          "model.stem_stride=2\n", "model.decoder_width=40\n", NULL});
}

static void what_config_json_cannot_mean_is_refused(void **state) {
    static const struct {
        const char *config, *said;
    } rows[] = {
        {"{\"num_encoder_blocks\":5}", "num_encoder_blocks is 5; only 4 is supported"},
        {"{\"hidden_act\":\"relu\"}", "only \"gelu\" is supported"},
        {"{\"depths\":[2,2,2]}", "'depths' is [2,2,2]; it must be a list of 4 whole numbers above 0"},
        {"{\"depths\":[2,2,2,-1]}", "'depths' is [2,2,2,-1]; it must be"},
        {"{\"hidden_sizes\":[8,16,24,32.5]}", "'hidden_sizes' is [8,16,24,32.5]; it must be"},
        {"{\"sr_ratios\":8}", "'sr_ratios' is 8; it must be"},
        {"{\"strides\":[4,2,\"2\",2]}", "'strides' is [4,2,\"2\",2]; it must be"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_string settings = {0};
        cleat_error error = {0};
        assert_int_not_equal(configure(rows[i].config, &settings, &error), CLEAT_OK);
        if (!strstr(error.text, rows[i].said) || !strstr(error.text, "config.json"))
            fail_msg("'%s' lacks '%s'", error.text, rows[i].said);
        cleat_string_free(&settings);
    }
}

/* An import reads what an export writes. */
static void exports_describe_the_same_network(void **state) {
    cleat_string settings = {0};
    cleat_error error = {0};
    (void)state;
    network made = build((const char *const[]){"model.type=mask_segformer", SIZES, "model.stem_stride=2",
                                               "model.stage_patches=5 3 3 3", "data.classes=6", NULL},
                         "{}", 64);
    const cleat_architecture *architecture = made.model->type->architecture(made.model, false);
    assert_ptr_equal(architecture, &cleat_published_segformer);
    cJSON *json = cJSON_CreateObject();
    assert_true(architecture->describe(made.model, json));
    char *text = cJSON_PrintUnformatted(json);
    assert_non_null(strstr(text, "\"model_type\":\"segformer\""));
    assert_non_null(strstr(text, "\"num_labels\":6"));
    assert_int_equal(configure(text, &settings, &error), CLEAT_OK);
    assert_non_null(strstr(settings.data, "model.stage_widths=8, 8, 12, 16\n"));
    assert_non_null(strstr(settings.data, "model.stage_depths=1, 1, 1, 1\n"));
    assert_non_null(strstr(settings.data, "model.stage_patches=5, 3, 3, 3\n"));
    assert_non_null(strstr(settings.data, "model.stem_stride=2\n"));
    cJSON_free(text);
    cJSON_Delete(json);
    cleat_string_free(&settings);
    drop(&made);
    made = build((const char *const[]){"model.type=mask_segformer", NULL}, "{}", 64);
    assert_null(made.model->type->architecture(made.model, false)); /* its fuse.weight has a different order */
    drop(&made);
}

static int remove_scratch(void **state) {
    char path[512];
    (void)state;
    snprintf(path, sizeof path, "%s/config.json", scratch_folder());
    remove(path);
    snprintf(path, sizeof path, "%s/model.safetensors", scratch_folder());
    remove(path);
    return rmdir(scratch_folder());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_have_the_published_names),     cmocka_unit_test(every_tensor_of_a_file_is_taken),
        cmocka_unit_test(other_classes_have_a_new_last_layer),     cmocka_unit_test(emberformer_takes_the_spatial_part),
        cmocka_unit_test(emberformer_starts_from_a_run_of_masks),  cmocka_unit_test(sizes_come_from_config_json),
        cmocka_unit_test(what_config_json_cannot_mean_is_refused), cmocka_unit_test(exports_describe_the_same_network),
    };
    return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
