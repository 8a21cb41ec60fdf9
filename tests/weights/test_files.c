/* Files of published checkpoints: one file, shards, halves; every fault is an error that names the file and a
 * remedy. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files.h"
#include "core/half.h"
#include "core/memory.h"
#include "platform/files.h"
#include "weights/config.h"

enum { PATH = 256 };

typedef struct folder {
    char path[64];
} folder;

static int make_folder(void **state) {
    folder *f = cleat_alloc(1, sizeof *f);
    strcpy(f->path, "/tmp/cleat-weights-XXXXXX");
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

static const char *in(const folder *f, const char *name, char path[PATH]) {
    snprintf(path, PATH, "%s/%s", f->path, name);
    return path;
}

static void put_text(const folder *f, const char *name, const char *text) {
    char path[PATH];
    assert_int_equal(cleat_file_write(in(f, name, path), text, strlen(text), NULL), CLEAT_OK);
}

static const float values[6] = {0.5f, -1.25f, 3, 1e-3f, -0.0f, 65504};

/* Writes tensors with these names, all f32 [2, 3] with the values above. */
static void put_tensors(const folder *f, const char *file, const char *const *names, size_t count) {
    cleat_st_tensor tensors[4];
    char path[PATH];
    for (size_t i = 0; i < count; ++i)
        tensors[i] =
            (cleat_st_tensor){.name = names[i], .dtype = CLEAT_ST_F32, .rank = 2, .shape = {2, 3}, .data = values};
    assert_int_equal(cleat_safetensors_write(in(f, file, path), tensors, count, NULL, 0, NULL), CLEAT_OK);
}

static void assert_refused(const char *path, cleat_status status, const char *words) {
    cleat_weights *weights = NULL;
    cleat_error error = {0};
    assert_int_equal(cleat_weights_open(path, &weights, &error), status);
    assert_null(weights);
    if (!strstr(error.text, words)) fail_msg("'%s' does not contain '%s'", error.text, words);
}

static void assert_values(const cleat_weights *weights, const char *name) {
    const cleat_st_tensor *tensor = cleat_weights_find(weights, name);
    float read[6];
    assert_non_null(tensor);
    assert_null(tensor->data); /* only the header was read */
    assert_int_equal(cleat_weights_read(weights, tensor, read, NULL), CLEAT_OK);
    assert_memory_equal(read, values, sizeof read);
}

static void a_folder_and_a_file_open(void **state) {
    static const char *const names[] = {"b", "a"};
    const folder *f = *state;
    cleat_weights *weights = NULL;
    char path[PATH];
    put_tensors(f, "model.safetensors", names, 2);
    put_text(f, "config.json", "{\"model_type\": \"bert\", \"layers\": 7, \"half\": 1.5}");
    const char *const paths[] = {f->path, in(f, "model.safetensors", path)};
    for (size_t i = 0; i < 2; ++i) {
        assert_int_equal(cleat_weights_open(paths[i], &weights, NULL), CLEAT_OK);
        assert_int_equal(cleat_weights_count(weights), 2);
        assert_string_equal(cleat_weights_at(weights, 0)->name, "a"); /* sorted */
        assert_values(weights, "a");
        assert_values(weights, "b");
        assert_null(cleat_weights_find(weights, "c"));
        assert_string_equal(cleat_weights_folder(weights), f->path);
        assert_string_equal(cleat_weights_config_text(weights, "model_type"), "bert");
        assert_null(cleat_weights_config_text(weights, "layers"));
        int64_t number = 0;
        assert_int_equal(cleat_weights_integer(weights, "layers", 3, &number, NULL), CLEAT_OK);
        assert_int_equal(number, 7);
        assert_int_equal(cleat_weights_integer(weights, "none", 3, &number, NULL), CLEAT_OK);
        assert_int_equal(number, 3);
        assert_int_equal(cleat_weights_integer(weights, "half", 3, &number, NULL), CLEAT_ERR_FORMAT);
        assert_int_equal(cleat_weights_integer(weights, "model_type", 3, &number, NULL), CLEAT_ERR_FORMAT);
        assert_int_equal(number, 3);
        assert_int_equal(cleat_weights_bytes(weights), 48);
        cleat_weights_close(weights);
    }
}

