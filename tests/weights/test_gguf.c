/* GGUF files: blocks against the package gguf, and files with one fault each, which are refused with their place. */
/* ctest: quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/blocks.h"
#include "core/files.h"
#include "core/memory.h"
#include "platform/files.h"
#include "platform/text.h"
#include "weights/architecture.h"

/* --- blocks --------------------------------------------------------------------------------------------------- */

static uint64_t hash(const void *data, size_t size) {
    uint64_t total = 14695981039346656037u;
    for (size_t i = 0; i < size; ++i) total = (total ^ ((const uint8_t *)data)[i]) * 1099511628211u;
    return total;
}

/* The largest difference between `values` and those of a frozen weight that takes the blocks as they are stored, in
 * units of the largest value of its 32; -1: it must be quantised. */
static double difference(cleat_dtype dtype, cleat_gguf_type type, const uint8_t *blocks, const float *values,
                         int64_t count) {
    void *bytes = cleat_alloc((size_t)cleat_block_bytes(dtype, count), 1);
    float *taken = cleat_alloc((size_t)count, sizeof *taken);
    double most = 0;
    if (cleat_blocks_take(dtype, type, blocks, count, bytes)) {
        cleat_blocks_values(dtype, bytes, count, taken);
        for (int64_t i = 0; i < count; ++i) {
            double largest = 0;
            for (int64_t k = i / 32 * 32; k < i / 32 * 32 + 32; ++k) largest = fmax(largest, fabs((double)values[k]));
            if (largest > 0) most = fmax(most, fabs((double)taken[i] - (double)values[i]) / largest);
        }
    } else {
        most = -1;
    }
    cleat_free(bytes);
    cleat_free(taken);
    return most;
}

static void frozen_weights_take_blocks(cleat_gguf_type type, const uint8_t *blocks, const float *values,
                                       int64_t count) {
    const bool is_exact = type == CLEAT_GGUF_TYPE_Q4_0 || type == CLEAT_GGUF_TYPE_Q4_1;
    const double q4 = difference(CLEAT_Q4, type, blocks, values, count);
    if (is_exact) assert_true(q4 == 0);
    if (type == CLEAT_GGUF_TYPE_Q4_K) assert_true(q4 > 0 && q4 < 3 * 0x1p-11);
    if (!is_exact && type != CLEAT_GGUF_TYPE_Q4_K) assert_true(q4 == -1);
    assert_true(difference(CLEAT_Q8, type, blocks, values, count) == (type == CLEAT_GGUF_TYPE_Q8_0 ? 0 : -1));
    assert_true(difference(CLEAT_HALF, type, blocks, values, count) == (type == CLEAT_GGUF_TYPE_F16 ? 0 : -1));
    assert_true(difference(CLEAT_NF4, type, blocks, values, count) == -1);
}

/* By gguf_hashes.py, which makes the same blocks. */
static void values_have_the_bits_of_the_package_gguf(void **state) {
    static const struct {
        cleat_gguf_type type;
        uint64_t hash;
    } rows[] = {
        {CLEAT_GGUF_TYPE_F32, 0x7260a19e082859f0},  {CLEAT_GGUF_TYPE_F16, 0x7546f888a85600eb},
        {CLEAT_GGUF_TYPE_BF16, 0x0f9938032d789edb}, {CLEAT_GGUF_TYPE_Q8_0, 0xc844acd0dfc92e0b},
        {CLEAT_GGUF_TYPE_Q4_0, 0x7b9ac375e98a3ea1}, {CLEAT_GGUF_TYPE_Q4_1, 0xf4a698b880d21a52},
        {CLEAT_GGUF_TYPE_Q5_0, 0x5a5871e2f955368e}, {CLEAT_GGUF_TYPE_Q5_1, 0x2b65fa63d5d557c5},
        {CLEAT_GGUF_TYPE_Q4_K, 0x5e116ab63ba862ff}, {CLEAT_GGUF_TYPE_Q5_K, 0xe90701de683978e8},
        {CLEAT_GGUF_TYPE_Q6_K, 0x8e4dc74070372b99},
    };
    enum { BLOCKS = 64 };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const cleat_gguf_type type = rows[i].type;
        const size_t size = cleat_gguf_block_bytes(type), each = (size_t)cleat_gguf_block_values(type);
        const bool two = type == CLEAT_GGUF_TYPE_Q4_1 || type == CLEAT_GGUF_TYPE_Q5_1 || type == CLEAT_GGUF_TYPE_Q4_K ||
                         type == CLEAT_GGUF_TYPE_Q5_K;
        const size_t scale = each == 1 || type == CLEAT_GGUF_TYPE_Q6_K ? size - 2 : 0;
        uint8_t *blocks = cleat_alloc(BLOCKS, size);
        float *values = cleat_alloc(BLOCKS * each, sizeof *values);
        uint32_t random = 1;
        for (size_t k = 0; k < BLOCKS * size; ++k) {
            random = random * 1664525u + 1013904223u;
            blocks[k] = (uint8_t)(random >> 24);
            if (k % size == scale + 1 || (two && k % size == 3)) blocks[k] = (blocks[k] & 0x83) | 0x30;
        }
        cleat_gguf_unpack(type, blocks, BLOCKS, values);
        if (hash(values, BLOCKS * each * sizeof *values) != rows[i].hash)
            fail_msg("%s: %g, %g, ...", cleat_gguf_type_name(type), (double)values[0], (double)values[1]);
        frozen_weights_take_blocks(type, blocks, values, (int64_t)(BLOCKS * each));
        cleat_free(blocks);
        cleat_free(values);
    }
}

