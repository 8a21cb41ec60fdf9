/* Chat templates: recognises them by their programs, keeps them beside a model, and renders conversations. */
#include "data/text/chat_form.h"

#include "cleat/causal_texts.h"
#include "core/files.h"
#include "core/memory.h"
#include "tokenizer/tokenizer.h"
#include "json/member.h"

#include <string.h>

#define ML(role) "<|im_start|>" role "\n"
#define L3(role) "<|start_header_id|>" role "<|end_header_id|>\n\n"
#define TURN(role) "<start_of_turn>" role "\n"
#define CHATML                                                                                                         \
    "", {ML("system"), "<|im_end|>\n"}, {ML("user"), "<|im_end|>\n"}, ML("assistant"), "", "<|im_end|>", "\n",         \
        "<|im_start|> <|im_end|>", OWN_TURN, STRIPS_NOTHING, false
#define LLAMA3                                                                                                         \
    BOS, {L3("system"), "<|eot_id|>"}, {L3("user"), "<|eot_id|>"}, L3("assistant"), "", "<|eot_id|>", "",              \
        BOS " <|start_header_id|> <|end_header_id|> <|eot_id|>"
#define GEMMA                                                                                                          \
    BOS, {"", "\n\n"}, {TURN("user"), "<end_of_turn>\n"}, TURN("model"), "", "<end_of_turn>", "\n",                    \
        BOS " <start_of_turn> <end_of_turn>"
#define MISTRAL(behind)                                                                                                \
    BOS, {"", ""}, {"[INST] ", " [/INST]"}, "", "", EOS, behind, BOS " " EOS, REFUSED, STRIPS_NOTHING, true
#define MISTRAL3(blank, strips)                                                                                        \
    BOS, {"", ""}, {"[INST]" blank, "[/INST]"}, "", blank, EOS, "", BOS " " EOS " [INST] [/INST]", REFUSED, strips, true
#define MISTRAL7(blank)                                                                                                \
    BOS, {"[SYSTEM_PROMPT]" blank, "[/SYSTEM_PROMPT]"}, {"[INST]" blank, "[/INST]"}, "", blank, EOS, "",               \
        BOS " " EOS " [INST] [/INST] [SYSTEM_PROMPT] [/SYSTEM_PROMPT]", OWN_TURN, STRIPS_NOTHING, false
#define SEP(role) "<|im_start|>" role "<|im_sep|>"
#define PHI4                                                                                                           \
    "", {SEP("system"), "<|im_end|>"}, {SEP("user"), "<|im_end|>"}, SEP("assistant"), "", "<|im_end|>", "",            \
        "<|im_start|> <|im_sep|> <|im_end|>", OWN_TURN, STRIPS_NOTHING, false
#define PHI3                                                                                                           \
    "", {"<|system|>\n", "<|end|>\n"}, {"<|user|>\n", "<|end|>\n"}, "<|assistant|>\n", "", "<|end|>", "\n",            \
        EOS " <|system|> <|user|> <|assistant|> <|end|>", OWN_TURN, STRIPS_NOTHING, false, false
#define DEEPSEEK                                                                                                       \
    BOS, {"", ""}, {"<｜User｜>", ""}, "<｜Assistant｜>", "", "<｜end▁of▁sentence｜>", "",                             \
        BOS " <｜User｜> <｜Assistant｜> <｜end▁of▁sentence｜>", LEADING, STRIPS_NOTHING, false, false

#define LLAMA2                                                                                                         \
    "", {"<<SYS>>\n", "\n<</SYS>>\n\n"}, {BOS "[INST] ", " [/INST]"}, "", " ", " " EOS, "", BOS " " EOS, IN_PROMPT,    \
        STRIPS_JOINED, true
#define ZEPHYR                                                                                                         \
    "", {"<|system|>\n", EOS "\n"}, {"<|user|>\n", EOS "\n"}, "<|assistant|>\n", "", EOS, "\n", EOS, OWN_TURN,         \
        STRIPS_NOTHING, false