static void halves_are_exact(void **state) {
    const folder *f = *state;
    uint16_t f16[6], bf16[6];
    float read[6], back[6];
    char path[PATH];
    cleat_weights *weights = NULL;
    cleat_to_f16(values, 6, f16);
    cleat_to_bf16(values, 6, bf16);
    const int64_t whole[3] = {-3, 0, 1 << 20};
    const double wide[1] = {0.1};
    const cleat_st_tensor tensors[] = {
        {.name = "f16", .dtype = CLEAT_ST_F16, .rank = 1, .shape = {6}, .data = f16},
        {.name = "bf16", .dtype = CLEAT_ST_BF16, .rank = 1, .shape = {6}, .data = bf16},
        {.name = "whole", .dtype = CLEAT_ST_I64, .rank = 1, .shape = {3}, .data = whole},
        {.name = "wide", .dtype = CLEAT_ST_F64, .rank = 0, .data = wide},
    };
    assert_int_equal(cleat_safetensors_write(in(f, "model.safetensors", path), tensors, 4, NULL, 0, NULL), CLEAT_OK);
    assert_int_equal(cleat_weights_open(f->path, &weights, NULL), CLEAT_OK);
    cleat_weights_read(weights, cleat_weights_find(weights, "f16"), read, NULL);
    cleat_from_f16(f16, 6, back);
    assert_memory_equal(read, back, sizeof read);
    cleat_weights_read(weights, cleat_weights_find(weights, "bf16"), read, NULL);
    cleat_from_bf16(bf16, 6, back);
    assert_memory_equal(read, back, sizeof read);
    cleat_weights_read(weights, cleat_weights_find(weights, "whole"), read, NULL);
    for (int i = 0; i < 3; ++i) assert_true(read[i] == (float)whole[i]);
    cleat_weights_read(weights, cleat_weights_find(weights, "wide"), read, NULL);
    assert_true(read[0] == 0.1f);
    cleat_weights_close(weights);
}

/* Rounding to f16 reproduces every finite f16. */
static void every_half_returns(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 65536; ++bits) {
        const uint16_t half = (uint16_t)bits;
        uint16_t again;
        float value;
        if ((half & 0x7c00) == 0x7c00 && (half & 0x3ff)) continue; /* NaN */
        cleat_from_f16(&half, 1, &value);
        cleat_to_f16(&value, 1, &again);
        assert_int_equal(again, half);
        if ((half & 0x7f80) == 0x7f80 && (half & 0x7f)) continue;
        cleat_from_bf16(&half, 1, &value);
        cleat_to_bf16(&value, 1, &again);
        assert_int_equal(again, half);
    }
}

#define INDEX "model.safetensors.index.json"

static void put_shards(const folder *f) {
    static const char *const first[] = {"a"}, *const second[] = {"b", "c"};
    put_tensors(f, "one.safetensors", first, 1);
    put_tensors(f, "two.safetensors", second, 2);
    put_text(f, INDEX,
             "{\"weight_map\": {\"a\": \"one.safetensors\", \"b\": \"two.safetensors\", \"c\": \"two.safetensors\"}}");
}

static void shards_open(void **state) {
    const folder *f = *state;
    cleat_weights *weights = NULL;
    put_shards(f);
    assert_int_equal(cleat_weights_open(f->path, &weights, NULL), CLEAT_OK);
    assert_int_equal(cleat_weights_count(weights), 3);
    for (const char *name = "a"; *name < 'd'; name = *name == 'a' ? "b" : *name == 'b' ? "c" : "d")
        assert_values(weights, name);
    cleat_weights_close(weights);
}

static void wrong_indices_are_refused(void **state) {
    const folder *f = *state;
    put_shards(f);
    static const struct {
        const char *index, *words;
    } rows[] = {
        {"{\"weight_map\": {\"a\": \"one.safetensors\", \"b\": \"two.safetensors\"}}", "does not list the tensor 'c'"},
        {"{\"weight_map\": {\"a\": \"one.safetensors\", \"b\": \"two.safetensors\", \"c\": \"two.safetensors\", "
         "\"d\": \"one.safetensors\"}}",
         "tensor 'd' is not in one.safetensors"},
        {"{\"weight_map\": {\"a\": \"../one.safetensors\"}}", "'a' is not in a file of this folder"},
        {"{\"weight_map\": {\"a\": 3}}", "'a' is not in a file of this folder"},
        {"{\"weight_map\": {}}", "has no weight_map"},
        {"{}", "has no weight_map"},
        {"[", "is not a JSON object"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        put_text(f, INDEX, rows[i].index);
        assert_refused(f->path, CLEAT_ERR_FORMAT, rows[i].words);
    }
    put_text(f, INDEX, "{\"weight_map\": {\"a\": \"three.safetensors\"}}");
    assert_refused(f->path, CLEAT_ERR_NOT_FOUND, "three.safetensors");
}

static void two_shards_with_one_tensor_are_refused(void **state) {
    static const char *const names[] = {"a"};
    const folder *f = *state;
    put_shards(f);
    put_tensors(f, "two.safetensors", names, 1);
    put_text(f, INDEX, "{\"weight_map\": {\"a\": \"one.safetensors\", \"b\": \"two.safetensors\"}}");
    assert_refused(f->path, CLEAT_ERR_FORMAT, "two shards contain the tensor 'a'");
}

static void cut_files_are_refused(void **state) {
    static const char *const names[] = {"a", "b"};
    const folder *f = *state;
    char path[PATH], *bytes;
    size_t size;
    put_tensors(f, "model.safetensors", names, 2);
    assert_int_equal(cleat_file_read(in(f, "model.safetensors", path), &bytes, &size, NULL), CLEAT_OK);
    const size_t cuts[] = {0, 7, 8, 20, size - 1, size - 48};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; ++i) {
        assert_int_equal(cleat_file_write(path, bytes, cuts[i], NULL), CLEAT_OK);
        assert_refused(f->path, CLEAT_ERR_FORMAT, "model.safetensors");
    }
    cleat_free(bytes);
}

