/* Reads JSON lines, tables and plain texts for a causal language model, and renders conversations. */
#include "data/text/causal_set.h"
#include "platform/files.h"
#include "platform/text.h"

#include "core/files.h"
#include "core/memory.h"
#include "data/common/csv.h"
#include "json/member.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MESSAGES = 4096 };

typedef struct reader {
    cleat_causal_set *all;
    const cleat_text_file *file;
    size_t line; /* where the sample starts */
    size_t number;
    int prompt, completion, text; /* columns; -1: none */
    cleat_csv csv;
} reader;

/* Adds a text to the set. `key`: equal ones are in one split. */
static cleat_status add_text(reader *r, cleat_causal_kind kind, const cleat_string *text, const cleat_string *key,
                             const char *truth, cleat_error *error) {
    cleat_causal_set *all = r->all;
    char hash[33], group[64];
    const size_t row = all->set.n_rows;
    if (text->failed || key->failed) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a text");
    cleat_status status = cleat_grow(&all->first_spans, row + 1, &all->spans_capacity, error);
    if (!status) status = cleat_grow(&all->kinds, row, &all->kinds_capacity, error);
    if (!status) status = cleat_text_begin_row(&all->set, r->file, NULL, r->number, error);
    cleat_hash_text(key->data ? key->data : "", key->size, hash);
    snprintf(group, sizeof group, "%llu/%s", (unsigned long long)all->options->split_seed, hash);
    if (!status) status = cleat_text_set_group(&all->set, group, error);
    if (!status) status = cleat_text_add_unit(&all->set, text->data ? text->data : "", text->size, -1, error);
    if (!status && truth) status = cleat_text_add_unit(&all->set, truth, strlen(truth), -1, error);
    if (status) return status;
    all->kinds[row] = (uint8_t)kind;
    all->first_spans[row + 1] = all->spans.count;
    return CLEAT_OK;
}

static cleat_status learn(cleat_causal_set *all, size_t begin, size_t end, cleat_error *error) {
    cleat_status status = cleat_grow(&all->spans.all, all->spans.count, &all->spans.capacity, error);
    if (!status) all->spans.all[all->spans.count++] = (cleat_byte_span){begin, end};
    return status;
}

/* A text without a template: what follows `prompt` is learned. */
static cleat_status add_raw(reader *r, const char *prompt, const char *rest, const char *truth, cleat_error *error) {
    const cleat_causal_options *options = r->all->options;
    const bool plain = !*prompt && !truth;
    cleat_string text = {0}, key = {0};
    cleat_string_add_bytes(&text, prompt, strlen(prompt));
    cleat_string_add_bytes(&text, rest, strlen(rest));
    cleat_string_add_bytes(&key, *prompt ? prompt : rest, strlen(*prompt ? prompt : rest));
    cleat_status status = CLEAT_OK;
    if (!options->predicted)
        status = learn(r->all, options->train_on == CLEAT_ON_ALL ? 0 : strlen(prompt), text.size, error);
    if (!status) status = add_text(r, plain ? CLEAT_CAUSAL_PLAIN : CLEAT_CAUSAL_PAIR, &text, &key, truth, error);
    cleat_string_free(&text);
    cleat_string_free(&key);
    return status;
}

static cleat_status add_plain(reader *r, const char *text, cleat_error *error) {
    const bool blank = !text[strspn(text, " \t\r\n")];
    r->all->blank += blank;
    return blank ? CLEAT_OK : add_raw(r, "", text, NULL, error);
}