static const cleat_chat_form forms[] = {
    {"chatml", CHATML, .thinks = false},
    {"qwen3", CHATML, .thinks = true},
    {"llama3", LLAMA3, OWN_TURN, STRIPS_CONTENTS, false, .thinks = false},
    {"llama3.1", LLAMA3, DATED, STRIPS_CONTENTS, false, .thinks = false},
    {"llama2", LLAMA2, .thinks = false},
    {"gemma", GEMMA, REFUSED, STRIPS_CONTENTS, true, .thinks = false},
    {"gemma3", GEMMA, IN_PROMPT, STRIPS_CONTENTS, true, .thinks = false},
    {"mistral", MISTRAL(""), .thinks = false},
    {"mistral-v0.1", MISTRAL(" "), .thinks = false},
    {"mistral-v3", MISTRAL3(" ", STRIPS_ANSWERS), .thinks = false},
    {"mistral-v3-tekken", MISTRAL3("", STRIPS_NOTHING), .thinks = false},
    {"zephyr", ZEPHYR, .thinks = false},
    {"mistral-v7", MISTRAL7(" "), .thinks = false},
    {"mistral-v7-tekken", MISTRAL7(""), .thinks = false},
    {"phi4", PHI4, .thinks = false},
    {"phi3", PHI3, .last = EOS},
    {"phi3.5", PHI3, .skips_empty = true, .last = EOS},
    {"deepseek-r1", DEEPSEEK, .forgets = true, .asks = "<think>\n"},
};

const char *const cleat_chat_roles[CLEAT_CHAT_ROLES] = {"system", "user", "assistant"};

/* Programs whose output has the form, by the hash of their normalised text. */
static const struct {
    const char *hash, *form;
} programs[] = {
    {"f0a6a8278439fdb056191e205a440263", "chatml"}, /* many; a344: OpenOrca */
    {"a344e8c84fb0282dda206a9e46a4ac01", "chatml"},
    {"214702a813e0fbed0d6850922b3e41b2", "chatml"}, /* Qwen1.5 and 2, SmolLM2 */
    {"59d42b6cf3786c448aa1162b80a70c7a", "chatml"}, /* Qwen2.5 */
    {"2358eae13be98a7ba04c0d765923822c", "chatml"}, /* Qwen3-Instruct-2507 */
    {"205bbe22d93805964372a702009a6e39", "qwen3"},
    {"39df3fa40a20c7605a33498785c53d45", "qwen3"}, /* its first revision */
    {"09facc0e4aa943189799ad6e2dea0594", "llama3"},
    {"05ac78533d6fb928da8ae4616203881a", "llama3.1"},
    {"51839d38c9ee4e80ba28f0d41aa45594", "llama3.1"}, /* Llama 3.2 */
    {"97aac26c37e4a675cb7c5112dfc4a3b0", "llama2"},
    {"f885fc139ea77150ffa4fad9a912e721", "llama2"}, /* Code Llama */
    {"8b30bb763d138e692c2e86beabccd2a4", "gemma"},  /* Gemma and Gemma 2 */
    {"6c84c2da794fd4c1d9c620dcaf86f38d", "gemma3"},
    {"f395fc5daa794129a5d004210ebce758", "mistral"}, /* Mistral 0.2, Mixtral */
    {"70bf874ad98f31f4b7f52373b11c60d7", "mistral-v0.1"},
    {"5ae4edc1a6c08aa61db34e9fc60441d8", "zephyr"}, /* TinyLlama */
    {"272f380facdb6472da83cc145815d4a5", "mistral-v3"},
    {"a3aeb10f2278a2a5a5438a4278f4c2ee", "mistral-v3-tekken"}, /* Nemo */
    {"5b658f89dcb1716f11381d1c62000f60", "mistral-v7"},        /* Large 2411 */
    {"32dc022941195ae770325d9540e2904f", "phi4"},
    {"0850c77e9e7c37ed82fc89c04c54ba66", "phi3"},
    {"ceaa31b1554ec3f5cd8aff863abd4554", "phi3.5"},
    {"a7b627ae2661d349f48e53fd1793f416", "deepseek-r1"}, /* distilled ones of Qwen and Llama */
};

static const char system_open[] = "<|im_start|>system\n", system_close[] = "<|im_end|>";

const cleat_chat_form *cleat_chat_find_form(const char *name) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; ++i)
        if (strcmp(forms[i].name, name) == 0) return &forms[i];
    return NULL;
}

