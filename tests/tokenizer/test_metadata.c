/* Tokenizers of language models from the metadata of GGUF files; metadata that are damaged. */
/* ctest: quick no-memcheck */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cJSON.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/files.h"
#include "core/memory.h"
#include "platform/files.h"
#include "sentencepiece.pb-c.h"
#include "source_path.h"
#include "tokenizer/tokenizer.h"

#define FOLDER(name) source_path("tests/tokenizer/tokenizers/" name)

static cleat_text_view view(const char *text) {
    return (cleat_text_view){text, strlen(text)};
}

static cJSON *read_json(const char *path) {
    char *data = NULL;
    size_t size = 0;
    assert_int_equal(cleat_file_read(path, &data, &size, NULL), CLEAT_OK);
    cJSON *root = cJSON_Parse(data);
    cleat_free(data);
    assert_non_null(root);
    return root;
}

/* The ids of a text, without special tokens around it. */
static size_t encode(const cleat_tokenizer *tokenizer, const char *text, int32_t *ids, size_t capacity) {
    cleat_token tokens[512];
    size_t count = 0;
    assert_true(capacity <= 512);
    assert_int_equal(cleat_tokenizer_encode(tokenizer, text, strlen(text), tokens, capacity, &count, NULL), CLEAT_OK);
    assert_true(count <= capacity);
    for (size_t i = 0; i < count; ++i) ids[i] = tokens[i].id;
    return count;
}

static const char *const texts[] = {"",
                                    "the fox",
                                    "  The   FOX\t jumps\n\n we'll DON'T x1234.5678",
                                    "caf\xC3\xA9 cafe\xCC\x81 \xE4\xB8\xAD\xE6\x96\x87 \xF0\x9F\x98\x80",
                                    "x<tag>y <|eot_id|>the<|begin_of_text|>",
                                    "\xE2\x96\x81\xE2\x96\x81the </s><s> fox"};

static void expect_same(const cleat_tokenizer *a, const cleat_tokenizer *b) {
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        int32_t x[512], y[512];
        const size_t n = encode(a, texts[i], x, 512);
        assert_int_equal(encode(b, texts[i], y, 512), n);
        assert_memory_equal(x, y, n * sizeof *x);
    }
}

enum { MOST = 512 };

/* The metadata of a tokenizer.json, as converters write them to GGUF files. */
typedef struct metadata {
    cleat_tokenizer_metadata m;
    cleat_text_view pieces[MOST], merges[MOST];
    int32_t types[MOST];
    float scores[MOST];
    char lines[MOST][64];
    cJSON *root;
} metadata;

static void fill(metadata *d, const char *path) {
    const cJSON *model, *item;
    *d = (metadata){.m = {.pieces = d->pieces, .merges = d->merges, .types = d->types}};
    d->m.bos = d->m.eos = d->m.unk = d->m.pad = d->m.add_bos = d->m.add_eos = d->m.add_space_prefix = -1;
    d->root = read_json(path);
    model = cJSON_GetObjectItem(d->root, "model");
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(model, "vocab")) {
        assert_true(item->valueint < MOST);
        d->pieces[item->valueint] = view(item->string);
        d->types[item->valueint] = 1;
        ++d->m.count;
    }
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(d->root, "added_tokens")) {
        const int id = cJSON_GetObjectItem(item, "id")->valueint;
        d->pieces[id] = view(cJSON_GetObjectItem(item, "content")->valuestring);
        d->types[id] = cJSON_IsTrue(cJSON_GetObjectItem(item, "special")) ? 3 : 4;
        if ((size_t)id >= d->m.count) d->m.count = (size_t)id + 1;
    }
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(model, "merges")) {
        char *line = d->lines[d->m.n_merges];
        snprintf(line, sizeof d->lines[0], "%s %s", cJSON_GetArrayItem(item, 0)->valuestring,
                 cJSON_GetArrayItem(item, 1)->valuestring);
        d->merges[d->m.n_merges++] = view(line);
    }
}