/* The system message of the settings goes in front, which has room for it. */
static cleat_status add_chat(reader *r, cleat_chat_message *messages, size_t count, cleat_error *error) {
    cleat_causal_set *all = r->all;
    cleat_string text = {0}, key = {0};
    const char *truth = NULL, *system = cleat_text_option(all->options->system);
    const bool asks = all->options->predicted;
    for (size_t i = 0; i < count && messages[i].role != CLEAT_CHAT_ASSISTANT; ++i)
        if (messages[i].role == CLEAT_CHAT_USER)
            cleat_string_add_bytes(&key, messages[i].content, strlen(messages[i].content) + 1);
    if (asks && count && messages[count - 1].role == CLEAT_CHAT_ASSISTANT) truth = messages[--count].content;
    if (*system && count && messages[0].role != CLEAT_CHAT_SYSTEM) {
        messages[-1] = (cleat_chat_message){.role = CLEAT_CHAT_SYSTEM, .content = system};
        --messages;
        ++count;
    }
    cleat_status status = cleat_chat_render(&all->chat, messages, count, asks, &text, &all->spans, error);
    if (!status && !asks && all->options->train_on == CLEAT_ON_ALL) {
        all->spans.count = all->first_spans[all->set.n_rows];
        status = learn(all, 0, text.size, error);
    }
    if (!status) status = add_text(r, CLEAT_CAUSAL_CHAT, &text, &key, truth, error);
    cleat_string_free(&text);
    cleat_string_free(&key);
    return status;
}

/* completion: NULL in predictions without one. */
static cleat_status add_pair(reader *r, const char *prompt, const char *completion, cleat_error *error) {
    const bool asks = r->all->options->predicted;
    cleat_chat_message messages[] = {{0},
                                     {.role = CLEAT_CHAT_USER, .content = prompt},
                                     {.role = CLEAT_CHAT_ASSISTANT, .content = completion, .learned = true}};
    if (r->all->chat.form) return add_chat(r, messages + 1, completion ? 2 : 1, error);
    return add_raw(r, prompt, asks ? "" : completion, asks ? completion : NULL, error);
}

/* --- JSON lines ----------------------------------------------------------------------------------------------- */

static const char render_before[] = "render such rows in Python as prompt and completion (data.template = none)";

static cleat_status read_message(const cJSON *item, const cleat_chat *chat, cleat_chat_message *message,
                                 cleat_error *error) {
    const char *role = cleat_json_text(item, "role"), *content = cleat_json_text(item, "content"),
               *thoughts = cleat_json_text(item, "reasoning_content");
    const cJSON *calls = cleat_json_member(item, "tool_calls");
    int index = 0;
    char shown[CLEAT_EXCERPT_SIZE];
    while (role && index < CLEAT_CHAT_ROLES && strcmp(cleat_chat_roles[index], role) != 0) ++index;
    if (!role || !content)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "not an object with the texts 'role' and 'content'; %s",
                          render_before);
    if (index == CLEAT_CHAT_ROLES)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "the role '%s' is not system, user or assistant; %s",
                          cleat_format_excerpt(role, strlen(role), shown), render_before);
    if ((calls && calls->child) || cleat_json_member(item, "function_call"))
        return cleat_fail(error, CLEAT_ERR_FORMAT, "it calls tools; %s", render_before);
    if (thoughts && *thoughts && !cleat_chat_thinks(chat))
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "the template '%s' does not render its 'reasoning_content'; remove it, "
                          "or put it into the content",
                          chat->name);
    *message = (cleat_chat_message){.role = (cleat_chat_role)index,
                                    .content = content,
                                    .thoughts = thoughts,
                                    .learned = cleat_json_number(item, "weight") != 0};
    return CLEAT_OK;
}

static cleat_status read_messages(reader *r, const cJSON *list, cleat_error *error) {
    const size_t count = (size_t)cJSON_GetArraySize(list);
    size_t number = 0;
    if (!r->all->chat.form)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "messages need a chat template, and %s; name one: data.template = "
                          "chatml, llama3, ...",
                          strcmp(r->all->options->chat_name, "none") == 0 ? "data.template is none"
                                                                          : "the tokenizer has none");
    if (!cJSON_IsArray(list) || !count || count > MAX_MESSAGES)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "'messages' must be a list of 1 to %d objects", MAX_MESSAGES);
    cleat_chat_message *messages = cleat_alloc(count + 1, sizeof *messages);
    cleat_status status =
        messages ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu messages", count);
    const cJSON *item = list->child;
    for (; item && !status; item = item->next, ++number)
        if ((status = read_message(item, &r->all->chat, &messages[1 + number], error)))
            status = cleat_fail_in(error, status, "message %zu", number + 1);
    if (!status) status = add_chat(r, messages + 1, count, error);
    cleat_free(messages);
    return status;
}