const char *cleat_chat_template_name(size_t index) {
    static const char *const others[] = {"auto", "none"};
    return index < 2 ? others[index] : index - 2 < sizeof forms / sizeof *forms ? forms[index - 2].name : NULL;
}

static cleat_status no_memory(cleat_error *error) {
    return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a chat template");
}

/* --- recognition ---------------------------------------------------------------------------------------------- */

/* Programs differ in how they write a line break: as two characters inside a text, or as it is. */
static void normalise(const char *program, cleat_string *text) {
    const char *end = program + strlen(program);
    while (program < end && strchr(" \t\r\n", *program)) ++program;
    while (program < end && strchr(" \t\r\n", end[-1])) --end;
    cleat_string_reserve(text, (size_t)(end - program));
    for (; program < end; ++program) {
        const bool line = program[0] == '\\' && program[1] == 'n';
        if (*program != '\r') cleat_string_add_bytes(text, line ? "\n" : program, 1);
        program += line;
    }
}

/* Copies a program of ChatML without its system message for conversations that have none. *system stays empty if it is
 * not a plain text. */
static void cut_system(const cleat_string *text, cleat_string *system, cleat_string *rest) {
    const char *start = text->data;
    size_t size = 0;
    while (!size && start && (start = strstr(start, system_open))) {
        start += strlen(system_open);
        size = strcspn(start, "'\"{}\\<");
        if (strncmp(start + size, system_close, strlen(system_close)) != 0) size = 0;
    }
    if (size) cleat_string_add_bytes(system, start, size);
    for (const char *at = text->data, *next; at; at = next ? next + size : NULL) {
        next = system->data ? strstr(at, system->data) : NULL;
        cleat_string_add_bytes(rest, at, next ? (size_t)(next - at) : strlen(at));
    }
}

static cleat_status recognise(const char *program, cleat_chat *chat, cleat_error *error) {
    cleat_string text = {0}, system = {0}, rest = {0};
    char hash[33];
    cleat_status status = CLEAT_OK;
    if (cleat_chat_read_program(program, chat)) return CLEAT_OK;
    normalise(program, &text);
    cut_system(&text, &system, &rest);
    cleat_hash_text(rest.data ? rest.data : "", rest.size, hash);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; ++i)
        if (strcmp(programs[i].hash, hash) == 0) chat->form = cleat_chat_find_form(programs[i].form);
    if (text.failed || rest.failed)
        status = no_memory(error);
    else if (!chat->form)
        status =
            cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED,
                       "the tokenizer has an unknown chat template (%s). If it renders as one of cleat's does, name "
                       "that one: data.template = chatml, llama3, ... Otherwise render the data in Python, m being "
                       "the messages of a row, and set data.template = none:\n"
                       "  p = tokenizer.apply_chat_template(m[:-1], tokenize=False, add_generation_prompt=True)\n"
                       "  print(json.dumps({\"prompt\": p, \"completion\": tokenizer.apply_chat_template(m, "
                       "tokenize=False)[len(p):].rstrip()}))",
                       hash);
    else if (system.data || system.failed)
        status = cleat_string_detach(&system, &chat->system, error);
    cleat_string_free(&text);
    cleat_string_free(&system);
    cleat_string_free(&rest);
    return status;
}

/* --- opening -------------------------------------------------------------------------------------------------- */

const char *cleat_chat_end(const cleat_chat *chat) {
    const char *end = chat->form ? chat->form->end + strspn(chat->form->end, " ") : NULL;
    return end && *end == *EOS ? chat->eos : end;
}

bool cleat_chat_thinks(const cleat_chat *chat) {
    return chat->form && chat->form->thinks;
}

/* The program of a tokenizer_config.json: a text, or the default one of a list. */
static const char *program_in(const cJSON *config) {
    const cJSON *program = cleat_json_member(config, "chat_template"), *item;
    cJSON_ArrayForEach(item, program) {
        const char *name = cleat_json_text(item, "name");
        if (name && strcmp(name, "default") == 0) return cleat_json_text(item, "template");
    }
    return cJSON_GetStringValue(program);
}