static cleat_tokenizer *make(const cleat_tokenizer_metadata *m) {
    cleat_tokenizer *tokenizer = NULL;
    cleat_error error = {0};
    if (cleat_tokenizer_from_metadata(m, "x.gguf", &tokenizer, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return tokenizer;
}

static cleat_tokenizer *load(const char *path) {
    cleat_tokenizer *tokenizer = NULL;
    cleat_error error = {0};
    if (cleat_tokenizer_load(path, false, &tokenizer, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return tokenizer;
}

static void byte_level_metadata_have_the_ids_of_tokenizer_json(void **state) {
    static metadata d;
    (void)state;
    fill(&d, FOLDER("llama3.json"));
    d.m.pre = "llama-bpe";
    d.m.chat_template = "{{ \"x\" }}";
    cleat_tokenizer *expected = load(FOLDER("llama3.json"));
    d.m.bos = cleat_tokenizer_bos(expected);
    d.m.eos = cleat_tokenizer_id(expected, "<|eot_id|>");
    d.m.eot = cleat_tokenizer_id(expected, "<|end_of_text|>");
    cleat_tokenizer *made = make(&d.m);
    expect_same(made, expected);
    assert_int_equal(cleat_tokenizer_size(made), cleat_tokenizer_size(expected));
    assert_int_equal(cleat_tokenizer_leading(made), 1); /* llama-bpe, if the file does not say */
    assert_true(cleat_tokenizer_bos(made) == d.m.bos && cleat_tokenizer_eos(made) == d.m.eos);
    assert_false(cleat_tokenizer_is_special(made, cleat_tokenizer_id(made, "<tag>")));

    /* a checkpoint has the same tokenizer, and the chat template */
    char folder[64], path[128], before[33], after[33];
    snprintf(folder, sizeof folder, "/tmp/cleat-metadata-%ld", (long)getpid());
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(cleat_tokenizer_save_folder(made, folder, NULL), CLEAT_OK);
    cleat_tokenizer *saved = load(folder);
    cleat_tokenizer_hash(made, before);
    cleat_tokenizer_hash(saved, after);
    assert_string_equal(before, after);
    assert_int_equal(cleat_tokenizer_eos(saved), d.m.eos);
    assert_true(cleat_tokenizer_ends(saved, d.m.eos) && cleat_tokenizer_ends(saved, d.m.eot));
    assert_false(cleat_tokenizer_ends(saved, d.m.bos) || cleat_tokenizer_ends(saved, -1));
    snprintf(path, sizeof path, "%s/tokenizer_config.json", folder);
    cJSON *config = read_json(path);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(config, "chat_template")), d.m.chat_template);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(config, "eos_token")), "<|eot_id|>");
    cJSON_Delete(config);
    unlink(path);
    snprintf(path, sizeof path, "%s/generation_config.json", folder);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
    cleat_tokenizer_destroy(saved);
    cleat_tokenizer_destroy(made);
    cleat_tokenizer_destroy(expected);
    cJSON_Delete(d.root);
}

/* The words of tokenizers 0.23.3 with the steps that the published files of these models have; `default` are
 * llama.cpp's expressions. */
static void pre_tokenizers_find_words(void **state) {
    static const char text[] = "it's DON'T 12345  aB/\xC3\xA9!\n\n $1";
    static const char *const rows[][2] = {
        {"llama-bpe", "it|'s| DON|'T| |123|45| | aB|/\xC3\xA9|!\n\n| $|1"},
        {"qwen2", "it|'s| DON|'T| |1|2|3|4|5| | aB|/\xC3\xA9|!\n\n| $|1"},
        {"smollm", "it|'s| DON|'|T| |1|2|3|4|5| | aB|/|\xC3\xA9|!|\n\n| $|1"},
        {"gpt-2", "it|'s| DON|'|T| 12345| | aB|/|\xC3\xA9|!|\n\n| $|1"},
        {"tekken", "it|'s| DON|'T| |1|2|3|4|5| | a|B|/\xC3\xA9|!\n\n| $|1"},
        {"default", "it|'|s| DON|'|T| |123|45| | aB|/|\xC3\xA9|!|\n\n |$|1"},
        {NULL, "it|'|s| DON|'|T| |123|45| | aB|/|\xC3\xA9|!|\n\n |$|1"},
    };
    static metadata d;
    (void)state;
    fill(&d, FOLDER("llama3.json"));
    d.m.n_merges = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_token tokens[64];
        char words[128] = "";
        size_t count = 0, used = 0;
        d.m.pre = rows[i][0];
        cleat_tokenizer *made = make(&d.m);
        assert_int_equal(cleat_tokenizer_encode(made, text, strlen(text), tokens, 64, &count, NULL), CLEAT_OK);
        for (size_t k = 0; k < count; ++k) {
            if (k && tokens[k].word != tokens[k - 1].word) words[used++] = '|';
            if (k && tokens[k].begin == tokens[k - 1].begin) continue; /* bytes of one character */
            memcpy(words + used, text + tokens[k].begin, tokens[k].end - tokens[k].begin);
            used += tokens[k].end - tokens[k].begin;
        }
        assert_string_equal(words, rows[i][1]);
        int32_t composed[8], decomposed[8]; /* U+00E9, and e with U+0301: Qwen's normal form makes them equal */
        const size_t n = encode(made, "\xC3\xA9", composed, 8);
        const bool same =
            encode(made, "e\xCC\x81", decomposed, 8) == n && !memcmp(composed, decomposed, n * sizeof *composed);
        assert_int_equal(same, rows[i][0] && strcmp(rows[i][0], "qwen2") == 0);
        cleat_tokenizer_destroy(made);
    }
    cJSON_Delete(d.root);
}