static cleat_status read_object(reader *r, const cJSON *object, cleat_error *error) {
    const cleat_causal_options *options = r->all->options;
    const cJSON *messages = cleat_json_member(object, "messages");
    const char *prompt = cleat_json_text(object, options->prompt_column),
               *completion = cleat_json_text(object, options->completion_column),
               *text = cleat_json_text(object, options->text_column);
    const cJSON *tools = cleat_json_member(object, "tools");
    if (tools && tools->child) return cleat_fail(error, CLEAT_ERR_FORMAT, "the row has 'tools'; %s", render_before);
    if (messages) return read_messages(r, messages, error);
    if (prompt && (completion || options->predicted)) return add_pair(r, prompt, completion, error);
    if (text) return add_plain(r, text, error);
    if (cleat_json_member(object, "conversations"))
        return cleat_fail(
            error, CLEAT_ERR_FORMAT,
            "'conversations', which cleat reads as 'messages': replace \"conversations\" by \"messages\", \"from\" by "
            "\"role\", \"human\" by \"user\", \"gpt\" by \"assistant\" and \"value\" by \"content\"");
    return cleat_fail(error, CLEAT_ERR_FORMAT,
                      "no 'messages', no texts '%s' and '%s', and no text '%s'; name those of the file, for example "
                      "data.prompt_column = instruction and data.completion_column = output",
                      options->prompt_column, options->completion_column, options->text_column);
}

/* cJSON's texts end at a zero character. */
static bool has_zero(const char *line) {
    for (const char *at = line; (at = strstr(at, "\\u0000")); ++at) {
        size_t slashes = 0;
        while (at - slashes > line && at[-1 - (ptrdiff_t)slashes] == '\\') ++slashes;
        if (slashes % 2 == 0) return true;
    }
    return false;
}

static cleat_status read_json(reader *r, char *line, cleat_error *error) {
    const char *end = line;
    if (!line[strspn(line, " \t\r\n")]) return CLEAT_OK;
    if (has_zero(line)) return cleat_fail(error, CLEAT_ERR_FORMAT, "a zero character (\\u0000); remove it");
    cJSON *object = cJSON_ParseWithLengthOpts(line, strlen(line) + 1, &end, true);
    cleat_status status = CLEAT_OK;
    if (cJSON_IsObject(object))
        status = read_object(r, object, error);
    else if (line[strspn(line, " \t")] == '[')
        status = cleat_fail(error, CLEAT_ERR_FORMAT,
                            "a list, not an object; write an object each line: jq -c \".[]\" OLD > NEW");
    else
        status = cleat_fail(error, CLEAT_ERR_FORMAT,
                            "not a JSON object in one line, at byte %zu; pretty-printed? jq -c . "
                            "OLD > NEW",
                            (size_t)(end - line) + 1);
    cJSON_Delete(object);
    return status;
}

/* --- files ---------------------------------------------------------------------------------------------------- */

/* Gives an error its place and keeps it as a fault. The row of the error leaves nothing behind. */
static cleat_status keep_fault(reader *r, cleat_status status, cleat_error *why, cleat_error *error) {
    if (!status) return status;
    r->all->spans.count = r->all->first_spans[r->all->set.n_rows];
    (void)cleat_fail_in(why, status, "%s:%zu", r->file->path, r->line);
    return cleat_faults_add(&r->all->set.faults, why, error);
}

/* A text of several lines, without the line breaks at its end. */
static cleat_status add_document(reader *r, cleat_string *document, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    while (document->size && document->data[document->size - 1] == '\n') document->data[--document->size] = 0;
    if (document->failed) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a text");
    if (!status && document->size) {
        ++r->number;
        status = add_plain(r, document->data, error);
    }
    document->size = 0;
    return status;
}

static cleat_status read_line(reader *r, bool json, char *line, size_t number, cleat_string *document,
                              cleat_error *error) {
    const bool blank = !line[strspn(line, " \t\r\n")];
    char *end = line + strlen(line);
    while (end > line && strchr("\r\n", end[-1])) *--end = 0;
    if (json || (r->all->options->predicted && !blank)) {
        r->number = r->line = number;
        return json                ? read_json(r, line, error)
               : r->all->chat.form ? add_pair(r, line, NULL, error)
                                   : add_plain(r, line, error);
    }
    if (blank) return add_document(r, document, error);
    if (!document->size) r->line = number;
    cleat_string_add(document, "%s\n", line);
    return CLEAT_OK;
}

