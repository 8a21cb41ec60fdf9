/* Chat templates: their programs are recognised, the texts are those of transformers, byte for byte, and the
 * learned tokens those of a reference that works on offsets. Expected values: chats/make_chats.py. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleat/data.h"
#include "core/files.h"
#include "core/memory.h"
#include "data/text/chat.h"
#include "files.h"
#include "platform/files.h"
#include "source_path.h"
#include "json/member.h"

enum { MAX_MESSAGES = 8 };

static cJSON *templates, *chats;
static char *tokenizer_json;
static size_t tokenizer_size;

static int read_files(void **state) {
    (void)state;
    const char *folder = source_path("tests/data/chats");
    if (cleat_json_read_file(folder, "templates.json", &templates, NULL)) return -1;
    tokenizer_json = test_read(source_path("tests/data/chats/tokenizer.json"), &tokenizer_size);
    return cleat_json_read_file(folder, "chats.json", &chats, NULL) ? -1 : 0;
}

static int free_files(void **state) {
    cJSON_Delete(templates);
    cJSON_Delete(chats);
    free(tokenizer_json);
    return test_remove_all(state);
}

/* A folder with the tokenizer and a program in its configuration. */
static const char *write_tokenizer(const char *program) {
    static char folder[600];
    char path[700];
    cJSON *config = cJSON_CreateObject();
    snprintf(folder, sizeof folder, "%s", test_folder("tokenizer"));
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    test_write(path, tokenizer_json, tokenizer_size);
    cJSON_AddStringToObject(config, "bos_token", "<s>");
    cJSON_AddStringToObject(cJSON_AddObjectToObject(config, "eos_token"), "content", "</s>");
    if (program) cJSON_AddStringToObject(config, "chat_template", program);
    assert_int_equal(cleat_json_write_file(folder, "tokenizer_config.json", config, NULL), CLEAT_OK);
    cJSON_Delete(config);
    return folder;
}

/* The caller destroys the tokenizer and frees *chat, on success. */
static cleat_status open_form(const char *form, const char *program, cleat_tokenizer **tokenizer, cleat_chat *chat,
                              cleat_error *error) {
    assert_int_equal(cleat_tokenizer_load(write_tokenizer(program), false, tokenizer, NULL), CLEAT_OK);
    const cleat_status status = cleat_chat_open(form, "", *tokenizer, chat, error);
    if (status) cleat_tokenizer_destroy(*tokenizer);
    return status;
}

static cleat_status open_program(const char *program, cleat_tokenizer **tokenizer, cleat_chat *chat,
                                 cleat_error *error) {
    return open_form("auto", program, tokenizer, chat, error);
}

/* The form by its program, or by its name if templates.json has no text of it. */
static cleat_status open_template(const cJSON *template, cleat_tokenizer **tokenizer, cleat_chat *chat,
                                  cleat_error *error) {
    const char *program = cleat_json_text(template, "text");
    return open_form(program ? "auto" : cleat_json_text(template, "form"), program, tokenizer, chat, error);
}

static void close_program(cleat_tokenizer *tokenizer, cleat_chat *chat) {
    cleat_chat_free(chat);
    cleat_tokenizer_destroy(tokenizer);
}

static const cJSON *conversation_of(const cJSON *item) {
    return cJSON_GetArrayItem(cleat_json_member(chats, "conversations"), (int)cleat_json_number(item, "conversation"));
}

static size_t messages_of(const cJSON *item, cleat_chat_message messages[MAX_MESSAGES]) {
    const cJSON *message;
    size_t count = 0;
    cJSON_ArrayForEach(message, conversation_of(item)) {
        const char *role = cleat_json_text(message, "role");
        assert_true(count < MAX_MESSAGES);
        messages[count++] = (cleat_chat_message){.role = *role == 's'   ? CLEAT_CHAT_SYSTEM
                                                         : *role == 'u' ? CLEAT_CHAT_USER
                                                                        : CLEAT_CHAT_ASSISTANT,
                                                 .content = cleat_json_text(message, "content"),
                                                 .thoughts = cleat_json_text(message, "reasoning_content"),
                                                 .learned = true};
    }
    return count;
}

static void programs_are_recognised(void **state) {
    const cJSON *program;
    (void)state;
    cJSON_ArrayForEach(program, templates) {
        cleat_tokenizer *tokenizer;
        cleat_chat chat = {0};
        cleat_error error = {0};
        char changed[8000];
        const char *text = cleat_json_text(program, "text");
        if (!text) continue;
        if (open_program(text, &tokenizer, &chat, &error) != CLEAT_OK) fail_msg("%s: %s", program->string, error.text);
        assert_string_equal(chat.name, cleat_json_text(program, "form"));
        close_program(tokenizer, &chat);
        snprintf(changed, sizeof changed, "%s", text);
        *strstr(changed, "message") = 'n'; /* one byte */
        assert_int_equal(open_program(changed, &tokenizer, &chat, &error), CLEAT_ERR_NOT_SUPPORTED);
        assert_non_null(strstr(error.text, "apply_chat_template"));
    }
}