/* --- a small file --------------------------------------------------------------------------------------------- */

enum { MOST = 4096, PATH = 128 };

typedef struct bytes {
    uint8_t data[MOST];
    size_t size;
} bytes;

static void put(bytes *b, uint64_t value, size_t size) {
    memcpy(b->data + b->size, &value, size);
    b->size += size;
}

static void put_text(bytes *b, const char *text) {
    put(b, strlen(text), 8);
    memcpy(b->data + b->size, text, strlen(text));
    b->size += strlen(text);
}

static void put_number(bytes *b, const char *key, uint32_t kind, uint64_t value, size_t size) {
    put_text(b, key);
    put(b, kind, 4);
    put(b, value, size);
}

static void put_float(bytes *b, const char *key, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_number(b, key, CLEAT_GGUF_F32, bits, 4);
}

static void put_tensor(bytes *b, const char *name, uint32_t type, uint64_t columns, uint64_t rows, uint64_t offset) {
    put_text(b, name);
    put(b, rows ? 2 : 1, 4);
    put(b, columns, 8);
    if (rows) put(b, rows, 8);
    put(b, type, 4);
    put(b, offset, 8);
}

/* Llama of one block, whose tensors are a table [6, 32] in Q8_0, queries [4, 2] in f32, and a norm [32]. */
static void make(bytes *b, const char *architecture, uint32_t version) {
    char key[64];
    b->size = 0;
    memset(b->data, 0, sizeof b->data);
    memcpy(b->data, "GGUF", 4);
    b->size = 4;
    put(b, version, 4);
    put(b, 3, 8);
    put(b, 11, 8);
    put_text(b, "general.architecture");
    put(b, CLEAT_GGUF_TEXT, 4);
    put_text(b, architecture);
    static const char *const numbers[] = {"context_length", "embedding_length", "block_count", "feed_forward_length",
                                          "attention.head_count"};
    static const uint32_t values[] = {64, 32, 1, 48, 2};
    for (size_t i = 0; i < 5; ++i) {
        snprintf(key, sizeof key, "%s.%s", architecture, numbers[i]);
        put_number(b, key, CLEAT_GGUF_U32, values[i], 4);
    }
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", architecture);
    put_float(b, key, 1e-5f);
    put_text(b, "tokenizer.ggml.tokens");
    put(b, CLEAT_GGUF_ARRAY, 4);
    put(b, CLEAT_GGUF_TEXT, 4);
    put(b, 3, 8);
    put_text(b, "<s>");
    put_text(b, "");
    put_text(b, "a");
    put_text(b, "tokenizer.ggml.scores");
    put(b, CLEAT_GGUF_ARRAY, 4);
    put(b, CLEAT_GGUF_I16, 4);
    put(b, 2, 8);
    put(b, 7, 2);
    put(b, 65535, 2);
    put_number(b, "tokenizer.ggml.add_bos_token", CLEAT_GGUF_BOOL, 1, 1);
    put_number(b, "general.large", CLEAT_GGUF_U64, UINT64_C(1) << 40, 8);
    put_tensor(b, "token_embd.weight", CLEAT_GGUF_TYPE_Q8_0, 32, 6, 0);
    put_tensor(b, "blk.0.attn_q.weight", CLEAT_GGUF_TYPE_F32, 2, 4, 224);
    put_tensor(b, "output_norm.weight", CLEAT_GGUF_TYPE_F32, 32, 0, 256);
    b->size = (b->size + 31) / 32 * 32;
    for (int i = 0; i < 6; ++i) {
        put(b, 0x3800, 2); /* 0.5 */
        for (int k = 0; k < 32; ++k) put(b, (uint64_t)(i + k), 1);
    }
    b->size += 20;
    for (int i = 0; i < 8 + 32; ++i) {
        const float value = (float)i;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        put(b, bits, 4);
    }
}