static cleat_status recognise_file(const cleat_tokenizer *tokenizer, cleat_chat *chat, cleat_error *error) {
    const cleat_tokenizer_file *files = tokenizer->pipeline ? tokenizer->pipeline->files : NULL;
    const char *program = NULL, *settings = NULL;
    for (int i = 0; i < CLEAT_TOKENIZER_FILES && files; ++i) {
        if (!files[i].data) continue;
        if (strcmp(files[i].name, "chat_template.jinja") == 0) program = files[i].data;
        if (strcmp(files[i].name, "tokenizer_config.json") == 0) settings = files[i].data;
    }
    cJSON *config = settings ? cJSON_Parse(settings) : NULL;
    if (!program) program = program_in(config);
    const cleat_status status = program ? recognise(program, chat, error) : CLEAT_OK;
    cJSON_Delete(config);
    return status;
}

static cleat_status check_tokens(const cleat_chat *chat, const cleat_tokenizer *tokenizer, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (const char *at = chat->form->specials; *at && !status; at += strspn(at, " ")) {
        const bool named = *at == *BOS || *at == *EOS;
        const char *text = *at == *BOS ? chat->bos : *at == *EOS ? chat->eos : at;
        const size_t size = strcspn(at, " ");
        cleat_token found;
        size_t count = 0;
        if (!text)
            return cleat_fail(error, CLEAT_ERR_NOT_FOUND,
                              "data.template = %s needs %s, which the tokenizer_config.json lacks", chat->name,
                              *at == *BOS ? "bos_token" : "eos_token");
        status = cleat_tokenizer_encode(tokenizer, text, named ? strlen(text) : size, &found, 1, &count, error);
        if (!status && count != 1)
            status = cleat_fail(
                error, CLEAT_ERR_FORMAT,
                "data.template = %s: '%.*s' is %zu tokens for this tokenizer, not one; choose another template",
                chat->name, named ? 40 : (int)size, text, count);
        at += size;
    }
    return status;
}

cleat_status cleat_chat_open(const char *name, const char *date, const cleat_tokenizer *tokenizer, cleat_chat *chat,
                             cleat_error *error) {
    cleat_chat made = {.form = cleat_chat_find_form(name),
                       .bos = cleat_tokenizer_piece(tokenizer, cleat_tokenizer_bos(tokenizer)),
                       .eos = cleat_tokenizer_piece(tokenizer, cleat_tokenizer_eos(tokenizer))};
    cleat_chat own = {0}; /* also a named template has the system message of the tokenizer's program */
    const bool automatic = strcmp(name, "auto") == 0;
    cleat_status status = recognise_file(tokenizer, &own, error);
    if (!automatic && status == CLEAT_ERR_NOT_SUPPORTED) status = CLEAT_OK;
    if (automatic) made.form = own.form;
    if (made.form && own.form && made.form != own.form) made.own = own.form->name;
    if (made.form != own.form) cleat_chat_free(&own);
    made.system = own.system;
    made.date = own.date && !(date && *date) ? own.date : cleat_strdup(date && *date ? date : "26 Jul 2024");
    if (made.date != own.date) cleat_free(own.date);
    if (!status && !made.date) status = no_memory(error);
    made.published = !made.form || made.form == own.form;
    made.name = made.form ? made.form->name : "none";
    if (!status && made.form) status = check_tokens(&made, tokenizer, error);
    if (status) {
        cleat_chat_free(&made);
        return status;
    }
    *chat = made;
    return CLEAT_OK;
}

void cleat_chat_free(cleat_chat *chat) {
    cleat_free(chat->system);
    cleat_free(chat->date);
    *chat = (cleat_chat){0};
}

/* --- rendering ------------------------------------------------------------------------------------------------ */

typedef struct stretch {
    const char *at, *end;
} stretch;

static stretch stretch_of(const char *text) {
    return (stretch){text, text + strlen(text)};
}

/* Removes what Python's str.strip removes. */
static stretch strip(stretch text) {
    static const char *const blanks[] = {
        "\t",       "\n",     "\v",     "\f",     "\r",     "\x1C",   "\x1D",   "\x1E",   "\x1F",   " ",
        "\xC2\x85", "\u00A0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
        "\u2007",   "\u2008", "\u2009", "\u200A", "\u2028", "\u2029", "\u202F", "\u205F", "\u3000"};
    for (size_t i = 0; i < sizeof blanks / sizeof *blanks; ++i) {
        const size_t size = strlen(blanks[i]), left = (size_t)(text.end - text.at);
        const bool first = left >= size && memcmp(text.at, blanks[i], size) == 0,
                   last = left >= size && memcmp(text.end - size, blanks[i], size) == 0;
        if (first) text.at += size;
        if (!first && last) text.end -= size;
        if (first || last) i = SIZE_MAX; /* again */
    }
    return text;
}