/* Reads the program back, and a damaged one. */
static void check_read_back(const cleat_chat *chat, const cleat_string *program) {
    cleat_tokenizer *tokenizer;
    cleat_chat read;
    assert_int_equal(open_program(program->data, &tokenizer, &read, NULL), CLEAT_OK);
    assert_string_equal(read.name, chat->name);
    assert_true(read.published && (read.system != NULL) == (chat->system != NULL));
    if (chat->system) assert_string_equal(read.system, chat->system);
    assert_string_equal(read.date, "26 Jul 2024");
    close_program(tokenizer, &read);
    *strstr(program->data, "message") = 'n';
    assert_int_equal(open_program(program->data, &tokenizer, &read, NULL), CLEAT_ERR_NOT_SUPPORTED);
}

/* chats/programs.json has the written programs, which chats/make_chats.py compares with the published ones. */
static void written_programs_are_recognised(void **state) {
    static const char *const with_system[] = {"chatml", "llama3.1", "llama2", "gemma3", "deepseek-r1"};
    const size_t more = sizeof with_system / sizeof *with_system;
    cJSON *made = cJSON_CreateArray();
    const char *name = "";
    (void)state;
    for (size_t i = 0; name; ++i) {
        const bool system = i < more;
        cleat_tokenizer *tokenizer;
        cleat_chat chat;
        cleat_string program = {0};
        name = system ? with_system[i] : cleat_chat_template_name(i - more + 2);
        if (!name) continue;
        assert_int_equal(open_form(name, NULL, &tokenizer, &chat, NULL), CLEAT_OK);
        assert_true(!chat.published && !chat.system);
        if (system) chat.system = cleat_strdup("It's \"so\":\n\\n{{ x }}\\");
        assert_int_equal(cleat_chat_program(&chat, &program, NULL), CLEAT_OK);
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddItemToArray(made, entry);
        cJSON_AddStringToObject(entry, "form", name);
        cJSON_AddStringToObject(entry, "system", system ? chat.system : "");
        cJSON_AddStringToObject(entry, "text", program.data);
        check_read_back(&chat, &program);
        cleat_string_free(&program);
        close_program(tokenizer, &chat);
    }
    cJSON *kept = NULL;
    assert_int_equal(cleat_json_write_file(test_folder("written"), "programs.json", made, NULL), CLEAT_OK);
    (void)cleat_json_read_file(source_path("tests/data/chats"), "programs.json", &kept, NULL);
    const bool same = cJSON_Compare(made, kept, true);
    cJSON_Delete(made);
    cJSON_Delete(kept);
    if (!same) {
        print_message("copy programs.json of %s to tests/data/chats, and run make_chats.py --check\n",
                      test_path("written"));
        _exit(1); /* keeps the file */
    }
}

static void the_system_message_of_a_program_is_kept(void **state) {
    static const char start[] =
        "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ "
        "'<|im_start|>system\n",
                      end[] = "<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + "
                              "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
                              "'<|im_start|>assistant\n' }}{% endif %}\r\n";
    const cleat_chat_message hello = {.role = CLEAT_CHAT_USER, .content = "Hello"};
    char program[1000];
    cleat_tokenizer *tokenizer;
    cleat_chat chat;
    cleat_string text = {0};
    (void)state;
    snprintf(program, sizeof program, "%s%s%s", start, "You are a pirate.", end);
    assert_int_equal(open_program(program, &tokenizer, &chat, NULL), CLEAT_OK);
    assert_int_equal(cleat_chat_render(&chat, &hello, 1, true, &text, NULL, NULL), CLEAT_OK);
    assert_string_equal(text.data,
                        "<|im_start|>system\nYou are a pirate.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
                        "<|im_start|>assistant\n");
    cleat_string_free(&text);
    close_program(tokenizer, &chat);
    snprintf(program, sizeof program, "%s%s%s", start, "It\\'s {{ name }}", end); /* not a plain text */
    assert_int_equal(open_program(program, &tokenizer, &chat, NULL), CLEAT_ERR_NOT_SUPPORTED);
}

/* Mistral's later templates drop the system message of a conversation that ends with an answer, and that of DeepSeek
 * moves all of them to the front; cleat refuses these. */