/* The metadata of tests/tokenizer/tokenizers/tokenizer.model. */
static void fill_model(metadata *d, Cleat__Sentencepiece__Model **model) {
    char *data = NULL;
    size_t size = 0;
    assert_int_equal(cleat_file_read(FOLDER("tokenizer.model"), &data, &size, NULL), CLEAT_OK);
    *model = cleat__sentencepiece__model__unpack(NULL, size, (const uint8_t *)data);
    cleat_free(data);
    assert_non_null(*model);
    *d = (metadata){.m = {.is_sentencepiece = true, .pieces = d->pieces, .types = d->types, .scores = d->scores}};
    for (size_t i = 0; i < (*model)->n_pieces && i < MOST; ++i) {
        d->pieces[i] = view((*model)->pieces[i]->piece);
        d->types[i] = (*model)->pieces[i]->type;
        d->scores[i] = (*model)->pieces[i]->score;
    }
    d->m.count = (*model)->n_pieces;
    d->m.bos = 1;
    d->m.eos = 2;
    d->m.unk = 0;
    d->m.pad = d->m.add_bos = d->m.add_eos = d->m.add_space_prefix = -1;
}

static void sentencepiece_metadata_have_the_ids_of_the_model(void **state) {
    static metadata d;
    Cleat__Sentencepiece__Model *model = NULL;
    int32_t ids[16];
    (void)state;
    fill_model(&d, &model);
    cleat_tokenizer *expected = load(FOLDER("tokenizer.model")), *made = make(&d.m);
    expect_same(made, expected);
    assert_int_equal(cleat_tokenizer_leading(made), 1);
    cleat_tokenizer_destroy(made);

    /* converters write blanks for the marks of what users defined */
    int32_t run = cleat_tokenizer_id(expected, "  ");
    assert_true(run > 0 && strcmp(d.pieces[run].data, "\xE2\x96\x81\xE2\x96\x81") == 0);
    d.pieces[run] = view("  ");
    made = make(&d.m);
    expect_same(made, expected);
    cleat_tokenizer_destroy(made);

    d.types[300] = 7; /* not a type: a token as others */
    made = make(&d.m);
    expect_same(made, expected);
    assert_false(cleat_tokenizer_is_special(made, 300));
    cleat_tokenizer_destroy(made);

    d.m.scores = NULL; /* then pieces are in the order of their ids, as SentencePiece writes them */
    d.m.add_bos = 0;
    d.m.add_eos = 1;
    made = make(&d.m);
    expect_same(made, expected);
    cleat_token_counts framed;
    assert_int_equal(cleat_tokenizer_frame(made, &(cleat_ids){NULL, 0}, NULL, 16, ids, NULL, &framed, NULL), CLEAT_OK);
    assert_true(framed.count == 1 && ids[0] == 2);
    cleat_tokenizer_destroy(made);

    d.m.add_space_prefix = 0; /* as Gemma */
    made = make(&d.m);
    assert_int_equal(encode(made, "a", ids, 16), 1);
    assert_int_equal(ids[0], cleat_tokenizer_id(made, "a"));
    size_t size = 0;
    char text[8] = "";
    const int32_t blank = cleat_tokenizer_id(made, "\xE2\x96\x81");
    assert_int_equal(cleat_tokenizer_decode(made, &blank, 1, false, text, sizeof text, &size, NULL), CLEAT_OK);
    assert_true(size == 1 && text[0] == ' '); /* no first blank is removed */
    cleat_tokenizer_destroy(made);
    cleat_tokenizer_destroy(expected);
    cleat__sentencepiece__model__free_unpacked(model, NULL);
}

