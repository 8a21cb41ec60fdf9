/* The Jinja program of a chat template, for other libraries, and reading it back. */
#include "data/text/chat_form.h"

#include "core/memory.h"

#include <string.h>

/* A text as a literal. */
static void quote(cleat_string *out, const char *text, size_t size) {
    cleat_string_add(out, "'");
    for (; size; --size, ++text) {
        if (*text == '\\' || *text == '\'') cleat_string_add(out, "\\");
        cleat_string_add_bytes(out, *text == '\n' ? "\\n" : text, *text == '\n' ? 2 : 1);
    }
    cleat_string_add(out, "'");
}

/* A text of a form as an expression: literals, and the tokens that it stands for. */
static void add_expression(cleat_string *out, const char *text) {
    static const char tokens[] = BOS EOS;
    if (!text || !*text) cleat_string_add(out, "''");
    for (const char *at = text; at && *at; at += strspn(at, tokens) ? 1 : strcspn(at, tokens)) {
        if (at > text) cleat_string_add(out, " + ");
        if (*at == *BOS || *at == *EOS)
            cleat_string_add(out, *at == *BOS ? "bos_token" : "eos_token");
        else
            quote(out, at, strcspn(at, tokens));
    }
}

/* Appends a line, in which @x is a text of the form, or of the chat. */
static void add_line(cleat_string *out, const cleat_chat *chat, const char *line) {
    const cleat_chat_form *f = chat->form;
    const char *const texts[] = {
        ['f'] = f->first,  ['s'] = f->system[0], ['S'] = f->system[1], ['u'] = f->user[0], ['U'] = f->user[1],
        ['a'] = f->answer, ['i'] = f->inside,    ['e'] = f->end,       ['b'] = f->behind,  ['q'] = f->asks,
        ['l'] = f->last,   ['d'] = chat->date,   ['y'] = chat->system};
    for (const char *at = line; *at; at += *at == '@' ? 2 : strcspn(at, "@")) {
        if (*at == '@')
            add_expression(out, texts[(unsigned char)at[1]]);
        else
            cleat_string_add_bytes(out, at, strcspn(at, "@"));
    }
    cleat_string_add(out, "\n");
}

#define RAISE(what) "{{- raise_exception('" what "') -}}"
static const char queries[] =
    "{%- set ns = namespace(query=turns|length) -%}\n"
    "{%- for message in turns -%}\n"
    "{%- if message['role'] == 'user' and not (message['content'].startswith('<tool_response>') and "
    "message['content'].endswith('</tool_response>')) -%}{%- set ns.query = loop.index0 -%}{%- endif -%}\n"
    "{%- endfor -%}",
                  thoughts[] = "{%- set given_thoughts = message['reasoning_content'] is string -%}\n"
                               "{%- set thoughts = message['reasoning_content'] if given_thoughts else '' -%}\n"
                               "{%- if not given_thoughts and '</think>' in content -%}\n"
                               "{%- set thoughts = "
                               "content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') -%}\n"
                               "{%- set content = content.split('</think>')[-1].lstrip('\\n') -%}\n"
                               "{%- endif -%}\n"
                               "{%- if loop.index0 > ns.query and (loop.last or thoughts) -%}\n"
                               "{%- set content = '<think>\\n' + thoughts.strip('\\n') + '\\n</think>\\n\\n' + "
                               "content.lstrip('\\n') -%}\n"
                               "{%- endif -%}";

/* The system message before all turns. */
static void add_start(cleat_string *out, const cleat_chat *chat) {
    const cleat_chat_form *f = chat->form;
    const bool strips = f->strips == STRIPS_CONTENTS;
    if (f->system_role == REFUSED)
        add_line(out, chat, "{%- if given -%}" RAISE("no system messages") "{%- endif -%}");
    else if (f->system_role == DATED)
        add_line(out, chat,
                 "{{- @s + 'Cutting Knowledge Date: December 2023\\nToday Date: ' + date + '\\n\\n' + system|trim + @S "
                 "-}}");
    else if (f->system_role != IN_PROMPT)
        add_line(out, chat,
                 f->skips_empty ? "{%- if system -%}{{- @s + system + @S -}}{%- endif -%}"
                 : strips       ? "{%- if given or system -%}{{- @s + system|trim + @S -}}{%- endif -%}"
                                : "{%- if given or system -%}{{- @s + system + @S -}}{%- endif -%}");
}