static bool is_strict(const char *name, const cleat_chat_message *messages, size_t count) {
    const bool mistral = strcmp(name, "mistral_v0_3") == 0 || strcmp(name, "mistral_nemo") == 0;
    if (mistral) return messages[0].role == CLEAT_CHAT_SYSTEM;
    for (size_t i = 1; i < count && strcmp(name, "deepseek_r1_distill") == 0; ++i)
        if (messages[i].role == CLEAT_CHAT_SYSTEM) return true;
    return false;
}

static void texts_are_those_of_transformers(void **state) {
    const cJSON *item;
    size_t compared = 0, refused = 0;
    (void)state;
    cJSON_ArrayForEach(item, cleat_json_member(chats, "rendered")) {
        const char *name = cleat_json_text(item, "template"), *expected = cleat_json_text(item, "text");
        const cJSON *program = cleat_json_member(templates, name);
        cleat_chat_message messages[MAX_MESSAGES];
        const size_t count = messages_of(item, messages);
        cleat_byte_spans spans = {0};
        cleat_string text = {0};
        cleat_tokenizer *tokenizer;
        cleat_chat chat;
        cleat_error error = {0};
        if (open_template(program, &tokenizer, &chat, &error)) fail_msg("%s: %s", name, error.text);
        const cleat_status status = cleat_chat_render(
            &chat, messages, count, cJSON_IsTrue(cleat_json_member(item, "asks")), &text, &spans, &error);
        if (!expected || status) { /* a system message alone is rendered by templates that put it into the user's */
            assert_int_equal(status, CLEAT_ERR_FORMAT);
            assert_true(!expected || count == 1 || is_strict(name, messages, count));
            ++refused;
        } else {
            assert_string_equal(text.data, expected);
            ++compared;
        }
        cleat_string_free(&text);
        cleat_free(spans.all);
        close_program(tokenizer, &chat);
    }
    assert_true(compared > 200 && refused > 30);
}

static void learned_tokens_are_those_of_the_reference(void **state) {
    const cJSON *item;
    size_t compared = 0;
    (void)state;
    cJSON_ArrayForEach(item, cleat_json_member(chats, "encoded")) {
        const char *name = cleat_json_text(item, "template");
        const cJSON *program = cleat_json_member(templates, name), *ids = cleat_json_member(item, "ids"),
                    *learned = cleat_json_member(item, "learned");
        char *line = cJSON_PrintUnformatted(conversation_of(item));
        cleat_string text = {0};
        cleat_causal_options options = cleat_causal_defaults();
        cleat_dataset *dataset = NULL;
        cleat_error error = {0};
        int32_t tokens[1024], labels[1024], starts[1024];
        void *const slots[] = {tokens, labels, starts};
        cleat_string_add(&text, "{\"messages\": %s}\n", line);
        test_write_text(test_path("one.jsonl"), text.data);
        const char *form = cleat_json_text(program, "form");
        options.vocabulary = write_tokenizer(cleat_json_text(program, "text"));
        if (!cleat_json_text(program, "text")) options.chat_name = form;
        options.val_fraction = 0;
        options.max_length = 1024;
        if (cleat_causal_open(test_path("one.jsonl"), &options, &dataset, &error) != CLEAT_OK)
            fail_msg("%s", error.text);
        assert_int_equal(cleat_dataset_count(dataset), 1);
        assert_int_equal(cleat_dataset_fill(dataset, 0, 1024, NULL, slots, NULL), CLEAT_OK);
        const int64_t length = cleat_dataset_length(dataset, 0), count = cJSON_GetArraySize(ids);
        int64_t items = 0;
        assert_true(length < count);
        for (int64_t i = 0; i + 1 < count; ++i) {
            const int32_t id = cJSON_GetArrayItem(ids, (int)i)->valueint,
                          next = cJSON_GetArrayItem(ids, (int)i + 1)->valueint;
            const bool wanted = cJSON_GetArrayItem(learned, (int)i + 1)->valueint;
            if (i < length) assert_int_equal(tokens[i], id);
            assert_int_equal(labels[i], wanted ? next : -1); /* -1 behind the last learned token */
            assert_int_equal(starts[i], i < length ? 0 : INT32_MAX);
            items += wanted;
        }
        assert_int_equal(cleat_dataset_items(dataset, 0), items);
        compared += (size_t)items;
        cleat_dataset_destroy(dataset);
        cleat_string_free(&text);
        cJSON_free(line);
    }
    assert_true(compared > 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_are_recognised),
        cmocka_unit_test(written_programs_are_recognised),
        cmocka_unit_test(the_system_message_of_a_program_is_kept),
        cmocka_unit_test(texts_are_those_of_transformers),
        cmocka_unit_test(learned_tokens_are_those_of_the_reference),
    };
    return cmocka_run_group_tests(tests, read_files, free_files);
}