static cleat_status read_lines(reader *r, bool json, cleat_error *error) {
    char *line = NULL;
    size_t room = 0, number = 0, bytes = 0;
    cleat_string document = {0};
    cleat_status status = CLEAT_OK;
    cleat_error why;
    FILE *file = fopen(r->file->path, "rbe");
    if (!file) return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot open: %s", r->file->path, strerror(errno));
    for (ssize_t size; !status && (size = getline(&line, &room, file)) >= 0; bytes += (size_t)size) {
        cleat_source source = {.path = r->file->path, .data = line, .at = line, .end = line + size};
        source.lines_before = number++;
        source.bytes_before = bytes;
        if (cleat_source_check(&source, true, &why))
            status = cleat_faults_add(&r->all->set.faults, &why, error);
        else
            status = keep_fault(r, read_line(r, json, source.at, number, &document, &why), &why, error);
    }
    if (!status && ferror(file))
        status = cleat_fail(error, CLEAT_ERR_IO, "%s: cannot read: %s", r->file->path, strerror(errno));
    if (!status && !number) status = cleat_fail(error, CLEAT_ERR_FORMAT, "%s:1: the file is empty", r->file->path);
    if (!status) status = keep_fault(r, add_document(r, &document, &why), &why, error);
    cleat_string_free(&document);
    free(line); /* of getline */
    fclose(file);
    return status;
}

static cleat_status add_record(void *user, cleat_error *error) {
    cleat_error why;
    reader *r = user;
    const char *completion = r->completion < 0 ? NULL : r->csv.fields[r->completion];
    ++r->number;
    r->line = r->csv.line;
    cleat_status status;
    if (r->text >= 0)
        status = add_plain(r, r->csv.fields[r->text], &why);
    else if (completion && !*completion && !r->all->options->predicted)
        status = cleat_fail(&why, CLEAT_ERR_FORMAT, "the completion is empty; fill it in, or remove the row");
    else
        status = add_pair(r, r->csv.fields[r->prompt], completion && *completion ? completion : NULL, &why);
    return keep_fault(r, status, &why, error);
}

static cleat_status read_table(reader *r, cleat_error *error) {
    const cleat_causal_options *options = r->all->options;
    cleat_status status = cleat_csv_open(r->file->path, &r->csv, error);
    if (status) return status;
    r->prompt = cleat_csv_column(&r->csv, options->prompt_column);
    r->completion = cleat_csv_column(&r->csv, options->completion_column);
    r->text = r->prompt < 0 && r->completion < 0 ? cleat_csv_column(&r->csv, options->text_column) : -1;
    if (r->text < 0) {
        status = cleat_csv_need_column(&r->csv, options->prompt_column, &r->prompt, error);
        if (status) status = cleat_fail_in(error, status, "data.prompt_column");
        if (!status && !options->predicted) {
            status = cleat_csv_need_column(&r->csv, options->completion_column, &r->completion, error);
            if (status) status = cleat_fail_in(error, status, "data.completion_column");
        }
    }
    if (!status) status = cleat_csv_each(&r->csv, add_record, r, &r->all->set.faults, error);
    cleat_csv_close(&r->csv);
    return status;
}

cleat_status cleat_causal_read(const cleat_text_file *file, cleat_causal_set *set, cleat_error *error) {
    reader r = {.all = set, .file = file, .text = -1};
    const size_t first = set->set.n_rows;
    cleat_status status = cleat_grow(&set->first_spans, set->set.n_rows, &set->spans_capacity, error);
    if (status) return status;
    status = cleat_ends_in(file->path, ".csv .tsv .tab")
                 ? read_table(&r, error)
                 : read_lines(&r, cleat_ends_in(file->path, ".json .jsonl .ndjson"), error);
    return status ? status : cleat_text_assign_splits(&set->set, file, first, error);
}