static void add_turns(cleat_string *out, const cleat_chat *chat) {
    const cleat_chat_form *f = chat->form;
    const bool joined = f->strips == STRIPS_JOINED;
    add_line(out, chat, "{%- for message in turns -%}");
    add_line(out, chat,
             f->strips == STRIPS_CONTENTS ? "{%- set content = message['content']|trim -%}"
                                          : "{%- set content = message['content'] -%}");
    if (f->alternates)
        add_line(out, chat,
                 "{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}" RAISE(
                     "user and assistant take turns") "{%- endif -%}");
    add_line(out, chat, "{%- if message['role'] == 'user' -%}");
    if (f->system_role == IN_PROMPT)
        add_line(out, chat,
                 "{%- if loop.first and (given or system) -%}{%- set content = @s + system + @S + content "
                 "-%}{%- endif -%}");
    add_line(out, chat, joined ? "{{- @u + content|trim + @U -}}" : "{{- @u + content + @U -}}");
    add_line(out, chat, "{%- elif message['role'] == 'assistant' -%}");
    if (f->thinks) add_line(out, chat, thoughts);
    add_line(out, chat,
             f->forgets                              ? "{{- @a + @i + content.split('</think>')[-1] + @e + @b -}}"
             : joined || f->strips == STRIPS_ANSWERS ? "{{- @a + @i + content|trim + @e + @b -}}"
                                                     : "{{- @a + @i + content + @e + @b -}}");
    if (f->system_role < IN_PROMPT)
        add_line(out, chat,
                 f->skips_empty ? "{%- elif message['role'] == 'system' -%}{%- if content -%}{{- @s + content + @S "
                                  "-}}{%- endif -%}"
                                : "{%- elif message['role'] == 'system' -%}{{- @s + content + @S -}}");
    add_line(out, chat, "{%- else -%}" RAISE("a role at a place that has no text") "{%- endif -%}");
    add_line(out, chat, "{%- endfor -%}");
}

static const char head[] = "{#- cleat: data.template = ", set_system[] = " -#}\n{%- set system = ",
                  set_date[] = " -%}\n{%- set date = ";

cleat_status cleat_chat_program(const cleat_chat *chat, cleat_string *out, cleat_error *error) {
    cleat_string_add(out, "%s%s%s", head, chat->form->name, set_system);
    add_line(out, chat, "@y -%}\n{%- set date = @d -%}");
    add_line(out, chat, "{%- if date_string is defined -%}{%- set date = date_string -%}{%- endif -%}");
    add_line(out, chat, "{%- set given = messages[0]['role'] == 'system' -%}");
    add_line(out, chat, "{%- set system = messages[0]['content'] if given else system -%}");
    add_line(out, chat, "{%- set turns = messages[1:] if given else messages -%}");
    if (chat->form->thinks) add_line(out, chat, queries);
    add_line(out, chat, "{{- @f -}}");
    add_start(out, chat);
    add_turns(out, chat);
    add_line(out, chat, "{%- if add_generation_prompt -%}{{- @a + @q -}}{%- else -%}{{- @l -}}{%- endif -%}");
    return out->failed ? cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a chat template") : CLEAT_OK;
}

/* Reads `before` and a literal behind it; the end of the literal, or NULL. */
static const char *read_literal(const char *at, const char *before, char **text) {
    cleat_string made = {0};
    const size_t size = strlen(before);
    if (!at || strncmp(at, before, size) != 0 || at[size] != '\'') return NULL;
    for (at += size + 1; *at && *at != '\''; ++at) {
        const bool escaped = *at == '\\' && at[1];
        at += escaped;
        cleat_string_add_bytes(&made, escaped && *at == 'n' ? "\n" : at, 1);
    }
    return cleat_string_detach(&made, text, NULL) == CLEAT_OK && *at ? at + 1 : NULL;
}

bool cleat_chat_read_program(const char *program, cleat_chat *read) {
    cleat_string again = {0};
    char name[32];
    const size_t size = strncmp(program, head, strlen(head)) == 0 ? strcspn(program + strlen(head), " ") : 0;
    if (!size || size >= sizeof name) return false;
    memcpy(name, program + strlen(head), size);
    name[size] = 0;
    cleat_chat made = {.form = cleat_chat_find_form(name)};
    const char *at = read_literal(program + strlen(head) + size, set_system, &made.system);
    at = read_literal(at, set_date, &made.date);
    bool same = made.form && at && cleat_chat_program(&made, &again, NULL) == CLEAT_OK &&
                strncmp(program, again.data, again.size - 1) == 0 && /* the last line break may be lost */
                program[again.size - 1 + strspn(program + again.size - 1, "\r\n")] == 0;
    cleat_string_free(&again);
    if (!same || !*made.system) cleat_free(made.system), made.system = NULL;
    if (same)
        *read = made;
    else
        cleat_free(made.date);
    return same;
}