/* A file that is truncated after it is opened is an error, not a crash. */
static void a_file_that_shrinks_is_an_error(void **state) {
    static const char *const names[] = {"a"};
    const folder *f = *state;
    cleat_weights *weights = NULL;
    cleat_error error = {0};
    char path[PATH];
    float read[6];
    put_tensors(f, "model.safetensors", names, 1);
    assert_int_equal(cleat_weights_open(f->path, &weights, NULL), CLEAT_OK);
    assert_int_equal(truncate(in(f, "model.safetensors", path), 70), 0);
    assert_int_equal(cleat_weights_read(weights, cleat_weights_find(weights, "a"), read, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "the file ended while it was read"));
    cleat_weights_close(weights);
}

/* Headers of hostile files: lengths that overflow, ranges that overlap or exceed the file. */
static void hostile_headers_are_refused(void **state) {
    const folder *f = *state;
    static const char *const headers[] = {
        "{\"a\": {\"dtype\": \"F32\", \"shape\": [4611686018427387904, 4], \"data_offsets\": [0, 0]}}",
        "{\"a\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 9999999]}}",
        "{\"a\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [8, 0]}}",
        "{\"a\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 8]}, "
        "\"b\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [4, 12]}}",
        "{\"a\": {\"dtype\": \"F4\", \"shape\": [2], \"data_offsets\": [0, 8]}}",
        "{\"a\": {\"dtype\": \"F32\", \"shape\": [-2], \"data_offsets\": [0, 8]}}",
        "{\"a\": 3}",
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; ++i) {
        char bytes[512] = {0}, path[PATH];
        const uint64_t length = strlen(headers[i]);
        memcpy(bytes, &length, sizeof length);
        memcpy(bytes + sizeof length, headers[i], length);
        assert_int_equal(cleat_file_write(in(f, "model.safetensors", path), bytes, sizeof length + length + 16, NULL),
                         CLEAT_OK);
        assert_refused(f->path, CLEAT_ERR_FORMAT, "model.safetensors");
    }
}

static void pickled_files_are_refused_with_the_conversion(void **state) {
    const folder *f = *state;
    char path[PATH];
    put_text(f, "pytorch_model.bin", "x");
    assert_refused(f->path, CLEAT_ERR_FORMAT, "save_file(");
    assert_refused(in(f, "pytorch_model.bin", path), CLEAT_ERR_FORMAT, "pytorch_model.bin");
}

static void what_is_not_there_is_named(void **state) {
    const folder *f = *state;
    char path[PATH];
    assert_refused(f->path, CLEAT_ERR_NOT_FOUND, "has neither model.safetensors nor");
    put_text(f, "adapter_config.json", "{}");
    assert_refused(f->path, CLEAT_ERR_NOT_FOUND, "it has adapters of PEFT");
    put_text(f, "a-Q4.gguf", "");
    assert_refused(f->path, CLEAT_ERR_NOT_FOUND, "name its file of weights: a-Q4.gguf");
    assert_refused(in(f, "nowhere", path), CLEAT_ERR_NOT_FOUND, "nowhere");
    put_text(f, "config.json", "{}");
    assert_refused(in(f, "config.json", path), CLEAT_ERR_FORMAT, "use its folder");
    put_text(f, "config.json", "{\"model_type\":");
    assert_refused(f->path, CLEAT_ERR_FORMAT, "config.json: is not a JSON object");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(a_folder_and_a_file_open),    TEST(halves_are_exact),
        TEST(every_half_returns),          TEST(shards_open),
        TEST(wrong_indices_are_refused),   TEST(two_shards_with_one_tensor_are_refused),
        TEST(cut_files_are_refused),       TEST(a_file_that_shrinks_is_an_error),
        TEST(hostile_headers_are_refused), TEST(pickled_files_are_refused_with_the_conversion),
        TEST(what_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