static char path[PATH];

static int make_path(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/cleat-gguf-%ld.gguf", (long)getpid());
    return 0;
}

static int remove_path(void **state) {
    (void)state;
    unlink(path);
    return 0;
}

static void save(const bytes *b) {
    assert_int_equal(cleat_file_write(path, b->data, b->size, NULL), CLEAT_OK);
}

static void frozen_weights_keep_the_types_of_a_file(void **state) {
    static const cleat_weight_row rows[] = {{.param = "emb", .sources = {"embed_tokens"}},
                                            {.param = "norm", .sources = {"norm"}},
                                            {.param = "blocks.*.att.q", .sources = {"layers.*.self_attn.q_proj"}},
                                            {.param = "blocks.*.att.kv", .sources = {"layers.*.self_attn.k_proj"}},
                                            {.param = NULL}};
    const cleat_architecture architecture = {.base = "model.", .names = rows};
    char text[CLEAT_FROZEN_TEXT];
    bytes b;
    cleat_weights *weights = NULL;
    (void)state;
    make(&b, "llama", 3);
    save(&b);
    assert_int_equal(cleat_weights_open(path, &weights, NULL), CLEAT_OK);
    cleat_weights_forms(weights, &architecture, text);
    assert_string_equal(text, "q8 blocks.*.att.q=float");
    cleat_weights_close(weights);
}

static void a_file_is_a_folder_of_hugging_face(void **state) {
    static const float queries[] = {0, 1, 4, 5, 2, 3, 6, 7}; /* rows 0, 2, 1, 3 */
    bytes b;
    cleat_weights *weights = NULL;
    float values[32];
    (void)state;
    for (uint32_t version = 2; version <= 3; ++version) {
        make(&b, "llama", version);
        save(&b);
        assert_int_equal(cleat_weights_open(path, &weights, NULL), CLEAT_OK);
        assert_int_equal(cleat_weights_count(weights), 3);
        assert_string_equal(cleat_weights_folder(weights), path);
        assert_string_equal(cleat_weights_config_text(weights, "model_type"), "llama");
        assert_int_equal(cleat_weights_bytes(weights), 6 * 34 + 4 * (8 + 32));
        assert_string_equal(cleat_weights_type(weights), "Q8_0");
        const cleat_st_tensor *table = cleat_weights_find(weights, "model.embed_tokens.weight");
        assert_non_null(table);
        assert_int_equal(table->shape[0], 6);
        assert_int_equal(cleat_weights_read_part(weights, table, 40, 30, values, NULL), CLEAT_OK);
        for (int i = 0; i < 30; ++i) assert_true(values[i] == 0.5f * (float)((40 + i) / 32 + (40 + i) % 32));
        const cleat_st_tensor *q = cleat_weights_find(weights, "model.layers.0.self_attn.q_proj.weight");
        assert_non_null(q);
        /* Two heads of two rows each: nothing moves. With one head, the middle rows change places. */
        assert_int_equal(cleat_weights_read(weights, q, values, NULL), CLEAT_OK);
        for (int i = 0; i < 8; ++i) assert_true(values[i] == (float)i);
        cleat_weights_close(weights);
        uint8_t *heads = memmem(b.data, b.size, "head_count", 10);
        heads[10 + 4] = 1;
        save(&b);
        assert_int_equal(cleat_weights_open(path, &weights, NULL), CLEAT_OK);
        q = cleat_weights_find(weights, "model.layers.0.self_attn.q_proj.weight");
        assert_int_equal(cleat_weights_read_part(weights, q, 1, 6, values, NULL), CLEAT_OK);
        assert_memory_equal(values, queries + 1, 6 * sizeof *values);
        cleat_weight_blocks blocks;
        assert_true(cleat_weights_blocks(weights, q, &blocks));
        assert_int_equal(blocks.row_bytes, 8);
        assert_int_equal(cleat_weights_read_blocks(weights, q, 1, 3, values, NULL), CLEAT_OK);
        assert_memory_equal(values, queries + 2, 6 * sizeof *values);
        assert_false(cleat_weights_blocks(weights, cleat_weights_find(weights, "model.norm.weight"), &blocks));
        cleat_weights_close(weights);
    }
}