static stretch strip_lines(stretch text, bool left, bool right) {
    while (left && text.at < text.end && *text.at == '\n') ++text.at;
    while (right && text.at < text.end && text.end[-1] == '\n') --text.end;
    return text;
}

static void add(cleat_string *out, stretch text) {
    cleat_string_add_bytes(out, text.at, (size_t)(text.end - text.at));
}

typedef struct renderer {
    const cleat_chat *chat;
    const cleat_chat_form *form;
    const cleat_chat_message *messages; /* [count] */
    size_t count;
    const char *prefix; /* the system message for the first turn of the user; NULL: none */
    size_t last_query;  /* Qwen3: index of the last question that is not the answer of a tool */
    cleat_string *out;
    cleat_byte_spans *spans;
    size_t start; /* of the conversation in `out` */
} renderer;

/* Appends a text of the form, with the tokens it stands for. */
static void add_form(renderer *r, const char *text) {
    for (; text && *text; ++text) {
        const char *token = *text == *BOS ? r->chat->bos : *text == *EOS ? r->chat->eos : NULL;
        if (token)
            add(r->out, stretch_of(token));
        else
            cleat_string_add_bytes(r->out, text, 1);
    }
}

static stretch content_of(const renderer *r, const char *content) {
    return r->form->strips == STRIPS_CONTENTS || (r->form->strips == STRIPS_JOINED && !r->prefix)
               ? strip(stretch_of(content))
               : stretch_of(content);
}

static void add_system(renderer *r, bool dated, const char *content) {
    if (r->form->skips_empty && !*content) return;
    add_form(r, r->form->system[0]);
    if (dated) cleat_string_add(r->out, "Cutting Knowledge Date: December 2023\nToday Date: %s\n\n", r->chat->date);
    add(r->out, content_of(r, content));
    add_form(r, r->form->system[1]);
}

static void add_user(renderer *r, const char *content) {
    cleat_string joined = {0};
    add_form(r, r->form->user[0]);
    if (r->prefix) cleat_string_add(&joined, "%s%s%s", r->form->system[0], r->prefix, r->form->system[1]);
    add(&joined, content_of(r, content));
    if (joined.failed) r->out->failed = true;
    const stretch all = stretch_of(joined.data ? joined.data : "");
    add(r->out, r->form->strips == STRIPS_JOINED ? strip(all) : all);
    cleat_string_free(&joined);
    r->prefix = NULL;
    add_form(r, r->form->user[1]);
}

/* Qwen3 keeps the thoughts of answers to the last question, also empty ones in the last message. */
static void add_thoughtful(renderer *r, size_t index) {
    static const char open[] = "<think>", close[] = "</think>";
    const cleat_chat_message *message = &r->messages[index];
    stretch content = stretch_of(message->content), thoughts = stretch_of("");
    const char *found = message->thoughts ? NULL : strstr(content.at, close);
    if (message->thoughts) thoughts = stretch_of(message->thoughts);
    if (found) {
        thoughts = strip_lines((stretch){content.at, found}, false, true);
        for (const char *at = thoughts.at; (at = strstr(at, open)) && at + strlen(open) <= thoughts.end;)
            thoughts.at = at += strlen(open);
        thoughts = strip_lines(thoughts, true, false);
        for (const char *at = found; at; at = strstr(at, close)) content.at = at += strlen(close);
        content = strip_lines(content, true, false);
    }
    if (index > r->last_query && (index + 1 == r->count || thoughts.at < thoughts.end)) {
        cleat_string_add(r->out, "%s\n", open);
        add(r->out, strip_lines(thoughts, true, true));
        cleat_string_add(r->out, "\n%s\n\n", close);
        content = strip_lines(content, true, false);
    }
    add(r->out, content);
}

