/* Targets of the fuzzer: texts and tokenizers. */
#include "fuzz.h"

#include "cleat/causal_texts.h"
#include "cleat/texts.h"
#include "core/files.h"
#include "core/memory.h"
#include "data/dataset.h"
#include "data/text/chat.h"
#include "data/text/encode.h"
#include "data/text/encode_cache.h"
#include "platform/processes.h"
#include "tokenizer/tokenizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char sample[] =
    "Der  Fu\xc3\xa7\xc3\xa3o's [MASK] 12,5 \xe4\xb8\xad\xe6\x96\x87 e\xcc\x81 \xf0\x9f\x98\x80\t<s>_A_";

static void use(cleat_tokenizer *tokenizer) {
    cleat_token tokens[64];
    size_t count;
    (void)!cleat_tokenizer_encode(tokenizer, sample, sizeof sample - 1, tokens, 64, &count, NULL);
    (void)!cleat_tokenizer_encode_word(tokenizer, "naive", 5, tokens, 64, &count, NULL);
    cleat_token_stream *stream = NULL;
    cleat_text_view text;
    int32_t ids[300]; /* all tokens of a small vocabulary, in two orders */
    for (int i = 0; i < 300; ++i) ids[i] = i % 2 ? i : 299 - i;
    (void)!cleat_tokenizer_decode(tokenizer, ids, 300, false, NULL, 0, &count, NULL);
    if (!cleat_token_stream_create(tokenizer, true, &stream, NULL)) {
        for (int i = 0; i < 300; ++i) (void)!cleat_token_stream_add(stream, ids[i], &text, NULL);
        (void)!cleat_token_stream_end(stream, &text, NULL);
    }
    cleat_token_stream_destroy(stream);
    cleat_tokenizer_destroy(tokenizer);
}

static void read_tokenizer(const char *name, const uint8_t *bytes, size_t size) {
    cleat_tokenizer *tokenizer = NULL;
    if (!cleat_tokenizer_load(fuzz_file(name, bytes, size), true, &tokenizer, NULL)) use(tokenizer);
}

static void tokenizer_json(const uint8_t *bytes, size_t size) {
    read_tokenizer("tokenizer.json", bytes, size);
}

static void sentencepiece(const uint8_t *bytes, size_t size) {
    read_tokenizer("x.model", bytes, size);
}

/* Metadata: a byte of settings, four ids, and tokens, each a byte of its type and a text up to a zero byte; the last
 * half are merges. */
static void metadata(const uint8_t *bytes, size_t size) {
    enum { MOST = 256 };
    static const char *const names[] = {"llama-bpe", "qwen2", "smollm", "gpt-2", "tekken", "default", "x", NULL};
    cleat_text_view pieces[MOST];
    float scores[MOST];
    int32_t types[MOST];
    size_t n = 0;
    if (size < 5) return;
    char *copy = fuzz_text(bytes, size);
    for (size_t at = 5; at + 1 < size && n < MOST; at += pieces[n++].size + 2) {
        types[n] = copy[at] % 8;
        scores[n] = copy[at] < 0 ? NAN : copy[at];
        pieces[n] = (cleat_text_view){copy + at + 1, strlen(copy + at + 1)};
    }
    const uint8_t flags = bytes[0];
    const bool marks = flags & 1;
    cleat_tokenizer_metadata m = {.is_sentencepiece = marks,
                                  .pre = names[flags >> 5],
                                  .pieces = pieces,
                                  .scores = flags & 2 ? scores : NULL,
                                  .types = flags & 4 ? types : NULL,
                                  .count = marks ? n : n - n / 2,
                                  .bos = (int8_t)bytes[1],
                                  .eos = (int8_t)bytes[2],
                                  .unk = (int8_t)bytes[3],
                                  .pad = (int8_t)bytes[4],
                                  .add_bos = flags >> 3 & 1,
                                  .add_eos = flags >> 4 & 1,
                                  .add_space_prefix = flags >> 3 & 1};
    m.merges = pieces + m.count;
    m.n_merges = n - m.count;
    cleat_tokenizer *tokenizer = NULL;
    if (!cleat_tokenizer_from_metadata(&m, "x", &tokenizer, NULL)) use(tokenizer);
    free(copy);
}

static void vocabulary(const uint8_t *bytes, size_t size) {
    read_tokenizer("vocab.txt", bytes, size);
}