/* Writes the model and a tokenizer_config.json to a folder, and loads them. */
static cleat_status load_model(const Cleat__Sentencepiece__Model *model, const char *config,
                               cleat_tokenizer **tokenizer, cleat_error *error) {
    const size_t size = cleat__sentencepiece__model__get_packed_size(model);
    uint8_t *packed = malloc(size);
    char folder[64], path[2][128];
    assert_int_equal(cleat__sentencepiece__model__pack(model, packed), size);
    snprintf(folder, sizeof folder, "/tmp/cleat-model-%ld", (long)getpid());
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(path[0], sizeof path[0], "%s/tokenizer.model", folder);
    snprintf(path[1], sizeof path[1], "%s/tokenizer_config.json", folder);
    assert_int_equal(cleat_file_write(path[0], packed, size, NULL), CLEAT_OK);
    assert_int_equal(cleat_file_write(path[1], config, strlen(config), NULL), CLEAT_OK);
    *tokenizer = NULL;
    const cleat_status status = cleat_tokenizer_load(folder, false, tokenizer, error);
    unlink(path[0]);
    unlink(path[1]);
    rmdir(folder);
    free(packed);
    return status;
}

static void models_of_sentencepiece_have_settings(void **state) {
    static metadata d;
    Cleat__Sentencepiece__Model *model = NULL;
    cleat_tokenizer *made = NULL;
    cleat_error error = {0};
    cleat_token_counts framed;
    int32_t ids[8];
    (void)state;
    fill_model(&d, &model);
    model->trainer->has_pad_id = true;
    model->trainer->pad_id = 300;
    assert_int_equal(load_model(model, "{\"add_bos_token\":false,\"add_eos_token\":true}", &made, &error), CLEAT_OK);
    assert_int_equal(cleat_tokenizer_frame(made, &(cleat_ids){NULL, 0}, NULL, 8, ids, NULL, &framed, NULL), CLEAT_OK);
    assert_true(framed.count == 1 && ids[0] == 2);
    assert_true(cleat_tokenizer_is_special(made, 300) && !cleat_tokenizer_is_special(made, 301));
    cleat_tokenizer_destroy(made);
    assert_int_equal(load_model(model, "{\"tokenizer_class\":\"XLMRobertaTokenizer\"}", &made, &error),
                     CLEAT_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(error.text, "a BPE model is that of a LlamaTokenizer"));
    model->normalizer->has_remove_extra_whitespaces = model->normalizer->remove_extra_whitespaces = true;
    assert_int_equal(load_model(model, "{}", &made, &error), CLEAT_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(error.text, "a BPE model that changes characters or blanks"));
    model->normalizer->remove_extra_whitespaces = false;
    uint8_t map = 1;
    model->normalizer->has_precompiled_charsmap = true;
    model->normalizer->precompiled_charsmap = (ProtobufCBinaryData){1, &map};
    assert_int_equal(load_model(model, "{}", &made, &error), CLEAT_ERR_NOT_SUPPORTED);
    model->normalizer->precompiled_charsmap = (ProtobufCBinaryData){0, NULL};
    model->trainer->model_type = 3;
    assert_int_equal(load_model(model, "{}", &made, &error), CLEAT_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(error.text, "neither a Unigram nor a BPE model (type 3)"));
    cleat__sentencepiece__model__free_unpacked(model, NULL);
}

static void characters_without_a_piece_are_unknown(void **state) {
    const cleat_text_view pieces[] = {view("<unk>"), view("a")};
    const int32_t types[] = {2, 1};
    const cleat_tokenizer_metadata m = {
        .is_sentencepiece = true, .pieces = pieces, .types = types, .count = 2, .bos = -1, .eos = -1, .pad = -1};
    int32_t ids[8];
    (void)state;
    cleat_tokenizer *made = make(&m);
    assert_int_equal(encode(made, "abca", ids, 8), 3); /* neighbours are one token */
    assert_true(ids[0] == 1 && ids[1] == 0 && ids[2] == 1);
    assert_int_equal(cleat_tokenizer_unk(made), 0);
    cleat_tokenizer_destroy(made);
}

static void expect_error(const cleat_tokenizer_metadata *m, cleat_status status, const char *text) {
    cleat_tokenizer *tokenizer = NULL;
    cleat_error error = {0};
    assert_int_equal(cleat_tokenizer_from_metadata(m, "x.gguf", &tokenizer, &error), status);
    if (!strstr(error.text, text) || strncmp(error.text, "x.gguf: ", 8) != 0)
        fail_msg("'%s' lacks '%s', or the place", error.text, text);
    assert_null(tokenizer);
}