static cleat_status add_answer(renderer *r, size_t index, cleat_error *error) {
    add_form(r, r->form->answer);
    cleat_byte_span span = {.begin = r->out->size - r->start};
    add_form(r, r->form->inside);
    const char *content = r->messages[index].content, *thoughts = NULL;
    while (r->form->forgets && (thoughts = strstr(content, "</think>"))) content = thoughts + strlen("</think>");
    if (r->form->thinks)
        add_thoughtful(r, index);
    else
        add(r->out, r->form->strips == STRIPS_ANSWERS ? strip(stretch_of(content)) : content_of(r, content));
    add_form(r, r->form->end);
    span.end = r->out->size - r->start;
    add_form(r, r->form->behind);
    if (!r->messages[index].learned) return CLEAT_OK;
    cleat_status status = cleat_grow(&r->spans->all, r->spans->count, &r->spans->capacity, error);
    if (!status) r->spans->all[r->spans->count++] = span;
    return status;
}

static size_t find_last_query(const renderer *r) {
    static const char open[] = "<tool_response>", close[] = "</tool_response>";
    for (size_t i = r->count; i-- > 0;) {
        const char *content = r->messages[i].content, *end = content + strlen(content);
        const bool tool = strncmp(content, open, strlen(open)) == 0 && (size_t)(end - content) >= strlen(close) &&
                          strcmp(end - strlen(close), close) == 0;
        if (r->messages[i].role == CLEAT_CHAT_USER && !tool) return i;
    }
    return r->count - 1;
}

static cleat_status check_order(const renderer *r, bool asks, cleat_error *error) {
    const cleat_system_role system = r->form->system_role;
    const bool leads = system == IN_PROMPT || system == LEADING;
    const size_t first = leads && r->count && r->messages[0].role == CLEAT_CHAT_SYSTEM;
    if (r->count == first || (asks && r->messages[r->count - 1].role == CLEAT_CHAT_ASSISTANT))
        return cleat_fail(error, CLEAT_ERR_FORMAT, "no message of the user to answer; add one, or remove the row");
    for (size_t i = first; i < r->count; ++i) {
        const cleat_chat_role role = r->messages[i].role;
        if ((role != CLEAT_CHAT_SYSTEM || system < IN_PROMPT) &&
            (!r->form->alternates || (role == CLEAT_CHAT_USER) == ((i - first) % 2 == 0)))
            continue;
        return cleat_fail(
            error, CLEAT_ERR_FORMAT,
            "message %zu is of the role %s; the template '%s' has turns of user and assistant, one after the "
            "other, and %s; join messages, or move the text",
            i + 1, cleat_chat_roles[role], r->form->name,
            system == REFUSED ? "no system message" : "a system message only before them");
    }
    return CLEAT_OK;
}

cleat_status cleat_chat_render(const cleat_chat *chat, const cleat_chat_message *messages, size_t count, bool asks,
                               cleat_string *text, cleat_byte_spans *spans, cleat_error *error) {
    renderer r = {.chat = chat,
                  .form = chat->form,
                  .messages = messages,
                  .count = count,
                  .out = text,
                  .spans = spans,
                  .start = text->size};
    const cleat_system_role system = r.form->system_role;
    const char *first = count && messages[0].role == CLEAT_CHAT_SYSTEM ? messages[0].content : NULL;
    cleat_status status = check_order(&r, asks, error);
    if (status) return status;
    r.last_query = find_last_query(&r);
    add_form(&r, r.form->first);
    if (system == IN_PROMPT) r.prefix = first;
    if (!first) first = chat->system;
    if (system == DATED || ((system == OWN_TURN || system == LEADING) && first))
        add_system(&r, system == DATED, first ? first : "");
    for (size_t i = messages[0].role == CLEAT_CHAT_SYSTEM; i < count && !status; ++i) {
        if (messages[i].role == CLEAT_CHAT_ASSISTANT)
            status = add_answer(&r, i, error);
        else if (messages[i].role == CLEAT_CHAT_USER)
            add_user(&r, messages[i].content);
        else
            add_system(&r, false, messages[i].content);
    }
    if (asks) add_form(&r, r.form->answer);
    add_form(&r, asks ? r.form->asks : r.form->last);
    return text->failed && !status ? no_memory(error) : status;
}