static void metadata_are_typed(void **state) {
    bytes b;
    cleat_weights *weights = NULL;
    const cleat_gguf_member *member;
    cleat_error error;
    (void)state;
    make(&b, "llama", 3);
    save(&b);
    assert_int_equal(cleat_weights_open(path, &weights, NULL), CLEAT_OK);
    const cleat_gguf *file = cleat_weights_gguf(weights);
    assert_int_equal(cleat_gguf_members(file), 11);
    assert_string_equal(cleat_gguf_member_at(file, 0)->key.data, "general.architecture");
    assert_int_equal(cleat_gguf_expect(file, "tokenizer.ggml.tokens", CLEAT_GGUF_TEXTS, &member, NULL), CLEAT_OK);
    assert_int_equal(member->count, 3);
    assert_string_equal(member->texts[0].data, "<s>");
    assert_int_equal(member->texts[1].size, 0);
    assert_string_equal(member->texts[1].data, "");
    assert_string_equal(member->texts[2].data, "a");
    assert_true(cleat_gguf_number(member, 0) != cleat_gguf_number(member, 0)); /* NaN */
    assert_int_equal(cleat_gguf_expect(file, "tokenizer.ggml.scores", CLEAT_GGUF_NUMBERS, &member, NULL), CLEAT_OK);
    assert_true(cleat_gguf_number(member, 0) == 7 && cleat_gguf_number(member, 1) == -1);
    assert_true(cleat_gguf_number(member, 2) != cleat_gguf_number(member, 2));
    assert_true(cleat_gguf_number(cleat_gguf_find(file, "general.large"), 0) == 0x1p40);
    assert_true(cleat_gguf_number(cleat_gguf_find(file, "tokenizer.ggml.add_bos_token"), 0) == 1);
    assert_int_equal(cleat_gguf_expect(file, "tokenizer.ggml.merges", CLEAT_GGUF_TEXTS, &member, NULL), CLEAT_OK);
    assert_null(member);
    assert_int_equal(cleat_gguf_expect(file, "general.large", CLEAT_GGUF_ONE_TEXT, &member, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "general.large must be a text"));
    cleat_weights_close(weights);
}

/* --- faults --------------------------------------------------------------------------------------------------- */

static void assert_refused(const bytes *b, const char *words) {
    cleat_weights *weights = NULL;
    cleat_error error = {0};
    save(b);
    const cleat_status status = cleat_weights_open(path, &weights, &error);
    if (status == CLEAT_OK) fail_msg("was accepted; expected '%s'", words);
    assert_true(status == CLEAT_ERR_FORMAT || status == CLEAT_ERR_NOT_SUPPORTED);
    assert_null(weights);
    if (!strstr(error.text, words) || !strstr(error.text, path))
        fail_msg("'%s' does not contain '%s'", error.text, words);
}