static void damaged_metadata_are_errors(void **state) {
    static metadata d;
    static char piece[1026];
    Cleat__Sentencepiece__Model *model = NULL;
    (void)state;
    fill(&d, FOLDER("llama3.json"));
    const metadata whole = d;
    d.m.pre = "llama";
    expect_error(&d.m, CLEAT_ERR_NOT_SUPPORTED, "the pre-tokenizer 'llama' is not known (llama-bpe, ");
    d.m.pre = "qwen2 deepseek-r1-qwen"; /* two names */
    expect_error(&d.m, CLEAT_ERR_NOT_SUPPORTED, "is not known");
    d.m.pre = "gpt-2";
    d.m.eos = (int32_t)d.m.count;
    expect_error(&d.m, CLEAT_ERR_FORMAT, "the id 324 of a special token is not one of 324 tokens");
    d.m.eos = -2;
    expect_error(&d.m, CLEAT_ERR_FORMAT, "the id -2 ");
    d.m.eos = -1;
    d.m.chat_template = "\xFF";
    expect_error(&d.m, CLEAT_ERR_FORMAT, "the chat template is not UTF-8");
    d.m.chat_template = NULL;
    d.m.count = 0;
    expect_error(&d.m, CLEAT_ERR_FORMAT, "0 tokens; a tokenizer has 1 to");
    d.m.count = whole.m.count;
    d.pieces[7] = (cleat_text_view){"a\0b", 3};
    expect_error(&d.m, CLEAT_ERR_FORMAT, "token 7 is not UTF-8, has a zero byte");
    d.pieces[7] = view("\xFF");
    expect_error(&d.m, CLEAT_ERR_FORMAT, "token 7 is not UTF-8");
    memset(piece, 'x', sizeof piece - 1);
    d.pieces[7] = view(piece);
    expect_error(&d.m, CLEAT_ERR_FORMAT, "more than 1024 bytes");
    d.pieces[7] = whole.pieces[7];
    d.merges[2] = view("t");
    expect_error(&d.m, CLEAT_ERR_FORMAT, "merge 3 must be two tokens");
    d.merges[2] = view("a \xE4\xB8\xAD");
    expect_error(&d.m, CLEAT_ERR_FORMAT, "the second is not in the vocabulary");
    cJSON_Delete(d.root);
    fill_model(&d, &model);
    d.scores[300] = NAN;
    expect_error(&d.m, CLEAT_ERR_FORMAT, "token 300 ");
    cleat__sentencepiece__model__free_unpacked(model, NULL);
}

static void no_memory_is_an_error(void **state) {
    static metadata d;
    Cleat__Sentencepiece__Model *model = NULL;
    cleat_status status = CLEAT_ERR_MEMORY;
    (void)state;
    fill_model(&d, &model);
    d.m.count = 270; /* the bytes, and few of the others */
    for (long n = 1; status; ++n) {
        cleat_tokenizer *tokenizer = NULL;
        cleat_fail_allocation(n);
        status = cleat_tokenizer_from_metadata(&d.m, "x", &tokenizer, NULL);
        cleat_fail_allocation(0);
        if (status) assert_int_equal(status, CLEAT_ERR_MEMORY);
        assert_true(n < 20000);
        cleat_tokenizer_destroy(tokenizer);
    }
    cleat__sentencepiece__model__free_unpacked(model, NULL);
}

/* Tokens that each are the union of two others in many ways. */
static void many_long_tokens_take_a_moment(void **state) {
    enum { TOKENS = 1 << 15, LENGTH = 20 };
    (void)state;
    cleat_text_view *pieces = calloc(TOKENS, sizeof *pieces);
    char *names = calloc(TOKENS, LENGTH);
    for (int i = 0; i < TOKENS; ++i) {
        char *name = names + (size_t)i * LENGTH;
        for (int k = 0, rest = i + 2; rest > 1; ++k, rest /= 2) name[k] = rest % 2 ? 'a' : 'b';
        pieces[i] = view(name);
    }
    cleat_tokenizer_metadata m = {
        .is_sentencepiece = true, .pieces = pieces, .count = TOKENS, .bos = -1, .eos = -1, .unk = -1, .pad = -1};
    cleat_tokenizer *made = make(&m);
    assert_int_equal(cleat_tokenizer_size(made), TOKENS);
    cleat_tokenizer_destroy(made);
    free(names);
    free(pieces);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_level_metadata_have_the_ids_of_tokenizer_json),
        cmocka_unit_test(pre_tokenizers_find_words),
        cmocka_unit_test(sentencepiece_metadata_have_the_ids_of_the_model),
        cmocka_unit_test(models_of_sentencepiece_have_settings),
        cmocka_unit_test(characters_without_a_piece_are_unknown),
        cmocka_unit_test(damaged_metadata_are_errors),
        cmocka_unit_test(no_memory_is_an_error),
        cmocka_unit_test(many_long_tokens_take_a_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