static const char pieces[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n##a\n##b\n##c\n1\n.\n";

static void read_texts(const char *name, cleat_text_task task, bool labelled, const uint8_t *bytes, size_t size) {
    char vocabulary_path[256], path[256];
    cleat_text_options options = cleat_text_defaults();
    cleat_dataset *dataset = NULL;
    strcpy(vocabulary_path, fuzz_file("pieces.txt", (const uint8_t *)pieces, sizeof pieces - 1));
    strcpy(path, fuzz_file(name, bytes, size));
    options.vocabulary = vocabulary_path;
    options.task = task;
    options.labelled = labelled;
    options.plain = !labelled;
    options.max_length = 16;
    options.empty = CLEAT_TEXT_EMPTY_SKIP;
    options.repair_tags = options.replace_invalid = size % 2;
    if (cleat_text_open(path, &options, &dataset, NULL)) return;
    int32_t space[4][16];
    void *fields[4] = {space[0], space[1], space[2], space[3]};
    for (size_t i = 0; i < cleat_dataset_count(dataset) && i < 32; ++i)
        (void)!cleat_dataset_fill(dataset, i, 16, NULL, fields, NULL);
    cleat_dataset_destroy(dataset);
}

static void table(const uint8_t *bytes, size_t size) {
    read_texts("t.csv", CLEAT_TEXT_CLASSES, true, bytes, size);
}

static void tsv(const uint8_t *bytes, size_t size) {
    read_texts("t.tsv", CLEAT_TEXT_CLASSES, true, bytes, size);
}

static void conll(const uint8_t *bytes, size_t size) {
    read_texts("t.conll", CLEAT_TEXT_TAGS, true, bytes, size);
}

static void lines(const uint8_t *bytes, size_t size) {
    read_texts("t.txt", CLEAT_TEXT_CLASSES, false, bytes, size);
}

/* A tokenizer of two letters, a line break and the special tokens of all templates. */
static const char *write_chat_tokenizer(void) {
    static const char *const specials[] = {"<s>",
                                           "</s>",
                                           "<|im_start|>",
                                           "<|im_end|>",
                                           "<|start_header_id|>",
                                           "<|end_header_id|>",
                                           "<|eot_id|>",
                                           "<start_of_turn>",
                                           "<end_of_turn>",
                                           "[INST]",
                                           "[/INST]",
                                           "<|system|>",
                                           "<|user|>",
                                           "<|assistant|>",
                                           "<|end|>",
                                           "<｜User｜>",
                                           "<｜Assistant｜>",
                                           "<｜end▁of▁sentence｜>"};
    static cleat_string json;
    if (!json.data) {
        cleat_string_add(&json,
                         "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"\u010A\": 2, \"ab\": "
                         "3}, \"merges\": [\"a b\"]}, \"pre_tokenizer\": {\"type\": \"ByteLevel\", "
                         "\"add_prefix_space\": false, \"use_regex\": true}, \"added_tokens\": [");
        for (int i = 0; i < (int)(sizeof specials / sizeof *specials); ++i)
            cleat_string_add(&json, "%s{\"id\": %d, \"content\": \"%s\", \"special\": true, \"normalized\": false}",
                             i ? ", " : "", 4 + i, specials[i]);
        cleat_string_add(&json, "]}");
        if (json.failed) abort();
    }
    return fuzz_file("tokenizer.json", (const uint8_t *)json.data, json.size);
}

/* It outlives the files of an input. */
static const cleat_tokenizer *chat_tokenizer(void) {
    static cleat_tokenizer *made;
    static const char config[] = "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\"}";
    if (made) return made;
    fuzz_file("tokenizer_config.json", (const uint8_t *)config, sizeof config - 1);
    if (cleat_tokenizer_load(write_chat_tokenizer(), false, &made, NULL)) abort();
    return made;
}

/* The size of the input chooses the template, and what is read. */
static void read_causal(const char *name, const uint8_t *bytes, size_t size) {
    cleat_causal_options options = cleat_causal_defaults();
    cleat_dataset *dataset = NULL;
    options.tokenizer = chat_tokenizer();
    options.predicted = size % 3 == 0;
    options.train_on = size % 2 ? CLEAT_ON_COMPLETIONS : CLEAT_ON_ALL;
    options.chat_name = cleat_chat_template_name(size / 6 % 21);
    if (!options.chat_name) options.chat_name = "auto";
    options.max_length = 16;
    options.system = size % 5 ? "" : "b";
    if (cleat_causal_open(fuzz_file(name, bytes, size), &options, &dataset, NULL)) return;
    int32_t space[3][16];
    void *fields[3] = {space[0], space[1], space[2]};
    for (size_t i = 0; i < cleat_dataset_count(dataset) && i < 32; ++i)
        if (cleat_dataset_fill(dataset, i, 16, NULL, fields, NULL) || !*cleat_dataset_id(dataset, i)) abort();
    cleat_dataset_destroy(dataset);
}

static void chats(const uint8_t *bytes, size_t size) {
    read_causal("t.jsonl", bytes, size);
}

static void prompts(const uint8_t *bytes, size_t size) {
    read_causal("t.csv", bytes, size);
}

static void documents(const uint8_t *bytes, size_t size) {
    read_causal("t.txt", bytes, size);
}

/* A tokenizer_config.json with a template. */
static void chat_template(const uint8_t *bytes, size_t size) {
    static const cleat_chat_message messages[] = {{.role = CLEAT_CHAT_USER, .content = " a\n"},
                                                  {.role = CLEAT_CHAT_ASSISTANT, .content = "b", .learned = true}};
    cleat_tokenizer *tokenizer;
    cleat_chat chat;
    cleat_string text = {0};
    cleat_byte_spans spans = {0};
    write_chat_tokenizer();
    fuzz_file("tokenizer_config.json", bytes, size);
    if (cleat_tokenizer_load(fuzz_folder(), false, &tokenizer, NULL)) return;
    if (!cleat_chat_open("auto", "", tokenizer, &chat, NULL)) {
        if (chat.form) (void)!cleat_chat_render(&chat, messages, 2, false, &text, &spans, NULL);
        cleat_string_free(&text);
        cleat_free(spans.all);
        cleat_chat_free(&chat);
    }
    cleat_tokenizer_destroy(tokenizer);
}

/* The header of encode_cache.c. */
enum { HASHED_FROM = 40 + 80, HASH_AT = 40 + 40 };

/* Sets a valid checksum and the key of the texts, so the fuzzer changes only the contents. */
static void encode_cache(const uint8_t *bytes, size_t size) {
    static const cleat_text_view texts[] = {{"ab", 2}, {"c", 1}};
    static cleat_tokenizer *tokenizer;
    static char key[40], path[512];
    if (!tokenizer) { /* once: reads the key from a cache that the library has written */
        setenv("CLEAT_CACHE_DIR", fuzz_folder(), 1);
        char *data = NULL;
        size_t length = 0;
        cleat_encoded_texts encoded = {0};
        bool reused;
        if (cleat_tokenizer_load(fuzz_file("pieces.txt", (const uint8_t *)pieces, sizeof pieces - 1), true, &tokenizer,
                                 NULL))
            abort();
        const cleat_encode_setup setup = {.tokenizer = tokenizer, .texts = texts, .n = 2};
        if (cleat_encode_cached(&setup, "x", &reused, &encoded, NULL)) abort();
        cleat_encoded_texts_free(&encoded);
        if (cleat_encode_cache_path("x", path, sizeof path, NULL) || cleat_file_read(path, &data, &length, NULL) ||
            length < HASHED_FROM)
            abort();
        memcpy(key, data + 40, sizeof key);
        cleat_free(data);
    }
    char *copy = fuzz_text(bytes, size);
    if (size >= HASHED_FROM) {
        memcpy(copy, "CLEATTOK\1\0\0\0\0\0\0\0", 16);
        memcpy(copy + 40, key, sizeof key);
        cleat_hash_text(copy + HASHED_FROM, size - HASHED_FROM, copy + HASH_AT);
    }
    fuzz_file(strrchr(path, '/') + 1, (const uint8_t *)copy, size);
    free(copy);
    const cleat_encode_setup setup = {.tokenizer = tokenizer, .texts = texts, .n = 2};
    cleat_encoded_texts encoded = {0};
    bool reused;
    if (!cleat_encode_cached(&setup, "x", &reused, &encoded, NULL)) cleat_encoded_texts_free(&encoded);
}

const fuzz_target fuzz_text_targets[] = {
    {"tokenizer_json", tokenizer_json},
    {"sentencepiece", sentencepiece},
    {"metadata", metadata},
    {"vocabulary", vocabulary},
    {"table", table},
    {"tsv", tsv},
    {"conll", conll},
    {"lines", lines},
    {"encode_cache", encode_cache},
    {"chats", chats},
    {"prompts", prompts},
    {"documents", documents},
    {"chat_template", chat_template},
    {NULL, NULL},
};