static void faults_are_named(void **state) {
    static const struct {
        const char *after; /* the last occurrence of this text; "": the start of the file */
        size_t skip;       /* bytes after its end */
        uint64_t value;
        size_t size;
        const char *words;
    } rows[] = {
        {"", 0, 'X', 1, "not a GGUF file"},
        {"", 4, 1, 4, "version 1 of GGUF"},
        {"", 4, 0x03000000, 4, "big-endian"},
        {"", 8, 1u << 30, 8, "1073741824 is too much"},
        {"", 8, 4, 8, "the name of a tensor: a name of 0 bytes"},
        {"", 16, 12, 8, "items of 1 bytes or more"},
        {"", 24, UINT64_MAX, 8, "a key of the metadata: has 18446744073709551615 items"},
        {"", 24, 0, 8, "a name of 0 bytes"},
        {"general.architecture", 0, 13, 4, "general.architecture: a value of type 13"},
        {"general.architecture", 4, UINT64_C(1) << 62, 8, "general.architecture: has 4611686018427387904 items"},
        {"general.architecture", 12, 'x', 1, "general.architecture is 'xlama'"},
        {"general.architectur", 0, 0, 1, "with a zero among them"},
        {"llama.context_lengt", 0, 'x', 1, "has no llama.context_length"},
        {"llama.block_count", 4, UINT32_MAX, 4, "llama.block_count is 4.29497e+09, but there are 3 tensors"},
        {"llama.attention.head_count", 0, CLEAT_GGUF_F32, 4, "the rows of blk.0.attn_q.weight"},
        {"llama.attention.head_count", 4, 3, 4, "the rows of blk.0.attn_q.weight"},
        {"llama.attention.head_count", 4, 0, 4, "the rows of blk.0.attn_q.weight"},
        {"llama.attention.layer_norm_rms_epsilon", 4, 0x7fc00000, 4, "is not one finite number"},
        {"tokenizer.ggml.tokens", 4, CLEAT_GGUF_ARRAY, 4, "an array of arrays"},
        {"tokenizer.ggml.tokens", 8, UINT64_C(1) << 40, 8, "tokenizer.ggml.tokens: has 1099511627776 items"},
        {"tokenizer.ggml.tokens", 16, 1u << 20, 8, "tokenizer.ggml.tokens: has 1048576 items"},
        {"tokenizer.ggml.scores", 8, UINT64_MAX, 8, "tokenizer.ggml.scores: has 18446744073709551615 items"},
        {"token_embd.weight", 0, 5, 4, "token_embd.weight: 5 dimensions"},
        {"token_embd.weight", 4, 0, 8, "token_embd.weight: an extent of 0"},
        {"token_embd.weight", 4, UINT64_C(1) << 61, 8, "token_embd.weight: an extent of"},
        {"token_embd.weight", 12, UINT64_C(1) << 58, 8, "token_embd.weight: an extent of"},
        {"token_embd.weight", 4, 33, 8, "rows of 33 values are no whole blocks of Q8_0"},
        {"token_embd.weight", 20, 10, 4, "is quantised as type 10"},
        {"token_embd.weight", 20, UINT32_MAX, 4, "is quantised as type 4294967295"},
        {"token_embd.weight", 24, 8, 8, "its offset 8 is no multiple of the alignment 32"},
        {"token_embd.weight", 24, UINT64_MAX - 31, 8, "its data end after the file"},
        {"token_embd.weight", 24, 32, 8, "its data overlap those of 'token_embd.weight'"},
        {"output_norm.weight", 16, 288, 8, "output_norm.weight: its data end after the file"},
        {"output_norm.weight", 16, 224, 8, "its data overlap those of"},
    };
    bytes b;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        make(&b, "llama", 3);
        uint8_t *at = b.data;
        if (*rows[i].after) at = memmem(b.data, b.size, rows[i].after, strlen(rows[i].after));
        assert_non_null(at);
        memcpy(at + strlen(rows[i].after) + rows[i].skip, &rows[i].value, rows[i].size);
        assert_refused(&b, rows[i].words);
    }
}

static void names_occur_once(void **state) {
    bytes b;
    (void)state;
    make(&b, "llama", 3);
    memcpy(memmem(b.data, b.size, "tokenizer.ggml.scores", 21), "tokenizer.ggml.tokens", 21);
    assert_refused(&b, "'tokenizer.ggml.tokens' occurs twice");
    /* Another name for the same tensor of Hugging Face. */
    make(&b, "llama", 3);
    memcpy(memmem(b.data, b.size, "output_norm.weight", 18), "model.norm.weightx", 18);
    save(&b);
    cleat_weights *weights = NULL;
    assert_int_equal(cleat_weights_open(path, &weights, NULL), CLEAT_OK);
    assert_non_null(cleat_weights_find(weights, "model.norm.weightx")); /* unknown names stay */
    cleat_weights_close(weights);
}

/* A file that ends anywhere is refused: every byte is of the head, of padding or of a tensor. */
static void every_cut_is_refused(void **state) {
    bytes b;
    (void)state;
    make(&b, "llama", 3);
    const size_t size = b.size;
    for (size_t cut = 0; cut < size; ++cut) {
        b.size = cut;
        assert_refused(&b, cut < 4 ? "the file is empty or cut" : "copy or download it again");
    }
}

/* No allocation that fails is a crash or a leak. */
static void out_of_memory_is_reported(void **state) {
    bytes b;
    (void)state;
    make(&b, "llama", 3);
    save(&b);
    for (long n = 1;; ++n) {
        cleat_weights *weights = NULL;
        cleat_fail_allocation(n);
        const cleat_status status = cleat_weights_open(path, &weights, NULL);
        cleat_fail_allocation(0);
        cleat_weights_close(weights);
        if (status == CLEAT_OK) {
            assert_true(n > 10);
            return;
        }
        assert_int_equal(status, CLEAT_ERR_MEMORY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_the_bits_of_the_package_gguf),
        cmocka_unit_test(frozen_weights_keep_the_types_of_a_file),
        cmocka_unit_test(a_file_is_a_folder_of_hugging_face),
        cmocka_unit_test(metadata_are_typed),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(names_occur_once),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(out_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
